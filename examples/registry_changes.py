"""Write two releases of Bioregistry as change events of Debezium, for `spark_pipeline.py`.

    python examples/registry_changes.py OLD.json NEW.json LANDING

`1-snapshot.ndjson` has each entry of the old release (`"op": "r"`), and `2-changes.ndjson` what the new one
creates, updates and deletes. Its last line is cut short, as a producer that crashes leaves it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

Entries = dict[str, dict[str, Any]]


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("landing", type=Path)
    arguments = parser.parse_args(given)
    old, new = (json.loads(path.read_text("utf-8")) for path in (arguments.old, arguments.new))
    numbers = count(1)
    arguments.landing.mkdir(parents=True, exist_ok=True)
    write(arguments.landing / "1-snapshot.ndjson", events("r", {}, old, numbers))
    changes = list(events(None, old, new, numbers))
    write(arguments.landing / "2-changes.ndjson", [*changes, changes[-1][:-1]])


def events(op: str | None, old: Entries, new: Entries, numbers: Iterator[int]) -> Iterator[str]:
    """Yield an event for each entry that differs; `op` is the operation, by default what happened to it."""
    for prefix in sorted(old.keys() | new.keys()):
        before, after = (
            {"prefix": prefix, **entries[prefix]} if prefix in entries else None for entries in (old, new)
        )
        if before != after:
            happened = "c" if before is None else "d" if after is None else "u"
            event = {"op": op or happened, "before": before, "after": after, "source": {"lsn": next(numbers)}}
            yield json.dumps(event)


def write(path: Path, lines: Iterable[str]) -> None:
    # Spark ignores hidden files: a file is complete when it gets its name.
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    hidden.rename(path)


if __name__ == "__main__":
    main()
