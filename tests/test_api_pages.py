"""The pages of docs/reference/api/ have each public name once."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from support.documents import pages

import delta_variant
from delta_variant import errors, functions, typing

PAGES = [page for page in pages() if page.name.startswith("docs/reference/api/")]
MODULE = re.compile(r"^\.\. currentmodule:: (\S+)$", re.MULTILINE)
OBJECT = re.compile(r"^\.\. auto(?:class|function|exception):: (\S+)$", re.MULTILINE)


def documented(module: str) -> Counter[str]:
    """Return the names of a module on the pages."""
    return Counter(
        name for page in PAGES for name in OBJECT.findall(page.text) if MODULE.findall(page.text) == [module]
    )


def test_each_public_name_is_on_one_page():
    expected = {*delta_variant.__all__} - {*errors.__all__, "__version__"}
    assert documented("delta_variant") == Counter(expected)


def test_each_error_is_on_the_page_of_errors():
    assert documented("delta_variant.errors") == Counter(errors.__all__)


def test_each_function_of_variants_is_on_its_page():
    expected = {*functions.__all__} - {*delta_variant.__all__}
    assert documented("delta_variant.functions") == Counter(expected)


def test_each_type_of_signatures_is_on_its_page():
    (page,) = (page for page in PAGES if page.name.endswith("/types.md"))
    aliases = re.findall(r"^\| `(\w+)` \|", page.text, re.MULTILINE)
    assert documented("delta_variant.typing") + Counter(aliases) == Counter(typing.__all__)


@pytest.mark.interop
def test_each_function_for_spark_is_on_its_page():
    # The unit tier has no PySpark.
    from delta_variant import spark

    assert documented("delta_variant.spark") == Counter(spark.__all__)
