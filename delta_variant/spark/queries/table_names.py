"""Find tables by name: views of this package in a session, and tables of Delta in its catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import msgspec
from pyspark.sql import SparkSession

from ..._text import quote
from ...errors import TableNotFoundError
from ...read.rows import load_readable
from ...storage.store import TableLocation, open_store, table_uri
from ..locations import default_file_system, is_location, locate, session_options
from ..running import check_session
from ..versions import SPARK_ERRORS

VIEW = "spark.delta_variant.view."
"""The prefix of the settings of a session that name its views; the value is the location of the table."""

FORMATS = ("delta", "delta_variant")
NAME = re.compile(r"\w+|`(?:[^`]|``)+`")
QUALIFIED_NAME = re.compile(rf"(?:{NAME.pattern})(?:\.(?:{NAME.pattern})){{0,2}}")


def create_view(spark: SparkSession, name: str, table: TableLocation) -> None:
    """Name a table for `sql` and `read_table` in a session, or give an existing view another table.

    The view is a setting of the session, which has the location. It always has the rows of the latest
    version, and the credentials of the session that reads it. Spark's own `spark.sql` does not know it.

    Args:
        spark: A session, classic or of Spark Connect.
        name: The name of the view, without catalog and schema. Case does not matter.
        table: A path, a URI, a `Table`, a `deltalake.DeltaTable` or a name, as in `read_table`. The options
            of a handle are not kept: pass them to `sql` again.

    Raises:
        TableNotFoundError: The location does not contain a table.
        DeltaVariantError: The table cannot be read; see `read_table`.
        ValueError: The name is empty.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> dvs.create_view(spark, "numbers", table)
        >>> dvs.sql(spark, "select max(id) as id from numbers").collect()
        [Row(id=2)]
        >>> dvs.drop_view(spark, "numbers")
    """
    if not name:
        raise ValueError("expected the name of a view, got ''")
    location = resolve_table(spark, table)
    snapshot = load_readable(open_store(location, session_options(spark, location)), None)
    spark.conf.set(VIEW + name.lower(), snapshot.uri)


def drop_view(spark: SparkSession, name: str) -> None:
    """Remove a view that `create_view` created; without one, do nothing.

    Args:
        spark: A session, classic or of Spark Connect.
        name: The name of the view. Case does not matter.

    Example:
        >>> from delta_variant import spark as dvs
        >>> dvs.drop_view(spark, "numbers")
    """
    spark.conf.unset(VIEW + name.lower())


class View(msgspec.Struct, frozen=True):
    """A permanent view of Spark: its query, the catalog and the schema of names in it, and its columns.

    `columns` are their names and types, as Spark writes them.
    """

    text: str
    schema: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


def find_source(spark: SparkSession, parts: Sequence[str]) -> str | View | None:
    """Return the location of a table by the parts of its name, or a view of Spark.

    The tables are the views of this package, locations such as ``delta.`s3://bucket/table` ``, and tables of
    the provider delta in the catalog. None for others, and for temporary views.
    """
    if len(parts) == 2 and parts[0].lower() in FORMATS and is_location(parts[1]):
        return table_uri(locate(parts[1], default_file_system(spark)))
    view = spark.conf.get(VIEW + parts[0].lower(), None) if len(parts) == 1 else None
    return view or _find_in_catalog(spark, parts)


def full_name(spark: SparkSession, name: Sequence[str]) -> tuple[str, ...]:
    """Return the name of a table with the current catalog and schema, unless it has its own."""
    above = (spark.catalog.currentCatalog(), spark.catalog.currentDatabase())
    return (*above[: max(3 - len(name), 0)], *name)


def resolve_table(spark: SparkSession, table: TableLocation) -> TableLocation:
    """Return the location of a table that a caller names, or that of a path or a URI as Spark means it.

    Raises TableNotFoundError for text that is neither the name of a table of Delta nor plainly a path or a
    URI: as a path, it would be a folder of the working directory. Raises StoreError for a location that
    executors would look for elsewhere, and what `check_session` raises.
    """
    check_session(spark)
    text = table_uri(table)
    is_name = bool(QUALIFIED_NAME.fullmatch(text))
    if not isinstance(table, str) or (is_location(text) and not is_name):
        return locate(table, default_file_system(spark))
    found = find_source(spark, _parts(text)) if is_name else None
    if isinstance(found, str):
        return found
    raise TableNotFoundError(
        f"cannot find the Delta table {text!r}: {_what_is(spark, text, found)}; pass the name of a Delta "
        f"table of the catalog or of a view of create_view, or write {f'./{text}'!r} for a path",
        table=text,
    )


def _what_is(spark: SparkSession, name: str, found: View | None) -> str:
    if found is not None:
        return "the session's catalog has a view of this name"
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except SPARK_ERRORS:
        return "the session's catalog has no table of this name"
    details = {row[0]: row[1] for row in rows}
    provider = details.get("Provider")
    if details.get("Type") == "VIEW" or not provider:
        return "the session has a view of this name"
    return f"the session's catalog has a table of this name in the format {provider}"


def _parts(name: str) -> tuple[str, ...]:
    return tuple(each.strip("`").replace("``", "`") for each in NAME.findall(name))


def _find_in_catalog(spark: SparkSession, parts: Sequence[str]) -> str | View | None:
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {'.'.join(map(quote, parts))}").collect()
    except SPARK_ERRORS:
        # Spark knows no such name, or a view that it cannot describe.
        return None
    details = {row[0]: row[1] for row in rows}
    if "# Detailed Table Information" not in details:
        return None
    if str(details.get("Provider")).lower() == "delta":
        return str(details["Location"])
    if details.get("Type") != "VIEW" or "View Catalog and Namespace" not in details:
        return None
    columns = takewhile(lambda row: row[0] != "", rows)
    return View(
        str(details["View Text"]),
        _parts(str(details["View Catalog and Namespace"])),
        tuple((row[0], row[1]) for row in columns),
    )
