"""Load the cases of folders: ours, and checkouts of parquet-testing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ..errors import InvalidCaseError
from . import parquet_testing
from .case import Case
from .case import load_cases as load_folder

__all__ = ["OWN_CASES", "load_cases"]

OWN_CASES = Path(__file__).resolve().parent
"""The folder whose `cases` are part of this package, so that an installed package can run them."""


def load_cases(folders: Iterable[Path]) -> list[Case]:
    """Return the cases of all folders in order; raises InvalidCaseError, also for a duplicate id."""
    cases = [case for folder in folders for case in _load_folder(folder)]
    if not cases:
        raise InvalidCaseError("the folders contain no cases")
    for name, times in Counter(case.id for case in cases).items():
        if times > 1:
            raise InvalidCaseError(f"{times} cases have the id {name!r}")
    return cases


def _load_folder(folder: Path) -> list[Case]:
    if not folder.is_dir():
        raise InvalidCaseError(f"the folder {folder} does not exist", file=str(folder))
    return parquet_testing.load_cases(folder) if parquet_testing.is_checkout(folder) else load_folder(folder)
