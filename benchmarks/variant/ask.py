"""Ask one engine every question of every layout, check the answers, and print the costs as a line of JSON.

    python benchmarks/variant/ask.py ENGINE FOLDER ROUND

A query runs twice: to compare its answer with that of plain Python over the JSON, without which it has no
cost, and warm, for its cost.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from queries import QUESTIONS, Question, normal
from systems import ENGINES, Ask, measure


def main(engine: str, folder: str, number: str) -> None:
    print(json.dumps({"layouts": costs(engine, Path(folder).absolute(), int(number))}), flush=True)
    # The process does not end while Sail's server runs.
    os._exit(0)


def costs(engine: str, folder: Path, number: int) -> dict[str, dict[str, Any]]:
    """Return the costs of an engine by layout and question. The order of layouts alternates by round."""
    facts = json.loads((folder / "answers.json").read_text("utf-8"))
    layouts = ENGINES[engine](folder)
    found: dict[str, dict[str, Any]] = {layout: {} for layout in layouts}
    for name, question in QUESTIONS.items():
        for layout in list(layouts)[:: (-1) ** number]:
            expected = facts["answers"][name]
            found[layout][name] = cost_of(layouts[layout], question, facts["needle"], expected)
    return found


def cost_of(ask: Ask, question: Question, needle: str, expected: list[str]) -> dict[str, Any]:
    """Return the least cost of a question, or why it has none."""
    try:
        rows = normal(ask(question, needle))
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        return {"failure": f"{type(error).__name__}: {first}"[:200]}
    if rows != expected:
        return {"failure": f"wrong answer: {_difference(rows, expected)}"[:200]}
    cost, _ = measure(lambda: ask(question, needle))
    return {"cpu": cost.cpu_seconds, "wall": cost.wall_seconds}


def _difference(rows: list[str], expected: list[str]) -> str:
    surplus, missing = (
        [row for row in a if row not in set(b)] for a, b in ((rows, expected), (expected, rows))
    )
    return f"{len(rows)} rows instead of {len(expected)}, {surplus[:1]} instead of {missing[:1]}"


if __name__ == "__main__":
    main(*sys.argv[1:])
