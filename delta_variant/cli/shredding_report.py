"""Print how data files are shredded: a line for each path of their Variant columns."""

from __future__ import annotations

from .._text import count, fill, path_step, size_text
from ..reports.shredding_tree import FileShredding, Node
from .tables import Heading, Layout, print_table
from .terminal import console, print_lines

__all__ = ["print_tree"]

HEADINGS: tuple[Heading, ...] = (
    ("path", "key"),
    ("type", "left"),
    ("typed_value", "right"),
    ("value", "right"),
    ("clean", "right"),
    ("bytes", "right"),
    ("min", "detail"),
    ("max", "detail"),
)


def print_tree(name: str, shredding: FileShredding, layout: Layout) -> None:
    """Print a heading, then the paths of each Variant column as an indented table."""
    out = console()
    files, groups = count(shredding.files, "file"), count(shredding.row_groups, "row group")
    counts = f"{count(shredding.rows, 'row')}, {size_text(shredding.bytes)} in {files}, {groups}"
    if shredding.residual_files:
        own = count(shredding.residual_files, "file")
        counts = f"{counts}, {count(shredding.residual_rows, 'residual row')} separated into {own}"
    print_lines(out, f"{name}: {counts}", *(f"written by {writer}" for writer in shredding.created_by))
    for column, content in shredding.columns.items():
        print_lines(out, "")
        rows = [_cells(column, node, shredding.rows) for node in content.paths]
        rows.insert(1, ("  (metadata)", "", "", "", "", size_text(content.metadata.bytes), "", ""))
        print_table(out, HEADINGS, rows, layout)
    if not shredding.columns:
        print_lines(out, "no Variant column")


def _cells(column: str, node: Node, rows: int) -> tuple[str, ...]:
    name = "  " * len(node.path) + path_step(node.path[-1]) if node.path else column
    fills = (fill(leaf.values, rows, node.path) if leaf else "" for leaf in (node.typed_value, node.value))
    total = sum(leaf.bytes for leaf in (node.typed_value, node.value) if leaf)
    sides = (bytes(bound).decode() if bound else "" for bound in (node.min, node.max))
    return name, node.type, *fills, _clean_text(node), size_text(total), *sides


def _clean_text(node: Node) -> str:
    """Return in how many files other engines read a path alone; none does this for paths through arrays."""
    if not node.files or None in node.path or node.type in ("object", "array", "variant"):
        return ""
    return "all" if node.clean_files == node.files else f"{node.clean_files:,} of {node.files:,}"
