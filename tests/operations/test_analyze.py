"""`analyze`: the figures that it keeps, which files it reads, and what other programs do with its records."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.operations.describe import analyze
from delta_variant.operations.describe.analyze import SIZE, Figures, Sketches, merge

FOLDER = "_delta_variant_sketches"
STANDARD_ERROR = 1 / math.sqrt(SIZE - 2)


def figures(*parts: list[Any]) -> Figures:
    """Return the figures of a column whose files have the parts."""
    records = []
    for part in parts:
        found = Sketches(schema := pa.schema([pa.field("c", pa.int64())]))
        found.add(pa.record_batch([pa.array(part, pa.int64())], schema=schema))
        records.append(found.record({"c": "c"}))
    [(_, merged)] = merge(records)
    return merged


def test_distinct_values_are_exact_or_have_the_error_of_the_sketch():
    assert figures([1, 2, 2, None]) == Figures(3, 1, 2, True, ("1", "1", "1", "2", "2", "2", "2", "2", "2"))
    assert figures([None]) == Figures(0, 1, None, True, ())
    assert figures(list(range(SIZE - 1)) * 20).distinct == SIZE - 1
    errors = []
    for first in range(0, 10**9, 10**7):
        merged = figures(list(range(first, first + 20_000)))
        assert not merged.is_exact
        errors.append(merged.distinct / 20_000 - 1)
    # The mean of 100 estimates, and of their squares, within four standard errors of them.
    assert abs(fmean(errors)) < 0.4 * STANDARD_ERROR
    assert fmean(error**2 for error in errors) < (1 + 4 * math.sqrt(2 / 100)) * STANDARD_ERROR**2


def test_sketches_of_files_merge_to_that_of_all_rows():
    numbers = list(range(30_000))
    parts = [numbers[:20_000], numbers[10_000:], numbers[5:6]]
    assert figures(*parts).distinct == figures(numbers).distinct


def test_deciles_are_near_those_of_all_rows():
    # All values are in the sample, and a record keeps the middles of 128 parts.
    deciles = enumerate(figures(list(range(1000))).deciles, 1)
    assert all(abs(int(text) - 100 * tenths) <= 1000 / 128 / 2 + 1 for tenths, text in deciles)
    random = Random(1)
    parts = [[int(random.gauss(at, 5) * 1000) for _ in range(2_000 * at)] for at in range(1, 11)]
    for files in (parts[-1:], parts):
        rows = sorted(number for part in files for number in part)
        # Five standard errors of a random sample of each file, and half of the distance of its points.
        weights = [len(part) / len(rows) for part in files]
        allowed = 5 * math.sqrt(sum(weight**2 for weight in weights) / 4 / SIZE) + 1 / 256
        for tenths, text in enumerate(figures(*files).deciles, 1):
            rank = sum(number <= int(text) for number in rows) / len(rows)
            assert abs(rank - tenths / 10) <= allowed


@pytest.fixture
def events(tmp_path: Path) -> dv.Table:
    """A table of two files whose rare path occurs in the last one."""
    table = dv.Table(tmp_path / "t")
    for first in (0, 20_000):
        documents = [
            {"kind": "abc"[n % 3], "n": None if n % 4 == 0 else n, **({"rare": [n]} if n == 39_990 else {})}
            for n in range(first, first + 20_000)
        ]
        rows = pa.table(
            {"id": [n // 2 for n in range(first, first + 20_000)], "v": map(json.dumps, documents)}
        )
        table.append(rows, variant_columns=["v"], configuration={"delta.enableDeletionVectors": "true"})
    return table


def test_describe_has_the_figures_of_all_rows(events: dv.Table):
    estimated = {each.path: each for each in events.describe(sample_rows=400).paths}
    assert estimated["v:kind"].deciles == ()
    assert events.analyze().version == 1
    summary = events.describe(sample_rows=400)
    paths = {each.path: each for each in summary.paths}
    assert (paths["v:kind"].filled, paths["v:kind"].nulls, paths["v:kind"].distinct) == (1, 0, 3)
    assert {"filled", "nulls", "distinct"} <= set(paths["v:kind"].exact)
    assert paths["v:kind"].deciles[::4] == ("a", "b", "c")
    assert (paths["v:n"].filled, paths["v:n"].nulls) == (0.75, 0.25)
    for path, number in (("id", 20_000), ("v:n", 30_000)):
        assert "distinct" not in paths[path].exact
        assert abs(paths[path].distinct / number - 1) < 5 * STANDARD_ERROR
    assert "~ estimated from 400 of them and sketches of all" in summary.title
    # A sample of all rows knows that one row has the path, in which an array is not counted.
    assert {each.path: each.filled for each in events.describe(sample_rows=10**6).paths}[
        "v:rare"
    ] == 1 / 40_000


def test_files_are_read_once(events: dv.Table):
    first = events.analyze()
    assert (len(first.files), first.known, first.dropped) == (2, 0, 0)
    root = Path(events.table_uri)
    for path in first.files:
        (root / path).rename(root / f".{path}")
    events.append([{"id": 1, "v": {}}])
    # The other files cannot be read.
    second = events.analyze()
    assert (len(second.files), second.known, second.dropped) == (1, 2, 0)
    assert not set(second.files) & set(first.files)
    for path in first.files:
        (root / f".{path}").rename(root / path)
    paths = {each.path: each for each in events.describe().paths}
    assert paths["v:kind"].filled == 40_000 / 40_001


def test_a_file_with_another_deletion_vector_is_another_file(events: dv.Table):
    events.analyze()
    events.delete("id = 0")
    assert events.describe().paths[0].deciles == ()
    assert (len(events.analyze().files), events.analyze().known) == (1, 2)
    events.restore(version=1)
    assert events.analyze().files == ()
    assert events.describe(version=2).paths[0].deciles != ()


def test_records_are_dropped_with_the_files_of_the_versions(events: dv.Table):
    events.analyze()
    events.optimize()
    assert (events.analyze().dropped, len(list(Path(events.table_uri, FOLDER).iterdir()))) == (0, 3)
    events.set_properties({"delta.deletedFileRetentionDuration": "interval 0 seconds"})
    dv.write_checkpoint(events)
    assert events.analyze().dropped == 2


def test_other_schemas_have_other_records(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.append(pa.table({"a": [1, 2]}), configuration={"delta.columnMapping.mode": "name"})
    table.analyze()
    table.rename_column("a", "b")
    assert table.analyze().files == ()
    assert table.describe().paths[0].deciles[0] == "1"
    table.add_columns({"c": "int"})
    assert table.describe().paths[0].deciles == ()
    assert len(table.analyze().files) == 1
    assert table.describe().paths[1].nulls == 1


def test_a_variant_with_too_many_paths_keeps_the_estimates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(analyze, "MAX_PATHS", 3)
    table = dv.Table(tmp_path)
    for many in ({"a": 1}, {"a": 1, "b": 2, "c": 3}):
        table.append([{"few": {"a": 1, "b": 2}, "many": many}], variant_columns=["few", "many"])
    table.analyze()
    deciles = {each.path: each.deciles != () for each in table.describe().paths if each.distinct}
    assert deciles == {"few:a": True, "few:b": True, "many:a": False, "many:b": False, "many:c": False}


def test_records_that_are_gone_or_damaged(events: dv.Table):
    events.analyze()
    record, _ = Path(events.table_uri, FOLDER).iterdir()
    record.write_bytes(b"damaged")
    with pytest.raises(dv.DataFileError, match=f"{FOLDER}: delete the folder"):
        events.describe()
    record.unlink()
    assert events.describe().paths[0].deciles == ()
    assert len(events.analyze().files) == 1


def test_vacuums_and_the_audit_leave_records_alone(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.append(pa.table({"p": ["x", "y"], "n": [1, 2]}), partition_by=["p"])
    table.delete("p = 'x'")
    table.analyze()
    [record] = (tmp_path / FOLDER).iterdir()
    assert table.audit().findings == ()
    other = deltalake.DeltaTable(tmp_path)
    listed = other.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True)
    deleted = table.vacuum(0, dry_run=False, enforce_retention_duration=False).files
    assert listed == list(deleted) != []
    assert record.exists()
    assert other.to_pyarrow_table().num_rows == table.count() == 1
