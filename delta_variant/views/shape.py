"""The columns of a view, and their places in its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from .._checks import check_option
from .._options import ViewColumn
from ..errors import ExpressionError
from ..expressions.tree import Column, Extraction
from ..log.snapshot import Snapshot
from ..protocol.schema.column_mapping import physical_name
from ..read.query import Query
from ..read.shredded_columns import shredded_types, typed_columns
from ..variant.objects import contains_variants

Steps: TypeAlias = tuple[str, ...]
"""A column of a file and the fields below it."""

ROOT = "typed_value"
"""The only field of a nullable Variant in a file of a view. The group of the Variant and the `typed_value` in
it have a definition level each, which stay, because a view has the pages of the data file."""


class Shape(msgspec.Struct, frozen=True):
    """The columns of a view, and those of its files.

    `places` are where files have the columns of the view, by name, and `partitions` the physical names of
    those whose values are in the names of folders. `stored` are the columns of each file. `computed` is a
    column that no data file has as it is.
    """

    query: Query
    places: Mapping[str, Steps]
    partitions: Mapping[str, str]
    stored: tuple[ViewColumn, ...]
    computed: str | None

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        columns: Mapping[str, str] | Sequence[str] | None,
        *,
        strict: bool,
        is_flat: bool = False,
    ) -> Shape:
        """Return the shape of a view; raises ExpressionError for a column that is a Variant.

        If it is flat, each path is a column of its name, otherwise a field below that of its Variant.
        """
        check_strict(strict, columns)
        if columns is None:
            columns = plain_columns(snapshot, strict=strict)
        query = Query.of(snapshot.configuration, columns, None)
        for field in query.schema:
            if contains_variants(field):
                raise ExpressionError(
                    f"cannot show the Variant {field.name!r} in a view: choose typed paths, such as "
                    "event:user.id::bigint, or to_json(event)"
                )
        return cls.of_query(snapshot, query, is_flat=is_flat)

    @classmethod
    def of_query(cls, snapshot: Snapshot, query: Query, *, is_flat: bool = False) -> Shape:
        """Return the shape of a view with the outputs of a query, none of them a Variant."""
        return _Places(snapshot, query, is_flat).shape()

    @property
    def file_schema(self) -> pa.Schema:
        return pa.schema(
            [
                field.with_type(pa.struct([(ROOT, field.type)]))
                if is_variant and path is None and field.nullable
                else field
                for _, is_variant, path, field in self.stored
            ]
        )

    @property
    def table_schema(self) -> pa.Schema:
        """Return the schema of a table of the files: their columns and the partition columns, in order."""
        fields = {field.name: field for field in (*self.query.schema, *self.file_schema)}
        names = dict.fromkeys(self.places.get(each, (each,))[0] for each in self.query.outputs)
        return pa.schema([fields[name] for name in names])

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the view as rows of its files; the objects around a value are never null."""
        schema = self.file_schema
        for batch in batches:
            values = {self.places[name]: batch.column(name) for name in batch.schema.names}
            yield pa.record_batch([_nest(field, (field.name,), values) for field in schema], schema=schema)


class _Places:
    """Assigns the columns of a view to places in its files.

    Names that differ only by case are one name to DuckDB, so that no two columns of a file have such names,
    and no two fields of an object. No field has an empty name, which DuckDB rejects.
    """

    def __init__(self, snapshot: Snapshot, query: Query, is_flat: bool) -> None:
        self._snapshot = snapshot
        self._query = query
        self._is_flat = is_flat
        self._fields = {field.name: field for field in snapshot.schema.fields}
        self._places: dict[str, Steps] = {}
        self._single: list[ViewColumn] = []
        self._paths: dict[str, Extraction] = {}
        self._trees: dict[str, dict[str, Any]] = {}
        self._computed: str | None = None
        self._taken: set[str] = set()

    def shape(self) -> Shape:
        partitions = {
            name: self._physical(bound.name)
            for name, bound in self._query.outputs.items()
            if isinstance(bound, Column) and bound.name in self._snapshot.partition_columns
        }
        self._taken.update(map(str.lower, partitions))
        for name, bound in self._query.outputs.items():
            if name in partitions:
                continue
            if isinstance(bound, Column):
                self._add_single(name, self._physical(bound.name))
            elif not isinstance(bound, Extraction) or not self._add_path(name, bound):
                self._add_computed(name)
        if not self._single and not self._paths:
            # A file has columns.
            partitions.clear()
            self._taken.clear()
            for name in self._query.outputs:
                self._add_computed(name)
        stored = (*self._single, *self._variants())
        places = {name: self._places[name] for name in self._query.outputs if name not in partitions}
        return Shape(self._query, places, partitions, stored, self._computed)

    def _physical(self, column: str) -> str:
        return physical_name(self._fields[column], self._snapshot.configuration.mapping_mode)

    def _unused(self, name: str) -> str:
        """Return a name that no column of the files has yet."""
        while name.lower() in self._taken:
            name += "_"
        self._taken.add(name.lower())
        return name

    def _add_single(self, name: str, stored: str, path: Sequence[str] | None = None) -> None:
        named = self._unused(name)
        self._places[name] = (named,)
        field = self._query.schema.field(name).with_name(named)
        self._single.append((stored, path is not None, path, field))

    def _add_computed(self, name: str) -> None:
        self._computed = name
        self._add_single(name, "")

    def _add_path(self, name: str, bound: Extraction) -> bool:
        """Add a path; return whether a file can have it as a column."""
        if bound.fields or bound.as_json or bound.type is None:
            return False
        path = tuple(step for step in bound.path if isinstance(step, str))
        if path != bound.path:
            return False
        if self._is_flat:
            self._add_single(name, self._physical(bound.column), path)
            return True
        if "" in path or not self._add_to_tree(bound, path):
            return False
        self._paths[name] = bound
        return True

    def _add_to_tree(self, bound: Extraction, path: Steps) -> bool:
        """Add a path to those of its Variant; return whether it has a place there."""
        tree = self._trees.setdefault(bound.column, {})
        *parents, last = ("", *path)
        for step in parents:
            if step not in tree and step.lower() in map(str.lower, tree):
                return False
            tree = tree.setdefault(step, {})
            if not isinstance(tree, dict):
                return False
        if last.lower() in map(str.lower, tree):
            return False
        tree[last] = bound.type
        return True

    def _variants(self) -> Iterator[ViewColumn]:
        """Yield the Variants of the files, and set the places of their paths."""
        for column, tree in self._trees.items():
            field = pa.field(self._unused(column), _type_of(tree), self._fields[column].nullable)
            root = (field.name, ROOT) if field.nullable else (field.name,)
            for name, bound in self._paths.items():
                if bound.column == column:
                    self._places[name] = (*root, *map(str, bound.path))
            yield self._physical(column), True, None, field


def check_strict(strict: object, columns: object) -> None:
    """Reject another value than a boolean, and False with expressions, which cast as they say."""
    check_option("strict", strict, (True, False))
    if columns is not None and not strict:
        raise ValueError(
            "strict: False is for the shredded paths, without columns: write event:x::int in columns as "
            "try_cast(event:x as int)"
        )


def typed_paths(snapshot: Snapshot, *, strict: bool) -> dict[str, str]:
    """Return the columns of a table and the shredded paths of its Variants, lists among them."""
    return typed_columns(snapshot, shredded_types(snapshot, snapshot.files, lists=True), strict=strict)


def plain_columns(snapshot: Snapshot, *, strict: bool) -> dict[str, str]:
    """Return the columns of a view by default: `typed_paths`, without the columns that have Variants."""
    columns = typed_paths(snapshot, strict=strict)
    query = Query.of(snapshot.configuration, columns, None)
    return {name: columns[name] for name in columns if not contains_variants(query.schema.field(name))}


def _type_of(tree: Mapping[str, Any]) -> Any:
    def build(node: Any) -> Any:
        if not isinstance(node, Mapping):
            return node
        return pa.struct([(name, build(inner)) for name, inner in node.items()])

    return build(tree[""])


def _nest(field: pa.Field[Any], steps: Steps, values: Mapping[Steps, Any]) -> Any:
    if steps in values:
        return values[steps]
    fields = list(field.type)
    arrays = [_nest(each, (*steps, each.name), values) for each in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields)
