"""Parts of the HTML pages: the document with its styles and script, trees of rows, and bounds pictures.

A page is one file that loads nothing. Its content is complete without the script, which adds search and
sorting. The policy of the page permits only this script, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from .._text import shorten
from ..errors import printable
from .bounds import PathBounds, key_text, picture
from .inspection import Leaf, Node

MAX_OPEN_ROWS = 60
"""A tree of at most this many rows is expanded."""

COMMAND = re.compile(r"`(delta-variant [a-z -]+)`")
MAX_INDENT = 12
MAX_PICTURES = 24


@cache
def _resource(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def html_text(value: object) -> str:
    """Return text with markup and invisible characters escaped."""
    return escape(printable(str(value)))


def html_sentence(text: str) -> str:
    """Return text as `html_text` does, with its commands as code."""
    return COMMAND.sub(r"<code>\1</code>", html_text(text))


def document(
    title: str, heading: str, subtitle: str, parts: Iterable[str], *, style: str = "", has_script: bool = True
) -> str:
    """Return a page. `parts` are HTML, `style` is CSS in addition, the other texts are escaped here."""
    policy, script = "default-src 'none'; style-src 'unsafe-inline'", ""
    if has_script:
        source = _resource("page.js")
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        policy, script = f"{policy}; script-src 'sha256-{digest}'", f"<script>{source}</script>"
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html_text(title)}</title><style>\n{_resource('page.css')}{style}</style></head><body><main>",
        f'<header><h1>{html_text(heading)}</h1><p class="quiet">{html_text(subtitle)}</p></header>',
    )
    return "\n".join([*head, *parts, f"</main>{script}</body></html>\n"])


def tile(figure: str, what: str, kind: str = "") -> str:
    """Return a figure with its caption, an item of a `dl.tiles`."""
    return f'<div class="tile {kind}"><dd>{html_text(figure)}</dd><dt>{html_text(what)}</dt></div>'


def percent(part: float, whole: float) -> str:
    """Return a share in percent, rounded so that 0 and 100 stand for nothing and everything."""
    if not part or not whole:
        return "0 %"
    share = 100 * part / whole
    if share > 99.5 and part < whole:
        return "> 99 %"
    if share < 0.1:
        return "< 0.1 %"
    return f"{share:.1f} %" if share < 9.95 else f"{share:.0f} %"


@dataclass(frozen=True)
class Row:
    """A row of a tree: its name as HTML, the cells next to it as HTML with their classes, and its children.

    `bytes` and `share` are the keys of sorting.
    """

    name: str
    cells: Sequence[tuple[str, str]]
    bytes: int = 0
    share: float = 0
    children: Sequence[Row] = ()

    def count(self) -> int:
        """Return the number of rows, the row itself included."""
        # Rows can be deeper than the calls of Python.
        number, level = 0, [self]
        while level:
            number += len(level)
            level = [child for row in level for child in row.children]
        return number


def tree(
    label: str, headings: Sequence[tuple[str, str]], rows: Sequence[Row], kind: str = ""
) -> Iterator[str]:
    """Yield rows with headings, search and sorting. Rows with children are expanded without a script, too."""
    number = sum(row.count() for row in rows)
    yield f'<section class="list {kind}" data-rows="{number}" aria-label="{html_text(label)}">'
    yield '<div class="tools" hidden><label>Search <input type="search" autocomplete="off"></label>'
    yield '<label>Sort by <select><option value="">name</option><option value="b">bytes</option>'
    yield (
        '<option value="s">share of rows</option></select></label>'
        if kind != "files"
        else ('<option value="s">findings</option></select></label>')
    )
    if any(row.children for row in rows):
        yield '<button type="button" value="open">Expand all</button>'
        yield '<button type="button" value="">Collapse all</button>'
    yield '<output aria-live="polite"></output></div>'
    cells = "".join(f'<span class="{kind}">{html_text(text)}</span>' for text, kind in headings)
    yield f'<div class="row head" aria-hidden="true">{cells}</div><ul>'
    pending: list[str | tuple[Row, int]] = [(row, 0) for row in reversed(rows)]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
            continue
        row, depth = item
        yield _row(row, depth, is_open=number <= MAX_OPEN_ROWS)
        if row.children:
            pending += ["</ul></details></li>", *((child, depth + 1) for child in reversed(row.children))]
    yield "</ul></section>"


def _row(row: Row, depth: int, *, is_open: bool) -> str:
    """Return a row, or its start if it has children, which follow it."""
    cells = "".join(f'<span class="{kind}">{text}</span>' for text, kind in row.cells)
    indent = f' style="--d:{min(depth, MAX_INDENT)}"' if depth else ""
    content = f'<span class="name"{indent}>{row.name}</span>{cells}'
    keys = f'data-b="{row.bytes}" data-s="{row.share:.4g}"'
    if not row.children:
        return f'<li {keys}><div class="row">{content}</div></li>'
    shown = " open" if is_open or not depth else ""
    return f'<li {keys}><details{shown}><summary class="row">{content}</summary><ul>'


def nested(rows: Iterable[tuple[Sequence[str | None], Row]]) -> list[Row]:
    """Return rows with the rows below their paths as children. Parents precede their children."""
    roots: list[Row] = []
    by_path: dict[tuple[str | None, ...], list[Row]] = {}
    for path, row in rows:
        children: list[Row] = []
        made = Row(row.name, row.cells, row.bytes, row.share, children)
        # A path with several types has several rows; its children are below the first.
        by_path.setdefault(tuple(path), children)
        by_path.get(tuple(path[:-1]), roots).append(made) if path else roots.append(made)
    return roots


def subtree_bytes(nodes: Iterable[Node]) -> dict[tuple[str | None, ...], int]:
    """Return the bytes of the leaf columns at and below each path."""
    sizes: Counter[tuple[str | None, ...]] = Counter()
    for node in nodes:
        sizes.update({node.path[:length]: node.bytes for length in range(len(node.path) + 1)})
    return dict(sizes)


def values_of(leaf: Leaf | None) -> int:
    """Return the number of values in a leaf column, 0 if it is absent or unknown."""
    return 0 if leaf is None or leaf.values is None else leaf.values


def typed_share(nodes: Iterable[Node]) -> str:
    """Return the percentage of the values of Variants that are in a typed column."""
    pairs = [(values_of(node.typed_value), values_of(node.value)) for node in nodes]
    return percent(sum(typed for typed, _ in pairs), sum(map(sum, pairs)))


def share_bar(node: Node, rows: int) -> str:
    """Return a bar of the shares of typed and other values, for list elements as shares of the elements."""
    typed, rest = values_of(node.typed_value), values_of(node.value)
    is_element = None in node.path
    whole = typed + rest if is_element else max(rows, typed + rest)
    if not whole or not typed + rest:
        return '<span class="quiet">empty</span>' if node.type not in ("object", "array") else ""
    widths = (("typed", 100 * typed / whole), ("rest", 100 * rest / whole))
    bars = "".join(f'<i class="{kind}" style="width:{width:.3g}%"></i>' for kind, width in widths if width)
    elements = f"{typed + rest:,} element{'' if typed + rest == 1 else 's'}"
    label = elements if is_element else percent(typed + rest, whole)
    return f'<span class="bar" aria-hidden="true">{bars}</span><small>{label}</small>'


def rounded(average: float) -> str:
    """Return an average with three digits, or all digits before the point: `7.88`, `1,000`."""
    return f"{average:,.0f}" if average >= 100 else f"{average:.3g}"


def pictures(bounds: Iterable[PathBounds]) -> Iterator[str]:
    """Yield the pictures of the paths whose lookups read the fewest files, at most MAX_PICTURES."""
    yield '<div class="pictures">'
    for each in sorted(bounds, key=lambda each: each.read_by_lookup)[:MAX_PICTURES]:
        yield from _figure(each)
    yield "</div>"


def _figure(bounds: PathBounds) -> Iterator[str]:
    """Yield the picture of the bounds of a path, graded by the share of files that a lookup reads."""
    lookup = bounds.read_by_lookup
    share = lookup / bounds.files
    grade = "good" if share <= 0.2 else "fair" if share <= 0.6 else "poor"
    name = shorten(printable(key_text(bounds.column, bounds.key)), 80)
    scale = "" if bounds.is_to_scale else ", not to scale"
    yield f'<figure class="{grade if bounds.files > 1 else "single"}"><figcaption><b>{escape(name)}</b>'
    yield f"<small>{html_text(bounds.type)}{scale}</small>"
    if bounds.files > 1:
        yield f'<span class="chip">a lookup reads {rounded(lookup)} of {bounds.files:,} files</span>'
    yield f"</figcaption>{picture(bounds)}"
    ends = (shorten(printable(end), 28) for end in (bounds.least, bounds.greatest))
    yield '<div class="axis">' + "".join(f"<span>{escape(end)}</span>" for end in ends) + "</div></figure>"
