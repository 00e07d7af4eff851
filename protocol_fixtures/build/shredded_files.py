"""Write small Parquet files of one Variant column with exactly the given columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from case_folder import Case, new_case, write_parquet
from variant_bytes import metadata, value

from delta_variant_conformance.parquet_footer import annotate, rewrite_schema

BINARY = pa.binary()

Column = dict[str, Any]


def names(*dictionary: str) -> bytes:
    """Return metadata of these names, in this order."""
    return metadata(list(dictionary))


def v(kind: str, payload: Any, *dictionary: str) -> bytes:
    """Return the bytes of one value whose names are in the dictionary."""
    return value({kind: payload}, list(dictionary))


ONE = v("int8", 1)
TWO = v("int8", 2)
NULL = v("null", None)


def pair(typed: Any = None, residue: bytes | None = None) -> Column:
    """Return `value` and `typed_value` of a field or an element."""
    return {"value": residue, "typed_value": typed}


def row(typed: Any = None, residue: bytes | None = None, *, of: bytes | None = names()) -> Column:
    """Return a row of a Variant column; `of` is its metadata."""
    return {"metadata": of, "value": residue, "typed_value": typed}


def group(typed: pa.DataType | None = None, *members: pa.Field[Any], without_value: bool = False) -> Any:
    """Return the group of a field or an element: `value`, `typed_value`, and more."""
    fields = [] if without_value else [pa.field("value", BINARY)]
    fields += [] if typed is None else [pa.field("typed_value", typed)]
    return pa.struct([*fields, *members])


def object_of(**fields: pa.DataType | None) -> pa.DataType:
    """Return the type of an object's `typed_value`, from those of its fields; None means `value` alone."""
    return pa.struct([pa.field(name, group(each), nullable=False) for name, each in fields.items()])


def array_of(
    element: pa.DataType | None, *, optional: bool = False, without_value: bool = False
) -> pa.DataType:
    """Return the type of an array's `typed_value`, from that of its elements."""
    return pa.list_(pa.field("element", group(element, without_value=without_value), nullable=optional))


def variant(
    typed: pa.DataType | None = None,
    *more: pa.Field[Any],
    order: Sequence[str] = ("metadata", "value", "typed_value"),
    required: Sequence[str] = ("metadata",),
) -> pa.DataType:
    """Return the type of a Variant column with its members in the given `order`."""
    types = {"metadata": BINARY, "value": BINARY, "typed_value": typed}
    members = [
        pa.field(name, member, nullable=name not in required)
        for name in order
        if (member := types[name]) is not None
    ]
    return pa.struct([*members, *more])


@dataclass(frozen=True)
class FileCase:
    """A case about a file: its content and the expected answer.

    `rows` are those of the column, None is SQL NULL. `typed` are the expected rows; with an `error`, too,
    either will do.
    """

    rules: str
    about: str
    type: pa.DataType
    rows: Sequence[Column | None]
    typed: Sequence[dict[str, Any] | None] | None = None
    error: str | None = None
    verdict: str = "keeps"
    section: str = "VariantShredding.md, Value Shredding"
    options: dict[str, Any] = field(default_factory=dict)
    parquet: dict[str, Any] = field(default_factory=dict)
    annotated: bool = True
    version: int | None = 1
    required: bool = False
    arrow_large: bool = False
    key_values: dict[str, str] = field(default_factory=dict)
    change: Any = None
    """A function that changes the column's node of the schema."""


def write_case(kind: str, name: str, case: FileCase) -> None:
    """Write the folder of a case: `case.json` and `v.parquet`."""
    expect: Case = {}
    if case.typed is not None:
        expect["rows"] = list(case.typed)
    if case.error is not None:
        expect["error"] = case.error
    given = {"file": "v.parquet"}
    folder = new_case(
        kind,
        name,
        case.rules,
        case.verdict,
        case.section,
        case.about,
        given,
        expect,
        options=case.options,
    )
    _write(folder / "v.parquet", case)


def _write(path: Path, case: FileCase) -> None:
    column: Any = pa.array(list(case.rows), case.type)
    if case.arrow_large:
        column = column.cast(_large(case.type))
    ids = pa.array(range(1, len(column) + 1), pa.int32())
    fields = [pa.field("id", ids.type), pa.field("v", column.type, nullable=not case.required)]
    schema = pa.schema(fields, case.key_values or None)
    write_parquet(path, pa.table([ids, column], schema=schema), **case.parquet)
    if case.change is not None:
        rewrite_schema(path, lambda root: case.change(root.at("v")))
    if case.annotated:
        annotate(path, "v", version=case.version)


def _large(arrow_type: Any) -> Any:
    """Return the type with large binary and large text."""
    if pa.types.is_struct(arrow_type):
        return pa.struct([each.with_type(_large(each.type)) for each in arrow_type])
    return {BINARY: pa.large_binary(), pa.string(): pa.large_string()}.get(arrow_type, arrow_type)
