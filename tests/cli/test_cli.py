"""The command line: what it prints, where, and with which exit status."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from support.processes import WAIT, read_terminal, run_program, start
from typer.testing import CliRunner

from delta_variant._text import fill, path_text, size_text
from delta_variant.cli import main
from delta_variant.cli.app import app
from delta_variant.cli.output import printable
from delta_variant.log.load import load_snapshot
from delta_variant.operations.delete import delete
from delta_variant.operations.write import write_table
from delta_variant.reports import bounds

EVENTS = [
    {"user": {"id": 7}, "action": "buy", "amount": 12.5, "tags": ["a", "b"]},
    {"user": {"id": 8}, "action": "view", "tags": []},
    {"user": {"id": "x"}, "action": "buy", "amount": 3},
]
ESCAPE = "\x1b[2J"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Return a file of three events, one with a user id of another type."""
    path = tmp_path / "events.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS), encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path: Path, events: Path) -> str:
    """Return a table of the three events."""
    uri = str(tmp_path / "table")
    assert run("write", str(events), uri, "--column", "event").exit_code == 0
    return uri


def run(*arguments: str, stdin: bytes | None = None):
    return CliRunner().invoke(app, list(arguments), input=stdin)


def run_main(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error of `main`."""
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    captured = capsys.readouterr()
    return int(exited.value.code or 0), captured.out, captured.err


@pytest.mark.usefixtures("small_files_are_shredded")
def test_write_prints_rows_files_bytes_and_fill_rates(tmp_path, events):
    result = run("write", str(events), str(tmp_path / "table"), "--column", "event")
    assert result.exit_code == 0
    first, second, _, *paths = result.stdout.splitlines()
    assert first.endswith("table: version 0, 3 rows in 1 file")
    assert re.fullmatch(rf"{events.stat().st_size} bytes in, \d\.\d kB out, \d\.\d s, [\d,]+ rows/s", second)
    assert [re.split(r"\t+| {2,}", line.strip()) for line in paths] == [
        ["shredded path", "type", "typed_value", "value"],
        ["event:action", "string", "100 %", "0"],
        ["event:amount", "decimal(18,1)", "66.7 %", "0"],
        ["event:tags[]", "string", "0.67 per row", "0"],
        ["event:user.id", "bigint", "66.7 %", "33.3 %"],
    ]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_write_prints_one_json_object(tmp_path, events):
    result = run("write", str(events), str(tmp_path / "table"), "--column", "event", "--json")
    report = json.loads(result.stdout)
    assert {name: report[name] for name in ("version", "rows", "invalid", "rejects", "bytes_in")} == {
        "version": 0,
        "rows": 3,
        "invalid": 0,
        "rejects": None,
        "bytes_in": events.stat().st_size,
    }
    (file,) = report["files"]
    assert file["rows"] == 3
    assert file["bytes"] == report["bytes_out"] == (tmp_path / "table" / file["path"]).stat().st_size
    by_path = {
        tuple(each["path"]): (each["type"], each["typed"], each["values"]) for each in report["shredded"]
    }
    assert by_path["user", "id"] == ("bigint", 2, 1)
    assert by_path["tags", None] == ("string", 2, 0)


def test_write_without_shredding_has_no_shredded_paths(tmp_path, events):
    result = run("write", str(events), str(tmp_path / "table"), "--shredding", "none", "--json")
    assert json.loads(result.stdout)["shredded"] == []


def test_write_accepts_several_inputs_globs_and_gzip_and_appends(tmp_path, events, table):
    (tmp_path / "more.json.gz").write_bytes(gzip.compress(b'[{"user": {"id": 1}}, {"user": {"id": 2}}]'))
    again = run("write", str(events), str(tmp_path / "m*.gz"), table, "--column", "event", "--mode", "append")
    assert again.exit_code == 0
    assert "version 1, 5 rows in 1 file" in again.stdout


def test_write_follows_the_compression_of_the_table(tmp_path, events):
    table = str(tmp_path / "t")
    for arguments in ([], ["--mode", "append"], ["--mode", "append", "--compression", "gzip"]):
        codec = [] if arguments else ["--property", "delta.parquet.compression.codec=snappy"]
        assert run("write", str(events), table, "--column", "event", *codec, *arguments).exit_code == 0
    suffixes = [path.name.split(".", 1)[1] for path in (tmp_path / "t").glob("*.parquet")]
    assert sorted(suffixes) == ["gzip.parquet", "snappy.parquet", "snappy.parquet"]


def test_csv_has_the_types_of_its_table(tmp_path):
    file, table = tmp_path / "a.csv", str(tmp_path / "t")
    for text in ("id,zip\n1,00123\n", "id,zip\n02,456\n"):
        file.write_text(text)
        assert run("write", str(file), table, *(["--mode", "append"] if "456" in text else [])).exit_code == 0
    file.write_text("id,zip\n2,789\n")
    merge = ["--on", "target.id = source.id", "--when-matched-update", "--yes"]
    assert run("merge", str(file), table, *merge).exit_code == 0
    assert run("sql", f"select * from delta.`{table}` order by id").stdout == "id\tzip\n1\t00123\n2\t789\n"


def test_write_reads_standard_input(tmp_path):
    result = run("write", "-", str(tmp_path / "table"), "--json", stdin=b'{"a": 1}\n{"a": 2}\n')
    assert json.loads(result.stdout)["rows"] == 2


def test_write_ignores_a_table_that_exists(events, table):
    result = run("write", str(events), table, "--mode", "ignore")
    assert (result.exit_code, result.stdout) == (0, f"{table}: nothing was written\n")


def test_an_invalid_line_is_one_message_and_status_2_and_commits_nothing(tmp_path, capsys):
    dirty = tmp_path / "dirty.ndjson"
    dirty.write_bytes(b'{"a": 1}\n{"a": }\n')
    status, out, err = run_main(capsys, "write", str(dirty), str(tmp_path / "table"))
    assert (status, out) == (2, "")
    assert re.fullmatch(rf"delta-variant: {re.escape(str(dirty))}, line 2: column 7: [^\n]+\n", err)
    assert not list(tmp_path.glob("table/_delta_log/*.json"))


def test_rejected_lines_are_findings_and_are_written_to_a_file(tmp_path):
    dirty, rejects = tmp_path / "dirty.ndjson", tmp_path / "rejects.ndjson"
    dirty.write_bytes(b'{"a": 1}\n{"a": }\n')
    options = ("--on-invalid", "reject", "--rejects", str(rejects))
    result = run("write", str(dirty), str(tmp_path / "table"), *options)
    assert result.exit_code == 1
    assert f"1 invalid value rejected: see {rejects}" in result.stdout
    (reject,) = map(json.loads, rejects.read_text(encoding="utf-8").splitlines())
    assert (reject["line"], reject["text"]) == (2, '{"a": }')


def test_lines_stored_as_null_are_findings(tmp_path):
    result = run("write", "-", str(tmp_path / "table"), "--on-invalid", "null", stdin=b"1\nx\n")
    assert result.exit_code == 1
    assert "1 invalid value stored as NULL" in result.stdout
    assert run("read", str(tmp_path / "table"), "--json").stdout == '{"value":1}\n{"value":null}\n'


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--on-invalid", "reject"], "--on-invalid reject and --rejects FILE require each other"),
        (["--rejects", "x"], "--on-invalid reject and --rejects FILE require each other"),
        (["--target-file-size", "much"], "invalid size 'much'"),
        (["--mode", "replace"], "--mode"),
    ],
)
def test_wrong_usage_is_status_2(events, tmp_path, capsys, options, sentence):
    status, out, err = run_main(capsys, "write", str(events), str(tmp_path / "table"), *options)
    assert (status, out) == (2, "")
    assert sentence in err
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["read", "absent"], "there is no Delta table at"),
        (["inspect", "absent"], "there is no Delta table at"),
        (["write", "absent.ndjson", "table"], "file not found: absent.ndjson"),
        (["z85", "decode", "0r"], "as a Variant"),
        (["z85", "encode", "[1]"], "expected a JSON object that maps paths to values"),
        (["z85", "encode", '{"$": [1]}'], "a list cannot be a bound"),
        (["z85", "encode", '{"$": {"type": "variant", "value": 1}}'], "variant cannot be a bound"),
        (["z85", "encode", '{"$": {"type": "bigint", "value": null}}'], "null cannot be a bound"),
        (["z85", "encode", '{"$": {"type": "date", "value": "x"}}'], "cannot cast"),
    ],
)
def test_an_error_is_one_message_without_a_traceback(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    status, out, err = run_main(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("delta-variant: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_read_prints_whole_rows_as_json_lines(table):
    lines = run("read", table, "--json").stdout.splitlines()
    assert [json.loads(line)["event"] for line in lines] == EVENTS


def test_read_prints_named_paths_of_matching_rows(table):
    columns = ("-c", "user=event:user.id::string", "-c", "event:amount::decimal(4,1) as amount")
    result = run("read", table, *columns, "--where", "event:action::string = 'buy'", "--format", "json")
    assert result.stdout == '{"user":"7","amount":12.5}\n{"user":"x","amount":3.0}\n'


def test_read_prints_csv_and_a_limited_table(table):
    columns = ("-c", "action=event:action::string", "-c", "tags=event:tags")
    assert run("read", table, *columns, "--format", "csv", "--limit", "2").stdout == (
        'action,tags\nbuy,"[""a"",""b""]"\nview,[]\n'
    )
    limited = run("read", table, *columns, "--limit", "1")
    assert [line.split() for line in limited.stdout.splitlines()] == [
        ["action", "tags"],
        ["buy", '["a","b"]'],
    ]
    assert limited.stderr == "the first 1 row: --limit shows more\n"


def test_read_prints_an_earlier_version(events, table):
    run("write", str(events), table, "--column", "event", "--mode", "append")
    assert len(run("read", table, "--json").stdout.splitlines()) == 6
    assert len(run("read", table, "--json", "--version", "0").stdout.splitlines()) == 3


def test_read_prints_nested_values_as_json(tmp_path):
    rows = pa.table(
        {
            "s": pa.array([{"a": 1, "b": [1.5, None]}, None]),
            "d": pa.array([18_262, None], pa.date32()),
            "t": pa.array([1, None], pa.timestamp("us", "UTC")),
            "b": pa.array([b"\x00", None]),
        }
    )
    write_table(tmp_path / "table", rows)
    assert run("read", str(tmp_path / "table"), "--json").stdout.splitlines() == [
        '{"s":{"a":1,"b":[1.5,null]},"d":"2020-01-01","t":"1970-01-01T00:00:00.000001Z","b":"AA=="}',
        '{"s":null,"d":null,"t":null,"b":null}',
    ]


def test_nan_and_infinity_are_printed_as_strings(tmp_path):
    numbers = [float("nan"), float("inf"), float("-inf"), None]
    nested = pa.array([[{"x": number}] for number in numbers])
    write_table(tmp_path / "t", pa.table({"d": numbers, "f": pa.array(numbers, pa.float32()), "n": nested}))
    read = [json.loads(line) for line in run("read", str(tmp_path / "t"), "--json").stdout.splitlines()]
    words = ["NaN", "Infinity", "-Infinity", None]
    assert read == [{"d": word, "f": word, "n": [{"x": word}]} for word in words]
    printed = run("read", str(tmp_path / "t"), "-c", "d", "-c", "id=f", "--format", "csv").stdout
    assert printed.splitlines() == ["d,id", "NaN,NaN", "Infinity,Infinity", "-Infinity,-Infinity", ","]


def test_dates_outside_the_range_of_python_are_printed(tmp_path):
    uri = str(tmp_path / "t")
    day = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    at = pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    write_table(uri, pa.table({"day": day, "at": at}))
    assert run("read", uri, "--format", "csv").stdout.splitlines() == [
        "day,at",
        "+5881580-07-11,+294247-01-10 04:00:54.775807",
    ]


@pytest.mark.parametrize("options", [["--json"], ["--format", "csv"], []])
def test_a_command_whose_output_is_closed_ends_with_a_message(table, options):
    program = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = ["-c", "from delta_variant.cli import main; main()", "read", table, *options]
    done = subprocess.run([sys.executable, "-c", program, *command], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "delta-variant: cannot print because standard output is closed\n"


@pytest.mark.usefixtures("small_files_are_shredded")
def test_inspect_prints_the_shredding_tree_with_fill_and_bounds(table):
    rows = [re.split(r"\t+| {2,}", line.strip()) for line in run("inspect", table).stdout.splitlines()]
    assert ["path", "type", "typed_value", "value", "clean", "bytes", "min", "max"] in rows
    tree = {row[0]: row for row in rows}
    assert tree["user"][1] == "object"
    assert tree["id"][1:4] == ["bigint", "66.7 %", "33.3 %"]
    assert tree["action"][-2:] == ['"buy"', '"view"']
    assert tree["tags"][1] == "array"
    assert tree["[]"][1:4] == ["string", "0.67 per row", "0"]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_inspect_prints_the_same_for_a_file_and_its_table(table):
    (file,) = Path(table).glob("*.parquet")
    whole, one = (json.loads(run("inspect", target, "--json").stdout) for target in (table, str(file)))
    assert whole == one
    nodes = {tuple(node["path"]): node for node in one["columns"]["event"]["paths"]}
    assert nodes["amount",]["type"] == "decimal(18,1)"
    assert nodes["amount",]["typed_value"]["values"] == 2
    assert (nodes["amount",]["min"], nodes["amount",]["max"]) == (3, 12.5)
    # A path with values of other types has no bounds.
    assert "min" not in nodes["user", "id"]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_inspect_of_a_table_sums_its_files_and_widens_their_bounds(tmp_path):
    uri = str(tmp_path / "table")
    for text in (b'{"a": 9, "b": 1}\n', b'{"a": 10}\n'):
        run("write", "-", uri, "--mode", "append", stdin=text)
    report = json.loads(run("inspect", uri, "--json").stdout)
    assert (report["rows"], report["files"], report["row_groups"]) == (2, 2, 2)
    nodes = {tuple(node["path"]): node for node in report["columns"]["value"]["paths"]}
    assert (nodes["a",]["typed_value"]["values"], nodes["a",]["min"], nodes["a",]["max"]) == (2, 9, 10)
    assert (nodes["b",]["min"], nodes["b",]["max"]) == (1, 1)


def test_inspect_and_stats_read_files_of_another_writer(corpora):
    table = str(corpora / "delta-golden" / "variant-stats-no-checkpoint")
    report = json.loads(run("inspect", table, "--json").stdout)
    nested = {tuple(node["path"]): node for node in report["columns"]["nv.v"]["paths"]}
    assert (nested["id",]["min"], nested["id",]["max"]) == (10, 19)
    (line,) = run("stats", table, "--json").stdout.splitlines()
    statistics = json.loads(line)
    assert statistics["stats"]["numRecords"] == 10
    assert statistics["variants"]["v"]["$['id']"] == {"type": "bigint", "min": 0, "max": 9}


@pytest.mark.usefixtures("small_files_are_shredded")
def test_stats_of_a_file_equal_those_in_the_log(table):
    (file,) = Path(table).glob("*.parquet")
    logged, computed = (json.loads(run("stats", target, "--json").stdout) for target in (table, str(file)))
    assert logged["variants"] == computed["variants"]
    assert logged["stats"]["nullCount"] == computed["stats"]["nullCount"] == {"event": 0}
    shown = [re.split(r"\t+| {2,}", line.strip()) for line in run("stats", table).stdout.splitlines()]
    assert ["event:action", "string", '"buy"', '"view"'] in shown


def test_exact_statistics_are_computed_from_the_data_and_not_from_the_log(table):
    commit = Path(table, "_delta_log", f"{0:020d}.json")
    before = run("stats", table, "--json").stdout
    log = commit.read_text(encoding="utf-8")
    commit.write_text(re.sub(r',"stats":"(\\"|[^"])*"', "", log), encoding="utf-8")
    assert json.loads(run("stats", table, "--json").stdout)["variants"] == {"event": {}}
    assert run("stats", table, "--json", "--exact").stdout == before


@pytest.mark.usefixtures("small_files_are_shredded")
def test_undecodable_bounds_are_findings_and_hide_no_other_statistics(table):
    commit = Path(table, "_delta_log", f"{0:020d}.json")
    log = commit.read_text(encoding="utf-8")
    (text,) = re.findall(r'maxValues\\":\{\\"event\\":\\"(.*?)\\"\}', log)
    commit.write_text(log.replace(text, "0" * len(text)), encoding="utf-8")
    result = run("stats", table)
    assert result.exit_code == 1
    assert "cannot decode the bounds of 'event'" in result.stderr
    assert "3 rows" in result.stdout
    tree = run("inspect", table)
    assert tree.exit_code == 0
    assert "bigint" in tree.stdout


def test_damaged_null_counts_are_printed_unchanged(table):
    commit = Path(table, "_delta_log", f"{0:020d}.json")
    log = commit.read_text(encoding="utf-8")
    assert log.count(r"\"nullCount\":{\"event\":0}") == 1
    commit.write_text(log.replace(r"{\"event\":0}", r"{\"event\":\"3\"}"), encoding="utf-8")
    shown = [re.split(r"\t+| {2,}", line.strip()) for line in run("stats", table).stdout.splitlines()]
    assert ["event", "variant", '"3"'] in shown


# The two forms of one Variant: metadata first, and value first as in the example of the RFC.
SEED_MIN = "0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu"
SEED_MIN_PADDED = "0rJl95HpNdvjbtatpi(cu0wW^cTu=P0096c4jMddzy]{KA+PA73&{td"


@pytest.mark.parametrize("text", [SEED_MIN, SEED_MIN_PADDED])
def test_z85_decode_reads_both_printed_forms(text):
    assert json.loads(run("z85", "decode", text).stdout) == {
        "$['a']": {"type": "string", "value": "min-string"},
        "$['b']['c']": {"type": "bigint", "value": 1},
    }


def test_bounds_of_frequent_types_get_the_type_that_inference_finds(monkeypatch):
    given = {"boolean": True, "float": 2, "double": 2, "date": "2024-01-01", "binary": "YWJj", "smallint": 3}
    values = {
        f"$['{name}']": f'{{"type":"{name}","value":{json.dumps(value)}}}' for name, value in given.items()
    }
    values |= {"$['int8']": "1", "$['int16']": "300", "$['int32']": "70000", "$['int64']": "99999999999"}
    values |= {"$['string']": '"x"', "$['decimal']": "1.5"}
    text = bounds.encode("{" + ",".join(f'"{key}":{value}' for key, value in values.items()) + "}")
    known = bounds.decode(text)
    monkeypatch.setattr(bounds, "SQL_TYPES", {})
    assert bounds.decode(text) == known
    assert len(known) == len(values)


def test_z85_encode_is_the_inverse_of_decode():
    bound = {
        "$['a']": {"type": "bigint", "value": 5},
        "$['b']": {"type": "date", "value": "2024-02-29"},
        "$['c']": {"type": "decimal(18,2)", "value": 1.25},
    }
    text = run("z85", "encode", json.dumps(bound)).stdout.strip()
    assert len(text) % 5 == 0
    assert json.loads(run("z85", "decode", text).stdout) == bound


def test_z85_encode_infers_types_as_parse_json_does():
    text = run("z85", "encode", """{"$['a']": "min-string", "$['b']['c']": 1}""").stdout.strip()
    assert json.loads(run("z85", "decode", text).stdout)["$['b']['c']"] == {"type": "bigint", "value": 1}
    # The empty object, byte for byte.
    assert run("z85", "encode", "{}").stdout == "0rr9300000\n"


@pytest.mark.usefixtures("small_files_are_shredded")
def test_hostile_names_cannot_control_the_terminal(tmp_path, capsys):
    hostile = json.dumps({ESCAPE: 1, "[red]\u202ename": f"{ESCAPE}\u009b"}).encode() + b"\n"
    table = str(tmp_path / "table")
    outputs = [
        run("write", "-", table, "--column", f"c{ESCAPE}", stdin=hostile).stdout,
        run("inspect", table).stdout,
        run("stats", table).stdout,
        run("read", table).stdout,
        run_main(capsys, "read", table, "--where", f"`{ESCAPE}` > 1")[2],
    ]
    for output in outputs:
        assert output
        assert not [c for c in output if not c.isprintable() and c not in "\n\t"]
    assert "[red]" in outputs[1]


def test_a_progress_bar_is_shown_only_on_a_terminal(tmp_path, events):
    program = "from delta_variant.cli import main; main()"
    command = [sys.executable, "-c", program, "write", str(events)]
    piped = subprocess.run([*command, str(tmp_path / "piped")], capture_output=True, text=True, check=True)
    assert piped.stderr == ""
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    on_terminal = [*command, str(tmp_path / "shown")]
    with start(on_terminal, stdout=subprocess.DEVNULL, stderr=writer, env=environment) as process:
        os.close(writer)
        shown = read_terminal(reader)
        assert process.wait(WAIT) == 0
    assert "writing" in shown
    assert "3 rows" in shown
    assert "100%" in shown


def test_importing_the_package_imports_neither_typer_nor_rich():
    program = "import sys, delta_variant; print(sorted({'typer', 'rich'} & set(sys.modules)))"
    assert run_program(program) == "[]\n"


def test_the_installed_command_prints_its_version():
    command = Path(sys.executable).with_name("delta-variant")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"delta-variant \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "event"),
        (("user", "id"), "event:user.id"),
        (("items", None, "sku"), "event:items[].sku"),
        (("a.b", "it's"), r"event:['a.b']['it\'s']"),
        ((None,), "event:[]"),
    ],
)
def test_paths_are_printed_in_sql_syntax(path, text):
    assert path_text("event", path) == text


@pytest.mark.parametrize(
    ("values", "rows", "text"),
    [(0, 10, "0"), (10, 10, "100 %"), (1, 3, "33.3 %"), (1, 10**6, "< 0.1 %"), (999_999, 10**6, "> 99.9 %")],
)
def test_fill_never_rounds_to_empty_or_full(values, rows, text):
    assert fill(values, rows, ("a",)) == text


def test_fill_counts_list_elements_per_row_and_marks_unknown_counts():
    assert fill(5, 2, ("a", None)) == "2.50 per row"
    assert fill(None, 2, ("a",)) == "?"


def test_sizes_and_control_characters_are_readable():
    assert [size_text(size) for size in (0, 999, 1000, 118_100_000, 5e13)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "118.1 MB",
        "50.0 TB",
    ]
    assert printable("é\n\x9b\u202e\ud800") == r"é\n\x9b\u202e\ud800"


@pytest.mark.usefixtures("small_files_are_shredded")
def test_read_explains_what_was_read_and_skipped(tmp_path):
    table = str(tmp_path / "t")
    for first in (0, 10):
        rows = pa.table({"event": [f'{{"a": {n}}}' for n in range(first, first + 10)]})
        write_table(table, rows, mode="append", variant_columns=["event"])
    query = ("read", table, "--where", "event:a::bigint > 15", "--explain")
    shown = run(*query).stdout
    assert "files       1 of 2 read\n            1 skipped by bounds of Variants\n" in shown
    report = json.loads(run(*query, "--json").stdout)
    assert (report["files_read"], report["files_by_variant_bounds"], report["rows"]) == (1, 1, 4)
    assert [run(*query, "--max-files", most).exit_code for most in ("0", "1")] == [1, 0]
    assert run("read", table, "--max-files", "1").exit_code == 2


@pytest.mark.usefixtures("small_files_are_shredded")
def test_delete_prints_its_result_and_requires_a_condition_or_all(table):
    result = run("delete", table, "--yes", "--where", "event:action::string = 'buy'")
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert first.endswith("table: version 1, 2 rows deleted, 1 row copied")
    assert re.fullmatch(r"1 file removed, 1 file added, \d\.\d kB", second)
    none = run("delete", table, "--yes", "--where", "event:action::string = 'buy'")
    assert none.stdout.endswith("table: no row matches, nothing was written\n")
    assert run("delete", table).exit_code == 2
    report = json.loads(run("delete", table, "--all", "--yes", "--json").stdout)
    assert (report["version"], report["rows_deleted"], report["files"]) == (2, 1, [])


def test_write_overwrites_a_table_or_the_rows_that_match(table, events):
    where = "event:action::string = 'buy'"
    events.write_text('{"action": "buy"}\n')
    arguments = ("write", str(events), table, "--column", "event", "--mode", "overwrite", "--yes")
    lines = run(*arguments, "--where", where).stdout.splitlines()
    assert lines[0].endswith("table: version 1, 1 row in 1 file")
    assert lines[2] == "2 rows replaced, 1 row copied"
    assert json.loads(run(*arguments, "--json").stdout)["rows_deleted"] == 2
    assert run("read", table, "--json").stdout == '{"event":{"action":"buy"}}\n'


def test_update_sets_columns_and_paths_and_removes_paths(table):
    where = ("--where", "event:action::string = 'view'")
    result = run(
        "update", table, "--yes", "--set", "event:user.email = 'x=y'", "--unset", "event:tags", *where
    )
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].endswith("table: version 1, 1 row updated, 2 rows copied")
    assert run("read", table, *where, "--json").stdout == (
        '{"event":{"action":"view","user":{"email":"x=y","id":8}}}\n'
    )
    assert run("update", table, "--set", "event:a=1").exit_code == 2
    assert run("update", table, "--set", "event:a", "--all").exit_code == 2


@pytest.mark.parametrize(
    "options", [["--unset", "event:x", "--set", "event:x=1"], ["--set", "event:x=1", "--set", "event:x=2"]]
)
def test_update_rejects_two_assignments_of_a_path(table, capsys, options):
    status, _, error = run_main(capsys, "update", table, "--all", *options)
    assert status == 2
    assert "'event:x' is assigned twice" in error
    assert load_snapshot(table).version == 0


@pytest.mark.usefixtures("small_files_are_shredded")
def test_optimize_prints_its_plan_and_its_result(table, events):
    assert run("write", str(events), table, "--column", "event", "--mode", "append").exit_code == 0
    plan = run("optimize", table, "--dry-run").stdout.splitlines()
    assert plan[0].endswith("table: dry run, 2 files to 1 or more")
    assert re.fullmatch(r"\d\.\d kB to about \d\.\d kB", plan[1])
    done = run("optimize", table, "--sort-by", "event:amount::double", "--json")
    report = json.loads(done.stdout)
    assert {name: report[name] for name in ("version", "files_before", "rows", "gained", "dropped")} == {
        "version": 2,
        "files_before": 2,
        "rows": 6,
        "gained": [],
        "dropped": [],
    }
    assert run("optimize", table).stdout.endswith("table: nothing to do\n")


def test_optimize_purges_deleted_rows(tmp_path: Path):
    table = str(tmp_path / "t")
    rows = [{"id": number} for number in range(100)]
    write_table(table, rows, configuration={"delta.enableDeletionVectors": "true"})
    delete(table, "id = 7")
    assert run("optimize", table).stdout == f"{table}: nothing to do\n"
    assert run("optimize", table, "--purge", "--dry-run").stdout.endswith("\npurged 1 deleted row\n")
    assert json.loads(run("optimize", table, "--purge", "--json").stdout)["rows_purged"] == 1


def test_alter_makes_each_kind_of_change(table):
    def alter(*options: str) -> list[str]:
        result = run("alter", table, *options)
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    assert alter("--set", "delta.columnMapping.mode=name", "--set", "team=us") == [f"{table}: version 1"]
    alter("--add-column", "day=date", "--add-column", "more=struct<a: int>")
    alter("--rename-column", "more.a=b")
    alter("--add-constraint", "known=event:action::string = 'buy' or event:user is not null")
    alter("--drop-column", "day", "--yes")
    alter("--drop-constraint", "known")
    alter("--unset", "team")
    alter("--set", "delta.enableTypeWidening=true")
    assert json.loads(run("alter", table, "--change-type", "more.b=bigint", "--json").stdout) == {
        "table": table,
        "version": 9,
    }
    rows = [json.loads(line) for line in run("read", table, "-c", "more", "--json").stdout.splitlines()]
    assert rows == [{"more": None}] * 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "pass exactly one kind of change"),
        (["--drop-column", "x", "--unset", "y"], "pass exactly one kind of change"),
        (["--set", "team=us", "--set", "team=them"], "--set sets 'team' twice"),
        (["--set", "team"], "expected KEY=VALUE"),
        (["--add-column", "team"], "expected NAME=TYPE"),
        (["--drop-column", "nothing", "--yes"], "no column 'nothing'"),
    ],
)
def test_alter_rejects_invalid_options(table, capsys, options, sentence):
    status, _, error = run_main(capsys, "alter", table, *options)
    assert status == 2
    assert sentence in " ".join(re.sub("[│╭╮╰╯─]", " ", error).split())
