"""Read a table: select columns and Variant paths by SQL text, and skip files and pages by statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from .._checks import check_option
from .._options import OnConflict
from ..execution import timezone_of
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..read.query import Query
from ..read.rows import load_readable
from ..read.scan import Scan
from ..read.scan_rows import TableRows
from ..storage.store import TableLocation


def read_table(
    table: TableLocation | Snapshot,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    lateral: str | None = None,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    limit: int | None = None,
    timezone: str | None = None,
    on_conflict: OnConflict = "error",
    variants: Literal["bytes", "shredded"] = "bytes",
) -> Scan:
    """Return a scan of the rows of a table, or of an earlier version of it.

    The scan reads rows when its methods are called, any number of times, and always from the version that it
    was created for. Files, row groups and pages that statistics prove to have no matching row are skipped,
    including any errors in them. Casts follow Spark: a value that cannot be cast is an error, or NULL with
    `try_cast` and `try_variant_get`. Values of rows that `where` excludes are not cast.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`.
        columns: SQL expressions over columns and Variant paths (`event:user.id::bigint`): a mapping from
            output names to expressions, or a sequence of expressions. None, the default, selects all columns;
            Variant columns have the type `struct<metadata, value>` and the extension name
            `arrow.parquet.variant`.
        where: An SQL predicate. Only rows for which it is true are returned. None, the default, selects all.
        lateral: `variant_explode(event:items) as item`, after which there is a row for each field or element
            of this Variant, and `columns` and `where` can read `item.pos`, `item.key` and `item.value`. With
            `variant_explode_outer`, a Variant without them has one row of nulls. None, the default, keeps the
            rows of the table. Needs `variants="bytes"`.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string; reads the latest version committed at that
            time or earlier. Excludes `version`. None by default.
        limit: The maximum number of rows. No more files are read than needed. None, the default, returns all
            rows.
        timezone: The time zone of local times, such as `"Europe/Berlin"` or `"+02:00"`, for casts between
            timestamps and dates, timestamps without time zone, and text. None, the default, is that of the
            engine of a `Table`, `"UTC"` without one.
        on_conflict: What to do if `value` and `typed_value` of a shredded Variant contradict each other:
            `"error"`, the default, raises ConflictingValueError, `"typed"` reads `typed_value`.
        variants: The form of top-level Variant columns: `"bytes"`, the default, as `struct<metadata, value>`,
            `"shredded"` as files store them, with `typed_value` as VariantShredding.md defines it. Then the
            footers of the files are read first, and values are not checked for conflicts.

    Returns:
        A `Scan`, with methods such as `to_table`, `to_pylist`, `count` and `explain`. DuckDB, Polars and
        pandas accept it as Arrow data.

    Raises:
        TableNotFoundError: There is no table at this location.
        VersionNotFoundError: The log does not have the version or the timestamp.
        ExpressionError: An SQL expression cannot be parsed or bound to the table.
        UnsupportedFeatureError: This version cannot read the table.
        ProtocolError: Protocol, metadata and schema of the table contradict each other.
        SchemaError: This version cannot read the schema of the table.
        ValueError: The time zone is unknown, `limit` is negative, or arguments exclude each other.
        DataFileError: While rows are read: a file cannot be read.
        MalformedVariantError: While rows are read: a Variant is invalid.
        ConflictingValueError: While rows are read: see `on_conflict`.
        CastError: While rows are read: a value cannot be cast.
        ShreddingError: `variants` is `"shredded"`, and files differ in their shredding; `path` is where.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import read_table, write_table
        >>> table = "events"
        >>> rows = pa.table({"id": [1, 2], "event": ['{"user": "ann"}', '{"user": "bob"}']})
        >>> result = write_table(table, rows, variant_columns=["event"])
        >>> read_table(table, columns={"user": "event:user::string"}, where="id = 2").to_pylist()
        [{'user': 'bob'}]
        >>> carts = "carts"
        >>> rows = [{"id": 1, "cart": {"items": ["pen", "ink"]}}, {"id": 2, "cart": {"items": []}}]
        >>> result = write_table(carts, rows, variant_columns=["cart"])
        >>> items = "variant_explode(cart:items) as item"
        >>> read_table(carts, lateral=items, columns=["id", "item.value::string as name"]).to_pylist()
        [{'id': 1, 'name': 'pen'}, {'id': 1, 'name': 'ink'}]
    """
    snapshot = load_readable(table, version, timestamp).in_timezone(timezone_of(table, timezone))
    query = Query.of(snapshot.configuration, columns, where, lateral)
    check_option("variants", variants, ("bytes", "shredded"))
    if lateral is not None and variants == "shredded":
        raise ValueError("lateral needs variants='bytes'")
    rows = TableRows.of(snapshot, query, on_conflict)
    return Scan(rows.as_stored() if variants == "shredded" else rows, limit)
