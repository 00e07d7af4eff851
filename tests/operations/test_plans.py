"""Plans travel as bytes: an operation does the same by a plan that was pickled."""

from __future__ import annotations

import importlib
import os
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import delta_variant as dv
from delta_variant import operations, write

ROWS = [{"id": number, "event": {"n": number}} for number in (1, 2, 3)]
LATER = [{"id": 4, "event": {"n": 4}}]


def merged(table: Path) -> None:
    merge = dv.merge(table, [{"id": 2}, {"id": 9}], "target.id = source.id")
    merge.when_matched_delete().when_not_matched_insert({"id": "source.id"}).execute()


def vacuumed(table: Path) -> None:
    dv.optimize(table)
    deleted = dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False).files
    assert {path.name for path in table.glob("*.parquet")}.isdisjoint(deleted)
    assert len(deleted) == 2


def log_repaired(table: Path) -> None:
    (table / "_delta_log" / f"{1:020}.crc").write_text("{}")
    assert dv.repair_log(table, dry_run=False).files == (f"{1:020}.crc",)


def cleaned(table: Path) -> None:
    dv.set_properties(table, {"delta.checkpointInterval": "1"})
    for file in (table / "_delta_log").iterdir():
        os.utime(file, (0, 0))
    assert dv.clean_up_log(table, dry_run=False).first_version == 3


def repaired(table: Path) -> None:
    [lost] = [
        path
        for path in table.glob("*.parquet")
        if pq.read_table(path, columns=["id"])["id"].to_pylist() == [4]
    ]
    lost.unlink()
    assert dv.repair_files(table, dry_run=False).files == (lost.name,)


# The class of the plan of each operation, and the values of `id` and `event:n` that the operation leaves.
OPERATIONS: dict[str, tuple[str, Callable[[Path], object], list[tuple[int, int | None]]]] = {
    "delete": ("RewritePlan", lambda table: dv.delete(table, "event:n::int = 2"), [(1, 1), (3, 3), (4, 4)]),
    "update": (
        "RewritePlan",
        lambda table: dv.update(table, {"event:n": "id * 10"}, "id > 2"),
        [(1, 1), (2, 2), (3, 30), (4, 40)],
    ),
    "merge": ("MergePlan", merged, [(1, 1), (3, 3), (4, 4), (9, None)]),
    "optimize": (
        "OptimizePlan",
        lambda table: dv.optimize(table, sort_by="event:n::int"),
        [(1, 1), (2, 2), (3, 3), (4, 4)],
    ),
    "restore": ("RestorePlan", lambda table: dv.restore(table, 0), [(1, 1), (2, 2), (3, 3)]),
    "vacuum": ("VacuumPlan", vacuumed, [(1, 1), (2, 2), (3, 3), (4, 4)]),
    "write": (
        "WritePlan",
        lambda table: dv.write_table(table, LATER, mode="overwrite", where="id > 3"),
        [(1, 1), (2, 2), (3, 3), (4, 4)],
    ),
    "alter": (
        "AlterationPlan",
        lambda table: dv.drop_constraint(table, "positive"),
        [(1, 1), (2, 2), (3, 3), (4, 4)],
    ),
    "drop a feature": (
        "DropFeaturePlan",
        lambda table: dv.drop_feature(table, "variantShredding"),
        [(1, 1), (2, 2), (3, 3), (4, 4)],
    ),
    "repair the files": ("FileRepairPlan", repaired, [(1, 1), (2, 2), (3, 3)]),
    "repair the log": ("LogRepairPlan", log_repaired, [(1, 1), (2, 2), (3, 3), (4, 4)]),
    "clean up the log": ("LogCleanupPlan", cleaned, [(1, 1), (2, 2), (3, 3), (4, 4)]),
}


def plan_classes() -> Iterator[type]:
    """Yield the classes of plans of operations."""
    modules = (pkgutil.walk_packages(each.__path__, f"{each.__name__}.") for each in (operations, write))
    for each in chain(*modules):
        for name, found in vars(importlib.import_module(each.name)).items():
            if isinstance(found, type) and name.endswith("Plan") and found.__module__ == each.name:
                yield found


@pytest.fixture
def pickled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the classes of all new plans, whose parts become those of a pickled plan."""
    names: list[str] = []

    def travel(init: Callable[..., None]) -> Callable[..., None]:
        def wrapped(plan: Any, *arguments: Any, **options: Any) -> None:
            init(plan, *arguments, **options)
            vars(plan).update(vars(pickle.loads(pickle.dumps(plan))))
            names.append(type(plan).__name__)
            assert not hasattr(plan, "describe") or plan.describe().sentences

        return wrapped

    for each in plan_classes():
        monkeypatch.setattr(each, "__init__", travel(each.__init__))
    return names


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_does_the_same_by_a_plan_that_was_pickled(tmp_path: Path, pickled: list[str], name: str):
    dv.write_table(tmp_path, ROWS, variant_columns=["event"])
    dv.write_table(tmp_path, LATER, variant_columns=["event"], mode="append")
    dv.add_constraint(tmp_path, "positive", "id > 0")
    plan, run, expected = OPERATIONS[name]
    run(tmp_path)
    assert plan in pickled
    rows = dv.read_table(tmp_path, columns=["id", "event:n::int as n"]).to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows) == expected


def test_each_class_of_plans_is_pickled_by_an_operation():
    assert {each.__name__ for each in plan_classes()} == {plan for plan, _, _ in OPERATIONS.values()}
