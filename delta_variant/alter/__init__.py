"""Altering a table: its properties, columns and constraints, one commit each; no data file is touched."""

from .columns import ColumnPath, Columns, add_columns, drop_column, rename_column
from .constraints import add_constraint, drop_constraint
from .table_properties import set_properties, unset_properties
from .type_change import change_type

__all__ = [
    "ColumnPath",
    "Columns",
    "add_columns",
    "add_constraint",
    "change_type",
    "drop_column",
    "drop_constraint",
    "rename_column",
    "set_properties",
    "unset_properties",
]
