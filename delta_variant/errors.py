"""The exceptions of `delta_variant`: one class for each case that a caller can handle differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

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

Error = TypeVar("Error", bound="DeltaVariantError")


class DeltaVariantError(Exception):
    """The base class of every error that `delta_variant` raises on purpose.

    `str()` prints the message after the location that `at` added: `part-0.parquet, row 3: malformed Variant`.
    An attribute is None if the fact is not known. Attributes survive pickling and copying.

    Attributes:
        message: What is wrong and what to do about it, without the location.
        table: The table's URI, or the absolute path of a local table.
        file: The data file, the part of the log or the input file.
        line: The line of a text file, counted from 1.
        row: The row of the file or batch, counted from 0.
        column: The column's name; the parts of a nested column's name are joined by dots.
        path: The path within a Variant, such as `$.user.id`, or of a field of the schema.
        version: The table version that the error is about.
        rule: The id of the broken rule, as listed in docs/audit-rules.md.
        remedies: Arguments of the called function, by name and value, any of which avoids the error.

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
    remedies: tuple[tuple[str, object], ...]

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
        remedies: tuple[tuple[str, object], ...] = (),
    ) -> None:
        """Set the message and the facts that it names; `at` adds facts that it does not name."""
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
        # Tasks of Spark hand errors over as JSON, which has no tuples.
        self.remedies = tuple((name, value) for name, value in remedies)
        self._added: frozenset[str] = frozenset()

    def at(
        self: Error,
        *,
        table: str | None = None,
        file: str | None = None,
        line: int | None = None,
        row: int | None = None,
        column: str | None = None,
        path: str | None = None,
        version: int | None = None,
    ) -> Error:
        """Add the location of the error, and return the error itself.

        A fact that is already known is kept, because the code closer to the error knows it better. To count
        rows from the start of a file instead of a batch, assign `row`: `str()` prints its current value.

        Args:
            table: The table's URI or path.
            file: The data file, the part of the log or the input file.
            line: The line of a text file, counted from 1.
            row: The row of the file or batch, counted from 0.
            column: The column's name.
            path: The path within a Variant, or of a field of the schema.
            version: The table version.

        Returns:
            The error, so that it can be raised: `raise SchemaError(message).at(file=name)`.

        Example:
            >>> str(SchemaError("no such column").at(file="a.parquet", row=3))
            'a.parquet, row 3: no such column'
        """
        facts = (table, version, file, line, row, column, path)
        for name, fact in zip(_LOCATION, facts, strict=True):
            if fact is not None and getattr(self, name) is None:
                setattr(self, name, fact)
                self._added |= {name}
        return self

    @property
    def location(self) -> dict[str, str | int]:
        """The facts that `at` added, by name, in the order in which `str()` prints them."""
        facts = {name: getattr(self, name) for name in _LOCATION if name in self._added}
        return {name: fact for name, fact in facts.items() if fact is not None}

    def __str__(self) -> str:
        return self.text("{}={!r}".format)

    def text(self, describe: Callable[[str, object], str]) -> str:
        """Return location, message and remedies.

        Args:
            describe: Returns the text of a remedy by the name and the value of the argument. `str()` uses
                the syntax of Python, the command line that of its options.

        Example:
            >>> error = TableExistsError("the table exists", remedies=(("mode", "append"),))
            >>> str(error), error.text("--{} {}".format)
            ("the table exists: pass mode='append'", 'the table exists: pass --mode append')
        """
        location = ", ".join(_LOCATION[name].format(fact) for name, fact in self.location.items())
        text = f"{location}: {self.message}" if location else self.message
        # Names in tables may have escape sequences of terminals, and line breaks.
        lines = text.split("\n") if _points_at_sql(text) else [text]
        text = "\n".join(map(printable, lines))
        remedies = " or ".join(describe(*remedy) for remedy in self.remedies)
        return f"{text}: pass {remedies}" if remedies else text


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


def _points_at_sql(text: str) -> bool:
    """Return whether a line of a message marks a position in the line before it."""
    return any(line.strip() == "^" for line in text.split("\n"))


def printable(text: str) -> str:
    """Return `text` with control characters and invisible characters escaped, such as line breaks.

    Example:
        >>> printable("a\\x1b[2J")
        'a\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def error_location(
    *, table: str | None = None, file: str | None = None, column: str | None = None
) -> Iterator[None]:
    """Add a location to every `DeltaVariantError` that leaves the block.

    Args:
        table: The table's URI or path.
        file: The data file, the part of the log or the input file.
        column: The column's name.

    Example:
        >>> try:
        ...     with error_location(file="a.parquet"):
        ...         raise SchemaError("no such column", column="event")
        ... except SchemaError as error:
        ...     print(error)
        a.parquet: no such column
    """
    try:
        yield
    except DeltaVariantError as error:
        error.at(table=table, file=file, column=column)
        raise


class AmbiguousWriteError(DeltaVariantError):
    """A write with a transaction id is rejected because the table may already contain it.

    Two writers used the same application id and version: two runs of a streaming query that each count from
    0, or threads of one batch. Pass another application id.

    Example:
        >>> try:
        ...     raise AmbiguousWriteError("another run committed batch 0", table="/data/events")
        ... except AmbiguousWriteError as error:
        ...     print(f"choose another application id for {error.table}")
        choose another application id for /data/events
    """


class ArgumentTypeError(DeltaVariantError, TypeError, ValueError):
    """An argument has the wrong type.

    It is a `TypeError` and a `ValueError`, so that callers who validate input catch wrong types and wrong
    values with one class.

    Example:
        >>> from delta_variant import parse_json
        >>> parse_json("1")
        Traceback (most recent call last):
        ...
        delta_variant.errors.ArgumentTypeError: expected an array or a list of values, got str: ...
    """


class MalformedVariantError(DeltaVariantError):
    """Bytes are not a valid Variant (VariantEncoding.md); write the value again from its source.

    Example:
        >>> from delta_variant import Variant
        >>> Variant(metadata=b"", value=b"").to_json()
        Traceback (most recent call last):
        ...
        delta_variant.errors.MalformedVariantError: row 0: malformed Variant metadata: it is empty
    """


class InvalidJsonError(DeltaVariantError):
    """JSON text cannot become a Variant; correct the text, or choose to reject or null such rows.

    Example:
        >>> from delta_variant import parse_json
        >>> try:
        ...     parse_json(['{"a": 1}', "[1, 2"])
        ... except InvalidJsonError as error:
        ...     print(error.row)
        1
    """


class ChangesNotRecordedError(DeltaVariantError):
    """The change data feed was disabled at a requested version; read the changes of other versions."""


class CastError(DeltaVariantError):
    """A value cannot be cast to the requested type; the `try_` functions return null instead.

    Example:
        >>> from delta_variant import parse_json, variant_get
        >>> variant_get(parse_json(['{"a": 1}', '{"a": "x"}']), "$.a", "int")
        Traceback (most recent call last):
        ...
        delta_variant.errors.CastError: row 1, path $['a']: cannot cast "x" (string) to int; ...
    """


class ShreddingError(DeltaVariantError):
    """A shredding schema or a shredded column breaks VariantShredding.md, or data does not fit the schema.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import ShreddingSchema
        >>> ShreddingSchema.of({"id": pa.uint64()})
        Traceback (most recent call last):
        ...
        delta_variant.errors.ShreddingError: ...
    """


class ConflictingValueError(ShreddingError):
    """`value` and `typed_value` of a row contradict each other.

    Pass `on_conflict="typed"` to read `typed_value`.
    """


class ShreddingNotEnabledError(DeltaVariantError):
    """A write shreds, but the table does not enable `variantShredding`.

    Set the table property `delta.enableVariantShredding=true`, or write with `shredding=None`.
    """


class DataFileError(DeltaVariantError):
    """A Parquet file cannot be read or written; `file` names it."""


class SourceError(DeltaVariantError, OSError):
    """An input cannot be read, for example because it is a directory; `file` names it."""


class SourceNotFoundError(SourceError, FileNotFoundError):
    """An input does not exist; `file` names it."""


class ExpressionError(DeltaVariantError):
    """A SQL expression or a Variant path is invalid or not supported, or names a column that does not exist.

    Example:
        >>> from delta_variant import parse_json, variant_get
        >>> variant_get(parse_json(["1"]), "user.id")
        Traceback (most recent call last):
        ...
        delta_variant.errors.ExpressionError: invalid path 'user.id': expected a path that starts with $
    """


class RetentionDurationError(DeltaVariantError):
    """An operation would delete files or versions within the retention, which others may still use.

    `vacuum` and `drop_feature` with `truncate_history=True` raise it.
    """


class SchemaError(DeltaVariantError):
    """Data does not fit the schema of its table, or Delta does not allow a schema; `column` names the column.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import write_table
        >>> data = pa.table({"id": [1], "ID": [2]})
        >>> write_table("memory:///events", data)
        Traceback (most recent call last):
        ...
        delta_variant.errors.SchemaError: the columns 'id' and 'ID' differ at most by case: rename one
    """


class MergeAmbiguityError(DeltaVariantError):
    """Several source rows of a merge match one row of the table; deduplicate the source by its keys."""


class ConstraintViolationError(DeltaVariantError):
    """A row violates a CHECK constraint, an invariant or a generation expression of the table."""


class PredicateViolationError(DeltaVariantError):
    """An overwrite by a predicate gets a row that does not satisfy the predicate."""


class ProtocolError(DeltaVariantError):
    """The protocol, metadata and schema of a table contradict each other, or a table property is invalid."""


class UnsupportedFeatureError(DeltaVariantError):
    """A table uses a feature, property or constraint that this version does not support; it is named."""


class VariantPathError(DeltaVariantError):
    """A path of a Variant cannot be set: a step is not an object, or an array has no such element."""


class MalformedLogError(DeltaVariantError):
    """A part of `_delta_log` is invalid; `file` and `line` say where."""


class InvalidZ85Error(DeltaVariantError):
    """Text is not valid z85, in which Variant statistics and deletion vectors are stored."""


class InvalidStatisticsError(DeltaVariantError):
    """The statistics of an AddFile cannot be decoded; `repair_statistics` computes them again."""


class StoreError(DeltaVariantError):
    """The object store or file system rejected an operation, or the operation failed."""


class TableNotFoundError(DeltaVariantError, FileNotFoundError):
    """There is no Delta table at this location.

    Example:
        >>> from delta_variant import read_table
        >>> read_table("/no/such/folder")
        Traceback (most recent call last):
        ...
        delta_variant.errors.TableNotFoundError: ...
    """


class VersionNotFoundError(DeltaVariantError):
    """The table does not have this version, or its log no longer reaches back to it."""


class TimestampBeforeFirstError(VersionNotFoundError):
    """A timestamp is earlier than the first version that the table's log still contains."""


class TimestampAfterLatestError(VersionNotFoundError):
    """A timestamp is later than the latest commit, and a future commit could still precede it."""


class TableExistsError(DeltaVariantError):
    """A write with `mode="error"` finds an existing table."""


class VersionExistsError(DeltaVariantError):
    """Another writer committed this version first."""


class CommitConflictError(DeltaVariantError):
    """A concurrent commit changed something that this operation read; load the table again and retry."""


class CommitUnknownError(DeltaVariantError):
    """The store did not answer a commit, which may have succeeded; check the table before retrying.

    A write with a `txn` can be repeated as it is: it does nothing if the commit succeeded.
    """
