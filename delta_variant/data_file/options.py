"""Options for writing data files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from .._checks import check_option, is_number, to_integer
from .._options import DuplicateKeys, Floats, Numeric
from ..errors import ArgumentTypeError
from ..protocol.statistics import Path
from ..variant.shredding import ShreddingSchema

__all__ = [
    "DEFAULT_TARGET_FILE_SIZE",
    "MAX_STATS_PATHS",
    "ROW_GROUP_BYTES",
    "Compression",
    "OnInvalid",
    "Shredding",
    "WriteOptions",
]

Shredding: TypeAlias = "ShreddingSchema | Literal['infer'] | None"
"""A schema for all Variant columns, one that is inferred from the first rows of each file, or None."""

OnInvalid: TypeAlias = Literal["error", "reject", "null"]
Compression: TypeAlias = Literal["zstd", "snappy", "gzip", "lz4", "none"]

MAX_STATS_PATHS = 32
SAMPLE_BYTES = 16 << 20
"""Size in bytes of the first rows of a file, from which its shredding schema is inferred."""

DEFAULT_TARGET_FILE_SIZE = 128 << 20
"""Size in bytes at which a writer starts a new data file."""

ROW_GROUP_BYTES = 16 << 20
"""Size in bytes at which a data file starts a new row group."""


@dataclass(frozen=True)
class WriteOptions:
    """How data files are written; `shredding` may also map the path of each Variant column to its schema."""

    shredding: Shredding | Mapping[Path, ShreddingSchema] = "infer"
    spark_compatible: bool = True
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE
    compression: Compression = "zstd"
    annotate: bool = True
    numeric: Numeric = "value"
    floats: Floats = "decimal"
    duplicate_keys: DuplicateKeys = "error"
    on_invalid: OnInvalid = "error"
    max_stats_paths: int = MAX_STATS_PATHS
    sample_bytes: int = SAMPLE_BYTES

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid option."""
        if isinstance(self.shredding, Mapping):
            _check_schemas(self.shredding)
        elif not isinstance(self.shredding, ShreddingSchema):
            check_option("shredding", self.shredding, ("infer", None))
        check_option("compression", self.compression, get_args(Compression))
        check_option("numeric", self.numeric, get_args(Numeric))
        check_option("floats", self.floats, get_args(Floats))
        check_option("duplicate_keys", self.duplicate_keys, get_args(DuplicateKeys))
        check_option("on_invalid", self.on_invalid, get_args(OnInvalid))
        size = self.target_file_size
        if not is_number(size) or not size >= 1:
            error = ValueError if is_number(size) else ArgumentTypeError
            raise error(f"target_file_size: expected a number of bytes of at least 1, got {size!r}")
        to_integer("max_variant_stats_paths", self.max_stats_paths, 0)


def _check_schemas(shredding: Mapping[Path, ShreddingSchema]) -> None:
    if not all(isinstance(schema, ShreddingSchema) for schema in shredding.values()):
        got = f"shredding: expected a ShreddingSchema, got {dict(shredding)!r}"
        raise ArgumentTypeError(f"{got}; build one with ShreddingSchema.of")
