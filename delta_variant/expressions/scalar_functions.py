"""The scalar functions of SQL by name: their arguments, their types, and how they are evaluated."""

from __future__ import annotations

import pyarrow as pa

from .._arrow import SIMPLE_TYPES
from .scalars.conditions import CONDITIONS
from .scalars.hashes import HASHES
from .scalars.moments import MOMENTS
from .scalars.numbers import NUMBERS
from .scalars.signature import Expansion, ScalarFunction, StatementMoment
from .scalars.strings import STRINGS
from .tree import Cast, Expression


def _cast_to(target: pa.DataType) -> Expansion:
    def cast(value: Expression) -> Expression:
        return Cast(value, target, strict=True)

    return Expansion(cast, 1, 1)


CASTS = {name: _cast_to(target) for name, target in {**SIMPLE_TYPES, "decimal": pa.decimal128(10, 0)}.items()}
SCALAR_FUNCTIONS: dict[str, ScalarFunction | Expansion | StatementMoment] = {
    **CASTS,
    **CONDITIONS,
    **STRINGS,
    **NUMBERS,
    **MOMENTS,
    **HASHES,
}
