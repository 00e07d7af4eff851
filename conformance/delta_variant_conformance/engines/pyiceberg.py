"""PyIceberg, by the scan of a table whose schema has the type `variant` of Iceberg v3."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyiceberg
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.typedef import Record

from ..engine import Cell, Engine, variant_cells


def start(scratch: Path) -> Engine:
    """Return the engine. It has no Variant functions, and reads Parquet files only as part of a table."""
    return Engine(name="pyiceberg", version=pyiceberg.__version__, read=_read)


def _read(file: Path, column: str) -> Sequence[Cell]:
    metadata = TableMetadataUtil.parse_obj(_table(file.parent, column, "variant"))
    scan = ArrowScan(metadata, PyArrowFileIO(), metadata.schema(), AlwaysTrue())
    return variant_cells(scan.to_table([FileScanTask(_data_file(file))]).column(column))


def _data_file(file: Path) -> DataFile:
    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=str(file),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=0,
        file_size_in_bytes=file.stat().st_size,
    )
    data_file.spec_id = 0
    return data_file


def _table(folder: Path, column: str, column_type: str) -> dict[str, Any]:
    """Return the metadata of a table of one column, which files without field ids have by its name."""
    mapping = [{"field-id": 1, "names": [column]}]
    field = {"id": 1, "name": column, "type": column_type, "required": False}
    return {
        "format-version": 3,
        "location": str(folder),
        "last-updated-ms": 0,
        "last-sequence-number": 0,
        "next-row-id": 0,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [field]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"schema.name-mapping.default": json.dumps(mapping)},
    }
