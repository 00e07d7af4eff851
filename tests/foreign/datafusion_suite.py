"""The tests of datafusion-variant, with its functions expressed by those of this library."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from select_driver import Arguments, Driver, is_variant
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from delta_variant import functions
from delta_variant.errors import DeltaVariantError

REASONS = {"statement": "creates or drops the rows of other cases"}


@dataclass(frozen=True)
class Case:
    """A statement or a query of a test file, and the lines that its authors expect."""

    name: str
    file: str
    kind: str
    arg: str
    sql: str
    expected: Sequence[str] | None


def read_cases(corpus: Path) -> dict[str, list[Case]]:
    """Return the cases of each test file; their names are their numbers in the suite."""
    files: dict[str, list[Case]] = {}
    for number, each in enumerate(json.loads((corpus / "cases.json").read_text(encoding="utf-8")), 1):
        case = Case(str(number), each["file"], each["kind"], each["arg"], each["sql"], each["expected"])
        files.setdefault(case.file, []).append(case)
    return files


def call(name: str, *arguments: exp.Expression | str) -> exp.Expression:
    """Return a call of a function of ours; texts are literals."""
    return exp.Anonymous(
        this=name,
        expressions=[
            exp.Literal.string(each) if isinstance(each, str) else each.copy() for each in arguments
        ],
    )


def path_of(node: exp.Expression) -> str:
    """Return the path of `a.b[0]` in datafusion-variant."""
    return "$" if not node.name else f"$.{node.name}"


def field_of(node: exp.Expression) -> str:
    """Return the path of a field with any name, or of an element."""
    return f"$[{node.name}]" if not node.is_string else f"$['{node.name}']"


def construct(empty: str, pairs: Sequence[tuple[str, exp.Expression]], function: str) -> exp.Expression:
    """Return an object or an array of its parts."""
    built = call("parse_json", empty)
    for path, value in pairs:
        built = call(function, built, path, value)
    return built


def get_as(target: str) -> Callable[..., exp.Expression]:
    return lambda variant, path: call("try_variant_get", variant, path_of(path), target)


CASTS = {"Int64": "bigint", "Utf8": "string"}

FUNCTIONS: Mapping[str, Callable[..., exp.Expression]] = {
    "json_to_variant": lambda text: call("parse_json", text),
    "variant_to_json": lambda variant: call("to_json", variant),
    "variant_pretty": lambda variant: variant.copy(),
    "variant_get": lambda variant, path: call("variant_get", variant, path_of(path)),
    "variant_get_field": lambda variant, name, *target: call(
        "variant_get", variant, field_of(name), *(CASTS[each.name] for each in target)
    ),
    "variant_get_bool": get_as("boolean"),
    "variant_get_int": get_as("bigint"),
    "variant_get_float": get_as("double"),
    "variant_get_str": get_as("string"),
    "variant_get_json": lambda variant, path: call("to_json", call("variant_get", variant, path_of(path))),
    "variant_object_keys": lambda variant, *path: call(
        "variant_keys", call("variant_get", variant, *map(path_of, path)) if path else variant
    ),
    "variant_object_insert": lambda variant, name, value: call("variant_set", variant, field_of(name), value),
    "variant_object_delete": lambda variant, name: call("variant_delete", variant, field_of(name)),
    "variant_object_construct": lambda *parts: construct(
        "{}",
        [(field_of(name), value) for name, value in zip(parts[::2], parts[1::2], strict=True)],
        "variant_set",
    ),
    "variant_list_construct": lambda *values: construct(
        "[]", [("$", each) for each in values], "variant_array_append"
    ),
    "variant_list_insert": lambda variant, value: call("variant_array_append", variant, "$", value),
    "variant_list_delete": lambda variant, index: call("variant_delete", variant, field_of(index)),
    "cast_to_variant": lambda value, *parts: (
        call("cast_to_variant", value, *parts) if parts else exp.cast(value.copy(), "variant")
    ),
}
"""datafusion-variant's functions by ours."""


class DataFusion(DuckDB):
    """The syntax of the suite: that of DuckDB, with binary literals."""

    class Tokenizer(DuckDB.Tokenizer):
        """Reads X'0a'."""

        HEX_STRINGS = [("X'", "'")]


def replace(node: exp.Expression) -> exp.Expression:
    """Return a call of datafusion-variant as one of ours."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return FUNCTIONS[name](*node.expressions) if name in FUNCTIONS else node


# How the authors print values: `Int8(1)`, `ShortString(ShortString("x"))`, `Binary(0a 0b)`.
TEXT = r'"(?:[^"\\]|\\.)*"'
PRETTY = (
    (re.compile(rf"(?:ShortString\(ShortString|String)\(({TEXT})\)+"), lambda match: match[1]),
    (
        re.compile(r"Decimal\d+\(VariantDecimal\d+ \{ integer: (-?\d+), scale: (\d+) \}\)"),
        lambda match: str(Decimal(match[1]).scaleb(-int(match[2]))),
    ),
    (
        re.compile(r"Binary\(([0-9a-f ]*)\)"),
        lambda match: f'"{base64.b64encode(bytes.fromhex(match[1])).decode()}"',
    ),
    (re.compile(r"(?:Date|Time)\(([\d:.-]+)\)"), lambda match: f'"{match[1]}"'),
    (
        re.compile(r"Timestamp\w+\(([\d-]+)T([\d:.]+)(Z?)\)"),
        lambda match: f'"{match[1]} {match[2]}{"+00:00" if match[3] else ""}"',
    ),
    (re.compile(r"(?:Int\d+|Float|Double)\(([^()]*)\)"), lambda match: match[1]),
    (re.compile(r"Boolean(True|False)"), lambda match: match[1].lower()),
    (re.compile(r"\bNull\b"), lambda match: "null"),
)


def plain(line: str) -> str:
    """Return a line with values as JSON text without white space between tokens."""
    for pattern, value in PRETTY:
        line = pattern.sub(value, line)
    return re.sub(rf"({TEXT})|([,:\[{{]) ", lambda match: match[1] or match[2], line)


def lines_of(rows: pa.Table) -> list[str]:
    """Return rows as the authors print them."""
    columns = []
    for field, values in zip(rows.schema, rows.columns, strict=True):
        texts = functions.to_json(values) if is_variant(field) else values
        columns.append([_printed(value) for value in texts.to_pylist()])
    return [" ".join(row) for row in zip(*columns, strict=True)]


def _printed(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return "[" + ",".join(value) + "]"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# Arrow types by their names in Rust.
ARROW_TYPES: Mapping[str, pa.DataType] = {
    "Boolean": pa.bool_(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
    "Float16": pa.float16(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Utf8": pa.string(),
    "Utf8View": pa.string_view(),
    "LargeUtf8": pa.large_string(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "BinaryView": pa.binary_view(),
    "FixedSizeBinary(4)": pa.binary(4),
    "Decimal32(9,2)": pa.decimal32(9, 2),
    "Decimal64(18,2)": pa.decimal64(18, 2),
    "Decimal128(20,2)": pa.decimal128(20, 2),
    "Decimal256(20,2)": pa.decimal256(20, 2),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
    "Time32(Second)": pa.time32("s"),
    "Time32(Millisecond)": pa.time32("ms"),
    "Time64(Microsecond)": pa.time64("us"),
    "Time64(Nanosecond)": pa.time64("ns"),
    "List(Int64)": pa.list_(pa.int64()),
    "LargeList(Int64)": pa.large_list(pa.int64()),
    "FixedSizeList(3, Int64)": pa.list_(pa.int64(), 3),
    "Dictionary(Int32, Utf8)": pa.dictionary(pa.int32(), pa.string()),
    **{
        f"Timestamp({name}, {zone})": pa.timestamp(unit, "UTC" if zone != "None" else None)
        for name, unit in (
            ("Second", "s"),
            ("Millisecond", "ms"),
            ("Microsecond", "us"),
            ("Nanosecond", "ns"),
        )
        for zone in ("None", 'Some("UTC")')
    },
}


def arrow_cast(arguments: Arguments) -> pa.Array[Any]:
    """Return values as an Arrow type; a scalar becomes a list of one element."""
    (_, values), (_, names) = arguments
    target = ARROW_TYPES[names[0].as_py()]
    if pa.types.is_decimal(values.type) and pa.types.is_floating(target):
        values = pc.cast(values, pa.float64())
    if pa.types.is_time(target):
        return pa.array(map(time.fromisoformat, values.to_pylist()), target)
    if pa.types.is_null(values.type) or not pa.types.is_nested(target) or pa.types.is_list(values.type):
        return pc.cast(values, target)
    return pa.array([[each] for each in values.to_pylist()], target)


def new_driver() -> Driver:
    """Return a driver that has no tables yet."""
    return Driver(DataFusion, replace, {"arrow_cast": arrow_cast})


def observe(corpus: Path, cases: Sequence[Case], folder: Path) -> dict[str, tuple[str, str]]:
    """Return the outcome of each case of a file, and a key of REASONS if it is out of scope."""
    driver = new_driver()
    return {case.name: _outcome(driver, case) for case in cases}


def _outcome(driver: Driver, case: Case) -> tuple[str, str]:
    try:
        if case.kind == "statement" and case.arg == "ok":
            driver.create(case.sql)
            return "out of scope", "statement"
        found: list[str] | None = lines_of(driver.select(case.sql))
    except DeltaVariantError:
        found = None
    expected = None if case.expected is None else [plain(line) for line in case.expected]
    return ("equal" if found == expected else "different"), ""
