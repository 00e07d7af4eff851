"""Path keys (PROTOCOL.md, "Statistics for Variant Columns") and the paths of `variant_get`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at

from delta_variant.errors import ExpressionError, InvalidStatisticsError
from delta_variant.variant import paths as variant_paths

# RFC 9535 section 2.7: which characters of a name are escaped, and how.
ESCAPES = {
    "'": r"$['\'']",
    "\\": r"$['\\']",
    "\b": r"$['\b']",
    "\f": r"$['\f']",
    "\n": r"$['\n']",
    "\r": r"$['\r']",
    "\t": r"$['\t']",
    "\x00": r"$['\u0000']",
    "\x0b": r"$['\u000b']",
    "\x1f": r"$['\u001f']",
    '"': "$['\"']",
    "/": "$['/']",
    "\x7f": "$['\x7f']",
    "\u2028": "$['\u2028']",
    "é😀": "$['é😀']",
    "a.b[0]": "$['a.b[0]']",
    "": "$['']",
    '\\"': "$['\\\\\"']",
    "it's \\n": r"$['it\'s \\n']",
}


@pytest.mark.parametrize(("name", "path_key"), ESCAPES.items())
def test_normalize_escapes_exactly_the_characters_of_the_rfc(name, path_key):
    """RFC 9535, section 2.7."""
    assert variant_paths.normalize([name]) == path_key


@pytest.mark.parametrize(("name", "path_key"), ESCAPES.items())
def test_parse_reads_every_escape_back(name, path_key):
    """RFC 9535, section 2.7: normalized paths."""
    assert variant_paths.parse(path_key) == (name,)


def test_normalize_of_no_names_is_the_root():
    """The key of a column whose values are primitive."""
    assert variant_paths.normalize([]) == "$"
    assert variant_paths.parse("$") == ()


def test_normalize_joins_the_names_from_the_root():
    """PROTOCOL.md: a path key is a normalized path."""
    assert variant_paths.normalize(["b", "c"]) == "$['b']['c']"


@given(st.lists(st.text(), max_size=4))
def test_parse_undoes_normalize_for_any_names(names):
    """RFC 9535, section 2.7: normalized paths."""
    assert variant_paths.parse(variant_paths.normalize(names)) == tuple(names)


@pytest.mark.parametrize(
    ("path_key", "names"),
    [
        (r"$['\u000B']", ("\x0b",)),
        (r"$['\u0041']", ("A",)),
        (r"$['\/']", ("/",)),
        (r"$['\ud83d\ude00']", ("😀",)),
        (r"$['\uD83D\uDE00']", ("😀",)),
        ('$["a"]["b\'c"]', ("a", "b'c")),
        ("$.a.b", ("a", "b")),
    ],
)
def test_parse_reads_paths_that_are_not_normalized(path_key, names):
    """RFC 9535, section 2.7: normalized paths."""
    assert variant_paths.parse(path_key) == names


@pytest.mark.parametrize(
    "path_key", ["$[0]", "$['a'][0]", "$['a'][*]", "$..a", "$['a','b']", "$[0:2]", "$[?@.a]"]
)
def test_parse_rejects_steps_that_are_not_one_member_name(path_key):
    """PROTOCOL.md: a path key never has an index."""
    with pytest.raises(InvalidStatisticsError, match="member names only") as caught:
        variant_paths.parse(path_key)
    assert caught.value.path == path_key


@pytest.mark.parametrize(
    "path_key", ["", "a", "$['a", "$[']", "$['a']x", "$[a]", "$['\n']", r"$['\x']", r"$['\u12']"]
)
def test_parse_rejects_text_that_is_not_a_path(path_key):
    with raises_at(InvalidStatisticsError, "invalid path key", path=path_key):
        variant_paths.parse(path_key)


@given(st.text(alphabet="$[]'\"\\.u0a*?@:,( )-d8", max_size=12).map("$".__add__))
def test_parse_gives_names_or_our_error(path_key):
    try:
        names = variant_paths.parse(path_key)
    except InvalidStatisticsError:
        return
    assert variant_paths.parse(variant_paths.normalize(names)) == names


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.a.b", ("a", "b")),
        ("$['a']", ("a",)),
        ('$["a"]', ("a",)),
        ("$[0]", (0,)),
        ("$.items[12]['x y'].z", ("items", 12, "x y", "z")),
        ("$.a b.é", ("a b", "é")),
        ("$['a.b[0]']", ("a.b[0]",)),
        ('$["it\'s"]', ("it's",)),
        (r"$['a\n']", (r"a\n",)),
        ("$['']", ("",)),
        ("$.a-b", ("a-b",)),
        ("$.0", ("0",)),
        ("$[2147483647]", (2**31 - 1,)),
    ],
)
def test_parse_path_reads_the_grammar_of_spark(text, steps):
    assert variant_paths.parse_path(text) == steps


@pytest.mark.parametrize("text", ["", "a", ".a", " $.a"])
def test_parse_path_requires_the_root(text):
    with raises_at(ExpressionError, r"starts with \$", path=text):
        variant_paths.parse_path(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("$a", 1),
        ("$.", 1),
        ("$.a..b", 3),
        ("$.a[", 3),
        ("$[-1]", 1),
        ("$[a]", 1),
        ("$['a]", 1),
        ("$['a'b']", 1),
        ("$[٣]", 1),
    ],
)
def test_parse_path_reports_the_position_of_an_error(text, position):
    with raises_at(ExpressionError, f"at position {position}", path=text):
        variant_paths.parse_path(text)


@pytest.mark.parametrize("text", ["$[2147483648]", f"$[{'9' * 5000}]"])
def test_parse_path_rejects_an_index_beyond_the_maximum(text):
    with pytest.raises(ExpressionError, match="expected an index up to 2147483647"):
        variant_paths.parse_path(text)
