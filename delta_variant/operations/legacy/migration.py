"""Migration of files and folders from the legacy layout to the current one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ..._checks import check_option, check_path
from ..._options import Compression
from ..._progress import advance, begin
from ...data_file.options import FileOptions, Shredding, WriteOptions
from ...data_file.writer import WrittenFile
from ...errors import DataFileError, error_location
from ...storage.inputs import is_hidden
from ...storage.uris import local_location
from ...variant.shredding import ShreddingSchema
from .files import FilePath, LegacyFile, open_legacy_file, read_batches, staging_folder, write_file

NewShredding: TypeAlias = "Shredding | Literal['same']"


@dataclass(frozen=True)
class MigratedFile:
    """A file of a migration.

    Attributes:
        path: The path relative to the source and to the target.
        rows: The number of rows.
        bytes_before: The size of the source file, in bytes.
        bytes: The size of the new file, in bytes.
        columns: The columns that were in the legacy layout. A file without any was copied.
        written: The new file with its shredding schemas, None for a copied file.
    """

    path: str
    rows: int
    bytes_before: int
    bytes: int
    columns: tuple[str, ...] = ()
    written: WrittenFile | None = None


@dataclass(frozen=True)
class Migration:
    """The result of a migration.

    Attributes:
        files: The Parquet files of the target.
        others: The other files of the source, which were not copied.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> from delta_variant.operations.legacy import write_legacy_file
        >>> data = pa.table({"event": dv.parse_json(['{"id": 7}'])})
        >>> _ = write_legacy_file("old.parquet", data, {"event": dv.ShreddingSchema.of({"id": pa.int64()})})
        >>> migration = dv.migrate_legacy("old.parquet", "new.parquet")
        >>> [file.rows for file in migration.files], migration.others
        ([1], ())
    """

    files: tuple[MigratedFile, ...]
    others: tuple[str, ...] = ()


def migrate_legacy(
    source: FilePath,
    target: FilePath,
    *,
    shredding: NewShredding = "same",
    compat: bool = False,
    compression: Compression = "zstd",
) -> Migration:
    """Rewrite a Parquet file in the legacy layout, or a folder of such files, in the current layout.

    Values, row order, other columns and the relative paths of files stay the same. A Parquet file without a
    legacy column is copied. The target appears only when the migration is complete; after an error it is
    unchanged. The source is not modified.

    Args:
        source: A local Parquet file or a folder.
        target: A path that does not exist, or an empty folder.
        shredding: How to shred the columns: `"same"` keeps the schema of the file, `"infer"` infers a schema
            from the values, a `ShreddingSchema` is used as given, and None does not shred. Variants within
            structs, lists and maps are never shredded.
        compat: As for `unshred_legacy`.
        compression: The Parquet compression codec of the new files.

    Returns:
        The migrated and copied files.

    Raises:
        DataFileError: The source has no column in the legacy layout, is a Delta table, or cannot be read; or
            the target exists already.
        ShreddingError: A column violates the rules of the legacy layout.
        ConflictingValueError: Two columns of a row contradict each other.

    Example:
        >>> import delta_variant as dv, pyarrow as pa, tempfile
        >>> from delta_variant.operations.legacy import write_legacy_file
        >>> folder = tempfile.mkdtemp()
        >>> data = pa.table({"event": dv.parse_json(['{"id": 7}'])})
        >>> schema = dv.ShreddingSchema.of({"id": pa.int64()})
        >>> _ = write_legacy_file(f"{folder}/old.parquet", data, {"event": schema})
        >>> migration = dv.migrate_legacy(f"{folder}/old.parquet", f"{folder}/new.parquet")
        >>> [file.columns for file in migration.files]
        [('event',)]
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
            f"{source} has no column in the legacy layout: there is nothing to migrate", file=str(source)
        )
    with staging_folder(target) as staging:
        begin("migrating", files=len(files), bytes_=sum(file.path.stat().st_size for file in files))
        migrated = []
        for file in files:
            migrated.append(_migrate(file, staging, shredding, compat, compression))
            advance(files=1, bytes_=migrated[-1].bytes_before, rows=migrated[-1].rows)
        _publish(staging, source, target)
    return Migration(tuple(migrated), tuple(others))


def _check_locations(source: Path, target: Path) -> None:
    if not source.exists():
        raise DataFileError(f"there is no file or folder {source}", file=str(source))
    if target == source or source in target.parents:
        raise DataFileError(f"the target {target} is within the source: pass another path", file=str(target))
    is_empty_folder = source.is_dir() and target.is_dir() and not any(target.iterdir())
    if target.exists() and not is_empty_folder:
        raise DataFileError(f"{target} exists already: pass the path of a new target", file=str(target))


def _list_files(source: Path) -> tuple[list[LegacyFile], list[str]]:
    """Return the Parquet files of the source, and the names of its other files that are not hidden."""
    if source.is_file():
        return [open_legacy_file(source.parent, source.name)], []
    if any(source.rglob("_delta_log")):
        raise DataFileError(
            f"cannot migrate {source} because it contains a Delta table, whose log determines the valid "
            "files and rows: copy those files to another folder and migrate that",
            file=str(source),
        )
    paths = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    names = [path.as_posix() for path in paths if not any(map(is_hidden, path.parts))]
    files = [open_legacy_file(source, name) for name in names if name.endswith(".parquet")]
    if not files:
        raise DataFileError(f"{source} has no files with names that end in .parquet", file=str(source))
    return files, [name for name in names if not name.endswith(".parquet")]


def _migrate(
    file: LegacyFile, folder: Path, shredding: NewShredding, compat: bool, compression: Compression
) -> MigratedFile:
    size = file.path.stat().st_size
    if not file.columns:
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, folder / file.name)
        return MigratedFile(file.name, file.rows, size, size)
    same: dict[tuple[str, ...], ShreddingSchema] = {(name,): schema for name, schema in file.schemas.items()}
    options = WriteOptions(
        shredding=same if shredding == "same" else shredding, files=FileOptions(compression=compression)
    )
    _, batches = read_batches(file, compat=compat)
    with error_location(file=file.name):
        written = write_file(folder, file.name, batches, file.schemas, options)
    return MigratedFile(file.name, written.rows, size, written.bytes, file.columns, written)


def _publish(staging: Path, source: Path, target: Path) -> None:
    if source.is_file():
        # A link fails if the target exists. A rename would replace it.
        os.link(staging / source.name, target)
        return
    if target.exists():
        target.rmdir()
    staging.rename(target)
