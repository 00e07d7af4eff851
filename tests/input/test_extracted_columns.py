"""Columns that are computed while JSON is read: `columns` of `read_json`, `--extract` of the command line."""

from __future__ import annotations

import datetime
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.errors import raises_at
from typer.testing import CliRunner

from delta_variant import Table, read_json, read_table, write_table
from delta_variant.cli.app import app
from delta_variant.errors import ArgumentTypeError, CastError, ExpressionError

DAYS = ["2026-11-21", "2026-11-22", "2026-11-21"]
ROWS = [{"date": day, "n": number, "user": {"id": str(number)}} for number, day in enumerate(DAYS)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of three events on two days."""
    path = tmp_path / "events.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def test_columns_have_the_values_of_their_expressions(file: Path, tmp_path: Path):
    columns = {
        "day": "v:date::date",
        "id": "v:user.id::bigint + 1",
        "user": "v:user",
        "file": "_metadata.file_path",
        "name": "_metadata.file_name",
    }
    lines = read_json(file, column="v", columns=columns)
    assert lines.schema.field("day").type == pa.date32()
    write_table(tmp_path / "table", lines)
    expected = [
        {
            "v": row,
            "day": datetime.date.fromisoformat(row["date"]),
            "id": int(row["user"]["id"]) + 1,
            "user": row["user"],
            "file": str(file),
            "name": "events.ndjson",
        }
        for row in ROWS
    ]
    assert read_table(tmp_path / "table").to_pylist() == expected
    assert pa.table(lines).drop_columns(["v", "user"]).to_pylist() == [
        {name: row[name] for name in ("day", "id", "file", "name")} for row in expected
    ]


def test_a_table_is_partitioned_by_a_path(file: Path, tmp_path: Path):
    lines = read_json(file, column="v", columns={"day": "v:date::date"})
    result = write_table(tmp_path / "table", lines, partition_by="day")
    folders = {each.path.split("/")[0] for each in result.files}
    assert folders == {"day=2026-11-21", "day=2026-11-22"}


def test_a_command_extracts_columns(file: Path, tmp_path: Path):
    table = str(tmp_path / "table")
    options = ["--extract", "day=v:date::date", "--extract", "file=_metadata.file_name"]
    command = ["write", str(file), table, "--column", "v", *options, "--partition-by", "day"]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 0, run.output
    found = read_table(table, columns=["day", "file"]).to_pylist()
    days = sorted((str(row["day"]), row["file"]) for row in found)
    assert days == sorted((day, "events.ndjson") for day in DAYS)


def test_rows_of_several_files_have_the_names_of_theirs(file: Path, tmp_path: Path):
    (tmp_path / "z.json.gz").write_bytes(gzip.compress(b'[{"n": 7}]'))
    lines = read_json([file, tmp_path / "z.json.gz"], columns={"file": "_metadata.file_name"})
    assert pa.table(lines).column("file").to_pylist() == ["events.ndjson"] * 3 + ["z.json.gz"]


@pytest.mark.parametrize("text", ["value:date::date", "to_date(value:date::string)"])
def test_a_value_that_cannot_be_cast_is_an_error_with_file_line_and_expression(text: str, tmp_path: Path):
    rows = [{"date": DAYS[0]}] * 300 + [{"date": "soon"}] + [{"date": "later"}] * 20
    (tmp_path / "a.json").write_text("".join(f"{json.dumps(row)}\n\n" for row in rows), encoding="utf-8")
    lines = read_json(tmp_path / "a.json", columns={"day": text})
    message = re.escape(f"cannot compute 'day' as `{text}`: ")
    with raises_at(CastError, message, file=str(tmp_path / "a.json"), line=601, column="day"):
        write_table(tmp_path / "table", lines)


def test_invalid_json_is_rejected_before_its_columns(tmp_path: Path):
    (tmp_path / "a.ndjson").write_bytes(b'{"n": 1}\n{"n": \n{"n": 2}\n')
    options: dict[str, Any] = {"on_invalid": "reject", "rejects": tmp_path / "rejects"}
    lines = read_json(tmp_path / "a.ndjson", columns={"n": "value:n::int"}, **options)
    result = write_table(tmp_path / "table", lines, partition_by="n")
    assert (result.rows, result.invalid, len(result.files)) == (2, 1, 2)
    lines = read_json(tmp_path / "a.ndjson", columns={"n": "value:n::int"}, on_invalid="null")
    write_table(tmp_path / "nulls", lines)
    assert [row["n"] for row in read_table(tmp_path / "nulls").to_pylist()] == [1, None, 2]


def test_columns_are_a_source_of_a_merge(file: Path, tmp_path: Path):
    table = Table(str(tmp_path / "table"))
    table.append(pa.table({"id": ["1"], "n": [0]}))
    merging = table.merge(read_json(file, columns={"id": "value:user.id::string"}), "target.id = source.id")
    merging.when_matched_update({"n": "source.value:n::bigint + 10"}).execute()
    assert table.scan().to_pylist() == [{"id": "1", "n": 11}]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"day": "v:date"}, ExpressionError, r"`v` does not exist"),
        ({"day": "value:"}, ExpressionError, r"value:"),
        (
            {"day": "_metadata.size"},
            ExpressionError,
            r"`size` does not exist; the fields are file_path",
        ),
        ({"value": "value:date"}, ValueError, r"^columns: the file has a column 'value'"),
        ({"day": "null"}, ExpressionError, r"NULL has no type: cast it"),
        (["value:date"], ArgumentTypeError, r"^columns: expected a dict of "),
    ],
)
def test_an_invalid_column_is_rejected(columns: Any, error: type[Exception], message: str, file: Path):
    with pytest.raises(error, match=message):
        _ = read_json(file, columns=columns).schema
