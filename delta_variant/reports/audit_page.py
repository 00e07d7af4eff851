"""An audit as one HTML page: health, findings by rule, data files, shredding, bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from .._text import count, path_step, rows_text, size_text
from ..errors import DeltaVariantError
from ..log.snapshot import Snapshot
from ..operations.audit import Audit
from ..operations.audit.findings import SEVERITIES, Finding, RuleSummary, Severity
from .bounds_picture import PathBounds, path_bounds
from .inspected_file import InspectedFile, files_of
from .page import (
    MAX_PICTURES,
    Row,
    document,
    html_sentence,
    html_text,
    nested,
    percent,
    pictures,
    share_bar,
    subtree_bytes,
    tile,
    tree,
    typed_share,
    values_of,
)
from .rule_texts import rule_text, rule_url
from .shredding_tree import FileShredding, Node, merge, shredding_of

NOUNS = {"error": "error", "warning": "warning", "info": "note"}

MAX_FINDINGS = 50
"""The page shows at most this many findings of a rule. The JSON output contains all findings."""

MAX_OPEN_GROUPS = 6
MAX_OPEN_FILES = 20


def audit_page(audit: Audit) -> str:
    """Return the page. A file that cannot be read is missing from the pictures and has a finding."""
    files = list(_files(audit))
    shredding = _shredding(files)
    name = audit.uri.rstrip("/").rsplit("/", 1)[-1]
    parts = (
        *_health(audit, shredding, files),
        *_findings(audit),
        *_file_list(audit),
        *_trees(shredding),
        *_pictures(list(_path_bounds(files)), len(files)),
    )
    return document(f"Audit of {name}", name, scope_of(audit), parts)


def scope_of(audit: Audit) -> str:
    """Return the scope of an audit: the version, and how many files and rows it covers."""
    deleted = sum(file.deleted_rows for file in audit.files)
    rows = sum(file.rows or 0 for file in audit.files) - deleted
    what = "log, files and every row" if audit.data else "log and files; --data checks every row"
    counts = f"{count(len(audit.files), 'file')}, {rows_text(rows, deleted)}"
    if residual := [file.rows or 0 for file in audit.files if file.is_residual]:
        own = count(len(residual), "file")
        counts = f"{counts}, {count(sum(residual), 'residual row')} separated into {own}"
    return f"{audit.uri}: version {audit.version}, {counts} ({what}){_sample(audit)}"


def _sample(audit: Audit) -> str:
    """Return what a sample says about all files."""
    sample = audit.sample
    if sample is None:
        return ""
    found = "none has" if not sample.wrong else f"{sample.wrong:,} {'has' if sample.wrong == 1 else 'have'}"
    share = f"{sample.wrong_at_most / max(sample.files, 1):.2%}"
    return (
        f"; {sample.checked:,} random files of {sample.files:,}: {found} an error or a warning, and with "
        f"95 % confidence at most {count(sample.wrong_at_most, 'file')} of all ({share})"
    )


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
        yield from path_bounds(name, [file.bounds.get(path, {}) for file in files])


def _health(audit: Audit, shredding: FileShredding | None, files: Sequence[InspectedFile]) -> Iterator[str]:
    status, verdict = _verdict(audit)
    yield f'<section class="health {status}"><p class="verdict">{html_text(verdict)}</p><dl class="tiles">'
    for severity in SEVERITIES:
        number = audit.count(severity)
        yield tile(
            f"{number:,}", f"{NOUNS[severity]}{'' if number == 1 else 's'}", severity if number else ""
        )
    yield tile(f"{len(audit.files):,}", "data files")
    if shredding is not None:
        yield tile(size_text(shredding.bytes), "of data")
    if files:
        bounded = sum(any(file.bounds.values()) for file in files)
        yield tile(percent(bounded, len(files)), "of files have Variant bounds")
        columns = () if shredding is None else shredding.columns.values()
        yield tile(
            typed_share(node for each in columns for node in each.paths), "of Variant values are typed"
        )
    yield "</dl></section>"


def _verdict(audit: Audit) -> tuple[str, str]:
    if audit.snapshot is None:
        return "error", "Readers cannot load this table"
    if audit.count("error"):
        return "error", "Rules are broken"
    if audit.count("warning"):
        return "warning", "Readable, with warnings"
    return "clean", "Clean"


def _findings(audit: Audit) -> Iterator[str]:
    yield "<section><h2>Findings</h2>"
    summaries = audit.summary()
    if not summaries:
        yield '<p class="quiet">No findings.</p>'
    groups: dict[tuple[str, Severity, str], list[Finding]] = {}
    for finding in audit.findings:
        groups.setdefault((finding.rule, finding.severity, finding.remedy), []).append(finding)
    anchored: set[str] = set()
    for number, each in enumerate(summaries):
        anchor = "" if each.rule in anchored else f' id="rule-{each.rule.lower()}"'
        anchored.add(each.rule)
        yield from _group(each, groups[each.rule, each.severity, each.remedy], anchor, number)
    yield "</section>"


def _group(summary: RuleSummary, findings: Sequence[Finding], anchor: str, number: int) -> Iterator[str]:
    is_open = number < MAX_OPEN_GROUPS and summary.severity != "info"
    where = f" in {count(summary.files, 'file')}" if summary.files else ""
    chip = f"{count(summary.count, NOUNS[summary.severity])}{where}"
    yield f'<details class="rule {summary.severity}"{anchor}{" open" if is_open else ""}>'
    yield f'<summary><h3>{html_text(summary.rule)}</h3> <span class="chip">{chip}</span> '
    yield f'<span class="example">{html_text(summary.example.message)}</span></summary>'
    text = rule_text(summary.rule, summary.severity)
    url = rule_url(summary.rule)
    link = f' <a href="{html_text(url)}" rel="noreferrer">Audit rules</a>.' if url else ""
    yield f"<dl><dt>Rule</dt><dd>{html_text(text.must_hold)}</dd>"
    yield f"<dt>Source</dt><dd>{html_text(text.source)}.{link}</dd>"
    yield f"<dt>Remedy</dt><dd>{html_sentence(summary.remedy)}</dd></dl><ul>"
    for finding in findings[:MAX_FINDINGS]:
        file = f"<b>{html_text(finding.file_path)}</b> " if finding.file_path is not None else ""
        yield f"<li>{file}{html_text(finding.message)}</li>"
    yield "</ul>"
    if len(findings) > MAX_FINDINGS:
        command = f"<code>delta-variant audit --all --rule {html_text(summary.rule)}</code>"
        yield f'<p class="quiet">and {len(findings) - MAX_FINDINGS:,} more: {command} lists all</p>'
    yield "</details>"


def _file_list(audit: Audit) -> Iterator[str]:
    if not audit.files:
        return
    found = Counter((finding.file_path, finding.severity) for finding in audit.findings)
    rows = []
    for file in audit.files:
        counts = {severity: found[file.path, severity] for severity in SEVERITIES}
        chips = "".join(
            f'<span class="chip {severity}">{count(number, NOUNS[severity])}</span> '
            for severity, number in counts.items()
            if number
        )
        # Sorting by findings shows files with errors first.
        weight = float(counts["error"] * 10**6 + counts["warning"] * 10**3 + counts["info"])
        lines = "?" if file.rows is None else f"{file.rows:,}"
        cells = (
            (chips, "chips"),
            (f"{lines} <small>{'residual rows' if file.is_residual else 'rows'}</small>", "number"),
            (html_text(size_text(file.bytes)), "number"),
        )
        rows.append(Row(html_text(file.path), cells, file.bytes, weight))
    headings = (("file", "name"), ("findings", "chips"), ("rows", "number"), ("bytes", "number"))
    yield "<section><h2>Data files</h2>"
    shown = " open" if len(rows) <= MAX_OPEN_FILES else ""
    yield f"<details{shown}><summary>{count(len(rows), 'file')}</summary>"
    yield from tree("Data files", headings, rows, "files")
    yield "</details></section>"


def _trees(shredding: FileShredding | None) -> Iterator[str]:
    yield "<section><h2>How Variants are shredded</h2>"
    if shredding is None or not shredding.columns:
        yield '<p class="quiet">No readable file has a Variant column.</p></section>'
        return
    yield '<p class="quiet">The share of rows that have each path: <i class="key typed"></i> in a typed '
    yield 'column, <i class="key rest"></i> in <code>value</code>, which has neither bounds nor '
    yield "projection.</p>"
    headings = (("path", "name"), ("type", "type"), ("rows", "fill"), ("bytes", "number"))
    for column, content in shredding.columns.items():
        sizes = subtree_bytes(content.paths)
        rows = nested(
            (node.path, _row(column, node, shredding.rows, sizes[node.path])) for node in content.paths
        )
        yield from tree(f"Paths of {column}", headings, rows)
    yield "</section>"


def _row(column: str, node: Node, rows: int, size: int) -> Row:
    name = path_step(node.path[-1]) if node.path else column
    values = values_of(node.typed_value) + values_of(node.value)
    cells = (
        (html_text(node.type), "type"),
        (share_bar(node, rows), "fill"),
        (html_text(size_text(size)), "number"),
    )
    return Row(html_text(name), cells, size, values / rows if rows else 0)


def _pictures(bounds: Sequence[PathBounds], files: int) -> Iterator[str]:
    yield "<section><h2>What bounds can skip</h2>"
    if not bounds:
        yield '<p class="quiet">No file has bounds for a path, so every query reads every file.</p></section>'
        return
    if files == 1:
        yield '<p class="quiet">The table has one file, so there is nothing to skip. The bars show the range '
        yield "of each path.</p>"
    else:
        yield '<p class="quiet">One bar per file from its minimum to its maximum, sorted. The strip below '
        yield "counts the files that cover each value. A lower strip means that a query skips more files.</p>"
    yield from pictures(bounds)
    if len(bounds) > MAX_PICTURES:
        more = count(len(bounds) - MAX_PICTURES, "path")
        yield f'<p class="quiet">and {more} more that skip as few files or fewer</p>'
    yield "</section>"
