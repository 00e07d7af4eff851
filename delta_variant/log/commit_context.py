"""What the caller of a commit says about it, which run of the library makes it, and its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, TypeAlias
from uuid import uuid4

import msgspec

from .._checks import check_text, options_of, to_integer
from .._logging import get_logger
from .._version import package_version
from ..errors import AmbiguousWriteError, ArgumentTypeError
from ..protocol.actions import Txn
from .snapshot import Snapshot

_LOGGER = get_logger(__name__)

MAX_TEXT = 40
"""How many characters of a text `repr` prints."""

Clock: TypeAlias = Callable[[], int]
"""Returns the time in milliseconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class CommitContext:
    """Which operation commits, for whom, and when.

    `operation`, `parameters`, `metrics`, `user_metadata` and `engine_info` are fields of `commitInfo`.
    `txn_id` is unique to the commit: a writer recognizes its own commit by it. `clock` returns the time of
    each attempt. `txn` is the application transaction that the commit records, and `origin` a second one,
    which records the run that numbers the versions of `txn`.
    """

    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int | str] = field(default_factory=dict)
    user_metadata: str | None = None
    engine_info: str
    txn_id: str
    clock: Clock
    txn: Txn | None = None
    origin: Txn | None = None

    @property
    def transactions(self) -> Iterator[Txn]:
        return (txn for txn in (self.txn, self.origin) if txn is not None)


@dataclass(frozen=True)
class Transaction:
    """The identity of a write, which makes it idempotent.

    Attributes:
        application: The `txn` action of the application.
        origin: A second `txn` whose id also names the run of the application, because each run counts its
            versions from 0.
        unnamed: The id under which the run commits writes without an application id, None if such a write
            precedes this one.
        query: The id of the streaming query that counts the versions, None for another application.
    """

    application: Txn
    origin: Txn | None = None
    unnamed: str | None = None
    query: str | None = None

    @classmethod
    def of_query(cls, app_id: str, version: int, query: str, unnamed: str | None) -> Transaction:
        """Return the transaction of a write by a streaming query, which counts versions by itself."""
        application = application_txn(app_id, version)
        origin = msgspec.structs.replace(application, app_id=f"{app_id}#origin={query}")
        return cls(application, origin, unnamed, query)


@dataclass(frozen=True)
class CommitOptions:
    """What the commit of an operation records for its caller.

    Attributes:
        txn: An application id and a version that increases with each commit of the application. They make a
            write, delete, update or merge idempotent: it is skipped with a warning if the table already has
            that version or a later one. Other operations reject it.
        metadata: User metadata of the commit: text, or a mapping, which is written as JSON text. It becomes
            `userMetadata` of `commitInfo`, which `DESCRIBE HISTORY` of Spark and `history` show.

    Raises:
        ArgumentTypeError: An option has the wrong type, or a value of `metadata` has no form in JSON.
        ValueError: An option has an invalid value.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import CommitOptions, history, write_table
        >>> table = "events"
        >>> commit = CommitOptions(txn=("loader", 7), metadata={"run": "42"})
        >>> write_table(table, pa.table({"id": [1]}), commit=commit).version
        0
        >>> history(table)[0].metadata
        {'run': '42'}
        >>> write_table(table, pa.table({"id": [1]}), mode="append", commit=commit).repeated
        True
    """

    txn: tuple[str, int] | None = None
    metadata: str | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Raise ArgumentTypeError or ValueError for an invalid option."""
        transaction_of(self)
        if self.user_metadata is not None:
            check_text("metadata", self.user_metadata)

    @property
    def user_metadata(self) -> str | None:
        """Return `metadata` as text, None without it."""
        if self.metadata is None or isinstance(self.metadata, str):
            return self.metadata
        if not isinstance(self.metadata, Mapping):
            raise ArgumentTypeError(f"metadata: expected text or a dict, got {self.metadata!r}")
        try:
            return msgspec.json.encode(dict(self.metadata)).decode()
        except (TypeError, UnicodeError) as error:
            raise ArgumentTypeError(
                f"metadata: cannot write {self.metadata!r} as JSON text: {error}"
            ) from error


def transaction_of(commit: CommitOptions) -> Transaction | None:
    """Return the transaction of a commit; raises ValueError or ArgumentTypeError for an invalid `txn`."""
    txn: Any = commit.txn  # A Transaction if `with_transaction` set it.
    if txn is None or isinstance(txn, Transaction):
        return txn
    message = f"txn: expected an application id and a version, such as ('loader', 7), got {txn!r}"
    if not isinstance(txn, tuple | list):
        raise ArgumentTypeError(message)
    if len(txn) != 2:
        raise ValueError(message)
    return Transaction(application_txn(*txn))


def txn_of(commit: CommitOptions) -> Txn | None:
    """Return the action of the transaction of a commit."""
    transaction = transaction_of(commit)
    return None if transaction is None else transaction.application


def with_transaction(commit: CommitOptions, transaction: Transaction | None) -> CommitOptions:
    """Return the options with a transaction of a run, which users cannot pass."""
    txn: Any = transaction
    return replace(commit, txn=txn)


def without_txn(commit: object, operation: str) -> CommitOptions:
    """Return the options of a commit; raises ValueError for a `txn`, which `operation` does not support."""
    commit = options_of("commit", commit, CommitOptions)
    if commit.txn is not None:
        raise ValueError(f"{operation} does not support txn, which makes changes of rows idempotent: omit it")
    return commit


def application_txn(app_id: str, version: int) -> Txn:
    """Return a `txn` action; raises ValueError for an invalid id or version."""
    check_text("the application's id in txn", app_id)
    return Txn(app_id=app_id, version=to_integer("the version in txn", version, 0), last_updated=now())


def is_repeated(snapshot: Snapshot, transaction: Transaction | None) -> bool:
    """Return whether the table already has the version of the transaction or a later one.

    Logs a warning if so. Raises AmbiguousWriteError if another write may have committed that version.
    """
    if transaction is None or not _has_transaction(snapshot, transaction):
        return False
    _LOGGER.warning(
        "%s: skipped a write because the table already has version %d of the application %r or a later one",
        snapshot.uri,
        transaction.application.version,
        transaction.application.app_id,
    )
    return True


def _has_transaction(snapshot: Snapshot, transaction: Transaction) -> bool:
    application, origin = transaction.application, transaction.origin
    app_id, version = application.app_id, application.version
    if _has(snapshot, app_id, version):
        if origin is not None and not _has(snapshot, origin.app_id, version):
            raise AmbiguousWriteError(
                f"{snapshot.uri}: cannot determine whether the table has version {version} of application "
                f"{app_id!r}, because another run of the application committed version "
                f"{snapshot.txns[app_id].version}, and each run counts from 0 (as a streaming query with a "
                "new checkpoint does); pass another application id",
                table=snapshot.uri,
            )
        return True
    if transaction.unnamed is not None and _has(snapshot, transaction.unnamed, version):
        raise AmbiguousWriteError(
            f"{snapshot.uri}: cannot determine whether the table has write {app_id!r} of batch {version}, "
            "because an earlier run of the batch wrote to the table without an application id; finish the "
            "batch without one, or delete its rows and start the query with a new checkpoint",
            table=snapshot.uri,
        )
    return False


def _has(snapshot: Snapshot, app_id: str, version: int) -> bool:
    known = snapshot.txns.get(app_id)
    return known is not None and known.version >= version


def now() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def commit_context(
    operation: str,
    parameters: Mapping[str, Any] | None = None,
    metrics: Mapping[str, int | str] | None = None,
    commit: CommitOptions | None = None,
) -> CommitContext:
    """Return the context of one commit of this library, with a transaction id of its own.

    `parameters` and `metrics` go to `commitInfo`, and so does the metadata of `commit`. The parameters of a
    micro-batch also have its query and its number, by the names of Delta on Spark.
    """
    commit = commit or CommitOptions()
    transaction = transaction_of(commit)
    batch: dict[str, Any] = {}
    if transaction is not None and transaction.query is not None:
        batch = {"queryId": transaction.query, "epochId": str(transaction.application.version)}
    return CommitContext(
        operation=operation,
        parameters={**(parameters or {}), **batch},
        metrics=metrics or {},
        user_metadata=commit.user_metadata,
        engine_info=f"delta-variant/{package_version()}",
        txn_id=str(uuid4()),
        clock=now,
        txn=None if transaction is None else transaction.application,
        origin=None if transaction is None else transaction.origin,
    )


@dataclass(frozen=True, repr=False)
class CommitResult:
    """The result of an operation that commits to a table.

    Attributes:
        version: The committed version, None if nothing was committed.
        metrics: The metrics of the commit, as `history` returns them, empty without a commit.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> dv.set_properties("clicks", {"owner": "ann"})
        CommitResult(version=1)
    """

    version: int | None
    metrics: Mapping[str, int | str] = field(default_factory=dict, kw_only=True)

    def __repr__(self) -> str:
        parts = [f"version={self.version}"]
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in ("version", "metrics") and (each.default is MISSING or value != each.default):
                parts.append(f"{each.name}={_short(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _short(value: Any) -> str:
    """Return a value as text; a sequence of files or groups as its length."""
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_TEXT else f"…{value[-MAX_TEXT:]}")
    return f"<{len(value)}>" if isinstance(value, Sequence) else repr(value)
