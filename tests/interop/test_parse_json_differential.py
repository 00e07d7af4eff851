"""Our `parse_json` against Spark's, and both against Python's `json`, on mutated lines of the corpora.

The bytes are decoded by PySpark's decoder in Python, which shares no code with either parser.
"""

from __future__ import annotations

import decimal
import json
import lzma
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.variant_utils import VariantUtils
from support.json_mutations import mutate

from delta_variant import _native

LINES_PER_CORPUS = 120
MUTATIONS_PER_LINE = 18
LONGEST_LINE = 1000
INT64 = range(-(2**63), 2**63)
MAX_DIGITS = 38


@dataclass(frozen=True)
class Case:
    """A mutated line and the result of each parser: value and metadata of a Variant, or an error."""

    text: bytes
    ours: tuple[bytes, bytes] | None
    # Byte of the text and reason of our error.
    offset: int
    reason: str
    spark: tuple[bytes, bytes] | None


# The reasons of our errors for text that Spark parses.
ONLY_SPARK_TAKES = {
    "something follows the value": "Spark reads one value, and does not look at what follows it",
    "the text is not UTF-8": "Spark reads U+FFFD where the bytes are not UTF-8",
}
# Text that we parse and Spark does not: its parser limits a number to 1,000 characters.
LONG_NUMBER = re.compile(rb"[-+.eE\d]{1001}")


@pytest.fixture(scope="module")
def cases(spark: SparkSession, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Return every mutated line with both results."""
    texts = list(mutated_lines(corpora))
    ours, invalid = _native.parse_json(pa.array(texts, pa.binary()), "decimal", "error")
    reasons = {each.row: (each.offset, each.message) for each in invalid}
    file = tmp_path_factory.mktemp("mutated") / "lines.parquet"
    pq.write_table(pa.table({"line": range(len(texts)), "text": pa.array(texts, pa.binary())}), file)
    parsed = spark.read.parquet(str(file)).selectExpr("line", "try_parse_json(cast(text as string)) as event")
    # Spark cannot convert null Variants to Arrow.
    by_line = {row["line"]: row["event"] for row in parsed.where("event is not null").toArrow().to_pylist()}
    return [
        Case(text, pair(row), *reasons.get(line, (0, "")), pair(by_line.get(line)))
        for line, (text, row) in enumerate(zip(texts, ours.to_pylist(), strict=True))
    ]


def pair(variant: dict[str, bytes] | None) -> tuple[bytes, bytes] | None:
    return None if variant is None else (variant["value"], variant["metadata"])


def mutated_lines(corpora: Path) -> Iterator[bytes]:
    """Yield mutations of the first lines of each corpus, without lines that are too long."""
    seed = 0
    for file in sorted((corpora / "json").glob("*.ndjson.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            short = (line.strip() if len(line) <= LONGEST_LINE else part_of(line) for line in lines)
            for line in islice(short, LINES_PER_CORPUS):
                for _ in range(MUTATIONS_PER_LINE):
                    yield mutate(line, seed)
                    seed += 1


def part_of(line: str) -> str:
    """Return a short line of the first members of a long line."""
    members: dict[str, Any] = {}
    for name, value in json.loads(line).items():
        if len(json.dumps({**members, name: value})) <= LONGEST_LINE:
            members[name] = value
    return json.dumps(members, ensure_ascii=False)


@pytest.fixture
def _room_for_digits_and_depth() -> Iterator[None]:
    """Let Python's decoders keep 38 digits and nest 1,000 levels."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    with decimal.localcontext(prec=60):
        yield
    sys.setrecursionlimit(limit)


def decoded(variant: tuple[bytes, bytes]) -> Any:
    """Return a Variant as a Python value, with a decoder independent of ours."""
    return typed(VariantUtils.to_python(*variant))


def typed(value: Any) -> Any:
    """Return a key that is equal only for equal types and digits; the order of fields does not matter."""
    match value:
        case dict():
            return {name: typed(part) for name, part in value.items()}
        case list():
            return [typed(part) for part in value]
        case float():
            return ("double", value.hex())
        case Decimal():
            # Variant decimals have no negative zero.
            return ("decimal", value.as_tuple()[1:] if value else value.as_tuple().exponent, value < 0)
        case _:
            return (type(value).__name__, value)


class NotAVariantError(Exception):
    """JSON that Python's `json` parses but a Variant cannot store."""


def read_by_python(text: bytes) -> Any:
    """Return the value of JSON text, parsed by Python's `json`, with numbers typed as `parse_json` does."""
    value = json.loads(
        text.decode(),
        parse_int=number,
        parse_float=number,
        parse_constant=reject,
        object_pairs_hook=unique_fields,
    )
    json.dumps(value, default=str, ensure_ascii=False).encode()
    return typed(value)


def number(text: str) -> int | Decimal | float:
    """Return a 64-bit integer, a decimal of up to 38 digits, or a double."""
    if "e" in text.lower():
        return float(text)
    exact = Decimal(text)
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    if "." not in text and len(text) < 25 and int(text) in INT64:
        return int(text)
    return exact if len(digits) <= MAX_DIGITS and -exponent <= MAX_DIGITS else float(text)


def unique_fields(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise for a duplicate key (VariantEncoding.md, Object field ID uniqueness)."""
    if len(dict(fields)) < len(fields):
        raise NotAVariantError
    return dict(fields)


def reject(_: str) -> Any:
    """Raise for NaN and the infinities, which JSON does not have."""
    raise NotAVariantError


def test_there_are_many_valid_and_invalid_lines(cases: list[Case]):
    taken = sum(case.ours is not None for case in cases)
    assert len(cases) >= 20_000
    assert 5_000 <= taken <= len(cases) - 5_000


def test_spark_parses_the_same_text_except_for_known_differences(cases: list[Case]):
    only_spark = {case.reason for case in cases if case.spark is not None and case.ours is None}
    assert only_spark == ONLY_SPARK_TAKES.keys()
    only_ours = [case.text for case in cases if case.ours is not None and case.spark is None]
    assert only_ours
    assert [text for text in only_ours if LONG_NUMBER.search(text) is None] == []


@pytest.mark.usefixtures("_room_for_digits_and_depth")
def test_spark_returns_the_same_values_of_the_same_size(cases: list[Case]):
    for case in cases:
        if case.ours is not None and case.spark is not None:
            assert decoded(case.ours) == decoded(case.spark), case.text
            assert list(map(len, case.ours)) == list(map(len, case.spark)), case.text


@pytest.mark.usefixtures("_room_for_digits_and_depth")
def test_spark_ignores_text_after_the_value(cases: list[Case]):
    cut = [case for case in cases if case.reason == "something follows the value" and case.spark is not None]
    texts = pa.array([case.text[: case.offset] for case in cut], pa.binary())
    ours, invalid = _native.parse_json(texts, "decimal", "error")
    assert invalid == []
    for case, row in zip(cut, ours.to_pylist(), strict=True):
        assert case.spark is not None
        assert decoded((row["value"], row["metadata"])) == decoded(case.spark), case.text


@pytest.mark.usefixtures("_room_for_digits_and_depth")
def test_python_parses_the_same_text_to_the_same_values(cases: list[Case]):
    for case in cases:
        try:
            expected = read_by_python(case.text)
        except (ValueError, NotAVariantError):
            assert case.ours is None, case.text
        else:
            assert case.ours is not None, (case.text, case.reason)
            assert decoded(case.ours) == expected, case.text


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_spark_and_we_parse_up_to_1000_levels(spark: SparkSession, opening: str, closing: str):
    texts = [opening * depth + "1" + closing * depth for depth in (1000, 1001)]
    _, invalid = _native.parse_json(pa.array(texts), "decimal", "error")
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    taken = [row[0] for row in frame.selectExpr("try_parse_json(text) is not null").collect()]
    assert ([each.row for each in invalid], taken) == ([1], [True, False])
