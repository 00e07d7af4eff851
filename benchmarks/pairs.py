"""The pairs of flows that are compared, as data.

A flow is one run of an engine in its own process. A pair runs two of them in turn, so that both meet the same
state of the machine, and compares them by one figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["PAIRS", "Flow", "Pair", "Table", "Target"]

Rate = Literal["rows_per_cpu_second", "rows_per_second"]


@dataclass(frozen=True)
class Table:
    """Files that a flow reads: the engine that writes them, and the events that it writes."""

    engine: str = "ours"
    source: str = "events"


@dataclass(frozen=True)
class Flow:
    """One run of an engine.

    Attributes:
        name: The name of the flow in the results.
        script: The program that runs it.
        engine: The name of the engine in that program.
        action: The workload of that program, if it has several.
        source: The generated input: events, commits or a log.
        table: The files that are read instead of `source`.
        environment: Environment variables of the process.
    """

    name: str
    script: str
    engine: str
    action: str = ""
    source: str = "events"
    table: Table | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """The figure that a pair must reach, as the median over its rounds."""

    bound: float
    fact: str = "ratio"
    at_least: bool = True

    def holds(self, measured: float) -> bool:
        """Return whether a measured figure reaches the target."""
        return measured >= self.bound if self.at_least else measured <= self.bound


@dataclass(frozen=True)
class Pair:
    """Two flows, of which the first belongs to this library.

    Attributes:
        name: The name of the pair, `WORKLOAD/PEER`.
        ours: The flow of this library.
        peer: The flow that it is compared with, None for figures without a comparison.
        rate: The figure of which the ratio, ours to peer, is formed.
        targets: What must hold.
    """

    name: str
    ours: Flow
    peer: Flow | None = None
    rate: Rate = "rows_per_cpu_second"
    targets: tuple[Target, ...] = ()

    @property
    def workload(self) -> str:
        """Return the workload, which groups the results."""
        return self.name.partition("/")[0]


def _write(name: str, engine: str, source: str = "events") -> Flow:
    return Flow(name, "write.py", engine, source=source)


def _read(name: str, engine: str, action: str, table: Table, **environment: str) -> Flow:
    return Flow(name, "read.py", engine, action, table.source, table, environment)


def _rewrite(engine: str, action: str, source: str) -> Flow:
    other = "deltalake" if source == "plain" else "deltalake, unshredded columns"
    names = {"ours": "ours", "ours-vectors": "ours, deletion vectors"}
    return Flow(names.get(engine, other), "rewrite.py", engine, action, source)


def _change(action: str, source: str, engine: str, *targets: Target) -> Pair:
    """Return a pair with deltalake, which rewrites files."""
    suffix = engine.removeprefix("ours")
    ours, peer = (_rewrite(each, action, source) for each in (engine, "deltalake"))
    return Pair(f"{action}/deltalake{suffix}", ours, peer, rate="rows_per_second", targets=targets)


def _load(name: str, engine: str, action: str) -> Flow:
    return Flow(name, "planning.py", engine, action, "log")


OURS = _write("ours", "ours")
SHUFFLED = _write("ours, keys shuffled", "ours", "shuffled")
UNSHREDDED = _write("ours, shredding=None", "ours-unshredded")
PARSE = _write("orjson.loads of each line", "orjson")
PARSE_SHUFFLED = _write("orjson.loads of each line", "orjson", "shuffled")
COUNT = _read("ours", "ours", "count", Table())
TEXT = _read("ours", "ours", "json", Table())
SELECTIVE = Flow("ours", "read.py", "ours", "selective", "sorted")
PLAIN = Table("ours-unshredded")

WRITES = (
    Pair(
        "write/orjson",
        OURS,
        PARSE,
        targets=(
            Target(1.2),
            Target(250, "peak_megabytes", at_least=False),
            Target(100, "megabytes_out", at_least=False),
        ),
    ),
    Pair(
        "write/orjson-command-line",
        _write("ours, command line", "command-line"),
        PARSE,
        targets=(Target(1.0),),
    ),
    Pair("write/orjson-shuffled", SHUFFLED, PARSE_SHUFFLED, targets=(Target(0.9),)),
    Pair("write/orjson-unshredded", UNSHREDDED, PARSE, targets=(Target(1.1),)),
    Pair(
        "write/four-times-the-rows",
        _write("ours, 4 x the rows", "ours", "four"),
        OURS,
        targets=(Target(0.9), Target(275, "peak_megabytes", at_least=False)),
    ),
    Pair("write/duckdb", OURS, _write("DuckDB, Parquet", "duckdb")),
    Pair("write/clickhouse", OURS, _write("ClickHouse, its own format", "clickhouse")),
    Pair("write/spark", OURS, _write("Spark, Parquet", "spark")),
    Pair("write/sail", OURS, _write("Sail, Delta", "sail")),
    Pair("write/pyarrow", OURS, _write("pyarrow, clean rows to typed columns", "pyarrow", "clean")),
    Pair(
        "write/on-spark",
        _write("ours, on Spark", "ours-on-spark"),
        _write("Spark, Parquet", "spark"),
        rate="rows_per_second",
        targets=(Target(3), Target(600, "worker_megabytes", at_least=False), Target(95, "typed_percent")),
    ),
)
RESIDUAL_ROWS = (
    Pair(
        "residual-rows/write",
        OURS,
        _write("ours, residual rows inline", "ours-inline"),
        targets=(Target(0.95),),
    ),
    Pair(
        "residual-rows/duckdb",
        _read("DuckDB, our Parquet", "duckdb", "paths", Table()),
        _read("DuckDB, our Parquet with residual rows inline", "duckdb", "paths", Table("ours-inline")),
        targets=(Target(0.5, "cpu_seconds", at_least=False), Target(5, "percent_in", at_least=False)),
    ),
    Pair(
        "residual-rows/pruned",
        Flow("ours", "read.py", "ours", "pruned", "separate"),
        Flow("ours, residual rows inline", "read.py", "ours", "pruned", "inline"),
    ),
)
COUNTS = (
    Pair(
        "count/clickhouse",
        COUNT,
        _read("ClickHouse, its own format", "clickhouse", "count", Table("clickhouse")),
        rate="rows_per_second",
        targets=(Target(1.25),),
    ),
    Pair("count/duckdb", COUNT, _read("DuckDB, its own Parquet", "duckdb", "count", Table("duckdb"))),
    Pair(
        "count/duckdb-clean",
        _read("ours, clean events", "ours", "count", Table("ours", "clean")),
        _read("DuckDB, our Parquet of clean events", "duckdb", "count", Table("ours", "clean")),
    ),
    Pair("count/spark", COUNT, _read("Spark, its own Parquet", "spark", "count", Table("spark"))),
    Pair("count/sail", COUNT, _read("Sail, Delta", "sail", "count", Table("sail"))),
    Pair(
        "count/pyarrow",
        COUNT,
        _read("pyarrow, a typed column", "pyarrow", "count", Table("pyarrow", "clean")),
    ),
    Pair(
        "count/unshredded",
        COUNT,
        _read("ours, shredding=None", "ours", "count", PLAIN),
    ),
)
TEXTS = (
    Pair("json/orjson", TEXT, PARSE, targets=(Target(1.7),)),
    Pair(
        "json/orjson-unshredded",
        _read("ours, shredding=None", "ours", "json", PLAIN),
        PARSE,
        targets=(Target(1.5),),
    ),
    Pair(
        "json/one-thread",
        TEXT,
        _read("ours, one thread", "ours", "json", Table(), RAYON_NUM_THREADS="1"),
        rate="rows_per_second",
        targets=(Target(1.7),),
    ),
    Pair("json/duckdb", TEXT, _read("DuckDB, its own Parquet", "duckdb", "json", Table("duckdb"))),
    Pair(
        "json/clickhouse",
        TEXT,
        _read("ClickHouse, its own format", "clickhouse", "json", Table("clickhouse")),
    ),
    Pair("json/spark", TEXT, _read("Spark, its own Parquet", "spark", "json", Table("spark"))),
    Pair("json/sail", TEXT, _read("Sail, Delta", "sail", "json", Table("sail"))),
)
SELECTIVES = (
    *(
        Pair(
            f"selective/{engine}",
            SELECTIVE,
            Flow(name, "read.py", engine, "selective", "sorted"),
            rate="rows_per_second",
            targets=(Target(1.5, "percent_in", at_least=False),),
        )
        for engine, name in (("duckdb", "DuckDB"), ("spark", "Spark"), ("sail", "Sail"))
    ),
    Pair(
        "selective/on-spark",
        Flow("ours, on Spark", "read.py", "ours-on-spark", "selective", "sorted"),
        Flow("Spark with Delta's JARs", "read.py", "delta-spark", "selective", "sorted"),
        rate="rows_per_second",
        targets=(Target(5),),
    ),
)
OTHERS = (
    Pair(
        "stats/leaf-values",
        _read("ours", "ours", "stats", Table()),
        targets=(Target(2e6, "rows_per_cpu_second"),),
    ),
    Pair(
        "files/thousand",
        Flow("ours, two threads", "read.py", "ours", "files", "thousand"),
        Flow(
            "ours, one thread", "read.py", "ours", "files", "thousand", environment={"RAYON_NUM_THREADS": "1"}
        ),
        rate="rows_per_second",
        targets=(Target(1.6, "cores"),),
    ),
    _change("delete", "sixteen", "ours", Target(1 / 0.6)),
    _change("delete", "sixteen", "ours-vectors", Target(10)),
    _change("update", "sixteen", "ours", Target(4)),
    _change("update", "sixteen", "ours-vectors", Target(4)),
    _change("merge", "sixteen", "ours-vectors", Target(1 / 0.3)),
    _change("merge-few", "plain", "ours", Target(2), Target(300, "peak_megabytes", at_least=False)),
    _change("merge-few", "plain", "ours-vectors", Target(10)),
    Pair(
        "scan/rewritten-files",
        _rewrite("ours-vectors", "scan", "sixteen"),
        _rewrite("ours", "scan", "sixteen"),
        targets=(Target(1 / 1.05),),
    ),
    Pair(
        "upserts/thousand",
        Flow("ours, deletion vectors", "upserts.py", "ours", "1000", "plain-half"),
        rate="rows_per_second",
        targets=(Target(1.25, "last_to_first", at_least=False), Target(200, "most_files", at_least=False)),
    ),
    Pair(
        "optimize/deltalake",
        _rewrite("ours", "optimize", "hundred"),
        _rewrite("deltalake", "optimize", "hundred"),
        rate="rows_per_second",
        targets=(Target(1 / 0.6),),
    ),
    Pair(
        "load/deltalake",
        _load("ours", "ours", "load"),
        _load("deltalake", "deltalake", "load"),
        rate="rows_per_second",
        targets=(Target(1.25), Target(1000, "peak_megabytes", at_least=False)),
    ),
    Pair(
        "load/spark",
        _load("ours", "ours", "load"),
        _load("Spark with Delta's JARs, inputFiles", "spark", "load"),
        rate="rows_per_second",
    ),
    Pair(
        "plan/deltalake",
        _load("ours", "ours", "plan"),
        _load("deltalake, which only loads", "deltalake", "load"),
        rate="rows_per_second",
    ),
)
PAIRS = {pair.name: pair for pair in (*WRITES, *RESIDUAL_ROWS, *COUNTS, *TEXTS, *SELECTIVES, *OTHERS)}
