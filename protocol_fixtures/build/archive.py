"""Build the archive of all cases: `python protocol_fixtures/build/archive.py DIR`.

It has the cases of this folder and the systematic ones, a manifest, and expected rows with Variants as bytes.
The same cases, the same versions of pyarrow and zlib and the same SOURCE_DATE_EPOCH give the same archive.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from case_folder import CASES, write_parquet
from expected_rows import encode
from shredding import UNSHREDDED
from systematic import write_all

from delta_variant_conformance.parquet_footer import annotate
from delta_variant_conformance.typed_values import find_problem

FOLDER = CASES.parent
FORMAT = 1
LICENSES = ("LICENSE", "NOTICE")
ADAPTERS = ("*.py", "go/**/*.go", "go/go.*", "java/*.java", "rust/Cargo.*", "rust/src/*.rs")

Files = dict[str, bytes]
Json = Mapping[str, Any]

MEMBERS = ("metadata", "value")


def build(out: Path, seconds: int) -> Path:
    """Write the archive to a folder and return its path; `seconds` is the time of its files."""
    name = f"delta-variant-conformance-{version()}"
    files = contents()
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.tar.gz"
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in sorted(files):
            info = tarfile.TarInfo(f"{name}/{entry}")
            info.size, info.mtime = len(files[entry]), seconds
            archive.addfile(info, BytesIO(files[entry]))
    return path


def version() -> str:
    """Return the newest version in CASES.md."""
    found = re.search(r"^## (\S+)$", (FOLDER / "CASES.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def contents() -> Files:
    """Return the files of the archive by their paths."""
    with TemporaryDirectory(prefix="archive-") as folder:
        scratch = Path(folder)
        write_all(scratch / "cases")
        suites = {"specification": _tree(FOLDER), "systematic": _tree(scratch)}
        cases = [entry for suite, files in suites.items() for entry in _entries(suite, files)]
        files = {path: data for tree in suites.values() for path, data in tree.items()}
        rows = dict(_expected(files, cases))
        lines = (json.dumps({"id": case, "rows": each}, ensure_ascii=False) for case, each in rows.items())
        files["expected.jsonl"] = ("\n".join(lines) + "\n").encode()
        _write_parquet(scratch / "expected.parquet", rows)
        files["expected.parquet"] = (scratch / "expected.parquet").read_bytes()
    others = [*filter(Path.is_file, FOLDER.iterdir()), *map(FOLDER.parent.joinpath, LICENSES)]
    files |= {path.name: path.read_bytes() for path in others}
    adapters = [path for pattern in ADAPTERS for path in (FOLDER / "adapters").glob(pattern)]
    files |= {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in adapters}
    files["manifest.json"] = _manifest(files, cases)
    return files


def _tree(folder: Path) -> Files:
    paths = (path for path in (folder / "cases").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _entries(suite: str, files: Files) -> Iterator[Json]:
    """Yield the entries of the cases in the manifest, by their ids."""
    hashes: dict[str, dict[str, str]] = {}
    for path in sorted(files):
        _, kind, name, file = path.split("/", 3)
        hashes.setdefault(f"{kind}/{name}", {})[file] = sha256(files[path]).hexdigest()
    for case_id, names in hashes.items():
        case = json.loads(files[f"cases/{case_id}/case.json"])
        about = {key: case[key] for key in ("rules", "verdict", "section")}
        yield {"id": case_id, "kind": case_id.partition("/")[0], "suite": suite, **about, "files": names}


def _expected(files: Files, cases: list[Json]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the expected rows of each case that has rows, with Variants as bytes in hex."""
    for entry in cases:
        expect = json.loads(files[f"cases/{entry['id']}/case.json"])["expect"]
        if "rows" in expect:
            yield entry["id"], _encoded(expect["rows"])


def _encoded(value: Any) -> Any:
    """Return a value of a row, in which typed values are replaced by the bytes of Variants."""
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    if find_problem(value) is None:
        return dict(zip(MEMBERS, (part.hex() for part in encode(value)), strict=True))
    return {name: _encoded(each) for name, each in value.items()}


def _write_parquet(path: Path, expected: Mapping[str, list[Any]]) -> None:
    """Write the rows of the cases whose rows are Variants."""
    columns: dict[str, list[Any]] = {"id": [], "row": [], "v": []}
    for case, rows in expected.items():
        if all(row is None or tuple(row) == MEMBERS for row in rows):
            columns["id"] += [case] * len(rows)
            columns["row"] += range(len(rows))
            columns["v"] += [row and {name: bytes.fromhex(row[name]) for name in MEMBERS} for row in rows]
    types = {"id": pa.string(), "row": pa.int32(), "v": UNSHREDDED}
    write_parquet(path, pa.table({name: pa.array(columns[name], kind) for name, kind in types.items()}))
    annotate(path, "v")


def _manifest(files: Files, cases: list[Json]) -> bytes:
    """Return the manifest: the documents with their hashes, and a line for each case."""
    hashes = {path: sha256(files[path]).hexdigest() for path in sorted(files) if path[:6] != "cases/"}
    head = json.dumps({"format": FORMAT, "version": version(), "files": hashes}, indent=1)
    lines = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in cases)
    return f'{head[:-2]},\n "cases": [\n  {lines}\n ]\n}}\n'.encode()


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))
