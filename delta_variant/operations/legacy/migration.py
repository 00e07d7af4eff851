"""Files and folders in the draft's layout, written anew in the present one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ..._checks import check_option, check_path
from ...data_file.options import Compression, Shredding, WriteOptions
from ...data_file.writer import WrittenFile
from ...errors import DataFileError, error_location
from ...storage.store import local_location
from ...variant.shredding import ShreddingSchema
from .files import FilePath, LegacyFile, open_legacy_file, read_batches, write_file
from .staging import staging_folder

__all__ = ["MigratedFile", "Migration", "migrate_draft"]

NewShredding: TypeAlias = "Shredding | Literal['same']"


@dataclass(frozen=True)
class MigratedFile:
    """A file of a migration; `path` is relative to the source, and to the target.

    `columns` are those that were in the draft's layout, and `written` says how they are shredded now. A file
    without any was copied.
    """

    path: str
    rows: int
    bytes_before: int
    bytes: int
    columns: tuple[str, ...] = ()
    written: WrittenFile | None = None


@dataclass(frozen=True)
class Migration:
    """What a migration did; `others` are the files of the source that are not Parquet, which stay behind."""

    files: tuple[MigratedFile, ...]
    others: tuple[str, ...] = ()


def migrate_draft(
    source: FilePath,
    target: FilePath,
    *,
    shredding: NewShredding = "same",
    compat: bool = False,
    compression: Compression = "zstd",
) -> Migration:
    """Write a Parquet file in the draft's layout, or a folder of them, anew in the present layout.

    Values, rows, their order and the other columns stay as they are, and so do the relative names of files; a
    Parquet file without such a column is copied. Columns are shredded by the `same` schema as before, by one
    that is inferred, by a given one, or not at all (None); Variants within structs, lists and maps are not
    shredded. `compat` is that of `unshred_legacy`.

    `target` must not exist, or be an empty folder, and is there when all is done; after an error it is as
    before. Raises DataFileError where source or target will not do, and what `read_legacy_file` raises.
    """
    if not isinstance(shredding, ShreddingSchema):
        check_option("shredding", shredding, ("same", "infer", None))
    check_path("source", source)
    check_path("target", target)
    source = local_location("the source of a migration", source).resolve()
    target = local_location("the target of a migration", target).resolve()
    _check_locations(source, target)
    files, others = _list_files(source)
    if not any(file.columns for file in files):
        raise DataFileError(
            f"{source} has no column in the layout of the older Spark draft: there is nothing to migrate"
        )
    with staging_folder(target) as staging:
        migrated = [_migrate(file, staging, shredding, compat, compression) for file in files]
        _publish(staging, source, target)
    return Migration(tuple(migrated), tuple(others))


def _check_locations(source: Path, target: Path) -> None:
    if not source.exists():
        raise DataFileError(f"there is no file or folder {source}")
    if target == source or source in target.parents:
        raise DataFileError(f"the target {target} is the source or lies in it: name another place")
    is_room = source.is_dir() and target.is_dir() and not any(target.iterdir())
    if target.exists() and not is_room:
        raise DataFileError(f"{target} exists already: name a target that does not")


def _list_files(source: Path) -> tuple[list[LegacyFile], list[str]]:
    """Return a Parquet file or those of a folder, and the names of its other files that are not hidden."""
    if source.is_file():
        return [open_legacy_file(source.parent, source.name)], []
    if any(source.rglob("_delta_log")):
        raise DataFileError(
            f"{source} is or holds a Delta table, and its log says which files and rows count: copy those "
            "files to another folder, and migrate that"
        )
    paths = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    names = [path.as_posix() for path in paths if not any(map(_is_hidden, path.parts))]
    files = [open_legacy_file(source, name) for name in names if name.endswith(".parquet")]
    if not files:
        raise DataFileError(f"{source} has no files whose names end in .parquet")
    return files, [name for name in names if not name.endswith(".parquet")]


def _is_hidden(part: str) -> bool:
    # As Spark has it: `_day=1` is a partition, `_SUCCESS` is not data.
    return part.startswith(".") or (part.startswith("_") and "=" not in part)


def _migrate(
    file: LegacyFile, folder: Path, shredding: NewShredding, compat: bool, compression: Compression
) -> MigratedFile:
    size = file.path.stat().st_size
    if not file.columns:
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, folder / file.name)
        return MigratedFile(file.name, file.rows, size, size)
    same: dict[tuple[str, ...], ShreddingSchema] = {(name,): schema for name, schema in file.schemas.items()}
    options = WriteOptions(shredding=same if shredding == "same" else shredding, compression=compression)
    _, batches = read_batches(file, compat=compat)
    with error_location(file=file.name):
        written = write_file(folder, file.name, batches, file.schemas, options)
    return MigratedFile(file.name, written.rows, size, written.bytes, file.columns, written)


def _publish(staging: Path, source: Path, target: Path) -> None:
    if source.is_file():
        # A link fails where there is a file already; a rename would replace it.
        os.link(staging / source.name, target)
        return
    if target.exists():
        target.rmdir()
    staging.rename(target)
