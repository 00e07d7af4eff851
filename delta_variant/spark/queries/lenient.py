"""Queries of tasks that leave it to Spark to fail for a value that cannot be cast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CastError
from ...expressions.evaluate import evaluate, without_cast
from ...expressions.tree import Expression, Literal, input_name, is_strict_cast
from ...protocol.schema.arrow import variant_field
from ...read import query as reads
from ...variant import values as variants

VARIANTS: Any = pa.list_(variant_field("element"))


class LenientQuery(reads.Query, frozen=True):
    """A query whose batches have all rows, and the Variants that cannot be cast, if a cast fails.

    The output `failed` has an array of Variants for a row with a failed cast, one for each strict cast among
    the outputs, else NULL.
    """

    failed: str | None = None

    @classmethod
    def of_outputs(
        cls, outputs: Mapping[str, Expression], predicate: Expression | None, failed: str | None
    ) -> LenientQuery:
        """Return the query for bound expressions; the output `failed` is added."""
        added = {} if failed is None else {failed: Literal(pa.scalar(None, VARIANTS))}
        query = cls({}, predicate, (), failed=failed)._with({**outputs, **added}, None)
        assert isinstance(query, LenientQuery)
        return query

    def result(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the outputs for the rows that match the predicate, or for all rows if a cast fails."""
        try:
            return super().result(batch)
        except CastError:
            return self._all_rows(batch)

    def _all_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays: dict[str, Any] = {}
        failed = []
        for name, each in self.outputs.items():
            if not is_strict_cast(each):
                arrays[name] = evaluate(each, batch)
                continue
            arrays[name], rest = _cast_or_keep(each, batch)
            failed.append(rest)
        if self.failed is not None:
            arrays[self.failed] = _arrays_of_failed(failed, batch.num_rows)
        schema = self.schema
        return pa.record_batch([arrays[name].cast(schema.field(name).type) for name in arrays], schema=schema)


def _cast_or_keep(each: Any, batch: pa.RecordBatch) -> tuple[Any, Any]:
    """Return the values of a strict cast, NULL where it fails, and the Variants where it does."""
    if input_name(each) in batch.schema.names:
        return batch.column(input_name(each)), pa.nulls(batch.num_rows, VARIANTS.value_type)
    raw: Any = batch.column(input_name(without_cast(each)))
    found = variants.extract(raw, (), each.type, strict=False, timezone=each.timezone)
    parts = [raw.field(name).cast(pa.binary()) for name in ("metadata", "value")]
    is_failed = pc.and_(found.is_null(), raw.is_valid())
    kept = pa.StructArray.from_arrays(
        [pc.if_else(is_failed, part, b"") for part in parts],
        fields=list(VARIANTS.value_type),
        mask=pc.invert(is_failed),
    )
    return found, kept


def _arrays_of_failed(failed: Sequence[Any], rows: int) -> Any:
    """Return for each row the array of its Variants, NULL for a row without any."""
    has_any = pa.repeat(pa.scalar(False), rows)
    for each in failed:
        has_any = pc.or_(has_any, each.is_valid())
    flags = [bool(each) for each in has_any.to_pylist()]
    numbers = [number * rows + row for row, flag in enumerate(flags) if flag for number in range(len(failed))]
    offsets = [0]
    for flag in flags:
        offsets.append(offsets[-1] + flag * len(failed))
    values = pa.concat_arrays(failed).take(pa.array(numbers, pa.int64()))
    from_arrays: Any = pa.ListArray.from_arrays
    return from_arrays(pa.array(offsets, pa.int32()), values, type=VARIANTS, mask=pc.invert(has_any))
