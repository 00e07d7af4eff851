"""The code of README.md, block by block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code: its kind from the fence, its text, and its first line."""

    kind: str
    code: str
    line: int

    @property
    def output(self) -> list[str]:
        """Return the expected output: the comments that begin a line."""
        return [line.removeprefix("# ") for line in self.code.splitlines() if line.startswith("# ")]


def blocks() -> Iterator[Block]:
    """Yield the blocks in order."""
    text = README.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield Block(found["kind"], found["code"], text.count("\n", 0, found.start()) + 2)


def prose() -> str:
    """Return the text without the blocks."""
    return FENCE.sub("", README.read_text(encoding="utf-8"))
