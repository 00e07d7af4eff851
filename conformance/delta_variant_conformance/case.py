"""Cases: the input of an engine and the expected answer, in the format of protocol_fixtures/README.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import hexdigits
from typing import Any

from delta_variant.errors import DeltaVariantError

from .typed_values import find_problem, find_schema_problem

DEFAULT_COLUMN = "v"


class InvalidCaseError(DeltaVariantError):
    """A case does not follow protocol_fixtures/README.md; `file` names it."""


@dataclass(frozen=True)
class Case:
    """One case: its rules and subject, the input of an engine, and the expected answer.

    `id` is `kind/name`. `folder` contains the files that `input` names. `guards` are the published bugs, such
    as `duckdb#24293`, in which an engine lost or altered the value of this case.
    """

    id: str
    kind: str
    folder: Path
    rules: tuple[str, ...]
    verdict: str
    section: str
    about: str
    input: Mapping[str, Any]
    expect: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    guards: tuple[str, ...] = ()

    @property
    def error(self) -> str | None:
        """Return the class of the error that is expected or allowed, if any."""
        return self.expect.get("error")

    @property
    def has_answer(self) -> bool:
        """Return whether an answer other than an error is expected or allowed."""
        return bool(self.expect.keys() - {"error"})

    @property
    def column(self) -> str:
        """Return the name of the Variant column in the case's file."""
        return str(self.input.get("column", DEFAULT_COLUMN))


def load_cases(folder: Path) -> list[Case]:
    """Return the cases of `<folder>/cases/<kind>/<name>/case.json`, in the order of their ids.

    Raises InvalidCaseError, with the file, for a case that does not have the format of the README.
    """
    root = folder / "cases"
    if not root.is_dir():
        raise InvalidCaseError(
            f"{folder} contains neither a folder cases nor the files of parquet-testing", file=str(folder)
        )
    return [_load(path) for kind in sorted(root.iterdir()) if kind.is_dir() for path in _files_of(kind)]


def _files_of(kind: Path) -> Iterator[Path]:
    for folder in sorted(kind.iterdir()):
        if folder.is_dir():
            yield folder / "case.json"


def _load(path: Path) -> Case:
    folder, kind = path.parent, path.parent.parent.name
    try:
        text = path.read_text(encoding="utf-8")
        entries = json.loads(text, object_pairs_hook=_without_duplicates)
        _check(isinstance(entries, dict), "expected a JSON object")
        _check(kind in KINDS, f"unknown kind of case {kind!r}: expected one of {', '.join(KINDS)}")
        _check_keys("the case", entries, REQUIRED, OPTIONAL)
        _check_metadata(entries)
        KINDS[kind].check(folder, entries["input"], entries["expect"])
    except FileNotFoundError as error:
        raise InvalidCaseError("the file does not exist").at(file=str(path)) from error
    except (_InvalidError, ValueError, RecursionError) as error:
        raise InvalidCaseError(str(error)).at(file=str(path)) from error
    for key in ("rules", "guards"):
        entries[key] = tuple(entries.get(key, ()))
    return Case(id=f"{kind}/{folder.name}", kind=kind, folder=folder, **entries)


class _InvalidError(Exception):
    """A case that does not have the format of the README."""


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise _InvalidError(message)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    _check(
        len(entries) == len(pairs), f"an object has a duplicate key among {', '.join(n for n, _ in pairs)}"
    )
    return entries


REQUIRED = frozenset({"rules", "verdict", "section", "about", "input", "expect"})
OPTIONAL = frozenset({"options", "guards"})

# An issue or pull request of a project on GitHub, or a commit of this library.
BUG = re.compile(r"[A-Za-z][\w-]*#[1-9][0-9]*|delta_variant@[0-9a-f]{7}", re.ASCII)


def _check_keys(what: str, entries: Any, required: Collection[str], optional: Collection[str]) -> None:
    _check(isinstance(entries, dict), f"expected {what} to be a JSON object")
    missing = sorted(set(required) - entries.keys())
    _check(not missing, f"{what} lacks {', '.join(missing)}")
    unknown = sorted(entries.keys() - {*required, *optional})
    _check(not unknown, f"{what} has unknown keys: {', '.join(unknown)}")


def _check_metadata(entries: Mapping[str, Any]) -> None:
    rules = entries["rules"]
    _check(
        isinstance(rules, list) and bool(rules) and all(isinstance(rule, str) and rule for rule in rules),
        "expected rules to be a list of at least one rule id",
    )
    _check(entries["verdict"] in ("keeps", "breaks"), 'expected verdict to be "keeps" or "breaks"')
    for key in ("section", "about"):
        _check(isinstance(entries[key], str) and bool(entries[key]), f"expected {key} to be text")
    _check(isinstance(entries.get("options", {}), dict), "expected options to be a JSON object")
    guards = entries.get("guards", ["duckdb#1"])
    _check(
        isinstance(guards, list)
        and bool(guards)
        and all(isinstance(each, str) and BUG.fullmatch(each) for each in guards),
        "expected guards to be a list of at least one bug, such as duckdb#24293",
    )


@dataclass(frozen=True)
class Kind:
    """The input and the possible answers of a kind of case, with a check for each key."""

    required: Mapping[str, Callable[[Path, Any], None]]
    optional: Mapping[str, Callable[[Path, Any], None]]
    answers: Mapping[str, Callable[[Path, Any], None]]
    one_of: tuple[str, ...] = ()
    """A case has exactly one of these inputs."""

    def check(self, folder: Path, given: Any, expect: Any) -> None:
        """Raise _InvalidError for an invalid input or expectation."""
        inputs = {**self.required, **self.optional}
        _check_keys("input", given, self.required, self.optional)
        _check_keys("expect", expect, (), (*self.answers, "error"))
        _check(bool(expect), "expect is empty")
        if self.one_of:
            _check(
                len(given.keys() & set(self.one_of)) == 1,
                f"expected one of {', '.join(self.one_of)} in input",
            )
        for key, value in given.items():
            inputs[key](folder, value)
        for key, value in expect.items():
            {**self.answers, "error": _error}[key](folder, value)


def _check_text(what: str) -> Callable[[Path, Any], None]:
    return lambda folder, value: _check(isinstance(value, str), f"expected {what} to be text")


def _check_count(what: str) -> Callable[[Path, Any], None]:
    return lambda folder, value: _check(
        type(value) is int and value >= 0, f"expected {what} to be an integer >= 0"
    )


def _check_texts(what: str) -> Callable[[Path, Any], None]:
    return lambda folder, value: _check(
        isinstance(value, list) and all(isinstance(each, str) for each in value),
        f"expected {what} to be a list of text",
    )


def _check_text_map(what: str) -> Callable[[Path, Any], None]:
    return lambda folder, value: _check(
        isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
        f"expected {what} to be an object of text",
    )


def _error(folder: Path, value: Any) -> None:
    _check(
        isinstance(value, str) and value.endswith("Error"), "expected error to be the name of an error class"
    )


def _hex(folder: Path, value: Any) -> None:
    is_hex = isinstance(value, str) and len(value) % 2 == 0 and not set(value) - set(hexdigits)
    _check(is_hex, f"expected hex, got {value!r}")


def _bytes(folder: Path, value: Any) -> None:
    _check_keys("an object of bytes", value, ("metadata", "value"), ())
    _hex(folder, value["metadata"])
    _hex(folder, value["value"])


def _file(folder: Path, value: Any) -> None:
    _check(isinstance(value, str) and (folder / value).is_file(), f"the file {value} does not exist")
    _check_inside(folder, value)


def _table(folder: Path, value: Any) -> None:
    _check(isinstance(value, str) and (folder / value).is_dir(), f"the folder {value} does not exist")
    _check_inside(folder, value)


def _check_inside(folder: Path, name: str) -> None:
    _check(
        (folder / name).resolve().is_relative_to(folder.resolve()),
        f"{name} is outside the folder of the case",
    )


def _typed(folder: Path, value: Any) -> None:
    problem = find_problem(value)
    _check(problem is None, str(problem))


def _typed_or_null(folder: Path, value: Any) -> None:
    if value is not None:
        _typed(folder, value)


def _list_of(what: str, check: Callable[[Path, Any], None]) -> Callable[[Path, Any], None]:
    def check_all(folder: Path, values: Any) -> None:
        _check(isinstance(values, list), f"expected {what} to be a list")
        for value in values:
            check(folder, value)

    return check_all


def _one_typed(folder: Path, values: Any) -> None:
    _check(isinstance(values, list) and len(values) == 1, "expected rows to have one value")
    _typed(folder, values[0])


def _found(folder: Path, row: Any) -> None:
    _check_keys("a selected row", row, ("id",), ("found",))


def _where(folder: Path, value: Any) -> None:
    is_known = isinstance(value, list) and bool(value) and value[0] in OPERATORS
    _check(
        is_known and len(value) == 1 + OPERATORS[value[0]],
        f"expected where to be one of {', '.join(OPERATORS)}, and a literal if the operator has one",
    )


def _versions(folder: Path, value: Any) -> None:
    _check(isinstance(value, list) and len(value) == 2, "expected versions to be the first and the last one")
    _list_of("versions", _check_count("a version"))(folder, value)


def _true(folder: Path, value: Any) -> None:
    _check(value is True, "expected compact to be true")


def _list(folder: Path, values: Any) -> None:
    _check(isinstance(values, list) and bool(values), "expected json to be a list of at least one value")


def _object(folder: Path, value: Any) -> None:
    _check(isinstance(value, dict), "expected a row of a table to be an object")


def _pair(folder: Path, value: Any) -> None:
    if value is None:
        return
    _check_keys("a row of columns", value, ("value", "typed_value"), ())
    _typed_or_null(folder, value["value"])


def _schema(folder: Path, value: Any) -> None:
    problem = find_schema_problem(value)
    _check(problem is None, str(problem))


OPERATORS = {"=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "is null": 0, "is not null": 0}
"""The operators of `where`, and the number of their literals."""

_COLUMN = {"column": _check_text("column")}
_ROWS = {"rows": _list_of("rows", _typed_or_null)}
_READS = Kind({"file": _file}, _COLUMN, _ROWS)

KINDS: Mapping[str, Kind] = {
    "decode": Kind({"metadata": _hex, "value": _hex}, {}, {"rows": _one_typed, "json": _list}),
    "encode": Kind(
        {"json": _check_text("json")},
        {},
        {"rows": _one_typed, "also": _list_of("also", _typed), "hex": _bytes},
    ),
    "shred": Kind({"file": _file, "schema": _schema}, _COLUMN, {"columns": _list_of("columns", _pair)}),
    "unshred": _READS,
    "file": _READS,
    "table": Kind(
        {"table": _table}, {"version": _check_count("version")}, {"rows": _list_of("rows", _object)}
    ),
    "changes": Kind({"table": _table, "versions": _versions}, {}, {"rows": _list_of("rows", _object)}),
    "select": Kind(
        {"table": _table, "path": _check_texts("path"), "type": _schema},
        {"where": _where, **_COLUMN},
        {"rows": _list_of("rows", _found)},
    ),
    "rewrite": Kind(
        {"table": _table},
        {"compact": _true, "delete": _check_count("delete"), **_COLUMN},
        {
            "rows": _list_of("rows", _object),
            "row_ids": _list_of("row_ids", _check_count("a row id")),
            "changes": _list_of("changes", _object),
        },
        one_of=("compact", "delete"),
    ),
    "stats": Kind(
        {},
        {"z85": _check_text("z85"), "encode": _bytes, "file": _file, **_COLUMN},
        {
            "rows": _one_typed,
            "z85": _check_text("z85"),
            "min": _typed_or_null,
            "max": _typed_or_null,
            "null_count": _check_count("null_count"),
        },
        one_of=("z85", "encode", "file"),
    ),
    "log": Kind(
        {"table": _table},
        {"version": _check_count("version")},
        {
            "version": _check_count("version"),
            "files": _check_texts("files"),
            "reader_features": _check_texts("reader_features"),
            "writer_features": _check_texts("writer_features"),
            "properties": _check_text_map("properties"),
            "schema": _check_text_map("schema"),
        },
    ),
}
"""The kinds of cases, in the order of the README."""
