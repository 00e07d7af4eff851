"""The conformance kit: wrong answers are found, crashes and hangs are results, invalid cases are rejected."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tarfile
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at
from support.locations import OWN_CASES
from typer.testing import CliRunner

from delta_variant.cli import main
from delta_variant.cli.app import app
from delta_variant_conformance import corpus, decoding, process
from delta_variant_conformance.case import Case, InvalidCaseError
from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.decoding import NotAVariantError, decode, decode_concatenated
from delta_variant_conformance.engines import start
from delta_variant_conformance.grade import Result, grade
from delta_variant_conformance.invoke import Answer, invoke
from delta_variant_conformance.page import html_page
from delta_variant_conformance.parquet_footer import annotate
from delta_variant_conformance.report import (
    FINDINGS,
    counts,
    json_report,
    matrix_rows,
    score,
    score_of_offered,
)
from delta_variant_conformance.runner import EngineRun, Run, run
from delta_variant_conformance.typed_values import compare, describe, find_problem
from delta_variant_conformance.worker import case_from_line

pytestmark = pytest.mark.slow

ONE = {"metadata": "010000", "value": "0c01"}
HOSTILE = "<script>alert('x')</script><img src=http://x onerror=\"y\">\0\x1b[2J\u202e"


def write_case(folder: Path, kind: str, name: str, **entries: Any) -> Path:
    """Write a case with the common keys, and return its folder."""
    case = folder / "cases" / kind / name
    case.mkdir(parents=True)
    common = {"rules": ["R4"], "verdict": "keeps", "section": "VariantShredding.md", "about": "A case"}
    (case / "case.json").write_text(json.dumps({**common, **entries}), encoding="utf-8")
    return case


def write_shredded(file: Path, rows: list[tuple[int, str]], *, value: bytes | None = None) -> None:
    """Write objects of `a`, int64, and `b`, string, both shredded, and with the given `value`."""
    fields = [
        {"metadata": b"\x01\x02\0\1\2ab", "value": value, "typed_value": {"a": field(a), "b": field(b)}}
        for a, b in rows
    ]
    members = {
        name: pa.struct([("value", pa.binary()), ("typed_value", kind)]) for name, kind in LEAVES.items()
    }
    group = [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.struct(members.items()))]
    pq.write_table(pa.table({"v": pa.array(fields, pa.struct(group))}), file)


LEAVES = {"a": pa.int64(), "b": pa.string()}


def field(value: object) -> dict[str, object]:
    return {"value": None, "typed_value": value}


def typed(a: int, b: str) -> dict[str, Any]:
    return {"object": {"a": {"int64": a}, "b": {"string": b}}}


@pytest.fixture
def cases(tmp_path: Path) -> list[Case]:
    """Return three cases: two valid files, and one whose value contradicts its typed_value."""
    for number in (1, 2):
        folder = write_case(
            tmp_path,
            "unshred",
            f"read_{number}",
            input={"file": "f.parquet"},
            expect={"rows": [typed(number, "x")]},
        )
        write_shredded(folder / "f.parquet", [(number, "x")])
    folder = write_case(
        tmp_path,
        "unshred",
        "reject",
        verdict="breaks",
        input={"file": "f.parquet"},
        expect={"error": "ConflictingValueError"},
    )
    write_shredded(folder / "f.parquet", [(3, "x")], value=b"\x0c\x05")
    return load_cases([tmp_path])


# An engine that reads like ours, except for the code that replaces {}.
LIAR = """
import os, subprocess, sys, time
from dataclasses import replace
from delta_variant_conformance.engine import VariantBytes
from delta_variant_conformance.engines import ours
from delta_variant_conformance.worker import serve

honest = ours.start(None)
answers = []

def read(file, column):
    number = len(answers) + 1
    {}

def start(scratch):
    return replace(honest, name="liar", read=read)

serve(start)
"""

NULL = "answers.append(1); return [None]"
SWAPPED = """answers.append(1)
    [found] = honest.read(file, column)
    return [VariantBytes(found.metadata.replace(b"ab", b"ba"), found.value)]"""
RAISING = "answers.append(1); raise RuntimeError('not today')"
PREVIOUS = """answers.append([VariantBytes(b"\\1\\0\\0", b"\\0")] if file.parent.name == "reject" else
        honest.read(file, column))
    return answers[-2] if number > 1 else answers[-1]"""
EXITING = "os._exit(3) if file.parent.name == 'read_1' else None; return honest.read(file, column)"
ABORTING = "os.abort() if file.parent.name == 'read_1' else None; return honest.read(file, column)"
HANGING = "time.sleep(60) if file.parent.name == 'read_1' else None; return honest.read(file, column)"
CHATTING = """print('rubbish'); print('{"number": 1}'); os.write(1, b"more\\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"])
    return honest.read(file, column)"""
NO_VARIANT = "return [VariantBytes(b'', b'')]"
GREEDY = """while file.parent.name == "read_1": answers.append(b"x" * 10_000_000); time.sleep(0.01)
    return honest.read(file, column)"""
GREEDY_CHILD = """subprocess.run([sys.executable, "-c", "import sys, time; hoard = []\\n"
        "while sys.argv[1] == 'read_1': hoard.append(b'x' * 10_000_000); time.sleep(0.01)", file.parent.name])
    return honest.read(file, column)"""


def run_liar(tmp_path: Path, cases: list[Case], lie: str, **options: Any) -> EngineRun:
    script = tmp_path / "liar.py"
    script.write_text(LIAR.replace("{}", lie, 1), encoding="utf-8")
    [engine] = run(cases, ["liar"], command=lambda name: [sys.executable, str(script)], **options).engines
    return engine


@pytest.mark.parametrize(
    ("lie", "statuses"),
    [
        ("return honest.read(file, column)", ["pass", "pass", "pass"]),
        (NULL, ["wrong value", "wrong value", "accepted"]),
        (SWAPPED, ["wrong value", "wrong value", "pass"]),
        (RAISING, ["refused", "refused", "pass"]),
        (PREVIOUS, ["pass", "wrong value", "accepted"]),
        (EXITING, ["crashed", "pass", "pass"]),
        (ABORTING, ["crashed", "pass", "pass"]),
        (CHATTING, ["pass", "pass", "pass"]),
        (NO_VARIANT, ["wrong value", "wrong value", "accepted"]),
    ],
    ids=[
        "honest",
        "null",
        "swapped",
        "raising",
        "previous",
        "exiting",
        "aborting",
        "chatting",
        "no variant",
    ],
)
def test_wrong_answers_of_an_adapter_are_found(
    tmp_path: Path, cases: list[Case], lie: str, statuses: list[str]
):
    engine = run_liar(tmp_path, cases, lie)
    assert engine.absent is None
    assert [result.status for result in engine.results] == statuses, engine.results


def test_a_hang_is_a_result_of_its_case_and_the_next_case_runs(tmp_path: Path, cases: list[Case]):
    engine = run_liar(tmp_path, cases, HANGING, timeout_seconds=3)
    assert [result.status for result in engine.results] == ["timed out", "pass", "pass"]
    assert engine.results[0].got == "no answer within 3 seconds"


@pytest.mark.parametrize("lie", ["return honest.read(file, column)", EXITING, HANGING])
def test_no_temporary_file_outlives_a_run(
    tmp_path: Path, cases: list[Case], lie: str, monkeypatch: pytest.MonkeyPatch
):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    engine = run_liar(tmp_path, cases, lie, timeout_seconds=3)
    assert engine.results[2].status == "pass"
    assert list(scratch.iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is measured in /proc")
@pytest.mark.parametrize("lie", [GREEDY, GREEDY_CHILD], ids=["the process", "a child"])
def test_an_engine_that_exceeds_its_memory_is_killed(tmp_path: Path, cases: list[Case], lie: str):
    engine = run_liar(tmp_path, cases, lie, memory_gb=0.7)
    assert [result.status for result in engine.results] == ["crashed", "pass", "pass"], engine.results
    assert engine.results[0].got == "exceeded 0.7 GB of memory"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is measured in /proc")
def test_an_engine_that_exceeds_its_memory_at_the_start_is_absent(tmp_path: Path, cases: list[Case]):
    lie = "pass\n\nhoard = []\nwhile True: hoard.append(b'x' * 10_000_000); time.sleep(0.01)"
    engine = run_liar(tmp_path, cases, lie, memory_gb=0.7)
    assert engine.absent == "liar did not start: exceeded 0.7 GB of memory"


def test_without_proc_the_memory_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "PROC", tmp_path / "no_proc")
    assert process.resident_bytes(os.getpgid(0)) == 0


def test_a_crash_reports_signal_and_output(tmp_path: Path, cases: list[Case]):
    lie = "print('out of luck', flush=True); " + ABORTING
    crashed = run_liar(tmp_path, cases, lie).results[0]
    assert crashed.got.startswith(f"killed by {signal.SIGABRT.name}: out of luck")
    assert run_liar(tmp_path, cases, EXITING).results[0].got == "exit status 3"


@pytest.mark.parametrize(
    ("start_up", "message"),
    [
        (
            "raise ImportError('No module named spoons')",
            "liar did not start: ImportError: No module named spoons",
        ),
        ("import os; print('no memory', flush=True); os._exit(9)", "liar did not start: no memory"),
        ("sys.exit(3)", "liar did not start: no line with `ready` before exit status 3 from its worker"),
        ("time.sleep(60)", "liar did not start: no line with `ready` within 5 seconds from its worker"),
    ],
)
def test_an_engine_that_does_not_start_is_absent(
    tmp_path: Path, cases: list[Case], start_up: str, message: str
):
    lie = (
        f"pass\n\ndef start(scratch):\n    {start_up}\n\nserve(start)\nsys.exit()\n\ndef unused():\n    pass"
    )
    # A busy machine needs more than 5 seconds to start a worker.
    engine = run_liar(tmp_path, cases, lie, start_seconds=5 if "sleep" in start_up else 60)
    assert (engine.absent, engine.results) == (message, ())
    [heading, row] = matrix_rows(Run(tuple(cases), (engine,)))
    assert dict(zip(heading, row, strict=True))["engine"] == "liar (absent)"


def test_engines_do_not_receive_the_expectation(cases: list[Case]):
    number, case = case_from_line(process.case_line(7, cases[0]))
    assert (number, case.expect, case.about, case.verdict) == (7, {}, "", "")
    assert (case.id, case.kind, case.input) == (cases[0].id, cases[0].kind, cases[0].input)


def test_our_own_errors_must_have_the_expected_class(cases: list[Case]):
    case = cases[2]
    wrong_class = Answer("refused", message="no", error_classes=("DataFileError", "DeltaVariantError"))
    right_class = Answer("refused", message="no", error_classes=("ConflictingValueError", "ShreddingError"))
    assert grade(case, "ours", wrong_class, is_ours=True).status == "refused"
    assert grade(case, "ours", right_class, is_ours=True).status == "pass"
    assert grade(case, "other", wrong_class).status == "pass"


def test_an_answer_instead_of_the_expected_error_is_accepted(cases: list[Case]):
    answer = Answer("answered", {"rows": [{"$variant": ["010000", "0c05"]}]})
    result = grade(cases[2], "other", answer)
    assert (result.status, result.is_finding) == ("accepted", True)
    assert (result.expected, result.got) == ("an error (ConflictingValueError)", '{"rows": [{"int8": 5}]}')


def test_an_error_and_the_answer_pass_if_both_are_allowed(tmp_path: Path):
    expect = {"rows": [{"int8": 1}], "error": "ConflictingValueError"}
    folder = write_case(tmp_path, "file", "either", input={"file": "f"}, expect=expect)
    (folder / "f").touch()
    [case] = load_cases([tmp_path])
    bytes_of = {"rows": [{"$variant": ["010000", "0c01"]}]}
    other = {"rows": [{"$variant": ["010000", "0c02"]}]}
    assert grade(case, "other", Answer("refused", message="no")).status == "pass"
    assert grade(case, "other", Answer("answered", bytes_of)).status == "pass"
    assert grade(case, "other", Answer("answered", other)).status == "wrong value"


@pytest.mark.parametrize("pair", [{"value": {}, "typed_value": None}, {"value": [], "typed_value": 1}, {}, 5])
def test_columns_of_another_form_are_a_wrong_value(pair: Any):
    (case,) = (each for each in load_cases([OWN_CASES]) if each.id == "shred/objects")
    rows = [pair] * len(case.expect["columns"])
    assert grade(case, "other", Answer("answered", {"columns": rows})).status == "wrong value"


def test_another_physical_type_is_a_pass_with_a_note(tmp_path: Path):
    folder = write_case(tmp_path, "file", "wide", input={"file": "f"}, expect={"rows": [{"int64": 1}]})
    (folder / "f").touch()
    [case] = load_cases([tmp_path])
    result = grade(case, "other", Answer("answered", {"rows": [{"$variant": ["010000", "0c01"]}]}))
    assert result.status == "pass"
    assert result.notes == ('row 0, $ has another physical type: $: expected {"int64": 1}, got {"int8": 1}',)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("AGH/", "pass"),
        (r"\x00a\xFF", "pass"),
        (r"\x00\x61\xff", "pass"),
        ("\\x00a", "wrong value"),
        ("", "wrong value"),
    ],
)
def test_binary_may_be_printed_as_base64_and_with_escapes(tmp_path: Path, text: str, status: str):
    given = {"metadata": "010000", "value": "3c030000000061ff"}
    write_case(tmp_path, "decode", "binary", input=given, expect={"rows": [{"binary": "0061ff"}]})
    [case] = load_cases([tmp_path])
    assert grade(case, "other", Answer("answered", {"json": json.dumps(text)})).status == status


@pytest.mark.parametrize(
    ("value", "status"),
    [("020000", "pass"), ("0c05", "wrong value"), ("0201000002 0c05".replace(" ", ""), "wrong value")],
    ids=["empty object", "scalar", "the shredded field"],
)
def test_value_of_a_fully_shredded_object_may_be_empty(tmp_path: Path, value: str, status: str):
    pair = {"value": None, "typed_value": {"a": field(1)}}
    schema = {"object": {"a": "int64"}}
    folder = write_case(
        tmp_path, "shred", "x", input={"file": "f", "schema": schema}, expect={"columns": [pair]}
    )
    (folder / "f").touch()
    [case] = load_cases([tmp_path])
    left = {"$variant": ["0101000161", value]}
    typed_value = {"a": {"value": None, "typed_value": {"$typed": {"int64": 1}}}}
    pairs = [{"value": left, "typed_value": typed_value}]
    answer = Answer("answered", {"columns": pairs, "violations": []})
    result = grade(case, "other", answer)
    assert (result.status, len(result.notes)) == (status, status == "pass"), result


def test_an_option_that_an_engine_lacks_is_not_offered(tmp_path: Path):
    write_case(
        tmp_path, "encode", "x", input={"json": "1"}, options={"wings": 2}, expect={"rows": [{"int8": 1}]}
    )
    [case] = load_cases([tmp_path])
    result = grade(case, "ours", invoke(start("ours", tmp_path), case, tmp_path))
    assert (result.status, result.got, result.is_finding) == (
        "not offered",
        "ours does not support the option wings",
        False,
    )


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("ours", ["pass", "pass", "pass"]),
        # The column is not annotated: a shredded struct, as stored in the file, is not a value.
        ("duckdb", ["refused", "refused", "pass"]),
        ("pyarrow", ["refused", "refused", "pass"]),
        ("deltalake", ["not offered", "not offered", "not offered"]),
    ],
)
def test_engines_run_in_separate_processes(cases: list[Case], name: str, statuses: list[str]):
    [engine] = run(cases, [name]).engines
    assert engine.absent is None
    assert engine.version
    assert [result.status for result in engine.results] == statuses, engine.results


@pytest.mark.parametrize(
    ("name", "passes"), [("ours", {"shred", "encode", "decode", "stats"}), ("duckdb", {"shred", "decode"})]
)
def test_engines_write_encode_and_print(tmp_path: Path, name: str, passes: set[str]):
    columns = [
        {"value": None, "typed_value": {"a": field(1), "b": {"value": {"int8": 2}, "typed_value": None}}}
    ]
    shredding = {"object": {"a": "int64", "b": "string"}}
    folder = write_case(
        tmp_path,
        "shred",
        "object",
        input={"file": "f.parquet", "schema": shredding},
        expect={"columns": columns},
    )
    variant = {"metadata": b"\x01\x02\0\1\2ab", "value": b"\2\2\0\1\0\2\4\x0c\1\x0c\2"}
    pq.write_table(pa.table({"v": [variant]}), folder / "f.parquet")
    annotate(folder / "f.parquet", "v")
    write_case(tmp_path, "encode", "decimal", input={"json": "1.50"}, expect={"rows": [{"decimal4": "1.50"}]})
    write_case(tmp_path, "decode", "one", input=ONE, expect={"rows": [{"int8": 1}], "json": [1]})
    write_case(tmp_path, "stats", "one", input={"encode": ONE}, expect={"z85": "0rr9d0rr91"})
    [engine] = run(load_cases([tmp_path]), [name]).engines
    assert {result.case.kind for result in engine.results if result.status == "pass"} == passes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": []}, "expected rules to be a list of at least one rule id"),
        ({"verdict": "perhaps"}, 'expected verdict to be "keeps" or "breaks"'),
        ({"abuot": "x"}, "the case has unknown keys: abuot"),
        ({"input": {"metadata": "01000", "value": "00"}}, "expected hex, got '01000'"),
        ({"input": {"metadata": "010000"}}, "input lacks value"),
        ({"expect": {}}, "expect is empty"),
        ({"expect": {"row": []}}, "expect has unknown keys: row"),
        ({"expect": {"rows": [{"int8": 128}]}}, "invalid payload of int8: 128"),
        ({"expect": {"rows": [{"int9": 1}]}}, "unknown type 'int9' of a typed value"),
        ({"expect": {"rows": [{"int8": 1, "int16": 1}]}}, "expected a typed value, an object with one key"),
        ({"expect": {"rows": [{"decimal4": 1.5}]}}, "invalid payload of decimal4: 1.5"),
        ({"expect": {"error": "wrong"}}, "expected error to be the name of an error class"),
    ],
)
def test_an_invalid_case_raises_an_error_with_its_file(tmp_path: Path, change: dict[str, Any], message: str):
    entries = {"input": ONE, "expect": {"rows": [{"int8": 1}]}, **change}
    path = write_case(tmp_path, "decode", "broken", **entries) / "case.json"
    with pytest.raises(InvalidCaseError, match=re.escape(message)) as caught:
        load_cases([tmp_path])
    assert caught.value.file == str(path)


def test_an_unknown_kind_or_a_file_outside_of_a_case_raises(tmp_path: Path):
    write_case(tmp_path / "kind", "bake", "cake", input={}, expect={"error": "CakeError"})
    with pytest.raises(InvalidCaseError, match="unknown kind of case 'bake'") as caught:
        load_cases([tmp_path / "kind"])
    assert caught.value.file.endswith("cake/case.json")
    (tmp_path / "outside").touch()
    rows = {"rows": [None]}
    folder = write_case(tmp_path / "file", "file", "a", input={"file": "../../../../outside"}, expect=rows)
    with pytest.raises(InvalidCaseError, match=r"\.\./\.\./outside is outside the folder"):
        load_cases([tmp_path / "file"])
    (folder / "case.json").unlink()
    with pytest.raises(InvalidCaseError, match="does not exist") as caught:
        load_cases([tmp_path / "file"])
    assert caught.value.file == str(folder / "case.json")
    with pytest.raises(InvalidCaseError, match="folder cases") as caught:
        load_cases([tmp_path])
    assert caught.value.file == str(tmp_path)


def test_a_kit_from_a_wheel_has_the_cases_and_that_of_a_clone_reads_those_of_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    package = tmp_path / "conformance" / "delta_variant_conformance"
    monkeypatch.setattr(corpus, "__file__", str(package / "corpus.py"))
    assert corpus.find_own_cases() == tmp_path / "protocol_fixtures"
    (package / "cases").mkdir(parents=True)
    assert corpus.find_own_cases() == package


@pytest.mark.parametrize("archive_format", ["tar", "gztar", "zip"])
@pytest.mark.parametrize("top", ["", "sources-1.0/protocol_fixtures"])
def test_an_archive_has_the_cases_of_its_folder(tmp_path: Path, archive_format: str, top: str):
    rows = {"rows": [None]}
    case = write_case(tmp_path / "content" / top, "file", "a", input={"file": "a.parquet"}, expect=rows)
    (case / "a.parquet").write_bytes(b"PAR1")
    archive = shutil.make_archive(str(tmp_path / "packed"), archive_format, tmp_path / "content")
    with corpus.open_cases([Path(archive)]) as cases:
        assert [case.id for case in cases] == ["file/a"]
        assert (cases[0].folder / "a.parquet").read_bytes() == b"PAR1"
    assert not cases[0].folder.exists()


def test_a_file_that_is_not_an_archive_or_writes_outside_of_its_folder_is_rejected(tmp_path: Path):
    (tmp_path / "text").write_text("cases", encoding="utf-8")
    with tarfile.open(tmp_path / "hostile", "w") as packed:
        packed.add(tmp_path / "text", "../../outside")
    for name in ("text", "hostile"):
        with (
            pytest.raises(InvalidCaseError, match=r"cannot unpack .*, expected a folder, a tar archive"),
            corpus.open_cases([tmp_path / name]),
        ):
            pass


def test_json_that_is_nested_too_deeply_raises_an_error_with_its_file(tmp_path: Path):
    path = write_case(tmp_path, "decode", "deep", input=ONE, expect={}) / "case.json"
    path.write_text('{"rules": ' + "[" * 100_000, encoding="utf-8")
    with raises_at(InvalidCaseError, file=str(path)):
        load_cases([tmp_path])


# The kit's own decoder, VariantEncoding.md.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2002 6affffff", {"decimal4": "-1.50"}),
        ("2000 05000000", {"decimal4": "5"}),
        ("2003 05000000", {"decimal4": "0.005"}),
        ("38 000000 80", {"float": "-0.0"}),
        ("1c 000000000000f8 7f", {"double": "NaN"}),
        ("50 f24f9b6481fa49d1b74e8c09a6e31c56", {"uuid": "f24f9b64-81fa-49d1-b74e-8c09a6e31c56"}),
        ("3c 02000000 0aff", {"binary": "0aff"}),
        ("03 02 00 00 02 0c05", {"array": [{"int8": 5}, {"null": None}]}),
    ],
)
def test_the_decoder_follows_the_specification(value: str, expected: dict[str, Any]):
    data = bytes.fromhex(value.replace(" ", ""))
    if "array" in expected:
        data = bytes.fromhex("03020002030c0500")
    assert decode(b"\x01\0\0", data) == expected


@pytest.mark.parametrize(
    ("metadata", "value", "message"),
    [
        ("020000", "00", "expected metadata of version 1, got 2"),
        ("0100", "00", "expected bytes 2 to 3"),
        ("11020001026261", "00", "marked as sorted"),
        ("01000000", "00", "1 bytes follow the end of metadata"),
        ("010000", "0000", "1 bytes follow the end of the value"),
        ("010000", "54", "unknown primitive type 21"),
        ("010000", "0cff0c"[:2], "expected bytes 1 to 2"),
        ("010000", "05ff", "invalid UTF-8"),
        ("010000", "2027 00000000".replace(" ", ""), "scale 0 to 38, got 39"),
        ("0101000161", "02010100020c05", "field id 1 is not in the dictionary of 1 names"),
        ("0101000161", "02020000000102" + "0000", "duplicate key"),
        ("010000", "03020001010c05", "exceeds the value that contains it|points past the end"),
        ("010000", "440060d71d14000000", "less than 24 hours"),
        ("010000", "0f ffffffff".replace(" ", ""), "expected bytes"),
    ],
)
def test_the_decoder_rejects_invalid_variants(metadata: str, value: str, message: str):
    with pytest.raises(NotAVariantError, match=message):
        decode(bytes.fromhex(metadata), bytes.fromhex(value))


def test_the_decoder_does_not_recurse_and_limits_shared_values(monkeypatch):
    value = b"\0"
    for _ in range(5_000):
        value = b"\x0f\1" + bytes(4) + len(value).to_bytes(4, "little") + value
    deep = decode(b"\1\0\0", value)
    assert list(compare(deep, deep)) == []
    assert describe(deep, 30).endswith("…")
    assert find_problem(deep) is None

    monkeypatch.setattr(decoding, "MAX_VALUES", 1_000)
    bomb = b"\0"
    for _ in range(20):
        bomb = b"\x0f\2" + bytes(8) + len(bomb).to_bytes(4, "little") + bomb
    with pytest.raises(NotAVariantError, match="more than 1,000 values"):
        decode(b"\1\0\0", bomb)


def test_only_zero_bytes_may_follow_a_concatenated_variant():
    assert decode_concatenated(b"\1\0\0\x0c\1\0\0\0") == {"int8": 1}
    with pytest.raises(NotAVariantError, match="4 bytes follow the value"):
        decode_concatenated(b"\1\0\0\x0c\1\0\0\0\0")
    with pytest.raises(NotAVariantError, match="expected up to three zero bytes"):
        decode_concatenated(b"\1\0\0\x0c\1\7")


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        ({"int8": 1}, {"decimal16": "1.00"}, "equal"),
        ({"int8": 1}, {"int8": 1}, "same"),
        ({"decimal4": "1.5"}, {"decimal4": "1.50"}, "equal"),
        ({"timestamp": 1}, {"timestamp_nanos": 1_000}, "equal"),
        ({"timestamp": 1}, {"timestamp_ntz": 1}, "other"),
        ({"float": 1.5}, {"double": 1.5}, "other"),
        ({"double": 1.0}, {"int8": 1}, "other"),
        ({"double": "-0.0"}, {"double": 0.0}, "other"),
        ({"double": "NaN"}, {"double": "NaN"}, "same"),
        ({"int8": 1}, {"int8": 2}, "other"),
        ({"boolean": True}, {"int8": 1}, "other"),
        ({"null": None}, {"object": {}}, "other"),
        (
            {"object": {"a": {"int8": 1}, "b": {"null": None}}},
            {"object": {"b": {"null": None}, "a": {"int8": 1}}},
            "same",
        ),
        ({"array": [{"int8": 1}]}, {"array": []}, "other"),
        ({"decimal16": "9" * 38}, {"decimal16": "9" * 37 + "8"}, "other"),
    ],
)
def test_values_are_equal_by_their_equivalence_class(left: Any, right: Any, verdict: str):
    """VariantEncoding.md, "Encoding types": exact numbers and timestamps are equal by value."""
    differences = list(compare(left, right))
    assert verdict == (
        "same" if not differences else "equal" if all(d.equal for d in differences) else "other"
    )


def test_annotating_a_column_changes_nothing_else_in_the_file(tmp_path: Path):
    file = tmp_path / "f.parquet"
    table = pa.table({"n": [1, 2], "v": [{"metadata": b"\1\0\0", "value": b"\0"}] * 2, "w": ["x", "y"]})
    pq.write_table(table, file)
    annotate(file, "v")
    assert "optional group field_id=-1 v (Variant(1))" in str(pq.ParquetFile(file).schema)
    assert pq.read_table(file).to_pylist() == table.to_pylist()
    with pytest.raises(ValueError, match="no column 'missing'"):
        annotate(file, "missing")


# Reports


def hostile_run() -> Run:
    case = Case(
        f"decode/{HOSTILE}",
        "decode",
        Path(),
        (HOSTILE,),
        "keeps",
        HOSTILE,
        HOSTILE,
        {},
        {},
        {HOSTILE: HOSTILE},
    )
    results = [Result(case, HOSTILE, status, HOSTILE, HOSTILE) for status in ("wrong value", "crashed")]
    noted = Result(case, HOSTILE, "pass", HOSTILE, HOSTILE, (HOSTILE,))
    engines = [EngineRun(HOSTILE, HOSTILE, (each,)) for each in (*results, noted)]
    return Run((case,), (*engines, EngineRun(HOSTILE, absent=HOSTILE)))


class _Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_hostile_names_do_not_break_the_page():
    page = html_page(hostile_run())
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert not tags.tags & {"script", "img", "link", "iframe"}
    assert not {name for name in tags.attributes if name.startswith("on")} | tags.attributes & {"src"}
    assert not {"\0", "\x1b", "\u202e"} & set(page)
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in page


def test_the_page_loads_nothing_and_has_all_findings(tmp_path: Path, cases: list[Case]):
    engine = run_liar(tmp_path, cases, NULL)
    page = html_page(Run(tuple(cases), (engine,)))
    assert "default-src &#x27;none&#x27;" in page
    assert "@import" not in page
    assert "url(" not in page
    for text in ("unshred/read_1", "wrong value", "R4", "VariantShredding.md"):
        assert text in page
    assert page.count('<details class="finding e0 wrong">') == 2
    assert page.count('<details class="finding e0 accepted">') == 1
    assert re.findall(r'<th class="number count">([^<]+)</th>', page) == list(FINDINGS)
    assert '<td class="number count"><span class="mark accepted" title="accepted">1</span></td>' in page


def test_the_json_report_has_every_result(tmp_path: Path, cases: list[Case]):
    engine = run_liar(tmp_path, cases, RAISING)
    report = json.loads(json.dumps(json_report(Run(tuple(cases), (engine,)))))
    assert [case["id"] for case in report["cases"]] == ["unshred/read_1", "unshred/read_2", "unshred/reject"]
    [found] = report["engines"]
    assert (found["name"], found["score"], found["counts"]) == ("liar", 33, {"refused": 2, "pass": 1})
    assert found["results"][0]["got"] == "RuntimeError: not today"


def test_the_score_ranks_wrong_values_below_crashes_accepted_and_refused(
    cases: list[Case],
):
    def scored(*statuses: Any) -> int | None:
        return score(statuses)

    assert scored("pass", "pass") == 100
    assert scored("pass", "wrong value") < scored("pass", "crashed") < scored("pass", "accepted")
    assert scored("pass", "accepted") < scored("pass", "refused") == 50
    assert scored("not offered") is score_of_offered(["not offered"]) is None
    assert scored("pass", "not offered") == 50
    assert score_of_offered(["pass", "not offered"]) == 100
    assert counts(Result(cases[0], "x", "pass", "") for _ in range(2)) == {"pass": 2}


# The command line


def conformance(*arguments: str):
    return CliRunner().invoke(app, ["conformance", *arguments])


def test_the_command_prints_the_matrix_and_exits_with_0_if_all_pass(tmp_path: Path, cases: list[Case]):
    page = tmp_path / "page.html"
    result = conformance(
        "--cases", str(tmp_path), "--engine", "ours", "--engine", "ours", "--html", str(page)
    )
    assert result.exit_code == 0
    heading, row = (line.split("\t") for line in result.stdout.splitlines()[-2:])
    assert heading == [
        "engine",
        "unshred 3",
        "all",
        "wrong value",
        "wrong layout",
        "crashed",
        "timed out",
        "accepted",
        "refused",
        "score",
        "of offered",
    ]
    assert row[1:] == ["3/3", "3/3", "-", "-", "-", "-", "-", "-", "100", "100"]
    assert row[0].startswith("ours ")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_command_runs_the_cases_of_this_project_without_an_option():
    result = conformance("--engine", "ours", "--json")
    assert result.exit_code == 0
    assert {case["id"] for case in json.loads(result.stdout)["cases"]} == {
        case.id for case in load_cases([OWN_CASES])
    }


def test_the_command_exits_with_1_if_a_requested_engine_has_findings(tmp_path: Path, cases: list[Case]):
    result = conformance("--cases", str(tmp_path), "--engine", "pyarrow", "--json")
    assert result.exit_code == 1
    assert [each["status"] for each in json.loads(result.stdout)["engines"][0]["results"]] == [
        "refused",
        "refused",
        "pass",
    ]
    assert "pyarrow: refused in 2 cases of " in result.stderr


def test_the_command_exits_with_2_for_an_engine_that_does_not_start(
    tmp_path: Path, cases: list[Case], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no_java"))
    result = conformance("--cases", str(tmp_path), "--engine", "spark")
    assert result.exit_code == 2
    assert "absent: spark did not start: " in result.stdout


def test_the_command_exits_with_2_for_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert conformance("--engine", "steam").exit_code == 2
    with pytest.raises(SystemExit, match="2"):
        main(["conformance", "--cases", str(tmp_path)])
    assert f"delta-variant: {tmp_path} contains neither a folder cases" in capsys.readouterr().err
