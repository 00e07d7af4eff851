"""Write change data files, the changes of rows in a commit (PROTOCOL.md, "Change Data Files").

If a commit has change data files, readers take its changes from these files only, else from the files that it
adds and removes. So a commit that only adds and removes whole files has none, and any other commit has all of
its changes in them. Variants in them are not shredded, because readers of changes read whole rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ..data_file.options import FileOptions, WriteOptions
from ..execution import NameFile, new_name
from ..log.snapshot import TableVersion
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import PrimitiveType, StructField
from ..read.file_reader import FileEntry, TableReader
from ..storage.store import Store
from .partitions import WrittenFiles
from .router import Router

ChangeType: TypeAlias = Literal["insert", "update_preimage", "update_postimage", "delete"]

CHANGE_TYPE = StructField("_change_type", PrimitiveType("string"))
CHANGE_DATA = "_change_data"


class ChangeWriter:
    """Writes rows and their change type to change data files."""

    def __init__(self, store: Store, after: TableConfiguration, name: NameFile = new_name) -> None:
        table = replace(after, extra_columns=(CHANGE_TYPE,))
        options = WriteOptions(shredding=None, files=FileOptions(max_variant_stats_paths=0))

        def name_of(number: int) -> str:
            # The name of a data file, with the prefix that Delta gives change data files.
            return f"cdc-{name(number).removeprefix('part-')}"

        self._router = Router(store, table, options, name=name_of, folder=f"{CHANGE_DATA}/")

    def add(self, rows: pa.RecordBatch, change: ChangeType) -> None:
        """Write rows that have the columns of the table."""
        if rows.num_rows:
            kind: Any = pa.repeat(pa.scalar(change), rows.num_rows)
            self._router.add(rows.append_column(CHANGE_TYPE.name, kind))

    def close(self) -> WrittenFiles:
        return self._router.close()

    def discard(self) -> None:
        """Remove all files written so far."""
        self._router.discard()


def write_whole_files(
    version: TableVersion,
    after: TableConfiguration,
    files: Iterable[FileEntry],
    change: ChangeType,
    name: NameFile = new_name,
) -> WrittenFiles:
    """Write all rows of data files of a version to change data files and return these."""
    table = TableReader.of(version)
    writer = ChangeWriter(version.store, after, name)
    try:
        for file in files:
            for batch in table.open(file).read_whole():
                writer.add(batch, change)
        return writer.close()
    except BaseException:
        writer.discard()
        raise
