"""Options for writing data files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, TypeAlias, get_args

from .._checks import check_option, check_path, is_number, to_integer
from .._options import Compression, DuplicateKeys, Floats, Numeric, PageVersion
from ..errors import ArgumentTypeError
from ..protocol.statistics import Path
from ..variant.shredding import ShreddingSchema

Shredding: TypeAlias = "ShreddingSchema | Mapping[str, ShreddingSchema] | Literal['infer'] | None"
"""How Variant columns are shredded: by one schema, by a schema for each named column, by schemas that are
inferred from the first rows of each file (`"infer"`, also for columns without a name in the mapping), or not
at all (None)."""

OnInvalid: TypeAlias = Literal["error", "reject", "null"]
ResidualRows: TypeAlias = Literal["separate", "inline"]

Compatibility: TypeAlias = Literal["unshredded"] | None
"""Readers without support of shredding and of the annotation VARIANT, or None."""

MAX_STATS_PATHS = 32
MAX_STATS_BYTES = 8 << 10
"""Length of the bounds of a Variant column in the log: 32 paths with names and texts of usual length."""

SAMPLE_BYTES = 16 << 20
"""Size in bytes of the first rows of a file, from which its shredding schema is inferred."""

DEFAULT_COMPRESSION: Compression = "zstd"

DEFAULT_TARGET_FILE_SIZE = 128 << 20
"""Size in bytes at which a writer starts a new data file."""

ROW_GROUP_BYTES = 32 << 20
"""Size in bytes at which a data file starts a new row group."""


@dataclass(frozen=True)
class FileOptions:
    """How an operation writes new data files.

    Attributes:
        target_file_size: The approximate size of new files in bytes, 128 MiB by default.
        compression: The compression of new files: `"zstd"`, `"snappy"`, `"gzip"`, `"lz4"` or `"none"`. None,
            the default, is that of the table property `delta.parquet.compression.codec`, or zstd. Without
            both, an update, delete or merge copies pages with the compression that they have.
        numeric: `"value"`, the default, shreds exact numbers by value, so that an integer may be read back as
            an equal decimal. `"strict"` only shreds numbers that have the type of the shredded column, so
            that all Variants keep their types. Rows that an update, delete or merge copies are shredded as
            before.
        annotate: Whether Variant columns get the Parquet logical type VARIANT. True by default. Set False for
            readers that do not support it, such as Spark 4.0.
        compatibility: `"unshredded"` writes what Polars and deltalake open, without shredding and without
            the annotation. A new table remembers it in the property `deltaVariant.compatibility`, which
            later appends, rewrites and optimizations follow, also those of Spark tasks. None, the default,
            follows the property of the table.
        spark_compatible: Whether to infer only shredding schemas with types that Spark reads, which excludes
            time, timestamps in nanoseconds and UUID. True by default.
        max_variant_stats_paths: The maximum number of paths of each Variant column with bounds in the
            statistics of a file, 32 by default.
        max_variant_stats_bytes: The maximum number of bytes of these bounds in the log, 8 KiB by default for
            each Variant column of a file. The most filled paths are kept.
        residual_rows: Where to write residual rows: rows with a value of another type than the shredded
            column of its path, or with fields that have no column. `"separate"`, the default, writes them to
            files of their own, so that the paths of all other files have bounds and are as fast as typed
            columns in other engines. They stay in a small file, and in a file with more than a quarter of
            such rows. `"inline"` keeps the order of the rows.

    Raises:
        ArgumentTypeError: An option has the wrong type.
        ValueError: An option has an invalid value.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import FileOptions, write_table
        >>> files = FileOptions(compression="snappy", target_file_size=64 << 20)
        >>> result = write_table("events", pa.table({"id": [1]}), files=files)
        >>> result.files[0].path.endswith(".snappy.parquet")
        True
    """

    target_file_size: int = DEFAULT_TARGET_FILE_SIZE
    compression: Compression | None = None
    numeric: Numeric = "value"
    annotate: bool = True
    compatibility: Compatibility = None
    spark_compatible: bool = True
    max_variant_stats_paths: int = MAX_STATS_PATHS
    max_variant_stats_bytes: int = MAX_STATS_BYTES
    residual_rows: ResidualRows = "separate"

    def __post_init__(self) -> None:
        """Raise ArgumentTypeError or ValueError for an invalid option."""
        size = self.target_file_size
        if not is_number(size) or not size >= 1:
            error = ValueError if is_number(size) else ArgumentTypeError
            raise error(f"target_file_size: expected a number of bytes of at least 1, got {size!r}")
        check_option("compression", self.compression, (*get_args(Compression), None))
        check_option("numeric", self.numeric, get_args(Numeric))
        check_option("annotate", self.annotate, (True, False))
        check_option("compatibility", self.compatibility, ("unshredded", None))
        check_option("spark_compatible", self.spark_compatible, (True, False))
        to_integer("max_variant_stats_paths", self.max_variant_stats_paths, 0)
        to_integer("max_variant_stats_bytes", self.max_variant_stats_bytes, 0)
        check_option("residual_rows", self.residual_rows, get_args(ResidualRows))

    @property
    def codec(self) -> Compression:
        """Return the compression of new files."""
        return self.compression or DEFAULT_COMPRESSION


@dataclass(frozen=True)
class JsonOptions:
    """How JSON text becomes Variants, and what happens to text that is not JSON.

    Attributes:
        on_invalid: What to do with invalid JSON: `"error"`, the default, raises InvalidJsonError, `"reject"`
            omits the row and appends it to `rejects`, `"null"` stores SQL NULL.
        rejects: The path of the file to which `on_invalid="reject"` appends rejected values as JSON lines,
            with location, reason and, from a column of data, the other columns of the row. None by default.
            On Spark it is a folder, in any store that `storage_options` open.
        floats: How JSON numbers with a fraction or exponent are stored: `"decimal"`, the default, as decimals
            where they fit, `"double"` always as doubles.
        duplicate_keys: What to do with duplicate keys of a JSON object: `"error"`, the default, treats them
            as invalid JSON, `"last"` keeps the last value.

    Raises:
        ArgumentTypeError: An option has the wrong type.
        ValueError: An option has an invalid value, or only one of `rejects` and `on_invalid="reject"` is set.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import JsonOptions, write_table
        >>> rows = pa.table({"event": ['{"n": 1}', "{"]})
        >>> nulls = JsonOptions(on_invalid="null")
        >>> write_table("events", rows, variant_columns=["event"], json=nulls).invalid
        1
    """

    on_invalid: OnInvalid = "error"
    rejects: str | PathLike[str] | None = None
    floats: Floats = "decimal"
    duplicate_keys: DuplicateKeys = "error"

    def __post_init__(self) -> None:
        """Raise ArgumentTypeError or ValueError for an invalid option."""
        check_option("on_invalid", self.on_invalid, get_args(OnInvalid))
        if (self.on_invalid == "reject") != (self.rejects is not None):
            raise ValueError("rejects requires on_invalid='reject': pass both, or neither")
        if self.rejects is not None:
            check_path("rejects", self.rejects)
        check_option("floats", self.floats, get_args(Floats))
        check_option("duplicate_keys", self.duplicate_keys, get_args(DuplicateKeys))


@dataclass(frozen=True)
class WriteOptions:
    """How data files are written.

    `shredding` may also map the path of each Variant column to its schema. `schemas` has the path of each
    column whose schema is not inferred. With `is_residual`, all rows are residual rows of other files, and
    are not separated again.
    """

    shredding: ShreddingSchema | Mapping[Any, ShreddingSchema] | Literal["infer"] | None = "infer"
    files: FileOptions = FileOptions()
    json: JsonOptions = JsonOptions()
    sample_bytes: int = SAMPLE_BYTES
    is_residual: bool = False
    page_version: PageVersion = 1
    schemas: Mapping[Path, ShreddingSchema] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ArgumentTypeError or ValueError for an invalid option."""
        if isinstance(self.shredding, Mapping):
            if not all(isinstance(schema, ShreddingSchema) for schema in self.shredding.values()):
                got = f"shredding: expected a ShreddingSchema, got {dict(self.shredding)!r}"
                raise ArgumentTypeError(f"{got}; build one with ShreddingSchema.of")
        elif not isinstance(self.shredding, ShreddingSchema):
            check_option("shredding", self.shredding, ("infer", None))

    @property
    def separates(self) -> bool:
        """Return whether residual rows are separated; files without shredding have none."""
        is_separate = self.files.residual_rows == "separate" and not self.is_residual
        return is_separate and self.shredding is not None
