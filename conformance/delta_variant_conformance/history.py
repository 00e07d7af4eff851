"""Keep the outcome of each case by engine and version, and compare a run with the last run of an engine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .case import InvalidCaseError
from .grade import Status
from .runner import EngineRun, Run

CODES: Mapping[Status, str] = {
    "pass": ".",
    "wrong value": "w",
    "wrong layout": "l",
    "accepted": "a",
    "refused": "r",
    "crashed": "c",
    "timed out": "t",
    "not offered": "-",
}
NOT_RUN = " "
STATUSES: Mapping[str, Status] = {code: status for status, code in CODES.items()}


@dataclass(frozen=True)
class Change:
    """The cases in which two runs of an engine differ: fixed, broken, or with another finding."""

    engine: str
    before: str
    after: str
    fixed: tuple[str, ...]
    broke: tuple[str, ...]
    other: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line for the versions, and one for each way in which cases differ."""
        versions = self.after if self.before == self.after else f"{self.before} -> {self.after}"
        yield f"{self.engine} {versions}: {len(self.fixed)} fixed, {len(self.broke)} broke"
        for name in ("fixed", "broke", "other"):
            cases = getattr(self, name)
            if cases:
                yield f"  {name}: {', '.join(cases)}"


@dataclass(frozen=True)
class Record:
    """The statuses of the cases in a run of one version of an engine."""

    version: str
    date: str
    statuses: Mapping[str, Status]

    def change_to(self, engine: str, after: Record) -> Change:
        """Return how the cases of both records differ. The cases in `other` pass in neither record."""
        found: dict[str, list[str]] = {"fixed": [], "broke": [], "other": []}
        for case, status in after.statuses.items():
            old = self.statuses.get(case)
            if old is not None and old != status:
                kind = "fixed" if status == "pass" else "broke" if old == "pass" else "other"
                found[kind].append(case)
        return Change(
            engine, self.version, after.version, **{name: tuple(ids) for name, ids in found.items()}
        )


@dataclass
class History:
    """The records of each engine, oldest first, one for each version."""

    engines: dict[str, list[Record]] = field(default_factory=dict)

    def add(self, run: Run, date: str) -> list[Change]:
        """Add the engines of a run, and return what changed in them since their last record.

        A run of the version that the last record has replaces the cases that it ran. An engine that did not
        start, or that an interrupt ended, changes nothing.
        """
        changes: list[Change] = []
        for engine in run.engines:
            if not engine.absent and not engine.is_interrupted:
                changes += self._add(engine, date)
        return changes

    def _add(self, engine: EngineRun, date: str) -> Iterator[Change]:
        records = self.engines.setdefault(engine.name, [])
        statuses = {result.case.id: result.status for result in engine.results}
        record = Record(engine.version, date, statuses)
        if records:
            change = records[-1].change_to(engine.name, record)
            if change.before != change.after or change.fixed or change.broke or change.other:
                yield change
        if records and records[-1].version == engine.version:
            record = Record(engine.version, date, {**records.pop().statuses, **statuses})
        records.append(record)

    def save(self, file: Path) -> None:
        """Write the records: for each group of cases a text with one letter for each case.

        A text has the letters of `codes`, in the order of `cases`, so that a thousand cases take a kilobyte.
        """
        cases = _groups({case for each in self._records() for case in each.statuses})
        engines = {
            name: [_entry(record, cases) for record in records]
            for name, records in sorted(self.engines.items())
        }
        codes: dict[str, str] = {**STATUSES, NOT_RUN: "not run"}
        content = {"codes": codes, "cases": cases, "engines": engines}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def _records(self) -> Iterator[Record]:
        for records in self.engines.values():
            yield from records


def _groups(cases: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of cases by the part of their ids before the slash."""
    groups: dict[str, list[str]] = {}
    for case in sorted(cases):
        group, _, name = case.partition("/")
        groups.setdefault(group, []).append(name)
    return groups


def _entry(record: Record, cases: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    def code(case: str) -> str:
        return CODES[record.statuses[case]] if case in record.statuses else NOT_RUN

    texts = {group: "".join(code(f"{group}/{name}") for name in names) for group, names in cases.items()}
    counts = Counter(record.statuses.values())
    return {
        "version": record.version,
        "date": record.date,
        "counts": {status: counts[status] for status in CODES if counts[status]},
        "outcomes": texts,
    }


def load_history(file: Path) -> History:
    """Return the history in a file, empty if it does not exist; raises InvalidCaseError with the file."""
    if not file.exists():
        return History()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        engines: dict[str, list[Record]] = {}
        for name, entries in content["engines"].items():
            engines[name] = [_record(entry, content["cases"]) for entry in entries]
        return History(engines)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidCaseError(f"invalid history: {type(error).__name__}: {error}").at(
            file=str(file)
        ) from error


def _record(entry: Mapping[str, Any], cases: Mapping[str, Sequence[str]]) -> Record:
    statuses: dict[str, Status] = {}
    for group, letters in entry["outcomes"].items():
        for name, letter in zip(cases[group], letters, strict=True):
            if letter != NOT_RUN:
                statuses[f"{group}/{name}"] = STATUSES[letter]
    return Record(entry["version"], entry["date"], statuses)
