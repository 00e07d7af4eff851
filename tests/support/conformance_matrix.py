"""The matrix of engines in docs/about/conformance.md, from the history of their outcomes.

`PYTHONPATH=tests python tests/support/conformance_matrix.py` writes it; `test_conformance_matrix.py`
compares it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from delta_variant_conformance.engines import ENGINES
from delta_variant_conformance.history import Record, load_history
from delta_variant_conformance.report import FINDINGS, SCORES, score, score_of_offered
from support.locations import ROOT

HISTORY = ROOT / "docs" / "about" / "conformance-history.json"
PAGE = ROOT / "docs" / "about" / "conformance.md"
BEGIN, END = (
    "<!-- matrix: written by tests/support/conformance_matrix.py -->\n",
    "<!-- end of the matrix -->\n",
)


def with_matrix(page: str) -> str:
    """Return the text of the page with the matrix of the history."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{matrix()}\n{END}{after}"


def matrix() -> str:
    """Return the last record of each engine as a Markdown table: passed of offered cases, and findings."""
    engines = load_history(HISTORY).engines
    records = [(name, engines[name][-1]) for name in ENGINES if name in engines]
    groups = sorted({case.partition("/")[0] for _, record in records for case in record.statuses})
    cases = {case for _, record in records for case in record.statuses}
    heading = ("engine", *groups, "all", *FINDINGS, *SCORES)
    lines = [
        f"{len(cases):,} cases and {len(records)} engines, run until {max(r.date for _, r in records)}.\n",
        row(heading),
        row(["---"] + ["--:"] * (len(heading) - 1)),
        *(row(cells(name, record, groups)) for name, record in records),
    ]
    return "\n".join(lines) + "\n"


def row(cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def cells(name: str, record: Record, groups: list[str]) -> Iterator[str]:
    yield f"{name} {record.version}"
    for group in groups:
        yield passed([status for case, status in record.statuses.items() if case.startswith(f"{group}/")])
    statuses = list(record.statuses.values())
    yield passed(statuses)
    counts = Counter(statuses)
    yield from (str(counts[status] or "–") for status in FINDINGS)
    yield from (str(score(statuses)), str(score_of_offered(statuses)))


def passed(statuses: list[str]) -> str:
    counts = Counter(statuses)
    offered = len(statuses) - counts["not offered"]
    return f"{counts['pass']}/{offered}" if offered else "–"


if __name__ == "__main__":
    PAGE.write_text(with_matrix(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
