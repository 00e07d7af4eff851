"""Hypothesis strategies for Variants, JSON and shredding schemas, with an encoder and a decoder of their own.

The encoder follows VariantEncoding.md independently of the code under test. It also produces unusual but
valid bytes: wide offsets, unsorted and unused names, long headers of short strings and values in any order.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

NAMES = ("a", "b", "c", "", "\u00e9", "A", "value", "typed_value", "metadata", "list", "element", "a.b")

INTEGERS = {3: 1, 4: 2, 5: 4, 6: 8}
DECIMALS = {8: (4, 9), 9: (8, 18), 10: (16, 38)}
MICROS = (1 << 62) // 1000


@dataclass(frozen=True)
class Primitive:
    """A primitive of the type table of VariantEncoding.md: its id, and its data as bytes."""

    type_id: int
    data: bytes


@dataclass(frozen=True)
class Text:
    """A string, with the short header if `short` and if it fits."""

    text: str
    short: bool


@dataclass(frozen=True)
class Items:
    """An array, with offsets of `width` bytes more than they need."""

    items: tuple[Any, ...]
    width: int


@dataclass(frozen=True)
class Fields:
    """An object with its values stored in the order of `fields`."""

    fields: tuple[tuple[str, Any], ...]
    width: int


def _integer(type_id: int) -> st.SearchStrategy[Primitive]:
    size = INTEGERS[type_id]
    limit = 1 << (8 * size - 1)
    small = st.integers(max(-limit, -300), min(limit - 1, 300))
    numbers = st.one_of(small, st.integers(-limit, limit - 1))
    return numbers.map(lambda number: Primitive(type_id, number.to_bytes(size, "little", signed=True)))


def _decimal(type_id: int) -> st.SearchStrategy[Primitive]:
    size, digits = DECIMALS[type_id]
    unscaled = st.one_of(st.integers(-2000, 2000), st.integers(-(10**digits) + 1, 10**digits - 1))
    scales = st.one_of(st.integers(0, 3), st.integers(0, 38))
    return st.builds(
        lambda scale, number: Primitive(
            type_id, bytes([scale]) + number.to_bytes(size, "little", signed=True)
        ),
        scales,
        unscaled,
    )


def _fixed(type_id: int, layout: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Primitive]:
    return values.map(lambda value: Primitive(type_id, struct.pack(layout, value)))


def texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=70)


def primitives() -> st.SearchStrategy[Any]:
    """Return every primitive type of the table, strings included."""
    return st.one_of(
        st.sampled_from([Primitive(0, b""), Primitive(1, b""), Primitive(2, b"")]),
        *map(_integer, INTEGERS),
        *map(_decimal, DECIMALS),
        _fixed(7, "<d", st.floats()),
        _fixed(14, "<f", st.floats(width=32)),
        _fixed(11, "<i", st.integers(-(2**31), 2**31 - 1)),
        *(_fixed(type_id, "<q", st.integers(-MICROS, MICROS)) for type_id in (12, 13)),
        _fixed(17, "<q", st.integers(0, 86_400_000_000 - 1)),
        *(_fixed(type_id, "<q", st.integers(-(2**63), 2**63 - 1)) for type_id in (18, 19)),
        st.binary(max_size=20).map(lambda data: Primitive(15, struct.pack("<I", len(data)) + data)),
        st.binary(min_size=16, max_size=16).map(lambda data: Primitive(20, data)),
        st.builds(Text, texts(), st.booleans()),
    )


def _containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    widths = st.integers(0, 3)
    names = st.sampled_from(NAMES)
    pairs = st.lists(st.tuples(names, children), max_size=5, unique_by=lambda pair: pair[0])
    return st.one_of(
        st.builds(Items, st.lists(children, max_size=4).map(tuple), widths),
        st.builds(Fields, pairs.map(tuple), widths),
    )


def values() -> st.SearchStrategy[Any]:
    """Return Variant values of every type, nested."""
    return st.recursive(primitives(), _containers, max_leaves=12)


@dataclass(frozen=True)
class Encoded:
    """A Variant as bytes, and its value."""

    metadata: bytes
    value: bytes
    meaning: Any


@st.composite
def variants(draw: st.DrawFn) -> Encoded:
    """Return Variants in bytes, whose metadata may be unsorted and may have names that no object uses."""
    value = draw(values())
    names = draw(
        st.permutations(sorted({*names_of(value), *draw(st.sets(st.sampled_from(NAMES), max_size=2))}))
    )
    metadata = encode_metadata(names, draw(st.integers(0, 3)))
    data = encode(value, {name: number for number, name in enumerate(names)})
    return Encoded(metadata, data, meaning(metadata, data))


def variant_array(rows: list[Encoded | None]) -> pa.StructArray:
    """Return rows as Arrow, None as SQL NULL."""
    pairs = [None if row is None else {"metadata": row.metadata, "value": row.value} for row in rows]
    return pa.array(pairs, pa.struct([("metadata", pa.binary()), ("value", pa.binary())]))


def meanings(array: pa.StructArray) -> list[Any]:
    """Return the values of an array of Variants, None for SQL NULL."""
    return [None if row is None else meaning(row["metadata"], row["value"]) for row in array.to_pylist()]


LEAF_TYPES = (
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.float32(), pa.float64()),
    *(pa.decimal128(*size) for size in ((1, 0), (5, 2), (9, 9), (18, 3), (38, 0), (38, 10), (38, 38))),
    *(pa.string(), pa.binary(), pa.date32(), pa.time64("us")),
    *(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")),
    pa.null(),
)


def shredding_schemas() -> st.SearchStrategy[pa.DataType]:
    """Return shredding schemas in their Arrow form, of every leaf type, nested."""

    def nested(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        fields = st.dictionaries(st.sampled_from(NAMES), children, min_size=1, max_size=4)
        return st.one_of(
            children.map(pa.list_),
            fields.map(lambda each: pa.struct([pa.field(name, type_) for name, type_ in each.items()])),
        )

    return st.recursive(st.sampled_from(LEAF_TYPES), nested, max_leaves=8)


def json_values() -> st.SearchStrategy[Any]:
    """Return results of `json.loads` with `parse_float=Decimal` whose numbers a Variant can hold."""
    numbers = st.one_of(
        st.integers(-(10**38) + 1, 10**38 - 1),
        st.decimals(-(10**9), 10**9, allow_nan=False, places=6),
    )
    leaves = st.one_of(st.none(), st.booleans(), numbers, texts())
    return st.recursive(
        leaves,
        lambda children: st.one_of(
            st.lists(children, max_size=4),
            st.dictionaries(st.one_of(st.sampled_from(NAMES), texts()), children, max_size=4),
        ),
        max_leaves=12,
    )


def names_of(value: Any) -> set[str]:
    if isinstance(value, Items):
        return set().union(*map(names_of, value.items))
    if isinstance(value, Fields):
        return {name for name, _ in value.fields}.union(*(names_of(part) for _, part in value.fields))
    return set()


def _width(number: int, more: int) -> int:
    return min(4, max(1, (number.bit_length() + 7) // 8) + more)


def encode_metadata(names: list[str], more: int) -> bytes:
    """Return metadata with `names` in this order and without the sorted flag."""
    texts_ = [name.encode() for name in names]
    offsets = [0]
    for text in texts_:
        offsets.append(offsets[-1] + len(text))
    width = _width(max(offsets[-1], len(names)), more)
    numbers = b"".join(number.to_bytes(width, "little") for number in (len(names), *offsets))
    return bytes([1 | (width - 1) << 6]) + numbers + b"".join(texts_)


def encode(value: Any, ids: dict[str, int]) -> bytes:
    if isinstance(value, Primitive):
        return bytes([value.type_id << 2]) + value.data
    if isinstance(value, Text):
        data = value.text.encode()
        if value.short and len(data) < 64:
            return bytes([len(data) << 2 | 1]) + data
        return bytes([16 << 2]) + struct.pack("<I", len(data)) + data
    if isinstance(value, Items):
        return _encode_items(value, ids)
    return _encode_fields(value, ids)


def _encode_items(value: Items, ids: dict[str, int]) -> bytes:
    parts = [encode(item, ids) for item in value.items]
    offsets = [sum(map(len, parts[:count])) for count in range(len(parts) + 1)]
    width = _width(offsets[-1], value.width)
    header = bytes([(width - 1) << 2 | 3, len(parts)])
    return header + b"".join(offset.to_bytes(width, "little") for offset in offsets) + b"".join(parts)


def _encode_fields(value: Fields, ids: dict[str, int]) -> bytes:
    parts, starts, position = [], {}, 0
    for name, part in value.fields:
        starts[name] = position
        parts.append(encode(part, ids))
        position += len(parts[-1])
    names = sorted(starts, key=str.encode)
    width, id_width = _width(position, value.width), _width(len(ids), value.width)
    header = bytes([((id_width - 1) << 2 | (width - 1)) << 2 | 2, len(parts)])
    numbers = b"".join(ids[name].to_bytes(id_width, "little") for name in names)
    offsets = b"".join(offset.to_bytes(width, "little") for offset in [*map(starts.get, names), position])
    return header + numbers + offsets + b"".join(parts)


def meaning(metadata: bytes, value: bytes) -> Any:
    """Return a Variant as Python objects that are equal if the Variants are (VariantEncoding.md).

    Numbers of the exact class are Decimals; every other class carries its name, floats their bits.
    """
    return _decode(_names(metadata), value)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _names(metadata: bytes) -> list[str]:
    assert metadata[0] & 0x0F == 1
    width = (metadata[0] >> 6) + 1
    numbers = [_number(metadata[at : at + width]) for at in range(1, len(metadata) - width + 1, width)]
    count = numbers[0]
    offsets, start = numbers[1 : count + 2], 1 + width * (count + 2)
    return [metadata[start + low : start + high].decode() for low, high in pairwise(offsets)]


def _decode(names: list[str], value: bytes) -> Any:
    header = value[0] >> 2
    match value[0] & 3:
        case 0:
            return _decode_primitive(header, value[1:])
        case 1:
            return ("string", value[1 : 1 + header].decode())
        case 2:
            return _decode_object(names, header, value)
        case _:
            return _decode_array(names, header, value)


def _decode_object(names: list[str], header: int, value: bytes) -> dict[str, Any]:
    width, id_width, size = (header & 3) + 1, (header >> 2 & 3) + 1, 4 if header >> 4 & 1 else 1
    count = _number(value[1 : 1 + size])
    ids, offsets = 1 + size, 1 + size + count * id_width
    start = offsets + (count + 1) * width
    found = {}
    for index in range(count):
        name = names[_number(value[ids + index * id_width :][:id_width])]
        found[name] = _decode(names, value[start + _number(value[offsets + index * width :][:width]) :])
    assert len(found) == count
    assert list(found) == sorted(found, key=str.encode)
    return found


def _decode_array(names: list[str], header: int, value: bytes) -> list[Any]:
    width, size = (header & 3) + 1, 4 if header >> 2 & 1 else 1
    count = _number(value[1 : 1 + size])
    start = 1 + size + (count + 1) * width
    offsets = [_number(value[1 + size + index * width :][:width]) for index in range(count)]
    return [_decode(names, value[start + offset :]) for offset in offsets]


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _decode_primitive(type_id: int, data: bytes) -> Any:
    if type_id in INTEGERS:
        return Decimal(_signed(data[: INTEGERS[type_id]]))
    if type_id in DECIMALS:
        return Decimal(f"{_signed(data[1 : 1 + DECIMALS[type_id][0]])}e-{data[0]}")
    if type_id in (15, 16):
        content = data[4 : 4 + _number(data[:4])]
        return ("binary", content) if type_id == 15 else ("string", content.decode())
    times = {
        12: ("timestamp", 1000),
        13: ("timestamp_ntz", 1000),
        18: ("timestamp", 1),
        19: ("timestamp_ntz", 1),
    }
    if type_id in times:
        name, factor = times[type_id]
        return (name, _signed(data[:8]) * factor)
    sizes = {0: 0, 1: 0, 2: 0, 7: 8, 11: 4, 14: 4, 17: 8, 20: 16}
    kinds = {0: "null", 1: "true", 2: "false", 7: "double", 11: "date", 14: "float", 17: "time", 20: "uuid"}
    return (kinds[type_id], data[: sizes[type_id]])


@dataclass(frozen=True)
class Rows:
    """An Arrow array, and its rows as Python values."""

    array: Any
    values: list[Any]


LEAVES = (pa.int8(), pa.int64(), pa.string(), pa.large_string(), pa.string_view())


@st.composite
def _leaf_rows(draw: st.DrawFn, count: int) -> Rows:
    arrow_type = draw(st.sampled_from(LEAVES))
    # A view stores text of more than 12 bytes in a separate buffer.
    one = st.integers(-128, 127) if pa.types.is_integer(arrow_type) else st.text("ab", max_size=14)
    values = draw(st.lists(st.none() | one, min_size=count, max_size=count))
    return Rows(pa.array(values, arrow_type), values)


def _masked(draw: st.DrawFn, values: list[Any]) -> tuple[Any, list[Any]]:
    """Return a mask and rows, some of which it hides."""
    hidden = draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    shown = [None if hides else value for hides, value in zip(hidden, values, strict=True)]
    return pa.array(hidden, pa.bool_()), shown


def _list_rows(draw: st.DrawFn, depth: int, count: int, kind: str) -> Rows:
    ends = [draw(st.integers(0, 1))]
    for length in draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)):
        ends.append(ends[-1] + length)
    child = draw(arrow_rows(depth - 1, ends[-1] + 1))
    mask, values = _masked(draw, [child.values[start:end] for start, end in pairwise(ends)])
    if kind == "list":
        return Rows(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), child.array, mask=mask), values)
    return Rows(pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), child.array, mask=mask), values)


def _view_rows(draw: st.DrawFn, depth: int, count: int, kind: str) -> Rows:
    """Return lists in any order, which may overlap."""
    length = draw(st.integers(0, 4))
    child = draw(arrow_rows(depth - 1, length))
    starts = draw(st.lists(st.integers(0, length), min_size=count, max_size=count))
    sizes = [draw(st.integers(0, length - start)) for start in starts]
    views = [child.values[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    mask, values = _masked(draw, views)
    is_large = kind == "large_list_view"
    offset_type: Any = pa.int64() if is_large else pa.int32()
    array_class: Any = pa.LargeListViewArray if is_large else pa.ListViewArray
    offsets, lengths = pa.array(starts, offset_type), pa.array(sizes, offset_type)
    return Rows(array_class.from_arrays(offsets, lengths, child.array, mask=mask), values)


def _fixed_rows(draw: st.DrawFn, depth: int, count: int, kind: str) -> Rows:
    size = draw(st.integers(1, 2))
    child = draw(arrow_rows(depth - 1, count * size))
    mask, values = _masked(draw, [child.values[row * size : (row + 1) * size] for row in range(count)])
    arrow_type: Any = pa.list_(child.array.type, size)
    return Rows(pa.FixedSizeListArray.from_arrays(child.array, type=arrow_type, mask=mask), values)


def _struct_rows(draw: st.DrawFn, depth: int, count: int, kind: str) -> Rows:
    x, y = (draw(arrow_rows(depth - 1, count)) for _ in range(2))
    rows = [{"x": one, "y": other} for one, other in zip(x.values, y.values, strict=True)]
    mask, values = _masked(draw, rows)
    return Rows(pa.StructArray.from_arrays([x.array, y.array], ["x", "y"], mask=mask), values)


def _map_rows(draw: st.DrawFn, depth: int, count: int, kind: str) -> Rows:
    ends = [0]
    for length in draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)):
        ends.append(ends[-1] + length)
    child = draw(arrow_rows(depth - 1, ends[-1]))
    pairs = list(enumerate(child.values))
    mask, values = _masked(draw, [pairs[start:end] for start, end in pairwise(ends)])
    keys = pa.array(range(ends[-1]), pa.int64())
    from_arrays: Any = pa.MapArray.from_arrays
    return Rows(from_arrays(pa.array(ends, pa.int32()), keys, child.array, mask=mask), values)


def _dictionary_rows(draw: st.DrawFn, depth: int, count: int, kind: str) -> Rows:
    child = draw(_leaf_rows(3))
    places = draw(st.lists(st.none() | st.integers(0, 2), min_size=count, max_size=count))
    array = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), child.array)
    return Rows(array, [None if place is None else child.values[place] for place in places])


def _run_rows(draw: st.DrawFn, depth: int, count: int, kind: str) -> Rows:
    runs = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    child = draw(_leaf_rows(count))
    ends = pa.array([sum(runs[: number + 1]) for number in range(count)], pa.int32())
    values = [value for value, run in zip(child.values, runs, strict=True) for _ in range(run)]
    return Rows(pa.RunEndEncodedArray.from_arrays(ends, child.array).slice(0, count), values[:count])


NESTED = {
    "list": _list_rows,
    "large_list": _list_rows,
    "list_view": _view_rows,
    "large_list_view": _view_rows,
    "fixed_size_list": _fixed_rows,
    "struct": _struct_rows,
    "map": _map_rows,
    "dictionary": _dictionary_rows,
    "run_end_encoded": _run_rows,
}


@st.composite
def arrow_rows(draw: st.DrawFn, depth: int, count: int) -> Rows:
    """Return arrays of every layout, nested up to a depth; many are slices."""
    kind = draw(st.sampled_from(["leaf", *NESTED])) if depth else "leaf"
    # Arrow cannot concatenate empty slices that were imported through its C interface.
    before = draw(st.integers(0, 2)) if count else 0
    if kind == "leaf":
        rows = draw(_leaf_rows(before + count))
    else:
        rows = NESTED[kind](draw, depth, before + count, kind)
    return Rows(rows.array.slice(before), rows.values[before:])
