"""Audits of whole tables: those of other writers, those that cannot be loaded, and the results."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import Any

import pyarrow as pa
import pytest
from log.test_log import GOLDEN_TABLES, SPARK_TABLES
from support.archives import unpack_spark_table
from support.errors import raises_at
from support.planting import EMPTY, INT8_1, LIST_OF_INTS, Table, column

import delta_variant as dv
from delta_variant.errors import MalformedLogError, TableNotFoundError, VersionNotFoundError
from delta_variant.operations.audit.log_rules import _json_checksum

# The rules that valid tables of other writers violate with the severity `info`, and why.
EXPLAINED = {
    # Delta on Spark computes no Variant statistics by default, and does not convert those of checkpoints.
    "b0_shredded_defaults": {"ST10"},
    "b1_limit_only": {"ST10"},
    # Spark 4.0 and earlier write no VARIANT annotation.
    "spark-variant-checkpoint": {"P-S2"},
}


@pytest.fixture
def unpacked(corpora, tmp_path):
    """Return a function that gives the folder of a table of the corpora by its name."""

    def unpack(name):
        if name in GOLDEN_TABLES:
            return corpora / "delta-golden" / name
        return unpack_spark_table(corpora, name, tmp_path)

    return unpack


@pytest.mark.parametrize("name", [*SPARK_TABLES, *GOLDEN_TABLES])
def test_a_table_of_another_writer_has_only_explained_findings(unpacked, name):
    audit = dv.audit_table(unpacked(name), data=True)
    assert audit.is_clean
    assert {finding.rule for finding in audit.findings} == EXPLAINED.get(name, set())
    assert audit.data
    assert audit.snapshot is not None
    assert len(audit.files) == audit.snapshot.num_files > 0


@pytest.mark.parametrize("kind", ["boolean", "binary", "bigint"])
def test_only_types_that_have_bounds_are_missed_in_the_log(tmp_path, kind):
    # Delta on Spark writes bounds of numbers, text and times, not of booleans and bytes.
    values = {"boolean": [True, False], "binary": [b"a", b"b"], "bigint": [1, 2]}[kind]
    schema = dv.ShreddingSchema.of({"a": kind})
    dv.write_table(
        tmp_path / "u", [{"v": {"a": each}} for each in values], variant_columns=["v"], shredding=schema
    )
    table = Table(tmp_path / "u")
    table.edit_stats(lambda statistics: [statistics[side].clear() for side in ("minValues", "maxValues")])
    found = {finding.rule for finding in dv.audit_table(tmp_path / "u").findings}
    assert found == ({"ST10"} if kind == "bigint" else set())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shredding": None},
        {"files": dv.FileOptions(spark_compatible=False)},
        {"configuration": {"delta.columnMapping.mode": "name"}},
        {"configuration": {"delta.enableDeletionVectors": "true"}},
        {"configuration": {"delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true"}},
        {"configuration": {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpointInterval": "1"}},
        {"partition_by": "day"},
        {"files": dv.FileOptions(max_variant_stats_paths=2)},
    ],
)
def test_a_table_of_this_library_has_no_findings(tmp_path, corpora, options):
    texts = [json.dumps({"a": n, "s": "x" * n, "o": {"d": n / 4}, "t": [n]}) for n in range(50)]
    data = pa.table(
        {
            "day": [str(n % 2) for n in range(50)],
            "at": pa.array(range(50), pa.timestamp("us", "UTC")),
            "event": pa.array(texts, pa.json_()),
        }
    )
    dv.write_table(tmp_path / "table", data, **options)
    dv.write_table(tmp_path / "table", data, mode="append")
    assert dv.audit_table(tmp_path / "table", data=True).findings == ()


def test_findings_are_a_table(tmp_path):
    table = Table.write(tmp_path / "t")
    table.edit_stats(lambda statistics: statistics.update(numRecords=7))
    found = dv.audit_table(table.path, data=True)
    assert found.to_table().to_pylist() == [vars(each) for each in found.findings]
    assert found.to_table()["rule"].to_pylist() == ["AU11"]
    assert dv.audit_table(Table.write(tmp_path / "u").path).to_table().schema == found.to_table().schema


def test_a_table_that_cannot_be_loaded_is_audited(tmp_path):
    table = Table.write(tmp_path / "table")
    table.commit.write_text(table.commit.read_text("utf-8") + "{\n", "utf-8")
    data = table.file.read_bytes()
    table.file.write_bytes(data + b"\0")
    audit = dv.audit_table(table.path)
    assert audit.snapshot is None
    assert [(f.rule, f.version) for f in audit.findings if f.file_path is None] == [("L0", None), ("L1", 0)]
    assert {f.rule for f in audit.findings if f.file_path == table.file.name} == {"F2", "F3"}
    assert [file.path for file in audit.files] == [table.file.name]


@pytest.mark.parametrize(
    ("least", "greatest", "rules"),
    [
        ("x" * 32, "x" * 32 + "\x7f", set()),
        ("x" * 32, "x" * 32 + "\U0010ffff", set()),
        # Other writers truncate to other lengths.
        ("x" * 20, "x" * 20 + "\x7f", set()),
        ("x" * 40, "x" * 40, set()),
        ("x" * 39, "x" * 39 + "\x7f", set()),
        ("x" * 31 + "y", "x" * 32 + "\x7f", {"AU7"}),
        ("x" * 32, "x" * 32, {"AU7"}),
        ("x" * 32, "x" * 33, {"AU7"}),
        ("x" * 32, "x" * 31 + "a", {"AU7"}),
        ("w", "x" * 32 + "\x7f", {"AU8"}),
        ("x" * 32, "y", {"AU8"}),
    ],
)
def test_truncated_bounds_are_valid_at_any_length(tmp_path, least, greatest, rules):
    dv.write_table(tmp_path / "table", pa.table({"s": ["x" * 40]}))
    bounds = {"minValues": {"s": least}, "maxValues": {"s": greatest}}
    table = Table(tmp_path / "table")
    table.edit_stats(lambda statistics: statistics.update(bounds))
    audit = dv.audit_table(table.path, data=True)
    assert {finding.rule for finding in audit.findings} == rules
    assert bool(dv.repair_statistics(table.path).files) == bool(rules)


def test_a_metadata_without_a_schema_is_rejected_by_reads_and_writes(tmp_path):
    """PROTOCOL.md, "Change Metadata": schemaString is required; delta-spark takes it for no columns."""
    table = Table.write(tmp_path / "t")
    table.edit("metaData", lambda metadata: metadata.pop("schemaString"))
    file = str(table.commit)
    for call in (dv.load_snapshot, lambda path: dv.write_table(path, pa.table({"id": [1]}), mode="append")):
        with raises_at(MalformedLogError, "`schemaString` - at .*metaData`", file=file, version=0):
            call(table.path)
    findings = dv.audit_table(table.path).findings
    assert [(each.rule, each.version) for each in findings if "schemaString" in each.sentence] == [
        ("L0", None),
        ("L1", 0),
    ]


@pytest.mark.parametrize("widened", [False, True])
def test_bounds_with_the_digits_of_a_float_are_exact(tmp_path, widened):
    """Spark writes 3.14 for the float 3.14, which as a double is 3.140000104904175."""
    path = tmp_path / "t"
    data = pa.table({"f": pa.array([0.234, 3.14], pa.float32())})
    dv.write_table(path, data, configuration={"delta.enableTypeWidening": "true"})
    Table(path).edit_stats(lambda each: each.update(minValues={"f": 0.234}, maxValues={"f": 3.14}))
    if widened:
        dv.change_type(path, "f", "double")
    assert dv.audit_table(path, data=True).findings == ()
    assert dv.repair_statistics(path).files == ()
    Table(path).edit_stats(lambda each: each.update(maxValues={"f": 3.1399998}))
    (finding,) = dv.audit_table(path, data=True).findings
    assert (finding.rule, finding.column) == ("AU7", "f")
    (file,) = dv.repair_statistics(path).files
    assert file.reasons == (
        "maxValues of f is 3.1399998, which does not cover 3.140000104904175 in the data",
    )


FAR = pa.array([4_000_000, 0], pa.int32())
FIRST, LAST = -70_000_000_000_000_000, 300_000_000_000_000_000


@pytest.mark.parametrize(
    ("values", "least", "greatest", "wrong"),
    [
        ([1.5, float("nan"), -1.0], -1.0, 1.5, {("minValues", -0.5): "-1", ("maxValues", 1.0): "1.5"}),
        ([1.5, float("inf"), -1.0], -1.0, None, {("minValues", -0.5): "-1.0", ("maxValues", 1.0): "inf"}),
        (pa.array([float("-inf"), 1.5], pa.float32()), None, 1.5, {("minValues", 1.0): "-inf"}),
        ([float("nan")] * 2, None, 0.0, {}),
        ([True, False, None], False, True, {("minValues", True): "false", ("maxValues", False): "true"}),
        (FAR.cast(pa.date32()), "1970-01-01", None, {("maxValues", "2024-01-01"): "12921-08-18"}),
        (
            pa.array([LAST, FIRST], pa.timestamp("us", "UTC")),
            None,
            None,
            {
                ("minValues", "2024-01-01T00:00:00Z"): "-0249-10-15 19:33:20.000000Z",
                ("maxValues", "2024-01-01T00:00:00Z"): "11476-08-15 05:20:00.000000Z",
            },
        ),
    ],
    ids=["NaN", "infinity", "minus infinity", "only NaN", "Boolean", "date", "timestamp"],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_wrong_bound_is_found_where_the_exact_bound_is_not_json(
    tmp_path, values, least, greatest, wrong, nested
):
    column = pa.array(values)
    data = pa.table({"c": pa.StructArray.from_arrays([column], ["x"]) if nested else column})
    dv.write_table(tmp_path / "t", data)

    def set_bounds(**bounds: Any) -> None:
        stated = {side: value for side, value in bounds.items() if value is not None}
        edited = {side: {"c": {"x": value} if nested else value} for side, value in stated.items()}
        Table(tmp_path / "t").edit_stats(
            lambda each: each.update({"minValues": {}, "maxValues": {}} | edited)
        )

    def audit() -> list[dv.Finding]:
        # Spark orders NaN after an upper bound (AU14), whatever the bound is.
        return [each for each in dv.audit_table(tmp_path / "t", data=True).findings if each.rule != "AU14"]

    set_bounds(minValues=least, maxValues=greatest)
    assert audit() == []
    for (side, bound), value in wrong.items():
        set_bounds(**{"minValues": least, "maxValues": greatest, side: bound})
        (finding,) = audit()
        assert (finding.rule, finding.severity, finding.column) == ("AU7", "error", "c.x" if nested else "c")
        assert f" is {bound}, which does not cover {value} in the data: " in finding.sentence
    dv.repair_statistics(tmp_path / "t", dry_run=False)
    assert dv.audit_table(tmp_path / "t", data=True).findings == ()


@pytest.mark.parametrize(
    ("values", "side", "bound", "rule", "value"),
    [
        ([1.5, 2.5], "minValues", "NaN", "AU7", "1.5"),
        ([1.5, 2.5], "minValues", "Infinity", "AU7", "1.5"),
        ([1.5, 2.5], "minValues", "-Infinity", "AU8", "1.5"),
        ([1.5, 2.5], "maxValues", "NaN", "AU8", "2.5"),
        ([1.5, 2.5], "maxValues", "-Infinity", "AU7", "2.5"),
        ([1.5, float("nan")], "maxValues", "Infinity", "AU7", "NaN"),
        ([1.5, float("nan")], "maxValues", "NaN", None, ""),
        ([float("nan")], "minValues", "NaN", None, ""),
        ([float("inf")], "minValues", "Infinity", None, ""),
    ],
)
def test_bounds_of_spark_that_are_not_finite_are_compared(tmp_path, values, side, bound, rule, value):
    """Spark orders NaN after infinity, and writes both as text."""
    dv.write_table(tmp_path / "t", pa.table({"c": pa.array(values)}))
    Table(tmp_path / "t").edit_stats(lambda each: each[side].update(c=bound))
    what = {"AU7": "does not cover", "AU8": "is wider than"}
    found = dv.audit_table(tmp_path / "t", data=True).findings
    expected = [(rule, f"{side} of c is {bound}, which {what[rule]} {value} in the data")] if rule else []
    assert [(each.rule, each.message) for each in found if each.rule != "AU21"] == expected
    dv.repair_statistics(tmp_path / "t", dry_run=False)
    found = dv.audit_table(tmp_path / "t", data=True).findings
    assert [each for each in found if each.rule != "AU21"] == []


MOMENT = dt.datetime(1960, 1, 1, 0, 0, 0, 123_456)


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize(
    ("side", "fraction", "is_right"),
    [
        ("minValues", "123", True),
        ("minValues", "123456", True),
        ("minValues", "123457", False),
        ("minValues", "124", False),
        # Readers add a millisecond to an upper bound.
        ("maxValues", "123", True),
        ("maxValues", "123456", True),
        ("maxValues", "122", False),
        ("maxValues", "122456", False),
    ],
)
def test_bounds_of_timestamps_are_rounded_down_only(tmp_path, zone, side, fraction, is_right):
    """PROTOCOL.md, "Per-file Statistics": timestamps are truncated down to milliseconds."""
    last = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
    values = {"c": pa.array([MOMENT], pa.timestamp("us", zone)), "last": [last]}
    dv.write_table(tmp_path / "t", pa.table(values))
    bound = f"1960-01-01T00:00:00.{fraction}{'Z' if zone else ''}"
    Table(tmp_path / "t").edit_stats(lambda each: each[side].update(c=bound))
    found = dv.audit_table(tmp_path / "t", data=True).findings
    assert [each.rule for each in found] == ([] if is_right else ["AU7"])
    dv.repair_statistics(tmp_path / "t", dry_run=False)
    assert dv.audit_table(tmp_path / "t", data=True).findings == ()


def test_a_version_of_readers_that_stands_for_a_feature_has_no_findings(tmp_path):
    """Spark creates tables with column mapping and an identity column with this protocol."""
    mapped = {"delta.columnMapping.mode": "name"}
    dv.create_table(tmp_path / "t", {"id": "bigint", "s": "string"}, configuration=mapped)
    protocol = {"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": ["columnMapping"]}
    Table(tmp_path / "t").edit("protocol", lambda each: (each.clear(), each.update(protocol)))
    assert dv.audit_table(tmp_path / "t").findings == ()
    dv.write_table(tmp_path / "t", [{"id": 1, "s": "a"}], mode="append")
    assert dv.read_table(tmp_path / "t").to_pylist() == [{"id": 1, "s": "a"}]
    Table(tmp_path / "t").edit("protocol", lambda each: each.update(minReaderVersion=1))
    assert [each.rule for each in dv.audit_table(tmp_path / "t").findings][-1] == "T5"


def test_a_finding_has_its_location(tmp_path):
    table = Table.write(tmp_path / "table")
    table.shift_bounds("$['a']", {"type": "bigint", "value": 2}, {"type": "bigint", "value": 3})
    (finding,) = dv.audit_table(table.path, data=True).findings
    assert (finding.rule, finding.severity) == ("AU7", "error")
    assert (finding.file_path, finding.column) == (table.file.name, "v")
    assert (finding.path_key, finding.row) == ("$['a']", 0)
    assert finding.sentence == (
        "row 0, column v at $['a']: 1 is less than the lower bound: if the rows are right, run "
        "`delta-variant repair-statistics`; until then a reader that skips by it loses rows"
    )


def test_a_violation_in_several_rows_is_one_finding(tmp_path):
    table = Table.write(tmp_path / "table")
    good = {"metadata": EMPTY, "typed_value": 1}
    table.replace_rows(column(pa.int64()), good, *[{**good, "value": INT8_1}] * 3)
    found = [f for f in dv.audit_table(table.path, data=True).findings if f.severity == "error"]
    assert [(f.rule, f.row, f.path_key) for f in found] == [("R5", 1, "$")]
    assert "(and 2 more rows)" in found[0].sentence


def test_rows_are_checked_only_with_data(tmp_path):
    table = Table.write(tmp_path / "table")
    table.replace_rows(LIST_OF_INTS, {"metadata": EMPTY, "typed_value": [{}]})
    assert "R3" not in {f.rule for f in dv.audit_table(table.path).findings}
    assert "R3" in {f.rule for f in dv.audit_table(table.path, data=True).findings}


def test_only_the_selected_files_are_audited(tmp_path):
    table = Table.write(tmp_path / "table")
    dv.write_table(table.path, dv.read_table(table.path).to_table(), mode="append")
    first = table.actions()[-1]["add"]["path"]
    audit = dv.audit_table(table.path, files=[first])
    assert [file.path for file in audit.files] == [first]
    with pytest.raises(ValueError, match="has no data file 'nothing'"):
        dv.audit_table(table.path, files=["nothing"])


def test_an_earlier_version_can_be_audited(tmp_path):
    table = Table.write(tmp_path / "table")
    table.add_commit(1, {"add": {"path": "missing.parquet"}})
    assert not dv.audit_table(table.path).is_clean
    assert dv.audit_table(table.path, version=0).findings == ()


@pytest.mark.parametrize("with_tombstones", [True, False])
def test_a_reconciled_compaction_has_no_findings(tmp_path, with_tombstones):
    root = tmp_path / "table"
    dv.write_table(root, pa.table({"id": [1]}))
    dv.write_table(root, pa.table({"id": [2]}), mode="overwrite", commit=dv.CommitOptions(txn=("app", 1)))
    dv.write_table(root, pa.table({"id": [3]}), mode="append", commit=dv.CommitOptions(txn=("app", 2)))
    actions = [
        json.loads(line)
        for version in (2, 1, 0)
        for line in (root / "_delta_log" / f"{version:020d}.json").read_text("utf-8").splitlines()
    ]
    # The compaction, without the file that the overwrite removed and the older transaction.
    protocol, metadata = (next(each for each in actions if name in each) for name in ("protocol", "metaData"))
    (remove,) = (each for each in actions if "remove" in each)
    adds = [each for each in actions if "add" in each and each["add"]["path"] != remove["remove"]["path"]]
    newest = next(each for each in actions if "txn" in each)
    kept = [protocol, metadata, newest, *adds, *([remove] if with_tombstones else [])]
    for each in adds:
        each["add"]["dataChange"] = False
    file = root / "_delta_log" / f"{0:020d}.{2:020d}.compacted.json"
    file.write_text("".join(json.dumps(each) + "\n" for each in kept), "utf-8")
    assert dv.audit_table(root).findings == ()
    assert sorted(dv.read_table(root).to_table()["id"].to_pylist()) == [2, 3]


def test_a_gap_of_many_versions_is_one_finding(tmp_path):
    table = Table.write(tmp_path / "table")
    for version in (1, 3, 3_000_000, 2**63 - 1):
        table.add_commit(version, {"commitInfo": {"operation": "WRITE"}})
    (table.log / "99999999999999999999.json").write_text("{}", "utf-8")
    findings = [each for each in dv.audit_table(table.path).findings if each.rule in ("L2", "L12")]
    assert [(each.rule, each.version) for each in findings] == [
        ("L2", 2),
        ("L2", 4),
        ("L2", 3_000_001),
        ("L12", None),
    ]
    assert "2,999,996 commits are missing, from 00000000000000000004.json" in findings[1].sentence
    assert "99999999999999999999.json is not a log file" in findings[3].sentence


def test_a_folder_without_a_log_is_rejected(tmp_path):
    with raises_at(TableNotFoundError, "_delta_log", table=str(tmp_path)):
        dv.audit_table(tmp_path)


def test_deletion_vectors_violate_no_rule(unpacked):
    path = unpacked("d_dv")
    adds = dv.load_snapshot(path).files.to_pylist()
    assert any(add["deletion_vector"] for add in adds)
    assert dv.audit_table(path, data=True).findings == ()


def test_files_need_no_row_ids_where_row_tracking_is_only_supported(tmp_path):
    table = Table.write(tmp_path / "table")
    dv.set_properties(table.path, {"delta.feature.rowTracking": "supported"})
    assert dv.audit_table(table.path, data=True).findings == ()


def test_statistics_of_a_dropped_column_are_valid(tmp_path):
    """AU13: the data files still have the column."""
    data = pa.table({"id": [1], "dropped": ["a"], "s": [{"stays": 1, "goes": 2}]})
    dv.write_table(tmp_path / "t", data, configuration={"delta.columnMapping.mode": "name"})
    dv.drop_column(tmp_path / "t", "dropped")
    dv.drop_column(tmp_path / "t", "s.goes")
    assert dv.audit_table(tmp_path / "t", data=True).findings == ()
    assert dv.repair_statistics(tmp_path / "t").files == ()


def test_bounds_and_the_column_of_a_file_have_types_in_sql(tmp_path):
    table = Table.write(tmp_path / "t")
    table.set_bounds({"$['a']": {"type": "string", "value": "x"}})
    (finding,) = (each for each in dv.audit_table(table.path).findings if each.rule == "AU19")
    assert finding.message == "the bounds of v at $['a'] are string, but the file has bigint"


@pytest.mark.parametrize("version", [-1, 1, 9])
def test_an_unknown_version_is_rejected(tmp_path, version):
    table = Table.write(tmp_path / "table")
    with raises_at(VersionNotFoundError, "its latest is 0", version=version):
        dv.audit_table(table.path, version=version)
    table.commit.write_text("{", encoding="utf-8")
    assert "L0" in {finding.rule for finding in dv.audit_table(table.path, version=0).findings}


def test_the_checksum_of_a_checkpoint_sorts_the_texts_of_pairs():
    """As Delta on Spark does for the features of a protocol, of which a table may have more than ten."""
    pairs = ['"f"+0="x%20y"', '"f"+10=10', *(f'"f"+{number}={number}' for number in range(1, 10))]
    expected = hashlib.md5(",".join(pairs).encode()).hexdigest()
    assert _json_checksum({"f": ["x y", *range(1, 11)], "checksum": "?"}) == expected
