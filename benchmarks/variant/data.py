"""The documents and their answers, and the three layouts of them, written once by this library."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from queries import LAYOUTS, QUESTIONS, needle, normal

HERE = Path(__file__).resolve().parent
ROWS_PER_FILE = 62_500
SMALL = 10_000
"""Files with fewer rows would have few columns by default."""


def prepare(folder: Path, rows: int) -> None:
    """Write the documents and the answers to a folder, unless it has them, and the layouts."""
    if not (folder / "answers.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        generator = HERE.parent / "generate.py"
        command = [sys.executable, str(generator), str(folder / "documents.ndjson"), str(rows), "--clean"]
        subprocess.run(command, check=True)
        _write_answers(folder)
    _write_layouts(folder)


def _write_answers(folder: Path) -> None:
    documents = [json.loads(line) for line in _lines(folder)]
    answers = {name: normal(question.answer(documents)) for name, question in QUESTIONS.items()}
    facts = {"needle": needle(documents)["id"], "answers": answers}
    (folder / "answers.json").write_text(json.dumps(facts), "utf-8")


def _write_layouts(folder: Path) -> None:
    """Write the layouts by the code of today, with the same rows in each file."""
    import fsspec
    import pyarrow as pa

    import delta_variant as dv

    for layout in LAYOUTS:
        shutil.rmtree(folder / layout, ignore_errors=True)
    lines = _lines(folder)
    while texts := list(islice(lines, ROWS_PER_FILE)):
        events = pa.table({"event": texts})
        dv.write_table(folder / "string", events, mode="append")
        shredding = "infer" if len(texts) >= SMALL else dv.infer_shredding_schema(texts)
        for layout, columns in (("variant", None), ("shredded", shredding)):
            table = folder / layout
            dv.write_table(table, events, mode="append", variant_columns=["event"], shredding=columns)
    # Copies, for engines that read files only.
    views = fsspec.filesystem("variant")
    (folder / "view").mkdir()
    for file in views.glob(f"{folder}/shredded/*.parquet"):
        views.get_file(file, str(folder / "view" / Path(file).name))


def _lines(folder: Path) -> Iterator[str]:
    with (folder / "documents.ndjson").open(encoding="utf-8") as lines:
        yield from (line.rstrip("\n") for line in lines)
