"""Describe the public API as text: every public name with its signature, and the members of public classes.

`python tests/support/public_api.py` writes the description to `tests/public_api.txt`, which
`test_public_api.py` compares with the package. A change of that file is a change that users notice. With the
argument `functions` or `spark`, it describes that module in a text of its own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parents[1]
TEXTS = {
    "delta_variant": FOLDER / "public_api.txt",
    "delta_variant.functions": FOLDER / "public_functions.txt",
    "delta_variant.spark": FOLDER / "spark" / "public_api.txt",
}
HIDDEN_BASES = {"Rows"}


class _Annotation:
    """An annotation that prints without quotes."""

    def __init__(self, text: object) -> None:
        self._text = text

    def __repr__(self) -> str:
        return str(self._text).strip('"')


def describe(module: ModuleType) -> str:
    """Return a line for each public name of a module, and an indented one for each member of a class."""
    return "".join(f"{line}\n" for name in sorted(module.__all__) for line in _describe(module, name))


def _describe(module: ModuleType, name: str) -> Iterator[str]:
    value = getattr(module, name)
    if not inspect.isclass(value):
        yield f"{name}{_signature(value)}" if callable(value) else name
        return
    # Users see the members of a base class that is not public as those of its subclass.
    hidden = [each for each in value.__bases__ if each.__name__ in HIDDEN_BASES]
    bases = ", ".join(base.__name__ for base in value.__bases__ if base not in (object, *hidden))
    yield f"class {name}({bases})" if bases else f"class {name}"
    own = fields(value) if is_dataclass(value) else ()
    own = tuple(field for field in own if field.name in inspect.get_annotations(value))
    for field in own:
        if not field.name.startswith("_"):
            default = "" if field.default is MISSING else f" = {field.default!r}"
            yield f"    {field.name}: {_Annotation(field.type)}{default}"
    known = {field.name for field in own}
    members = dict(chain.from_iterable(vars(each).items() for each in (*hidden, value)))
    for member, found in members.items():
        if not member.startswith("_") and member not in known:
            yield f"    {_member(member, found)}"


def _member(name: str, found: Any) -> str:
    if isinstance(found, property) and found.fget is not None:
        return f"{name}: {_Annotation(inspect.signature(found.fget).return_annotation)}"
    if isinstance(found, classmethod | staticmethod):
        return f"{type(found).__name__} {name}{_signature(found.__func__)}"
    return f"{name}{_signature(found)}" if callable(found) else name


def _signature(value: Callable[..., Any]) -> str:
    signature = inspect.signature(value)
    parameters = [
        each
        if each.annotation is inspect.Parameter.empty
        else each.replace(annotation=_Annotation(each.annotation))
        for each in signature.parameters.values()
    ]
    result = signature.return_annotation
    if result is not inspect.Signature.empty:
        result = _Annotation(result)
    return str(signature.replace(parameters=parameters, return_annotation=result))


if __name__ == "__main__":
    chosen = ".".join(["delta_variant", *sys.argv[1:]])
    TEXTS[chosen].write_text(describe(import_module(chosen)), "utf-8")
