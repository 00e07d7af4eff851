"""Each line of docs/guides/why-not-skipped.md has its cause, and its cure works."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_variant as dv

FILES = 4
WHERE = "event:id::int = 7"
IDS = dv.ShreddingSchema.of({"id": pa.int64()})


def table(folder: Path, documents: Any, **options: Any) -> dv.Table:
    """Return a table with a file for each result of `documents(number, first id)`."""
    events = dv.Table(folder / "events")
    for number in range(FILES):
        rows = [{"event": each} for each in documents(number, 1000 * number)]
        events.append(rows, variant_columns=["event"], **options)
    return events


def ids(number: int, first: int) -> list[dict[str, Any]]:
    return [{"id": first + row} for row in range(100)]


def lines(events: dv.Table, where: str = WHERE) -> list[str]:
    return [line.strip() for line in str(events.scan(where=where).explain()).split("\n")]


def read(events: dv.Table, where: str = WHERE) -> tuple[int, int]:
    explained = events.scan(where=where).explain()
    return explained.files_read, explained.rows


def test_small_files_have_no_bounds_before_their_rows_get_a_schema(tmp_path: Path):
    events = table(tmp_path, ids)
    assert lines(events)[:2] == ["files       4 of 4 read", "0 of 4 have bounds of event:id"]
    events.overwrite(events.scan(), shredding=IDS)
    assert lines(events)[1] == "1 of 1 have bounds of event:id"


def test_a_cast_to_another_type_uses_no_bounds(tmp_path: Path):
    events = table(tmp_path, ids, shredding=IDS)
    assert read(events) == (1, 1)
    assert lines(events, "event:id::string = '7'")[1] == "0 of 4 have bounds of event:id"
    assert read(events, "event:id::string = '7'") == (4, 1)


def test_a_table_without_statistics_of_paths_is_repaired(tmp_path: Path):
    events = table(tmp_path, ids, shredding=IDS, files=dv.FileOptions(max_variant_stats_paths=0))
    assert lines(events)[1] == "0 of 4 have bounds of event:id"
    events.repair_statistics(dry_run=False)
    assert lines(events)[:3] == [
        "files       1 of 4 read",
        "3 skipped by bounds of Variants",
        "4 of 4 have bounds of event:id",
    ]


@pytest.mark.parametrize("odd", [None, "7"])
def test_a_null_or_another_type_costs_a_file_its_bounds(tmp_path: Path, odd: str | None):
    def documents(number: int, first: int) -> list[dict[str, Any]]:
        return [*ids(number, first), *([{"id": odd}] if number else [])]

    files = dv.FileOptions(residual_rows="inline")
    events = table(tmp_path, documents, shredding=IDS, files=files)
    where = "event:id?::int = 50"
    assert lines(events, where)[1] == "1 of 4 have bounds of event:id"
    assert read(events, where) == (4, 1)


def test_values_of_the_whole_range_are_skipped_after_a_sort(tmp_path: Path):
    def spread(number: int, first: int) -> list[dict[str, Any]]:
        chosen = random.Random(number)
        return [{"id": row * FILES + number, "text": chosen.randbytes(100).hex()} for row in range(1000)]

    schema = dv.ShreddingSchema.of({"id": pa.int64(), "text": pa.string()})
    events = table(tmp_path, spread, shredding=schema)
    assert lines(events)[:2] == ["files       4 of 4 read", "4 of 4 have bounds of event:id"]
    events.optimize(sort_by="event:id::int", files=dv.FileOptions(target_file_size=50_000))
    files = events.snapshot().num_files
    assert files > 1
    assert lines(events)[0] == f"files       1 of {files} read"


def test_a_function_of_a_path_has_no_bounds_and_comparisons_do(tmp_path: Path):
    events = table(tmp_path, ids, shredding=IDS)
    assert lines(events, "abs(event:id::int) = 7")[1].startswith("bytes")
    assert read(events, "abs(event:id::int) = 7") == (4, 1)
    assert read(events, "event:id::int = -7 or event:id::int = 7") == (1, 1)


def test_a_prefix_has_bounds_and_a_suffix_does_not(tmp_path: Path):
    def names(number: int, first: int) -> list[dict[str, Any]]:
        return [{"name": f"{'abcd'[number]}{row:03}"} for row in range(100)]

    events = table(tmp_path, names, shredding=dv.ShreddingSchema.of({"name": pa.string()}))
    assert read(events, "event:name::string like 'b00%'") == (1, 10)
    assert read(events, "event:name::string like '%007'") == (4, 4)
