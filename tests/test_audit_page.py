"""The page of an audit, tested in a real browser."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from browser import open_browser
from planting import Table

import delta_variant as dv
from delta_variant.cli.audit_page import audit_page
from delta_variant.cli.bounds_picture import PathBounds, picture

HOSTILE = "</style><script>document.title='broken'</script><img src=x onerror=alert(1)>\"'&\u202e\x1b"
SIZES = {"wide": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    """Return a browser for all tests of the page."""
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the pages of four tables: clean, faulty, with hostile names, and unloadable."""
    folder = tmp_path_factory.mktemp("pages")
    tables = {"clean": sorted_table(folder / "clean"), "faulty": sorted_table(folder / "faulty")}
    Table(tables["faulty"]).edit_stats(lambda statistics: statistics.update(numRecords=7))
    tables["hostile"] = hostile_table(folder / "hostile")
    tables["unloadable"] = Table.write(folder / "unloadable").path
    (tables["unloadable"] / "_delta_log" / f"{0:020d}.json").write_text("{\n", "utf-8")
    pages = {}
    for name, table in tables.items():
        pages[name] = folder / f"{name}.html"
        pages[name].write_text(audit_page(dv.audit_table(table, data=True)), encoding="utf-8")
    return pages


def sorted_table(path):
    """Write five files, sorted by `id` and not by `age`."""
    for part in range(5):
        texts = [json.dumps({"id": part * 10 + n, "age": n, "name": f"n{part}{n}"}) for n in range(10)]
        dv.write_table(path, pa.table({"event": pa.array(texts, pa.json_())}), mode="append")
    return path


def hostile_table(path):
    """Write names of columns, paths and files that contain markup."""
    name = "c" + re.sub(r"[ ,;{}()\n\t=/]", "", HOSTILE)
    options = {"configuration": {"delta.columnMapping.mode": "name"}}
    texts = [json.dumps({HOSTILE: HOSTILE, "n": number}) for number in range(3)]
    dv.write_table(path, pa.table({name: pa.array(texts, pa.json_())}), **options)
    table = Table(path)
    (path / "<script>alert(1)<").mkdir()
    table.file.rename(path / "<script>alert(1)</script>.parquet")
    table.edit("add", lambda add: add.update(path="%3Cscript%3Ealert(1)%3C/script%3E.parquet"))
    table.edit_stats(lambda statistics: statistics.update(numRecords=7))
    return path


@pytest.mark.parametrize("name", ["clean", "faulty", "hostile", "unloadable"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_renders_without_warnings_and_fits(browser, pages, name, size, dark):
    browser.resize(*SIZES[size], dark=dark)
    browser.open(pages[name])
    assert browser.messages() == []
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.run("return document.scripts.length + document.images.length") == 0
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


def test_findings_are_grouped_by_file(browser, pages):
    browser.open(pages["faulty"])
    found = browser.run(
        "return [...document.querySelectorAll('.place')].map(place => "
        "[place.querySelector('h3').innerText, place.open, "
        "[...place.querySelectorAll('li')].map(item => item.innerText)])"
    )
    ((heading, is_open, sentences),) = found
    assert heading.endswith(".parquet")
    assert is_open
    assert sentences == [
        "AU11 numRecords is 7, but the file has 10 rows: a reader that skips by it loses rows; "
        "run delta-variant repair"
    ]


def test_the_tree_shows_the_fill_rate_of_each_path(browser, pages):
    browser.open(pages["clean"])
    rows = browser.run(
        "return [...document.querySelectorAll('.tree tbody tr')].map(row => "
        "[...row.cells].slice(0, 3).map(cell => cell.innerText.trim()))"
    )
    assert rows == [
        ["the whole value", "object", ""],
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


def test_hostile_names_are_text(browser, pages):
    browser.open(pages["hostile"])
    assert browser.run("return document.title") == "Audit of hostile"
    text = browser.run("return document.body.innerText")
    assert "<img src=x onerror=alert(1)>" in text
    assert "<script>alert(1)</script>.parquet" in text
    assert not [c for c in text if not c.isprintable() and c not in "\n\t"]


def test_a_picture_of_one_value_and_of_many_files_is_drawn():
    one = PathBounds("v", "$", "bigint", ((1.0, 1.0),), "1", "1", True, 1)
    assert picture(one).count('class="bounds"') == 1
    intervals = tuple((float(n), float(n + 1)) for n in range(10_000))
    many = PathBounds("v", "$", "bigint", intervals, "0", "10000", True, 10_000)
    assert picture(many).count('class="bounds"') == 160
    assert many.read_by_lookup == pytest.approx(2, abs=0.01)
