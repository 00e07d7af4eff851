"""Default shredding never makes a file much larger, however few rows it has, and the log stays small."""

from __future__ import annotations

import json
import lzma
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from support.locations import ROOT, list_corpus

import delta_variant as dv
from delta_variant.data_file.options import MAX_STATS_BYTES
from delta_variant.write import router

ROW_COUNTS = (1, 3, 10, 100, 1_200, 100_000)
"""A corpus with fewer rows is measured with all that it has."""

MAX_RATIO = 1.05
CORPORA = list_corpus("json/*.ndjson.xz")


def write(
    folder: Path, rows: list[str], shredding: dv.ShreddingSchema | str | None, partitions: int = 0
) -> dv.WriteResult:
    """Write rows to a new table, in partitions of equal size."""
    columns = {"event": pa.array(rows, pa.string())}
    if partitions:
        columns["part"] = pa.array(number % partitions for number in range(len(rows)))
    table = folder / f"t{len(list(folder.iterdir()))}"
    partition_by = ["part"] if partitions else None
    return dv.write_table(
        table,
        pa.table(columns),
        variant_columns=["event"],
        shredding=shredding,  # type: ignore[arg-type]
        partition_by=partition_by,
    )


def bytes_of(result: dv.WriteResult) -> int:
    return sum(file.bytes for file in result.files)


def ratio(folder: Path, rows: list[str], partitions: int = 0) -> float:
    """Return the size of files with default shredding as a multiple of their size without."""
    shredded = write(folder, rows, "infer", partitions)
    return bytes_of(shredded) / bytes_of(write(folder, rows, None, partitions))


def leaves_of(result: dv.WriteResult) -> list[int]:
    return [len(file.variants["event"]) for file in result.files]


def events(count: int) -> list[str]:
    """Return events of a web shop as JSON, the same for each call."""
    random = Random(17)

    def event(number: int) -> dict[str, object]:
        return {
            "id": f"{random.getrandbits(64):016x}",
            "ts": 1_735_689_600_000 + number * random.randrange(1_000),
            "type": random.choice(("view", "click", "search", "buy")),
            "user": {"id": random.randrange(10**6), "plan": random.choice(("free", "plus", "pro"))},
            "device": {"os": random.choice(("ios", "linux")), "width": random.choice((1080, 1920))},
            "items": [{"sku": random.randrange(10**5), "qty": 1} for _ in range(random.randrange(3))],
        }

    return [json.dumps(event(number)) for number in range(count)]


def wide(count: int) -> list[str]:
    """Return objects of 300 fields with constants, of which columns save nothing."""
    constants = {f"field_{number:03}": number for number in range(300)}
    return [json.dumps({"n": number, **constants}) for number in range(count)]


@pytest.mark.parametrize("count", ROW_COUNTS[:-1])
@pytest.mark.parametrize("generate", [events, wide])
def test_default_shredding_keeps_generated_files_small(tmp_path, generate, count):
    assert ratio(tmp_path, generate(count)) <= MAX_RATIO


@pytest.mark.parametrize("generate", [events, wide])
def test_many_small_partitions_stay_small(tmp_path, generate):
    assert ratio(tmp_path, generate(300), partitions=100) <= MAX_RATIO


def test_a_large_file_gets_all_paths_and_a_small_one_none(tmp_path):
    large = write(tmp_path, events(20_000), "infer")
    assert leaves_of(large) == [9]
    assert leaves_of(write(tmp_path, events(20), "infer")) == [0]
    assert bytes_of(large) < 0.8 * bytes_of(write(tmp_path, events(20_000), None))


def test_small_partitions_of_one_write_share_one_schema(tmp_path, monkeypatch):
    inferred = []

    def infer(batches, variants, options, rows):
        inferred.append((sum(batch.num_rows for batch in batches), rows))
        return original(batches, variants, options, rows)

    original = router.infer_shredding
    monkeypatch.setattr(router, "infer_shredding", infer)
    write(tmp_path, events(300), "infer", partitions=50)
    assert inferred == [(300, 6)]


def test_an_explicit_schema_is_kept_for_one_row(tmp_path):
    schema = dv.infer_shredding_schema(events(1))
    assert leaves_of(write(tmp_path, events(1), schema)) == [7]


@pytest.mark.parametrize("limit", [0, 100, 1_000, 5_000, MAX_STATS_BYTES])
def test_the_bytes_of_bounds_in_the_log_are_limited(tmp_path, limit):
    names = [f"{'long name ' * 90}{number}" for number in range(100)] + ["a", "b"]
    row = json.dumps(dict.fromkeys(names, 1))
    files = dv.FileOptions(max_variant_stats_bytes=limit, max_variant_stats_paths=1_000)
    data = pa.table({"event": [row]})
    schema = dv.infer_shredding_schema([row])
    dv.write_table(tmp_path / "t", data, variant_columns=["event"], shredding=schema, files=files)
    stats = json.loads(dv.load_snapshot(tmp_path / "t").files["stats"][0].as_py())
    texts = [stats[side].get("event", "") for side in ("minValues", "maxValues")]
    assert sum(map(len, texts)) <= limit
    assert bool(texts[0]) == (limit >= 1_000)


def test_one_row_does_not_have_100_kb_of_statistics(tmp_path):
    row = json.dumps({f"{'name' * 200}{number}": "x" * 100 for number in range(300)})
    schema = dv.infer_shredding_schema([row])
    write(tmp_path, [row], schema)
    (stats,) = dv.load_snapshot(tmp_path / "t0").files["stats"].to_pylist()
    assert len(stats) < MAX_STATS_BYTES + 200


def lines(path: Path, count: int) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, count)]


def test_the_corpora_are_there(corpora):
    assert len(CORPORA) == 10


@pytest.mark.parametrize("path", CORPORA, ids=lambda path: path.name.partition(".")[0])
def test_default_shredding_keeps_files_of_a_corpus_small(tmp_path, corpora, path):
    rows = lines(path, max(ROW_COUNTS))
    counts = {min(count, len(rows)) for count in ROW_COUNTS}
    ratios = {count: ratio(tmp_path, rows[:count]) for count in sorted(counts)}
    ratios[-1] = ratio(tmp_path, rows[:300], partitions=100)
    assert {count: each for count, each in ratios.items() if each > MAX_RATIO} == {}


def test_default_shredding_keeps_files_of_benchmark_events_small(tmp_path, corpora, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from generate import generate

    rows = list(islice(generate(20260101, clean=False, shuffle=False), max(ROW_COUNTS)))
    ratios = {count: ratio(tmp_path, rows[:count]) for count in ROW_COUNTS}
    assert {count: each for count, each in ratios.items() if each > MAX_RATIO} == {}
