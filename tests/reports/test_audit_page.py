"""The page of an audit, tested in a real browser."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re

import pyarrow as pa
import pytest
from support.browser import open_browser
from support.planting import Table

import delta_variant as dv
from delta_variant.reports.audit import audit_page, rule_url
from delta_variant.reports.bounds import PathBounds, picture
from delta_variant.reports.page import Row, percent, tree

HOSTILE = "</style><script>document.title='broken'</script><img src=x onerror=alert(1)>\"'&\u202e\x1b"
OVERFLOWING = """return [...document.querySelectorAll('.row > span')]
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)"""
SIZES = {"wide": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    """Return a browser for all tests of the page."""
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the pages of tables: clean, faulty, with hostile names, unloadable, of one file, and wide."""
    folder = tmp_path_factory.mktemp("pages")
    tables = {"clean": sorted_table(folder / "clean"), "faulty": sorted_table(folder / "faulty")}
    Table(tables["faulty"]).edit_stats(lambda statistics: statistics.update(numRecords=7))
    tables["hostile"] = hostile_table(folder / "hostile")
    tables["unloadable"] = Table.write(folder / "unloadable").path
    (tables["unloadable"] / "_delta_log" / f"{0:020d}.json").write_text("{\n", "utf-8")
    tables["single"] = Table.write(folder / "single").path
    tables["wide"] = wide_table(folder / "wide")
    pages = {}
    for name, table in tables.items():
        pages[name] = folder / f"{name}.html"
        pages[name].write_text(audit_page(dv.audit_table(table, data=True)), encoding="utf-8")
    return pages


def sorted_table(path):
    """Write five files, sorted by `id` and not by `age`."""
    for part in range(5):
        texts = [json.dumps({"id": part * 10 + n, "age": n, "name": f"n{part}{n}"}) for n in range(10)]
        schema = dv.infer_shredding_schema(texts)
        data = pa.table({"event": pa.array(texts, pa.json_())})
        dv.write_table(path, data, mode="append", shredding=schema)
    return path


def hostile_table(path):
    """Write names of columns, paths and files that contain markup."""
    name = "c" + re.sub(r"[ ,;{}()\n\t=/]", "", HOSTILE)
    options = {"configuration": {"delta.columnMapping.mode": "name"}}
    texts = [json.dumps({HOSTILE: HOSTILE, "n": number}) for number in range(3)]
    schema = dv.infer_shredding_schema(texts)
    dv.write_table(path, pa.table({name: pa.array(texts, pa.json_())}), shredding=schema, **options)
    table = Table(path)
    (path / "<script>alert(1)<").mkdir()
    table.file.rename(path / "<script>alert(1)</script>.parquet")
    table.edit("add", lambda add: add.update(path="%3Cscript%3Ealert(1)%3C/script%3E.parquet"))
    table.edit_stats(lambda statistics: statistics.update(numRecords=7))
    return path


def wide_table(path):
    """Write twenty files of one row, with 5,000 different paths."""
    for part in range(20):
        document = {f"group{part}": {f"key{number}": number for number in range(250)}}
        text = json.dumps(document)
        schema = dv.infer_shredding_schema([text])
        data = pa.table({"event": pa.array([text], pa.json_())})
        dv.write_table(path, data, mode="append", shredding=schema)
    return path


@pytest.mark.parametrize("name", ["clean", "faulty", "hostile", "unloadable", "single", "wide"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_renders_without_warnings_and_fits(browser, pages, name, size, dark):
    browser.resize(*SIZES[size], dark=dark)
    browser.open(pages[name])
    assert browser.messages() == []
    # A phone that shows a wider page zooms out, and innerWidth grows.
    assert browser.run("return document.documentElement.scrollWidth") <= SIZES[size][0]
    assert browser.run(OVERFLOWING) == []
    assert browser.run("return [document.scripts.length, document.images.length]") == [1, 0]
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    paper = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(21, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert browser.screenshot().startswith(b"\x89PNG")


def test_the_health_is_shown_first(browser, pages):
    browser.resize(*SIZES["wide"])
    seen = {}
    for name in ("clean", "faulty", "unloadable"):
        browser.open(pages[name])
        seen[name] = browser.run("return document.querySelector('.verdict').innerText")
    assert seen == {
        "clean": "Clean",
        "faulty": "Rules are broken",
        "unloadable": "Readers cannot load this table",
    }
    top = browser.run("return document.querySelector('.health').getBoundingClientRect().bottom")
    assert top < SIZES["wide"][1] / 2


def test_findings_are_grouped_by_rule_with_the_text_of_the_rule(browser, pages):
    browser.open(pages["faulty"])
    found = browser.run(
        "return [...document.querySelectorAll('.rule')].map(rule => "
        "[rule.id, rule.open, rule.querySelector('summary').innerText, "
        "[...rule.querySelectorAll('dd')].map(item => item.innerText), "
        "[...rule.querySelectorAll('li')].map(item => item.innerText)])"
    )
    ((anchor, is_open, heading, texts, (violation,)),) = found
    assert (anchor, is_open) == ("rule-au11", True)
    assert heading.split() == ["AU11", "1", "error", "in", "1", "file"]
    assert texts == [
        "numRecords equals the number of rows in the data file, including deleted rows.",
        "PROTOCOL.md, Per-file Statistics. Audit rules.",
        "if the rows are right, run delta-variant repair-statistics; "
        "until then a reader that skips by it loses rows",
    ]
    assert browser.run("return document.querySelector('.rule a').href") == rule_url("AU11")
    assert violation.endswith(".parquet numRecords is 7, but the file has 10 rows")


def test_the_files_are_listed_with_their_findings(browser, pages):
    browser.open(pages["faulty"])
    files = browser.run(
        "return [...document.querySelectorAll('.files li')].map(row => "
        "[...row.querySelectorAll('.chips, .number')].map(cell => cell.innerText.trim()))"
    )
    assert sorted(row[:2] for row in files) == [["", "10 rows"]] * 4 + [["1 error", "10 rows"]]
    assert all(re.fullmatch(r"\d\.\d kB", size) for _, _, size in files)


def test_the_tree_shows_the_fill_rate_of_each_path(browser, pages):
    browser.open(pages["clean"])
    rows = browser.run(
        "return [...document.querySelectorAll('.list:not(.files) li .row')].map(row => "
        "['.name', '.type', '.fill'].map(cell => row.querySelector(cell).innerText.trim()))"
    )
    assert rows == [
        ["event", "object", ""],
        ["age", "bigint", "100 %"],
        ["id", "bigint", "100 %"],
        ["name", "string", "100 %"],
    ]
    bars = browser.run(
        "return [...document.querySelectorAll('.bar .typed')].map(bar => "
        "bar.getBoundingClientRect().width / bar.parentNode.getBoundingClientRect().width)"
    )
    assert bars == [1, 1, 1]


def test_overlapping_bounds_are_marked_as_poor(browser, pages):
    browser.open(pages["clean"])
    figures = browser.run(
        "return [...document.querySelectorAll('figure')].map(figure => "
        "[figure.querySelector('b').innerText, figure.className, figure.querySelector('.chip').innerText, "
        "figure.querySelectorAll('.bounds').length])"
    )
    assert figures == [
        ["event:id", "good", "a lookup reads 1 of 5 files", 5],
        ["event:name", "good", "a lookup reads 1 of 5 files", 5],
        ["event:age", "poor", "a lookup reads 5 of 5 files", 5],
    ]
    widths = browser.run(
        "const width = each => each.getBoundingClientRect().width; "
        "return [...document.querySelectorAll('svg')].map(svg => "
        "Math.max(...[...svg.querySelectorAll('.bounds')].map(width)) / width(svg))"
    )
    assert widths[0] < 0.25
    assert widths[2] == pytest.approx(1, abs=0.01)


def test_pictures_keep_the_width_of_their_axis(browser, pages):
    browser.resize(*SIZES["wide"])
    browser.open(pages["clean"])
    edges = browser.run(
        "const [svg, axis] = ['svg', '.axis']"
        ".map(each => document.querySelector(each).getBoundingClientRect()); "
        "const bars = [...document.querySelector('svg').querySelectorAll('.bounds')]"
        ".map(bar => bar.getBoundingClientRect()); "
        "return [bars[0].left - axis.left, axis.right - bars.at(-1).right, "
        "svg.width - axis.width, svg.height]"
    )
    assert edges[:3] == pytest.approx([0, 0, 0], abs=0.5)
    assert edges[3] <= 256


def test_one_file_has_nothing_to_skip(browser, pages):
    browser.open(pages["single"])
    assert "there is nothing to skip" in browser.run("return document.body.innerText")
    assert browser.run("return [...document.querySelectorAll('figure')].map(each => each.className)") == [
        "single",
        "single",
        "single",
    ]


SEARCH = """
    const list = document.querySelector(arguments[0]), input = list.querySelector('input');
    const spent = [];
    for (const text of ['key7', 'e', 'none', 'group3.key24', '']) {
        input.value = text;
        const start = performance.now();
        input.dispatchEvent(new Event('input'));
        void document.body.offsetHeight;
        spent.push(performance.now() - start);
    }
    return spent
"""


def test_a_search_in_5000_paths_takes_less_than_100_milliseconds(browser, pages):
    browser.open(pages["wide"])
    script = SEARCH.replace("arguments[0]", "'.list:not(.files)'")
    # The best of several attempts, because other processes run at the same time.
    attempts = [browser.run(script) for _ in range(15)]
    assert max(map(min, zip(*attempts, strict=True))) < 100


def test_a_search_shows_matches_below_their_parents(browser, pages):
    browser.open(pages["wide"])
    seen = browser.run(
        "const list = document.querySelector('.list:not(.files)'), input = list.querySelector('input'); "
        "const shown = text => { input.value = text; input.dispatchEvent(new Event('input')); "
        "return [list.querySelector('output').textContent, [...list.querySelectorAll('.name')]"
        ".filter(each => each.checkVisibility()).map(each => each.textContent)]; }; "
        "return [shown('GROUP3.key24'), shown('group3.key249'), shown('key')[0], shown('')]"
    )
    narrow = ["key24", *sorted(f"key24{digit}" for digit in range(10))]
    assert seen[0] == ["11 of 5021 match", ["path", "event", "group3", *narrow]]
    assert seen[1] == ["1 of 5021 match", ["path", "event", "group3", "key249"]]
    assert seen[2] == "5000 of 5021 match, the first 100 are shown"
    assert seen[3] == ["", ["path", "event", *sorted(f"group{number}" for number in range(20))]]


def test_paths_are_sorted_by_bytes(browser, pages):
    browser.open(pages["clean"])
    names = browser.run(
        "const list = document.querySelector('.list:not(.files)'), select = list.querySelector('select'); "
        "const names = () => [...list.querySelectorAll('li .name')].map(each => each.textContent); "
        "return ['b', ''].map(key => { select.value = key; select.dispatchEvent(new Event('change')); "
        "return names(); })"
    )
    assert names == [["event", "name", "age", "id"], ["event", "age", "id", "name"]]


def test_a_page_is_complete_and_operable_without_a_script(pages, tmp_path):
    text = pages["wide"].read_text("utf-8")
    assert text.count('<div class="tools" hidden>') == 2
    assert len(re.findall(r'class="name"[^>]*>key[0-9]+<', text)) == 5000
    # The rows that expand are summaries, which browsers operate by keyboard and announce to screen readers.
    assert text.count('<summary class="row">') == 21
    policy = re.search(r'content="(default-src[^"]*)"', text)[1]
    (script,) = re.findall(r"<script>(.*)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert html.unescape(policy) == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (0, 5, "0 %"),
        (5, 0, "0 %"),
        (1, 3000, "< 0.1 %"),
        (1, 3, "33 %"),
        (1, 30, "3.3 %"),
        (999, 1000, "> 99 %"),
        (7, 7, "100 %"),
        (18, 7, "257 %"),
    ],
)
def test_percentages_are_rounded_to_what_a_reader_needs(part, whole, expected):
    assert percent(part, whole) == expected


def test_hostile_names_are_text(browser, pages):
    browser.open(pages["hostile"])
    assert browser.run("return document.title") == "Audit of hostile"
    text = browser.run("return document.body.innerText")
    assert "<img src=x onerror=alert(1)>" in text
    assert "<script>alert(1)</script>.parquet" in text
    assert not [c for c in text if not c.isprintable() and c not in "\n\t"]


def test_rows_can_be_deeper_than_the_calls_of_python():
    row = Row("leaf", ())
    for number in range(3000):
        row = Row(f"r{number}", (), children=[row])
    shown = "".join(tree("rows", (), [row]))
    assert (shown.count("<li "), shown.count("</li>"), row.count()) == (3001, 3001, 3001)
    assert shown.index(">r1<") < shown.index(">leaf<") < shown.index("</ul></details></li>")


def test_a_picture_of_one_value_and_of_many_files_is_drawn():
    one = PathBounds("v", "$", "bigint", ((1.0, 1.0),), "1", "1", True, 1)
    assert picture(one).count('class="bounds"') == 1
    intervals = tuple((float(n), float(n + 1)) for n in range(10_000))
    many = PathBounds("v", "$", "bigint", intervals, "0", "10000", True, 10_000)
    assert picture(many).count('class="bounds"') == 160
    assert many.read_by_lookup == pytest.approx(2, abs=0.01)
