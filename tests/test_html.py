"""The HTML that notebooks show: small, escaped, without scripts."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant._html import html_table, html_text

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<svg/onload=alert(1)>",
    "</td></table><b>out</b>",
    "&lt;b&gt;",
    "a\u202eb\x1b[31m\x00",
    "\ud800",
    "javascript:alert(1)",
    "x" * 10_000,
]
TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td", "code"}


class Checker(HTMLParser):
    """Collects tags and text, and fails for attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert attrs == []
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parse(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    assert checker.tags <= TAGS
    assert "<script" not in html
    assert not any(character in html for character in "\u202e\x1b\x00\ud800")
    assert len(html) < 20_000
    return checker


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str):
    shown = "".join(parse(html_table(text, [text], [[text, None]])).text)
    hidden = {"\u202e": "\ufffd", "\x1b": "\ufffd", "\ud800": "?"}
    assert shown.startswith("".join(hidden.get(each, each) for each in text[:5]))
    assert len(html_text(text)) < 1000


def test_short_text_is_shown_exactly():
    assert html_table("a & b", ["n"], [[1], [None]]) == (
        "<table><caption>a &amp; b</caption><thead><tr><th>n</th></tr></thead>"
        "<tbody><tr><td>1</td></tr><tr><td></td></tr></tbody></table>"
    )


def test_every_object_of_a_notebook_has_escaped_html(tmp_path: Path):
    name = "<b>&"
    event = '{"<script>": "<img src=x onerror=alert(1)>"}'
    rows = pa.table({name: list(range(30)), "event": pa.array([event] * 30, pa.json_())})
    dv.write_table(tmp_path / "<i>t", rows, configuration={"delta.columnMapping.mode": "name", "<u>": "<s>"})
    table = dv.Table(tmp_path / "<i>t")
    for file in Path(table.table_uri).glob("*.parquet"):
        file.unlink()
    shown: list[Any] = [table, table.snapshot(), table.audit(), table.history(), dv.Variant.from_json(event)]
    texts = ["".join(parse(each._repr_html_()).text) for each in shown]
    assert name in texts[0]
    assert texts[0] == texts[1]
    assert "error" in texts[2]
    assert "WRITE" in texts[3]
    assert texts[4] == '{"<script>":"<img src=x onerror=alert(1)>"}'


def test_a_scan_shows_its_first_rows(tmp_path: Path):
    event = '{"<script>": "<img src=x onerror=alert(1)>"}'
    dv.write_table(tmp_path, pa.table({"id": range(30), "event": pa.array([event] * 30, pa.json_())}))
    html = dv.read_table(tmp_path)._repr_html_()
    assert html.count("<tr>") == 11
    assert "event variant" in "".join(parse(html).text)
    assert dv.read_table(tmp_path, limit=2)._repr_html_().count("<tr>") == 3
    assert dv.read_table(tmp_path, columns=[])._repr_html_().count("<td>") == 0


def test_texts_are_short(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.append(pa.table({"id": [1]}))
    assert repr(table.audit()) == f"<Audit of {tmp_path} at version 0: files=1, error=0, warning=0, info=0>"
    assert repr(table.history()) == "<History of 1 commits: 0 WRITE>"
