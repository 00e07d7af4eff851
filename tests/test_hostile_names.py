"""Names in tables with escape sequences of terminals, marks of bidirectional text and line breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.errors import DeltaVariantError, ExpressionError, printable

NAME = "c\x1b]0;owned\x07\x9b2J\u202e\nz\x7f"


@pytest.fixture
def table(tmp_path: Path) -> str:
    folder = str(tmp_path / NAME)
    properties = {"delta.columnMapping.mode": "name", f"owner{NAME}": NAME}
    dv.write_table(folder, pa.table({NAME: [1], "n": [1]}), configuration=properties)
    return folder


def representations(table: str) -> Iterator[object]:
    yield dv.Table(table)
    yield dv.load_snapshot(table)
    yield dv.read_table(table)
    yield dv.history(table)
    yield dv.audit_table(table)
    yield dv.merge(table, pa.table({"n": [2]}), on="target.n = source.n")
    yield dv.set_properties(table, {f"other{NAME}": NAME})
    yield dv.Variant.from_python({NAME: NAME})


def test_a_representation_escapes_names(table: str) -> None:
    for shown in representations(table):
        text = repr(shown)
        assert all(line.isprintable() for line in text.split("\n")), ascii(text)
        assert "\nz" not in text, ascii(text)


def test_the_text_of_a_report_escapes_names(table: str) -> None:
    name = NAME.replace("`", "``")
    text = str(dv.read_table(table, where=f"`{name}` > 1").explain()) + str(
        dv.aggregate(table, [f"max(`{name}`)"])
    )
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)
    assert "\nz" not in text, ascii(text)


FAILURES: dict[str, Callable[[str], object]] = {
    "a missing table": lambda table: dv.load_snapshot(f"{table}{NAME}"),
    "a missing version": lambda table: dv.load_snapshot(table, 7),
    "a table that exists": lambda table: dv.write_table(table, [{"n": 1}]),
    "an unknown column": lambda table: dv.read_table(table, columns=[f"other{NAME}"]).to_table(),
    "an unknown column in a condition": lambda table: dv.read_table(table, where=f"`other{NAME}` = 1"),
    "a column of another type": lambda table: dv.write_table(
        table, pa.table({NAME: [pa.scalar([1])], "n": [1]}), mode="append"
    ),
    "an additional column": lambda table: dv.write_table(
        table, pa.table({NAME: [1], "n": [1], f"more{NAME}": [1]}), mode="append"
    ),
    "an unknown property": lambda table: dv.set_properties(table, {f"delta.{NAME}": "1"}),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_the_text_of_an_error_escapes_names(failure: str, table: str) -> None:
    with pytest.raises((DeltaVariantError, ValueError)) as raised:
        FAILURES[failure](table)
    text = str(raised.value)
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)
    assert "\nz" not in text, ascii(text)


def test_the_lines_of_an_error_that_marks_a_position_are_kept() -> None:
    error = ExpressionError("cannot parse SQL at character 3:\n  a \x1b b\n    ^")
    assert str(error) == "cannot parse SQL at character 3:\n  a \\x1b b\n    ^"


def test_printable_text_is_unchanged() -> None:
    assert printable("größe \U0001f600 a\\n") == "größe \U0001f600 a\\n"
    assert printable(NAME) == "c\\x1b]0;owned\\x07\\x9b2J\\u202e\\nz\\x7f"
