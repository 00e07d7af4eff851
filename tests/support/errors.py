"""Expect an error by its attributes, which callers read, instead of by its message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from delta_variant import DeltaVariantError


@contextmanager
def raises_at(
    expected: type[DeltaVariantError], match: str | None = None, /, **attributes: object
) -> Iterator[pytest.ExceptionInfo[DeltaVariantError]]:
    """Expect an error with these attributes: `raises_at(SchemaError, column="id")`.

    Args:
        expected: The class of the error.
        match: What the message must contain, as a regular expression. Pass it for the cause, not for
            anything that an attribute has.
        attributes: Attributes of the error, by name, such as `column` and `version`.
    """
    with pytest.raises(expected, match=match) as caught:
        yield caught
    found = {name: getattr(caught.value, name) for name in attributes}
    assert found == attributes, str(caught.value)
