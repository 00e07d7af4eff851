"""Audits and repairs of statistics, in one process and by tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.typing import Engine

NO_BOUNDS = '{"numRecords":10}'


def stats_of(table: Path) -> list[str]:
    return dv.load_snapshot(table).files["stats"].to_pylist()


def table_with_wrong_statistics(folder: Path) -> Path:
    """Write six files, and remove the bounds of every other one."""
    for number in range(6):
        texts = [f'{{"n":{number * 10 + each}}}' for each in range(10)]
        dv.write_table(folder, pa.table({"event": pa.array(texts, pa.json_())}), mode="append")
        if number % 2:
            log = folder / "_delta_log" / f"{number:020}.json"
            actions = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
            for action in actions:
                if "add" in action:
                    action["add"]["stats"] = NO_BOUNDS
            log.write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")
    return folder


@pytest.mark.parametrize("data", [False, True])
def test_an_audit_finds_the_same_in_the_order_of_the_files(engine: Engine | None, tmp_path: Path, data: bool):
    table = table_with_wrong_statistics(tmp_path / "t")
    paths = dv.load_snapshot(table).files["path"].to_pylist()
    (table / paths[2]).write_bytes(b"no Parquet")
    found = dv.Table(table, engine=engine).audit(data=data)
    assert [file.path for file in found.files] == paths
    assert [file.rows for file in found.files] == [None if number == 2 else 10 for number in range(6)]
    of_files = [paths.index(each.file_path) for each in found.findings if each.file_path]
    assert of_files == sorted(of_files)
    assert 2 in of_files
    assert (found.version, found.data, found.is_clean) == (5, data, False)


def test_a_repair_commits_correct_statistics(engine: Engine | None, tmp_path: Path):
    table = table_with_wrong_statistics(tmp_path / "t")
    paths = dv.load_snapshot(table).files["path"].to_pylist()
    wrong = [path for path, stats in zip(paths, stats_of(table), strict=True) if stats == NO_BOUNDS]
    handle = dv.Table(table, engine=engine)
    assert [file.path for file in handle.repair_statistics().files] == wrong
    assert len(wrong) == 3
    one = handle.repair_statistics(files=wrong[:1], dry_run=False)
    assert ([file.path for file in one.files], one.version) == (wrong[:1], 6)
    rest = handle.repair_statistics(dry_run=False)
    assert ({file.path for file in rest.files}, rest.version) == (set(wrong[1:]), 7)
    assert dv.audit_table(table, data=True).is_clean
    assert handle.repair_statistics(dry_run=False).version is None
