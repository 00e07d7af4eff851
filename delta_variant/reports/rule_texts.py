"""The rule catalogue of docs/audit-rules.md, for output that must not depend on a network.

`rule_texts.json` is generated from the catalogue by `python tests/support/rule_catalogue.py`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import msgspec

CATALOGUE = "blob/main/docs/audit-rules.md"
"""The location of the catalogue below the address of the sources."""


class RuleText(msgspec.Struct, frozen=True):
    """A row of the catalogue: a rule, and the specification section that defines the rule."""

    rule: str
    severity: str
    must_hold: str
    source: str


@cache
def _texts() -> dict[tuple[str, str], RuleText]:
    data = Path(__file__).with_name("rule_texts.json").read_bytes()
    return {(each.rule, each.severity): each for each in msgspec.json.decode(data, type=list[RuleText])}


def rules() -> list[str]:
    """Return the ids of all rules, in the order of the catalogue."""
    return list(dict.fromkeys(rule for rule, _ in _texts()))


def first_text(rule: str) -> RuleText:
    return next(text for (name, _), text in _texts().items() if name == rule)


def rule_text(rule: str, severity: str) -> RuleText:
    return _texts()[rule, severity]


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
