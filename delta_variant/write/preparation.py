"""The first step of a write: what there is already, and what the write is to make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from .. import features, log, properties
from ..actions import Txn
from ..data_file import WriteOptions, check_option
from ..data_types import StructType
from ..errors import ShreddingNotEnabledError, TableExistsError, TableNotFoundError
from ..shredding import ShreddingSchema
from ..snapshot import Snapshot
from ..store import Store
from .target import Target, appended, new_table, now

__all__ = [
    "Mode",
    "Preparation",
    "SchemaMode",
    "TableOptions",
    "application_transaction",
    "existing",
    "is_done",
    "prepare",
]

Mode: TypeAlias = Literal["error", "append", "ignore"]
SchemaMode: TypeAlias = Literal["merge"] | None


@dataclass(frozen=True)
class TableOptions:
    """What a write asks of the table beside its columns."""

    partition_by: str | Sequence[str] | None = None
    schema_mode: SchemaMode = None
    configuration: Mapping[str, str] | None = None
    name: str | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for what is no such option."""
        check_option("schema_mode", self.schema_mode, ("merge", None))

    @property
    def partition_columns(self) -> tuple[str, ...] | None:
        names = self.partition_by
        return (names,) if isinstance(names, str) else None if names is None else tuple(names)


@dataclass(frozen=True)
class Preparation:
    """A write whose files may be written: its table, as it is and as it will be, and what the files are like.

    `snapshot` is None for a table that is created.
    """

    place: Store
    snapshot: Snapshot | None
    target: Target
    options: WriteOptions
    txn: Txn | None


def existing(place: Store, mode: Mode) -> Snapshot | None:
    """Return the table as it is, None where there is none; raises TableExistsError as `mode` asks."""
    check_option("mode", mode, get_args(Mode))
    try:
        snapshot = log.load_snapshot(place)
    except TableNotFoundError:
        return None
    if mode == "error":
        raise TableExistsError(f"there is a Delta table at {place.uri} already: write with mode='append'")
    return snapshot


def application_transaction(txn: tuple[str, int] | None) -> Txn | None:
    """Return the `txn` action of an application's id and version."""
    return None if txn is None else Txn(app_id=txn[0], version=txn[1], last_updated=now())


def is_done(snapshot: Snapshot | None, mode: Mode, txn: Txn | None) -> bool:
    """Say whether there is nothing to write: the table may be left alone, or has the `txn` already."""
    if snapshot is None:
        return False
    known = None if txn is None else snapshot.txns.get(txn.app_id)
    return mode == "ignore" or (known is not None and txn is not None and known.version >= txn.version)


def prepare(
    place: Store,
    snapshot: Snapshot | None,
    columns: StructType,
    options: WriteOptions,
    table: TableOptions,
    txn: Txn | None = None,
) -> Preparation:
    """Return a write of data that has `columns`.

    Raises SchemaError for data that does not fit, UnsupportedFeatureError for what the table demands and this
    version cannot honour, ShreddingNotEnabledError.
    """
    if snapshot is None:
        target = new_table(
            columns,
            table.partition_columns,
            table.configuration,
            table.name,
            table.description,
            options.shredding is not None,
            place.uri,
        )
    else:
        target = appended(snapshot, columns, table.partition_columns, table.configuration, table.schema_mode)
    return Preparation(place, snapshot, target, _allowed(options, target, place.uri), txn)


def _allowed(options: WriteOptions, target: Target, where: str) -> WriteOptions:
    """Return the options with no more shredding and statistics than the table allows (T8, H3)."""
    if not features.shredding_supported(target.protocol):
        options = replace(options, max_stats_paths=0)
    if features.shredding_enabled(target.protocol, target.metadata.configuration):
        return options
    if isinstance(options.shredding, ShreddingSchema):
        raise ShreddingNotEnabledError(
            f"{where} does not enable variantShredding: set {properties.ENABLE_VARIANT_SHREDDING.name}=true "
            "or write with shredding=None"
        )
    return replace(options, shredding=None)
