"""What table features leave in a table, and how it is removed before a feature is dropped.

A trace is part of how rows are stored, so that removing it changes no row. What a user asked for, such as a
constraint or a column, is not a trace: it has to be removed by its own operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, arrow_type_at
from ..data_file.options import FileOptions
from ..data_file.shredding import PerSchema
from ..errors import DataFileError, RetentionDurationError, StoreError
from ..execution import Executor, NameFile
from ..log import transaction
from ..log.checkpoints.reading import sidecars_of
from ..log.cleanup import DAY, adjust_times, delete_expired, find_expired
from ..log.commit_context import commit_context, now
from ..log.commits import read_versions
from ..log.conflicts import Reads
from ..log.deletion_vectors import file_path
from ..log.file_tables import FILES_SCHEMA
from ..log.listing import CheckpointFiles, checkpoint_name, list_log
from ..log.load import load_snapshot, load_with_tombstones
from ..log.snapshot import Snapshot, TableVersion, strip_files
from ..protocol import features, properties
from ..protocol.actions import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, DomainMetadata, Metadata, is_absolute
from ..protocol.clustering import decode_clustering_columns
from ..protocol.schema.arrow import to_arrow_type
from ..protocol.schema.evolution import without_type_changes
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import TYPE_CHANGES, StructType, fields_of
from ..read.file_reader import FileEntry, FileReader, TableReader
from ..read.shredded_columns import variants_of
from ..storage.store import Store
from .optimize.optimize import plan_compaction, run_optimize
from .rewrite import split_files

FindFiles: TypeAlias = Callable[[Executor, Snapshot, Array], pa.Table]
"""Returns the files of a snapshot with traces. The contents of files with some paths have none."""

CleanFiles: TypeAlias = Callable[[Executor, Snapshot, pa.Table, str], None]
"""Commits files without the traces of the named feature in place of files with traces."""


def _keep(schema: StructType) -> StructType:
    return schema


def _find_nothing(executor: Executor, snapshot: Snapshot, clean: Array) -> pa.Table:
    return snapshot.files.slice(0, 0)


def _do_nothing(snapshot: Snapshot) -> None:
    pass


def _find_row_ids(executor: Executor, snapshot: Snapshot, clean: Array) -> pa.Table:
    files = snapshot.files
    ids, versions = pc.is_valid(files["base_row_id"]), pc.is_valid(files["default_row_commit_version"])
    return files.filter(pc.or_(ids, versions))


def _find_shredded(executor: Executor, snapshot: Snapshot, clean: Array) -> pa.Table:
    variants = list(variants_of(snapshot.schema))
    if not variants:
        return snapshot.files.slice(0, 0)
    return _find_by_schema(executor, snapshot, clean, partial(_is_shredded, variants))


def _is_shredded(variants: Sequence[tuple[str, ...]], file: FileReader) -> bool:
    schemas = map(file.shredding, variants)
    return any(each is not None and not pa.types.is_null(each.field.type) for each in schemas)


def _find_narrow(executor: Executor, snapshot: Snapshot, clean: Array) -> pa.Table:
    table = snapshot.configuration
    fields = zip(fields_of(table.schema), fields_of(table.physical_schema), strict=True)
    widened = [
        (name[0], physical[1:], to_arrow_type(field.type))
        for (name, field), (physical, _) in fields
        if TYPE_CHANGES in field.metadata
    ]
    if not widened:
        return snapshot.files.slice(0, 0)
    return _find_by_schema(executor, snapshot, clean, partial(_is_narrow, widened))


def _is_narrow(widened: Sequence[tuple[str, tuple[str, ...], Any]], file: FileReader) -> bool:
    """Return whether a file stores another type than the new one of a column, or of a field within it."""
    return any(
        _has_other_type(arrow_type_at(file.stored_type(name), path), wanted) for name, path, wanted in widened
    )


def _has_other_type(stored: Any, wanted: Any) -> bool:
    parts: tuple[str, ...] = ()
    if pa.types.is_map(wanted):
        parts = ("key_type", "item_type")
    elif pa.types.is_list(wanted):
        parts = ("value_type",)
    if stored is None or not parts:
        return stored is not None and stored != wanted
    return any(_has_other_type(getattr(stored, part), getattr(wanted, part)) for part in parts)


def _find_by_schema(
    executor: Executor, snapshot: Snapshot, clean: Array, check: Callable[[FileReader], bool]
) -> pa.Table:
    """Return the files whose schema has a trace, except those with the paths `clean`."""
    files = snapshot.files.filter(pc.invert(pc.is_in(snapshot.files["path"], value_set=clean)))
    tasks = (partial(_find_in, strip_files(snapshot), share, check) for share in split_files(executor, files))
    results = executor.run("find files with traces of the feature", tasks)
    found = pa.array([path for paths in results for path in paths], pa.string())
    return files.filter(pc.is_in(files["path"], value_set=found))


def _find_in(
    version: TableVersion,
    files: Iterable[FileEntry],
    check: Callable[[FileReader], bool],
    store: Store,
    name: NameFile,
) -> list[str]:
    """Return the paths of the files whose schema passes a check."""
    known = PerSchema[bool]()
    opened = TableReader.of(replace(version, store=store)).open_all(files)
    return [file.file.path for file in opened if known.of(file.native, partial(check, file))]


def _rewrite(executor: Executor, snapshot: Snapshot, files: pa.Table, name: str, **which: bool) -> None:
    plan = plan_compaction(snapshot, files, FileOptions(), reason={"dropFeature": name}, **which)
    run_optimize(plan, executor.another())


_rewrite_all = partial(_rewrite, everything=True)
_purge = partial(_rewrite, purge=True)


def _clear_row_ids(executor: Executor, snapshot: Snapshot, files: pa.Table, name: str) -> None:
    for column in ("base_row_id", "default_row_commit_version"):
        position = files.schema.get_field_index(column)
        files = files.set_column(position, column, pa.nulls(files.num_rows, pa.int64()))
    context = commit_context("ROW TRACKING UNBACKFILL", metrics={"numFiles": files.num_rows})
    transaction.recommit_files(snapshot, files, context=context)


def _keep_vectors(snapshot: Snapshot) -> None:
    """Commit tombstones of the files of deletion vectors that earlier versions need.

    The vacuum of a writer without deletion vectors sees these files only as removed files, as in Delta.
    """
    _, tombstones = load_with_tombstones(snapshot.store, snapshot.version)
    retention = snapshot.configuration.get(properties.DELETED_FILE_RETENTION_DURATION)
    recent = tombstones.filter(pc.greater(tombstones["deletion_timestamp"], pa.scalar(now() - retention)))
    vectors: list[Any] = recent["deletion_vector"].drop_null().to_pylist()
    paths = {path for path in map(file_path, vectors) if path is not None and not is_absolute(path)}
    missing = sorted(paths.difference(tombstones["path"].to_pylist()))
    if missing:
        files = pa.Table.from_pylist([{"path": path} for path in missing], FILES_SCHEMA)
        context = commit_context("Deletion Vector Tombstones")
        reads = Reads(files, lambda adds: False)
        transaction.replace_files(snapshot, files, [], context=context, reads=reads, data_change=False)


@dataclass(frozen=True)
class Removal:
    """How the traces of a feature are removed.

    Attributes:
        settings: The properties that are set first, None to unset one, so that no writer adds new traces.
        find: Returns the files with traces.
        clean: Replaces these files.
        finish: Commits what earlier versions need when no file has traces.
        dropped: The properties that the last commit unsets, because writers may use them until then.
        columns: Returns the schema after the last commit.
        domain: The prefix of the metadata domains that the last commit removes, None for no domain.
    """

    settings: Mapping[str, str | None]
    find: FindFiles = _find_nothing
    clean: CleanFiles = _rewrite
    finish: Callable[[Snapshot], None] = _do_nothing
    dropped: Sequence[str] = ()
    columns: Callable[[StructType], StructType] = _keep
    domain: str | None = None

    def changes(self, configuration: Mapping[str, str]) -> dict[str, str | None]:
        """Return the settings that differ from properties."""
        return {name: text for name, text in self.settings.items() if configuration.get(name) != text}

    def apply(self, configuration: Mapping[str, str]) -> dict[str, str]:
        settings = {**configuration, **self.settings}
        return {name: text for name, text in settings.items() if text is not None}

    def domains(self, snapshot: Snapshot) -> list[DomainMetadata]:
        """Return the metadata domains that the last commit removes."""
        prefix = self.domain
        if prefix is None:
            return []
        domains = (each for name, each in snapshot.domain_metadata.items() if name.startswith(prefix))
        return [each for each in domains if not _is_used(each)]


def _is_used(domain: DomainMetadata) -> bool:
    """Return whether a domain has clustering columns: that of a table without them stays in the log."""
    return domain.domain == CLUSTERING_DOMAIN and bool(decode_clustering_columns(domain.configuration))


NO_TRACES = Removal({})

REMOVALS: Mapping[str, Removal] = {
    "variantShredding": Removal(
        {properties.ENABLE_VARIANT_SHREDDING.name: None}, _find_shredded, _rewrite_all
    ),
    "deletionVectors": Removal(
        {properties.ENABLE_DELETION_VECTORS.name: None},
        lambda executor, snapshot, clean: snapshot.files.filter(
            pc.is_valid(snapshot.files["deletion_vector"])
        ),
        _purge,
        _keep_vectors,
    ),
    "typeWidening": Removal(
        {properties.ENABLE_TYPE_WIDENING.name: None}, _find_narrow, _rewrite_all, columns=without_type_changes
    ),
    "materializePartitionColumns": Removal({properties.ENABLE_MATERIALIZE_PARTITION_COLUMNS.name: None}),
    "v2Checkpoint": Removal({properties.CHECKPOINT_POLICY.name: None}),
    "inCommitTimestamp": Removal(
        dict.fromkeys(
            (
                properties.ENABLE_IN_COMMIT_TIMESTAMPS.name,
                properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION.name,
                properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP.name,
            )
        )
    ),
    "rowTracking": Removal(
        {properties.ENABLE_ROW_TRACKING.name: "false", properties.ROW_TRACKING_SUSPENDED.name: "true"},
        _find_row_ids,
        _clear_row_ids,
        dropped=(
            properties.ENABLE_ROW_TRACKING.name,
            properties.ROW_TRACKING_SUSPENDED.name,
            properties.MATERIALIZED_ROW_ID_COLUMN_NAME.name,
            properties.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME.name,
        ),
        domain=ROW_TRACKING_DOMAIN,
    ),
    "clustering": Removal({}, domain=CLUSTERING_DOMAIN),
    # Other features have their own domains, and are dropped before.
    "domainMetadata": Removal({}, domain=""),
    "checkpointProtection": Removal({}, dropped=(properties.CHECKPOINT_PROTECTION_VERSION.name,)),
}
"""The features that leave traces, by their stable names."""

_COLUMNS = "overwrite the table without it, with schema_mode='overwrite', or cast it to another type"

REMEDIES: Mapping[str, str] = {
    "variantType": _COLUMNS,
    "timestampNtz": _COLUMNS,
    "appendOnly": "unset it with unset_properties",
    "changeDataFeed": "unset it with unset_properties",
    "checkConstraints": "drop it with drop_constraint",
    "clustering": "run ALTER TABLE … CLUSTER BY NONE on Spark, or write the rows to a new table",
}
"""How the parts of a table that require a feature are removed, by the stable name of the feature."""


CHECKPOINT_PROTECTION = "checkpointProtection"


@dataclass(frozen=True)
class FeatureHistory:
    """The versions in the log of a table that use a feature, although the latest version does not.

    `clean` has the paths of files that have no traces.
    """

    snapshot: Snapshot
    name: str
    removal: Removal
    clean: Array
    executor: Executor

    def truncate(self, write_barrier: Callable[[], object]) -> None:
        """Delete the versions up to the last one that uses the feature.

        `write_barrier` commits a version with a checkpoint, which the deletion requires. Raises
        RetentionDurationError if writers may still commit on top of these versions, because they are younger
        than `delta.dropFeatureTruncateHistory.retentionDuration`, a day by default and at least.
        """
        last = self._find_last_use()
        if last is None:
            return
        store, configuration = self.snapshot.store, self.snapshot.configuration
        if _first_checkpoint_after(store, last) is None:
            write_barrier()
        retention = max(configuration.get(properties.TRUNCATE_HISTORY_RETENTION_DURATION), DAY)
        time = now()
        delete_expired(store, find_expired(store, configuration, time, cutoff=time - retention))
        last = self._find_last_use()
        if last is not None:
            first = _first_checkpoint_after(store, last)
            expires = (time if first is None else first) + retention
            raise RetentionDurationError(
                f"cannot drop the feature {self.name!r} of {self.snapshot.uri} yet because version {last} in "
                "its log needs it, and writers may still commit on top of it: repeat the call after "
                f"{_text(expires)}",
                table=self.snapshot.uri,
                version=last,
            )

    def _find_last_use(self) -> int | None:
        """Return the last version in the log that uses the feature, as far as it is known, else None."""
        snapshot, store = self.snapshot, self.snapshot.store
        listing = list_log(store, None)
        if self.name == CHECKPOINT_PROTECTION:
            before = snapshot.configuration.get(properties.CHECKPOINT_PROTECTION_VERSION)
            versions = {*listing.commits, *(each.version for each in listing.checkpoints)}
            return max((version for version in versions if version < before), default=None)
        first = 0 if 0 in listing.commits else min(each.version for each in listing.checkpoints)
        past = load_snapshot(store, first)
        is_needed, used = self._is_needed(past.metadata), [first] if self._has_traces(past) else []
        for version, actions in read_versions(store, min(listing.commits), snapshot.version):
            for action in actions:
                is_needed = self._is_needed(action) if isinstance(action, Metadata) else is_needed
            used += [version] if is_needed else []
        if features.FEATURES[self.name].base_name == "v2Checkpoint":
            used += [each.version for each in listing.checkpoints if _is_v2(store, each)]
        return max(used, default=None)

    def _is_needed(self, metadata: Metadata) -> bool:
        table = TableConfiguration.of(self.snapshot.uri, self.snapshot.protocol, metadata)
        return any(features.find_uses(self.name, table.schema, table.properties, ()))

    def _has_traces(self, past: Snapshot) -> bool:
        try:
            return self.removal.find(self.executor.another(), past, self.clean).num_rows > 0
        except (DataFileError, StoreError):
            # A vacuum has deleted the file.
            return True


def _first_checkpoint_after(store: Store, version: int) -> int | None:
    """Return the time of the first checkpoint that is later than a version, None without one."""
    listing = list_log(store, None)
    times = dict(adjust_times(listing))
    later = [each.version for each in listing.checkpoints if each.version > version and each.version in times]
    return times[min(later)] if later else None


def _is_v2(store: Store, checkpoint: CheckpointFiles) -> bool:
    """Return whether a checkpoint has a UUID in its name, or sidecars."""
    names = [path.rpartition("/")[2] for path in checkpoint.paths]
    parts = [name for name in names if (found := checkpoint_name(name)) and found.part is not None]
    classic = f"{checkpoint.version:020d}.checkpoint.parquet"
    return (not parts and names != [classic]) or bool(sidecars_of(store, checkpoint))


def _text(time: int) -> str:
    return datetime.fromtimestamp(-(-time // 1000), timezone.utc).isoformat(sep=" ")
