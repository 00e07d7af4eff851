"""JSON text with the mistakes of careless or hostile writers; a seed determines the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

NUMBER = re.compile(r"(?<=[:\[,\s])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[,\]}\s])")
MEMBER = re.compile(r'"(?:[^"\\]|\\.)*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[^,{}\[\]"]+),')
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

NUMBERS = [
    *(
        "0",
        "-0",
        "-0.0",
        "0.0",
        "1.50",
        "-1.10",
        "100.00",
        "1e0",
        "1E+2",
        "1e-2",
        "1.5e300",
        "1e400",
        "-1e400",
        "4e-324",
    ),
    *("127", "128", "-128", "-129", "32767", "32768", "2147483647", "2147483648", "-2147483649"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("999999999.9", "9999999999", "0.1234567890123456789", "99999999999999999999999999999999999999"),
    *("0." + "1" * 38, "0." + "1" * 39, "1." + "0" * 37, "1." + "0" * 38, "9" * 39, "0.0" + "0" * 37 + "1"),
    *(
        "2.2250738585072014e-308",
        "1.7976931348623157e308",
        "9007199254740993e0",
        "123456789012345678901234567890e0",
    ),
    *("9" * 999, "9" * 1001, "0." + "3" * 999),
    *(
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x10",
        "1_000",
        "1,5",
        "--1",
        "NaN",
        "Infinity",
        "-Infinity",
        "1.e1",
    ),
]
ESCAPES = [
    *(r"\n", r"\"", r"\/", r"\\", r"\b\f\r\t", r"\u0000", r"\u00e9", r"\uD83D\uDE00", r"\ud83d\ude00"),
    *(r"\uffff", r"\uFEFF", r"\u12", r"\u12G4", r"\x41", r"\a", r"\'", "\\", r"\U0001F600", "\x7f", "\u2028"),
    *(
        r"\ud83d",
        r"\ude00",
        r"\ude00\ud83d",
        r"\ud83dx",
        r"\ud83d\n",
        r"\ud83d\ud83d\ude00",
        "\t",
        "\x00",
        "\x1f",
        "é😀",
    ),
]
SPACES = [
    " ",
    "\t",
    "\n",
    "\r",
    "\r\n  ",
    "\x0b",
    "\x0c",
    "\x00",
    "\u00a0",
    "\u2003",
    "\ufeff",
    "/* */",
    "//",
    "#",
]
LITERALS = [
    "true",
    "false",
    "null",
    "nul",
    "True",
    "truefalse",
    "undefined",
    "'a'",
    "{}",
    "[]",
    "[,]",
    "{,}",
    '{"a"}',
    '""',
    "",
]
TAILS = [" ", "\n", ",", "]", "}", " 1", "null", "x", "\x00", "{}", '"', ";"]
DEPTHS = [1, 2, 5, 20, 60]


def _replace(pattern: re.Pattern[str], choices: list[str]) -> Callable[[str, Random], str]:
    def mutate(text: str, random: Random) -> str:
        places = list(pattern.finditer(text))
        if not places:
            return random.choice(choices)
        place = random.choice(places)
        return text[: place.start()] + random.choice(choices) + text[place.end() :]

    return mutate


def _insert(choices: list[str]) -> Callable[[str, Random], str]:
    def mutate(text: str, random: Random) -> str:
        at = random.randint(0, len(text))
        return text[:at] + random.choice(choices) + text[at:]

    return mutate


def _escape(text: str, random: Random) -> str:
    """Insert a valid or invalid escape into a string or a name."""
    places = list(STRING.finditer(text))
    if not places:
        return f'"{random.choice(ESCAPES)}"'
    place = random.choice(places)
    at = random.randint(place.start() + 1, place.end() - 1)
    return text[:at] + random.choice(ESCAPES) + text[at:]


def _duplicate_member(text: str, random: Random) -> str:
    """Repeat a member next to itself or at the end of the text's last object."""
    places = list(MEMBER.finditer(text))
    if not places:
        return '{"a": 1, "b": {"a": 2}, "\\u0061": 3}'
    member = random.choice(places)
    last = text.rfind("}")
    at = random.choice([member.end(), last])
    again = member[0] if at == member.end() else "," + member[0].rstrip(",")
    return text[:at] + again + text[at:]


def _space(text: str, random: Random) -> str:
    """Insert valid or invalid white space between two tokens."""
    places = [place.start() for place in re.finditer(r"[{}\[\]:,]", text)]
    at = random.choice(places) + random.randint(0, 1) if places else 0
    return text[:at] + random.choice(SPACES) + text[at:]


def _nest(text: str, random: Random) -> str:
    depth = random.choice(DEPTHS)
    opening, closing = random.choice([("[", "]"), ('{"a":', "}"), ('[{"":', "}]")])
    return opening * depth + text + closing * (depth - random.choice([0, 0, 0, 1]))


def _cut(text: str, random: Random) -> str:
    start = random.randint(0, len(text))
    return text[:start] + text[start + random.randint(1, 12) :]


def _truncate(text: str, random: Random) -> str:
    return text[: random.randint(0, len(text))]


def _swap_token(text: str, random: Random) -> str:
    places = [place.start() for place in re.finditer(r'[{}\[\]:,"\\]', text)]
    if not places:
        return text
    at = random.choice(places)
    return text[:at] + random.choice('{}[]:,"\\') + text[at + 1 :]


def _tail(text: str, random: Random) -> str:
    return text + random.choice(TAILS)


MUTATIONS: list[Callable[[str, Random], str]] = [
    _replace(NUMBER, NUMBERS),
    _replace(NUMBER, LITERALS),
    _insert(SPACES),
    _escape,
    _escape,
    _duplicate_member,
    _space,
    _nest,
    _cut,
    _truncate,
    _swap_token,
    _tail,
]


def mutate(text: str, seed: int) -> bytes:
    """Return the text with a few changes; sometimes a flipped byte makes it invalid UTF-8."""
    random = Random(seed)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        text = random.choice(MUTATIONS)(text, random)
    content = bytearray(text.encode())
    if content and random.random() < 0.1:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return bytes(content)
