"""The schema of a table: its JSON, its Arrow form, and the rules that a schema and new data must keep."""

from ..data_types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    describe,
    fields_of,
    primitives_of,
)
from .arrow import field_id, from_arrow, is_variant, to_arrow, to_arrow_type, variant_field
from .column_mapping import (
    ColumnMappingMode,
    assign_column_mapping,
    physical_name,
    physical_schema,
)
from .conforming import conform
from .indexed_columns import stats_columns
from .json_text import parse, to_json
from .merging import merge
from .partition_values import partition_value_from_string, partition_value_to_string
from .rules import check_new, check_partition_columns, check_variants

__all__ = [
    "VARIANT",
    "VOID",
    "ArrayType",
    "ColumnMappingMode",
    "DataType",
    "MapType",
    "PrimitiveType",
    "StructField",
    "StructType",
    "assign_column_mapping",
    "check_new",
    "check_partition_columns",
    "check_variants",
    "conform",
    "describe",
    "field_id",
    "fields_of",
    "from_arrow",
    "is_variant",
    "merge",
    "parse",
    "partition_value_from_string",
    "partition_value_to_string",
    "physical_name",
    "physical_schema",
    "primitives_of",
    "stats_columns",
    "to_arrow",
    "to_arrow_type",
    "to_json",
    "variant_field",
]
