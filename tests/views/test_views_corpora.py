"""Footers over shredded files of other writers: pyarrow reads what a cast of the paths returns."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_variant.data_file import reader
from delta_variant.data_file.reader import NativeFile, Projection, open_file
from delta_variant.data_file.shredding import shredding_of
from delta_variant.errors import DeltaVariantError
from delta_variant.storage.store import open_store

FOLDERS = ("parquet-testing/shredded_variant", "duckdb-variant")


def leaves(arrow_type: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the paths of a type that have no objects."""
    if pa.types.is_null(arrow_type):
        return
    if not pa.types.is_struct(arrow_type):
        yield path, arrow_type
        return
    for field in arrow_type:
        yield from leaves(field.type, (*path, field.name))


def through_footer(file: NativeFile, data: bytes, column: str, path: tuple[str, ...], leaf: Any) -> Any:
    """Return the values that pyarrow reads, or why there is no footer for them."""
    nullable = file.schema.field(column).nullable
    arrow_type = leaf
    for name in reversed(path):
        arrow_type = pa.struct([(name, arrow_type)])
    view = file.view([(column, True, None, pa.field(column, arrow_type, nullable))], None)
    if isinstance(view, str):
        return view
    end, footer = view
    rows = pq.read_table(io.BytesIO(data[:end] + footer)).column(0).to_pylist()
    for name in ("typed_value", *path) if nullable else path:
        rows = [None if row is None else row[name] for row in rows]
    return rows


def as_column(file: NativeFile, path: Path, column: str, steps: tuple[str, ...], leaf: Any) -> Any:
    """Return the values of a path that pyarrow reads from a file of its own, or why there is none."""
    path.unlink(missing_ok=True)
    if reason := file.write_view([(column, True, steps, pa.field("flat", leaf))], path):
        return reason
    return pq.read_table(path)["flat"].to_pylist()


def test_values_of_other_writers(corpora: Path, tmp_path: Path) -> None:
    shown = dict.fromkeys(("footer", "column"), 0)
    for path in (path for folder in FOLDERS for path in sorted((corpora / folder).glob("*.parquet"))):
        try:
            file = open_file(open_store(path.parent), path.name)
            schemas = shredding_of(file)
        except DeltaVariantError:
            # The file is invalid, as the notes to it say.
            continue
        for (column, *parents), schema in schemas.items():
            for steps, leaf in () if parents else leaves(schema.field.type):
                found = {
                    "footer": through_footer(file, path.read_bytes(), column, steps, leaf),
                    "column": as_column(file, tmp_path / "flat.parquet", column, steps, leaf),
                }
                cast = Projection(pa.field("cast", leaf), (column,), "path", steps)
                for way, values in found.items():
                    if not isinstance(values, str):
                        batches = reader.read(file, path.name, [cast], on_conflict="typed")
                        wanted = [each.as_py() for batch in batches for each in batch.column(0)]
                        assert values == wanted, (path, steps, way)
                        shown[way] += 1
    assert min(shown.values()) >= 100, shown
