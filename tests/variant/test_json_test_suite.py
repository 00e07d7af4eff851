"""JSONTestSuite: `parse_json` accepts `y_` files, rejects `n_` files, and decides on `i_` files."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from support.errors import raises_at
from support.locations import CORPORA, list_corpus

from delta_variant import Variant, parse_json
from delta_variant.errors import InvalidJsonError

pytestmark = pytest.mark.usefixtures("corpora")

SUITE = CORPORA / "json-test-suite" / "test_parsing"


def case_names(kind: str) -> list[str]:
    """Return the names of the files of one kind."""
    return [path.name for path in list_corpus(f"json-test-suite/test_parsing/{kind}_*.json")]


# VariantEncoding.md requires unique names: duplicates are rejected unless `duplicate_keys="last"`.
WITH_DUPLICATE_NAMES = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}

# RFC 8259 leaves these cases to the parser: the text that `to_json` returns, or None for rejected text. Text
# that is not UTF-8 is rejected. Numbers outside the range of double become infinite, as in Spark 4.2.
OPEN_CASES: dict[str, str | None] = {
    "i_number_double_huge_neg_exp.json": "[0.0]",
    "i_number_huge_exp.json": '["Infinity"]',
    "i_number_neg_int_huge_exp.json": '["-Infinity"]',
    "i_number_pos_double_huge_exp.json": '["Infinity"]',
    "i_number_real_neg_overflow.json": '["-Infinity"]',
    "i_number_real_pos_overflow.json": '["Infinity"]',
    "i_number_real_underflow.json": "[0.0]",
    "i_number_too_big_neg_int.json": "[-123123123123123123123123123123]",
    "i_number_too_big_pos_int.json": "[100000000000000000000]",
    "i_number_very_big_negative_int.json": "[-2.374623746732769E47]",
    "i_object_key_lone_2nd_surrogate.json": None,
    "i_string_1st_surrogate_but_2nd_missing.json": None,
    "i_string_1st_valid_surrogate_2nd_invalid.json": None,
    "i_string_UTF-16LE_with_BOM.json": None,
    "i_string_UTF-8_invalid_sequence.json": None,
    "i_string_UTF8_surrogate_U+D800.json": None,
    "i_string_incomplete_surrogate_and_escape_valid.json": None,
    "i_string_incomplete_surrogate_pair.json": None,
    "i_string_incomplete_surrogates_escape_valid.json": None,
    "i_string_invalid_lonely_surrogate.json": None,
    "i_string_invalid_surrogate.json": None,
    "i_string_invalid_utf-8.json": None,
    "i_string_inverted_surrogates_U+1D11E.json": None,
    "i_string_iso_latin_1.json": None,
    "i_string_lone_second_surrogate.json": None,
    "i_string_lone_utf8_continuation_byte.json": None,
    "i_string_not_in_unicode_range.json": None,
    "i_string_overlong_sequence_2_bytes.json": None,
    "i_string_overlong_sequence_6_bytes.json": None,
    "i_string_overlong_sequence_6_bytes_null.json": None,
    "i_string_truncated-utf-8.json": None,
    "i_string_utf16BE_no_BOM.json": None,
    "i_string_utf16LE_no_BOM.json": None,
    "i_structure_500_nested_arrays.json": "[" * 500 + "]" * 500,
    "i_structure_UTF-8_BOM_empty_object.json": None,
}


def parse(text: bytes, **options: Any) -> Variant:
    """Return the Variant of a file's bytes, which may not be UTF-8."""
    row = parse_json(pa.array([text], pa.binary()), **options)[0].as_py()
    return Variant(row["metadata"], row["value"])


def plain(value: Any) -> Any:
    """Return numbers as Decimals, so that 1, 1.0 and 1e0 are equal."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


def test_the_suite_is_whole():
    counts = {kind: len(case_names(kind)) for kind in "yni"}
    assert counts == {"y": 95, "n": 188, "i": 35}
    assert set(OPEN_CASES) == set(case_names("i"))


@pytest.mark.parametrize("name", case_names("y"))
def test_parse_json_accepts_and_keeps_valid_json(name: str):
    text = (SUITE / name).read_bytes()
    options = {"duplicate_keys": "last"} if name in WITH_DUPLICATE_NAMES else {}
    expected = json.loads(text, parse_float=float)
    assert plain(json.loads(parse(text, **options).to_json())) == plain(expected)


@pytest.mark.parametrize("name", sorted(WITH_DUPLICATE_NAMES))
def test_parse_json_rejects_two_fields_of_one_name_by_default(name: str):
    with pytest.raises(InvalidJsonError, match='two fields called "a"') as caught:
        parse((SUITE / name).read_bytes())
    assert caught.value.row == 0


@pytest.mark.parametrize("name", case_names("n"))
def test_parse_json_rejects_invalid_json(name: str):
    with raises_at(InvalidJsonError, r"byte \d+ of the text: \S", row=0):
        parse((SUITE / name).read_bytes())


@pytest.mark.parametrize("name", case_names("i"))
def test_parse_json_decides_cases_that_the_standard_leaves_open(name: str):
    text = (SUITE / name).read_bytes()
    expected = OPEN_CASES[name]
    if expected is not None:
        assert parse(text).to_json() == expected
        return
    with pytest.raises(InvalidJsonError, match=r"byte \d+ of the text: \S"):
        parse(text)
