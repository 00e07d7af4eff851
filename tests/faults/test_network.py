"""Faults of a network and a busy store under a table on S3: nothing is lost or duplicated."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from buckets import Bucket
from proxy import Fault, Kind, Proxy

import delta_variant as dv
from delta_variant.errors import CommitConflictError, CommitUnknownError, StoreError, TableExistsError
from delta_variant.log import listing
from delta_variant.operations.write import write_table
from delta_variant.storage import store

COMMIT = r"_delta_log/0{19}%s\.json"


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def ids(bucket: Bucket, **options: Any) -> list[int]:
    read = dv.read_table(dv.Table(bucket.table(), bucket.options), **options).to_table()
    return sorted(read["id"].to_pylist())


def versions(bucket: Bucket) -> int:
    return dv.load_snapshot(dv.Table(bucket.table(), bucket.options)).version


def data_files(bucket: Bucket) -> set[str]:
    root = store.open_store(bucket.table(), bucket.options)
    return {path for path in store.list_files(root, "") if not path.startswith(listing.LOG)}


@pytest.mark.parametrize("kind", ["slow_down", "error", "conflict", "reset", "lost", "slow"])
def test_a_commit_with_a_fault_happens_once(bucket: Bucket, proxied: Bucket, proxy: Proxy, kind: Kind):
    write_table(dv.Table(bucket.table(), bucket.options), numbers(1))
    proxy.faults.append(Fault(kind, "PUT", COMMIT % 1))
    result = write_table(dv.Table(bucket.table(), proxied.options), numbers(2), mode="append")
    assert result.version == 1
    assert proxy.faults[0].times == 0
    assert versions(bucket) == 1
    assert ids(bucket) == [1, 2]


@pytest.mark.parametrize("mode", ["error", "append"])
def test_a_table_is_created_after_a_conflicting_put_in_progress(
    bucket: Bucket, proxied: Bucket, proxy: Proxy, mode: Any
):
    proxy.faults.append(Fault("conflict", "PUT", COMMIT % 0))
    result = write_table(dv.Table(bucket.table(), proxied.options), numbers(1), mode=mode)
    assert result.version == 0
    assert proxy.faults[0].times == 0
    assert versions(bucket) == 0
    assert ids(bucket) == [1]


def test_a_commit_whose_response_was_lost_is_retried_and_recognized(
    bucket: Bucket, proxied: Bucket, proxy: Proxy
):
    write_table(dv.Table(bucket.table(), bucket.options), numbers(1))
    proxy.faults.append(Fault("lost", "PUT", COMMIT % 1))
    assert write_table(dv.Table(bucket.table(), proxied.options), numbers(2), mode="append").version == 1
    assert proxy.count("PUT", COMMIT % 1) == 2
    assert proxy.count("PUT", COMMIT % 2) == 0


def test_a_new_table_whose_response_was_lost_is_recognized(proxied: Bucket, proxy: Proxy):
    proxy.faults.append(Fault("lost", "PUT", COMMIT % 0))
    assert write_table(dv.Table(proxied.table(), proxied.options), numbers(1)).version == 0
    assert ids(proxied) == [1]
    with pytest.raises(TableExistsError):
        write_table(dv.Table(proxied.table(), proxied.options), numbers(1))


def test_a_commit_whose_responses_are_all_lost_is_found_in_the_log(
    bucket: Bucket, proxied: Bucket, proxy: Proxy
):
    write_table(dv.Table(bucket.table(), bucket.options), numbers(1))
    proxy.faults += [Fault("lost", "PUT", COMMIT % 1), Fault("reset", "PUT", COMMIT % 1, times=99)]
    options = {**proxied.options, "max_retries": "2"}
    assert write_table(dv.Table(bucket.table(), options), numbers(2), mode="append").version == 1
    assert ids(bucket) == [1, 2]


def test_a_commit_without_a_response_is_unknown_and_keeps_its_files(
    bucket: Bucket, proxied: Bucket, proxy: Proxy
):
    write_table(dv.Table(bucket.table(), bucket.options), numbers(1))
    before = data_files(bucket)
    proxy.faults.append(Fault("reset", "PUT", COMMIT % 1, times=99))
    options = {**proxied.options, "max_retries": "2"}
    with pytest.raises(CommitUnknownError, match=r"cannot determine whether s3://.*00001\.json was written"):
        write_table(dv.Table(bucket.table(), options), numbers(2), mode="append")
    assert len(data_files(bucket)) == len(before) + 1
    assert ids(bucket) == [1]


def test_a_commit_that_cannot_be_read_to_identify_its_writer_keeps_its_files(
    bucket: Bucket, proxied: Bucket, proxy: Proxy
):
    write_table(dv.Table(bucket.table(), bucket.options), numbers(1))
    proxy.faults += [Fault("lost", "PUT", COMMIT % 1), Fault("reset", "GET", COMMIT % 1, times=99)]
    options = {**proxied.options, "max_retries": "2"}
    with pytest.raises(CommitUnknownError):
        write_table(dv.Table(bucket.table(), options), numbers(2), mode="append")
    assert ids(bucket) == [1, 2]


def test_a_delete_whose_response_was_lost_does_not_conflict_with_itself(
    bucket: Bucket, proxied: Bucket, proxy: Proxy
):
    write_table(dv.Table(bucket.table(), bucket.options), numbers(1, 2, 3))
    proxy.faults.append(Fault("lost", "PUT", COMMIT % 1))
    assert dv.delete(dv.Table(bucket.table(), proxied.options), "id = 2").version == 1
    assert ids(bucket) == [1, 3]


def test_a_delete_that_conflicts_leaves_no_file(bucket: Bucket, proxied: Bucket, proxy: Proxy):
    write_table(dv.Table(bucket.table(), bucket.options), numbers(1, 2, 3))
    merge = dv.merge(dv.Table(bucket.table(), bucket.options), numbers(2), "target.id = source.id")
    dv.delete(dv.Table(bucket.table(), bucket.options), "id = 3")
    before = data_files(bucket)
    with pytest.raises(CommitConflictError, match="concurrent version 1 removed"):
        merge.when_matched_delete().execute()
    assert data_files(bucket) == before
    assert ids(bucket) == [1, 2]


@pytest.mark.parametrize("kind", ["slow_down", "error", "reset", "lost"])
def test_a_data_file_uploaded_with_a_fault_is_complete(
    bucket: Bucket, proxied: Bucket, proxy: Proxy, kind: Kind
):
    proxy.faults.append(Fault(kind, "PUT", r"\.parquet"))
    write_table(dv.Table(bucket.table(), proxied.options), numbers(1))
    assert proxy.faults[0].times == 0
    assert ids(bucket) == [1]


PARTS = [
    ("POST", r"\?uploads"),
    ("PUT", "partNumber=2"),
    ("POST", "uploadId="),
]


@pytest.mark.parametrize("kind", ["slow_down", "error", "reset", "lost"])
@pytest.mark.parametrize(("method", "target"), PARTS)
def test_a_multipart_upload_with_a_fault_is_complete(
    bucket: Bucket, proxied: Bucket, proxy: Proxy, kind: Kind, method: str, target: str
):
    root = store.open_store(bucket.table(), proxied.options)
    data = bytes(range(256)) * (20 << 12)
    proxy.faults.append(Fault(kind, method, target))
    upload = store.Upload(root, "big")
    for start in range(0, len(data), 3_000_000):
        upload.write(data[start : start + 3_000_000])
    upload.close()
    assert proxy.faults[0].times == 0
    assert store.read(root, "big") == data


@pytest.mark.parametrize("kind", ["slow_down", "error", "reset", "lost", "cut", "slow"])
def test_reads_with_faults_return_all_rows(bucket: Bucket, proxied: Bucket, proxy: Proxy, kind: Kind):
    values = list(range(50_000))
    write_table(
        dv.Table(bucket.table(), bucket.options),
        numbers(*values),
        files=dv.FileOptions(compression="none"),
    )
    for target in ("list-type", "_delta_log/.*json", r"\.parquet"):
        proxy.faults.append(Fault(kind, "GET", target))
    assert ids(proxied) == values
    assert [fault.times for fault in proxy.faults] == [0, 0, 0]


def test_a_store_that_stays_unavailable_is_a_store_error(bucket: Bucket, proxied: Bucket, proxy: Proxy):
    write_table(dv.Table(bucket.table(), bucket.options), numbers(1))
    proxy.faults.append(Fault("slow_down", times=99))
    options = {**proxied.options, "max_retries": "1"}
    with pytest.raises(StoreError, match=r"s3://.*: SlowDown"):
        dv.load_snapshot(dv.Table(bucket.table(), options))


def test_every_operation_succeeds_while_random_requests_fail(bucket: Bucket, proxied: Bucket, proxy: Proxy):
    write_table(
        dv.Table(bucket.table(), bucket.options),
        numbers(0),
        configuration={"delta.checkpointInterval": "4"},
    )
    proxy.fault_rate = 0.2
    for number in range(1, 13):
        write_table(dv.Table(bucket.table(), proxied.options), numbers(number), mode="append")
    dv.delete(dv.Table(bucket.table(), proxied.options), "id = 5")
    dv.update(dv.Table(bucket.table(), proxied.options), {"id": "id + 100"}, "id > 10")
    dv.optimize(dv.Table(bucket.table(), proxied.options))
    found = ids(proxied)
    proxy.fault_rate = 0.0
    assert found == ids(bucket) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 111, 112]
    assert versions(bucket) == 15
    assert dv.audit_table(dv.Table(bucket.table(), bucket.options), data=True).is_clean
