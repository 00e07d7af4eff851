"""The matrix of engines in the documentation is that of the recorded outcomes."""

from __future__ import annotations

from support.conformance_matrix import HISTORY, PAGE, with_matrix

from delta_variant_conformance.engines import ENGINES
from delta_variant_conformance.history import load_history


def test_the_matrix_of_the_page_is_that_of_the_history():
    page = PAGE.read_text(encoding="utf-8")
    assert with_matrix(page) == page, "run PYTHONPATH=tests python tests/support/conformance_matrix.py"


def test_the_history_has_every_engine_with_its_version():
    engines = load_history(HISTORY).engines
    assert set(engines) == set(ENGINES)
    assert len(engines) >= 10
    assert all(record.version for records in engines.values() for record in records)


def test_this_library_passes_every_recorded_case():
    statuses = load_history(HISTORY).engines["ours"][-1].statuses
    assert {case for case, status in statuses.items() if status != "pass"} == set()
    assert len(statuses) >= 2500
