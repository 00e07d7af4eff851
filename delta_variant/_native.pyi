"""The native kernel: Variant bytes, Arrow columns and one Parquet file, whole batches at a time.

Every function releases the GIL while it works. Errors are classes of `delta_variant.errors` and carry the
facts that the kernel knows: `row` (of the array or file, from 0), `column`, `path` (a normalized path, RFC
9535), `line` and `file`. A `Variant array` is a struct of `metadata` and `value`, both binary, and of
`typed_value` where it is shredded. The types of options are those of `_options.py`; another value raises
`SchemaError`.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias, TypedDict, final, type_check_only

import pyarrow as pa

from ._options import (
    Change,
    DuplicateKeys,
    Encoding,
    Floats,
    JsonKind,
    Numeric,
    OnConflict,
    PageVersion,
    ViewColumn,
)

__all__ = [
    "END_BYTES",
    "MAX_DEPTH",
    "MAX_LEAVES",
    "Batches",
    "ColumnCheck",
    "DataFile",
    "DataFileWriter",
    "InvalidValue",
    "LeafReport",
    "LineSplitter",
    "MergedSchema",
    "PathBound",
    "Positions",
    "RowViolation",
    "SchemaViolation",
    "ShreddedPath",
    "StatisticsEntry",
    "TableColumns",
    "add_deleted_rows",
    "annotate_variants",
    "apply_function",
    "are_valid",
    "array_lengths",
    "bound_column",
    "canonical",
    "change_path",
    "check_shredding_schema",
    "contains_variants",
    "date_part",
    "delete_paths",
    "describe_bound",
    "explode_variants",
    "filter_rows",
    "from_python",
    "infer",
    "instant_of",
    "is_time_zone",
    "json_leaves",
    "legacy_column",
    "matches_of",
    "object_keys",
    "parse_json",
    "remove_path",
    "replace_rows",
    "schema_of_variants",
    "set_path",
    "shred",
    "shred_legacy",
    "sort_keys",
    "split_variant",
    "strip_nulls",
    "subtract_deleted_rows",
    "to_json",
    "to_python",
    "to_python_list",
    "unshred",
    "unshred_legacy",
    "validate",
    "variant_get",
    "variants_of",
]

MAX_LEAVES: int
"""The most leaf columns of an inferred shredding schema, by default."""

MAX_DEPTH: int
"""How deep an inferred shredding schema nests, by default."""

END_BYTES: int
"""How many bytes `DataFile` reads from the end of a file first: most footers and page indexes fit."""

# Protocols that Python objects implement for the kernel.

@type_check_only
class Sink(Protocol):
    """A file that is written to a store. The kernel buffers 8 MiB for each call."""

    def write(self, data: bytes, /) -> object:
        """Append `data`."""

@type_check_only
class Ranges(Protocol):
    """A file that is read from a store."""

    def size(self) -> int:
        """Return the length of the file in bytes."""

    def read(self, starts: list[int], ends: list[int], /) -> Sequence[bytes]:
        """Return the bytes of each range `starts[i]:ends[i]`, in order."""

# JSON text.

@final
class InvalidValue:
    """A value that is not valid JSON."""

    @property
    def row(self) -> int:
        """The row in the array or batch, from 0."""
    @property
    def column(self) -> int:
        """The position of the column in the batch; 0 for an array."""
    @property
    def offset(self) -> int:
        """The byte of the text at which it stops being JSON, from 0."""
    @property
    def message(self) -> str:
        """Why the text is not JSON."""
    @property
    def is_duplicate(self) -> bool:
        """Whether an object has two fields of one name, which `duplicate_keys="last"` accepts."""

def parse_json(
    text: pa.Array[Any], floats: Floats, duplicate_keys: DuplicateKeys
) -> tuple[pa.StructArray, list[InvalidValue]]:
    """Parse JSON text, strings or binary of UTF-8, on all threads.

    Returns:
        A Variant array, null where the text is null or not valid JSON, and the values that are not valid.
    """

def to_json(variants: pa.Array[Any], on_conflict: OnConflict, zone: str) -> pa.StringArray:
    """Return Variants as JSON text as Spark's `to_json` prints it, with timestamps as local times in `zone`.

    Raises MalformedVariantError and ConflictingValueError, with `row`, and SchemaError for 2 GiB of text or
    more.
    """

def json_leaves(texts: pa.Array[Any], paths: list[tuple[list[str], JsonKind]]) -> list[pa.StringArray]:
    """Return one column for each of `paths`, which differ: the value at the names in each JSON text.

    A number is its digits. Null stands for a missing value, one of another kind, and text that is not JSON.
    """

@final
class LineSplitter:
    """Splits the bytes of one JSON file into the texts of its values.

    Holds at most one value of `max_bytes`, or 1 MiB until the format is known. It cannot be used after an
    error.
    """

    def __new__(
        cls,
        format: str,  # noqa: A002 - the name in the module
        max_bytes: int,
        records: list[str] | None = None,
    ) -> LineSplitter:
        """Start a file in `format`: "lines", "array", "documents" or "auto".

        Values over `max_bytes` bytes are skipped. With `records`, the names of a path, the values are the
        elements of the array at the path in each document, whatever the format is.
        """

    def feed(self, piece: bytes) -> tuple[pa.BinaryArray, Positions]:
        """Return the texts and positions of the values that end in `piece`, the next bytes of the file.

        Raises InvalidJsonError, with `line`, where the commas and brackets around the elements of an array
        are wrong, or a document lacks the array. The texts themselves are not checked.
        """

    def finish(self) -> tuple[pa.BinaryArray, Positions]:
        """Return the value that the end of the file completes, if any, as `feed` does."""

@final
class Positions:
    """Where the values of a batch are in their file."""

    @property
    def oversized(self) -> list[int]:
        """The values that are longer than allowed, in ascending order. Their text is empty."""

    def locate(self, index: int, before: bytes) -> tuple[int, int] | None:
        """Return the line and the column in bytes, both from 1, of the byte that follows `before`.

        `before` are the first bytes of the text of the value `index`. Return None for an unknown index.
        """

# Variant values.

def to_python(metadata: bytes, value: bytes) -> Any:
    """Return one Variant as Python objects: dict, list, str, int, float, Decimal, datetime, UUID and so on.

    Raises MalformedVariantError, and CastError for a value that Python cannot represent, such as nanoseconds.
    """

def from_python(objects: list[Any], nulls_are_variants: bool) -> pa.StructArray:
    """Return Python objects as a Variant array; None is null, or Variant null if `nulls_are_variants`.

    Raises ArgumentTypeError for an object of another type, and CastError for a number that no Variant can
    represent, both with `row`.
    """

def canonical(metadata: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return metadata and value in the one form that equal Variants share. Raises MalformedVariantError."""

def variants_of(column: pa.Array[Any]) -> pa.StructArray:
    """Return a column of any type as Variants; structs and maps become objects, lists arrays.

    Null stays null, and is Variant null within a value. Raises SchemaError for a type without a counterpart.
    """

def to_python_list(variants: pa.Array[Any]) -> list[Any]:
    """Return each row of a Variant array as `to_python` does, None for null.

    Raises MalformedVariantError, CastError and ConflictingValueError, with `row`.
    """

def variant_get(
    variants: pa.Array[Any], path: list[str | int], target: pa.DataType, strict: bool, zone: str
) -> pa.Array[Any]:
    """Return the values at `path` cast to `target` by the rules of Spark's `variant_get`.

    A missing value and Variant null are null. `zone` is the time zone of local times. If `strict`, a value
    without a cast raises CastError, with `row` and `path`; otherwise it is null.
    """

def change_path(
    variants: pa.Array[Any], path: list[str | int], values: pa.Array[Any], change: Change, strict: bool
) -> pa.StructArray:
    """Return the Variants with `values`, Variants of the same length, at `path`; null where one of both is.

    A new field or element is inserted, set (and created where it is missing), replaced (where it exists), or
    appended to the array at the path. A step that meets a value of another kind, and a field that exists
    where one is inserted, raises VariantPathError, with `row` and `path`, if `strict`, else it gives null.
    """

def delete_paths(variants: pa.Array[Any], paths: list[list[str | int]]) -> pa.StructArray:
    """Return the Variants without the values at `paths`, removed one after the other where they exist."""

def strip_nulls(variants: pa.Array[Any], arrays: bool) -> pa.StructArray:
    """Return the Variants without fields, and with `arrays` elements, that are Variant null at any depth."""

def explode_variants(variants: pa.Array[Any], outer: bool) -> pa.RecordBatch:
    """Return `row` (int64), `pos` (int32), `key` (string) and `value` (Variant) of each field and element.

    If `outer`, a row without fields and elements has one of nulls.
    """

def matches_of(variants: pa.Array[Any], path: list[str | int | None]) -> pa.StructArray:
    """Return an array of the values at `path` for each Variant, in which None is a wildcard."""

def schema_of_variants(variants: pa.Array[Any]) -> pa.StringArray:
    """Return the type of each Variant as Spark's `schema_of_variant` writes it."""

@final
class MergedSchema:
    """The type that includes all Variants that were added; `str()` returns it as text."""

    def __new__(cls) -> MergedSchema:
        """Start without Variants."""

    def add(self, variants: pa.Array[Any]) -> None:
        """Add the Variants of an array. Raises MalformedVariantError, with `row`, and then adds none."""

def sort_keys(variants: pa.Array[Any]) -> pa.BinaryArray:
    """Return a key of each Variant: bytes that are equal for equal values and in the order of the values."""

def contains_variants(variants: pa.Array[Any], values: pa.Array[Any]) -> pa.BooleanArray:
    """Return whether each Variant contains the value in the same row; null if either is null."""

def array_lengths(variants: pa.Array[Any]) -> pa.Int32Array:
    """Return the number of elements of each array, null for every other value."""

def object_keys(variants: pa.Array[Any]) -> pa.ListArray[Any]:
    """Return the names of the fields of each object in ascending order, null for every other value."""

def are_valid(variants: pa.Array[Any]) -> pa.BooleanArray:
    """Return whether the bytes of each row are a Variant to the last nested value; null stays null."""

def set_path(variants: pa.Array[Any], path: list[str | int], values: pa.Array[Any]) -> pa.StructArray:
    """Return the Variants with `values`, scalars or Variants of the same length, set at `path`.

    Null becomes Variant null. Missing objects on the path are created. Raises VariantPathError, with `row`
    and `path`, for a step that meets a value of another kind or an index out of range.
    """

def remove_path(variants: pa.Array[Any], path: list[str | int]) -> pa.StructArray:
    """Return the Variants without the value at `path`, where there is one."""

def validate(variants: pa.Array[Any]) -> None:
    """Raise MalformedVariantError, with `row`, unless all bytes are valid to the last nested value."""

def split_variant(bytes: bytes) -> tuple[bytes, bytes]:  # noqa: A002 - the name in the module
    """Split `metadata‖value` or `value‖metadata` into metadata and value. Raises MalformedVariantError."""

# Dates, times and rows.

def apply_function(name: str, columns: list[pa.Array[Any]], rows: int, zone: str) -> pa.Array[Any]:
    """Return a scalar function of columns of `rows` rows, or of one row, which stands for all."""

def date_part(values: pa.Array[Any], part: str, zone: str) -> pa.Int32Array:
    """Return "year", "month", "day" or "hour" of dates or timestamps; for instants, in the zone `zone`."""

def is_time_zone(name: str) -> bool:
    """Return whether Spark and this library know a time zone called `name`."""

def instant_of(local: int, zone: str) -> int | None:
    """Return the microseconds since the epoch of a local time in microseconds, None beyond 64 bits."""

def filter_rows(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of `batch` for which `mask`, which has no nulls, is true."""

def replace_rows(
    column: pa.Array[Any], numbers: pa.Int64Array, other: pa.Array[Any], replaced: pa.Int64Array
) -> pa.Array[Any]:
    """Return a column, whose rows have the ascending `numbers`, with some rows replaced by those of `other`.

    They have the numbers in `replaced`, in ascending order. Numbers that no row has are ignored.
    """

# Shredding. A shredding schema is a field with the type of the values, null for those with only `value`.

def shred(variants: pa.Array[Any], schema: pa.Field[Any], numeric: Numeric) -> pa.StructArray:
    """Return Variants shredded by `schema`, as a struct of `metadata`, `value` and `typed_value`.

    Raises MalformedVariantError, with `row`, and ShreddingError for an invalid schema.
    """

def unshred(shredded: pa.Array[Any], on_conflict: OnConflict) -> pa.StructArray:
    """Return shredded Variants as a struct of `metadata` and `value`.

    Raises ConflictingValueError and MalformedVariantError, with `row` and `path`, and ShreddingError, with
    `path`, for a layout that VariantShredding.md does not allow.
    """

def infer(
    arrays: list[pa.Array[Any]],
    max_leaves: int,
    max_depth: int,
    spark_compatible: bool,
    rows: int | None = None,
    certain_rows: int | None = None,
) -> pa.Field[Any]:
    """Return the shredding schema that suits arrays of Variants or of JSON text; invalid text is skipped.

    With `rows`, the paths are those that make a file of that many rows smaller; with None, those that are
    frequent enough, for a file of any size. At most 20,000 paths are counted, so memory does not grow with
    the number of rows. The time that is spent depends on `certain_rows`, which the file has at least: `rows`
    by default. `spark_compatible` avoids the types that make Spark reject the column.
    """

def check_shredding_schema(schema: pa.Field[Any]) -> pa.Field[Any]:
    """Return a shredding schema with its fields sorted by name. Raises ShreddingError for an invalid one."""

# The legacy layout: the older Spark draft of shredding, `object`, `array`, `typed_value` and `untyped_value`.

def shred_legacy(variants: pa.Array[Any], schema: pa.Field[Any]) -> pa.StructArray:
    """Return Variants shredded by `schema` into the legacy layout."""

def unshred_legacy(columns: pa.Array[Any], compat: bool) -> pa.StructArray:
    """Return columns of the legacy layout as a struct of `metadata` and `value`.

    `compat` follows the draft's algorithm where the draft's rules forbid the data. Raises
    ConflictingValueError and MalformedVariantError, with `row` and `path`, and ShreddingError, with `path`.
    """

def legacy_column(field: pa.Field[Any]) -> tuple[pa.Field[Any], pa.Field[Any] | None]:
    """Return `field` with its legacy Variants as `struct<metadata, value>`, and its shredding schema.

    The schema is None unless `field` is itself a Variant in the legacy layout.
    """

# Statistics.

@final
class PathBound:
    """The bound of one path in a statistics entry."""

    @property
    def key(self) -> str:
        """The normalized path."""
    @property
    def type_name(self) -> str:
        """The type of the value as VariantEncoding.md names it."""
    @property
    def scale(self) -> int | None:
        """The scale of a decimal."""
    @property
    def text(self) -> str:
        """The value as JSON text."""

@final
class StatisticsEntry:
    """The decoded bytes of a statistics entry."""

    @property
    def is_value_first(self) -> bool:
        """Whether `value` comes before `metadata`, as in an example of PROTOCOL.md."""
    @property
    def rest(self) -> bytes:
        """The bytes that follow both."""
    @property
    def bounds(self) -> list[PathBound] | None:
        """The bounds of the paths; None if the Variant is not an object."""

def describe_bound(bytes: bytes) -> StatisticsEntry:  # noqa: A002 - the name in the module
    """Decode the bytes of a statistics entry. Raises MalformedVariantError."""

def bound_column(texts: pa.Array[Any], key: str, target: pa.DataType) -> pa.Array[Any]:
    """Return the bound of the path `key` in each statistics text, cast to `target`.

    Null stands for a missing bound, malformed text, and a bound whose order differs from that of `target`.
    """

# Data files.

def annotate_variants(footer: bytes) -> bytes:
    """Annotate the groups of a Parquet footer that have required binary `metadata` and `value` as VARIANT(1).

    Args:
        footer: The end of a Parquet file: its footer, the length and the magic bytes.

    Raises DataFileError for other bytes.
    """

def add_deleted_rows(deleted: bytes | None, rows: pa.Array[Any]) -> tuple[bytes, int]:
    """Return a deletion vector of the rows in another one and in an array, and the number of its rows.

    `rows` are numbers of rows of the file, as int64. Raises DataFileError for an invalid vector.
    """

def subtract_deleted_rows(deleted: bytes | None, others: bytes | None) -> list[tuple[int, int]]:
    """Return the rows in a deletion vector but not in another one, as ordered half-open ranges.

    Raises DataFileError for an invalid vector.
    """

@final
class LeafReport:
    """The bounds of one leaf column, ordinary or a Variant within a struct."""

    @property
    def path(self) -> list[str]:
        """The names of the column and of the fields down to the leaf."""
    @property
    def nulls(self) -> int:
        """The number of rows in which the leaf or a struct around it is null."""
    @property
    def min(self) -> pa.Array[Any] | bytes | None:
        """An array of one row; for a Variant the bytes `metadata‖value`; None without a bound."""
    @property
    def max(self) -> pa.Array[Any] | bytes | None:
        """As `min`."""

@final
class ShreddedPath:
    """One shredded path of a Variant column."""

    @property
    def path(self) -> list[str | None]:
        """The names of the fields; None stands for the elements of a list."""
    @property
    def type(self) -> pa.DataType:
        """The type of `typed_value`."""
    @property
    def typed(self) -> int:
        """The number of values in `typed_value`."""
    @property
    def values(self) -> int:
        """The number of values of other types in `value`."""

@type_check_only
class VariantReport(TypedDict):
    """The bounds of a top-level Variant column."""

    nulls: int  # Rows that are SQL NULL.
    bounds: tuple[bytes, bytes] | None  # The least and the greatest values, each as `metadata‖value`.
    paths: list[ShreddedPath]

_ColumnReport: TypeAlias = VariantReport | list[LeafReport]

@type_check_only
class WriteReport(TypedDict):
    """A finished file."""

    rows: int
    bytes: int
    columns: list[_ColumnReport]  # In the order of the schema.

@final
class DataFileWriter:
    """Writes one Parquet file. Memory holds two chunks of rows and one row group of encoded pages."""

    def __new__(
        cls,
        sink: str | PathLike[str] | Sink,
        schema: pa.Schema,
        encodings: Sequence[Encoding],
        *,
        numeric: Numeric,
        floats: Floats,
        duplicate_keys: DuplicateKeys,
        on_invalid: str,
        annotate: bool,
        compression: str,
        page_version: PageVersion,
        row_group_bytes: int,
    ) -> DataFileWriter:
        """Create the file.

        Args:
            sink: A local path, which must not exist, or an object to write to.
            schema: The schema of the batches.
            encodings: What each column becomes in the file.
            numeric: Which exact numbers go to a `typed_value` of an exact type.
            floats: The type of JSON numbers with a fraction.
            duplicate_keys: What to do with two fields of one name in JSON.
            on_invalid: What to do with text that is not JSON: "error", "reject" the row, or "null".
            annotate: Whether Variant columns get the Parquet annotation `VARIANT(1)`.
            compression: "zstd", "snappy", "gzip", "lz4" or "none".
            page_version: The version of data pages.
            row_group_bytes: The encoded size at which a row group ends.

        Raises:
            DataFileError: The file cannot be created.
            SchemaError: A type that a Delta table cannot store.
            ShreddingError: An invalid shredding schema.
        """

    def write(self, batch: pa.RecordBatch) -> list[InvalidValue]:
        """Add a batch, and return its values that are not valid JSON.

        With `on_invalid="error"`, writing stops at the first of them and the caller must discard the file.
        Raises DataFileError, and MalformedVariantError or ConflictingValueError with `row` and `column`.
        """

    def copy(self, file: DataFile, row_group: int, replaced: Sequence[int] = ...) -> bool:
        """Append a row group of another file without encoding it again, and return whether this was done.

        It is not done unless this library wrote the file with the same schema and compression, and with an
        index of its pages, and if some of its rows are residual and separated. The columns at the ascending
        positions in `replaced` are left out, and `replace` must follow with their values. It is not done if
        one of them has Variants. Raises DataFileError; then the caller must discard the file that is written.
        """

    def replace(self, batch: pa.RecordBatch) -> None:
        """Add the next values of the columns that the last copy left out, in batches of these columns.

        Raises DataFileError, also for more values than the row group has rows.
        """

    def transfer(self, file: DataFile, row_group: int) -> bool:
        """Append the rows of a row group of another file, and return whether this was done.

        The columns are decoded and encoded again, and residual rows are separated. It is not done unless the
        file has the same schema and all columns are written as they are stored, for a large row group, and
        for one that cannot be decoded. The rows are written together with the next ones, or by `flush`.
        Raises DataFileError; then the caller must discard the file that is written.
        """

    def flush(self) -> None:
        """Write the rows that were transferred last. Raises DataFileError."""

    def separate(self, is_separating: bool) -> None:
        """Separate the residual rows of all following batches, or write them to the file again.

        A row is residual if a `value` that has a `typed_value` next to it is neither null nor Variant null.
        """

    def take_residual_rows(self, least: int) -> list[pa.RecordBatch]:
        """Take the rows that were separated, as they were in the batches.

        While they are fewer than `least` rows and of little size, take none.
        """

    @property
    def bytes_written(self) -> int:
        """The bytes written, plus an estimate for the row group in progress."""

    def close(self, max_stats_paths: int, max_stats_bytes: int) -> WriteReport:
        """Finish the file.

        The bounds of a Variant have the most filled paths, at most `max_stats_paths` and `max_stats_bytes`.
        """

@type_check_only
class FooterLeaf(TypedDict):
    """One leaf column over all row groups."""

    path: list[str]
    logical_type: str | None  # Such as DECIMAL(18,2).
    num_values: int  # Nulls included.
    null_count: int | None  # None if a row group does not state it.
    compressed_bytes: int
    is_variant_null: bool  # Whether the bounds state that no value is anything else than a Variant null.

@type_check_only
class Footer(TypedDict):
    """The footer of a file."""

    rows: int
    bytes: int
    row_groups: int
    created_by: str | None
    keys: list[str]  # The keys of the key-value metadata.
    variants: list[tuple[list[str], int | None]]  # Annotated groups: path and specification version.
    leaves: list[FooterLeaf]

@final
class SchemaViolation:
    """A rule of docs/audit-rules.md that the schema of a Variant column violates."""

    @property
    def rule(self) -> str:
        """The id of the rule; a lower-case letter at the end separates severities."""
    @property
    def path(self) -> str:
        """The normalized path in the Variant; `[*]` stands for the elements of a list."""
    @property
    def message(self) -> str:
        """What is wrong."""

@final
class RowViolation:
    """A rule of docs/audit-rules.md that rows of a Variant column violate at one path."""

    @property
    def rule(self) -> str:
        """The id of the rule; a lower-case letter at the end separates severities."""
    @property
    def path(self) -> str:
        """The normalized path in the Variant; `[*]` stands for the elements of a list."""
    @property
    def row(self) -> int:
        """The first row that violates the rule, from 0."""
    @property
    def count(self) -> int:
        """How many rows, or elements in them, violate the rule."""
    @property
    def message(self) -> str:
        """What is wrong in the first row."""

_Offenders: TypeAlias = tuple[int, int, str]
"""Rows that contradict a bound: how many, the first of them, and its value as JSON text."""

@type_check_only
class PathCheck(TypedDict):
    """How the rows agree with the bounds of one path."""

    present: int  # Rows that have the path.
    min_attained: bool
    max_attained: bool
    nulls: _Offenders  # Variant null.
    nans: _Offenders
    others: _Offenders  # A type that does not compare with the bounds.
    below: _Offenders
    above: _Offenders

@final
class ColumnCheck:
    """The check of the rows of a Variant column."""

    @property
    def variants(self) -> int:
        """The number of values that are not SQL NULL."""
    @property
    def violations(self) -> list[RowViolation]:
        """The violated rules, ordered by their first row."""
    @property
    def paths(self) -> list[PathCheck]:
        """One for each of the requested paths."""

@final
class TableColumns:
    """The columns of a table, by which those of its files are found."""

    def __new__(cls, schema: pa.Schema, by_id: bool) -> TableColumns:
        """Take the columns by the names of data files; with `by_id`, fields with an id are found by it."""

@final
class DataFile:
    """One open Parquet file. Its footer is read and checked; data is read on demand."""

    def __new__(
        cls, source: str | PathLike[str] | bytes | Ranges, name: str, columns: TableColumns | None = None
    ) -> DataFile:
        """Open a local path, the bytes of a file or an object to read from; `name` is the file in errors.

        The columns of the file get the names that the table with `columns` has for them. Raises DataFileError
        for a file that is missing, damaged or not Parquet.
        """

    @property
    def num_rows(self) -> int:
        """The number of rows, deleted ones included."""
    @property
    def is_own(self) -> bool:
        """Whether this library wrote the file."""

    @property
    def converted_columns(self) -> list[str]:
        """The names of the columns whose pages another file cannot have as they are; has Variants, too."""

    def has_compression(self, compression: str) -> bool:
        """Return whether all column chunks have this compression."""

    @property
    def row_groups(self) -> list[tuple[int, int]]:
        """The number of rows and the encoded bytes of each row group."""
    @property
    def leaf_paths(self) -> list[str]:
        """The paths of the leaf columns, in order, their steps joined by dots."""

    def view(self, columns: list[ViewColumn], row_groups: list[int] | None) -> tuple[int, bytes] | str:
        """Return a footer that shows the columns of some row groups, None for all, as plain typed columns.

        The bytes of the file up to the returned number and the footer are a Parquet file. The type of the
        field of a Variant is that of its root `typed_value`; a nullable Variant becomes a struct of it. A
        text states why a footer cannot show the columns, such as those of single paths.
        """

    def write_view(self, columns: list[ViewColumn], path: str | PathLike[str]) -> str | None:
        """Write a file of some columns, whose values are not decoded, to a local path, which must not exist.

        Returns None, or why it is not possible: the caller then removes the file and writes the rows.
        """

    def null_counts(self, leaf: int) -> list[tuple[int | None, int]]:
        """Return the nulls of a leaf column in each row group, None if unknown, and the values with nulls."""

    @property
    def is_separated(self) -> bool:
        """Whether the rows are as a writer leaves them that separates residual rows."""

    def has_schema_of(self, other: DataFile) -> bool:
        """Whether another file has the same columns, with the same names, types and annotations."""

    def check_unambiguous(self) -> None:
        """Raise DataFileError if several columns of the file match one of the table."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema; a Variant column is its group. Raises DataFileError for duplicate names."""
    @property
    def bytes_read(self) -> int:
        """The bytes read of the file so far, its footer included."""

    def inspect(self) -> Footer:
        """Return the contents of the footer."""

    def units(
        self,
        inputs: list[tuple[list[str], list[str | int] | None, pa.DataType]],
        row_groups: list[int] | None = None,
    ) -> tuple[list[tuple[int, int]], list[list[pa.Array[Any]]]]:
        """Return statistics of inputs by row group, or by page of `row_groups`.

        Args:
            inputs: Columns, each as its path, the path in the Variant (None for another column), and the type
                that its values are cast to.
            row_groups: The row groups whose pages to describe. Pages of several columns are cut into ranges
                that cross no page boundary.

        Returns:
            The ranges of rows as `(start, end)`, and for each input the arrays `(min, max, all_null,
            no_null)` with one row for each range. A null bound is unknown.
        """

    def bounds(
        self, variants: list[list[str]], max_stats_paths: int, max_stats_bytes: int
    ) -> list[_ColumnReport]:
        """Return the exact bounds of all columns, computed from the data; `variants` lists the Variants."""

    def check_schema(self, column: list[str]) -> list[SchemaViolation]:
        """Check the schema of the Variant column at a path; a missing column has no violations."""

    def check_footer(self) -> list[tuple[list[str], int, int | None, str, str, str]]:
        """Compare the statistics of row groups and pages with the values.

        Returns one entry for each statistic that disagrees: the path of the leaf column, the row group, the
        page (None for the statistics of the row group), `min`, `max`, `null_count` or `null_page`, and the
        stated and the found value as text.
        """

    def check_rows(
        self,
        column: list[str],
        paths: list[tuple[str, list[str]]],
        least: bytes | None,
        greatest: bytes | None,
        deleted: bytes | None = None,
    ) -> ColumnCheck:
        """Check the rows of a Variant column, and the bounds of its statistics against them.

        Args:
            column: The path to the column through structs, lists (`element`) and maps (`key`, `value`).
            paths: The paths with bounds, each as its key and its names.
            least: The `minValues` entry as `metadata‖value`.
            greatest: The `maxValues` entry as `metadata‖value`.
            deleted: A deletion vector, whose rows are skipped.
        """

    def read(
        self,
        projections: list[tuple[list[str], tuple[str, list[str | int], bool, str] | None, pa.Field[Any]]],
        rows: list[tuple[int, int]] | None,
        on_conflict: OnConflict,
        deleted: bytes | None = None,
        legacy: str | None = None,
        conditions: list[tuple[int, str, pa.Array[Any] | None]] | None = None,
        is_count: bool = False,
    ) -> Batches:
        """Read columns, decoding only the leaf columns that they need.

        Args:
            projections: Columns, each as its path, its kind and the field of the result. The kind is None for
                the column itself, or a tuple of "path", "json", "position" or "stored", the path in the
                Variant, whether casts are strict, and the time zone of local times. Text in a "stored" column
                is a dictionary in some batches. A missing column is null.
            rows: Ranges of rows as `(start, end)`, ascending and disjoint; None for all.
            on_conflict: What to do where `value` and `typed_value` contradict each other.
            deleted: A deletion vector, whose rows are skipped.
            legacy: "strict" or "compat" if whole Variants are in the legacy layout.
            conditions: Each the position of a projection, and "is not null" and None, or a comparison such as
                ">=" and its right sides, of the projection's type. Rows for which it is true for none of them
                may be left out. None for no conditions.
            is_count: Whether only the number of rows that meet the conditions is needed. Batches in which the
                conditions decide about each row have no columns.

        Returns:
            An iterator of batches. About 64 MiB of decoded leaves are held ahead of the consumer. Errors
            have `row` (of the file), `column` and `path`.
        """

    def read_leaves(self, leaves: list[int], row_groups: list[int], batch_size: int) -> Batches:
        """Read leaf columns as they are stored, with the structs, lists and maps around them.

        Args:
            leaves: The leaf columns by their index in the file, ascending.
            row_groups: The row groups to read, in the order of the result.
            batch_size: The maximum number of rows of a batch.

        Returns:
            An iterator of batches. The compressed leaves of one row group and one batch are in memory. INT96
            becomes timestamps in UTC, and the `metadata` of a Variant is dictionary encoded.
        """

@final
class Batches:
    """An iterator over the batches of a read."""

    def __iter__(self) -> Batches: ...
    def __next__(self) -> pa.RecordBatch: ...
    @property
    def rows_read(self) -> int:
        """The number of rows that were read for the batches so far, also those that conditions left out."""
