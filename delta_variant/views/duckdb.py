"""Views as views of DuckDB, which reads their files itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from .._checks import check_installed
from ..errors import ArgumentTypeError, ExpressionError
from ..expressions.types import type_name
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol.schema.partition_values import encode_name
from ..storage.store import TableLocation
from .files import View

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TYPES = {
    pa.binary(): "blob",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
}


def to_duckdb(
    connection: DuckDBPyConnection,
    name: str,
    table: TableLocation | Snapshot,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    strict: bool = True,
    version: int | None = None,
    timestamp: Timestamp | None = None,
) -> None:
    """Create a view in DuckDB of the columns and the typed paths of a table.

    DuckDB reads the data files itself, as plain Parquet: it takes the columns that a query needs, filters by
    their statistics, and uses all of its threads. No data is copied, except for files that have values of
    other types than that of their path, a deletion vector, or another shredding than the view needs: their
    rows are written once, as plain columns, into the folder of the environment variable
    `DELTA_VARIANT_CACHE`, or into the user's cache. The view is temporary, and shows the version that it was
    created for. Needs fsspec.

    Args:
        connection: The connection, in which a view of this name is replaced.
        name: The name of the view.
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`.
        columns: SQL expressions, as in `read_table`. None, the default, is each column that has no Variant,
            and each shredded path, by the names and types of `shredded_columns`; lists are among them.
        strict: Whether a value that cannot be cast to the type of its path is an error, True by default, or
            NULL. False is for the shredded paths, without `columns`.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string, as in `read_table`. None by default.

    Raises:
        ArgumentTypeError: `connection` is not one of DuckDB.
        ModuleNotFoundError: fsspec is not installed.
        TableNotFoundError: There is no table at this location.
        VersionNotFoundError: The log does not have the version or the timestamp.
        ExpressionError: An expression cannot be parsed or bound to the table, or is a whole Variant, or there
            are no columns.
        UnsupportedFeatureError: This version cannot read the table.
        DataFileError: A file cannot be opened, or cannot be written to the cache.
        CastError: A value of a file that is written again cannot be cast.

    Example:
        >>> import duckdb
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> schema = dv.ShreddingSchema.of({"user": {"id": pa.int64()}})
        >>> rows = [{"id": 1, "event": {"user": {"id": 7}}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"], shredding=schema)
        >>> connection = duckdb.connect()
        >>> dv.to_duckdb(connection, "clicks", "clicks")
        >>> connection.sql('select "event.user.id" from clicks where id = 1').fetchall()
        [(7,)]
    """
    check_installed("fsspec", "fsspec")
    if not hasattr(connection, "register_filesystem"):
        raise ArgumentTypeError(
            f"connection: expected a connection of DuckDB, got {connection!r}: pass duckdb.connect(…)"
        )
    view = View.of(table, columns, strict=strict, version=version, timestamp=timestamp)
    if not view.schema.names:
        raise ExpressionError(
            "cannot create a view without columns: for Variants without shredded paths, "
            "pass columns, such as {'user': 'event:user.id::bigint'}"
        )
    outputs = ", ".join(_output(each, view) for each in view.schema)
    source = files_source(connection, view) if view.files else "(select 1) where false"
    connection.execute(f"create or replace temp view {name_text(name)} as select {outputs} from {source}")


def files_source(connection: DuckDBPyConnection, view: View) -> str:
    """Return the SQL of the files of a view, at least one, which exist as long as the connection."""
    # Imported here, because fsspec is optional.
    from .filesystem import VariantFileSystem

    if "variant" not in connection.list_filesystems():
        connection.register_filesystem(VariantFileSystem())
    root = uuid4().hex
    VariantFileSystem.add(root, view, connection)
    listed = ", ".join(text_of(f"variant://{root}/{file.name}") for file in view.files)
    if not view.shape.partitions:
        return f"read_parquet([{listed}], hive_partitioning = false)"
    folders = {name: encode_name(name) for name in view.shape.partitions}
    types = ", ".join(
        f"{text_of(folder)}: {text_of(type_text(view.schema.field(name).type))}"
        for name, folder in folders.items()
    )
    files = f"read_parquet([{listed}], hive_partitioning = true, hive_types = {{{types}}})"
    encoded = [(name, folder) for name, folder in folders.items() if name != folder]
    names = ", ".join(f"{name_text(folder)} as {name_text(name)}" for name, folder in encoded)
    return f"(select * rename ({names}) from {files})" if names else files


def _output(field: pa.Field[Any], view: View) -> str:
    if not view.files:
        return f"null::{type_text(field.type)} as {name_text(field.name)}"
    steps = view.shape.places.get(field.name, (field.name,))
    return f"{'.'.join(map(name_text, steps))} as {name_text(field.name)}"


def type_text(arrow_type: Any) -> str:
    """Return the name of a type in DuckDB."""
    if pa.types.is_list(arrow_type):
        return f"{type_text(arrow_type.value_type)}[]"
    if pa.types.is_map(arrow_type):
        return f"map({type_text(arrow_type.key_type)}, {type_text(arrow_type.item_type)})"
    if pa.types.is_struct(arrow_type):
        return (
            f"struct({', '.join(f'{name_text(field.name)} {type_text(field.type)}' for field in arrow_type)})"
        )
    return TYPES.get(arrow_type) or type_name(arrow_type)


def name_text(name: str) -> str:
    """Return a name as SQL of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def text_of(text: str) -> str:
    """Return a constant as SQL of DuckDB."""
    return "'" + text.replace("'", "''") + "'"
