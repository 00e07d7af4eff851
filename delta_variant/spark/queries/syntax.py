"""The syntax tree of a query: the clauses of a SELECT, its sources and its names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from ...expressions.constructors import CONSTRUCTORS

CAST_TOKENS = (TokenType.DCOLON, TokenType.QDCOLON)
OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
# What the functions of sqlglot raise for a call without the arguments that they need.
PARSER_ERRORS = (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError)


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


CLAUSES_OF_ROWS = ("with_", "hint", "expressions", "from_", "joins", "where")
"""The clauses of a SELECT whose rows do not depend on each other."""
CLAUSES_OF_COLUMNS = (*CLAUSES_OF_ROWS, "laterals", "windows", "order", "limit", "offset")
"""The clauses of a SELECT whose rows do not depend on its columns."""
CLAUSES_OF_SOURCES = ("expressions", "from_", "joins", "laterals", "where", "group")
"""The clauses of a SELECT whose names are those of its sources."""
GETTERS = ("variant_get", "try_variant_get")
EXTRACTS = (exp.JSONExtract, exp.Anonymous)


def base_of(node: Any) -> Any:
    """Return the column that paths and casts extract a value from, None for other expressions."""
    if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
        return node.this if isinstance(node.this, exp.Column) else base_of(node.this)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in GETTERS and node.expressions:
        first = node.expressions[0]
        return first if isinstance(first, exp.Column) else None
    return None


def sees_outputs(node: Any) -> bool:
    while not isinstance(node.parent, exp.Select):
        node = node.parent
    return node.arg_key not in CLAUSES_OF_SOURCES


def visible_ctes(table: Any) -> dict[str, Any]:
    """Return the common table expressions that a table's name can refer to, None for recursive ones."""
    found: dict[str, Any] = {}
    below, node = table, table.parent
    within: Any = None
    while node is not None:
        if isinstance(node, exp.CTE):
            within = node
        clause = node.args.get("with_")
        if clause is not None:
            ctes = clause.expressions
            is_inside = below is clause
            before = ctes.index(within) if is_inside and within in ctes else len(ctes)
            is_recursive = clause.args.get("recursive")
            if is_recursive:
                before = len(ctes)
            # Names of inner clauses hide those of outer ones.
            found = {each.alias.lower(): None if is_recursive else each for each in ctes[:before]} | found
        below, node = node, node.parent
    return found


def is_plain_source(node: Any, *, is_versioned: bool = False) -> bool:
    """Return whether a table or a subquery is one of FROM, without a sample, a pivot and the like."""
    known = ("this", "db", "catalog", "alias", *(["version"] if is_versioned else []))
    is_source = isinstance(node.parent, exp.From | exp.Join) and isinstance(node.parent.parent, exp.Select)
    return is_source and has_only(node, known)


def branches_of(node: Any) -> tuple[list[Any], bool]:
    """Return the SELECTs of a query, and whether its set operations do not compare their rows.

    The list is empty if another clause uses the rows of them all.
    """
    if isinstance(node, exp.Select):
        return [node], True
    if type(node) in (exp.Subquery, exp.Paren) and has_only(node, ("this",)):
        return branches_of(node.this)
    if not isinstance(node, exp.SetOperation) or not has_only(
        node, ("this", "expression", "distinct", "with_")
    ):
        return [], False
    (left, is_left), (right, is_right) = branches_of(node.this), branches_of(node.expression)
    is_union = isinstance(node, exp.Union) and not node.args.get("distinct")
    return (left + right if left and right else []), is_union and is_left and is_right


def joins_columns(select: Any) -> bool:
    """Return whether a star has the columns of each source, one source after the other."""
    joins = select.args.get("joins") or []
    return not any(
        join.args.get("using") or join.args.get("method") or (join.kind or "").upper() in ("SEMI", "ANTI")
        for join in joins
    )


def is_from_a_table(select: Any) -> bool:
    """Return whether a SELECT is, or is a part of, a common table expression or a subquery in FROM."""
    node = select.parent
    while isinstance(node, exp.SetOperation) or type(node) is exp.Paren:
        node = node.parent
    return isinstance(node, exp.CTE) or (
        isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join)
    )


def has_only(node: Any, clauses: Collection[str]) -> bool:
    return not any(part for name, part in node.args.items() if name not in clauses)


def is_over_rows(node: Any) -> bool:
    """Return whether an expression of SELECT may depend on more than one row, or make several of one."""
    return any(node.find_all(exp.Window, exp.AggFunc, exp.UDTF))


class JoinedSource(NamedTuple):
    """A source of a SELECT, the condition of its join, and the sources whose rows have to meet this.

    Rows of the sources in `optional` may be NULL because of this join or one before.
    """

    name: str
    source: Any
    condition: Any
    required: frozenset[str]
    optional: frozenset[str]


def joined_sources(select: Any) -> Iterator[JoinedSource]:
    clause = select.args.get("from_")
    before = frozenset[str]()
    optional = frozenset[str]()
    if clause is not None:
        name = clause.this.alias_or_name.lower()
        yield JoinedSource(name, clause.this, None, before, optional)
        before |= {name}
    for join in select.args.get("joins") or []:
        name, side = join.this.alias_or_name.lower(), (join.side or "").upper()
        required = {
            "": (before | {name}) - optional,
            "LEFT": frozenset({name}),
            "RIGHT": before - optional,
        }.get(side, frozenset())
        if (join.kind or "").upper() in ("SEMI", "ANTI"):
            required = frozenset({name})
        # Two sources of one name cannot be told apart.
        condition = None if name in before else join.args.get("on")
        optional |= {"LEFT": {name}, "RIGHT": before, "FULL": before | {name}}.get(side, set())
        yield JoinedSource(name, join.this, condition, required, optional)
        before |= {name}


def whole_sources(select: Any, sources: Mapping[str, int | None], *, with_items: bool) -> Iterator[str]:
    """Yield the sources of which functions in a SELECT, and the SELECT `with_items`, read all columns."""
    for star in select.find_all(exp.Star):
        if isinstance(star.parent, exp.Count) or star.find_ancestor(exp.Select) is not select:
            continue
        is_item = star.parent is select or star.parent.parent is select
        if is_item and (not with_items or isinstance(select.parent, exp.Exists)):
            continue
        if isinstance(star.parent, exp.Column) and star.parent.table:
            yield star.parent.table.lower()
        else:
            yield from sources


def output_names(node: Any) -> Iterator[str]:
    """Yield the names that a column of a SELECT may get: its alias, or the last name in it."""
    if isinstance(node, exp.Alias | exp.Aliases):
        yield from ([node.alias] if isinstance(node, exp.Alias) else [each.name for each in node.aliases])
        return
    node = node.unnest()
    if isinstance(node, exp.JSONExtract):
        keys = [step.this for step in node.expression.expressions if isinstance(step, exp.JSONPathKey)]
        yield from keys[-1:]
    elif isinstance(node, exp.Column):
        yield node.name
    elif isinstance(node, exp.Cast | exp.TryCast):
        yield from output_names(node.this)
