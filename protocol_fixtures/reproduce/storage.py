"""Reproduce published bugs of an engine's storage: `python protocol_fixtures/reproduce/storage.py duckdb`.

Cases of the kit are Parquet files and Delta tables, which such a bug does not affect. Needs the package of
the engine, `duckdb` or `chdb`. Each probe runs in its own process, and prints `right` or the wrong answer.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

DUCKDB: Mapping[str, tuple[Sequence[str], str]] = {
    "duckdb#24293": (
        (
            "SET variant_minimum_shredding_size = 0",
            "SET force_variant_shredding = 'STRUCT(k INTEGER)'",
            'CREATE TABLE t AS SELECT \'{"k": 7, "k": 8}\'::JSON::VARIANT AS v',
            "CREATE TABLE before AS SELECT v::VARCHAR AS text FROM t",
            "CHECKPOINT",
            "SELECT count(*) FROM t, before WHERE t.v::VARCHAR = before.text",
        ),
        "1",
    ),
    "duckdb#24297": (
        (
            "SET variant_minimum_shredding_size = 0",
            "SET force_variant_shredding = 'STRUCT(k INTEGER)'",
            "CREATE TABLE t AS SELECT {'K': 7}::VARIANT AS v",
            "CHECKPOINT",
            "SELECT v::VARCHAR FROM t",
        ),
        "{'K': 7}",
    ),
    "duckdb#25872, booleans": (
        (
            "CREATE TABLE t AS SELECT (i % 2 = 0)::VARIANT AS v FROM range(60000) r(i)",
            "CHECKPOINT",
            "SELECT count(*) - count(variant_extract(v, 'k')) FROM t",
        ),
        "60000",
    ),
    "duckdb#25872, arrays": (
        (
            "CREATE TABLE t AS SELECT [i, i]::VARIANT AS v FROM range(60000) r(i)",
            "CHECKPOINT",
            "SELECT count(*) - count(variant_extract(v, 'k')) FROM t",
        ),
        "60000",
    ),
}

MERGE_TREE = "ENGINE = MergeTree ORDER BY tuple() SETTINGS index_granularity = 1"


def skipped(condition: str) -> str:
    """Return a query for the number of rows that an index skips although they match."""
    count = f"SELECT count() FROM t WHERE {condition}"
    return f"SELECT ({count} SETTINGS use_skip_indexes = 0) - ({count})"


def index(column: str) -> str:
    return f"INDEX paths JSONAllPaths({column}) TYPE bloom_filter GRANULARITY 1"


CHDB: Mapping[str, tuple[Sequence[str], str]] = {
    "ClickHouse#117938": (
        (
            f"CREATE TABLE t (d JSON(p JSON), {index('d')}) {MERGE_TREE}",
            'INSERT INTO t SELECT \'{"p": {"q": 5}}\' FROM numbers(3)',
            skipped("d.p.q = 5"),
        ),
        "0",
    ),
    "ClickHouse#119592": (
        (
            f"CREATE TABLE t (`d.p` JSON, `d.p.q` String, {index('`d.p`')}) {MERGE_TREE}",
            "INSERT INTO t VALUES ('{\"x\": 1}', 'here')",
            skipped("`d.p.q` = 'here'"),
        ),
        "0",
    ),
    "ClickHouse#119767": (
        (
            f"CREATE TABLE t (d JSON, {index('d')}) {MERGE_TREE}",
            'INSERT INTO t VALUES (\'{"p": "x"}\'), (\'{"q": "y"}\'), (\'{}\')',
            skipped("d.p::String = CAST('', 'FixedString(3)')"),
        ),
        "0",
    ),
    "ClickHouse#95948": (
        (
            f"CREATE TABLE t (d JSON(SKIP p)) {MERGE_TREE}",
            'INSERT INTO t VALUES (\'{"p": 1, "pp": 2}\')',
            "SELECT toString(d.pp) FROM t",
        ),
        "2",
    ),
}
ENGINES = {"duckdb": DUCKDB, "chdb": CHDB}


def answer(engine: str, statements: Sequence[str]) -> str:
    """Return the first value of the last statement, in this process."""
    if engine == "duckdb":
        import tempfile

        import duckdb

        # Only databases of recent versions have Variants.
        settings = {"storage_compatibility_version": "latest"}
        with (
            tempfile.TemporaryDirectory() as folder,
            duckdb.connect(f"{folder}/d.db", config=settings) as connection,
        ):
            for statement in statements:
                result = connection.execute(statement)
            return str(result.fetchone()[0])
    from chdb import session

    with session.Session() as found:
        for statement in statements:
            result = found.query(statement, "TabSeparated")
        return str(result).strip()


def version(engine: str) -> str:
    """Return the version of an engine."""
    if engine == "duckdb":
        import duckdb

        return str(duckdb.__version__)
    import chdb

    return f"{chdb.__version__}, ClickHouse {answer('chdb', ['SELECT version()'])}"


def main() -> None:
    """Print a line for each probe, or answer one of them for another process."""
    engine, *probe = sys.argv[1:]
    if probe:
        print(answer(engine, ENGINES[engine][probe[0]][0]))
        return
    print(engine, version(engine))
    for name, (_, expected) in ENGINES[engine].items():
        command = [sys.executable, __file__, engine, name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or [""]
        failure = "" if done.returncode == 0 else f"exit status {done.returncode}: "
        found = lines[0] if done.returncode == 0 else lines[-1]
        print(f"{name}: {'right' if found == expected else f'expected {expected}, got {failure}{found}'}")


if __name__ == "__main__":
    main()
