"""Prepare a write: load the table, validate options, and compute the table after the write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from .._checks import check_option, check_text, list_names, one_or_more
from ..data_file.options import WriteOptions
from ..errors import (
    SchemaError,
    ShreddingNotEnabledError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from ..execution import Description
from ..expressions.tree import Expression
from ..log.commit_context import CommitOptions
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..protocol import properties
from ..protocol.schema.column_mapping import physical_name
from ..protocol.statistics import Path
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import VARIANT, StructType, sql_type
from ..read.scan_rows import describe_matches
from ..read.scope import Scope
from ..storage.store import Store
from ..variant.moments import UTC, check_timezone
from ..variant.shredding import ShreddingSchema
from . import table_changes
from .row_rules import RowRules

Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
SchemaMode: TypeAlias = Literal["merge", "overwrite"] | None
PartitionOverwriteMode: TypeAlias = Literal["static", "dynamic"]
"""Which rows an overwrite without a predicate replaces: all, or those of the partitions of the data."""


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
    partition_overwrite_mode: PartitionOverwriteMode = "static"

    def __post_init__(self) -> None:
        """Raise ValueError for invalid options and for options that contradict each other."""
        check_timezone(self.timezone)
        check_option("schema_mode", self.schema_mode, ("merge", "overwrite", None))
        modes = get_args(PartitionOverwriteMode)
        check_option("partition_overwrite_mode", self.partition_overwrite_mode, modes)
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
        if self.is_dynamic and (
            not self.overwrite or self.where is not None or self.schema_mode == "overwrite"
        ):
            raise ValueError(
                "partition_overwrite_mode='dynamic' requires mode='overwrite' without where and without "
                "schema_mode='overwrite'"
            )

    @property
    def overwrite(self) -> bool:
        """Return whether the write replaces rows."""
        return self.mode == "overwrite"

    @property
    def is_dynamic(self) -> bool:
        """Return whether the write replaces the partitions that the data has."""
        return self.partition_overwrite_mode == "dynamic"

    @property
    def partition_columns(self) -> tuple[str, ...] | None:
        names = self.partition_by
        return None if names is None else one_or_more("names", "partition_by", names)


@dataclass(frozen=True)
class WriteRequest:
    """The columns of the data and the options, which do not depend on the table."""

    columns: StructType
    options: WriteOptions
    table: TableOptions

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.columns.fields]


@dataclass(frozen=True)
class WritePlan:
    """A validated write, whose files can be written, of a table that is None before if it is new.

    `options` are those for data files, restricted to what the table allows.
    """

    request: WriteRequest
    store: Store
    snapshot: Snapshot | None
    after: TableConfiguration
    options: WriteOptions
    commit: CommitOptions

    @property
    def replaces(self) -> bool:
        """Return whether rows of a table that exists are replaced."""
        return self.snapshot is not None and self.request.table.overwrite

    def replaced_rows(self, snapshot: Snapshot) -> Expression | None:
        """Return the predicate of the rows that are replaced, None for all. Raises ExpressionError."""
        return Scope.of(snapshot.configuration).predicate(self.request.table.where)

    def predicate(self) -> Expression | None:
        """Return the predicate that must be true for all written rows, or None. Raises ExpressionError."""
        return Scope.of(self.after).predicate(self.request.table.where)

    def describe(self) -> Description:
        """Return what happens to the table, and its columns if they change; the data is not read."""
        described, snapshot = self._describe_rows(), self.snapshot
        if snapshot is not None and self.after.metadata == snapshot.metadata:
            return described
        columns = [{"name": each.name, "type": sql_type(each.type)} for each in self.after.schema.fields]
        partitions = self.after.partition_columns
        lines = [f"  {each['name']} {each['type']}" for each in columns]
        lines += [f"  partitioned by {', '.join(partitions)}"] if partitions else []
        facts = {**described.facts, "columns": columns, "partition_columns": partitions}
        return Description((*described.sentences, *lines), facts)

    def _describe_rows(self) -> Description:
        snapshot, table = self.snapshot, self.request.table
        if snapshot is None:
            return Description(("create the table",), {"version": None})
        if self.replaces and table.is_dynamic:
            sentence = f"version {snapshot.version}, replace the rows of the partitions that the data has"
            return Description((sentence,), {"version": snapshot.version})
        if self.replaces:
            return describe_matches(snapshot, "replace", table.where, self.replaced_rows(snapshot))
        appended = "append rows" if table.mode != "ignore" else "write nothing because the table exists"
        return Description((f"version {snapshot.version}, {appended}",), {"version": snapshot.version})


def load_existing(
    store: Store,
    mode: Mode,
    remedies: tuple[tuple[str, object], ...] = (("mode", "append"), ("mode", "overwrite")),
) -> Snapshot | None:
    """Return the existing table or None; raises TableExistsError if it exists and the mode is `error`.

    `remedies` are the arguments with which the called function accepts the table.
    """
    check_option("mode", mode, get_args(Mode))
    try:
        snapshot = load_latest(store)
    except TableNotFoundError:
        return None
    if mode == "error":
        raise TableExistsError(
            f"a Delta table already exists at {store.uri}"
            + ("" if remedies else ": choose another location"),
            table=store.uri,
            remedies=remedies,
        )
    return snapshot


def plan_write(
    store: Store, snapshot: Snapshot | None, request: WriteRequest, commit: CommitOptions
) -> WritePlan:
    """Return a prepared write to an existing or a new table.

    Raises SchemaError for data that does not fit, UnsupportedFeatureError for a table that this version
    cannot write, ShreddingNotEnabledError, and ExpressionError for an invalid predicate.
    """
    columns, options, table = request.columns, request.options, request.table
    if snapshot is not None and table.mode == "ignore":
        return WritePlan(request, store, snapshot, snapshot.configuration, options, commit)
    if snapshot is not None:
        _check_describes(snapshot, table)
    if snapshot is None:
        after = table_changes.create(
            columns,
            table.partition_columns,
            _configuration(options, table),
            table.name,
            table.description,
            options.shredding is not None,
            store.uri,
        )
    elif table.schema_mode == "overwrite":
        after = table_changes.overwrite(snapshot, columns, table.partition_columns)
    else:
        after = table_changes.extend(
            snapshot.configuration, columns, table.partition_columns, table.schema_mode
        )
    if table.is_dynamic and not after.partition_columns:
        raise ValueError(
            f"cannot replace partitions of {store.uri} because the table has none: omit "
            "partition_overwrite_mode, or pass where"
        )
    after = replace(after, timezone=table.timezone)
    snapshot = None if snapshot is None else snapshot.in_timezone(table.timezone)
    # Reject unsupported constraints and defaults before files are written.
    RowRules.of(after).computed_columns(request.names)
    table_changes.check_given(after, request.names)
    write = WritePlan(request, store, snapshot, after, restrict_to_table(options, after), commit)
    # Reject invalid predicates, too.
    if snapshot is not None and write.replaces:
        write.replaced_rows(snapshot)
        snapshot.configuration.check_may_replace(removes_rows=True)
    write.predicate()
    return write


def _check_describes(snapshot: Snapshot, table: TableOptions) -> None:
    """Raise ValueError for options of a new table that differ from the existing table."""
    for name, text in (table.configuration or {}).items():
        if snapshot.properties.get(name) != text:
            raise ValueError(
                f"a write to an existing table cannot set the property {name}={text!r}: omit it, or alter "
                "the table (set_properties)"
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


def restrict_to_table(options: WriteOptions, table: TableConfiguration) -> WriteOptions:
    """Return options with the file properties of a table, without shredding and statistics that it excludes.

    Files are shredded only if the table enables variantShredding, and have Variant bounds only if it supports
    the feature (PROTOCOL.md, "Writer Requirements for Variant Shredding", "Variant Statistics"). The files of
    a table for readers without shredding have no annotation either. Schemas by the names of columns are then
    those of paths in files. Raises ShreddingNotEnabledError if the options have an explicit shredding schema,
    SchemaError if they have one for another column than a Variant, UnsupportedFeatureError if they ask for
    files whose readers do not open the table.
    """
    options = _with_schemas(options, table)
    files = options.files
    if files.compression is None:
        files = replace(files, compression=table.get(properties.COMPRESSION_CODEC))
    if not table.supports_shredding:
        files = replace(files, max_variant_stats_paths=0)
    elif files.compatibility == "unshredded":
        raise UnsupportedFeatureError(
            f"cannot write {table.uri} for readers without shredding because its protocol has the feature "
            "variantShredding: write a new table with compatibility='unshredded'",
            table=table.uri,
        )
    is_unshredded = table.get(properties.COMPATIBILITY) == "unshredded"
    if is_unshredded or files.compatibility == "unshredded":
        files = replace(files, annotate=False)
    page_version = table.get(properties.PARQUET_FORMAT_VERSION)
    options = replace(options, files=files, page_version=page_version)
    if table.enables_shredding and not is_unshredded:
        return options
    if isinstance(options.shredding, ShreddingSchema) or options.schemas:
        raise ShreddingNotEnabledError(
            f"{table.uri} does not enable variantShredding: set its property "
            f"{properties.ENABLE_VARIANT_SHREDDING.name}=true, or do not shred",
            table=table.uri,
            remedies=(("shredding", None),),
        )
    return replace(options, shredding=None)


def _with_schemas(options: WriteOptions, table: TableConfiguration) -> WriteOptions:
    """Return options that infer the schemas of all columns but those that `shredding` names."""
    shredding: Any = options.shredding
    if not isinstance(shredding, Mapping) or not any(isinstance(name, str) for name in shredding):
        return options
    variants = {each.name: each for each in table.schema.fields if each.type == VARIANT}
    schemas: dict[Path, ShreddingSchema] = {}
    for name, schema in shredding.items():
        if name not in variants:
            raise SchemaError(
                f"shredding: expected the names of Variant columns, got {name!r}; those of {table.uri} are "
                f"{list_names(variants, name) or 'none'}",
                column=name,
                table=table.uri,
            )
        schemas[(physical_name(variants[name], table.mapping_mode),)] = schema
    return replace(options, shredding="infer", schemas=schemas)
