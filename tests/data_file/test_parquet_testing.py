"""The files of parquet-testing, one test for each: valid files, errors, and invalid files with a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.locations import CORPORA, list_corpus

from delta_variant.data_file import reader
from delta_variant.data_file.reader import Projection, open_file
from delta_variant.errors import ConflictingValueError, DeltaVariantError, ShreddingError
from delta_variant.protocol.schema.arrow import variant_field
from delta_variant.storage.store import open_store

pytestmark = pytest.mark.usefixtures("corpora")

SHREDDED = CORPORA / "parquet-testing" / "shredded_variant"

# Files that must raise an error with the path and, if the data is invalid, the row.
REJECTED: dict[int, tuple[type[DeltaVariantError], str]] = {
    40: (ConflictingValueError, r"row 0, .*path \$\[\*\]: .* `value` and `typed_value` are both set"),
    42: (ConflictingValueError, r"row 0, .*path \$: .* `value` and `typed_value` are both set"),
    87: (ConflictingValueError, r"row 0, .*path \$: .* `typed_value` holds an object, but `value`"),
    127: (
        ShreddingError,
        r"path \$: .* its `typed_value` is INT\(32,false\), which cannot be a shredded type",
    ),
    128: (ConflictingValueError, r"row 0, .*path \$: .* `typed_value` holds an object, but `value`"),
    137: (
        ShreddingError,
        r"path \$: .* its `typed_value` is FIXED_LEN_BYTE_ARRAY, which cannot be a shredded type",
    ),
}
# Invalid files with the value that lenient readers return.
INVALID: dict[int, str] = {
    43: r"row 0, .*path \$: .* the shredded field \"b\" is in `value` too",
    84: r"row 0, .*path \$: .* the group of the shredded field \"d\" is null",
    125: r"row 0, .*path \$: .* the shredded field \"b\" is in `value` too",
}


def shredded_cases() -> dict[int, dict[str, Any]]:
    """Return the cases that have a file by their numbers, none without the corpora."""
    files = list_corpus("parquet-testing/shredded_variant/cases.json")
    entries = [entry for file in files for entry in json.loads(file.read_text(encoding="utf-8"))]
    return {entry["case_number"]: entry for entry in entries if "parquet_file" in entry}


CASES = shredded_cases()
VALID = [number for number in CASES if number not in REJECTED and number not in INVALID]


def read(number: int, on_conflict: Any = "error") -> list[tuple[bytes, bytes] | None]:
    """Return metadata and value of each row of a case's file."""
    projection = Projection(variant_field("var"), ("var",))
    file = CASES[number]["parquet_file"]
    opened = open_file(open_store(SHREDDED), file)
    batches = reader.read(opened, file, [projection], on_conflict=on_conflict)
    rows = [row for batch in batches for row in batch.column(0).to_pylist()]
    return [None if row is None else (row["metadata"], row["value"]) for row in rows]


def expected(number: int) -> Iterator[bytes | None]:
    """Yield `metadata‖value` of each row of a case."""
    entry = CASES[number]
    files = entry.get("variant_files") or [entry["variant_file"]]
    for name in files:
        yield None if name is None else (SHREDDED / name).read_bytes()


def test_the_corpus_has_the_expected_number_of_cases():
    assert (len(VALID), len(REJECTED), len(INVALID)) == (128, 6, 3)
    assert all("error_message" in CASES[number] for number in REJECTED)
    assert all("INVALID" in CASES[number]["parquet_file"] for number in INVALID)


@pytest.mark.parametrize("number", VALID)
def test_a_valid_file_returns_the_bytes_of_its_values(number: int):
    rows = [None if row is None else b"".join(row) for row in read(number)]
    assert rows == list(expected(number))


@pytest.mark.parametrize("number", REJECTED)
def test_a_file_that_must_be_rejected_raises_with_its_location(number: int):
    error, where = REJECTED[number]
    with pytest.raises(error, match=f"^{re.escape(CASES[number]['parquet_file'])}, .*{where}"):
        read(number)


@pytest.mark.parametrize("number", INVALID)
def test_an_invalid_file_raises_with_its_location(number: int):
    file = CASES[number]["parquet_file"]
    with pytest.raises(ConflictingValueError, match=f"^{re.escape(file)}, {INVALID[number]}"):
        read(number)


@pytest.mark.parametrize("number", INVALID)
def test_an_invalid_file_is_read_with_on_conflict_typed(number: int):
    rows = [None if row is None else b"".join(row) for row in read(number, "typed")]
    assert rows == list(expected(number))
