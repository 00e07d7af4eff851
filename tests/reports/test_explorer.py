"""The explorer page of `inspect --html`: the estimates, and the page in a real browser."""

from __future__ import annotations

import json
import re
from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from support.browser import open_browser
from support.planting import Table
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.operations.describe import sample
from delta_variant.reports import explorer
from delta_variant.reports.explorer import explore, files_after_sort, files_before_sort
from delta_variant.reports.explorer_page import explorer_page
from delta_variant.reports.page import rounded

HOSTILE = "</style><script>document.title='broken'</script><img src=x onerror=alert(1)>\"'&\u202e\x1b`"
OVERFLOWING = """return [...document.querySelectorAll('.row > span')]
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)"""
SIZES = {"wide": (1280, 900), "phone": (390, 844)}


def write(path, documents, files=1, **options):
    """Write documents to a column `event`, in files of the same number of rows."""
    size = -(-len(documents) // files)
    for start in range(0, len(documents), size):
        texts = [json.dumps(each) for each in documents[start : start + size]]
        chosen = {"shredding": dv.infer_shredding_schema(texts), **options}
        dv.write_table(path, pa.table({"event": pa.array(texts, pa.json_())}), mode="append", **chosen)
    return path


def shuffled(rows):
    random = Random(1)
    documents = [{"id": number, "kind": "abcd"[number % 4], "day": number // 25} for number in range(rows)]
    random.shuffle(documents)
    return documents


def read_by_a_lookup(documents, path, files):
    """Return the average number of files whose range covers the value of a row."""
    values = [document[path] for document in documents]
    size = len(values) // files
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    return sum(sum(min(part) <= value <= max(part) for part in parts) for value in values) / len(values)


# The estimates.


def test_a_lookup_reads_the_files_whose_bounds_cover_the_value():
    sides = [(0, 9), (10, 19), (5, 24)]
    # Of the 4 files, one has no bounds.
    assert files_before_sort({"3": 1}, sides, 4) == 2
    assert files_before_sort({"12": 1}, sides, 4) == 3
    assert files_before_sort({"3": 3, "12": 1}, sides, 4) == 2.25
    assert files_before_sort({'"a"': 1}, sides, 4) == 4
    assert files_before_sort({"3": 1}, [], 4) == 4
    assert files_before_sort({"3": 1, "true": 1}, sides, 4) == 4
    assert files_before_sort({'"b"': 1}, [("a", "c"), ("d", "e")], 2) == 1


def test_after_a_sort_a_lookup_reads_the_files_that_contain_the_value():
    # Eight rows in four files: a value in one row is in one file, a value in all rows is in all.
    assert files_after_sort({str(number): 1 for number in range(8)}, 8, 8, 4) == 1
    assert files_after_sort({"1": 8}, 8, 8, 4) == 4
    # The value 1 fills the rows 0 to 2, of the first two files, and 2 the rows 3 to 7, of the other three.
    assert files_after_sort({"1": 3, "2": 5}, 8, 8, 4) == (3 * 2 + 5 * 3) / 8
    # The second half of the rows lacks the path.
    assert files_after_sort({"1": 4}, 8, 8, 4) == 2
    # A sample of an eighth.
    assert files_after_sort({"1": 1, "2": 7}, 8, 64, 4) == (1 + 7 * 4) / 8


@pytest.mark.parametrize("path", ["id", "kind", "day"])
def test_the_estimate_of_a_sort_is_what_the_sorted_table_reads(tmp_path, path):
    table = write(tmp_path / "t", shuffled(400), 8)
    ordered = write(tmp_path / "sorted", sorted(shuffled(400), key=lambda each: each[path]), 8)

    def changes(of):
        return {each.path: each for each in explore(str(of)).columns["event"].sorting}

    before = changes(table)[(path,)]
    assert before.after == pytest.approx(changes(ordered)[(path,)].before)
    assert before.before == pytest.approx(read_by_a_lookup(shuffled(400), path, 8))
    assert before.after == {"id": 1, "kind": 2, "day": 1}[path]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_the_bytes_of_a_schema_are_those_of_files_that_are_written_with_it(tmp_path):
    documents = shuffled(2000)
    sizes = {}
    for name, shredding in (("plain", None), ("shredded", "infer")):
        exploration = explore(str(write(tmp_path / name, documents, shredding=shredding)))
        sizes[name] = exploration.columns["event"].shredding
    plain, shredded = sizes["plain"], sizes["shredded"]
    assert plain.now == plain.unshredded
    assert shredded.now == shredded.inferred
    assert plain.inferred == pytest.approx(shredded.now, rel=0.01)
    # Reading a typed column returns wider integers than JSON text has.
    assert shredded.unshredded == pytest.approx(plain.now, rel=0.05)
    assert plain.added == (("day",), ("id",), ("kind",))
    assert (plain.removed, shredded.added, shredded.removed) == ((), (), ())


@pytest.mark.usefixtures("small_files_are_shredded", "small_files_are_separated")
def test_a_sample_with_residual_rows_has_estimates(tmp_path):
    rows = [{"n": [number] if number % 50 == 0 else number, "k": number % 4} for number in range(2000)]
    exploration = explore(str(write(tmp_path / "t", rows, shredding="infer")))
    assert exploration.files == 2
    change = exploration.columns["event"].shredding
    assert (change.added, change.removed) == ((), ())


def test_the_sample_has_rows_of_files_over_the_whole_table(tmp_path, monkeypatch):
    table = write(tmp_path / "t", [{"id": number} for number in range(100)], 20)
    monkeypatch.setattr(sample, "MAX_FILES", 4)
    monkeypatch.setattr(explorer, "SAMPLE_ROWS", 8)
    exploration = explore(str(table))
    assert (exploration.sampled_files, exploration.sampled_rows) == (4, 8)
    assert (exploration.files, exploration.rows) == (20, 100)
    path = exploration.columns["event"].paths[("id",)]
    # Two rows of each of four files of five rows each, from all over the table.
    assert (path.min, int(path.max or 0) // 5) == ("0", 15)


def test_paths_are_counted_by_row_and_list_elements_once(tmp_path):
    documents = [{"tags": ["x", "y", "x"], "a": None}, {"tags": []}, {"a": {"b": 1.5}}]
    paths = explore(str(write(tmp_path / "t", documents))).columns["event"].paths
    found = {path: (3 * each.filled, 3 * each.nulls, set(each.examples)) for path, each in paths.items()}
    assert found == {
        (): (3, 0, set()),
        ("tags",): (2, 0, set()),
        ("tags", None): (1, 0, {"x", "y"}),
        ("a",): (1, 1, set()),
        ("a", "b"): (1, 0, {"1.5"}),
    }


def test_null_is_apart_from_values_and_a_path_without_a_column_has_its_types(tmp_path, browser):
    documents = [{"kind": "ab"[n % 2] if n % 4 else None, "note": n if n % 10 else "x"} for n in range(40)]
    schema = dv.ShreddingSchema.of({"kind": "string"})
    (tmp_path / "page.html").write_text(
        explorer_page(explore(str(write(tmp_path / "t", documents, shredding=schema)))), encoding="utf-8"
    )
    browser.open(tmp_path / "page.html")
    rows = browser.run(
        "return [...document.querySelectorAll('.list li .row')].slice(1).map(row => "
        "[row.children[1].innerText, row.children[2].innerText, "
        "[...row.querySelectorAll('.bar i')].map(part => [part.className, part.style.width])])"
    )
    assert rows == [
        ["string", "75 %", [["typed", "75%"], ["null", "25%"]]],
        ["bigint\nstring 10 %", "100 %", [["sampled", "100%"]]],
    ]


def test_variants_in_structs_and_names_that_need_quotes_are_explored(tmp_path):
    event = pa.array(['{"id": 1}', '{"id": 2}'], pa.json_())
    variants = dv.parse_json(event.storage)
    marked = {"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
    inner = pa.field("in.ner", variants.type, metadata=marked)
    nested = pa.StructArray.from_arrays([variants], fields=[inner])
    data = pa.table({"o`o": event, "s": nested})
    dv.write_table(tmp_path, data, configuration={"delta.columnMapping.mode": "name"})
    columns = explore(str(tmp_path)).columns
    assert {name: set(column.paths[("id",)].examples) for name, column in columns.items()} == {
        "o`o": {"1", "2"},
        "s.in.ner": {"1", "2"},
    }


def test_a_table_without_variants_or_files_is_explored(tmp_path):
    dv.write_table(tmp_path / "a", pa.table({"id": [1]}))
    assert "The table has no file with a Variant column." in explorer_page(explore(str(tmp_path / "a")))
    write(tmp_path / "b", [{"id": 1}])
    dv.delete(tmp_path / "b", "true")
    assert explore(str(tmp_path / "b")).columns == {}


# The command.


def test_inspect_writes_a_page(tmp_path):
    table, page = write(tmp_path / "t", [{"id": 1}]), tmp_path / "page.html"
    result = CliRunner().invoke(app, ["inspect", str(table), "--html", str(page)])
    assert result.exit_code == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")
    file = str(Table(table).file)
    rejected = CliRunner().invoke(app, ["inspect", file, "--html", str(page)])
    assert rejected.exit_code == 2
    assert "pass a Delta table" in rejected.output


# The page.


@pytest.fixture(scope="module")
def browser():
    """Return a browser for all tests of the page."""
    with open_browser() as browser:
        yield browser


def long_cells() -> list[dict[str, object]]:
    """Return documents with a long name of a type, a large number of distinct values and long bounds."""
    return [{"amount": number + 0.25, "id": "x" * 16 + f"{number:016}"} for number in range(6000)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the pages of tables: several files, hostile text, one file, and cells with long texts."""
    folder = tmp_path_factory.mktemp("pages")
    documents = [{HOSTILE: HOSTILE, "n": number, "o": {HOSTILE: [HOSTILE]}} for number in range(8)]
    tables = {
        "events": write(folder / "events", shuffled(400), 8),
        "hostile": write(folder / "hostile", documents, 2),
        "single": write(folder / "single", [{"id": 1}]),
        "long": write(folder / "long", long_cells()),
    }
    pages = {}
    for name, table in tables.items():
        pages[name] = folder / f"{name}.html"
        pages[name].write_text(explorer_page(explore(str(table))), encoding="utf-8")
    return pages


@pytest.mark.parametrize("name", ["events", "hostile", "single", "long"])
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
    assert browser.run("return [...document.querySelectorAll('.tools')].every(each => !each.hidden)")


def test_the_tree_shows_types_shares_values_and_bytes(browser, pages):
    browser.resize(*SIZES["wide"])
    browser.open(pages["events"])
    rows = browser.run(
        "return [...document.querySelectorAll('.list li .row')].map(row => "
        "[...row.children].map(cell => cell.innerText.replace(/\\s+/g, ' ').trim()))"
    )
    assert [row[1:4] for row in rows] == [
        ["object", "100 %", ""],
        ["bigint", "100 %", "16 distinct"],
        ["bigint", "100 %", "400 distinct"],
        ["string", "100 %", "4 distinct"],
    ]
    assert rows[0][0] == "event"
    assert re.fullmatch(r"day (\d+, ){2}\d+ from 0 to 15", rows[1][0])
    assert re.fullmatch(r'kind ([abcd], ){2}[abcd] from "a" to "d"', rows[3][0])
    assert all(re.fullmatch(r"[\d.]+ (bytes|kB)", row[4]) for row in rows)


def test_the_page_says_what_a_sort_order_would_change(browser, pages):
    browser.open(pages["events"])
    rows = browser.run(
        "return [...[...document.querySelectorAll('.estimates')].at(-1).tBodies[0].rows].map(row => "
        "[...row.cells].map(cell => cell.innerText.split('\\n')[0]))"
    )
    assert rows == [
        ["event:day", "7.88 files (98 %)", "≈ 1 file (12 %)"],
        ["event:id", "7.6 files (95 %)", "≈ 1 file (12 %)"],
        ["event:kind", "8 files (100 %)", "≈ 2 files (25 %)"],
    ]


@pytest.mark.parametrize(
    ("average", "text"), [(1, "1"), (7.876, "7.88"), (99.96, "100"), (999.7, "1,000"), (12345.6, "12,346")]
)
def test_averages_are_rounded_and_not_in_scientific_notation(average, text):
    assert rounded(average) == text


def test_one_file_has_nothing_to_skip(browser, pages):
    browser.open(pages["single"])
    assert "there is nothing to skip" in browser.run("return document.body.innerText")


def test_hostile_names_and_values_are_text(browser, pages):
    browser.open(pages["hostile"])
    assert browser.run("return document.title") == "Paths of hostile"
    browser.run("document.querySelector('.tools button').click()")
    text = browser.run("return document.body.innerText")
    assert text.count("<img src=x onerror=alert(1)>") >= 2
    assert not [c for c in text if not c.isprintable() and c not in "\n\t"]
    counts = Counter(re.findall(r"<(script|img|style)\b", pages["hostile"].read_text("utf-8")))
    assert counts == {"script": 1, "style": 1}
