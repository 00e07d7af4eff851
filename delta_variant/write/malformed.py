"""The file, the row and the column of a malformed Variant that is found while rows of files are rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..errors import MalformedVariantError, error_location
from ..expressions.evaluate import evaluate
from ..expressions.tree import inputs
from ..log.snapshot import TableVersion
from ..protocol.types import has_variant
from ..read.file_reader import POSITION, FileEntry, FileReader, TableReader
from ..read.scope import Scope
from .partitions import check_variants


@contextmanager
def locate_malformed(version: TableVersion, files: Iterable[FileEntry]) -> Iterator[None]:
    """Raise the error of a malformed Variant in the rows of some files with its file, row and column.

    A writer knows the row of a batch at most, so the files are read again up to the first such Variant.
    """
    try:
        yield
    except MalformedVariantError as error:
        if error.file is None:
            for file in TableReader.of(version).open_all(files):
                _check(file)
        raise


def _check(file: FileReader) -> None:
    table = file.table.version.configuration
    fields = [field for field in table.schema.fields if has_variant(field.type)]
    columns = Scope.of(table).whole_columns()
    used = inputs([*(columns[field.name] for field in fields), POSITION])
    for batch in file.read(used, None, "error"):
        for field in fields:
            try:
                with error_location(file=file.file.path):
                    check_variants(evaluate(columns[field.name], batch), field)
            except MalformedVariantError as error:
                row = None if error.row is None else batch.column(POSITION.name)[error.row].as_py()
                message = f"{error.message}: restore the file, or delete its malformed rows"
                raise MalformedVariantError(message, file=error.file, row=row, column=error.column) from None
