"""Check that the executors of a session have the package, the storage and the clock of the driver."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.utils import is_remote

from .._version import package_version
from ..errors import StoreError, UnsupportedFeatureError, printable
from ..operations.vacuum import TASK_RECORDS
from ..storage import store as storage
from ..storage.store import TableLocation, missing_folders, open_store, remove_if_empty
from .locations import SHARED, session_options
from .monitoring import Monitor
from .queries.table_names import resolve_table
from .running import parallelism
from .task_errors import SAME_PACKAGE, explain_missing_package, restore_errors

HOLD_SECONDS = (0.2, 2.0)
"""How long a task occupies its slot, in each attempt to reach all executors."""

MAX_SKEW_SECONDS = 30.0
"""The difference of clocks that is reported. An executor that starts slowly looks less skewed than it is."""

SAME_TIMEZONE = "set TZ, or the time zone of each machine, to the same; Python UDFs compute local times in it"
SAME_CLOCK = "synchronize the clocks of the machines, such as with NTP"
SAME_ACCESS = (
    "give each machine access, or set the credentials in the session or as storage_options of a Table: both "
    "are sent to the executors"
)


@dataclass(frozen=True)
class WorkerReport:
    """The Python process of an executor, or the driver.

    Attributes:
        host: The name of the machine.
        process: The id of a Python process on it.
        python: The version of Python.
        executable: The path of the interpreter.
        package: The version of this package, `"unknown"` if it is not installed as a distribution.
        build: A digest of the sources of the package, None if it cannot be imported.
        import_error: The reason why the package cannot be imported, None if it can.
        timezone: The offsets of the local time zone from UTC in winter and summer, such as `UTC+1/UTC+2`.
        clock: How many seconds the clock is ahead of the driver's. It is 0 if the clock shows a time between
            the start and the end of the check on the driver.
        storage: Empty if the process finds the file that the driver wrote to the table's location, and can
            write there. Otherwise the reason. None if it was not checked.

    Example:
        >>> import tempfile
        >>> from delta_variant import spark as dvs
        >>> check = dvs.check_cluster(spark, tempfile.mkdtemp())
        >>> {each.package for each in check.executors} == {check.driver.package}
        True
    """

    host: str
    process: int
    python: str
    executable: str
    package: str
    build: str | None
    import_error: str | None
    timezone: str
    clock: float
    storage: str | None


@dataclass(frozen=True)
class ClusterCheck:
    """What `check_cluster` found.

    Attributes:
        uri: The location of the table.
        driver: The process of the driver, or of the client of Spark Connect.
        executors: A process of each executor that was reached.
        problems: A sentence for each problem, with the executors, and what to do about it.
        unknown: A sentence for each question that the check could not answer.

    Example:
        >>> import tempfile
        >>> from delta_variant import spark as dvs
        >>> check = dvs.check_cluster(spark, tempfile.mkdtemp())
        >>> check.problems, [each.storage for each in check.executors]
        ((), [''])
    """

    uri: str
    driver: WorkerReport
    executors: tuple[WorkerReport, ...]
    problems: tuple[str, ...]
    unknown: tuple[str, ...]

    def __repr__(self) -> str:
        """Return a table of the processes, the problems and the open questions."""
        rows = [
            HEADINGS,
            *(_cells("driver", self.driver), *(_cells("executor", each) for each in self.executors)),
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        notes = [("problem", each) for each in self.problems] + [("unknown", each) for each in self.unknown]
        lines += [f"{kind}: {text}" for kind, text in notes or [("problems", "none")]]
        return "\n".join(map(printable, [f"Cluster check of {self.uri}", *lines]))


HEADINGS = ("process", "host", "id", "python", "package", "build", "time zone", "clock", "storage")


def _cells(kind: str, report: WorkerReport) -> tuple[str, ...]:
    package = report.package if report.import_error is None else "missing"
    stored = {"": "same", None: "not checked"}.get(report.storage, "failed")
    clock = f"{report.clock:+.0f} s"
    return (
        *(kind, report.host, str(report.process), report.python, package, report.build or "-"),
        *(report.timezone, clock, stored),
    )


def check_cluster(spark: SparkSession, table: TableLocation) -> ClusterCheck:
    """Check that each executor can work on a table, before a job does.

    One job runs a Python function on the executors, which also runs where this package is missing. The
    driver writes a small file to the location of the table, the executors read it and write files of their
    own, and the driver removes them. The table need not exist, and does not change. Compared with the driver
    are

    - the versions of Python and of this package, and whether it can be imported
    - the storage at the location, and the access to it
    - the time zone, and the clock with a tolerance of 30 seconds

    A task of any other function of this package compares only the version of the package.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI, a `Table` or a name, as in `read_table`. The credentials are those with which
            tasks open the table.

    Returns:
        What was found. `problems` is empty if each executor that was reached equals the driver.

    Raises:
        StoreError: The driver cannot write to the location.
        TableNotFoundError: The text is neither the name of a table, nor a path or a URI.

    Example:
        >>> import tempfile
        >>> from delta_variant import spark as dvs
        >>> check = dvs.check_cluster(spark, tempfile.mkdtemp())
        >>> assert not check.problems, check
    """
    location = resolve_table(spark, table)
    options = session_options(spark, location)
    store = open_store(location, options)
    folder, absent = f"{TASK_RECORDS}/check-{uuid4()}", missing_folders(store)
    sent = None if options is None else dict(options)
    try:
        storage.put(store, f"{folder}/driver", folder.encode())
        with Monitor(spark, "CHECK CLUSTER", store.uri).step("compare executors"):
            return _check(
                spark,
                store.uri,
                lambda seconds: _probe_function(store.uri, sent, folder, package_version(), seconds),
            )
    finally:
        # `vacuum` removes what remains. The error of the check says more than that of its end.
        with suppress(StoreError):
            storage.delete_all(store, storage.list_files(store, folder))
        storage.remove_empty_folders(store, f"{folder}/driver")
        remove_if_empty(absent)


def _check(spark: SparkSession, uri: str, probe_for: Callable[[float], Callable[[int], str]]) -> ClusterCheck:
    """Run a probe, made for the seconds that it lasts, on all executors, and compare with the driver."""
    driver = _report(json.loads(_probe_function("", None, "", "", 0)(0)), clock=0.0, storage="")
    expected, found = _count_executors(spark), dict[tuple[str, int], WorkerReport]()
    try:
        for seconds in HOLD_SECONDS:
            found |= _run(spark, probe_for(seconds), 2 * (expected or 1))
            if expected is None or len(found) >= expected:
                break
    except UnsupportedFeatureError as error:
        return ClusterCheck(uri, driver, (), (str(error),), ())
    executors = tuple(found[key] for key in sorted(found))
    problems = tuple(_problems(uri, driver, executors))
    return ClusterCheck(uri, driver, executors, problems, tuple(_unknown(uri, executors, expected)))


def _count_executors(spark: SparkSession) -> int | None:
    """Return the number of executors, None on Spark Connect."""
    if is_remote():
        return None
    context: Any = spark.sparkContext._jsc.sc()
    # One of them is the driver, which runs the tasks of a local session.
    return max(len(context.statusTracker().getExecutorInfos()) - 1, 1)


def _run(spark: SparkSession, probe: Callable[[int], str], tasks: int) -> dict[tuple[str, int], WorkerReport]:
    """Return the report of one process of each executor, which host and parent process identify."""
    count = max(parallelism(spark), tasks)
    # Arrow may be missing there, too. Spark runs a function that is not deterministic once a row.
    function = udf(probe, useArrow=False).asNondeterministic()
    start = time.time()
    with restore_errors():
        rows = spark.range(0, count, 1, count).select(function("id")).collect()
    end = time.time()
    found = {}
    for (text,) in rows:
        fields = json.loads(text)
        skew = fields["clock"] - min(max(fields["clock"], start), end)
        key = fields["host"], fields["daemon"]
        found[key] = _report(fields, clock=skew)
    return found


def _report(fields: dict[str, Any], **others: Any) -> WorkerReport:
    del fields["daemon"]
    return WorkerReport(**{**fields, **others})


RULES: tuple[tuple[str, str, str], ...] = (
    ("package", "delta_variant {}", SAME_PACKAGE),
    ("build", "the build {} of delta_variant", SAME_PACKAGE),
    ("timezone", "the time zone {}", SAME_TIMEZONE),
)
"""Attributes that equal those of the driver, how a message names their value, and the remedy."""


def _problems(uri: str, driver: WorkerReport, executors: tuple[WorkerReport, ...]) -> Iterator[str]:
    def where(found: list[WorkerReport]) -> str:
        first = f"such as process {found[0].process} on {found[0].host}"
        return f"on {len(found)} of {len(executors)} executors, {first}"

    for name, what, remedy in RULES:
        if name == "timezone" and is_remote():
            # The client may be a laptop.
            expected = Counter(each.timezone for each in executors).most_common(1)[0][0]
        else:
            expected = getattr(driver, name)
        for value, found in _group(executors, name):
            is_compared = value is not None and (name != "build" or found[0].package == driver.package)
            if value != expected and is_compared and (name != "package" or found[0].import_error is None):
                shown = f"expected {what.format(expected)}, got {what.format(value)}"
                yield f"{shown} {where(found)}: {remedy}"
    for error, found in _group(executors, "import_error"):
        if error is not None:
            remedy = explain_missing_package()
            yield f"cannot import delta_variant {where(found)}, because of {error}: {remedy}"
    for reason, found in _group(executors, "storage"):
        if reason == NOT_FOUND:
            yield f"cannot find a file that the driver wrote to {uri} {where(found)}: {SHARED}"
        elif reason:
            yield f"cannot open {uri} {where(found)}, because of the error {reason!r}: {SAME_ACCESS}"
    if skewed := [each for each in executors if abs(each.clock) > MAX_SKEW_SECONDS]:
        size = f"at least {abs(skewed[0].clock):,.0f} s {'ahead' if skewed[0].clock > 0 else 'late'}"
        yield f"expected the clock of the driver, got others {where(skewed)}, the first {size}: {SAME_CLOCK}"


def _group(executors: tuple[WorkerReport, ...], name: str) -> list[tuple[Any, list[WorkerReport]]]:
    groups: dict[Any, list[WorkerReport]] = defaultdict(list)
    for each in executors:
        groups[getattr(each, name)].append(each)
    return list(groups.items())


def _unknown(uri: str, executors: tuple[WorkerReport, ...], expected: int | None) -> Iterator[str]:
    if expected is None:
        yield "whether there are more executors, because Spark Connect does not tell their number"
    elif len(executors) < expected:
        missed = f"{expected - len(executors)} of {expected} executors"
        yield f"the state of {missed}, which ran other tasks: check again when they are idle"
    if unchecked := sum(each.storage is None for each in executors):
        yield (
            f"whether {unchecked} of {len(executors)} executors can open {uri}, because they have another "
            "version of delta_variant, or none: check again after the installation"
        )


NOT_FOUND = "the file is missing"
"""The value of `storage` in the report of an executor that does not find the file of the driver."""


def _probe_function(
    uri: str, storage_options: Mapping[str, str] | None, folder: str, version: str, seconds: float
) -> Callable[[int], str]:
    """Return a function that reports the process that runs it, for a Python UDF.

    Args:
        uri: The location of a table.
        storage_options: The options of its store.
        folder: A folder below it, with a file `driver` whose content is the name of the folder. Empty to
            leave the store out.
        version: The version of this package on the driver. Another version does not open the store.
        seconds: How long the function occupies its task slot, so that other tasks run on other executors.

    Returns:
        A function of the number of the task. It returns an object in JSON with the fields of a
        `WorkerReport`, except that `clock` is the time since the epoch, and `daemon` is added: the process
        that starts the Python workers of the executor.
    """

    # Spark sends a function within a function by value, which an executor can run without this package.
    def probe(number: int) -> str:
        import calendar
        import json
        import os
        import platform
        import socket
        import sys
        import time

        clock = time.time()
        months = [calendar.timegm((time.gmtime().tm_year, month, 1, 0, 0, 0)) for month in (1, 7)]
        offsets = sorted({time.localtime(month).tm_gmtoff for month in months})
        report = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "daemon": os.getppid(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "timezone": "/".join(f"UTC{offset / 3600:+g}" for offset in offsets),
            "clock": clock,
            **find_package(),
        }
        name = f"{report['host']}-{report['process']}-{number}"
        is_comparable = folder and report["package"] == version and report["import_error"] is None
        report["storage"] = look_into_store(name) if is_comparable else None
        time.sleep(seconds)
        return json.dumps(report)

    def find_package() -> dict[str, str | None]:
        import hashlib
        from importlib import import_module
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as version_of
        from pathlib import Path

        found: dict[str, str | None] = {"package": None, "build": None, "import_error": None}
        try:
            found["package"] = version_of("delta-variant")
        except PackageNotFoundError:
            found["package"] = "unknown"
        try:
            package = import_module("delta_variant.spark")
            import_module("delta_variant._native")
        except ImportError as error:
            return {**found, "import_error": f"{type(error).__name__}: {error}"}
        digest = hashlib.sha256()
        for path in sorted(Path(package.__path__[0]).parent.rglob("*.py")):
            digest.update(path.read_bytes())
        return {**found, "build": digest.hexdigest()[:12]}

    def look_into_store(name: str) -> str:
        from importlib import import_module

        storage = import_module("delta_variant.storage.store")
        try:
            store = storage.open_store(uri, storage_options)
            if storage.read_if_present(store, f"{folder}/driver") != folder.encode():
                return NOT_FOUND
            storage.put(store, f"{folder}/{name}", b"")
        except Exception as error:  # Any error is a finding.
            return str(error) or repr(error)
        return ""

    return probe
