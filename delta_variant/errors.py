"""The exceptions of `delta_variant`: one class for each thing a caller can do differently."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "AmbiguousWriteError",
    "ArgumentTypeError",
    "CastError",
    "ChangesNotRecordedError",
    "CommitConflictError",
    "CommitUnknownError",
    "ConflictingValueError",
    "ConstraintViolationError",
    "DataFileError",
    "DeltaVariantError",
    "ExpressionError",
    "InvalidCaseError",
    "InvalidJsonError",
    "InvalidStatisticsError",
    "InvalidZ85Error",
    "MalformedLogError",
    "MalformedVariantError",
    "MergeAmbiguityError",
    "PredicateViolationError",
    "ProtocolError",
    "RetentionDurationError",
    "SchemaError",
    "ShreddingError",
    "ShreddingNotEnabledError",
    "SourceError",
    "SourceNotFoundError",
    "StoreError",
    "TableExistsError",
    "TableNotFoundError",
    "TimestampAfterLatestError",
    "TimestampBeforeFirstError",
    "UnsupportedFeatureError",
    "VariantPathError",
    "VersionExistsError",
    "VersionNotFoundError",
]


class DeltaVariantError(Exception):
    """The base class of every error that `delta_variant` raises on purpose.

    `str()` puts the location that `at` added in front of the message: `a.parquet, row 3: malformed Variant`.
    Attributes are None where the fact is not known. They survive pickling.

    Attributes:
        message: What is wrong, and what to do about it, without the location.
        table: The table's URI or path, as the caller gave it.
        file: The data file, the part of the log or the input file.
        line: The line of a text file, counted from 1.
        row: The row of the file or batch, counted from 0.
        column: The column's name; a nested column's parts are joined by dots.
        path: The path within a Variant, such as `$.user.id`, or of a field of the schema.
        version: The table version that the error is about.
        rule: The id of the broken rule, as docs/audit-rules.md lists them.

    Example:
        >>> error = MalformedVariantError("the value ends after its header").at(file="a.parquet", row=3)
        >>> str(error)
        'a.parquet, row 3: the value ends after its header'
        >>> error.row
        3
    """

    message: str
    table: str | None
    file: str | None
    line: int | None
    row: int | None
    column: str | None
    path: str | None
    version: int | None
    rule: str | None

    def __init__(
        self,
        message: str = "",
        *,
        table: str | None = None,
        file: str | None = None,
        line: int | None = None,
        row: int | None = None,
        column: str | None = None,
        path: str | None = None,
        version: int | None = None,
        rule: str | None = None,
    ) -> None:
        """Set the message and the facts that it names; `at` adds those that it does not name."""
        super().__init__(message)
        self.message = message
        self.table = table
        self.file = file
        self.line = line
        self.row = row
        self.column = column
        self.path = path
        self.version = version
        self.rule = rule
        self._added: set[str] = set()

    def at(
        self,
        *,
        table: str | None = None,
        file: str | None = None,
        line: int | None = None,
        row: int | None = None,
        column: str | None = None,
        path: str | None = None,
        version: int | None = None,
    ) -> Self:
        """Add where the error happened, and return the error itself.

        A fact that is known already stays: code nearer to the error knows better.
        """
        facts = (table, version, file, line, row, column, path)
        for name, fact in zip(_LOCATION, facts, strict=True):
            if fact is not None and getattr(self, name) is None:
                setattr(self, name, fact)
                self._added.add(name)
        return self

    def __str__(self) -> str:
        facts = [
            (template, getattr(self, name)) for name, template in _LOCATION.items() if name in self._added
        ]
        location = ", ".join(template.format(fact) for template, fact in facts if fact is not None)
        return f"{location}: {self.message}" if location else self.message


# The parts of a location in the order in which `str()` prints them.
_LOCATION = {
    "table": "{}",
    "version": "version {}",
    "file": "{}",
    "line": "line {}",
    "row": "row {}",
    "column": "column {!r}",
    "path": "path {}",
}


@contextmanager
def error_location(
    *, table: str | None = None, file: str | None = None, column: str | None = None
) -> Iterator[None]:
    """Add a location to every `DeltaVariantError` that leaves the block."""
    try:
        yield
    except DeltaVariantError as error:
        error.at(table=table, file=file, column=column)
        raise


class AmbiguousWriteError(DeltaVariantError):
    """A write whose `txn` does not tell whether the table has it already; pass another application id."""


class ArgumentTypeError(DeltaVariantError, TypeError, ValueError):
    """An argument of the wrong type.

    It is a `ValueError` too, because callers that validate input catch both cases with one class.
    """


class MalformedVariantError(DeltaVariantError):
    """Bytes that are not a Variant by the Parquet Variant encoding."""


class InvalidJsonError(DeltaVariantError):
    """JSON text that cannot become a Variant; the message names file, line and column where known."""


class ChangesNotRecordedError(DeltaVariantError):
    """Changes of versions at which the table had no change data feed."""


class CastError(DeltaVariantError):
    """A Variant value that cannot be cast to the type asked for; the `try_` functions give null instead."""


class ShreddingError(DeltaVariantError):
    """A shredding schema that the specification does not allow, or data that cannot be shredded by it."""


class ConflictingValueError(ShreddingError):
    """`value` and `typed_value` contradict each other; `on_conflict="typed"` reads the typed side."""


class ShreddingNotEnabledError(DeltaVariantError):
    """A shredded write into a table that does not enable `variantShredding`."""


class DataFileError(DeltaVariantError):
    """A Parquet file that cannot be read or written; the message names it."""


class SourceError(DeltaVariantError, OSError):
    """An input that cannot be read, such as a directory where a file is expected; the message names it."""


class SourceNotFoundError(SourceError, FileNotFoundError):
    """An input that does not exist."""


class ExpressionError(DeltaVariantError):
    """SQL text in `columns=` or `where=` that is not understood, or names what the table does not have."""


class RetentionDurationError(DeltaVariantError):
    """A vacuum of files that the table's retention still keeps for readers and writers."""


class SchemaError(DeltaVariantError):
    """Data whose schema does not fit the table, or a schema that Delta does not allow."""


class MergeAmbiguityError(DeltaVariantError):
    """A row of the table that several rows of a merge's source would change."""


class ConstraintViolationError(DeltaVariantError):
    """A row that a CHECK constraint, an invariant or a generation expression of the table is not true of."""


class PredicateViolationError(DeltaVariantError):
    """New rows for an overwrite by a predicate that is not true of them."""


class ProtocolError(DeltaVariantError):
    """A table whose protocol, metadata and schema contradict each other."""


class UnsupportedFeatureError(DeltaVariantError):
    """A table feature, property or constraint that this version cannot honour, refused by name."""


class VariantPathError(DeltaVariantError):
    """A path of a Variant that cannot be set: it leads through what is no object, or behind an array."""


class MalformedLogError(DeltaVariantError):
    """A part of `_delta_log` that cannot be understood; the message names file and line."""


class InvalidZ85Error(DeltaVariantError):
    """Text that is not z85 as Variant statistics use it."""


class InvalidStatisticsError(DeltaVariantError):
    """Statistics text of an AddFile that cannot be decoded."""


class StoreError(DeltaVariantError):
    """The store refused or failed an operation."""


class TableNotFoundError(DeltaVariantError):
    """No Delta table at this location."""


class VersionNotFoundError(DeltaVariantError):
    """The table has no such version, or its log no longer reaches back to it."""


class TimestampBeforeFirstError(VersionNotFoundError):
    """A time before the first version that the table's log still tells."""


class TimestampAfterLatestError(VersionNotFoundError):
    """A time behind the table's latest version: a later commit may still come to be the version of it."""


class TableExistsError(DeltaVariantError):
    """`mode="error"` and there is a table already."""


class VersionExistsError(DeltaVariantError):
    """Another writer committed this version first."""


class CommitConflictError(DeltaVariantError):
    """A concurrent commit changed what this one relies on; load the table again and retry."""


class CommitUnknownError(DeltaVariantError):
    """The store gave no answer to a commit, which may have come about; look at the table, then repeat it."""


class InvalidCaseError(DeltaVariantError):
    """A case of the conformance kit that is not as protocol_fixtures/README.md says; the message names it."""
