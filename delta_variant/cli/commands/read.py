"""The commands `read`, `sql`, `changes` and `serve`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ...operations.changes import read_changes
from ...operations.read import read_table
from ...queries.sql import query_tables
from ...statements.parse import find_statement
from ...variant.moments import UTC
from ..options import (
    Columns,
    Expanded,
    Table,
    Text,
    Texts,
    Timestamp,
    TimeZone,
    Version,
    Wide,
    argument,
    handle,
    option,
    parse_columns,
    parse_pairs,
)
from ..output import FINDINGS, console, print_hint, print_lines, showing_progress
from ..report import Layout, OutputFormat, Report, print_rows, render

Where = Annotated[Text, option("Print only rows that match.", "SQL")]
RowLimit = Annotated[int | None, option("Maximum number of rows.", "N", min=0)]
Format = Annotated[OutputFormat, option("Output format; json prints one object per line.", names="--format")]
JsonFormat = Annotated[bool, option("Short for --format json.", names="--json")]


def read(
    table: Table,
    column: Columns = None,
    where: Where = None,
    lateral: Annotated[Text, option("A row per part: variant_explode(event:items) as item.", "SQL")] = None,
    timezone: TimeZone = UTC,
    limit: RowLimit = None,
    output_format: Format = "table",
    json: JsonFormat = False,
    wide: Wide = False,
    expanded: Expanded = False,
    version: Version = None,
    timestamp: Timestamp = None,
    explain: Annotated[
        bool, option("Print what is read and skipped instead of the rows.", names="--explain")
    ] = False,
    max_files: Annotated[
        int | None,
        option("With --explain: exit status 1 if more files are read.", "N", names="--max-files", min=0),
    ] = None,
) -> None:
    """Print rows of a table, or columns and Variant paths."""
    if max_files is not None and not explain:
        raise typer.BadParameter("--max-files needs --explain")
    with showing_progress(if_redirected=True):
        scan = read_table(
            handle(table),
            columns=parse_columns(column),
            where=where,
            lateral=lateral,
            timezone=timezone,
            version=version,
            timestamp=timestamp,
        )
        if explain:
            found = scan.explain()
            render(Report(found, str(found).splitlines()), json=json)
            if max_files is not None and found.files_read > max_files:
                raise typer.Exit(FINDINGS)
        else:
            print_rows(scan.to_reader(), "json" if json else output_format, limit, Layout(wide, expanded))


def sql(
    query: Annotated[str, argument("SQL", "A query in the SQL of Spark and Databricks.")],
    table: Annotated[
        Texts, option("A table of the query by its name; repeatable.", "NAME=TABLE", "--table -t")
    ] = None,
    timezone: TimeZone = UTC,
    limit: RowLimit = None,
    output_format: Format = "table",
    json: JsonFormat = False,
    wide: Wide = False,
    expanded: Expanded = False,
) -> None:
    """Print the rows of a SQL query of tables.

    A table of the query is a name from --table, or delta.`path`. Needs DuckDB, the extra sql.
    """
    with showing_progress(if_redirected=True):
        tables = {name: handle(uri) for name, uri in parse_pairs("--table", table).items()}
        statement = find_statement(query, {})
        if statement is not None and not statement.only_shows:
            raise typer.BadParameter(
                f"cannot run {query.split()[0].upper()} here: expected a query, or a statement that shows a "
                "table; use another command, such as delete, or dv.sql in Python"
            )
        result = query_tables(query, None, timezone, tables, "pass --table NAME=TABLE")
    print_rows(result.to_reader(), "json" if json else output_format, limit, Layout(wide, expanded))


def changes(
    table: Table,
    start: Annotated[
        Text, option("The first version, or the first one at or after a time; 0 by default.", "VERSION|TIME")
    ] = None,
    end: Annotated[
        Text,
        option("The last version, or the last one at or before a time; latest by default.", "VERSION|TIME"),
    ] = None,
    column: Columns = None,
    where: Where = None,
    timezone: TimeZone = UTC,
    limit: RowLimit = None,
    output_format: Format = "table",
    json: JsonFormat = False,
    wide: Wide = False,
    expanded: Expanded = False,
) -> None:
    """Print inserted, deleted and updated rows from the change data feed of a table."""
    with showing_progress(if_redirected=True):
        scan = read_changes(
            handle(table),
            start=_version_or_time(start),
            end=_version_or_time(end),
            columns=parse_columns(column),
            where=where,
            timezone=timezone,
        )
        print_rows(scan.to_reader(), "json" if json else output_format, limit, Layout(wide, expanded))


def serve(
    table: Table,
    column: Columns = None,
    host: Annotated[
        str, option("The address to listen on; other machines reach only others than 127.0.0.1.", "HOST")
    ] = "127.0.0.1",
    port: Annotated[int, option("The port; a free one by default.", "PORT", min=0)] = 0,
    version: Version = None,
    timestamp: Timestamp = None,
) -> None:
    """Serve a table as plain Parquet files over HTTP, until Ctrl-C.

    Readers of Parquet open the printed URLs, with each shredded path as a plain typed column. Files are
    served as they are, with other footers. The URLs have a secret path: anyone with a URL reads the table.
    """
    # Imported here, because other commands need no server.
    from ...views.files import View
    from ...views.server import ViewServer

    with showing_progress(if_redirected=True):
        view = View.of(handle(table), parse_columns(column), version=version, timestamp=timestamp)
        server = ViewServer(view, host, port)
    with server:
        out = console()
        print_lines(out, *server.urls())
        sys.stdout.flush()
        print_hint(f"{server.url} lists them; press Ctrl-C to stop")
        server.serve_forever()


def _version_or_time(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdecimal() else text
