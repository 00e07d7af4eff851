"""A table as one HTML page: its paths with types, values and bytes, and what other layouts would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .._text import count, path_step, path_text, shorten, size_text
from ..errors import printable
from ..operations.describe.summary import EMPTY, PathSummary
from ..protocol.statistics import MAX_CHARACTER
from .explorer import Column, Exploration, ShreddingChange
from .inspection import Node
from .page import (
    Row,
    document,
    html_sentence,
    html_text,
    nested,
    percent,
    pictures,
    rounded,
    share_bar,
    subtree_bytes,
    tile,
    tree,
    typed_share,
    values_of,
)

MAX_SORTS = 10
MAX_CHANGED_PATHS = 20
MAX_EXAMPLE_CHARACTERS = 40
"""The upper bound of a long string ends with it (PROTOCOL.md, "Per-file Statistics")."""

RESHRED = "`delta-variant optimize --reshred`"
MIN_SAVING = 0.02
"""A smaller change of bytes is within the error of the estimates."""

HEADINGS = (
    ("path, example values", "name"),
    ("type", "type"),
    ("rows", "fill"),
    ("distinct", "number distinct"),
    ("bytes", "number"),
)


def explorer_page(exploration: Exploration) -> str:
    name = exploration.name.rstrip("/").rsplit("/", 1)[-1]
    rows, files = count(exploration.rows, "row"), count(exploration.files, "file")
    subtitle = f"{exploration.name}: version {exploration.version}, {rows} in {files}"
    return document(f"Paths of {name}", name, subtitle, _parts(exploration))


def _parts(exploration: Exploration) -> Iterator[str]:
    yield from _overview(exploration)
    if not exploration.columns:
        yield '<p class="quiet">The table has no file with a Variant column.</p>'
    for name, column in exploration.columns.items():
        yield f"<section><h2>Paths of {html_text(name)}</h2>"
        yield '<p class="quiet">Rows that have a value: <i class="key typed"></i> in a typed column, '
        yield '<i class="key rest"></i> in <code>value</code>; <i class="key sampled"></i> objects, arrays '
        yield 'and paths without a column, as a share of the sample; <i class="key null"></i> JSON null.</p>'
        yield from tree(f"Paths of {name}", HEADINGS, _rows(name, column, exploration), "explorer")
        yield "</section>"
        yield from _shredding(name, column, exploration)
        yield from _sorting(name, column, exploration)
        yield from _pictures(column, exploration)


def _overview(exploration: Exploration) -> Iterator[str]:
    paths = sum(1 for column in exploration.columns.values() for path in column.paths if path)
    nodes = [node for each in exploration.columns.values() if each.shredded for node in each.shredded.paths]
    yield '<section class="health single"><dl class="tiles">'
    yield tile(f"{exploration.rows:,}", "rows")
    yield tile(f"{exploration.files:,}", "data files")
    yield tile(size_text(exploration.bytes), "of data")
    yield tile(f"{paths:,}", "paths in the sample")
    yield tile(typed_share(nodes), "of Variant values are typed")
    yield "</dl>"
    sampled = f"{count(exploration.sampled_rows, 'row')} of {count(exploration.sampled_files, 'file')}"
    yield f'<p class="quiet">Example values, distinct values and estimates come from a sample of {sampled}.'
    yield "</p></section>"


def _rows(name: str, column: Column, exploration: Exploration) -> list[Row]:
    """Return the shredded paths and the paths that only the sample has, parents first."""
    nodes: dict[tuple[str | None, ...], list[Node]] = {}
    for node in column.shredded.paths if column.shredded else ():
        nodes.setdefault(node.path, []).append(node)
    paths = sorted(
        {*nodes, *column.paths}, key=lambda path: [(step is not None, step or "") for step in path]
    )
    sizes = subtree_bytes(column.shredded.paths if column.shredded else ())
    rows: list[tuple[tuple[str | None, ...], Row]] = []
    for path in paths:
        label = path_step(path[-1]) if path else name
        sample = column.paths.get(path)
        found: Sequence[Node | None] = nodes.get(path) or [None]
        rows += ((path, _row(label, path, node, sample, exploration, sizes.get(path, 0))) for node in found)
    return nested(rows)


def _row(
    label: str,
    path: tuple[str | None, ...],
    node: Node | None,
    sample: PathSummary | None,
    exploration: Exploration,
    size: int,
) -> Row:
    bar = _Bar() if sample is None else _Bar(sampled=sample.filled, nulls=sample.nulls)
    elements = ""
    if node is not None and node.type not in ("object", "array"):
        # Elements of lists are counted instead of rows.
        if None in path:
            elements = share_bar(node, exploration.rows)
        else:
            bar = _stored(node, bar.nulls, exploration.rows)
    cells = (
        (_types(node, sample), "type"),
        (elements or bar.html(), "fill"),
        (_distinct(path, sample, exploration), "number distinct"),
        (html_text(size_text(size)) if node else "", "number"),
    )
    return Row(f"{html_text(label)}{_values(node, sample)}", cells, size, bar.filled)


class _Bar(NamedTuple):
    """The shares of rows with a value in a typed column, in `value`, or in the sample, and with a null."""

    typed: float = 0
    rest: float = 0
    sampled: float = 0
    nulls: float = 0

    @property
    def filled(self) -> float:
        return self.typed + self.rest + self.sampled

    def html(self) -> str:
        shares = zip(("typed", "rest", "sampled", "null"), self, strict=True)
        widths = ((kind, 100 * share) for kind, share in shares if share)
        bars = "".join(f'<i class="{kind}" style="width:{width:.3g}%"></i>' for kind, width in widths)
        return f'<span class="bar" aria-hidden="true">{bars}</span><small>{percent(self.filled, 1)}</small>'


def _stored(node: Node, nulls: float, rows: int) -> _Bar:
    """Return the bar of a path with a column; only the share of nulls in `value` is that of the sample."""
    typed, others = (values_of(leaf) / max(rows, 1) for leaf in (node.typed_value, node.value))
    nulls = others if node.value is not None and node.value.only_null else min(nulls, others)
    return _Bar(typed, others - nulls, nulls=nulls)


def _types(node: Node | None, sample: PathSummary | None) -> str:
    """Return the type of the column, or the most frequent one of the values, and the other types."""
    shares = {} if sample is None else dict(sample.types)
    first = node.type if node is not None and node.type != "variant" else next(iter(shares), "null")
    shares.pop(first.partition("(")[0], None)
    others = ", ".join(f"{name} {percent(share, 1)}" for name, share in shares.items())
    return f"{html_text(first)}{f'<br><small>{html_text(others)}</small>' if others else ''}"


def _distinct(path: tuple[str | None, ...], sample: PathSummary | None, exploration: Exploration) -> str:
    if sample is None or sample.distinct is None or None in path:
        return ""
    is_whole = exploration.sampled_rows >= exploration.rows
    return f"{'' if is_whole else '≈ '}{sample.distinct:,} <small>distinct</small>"


def _values(node: Node | None, sample: PathSummary | None) -> str:
    """Return example values, and the bounds over all files if every file has bounds."""
    parts = []
    if sample is not None and sample.examples:
        parts.append(", ".join(_shown(each or EMPTY) for each in sample.examples))
    if node is not None and node.min and node.max:
        least, greatest = (bytes(bound).decode() for bound in (node.min, node.max))
        parts.append(f"from {_shown(least)} to {_shown(greatest.replace(MAX_CHARACTER, '…'))}")
    return f' <small class="values">{"<br>".join(parts)}</small>' if parts else ""


def _shown(text: str) -> str:
    return f"<span>{html_text(shorten(printable(text), MAX_EXAMPLE_CHARACTERS))}</span>"


def _shredding(name: str, column: Column, exploration: Exploration) -> Iterator[str]:
    change = column.shredding
    yield f"<section><h2>Another shredding of {html_text(name)}</h2>"
    if change is None:
        yield '<p class="quiet">The sample has no values.</p></section>'
        return
    yield f"<p>{html_sentence(_advice(change))}</p>"
    yield '<table class="estimates"><thead><tr><th scope="col">shredding schema</th>'
    yield '<th scope="col" class="number">bytes</th>'
    yield '<th scope="col" class="number">change</th></tr></thead><tbody>'
    options = (("now", change.now), ("inferred", change.inferred), ("none", change.unshredded))
    for option, size in options:
        difference = "" if option == "now" else _difference(size, change.now)
        estimate = "" if option == "now" else "≈ "
        yield f'<tr><th scope="row">{option}</th>'
        yield f'<td class="number">{estimate}{html_text(size_text(size))}</td>'
        yield f'<td class="number">{difference}</td></tr>'
    yield "</tbody></table>"
    yield from _changed(name, "Becomes a typed column", change.added)
    yield from _changed(name, "Is no longer a typed column", change.removed)
    yield '<p class="quiet">The sample was encoded with each schema; the bytes of the table are scaled by '
    yield "the result.</p></section>"


def _advice(change: ShreddingChange) -> str:
    saved = change.now - change.inferred
    if change.unshredded < min(change.now, change.inferred) * (1 - MIN_SAVING):
        saved = change.now - change.unshredded
        return (
            f"Without shredding, the column would be about {size_text(saved)} smaller, but a query for one "
            "path would read all of it, and no file could be skipped."
        )
    if saved > change.now * MIN_SAVING:
        return f"The inferred schema would save about {size_text(saved)}; {RESHRED} writes it."
    if change.added:
        paths = count(len(change.added), "more path")
        return f"The inferred schema would save no bytes, but {paths} could be read and skipped alone."
    return "The present schema is as good as the inferred one."


def _difference(size: int, now: int) -> str:
    if not now or size == now:
        return "0 %"
    return f"{'+' if size > now else '-'}{percent(abs(size - now), now)}"


def _changed(name: str, label: str, paths: Sequence[tuple[str | None, ...]]) -> Iterator[str]:
    if not paths:
        return
    yield f"<details><summary>{html_text(label)}: {count(len(paths), 'path')}</summary><ul>"
    for path in paths[:MAX_CHANGED_PATHS]:
        yield f"<li>{html_text(shorten(printable(path_text(name, path)), 120))}</li>"
    yield "</ul>"
    if len(paths) > MAX_CHANGED_PATHS:
        yield f'<p class="quiet">and {len(paths) - MAX_CHANGED_PATHS:,} more</p>'
    yield "</details>"


def _sorting(name: str, column: Column, exploration: Exploration) -> Iterator[str]:
    yield f"<section><h2>Another sort order by {html_text(name)}</h2>"
    if exploration.files < 2:
        yield '<p class="quiet">The table has one file, so there is nothing to skip.</p></section>'
        return
    if not column.sorting:
        yield '<p class="quiet">The sample has no scalar path to sort by.</p></section>'
        return
    yield "<p>What a query for one value of a path reads on average, now and if the table were sorted by "
    yield "this path.</p>"
    yield '<div class="wide"><table class="estimates"><thead><tr><th scope="col">path</th>'
    yield '<th scope="col" class="number">now</th>'
    yield '<th scope="col" class="number">sorted</th></tr></thead><tbody>'
    for each in column.sorting[:MAX_SORTS]:
        path = html_text(shorten(printable(path_text(name, each.path)), 80)).replace(".", ".<wbr>")
        yield f'<tr><th scope="row">{path}</th>'
        for sign, files in (("", each.before), ("≈ ", each.after)):
            share, size = files / exploration.files, exploration.bytes * files / exploration.files
            yield f'<td class="number">{sign}{_files(files)} ({percent(share, 1)})<br>'
            yield f"<small>{html_text(size_text(size))}</small></td>"
        yield "</tr>"
    yield "</tbody></table></div>"
    if len(column.sorting) > MAX_SORTS:
        yield f'<p class="quiet">and {len(column.sorting) - MAX_SORTS:,} more that gain as little or less</p>'
    yield '<p class="quiet">The value is that of a row chosen at random. Sorting by one path can make '
    yield "queries for others read more files. <code>delta-variant optimize --sort-by</code> sorts a table."
    yield "</p></section>"


def _pictures(column: Column, exploration: Exploration) -> Iterator[str]:
    if not column.bounds:
        return
    yield '<section><h2>Bounds of the files</h2><p class="quiet">One bar per file from its minimum to its '
    yield "maximum.</p>"
    yield from pictures(column.bounds)
    yield "</section>"


def _files(number: float) -> str:
    return f"{rounded(number)} file{'' if rounded(number) == '1' else 's'}"
