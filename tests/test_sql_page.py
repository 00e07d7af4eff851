"""docs/reference/sql.md names each operator, function and type, and its examples have their values."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.documents import Page

import delta_variant as dv
from delta_variant._arrow import SIMPLE_TYPES
from delta_variant.errors import ExpressionError
from delta_variant.expressions.bind import FUNCTIONS, FUNCTIONS_OF_TIME
from delta_variant.expressions.forms import FORMS, PREDICATES
from delta_variant.expressions.grammar import OPERATORS
from delta_variant.expressions.parse import parse, parse_type
from delta_variant.expressions.scalars import SCALAR_FUNCTIONS
from delta_variant.expressions.types import PARAMETRIC_TYPES
from delta_variant.expressions.variant_calls import CONSTRUCTORS, VARIANT_FUNCTIONS

PAGE = Page("docs/reference/sql.md")
CODE = re.compile(r"``\s?(.+?)\s?``|`([^`]+)`")
VALUES = {"Decimal": Decimal, "datetime": datetime}
VARIANT = '{"id": 7, "name": "Ada", "tags": ["x", "y"], "none": null, "a.b": 1}'

# Functions of the binder that have another form in SQL.
SPELLINGS = {
    "negate": "-",
    "[]": "array[position]",
    "positive": "+",
    "to timestamp": "to_timestamp",
    "add interval": "interval",
}


def tables() -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of the tables, each with the heading of its section."""
    heading = ""
    for line in PAGE.text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("|") and not line.startswith("|---"):
            yield heading, [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def code(cell: str) -> list[str]:
    return [double or single for double, single in CODE.findall(cell)]


EXAMPLES = [
    (code(cells[1])[0], code(cells[2])[0])
    for _, cells in tables()
    if len(cells) == 3 and cells[1] not in ("expression", "other names") and "Types" not in _
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "t"
    rows = pa.table({"v": [VARIANT], "s": [{"x": 1}], "n": pa.array([5], pa.int32())})
    dv.write_table(path, rows, variant_columns=["v"])
    return path


@pytest.mark.parametrize(("expression", "value"), EXAMPLES)
def test_an_example_has_its_value(table: Path, expression: str, value: str):
    expected: Any = eval(compile(ast.parse(value, mode="eval"), "sql.md", "eval"), dict(VALUES))
    (row,) = pa.table(dv.read_table(table, columns={"it": expression})).to_pylist()
    assert row["it"] == expected
    assert type(row["it"]) is type(expected)


def test_the_page_has_examples():
    assert len(EXAMPLES) >= 40


def first_cells(*headings: str) -> set[str]:
    return {name for heading, cells in tables() if heading in headings for name in code(cells[0])}


def test_every_operator_and_function_is_on_the_page():
    listed = " ".join(first_cells("Operators", "Functions", "Functions of Variants", "Constructors")).split()
    words = {re.split(r"\(", word)[0] for word in listed} | {"is null"}
    names = {*FUNCTIONS, *FUNCTIONS_OF_TIME, *SCALAR_FUNCTIONS, *VARIANT_FUNCTIONS, *CONSTRUCTORS}
    assert {SPELLINGS.get(name, name) for name in names} - words == set()


def test_every_operator_and_form_of_the_grammar_has_an_example():
    words = {word for expression, _ in EXAMPLES for word in re.findall(r"\w+|[^\w\s']+", expression.lower())}
    # Names of one operator, and comparisons that share an example.
    same = {"==", "!=", "!<", "!>", "<=", ">=", "regexp", "substr"}
    assert {*OPERATORS, *PREDICATES, *FORMS} - words <= same


def test_every_type_is_on_the_page_and_other_names_are_the_same_type():
    rows = [cells for heading, cells in tables() if heading == "Types" and cells[0] != "type"]
    names = {re.split(r"[(<]", code(cells[0])[0])[0] for cells in rows}
    assert names == {*SIMPLE_TYPES, *PARAMETRIC_TYPES, "variant"}
    for first, others, _ in rows:
        name = code(first)[0]
        for other in code(others):
            assert parse_type(other) == parse_type(re.split(r"\(", name)[0])


@pytest.mark.parametrize(
    "expression", ["soundex('a')", "count(*)", "n in (select 1)", "n << 1", "interval 1 day"]
)
def test_expressions_that_the_page_excludes_are_rejected(expression: str):
    with pytest.raises(ExpressionError):
        parse(expression)
