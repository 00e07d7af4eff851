"""Findings of an audit, the rules that produce them, and the listener that receives them early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

Severity: TypeAlias = Literal["error", "warning", "info"]
"""`error` breaks the specification or a guarantee to readers, `warning` affects some readers or prevents data
skipping, and `info` is allowed and useful to know."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Finding:
    """A violation of a rule in a table.

    Attributes:
        rule: The id of the rule, as docs/audit-rules.md lists it.
        severity: `error`, `warning` or `info`.
        message: What is wrong and where.
        remedy: What to do.
        version: The version of the log, None if the finding is not about one commit.
        file_path: The decoded path of the data file, None for a finding about the log or the table.
        column: The logical name of the column, with dots between nested names.
        path_key: The path within the Variant, such as `$['a']`.
        row: The first row of the file that violates the rule, counted from 0.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> import os
        >>> os.remove(os.path.join("clicks", dv.load_snapshot("clicks").files["path"][0].as_py()))
        >>> [(finding.rule, finding.severity) for finding in dv.audit_table("clicks").findings]
        [('F1', 'error')]
    """

    rule: str
    severity: Severity
    message: str
    remedy: str
    version: int | None = None
    file_path: str | None = None
    column: str | None = None
    path_key: str | None = None
    row: int | None = None

    @property
    def sentence(self) -> str:
        """Return the message and the remedy as one sentence."""
        return f"{self.message}: {self.remedy}"


@dataclass(frozen=True)
class RuleSummary:
    """The findings of an audit that have the same rule, severity and remedy.

    Attributes:
        rule: The id of the rule, as docs/audit-rules.md lists it.
        severity: `error`, `warning` or `info`.
        remedy: What to do.
        count: The number of findings.
        files: The number of data files with such a finding, 0 for findings about the log or the table.
        example: The first of the findings.
    """

    rule: str
    severity: Severity
    remedy: str
    count: int
    files: int
    example: Finding


def summarize(findings: Iterable[Finding]) -> tuple[RuleSummary, ...]:
    """Return a summary per rule, severity and remedy: errors first, and the most frequent of each first."""
    groups: dict[tuple[str, Severity, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.severity, finding.remedy), []).append(finding)
    summaries = [
        RuleSummary(*key, len(group), len({each.file_path for each in group} - {None}), group[0])
        for key, group in groups.items()
    ]
    return tuple(sorted(summaries, key=lambda each: (SEVERITIES.index(each.severity), -each.count)))


@dataclass(frozen=True)
class Violation:
    """A violation that a check reports: a message without the remedy, and the location of a `Finding`."""

    message: str
    version: int | None = None
    file_path: str | None = None
    column: str | None = None
    path_key: str | None = None
    row: int | None = None


Check: TypeAlias = Callable[[Subject], Iterator[Violation]]


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """A rule: its id in docs/audit-rules.md, its severity, its check, and the remedy for a violation."""

    id: str
    severity: Severity
    check: Check[Subject]
    remedy: str


class Rules(list[Rule[Subject]]):
    """Rules in the order in which an audit applies them."""

    def add(self, id: str, severity: Severity, remedy: str) -> Callable[[Check[Subject]], Check[Subject]]:  # noqa: A002
        """Return a decorator that adds a check as a rule."""

        def register(check: Check[Subject]) -> Check[Subject]:
            self.append(Rule(id, severity, check, remedy))
            return check

        return register


def apply_rules(rules: Iterable[Rule[Subject]], subject: Subject) -> Iterator[Finding]:
    for rule in rules:
        for violation in rule.check(subject):
            yield Finding(rule=rule.id, severity=rule.severity, remedy=rule.remedy, **vars(violation))


Listener: TypeAlias = Callable[[Finding], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a listener for the findings of an audit in the block: before it ends, and not if Spark runs it."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(findings: Iterable[Finding]) -> None:
    if (listener := _LISTENER.get()) is not None:
        for finding in findings:
            listener(finding)
