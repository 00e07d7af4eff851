"""Engines read views as docs/reference/interoperability.md lists, and as the snippets of the guide."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import chdb
import dask
import dask.dataframe as dd
import duckdb
import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from deltalake import DeltaTable
from support.browser import open_browser
from support.documents import Page, run_page
from support.interoperability import VIEWS, cells
from support.locations import ROOT
from support.views import serve

import delta_variant as dv
from delta_variant.views.filesystem import VariantFileSystem

GUIDE = Page("docs/guides/views.md")
PACKAGES = ROOT / ".cache" / "hyparquet"
EVENTS = [{"user": {"id": number}, "type": "ab"[number % 2]} for number in range(10)]
ROWS = [(each["user"]["id"], each["type"]) for each in EVENTS if each["user"]["id"] < 5]
"""The rows that each reader finds."""
COLUMNS = {"id": "event:user.id::bigint", "type": "event:type::string"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("views") / "t"
    shredding = dv.ShreddingSchema.of({"user": {"id": pa.int64()}, "type": pa.string()})
    dv.write_table(path, [{"event": each} for each in EVENTS], variant_columns=["event"], shredding=shredding)
    fsspec.register_implementation("variant", VariantFileSystem, clobber=True)
    assert dv.read_table(path, columns=COLUMNS, where="event:user.id::bigint < 5").to_pylist() == [
        {"id": number, "type": text} for number, text in ROWS
    ]
    return str(path)


@pytest.fixture(scope="module")
def url(table: str) -> Iterator[str]:
    with serve(Path(table)) as server:
        (url,) = server.urls()
        yield url


@pytest.fixture(scope="module")
def exported(table: str) -> str:
    dv.export(table, f"{table}_exported")
    return f"{table}_exported"


def dataset(table: str) -> ds.Dataset:
    return ds.dataset(table, filesystem=fsspec.filesystem("variant"))


def rows(found: Any) -> list[tuple[Any, ...]]:
    """Return the rows of Variants, as structs of Python."""
    typed = [each["typed_value"] for each in found]
    return [(each["user"]["id"], each["type"]) for each in typed if each["user"]["id"] < 5]


def by_duckdb(table: str) -> Any:
    with duckdb.connect() as connection:
        dv.to_duckdb(connection, "events", table)
        query = 'select "event.user.id", "event.type" from events where "event.user.id" < 5'
        return connection.sql(query).fetchall()


def select(source: str) -> str:
    user = "event.typed_value.user.id"
    return f"select {user}, event.typed_value.type from {source} where {user} < 5"


def by_polars(frame: pl.LazyFrame) -> Any:
    typed = pl.col("event").struct.field("typed_value")
    user = typed.struct.field("user").struct.field("id")
    return frame.filter(user < 5).select(user, typed.struct.field("type")).collect().rows()


def by_datafusion(register: Callable[[SessionContext], None]) -> Any:
    context = SessionContext()
    register(context)
    typed = "event['typed_value']"
    found = context.sql(
        f"select {typed}['user']['id'] as id, {typed}['type'] as type from t where {typed}['user']['id'] < 5"
    )
    return [tuple(row.values()) for row in found.to_pylist()]


def by_chdb(source: str) -> Any:
    answer = chdb.query(select(source), "ArrowStream")
    return [tuple(row.values()) for row in pa.ipc.open_stream(answer.bytes()).read_all().to_pylist()]


def by_chdb_of_a_dataset(table: str) -> Any:
    events = dataset(table)  # noqa: F841
    return by_chdb("Python(events)")


def by_dask(path: str) -> Any:
    with dask.config.set(scheduler="synchronous"):
        return rows(dd.read_parquet(path)["event"].compute())


Read = Callable[[str], Any]


class Reader(NamedTuple):
    """How an engine reads the folder of a view, a URL, and an exported table; None is not measured."""

    view: Read | None = None
    url: Read | None = None
    export: Read | None = None


READERS: dict[str, Reader] = {
    "DuckDB": Reader(view=by_duckdb),
    "Polars": Reader(
        view=lambda table: by_polars(pl.scan_pyarrow_dataset(dataset(table))),
        url=lambda url: by_polars(pl.scan_parquet(url)),
        export=lambda table: by_polars(pl.scan_delta(table)),
    ),
    "pyarrow": Reader(
        view=lambda table: rows(dataset(table).to_table()["event"].to_pylist()),
        url=pq.read_table,
    ),
    "pandas": Reader(
        view=lambda table: rows(pd.read_parquet(f"variant://{table}")["event"]),
        url=lambda url: rows(pd.read_parquet(url)["event"]),
    ),
    "DataFusion": Reader(
        view=lambda table: by_datafusion(lambda context: context.register_dataset("t", dataset(table))),
        url=lambda url: by_datafusion(lambda context: context.register_parquet("t", url)),
        export=lambda table: by_datafusion(lambda context: context.register_table("t", DeltaTable(table))),
    ),
    "ClickHouse (chdb)": Reader(
        view=by_chdb_of_a_dataset,
        url=lambda url: by_chdb(f"url('{url}', Parquet)"),
        export=lambda table: by_chdb(f"deltaLakeLocal('{table}')"),
    ),
    "Dask": Reader(view=lambda table: by_dask(f"variant://{table}")),
    "deltalake": Reader(export=lambda table: rows(DeltaTable(table).to_pyarrow_table()["event"].to_pylist())),
}


def outcome(read: Read | None, source: str) -> str:
    """Return the word of the page for a reader."""
    if read is None:
        return "—"
    try:
        found = read(source)
    except Exception:
        return "no"
    assert sorted(found) == ROWS
    return "yes"


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_of_views_opens_what_the_page_lists(
    reader: str, table: str, url: str, exported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ClickHouse reads local tables below the working directory only.
    monkeypatch.chdir("/")
    outcomes = [outcome(*each) for each in zip(READERS[reader], (table, url, exported), strict=True)]
    assert outcomes == cells(VIEWS, reader)


def test_the_snippets_for_readers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    run_page(GUIDE, tmp_path, "readers")


MODULES = """<link rel="icon" href="data:,"><script type="importmap">{"imports": {
  "hyparquet": "/node_modules/hyparquet/src/index.js",
  "hyparquet-compressors": "/node_modules/hyparquet-compressors/src/index.js",
  "fzstd": "/node_modules/fzstd/esm/index.mjs",
  "hysnappy": "/node_modules/hysnappy/js/index.js"
}}</script>
"""
"""What a bundler does: the files of packages by name."""


WAIT_FOR_TEXT = """return new Promise(resolve => {
  const check = () => document.body.innerText ? resolve(document.body.innerText) : setTimeout(check, 20)
  check()
})"""


class Pages(SimpleHTTPRequestHandler):
    """The packages, and the page of the guide."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if not self.path.startswith("/?"):
            super().do_GET()
            return
        (block,) = GUIDE.blocks("html browser")
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(f"<!doctype html>{MODULES}{block.code}".encode())


def test_a_page_in_a_browser_reads_a_view(url: str) -> None:
    if not PACKAGES.exists():
        pytest.skip("hyparquet is not installed: `make test` installs it with npm")
    handler = partial(Pages, directory=str(PACKAGES))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages, open_browser() as browser:
        thread = Thread(target=pages.serve_forever)
        thread.start()
        browser.open(f"http://127.0.0.1:{pages.server_port}/?url={url}")
        shown = browser.run(WAIT_FOR_TEXT).splitlines()
        assert (shown, browser.messages()) == ([f"{number} {text}" for number, text in ROWS], [])
        pages.shutdown()
        thread.join()
