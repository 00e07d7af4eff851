"""`read_json`: lines and arrays, compressed or not, valid or damaged."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.errors import raises_at

from delta_variant import read_json, read_table, to_json, write_table
from delta_variant.errors import InvalidJsonError, SourceError, SourceNotFoundError, StoreError

VALUES = ['{"a":1}', "2", '"three"']
LINES = "".join(f"{value}\n" for value in VALUES).encode()


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstd,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def texts(source: Any, **options: Any) -> list[str]:
    """Return the values of JSON files as text."""
    return [
        text
        for batch, _ in read_json(source, **options).batches()
        for text in batch.column(0).cast(pa.string()).to_pylist()
    ]


def values(tmp_path: Path, source: Any, **options: Any) -> list[str]:
    """Return the values of JSON files after a round trip through a table."""
    write_table(tmp_path / "table", read_json(source), **options)
    column = read_table(tmp_path / "table").to_table().column("value")
    return to_json(column).to_pylist()


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("suffix", [".ndjson", ".jsonl", ".json", ".log"])
def test_lines_are_read_whatever_the_suffix_and_the_compression(
    suffix: str, compression: str, tmp_path: Path
):
    file = tmp_path / f"events{suffix}{compression}"
    file.write_bytes(COMPRESS[compression](LINES))
    assert texts(file) == VALUES


@pytest.mark.parametrize("compression", COMPRESS)
def test_the_elements_of_one_array_are_the_values(compression: str, tmp_path: Path):
    file = tmp_path / f"events.json{compression}"
    file.write_bytes(COMPRESS[compression](b'[{"a":1},\n 2,\n "three"\n]\n'))
    assert texts(file) == VALUES


def test_a_suffix_in_capitals_is_known(tmp_path: Path):
    file = tmp_path / "EVENTS.NDJSON.GZ"
    file.write_bytes(gzip.compress(LINES))
    assert texts(file) == VALUES


@pytest.mark.parametrize("suffix", [".ndjson", ".jsonl"])
def test_a_line_of_ndjson_may_itself_be_an_array(suffix: str, tmp_path: Path):
    file = tmp_path / f"events{suffix}"
    file.write_bytes(b"[1,2]\n[3]\n")
    assert texts(file) == ["[1,2]", "[3]"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_text_of_another_encoding_is_read_by_its_byte_order_mark(encoding: str, tmp_path: Path):
    # Longer than a piece, so that characters are cut.
    rows = [json.dumps({"n": n, "text": "é𝄞" * 40}, ensure_ascii=False) for n in range(30_000)]
    (tmp_path / "a.json").write_bytes("\n".join(rows).encode(encoding))
    assert texts(tmp_path / "a.json") == rows


def test_text_that_its_byte_order_mark_does_not_decode_is_an_error_with_the_file(tmp_path: Path):
    data = b"\xff\xfe" + '{"a": 1}\n'.encode("utf-16-le") + b"\x00\xd8\n\x00"
    assert "cannot decode" in rejection(tmp_path, "events.json", data).message


@pytest.mark.parametrize("compression", [".gz", ".zst", ".xz", ".bz2"])
def test_compression_is_known_by_its_first_bytes(compression: str, tmp_path: Path):
    (tmp_path / "events").write_bytes(COMPRESS[compression](LINES))
    assert texts(tmp_path / "events") == VALUES
    assert texts(io.BytesIO(COMPRESS[compression](LINES))) == VALUES


def test_documents_are_split_wherever_lines_end(tmp_path: Path):
    documents = [{"n": n, "text": "}\n{", "list": [[n], {}]} for n in range(40_000)]
    (tmp_path / "events.json").write_text("".join(json.dumps(each, indent=1) for each in documents))
    found = texts(tmp_path / "events.json")
    assert list(map(json.loads, found)) == documents


def test_lines_that_a_cut_line_begins_stay_lines(tmp_path: Path):
    (tmp_path / "a.json").write_bytes(b'{"n": \n{"n": 2}\n{"n": 3}\n')
    lines = read_json(tmp_path / "a.json", on_invalid="reject", rejects=tmp_path / "rejects")
    assert (write_table(tmp_path / "table", lines).rows, lines.schema.names) == (2, ["value"])
    assert json.loads((tmp_path / "rejects").read_text())["line"] == 1


def test_lines_over_which_a_value_extends_propose_documents(tmp_path: Path):
    error = rejection(tmp_path, "events.ndjson", b'{\n"a": 1}\n')
    assert str(error).endswith("the line ends within the value: pass format='documents'")
    assert texts(tmp_path / "events.ndjson", format="documents") == ['{\n"a": 1}']


@pytest.mark.parametrize(
    ("data", "records", "line", "message"),
    [
        (b'{"a": [1]}\n{"b": [2]}\n', "a", 2, 'the document has no field "a"; its fields are "b"'),
        (b'{"a":\n {"b": 1}}', "$.a.b", 2, 'expected an array in the field "a.b"'),
        (b'{"a": [1,\n tru]}', "a", 2, "column 2: "),
        (b"[1]", "a", 1, 'expected an object with the field "a"'),
    ],
)
def test_an_error_of_records_has_file_and_line(
    data: bytes, records: str, line: int, message: str, tmp_path: Path
):
    error = rejection(tmp_path, "events.json", data, records=records)
    assert error.line == line
    assert message in str(error)


@pytest.mark.parametrize(("records", "options"), [("$", {}), ("$.a[0]", {}), ("a", {"format": "lines"})])
def test_records_are_a_path_of_fields_and_need_no_format(records: str, options: dict[str, Any]):
    with pytest.raises(ValueError, match=r"^records: "):
        read_json(io.BytesIO(LINES), records=records, **options)


def test_the_format_can_be_said(tmp_path: Path):
    file = tmp_path / "events.json"
    file.write_bytes(b"[1,2]\n[3]\n")
    assert texts(file, format="lines") == ["[1,2]", "[3]"]
    file.write_bytes(b"[1,\n2]")
    assert texts(file, format="array") == ["1", "2"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + LINES,
        LINES.replace(b"\n", b"\r\n"),
        LINES.rstrip(b"\n"),
        b"\n\n" + LINES.replace(b"\n", b"\n\n \t\n"),
        b"\xef\xbb\xbf\r\n" + LINES.replace(b"\n", b"\r\n\r\n"),
    ],
    ids=["byte order mark", "CRLF", "no newline at the end", "blank lines", "all of them"],
)
def test_text_around_the_values_is_skipped(data: bytes, tmp_path: Path):
    file = tmp_path / "events.ndjson"
    file.write_bytes(data)
    assert values(tmp_path, file) == VALUES


@pytest.mark.parametrize("data", [b"", b"\n \r\n\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["events.ndjson", "events.json"])
def test_an_empty_file_has_zero_values(name: str, data: bytes, tmp_path: Path):
    (tmp_path / name).write_bytes(data)
    assert values(tmp_path, tmp_path / name) == []


def test_an_empty_array_has_zero_values(tmp_path: Path):
    file = tmp_path / "events.json"
    file.write_bytes(b" [ ] \n")
    assert texts(file) == []


def test_globs_and_lists_of_sources_are_read_in_order(tmp_path: Path):
    for number, compression in enumerate(COMPRESS):
        data = f'{{"n":{number}}}\n'.encode()
        (tmp_path / f"{number}.ndjson{compression}").write_bytes(COMPRESS[compression](data))
    (tmp_path / "5.json").write_bytes(b'[{"n":5}, {"n":6}]')
    expected = [f'{{"n":{number}}}' for number in range(7)]
    assert texts(str(tmp_path / "*.*")) == expected
    assert texts([tmp_path / "5.json", str(tmp_path / "0*")]) == ['{"n":5}', '{"n":6}', '{"n":0}']


def test_a_file_whose_name_looks_like_a_glob_is_read(tmp_path: Path):
    file = tmp_path / "events[1].ndjson"
    file.write_bytes(LINES)
    assert texts(str(file)) == VALUES


@pytest.mark.parametrize(
    ("name", "sentence"), [("no.ndjson", "file not found"), ("no*.ndjson", "no file matches")]
)
def test_a_missing_source_is_rejected_immediately(name: str, sentence: str, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=sentence):
        read_json(str(tmp_path / name))


def not_regular(tmp_path: Path) -> dict[str, str]:
    """Return paths that exist and cannot be read as JSON, by kind."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    names = {kind: str(tmp_path / kind) for kind in ("fifo", "loop")}
    return names | {"device": "/dev/null", "long": str(tmp_path / ("a" * 300)), "nul": "a\0b"}


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            "fifo",
            r"cannot read .*fifo because it is not a regular file: redirect it to standard input and pass -$",
        ),
        ("device", r"cannot read /dev/null because it is not a regular file"),
        ("loop", r"cannot read .*loop: Too many levels of symbolic links$"),
        ("long", r"cannot read .*aaa: File name too long$"),
        ("nul", r"cannot read a\\x00b: .*null byte"),
    ],
)
def test_a_path_that_is_not_a_regular_file_is_rejected_immediately(kind: str, sentence: str, tmp_path: Path):
    with pytest.raises(SourceError, match=sentence) as raised:
        read_json(not_regular(tmp_path)[kind])
    assert isinstance(raised.value, OSError)
    assert not isinstance(raised.value, FileNotFoundError)


def test_a_folder_is_read_with_the_json_files_below_it(tmp_path: Path):
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "b.ndjson").write_bytes(b"2\n")
    (tmp_path / "a.json").write_bytes(b"1\n")
    for name in ("c.txt", "_d.json"):
        (tmp_path / name).write_bytes(b"3\n")
    assert texts(tmp_path) == ["1", "2"]
    assert texts(tmp_path.as_uri()) == ["1", "2"]


def test_a_folder_with_a_dot_is_not_data_and_one_with_an_underscore_may_be_a_partition(tmp_path: Path):
    for name in (".day=1", "_day=2", "_old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_bytes(name[-1].encode().replace(b"d", b"9"))
    assert texts(tmp_path) == ["2"]


def test_a_folder_warns_of_the_files_that_are_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    for name in ("a.json", "b.GeoJSON", "c.har.gz", "notes.txt", "sub/x.csv", "_d.txt", ".e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(b"1\n") if name.endswith("gz") else b"1\n")
    assert texts(tmp_path) == ["1", "1", "1"]
    (message,) = caplog.messages
    assert re.search(r"2 of 5 files are not read because of their suffix: notes\.txt, sub/x\.csv;", message)
    caplog.clear()
    assert texts(str(tmp_path / "*.json")) == ["1"]
    assert caplog.messages == []


def test_a_folder_without_json_files_is_rejected_immediately(tmp_path: Path):
    (tmp_path / "c.txt").write_bytes(b"3\n")
    with pytest.raises(FileNotFoundError, match=r"no file that ends with \.json, \.ndjson, \.jsonl,"):
        read_json(tmp_path)


@pytest.mark.parametrize("uri", ["ftp://x/y.json", "s3:/x/y.json", "dbfs:/y.json"])
def test_a_uri_of_another_scheme_is_not_a_source(uri: str):
    with pytest.raises(StoreError, match=r"^an input file must be on a local disk, got the URI ") as raised:
        read_json(uri)
    assert raised.value.file == uri


def test_a_source_that_is_deleted_before_it_is_read_is_an_error_with_its_path(tmp_path: Path):
    (tmp_path / "events.ndjson").write_bytes(LINES)
    lines = read_json(tmp_path / "events.ndjson")
    (tmp_path / "events.ndjson").unlink()
    with pytest.raises(SourceNotFoundError, match=r"^file not found: .*/events\.ndjson$"):
        list(lines.batches())


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errno.EIO, r"^cannot read disk\.ndjson: Input/output error$"),
        (errno.EACCES, r"^cannot read disk\.ndjson: Permission denied; check the permissions"),
    ],
)
def test_an_error_of_the_system_while_a_source_is_read_names_it(code: int, sentence: str):
    class Failing(io.BytesIO):
        name = "disk.ndjson"

        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(code, os.strerror(code))

    with pytest.raises(SourceError, match=sentence):
        list(read_json(Failing()).batches())


def test_an_open_file_is_a_source(tmp_path: Path):
    assert texts(io.BytesIO(LINES)) == VALUES
    with (tmp_path / "events.ndjson").open("wb+") as file:
        file.write(LINES)
        file.seek(0)
        assert texts(file) == VALUES


def test_standard_input_is_a_source(tmp_path: Path):
    code = (
        "import sys, delta_variant as dv; "
        "print(dv.write_table(sys.argv[1], dv.read_json('-', column='event')).rows)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "table")]
    run = subprocess.run(command, input=LINES, capture_output=True, check=True)
    assert run.stdout == b"3\n"
    rows = read_table(tmp_path / "table", columns={"event": "to_json(event)"}).to_table()
    assert rows.column("event").to_pylist() == VALUES


def test_the_stream_is_arrow_with_the_type_of_json():
    lines = read_json(io.BytesIO(LINES), column="event")
    reader = pa.RecordBatchReader.from_stream(lines)
    assert reader.schema == pa.schema([pa.field("event", pa.json_())])
    assert reader.read_all().column("event").to_pylist() == VALUES


def test_the_stream_rejects_text_that_is_not_utf8():
    lines = read_json(io.BytesIO(b'"a"\n"\xff"\n'))
    with pytest.raises(pa.ArrowException, match="UTF"):
        pa.RecordBatchReader.from_stream(lines).read_all()


def test_progress_receives_the_bytes_read_and_the_values_found(tmp_path: Path):
    files = [tmp_path / "1.ndjson", tmp_path / "2.ndjson.gz"]
    files[0].write_bytes(LINES)
    files[1].write_bytes(gzip.compress(LINES * 1000))
    told: list[tuple[int, int]] = []
    lines = read_json(files, progress=lambda taken, found: told.append((taken, found)))
    assert lines.size == sum(file.stat().st_size for file in files)
    assert sum(batch.num_rows for batch, _ in lines.batches()) == 3003
    assert told == sorted(told)
    assert told[-1] == (lines.size, 3003)


def test_the_size_of_a_stream_is_not_known():
    assert read_json([io.BytesIO(LINES)]).size is None
    assert read_json("-").size is None


def rejection(tmp_path: Path, name: str, data: bytes, **options: Any) -> InvalidJsonError:
    """Return the error that writing a file raises, after which neither a table nor a file exists."""
    file, table = tmp_path / name, tmp_path / "table"
    file.write_bytes(data)
    with pytest.raises(InvalidJsonError) as caught:
        write_table(table, read_json(file, **options))
    assert [path for path in table.rglob("*") if path.is_file()] == []
    assert caught.value.file == str(file)
    return caught.value


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b'{"a":1}\n{"a":}\n', 2, r"column 6: "),
        (b'\n\n{"a":1}\n\r\n  {"a":}\n', 5, r"column 8: "),
        (b"\xef\xbb\xbf{]\n", 1, r"column 2: "),
        (b'{"a":1} {"b":2}\n', 1, r"column 9: "),
        (b'"a"\n"\xff"\n', 2, r"column 2: .*UTF-8"),
        (b'{"a":1,"b":{"c":1,"c":2}}\n', 1, r'column 19: .*"c"'),
        (b"1\n2\n" + b"[" * 2000 + b"]" * 2000 + b"\n", 3, r"column \d+: .*(deep|nest)"),
        ('{"\u00e9\u00e9": tru}\n'.encode(), 1, r"column \d+: "),
    ],
)
def test_an_error_in_a_line_has_file_line_and_column(data: bytes, line: int, message: str, tmp_path: Path):
    error = rejection(tmp_path, "events.ndjson", data)
    assert error.line == line
    assert re.match(message, error.message)
    duplicates = "duplicate_keys='last' or " if "two fields" in error.message else ""
    remedy = f"pass {duplicates}on_invalid='reject' or on_invalid='null'"
    assert str(error) == f"{tmp_path / 'events.ndjson'}, line {line}: {error.message}: {remedy}"


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b'[\n  {"a":1},\n\n  {"a":\n     tru}\n]', 5, "6"),
        (b'[{"a":1},\n{"b":2}\n{"c":3}]', 3, "1"),
        (b'[{"a":1},\n{"b":2}', 2, r"\d+"),
        (b'[{"a":1},\n]', 2, "1"),
        (b'[{"a":1},\n2]\n3', 3, "1"),
        (b"[,1]", 1, "2"),
    ],
)
def test_an_error_in_an_array_has_file_line_and_column(data: bytes, line: int, column: str, tmp_path: Path):
    error = rejection(tmp_path, "events.json", data)
    assert re.search(rf"\bline {line}\b.*\bcolumn {column}\b", str(error))


@pytest.mark.parametrize("name", ["events.ndjson", "events.json"])
def test_a_value_longer_than_the_limit_is_rejected(name: str, tmp_path: Path):
    data = b"1\n" + b'"' + b"x" * 2000 + b'"\n2\n'
    error = rejection(tmp_path, name, data, max_value_bytes=1000)
    assert error.line == 2
    assert re.fullmatch(r"column \d+: the value has more than 1,000 bytes", error.message)


def test_line_numbers_are_right_far_into_a_file(tmp_path: Path):
    good = b'{"text":"' + b"x" * 100 + b'"}\n'
    data = good * 60_000 + b"\n\n" + b"{,}\n" + good
    error = rejection(tmp_path, "events.ndjson", data)
    assert (error.line, error.message[:10]) == (60_003, "column 2: ")


def test_the_second_of_two_files_is_named(tmp_path: Path):
    (tmp_path / "1.ndjson").write_bytes(LINES)
    (tmp_path / "2.ndjson").write_bytes(b"1\nnul\n")
    with raises_at(InvalidJsonError, r"column \d: ", file=str(tmp_path / "2.ndjson"), line=2):
        write_table(tmp_path / "table", read_json(str(tmp_path / "*.ndjson")))


@pytest.mark.parametrize("compression", [".gz", ".zst", ".xz", ".bz2"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "not compressed", "garbage at the end"])
def test_damaged_compression_is_an_error_with_the_file(compression: str, damage: str, tmp_path: Path):
    whole = COMPRESS[compression](LINES * 1000)
    middle = len(whole) // 2
    data = {
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :],
        "not compressed": LINES,
        "garbage at the end": whole + b"garbage that is not a frame",
    }[damage]
    name = f"events.ndjson{compression}"
    error = rejection(tmp_path, name, data)
    # zstd data may lack a checksum: a changed byte may decompress to other text, which is not JSON.
    if (damage, compression) != ("flipped", ".zst"):
        assert error.message.startswith(f"cannot decompress {tmp_path / name}: ")


@pytest.mark.parametrize("compression", [".gz", ".zst", ".xz", ".bz2"])
def test_files_that_were_compressed_in_parts_are_read_to_their_end(compression: str, tmp_path: Path):
    file = tmp_path / f"events.ndjson{compression}"
    file.write_bytes(COMPRESS[compression](b"1\n2\n") + COMPRESS[compression](b"3\n"))
    assert texts(file) == ["1", "2", "3"]
