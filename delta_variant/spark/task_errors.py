"""Errors of tasks: executors report them as one line of JSON, from which the driver restores them.

Spark passes an exception of a Python worker on as the text of its traceback.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from .. import errors
from ..errors import DeltaVariantError

__all__ = ["TaskError", "report_errors", "restore_errors"]

MARKER = "\ndelta_variant error: "
"""The start of the line; JSON with the class, the attributes and the location of the error follows."""


class TaskError(Exception):
    """An error of a task: its class and text for people, and a line from which it is restored."""

    def __init__(self, error: DeltaVariantError) -> None:
        super().__init__(f"{type(error).__name__}: {error}{MARKER}{_to_json(error)}")


@contextmanager
def report_errors() -> Iterator[None]:
    """Raise each `DeltaVariantError` of a task as a `TaskError`, whose text has all its attributes."""
    try:
        yield
    except DeltaVariantError as error:
        raise TaskError(error) from error


@contextmanager
def restore_errors() -> Iterator[None]:
    """Raise the error that a task reported in place of Spark's; any other error of Spark passes unchanged."""
    try:
        yield
    except PySparkException as error:
        if restored := _restore(str(error)):
            raise restored from error
        raise


def _to_json(error: DeltaVariantError) -> str:
    """Return the error as ASCII text of one line."""
    location = error.location
    attributes = {
        name: value
        for name, value in vars(error).items()
        if value is not None and name not in location and not name.startswith("_")
    }
    return json.dumps({"class": type(error).__name__, "attributes": attributes, "location": location})


def _restore(text: str) -> DeltaVariantError | None:
    # Messages may quote data that contains the marker. The line of the error itself is the last, and in JSON
    # line breaks are escaped.
    _, marker, line = text.rpartition(MARKER)
    if not marker:
        return None
    try:
        # The JVM's stack trace follows the object.
        reported, _ = json.JSONDecoder().raw_decode(line)
    except ValueError:
        return None
    kind: type[DeltaVariantError] = getattr(errors, reported["class"])
    return kind(**reported["attributes"]).at(**reported["location"])
