"""Tables on S3: every operation, read by this library, deltalake and DuckDB."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from buckets import Bucket, new_bucket
from deltalake import DeltaTable
from proxy import Fault, Proxy

import delta_variant as dv
from delta_variant.data_file import reader
from delta_variant.data_file.reader import Projection, open_file
from delta_variant.errors import StoreError, TableExistsError, TableNotFoundError
from delta_variant.log.load import load_snapshot
from delta_variant.operations.write import write_table
from delta_variant.storage import store

ODD_NAMES = ["a b", "100%", "a%20b", "a#b?c", "größe-東京-🎈", "k=v/part, 1'.parquet", "[x]{y}&z+=:@"]


def events(*numbers: int, day: str = "mon") -> pa.Table:
    texts = [json.dumps({"n": number, "user": {"name": f"user {number}"}}) for number in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "day": [day] * len(numbers),
            "event": pa.array(texts, pa.json_()),
        }
    )


def rows(table: Any, bucket: Bucket, **options: Any) -> list[tuple[int, int, str]]:
    columns = {"id": "id", "n": "event:n::bigint", "name": "event:user.name::string"}
    read = dv.read_table(dv.Table(table, bucket.options), columns=columns, **options).to_table()
    return sorted((row["id"], row["n"], row["name"]) for row in read.to_pylist())


def expected(*numbers: int) -> list[tuple[int, int, str]]:
    return [(number, number, f"user {number}") for number in numbers]


def duckdb_rows(table: str, bucket: Bucket) -> list[int]:
    """Return the ids that DuckDB reads from local copies of the files of the latest version."""
    snapshot = load_snapshot(dv.Table(table, bucket.options))
    ids: list[int] = []
    for path in snapshot.files["path"].to_pylist():
        copy = Path(duckdb_rows.folder) / "copy.parquet"  # type: ignore[attr-defined]
        copy.write_bytes(store.read(snapshot.store, path))
        found = duckdb.sql(f"select id from read_parquet('{copy}', hive_partitioning = false)").fetchall()
        ids += [row[0] for row in found]
    return sorted(ids)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> None:
    duckdb_rows.folder = tmp_path  # type: ignore[attr-defined]


def test_every_operation_works_on_s3(bucket: Bucket):
    table, options = bucket.table("events %41"), bucket.options
    write_table(
        dv.Table(table, options),
        events(*range(10)),
        configuration={"delta.checkpointInterval": "3"},
    )
    with pytest.raises(TableExistsError):
        write_table(dv.Table(table, options), events(1))
    write_table(dv.Table(table, options), events(10, 11), mode="append")
    assert rows(table, bucket, where="event:n::bigint >= 9") == expected(9, 10, 11)
    assert rows(table, bucket, version=0) == expected(*range(10))

    assert dv.delete(dv.Table(table, options), "event:n::bigint = 3").rows_deleted == 1
    dv.update(dv.Table(table, options), {"event:user.name": "'x'"}, "id = 4")
    assert rows(table, bucket, where="id = 4") == [(4, 4, "x")]
    merge = dv.merge(dv.Table(table, options), events(4, 12), "target.id = source.id")
    merge.when_matched_update({"event": "source.event"}).when_not_matched_insert_all().execute()
    left = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert rows(table, bucket) == expected(*left)

    write_table(
        dv.Table(table, options),
        events(13),
        mode="append",
        shredding=dv.ShreddingSchema.of({"n": pa.int64()}),
        files=dv.FileOptions(max_variant_stats_paths=0),
    )
    before = dv.load_snapshot(dv.Table(table, options)).version
    repair = dv.repair_statistics(dv.Table(table, options), dry_run=False)
    assert repair.version == dv.load_snapshot(dv.Table(table, options)).version == before + 1
    assert [len(file.reasons) for file in repair.files] == [1]
    assert dv.repair_statistics(dv.Table(table, options)).files == ()
    write_table(dv.Table(table, options), events(0, 1), mode="overwrite", where="id in (0, 1, 2)")
    left = [0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert rows(table, bucket) == expected(*left)
    dv.optimize(dv.Table(table, options), sort_by="event:n::bigint")
    snapshot = dv.load_snapshot(dv.Table(table, options))
    assert snapshot.num_files == 1
    assert rows(table, bucket) == expected(*left)
    assert dv.audit_table(dv.Table(table, options), data=True).is_clean

    checkpoints = [name for name in store.list_files(snapshot.store, "_delta_log") if "checkpoint" in name]
    assert "_delta_log/_last_checkpoint" in checkpoints
    assert len(checkpoints) > 2
    oracle = DeltaTable(table, storage_options=options)
    assert oracle.version() == snapshot.version
    assert sorted(oracle.file_uris()) == [
        f"{table.replace(' ', '%20')}/{path}" for path in snapshot.files["path"].to_pylist()
    ]
    assert duckdb_rows(table, bucket) == left


def test_partition_values_of_any_text_are_written_and_read_and_deltalake_finds_them(bucket: Bucket):
    days = ["mon", "a/b", "50%", "a b", "ä=ö", "x#y?z", "%41"]
    for number, day in enumerate(days):
        write_table(
            dv.Table(bucket.table(), bucket.options),
            events(number, day=day),
            mode="append",
            partition_by="day",
        )
    for number, day in enumerate(days):
        assert rows(bucket.table(), bucket, where=f"day = '{day}'") == expected(number)
    oracle = DeltaTable(bucket.table(), storage_options=bucket.options)
    actions = pa.table(oracle.get_add_actions(flatten=True))
    assert sorted(actions["partition.day"].to_pylist()) == sorted(days)


def test_a_table_of_deltalake_is_read_and_appended_to(bucket: Bucket):
    from deltalake import write_deltalake

    plain = pa.table({"id": [1, 2], "name": ["a", "b"]})
    write_deltalake(bucket.table(), plain, storage_options=bucket.options)
    write_table(
        dv.Table(bucket.table(), bucket.options),
        pa.table({"id": [3], "name": ["c"]}),
        mode="append",
    )
    read = dv.read_table(dv.Table(bucket.table(), bucket.options)).to_table()
    assert sorted(read["name"].to_pylist()) == ["a", "b", "c"]
    oracle = pa.table(DeltaTable(bucket.table(), storage_options=bucket.options).to_pyarrow_table())
    assert sorted(oracle["name"].to_pylist()) == ["a", "b", "c"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_of_any_name_is_written_listed_sized_read_and_deleted(bucket: Bucket, name: str):
    root = store.open_store(bucket.table("tab le%25"), bucket.options)
    store.put(root, f"data/{name}", b"0123456789")
    assert store.list_files(root, "data") == [f"data/{name}"]
    assert store.read(root, f"data/{name}") == b"0123456789"
    assert store.size(root, f"data/{name}") == 10
    assert store.get_ranges(root, f"data/{name}", [(0, 2), (7, 10)]) == [b"01", b"789"]
    assert store.read_end(root, f"data/{name}", 3) == (10, b"789")
    assert store.read_end(root, f"data/{name}", 99) == (10, b"0123456789")
    store.delete(root, f"data/{name}")
    assert store.read_if_present(root, f"data/{name}") is None


def test_a_listing_of_many_pages_starts_after_a_key(bucket: Bucket):
    root = store.open_store(bucket.table(), bucket.options)
    names = [f"log/{number:04}" for number in range(1100)]
    for name in names:
        store.put(root, name, b"")
    assert store.list_files(root, "log") == names
    assert store.list_files(root, "log", after="log/1097") == ["log/1098", "log/1099"]


def test_the_error_for_a_missing_table_or_bucket_names_it(bucket: Bucket):
    with pytest.raises(TableNotFoundError):
        dv.load_snapshot(dv.Table(bucket.table("nothing"), bucket.options))
    for operate in (dv.load_snapshot, dv.read_table, lambda *a, **b: write_table(*a, events(1), **b)):
        with pytest.raises(StoreError, match=r"s3://no-such-bucket/t.*: NoSuchBucket: The specified bucket"):
            operate(dv.Table("s3://no-such-bucket/t", bucket.options))


def test_the_error_for_a_missing_file_names_it(bucket: Bucket):
    write_table(dv.Table(bucket.table(), bucket.options), events(1))
    snapshot = dv.load_snapshot(dv.Table(bucket.table(), bucket.options))
    (path,) = snapshot.files["path"].to_pylist()
    store.delete(snapshot.store, path)
    with pytest.raises(dv.DeltaVariantError, match=r"s3://.* the file does not exist") as caught:
        rows(bucket.table(), bucket)
    assert str(caught.value.file).endswith(path)


def uploads(bucket: Bucket) -> int:
    """Return the number of unfinished multipart uploads."""
    import urllib.request

    with urllib.request.urlopen(f"{bucket.endpoint}/{bucket.name}?uploads", timeout=30) as response:
        return response.read().count(b"<Upload>")


def noise(rows_: int) -> pa.RecordBatch:
    """Return rows that do not compress."""
    import random

    source = random.Random(3)
    return pa.record_batch({"b": pa.array([source.randbytes(1000) for _ in range(rows_)], pa.binary())})


def test_a_big_file_is_uploaded_in_parts_in_bounded_memory(bucket: Bucket):
    batch = noise(1000)
    batches = pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(100)))
    tracemalloc.start()
    try:
        result = write_table(
            dv.Table(bucket.table(), bucket.options), batches, files=dv.FileOptions(compression="none")
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [file.rows for file in result.files] == [100_000]
    assert result.files[0].bytes > 90 << 20
    # Parts in flight and a row group: fewer bytes than the file.
    assert peak < 80 << 20
    assert uploads(bucket) == 0
    read = dv.read_table(dv.Table(bucket.table(), bucket.options))
    assert sum(each.num_rows for each in read.to_batches()) == 100_000


def test_a_write_that_fails_leaves_neither_file_nor_upload(bucket: Bucket):
    batch = noise(1000)

    def failing() -> Any:
        for _ in range(40):
            yield batch
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write_table(
            dv.Table(bucket.table(), bucket.options),
            pa.RecordBatchReader.from_batches(batch.schema, failing()),
            files=dv.FileOptions(compression="none"),
        )
    assert store.list_files(store.open_store(bucket.table(), bucket.options), "") == []
    assert uploads(bucket) == 0


def test_only_the_bytes_that_a_query_needs_are_fetched(bucket: Bucket, proxied: Bucket, proxy: Any):
    batch = noise(1000).append_column("id", pa.array(range(1000), pa.int64()))
    batches = pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(60)))
    write_table(dv.Table(bucket.table(), bucket.options), batches, files=dv.FileOptions(compression="none"))
    snapshot = dv.load_snapshot(dv.Table(bucket.table(), proxied.options))
    (path,) = snapshot.files["path"].to_pylist()
    proxy.clear()
    file = open_file(snapshot.store, path)
    assert proxy.count("HEAD") == 0
    assert proxy.count("GET") == 1
    (projection,) = [Projection(pa.field("id", pa.int64()), ("id",))]
    ids = [batch.num_rows for batch in reader.read(file, path, [projection])]
    assert sum(ids) == 60_000
    assert file.bytes_read < 2 << 20


def test_without_storage_options_the_environment_configures_the_store(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
):
    for key, value in bucket.options.items():
        if key.startswith("AWS_"):
            monkeypatch.setenv(key, value)
    write_table(bucket.table(), events(1))
    assert dv.load_snapshot(bucket.table()).num_files == 1
    patient = {"timeout": "20s", "max_retries": "3"}
    assert dv.load_snapshot(dv.Table(bucket.table(), patient)).num_files == 1


@pytest.mark.parametrize(
    "operate",
    [
        lambda table, options: dv.read_table(dv.Table(table, options)).to_table(),
        lambda table, options: dv.delete(dv.Table(table, options), "event:n::bigint < 100"),
    ],
)
def test_small_files_are_opened_ahead_with_one_request_each(
    bucket: Bucket, proxied: Bucket, proxy: Any, operate: Any
):
    for number in range(12):
        write_table(dv.Table(bucket.table(), bucket.options), events(number), mode="append")
    proxy.faults.append(Fault("slow", "GET", r"\.parquet", times=99))
    operate(bucket.table(), proxied.options)
    assert proxy.most_concurrent >= 4
    files = [target for method, target, _ in proxy.seen if "part-" in target and method in ("GET", "HEAD")]
    assert len(files) == len(set(files)) == 12


@pytest.mark.parametrize("is_same_bucket", [True, False])
def test_the_server_copies_the_files_of_a_clone_in_one_bucket(
    bucket: Bucket, proxy: Proxy, is_same_bucket: bool
):
    """Without a common bucket, this process reads and writes each file."""
    proxied = Bucket(bucket.name, proxy.url)
    other = proxied if is_same_bucket else Bucket(new_bucket(bucket.endpoint).name, proxy.url)
    source = dv.Table(proxied.table("a source"), proxied.options)
    source.append(events(1, 2), partition_by="day")
    source.append(events(3, day="tue"))
    proxy.clear()
    assert source.clone(other.table("clones/%41")).files == 2
    assert proxy.count("GET", r"\.parquet") == (0 if is_same_bucket else 2)
    source.delete_all()
    source.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert rows(other.table("clones/%41"), other) == expected(1, 2, 3)
    assert len(DeltaTable(other.table("clones/%41"), storage_options=other.options).file_uris()) == 2


def test_files_that_the_server_does_not_copy_are_read_and_written(bucket: Bucket, proxy: Proxy):
    proxied = Bucket(bucket.name, proxy.url)
    source = dv.Table(proxied.table("source"), proxied.options)
    source.append(events(1, 2))
    # S3 rejects a copy of more than 5 GB so.
    proxy.faults.append(Fault("invalid", "PUT", r"clone/part-.*\.parquet"))
    source.clone(proxied.table("clone"))
    assert proxy.count("PUT", r"clone/part-.*\.parquet") == 2
    assert rows(proxied.table("clone"), proxied) == expected(1, 2)


def test_deltalake_reads_an_export_and_its_refresh(bucket: Bucket):
    source, target = dv.Table(bucket.table("events %41"), bucket.options), bucket.table("plain %41")
    shredding = dv.ShreddingSchema.of({"n": pa.int64(), "user": {"name": pa.string()}})
    for number in range(3):
        source.append(events(number), shredding=shredding)
        # A path as the target takes the options of the source.
        result = source.export(target)
        assert (result.version, result.files_added, result.files_rewritten) == (number, 1, 0)
    found = DeltaTable(target, storage_options=bucket.options).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["event"]["typed_value"]) for row in found) == [
        (number, {"n": number, "user": {"name": f"user {number}"}}) for number in range(3)
    ]
    assert dv.Table(target, bucket.options).audit(data=True).is_clean


def test_a_shallow_clone_in_another_bucket_is_read(bucket: Bucket):
    source, other = dv.Table(bucket.table("a source"), bucket.options), new_bucket(bucket.endpoint)
    source.append(events(1, 2))
    clone = dv.Table(other.table("clone"), {**bucket.options, "allow_paths_outside_table": "true"})
    source.clone(clone, shallow=True)
    clone.append(events(3))
    assert sorted(row["id"] for row in clone) == [1, 2, 3]
    assert sorted(row["id"] for row in source) == [1, 2]
    assert clone.audit(data=True).is_clean
