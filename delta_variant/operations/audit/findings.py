"""Findings, and the rules that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

__all__ = ["SEVERITIES", "Finding", "Rule", "Severity", "Violation", "apply_rules"]

Severity: TypeAlias = Literal["error", "warning", "info"]
"""An error breaks a rule of the specification or a promise to readers, a warning harms some reader or hides
files from skipping, an info is allowed and worth knowing."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Finding:
    """What an audit found: a rule of the requirements that is broken, and where.

    `sentence` says what, where, and what to do. Of the places, those are known that are not None: a version
    of the log, a data file's path, a column, a path key within its Variants, and a row of the file from 0.
    """

    rule: str
    severity: Severity
    sentence: str
    version: int | None = None
    file_path: str | None = None
    column: str | None = None
    path_key: str | None = None
    row: int | None = None


@dataclass(frozen=True)
class Violation:
    """What one rule says of its subject: a sentence without advice, and the places of a Finding."""

    sentence: str
    version: int | None = None
    file_path: str | None = None
    column: str | None = None
    path_key: str | None = None
    row: int | None = None


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """A rule: its id in the requirements, its weight, what finds where it is broken, and what to do then."""

    id: str
    severity: Severity
    check: Callable[[Subject], Iterator[Violation]]
    advice: str


def apply_rules(rules: Iterable[Rule[Subject]], subject: Subject) -> Iterator[Finding]:
    """Yield what the rules find in a subject."""
    for rule in rules:
        for violation in rule.check(subject):
            yield Finding(
                rule.id,
                rule.severity,
                f"{violation.sentence}: {rule.advice}",
                violation.version,
                violation.file_path,
                violation.column,
                violation.path_key,
                violation.row,
            )
