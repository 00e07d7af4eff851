"""Types of the options of the native library, without the import of any library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

Change: TypeAlias = Literal["insert", "set", "replace", "append"]
"""What happens to the value at a path: `set` creates a missing one, `replace` does not."""

Compression: TypeAlias = Literal["zstd", "snappy", "gzip", "lz4", "none"]

DuplicateKeys: TypeAlias = Literal["error", "last"]
"""How to handle a JSON object with two fields of one name: raise an error, or take the last."""

Encoding: TypeAlias = "tuple[Literal['json', 'variant'], pa.Field[Any]] | list[Encoding] | None"
"""How to write a column: JSON text or a Variant shredded by a schema, a struct of such columns, or unchanged.
A Variant that is already shredded is also written unchanged."""

Floats: TypeAlias = Literal["decimal", "double"]
"""The Variant type of a JSON number with a fraction."""

PageVersion: TypeAlias = Literal[1, 2]
JsonKind: TypeAlias = Literal["number", "string", "boolean"]

Numeric: TypeAlias = Literal["value", "strict"]
"""Which exact numbers to shred: those that the column can hold without loss, or those of its own type."""

OnConflict: TypeAlias = Literal["error", "typed"]
"""How to handle a row whose `value` and `typed_value` contradict each other."""

ViewColumn: TypeAlias = "tuple[str, bool, Sequence[str] | None, pa.Field[Any]]"
"""A column of a view: its name in the data file, whether it is a Variant, the path of a single value in it,
None for the struct of all its paths in the view, and the field in the view."""
