"""Load the cases of a checkout of apache/parquet-testing: `shredded_variant/` and `variant/`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .case import Case, InvalidCaseError
from .decoding import NotAVariantError, decode, decode_concatenated

__all__ = ["is_checkout", "load_cases"]

SHREDDED = "shredded_variant/cases.json"
VALUES = "variant/data_dictionary.json"
TRAILING_COMMA = re.compile(r",(\s*\})")

# Our error class by the start of the error message of a case.
ERRORS = {
    "Invalid variant": "ConflictingValueError",
    "Unsupported shredded value type": "ShreddingError",
}


def is_checkout(folder: Path) -> bool:
    """Return whether a folder is a checkout, or at least has its Variant files."""
    return (folder / SHREDDED).is_file() or (folder / VALUES).is_file()


def load_cases(folder: Path) -> list[Case]:
    """Return the cases of a checkout, in the order of their ids; raises InvalidCaseError with the file."""
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
