"""The archive of all cases: its bytes, its manifest, the schema of its cases, and a reader in Go."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator
from support.locations import OWN_CASES, ROOT

from delta_variant_conformance.case import KINDS
from delta_variant_conformance.corpus import load_cases, open_cases
from delta_variant_conformance.decoding import decode
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


def test_the_manifest_has_an_entry_for_each_case(archive: Archive) -> None:
    entries = archive.manifest["cases"]
    with open_cases([archive.path]) as cases:
        assert {(case.id, case.kind, case.rules, case.verdict, case.section) for case in cases} == {
            (each["id"], each["kind"], tuple(each["rules"]), each["verdict"], each["section"])
            for each in entries
        }
    own = [each["id"] for each in entries if each["suite"] == "specification"]
    assert own == sorted(case.id for case in load_cases([OWN_CASES]))
    assert len(entries) - len(own) >= 3591


def expected_rows(archive: Archive) -> Iterator[tuple[str, list[Any]]]:
    for line in archive.files["expected.jsonl"].splitlines():
        case = json.loads(line)
        yield case["id"], [row and (row["metadata"], row["value"]) for row in case["rows"]]


def test_the_expected_bytes_are_the_typed_values(archive: Archive) -> None:
    kinds = set()
    for case, rows in expected_rows(archive):
        kinds.add(case.partition("/")[0])
        wanted = json.loads(archive.files[f"cases/{case}/case.json"])["expect"]["rows"]
        found = [row and decode(*map(bytes.fromhex, row)) for row in rows]
        assert [row is None for row in found] == [row is None for row in wanted]
        pairs = [(typed, row) for typed, row in zip(wanted, found, strict=True) if typed is not None]
        assert [list(compare(typed, row)) for typed, row in pairs] == [[]] * len(pairs), case
    assert kinds >= {"decode", "encode", "unshred", "file", "stats"}


def test_the_parquet_file_has_the_same_rows(archive: Archive, tmp_path: Path) -> None:
    file = tmp_path / "expected.parquet"
    file.write_bytes(archive.files["expected.parquet"])
    assert "group field_id=-1 v (Variant" in str(pq.ParquetFile(file).schema)
    found: dict[str, list[Any]] = {}
    for row in pq.read_table(file).to_pylist():
        v = row["v"]
        found.setdefault(row["id"], []).append(v and (v["metadata"].hex(), v["value"].hex()))
        assert row["row"] == len(found[row["id"]]) - 1
    assert found == dict(expected_rows(archive))


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
    if shutil.which("go") is None:
        pytest.skip("`make adapters` compiles the program with Go")
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
    wanted = {case for case, _ in expected_rows(archive) if case.startswith("decode/")}
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
