"""The systematic cases of conditions, bounds, deletion vectors and numbers, which `systematic.py` writes.

They are products of the tables below. The expected answers come from the values themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import eq, ge, gt, le, lt
from pathlib import Path
from typing import Any

import pyarrow as pa
from case_folder import commit, new_case, write_parquet
from features import ROWS, SHREDDED_VECTORS, UNSHREDDED_VECTORS, VECTORS, file, in_file, inline
from lost import File, key, write_table
from shredding import group_type, shredded
from tables import AS_SHREDDED, AS_VARIANT

Typed = dict[str, Any]

NULL: Typed = {"null": None}
SKIPPING = "VariantShredding.md, Data Skipping"
STATISTICS = "PROTOCOL.md, Statistics for Variant Columns"
ENCODING = "VariantEncoding.md, Encoding types"


@dataclass(frozen=True)
class Ordered:
    """A type, the column that it is shredded to, ascending payloads, and the literals of two of them."""

    kind: str
    schema: str
    arrow: pa.DataType
    payloads: Sequence[Any]
    literals: Mapping[int, Any]
    """The literal of the payload at an index."""
    has_bounds: bool = True
    """Whether Delta has bounds of the type."""

    @property
    def values(self) -> list[Typed]:
        return [{self.kind: payload} for payload in self.payloads]


def integer(bits: int) -> Ordered:
    largest = 2 ** (bits - 1) - 1
    payloads = [-largest - 1, -1, 0, 1, largest]
    name = f"int{bits}"
    return Ordered(name, name, getattr(pa, name)(), payloads, {2: 0, 4: largest})


def decimals(kind: str, precision: int, scale: int) -> Ordered:
    payloads = [f"{number:.{scale}f}" for number in (-12.5, -0.25, 0, 0.25, 12.5)]
    arrow = pa.decimal128(precision, scale)
    return Ordered(kind, f"decimal({precision},{scale})", arrow, payloads, {2: 0, 4: 12.5})


DAY, SECOND = "2024-02-29", "2024-02-29 12:00:00"
DAYS, MICROS = 19_782, 1_709_208_000_000_000

MOMENTS = [-62_135_596_800_000_000, -1, 0, MICROS, 253_402_300_799_999_999]
FLOATS = [-1.5, -0.25, 0.5, 2.0, 1024.0]
TEXTS = ["", "a", "b", "b\uffff", "b\U0001f600"]

ORDERED = (
    *map(integer, (8, 16, 32, 64)),
    Ordered("float", "float", pa.float32(), FLOATS, {2: 0.5, 4: 1024.0}),
    Ordered("double", "double", pa.float64(), FLOATS, {2: 0.5, 4: 1024.0}),
    decimals("decimal4", 9, 2),
    decimals("decimal8", 18, 6),
    decimals("decimal16", 38, 10),
    Ordered("date", "date", pa.date32(), [-719_162, -1, 0, DAYS, 2_932_896], {3: DAY, 2: "1970-01-01"}),
    Ordered(
        "timestamp",
        "timestamp",
        pa.timestamp("us", "UTC"),
        MOMENTS,
        {2: "1970-01-01 00:00:00Z", 3: f"{SECOND}Z"},
    ),
    Ordered(
        "timestamp_ntz", "timestamp_ntz", pa.timestamp("us"), MOMENTS, {2: "1970-01-01 00:00:00", 3: SECOND}
    ),
    Ordered("string", "string", pa.string(), TEXTS, {2: "b", 4: TEXTS[4]}),
    Ordered("binary", "binary", pa.binary(), ["", "00", "61", "61ff", "ff"], {2: "61", 4: "ff"}, False),
    Ordered("boolean", "boolean", pa.bool_(), [False, False, False, True, True], {2: False, 4: True}, False),
)

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


# Conditions.


def layouts(each: Ordered) -> Iterator[tuple[str, tuple[Any, Any], bool]]:
    """Yield a name, what the two files are shredded to, and whether they have other types of equal value."""
    own = pa.struct({"a": each.arrow})
    other = pa.struct({"a": pa.string() if each.kind == "boolean" else pa.bool_()})
    yield "typed", (own, own), False
    yield "in_value", (other, other), False
    yield "unshredded", (None, None), False
    yield "of_two_layouts", (own, None), False
    if each.kind.startswith(("int", "decimal")):
        yield "of_two_types", (own, own), True


def other_type(value: Typed) -> Typed:
    """Return a number as an equal one of a type that is not shredded, in the middle of a file."""
    [(kind, payload)] = value.items()
    if kind.startswith("int"):
        return {"int64" if kind != "int64" else "decimal16": payload if kind != "int64" else str(payload)}
    return {"decimal16" if kind != "decimal16" else "decimal8": payload}


def conditions(cases: Path) -> int:
    """Write each operator with each literal, for values that each layout stores."""
    count = 0
    for each in ORDERED:
        wheres = [(name, each.literals[at], at) for name in OPERATORS for at in each.literals]
        for (layout, shredding, mixed), where in product(
            layouts(each), [*wheres, ("is null",), ("is not null",)]
        ):
            low, high = rows_of(each, mixed)
            values = [row and row["object"].get("a") for row in (*low, *high)]
            expected = [number for number, value in enumerate(values, 1) if matches(each, value, where)]
            name = f"{each.kind}_{layout}_{NAMES[where[0]]}" + (f"_{where[2]}" if len(where) > 1 else "")
            given = {"table": "table", "path": ["a"], "type": each.schema, "where": list(where[:2])}
            about = "A condition finds each row with a matching value, whichever column stores it"
            expect = {"rows": [{"id": number} for number in expected]}
            folder = new_case("select", name, "Q1 Q2", "keeps", SKIPPING, about, given, expect, cases=cases)
            write_table(
                folder / "table",
                *(
                    of_file(each, rows, kind, mixed)
                    for rows, kind in zip((low, high), shredding, strict=True)
                ),
            )
            count += 1
    return count


NAMES = {"=": "equal", "<": "below", "<=": "at_most", ">": "above", ">=": "at_least"} | {
    "is null": "null",
    "is not null": "not_null",
}


def rows_of(each: Ordered, mixed: bool) -> tuple[list[Typed | None], list[Typed | None]]:
    """Return the rows of two files, with missing fields, Variant null and SQL NULL among them."""
    found: list[Typed] = [{"object": {"a": value}} for value in each.values]
    if mixed:
        found[1], found[4] = ({"object": {"a": other_type(each.values[at])}} for at in (1, 4))
    low = [found[0], {"object": {}}, found[1], found[2]]
    return low, [found[2], {"object": {"a": NULL}}, found[3], found[4], None]


def matches(each: Ordered, value: Typed | None, where: Sequence[Any]) -> bool:
    is_null = value in (None, NULL)
    if len(where) == 1:
        return is_null == (where[0] == "is null")
    if is_null or value is None:
        return False
    [payload] = value.values()
    return OPERATORS[where[0]](order(each, payload), order(each, each.payloads[where[2]]))


def order(each: Ordered, payload: Any) -> Any:
    """Return a payload by which values are ordered."""
    if each.kind.startswith("decimal"):
        return float(payload)
    if each.kind == "binary":
        return bytes.fromhex(payload)
    if each.kind == "string":
        return str(payload).encode()
    return int(payload) if each.kind.startswith("int") else payload


def of_file(each: Ordered, rows: Sequence[Typed | None], kind: Any, mixed: bool) -> File:
    """Return a file of two row groups, with bounds in the log if all values of the path are typed."""
    typed = [row["object"]["a"] for row in rows if row and "a" in row["object"]]
    is_typed = kind is not None and kind.field("a").type == each.arrow
    if not is_typed or not each.has_bounds or mixed or NULL in typed:
        return File(rows, kind, row_group_size=2)
    bounds = {"least": {key("a"): typed[0]}, "greatest": {key("a"): typed[-1]}}
    return File(rows, kind, row_group_size=2, **bounds)


# Bounds.


@dataclass(frozen=True)
class Place:
    """Where a value is in a row, the key of its bounds, and its type in `typed_value`."""

    key: str
    nest: Callable[[Typed | None], Typed | None]
    arrow: Callable[[pa.DataType], pa.DataType]


def field(value: Typed | None) -> Typed:
    return {"object": {} if value is None else {"a": value}}


PLACES = {
    "root": Place("$", lambda value: value, lambda own: own),
    "field": Place(key("a"), field, lambda own: pa.struct({"a": own})),
    "nested_field": Place(
        key("o", "a"),
        lambda value: {"object": {"o": field(value)}},
        lambda own: pa.struct({"o": pa.struct({"a": own})}),
    ),
}


def bounds(cases: Path) -> int:
    """Write the bounds of each type, and rows that remove them."""
    count = 0
    for each, (place, at) in product((each for each in ORDERED if each.has_bounds), PLACES.items()):
        values: list[Typed | None] = [*each.values[1:], each.values[0]]
        for name, more, has_bounds in (
            ("alone", [], True),
            ("among_missing_ones", [None, None], True),
            ("beside_another_type", [{"boolean": True}], False),
        ):
            rows = [at.nest(value) for value in (*more, *values)]
            sides = (each.values[0], each.values[-1])
            least, greatest = ({"object": {at.key: side}} if has_bounds else None for side in sides)
            expect = {"min": least, "max": greatest, "null_count": sum(row is None for row in rows)}
            about = "Bounds are the least and the greatest value, if all values have the shredded type"
            given = {"file": "file.parquet", "column": "v"}
            named = f"{each.kind}_{place}_{name}"
            folder = new_case(
                "stats", named, "ST1 ST2 ST8", "keeps", STATISTICS, about, given, expect, cases=cases
            )
            kind = at.arrow(each.arrow)
            columns = pa.array([shredded(row, kind) for row in rows], group_type(kind))
            options = {"row_group_size": 3, "store_decimal_as_integer": True}
            write_parquet(folder / "file.parquet", pa.table({"v": columns}), **options)
            count += 1
    return count


# Deletion vectors.


POSITIONS = {
    "first": (0,),
    "last": (5,),
    "end_of_a_row_group": (1,),
    "a_row_group": (2, 3),
    "every_other": (0, 2, 4),
    "all_but_one": (0, 1, 2, 4, 5),
    "all": tuple(range(6)),
}


def vectors(cases: Path) -> int:
    """Write deletion vectors of each position, for row groups of each size."""
    count = 0
    stores = {
        "inline": lambda table, rows: inline(*rows),
        "in_a_file": lambda table, rows: in_file(table, *rows),
    }
    plans = product(POSITIONS.items(), stores.items(), (AS_VARIANT, AS_SHREDDED), (1, 2, 6))
    for (name, positions), (stored, descriptor), layout, size in plans:
        rows = [row for number, row in enumerate(ROWS) if number not in positions]
        shape = "shredded" if layout is AS_SHREDDED else "unshredded"
        named = f"deleted_{name}_{stored}_{shape}_of_row_groups_of_{size}"
        about = "The rows of a deletion vector are not read"
        given, expect = {"table": "table"}, {"rows": rows}
        folder = new_case("table", named, "Q11", "keeps", VECTORS, about, given, expect, cases=cases)
        table = folder / "table"
        action = file(table, 0, ROWS, layout, deletionVector=descriptor(table, positions))
        path = table / "part-0.parquet"
        stored_rows = pa.parquet.read_table(path)
        action["add"]["size"] = write_parquet(path, stored_rows, row_group_size=size)
        commit(table, 0, *(SHREDDED_VECTORS if layout is AS_SHREDDED else UNSHREDDED_VECTORS), action)
        count += 1
    return count


# Numbers in JSON.


def numbers() -> Iterator[tuple[str, str, Typed]]:
    """Yield a name, a number in JSON, and its typed value."""
    for power, more, sign in product((7, 8, 15, 16, 31, 32, 63, 64, 96, 126), (-1, 0, 1), (1, -1)):
        number = sign * (2**power + more)
        bits = next((bits for bits in (8, 16, 32, 64) if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)), 0)
        typed = {f"int{bits}": number} if bits else {"decimal16": str(number)}
        step = {-1: "_minus_1", 0: "", 1: "_plus_1"}[more]
        yield f"{'minus_' if sign < 0 else ''}2_to_the_{power}{step}", str(number), typed
    for digits in range(1, 39):
        for scale in sorted({1, (digits + 1) // 2, digits}):
            text = "9" * (digits - scale) or "0"
            text += "." + "8" * scale
            kind = "decimal4" if digits <= 9 else "decimal8" if digits <= 18 else "decimal16"
            yield f"{digits}_digits_of_scale_{scale}", text, {kind: text}


def encodings(cases: Path) -> int:
    """Write the parsing of numbers at the ends of each type."""
    count = 0
    for name, text, typed in numbers():
        expect = {"rows": [typed], "also": [{"double": float(text)}]}
        about = "A number in JSON is the narrowest integer, or a decimal of all its digits"
        new_case("encode", name, "E-V6", "keeps", ENCODING, about, {"json": text}, expect, cases=cases)
        count += 1
    return count


def write_tables(cases: Path) -> int:
    """Write all cases, and return their number."""
    return conditions(cases) + bounds(cases) + vectors(cases) + encodings(cases)
