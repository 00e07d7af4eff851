"""Views over HTTP: ranges, tags, and nothing but the files of the view."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pyarrow as pa
import pytest
from support.processes import start
from support.views import serve

import delta_variant as dv
from delta_variant.errors import DeltaVariantError
from delta_variant.views import server as server_module
from delta_variant.views.server import ViewServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewServer]:
    rows = [{"day": "monday", "event": {"x": number}} for number in range(1000)]
    shredding = dv.ShreddingSchema.of({"x": pa.int64()})
    dv.write_table(tmp_path / "t", rows, variant_columns=["event"], shredding=shredding, partition_by=["day"])
    with serve(tmp_path / "t") as server:
        yield server


def ask(
    server: ViewServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def file_of(server: ViewServer) -> tuple[str, bytes]:
    """Return the path and the bytes of the one file."""
    ((_, file),) = server.files.items()
    with file.open() as source:
        return urlsplit(server.urls()[0]).path, source.read()


def test_polars_reads_a_file(server: ViewServer) -> None:
    frame = pl.scan_parquet(server.urls(), hive_partitioning=True)
    values = pl.col("event").struct.field("typed_value").struct.field("x")
    assert frame.filter(values > 990).select(pl.len()).collect().item() == 9
    assert frame.select("day").unique().collect().to_series().to_list() == ["monday"]


def test_values_of_partitions_are_encoded_once(tmp_path: Path) -> None:
    days = ["a b/ü%41", "a%20b", "x=y", "", None]
    dv.write_table(tmp_path / "t", [{"day": day, "n": 1} for day in days], partition_by=["day"])
    with serve(tmp_path / "t") as server:
        found = pl.scan_parquet(server.urls(), hive_partitioning=True).collect()
    # Delta has no empty value of a partition.
    assert sorted(found["day"], key=repr) == sorted([*days[:3], None, None], key=repr)


def test_the_list_has_the_names_and_the_places_of_columns(server: ViewServer) -> None:
    path, data = file_of(server)
    status, headers, body = ask(server, server.root)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    listed = json.loads(body)
    assert [(server.root + file["name"], file["bytes"]) for file in listed["files"]] == [(path, len(data))]
    assert listed["columns"] == {"event.x": ["event", "typed_value", "x"]}


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("0-3", 0, 4), ("10-", 10, None), ("-8", -8, None), ("5-999999999", 5, None), ("-999999999", 0, None)],
)
def test_a_range_is_answered(server: ViewServer, asked: str, start: int, end: int | None) -> None:
    path, data = file_of(server)
    status, headers, body = ask(server, path, Range=f"bytes={asked}")
    wanted = data[start:end]
    first = len(data) + start if start < 0 else start
    assert (status, body) == (206, wanted)
    assert headers["Content-Range"] == f"bytes {first}-{first + len(wanted) - 1}/{len(data)}"


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=999999999-9999999999", "bytes=-0"])
def test_a_range_outside_the_file_is_416(server: ViewServer, asked: str) -> None:
    path, data = file_of(server)
    status, headers, body = ask(server, path, Range=asked)
    assert (status, headers["Content-Range"], body) == (416, f"bytes */{len(data)}", b"")


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=5-2",
        "bytes=-",
        "Bytes=-",
        "bytes=a-b",
        "rows=0-1",
        "bytes=0-1,4-5",
        "bytes=²-",
        f"bytes={'9' * 5000}-",
    ],
)
def test_a_header_that_is_no_range_is_ignored(server: ViewServer, asked: str) -> None:
    path, data = file_of(server)
    status, _, body = ask(server, path, Range=asked.encode("utf-8").decode("latin-1"))
    assert (status, body) == (200, data)


def test_a_tag_names_the_bytes(server: ViewServer) -> None:
    path, data = file_of(server)
    tag = ask(server, path, "HEAD")[1]["ETag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        assert ask(server, path, If_None_Match=known)[0] == 304
    assert ask(server, path, Range="bytes=0-3", If_Range=tag)[2] == data[:4]
    assert ask(server, path, Range="bytes=0-3", If_Range='"other"')[2] == data


def test_a_head_has_the_length_alone(server: ViewServer) -> None:
    path, data = file_of(server)
    status, headers, body = ask(server, path, "HEAD")
    assert (status, headers["Content-Length"], headers["Accept-Ranges"], body) == (
        200,
        str(len(data)),
        "bytes",
        b"",
    )


def test_pages_of_other_origins_may_ask_for_ranges(server: ViewServer) -> None:
    path, _ = file_of(server)
    status, headers, _ = ask(server, path, "OPTIONS")
    assert (status, headers["Access-Control-Allow-Origin"]) == (204, "*")
    assert "Range" in headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "{root}x.parquet",
        "{root}../",
        "{root}%2e%2e/%2e%2e/etc/passwd",
        "{root}/etc/passwd",
        "/wrong/{name}",
        "/{name}",
        "{root}day=monday",
    ],
)
def test_nothing_else_is_found(server: ViewServer, path: str) -> None:
    name = next(iter(server.files)).replace(" ", "%20")
    asked = path.format(root=server.root, name=name).encode("ascii", "replace").decode()
    assert ask(server, asked)[0] == 404


def test_a_file_that_was_deleted_is_not_found(server: ViewServer, tmp_path: Path, caplog: Any) -> None:
    path, _ = file_of(server)
    next((tmp_path / "t").rglob("*.parquet")).unlink()
    assert [ask(server, path, method)[0] for method in ("GET", "HEAD")] == [404, 404]
    assert "deleted, for example by a vacuum" in caplog.text


def test_a_file_that_was_cut_has_no_other_bytes(server: ViewServer, tmp_path: Path, caplog: Any) -> None:
    path, _ = file_of(server)
    os.truncate(next((tmp_path / "t").rglob("*.parquet")), 9)
    with pytest.raises(http.client.IncompleteRead):
        ask(server, path)
    assert "the file ends at byte 9 and was longer" in caplog.text


def test_a_reader_that_closes_its_connection_is_not_logged(
    server: ViewServer, caplog: Any, capfd: Any
) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        # A connection with this option is reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(f"GET {file_of(server)[0]} HTTP/1.1".encode())
    ask(server, server.root)
    assert (caplog.text, capfd.readouterr().err) == ("", "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_refused(server: ViewServer, method: str) -> None:
    assert ask(server, server.root, method)[0] == 501


def test_many_readers_get_their_bytes(server: ViewServer) -> None:
    path, data = file_of(server)
    with ThreadPoolExecutor(200) as readers:
        answers = readers.map(lambda start: ask(server, path, Range=f"bytes={start}-"), range(200))
        assert all(body == data[start:] for start, (_, _, body) in enumerate(answers))


@pytest.mark.parametrize("port", ["taken", 65536])
def test_a_port_that_cannot_be_bound_is_an_error(server: ViewServer, port: Any) -> None:
    port = server.server_port if port == "taken" else port
    with pytest.raises(DeltaVariantError, match=f"cannot listen on 127.0.0.1, port {port}: "):
        ViewServer(server.view, port=port)


@contextmanager
def command(table: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `delta-variant serve` for a table of one file, and yield the process and the URL of the file."""
    program = "from delta_variant.cli import main; main()"
    options: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with start([sys.executable, "-c", program, "serve", str(table)], **options) as process:
        assert process.stdout is not None
        (url,) = process.stdout.readline().split()
        yield process, url


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    dv.write_table(tmp_path / "t", [{"x": 1}])
    with command(tmp_path / "t") as (process, url):
        assert pl.read_parquet(url).rows() == [(1,)]
        process.send_signal(signal.SIGINT)
        process.wait(10)


@pytest.mark.slow
def test_two_hundred_readers_are_served_in_bounded_memory(tmp_path: Path) -> None:
    size = 8 << 20
    dv.write_table(tmp_path / "t", [{"x": random.Random(0).randbytes(size)}])
    (stored,) = (tmp_path / "t").glob("*.parquet")
    with command(tmp_path / "t") as (process, url):
        asked = urlsplit(url)

        def peak() -> int:
            status = Path(f"/proc/{process.pid}/status").read_text("ascii")
            return 1024 * int(status.partition("VmHWM:")[2].split()[0])

        def answer(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
            connection.request("GET", asked.path)
            return connection.getresponse()

        with ThreadPoolExecutor(20) as threads, ExitStack() as opened:
            connections = [
                opened.enter_context(closing(http.client.HTTPConnection("127.0.0.1", asked.port, timeout=60)))
                for _ in range(200)
            ]
            before = peak()
            # Each has the headers of its answer, and reads no more: the server waits to send the rest.
            answers = list(threads.map(answer, connections))
            assert peak() - before < 200 * 2 * server_module.CHUNK_BYTES < 200 * size // 10
            bodies = threads.map(http.client.HTTPResponse.read, answers[::10])
            assert {body[: size // 2] for body in bodies} == {stored.read_bytes()[: size // 2]}
