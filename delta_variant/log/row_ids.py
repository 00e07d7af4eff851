"""Assign row ids to new files (PROTOCOL.md, "Row Tracking")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ..errors import MalformedLogError, ProtocolError
from ..protocol.actions import ROW_TRACKING_DOMAIN, Action, AddFile, DomainMetadata, decode_path

__all__ = [
    "NO_ROW_IDS",
    "assign_row_ids",
    "read_high_water_mark",
]

NO_ROW_IDS = -1
"""The high water mark of a table that has not assigned a row id."""


class _HighWaterMark(msgspec.Struct, rename="camel"):
    row_id_high_water_mark: int


class _NumRecords(msgspec.Struct, rename="camel"):
    num_records: int


def assign_row_ids(adds: Iterable[AddFile], version: int, high_water_mark: int) -> Iterator[Action]:
    """Yield the files of a version, each with row ids, and the record of the greatest id if it is a new one.

    A file that has row ids keeps them. Raises ProtocolError for any other file without `numRecords`.
    """
    greatest = high_water_mark
    for add in adds:
        if add.base_row_id is None:
            add = msgspec.structs.replace(add, base_row_id=greatest + 1, default_row_commit_version=version)
            greatest += _num_records(add)
        yield add
    if greatest > high_water_mark:
        yield _record(greatest)


def _record(high_water_mark: int) -> DomainMetadata:
    text = msgspec.json.encode(_HighWaterMark(high_water_mark)).decode()
    return DomainMetadata(domain=ROW_TRACKING_DOMAIN, configuration=text, removed=False)


def read_high_water_mark(actions: Iterable[Action], known: int) -> int:
    """Return the greatest row id that actions record, or `known` if that is greater.

    Raises MalformedLogError for a record without `rowIdHighWaterMark`.
    """
    for action in actions:
        if isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN and not action.removed:
            try:
                mark = msgspec.json.decode(action.configuration, type=_HighWaterMark).row_id_high_water_mark
            except msgspec.MsgspecError as error:
                raise MalformedLogError(
                    f"cannot read rowIdHighWaterMark in the domain {ROW_TRACKING_DOMAIN}: {error}"
                ) from error
            known = max(known, mark)
    return known


def _num_records(add: AddFile) -> int:
    try:
        return msgspec.json.decode(add.stats or "", type=_NumRecords).num_records
    except msgspec.MsgspecError as error:
        raise ProtocolError(
            f"the statistics of {add.path} lack numRecords, which a table with rowTracking needs",
            file=decode_path(add.path),
        ) from error
