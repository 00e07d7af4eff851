"""The scalar functions of SQL by name, with the semantics of Spark in ANSI mode."""

from __future__ import annotations

import pyarrow as pa

from ..._arrow import SIMPLE_TYPES
from ..tree import Cast, Expression
from .collections import COLLECTIONS
from .conditions import CONDITIONS
from .hashes import HASHES
from .moments import MOMENTS
from .numbers import NUMBERS
from .signature import Expansion, ScalarFunction, StatementMoment
from .strings import STRINGS


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
    **COLLECTIONS,
}
