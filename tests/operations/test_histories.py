"""Random sequences of operations, compared with a model of rows, their ids, versions and changes.

Files and log are read with pyarrow and json only, following PROTOCOL.md ("Row Tracking", "Add CDC File").
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from support.planting import plant_vector
from support.tables import read_commit, state_discrepancies
from support.vectors import deleted_rows

import delta_variant as dv
from delta_variant.log.load import load_snapshot
from delta_variant.variant import values as variant_values

Content: TypeAlias = tuple[int, str | None, str]
"""`id`, `day`, and `event` as text."""

Change: TypeAlias = tuple[str, Content]

FEATURES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableDeletionVectors": "true",
}
FIRST = (0, 1, 3, 4, 5, 6, 7)
DELETED = 2
"""The `id` of a row that a deletion vector marks from the beginning."""


@dataclass(frozen=True)
class Row:
    """A row, its id if known, and the version that wrote it last."""

    day: str | None
    event: dict[str, Any]
    version: int
    row_id: int | None = None

    def content(self, number: int) -> Content:
        return number, self.day, sorted_text(json.dumps(self.event))


State: TypeAlias = dict[int, Row]


@dataclass
class History:
    """A table, and the expected rows of each version."""

    table: Path
    states: list[State]
    next_number: int
    seen: set[int] = field(default_factory=set)
    """All row ids so far."""

    @property
    def rows(self) -> State:
        return self.states[-1]

    @property
    def version(self) -> int:
        """Return the version of the next commit."""
        return len(self.states)

    def new_rows(self, numbers: list[int]) -> State:
        return {n: Row("ab"[n % 2], {"n": n}, self.version) for n in numbers}

    def new_numbers(self, count: int) -> list[int]:
        self.next_number += count
        return list(range(self.next_number - count, self.next_number))


def write(table: Path, rows: State, **options: Any) -> None:
    columns = {
        "id": pa.array(list(rows), pa.int64()),
        "day": pa.array([row.day for row in rows.values()], pa.string()),
        "event": pa.array([json.dumps(row.event) for row in rows.values()], pa.string()),
    }
    options = {"mode": "append", "variant_columns": ["event"], **options}
    dv.write_table(str(table), pa.table(columns), **options)


# --- operations: each changes the table and the model, and returns the expected changes


class Step:
    """One operation."""

    def run(self, history: History) -> tuple[State, list[Change]] | None:
        """Return the rows after the operation and its changes, None if it commits nothing."""
        raise NotImplementedError


def changes_between(before: State, after: State, updated: set[int]) -> list[Change]:
    found: list[Change] = []
    for n, row in before.items():
        if n in updated:
            found += [("update_preimage", row.content(n)), ("update_postimage", after[n].content(n))]
        elif after.get(n) != row:
            found.append(("delete", row.content(n)))
    rest = after.keys() - updated
    return [*found, *(("insert", after[n].content(n)) for n in rest if before.get(n) != after[n])]


@dataclass(frozen=True)
class Append(Step):
    count: int

    def run(self, history: History) -> tuple[State, list[Change]]:
        new = history.new_rows(history.new_numbers(self.count))
        write(history.table, new)
        after = {**history.rows, **new}
        return after, changes_between(history.rows, after, set())


@dataclass(frozen=True)
class Delete(Step):
    modulus: int
    rest: int

    def run(self, history: History) -> tuple[State, list[Change]] | None:
        result = dv.delete(str(history.table), f"id % {self.modulus} = {self.rest}")
        after = {n: row for n, row in history.rows.items() if n % self.modulus != self.rest}
        if result.version is None:
            assert after == history.rows
            return None
        return after, changes_between(history.rows, after, set())


@dataclass(frozen=True)
class DeletePartition(Step):
    day: str

    def run(self, history: History) -> tuple[State, list[Change]] | None:
        result = dv.delete(str(history.table), f"day = '{self.day}'")
        after = {n: row for n, row in history.rows.items() if row.day != self.day}
        if result.version is None:
            assert after == history.rows
            return None
        return after, changes_between(history.rows, after, set())


@dataclass(frozen=True)
class Update(Step):
    modulus: int
    rest: int
    day: str | None

    def run(self, history: History) -> tuple[State, list[Change]] | None:
        updates = {"event:u": str(history.version), **({"day": f"'{self.day}'"} if self.day else {})}
        dv.update(str(history.table), updates, f"event:n::bigint % {self.modulus} = {self.rest}")
        updated = {n for n in history.rows if n % self.modulus == self.rest}
        if not updated:
            return None
        after = {
            n: replace(
                row,
                day=self.day or row.day,
                event={**row.event, "u": history.version},
                version=history.version,
            )
            if n in updated
            else row
            for n, row in history.rows.items()
        }
        return after, changes_between(history.rows, after, updated)


@dataclass(frozen=True)
class Merge(Step):
    """Rows with even keys are updated, others deleted, and new ones inserted."""

    keys: frozenset[int]
    new: int

    def run(self, history: History) -> tuple[State, list[Change]] | None:
        new = history.new_numbers(self.new)
        merge = dv.merge(
            str(history.table), pa.table({"k": pa.array([*self.keys, *new], pa.int64())}), "id = k"
        )
        merge = merge.when_matched_update({"event:m": "k"}, "k % 2 = 0").when_matched_delete()
        merge.when_not_matched_insert({"id": "k", "event:n": "k"}, f"k >= {min(new, default=0)}").execute()
        updated = {n for n in history.rows if n in self.keys and n % 2 == 0}
        inserted = [*new, *(() if new else sorted(self.keys - history.rows.keys()))]
        after = {n: row for n, row in history.rows.items() if n not in self.keys or n in updated}
        for n in updated:
            row = after[n]
            after[n] = replace(row, event={**row.event, "m": n}, version=history.version)
        after |= {n: Row(None, {"n": n}, history.version) for n in inserted}
        if after == history.rows:
            return None
        return after, changes_between(history.rows, after, updated)


@dataclass(frozen=True)
class Overwrite(Step):
    modulus: int
    rest: int

    def run(self, history: History) -> tuple[State, list[Change]]:
        (number,) = history.new_numbers(1)
        number += (self.rest - number) % self.modulus
        history.next_number = number + 1
        new = history.new_rows([number])
        write(history.table, new, mode="overwrite", where=f"id % {self.modulus} = {self.rest}")
        after = {n: row for n, row in history.rows.items() if n % self.modulus != self.rest} | new
        return after, changes_between(history.rows, after, set())


@dataclass(frozen=True)
class Optimize(Step):
    sort_by: str | None

    def run(self, history: History) -> tuple[State, list[Change]] | None:
        result = dv.optimize(str(history.table), sort_by=self.sort_by)
        return None if result.version is None else (dict(history.rows), [])


@dataclass(frozen=True)
class Restore(Step):
    back: int

    def run(self, history: History) -> tuple[State, list[Change]] | None:
        version = max(0, history.version - 1 - self.back)
        before = load_snapshot(history.table).version
        dv.restore(str(history.table), version)
        if load_snapshot(history.table).version == before:
            return None
        after = dict(history.states[version])
        return after, changes_between(history.rows, after, set())


RESTS = st.tuples(st.integers(2, 5), st.integers(0, 4)).map(lambda pair: (pair[0], pair[1] % pair[0]))
STEPS = st.one_of(
    st.builds(Append, st.integers(1, 4)),
    RESTS.map(lambda pair: Delete(*pair)),
    st.builds(DeletePartition, st.sampled_from("abc")),
    st.builds(lambda pair, day: Update(*pair, day), RESTS, st.sampled_from([None, "c"])),
    st.builds(Merge, st.frozensets(st.sampled_from(FIRST), max_size=4), st.integers(0, 2)),
    RESTS.map(lambda pair: Overwrite(*pair)),
    st.builds(Optimize, st.sampled_from([None, "id", "-id"])),
    st.builds(Restore, st.integers(1, 3)),
)


# --- the log and the files


def actions(table: Path, version: int) -> list[tuple[str, dict[str, Any]]]:
    return [pair for action in read_commit(table, version) for pair in action.items()]


def sorted_text(text: str) -> str:
    """Return JSON text with its keys in order."""
    return json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True)
class Reader:
    """Reads the files of a table under their physical names."""

    table: Path
    names: dict[str, str]
    configuration: dict[str, str]

    @classmethod
    def of(cls, table: Path) -> Reader:
        snapshot = load_snapshot(table)
        names = {
            each.name: each.metadata.get("delta.columnMapping.physicalName", each.name)
            for each in snapshot.schema.fields
        }
        return cls(table, names, dict(snapshot.properties))

    def rows(self, file: dict[str, Any]) -> Iterator[tuple[Content, int, dict[str, Any]]]:
        """Yield the content of the rows of a file, their positions, and all of their columns."""
        with (self.table / unquote(file["path"])).open("rb") as opened:
            read = pq.ParquetFile(opened).read()
        event = read[self.names["event"]].combine_chunks()
        stored = dv.unshred(event) if event.type.get_field_index("typed_value") >= 0 else event
        texts = variant_values.to_json(stored).to_pylist()
        partition = file["partitionValues"]
        deleted = deleted_rows(file, lambda path: (self.table / path).read_bytes())
        others = read.drop_columns([self.names["event"]]).to_pylist()
        for position, (text, columns) in enumerate(zip(texts, others, strict=True)):
            number = columns[self.names["id"]]
            day = partition.get(self.names["day"], columns.get(self.names["day"]))
            if position not in deleted:
                yield (number, day, sorted_text(text)), position, columns

    def tracked(self, file: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
        """Yield `id`, row id and row commit version of the rows of a file."""
        row_id = self.configuration["delta.rowTracking.materializedRowIdColumnName"]
        version = self.configuration["delta.rowTracking.materializedRowCommitVersionColumnName"]
        for (number, _, _), position, columns in self.rows(file):
            known, wrote = columns.get(row_id), columns.get(version)
            yield (
                number,
                file["baseRowId"] + position if known is None else known,
                file["defaultRowCommitVersion"] if wrote is None else wrote,
            )


def live_files(table: Path, version: int) -> list[dict[str, Any]]:
    live: dict[str, dict[str, Any]] = {}
    for number in range(version + 1):
        for kind, body in actions(table, number):
            if kind == "remove":
                live.pop(body["path"])
            elif kind == "add":
                live[body["path"]] = body
    return list(live.values())


def same_state(one: dv.Snapshot, other: dv.Snapshot) -> bool:
    """Return whether two snapshots are equal apart from their stores and the order of their files."""

    def state(snapshot: dv.Snapshot) -> dict[str, Any]:
        values = {each.name: getattr(snapshot, each.name) for each in fields(snapshot)}
        return {**values, "store": None, "file_set": sorted(map(str, snapshot.files.to_pylist()))}

    return state(one) == state(other)


def net(changes: list[Change]) -> Counter[Content]:
    """Return the net changes, without matching preimages to postimages."""
    found: Counter[Content] = Counter()
    for kind, content in changes:
        found[content] += 1 if kind in ("insert", "update_postimage") else -1
    return Counter({content: count for content, count in found.items() if count})


def check(history: History, expected: list[Change]) -> None:
    """Check rows, ids, commit versions and changes of the latest version against the model."""
    reader, version = Reader.of(history.table), history.version - 1
    files = live_files(history.table, version)
    contents = [content for file in files for content, _, _ in reader.rows(file)]
    assert sorted(contents) == sorted(row.content(n) for n, row in history.rows.items())
    columns = {"id": "id", "day": "day", "event": "to_json(event)"}
    read = dv.read_table(str(history.table), columns=columns).to_table().to_pylist()
    assert sorted(row["id"] for row in read) == sorted(history.rows)

    tracked = {n: (row_id, wrote) for file in files for n, row_id, wrote in reader.tracked(file)}
    assert len({row_id for row_id, _ in tracked.values()}) == len(tracked)
    for n, (row_id, wrote) in tracked.items():
        row = history.rows[n]
        assert wrote == row.version, n
        if row.row_id is None:
            assert row_id not in history.seen, n
            history.rows[n] = replace(row, row_id=row_id)
        else:
            assert row_id == row.row_id, n
    history.seen |= {row_id for row_id, _ in tracked.values()}

    found = actions(history.table, version)
    columns |= {"kind": "_change_type"}
    feed = dv.read_changes(str(history.table), start=version, end=version, columns=columns)
    read_back = [
        (row["kind"], (row["id"], row["day"], sorted_text(row["event"])))
        for row in feed.to_table().to_pylist()
    ]
    assert net(read_back) == net(expected)
    change_files = [body for kind, body in found if kind == "cdc"]
    if change_files:
        told = [
            (columns["_change_type"], content)
            for file in change_files
            for content, _, columns in reader.rows(file)
        ]
        assert sorted(told) == sorted(read_back) == sorted(expected)
        return
    whole: list[Change] = [
        ("insert" if kind == "add" else "delete", content)
        for kind, body in found
        if kind in ("add", "remove") and body["dataChange"]
        for content, _, _ in reader.rows(body)
    ]
    assert net(whole) == net(expected)
    assert not any(kind.startswith("update") for kind, _ in expected)


@given(
    steps=st.lists(STEPS, min_size=1, max_size=6),
    mode=st.sampled_from(["none", "name", "id"]),
    partition_by=st.sampled_from([[], ["day"]]),
)
def test_rows_ids_versions_and_changes_are_right_after_any_operations(
    steps: list[Step], mode: str, partition_by: list[str]
):
    with TemporaryDirectory() as folder:
        table = Path(folder) / "t"
        history = History(table, [], FIRST[-1] + 1)
        first = history.new_rows(sorted((*FIRST, DELETED)))
        configuration = {**FEATURES, "delta.columnMapping.mode": mode}
        if partition_by:
            first = {n: replace(row, day="a") for n, row in first.items()}
        write(table, first, configuration=configuration, partition_by=partition_by)
        plant_vector(table, 0, list(first).index(DELETED))
        history.states.append({n: row for n, row in first.items() if n != DELETED})
        check(history, [("insert", row.content(n)) for n, row in history.rows.items()])
        # A handle that loads some of the versions, and a new one.
        handle = dv.Table(table)
        for number, step in enumerate(steps):
            if number % 2 == 0:
                assert same_state(handle.snapshot(), load_snapshot(table))
            done = step.run(history)
            if done is None:
                assert load_snapshot(table).version == history.version - 1
                continue
            after, changes = done
            history.states.append(after)
            check(history, changes)
        assert same_state(handle.snapshot(), load_snapshot(table))
        for version in range(1, history.version):
            assert (table / "_delta_log" / f"{version:020d}.crc").exists()
            assert state_discrepancies(load_snapshot(table, version)) == []
        assert dv.audit_table(str(table), data=True).is_clean
