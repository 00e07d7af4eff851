"""The corpora as numbered lines of JSON."""

from __future__ import annotations

import json
import lzma
from itertools import islice
from pathlib import Path

import pyarrow as pa

# Every n-th line is sampled, by the name of the corpus.
CORPORA = {"windows_events": 40, "github_webhooks": 1, "openaddresses_sources": 1}


def read_lines(corpora: Path, name: str) -> list[str]:
    """Return the sampled lines of a corpus, each one JSON value."""
    with lzma.open(corpora / "json" / f"{name}.ndjson.xz", "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in islice(lines, 0, None, CORPORA[name])]


def json_table(lines: list[str], first: int = 0) -> pa.Table:
    """Return Arrow columns `line`, numbers from `first`, and `event`, JSON text for a Variant column."""
    numbers = pa.array(range(first, first + len(lines)), pa.int64())
    return pa.table({"line": numbers, "event": pa.array(lines, pa.json_())})


def write_texts(lines: list[str], file: Path) -> Path:
    """Write the lines as text, for an engine that parses them itself."""
    with file.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps({"line": number, "text": text}) + "\n" for number, text in enumerate(lines))
    return file
