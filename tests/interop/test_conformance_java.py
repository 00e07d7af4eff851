"""The conformance kit runs on parquet-java and Iceberg, with the JARs that `make jars` downloads."""

from __future__ import annotations

import shutil

import pytest
from support.locations import OWN_CASES, ROOT

from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.runner import run

PACKAGES = ROOT / ".cache" / "engines"

# One case for each function of the adapters, and what the versions of the JARs get wrong in the others.
KNOWN = {
    "parquet-java": {
        "decode/each_basic_type": "pass",
        "encode/object_sorted": "pass",
        "encode/nan_is_no_json": "pass",
        "file/compressed_zstd": "pass",
        "unshred/partially_shredded_objects": "pass",
        "shred/boolean_alone": "pass",
        # The bytes of later fields follow a value that stays in `value`.
        "shred/objects": "wrong value",
        "stats/all_typed": "not offered",
    },
    "iceberg": {
        "decode/each_basic_type": "pass",
        # Fields are looked up in UTF-16 order.
        "decode/object_fields_in_utf8_order": "refused",
        "file/compressed_zstd": "pass",
        "unshred/partially_shredded_objects": "pass",
        "shred/objects": "pass",
        "stats/all_typed": "pass",
        # Bounds of a field that `value` of its object has, too.
        "stats/field_in_value_and_typed_value": "wrong value",
        "encode/object_sorted": "not offered",
    },
}


@pytest.mark.parametrize("name", KNOWN)
def test_an_engine_of_java_has_the_known_outcomes(name: str):
    if shutil.which("mvn") is None:
        pytest.skip("Maven downloads the JARs")
    cases = [case for case in load_cases([OWN_CASES]) if case.id in KNOWN[name]]
    [engine] = run(cases, [name], packages=PACKAGES).engines
    assert engine.absent is None
    assert {result.case.id: result.status for result in engine.results} == KNOWN[name]
