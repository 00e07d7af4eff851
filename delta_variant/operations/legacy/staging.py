"""Staging of output that becomes visible as a whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import DataFileError

__all__ = ["staging_folder"]


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """Create a folder next to `target` for unfinished output, and remove it at the end.

    Raises DataFileError if the folder exists, so that two runs cannot write to the same target.
    """
    folder = target.with_name(f".{target.name}.unfinished")
    absent = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise DataFileError(
            f"{folder} exists already: another run is writing {target}, or was killed; delete the folder if "
            "no run is active",
            file=str(target),
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
