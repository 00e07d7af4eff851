"""Random statements on three equal tables: changed by Delta's JARs, by `dvs.sql` and by `dv.sql`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import delta_variant as dv
from delta_variant import spark as dvs

ROW_METRICS = {
    # Output includes the rows of rewritten files, which depend on the distribution of rows over files.
    "WRITE": ("numOutputRows", "numCopiedRows"),
    "DELETE": ("numDeletedRows",),
    "UPDATE": ("numUpdatedRows",),
    "MERGE": ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
}
"""The metrics of rows that Delta's JARs write; an empty write has none."""
CHANGING = ("CREATE TABLE", "ADD COLUMNS", "ADD CONSTRAINT", "SET TBLPROPERTIES", "RESTORE")
CREATE = """create table {table}
    (id bigint, n int, s string, p string, v variant, d struct<x: bigint, y: array<string>>)
    using delta {options}"""
FIRST = """insert into {table} values
    (1, 10, 'a', 'x', parse_json('{{"a": 1, "b": "one"}}'), named_struct('x', 1, 'y', array('a'))),
    (2, 20, 'b', 'x', parse_json('{{"a": 2}}'), named_struct('x', null, 'y', array(null, 'b'))),
    (3, null, 'c', 'y', null, null), (4, 40, null, 'y', parse_json('{{"a": null}}'), null),
    (5, 50, 'e', null, parse_json('7'), named_struct('x', 5, 'y', null))"""
OPTIONS = (
    "",
    "partitioned by (p)",
    "tblproperties ('delta.enableDeletionVectors' = 'true')",
    "partitioned by (p) tblproperties ('delta.enableDeletionVectors' = 'true')",
    "tblproperties ('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')",
)
NUMBERS = (
    "id",
    "n",
    "1",
    "2",
    "3",
    "7",
    "n + id",
    "id * 10",
    "length(s)",
    "v:a::int",
    "coalesce(n, 0)",
    "null",
    "(select max(n) from {table})",
    "(select id from {table} where id = 1 and p = 'x' limit 1) + id",
)
TEXTS = ("s", "p", "'a'", "'x'", "'y'", "upper(s)", "concat(s, p)", "cast(id as string)", "null")
VARIANTS = (
    "parse_json('{\"a\": 5}')",
    "v",
    "null",
    "cast(id as variant)",
    "to_variant_object(struct(n as a))",
)
STRUCTS = (
    "d",
    "null",
    "named_struct('x', n, 'y', array(s))",
    "named_struct('x', cast(id as string), 'y', array(n, id))",
    "named_struct('x', '12', 'y', null)",
)
PARTS = {"d.x": NUMBERS, "d.y": ("array(s)", "array(n)", "d.y", "null", "split(s, 'e')")}


class Maker:
    """Makes random statements over a table `{table}` whose columns are those of CREATE."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.columns = ["id", "n", "s", "p", "v", "d"]
        self.next_id = 100

    def statement(self) -> str:
        kinds: Sequence[tuple[int, Callable[[], str]]] = (
            (5, self.insert),
            (2, self.overwrite),
            (5, self.update),
            (3, self.delete),
            (5, self.merge),
            (1, self.alter),
            (1, lambda: "optimize {table}"),
            (1, self.restore),
        )
        weights, makers = zip(*kinds, strict=True)
        return str(self.random.choices(makers, weights)[0]())

    def one_of(self, *choices: str) -> str:
        return self.random.choice(choices)

    def condition(self, qualifier: str = "") -> str:
        column = f"{qualifier}." if qualifier else ""
        plain = (
            f"{column}id = {self.random.randint(0, 8)}",
            f"{column}id > {self.random.randint(0, 6)}",
            f"{column}n in (10, 20, 5)",
            f"{column}n < 45",
            f"{column}p = '{self.one_of('x', 'y', 'z')}'",
            f"{column}s is null",
            f"{column}v:a::int >= 2",
            f"{column}s like 'a%'",
            "true",
            f"{column}p is not null",
            f"{column}d.x > 2",
            f"{column}d is null",
        )
        test = self.random.choice(plain)
        if self.random.random() < 0.3:
            test = f"({test} {self.one_of('and', 'or')} not {self.random.choice(plain)})"
        return test

    def value(self, column: str) -> str:
        if column in ("id", "n", "w"):
            return self.random.choice(NUMBERS)
        kinds = {"v": VARIANTS, "d": STRUCTS, **PARTS}
        return self.random.choice(kinds.get(column, TEXTS))

    def constant(self, column: str) -> str:
        if column == "id":
            self.next_id += 1
            return str(self.random.choice([self.next_id, self.random.randint(1, 9)]))
        if column in ("n", "w"):
            return self.one_of("1", "null", "'12'", "2.0", "3000000000", "'x'", "7")
        if column == "v":
            return self.one_of("null", "parse_json('[1]')", "parse_json('{\"a\": 9}')", "5", "'text'")
        if column == "d":
            return self.one_of("null", "named_struct('x', 3, 'y', array('c'))", "struct(true, array(1.5))")
        return self.one_of("'a'", "'x'", "'y'", "null", "12", "true", "1.5")

    def insert(self) -> str:
        form, all_columns = self.random.randint(0, 4), ", ".join(self.columns)
        if form == 0:
            return f"insert into {{table}} values {self.rows(self.columns)}"
        chosen = self.random.sample(self.columns, self.random.randint(1, len(self.columns)))
        if form == 1:
            return f"insert into {{table}} ({', '.join(chosen)}) values {self.rows(chosen)}"
        if form == 2:
            items = ", ".join(f"{self.value(each)} as {each}" for each in chosen)
            return f"insert into {{table}} by name select {items} from {{table}} where {self.condition()}"
        if form == 3:
            return f"insert into {{table}} select {all_columns} from {{table}} where {self.condition()}"
        items = ", ".join(self.value(each) for each in chosen)
        query = f"select {items} from {{table}} where {self.condition()}"
        return f"insert into {{table}} ({', '.join(chosen)}) {query}"

    def rows(self, columns: Sequence[str]) -> str:
        count = self.random.randint(1, 3)
        return ", ".join(f"({', '.join(map(self.constant, columns))})" for _ in range(count))

    def overwrite(self) -> str:
        rest = ", ".join(each for each in self.columns if each != "p")
        every, rows = ", ".join(self.columns), f"from {{table}} where {self.condition()}"
        return self.one_of(
            f"insert overwrite {{table}} select {every} {rows}",
            f"insert into {{table}} replace where p = 'x' select {every} from {{table}} where p = 'x'",
            f"insert overwrite {{table}} partition (p = 'y') select {rest} {rows}",
        )

    def update(self) -> str:
        alias = self.one_of("", "", "q")
        columns = self.random.sample([*self.columns, *PARTS], self.random.randint(1, 2))
        sets = ", ".join(f"{alias and alias + '.'}{each} = {self.value(each)}" for each in columns)
        where = self.one_of("", f" where {self.condition(alias)}", f" where {self.condition(alias)}")
        return f"update {{table}} {alias} set {sets}{where}"

    def delete(self) -> str:
        return f"delete from {{table}} where {self.condition()}"

    def merge(self) -> str:
        key, first = self.one_of("id", "id", "n"), self.random.randint(0, 4)
        rows = ", ".join(map(self.source_row, range(first, first + self.random.randint(1, 5))))
        columns, nested = "id, n, s, p, cast(v as variant) as v", self.one_of(*STRUCTS[1:])
        source = f"(select {columns}, {nested} as d from values {rows} as r(id, n, s, p, v))"
        if self.random.random() < 0.2:
            source = f"(select * from values {rows} as r(id, n, s, p, extra) where id < 5)"
        clauses = []
        if self.random.random() < 0.8:
            test = self.one_of("", f" and {self.condition('t')}")
            clauses.append(f"when matched{test} then {self.one_of('delete', *[self.assigned('s')] * 3)}")
        if self.random.random() < 0.7 or not clauses:
            test = self.one_of("", " and s.n > 10")
            insert = self.one_of("insert *", "insert (id, n) values (id, n + s.id)")
            clauses.append(f"when not matched{test} then {insert}")
        if self.random.random() < 0.3:
            action = self.one_of("delete", "update set n = n + t.id")
            clauses.append(f"when not matched by source and {self.condition('t')} then {action}")
        return f"merge into {{table}} as t using {source} as s on t.{key} = s.{key} {' '.join(clauses)}"

    def source_row(self, number: int) -> str:
        text, partition = self.one_of("a", "new"), self.one_of("x", "z")
        return f"({number}, {number * 10}, '{text}', '{partition}', {self.constant('v')})"

    def assigned(self, source: str) -> str:
        swapped = f"named_struct('y', array({source}.n), 'x', cast(t.id as string))"
        return self.one_of(
            "update set *",
            f"update set n = {source}.n + t.id, s = {source}.s",
            f"update set d = {swapped}",
            f"update set d.x = cast({source}.id as string), t.d.y = {source}.d.y",
        )

    def alter(self) -> str:
        name, retention = f"w{len(self.columns)}", f"interval {self.random.randint(9, 10**6)} days"
        return self.one_of(
            f"alter table {{table}} set tblproperties ('delta.logRetentionDuration' = '{retention}')",
            "alter table {table} add constraint c check (id is null or id < 1000000)",
            "alter table {table} drop constraint if exists c",
            f"alter table {{table}} add columns ({name} int)",
            f"alter table {{table}} add columns ({name} int comment 'new')",
            f"alter table {{table}} alter column s comment 'text {self.next_id}'",
        )

    def restore(self) -> str:
        return f"restore table {{table}} to version as of {{versions[{self.random.randint(1, 3)}]}}"


@dataclass(frozen=True)
class Side:
    """A way to run statements on a table of its own."""

    name: str
    table: str
    path: Path
    run: Callable[[str], Any]

    def outcome(self, statement: str) -> Any:
        """Return the rows of a statement, or that it fails."""
        try:
            text = statement.format(table=self.table, versions=self.versions())
            return [tuple(row) for row in self.run(text)]
        except Exception as error:
            return f"fails: {error}"

    def state(self) -> Any:
        """Return the rows, in an order of their own."""
        names = (field.name for field in dv.load_snapshot(self.path).schema.fields)
        columns = [name if name != "v" else "to_json(v) as v" for name in names]
        found = dv.read_table(self.path, columns=columns).to_pylist()
        return sorted(tuple(map(str, row.items())) for row in found)

    def protocol(self) -> Any:
        """Return the versions and the features."""
        protocol = dv.load_snapshot(self.path).protocol
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        return protocol.min_reader_version, protocol.min_writer_version, sorted(features)

    def history(self) -> list[tuple[str | None, list[Any]]]:
        """Return the operations with their metrics of rows, newest first."""
        return [(each.operation, counts) for each, counts in self._changes()]

    def versions(self) -> list[int]:
        """Return the versions that change the table, oldest first."""
        return [each.version for each, _ in self._changes()][::-1]

    def _changes(self) -> list[tuple[dv.HistoryEntry, list[Any]]]:
        # Delta's JARs make some commits that change nothing; the operations here do not.
        found = [(each, _row_counts(str(each.operation), each.metrics)) for each in dv.history(self.path)]
        return [(each, counts) for each, counts in found if each.operation in CHANGING or any(counts)]


def _row_counts(operation: str, metrics: Mapping[str, Any]) -> list[Any]:
    counts = [metrics.get(name, 0) for name in ROW_METRICS.get(operation, ())]
    return [counts[0] - counts[1]] if operation == "WRITE" else counts


def sides(spark: SparkSession, folder: Path) -> list[Side]:
    """Return the tables that statements change: the first is that of Delta's JARs."""
    paths = [folder / name for name in ("jars", "tasks", "local")]
    names = [f"delta.`{path}`" for path in paths]
    runs: list[Callable[[str], Any]] = [
        lambda text: [] if not (found := spark.sql(text)).columns else found.collect(),
        lambda text: [] if not (found := dvs.sql(spark, text)).columns else found.collect(),
        lambda text: [row.values() for row in dv.sql(text).to_pylist()],
    ]
    return [Side(*each) for each in zip(("JARs", "dvs.sql", "dv.sql"), names, paths, runs, strict=True)]


def differences(
    spark: SparkSession, seed: str, count: int, folder: Path, found: Counter[str]
) -> Iterator[str]:
    """Yield what differs after each of some statements on new tables."""
    maker = Maker(seed)
    tables = sides(spark, folder)
    options = maker.random.choice(OPTIONS)
    done: list[str] = []
    for each in tables:
        # The same protocol for all: statements are compared, not the defaults of new tables.
        spark.sql(CREATE.format(table=each.table, options=options))
        spark.sql(FIRST.format(table=each.table))
    for _ in range(count):
        statement = maker.statement()
        done.append(statement)
        expected, *others = (each.outcome(statement) for each in tables)
        has_failed = isinstance(expected, str)
        found["fails" if has_failed else statement.split()[0]] += 1
        has_rows = statement.split()[0] in ("update", "delete", "merge")
        for side, outcome in zip(tables[1:], others, strict=True):
            if has_failed != isinstance(outcome, str) or (
                has_rows and not has_failed and outcome != expected
            ):
                yield f"{seed} {side.name}: {statement}\n  {expected}\n  {outcome}"
                return
            for part in (Side.state, Side.protocol, Side.history):
                wanted, got = part(tables[0]), part(side)
                if wanted != got:
                    what = f"{side.name} {part.__name__}"
                    yield f"{seed} {what}: {statement}\n  {wanted}\n  {got}\n  after {done}"
                    return
