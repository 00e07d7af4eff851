"""The commands of the command line: help, inputs, confirmation, merge, describe, logs and completion."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer
from rich.console import Console
from support.planting import Table as Planted
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli import main
from delta_variant.cli.app import ROWS as COMMAND_ROWS
from delta_variant.cli.app import app
from delta_variant.cli.commands import statistics
from delta_variant.cli.confirmation import DESTRUCTIVE, RULE, confirm
from delta_variant.cli.output import wrapped
from delta_variant.cli.report import Heading, Layout, print_table
from delta_variant.execution import Description
from delta_variant_conformance.engines import ENGINES

ROWS = pa.table({"id": [1, 2, 3], "event": [f'{{"n": {number}}}' for number in (1, 2, 3)]})
PROGRAM = "from delta_variant.cli import main; main()"


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table of three rows, with column mapping."""
    uri = str(tmp_path / "t")
    properties = {"delta.columnMapping.mode": "name"}
    dv.write_table(uri, ROWS, variant_columns=["event"], configuration=properties)
    return uri


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def run_main(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    captured = capsys.readouterr()
    return int(exited.value.code or 0), captured.out, captured.err


def commands() -> dict[str, typer.core.TyperCommand]:
    group = typer.main.get_command(app)
    found = {name: group.get_command(None, name) for name in COMMAND_ROWS if name != "z85"}
    z85 = group.get_command(None, "z85")
    return {**found, **{f"z85 {name}": command for name, command in z85.commands.items()}}


# Help


@pytest.mark.parametrize("name", [*COMMAND_ROWS, "z85 decode", "z85 encode"])
def test_help_fits_80_columns_and_has_examples(name: str):
    text = run(*name.split(), "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "<" not in text.partition("Examples:")[0]
    assert name == "z85" or "Examples:\n    delta-variant" in text


@pytest.mark.parametrize("name", [(), ("z85",)])
def test_a_group_without_a_command_prints_its_help(name: tuple[str, ...]):
    assert run(*name).stderr == run(*name, "--help").stdout


def test_the_list_of_commands_has_whole_descriptions_in_groups():
    text = run("--help").stdout
    assert not re.search(r"\.\.\.$", text.partition("\n")[2], re.MULTILINE)
    assert (
        text.index("Write and read:")
        < text.index("  write ")
        < text.index("  read ")
        < text.index("  alter ")
    )
    assert "".join(RULE.split()) in "".join(text.split())


def lines_of(examples: tuple[str, ...]) -> list[list[str]]:
    """Return the arguments of the examples, without pipes and redirections."""
    texts = " ".join(examples).replace("\\ ", " ")
    calls = [part for part in re.split(r"(?=delta-variant )", texts) if part.startswith("delta-variant ")]
    return [shlex.split(re.split(r" (?:\||>) ", call)[0])[1:] for call in calls]


EXAMPLES = {
    **{name: row.examples for name, row in COMMAND_ROWS.items() if name != "z85"},
    **{f"z85 {run.__name__}": (example,) for run, example in statistics.EXAMPLES.items()},
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_can_be_parsed(name: str):
    found = lines_of(EXAMPLES[name])
    assert found
    for command, *arguments in found:
        if command == "gh":
            continue
        words = [command, arguments.pop(0)] if command == "z85" else [command]
        commands()[" ".join(words)].make_context(command, arguments)


def test_the_examples_of_conformance_name_engines():
    for _, *arguments in lines_of(EXAMPLES["conformance"]):
        named = commands()["conformance"].make_context("conformance", arguments).params["engine"]
        assert set(named or ()) <= set(ENGINES)


def test_a_command_of_a_package_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **names: ())
    result = run("conformance", "--engine", "ours")
    assert result.exit_code == 2
    assert "run pip install delta-variant-conformance" in " ".join(result.stderr.split())
    assert "  conformance " in run("--help").stdout


def test_the_example_of_z85_is_valid():
    ((_, _, text),) = lines_of(EXAMPLES["z85 decode"])
    assert json.loads(run("z85", "decode", text).stdout) == {"$['id']": {"type": "bigint", "value": 7}}
    ((_, _, text),) = lines_of(EXAMPLES["z85 encode"])
    assert json.loads(run("z85", "decode", run("z85", "encode", text).stdout.strip()).stdout)


# Destructive commands

DESTROYING = {
    "delete": ["delete", "TABLE", "--where", "id = 1"],
    "update": ["update", "TABLE", "--set", "id = 7", "--all"],
    "merge": ["merge", "SOURCE", "TABLE", "--on", "target.id = source.id", "--when-matched-delete"],
    "write --mode overwrite": ["write", "SOURCE", "TABLE", "--mode", "overwrite"],
    "alter --drop-column": ["alter", "TABLE", "--drop-column", "event"],
    "drop-feature": ["drop-feature", "TABLE", "variantShredding"],
    "restore": ["restore", "TABLE", "--version", "0"],
    "vacuum": ["vacuum", "TABLE", "--retention-hours", "0", "--no-enforce-retention"],
    "clean-up-log": ["clean-up-log", "TABLE"],
    "repair-files": ["repair-files", "TABLE"],
    "repair-log": ["repair-log", "TABLE"],
}
PLANS = {
    "delete": "version 1, delete rows where id = 1: 1 row",
    "update": "version 1, update all rows: 3 rows",
    "merge": "when matched delete",
    "write --mode overwrite": "version 1, replace all rows: 3 rows",
    "alter --drop-column": 'version 1, DROP COLUMNS: columns=["event"]',
    "drop-feature": "version 1, drop the feature variantShredding\nunset delta.enableVariantShredding\n",
    "restore": "version 1, restore version 0: 0 files removed, 0 files added again",
    "vacuum": "delete 1 file, ",
    "clean-up-log": "versions before 1 can no longer be loaded",
    "repair-files": "remove 1 lost file of 1, which had 3 rows",
    "repair-log": "move 1 file from _delta_log to _log_set_aside",
}


@pytest.fixture
def prepared(tmp_path: Path, table: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Return a table at version 1 with an unused file and an expired version, and a source for it."""
    if request.node.callspec.params.get("name") == "repair-files":
        for file in Path(table).glob("part-*.parquet"):
            file.unlink()
    dv.set_properties(table, {"team": "us", "delta.checkpointInterval": "1"})
    if request.node.callspec.params.get("name") == "repair-log":
        (Path(table) / "_delta_log" / f"{0:020}.crc").write_text("{}")
    for file in (Path(table) / "_delta_log").glob("0*"):
        os.utime(file, (0, 0))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "source.parquet")
    unused = Path(table) / "unused.parquet"
    unused.touch()
    os.utime(unused, (0, 0))
    return {"TABLE": table, "SOURCE": str(tmp_path / "source.parquet")}


def test_every_destructive_command_is_tested():
    assert set(DESTROYING) == set(PLANS) == set(DESTRUCTIVE)
    assert all(name in RULE for name in DESTRUCTIVE)


def test_only_destructive_commands_have_an_option_to_confirm():
    confirming = {name for name, each in commands().items() if any(p.name == "yes" for p in each.params)}
    assert confirming == {name.split()[0] for name in DESTRUCTIVE}


@pytest.mark.parametrize("name", DESTRUCTIVE)
def test_a_destructive_command_needs_yes_without_a_terminal(prepared, capsys, name):
    arguments = [prepared.get(each, each) for each in DESTROYING[name]]
    status, out, err = run_main(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"delta-variant: {name} removes {DESTRUCTIVE[name]}, and there is no terminal")
    assert dv.load_snapshot(prepared["TABLE"]).version == 1


@pytest.mark.parametrize("name", DESTRUCTIVE)
def test_a_dry_run_prints_the_plan_and_changes_nothing(prepared, name):
    arguments = [prepared.get(each, each) for each in DESTROYING[name]]
    assert PLANS[name] in run(*arguments, "--dry-run").stdout
    report = json.loads(run(*arguments, "--dry-run", "--json").stdout)
    assert (report["dry_run"], report["table"]) == (True, prepared["TABLE"])
    assert dv.load_snapshot(prepared["TABLE"]).version == 1
    assert (Path(prepared["TABLE"]) / "unused.parquet").exists()


@pytest.mark.parametrize("name", DESTRUCTIVE)
def test_a_destructive_command_runs_with_yes(prepared, name):
    arguments = [prepared.get(each, each) for each in DESTROYING[name]]
    result = run(*arguments, "--yes")
    assert result.exit_code == 0, result.output
    if name == "clean-up-log":
        assert [entry.version for entry in dv.history(prepared["TABLE"])] == [1]
    elif name == "repair-log":
        assert not (Path(prepared["TABLE"]) / "_delta_log" / f"{0:020}.crc").exists()
    else:
        # A restore of version 0 changes only the properties.
        assert dv.load_snapshot(prepared["TABLE"]).version > 1


def test_a_dry_run_of_a_new_table_prints_its_columns_and_creates_nothing(tmp_path: Path):
    table, source = str(tmp_path / "new"), str(tmp_path / "s.csv")
    (tmp_path / "s.csv").write_text("day,n\n2026-01-01,1\n")
    write = ["write", source, table, "--partition-by", "day", "--dry-run"]
    expected = [f"{table}: create the table", "  day date", "  n bigint", "  partitioned by day"]
    sample = ["a sample of 1 row, such as", '  {"day":"2026-01-01","n":1}']
    assert run(*write).stdout.splitlines() == expected + sample
    report = json.loads(run(*write, "--json").stdout)
    assert report["columns"] == [{"name": "day", "type": "date"}, {"name": "n", "type": "bigint"}]
    assert (report["version"], report["partition_columns"]) == (None, ["day"])
    assert not Path(table).exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--mode", "append"], ["version 0, append rows"]),
        (["--mode", "ignore"], ["version 0, write nothing because the table exists"]),
        (["--mode", "overwrite"], ["version 0, replace all rows: 3 rows"]),
    ],
)
def test_a_dry_run_of_a_write_to_a_table_says_what_it_would_do(table, tmp_path: Path, arguments, expected):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "s.parquet")
    result = run("write", str(tmp_path / "s.parquet"), table, *arguments, "--dry-run")
    sample = [] if "ignore" in arguments else ["a sample of 1 row, such as", '  {"id":1}']
    assert result.stdout.splitlines() == [f"{table}: {line}" for line in expected] + sample
    assert dv.load_snapshot(table).version == 0


def test_a_dry_run_previews_columns_rejects_and_shredded_paths(tmp_path: Path):
    table, source = str(tmp_path / "new"), tmp_path / "s.ndjson"
    rows = [{"day": f"2026-01-0{number % 3 + 1}", "note": "x" * 200} for number in range(5_000)]
    lines = [json.dumps(row) for row in rows]
    source.write_text("\n".join([lines[0], '{"day": ', *lines[1:]]), encoding="utf-8")
    write = ["write", str(source), table, "--extract", "day=value:day::date", "--dry-run"]
    write += ["--shredding", '{"day": "string"}']
    printed = run(*write).stdout
    expected = [f"{table}: create the table", "  value variant", "  day date"]
    assert printed.splitlines()[:3] == expected
    assert "a sample of 5,000 rows, such as" in printed
    assert f"  {source}, line 2, column 9: " in printed.replace("\n    ", " ")
    sample = json.loads(run(*write, "--json").stdout)["sample"]
    assert (sample["rows"], sample["invalid"], len(sample["rejects"])) == (5_000, 1, 1)
    assert sample["first_rows"][0] == {"value": rows[0], "day": rows[0]["day"]}
    assert {tuple(each["path"]) for each in sample["shredded"]} == {("day",)}
    assert not Path(table).exists()


def test_a_write_replaces_the_partitions_of_its_input(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, pa.table({"id": [1, 2], "day": ["a", "b"]}), partition_by="day")
    pq.write_table(pa.table({"id": [3], "day": ["b"]}), tmp_path / "s.parquet")
    write = ["write", str(tmp_path / "s.parquet"), table, "--mode", "overwrite"]
    write += ["--partition-overwrite-mode", "dynamic"]
    planned = run(*write, "--dry-run").stdout
    assert (
        planned.splitlines()[0] == f"{table}: version 0, replace the rows of the partitions that the data has"
    )
    assert run(*write, "--yes").exit_code == 0
    assert sorted(row["id"] for row in dv.Table(table)) == [1, 3]


def test_a_dry_run_rejects_data_that_the_write_would_reject(table, tmp_path: Path, capsys):
    pq.write_table(pa.table({"other": [1]}), tmp_path / "s.parquet")
    write = ["write", str(tmp_path / "s.parquet"), table, "--mode", "append", "--dry-run"]
    status, _, err = run_main(capsys, *write)
    assert status == 2
    assert "the table has no column 'other'" in err
    assert err.endswith("pass --schema-mode merge\n")
    assert run(*write, "--schema-mode", "merge").stdout.splitlines()[3] == "  other bigint"


@pytest.mark.parametrize(("typed", "meant"), [("raed", "read"), ("optimise", "optimize"), ("stat", "stats")])
def test_a_misspelt_command_is_answered_with_the_one_that_is_close(typed: str, meant: str, capsys):
    status, _, err = run_main(capsys, typed, "t")
    assert status == 2
    assert f"Did you mean '{meant}'?" in err
    status, _, err = run_main(capsys, "zzzz")
    assert (status, "Did you mean" in err) == (2, False)


def test_an_error_in_sql_marks_its_place_and_names_the_way_to_aggregates(table, capsys):
    _, _, err = run_main(capsys, "read", table, "-c", "count(*)")
    first, *marked, remedy = err.splitlines()
    assert first == "delta-variant: cannot parse SQL at character 1: the function `count` is not supported"
    assert marked == ["  count(*)", "  ^"]
    assert "`Table.aggregate`" in remedy
    assert "`delta-variant sql`" in remedy


def test_a_query_is_printed_in_each_format(table, capsys):
    query = "select id % 2 as odd, sum(event:n::int) as n from t group by all order by n"
    status, out, err = run_main(capsys, "sql", query, "--table", f"t={table}")
    assert (status, out, err) == (0, "odd\tn\n0\t2\n1\t4\n", "")
    _, out, _ = run_main(capsys, "sql", query, "-t", f"t={table}", "--json", "--limit", "1")
    assert out == '{"odd":0,"n":2}\n'
    status, out, err = run_main(capsys, "sql", "select * from u", "-t", f"t={table}", "--format", "csv")
    assert (status, out) == (2, "")
    assert err.startswith("delta-variant: unknown table `u`: pass --table NAME=TABLE, or write its path")
    _, _, err = run_main(capsys, "sql", "select * from u")
    assert err == (
        "delta-variant: unknown table `u`: pass --table NAME=TABLE, or write its path as delta.`path`\n"
    )


def test_maps_are_objects_of_json(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.Table(table).create(["id int", "m map<date, variant>", "n map<string, array<map<int, double>>>"])
    values = (
        "(1, map(date '2026-11-21', parse_json('{\"a\": 1}')), "
        "map('x', array(map(7, double('NaN')), null), 'y', null)), (2, null, null)"
    )
    dv.sql(f"insert into t values {values}", t=table)
    lines = run("read", table, "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": 1, "m": {"2026-11-21": {"a": 1}}, "n": {"x": [{"7": "NaN"}, None], "y": None}},
        {"id": 2, "m": None, "n": None},
    ]


@pytest.mark.parametrize("scope", ["--all", "--where=true"])
def test_an_update_needs_an_assignment(table, capsys, scope):
    assert "pass at least one --set or --unset" in run_main(capsys, "update", table, scope, "--yes")[2]


def test_sql_runs_no_statement_that_changes_a_table(table, capsys):
    status, out, err = run_main(capsys, "sql", "delete from t", "--table", f"t={table}")
    assert (status, out) == (2, "")
    assert "cannot run DELETE here" in err
    assert "expected a query, or a statement that shows a table" in err
    _, out, _ = run_main(capsys, "sql", "describe history t limit 1", "--table", f"t={table}", "--json")
    assert '"operation":"WRITE"' in out


def test_a_plan_with_many_files_names_the_first_ones_before_the_question(capsys, monkeypatch):
    terminal = SimpleNamespace(isatty=lambda: True, readline=lambda: "n\n")
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    names = tuple(f"{number}.parquet" for number in range(12))
    plan = SimpleNamespace(describe=lambda: Description(("delete 12 files",), {}, names))
    with pytest.raises(typer.Exit):
        confirm("vacuum", "t", lambda: plan, yes=False, dry_run=False, json=False)
    # The progress of making the plan hides the cursor and shows it again.
    lines = re.sub(r"\x1b\[[?\d]*[a-zA-Z]\s*", "", capsys.readouterr().err).splitlines()
    assert lines[:10] == list(names[:10])
    assert lines[10:12] == ["and 2 more files: --dry-run lists all", "t: delete 12 files"]
    with pytest.raises(typer.Exit) as ended:
        confirm("vacuum", "t", lambda: plan, yes=False, dry_run=True, json=False)
    assert ended.value.exit_code == 0
    assert capsys.readouterr().out.splitlines() == [*names, "t: delete 12 files"]


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "status", "version"), [("n", 2, 0), ("", 2, 0), ("y", 0, 1)])
def test_a_destructive_command_asks_on_a_terminal(table, answer, status, version):
    reader, writer = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "delete", table, "--where", "id = 1"]
    os.write(reader, f"{answer}\n".encode())
    done = subprocess.run(command, stdin=writer, stderr=writer, stdout=subprocess.PIPE, check=False)
    os.close(writer)
    shown = os.read(reader, 1 << 16).decode()
    os.close(reader)
    assert done.returncode == status
    assert "delete rows where id = 1: 1 row\r\nContinue? [y/N] " in shown
    assert ("nothing was changed" in shown) == (status == 2)
    assert dv.load_snapshot(table).version == version


@pytest.mark.slow
def test_the_end_of_the_input_declines_on_a_line_of_its_own(table):
    reader, writer = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "delete", table, "--where", "id = 1"]
    # Ctrl-D
    os.write(reader, b"\x04")
    done = subprocess.run(command, stdin=writer, stderr=writer, check=False)
    os.close(writer)
    shown = os.read(reader, 1 << 16).decode()
    os.close(reader)
    assert done.returncode == 2
    assert "Continue? [y/N] \r\ndelta-variant: nothing was changed\r\n" in shown


# Inputs


def ids(table: str) -> list[int]:
    return sorted(dv.read_table(table, columns=["id"]).to_table()["id"].to_pylist())


def test_write_reads_parquet_and_csv_from_folders_and_globs(tmp_path: Path):
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(ROWS, folder / "a.parquet")
    pq.write_table(ROWS, folder / "b.parquet")
    table = str(tmp_path / "t")
    options = ("--variant-column", "event", "--partition-by", "id", "--property", "team=us")
    assert run("write", str(folder), table, *options).exit_code == 0
    (tmp_path / "c.csv").write_text('id,event\n7,"{""n"": 1}"\n8,\n', encoding="utf-8")
    options = ("--variant-column", "event", "--mode", "append")
    assert run("write", str(tmp_path / "*.csv"), table, *options).exit_code == 0
    assert ids(table) == [1, 1, 2, 2, 3, 3, 7, 8]
    assert json.loads(run("read", table, "--where", "id = 7", "--json").stdout)["event"] == {"n": 1}
    assert json.loads(run("read", table, "--where", "id = 8", "--json").stdout)["event"] is None
    snapshot = dv.load_snapshot(table)
    assert (snapshot.partition_columns, snapshot.properties["team"]) == (("id",), "us")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a.parquet", "b.csv", "t"], "cannot read CSV and Parquet files as one input"),
        (["a.parquet", "t", "--column", "x"], "--column is for JSON"),
        (["a.json", "t", "--variant-column", "x"], "--variant-column is for Parquet and CSV"),
        (["empty", "t"], "empty contains no file that ends with .parquet"),
        (["none.csv", "t"], "the input contains no values"),
        (["absent.csv", "t"], "file not found: absent.csv"),
        (["a.json", "memory:///t"], "exists only in the memory of this command"),
        (["a.json", "t", "--shredding", "x"], "--shredding: expected infer, none, a schema"),
        (["a.json", "t", "--shredding", '{"n": "nonsense"}'], "nonsense"),
        (["a.json", "t", "--shredding", '{"n": []}'], "--shredding: expected a SQL type such as 'bigint'"),
        (["a.json", "t", "--partition-by", "value:n"], "pass --extract NAME=SQL and --partition-by NAME"),
        (["a.json", "t", "--txn", "loader"], "expected APP:VERSION"),
        (
            ["a.json", "t", "--where", "id = 1"],
            "--where and --schema-mode overwrite require --mode overwrite",
        ),
        (
            ["a.json", "t", "--partition-overwrite-mode", "dynamic"],
            "--partition-overwrite-mode dynamic requires --mode overwrite without --where",
        ),
        (["a.json", "t", "--storage-option", "x"], "invalid --storage-option 'x': expected KEY=VALUE"),
        (["a.json", "t", "-q", "-v"], "pass at most one of --quiet and --verbose"),
    ],
)
def test_write_rejects_inputs_and_options(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, "a.parquet")
    Path("b.csv").write_text("id\n1\n")
    Path("none.csv").write_text("id\n")
    Path("a.json").write_text("1\n")
    Path("empty").mkdir()
    status, out, err = run_main(capsys, "write", *arguments)
    assert (status, out) == (2, "")
    assert sentence in " ".join(err.split())
    assert not Path("t").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"1,2,3\n", "CSV parse error: Expected 2 columns, got 3: 1,2,3"),
        ("a.csv", b"x,2\n", "In CSV column #0: CSV conversion error to int64: invalid value 'x'"),
        ("a.csv", b"1,\xff\n", "In CSV column #1: CSV conversion error to string: invalid UTF8 data"),
        ("a.csv.gz", None, "Compressed file ended before the end-of-stream marker was reached"),
    ],
)
def test_an_error_far_into_a_csv_file_is_one_line(tmp_path, capsys, monkeypatch, name, content, message):
    monkeypatch.setattr("delta_variant.input.files.MAX_ROW_BYTES", 1 << 20)
    start = b"id,name\n" + b"".join(b"%d,n%d\n" % (number, number) for number in range(200_000))
    file = tmp_path / name
    file.write_bytes(gzip.compress(start)[:-100_000] if content is None else start + content)
    status, out, err = run_main(capsys, "write", str(file), str(tmp_path / "t"))
    assert (status, out) == (2, "")
    failed = "decompress" if content is None else "read"
    assert err == f"delta-variant: cannot {failed} {file}: {message}\n"
    assert not (tmp_path / "t").exists()


def test_a_csv_file_that_is_not_utf8_is_rejected(tmp_path, capsys):
    file = tmp_path / "a.csv"
    file.write_bytes(b"id,name\n1,M\xfcller\n")
    status, out, err = run_main(capsys, "write", str(file), str(tmp_path / "t"))
    assert (status, out) == (2, "")
    message = "because the column 'name' is not UTF-8: convert the file to UTF-8"
    assert err == f"delta-variant: cannot read {file} {message}\n"


def test_write_shreds_by_a_schema_and_records_a_transaction(tmp_path: Path):
    events, schema = tmp_path / "events.json", tmp_path / "schema.json"
    events.write_text('{"id": 7, "tags": ["a"], "x": 1}\n')
    schema.write_text('{"id": "bigint", "tags": ["string"]}')
    table = str(tmp_path / "t")
    options = ("--txn", "loader:3", "--metadata", "nightly", "--mode", "append", "--shredding")
    report = json.loads(run("write", str(events), table, *options, str(schema), "--json").stdout)
    assert [(each["path"], each["type"]) for each in report["shredded"]] == [
        (["id"], "bigint"),
        (["tags", None], "string"),
    ]
    again = run("write", str(events), table, *options, '{"id": "int"}', "--json")
    assert json.loads(again.stdout)["version"] is None
    assert dv.load_snapshot(table).txns["loader"].version == 3
    assert dv.history(table)[0].metadata == "nightly"


def test_a_remedy_names_an_option(table, tmp_path, capsys):
    (tmp_path / "a.json").write_text("1\n")
    status, _, err = run_main(capsys, "write", str(tmp_path / "a.json"), table)
    assert status == 2
    assert err.endswith(f"a Delta table already exists at {table}: pass --mode append or --mode overwrite\n")


def test_a_storage_option_reaches_the_store(table, capsys):
    status, _, err = run_main(capsys, "history", table, "--storage-option", "max_retries=x")
    assert status == 2
    assert "storage option max_retries=x: invalid value" in err


# Merge and describe


def test_merge_applies_clauses_in_order(table, tmp_path: Path):
    source = tmp_path / "changes.ndjson"
    source.write_text('{"id": 1, "op": "d"}\n{"id": 2, "op": "u"}\n{"id": 9, "op": "i"}\n')
    arguments = ["merge", str(source), table, "--column", "change", "--on", "id = source.change:id::bigint"]
    clauses = [
        ("--when-matched-delete", "--where", "source.change:op::string = 'd'"),
        ("--when-matched-update", "--set", "id = source.change:id::bigint * 10"),
        ("--when-not-matched-insert", "--set=id=source.change:id::bigint"),
    ]
    done = run(*arguments, *(part for clause in clauses for part in clause), "--yes", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [report[f"rows_{name}"] for name in ("deleted", "updated", "inserted")] == [1, 1, 1]
    assert ids(table) == [3, 9, 20]


def test_the_plan_of_a_merge_has_the_size_of_the_table(table, tmp_path: Path):
    (tmp_path / "s.json").write_text("{}")
    arguments = ["merge", str(tmp_path / "s.json"), table, "--on", "true", "--when-matched-delete"]
    arguments.append("--dry-run")
    heading = run(*arguments).stdout.splitlines()[0]
    assert heading == f"{table}: version 0, 3 rows in 1 file: merge on true"
    report = json.loads(run(*arguments, "--json").stdout)
    assert (report["rows"], report["files"]) == (3, 1)
    Planted(Path(table)).edit("add", lambda add: add.pop("stats"))
    assert f"{table}: version 0, 1 file: merge " in run(*arguments).stdout
    assert json.loads(run(*arguments, "--json").stdout)["rows"] is None


def test_a_merge_adds_the_columns_of_its_source(table, tmp_path: Path):
    pq.write_table(pa.table({"id": [3, 9], "note": ["c", "i"]}), tmp_path / "s.parquet")
    merge = ["merge", str(tmp_path / "s.parquet"), table, "--on", "target.id = source.id"]
    merge += ["--when-not-matched-insert", "--when-matched-update", "--yes"]
    assert run(*merge, "--schema-mode", "merge").exit_code == 0
    notes = {row["id"]: row["note"] for row in dv.Table(table)}
    assert notes == {1: None, 2: None, 3: "c", 9: "i"}


def test_a_merge_that_only_inserts_does_not_ask(table, tmp_path: Path):
    pq.write_table(ROWS.slice(0, 1).set_column(0, "id", [[5]]), tmp_path / "s.parquet")
    done = run(
        "merge", str(tmp_path / "s.parquet"), table, "--on", "target.id = source.id",
        "--when-not-matched-insert", "--variant-column", "event",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert ids(table) == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("clauses", "sentence"),
    [
        ([], "pass at least one clause"),
        (["--where", "id = 1", "--when-matched-delete"], "--where must follow the clause"),
        (["--when-matched-delete", "--set", "id=1"], "--when-matched-delete takes no --set"),
        (["--when-matched-delete", "--where", "a", "--where", "b"], "has two --where"),
        (["--when-matched-update", "--set", "id=1", "--set", "id=2"], "'id' is assigned twice"),
        (["--when-not-matched-by-source-update"], "requires --set"),
    ],
)
def test_merge_rejects_clauses(table, capsys, clauses, sentence):
    status, _, err = run_main(capsys, "merge", "x.json", table, "--on", "true", "--yes", *clauses)
    assert status == 2
    assert sentence in " ".join(err.split())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_describe_prints_what_a_file_has(tmp_path: Path, suffix: str):
    rows, file = pa.table({"town": ["Oslo", "Bergen"]}), tmp_path / f"towns.{suffix}"
    pyarrow.csv.write_csv(rows, file) if suffix == "csv" else pq.write_table(rows, file)
    lines = run("describe", str(file)).stdout.splitlines()
    assert lines[0] == f"{file}: 2 rows"
    assert lines[-1].split() == ["town", "string", "100", "%", "2", "Bergen", "to", "Oslo"]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_describe_prints_schema_properties_and_size(table):
    lines = run("describe", table).stdout.splitlines()
    assert re.fullmatch(rf"{table}: version 0, 3 rows, \d\.\d kB in 1 file", lines[0])
    assert lines[1] == "protocol: reader 3, writer 7"
    assert "columnMapping" in lines[2].removeprefix("features: ").split(", ")
    assert lines[4:7] == ["column\ttype\tnullable\tcomment", "id\tbigint\t\t", "event\tvariant\t\t"]
    assert "delta.columnMapping.mode\tname" in lines
    report = json.loads(run("describe", table, "--json").stdout)
    assert (report["rows"], report["files"], report["partition_columns"]) == (3, 1, [])
    assert report["columns"][0] == {"name": "id", "type": "bigint", "nullable": True}
    assert report["schema"]["fields"][0]["type"] == "long"


def test_create_makes_a_table_without_rows(tmp_path: Path, capsys):
    table = str(tmp_path / "t")
    definitions = ("id bigint NOT NULL", "day date", "CONSTRAINT positive CHECK (id > 0)")
    options = ("--partition-by", "day", "--property", "delta.appendOnly=true")
    assert run("create", table, *definitions, *options).stdout == f"{table}: version 0\n"
    described = json.loads(run("describe", table, "--json").stdout)
    assert [(each["name"], each["nullable"]) for each in described["columns"]] == [
        ("id", False),
        ("day", True),
    ]
    assert described["partition_columns"] == ["day"]
    assert described["properties"] == {"delta.constraints.positive": "id > 0", "delta.appendOnly": "true"}
    done = run("create", table, "id int", "--if-not-exists").stdout
    assert done == f"{table}: the table exists, nothing to do\n"
    status, _, err = run_main(capsys, "create", table, "id int")
    assert status == 2
    assert err.endswith(f"already exists at {table}: pass --if-not-exists\n")


def test_describe_prints_the_paths_of_a_table_or_a_file(tmp_path: Path):
    rows = [{"v": {"n": 1}}, {"v": {"n": "x"}}]
    dv.write_table(tmp_path / "t", rows, variant_columns=["v"])
    lines = run("describe", str(tmp_path / "t"), "--paths").stdout.splitlines()
    assert lines[0] == f"{tmp_path / 't'}, version 0: 2 rows"
    assert lines[-1].split("\t") == ["v:n", "bigint 50.0 %, string 50.0 %", "100 %", "2", "mixed types", "1"]
    dv.write_table(tmp_path / "t", [{"v": {"new": 1}}], variant_columns=["v"], mode="append")
    lines = run("describe", str(tmp_path / "t"), "--paths", "--since", "0").stdout.splitlines()
    assert lines[0] == f"{tmp_path / 't'}, version 1: 3 rows; paths since version 0: 1 new"
    assert lines[-1].startswith("v:new (new)\t")
    assert "--since requires --paths" in run("describe", str(tmp_path / "t"), "--since", "0").stderr


def test_analyze_prints_how_many_files_it_read(tmp_path: Path):
    table = str(tmp_path)
    dv.write_table(table, [{"n": 1}, {"n": 3}])
    assert run("analyze", table).stdout == f"{table}: version 0, 1 file analyzed, 0 known before\n"
    result = json.loads(run("analyze", table, "--json").stdout)
    assert result == {"table": table, "version": 0, "files": [], "known": 1, "dropped": 0}
    described = json.loads(run("describe", table, "--paths", "--json").stdout)
    assert (described["distinct"], described["deciles"]) == (2, ["1"] * 5 + ["3"] * 4)
    file = tmp_path / "rows.ndjson"
    file.write_text('{"n": 1}\n{"n": 2.5}\n{"n"\n')
    [_, path] = [json.loads(line) for line in run("describe", str(file), "--json").stdout.splitlines()]
    assert (path["path"], path["types"]) == ("value:n", {"bigint": 0.5, "decimal": 0.5})


def test_describe_prints_the_names_of_types_in_sql(tmp_path: Path):
    nested = pa.struct([("a", pa.list_(pa.int8())), ("b", pa.map_(pa.string(), pa.int16()))])
    columns = {"i": pa.int32(), "d": pa.decimal128(9, 2), "s": nested}
    data = pa.table({name: pa.array([None], kind) for name, kind in columns.items()})
    dv.write_table(tmp_path / "t", data)
    lines = [line.split("\t")[:2] for line in run("describe", str(tmp_path / "t")).stdout.splitlines()]
    assert ["i", "int"] in lines
    assert ["d", "decimal(9,2)"] in lines
    assert ["s", "struct<a: array<tinyint>, b: map<string, smallint>>"] in lines


def test_stats_prints_the_first_files_and_says_so(tmp_path: Path, capsys):
    table = str(tmp_path / "t")
    dv.write_table(table, pa.table({"id": range(12), "n": range(12)}), partition_by="id")

    def files(*options: str) -> tuple[int, str]:
        status, out, err = run_main(capsys, "stats", table, *options)
        assert status == 0
        return out.count(".parquet"), err

    assert files() == (10, "the first 10 files: --limit shows more\n")
    assert files("--limit", "1", "--exact") == (1, "the first 1 file: --limit shows more\n")
    assert files("--limit", "12") == (12, "")
    assert files("--json") == (12, "")
    assert files("--json", "--limit", "3") == (3, "")


def test_a_read_without_rows_says_so(table, capsys):
    heading = "id\tevent\n"
    assert run_main(capsys, "read", table, "--where", "id = 9") == (0, heading, "no rows\n")
    assert run_main(capsys, "read", table, "--limit", "0")[2] == "the first 0 rows: --limit shows more\n"
    assert run_main(capsys, "read", table, "--where", "id = 9", "--json") == (0, "", "")


def test_a_page_is_named_with_its_size(table, tmp_path: Path, capsys):
    page = tmp_path / "page.html"
    for command in ("audit", "inspect"):
        status, _, err = run_main(capsys, command, table, "--html", str(page))
        assert status == 0
        assert err == f"wrote {page}, {page.stat().st_size / 1000:.1f} kB\n"
        assert run_main(capsys, command, table, "--html", str(page), "--quiet")[2] == ""


def test_convert_prints_the_bytes_that_it_read(table, tmp_path: Path):
    report = json.loads(run("convert", table, str(tmp_path / "converted"), "--json").stdout)
    assert 0 < report["bytes_in"] <= dv.load_snapshot(table).num_bytes


# Logs and completion


def test_verbose_logs_what_is_read_and_committed(table, capsys):
    def log(*options: str) -> list[str]:
        return run_main(capsys, "delete", table, "--where", "id = 1", "--yes", *options)[2].splitlines()

    assert log() == []
    dv.restore(table, 0)
    size = dv.load_snapshot(table).num_bytes
    assert log("--verbose") == [
        f"delta_variant.log.load: loaded version 2 of {table}: 1 files, {size} bytes",
        f"delta_variant.read.plan: {table}: reading 1 of 1 files; skipped 0 by partition values, "
        "0 by statistics, 0 by Variant bounds",
        f"delta_variant.log.transaction: committed version 3 of {table}",
    ]
    dv.restore(table, 0)
    assert any(line.startswith("delta_variant.data_file.writer: wrote ") for line in log("-vv"))


def test_quiet_prints_no_hints(table, capsys):
    assert run_main(capsys, "read", table, "--limit", "1")[2] == "the first 1 row: --limit shows more\n"
    assert run_main(capsys, "read", table, "--limit", "1", "--quiet")[2] == ""


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    def complete(words: str) -> str:
        environment = {
            **os.environ,
            "_DELTA_VARIANT_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout

    assert "vacuum" in complete("delta-variant va")
    assert "--retention-hours" in complete("delta-variant vacuum --ret")


# Tables

HEADINGS: list[Heading] = [
    ("id", "right"),
    *((f"measurement_{n:02}", "left") for n in range(1, 23)),
    ("sum", "right"),
]
WIDE_ROW = ["1234567890", *(f"value {n}" for n in range(1, 23)), "3.25"]


def shown(width: int, headings: list[Heading], row: list[str], layout: Layout) -> list[str]:
    """Return the lines of a table with one row on a terminal."""
    text = StringIO()
    out = Console(
        file=text, width=width, force_terminal=True, color_system=None, markup=False, highlight=False
    )
    print_table(out, headings, [row], layout)
    return text.getvalue().splitlines()


def test_a_wide_table_hides_columns_in_the_middle_at_80_columns(capsys):
    assert shown(80, HEADINGS, WIDE_ROW, Layout()) == [
        "        id  measurement_01  measurement_02  …  measurement_22   sum",
        "1234567890  value 1         value 2         …  value 22        3.25",
    ]
    assert "19 of 24 columns are hidden: --wide shows all" in capsys.readouterr().err


def test_a_wide_table_shows_more_columns_at_120_columns():
    heading, row = shown(120, HEADINGS, WIDE_ROW, Layout())
    assert len(heading) <= 120
    assert heading.split()[:4] == ["id", "measurement_01", "measurement_02", "measurement_03"]
    assert row.split()[-1] == "3.25"


def test_wide_shows_all_columns_and_expanded_one_per_line():
    heading, _ = shown(80, HEADINGS, WIDE_ROW, Layout(wide=True))
    assert heading.split() == [name for name, _ in HEADINGS]
    lines = shown(80, HEADINGS, WIDE_ROW, Layout(expanded=True))
    assert lines[:3] == ["-[ record 1 ]----", "id             | 1234567890", "measurement_01 | value 1"]
    assert len(lines) == 25


def test_a_key_is_truncated_last():
    headings: list[Heading] = [("path", "key"), ("min", "left"), ("max", "left")]
    row = ["user.profile.address.postal_code", "x" * 40, "y" * 40]
    assert shown(80, headings, row, Layout()) == [
        "path                              min                     max",
        f"{row[0]}  {'x' * 21}…  {'y' * 21}…",
    ]


def test_details_are_hidden_first():
    headings: list[Heading] = [("path", "key"), ("type", "left"), ("bytes", "right"), ("min", "detail")]
    row = ["user.id", "bigint", "120 bytes", "x" * 40]
    assert shown(40, headings, row, Layout())[1] == "user.id  bigint  120 bytes  xxxxxxxxxxx…"
    assert shown(32, headings, row, Layout())[1] == "user.id  bigint  120 bytes  …"


def test_columns_are_aligned_by_the_width_of_their_characters():
    headings: list[Heading] = [("name", "left"), ("n", "right")]
    assert shown(80, headings, ["東京", "7"], Layout()) == ["name  n", "東京  7"]
    assert shown(15, headings, ["東京" * 9, "7"], Layout()) == ["name          n", "東京東京東 …  7"]


def test_sentences_are_broken_between_words_on_a_terminal():
    def lines(text: str, width: int, *, is_terminal: bool = True, indent: int = 0) -> list[str]:
        out = Console(file=StringIO(), width=width, force_terminal=is_terminal)
        return wrapped(out, text, indent).split("\n")

    address = "s3://bucket/a-long-prefix/of-a-table"
    sentence = f"there is no table at {address}: it has no _delta_log"
    assert lines(sentence, 30) == ["there is no table at", f"{address}:", "it has no _delta_log"]
    assert lines(sentence, 30, is_terminal=False) == [sentence]
    assert lines(sentence, 80) == [sentence]
    assert lines("one two three", 9, indent=4) == ["one", "    two", "    three"]
    assert lines("a   b", 5) == ["a   b"]


def test_a_pipe_gets_whole_cells_separated_by_tabs(table):
    long = "x" * 500
    dv.write_table(f"{table}2", pa.table({"a": [f"{long}\t\n"], "b": [1]}))
    assert run("read", f"{table}2").stdout == f"a\tb\n{long}\\t\\n\t1\n"


def test_every_destructive_function_has_a_dry_run():
    for name in DESTRUCTIVE:
        names = {each.name for each in commands()[name.split()[0]].params}
        assert {"yes", "dry_run"} <= names


def test_export_reports_the_version_and_the_files(table: str, tmp_path: Path):
    target = str(tmp_path / "e")
    assert (
        f"{target}: version 0 with version 0 of {table}, 1 file added" in run("export", table, target).stdout
    )
    assert f"{target}: has version 0 of {table} already" in run("export", table, target).stdout
    refused = run("export", table, target, "--column", "id", "--no-strict")
    assert refused.exit_code == 2
    assert "--no-strict is for the shredded paths" in refused.stderr
    found = run("export", table, target, "--column", "id", "--full-refresh", "--json")
    result = json.loads(found.stdout)
    assert (result["version"], result["exported"], result["files_added"], result["files_removed"]) == (
        1,
        0,
        1,
        1,
    )
    assert dv.read_table(target).to_table().column_names == ["id"]


def test_clone_reports_the_version_and_the_files(table: str, tmp_path: Path):
    dv.write_table(table, ROWS, variant_columns=["event"], mode="append")
    found = run("clone", table, str(tmp_path / "c"), "--version", "0", "--json")
    assert json.loads(found.stdout) == {
        "table": table,
        "target": str(tmp_path / "c"),
        "version": 0,
        "cloned": 0,
        "files": 1,
        "bytes": dv.load_snapshot(table, 0).num_bytes,
    }
    shallow = str(tmp_path / "s")
    assert (
        f"{shallow}: version 0 with version 1 of {table}, 2 files"
        in run("clone", table, shallow, "--shallow").stdout
    )
    allowed = ("--storage-option", "allow_paths_outside_table=true")
    assert len(run("read", shallow, "--json", *allowed).stdout.splitlines()) == 6
    assert run("clone", table, shallow).exit_code != 0
