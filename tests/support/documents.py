"""The documentation for users, page by page: the code blocks and the prose of README.md and docs/.

A fence has a kind: `python` and `sh` run, `python spark` runs in a Spark session, `python readers` with other
engines, `html browser` in Chromium, and `text` does not run. A block of text follows a comment
`<!-- not run: reason -->`.

A block such as `python dbt` runs at night, in one of `ENVIRONMENTS`, which `tools/integrations.sh` installs.
It is a file if its first line is a comment with the name of a file. `python -m support.documents` with a page
and an environment runs the page in the current folder.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from delta_variant.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
DIRECTIVE = re.compile(r"\{[\w-]+\}.*")
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*\Z", re.DOTALL)
BUCKET = re.compile(r"\bs3a?://bucket\b")
FILE = re.compile(r"(?:#|--) (?P<name>[\w/]+\.(?:py|sql|yml))\n")
ENVIRONMENTS = ("airflow", "dagster", "dbt", "dlt", "frames")
"""The environments of packages that the tests do not have."""


@dataclass(frozen=True)
class Block:
    """A block of code: its kind from the fence, its text, its first line, and why it does not run, if so."""

    page: str
    kind: str
    code: str
    line: int
    reason: str | None = None

    @property
    def output(self) -> list[str]:
        """Return the expected output: the comments that begin a line."""
        return [line.removeprefix("# ") for line in self.code.splitlines() if line.startswith("# ")]

    @property
    def language(self) -> str:
        return self.kind.split(" ")[0]

    @property
    def environment(self) -> str | None:
        """Return where the block runs, or None: in every environment."""
        return self.kind.partition(" ")[2] or None

    @property
    def file(self) -> str | None:
        """Return the name of the file whose content the block is."""
        found = FILE.match(self.code) if self.environment in ENVIRONMENTS else None
        return found and found["name"]

    @property
    def origin(self) -> str:
        return f"{self.page}, line {self.line}"

    def with_bucket(self, folder: Path) -> Block:
        """Return the block with a local folder in place of the bucket `s3://bucket`."""
        return replace(self, code=BUCKET.sub(str(folder), self.code))


@dataclass(frozen=True)
class Page:
    """A page: its path in the repository, with slashes."""

    name: str

    @property
    def path(self) -> Path:
        return ROOT / self.name

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """Return the text without the blocks."""
        return FENCE.sub("", self.text)

    @property
    def environments(self) -> set[str]:
        """Return the environments that blocks of the page name."""
        return {block.environment for block in self.blocks() if block.environment is not None}

    def blocks(self, *kinds: str) -> list[Block]:
        """Return the blocks of these kinds, or all blocks, in order."""
        return [block for block in self._blocks() if not kinds or block.kind in kinds]

    def _blocks(self) -> Iterator[Block]:
        for found in FENCE.finditer(self.text):
            if not DIRECTIVE.fullmatch(found["kind"]):
                before = self.text[: found.start()]
                reason = NOT_RUN.search(before)
                line = before.count("\n") + 2
                yield Block(self.name, found["kind"], found["code"], line, reason and reason[1])

    def __str__(self) -> str:
        return self.name


def pages() -> list[Page]:
    """Return README.md and the pages of docs/, sorted."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [Page("README.md"), *(Page(path.relative_to(ROOT).as_posix()) for path in found)]


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Run a block with the names of the blocks before it. It prints exactly its comments."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, block.origin, "exec"), names)
    assert printed.getvalue().splitlines() == block.output, f"{block.origin}: {printed.getvalue()}"


def run_shell(block: Block, _: dict[str, Any]) -> None:
    """Run a block in the current folder. Its comments are lines of what it prints, in their order."""
    lines = block.code.replace("\\\n", "").splitlines()
    commands = (line for line in lines if line and not line.startswith("#"))
    text = "\n".join(_run_command(command, block.origin) for command in commands)
    printed = iter(text.splitlines())
    assert [line for line in block.output if line not in printed] == [], f"{block.origin}: {text}"


def _run_command(command: str, origin: str) -> str:
    """Run a line of a shell and return what it prints.

    A command of this library alone runs in this process, because an interpreter takes a second to start.
    """
    if command.startswith("delta-variant ") and not set(command) & set("|<>;&$*"):
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        status, printed, problem = result.exit_code, result.stdout, result.stderr
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, env=environment)
        status, printed, problem = done.returncode, done.stdout, done.stderr
    assert status == 0, f"{origin}: {problem}"
    return printed


RUNNERS: Mapping[str, Callable[[Block, dict[str, Any]], None]] = {"python": run_python, "sh": run_shell}


def run_page(page: Page, folder: Path, environment: str | None = None) -> int:
    """Run the blocks of a page in order in the current folder, and return their number.

    These are the blocks without an environment, and those of the given one.
    """
    names: dict[str, Any] = {}
    found = [
        block for block in page.blocks() if block.kind != "text" and block.environment in (None, environment)
    ]
    for block in found:
        located = block.with_bucket(folder / "bucket")
        if block.file is None:
            RUNNERS[block.language](located, names)
        else:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(located.code, encoding="utf-8")
    return len(found)


if __name__ == "__main__":
    run_page(Page(sys.argv[1]), Path.cwd(), sys.argv[2])
