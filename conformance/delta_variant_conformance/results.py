"""Results in the formats of other tools: JUnit XML, and a badge for a README."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from delta_variant.reports.audit import Check, junit_xml

from .grade import Result
from .report import counts, score, status_text
from .runner import EngineRun, Run

LABEL = "Variant conformance"
COLORS = ((90, "#1a7f48"), (50, "#a86400"), (-200, "#c4293d"))
"""The least score of each color."""

CHARACTER, PADDING = 6.6, 12
"""Pixels of a character of the badge, and of both sides of a text."""


def run_junit(run: Run) -> str:
    """Return JUnit XML with a test case for each case and engine."""
    return junit_xml("Variant conformance", list(_checks(run)))


def _checks(run: Run) -> Iterator[Check]:
    for engine in run.engines:
        if engine.absent:
            yield Check(engine.name, "starts", "failure", "absent", engine.absent)
        yield from map(_check, engine.results)


def _check(result: Result) -> Check:
    group, name = f"{result.engine}.{result.case.kind}", result.case.id
    if result.is_finding:
        rules = " ".join(result.case.rules)
        text = f"{result.case.about}\nrules {rules}\nexpected {result.expected}\ngot {result.got}"
        return Check(group, name, "failure", result.status, status_text(result), text)
    return Check(group, name, "skipped" if result.status == "not offered" else None)


def badge(engine: EngineRun) -> str:
    """Return an SVG image with the passed cases of an engine, in a color by its score."""
    passed = f"{counts(engine.results)['pass']:,} of {len(engine.results):,} cases"
    points = score(result.status for result in engine.results) or 0
    color = next(color for least, color in COLORS if points >= least)
    left, right = (round(len(text) * CHARACTER) + PADDING for text in (LABEL, passed))
    title = escape(f"{LABEL} of {engine.name} {engine.version}: {passed}")
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">',
            f"<title>{title}</title>",
            f'<rect width="{left + right}" height="20" rx="3" fill="{color}"/>',
            f'<path d="M3 0h{left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#555"/>',
            '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11" text-anchor="middle">',
            _text(LABEL, left / 2, left - PADDING),
            _text(passed, left + right / 2, right - PADDING),
            "</g></svg>\n",
        )
    )


def _text(text: str, middle: float, width: int) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{width}">{escape(text)}</text>'
