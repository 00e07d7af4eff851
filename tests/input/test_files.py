"""CSV and Parquet files as data of a write, with the values that Python's csv reads."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at
from typer.testing import CliRunner

from delta_variant import Table, create_table, merge, read_csv, read_table, write_table
from delta_variant.cli.app import app
from delta_variant.errors import CastError, SchemaError, SourceError

ROWS = [
    {"name": 'Zoë; "Z"', "city": "line\nbreak", "payload": '{"day": "2026-11-21"}'},
    {"name": "Ada, B.", "city": "", "payload": '{"day": "2026-11-22", "n": [1, 2]}'},
]


def written(delimiter: str = ",", encoding: str = "utf-8") -> bytes:
    """Return the rows as Python's csv writes them."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(ROWS[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(ROWS)
    return text.getvalue().encode(encoding)


EXPECTED = [
    {"name": row["name"], "city": row["city"] or None, "payload": json.loads(row["payload"])} for row in ROWS
]
EXPORTS = {
    "plain.csv": written(),
    "excel.csv": written(";", "utf-8-sig"),
    "unicode.csv": written("\t", "utf-16"),
    "tabs.tsv": written("\t"),
    "packed.csv.gz": gzip.compress(written(";")),
    "named_as_plain.csv": gzip.compress(written()),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_an_exported_file_is_read_in_python_and_in_a_shell(name: str, tmp_path: Path):
    (tmp_path / name).write_bytes(EXPORTS[name])
    path, tables = str(tmp_path / name), [str(tmp_path / each) for each in ("path", "reader", "shell")]
    Table(tables[0]).append(path, variant_columns=["payload"])
    write_table(tables[1], read_csv(path, variant_columns=["payload"]))
    run = CliRunner().invoke(app, ["write", path, tables[2], "--variant-column", "payload"])
    assert run.exit_code == 0, run.output
    for table in tables:
        assert read_table(table).to_pylist() == EXPECTED


def test_numbers_have_a_decimal_comma_if_it_is_asked_for(tmp_path: Path):
    (tmp_path / "a.csv").write_text("price;n\n1,50;1\n-2,25;2\n", encoding="utf-8")
    assert read_csv(tmp_path / "a.csv", decimal=",").read_all().column("price").to_pylist() == [1.5, -2.25]
    assert read_csv(tmp_path / "a.csv").read_all().column("price").to_pylist() == ["1,50", "-2,25"]
    command = ["write", str(tmp_path / "a.csv"), str(tmp_path / "t"), "--decimal", ","]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert read_table(tmp_path / "t").to_pylist() == [{"price": 1.5, "n": 1}, {"price": -2.25, "n": 2}]
    with pytest.raises(ValueError, match=r"^decimal: expected one of '\.', ',', got ';'"):
        read_csv(tmp_path / "a.csv", decimal=";")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["12345678901234567891", "", "-7"], [Decimal(12345678901234567891), None, Decimal(-7)]),
        (["9223372036854775807"], [2**63 - 1]),
        (["1e20", "6.022e23"], [1e20, 6.022e23]),
        (["12345678901234567891", "1.5"], [12345678901234567891.0, 1.5]),
        (["1" * 39], [float("1" * 39)]),
        (["inf", "1e400"], [math.inf, math.inf]),
        (["01234", "", "98765"], ["01234", None, "98765"]),
        (["-007", "12345678901234567891"], ["-007", "12345678901234567891"]),
        (["0", "0.5", "-0"], [0.0, 0.5, -0.0]),
        (["0", "10"], [0, 10]),
    ],
)
def test_integers_of_csv_keep_their_digits(tmp_path: Path, texts: list[str], values: list[Any]):
    lines = [f"{number},{text}" for number, text in enumerate(texts)]
    (tmp_path / "a.csv").write_text("\n".join(["id,n", *lines]))
    assert read_csv(tmp_path / "a.csv").read_all()["n"].to_pylist() == values


def test_rows_of_csv_have_the_types_of_the_columns_of_their_table(tmp_path: Path):
    table, source = tmp_path / "t", tmp_path / "a.csv"
    create_table(table, ["code string", "n bigint", "price double", "d decimal(9,2)", "day string"])
    for text in ("12,012,01.5,7,2026-11-28", "007,7,2,1.5,x", "12345678901234567891,08,3,02,1"):
        source.write_text(f"CODE,n,price,d,day\n{text}\n")
        write_table(table, source, mode="append")
    source.write_text("code,n\n012,010\n5,20\n")
    merge(
        table, source, "target.code = source.code", schema_mode="merge"
    ).when_not_matched_insert_all().execute()
    rows = [
        ("007", 7, 2.0, Decimal("1.50"), "x"),
        ("012", 10, None, None, None),
        ("12", 12, 1.5, Decimal("7.00"), "2026-11-28"),
        ("12345678901234567891", 8, 3.0, Decimal("2.00"), "1"),
        ("5", 20, None, None, None),
    ]
    found = read_table(table).to_table().sort_by("code").to_pylist()
    assert [tuple(row.values()) for row in found] == rows


def test_numbers_of_csv_have_each_type_of_a_table(tmp_path: Path):
    table, source = tmp_path / "t", tmp_path / "a.csv"
    names = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)"]
    create_table(table, {name.partition("(")[0]: name for name in names})
    source.write_text(f"{','.join(name.partition('(')[0].upper() for name in names)}\n{','.join('1' * 7)}\n")
    write_table(table, source, mode="append")
    assert [tuple(row.values()) for row in read_table(table)] == [(1, 1, 1, 1, 1.0, 1.0, 1)]
    source.write_text("tinyint\n300\n")
    with pytest.raises(SourceError, match=r"a\.csv: .*invalid value '300'"):
        write_table(table, source, mode="append")


def test_times_of_day_in_csv_are_text(tmp_path: Path):
    (tmp_path / "a.csv").write_text("id,at\n1,12:30\n2,09:15:01\n")
    assert read_csv(tmp_path / "a.csv").read_all()["at"].to_pylist() == ["12:30", "09:15:01"]


def test_a_row_of_csv_can_be_large(tmp_path: Path):
    text = "x" * 5_000_000
    (tmp_path / "a.csv").write_text(f'id,text\n1,{text}\n2,"{text}"\n3,y\n')
    assert read_csv(tmp_path / "a.csv").read_all()["text"].to_pylist() == [text, text, "y"]
    (tmp_path / "a.csv").write_text(f"id,text\n1,{text * 8}\n")
    with pytest.raises(SourceError, match=r"a\.csv: a row is larger than 16 MiB"):
        read_csv(tmp_path / "a.csv").read_all()


def test_leading_zeros_in_one_csv_file_make_the_column_text_in_all(tmp_path: Path):
    for name, code in (("a.csv", "007"), ("b.csv", "98765432109876543210"), ("c.csv", "12")):
        (tmp_path / name).write_text(f"code\n{code}\n", encoding="utf-8")
    codes = read_csv(tmp_path).read_all()["code"].to_pylist()
    assert codes == ["007", "98765432109876543210", "12"]


def test_a_column_of_a_csv_file_gets_the_type_of_its_expression(tmp_path: Path):
    (tmp_path / "a.csv").write_text("zip,n,day\n01234,1,2026-11-21\n", encoding="utf-8")
    columns = {"n": "n::smallint", "zip": "zip::int", "next": "n::int + 1", "day": "day::string"}
    found = read_csv(tmp_path / "a.csv", columns=columns).read_all()
    assert found.to_pylist() == [{"zip": 1234, "n": 1, "day": "2026-11-21", "next": 2}]
    assert found.schema.types == [pa.int32(), pa.int16(), pa.string(), pa.int32()]
    with pytest.raises(ValueError, match="the file has a column 'n': choose another name"):
        read_csv(tmp_path / "a.csv", variant_columns=["n"], columns={"n": "n::int"})


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b",n\n0,1\n", SchemaError, "the name of column 1 is empty: add it to the header"),
        ("n\u00e4me\n1\n".encode("latin-1"), SourceError, "a column name is not UTF-8: convert the file"),
    ],
)
def test_the_error_of_an_invalid_csv_header_names_the_file(
    content: bytes, error: type[Exception], message: str, tmp_path: Path
):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(error, match=rf"cannot read .*a\.csv because {message}"):
        read_csv(tmp_path / "a.csv")


def test_columns_are_extracted_from_json_in_csv_and_partition_a_table(tmp_path: Path):
    (tmp_path / "a.csv").write_bytes(written())
    columns = {"day": "payload:day::date", "file": "_metadata.file_name", "length": "length(name)"}
    rows = read_csv(tmp_path / "a.csv", variant_columns=["payload"], columns=columns)
    write_table(tmp_path / "python", rows, partition_by="day")
    options = [part for pair in columns.items() for part in ("--extract", "=".join(pair))]
    command = ["write", str(tmp_path / "a.csv"), str(tmp_path / "shell"), "--variant-column", "payload"]
    assert CliRunner().invoke(app, [*command, *options, "--partition-by", "day"]).exit_code == 0
    expected = [
        {
            **row,
            "day": datetime.date.fromisoformat(row["payload"]["day"]),
            "file": "a.csv",
            "length": len(row["name"]),
        }
        for row in EXPECTED
    ]
    for table in ("python", "shell"):
        assert sorted(read_table(tmp_path / table).to_pylist(), key=lambda row: row["day"]) == expected


def test_a_column_that_cannot_be_computed_names_file_and_row(tmp_path: Path):
    for name, value in (("a.csv", "2026-11-21"), ("b.csv", "soon")):
        (tmp_path / name).write_text(f"day\n2026-11-21\n{value}\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("day\ntomorrow\nsoon\n", encoding="utf-8")
    rows = read_csv(tmp_path / "b.csv", columns={"date": "day::date"})
    with raises_at(CastError, re.escape("cannot compute 'date' as `day::date`"), row=0, column="date"):
        write_table(tmp_path / "table", rows)


def test_parquet_files_are_data_of_a_write(tmp_path: Path):
    rows = pa.table({"id": [1, 2], "payload": [row["payload"] for row in ROWS]})
    pq.write_table(rows, tmp_path / "a.parquet")
    Table(str(tmp_path / "file")).append(tmp_path / "a.parquet", variant_columns=["payload"])
    (tmp_path / "landing").mkdir()
    pq.write_table(rows.slice(1), tmp_path / "landing" / "2.parquet")
    pq.write_table(rows.slice(0, 1), tmp_path / "landing" / "1.parquet")
    Table(str(tmp_path / "folder")).append(str(tmp_path / "landing"), variant_columns=["payload"])
    command = ["write", str(tmp_path / "a.parquet"), str(tmp_path / "shell"), "--variant-column", "payload"]
    run = CliRunner().invoke(app, [*command, "--extract", "day=payload:day::date"])
    assert run.exit_code == 0, run.output
    expected = [{"id": n, "payload": row["payload"]} for n, row in enumerate(EXPECTED, 1)]
    assert read_table(tmp_path / "file").to_pylist() == expected
    assert read_table(tmp_path / "folder").to_pylist() == expected
    days = [datetime.date(2026, 11, 21), datetime.date(2026, 11, 22)]
    assert read_table(tmp_path / "shell").to_table().column("day").to_pylist() == days


@pytest.mark.parametrize(
    ("names", "options", "error", "message"),
    [
        (["a.csv", "b.json"], {}, SourceError, "cannot read CSV and JSON files as one input"),
        (
            ["a.csv"],
            {"variant_columns": ["b"]},
            SchemaError,
            "variant_columns names columns that the",
        ),
        (["a.json"], {"variant_columns": ["a", "b"]}, ValueError, "a JSON file has one column, got 2"),
    ],
)
def test_files_that_do_not_fit_are_rejected(
    names: list[str], options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
):
    (tmp_path / "landing").mkdir()
    for name in names:
        (tmp_path / "landing" / name).write_text("a\n1\n", encoding="utf-8")
    with pytest.raises(error, match=message):
        Table(str(tmp_path / "table")).append(str(tmp_path / "landing"), **options)


@pytest.fixture(params=["csv", "parquet"])
def partitioned(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder with a file of a column `x` for each of two days, the second without `p`."""
    root = tmp_path / "day=0" / "landing"
    for name in ("day=2026-11-21/p=01", "day=2026-11-22/p=__HIVE_DEFAULT_PARTITION__"):
        (root / name).mkdir(parents=True)
        if request.param == "csv":
            (root / name / "1.csv").write_text("x\n7\n", encoding="utf-8")
        else:
            pq.write_table(pa.table({"x": [7]}), root / name / "1.parquet")
    return root


def test_folders_of_partitions_are_columns(partitioned: Path, tmp_path: Path):
    new = [{"x": 7, "day": "2026-11-21", "p": "01"}, {"x": 7, "day": "2026-11-22", "p": None}]
    for table, write in {
        "path": lambda path: write_table(path, str(partitioned)),
        "shell": lambda path: CliRunner().invoke(app, ["write", str(partitioned), path]),
    }.items():
        write(str(tmp_path / table))
        assert read_table(tmp_path / table).to_pylist() == new
    days = [datetime.date(2026, 11, day) for day in (20, 21, 22)]
    write_table(tmp_path / "typed", [{"x": 7, "Day": days[0], "p": "00"}], partition_by="Day")
    write_table(tmp_path / "typed", str(partitioned), mode="append")
    arguments = ["write", str(partitioned), str(tmp_path / "typed"), "--mode", "append"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    found = read_table(tmp_path / "typed", columns=["day", "p"]).to_table().sort_by("day").to_pylist()
    expected = [(days[0], "00"), *[(days[1], "01")] * 2, *[(days[2], None)] * 2]
    assert [tuple(row.values()) for row in found] == expected


def test_a_folder_that_is_no_value_of_its_column_is_an_error(partitioned: Path, tmp_path: Path):
    write_table(tmp_path / "t", [{"x": 7, "day": 1, "p": "00"}])
    with raises_at(SourceError, "cannot read the folder day=2026-11-21", column="day"):
        write_table(tmp_path / "t", str(partitioned), mode="append")
