"""Catalog-managed tables of a Unity Catalog, requirement by requirement (PROTOCOL.md, same title).

`UNITY_CATALOG_TEST_URL=http://… pytest tests/log/test_catalog_managed.py` runs them against a real server.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from support.tables import append_events
from support.unity_catalog import (
    FIELDS,
    MOST_COMMITS,
    REAL_URL,
    TOKEN,
    Catalog,
    ManagedTable,
    copy_without_features,
    unity_catalog,
)

import delta_variant as dv
from delta_variant.errors import (
    CommitConflictError,
    CommitUnknownError,
    ProtocolError,
    StoreError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from delta_variant.log import catalog as log_catalog
from delta_variant.log import pending_commit
from delta_variant.storage import unity
from delta_variant.storage.store import open_store

model_only = pytest.mark.skipif(REAL_URL is not None, reason="a real server has no such fault")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with unity_catalog(f"file://{tmp_path_factory.mktemp('warehouse')}") as catalog:
        yield catalog


@pytest.fixture
def table(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> ManagedTable:
    """Return a new table, with the location of its catalog in the environment."""
    monkeypatch.setenv("UNITY_CATALOG_URL", catalog.url)
    monkeypatch.setenv("UNITY_ACCESS_TOKEN", TOKEN)
    return catalog.create()


def ids(table: Any, **options: Any) -> list[int]:
    rows = dv.read_table(table, columns=["id"], **options).to_table()
    return sorted(rows["id"].to_pylist())


@pytest.fixture
def unpublished(table: ManagedTable, monkeypatch: pytest.MonkeyPatch) -> ManagedTable:
    """Return a table with one published version and two that are only ratified."""
    append_events(table.uri, ["1"], first=1)
    with monkeypatch.context() as patched:
        patched.setattr(log_catalog, "publish", lambda *_: None)
        append_events(table.uri, ["2"], first=2)
        append_events(table.uri, ["3"], first=3)
    return table


# Commits


def test_a_commit_is_staged_ratified_and_published(catalog, table):
    append_events(table.uri, ['{"n": 1}'])
    (staged,) = table.staged
    assert staged.name.startswith(f"{1:020d}.")
    assert (table.root / "_delta_log" / f"{1:020d}.json").read_bytes() == staged.read_bytes()
    assert (catalog.latest(table), catalog.unpublished(table)) == (1, [])


def test_a_commit_has_a_transaction_id_and_an_in_commit_timestamp(table):
    append_events(table.uri, ["1"])
    info = json.loads(table.staged[0].read_text().splitlines()[0])["commitInfo"]
    assert info["txnId"]
    assert info["inCommitTimestamp"] > 0


def test_a_large_commit_is_staged_from_a_temporary_file(catalog, table, monkeypatch):
    monkeypatch.setattr(pending_commit, "_LARGEST_IN_MEMORY", 0)
    append_events(table.uri, ["1"], first=1)
    dv.delete(table.uri, "id = 1")
    assert (catalog.latest(table), ids(table.uri)) == (2, [])
    staged = [path.read_text().splitlines() for path in table.staged]
    assert [[next(iter(json.loads(line))) for line in lines] for lines in staged] == [
        ["commitInfo", "add"],
        ["commitInfo", "remove"],
    ]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_large_commit_is_published_in_pieces(catalog, table, monkeypatch, size):
    monkeypatch.setattr(log_catalog, "_LARGEST_IN_MEMORY", size)
    append_events(table.uri, ["1"], first=1)
    (staged,) = table.staged
    assert (table.root / "_delta_log" / f"{1:020d}.json").read_bytes() == staged.read_bytes()
    assert catalog.unpublished(table) == []


def test_every_operation_commits_through_the_catalog(catalog, table):
    handle = dv.Table(table.uri)
    append_events(handle, [f'{{"n": {number}}}' for number in range(6)])
    dv.delete(handle, "id = 0")
    dv.update(handle, {"id": "id + 100"}, where="id = 1")
    source = pa.table({"id": [2, 50], "event": pa.array(['{"n": 2}', '{"n": 50}'], pa.json_())})
    handle.merge(
        source, "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_delete().when_not_matched_insert_all().execute()
    dv.set_properties(handle, {"owner": "us"})
    dv.restore(handle, version=3)
    assert ids(handle) == [2, 3, 4, 5, 101]
    append_events(handle, ["7"], first=7)
    dv.write_table(handle, [{"id": 9}], mode="overwrite")
    assert ids(handle) == [9]
    assert catalog.latest(table) == dv.load_snapshot(handle).version == 8
    assert table.published == list(range(9))
    assert len(table.staged) == 8


def test_a_concurrent_commit_is_found_and_not_overwritten(catalog, table, monkeypatch):
    ratify = unity.CatalogTable.ratify

    def after_another(self: unity.CatalogTable, *arguments: Any) -> Any:
        monkeypatch.setattr(unity.CatalogTable, "ratify", ratify)
        append_events(table.uri, ["1"], first=1)
        return ratify(self, *arguments)

    monkeypatch.setattr(unity.CatalogTable, "ratify", after_another)
    append_events(table.uri, ["2"], first=2)
    assert ids(table.uri) == [1, 2]
    assert catalog.latest(table) == 2


def test_a_concurrent_commit_that_conflicts_fails_the_commit(catalog, table, monkeypatch):
    append_events(table.uri, ["1"], first=1)
    ratify = unity.CatalogTable.ratify

    def after_another(self: unity.CatalogTable, *arguments: Any) -> Any:
        monkeypatch.setattr(unity.CatalogTable, "ratify", ratify)
        dv.delete(table.uri, "id = 1")
        return ratify(self, *arguments)

    monkeypatch.setattr(unity.CatalogTable, "ratify", after_another)
    with pytest.raises(CommitConflictError, match="concurrent version 2 removed"):
        dv.update(table.uri, {"id": "id + 1"}, where="id = 1")
    assert catalog.latest(table) == 2


def test_commits_that_are_not_published_are_before_the_catalog_ratifies_no_more(catalog, table, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(log_catalog, "publish", lambda *_: None)
        for number in range(MOST_COMMITS):
            append_events(table.uri, ["1"], first=number)
    assert catalog.unpublished(table) == list(range(1, MOST_COMMITS + 1))
    append_events(table.uri, ["1"], first=MOST_COMMITS)
    assert table.published == list(range(MOST_COMMITS + 2))
    assert catalog.unpublished(table) == []
    assert ids(table.uri) == list(range(MOST_COMMITS + 1))


def test_a_commit_that_cannot_be_published_succeeds_and_the_next_one_publishes_it(
    catalog, table, monkeypatch, caplog
):
    def fail(*_: Any) -> None:
        raise StoreError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(log_catalog, "publish", fail)
        append_events(table.uri, ["1"], first=1)
    assert "the publication of version 1 was not completed" in caplog.text
    assert (table.published, catalog.unpublished(table), ids(table.uri)) == ([0], [1], [1])
    append_events(table.uri, ["2"], first=2)
    assert (table.published, catalog.unpublished(table), ids(table.uri)) == ([0, 1, 2], [], [1, 2])


def test_a_version_that_is_not_published_gets_no_checkpoint(catalog, monkeypatch, table):
    dv.set_properties(table.uri, {"delta.checkpointInterval": "1"})
    checkpoints = lambda: len(list((table.root / "_delta_log").glob("*.checkpoint.*")))  # noqa: E731
    assert checkpoints() == 1

    def fail(*_: Any) -> None:
        raise StoreError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(log_catalog, "publish", fail)
        append_events(table.uri, ["1"])
    assert checkpoints() == 1
    append_events(table.uri, ["2"])
    assert checkpoints() == 2


def test_a_commit_without_an_in_commit_timestamp_is_rejected(catalog, table):
    with pytest.raises(ProtocolError, match="require in-commit timestamps"):
        dv.set_properties(table.uri, {"delta.enableInCommitTimestamps": "false"})
    assert (catalog.latest(table), table.staged) == (0, [])


# Metadata in the catalog


def test_the_catalog_gets_changes_of_properties_columns_and_features(catalog, table):
    dv.set_properties(table.uri, {"owner": "us", "delta.appendOnly": "true"})
    append_events(table.uri, ["1"], columns={"tags": [[{"a": 1.5}]]}, schema_mode="merge")
    dv.unset_properties(table.uri, ["owner"])
    metadata = catalog.describe(table)["metadata"]
    assert "owner" not in metadata["properties"]
    assert metadata["properties"]["delta.appendOnly"] == "true"
    assert metadata["properties"]["delta.feature.appendOnly"] == "supported"
    assert metadata["properties"]["io.unitycatalog.tableId"] == metadata["table-uuid"]
    element = {
        "type": "struct",
        "fields": [{"name": "a", "type": "double", "nullable": True, "metadata": {}}],
    }
    assert metadata["columns"]["fields"][-1] == {
        "name": "tags",
        "type": {"type": "array", "element-type": element, "contains-null": True},
        "nullable": True,
        "metadata": {},
    }


@model_only
@pytest.mark.parametrize("name", ["delta.clusteringColumns", "clusteringColumns", "delta.feature.clustering"])
def test_properties_that_the_catalog_derives_remain(catalog, table, name):
    stored = catalog.model.tables[table.uri.removeprefix("uc://")]
    stored.properties.update({name: "derived", "old": "of an earlier version"})
    dv.set_properties(table.uri, {"owner": "us"})
    assert stored.properties[name] == "derived"
    assert "old" not in stored.properties


def test_the_catalog_gets_the_high_water_mark_of_row_ids(catalog, table):
    table = catalog.create(
        writer_features=("rowTracking", "domainMetadata"),
        properties={
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": "_row_id",
            "delta.rowTracking.materializedRowCommitVersionColumnName": "_row_version",
        },
    )
    append_events(table.uri, ["1", "2", "3"])
    properties = catalog.describe(table)["metadata"]["properties"]
    assert properties["delta.rowTracking.rowIdHighWaterMark"] == "2"


# Reads


def test_a_snapshot_has_the_commits_that_are_not_published(catalog, unpublished):
    assert (unpublished.published, catalog.unpublished(unpublished)) == ([0, 1], [2, 3])
    assert ids(unpublished.uri) == [1, 2, 3]
    assert ids(unpublished.uri, version=2) == [1, 2]
    assert [entry.version for entry in dv.history(unpublished.uri)] == [3, 2, 1, 0]
    assert dv.audit_table(unpublished.uri).findings == ()


def test_a_version_that_the_catalog_does_not_have_is_ignored(table):
    append_events(table.uri, ["1"], first=1)
    log = table.root / "_delta_log"
    (log / f"{2:020d}.json").write_bytes((log / f"{1:020d}.json").read_bytes())
    assert dv.load_snapshot(table.uri).version == 1
    assert dv.load_snapshot(table.root).version == 2


def test_the_commit_of_the_catalog_precedes_the_published_one(unpublished):
    # The content of both is the same, unless another client violates the protocol.
    (unpublished.root / "_delta_log" / f"{3:020d}.json").write_text('{"not": "the commit"}')
    assert ids(unpublished.uri) == [1, 2, 3]


def test_a_published_version_that_is_missing_is_reported(catalog, table):
    append_events(table.uri, ["1"])
    (table.root / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(dv.MalformedLogError, match="the catalog says that version 1 is published"):
        dv.load_snapshot(table.uri)


def test_a_handle_refreshes_from_staged_to_published_commits(catalog, unpublished):
    handle = dv.Table(unpublished.uri)
    assert ids(handle) == [1, 2, 3]
    append_events(unpublished.uri, ["4"], first=4)
    assert unpublished.published == [0, 1, 2, 3, 4]
    assert ids(handle) == [1, 2, 3, 4]


def test_a_handle_reads_a_table_that_replaced_another(catalog, table):
    handle = dv.Table(table.uri)
    append_events(handle, ["1"], first=1)
    assert ids(handle) == [1]
    catalog.drop(table)
    catalog.create(table.uri.rpartition(".")[2])
    append_events(table.uri, ["2"], first=2)
    assert ids(handle) == [2]


def test_an_open_store_rejects_a_table_that_replaced_another(catalog, table):
    store = open_store(table.uri)
    catalog.drop(table)
    catalog.create(table.uri.rpartition(".")[2])
    with pytest.raises(TableNotFoundError, match="was dropped and another table has its name"):
        dv.load_snapshot(store)


def test_time_travel_uses_in_commit_timestamps(unpublished):
    times = [entry.timestamp for entry in dv.history(unpublished.uri)]
    for version, time in zip((3, 2, 1, 0), times, strict=True):
        assert dv.load_snapshot(unpublished.uri, timestamp=time).version == version


# The file system


def test_the_location_has_the_published_versions_for_readers(unpublished, caplog):
    assert ids(unpublished.root) == [1]
    assert "version 1 is the latest that it has published" in caplog.text
    caplog.clear()
    assert ids(unpublished.uri) == [1, 2, 3]
    assert not caplog.text
    assert dv.load_snapshot(unpublished.location).version == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda root: append_events(root, ["1"]),
        lambda root: dv.write_table(root, [{"id": 1}], mode="overwrite"),
        lambda root: dv.delete(root, "id = 1"),
        lambda root: dv.update(root, {"id": "1"}),
        lambda root: dv.set_properties(root, {"owner": "us"}),
        lambda root: dv.restore(root, version=0),
    ],
)
def test_a_write_to_the_location_is_rejected(unpublished, write):
    files = sorted(unpublished.root.rglob("*"))
    with pytest.raises(UnsupportedFeatureError, match="pass its name, uc://") as caught:
        write(unpublished.root)
    assert caught.value.table == str(unpublished.root)
    assert sorted(unpublished.root.rglob("*")) == files


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("operation", [dv.vacuum, dv.clean_up_log, dv.optimize])
def test_maintenance_is_left_to_the_catalog(table, operation, by_name):
    where = table.uri if by_name else table.root
    with pytest.raises(UnsupportedFeatureError, match=r"only the catalog may|pass its name"):
        operation(where)


def test_a_checkpoint_does_not_clean_the_log(table, monkeypatch):
    called: list[Any] = []
    monkeypatch.setattr("delta_variant.log.cleanup.find_expired", lambda *each: called.append(each))
    dv.set_properties(table.uri, {"delta.checkpointInterval": "1"})
    append_events(table.uri, ["1"])
    assert not called


def test_a_client_cannot_add_the_feature(tmp_path):
    dv.write_table(tmp_path / "plain", [{"id": 1}])
    with pytest.raises(UnsupportedFeatureError, match="a catalog must create the table with it"):
        dv.set_properties(tmp_path / "plain", {"delta.feature.catalogManaged": "supported"})


# The URI, the URL and the token


def test_options_precede_the_environment(catalog, table, monkeypatch):
    monkeypatch.setenv("UNITY_CATALOG_URL", "http://127.0.0.1:1")
    append_events(dv.Table(table.uri, catalog.options), ["1"])
    assert ids(dv.Table(table.uri, catalog.options)) == [0]


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("UNITY_CATALOG_URL", "UNITY_ACCESS_TOKEN"),
        ("UNITY_WORKSPACE_URL", "DATABRICKS_ACCESS_TOKEN"),
        ("DATABRICKS_HOST", "DATABRICKS_TOKEN"),
        ("DATABRICKS_WORKSPACE_URL", "DATABRICKS_TOKEN"),
    ],
)
def test_the_names_of_other_clients_are_accepted(catalog, table, monkeypatch, url, token):
    monkeypatch.delenv("UNITY_CATALOG_URL")
    monkeypatch.delenv("UNITY_ACCESS_TOKEN")
    monkeypatch.setenv(url, catalog.url)
    monkeypatch.setenv(token, TOKEN)
    assert ids(table.uri) == []


@pytest.mark.parametrize("uri", ["uc://main.default", "uc://t", "uc://a.b.c.d", "uc://a..c", "uc://"])
def test_an_invalid_uri_is_rejected(table, uri):
    with pytest.raises(StoreError, match=r"expected uc://catalog\.schema\.table"):
        dv.load_snapshot(uri)


@pytest.mark.parametrize("name", ["main.default.nothing", "main.nothing.t", "nothing.default.t"])
def test_a_table_that_the_catalog_does_not_have_is_not_found(table, name):
    with pytest.raises(TableNotFoundError, match=f"there is no table uc://{name}") as caught:
        dv.write_table(f"uc://{name}", [{"id": 1}])
    assert caught.value.table == f"uc://{name}"


def test_a_missing_url_is_reported(table, monkeypatch):
    monkeypatch.delenv("UNITY_CATALOG_URL")
    with pytest.raises(StoreError, match=r"set the storage option unity_catalog_url or .* UNITY_CATALOG_URL"):
        dv.load_snapshot(table.uri)


@pytest.mark.parametrize(
    "url", ["http://catalog.example", "ftp://catalog.example", "http://127.0.0.1.example"]
)
def test_a_token_is_not_sent_without_encryption(table, url):
    with pytest.raises(StoreError, match="not an https:// URL"):
        dv.load_snapshot(dv.Table(table.uri, {"unity_catalog_url": url}))


@model_only
def test_a_wrong_token_is_reported_and_not_repeated_in_the_message(catalog, table):
    with pytest.raises(StoreError, match="NotAuthorizedException: wrong token") as caught:
        dv.load_snapshot(dv.Table(table.uri, {"unity_access_token": "not-the-token"}))
    assert "not-the-token" not in str(caught.value)


def test_a_redirect_is_not_followed(table):
    """The server of the redirect would get the token."""
    received: list[str | None] = []

    class Redirect(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Redirect) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(StoreError, match="HTTP status 302"):
            dv.load_snapshot(dv.Table(table.uri, {"unity_catalog_url": url}))
        server.shutdown()
    assert len(received) == 1


def test_a_catalog_that_does_not_answer_is_reported(table):
    options = {"unity_catalog_url": "http://127.0.0.1:1", "max_retries": "1"}
    with pytest.raises(StoreError, match=r"the request to the catalog failed: .*[Rr]efused"):
        dv.load_snapshot(dv.Table(table.uri, options))


# Answers that are lost


@model_only
def test_a_commit_without_any_answer_is_unknown(catalog, table, monkeypatch):
    send = unity._send

    def fail(request: Any, answer: Any) -> Any:
        if request.method == "POST" or failing == ["all"]:
            failing[:] = ["all"]
            raise unity._RequestError("the connection was closed")
        return send(request, answer)

    failing: list[str] = []
    monkeypatch.setattr(unity, "_send", fail)
    with pytest.raises(CommitUnknownError):
        append_events(dv.Table(table.uri, {"max_retries": "1", **catalog.options}), ["1"])
    monkeypatch.setattr(unity, "_send", send)
    assert ids(table.uri) == []


@model_only
@pytest.mark.parametrize("repeats", [0, 1])
def test_a_lost_answer_commits_once(catalog, table, monkeypatch, repeats):
    """Without repetition of the request, the commit is found in the log."""
    send = unity._send
    lost: list[int] = []

    def lose(request: Any, answer: Any) -> Any:
        found = send(request, answer)
        if b"add-commit" in (request.data or b"") and not lost:
            lost.append(1)
            raise unity._RequestError("the connection was closed")
        return found

    monkeypatch.setattr(unity, "_send", lose)
    append_events(dv.Table(table.uri, {**catalog.options, "max_retries": str(repeats)}), ["1"])
    assert lost
    assert (ids(table.uri), catalog.latest(table), table.published) == ([0], 1, [0, 1])


def test_few_requests_are_sent(table, monkeypatch):
    append_events(table.uri, ["1"])
    sent: list[str] = []
    send = unity._send

    def count(request: Any, answer: Any) -> Any:
        sent.append(request.method)
        return send(request, answer)

    monkeypatch.setattr(unity, "_send", count)
    assert ids(table.uri) == [0]
    assert sent == ["GET", "GET"]
    sent.clear()
    append_events(table.uri, ["1"])
    assert sent == ["GET", "GET", "POST", "POST"]


def test_a_table_whose_commits_the_catalog_does_not_manage_is_opened_by_name(catalog, tmp_path, table):
    dv.write_table(tmp_path / "external", [{"id": 1}])
    body = {
        "name": f"external_{uuid4().hex}",
        "location": f"file://{tmp_path / 'external'}",
        "table-type": "EXTERNAL",
        "columns": {
            "type": "struct",
            "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
        },
        "partition-columns": [],
        "protocol": {"min-reader-version": 1, "min-writer-version": 2, "writer-features": []},
        "properties": {},
        "last-commit-timestamp-ms": 1,
    }
    catalog.call("POST", "/delta/v1/catalogs/main/schemas/default/tables", body)
    uri = f"uc://main.default.{body['name']}"
    dv.write_table(uri, [{"id": 2}], mode="append")
    assert ids(uri) == ids(tmp_path / "external") == [1, 2]
    assert not (tmp_path / "external" / "_delta_log" / "_staged_commits").exists()


def test_paths_stay_within_the_catalog_s_location(table):
    store = open_store(table.uri)
    assert store.uri == table.uri
    assert store.local_root == Path(table.root)


# Credentials


AZURE = {"azure.sas-token": "sv=1&sig=a%3D", "s3.access-key-id": None}
S3 = {"s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.session-token": "t"}


@model_only
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (S3, {"access_key_id": "k", "secret_access_key": "s", "token": "t"}),
        (AZURE, {"sas_token": "sv=1&sig=a%3D"}),
        ({"gcs.oauth-token": "o"}, {"token": "o"}),
    ],
)
@pytest.mark.parametrize("expires", [1_800_000_000_000, None])
def test_credentials_of_each_cloud(catalog, table, monkeypatch, config, expected, expires):
    monkeypatch.setattr(catalog.model, "vend", lambda operation: (config, expires))
    store = open_store(table.uri)
    assert store.catalog is not None
    found = dict(store.catalog.credentials())
    expires_at = found.pop("expires_at")
    assert found == expected
    assert (None if expires_at is None else expires_at.timestamp() * 1000) == expires


@model_only
@pytest.mark.parametrize(
    "location", ["s3://bucket/t", "abfss://c@account.dfs.core.windows.net/t", "gs://bucket/t"]
)
def test_a_store_gets_its_credentials_from_the_catalog(catalog, table, monkeypatch, location):
    stored = catalog.model.tables[table.uri.removeprefix("uc://")]
    monkeypatch.setattr(stored, "location", location)
    store = open_store(table.uri, {"aws_region": "us-east-1"} if location.startswith("s3") else None)
    assert (store.uri, store.local_root) == (table.uri, None)
    copy = pickle.loads(pickle.dumps(store))
    for each in (store, copy):
        assert each.objects.store.credential_provider == each.catalog.credentials
    assert TOKEN not in repr(store)


# Other engines


def test_deltalake_reads_what_was_published(catalog, table, tmp_path):
    """deltalake rejects the feature by path. Without it, the published log is that of any table."""
    table = catalog.create(fields=FIELDS[:1], features=())
    for number in range(12):
        dv.write_table(table.uri, [{"id": number}], mode="append")
    dv.delete(table.uri, "id = 0")
    copy = copy_without_features(table, tmp_path / "copy", "catalogManaged", "vacuumProtocolCheck")
    opened = DeltaTable(str(copy))
    assert opened.version() == 13
    rows = pa.table(QueryBuilder().register("t", opened).execute("SELECT id FROM t"))
    assert sorted(rows["id"].to_pylist()) == list(range(1, 12))
