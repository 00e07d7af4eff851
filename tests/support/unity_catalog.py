"""A Unity Catalog for tests: a small server, or the real one whose URL is in `UNITY_CATALOG_TEST_URL`.

The small server implements the part of the API that the tests need, from its published description
(`api/delta.yaml` of Unity Catalog). The real server must not require authorization, and must keep managed
tables in local files.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.error import HTTPError
from uuid import uuid4

from delta_variant.storage.store import open_store, put_if_absent

REAL_URL = os.environ.get("UNITY_CATALOG_TEST_URL") or None
API = "/api/2.1/unity-catalog"
TOKEN = "secret"
MOST_COMMITS = 10
"""The number of commits that are not published, from which on the server ratifies no more."""

READER_FEATURES = ("catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors")
REQUIRED = {
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointPolicy": "v2",
    "delta.enableDeletionVectors": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
}
FIELDS = (
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "event", "type": "variant", "nullable": True, "metadata": {}},
)

Json = dict[str, Any]
Vend = Callable[[str], tuple[Json, int | None]]
"""Returns the credentials for an operation, and when they expire in milliseconds since 1970."""


class RejectedError(Exception):
    """An answer with an error."""

    def __init__(self, status: int, kind: str, message: str = "rejected") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind

    @property
    def body(self) -> Json:
        return {"error": {"message": str(self), "type": self.kind, "code": self.status, "stack": None}}


@dataclass
class StoredTable:
    """A table of the small server, of which `commits` are not published yet."""

    id: str
    name: str
    location: str
    properties: dict[str, str] = field(default_factory=dict)
    columns: Any = None
    partition_columns: list[str] = field(default_factory=list)
    comment: str | None = None
    latest: int = 0
    commits: list[Json] = field(default_factory=list)
    ratified: dict[int, str] = field(default_factory=dict)

    def describe(self) -> Json:
        return {
            "metadata": {
                "etag": "etag",
                "table-type": "MANAGED",
                "table-uuid": self.id,
                "location": self.location,
                "created-time": 1,
                "updated-time": 1,
                "columns": self.columns,
                "partition-columns": self.partition_columns,
                "properties": self.properties,
            },
            "commits": self.commits[::-1],
            "latest-table-version": self.latest,
        }

    def update(self, request: Json) -> None:
        """Apply all updates of a request, or none."""
        if {"type": "assert-table-uuid", "uuid": self.id} not in request["requirements"]:
            raise RejectedError(409, "UpdateRequirementConflictException")
        updates = {each["action"]: each for each in request["updates"]}
        if len(updates) < len(request["updates"]):
            raise RejectedError(400, "InvalidParameterValueException", "an action occurs twice")
        published = updates.get("set-latest-backfilled-version", {}).get("latest-published-version", -1)
        if published > self.latest:
            raise RejectedError(400, "InvalidParameterValueException", "it is not ratified")
        if "add-commit" in updates and not self._add(updates["add-commit"]["commit"]):
            return
        self.commits = [each for each in self.commits if each["version"] > published]
        self._change_metadata(updates)

    def _add(self, commit: Json) -> bool:
        version, name = commit["version"], commit["file-name"]
        if version <= self.latest:
            if self.ratified.get(version) == name:
                return False
            raise RejectedError(409, "CommitVersionConflictException", f"version {version} exists")
        if version > self.latest + 1 or min(commit["timestamp"], commit["file-size"]) <= 0:
            raise RejectedError(400, "InvalidParameterValueException")
        if len(self.commits) >= MOST_COMMITS:
            raise RejectedError(429, "ResourceExhaustedException", "publish commits first")
        self.latest, self.ratified[version] = version, name
        self.commits.append(commit)
        return True

    def _change_metadata(self, updates: Mapping[str, Json]) -> None:
        for action, each in updates.items():
            if action == "set-properties":
                self.properties.update(each["updates"])
            elif action == "remove-properties":
                for name in each["removals"]:
                    del self.properties[name]
            elif action == "set-columns":
                self.columns = each["columns"]
            elif action == "set-partition-columns":
                self.partition_columns = each["partition-columns"]
            elif action == "set-table-comment":
                self.comment = each["comment"]
            elif action == "set-protocol":
                self.properties.update(features_of(each["protocol"]))
            elif action == "set-domain-metadata":
                mark = each["updates"].get("delta.rowTracking", {}).get("rowIdHighWaterMark")
                if mark is not None:
                    self.properties["delta.rowTracking.rowIdHighWaterMark"] = str(mark)


def features_of(protocol: Json) -> dict[str, str]:
    """Return the properties that follow from a protocol."""
    return {f"delta.feature.{name}": "supported" for name in protocol["writer-features"]}


@dataclass
class Model:
    """The state of the small server."""

    root: str
    tables: dict[str, StoredTable] = field(default_factory=dict)
    staging: dict[str, StoredTable] = field(default_factory=dict)
    vend: Vend | None = None
    lock: Lock = field(default_factory=Lock)

    def handle(self, method: str, path: str, token: str | None, body: Json | None) -> Json:
        """Return the answer to a request; raises RejectedError."""
        if token != f"Bearer {TOKEN}":
            raise RejectedError(401, "NotAuthorizedException", "wrong token")
        path, _, query = path.partition("?")
        parts = path.removeprefix(f"{API}/delta/v1/catalogs/").split("/")
        catalog, _, schema, kind, *rest = parts
        if kind == "staging-tables":
            assert body is not None
            return self._stage(body["name"])
        with self.lock:
            if not rest:
                assert body is not None
                return self._create(f"{catalog}.{schema}", body)
            table = self.tables.get(f"{catalog}.{schema}.{rest[0]}")
            if table is None:
                raise RejectedError(404, "NoSuchTableException", f"Table not found: {rest[0]}")
            if rest[1:] == ["credentials"]:
                return self._credentials(table, query.removeprefix("operation="))
            if method == "DELETE":
                del self.tables[f"{catalog}.{schema}.{rest[0]}"]
                return {}
            if body is not None:
                table.update(body)
            return table.describe()

    def _stage(self, name: str) -> Json:
        table_id = str(uuid4())
        table = StoredTable(table_id, name, f"{self.root}/{table_id}")
        self.staging[table.location] = table
        return {
            "location": table.location,
            "required-protocol": {
                "min-reader-version": 3,
                "min-writer-version": 7,
                "reader-features": list(READER_FEATURES),
                "writer-features": [*READER_FEATURES, "inCommitTimestamp"],
            },
            "required-properties": {**REQUIRED, "io.unitycatalog.tableId": table_id},
        }

    def _create(self, schema: str, body: Json) -> Json:
        table = self.staging.pop(body["location"], None) or StoredTable(
            str(uuid4()), body["name"], body["location"]
        )
        table.columns, table.partition_columns = body["columns"], body["partition-columns"]
        table.properties = {**body["properties"], **features_of(body["protocol"])}
        self.tables[f"{schema}.{body['name']}"] = table
        return table.describe()

    def _credentials(self, table: StoredTable, operation: str) -> Json:
        config, expires = ({}, None) if self.vend is None else self.vend(operation)
        vended = {"prefix": table.location, "operation": operation, "config": config}
        return {"storage-credentials": [{**vended, "expiration-time-ms": expires}]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(content) if content else None
        try:
            status, answer = (
                200,
                self.model.handle(self.command, self.path, self.headers.get("Authorization"), body),
            )
        except RejectedError as rejection:
            status, answer = rejection.status, rejection.body
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - names of http.server

    def log_message(self, *_: Any) -> None:
        pass


@dataclass(frozen=True)
class ManagedTable:
    """A catalog-managed table: its URI, the location of its files, and its id."""

    uri: str
    location: str

    @property
    def root(self) -> Path:
        return Path(self.location.removeprefix("file://"))

    @property
    def published(self) -> list[int]:
        return sorted(int(path.stem) for path in (self.root / "_delta_log").glob("*.json"))

    @property
    def staged(self) -> list[Path]:
        return sorted((self.root / "_delta_log" / "_staged_commits").glob("*.json"))


def copy_without_features(table: ManagedTable, copy: Path, *features: str) -> Path:
    """Copy the published part of a table, without features that an engine rejects by path."""
    shutil.copytree(table.root, copy)
    log = copy / "_delta_log"
    shutil.rmtree(log / "_staged_commits")
    for derived in (*log.glob("*checkpoint*"), *log.glob("*.crc")):
        derived.unlink()
    first = log / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        for name in ("readerFeatures", "writerFeatures"):
            if "protocol" in action:
                listed = action["protocol"][name]
                action["protocol"][name] = [each for each in listed if each not in features]
    first.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    return copy


@dataclass
class Catalog:
    """A running catalog; `model` is the state of the small server, None for the real one."""

    url: str
    model: Model | None

    @property
    def options(self) -> dict[str, str]:
        """Return storage options for the tables of the catalog, with short waits between retries."""
        return {
            "unity_catalog_url": self.url,
            "unity_access_token": TOKEN,
            "backoff_config.init_backoff": "10ms",
        }

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """Return the answer of the catalog to a request."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"{self.url}{API}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read() or b"{}")

    def describe(self, table: ManagedTable) -> Json:
        """Return what the catalog answers about a table."""
        return self.call("GET", f"/delta/v1/catalogs/main/schemas/default/tables/{self._name(table)}")

    def latest(self, table: ManagedTable) -> int:
        return int(self.describe(table)["latest-table-version"])

    def unpublished(self, table: ManagedTable) -> list[int]:
        return sorted(each["version"] for each in self.describe(table)["commits"])

    def drop(self, table: ManagedTable) -> None:
        self.call("DELETE", f"/delta/v1/catalogs/main/schemas/default/tables/{self._name(table)}")

    def create(
        self,
        name: str | None = None,
        fields: Sequence[Json] = FIELDS,
        *,
        features: Sequence[str] = ("variantType",),
        writer_features: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        partition_columns: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
    ) -> ManagedTable:
        """Create an empty catalog-managed table, in the steps that the API documents."""
        name = name or f"t{uuid4().hex}"
        schema_path = "/delta/v1/catalogs/main/schemas/default"
        staged = self.call("POST", f"{schema_path}/staging-tables", {"name": name})
        protocol = staged["required-protocol"]
        protocol["reader-features"] += features
        protocol["writer-features"] += [*features, *writer_features]
        configuration = {**staged["required-properties"], **(properties or {})}
        now = int(time.time() * 1000)
        schema = {"type": "struct", "fields": list(fields)}
        actions = [
            {
                "commitInfo": {
                    "inCommitTimestamp": now,
                    "timestamp": now,
                    "operation": "CREATE TABLE",
                    "operationParameters": {},
                    "txnId": str(uuid4()),
                }
            },
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": protocol["reader-features"],
                    "writerFeatures": protocol["writer-features"],
                }
            },
            {
                "metaData": {
                    "id": str(uuid4()),
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps(schema),
                    "partitionColumns": list(partition_columns),
                    "configuration": configuration,
                    "createdTime": now,
                }
            },
        ]
        content = "".join(f"{json.dumps(action)}\n" for action in actions).encode()
        store = open_store(staged["location"], storage_options)
        put_if_absent(store, f"_delta_log/{0:020d}.json", content)
        self.call(
            "POST",
            f"{schema_path}/tables",
            {
                "name": name,
                "location": staged["location"],
                "table-type": "MANAGED",
                "columns": schema,
                "partition-columns": list(partition_columns),
                "protocol": protocol,
                "properties": configuration,
                "last-commit-timestamp-ms": now,
            },
        )
        return ManagedTable(f"uc://main.default.{name}", staged["location"])

    def _name(self, table: ManagedTable) -> str:
        return table.uri.rpartition(".")[2]


@contextmanager
def unity_catalog(root: str) -> Iterator[Catalog]:
    """Run a catalog that keeps managed tables below a URI, or return the real one."""
    if REAL_URL is not None:
        catalog = Catalog(REAL_URL, None)
        for path, body in (
            ("/catalogs", {"name": "main"}),
            ("/schemas", {"name": "default", "catalog_name": "main"}),
        ):
            # They exist already if other tests have run.
            with suppress(HTTPError):
                catalog.call("POST", path, body)
        yield catalog
        return
    model = Model(root)
    handler = type("Handler", (_Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Catalog(f"http://127.0.0.1:{server.server_port}", model)
    finally:
        server.shutdown()
        server.server_close()
