"""Randomly mutated texts of logs and users: each is read, or rejected with an error of this library.

`python tests/support/hostile_text.py SECONDS` runs for that time; the tests try some thousands for each
reader.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from random import Random

from delta_variant.errors import DeltaVariantError
from delta_variant.protocol import z85
from delta_variant.protocol.statistics import decode as decode_statistics
from delta_variant.protocol.statistics import decode_bound
from delta_variant.variant import paths as variant_paths

BOUND = z85.encode(bytes.fromhex("010100016102010000020c01"))
STATISTICS = f'{{"numRecords":3,"minValues":{{"n":1,"v":"{BOUND}"}},"maxValues":{{}},"nullCount":{{"v":0}}}}'


def _z85(text: str) -> None:
    data = z85.decode(text)
    # Decoded bytes are encoded to the same text, unless its last block was cut.
    assert len(text) % 5 or z85.encode(data) == text


def _statistics(text: str) -> None:
    read = decode_statistics(text)
    read.to_json()
    for bounds in (read.min_values, read.max_values):
        for value in bounds.values():
            if isinstance(value, str):
                decode_bound(value)


def _path_key(text: str) -> None:
    names = variant_paths.parse(text)
    assert variant_paths.parse(variant_paths.normalize(names)) == names


def _path(text: str) -> None:
    variant_paths.parse_path(text)


READERS: dict[str, tuple[Callable[[str], None], list[str]]] = {
    "z85": (_z85, [BOUND, "HelloWorld", "", BOUND[:-1]]),
    "statistics": (_statistics, [STATISTICS, "{}", '{"numRecords":null,"tightBounds":false}']),
    "path_key": (_path_key, ["$['a']['b.c']", "$", "$['\\u00e9']['\\'']", "$.a.b", "$['\\ud83d\\ude00']"]),
    "path": (_path, ["$.a[0].b", "$['a']", '$["it\'s"]', "$[2147483647]"]),
}
# Texts that raised another error in the past.
KEPT = {
    "statistics": [
        '{"a":"\ud83d"}',
        '{"minValues":1}',
        '{"minValues":{"n":1e99999999999999999999}}',
        '{"a":' * 2000,
    ],
    "path_key": ["$['\\u\ud83d']"],
}
PIECES = [
    *(
        '"',
        "'",
        "\\",
        "[",
        "]",
        "{",
        "}",
        ":",
        ",",
        ".",
        "$",
        "*",
        "?",
        "@",
        "#",
        "..",
        "[0]",
        "[?@.a]",
        "['a']",
        "null",
    ),
    *(
        "\\u",
        "\\ud83d",
        "\\udc00",
        "\ud83d",
        "\x00",
        "\x7f",
        "é",
        "\U0001f600",
        "1e999",
        "-1",
        "9" * 30,
        "true",
        "{}",
        "[]",
    ),
    *("[" * 2000, '{"a":' * 2000, "$['a']" * 300, "(" * 1000, "!" * 1000),
]


def mutate(text: str, random: Random) -> str:
    """Return the text with a few pieces inserted, removed or repeated."""
    for _ in range(random.randint(1, 4)):
        start = random.randint(0, len(text))
        end = min(len(text), start + random.randint(0, 6))
        replacement = random.choice(
            [random.choice(PIECES), "", text[start:end] * 2, chr(random.randrange(128))]
        )
        text = text[:start] + replacement + text[end:]
    return text


def mutations(name: str, count: int | None = None) -> Iterator[str]:
    """Yield original and mutated texts for one reader, endlessly without a count."""
    random = Random(name)
    seeds = READERS[name][1]
    yield from KEPT.get(name, [])
    for _ in repeat(None) if count is None else range(count):
        yield mutate(random.choice(seeds), random)


def read(name: str, text: str) -> None:
    """Read the text; raise only exceptions that the reader must not raise."""
    with contextlib.suppress(DeltaVariantError):
        READERS[name][0](text)


def main(seconds: float) -> None:
    """Pass texts to each reader in turn until the time is over."""
    for name in READERS:
        end = time.monotonic() + seconds / len(READERS)
        tried = 0
        for text in mutations(name):
            read(name, text)
            tried += 1
            if time.monotonic() > end:
                break
        print(f"{name:16} {tried:>11,} texts", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
