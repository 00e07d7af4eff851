"""A write that fails releases its source immediately, without a run of the garbage collector."""

from __future__ import annotations

import ast
import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant import DeltaVariantError

PACKAGE = Path(dv.__file__).parent
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("at", pa.timestamp("us")),
        pa.field("times", pa.list_(pa.timestamp("us"))),
        pa.field("event", pa.json_()),
    ]
)
GOOD = pa.table([[1], [1], pa.array([1], pa.timestamp("us")), [[]], ["{}"]], schema=SCHEMA)
NANOSECOND = pa.array([1], pa.timestamp("ns"))

# Columns that the table rejects, each by another module, and the message.
REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "cast": ({"at": NANOSECOND}, "lose data"),
    "cast in a list": ({"times": pa.ListArray.from_arrays([0, 1], NANOSECOND)}, "lose data"),
    "NOT NULL": ({"id": pa.array([None], pa.int64())}, "NOT NULL"),
    "CHECK": ({"n": pa.array([-1])}, "positive"),
    "type": ({"n": pa.array([{"a": 1}])}, "struct"),
    "invalid JSON": ({"event": pa.array(["{"], pa.json_())}, "byte 2"),
}

Write = Callable[[str, Any], object]
WRITES: dict[str, Write] = {
    "append": lambda table, data: dv.write_table(table, data, mode="append"),
    "overwrite": lambda table, data: dv.write_table(table, data, mode="overwrite"),
    "overwrite where": lambda table, data: dv.write_table(
        table, data, mode="overwrite", where="n is not null"
    ),
    "Table.append": lambda table, data: dv.Table(table).append(data),
    "Table.overwrite": lambda table, data: dv.Table(table).overwrite(data),
    "merge": lambda table, data: (
        dv.merge(table, data, on="target.n = source.n + 100").when_not_matched_insert_all().execute()
    ),
}


class Source:
    """Arrow data that can be weakly referenced."""

    def __init__(self, data: pa.Table) -> None:
        self.data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.data.__arrow_c_stream__(requested_schema)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table with a type, a NOT NULL column, a constraint and a Variant that reject rows."""
    uri = str(tmp_path / "t")
    dv.write_table(uri, GOOD)
    dv.add_constraint(uri, "positive", "n > 0")
    return uri


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def columns(**changed: pa.Array[Any]) -> pa.Table:
    return pa.table({**dict(zip(GOOD.column_names, GOOD.columns, strict=True)), **changed})


@pytest.mark.parametrize("reason", REJECTED)
@pytest.mark.parametrize("way", WRITES)
def test_a_failed_write_releases_its_source(table: str, way: str, reason: str, without_collector: None):
    changed, message = REJECTED[reason]
    source = Source(columns(**changed))
    released = weakref.ref(source)
    with pytest.raises(DeltaVariantError, match=message) as caught:
        WRITES[way](table, source)
    del caught, source
    assert released() is None
    assert dv.load_snapshot(table).version == 1


def test_a_new_table_that_is_not_written_releases_its_source(tmp_path: Path, without_collector: None):
    source = Source(pa.table({"at": pa.array([1], pa.timestamp("ns"))}))
    released = weakref.ref(source)
    with pytest.raises(DeltaVariantError) as caught:
        dv.write_table(str(tmp_path / "t"), source)
    del caught, source
    assert released() is None


def test_a_connection_of_duckdb_can_be_used_after_a_failed_write(tmp_path: Path, without_collector: None):
    connection = duckdb.connect()
    source = connection.sql("select timestamp_ns '2024-01-01 00:00:00.123456789' as at")
    with pytest.raises(DeltaVariantError) as caught:
        dv.write_table(str(tmp_path / "t"), source)
    del caught, source
    assert connection.sql("select 1").fetchall() == [(1,)]


# An error that a local variable refers to is a reference cycle: error, traceback, frame, variable, error.


def raised_variables(source: str) -> list[int]:
    """Return the lines that raise a local variable, which no `finally` clears."""
    return [
        statement.lineno
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        for statement in _unprotected(function)
        if isinstance(statement, ast.Raise) and _root(statement.exc) in _variables(function)
    ]


def _unprotected(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a function outside of blocks with a `finally`, and of nested functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef) and not (isinstance(child, ast.Try) and child.finalbody):
            yield child
            yield from _unprotected(child)


def _root(raised: ast.expr | None) -> str | None:
    """Return the variable `error` of `raise error`, `raise error.at(row=1)` and `raise error.cause`."""
    while isinstance(raised, ast.Attribute) or (
        isinstance(raised, ast.Call) and isinstance(raised.func, ast.Attribute)
    ):
        raised = raised.value if isinstance(raised, ast.Attribute) else raised.func.value
    return raised.id if isinstance(raised, ast.Name) else None


def _variables(function: ast.FunctionDef) -> set[str]:
    """Return the variables of a function; the name of an `except` clause is cleared at its end."""
    arguments = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    return arguments | {
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("error = E(1)\n raise error", [3]),
        ("error = E(1)\n raise error.at(row=1) from other", [3]),
        ("raise parameter", [2]),
        ("raise E(1).at(row=1)", []),
        ("try:\n  raise parameter\n finally:\n  del parameter", []),
        ("try:\n  g()\n except E as error:\n  raise error.at(row=1)", []),
        ("kind = E if x else F\n raise kind(1)", []),
    ],
)
def test_raised_variables_are_found(body: str, lines: list[int]):
    assert raised_variables(f"def f(parameter):\n {body}\n") == lines


def test_no_function_raises_an_error_that_its_variables_keep():
    found = {
        f"{file.relative_to(PACKAGE)}:{line}"
        for file in PACKAGE.rglob("*.py")
        for line in raised_variables(file.read_text(encoding="utf-8"))
    }
    assert found == set()
