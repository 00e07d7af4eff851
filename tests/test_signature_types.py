"""Each type in a public signature is a public name: of the root, or of `delta_variant.typing`."""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest

import delta_variant as dv
from delta_variant import typing as dv_typing

# A name, after the name of its module if there is one. Text of literals is not a name.
NAME = re.compile(r"""(?<![\w"'.])[A-Za-z_][\w.]*(?![\w"'])""")
PUBLIC = {**{name: getattr(dv, name) for name in dv.__all__}, **vars(dv_typing)}
# The optional packages are imported for annotations only.
FOREIGN = {"Dataset", "DeltaTable", "DuckDBPyConnection", "pd.DataFrame", "pl.DataFrame", "pl.LazyFrame"}


def annotations_of(value: Any) -> Iterator[tuple[str, str]]:
    """Yield each annotation of a function, or of the public members of a class, with its module."""
    if inspect.isclass(value):
        for name, annotation in inspect.get_annotations(value).items():
            if not name.startswith("_"):
                yield value.__module__, str(annotation)
        for name, found in vars(value).items():
            found = getattr(found, "fget", None) or getattr(found, "__func__", found)
            if not name.startswith("_") and inspect.isfunction(found):
                yield from annotations_of(found)
    elif inspect.isfunction(value):
        signature = inspect.signature(value)
        found = [each.annotation for each in signature.parameters.values()]
        for annotation in [*found, signature.return_annotation]:
            if annotation is not inspect.Parameter.empty:
                yield value.__module__, str(annotation)


def private_types(value: Any) -> Iterator[str]:
    """Yield the names in annotations that belong to this package and are not public."""
    for module, annotation in annotations_of(value):
        known = vars(sys.modules[module])
        for name in NAME.findall(annotation):
            first = name.split(".")[0]
            if name in FOREIGN or first in vars(builtins) or (first in known and first in ("pa", "os")):
                continue
            found = known.get(name, PUBLIC.get(name))
            if isinstance(found, TypeVar) or getattr(found, "__module__", "").split(".")[0] in STANDARD:
                continue
            if found is None or PUBLIC.get(name) != found:
                yield name


STANDARD = {"typing", "collections", "datetime", "os", "pathlib"}


@pytest.mark.parametrize("name", dv.__all__)
def test_each_type_in_a_signature_is_public(name: str):
    assert sorted(set(private_types(PUBLIC[name]))) == []


def test_a_private_type_is_found():
    def function(rows: Finished | list[str]) -> None: ...

    assert list(private_types(function)) == ["Finished"]
    assert len(list(annotations_of(dv.write_table))) == 17
    assert len(list(annotations_of(dv.CommitOptions))) == 3


class Finished:
    """A class that is not public."""


def test_the_types_are_no_second_home_of_public_names():
    assert not set(dv_typing.__all__) & set(dv.__all__)
    assert sorted(dv_typing.__all__) == dv_typing.__all__
