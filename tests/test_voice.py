"""Phrases that readers misunderstand do not come back; CONTRIBUTING.md, "Voice", has the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (
    "benchmarks",
    "conformance",
    "delta_variant",
    "docs",
    "examples",
    "protocol_fixtures",
    "rust",
    "tests",
)
SUFFIXES = {".md", ".py", ".pyi", ".rs"}
SKIPPED = {"target", "cases", "__pycache__"}


@dataclass(frozen=True)
class Rule:
    """A rejected phrase, what to write instead, an example on either side of the rule, and what is exempt."""

    phrase: str
    instead: str
    rejected: str
    accepted: str
    exception: str = "(?!)"

    def find(self, text: str) -> Iterator[re.Match[str]]:
        # A phrase may continue on the next line of a comment.
        pattern = f"{self.exception}|(?P<phrase>{self.phrase})".replace(" ", r"[\s#/!]+")
        yield from (found for found in re.finditer(pattern, text, re.IGNORECASE) if found["phrase"])


RULES = (
    Rule(
        r"\b(?:is|are|was|were) no\b",
        "is not a …, invalid …",
        "7 is no path",
        "there is no table, the file is no longer needed",
        exception=r"\bthere (?:is|are|was|were) no\b|\b(?:is|are|was|were) no (?:longer|more|less)\b",
    ),
    Rule(
        r"\b(?:is|are) (?-i:none)\b(?! of)",
        "is not one",
        "a folder is none",
        "there is none",
        r"\bthere (?:is|are) none\b",
    ),
    Rule(
        r"\bbehind\b",
        "after, later than, on top of",
        "the commits behind a version",
        "a reader that lags behind",
        exception=r"\b(?:lags?|lagging|falls?|fell) behind\b",
    ),
    Rule(r"\brooms?\b", "module, package", "the rooms of the code", "leave room", r"\bleaves? room\b"),
    Rule(r"\bdoors?\b", "entry point, capability", "the only door to its packages", "an outdoor event"),
    Rule(r"\bjudg(?:e|es|ed|ing|ment)\b", "grade, check, compare", "the judge of the kit", "the grader"),
    Rule(r"\bseams?\b", "boundary, binding", "across the seam", "seamless"),
    Rule(r"\benem(?:y|ies)\b", "hostile", "tables of an enemy", "a hostile table"),
    Rule(r"\bin other hands\b", "by other code", "the same code in other hands", "hands over a value"),
    Rule(r"\bmortals?\b", "workers that are killed", "the mortals", "immortal"),
    Rule(r"\banew\b", "again", "write a file anew", "write a file again"),
    Rule(r"\bmeanwhile\b", "concurrently", "committed meanwhile", "committed concurrently"),
    Rule(r"\bbe it\b", "whether", "a type, be it null", "maybe it is"),
    Rule(r"\bof then\b", "of that version", "the schema of then", "the name of the table"),
    Rule(r"\b(?:come|comes|came|coming) about\b", "happen", "it may have come about", "a comment about it"),
    Rule(r"\bby hand\b", "manually", "built by hand", "by handing it over"),
    Rule(r"\bat hand\b", "available", "bytes that are at hand", "at handover"),
    Rule(r"\b(?:hold|holds|held) against\b", "check against", "held against the rules", "checked against"),
    Rule(r"\bby the letter\b", "strictly", "read by the letter", "letter by letter"),
    Rule(r"\bso many\b", "N, at most N", "print so many rows", "how many rows"),
    Rule(r"\bbeside\b", "next to, in addition to", "beside the file", "besides the file"),
    Rule(r"\bgone\b", "removed, deleted", "the file is gone", "the file was removed"),
    Rule(r"\bfulfil(?:s|l|ls|led|ling)?\b", "satisfy", "rows fulfil it", "rows satisfy it"),
    Rule(r"\bwhoever\b", "the caller, a writer", "whoever writes", "whatever writes"),
    Rule(
        r"\brefused? by (?:name|a sentence)\b",
        "rejected with an error that names …",
        "it is refused by name",
        "rejected by the table",
    ),
    Rule(r"\bhonours?\b|\bhonoured\b", "support", "cannot be honoured", "in honor of"),
)


@cache
def texts() -> tuple[tuple[Path, str], ...]:
    """Return every text of the repository that people read."""
    files = [*ROOT.glob("*.md"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))]
    return tuple(
        (file, file.read_text(encoding="utf-8"))
        for file in sorted(files)
        if file.suffix in SUFFIXES
        and not SKIPPED.intersection(file.relative_to(ROOT).parts)
        and file != Path(__file__)
    )


@cache
def passages() -> tuple[tuple[Path, int, str], ...]:
    """Return file, first line and three lines of text around each place where a rule may find its phrase.

    One search for all phrases takes as long as two for single ones.
    """
    phrases = "|".join(f"(?:{rule.phrase})" for rule in RULES).replace(" ", r"[\s#/!]+")
    pattern = re.compile(phrases, re.IGNORECASE)
    found = []
    for file, text in texts():
        lines = text.split("\n")
        for line in {text.count("\n", 0, match.start()) for match in pattern.finditer(text)}:
            first = max(line - 1, 0)
            found.append((file, first + 1, "\n".join(lines[first : line + 2])))
    return tuple(found)


def misuses(rule: Rule) -> Iterator[str]:
    for file, first, text in passages():
        for found in rule.find(text):
            line = first + text.count("\n", 0, found.start())
            yield f"{file.relative_to(ROOT)}:{line}: {' '.join(found[0].split())}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rejected)
def test_no_text_has_the_phrase(rule: Rule):
    assert list(misuses(rule)) == [], f"write: {rule.instead}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rejected)
def test_the_rule_rejects_the_phrase_alone(rule: Rule):
    assert list(rule.find(rule.rejected))
    assert not list(rule.find(rule.accepted))


def test_a_phrase_across_two_lines_of_a_comment_is_found():
    rule = next(rule for rule in RULES if rule.instead == "happen")
    assert list(rule.find("# It may have come\n    # about."))


def test_every_kind_of_text_is_read():
    suffixes = {file.suffix for file, _ in texts()}
    assert suffixes == SUFFIXES
