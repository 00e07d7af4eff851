"""The modules that the start of a process imports: time depends on the machine, names do not."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest
import typer
from support.processes import run_program

import delta_variant
from delta_variant.cli.app import COMMANDS, app
from delta_variant.cli.help import summary_of

CLI = """
import sys
from delta_variant.cli import main
sys.argv[1:] = {!r}
try:
    main()
except SystemExit as end:
    assert not end.code
"""
QUERY = """
import delta_variant
scan = delta_variant.read_table({!r}, columns=["id", "event:a::int as a"], where="event:a::int < 2")
assert scan.to_table().num_rows == 2
"""


def loaded_by(program: str) -> set[str]:
    """Return the names of the modules that a program imports."""
    report = "import sys; print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", f"{program}\n{report}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())


def below(modules: set[str], *packages: str) -> list[str]:
    """Return the modules that are one of the packages, or within one."""
    return sorted(
        name
        for name in modules
        if name.startswith(tuple(f"{each}." for each in packages)) or name in packages
    )


def test_the_import_of_the_package_loads_only_its_errors():
    loaded = loaded_by("import delta_variant")
    assert below(loaded, "delta_variant") == ["delta_variant", "delta_variant.errors"]
    assert below(loaded, "pyarrow", "msgspec", "obstore", "importlib.metadata") == []


def test_the_version_is_printed_without_typer_rich_and_pyarrow():
    loaded = loaded_by(CLI.format(["--version"]))
    assert "delta_variant.cli" in loaded
    assert below(loaded, "typer", "rich", "pyarrow", "msgspec", "delta_variant.cli.app") == []


def test_help_is_printed_without_the_commands_and_the_operations():
    loaded = loaded_by(CLI.format(["--help"]))
    assert "typer" in loaded
    unneeded = (
        "delta_variant.cli.commands",
        "delta_variant.operations",
        "delta_variant.log",
        "pyarrow",
        "rich",
    )
    assert below(loaded, *unneeded) == []


@pytest.mark.parametrize(("words", "expected"), [("va", "vacuum"), ("", "merge"), ("--ver", "--version")])
def test_the_name_of_a_command_is_completed_without_the_commands(words: str, expected: str):
    # Completion ends the process before it returns, so that the modules are printed at exit.
    environment = {"_DELTA_VARIANT_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    environment["COMP_WORDS"] = f"delta-variant {words}"
    modules = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    command = [sys.executable, "-c", f"{modules}\nfrom delta_variant.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert expected in done.stdout.split()
    unneeded = ("delta_variant.cli.commands", "delta_variant.operations", "delta_variant.log", "pydantic")
    assert below(set(done.stderr.split()), *unneeded) == []


def test_a_query_of_a_table_without_checkpoint_loads_neither_parquet_nor_json_paths(tmp_path):
    rows = pa.table({"id": [0, 1, 2, 3], "event": [f'{{"a": {row}}}' for row in range(4)]})
    delta_variant.write_table(tmp_path / "t", rows, variant_columns=["event"])
    loaded = loaded_by(QUERY.format(str(tmp_path / "t")))
    assert {"pyarrow", "delta_variant.operations.read"} <= loaded
    unneeded = ("sqlglot", "pyarrow.parquet", "pyarrow.fs", "pyarrow.dataset", "jsonpath_rfc9535", "regex")
    assert below(loaded, *unneeded) == []


def test_a_command_does_not_load_pandas(tmp_path):
    # pyarrow loads it for the first Python object that it converts.
    assert "pandas" in loaded_by("import pyarrow; pyarrow.scalar(0)")
    table = str(tmp_path / "t")
    delta_variant.write_table(table, pa.table({"id": [0, 1]}))
    loaded = loaded_by(CLI.format(["read", table, "--where", "id > 0"]))
    assert "pyarrow" in loaded
    assert below(loaded, "pandas") == []


def test_the_process_of_a_stream_on_spark_loads_neither_pandas_nor_what_writes():
    pytest.importorskip("pyspark")
    program = (
        "import sys; from importlib.machinery import ModuleSpec; "
        "sys.modules['__main__'].__spec__ = ModuleSpec({main!r}, None); "
        "import delta_variant.spark.data_source, delta_variant.spark.stream_sources"
    )
    assert "pandas" in loaded_by(program.format(main="pyspark.daemon"))
    loaded = loaded_by(program.format(main="pyspark.sql.streaming.python_streaming_source_runner"))
    unneeded = (
        "pandas",
        "delta_variant.input",
        "delta_variant.write",
        "delta_variant.spark.queries",
        "sqlglot",
    )
    assert below(loaded, *unneeded) == []


@pytest.mark.parametrize("name", [name for commands in COMMANDS.values() for name in commands])
def test_the_summary_in_help_is_the_first_sentence_of_the_command(name: str):
    (summary,) = (commands[name].summary for commands in COMMANDS.values() if name in commands)
    command = typer.main.get_command(app).get_command(None, name)
    assert summary_of(command) == summary


def test_functions_are_an_attribute_of_the_package():
    program = "import delta_variant as dv; print(dv.functions.variant_keys.__name__)"
    assert run_program(program) == "variant_keys\n"
