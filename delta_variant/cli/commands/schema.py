"""The commands `create`, `describe`, `alter`, which makes one kind of change, and `drop-feature`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated

import msgspec
import typer

from ..._text import count, rows_text, size_text
from ...input.files import names_file
from ...log.commit_context import CommitResult
from ...log.deletion_vectors import count_deleted_rows
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot
from ...operations.alter.columns import add_columns, change_type, drop_column, plan_drop_column, rename_column
from ...operations.alter.constraints import add_constraint, drop_constraint
from ...operations.alter.table_properties import set_properties, unset_properties
from ...operations.create import create_table
from ...operations.describe.describe import describe as describe_paths
from ...operations.drop_feature import plan_drop_feature, run_drop_feature
from ...protocol.types import sql_type
from ...read.rows import count_rows
from ..confirmation import confirm
from ..interrupts import all_or_nothing
from ..options import (
    DryRun,
    Json,
    Table,
    Text,
    Texts,
    Timestamp,
    Version,
    Wide,
    Yes,
    argument,
    handle,
    option,
    parse_pair,
    parse_pairs,
)
from ..output import showing_progress
from ..report import Layout, Report, Rows, facts, headings, render


def describe(
    table: Annotated[str, argument("TABLE|FILE", "A Delta table, or a file of JSON, CSV or Parquet.")],
    paths: Annotated[
        bool, option("Print each path of the Variants with its types, fill and values.", names="--paths")
    ] = False,
    version: Version = None,
    timestamp: Timestamp = None,
    since: Annotated[
        int | None, option("With --paths, compare the paths with those of a version.", "VERSION", min=0)
    ] = None,
    wide: Wide = False,
    json: Json = False,
) -> None:
    """Print the schema and properties of a table, or what its paths or those of a file have.

    Of a table, print the schema, properties, features, protocol and size, or with --paths what its columns
    and paths have. Of a file of JSON, CSV or Parquet, print its paths: it need not be in a table. A ~ marks a
    figure that is estimated from a sample of the rows.
    """
    if paths or names_file(table):
        source = table if names_file(table) else handle(table)
        summary = describe_paths(source, version=version, timestamp=timestamp, since=since)
        report = Report([asdict(each) for each in summary.paths], [summary.title], [(PATHS, summary.cells())])
        render(report, json=json, layout=Layout(wide))
        return
    if since is not None:
        raise typer.BadParameter("--since requires --paths")
    snapshot = load_snapshot(handle(table), version, timestamp=timestamp)
    render(_description(snapshot), json=json, layout=Layout(wide))


def create(
    table: Table,
    column: Annotated[list[str], argument("COLUMN...", "A definition in SQL, such as 'id bigint NOT NULL'.")],
    partition_by: Annotated[Texts, option("Partition the table; repeatable.", "COLUMN")] = None,
    cluster_by: Annotated[
        Texts, option("Cluster the table by a column or nested field; repeatable.", "COLUMN")
    ] = None,
    table_property: Annotated[
        Texts, option("Set a property of the table; repeatable.", "KEY=VALUE", "--property")
    ] = None,
    if_not_exists: Annotated[
        bool, option("Do nothing if the table exists.", names="--if-not-exists")
    ] = False,
    json: Json = False,
) -> None:
    """Create a table without rows.

    A definition is `NAME TYPE`, then NOT NULL, DEFAULT value, GENERATED ALWAYS AS (expression) and COMMENT
    'text' as needed; or `CONSTRAINT NAME CHECK (condition)`.
    """
    with all_or_nothing():
        version = create_table(
            handle(table),
            column,
            mode="ignore" if if_not_exists else "error",
            partition_by=partition_by,
            cluster_by=cluster_by,
            configuration=parse_pairs("--property", table_property) or None,
        ).version
    done = "the table exists, nothing to do" if version is None else f"version {version}"
    render(Report({"table": table, "version": version}, [f"{table}: {done}"]), json=json)


PATHS = headings("path: key, types, filled: right, distinct: right, column, values: detail")


COLUMNS = headings("column: key, type, nullable, comment")
PROPERTIES = headings("property: key, value")


def _description(snapshot: Snapshot) -> Report:
    metadata, files = snapshot.metadata, snapshot.files
    rows, deleted = count_rows(snapshot, files), count_deleted_rows(files)
    columns = [
        {"name": field.name, "type": sql_type(field.type), "nullable": field.nullable}
        for field in snapshot.schema.fields
    ]
    json = {
        "table": snapshot.uri,
        "version": snapshot.version,
        **facts(metadata, "id name description"),
        "rows": rows,
        "deleted_rows": deleted,
        "files": snapshot.num_files,
        "bytes": snapshot.num_bytes,
        "partition_columns": snapshot.partition_columns,
        "protocol": facts(snapshot.protocol, "min_reader_version min_writer_version"),
        "features": _features(snapshot),
        "columns": columns,
        "properties": dict(snapshot.properties),
        "schema": msgspec.Raw(metadata.schema_string.encode()),
    }
    cells = [
        (
            field.name,
            sql_type(field.type),
            "" if field.nullable else "not null",
            str((field.metadata or {}).get("comment", "")),
        )
        for field in snapshot.schema.fields
    ]
    tables: list[Rows] = [(COLUMNS, cells)]
    if snapshot.properties:
        tables.append((PROPERTIES, sorted(snapshot.properties.items())))
    return Report(json, _sentences(snapshot, rows_text(rows, deleted)), tables)


def _features(snapshot: Snapshot) -> list[str]:
    protocol = snapshot.protocol
    return sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})


def _sentences(snapshot: Snapshot, rows: str) -> Iterator[str]:
    size = f"{size_text(snapshot.num_bytes)} in {count(snapshot.num_files, 'file')}"
    yield f"{snapshot.uri}: version {snapshot.version}, {rows}, {size}"
    metadata, protocol = snapshot.metadata, snapshot.protocol
    for name, text in (("name", metadata.name), ("description", metadata.description)):
        if text:
            yield f"{name}: {text}"
    if snapshot.partition_columns:
        yield f"partitioned by: {', '.join(snapshot.partition_columns)}"
    yield f"protocol: reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"
    if features := _features(snapshot):
        yield f"features: {', '.join(features)}"


def alter(
    table: Table,
    set_property: Annotated[Texts, option("Set a table property; repeatable.", "KEY=VALUE", "--set")] = None,
    unset_property: Annotated[Texts, option("Remove a table property; repeatable.", "KEY", "--unset")] = None,
    add_column: Annotated[
        Texts, option("Add a column, such as event=variant; repeatable.", "NAME=TYPE")
    ] = None,
    new_type: Annotated[
        Text, option("Widen a column type, such as id=bigint.", "NAME=TYPE", "--change-type")
    ] = None,
    renamed: Annotated[
        Text, option("Rename a column or struct field.", "NAME=NEW", "--rename-column")
    ] = None,
    dropped: Annotated[Text, option("Drop a column or struct field.", "NAME", "--drop-column")] = None,
    constraint: Annotated[
        Text, option("Add a CHECK constraint, such as paid=amount>0.", "NAME=SQL", "--add-constraint")
    ] = None,
    dropped_constraint: Annotated[
        Text, option("Drop a CHECK constraint.", "NAME", "--drop-constraint")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Change properties, columns or constraints of a table with one commit."""
    changes: list[tuple[object, Callable[..., CommitResult], Callable[[], Sequence[object]]]] = [
        (set_property, set_properties, lambda: [parse_pairs("--set", set_property)]),
        (unset_property, unset_properties, lambda: [unset_property]),
        (add_column, add_columns, lambda: [parse_pairs("--add-column", add_column)]),
        (new_type, change_type, lambda: parse_pair("--change-type", new_type)),
        (renamed, rename_column, lambda: parse_pair("--rename-column", renamed)),
        (dropped, drop_column, lambda: [dropped]),
        (constraint, add_constraint, lambda: parse_pair("--add-constraint", constraint)),
        (dropped_constraint, drop_constraint, lambda: [dropped_constraint]),
    ]
    requested = [(run, arguments) for given, run, arguments in changes if given]
    if len(requested) != 1:
        raise typer.BadParameter("pass exactly one kind of change: each one is a separate commit")
    if dropped is None and dry_run:
        raise typer.BadParameter("--dry-run requires --drop-column")
    if dropped is not None:
        make = partial(plan_drop_column, handle(table), dropped)
        confirm("alter --drop-column", table, make, yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing(), showing_progress():
        [(run, arguments)] = requested
        version = run(handle(table), *arguments()).version
    done = "nothing to change" if version is None else f"version {version}"
    render(Report({"table": table, "version": version}, [f"{table}: {done}"]), json=json)


def drop_feature(
    table: Table,
    feature: Annotated[str, argument("FEATURE", "The name of the feature, such as variantShredding.")],
    truncate_history: Annotated[
        bool,
        option(
            "Delete earlier versions that use it, instead of protecting their checkpoints.",
            names="--truncate-history",
        ),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Remove a feature from the protocol, so that more readers and writers open the table.

    Files that use it are rewritten. Earlier versions can still be read; with --truncate-history, they are
    deleted when they are a day old, and the command has to be repeated then.
    """
    make = partial(plan_drop_feature, handle(table), feature, truncate_history=truncate_history)
    plan = confirm("drop-feature", table, make, yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing("repeat the command to complete it"), showing_progress():
        version = run_drop_feature(plan, handle(table)).version
    done = f"{table}: version {version} does not have the feature {feature}"
    render(Report({"table": table, "version": version}, [done]), json=json)
