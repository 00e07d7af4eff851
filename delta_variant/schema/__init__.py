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
    PHYSICAL_NAME,
    ColumnMappingMode,
    assign_column_mapping,
    keep_names,
    physical_name,
    physical_schema,
)
from .conforming import conform
from .indexed_columns import stats_columns
from .json_text import parse, to_json
from .merging import merge
from .partition_values import partition_value_from_string, partition_value_to_string
from .paths import FieldPath, edit_fields, edit_type, path_text, resolve, split_at_field, type_at
from .rules import check_consistent, check_new, check_partition_columns, contradictions, without_void
from .widening import check_type_changes, is_widening, types_before, widened, widenings

__all__ = [
    "PHYSICAL_NAME",
    "VARIANT",
    "VOID",
    "ArrayType",
    "ColumnMappingMode",
    "DataType",
    "FieldPath",
    "MapType",
    "PrimitiveType",
    "StructField",
    "StructType",
    "assign_column_mapping",
    "check_consistent",
    "check_new",
    "check_partition_columns",
    "check_type_changes",
    "conform",
    "contradictions",
    "describe",
    "edit_fields",
    "edit_type",
    "field_id",
    "fields_of",
    "from_arrow",
    "is_variant",
    "is_widening",
    "keep_names",
    "merge",
    "parse",
    "partition_value_from_string",
    "partition_value_to_string",
    "path_text",
    "physical_name",
    "physical_schema",
    "primitives_of",
    "resolve",
    "split_at_field",
    "stats_columns",
    "to_arrow",
    "to_arrow_type",
    "to_json",
    "type_at",
    "types_before",
    "variant_field",
    "widened",
    "widenings",
    "without_void",
]
