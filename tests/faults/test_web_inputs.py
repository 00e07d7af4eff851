"""Input files on web servers: whole, by ranges, and from servers and connections that fail."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner
from web_server import WebServer, serving

import delta_variant as dv
from delta_variant import read_json
from delta_variant.cli.app import app
from delta_variant.errors import SourceError, SourceNotFoundError
from delta_variant.storage import inputs
from delta_variant.storage.inputs import WebFile

LINES = b"".join(b'{"id":%d,"text":"%s"}\n' % (row, b"x" * (row % 90)) for row in range(5_000))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """Return a server with files, for which no request waits before it is repeated."""
    monkeypatch.setattr(inputs, "sleep", lambda seconds: None)
    with serving() as server:
        server.files["/e.ndjson"] = LINES
        yield server


def content(server: WebServer, path: str = "/e.ndjson") -> bytes:
    with io.BufferedReader(WebFile(server.url + path)) as file:
        return file.read()


def test_a_file_is_read_with_one_request(server: WebServer):
    assert content(server) == LINES
    assert server.requests == [("/e.ndjson", "bytes=0-")]


def test_files_are_written_to_a_table_by_name_format_and_compression(server: WebServer, tmp_path: Path):
    server.files["/a%20b.ndjson.gz?sig=s%2Fc"] = gzip.compress(LINES)
    dv.write_table(tmp_path / "t", read_json(f"{server.url}/a b.ndjson.gz?sig=s%2Fc", column="event"))
    assert dv.Table(tmp_path / "t").scan().count() == 5_000
    arguments = ["write", f"{server.url}/e.ndjson", str(tmp_path / "u"), "--column", "event"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert dv.Table(tmp_path / "u").scan().count() == 5_000


@pytest.mark.parametrize("compression", ["snappy", "none"])
def test_a_parquet_file_is_read_by_ranges(server: WebServer, tmp_path: Path, compression: str):
    table = pa.table({"id": range(2_000), "text": [str(row) * 20 for row in range(2_000)]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression=compression, row_group_size=500)
    server.files["/d/part.parquet"] = buffer.getvalue()
    result = CliRunner().invoke(app, ["write", f"{server.url}/d/part.parquet", str(tmp_path / "t")])
    assert result.exit_code == 0, result.output
    assert dv.read_table(tmp_path / "t").to_table().sort_by("id") == table


def test_random_positions_are_read_right(server: WebServer):
    choose = random.Random(3)
    with io.BufferedReader(WebFile(f"{server.url}/e.ndjson"), 1_000) as file:
        for _ in range(200):
            start, length = choose.randrange(len(LINES) + 10), choose.randrange(3_000)
            file.seek(start)
            assert file.read(length) == LINES[start : start + length]


def test_a_broken_connection_is_continued_where_it_stopped(server: WebServer):
    server.ends = [100_000, 50_000, 1]
    assert content(server) == LINES
    positions = [0, 100_000, 150_000, 150_001]
    assert server.requests == [("/e.ndjson", f"bytes={position}-") for position in positions]


def test_a_connection_that_always_breaks_is_an_error(server: WebServer):
    server.ends = [0] * 20
    with pytest.raises(SourceError, match="closed before the end") as raised:
        content(server)
    assert raised.value.file == f"{server.url}/e.ndjson"


def test_temporary_answers_are_repeated(server: WebServer):
    server.answers = [503, 429, 500]
    assert content(server) == LINES


@pytest.mark.parametrize(
    ("answers", "sentence"), [([403], "the server answered 403"), ([503] * 4, "the server answered 503")]
)
def test_an_answer_that_is_no_file_is_an_error_without_credentials(
    server: WebServer, answers: list[int], sentence: str
):
    server.answers = answers
    with pytest.raises(SourceError, match=sentence) as raised:
        content(server, "/e.ndjson?token=secret")
    assert raised.value.file == f"{server.url}/e.ndjson"
    assert "secret" not in str(raised.value)


def test_an_absent_file_is_a_file_not_found_error(server: WebServer):
    with pytest.raises(FileNotFoundError) as raised:
        list(read_json(f"{server.url}/absent.json").batches())
    assert isinstance(raised.value, SourceNotFoundError)
    assert raised.value.file == f"{server.url}/absent.json"


def test_a_file_that_changes_while_it_is_read_is_an_error(server: WebServer):
    server.changes, server.ends = True, [1_000]
    with pytest.raises(SourceError, match="changed while it was read"):
        content(server)


def test_a_server_without_ranges_is_read_from_start_to_end_only(server: WebServer):
    server.supports_ranges = False
    assert content(server) == LINES
    with WebFile(f"{server.url}/e.ndjson") as file:
        file.seek(5)
        with pytest.raises(SourceError, match="does not support range requests"):
            file.read(10)


def test_a_file_of_unknown_size_is_read_to_its_end(server: WebServer):
    server.states_size = server.supports_ranges = False
    assert content(server) == LINES
    lines = read_json(f"{server.url}/e.ndjson")
    assert lines.size is None
    rows = [json.loads(text) for text in pa.table(lines)["value"].to_pylist()]
    assert rows[4_999]["id"] == 4_999


def test_an_empty_file_is_read(server: WebServer):
    server.files["/empty.json"] = b""
    assert content(server, "/empty.json") == b""


def test_a_redirect_is_followed(server: WebServer):
    server.redirects["/old"] = f"{server.url}/e.ndjson"
    assert content(server, "/old") == LINES


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/e.json", "http://no-host.invalid/e.json", "http://[/x"])
def test_a_server_that_cannot_be_reached_is_an_error(url: str):
    with pytest.raises(SourceError, match="cannot read http"):
        WebFile(url)
