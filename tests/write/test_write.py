"""`write_table`: accepted data, existing tables, and rejected input."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import AbstractContextManager, ExitStack
from datetime import date, datetime, timezone
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.intercepted_store import commit_first
from support.planting import Table
from support.processes import start
from support.strategies import arrow_rows
from support.tables import list_files, read_actions, read_log

from delta_variant import (
    CommitOptions,
    FileOptions,
    JsonOptions,
    ShreddingSchema,
    Variant,
    audit_table,
    load_snapshot,
    parse_json,
    read_json,
    read_table,
    write_table,
)
from delta_variant.errors import (
    AmbiguousWriteError,
    CastError,
    ConstraintViolationError,
    InvalidJsonError,
    MalformedVariantError,
    ProtocolError,
    SchemaError,
    ShreddingNotEnabledError,
    TableExistsError,
    UnsupportedFeatureError,
)
from delta_variant.log.commit_context import Transaction
from delta_variant.storage.store import Store
from delta_variant.write import partitions
from delta_variant.write.partitions import PartitionedFiles

EVENTS = ['{"type":"buy","n":1}', '{"type":"view","n":2}', '{"n":"three"}']


# What a write suggests where the table exists.
ON_EXISTING = (("mode", "append"), ("mode", "overwrite"))


def events(*texts: str | None) -> pa.Table:
    """Return JSON text as a table of the columns `id` and `event`."""
    found = texts or tuple(EVENTS)
    return pa.table({"id": range(len(found)), "event": pa.array(found, pa.json_())})


def dictionary_of_views(texts: list[str]) -> Any:
    """Return text in the encoding of Polars categories."""
    return pa.DictionaryArray.from_arrays(pa.array(range(len(texts))), pa.array(texts, pa.string_view()))


def rows(table: Path, **options: Any) -> list[dict[str, Any]]:
    """Return the rows of a table with Variants as text, ordered by `id` if there is one."""
    snapshot = load_snapshot(table)
    columns = {
        field.name: f"to_json({field.name})"
        if str(getattr(field.type, "name", "")) == "variant"
        else field.name
        for field in snapshot.schema.fields
    }
    found = read_table(table, **{"columns": columns, **options}).to_table().to_pylist()
    return sorted(found, key=lambda row: row["id"]) if found and "id" in found[0] else found


def texts(table: Path) -> list[str | None]:
    return [row["event"] for row in rows(table)]


def edit_log(table: Path, kind: str, **changes: Any) -> None:
    """Change one action of the first commit, as another engine would have written it."""
    log = table / "_delta_log" / f"{0:020}.json"
    found = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for action in found:
        if kind in action:
            action[kind].update(changes)
    log.write_text("".join(json.dumps(action) + "\n" for action in found), "utf-8")


# Existing tables.


def test_a_new_table_has_the_features_and_the_property_of_shredding(tmp_path: Path):
    result = write_table(tmp_path / "t", events())
    assert (result.version, result.rows, result.invalid, len(result.files)) == (0, 3, 0, 1)
    (protocol,) = read_actions(tmp_path / "t", "protocol")
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["variantType", "variantShredding"]
    assert set(protocol["writerFeatures"]) == {"appendOnly", "invariants", "variantType", "variantShredding"}
    (metadata,) = read_actions(tmp_path / "t", "metaData")
    assert metadata["configuration"] == {"delta.enableVariantShredding": "true"}
    assert json.loads(metadata["schemaString"])["fields"][1] == {
        "name": "event",
        "type": "variant",
        "nullable": True,
        "metadata": {},
    }
    assert texts(tmp_path / "t") == ['{"n":1,"type":"buy"}', '{"n":2,"type":"view"}', '{"n":"three"}']


def test_a_new_table_without_variants_has_the_oldest_protocol(tmp_path: Path):
    write_table(tmp_path / "t", pa.table({"id": [1]}))
    (protocol,) = read_actions(tmp_path / "t", "protocol")
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}


def test_the_commit_info_describes_the_write(tmp_path: Path):
    write_table(tmp_path / "t", events(), name="events", description="what happened")
    result = write_table(tmp_path / "t", events(), mode="append")
    first, second = read_actions(tmp_path / "t", "commitInfo")
    assert (first["operation"], second["operation"]) == ("WRITE", "WRITE")
    assert first["operationParameters"] == {"mode": "ErrorIfExists", "partitionBy": "[]"}
    assert second["operationParameters"] == {"mode": "Append", "partitionBy": "[]"}
    assert second["operationMetrics"] == {
        "numFiles": "1",
        "numOutputRows": "3",
        "numOutputBytes": str(result.files[0].bytes),
    }
    assert second["engineInfo"].startswith("delta-variant/")
    (metadata,) = read_actions(tmp_path / "t", "metaData")
    assert (metadata["name"], metadata["description"]) == ("events", "what happened")
    added = read_actions(tmp_path / "t", "add")[1]
    assert added["size"] == (tmp_path / "t" / added["path"]).stat().st_size
    assert added["dataChange"] is True


def test_an_existing_table_is_an_error_by_default(tmp_path: Path):
    write_table(tmp_path / "t", events())
    before = list_files(tmp_path)
    with raises_at(TableExistsError, table=str(tmp_path / "t"), remedies=ON_EXISTING):
        write_table(tmp_path / "t", events())
    assert list_files(tmp_path) == before


def test_append_adds_rows_or_creates_the_table(tmp_path: Path):
    assert write_table(tmp_path / "t", events(), mode="append").version == 0
    assert write_table(tmp_path / "t", events("4"), mode="append").version == 1
    assert len(rows(tmp_path / "t")) == 4


def test_a_write_with_a_txn_happens_once(tmp_path: Path):
    assert (
        write_table(tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=("app", 7))).version
        == 0
    )
    assert (
        write_table(tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=("app", 8))).version
        == 1
    )
    before = list_files(tmp_path)
    assert (
        write_table(tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=("app", 8))).version
        is None
    )
    assert (
        write_table(tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=("app", 3))).version
        is None
    )
    assert list_files(tmp_path) == before
    assert (
        write_table(tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=("other", 3))).version
        == 2
    )
    txns = {txn["appId"]: txn["version"] for txn in read_actions(tmp_path / "t", "txn")}
    assert txns == {"app": 8, "other": 3}


def test_a_repeated_txn_is_skipped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    assert not write_table(
        tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=("app", 7))
    ).repeated
    assert caplog.records == []
    assert write_table(tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=("app", 6))).repeated
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"{tmp_path / 't'}: skipped a write because the table already has version 6 "
        "of the application 'app' or a later one"
    )
    assert not write_table(
        tmp_path / "t", events(), mode="ignore", commit=CommitOptions(txn=("app", 7))
    ).repeated


def test_a_version_that_another_run_of_the_application_counted_is_an_error(tmp_path: Path):
    def write(version: int, run: str) -> bool:
        transaction = Transaction.of_query("app", version, run, "unnamed")
        return write_table(
            tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=transaction)
        ).repeated

    assert [write(0, "first"), write(1, "first"), write(1, "first")] == [False, False, True]
    for version in (0, 1):
        with pytest.raises(AmbiguousWriteError, match=f"version {version} of application 'app'"):
            write(version, "second")
    assert write(2, "second") is False
    with pytest.raises(AmbiguousWriteError, match="committed version 2"):
        write(2, "first")
    assert load_snapshot(tmp_path / "t").version == 2
    write_table(tmp_path / "t", events(), mode="append", commit=CommitOptions(txn=("unnamed", 3)))
    with pytest.raises(AmbiguousWriteError, match="without an application id"):
        write(3, "second")
    assert write(4, "second") is False


@pytest.mark.parametrize(
    "txn",
    [
        ("app", "7"),
        ("app", 7.0),
        ("app", None),
        ("app", True),
        ("app", -1),
        ("app", 2**63),
        (None, 1),
        (5, 1),
        ("\ud800", 1),
        ("app",),
        "x",
        "ab",
    ],
)
def test_an_invalid_txn_is_rejected_before_files_are_written(tmp_path: Path, txn: Any):
    with pytest.raises(ValueError, match="txn"):
        write_table(tmp_path / "t", events(), commit=CommitOptions(txn=txn))
    assert not (tmp_path / "t").exists()


def test_a_table_with_unknown_properties_is_read_and_appended_to(tmp_path: Path):
    write_table(tmp_path / "t", events())
    Table(tmp_path / "t").set_property("delta.appendonly", "true")
    Table(tmp_path / "t").set_property("delta.nope", "1")
    write_table(tmp_path / "t", events(), mode="append")
    assert len(rows(tmp_path / "t")) == 6
    assert load_snapshot(tmp_path / "t").properties["delta.nope"] == "1"


def test_the_version_of_a_txn_may_be_of_numpy(tmp_path: Path):
    write_table(tmp_path / "t", events(), commit=CommitOptions(txn=("app", np.int64(7))))  # type: ignore[arg-type]
    assert load_snapshot(tmp_path / "t").txns["app"].version == 7


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": 5}, "name: expected a string, got 5"),
        ({"description": 5}, "description: expected a string, got 5"),
        ({"description": "\ud800"}, "unpaired surrogate"),
        ({"partition_by": [1]}, "a name in partition_by: expected a string, got 1"),
        ({"configuration": {"x": 1}}, "x: expected a string such as 'true', got 1"),
        ({"configuration": {"owner": None}}, "owner: expected a string .*, got None"),
        ({"configuration": {"delta.appendOnly": True}}, "appendOnly: expected a string .*, got True"),
        ({"configuration": {5: "x"}}, "a property name: expected a string, got 5"),
        ({"configuration": {"x": "\ud800"}}, "unpaired surrogate"),
        ({"configuration": 5}, "configuration: expected a dict .*, got 5"),
    ],
)
def test_invalid_metadata_is_rejected_before_files_are_written(
    tmp_path: Path, options: dict[str, Any], sentence: str
):
    with pytest.raises(ValueError, match=sentence):
        write_table(tmp_path / "t", events(), **options)
    assert not (tmp_path / "t").exists()


def test_a_table_that_exists_is_an_error_whatever_its_txns_are(tmp_path: Path):
    write_table(tmp_path / "t", events(), commit=CommitOptions(txn=("app", 7)))
    with raises_at(TableExistsError, remedies=ON_EXISTING):
        write_table(tmp_path / "t", events(), commit=CommitOptions(txn=("app", 7)))


def test_ignore_keeps_a_table_or_creates_it(tmp_path: Path):
    assert write_table(tmp_path / "t", events(), mode="ignore").version == 0
    before = list_files(tmp_path)
    assert write_table(tmp_path / "t", events("4"), mode="ignore").version is None
    assert list_files(tmp_path) == before


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mode", "replace"),
        ("schema_mode", "replace"),
        ("shredding", "all"),
    ],
)
def test_an_invalid_option_is_rejected_before_files_are_written(option: str, value: Any, tmp_path: Path):
    write_table(tmp_path / "t", events())
    before = list_files(tmp_path)
    with pytest.raises(ValueError, match=option):
        write_table(tmp_path / "t", events(), **{"mode": "append", option: value})
    assert list_files(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "option", "value"),
    [
        (JsonOptions, "on_invalid", "skip"),
        (JsonOptions, "floats", "float"),
        (JsonOptions, "duplicate_keys", "first"),
        (FileOptions, "compression", "brotli"),
        (FileOptions, "numeric", "lax"),
        (FileOptions, "target_file_size", 0),
        (FileOptions, "max_variant_stats_paths", -1),
        (CommitOptions, "txn", ("app",)),
        (CommitOptions, "metadata", "\ud800"),
    ],
)
def test_options_reject_a_value_out_of_range(options: type[Any], option: str, value: Any):
    with pytest.raises(ValueError, match=option) as raised:
        options(**{option: value})
    assert not isinstance(raised.value, TypeError)


@pytest.mark.parametrize("options", [{"on_invalid": "reject"}, {"rejects": "r"}])
def test_rejects_and_on_invalid_reject_require_each_other(options: dict[str, Any]):
    with pytest.raises(ValueError, match="rejects requires on_invalid='reject'"):
        JsonOptions(**options)
    with pytest.raises(ValueError, match="rejects requires on_invalid='reject'"):
        read_json("-", **options)


def test_the_options_of_read_json_apply_unless_the_write_has_its_own(tmp_path: Path):
    def lines() -> Any:
        return read_json(BytesIO(b'{"n": 1.5}\n{\n'), on_invalid="null", floats="double")

    result = write_table(tmp_path / "t", lines())
    assert (result.rows, result.invalid) == (2, 1)
    values = read_table(tmp_path / "t").to_table()["value"].to_pylist()
    found = [None if value is None else Variant(**value).to_python() for value in values]
    assert found == [{"n": 1.5}, None]
    assert isinstance(found[0]["n"], float)
    with pytest.raises(InvalidJsonError):
        write_table(tmp_path / "t", lines(), mode="append", json=JsonOptions())


# Accepted data.


class Stream:
    """Any object with an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table: Any = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        events(),
        events().to_batches()[0],
        events().to_reader(),
        Stream(events()),
        pa.chunked_array(
            [
                pa.StructArray.from_arrays(
                    events().combine_chunks().columns and [pa.array([0, 1, 2]), pa.array(EVENTS)],
                    ["id", "event"],
                )
            ]
        ),
        pa.table({"id": [0, 1, 2], "event": pa.array(EVENTS, pa.large_string())}),
        pa.table({"id": [0, 1, 2], "event": pa.array(EVENTS, pa.string_view())}),
        pa.table({"id": [0, 1, 2], "event": pa.array(EVENTS).dictionary_encode()}),
        pa.table({"id": [0, 1, 2], "event": dictionary_of_views(EVENTS)}),
        pa.table({"id": [0, 1, 2], "event": pc.run_end_encode(pa.array(EVENTS))}),
        pa.table({"id": [0, 1, 2], "event": parse_json(EVENTS)}),
    ],
    ids=[
        "Table",
        "RecordBatch",
        "RecordBatchReader",
        "any stream",
        "chunks of structs",
        "large text",
        "text views",
        "dictionary",
        "dictionary of views",
        "run-end encoding",
        "Variants",
    ],
)
def test_arrow_data_of_every_kind_is_written(data: Any, tmp_path: Path):
    write_table(tmp_path / "t", data, variant_columns=["event"])
    assert texts(tmp_path / "t") == ['{"n":1,"type":"buy"}', '{"n":2,"type":"view"}', '{"n":"three"}']


@given(st.data(), st.integers(0, 3), st.integers(0, 5))
def test_values_of_every_layout_of_arrow_come_back(data: Any, depth: int, count: int):
    found = data.draw(arrow_rows(depth, count))
    with TemporaryDirectory() as folder:
        write_table(folder, pa.table({"c": found.array}))
        assert read_table(folder).to_table()["c"].to_pylist() == found.values


@pytest.mark.parametrize("arrow_type", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_named_as_variants_are_json_text(arrow_type: pa.DataType, tmp_path: Path):
    data = pa.table({"event": pa.array([b'{"a":"\xc3\xa4"}', None], pa.binary()).cast(arrow_type)})
    write_table(tmp_path / "t", data, variant_columns=["event"])
    assert texts(tmp_path / "t") == ['{"a":"ä"}', None]
    damaged = pa.table({"event": [b'"\xff"']})
    with raises_at(InvalidJsonError, r"^row 0, column 'event': byte 2 of the text: ", row=0, column="event"):
        write_table(tmp_path / "t", damaged, mode="append", variant_columns=["event"])


def test_the_result_of_a_duckdb_query_is_written(tmp_path: Path):
    query = duckdb.sql("select i as id, '{\"n\":' || i || '}' as event from range(3) t(i)")
    write_table(tmp_path / "t", query, variant_columns=["event"])
    assert texts(tmp_path / "t") == ['{"n":0}', '{"n":1}', '{"n":2}']


def sparks_order(*values: str | None) -> pa.Array:
    """Return Variants in the layout of Spark: `value` first, and null children in a null row."""
    parsed = parse_json(list(values))
    children = [
        pa.array(
            [
                None if text is None else part
                for text, part in zip(values, parsed.field(name).to_pylist(), strict=True)
            ],
            pa.binary(),
        )
        for name in ("value", "metadata")
    ]
    return pa.StructArray.from_arrays(children, ["value", "metadata"], mask=parsed.is_null())


def test_variants_in_sparks_order_with_null_rows_are_written(tmp_path: Path):
    data = pa.table({"id": [0, 1, 2], "event": sparks_order('{"a":1}', None, "null")})
    write_table(tmp_path / "t", data, variant_columns=["event"])
    assert texts(tmp_path / "t") == ['{"a":1}', None, "null"]
    write_table(tmp_path / "t", data, mode="append")
    assert len(rows(tmp_path / "t", where="event is null")) == 2


def test_the_result_of_read_table_can_be_written(tmp_path: Path):
    write_table(tmp_path / "1", events())
    write_table(tmp_path / "2", read_table(tmp_path / "1"))
    assert rows(tmp_path / "2") == rows(tmp_path / "1")
    assert load_snapshot(tmp_path / "2").schema == load_snapshot(tmp_path / "1").schema


def test_ordinary_columns_of_every_type_come_back(tmp_path: Path):
    moment = datetime(2024, 2, 29, 12, 30, 0, 123456)
    data = pa.table(
        {
            "id": pa.array([0, 1], pa.int32()),
            "byte": pa.array([-128, None], pa.int8()),
            "short": pa.array([32767, None], pa.int16()),
            "float": pa.array([1.5, None], pa.float32()),
            "double": pa.array([1e300, None]),
            "boolean": pa.array([True, None]),
            "text": pa.array(["\u00e9", None]),
            "binary": pa.array([b"\xff", None]),
            "decimal": pa.array([Decimal("-12345.67"), None], pa.decimal128(20, 2)),
            "date": pa.array([date(1969, 12, 31), None]),
            "timestamp": pa.array([moment.replace(tzinfo=timezone.utc), None], pa.timestamp("us", "UTC")),
            "ntz": pa.array([moment, None], pa.timestamp("us")),
            "list": pa.array([[1, None], None], pa.list_(pa.int64())),
            "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array(
                [{"x": 1, "y": None}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])
            ),
        }
    )
    write_table(tmp_path / "t", data)
    read = read_table(tmp_path / "t").to_table()
    assert read.to_pylist() == data.to_pylist()
    assert read.schema.types == data.schema.types


@pytest.mark.parametrize("shredding", ["infer", None])
@pytest.mark.parametrize("texts_", [[], ["1"], [None], [None, None, None], ["null"]], ids=str)
def test_few_rows_or_none_or_only_null_are_a_table(texts_: list[str | None], shredding: Any, tmp_path: Path):
    data = pa.table({"event": pa.array(texts_, pa.json_())})
    result = write_table(tmp_path / "t", data, shredding=shredding)
    assert (result.version, result.rows, len(result.files)) == (0, len(texts_), min(len(texts_), 1))
    assert texts(tmp_path / "t") == texts_


def test_an_append_without_rows_commits_nothing(tmp_path: Path):
    write_table(tmp_path / "t", events())
    before = list_files(tmp_path)
    assert write_table(tmp_path / "t", events().slice(0, 0), mode="append").version is None
    assert list_files(tmp_path) == before


def test_an_overwrite_without_rows_commits_what_it_removes(tmp_path: Path):
    no_rows = pa.table({"p": ["a"], "n": [1]}).slice(0, 0)
    write_table(tmp_path / "t", pa.table({"p": ["a", "b"], "n": [1, 2]}), partition_by="p")
    for where, version in [("p = 'c'", None), ("n > 2", None), ("n > 1", 1), ("n > 1", None)]:
        assert write_table(tmp_path / "t", no_rows, mode="overwrite", where=where).version == version
    assert write_table(tmp_path / "t", no_rows, mode="overwrite").version == 2
    before = list_files(tmp_path)
    assert write_table(tmp_path / "t", no_rows, mode="overwrite").version is None
    changed = no_rows.append_column("m", pa.array([], pa.int64()))
    assert list_files(tmp_path) == before
    assert write_table(tmp_path / "t", changed, mode="overwrite", schema_mode="overwrite").version == 3


class Exported:
    """An object with nothing but the Arrow C data interface."""

    def __init__(self, array: Any) -> None:
        self.__arrow_c_array__ = array.__arrow_c_array__


class Streamed:
    def __init__(self, array: Any) -> None:
        self.__arrow_c_stream__ = pa.chunked_array([array]).__arrow_c_stream__


NULL_ROW = pa.array([{"id": 1}, None])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (None, "the data: expected an object with __arrow_c_stream__ or __arrow_c_array__ .*, got None"),
        (
            "events.txt",
            "the data: expected rows, or the path of a folder or a JSON, CSV or Parquet file, got 'ev",
        ),
        ("missing.ndjson", "file not found: missing.ndjson"),
        (object(), "got object"),
        (Exported(pa.array([1])), r"cannot read .*Exported as columns: .*non-struct type int64"),
        (Streamed(pa.array([1])), r"cannot read .*Streamed as columns: .*non-struct type int64"),
        (Exported(NULL_ROW), r"cannot read .*Exported as columns: .*null count"),
        (Streamed(NULL_ROW), r"the data has rows that are null instead of a struct \(.*\): drop them"),
        (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            r"the data: cannot read .*DataFrame as columns: Duplicate column names found: \['a', 'a'\]$",
        ),
        (
            pd.DataFrame({"a": [1, "x"]}),
            r"column a with type object: Could not convert 'x' .*: name the column in variant_columns",
        ),
        (
            pd.DataFrame({"a": [1j]}),
            "DataFrame as columns: Conversion failed for column a with type complex128: Unsupported numpy",
        ),
        (
            pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}),
            "the data: cannot read the Polars column 'a' of type Object: convert it to another type$",
        ),
    ],
    ids=[
        *("None", "text", "path", "object", "array", "stream", "null row", "null row in a stream"),
        *("two columns of one name", "mixed objects", "complex numbers", "Polars objects"),
    ],
)
def test_data_that_is_not_arrow_data_is_rejected(data: Any, sentence: str, tmp_path: Path):
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        write_table(tmp_path / "t", data)
    assert list_files(tmp_path) == set()


def test_a_failing_stream_leaves_no_files(tmp_path: Path):
    def batches() -> Any:
        yield from events().to_batches()
        raise ValueError("the source broke")

    reader = pa.RecordBatchReader.from_batches(events().schema, batches())
    with pytest.raises(ValueError, match=r"^the source broke$"):
        write_table(tmp_path / "t", reader, shredding=None)
    assert list_files(tmp_path) == set()


def test_a_failing_scan_raises_its_own_error(tmp_path: Path):
    write_table(tmp_path / "a", [{"v": {"n": 1}}, {"v": {"n": "x"}}], variant_columns=["v"])
    scan = read_table(tmp_path / "a", columns=["v:n::int as n"])
    with pytest.raises(CastError, match='cannot cast "x"') as caught:
        write_table(tmp_path / "b", scan)
    assert (caught.value.row, caught.value.path) == (1, "$['n']")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ('"n\n"\n', 1, "column 3: a string is not closed: pass on_invalid"),
        ('{"n": 1},\n', 1, "column 9: something follows the value: pass on_invalid"),
        ('{"n": 1}\n{\n', 2, "column 2: an object needs a key in quotes here: pass on_invalid"),
        ('[{"n": 1.}]', 1, "column 10: a number needs a digit after its point: pass on_invalid"),
    ],
)
def test_an_invalid_value_is_rejected_with_a_remedy(tmp_path: Path, content: str, line: int, reason: str):
    (tmp_path / "a.json").write_text(content)
    with raises_at(InvalidJsonError, reason, line=line):
        write_table(tmp_path / "t", tmp_path / "a.json")


def test_invalid_json_in_a_file_that_is_passed_by_path_has_its_line(tmp_path: Path):
    file, rejects = tmp_path / "events.ndjson", tmp_path / "rejects.ndjson"
    file.write_text('{"n": 1}\n\n{"n"\n')
    with raises_at(InvalidJsonError, "a key needs a colon", file=str(file), line=3):
        write_table(tmp_path / "t", file)
    result = write_table(tmp_path / "t", file, json=JsonOptions(on_invalid="reject", rejects=rejects))
    assert (result.rows, result.invalid) == (1, 1)
    (reject,) = (json.loads(line) for line in rejects.read_text().splitlines())
    assert (reject["file"], reject["line"], reject["text"]) == (str(file), 3, '{"n"')


# Partitions.

PARTITIONS = [
    None,
    "",
    "plain",
    "a/b",
    "a=b",
    "50%",
    "%25",
    "a b",
    "\u00e9\u20ac",
    "a:b",
    "#?",
    "__",
    "..",
    '"',
    "\\",
]


def test_text_partitions_of_any_kind_come_back_here_and_in_deltalake(tmp_path: Path):
    data = pa.table({"id": range(len(PARTITIONS)), "p": pa.array(PARTITIONS, pa.string())})
    result = write_table(tmp_path / "t", data, partition_by="p")
    # PROTOCOL.md, Partition Value Serialization: an empty string is null.
    expected = [value or None for value in PARTITIONS]
    assert [row["p"] for row in rows(tmp_path / "t")] == expected
    read = DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("id")
    assert read.column("p").to_pylist() == expected
    assert result.rows == len(PARTITIONS)
    assert len(result.files) == len(set(expected))
    assert all((tmp_path / "t" / file.path).is_file() for file in result.files)
    assert all(len(Path(file.path).parts) == 2 for file in result.files)


def test_partition_values_are_strings_of_the_protocol(tmp_path: Path):
    data = pa.table(
        {
            "id": [0, 1],
            "day": pa.array([date(2024, 1, 2), None]),
            "flag": [True, False],
            "number": pa.array([Decimal("1.50"), Decimal("-2.00")], pa.decimal128(5, 2)),
            "at": pa.array([datetime(2024, 1, 2, 3, 4, 5, 678), None], pa.timestamp("us", "UTC")),
        }
    )
    write_table(tmp_path / "t", data, partition_by=["day", "flag", "number", "at"])
    values = [added["partitionValues"] for added in read_actions(tmp_path / "t", "add")]
    assert sorted(values, key=str) == [
        {"day": "2024-01-02", "flag": "true", "number": "1.50", "at": "2024-01-02T03:04:05.000678Z"},
        {"day": None, "flag": "false", "number": "-2.00", "at": None},
    ]
    assert rows(tmp_path / "t") == data.to_pylist()
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("id").to_pylist() == data.to_pylist()


def test_partition_columns_are_not_in_the_files(tmp_path: Path):
    data = events().append_column("p", pa.array(["x", "y", "x"]))
    result = write_table(tmp_path / "t", data, partition_by=["p"])
    assert sorted(file.path.split("/")[0] for file in result.files) == ["p=x", "p=y"]
    for file in result.files:
        assert pq.ParquetFile(tmp_path / "t" / file.path).schema_arrow.names == ["id", "event"]
    (null_count,) = {tuple(file.stats.null_count) for file in result.files}
    assert null_count == ("id", "event")


def test_many_partitions_are_written_whatever_their_order(tmp_path: Path):
    data = pa.table({"id": range(1000), "p": [number % 150 for number in range(1000)]})
    write_table(tmp_path / "t", data, partition_by="p")
    assert rows(tmp_path / "t") == data.to_pylist()


def test_fewer_partitions_are_open_if_their_rows_need_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each open file of values of 1 MiB counts as at least 8 MiB: two may be open at a time."""
    open_files: list[int] = []

    def add(files: PartitionedFiles[Any], *arguments: Any) -> None:
        real_add(files, *arguments)
        open_files.append(len(files.open))

    real_add = PartitionedFiles.add
    monkeypatch.setattr(PartitionedFiles, "add", add)
    monkeypatch.setattr(partitions, "OPEN_PARTITION_BYTES", (20 << 20) // partitions.MAX_OPEN_PARTITIONS)
    lengths, numbers = range(1 << 20, (1 << 20) + 12), [number // 2 % 3 for number in range(12)]
    texts = pa.array([f'"{"x" * length}"' for length in lengths], pa.json_())
    data = pa.table({"id": range(12), "p": numbers, "event": texts})
    result = write_table(tmp_path / "t", data.to_reader(1), partition_by="p")
    assert max(open_files) == 2
    assert sorted((file.path[:3], file.rows) for file in result.files) == [
        ("p=0", 4),
        ("p=1", 2),
        ("p=1", 2),
        ("p=2", 4),
    ]
    read = read_table(tmp_path / "t", columns={"id": "id", "p": "p", "length": "length(event::string)"})
    assert read.to_table().sort_by("id").to_pylist() == [
        {"id": number, "p": numbers[number], "length": lengths[number]} for number in range(12)
    ]


@pytest.mark.parametrize("partition_by", [["event"], ["nothing"], ["id", "id"], ["id", "event"]])
def test_a_variant_and_a_missing_column_cannot_be_partitions(partition_by: list[str], tmp_path: Path):
    with raises_at(SchemaError, column=partition_by[-1]):
        write_table(tmp_path / "t", events(), partition_by=partition_by)
    assert list_files(tmp_path) == set()


def test_an_append_cannot_change_partitions_or_properties(tmp_path: Path):
    write_table(tmp_path / "t", events(), partition_by="id")
    before = list_files(tmp_path)
    with pytest.raises(ValueError, match="partition"):
        write_table(tmp_path / "t", events(), mode="append", partition_by=["event"])
    with pytest.raises(ValueError, match="cannot set the property"):
        write_table(tmp_path / "t", events(), mode="append", configuration={"delta.appendOnly": "true"})
    assert list_files(tmp_path) == before
    assert write_table(tmp_path / "t", events(), mode="append", partition_by="id").version == 1


# Schemas.


def test_a_new_column_is_rejected_unless_the_schema_is_merged(tmp_path: Path):
    write_table(tmp_path / "t", events())
    before = list_files(tmp_path)
    wider = events("1").append_column("more", pa.array(["x"]))
    with raises_at(SchemaError, column="more"):
        write_table(tmp_path / "t", wider, mode="append")
    assert list_files(tmp_path) == before
    write_table(tmp_path / "t", wider, mode="append", schema_mode="merge")
    assert [row["more"] for row in rows(tmp_path / "t")].count("x") == 1
    assert [field.name for field in load_snapshot(tmp_path / "t").schema.fields] == ["id", "event", "more"]


def test_a_variant_column_added_to_a_table_upgrades_its_protocol(tmp_path: Path):
    """Legacy versions become the equivalent features; an append does not set the property."""
    write_table(tmp_path / "t", pa.table({"id": [7]}))
    write_table(tmp_path / "t", events(), mode="append", schema_mode="merge")
    protocol = read_actions(tmp_path / "t", "protocol")[1]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["variantType"]
    assert sorted(protocol["writerFeatures"]) == ["appendOnly", "invariants", "variantType"]
    assert [row["event"] for row in rows(tmp_path / "t")][-1] is None
    assert rows(tmp_path / "t", where="event is null")[0]["id"] == 7
    added = read_actions(tmp_path / "t", "add")[1]["path"]
    event = pq.ParquetFile(tmp_path / "t" / added).schema_arrow.field("event").type
    assert {part.name for part in event} == {"metadata", "value"}


def test_columns_are_found_by_name_and_absent_ones_are_null(tmp_path: Path):
    write_table(tmp_path / "t", events())
    turned = events("4").select(["event", "id"])
    write_table(tmp_path / "t", turned, mode="append")
    write_table(tmp_path / "t", pa.table({"id": [99]}), mode="append")
    assert rows(tmp_path / "t")[-1] == {"id": 99, "event": None}
    assert len(rows(tmp_path / "t")) == 5


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"id": ["text"]}),
        pa.table({"id": [1.5]}),
        pa.table({"event": pa.array([1])}),
        pa.table({"id": pa.array([2**63], pa.uint64())}),
    ],
    ids=["text for a number", "a fraction for an integer", "a number for a Variant", "beyond the range"],
)
def test_data_that_does_not_fit_is_rejected_with_the_column(data: pa.Table, tmp_path: Path):
    write_table(tmp_path / "t", events())
    before = list_files(tmp_path)
    with raises_at(SchemaError, column=data.column_names[0]):
        write_table(tmp_path / "t", data, mode="append")
    assert list_files(tmp_path) == before


def test_json_text_becomes_a_variant_where_the_table_has_one_only_when_it_is_marked(tmp_path: Path):
    write_table(tmp_path / "t", events())
    unmarked = pa.table({"id": [1], "event": ["{}"]})
    with raises_at(SchemaError, column="event"):
        write_table(tmp_path / "t", unmarked, mode="append")
    write_table(tmp_path / "t", unmarked, mode="append", variant_columns=["event"])
    assert len(rows(tmp_path / "t")) == 4


def test_variant_columns_must_be_in_the_data(tmp_path: Path):
    with pytest.raises((ValueError, SchemaError), match="nothing"):
        write_table(tmp_path / "t", events(), variant_columns=["nothing"])


def test_a_null_in_a_not_null_column_is_rejected(tmp_path: Path):
    write_table(tmp_path / "t", events())
    schema = json.loads(read_actions(tmp_path / "t", "metaData")[0]["schemaString"])
    schema["fields"][1]["nullable"] = False
    edit_log(tmp_path / "t", "metaData", schemaString=json.dumps(schema))
    before = list_files(tmp_path)
    with raises_at(SchemaError, column="event"):
        write_table(tmp_path / "t", events("1", None), mode="append")
    assert list_files(tmp_path) == before
    # A Variant null is not SQL NULL (PROTOCOL.md, "Variant Data Type").
    write_table(tmp_path / "t", events("null"), mode="append")


# Files and shredding.


def shredded_names(table: Path) -> list[list[str]]:
    """Return the members of the Variant group of every file."""
    paths = [table / added["path"] for added in read_actions(table, "add")]
    return [[part.name for part in pq.ParquetFile(path).schema_arrow.field("event").type] for path in paths]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_a_table_with_shredding_has_typed_values_and_one_without_has_none(tmp_path: Path):
    write_table(tmp_path / "1", events())
    write_table(tmp_path / "2", events(), shredding=None)
    write_table(tmp_path / "3", events(), configuration={"delta.enableVariantShredding": "false"})
    assert sorted(shredded_names(tmp_path / "1")[0]) == ["metadata", "typed_value", "value"]
    # PROTOCOL.md, "Variant data in Parquet": exactly these two.
    assert (
        sorted(shredded_names(tmp_path / "2")[0])
        == sorted(shredded_names(tmp_path / "3")[0])
        == ["metadata", "value"]
    )
    assert read_actions(tmp_path / "2", "metaData")[0]["configuration"] == {}
    assert rows(tmp_path / "1") == rows(tmp_path / "2") == rows(tmp_path / "3")


def test_a_shredding_schema_is_followed(tmp_path: Path):
    schema = ShreddingSchema.of({"n": pa.int64()})
    result = write_table(tmp_path / "t", events(), shredding=schema)
    (path,) = result.files[0].variants["event"]
    assert (path.path, path.type, path.typed, path.values) == (("n",), pa.int64(), 2, 1)
    assert texts(tmp_path / "t") == ['{"n":1,"type":"buy"}', '{"n":2,"type":"view"}', '{"n":"three"}']


def test_a_shredding_schema_is_rejected_if_shredding_is_disabled(tmp_path: Path):
    write_table(tmp_path / "t", events(), shredding=None)
    before = list_files(tmp_path)
    with raises_at(ShreddingNotEnabledError, remedies=(("shredding", None),)):
        write_table(tmp_path / "t", events(), mode="append", shredding=ShreddingSchema.of({"n": pa.int64()}))
    assert list_files(tmp_path) == before
    write_table(tmp_path / "t", events(), mode="append")
    assert [sorted(names) for names in shredded_names(tmp_path / "t")] == [["metadata", "value"]] * 2


def test_a_property_without_its_feature_is_rejected(tmp_path: Path):
    """The property is true, but the protocol does not list variantShredding (docs/audit-rules.md, H4)."""
    write_table(tmp_path / "t", events(), shredding=None)
    edit_log(tmp_path / "t", "metaData", configuration={"delta.enableVariantShredding": "true"})
    with raises_at(ProtocolError, "variantShredding", rule="H4"):
        write_table(tmp_path / "t", events(), mode="append")


@pytest.mark.parametrize("shredding", ["infer", ShreddingSchema.of({"n": pa.int64()})])
def test_files_are_closed_when_they_reach_their_size(tmp_path: Path, shredding: Any):
    import random

    source = random.Random(7)
    batches = [
        events(
            *(json.dumps({"text": source.randbytes(200).hex(), "n": n}) for n in range(1000))
        ).to_batches()[0]
        for _ in range(40)
    ]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    result = write_table(
        tmp_path / "t",
        reader,
        files=FileOptions(target_file_size=2_000_000),
        shredding=shredding,
    )
    assert len(result.files) >= 3
    assert result.rows == sum(file.rows for file in result.files) == 40_000
    assert read_table(tmp_path / "t", columns=[]).to_table().num_rows == 40_000


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "none"])
def test_every_compression_is_read_back(compression: Any, tmp_path: Path):
    result = write_table(tmp_path / "t", events(), files=FileOptions(compression=compression))
    file = pq.ParquetFile(tmp_path / "t" / result.files[0].path)
    expected = {"none": "UNCOMPRESSED"}.get(compression, compression.upper())
    assert file.metadata.row_group(0).column(0).compression in (expected, f"{expected}_RAW")
    assert len(rows(tmp_path / "t")) == 3


# Invalid JSON.

BAD = {
    "malformed": '{"a":',
    "two values": "1 2",
    "duplicate names": '{"a":1,"a":2}',
    "too deep": "[" * 2000 + "]" * 2000,
    "empty": "",
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("shredding", ["infer", None])
def test_invalid_json_is_an_error_with_row_and_column_and_leaves_no_files(
    kind: str, shredding: Any, tmp_path: Path
):
    with raises_at(InvalidJsonError, r"byte \d+ of the text: \S", row=2, column="event"):
        write_table(tmp_path / "t", events("1", "2", BAD[kind], "3"), shredding=shredding)
    assert list_files(tmp_path) == set()


@pytest.mark.parametrize("kind", BAD)
def test_bad_text_becomes_null_and_is_counted(kind: str, tmp_path: Path):
    result = write_table(
        tmp_path / "t", events("1", BAD[kind], None, "3", BAD[kind]), json=JsonOptions(on_invalid="null")
    )
    assert (result.rows, result.invalid) == (5, 2)
    assert texts(tmp_path / "t") == ["1", None, None, "3", None]


def test_the_last_of_two_fields_may_win(tmp_path: Path):
    write_table(tmp_path / "t", events('{"a":1,"a":2}'), json=JsonOptions(duplicate_keys="last"))
    assert texts(tmp_path / "t") == ['{"a":2}']


def test_rejects_have_row_byte_and_reason(tmp_path: Path):
    data = events("1", '{"a":1,"a":2}', "2", '{"b"}')
    result = write_table(
        tmp_path / "t", data, json=JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects.ndjson")
    )
    assert (result.rows, result.invalid) == (2, 2)
    assert rows(tmp_path / "t") == [{"id": 0, "event": "1"}, {"id": 2, "event": "2"}]
    kept = [json.loads(line) for line in (tmp_path / "rejects.ndjson").read_text().splitlines()]
    assert [(each["row"], each["byte"], each["text"]) for each in kept] == [
        (1, 8, '{"a":1,"a":2}'),
        (3, 5, '{"b"}'),
    ]
    assert kept[0]["reason"] == 'an object has two fields called "a"'


def test_duplicate_names_are_an_error_that_names_the_option(tmp_path: Path):
    text, last = '{"a":1,"b":{"c":1,"c":2}}', ("duplicate_keys", "last")
    (tmp_path / "rows.ndjson").write_text(text)
    for data in (events(text), read_json(tmp_path / "rows.ndjson", column="event")):
        with pytest.raises(
            InvalidJsonError, match="two fields called \"c\": pass duplicate_keys='last' or on_"
        ) as e:
            write_table(tmp_path / "t", data)
        assert e.value.remedies[0] == last
    with pytest.raises(InvalidJsonError) as caught:
        parse_json([text])
    assert caught.value.remedies == (last,)
    with pytest.raises(InvalidJsonError) as caught:
        parse_json(["{"])
    assert not caught.value.remedies


@pytest.mark.parametrize("mode", ["none", "name"])
def test_rejects_have_the_other_columns_of_their_rows(tmp_path: Path, mode: str):
    others = {
        "id": pa.array([6, 7]),
        "day": ["a", "b"],
        "price": pa.array([None, Decimal("1.50")], pa.decimal128(9, 2)),
        "at": pa.array([None, datetime(2026, 1, 2, tzinfo=timezone.utc)]),
        "tags": pa.array([[], ["a", None]], pa.list_(pa.string())),
        "raw": pa.array([b"", b"\x00\xff"]),
        "more": [{"a": 0}, {"a": 1}],
    }
    write_table(
        tmp_path / "t",
        pa.table({"event": pa.array(["1", "{"], pa.json_()), **others}),
        variant_columns=["more"],
        partition_by="day",
        configuration={"delta.columnMapping.mode": mode},
        json=JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects.ndjson"),
    )
    (kept,) = [json.loads(line) for line in (tmp_path / "rejects.ndjson").read_text().splitlines()]
    assert (kept["row"], kept["column_name"]) == (1, "event")
    assert kept["columns"] == {
        "id": 7,
        "day": "b",
        "price": "1.50",
        "at": "2026-01-02T00:00:00Z",
        "tags": ["a", None],
        "raw": "AP8=",
        "more": '{"a":1}',
    }


def test_rejects_of_files_have_file_line_and_column(tmp_path: Path):
    file = tmp_path / "events.ndjson"
    file.write_bytes(b'1\n\n{"a":}\n"\xff"\n"' + b"x" * 200 + b'"\n2\n')
    lines = read_json(file, column="event", max_value_bytes=100)
    result = write_table(
        tmp_path / "t", lines, json=JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects.ndjson")
    )
    assert (result.rows, result.invalid) == (2, 3)
    assert texts(tmp_path / "t") == ["1", "2"]
    kept = [json.loads(line) for line in (tmp_path / "rejects.ndjson").read_text().splitlines()]
    assert [(each["file"], each["line"], each["column"]) for each in kept[:2]] == [
        (str(file), 3, 6),
        (str(file), 4, 2),
    ]
    assert kept[1]["text"] == '"\\xff"'
    assert (kept[2]["line"], kept[2]["reason"]) == (5, "the value has more than 100 bytes")
    assert all(each["reason"] for each in kept)


def test_rejects_are_appended_to_an_existing_file(tmp_path: Path):
    for mode in ("error", "append"):
        write_table(
            tmp_path / "t",
            events("1", "{"),
            mode=mode,
            json=JsonOptions(on_invalid="reject", rejects=tmp_path / "r"),
        )
    assert len((tmp_path / "r").read_text().splitlines()) == 2


def test_a_write_without_rejects_does_not_create_a_rejects_file(tmp_path: Path):
    write_table(tmp_path / "t", events(), json=JsonOptions(on_invalid="reject", rejects=tmp_path / "r"))
    assert not (tmp_path / "r").exists()


def test_the_rows_of_rejects_are_those_of_the_data_in_partitioned_tables(tmp_path: Path):
    data = events("1", "{", "2", "}").append_column("p", pa.array(["x", "y", "x", "y"]))
    options: Any = {"partition_by": "p", "json": JsonOptions("reject", tmp_path / "r")}
    result = write_table(tmp_path / "t", data, **options)
    assert (result.rows, result.invalid, len(result.files)) == (2, 2, 1)
    kept = [json.loads(line) for line in (tmp_path / "r").read_text().splitlines()]
    assert [each["row"] for each in kept] == [1, 3]
    assert list_files(tmp_path / "t", "*.json") == {"_delta_log/00000000000000000000.json"}
    assert list_files(tmp_path / "t", "*.parquet") == {result.files[0].path}


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        (b"\x01\x00\x00", b"\x0c"),
        (b"\x01\x00", b"\x00"),
        (b"\x01\x00\x00", b""),
        (b"\x01\x00\x00", b"\x05\xff"),
    ],
    ids=["cut value", "cut metadata", "no value", "no UTF-8"],
)
@pytest.mark.parametrize("shredding", ["infer", None])
def test_malformed_variants_are_rejected(metadata: bytes, value: bytes, shredding: Any, tmp_path: Path):
    parts = [pa.array([b"\x01\x00\x00", metadata]), pa.array([b"\x00", value])]
    data = pa.table({"event": pa.StructArray.from_arrays(parts, ["metadata", "value"])})
    with raises_at(MalformedVariantError, row=1):
        write_table(tmp_path / "t", data, variant_columns=["event"], shredding=shredding)
    assert list_files(tmp_path) == set()


def test_malformed_nested_variants_are_rejected(tmp_path: Path):
    parts = [pa.array([b"\x01\x00\x00"] * 2), pa.array([b"\x00", b"\x0c"])]
    variants = pa.StructArray.from_arrays(parts, ["metadata", "value"])
    field = pa.field("v", variants.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    data = pa.table({"s": pa.StructArray.from_arrays([variants], fields=[field])})
    with raises_at(MalformedVariantError, row=1, column="s.v"):
        write_table(tmp_path / "t", data)
    assert list_files(tmp_path) == set()


def test_json_text_within_another_column_is_rejected(tmp_path: Path):
    text = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"]))
    data = pa.table({"s": pa.StructArray.from_arrays([text], ["v"])})
    with raises_at(SchemaError, r"s\.v.* is JSON text", column="s.v"):
        write_table(tmp_path / "t", data)
    assert list_files(tmp_path) == set()


# Table features.


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.usefixtures("small_files_are_shredded")
def test_mapped_columns_have_other_names_in_files_partitions_and_statistics(mode: str, tmp_path: Path):
    """PROTOCOL.md, "Column Mapping": names inside a Variant are not mapped."""
    data = events().append_column("p", pa.array(["x", "x", "x"]))
    data = data.append_column("s", pa.array([{"x": 1}] * 3))
    configuration = {"delta.columnMapping.mode": mode}
    write_table(tmp_path / "t", data, partition_by="p", configuration=configuration)
    write_table(
        tmp_path / "t", data.append_column("q", pa.array([1, 2, 3])), mode="append", schema_mode="merge"
    )
    snapshot = load_snapshot(tmp_path / "t")
    physical = {
        field.name: field.metadata["delta.columnMapping.physicalName"] for field in snapshot.schema.fields
    }
    ids = {field.name: field.metadata["delta.columnMapping.id"] for field in snapshot.schema.fields}
    assert ids == {"id": 1, "event": 2, "p": 3, "s": 4, "q": 6}
    assert snapshot.properties["delta.columnMapping.maxColumnId"] == "6"
    added = read_actions(tmp_path / "t", "add")[1]
    assert added["partitionValues"] == {physical["p"]: "x"}
    stats = json.loads(added["stats"])
    assert set(stats["nullCount"]) == {physical[name] for name in ("id", "event", "s", "q")}
    file = pq.ParquetFile(tmp_path / "t" / added["path"])
    assert file.schema_arrow.names == [physical[name] for name in ("id", "event", "s", "q")]
    field_ids = [int(field.metadata[b"PARQUET:field_id"]) for field in file.schema_arrow]
    assert field_ids == [1, 2, 4, 6]
    event = file.schema_arrow.field(physical["event"]).type
    assert {part.name for part in event} == {"metadata", "value", "typed_value"}
    found = (
        read_table(tmp_path / "t", columns=["id", "event:n::string as n", "p", "s", "q"])
        .to_table()
        .to_pylist()
    )
    assert sorted(found, key=str)[:2] == [
        {"id": 0, "n": "1", "p": "x", "s": {"x": 1}, "q": 1},
        {"id": 0, "n": "1", "p": "x", "s": {"x": 1}, "q": None},
    ]


def test_in_commit_timestamps_come_first_and_grow(tmp_path: Path):
    configuration = {"delta.enableInCommitTimestamps": "true"}
    write_table(tmp_path / "t", events(), configuration=configuration)
    write_table(tmp_path / "t", events(), mode="append")
    infos = [commit[0]["commitInfo"] for commit in read_log(tmp_path / "t")]
    assert infos[0]["inCommitTimestamp"] < infos[1]["inCommitTimestamp"]
    assert "inCommitTimestamp" in read_actions(tmp_path / "t", "protocol")[0]["writerFeatures"]


def test_row_tracking_numbers_every_row_once(tmp_path: Path):
    configuration = {"delta.enableRowTracking": "true"}
    write_table(tmp_path / "t", events(), configuration=configuration)
    write_table(tmp_path / "t", events("1", "2"), mode="append")
    added = read_actions(tmp_path / "t", "add")
    assert [(each["baseRowId"], each["defaultRowCommitVersion"]) for each in added] == [(0, 0), (3, 1)]
    domain = read_actions(tmp_path / "t", "domainMetadata")[-1]
    assert (domain["domain"], json.loads(domain["configuration"])["rowIdHighWaterMark"]) == (
        "delta.rowTracking",
        4,
    )


def test_an_append_only_table_is_appended_to(tmp_path: Path):
    write_table(tmp_path / "t", events(), configuration={"delta.appendOnly": "true"})
    assert write_table(tmp_path / "t", events(), mode="append").version == 1


def with_features(*names: str) -> dict[str, Any]:
    base = ["variantType", "variantShredding"]
    return {"readerFeatures": base, "writerFeatures": [*base, *names]}


def field_metadata(table: Path, **metadata: Any) -> str:
    schema = json.loads(read_actions(table, "metaData")[0]["schemaString"])
    schema["fields"][0]["metadata"] = metadata
    return json.dumps(schema)


@pytest.mark.parametrize(
    ("feature", "configuration", "metadata", "sentence", "column"),
    [
        ("checkConstraints", {"delta.constraints.positive": "soundex(id) >= ''"}, {}, "positive", None),
        ("generatedColumns", {}, {"delta.generationExpression": "soundex(1)"}, "generation expression", "id"),
        ("identityColumns", {}, {"delta.identity.start": 1}, "identity column", "id"),
        (
            "invariants",
            {},
            {"delta.invariants": '{"expression":{"expression":"soundex(id) > 0"}}'},
            "invariant",
            "id",
        ),
        ("unheardOf", {}, {}, "unheardOf", None),
        ("icebergCompatV1", {"delta.enableIcebergCompatV1": "true"}, {}, "IcebergCompatV1", None),
    ],
)
def test_an_unsupported_feature_is_named_and_rejected_before_files_are_written(
    feature: str,
    configuration: dict[str, str],
    metadata: dict[str, Any],
    sentence: str,
    column: str | None,
    tmp_path: Path,
):
    table = tmp_path / "t"
    write_table(table, events())
    edit_log(table, "protocol", **with_features(feature))
    schema = field_metadata(table, **metadata)
    edit_log(table, "metaData", configuration=configuration, schemaString=schema)
    before = list_files(table)
    with raises_at(UnsupportedFeatureError, f"(?i){sentence}", column=column):
        write_table(table, events(), mode="append")
    assert list_files(table) == before
    assert len(rows(table)) == 3


def test_an_unknown_reader_feature_is_rejected_in_reading_and_writing(tmp_path: Path):
    write_table(tmp_path / "t", events())
    features = ["variantType", "variantShredding", "unheardOf"]
    edit_log(tmp_path / "t", "protocol", readerFeatures=features, writerFeatures=features)
    with pytest.raises(UnsupportedFeatureError, match="unheardOf"):
        write_table(tmp_path / "t", events(), mode="append")
    with pytest.raises(UnsupportedFeatureError, match="unheardOf"):
        read_table(tmp_path / "t")


@pytest.mark.usefixtures("small_files_are_shredded")
def test_preview_names_remain_the_only_names(tmp_path: Path):
    """A table has the preview or the final name of a feature (docs/audit-rules.md, T3 and X9)."""
    write_table(tmp_path / "t", events())
    names = ["variantType-preview", "variantShredding-preview"]
    edit_log(tmp_path / "t", "protocol", readerFeatures=names, writerFeatures=names)
    write_table(tmp_path / "t", events(), mode="append")
    assert len(read_actions(tmp_path / "t", "protocol")) == 1
    assert sorted(shredded_names(tmp_path / "t")[1]) == ["metadata", "typed_value", "value"]


def test_a_folder_with_other_files_can_become_a_table(tmp_path: Path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "notes.txt").write_text("mine")
    write_table(tmp_path / "t", events())
    assert (tmp_path / "t" / "notes.txt").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_an_error_of_this_package(tmp_path: Path):
    (tmp_path / "t").write_text("a file")
    from delta_variant.errors import DeltaVariantError

    with raises_at(DeltaVariantError, "got a file", table=str(tmp_path / "t")):
        write_table(tmp_path / "t", events())
    assert (tmp_path / "t").read_text() == "a file"


APPEND = """
import sys, pyarrow as pa, delta_variant as dv
table, worker = sys.argv[1], int(sys.argv[2])
for number in range(5):
    data = pa.table({"id": [worker * 10 + number], "event": pa.array(['{"n":1}'], pa.json_())})
    dv.write_table(table, data, mode="append")
"""


def start_appending(
    table: Path, worker: int, **options: Any
) -> AbstractContextManager[subprocess.Popen[Any]]:
    return start([sys.executable, "-c", APPEND, str(table), str(worker)], **options)


@pytest.mark.slow
def test_processes_that_append_at_once_lose_nothing(tmp_path: Path):
    write_table(tmp_path / "t", events("0").slice(0, 0))
    with ExitStack() as running:
        workers = [running.enter_context(start_appending(tmp_path / "t", worker)) for worker in range(3)]
        assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    assert [row["id"] for row in rows(tmp_path / "t")] == [*range(5), *range(10, 15), *range(20, 25)]
    assert load_snapshot(tmp_path / "t").version == 15


def create_first(table: Path, data: Any, **options: Any) -> Store:
    """Return the store of a table that another writer creates right before the first commit to it."""
    return commit_first(table, lambda: write_table(table, data, **options))


def assert_files_are_those_of_the_log(table: Path) -> None:
    added = {added["path"] for added in read_actions(table, "add")}
    assert {path for path in list_files(table) if not path.startswith("_delta_log/")} == added


@pytest.mark.parametrize(
    "winner",
    [
        {},
        {"shredding": None},
        {"configuration": {"delta.columnMapping.mode": "name"}},
        {"configuration": {"delta.columnMapping.mode": "id"}},
        {"configuration": {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}},
        {"configuration": {"delta.enableInCommitTimestamps": "true"}},
        {"configuration": {"delta.constraints.positive": "id >= 0"}},
    ],
)
def test_an_append_that_finds_the_table_just_created_adds_its_rows(tmp_path: Path, winner: dict[str, Any]):
    table = tmp_path / "t"
    store = create_first(table, events('{"n":1}', '{"n":"x"}'), **winner)
    own = pa.table({"id": [7, 8], "event": pa.array(['{"n":2.5}', None], pa.json_())})
    # A stream can be read only once.
    result = write_table(store, own.to_reader(), mode="append")
    assert (result.version, result.rows) == (1, 2)
    assert [(row["id"], row["event"]) for row in rows(table)] == [
        (0, '{"n":1}'),
        (1, '{"n":"x"}'),
        (7, '{"n":2.5}'),
        (8, None),
    ]
    assert audit_table(table, data=True).findings == ()
    assert [each["mode"] for each in operation_parameters(table)] == ["ErrorIfExists", "Append"]
    assert_files_are_those_of_the_log(table)


def operation_parameters(table: Path) -> list[dict[str, Any]]:
    return [info["operationParameters"] for info in read_actions(table, "commitInfo")]


def test_an_overwrite_that_finds_the_table_just_created_replaces_its_rows(tmp_path: Path):
    store = create_first(tmp_path / "t", events("1", "2"))
    result = write_table(store, events("3"), mode="overwrite")
    assert (result.version, result.rows, result.rows_deleted) == (1, 1, 2)
    assert texts(tmp_path / "t") == ["3"]
    assert_files_are_those_of_the_log(tmp_path / "t")


def test_an_overwrite_by_a_predicate_keeps_the_other_rows_of_a_table_just_created(tmp_path: Path):
    store = create_first(tmp_path / "t", events("1", "2"))
    write_table(store, events("3"), mode="overwrite", where="id = 0")
    assert texts(tmp_path / "t") == ["3", "2"]


def test_partitions_are_those_of_both_creators(tmp_path: Path):
    data = pa.table({"id": [1, 2], "day": pa.array([date(2026, 1, 1), None])})
    store = create_first(tmp_path / "t", data, partition_by="day")
    assert write_table(store, data, mode="append", partition_by="day").version == 1
    found = [(row["id"], row["day"]) for row in rows(tmp_path / "t")]
    assert found == [(1, date(2026, 1, 1)), (1, date(2026, 1, 1)), (2, None), (2, None)]
    assert_files_are_those_of_the_log(tmp_path / "t")


def test_columns_that_only_the_other_creator_has_are_filled(tmp_path: Path):
    store = create_first(tmp_path / "t", pa.table({"id": [1], "name": ["a"]}))
    write_table(store, pa.table({"id": [2]}), mode="append")
    assert rows(tmp_path / "t") == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


@pytest.mark.parametrize(
    ("winner", "own", "error", "sentence"),
    [
        ({}, {"data": pa.table({"id": ["x"]})}, SchemaError, "id"),
        ({}, {"partition_by": "id"}, ValueError, "the partition columns of the table are"),
        (
            {"configuration": {"delta.constraints.few": "id < 1"}},
            {},
            ConstraintViolationError,
            "^row 1: the row violates the CHECK constraint few",
        ),
    ],
)
def test_rows_that_do_not_fit_a_concurrently_created_table_leave_no_files(
    tmp_path: Path,
    winner: dict[str, Any],
    own: dict[str, Any],
    error: type[Exception],
    sentence: str,
):
    store = create_first(tmp_path / "t", events("1"), **winner)
    with pytest.raises(error, match=sentence):
        write_table(store, **{"data": events("2", "3"), "mode": "append", **own})
    assert load_snapshot(tmp_path / "t").version == 0
    assert_files_are_those_of_the_log(tmp_path / "t")


def test_error_and_ignore_do_not_touch_a_table_just_created(tmp_path: Path):
    with pytest.raises(TableExistsError, match="already"):
        write_table(create_first(tmp_path / "error", events("1")), events("2"))
    store = create_first(tmp_path / "ignore", events("1"))
    assert write_table(store, events("2"), mode="ignore").version is None
    for name in ("error", "ignore"):
        assert texts(tmp_path / name) == ["1"]
        assert_files_are_those_of_the_log(tmp_path / name)


def test_a_batch_that_another_writer_has_just_created_the_table_with_is_not_written_twice(tmp_path: Path):
    store = create_first(tmp_path / "t", events("1"), commit=CommitOptions(txn=("app", 3)))
    assert (
        write_table(store, events("1"), mode="append", commit=CommitOptions(txn=("app", 3))).version is None
    )
    assert texts(tmp_path / "t") == ["1"]
    assert_files_are_those_of_the_log(tmp_path / "t")


def test_invalid_text_is_counted_once_where_the_table_was_just_created(tmp_path: Path):
    store = create_first(tmp_path / "t", events("1"))
    data = {"mode": "append", "json": JsonOptions("reject", tmp_path / "rejects")}
    assert write_table(store, events("2", "{"), **data).invalid == 1
    assert texts(tmp_path / "t") == ["1", "2"]
    assert len((tmp_path / "rejects").read_text("utf-8").splitlines()) == 1


@pytest.mark.slow
def test_processes_that_create_at_once_make_one_table(tmp_path: Path):
    with ExitStack() as running:
        workers = [
            running.enter_context(start_appending(tmp_path / "t", worker, stderr=subprocess.PIPE))
            for worker in range(3)
        ]
        errors = [worker.communicate(timeout=120)[1].decode() for worker in workers]
    assert errors == ["", "", ""]
    assert [row["id"] for row in rows(tmp_path / "t")] == [*range(5), *range(10, 15), *range(20, 25)]
    assert len(read_actions(tmp_path / "t", "metaData")) == 1
    added = {added["path"] for added in read_actions(tmp_path / "t", "add")}
    assert {path for path in list_files(tmp_path / "t") if not path.startswith("_delta_log/")} == added


@pytest.mark.parametrize("name", ["Straße", "größe"])
def test_polars_finds_the_partition_column_in_the_names_of_folders(tmp_path: Path, name: str):
    """Polars does not decode the names, which Spark and deltalake write as they are."""
    rows = [{"id": 1, name: "ü b"}, {"id": 2, name: None}]
    write_table(tmp_path / "t", rows, partition_by=[name])
    assert pl.scan_delta(tmp_path / "t").collect().sort("id").to_dicts() == rows
