"""The actions of a commit as typed values, and commits as bytes (PROTOCOL.md, "Actions").

Decoding keeps `stats` text verbatim, ignores unknown fields and treats a null field as absent. Encoding omits
null fields, as every Delta writer does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, TypeAlias, TypeVar
from urllib.parse import quote, unquote

import msgspec

from ..errors import MalformedLogError

Line = TypeVar("Line")

CLUSTERING_DOMAIN = "delta.clustering"
"""The domain that names the clustering columns (PROTOCOL.md, "Clustered Table")."""

ROW_TRACKING_DOMAIN = "delta.rowTracking"
"""The domain that records the greatest row id (PROTOCOL.md, "Row Tracking")."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Protocol(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `protocol` action: the versions and table features that readers and writers must support."""

    min_reader_version: Int32
    min_writer_version: Int32
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    def sorted(self) -> Protocol:
        """Return the protocol with sorted features, which is equal for equivalent protocols."""
        reader, writer = (tuple(sorted(each or ())) for each in (self.reader_features, self.writer_features))
        return msgspec.structs.replace(self, reader_features=reader, writer_features=writer)


class Format(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The format of the data files, which is always Parquet."""

    provider: str = "parquet"
    options: dict[str, str] = {}


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `metaData` action: schema text, partition columns and table properties."""

    id: str
    name: str | None = None
    description: str | None = None
    format: Format
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: dict[str, str]
    created_time: Int64 | None = None


class DeletionVector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The descriptor of a deletion vector, which marks deleted rows of one data file."""

    storage_type: str
    path_or_inline_dv: str
    offset: Int32 | None = None
    size_in_bytes: Int32
    cardinality: Int64
    max_row_index: Int64 | None = None

    @property
    def unique_id(self) -> str:
        """Return the `uniqueId`, which identifies a logical file together with its path."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"


ADVANCES_IDENTITIES = "delta.identity.schemaUpdate"
"""The tag of Delta on Spark for commits that `only_advances_identities` describes."""

RESIDUAL_ROWS_TAG = "deltaVariant.residualRows"
"""The tag of files of residual rows: rows that were separated from other files. Its value is `true`."""


def is_residual(tags: Iterable[tuple[str, str | None]] | None) -> bool:
    """Return whether a data file has residual rows of other files, by its tags, as a snapshot has them."""
    return dict(tags or ()).get(RESIDUAL_ROWS_TAG) == "true"


class AddFile(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """The `add` action of a data file; `path` is percent-encoded (see `decode_path`)."""

    path: str
    partition_values: dict[str, str | None]
    size: Int64
    modification_time: Int64
    data_change: bool
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: Int64 | None = None
    default_row_commit_version: Int64 | None = None
    clustering_provider: str | None = None


class RemoveFile(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """The `remove` action of a data file: its tombstone."""

    path: str
    deletion_timestamp: Int64 | None = None
    data_change: bool
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: Int64 | None = None
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: Int64 | None = None
    default_row_commit_version: Int64 | None = None


class CommitInfo(msgspec.Struct, frozen=True):
    """The `commitInfo` action: free-form, so every field is kept as written."""

    fields: dict[str, Any]

    @property
    def operation(self) -> str | None:
        """Return the name of the operation, such as `WRITE`."""
        operation = self.fields.get("operation")
        return operation if isinstance(operation, str) else None

    @property
    def in_commit_timestamp(self) -> int | None:
        """Return the in-commit timestamp in milliseconds since 1970, None if it is absent."""
        timestamp = self.fields.get("inCommitTimestamp")
        return timestamp if type(timestamp) is int else None

    @property
    def only_advances_identities(self) -> bool:
        """Return whether high water marks of identity columns are all that the commit's metadata changes."""
        tags = self.fields.get("tags")
        return isinstance(tags, dict) and tags.get(ADVANCES_IDENTITIES) == "true"


class Txn(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `txn` action: the last version that an application committed."""

    app_id: str
    version: Int64
    last_updated: Int64 | None = None


class DomainMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The `domainMetadata` action of one domain; `removed` marks its tombstone."""

    domain: str
    configuration: str
    removed: bool


class AddCDCFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `cdc` action of a change data file, which is not part of the table's state."""

    path: str
    partition_values: dict[str, str | None]
    size: Int64
    data_change: bool
    tags: dict[str, str | None] | None = None


class CheckpointMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `checkpointMetadata` action, the first one of a V2 checkpoint."""

    version: Int64
    tags: dict[str, str | None] | None = None


class Sidecar(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `sidecar` action: a Parquet file in `_sidecars` with file actions of a V2 checkpoint."""

    path: str
    size_in_bytes: Int64
    modification_time: Int64
    tags: dict[str, str | None] | None = None


Action: TypeAlias = (
    CommitInfo
    | Protocol
    | Metadata
    | AddFile
    | RemoveFile
    | Txn
    | DomainMetadata
    | AddCDCFile
    | CheckpointMetadata
    | Sidecar
)


class _Line(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One line of a commit: an action, keyed by its name."""

    add: AddFile | None = None
    remove: RemoveFile | None = None
    commit_info: dict[str, Any] | None = None
    protocol: Protocol | None = None
    meta_data: Metadata | None = None
    txn: Txn | None = None
    domain_metadata: DomainMetadata | None = None
    cdc: AddCDCFile | None = None
    checkpoint_metadata: CheckpointMetadata | None = None
    sidecar: Sidecar | None = None


_NAMES: dict[type, str] = {
    AddFile: "add",
    RemoveFile: "remove",
    CommitInfo: "commitInfo",
    Protocol: "protocol",
    Metadata: "metaData",
    Txn: "txn",
    DomainMetadata: "domainMetadata",
    AddCDCFile: "cdc",
    CheckpointMetadata: "checkpointMetadata",
    Sidecar: "sidecar",
}


class _InfoLine(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a commit, of which only `commitInfo` is decoded."""

    commit_info: dict[str, Any] | None = None


# msgspec raises RecursionError for JSON that is nested too deeply.
_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_DECODER = msgspec.json.Decoder(_Line)
_INFO_DECODER = msgspec.json.Decoder(_InfoLine)


def _as_text(value: object) -> str:
    """Return a string of a subclass, such as one of NumPy, as a str, which msgspec can encode."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(f"cannot encode {value!r} as JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_as_text)


def decode_commit(data: bytes, name: str) -> list[Action]:
    """Return the actions of the commit file `name` in its order, without those of unknown kinds.

    Raises MalformedLogError with file and line for a line that is not an action, and for a duplicate of an
    action that a commit may contain only once: `metaData`, `protocol`, `commitInfo`, `add` or `remove` of one
    logical file, `txn` of one application, `domainMetadata` of one domain. An empty file is also an error: it
    is a commit that is not completely visible yet.
    """
    actions = _decode_actions(data, name)
    if len({identity(action) for action in actions}) < len(actions):
        raise duplicate_error(data, name)
    return actions


def decode_commit_in_parts(data: bytes, name: str, part_bytes: int) -> Iterator[list[Action]]:
    """Yield the actions of the commit file `name` in lists, of which each decodes about `part_bytes`.

    Raises the errors of `decode_commit`, except for duplicates.
    """
    start = 0
    while start < max(len(data), 1):
        end = data.find(b"\n", start + part_bytes) + 1 or len(data)
        try:
            yield _decode_actions(data[start:end], name)
        except MalformedLogError as error:
            if error.line is not None:
                error.line += data.count(b"\n", 0, start)
            raise
        start = max(end, 1)


def decode_compaction(data: bytes, name: str) -> tuple[list[Action], list[Action]]:
    """Return the actions of the log compaction file `name`, and the later duplicates among them.

    The first list has one action for each reconciliation key: the first one, because writers that do not
    reconcile write the newest action first, and delta-kernel-rs also takes the first. The second list is
    empty for a compaction that follows the specification (PROTOCOL.md, "Log Compaction Files").

    Raises MalformedLogError with file and line for a line that is not an action.
    """
    seen: set[tuple[Any, ...]] = set()
    kept: list[Action] = []
    duplicates: list[Action] = []
    for action in _decode_actions(data, name):
        key = reconciliation_key(action)
        (duplicates if key in seen else kept).append(action)
        if key is not None:
            seen.add(key)
    return kept, duplicates


def decode_commit_info(data: bytes, name: str) -> CommitInfo | None:
    """Return the `commitInfo` of the commit file `name`, None if it is absent.

    Other actions must be JSON, but are not checked. Raises MalformedLogError with file and line for a line
    that is not JSON.
    """
    infos = (line.commit_info for line in _decode_lines(_INFO_DECODER, data, name))
    return next((CommitInfo(fields) for fields in infos if fields is not None), None)


def encode_commit(actions: Iterable[Action]) -> bytes:
    """Return actions as the bytes of a commit file, with one JSON object per line."""
    bodies = ((action, action.fields if isinstance(action, CommitInfo) else action) for action in actions)
    return _ENCODER.encode_lines([{_NAMES[type(action)]: body} for action, body in bodies])


def commit_infos(actions: Iterable[Action]) -> Iterator[CommitInfo]:
    """Yield the commitInfo of a commit, which may lack it."""
    return (action for action in actions if isinstance(action, CommitInfo))


def encode_parameters(parameters: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the `operationParameters` of a commit: strings unchanged, other values as JSON."""
    return {
        name: value if value is None or isinstance(value, str) else _ENCODER.encode(value).decode()
        for name, value in parameters.items()
    }


# Hadoop writes file:/a for file:///a. The syntax is valid in Python and in Arrow, which has no lookahead.
LOCAL_URI = re.compile(r"^(?i:file):(?://(?i:localhost)?(/)|(/(?:[^/]|$)))")
"""The start of the URI of a local file; `LOCAL_ROOT` replaces it by the start of the absolute path."""
LOCAL_ROOT = r"\1\2"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SAFE = "/:@&=+$,;!~*'()"
_ENCODED_BY_HADOOP = re.compile(r"[\0-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


def is_absolute(path: str) -> bool:
    """Return whether a decoded path is absolute, and not relative to the table's root."""
    return path.startswith("/") or _SCHEME.match(path) is not None


def encode_path(path: str) -> str:
    """Return a path percent-encoded once, as the log stores it (RFC 2396): `%` becomes `%25`."""
    if is_absolute(path):
        # delta-spark compares it with the text of Hadoop, which encodes ASCII and blanks alone.
        return _ENCODED_BY_HADOOP.sub(lambda characters: quote(characters[0], _SAFE), path)
    encoded = quote(path, _SAFE)
    # A colon in the first segment of a relative path would make it a URI scheme (RFC 2396, section 5).
    first, slash, rest = encoded.partition("/")
    return first.replace(":", "%3A") + slash + rest


def decode_path(path: str) -> str:
    """Return a path of the log percent-decoded exactly once.

    Raises MalformedLogError for a path that is not UTF-8, or contains a NUL character and cannot be a file.
    """
    try:
        decoded = unquote(path, errors="strict") if "%" in path else path
    except UnicodeDecodeError as error:
        raise MalformedLogError(f"invalid path {path!r}: it is not UTF-8 after percent-decoding") from error
    if "\0" in decoded:
        raise MalformedLogError(f"invalid path {path!r}: it contains a NUL character")
    return decoded


def local_path_of(uri: str) -> str | None:
    """Return the absolute path in the URI of a local file, still percent-encoded; None for any other text."""
    return LOCAL_URI.sub(LOCAL_ROOT, uri, count=1) if LOCAL_URI.match(uri) else None


def path_key(path: str) -> str:
    """Return the normalized spelling of a decoded path: `/a` for `file:/a` and `file:///a`.

    delta-spark qualifies paths before it compares them, and older versions wrote some without a scheme.
    """
    return LOCAL_URI.sub(LOCAL_ROOT, path, count=1) if ":" in path else path


def file_key(action: AddFile | RemoveFile) -> tuple[str, str | None]:
    """Return the path key and the deletion vector id of a logical file (PROTOCOL.md, "Add File")."""
    vector = action.deletion_vector
    return path_key(decode_path(action.path)), None if vector is None else vector.unique_id


def reconciliation_key(action: Action) -> tuple[Any, ...] | None:
    """Return the key by which a newer action replaces an older one (PROTOCOL.md, "Action Reconciliation").

    An `add` and a `remove` of one logical file have the same key. Actions that are not reconciled, such as
    `commitInfo`, have no key: the result is None.
    """
    if isinstance(action, (AddFile, RemoveFile)):
        return "file", *file_key(action)
    if isinstance(action, (Protocol, Metadata, Txn, DomainMetadata)):
        return identity(action)
    return None


def _decode_actions(data: bytes, name: str) -> list[Action]:
    if not data:
        raise MalformedLogError("the file is empty: retry after its writer has finished, or restore it").at(
            file=name
        )
    actions: list[Action] = []
    for number, line in enumerate(_decode_lines(_DECODER, data, name), start=1):
        found = [part for part in msgspec.structs.astuple(line) if part is not None]
        if len(found) > 1:
            line_number = _line_number(data, number)
            raise MalformedLogError("expected one action per line").at(file=name, line=line_number)
        if found:
            actions.append(CommitInfo(found[0]) if isinstance(found[0], dict) else found[0])
    return actions


def _decode_lines(decoder: msgspec.json.Decoder[Line], data: bytes, name: str) -> list[Line]:
    try:
        return decoder.decode_lines(data)
    except _UNDECODABLE as error:
        raise MalformedLogError(str(error)).at(file=name, line=_first_bad_line(decoder, data)) from error


def _first_bad_line(decoder: msgspec.json.Decoder[Line], data: bytes) -> int:
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            decoder.decode_lines(line)
        except _UNDECODABLE:
            return number
    return len(lines)


def _line_number(data: bytes, number: int) -> int:
    """Return the line of the object `number`, both counted from 1: blank lines have no object."""
    lines = (place for place, line in enumerate(data.split(b"\n"), start=1) if line.strip())
    return next(islice(lines, number - 1, None))


def duplicate_error(data: bytes, name: str) -> MalformedLogError:
    """Return an error for the first action of a commit that repeats an earlier one."""
    seen: set[tuple[Any, ...]] = set()
    for number, line in enumerate(data.split(b"\n"), start=1):
        for action in _decode_actions(line, name) if line.strip() else ():
            key = identity(action)
            if key in seen:
                message = f"a commit can have only one {_describe(key)}"
                return MalformedLogError(message).at(file=name, line=number)
            seen.add(key)
    raise AssertionError(f"{name} has no duplicate action")


def identity(action: Action) -> tuple[Any, ...]:
    """Return a key of which a commit may have only one action."""
    if isinstance(action, (AddFile, RemoveFile)):
        return type(action), *file_key(action)
    if isinstance(action, Txn):
        return Txn, action.app_id
    if isinstance(action, DomainMetadata):
        return DomainMetadata, action.domain
    if isinstance(action, (AddCDCFile, Sidecar)):
        return type(action), action.path
    return (type(action),)


def _describe(identity: tuple[Any, ...]) -> str:
    kind, *subject = identity
    return f"{_NAMES[kind]} of {subject[0]}" if subject else _NAMES[kind]
