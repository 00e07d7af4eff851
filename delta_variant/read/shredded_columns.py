"""Find the typed paths of the Variants of a table, and name them as columns of a scan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import pyarrow as pa

from .._arrow import SIMPLE_TYPES
from .._checks import check_option
from .._text import quote
from ..data_file.shredding import PerSchema
from ..expressions.coercion import common_type
from ..expressions.literals import literal_text
from ..expressions.types import NUMERIC, Kind, kind_of, type_name
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol.types import VARIANT, StructType, leaf_columns
from ..storage.store import TableLocation
from .file_reader import FileReader, TableReader, files_of
from .rows import load_readable

Path: TypeAlias = tuple[str, ...]

UNITED: Sequence[frozenset[Kind]] = (NUMERIC, frozenset({"date", "timestamp", "timestamp_ntz"}))
"""Kinds of types that have a common type."""


def shredded_columns(
    table: TableLocation | Snapshot,
    *,
    strict: bool = True,
    version: int | None = None,
    timestamp: Timestamp | None = None,
) -> dict[str, str]:
    """Return the columns of a table and each shredded path of its Variants, as `columns` of a scan.

    Each file has its own shredded paths. A path gets the type that all files with a typed column for it
    share, a common type of numbers or of dates and timestamps if they differ, and string otherwise, also if
    it is an object or an array in some files. Paths within arrays are left out. The footer of each file is
    read.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`.
        strict: What a scan does with a value that cannot be cast to the type of its path. True, the default,
            uses `variant_get`, which raises CastError, so that no value is lost without notice. False uses
            `try_variant_get`, which returns NULL.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string, as in `read_table`. None by default.

    Returns:
        SQL expressions by name: each column of the table, then the paths of each Variant, such as
        `event.user.id`. Remove and change entries before you pass them to `read_table`.

    Raises:
        TableNotFoundError: There is no table at this location.
        VersionNotFoundError: The log does not have the version or the timestamp.
        UnsupportedFeatureError: This version cannot read the table.
        DataFileError: A file cannot be opened.
        ShreddingError: A file has a Variant in the legacy Spark layout, or in an invalid layout.

    Example:
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> schema = dv.ShreddingSchema.of({"user": {"id": pa.int64()}})
        >>> rows = [{"event": {"user": {"id": 7}}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"], shredding=schema)
        >>> columns = dv.shredded_columns("clicks")
        >>> columns["event.user.id"]
        "variant_get(`event`, '$.user.id', 'bigint')"
        >>> dv.read_table("clicks", columns=columns).to_pylist()
        [{'event': {'user': {'id': 7}}, 'event.user.id': 7}]
    """
    check_option("strict", strict, (True, False))
    snapshot = load_readable(table, version, timestamp)
    return typed_columns(snapshot, shredded_types(snapshot, snapshot.files), strict=strict)


def typed_columns(
    snapshot: Snapshot, types: Mapping[tuple[Path, Path], str], *, strict: bool
) -> dict[str, str]:
    """Return the columns of a table and paths of its Variants, whose SQL types are given."""
    columns = {field.name: quote(field.name) for field in snapshot.schema.fields}
    function = "variant_get" if strict else "try_variant_get"
    for (variant, path), sql_type in types.items():
        if (text := _path_text(path)) is not None:
            name = ".".join(variant) + path_name(path)
            column = ".".join(map(quote, variant))
            columns.setdefault(name, f"{function}({column}, {literal_text(text)}, '{sql_type}')")
    return columns


def shredded_types(
    snapshot: Snapshot, files: pa.Table, *, lists: bool = False
) -> dict[tuple[Path, Path], str]:
    """Return the SQL type of each shredded path of each Variant in some files, in the order of the paths.

    With `lists`, a path that is a list in all files is one of them, if its elements have a common type.
    """
    found: dict[tuple[Path, Path], set[pa.DataType]] = {}
    variants = list(variants_of(snapshot.schema))
    known: PerSchema[list[tuple[tuple[Path, Path], pa.DataType]]] = PerSchema()
    for file in TableReader.of(snapshot).open_all(files_of(files)):
        for key, arrow_type in known.of(file.native, partial(_paths_of, file, variants)):
            found.setdefault(key, set()).add(arrow_type)
    types: dict[tuple[Path, Path], str] = {}
    for key, each in sorted(found.items()):
        if not all(map(pa.types.is_nested, each)):
            if key[1]:
                types[key] = type_name(_scalar_type(each) or pa.string())
        elif lists and all(map(pa.types.is_list, each)) and (united := _united(each)) is not None:
            types[key] = type_name(united)
    return types


def _paths_of(file: FileReader, variants: Iterable[Path]) -> list[tuple[tuple[Path, Path], pa.DataType]]:
    """Return the Variants of a file and their shredded paths, with their types."""
    schemas = ((variant, file.shredding(variant)) for variant in variants)
    return [
        ((variant, path), arrow_type)
        for variant, schema in schemas
        if schema is not None
        for path, arrow_type in paths_of(schema.field.type)
    ]


def _united(types: Collection[Any]) -> Any:
    """Return a type that holds the values of all of some types of list elements, None if there is none."""
    typed = [each for each in types if not pa.types.is_null(each)]
    if not typed:
        return None
    if all(map(pa.types.is_list, typed)):
        element = _united([each.value_type for each in typed])
        return None if element is None else pa.list_(element)
    if all(map(pa.types.is_struct, typed)):
        members: dict[str, list[Any]] = {}
        for field in (field for each in typed for field in each):
            members.setdefault(field.name, []).append(field.type)
        fields = [(name, united) for name, each in members.items() if (united := _united(each)) is not None]
        return pa.struct(fields) if fields else None
    return None if any(map(pa.types.is_nested, typed)) else _scalar_type(set(typed))


def variants_of(columns: StructType) -> Iterator[Path]:
    """Yield the paths of the Variants that a path expression can read."""
    for fields in leaf_columns(columns):
        if fields[-1].type == VARIANT:
            yield tuple(field.name for field in fields)


def paths_of(arrow_type: Any, path: Path = ()) -> Iterator[tuple[Path, pa.DataType]]:
    """Yield the paths of a shredding schema with their types, objects and arrays included."""
    if not pa.types.is_null(arrow_type):
        yield path, arrow_type
    if pa.types.is_struct(arrow_type):
        for field in arrow_type:
            yield from paths_of(field.type, (*path, field.name))


def _scalar_type(types: set[pa.DataType]) -> pa.DataType | None:
    """Return the common type of scalars, None if they have none or SQL has no name for it."""
    target: pa.DataType | None = None
    if len(types) == 1 or any({kind_of(each) for each in types} <= kinds for kinds in UNITED):
        first, *others = sorted(types, key=str)
        target = reduce(_common_type, others, first)
    is_known = target in SIMPLE_TYPES.values() or (target is not None and pa.types.is_decimal128(target))
    return target if is_known else None


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    found = common_type(one, other)
    assert found is not None, (one, other)
    return found


def _path_text(path: Path) -> str | None:
    """Return a path in the grammar of variant_get; None if it has a name with both kinds of quotes."""
    if any("'" in name and '"' in name for name in path):
        return None
    return "$" + "".join(map(_step, path))


def _step(name: str) -> str:
    if name.isidentifier():
        return f".{name}"
    return f"['{name}']" if "'" not in name else f'["{name}"]'


def path_name(path: Sequence[str]) -> str:
    """Return a path as it follows the name of its Variant in the names of columns: `.user.id`."""
    return "".join(f".{name}" if name.isidentifier() else f"[{name!r}]" for name in path)
