r"""Patterns of LIKE match as in Spark: `%`, `_`, and escapes before these and before the escape itself."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.errors import ExpressionError
from delta_variant.expressions.patterns import literal_prefix, match_pattern

TEXTS = ["".join(parts) for length in range(4) for parts in product("\\a%_", repeat=length)]


@cache
def matches(text: str, pattern: str, escape: str) -> bool:
    """Compare character by character, as SQL defines LIKE."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == escape:
        return text[:1] == rest[0] and matches(text[1:], rest[1:], escape)
    if first == "%":
        return any(matches(text[start:], rest, escape) for start in range(len(text) + 1))
    return bool(text) and first in ("_", text[0]) and matches(text[1:], rest, escape)


def is_valid(pattern: str, escape: str) -> bool:
    """Return whether each escape precedes a wildcard or an escape."""
    one = re.escape(escape)
    return re.fullmatch(rf"(?s:[^{one}]|{one}[%_{one}])*", pattern) is not None


@pytest.mark.parametrize("escape", ["\\", "a", "%", "_"])
def test_every_short_pattern_matches_the_texts_that_it_describes(escape: str):
    column = pa.array(TEXTS)
    for length in range(5):
        for pattern in map("".join, product("\\a%_", repeat=length)):
            if not is_valid(pattern, escape):
                with pytest.raises(ExpressionError, match="`like`"):
                    match_pattern(column, pattern, escape)
                continue
            found = match_pattern(column, pattern, escape).to_pylist()
            assert found == [matches(text, pattern, escape) for text in TEXTS], pattern
            prefix = literal_prefix(pattern, escape)
            assert all(text.startswith(prefix) for text, hit in zip(TEXTS, found, strict=True) if hit)


@pytest.mark.parametrize("character", [*map(chr, range(128)), "é", "🎉", "\u2028"])
def test_every_character_of_a_pattern_is_itself(character: str):
    column = pa.array([f"x{character}yz", f"x{character}{character}yz", "xyz", None])
    pattern = f"x\\{character}_z" if character in "%_\\" else f"x{character}_z"
    assert match_pattern(column, pattern).to_pylist() == [True, False, False, None]


def test_wildcards_match_line_breaks():
    assert match_pattern(pa.array(["a\nb\r\n"]), "_\n%").to_pylist() == [True]
    assert match_pattern(pa.array(["a\n"]), "_a").to_pylist() == [False]
    assert match_pattern(pa.array(["ba\n", "ba"]), "_a").to_pylist() == [False, True]


@pytest.mark.parametrize(
    ("pattern", "ids"), [(r"%\\cmd.exe", [0, 2]), (r"C:\\Windows%", [0, 1]), (r"%\\System32\\cmd%", [0])]
)
def test_an_escaped_backslash_selects_skips_and_deletes_the_same_rows(
    tmp_path: Path, pattern: str, ids: list[int]
):
    paths = [r"C:\Windows\System32\cmd.exe", r"C:\Windows\explorer.exe", r"D:\x\cmd.exe", "cmd.exe"]
    table = dv.Table(tmp_path / "t")
    for number, path in enumerate(paths):
        # A file for each row, with bounds of the column and of the path.
        table.append(pa.table({"id": [number], "p": [path], "v": [{"p": path}]}), variant_columns=["v"])
    for operand in ("p", "v:p::string"):
        condition = f"{operand} like r'{pattern}'"
        assert sorted(pa.table(table.scan(where=condition))["id"].to_pylist()) == ids
    table.delete(f"p not like r'{pattern}'")
    assert sorted(pa.table(table.scan())["id"].to_pylist()) == ids
