"""Repairing statistics: computed from the data of each file, and committed with the file as it was."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._checks import texts_of, to_integer
from ...data_file.options import MAX_STATS_PATHS
from ...errors import DeltaVariantError, InvalidStatisticsError
from ...log import transaction
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot
from ...protocol import features
from ...protocol.actions import AddFile, DeletionVector, encode_path
from ...protocol.statistics import FileStatistics
from ...protocol.statistics import decode as decode_statistics
from ...storage.store import TableLocation
from ...writer.target import commit_context
from .compare import reasons_to_repair
from .compute import TableStatistics

__all__ = ["FileRepair", "Repair", "repair_table"]

OPERATION = "COMPUTE STATS"


@dataclass(frozen=True)
class FileRepair:
    """A file whose statistics are not right: why, their text as it is, and as it should be.

    `stats` is None where they cannot be computed, and `reasons` say why: such a file is left as it is.
    """

    path: str
    reasons: tuple[str, ...]
    stats_before: str | None
    stats: str | None


@dataclass(frozen=True)
class Repair:
    """What a repair found in the files of `version`, and the version that it committed, None for none."""

    uri: str
    version: int
    num_files: int
    files: tuple[FileRepair, ...]
    committed: int | None

    @property
    def repairable(self) -> tuple[FileRepair, ...]:
        """Return the files whose statistics can be computed."""
        return tuple(file for file in self.files if file.stats is not None)

    @property
    def unrepairable(self) -> tuple[FileRepair, ...]:
        """Return the files whose statistics cannot be computed."""
        return tuple(file for file in self.files if file.stats is None)


def repair_table(
    table: TableLocation,
    *,
    dry_run: bool = True,
    files: Collection[str] | None = None,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    storage_options: Mapping[str, str] | None = None,
) -> Repair:
    """Compute the statistics of data files that are wrong, absent or one-sided, and commit them.

    Data files are read and never touched. All other fields of a file are committed as they were, with
    `dataChange=false`. `dry_run=True` commits nothing and says what would be. `files` are the paths of the
    files to look at, None for all. Raises UnsupportedFeatureError and ProtocolError for a table that this
    version cannot commit to, CommitConflictError when another writer changed one of the files meanwhile,
    ValueError for a path in `files` that the table does not have.
    """
    to_integer("max_variant_stats_paths", max_variant_stats_paths, 0)
    snapshot = load_snapshot(table, storage_options=storage_options)
    check_may_repair(snapshot)
    chosen = _chosen(snapshot, files)
    found = judge_files(snapshot, chosen, max_variant_stats_paths)
    result = Repair(snapshot.uri, snapshot.version, len(chosen), found, None)
    return result if dry_run else commit_repair(snapshot, result)


def check_may_repair(snapshot: Snapshot) -> None:
    """Raise UnsupportedFeatureError or ProtocolError for a table that this version cannot commit to."""
    features.check_may_commit(snapshot.protocol, snapshot.configuration, snapshot.schema, snapshot.uri)


def judge_files(
    snapshot: Snapshot, files: Iterable[Mapping[str, Any]], max_variant_stats_paths: int
) -> tuple[FileRepair, ...]:
    """Return those of the files, rows of `Snapshot.files`, whose statistics are not right."""
    statistics = TableStatistics.of(snapshot, max_variant_stats_paths)
    judged = (_judge(statistics, add) for add in files)
    return tuple(repair for repair in judged if repair is not None)


def commit_repair(snapshot: Snapshot, repair: Repair) -> Repair:
    """Commit what was computed for files of a snapshot; raises CommitConflictError where one was changed."""
    if not repair.repairable:
        return repair
    adds = {add["path"]: add for add in _chosen(snapshot, [file.path for file in repair.repairable])}
    return replace(repair, committed=_commit(snapshot, adds, repair))


def _chosen(snapshot: Snapshot, files: Collection[str] | None) -> list[dict[str, Any]]:
    adds: list[dict[str, Any]] = snapshot.files.to_pylist()
    if files is None:
        return adds
    chosen = texts_of("paths", "files", files)
    unknown = sorted(set(chosen) - {add["path"] for add in adds})
    if unknown:
        raise ValueError(f"{snapshot.uri} has no data file {unknown[0]}")
    return [add for add in adds if add["path"] in chosen]


def _judge(statistics: TableStatistics, add: Mapping[str, Any]) -> FileRepair | None:
    """Return what is wrong with the statistics of a file, None when nothing is."""
    stated, why = _stated(add["stats"])
    vector = add["deletion_vector"]
    try:
        file = statistics.open(str(add["path"]))
        computed = statistics.compute(file, whole=True)
        reasons = why or tuple(reasons_to_repair(stated, computed, statistics.columns, file.schema))
        if vector is not None and stated.tight_bounds is not False and not why:
            reasons = (*reasons, "they claim to be of the rows that are left, and not of all")
        if not reasons:
            return None
        limited = statistics.compute(file)
    except DeltaVariantError as error:
        return FileRepair(add["path"], (f"they cannot be computed: {error}",), add["stats"], None)
    # Bounds of all rows are wide when some are deleted (requirements ST15).
    has_vectors = features.supports(statistics.snapshot.protocol, "deletionVectors")
    tight = False if vector is not None else True if has_vectors else None
    return FileRepair(add["path"], reasons, add["stats"], replace(limited, tight_bounds=tight).to_json())


def _stated(text: str | None) -> tuple[FileStatistics, tuple[str, ...]]:
    """Return the statistics of a file, and why they are none."""
    if text is None:
        return FileStatistics(), ("there are none",)
    try:
        return decode_statistics(text), ()
    except InvalidStatisticsError as error:
        return FileStatistics(), (str(error),)


def _commit(snapshot: Snapshot, adds: Mapping[str, Mapping[str, Any]], repair: Repair) -> int:
    recommitted = [_add_file(adds[file.path], file.stats) for file in repair.repairable]
    context = commit_context(OPERATION, metrics={"numFiles": len(recommitted)})
    return transaction.recommit_files(snapshot, recommitted, context=context)


def _add_file(add: Mapping[str, Any], stats: str | None) -> AddFile:
    """Return an AddFile with other statistics and every other field as the log has it."""
    vector = add["deletion_vector"]
    return AddFile(
        path=add["encoded_path"] or encode_path(add["path"]),
        partition_values=dict(add["partition_values"] or ()),
        size=add["size"],
        modification_time=add["modification_time"],
        data_change=False,
        stats=stats,
        tags=None if add["tags"] is None else dict(add["tags"]),
        deletion_vector=None if vector is None else DeletionVector(**vector),
        base_row_id=add["base_row_id"],
        default_row_commit_version=add["default_row_commit_version"],
        clustering_provider=add["clustering_provider"],
    )
