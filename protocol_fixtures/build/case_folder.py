"""Write folders of cases reproducibly: `case.json`, commits as JSON lines, and small Parquet files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from guards import guards_of

CASES = Path(__file__).resolve().parents[1] / "cases"

Case = dict[str, Any]


def new_case(
    kind: str,
    name: str,
    rules: str,
    verdict: str,
    section: str,
    about: str,
    given: Case,
    expect: Case,
    *,
    options: Case | None = None,
    cases: Path = CASES,
) -> Path:
    """Create the folder of a case again with its `case.json`, and return the folder.

    The case also lists the bugs that it guards, if there are any.
    """
    case = {"rules": rules.split(), "verdict": verdict, "section": section, "about": about, "input": given}
    guards = guards_of(f"{kind}/{name}")
    rest = {"options": options, "expect": expect, "guards": guards}
    case |= {key: entry for key, entry in rest.items() if entry}
    folder = cases / kind / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "case.json").write_text(_layout(case) + "\n", encoding="utf-8")
    return folder


def _layout(case: Case) -> str:
    """Return one line for each key and for each expected row."""
    lines = []
    for key, entry in case.items():
        text = json.dumps(entry, ensure_ascii=False)
        if key == "expect" and len(text) > 100 and isinstance(entry.get("rows"), list):
            rows = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in entry["rows"])
            rest = {name: value for name, value in entry.items() if name != "rows"}
            more = "".join(f',\n    "{name}": {json.dumps(value)}' for name, value in rest.items())
            text = f'{{"rows": [\n    {rows}\n  ]{more}}}'
        lines.append(f'  "{key}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}"


def write_parquet(path: Path, table: pa.Table, **options: Any) -> int:
    """Write a table as plain, uncompressed Parquet, and return its size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain: dict[str, Any] = {"compression": "none", "use_dictionary": False, "store_schema": False}
    pq.write_table(table, path, **{**plain, **options})
    return path.stat().st_size


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    """Write a commit of a table, one action for each line."""
    path = table / "_delta_log" / f"{version:020}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n" for action in actions]
    path.write_text("".join(lines), encoding="utf-8")
