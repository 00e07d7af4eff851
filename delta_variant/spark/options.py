"""Parse the options of Spark's data source, which are text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UnsupportedFeatureError

Parse = Callable[[str], Any]

STORAGE = "storage."
# Options that Spark itself adds.
SPARK_OPTIONS = frozenset({"checkpointlocation", "queryname", "__v1tabledistribution"})
# Options that Spark adds where SQL creates a table of its catalog.
CATALOG_OPTIONS = frozenset({"owner", "location"})


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _names(text: str) -> tuple[str, ...]:
    found = json.loads(text) if text.startswith("[") else [name.strip() for name in text.split(",")]
    return tuple(str(name) for name in found)


def _columns(text: str) -> Any:
    return json.loads(text) if text[:1] in ("{", "[") else _names(text)


def _positive(value: str | int) -> int:
    if (number := int(value)) < 1:
        raise ValueError
    return number


def _not_negative(text: str) -> int:
    if (number := int(text)) < 0:
        raise ValueError
    return number


def size_of(text: str) -> int:
    """Return a size as Spark writes it, such as `64m` or `64MB`; units are powers of 1024."""
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", text.strip().lower())
    if found is None:
        raise ValueError
    return int(found[1]) << 10 * " kmgtp".index(found[2] or " ")


def _fixed(value: str, reason: str) -> Parse:
    """Return the parser of an option of Delta that may only have the value of what this package does."""

    def parse(text: str) -> None:
        if text.lower() != value:
            raise UnsupportedFeatureError(reason)

    return parse


RANGE: Mapping[str, Parse] = {
    "starting_version": int,
    "starting_timestamp": str,
    "ending_version": int,
    "ending_timestamp": str,
}
READ: Mapping[str, Parse] = {
    "path": str,
    "where": str,
    "columns": _columns,
    "version": int,
    "timestamp": str,
    "timezone": str,
    "on_conflict": str,
    "read_change_feed": _flag,
    **RANGE,
}
STREAM_READ: Mapping[str, Parse] = {
    **{name: READ[name] for name in ("path", "where", "columns", "timezone", "on_conflict")},
    "starting_version": lambda text: text if text == "latest" else _not_negative(text),
    "starting_timestamp": str,
    "max_files_per_trigger": _positive,
    "max_bytes_per_trigger": lambda text: _positive(size_of(text)),
    "read_change_feed": _flag,
    "ignore_deletes": _flag,
    "ignore_changes": _flag,
    "skip_change_commits": _flag,
    "fail_on_data_loss": _fixed(
        "true",
        "a stream cannot continue after commits or files that were removed: set failOnDataLoss to true, or "
        "start a query with a new checkpoint and startingVersion",
    ),
}
TEXTS = (
    *("path", "where", "replace_where", "schema_mode", "timezone", "name", "description", "user_metadata"),
    *("on_invalid", "rejects", "numeric", "floats", "duplicate_keys"),
    *("compression", "compatibility", "residual_rows", "txn_app_id"),
)
NUMBERS = ("target_file_size", "max_variant_stats_paths", "max_variant_stats_bytes", "txn_version")
FLAGS = ("annotate", "spark_compatible", "merge_schema", "overwrite_schema")
WRITE: Mapping[str, Parse] = {
    **dict.fromkeys(TEXTS, str),
    **dict.fromkeys(NUMBERS, int),
    **dict.fromkeys(FLAGS, _flag),
    **dict.fromkeys(("variant_columns", "partition_by"), _names),
    "shredding": {"infer": "infer", "none": None}.__getitem__,
    "configuration": json.loads,
    "optimize_write": _fixed(
        "false",
        "Spark hands a Python data source the partitions as they are, so it cannot optimize a write: set "
        "optimizeWrite to false, or write to a Table with SparkEngine(spark, optimize_write=True)",
    ),
    "partition_overwrite_mode": str.lower,
    "data_change": _fixed(
        "true",
        "a write always changes data: set dataChange to true, or rearrange the rows with optimize of a Table",
    ),
}
STREAM_WRITE: Mapping[str, Parse] = {
    name: parse
    for name, parse in WRITE.items()
    if name not in ("txn_version", "where", "replace_where", "overwrite_schema", "partition_overwrite_mode")
}

LOCATIONS = ("path", "rejects")
"""The options with a path or a URI."""

TIMESTAMPS = ("timestamp", "starting_timestamp", "ending_timestamp")
"""The options with a time, which is in the time zone of the option `timezone` if it has no offset."""

# Names of options in Delta on Spark that differ from ours by more than case and underscores.
DELTA_NAMES: Mapping[str, str] = {
    "versionasof": "version",
    "timestampasof": "timestamp",
    "readchangedata": "read_change_feed",
}
SCHEMA_LOG = "restart the query after a change of the schema, which needs no log of schemas"
ROWS = "replace the rows of a predicate with replaceWhere, or of keys with merge of a Table"
INTERNAL = "Spark sets it for tables of its catalog"
# Options that cannot be set, and why or what to do instead.
UNSUPPORTED: Mapping[str, str] = {
    "excluderegex": "select files with the option where, by partition columns or statistics",
    "ignorefiledeletion": "set ignoreDeletes, which replaces it",
    "schematrackinglocation": SCHEMA_LOG,
    "schemalocation": SCHEMA_LOG,
    "streamingsourcetrackingid": SCHEMA_LOG,
    "allowsourcecolumndrop": SCHEMA_LOG,
    "allowsourcecolumnrename": SCHEMA_LOG,
    "allowsourcecolumntypechange": SCHEMA_LOG,
    "replaceon": ROWS,
    "replaceusing": ROWS,
    "targetalias": ROWS,
    "usenullintolerantequalitywithdpo": ROWS,
    "maxrecordsperfile": "limit the size of files with target_file_size",
    "parquet.writer.version": "set the table property delta.parquet.format.version",
    "spark.sql.parquet.outputtimestamptype": "timestamps are stored in microseconds",
    "writepartitioncolumns": "partition columns are stored in the log, and not in data files",
    "v1saveastableoverwrite": INTERNAL,
    "pushfilters": "Spark mixes up the filters of two uses of a DataFrame; select rows with the option where",
}


def parse_options(given: Mapping[str, str], known: Mapping[str, Parse]) -> dict[str, Any]:
    """Return options by name; `storage_options` has those with the prefix `storage.`, or is None.

    Case and underscores do not matter, so that `startingVersion`, which is the name in Delta on Spark, is
    `starting_version`.

    Delta's names are known as well. An option of Delta that cannot have its meaning here is rejected.

    Raises ValueError for an unknown option, and for an invalid value. Raises UnsupportedFeatureError for an
    option or a value that cannot be supported, and for a table of Spark's catalog.
    """
    if CATALOG_OPTIONS & {key.lower() for key in given}:
        raise UnsupportedFeatureError(
            "cannot create a table of Spark's catalog because Spark does not pass its path to Python data "
            "sources when it is read: create a view, with CREATE TEMPORARY VIEW name USING delta_variant "
            "OPTIONS (path '…')"
        )
    found: dict[str, Any] = {"storage_options": _storage_options(given)}
    names = {_plain(name): name for name in known}
    names |= {plain: name for plain, name in DELTA_NAMES.items() if name in known}
    for key, text in given.items():
        if key.lower().startswith(STORAGE) or key.lower() in SPARK_OPTIONS:
            continue
        if (reason := UNSUPPORTED.get(_plain(key))) is not None:
            raise UnsupportedFeatureError(f"the option {key!r} is not supported: {reason}")
        if (name := names.get(_plain(key))) is None:
            raise ValueError(f"unknown option {key.lower()!r}: expected one of {', '.join(sorted(known))}")
        if name in found:
            raise ValueError(f"the option {name!r} is set twice: set it once")
        found[name] = _parse(name, text, known[name])
    if "path" not in found:
        raise ValueError(
            "delta_variant reads and writes one table: pass its path to .load(path) or .save(path)"
        )
    return _with_own_names(found)


def _with_own_names(found: dict[str, Any]) -> dict[str, Any]:
    """Return options with `where` and `schema_mode` in place of those of Delta."""
    if "replace_where" in found:
        if "where" in found:
            raise ValueError("the options where and replace_where exclude each other: set one")
        found["where"] = found.pop("replace_where")
    names = [name for name in ("merge_schema", "overwrite_schema") if found.pop(name, False)]
    if len(names) + ("schema_mode" in found) > 1:
        raise ValueError(
            "the options schema_mode, merge_schema and overwrite_schema exclude each other: set one"
        )
    return {**found, **({"schema_mode": names[0].removesuffix("_schema")} if names else {})}


def _storage_options(given: Mapping[str, str]) -> dict[str, str] | None:
    prefixed = {key.lower(): value for key, value in given.items()}
    return {
        key.removeprefix(STORAGE): value for key, value in prefixed.items() if key.startswith(STORAGE)
    } or None


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _parse(name: str, text: str, parse: Parse) -> Any:
    try:
        return parse(text)
    except (ValueError, KeyError) as error:
        raise ValueError(f"invalid value {text!r} of the option {name!r}") from error
