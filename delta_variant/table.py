"""A handle of a table, whose methods are the functions of this package."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ._checks import check_installed, to_integer
from ._html import html_table
from ._options import OnConflict
from ._redaction import redact_location
from .data_file.options import MAX_STATS_PATHS, FileOptions, JsonOptions, Shredding
from .errors import DeltaVariantError, TableNotFoundError, printable
from .execution import Engine
from .log.commit_context import CommitOptions, CommitResult
from .log.load import load_snapshot as _load_snapshot
from .log.snapshot import Snapshot
from .log.timestamps import Timestamp
from .operations.alter.columns import ColumnPath, Columns
from .operations.alter.columns import add_columns as _add_columns
from .operations.alter.columns import drop_column as _drop_column
from .operations.alter.columns import rename_column as _rename_column
from .operations.alter.constraints import add_constraint as _add_constraint
from .operations.alter.constraints import drop_constraint as _drop_constraint
from .operations.alter.table_properties import set_properties as _set_properties
from .operations.alter.table_properties import unset_properties as _unset_properties
from .operations.alter.type_change import change_type as _change_type
from .operations.audit import Audit
from .operations.audit import audit_table as _audit_table
from .operations.changes import read_changes as _read_changes
from .operations.delete import delete as _delete
from .operations.delete import delete_all as _delete_all
from .operations.history import History
from .operations.history import history as _history
from .operations.log_cleanup import LogCleanupResult
from .operations.log_cleanup import clean_up_log as _clean_up_log
from .operations.merge.builder import Merge
from .operations.merge.builder import merge as _merge
from .operations.optimize.optimize import OptimizeResult
from .operations.optimize.optimize import optimize as _optimize
from .operations.read import read_table as _read_table
from .operations.restore import RestoreResult
from .operations.restore import restore as _restore
from .operations.statistics_repair import RepairResult
from .operations.statistics_repair import repair_statistics as _repair_statistics
from .operations.update import update as _update
from .operations.vacuum import VacuumResult
from .operations.vacuum import vacuum as _vacuum
from .operations.write import write_table as _write_table
from .read.aggregate import Aggregation
from .read.aggregate import aggregate as _aggregate
from .read.scan import Scan
from .read.shredded_columns import shredded_columns as _shredded_columns
from .storage.store import HasTableUri, Memo, merged_storage_options
from .storage.store import table_uri as uri_of_table
from .variant.moments import UTC
from .write.commit import WriteResult
from .write.preparation import SchemaMode
from .write.rewrite import RewriteResult

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["Table"]


@dataclass(frozen=True, repr=False)
class Table:
    """A handle of a table: a location and the options of its store.

    A handle does not read anything before one of its methods is called, so the table need not exist yet, and
    each call sees the latest version. It keeps the snapshot of the call before, so that the next one reads
    only the commits since. Functions of this package accept a handle where they accept a path.

    Attributes:
        location: A path, a URI, or a `deltalake.DeltaTable`, whose options are used by default.
        storage_options: Options of the object store, with the keys of deltalake. None by default.
        engine: The processes that run operations on data files, such as a `delta_variant.spark.SparkEngine`.
            None, the default, is this process.
        version: The version that reads return if `as_of` selected one, else None.
        timestamp: The timestamp that reads return if `as_of` selected one, else None.

    Raises:
        ArgumentTypeError: `location` is neither a path nor a handle.

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
    version: int | None = field(default=None, init=False)
    timestamp: Timestamp | None = field(default=None, init=False)
    _memo: Memo = field(default_factory=Memo.of_handle, init=False, compare=False)

    def __post_init__(self) -> None:
        location, options = self.location, self.storage_options
        if self.engine is None:
            options = merged_storage_options(location, options)
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
            raise ValueError("as_of: pass a version or a timestamp")
        table = Table(self.location, self.storage_options, engine=self.engine)
        object.__setattr__(table, "version", None if version is None else to_integer("version", version, 0))
        object.__setattr__(table, "timestamp", timestamp)
        return table

    def snapshot(self) -> Snapshot:
        """Return the state of the table: protocol, metadata, schema and files.

        The parameters, the result and the errors are those of `load_snapshot`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.snapshot().version
            0
        """
        return _load_snapshot(self)

    def scan(
        self,
        *,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        where: str | None = None,
        lateral: str | None = None,
        limit: int | None = None,
        timezone: str = UTC,
        on_conflict: OnConflict = "error",
        variants: Literal["bytes", "shredded"] = "bytes",
    ) -> Scan:
        """Return a scan of the rows, which reads them when one of its methods is called.

        The parameters, the result and the errors are those of `read_table`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.scan(where="id > 1").to_pylist()
            [{'id': 2}]
        """
        return _read_table(
            self,
            columns=columns,
            where=where,
            lateral=lateral,
            limit=limit,
            timezone=timezone,
            on_conflict=on_conflict,
            variants=variants,
        )

    def aggregate(
        self,
        aggregates: Mapping[str, str] | Sequence[str],
        where: str | None = None,
        *,
        timezone: str = UTC,
        on_conflict: OnConflict = "error",
    ) -> Aggregation:
        """Return counts and extremes of the rows, from the log where its statistics are exact.

        The parameters, the result and the errors are those of `aggregate`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.aggregate({"n": "count(*)", "last": "max(id)"}).values
            {'n': 2, 'last': 2}
        """
        return _aggregate(self, aggregates, where, timezone=timezone, on_conflict=on_conflict)

    def shredded_columns(self, *, strict: bool = True) -> dict[str, str]:
        """Return the columns and each shredded path of the Variants, as `columns` of a scan.

        The parameters, the result and the errors are those of `shredded_columns`.

        Example:
            >>> import pyarrow as pa
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> schema = dv.ShreddingSchema.of({"id": pa.int64()})
            >>> _ = events.append([{"event": {"id": 7}}], variant_columns=["event"], shredding=schema)
            >>> list(events.shredded_columns())
            ['event', 'event.id']
        """
        return _shredded_columns(self, strict=strict)

    def changes(
        self,
        *,
        start: int | Timestamp | None = None,
        end: int | Timestamp | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        timezone: str = UTC,
        on_conflict: OnConflict = "error",
    ) -> Scan:
        """Return a scan of the rows that commits inserted, deleted and updated.

        The parameters, the result and the errors are those of `read_changes`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> feed = {"delta.enableChangeDataFeed": "true"}
            >>> _ = events.append([{"id": 1}, {"id": 2}], configuration=feed)
            >>> _ = events.delete("id = 1")
            >>> events.changes(start=1, columns=["id", "_change_type"]).to_pylist()
            [{'id': 1, '_change_type': 'delete'}]
        """
        return _read_changes(
            self,
            start=start,
            end=end,
            columns=columns,
            where=where,
            limit=limit,
            timezone=timezone,
            on_conflict=on_conflict,
        )

    def history(self, limit: int | None = None) -> History:
        """Return the commits in the log, newest first.

        The parameters, the result and the errors are those of `history`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.history(limit=1)[0].operation
            'WRITE'
        """
        return _history(self, limit)

    def audit(self, *, data: bool = False, files: Collection[str] | None = None) -> Audit:
        """Check the table against the rules of the specifications, and return the violations.

        The parameters, the result and the errors are those of `audit_table`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.audit(data=True).is_clean
            True
        """
        return _audit_table(self, data=data, files=files)

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

        The parameters, the result and the errors are those of `write_table`, with `mode="append"`.

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

    def overwrite(
        self,
        data: Any,
        *,
        where: str | None = None,
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
        """Replace all rows, or those that match `where`, in a table that is created if it does not exist.

        The parameters, the result and the errors are those of `write_table`, with `mode="overwrite"`.

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

    def delete(
        self,
        where: str,
        *,
        timezone: str | None = None,
        files: FileOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> RewriteResult:
        """Delete the rows for which `where` is true.

        The parameters, the result and the errors are those of `delete`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.delete("id = 1").rows_deleted
            1
        """
        return _delete(self, where, timezone=timezone, files=files, commit=commit)

    def delete_all(self, *, commit: CommitOptions | None = None) -> RewriteResult:
        """Delete all rows.

        The parameters, the result and the errors are those of `delete_all`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.delete_all().rows_deleted
            2
        """
        return _delete_all(self, commit=commit)

    def update(
        self,
        updates: Mapping[str, str | None],
        where: str | None = None,
        *,
        timezone: str | None = None,
        files: FileOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> RewriteResult:
        """Set columns and paths in Variants of the rows for which `where` is true.

        The parameters, the result and the errors are those of `update`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.update({"id": "id * 10"}, where="id = 1").rows_updated
            1
        """
        return _update(self, updates, where, timezone=timezone, files=files, commit=commit)

    def merge(
        self,
        source: Any,
        on: str,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        variant_columns: Sequence[str] = (),
        timezone: str | None = None,
        files: FileOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> Merge:
        """Return a merge of `source` into the table, to which you add clauses before you call `execute()`.

        The parameters, the result and the errors are those of `merge`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> merge = events.merge([{"id": 2}, {"id": 3}], on="target.id = source.id")
            >>> merge.when_not_matched_insert_all().execute().rows_inserted
            1
        """
        return _merge(
            self,
            source,
            on,
            source_alias=source_alias,
            target_alias=target_alias,
            variant_columns=variant_columns,
            timezone=timezone,
            files=files,
            commit=commit,
        )

    def add_columns(self, columns: Columns, *, commit: CommitOptions | None = None) -> CommitResult:
        """Add columns.

        The parameters, the result and the errors are those of `add_columns`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.add_columns({"event": "variant"}).version
            1
        """
        return _add_columns(self, columns, commit=commit)

    def drop_column(self, column: ColumnPath, *, commit: CommitOptions | None = None) -> CommitResult:
        """Drop a column.

        The parameters, the result and the errors are those of `drop_column`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> mapped = {"delta.columnMapping.mode": "name"}
            >>> _ = events.append([{"id": 1, "note": "a"}], configuration=mapped)
            >>> events.drop_column("note").version
            1
        """
        return _drop_column(self, column, commit=commit)

    def rename_column(
        self, column: ColumnPath, new_name: str, *, commit: CommitOptions | None = None
    ) -> CommitResult:
        """Rename a column.

        The parameters, the result and the errors are those of `rename_column`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> mapped = {"delta.columnMapping.mode": "name"}
            >>> _ = events.append([{"id": 1, "note": "a"}], configuration=mapped)
            >>> events.rename_column("note", "text").version
            1
        """
        return _rename_column(self, column, new_name, commit=commit)

    def change_type(
        self, column: ColumnPath, new_type: str | pa.DataType, *, commit: CommitOptions | None = None
    ) -> CommitResult:
        """Widen the type of a column.

        The parameters, the result and the errors are those of `change_type`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> widening = {"delta.enableTypeWidening": "true"}
            >>> _ = events.append([{"id": 1}, {"id": 2}], configuration=widening)
            >>> events.change_type("id", "decimal(20,0)").version
            1
        """
        return _change_type(self, column, new_type, commit=commit)

    def set_properties(
        self, values: Mapping[str, str], *, commit: CommitOptions | None = None
    ) -> CommitResult:
        """Set table properties.

        The parameters, the result and the errors are those of `set_properties`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.set_properties({"delta.appendOnly": "true"}).version
            1
        """
        return _set_properties(self, values, commit=commit)

    def unset_properties(self, names: Sequence[str], *, commit: CommitOptions | None = None) -> CommitResult:
        """Remove table properties.

        The parameters, the result and the errors are those of `unset_properties`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}], configuration={"owner": "ann"})
            >>> events.unset_properties(["owner"]).version
            1
        """
        return _unset_properties(self, names, commit=commit)

    def add_constraint(
        self, name: str, check: str, *, timezone: str = UTC, commit: CommitOptions | None = None
    ) -> CommitResult:
        """Add a CHECK constraint, which all rows must satisfy.

        The parameters, the result and the errors are those of `add_constraint`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.add_constraint("positive", "id > 0").version
            1
        """
        return _add_constraint(self, name, check, timezone=timezone, commit=commit)

    def drop_constraint(self, name: str, *, commit: CommitOptions | None = None) -> CommitResult:
        """Drop a CHECK constraint.

        The parameters, the result and the errors are those of `drop_constraint`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> _ = events.add_constraint("positive", "id > 0")
            >>> events.drop_constraint("positive").version
            2
        """
        return _drop_constraint(self, name, commit=commit)

    def optimize(
        self,
        where: str | None = None,
        *,
        sort_by: str | Sequence[str] | None = None,
        reshred: bool = False,
        timezone: str | None = None,
        dry_run: bool = False,
        files: FileOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> OptimizeResult:
        """Combine small files and sort rows, so that later reads skip more.

        The parameters, the result and the errors are those of `optimize`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> _ = events.append([{"id": 3}])
            >>> events.optimize().files_before
            2
        """
        return _optimize(
            self,
            where,
            sort_by=sort_by,
            reshred=reshred,
            timezone=timezone,
            dry_run=dry_run,
            files=files,
            commit=commit,
        )

    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        commit: CommitOptions | None = None,
    ) -> VacuumResult:
        """Delete files that the table no longer needs; by default only list them.

        The parameters, the result and the errors are those of `vacuum`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.vacuum().files
            ()
        """
        return _vacuum(
            self,
            retention_hours,
            dry_run=dry_run,
            enforce_retention_duration=enforce_retention_duration,
            commit=commit,
        )

    def clean_up_log(self, *, dry_run: bool = True) -> LogCleanupResult:
        """Delete the commits and checkpoints that are older than the retention; by default only list them.

        The parameters, the result and the errors are those of `clean_up_log`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.clean_up_log().files
            ()
        """
        return _clean_up_log(self, dry_run=dry_run)

    def restore(
        self,
        version: int | None = None,
        *,
        timestamp: Timestamp | None = None,
        commit: CommitOptions | None = None,
    ) -> RestoreResult:
        """Return the table to an earlier version, as a new commit.

        The parameters, the result and the errors are those of `restore`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> _ = events.delete_all()
            >>> _ = events.restore(0)
            >>> events.scan().count()
            2
        """
        return _restore(self, version, timestamp=timestamp, commit=commit)

    def repair_statistics(
        self,
        *,
        dry_run: bool = True,
        files: Collection[str] | None = None,
        max_variant_stats_paths: int = MAX_STATS_PATHS,
        commit: CommitOptions | None = None,
    ) -> RepairResult:
        """Recompute the statistics of data files; by default only compare them.

        The parameters, the result and the errors are those of `repair_statistics`.

        Example:
            >>> import delta_variant as dv
            >>> events = dv.Table("events")
            >>> _ = events.append([{"id": 1}, {"id": 2}])
            >>> events.repair_statistics().files
            ()
        """
        return _repair_statistics(
            self, dry_run=dry_run, files=files, max_variant_stats_paths=max_variant_stats_paths, commit=commit
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
        if self.version is None and self.timestamp is None:
            return DeltaTable(self.table_uri, storage_options=options)
        return DeltaTable(self.table_uri, version=self.snapshot().version, storage_options=options)

    def __repr__(self) -> str:
        selected = "" if self.version is None else f" at version {self.version}"
        selected += "" if self.timestamp is None else f" at {self.timestamp}"
        return printable(f"<Table {redact_location(self.table_uri)}{selected}>")

    def _repr_html_(self) -> str:
        try:
            snapshot: str = self.snapshot()._repr_html_()
        except TableNotFoundError:
            return html_table(f"{self.table_uri}: no table yet, the first write creates it", (), ())
        except DeltaVariantError as error:
            return html_table(self.table_uri, ("cannot read the table",), [(error.message,)])
        return snapshot
