"""Commands that are interrupted, cannot write, or get no input."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pytest
from support.intercepted_store import intercept
from support.processes import WAIT, start

import delta_variant as dv
from delta_variant.cli import main
from delta_variant.errors import StoreError
from delta_variant.input.invalid_json import RejectsFile
from delta_variant.log.transaction import CommitInterrupted
from delta_variant.storage.objects import NotWrittenError

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-c", "from delta_variant.cli import main; main()"]
INTERRUPTED = "delta-variant: interrupted: nothing was committed\n"
SIGNALS = [(signal.SIGTERM, 143), (signal.SIGINT, 130)]


def paths(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def interrupted(
    arguments: Sequence[str | Path], table: Path, signal_number: int, known: set[Path]
) -> tuple[int | None, str, str]:
    """Send a signal to a write that has begun a data file and waits for input, and return how it ended."""
    with start(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        # The first 16 MB determine the shredding schema. The file is created afterwards.
        rows = b"".join(b'{"n": %d, "text": "%s"}\n' % (row, b"x" * 1000) for row in range(24_000))
        process.stdin.write(rows)
        process.stdin.flush()
        deadline = monotonic() + 60
        while not set(table.rglob("*.parquet")) - known:
            assert process.poll() is None
            assert monotonic() < deadline
            sleep(0.01)
        process.send_signal(signal_number)
        process.wait(WAIT)
        process.stdin.close()
        assert process.stdout is not None
        assert process.stderr is not None
        return process.returncode, process.stdout.read().decode(), process.stderr.read().decode()


@pytest.mark.parametrize(("signal_number", "status"), SIGNALS)
def test_an_interrupted_first_write_leaves_nothing(tmp_path: Path, signal_number: int, status: int):
    table = tmp_path / "lake" / "bronze" / "events"
    ended = interrupted(["write", "-", table], table, signal_number, set())
    assert ended == (status, "", INTERRUPTED)
    assert paths(tmp_path) == set()


@pytest.mark.parametrize(("signal_number", "status"), SIGNALS)
def test_an_interrupted_append_leaves_the_table_unchanged(tmp_path: Path, signal_number: int, status: int):
    table = tmp_path / "events"
    dv.write_table(table, pa.table({"value": ['{"n": 1}']}), variant_columns=["value"])
    before = paths(tmp_path)
    arguments = ["write", "-", table, "--mode", "append"]
    ended = interrupted(arguments, table, signal_number, set(table.rglob("*.parquet")))
    assert ended == (status, "", INTERRUPTED)
    assert paths(tmp_path) == before
    assert dv.load_snapshot(table).version == 0


IMPORTING = """
import os, signal, sys
from delta_variant.cli import main

class Finder:
    def find_spec(self, *_):
        sys.meta_path.remove(self)
        os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Finder())
main(["--help"])
"""


@pytest.mark.parametrize(("signal_number", "status"), SIGNALS)
def test_an_interrupt_while_modules_are_imported_prints_a_message(signal_number: int, status: int):
    command = [sys.executable, "-c", IMPORTING, str(int(signal_number))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "delta-variant: interrupted\n")


def test_an_interrupted_write_into_an_empty_folder_leaves_the_folder(tmp_path: Path):
    (tmp_path / "events").mkdir()
    interrupted(["write", "-", tmp_path / "events"], tmp_path / "events", signal.SIGTERM, set())
    assert paths(tmp_path) == {"events"}


@pytest.mark.parametrize(("signal_number", "status"), SIGNALS)
def test_an_interrupted_read_prints_a_message(tmp_path: Path, signal_number: int, status: int):
    table = tmp_path / "events"
    data = pa.table({"n": range(400_000), "text": ["x" * 100] * 400_000})
    dv.write_table(table, data)
    command = [*COMMAND, "read", str(table), "--json"]
    with start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # The pipe is full, so the command waits for a reader.
        assert process.stdout.readline().startswith(b'{"n":0,')
        process.send_signal(signal_number)
        _, err = process.communicate(timeout=WAIT)
    assert process.returncode == status
    assert err.decode() == "delta-variant: interrupted\n"


@pytest.mark.parametrize("partition_by", [None, "day"])
def test_a_failed_first_write_leaves_no_folder_that_it_created(tmp_path: Path, partition_by: str | None):
    data = pa.table({"day": ["a", "b"], "event": ["1", "{"]})
    for existing in (tmp_path / "absent", tmp_path / "present"):
        if existing.name == "present":
            existing.mkdir()
        before = paths(tmp_path)
        with pytest.raises(dv.DeltaVariantError):
            dv.write_table(existing / "t", data, variant_columns=["event"], partition_by=partition_by)
        assert paths(tmp_path) == before


def test_a_failed_append_leaves_no_folder_of_a_partition(tmp_path: Path):
    dv.write_table(
        tmp_path / "t",
        pa.table({"day": ["a"], "event": ["1"]}),
        variant_columns=["event"],
        partition_by="day",
    )
    before = paths(tmp_path)
    data = pa.table({"day": ["b", "c"], "event": pa.array(["1", "{"], pa.json_())})
    with pytest.raises(dv.DeltaVariantError):
        dv.write_table(tmp_path / "t", data, mode="append")
    assert paths(tmp_path) == before


def test_a_commit_that_fails_leaves_no_folder(tmp_path: Path):
    def fail(call: str, key: str) -> None:
        if call == "create":
            (tmp_path / "t" / "_delta_log").mkdir()
            raise NotWrittenError(OSError(errno.EIO, "the disk is broken"))

    with pytest.raises(StoreError, match="the disk is broken"):
        dv.write_table(intercept(tmp_path / "t", before=fail), pa.table({"n": [1]}))
    assert paths(tmp_path) == set()


def test_writers_that_fail_and_writers_that_succeed_share_folders(tmp_path: Path):
    bad = pa.table({"day": ["a"], "event": pa.array(["{"], pa.json_())})
    good = pa.table({"day": ["a"], "event": pa.array(["1"], pa.json_())})
    dv.write_table(tmp_path / "t", good, partition_by="day")

    def fail() -> None:
        for _ in range(40):
            with pytest.raises(dv.DeltaVariantError):
                dv.write_table(tmp_path / "t", bad, mode="append")

    failing = threading.Thread(target=fail, daemon=True)
    failing.start()
    for _ in range(20):
        dv.write_table(tmp_path / "t", good, mode="append")
        dv.delete_all(tmp_path / "t")
        dv.vacuum(tmp_path / "t", 0, dry_run=False, enforce_retention_duration=False)
    failing.join(WAIT)
    assert not failing.is_alive()
    # A vacuum commits its start and its end.
    assert dv.load_snapshot(tmp_path / "t").version == 80


def test_a_folder_that_is_removed_while_it_is_created_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mkdir, outcomes = Path.mkdir, iter([FileExistsError(17, "File exists")])

    def fail_once(self: Path, *arguments: object, **options: object) -> None:
        for error in outcomes:
            raise error
        mkdir(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", fail_once)
    dv.write_table(tmp_path / "t", pa.table({"n": [1]}))
    assert dv.read_table(tmp_path / "t").to_table().num_rows == 1


def test_a_file_where_a_folder_is_expected_is_an_error(tmp_path: Path):
    table = tmp_path / "t"
    dv.write_table(table, pa.table({"day": ["b"], "n": [1]}), partition_by="day")
    (table / "day=a").touch()
    with pytest.raises(dv.DeltaVariantError, match="File exists"):
        dv.write_table(table, pa.table({"day": ["a"], "n": [1]}), mode="append")
    assert dv.load_snapshot(table).version == 0


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("function", "sentence", "version"),
    [
        (
            "log.commits.write_commit",
            "interrupted during the commit of version 1 of .*: check its history",
            0,
        ),
        (
            "log.checkpoints.writing.write_checkpoint",
            "interrupted after the commit of version 1 of .*, during its checkpoint",
            1,
        ),
    ],
)
def test_an_interrupt_during_a_commit_differs_from_one_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    function: str,
    sentence: str,
    version: int,
):
    table = tmp_path / "t"
    dv.write_table(table, pa.table({"n": [1]}), configuration={"delta.checkpointInterval": "1"})
    monkeypatch.setattr(f"delta_variant.{function}", interrupt)
    with pytest.raises(CommitInterrupted, match=sentence):
        dv.delete(table, "n = 2 or true")
    monkeypatch.undo()
    assert dv.load_snapshot(table).version == version
    monkeypatch.setattr(f"delta_variant.{function}", interrupt)
    with pytest.raises(SystemExit) as exited:
        main(["alter", str(table), "--set", "team=x"])
    assert exited.value.code == 130
    assert capsys.readouterr().err.startswith("delta-variant: interrupted ")


@pytest.mark.parametrize("before", ["absent", "present"])
@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"[]"])
def test_input_without_values_is_an_error_unless_allowed(
    tmp_path: Path, content: bytes, mode: str, before: str
):
    table = tmp_path / "t"
    if before == "present":
        if mode == "error":
            pytest.skip("the table exists, which is an error of its own")
        dv.write_table(table, pa.table({"value": ["1"]}), variant_columns=["value"])
    (tmp_path / "none.json").write_bytes(content)
    found = paths(tmp_path)
    for source in ("-", str(tmp_path / "none.json")):
        command = [*COMMAND, "write", source, str(table), "--mode", mode, "--yes"]
        done = subprocess.run(command, input=content, capture_output=True)
        assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (
            2,
            "",
            "delta-variant: the input contains no values: check the program that produced it, "
            "or pass --allow-empty\n",
        )
        assert paths(tmp_path) == found
    done = subprocess.run([*command, "--allow-empty", "--json"], input=content, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["rows"] == 0
    assert (table / "_delta_log").exists()


def test_one_empty_input_among_others_is_accepted(tmp_path: Path):
    (tmp_path / "none.json").touch()
    (tmp_path / "one.json").write_bytes(b"1")
    files = [str(tmp_path / name) for name in ("none.json", "one.json")]
    done = subprocess.run([*COMMAND, "write", *files, str(tmp_path / "t"), "--json"], capture_output=True)
    assert (done.returncode, json.loads(done.stdout)["rows"]) == (0, 1)


def test_a_file_larger_than_the_system_limit_is_named_with_the_remedy(tmp_path: Path):
    (tmp_path / "events.json").write_bytes(
        b"".join(b'{"text": "%s"}\n' % os.urandom(200).hex().encode() for _ in range(999))
    )
    done = subprocess.run(
        [*COMMAND, "write", str(tmp_path / "events.json"), str(tmp_path / "t")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    beginning, remedy = done.stderr.split(".zstd.parquet: ")
    assert beginning.startswith(f"delta-variant: cannot write {tmp_path}/t/part-00000-")
    assert remedy == "File too large (os error 27); raise the limit on file sizes (`ulimit -f`), then retry\n"
    assert done.returncode == 2
    assert paths(tmp_path) == {"events.json"}


def test_rejects_that_cannot_be_written_are_an_error_and_nothing_is_committed(tmp_path: Path):
    data = pa.table({"n": [1, 2], "event": ["1", "{"]})
    for rejects, reason in (
        ("/dev/full", "No space left on device; free space on this disk, then retry"),
        (str(tmp_path / "absent" / "rejects"), "No such file or directory"),
        (str(tmp_path), "Is a directory"),
    ):
        with pytest.raises(StoreError) as raised:
            dv.write_table(
                tmp_path / "t",
                data,
                variant_columns=["event"],
                json=dv.JsonOptions(on_invalid="reject", rejects=rejects),
            )
        assert str(raised.value) == f"cannot write rejects to {rejects}: {reason}"
        assert paths(tmp_path) == set()


def test_a_file_of_rejects_that_was_never_opened_is_closed():
    with RejectsFile("/absent/rejects") as file:
        file.close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["audit", "TABLE", "--html", "/dev/full"], "cannot write /dev/full: No space left on device; free "),
        (
            ["audit", "TABLE", "--html", "absent/x.html"],
            "cannot write absent/x.html: No such file or directory\n",
        ),
    ],
)
def test_a_page_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
):
    dv.write_table(tmp_path / "t", pa.table({"n": [1]}))
    with pytest.raises(SystemExit) as exited:
        main([str(tmp_path / "t") if each == "TABLE" else each for each in options])
    assert exited.value.code == 2
    assert capsys.readouterr().err.startswith(f"delta-variant: {sentence}")


def test_no_part_of_a_page_remains(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"n": [1]}))
    page, earlier = tmp_path / "new.html", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (999, earlier[1]))
    try:
        with pytest.raises(SystemExit):
            main(["audit", str(tmp_path / "t"), "--html", str(page)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, earlier)
    assert not page.exists()


def test_output_that_cannot_be_written_is_named(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"n": [1]}))
    with open("/dev/full", "wb") as full:
        for options in (["--json"], ["--format", "csv"], []):
            command = [*COMMAND, "read", str(tmp_path / "t"), *options]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 2
            assert done.stderr == (
                "delta-variant: cannot write to standard output: No space left on device; "
                "free space on this disk, then retry\n"
            )
