"""Print a version of a table as text or JSON: schema, properties, features, protocol and size."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .._text import count, size_text
from ..log.snapshot import Snapshot
from ..protocol.types import sql_type
from ..write.copy_on_write import count_rows
from .tables import Heading, Layout, print_table
from .terminal import console, print_json, print_lines

__all__ = ["print_description", "print_description_json"]

COLUMNS: tuple[Heading, ...] = (
    ("column", "key"),
    ("type", "left"),
    ("nullable", "left"),
    ("comment", "left"),
)
PROPERTIES: tuple[Heading, ...] = (("property", "key"), ("value", "left"))


def print_description(snapshot: Snapshot, layout: Layout) -> None:
    """Print the facts of a table line by line, then its columns and its properties as tables."""
    out = console()
    print_lines(out, *_facts(snapshot), "")
    print_table(out, COLUMNS, _columns(snapshot), layout)
    if snapshot.properties:
        print_lines(out, "")
        print_table(out, PROPERTIES, sorted(snapshot.properties.items()), layout)


def _facts(snapshot: Snapshot) -> Iterator[str]:
    rows = count(count_rows(snapshot, snapshot.files), "row")
    files = count(snapshot.num_files, "file")
    yield f"{snapshot.uri}: version {snapshot.version}, {rows}, {size_text(snapshot.num_bytes)} in {files}"
    metadata, protocol = snapshot.metadata, snapshot.protocol
    for name, text in (("name", metadata.name), ("description", metadata.description)):
        if text:
            yield f"{name}: {text}"
    if snapshot.partition_columns:
        yield f"partitioned by: {', '.join(snapshot.partition_columns)}"
    yield f"protocol: reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"
    if features := _features(snapshot):
        yield f"features: {', '.join(features)}"


def _features(snapshot: Snapshot) -> list[str]:
    protocol = snapshot.protocol
    return sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})


def _columns(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    for field in snapshot.schema.fields:
        comment = (field.metadata or {}).get("comment", "")
        yield field.name, sql_type(field.type), "" if field.nullable else "not null", str(comment)


def print_description_json(snapshot: Snapshot) -> None:
    """Print the same as one JSON object."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    print_json(
        {
            "table": snapshot.uri,
            "version": snapshot.version,
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "rows": count_rows(snapshot, snapshot.files),
            "files": snapshot.num_files,
            "bytes": snapshot.num_bytes,
            "partition_columns": snapshot.partition_columns,
            "protocol": {
                "min_reader_version": protocol.min_reader_version,
                "min_writer_version": protocol.min_writer_version,
            },
            "features": _features(snapshot),
            "columns": [
                {"name": field.name, "type": sql_type(field.type), "nullable": field.nullable}
                for field in snapshot.schema.fields
            ],
            "properties": dict(snapshot.properties),
            "schema": msgspec.Raw(metadata.schema_string.encode()),
        }
    )
