"""Grade answers: compare each with the expectation of its case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from . import json_text
from .case import Case
from .decoding import NotAVariantError, decode
from .invoke import UNREADABLE, VARIANT_KEY, Answer
from .shredded_columns import assemble, typed_pair
from .typed_values import Difference, Schema, TypedValue, compare, describe
from .written_layout import Violation

Status: TypeAlias = Literal[
    "pass", "wrong value", "wrong layout", "accepted", "refused", "crashed", "timed out", "not offered"
]

Effect: TypeAlias = Literal["lost", "altered"]

STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True)
class Result:
    """The result of an engine in a case; `expected` and `got` are texts for people.

    `notes` are correct differences from the expectation, such as another physical type.
    """

    case: Case
    engine: str
    status: Status
    expected: str
    got: str = ""
    notes: tuple[str, ...] = ()
    effect: Effect | None = None
    """What a wrong answer did to the expected one: a row, a field or an element is lost, or altered."""

    @property
    def is_finding(self) -> bool:
        """Return whether the result is a defect of the engine."""
        return self.status not in ("pass", "not offered")


class _LayoutError(Exception):
    """A written file or table with the right values that violates rules; the message names them."""


class _WrongError(Exception):
    """An answer that is not the expected one; the message says why."""

    @classmethod
    def of(cls, where: str, wanted: object, found: object) -> _WrongError:
        return cls(f"{where}: expected {describe(wanted)}, got {describe(found)}")


def grade(case: Case, engine: str, answer: Answer, *, is_ours: bool = False) -> Result:
    """Return the result of a case. Our own errors must have the expected class."""
    expected = expectation(case)
    if answer.outcome == "answered":
        try:
            return _grade_content(case, engine, answer.content, expected)
        except RecursionError:
            reason = "the answer nests too deeply"
            return Result(case, engine, "wrong value", expected, reason, effect="altered")
    if answer.outcome != "refused":
        return Result(case, engine, answer.outcome, expected, answer.message)
    classes = answer.error_classes
    got = f"{classes[0]}: {answer.message}" if classes else answer.message
    is_expected = case.error is not None and (not is_ours or case.error in classes)
    return Result(case, engine, "pass" if is_expected else "refused", expected, got)


def _grade_content(case: Case, engine: str, content: Any, expected: str) -> Result:
    got = _describe_content(content)
    if not case.has_answer:
        return Result(case, engine, "accepted", expected, got)
    if UNREADABLE in content:
        return Result(case, engine, "wrong layout", expected, content[UNREADABLE])
    try:
        notes = tuple(_notes_of(case, content))
    except _WrongError as wrong:
        effect: Effect = "lost" if _is_lost(case, content) else "altered"
        got = f"{wrong}; the whole answer: {got}"
        return Result(case, engine, "wrong value", expected, got, effect=effect)
    except _LayoutError as wrong:
        return Result(case, engine, "wrong layout", "no violation of docs/audit-rules.md", str(wrong))
    return Result(case, engine, "pass", expected, got, notes)


def _notes_of(case: Case, content: Any) -> Iterator[str]:
    """Yield notes on a correct answer; raises _WrongError for another one, or one of another form."""
    try:
        yield from GRADERS[case.kind](case, content)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise _WrongError(f"expected an answer of the kind {case.kind}") from error


def _is_lost(case: Case, content: Any) -> bool:
    try:
        found = (
            {"rows": _stored_rows(case, content["files"])} if case.kind == "rewrite" else _decoded(content)
        )
    except (_WrongError, LookupError):
        return False
    return any(_lacks(found.get(key), wanted) for key, wanted in case.expect.items() if key in found)


def _lacks(found: Any, wanted: Any) -> bool:
    """Return whether a value lacks a row, a field or an element of the expected one, or is null instead."""
    if found in (None, {"null": None}):
        return wanted not in (None, {"null": None})
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        # Typed values have one key, their type: another type is another value, and not a missing field.
        if len(wanted) == len(found) == 1 and wanted.keys() != found.keys():
            return False
        return any(name not in found or _lacks(found[name], part) for name, part in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) < len(wanted) or any(map(_lacks, found, wanted))
    return False


def expectation(case: Case) -> str:
    """Return the expectation of a case as text for people."""
    answers = {key: value for key, value in case.expect.items() if key != "error"}
    parts = [describe(answers, 2000)] if answers else []
    if case.error is not None:
        parts.append(f"an error ({case.error})")
    return ", or ".join(parts)


def _describe_content(content: Any) -> str:
    try:
        return describe(_decoded(content), 2000)
    except _WrongError:
        return describe(content, 2000)


def _decoded(content: Any) -> Any:
    """Return an answer with its Variants decoded; raises _WrongError for bytes that are not a Variant."""
    if isinstance(content, Mapping):
        if content.keys() == {VARIANT_KEY}:
            return _variant(content)
        return {name: _decoded(part) for name, part in content.items()}
    return [_decoded(part) for part in content] if isinstance(content, list) else content


def _is_variant(content: Any) -> bool:
    return isinstance(content, Mapping) and content.keys() == {VARIANT_KEY}


def _variant(content: Any) -> Mapping[str, Any]:
    parts = content[VARIANT_KEY]
    try:
        metadata, value = map(bytes.fromhex, parts)
    except (TypeError, ValueError) as error:
        raise _WrongError(f"expected metadata and value in hex, got {parts!r}") from error
    try:
        return decode(metadata, value)
    except NotAVariantError as error:
        raise _WrongError(f"invalid Variant {metadata.hex()} {value.hex()}: {error}") from error


def _notes(differences: Iterator[Difference], where: str = "") -> Iterator[str]:
    """Yield notes on differences between equal values; raises _WrongError for the first other difference."""
    for difference in differences:
        if not difference.equal:
            raise _WrongError(f"{where}{difference}")
        yield f"{where}{difference.path} has another physical type: {difference}"


def _compare_cell(wanted: Any, found: Any, where: str) -> Iterator[str]:
    """Compare a cell of a row: a Variant, an ordinary value, or a nested value of both."""
    if _is_variant(found):
        if wanted is None or not isinstance(wanted, Mapping) or len(wanted) != 1:
            raise _WrongError.of(where, wanted, _variant(found))
        yield from _notes(compare(wanted, _variant(found)), f"{where}, ")
    elif isinstance(wanted, Mapping) and isinstance(found, Mapping) and wanted.keys() == found.keys():
        for name, part in wanted.items():
            yield from _compare_cell(part, found[name], f"{where}.{name}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (part, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _compare_cell(part, other, f"{where}[{index}]")
    elif not json_text.equal(wanted, found):
        raise _WrongError.of(where, wanted, _decoded(found))


def _check_count(wanted: Sequence[Any], found: Sequence[Any]) -> None:
    if len(wanted) != len(found):
        raise _WrongError(f"expected {len(wanted)} rows, got {len(found)}")


def _compare_rows(wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[str]:
    _check_count(wanted, found)
    for row, (each, other) in enumerate(zip(wanted, found, strict=True)):
        yield from _compare_cell(each, other, f"row {row}")


def _grade_decode(case: Case, content: Any) -> Iterable[str]:
    if "rows" in content:
        return _notes(compare(case.expect["rows"][0], content["rows"][0]))
    text = content["json"]
    try:
        found = json_text.parse(text)
    except (ValueError, TypeError) as error:
        raise _WrongError(f"invalid JSON {describe(text)}: {error}") from error
    rows = case.expect.get("rows", ())
    is_listed = any(json_text.equal(each, found) for each in case.expect.get("json", ()))
    if not is_listed and not any(json_text.is_text_of(row, found) for row in rows):
        raise _WrongError(f"the text {text}")
    return ()


def _grade_encode(case: Case, content: Any) -> Iterator[str]:
    (cell,) = content["rows"]
    also = case.expect.get("also", [])
    if _is_variant(cell) and any(not list(compare(each, _variant(cell))) for each in also):
        return
    if "rows" in case.expect:
        yield from _compare_rows(case.expect["rows"], [cell])
    if "hex" in case.expect and _is_variant(cell):
        wanted = [case.expect["hex"]["metadata"].lower(), case.expect["hex"]["value"].lower()]
        if cell[VARIANT_KEY] != wanted:
            yield f"expected the bytes {' '.join(wanted)}, got {' '.join(cell[VARIANT_KEY])}"


def _grade_rows(case: Case, content: Any) -> Iterator[str]:
    yield from _compare_rows(case.expect["rows"], content["rows"])
    for row, (wanted, cell) in enumerate(zip(case.expect.get("bytes", ()), content["rows"], strict=False)):
        if wanted is not None and "".join(cell[VARIANT_KEY]) != wanted:
            yield f"row {row}: expected the bytes {wanted}, got {''.join(cell[VARIANT_KEY])}"


def _grade_shred(case: Case, content: Any) -> Iterator[str]:
    wanted, found = case.expect["columns"], _decoded(content["columns"])
    _check_count(wanted, found)
    schema = case.input["schema"]
    for row, (pair, other) in enumerate(zip(wanted, found, strict=True)):
        yield from _compare_pairs(schema, typed_pair(schema, pair), other, f"row {row}")
    yield from _layout_notes(content["violations"])


def _layout_notes(violations: Sequence[Violation]) -> Iterator[str]:
    """Yield the violations that are warnings; raises _LayoutError if there are errors."""
    texts = {
        severity: [
            f"{each['rule']}: {each['message']}" for each in violations if each["severity"] == severity
        ]
        for severity in ("error", "warning")
    }
    if texts["error"]:
        raise _LayoutError("; ".join(texts["error"]))
    yield from texts["warning"]


def _compare_pairs(schema: Schema, wanted: Any, found: Any, where: str) -> Iterator[str]:
    """Compare the columns of a row; writers may leave a value in `value` that `typed_value` could hold."""
    if wanted is None or found is None:
        if wanted is not found:
            raise _WrongError.of(where, wanted, found)
        return
    value, other = _assembled(schema, wanted, where), _assembled(schema, found, where)
    if value is None or other is None:
        raise _WrongError.of(where, wanted, found)
    yield from _notes(compare(value, other), f"{where}, ")
    if wanted != found:
        yield f"{where}: expected the columns {describe(wanted)}, got {describe(found)}"


def _assembled(schema: Schema, pair: Any, where: str) -> TypedValue | None:
    try:
        return assemble(schema, pair)
    except (AttributeError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise _WrongError(f"{where}: the columns violate VariantShredding.md: {error}") from error


def _grade_select(case: Case, content: Any) -> Iterator[str]:
    wanted, found = case.expect["rows"], content["rows"]
    _check_ids(wanted, found)
    yield from _compare_rows(wanted, found)


def _grade_rewrite(case: Case, content: Any) -> Iterable[str]:
    rows = _stored_rows(case, content["files"])
    _compare_stored(case, case.expect["rows"], rows)
    if "row_ids" in case.expect:
        wanted, found = case.expect["row_ids"], [row["row_id"] for row in rows]
        if wanted != found:
            raise _WrongError.of("row ids", wanted, found)
    if "changes" in case.expect:
        changes = _stored_rows(case, content["changes"])
        kinds = [[row["_change_type"] for row in each] for each in (case.expect["changes"], changes)]
        if kinds[0] != kinds[1]:
            raise _WrongError.of("changes", *kinds)
        _compare_stored(case, case.expect["changes"], changes)
    return _layout_notes(content["violations"])


def _compare_stored(case: Case, wanted: Sequence[Any], found: Sequence[Any]) -> None:
    """Compare the Variants of rows; an engine may store another physical type."""
    _check_ids(wanted, found)
    for row, other in zip(wanted, found, strict=True):
        value, stored = row[case.column], other[case.column]
        where = f"row {row['id']}"
        if value is not None and stored is not None:
            list(_notes(compare(value, stored), f"{where}, "))
        elif value is not stored:
            raise _WrongError.of(where, value, stored)


def _check_ids(wanted: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> None:
    ids, others = [row["id"] for row in wanted], [row["id"] for row in found]
    if ids != others:
        raise _WrongError(f"expected the rows {ids}, got {others}")


def _stored_rows(case: Case, files: Any) -> list[Mapping[str, Any]]:
    """Return the rows of files by `id`, with their Variants assembled from the stored columns."""
    rows = []
    for file in files:
        for row in file["rows"]:
            pair = _decoded(row["pair"])
            # Columns that are both null in a row that is not SQL NULL are a Variant null.
            null = None if pair is None else {"null": None}
            value = pair and _assembled(file["schema"], pair, f"row {row['id']}")
            rows.append({**row, case.column: value or null})
    return sorted(rows, key=lambda row: (row["id"], row.get("_change_type", "")))


def _grade_stats(case: Case, content: Any) -> Iterator[str]:
    if "rows" in case.expect:
        yield from _compare_rows(case.expect["rows"], content["rows"])
    for key in ("z85", "min", "max", "null_count"):
        # Not every engine counts nulls.
        if key in case.expect and (key in content or key != "null_count"):
            yield from _compare_cell(case.expect[key], content.get(key), key)


UNORDERED = ("files", "reader_features", "writer_features")


def _grade_log(case: Case, content: Any) -> Iterable[str]:
    for key, wanted in case.expect.items():
        if key == "error":
            continue
        found = content.get(key)
        if key in UNORDERED and isinstance(found, list):
            wanted, found = sorted(wanted), sorted(found)
        if wanted != found:
            raise _WrongError.of(key, wanted, found)
    return ()


GRADERS: Mapping[str, Callable[[Case, Any], Iterable[str]]] = {
    "decode": _grade_decode,
    "encode": _grade_encode,
    "shred": _grade_shred,
    "unshred": _grade_rows,
    "file": _grade_rows,
    "table": _grade_rows,
    "changes": _grade_rows,
    "select": _grade_select,
    "rewrite": _grade_rewrite,
    "stats": _grade_stats,
    "log": _grade_log,
}
