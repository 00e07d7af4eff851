"""Workers of any language, by protocol_fixtures/WORKERS.md: right answers, and answers of another form."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.documents import ROOT
from support.locations import OWN_CASES
from typer.testing import CliRunner

from delta_variant.cli.app import app
from delta_variant_conformance.case import Case, load_cases
from delta_variant_conformance.runner import run

ADAPTER = ROOT / "protocol_fixtures" / "adapters" / "pyarrow_adapter.py"

WORKER = """
import json, sys
print(json.dumps({"ready": "1"}), flush=True)
for line in sys.stdin:
    number = json.loads(line)["number"]
    print("rubbish")
    print(json.dumps({"number": number - 1, "outcome": "refused"}))
    print(json.dumps({"number": number, **json.loads(sys.argv[1])}), flush=True)
"""


def kit(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["conformance", *arguments, "--json"])


def results(text: str) -> dict[str, Any]:
    """Return what each engine did in each case, by its name."""
    engines = json.loads(text)["engines"]
    return {
        each["name"]: {case["case"]: (case["status"], case["got"]) for case in each["results"]}
        for each in engines
    }


def test_a_worker_by_the_page_does_as_the_adapter_of_the_kit() -> None:
    command = shlex.join([sys.executable, str(ADAPTER)])
    cases = ["--case", "file/*", "--case", "unshred/typed_*", "--case", "log/*"]
    done = kit(*cases, "--engine", f"mine={command}", "--engine", "pyarrow")
    found = results(done.stdout)
    assert {case: status for case, (status, _) in found["mine"].items()} == {
        case: status for case, (status, _) in found["pyarrow"].items()
    }
    assert len({status for status, _ in found["mine"].values()}) >= 3
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "mine"], "unknown engine 'mine'"),
        (["--engine", "mine="], "unknown engine 'mine='"),
        (["--engine", "duckdb=cat"], "unknown engine 'duckdb=cat'"),
        (["--engine", "ours", "--case", "decode/nothing"], "no case has an id such as decode/nothing"),
    ],
)
def test_a_name_that_nothing_has_is_rejected(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["conformance", *arguments])
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("\u2502", " ").split())


def case_of(name: str) -> Case:
    """Return a case by its id."""
    return next(each for each in load_cases(OWN_CASES) if each.id == name)


def status_of(case: Case, answer: dict[str, Any], folder: Path) -> tuple[str, str]:
    script = folder / "worker.py"
    script.write_text(WORKER, encoding="utf-8")
    command = [sys.executable, str(script), json.dumps(answer)]
    [engine] = run([case], ["mine"], command=lambda name: command).engines
    [found] = engine.results
    return found.status, found.got


def nested(levels: int) -> Any:
    """Return lists in each other."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        ({"outcome": "refused"}, "refused", ""),
        ({"outcome": "refused", "message": "no", "error_classes": ["E"]}, "refused", "E: no"),
        ({"outcome": "not offered", "message": "none"}, "not offered", "none"),
        ({"outcome": "refused", "error_classes": 5}, "crashed", "expected an answer of WORKERS.md, got"),
        ({"outcome": "refused", "error_classes": "E"}, "crashed", "expected an answer of WORKERS.md, got"),
        ({}, "crashed", "expected an answer of WORKERS.md, got"),
        ({"outcome": "answered"}, "crashed", "expected an answer of WORKERS.md, got"),
        ({"outcome": "answered", "content": [1]}, "crashed", "expected an answer of WORKERS.md, got"),
        ({"outcome": "answered", "content": {}}, "wrong value", "expected an answer of the kind file"),
        ({"outcome": "answered", "content": {"rows": 1}}, "wrong value", "expected an answer of the kind"),
        ({"outcome": "answered", "content": {"rows": nested(900)}}, "wrong value", "the answer nests too"),
        ({"outcome": "answered", "content": {"rows": [{"$variant": [1]}] * 9}}, "wrong value", "expected"),
    ],
)
def test_an_answer_has_the_form_of_the_page(
    tmp_path: Path, answer: dict[str, Any], status: str, text: str
) -> None:
    found, got = status_of(case_of("file/annotated"), answer, tmp_path)
    assert (found, got[: len(text)]) == (status, text)


@pytest.mark.parametrize("line", ["rubbish", '{"number": 0}'])
def test_a_worker_that_prints_without_end_times_out(tmp_path: Path, line: str) -> None:
    script = tmp_path / "worker.py"
    script.write_text(f"print('{{\"ready\": 1}}')\nwhile True: print('{line}\\n' * 999)", encoding="utf-8")
    command = [sys.executable, str(script)]
    case = case_of("file/annotated")
    [engine] = run([case], ["mine"], command=lambda name: command, timeout_seconds=0.2).engines
    assert [each.status for each in engine.results] == ["timed out"]


def test_a_worker_that_does_not_read_a_long_case_times_out(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text("print('{\"ready\": 1}', flush=True)\nimport time\ntime.sleep(60)", encoding="utf-8")
    command = [sys.executable, str(script)]
    case = replace(case_of("encode/null"), input={"json": "1" * 1_000_000})
    [engine] = run([case], ["mine"], command=lambda name: command, timeout_seconds=0.2).engines
    assert [each.status for each in engine.results] == ["timed out"]


def test_a_long_case_arrives_whole(tmp_path: Path) -> None:
    case = replace(case_of("encode/null"), input={"json": "1" * 1_000_000})
    assert status_of(case, {"outcome": "refused"}, tmp_path)[0] == "refused"


@pytest.mark.parametrize("name", ["shred/boolean_alone", "rewrite/compact_clustered"])
def test_an_answer_without_what_was_written_is_a_wrong_value(tmp_path: Path, name: str) -> None:
    case = case_of(name)
    found, got = status_of(case, {"outcome": "answered", "content": {}}, tmp_path)
    assert (found, got) == (
        "wrong value",
        f"expected an answer of the kind {case.kind}; the whole answer: {{}}",
    )


def test_a_crash_of_python_is_named_by_its_error(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text("print('{\"ready\": 1}', flush=True)\ninput()\nraise KeyError('n')", encoding="utf-8")
    command = [sys.executable, str(script)]
    [engine] = run([case_of("file/annotated")], ["mine"], command=lambda name: command).engines
    assert engine.results[0].got.splitlines()[:2] == [
        "exit status 1: KeyError: 'n'",
        "Traceback (most recent call last):",
    ]


def test_json_that_nests_too_deeply_is_invalid(tmp_path: Path) -> None:
    answer = {"outcome": "answered", "content": {"json": "[" * 30_000 + "]" * 30_000}}
    found, got = status_of(case_of("decode/primitive_int8"), answer, tmp_path)
    assert (found, "the value nests too deeply" in got) == ("wrong value", True)


def test_the_kit_reads_the_file_that_an_engine_wrote(tmp_path: Path) -> None:
    case = case_of("shred/boolean_alone")
    file = tmp_path / "shredded.parquet"
    pq.write_table(pa.table({"v": [1]}), file)
    answer = {"outcome": "answered", "content": {"file": str(file)}}
    assert status_of(case, answer, tmp_path) == (
        "wrong layout",
        "cannot read what the engine wrote: expected the column 'v' to be a Variant, got int64",
    )
    # An expected error is one of the engine.
    rejected = replace(case, expect={"error": "UnsupportedVariantError"})
    assert status_of(rejected, answer, tmp_path)[0] == "accepted"
    unshredded = pq.read_table(case.folder / case.input["file"])
    pq.write_table(unshredded, file)
    # A writer may leave scalars in `value`.
    assert status_of(case, answer, tmp_path)[0] == "pass"


PACKAGE = """
from delta_variant_conformance.engine import Engine, VariantBytes

class Adapter:
    def parse_json(self, text):
        return VariantBytes(b"\\x01\\x00\\x00", b"\\x00")

def start(scratch):
    return Engine.of("mine", "1.2.3", Adapter())
"""


def test_a_package_adds_an_engine_by_an_entry_point(tmp_path: Path) -> None:
    (tmp_path / "my_package.py").write_text(PACKAGE, encoding="utf-8")
    metadata = tmp_path / "my_package-1.2.3.dist-info"
    metadata.mkdir()
    # An engine of the kit keeps its name.
    entries = "[delta_variant_conformance.engines]\nmine = my_package:start\nours = my_package:start\n"
    (metadata / "entry_points.txt").write_text(entries, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.2.3\n", "utf-8")
    program = "from delta_variant.cli.app import app; app()"
    cases = ["--case", "encode/null", "--case", "encode/true", "--engine", "mine", "--engine", "ours"]
    done = subprocess.run(
        [sys.executable, "-c", program, "conformance", *cases, "--json"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = {
        name: [status for status, _ in outcomes.values()] for name, outcomes in results(done.stdout).items()
    }
    assert found == {"mine": ["pass", "wrong value"], "ours": ["pass", "pass"]}
