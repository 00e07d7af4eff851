"""An audit as one HTML page, and in the formats of tools that show results of checks: SARIF and JUnit XML."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from xml.etree import ElementTree

import msgspec

from .._text import count, path_step, rows_text, size_text
from .._version import package_version
from ..errors import DeltaVariantError, printable
from ..log.snapshot import Snapshot
from ..operations.audit import Audit
from ..operations.audit.findings import SEVERITIES, Finding, RuleSummary, Severity
from .bounds import PathBounds, path_bounds
from .inspection import FileShredding, InspectedFile, Node, files_of, merge, shredding_of
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

CATALOGUE = "blob/main/docs/audit-rules.md"
"""The location of the catalogue below the address of the sources."""


class _RuleText(msgspec.Struct, frozen=True):
    """A row of the catalogue: a rule, and the specification section that defines the rule."""

    rule: str
    severity: str
    must_hold: str
    source: str


@cache
def _texts() -> dict[tuple[str, str], _RuleText]:
    data = Path(__file__).with_name("rule_texts.json").read_bytes()
    return {(each.rule, each.severity): each for each in msgspec.json.decode(data, type=list[_RuleText])}


def rules() -> list[str]:
    """Return the ids of all rules, in the order of the catalogue."""
    return list(dict.fromkeys(rule for rule, _ in _texts()))


def _first_text(rule: str) -> _RuleText:
    return next(text for (name, _), text in _texts().items() if name == rule)


@cache
def _documentation() -> str | None:
    try:
        urls = metadata("delta-variant").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    named = dict(url.split(", ", 1) for url in urls if ", " in url)
    return f"{named['Source']}/{CATALOGUE}" if "Source" in named else None


def rule_url(rule: str) -> str | None:
    """Return the address of a rule in the published catalogue, None if the package names no address."""
    page = _documentation()
    return f"{page}#{rule.lower()}" if page is not None else None


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
    text = _texts()[summary.rule, summary.severity]
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


@dataclass(frozen=True)
class Check:
    """A test case: `outcome` is None if it passes; `title` is the message of a failure."""

    group: str
    name: str
    outcome: Literal["failure", "skipped", "system-out"] | None = None
    severity: str = ""
    title: str = ""
    text: str = ""


def junit_xml(name: str, checks: Sequence[Check]) -> str:
    def count(outcome: str) -> str:
        return str(sum(each.outcome == outcome for each in checks))

    counts = {"tests": str(len(checks)), "failures": count("failure"), "skipped": count("skipped")}
    suite = ElementTree.Element("testsuite", {"name": printable(name), **counts})
    for check in checks:
        names = {"classname": printable(check.group), "name": printable(check.name)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if check.outcome is not None:
            given = {"type": check.severity, "message": printable(check.title)}
            outcome = ElementTree.SubElement(case, check.outcome, given if check.title else {})
            outcome.text = "\n".join(map(printable, check.text.splitlines()))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


LEVELS = {"error": "error", "warning": "warning", "info": "note"}
"""The levels of SARIF."""

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

MAX_LINES = 100
"""A failure of JUnit lists at most as many findings."""


def audit_sarif(audit: Audit) -> str:
    """Return the findings as SARIF 2.1.0, with a location relative to the table, `TABLE`."""
    found = sorted({each.rule for each in audit.findings}, key=rules().index)
    driver = {
        "name": "delta-variant",
        "version": package_version(),
        "rules": [dict(_sarif_rule(rule)) for rule in found],
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {"TABLE": {"uri": f"{_absolute(audit.uri)}/"}},
        "results": [_sarif_result(each) for each in audit.findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _absolute(uri: str) -> str:
    return uri.rstrip("/") if "://" in uri else Path(uri).absolute().as_uri()


def _sarif_rule(rule: str) -> Iterator[tuple[str, Any]]:
    text = _first_text(rule)
    yield "id", rule
    yield "shortDescription", {"text": text.must_hold}
    yield "defaultConfiguration", {"level": LEVELS[text.severity]}
    if (url := rule_url(rule)) is not None:
        yield "helpUri", url


def _sarif_result(finding: Finding) -> dict[str, Any]:
    log = "_delta_log/" if finding.version is None else f"_delta_log/{finding.version:020}.json"
    path = log if finding.file_path is None else finding.file_path
    place = [str(each) for each in (finding.column, finding.path_key) if each is not None]
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": quote(path), "uriBaseId": "TABLE"}}
    }
    if place:
        location["logicalLocations"] = [{"fullyQualifiedName": " ".join(place)}]
    identity = repr((finding.rule, path, *place, finding.row))
    return {
        "ruleId": finding.rule,
        "level": LEVELS[finding.severity],
        "message": {"text": finding.sentence},
        "locations": [location],
        "partialFingerprints": {"finding/v1": hashlib.sha256(identity.encode()).hexdigest()},
    }


def audit_junit(audit: Audit) -> str:
    """Return JUnit XML with a test case for each rule, which fails with an error or a warning."""
    by_rule: dict[str, list[Finding]] = {rule: [] for rule in rules()}
    for each in audit.findings:
        by_rule[each.rule].append(each)
    return junit_xml(f"audit of {audit.uri}", [_check(rule, found) for rule, found in by_rule.items()])


def _check(rule: str, findings: Sequence[Finding]) -> Check:
    group, name = "delta-variant audit", f"{rule}: {_first_text(rule).must_hold}"
    if not findings:
        return Check(group, name)
    text = "\n".join(printable(each.sentence) for each in findings[:MAX_LINES])
    if all(each.severity == "info" for each in findings):
        return Check(group, name, "system-out", text=text)
    return Check(group, name, "failure", findings[0].severity, f"{len(findings)} x {rule}", text)
