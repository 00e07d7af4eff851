"""The tour of `make demo` prints what its data has."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

TOUR = Path(__file__).resolve().parents[1] / "examples" / "cities.py"
ROME = 40_000


def test_the_tour_shows_rejects_skips_groups_changes_and_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    cities = {
        str(number): {
            "geonameid": number,
            "name": f"Town {number}",
            "countrycode": "VA" if number == ROME else "IS" if number < ROME else "IN",
            "population": number % 100,
            "timezone": "UTC",
        }
        for number in range(75_001)
    }
    cities["7"]["population"] = 9001
    source = tmp_path / "cities.json"
    source.write_text(json.dumps(cities))
    monkeypatch.setattr(sys, "argv", [str(TOUR), str(source), str(tmp_path / "tour")])
    runpy.run_path(str(TOUR), run_name="__main__")
    printed = capsys.readouterr().out
    assert all(len(line) <= 80 for line in printed.splitlines())
    # Line 75,000 is cut in its middle; each 10,000th population is text.
    assert "WriteResult(version=0, rows=75000, invalid=1" in printed
    assert "line 75000: a string is not closed" in printed
    assert "city:population   bigint" in printed
    assert "{'name': 'Town 7', 'people': 9001}\nfiles" in printed
    people = 9001 - 7 + sum(number % 100 for number in range(ROME) if number % 10_000 != 9_999)
    assert f"{{'country': 'IS', 'cities': 40000, 'people': {people}}}" in printed
    assert "rows_updated=1," in printed
    assert "{'name': 'Town 40000', 'checked': None}\n{'name': 'Town 40000', 'checked': True}" in printed
    assert "error=0" in printed
