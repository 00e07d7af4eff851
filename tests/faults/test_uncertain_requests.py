"""Commits that a store performs, and then answers with an error: their data files remain.

An error after a request that may have been performed proves nothing. The right outcome of each case follows
from what the server received: a commit in the log is reported as committed or as unknown, and its rows are
read. Only a commit that the server never received is an error after which its files are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from azurite import ACCOUNT, KEY, azurite, new_container
from buckets import new_bucket, options_for
from proxy import Fault, Kind, Proxy, proxy_to

import delta_variant as dv
from delta_variant.errors import CommitUnknownError, DeltaVariantError, StoreError
from delta_variant.log import listing
from delta_variant.log.checkpoints import writing
from delta_variant.storage import store

FIRST = r"_delta_log/0{19}%s\.json"
FAST = {
    "allow_http": "true",
    "backoff_config.init_backoff": "1ms",
    "backoff_config.max_backoff": "5ms",
    "max_retries": "3",
}


@dataclass(frozen=True)
class Remote:
    """A table on an object store, the options to reach it directly and by a proxy, and the proxy."""

    uri: str
    direct: Mapping[str, str]
    options: Mapping[str, str]
    proxy: Proxy

    def ids(self) -> list[int]:
        rows = dv.read_table(dv.Table(self.uri, self.direct)).to_table()
        return sorted(rows["id"].to_pylist())

    def version(self) -> int:
        return dv.load_snapshot(dv.Table(self.uri, self.direct)).version

    def data_files(self) -> set[str]:
        root = store.open_store(self.uri, self.direct)
        return {path for path in store.list_files(root, "") if not path.startswith(listing.LOG)}


@pytest.fixture(scope="module")
def azure_endpoint() -> Iterator[str]:
    with azurite() as endpoint:
        yield endpoint


@pytest.fixture(params=["s3", "azure"])
def remote(request: pytest.FixtureRequest) -> Iterator[Remote]:
    if request.param == "s3":
        endpoint = request.getfixturevalue("s3_endpoint")
        uri, options, key = new_bucket(endpoint).table(), options_for(endpoint), "AWS_ENDPOINT_URL"
    else:
        endpoint = request.getfixturevalue("azure_endpoint")
        uri, key = f"az://{new_container(endpoint)}/table", "azure_storage_endpoint"
        options = {"azure_storage_account_name": ACCOUNT, "azure_storage_account_key": KEY}
    with proxy_to(endpoint) as proxy:
        path = f"/{ACCOUNT}" if request.param == "azure" else ""
        direct, proxied = ({**options, **FAST, key: url} for url in (endpoint, f"{proxy.url}{path}"))
        dv.write_table(dv.Table(uri, direct), numbers(1, 2))
        yield Remote(uri, direct, proxied, proxy)


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def merge(uri: str, **options: Any) -> None:
    builder = dv.merge(uri, numbers(2, 3), "target.id = source.id", **options)
    builder.when_matched_delete().when_not_matched_insert_all().execute()


Operate = Callable[..., Any]
OPERATIONS: dict[str, tuple[Operate, list[int]]] = {
    "append": (lambda uri, **options: dv.write_table(uri, numbers(3), mode="append", **options), [1, 2, 3]),
    "overwrite": (lambda uri, **options: dv.write_table(uri, numbers(3), mode="overwrite", **options), [3]),
    "delete": (lambda uri, **options: dv.delete(uri, "id = 1", **options), [2]),
    "update": (lambda uri, **options: dv.update(uri, {"id": "id + 5"}, "id = 1", **options), [2, 6]),
    "merge": (merge, [1, 3]),
    "optimize": (lambda uri, **options: dv.optimize(uri, sort_by="id", **options), [1, 2]),
}
CASES: list[tuple[str, Kind, Kind]] = [
    ("append", "lost", "expired"),
    ("append", "lost", "missing"),
    ("append", "error", "unauthorized"),
    ("append", "slow_down", "expired"),
    ("append", "slow_down", "invalid"),
    *((operation, "lost", "expired") for operation in OPERATIONS if operation != "append"),
]


@pytest.mark.parametrize(("operation", "first", "later"), CASES)
def test_a_commit_that_is_stored_before_an_error_is_found(
    remote: Remote, operation: str, first: Kind, later: Kind
):
    operate, expected = OPERATIONS[operation]
    remote.proxy.faults += [
        Fault(first, "PUT", FIRST % 1, performed=first != "lost"),
        Fault(later, "PUT", FIRST % 1, times=99),
    ]
    operate(dv.Table(remote.uri, remote.options))
    assert remote.proxy.faults[0].times == 0
    assert (remote.version(), remote.ids()) == (1, expected)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_commit_that_is_stored_and_cannot_be_read_is_unknown_and_keeps_its_files(
    remote: Remote, operation: str
):
    """A token that expires between two requests: all later ones are rejected."""
    operate, expected = OPERATIONS[operation]
    remote.proxy.faults += [
        Fault("error", "PUT", FIRST % 1, performed=True),
        Fault("expired", "PUT", FIRST % 1, times=99),
        Fault("expired", "GET", FIRST % 1, times=99),
    ]
    with pytest.raises(CommitUnknownError):
        operate(dv.Table(remote.uri, remote.options))
    assert (remote.version(), remote.ids()) == (1, expected)


def test_a_commit_that_the_first_request_rejects_is_an_error_and_leaves_no_file(remote: Remote):
    before = remote.data_files()
    remote.proxy.faults.append(Fault("expired", "PUT", FIRST % 1, times=99))
    with pytest.raises(StoreError, match="ExpiredToken"):
        dv.write_table(dv.Table(remote.uri, remote.options), numbers(3), mode="append")
    assert remote.proxy.count("PUT", FIRST % 1) == 1
    assert (remote.version(), remote.data_files()) == (0, before)


def test_a_commit_that_a_later_request_rejects_is_unknown(remote: Remote):
    before = remote.data_files()
    remote.proxy.faults += [
        Fault("slow_down", "PUT", FIRST % 1),
        Fault("expired", "PUT", FIRST % 1, times=99),
    ]
    with pytest.raises(CommitUnknownError, match="cannot determine whether"):
        dv.write_table(dv.Table(remote.uri, remote.options), numbers(3), mode="append")
    assert (remote.version(), len(remote.data_files())) == (0, len(before) + 1)


def test_a_commit_that_exists_and_is_not_returned_is_unknown_after_a_few_attempts(remote: Remote):
    remote.proxy.faults += [
        Fault("error", "PUT", FIRST % 1, performed=True),
        Fault("missing", "GET", FIRST % 1, times=999),
    ]
    with pytest.raises(CommitUnknownError, match="exists, but does not return it"):
        dv.write_table(dv.Table(remote.uri, remote.options), numbers(3), mode="append")
    assert remote.proxy.count("PUT", FIRST % 1) < 20
    assert remote.ids() == [1, 2, 3]


def test_a_new_table_that_is_stored_before_an_error_is_found(remote: Remote):
    uri = f"{remote.uri}-new"
    remote.proxy.faults += [
        Fault("lost", "PUT", FIRST % 0),
        Fault("unauthorized", "PUT", FIRST % 0, times=99),
    ]
    assert dv.write_table(dv.Table(uri, remote.options), numbers(3)).version == 0
    assert dv.read_table(dv.Table(uri, remote.direct)).to_pylist() == [{"id": 3}]


def test_a_checkpoint_that_is_stored_before_an_error_keeps_its_sidecars(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writing._Contents, "has_sidecars", True)
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1"}
    remote.proxy.faults += [
        Fault("error", "PUT", r"\.checkpoint\.", performed=True),
        Fault("expired", "PUT", r"\.checkpoint\.", times=99),
    ]
    dv.set_properties(dv.Table(remote.uri, remote.options), properties)
    root = store.open_store(remote.uri, remote.direct)
    assert {path.split("/")[1] for path in store.list_files(root, listing.LOG)} >= {"_sidecars"}
    assert any(".checkpoint." in path for path in store.list_files(root, listing.LOG))
    assert dv.audit_table(dv.Table(remote.uri, remote.direct), data=True).is_clean
    assert remote.ids() == [1, 2]


# Requests other than that of the commit


@pytest.mark.parametrize("target", [r"\d{20}\.crc", "_last_checkpoint", r"\.checkpoint\."])
def test_files_that_follow_a_commit_are_written_in_vain_and_the_commit_remains(remote: Remote, target: str):
    properties = {"delta.checkpointInterval": "1"}
    remote.proxy.faults += [
        Fault("error", "PUT", target, performed=True),
        Fault("expired", "PUT", target, times=99),
    ]
    dv.set_properties(dv.Table(remote.uri, remote.options), properties)
    assert remote.proxy.faults[0].times == 0
    assert (remote.version(), remote.ids()) == (1, [1, 2])


def test_a_data_file_that_is_stored_before_an_error_belongs_to_no_version(remote: Remote):
    remote.proxy.faults += [
        Fault("error", "PUT", r"\.parquet", performed=True),
        Fault("expired", "PUT", r"\.parquet", times=99),
    ]
    with pytest.raises(StoreError, match="ExpiredToken"):
        dv.write_table(dv.Table(remote.uri, remote.options), numbers(3), mode="append")
    assert (remote.version(), remote.ids()) == (0, [1, 2])


def test_files_that_are_deleted_before_an_error_are_deleted_again(remote: Remote):
    """A repeated deletion finds no file. After an error, all files that the log needs exist."""
    dv.delete(dv.Table(remote.uri, remote.direct), "id = 1")
    remote.proxy.faults += [
        Fault("error", "POST|DELETE", performed=True),
        Fault("expired", "POST|DELETE", times=99),
    ]
    vacuum = {"retention_hours": 0, "dry_run": False, "enforce_retention_duration": False}
    with pytest.raises(StoreError):
        dv.vacuum(dv.Table(remote.uri, remote.options), **vacuum)
    remote.proxy.clear()
    dv.vacuum(dv.Table(remote.uri, remote.options), **vacuum)
    assert (remote.ids(), len(remote.data_files())) == ([2], 1)


READS: dict[str, tuple[str, str]] = {
    "listing of the log": ("GET", r"\?.*(list-type|comp=list)"),
    "commit": ("GET", FIRST % 1),
    "range of a data file": ("GET", r"\.parquet"),
}


@pytest.mark.parametrize("kind", ["expired", "unauthorized", "invalid", "error", "lost"])
@pytest.mark.parametrize("read", READS)
def test_a_request_that_only_reads_fails_without_an_effect(remote: Remote, read: str, kind: Kind):
    dv.write_table(dv.Table(remote.uri, remote.direct), numbers(3), mode="append")
    before = remote.data_files()
    for operate in (
        lambda: dv.read_table(dv.Table(remote.uri, remote.options)).to_table(),
        lambda: dv.delete(dv.Table(remote.uri, remote.options), "id > 1"),
    ):
        remote.proxy.faults.append(Fault(kind, *READS[read], times=99))
        with pytest.raises(DeltaVariantError) as caught:
            operate()
        assert not isinstance(caught.value, CommitUnknownError)
        remote.proxy.clear()
    assert (remote.version(), remote.ids(), remote.data_files()) == (1, [1, 2, 3], before)
    assert OPERATIONS["delete"][0](dv.Table(remote.uri, remote.options)).version == 2
    assert remote.ids() == [2, 3]
