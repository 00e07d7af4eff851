"""Operations on a table of numbered rows, and a model of what each does to the rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

import delta_variant as dv

Rows: TypeAlias = dict[int, int]
"""The number in the Variant of each row, by the row's id."""

CONFIGURATION = {"delta.checkpointInterval": "3"}
SHREDDING = dv.infer_shredding_schema(['{"n": 1, "text": "x"}'])
"""Files of few rows are not shredded by default."""


@dataclass(frozen=True)
class Step:
    """An operation with its rows: ids that the table has, and ids that it does not have."""

    name: str
    present: tuple[int, ...]
    absent: tuple[int, ...]

    @classmethod
    def random(cls, name: str, rows: Mapping[int, int], random: Random) -> Step:
        present = random.sample(sorted(rows), min(len(rows), 12))
        first = max(rows, default=0) + 1
        return cls(name, tuple(sorted(present)), tuple(range(first, first + 12)))


def data(values: Mapping[int, int]) -> pa.Table:
    """Return rows as the data of a write."""
    texts = [json.dumps({"n": number, "text": "x" * (row % 50)}) for row, number in values.items()]
    return pa.table({"id": pa.array(list(values), pa.int64()), "event": pa.array(texts, pa.json_())})


def read(table: Any, **options: Any) -> Rows:
    """Return all rows of a table, or fail if a row occurs twice."""
    columns = {"id": "id", "n": "event:n::bigint"}
    found = dv.read_table(table, columns=columns, **options).to_table().to_pylist()
    rows = {row["id"]: row["n"] for row in found}
    assert len(rows) == len(found), "a row occurs twice"
    return rows


def _in(ids: tuple[int, ...]) -> str:
    return f"id in ({', '.join(map(str, ids or (-1,)))})"


def _create(table: Any, step: Step, options: Mapping[str, Any]) -> None:
    inserted = data(_inserted(step))
    dv.write_table(table, inserted, configuration=CONFIGURATION, shredding=SHREDDING, **options)


def _append(table: Any, step: Step, options: Mapping[str, Any]) -> None:
    dv.write_table(table, data(_inserted(step)), mode="append", shredding=SHREDDING, **options)


def _append_without_statistics(table: Any, step: Step, options: Mapping[str, Any]) -> None:
    files = dv.FileOptions(max_variant_stats_paths=0)
    inserted = data(_inserted(step))
    dv.write_table(table, inserted, mode="append", files=files, shredding=SHREDDING, **options)


def _delete(table: Any, step: Step, options: Mapping[str, Any]) -> None:
    dv.delete(table, _in(step.present), **options)


def _update(table: Any, step: Step, options: Mapping[str, Any]) -> None:
    dv.update(table, {"event:n": "id + 1000"}, _in(step.present), **options)


def _merge(table: Any, step: Step, options: Mapping[str, Any]) -> None:
    source = {**{row: -row for row in step.present}, **_inserted(step)}
    merge = dv.merge(table, data(source), "target.id = source.id", **options)
    merge.when_matched_update({"event": "source.event"}).when_not_matched_insert_all().execute()


def _overwrite(table: Any, step: Step, options: Mapping[str, Any]) -> None:
    dv.write_table(
        table,
        data(dict.fromkeys(step.present, 7)),
        mode="overwrite",
        where=_in(step.present),
        **options,
    )


def _optimize(table: Any, _: Step, options: Mapping[str, Any]) -> None:
    dv.optimize(table, sort_by="event:n::bigint", **options)


def _repair(table: Any, _: Step, options: Mapping[str, Any]) -> None:
    dv.repair_statistics(table, dry_run=False, **options)


def _set_properties(table: Any, step: Step, options: Mapping[str, Any]) -> None:
    dv.set_properties(table, {"delta.logRetentionDuration": f"interval {step.absent[0]} days"}, **options)


def _vacuum(table: Any, _: Step, options: Mapping[str, Any]) -> None:
    dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False, **options)


def _restore(table: Any, _: Step, options: Mapping[str, Any]) -> None:
    dv.restore(table, dv.load_snapshot(table, **options).version - 1, **options)


def _inserted(step: Step) -> Rows:
    return {row: row for row in step.absent}


def _without(rows: Rows, ids: tuple[int, ...]) -> Rows:
    return {row: number for row, number in rows.items() if row not in ids}


Apply: TypeAlias = Callable[[Any, Step, Mapping[str, Any]], None]
Model: TypeAlias = Callable[[Rows, Step], Rows]

OPERATIONS: Mapping[str, tuple[Apply, Model]] = {
    "create": (_create, lambda _, step: _inserted(step)),
    "append": (_append, lambda rows, step: rows | _inserted(step)),
    "append without statistics": (_append_without_statistics, lambda rows, step: rows | _inserted(step)),
    "delete": (_delete, lambda rows, step: _without(rows, step.present)),
    "update": (_update, lambda rows, step: rows | {row: row + 1000 for row in step.present}),
    "merge": (_merge, lambda rows, step: rows | {row: -row for row in step.present} | _inserted(step)),
    "overwrite": (_overwrite, lambda rows, step: rows | dict.fromkeys(step.present, 7)),
    "optimize": (_optimize, lambda rows, _: rows),
    "repair": (_repair, lambda rows, _: rows),
    "set properties": (_set_properties, lambda rows, _: rows),
    "vacuum": (_vacuum, lambda rows, _: rows),
    "restore": (_restore, lambda rows, step: _without(rows, step.absent)),
}
"""Each operation: the function that runs it on a table, and the function of its rows."""


def prepare(table: Any, rows: Rows, step: Step) -> Rows:
    """Append the rows that a restore removes again, and return the rows of the table."""
    if step.name != "restore":
        return rows
    append = Step("append", step.present, step.absent)
    apply(table, append)
    return rows_after(rows, append)


def apply(table: Any, step: Step, **options: Any) -> None:
    """Run an operation."""
    OPERATIONS[step.name][0](table, step, options)


def rows_after(rows: Rows, step: Step) -> Rows:
    """Return the rows of a table after an operation."""
    return OPERATIONS[step.name][1](rows, step)
