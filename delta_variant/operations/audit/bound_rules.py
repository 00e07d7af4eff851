"""Rules of the bounds of a Variant column: the encoded bounds alone, then compared with the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ...data_file.options import MAX_STATS_PATHS
from ...errors import InvalidStatisticsError
from ...expressions.types import kind_of, type_name
from ...protocol.statistics import Bound, BoundText, FileStatistics, value_at
from ...variant import paths as variant_paths
from .findings import Rules, Violation
from .statistics_copies import SIDES
from .statistics_rules import CONTRADICTED, DANGER, REPAIR, UNUSED, is_false_null_count
from .subjects import ColumnSubject, PathReport, names_of

EXACT = ("int8", "int16", "int32", "int64", "decimal4", "decimal8", "decimal16")
DIGITS = {"decimal4": 9, "decimal8": 18, "decimal16": 38}
NESTED = ("null", "object", "array")

BOUND_RULES = Rules[ColumnSubject]()
rule = BOUND_RULES.add


@rule(
    "ST10",
    "info",
    "run `delta-variant repair-statistics` to compute them; without bounds readers cannot skip the file",
)
def _no_statistics(subject: ColumnSubject) -> Iterator[Violation]:
    table = subject.file.table
    if not subject.column.has_bounds or subject.column.path not in table.indexed:
        return
    if not subject.is_shredded or not table.shreds:
        return
    if not any(subject.entry(side) is not None for side in SIDES) and _could_have_bounds(subject):
        yield Violation(f"the Variant column {subject.name} is shredded but has no bounds")


def _could_have_bounds(subject: ColumnSubject) -> bool:
    """Return whether a path has only typed values: by the data if it was read, otherwise by the footer."""
    computed = subject.file.computed
    if isinstance(computed, FileStatistics):
        return value_at(computed.min_values, subject.column.path) is not None
    nulls = {tuple(leaf["path"]): leaf for leaf in subject.file.footer.get("leaves", ())}
    return any(
        not _is_filled(nulls.get((*path, "value"))) and _is_filled(nulls.get((*path, "typed_value")))
        for names, arrow_type in subject.leaves.items()
        if _type_has_bounds(arrow_type)
        for path in [(*subject.column.path, *(step for name in names for step in ("typed_value", name)))]
    )


def _type_has_bounds(arrow_type: Any) -> bool:
    """Return whether this library and Delta on Spark write bounds of a type."""
    is_of_nanoseconds = pa.types.is_timestamp(arrow_type) and arrow_type.unit == "ns"
    return kind_of(arrow_type) not in ("boolean", "binary", "nested") and not is_of_nanoseconds


def _is_filled(leaf: Mapping[str, Any] | None) -> bool:
    """Return whether a leaf column can have values; without a null count it can."""
    return leaf is not None and leaf["null_count"] != leaf["num_values"]


@rule("AU1", "error", UNUSED)
def _undecodable(subject: ColumnSubject) -> Iterator[Violation]:
    for side, found in subject.sides.items():
        if isinstance(found, InvalidStatisticsError):
            yield Violation(f"{side} of {subject.name} cannot be decoded ({found.message})")


@rule("Z7", "error", f"{REPAIR}; some readers fail on other JSON")
def _no_text(subject: ColumnSubject) -> Iterator[Violation]:
    for side in SIDES:
        entry = subject.entry(side)
        if entry is not None and not isinstance(entry, str):
            yield Violation(f"{side} of {subject.name} is {str(entry)[:60]}, expected a string")


@rule("AU2", "error", UNUSED)
def _no_object(subject: ColumnSubject) -> Iterator[Violation]:
    for side, found in subject.sides.items():
        if isinstance(found, BoundText) and found.bounds is None:
            yield Violation(f"{side} of {subject.name} is a Variant but not an object")


def _bound_rule(
    problem_of: Callable[[Bound, str], str | None],
) -> Callable[[ColumnSubject], Iterator[Violation]]:
    """Return the check of single bounds; `problem_of` gets a bound and its side."""

    def check(subject: ColumnSubject) -> Iterator[Violation]:
        for side, key, bound in _each(subject):
            if (problem := problem_of(bound, side)) is not None:
                yield Violation(f"{side} of {subject.name} at {key} {problem}", path_key=key)

    return check


def _each(subject: ColumnSubject) -> Iterator[tuple[str, str, Bound]]:
    for side, bounds in subject.bounds.items():
        for key, bound in bounds.items():
            yield side, key, bound


def _nested(bound: Bound, side: str) -> str | None:
    return f"has the type {bound.type}, expected a primitive" if bound.type in NESTED else None


rule("AU3", "error", UNUSED)(_bound_rule(_nested))


@rule("AU4", "warning", UNUSED)
def _not_normalized(subject: ColumnSubject) -> Iterator[Violation]:
    for key in _keys(subject):
        try:
            normal = variant_paths.normalize(variant_paths.parse(key))
        except InvalidStatisticsError:
            continue
        if normal != key:
            yield Violation(
                f"the path key {key} of {subject.name} is not normalized, expected {normal}", path_key=key
            )


def _keys(subject: ColumnSubject) -> list[str]:
    return list(dict.fromkeys(key for _, key, _ in _each(subject)))


@rule("AU4", "error", UNUSED)
def _no_path(subject: ColumnSubject) -> Iterator[Violation]:
    for key in _keys(subject):
        try:
            variant_paths.parse(key)
        except InvalidStatisticsError as error:
            yield Violation(f"invalid path key of {subject.name} ({error.message})", path_key=key)


@rule("AU5", "error", UNUSED)
def _types_differ(subject: ColumnSubject) -> Iterator[Violation]:
    for key, low, high in _both_sides(subject):
        if low.type != high.type:
            what = f"the types {low.type} and {high.type}"
            yield Violation(f"the bounds of {subject.name} at {key} have {what}", path_key=key)


def _both_sides(subject: ColumnSubject) -> Iterator[tuple[str, Bound, Bound]]:
    least, greatest = (subject.bounds.get(side, {}) for side in SIDES)
    for key, low in least.items():
        if key in greatest:
            yield key, low, greatest[key]


@rule("AU6", "error", DANGER)
def _under_array(subject: ColumnSubject) -> Iterator[Violation]:
    for key in _keys(subject):
        names = names_of(key)
        if names is not None and _leads_into_array(subject, names):
            yield Violation(f"the path {key} of {subject.name} leads into an array", path_key=key)


def _leads_into_array(subject: ColumnSubject, names: tuple[str, ...]) -> bool:
    return any(names[:length] in subject.lists for length in range(len(names) + 1))


@rule(
    "X3",
    "info",
    "allowed, but readers can skip by one side only; `delta-variant repair-statistics` computes both",
)
def _one_sided(subject: ColumnSubject) -> Iterator[Violation]:
    if any(not isinstance(found, BoundText) for found in subject.sides.values()):
        return
    least, greatest = (subject.bounds.get(side, {}) for side in SIDES)
    # A long string can lack the upper bound: a truncated one must still be greater than the string.
    for key in sorted(least.keys() ^ greatest.keys()):
        bound = least.get(key) or greatest[key]
        if bound.type != "string" or key in greatest:
            side = SIDES[0] if key in least else SIDES[1]
            yield Violation(f"the path {key} of {subject.name} is only in {side}", path_key=key)


@rule(
    "AU12",
    "warning",
    "readers ignore them: add the feature, or remove them with `delta-variant repair-statistics`",
)
def _without_feature(subject: ColumnSubject) -> Iterator[Violation]:
    table = subject.file.table
    if (
        table.protocol is not None
        and not table.shreds
        and any(subject.entry(side) is not None for side in SIDES)
    ):
        yield Violation(
            f"the statistics have bounds of {subject.name}, but the protocol lacks variantShredding"
        )


def _nan(bound: Bound, side: str) -> str | None:
    return "is NaN" if bound.type in ("float", "double") and "NaN" in bound.text else None


rule("AU14", "error", DANGER)(_bound_rule(_nan))


def _zero(bound: Bound, side: str) -> str | None:
    is_zero = bound.type in ("float", "double") and bound.text in ("0", "0.0", "-0", "-0.0")
    if is_zero and bound.text.startswith("-") is (side == "maxValues"):
        return f"is {bound.text}, expected the zero of the other sign"
    return None


rule("AU14", "warning", f"{REPAIR}; readers that distinguish the two zeros lose rows")(_bound_rule(_zero))


@rule("AU15", "error", UNUSED)
def _scales_differ(subject: ColumnSubject) -> Iterator[Violation]:
    for key, low, high in _both_sides(subject):
        if low.type == high.type and low.scale != high.scale:
            what = f"the scales {low.scale} and {high.scale}"
            yield Violation(f"the bounds of {subject.name} at {key} have {what}", path_key=key)


def _digits(bound: Bound, side: str) -> str | None:
    digits = sum(character.isdigit() for character in bound.text.lstrip("-0."))
    if digits > DIGITS.get(bound.type, digits):
        return f"has {digits} digits, too many for {bound.type}"
    return None


rule("AU15", "error", f"{REPAIR}; some readers reject it")(_bound_rule(_digits))


@rule("AU16", "warning", f"{REPAIR}; Delta on Spark cannot decode every other form")
def _printed_form(subject: ColumnSubject) -> Iterator[Violation]:
    for side, found in subject.sides.items():
        if not isinstance(found, BoundText):
            continue
        if found.is_value_first:
            yield Violation(f"{side} of {subject.name} has its value before its metadata")
        if found.is_cut:
            yield Violation(f"the last z85 block of {side} of {subject.name} is incomplete")
        if len(found.rest) > 3 or any(found.rest):
            yield Violation(f"{side} of {subject.name} has {len(found.rest)} bytes after the value")


@rule("AU18", "info", f"the default limit is {MAX_STATS_PATHS}, because every reader decodes all bounds")
def _too_many_paths(subject: ColumnSubject) -> Iterator[Violation]:
    count = len(_keys(subject))
    if count > MAX_STATS_PATHS:
        yield Violation(f"{subject.name} has bounds of {count} paths")


@rule("AU19", "error", DANGER)
def _of_another_class(subject: ColumnSubject) -> Iterator[Violation]:
    types_of: dict[str, set[str]] = {}
    for _, key, bound in _each(subject):
        types_of.setdefault(key, set()).add(bound.type)
    for key, types in types_of.items():
        names = names_of(key)
        arrow_type = subject.leaves.get(names) if names is not None else None
        if arrow_type is not None and not all(_fits(each, arrow_type) for each in types):
            names_of_types = ", ".join(sorted(types))
            sentence = (
                f"the bounds of {subject.name} at {key} are {names_of_types}, "
                f"but the file has {type_name(arrow_type)}"
            )
            yield Violation(sentence, path_key=key)


def _fits(bound: str, arrow_type: Any) -> bool:
    """Return whether a bound is in the class of equivalent types of a column (VariantEncoding.md)."""
    types = pa.types
    if bound in EXACT:
        return bool(types.is_integer(arrow_type) or types.is_decimal(arrow_type))
    checks: dict[str, Callable[[Any], bool]] = {
        "float": types.is_float32,
        "double": types.is_float64,
        "date": types.is_date,
        "string": lambda each: types.is_string(each) or types.is_large_string(each),
        "boolean": types.is_boolean,
        "binary": types.is_binary,
        "time": types.is_time,
        "uuid": types.is_fixed_size_binary,
    }
    if bound.startswith("timestamp"):
        return types.is_timestamp(arrow_type) and (arrow_type.tz is None) is ("ntz" in bound)
    return bool(checks[bound](arrow_type)) if bound in checks else False


@rule("AU19", "warning", f"{REPAIR}; only data=True can verify them")
def _not_shredded(subject: ColumnSubject) -> Iterator[Violation]:
    if subject.group is None:
        return
    for key, names in ((key, names_of(key)) for key in _keys(subject)):
        if names is not None and names not in subject.leaves and not _leads_into_array(subject, names):
            yield Violation(
                f"the path {key} of {subject.name} has bounds but no typed_value in the file", path_key=key
            )


def _bounds_rule(name: str, what: str) -> Callable[[ColumnSubject], Iterator[Violation]]:
    def check(subject: ColumnSubject) -> Iterator[Violation]:
        for path in _paths(subject):
            count, row, text = getattr(path, name)
            if count:
                more = f" (and {count - 1:,} more rows)" if count > 1 else ""
                sentence = f"row {row:,}, column {subject.name} at {path.key}: {text} {what}{more}"
                yield Violation(sentence, path_key=path.key, row=row)

    return check


def _paths(subject: ColumnSubject) -> Iterator[PathReport]:
    yield from subject.rows.paths if subject.rows else ()


rule("AU7", "error", CONTRADICTED)(_bounds_rule("below", "is less than the lower bound"))
rule("AU7", "error", CONTRADICTED)(_bounds_rule("above", "is greater than the upper bound"))
rule("AU7", "error", CONTRADICTED)(_bounds_rule("others", "has another type than the bounds"))


@rule("AU8", "warning", f"{REPAIR}; wider bounds skip fewer files")
def _not_attained(subject: ColumnSubject) -> Iterator[Violation]:
    if not subject.file.is_tight:
        return
    for path in _paths(subject):
        for side, is_attained in zip(SIDES, (path.min_attained, path.max_attained), strict=True):
            bound = subject.bounds.get(side, {}).get(path.key)
            if bound is not None and not is_attained:
                sentence = (
                    f"{side} of {subject.name} at {path.key} is {bound.text}, but no row has that value"
                )
                yield Violation(sentence, path_key=path.key)


rule("AU9", "error", DANGER)(_bounds_rule("nulls", "is a Variant null at a path with bounds"))
rule("AU14", "error", DANGER)(_bounds_rule("nans", "is NaN at a path with bounds"))


@rule("AU10", "error", CONTRADICTED)
def _variant_null_count(subject: ColumnSubject) -> Iterator[Violation]:
    stated = value_at(subject.file.stats.null_count, subject.column.path)
    rows, live = subject.rows, subject.file.live_rows
    if rows is None or live is None or type(stated) is not int or not subject.column.has_bounds:
        return
    if not subject.file.is_tight:
        found = int(subject.file.opened.num_rows) - rows.variants
        is_wrong = is_false_null_count(subject.file, stated, found)
    else:
        found = live - rows.variants
        is_wrong = stated != found
    if is_wrong:
        yield Violation(f"nullCount of {subject.name} is {stated:,}, but the file has {found:,} nulls")
