"""Prepare a write: load the table, validate options, and compute the state after the write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from .._checks import check_option, check_text, one_or_more
from ..data_file.options import WriteOptions
from ..errors import TableExistsError, TableNotFoundError
from ..expressions.tree import Expression
from ..log.commit_context import CommitOptions
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..protocol import properties
from ..protocol.types import StructType
from ..read.scope import Scope
from ..storage.store import Store
from ..variant.moments import UTC, check_timezone
from .state_changes import append_state, create_state, overwrite_state
from .table_state import TableState, restrict_to_table

__all__ = [
    "Mode",
    "Overwrite",
    "PreparedWrite",
    "SchemaMode",
    "TableOptions",
    "WriteRequest",
    "load_existing",
    "prepare",
]

Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
SchemaMode: TypeAlias = Literal["merge", "overwrite"] | None


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
        commit: The `txn` and the metadata of the commit.
        overwrite: The rows to replace, None for an append.
        predicate: A predicate that must be true for all written rows.
    """

    request: WriteRequest
    store: Store
    snapshot: Snapshot | None
    state: TableState
    options: WriteOptions
    commit: CommitOptions
    overwrite: Overwrite | None = None
    predicate: Expression | None = None


def load_existing(store: Store, mode: Mode) -> Snapshot | None:
    """Return the existing table or None; raises TableExistsError if it exists and the mode is `error`."""
    check_option("mode", mode, get_args(Mode))
    try:
        snapshot = load_latest(store)
    except TableNotFoundError:
        return None
    if mode == "error":
        raise TableExistsError(
            f"a Delta table already exists at {store.uri}",
            table=store.uri,
            remedies=(("mode", "append"), ("mode", "overwrite")),
        )
    return snapshot


def prepare(
    store: Store,
    snapshot: Snapshot | None,
    columns: StructType,
    options: WriteOptions,
    table: TableOptions,
    commit: CommitOptions,
) -> PreparedWrite:
    """Return a prepared write of data with `columns`.

    Raises SchemaError for data that does not fit, UnsupportedFeatureError for a table that this version
    cannot write, ShreddingNotEnabledError, and ExpressionError for an invalid predicate.
    """
    if snapshot is not None:
        _check_describes(snapshot, table)
    if snapshot is None:
        state = create_state(
            columns,
            table.partition_columns,
            _configuration(options, table),
            table.name,
            table.description,
            options.shredding is not None,
            store.uri,
        )
    elif table.schema_mode == "overwrite":
        state = overwrite_state(snapshot, columns, table.partition_columns)
    else:
        state = append_state(snapshot, columns, table.partition_columns, table.schema_mode)
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
        commit,
        _overwrite(snapshot, table.where) if snapshot is not None and table.overwrite else None,
        Scope.of(state.columns, table.timezone).predicate(table.where),
    )


def _check_describes(snapshot: Snapshot, table: TableOptions) -> None:
    """Raise ValueError for options of a new table that differ from the existing table."""
    for name, text in (table.configuration or {}).items():
        if snapshot.properties.get(name) != text:
            raise ValueError(
                f"configuration: a write to an existing table cannot set {name}={text!r}: omit it, or call "
                "set_properties"
            )
    for option in ("name", "description"):
        existing, requested = getattr(snapshot.metadata, option), getattr(table, option)
        if requested is not None and requested != existing:
            raise ValueError(
                f"{option}: expected that of the existing table, {existing!r}, got {requested!r}: omit it, "
                "because only the write that creates a table sets it"
            )


def _configuration(options: WriteOptions, table: TableOptions) -> Mapping[str, str]:
    """Return the properties of a new table, which remember the readers that its files are for."""
    compatibility = options.files.compatibility
    remembered = {} if compatibility is None else {properties.COMPATIBILITY.name: compatibility}
    return {**remembered, **(table.configuration or {})}


def _overwrite(snapshot: Snapshot, text: str | None) -> Overwrite:
    predicate = Scope.of(snapshot.schema, snapshot.timezone).predicate(text)
    snapshot.configuration.check_may_replace(removes_rows=True)
    return Overwrite(text, predicate)
