"""Errors of tasks: executors report them as one line of JSON, from which the driver restores them.

Spark passes an exception of a Python worker on as the text of its traceback.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .. import errors
from .._version import package_version
from ..errors import DeltaVariantError, UnsupportedFeatureError
from .versions import SPARK_ERRORS

PACKAGE = "delta_variant"
SAME_PACKAGE = "install the same version on the driver and on each machine"
SAME_PYTHON = "set PYSPARK_PYTHON or spark.pyspark.python to the same Python on each machine"

_NOT_IMPORTED = re.compile(r"(?:ModuleNotFound|Import)Error: (?:No module named|cannot import name) '[\w.]+'")
_OTHER_PACKAGE = re.compile(rf"expected {PACKAGE} \S+, as on the driver, got [^\s:]+")
_OTHER_PYTHON = re.compile(r"Python in worker has different version: (\S+) than that in driver: ([^\s,]+)")

MARKER = "\ndelta_variant error: "
"""The start of the line; JSON with the class, the attributes and the location of the error follows."""


@dataclass(frozen=True)
class DriverPackage:
    """The version of this package on the driver; to unpickle it where another is installed is an ImportError.

    It is part of each value that Spark sends to the tasks of its format `delta_variant`.
    """

    version: str = field(default_factory=package_version)

    def __reduce__(self) -> tuple[Callable[[str], DriverPackage], tuple[str]]:
        """Return the function that rebuilds the object, and its argument."""
        return _check_package, (self.version,)


def _check_package(expected: str) -> DriverPackage:
    if (found := package_version()) != expected:
        raise ImportError(other_package(expected, found))
    return DriverPackage(expected)


def other_package(expected: str, found: str) -> str:
    """Return the sentence about a version of this package that is not the driver's."""
    return f"expected {PACKAGE} {expected}, as on the driver, got {found}: {SAME_PACKAGE}"


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
    """Raise the error that a task reported in place of Spark's; any other error of Spark passes unchanged.

    The functions of this package use it themselves. Spark computes a DataFrame of `read_table` or of the
    format `delta_variant` when one of its actions is called, and raises an error of its own: a
    PySparkException, or a Py4JJavaError with the stack of the JVM. Call the action in a block of this
    context manager to get the error of this package, with its attributes.

    Returns:
        A context manager.

    Raises:
        DeltaVariantError: The error of the task, of its own class. Its `__cause__` is the error of Spark.
        UnsupportedFeatureError: Executors cannot import this package, or have another version of it or of
            Python.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, pa.table({"event": pa.array(["1"], pa.json_())}))
        >>> df = dvs.read_table(spark, table, columns={"day": "event::date"})
        >>> try:
        ...     with dvs.restore_errors():
        ...         rows = df.collect()
        ... except dv.errors.CastError as error:
        ...     print(error.column, error.row)
        event 0
    """
    try:
        yield
    except SPARK_ERRORS as error:
        restored = _restore(str(error)) or _other_environment(str(error))
        if restored is None:
            raise
        try:
            raise restored from error
        finally:
            del restored  # Its traceback refers to this frame.


def explain_missing_package() -> str:
    """Return what to do about an executor that cannot import this package."""
    return (
        f"the Python of the executors lacks packages that the driver has in {sys.executable}: install "
        f"{PACKAGE} and its dependencies on each machine, or send an environment with --archives, and set "
        "PYSPARK_PYTHON or spark.pyspark.python to its interpreter before the session starts; on one "
        "machine, set PYSPARK_PYTHON to the interpreter of the driver"
    )


def _other_environment(text: str) -> UnsupportedFeatureError | None:
    """Return an error for a worker that lacks this package, or has another version of it or of Python."""
    if found := _OTHER_PACKAGE.search(text):
        return UnsupportedFeatureError(f"cannot run tasks on the executors: {found[0]}: {SAME_PACKAGE}")
    if found := _OTHER_PYTHON.search(text):
        versions = f"expected Python {found[2]}, as on the driver, got {found[1]}"
        return UnsupportedFeatureError(f"cannot run tasks on the executors: {versions}: {SAME_PYTHON}")
    found = _NOT_IMPORTED.search(text)
    if found is None or PACKAGE not in text:
        return None
    return UnsupportedFeatureError(f"cannot run tasks because of {found[0]}: {explain_missing_package()}")


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
