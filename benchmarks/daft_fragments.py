"""A data source of Daft that reads the fragments of a dataset of pyarrow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from daft import DataFrame, Schema
from daft.io.pushdowns import Pushdowns
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import RecordBatch

__all__ = ["read"]


class Fragment(DataSourceTask):
    """Reads columns of one fragment."""

    def __init__(self, fragment: Any, columns: pa.Schema) -> None:
        self._fragment = fragment
        self._columns = columns

    @property
    def schema(self) -> Schema:
        return Schema.from_pyarrow_schema(self._columns)

    async def read(self) -> AsyncIterator[RecordBatch]:
        for batch in self._fragment.to_batches(columns=self._columns.names):
            yield RecordBatch.from_arrow_record_batches([batch], self._columns)


class Fragments(DataSource):
    """The fragments of a dataset, which read only the columns that a query needs."""

    def __init__(self, dataset: ds.Dataset) -> None:
        self._dataset = dataset

    @property
    def name(self) -> str:
        return "dataset"

    @property
    def schema(self) -> Schema:
        return Schema.from_pyarrow_schema(self._dataset.schema)

    async def get_tasks(self, pushdowns: Pushdowns) -> AsyncIterator[DataSourceTask]:
        every = self._dataset.schema
        names = set(every.names if pushdowns.columns is None else pushdowns.columns)
        names |= pushdowns.filter_required_column_names()
        columns = pa.schema([field for field in every if field.name in names])
        for fragment in self._dataset.get_fragments():
            yield Fragment(fragment, columns)


def read(dataset: ds.Dataset) -> DataFrame:
    """Return the rows of a dataset."""
    return Fragments(dataset).read()
