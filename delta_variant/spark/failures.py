"""Errors of tasks, which Spark hands on as text, as the exceptions that they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from .. import errors

__all__ = ["task_errors"]

# The last line of a traceback that tells of an error of ours, and what of its sentence follows.
RAISED = re.compile(r"^delta_variant\.errors\.(\w+Error): (.*)\Z", re.MULTILINE | re.DOTALL)
BEHIND = re.compile(r"\n SQLSTATE:|\n\n\tat |\n\tat ")


@contextmanager
def task_errors() -> Iterator[None]:
    """Raise what a task raised, where it is an error of ours; other errors of Spark pass as they are."""
    try:
        yield
    except PySparkException as error:
        if own := _own_error(str(error)):
            raise own from error
        raise


def _own_error(text: str) -> errors.DeltaVariantError | None:
    found = RAISED.search(text)
    if found is None or found[1] not in errors.__all__:
        return None
    kind: type[errors.DeltaVariantError] = getattr(errors, found[1])
    return kind(BEHIND.split(found[2], maxsplit=1)[0].rstrip())
