"""Commits of tables that a catalog manages (PROTOCOL.md, "Catalog-managed tables").

A commit is staged as a file that no reader of the file system finds, ratified by the catalog, and published
as a copy with the name of its version. The catalog decides on the order of the commits, and lists those that
are not published yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from uuid import uuid4

import msgspec

from .._logging import get_logger
from ..errors import MalformedLogError, ProtocolError, UnsupportedFeatureError, VersionExistsError
from ..protocol import features
from ..protocol.actions import Action, DomainMetadata, Metadata, Protocol, commit_infos
from ..protocol.properties import FEATURE
from ..storage.store import Store, exists, file_info, get_ranges, put, put_if_absent, read, read_if_present
from .listing import commit_file_name, managing_catalog, staged_file_name

if TYPE_CHECKING:
    from ..storage.unity import CatalogTable, RatifiedCommit

_LARGEST_IN_MEMORY = 16 << 20
"""The number of bytes of a staged commit that are in memory at once."""

_LOGGER = get_logger(__name__)

# Properties of the catalog that follow from other actions of the log. No client may set or remove them.
_DERIVED = frozenset(
    {
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        # The description of the API has the first name, the server the second one.
        "delta.clusteringColumns",
        "clusteringColumns",
        "delta.rowTracking.rowIdHighWaterMark",
        "delta.lastUpdateVersion",
        "delta.lastCommitTimestamp",
    }
)
_DOMAINS = {"delta.clustering": "clusteringColumns", "delta.rowTracking": "rowIdHighWaterMark"}
"""The domains that the catalog keeps, and the field of each."""

# The catalog's names of the fields of a nested type.
_TYPE_FIELDS = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}


def is_managed_elsewhere(store: Store, protocol: Protocol) -> bool:
    """Return whether a catalog manages a table that was opened by its location."""
    return features.supports(protocol, features.CATALOG_MANAGED) and managing_catalog(store) is None


def check_access(store: Store, protocol: Protocol) -> None:
    """Raise UnsupportedFeatureError for commits to a catalog-managed table by its location."""
    if is_managed_elsewhere(store, protocol):
        raise UnsupportedFeatureError(
            f"cannot write to {store.uri} because a catalog manages its commits: pass its name, "
            "uc://catalog.schema.table, instead of its location",
            table=store.uri,
        )


def check_maintenance(operation: str, uri: str, protocol: Protocol) -> None:
    """Raise UnsupportedFeatureError for an operation that only the catalog may run on its tables.

    See PROTOCOL.md, "Maintenance Operations on Catalog-managed Tables".
    """
    if features.supports(protocol, features.CATALOG_MANAGED):
        raise UnsupportedFeatureError(
            f"cannot {operation} {uri} because a catalog manages the table: only the catalog may do this",
            table=uri,
        )


def stage_and_ratify(
    store: Store, catalog: CatalogTable, version: int, text: bytes | BinaryIO, actions: Sequence[Action]
) -> None:
    """Write a staged commit, and ask the catalog to ratify it; `actions` are those that are not on files.

    Raises VersionExistsError if another commit has the version, CommitUnknownError if the catalog did not
    answer, and ProtocolError for a commit without an in-commit timestamp. A staged commit that was not
    ratified remains: the catalog may have ratified it even if it answers otherwise to a repeated request.
    """
    timestamp = next((info.in_commit_timestamp for info in commit_infos(actions)), None)
    if timestamp is None:
        raise ProtocolError(
            f"cannot commit to {store.uri} because catalog-managed tables require in-commit timestamps: "
            "set delta.enableInCommitTimestamps=true",
            table=store.uri,
            version=version,
        )
    # Imported here, because most programs use no catalog.
    from ..storage.unity import CommitLimitError, RatifiedCommit

    name = f"{version:020d}.{uuid4()}.json"
    path = staged_file_name(name)
    put(store, path, text)
    file = file_info(store, path)
    commit = RatifiedCommit(version, timestamp, name, file.size, file.modification_time)
    updates = list(_metadata_updates(catalog, actions))
    try:
        catalog.ratify(commit, updates)
    except CommitLimitError as error:
        _LOGGER.info("%s: %s", store.uri, error)
        catalog.refresh()
        publish(store, catalog)
        catalog.ratify(commit, updates)


def publish(store: Store, catalog: CatalogTable) -> None:
    """Publish the commits of the catalog's last answer in order, and report those that are published.

    Raises StoreError if that fails, and MalformedLogError if the log has another file of a version. The
    staged commit remains then, and readers that ask the catalog find it.
    """
    published: int | None = None
    try:
        for commit in sorted(catalog.loaded.commits, key=lambda commit: commit.version):
            _publish_commit(store, commit)
            published = commit.version
    finally:
        if published is not None:
            catalog.report_published(published)


def _publish_commit(store: Store, commit: RatifiedCommit) -> None:
    path = commit_file_name(commit.version)
    with _staged_content(store, commit) as content:
        try:
            put_if_absent(store, path, content)
        except VersionExistsError as error:
            # If another writer has published the commit, the content is the same.
            if not _has_content(store, path, content):
                name = f"{store.uri}/{path}"
                raise MalformedLogError(
                    f"cannot publish version {commit.version} because {name} exists and is not the commit "
                    f"{commit.file_name} that the catalog has ratified; move it out of the log, and the next "
                    "commit publishes this one",
                    table=store.uri,
                    file=name,
                    version=commit.version,
                ) from error


def _has_content(store: Store, path: str, content: bytes | BinaryIO) -> bool:
    """Return whether a file has the content of a staged commit."""
    if isinstance(content, bytes):
        return read_if_present(store, path) == content
    length = content.seek(0, os.SEEK_END)
    content.seek(0)
    return (
        exists(store, path)
        and file_info(store, path).size == length
        and all(
            get_ranges(store, path, [(start, min(start + _LARGEST_IN_MEMORY, length))])[0]
            == content.read(_LARGEST_IN_MEMORY)
            for start in range(0, length, _LARGEST_IN_MEMORY)
        )
    )


@contextmanager
def _staged_content(store: Store, commit: RatifiedCommit) -> Iterator[bytes | BinaryIO]:
    """Yield the content of a staged commit: bytes, or a temporary file for a large one."""
    path = staged_file_name(commit.file_name)
    if commit.file_size <= _LARGEST_IN_MEMORY:
        yield read(store, path)
        return
    with TemporaryFile(prefix="delta-variant-commit-") as file:
        size = file_info(store, path).size
        for start in range(0, size, _LARGEST_IN_MEMORY):
            file.write(get_ranges(store, path, [(start, min(start + _LARGEST_IN_MEMORY, size))])[0])
        file.flush()
        yield cast(BinaryIO, file)


def _metadata_updates(catalog: CatalogTable, actions: Sequence[Action]) -> Iterator[dict[str, Any]]:
    """Yield the changes of what the catalog keeps of a table, from the actions of a commit."""
    domains = [action for action in actions if isinstance(action, DomainMetadata)]
    for action in actions:
        if isinstance(action, Metadata):
            yield from _property_updates(catalog, action)
        elif isinstance(action, Protocol):
            yield {"action": "set-protocol", "protocol": _protocol(action)}
    kept = {each.domain: each for each in domains if each.domain in _DOMAINS}
    values = {
        name: {_DOMAINS[name]: msgspec.json.decode(each.configuration)[_DOMAINS[name]]}
        for name, each in kept.items()
        if not each.removed
    }
    if values:
        yield {"action": "set-domain-metadata", "updates": values}
    if removed := [name for name, each in kept.items() if each.removed]:
        yield {"action": "remove-domain-metadata", "domains": removed}


def _property_updates(catalog: CatalogTable, metadata: Metadata) -> Iterator[dict[str, Any]]:
    present = catalog.loaded.metadata.properties
    changed = {name: text for name, text in metadata.configuration.items() if present.get(name) != text}
    kept = {*metadata.configuration, *_DERIVED}
    removed = [name for name in present if name not in kept and not name.startswith(FEATURE)]
    if changed:
        yield {"action": "set-properties", "updates": changed}
    if removed:
        yield {"action": "remove-properties", "removals": removed}
    yield {"action": "set-columns", "columns": _catalog_type(msgspec.json.decode(metadata.schema_string))}
    yield {"action": "set-partition-columns", "partition-columns": list(metadata.partition_columns)}
    if metadata.description is not None:
        yield {"action": "set-table-comment", "comment": metadata.description}


def _protocol(protocol: Protocol) -> dict[str, Any]:
    return {
        "min-reader-version": protocol.min_reader_version,
        "min-writer-version": protocol.min_writer_version,
        "reader-features": list(protocol.reader_features or ()),
        "writer-features": list(protocol.writer_features or ()),
    }


def _catalog_type(data_type: Any) -> Any:
    """Return a data type of the log's JSON schema as the catalog's API spells it."""
    if not isinstance(data_type, dict):
        return data_type
    if data_type.get("type") == "struct":
        fields = [{**each, "type": _catalog_type(each["type"])} for each in data_type["fields"]]
        return {"type": "struct", "fields": fields}
    return {_TYPE_FIELDS.get(name, name): _catalog_type(value) for name, value in data_type.items()}
