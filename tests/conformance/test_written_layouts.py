"""What an engine writes: planted bugs in schema, log, row ids and changes are found next to right values."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.locations import OWN_CASES

from delta_variant.protocol.z85 import decode, encode
from delta_variant_conformance.case import load_cases
from delta_variant_conformance.deletion_vectors import deleted_rows
from delta_variant_conformance.engine import Engine
from delta_variant_conformance.engines import start
from delta_variant_conformance.grade import Result, grade
from delta_variant_conformance.invoke import invoke
from delta_variant_conformance.parquet_footer import annotate

CASES = {case.id: case for case in load_cases(OWN_CASES)}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return start("ours", tmp_path_factory.mktemp("engine"))


def result_of(engine: Engine, case: str, scratch: Path) -> Result:
    return grade(CASES[case], "planted", invoke(engine, CASES[case], scratch))


# Parquet files


def retyped(kind: Any, change: Callable[[str, Any], Any], path: str) -> Any:
    """Return a type with each field replaced by `change`, which gets its path."""
    if pa.types.is_struct(kind):
        fields = [(f"{path}.{field.name}", field) for field in kind]
        return pa.struct([change(at, each.with_type(retyped(each.type, change, at))) for at, each in fields])
    if pa.types.is_list(kind):
        field, at = kind.value_field, f"{path}.element"
        return pa.list_(change(at, field.with_type(retyped(field.type, change, at))))
    return kind


def storage_of(kind: Any) -> Any:
    kind = getattr(kind, "storage_type", kind)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(storage_of(field.type)) for field in kind])
    return (
        pa.list_(kind.value_field.with_type(storage_of(kind.value_type))) if pa.types.is_list(kind) else kind
    )


def write_changed(file: Path, change: Callable[[str, Any], Any], *, annotated: bool = True) -> None:
    """Write the Variant column of a file again with other fields in its groups."""
    table = pq.read_table(file, columns=["v"])
    kind = storage_of(table.schema.field("v").type)
    rows = pa.array(table.column("v").to_pylist(), retyped(kind, change, "v"))
    pq.write_table(pa.table({"v": rows}), file)
    if annotated:
        annotate(file, "v")


def optional(*names: str) -> Callable[[str, Any], Any]:
    return lambda path, field: field.with_nullable(True) if path in names else field


def required(*names: str) -> Callable[[str, Any], Any]:
    return lambda path, field: field.with_nullable(False) if path in names else field


def with_member(name: str) -> Callable[[str, Any], Any]:
    """Add a member to the group of the field `a`."""

    def change(path: str, field: Any) -> Any:
        if path != "v.typed_value.a":
            return field
        return field.with_type(pa.struct([*field.type, pa.field(name, pa.int64())]))

    return change


def unchanged(path: str, field: Any) -> Any:
    return field


@pytest.mark.parametrize(
    ("case", "change", "annotated", "status", "rule"),
    [
        ("shred/objects", optional("v.typed_value.a"), True, "wrong layout", "P-S7"),
        ("shred/arrays", optional("v.typed_value.element"), True, "wrong layout", "W10"),
        ("shred/objects", with_member("other"), True, "wrong layout", "P-X2"),
        ("shred/objects", with_member("_other"), True, "pass", "P-X1"),
        ("shred/objects", optional("v.metadata"), True, "pass", "P-S1"),
        ("shred/names_that_differ_in_case", required("v.typed_value"), True, "pass", "P-S1"),
        ("shred/objects", unchanged, False, "pass", "P-S2"),
    ],
)
def test_a_bug_in_the_schema_of_a_file_is_found(
    ours: Engine, tmp_path: Path, case: str, change: Any, annotated: bool, status: str, rule: str
) -> None:
    def shred(file: Path, column: str, schema: Any, out: Path) -> None:
        ours.shred(file, column, schema, out)
        write_changed(out, change, annotated=annotated)

    result = result_of(replace(ours, shred=shred), case, tmp_path)
    texts = result.got.split("; ") if status == "wrong layout" else list(result.notes)
    assert result.status == status, (result.got, result.notes)
    assert rule in {text.split(": ")[0] for text in texts}


def test_a_file_that_is_only_read_and_written_again_passes(ours: Engine, tmp_path: Path) -> None:
    def shred(file: Path, column: str, schema: Any, out: Path) -> None:
        ours.shred(file, column, schema, out)
        write_changed(out, unchanged)

    result = result_of(replace(ours, shred=shred), "shred/objects", tmp_path)
    assert (result.status, result.notes) == ("pass", ())


# Tables


Action = dict[str, Any]


def change_adds(table: Path, change: Callable[[Action], None]) -> None:
    """Change each add of the last commit of a table."""
    log = sorted((table / "_delta_log").glob("*[0-9].json"))[-1]
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        if "add" in action:
            change(action["add"])
    log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")


def stats_change(change: Callable[[Action], None]) -> Callable[[Path], None]:
    def in_add(add: Action) -> None:
        stats = json.loads(add["stats"])
        change(stats)
        add["stats"] = json.dumps(stats)

    return lambda table: change_adds(table, in_add)


def bound_change(side: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    """Replace bytes in a bound of the Variant."""

    def change(stats: Action) -> None:
        bound = decode(stats[side]["v"])
        assert old in bound
        stats[side]["v"] = encode(bound.replace(old, new, 1))

    return stats_change(change)


def without_feature(table: Path) -> None:
    commit = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["variantType"],
        "writerFeatures": ["variantType"],
    }
    log = sorted((table / "_delta_log").glob("*[0-9].json"))[-1]
    log.write_text(log.read_text() + json.dumps({"protocol": commit}) + "\n", encoding="utf-8")


# The bounds are objects of `$['a']`: an int64, 1 to 4.
INT64_1, INT64_4 = b"\x18" + (1).to_bytes(8, "little"), b"\x18" + (4).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (without_feature, "H4"),
        (lambda table: change_adds(table, lambda add: add.update(size=1)), "F2"),
        (stats_change(lambda stats: stats.update(numRecords=3)), "AU11"),
        (stats_change(lambda stats: stats["nullCount"].update(v=1)), "AU10"),
        (stats_change(lambda stats: stats["nullCount"].update(v={"a": 0})), "AU20"),
        (stats_change(lambda stats: stats["minValues"].update(v={"a": 1})), "Z7"),
        (stats_change(lambda stats: stats["minValues"].update(v="~~")), "AU1"),
        (stats_change(lambda stats: stats["minValues"].update(id=3)), "AU7"),
        (bound_change("minValues", INT64_1, b"\x1c" + INT64_1[1:]), "AU5"),
        (bound_change("minValues", INT64_1, INT64_4), "AU7"),
    ],
)
def test_a_bug_in_the_log_of_a_table_is_found(ours: Engine, tmp_path: Path, change: Any, rule: str) -> None:
    def rewrite(folder: Path, deleted: int | None) -> None:
        ours.rewrite(folder, deleted)
        change(folder)

    result = result_of(replace(ours, rewrite=rewrite), "rewrite/compact_shredded_files", tmp_path)
    assert result.status == "wrong layout", (result.status, result.notes)
    assert rule in {text.split(": ")[0] for text in result.got.split("; ")}, result.got


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (bound_change("minValues", b"$['a']", b'$["a"]'), "AU4"),
        (stats_change(lambda stats: stats["minValues"].update(v=stats["minValues"]["v"] + "00000")), "AU16"),
    ],
)
def test_a_bound_that_readers_ignore_is_a_note(ours: Engine, tmp_path: Path, change: Any, rule: str) -> None:
    def rewrite(folder: Path, deleted: int | None) -> None:
        ours.rewrite(folder, deleted)
        change(folder)

    result = result_of(replace(ours, rewrite=rewrite), "rewrite/compact_shredded_files", tmp_path)
    assert (result.status, [note.split(": ")[0] for note in result.notes]) == ("pass", [rule])


@pytest.mark.parametrize(
    ("case", "pattern", "other", "status", "message"),
    [
        ("compact_property_off", 'Shredding":"false', 'Shredding":"true', "wrong layout", "H3: "),
        (
            "delete_with_deletion_vectors",
            r',"deletionVector":\{.*?\}',
            "",
            "wrong value",
            "expected the rows [4, 5, 6, 7, 8], got [2, 3, ",
        ),
    ],
)
def test_an_engine_that_ignores_a_part_of_the_log_is_found(
    ours: Engine, tmp_path: Path, case: str, pattern: str, other: str, status: str, message: str
) -> None:
    def rewrite(folder: Path, deleted: int | None) -> None:
        log = folder / "_delta_log" / f"{0:020}.json"
        before = log.read_text(encoding="utf-8")
        changed, times = re.subn(pattern, other, before)
        assert times == 1
        log.write_text(changed, encoding="utf-8")
        ours.rewrite(folder, deleted)
        log.write_text(before, encoding="utf-8")

    result = result_of(replace(ours, rewrite=rewrite), f"rewrite/{case}", tmp_path)
    assert (result.status, result.got[: len(message)]) == (status, message)


def without_ids(table: Path) -> None:
    """Remove the materialized row ids of all files."""
    for file in table.glob("*.parquet"):
        stored = pq.read_table(file)
        pq.write_table(stored.select([name for name in stored.column_names if name != "_row-id"]), file)


def commit_change(change: Callable[[list[Action]], list[Action]]) -> Callable[[Path], None]:
    """Replace the actions of the last commit."""

    def in_table(table: Path) -> None:
        log = sorted((table / "_delta_log").glob("*[0-9].json"))[-1]
        actions = change([json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()])
        log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")

    return in_table


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        (
            "rewrite/delete_with_change_data",
            commit_change(lambda actions: [each for each in actions if "cdc" not in each]),
            'changes: expected ["delete"], got ["delete", ',
        ),
        (
            "rewrite/delete_row_ids",
            without_ids,
            "row ids: expected [1, 2, 3, 4, 5, 6, 7], got ",
        ),
    ],
)
def test_lost_ids_and_wrong_changes_are_found(
    ours: Engine, tmp_path: Path, case: str, change: Any, message: str
) -> None:
    def rewrite(folder: Path, deleted: int | None) -> None:
        ours.rewrite(folder, deleted)
        change(folder)

    result = result_of(replace(ours, rewrite=rewrite), case, tmp_path)
    assert (result.status, result.got[: len(message)]) == ("wrong value", message)


# Deletion vectors


def inline(*bitmaps: bytes) -> Action:
    """Return a descriptor of bitmaps under the high bits 0 and 1."""
    parts = [struct.pack("<I", high) + bitmap for high, bitmap in enumerate(bitmaps)]
    data = struct.pack("<iq", 1681511377, len(parts)) + b"".join(parts)
    return {
        "storageType": "i",
        "pathOrInlineDv": encode(data + bytes(-len(data) % 4)),
        "sizeInBytes": len(data),
    }


ARRAY = struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 3, 5)
RUN = struct.pack("<IBHHHHH", 12347, 1, 2, 4, 1, 10, 4)
BITMAP = struct.pack("<IIHHI", 12346, 1, 0, 4096, 16) + b"\xff" * 512 + b"\1" + bytes(7679)


@pytest.mark.parametrize(
    ("bitmaps", "rows"),
    [
        ([ARRAY], {3, 5}),
        ([RUN], {131082, 131083, 131084, 131085, 131086}),
        ([BITMAP], set(range(4097))),
        ([ARRAY, ARRAY], {3, 5, 2**32 + 3, 2**32 + 5}),
    ],
)
def test_the_kit_reads_each_container_of_a_deletion_vector(
    tmp_path: Path, bitmaps: list[bytes], rows: set[int]
) -> None:
    assert deleted_rows(tmp_path, inline(*bitmaps)) == rows
