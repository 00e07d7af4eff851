"""An audit of some files, and what it says about all files."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
from support.tables import list_files
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.errors import ArgumentTypeError
from delta_variant.operations.audit import choose, sample_of
from delta_variant.typing import AuditSample


def exact_bound(files: int, checked: int, wrong: int) -> int:
    """Return the most wrong files of which a sample has at most `wrong` with a probability above 5 %."""

    def probability(total: int) -> Fraction:
        ways = (comb(total, n) * comb(files - total, checked - n) for n in range(wrong + 1))
        return Fraction(sum(ways), comb(files, checked))

    return max(
        total for total in range(wrong, files - checked + wrong + 1) if probability(total) > Fraction(1, 20)
    )


@pytest.mark.parametrize("files", [1, 2, 3, 10, 57, 200])
def test_the_bound_is_that_of_the_exact_distribution(files: int):
    for checked in {0, 1, min(2, files), files // 2, files - 1, files}:
        for wrong in {0, 1, checked // 2, checked}:
            if wrong <= checked:
                bound = exact_bound(files, checked, wrong)
                assert sample_of(files, checked, wrong) == AuditSample(files, checked, wrong, bound)


def test_a_large_table_has_the_bound_of_the_rule_of_three():
    assert sample_of(1_000_000, 1_000, 0).wrong_at_most / 1_000_000 == pytest.approx(3 / 1_000, rel=0.01)


def test_a_choice_is_random_in_order_and_repeatable():
    chosen = choose(range(1_000), 10, 7)
    assert chosen == sorted(set(chosen)) == choose(range(1_000), 10, 7)
    assert chosen != choose(range(1_000), 10, 8)
    assert choose("abc", 5, 0) == ["a", "b", "c"]
    counts = [0] * 4
    for seed in range(1_000):
        for item in choose(range(4), 1, seed):
            counts[item] += 1
    assert min(counts) > 200


@pytest.fixture
def events(tmp_path: Path) -> dv.Table:
    table = dv.Table(tmp_path / "events")
    for number in range(6):
        table.append([{"id": number}])
    return table


def test_an_audit_checks_some_files_of_a_version(events: dv.Table, tmp_path: Path):
    audit = events.audit(sample=4)
    assert len(audit.files) == 4
    assert audit.sample == AuditSample(6, 4, 0, 2)  # two of six are both missed with 1/15
    assert events.audit(sample=4).files == audit.files
    assert events.audit(sample=9).sample == AuditSample(6, 6, 0, 0)
    assert events.audit().sample is None
    for file in list_files(tmp_path / "events", "*.parquet"):
        os.remove(tmp_path / "events" / file)
    assert events.audit(sample=4).sample == AuditSample(6, 4, 4, 6)
    assert events.audit(since=4, sample=4).sample == AuditSample(1, 1, 1, 1)


def test_the_command_says_what_a_sample_means(events: dv.Table, tmp_path: Path):
    table = str(tmp_path / "events")
    done = CliRunner().invoke(app, ["audit", table, "--sample", "4"])
    assert (
        "4 random files of 6: none has an error or a warning, and with 95 % confidence at most 2 files of "
        "all (33.33%)" in done.stdout
    )
    found = json.loads(CliRunner().invoke(app, ["audit", table, "--sample", "4", "--json"]).stdout)
    assert found["sample"] == {"files": 6, "checked": 4, "wrong": 0, "wrong_at_most": 2}


@pytest.mark.parametrize(("sample", "error"), [(0, ValueError), ("1", ArgumentTypeError)])
def test_an_invalid_sample_is_rejected(events: dv.Table, sample: object, error: type[Exception]):
    with pytest.raises(error, match="sample: expected an integer"):
        events.audit(sample=sample)
