"""Prepare a write: load the table, validate options, and compute the state after the write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import msgspec

from ..._checks import check_option, check_text, one_or_more, to_integer
from ...data_file.options import WriteOptions
from ...errors import AmbiguousWriteError, ArgumentTypeError, TableExistsError, TableNotFoundError
from ...expressions.tree import Expression
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot
from ...protocol import features, properties
from ...protocol.actions import Txn
from ...protocol.types import StructType
from ...scan.scope import Scope
from ...storage.store import Store
from ...variant.moments import UTC, check_timezone
from ...writer.table_state import TableState, now, restrict_to_table
from .table_state import append_state, create_state, overwrite_state

__all__ = [
    "Mode",
    "Overwrite",
    "PreparedWrite",
    "SchemaMode",
    "TableOptions",
    "Transaction",
    "WriteRequest",
    "application_transaction",
    "application_txn",
    "is_repeated",
    "load_existing",
    "prepare",
]

Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
SchemaMode: TypeAlias = Literal["merge", "overwrite"] | None


@dataclass(frozen=True)
class Transaction:
    """The identity of a write, which makes it idempotent.

    Attributes:
        application: The `txn` action of the application.
        origin: A second `txn` whose id also names the run of the application, because each run counts its
            versions from 0.
        unnamed: The id under which the run commits writes without an application id, None if such a write
            precedes this one.
    """

    application: Txn
    origin: Txn | None = None
    unnamed: str | None = None

    @classmethod
    def of_run(cls, app_id: str, version: int, run: str, unnamed: str | None) -> Transaction:
        """Return the transaction of a write by a run that counts versions by itself."""
        application = application_txn(app_id, version)
        origin = msgspec.structs.replace(application, app_id=f"{app_id}#origin={run}")
        return cls(application, origin, unnamed)


@dataclass(frozen=True)
class TableOptions:
    """The options of a write that concern the table; see `write_table`."""

    partition_by: str | Sequence[str] | None = None
    schema_mode: SchemaMode = None
    configuration: Mapping[str, str] | None = None
    name: str | None = None
    description: str | None = None
    mode: Mode = "error"
    where: str | None = None
    timezone: str = UTC

    def __post_init__(self) -> None:
        """Raise ValueError for invalid options and for options that contradict each other."""
        check_timezone(self.timezone)
        check_option("schema_mode", self.schema_mode, ("merge", "overwrite", None))
        properties.check_texts({} if self.configuration is None else self.configuration)
        for option, text in (("name", self.name), ("description", self.description)):
            if text is not None:
                check_text(option, text)
        for column in self.partition_columns or ():
            check_text("a name in partition_by", column)
        if self.where is not None and not self.overwrite:
            raise ValueError("where requires mode='overwrite': pass both, or neither")
        if self.schema_mode == "overwrite" and (self.where is not None or not self.overwrite):
            raise ValueError("schema_mode='overwrite' requires mode='overwrite' without where")

    @property
    def overwrite(self) -> bool:
        """Return whether the write replaces rows."""
        return self.mode == "overwrite"

    @property
    def partition_columns(self) -> tuple[str, ...] | None:
        """Return the requested partition columns, None to use those of the table."""
        names = self.partition_by
        return None if names is None else one_or_more("names", "partition_by", names)


@dataclass(frozen=True)
class Overwrite:
    """The rows that a write replaces: those for which a predicate is true, None for all."""

    text: str | None
    predicate: Expression | None


@dataclass(frozen=True)
class WriteRequest:
    """The columns of the data and the options, which do not depend on the table."""

    columns: StructType
    options: WriteOptions
    table: TableOptions


@dataclass(frozen=True)
class PreparedWrite:
    """A validated write, whose files can be written.

    Attributes:
        request: The columns of the data and the options.
        store: The store of the table.
        snapshot: The table before the write, None for a new table.
        state: The table after the write.
        options: The options for data files, restricted to what the table allows.
        transaction: The identity of the write.
        overwrite: The rows to replace, None for an append.
        predicate: A predicate that must be true for all written rows.
    """

    request: WriteRequest
    store: Store
    snapshot: Snapshot | None
    state: TableState
    options: WriteOptions
    transaction: Transaction | None
    overwrite: Overwrite | None = None
    predicate: Expression | None = None


def load_existing(store: Store, mode: Mode) -> Snapshot | None:
    """Return the existing table or None; raises TableExistsError if it exists and the mode is `error`."""
    check_option("mode", mode, get_args(Mode))
    try:
        snapshot = load_snapshot(store)
    except TableNotFoundError:
        return None
    if mode == "error":
        raise TableExistsError(
            f"a Delta table already exists at {store.uri}: pass mode='append' or mode='overwrite'",
            table=store.uri,
        )
    return snapshot


def application_transaction(txn: tuple[str, int] | Transaction | None) -> Transaction | None:
    """Return the transaction for the argument `txn`; raises ValueError if it is invalid."""
    if txn is None or isinstance(txn, Transaction):
        return txn
    message = f"txn: expected an application id and a version, such as ('loader', 7), got {txn!r}"
    if not isinstance(txn, tuple | list):
        raise ArgumentTypeError(message)
    if len(txn) != 2:
        raise ValueError(message)
    return Transaction(application_txn(*txn))


def application_txn(app_id: str, version: int) -> Txn:
    """Return a `txn` action; raises ValueError for an invalid id or version."""
    check_text("the application's id in txn", app_id)
    return Txn(app_id=app_id, version=to_integer("the version in txn", version, 0), last_updated=now())


def is_repeated(snapshot: Snapshot, transaction: Transaction) -> bool:
    """Return whether the table already has the version of the transaction or a later one.

    Raises AmbiguousWriteError if another write may have committed that version.
    """
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


def prepare(
    store: Store,
    snapshot: Snapshot | None,
    columns: StructType,
    options: WriteOptions,
    table: TableOptions,
    transaction: Transaction | None = None,
) -> PreparedWrite:
    """Return a prepared write of data with `columns`.

    Raises SchemaError for data that does not fit, UnsupportedFeatureError for a table that this version
    cannot write, ShreddingNotEnabledError, and ExpressionError for an invalid predicate.
    """
    if snapshot is None:
        state = create_state(
            columns,
            table.partition_columns,
            table.configuration,
            table.name,
            table.description,
            options.shredding is not None,
            store.uri,
        )
    elif table.schema_mode == "overwrite":
        state = overwrite_state(snapshot, columns, table.partition_columns, table.configuration)
    else:
        state = append_state(
            snapshot, columns, table.partition_columns, table.configuration, table.schema_mode
        )
    state = replace(state, timezone=table.timezone)
    snapshot = None if snapshot is None else snapshot.in_timezone(table.timezone)
    # Reject unsupported constraints and defaults before files are written.
    state.row_rules().computed_columns([field.name for field in columns.fields])
    return PreparedWrite(
        WriteRequest(columns, options, table),
        store,
        snapshot,
        state,
        restrict_to_table(options, state, store.uri),
        transaction,
        _overwrite(snapshot, table.where) if snapshot is not None and table.overwrite else None,
        Scope.of(state.columns, table.timezone).predicate(table.where),
    )


def _overwrite(snapshot: Snapshot, text: str | None) -> Overwrite:
    predicate = Scope.of(snapshot.schema, snapshot.timezone).predicate(text)
    features.check_may_rewrite(
        snapshot.protocol, snapshot.configuration, snapshot.schema, snapshot.uri, removes_rows=True
    )
    return Overwrite(text, predicate)
