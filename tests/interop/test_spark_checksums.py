"""Delta on Spark validates our version checksums, computes the same, and continues them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.tables import load
from pyspark.sql import SparkSession
from support.tables import state_discrepancies

import delta_variant as dv
from delta_variant.log.load import load_snapshot

FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.checkpointInterval": "5",
}


def checksum_path(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.crc"


def read_checksum(table: Path, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(checksum_path(table, version).read_text("utf-8"))
    return fields


def comparable(fields: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Return the named fields without the order of features, transactions and domains."""
    found = {name: fields.get(name) for name in names - {"txnId", "deltaVariant.crc32"}}
    for name in ("setTransactions", "domainMetadata"):
        if name in found:
            found[name] = sorted(found[name], key=str)
    found["protocol"] = {
        name: sorted(value) if isinstance(value, list) else value for name, value in found["protocol"].items()
    }
    return found


def snapshot_of_spark(spark: SparkSession, table: Path) -> Any:
    """Return the latest snapshot of Delta on Spark, without what it cached."""
    delta_log = spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog
    delta_log.clearCache()
    return delta_log.forTable(spark._jsparkSession, str(table)).unsafeVolatileSnapshot()


def checksum_of_spark(spark: SparkSession, table: Path) -> dict[str, Any]:
    """Return the checksum that Delta on Spark computes from the actions of the log."""
    snapshot = snapshot_of_spark(spark, table)
    assert snapshot.checksumOpt().isEmpty()
    snapshot.computedState()
    mapper = spark.sparkContext._jvm.org.apache.spark.sql.delta.util.JsonUtils.mapper()
    fields: dict[str, Any] = json.loads(mapper.writeValueAsString(snapshot.computeChecksum()))
    return fields


def is_valid_for_spark(spark: SparkSession, table: Path) -> bool:
    snapshot = snapshot_of_spark(spark, table)
    assert snapshot.checksumOpt().isDefined()
    context = getattr(snapshot, "validateChecksum$default$1")()
    return bool(snapshot.validateChecksum(context))


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    texts = [json.dumps({"n": number}) for number in numbers]
    return pa.table({"id": pa.array(numbers, pa.int64()), "event": pa.array(texts, pa.json_())})


def change(table: Path) -> Iterator[Any]:
    """Create a table, and change it by each operation that commits."""
    yield dv.write_table(table, rows(0, 6), configuration=FEATURES, name="checked", description="a 'table'")
    yield dv.write_table(table, rows(6, 4), mode="append", commit=dv.CommitOptions(txn=("loader", 3)))
    yield dv.delete(table, "id = 2")
    yield dv.update(table, {"event:u": "id"}, "id in (4, 8)")
    yield dv.merge(table, rows(8, 4), "target.id = source.id").when_matched_update_all().execute()
    yield dv.add_columns(table, {"day": "string"})
    yield dv.set_properties(table, {"own.property": "é"})
    yield dv.optimize(table)
    yield dv.restore(table, 3)
    yield dv.write_table(table, rows(20, 1), mode="append", commit=dv.CommitOptions(txn=("loader", 4)))
    yield dv.delete_all(table)


def test_spark_validates_our_checksums_and_computes_the_same(spark_with_delta: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    for version, result in enumerate(change(table)):
        assert result.version == version
        assert is_valid_for_spark(spark_with_delta, table)
        ours = read_checksum(table, version)
        names = set(ours)
        assert {"numDeletedRecordsOpt", "setTransactions", "domainMetadata", "inCommitTimestampOpt"} <= names
        kept = checksum_path(table, version).read_bytes()
        checksum_path(table, version).unlink()
        theirs = checksum_of_spark(spark_with_delta, table)
        assert comparable(theirs, names) == comparable(ours, names), version
        checksum_path(table, version).write_bytes(kept)


def test_spark_continues_our_checksums_and_we_continue_its(spark_with_delta: SparkSession, tmp_path: Path):
    table, spark = tmp_path / "t", spark_with_delta
    dv.write_table(table, rows(0, 4), configuration=FEATURES)
    for number in range(3):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = {number}")
        dv.write_table(table, rows(10 * number + 10, 2), mode="append")
    for version in range(7):
        assert state_discrepancies(load_snapshot(table, version)) == []
        assert checksum_path(table, version).exists()
    assert read_checksum(table, 6)["numDeletionVectorsOpt"] == 1
    assert is_valid_for_spark(spark, table)


@pytest.mark.parametrize(
    "damage",
    [
        lambda fields: json.dumps({**fields, "numFiles": 40, "tableSizeBytes": 1}),
        lambda fields: json.dumps({**fields, "setTransactions": [{"appId": "other", "version": 9}]}),
        lambda fields: json.dumps(fields)[:-20],
    ],
    ids=["counts", "transactions", "cut"],
)
def test_a_table_with_a_wrong_checksum_reads_right_here_and_in_spark(
    spark_with_delta: SparkSession, tmp_path: Path, damage: Any
):
    table, spark = tmp_path / "t", spark_with_delta
    dv.write_table(table, rows(0, 4), configuration=FEATURES)
    dv.write_table(table, rows(4, 4), mode="append")
    checksum_path(table, 1).write_text(damage(read_checksum(table, 1)))
    assert dv.read_table(table).count() == 8
    assert {finding.rule for finding in dv.audit_table(table).findings} == {"L8"}
    spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert sorted(row["id"] for row in load(spark, table).select("id").collect()) == list(range(8))
    dv.write_table(table, rows(8, 1), mode="append")
    assert state_discrepancies(load_snapshot(table)) == []
    assert is_valid_for_spark(spark, table)


def test_spark_finds_a_checksum_with_wrong_counts(spark_with_delta: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    dv.write_table(table, rows(0, 4), configuration=FEATURES)
    wrong = {**read_checksum(table, 0), "numFiles": 2}
    checksum_path(table, 0).write_text(json.dumps(wrong))
    with pytest.raises(Exception, match="Number of files - Expected: 2 Computed: 1"):
        is_valid_for_spark(spark_with_delta, table)
