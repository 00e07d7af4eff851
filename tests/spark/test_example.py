"""The example pipeline keeps every event, applies each once, and agrees with a model in Python."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote
from spark.tables import rows

import delta_variant as dv
from delta_variant import spark as dvs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LICENSES = ["CC0-1.0", "MIT", None]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks up the module by its name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    # A server of Spark Connect, which runs the functions of streams, cannot import the module.
    cloudpickle.register_pickle_by_value(module)
    return module


@pytest.fixture
def example() -> ModuleType:
    return load("spark_pipeline")


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    dvs.register(spark)
    return spark


class Producer:
    """Writes random events of Debezium, and knows the entries that they lead to."""

    def __init__(self, landing: Path) -> None:
        self.landing = landing
        self.entries: dict[str, dict[str, Any]] = {}
        self.lsn = 0
        self.random = random.Random(7)
        landing.mkdir()

    def write(self, count: int, *more: str) -> list[str]:
        """Write a file of events, and of more lines, and return the events."""
        lines = [self._event() for _ in range(count)]
        number = len(list(self.landing.iterdir()))
        path = self.landing / f"{number}.ndjson"
        path.write_text("".join(f"{line}\n" for line in [*lines, *more]), "utf-8")
        os.utime(path, (1_800_000_000 + number,) * 2)
        return lines

    def _event(self) -> str:
        prefix = f"p{self.random.randrange(12)}"
        before, after = self.entries.get(prefix), None
        if before is None or self.random.random() < 0.7:
            after = {"prefix": prefix, "license": self.random.choice(LICENSES), "name": f"name {self.lsn}"}
            if self.random.random() < 0.3:
                after["deprecated"] = True
        self.entries.pop(prefix, None)
        if after is not None:
            self.entries[prefix] = after
        self.lsn += 1
        op = "c" if before is None else "d" if after is None else "u"
        return json.dumps({"op": op, "before": before, "after": after, "source": {"lsn": self.lsn}})


def check(pipeline: Any, producer: Producer) -> None:
    """Compare silver and gold with the entries of the producer."""
    found = rows(Path(pipeline.silver), prefix="prefix", name="name", license="license", marked="deprecated")
    expected = [
        {
            "prefix": prefix,
            "name": entry["name"],
            "license": entry["license"] or "unknown",
            "marked": entry.get("deprecated", False),
        }
        for prefix, entry in producer.entries.items()
    ]
    assert found == sorted(expected, key=str)
    counts = rows(Path(pipeline.gold), license="license", entries="entries", marked="deprecated")
    entries = Counter(row["license"] for row in expected)
    marked = Counter(row["license"] for row in expected if row["marked"])
    assert counts == sorted(
        ({"license": name, "entries": n, "marked": marked[name]} for name, n in entries.items()), key=str
    )


def test_events_arrive_in_silver_and_gold_once(session: SparkSession, tmp_path: Path, example: ModuleType):
    producer = Producer(tmp_path / "landing")
    pipeline = example.Pipeline(str(tmp_path / "landing"), str(tmp_path / "lake"), files_per_batch=2)
    example.check(session, pipeline)
    events = [*producer.write(30, "{"), *producer.write(5), *producer.write(20, '{"op":')]
    example.stream(session, pipeline)
    check(pipeline, producer)
    # Both batches of bronze are processed again by a driver that died before Spark knew of the second one.
    for name in ("bronze", "silver", "gold"):
        commits = tmp_path / "lake" / "checkpoints" / name / "commits"
        newest = max(int(path.name) for path in commits.glob("[0-9]*"))
        (commits / str(newest)).unlink()
        (commits / f".{newest}.crc").unlink(missing_ok=True)
    # An event that the producer repeats, and an old one.
    events += [*producer.write(15, *events[-2:], events[0]), *events[-2:], events[0]]
    example.stream(session, pipeline)
    check(pipeline, producer)
    assert len(rows(Path(pipeline.bronze), lsn="event:source.lsn::int")) == len(events)
    assert len(list(Path(pipeline.quarantine).iterdir())) == 2
    metrics = example.monitor(session, pipeline)
    bronze = [each for each in metrics if each["table"] == pipeline.bronze]
    # On Spark Connect, commits do not tell their batch.
    batches = [None, None, None] if is_remote() else [2, 1, 0]
    assert [each["batch"] for each in bronze] == batches
    assert [each.get("numInvalidValues", 0) for each in bronze] == [0, 1, 1]
    assert sum(each["numOutputRows"] for each in bronze) == len(events)


@pytest.mark.nightly
def test_a_rebuild_and_maintenance_keep_the_rows(session: SparkSession, tmp_path: Path, example: ModuleType):
    producer = Producer(tmp_path / "landing")
    pipeline = example.Pipeline(str(tmp_path / "landing"), str(tmp_path / "lake"))
    producer.write(40)
    example.stream(session, pipeline)
    # Rows that a bug of an earlier version changed.
    dv.update(pipeline.silver, {"license": "'wrong'"}, "deprecated")
    dv.delete(pipeline.silver, "name like '%1'")
    example.rebuild(session, pipeline)
    check(pipeline, producer)
    # The producer has no home pages, so that each deprecated entry is deleted.
    example.correct(session, pipeline)
    producer.entries = {prefix: e for prefix, e in producer.entries.items() if not e.get("deprecated")}
    example.stream(session, pipeline)
    check(pipeline, producer)
    example.maintain(session, pipeline)
    producer.write(10)
    example.stream(session, pipeline)
    check(pipeline, producer)
    Path(pipeline.gold, dv.load_snapshot(pipeline.gold).files["path"][0].as_py()).unlink()
    with pytest.raises(Exception, match=r"gold"):
        example.maintain(session, pipeline)


def test_two_releases_become_change_events(tmp_path: Path):
    releases = {
        "old": {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}},
        "new": {"a": {"n": 1}, "b": {"n": 20}, "d": {"n": 4}},
    }
    for name, entries in releases.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(entries), "utf-8")
    module = load("registry_changes")
    arguments = [str(tmp_path / name) for name in ("old.json", "new.json", "landing")]
    module.main(arguments)
    snapshot, changes = (
        (tmp_path / "landing" / name).read_text("utf-8").splitlines()
        for name in ("1-snapshot.ndjson", "2-changes.ndjson")
    )
    assert [(event["op"], event["after"]) for event in map(json.loads, snapshot)] == [
        ("r", {"prefix": name, "n": n}) for name, n in (("a", 1), ("b", 2), ("c", 3))
    ]
    found = [json.loads(line) for line in changes[:-1]]
    assert [(event["op"], event["source"]["lsn"]) for event in found] == [("u", 4), ("d", 5), ("c", 6)]
    assert found[0]["before"] == {"prefix": "b", "n": 2}
    assert (found[1]["after"], found[2]["before"]) == (None, None)
    with pytest.raises(json.JSONDecodeError):
        json.loads(changes[-1])
