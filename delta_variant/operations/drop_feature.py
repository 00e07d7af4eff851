"""Remove a feature from the protocol of a table, as Delta's `ALTER TABLE … DROP FEATURE` does.

The traces of the feature are removed first, in commits that the next ones depend on: its property, so that no
writer adds new traces, then the files. Earlier versions still have them. Checkpoints without traces separate
these from the later ones, and the feature checkpointProtection keeps both until they expire together. The
protocol shrinks in the last commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .._checks import check_option, list_names
from .._progress import begin
from .._text import count
from ..errors import CommitConflictError, ProtocolError
from ..execution import Description, Executor, executor_of
from ..log import transaction
from ..log.catalog import check_maintenance
from ..log.checkpoints import writing
from ..log.commit_context import CommitOptions, CommitResult, commit_context, now, without_txn
from ..log.load import refresh
from ..log.snapshot import Snapshot
from ..protocol import features, properties
from ..protocol.actions import Protocol
from ..protocol.features import FEATURES
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import TableLocation
from ..write.table_changes import change
from .alter.alteration import load_for_alter, plan_alteration
from .feature_traces import CHECKPOINT_PROTECTION, NO_TRACES, REMEDIES, REMOVALS, FeatureHistory, Removal

BARRIERS = 3
"""Checkpoints before the last commit: Delta on Spark gives up after three that it cannot read."""

ATTEMPTS = 100
"""How often the last commit is tried. Each time, the commits that were faster are searched for traces."""


def drop_feature(
    table: TableLocation, name: str, *, truncate_history: bool = False, commit: CommitOptions | None = None
) -> CommitResult:
    """Remove a feature from the protocol of a table, so that readers and writers without it open the table.

    The rows stay the same. A property that enables the feature is unset, and files that use it are rewritten:
    those with shredded Variants, with deletion vectors or with narrower types. A feature that the schema, a
    constraint or another feature needs is not dropped. An interrupted call can be repeated.

    Earlier versions of the table keep a feature of readers, and can still be read: the protocol gains the
    feature `checkpointProtection`, which only writers have to know, and which keeps their checkpoints until
    they expire. With `truncate_history`, these versions are deleted instead. This takes two calls: the first
    one removes what uses the feature, and the second one drops it when the versions before are a day old.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        name: The name of the feature, such as `variantShredding`.
        truncate_history: Delete earlier versions that use the feature from the log. False by default. The
            feature `checkpointProtection` itself requires True.
        commit: The metadata of the last commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        The version of the table without the feature.

    Raises:
        TableNotFoundError: There is no table at this location.
        ProtocolError: The protocol does not have the feature, or the table needs it; the message says why.
        UnsupportedFeatureError: This version cannot drop the feature, or cannot write to the table.
        RetentionDurationError: With `truncate_history`, earlier versions that use the feature are not old
            enough; the message says when they are.
        CommitConflictError: A concurrent commit conflicts; repeat the call.
        ValueError: `truncate_history` does not fit the feature.

    Example:
        >>> import delta_variant as dv
        >>> events = dv.Table("events")
        >>> _ = events.append([{"event": {"user": 7}}], variant_columns=["event"])
        >>> _ = events.drop_feature("variantShredding")
        >>> events.scan().to_pylist()
        [{'event': {'user': 7}}]
    """
    plan = plan_drop_feature(table, name, truncate_history=truncate_history, commit=commit)
    return run_drop_feature(plan, table)


@dataclass(frozen=True)
class DropFeaturePlan:
    """The removal of a feature, and the files with traces of it, rows of `Snapshot.files`.

    `truncates` states that earlier versions that use the feature are deleted.
    """

    snapshot: Snapshot
    name: str
    removal: Removal
    files: pa.Table
    truncates: bool
    commit: CommitOptions

    @property
    def protects_history(self) -> bool:
        """Return whether the checkpoints of earlier versions, which need the feature, have to be kept."""
        return FEATURES[self.name].is_reader_writer and not self.truncates

    @property
    def added(self) -> tuple[str, ...]:
        return (CHECKPOINT_PROTECTION,) if self.protects_history else ()

    def describe(self) -> Description:
        """Return which traces the operation removes, and the protocol that remains."""
        snapshot, settings = self.snapshot, self.removal.changes(self.snapshot.properties)
        after = features.without_feature(snapshot.protocol, self.name, self.added)
        sentences = [f"version {snapshot.version}, drop the feature {self.name}"]
        for name, text in settings.items():
            sentences.append(f"unset {name}" if text is None else f"set {name}={text}")
        if self.files.num_rows:
            sentences.append(f"remove its traces from {count(self.files.num_rows, 'file')}")
        if self.truncates:
            sentences.append("delete earlier versions that use it from the log when they are a day old")
        if self.protects_history:
            sentences.append(f"write {BARRIERS + 1} checkpoints, which keep earlier versions readable")
        facts = {
            "version": snapshot.version,
            "feature": self.name,
            "properties": settings,
            "files": self.files["path"].to_pylist(),
            "truncate_history": self.truncates,
            "protocol": msgspec.to_builtins(after),
        }
        return Description((*sentences, _protocol_text(after)), facts)


def _protocol_text(protocol: Protocol) -> str:
    versions = f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"
    return f"protocol: {versions}; features: {list_names(sorted(features.supported_features(protocol)))}"


def plan_drop_feature(
    table: TableLocation, name: str, *, truncate_history: bool, commit: CommitOptions | None = None
) -> DropFeaturePlan:
    """Return the plan of the removal of a feature; raises the errors of `drop_feature`."""
    check_option("truncate_history", truncate_history, (True, False))
    options = without_txn(commit, "drop_feature")
    snapshot = load_for_alter(table)
    check_maintenance("drop a feature of", snapshot.uri, snapshot.protocol)
    _check_present(snapshot, name)
    _check_truncation(name, truncate_history)
    is_kept = features.has_other_name(snapshot.protocol, name)
    removal = NO_TRACES if is_kept else REMOVALS.get(FEATURES[name].base_name, NO_TRACES)
    _check_not_needed(snapshot, name, removal)
    begin("searching", files=snapshot.num_files)
    executor = executor_of(table, snapshot.store, "DROP FEATURE")
    files = removal.find(executor, snapshot, pa.array([], pa.string()))
    return DropFeaturePlan(snapshot, name, removal, files, truncate_history, options)


def _check_present(snapshot: Snapshot, name: str) -> None:
    present = features.supported_features(snapshot.protocol)
    if name not in present:
        raise ProtocolError(
            f"cannot drop the feature {name!r} because the protocol of {snapshot.uri} does not have it: its "
            f"features are {list_names(sorted(present), str(name)) or 'none'}",
            table=snapshot.uri,
        )


def _check_truncation(name: str, truncate_history: bool) -> None:
    if name == CHECKPOINT_PROTECTION and not truncate_history:
        raise ValueError(
            f"cannot drop the feature {name!r} while earlier versions need it: pass truncate_history=True"
        )
    if truncate_history and name != CHECKPOINT_PROTECTION and not FEATURES[name].is_reader_writer:
        raise ValueError(
            f"truncate_history: readers do not need the feature {name!r}, so that earlier versions can stay: "
            "omit it"
        )


def _check_not_needed(snapshot: Snapshot, name: str, removal: Removal) -> None:
    """Raise ProtocolError if a part of the table that is not a trace requires the feature."""
    uri = snapshot.uri
    if features.has_other_name(snapshot.protocol, name):
        return
    if dependent := features.dependent_features(snapshot.protocol, name):
        raise ProtocolError(
            f"cannot drop the feature {name!r} of {uri} because its features {list_names(dependent)} require "
            f"it: drop {dependent[0]} first",
            table=uri,
        )
    settings = removal.apply(snapshot.properties)
    domains = snapshot.domain_metadata.keys() - {each.domain for each in removal.domains(snapshot)}
    uses = list(features.find_uses(name, removal.columns(snapshot.schema), settings, domains))
    if uses:
        remedy = REMEDIES.get(FEATURES[name].base_name, "write the rows to a new table without it")
        raise ProtocolError(
            f"cannot drop the feature {name!r} of {uri} because it has {list_names(uses)}: {remedy}",
            table=uri,
        )


def run_drop_feature(plan: DropFeaturePlan, table: TableLocation) -> CommitResult:
    """Remove the traces of a feature, then the feature."""
    executor = executor_of(table, plan.snapshot.store, "DROP FEATURE")
    clean = _remove_traces(plan, executor)
    if plan.truncates:
        history = FeatureHistory(refresh(plan.snapshot), plan.name, plan.removal, clean, executor)
        history.truncate(partial(_write_barrier, plan.snapshot))
    for _ in range(BARRIERS if plan.protects_history else 0):
        _write_barrier(plan.snapshot)
    version = _commit_drop(plan, executor, clean)
    if plan.protects_history:
        _write_checkpoint(plan.snapshot, version)
    return CommitResult(version)


def _remove_traces(plan: DropFeaturePlan, executor: Executor) -> Array:
    """Change the properties, replace the files with traces, and return the paths of files without traces."""
    snapshot, removal = plan.snapshot, plan.removal
    if changes := removal.changes(snapshot.properties):
        sets = None not in changes.values()
        plan_alteration(
            snapshot,
            configuration=removal.apply(snapshot.properties),
            operation="SET TBLPROPERTIES" if sets else "UNSET TBLPROPERTIES",
            parameters={"properties": changes if sets else list(changes)},
        ).run()
    clean = _paths_without(snapshot, plan.files)
    while True:
        snapshot = refresh(snapshot)
        found = removal.find(executor.another(), snapshot, clean)
        clean = _paths_without(snapshot, found)
        if not found.num_rows:
            removal.finish(snapshot)
            return clean
        removal.clean(executor, snapshot, found, plan.name)


def _paths_without(snapshot: Snapshot, files: pa.Table) -> Array:
    paths: Array = snapshot.files["path"].combine_chunks()
    return paths.filter(pc.invert(pc.is_in(paths, value_set=files["path"])))


def _write_barrier(snapshot: Snapshot) -> None:
    """Commit a version without traces, and write its checkpoint."""
    context = commit_context("Empty Commit")
    version = transaction.add_files(refresh(snapshot), [], data_change=False, context=context)
    _write_checkpoint(snapshot, version)


def _write_checkpoint(snapshot: Snapshot, version: int) -> None:
    begin("writing the checkpoint")
    writing.write_checkpoint(snapshot.store, version, now=now(), unique_id=str(uuid4()))


def _commit_drop(plan: DropFeaturePlan, executor: Executor, clean: Array) -> int:
    """Commit the protocol without the feature as the next version, and return the version."""
    context = commit_context(
        "DROP FEATURE", {"featureName": plan.name, "truncateHistory": plan.truncates}, commit=plan.commit
    )
    attempts = 0
    while True:
        snapshot = refresh(plan.snapshot)
        _check_clean(plan, executor, snapshot, clean)
        domains = [msgspec.structs.replace(each, removed=True) for each in plan.removal.domains(snapshot)]
        try:
            return transaction.change_next(snapshot, _after(plan, snapshot), context=context, domains=domains)
        except CommitConflictError:
            attempts += 1
            if attempts == ATTEMPTS:
                raise


def _check_clean(plan: DropFeaturePlan, executor: Executor, snapshot: Snapshot, clean: Array) -> None:
    """Raise an error if a concurrent writer used the feature again."""
    name, removal = plan.name, plan.removal
    _check_present(snapshot, name)
    _check_not_needed(snapshot, name, removal)
    found = removal.find(executor.another(), snapshot, clean).num_rows
    if found or removal.changes(snapshot.properties):
        raise CommitConflictError(
            f"cannot drop the feature {name!r} of {snapshot.uri} because a concurrent writer used it again: "
            "repeat the call",
            table=snapshot.uri,
            version=snapshot.version,
        )


def _after(plan: DropFeaturePlan, snapshot: Snapshot) -> TableConfiguration:
    """Return the table without the feature in the version that follows `snapshot`."""
    settings = {name: text for name, text in snapshot.properties.items() if name not in plan.removal.dropped}
    if plan.protects_history:
        settings[properties.CHECKPOINT_PROTECTION_VERSION.name] = str(snapshot.version + 1)
    columns = plan.removal.columns(snapshot.schema)
    after = replace(
        change(snapshot.configuration, columns=columns, configuration=settings),
        protocol=features.without_feature(snapshot.protocol, plan.name, plan.added),
    )
    after.check_may_commit()
    return after
