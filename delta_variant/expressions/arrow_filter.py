"""Reduce a filter of pyarrow to a weaker bound expression, by which files and pages can be skipped.

The nodes of a `pyarrow.compute.Expression` are not accessible in Python. Its serialized form, which pickle
uses, has all of them: names, literals with their types, and the options of functions. Its text does not:
names and values are not escaped, types are missing, and lists are truncated. Substrait lacks functions.

Where the result is only weaker, the rows of the filter itself are selected by pyarrow, so a function that is
not listed here costs time and never a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .tree import FLIPPED, NEGATED, Call, Column, Expression, Field, Literal, conjunction, output_type
from .types import Kind, kind_of

Node: TypeAlias = "_Reference | _Literal | _Function"

ENTRY = re.compile(r"(call|end|field_ref|literal|nested_field_ref|options): '(.*)'")
METADATA = "-- schema metadata --\n"

OPERATORS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}

COMPARED_AS: Mapping[Kind, frozenset[Kind]] = {
    "integer": frozenset({"integer", "decimal", "floating"}),
    "decimal": frozenset({"integer", "decimal"}),
    "floating": frozenset({"integer", "floating"}),
    "string": frozenset({"string"}),
    "binary": frozenset({"binary"}),
    "boolean": frozenset({"boolean"}),
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp"}),
    "timestamp_ntz": frozenset({"timestamp_ntz"}),
}
"""For each kind of column, the kinds of literals that pyarrow compares with it as with a literal of its type.

Decimals are compared with floats after they are rounded, and dates with timestamps by Arrow's own rules.
"""

MAX_EXACT = 2**53
"""Integers up to this one are doubles; pyarrow compares integers with doubles as doubles."""

MAX_OPTIONS = 100
"""A longer list of options is reduced to the range of its values."""

MATCHES_NULL = 0
"""The value of `null_matching_behavior` with which `is_in` matches null if the list has one."""


class _Reference(msgspec.Struct, frozen=True):
    """A column, or a field of a struct column."""

    names: tuple[str, ...]


class _Literal(msgspec.Struct, frozen=True):
    """A constant."""

    value: pa.Scalar[Any]


class _Function(msgspec.Struct, frozen=True):
    """A call of a compute function; `options` are its options by name, None if it has none."""

    name: str
    arguments: tuple[Node, ...]
    options: Mapping[str, Any] | None


class ArrowFilter(msgspec.Struct, frozen=True):
    """A filter of pyarrow over columns that are bound expressions.

    Attributes:
        columns: The names of the columns that the filter reads, among those of `outputs`.
        pruning: A bound expression that is true for each row for which the filter is true; None if there is
            no such expression, so that any row may match.
        is_exact: Whether that expression is true for no other rows.
    """

    columns: frozenset[str]
    pruning: Expression | None
    is_exact: bool = False

    @classmethod
    def of(cls, condition: pc.Expression, outputs: Mapping[str, Expression]) -> ArrowFilter:
        """Return what is known of a filter over `outputs`; at worst that it reads all of them."""
        try:
            node = _parse(condition, outputs)
        except (ValueError, RecursionError, pa.ArrowException):
            # A form of another version of pyarrow, a tree that is too deep, or one that pickle rejects.
            return cls(frozenset(outputs), None)
        read = frozenset(each.names[0] for each in _references(node))
        if not read <= outputs.keys():
            # pyarrow reports the unknown column.
            return cls(frozenset(outputs), None)
        weaker = _Weaker(outputs)
        return cls(read, weaker.of(node, negated=False), weaker.is_exact(node))


def _parse(condition: pc.Expression, outputs: Mapping[str, Expression]) -> Node:
    """Return the tree of a filter; raises ValueError if its serialized form is not as expected."""
    if any("\n" in f"{name} {output_type(each)}" for name, each in outputs.items()):
        raise ValueError("a name with a line break cannot be told from two entries")
    reduced: Any = condition.__reduce__()
    (buffer,) = reduced[1]
    batch = pa.ipc.open_file(buffer).get_batch(0)
    # Schema.metadata is a dict, in which keys are unique; the text has all entries in their order.
    text = batch.schema.to_string(truncate_metadata=False)
    entries = [ENTRY.fullmatch(line) for line in text.rpartition(METADATA)[2].split("\n")]
    remaining = iter([(each[1], each[2]) for each in entries if each is not None])
    node = _node(*next(remaining, ("", "")), remaining, batch)
    if None in entries or next(remaining, None) is not None:
        raise ValueError(f"unexpected entries of a serialized expression: {text}")
    return node


def _node(key: str, text: str, remaining: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> Node:
    match key:
        case "literal":
            return _Literal(batch.column(int(text))[0])
        case "field_ref":
            return _Reference((text,))
        case "nested_field_ref":
            return _Reference(tuple(name for _, (_, name) in zip(range(int(text)), remaining, strict=False)))
        case "call":
            return _function(text, remaining, batch)
    raise ValueError(f"unexpected entry of a serialized expression: {key}")


def _function(name: str, remaining: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> _Function:
    arguments: list[Node] = []
    options = None
    for key, text in remaining:
        if key == "end":
            break
        if key == "options":
            options = batch.column(int(text))[0]
            options = {each: options[each] for each in options}
        else:
            arguments.append(_node(key, text, remaining, batch))
    return _Function(name, tuple(arguments), options)


def _references(node: Node) -> Iterator[_Reference]:
    if isinstance(node, _Reference):
        yield node
    elif isinstance(node, _Function):
        for argument in node.arguments:
            yield from _references(argument)


class _Weaker(msgspec.Struct, frozen=True):
    """Weakens filters over columns that are bound expressions."""

    outputs: Mapping[str, Expression]

    def of(self, node: Node, *, negated: bool) -> Expression | None:
        """Return an expression that is true where a node is true, or where it is false if `negated`."""
        if not isinstance(node, _Function):
            return None
        arguments = node.arguments
        match node.name:
            case "invert":
                return self.of(arguments[0], negated=not negated)
            case "and" | "and_kleene" | "or" | "or_kleene":
                parts = [self.of(each, negated=negated) for each in arguments]
                return conjunction(*parts) if node.name.startswith("and") != negated else _any_of(parts)
            case "if_else" if not negated and _is_null(arguments[2]):
                # DuckDB writes `x in (…)` as if_else(is_valid(x), is_in(x), null).
                return conjunction(*(self.of(each, negated=False) for each in arguments[:2]))
            case "is_valid":
                return self._null_test(node, is_null=negated)
            case "is_null" if node.options is not None and node.options["nan_is_null"].as_py() is False:
                return self._null_test(node, is_null=not negated)
            case "is_in" if not negated:
                return self._member(node)
            case name if name in OPERATORS:
                return self._comparison(OPERATORS[name], arguments, negated=negated)
        return None

    def is_exact(self, node: Node) -> bool:
        """Return whether the expression for a node is true for no other rows."""
        if not isinstance(node, _Function) or self.of(node, negated=False) is None:
            return False
        match node.name:
            case "and" | "and_kleene" | "or_kleene":
                return all(map(self.is_exact, node.arguments))
            case "is_valid" | "is_null":
                return True
            case "is_in":
                options = (node.options or {})["value_set"].values
                return self._has_one_order(node) and len(options) <= MAX_OPTIONS
            case name:
                return name in OPERATORS and self._has_one_order(node)

    def _has_one_order(self, node: _Function) -> bool:
        """Return whether SQL and Arrow compare the operands alike, as they do not with NaN."""
        operands = [self._operand(each) for each in node.arguments]
        types = [output_type(each) for each in operands if each is not None]
        return all(each is not None and kind_of(each) != "floating" for each in types)

    def _operand(self, node: Node) -> Expression | None:
        """Return a column or a field of a struct as an expression, None for Variants and anything else."""
        if not isinstance(node, _Reference):
            return None
        bound = self.outputs[node.names[0]]
        for name in node.names[1:]:
            arrow_type: Any = output_type(bound)
            if not isinstance(bound, Column | Field) or not pa.types.is_struct(arrow_type):
                return None
            position = arrow_type.get_field_index(name)
            if position < 0:
                return None
            bound = Field(bound, name, arrow_type.field(position).type)
        return None if output_type(bound) is None else bound

    def _null_test(self, node: _Function, *, is_null: bool) -> Expression | None:
        operand = self._operand(node.arguments[0])
        if operand is None:
            return None
        test = Call("is null", (operand,), pa.bool_())
        return test if is_null else Call("not", (test,), pa.bool_())

    def _comparison(self, operator: str, arguments: Sequence[Node], *, negated: bool) -> Expression | None:
        left, right = arguments
        if isinstance(left, _Literal):
            left, right, operator = right, left, FLIPPED[operator]
        operand = self._operand(left)
        if operand is None or not isinstance(right, _Literal):
            return None
        literal = _literal(right.value, operand)
        # In Arrow, no comparison with NaN is true, so that its negation is.
        if literal is None or (negated and kind_of(literal.value.type) == "floating"):
            return None
        return Call(NEGATED[operator] if negated else operator, (operand, literal), pa.bool_())

    def _member(self, node: _Function) -> Expression | None:
        operand = self._operand(node.arguments[0])
        options = node.options or {}
        if operand is None or not {"value_set", "null_matching_behavior"} <= options.keys():
            return None
        values = options["value_set"].values
        if values.null_count and options["null_matching_behavior"].as_py() == MATCHES_NULL:
            return None
        literals = [_literal(value, operand) for value in values.drop_null()]
        known = [each for each in literals if each is not None]
        if not known or len(known) < len(literals):
            return None
        if len(known) <= MAX_OPTIONS:
            return Call("in", (operand, *known), pa.bool_())
        bounds = pc.min_max(pa.array([each.value.as_py() for each in known], known[0].value.type))
        least, greatest = (Literal(bounds[each]) for each in ("min", "max"))
        return conjunction(
            Call(">=", (operand, least), pa.bool_()), Call("<=", (operand, greatest), pa.bool_())
        )


def _is_null(node: Node) -> bool:
    return isinstance(node, _Literal) and not node.value.is_valid


def _any_of(parts: Sequence[Expression | None]) -> Expression | None:
    """Return the disjunction of the parts if all are known."""
    known = tuple(each for each in parts if each is not None)
    return Call("or", known, pa.bool_()) if len(known) == len(parts) else None


def _literal(value: pa.Scalar[Any], operand: Expression) -> Literal | None:
    """Return a value in the type of an operand; None unless pyarrow compares it as one of that type."""
    target = output_type(operand)
    assert target is not None
    source = _integer_kind(value.type)
    if not value.is_valid or source not in COMPARED_AS.get(kind_of(target), ()):
        return None
    if source == "floating" and kind_of(target) == "integer" and not abs(value.as_py()) < MAX_EXACT:
        return None
    try:
        exact = value.cast(target)
        is_exact = exact.cast(value.type).equals(value)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return Literal(exact) if is_exact else None


def _integer_kind(arrow_type: pa.DataType) -> Kind:
    """Return the kind of the type of a literal, which may be an unsigned integer."""
    return "integer" if pa.types.is_integer(arrow_type) else kind_of(arrow_type)
