"""Work that is seen when it is done, or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import DataFileError

__all__ = ["staging_folder"]


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """Give a new folder beside `target` for what is not finished; it is removed in the end.

    Raises DataFileError when there is one: it also keeps two runs with one target apart.
    """
    folder = target.with_name(f".{target.name}.unfinished")
    absent = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise DataFileError(
            f"{folder} is there: another run is at work on {target}, or was killed; then delete that folder"
        ) from error
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            for parent in absent:
                parent.rmdir()
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
