"""The type that all files of a read store a Variant column with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ..data_file.layout import check_layout
from ..errors import ShreddingError, error_location
from ..log.snapshot import TableVersion
from ..variant.paths import normalize
from ..variant.values import VARIANT_TYPE
from .file_reader import TableReader, files_of

__all__ = ["shared_types"]


def shared_types(table: TableVersion, files: pa.Table, names: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the type of each Variant column, with `metadata` as binary; files without the column agree.

    Raises ShreddingError, with the path at which files differ.
    """
    types: dict[str, pa.DataType] = {}
    for file in TableReader.of(table).open_all(files_of(files)) if names else ():
        with error_location(file=file.file.path):
            check_layout(file.native)
            for name in names:
                stored = file.stored_type(name)
                if stored is not None and types.setdefault(name, stored) != stored:
                    raise _difference(name, types[name], stored)
    return {name: _with_plain_metadata(types.get(name, VARIANT_TYPE)) for name in names}


def _difference(name: str, one: pa.DataType, other: pa.DataType) -> ShreddingError:
    path = next(_differences(one, other, ()), ())
    return ShreddingError(
        f"cannot return the column {name!r} shredded because its files differ at {normalize(path)}: pass "
        "variants='bytes', or shred all files alike with optimize(reshred=True)",
        column=name,
        path=normalize(path),
    )


def _differences(one: Any, other: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the values that two types of a Variant store differently, outermost last."""
    fields, others = _shredded_fields(one), _shredded_fields(other)
    if fields and others:
        for name in sorted(fields.keys() ^ others.keys()):
            yield (*path, name)
        for name in sorted(fields.keys() & others.keys()):
            if fields[name] != others[name]:
                yield from _differences(fields[name], others[name], (*path, name))
    yield path


def _shredded_fields(group: Any) -> dict[str, pa.DataType]:
    """Return the groups of the fields of a shredded object, none for any other value."""
    position = group.get_field_index("typed_value")
    typed: Any = pa.null() if position < 0 else group.field(position).type
    return {field.name: field.type for field in typed} if pa.types.is_struct(typed) else {}


def _with_plain_metadata(stored: Any) -> pa.DataType:
    fields = [field.with_type(pa.binary()) if field.name == "metadata" else field for field in stored]
    return pa.struct(fields)
