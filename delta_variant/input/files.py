"""Open the files that a caller names, by their format: JSON, CSV or Parquet."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ..errors import ArgumentTypeError, SourceError
from ..storage.inputs import InputFile, list_inputs
from .content import COMPRESSED_SUFFIXES
from .json_lines import JSON_SUFFIXES, read_json
from .tabular_files import open_csv, open_parquet

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


def open_path(data: Any, what: str, variants: Collection[str]) -> Any:
    """Return the rows of the files of a path, and other data unchanged.

    `variants` has the column of the values of JSON, and the columns of JSON text in CSV and Parquet.
    """
    is_path = isinstance(data, PathLike) or (isinstance(data, str) and _names_files(data))
    if not is_path:
        return data
    files = list_files(fspath(data))
    kind = kind_of(files)
    if kind == "CSV":
        return open_csv(files, variants)
    if kind == "Parquet":
        return open_parquet(files)
    if len(variants) > 1:
        raise ArgumentTypeError(f"{what}: a JSON file has one column, got {len(variants)} in variant_columns")
    sources: list[Any] = list(files)
    return read_json(sources, column=next(iter(variants), "value"))


def _names_files(text: str) -> bool:
    return text.lower().endswith((*ALL_SUFFIXES, "/")) or os.path.isdir(text)


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
    decoded. The types of columns are those of the first rows of each file. An empty field is NULL.

    Args:
        source: A path, a URI, a glob or a folder, or a sequence of these. A folder contains the `.csv` and
            `.tsv` files below it, compressed or not.
        variant_columns: The columns of JSON text, which `write_table` stores as Variants. Empty by default.
        columns: Other columns, by name, with the SQL expression of each, as in `read_json`. None by default.
        decimal: The decimal point of numbers, `"."` by default.
        storage_options: Options of the object store of URIs, such as credentials. None, the default, takes
            them from the environment.

    Returns:
        A `pyarrow.RecordBatchReader`, which can be read once.

    Raises:
        SourceNotFoundError: A file does not exist. It is also a `FileNotFoundError`.
        SourceError: A file cannot be read or parsed, or a folder contains a Delta table.
        SchemaError: The columns of the files have different types, or a column of `variant_columns` does not
            exist.
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
