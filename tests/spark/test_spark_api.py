"""The public API of `delta_variant.spark`, which needs pyspark but no session."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from support.public_api import TEXTS, describe

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import ArgumentTypeError, DeltaVariantError


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


@pytest.mark.parametrize("is_session", [False, True], ids=["text", "stopped session"])
@pytest.mark.parametrize(
    "function",
    [
        dvs.SparkEngine,
        dvs.register,
        lambda spark: dvs.read_table(spark, "t"),
        lambda spark: dvs.read_changes(spark, "t"),
        lambda spark: dvs.sql(spark, "SELECT 1"),
    ],
    ids=["engine", "register", "read_table", "read_changes", "sql"],
)
def test_a_session_that_cannot_be_used_is_an_error(function: Callable[[Any], Any], is_session: bool):
    stopped = SimpleNamespace(_jsc=None)
    session = type("SparkSession", (), {"sparkContext": stopped, "is_stopped": True})() if is_session else "t"
    message = "the Spark session was stopped" if is_session else "spark: expected a SparkSession, got 't'"
    with pytest.raises(DeltaVariantError, match=message):
        function(session)


@pytest.mark.parametrize("name", ["auto_compact", "optimize_write", "one_shredding"])
def test_a_flag_of_the_engine_has_the_type_of_its_parameter(name: str):
    running = SimpleNamespace(_jsc=object())
    session: Any = type("SparkSession", (), {"sparkContext": running, "is_stopped": False})()
    with pytest.raises(dv.ArgumentTypeError, match=f"{name}: expected one of True, False.*, got 'false'"):
        dvs.SparkEngine(session, **{name: "false"})


def test_a_session_is_not_an_engine():
    with pytest.raises(ArgumentTypeError, match=r"expected an engine such as .*SparkEngine\(spark\), got 7"):
        dv.Table("t", engine=7)  # type: ignore[arg-type]
