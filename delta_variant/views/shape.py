"""The columns of a view, and their places in its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.tree import Column, Expression, Extraction
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
    those whose values are in the names of folders. `stored` are the columns of each file: the name in the
    data file, whether it is a Variant, and the field in the view. `computed` is a column that no data file
    has as it is.
    """

    query: Query
    places: Mapping[str, Steps]
    partitions: Mapping[str, str]
    stored: tuple[tuple[str, bool, pa.Field[Any]], ...]
    computed: str | None

    @classmethod
    def of(
        cls, snapshot: Snapshot, columns: Mapping[str, str] | Sequence[str] | None, *, strict: bool
    ) -> Shape:
        """Return the shape of a view; raises ExpressionError for a column that is a Variant."""
        if columns is None:
            columns = plain_columns(snapshot, strict=strict)
        query = Query.of(snapshot.configuration, columns, None)
        for field in query.schema:
            if contains_variants(field):
                raise ExpressionError(
                    f"cannot show the Variant {field.name!r} in a view: choose typed paths, such as "
                    "event:user.id::bigint, or to_json(event)"
                )
        return cls.of_query(snapshot, query)

    @classmethod
    def of_query(cls, snapshot: Snapshot, query: Query) -> Shape:
        """Return the shape of a view with the outputs of a query, none of them a Variant."""
        return _Places(snapshot, query).shape()

    @property
    def file_schema(self) -> pa.Schema:
        return pa.schema(
            [
                field.with_type(pa.struct([(ROOT, field.type)])) if is_variant and field.nullable else field
                for _, is_variant, field in self.stored
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
    """Assigns the columns of a view to places in its files."""

    def __init__(self, snapshot: Snapshot, query: Query) -> None:
        self._snapshot = snapshot
        self._query = query
        self._fields = {field.name: field for field in snapshot.schema.fields}
        self._places: dict[str, Steps] = {}
        self._plain: list[tuple[str, bool, pa.Field[Any]]] = []
        self._trees: dict[str, dict[str, Any]] = {}
        self._computed: str | None = None

    def shape(self) -> Shape:
        partitions: dict[str, str] = {}
        for name, bound in self._query.outputs.items():
            if isinstance(bound, Column) and bound.name in self._snapshot.partition_columns:
                partitions[name] = self._physical(bound.name)
            elif isinstance(bound, Column):
                self._add_plain(name, self._physical(bound.name))
            elif not self._add_path(name, bound):
                self._computed = name
                self._add_plain(name, "")
        if not self._places:
            # A file has columns.
            for name in partitions:
                self._computed = name
                self._add_plain(name, "")
            partitions = {}
        variants = [
            (
                self._physical(column),
                True,
                pa.field(self._unused(column), _type_of(tree), self._fields[column].nullable),
            )
            for column, tree in self._trees.items()
        ]
        stored = (*self._plain, *variants)
        return Shape(self._query, self._places, partitions, stored, self._computed)

    def _physical(self, column: str) -> str:
        return physical_name(self._fields[column], self._snapshot.configuration.mapping_mode)

    def _unused(self, column: str) -> str:
        """Return the name of a Variant in files, in which columns that are not Variants have their own."""
        names = {name for name, each in self._query.outputs.items() if not isinstance(each, Extraction)} | {
            field.name for _, _, field in self._plain
        }
        while column in names:
            column += "_"
        return column

    def _add_plain(self, name: str, stored: str) -> None:
        self._places[name] = (name,)
        self._plain.append((stored, False, self._query.schema.field(name)))

    def _add_path(self, name: str, bound: Expression) -> bool:
        """Add a path of a Variant; return whether a file can have it as a column."""
        if not isinstance(bound, Extraction) or bound.fields or bound.as_json or bound.type is None:
            return False
        path = tuple(step for step in bound.path if isinstance(step, str))
        if path != bound.path:
            return False
        tree = self._trees.setdefault(bound.column, {})
        *parents, last = ("", *path)
        for step in parents:
            tree = tree.setdefault(step, {})
            if not isinstance(tree, dict):
                return False
        if last in tree:
            return False
        tree[last] = bound.type
        root = (ROOT,) if self._fields[bound.column].nullable else ()
        self._places[name] = (self._unused(bound.column), *root, *path)
        return True


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
