"""Draw the chart of README from the results of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from statistics import median

from results import Result, ratios

BARS = {
    "write/on-spark": "shred from Spark / Spark writes Parquet",
    "load/deltalake": "read a log of a million files / deltalake",
    "json/orjson": "all rows to JSON / orjson parses them",
    "delete/deltalake": "delete 1 row in 100 / deltalake",
    "optimize/deltalake": "combine 100 files / deltalake",
    "count/clickhouse": "count over a path / ClickHouse",
    "write/orjson": "JSON to a shredded table / orjson parses it",
}
"""The pairs of the chart: our work / the work of the peer."""

WIDTH, LEFT, ROW, UNIT = 720, 300, 26, 66
STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.bar { fill: #2f6fde; }
.peer { stroke: #8b949e; stroke-dasharray: 3 3; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } .bar { fill: #6ea0ff; } }"""


def chart(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of an SVG: our rate of each pair over the rate of the peer, the median of rounds.

    A pair whose peer is not installed has no bar.
    """
    found = {each["pair"]: ratios(each) for each in results if each["pair"] in BARS}
    medians = {pair: median(found[pair]) for pair in BARS if found.get(pair)}
    height = ROW * (len(medians) + 1)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    yield "<title>Rates as multiples of the rates of other libraries</title>"
    yield f"<style>{STYLE}</style>"
    for number, pair in enumerate(medians):
        middle = ROW * number + ROW // 2
        length = round(medians[pair] * UNIT)
        yield f'<text x="{LEFT - 8}" y="{middle + 5}" text-anchor="end">{escape(BARS[pair])}</text>'
        yield f'<rect class="bar" x="{LEFT}" y="{middle - 8}" width="{length}" height="16" rx="2"/>'
        yield f'<text x="{LEFT + length + 6}" y="{middle + 5}">{medians[pair]:.1f} times</text>'
    bottom = ROW * len(medians)
    yield f'<line class="peer" x1="{LEFT + UNIT}" x2="{LEFT + UNIT}" y1="0" y2="{bottom}"/>'
    yield f'<text x="{LEFT + UNIT}" y="{bottom + 16}" text-anchor="middle">the peer</text>'
    yield "</svg>"
