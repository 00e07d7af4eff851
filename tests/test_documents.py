"""The code of README.md and docs/ runs and prints its comments. Names and links in the prose exist."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from support.documents import DIRECTIVE, ENVIRONMENTS, ROOT, Page, pages, run_page
from typer import Context
from typer.main import get_command

import delta_variant as dv
from delta_variant import errors
from delta_variant.cli.app import app

PAGES = pages()
README = PAGES[0]
MODULES = {"dv": dv, "errors": errors, "DeltaTable": DeltaTable}
SPARK = "dvs."
KINDS = {"python", "sh", "python spark", "python readers", "html browser", "text"} | {
    f"{language} {environment}"
    for language in ("python", "sh", "sql+jinja", "yaml")
    for environment in ENVIRONMENTS
}

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
CLASSES = [name for name in dv.__all__ if inspect.isclass(getattr(dv, name))]
NAME = re.compile(rf"(?:{'|'.join([*MODULES, *CLASSES])})(?:\.\w+)+|\w+Error")
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')


PAGES_THAT_RUN = [page for page in PAGES if page.blocks("python", "sh")]


@pytest.mark.parametrize("page", PAGES_THAT_RUN, ids=str)
def test_every_block_runs_in_order_from_an_empty_folder(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert run_page(page, tmp_path) >= 1


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_quick_start_can_be_repeated(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        run_page(Page(name), tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_block_runs_or_says_why_it_does_not(page: Page):
    assert {block.kind for block in page.blocks()} <= KINDS
    assert [block.origin for block in page.blocks("text") if block.reason is None] == []
    assert [block.origin for block in page.blocks() if block.reason and block.kind != "text"] == []


def spans(page: Page) -> list[str]:
    return SPAN.findall(page.prose)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_names_and_calls_in_prose_exist(page: Page):
    for span in spans(page):
        if NAME.match(span) is not None:
            check_name_or_call(span)


@pytest.mark.interop
def test_names_and_calls_of_spark_in_prose_exist(monkeypatch: pytest.MonkeyPatch):
    # The unit tier has no PySpark.
    from delta_variant import spark

    monkeypatch.setattr(dv, "dvs", spark, raising=False)
    named = [
        span.replace(SPARK, "dv.dvs.") for page in PAGES for span in spans(page) if span.startswith(SPARK)
    ]
    assert len(named) >= 5
    for span in named:
        check_name_or_call(span)


def check_name_or_call(span: str) -> None:
    """Check that a name of a module of the library exists, and that it has the parameters of a call."""
    node = ast.parse(span.replace("…", "..."), mode="eval").body
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute | ast.Name) and NAME.fullmatch(ast.unparse(each)):
            resolve(ast.unparse(each))
        if isinstance(each, ast.Call) and NAME.fullmatch(ast.unparse(each.func)):
            known = [keyword.arg for keyword in each.keywords if keyword.arg is not None]
            positional = [value for value in each.args if ast.unparse(value) != "..."]
            signature = inspect.signature(resolve(ast.unparse(each.func)))
            signature.bind_partial(*positional, **dict.fromkeys(known))


def resolve(name: str) -> Any:
    """Return what a name such as `dv.Table.append`, `Table.append` or `CastError` stands for."""
    first, *rest = name.split(".")
    found: Any = MODULES[first] if first in MODULES else getattr(dv, first)
    for attribute in rest:
        # A field without a default is not an attribute of its class.
        fields = getattr(found, "__dataclass_fields__", {})
        found = fields.get(attribute) or getattr(found, attribute)
    return found


@pytest.mark.parametrize(
    ("span", "problem"),
    [
        ("dv.read_tables", AttributeError),
        ("dv.read_table(table, filter=...)", TypeError),
        ("dv.merge(table, rows, on).when_matched()", None),
        ("dv.read_table(…, where=…)", None),
    ],
)
def test_a_name_or_parameter_that_does_not_exist_is_found(span: str, problem: type[Exception] | None):
    if problem is None:
        check_name_or_call(span)
    else:
        with pytest.raises(problem):
            check_name_or_call(span)


@cache
def options_of(command: str) -> frozenset[str]:
    """Return the options of a command, such as `z85 decode`."""
    node: Any = get_command(app)
    for name in command.split():
        node = node.get_command(Context(node), name)
    names = (name for each in node.params for name in (*each.opts, *each.secondary_opts))
    return frozenset({*names, "--help", "-h", "--version"})


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_and_their_options_in_prose_exist(page: Page):
    for span in spans(page):
        if span.startswith("delta-variant "):
            _, *words = shlex.split(span.replace("…", ""))
            command = " ".join(words[:2]) if words[0] == "z85" else words[0]
            unknown = {word.split("=")[0] for word in words if word.startswith("-")} - options_of(
                "" if command.startswith("-") else command
            )
            assert unknown - {"-"} == set(), f"{page}: {span}"


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: those of its headings, as GitHub and the site make them, and its own."""
    titles = (re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(text))
    return {*titles, *ANCHOR.findall(text)}


@pytest.mark.parametrize("page", [*PAGES, Page("CONTRIBUTING.md")], ids=str)
def test_links_to_files_and_headings_resolve(page: Page):
    for target, anchor in LINK.findall(page.prose):
        path = (page.path.parent / target).resolve() if target else page.path
        assert path.is_relative_to(ROOT), f"{page}: {target}"
        assert path.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(path.read_text("utf-8")), f"{page}: {target}#{anchor}"


def test_the_modules_in_the_architecture_exist():
    named = [
        span for span in spans(Page("docs/architecture.md")) if re.fullmatch(r"[a-z_]+/[a-z_/]*(\.rs)?", span)
    ]
    assert len(named) >= 30
    roots = (ROOT / "delta_variant", ROOT / "rust" / "src", ROOT)
    for name in named:
        assert any((root / f"{name}{end}").exists() for root in roots for end in ("", ".py")), name


def test_directives_are_not_blocks_of_code():
    assert DIRECTIVE.fullmatch("{toctree}")
    assert DIRECTIVE.fullmatch("python") is None


def test_the_page_of_performance_names_benchmarks_that_exist():
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8").lower()
    named = re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", Page("docs/about/performance.md").prose)
    assert len(named) >= 4
    assert [name for name in named if name.lower() not in results] == []


def test_the_page_of_versions_has_the_versions_of_the_project():
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    text = Page("docs/about/versioning.md").text
    for dependency, pattern in (
        ("Python", r'requires-python = ">=([\d.]+)"'),
        ("pyarrow", r'"pyarrow>=([\d.]+)"'),
        ("Spark (extra `spark`)", r'"pyspark>=([\d.]+)"'),
    ):
        found = re.search(pattern, project)
        assert found is not None
        assert f"| {dependency} | {found[1]} and newer" in text
