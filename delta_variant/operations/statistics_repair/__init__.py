"""Repairing statistics: computed from the data of each file, and committed with the file as it was."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..._checks import texts_of, to_integer
from ...data_file.options import MAX_STATS_PATHS
from ...errors import DeltaVariantError, InvalidStatisticsError
from ...log import transaction
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot, add_actions
from ...protocol import features
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
    chosen = _select_files(snapshot, files)
    found = compare_files(snapshot, chosen, max_variant_stats_paths)
    result = Repair(snapshot.uri, snapshot.version, len(chosen), found, None)
    return result if dry_run else commit_repair(snapshot, result)


def check_may_repair(snapshot: Snapshot) -> None:
    """Raise UnsupportedFeatureError or ProtocolError for a table that this version cannot commit to."""
    features.check_may_commit(snapshot.protocol, snapshot.configuration, snapshot.schema, snapshot.uri)


def compare_files(
    snapshot: Snapshot, files: Iterable[Mapping[str, Any]], max_variant_stats_paths: int
) -> tuple[FileRepair, ...]:
    """Return those of the files, rows of `Snapshot.files`, whose statistics are not right."""
    statistics = TableStatistics.of(snapshot, max_variant_stats_paths)
    compared = (_compare_file(statistics, add) for add in files)
    return tuple(repair for repair in compared if repair is not None)


def commit_repair(snapshot: Snapshot, repair: Repair) -> Repair:
    """Commit what was computed for files of a snapshot; raises CommitConflictError where one was changed."""
    if not repair.repairable:
        return repair
    return replace(repair, committed=_commit(snapshot, repair))


def _select_files(snapshot: Snapshot, files: Collection[str] | None) -> list[dict[str, Any]]:
    adds: list[dict[str, Any]] = snapshot.files.to_pylist()
    if files is None:
        return adds
    chosen = texts_of("paths", "files", files)
    unknown = sorted(set(chosen) - {add["path"] for add in adds})
    if unknown:
        raise ValueError(f"{snapshot.uri} has no data file {unknown[0]}")
    return [add for add in adds if add["path"] in chosen]


def _compare_file(statistics: TableStatistics, add: Mapping[str, Any]) -> FileRepair | None:
    """Return what is wrong with the statistics of a file, None when nothing is."""
    stated, why = _decode_stats(add["stats"])
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


def _decode_stats(text: str | None) -> tuple[FileStatistics, tuple[str, ...]]:
    """Return the statistics of a file, and why they are none."""
    if text is None:
        return FileStatistics(), ("there are none",)
    try:
        return decode_statistics(text), ()
    except InvalidStatisticsError as error:
        return FileStatistics(), (str(error),)


def _commit(snapshot: Snapshot, repair: Repair) -> int:
    stats = {file.path: file.stats for file in repair.repairable}
    files = snapshot.files.filter(pc.is_in(snapshot.files["path"], value_set=pa.array(stats, pa.string())))
    adds = [
        msgspec.structs.replace(add, stats=stats[str(path)])
        for path, add in zip(files["path"].to_pylist(), add_actions(files), strict=True)
    ]
    context = commit_context(OPERATION, metrics={"numFiles": len(adds)})
    return transaction.recommit_files(snapshot, adds, context=context)
