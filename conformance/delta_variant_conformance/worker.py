"""The process of an engine: one case per line on standard input, one answer per line on standard output.

Run as `python -m delta_variant_conformance.worker ENGINE`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Any

from .case import Case
from .engine import Engine
from .engines import start
from .invoke import invoke


def case_from_line(line: str) -> tuple[int, Case]:
    """Return the number and the case of a line on standard input."""
    request = json.loads(line)
    case = Case(
        id=request["id"],
        kind=request["kind"],
        folder=Path(request["folder"]),
        rules=(),
        verdict="",
        section="",
        about="",
        input=request["input"],
        expect={},
        options=request["options"],
    )
    return request["number"], case


def serve(start_engine: Callable[[Path], Engine]) -> None:
    """Start an engine, report its version, and answer cases until standard input ends."""
    answers = _private_stdout()
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        home = Path(scratch) / "engine"
        home.mkdir()
        try:
            engine = start_engine(home)
        except Exception as error:  # any error means that the engine is absent
            _send(answers, {"absent": f"{type(error).__name__}: {error}"})
            return
        _send(answers, {"ready": engine.version})
        for line in sys.stdin:
            _answer(engine, line, answers)


def _answer(engine: Engine, line: str, answers: IO[str]) -> None:
    number, case = case_from_line(line)
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        answer = invoke(engine, case, Path(scratch))
    _send(answers, {"number": number, **asdict(answer)})


def _private_stdout() -> IO[str]:
    """Return standard output for the answers alone, and redirect the output of engines to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _send(answers: IO[str], message: Mapping[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    serve(partial(start, sys.argv[1]))
