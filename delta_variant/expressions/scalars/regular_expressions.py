"""Regular expressions of Java as those of RE2, which Arrow uses.

A construct that RE2 lacks, or matches in another way than Java, raises ExpressionError. `\\b` is the boundary
of ASCII words, as in Java 19 and later.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ExpressionError

TERMINATORS = r"\n\r\x{85}\x{2028}\x{2029}"
SPACES = r"\t\n\x0b\f\r "
# Java matches `$` before the line terminator at the end of the text, too.
END = rf"(?:\r\n|[{TERMINATORS}])?\z"
CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "a": r"\a", "e": r"\x1b"}
SAME = frozenset("dDwW")
OUTSIDE_CLASS = {"s": f"[{SPACES}]", "S": f"[^{SPACES}]", "b": r"\b", "B": r"\B", "A": r"\A", "z": r"\z"}
ESCAPE = re.compile(
    r"\\(?:Q(?P<quoted>.*?)(?:\\E|$)|(?P<code>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x\{[0-9a-fA-F]+\})"
    r"|(?P<category>[pP](?:[CLMNPSZ]|\{[CLMNPSZ][a-z]?\}))|(?P<letter>[a-zA-Z])|(?P<other>[^a-zA-Z0-9]))",
    re.DOTALL,
)
QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
GROUP = re.compile(r"\((?:\?:|\?<[a-zA-Z][a-zA-Z0-9]*>)?(?!\?)")
FLAGS = re.compile(r"\(\?([is]+)\)")
PART = re.compile(r"\\.|\$(?P<group>[0-9])|[^$]", re.DOTALL)
REPLACEMENT = re.compile(r"(?:\\.|\$[0-9](?![0-9])|[^$\\])*", re.DOTALL)


@lru_cache(maxsize=128)
def boolean_pattern(pattern: str) -> str:
    """Return an expression that RE2 finds in the same texts; raises ExpressionError."""
    return _Translation(pattern).result()


@lru_cache(maxsize=128)
def splitting_pattern(pattern: str) -> str:
    """Return an expression with the same matches; raises ExpressionError if it matches empty text."""
    # Arrow looks for the next match in the rest of a text, without what precedes it.
    return _Translation(pattern, rejected="^$bBAz").result_of_characters("split by")


@lru_cache(maxsize=128)
def replacing_pattern(pattern: str, replacement: str) -> tuple[str, str]:
    """Return an expression with the same matches, and what replaces them; raises ExpressionError."""
    translation = _Translation(pattern, rejected="$")
    found = translation.result_of_characters("replace")
    if not REPLACEMENT.fullmatch(replacement):
        raise ExpressionError(
            rf"cannot replace by {replacement!r}: `$1` is the first of at most nine groups, `\$` and `\\` "
            "are the characters themselves"
        )

    def part(each: re.Match[str]) -> str:
        if each["group"] is None:
            return each[0][-1].replace("\\", r"\\")
        _check_group(translation, int(each["group"]))
        return rf"\{each['group']}"

    return found, PART.sub(part, replacement)


@lru_cache(maxsize=128)
def extracting_pattern(pattern: str, group: int = 1) -> str:
    """Return an expression whose group `found` matches as that of this number; raises ExpressionError."""
    translation = _Translation(pattern, rejected="" if group else "$", named=group)
    found = translation.result()
    _check_group(translation, group)
    return found if group else f"(?P<found>{found})"


def _check_group(translation: _Translation, group: int) -> None:
    if not 0 <= group <= translation.groups:
        raise ExpressionError(
            f"the regular expression {translation.pattern!r} has no group {group}; "
            f"groups: {translation.groups}"
        )


def _matches_empty(found: str) -> bool:
    """Return whether a translated expression matches empty text, wherever its assertions hold."""
    # All other characters with these letters have codes.
    characters = re.sub(r"\\[bBAz]|(?<!\[)\^", "(?:)", found)
    is_match: bool = pc.match_substring_regex(pa.scalar(""), f"^(?:{characters})$").as_py()
    return is_match


class _Translation:
    """The translation of one pattern.

    `rejected` are assertions that raise. With `named`, a group that has this number is named `found`, and the
    others do not capture.
    """

    def __init__(self, pattern: str, *, rejected: str = "", named: int | None = None) -> None:
        self.pattern = pattern
        self.position = 0
        self.rejected = rejected
        self.named = named
        # Where groups are used: their matches differ from those of Java where an iteration is empty.
        self.captures = named is not None or rejected == "$"
        self.groups = 0
        self.parts: list[str] = []
        # Where the groups begin that are open, and the parts of the last one that was closed.
        self.opened: list[int] = []
        self.group: list[str] = []
        self.ignores_case = False
        self.dot = f"[^{TERMINATORS}]"

    def result(self) -> str:
        flags = FLAGS.match(self.pattern)
        if flags is not None:
            self.position = flags.end()
            self.ignores_case = "i" in flags[1]
            self.dot = r"(?s:.)" if "s" in flags[1] else self.dot
        while self.position < len(self.pattern):
            self.parts.append(self._next())
        found = "".join(self.parts)
        try:
            pc.match_substring_regex(pa.scalar(""), found)
        except pa.ArrowInvalid as error:
            raise self._refusal(str(error)) from error
        return found

    def result_of_characters(self, use: str) -> str:
        """Return the expression; raises ExpressionError if it matches empty text."""
        found = self.result()
        if _matches_empty(found):
            raise ExpressionError(
                f"cannot {use} the regular expression {self.pattern!r} because it matches empty text: use an "
                "expression that matches at least one character"
            )
        return found

    def _refusal(self, what: str) -> ExpressionError:
        return ExpressionError(
            f"the regular expression {self.pattern!r} is not supported: {what}; rewrite it, or query the "
            "scan with DuckDB or Polars"
        )

    def _take(self, expression: re.Pattern[str], what: str) -> re.Match[str]:
        found = expression.match(self.pattern, self.position)
        if found is None:
            raise self._refusal(f"{what} at {self.pattern[self.position :]!r}")
        self.position = found.end()
        return found

    def _next(self) -> str:
        character = self.pattern[self.position]
        match character:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return self._group()
            case "*" | "+" | "?" | "{":
                return self._quantifier()
        self.position += 1
        if character in "^$" and character in self.rejected:
            remedy = r" (`\z` is the end of the text)" if self.rejected == "$" else ""
            raise self._refusal(f"the assertion {character!r}{remedy}")
        if character == "$":
            return self._end()
        if character == ")" and self.opened:
            self.group = [*self.parts[self.opened.pop() :], ")"]
        if character in "^|)":
            return character
        return self.dot if character == "." else self._literal(character)

    def _quantifier(self) -> str:
        quantifier = self._take(QUANTIFIER, "a quantifier")[0]
        if not self.parts or self.pattern[self.position : self.position + 1] in ("+", "*", "?"):
            raise self._refusal(f"the quantifier {quantifier!r}")
        is_of_group = self.parts[-1] == ")" and quantifier[0] != "?"
        if self.captures and is_of_group and _matches_empty("".join(self.group)):
            raise self._refusal("a repeated group that matches empty text")
        return quantifier

    def _group(self) -> str:
        self.opened.append(len(self.parts))
        if self._take(GROUP, "a group")[0] == "(?:":
            return "(?:"
        self.groups += 1
        if self.named is None:
            return "("
        return "(?P<found>" if self.groups == self.named else "(?:"

    def _end(self) -> str:
        rest = self.pattern[self.position :]
        if rest.strip(")") and (self.opened or not rest.startswith("|")):
            raise self._refusal("`$` before the end")
        if self.opened and self.captures:
            raise self._refusal("`$` in a group")
        return END

    def _literal(self, character: str) -> str:
        if self.ignores_case and character.isascii() and character.isalpha():
            return f"[{character.lower()}{character.upper()}]"
        return _code(character)

    def _escape(self) -> str:
        escape = self._take(ESCAPE, "an escape")
        if escape["quoted"] is not None:
            return "".join(map(self._literal, escape["quoted"]))
        letter = escape["letter"]
        if letter in OUTSIDE_CLASS:
            if letter in self.rejected:
                raise self._refusal(f"the assertion {escape[0]!r}")
            return OUTSIDE_CLASS[letter]
        found = self._character(escape)
        return self._literal(found) if len(found) == 1 else found

    def _character(self, escape: re.Match[str]) -> str:
        """Return a character, or the expression of several, for an escape in or outside of a class."""
        if escape["code"] is not None:
            return chr(int(escape["code"][1:].strip("{}"), 16))
        if escape["category"] is not None:
            if self.ignores_case:
                raise self._refusal(f"{escape[0]!r} without regard to case")
            return escape[0]
        letter = escape["letter"]
        if letter is None:
            return escape["other"] or ""
        if letter in SAME:
            return escape[0]
        if letter not in CONTROLS:
            raise self._refusal(f"the escape {escape[0]!r}")
        return CONTROLS[letter]

    def _class(self) -> str:
        self.position += 1
        negated = self.pattern.startswith("^", self.position)
        self.position += negated
        parts: list[str] = []
        while not self.pattern.startswith("]", self.position):
            parts.append(self._range())
        if not parts:
            raise self._refusal("an empty class")
        self.position += 1
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _range(self) -> str:
        first = self._member()
        dash = self.pattern.startswith("-", self.position)
        if not dash or self.pattern.startswith("-]", self.position):
            return self._cased(first, first)
        self.position += 1
        last = self._member()
        if len(first) > 1 or len(last) > 1:
            raise self._refusal("a range of classes")
        return self._cased(first, last)

    def _member(self) -> str:
        rest = self.pattern[self.position :]
        if not rest or rest[0] == "[" or rest.startswith("&&"):
            raise self._refusal("a class that is not closed" if not rest else f"{rest[:2]!r} in a class")
        if rest[0] != "\\":
            self.position += 1
            return rest[0]
        escape = self._take(ESCAPE, "an escape")
        if escape["quoted"] is not None:
            raise self._refusal("a quotation in a class")
        return SPACES if escape["letter"] == "s" else self._character(escape)

    def _cased(self, first: str, last: str) -> str:
        """Return a range of a class; one of several characters is an expression already."""
        if len(first) > 1:
            return first
        found = f"{_code(first)}-{_code(last)}" if first != last else _code(first)
        if not self.ignores_case:
            return found
        for low, high, shift in (("a", "z", -32), ("A", "Z", 32)):
            begin, end = max(first, low), min(last, high)
            if begin <= end:
                found += f"{chr(ord(begin) + shift)}-{chr(ord(end) + shift)}"
        return found


def _code(character: str) -> str:
    """Return an expression of one character, in or outside of a class."""
    return character if character.isalnum() and character.isascii() else rf"\x{{{ord(character):x}}}"
