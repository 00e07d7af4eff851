"""The log and the data files of a table in memory, read by json and pyarrow alone."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from concurrent_operations import Row
from support.memory_objects import MemoryObjects
from support.vectors import deleted_rows

import delta_variant as dv
from delta_variant.variant import values as variant_values

COMMIT = "_delta_log/{:020d}.json"


@dataclass(frozen=True)
class FileRow:
    """A row of a data file: its content, and its row id and commit version if the file stores them."""

    id: int
    day: str | None
    n: int
    row_id: int | None
    version: int | None


@dataclass
class TableLog:
    """The commits of a table, and the rows of its files, which never change."""

    objects: MemoryObjects
    commits: list[list[tuple[str, dict[str, Any]]]] = field(default_factory=list)
    _rows: dict[str, list[FileRow]] = field(default_factory=dict)

    @classmethod
    def read(cls, objects: MemoryObjects) -> TableLog:
        log = cls(objects)
        while (key := COMMIT.format(len(log.commits))) in objects.files:
            lines = objects.get(key).decode().splitlines()
            log.commits.append([pair for line in lines for pair in json.loads(line).items()])
        return log

    @property
    def version(self) -> int:
        return len(self.commits) - 1

    def replay(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """Yield files by path, other actions by kind and name, and tombstones by path, of each version."""
        live: dict[str, Any] = {}
        table: dict[str, Any] = {}
        removed: dict[str, Any] = {}
        for commit in self.commits:
            for kind, body in commit:
                if kind == "remove":
                    live.pop(body["path"], None)
                    removed[body["path"]] = body
                elif kind == "add":
                    removed.pop(body["path"], None)
                    live[body["path"]] = body
                elif kind in ("metaData", "protocol"):
                    table[kind] = body
                elif kind == "domainMetadata":
                    table[f"domain {body['domain']}"] = body
                elif kind == "txn":
                    table[f"txn {body['appId']}"] = body
            yield dict(live), dict(table), dict(removed)

    def rows(self, add: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[FileRow]:
        """Return the rows of a file at a version, without those that its deletion vector marks."""
        path = unquote(add["path"])
        if path not in self._rows:
            self._rows[path] = _read_rows(self.objects.get(path), metadata, add["partitionValues"])
        return [self._rows[path][position] for position in self.positions(add)]

    def positions(self, add: Mapping[str, Any]) -> list[int]:
        """Return the positions in a file of the rows that its deletion vector does not mark."""
        deleted = deleted_rows(add, self.objects.get)
        return [each for each in range(len(self._rows[unquote(add["path"])])) if each not in deleted]


def physical_names(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the names that columns have in the files, by their names."""
    return {
        each["name"]: each["metadata"].get("delta.columnMapping.physicalName", each["name"])
        for each in json.loads(metadata["schemaString"])["fields"]
    }


def _read_rows(content: bytes, metadata: Mapping[str, Any], partition: Mapping[str, Any]) -> list[FileRow]:
    names, settings = physical_names(metadata), metadata["configuration"]
    read = pq.ParquetFile(io.BytesIO(content)).read()
    event: Any = read[names["event"]].combine_chunks()
    stored = dv.unshred(event) if event.type.get_field_index("typed_value") >= 0 else event
    numbers = [json.loads(text)["n"] for text in variant_values.to_json(stored).to_pylist()]
    row_id = settings.get("delta.rowTracking.materializedRowIdColumnName", "")
    version = settings.get("delta.rowTracking.materializedRowCommitVersionColumnName", "")
    others = read.drop_columns([names["event"]]).to_pylist()
    return [
        FileRow(
            columns[names["id"]],
            partition.get(names["day"], columns.get(names["day"])),
            n,
            columns.get(row_id),
            columns.get(version),
        )
        for n, columns in zip(numbers, others, strict=True)
    ]


def read_ids(content: bytes) -> list[int]:
    """Return the ids of the rows of a file, whose name may be a physical one: the only column of integers."""
    read = pq.ParquetFile(io.BytesIO(content)).read()
    (column,) = (
        name for name, each in zip(read.schema.names, read.schema.types, strict=True) if each == pa.int64()
    )
    return list(read[column].to_pylist())


def content(row: FileRow) -> Row:
    """Return a row as the model has it."""
    return row.day or "", row.n
