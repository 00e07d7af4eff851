"""The metadata and the files of the installed package, and the licenses of the crates that it contains."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
LISTED = re.compile(r"^(\S+) (\d\S*): ", re.MULTILINE)
LOCKED = re.compile(r'name = "(.+)"\nversion = "(.+)"')


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Return the script that writes the licenses, which is not part of a package."""
    spec = importlib.util.spec_from_file_location("licenses", ROOT / "rust" / "third_party_licenses.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE", "LICENSES-THIRD-PARTY.txt"])
def test_the_package_has_its_licenses(name: str):
    names = [file.name for file in distribution("delta-variant").files or ()]
    assert names.count(name) == 1


def test_the_package_declares_no_reference_implementation_of_the_tests():
    required = [each for each in distribution("delta-variant").requires or () if "extra ==" not in each]
    names = {re.split(r"[^\w-]", each)[0] for each in required}
    assert "pyarrow" in names
    assert names & {"deltalake", "duckdb", "pandas", "pyspark", "pytest", "pyzmq"} == set()


def test_the_extra_for_development_contains_that_of_the_unit_tier():
    required = distribution("delta-variant").requires or ()
    extras = {
        name: {each.partition(";")[0].strip() for each in required if f"extra == '{name}'" in each}
        for name in ("dev", "test")
    }
    assert extras["test"]
    assert extras["test"] - extras["dev"] == set()


def test_the_conformance_kit_requires_the_library_in_its_own_version():
    kit, library = distribution("delta-variant-conformance"), distribution("delta-variant")
    assert kit.version == library.version
    required = [each for each in kit.requires or () if "extra ==" not in each]
    assert required == [f"delta-variant=={library.version}"]


def test_the_listed_crates_are_those_of_the_lock_file():
    listed = LISTED.findall((ROOT / "LICENSES-THIRD-PARTY.txt").read_text("utf-8"))
    assert len(listed) > 50
    assert set(listed) <= set(LOCKED.findall((ROOT / "rust" / "Cargo.lock").read_text("utf-8")))


@pytest.mark.parametrize(
    ("expression", "licenses"),
    [
        ("MIT", ["MIT"]),
        ("MIT OR Apache-2.0", ["Apache-2.0"]),
        ("Unlicense OR MIT", ["MIT"]),
        ("BSD-3-Clause/MIT", ["BSD-3-Clause"]),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", ["Apache-2.0", "Unicode-3.0"]),
    ],
)
def test_the_preferred_license_of_each_choice_applies(
    script: ModuleType, expression: str, licenses: list[str]
):
    assert script.elect(expression) == licenses


@pytest.mark.parametrize("expression", ["GPL-3.0", "MIT AND MPL-2.0"])
def test_a_license_that_was_not_reviewed_is_an_error(script: ModuleType, expression: str):
    with pytest.raises(ValueError, match="cannot accept the license"):
        script.elect(expression)


def package(folder: Path, spdx: str, **files: str) -> dict[str, str]:
    """Return the metadata of a crate with files, named by their stems."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_", "-")).write_text(text, encoding="utf-8")
    manifest = str(folder / "Cargo.toml")
    names = {"name": folder.name, "version": "1.0", "repository": "https://example.com/r"}
    return {**names, "license": spdx, "manifest_path": manifest}


def test_the_text_of_an_elected_license_and_notices_are_printed(script: ModuleType, tmp_path: Path):
    crates = [
        package(tmp_path / "a", "MIT OR Apache-2.0", LICENSE_MIT="not elected", NOTICE="notice of a"),
        package(tmp_path / "b", "Unlicense OR MIT", LICENSE_MIT="text of b", UNLICENSE="not elected"),
        package(tmp_path / "c", "MIT"),
    ]
    text = script.render(crates)
    assert "notice of a" in text
    assert "not elected" not in text
    assert "b 1.0, c 1.0\n" in text
    assert text.count("text of b") == 1


def test_a_crate_without_a_text_is_an_error(script: ModuleType, tmp_path: Path):
    with pytest.raises(ValueError, match=r"cannot find the text of the license of c 1\.0"):
        script.render([package(tmp_path / "c", "MIT")])


def test_the_image_of_spark_has_the_requirements_of_the_extra():
    image = (ROOT / "Dockerfile").read_text("utf-8")
    installed = set(re.findall(r"'([a-z]+[<>=][^']+)'", image))
    extra = [each.partition(";") for each in distribution("delta-variant").requires or ()]
    required = {name.strip() for name, _, marker in extra if "extra == 'spark'" in marker.replace('"', "'")}

    def parts(requirements: set[str]) -> set[frozenset[str]]:
        return {frozenset(re.findall(r"[a-z]+|[<>=]+[\d.]+", each)) for each in requirements}

    # The image is that of Spark itself.
    assert parts(installed) == parts({each for each in required if not each.startswith("pyspark")})
    assert len(installed) == len(required) - 1 == 2
