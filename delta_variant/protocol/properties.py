"""Table properties, one row each (PROTOCOL.md, "Table Properties").

`PROPERTIES` are those that this library supports, `OTHER_PROPERTIES` those that only other writers support.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from .._checks import check_text, nearest
from .._options import Compression, PageVersion
from ..errors import ArgumentTypeError, ProtocolError

T = TypeVar("T")
Default = TypeVar("Default")
Choice = TypeVar("Choice", bound=str)

ColumnMappingMode: TypeAlias = Literal["none", "name", "id"]


Compatibility: TypeAlias = Literal["default", "unshredded"]

IsolationLevel: TypeAlias = Literal["Serializable", "WriteSerializable"]

ColumnNames = tuple[tuple[str, ...], ...]

FEATURE = "delta.feature."
CONSTRAINT = "delta.constraints."
"""Prefixes of names: of the properties that add a feature, and of those that hold a CHECK constraint."""

CODECS: Mapping[str, Compression] = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "none": "none",
    "uncompressed": "none",
}

NAME_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`,.](?:[^`,.]*[^\s`,.])?))\s*([.,]|$)")

MILLISECONDS = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
}
DURATION = re.compile(rf"([0-9]{{1,9}})\s+({'|'.join(MILLISECONDS)})s?", re.IGNORECASE)
INTERVAL = re.compile(rf"(?:interval\s+)?({DURATION.pattern}(?:\s+{DURATION.pattern})*)", re.IGNORECASE)


@dataclass(frozen=True)
class TableProperty(Generic[T]):
    """A table property: `parse` reads existing text or raises ValueError, `accepts` checks new text."""

    name: str
    parse: Callable[[str], T]
    default: T
    accepts: Callable[[str], bool]
    expected: str


def get(configuration: Mapping[str, str], prop: TableProperty[T]) -> T:
    """Return the value of `prop` or its default; raises ProtocolError if its text is invalid."""
    text = configuration.get(prop.name)
    if text is None:
        return prop.default
    try:
        return prop.parse(text)
    except ValueError as error:
        raise ProtocolError(
            f"invalid table property {prop.name}={text!r}: expected {prop.expected}"
        ) from error


def check_new(configuration: Mapping[str, str]) -> None:
    """Raise ProtocolError, which names key and value, for properties that a new table cannot have.

    Names that start with `delta.` must be known. Other names belong to other programs and are accepted.
    """
    for name, text in configuration.items():
        if name.startswith(FEATURE) or name in ("delta.minReaderVersion", "delta.minWriterVersion"):
            raise ProtocolError(
                f"{name}={text!r} is not a table property: remove it, because the protocol follows from the "
                "schema and the other properties"
            )
        if not name.lower().startswith(CONSTRAINT):
            check_set(name, text)
    check_row_tracking(configuration)
    check_compatibility(configuration)


def check_compatibility(configuration: Mapping[str, str]) -> None:
    """Raise ProtocolError for properties that both enable shredding and exclude it for other readers."""
    if get(configuration, COMPATIBILITY) == "unshredded" and get(configuration, ENABLE_VARIANT_SHREDDING):
        raise ProtocolError(
            f"{COMPATIBILITY.name}=unshredded and {ENABLE_VARIANT_SHREDDING.name}=true exclude each other: "
            "set only one"
        )


def check_row_tracking(configuration: Mapping[str, str]) -> None:
    """Raise ProtocolError for properties that both enable and suspend row tracking."""
    if get(configuration, ENABLE_ROW_TRACKING) and get(configuration, ROW_TRACKING_SUSPENDED):
        raise ProtocolError(
            f"{ENABLE_ROW_TRACKING.name} and {ROW_TRACKING_SUSPENDED.name} cannot both be true, because rows "
            "get no ids while row tracking is suspended: set only one"
        )


def check_texts(configuration: object) -> None:
    """Raise ArgumentTypeError unless `configuration` maps property names to strings."""
    if not isinstance(configuration, Mapping):
        raise ArgumentTypeError(
            f"configuration: expected a dict of strings to strings, got {configuration!r}"
        )
    for name, text in configuration.items():
        check_text("a property name", name)
        if not isinstance(text, str):
            raise ArgumentTypeError(f"{name}: expected a string such as 'true', got {text!r}")
        check_text(name, text)


def check_set(name: str, text: str) -> None:
    """Raise ProtocolError, which names key and value, for a property that cannot be set.

    A name that starts with `delta.` must be known. Other names belong to other programs and are accepted.
    """
    prop = PROPERTIES.get(name) or OTHER_PROPERTIES.get(name)
    if prop is not None:
        if not prop.accepts(text):
            raise ProtocolError(f"invalid table property {name}={text!r}: expected {prop.expected}")
    elif name.lower().startswith("delta."):
        known = [each.removeprefix("delta.") for each in (*PROPERTIES, *OTHER_PROPERTIES)]
        close = nearest(name[len("delta.") :], known)
        remedy = "choose a name without 'delta.'" if close is None else f"did you mean delta.{close}?"
        raise ProtocolError(f"unknown table property {name!r}: {remedy}")


def _boolean(name: str, default: bool) -> TableProperty[bool]:
    # Any text but "true" means false in an existing table; only new values must be one of the two.
    return TableProperty(
        name=name,
        parse=lambda text: text.lower() == "true",
        default=default,
        accepts=lambda text: text.lower() in ("true", "false"),
        expected="true or false",
    )


def _number(name: str, default: T, least: int, expected: str) -> TableProperty[int | T]:
    def parse(text: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,19}", text) is None or int(text) < least:
            raise ValueError(text)
        return int(text)

    return TableProperty(name, parse, default, _accepts(parse), expected)


def _choice(name: str, default: Choice, *others: Choice) -> TableProperty[Choice]:
    choices = (default, *others)

    def parse(text: str) -> Choice:
        return choices[choices.index(text)]

    return TableProperty(name, parse, default, _accepts(parse), f"one of {', '.join(choices)}")


def _text(name: str) -> TableProperty[str | None]:
    return TableProperty(name, str, None, bool, "a name")


def column_names(text: str) -> ColumnNames:
    """Return the names in text such as "a, s.b, `x.y`", each split into its parts; raises ValueError."""
    names: list[tuple[str, ...]] = []
    parts: list[str] = []
    position, separator = 0, ","
    while separator:
        part = NAME_PART.match(text, position)
        if part is None:
            raise ValueError(text)
        parts.append(part[1].replace("``", "`") if part[1] else part[2])
        position, separator = part.end(), part[3]
        if separator != ".":
            names.append(tuple(parts))
            parts = []
    return tuple(names)


def column_names_text(names: ColumnNames) -> str:
    """Return the text that `column_names` parses to these names."""
    return ",".join(".".join(_name_part(part) for part in name) for name in names)


def _name_part(part: str) -> str:
    return part if re.fullmatch(r"\w+", part, re.ASCII) else "`" + part.replace("`", "``") + "`"


def _compression(text: str) -> Compression:
    """Return a codec by any of its names (PROTOCOL.md, "Table Properties"); raises ValueError."""
    codec = CODECS.get(text.lower())
    if codec is None:
        raise ValueError(text)
    return codec


def _page_version(text: str) -> PageVersion:
    """Return the version of data pages (PROTOCOL.md, "Table Properties"); raises ValueError."""
    if text == "1.0.0":
        return 1
    if re.fullmatch(r"2\.[0-9]+\.[0-9]+", text, re.ASCII) is None:
        raise ValueError(text)
    return 2


def _optional_column_names(text: str) -> ColumnNames | None:
    return column_names(text) if text.strip() else ()


def _milliseconds(text: str) -> int:
    found = INTERVAL.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return sum(int(number) * MILLISECONDS[unit.lower()] for number, unit in DURATION.findall(found[1]))


def _duration(name: str, default: Default, example: str = "interval 1 week") -> TableProperty[int | Default]:
    expected = f"a duration in units of a week or less, such as {example}"
    return TableProperty(name, _milliseconds, default, _accepts(_milliseconds), expected)


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return accepts


APPEND_ONLY = _boolean("delta.appendOnly", False)
# Deprecated in favor of AUTO_COMPACT, and still wins on Spark if it is true.
AUTO_OPTIMIZE = _boolean("delta.autoOptimize", False)
AUTO_COMPACT: TableProperty[bool] = TableProperty(
    "delta.autoOptimize.autoCompact",
    lambda text: text.lower() != "false",
    False,
    lambda text: text.lower() in ("true", "auto", "legacy", "false"),
    "true, auto, legacy or false",
)
CHECKPOINT_INTERVAL = _number("delta.checkpointInterval", 10, 1, "an integer from 1")
CHECKPOINT_POLICY = _choice("delta.checkpointPolicy", "classic", "v2")
CHECKPOINT_PROTECTION_VERSION = _number(
    "delta.requireCheckpointProtectionBeforeVersion", 0, 0, "an integer from 0"
)
COLUMN_MAPPING_MAX_COLUMN_ID = _number("delta.columnMapping.maxColumnId", 0, 0, "an integer from 0")
COLUMN_MAPPING_MODE: TableProperty[ColumnMappingMode] = _choice(
    "delta.columnMapping.mode", "none", "name", "id"
)
# A property of this library: other writers ignore names that do not begin with `delta.`.
COMPATIBILITY: TableProperty[Compatibility] = _choice("deltaVariant.compatibility", "default", "unshredded")
EXPORT = _text("deltaVariant.export")
"""What a table was exported from, as JSON text. It is read-only for this library."""
COMPRESSION_CODEC: TableProperty[Compression | None] = TableProperty(
    "delta.parquet.compression.codec",
    _compression,
    None,
    _accepts(_compression),
    "zstd, snappy, gzip, lz4, or none",
)
DATA_SKIPPING_NUM_INDEXED_COLS = _number(
    "delta.dataSkippingNumIndexedCols", 32, -1, "an integer from 0, or -1 for all columns"
)
DATA_SKIPPING_STATS_COLUMNS: TableProperty[ColumnNames | None] = TableProperty(
    "delta.dataSkippingStatsColumns",
    _optional_column_names,
    None,
    _accepts(_optional_column_names),
    "column names separated by commas, with backticks around a name with a dot or a comma",
)
LOG_RETENTION_DURATION = _duration("delta.logRetentionDuration", 30 * MILLISECONDS["day"], "interval 30 days")
DELETED_FILE_RETENTION_DURATION = _duration("delta.deletedFileRetentionDuration", 7 * MILLISECONDS["day"])
ENABLE_CHANGE_DATA_FEED = _boolean("delta.enableChangeDataFeed", False)
ENABLE_DELETION_VECTORS = _boolean("delta.enableDeletionVectors", False)
ENABLE_EXPIRED_LOG_CLEANUP = _boolean("delta.enableExpiredLogCleanup", True)
ENABLE_ICEBERG_COMPAT_V1 = _boolean("delta.enableIcebergCompatV1", False)
ENABLE_ICEBERG_COMPAT_V2 = _boolean("delta.enableIcebergCompatV2", False)
ENABLE_IN_COMMIT_TIMESTAMPS = _boolean("delta.enableInCommitTimestamps", False)
ENABLE_MATERIALIZE_PARTITION_COLUMNS = _boolean("delta.enableMaterializePartitionColumnsFeature", False)
ENABLE_ROW_TRACKING = _boolean("delta.enableRowTracking", False)
ENABLE_TYPE_WIDENING = _boolean("delta.enableTypeWidening", False)
ENABLE_VARIANT_SHREDDING = _boolean("delta.enableVariantShredding", False)
IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP = _number(
    "delta.inCommitTimestampEnablementTimestamp", None, 0, "milliseconds since 1970"
)
IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION = _number(
    "delta.inCommitTimestampEnablementVersion", None, 0, "a table version"
)
ISOLATION_LEVEL: TableProperty[IsolationLevel] = _choice(
    "delta.isolationLevel", "Serializable", "WriteSerializable"
)
MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME = _text(
    "delta.rowTracking.materializedRowCommitVersionColumnName"
)
MATERIALIZED_ROW_ID_COLUMN_NAME = _text("delta.rowTracking.materializedRowIdColumnName")
# Without a value, each writer has a default of its own.
OPTIMIZE_WRITE: TableProperty[bool | None] = TableProperty(
    "delta.autoOptimize.optimizeWrite",
    lambda text: text.lower() == "true",
    None,
    lambda text: text.lower() in ("true", "false"),
    "true or false",
)
PARQUET_FORMAT_VERSION: TableProperty[PageVersion] = TableProperty(
    "delta.parquet.format.version",
    _page_version,
    1,
    _accepts(_page_version),
    "1.0.0 for data pages of version 1, or 2.MINOR.PATCH, such as 2.12.0, for version 2",
)
RANDOMIZE_FILE_PREFIXES = _boolean("delta.randomizeFilePrefixes", False)
RANDOM_PREFIX_LENGTH = _number("delta.randomPrefixLength", 2, 1, "an integer from 1")
ROW_TRACKING_SUSPENDED = _boolean("delta.rowTrackingSuspended", False)
TRUNCATE_HISTORY_RETENTION_DURATION = _duration(
    "delta.dropFeatureTruncateHistory.retentionDuration", MILLISECONDS["day"], "interval 24 hours"
)
WRITE_PARTITION_COLUMNS = _boolean("delta.writePartitionColumnsToParquet", False)
WRITE_STATS_AS_JSON = _boolean("delta.checkpoint.writeStatsAsJson", True)
WRITE_STATS_AS_STRUCT = _boolean("delta.checkpoint.writeStatsAsStruct", False)

PROPERTIES: Mapping[str, TableProperty[Any]] = {
    prop.name: prop for prop in list(globals().values()) if isinstance(prop, TableProperty)
}
"""All of these, by name."""

_OTHER_ROWS: tuple[TableProperty[Any], ...] = (
    _boolean("delta.enableFullRetentionRollback", True),
    _boolean("delta.tuneFileSizesForRewrites", False),
    _duration("delta.checkpointRetentionDuration", None),
    _duration("delta.sampleRetentionDuration", None),
    _duration("delta.setTransactionRetentionDuration", None),
    _number("delta.dataSkippingStringPrefixLength", None, 0, "an integer from 0"),
    _text("delta.targetFileSize"),
)

OTHER_PROPERTIES: Mapping[str, TableProperty[Any]] = {prop.name: prop for prop in _OTHER_ROWS}
