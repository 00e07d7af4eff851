"""The functions that an expression can call by name, and the numbers of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from .._checks import nearest
from ..variant.paths import parse_pattern
from .lexer import GrammarError
from .scalars import SCALAR_FUNCTIONS
from .tree import ELEMENT, TRIED, Call, Cast, Expression, Literal, Path
from .types import type_of_text
from .variant_calls import CONSTRUCTORS, VARIANT_FUNCTIONS

TABLE_FUNCTIONS = ("variant_explode", "variant_explode_outer")
AGGREGATES = ("count", "max", "min")
# They have grammars of their own.
NOT_BY_NAME = frozenset({"case", ELEMENT})

Build: TypeAlias = Callable[[str, Sequence[Expression]], Expression]
"""Returns a call by its name and arguments, or raises ValueError with the reason."""


class Function(msgspec.Struct, frozen=True):
    """A function by the name in its call; `build` makes a tree of its `least` to `most` arguments."""

    name: str
    build: Build
    least: int
    most: int | None

    def call(self, arguments: Sequence[Expression], position: int) -> Expression:
        """Return a call at a position; raises GrammarError for wrong arguments."""
        if len(arguments) < self.least or (self.most is not None and len(arguments) > self.most):
            raise GrammarError(position, f"`{self.name}` takes {self._count()}, got {len(arguments)}")
        try:
            return self.build(self.name, arguments)
        except ValueError as error:
            raise GrammarError(position, str(error)) from None

    def _count(self) -> str:
        if self.most is None:
            return f"{self.least} or more arguments"
        if self.least != self.most:
            return f"{self.least} to {self.most} arguments"
        return f"{self.least} argument{'s' if self.least != 1 else ''}"


def find_function(name: str, position: int) -> Function:
    """Return the function of a name in lower case; raises GrammarError if there is no such function."""
    scalar = SCALAR_FUNCTIONS.get(name)
    if scalar is not None and name not in NOT_BY_NAME:
        return Function(name, _named, scalar.min_arguments, scalar.max_arguments)
    if name in VARIANT_FUNCTIONS or name in CONSTRUCTORS:
        # `bind` checks their arguments.
        return Function(name, _named, 0, None)
    if name in FUNCTIONS:
        return Function(name, *FUNCTIONS[name])
    raise GrammarError(position, f"the function `{name}` is not supported", _remedy(name))


def _remedy(name: str) -> str:
    if name in TABLE_FUNCTIONS:
        return f"it returns rows: pass lateral='{name}(…) as item'"
    if name in AGGREGATES:
        return "pass it to `Table.aggregate`, or to `dv.sql`, which is `delta-variant sql` in a shell"
    if name == "input_file_name":
        return "use _metadata.file_path, the file of a row"
    close = nearest(name, (*SCALAR_FUNCTIONS, *VARIANT_FUNCTIONS, *CONSTRUCTORS, *FUNCTIONS))
    hint = "" if close is None else f"did you mean {close}? "
    return (
        f"{hint}docs/reference/sql.md has the functions; `dv.sql` (`delta-variant sql` in a shell) also has "
        "aggregates and window functions, and DuckDB and Polars query a scan"
    )


def extend(operand: Expression, steps: tuple[str | int | None, ...]) -> Expression:
    """Return the path of more steps into an expression."""
    if isinstance(operand, Path) and None not in operand.path:
        return Path(operand.operand, operand.path + steps)
    return Path(operand, steps)


def _named(name: str, arguments: Sequence[Expression]) -> Expression:
    return Call(name, tuple(arguments))


def _variant_get(name: str, arguments: Sequence[Expression]) -> Expression:
    variant, *constants = arguments
    values = [each.value.as_py() for each in constants if isinstance(each, Literal)]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(constants):
        raise ValueError(
            "the path and the type must be string literals: variant_get(event, '$.user.id', 'bigint')"
        )
    path = extend(variant, parse_pattern(texts[0]))
    return Cast(path, type_of_text(texts[1]), name == "variant_get") if len(texts) == 2 else path


FUNCTIONS: dict[str, tuple[Build, int, int | None]] = {
    "coalesce": (_named, 1, None),
    "like": (_named, 2, 3),
    **dict.fromkeys(("pmod", *TRIED), (_named, 2, 2)),
    **dict.fromkeys(("typeof", "to_json", "is_variant_null"), (_named, 1, 1)),
    **dict.fromkeys(("variant_get", "try_variant_get"), (_variant_get, 2, 3)),
}
"""The functions that no other table has."""
