"""A handle of a table; most of its methods are the functions of this package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import getdoc, signature
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from ._checks import check_installed, to_integer
from ._html import html_table
from ._redaction import redact_location
from .data_file.options import FileOptions, JsonOptions, Shredding
from .errors import ArgumentTypeError, DeltaVariantError, TableNotFoundError, VersionNotFoundError, printable
from .execution import Engine
from .log.commit_context import CommitOptions
from .log.load import load_snapshot as _load_snapshot
from .log.timestamps import Timestamp
from .operations.alter.columns import add_columns as _add_columns
from .operations.alter.columns import change_type as _change_type
from .operations.alter.columns import drop_column as _drop_column
from .operations.alter.columns import rename_column as _rename_column
from .operations.alter.constraints import add_constraint as _add_constraint
from .operations.alter.constraints import drop_constraint as _drop_constraint
from .operations.alter.table_properties import set_properties as _set_properties
from .operations.alter.table_properties import unset_properties as _unset_properties
from .operations.audit import audit_table as _audit_table
from .operations.changes import read_changes as _read_changes
from .operations.clone import clone as _clone
from .operations.create import create_table as _create_table
from .operations.delete import delete as _delete
from .operations.delete import delete_all as _delete_all
from .operations.describe.analyze import analyze as _analyze
from .operations.describe.describe import describe as _describe
from .operations.drop_feature import drop_feature as _drop_feature
from .operations.file_stats import file_stats as _file_stats
from .operations.history import history as _history
from .operations.log_maintenance import clean_up_log as _clean_up_log
from .operations.log_maintenance import repair_log as _repair_log
from .operations.log_maintenance import write_checkpoint as _write_checkpoint
from .operations.merge.builder import merge as _merge
from .operations.optimize.optimize import optimize as _optimize
from .operations.read import read_table as _read_table
from .operations.repair import repair_files as _repair_files
from .operations.repair import repair_statistics as _repair_statistics
from .operations.restore import restore as _restore
from .operations.update import update as _update
from .operations.vacuum import vacuum as _vacuum
from .operations.write import write_table as _write_table
from .read.aggregate import aggregate as _aggregate
from .read.shredded_columns import shredded_columns as _shredded_columns
from .storage.store import LATEST, HasTableUri, Memo, storage_options_of
from .storage.store import table_uri as uri_of_table
from .variant.objects import VariantForm
from .views.export import export as _export
from .write.commit import WriteResult
from .write.preparation import PartitionOverwriteMode, SchemaMode

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from deltalake import DeltaTable

Method = TypeVar("Method", bound=Callable[..., WriteResult])
EXPLANATION = re.compile(r"    (\w+): .*\n(?:        .*\n)*")
"""The explanation of a parameter or of an error in a docstring."""


def _explained_by_write_table(method: Method) -> Method:
    """Add to the docstring of a method what `write_table` says about its parameters, result and errors."""

    def kept(explanation: re.Match[str]) -> str:
        name = explanation[1]
        return (
            explanation[0] if name in own or (name.endswith("Error") and name != "TableExistsError") else ""
        )

    own = signature(method).parameters
    text, explained = getdoc(method), getdoc(_write_table)
    # Python has no docstrings with -OO.
    if text is not None and explained is not None:
        summary, example = text.split("Example:")
        arguments = explained[explained.index("Args:") : explained.index("Example:")]
        method.__doc__ = f"{summary}{EXPLANATION.sub(kept, arguments)}Example:{example}"
    return method


@dataclass(frozen=True, repr=False)
class Table:
    """A handle of a table: a location and the options of its store.

    A handle does not read anything before one of its methods is called, so the table need not exist yet, and
    each call sees the latest version. It keeps the snapshot of the call before, so that the next one reads
    only the commits since. Functions of this package accept a handle where they accept a path. A handle is
    iterable: it yields its rows as dicts. DuckDB, Polars, pandas and pyarrow take it as a stream of Arrow
    data.

    Attributes:
        location: A path, a URI, or a `deltalake.DeltaTable`, whose options are used by default.
        storage_options: Options of the object store, with the keys of deltalake. None by default.
        engine: The processes that run operations on data files, such as a `delta_variant.spark.SparkEngine`.
            None, the default, is this process.

    Raises:
        ArgumentTypeError: `location` is neither a path nor a handle, or `engine` is not an engine.

    Example:
        >>> import delta_variant as dv
        >>> events = dv.Table("user_events")
        >>> _ = events.append([{"event": {"user": 7}}, {"event": {"user": 8}}], variant_columns=["event"])
        >>> events.scan(where="event:user::int > 7").to_pylist()
        [{'event': {'user': 8}}]
    """

    location: str | PathLike[str] | HasTableUri
    storage_options: Mapping[str, str] | None = field(default=None, hash=False)
    engine: Engine | None = field(default=None, hash=False, kw_only=True)
    _as_of: tuple[int | None, Timestamp | None] = field(default=LATEST, init=False)
    _memo: Memo = field(default_factory=Memo.of_handle, init=False, compare=False)

    def __post_init__(self) -> None:
        location, options = self.location, self.storage_options
        if not isinstance(self.engine, Engine | None):
            raise ArgumentTypeError(
                "engine: expected an engine such as delta_variant.spark.SparkEngine(spark), got "
                f"{self.engine!r}"
            )
        if self.engine is None:
            options = storage_options_of(location) if options is None else options
        else:
            location = self.engine.locate(location)
            options = self.engine.storage_options(location, options)
        object.__setattr__(self, "storage_options", options)
        object.__setattr__(self, "location", uri_of_table(location))
        object.__setattr__(self, "_memo", getattr(location, "_memo", self._memo))

    @property
    def table_uri(self) -> str:
        """Return the path or the URI of the table."""
        return uri_of_table(self.location)

    def as_of(self, version: int | None = None, *, timestamp: Timestamp | None = None) -> Table:
        """Return a handle for reads of an earlier version. Operations that change the table reject it.

        Args:
            version: The version. None by default.
            timestamp: A timezone-aware datetime or an ISO 8601 string: the latest version committed at that
                time or earlier. None by default.

        Returns:
            A `Table`. Whether the version exists is known at its first read.

        Raises:
            ValueError: Neither or both of `version` and `timestamp` are given.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> _ = events.delete("id = 1")
            >>> events.as_of(version=0).scan().count()
            2
        """
        if (version is None) == (timestamp is None):
            raise ValueError("as_of: pass either a version or a timestamp")
        table = Table(self.location, self.storage_options, engine=self.engine)
        selected = None if version is None else to_integer("version", version, 0), timestamp
        object.__setattr__(table, "_as_of", selected)
        return table

    def exists(self) -> bool:
        """Return whether there is a table, with the version of `as_of` if that selected one.

        Raises:
            StoreError: The store cannot be read.
            MalformedLogError: There is a table, whose log cannot be read.

        Example:
            >>> import delta_variant as dv
            >>> dv.Table("no_such_table").exists()
            False
        """
        try:
            self.snapshot()
        except (TableNotFoundError, VersionNotFoundError):
            return False
        return True

    @property
    def version(self) -> int:
        """Return the latest version, or the version of `as_of`.

        Raises:
            TableNotFoundError: There is no table at this location.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}])
            >>> events.version
            0
        """
        return self.snapshot().version

    @property
    def schema(self) -> pa.Schema:
        """Return the columns as an Arrow schema, in which Variants are marked as extension types.

        Raises:
            TableNotFoundError: There is no table at this location.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}])
            >>> events.schema.field("id").type
            DataType(int64)
        """
        return self.snapshot().arrow_schema

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns.

        Raises:
            TableNotFoundError: There is no table at this location.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1, "type": "buy"}])
            >>> events.columns
            ['id', 'type']
        """
        return self.schema.names

    def head(self, n: int = 10) -> list[dict[str, Any]]:
        """Return the first rows as Python dicts; `scan` has the other forms.

        Args:
            n: The maximum number of rows, 10 by default.

        Returns:
            A dict for each row, by column name.

        Raises:
            TableNotFoundError: There is no table at this location.
            DeltaVariantError: A row cannot be read; see `Scan.to_pylist`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"event": {"user": 7}}, {"event": None}], variant_columns=["event"])
            >>> events.head(1)
            [{'event': {'user': 7}}]
        """
        return self.scan(limit=n).to_pylist()

    def count(self) -> int:
        """Return the number of rows, from the log if it has the numbers of all files.

        Raises:
            TableNotFoundError: There is no table at this location.
            DataFileError: A file without a number of rows in the log cannot be read.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.count()
            2
        """
        return self.scan().count()

    def to_pandas(self, variants: VariantForm = "python") -> pd.DataFrame:
        """Return all rows as a pandas data frame; needs pandas.

        Args:
            variants: The form of Variants, as in `Scan.to_pylist`. `"python"` by default.

        Returns:
            A `pandas.DataFrame`.

        Raises:
            TableNotFoundError: There is no table at this location.
            DeltaVariantError: A row cannot be read; see `Scan.to_pandas`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.to_pandas().shape
            (2, 1)
        """
        return self.scan().to_pandas(variants)

    def to_polars(self, variants: Literal["json", "bytes"] = "json") -> pl.DataFrame:
        """Return all rows as a Polars data frame; needs Polars.

        Args:
            variants: The form of Variants, as in `Scan.to_polars`. `"json"` by default.

        Returns:
            A `polars.DataFrame`.

        Raises:
            TableNotFoundError: There is no table at this location.
            DeltaVariantError: A row cannot be read; see `Scan.to_polars`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.to_polars().shape
            (2, 1)
        """
        return self.scan().to_polars(variants)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as Python dicts, a batch at a time."""
        return iter(self.scan())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return all rows as a stream of the Arrow PyCapsule interface."""
        return self.scan().__arrow_c_stream__(requested_schema)

    snapshot = _load_snapshot
    scan = _read_table
    aggregate = _aggregate
    changes = _read_changes
    shredded_columns = _shredded_columns
    describe = _describe
    analyze = _analyze
    file_stats = _file_stats
    create = _create_table
    clone = _clone
    export = _export
    history = _history
    audit = _audit_table
    delete = _delete
    delete_all = _delete_all
    update = _update
    merge = _merge
    add_columns = _add_columns
    drop_column = _drop_column
    rename_column = _rename_column
    change_type = _change_type
    set_properties = _set_properties
    unset_properties = _unset_properties
    add_constraint = _add_constraint
    drop_constraint = _drop_constraint
    drop_feature = _drop_feature
    optimize = _optimize
    vacuum = _vacuum
    clean_up_log = _clean_up_log
    checkpoint = _write_checkpoint
    restore = _restore
    repair_statistics = _repair_statistics
    repair_files = _repair_files
    repair_log = _repair_log

    @_explained_by_write_table
    def append(
        self,
        data: Any,
        *,
        partition_by: str | Sequence[str] | None = None,
        schema_mode: SchemaMode = None,
        variant_columns: Sequence[str] = (),
        shredding: Shredding = "infer",
        configuration: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
        timezone: str | None = None,
        files: FileOptions | None = None,
        json: JsonOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> WriteResult:
        """Add rows to the table, which is created if it does not exist.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> events.append([{"event": {"type": "buy"}}], variant_columns=["event"]).rows
            1
        """
        return _write_table(
            self,
            data,
            partition_by=partition_by,
            schema_mode=schema_mode,
            variant_columns=variant_columns,
            shredding=shredding,
            configuration=configuration,
            name=name,
            description=description,
            timezone=timezone,
            files=files,
            json=json,
            commit=commit,
            mode="append",
        )

    @_explained_by_write_table
    def overwrite(
        self,
        data: Any,
        *,
        where: str | None = None,
        partition_overwrite_mode: PartitionOverwriteMode = "static",
        partition_by: str | Sequence[str] | None = None,
        schema_mode: SchemaMode = None,
        variant_columns: Sequence[str] = (),
        shredding: Shredding = "infer",
        configuration: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
        timezone: str | None = None,
        files: FileOptions | None = None,
        json: JsonOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> WriteResult:
        """Replace rows of the table, which is created if it does not exist: all, or those that match `where`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.overwrite([{"id": 3}]).rows_deleted
            2
        """
        return _write_table(
            self,
            data,
            where=where,
            partition_overwrite_mode=partition_overwrite_mode,
            partition_by=partition_by,
            schema_mode=schema_mode,
            variant_columns=variant_columns,
            shredding=shredding,
            configuration=configuration,
            name=name,
            description=description,
            timezone=timezone,
            files=files,
            json=json,
            commit=commit,
            mode="overwrite",
        )

    def to_deltalake(self) -> DeltaTable:
        """Return the table as a `deltalake.DeltaTable`, with the same options and version.

        Raises:
            ImportError: deltalake is not installed.
            deltalake.exceptions.TableNotFoundError: The table does not exist.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.to_deltalake().version()
            0
        """
        check_installed("deltalake", "delta_variant[deltalake]")
        from deltalake import DeltaTable

        options = None if self.storage_options is None else dict(self.storage_options)
        if self._as_of == LATEST:
            return DeltaTable(self.table_uri, storage_options=options)
        return DeltaTable(self.table_uri, version=self.snapshot().version, storage_options=options)

    def __repr__(self) -> str:
        version, timestamp = self._as_of
        selected = "" if version is None else f" at version {version}"
        selected += "" if timestamp is None else f" at {timestamp}"
        return printable(f"<Table {redact_location(self.table_uri)}{selected}>")

    def _repr_html_(self) -> str:
        try:
            snapshot = self.snapshot()
        except TableNotFoundError:
            return html_table(f"{self.table_uri}: no table yet, the first write creates it", (), ())
        except DeltaVariantError as error:
            return html_table(self.table_uri, ("cannot read the table",), [(error.message,)])
        try:
            rows = _read_table(snapshot)._repr_html_()
        except DeltaVariantError as error:
            rows = html_table("", ("cannot read the rows",), [(error.message,)])
        return f"{snapshot._repr_html_()}{rows or ''}"
