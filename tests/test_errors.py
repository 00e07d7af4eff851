"""Errors: their attributes, how `str()` composes them, and how they travel between processes."""

from __future__ import annotations

import copy
import doctest
import pickle
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from delta_variant import errors
from delta_variant.errors import (
    ArgumentTypeError,
    DataFileError,
    DeltaVariantError,
    MalformedLogError,
    MalformedVariantError,
    SchemaError,
    SourceNotFoundError,
    error_location,
)
from delta_variant.expressions import variant_get as variant_get_module
from delta_variant.variant import shredding, values

CLASSES = [getattr(errors, name) for name in errors.__all__]
FACTS = {
    "table": "s3://b/t",
    "file": "part-0.parquet",
    "line": 2,
    "row": 0,
    "column": "a.b",
    "path": "$.a",
    "version": 0,
}


def fail_in(file: str) -> None:
    with error_location(file=file, column="event"):
        raise DataFileError("truncated")


def raise_error(kind: type[DeltaVariantError]) -> None:
    raise kind("broken", column="event", rule="AU1").at(file="part-0.parquet", row=3)


@pytest.mark.parametrize("kind", CLASSES)
def test_facts_of_the_constructor_are_attributes_but_not_printed(kind: type[DeltaVariantError]):
    error = kind("the message", rule="AU1", **FACTS)
    assert {name: getattr(error, name) for name in FACTS} == FACTS
    assert error.rule == "AU1"
    assert str(error) == error.message == "the message"


@pytest.mark.parametrize("kind", CLASSES)
def test_unknown_facts_are_none(kind: type[DeltaVariantError]):
    error = kind("the message")
    assert {getattr(error, name) for name in (*FACTS, "rule")} == {None}
    assert str(error) == "the message"


def test_added_facts_are_printed_before_the_message_from_the_outermost_to_the_innermost():
    error = MalformedVariantError("too short").at(**FACTS)
    location = "s3://b/t, version 0, part-0.parquet, line 2, row 0, column 'a.b', path $.a"
    assert str(error) == f"{location}: too short"
    assert error.message == "too short"


def test_facts_can_be_added_one_at_a_time_in_any_order():
    error = MalformedVariantError("too short").at(row=3).at(file="a.parquet").at(column="event")
    assert str(error) == "a.parquet, row 3, column 'event': too short"


def test_a_known_fact_is_neither_overwritten_nor_printed_twice():
    error = SchemaError("no column 'a'", column="a").at(column="b", file="inner").at(file="outer")
    assert (error.column, error.file) == ("a", "inner")
    assert str(error) == "inner: no column 'a'"


def test_a_row_can_be_counted_from_another_start():
    error = MalformedVariantError("too short").at(row=3)
    error.row += 1000
    assert str(error) == "row 1003: too short"
    assert str(error.at(row=7)) == "row 1003: too short"


def test_a_fact_that_is_withdrawn_is_not_printed():
    error = MalformedVariantError("too short").at(file="a.parquet", row=3)
    error.row = None
    assert str(error) == "a.parquet: too short"


def test_at_returns_the_error_itself():
    error = SchemaError("no column")
    assert error.at(file="a.parquet") is error
    assert error.at() is error


def test_error_location_adds_facts_to_each_error_that_leaves_the_block():
    with pytest.raises(DataFileError) as caught, error_location(table="t", file="outer"):
        fail_in("inner")
    assert (caught.value.table, caught.value.file, caught.value.column) == ("t", "inner", "event")
    assert str(caught.value) == "t, inner, column 'event': truncated"


def test_error_location_does_not_change_other_errors():
    with pytest.raises(OSError, match=r"^disk$"), error_location(file="a.parquet"):
        raise OSError("disk")


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(
    "transfer",
    [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
def test_an_error_keeps_its_attributes_when_it_is_transferred(kind: type[DeltaVariantError], transfer):
    error = kind("the message", column="event", rule="AU1").at(file="a.parquet", row=3)
    transferred = transfer(error)
    assert type(transferred) is kind
    assert vars(transferred) == vars(error)
    assert str(transferred) == str(error) == "a.parquet, row 3: the message"


@pytest.mark.parametrize("transfer", [copy.copy, copy.deepcopy])
def test_a_copy_does_not_share_its_location(transfer):
    error = SchemaError("the message").at(file="a.parquet")
    copied = transfer(error).at(row=3)
    assert (str(error), str(copied)) == ("a.parquet: the message", "a.parquet, row 3: the message")


@pytest.mark.slow
def test_every_error_keeps_its_attributes_when_another_process_raises_it():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(raise_error, kind) for kind in CLASSES]
        found = [future.exception() for future in futures]
    assert [type(error) for error in found] == CLASSES
    for error in found:
        facts = (error.file, error.row, error.column, error.rule, error.message)
        assert facts == ("part-0.parquet", 3, "event", "AU1", "broken")
        assert str(error) == "part-0.parquet, row 3: broken"


def test_a_traceback_ends_with_class_location_and_message():
    error = MalformedLogError("expected one action per line").at(file="0.json", line=2)
    (last,) = traceback.format_exception_only(error)
    assert last == "delta_variant.errors.MalformedLogError: 0.json, line 2: expected one action per line\n"


def test_errors_of_python_kinds_can_be_caught_as_these():
    assert issubclass(ArgumentTypeError, TypeError)
    assert issubclass(ArgumentTypeError, ValueError)
    assert issubclass(SourceNotFoundError, FileNotFoundError)
    error = SourceNotFoundError("no such input", file="a.json")
    assert (str(error), error.file, error.errno) == ("no such input", "a.json", None)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_first_line_of_a_docstring_is_a_sentence(kind: type[DeltaVariantError]):
    first, *rest = (kind.__doc__ or "").splitlines()
    assert first.endswith(".")
    assert not rest or not rest[0].strip()


@pytest.mark.parametrize(
    "module", [errors, values, shredding, variant_get_module], ids=lambda each: each.__name__
)
def test_the_examples_of_docstrings_run(module):
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
