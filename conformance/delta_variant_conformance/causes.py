"""Group the findings of an engine by what causes them, so that one mistake is one entry of a report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .differences import Difference
from .grade import Result, Status
from .runner import EngineRun

TITLE = 160
"""Characters of a message in a title."""

# What a message quotes from a case does not tell one cause from another.
VARYING = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|[(\[{<].*[)\]}>]|(?:/[\w.-]+)+|(?<![\w-])-?\d[\w.,]*""")


@dataclass(frozen=True)
class Cause:
    """Findings that fail alike: with one status, and the same difference, message or unchecked rule.

    `rules` are those of all these cases that no passed case has. If there are none, they are the rules of
    all these cases, or else the most frequent rule.
    """

    status: Status
    title: str
    rules: tuple[str, ...]
    results: tuple[Result, ...]

    @property
    def scope(self) -> str:
        """Return which rules the cases have: `of E-M2`, or `of 14 rules such as P-S1`."""
        named, counts = ", ".join(self.rules), _counts(self.results)
        if all(counts[rule] == len(self.results) for rule in self.rules):
            return f"of {named}"
        return f"of {len(counts)} rules such as {named}"

    @property
    def example(self) -> Result:
        """Return the finding with the shortest texts."""
        return _shortest(self.results)


def causes_of(engine: EngineRun, severity: Sequence[Status]) -> list[Cause]:
    """Return the causes of the findings, by a severity of statuses, the most frequent first."""
    passed = _counts(each for each in engine.results if each.status == "pass")
    causes = [
        Cause(group[0].status, title, _rules(group, passed), tuple(group)) for title, group in _groups(engine)
    ]
    return sorted(causes, key=lambda each: (severity.index(each.status), -len(each.results)))


def _groups(engine: EngineRun) -> Iterator[tuple[str, list[Result]]]:
    """Yield the findings of each cause with a title."""
    groups: dict[tuple[Status, str], list[Result]] = {}
    accepted: list[Result] = []
    for result in engine.findings:
        if result.status == "accepted":
            accepted.append(result)
        else:
            groups.setdefault((result.status, _key(engine, result)), []).append(result)
    for group in groups.values():
        yield _title(engine, group), group
    for group in _by_rule(accepted):
        yield f"not checked: {_shortest(group).case.about}", group


def _by_rule(results: Sequence[Result]) -> Iterator[list[Result]]:
    """Yield results that share a rule, those of the most frequent rule first."""
    rest = list(results)
    while rest:
        counts = _counts(rest)
        rule = min(counts, key=lambda each: (-counts[each], each))
        yield [each for each in rest if rule in each.case.rules]
        rest = [each for each in rest if rule not in each.case.rules]


def _key(engine: EngineRun, result: Result) -> str:
    """Return a text that findings with one cause share."""
    difference = engine.differences.get(result.case.id)
    if difference is not None:
        return f"{difference.type}: {difference.change}"
    return VARYING.sub("…", _message(result))


def _title(engine: EngineRun, group: Sequence[Result]) -> str:
    differences = [engine.differences[each.case.id] for each in group if each.case.id in engine.differences]
    if differences:
        return _difference_title(differences)
    message = _message(_shortest(group))
    return message if len(message) <= TITLE else f"{message[:TITLE]}…"


def _difference_title(differences: Sequence[Difference]) -> str:
    """Return the type and its change, with the first mistake that explains all values."""
    hints = [each.hints for each in differences if each.hints is not None]
    explained = sorted(frozenset.intersection(*hints)) if hints else []
    return f"{differences[0].type}: {differences[0].change}{f' ({explained[0]})' if explained else ''}"


def _message(result: Result) -> str:
    """Return the first line of a message, without the answer that it quotes."""
    lines = result.got.partition("; the whole answer: ")[0].strip().splitlines()
    return lines[0] if lines else ""


def _rules(group: Sequence[Result], passed: Collection[str]) -> tuple[str, ...]:
    shared = [rule for rule, number in _counts(group).items() if number == len(group)]
    frequent = [rule for rule, _ in _counts(group).most_common(1)]
    return tuple([rule for rule in shared if rule not in passed] or shared or frequent)


def _counts(results: Iterable[Result]) -> Counter[str]:
    """Return the number of cases of each rule."""
    return Counter(rule for each in results for rule in each.case.rules)


def _shortest(results: Sequence[Result]) -> Result:
    return min(results, key=lambda each: (len(each.expected) + len(each.got), each.case.id))
