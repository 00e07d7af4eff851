"""The public API of `delta_variant.spark`, which needs pyspark but no session."""

from __future__ import annotations

import inspect

import pytest
from support.public_api import TEXTS, describe

import delta_variant as dv
from delta_variant import spark as dvs


def test_the_public_api_of_spark_is_that_of_the_checked_in_text():
    expected = TEXTS["delta_variant.spark"].read_text("utf-8")
    assert describe(dvs) == expected, (
        "run `python tests/support/public_api.py spark` if the change is intended"
    )


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("write_table", {"timezone"}),
        ("read_changes", {"limit", "timezone"}),
    ],
)
def test_a_function_on_spark_has_the_parameters_of_its_twin(name: str, missing: set[str]):
    here, there = (list(inspect.signature(getattr(each, name)).parameters) for each in (dvs, dv))
    own = ("spark", "one_shredding", "optimize_write", "auto_compact")
    shared = ["data" if each == "df" else each for each in here if each not in own]
    # The session has a time zone.
    assert shared == [each for each in there if each not in missing]
