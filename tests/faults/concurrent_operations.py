"""Operations on a small table, drawn from a seed, and what each of them does to a model of the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

import delta_variant as dv
from delta_variant.storage.store import Store

Row: TypeAlias = tuple[str, int]
"""`day`, and the number `n` in the Variant `event`."""

DAYS = "ab"
FIRST_NEW_ID = 1000
"""Operations insert ids from this one, each a block of its own; the table has smaller ones at first."""

NEW_IDS_OF_ONE = 100
APPLICATION = "loader"
PROPERTY = "history."


@dataclass(frozen=True)
class State:
    """A table at one version: rows by `id`, added columns, properties below `history.`, and transactions."""

    rows: Mapping[int, Row]
    columns: frozenset[str] = frozenset()
    properties: frozenset[tuple[str, str]] = frozenset()
    transactions: frozenset[tuple[str, int]] = frozenset()


def data(rows: Mapping[int, Row]) -> pa.Table:
    """Return rows as a write takes them."""
    texts = [json.dumps({"n": n, "text": f"row {number}"}) for number, (_, n) in rows.items()]
    return pa.table(
        {
            "id": pa.array(list(rows), pa.int64()),
            "day": pa.array([day for day, _ in rows.values()], pa.string()),
            "event": pa.array(texts, pa.json_()),
        }
    )


@dataclass(frozen=True)
class Condition:
    """A condition as SQL text, and as a function of a row."""

    text: str
    matches: Callable[[int, Row], bool]

    @classmethod
    def draw(cls, random: Random) -> Condition:
        kind, modulus, day = random.randrange(4), random.randint(2, 4), random.choice(DAYS)
        rest, least = random.randrange(modulus), random.randrange(10)
        if kind == 0:
            return cls(f"day = '{day}'", lambda _, row: row[0] == day)
        if kind == 1:
            return cls(f"event:n::bigint >= {least}", lambda _, row: row[1] >= least)
        if kind == 2:
            return cls(f"id < {least}", lambda number, _: number < least)
        return cls(f"id % {modulus} = {rest}", lambda number, _: number % modulus == rest)

    @classmethod
    def draw_rows(cls, random: Random, rows: int) -> Condition:
        """Return a condition that few rows of a file meet, or none."""
        keys = random.sample(range(rows + 2), random.randint(1, 3))
        texts = ", ".join(map(str, keys))
        if random.random() < 0.5:
            return cls(f"id in ({texts})", lambda number, _: number in keys)
        return cls(f"event:n::bigint in ({texts})", lambda _, row: row[1] in keys)

    def __repr__(self) -> str:
        return repr(self.text)


@dataclass(frozen=True)
class Operation:
    """An operation. `apply` returns the state after it; `versions` are the states before the history."""

    def run(self, store: Store) -> Any:
        raise NotImplementedError

    def apply(self, state: State, versions: Sequence[State]) -> State:
        return state

    @property
    def changes_schema(self) -> bool:
        return False


@dataclass(frozen=True)
class Append(Operation):
    rows: Mapping[int, Row]
    transaction: int | None
    options: Mapping[str, Any]

    def run(self, store: Store) -> Any:
        txn = None if self.transaction is None else (APPLICATION, self.transaction)
        return dv.write_table(
            store, data(self.rows), mode="append", commit=dv.CommitOptions(txn=txn), **self.options
        ).version

    def apply(self, state: State, versions: Sequence[State]) -> State:
        if self.transaction is None:
            return replace(state, rows={**state.rows, **self.rows})
        if any(version >= self.transaction for _, version in state.transactions):
            return state
        done = frozenset({(APPLICATION, self.transaction)})
        return replace(state, rows={**state.rows, **self.rows}, transactions=done)


@dataclass(frozen=True)
class Overwrite(Operation):
    """Replaces all rows, or with `day` those of a partition value."""

    rows: Mapping[int, Row]
    day: str | None
    options: Mapping[str, Any]

    def run(self, store: Store) -> Any:
        where = None if self.day is None else f"day = '{self.day}'"
        written = data(self.rows)
        return dv.write_table(store, written, mode="overwrite", where=where, **self.options).version

    def apply(self, state: State, versions: Sequence[State]) -> State:
        kept = {n: row for n, row in state.rows.items() if self.day is not None and row[0] != self.day}
        return replace(state, rows={**kept, **self.rows})


@dataclass(frozen=True)
class Delete(Operation):
    where: Condition

    def run(self, store: Store) -> Any:
        return dv.delete(store, self.where.text).version

    def apply(self, state: State, versions: Sequence[State]) -> State:
        kept = {n: row for n, row in state.rows.items() if not self.where.matches(n, row)}
        return replace(state, rows=kept)


@dataclass(frozen=True)
class Update(Operation):
    where: Condition
    increment: int
    day: str | None

    def run(self, store: Store) -> Any:
        updates = {"event:n": f"event:n::bigint + {self.increment}"}
        if self.day is not None:
            updates["day"] = f"'{self.day}'"
        return dv.update(store, updates, self.where.text).version

    def apply(self, state: State, versions: Sequence[State]) -> State:
        return replace(state, rows={n: self._updated(n, row) for n, row in state.rows.items()})

    def _updated(self, number: int, row: Row) -> Row:
        return (self.day or row[0], row[1] + self.increment) if self.where.matches(number, row) else row


@dataclass(frozen=True)
class Merge(Operation):
    """Updates matched rows of even ids, deletes other matched rows, and inserts the new ones."""

    keys: tuple[int, ...]
    new: tuple[int, ...]

    def run(self, store: Store) -> Any:
        source = pa.table({"k": pa.array([*self.keys, *self.new], pa.int64())})
        merge = dv.merge(store, source, "id = k").when_matched_update({"event:n": "k + 500"}, "k % 2 = 0")
        merge = merge.when_matched_delete()
        inserted = {"id": "k", "day": "'a'", "event:n": "k"}
        return merge.when_not_matched_insert(inserted, f"k >= {FIRST_NEW_ID}").execute().version

    def apply(self, state: State, versions: Sequence[State]) -> State:
        rows = {n: row for n, row in state.rows.items() if n not in self.keys or n % 2 == 0}
        rows |= {n: (row[0], n + 500) for n, row in rows.items() if n in self.keys}
        return replace(state, rows={**rows, **{n: ("a", n) for n in self.new}})


@dataclass(frozen=True)
class Optimize(Operation):
    sort_by: str | None

    def run(self, store: Store) -> Any:
        return dv.optimize(store, sort_by=self.sort_by).version


@dataclass(frozen=True)
class RepairStatistics(Operation):
    def run(self, store: Store) -> Any:
        return dv.repair_statistics(store, dry_run=False).version


@dataclass(frozen=True)
class AddColumn(Operation):
    name: str

    def run(self, store: Store) -> Any:
        return dv.add_columns(store, {self.name: "string"}).version

    def apply(self, state: State, versions: Sequence[State]) -> State:
        return replace(state, columns=state.columns | {self.name})

    @property
    def changes_schema(self) -> bool:
        return True


@dataclass(frozen=True)
class SetProperty(Operation):
    name: str
    text: str

    def run(self, store: Store) -> Any:
        return dv.set_properties(store, {self.name: self.text}).version

    def apply(self, state: State, versions: Sequence[State]) -> State:
        return replace(state, properties=state.properties | {(self.name, self.text)})


@dataclass(frozen=True)
class Restore(Operation):
    version: int

    def run(self, store: Store) -> Any:
        return dv.restore(store, self.version).version

    def apply(self, state: State, versions: Sequence[State]) -> State:
        return replace(versions[self.version], transactions=state.transactions)

    @property
    def changes_schema(self) -> bool:
        return True


@dataclass(frozen=True)
class Vacuum(Operation):
    """Deletes files that were removed before the history, and a file that no version has."""

    def run(self, store: Store) -> Any:
        dv.vacuum(store, dry_run=False)


@dataclass(frozen=True)
class Read(Operation):
    """Returns a version and its rows: the latest one, or one from before the history."""

    version: int | None

    def run(self, store: Store) -> Any:
        snapshot = dv.load_snapshot(store, self.version)
        return snapshot.version, read_rows(snapshot)


@dataclass(frozen=True)
class ReadChanges(Operation):
    """Returns the changes of each version from one on."""

    first: int

    def run(self, store: Store) -> Any:
        return read_changes(store, self.first)


def read_rows(table: Any) -> dict[int, Row]:
    """Return the rows of a table, read by `read_table`."""
    columns = {"id": "id", "day": "day", "n": "event:n::bigint"}
    found = dv.read_table(table, columns=columns).to_table().to_pylist()
    rows = {row["id"]: (row["day"], row["n"]) for row in found}
    assert len(rows) == len(found), "a row was read twice"
    return rows


def read_changes(table: Any, first: int) -> list[tuple[int, str, int, Row]]:
    """Return changes as tuples of version, type, `id` and row."""
    columns = {"id": "id", "day": "day", "n": "event:n::bigint"}
    columns |= {"type": "_change_type", "version": "_commit_version"}
    found = dv.read_changes(table, start=first, columns=columns).to_table().to_pylist()
    return [(row["version"], row["type"], row["id"], (row["day"], row["n"])) for row in found]


@dataclass(frozen=True)
class Draw:
    """The source of an operation: its number in the history, the table before it, and options of writes."""

    random: Random
    number: int
    versions: Sequence[State]
    options: Mapping[str, Any]
    has_changes: bool
    is_of_rows: bool = False

    @property
    def ids(self) -> int:
        return max(self.versions[-1].rows) + 1 if self.is_of_rows else 10

    def condition(self) -> Condition:
        return Condition.draw_rows(self.random, self.ids) if self.is_of_rows else Condition.draw(self.random)

    def new_ids(self, count: int) -> tuple[int, ...]:
        first = FIRST_NEW_ID + self.number * NEW_IDS_OF_ONE
        return tuple(range(first, first + count))

    def new_rows(self, day: str | None = None) -> dict[int, Row]:
        ids = self.new_ids(self.random.randint(1, 3))
        return {n: (day or self.random.choice(DAYS), self.random.randrange(20)) for n in ids}

    def version(self) -> int:
        return self.random.randrange(len(self.versions))

    def overwrite(self) -> Overwrite:
        day = self.random.choice([None, *DAYS])
        return Overwrite(self.new_rows(day), day, self.options)

    def update(self) -> Update:
        increment = 10 ** (self.number + 2)
        return Update(self.condition(), increment, self.random.choice([None, None, *DAYS]))

    def merge(self) -> Merge:
        keys = self.random.sample(range(self.ids), self.random.randint(0, 3))
        return Merge(tuple(keys), self.new_ids(self.random.randrange(3)))

    def append(self) -> Append:
        return Append(self.new_rows(), self.random.choice([None, None, None, 1, 2]), self.options)

    def read(self) -> Read | ReadChanges:
        if self.has_changes and self.random.random() < 0.5:
            return ReadChanges(self.version())
        return Read(None if self.random.random() < 0.7 else self.version())


KINDS: Mapping[str, tuple[int, Callable[[Draw], Operation]]] = {
    "append": (4, Draw.append),
    "overwrite": (2, Draw.overwrite),
    "delete": (3, lambda draw: Delete(draw.condition())),
    "update": (3, Draw.update),
    "merge": (3, Draw.merge),
    "optimize": (2, lambda draw: Optimize(draw.random.choice([None, None, "id"]))),
    "repair": (1, lambda _: RepairStatistics()),
    "add column": (1, lambda draw: AddColumn(f"column{draw.number}")),
    "set property": (1, lambda draw: SetProperty(f"{PROPERTY}{draw.number}", "x")),
    "restore": (4, lambda draw: Restore(draw.version())),
    "vacuum": (4, lambda _: Vacuum()),
    "read": (2, Draw.read),
}
"""How to draw each kind of operation, and how often it is drawn relative to the others."""


ROW_WEIGHTS = {"delete": 6, "update": 6, "merge": 6, "append": 1, "optimize": 3, "repair": 1, "restore": 1}
"""How often each kind is drawn in a history of changes of rows of the same files."""


def draw_operation(draw: Draw) -> Operation:
    """Return an operation of a kind that is drawn by its weight."""
    weights = ROW_WEIGHTS if draw.is_of_rows else {name: weight for name, (weight, _) in KINDS.items()}
    (name,) = draw.random.choices(list(weights), list(weights.values()))
    return KINDS[name][1](draw)
