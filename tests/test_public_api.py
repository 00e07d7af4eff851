"""The public API: names, cost of the import, errors, and the stub of the kernel."""

from __future__ import annotations

import inspect
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from support.processes import run_program
from support.public_api import TEXTS, describe

import delta_variant
from delta_variant import errors, functions

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = ("typer", "rich", "pyspark", "duckdb", "sqlglot", "deltalake", "polars", "pandas")


@pytest.mark.parametrize("module", [delta_variant, functions])
def test_the_public_api_is_that_of_the_checked_in_text(module):
    expected = TEXTS[module.__name__].read_text("utf-8")
    assert describe(module) == expected, "run `python tests/support/public_api.py` if the change is intended"


def test_the_description_has_every_name_parameter_and_member():
    text = describe(delta_variant)
    names = {line.split("(")[0].removeprefix("class ") for line in text.splitlines() if line[0] != " "}
    assert names == set(delta_variant.__all__)
    assert "\n    execute(self) -> RewriteResult\n" in text
    assert ", where: str | None = None, " in text


def test_every_error_is_importable_from_the_root():
    assert set(errors.__all__) <= set(delta_variant.__all__)
    assert all(getattr(delta_variant, name) is getattr(errors, name) for name in errors.__all__)


def test_a_missing_table_is_a_file_that_is_not_found(tmp_path: Path):
    with pytest.raises(FileNotFoundError) as caught:
        delta_variant.load_snapshot(tmp_path)
    assert type(caught.value) is delta_variant.TableNotFoundError
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (str(copied), copied.table) == (str(caught.value), caught.value.table)


@pytest.mark.parametrize("name", delta_variant.__all__)
def test_every_public_name_exists_and_has_a_docstring(name: str):
    value = getattr(delta_variant, name)
    assert name == "__version__" or inspect.getdoc(value)


def test_completion_shows_the_public_names_and_no_others():
    assert dir(delta_variant) == sorted(delta_variant.__all__)


def test_the_version_is_that_of_the_project():
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert declared is not None
    assert delta_variant.__version__ == declared[1]


def test_the_import_loads_no_optional_dependency():
    code = "import sys, delta_variant; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = run_program(code).split()
    assert "delta_variant" in loaded
    assert [name for name in OPTIONAL if name in loaded] == []


def test_every_error_has_the_same_base_class_and_a_docstring():
    classes = [getattr(errors, name) for name in errors.__all__]
    assert all(issubclass(each, errors.DeltaVariantError) and each.__doc__ for each in classes)
    assert all(each.__name__.endswith("Error") for each in classes)
    classes_defined = inspect.getmembers(
        errors, lambda each: inspect.isclass(each) and each.__module__ == errors.__name__
    )
    defined = [name for name, _ in classes_defined]
    assert sorted(defined) == sorted(errors.__all__)


def test_every_kind_of_native_error_has_its_class():
    kinds = set(re.findall(r"^    (\w+)\(String\),$", (ROOT / "rust/src/error.rs").read_text(), re.MULTILINE))
    mapping = (ROOT / "rust/src/python/mod.rs").read_text()
    mapped = dict(re.findall(r'Error::(\w+)\(_\) => "(\w+)"', mapping))
    assert set(mapped) == kinds
    assert set(mapped.values()) <= set(errors.__all__)


VARIANTS = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
METADATA, INT = b"\x01\x00\x00", b"\x0c\x01"


def malformed() -> object:
    return delta_variant.to_json(pa.array([{"metadata": METADATA, "value": b"\x0c"}], VARIANTS))


def no_json() -> object:
    return delta_variant.parse_json(["{"])


def no_date() -> object:
    return delta_variant.variant_get(delta_variant.parse_json(['"x"']), "$", "date")


def no_shredding() -> object:
    return delta_variant.ShreddingSchema.of(pa.uint32())


def conflict() -> object:
    parts = [pa.array([METADATA]), pa.array([INT]), pa.array([2])]
    return delta_variant.unshred(pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"]))


def no_parquet() -> object:
    return delta_variant.compute_stats(__file__)


def no_text() -> object:
    return delta_variant.parse_json([1])


@pytest.mark.parametrize(
    ("fails", "error", "sentence"),
    [
        (malformed, errors.MalformedVariantError, "row 0"),
        (no_json, errors.InvalidJsonError, "row 0: byte 2 of the text"),
        (no_date, errors.CastError, "row 0"),
        (no_shredding, errors.ShreddingError, "(?i)uint32"),
        (conflict, errors.ConflictingValueError, "row 0"),
        (no_parquet, errors.DataFileError, "test_public_api"),
        (no_text, errors.SchemaError, "(?i)int64"),
    ],
)
def test_a_native_error_arrives_as_its_class(fails, error: type[Exception], sentence: str):
    with pytest.raises(error, match=sentence) as caught:
        fails()
    assert type(caught.value) is error


@pytest.mark.slow
def test_stubtest_finds_the_stub_and_the_kernel_alike(tmp_path: Path):
    # Only what the stub imports: mypy would read the package around it.
    package = tmp_path / "delta_variant"
    package.mkdir()
    (package / "__init__.pyi").touch()
    for name in ("_native.pyi", "_options.py"):
        shutil.copy(ROOT / "delta_variant" / name, package)
    command = [sys.executable, "-m", "mypy.stubtest", "delta_variant._native"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
