"""Races, crashes and expiring credentials of catalog-managed tables: every row is there once.

`UNITY_CATALOG_TEST_URL=http://… pytest tests/faults/test_unity_catalog.py` runs the tests of local tables
against a real server.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from buckets import Bucket
from proxy import Proxy, proxy_to
from support.unity_catalog import REAL_URL, TOKEN, Catalog, ManagedTable, RejectedError, unity_catalog

import delta_variant as dv
from delta_variant.storage import store as table_store

WRITER = Path(__file__).with_name("catalog_writer.py")
WRITERS = 8
ROWS = 5
LIFETIME = 0.5
"""Seconds after which the credentials of the tests expire."""

model_only = pytest.mark.skipif(REAL_URL is not None, reason="the real server keeps tables in local files")


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    with unity_catalog(f"file://{tmp_path}") as catalog:
        monkeypatch.setenv("UNITY_CATALOG_URL", catalog.url)
        monkeypatch.setenv("UNITY_ACCESS_TOKEN", TOKEN)
        yield catalog


@pytest.fixture
def table(catalog: Catalog) -> ManagedTable:
    return catalog.create()


def ids(table: Any, **options: Any) -> list[int]:
    rows = dv.read_table(table, columns=["id"], **options).to_table()
    return sorted(rows["id"].to_pylist())


def command(table: ManagedTable, first: int, count: int, *dies_before: str) -> list[str]:
    return [sys.executable, str(WRITER), table.uri, str(first), str(count), *dies_before]


def test_eight_processes_append_every_row_once(catalog, table):
    writers = [
        subprocess.Popen(command(table, number * ROWS, ROWS), stderr=subprocess.PIPE)
        for number in range(WRITERS)
    ]
    try:
        errors = [writer.communicate(timeout=240)[1] for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
    assert [writer.returncode for writer in writers] == [0] * WRITERS, errors
    assert ids(table.uri) == list(range(WRITERS * ROWS))
    assert catalog.latest(table) == WRITERS * ROWS
    assert table.published == list(range(WRITERS * ROWS + 1))
    assert catalog.unpublished(table) == []


def test_eight_threads_append_and_delete(catalog, table):
    """Each writer deletes its first row again, which conflicts with no append of another one."""

    def work(number: int) -> None:
        handle = dv.Table(table.uri)
        for row in range(number * ROWS, (number + 1) * ROWS):
            dv.write_table(handle, [{"id": row, "event": {"n": row}}], mode="append")
        dv.delete(handle, f"id = {number * ROWS}")

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(work, range(WRITERS)))
    assert ids(table.uri) == [row for row in range(WRITERS * ROWS) if row % ROWS]
    assert catalog.latest(table) == WRITERS * (ROWS + 1)


@pytest.mark.parametrize(
    ("dies_before", "is_committed", "published"),
    [("ratify", False, [0, 1]), ("publish", True, [0, 1]), ("report", True, [0, 1, 2])],
)
def test_a_writer_dies(catalog, table, dies_before, is_committed, published):
    """A commit that the catalog has ratified exists, whether or not its writer lives to publish it."""
    dv.write_table(table.uri, [{"id": 1}], mode="append")
    dead = subprocess.run(command(table, 2, 1, dies_before), timeout=120, check=False)
    assert dead.returncode == 9
    expected = [1, 2] if is_committed else [1]
    assert ids(table.uri) == expected
    assert table.published == published
    assert len(table.staged) == 2
    dv.write_table(table.uri, [{"id": 3}], mode="append")
    assert ids(table.uri) == [*expected, 3]
    assert table.published == list(range(len(expected) + 2))
    assert catalog.unpublished(table) == []
    assert ids(table.root) == [*expected, 3]


def test_answers_of_the_catalog_are_lost(catalog, table, monkeypatch):
    with proxy_to(catalog.url) as proxy:
        monkeypatch.setenv("UNITY_CATALOG_URL", proxy.url)
        proxy.fault_rate = 0.2
        options = {"backoff_config.init_backoff": "5ms", "max_retries": "20"}

        def work(number: int) -> None:
            for row in range(number * ROWS, (number + 1) * ROWS):
                rows = [{"id": row, "event": {"n": row}}]
                dv.write_table(dv.Table(table.uri, options), rows, mode="append")

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        faults = [kind for _, _, kind in proxy.seen if kind]
    assert len(faults) > ROWS
    monkeypatch.setenv("UNITY_CATALOG_URL", catalog.url)
    assert ids(table.uri) == list(range(4 * ROWS))
    assert catalog.latest(table) == 4 * ROWS


# Temporary credentials


class Vendor:
    """Vends credentials that a store refuses after LIFETIME; the session token has the time."""

    def __init__(self) -> None:
        self.vended: list[str] = []
        self.refused: list[str] = []

    def vend(self, operation: str) -> tuple[dict[str, str], int]:
        expires = time.time() + LIFETIME
        self.vended.append(operation)
        config = {
            "s3.access-key-id": "testing",
            "s3.secret-access-key": "testing",
            "s3.session-token": f"token {operation} {expires}",
        }
        return config, int(expires * 1000)

    def is_expired(self, token: str) -> bool:
        expired = not token or float(token.rpartition(" ")[2]) < time.time()
        if expired:
            self.refused.append(token)
        return expired


@pytest.fixture
def vendor(bucket: Bucket, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    vendor = Vendor()
    monkeypatch.setattr(proxy, "is_expired", vendor.is_expired)
    return vendor


@pytest.fixture
def remote(
    bucket: Bucket, proxy: Proxy, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Catalog, ManagedTable]]:
    """Return a catalog-managed table on S3, whose credentials only the catalog has."""
    with unity_catalog(f"s3://{bucket.name}/warehouse") as catalog:
        assert catalog.model is not None
        monkeypatch.setenv("UNITY_CATALOG_URL", catalog.url)
        monkeypatch.setenv("UNITY_ACCESS_TOKEN", TOKEN)
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        catalog.model.vend = vendor.vend
        yield catalog, catalog.create(storage_options=bucket.options)


def slowly(batches: int, rows: int) -> pa.RecordBatchReader:
    """Return rows of which each batch comes after half of the lifetime of the credentials."""
    schema = pa.schema([("id", pa.int64()), ("event", pa.json_())])

    def generate() -> Iterator[pa.RecordBatch]:
        for number in range(batches):
            time.sleep(LIFETIME / 2)
            numbers = range(number * rows, (number + 1) * rows)
            texts = pa.array([f'{{"n": {each}, "pad": "{"x" * 100}"}}' for each in numbers], pa.json_())
            yield pa.record_batch([pa.array(numbers, pa.int64()), texts], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, generate())


@model_only
def test_credentials_expire_in_the_middle_of_a_write(remote, vendor, monkeypatch):
    monkeypatch.setattr("delta_variant.storage.objects.PART_BYTES", 5 << 20)
    _, table = remote
    options = dv.FileOptions(target_file_size=1 << 14)
    result = dv.write_table(table.uri, slowly(8, 4000), mode="append", files=options)
    assert result.rows == 32_000
    assert len(set(vendor.vended)) == 1
    assert len(vendor.vended) > 4
    assert vendor.refused == []
    assert ids(table.uri) == list(range(32_000))


@model_only
def test_credentials_expire_between_the_calls_of_a_store(remote, vendor):
    _, table = remote
    store = table_store.open_store(table.uri)
    for number in range(3):
        dv.write_table(store, [{"id": number}], mode="append")
        time.sleep(LIFETIME * 1.1)
    assert ids(store) == [0, 1, 2]
    assert vendor.refused == []


@model_only
def test_eight_writers_with_expiring_credentials(remote, vendor):
    catalog, table = remote

    def work(number: int) -> None:
        handle = dv.Table(table.uri)
        for row in range(number * ROWS, (number + 1) * ROWS):
            dv.write_table(handle, [{"id": row, "event": {"n": row}}], mode="append")

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(work, range(WRITERS)))
    assert ids(table.uri) == list(range(WRITERS * ROWS))
    assert catalog.latest(table) == WRITERS * ROWS
    assert vendor.refused == []


@model_only
def test_a_reader_without_permission_to_write_gets_credentials_to_read(remote, vendor, monkeypatch):
    catalog, table = remote
    dv.write_table(table.uri, [{"id": 1}], mode="append")

    def vend(operation: str) -> tuple[dict[str, str], int]:
        if operation == "READ_WRITE":
            raise RejectedError(403, "PermissionDeniedException", "no write")
        return Vendor.vend(vendor, operation)

    assert catalog.model is not None
    monkeypatch.setattr(catalog.model, "vend", vend)
    vendor.vended.clear()
    assert ids(table.uri) == [1]
    assert set(vendor.vended) == {"READ"}


@model_only
def test_a_catalog_that_vends_nothing_is_reported(remote, monkeypatch):
    catalog, table = remote
    assert catalog.model is not None
    monkeypatch.setattr(catalog.model, "vend", None)
    with pytest.raises(dv.StoreError, match="the catalog vends no credentials for s3://"):
        dv.load_snapshot(table.uri)
