"""Commits that change only the metadata and, where it requires more features, the protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import SchemaError, UnsupportedFeatureError, error_location
from ...execution import Description
from ...log import transaction
from ...log.commit_context import CommitOptions, CommitResult, commit_context
from ...log.conflicts import Reads
from ...log.load import load_latest
from ...log.snapshot import Snapshot
from ...protocol import features, properties
from ...protocol.actions import CLUSTERING_DOMAIN
from ...protocol.clustering import decode_clustering_columns
from ...protocol.table_configuration import TableConfiguration
from ...protocol.types import FieldPath, StructType
from ...storage.store import TableLocation
from ...write.table_changes import change
from ..history import parameters_text

ICEBERG = (properties.ENABLE_ICEBERG_COMPAT_V1, properties.ENABLE_ICEBERG_COMPAT_V2)


def load_for_alter(table: TableLocation) -> Snapshot:
    """Return the latest snapshot of a table; raise UnsupportedFeatureError if this version cannot commit."""
    snapshot = load_latest(table)
    snapshot.configuration.check_may_commit()
    return snapshot


def check_schema_may_change(snapshot: Snapshot) -> None:
    """Raise UnsupportedFeatureError for a table with rules on schema changes that are not implemented."""
    for prop in ICEBERG:
        if snapshot.configuration.get(prop):
            raise UnsupportedFeatureError(
                f"cannot change the schema of {snapshot.uri} because this version does not support "
                f"{prop.name}=true: unset it first",
                table=snapshot.uri,
            )


def clustering_columns(snapshot: Snapshot) -> tuple[FieldPath, ...]:
    """Return the physical paths of the clustering columns of a table, none if it is not clustered."""
    domain = snapshot.domain_metadata.get(CLUSTERING_DOMAIN)
    if domain is None:
        return ()
    with error_location(table=snapshot.uri):
        return decode_clustering_columns(domain.configuration)


@dataclass(frozen=True)
class AlterationPlan:
    """A change of the metadata of a table.

    With `relies_on_rows`, the commit conflicts with concurrent changes of the files.
    """

    snapshot: Snapshot
    after: TableConfiguration
    relies_on_rows: bool
    operation: str
    parameters: Mapping[str, Any]
    commit: CommitOptions | None

    def describe(self) -> Description:
        """Return the operation and its parameters, as the history will show them."""
        version, operation = self.snapshot.version, self.operation
        sentence = f"version {version}, {operation}: {parameters_text(self.parameters)}"
        return Description(
            (sentence,), {"version": version, "operation": operation, "parameters": self.parameters}
        )

    def run(self) -> CommitResult:
        """Commit the change, unless nothing changes."""
        if self.after == self.snapshot.configuration:
            return CommitResult(None)
        snapshot, after = self.snapshot, self.after
        context = commit_context(self.operation, self.parameters, commit=self.commit)
        if self.relies_on_rows:
            reads, none = Reads(snapshot.files, lambda adds: True), snapshot.files.slice(0, 0)
            version = transaction.replace_files(snapshot, none, [], reads=reads, after=after, context=context)
        else:
            version = transaction.add_files(snapshot, [], data_change=False, after=after, context=context)
        return CommitResult(version)


def plan_alteration(
    snapshot: Snapshot,
    *,
    columns: StructType | None = None,
    configuration: Mapping[str, str] | None = None,
    partition_columns: Sequence[str] | None = None,
    table_features: Collection[str] = (),
    relies_on_rows: bool = False,
    operation: str,
    parameters: Mapping[str, Any],
    commit: CommitOptions | None = None,
) -> AlterationPlan:
    """Return the plan of a commit of new metadata, None for each part that stays.

    The protocol gains `table_features` and the features that the schema and the properties require.
    """
    after = change(
        snapshot.configuration,
        columns=columns,
        configuration=configuration,
        partition_columns=partition_columns,
        table_features=table_features,
    )
    after.check_may_commit()
    _check_names(after)
    return AlterationPlan(snapshot, after, relies_on_rows, operation, parameters, commit)


def _check_names(table: TableConfiguration) -> None:
    if not table.get(properties.ENABLE_CHANGE_DATA_FEED):
        return
    for field in table.schema.fields:
        if field.name.lower() in features.CHANGE_COLUMNS:
            raise SchemaError(
                f"cannot have a column {field.name!r} with {properties.ENABLE_CHANGE_DATA_FEED.name}=true "
                "because the change data feed adds a column of that name: rename the column",
                column=field.name,
            )
