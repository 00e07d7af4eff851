"""The benchmark of Variants asks all layouts, and has figures of right answers only."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("polars")

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmarks" / "variant"
ROWS = 200


@pytest.fixture(autouse=True)
def folder_of_benchmark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARK))


def test_engines_answer_as_python_does_and_a_failure_has_its_error(tmp_path):
    import ask
    from data import prepare
    from report import report

    prepare(tmp_path, ROWS)
    results = [
        {
            "engine": engine,
            "rows": ROWS,
            "date": "2026-11-27",
            "load_before": 0,
            "machine": "a machine",
            "rounds": [{"layouts": ask.costs(engine, tmp_path, 0), "failure": None, "writes": {}}],
        }
        for engine in ("delta_variant", "duckdb", "polars")
    ]
    text = "\n".join(report(results))
    failures = [line for line in text.splitlines() if line.startswith("- ") and "`" in line]
    assert [line.partition(", all: ")[0] for line in failures] == ["- polars, variant", "- polars, shredded"]
    assert "variantShredding" in failures[1]
    assert text.count(" - |") == 2 * 2 * 9


def test_a_wrong_answer_has_no_figure():
    import ask
    from queries import QUESTIONS

    expected = ["[1.0]"]
    found = ask.cost_of(lambda *_: [(2,)], QUESTIONS["first"], "", expected)
    assert found == {"failure": "wrong answer: 1 rows instead of 1, ['[2.0]'] instead of ['[1.0]']"}
    assert set(ask.cost_of(lambda *_: [(1,)], QUESTIONS["first"], "", expected)) == {"cpu", "wall"}


def test_answers_are_compared_as_values():
    from queries import normal

    in_json = [('{"id": 7, "plan": null, "screen": {"h": 1, "w": 2.50}}', 3)]
    assert normal(in_json) == normal([({"screen": {"w": 2.5, "h": 1, "d": None}, "id": 7}, 3.0)])
    assert normal(in_json) != normal([({"screen": {"w": 2.5, "h": 1}, "id": 8}, 3)])
