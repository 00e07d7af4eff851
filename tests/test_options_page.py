"""docs/reference/options.md names every table property, storage option and option of the Spark format."""

from __future__ import annotations

import re

import pytest
from support.documents import Page

from delta_variant.protocol.properties import OTHER_PROPERTIES, PROPERTIES, TableProperty
from delta_variant.storage import options as storage_options

PAGE = Page("docs/reference/options.md")
CODE = re.compile(r"`([^`]+)`")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.text, re.MULTILINE | re.DOTALL))
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.text.splitlines() if line[:1] == "|"
]


def test_the_page_names_the_properties_that_can_be_set():
    named = {
        name
        for name in CODE.findall(SECTIONS["Table properties"])
        if name.lower().startswith(("delta.", "deltavariant."))
    }
    assert named - {"delta.", "delta.constraints.NAME"} == {*PROPERTIES, *OTHER_PROPERTIES}


@pytest.mark.parametrize("prop", PROPERTIES.values(), ids=lambda prop: prop.name)
def test_a_property_has_its_default(prop: TableProperty):
    defaults = [row[1].strip("`") for row in ROWS if prop.name in CODE.findall(row[0])]
    for text in defaults:
        assert (prop.parse(text) if text else None) == prop.default


def test_the_page_names_the_options_of_the_client_and_of_retries():
    named = {name.removeprefix("backoff_config.") for name in CODE.findall(SECTIONS["Storage options"])}
    assert {*storage_options._CLIENT, *storage_options._RETRY, *storage_options._BACKOFF} <= named
    assert storage_options.ALLOW_PATHS_OUTSIDE_TABLE in named
    assert named >= storage_options.CATALOG_KEYS
    assert set(storage_options._UNSUPPORTED) <= named


@pytest.mark.interop
@pytest.mark.parametrize(
    ("operation", "known"),
    [
        ("batch read", "READ"),
        ("stream read", "STREAM_READ"),
        ("batch write", "WRITE"),
        ("stream write", "STREAM_WRITE"),
    ],
)
def test_the_page_lists_the_options_of_the_spark_format(operation: str, known: str):
    # The unit tier has no PySpark.
    from delta_variant.spark import options

    (listed,) = (CODE.findall(row[1]) for row in ROWS if row[0] == operation)
    assert sorted(listed) == sorted(getattr(options, known))
