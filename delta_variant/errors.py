"""The exceptions of `delta_variant`: one class for each thing a caller can do differently."""

from __future__ import annotations

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
    """The root of every error that `delta_variant` raises on purpose."""


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
