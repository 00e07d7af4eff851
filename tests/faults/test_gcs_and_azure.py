"""Tables on Google Cloud Storage and on Azure.

Azure has an emulator. The XML API of GCS is that of S3 except for the names of headers, which a proxy
translates for the S3 server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pytest
from azurite import ACCOUNT, KEY, azurite, new_container
from buckets import new_bucket
from deltalake import DeltaTable
from proxy import Fault, Proxy, proxy_to

import delta_variant as dv
from delta_variant.errors import CommitConflictError

SIGNED = (
    "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
)


def translate_to_s3(target: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Translate the target and headers of a GCS request to S3."""
    path, *query = target.split("?", 1)
    headers = {name.lower(): value for name, value in headers.items()} | {"authorization": SIGNED}
    generation = headers.pop("x-goog-if-generation-match", None)
    if generation is not None:
        assert generation == "0", "S3 has no generations"
        headers["if-none-match"] = "*"
    if "x-goog-copy-source" in headers:
        headers["x-amz-copy-source"] = headers.pop("x-goog-copy-source")
    _, bucket, *key = path.split("/", 2)
    return "?".join(["/".join(["", unquote(bucket), *key]), *query]), headers


@dataclass(frozen=True)
class Table:
    """A table on an object store, the storage options to reach it, and the proxy in front of the store."""

    uri: str
    options: dict[str, str]
    proxy: Proxy

    def rows(self) -> list[tuple[int, int]]:
        columns = {"id": "id", "n": "event:n::bigint"}
        found = dv.read_table(dv.Table(self.uri, self.options), columns=columns).to_table()
        return sorted((row["id"], row["n"]) for row in found.to_pylist())


@contextmanager
def on_gcs(endpoint: str) -> Iterator[Table]:
    bucket = new_bucket(endpoint)
    with proxy_to(endpoint, translate_to_s3) as proxy:
        account = {"gcs_base_url": proxy.url, "disable_oauth": True}
        account |= dict.fromkeys(["client_email", "private_key", "private_key_id"], "")
        options = {"google_service_account_key": json.dumps(account), "allow_http": "true"}
        yield Table(f"gs://{bucket.name}/table", options, proxy)


@contextmanager
def on_azure(endpoint: str, uri: str) -> Iterator[Table]:
    container = new_container(endpoint)
    with proxy_to(endpoint) as proxy:
        options = {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": KEY,
            "azure_storage_endpoint": f"{proxy.url}/{ACCOUNT}",
            "allow_http": "true",
        }
        yield Table(uri.format(container=container), options, proxy)


@pytest.fixture(scope="module")
def azure_endpoint() -> Iterator[str]:
    with azurite() as endpoint:
        yield endpoint


AZURE = {
    "az": "az://{container}/table",
    "abfss": f"abfss://{{container}}@{ACCOUNT}.dfs.core.windows.net/table",
}


@pytest.fixture(params=["gs", *AZURE])
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    if request.param in AZURE:
        opened = on_azure(request.getfixturevalue("azure_endpoint"), AZURE[request.param])
    else:
        opened = on_gcs(request.getfixturevalue("s3_endpoint"))
    with opened as table:
        yield table


def events(*ids: int) -> pa.Table:
    texts = [json.dumps({"n": row * 10}) for row in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "event": pa.array(texts, pa.json_())})


def test_every_operation_works(table: Table):
    handle = dv.Table(table.uri, table.options)
    dv.write_table(handle, events(1, 2))
    dv.write_table(handle, events(3, 4), mode="append")
    dv.update(handle, {"event:n": "7"}, "id = 1")
    dv.delete(handle, "id = 2")
    merge = dv.merge(handle, events(4, 5), "target.id = source.id")
    merge.when_matched_delete().when_not_matched_insert_all().execute()
    assert dv.optimize(handle, sort_by="id").files_before == 3
    assert table.rows() == [(1, 7), (3, 30), (5, 50)]
    assert not dv.audit_table(handle, data=True).findings
    removed = dv.vacuum(handle, 0, dry_run=False, enforce_retention_duration=False).files
    assert len(removed) == 6
    assert table.rows() == [(1, 7), (3, 30), (5, 50)]
    assert DeltaTable(table.uri, storage_options=table.options).version() == 7
    copy = dv.Table(f"{table.uri}_copy", table.options)
    dv.clone(handle, copy)
    assert sorted(row["id"] for row in copy) == [1, 3, 5]


def test_of_two_commits_of_one_version_the_second_conflicts(table: Table):
    handle = dv.Table(table.uri, table.options)
    dv.write_table(handle, events(1, 2))
    merges = [dv.merge(handle, events(3), "target.id = source.id") for _ in range(2)]
    dv.write_table(handle, events(9), mode="append")
    first, second = (merge.when_not_matched_insert_all() for merge in merges)
    first.execute()
    with pytest.raises(CommitConflictError):
        second.execute()
    assert table.rows() == [(1, 10), (2, 20), (3, 30), (9, 90)]


def test_a_commit_whose_response_was_lost_is_recognized(table: Table):
    handle = dv.Table(table.uri, table.options)
    dv.write_table(handle, events(1))
    fault = Fault("lost", "PUT", "_delta_log")
    table.proxy.faults.append(fault)
    result = dv.write_table(handle, events(2), mode="append")
    assert (result.version, fault.times) == (1, 0)
    assert table.rows() == [(1, 10), (2, 20)]
    assert [entry.version for entry in dv.history(handle)] == [1, 0]
