"""Table properties, one row each (PROTOCOL.md, "Table Properties").

`PROPERTIES` are those that this library honours, `OTHER_PROPERTIES` those that other writers do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from .._checks import check_text
from ..errors import ArgumentTypeError, ProtocolError

__all__ = [
    "APPEND_ONLY",
    "CHECKPOINT_INTERVAL",
    "CHECKPOINT_POLICY",
    "COLUMN_MAPPING_MAX_COLUMN_ID",
    "COLUMN_MAPPING_MODE",
    "DATA_SKIPPING_NUM_INDEXED_COLS",
    "DATA_SKIPPING_STATS_COLUMNS",
    "DELETED_FILE_RETENTION_DURATION",
    "ENABLE_CHANGE_DATA_FEED",
    "ENABLE_DELETION_VECTORS",
    "ENABLE_ICEBERG_COMPAT_V1",
    "ENABLE_ICEBERG_COMPAT_V2",
    "ENABLE_IN_COMMIT_TIMESTAMPS",
    "ENABLE_ROW_TRACKING",
    "ENABLE_TYPE_WIDENING",
    "ENABLE_VARIANT_SHREDDING",
    "IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP",
    "IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION",
    "ISOLATION_LEVEL",
    "MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME",
    "MATERIALIZED_ROW_ID_COLUMN_NAME",
    "OTHER_PROPERTIES",
    "PROPERTIES",
    "RANDOMIZE_FILE_PREFIXES",
    "RANDOM_PREFIX_LENGTH",
    "ROW_TRACKING_SUSPENDED",
    "WRITE_STATS_AS_JSON",
    "WRITE_STATS_AS_STRUCT",
    "ColumnMappingMode",
    "IsolationLevel",
    "TableProperty",
    "check_new",
    "check_row_tracking",
    "check_set",
    "check_texts",
    "column_names",
    "column_names_text",
    "get",
]

T = TypeVar("T")
Word = TypeVar("Word", bound=str)

ColumnMappingMode: TypeAlias = Literal["none", "name", "id"]

IsolationLevel: TypeAlias = Literal["Serializable", "WriteSerializable"]

ColumnNames = tuple[tuple[str, ...], ...]

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
    """A table property: `parse` reads any table's text or raises ValueError, `accepts` judges new text."""

    name: str
    parse: Callable[[str], T]
    default: T
    accepts: Callable[[str], bool]
    expected: str


def get(configuration: Mapping[str, str], prop: TableProperty[T]) -> T:
    """Return the value of `prop` or its default; `ProtocolError` when its text cannot be understood."""
    text = configuration.get(prop.name)
    if text is None:
        return prop.default
    try:
        return prop.parse(text)
    except ValueError as error:
        raise ProtocolError(
            f"the table property {prop.name} is {text!r}: it must be {prop.expected}"
        ) from error


def check_new(configuration: Mapping[str, str]) -> None:
    """Raise `ProtocolError` for a property that a new table must not have, naming key and value.

    A name that begins with `delta.` has to be known; others belong to other programs, and pass.
    """
    for name, text in configuration.items():
        if name.startswith("delta.feature.") or name in ("delta.minReaderVersion", "delta.minWriterVersion"):
            raise ProtocolError(
                f"{name}={text!r} is not a table property: leave it out, "
                "the protocol follows from the schema and the other properties"
            )
        if not name.lower().startswith("delta.constraints."):
            check_set(name, text)
    check_row_tracking(configuration)


def check_row_tracking(configuration: Mapping[str, str]) -> None:
    """Raise `ProtocolError` for properties that both enable and suspend row tracking."""
    if get(configuration, ENABLE_ROW_TRACKING) and get(configuration, ROW_TRACKING_SUSPENDED):
        raise ProtocolError(
            f"{ENABLE_ROW_TRACKING.name} and {ROW_TRACKING_SUSPENDED.name} cannot both be true: rows get no "
            "ids while it is suspended; leave one out"
        )


def check_texts(configuration: object) -> None:
    """Raise ArgumentTypeError unless `configuration` maps names of properties to their texts."""
    if not isinstance(configuration, Mapping):
        raise ArgumentTypeError(f"{configuration!r} are no properties: give a dict of names to texts")
    for name, text in configuration.items():
        check_text("the name of a property", name)
        if not isinstance(text, str):
            raise ArgumentTypeError(f"{name} is {text!r}: the values of properties are text, such as 'true'")
        check_text(name, text)


def check_set(name: str, text: str) -> None:
    """Raise `ProtocolError` for a property that a table cannot be given, naming key and value.

    A name that begins with `delta.` has to be known; others belong to other programs, and pass.
    """
    prop = PROPERTIES.get(name) or OTHER_PROPERTIES.get(name)
    if prop is not None:
        _check_allowed(prop, text)
    elif name.lower().startswith("delta."):
        by_lower = {each.lower(): each for each in (*PROPERTIES, *OTHER_PROPERTIES)}
        near = get_close_matches(name.lower(), by_lower, 1)
        proposal = f": did you mean {by_lower[near[0]]}?" if near else ""
        raise ProtocolError(f"{name} is no table property that Delta or this version knows{proposal}")


def _check_allowed(prop: TableProperty[Any], text: str) -> None:
    if not prop.accepts(text):
        raise ProtocolError(f"the table property {prop.name} cannot be {text!r}: it must be {prop.expected}")


def _boolean(name: str, default: bool) -> TableProperty[bool]:
    # The protocol takes any other text than "true" for off; only new values are held to the two words.
    return TableProperty(
        name=name,
        parse=lambda text: text.lower() == "true",
        default=default,
        accepts=lambda text: text.lower() in ("true", "false"),
        expected="true or false",
    )


def _number(name: str, default: T, least: int, allowed: str) -> TableProperty[int | T]:
    def parse(text: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,19}", text) is None or int(text) < least:
            raise ValueError(text)
        return int(text)

    return TableProperty(name, parse, default, _parses(parse), allowed)


def _word(name: str, default: Word, *others: Word) -> TableProperty[Word]:
    words = (default, *others)

    def parse(text: str) -> Word:
        return words[words.index(text)]

    return TableProperty(name, parse, default, _parses(parse), f"one of {', '.join(words)}")


def _text(name: str) -> TableProperty[str | None]:
    return TableProperty(name, str, None, bool, "a name")


def column_names(text: str) -> ColumnNames:
    """Return the names in text such as "a, s.b, `x.y`", each with its parts; `ValueError` for other text."""
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
    """Return the text from which `column_names` reads the same names."""
    return ",".join(".".join(_name_part(part) for part in name) for name in names)


def _name_part(part: str) -> str:
    return part if re.fullmatch(r"\w+", part, re.ASCII) else "`" + part.replace("`", "``") + "`"


def _optional_column_names(text: str) -> ColumnNames | None:
    return column_names(text) if text.strip() else ()


def _milliseconds(text: str) -> int:
    found = INTERVAL.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return sum(int(number) * MILLISECONDS[unit.lower()] for number, unit in DURATION.findall(found[1]))


def _duration(name: str) -> TableProperty[int | None]:
    allowed = "a length of time in weeks or less, such as interval 1 week"
    return TableProperty(name, _milliseconds, None, _parses(_milliseconds), allowed)


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def parses(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return parses


APPEND_ONLY = _boolean("delta.appendOnly", False)
CHECKPOINT_INTERVAL = _number("delta.checkpointInterval", 10, 1, "a whole number from 1")
CHECKPOINT_POLICY = _word("delta.checkpointPolicy", "classic", "v2")
COLUMN_MAPPING_MAX_COLUMN_ID = _number("delta.columnMapping.maxColumnId", 0, 0, "a whole number from 0")
COLUMN_MAPPING_MODE: TableProperty[ColumnMappingMode] = _word(
    "delta.columnMapping.mode", "none", "name", "id"
)
DATA_SKIPPING_NUM_INDEXED_COLS = _number(
    "delta.dataSkippingNumIndexedCols", 32, -1, "a whole number from 0, or -1 for all columns"
)
DATA_SKIPPING_STATS_COLUMNS: TableProperty[ColumnNames | None] = TableProperty(
    "delta.dataSkippingStatsColumns",
    _optional_column_names,
    None,
    _parses(_optional_column_names),
    "column names with commas between them, backticks around a name with a dot or a comma",
)
DELETED_FILE_RETENTION_DURATION = TableProperty(
    "delta.deletedFileRetentionDuration",
    _milliseconds,
    7 * MILLISECONDS["day"],
    _parses(_milliseconds),
    "a length of time in weeks or less, such as interval 1 week",
)
ENABLE_CHANGE_DATA_FEED = _boolean("delta.enableChangeDataFeed", False)
ENABLE_DELETION_VECTORS = _boolean("delta.enableDeletionVectors", False)
ENABLE_ICEBERG_COMPAT_V1 = _boolean("delta.enableIcebergCompatV1", False)
ENABLE_ICEBERG_COMPAT_V2 = _boolean("delta.enableIcebergCompatV2", False)
ENABLE_IN_COMMIT_TIMESTAMPS = _boolean("delta.enableInCommitTimestamps", False)
ENABLE_ROW_TRACKING = _boolean("delta.enableRowTracking", False)
ENABLE_TYPE_WIDENING = _boolean("delta.enableTypeWidening", False)
ENABLE_VARIANT_SHREDDING = _boolean("delta.enableVariantShredding", False)
IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP = _number(
    "delta.inCommitTimestampEnablementTimestamp", None, 0, "milliseconds since 1970"
)
IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION = _number(
    "delta.inCommitTimestampEnablementVersion", None, 0, "a version of the table"
)
ISOLATION_LEVEL: TableProperty[IsolationLevel] = _word(
    "delta.isolationLevel", "Serializable", "WriteSerializable"
)
MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME = _text(
    "delta.rowTracking.materializedRowCommitVersionColumnName"
)
MATERIALIZED_ROW_ID_COLUMN_NAME = _text("delta.rowTracking.materializedRowIdColumnName")
RANDOMIZE_FILE_PREFIXES = _boolean("delta.randomizeFilePrefixes", False)
RANDOM_PREFIX_LENGTH = _number("delta.randomPrefixLength", 2, 1, "a whole number from 1")
ROW_TRACKING_SUSPENDED = _boolean("delta.rowTrackingSuspended", False)
WRITE_STATS_AS_JSON = _boolean("delta.checkpoint.writeStatsAsJson", True)
WRITE_STATS_AS_STRUCT = _boolean("delta.checkpoint.writeStatsAsStruct", False)

PROPERTIES: Mapping[str, TableProperty[Any]] = {
    prop.name: prop
    for prop in (
        APPEND_ONLY,
        CHECKPOINT_INTERVAL,
        CHECKPOINT_POLICY,
        COLUMN_MAPPING_MAX_COLUMN_ID,
        COLUMN_MAPPING_MODE,
        DATA_SKIPPING_NUM_INDEXED_COLS,
        DATA_SKIPPING_STATS_COLUMNS,
        DELETED_FILE_RETENTION_DURATION,
        ENABLE_CHANGE_DATA_FEED,
        ENABLE_DELETION_VECTORS,
        ENABLE_ICEBERG_COMPAT_V1,
        ENABLE_ICEBERG_COMPAT_V2,
        ENABLE_IN_COMMIT_TIMESTAMPS,
        ENABLE_ROW_TRACKING,
        ENABLE_TYPE_WIDENING,
        ENABLE_VARIANT_SHREDDING,
        IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
        ISOLATION_LEVEL,
        MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME,
        MATERIALIZED_ROW_ID_COLUMN_NAME,
        RANDOMIZE_FILE_PREFIXES,
        RANDOM_PREFIX_LENGTH,
        ROW_TRACKING_SUSPENDED,
        WRITE_STATS_AS_JSON,
        WRITE_STATS_AS_STRUCT,
    )
}

_OTHER_ROWS: tuple[TableProperty[Any], ...] = (
    _boolean("delta.autoOptimize", False),
    _boolean("delta.autoOptimize.optimizeWrite", False),
    _boolean("delta.enableExpiredLogCleanup", True),
    _boolean("delta.enableFullRetentionRollback", True),
    _boolean("delta.tuneFileSizesForRewrites", False),
    _duration("delta.checkpointRetentionDuration"),
    _duration("delta.dropFeatureTruncateHistory.retentionDuration"),
    _duration("delta.logRetentionDuration"),
    _duration("delta.sampleRetentionDuration"),
    _duration("delta.setTransactionRetentionDuration"),
    _number("delta.dataSkippingStringPrefixLength", None, 0, "a whole number from 0"),
    _text("delta.parquet.compression.codec"),
    _text("delta.parquet.format.version"),
    _text("delta.targetFileSize"),
    _word("delta.autoOptimize.autoCompact", "false", "true", "auto", "legacy"),
)

OTHER_PROPERTIES: Mapping[str, TableProperty[Any]] = {prop.name: prop for prop in _OTHER_ROWS}
