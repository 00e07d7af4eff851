"""A server of views, and their rows, as DuckDB and pyarrow read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import delta_variant as dv
from delta_variant.views.files import View
from delta_variant.views.server import ViewServer


def by_duckdb(path: Path, schema: pa.Schema, **options: Any) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        dv.to_duckdb(connection, "view", path, **options)
        found: Any = connection.sql("select * from view").to_arrow_table().cast(schema)
        return found.to_pylist()  # type: ignore[no-any-return]


def by_pyarrow(view: View) -> list[dict[str, Any]]:
    """Return the columns that the files of a view have, by name."""
    found: list[dict[str, Any]] = []
    for file in view.files:
        with file.open() as source:
            table = pq.read_table(source)
        arrays = {
            name: pc.struct_field(table[first], list(steps)) if steps else table[first]
            for name, (first, *steps) in view.shape.places.items()
        }
        found += pa.table(arrays).to_pylist()
    return found


def sorted_rows(found: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    return sorted(repr([each[name] for name in columns]) for each in found)


@contextmanager
def serve(table: Path) -> Iterator[ViewServer]:
    """Serve a table in another thread."""
    with ViewServer(View.of(table)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
