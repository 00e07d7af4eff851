"""The native kernel: Variant bytes, Arrow columns and one Parquet file; whole batches at a time."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol, final, type_check_only

import pyarrow as pa

from ._options import DuplicateKeys, Encoding, Floats, JsonKind, Numeric, OnConflict

__all__ = [
    "Batches",
    "DataFile",
    "DataFileWriter",
    "LineSplitter",
    "Positions",
    "bound_column",
    "check_shredding_schema",
    "date_part",
    "describe_bound",
    "legacy_column",
    "filter_rows",
    "infer",
    "instant_of",
    "is_time_zone",
    "json_leaves",
    "parse_json",
    "path_key",
    "remove_path",
    "set_path",
    "shred",
    "shred_legacy",
    "split_variant",
    "to_json",
    "to_python",
    "unshred",
    "unshred_legacy",
    "validate",
    "variant_get",
]

@type_check_only
class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...

@type_check_only
class Ranges(Protocol):
    def size(self) -> int: ...
    def read(self, starts: list[int], ends: list[int], /) -> Sequence[bytes]: ...

def parse_json(
    text: pa.Array[Any], floats: Floats, duplicate_keys: DuplicateKeys
) -> tuple[pa.StructArray, list[tuple[int, int, str]]]: ...
def to_json(variants: pa.Array[Any], on_conflict: OnConflict, zone: str) -> pa.StringArray: ...
def to_python(metadata: bytes, value: bytes) -> Any: ...
def variant_get(
    variants: pa.Array[Any], path: list[str | int], target: pa.DataType, strict: bool, zone: str
) -> pa.Array[Any]: ...
def date_part(values: pa.Array[Any], part: str, zone: str) -> pa.Int32Array: ...
def is_time_zone(name: str) -> bool: ...
def instant_of(local: int, zone: str) -> int | None: ...
def shred(variants: pa.Array[Any], schema: pa.Field[Any], numeric: Numeric) -> pa.StructArray: ...
def unshred(shredded: pa.Array[Any], on_conflict: OnConflict) -> pa.StructArray: ...
def shred_legacy(variants: pa.Array[Any], schema: pa.Field[Any]) -> pa.StructArray: ...
def unshred_legacy(columns: pa.Array[Any], compat: bool) -> pa.StructArray: ...
def legacy_column(field: pa.Field[Any]) -> tuple[pa.Field[Any], pa.Field[Any] | None]: ...
def filter_rows(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch: ...
def infer(
    arrays: list[pa.Array[Any]], max_leaves: int, max_depth: int, spark_compatible: bool
) -> pa.Field[Any]: ...
def check_shredding_schema(schema: pa.Field[Any]) -> pa.Field[Any]: ...
def split_variant(bytes: bytes) -> tuple[bytes, bytes]: ...  # noqa: A002 - the name in the module
def json_leaves(texts: pa.Array[Any], paths: list[tuple[list[str], JsonKind]]) -> list[pa.StringArray]: ...
def bound_column(texts: pa.Array[Any], key: str, target: pa.DataType) -> pa.Array[Any]: ...
def describe_bound(
    bytes: bytes,  # noqa: A002 - the name in the module
) -> tuple[bool, bytes, list[tuple[str, str, int | None, str]] | None]: ...
def path_key(names: list[str]) -> str: ...
def remove_path(variants: pa.Array[Any], path: list[str | int]) -> pa.StructArray: ...
def set_path(variants: pa.Array[Any], path: list[str | int], values: pa.Array[Any]) -> pa.StructArray: ...
def validate(variants: pa.Array[Any]) -> None: ...

@final
class LineSplitter:
    def __new__(cls, format: str, max_bytes: int) -> LineSplitter: ...  # noqa: A002 - the name in the module
    def feed(self, piece: bytes) -> tuple[pa.BinaryArray, Positions]: ...
    def finish(self) -> tuple[pa.BinaryArray, Positions]: ...

@final
class Positions:
    @property
    def oversized(self) -> list[int]: ...
    def locate(self, index: int, before: bytes) -> tuple[int, int] | None: ...

@final
class DataFileWriter:
    def __new__(
        cls,
        place: str | PathLike[str] | Sink,
        schema: pa.Schema,
        encodings: Sequence[Encoding],
        *,
        numeric: Numeric,
        floats: Floats,
        duplicate_keys: DuplicateKeys,
        on_invalid: str,
        annotate: bool,
        compression: str,
        row_group_bytes: int,
    ) -> DataFileWriter: ...
    def write(self, batch: pa.RecordBatch) -> list[tuple[int, int, int, str]]: ...
    @property
    def bytes_written(self) -> int: ...
    def close(self, max_stats_paths: int) -> dict[str, Any]: ...

@final
class DataFile:
    def __new__(cls, place: str | PathLike[str] | Ranges, name: str) -> DataFile: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def schema(self) -> pa.Schema: ...
    def inspect(self) -> dict[str, Any]: ...
    @property
    def bytes_read(self) -> int: ...
    def units(
        self,
        inputs: list[tuple[list[str], list[str | int] | None, pa.DataType]],
        row_groups: list[int] | None = None,
    ) -> tuple[list[tuple[int, int]], list[list[pa.Array[Any]]]]: ...
    def bounds(self, variants: list[list[str]], max_stats_paths: int) -> list[Any]: ...
    def check_schema(self, column: list[str]) -> list[tuple[str, str, str]]: ...
    def check_rows(
        self,
        column: list[str],
        paths: list[tuple[str, list[str]]],
        least: bytes | None,
        greatest: bytes | None,
        deleted: bytes | None = None,
    ) -> tuple[int, list[tuple[str, str, int, int, str]], list[dict[str, Any]]]: ...
    def read(
        self,
        projections: list[tuple[list[str], tuple[str, list[str | int], bool, str] | None, pa.Field[Any]]],
        rows: list[tuple[int, int]] | None,
        on_conflict: OnConflict,
        deleted: bytes | None = None,
        legacy: str | None = None,
    ) -> Batches: ...

@final
class Batches:
    def __iter__(self) -> Batches: ...
    def __next__(self) -> pa.RecordBatch: ...
