"""Parse SQL text in the Databricks dialect with `sqlglot`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, NoReturn

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import TokenType

from .._checks import check_text, is_unicode, list_of
from ..errors import ArgumentTypeError, ExpressionError
from ..variant.paths import MAX_INDEX, parse_pattern
from .constructors import CONSTRUCTORS
from .tree import Aggregate, AggregateFunction, Call, Cast, Expression, Literal, Name, Path
from .types import MAX_PRECISION, SIMPLE_TYPES
from .variant_functions import VARIANT_FUNCTIONS

MAX_DEPTH = 100
MAX_SHOWN = 80
TYPE_TOKENS = Databricks.Parser.TYPE_TOKENS
CAST_TOKENS = (TokenType.DCOLON, TokenType.QDCOLON)
# A step that starts with a special character, such as the name @type.
UNQUOTED_NAME = re.compile(r"[@#$&!?~^%][^\s.\[\](),:']*")
OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
STEP_TOKENS = (TokenType.COLON, TokenType.DOT)
NAME_TOKENS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.L_BRACKET)
# Functions of which sqlglot drops arguments beyond these: casts, and three more.
MAX_ARGUMENTS = {
    **dict.fromkeys(
        ("boolean", "date", "double", "float", "int", "string", "timestamp_ltz", "timestamp_ntz"), 1
    ),
    **dict.fromkeys(("mod", "ifnull", "nvl"), 2),
}
TABLE_FUNCTIONS = ("variant_explode", "variant_explode_outer")
# What the functions of sqlglot raise for a call without the arguments that they need.
PARSER_ERRORS = (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError)
SUPPORTED = (
    "use only columns, Variant paths (event:user.id), literals, casts (::, cast, try_cast), "
    "comparisons, between, in, like, is null, and/or/not, + - * / %, coalesce, length, year, month, day, "
    "hour, typeof, variant_get, try_variant_get, to_json, is_variant_null, the functions of Variants, array, "
    "struct, named_struct, map, map_from_arrays and map_from_entries"
)


class Dialect(Databricks):
    """Databricks SQL in which a doubled quote in a string literal is an escaped quote, as in Spark 4.

    Constructors are parsed as any function: sqlglot would pair the arguments, and drop the last one.
    """

    class Tokenizer(Databricks.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']

    class Parser(Databricks.Parser):  # type: ignore[misc,valid-type]
        FUNCTIONS = {
            name: parse
            for name, parse in Databricks.Parser.FUNCTIONS.items()
            if name.lower() not in {"struct", *CONSTRUCTORS} - {"array"}
        }


def parse_expression(text: str) -> Expression:
    # Programs repeat a query; to parse it takes longer than to plan it.
    return _known_expression(text) if isinstance(text, str) else _parse_condition(text)


def _parse_condition(text: str) -> Expression:
    return convert_node(_parse(text, exp.Condition))


_known_expression = lru_cache(maxsize=128)(_parse_condition)


def parse_named_expressions(columns: Mapping[str, str] | Sequence[str] | None) -> dict[str, Expression]:
    if isinstance(columns, Mapping):
        for name in columns:
            check_text("a column name", name)
        return {name: parse_expression(text) for name, text in columns.items()}
    named: dict[str, Expression] = {}
    kind = "SQL expressions, or a dict of names to expressions"
    for text in () if columns is None else list_of(kind, "columns", columns):
        name, expression = _parse_named(text)
        if name in named:
            raise ExpressionError(
                f"two columns are named {name!r}: write `expression as name` for one of them", column=name
            )
        named[name] = expression
    return named


def parse_table_function(text: str) -> tuple[str, Expression, str]:
    node = _parse(text, exp.Expr)
    name = node.alias if isinstance(node, exp.Alias) else ""
    call = node.this if name and not _unknown_parts(node) else node
    function = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
    if not name or function not in TABLE_FUNCTIONS or len(call.expressions) != 1:
        raise ExpressionError(
            "lateral: expected `variant_explode(variant) as name`, or the same with variant_explode_outer, "
            f"got {_shorten(text)!r}"
        )
    return function, convert_node(call.expressions[0]), name


def parse_aggregates(aggregates: Mapping[str, str] | Sequence[str]) -> dict[str, Aggregate]:
    if isinstance(aggregates, Mapping):
        for name in aggregates:
            check_text("an aggregate name", name)
        return {name: _aggregate(_parse(text, exp.Expr)) for name, text in aggregates.items()}
    named: dict[str, Aggregate] = {}
    for text in list_of("aggregates, or a dict of names to aggregates", "aggregates", aggregates):
        node = _parse(text, exp.Expr)
        is_named = isinstance(node, exp.Alias) and not _unknown_parts(node)
        name = node.alias if is_named else text.strip()
        if name in named:
            raise ExpressionError(
                f"two aggregates are named {name!r}: write `aggregate as name` for one of them"
            )
        named[name] = _aggregate(node.this if is_named else node)
    return named


def _aggregate(node: Any) -> Aggregate:
    function = AGGREGATES.get(type(node))
    arguments = [] if function is None else [node.this, *node.expressions]
    if function is None or len(arguments) != 1 or _unknown_parts(node) - {"big_int"}:
        _reject(node, "expected count(*), count(expression), min(expression) or max(expression)")
    if function == "count" and isinstance(arguments[0], exp.Star):
        return Aggregate("count", None)
    return Aggregate(function, convert_node(arguments[0]))


def parse_sql_type(text: str) -> pa.DataType | None:
    return _arrow_type(_parse(text, exp.DataType))


def _parse_named(text: str) -> tuple[str, Expression]:
    node = _parse(text, exp.Expr)
    if isinstance(node, exp.Alias) and not _unknown_parts(node):
        return node.alias, convert_node(node.this)
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        return node.name, convert_node(node)
    return text.strip(), convert_node(node)


def _parse(text: str, into: Any) -> Any:
    if not isinstance(text, str):
        raise ArgumentTypeError(f"expected a SQL expression as a string, got {text!r}")
    if not is_unicode(text):
        raise ExpressionError(f"{_shorten(text)!r} contains an unpaired surrogate; pass valid Unicode text")
    try:
        node = sqlglot.parse_one(text, read=Dialect, into=into)
        _check_tokens(text)
    except RecursionError as error:
        raise ExpressionError(f"{_shorten(text)!r} is nested too deeply: split it") from error
    except ExpressionError:
        raise
    except PARSER_ERRORS as error:
        remedy = f"expected one of {_known_types()}" if into is exp.DataType else SUPPORTED
        raise ExpressionError(f"cannot parse {_shorten(text)!r}{_excerpt(error)}: {remedy}") from error
    _check_depth(node, text)
    return node


def _excerpt(error: Exception) -> str:
    excerpts = [details.get("highlight") for details in getattr(error, "errors", ())]
    return f" at {excerpts[0]!r}" if excerpts and excerpts[0] else ""


def _check_tokens(text: str) -> None:
    """Reject text that sqlglot accepts, but parses differently from Spark."""
    tokens = Dialect().tokenize(text)
    kinds = [token.token_type for token in tokens]
    # sqlglot parses `event:a..b` as `event:a.b`, and drops the ends of `event:a.`, `event:a[]` and `event:`.
    for pair in pairwise([*tokens, None]):
        if _is_empty_step(*pair):
            _reject_step(text, pair[1])
    # sqlglot parses `date '2026-01-01'::string` as a date.
    for before, literal, after in zip(kinds, kinds[1:], kinds[2:], strict=False):
        if before in TYPE_TOKENS and literal is TokenType.STRING and after in CAST_TOKENS:
            raise ExpressionError(
                f"{_shorten(text)!r} casts a typed literal: enclose the literal in parentheses"
            )

    for name, opening, position in zip(tokens, kinds[1:], range(2, len(kinds) + 1), strict=False):
        most = MAX_ARGUMENTS.get(name.text.lower()) if opening is TokenType.L_PAREN else None
        if most is not None and _count_arguments(kinds[position:]) > most:
            raise ExpressionError(f"{_shorten(text)!r}: {name.text} takes at most {most} argument(s)")


def _count_arguments(kinds: Sequence[TokenType]) -> int:
    """Return the number of arguments of a call; `kinds` are the tokens after its opening parenthesis."""
    depth, count = 0, 1
    for kind in kinds:
        depth += (kind in OPENING) - (kind in CLOSING)
        if depth < 0:
            break
        count += kind is TokenType.COMMA and depth == 0
    return count


def _reject_step(text: str, following: Any) -> NoReturn:
    """Raise ExpressionError for a path step that is empty or not a name; `following` is its first token."""
    name = None if following is None else UNQUOTED_NAME.match(text, following.start)
    if name is None:
        raise ExpressionError(f"{_shorten(text)!r} has an empty path step: write [''] for an empty name")
    raise ExpressionError(
        f"{_shorten(text)!r} has a path step with special characters: quote the name, ['{name[0]}']"
    )


def _is_empty_step(token: Any, following: Any) -> bool:
    if token.token_type is TokenType.L_BRACKET:
        return following is not None and following.token_type is TokenType.R_BRACKET
    if token.token_type not in STEP_TOKENS:
        return False
    if following is None:
        return True
    # Keywords of SQL can be names.
    return following.token_type not in NAME_TOKENS and re.match(r"\w", following.text) is None


def _check_depth(root: Any, text: str) -> None:
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ExpressionError(f"{_shorten(text)!r} is nested deeper than {MAX_DEPTH} levels: split it")
        for child in node.iter_expressions():
            chained = isinstance(node, exp.Connector) and type(child) is type(node)
            stack.append((child, depth if chained else depth + 1))


def convert_node(node: Any) -> Expression:
    """Return the expression of a parsed node; raises ExpressionError for one that is not supported."""
    if node is None:
        raise ExpressionError(f"a function lacks an argument: {SUPPORTED}")
    rule = RULES.get(type(node))
    if rule is None or _unknown_parts(node):
        _reject(node)
    return rule(node)


def _unknown_parts(node: Any) -> set[str]:
    """Return the parts of `node` that no rule handles: an unknown modifier must not be silently ignored."""
    return {name for name, part in node.args.items() if part} - KNOWN_PARTS


def _reject(node: Any, reason: str = SUPPORTED) -> NoReturn:
    raise ExpressionError(f"`{_shorten(_text(node))}` is not supported: {reason}")


def _text(node: Any) -> str:
    try:
        # Otherwise sqlglot logs a warning about each function that Databricks lacks.
        return str(node.sql(dialect=Dialect, unsupported_level=ErrorLevel.IGNORE))
    except PARSER_ERRORS:
        return str(node.key)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _name(node: Any) -> Expression:
    parts = _identifiers(node)
    if any(not isinstance(part, exp.Identifier) for part in parts):
        _reject(node)
    return Name(tuple(part.this for part in parts))


def _identifiers(node: Any) -> list[Any]:
    if isinstance(node, exp.Dot):
        return [*_identifiers(node.this), node.expression]
    return list(node.parts) if isinstance(node, exp.Column) else [node]


def _path(node: Any) -> Expression:
    if not node.args.get("variant_extract"):
        _reject(node)
    steps = [_step(step) for step in node.expression.expressions if not isinstance(step, exp.JSONPathRoot)]
    return _extend(convert_node(node.this), tuple(steps), node)


def _step(step: Any) -> str | int | None:
    if isinstance(step, exp.JSONPathSubscript) and isinstance(step.this, exp.JSONPathWildcard):
        return None
    if isinstance(step, exp.JSONPathKey) and isinstance(step.this, str):
        return step.this
    if isinstance(step, exp.JSONPathSubscript) and isinstance(step.this, int) and 0 <= step.this <= MAX_INDEX:
        return step.this
    raise ExpressionError(
        f"invalid path step [{step.this}]: expected a name, ['name'], or [index] from 0 to {MAX_INDEX}"
    )


def _extend(operand: Expression, steps: tuple[str | int | None, ...], node: Any) -> Expression:
    if isinstance(operand, Path) and None not in operand.path:
        return Path(operand.operand, operand.path + steps)
    if isinstance(operand, Name | Call | Path):
        return Path(operand, steps)
    _reject(node, "a Variant path must start at a column or a function")


def _bracket(node: Any) -> NoReturn:
    _reject(
        node,
        "write brackets only for a step of a Variant path, a quoted name or an index: event:items[0]['a b']",
    )


def _number(node: Any) -> Expression:
    if node.is_string:
        return Literal(pa.scalar(node.this, pa.string()))
    return _number_literal(node.this, node)


def _number_literal(text: str, node: Any) -> Expression:
    """Return a number with the type of Spark: int, bigint or decimal by size; 1.0 is decimal, 1e0 double."""
    if "e" in text.lower():
        return Literal(pa.scalar(float(text), pa.float64()))
    value = Decimal(text)
    if value == value.to_integral_value() and "." not in text:
        for bits, arrow_type in ((31, pa.int32()), (63, pa.int64())):
            if -(2**bits) <= value < 2**bits:
                return Literal(pa.scalar(int(value), arrow_type))
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits), scale)
    if precision > MAX_PRECISION:
        _reject(node, f"a decimal has at most {MAX_PRECISION} digits")
    return Literal(pa.scalar(value, pa.decimal128(precision, scale)))


def _negate(node: Any) -> Expression:
    operand = node.this
    if isinstance(operand, exp.Literal) and not operand.is_string:
        return _number_literal(f"-{operand.this}", node)
    return Call("negate", (convert_node(operand),))


def _binary(node: Any) -> Expression:
    if len(node.this) % 2:
        _reject(node, "a binary literal needs two hexadecimal digits for each byte")
    return Literal(pa.scalar(bytes.fromhex(node.this), pa.binary()))


def _cast(node: Any) -> Expression:
    return Cast(convert_node(node.this), _arrow_type(node.args["to"]), strict=type(node) is exp.Cast)


def _connect(function: str) -> Callable[[Any], Expression]:
    return lambda node: Call(function, tuple(convert_node(part) for part in node.flatten()))


def _operate(function: str) -> Callable[[Any], Expression]:
    return lambda node: Call(function, (convert_node(node.this), convert_node(node.expression)))


def _between(node: Any) -> Expression:
    value = convert_node(node.this)
    low, high = convert_node(node.args["low"]), convert_node(node.args["high"])
    return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))


def _in(node: Any) -> Expression:
    if not node.expressions:
        _reject(node, "`in` needs a list of at least one value")
    return Call("in", (convert_node(node.this), *(convert_node(option) for option in node.expressions)))


def _like(node: Any) -> Expression:
    match = _operate("like")(node)
    return Call("not", (match,)) if node.args.get("negate") else match


def _is(node: Any) -> Expression:
    value = convert_node(node.this)
    if isinstance(node.expression, exp.Null):
        return Call("is null", (value,))
    if isinstance(node.expression, exp.Boolean):
        return Call("<=>", (value, convert_node(node.expression)))
    _reject(node)


def _coalesce(node: Any) -> Expression:
    return Call("coalesce", (convert_node(node.this), *(convert_node(part) for part in node.expressions)))


def _to_json(node: Any) -> Expression:
    if node.this is None:
        _reject(node, "to_json takes one Variant")
    return Call("to_json", (convert_node(node.this),))


def _call(function: str) -> Callable[[Any], Expression]:
    return lambda node: Call(function, (convert_node(node.this),))


def _date_part(function: str) -> Callable[[Any], Expression]:
    def convert(node: Any) -> Expression:
        # sqlglot parses `year(x)` as the year of x cast to a date. `bind` checks the type of x.
        operand = node.this
        is_cast = isinstance(operand, exp.TsOrDsToDate) and not _unknown_parts(operand)
        return Call(function, (convert_node(operand.this if is_cast else operand),))

    return convert


def _function(node: Any) -> Expression:
    name, arguments = str(node.this).lower(), node.expressions
    if name in VARIANT_FUNCTIONS or (name == "is_variant_null" and len(arguments) == 1):
        return Call(name, tuple(convert_node(argument) for argument in arguments))
    if name in CONSTRUCTORS:
        return Call(name, tuple(convert_node(argument) for argument in arguments))
    if name == "struct":
        return Call("named_struct", tuple(_fields(arguments)))
    if name in TABLE_FUNCTIONS:
        _reject(node, f"it returns rows: pass lateral='{name}(…) as item'")
    if name in ("variant_get", "try_variant_get") and len(arguments) in (2, 3):
        return _variant_get(node, strict=name == "variant_get")
    _reject(node)


def _fields(arguments: Sequence[Any]) -> Iterator[Expression]:
    """Yield the name and the value of each argument of a `struct`, with the names that Spark gives them."""
    for position, argument in enumerate(arguments, 1):
        is_named = isinstance(argument, exp.Alias) and not _unknown_parts(argument)
        value = convert_node(argument.this if is_named else argument)
        name = argument.alias if is_named else _name_of(value)
        yield from (Literal(pa.scalar(name or f"col{position}")), value)


def _name_of(value: Expression) -> str | None:
    """Return the last name of a column or a path, None for another expression."""
    match value:
        case Name(parts):
            return parts[-1]
        case Path(_, path):
            return next((step for step in reversed(path) if isinstance(step, str)), None)
    return None


def _variant_get(node: Any, *, strict: bool) -> Expression:
    variant, *texts = node.expressions
    if not all(isinstance(text, exp.Literal) and text.is_string for text in texts):
        _reject(
            node, "the path and the type must be string literals: variant_get(event, '$.user.id', 'bigint')"
        )
    path = _extend(convert_node(variant), parse_pattern(texts[0].this), node)
    return Cast(path, parse_sql_type(texts[1].this), strict) if len(texts) == 2 else path


def _arrow_type(node: Any) -> pa.DataType | None:
    kind = TYPE_NAMES.get(node.this)
    if kind == "variant":
        return None
    parameters = node.expressions
    if kind in SIMPLE_TYPES and not parameters:
        return SIMPLE_TYPES[kind]
    if kind in PARAMETRIC_TYPES:
        return PARAMETRIC_TYPES[kind](node, parameters)
    raise ExpressionError(f"unknown type `{_shorten(_text(node))}`: expected one of {_known_types()}")


def _known_types() -> str:
    return ", ".join([*SIMPLE_TYPES, "decimal(p,s)", "array<…>", "struct<…>", "map<…>", "variant"])


def _decimal(node: Any, parameters: list[Any]) -> pa.DataType:
    sizes = [int(parameter.name) if parameter.name.isdecimal() else -1 for parameter in parameters]
    precision, scale = (*sizes, *(10, 0)[len(sizes) :])[:2]
    if len(sizes) > 2 or not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        _reject(node, f"decimal(p,s) requires 1 <= p <= {MAX_PRECISION} and 0 <= s <= p")
    return pa.decimal128(precision, scale)


def _array(node: Any, parameters: list[Any]) -> pa.DataType:
    if len(parameters) != 1:
        _reject(node, "an array needs one element type: array<bigint>")
    return pa.list_(pa.field("element", _inner_type(parameters[0], node)))


def _map(node: Any, parameters: list[Any]) -> pa.DataType:
    if len(parameters) != 2:
        _reject(node, "a map needs a key and a value type: map<string,bigint>")
    key, value = (_inner_type(parameter, node) for parameter in parameters)
    return pa.map_(key, value)


def _struct(node: Any, parameters: list[Any]) -> pa.DataType:
    if not all(
        isinstance(field, exp.ColumnDef) and not field.args.get("constraints") for field in parameters
    ):
        _reject(node, "a field of a struct needs a name and a type: struct<id:bigint,name:string>")
    return pa.struct(
        [pa.field(field.this.this, _inner_type(field.args["kind"], node)) for field in parameters]
    )


def _inner_type(inner: Any, node: Any) -> pa.DataType:
    arrow_type = _arrow_type(inner) if isinstance(inner, exp.DataType) else None
    if arrow_type is None:
        _reject(node, "a Variant inside another type cannot be cast: extract its parts one by one")
    return arrow_type


PARAMETRIC_TYPES: dict[str, Callable[[Any, list[Any]], pa.DataType]] = {
    "decimal": _decimal,
    "array": _array,
    "map": _map,
    "struct": _struct,
}
TYPE_NAMES: dict[Any, str] = {
    exp.DataType.Type.TINYINT: "tinyint",
    exp.DataType.Type.SMALLINT: "smallint",
    exp.DataType.Type.INT: "int",
    exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.TEXT: "string",
    exp.DataType.Type.BOOLEAN: "boolean",
    exp.DataType.Type.BINARY: "binary",
    exp.DataType.Type.DATE: "date",
    # sqlglot's name for Spark's TIMESTAMP, an instant.
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DataType.Type.DECIMAL: "decimal",
    exp.DataType.Type.ARRAY: "array",
    exp.DataType.Type.MAP: "map",
    exp.DataType.Type.STRUCT: "struct",
    exp.DataType.Type.VARIANT: "variant",
}
KNOWN_PARTS = frozenset(
    {
        *(
            "this",
            "expression",
            "expressions",
            "to",
            "safe",
            "_type",
            "negate",
            "variant_extract",
            "low",
            "high",
        ),
        *("is_string", "json_access", "table", "db", "catalog", "quoted", "alias"),
    }
)
OPERATORS: dict[type[Any], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
AGGREGATES: dict[type[Any], AggregateFunction] = {exp.Count: "count", exp.Min: "min", exp.Max: "max"}
RULES: dict[type[Any], Callable[[Any], Expression]] = {
    **{operator: _operate(function) for operator, function in OPERATORS.items()},
    exp.And: _connect("and"),
    exp.Or: _connect("or"),
    exp.Not: lambda node: Call("not", (convert_node(node.this),)),
    exp.Neg: _negate,
    exp.Paren: lambda node: convert_node(node.this),
    exp.Column: _name,
    exp.Dot: _name,
    exp.JSONExtract: _path,
    exp.Bracket: _bracket,
    exp.Literal: _number,
    exp.RawString: lambda node: Literal(pa.scalar(node.this, pa.string())),
    exp.HexString: _binary,
    exp.Boolean: lambda node: Literal(pa.scalar(node.this, pa.bool_())),
    exp.Null: lambda node: Literal(pa.scalar(None, pa.null())),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Is: _is,
    exp.Coalesce: _coalesce,
    exp.Array: lambda node: Call("array", tuple(convert_node(part) for part in node.expressions)),
    exp.JSONFormat: _to_json,
    exp.Length: _call("length"),
    exp.ParseJSON: _call("parse_json"),
    exp.Typeof: _call("typeof"),
    exp.Year: _date_part("year"),
    exp.Month: _date_part("month"),
    exp.Day: _date_part("day"),
    exp.DayOfMonth: _date_part("day"),
    exp.Hour: _call("hour"),
    exp.Anonymous: _function,
}
