"""The output of commands to a terminal, a pipe, and an output that is closed early."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from support.processes import WAIT, read_terminal, start

import delta_variant as dv
from delta_variant.cli import main
from delta_variant.cli.output import escaped_json
from delta_variant.log.checkpoints import writing as checkpoint_writing

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-c", "from delta_variant.cli import main; main()"]
STEERING = (
    "\x1b[2J\x07\x08\x7f\x9b31m\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202d\u202e\u2066\u2067\u2069\ufeff"
)
HOSTILE = f"a{STEERING}b"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a table with control characters in names and values, and with a change data feed."""
    table = str(tmp_path_factory.mktemp("hostile") / "t")
    event = json.dumps({HOSTILE: HOSTILE, "n": 1}, ensure_ascii=False)
    data = pa.table(
        {HOSTILE: [HOSTILE], "text": [HOSTILE], "event": [event], "nested": [{HOSTILE: [HOSTILE]}]}
    )
    properties = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "100"}
    dv.write_table(table, data, variant_columns=["event"], configuration=properties, name=HOSTILE)
    dv.delete(table, f"text = '{HOSTILE}x'")
    dv.update(table, {"text": f"'{HOSTILE}'"}, "event:n::int = 1")
    return table


def on_terminal(*arguments: str, columns: int = 120) -> tuple[str, str]:
    """Run a command on a terminal and return its standard output and standard error."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}
    command = [*COMMAND, *arguments]
    with start(command, stdout=writer, stderr=subprocess.PIPE, env=environment) as process:
        os.close(writer)
        shown = read_terminal(reader)
        _, errors = process.communicate(timeout=WAIT)
        # Headings are bold.
        text = shown.replace("\r\n", "\n").replace("\x1b[1m", "").replace("\x1b[0m", "")
        return text.replace("\x1b[2m", ""), errors.decode()


def control_characters(text: str) -> list[str]:
    return sorted({c for c in text if not c.isprintable() and c != "\n"} & set(STEERING + "\r"))


PRINTING = [
    ["read"],
    ["read", "--json"],
    ["read", "--format", "csv"],
    ["read", "--explain"],
    ["read", "--explain", "--json"],
    ["changes", "--start", "0"],
    ["changes", "--start", "0", "--json"],
    ["changes", "--start", "0", "--format", "csv"],
    *([command] for command in ("inspect", "stats", "history", "describe", "audit")),
    *([command, "--json"] for command in ("inspect", "stats", "history", "describe", "audit")),
    ["read", "--wide"],
    ["read", "--expanded"],
    ["repair-statistics", "--dry-run"],
    ["repair-statistics", "--dry-run", "--json"],
    ["vacuum", "--dry-run"],
    ["vacuum", "--dry-run", "--json"],
    ["optimize", "--dry-run", "--json"],
]


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_data_cannot_control_a_terminal(table: str, arguments: list[str]):
    command, *options = arguments
    out, err = on_terminal(command, table, *options)
    assert out
    assert control_characters(out) == []
    assert control_characters(err) == []


def test_errors_of_usage_are_broken_between_words():
    reader, writer = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60"}
    command = [sys.executable, "-m", "delta_variant", "write", "a.json", "t", "--mode", "sideways"]
    done = subprocess.run(command, stderr=writer, env=environment)
    os.close(writer)
    assert done.returncode == 2
    assert read_terminal(reader).splitlines()[-2:] == [
        "Error: Invalid value for '--mode': 'sideways' is not one of",
        "'error', 'append', 'overwrite', 'ignore'.",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["read", "TABLE", "--where", f"`{HOSTILE}x` = 1"],
        ["write", f"{HOSTILE}.json", "TABLE"],
        ["alter", "TABLE", "--drop-constraint", HOSTILE],
        ["z85", "encode", json.dumps({"$": {"type": HOSTILE, "value": 1}})],
        ["z85", "decode", HOSTILE],
    ],
    ids=lambda arguments: arguments[0],
)
def test_errors_cannot_control_a_terminal(table: str, arguments: list[str]):
    given = [table if each == "TABLE" else each for each in arguments]
    done = subprocess.run([*COMMAND, *given], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("delta-variant: ")
    assert control_characters(done.stderr) == []


def test_times_and_types_of_changes_are_whole_on_a_narrow_terminal(table: str):
    shown, _ = on_terminal("history", table, columns=72)
    assert len(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z  ", shown)) == 2
    columns = ("-c", "event", "-c", "_change_type", "-c", "_commit_timestamp")
    shown, _ = on_terminal("changes", table, "--start", "0", *columns, columns=50)
    assert max(map(len, shown.splitlines())) <= 50
    assert "  update_postimage  " in shown


def test_json_is_the_same_on_a_terminal_and_in_a_pipe(table: str):
    command = [*COMMAND, "read", table, "--json"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shown, _ = on_terminal("read", table, "--json")
    assert piped == shown
    assert json.loads(piped) == {
        HOSTILE: HOSTILE,
        "text": HOSTILE,
        "event": {HOSTILE: HOSTILE, "n": 1},
        "nested": {HOSTILE: [HOSTILE]},
    }
    assert control_characters(piped) == []


def test_a_pipe_gets_the_exact_values_as_csv(table: str):
    command = [*COMMAND, "read", table, "--format", "csv", "-c", "text"]
    piped = subprocess.run(command, capture_output=True, check=True).stdout
    assert list(csv.reader(io.StringIO(piped.decode(), newline=""))) == [["text"], [HOSTILE]]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ('{"a":1}', '{"a":1}'),
        ('"größe 東京 🎈 ’ \u200d"', '"größe 東京 🎈 ’ \u200d"'),
        ('"\x7f"', r'"\u007f"'),
        ('"\x80\x9b\x9f\xa0"', '"\\u0080\\u009b\\u009f\xa0"'),
        ('"\u202e\u2066"', r'"\u202e\u2066"'),
        ('"\u2027\u202f\u2065\u206a"', '"\u2027\u202f\u2065\u206a"'),
        ('"\u061c\u061b\ufeff"', '"\\u061c\u061b\\ufeff"'),
    ],
)
def test_json_escapes_only_control_characters_and_marks_of_direction(text: str, escaped: str):
    assert escaped_json(text.encode()).decode() == escaped
    assert json.loads(escaped) == json.loads(text)


def test_a_long_cell_is_truncated_in_a_table_and_complete_in_json_and_csv(tmp_path: Path):
    long = "x" * 40_000
    dv.write_table(tmp_path / "t", pa.table({"n": [1], "text": [long], "last": ["end"]}))
    table = str(tmp_path / "t")
    shown, err = on_terminal("read", table, columns=60)
    heading, row = shown.splitlines()
    assert len(heading) == 60
    assert row.index("end") == heading.index("last")
    assert row.split()[0] == "1"
    assert row.split()[1].startswith("xxxxxxxxxx")
    assert row.split()[1].endswith("…")
    assert row.split()[2] == "end"
    assert err == ""
    for options in (["--json"], ["--format", "csv"]):
        assert long in on_terminal("read", table, *options)[0]


def test_columns_that_do_not_fit_are_omitted_with_a_hint(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({f"measurement_{number:02}": [number] for number in range(24)}))
    shown, err = on_terminal("read", str(tmp_path / "t"), columns=80)
    heading, row = shown.splitlines()
    ends = [0, 1, 22, 23]
    assert heading.split() == [
        *(f"measurement_{number:02}" for number in ends[:2]),
        "…",
        *(f"measurement_{number:02}" for number in ends[2:]),
    ]
    assert row.split() == ["0", "1", "…", "22", "23"]
    assert err == "20 of 24 columns are hidden: --wide shows all, -x prints one column per line\n"


def test_hints_go_to_standard_error(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"n": range(30)}))
    done = subprocess.run([*COMMAND, "read", str(tmp_path / "t")], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["n", *map(str, range(20))]
    assert done.stderr == "the first 20 rows: --limit shows more\n"
    command = [*COMMAND, "read", str(tmp_path / "t"), "--limit", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "the first 1 row: --limit shows more\n"


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_output_that_is_closed_early_ends_a_command_quietly(table: str, arguments: list[str]):
    command, *options = arguments
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, command, table, *options], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("options", [["--json"], ["--format", "csv"]])
def test_head_ends_a_read_quietly(tmp_path: Path, options: list[str]):
    dv.write_table(tmp_path / "t", pa.table({"n": range(200_000), "text": ["x" * 50] * 200_000}))
    script = '"$@" | head -n 1; echo "${PIPESTATUS[@]}"'
    command = ["bash", "-c", script, "bash", *COMMAND, "read", str(tmp_path / "t"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["141 0"]
    assert done.stderr == ""


def test_a_closed_standard_error_ends_a_command_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, "read", "absent"], stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    assert (done.returncode, done.stdout) == (141, b"")


def test_a_write_with_a_closed_output_is_committed(tmp_path: Path):
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, "write", "-", str(tmp_path / "t")]
    done = subprocess.run(command, input=b"1\n", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
    assert dv.load_snapshot(tmp_path / "t").version == 0


def test_log_messages_are_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):

    def fail(*_: object, **__: object) -> None:
        raise OSError(f"the disk is full{STEERING}")

    dv.write_table(tmp_path / "t", pa.table({"n": [1]}), configuration={"delta.checkpointInterval": "1"})
    monkeypatch.setattr(checkpoint_writing, "write_checkpoint", fail)
    with pytest.raises(SystemExit):
        main(["delete", str(tmp_path / "t"), "--all", "--yes"])
    err = capsys.readouterr().err
    assert "the checkpoint of version 1 was not written: the disk is full" in err
    assert control_characters(err) == []
