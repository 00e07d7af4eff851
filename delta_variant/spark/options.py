"""Parse the options of Spark's data source, which are text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..data_file.options import FileOptions, JsonOptions, WriteOptions
from ..errors import UnsupportedFeatureError
from ..operations.write.preparation import TableOptions

__all__ = [
    "RANGE",
    "READ",
    "STREAM_READ",
    "STREAM_WRITE",
    "WRITE",
    "parse_options",
    "table_options",
    "write_options",
]

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


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


def _bytes(text: str) -> int:
    """Return a size as Spark writes it, such as `64m` or `64MB`; units are powers of 1024."""
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", text.strip().lower())
    if found is None:
        raise ValueError
    return _positive(found[1]) << 10 * " kmgtp".index(found[2] or " ")


def _shredding(text: str) -> str | None:
    return {"infer": "infer", "none": None}[text]


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
    "timezone": str,
    "on_conflict": str,
    "push_filters": _flag,
    "read_change_feed": _flag,
    **RANGE,
}
STREAM_READ: Mapping[str, Parse] = {
    **{name: READ[name] for name in ("path", "where", "columns", "timezone", "on_conflict")},
    "starting_version": lambda text: text if text == "latest" else int(text),
    "starting_timestamp": str,
    "max_files_per_trigger": _positive,
    "max_bytes_per_trigger": _bytes,
    "read_change_feed": _flag,
    "ignore_deletes": _flag,
    "ignore_changes": _flag,
    "skip_change_commits": _flag,
}
WRITE: Mapping[str, Parse] = {
    "path": str,
    "variant_columns": _names,
    "partition_by": _names,
    "schema_mode": str,
    "where": str,
    "timezone": str,
    "shredding": _shredding,
    "on_invalid": str,
    "rejects": str,
    "numeric": str,
    "floats": str,
    "duplicate_keys": str,
    "target_file_size": int,
    "compression": str,
    "annotate": _flag,
    "compatibility": str,
    "spark_compatible": _flag,
    "max_variant_stats_paths": int,
    "max_variant_stats_bytes": int,
    "odd_rows": str,
    "configuration": json.loads,
    "name": str,
    "description": str,
    "txn_app_id": str,
    "txn_version": int,
    "user_metadata": str,
}
STREAM_WRITE: Mapping[str, Parse] = {
    name: parse for name, parse in WRITE.items() if name not in ("txn_version", "where")
}


def parse_options(given: Mapping[str, str], known: Mapping[str, Parse]) -> dict[str, Any]:
    """Return options by name; `storage_options` has those with the prefix `storage.`, or is None.

    Case and underscores do not matter, so that `startingVersion`, which is the name in Delta on Spark, is
    `starting_version`.

    Raises ValueError for an unknown option, and for an invalid value. Raises UnsupportedFeatureError for a
    table of Spark's catalog.
    """
    if CATALOG_OPTIONS & {key.lower() for key in given}:
        raise UnsupportedFeatureError(
            "cannot create a table of Spark's catalog because Spark does not pass its path to Python data "
            "sources when it is read: create a view, with CREATE TEMPORARY VIEW name USING delta_variant "
            "OPTIONS (path '…')"
        )
    found: dict[str, Any] = {"storage_options": _storage_options(given)}
    names = {_plain(name): name for name in known}
    for key, text in given.items():
        if key.lower().startswith(STORAGE) or key.lower() in SPARK_OPTIONS:
            continue
        if (name := names.get(_plain(key))) is None:
            raise ValueError(f"unknown option {key.lower()!r}: expected one of {', '.join(sorted(known))}")
        if name in found:
            raise ValueError(f"the option {name!r} is set twice: set it once")
        found[name] = _parse(name, text, known[name])
    if "path" not in found:
        raise ValueError(
            "delta_variant reads and writes one table: pass its path to .load(path) or .save(path)"
        )
    return found


def write_options(options: Mapping[str, Any]) -> WriteOptions:
    """Return the options of data files among options of WRITE."""
    of_files, of_json = (
        {name: value for name, value in options.items() if name in kind.__dataclass_fields__}
        for kind in (FileOptions, JsonOptions)
    )
    return WriteOptions(options.get("shredding", "infer"), FileOptions(**of_files), JsonOptions(**of_json))


def table_options(options: Mapping[str, Any], **more: Any) -> TableOptions:
    """Return the options of the table among options of WRITE, and `more`."""
    names = TableOptions.__dataclass_fields__
    return TableOptions(**{name: value for name, value in options.items() if name in names}, **more)


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
