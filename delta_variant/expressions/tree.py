"""The expression tree and its inputs.

`parse` returns trees that may contain `Name` and `Path`. `bind` replaces these by inputs (`Column`,
`Extraction`) and sets the type of every `Call`, so that `output_type` and `evaluate` can process the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeGuard
from typing import Literal as OneOf

import msgspec
import pyarrow as pa

from .._arrow import value_bytes
from ..errors import ExpressionError
from ..variant.moments import UTC
from .cast import cast_scalar
from .types import type_name

Expression: TypeAlias = "Name | Path | Literal | Column | Extraction | Field | Cast | Call | VariantCall"

ComparisonOperator: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">="]
FLIPPED: Mapping[str, ComparisonOperator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operators of the same comparisons with their operands exchanged."""

NEGATED: Mapping[str, ComparisonOperator] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""The operators of comparisons that are true where others are false."""

PAD = "pad to char"
"""The function that pads text with spaces, for which SQL has no name."""

ELEMENT = "[]"
"""The function that takes an element out of an array, or a value out of a map."""

TRIED = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%"}
"""The functions that are NULL where an operator fails."""


class Name(msgspec.Struct, frozen=True):
    """A column, or a field of a struct column, as written in the SQL text."""

    parts: tuple[str, ...]


class Path(msgspec.Struct, frozen=True):
    """A path into a Variant that is not resolved yet: `event:user.id`. A wildcard `[*]` is None."""

    operand: Expression
    path: tuple[str | int | None, ...]


class Literal(msgspec.Struct, frozen=True):
    """A constant.

    Calculated with decimals, one that is written has its own digits, one that a cast made those of its type.
    """

    value: pa.Scalar[Any]
    is_cast: bool = False


NULL = Literal(pa.scalar(None, pa.null()))


class Column(msgspec.Struct, frozen=True):
    """An input: an ordinary top-level column of the table, in the spelling and type of its schema.

    `table` names the table of the column in an expression over several tables, else it is None.
    """

    name: str
    type: pa.DataType
    table: str | None = None


class Extraction(msgspec.Struct, frozen=True):
    """An input: the value at `path` in a Variant column.

    `type` is the Arrow type it is cast to, None the Variant itself (struct<metadata, value>). A missing path,
    and a Variant null cast to a type, are SQL NULL. A value that cannot be cast is an error when `strict`,
    else NULL. `as_json` asks for JSON text as `to_json` writes it; a Variant null is then the text `null`.
    `fields` lead from a struct column to the Variant in it. `timezone` is that of a `Cast`, `table` that of a
    `Column`.
    """

    column: str
    path: tuple[str | int, ...]
    type: pa.DataType | None
    strict: bool = True
    as_json: bool = False
    fields: tuple[str, ...] = ()
    timezone: str = UTC
    table: str | None = None


class Field(msgspec.Struct, frozen=True):
    """A field of a struct."""

    operand: Expression
    name: str
    type: pa.DataType


class Cast(msgspec.Struct, frozen=True):
    """`operand` cast to another type, None for Variant.

    A value that cannot be cast is an error if `strict`, and NULL otherwise. `timezone` is the time zone of
    local times (dates, text and timestamps without time zone) in casts to and from instants.
    """

    operand: Expression
    type: pa.DataType | None
    strict: bool
    timezone: str = UTC


class Call(msgspec.Struct, frozen=True):
    """An operator or function by its SQL name; `type` is None until it is bound.

    Functions: `and` and `or` (of two or more), `not`, `=` `<>` `<` `<=` `>` `>=` `<=>`, `in` (the value, then
    the options), `like`, `is null`, `+` `-` `*` `/` `%`, `negate`, `coalesce`, `length`, `year`, `month`,
    `day`, `hour`; before binding also `to_json`, `is_variant_null`, `typeof` and the functions of Variants.
    The part of an instant is that of its local time in `timezone`.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType | None = None
    timezone: str = UTC


class VariantCall(msgspec.Struct, frozen=True):
    """A bound function of Variants by its SQL name; `type` is None if its values are Variants.

    `constants` are its other arguments: paths, booleans and types. `cast` returns any value as a Variant,
    `matches` an array of the values at a path with wildcards.
    `variant_get` and `to_json` are the paths, casts and JSON text of Variants that are not columns.
    A constructor (`array`, `map`, `map_from_arrays`, `map_from_entries`, `named_struct`) builds a value of
    `type`. `case` and `coalesce` select one of Variants.
    """

    function: str
    arguments: tuple[Expression, ...]
    constants: tuple[Any, ...]
    type: pa.DataType | None


AggregateFunction: TypeAlias = OneOf["count", "max", "min"]


class Aggregate(msgspec.Struct, frozen=True):
    """An aggregate function of the values of an expression; None is the `*` of `count(*)`."""

    function: AggregateFunction
    argument: Expression | None


Input: TypeAlias = Column | Extraction


def conjuncts(*predicates: Expression | None) -> Iterator[Expression]:
    """Yield the operands of a conjunction at any depth, in their order."""
    for each in predicates:
        if isinstance(each, Call) and each.function == "and":
            yield from conjuncts(*each.arguments)
        elif each is not None:
            yield each


def conjunction(*predicates: Expression | None) -> Expression | None:
    """Return the conjunction of the predicates that are not None; None without any."""
    known = tuple(each for each in predicates if each is not None)
    return Call("and", known, pa.bool_()) if len(known) > 1 else next(iter(known), None)


def inputs(expressions: Iterable[Expression]) -> tuple[Input, ...]:
    """Return the inputs of the bound `expressions` without duplicates, in order of first use."""
    by_name: dict[str, Input] = {}
    for expression in expressions:
        for node in walk(expression):
            if isinstance(node, Column | Extraction) and by_name.setdefault(input_name(node), node) != node:
                raise ExpressionError(
                    f"the column {input_name(node)!r} has the name of an extraction: rename it",
                    column=input_name(node),
                )
    return tuple(by_name.values())


def literal_bytes(expressions: Iterable[Expression]) -> int:
    """Return the bytes of the text and binary constants in expressions, which each row may copy."""
    constants = (node.value for each in expressions for node in walk(each) if isinstance(node, Literal))
    return sum(value_bytes(pa.array([each.as_py()], each.type))[0].as_py() for each in constants)


def is_whole(source: Input) -> TypeGuard[Extraction]:
    """Return whether an input is a whole top-level Variant column."""
    return isinstance(source, Extraction) and not (
        source.path or source.type or source.as_json or source.fields
    )


def is_strict_cast(expression: Expression) -> bool:
    """Return whether an expression is a cast of a Variant that fails for a value of another type."""
    return isinstance(expression, Extraction) and expression.type is not None and expression.strict


def transform(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Return an expression with parts replaced by the result of `change` if not None, outermost first."""
    changed = change(expression)
    if changed is not None:
        return changed
    match expression:
        case Path(operand) | Field(operand) | Cast(operand):
            return msgspec.structs.replace(expression, operand=transform(operand, change))
        case Call(_, arguments) | VariantCall(_, arguments):
            return msgspec.structs.replace(
                expression, arguments=tuple(transform(each, change) for each in arguments)
            )
        case _:
            return expression


def input_name(source: Input) -> str:
    """Return the name under which a batch carries `source`: a column's own, or the extraction as SQL text."""
    if isinstance(source, Extraction):
        return _extraction_text(source)
    # A column name cannot contain NUL.
    return source.name if source.table is None else f"{source.table}\0{source.name}"


def input_column(source: Input) -> str:
    """Return the name of the column that an input reads."""
    return source.column if isinstance(source, Extraction) else source.name


def output_type(expression: Expression) -> pa.DataType | None:
    """Return the Arrow type of a bound expression's values; None for Variant (struct<metadata, value>)."""
    if isinstance(expression, Literal):
        literal_type: pa.DataType = expression.value.type
        return literal_type
    if isinstance(expression, Name | Path):
        raise ExpressionError(
            f"cannot determine the type of `{describe(expression)}` because it is not bound to a table"
        )
    return expression.type


def describe(expression: Expression) -> str:
    """Return `expression` as SQL text for messages."""
    match expression:
        case Name(parts):
            return ".".join(parts)
        case Path(operand, path):
            return f"{describe(operand)}:{_path_text(path)}"
        case Literal(value):
            return _literal_text(value)
        case Column(name, _, table):
            return name if table is None else f"{table}.{name}"
        case Extraction():
            return _readable_extraction(expression)
        case Field(operand, name, _):
            return f"{describe(operand)}.{name}"
        case Cast(operand, type_, strict, _):
            return f"{'cast' if strict else 'try_cast'}({describe(operand)} as {type_name(type_)})"
        case Call(function, arguments):
            return _call_text(function, [describe(argument) for argument in arguments])
        case VariantCall():
            return _variant_call_text(expression)


def children(expression: object) -> tuple[Expression, ...]:
    """Return the operands and arguments of an expression."""
    if isinstance(expression, Call | VariantCall):
        return expression.arguments
    return (expression.operand,) if isinstance(expression, Path | Field | Cast) else ()


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all parts of it."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def _extraction_text(source: Extraction) -> str:
    # repr() of every part distinguishes two extractions whose names contain quotes and dots.
    steps = "".join(f"[{step!r}]" for step in source.path)
    column = ".".join(map(repr, _column_parts(source)))
    function = "to_json" if source.as_json else "variant_get" if source.strict else "try_variant_get"
    timezone = "" if source.timezone == UTC else f", {source.timezone}"
    return f"{function}({column}, ${steps}, {type_name(source.type)}{timezone})"


def _readable_extraction(source: Extraction) -> str:
    column = ".".join(_column_parts(source))
    text = f"{column}:{_path_text(source.path)}" if source.path else column
    if source.as_json:
        return f"to_json({text})"
    if source.type is None:
        return text
    return (
        f"{text}::{type_name(source.type)}"
        if source.strict
        else f"try_cast({text} as {type_name(source.type)})"
    )


def _column_parts(source: Extraction) -> tuple[str, ...]:
    parts = (source.column, *source.fields)
    return parts if source.table is None else (source.table, *parts)


def _path_text(path: tuple[str | int | None, ...]) -> str:
    return "".join(map(_step_text, path)).removeprefix(".")


def _step_text(step: str | int | None) -> str:
    if isinstance(step, str) and step.isidentifier():
        return f".{step}"
    return "[*]" if step is None else f"[{step!r}]"


def _literal_text(value: pa.Scalar[Any]) -> str:
    try:
        content = value.as_py()
    except (OverflowError, ValueError):
        # Python has only the years 1 to 9999.
        return str(cast_scalar(value, pa.string(), strict=True).as_py())
    if content is None or isinstance(content, bool):
        return str(content).replace("None", "null").lower()
    return repr(content) if isinstance(content, str) else str(content)


PREFIXES = {"not": "not ", "negate": "-", "~": "~"}


def _call_text(function: str, arguments: list[str]) -> str:
    if function == "in":
        return f"{arguments[0]} in ({', '.join(arguments[1:])})"
    if function == "is null":
        return f"{arguments[0]} is null"
    if function == ELEMENT:
        return f"{arguments[0]}[{arguments[1]}]"
    if function == "case":
        return _case_text(arguments)
    if function in PREFIXES:
        return f"({PREFIXES[function]}{arguments[0]})"
    if function[0].isalpha() and function not in ("and", "or", "like"):
        return f"{function}({', '.join(arguments)})"
    return f"({f' {function} '.join(arguments)})"


def _case_text(arguments: list[str]) -> str:
    pairs = zip(arguments[::2], arguments[1::2], strict=False)
    branches = "".join(f" when {condition} then {value}" for condition, value in pairs)
    return f"case{branches}{f' else {arguments[-1]}' if len(arguments) % 2 else ''} end"


def _variant_call_text(call: VariantCall) -> str:
    arguments = [describe(argument) for argument in call.arguments]
    if call.function == "cast":
        return f"cast({arguments[0]} as variant)"
    if call.function == "case":
        return _case_text(arguments)
    if call.function == "matches":
        return f"{arguments[0]}:{_path_text(call.constants[0])}"
    if call.function == "variant_get":
        path, _, strict, _ = call.constants
        part = f"{arguments[0]}:{_path_text(path)}" if path else arguments[0]
        if call.type is None:
            return part
        return f"{'cast' if strict else 'try_cast'}({part} as {type_name(call.type)})"
    if call.function == "named_struct":
        fields: Any = call.type
        names = [repr(field.name) for field in fields]
        arguments = [text for pair in zip(names, arguments, strict=True) for text in pair]
    texts = [repr(each) if isinstance(each, str) else str(each).lower() for each in call.constants]
    shown = [] if call.function == "to_json" else texts
    return f"{call.function}({', '.join([arguments[0], *shown, *arguments[1:]])})"
