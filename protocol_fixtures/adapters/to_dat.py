"""Write the tables of an unpacked archive in the layout of DAT: `python to_dat.py ARCHIVE DIR`.

They are those of the kind `table` with one answer at the latest version, and with columns of simple types.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

VARIANT = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
TYPES = {"long": pa.int64(), "integer": pa.int32(), "string": pa.string(), "variant": VARIANT}


def latest_actions(table: Path) -> tuple[int, dict[str, Any]]:
    """Return the latest version of a table, and its protocol and metadata as far as commits have them."""
    commits = sorted(path for path in (table / "_delta_log").glob("*.json") if path.stem.isdigit())
    lines = (line for commit in commits for line in commit.read_text(encoding="utf-8").splitlines())
    found = {name: action for line in lines for name, action in json.loads(line).items()}
    return int(commits[-1].stem), found


def cell(value: Any) -> Any:
    """Return a cell of an expected row, with the bytes of a Variant."""
    return {name: bytes.fromhex(part) for name, part in value.items()} if isinstance(value, dict) else value


def write_case(case: dict[str, Any], table: Path, rows: list[Any], out: Path) -> None:
    """Write a case, unless a checkpoint has its schema, or a column has a nested type."""
    version, actions = latest_actions(table)
    fields = json.loads(actions.get("metaData", {}).get("schemaString", '{"fields": []}'))["fields"]
    if not fields or any(str(field["type"]) not in TYPES for field in fields):
        return
    content = out / "expected" / "latest" / "table_content"
    content.mkdir(parents=True)
    shutil.copytree(table, out / "delta")
    information = {"name": out.name, "description": case["about"]}
    (out / "test_case_info.json").write_text(json.dumps(information), encoding="utf-8")
    protocol, properties = actions["protocol"], actions["metaData"].get("configuration", {})
    versions = {
        "min_reader_version": protocol["minReaderVersion"],
        "min_writer_version": protocol["minWriterVersion"],
    }
    metadata = {"version": version, "properties": properties, **versions}
    (content.parent / "table_version_metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    schema = pa.schema([(field["name"], TYPES[field["type"]]) for field in fields])
    cells = [{name: cell(value) for name, value in row.items()} for row in rows]
    pq.write_table(pa.Table.from_pylist(cells, schema), content / "part-0.parquet")


def main(archive: Path, out: Path) -> None:
    """Write all cases."""
    lines = (archive / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    expected = {case["id"]: case["rows"] for case in map(json.loads, lines)}
    for entry in json.loads((archive / "manifest.json").read_text(encoding="utf-8"))["cases"]:
        folder = archive / "cases" / entry["id"]
        case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
        answers, inputs = case["expect"].keys(), case["input"].keys()
        if entry["kind"] == "table" and inputs == {"table"} and answers == {"rows"} and "options" not in case:
            write_case(case, folder / case["input"]["table"], expected[entry["id"]], out / folder.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2], "out", "reader_tests", "generated"))
