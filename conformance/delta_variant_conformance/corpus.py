"""Load cases from folders and archives: of this project, and of parquet-testing."""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .case import Case, InvalidCaseError
from .case import load_cases as load_folder
from .decoding import NotAVariantError, decode, decode_concatenated

FOLDER = "protocol_fixtures"

# The files of apache/parquet-testing.
SHREDDED = "shredded_variant/cases.json"
VALUES = "variant/data_dictionary.json"
TRAILING_COMMA = re.compile(r",(\s*\})")

# Our error class by the start of the error message of a case.
ERRORS = {
    "Invalid variant": "ConflictingValueError",
    "Unsupported shredded value type": "ShreddingError",
}

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
    return next((child for child in folder.iterdir() if _is_parquet_testing(child)), folder)


def _load_folder(folder: Path) -> list[Case]:
    if not folder.is_dir():
        raise InvalidCaseError(f"the folder {folder} does not exist", file=str(folder))
    return _load_parquet_testing(folder) if _is_parquet_testing(folder) else load_folder(folder)


def _is_parquet_testing(folder: Path) -> bool:
    return (folder / SHREDDED).is_file() or (folder / VALUES).is_file()


def _load_parquet_testing(folder: Path) -> list[Case]:
    """Return the cases of `shredded_variant/` and `variant/` in a checkout, in the order of their ids."""
    cases: list[Case] = []
    for name, load in ((SHREDDED, _shredded), (VALUES, _values)):
        if (folder / name).is_file():
            try:
                cases += load(folder / name)
            except (OSError, ValueError, KeyError, TypeError, NotAVariantError) as error:
                raise InvalidCaseError(f"{type(error).__name__}: {error}").at(
                    file=str(folder / name)
                ) from error
    return cases


def _shredded(path: Path) -> Iterator[Case]:
    for entry in json.loads(path.read_text(encoding="utf-8")):
        # A withdrawn case has only its number.
        if "parquet_file" in entry:
            yield from _cases_of_entry(path.parent, entry)


def _cases_of_entry(folder: Path, entry: Mapping[str, Any]) -> Iterator[Case]:
    name = f"case-{entry['case_number']:03}"
    message = entry.get("error_message")
    if message is not None:
        error = next(each for prefix, each in ERRORS.items() if message.startswith(prefix))
        yield _case(folder, name, entry, "breaks", message, {"error": error})
        return
    answer = _rows(folder, entry)
    if "notes" not in entry:
        yield _case(folder, name, entry, "keeps", entry["test"], answer)
        return
    yield _case(folder, name, entry, "breaks", entry["notes"], {**answer, "error": "ConflictingValueError"})
    about = f"{entry['test']}: with on_conflict='typed', the shredded value is read"
    yield _case(folder, f"{name}-lenient", entry, "breaks", about, answer, {"on_conflict": "typed"})


def _case(
    folder: Path,
    name: str,
    entry: Mapping[str, Any],
    verdict: str,
    about: str,
    expect: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> Case:
    given = {"file": entry["parquet_file"], "column": "var"}
    section = "VariantShredding.md; parquet-testing, shredded_variant/cases.json"
    rules = ("parquet-testing",)
    return Case(
        f"parquet-testing/{name}",
        "unshred",
        folder,
        rules,
        verdict,
        section,
        about,
        given,
        expect,
        options or {},
    )


def _rows(folder: Path, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the typed values of a case, and their bytes in the files."""
    files = entry.get("variant_files") or [entry["variant_file"]]
    rows = [None if file is None else (folder / file).read_bytes() for file in files]
    return {
        "rows": [None if data is None else decode_concatenated(data) for data in rows],
        "bytes": [None if data is None else data.hex() for data in rows],
    }


def _values(path: Path) -> Iterator[Case]:
    text = TRAILING_COMMA.sub(r"\1", path.read_text(encoding="utf-8"))
    for name in sorted(json.loads(text)):
        metadata, value = ((path.parent / f"{name}.{part}").read_bytes() for part in ("metadata", "value"))
        yield Case(
            id=f"parquet-testing/{name}",
            kind="decode",
            folder=path.parent,
            rules=("parquet-testing",),
            verdict="keeps",
            section="VariantEncoding.md; parquet-testing, variant/",
            about=f"The value {name} is printed as JSON",
            input={"metadata": metadata.hex(), "value": value.hex()},
            expect={"rows": [decode(metadata, value)]},
        )
