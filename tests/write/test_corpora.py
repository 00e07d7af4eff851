"""Real JSON from file to table to text: every value equals its line."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import pytest

import delta_variant as dv

# Rows of each corpus, whose sources PROVENANCE.md of the corpora lists.
ROWS = {
    "cloudtrail": 3_313,
    "cve_vulnrichment": 44_130,
    "github_events": 800,
    "github_webhooks": 415,
    "kibana_ecommerce": 4_675,
    "kibana_flights": 13_059,
    "nginx_plus_logs": 500,
    "openaddresses_sources": 2_833,
    "windows_events": 170_595,
    "zeek_apt29": 5_405,
}
# Comparing in Python takes most of the time: of large files, only one row in N is compared.
COMPARED_EVERY = {"cve_vulnrichment": 8, "windows_events": 20}


@pytest.fixture(scope="module")
def written(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that writes a corpus once for each shredding and each place of residual rows."""
    tables: dict[tuple[str, Any, str], Path] = {}

    def write(name: str, shredding: Any = "infer", residual_rows: Any = "inline") -> Path:
        if (name, shredding, residual_rows) not in tables:
            table = tmp_path_factory.mktemp(name) / "table"
            source = dv.read_json(corpora / "json" / f"{name}.ndjson.xz", column="event")
            files = dv.FileOptions(residual_rows=residual_rows)
            result = dv.write_table(table, source, shredding=shredding, files=files)
            assert (result.rows, result.invalid) == (ROWS[name], 0)
            tables[name, shredding, residual_rows] = table
        return tables[name, shredding, residual_rows]

    return write


def lines(corpora: Path, name: str) -> Iterator[str]:
    with lzma.open(corpora / "json" / f"{name}.ndjson.xz", "rt", encoding="utf-8") as file:
        yield from islice(file, 0, None, COMPARED_EVERY.get(name, 1))


def exact(text: str) -> Any:
    """Return JSON as Python objects whose numbers are equal when their values are."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def column(table: Path, expression: str) -> Iterator[Any]:
    for batch in dv.read_table(table, columns={"value": expression}).to_batches():
        yield from batch.column(0).to_pylist()


def assert_every_value_is_its_line(table: Path, corpora: Path, name: str) -> None:
    texts = islice(column(table, "to_json(event)"), 0, None, COMPARED_EVERY.get(name, 1))
    for number, (text, line) in enumerate(zip_longest(texts, lines(corpora, name))):
        assert exact(text) == exact(line), f"value {number} of {name}"


@pytest.mark.parametrize("name", ROWS)
def test_every_value_of_a_shredded_table_is_its_line(name: str, written: Callable[..., Path], corpora: Path):
    assert_every_value_is_its_line(written(name), corpora, name)


def frozen(value: Any) -> Hashable:
    """Return JSON as a value that can be counted."""
    if isinstance(value, dict):
        return frozenset((key, frozen(each)) for key, each in value.items())
    return tuple(map(frozen, value)) if isinstance(value, list) else (type(value), value)


@pytest.mark.parametrize("name", ROWS)
def test_separating_residual_rows_changes_no_value(name: str, written: Callable[..., Path]):
    inline = Counter(column(written(name), "to_json(event)"))
    separate = Counter(column(written(name, residual_rows="separate"), "to_json(event)"))
    # A number may be in a decimal column of another scale, and thus have other zeros at its end.
    values = [
        Counter(frozen(exact(text)) for text in each.elements())
        for each in (inline - separate, separate - inline)
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize("name", ["github_webhooks", "openaddresses_sources", "cloudtrail", "zeek_apt29"])
def test_every_value_of_an_unshredded_table_is_its_line(
    name: str, written: Callable[..., Path], corpora: Path
):
    assert_every_value_is_its_line(written(name, None), corpora, name)


def at(value: Any, *steps: str | int) -> Any:
    """Return the value at a path of JSON, or None."""
    for step in steps:
        known = isinstance(value, dict) and step in value
        if not known and not (isinstance(step, int) and isinstance(value, list) and step < len(value)):
            return None
        value = value[step]
    return value


@pytest.mark.parametrize("shredding", ["infer", None])
@pytest.mark.parametrize(
    ("name", "expression", "expected"),
    [
        ("kibana_flights", "event:OriginWeather::string", lambda event: at(event, "OriginWeather")),
        ("kibana_flights", "event:dayOfWeek::bigint", lambda event: at(event, "dayOfWeek")),
        ("kibana_flights", "event:AvgTicketPrice::double", lambda event: at(event, "AvgTicketPrice")),
        ("kibana_flights", "event:Cancelled::boolean", lambda event: at(event, "Cancelled")),
        ("kibana_ecommerce", "event:products[0].sku::string", lambda event: at(event, "products", 0, "sku")),
        ("zeek_apt29", "event:['@system']::string", lambda event: at(event, "@system")),
        ("github_webhooks", "event:sender.login::string", lambda event: at(event, "sender", "login")),
    ],
)
def test_a_path_has_the_value_of_json(
    name: str, expression: str, expected: Any, shredding: Any, written: Callable[..., Path], corpora: Path
):
    values = list(column(written(name, shredding), expression))
    assert values == [expected(json.loads(line)) for line in lines(corpora, name)]
    assert any(value is not None for value in values)


def test_a_filter_on_a_path_keeps_the_rows_that_json_says(written: Callable[..., Path], corpora: Path):
    where = "event:Cancelled::boolean and event:dayOfWeek::int = 6"
    kept = dv.read_table(written("kibana_flights"), columns=[], where=where).to_table().num_rows
    events = [json.loads(line) for line in lines(corpora, "kibana_flights")]
    assert kept == sum(event["Cancelled"] and event["dayOfWeek"] == 6 for event in events)
    assert 0 < kept < len(events)
