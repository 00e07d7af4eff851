"""The text of `AddFile.stats`: exact counts and bounds, of ordinary columns and of the paths of Variants.

Expected values follow PROTOCOL.md, "Per-file Statistics", and what Delta on Spark and Databricks wrote.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_variant as dv
from delta_variant.errors import DataFileError, InvalidStatisticsError
from delta_variant.protocol.statistics import (
    FileStatistics,
    decode,
    decode_bound,
    describe_bound,
    encode_bound,
    leaves_of,
)
from delta_variant.reports.inspection import InspectedFile, data_files


def stats_text(tmp_path: Path, data: pa.Table, **options: Any) -> str:
    """Return the text that a write commits."""
    table = tmp_path / f"t{len(list(tmp_path.iterdir()))}"
    dv.write_table(table, data, **options)
    (text,) = dv.load_snapshot(table).files.column("stats").to_pylist()
    return text


def stats(tmp_path: Path, data: pa.Table, **options: Any) -> dict[str, Any]:
    return json.loads(stats_text(tmp_path, data, **options), parse_float=Decimal)


def bounds(tmp_path: Path, *texts: str | None, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the lower and the upper bounds of the paths of a Variant column; {} for none."""
    found = stats(tmp_path, pa.table({"v": pa.array(texts, pa.json_())}), **options)
    lower, upper = (
        json.loads(decode_bound(found[side]["v"]).to_json(), parse_float=Decimal)
        if "v" in found[side]
        else {}
        for side in ("minValues", "maxValues")
    )
    return lower, upper


def of_column(tmp_path: Path, values: pa.Array) -> tuple[Any, Any]:
    found = stats(tmp_path, pa.table({"c": values}))
    return found["minValues"].get("c"), found["maxValues"].get("c")


# Ordinary columns.


@pytest.mark.usefixtures("small_files_are_shredded")
def test_the_text_is_exact(tmp_path: Path):
    data = pa.table({"id": [3, None, -1], "v": pa.array(['{"a":1}', None, '{"a":5}'], pa.json_())})
    text = stats_text(tmp_path, data)
    # The strings have the metadata `01 01 00 06 $['a']`, value `02 01 00 00 09 18` and int64 1 or 5, padded.
    lower, upper = (z85_of(number) for number in (1, 5))
    assert text == (
        '{"numRecords":3,'
        f'"minValues":{{"id":-1,"v":"{lower}"}},'
        f'"maxValues":{{"id":3,"v":"{upper}"}},'
        '"nullCount":{"id":1,"v":1}}'
    )


def z85_of(number: int) -> str:
    """Return `{"$['a']": number}`, an int64, in z85 as the standard library of ZeroMQ encodes it."""
    from zmq.utils import z85

    data = b"\x01\x01\x00\x06$['a']" + b"\x02\x01\x00\x00\x09\x18" + number.to_bytes(8, "little")
    return z85.encode(data + b"\0" * (-len(data) % 4)).decode()


@pytest.mark.parametrize(
    ("values", "lower", "upper"),
    [
        (pa.array([5, -3, None], pa.int8()), -3, 5),
        (pa.array([2**63 - 1, -(2**63)]), -(2**63), 2**63 - 1),
        (pa.array([1.5, -2.25]), Decimal("-2.25"), Decimal("1.5")),
        (
            pa.array([Decimal("1.50"), Decimal("-10.00")], pa.decimal128(38, 2)),
            Decimal("-10.00"),
            Decimal("1.50"),
        ),
        (pa.array([date(2024, 2, 29), date(1969, 12, 31)]), "1969-12-31", "2024-02-29"),
        (pa.array(["b", "a", "\u00e9"]), "a", "\u00e9"),
        (pa.array([True, False]), None, None),
        (pa.array([b"b", b"a"]), None, None),
        (pa.array([None, None], pa.int64()), None, None),
        (pa.array([float("nan"), 1.0]), None, None),
        (pa.array([[1], [2]]), None, None),
    ],
    ids=str,
)
def test_bounds_of_ordinary_columns(values: pa.Array, lower: Any, upper: Any, tmp_path: Path):
    """Booleans, bytes and lists have no bounds, and neither has a column with NaN."""
    assert of_column(tmp_path, values) == (lower, upper)


def test_decimals_are_numbers_with_all_their_digits(tmp_path: Path):
    values = pa.array([Decimal("12345678901234567890123456789012345.678")], pa.decimal128(38, 3))
    assert '"minValues":{"c":12345678901234567890123456789012345.678}' in stats_text(
        tmp_path, pa.table({"c": values})
    )


def test_infinite_bounds_are_omitted_because_json_cannot_store_them(tmp_path: Path):
    text = stats_text(tmp_path, pa.table({"c": [float("inf"), 1.0]}))
    found = json.loads(text)
    assert found["minValues"] == {"c": 1.0}
    assert "c" not in found["maxValues"]


def test_zeros_of_both_signs_are_within_the_bounds(tmp_path: Path):
    """PROTOCOL.md, "Per-file Statistics"."""
    found = stats_text(tmp_path, pa.table({"c": [0.0, -0.0]}))
    assert '"minValues":{"c":-0.0},"maxValues":{"c":0.0}' in found


@pytest.mark.parametrize(
    ("values", "zone", "lower", "upper"),
    [
        (
            [datetime(2024, 1, 2, 3, 4, 5, 678901)],
            "UTC",
            "2024-01-02T03:04:05.678Z",
            "2024-01-02T03:04:05.678Z",
        ),
        ([datetime(2024, 1, 2, 3, 4, 5, 678901)], None, "2024-01-02T03:04:05.678", "2024-01-02T03:04:05.678"),
        (
            [datetime(1969, 12, 31, 23, 59, 59, 999999)],
            "UTC",
            "1969-12-31T23:59:59.999Z",
            "1969-12-31T23:59:59.999Z",
        ),
    ],
)
def test_timestamps_are_cut_to_the_millisecond(
    values: list[datetime], zone: str | None, lower: str, upper: str, tmp_path: Path
):
    """PROTOCOL.md: timestamps are truncated to milliseconds, both bounds downwards."""
    if zone:
        values = [each.replace(tzinfo=timezone.utc) for each in values]
    assert of_column(tmp_path, pa.array(values, pa.timestamp("us", zone))) == (lower, upper)


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("x" * 32, "x" * 32, "x" * 32),
        ("x" * 33, "x" * 32, "x" * 32 + "\x7f"),
        ("\u00e9" * 40, "\u00e9" * 32, "\u00e9" * 32 + "\U0010ffff"),
        ("x" * 32 + "\U0010ffff", "x" * 32, None),
        ("\U0001f600" * 40, "\U0001f600" * 32, "\U0001f600" * 32 + "\U0010ffff"),
    ],
)
def test_long_text_is_shortened_to_bounds_that_hold(text: str, lower: str, upper: str | None, tmp_path: Path):
    found = of_column(tmp_path, pa.array([text]))
    assert found == (lower, upper)
    assert found[0] <= text
    assert upper is None or text.encode() <= upper.encode()


def test_structs_are_mirrored_and_a_null_struct_is_null_in_all_of_it(tmp_path: Path):
    """PROTOCOL.md, "Statistics for Variant Columns"."""
    nested = pa.array([{"i": 1, "t": {"x": "a"}}, None, {"i": 3, "t": None}])
    found = stats(tmp_path, pa.table({"s": nested}))
    assert found["nullCount"] == {"s": {"i": 1, "t": {"x": 2}}}
    assert found["minValues"] == {"s": {"i": 1, "t": {"x": "a"}}}
    assert found["maxValues"] == {"s": {"i": 3, "t": {"x": "a"}}}


# Indexed columns.


def wide() -> pa.Table:
    columns = {f"c{number:02}": [number] for number in range(40)}
    return pa.table({**columns, "v": pa.array(['{"a":1}'], pa.json_())})


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, [f"c{number:02}" for number in range(32)]),
        ({"delta.dataSkippingNumIndexedCols": "2"}, ["c00", "c01"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, [*(f"c{number:02}" for number in range(40)), "v"]),
        ({"delta.dataSkippingStatsColumns": "c39,V"}, ["c39", "v"]),
    ],
)
@pytest.mark.usefixtures("small_files_are_shredded")
def test_the_table_says_which_columns_have_statistics(
    configuration: dict[str, str], expected: list[str], tmp_path: Path
):
    """A Variant counts as one column; names match without regard to case."""
    found = stats(tmp_path, wide(), configuration=configuration)
    assert list(found["nullCount"]) == list(found["minValues"]) == list(found["maxValues"]) == expected
    assert found["numRecords"] == 1


@pytest.mark.usefixtures("small_files_are_shredded")
def test_partition_columns_have_no_statistics(tmp_path: Path):
    """PROTOCOL.md, "Per-file Statistics"."""
    data = pa.table({"p": ["x"], "v": pa.array(['{"a":1}'], pa.json_())})
    found = stats(tmp_path, data, partition_by="p")
    assert list(found["nullCount"]) == list(found["minValues"]) == ["v"]


# Variants.


@pytest.mark.usefixtures("small_files_are_shredded")
def test_bounds_of_a_variant_are_those_of_its_paths(tmp_path: Path):
    texts = ['{"a":3,"o":{"x":"z"},"d":1.25}', '{"a":-7,"o":{"x":"b"},"d":10.5}']
    lower, upper = bounds(tmp_path, *texts)
    assert lower == {"$['a']": -7, "$['d']": Decimal("1.25"), "$['o']['x']": "b"}
    assert upper == {"$['a']": 3, "$['d']": Decimal("10.5"), "$['o']['x']": "z"}


@pytest.mark.parametrize(
    ("texts", "paths"),
    [
        (['{"a":1}', '{"b":2}', None], ["$['a']", "$['b']"]),
        (['{"a":1,"b":1}', '{"a":null,"b":2}'], ["$['b']"]),
        (['{"a":1,"b":1}'] * 9 + ['{"a":"x","b":2}'], ["$['b']"]),
        (['{"a":true,"b":[1],"c":1}'], ["$['c']"]),
        (["1", "2"], ["$"]),
        (["[1]", "[2]"], []),
        ([None, None], []),
        (["null"], []),
        (['{"o":{"x":1}}', '{"o":"not an object"}'], ["$['o']['x']"]),
    ],
    ids=[
        "a path is missing",
        "Variant null",
        "two types",
        "no bounds",
        "a scalar at the top",
        "arrays",
        "SQL null",
        "only Variant null",
        "an ancestor that is not an object",
    ],
)
@pytest.mark.usefixtures("small_files_are_shredded")
def test_a_path_has_bounds_when_every_value_there_is_of_its_type(
    texts: list[str | None], paths: list[str], tmp_path: Path
):
    schema = {
        "$": dv.ShreddingSchema.of(pa.int64()),
    }.get(paths[0] if paths else "", "infer")
    lower, upper = bounds(tmp_path, *texts, shredding=schema)
    assert sorted(lower) == sorted(upper) == paths


def test_null_count_is_of_sql_nulls_and_not_of_variant_nulls(tmp_path: Path):
    """PROTOCOL.md, "Statistics for Variant Columns"."""
    data = pa.table({"v": pa.array(["null", None, '{"a":null}', None], pa.json_())})
    assert stats(tmp_path, data)["nullCount"] == {"v": 2}


def test_nan_takes_the_bounds_of_its_path(tmp_path: Path):
    """The expected bytes of a double are written out."""
    double = b"\x02\x01\x00\x00\x09\x1c"
    values = [double + struct for struct in (b"\0" * 6 + b"\xf8\x3f", b"\0" * 6 + b"\xf8\x7f")]
    variants = pa.StructArray.from_arrays(
        [pa.array([b"\x01\x01\x00\x01a"] * 2), pa.array(values)], ["metadata", "value"]
    )
    schema = dv.ShreddingSchema.of({"a": pa.float64()})
    for rows, expected in ((1, ["v"]), (2, [])):
        data = pa.table({"v": variants.slice(0, rows)})
        found = stats(tmp_path, data, variant_columns=["v"], shredding=schema)
        assert list(found["minValues"]) == expected


def test_timestamps_of_variants_keep_their_microseconds(tmp_path: Path):
    """Unlike bounds of ordinary columns."""
    value = b"\x30" + (1_234_567).to_bytes(8, "little")
    variants = pa.StructArray.from_arrays(
        [pa.array([b"\x01\x00\x00"]), pa.array([value])], ["metadata", "value"]
    )
    schema = dv.ShreddingSchema.of(pa.timestamp("us", "UTC"))
    found = stats(tmp_path, pa.table({"v": variants}), variant_columns=["v"], shredding=schema)
    assert decode_bound(found["minValues"]["v"]).value == b"\x02\x01\x00\x00\x09" + value
    assert found["maxValues"] == found["minValues"]


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("x" * 32, "x" * 32, "x" * 32),
        ("x" * 1000, "x" * 32, "x" * 32 + "\U0010ffff"),
        ("\u00e9" * 33, "\u00e9" * 32, "\u00e9" * 32 + "\U0010ffff"),
        ("\U0001f600" * 33, "\U0001f600" * 32, "\U0001f600" * 32 + "\U0010ffff"),
    ],
)
@pytest.mark.usefixtures("small_files_are_shredded")
def test_long_text_within_variants_is_shortened_by_its_own_rule(
    text: str, lower: str, upper: str, tmp_path: Path
):
    """Bounds have whole characters, and the upper bound ends in U+10FFFF."""
    assert bounds(tmp_path, json.dumps({"s": text})) == ({"$['s']": lower}, {"$['s']": upper})


@pytest.mark.usefixtures("small_files_are_shredded")
def test_an_upper_bound_that_cannot_be_truncated_is_omitted(tmp_path: Path):
    """The lower bound stays."""
    lower, upper = bounds(tmp_path, json.dumps({"s": "\U0010ffff" * 40, "t": "a"}))
    assert lower == {"$['s']": "\U0010ffff" * 32, "$['t']": "a"}
    assert upper == {"$['t']": "a"}


@pytest.mark.usefixtures("small_files_are_shredded")
def test_names_are_escaped_in_normalized_paths(tmp_path: Path):
    """RFC 9535, section 2.7."""
    names = {
        "it's": r"$['it\'s']",
        "back\\slash": r"$['back\\slash']",
        "\n": r"$['\n']",
        "\u000b": r"$['\u000b']",
        "": "$['']",
        "dot.": "$['dot.']",
        "\u00e9": "$['\u00e9']",
        '"': "$['\"']",
    }
    lower, _ = bounds(tmp_path, json.dumps(dict.fromkeys(names, 1)))
    assert sorted(lower) == sorted(names.values())


@pytest.mark.usefixtures("small_files_are_shredded")
def test_the_number_of_paths_is_limited(tmp_path: Path):
    """The default is 32 paths, and 0 omits the column."""
    text = json.dumps({f"f{number:02}": number for number in range(40)})
    assert [
        len(bounds(tmp_path, text, **options)[0])
        for options in (
            {},
            {"files": dv.FileOptions(max_variant_stats_paths=3)},
            {"files": dv.FileOptions(max_variant_stats_paths=100)},
            {"files": dv.FileOptions(max_variant_stats_paths=0)},
        )
    ] == [32, 3, 40, 0]


def test_a_table_without_shredding_has_null_counts_only(tmp_path: Path):
    """PROTOCOL.md, "Variant Data Type"."""
    data = pa.table({"v": pa.array(['{"a":1}', None], pa.json_())})
    found = stats(tmp_path, data, shredding=None)
    assert found == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {"v": 1}}


# Variants in structs.


def nested(*texts: str | None, rows: list[bool] | None = None) -> pa.Table:
    """Return a column `s: struct<n, v: Variant, t: struct<v: Variant>>`, null for false in `rows`."""
    v = dv.parse_json(list(texts))
    field = pa.field("v", v.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    inner = pa.StructArray.from_arrays([v], fields=[field])
    parts = [pa.array(range(len(texts))), v, inner]
    fields = [pa.field("n", pa.int64()), field, pa.field("t", inner.type)]
    mask = None if rows is None else pa.array([not row for row in rows])
    return pa.table({"s": pa.StructArray.from_arrays(parts, fields=fields, mask=mask)})


@pytest.mark.usefixtures("small_files_are_shredded")
def test_statistics_mirror_the_structs_that_variants_are_in(tmp_path: Path):
    """Bounds are z85 text at the Variant, and a null struct counts as null in its Variants."""
    data = nested('{"a":1}', '{"a":5}', None, '{"a":"hidden"}', rows=[True, True, True, False])
    found = stats(tmp_path, data)
    one, five = z85_of(1), z85_of(5)
    assert found["minValues"] == {"s": {"n": 0, "v": one, "t": {"v": one}}}
    assert found["maxValues"] == {"s": {"n": 2, "v": five, "t": {"v": five}}}
    assert found["nullCount"] == {"s": {"n": 1, "v": 2, "t": {"v": 2}}}


@pytest.mark.usefixtures("small_files_are_shredded")
def test_nested_variants_are_shredded_and_come_back(tmp_path: Path):
    data = nested('{"a":1,"b":"x"}', '{"a":"y"}', "null", None, "[1]", rows=[True] * 5)
    result = dv.write_table(tmp_path / "t", data)
    file = pq.ParquetFile(tmp_path / "t" / result.files[0].path)
    assert "typed_value" in {part.name for part in file.schema_arrow.field("s").type.field("v").type}
    columns = {"v": "to_json(s.v)", "w": "to_json(s.t.v)"}
    texts = dv.read_table(tmp_path / "t", columns=columns).to_table()
    expected = ['{"a":1,"b":"x"}', '{"a":"y"}', "null", None, "[1]"]
    assert texts["v"].to_pylist() == texts["w"].to_pylist() == expected
    assert (
        dv.compute_stats(tmp_path / "t" / result.files[0].path).to_json() == result.files[0].stats.to_json()
    )


def test_variants_in_arrays_and_maps_have_no_bounds(tmp_path: Path):
    """The array or the map counts its own nulls; its Variants are written unshredded."""
    v = dv.parse_json(['{"a":1}', '{"a":2}'])
    mark = {"ARROW:extension:name": "arrow.parquet.variant"}
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, None, 2], pa.int32()), v, type=pa.list_(pa.field("element", v.type, metadata=mark))
    )
    found = stats(tmp_path, pa.table({"l": lists}))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"l": 1})


# Files of other writers.


def test_file_stats_are_those_of_the_commit(tmp_path: Path):
    data = pa.table({"id": [1, 2], "v": pa.array(['{"a":1,"b":"x"}', '{"a":2}'], pa.json_())})
    result = dv.write_table(tmp_path / "t", data)
    found = dv.compute_stats(tmp_path / "t" / result.files[0].path)
    assert found.to_json() == result.files[0].stats.to_json()


@pytest.mark.parametrize("name", ["variant-stats-no-checkpoint", "variant-stats-with-struct-no-checkpoint"])
def test_file_stats_of_databricks_files_equal_those_of_databricks(corpora: Path, name: str):
    """Counts and bounds are equal; the bytes of a bound may have the names in another order."""
    table = corpora / "delta-golden" / name
    snapshot = dv.load_snapshot(table)
    for path, text in zip(
        *(snapshot.files.column(each).to_pylist() for each in ("path", "stats")), strict=True
    ):
        theirs, ours = decode(text), dv.compute_stats(table / path)
        assert ours.num_records == theirs.num_records
        assert ours.null_count == theirs.null_count
        for side in ("min_values", "max_values"):
            assert readable(getattr(ours, side)) == readable(getattr(theirs, side))


def variant_bounds(file: InspectedFile) -> dict[Any, Any]:
    """Return each bound of a Variant by side, column and path key, with its type and scale."""
    return {
        (side, column, key): bound
        for side in ("min_values", "max_values")
        for column, text in leaves_of(getattr(file.stats, side))
        if column in file.variants
        for key, bound in (describe_bound(text).bounds or {}).items()
    }


def test_bounds_computed_from_files_of_spark_are_those_that_spark_wrote(corpora: Path, tmp_path: Path):
    """Delta on Spark limits paths by a setting, which is two for one table."""
    types: dict[Any, str] = {}
    for archive in sorted(corpora.glob("delta-spark/*.tar.gz")):
        with tarfile.open(archive) as files:
            files.extractall(tmp_path, filter="data")
        table = str(tmp_path / archive.name.removesuffix(".tar.gz"))
        for stated, computed in zip(
            data_files(table, None), data_files(table, None, exact=True), strict=True
        ):
            theirs, ours = variant_bounds(stated), variant_bounds(computed)
            is_limited = "limit2" in archive.name
            assert {key: ours.get(key) for key in theirs} == theirs
            assert is_limited or not theirs or ours.keys() == theirs.keys(), archive.name
            types.update({(key, bound.type): archive.name for (_, _, key), bound in theirs.items()})
    assert len(types) >= 30
    assert {each for _, each in types} == {
        *("int64", "decimal8", "float", "double", "string", "date", "timestamp", "timestamp_ntz")
    }


def commits(corpora: Path, folder: Path) -> Iterator[str]:
    """Yield the commits of all tables of Delta on Spark and of Databricks."""
    for archive in sorted(corpora.glob("delta-spark/*.tar.gz")):
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
    for root in (folder, corpora / "delta-golden"):
        for commit in sorted(root.glob("*/_delta_log/*.json")):
            yield commit.read_text()


def z85_texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part in value.values():
            yield from z85_texts(part)
    elif isinstance(value, str) and value.startswith("0r"):
        yield value


def test_every_bound_of_the_corpora_is_decoded_and_encoded_to_the_byte(corpora: Path, tmp_path: Path):
    """Decoding and encoding the Variant of each string returns the string."""
    count = 0
    for text in commits(corpora, tmp_path):
        adds = (json.loads(line).get("add", {}) for line in text.splitlines())
        for add in adds:
            found = decode(add.get("stats") or "{}")
            for bound in z85_texts({"least": found.min_values, "greatest": found.max_values}):
                variant = decode_bound(bound)
                assert encode_bound(variant) == bound
                count += 1
    assert count > 60


def readable(values: Any) -> Any:
    """Return bounds with those of Variants decoded: no other text in these tables has the length of z85."""
    if isinstance(values, dict):
        return {name: readable(value) for name, value in values.items()}
    is_bound = isinstance(values, str) and values.startswith("0r")
    return json.loads(decode_bound(values).to_json()) if is_bound else values


def test_file_stats_of_any_parquet_file(tmp_path: Path):
    pq.write_table(pa.table({"a": [1, None], "b": ["x", "y"]}), tmp_path / "f.parquet")
    assert dv.compute_stats(tmp_path / "f.parquet") == FileStatistics(
        num_records=2,
        null_count={"a": 1, "b": 0},
        min_values={"a": 1, "b": "x"},
        max_values={"a": 1, "b": "y"},
    )
    with pytest.raises(DataFileError) as caught:
        dv.compute_stats(tmp_path / "nothing.parquet")
    assert str(caught.value.file).endswith("nothing.parquet")


def test_decoded_numbers_keep_every_digit():
    text = (
        '{"minValues":{"d":-12345678901234567890.123456789012345678,"e":1E+5},"maxValues":{"i":'
        + "9" * 38
        + "}}"
    )
    found = decode(text)
    assert found.min_values == {
        "d": Decimal("-12345678901234567890.123456789012345678"),
        "e": Decimal("1E+5"),
    }
    assert found.max_values == {"i": int("9" * 38)}
    again = json.loads(found.to_json(), parse_float=Decimal)
    assert {name: again[name] for name in ("minValues", "maxValues")} == json.loads(text, parse_float=Decimal)


def test_an_exponent_is_not_written_out_in_digits():
    text = decode('{"minValues":{"d":1e999999999,"e":1e-999999999}}').to_json()
    assert text == '{"minValues":{"d":1E+999999999,"e":1E-999999999},"maxValues":{},"nullCount":{}}'


def test_dates_and_times_after_the_year_9999_have_no_bounds(tmp_path: Path):
    far = pa.table(
        {"d": pa.array([0, 10**7], pa.date32()), "t": pa.array([0, 2**62], pa.timestamp("us", "UTC"))}
    )
    found = stats(tmp_path, far)
    assert found["minValues"] == {"d": "1970-01-01", "t": "1970-01-01T00:00:00.000Z"}
    assert found["maxValues"] == {}


def test_statistics_are_decoded_and_invalid_ones_rejected():
    assert decode('{"numRecords":1,"tightBounds":false}') == FileStatistics(num_records=1, tight_bounds=False)
    assert decode('{"numRecords":1,"unknown":{}}') == FileStatistics(num_records=1)
    for text in ("", "{", "[]", "1"):
        with pytest.raises(InvalidStatisticsError, match=r"\S"):
            decode(text)
