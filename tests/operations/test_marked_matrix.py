"""Each operation that changes rows marks them by deletion vectors, on a table of each feature.

docs/reference/tables.md shows the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from operations.test_operation_matrix import OPERATIONS, PAGE, Operation, Rows, plain_rows, read, write
from support.tables import read_commit
from write.test_row_tracking import tracked

import delta_variant as dv
from delta_variant.protocol.actions import is_residual

pytestmark = pytest.mark.usefixtures("small_files_are_shredded", "small_files_are_separated")


@dataclass(frozen=True)
class Feature:
    """The properties of a table; a path of the rows `mixed` has values of another type."""

    configuration: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()
    columns: Sequence[str] = ()
    mixed: Sequence[int] = ()


FEATURES = {
    "partitioned": Feature(partition_by=["day"]),
    "mapped by name": Feature({"delta.columnMapping.mode": "name"}),
    "mapped by id": Feature({"delta.columnMapping.mode": "id"}),
    "row tracking": Feature({"delta.enableRowTracking": "true"}),
    "change data feed": Feature({"delta.enableChangeDataFeed": "true"}),
    "constraints": Feature({"delta.constraints.natural": "id >= 0 and coalesce(event:n::bigint, 1) < 50"}),
    "generated columns": Feature(columns=["label string GENERATED ALWAYS AS (concat(day, '!'))"]),
    "residual rows": Feature(mixed=(1, 3, 5, 7, 10, 12, 17)),
}

REPLACED = {30: ("a", {"n": 3})}

MARKING = {
    "overwrite with `where`": Operation(
        lambda table: write(table, REPLACED, mode="overwrite", where="event:n::bigint = 3"),
        lambda rows: {**{n: row for n, row in rows.items() if n != 3}, **REPLACED},
    ),
    **{name: OPERATIONS[name] for name in ("delete", "update", "merge")},
}


def make(table: Path, feature: Feature) -> Rows:
    """Create a table of two files or more, and return its rows."""
    rows = plain_rows(0, 20)
    for n in feature.mixed:
        rows[n] = (rows[n][0], {"n": n, "deep": {"s": n}})
    columns = ["id bigint", "day string", "event variant", *feature.columns]
    configuration = {"delta.enableDeletionVectors": "true", **feature.configuration}
    dv.create_table(table, columns, partition_by=feature.partition_by, configuration=configuration)
    write(table, {n: row for n, row in rows.items() if n < 10})
    write(table, {n: row for n, row in rows.items() if n >= 10})
    are_residual = [is_residual(tags) for tags in dv.load_snapshot(table).files["tags"].to_pylist()]
    assert sum(are_residual) == (2 if feature.mixed else 0)
    return rows


@cache
def outcome(operation: str, feature: str) -> str:
    """Return how an operation changes rows: whether it marks them, or rewrites their files."""
    with TemporaryDirectory() as folder:
        table, chosen = Path(folder) / "t", MARKING[operation]
        before = make(table, FEATURES[feature])
        ids = tracked(table) if feature == "row tracking" else {}
        chosen.run(table)
        after, version = chosen.model(before), dv.load_snapshot(table).version
        assert read(table) == after
        assert read(dv.Table(table).as_of(version - 1)) == before
        changed = {n for n in before.keys() | after if before.get(n) != after.get(n)}
        if feature == "change data feed":
            assert changes(table, version) == (before.keys() & changed, after.keys() & changed)
        if feature == "row tracking":
            found = tracked(table)
            assert {n: found[n][0] for n in ids.keys() & after} == {n: ids[n][0] for n in ids.keys() & after}
            assert {n for n in after if found[n][1] == version} == after.keys() & changed
        if feature == "generated columns":
            assert dv.read_table(table, where="label <> concat(day, '!')").count() == 0
        assert dv.audit_table(table, data=True).findings == ()
        return marks(table, version, len(before.keys() & changed))


def changes(table: Path, version: int) -> tuple[set[int], set[int]]:
    """Return the ids of the rows that a version removes, and of those that it adds."""
    columns = {"kind": "_change_type", "id": "id"}
    found = dv.read_changes(table, start=version, columns=columns).to_table().to_pylist()
    removed = [row["id"] for row in found if row["kind"] in ("delete", "update_preimage")]
    added = [row["id"] for row in found if row["kind"] in ("insert", "update_postimage")]
    assert len(removed) == len(set(removed))
    assert len(added) == len(set(added))
    return set(removed), set(added)


def marks(table: Path, version: int, removed: int) -> str:
    """Return whether vectors mark all rows that a version removes."""
    actions = [*read_commit(table, version)]
    adds = [each["add"] for each in actions if "add" in each]
    removes = {each["remove"]["path"] for each in actions if "remove" in each}
    vectors = [add["deletionVector"]["cardinality"] for add in adds if "deletionVector" in add]
    return "✓" if sum(vectors) == removed and removes <= {add["path"] for add in adds} else "rewrites"


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("operation", MARKING)
def test_an_operation_marks_rows(operation: str, feature: str):
    assert outcome(operation, feature) == "✓"


def test_the_page_of_tables_shows_what_marks_rows():
    lines = [f"| | {' | '.join(FEATURES)} |", f"|---|{':-:|' * len(FEATURES)}"]
    for operation in MARKING:
        lines.append(f"| {operation} | {' | '.join(outcome(operation, feature) for feature in FEATURES)} |")
    assert "\n".join(lines) in PAGE.read_text(encoding="utf-8"), "\n".join(lines)
