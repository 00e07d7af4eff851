"""A scan as a lazy frame of Polars, which pushes its projection, predicate and row limit into it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars.io.plugins import register_io_source

from ..variant.objects import variants_as_json
from .explanation import ReadReport
from .query import VIEW, is_text_path
from .scan_rows import ScanRows


def lazy_frame(rows: ScanRows, variants: Literal["json", "bytes"]) -> pl.LazyFrame:
    """Return rows as a lazy frame, with Variants in a form that Polars has."""
    plain = variants_as_json if variants == "json" else lambda table: table
    empty = plain(rows.schema.empty_table())
    # Polars has views of strings, and takes them without a copy.
    rows = rows.with_text_types({name: VIEW for name, each in rows.outputs.items() if is_text_path(each)})

    def frame(table: pa.Table) -> pl.DataFrame:
        found = pl.from_arrow(plain(table))
        assert isinstance(found, pl.DataFrame)
        return found

    def read(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        needed = (
            None if names is None else {*names, *(() if predicate is None else predicate.meta.root_names())}
        )
        # Polars limits rows before it filters them.
        found = rows if limit is None else rows.head(limit)
        pushed = found.push(needed, None if predicate is None else _weaker(predicate, empty.schema))
        for batch in pushed.batches(ReadReport()):
            part = frame(pa.Table.from_batches([batch]))
            if predicate is not None:
                part = part.filter(predicate)
            yield part if names is None or part.columns == names else part.select(names)

    schema = dict(frame(rows.schema.empty_table()).schema)
    return register_io_source(read, schema=schema, explain_name="delta_variant")


class _Recorder:
    """A dataset without rows that records the filter that Polars pushes into it."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.filter: pc.Expression | None = None

    def to_batches(self, *, filter: pc.Expression | None = None, **_: Any) -> Iterator[pa.RecordBatch]:  # noqa: A002
        self.filter = filter
        return iter(())


def _weaker(predicate: pl.Expr, schema: pa.Schema) -> pc.Expression | None:
    """Return a filter of pyarrow for the parts of a conjunction that Polars can convert, None for none."""
    known = [each for part in _conjuncts(predicate) if (each := _converted(part, schema)) is not None]
    return reduce(and_, known) if known else None


def _conjuncts(predicate: pl.Expr) -> Iterator[pl.Expr]:
    """Yield the operands of a conjunction at any depth."""
    parts = predicate.meta.pop()
    if len(parts) == 2 and any((one & other).meta.eq(predicate) for one, other in (parts, parts[::-1])):
        for part in parts:
            yield from _conjuncts(part)
    else:
        yield predicate


def _converted(predicate: pl.Expr, schema: pa.Schema) -> pc.Expression | None:
    """Return a predicate as the filter that Polars would push into a dataset, None if it would not."""
    recorder = _Recorder(schema)
    pl.scan_pyarrow_dataset(recorder).filter(predicate).collect()  # type: ignore[arg-type]
    return recorder.filter
