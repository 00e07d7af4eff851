"""Each operation on a table of each feature gives the expected rows, or an error that names the feature.

The expected rows are computed by plain Python over plain rows. docs/reference/tables.md shows the results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from support.planting import plant_vector

import delta_variant as dv
from delta_variant.errors import DeltaVariantError
from delta_variant.write import changed_rows, copy_on_write

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "tables.md"

Row = tuple[str, Any]
Rows = dict[int, Row]
"""Rows by `id`: `day`, and `event` as a JSON value."""


@dataclass(frozen=True)
class Feature:
    """The properties of a table; `planted` and `deleted` are ids that a deletion vector marks.

    The first are of another writer, as its log has them, the others of a delete.
    """

    configuration: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()
    planted: Sequence[int] = ()
    deleted: Sequence[int] = ()


@dataclass(frozen=True)
class Operation:
    """An operation on a table, and on plain rows."""

    run: Callable[[Path], object]
    model: Callable[[Rows], Rows] = dict
    options: Mapping[str, Any] = field(default_factory=dict)
    """How the files of the table are written before the operation."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    """Further properties that the operation needs."""


FEATURES = {
    "partitioned": Feature(partition_by=["day"]),
    "mapped by name": Feature({"delta.columnMapping.mode": "name"}),
    "mapped by id": Feature({"delta.columnMapping.mode": "id"}),
    "deletion vectors": Feature({"delta.enableDeletionVectors": "true"}, planted=(0, 4)),
    "deletion vectors written": Feature({"delta.enableDeletionVectors": "true"}, deleted=(0, 4)),
    "row tracking": Feature({"delta.enableRowTracking": "true"}),
    "in-commit timestamps": Feature({"delta.enableInCommitTimestamps": "true"}),
    "v2 checkpoints": Feature({"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1"}),
    "change data feed": Feature({"delta.enableChangeDataFeed": "true"}),
    "constraints": Feature({"delta.constraints.natural": "id >= 0 and coalesce(event:n::bigint, 1) < 50"}),
    "append-only": Feature({"delta.appendOnly": "true"}),
}


def plain_rows(first: int, count: int) -> Rows:
    return {n: ("ab"[n % 2], {"n": n, "deep": {"s": f"x{n}"}}) for n in range(first, first + count)}


def write(table: Path, rows: Rows, **options: Any) -> None:
    columns = {
        "id": list(rows),
        "day": [day for day, _ in rows.values()],
        "event": pa.array([json.dumps(event) for _, event in rows.values()], pa.string()),
    }
    options = {"variant_columns": ["event"], "mode": "append", **options}
    dv.write_table(str(table), pa.table(columns), **options)


def make(table: Path, feature: Feature, operation: Operation) -> Rows:
    """Create a table for an operation, and return its rows. The last commit appends the rows from 6 on."""
    made = {
        "configuration": {**feature.configuration, **operation.configuration},
        "partition_by": list(feature.partition_by),
    }
    write(table, plain_rows(0, 6), **made, **operation.options)
    if feature.deleted:
        marked = dv.delete(table, f"id in {feature.deleted}")
        assert (marked.rows_copied, marked.metrics["numDeletionVectorsAdded"]) == (0, 1)
    write(table, plain_rows(6, 3), **operation.options)
    if feature.planted:
        plant_vector(table, 0, *feature.planted)
    return {n: row for n, row in plain_rows(0, 9).items() if n not in (*feature.planted, *feature.deleted)}


def read(table: Path | dv.Table) -> Rows:
    columns = {"id": "id", "day": "day", "event": "to_json(event)"}
    found = dv.read_table(table, columns=columns).to_table().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: (row["day"], json.loads(row["event"])) for row in found}


NEW = {20: ("a", {"n": 20}), 21: ("b", {"m": [1, None]})}
ONLY_A = {30: ("a", {"n": 30})}


def update(rows: Rows) -> Rows:
    return {n: (day, {**event, "n": -n} if n in (1, 7) else event) for n, (day, event) in rows.items()}


def run_merge(table: Path) -> None:
    merge = dv.merge(str(table), pa.table({"key": [2, 3, 40]}), "event:n::bigint = key")
    merge = merge.when_matched_delete("key = 3").when_matched_update({"event:k": "key", "day": "'c'"})
    merge.when_not_matched_insert({"id": "key", "day": "'a'", "event:n": "key"}).execute()


def merged(rows: Rows) -> Rows:
    rest = {n: row for n, row in rows.items() if n != 3}
    return {**rest, 2: ("c", {**rows[2][1], "k": 2}), 40: ("a", {"n": 40})}


def run_repair(table: Path) -> None:
    before = dv.load_snapshot(table).version
    repair = dv.repair_statistics(str(table), dry_run=False)
    assert repair.version == dv.load_snapshot(table).version == before + 1
    assert dv.repair_statistics(str(table)).files == ()


def run_audit(table: Path) -> None:
    assert dv.audit_table(str(table), data=True).is_clean


def run_query(table: Path) -> None:
    columns, where = {"id": "id", "s": "event:deep.s::string"}, "event:n::bigint between 5 and 7"
    found = dv.read_table(str(table), columns=columns, where=where).to_table().to_pylist()
    assert sorted(row["s"] for row in found) == ["x5", "x6", "x7"]


def run_columns(table: Path) -> None:
    if dv.load_snapshot(table).properties.get("delta.columnMapping.mode") != "id":
        dv.set_properties(table, {"delta.columnMapping.mode": "name"})
    dv.add_columns(table, {"extra": "struct<a: int>"})
    dv.rename_column(table, "day", "the day")
    dv.rename_column(table, "extra.a", "b")
    dv.drop_column(table, "extra")
    dv.rename_column(table, "the day", "day")


def run_widening(table: Path) -> None:
    dv.set_properties(table, {"delta.enableTypeWidening": "true"})
    if "delta.constraints.natural" in dv.load_snapshot(table).properties:
        dv.drop_constraint(table, "natural")
    dv.change_type(table, "id", "decimal(20,0)")


def run_drop(table: Path) -> None:
    before = dv.load_snapshot(table).version
    assert len(dv.shredded_columns(table)) > len(dv.load_snapshot(table).arrow_schema)
    version = dv.drop_feature(table, "variantShredding").version
    assert len(dv.shredded_columns(table)) == len(dv.load_snapshot(table).arrow_schema)
    assert read(dv.Table(table).as_of(before)) == read(table)
    assert dv.history(table)[0].version == version


def run_history(table: Path) -> None:
    expected = [*range(dv.load_snapshot(table).version, -1, -1)]
    assert [entry.version for entry in dv.history(str(table))] == expected
    assert len(expected) >= 2


def run_changes(table: Path) -> None:
    columns = {"id": "id", "kind": "_change_type", "day": "day", "event": "to_json(event)"}
    found = dv.read_changes(str(table), columns=columns).to_table().to_pylist()
    deleted = {row["id"] for row in found if row["kind"] == "delete"}
    inserted = [row for row in found if row["kind"] == "insert" and row["id"] not in deleted]
    assert len(found) == len(inserted) + 2 * len(deleted)
    assert {row["id"]: (row["day"], json.loads(row["event"])) for row in inserted} == read(table)


def run_clones(table: Path) -> None:
    deep = dv.Table(table.with_name("deep"))
    shallow = dv.Table(table.with_name("shallow"), {"allow_paths_outside_table": "true"})
    dv.clone(table, deep)
    dv.clone(table, shallow, shallow=True)
    for clone in (deep, shallow):
        assert read(clone) == read(table)
        assert clone.audit(data=True).is_clean


def run_export(table: Path) -> None:
    target = table.with_name("export")
    columns = {"id": "id", "day": "day", "event": "to_json(event)", "n": "event:n::bigint"}
    dv.export(table, target, columns=columns)
    found = DeltaTable(target).to_pyarrow_table().to_pylist()
    assert {row["id"]: (row["day"], json.loads(row["event"])) for row in found} == read(table)
    assert all(row["n"] == row["id"] for row in found)
    assert dv.audit_table(target, data=True).is_clean


def run_vacuum(table: Path) -> None:
    dv.optimize(str(table), sort_by="id")
    result = dv.vacuum(str(table), 0, dry_run=False, enforce_retention_duration=False)
    assert result.files


OPERATIONS = {
    "create": Operation(lambda table: None),
    "read": Operation(run_query),
    "append": Operation(lambda table: write(table, NEW), lambda rows: {**rows, **NEW}),
    "overwrite": Operation(lambda table: write(table, NEW, mode="overwrite"), lambda rows: dict(NEW)),
    "overwrite with `where`": Operation(
        lambda table: write(table, ONLY_A, mode="overwrite", where="day = 'a'"),
        lambda rows: {**{n: row for n, row in rows.items() if row[0] != "a"}, **ONLY_A},
    ),
    "delete": Operation(
        lambda table: dv.delete(str(table), "event:n::bigint in (1, 6)"),
        lambda rows: {n: row for n, row in rows.items() if n not in (1, 6)},
    ),
    "update": Operation(lambda table: dv.update(str(table), {"event:n": "-id"}, "id in (1, 7)"), update),
    "merge": Operation(run_merge, merged),
    "optimize": Operation(lambda table: dv.optimize(str(table), sort_by="event:n::bigint")),
    "set a property": Operation(
        lambda table: dv.set_properties(table, {"delta.enableVariantShredding": "false", "team": "us"})
    ),
    "add a column": Operation(
        lambda table: [dv.add_columns(table, {"more": "variant"}), write(table, NEW)],
        lambda rows: {**rows, **NEW},
    ),
    "rename and drop columns": Operation(run_columns),
    "widen a type": Operation(run_widening),
    "add a constraint": Operation(lambda table: dv.add_constraint(table, "n", "event:n::bigint < 40")),
    "drop `variantShredding`": Operation(run_drop),
    "read changes": Operation(run_changes, configuration={"delta.enableChangeDataFeed": "true"}),
    "vacuum": Operation(run_vacuum),
    "restore": Operation(
        lambda table: dv.restore(str(table), dv.load_snapshot(table).version - 1),
        lambda rows: {n: row for n, row in rows.items() if n < 6},
    ),
    "history": Operation(run_history),
    "clone": Operation(run_clones),
    "export": Operation(run_export),
    "repair": Operation(run_repair, options={"files": dv.FileOptions(max_variant_stats_paths=0)}),
    "audit": Operation(run_audit),
}

REFUSED = {
    (operation, "append-only"): "UnsupportedFeatureError"
    for operation in ("overwrite", "overwrite with `where`", "delete", "update", "merge", "restore")
}


@cache
def outcome(operation: str, feature: str) -> str | None:
    """Return the name of the error of an operation, None if it succeeds."""
    with TemporaryDirectory() as folder:
        table, chosen = Path(folder) / "t", OPERATIONS[operation]
        before = make(table, FEATURES[feature], chosen)
        refusal = _refusal(lambda: chosen.run(table))
        if refusal is not None:
            assert FEATURES[feature].configuration.keys() & set(str(refusal).replace("=", " ").split())
            assert read(table) == before
            return type(refusal).__name__
        assert read(table) == chosen.model(before)
        audit = dv.audit_table(str(table), data=True)
        assert audit.is_clean, audit.findings
        return None


def _refusal(run: Callable[[], object]) -> DeltaVariantError | None:
    try:
        run()
    except DeltaVariantError as error:
        return error
    return None


@pytest.mark.usefixtures("small_files_are_shredded")
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_works_or_names_the_unsupported_feature(operation: str, feature: str):
    assert outcome(operation, feature) == REFUSED.get((operation, feature))


@pytest.mark.usefixtures("small_files_are_shredded")
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("operation", ["overwrite with `where`", "delete", "update", "merge"])
def test_changed_rows_that_are_few_are_replaced(
    operation: str, feature: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(changed_rows, "MOST_REPLACED", 1)
    monkeypatch.setattr(copy_on_write, "MOST_REPLACED", 1)
    assert outcome.__wrapped__(operation, feature) == REFUSED.get((operation, feature))


@pytest.mark.usefixtures("small_files_are_shredded")
def test_the_page_of_tables_shows_the_outcome():
    lines = [f"| | {' | '.join(FEATURES)} |", f"|---|{':-:|' * len(FEATURES)}"]
    for operation in OPERATIONS:
        cells = ["✓" if outcome(operation, feature) is None else "rejected" for feature in FEATURES]
        lines.append(f"| {operation} | {' | '.join(cells)} |")
    assert "\n".join(lines) in PAGE.read_text(encoding="utf-8"), "\n".join(lines)
