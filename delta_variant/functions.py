"""Functions over arrays of Variants, with the names of Spark: `import delta_variant.functions as F`.

SQL text (`columns`, `where`, the values of `update`) has the same functions for columns and paths of a table.
"""

from __future__ import annotations

from .expressions.variant_get import try_variant_get, variant_get
from .variant.changes import (
    try_variant_array_append,
    try_variant_insert,
    try_variant_set,
    variant_array_append,
    variant_delete,
    variant_insert,
    variant_set,
    variant_strip_nulls,
)
from .variant.constructors import array, create_map, named_struct
from .variant.functions import (
    is_valid_variant,
    is_variant_null,
    schema_of_variant,
    schema_of_variant_agg,
    to_variant_object,
    try_parse_json,
    variant_array_length,
    variant_contains,
    variant_explode,
    variant_explode_outer,
    variant_keys,
    variant_sort_key,
)
from .variant.values import parse_json, to_json

__all__ = [
    "array",
    "create_map",
    "is_valid_variant",
    "is_variant_null",
    "named_struct",
    "parse_json",
    "schema_of_variant",
    "schema_of_variant_agg",
    "to_json",
    "to_variant_object",
    "try_parse_json",
    "try_variant_array_append",
    "try_variant_get",
    "try_variant_insert",
    "try_variant_set",
    "variant_array_append",
    "variant_array_length",
    "variant_contains",
    "variant_delete",
    "variant_explode",
    "variant_explode_outer",
    "variant_get",
    "variant_insert",
    "variant_keys",
    "variant_set",
    "variant_sort_key",
    "variant_strip_nulls",
]
