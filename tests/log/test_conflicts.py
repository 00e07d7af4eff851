"""Two writers at once: the one that comes second goes through as if it had come alone, or not at all.

The expected conflicts are those of Delta's own conflict checker (`ConflictChecker` of delta-spark).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.intercepted_store import commit_first
from support.tables import list_files, read_actions, read_by_id, read_log

import delta_variant as dv
from delta_variant.errors import CommitConflictError
from delta_variant.log.listing import commit_file_name
from delta_variant.log.load import load_snapshot

pytestmark = pytest.mark.usefixtures("small_files_are_shredded")

Operation = Callable[[Any], object]

FEATURES = {
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableInCommitTimestamps": "true",
}


def rows(*ids: int, n: int | None = None) -> pa.Table:
    texts = [f'{{"n": {number if n is None else n}}}' for number in ids]
    return pa.table({"id": list(ids), "event": pa.array(texts, pa.string())})


def append(*ids: int, n: int | None = None) -> Operation:
    data = rows(*ids, n=n)
    return lambda table: dv.write_table(table, data, mode="append", variant_columns=["event"])


def delete(where: str) -> Operation:
    return lambda table: dv.delete(table, where)


def update(where: str) -> Operation:
    return lambda table: dv.update(table, {"event:t": "id"}, where)


def merge(*keys: int) -> Operation:
    def operation(table: Path) -> None:
        clauses = dv.merge(table, pa.table({"key": list(keys)}), "event:n::bigint = key")
        clauses = clauses.when_matched_update({"event:k": "key"})
        clauses.when_not_matched_insert({"id": "key", "event:n": "key"}).execute()

    return operation


def overwrite(where: str | None, *ids: int) -> Operation:
    options: dict[str, Any] = {"mode": "overwrite", "variant_columns": ["event"]}
    return lambda table: dv.write_table(table, rows(*ids), where=where, **options)


def optimize(table: Path) -> None:
    dv.optimize(table)


def repair(table: Path) -> None:
    """Commit all files again, as a repair does."""
    adds = read_actions(table, "add")
    commit_directly(table, *({"add": {**add, "dataChange": False}} for add in adds))


FAR = 1 << 42
"""A time in the far future."""


def commit_directly(table: Path, *actions: dict[str, Any]) -> None:
    info = {"commitInfo": {"operation": "ANOTHER", "inCommitTimestamp": FAR}}
    text = "".join(json.dumps(action) + "\n" for action in (info, *actions))
    (table / commit_file_name(len(read_log(table)))).write_text(text, "utf-8")


def set_domain(table: Path) -> None:
    domain = {"domain": "app.example", "configuration": "{}", "removed": False}
    commit_directly(table, {"domainMetadata": domain})


def set_protocol(table: Path) -> None:
    (protocol,) = read_actions(table, "protocol")
    added = {name: [*protocol[name], "vacuumProtocolCheck"] for name in ("readerFeatures", "writerFeatures")}
    commit_directly(table, {"protocol": {**protocol, **added}})


def set_metadata(table: Path) -> None:
    extra = rows(50).append_column("more", pa.array([1]))
    dv.write_table(table, extra, mode="append", schema_mode="merge", variant_columns=["event"])


def lines(table: Path) -> list[dict[str, Any]]:
    """Return all actions of the log by name."""
    return [action for commit in read_log(table) for action in commit]


def new_table(path: Path, isolation: str) -> Path:
    """Return a table of two files, with ids from 0 to 2 and from 10 to 12."""
    configuration = {**FEATURES, "delta.isolationLevel": isolation}
    first = {"configuration": configuration, "variant_columns": ["event"]}
    dv.write_table(str(path), rows(0, 1, 2), **first)
    append(10, 11, 12)(path)
    return path


def run_second(table: Path, operation: Operation, first: Operation) -> str | None:
    """Run an operation, with another one directly before its commit, and return why it failed."""
    try:
        operation(commit_first(table, lambda: first(table)))
    except CommitConflictError as error:
        return str(error)
    return None


def assert_sound(table: Path) -> None:
    """Check findings, unknown files, the uniqueness of row ids and the order of commit times."""
    assert dv.audit_table(table, data=True).is_clean
    snapshot = load_snapshot(table)
    actions = lines(table)
    named = {body["path"] for each in actions for kind, body in each.items() if kind in ("add", "cdc")}
    assert list_files(table, "*.parquet") == named
    times = [each["commitInfo"]["inCommitTimestamp"] for each in actions if "commitInfo" in each]
    assert times
    assert times == sorted(set(times))
    numbered = snapshot.files.select(["base_row_id", "stats"]).to_pylist()
    spans = sorted((row["base_row_id"], json.loads(row["stats"])["numRecords"]) for row in numbered)
    assert all(start + count <= after for (start, count), (after, _) in pairwise(spans))
    mark = json.loads(snapshot.domain_metadata["delta.rowTracking"].configuration)["rowIdHighWaterMark"]
    assert max(start + count for start, count in spans) <= mark + 1


OPERATIONS: dict[str, Operation] = {
    "delete": delete("event:n::bigint = 1"),
    "update": update("event:n::bigint = 1"),
    "merge": merge(1, 30),
    "overwrite": overwrite("event:n::bigint = 1", 1),
    "overwrite all": overwrite(None, 7),
    "optimize": optimize,
    "append": append(40),
}
FIRST: dict[str, Operation] = {
    "append of a row that matches": append(100, n=1),
    "append of other rows": append(60, 61),
    "delete in a file that is read": delete("id = 0"),
    "delete in another file": delete("id = 10"),
    "update in another file": update("id = 11"),
    "merge of a row that matches": merge(30),
    "optimize": optimize,
    "repair": repair,
    "other domain": set_domain,
    "schema": set_metadata,
    "protocol": set_protocol,
}
READS_A_FILE = ("delete", "update", "merge", "overwrite")


def expected(operation: str, first: str, isolation: str) -> str | None:
    """Return the expected conflict of an operation, None if it is committed."""
    if first in ("schema", "protocol"):
        return "changed the metadata" if first == "schema" else "changed the protocol"
    if operation == "append":
        return None
    if first == "append of a row that matches" and operation != "optimize":
        return "added rows" if isolation == "Serializable" else None
    if first == "append of other rows" and operation == "overwrite all":
        return "added rows" if isolation == "Serializable" else None
    if first == "merge of a row that matches" and operation in ("merge", "overwrite all"):
        return "added rows"  # Not a blind append, because it also read the table.
    if first in ("delete in a file that is read", "optimize"):
        return "removed"
    if first in ("delete in another file", "update in another file"):
        return None if operation in READS_A_FILE else "removed"
    return None


@pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable"])
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_second_writer_succeeds_as_if_alone_or_fails(
    tmp_path: Path, operation: str, first: str, isolation: str
):
    table = new_table(tmp_path / "t", isolation)
    alone = Path(shutil.copytree(table, tmp_path / "alone"))
    reason = run_second(table, OPERATIONS[operation], FIRST[first])
    conflict = expected(operation, first, isolation)
    assert (reason is None) == (conflict is None), reason
    FIRST[first](alone)
    if reason is not None:
        assert conflict is not None
        assert f"concurrent version 2 {conflict}" in reason
    elif isolation == "Serializable" or not first.startswith("append"):
        OPERATIONS[operation](alone)
    else:
        # Only writes are serializable, so the result is as if the append had been second.
        shutil.rmtree(alone)
        new_table(alone, isolation)
        OPERATIONS[operation](alone)
        FIRST[first](alone)
    assert read_by_id(table) == read_by_id(alone)
    assert_sound(table)
    domains = set(load_snapshot(table).domain_metadata)
    assert domains == {"delta.rowTracking", *(["app.example"] if first == "other domain" else [])}


@pytest.mark.parametrize("application", ["ours", "another"])
def test_only_one_of_two_writes_of_an_application_is_committed(tmp_path: Path, application: str):
    table = new_table(tmp_path / "t", "Serializable")

    def write(txn: tuple[str, int], number: int, **options: Any) -> Operation:
        return lambda table: dv.write_table(
            table, rows(number), variant_columns=["event"], commit=dv.CommitOptions(txn=txn), **options
        )

    second = write(("ours", 1), 1, mode="overwrite", where="id = 1")
    first = write((application, 1), 70, mode="append")
    reason = run_second(table, second, first)
    if application == "ours":
        assert reason is not None
        assert "has a transaction of the same application 'ours'" in reason
    else:
        assert reason is None
    assert 70 in read_by_id(table)
    assert_sound(table)
