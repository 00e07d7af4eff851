"""Generate web-shop events as JSON lines: nested objects, arrays, optional fields and a few odd-typed values.

    python benchmarks/generate.py OUT ROWS [--seed 20260101] [--clean] [--shuffle]

The same seed generates the same bytes. `--clean` omits the odd-typed values, and `--shuffle` changes only the
order of the keys of every object.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from random import Random

# Joins the members of an object, in the given order or in a random order.
Join = Callable[[list[str]], str]

TYPES = ("view", "view", "view", "view", "click", "click", "search", "buy")
COUNTRIES = ("DE", "FR", "US", "GB", "NL", "PL", "ES", "IT", "SE", "BR", "IN", "JP")
CITIES = (
    "Berlin",
    "Lyon",
    "Austin",
    "Leeds",
    "Utrecht",
    "Kraków",
    "Sevilla",
    "Torino",
    "Malmö",
    "Recife",
    "Pune",
    "Ōsaka",
)
SYSTEMS = ("android", "ios", "windows", "macos", "linux")
MODELS = (
    "Pixel 9",
    "iPhone 17",
    "Galaxy S26",
    "ThinkPad X1",
    "MacBook Air",
    "Surface Pro",
    "Fairphone 6",
    "Xperia 5",
)
SCREENS = ((1080, 2400), (1170, 2532), (1920, 1080), (2560, 1600), (1440, 900))
FIRST_NAMES = ("Ada", "Émile", "Grace", "Linus")
LAST_NAMES = ("Byron", "Noether", "Hopper", "Li", "Olsen", "Ruiz", "Sato", "Weber")
NAMES = tuple(f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES)
PLANS = ("free", "free", "free", "plus", "pro")
CURRENCIES = ("EUR", "EUR", "USD", "GBP", "JPY")
PAGES = ("/", "/search", "/cart", "/account", "/help", "/product/")
TAGS = ("new", "sale", "mobile", "returning", "ab-test-1", "ab-test-2", "newsletter", "vip", "bot?", "gift")
STATUSES = (200, 200, 200, 200, 200, 200, 201, 304, 404, 500)
START_MS = 1_735_689_600_000


def main() -> None:
    arguments = parse_arguments()
    events = generate(arguments.seed, clean=arguments.clean, shuffle=arguments.shuffle)
    with arguments.out.open("w", encoding="utf-8", buffering=1 << 20) as out:
        out.writelines(islice(events, arguments.rows))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Generate web-shop events as JSON lines.")
    parser.add_argument("out", type=Path)
    parser.add_argument("rows", type=int)
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--clean", action="store_true", help="leave out the odd-typed values")
    parser.add_argument("--shuffle", action="store_true", help="shuffle the keys of every object")
    return parser.parse_args()


def generate(seed: int, *, clean: bool, shuffle: bool) -> Iterator[str]:
    """Yield events endlessly, each one line of JSON with its line feed."""
    # Three random generators, so that an option does not change the other values.
    values, dirt = Random(seed), Random(seed + 1)
    join = partial(_join_shuffled, Random(seed + 2)) if shuffle else _join
    clock = START_MS
    while True:
        clock += int(values.random() * 40)
        yield _event(values, dirt if not clean else None, clock, join)


def _event(values: Random, dirt: Random | None, clock: int, join: Join) -> str:
    chance = values.random
    odd = _odd_types(dirt) if dirt else {}
    status = STATUSES[int(chance() * 10)]
    members = [
        f'"id":"{values.getrandbits(128):032x}"',
        f'"ts":"{_timestamp(clock)}"',
        f'"type":"{TYPES[int(chance() * 8)]}"',
        f'"x":{odd.get("x") or int(chance() * 1_000_001)}',
        f'"dur":{odd.get("dur") or round(chance() ** 3 * 5000, 3)}',
        f'"ok":{"true" if status < 400 else "false"}',
        f'"status":{status}',
        f'"url":"{_url(chance)}"',
        f'"user":{_user(chance, join)}',
        f'"device":{odd.get("device") or _device(chance, join)}',
        f'"geo":{_geo(chance, odd.get("lat"), join)}',
    ]
    if chance() < 0.3:
        members.append(f'"tags":{_tags(values)}')
    if chance() < 0.22:
        members.append(f'"cart":{_cart(chance, join)}')
    if chance() < 0.05:
        members.append('"error":null')
    return join(members) + "\n"


def _odd_types(dirt: Random) -> dict[str, str]:
    """Return the odd-typed members of an event as JSON text."""
    x, duration, device, latitude = dirt.random(), dirt.random(), dirt.random(), dirt.random()
    odd = {}
    if x < 0.005:
        odd["x"] = f'"{int(dirt.random() * 1_000_001)}"'
    if duration < 0.01:
        odd["dur"] = '"n/a"'
    if device < 0.005:
        odd["device"] = f'"{SYSTEMS[int(dirt.random() * 5)]}"'
    if latitude < 0.003:
        odd["lat"] = f'"{dirt.random() * 90:.3f}"'
    return odd


def _timestamp(clock: int) -> str:
    minute, milliseconds = divmod(clock, 60_000)
    return f"{_minute(minute)}:{milliseconds // 1000:02d}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=2)
def _minute(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, timezone.utc).strftime("%Y-%m-%dT%H:%M")


def _url(chance: Callable[[], float]) -> str:
    page = PAGES[int(chance() * 6)]
    return f"{page}{int(chance() * 40_000)}" if page == "/product/" else page


def _user(chance: Callable[[], float], join: Join) -> str:
    # The square gives few users most of the visits.
    number = int(chance() ** 2 * 1_000_000)
    members = [f'"id":{number}', f'"name":"{NAMES[number % 32]}"', f'"plan":"{PLANS[number % 5]}"']
    if number % 4:
        members.append(f'"age":{18 + number % 60}')
    return join(members)


def _device(chance: Callable[[], float], join: Join) -> str:
    width, height = SCREENS[int(chance() * 5)]
    screen = join([f'"w":{width}', f'"h":{height}'])
    return join(
        [
            f'"os":"{SYSTEMS[int(chance() * 5)]}"',
            f'"ver":"{10 + int(chance() * 8)}.{int(chance() * 10)}"',
            f'"model":"{MODELS[int(chance() * 8)]}"',
            f'"screen":{screen}',
        ]
    )


def _geo(chance: Callable[[], float], latitude: str | None, join: Join) -> str:
    place = int(chance() * 12)
    return join(
        [
            f'"country":"{COUNTRIES[place]}"',
            f'"city":"{CITIES[place]}"',
            f'"lat":{latitude or round(35 + chance() * 25, 3)}',
            f'"lon":{round(chance() * 40 - 10, 3)}',
        ]
    )


def _tags(values: Random) -> str:
    return "[" + ",".join([f'"{tag}"' for tag in values.sample(TAGS, 1 + int(values.random() * 3))]) + "]"


def _cart(chance: Callable[[], float], join: Join) -> str:
    items = [_item(chance, join) for _ in range(1 + int(chance() * 3))]
    return join(
        [
            f'"amount":{round(1 + chance() ** 2 * 400, 2):.2f}',
            f'"currency":"{CURRENCIES[int(chance() * 5)]}"',
            f'"items":[{",".join(items)}]',
        ]
    )


def _item(chance: Callable[[], float], join: Join) -> str:
    product = int(chance() * 40_000)
    return join(
        [f'"sku":"P-{product:05d}"', f'"qty":{1 + int(chance() * 4)}', f'"price":{product % 9973 / 100:.2f}']
    )


def _join(members: list[str]) -> str:
    return "{" + ",".join(members) + "}"


def _join_shuffled(order: Random, members: list[str]) -> str:
    return "{" + ",".join(order.sample(members, len(members))) + "}"


if __name__ == "__main__":
    main()
