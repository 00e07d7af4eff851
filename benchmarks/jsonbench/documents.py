"""Generate documents in the form of JSONBench, with its published answers for one million.

    python benchmarks/jsonbench/documents.py FILE [--rows 1000000]

JSONBench's documents are events of the social network Bluesky. The texts and ids here are random; the shapes
of the records are those of real events in the corpora, or follow Bluesky's public schemas. With one million
rows, queries 1 to 5 have the answers that JSONBench publishes; other numbers of rows scale its counts. Each
run writes the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from base64 import b32encode
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
CORPORA = Path(os.environ.get("DELTA_VARIANT_CORPORA", HERE.parents[2] / "shared" / "corpora")) / "jsonbench"

MILLION = 1_000_000
SEED = 20241121

START_US = 1_732_206_349_000_167
"""The time of the first document: 2024-11-21 16:25:49.000167 UTC."""

SPAN_US = 813_100_000
"""From the first document of a million to the last."""

TAIL_US = 2_000_000
"""In this time before the end, authors have one post each, so that POSTERS have the longest span."""


@dataclass(frozen=True)
class Collection:
    """The documents of one collection among a million.

    Attributes:
        name: Its name; None for events of accounts, which have no collection.
        events: All documents.
        creates: Those that create a record.
        users: The distinct users of these.
    """

    name: str | None
    events: int
    creates: int = 0
    users: int = 0


COLLECTIONS = (
    Collection("app.bsky.feed.like", 448_944, 444_523, 117_617),
    Collection("app.bsky.graph.follow", 360_374, 337_978, 63_957),
    Collection("app.bsky.feed.post", 90_816, 86_812, 50_464),
    Collection("app.bsky.feed.repost", 58_540, 56_993, 26_581),
    Collection("app.bsky.graph.block", 14_040, 13_838, 5_785),
    Collection("app.bsky.actor.profile", 11_762, 5_337, 5_337),
    Collection("app.bsky.graph.listitem", 8_103, 7_568, 1_078),
    Collection(None, 5_328),
    Collection("app.bsky.graph.listblock", 895, 860, 449),
    Collection("app.bsky.graph.starterpack", 405, 104, 101),
    Collection("app.bsky.graph.list", 356, 259, 218),
    Collection("app.bsky.feed.threadgate", 255, 228, 196),
    Collection("app.bsky.feed.postgate", 104, 101, 82),
    Collection("app.bsky.feed.generator", 74, 10, 9),
    Collection("app.bsky.labeler.service", 4),
)

POST = 2
"""The position of posts among the collections."""

POSTERS = ((0, 813_007), (1_738, 811_602), (3_740, 811_404))
"""The first authors of posts: microseconds to their first post, and milliseconds from there to the last."""

# Records without a real one in the corpora. The ids are replaced like those of real ones.
USER, POST_URI = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", "at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/{}/aaaaaaaaaaaaa"
CREATED = "2024-11-21T16:25:46.221Z"
RECORDS: dict[str, dict[str, Any]] = {
    "app.bsky.actor.profile": {"displayName": "TEXT", "description": "TEXT"},
    "app.bsky.graph.listitem": {"list": POST_URI.format("app.bsky.graph.list"), "subject": USER},
    "app.bsky.graph.listblock": {"subject": POST_URI.format("app.bsky.graph.list")},
    "app.bsky.graph.starterpack": {
        "name": "TEXT",
        "description": "TEXT",
        "list": POST_URI.format("app.bsky.graph.list"),
        "feeds": [],
    },
    "app.bsky.graph.list": {"name": "TEXT", "purpose": "app.bsky.graph.defs#curatelist"},
    "app.bsky.feed.threadgate": {
        "post": POST_URI.format("app.bsky.feed.post"),
        "allow": [{"$type": "app.bsky.feed.threadgate#followingRule"}],
    },
    "app.bsky.feed.postgate": {
        "post": POST_URI.format("app.bsky.feed.post"),
        "embeddingRules": [{"$type": "app.bsky.feed.postgate#disableRule"}],
    },
    "app.bsky.feed.generator": {"did": "did:web:feeds.example", "displayName": "TEXT", "description": "TEXT"},
    "app.bsky.labeler.service": {"policies": {"labelValues": ["spam"]}},
}

ID = re.compile(
    r"did:plc:[a-z2-7]{24}|baf[ky]rei[a-z2-7]{52}|(?<=/)[a-z2-7]{13}(?=\")|TEXT|" + re.escape(CREATED)
)


class Words:
    """Random ids and texts."""

    def __init__(self, random: Random, users: Sequence[str], texts: Sequence[str]) -> None:
        self._random = random
        self._users = users
        self._words = sorted({word for text in texts for word in text.split()})

    def user(self) -> str:
        """Return the id of any user."""
        return self._users[int(self._random.random() ** 2 * len(self._users))]

    def cid(self) -> str:
        """Return the id of a content."""
        return "bafyrei" + letters(self._random, 52)

    def key(self) -> str:
        """Return the key of a record, which begins like those of its time."""
        return "3lb" + letters(self._random, 10)

    def text(self) -> str:
        """Return a text of 1 to 40 words as JSON without its quotes."""
        count = 1 + int(self._random.random() ** 2 * 40)
        return json.dumps(" ".join(self._random.choices(self._words, k=count)), ensure_ascii=False)[1:-1]

    def time(self) -> str:
        """Return when a record was created."""
        milliseconds = int(self._random.random() ** 3 * 3_600_000)
        minutes, rest = divmod(milliseconds, 60_000)
        return f"2024-11-21T16:{25 - minutes % 26:02}:{rest // 1000:02}.{rest % 1000:03}Z"


def letters(random: Random, count: int) -> str:
    """Return random letters and digits of base 32."""
    return b32encode(random.randbytes(count * 5 // 8 + 1)).decode()[:count].lower()


class Shape:
    """The text of a record whose ids, texts and times are replaced by random ones."""

    def __init__(self, record: object) -> None:
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        self._fixed = ID.split(text)
        self._kinds = [kind_of(found) for found in ID.findall(text)]

    def render(self, words: Words) -> str:
        """Return the record as JSON."""
        parts = [self._fixed[0]]
        for kind, fixed in zip(self._kinds, self._fixed[1:], strict=True):
            parts += (kind(words), fixed)
        return "".join(parts)


def kind_of(found: str) -> Callable[[Words], str]:
    """Return what makes another one of an id, a text or a time."""
    if found == "TEXT":
        return Words.text
    if found.startswith("did:"):
        return Words.user
    if found.startswith("baf"):
        return Words.cid
    return Words.time if found == CREATED else Words.key


def load_shapes() -> tuple[dict[str, list[Shape]], list[str]]:
    """Return the shapes of the records of each collection, and the texts of real posts."""
    shapes: defaultdict[str, list[Shape]] = defaultdict(list)
    texts = []
    for file in ("head_10.ndjson", "jetstream_shapes.ndjson"):
        for line in (CORPORA / file).read_text("utf-8").splitlines():
            commit = json.loads(line).get("commit") if line.strip() else None
            if not commit or commit["operation"] != "create":
                continue
            record = commit["record"] | {"createdAt": CREATED}
            if "text" in record:
                texts.append(record["text"])
                record["text"] = "TEXT"
            shapes[commit["collection"]].append(Shape(record))
    for name, record in RECORDS.items():
        shapes[name].append(Shape({"$type": name, **record, "createdAt": CREATED}))
    return dict(shapes), texts


@dataclass
class Plan:
    """What is decided of all documents before they are written, by their position."""

    times: list[int]
    labels: list[int]
    """Twice the position of the collection, plus 1 for one that does not create a record."""
    users: dict[int, str]
    """Of documents that create a record."""


def plan_documents(rows: int, random: Random, users: Sequence[str]) -> Plan:
    """Decide time and collection of each document, and the users that the answers depend on."""
    scale = rows / MILLION
    labels = [
        2 * number + (0 if position < round(each.creates * scale) else 1)
        for number, each in enumerate(COLLECTIONS)
        for position in range(round(each.events * scale))
    ]
    labels += [0] * (rows - len(labels))
    del labels[rows:]
    random.shuffle(labels)
    span = int(SPAN_US * scale)
    times = [START_US + position * span // rows for position in range(rows)]
    special = _place_posters(times, labels, random)
    plan = Plan(times, labels, {})
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for position, label in enumerate(labels):
        if label % 2 == 0 and position not in special:
            positions[label // 2].append(position)
    for number, each in enumerate(COLLECTIONS):
        chosen = random.sample(users, max(1, round(each.users * scale)))
        if number == POST:
            named = dict(zip(POSTERS, chosen, strict=False))
            plan.users |= {position: named[poster] for position, poster in special.items()}
            chosen = chosen[len(POSTERS) :]
        end = times[-1] - TAIL_US if number == POST else times[-1] + 1
        plan.users |= _assign(positions[number], chosen, times, end, random)
    return plan


def _place_posters(times: list[int], labels: list[int], random: Random) -> dict[int, tuple[int, int]]:
    """Make documents posts of POSTERS, and return their positions. No other post comes before the third."""
    post, special = 2 * POST, {}
    for poster in POSTERS:
        first = START_US + poster[0]
        for time in (first, (first // 1000 + poster[1]) * 1000):
            position = min(range(len(times)), key=lambda each: abs(times[each] - time))
            special[position] = poster
            times[position] = time
    last_of_first = sorted(special)[len(POSTERS) - 1]
    others = [each for each, label in enumerate(labels) if label == post and each > last_of_first]
    free = [each for each in random.sample(others, 2 * len(special) + last_of_first) if each not in special]
    for position in sorted(special):
        if labels[position] != post:
            swapped = free.pop()
            labels[position], labels[swapped] = labels[swapped], labels[position]
    for position in range(last_of_first):
        if labels[position] == post and position not in special:
            later = next(
                each for each, label in enumerate(labels) if each > last_of_first and label // 2 != POST
            )
            labels[position], labels[later] = labels[later], labels[position]
    return special


def _assign(
    positions: Sequence[int], users: Sequence[str], times: Sequence[int], end: int, random: Random
) -> dict[int, str]:
    """Give each position a user, each user at least one; users after `end` have one only."""
    late = [position for position in positions if times[position] >= end]
    early = [position for position in positions if times[position] < end]
    random.shuffle(early)
    once, rest = users[: len(late)], users[len(late) :]
    repeated = [rest[int(random.random() ** 2 * len(rest))] for _ in early[len(rest) :]]
    return dict(zip(late, once, strict=True)) | dict(zip(early, [*rest, *repeated], strict=False))


def documents(rows: int) -> Iterator[str]:
    """Yield the documents as JSON."""
    random = Random(SEED)
    users = ["did:plc:" + letters(random, 24) for _ in range(max(10, int(300_000 * rows / MILLION)))]
    shapes, texts = load_shapes()
    words = Words(random, users, texts)
    plan = plan_documents(rows, random, users)
    for position, (time, label) in enumerate(zip(plan.times, plan.labels, strict=True)):
        name = COLLECTIONS[label // 2].name
        user = plan.users.get(position) or words.user()
        head = f'{{"did":"{user}","time_us":{time},"kind":'
        if name is None:
            yield head + _account_event(user, position, random)
        else:
            yield f'{head}"commit","commit":{_commit(name, label % 2 == 0, shapes, words, random)}}}'


def _account_event(user: str, position: int, random: Random) -> str:
    values = f'"did":"{user}","seq":{3_700_000_000 + position},"time":"2024-11-21T16:26:00.134Z"'
    if random.random() < 0.5:
        return f'"account","account":{{"active":true,{values}}}}}'
    return f'"identity","identity":{{{values},"handle":"{letters(random, 8)}.bsky.social"}}}}'


def _commit(name: str, creates: bool, shapes: dict[str, list[Shape]], words: Words, random: Random) -> str:
    updates = name in ("app.bsky.actor.profile", "app.bsky.labeler.service")
    operation = "create" if creates else "update" if updates else "delete"
    key = "self" if updates else words.key()
    commit = f'{{"rev":"{words.key()}","operation":"{operation}","collection":"{name}","rkey":"{key}"'
    if operation == "delete":
        return commit + "}"
    record = random.choice(shapes[name]).render(words)
    return f'{commit},"record":{record},"cid":"{words.cid()}"}}'


def main() -> None:
    parser = argparse.ArgumentParser(description="Generate documents in the form of JSONBench.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=MILLION)
    arguments = parser.parse_args()
    part = arguments.file.with_name(arguments.file.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in documents(arguments.rows))
    part.rename(arguments.file)


if __name__ == "__main__":
    main()
