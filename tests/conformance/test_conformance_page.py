"""The page of the conformance kit with 14 engines and 3,000 cases, tested in a real browser."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from support.browser import Browser, open_browser

from delta_variant_conformance.case import KINDS, Case
from delta_variant_conformance.engines import ENGINES
from delta_variant_conformance.grade import STATUSES, Result
from delta_variant_conformance.page import html_page
from delta_variant_conformance.runner import EngineRun, Run

SIZES = {"wide": (1440, 900), "phone": (390, 844)}
CASES = 3000
PATTERNS = 40

# Layout is not asked for: the browser does it for the visible cases alone.
VISIBLE = "[...document.querySelectorAll('{}')].filter(each => getComputedStyle(each).display != 'none')"


def big_run() -> Run:
    """Return a run in which each kind has cases of 40 patterns of outcomes."""
    kinds = list(KINDS)
    cases = [
        Case(
            f"{kinds[number % len(kinds)]}/a_case_with_a_name_of_usual_length_{number}",
            kinds[number % len(kinds)],
            Path(),
            (f"R{number % 90}",),
            "keeps",
            "VariantShredding.md, Value Shredding",
            "A reader returns the value that was written",
            {},
            {},
        )
        for number in range(CASES)
    ]
    engines = [
        EngineRun(
            name, "1.2.3 with a library 4.5", tuple(result(case, name, n) for n, case in enumerate(cases))
        )
        for name in ENGINES
    ]
    return Run(tuple(cases), tuple(engines))


def result(case: Case, engine: str, number: int) -> Result:
    """Return an outcome that depends on the pattern of the case, and on the engine."""
    pattern = number // len(KINDS) % PATTERNS
    status = Random(f"{engine} {pattern}").choice([*STATUSES, *["pass"] * len(STATUSES)])
    return Result(case, engine, status, '{"rows": [{"int8": 1}]}', f"{engine} answers {pattern} " * 10)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(html_page(big_run()), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


def open_page(browser: Browser, page: Path, size: str) -> None:
    browser.resize(*SIZES[size])
    browser.open(page)


def test_the_page_has_a_line_for_each_pattern_of_outcomes(browser: Browser, page: Path):
    open_page(browser, page, "wide")
    assert (
        len(browser.run(f"return {VISIBLE.format('.group')}.map(each => each.id)")) <= len(KINDS) * PATTERNS
    )
    assert browser.run("return document.querySelectorAll('.case').length") == CASES
    assert browser.run("return document.querySelectorAll('.group[open]').length") == 0
    assert browser.messages() == []
    assert page.stat().st_size < 40_000_000


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_window(browser: Browser, page: Path, size: str):
    open_page(browser, page, size)
    browser.run("document.querySelector('.group').open = true")
    assert browser.run("return document.documentElement.scrollWidth") == SIZES[size][0]
    narrow = browser.run(
        "return [...document.querySelectorAll('.names label')].filter(each => each.offsetWidth < 20).length"
    )
    assert narrow == 0


def test_no_column_of_the_matrix_is_cut(browser: Browser, page: Path):
    browser.resize(1400, 900)
    browser.open(page)
    widths = browser.run(
        "return [...document.querySelectorAll('.matrix')]"
        ".map(each => [each.scrollWidth, each.parentElement.clientWidth])"
    )
    assert len(widths) == 2
    assert all(table <= window for table, window in widths), widths


@pytest.mark.parametrize("size", SIZES)
def test_the_names_of_the_engines_stay_above_their_columns(browser: Browser, page: Path, size: str):
    open_page(browser, page, size)
    found = browser.run(
        """const section = document.querySelectorAll('section.kind')[2];
        window.scrollTo(0, section.offsetTop + section.offsetHeight - 600);
        const names = [...section.querySelectorAll('.names label')];
        const marks = [...section.querySelector('.group summary').querySelectorAll('i')];
        const middle = each => each.getBoundingClientRect().left + each.getBoundingClientRect().width / 2;
        return [names[0].getBoundingClientRect().top >= 0, names.length, marks.length,
          Math.max(...names.map((each, index) => Math.abs(middle(each) - middle(marks[index]))))]"""
    )
    assert found[:3] == [True, len(ENGINES), len(ENGINES)]
    assert found[3] < 2


def test_a_filter_leaves_the_groups_and_findings_of_an_engine_and_a_status(browser: Browser, page: Path):
    open_page(browser, page, "wide")
    every = browser.run(f"return {VISIBLE.format('.group')}.length")
    # The name above a column is a filter, too.
    browser.run("document.querySelector('.names label[for=engine-4]').click()")
    of_engine = browser.run(f"return {VISIBLE.format('.group')}.length")
    browser.run("document.querySelector('#status-wrong').click()")
    groups = browser.run(
        f"return {VISIBLE.format('.group')}.map(each => each.querySelectorAll('i')[4].className)"
    )
    assert 0 < len(groups) < of_engine < every
    assert set(groups) == {"wrong"}
    browser.run(f"const [group] = {VISIBLE.format('.group')}; group.open = true; group.id = 'first'")
    findings = browser.run(f"return {VISIBLE.format('#first .finding')}.map(each => each.className)")
    assert set(findings) == {"finding e4 wrong"}
