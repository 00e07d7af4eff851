"""The commands `inspect`, `stats`, `z85 decode` and `z85 encode`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import typer

from ..._text import count, fill, path_step, size_text
from ...operations.file_stats import file_stats
from ...protocol.statistics import leaves_of, value_at
from ...reports import bounds
from ...reports.bounds import key_text
from ...reports.explorer import explore
from ...reports.explorer_page import explorer_page
from ...reports.inspection import (
    FileShredding,
    InspectedFile,
    Node,
    data_files,
    merge,
    shredding_of,
    undecodable_bounds,
)
from ..help import Command, Group, examples_text
from ..options import Expanded, FileOrTable, Json, Text, Version, Wide, argument, handle, option
from ..output import FINDINGS, console, print_hint, print_json, print_lines, showing_progress, write_page
from ..report import ENCODER, Layout, Report, headings, print_rows, render

SHOWN_FILES = 10


def inspect(
    target: FileOrTable,
    version: Version = None,
    html: Annotated[Text, option("Write an HTML page with values and estimates.", "FILE")] = None,
    wide: Wide = False,
    expanded: Expanded = False,
    json: Json = False,
) -> None:
    """Print how Variant columns are shredded: type, fill rate, bytes and bounds of each path.

    clean counts the files in which an engine can read the column of a path alone, because all values have its
    type. The page of --html also has example values, and estimates of what another shredding or sort order
    would change.
    """
    if html is not None:
        if Path(target).is_file():
            raise typer.BadParameter("--html describes a table: pass a Delta table instead of a file")
        with showing_progress():
            page = explorer_page(explore(handle(target), version))
        write_page(html, page)
    with showing_progress():
        shredding = merge([shredding_of(file) for file in data_files(handle(target), version)])
    render(_shredding(target, shredding), json=json, layout=Layout(wide, expanded))


PATHS = headings(
    "path: key, type, typed_value: right, value: right, clean: right, bytes: right, min: detail, max: detail"
)


def _shredding(name: str, shredding: FileShredding) -> Report:
    files, groups = count(shredding.files, "file"), count(shredding.row_groups, "row group")
    counts = f"{count(shredding.rows, 'row')}, {size_text(shredding.bytes)} in {files}, {groups}"
    if shredding.residual_files:
        own = count(shredding.residual_files, "file")
        counts = f"{counts}, {count(shredding.residual_rows, 'residual row')} separated into {own}"
    lines = [f"{name}: {counts}", *(f"written by {writer}" for writer in shredding.created_by)]
    tables = []
    for column, content in shredding.columns.items():
        first, *rows = (_path_cells(column, node, shredding.rows) for node in content.paths)
        metadata = ("  (metadata)", "", "", "", "", size_text(content.metadata.bytes), "", "")
        tables.append((PATHS, [first, metadata, *rows]))
    return Report(shredding, lines if tables else [*lines, "no Variant column"], tables)


def _path_cells(column: str, node: Node, rows: int) -> tuple[str, ...]:
    name = "  " * len(node.path) + path_step(node.path[-1]) if node.path else column
    fills = (fill(leaf.values, rows, node.path) if leaf else "" for leaf in (node.typed_value, node.value))
    sides = (bytes(bound).decode() if bound else "" for bound in (node.min, node.max))
    return name, node.type, *fills, _clean_text(node), size_text(node.bytes), *sides


def _clean_text(node: Node) -> str:
    """Return in how many files other engines read a path alone; none does this for paths through arrays."""
    if not node.files or None in node.path or node.type in ("object", "array", "variant"):
        return ""
    return "all" if node.clean_files == node.files else f"{node.clean_files:,} of {node.files:,}"


def stats(
    target: FileOrTable,
    version: Version = None,
    exact: Annotated[
        bool, option("Compute the statistics of a table from its data.", names="--exact")
    ] = False,
    limit: Annotated[
        int | None, option(f"Maximum number of files; {SHOWN_FILES} by default, all with --json.", "N", min=1)
    ] = None,
    csv: Annotated[bool, option("Print a row per file of a table as CSV.", names="--csv")] = False,
    parquet: Annotated[
        Text, option("Write a row per file of a table to a Parquet file.", "FILE", "--parquet")
    ] = None,
    long: Annotated[
        bool, option("With --csv or --parquet: a row per file and column or path.", names="--long")
    ] = False,
    wide: Wide = False,
    expanded: Expanded = False,
    json: Json = False,
) -> None:
    """Print the statistics in the log of a table, or compute those of a Parquet file.

    With --json, one object per file. Exit status 1 means that bounds of these files cannot be decoded.
    """
    if csv or parquet is not None:
        if exact or json or Path(target).is_file():
            raise typer.BadParameter("--csv and --parquet have the statistics in the log of a table")
        _write_rows(file_stats(handle(target), long=long, version=version), limit, csv, parquet)
        return
    if long:
        raise typer.BadParameter("--long needs --csv or --parquet")
    messages: list[str] = []
    shown = SHOWN_FILES if limit is None and not json else limit
    with showing_progress(if_redirected=True):
        files = data_files(handle(target), version, exact=exact)
        for file in islice(files, shown):
            if not json:
                records = file.stats.num_records
                number = "unknown" if records is None else f"{records:,}"
                print_lines(console(), f"{file.path}: {number} rows")
            render(_statistics(file), json=json, layout=Layout(wide, expanded))
            messages += undecodable_bounds(file)
        is_rest = next(files, None) is not None
    if is_rest and not json:
        print_hint(f"the first {count(shown or 0, 'file')}: --limit shows more")
    if messages:
        print_lines(console(stderr=True), *messages)
        raise typer.Exit(FINDINGS)


def _write_rows(rows: pa.Table, limit: int | None, csv: bool, parquet: str | None) -> None:
    rows = rows if limit is None else rows.slice(0, limit)
    if csv:
        print_rows(rows.to_reader(), "csv", None)
    if parquet is not None:
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink)
        write_page(parquet, sink.getvalue().to_pybytes())


BOUNDS = headings("column: key, type, nulls: right, min, max")


def _statistics(file: InspectedFile) -> Report:
    """Return the `stats` object of the `add` action and the decoded Variant bounds of a file."""
    variants = {name: file.bounds[path] for path, name in file.variants.items()}
    json = {"path": file.path, "stats": msgspec.Raw(file.stats.to_json().encode()), "variants": variants}
    return Report(json, tables=[(BOUNDS, _bounds_cells(file))])


def _bounds_cells(file: InspectedFile) -> Iterator[tuple[str, ...]]:
    stats = file.stats
    members = (stats.null_count, stats.min_values, stats.max_values)
    known = (path for member in members for path, _ in leaves_of(member))
    for path in dict.fromkeys([*known, *file.variants]):
        nulls = value_at(stats.null_count, path)
        number = f"{nulls:,}" if type(nulls) is int else _cell(nulls)
        if path not in file.variants:
            sides = [_cell(value_at(side, path)) for side in (stats.min_values, stats.max_values)]
            yield ".".join(path), "", number, *sides
            continue
        name = file.variants[path]
        yield name, "variant", number, "", ""
        for path_key, bound in file.bounds[path].items():
            yield f"  {key_text(name, path_key)}", bound.type, "", _cell(bound.min), _cell(bound.max)


def _cell(value: Any) -> str:
    return "" if value is None else ENCODER.encode(value).decode()


def decode(
    text: Annotated[str, typer.Argument(help="The string of a Variant column in minValues or maxValues.")],
) -> None:
    """Print the Variant in a statistics string as JSON: the value and type of each path."""
    print_json(bounds.decode(text), indented=True)


def encode(text: Annotated[str, argument("JSON", "An object that maps paths to values.")]) -> None:
    """Print a JSON object that maps paths to values as a statistics string.

    The type of a value is inferred as by parse_json, or given as in {"type": "bigint", "value": 1}.
    """
    print(bounds.encode(text))


z85 = typer.Typer(
    cls=Group,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Decode and encode the Variants in statistics.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
EXAMPLES = {
    decode: "delta-variant z85 decode '5DI>pbWhTgwg7T:0rr933<M+j'",
    encode: "delta-variant z85 encode '{\"$\": 7}'",
}
"""The commands of `z85`, and an example of each."""

for run, example in EXAMPLES.items():
    z85.command(cls=Command, epilog=examples_text((example,)))(run)
