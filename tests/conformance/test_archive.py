"""The archive of all cases: its bytes, its manifest, the schema of its cases, and a reader in Go."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from jsonschema import Draft202012Validator
from support.locations import OWN_CASES, ROOT

from delta_variant_conformance.case import KINDS
from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.decoding import decode, decode_concatenated
from delta_variant_conformance.engine import table_cells
from delta_variant_conformance.typed_values import compare

NAME = "delta-variant-conformance-1.0.0"
SECONDS = 1_800_000_000
READER = ROOT / ".cache" / "adapters" / "archive"
SCHEMA = json.loads((OWN_CASES / "case.schema.json").read_text(encoding="utf-8"))


class Archive(NamedTuple):
    path: Path
    members: list[tarfile.TarInfo]
    files: Mapping[str, bytes]
    """The files by their paths below the top folder."""
    manifest: Mapping[str, Any]

    def case(self, entry: Mapping[str, Any]) -> Any:
        return json.loads(self.files[f"cases/{entry['id']}/case.json"])


def start_build(script: Path, out: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(SECONDS)}
    return subprocess.Popen([sys.executable, str(script), str(out)], env=environment)


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Build the archive here and from a copy of its sources, at the same time."""
    folder = tmp_path_factory.mktemp("archive")
    copy = folder / "clone" / "protocol_fixtures"
    ignored = shutil.ignore_patterns("target", "__pycache__")
    shutil.copytree(OWN_CASES, copy, copy_function=shutil.copyfile, ignore=ignored)
    for name in ("LICENSE", "NOTICE"):
        shutil.copyfile(ROOT / name, copy.parent / name)
    scripts = [OWN_CASES / "build" / "archive.py", copy / "build" / "archive.py"]
    processes = [start_build(script, folder / str(number)) for number, script in enumerate(scripts)]
    assert [process.wait(200) for process in processes] == [0, 0]
    return [folder / str(number) / f"{NAME}.tar.gz" for number in range(2)]


@pytest.fixture(scope="module")
def archive(builds: list[Path]) -> Archive:
    with tarfile.open(builds[0]) as packed:
        members = packed.getmembers()
        files = {member.name.removeprefix(f"{NAME}/"): _content(packed, member) for member in members}
    return Archive(builds[0], members, files, json.loads(files["manifest.json"]))


def _content(packed: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = packed.extractfile(member)
    assert file is not None
    return file.read()


@pytest.fixture(scope="module")
def unpacked(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the archive without its systematic cases, which are many files."""
    folder = tmp_path_factory.mktemp("unpacked")
    own = [each for each in archive.manifest["cases"] if each["suite"] == "specification"]
    paths = [f"cases/{each['id']}/{name}" for each in own for name in each["files"]]
    files = {name: archive.files[name] for name in ["expected.jsonl", *paths]}
    files["manifest.json"] = json.dumps({**archive.manifest, "cases": own}).encode()
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_two_builds_have_the_same_bytes(builds: list[Path]) -> None:
    assert builds[0].read_bytes() == builds[1].read_bytes()
    # The header of gzip has neither a name nor a time.
    assert builds[0].read_bytes()[:8] == bytes.fromhex("1f8b080000000000")


def test_the_members_have_nothing_of_the_machine(archive: Archive) -> None:
    names = [member.name for member in archive.members]
    assert names == sorted(set(names))
    owners = {(each.uid, each.gid, each.uname, each.gname, each.mtime, each.mode) for each in archive.members}
    assert owners == {(0, 0, "", "", SECONDS, 0o644)}
    assert {"README.md", "WORKERS.md", "CASES.md", "LICENSE", "NOTICE"} < archive.files.keys()


def test_the_manifest_lists_each_file_with_its_hash(archive: Archive) -> None:
    assert (archive.manifest["format"], archive.manifest["version"]) == (1, "1.0.0")
    hashes = dict(archive.manifest["files"])
    for entry in archive.manifest["cases"]:
        hashes |= {f"cases/{entry['id']}/{name}": digest for name, digest in entry["files"].items()}
    found = {name: sha256(data).hexdigest() for name, data in archive.files.items()}
    assert found.pop("manifest.json")
    assert hashes == found


def test_the_manifest_has_an_entry_for_each_case(archive: Archive, unpacked: Path) -> None:
    entries = archive.manifest["cases"]
    paths = {f"cases/{each['id']}/case.json" for each in entries}
    assert paths == {path for path in archive.files if path.count("/") == 3 and path.endswith("/case.json")}
    own = [each for each in entries if each["suite"] == "specification"]
    assert len(entries) - len(own) >= 3591
    cases = load_cases([OWN_CASES])
    assert [case.id for case in load_cases([unpacked])] == [case.id for case in cases]
    assert [(each["id"], each["kind"], each["rules"], each["verdict"], each["section"]) for each in own] == [
        (case.id, case.kind, list(case.rules), case.verdict, case.section)
        for case in sorted(cases, key=lambda case: case.id)
    ]


def expected_rows(archive: Archive) -> dict[str, list[Any]]:
    """Return the expected rows of each case, with Variants as bytes in hex."""
    lines = archive.files["expected.jsonl"].decode().splitlines()
    return {case["id"]: case["rows"] for case in map(json.loads, lines)}


def typed(value: Any) -> Any:
    """Return a value of a row with the typed values of its Variants."""
    if isinstance(value, dict) and value.keys() == {"metadata", "value"}:
        return decode(bytes.fromhex(value["metadata"]), bytes.fromhex(value["value"]))
    if isinstance(value, dict):
        return {name: typed(each) for name, each in value.items()}
    return [typed(each) for each in value] if isinstance(value, list) else value


def test_the_expected_bytes_are_the_typed_values(archive: Archive) -> None:
    found = {case: typed(rows) for case, rows in expected_rows(archive).items()}
    cases = {each["id"]: archive.case(each)["expect"] for each in archive.manifest["cases"]}
    wanted = {case: expect["rows"] for case, expect in cases.items() if "rows" in expect}
    assert found.keys() == wanted.keys()
    # The text of a float has fewer digits than its value.
    different = {case for case, rows in wanted.items() if found[case] != rows}
    assert different <= {"decode/float_is_not_double"}
    for case in different:
        assert_same(wanted[case], found[case])


def test_the_parquet_file_has_the_same_rows(archive: Archive, tmp_path: Path) -> None:
    file = tmp_path / "expected.parquet"
    file.write_bytes(archive.files["expected.parquet"])
    assert "group field_id=-1 v (Variant" in str(pq.ParquetFile(file).schema)
    found: dict[str, list[Any]] = {}
    for row in pq.read_table(file).to_pylist():
        cell = row["v"] and {name: part.hex() for name, part in row["v"].items()}
        found.setdefault(row["id"], []).append(cell)
        assert row["row"] == len(found[row["id"]]) - 1
    expected = expected_rows(archive)
    assert found == {case: expected[case] for case in found}
    kinds = ("decode", "encode", "unshred", "file")
    assert {case for case, rows in expected.items() if rows and case.startswith(kinds)} <= found.keys()


def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/kinds/{kind}", "$defs": SCHEMA["$defs"]})


def test_each_case_has_the_schema_of_its_kind(archive: Archive) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    validators = {kind: validator(kind) for kind in SCHEMA["$defs"]["kinds"]}
    problems = {
        entry["id"]: error.message
        for entry in archive.manifest["cases"]
        for error in validators[entry["kind"]].iter_errors(archive.case(entry))
    }
    assert problems == {}


def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a kind that has the properties of a case."""
    return schema if "properties" in schema else SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]


def test_the_schema_has_the_kinds_and_keys_of_the_kit() -> None:
    kinds = SCHEMA["$defs"]["kinds"]
    assert SCHEMA["anyOf"] == [{"$ref": f"#/$defs/kinds/{kind}"} for kind in kinds]
    found = {kind: resolve(schema)["properties"] for kind, schema in kinds.items()}
    assert {
        kind: (
            set(parts["input"].get("required", ())),
            set(parts["input"]["properties"]),
            set(parts["expect"]["properties"]),
        )
        for kind, parts in found.items()
    } == {
        kind: (set(each.required), {*each.required, *each.optional}, set(each.answers))
        for kind, each in KINDS.items()
    }


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("decode", {"verdict": "maybe"}),
        ("decode", {"surplus": 1}),
        ("decode", {"input": {"metadata": "0", "value": "00"}}),
        ("decode", {"input": {"metadata": "00", "value": "00", "surplus": 1}}),
        ("decode", {"expect": {}}),
        ("decode", {"expect": {"surplus": 1}}),
        ("decode", {"expect": {"rows": [{"int8": 128}]}}),
        ("decode", {"expect": {"rows": [{"int8": 1, "int16": 1}]}}),
        ("unshred", {"input": {"file": ""}}),
        ("stats", {"input": {"z85": "", "file": "v.parquet"}}),
    ],
)
def test_the_schema_rejects_another_form(kind: str, change: Mapping[str, Any]) -> None:
    given = {"decode": {"metadata": "00", "value": "00"}, "unshred": {"file": "v"}, "stats": {"z85": ""}}
    case = {"rules": ["E-V1"], "verdict": "keeps", "section": "§", "about": "…", "input": given[kind]}
    assert validator(kind).is_valid({**case, "expect": {"error": "ShreddingError"}})
    assert not validator(kind).is_valid({**case, "expect": {"error": "ShreddingError"}, **change})


def read_with_go(path: Path) -> Any:
    """Return what the program in adapters/go/archive prints of an archive."""
    if not READER.exists():
        pytest.skip(f"`make adapters` makes {READER}")
    done = subprocess.run([str(READER), str(path)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_program_in_go_reads_the_archive(archive: Archive) -> None:
    found = read_with_go(archive.path)
    decoded = found.pop("decoded")
    assert found == {
        "version": "1.0.0",
        "cases": len(archive.manifest["cases"]),
        "damaged": [],
        "unlisted": 0,
    }
    wanted = {case for case in expected_rows(archive) if case.startswith("decode/")}
    assert sorted(wanted) == sorted(decoded["equal"] + decoded["failed"])
    either = {each["id"] for each in archive.manifest["cases"] if "error" in archive.case(each)["expect"]}
    # arrow-go prints no text of NaN and the infinities, and panics for an object of 255 fields or more.
    known = ("nan", "infinity", "of_255_fields", "of_256_fields")
    assert [
        case for case in decoded["failed"] if case not in either and not any(map(case.count, known))
    ] == []


def test_the_program_in_go_finds_a_damaged_file(archive: Archive, tmp_path: Path) -> None:
    damaged = "cases/unshred/typed_int8/v.parquet"
    files = {**archive.files, damaged: archive.files[damaged][:-1] + b"?", "surplus": b""}
    copy = tmp_path / "damaged.tar.gz"
    with tarfile.open(copy, "w:gz", compresslevel=1) as packed:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{NAME}/{name}")
            member.size = len(data)
            packed.addfile(member, BytesIO(data))
    found = read_with_go(copy)
    assert (found["damaged"], found["unlisted"]) == ([damaged], 1)


def convert(script: str, unpacked: Path, out: Path) -> None:
    command = [sys.executable, str(OWN_CASES / "adapters" / script), str(unpacked), str(out)]
    subprocess.run(command, check=True)


def test_the_cases_are_written_as_parquet_testing_has_them(
    archive: Archive, unpacked: Path, tmp_path: Path
) -> None:
    convert("to_parquet_testing.py", unpacked, tmp_path)
    folder = tmp_path / "shredded_variant"
    entries = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    assert len(entries) > 100
    for entry in entries:
        case = archive.case({"id": entry["test"]})
        file = archive.files[f"cases/{entry['test']}/{case['input']['file']}"]
        assert (folder / entry["parquet_file"]).read_bytes() == file
        assert case["expect"].keys() == ({"error"} if "error_message" in entry else {"rows"})
        names = entry.get("variant_files", [])
        rows = [name and decode_concatenated((folder / name).read_bytes()) for name in names]
        assert_same(case["expect"].get("rows", []), rows)


def assert_same(wanted: list[Any], found: list[Any]) -> None:
    """Assert that rows of typed values and SQL NULL are equal."""
    pairs = list(zip(wanted, found, strict=True))
    assert [row is None for row in wanted] == [row is None for row in found]
    assert [list(compare(*pair)) for pair in pairs if None not in pair] == [[]] * (
        len(wanted) - wanted.count(None)
    )


def test_the_tables_are_written_in_the_layout_of_dat(
    archive: Archive, unpacked: Path, tmp_path: Path
) -> None:
    convert("to_dat.py", unpacked, tmp_path)
    folders = sorted((tmp_path / "out" / "reader_tests" / "generated").iterdir())
    assert len(folders) >= 30
    for folder in folders:
        table = DeltaTable(folder / "delta")
        latest = folder / "expected" / "latest"
        assert json.loads((latest / "table_version_metadata.json").read_text(encoding="utf-8")) == {
            "version": table.version(),
            "properties": table.metadata().configuration,
            "min_reader_version": table.protocol().min_reader_version,
            "min_writer_version": table.protocol().min_writer_version,
        }
        rows = table_cells(pq.read_table(latest / "table_content" / "part-0.parquet"))
        wanted = archive.case({"id": f"table/{folder.name}"})["expect"]["rows"]
        assert [row.keys() for row in rows] == [row.keys() for row in wanted]
        for row, expected in zip(rows, wanted, strict=True):
            variants = [name for name, value in expected.items() if isinstance(value, dict)]
            assert_same(
                [expected[name] for name in variants],
                [decode(row[name].metadata, row[name].value) for name in variants],
            )
            assert [row[name] for name in row if name not in variants] == [
                expected[name] for name in row if name not in variants
            ]
