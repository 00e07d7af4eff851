"""A worker of the conformance kit: this library with one deliberate mistake.

`python tests/support/faulty_worker.py MISTAKE` speaks the protocol of protocol_fixtures/WORKERS.md.
"""

from __future__ import annotations

import sys
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from delta_variant.variant import values as variant_values
from delta_variant_conformance import shredded_columns
from delta_variant_conformance.decoding import NotAVariantError, decode
from delta_variant_conformance.engine import Cell, Engine, VariantBytes
from delta_variant_conformance.engines import ours
from delta_variant_conformance.json_text import as_float
from delta_variant_conformance.shredded_columns import TYPED_KEY, assemble, schema_of
from delta_variant_conformance.worker import serve

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "protocol_fixtures" / "build"))

from variant_bytes import encode

Typed = dict[str, Any]


def _int8_unsigned(kind: str, payload: Any) -> Typed:
    return {"int16": payload + 256} if kind == "int8" and payload < 0 else {kind: payload}


def _with_time_zone(kind: str, payload: Any) -> Typed:
    return {kind.replace("timestamp_ntz", "timestamp"): payload}


def _without_scale(kind: str, payload: Any) -> Typed:
    return {kind: payload.replace(".", "")} if kind.startswith("decimal") else {kind: payload}


def _next_day(kind: str, payload: Any) -> Typed:
    return {kind: payload + 1 if kind == "date" else payload}


def _little_endian_uuid(kind: str, payload: Any) -> Typed:
    return {kind: str(UUID(bytes=UUID(payload).bytes_le)) if kind == "uuid" else payload}


def _cut_string(kind: str, payload: Any) -> Typed:
    return {kind: payload.encode()[:63].decode("utf-8", "ignore") if kind == "string" else payload}


def _reversed_array(kind: str, payload: Any) -> Typed:
    return {kind: payload[::-1] if kind == "array" else payload}


def _rounded_double(kind: str, payload: Any) -> Typed:
    return {kind: as_float(payload) if kind == "double" and isinstance(payload, float) else payload}


def _without_false(kind: str, payload: Any) -> Typed:
    return {kind: True if kind == "boolean" else payload}


VALUES: Mapping[str, Callable[[str, Any], Typed]] = {
    "int8 unsigned": _int8_unsigned,
    "timestamp_ntz as timestamp": _with_time_zone,
    "scale ignored": _without_scale,
    "dates off by one": _next_day,
    "uuid little-endian": _little_endian_uuid,
    "strings of 63 bytes": _cut_string,
    "arrays reversed": _reversed_array,
    "doubles rounded": _rounded_double,
    "false as true": _without_false,
}
"""Mistakes in a value, wherever it is."""


def _changed(change: Callable[[str, Any], Typed], typed: Mapping[str, Any]) -> Typed:
    [(kind, payload)] = typed.items()
    if kind == "object":
        payload = {name: _changed(change, part) for name, part in payload.items()}
    elif kind == "array":
        payload = [_changed(change, part) for part in payload]
    return change(kind, payload)


def _without_rest(pair: Any) -> Any:
    """Drop `value` of an object that is partly shredded."""
    typed = pair["typed_value"]
    if isinstance(typed, dict) and TYPED_KEY not in typed:
        return {"value": None, "typed_value": {name: _without_rest(part) for name, part in typed.items()}}
    return pair


def _with_null_fields(pair: Any) -> Any:
    """Return a missing field of a shredded object as a Variant null."""
    typed = pair["typed_value"]
    if isinstance(typed, dict) and TYPED_KEY not in typed:
        fields = {name: _with_null_fields(part) for name, part in typed.items()}
        return {**pair, "typed_value": fields}
    return pair if pair["value"] is not None or typed is not None else {**pair, "value": {"null": None}}


SORTED, LARGE_OBJECT = 0b1_0000, 0b100_0010

COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "rest dropped": _without_rest,
    "missing as null": _with_null_fields,
}
"""Mistakes in assembling shredded columns."""


def _trusting(metadata: bytes, value: bytes) -> Typed:
    """Search the names of fields in a dictionary that is marked as sorted: some are not found."""
    typed = dict(decode(bytes([metadata[0] & ~SORTED, *metadata[1:]]), value))
    if not metadata[0] & SORTED or "object" not in typed:
        return typed
    ends = metadata[3 : 3 + metadata[1]]
    text = metadata[3 + metadata[1] :]
    names = [text[start:end].decode() for start, end in zip((0, *ends), ends, strict=False)]
    fields = typed["object"]
    return {"object": {name: fields[name] for name in fields if names[bisect(names, name) - 1] == name}}


def _with_small_count(metadata: bytes, value: bytes) -> Typed:
    """Read the count of fields of a large object as one byte."""
    is_large = value[:1] and value[0] & LARGE_OBJECT == LARGE_OBJECT and value[0] & 1 == 0
    return dict(decode(metadata, bytes([value[0] & ~0b100_0000, *value[1:]]) if is_large else value))


DECODERS: Mapping[str, Callable[[bytes, bytes], Typed]] = {
    "sorted flag trusted": _trusting,
    "large count of one byte": _with_small_count,
}
"""Mistakes in decoding bytes."""


def faulty(mistake: str, honest: Engine) -> Engine:
    """Return this library with a mistake when it reads files and decodes values."""
    change = VALUES.get(mistake, lambda kind, payload: {kind: payload})

    def cell(found: Cell) -> Cell:
        if not isinstance(found, VariantBytes):
            return found
        typed = decode(found.metadata, found.value)
        if mistake == "null as SQL NULL" and typed == {"null": None}:
            return None
        wrong = _changed(change, typed)
        return found if wrong == typed else VariantBytes(*encode(wrong))

    def read(file: Path, column: str, **options: Any) -> list[Cell]:
        assert honest.read is not None
        rows = [cell(each) for each in honest.read(file, column, **options)]
        return _assembled_rows(COLUMNS[mistake], file, column, rows) if mistake in COLUMNS else rows

    def decode_one(variant: VariantBytes, **options: Any) -> Typed:
        if mistake in DECODERS and (wrong := DECODERS[mistake](variant.metadata, variant.value)) != _valid(
            variant
        ):
            return wrong
        # This library rejects more than the decoder of the kit.
        variant_values.to_json([{"metadata": variant.metadata, "value": variant.value}], **options)
        return _changed(change, decode(variant.metadata, variant.value))

    return replace(honest, name=mistake, read=read, to_json=None, decode=decode_one)


def _valid(variant: VariantBytes) -> Typed | None:
    try:
        return dict(decode(variant.metadata, variant.value))
    except NotAVariantError:
        return None


def _assembled_rows(change: Callable[[Any], Any], file: Path, column: str, rows: list[Cell]) -> list[Cell]:
    """Return the rows of a file by its changed columns, and the given rows if no mistake applies to them."""
    try:
        schema, pairs = schema_of(file, column), shredded_columns.read(file, column)
        return [
            row if pair is None else _assembled(schema, change(_decoded(pair)), row)
            for row, pair in zip(rows, pairs, strict=True)
        ]
    except ValueError:
        return rows


def _decoded(pair: Any) -> Any:
    if isinstance(pair, VariantBytes):
        return decode(pair.metadata, pair.value)
    if isinstance(pair, dict) and TYPED_KEY not in pair:
        return {name: _decoded(part) for name, part in pair.items()}
    return [_decoded(part) for part in pair] if isinstance(pair, list) else pair


def _assembled(schema: Any, pair: Any, row: Cell) -> Cell:
    typed = assemble(schema, pair)
    return row if typed is None else VariantBytes(*encode(dict(typed)))


if __name__ == "__main__":
    serve(lambda scratch: faulty(sys.argv[1], ours.start(scratch)))
