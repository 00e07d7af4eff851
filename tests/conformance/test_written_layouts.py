"""The layout of what an engine writes: each planted bug is found by its rule, next to right values."""

from __future__ import annotations

import json
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
