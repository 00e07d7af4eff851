"""The HTML that notebooks show: small, escaped, without scripts."""

from __future__ import annotations

import re
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
TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td", "code", "br", "small", "i", "div"}
STYLES = re.compile(
    r"text-align: left(; white-space: nowrap)?|(width: 16em|height: 0.8em; width: [\d.]+%)[a-z0-9:;# -]*"
)


class Checker(HTMLParser):
    """Collects tags and text, and fails for attributes but styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert all(name == "style" and STYLES.fullmatch(value or "") for name, value in attrs)
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
    left = ' style="text-align: left"'
    assert html_table("a & b", ["n"], [[1], [None], ["x"]], types=["int"]) == (
        f'<table><caption style="text-align: left; white-space: nowrap">a &amp; b</caption>'
        f"<thead><tr><th{left}>n<br><small>int</small></th></tr></thead>"
        f"<tbody><tr><td>1</td></tr><tr><td{left}><i>null</i></td></tr><tr><td{left}>x</td></tr></tbody></table>"
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
    assert texts[0].startswith(texts[1])
    assert "a vacuum may have deleted it" in texts[0]
    assert "error" in texts[2]
    assert "restore the file" in texts[2]
    assert "WRITEmode=" in texts[3]
    assert "numOutputRows=30" in texts[3]
    assert texts[4] == '{"<script>":"<img src=x onerror=alert(1)>"}'


def test_a_scan_shows_its_first_rows(tmp_path: Path):
    event = '{"<script>": "<img src=x onerror=alert(1)>"}'
    dv.write_table(tmp_path, pa.table({"id": range(30), "event": pa.array([event] * 30, pa.json_())}))
    html = dv.read_table(tmp_path)._repr_html_()
    assert html.count("<tr>") == 11
    assert "eventvariant" in "".join(parse(html).text)
    assert "at version 0, the first 10 rows" in html
    assert dv.read_table(tmp_path, limit=2)._repr_html_().count("<tr>") == 3
    assert dv.read_table(tmp_path, columns=[])._repr_html_().count("<td>") == 0


def test_texts_are_short(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.append(pa.table({"id": [1]}))
    assert repr(table.audit()) == f"<Audit of {tmp_path} at version 0: files=1, error=0, warning=0, info=0>"
    assert repr(table.history()) == "<History of 1 commit: 0 WRITE>"
    entry = table.history()[0]
    assert repr(entry).startswith(f"<HistoryEntry 0: WRITE at {entry.timestamp:%Y-%m-%d %H:%M:%S} UTC, mode=")
    assert "numOutputRows=1" in entry._repr_html_()


def test_an_explanation_shows_how_much_was_read(tmp_path: Path):
    for first in (0, 100, 200, 300):
        dv.write_table(tmp_path, pa.table({"id": range(first, first + 100)}), mode="append")
    explained = dv.read_table(tmp_path, where="id >= 300").explain()
    html = explained._repr_html_()
    texts = parse(html).text
    assert texts[:3] == ["rows: 100 found in 100 decoded", "files", "1 of 4 read"]
    assert "width: 25.0%" in html
    assert "3 skipped by statistics of columns" in texts
    assert str(explained).startswith(
        "files       1 of 4 read\n            3 skipped by statistics of columns\n"
    )


def test_an_audit_without_findings_says_so(tmp_path: Path):
    dv.write_table(tmp_path, pa.table({"id": [1]}))
    assert "no findings" in parse(dv.audit_table(tmp_path)._repr_html_()).text
