"""Render a run as one HTML page without network access and scripts: filters are radio buttons and CSS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import product
from pathlib import Path
from typing import Literal, TypeAlias

from delta_variant.reports.page import document

from .case import Case
from .grade import STATUSES, Result, Status
from .history import Change
from .report import FINDINGS, SCORES, causes, counts, kinds_of, of_kind, scores_text
from .runner import EngineRun, Run

NOTE: Literal["note"] = "note"
NOT_RUN: Literal["not run"] = "not run"
CLASSES: Mapping[str, str] = {
    "pass": "pass",
    "wrong value": "wrong",
    "wrong layout": "layout",
    "accepted": "accepted",
    "refused": "refused",
    "crashed": "crashed",
    "timed out": "timeout",
    "not offered": "none",
    NOTE: "note",
    NOT_RUN: "none",
}
DETAILS: tuple[str, ...] = (*FINDINGS, NOTE)
"""What the details list, worst first."""

SCORING = (
    "A cell shows the passed cases of those that an engine offers. The score is 100 if all cases pass. "
    "A pass counts 1, an unexpected error (refused) and a case that is not offered 0, an answer instead of "
    "the expected error (accepted) -1/2, a crash, a timeout or a wrong layout of what it wrote -1, a wrong "
    "value -2. The score of offered leaves out the cases that are not offered."
)

NAMED = 4
"""How many cases the line of a group names."""

TEXT, GIST = 600, 120
"""Characters of an answer and of its start, so that a page can have 20,000. JSON has whole answers."""


def html_page(run: Run, changes: Iterable[Change] = ()) -> str:
    """Return a page with the matrix, changes since another run, causes, rules, and each finding."""
    title = "Variant conformance"
    tables = (*_summary(run), *_by_kind(run), *_changes(changes), *_causes(run))
    parts = (*tables, *_filters(run), *_rules(run), *_details(run))
    style = Path(__file__).with_name("page.css").read_text("utf-8") + _filter_style(len(run.engines))
    return document(title, title, _subtitle(run), parts, style=style, has_script=False)


def _subtitle(run: Run) -> str:
    cases = f"{len(run.cases):,} cases of Variant in Parquet and Delta, for each engine"
    place = f", run on {run.date} on {run.machine}" if run.date else ""
    return f"{cases}{place}{'. The run was interrupted.' if run.is_interrupted else '.'}"


def _text(value: object) -> str:
    """Return text with HTML and unprintable characters escaped."""
    characters = (
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in str(value)
    )
    return escape("".join(characters))


def _filter_style(engines: int) -> str:
    """Return CSS that hides the groups and findings without the chosen engine and status.

    A group has a class for each engine and status of its cases, so that no rule looks into the groups: a page
    has thousands of findings.
    """
    engine_choices = [("", ""), *((f":has(#engine-{n}:checked)", f"e{n}") for n in range(engines))]
    names = [CLASSES[status] for status in DETAILS]
    status_choices = [("", ""), *((f":has(#status-{name}:checked)", name) for name in names)]
    lines = []
    for (engine, engine_class), (status, status_class) in product(engine_choices, status_choices):
        wanted = [each for each in (engine_class, status_class) if each]
        if wanted:
            # Do not anchor `:has` at body: the browser would search the whole page.
            kinds, finding = f".filters{engine}{status} ~ .kind", "".join(f".{each}" for each in wanted)
            hidden = f"{kinds} .group:not(.has-{'-'.join(wanted)}), {kinds} .finding:not({finding})"
            lines.append(f"{hidden} {{ display: none }}")
    return "\n".join(lines)


def _summary(run: Run) -> Iterator[str]:
    yield f'<p class="legend">{"".join(map(_chip, (*STATUSES, NOTE)))}</p>'
    yield '<section><div class="wide"><table class="matrix"><thead><tr><th>engine</th>'
    yield "".join(f'<th class="number">{name}</th>' for name in (*SCORES, "all"))
    yield "".join(f'<th class="number count">{status}</th>' for status in FINDINGS)
    yield "</tr></thead><tbody>"
    for engine in run.engines:
        yield from _matrix_row(engine)
    yield "</tbody></table></div>"
    yield f'<p class="quiet">{SCORING}</p></section>'


def _by_kind(run: Run) -> Iterator[str]:
    """Yield the passed cases of each kind, with the mark of the worst finding, narrow enough for a window."""
    kinds = kinds_of(run)
    yield '<section><div class="wide"><table class="matrix kinds"><thead><tr><th>engine</th>'
    yield f"{''.join(_kind_heading(run, kind) for kind in kinds)}</tr></thead><tbody>"
    for engine in run.engines:
        if not engine.absent:
            cells = "".join(_cell(of_kind(engine, kind)) for kind in kinds)
            yield f"<tr><th>{_text(engine.name)}</th>{cells}</tr>"
    yield "</tbody></table></div></section>"


def _changes(changes: Iterable[Change]) -> Iterator[str]:
    lines = [line for change in changes for line in change.lines()]
    if lines:
        yield '<details class="rules"><summary><h2>Changes</h2> since the last run of an engine</summary>'
        yield f"<pre>{_text(chr(10).join(lines))}</pre></details>"


def _causes(run: Run) -> Iterator[str]:
    """Yield the causes of each engine, worst first."""
    yield '<details class="rules"><summary><h2>Causes</h2> findings that fail alike, worst first</summary>'
    yield '<div class="wide"><table><thead><tr><th>engine</th><th>status</th><th class="number">cases</th>'
    yield "<th>rules</th><th>cause</th><th>smallest case</th></tr></thead><tbody>"
    for engine in run.engines:
        for cause in causes(engine):
            cells = (cause.scope, cause.title, cause.example.case.id)
            texts = "".join(f'<td class="text">{_text(cell)}</td>' for cell in cells)
            yield f"<tr><th>{_text(engine.name)}</th><td>{_chip(cause.status)}</td>"
            yield f'<td class="number">{len(cause.results):,}</td>{texts}</tr>'
    yield "</tbody></table></div></details>"


def _chip(status: str) -> str:
    return f'<span class="chip {CLASSES[status]}">{status}</span>'


def _kind_heading(run: Run, kind: str) -> str:
    number = sum(case.kind == kind for case in run.cases)
    return f'<th class="number"><a href="#kind-{kind}">{kind}</a> <small>{number}</small></th>'


def _matrix_row(engine: EngineRun) -> Iterator[str]:
    name = f"<th>{_text(engine.name)} <small>{_text(engine.version)}</small>"
    if engine.absent:
        columns = 1 + len(SCORES) + len(FINDINGS)
        yield f'<tr>{name}</th><td colspan="{columns}" class="quiet">absent: {_text(engine.absent)}</td></tr>'
        return
    yield f"<tr>{name}{_bar(engine.results)}</th>"
    found = counts(engine.results)
    of_all, of_offered = scores_text(engine.results)
    yield f'<td class="number score">{of_all}</td><td class="number">{of_offered}</td>'
    yield _cell(engine.results, marked=())
    yield "".join(f'<td class="number count">{_mark(status, found)}</td>' for status in FINDINGS)
    yield "</tr>"


def _bar(results: Sequence[Result]) -> str:
    """Return the shares of the statuses as a bar; the next columns have the same figures as text."""
    found = counts(results)
    widths = [(status, 100 * found[status] / len(results)) for status in STATUSES if found[status]]
    parts = [f'<i class="{CLASSES[status]}" style="width:{width:.3f}%"></i>' for status, width in widths]
    return f'<span class="bar" aria-hidden="true">{"".join(parts)}</span>'


def _cell(results: Sequence[Result], *, marked: Sequence[Status] = FINDINGS) -> str:
    """Return the passed of the offered cases, with the mark of the first of the statuses that is found."""
    found = counts(results)
    offered = len(results) - found["not offered"]
    if not offered:
        return '<td class="number quiet" title="not offered">·<span class="hidden">not offered</span></td>'
    whole = " whole" if found["pass"] == offered else ""
    mark = next((_mark(status, found) for status in marked if found[status]), "")
    return f'<td class="number{whole}">{found["pass"]}<small>/{offered}</small> {mark}</td>'


def _mark(status: Status, found: Mapping[Status, int]) -> str:
    number = found[status]
    return f'<span class="mark {CLASSES[status]}" title="{status}">{number}</span>' if number else ""


def _filters(run: Run) -> Iterator[str]:
    yield '<section class="filters" aria-label="Filter of the details">'
    engines = [(f"engine-{number}", engine.name) for number, engine in enumerate(run.engines)]
    yield _choice("engine", [("engine-all", "all engines"), *engines])
    yield _choice("status", [("status-all", "all"), *((f"status-{CLASSES[s]}", s) for s in DETAILS)])
    yield "</section>"


def _choice(name: str, options: Sequence[tuple[str, str]]) -> str:
    inputs = [
        f'<label><input type="radio" name="{name}" id="{identity}"{"" if index else " checked"}>'
        f"<span>{_text(label)}</span></label>"
        for index, (identity, label) in enumerate(options)
    ]
    return f'<fieldset><legend class="hidden">{name}</legend>{"".join(inputs)}</fieldset>'


def _rules(run: Run) -> Iterator[str]:
    engines = [engine for engine in run.engines if not engine.absent]
    by_case = [{result.case.id: result for result in engine.results} for engine in engines]
    yield '<details class="rules"><summary><h2>Rules</h2> the worst status of each rule, by engine</summary>'
    yield '<div class="wide"><table><thead><tr><th>rule</th><th class="number">cases</th>'
    yield "".join(f'<th class="number">{_text(engine.name)}</th>' for engine in engines)
    yield "</tr></thead><tbody>"
    for rule, cases in _by_rule(run.cases).items():
        cells = [_worst([results[case.id] for case in cases if case.id in results]) for results in by_case]
        yield f'<tr><th>{_text(rule)}</th><td class="number">{len(cases)}</td>{"".join(cells)}</tr>'
    yield "</tbody></table></div></details>"


def _by_rule(cases: Iterable[Case]) -> Mapping[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in cases:
        for rule in case.rules:
            found.setdefault(rule, []).append(case)
    return dict(sorted(found.items(), key=lambda item: _natural_sort_key(item[0])))


def _natural_sort_key(rule: str) -> list[tuple[str, int]]:
    """Return a sort key that puts E-M2 before E-M10."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"([^0-9]*)([0-9]*)", rule)]


SEVERITY: tuple[Status, ...] = (*FINDINGS, "pass", "not offered")


def _worst(results: Sequence[Result]) -> str:
    found = counts(results)
    worst = next((status for status in SEVERITY if found[status]), SEVERITY[-1])
    number = "" if worst in ("pass", "not offered") else found[worst]
    hidden = f'<span class="hidden">{worst}</span>'
    return (
        f'<td class="number"><span class="mark {CLASSES[worst]}" title="{worst}">{number}{hidden}</span></td>'
    )


Outcome: TypeAlias = Status | Literal["note", "not run"]
"""A status. A correct answer that differs from the expected one is a note."""

Row: TypeAlias = tuple[Outcome, ...]
"""What each engine does in a case."""


def _details(run: Run) -> Iterator[str]:
    engines = [(number, engine) for number, engine in enumerate(run.engines) if not engine.absent]
    by_case: dict[str, dict[int, Result]] = {case.id: {} for case in run.cases}
    for number, engine in engines:
        for result in engine.results:
            by_case[result.case.id][number] = result
    for kind in kinds_of(run):
        cases = [case for case in run.cases if case.kind == kind]
        groups: dict[Row, list[Case]] = {}
        for case in cases:
            row = tuple(_status(by_case[case.id].get(number)) for number, _ in engines)
            groups.setdefault(row, []).append(case)
        yield f'<section class="kind"><h2 id="kind-{kind}">{kind} <small>{len(cases):,} cases</small></h2>'
        yield _engine_heading(engines)
        for row, members in sorted(groups.items(), key=_severity_of_group):
            yield from _group(row, members, by_case, engines)
        yield "</section>"


def _status(result: Result | None) -> Outcome:
    if result is None:
        return NOT_RUN
    return NOTE if result.status == "pass" and result.notes else result.status


def _severity_of_group(group: tuple[Row, list[Case]]) -> tuple[int, ...]:
    """Return a sort key: wrong values first, and the outcomes of most engines first within a status."""
    return tuple(-group[0].count(status) for status in DETAILS)


def _engine_heading(engines: Sequence[tuple[int, EngineRun]]) -> str:
    """Return the names of the engines above their columns; a name selects the engine in the filters."""
    names = "".join(
        f'<label for="engine-{number}"><span>{_text(engine.name)}</span></label>'
        for number, engine in engines
    )
    return f'<div class="line names" style="--engines:{len(engines)}"><span></span>{names}</div>'


def _group(
    row: Row,
    cases: Sequence[Case],
    by_case: Mapping[str, Mapping[int, Result]],
    engines: Sequence[tuple[int, EngineRun]],
) -> Iterator[str]:
    """Yield the cases in which each engine does the same, as one line that opens."""
    tokens = {
        token
        for (number, _), status in zip(engines, row, strict=True)
        if status in DETAILS
        for token in (f"has-e{number}", f"has-{CLASSES[status]}", f"has-e{number}-{CLASSES[status]}")
    }
    names = ", ".join(case.id.partition("/")[2] for case in cases[:NAMED])
    title = names if len(cases) <= NAMED else f"{len(cases):,} cases: {names}, …"
    yield f'<details class="{" ".join(["group", *sorted(tokens)])}">'
    yield f'<summary class="line" style="--engines:{len(engines)}"><span class="title">{_text(title)}</span>'
    marks = (
        f'<i class="{CLASSES[status]}" title="{_text(engine.name)}: {status}">'
        f'<span class="hidden">{_text(engine.name)}: {status}</span></i>'
        for (_, engine), status in zip(engines, row, strict=True)
    )
    yield f"{''.join(marks)}</summary>"
    for case in cases:
        yield from _case(case, list(by_case[case.id].items()))
    yield "</details>"


def _case(case: Case, results: Sequence[tuple[int, Result]]) -> Iterator[str]:
    rules = "".join(f"<b>{_text(rule)}</b> " for rule in case.rules)
    options = (
        f" with {', '.join(f'{name}={value!r}' for name, value in case.options.items())}"
        if case.options
        else ""
    )
    yield f'<article class="case"><h3>{_text(case.id)}</h3><p>{_text(case.about)}{_text(options)}.</p>'
    guards = f" · lost values: {', '.join(case.guards)}" if case.guards else ""
    yield f'<p class="quiet">{rules}{_text(case.verdict)} · {_text(case.section)}{_text(guards)}</p>'
    findings = [(number, result) for number, result in results if _status(result) in DETAILS]
    if findings:
        expected = _shorten(findings[0][1].expected)
        yield f"<dl><dt>expected</dt><dd><pre>{_text(expected)}</pre></dd></dl>"
    for number, result in findings:
        yield from _finding(number, result)
    yield "</article>"


def _finding(number: int, result: Result) -> Iterator[str]:
    got = _shorten(result.got if result.is_finding else "\n".join(result.notes))
    yield f'<details class="finding e{number} {CLASSES[_status(result)]}">'
    yield f"<summary>{_text(result.engine)} {_chip(_status(result))}"
    yield f'<span class="gist">{_text(got[:GIST])}</span></summary><pre>{_text(got)}</pre></details>'


def _shorten(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}…"
