"""The rows of views, as DuckDB and pyarrow read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import delta_variant as dv
from delta_variant.views.files import View


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
            for name, (first, *steps) in view.places.items()
        }
        found += pa.table(arrays).to_pylist()
    return found


def sorted_rows(found: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    return sorted(repr([each[name] for name in columns]) for each in found)
