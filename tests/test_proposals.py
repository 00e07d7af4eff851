"""docs/proposals: the encoded examples, checked without this library and with it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "proposals"
SCRIPT = FOLDER / "check_examples.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("check_examples", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_accepts_every_example():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "8 examples decode to their values\n"), done.stderr


def test_this_library_decodes_and_encodes_the_examples_alike():
    from delta_variant.protocol.statistics import decode_bound, encode_bound

    for text, value in script().examples(FOLDER):
        decoded = decode_bound(text)
        assert encode_bound(decoded) == text
        found = decoded.to_python()
        assert {path: str(each) for path, each in found.items() if path != "$['at']"} == {
            path: str(each) for path, each in value.items() if path != "$['at']"
        }


def test_the_script_rejects_a_wrong_value_a_wrong_length_and_other_padding():
    checks = script()
    text, value = next(iter(checks.EXAMPLES.items()))
    assert checks.problem_of(text, {**value, "$['a']": "x"}) is not None
    assert checks.problem_of(checks.encode_z85(checks.decode_z85(text)[:-1] + b"\x01"), value) is not None
    with pytest.raises(ValueError, match="not a multiple of five"):
        checks.decode_z85(text[:-2])
