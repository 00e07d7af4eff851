"""Write the cases of an unpacked archive as parquet-testing has them: `to_parquet_testing.py ARCHIVE DIR`.

DIR gets `shredded_variant/`: the cases of the kinds `unshred` and `file` with one right answer.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any


def write_case(folder: Path, out: Path, number: int, rows: Any) -> dict[str, Any]:
    """Copy the file of a case, write its expected rows, and return its entry in cases.json."""
    case, name = json.loads((folder / "case.json").read_text()), f"case-{number}"
    entry = {"case_number": number, "test": f"{folder.parent.name}/{folder.name}", "notes": case["about"]}
    shutil.copyfile(folder / case["input"]["file"], out / f"{name}.parquet")
    entry["parquet_file"] = f"{name}.parquet"
    if rows is None:
        return {**entry, "error_message": case["about"]}
    files = [row and f"{name}_row-{index}.variant.bin" for index, row in enumerate(rows)]
    for file, row in zip(files, rows, strict=True):
        if file:
            (out / file).write_bytes(bytes.fromhex(row["metadata"] + row["value"]))
    return {**entry, "variant_files": files}


def main(archive: Path, out: Path) -> None:
    """Write all cases; their numbers begin after those of parquet-testing."""
    out.mkdir(parents=True)
    lines = (archive / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    expected = {case["id"]: case["rows"] for case in map(json.loads, lines)}
    entries: list[dict[str, Any]] = []
    for case in json.loads((archive / "manifest.json").read_text(encoding="utf-8"))["cases"]:
        folder = archive / "cases" / case["id"]
        given = json.loads((folder / "case.json").read_text(encoding="utf-8"))
        has_one_answer = len(given["expect"].keys() & {"rows", "error"}) == 1 and "options" not in given
        if case["kind"] in ("unshred", "file") and has_one_answer:
            entries.append(write_case(folder, out, 1001 + len(entries), expected.get(case["id"])))
    (out / "cases.json").write_text(json.dumps(entries, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2], "shredded_variant"))
