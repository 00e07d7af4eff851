"""Docstrings of the public API describe every parameter, and their examples run as written."""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import delta_variant as dv
from delta_variant import functions as variant_functions

# The examples of these methods need an optional package.
PACKAGES = {"Scan.to_pandas": "pandas", "Scan.to_polars": "polars", "Table.to_deltalake": "deltalake"}
ARGUMENT = re.compile(r"^ {4}\*{0,2}(\w+): \S", re.MULTILINE)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function, and every other method of a public class, by its qualified name."""
    for name in dv.__all__:
        value = getattr(dv, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            for member, found in inspect.getmembers(value, inspect.isroutine):
                is_own = found.__qualname__.startswith(f"{name}.")
                if not member.startswith("_") and member in vars(value) and is_own:
                    yield f"{name}.{member}", found
    for name in variant_functions.__all__:
        yield f"functions.{name}", getattr(variant_functions, name)


FUNCTIONS = dict(functions())
CLASSES = {name: getattr(dv, name) for name in dv.__all__ if inspect.isclass(getattr(dv, name))}
EXAMPLES = {
    name: test
    for name, value in {**FUNCTIONS, **CLASSES}.items()
    for test in doctest.DocTestFinder(recurse=False).find(value, name)
    if test.examples
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_describes_every_parameter(name: str):
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    parameters = [each for each in inspect.signature(FUNCTIONS[name]).parameters if each != "self"]
    section = text.partition("\nArgs:\n")[2]
    described = ARGUMENT.findall(section.partition("\n\n")[0])
    assert [each for each in parameters if each != "cls"] == described


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_and_method_has_an_example(name: str):
    assert name in EXAMPLES


@pytest.mark.parametrize("name", [name for name in CLASSES if not issubclass(CLASSES[name], Exception)])
def test_every_public_class_has_an_example(name: str):
    assert name in EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_docstrings_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip(PACKAGES.get(name, "delta_variant"))
    monkeypatch.chdir(tmp_path)
    test = EXAMPLES[name]
    owner = FUNCTIONS[name] if name.startswith("functions.") else getattr(dv, name.split(".")[0])
    test.globs = dict(vars(sys.modules[owner.__module__]))
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.attempted > 0
    assert result.failed == 0
