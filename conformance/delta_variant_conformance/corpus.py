"""Load cases from folders and archives: of this project, and of parquet-testing."""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import parquet_testing
from .case import Case, InvalidCaseError
from .case import load_cases as load_folder

__all__ = ["find_own_cases", "load_cases", "open_cases"]

FOLDER = "protocol_fixtures"

UNPACKING_ERRORS = (OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error)


def find_own_cases() -> Path:
    """Return the folder of this project's cases: in this package, or for an editable one in its clone."""
    package = Path(__file__).resolve().parent
    return package if (package / "cases").is_dir() else package.parents[1] / FOLDER


def load_cases(folders: Iterable[Path]) -> list[Case]:
    """Return the cases of all folders in order; raises InvalidCaseError, also for a duplicate id."""
    cases = [case for folder in folders for case in _load_folder(folder)]
    if not cases:
        raise InvalidCaseError("the folders contain no cases")
    for name, times in Counter(case.id for case in cases).items():
        if times > 1:
            raise InvalidCaseError(f"{times} cases have the id {name!r}")
    return cases


@contextmanager
def open_cases(paths: Iterable[Path]) -> Iterator[list[Case]]:
    """Load the cases of folders and archives, whose unpacked files exist until the context ends.

    Raises InvalidCaseError as `load_cases` does, and for a file that is not an archive.
    """
    with tempfile.TemporaryDirectory(prefix="cases-") as scratch:
        yield load_cases(
            _unpack(path, Path(scratch, str(number))) if path.is_file() else path
            for number, path in enumerate(paths)
        )


def _unpack(archive: Path, folder: Path) -> Path:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                zipped.extractall(folder)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
    except UNPACKING_ERRORS as error:
        message = f"cannot unpack {archive}, expected a folder, a tar archive or a zip archive: {error}"
        raise InvalidCaseError(message, file=str(archive)) from error
    # An archive of sources has one folder at its top.
    for pattern in ("cases", f"{FOLDER}/cases", "*/cases", f"*/{FOLDER}/cases"):
        for found in folder.glob(pattern):
            return found.parent
    return next((child for child in folder.iterdir() if parquet_testing.is_checkout(child)), folder)


def _load_folder(folder: Path) -> list[Case]:
    if not folder.is_dir():
        raise InvalidCaseError(f"the folder {folder} does not exist", file=str(folder))
    return parquet_testing.load_cases(folder) if parquet_testing.is_checkout(folder) else load_folder(folder)
