"""Open the files that a caller names, by their format: JSON, CSV or Parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from .._checks import check_option
from .._progress import advance, begin
from ..data_file.options import JsonOptions
from ..errors import ArgumentTypeError, DeltaVariantError, SchemaError, SourceError
from ..protocol.schema.arrow import to_arrow_type
from ..protocol.schema.partition_values import parse_folders
from ..protocol.types import DataType, PrimitiveType, StructType, decimal_of
from ..storage.inputs import InputFile, list_inputs, total_size
from ..variant.shredding import unshred
from ..variant.values import EXTENSION, VARIANT_TYPE, plain_variants
from .content import COMPRESSED_SUFFIXES, Content
from .extracted_columns import ExtractedColumns
from .json_lines import JSON_SUFFIXES, read_json

STRING, DOUBLE, FLOAT = map(PrimitiveType, ("string", "double", "float"))
INTEGERS = tuple(map(PrimitiveType, ("byte", "short", "integer", "long")))

LARGE_INTEGER = r"^([+-]?[0-9]{1,38})?$"
LEADING_ZERO = r"^[+-]?0[0-9]+$"


def _column_types(
    first_rows: Callable[[pyarrow.csv.ConvertOptions], pa.RecordBatch],
    options: pyarrow.csv.ConvertOptions,
    known: Mapping[str, DataType],
) -> dict[str, pa.DataType]:
    """Return the types of the columns that pyarrow would infer otherwise, by the first rows of a file.

    `known` has the types of the columns of a table, by names in lower case. Text remains text for its
    strings, and numbers have its types. In other columns integers that are too large for a bigint have the
    type decimal(38,0). Integers with leading zeros, such as 007 and postal codes, are strings, and so are
    times of day, which Delta does not have.
    """
    batch = first_rows(options)
    wanted = {field.name: known.get(field.name.lower()) for field in batch.schema}
    numbers = [field.name for field in batch.schema if _is_number(field.type)]
    types: dict[str, pa.DataType | None] = {}
    times = [field.name for field in batch.schema if pa.types.is_time(field.type)]
    types |= {name: pa.string() for name in wanted if wanted[name] == STRING or name in times}
    types |= {
        name: _number_type(wanted[name], batch.schema.field(name).type)
        for name in numbers
        if name not in types
    }
    names = [name for name in numbers if wanted[name] is None]
    if names:
        all_text: Any = dict.fromkeys(names, pa.string())
        texts = first_rows(pyarrow.csv.ConvertOptions(column_types=all_text, include_columns=names))
        types |= {name: _lossless_type(batch[name], texts[name]) for name in names}
    return {name: data_type for name, data_type in types.items() if data_type is not None}


def _is_number(data_type: pa.DataType) -> bool:
    return pa.types.is_int64(data_type) or pa.types.is_float64(data_type)


def _number_type(wanted: DataType | None, inferred: pa.DataType) -> pa.DataType | None:
    """Return the type of numbers in a column of a table, None for the inferred one."""
    if wanted is None:
        return None
    is_integer = wanted in INTEGERS and pa.types.is_int64(inferred)
    is_number = is_integer or wanted in (DOUBLE, FLOAT) or decimal_of(wanted) is not None
    return to_arrow_type(wanted) if is_number else None


def _lossless_type(numbers: Any, texts: Any) -> pa.DataType | None:
    """Return the type that keeps the texts of a column, None if the inferred one does."""
    if pc.any(pc.match_substring_regex(texts, LEADING_ZERO)).as_py():
        return pa.string()
    is_large = pa.types.is_float64(numbers.type) and (pc.max(pc.abs(numbers)).as_py() or 0) >= 2**63
    if is_large and pc.all(pc.match_substring_regex(texts, LARGE_INTEGER)).as_py():
        return pa.decimal128(38, 0)
    return None


BATCH_ROWS = 65_536
MAX_ROW_BYTES = 16 << 20
"""The size of a block of a CSV file, which a row cannot exceed. The first block decides the types."""
DELIMITERS = (",", ";", "\t")
DECIMALS = (".", ",")
QUOTED = re.compile(rb'"[^"]*"')


def open_parquet(
    files: Sequence[InputFile],
    variant_columns: Collection[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    known: StructType | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of Parquet files as a stream whose schema has the columns of all files.

    A struct of `metadata`, `value` and perhaps `typed_value` is a Variant, with or without the annotation,
    because some writers omit it. A column is nullable unless all files require it. `columns` are those of
    `read_csv`, and `known` those of the table that takes the rows. Raise SourceError for a file that cannot
    be read, and SchemaError for files whose columns have different types.
    """
    schemas = []
    for file in files:
        with _opened_parquet(file) as opened:
            schemas.append(_logical_schema(_with_distinct_names(opened.schema_arrow, file)))
    everywhere = set.intersection(*(set(each.names) for each in schemas))
    schema = pa.schema(
        [
            field.with_nullable(field.nullable or field.name not in everywhere)
            for field in _unify(schemas, files)
        ]
    )
    schema = _with_folders(schema, files, known)

    def batches() -> Iterator[tuple[InputFile, pa.RecordBatch]]:
        begin("writing", files=len(files), bytes_=total_size(files))
        for file in files:
            with _opened_parquet(file) as opened:
                rows = max(opened.metadata.num_rows, 1)
                for batch in opened.iter_batches(BATCH_ROWS):
                    advance(bytes_=(file.size or 0) * batch.num_rows // rows, rows=batch.num_rows)
                    yield file, _with_schema(batch, schema, file)
            advance(files=1)

    texts = [field.name for field in schema if field.name in variant_columns and _is_text(field.type)]
    return _stream(schema, batches(), ExtractedColumns.of(columns, schema, texts))


def open_csv(
    files: Sequence[InputFile],
    variant_columns: Collection[str],
    *,
    columns: Mapping[str, str] | None = None,
    decimal: str = ".",
    known: StructType | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of CSV files with a header as a stream; see `read_csv`.

    `known` are the columns of the table that takes the rows.
    """
    check_option("decimal", decimal, DECIMALS)
    options = pyarrow.csv.ConvertOptions(
        column_types={name: pa.string() for name in (*variant_columns, *(columns or ()))},
        null_values=[""],
        strings_can_be_null=True,
        decimal_point=decimal,
    )
    by_name = {field.name.lower(): field.type for field in (known.fields if known else ())}
    found = (_column_types(partial(_first_rows, file), options, by_name).items() for file in files)
    # The last type of a column counts: one that is text in a file is text in all.
    types = sorted(chain.from_iterable(found), key=lambda pair: pa.types.is_string(pair[1]))
    options.column_types |= dict(types)  # type: ignore[operator]
    schemas = []
    for file in files:
        with _opened_csv(file, options) as opened:
            schemas.append(_text_schema(_with_distinct_names(opened.schema, file), file))
    schema = _with_folders(_unify(schemas, files), files, known)
    replaced = set(schema.names).difference(variant_columns)
    extracted = ExtractedColumns.of(columns, schema, tuple(variant_columns), replaced=replaced)

    def batches() -> Iterator[tuple[InputFile, pa.RecordBatch]]:
        begin("writing", files=len(files), bytes_=total_size(files))
        for file in files:
            with _opened_csv(file, options) as opened:
                for batch in opened:
                    advance(rows=batch.num_rows)
                    yield file, _with_schema(batch, schema, file)
            advance(files=1, bytes_=file.size or 0)

    return _stream(schema, batches(), extracted, variant_columns)


def _stream(
    schema: pa.Schema,
    batches: Iterator[tuple[InputFile, pa.RecordBatch]],
    extracted: ExtractedColumns,
    json: Collection[str] = (),
) -> pa.RecordBatchReader:
    """Return batches of files as a stream with the extracted columns, and JSON text as `arrow.json`."""
    fields = [pa.field(field.name, pa.json_()) if field.name in json else field for field in schema]
    whole = pa.schema(list({field.name: field for field in (*fields, *extracted.fields)}.values()))

    def rows() -> Iterator[pa.RecordBatch]:
        current, first = None, 0
        for file, batch in batches:
            current, first = file, first if file is current else 0
            locate = partial(_locate, file.name, first)
            first += batch.num_rows
            added = extracted.append(batch, file.name, locate, JsonOptions())
            yield pa.record_batch(list(map(_as_field, added.columns, whole)), schema=whole)

    return pa.RecordBatchReader.from_batches(whole, rows())


def _locate(file: str, first: int, row: int) -> dict[str, Any]:
    return {"file": file, "row": first + row}


def _as_field(column: Any, field: pa.Field[Any]) -> Any:
    if field.type != pa.json_() or column.type == field.type:
        return column
    return pa.ExtensionArray.from_storage(field.type, column)


@contextmanager
def _opened_csv(
    file: InputFile, options: pyarrow.csv.ConvertOptions
) -> Iterator[pyarrow.csv.CSVStreamingReader]:
    with Content(file) as content, _converted_errors(file):
        text = content.open()
        header = text.peek().partition(b"\n")[0]
        parse = pyarrow.csv.ParseOptions(delimiter=_delimiter_of(header), newlines_in_values=True)
        read = pyarrow.csv.ReadOptions(block_size=MAX_ROW_BYTES)
        yield pyarrow.csv.open_csv(text, read, parse, options)


def _first_rows(file: InputFile, options: pyarrow.csv.ConvertOptions) -> pa.RecordBatch:
    with _opened_csv(file, options) as opened:
        schema = _with_distinct_names(opened.schema, file)
        if "" in schema.names:
            raise SchemaError(
                f"cannot read {file.name} because the name of column {schema.names.index('') + 1} is empty: "
                "add it to the header; pandas omits its index with to_csv(index=False)",
                file=file.name,
            )
        return next(iter(opened), pa.RecordBatch.from_pylist([], schema))


def _delimiter_of(header: bytes) -> str:
    """Return the delimiter that occurs most often in a header, outside quotes; the comma if none does."""
    names = QUOTED.sub(b"", header)
    return max(DELIMITERS, key=lambda each: names.count(each.encode()))


@contextmanager
def _opened_parquet(file: InputFile) -> Iterator[pq.ParquetFile]:
    with file.open() as content, _converted_errors(file):
        yield pq.ParquetFile(content, page_checksum_verification=True)


@contextmanager
def _converted_errors(file: InputFile) -> Iterator[None]:
    try:
        yield
    except DeltaVariantError:
        raise
    except UnicodeDecodeError as error:
        message = f"cannot read {file.name} because a column name is not UTF-8: convert the file to UTF-8"
        raise SourceError(message, file=file.name) from error
    # Arrow raises OSError for data that it cannot decompress.
    except (pa.ArrowException, OSError) as error:
        is_large = "straddling object" in str(error)
        large = f"a row is larger than {MAX_ROW_BYTES >> 20} MiB, or a quote is not closed"
        reason = large if is_large else error
        raise SourceError(f"cannot read {file.name}: {reason}", file=file.name) from error


def _with_folders(schema: pa.Schema, files: Sequence[InputFile], known: StructType | None) -> pa.Schema:
    """Return a schema with the columns in the names of folders, such as `day=2026-11-21/`.

    A column that no file has is of the type in `known`. Others are integers if all of their values are, and
    else strings.
    """
    values: dict[str, list[str]] = {}
    for name, text in chain.from_iterable(parse_folders(file.path) for file in files):
        values.setdefault(name, []).extend([] if text is None else [text])
    types = {field.name.lower(): to_arrow_type(field.type) for field in (known.fields if known else ())}
    for name in [each for each in values if each not in schema.names]:
        is_integer = values[name] and all(map(_is_integer, values[name]))
        inferred = pa.int64() if is_integer else pa.string()
        schema = schema.append(pa.field(name, types.get(name.lower(), inferred)))
    return schema


def _is_integer(text: str) -> bool:
    # Text such as 007 must keep its zeros.
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(text)) == text and abs(int(text)) < 2**63


def _with_distinct_names(schema: pa.Schema, file: InputFile) -> pa.Schema:
    repeated = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if repeated is not None:
        raise SchemaError(
            f"cannot read {file.name} because it has several columns {repeated!r}: rename them",
            file=file.name,
            column=repeated,
        )
    return schema


def _text_schema(schema: pa.Schema, file: InputFile) -> pa.Schema:
    """Return the schema of a CSV file. pyarrow infers that text which is not UTF-8 is binary."""
    column = next((field.name for field in schema if pa.types.is_binary(field.type)), None)
    if column is not None:
        raise SourceError(
            f"cannot read {file.name} because the column {column!r} is not UTF-8: convert the file to UTF-8",
            file=file.name,
            column=column,
        )
    return schema


def _unify(schemas: Sequence[pa.Schema], files: Sequence[InputFile]) -> pa.Schema:
    try:
        return pa.unify_schemas(list(schemas), promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(
            f"cannot read {files[0].name} and the other files as one table because their columns have "
            f"different types: {error}",
            file=files[0].name,
        ) from error


def _logical_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a file with its Variants as unshredded structs of the extension type."""
    return pa.schema(
        [
            pa.field(field.name, VARIANT_TYPE, field.nullable, EXTENSION)
            if _is_variant(field.type)
            else field
            for field in schema
        ]
    )


def _is_text(arrow_type: pa.DataType) -> bool:
    return pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)


def _is_variant(arrow_type: pa.DataType) -> bool:
    if not pa.types.is_struct(arrow_type):
        return False
    parts = {part.name: part.type for part in arrow_type}
    binary = [parts.pop(name, None) for name in ("metadata", "value")]
    return set(parts) <= {"typed_value"} and all(
        each is not None and pa.types.is_binary(each) for each in binary
    )


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema, file: InputFile) -> pa.RecordBatch:
    values, arrays = dict(parse_folders(file.path)), list[Any]()
    for field in schema:
        position = batch.schema.get_field_index(field.name)
        if position >= 0:
            column = batch.column(position)
            if _is_variant(column.type):
                column = plain_variants(unshred(column))
            arrays.append(column if column.type == field.type else column.cast(field.type))
        elif (text := values.get(field.name)) is not None:
            arrays.append(pa.repeat(_folder_value(text, field, file), batch.num_rows))
        else:
            arrays.append(pa.nulls(batch.num_rows, field.type))
    return pa.record_batch(arrays, schema=schema)


def _folder_value(text: str, field: pa.Field[Any], file: InputFile) -> Any:
    try:
        return pa.scalar(text).cast(field.type)
    except pa.ArrowException as error:
        raise SourceError(
            f"cannot read the folder {field.name}={text} of {file.name}: {error}",
            file=file.name,
            column=field.name,
        ) from error


Kind: TypeAlias = Literal["JSON", "CSV", "Parquet"]

SUFFIXES: Mapping[Kind, tuple[str, ...]] = {
    "Parquet": (".parquet",),
    "CSV": tuple(
        name + compression for name in (".csv", ".tsv") for compression in ("", *COMPRESSED_SUFFIXES)
    ),
    "JSON": JSON_SUFFIXES,
}
ALL_SUFFIXES = tuple(suffix for group in SUFFIXES.values() for suffix in group)


def names_file(path: object) -> bool:
    """Return whether a path is that of a file of JSON, CSV or Parquet by its suffix, and not of a folder."""
    text = fspath(path) if isinstance(path, str | PathLike) else ""
    return text.lower().endswith(ALL_SUFFIXES) and not os.path.isdir(text)


def list_files(text: str, storage_options: Mapping[str, str] | None = None) -> list[InputFile]:
    """Return the files of a path, a glob, a folder or a URI; raises what `list_inputs` raises."""
    return list_inputs([text], ALL_SUFFIXES, storage_options)


def kind_of(files: Sequence[InputFile]) -> Kind:
    """Return the format of files by their suffixes, JSON for others. Raise SourceError for several."""
    kinds = {_kind(file.path.lower()) for file in files}
    if len(kinds) > 1:
        names = " and ".join(sorted(kinds))
        raise SourceError(f"cannot read {names} files as one input: write one format at a time")
    return next(iter(kinds), "JSON")


def _kind(name: str) -> Kind:
    return next((kind for kind, suffixes in SUFFIXES.items() if name.endswith(suffixes)), "JSON")


def open_path(data: Any, what: str, variants: Collection[str], known: StructType | None = None) -> Any:
    """Return the rows of the files of a path, and other data unchanged.

    `variants` has the column of the values of JSON, and the columns of JSON text in CSV and Parquet. `known`
    are the columns of the table that takes the rows.
    """
    names_files = isinstance(data, str) and (
        data.lower().endswith((*ALL_SUFFIXES, "/")) or os.path.isdir(data)
    )
    if not names_files and not isinstance(data, PathLike):
        return data
    files = list_files(fspath(data))
    kind = kind_of(files)
    if kind == "CSV":
        return open_csv(files, variants, known=known)
    if kind == "Parquet":
        return open_parquet(files, known=known)
    if len(variants) > 1:
        raise ArgumentTypeError(f"{what}: a JSON file has one column, got {len(variants)} in variant_columns")
    sources: list[Any] = list(files)
    return read_json(sources, column=next(iter(variants), "value"))


def read_csv(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    variant_columns: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    decimal: Literal[".", ","] = ".",
    storage_options: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of CSV files with a header as an Arrow stream.

    The separator is the comma, the semicolon or the tab that splits the header into the most columns, so that
    the exports of Excel are read as well as others. UTF-16 with a byte order mark and compressed files are
    decoded. The types of columns are those of the first rows of each file, `decimal(38,0)` if a column has
    integers that are too large for a `bigint`, and `string` if it has integers with leading zeros, such as
    postal codes, or times of day. An empty field is NULL. A row has at most 16 MiB.

    Args:
        source: A path, a URI, a glob or a folder, or a sequence of these. A folder contains the `.csv` and
            `.tsv` files below it, compressed or not; names of folders, such as `day=1`, are columns.
        variant_columns: The columns of JSON text, which `write_table` stores as Variants. Empty by default.
        columns: More columns, by name, with SQL expressions, as in `read_json`, or types of columns of the
            file, as expressions over their text: `{"zip": "zip::string"}`. None by default.
        decimal: The decimal point of numbers, `"."` by default.
        storage_options: Options of the object store of URIs, such as credentials. None, the default, takes
            them from the environment.

    Returns:
        A `pyarrow.RecordBatchReader`, which can be read once.

    Raises:
        SourceNotFoundError: A file does not exist. It is also a `FileNotFoundError`.
        SourceError: A file cannot be read or parsed, or a folder contains a Delta table.
        SchemaError: The columns of the files have different types, a column has no name, or a column of
            `variant_columns` does not exist.
        ExpressionError: An expression of `columns` cannot be parsed, or names other columns.
        ValueError: An argument has an invalid value.

    Example:
        >>> import delta_variant as dv
        >>> with open("export.csv", "w") as file:
        ...     _ = file.write("name;price\\nAda;1,50\\n")
        >>> dv.read_csv("export.csv", decimal=",").read_all().to_pylist()
        [{'name': 'Ada', 'price': 1.5}]
    """
    sources = [source] if isinstance(source, str | PathLike) else source
    files = list_inputs([fspath(each) for each in sources], SUFFIXES["CSV"], storage_options)
    return open_csv(files, variant_columns, columns=columns, decimal=decimal)
