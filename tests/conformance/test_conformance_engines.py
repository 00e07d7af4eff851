"""The adapters of the conformance kit: packages of their own, and engines in a JVM."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from delta_variant.cli.app import app
from delta_variant_conformance.case import Case
from delta_variant_conformance.engine import Engine, VariantBytes
from delta_variant_conformance.engines import ENGINES, start
from delta_variant_conformance.grade import Result, grade
from delta_variant_conformance.invoke import invoke
from delta_variant_conformance.runner import EngineRun, run

pytestmark = pytest.mark.slow

ONE = {"metadata": "010000", "value": "0c01"}

# An engine whose package has a version and a parser of JSON, and one whose class path is its version.
PACKAGE = 'version = "7"\n'
WORKER = """
import os
import spoon
from delta_variant_conformance.engine import Engine
from delta_variant_conformance.worker import serve

serve(lambda scratch: Engine(name="spoon", version=spoon.version + " " + os.environ["CLASSPATH"]))
"""

# Programs of a JDK: the compiler accepts everything, and the JVM answers by the requests in the braces.
COMPILER = "#!/bin/sh\nexit {status}\n"
JVM = """#!{python}
import json, sys
print(json.dumps({{"version": "1.2"}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    operation = request["operation"]
    if operation == "parse_json" and request["text"] == "exit":
        sys.exit(3)
    null = {{"metadata": "010000", "value": "00"}}
    answers = {{"parse_json": {{**null, "value": "0c01"}}, "decode": {{"int8": 1}}, "read": [None, null],
               "collect_stats": {{"min": None, "max": null, "null_count": 1}}}}
    if request.get("text") == "raise":
        print(json.dumps({{"error": "IOException", "message": "not today"}}), flush=True)
    else:
        print(json.dumps({{"answer": answers[operation]}}), flush=True)
"""


def a_case(kind: str, given: dict[str, Any], expect: dict[str, Any]) -> Case:
    return Case(f"{kind}/x", kind, Path(), ("X",), "keeps", "section", "about", given, expect)


def run_spoon(tmp_path: Path, packages: Path | None) -> EngineRun:
    script = tmp_path / "worker.py"
    script.write_text(WORKER, encoding="utf-8")
    [engine] = run(
        [], ["spoon"], command=lambda name: [sys.executable, str(script)], packages=packages
    ).engines
    return engine


def test_an_engine_finds_the_packages_and_jars_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLASSPATH", "other.jar")
    folder = tmp_path / "engines" / "spoon"
    folder.mkdir(parents=True)
    (folder / "spoon.py").write_text(PACKAGE, encoding="utf-8")
    assert run_spoon(tmp_path, tmp_path / "engines").version == f"7 {folder}/*{os.pathsep}other.jar"


@pytest.mark.parametrize("name", [None, "empty"])
def test_an_engine_whose_package_is_not_installed_is_absent(tmp_path: Path, name: str | None):
    engine = run_spoon(tmp_path, None if name is None else tmp_path / name)
    assert "No module named 'spoon'" in str(engine.absent)


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "ours"])
def test_an_engine_that_is_not_installed_says_what_is_missing(tmp_path: Path, name: str):
    """Python without the site packages has none of the engines."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import sys\nfrom functools import partial\nfrom delta_variant_conformance.worker import serve\n"
        "from delta_variant_conformance.engines import start\n"
        "import pyarrow.parquet\n"
        "sys.path = [each for each in sys.path if 'site-packages' not in each]\n"
        "[sys.modules.pop(each) for each in list(sys.modules) if each.partition('.')[0] == 'pyarrow']\n"
        f"serve(partial(start, {name!r}))\n",
        encoding="utf-8",
    )
    [engine] = run([], [name], command=lambda name: [sys.executable, str(script)]).engines
    assert f"{name} did not start: " in str(engine.absent)
    assert "No module named" in str(engine.absent) or "no JARs: name a folder" in str(engine.absent)


@pytest.fixture
def jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a JDK that accepts all sources."""
    programs = tmp_path / "jdk" / "bin"
    programs.mkdir(parents=True)
    for name, text in (("javac", COMPILER.format(status=0)), ("java", JVM.format(python=sys.executable))):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("CLASSPATH", "x.jar")
    return programs


@pytest.fixture
def java(jdk: Path, tmp_path: Path) -> Iterator[Engine]:
    engine = start("parquet-java", tmp_path)
    yield engine
    close(engine)


def close(engine: Engine) -> None:
    """End the JVM of an engine, which ends with the worker of a run."""
    server: Any = getattr(engine.read, "__self__", None)
    server.close()


def test_an_engine_of_java_answers_in_lines_of_json(java: Engine, tmp_path: Path):
    assert java.version == "1.2"
    cases = {
        "encode": a_case("encode", {"json": "1"}, {"rows": [{"int8": 1}]}),
        "decode": a_case("decode", ONE, {"rows": [{"int8": 1}]}),
        "file": a_case("file", {"file": "f"}, {"rows": [None, {"null": None}]}),
    }
    found = {kind: grade(case, "x", invoke(java, case, tmp_path)).status for kind, case in cases.items()}
    assert found == {"encode": "pass", "decode": "pass", "file": "pass"}


def test_the_bounds_of_an_engine_of_java_are_variants_or_none(
    jdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("delta_variant_conformance.engines.java.annotate", lambda file, column: None)
    (tmp_path / "f").touch()
    engine = start("iceberg", tmp_path)
    assert engine.collect_stats is not None
    null = VariantBytes(b"\x01\0\0", b"\0")
    assert engine.collect_stats(tmp_path / "f", "v") == {"min": None, "max": null, "null_count": 1}
    close(engine)


def test_an_error_in_the_jvm_is_a_refusal(java: Engine, tmp_path: Path):
    answer = invoke(java, a_case("encode", {"json": "raise"}, {"error": "JsonError"}), tmp_path)
    assert (answer.outcome, answer.message) == ("refused", "IOException: not today")


def test_the_worker_ends_with_the_jvm(java: Engine, tmp_path: Path):
    """So that the kit records a crash, and starts both again."""
    with pytest.raises(SystemExit, match="the JVM ended with status 3"):
        invoke(java, a_case("encode", {"json": "exit"}, {"error": "JsonError"}), tmp_path)


def test_an_adapter_that_does_not_compile_is_absent(jdk: Path, tmp_path: Path):
    (jdk / "javac").write_text(COMPILER.format(status=1), encoding="utf-8")
    with pytest.raises(Exception, match="the adapter does not compile with these JARs"):
        start("parquet-java", tmp_path)


def test_a_machine_without_a_compiler_is_told_what_to_install(jdk: Path, tmp_path: Path):
    (jdk / "javac").unlink()
    with pytest.raises(FileNotFoundError, match="no javac: install a JDK of version 17 or newer"):
        start("parquet-java", tmp_path)


@pytest.mark.parametrize(
    ("expect", "status"), [({"int8": 1}, "pass"), ({"int16": 1}, "pass"), ({"int8": 2}, "wrong value")]
)
def test_an_engine_without_json_is_graded_by_its_typed_value(
    tmp_path: Path, expect: dict[str, Any], status: str
):
    engine = Engine(name="x", version="1", decode=lambda given: {"int8": given.value[1]})
    case = a_case("decode", ONE, {"rows": [expect], "json": [1]})
    result: Result = grade(case, "x", invoke(engine, case, tmp_path))
    assert (result.status, len(result.notes)) == (status, expect == {"int16": 1})


def test_the_command_uses_the_packages_of_a_folder(tmp_path: Path):
    package = tmp_path / "engines" / "polars" / "polars.py"
    package.parent.mkdir(parents=True)
    package.write_text('__version__ = "0.0-of-the-folder"\n', encoding="utf-8")
    case = tmp_path / "cases" / "encode" / "one"
    case.mkdir(parents=True)
    entries = {"rules": ["E-V6"], "verdict": "keeps", "section": "VariantEncoding.md", "about": "A number"}
    entries |= {"input": {"json": "1"}, "expect": {"rows": [{"int8": 1}]}}
    (case / "case.json").write_text(json.dumps(entries), encoding="utf-8")
    arguments = ["--cases", str(tmp_path), "--engine", "polars", "--packages", str(tmp_path / "engines")]
    result = CliRunner().invoke(app, ["conformance", *arguments])
    assert result.exit_code == 0, result.output
    assert "polars 0.0-of-the-folder" in result.stdout
