"""Run an engine in a separate process, so that a crash or a hang is an answer and does not end the run."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from .case import Case
from .invoke import Answer, stored_columns

TAIL_BYTES = 2000
CHUNK_BYTES = 1 << 16
GB = 1_000_000_000

# Short, so that an engine hardly exceeds its memory limit.
POLL_SECONDS = 0.1


class AbsentError(Exception):
    """An engine does not start; the message is one sentence."""


class _MemoryLimitError(Exception):
    """An engine exceeded its memory limit; the message is one sentence."""


def case_line(number: int, case: Case) -> str:
    """Return a case as a line, without its expectation, so that no engine can know it."""
    request = {"id": case.id, "kind": case.kind, "folder": str(case.folder.resolve())}
    return json.dumps({"number": number, **request, "input": case.input, "options": case.options})


def worker_command(name: str) -> list[str]:
    """Return the command that starts the worker of an engine."""
    return [sys.executable, "-m", "delta_variant_conformance.worker", name]


class EngineProcess:
    """A worker process that answers one case after another and is restarted after a crash or a hang.

    A worker that exceeds its memory limit is killed, which counts as a crash. `packages` is a folder of the
    engine's Python packages or JARs; without it, those of this interpreter are used.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        start_seconds: float,
        memory_gb: float,
        packages: Path | None = None,
    ) -> None:
        self._name = name
        self._command = list(command)
        self._start_seconds = start_seconds
        self._memory_gb = memory_gb
        self._packages = packages
        self._running: _Running | None = None
        self._number = 0
        self.version = ""

    def start(self) -> None:
        """Start the engine; raises AbsentError."""
        self._running = _Running.of(self._command, self._memory_gb, _environment(self._packages))
        try:
            message = self._running.message(self._start_seconds)
        except _MemoryLimitError as error:
            message = {"absent": str(error)}
        if message is not None and "ready" in message:
            self.version = str(message["ready"])
            return
        reason = self._running.error_output() if message is None else str(message.get("absent"))
        if message is None and not reason:
            status = self._running.exit_status()
            within = f"within {self._start_seconds:g} seconds"
            within = within if status is None else f"before {_status_text(status)}"
            reason = f"no line with `ready` {within} from its worker"
        self.stop()
        raise AbsentError(f"{self._name} did not start: {_one_line(reason)}")

    def invoke(self, case: Case, timeout_seconds: float) -> Answer:
        """Return the answer to a case; raises AbsentError if the engine does not restart."""
        if self._running is None:
            self.start()
        assert self._running is not None
        self._number += 1
        deadline = time.monotonic() + timeout_seconds
        try:
            self._running.send(case_line(self._number, case), timeout_seconds)
            while (message := self._running.message(deadline - time.monotonic())) is not None:
                if message.get("number") == self._number:
                    return _answer(case, message)
        except _MemoryLimitError as error:
            self.stop()
            return Answer("crashed", message=str(error))
        return self._failure(timeout_seconds)

    def _failure(self, timeout_seconds: float) -> Answer:
        """Stop a worker that gave no answer, and return whether it crashed or timed out."""
        assert self._running is not None
        status = self._running.exit_status()
        if status is None:
            answer = Answer("timed out", message=f"no answer within {timeout_seconds:g} seconds")
        else:
            output = self._running.error_output()
            answer = Answer(
                "crashed", message=f"{_status_text(status)}: {output}" if output else _status_text(status)
            )
        self.stop()
        return answer

    def stop(self) -> None:
        """Kill the process and its child processes."""
        if self._running is not None:
            self._running.kill()
            self._running = None


def _answer(case: Case, message: Mapping[str, Any]) -> Answer:
    """Return the answer in a message, with the columns of what the engine wrote; a crash in another form."""
    outcome, content = message.get("outcome"), message.get("content")
    text = str(message.get("message") or "")
    classes = message.get("error_classes") or []
    if outcome == "refused" and isinstance(classes, list):
        return Answer("refused", message=text, error_classes=tuple(map(str, classes)))
    if outcome == "not offered":
        return Answer("not offered", message=text)
    if outcome != "answered" or not isinstance(content, Mapping):
        return Answer("crashed", message=f"expected an answer of WORKERS.md, got {json.dumps(message)[:200]}")
    return Answer("answered", stored_columns(case, content))


def _environment(packages: Path | None) -> dict[str, str]:
    """Return the environment of a worker that finds the Python packages and the JARs of a folder first."""
    environment = dict(os.environ)
    if packages is not None and packages.is_dir():
        folder = str(packages.resolve())
        for name, entry in (("PYTHONPATH", folder), ("CLASSPATH", f"{folder}/*")):
            others = environment.get(name)
            environment[name] = f"{entry}{os.pathsep}{others}" if others else entry
    return environment


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _status_text(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


class _Running:
    """A process that reads and writes lines of JSON; all other output goes to a file.

    Its temporary files are in a folder that `kill` removes.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        errors: IO[bytes],
        scratch: tempfile.TemporaryDirectory[str],
        memory_gb: float,
    ) -> None:
        self._process = process
        self._errors = errors
        self._scratch = scratch
        self._memory_gb = memory_gb
        self._pending = b""

    @classmethod
    def of(cls, command: Sequence[str], memory_gb: float, environment: Mapping[str, str]) -> _Running:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        # Child processes may write there until they are killed.
        scratch = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)
        environment = {**environment, "TMPDIR": scratch.name}
        pipe = subprocess.PIPE
        # A new session, so that child processes are killed with the engine.
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=pipe,
            stdout=pipe,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
        assert process.stdin is not None
        # A process that does not read is out of time, too.
        os.set_blocking(process.stdin.fileno(), False)
        return cls(process, errors, scratch, memory_gb)

    def send(self, line: str, seconds: float) -> None:
        """Write a line that the process reads, as much of it as it reads in `seconds`.

        Raises _MemoryLimitError if the process exceeds its memory limit before that.
        """
        assert self._process.stdin is not None
        deadline, rest = time.monotonic() + seconds, memoryview(line.encode() + b"\n")
        with suppress(BrokenPipeError), selectors.DefaultSelector() as selector:
            selector.register(self._process.stdin, selectors.EVENT_WRITE)
            while rest and (seconds := deadline - time.monotonic()) > 0:
                if selector.select(min(seconds, POLL_SECONDS)):
                    rest = rest[os.write(self._process.stdin.fileno(), rest) :]
                else:
                    self._check_memory()

    def message(self, seconds: float) -> dict[str, Any] | None:
        """Return the next object that the process prints, or None if it ends or after `seconds`.

        Raises _MemoryLimitError if the process exceeds its memory limit before that.
        """
        deadline = time.monotonic() + seconds
        while True:
            line = self._line(deadline)
            if line is None:
                return None
            with suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message

    def _line(self, deadline: float) -> bytes | None:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            # A process that prints without end is out of time, too.
            while (seconds := deadline - time.monotonic()) > 0:
                if b"\n" in self._pending:
                    line, _, self._pending = self._pending.partition(b"\n")
                    return line
                if selector.select(min(seconds, POLL_SECONDS)):
                    chunk = os.read(self._process.stdout.fileno(), CHUNK_BYTES)
                    if not chunk:
                        return None
                    self._pending += chunk
                else:
                    self._check_memory()
        return None

    def _check_memory(self) -> None:
        # The process leads its session and therefore its group.
        if resident_bytes(self._process.pid) > self._memory_gb * GB:
            raise _MemoryLimitError(f"exceeded {self._memory_gb:g} GB of memory")

    def exit_status(self) -> int | None:
        """Return the exit status of a process that has ended or is about to end; None if it is running."""
        try:
            return self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            return None

    def error_output(self) -> str:
        """Return the end of the output of the process, after the error of a traceback of Python."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - TAIL_BYTES))
        output = self._errors.read().decode(errors="replace").strip()
        lines = output.splitlines()
        # The first line is the cause of a crash in reports, and tracebacks of Python end with the error.
        return f"{lines[-1]}\n{output}" if any(line.startswith('  File "') for line in lines) else output

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]
        self._scratch.cleanup()


PROC = Path("/proc")

# Indices into the fields of /proc/<pid>/stat after the program name, which may contain spaces and brackets.
GROUP, RESIDENT_PAGES = 2, 21


def resident_bytes(group: int) -> int:
    """Return the resident memory of a process group in bytes, such as Spark's with its JVM; 0 without /proc.

    Address space is not a useful measure, because a JVM reserves far more than it uses.
    """
    pages = sum(int(stat[RESIDENT_PAGES]) for stat in _process_stats() if int(stat[GROUP]) == group)
    return pages * os.sysconf("SC_PAGE_SIZE")


def _process_stats() -> Iterator[list[str]]:
    for file in PROC.glob("[0-9]*/stat"):
        # A process may end before its file is read.
        with suppress(OSError):
            yield file.read_text(errors="replace").rpartition(")")[2].split()
