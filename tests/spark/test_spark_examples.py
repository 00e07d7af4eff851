"""The examples in the docstrings of `delta_variant.spark` run as written, with a session `spark`."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest
from pyspark.sql import SparkSession

from delta_variant import spark as dvs

CLASSIC = {"delta_variant.spark.streams": pytest.mark.classic("the id of a streaming query")}
MODULES = [
    pytest.param(name, marks=CLASSIC.get(name, ()))
    for name in sorted({getattr(dvs, public).__module__ for public in dvs.__all__})
]


def test_every_public_function_has_an_example():
    assert [name for name in dvs.__all__ if ">>> " not in (getattr(dvs, name).__doc__ or "")] == []


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(spark: SparkSession, module: str):
    result = doctest.testmod(import_module(module), extraglobs={"spark": spark})
    assert result.attempted > 0
    assert result.failed == 0
