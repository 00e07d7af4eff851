"""Hostile tables: rejected with an error that names the cause, or read in bounded memory and time."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at
from table_operations import data, read

import delta_variant as dv
from delta_variant.errors import (
    DataFileError,
    DeltaVariantError,
    ExpressionError,
    MalformedLogError,
    SchemaError,
    StoreError,
)
from delta_variant.log.commits import read_commits
from delta_variant.log.listing import commit_file_name
from delta_variant.operations.legacy import migrate_legacy, read_legacy_file
from delta_variant.protocol import z85
from delta_variant.protocol.actions import encode_path
from delta_variant.storage import store

LIMITED_MEMORY = Path(__file__).with_name("limited_memory.py")
DELETION_VECTORS = {"delta.enableDeletionVectors": "true"}


def run_limited(megabytes: int, action: str, table: Path, seconds: float = 30) -> dict[str, Any]:
    """Return the outcome of an action on a table. More memory or time than the limit fails the test."""
    command = [sys.executable, str(LIMITED_MEMORY), str(megabytes), action, str(table)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    outcome: dict[str, Any] = json.loads(ran.stdout)
    assert outcome["megabytes"] <= megabytes, outcome
    assert outcome.get("error") not in ("MemoryError", "RecursionError"), outcome
    return outcome


def lines(table: Path, version: int) -> list[dict[str, Any]]:
    text = (table / commit_file_name(version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


def change(table: Path, version: int, edit: Callable[[dict[str, Any]], None], kind: str = "add") -> None:
    """Change the actions of a kind in a commit."""
    actions = lines(table, version)
    for action in actions:
        if kind in action:
            edit(action[kind])
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (table / commit_file_name(version)).write_text(text)


def set_path(path: str) -> Callable[[dict[str, Any]], None]:
    return lambda add: add.update(path=path)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return a file outside the table that the table must not read."""
    dv.write_table(tmp_path / "other", data({666: 666}))
    (file,) = (tmp_path / "other").glob("*.parquet")
    return Path(shutil.copy(file, tmp_path / "victim.parquet"))


@pytest.fixture
def table(tmp_path: Path, victim: Path) -> Path:
    dv.write_table(tmp_path / "table", data({1: 1}))
    return tmp_path / "table"


OUTSIDE_PATHS: dict[str, Callable[[Path], str]] = {
    "up": lambda _: "../victim.parquet",
    "up and down": lambda _: "a/../../victim.parquet",
    "up, encoded": lambda _: "%2e%2e/victim.parquet",
    "up, with its slash encoded": lambda _: "..%2Fvictim.parquet",
    "absolute": str,
    "a URI": lambda victim: victim.as_uri(),
    "a URI of Hadoop": lambda victim: f"file:{victim}",
    "a URI with a host": lambda victim: f"file://localhost{victim}",
    "a URI with an uppercase scheme": lambda victim: f"FILE://{victim}",
    "absolute, through the table": lambda victim: f"{victim.parent}/table/../victim.parquet",
    "remote": lambda _: "s3://bucket/victim.parquet",
    "remote, unknown": lambda _: "gopher://host/victim.parquet",
}


@pytest.mark.parametrize("kind", OUTSIDE_PATHS)
def test_every_operation_rejects_a_path_outside_the_table(table: Path, victim: Path, kind: str):
    change(table, 0, set_path(OUTSIDE_PATHS[kind](victim)))
    kept = victim.read_bytes()
    for operate in (
        lambda: read(table),
        lambda: dv.delete(table, "event:n::bigint = 1"),
        lambda: dv.update(table, {"event:n": "1"}),
        lambda: dv.optimize(table, sort_by="id"),
    ):
        with pytest.raises(DeltaVariantError, match=r"is outside the table .*allow_paths_outside_table"):
            operate()
    findings = dv.audit_table(table, data=True).findings
    assert any("is outside the table" in finding.sentence for finding in findings)
    assert victim.read_bytes() == kept


OPERATIONS: dict[str, Callable[[Path], Any]] = {
    "read": read,
    "append": lambda table: dv.write_table(table, data({2: 2}), mode="append"),
    "overwrite": lambda table: dv.write_table(table, data({2: 2}), mode="overwrite", where="id = 2"),
    "delete": lambda table: dv.delete(table, "id = 1"),
    "update": lambda table: dv.update(table, {"id": "3"}, "id = 1"),
    "optimize": lambda table: dv.optimize(table, sort_by="id"),
    "vacuum": lambda table: dv.vacuum(table, dry_run=False),
    "restore": lambda table: dv.restore(table, 0),
    "repair": lambda table: dv.repair_statistics(table, dry_run=False),
    "changes": lambda table: dv.read_changes(table).to_table(),
    "history": dv.history,
    "audit": lambda table: dv.audit_table(table, data=True),
}

CONTRADICTIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "unknown": lambda metadata: metadata.update(partitionColumns=["nowhere"]),
    "another case": lambda metadata: metadata.update(partitionColumns=["ID"]),
    "twice": lambda metadata: metadata.update(partitionColumns=["id", "id"]),
    "nested": lambda metadata: metadata.update(
        partitionColumns=["s"],
        schemaString=with_field(metadata, {"name": "s", "type": {"type": "struct", "fields": []}}),
    ),
    "a column twice": lambda metadata: metadata.update(
        schemaString=with_field(metadata, {"name": "id", "type": "long"})
    ),
}


def with_field(metadata: dict[str, Any], field: dict[str, Any]) -> str:
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"nullable": True, "metadata": {}, **field})
    return json.dumps(schema)


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_every_operation_on_rows_rejects_metadata_that_contradicts_itself(table: Path, name: str):
    change(table, 0, CONTRADICTIONS[name], "metaData")
    before = sorted((table / "_delta_log").iterdir())
    for operation in ("read", "append", "overwrite", "delete", "update", "optimize"):
        # Expressions are bound before the metadata is checked.
        with pytest.raises(
            (SchemaError, ExpressionError),
            match=r"partitionColumns names|several columns named 'id'|matches 2 columns",
        ):
            OPERATIONS[operation](table)
    assert sorted((table / "_delta_log").iterdir()) == before
    assert "T14" in {finding.rule for finding in dv.audit_table(table, data=True).findings}


VECTOR = {"storageType": "p", "sizeInBytes": 4, "cardinality": 1, "offset": 1}
NUL_PATHS: dict[str, dict[str, Any]] = {
    "add": {"add": {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}},
    "remove": {"remove": {"dataChange": True, "deletionTimestamp": 1}},
    "cdc": {"cdc": {"partitionValues": {}, "size": 1, "dataChange": False}},
}


@pytest.mark.parametrize("path", ["a%00b.parquet", "a\0b.parquet"])
@pytest.mark.parametrize("kind", [*NUL_PATHS, "deletion vector"])
def test_a_path_with_a_nul_character_is_an_error_of_this_library(table: Path, kind: str, path: str):
    dv.write_table(table, data({2: 2}), mode="append")
    actions = lines(table, 1)
    if kind == "deletion vector":
        (add,) = (action["add"] for action in actions if "add" in action)
        add["deletionVector"] = {**VECTOR, "pathOrInlineDv": path}
    else:
        actions.append({kind: {**NUL_PATHS[kind][kind], "path": path}})
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (table / commit_file_name(1)).write_text(text)
    failed = set()
    for name, operate in OPERATIONS.items():
        try:
            operate(table)
        except DeltaVariantError:
            failed.add(name)
    # Reads of the table do not concern the change data feed.
    assert ("read" in failed) == (kind != "cdc")
    assert "audit" not in failed


@pytest.mark.parametrize("path", ["%00", "\0", "%ff"])
def test_a_sidecar_whose_path_is_not_a_file_name_is_an_error_of_this_library(table: Path, path: str):
    kept = [action for action in lines(table, 0) if "protocol" in action or "metaData" in action]
    sidecar = {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}
    actions = [{"checkpointMetadata": {"version": 0}}, *kept, sidecar]
    checkpoint = table / "_delta_log" / f"{0:020d}.checkpoint.{UUID(int=1)}.json"
    checkpoint.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert read(table) == {1: 1}
    (table / commit_file_name(0)).unlink()
    with pytest.raises(MalformedLogError, match=f"{checkpoint.name}.*invalid path"):
        read(table)


@pytest.mark.parametrize(
    "kind", [kind for kind in OUTSIDE_PATHS if "remote" not in kind and "down" not in kind]
)
def test_a_path_outside_the_table_is_read_if_allowed(table: Path, victim: Path, kind: str):
    change(table, 0, set_path(OUTSIDE_PATHS[kind](victim)))
    assert read(dv.Table(table, {"allow_paths_outside_table": "true"})) == {666: 666}


def test_a_clone_with_absolute_paths_is_read_and_changed_without_its_source(tmp_path: Path):
    source, clone = tmp_path / "sour ce%", tmp_path / "clone"
    dv.write_table(source, data({1: 1, 2: 2}))
    shutil.copytree(source / "_delta_log", clone / "_delta_log")
    change(clone, 0, lambda add: add.update(path=encode_path(f"file:{source}/{add['path']}")))
    allowed = {"allow_paths_outside_table": "true"}
    dv.delete(dv.Table(clone, allowed), "id = 1")
    dv.write_table(dv.Table(clone, allowed), data({3: 3}), mode="append")
    assert read(clone) == {2: 2, 3: 3}
    assert read(source) == {1: 1, 2: 2}


def test_an_absolute_path_in_the_table_is_allowed(table: Path):
    (file,) = table.glob("*.parquet")
    for path in (str(file), file.as_uri(), f"file:{file}"):
        change(table, 0, set_path(path))
        assert read(table) == {1: 1}


@pytest.mark.parametrize("linked", ["file", "folder", "log"])
def test_a_symbolic_link_out_of_the_table_is_rejected_unless_allowed(table: Path, victim: Path, linked: str):
    if linked == "file":
        (table / "link.parquet").symlink_to(victim)
        change(table, 0, set_path("link.parquet"))
    elif linked == "folder":
        (table / "link").symlink_to(victim.parent)
        change(table, 0, set_path("link/victim.parquet"))
    else:
        (table / commit_file_name(0)).unlink()
        (table / commit_file_name(0)).symlink_to(victim.parent / "other" / commit_file_name(0))
    with pytest.raises(DeltaVariantError, match="is outside the table"):
        read(table)
    if linked != "log":
        assert read(dv.Table(table, {"allow_paths_outside_table": "true"})) == {666: 666}


def test_symbolic_links_to_a_table_and_in_it_are_followed(table: Path, tmp_path: Path):
    (tmp_path / "current").symlink_to(table)
    (file,) = table.glob("*.parquet")
    (table / "link.parquet").symlink_to(file)
    change(table, 0, set_path("link.parquet"))
    assert read(tmp_path / "current") == {1: 1}
    dv.write_table(tmp_path / "current", data({2: 2}), mode="append")
    assert read(table) == {1: 1, 2: 2}


def test_nothing_is_written_through_a_link_out_of_the_table(table: Path, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (table / "id=5").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is outside the table"):
        dv.write_table(table, data({5: 5}), mode="overwrite", schema_mode="overwrite", partition_by="id")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("storage_type", ["u", "p"])
def test_a_deletion_vector_outside_the_table_is_rejected(tmp_path: Path, storage_type: str):
    table = tmp_path / "table"
    dv.write_table(table, data({1: 1}), configuration=DELETION_VECTORS)
    uuid = UUID(int=7)
    (tmp_path / f"deletion_vector_{uuid}.bin").write_bytes(b"\1" * 64)
    path = f"..{z85.encode(uuid.bytes)}" if storage_type == "u" else f"{tmp_path}/deletion_vector_{uuid}.bin"
    vector = {"storageType": storage_type, "pathOrInlineDv": path, "sizeInBytes": 34, "cardinality": 1}
    change(table, 0, lambda add: add.update(deletionVector=vector))
    with pytest.raises(DeltaVariantError, match="is outside the table"):
        read(table)


def test_a_sidecar_outside_the_table_is_rejected(tmp_path: Path):
    table = tmp_path / "table"
    dv.write_table(table, data({1: 1}), configuration={"delta.checkpointPolicy": "v2"})
    dv.write_table(table, data({2: 2}), mode="append")
    protocol, metadata = (
        next(action for action in lines(table, 0) if kind in action) for kind in ("protocol", "metaData")
    )
    sidecar = {"sidecar": {"path": "../../../victim.parquet", "sizeInBytes": 1, "modificationTime": 1}}
    top = [{"checkpointMetadata": {"version": 1}}, protocol, metadata, sidecar]
    name = f"{1:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (table / "_delta_log" / name).write_text("".join(json.dumps(action) + "\n" for action in top))
    assert read(table) == {1: 1, 2: 2}
    (table / commit_file_name(0)).unlink()
    with pytest.raises(MalformedLogError, match="is outside the table"):
        dv.load_snapshot(table)


def test_a_remote_table_cannot_refer_to_files_elsewhere():
    uri = "memory:///hostile/table"
    dv.write_table(uri, data({1: 1}))
    root = store.open_store(uri)
    whole = store.read(root, commit_file_name(0)).decode()
    (path,) = dv.load_snapshot(uri).files["path"].to_pylist()
    for hostile in ("../victim.parquet", "/victim.parquet", "s3://b/v.parquet", "file:///etc/passwd"):
        store.put(root, commit_file_name(0), whole.replace(f'"{path}"', f'"{hostile}"').encode())
        with pytest.raises(DeltaVariantError, match=r"is outside the table|illegal character sequence"):
            read(uri)
    store.put(root, commit_file_name(0), whole.replace(f'"{path}"', f'"{uri}/{path}"').encode())
    assert read(uri) == {1: 1}


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "size zero": lambda add: add.update(size=0),
    "negative size": lambda add: add.update(size=-1),
    "huge size": lambda add: add.update(size=2**63 - 1),
    "few rows": lambda add: add.update(stats='{"numRecords":0}'),
    "many rows": lambda add: add.update(stats='{"numRecords":9223372036854775807}'),
    "a number of rows that is not an integer": lambda add: add.update(stats='{"numRecords":1e300}'),
    "negative number of rows": lambda add: add.update(stats='{"numRecords":-1}'),
    "text in place of a number": lambda add: add.update(
        stats='{"numRecords":"x","minValues":[],"nullCount":3}'
    ),
    "garbage bounds": lambda add: add.update(
        stats='{"numRecords":3,"minValues":{"event":"\\u00ff{}~"},"maxValues":{"event":"00000"}}'
    ),
    "invalid JSON": lambda add: add.update(stats='{"numRecords'),
    "deep JSON": lambda add: add.update(stats='{"minValues":' * 10_000 + "1" + "}" * 10_000),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_sizes_and_counts_change_no_row(tmp_path: Path, forgery: str):
    rows = {1: 1, 2: 2, 3: 3}
    dv.write_table(tmp_path, data(rows))
    change(tmp_path, 0, FORGERIES[forgery])
    assert read(tmp_path) == rows
    assert read(tmp_path, where="event:n::bigint >= 2 and id is not null") == {2: 2, 3: 3}
    assert dv.read_table(tmp_path, columns={}).to_table().num_rows == 3
    assert dv.audit_table(tmp_path).count("error") > 0 or forgery == "invalid JSON"
    dv.delete(tmp_path, "event:n::bigint = 2")
    assert read(tmp_path) == {1: 1, 3: 3}
    dv.optimize(tmp_path, sort_by="id")
    dv.write_table(tmp_path, data({4: 4}), mode="append")
    assert read(tmp_path) == {1: 1, 3: 3, 4: 4}


@pytest.mark.parametrize("cardinality", [-1, 0, 2, 2**62])
def test_a_forged_cardinality_of_a_deletion_vector_changes_no_row(tmp_path: Path, cardinality: int):
    dv.write_table(tmp_path, data({1: 1, 2: 2, 3: 3}), configuration=DELETION_VECTORS)
    bitmap = _bitmap_of_row_one()
    vector = {
        "storageType": "i",
        "pathOrInlineDv": z85.encode(bitmap + b"\0" * (-len(bitmap) % 4)),
        "sizeInBytes": len(bitmap),
        "cardinality": cardinality,
    }
    change(tmp_path, 0, lambda add: add.update(deletionVector=vector))
    assert read(tmp_path) == {1: 1, 3: 3}
    dv.delete(tmp_path, "id = 3")
    assert read(tmp_path) == {1: 1}


def _bitmap_of_row_one() -> bytes:
    """Return a RoaringBitmapArray of row 1 (PROTOCOL.md, "Deletion Vector Format")."""
    container = (0).to_bytes(2, "little") + (0).to_bytes(2, "little")
    header = (12346).to_bytes(4, "little") + (1).to_bytes(4, "little")
    bitmap = header + container + (16).to_bytes(4, "little") + (1).to_bytes(2, "little")
    return (1681511377).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + bitmap


def test_a_hundred_megabytes_of_statistics_are_read(tmp_path: Path):
    dv.write_table(tmp_path, data({1: 1, 2: 2}))
    padding = "x" * (100 << 20)
    stats = json.dumps({"numRecords": 2, "minValues": {"other": padding, "id": 1}, "maxValues": {"id": 2}})
    change(tmp_path, 0, lambda add: add.update(stats=stats))
    files, rows, found, findings = run_limited(1500, "everything", tmp_path, seconds=60)["result"]
    assert (files, rows, found) == (1, 2, 1)
    assert findings > 0


@pytest.mark.parametrize("name", ["09223372036854775807.json", "00000000000000000009.json"])
def test_a_commit_of_a_far_later_version_fails_fast(table: Path, name: str):
    (table / "_delta_log" / name).write_text('{"commitInfo":{}}\n')
    outcome = run_limited(200, "load", table)
    assert outcome["error"] == "MalformedLogError"
    assert re.search(r"00001\.json.* is missing", outcome["text"])
    with pytest.raises(MalformedLogError, match=r"00001\.json.* is missing"):
        read_commits(store.open_store(table), 0)


def test_checkpoints_and_compactions_with_forged_names_are_ignored(table: Path):
    folder = table / "_delta_log"
    (folder / f"{0:020}.checkpoint.0000000001.9999999999.parquet").write_bytes(b"PAR1")
    (folder / f"{0:020}.checkpoint.0000000000.0000000001.parquet").write_bytes(b"PAR1")
    (folder / f"{0:020}.99999999999999999999.compacted.json").write_text("{")
    (folder / "_last_checkpoint").write_text('{"version":0,"size":1,"parts":9999999999}')
    assert run_limited(200, "read", table)["result"] == 1


def test_a_checkpoint_of_a_far_later_version_with_a_compaction_fails_fast(table: Path):
    folder = table / "_delta_log"
    (folder / f"{2**63 - 1:020}.checkpoint.parquet").write_bytes(b"PAR1")
    (folder / f"{0:020}.{2**63 - 1:020}.compacted.json").write_text("{")
    assert run_limited(200, "load", table)["error"] in ("MalformedLogError", "VersionNotFoundError")


def replace_file(table: Path, batch: pa.Table, **options: Any) -> None:
    """Replace the data file of a table."""
    (file,) = table.glob("*.parquet")
    pq.write_table(batch, file, **options)


def test_many_rows_in_few_bytes_are_read_in_bounded_memory(tmp_path: Path):
    dv.write_table(tmp_path, pa.table({"id": [1]}))
    replace_file(tmp_path, pa.table({"id": pa.repeat(7, 5_000_000)}), row_group_size=5_000_000)
    assert run_limited(400, "read", tmp_path)["result"] == 5_000_000
    assert run_limited(400, "find a row", tmp_path)["result"] == 0


def test_long_texts_in_few_bytes_are_read_in_bounded_memory(tmp_path: Path):
    dv.write_table(tmp_path, pa.table({"id": [1], "text": ["a"]}))
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 1_000_000]))
    replace_file(tmp_path, pa.table({"id": pa.repeat(1, 1000), "text": texts}))
    (file,) = tmp_path.glob("*.parquet")
    assert file.stat().st_size < 2_000_000
    assert run_limited(500, "read", tmp_path, seconds=60)["result"] == 1000
    assert run_limited(500, "find a row", tmp_path, seconds=60)["result"] == 1000


LONG = "x" * 1_000_000


def test_a_batch_of_more_text_than_a_table_has_offsets_for_is_written(tmp_path: Path):
    # Polars exports such batches.
    dv.write_table(tmp_path, pa.record_batch({"text": pa.array([LONG] * 2200, pa.string_view())}))
    rows = 0
    for batch in dv.read_table(tmp_path).to_batches():
        assert batch["text"].type == pa.string()
        assert batch["text"][0].as_py() == batch["text"][-1].as_py() == LONG
        rows += batch.num_rows
    assert rows == 2200


def test_a_slice_of_more_text_than_a_table_has_offsets_for_is_written(tmp_path: Path):
    whole = pa.record_batch({"text": pa.repeat(pa.scalar(LONG, pa.large_string()), 2200)})
    dv.write_table(tmp_path, whole.slice(2190))
    assert dv.read_table(tmp_path).to_table()["text"].to_pylist() == [LONG] * 10


def test_text_that_is_too_large_without_its_dictionary_is_rejected(tmp_path: Path):
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2200, pa.int32()), pa.array([LONG]))
    with pytest.raises(SchemaError, match="write fewer rows per batch"):
        dv.write_table(tmp_path, pa.table({"text": texts}))
    assert not any(tmp_path.iterdir())


def test_a_million_keys_in_one_object_are_written_and_read(tmp_path: Path):
    text = tmp_path / "text.json"
    text.write_text("{" + ",".join(f'"k{number}":{number}' for number in range(1_000_000)) + "}")
    outcome = run_limited(2500, "write", text, seconds=60)
    assert outcome.get("result") == 999_999, outcome


@pytest.mark.parametrize("text", ["[" * 1_000_000, '{"a":' * 1_000_000, "[" * 100_000 + "]" * 100_000])
def test_json_that_is_nested_too_deeply_is_rejected(tmp_path: Path, text: str):
    path = tmp_path / "text.json"
    path.write_text(text)
    assert run_limited(500, "write", path)["error"] == "InvalidJsonError"


def test_a_schema_of_very_many_columns_is_loaded(tmp_path: Path):
    dv.write_table(tmp_path, pa.table({"id": [1]}))
    fields = [
        {"name": f"c{number}", "type": "long", "nullable": True, "metadata": {}} for number in range(20_000)
    ]
    schema = {"type": "struct", "fields": [{**fields[0], "name": "id"}, *fields]}
    change(tmp_path, 0, lambda metadata: metadata.update(schemaString=json.dumps(schema)), "metaData")
    assert run_limited(500, "load", tmp_path)["result"] == 1


def test_a_data_file_that_is_a_pipe_or_a_folder_is_rejected(table: Path):
    (file,) = table.glob("*.parquet")
    file.unlink()
    file.mkdir()
    with raises_at(DataFileError, file=file.name):
        read(table)
    file.rmdir()
    os.mkfifo(file)
    with pytest.raises(DeltaVariantError, match="not a regular file"):
        read(table)
    os.mkfifo(table / commit_file_name(1))
    assert dv.load_snapshot(table).version == 0


NAMES = {
    "NUL": ("a\0b", [5], 'cannot hand the column "a\\0b" to Arrow because its name contains a NUL'),
    "NUL in a struct": ("s", [{"a\0b": 5}], 'cannot hand the column "s.a\\0b" to Arrow because'),
    "NUL in a list": ("l", [[{"a\0b": 5}]], 'cannot hand the column "l.a\\0b" to Arrow because'),
}


@pytest.mark.parametrize("name", NAMES)
def test_unreadable_column_names_are_errors_that_name_file_and_column(tmp_path: Path, name: str):
    column, values, sentence = NAMES[name]
    dv.write_table(tmp_path / "t", pa.table({"id": [1]}))
    (file,) = (tmp_path / "t").glob("*.parquet")
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array(values)], names=["id", column]), file)
    plain = tmp_path / "plain"
    plain.mkdir()
    shutil.copy(file, plain)
    expected = re.escape(f"{file.name}: {sentence}")
    for operate in (
        lambda: dv.compute_stats(file),
        lambda: read_legacy_file(file),
        lambda: migrate_legacy(plain, tmp_path / "migrated"),
    ):
        with pytest.raises(DataFileError, match=expected):
            operate()
    found = {(each.rule, each.file_path): each.sentence for each in dv.audit_table(tmp_path / "t").findings}
    assert re.search(re.escape(sentence), found["F3", file.name])
    (failed,) = dv.repair_statistics(tmp_path / "t").unrepairable
    assert failed.path == file.name
    assert re.search(re.escape(sentence), failed.reasons[0])
    assert dv.read_table(tmp_path / "t").to_table().to_pylist() == [{"id": 1}]


def test_a_column_that_a_file_has_twice_is_an_error_that_names_file_and_column(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"id": [1]}))
    (file,) = (tmp_path / "t").glob("*.parquet")
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([5])], names=["id", "id"]), file)
    plain = tmp_path / "plain"
    plain.mkdir()
    shutil.copy(file, plain)
    for operate in (
        lambda: dv.compute_stats(file),
        lambda: read_legacy_file(file),
        lambda: migrate_legacy(plain, tmp_path / "migrated"),
    ):
        with pytest.raises(DataFileError, match=f'{file.name}: cannot tell the columns named "id" apart'):
            operate()
    sentence = 'cannot tell which column of the file is "id", because "id" and "id" have its name'
    with pytest.raises(DataFileError, match=sentence) as error:
        dv.read_table(tmp_path / "t").to_table()
    assert (error.value.file, error.value.column) == (file.name, "id")
    found = {(each.rule, each.file_path): each.sentence for each in dv.audit_table(tmp_path / "t").findings}
    assert sentence in found["F3", file.name]
    (failed,) = dv.repair_statistics(tmp_path / "t").unrepairable
    assert sentence in failed.reasons[0]


def test_two_fields_of_a_struct_with_one_name_have_no_statistics(tmp_path: Path):
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    pq.write_table(pa.table({"s": struct}), tmp_path / "f.parquet")
    with pytest.raises(DataFileError, match=r"f\.parquet: ambiguous column 's\.x'"):
        dv.compute_stats(tmp_path / "f.parquet")


def test_a_struct_with_a_nul_in_a_name_is_not_read(tmp_path: Path):
    path = tmp_path / "t"
    dv.write_table(path, pa.table({"id": [1], "s": [{"ab": 5}]}))
    (file,) = path.glob("*.parquet")
    pq.write_table(pa.table({"id": [1], "s": [{"a\0b": 5}]}), file, store_schema=False)
    commit = path / "_delta_log" / f"{0:020d}.json"
    log = commit.read_text("utf-8")
    commit.write_text(log.replace(r"\"ab\"", r"\"a\\u0000b\""), "utf-8")
    with pytest.raises(DataFileError, match=r'cannot hand the column "s\.a\\0b" to Arrow') as error:
        dv.read_table(path).to_table()
    assert str(error.value).startswith(f"{file.name}: ")
    assert dv.read_table(path, columns=["id"]).to_table().to_pylist() == [{"id": 1}]
