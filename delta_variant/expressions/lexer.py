"""The tokens of Spark's SQL, read on demand, and the position of a parser in its text.

A parser asks for the token at its position. The steps of a Variant path are other words than those of an
expression (`7d` is a number there), so that the grammar of paths reads the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NoReturn, TypeAlias, TypeVar

import msgspec

from ..errors import ExpressionError

Part = TypeVar("Part")
CursorType = TypeVar("CursorType", bound="Cursor")
Kind: TypeAlias = Literal["word", "quoted", "string", "number", "symbol", "unknown", "end"]

SPACE = re.compile(r"\s+|--(?:\\\n|[^\r\n])*")
COMMENT_END = re.compile(r"/\*|\*/")
TOKEN = re.compile(
    r"""
    (?P<string> r'[^']*' | r"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
  | (?P<quoted> `(?:[^`]|``)*` )
  | (?P<number> (?: (?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+) (?:e[+-]?[0-9]+)? (?:bd|[df])? | [0-9]+[lsy] ) (?!\w) )
  | (?P<word> (?:\w|[^\x00-\x7f\s])+ )
  | (?P<symbol> <=> | \?:: | [<>!=]= | <> | ![<>] | \|\| | :: | -> | => | [()\[\],.:<>=!+*/%&|^~-] )
  | (?P<unknown> . )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
MAX_SHOWN = 76
UNCLOSED = {"'": "a closing '", '"': 'a closing "', "`": "a closing `"}


class Token(msgspec.Struct, frozen=True):
    """A token of the text from `start` to `end`; `word` is its text in lower case if it is a word."""

    kind: Kind
    text: str
    start: int
    end: int
    word: str = ""


class GrammarError(Exception):
    """Text that does not follow the grammar: its position, the problem, and the remedy if there is one."""

    def __init__(self, position: int, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.position = position
        self.problem = problem
        self.remedy = remedy

    def error(self, text: str) -> ExpressionError:
        """Return the error for a user, with the part of the text around the position."""
        line, start = "", 0
        for line in text.splitlines(keepends=True) or [""]:
            if start + len(line) > self.position:
                break
            start += len(line)
        else:
            start -= len(line)
        column = min(self.position - start, len(line.rstrip("\r\n")))
        line = line.rstrip("\r\n").replace("\t", " ")
        first = max(0, min(column - MAX_SHOWN // 2, len(line) - MAX_SHOWN))
        shown = line[first : first + MAX_SHOWN]
        before, after = "…" * (first > 0), "…" * (first + MAX_SHOWN < len(line))
        caret = " " * (len(before) + column - first) + "^"
        remedy = f"\n{self.remedy}" if self.remedy else ""
        return ExpressionError(
            f"cannot parse SQL at character {self.position + 1}: {self.problem}\n"
            f"  {before}{shown}{after}\n  {caret}{remedy}"
        )


def too_deep(text: str) -> ExpressionError:
    """Return the error for a text whose parts are nested too deeply."""
    shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return ExpressionError(f"{shown!r} is nested too deeply: split it")


@contextmanager
def parsing(text: str) -> Iterator[None]:
    """Raise ExpressionError for a text that the block cannot parse, or that is nested too deeply."""
    try:
        yield
    except GrammarError as failure:
        raise failure.error(text) from None
    except RecursionError as error:
        raise too_deep(text) from error


class Cursor:
    """A position in a text, which moves from token to token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._tokens: dict[int, Token] = {}

    @property
    def token(self) -> Token:
        """The token at the position, without the spaces and comments before it."""
        found = self._tokens.get(self.position)
        if found is None:
            found = self._tokens[self.position] = self._read(self.skip_space(self.position))
        return found

    @property
    def following(self) -> Token:
        """The token after the one at the position."""
        position, self.position = self.position, self.token.end
        found = self.token
        self.position = position
        return found

    def take(self) -> Token:
        """Return the token at the position, and move to the next one."""
        found = self.token
        self.position = found.end
        return found

    def accept(self, *texts: str) -> bool:
        """Return whether the next token is one of these symbols or words, and move past it if so."""
        found = self.is_next(*texts)
        if found:
            self.take()
        return found

    def is_next(self, *texts: str) -> bool:
        """Return whether the next token is one of these symbols or words, the latter in lower case."""
        token = self.token
        return (token.word or (token.text if token.kind == "symbol" else "")) in texts

    def expect(self, text: str) -> None:
        """Move past a symbol or a word; raises GrammarError for another token."""
        if not self.accept(text):
            self.fail(f"`{text}`")

    def expect_end(self) -> None:
        """Raise GrammarError unless the text ends here."""
        if self.token.kind != "end":
            self.fail("an operator or the end")

    def take_name(self) -> str:
        """Return the name at the position, in backquotes or not, and move past it."""
        token = self.token
        if token.kind not in ("word", "quoted"):
            self.fail("a name")
        self.take()
        return token.text if token.kind == "word" else token.text[1:-1].replace("``", "`")

    def take_qualified_name(self) -> tuple[str, ...]:
        """Return the parts of a name, which dots separate."""
        parts = [self.take_name()]
        while self.accept("."):
            parts.append(self.take_name())
        return tuple(parts)

    def take_list(self, read: Callable[[], Part]) -> tuple[Part, ...]:
        """Return what is read at the position and after each comma."""
        found = [read()]
        while self.accept(","):
            found.append(read())
        return tuple(found)

    def enclosed(self, read: Callable[[], Part]) -> Part:
        """Return what is read in parentheses at the position."""
        self.expect("(")
        found = read()
        self.expect(")")
        return found

    def enclosed_list(self, read: Callable[[], Part]) -> tuple[Part, ...]:
        return self.enclosed(lambda: self.take_list(read))

    def take_names(self) -> tuple[str, ...]:
        return self.enclosed_list(self.take_name)

    def fail(self, expected: str, remedy: str = "") -> NoReturn:
        """Raise GrammarError for the token at the position."""
        token = self.token
        got = "the end" if token.kind == "end" else f"`{token.text[:MAX_SHOWN]}`"
        raise GrammarError(token.start, f"expected {expected}, got {got}", remedy)

    def skip_space(self, position: int) -> int:
        """Return the position of the first character that belongs to no space and no comment."""
        while True:
            space = SPACE.match(self.text, position)
            if space is not None:
                position = space.end()
            elif self.text.startswith("/*", position):
                position = self._end_of_comment(position)
            else:
                return position

    def _end_of_comment(self, start: int) -> int:
        """Return the end of a comment, which may contain others."""
        depth, position = 0, start
        while depth or position == start:
            mark = COMMENT_END.search(self.text, position)
            if mark is None:
                raise GrammarError(start, "the comment does not end: expected */")
            depth += 1 if mark[0] == "/*" else -1
            position = mark.end()
        return position

    def _read(self, start: int) -> Token:
        match = TOKEN.match(self.text, start)
        if match is None:
            return Token("end", "", start, start)
        text, kind = match[0], match.lastgroup
        if kind == "unknown" and text in UNCLOSED:
            raise GrammarError(start, f"expected {UNCLOSED[text]}, got the end")
        word = text.lower() if kind == "word" else ""
        return Token(kind, text, start, match.end(), word)  # type: ignore[arg-type]


def read_whole_text(cursor: CursorType, read: Callable[[CursorType], Part]) -> Part:
    """Return what is read from the whole text of a cursor; raises ExpressionError for another text."""
    with parsing(cursor.text):
        found = read(cursor)
        cursor.expect_end()
    return found


def parts_of_name(text: str) -> tuple[str, ...]:
    """Return the parts of the name that is a whole text; raises GrammarError."""
    cursor = Cursor(text)
    parts = cursor.take_qualified_name()
    cursor.expect_end()
    return parts
