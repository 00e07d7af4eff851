"""Run a case on an engine, and return its answer as JSON values that can be sent through a pipe."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from . import shredded_columns, stored_tables
from .case import Case
from .engine import Engine, NotOfferedError, Query, VariantBytes
from .parquet_footer import annotate
from .written_layout import file_violations, table_violations

VARIANT_KEY = "$variant"
"""The only key of an object that represents a Variant: a list of metadata and value in hex."""

UNREADABLE = "unreadable"
"""The only key of content that says why the kit cannot read what an engine wrote."""

STACK = re.compile(r"\s+at \S|Stack Trace:|JVM stacktrace:")

Outcome: TypeAlias = Literal["answered", "refused", "not offered", "crashed", "timed out"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Answer:
    """The answer of an engine, by kind of case, or the message and the classes of its error."""

    outcome: Outcome
    content: Any = None
    message: str = ""
    error_classes: tuple[str, ...] = ()


def invoke(engine: Engine, case: Case, scratch: Path) -> Answer:
    """Return the answer of an engine to a case; `scratch` is an empty folder for temporary files."""
    try:
        lacking = sorted(case.options.keys() - engine.options)
        if lacking:
            raise NotOfferedError(f"{engine.name} does not support the option {', '.join(lacking)}")
        return Answer("answered", INVOKERS[case.kind](engine, case, scratch))
    except NotOfferedError as error:
        return Answer("not offered", message=str(error))
    except Exception as error:  # any error of an engine is an answer
        classes = tuple(each.__name__ for each in type(error).__mro__)
        return Answer("refused", message=_without_stack(str(error)), error_classes=classes)


def _without_stack(message: str) -> str:
    """Return the message of an error, with only the root cause of a JVM's stack trace."""
    lines = message.splitlines()
    trace = next((number for number, line in enumerate(lines) if STACK.match(line)), len(lines))
    causes = [line for line in lines[trace:] if line.startswith("Caused by: ")]
    return "\n".join([*lines[:trace], *causes[-1:]])


def _require(function: Function | None, engine: Engine, what: str) -> Function:
    if function is None:
        raise NotOfferedError(f"{engine.name} cannot {what}")
    return function


def _decode(engine: Engine, case: Case, scratch: Path) -> Any:
    metadata, value = bytes.fromhex(case.input["metadata"]), bytes.fromhex(case.input["value"])
    if engine.to_json is None and engine.decode is not None:
        return {"rows": [engine.decode(VariantBytes(metadata, value), **case.options)]}
    to_json = _require(engine.to_json, engine, "print a Variant as JSON")
    file = scratch / "one.parquet"
    _write_one(metadata, value, file)
    return {"json": to_json(file, "v", **case.options)}


def _write_one(metadata: bytes, value: bytes, file: Path) -> None:
    """Write a file of one unshredded Variant, annotated as such."""
    members = [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
    rows = pa.array([{"metadata": metadata, "value": value}], pa.struct(members))
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": rows}), file)
    annotate(file, "v")


def _encode(engine: Engine, case: Case, scratch: Path) -> Any:
    parse_json = _require(engine.parse_json, engine, "parse JSON to a Variant")
    return {"rows": [_plain(parse_json(case.input["json"], **case.options))]}


def _shred(engine: Engine, case: Case, scratch: Path) -> Any:
    shred = _require(engine.shred, engine, "shred by a given schema")
    out = scratch / "shredded.parquet"
    shred(case.folder / case.input["file"], case.column, case.input["schema"], out, **case.options)
    return stored_columns(case, {"file": str(out)})


def _read(engine: Engine, case: Case, scratch: Path) -> Any:
    read = _require(engine.read, engine, "read a Variant column of a Parquet file")
    return {"rows": _plain(list(read(case.folder / case.input["file"], case.column, **case.options)))}


def _table(engine: Engine, case: Case, scratch: Path) -> Any:
    read_table = _require(engine.read_table, engine, "read a Delta table")
    rows = [dict(row) for row in _call_on_table(read_table, case)]
    return {"rows": _plain(_by_id(rows))}


def _changes(engine: Engine, case: Case, scratch: Path) -> Any:
    read_changes = _require(engine.read_changes, engine, "read the changes of a Delta table")
    table, versions = case.folder / case.input["table"], case.input["versions"]
    rows = [dict(row) for row in read_changes(table, *versions, **case.options)]
    for row in rows:
        row.pop("_commit_timestamp", None)
    rows.sort(key=lambda row: (row["_commit_version"], row["id"], row["_change_type"]))
    return {"rows": _plain(rows)}


def _by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if all("id" in row for row in rows):
        rows.sort(key=lambda row: (row["id"] is None, row["id"]))
    return rows


def _select(engine: Engine, case: Case, scratch: Path) -> Any:
    select = _require(engine.select, engine, "select rows by a path of a Variant")
    where = tuple(case.input.get("where", ()))
    query = Query(case.column, tuple(case.input["path"]), case.input["type"], where)
    rows = select(case.folder / case.input["table"], query, **case.options)
    return {"rows": _plain(_by_id([dict(row) for row in rows]))}


def stored_columns(case: Case, content: Any) -> Any:
    """Return the columns of a file or a table that an engine wrote, and violations, instead of its path.

    The kit reads them itself, so that the reader of an engine cannot hide a loss. If it cannot, the content
    says why under `UNREADABLE`. Other content is returned.
    """
    try:
        return _stored_columns(case, content)
    except Exception as error:  # any error of a file that the engine wrote
        return {UNREADABLE: f"cannot read what the engine wrote: {error}"}


def _stored_columns(case: Case, content: Any) -> Any:
    if case.kind == "shred" and content is not None and "file" in content:
        file = Path(content["file"])
        columns = _plain(shredded_columns.read(file, case.column))
        return {"columns": columns, "violations": file_violations(file, case.column)}
    if case.kind == "rewrite" and content is not None and "table" in content:
        table = Path(content["table"])
        before = case.folder / case.input["table"]
        return {
            "files": _plain(stored_tables.read_stored(table, case.column)),
            "changes": _plain(stored_tables.read_changes(table, before, case.column)),
            "violations": table_violations(table, before, case.column),
        }
    return content


def _rewrite(engine: Engine, case: Case, scratch: Path) -> Any:
    rewrite = _require(engine.rewrite, engine, "rewrite the files of a Delta table")
    table = scratch / "table"
    shutil.copytree(case.folder / case.input["table"], table)
    rewrite(table, case.input.get("delete"), **case.options)
    return stored_columns(case, {"table": str(table)})


def _call_on_table(function: Callable[..., Any], case: Case) -> Any:
    return function(case.folder / case.input["table"], case.input.get("version"), **case.options)


def _stats(engine: Engine, case: Case, scratch: Path) -> Any:
    if "z85" in case.input:
        decode = _require(engine.decode_stats, engine, "decode the z85 text of statistics")
        return {"rows": [_plain(decode(case.input["z85"], **case.options))]}
    if "encode" in case.input:
        encode = _require(engine.encode_stats, engine, "encode a Variant for statistics")
        given = case.input["encode"]
        variant = VariantBytes(bytes.fromhex(given["metadata"]), bytes.fromhex(given["value"]))
        return {"z85": encode(variant, **case.options)}
    collect = _require(engine.collect_stats, engine, "compute the statistics of a Parquet file")
    return _plain(dict(collect(case.folder / case.input["file"], case.column, **case.options)))


def _log(engine: Engine, case: Case, scratch: Path) -> Any:
    load = _require(engine.load_log, engine, "load the log of a Delta table")
    return _plain(dict(_call_on_table(load, case)))


INVOKERS: Mapping[str, Callable[[Engine, Case, Path], Any]] = {
    "decode": _decode,
    "encode": _encode,
    "shred": _shred,
    "unshred": _read,
    "file": _read,
    "table": _table,
    "changes": _changes,
    "select": _select,
    "rewrite": _rewrite,
    "stats": _stats,
    "log": _log,
}


def _plain(cell: Any) -> Any:
    """Return a cell as a JSON value, in the format of the README of the cases."""
    if isinstance(cell, VariantBytes):
        return {VARIANT_KEY: [cell.metadata.hex(), cell.value.hex()]}
    if isinstance(cell, Mapping):
        return {str(name): _plain(part) for name, part in cell.items()}
    if isinstance(cell, list | tuple):
        return [_plain(part) for part in cell]
    if isinstance(cell, bytes | bytearray):
        return bytes(cell).hex()
    if isinstance(cell, datetime):
        return cell.isoformat() if cell.tzinfo is None else _utc_text(cell)
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, float) and not math.isfinite(cell):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(cell)]
    return str(cell) if isinstance(cell, Decimal | UUID) else cell


def _utc_text(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"
