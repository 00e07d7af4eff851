"""The public API of `delta_variant.spark`, which needs pyspark but no session."""

from __future__ import annotations

import inspect

from support.public_api import TEXTS, describe

import delta_variant as dv
from delta_variant import spark as dvs


def test_the_public_api_of_spark_is_that_of_the_checked_in_text():
    expected = TEXTS["delta_variant.spark"].read_text("utf-8")
    assert describe(dvs) == expected, (
        "run `python tests/support/public_api.py spark` if the change is intended"
    )


def test_changes_on_spark_have_the_parameters_of_one_process():
    here, there = (list(inspect.signature(each.read_changes).parameters) for each in (dvs, dv))
    # The session has a time zone, and DataFrames have a limit.
    missing = {"limit", "timezone"}
    assert here == ["spark", *(each for each in there if each not in missing)]
