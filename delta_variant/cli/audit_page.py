"""An audit as one static HTML page without external resources: health, findings, shredding, bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path

from ..errors import DeltaVariantError, InvalidStatisticsError
from ..log.snapshot import Snapshot
from ..operations.audit import Audit
from ..operations.audit.findings import SEVERITIES, Finding
from ..variant import paths as variant_paths
from .audit_report import NOUNS, by_file, scope_of
from .bounds import Bounds
from .bounds_picture import PathBounds, path_bounds, picture
from .inspected_file import InspectedFile, bounds_of, files_of
from .shredding_tree import FileShredding, Leaf, Node, merge, shredding_of
from .terminal import count, path_step, path_text, printable, shorten, size_text

__all__ = ["audit_page"]

MAX_PICTURES = 24
MAX_FINDINGS = 200
"""The page shows at most this many findings of a file; the JSON output contains all of them."""

MAX_OPEN_GROUPS = 6

COMMAND = re.compile(r"`(delta-variant [a-z]+)`")

# The page loads no resource and runs no script.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def audit_page(audit: Audit) -> str:
    """Return the page. A file that cannot be read is missing from the pictures and has a finding."""
    files = list(_files(audit))
    shredding = _shredding(files)
    pictures = list(_path_bounds(files))
    parts = [
        *_head(audit),
        *_health(audit, shredding, files),
        *_findings(audit),
        *_trees(shredding),
        *_pictures(pictures),
        "</main></body></html>",
    ]
    return "\n".join(parts)


def _text(value: object) -> str:
    """Return text with markup and invisible characters escaped."""
    return escape(printable(str(value)))


def _files(audit: Audit) -> Iterator[InspectedFile]:
    snapshot: Snapshot | None = audit.snapshot
    if snapshot is None:
        return
    audited_paths = {file.path for file in audit.files}
    with suppress(DeltaVariantError):
        yield from (file for file in files_of(snapshot) if file.path in audited_paths)


def _shredding(files: Sequence[InspectedFile]) -> FileShredding | None:
    parts = []
    for file in files:
        with suppress(DeltaVariantError):
            parts.append(shredding_of(file))
    return merge(parts) if parts else None


def _path_bounds(files: Sequence[InspectedFile]) -> Iterator[PathBounds]:
    columns = dict.fromkeys(column for file in files for column in file.variants.items())
    for path, name in columns:
        bounds: list[Mapping[str, Bounds]] = [bounds_of(file, path) for file in files]
        yield from path_bounds(name, bounds)


def _head(audit: Audit) -> Iterator[str]:
    style = Path(__file__).with_name("audit_page.css").read_text(encoding="utf-8")
    name = audit.uri.rstrip("/").rsplit("/", 1)[-1]
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Audit of {_text(name)}</title><style>\n{style}</style></head><body><main>"
    yield f"<header><h1>{_text(name)}</h1>"
    yield f'<p class="quiet">{_text(scope_of(audit))}</p></header>'


def _health(audit: Audit, shredding: FileShredding | None, files: Sequence[InspectedFile]) -> Iterator[str]:
    status, verdict = _verdict(audit)
    yield f'<section class="health {status}"><p class="verdict">{_text(verdict)}</p><dl class="tiles">'
    for severity in SEVERITIES:
        number = audit.count(severity)
        yield _tile(
            f"{number:,}", f"{NOUNS[severity]}{'' if number == 1 else 's'}", severity if number else ""
        )
    yield _tile(f"{len(audit.files):,}", "data files")
    if shredding is not None:
        yield _tile(size_text(shredding.bytes), "of data")
    if files:
        bounded = sum(any(bounds_of(file, column) for column in file.variants) for file in files)
        yield _tile(f"{100 * bounded / len(files):.0f} %", "of files have Variant bounds")
        yield _tile(_typed_share(shredding), "of Variant values are typed")
    yield "</dl></section>"


def _verdict(audit: Audit) -> tuple[str, str]:
    if audit.snapshot is None:
        return "error", "Readers cannot load this table"
    if audit.count("error"):
        return "error", "Rules are broken"
    if audit.count("warning"):
        return "warning", "Readable, with warnings"
    return "clean", "Clean"


def _tile(figure: str, what: str, kind: str = "") -> str:
    return f'<div class="tile {kind}"><dd>{_text(figure)}</dd><dt>{_text(what)}</dt></div>'


def _typed_share(shredding: FileShredding | None) -> str:
    leaves = [node for column in (shredding.columns.values() if shredding else ()) for node in column.paths]
    typed = sum(_values(node.typed_value) for node in leaves)
    rest = sum(_values(node.value) for node in leaves)
    return f"{100 * typed / (typed + rest):.0f} %" if typed + rest else "0"


def _values(leaf: Leaf | None) -> int:
    return 0 if leaf is None or leaf.values is None else leaf.values


def _findings(audit: Audit) -> Iterator[str]:
    yield "<section><h2>Findings</h2>"
    groups = by_file(audit.findings)
    if not groups:
        yield '<p class="quiet">No findings.</p>'
    ordered = sorted(groups.items(), key=lambda group: (group[0] is not None, _most_severe(group[1])))
    for number, (file, findings) in enumerate(ordered):
        yield from _group(file, findings, number)
    yield "</section>"


def _most_severe(findings: Sequence[Finding]) -> int:
    return min(SEVERITIES.index(finding.severity) for finding in findings)


def _group(file: str | None, findings: Sequence[Finding], number: int) -> Iterator[str]:
    is_open = number < MAX_OPEN_GROUPS and _most_severe(findings) < len(SEVERITIES) - 1
    name = "The table" if file is None else file
    chips = "".join(_chip(each, sum(f.severity == each for f in findings)) for each in SEVERITIES)
    yield f'<details class="place"{" open" if is_open else ""}>'
    yield f"<summary><h3>{_text(name)}</h3> {chips}</summary>"
    yield "<ul>"
    for finding in findings[:MAX_FINDINGS]:
        sentence = COMMAND.sub(r"<code>\1</code>", _text(finding.sentence))
        yield f'<li class="{finding.severity}"><b>{_text(finding.rule)}</b> {sentence}</li>'
    if len(findings) > MAX_FINDINGS:
        yield f'<li class="quiet">and {len(findings) - MAX_FINDINGS:,} more</li>'
    yield "</ul></details>"


def _chip(severity: str, number: int) -> str:
    return f'<span class="chip {severity}">{count(number, NOUNS[severity])}</span>' if number else ""


def _trees(shredding: FileShredding | None) -> Iterator[str]:
    yield "<section><h2>How Variants are shredded</h2>"
    if shredding is None or not shredding.columns:
        yield '<p class="quiet">No readable file has a Variant column.</p></section>'
        return
    yield '<p class="quiet">The share of rows that have each path: <i class="key typed"></i> in a typed '
    yield 'column, <i class="key rest"></i> in <code>value</code>, which has neither bounds nor '
    yield "projection.</p>"
    for column, content in shredding.columns.items():
        yield f'<div class="wide"><table class="tree"><thead><tr><th>{_text(column)}</th><th>type</th>'
        yield '<th>filled</th><th class="number">bytes</th></tr></thead><tbody>'
        for node in content.paths:
            yield _node(node, shredding.rows)
        yield "</tbody></table></div>"
    yield "</section>"


def _node(node: Node, rows: int) -> str:
    name = path_step(node.path[-1]) if node.path else "the whole value"
    leaves = [leaf for leaf in (node.typed_value, node.value) if leaf]
    size = size_text(sum(leaf.bytes for leaf in leaves)) if leaves else ""
    indent = f' style="padding-left:{0.7 + 1.1 * min(len(node.path), 12):.1f}rem"'
    return (
        f"<tr><th{indent}>{_text(name)}</th><td>{_text(node.type)}</td>"
        f'<td class="fill">{_bar(node, rows)}</td><td class="number">{_text(size)}</td></tr>'
    )


def _bar(node: Node, rows: int) -> str:
    """Return a bar of the shares of typed and other values, for list elements as shares of the elements."""
    typed, rest = _values(node.typed_value), _values(node.value)
    whole = max(rows, typed + rest) if None not in node.path else typed + rest
    if not whole or not typed + rest:
        return '<span class="quiet">empty</span>' if node.type not in ("object", "array") else ""
    widths = (("typed", 100 * typed / whole), ("rest", 100 * rest / whole))
    bars = "".join(f'<i class="{kind}" style="width:{width:.2f}%"></i>' for kind, width in widths)
    label = (
        f"{100 * (typed + rest) / whole:.3g} %" if None not in node.path else count(typed + rest, "element")
    )
    return f'<span class="bar" aria-hidden="true">{bars}</span><small>{_text(label)}</small>'


def _pictures(pictures: Sequence[PathBounds]) -> Iterator[str]:
    yield "<section><h2>What bounds can skip</h2>"
    if not pictures:
        yield '<p class="quiet">No file has bounds for a path, so every query reads every file.</p></section>'
        return
    yield '<p class="quiet">One bar per file from its minimum to its maximum, sorted. The strip below '
    yield "counts the files that cover each value. A lower strip means that a query skips more files.</p>"
    yield '<div class="pictures">'
    ordered = sorted(pictures, key=lambda each: each.read_by_lookup)
    for bounds in ordered[:MAX_PICTURES]:
        yield from _figure(bounds)
    yield "</div>"
    if len(ordered) > MAX_PICTURES:
        more = count(len(ordered) - MAX_PICTURES, "path")
        yield f'<p class="quiet">and {more} more that skip fewer files</p>'
    yield "</section>"


def _figure(bounds: PathBounds) -> Iterator[str]:
    lookup = bounds.read_by_lookup
    share = lookup / bounds.files
    grade = "good" if share <= 0.2 else "fair" if share <= 0.6 else "poor"
    name = shorten(printable(_path(bounds)), 80)
    scale = "" if bounds.is_to_scale else ", not to scale"
    yield f'<figure class="{grade}"><figcaption><b>{escape(name)}</b>'
    yield f"<small>{_text(bounds.type)}{scale}</small>"
    if bounds.files > 1:
        yield f'<span class="chip">a lookup reads {lookup:.3g} of {bounds.files:,} files</span>'
    yield f"</figcaption>{picture(bounds)}"
    ends = (shorten(printable(end), 28) for end in (bounds.least, bounds.greatest))
    yield '<div class="axis">' + "".join(f"<span>{escape(end)}</span>" for end in ends) + "</div></figure>"


def _path(bounds: PathBounds) -> str:
    try:
        return path_text(bounds.column, variant_paths.parse(bounds.key))
    except InvalidStatisticsError:
        return f"{bounds.column} {bounds.key}"
