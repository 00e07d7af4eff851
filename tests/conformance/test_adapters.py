"""The adapters of arrow-go, arrow-rs and parquet-java on all cases, after `make adapters` and `make jars`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from support.locations import OWN_CASES, ROOT

from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.runner import run

SOURCES = OWN_CASES / "adapters"
BUILT = ROOT / ".cache" / "adapters"
JARS = ROOT / ".cache" / "engines" / "parquet-java"


class Adapter(NamedTuple):
    """What must be there, the command, the cases that it passes at least, by kind, and the known findings.

    The other kinds are not offered.
    """

    built: Path
    command: Sequence[str]
    passes: Mapping[str, int]
    findings: Mapping[str, str]


ADAPTERS = {
    "go": Adapter(
        BUILT / "arrow-go-adapter",
        [str(BUILT / "arrow-go-adapter")],
        {"decode": 119, "encode": 38, "file": 55, "shred": 39, "unshred": 101},
        {
            # An empty array is printed as null, and texts of types without a time zone end with Z.
            "decode/array_empty": "wrong value",
            "decode/primitive_timestamp_ntz": "wrong value",
            "decode/object_of_256_fields": "crashed",
            "encode/integer_of_39_digits": "crashed",
            "encode/text_after_the_value": "accepted",
            "shred/a_text_that_is_not_utf8": "accepted",
            # A row that is not an array gets an empty one in `typed_value`.
            "shred/arrays": "wrong value",
            "shred/elements_without_a_type": "crashed",
            "unshred/no_typed_value_of_an_element": "crashed",
            "file/optional_metadata": "refused",
        },
    ),
    "rust": Adapter(
        BUILT / "rust" / "debug" / "arrow-rs-adapter",
        [str(BUILT / "rust" / "debug" / "arrow-rs-adapter")],
        {"decode": 131, "encode": 40, "file": 51, "shred": 0, "unshred": 105},
        {
            "decode/cut_uuid": "crashed",
            "decode/empty_name": "refused",
            # The text of an infinity is not JSON.
            "decode/double_infinity": "wrong value",
            # Values of other types are cast to the type of the column, and lose digits.
            "shred/boolean_alone": "wrong value",
            "shred/decimal_9_2_without_loss": "wrong value",
            "shred/int64_by_value": "wrong value",
            # The annotation VARIANT of each file lacks the version, without which Spark refuses the file.
            "shred/objects": "wrong layout",
            "unshred/field_twice_in_value": "accepted",
            "unshred/shredded_name_not_in_metadata": "crashed",
        },
    ),
    "java": Adapter(
        JARS,
        ["java", "-Xmx1g", "-cp", f"{JARS}/*", str(SOURCES / "java" / "Adapter.java")],
        {"decode": 121, "encode": 38, "file": 50, "unshred": 105},
        {
            "decode/metadata_offsets_decrease": "accepted",
            "encode/text_after_the_value": "accepted",
            "file/order_typed_value_metadata_value": "refused",
            "unshred/object_in_value": "wrong value",
        },
    ),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_by_the_page_has_the_known_outcomes(name: str) -> None:
    adapter = ADAPTERS[name]
    if not adapter.built.exists():
        pytest.skip(f"`make adapters jars` makes {adapter.built}")
    [engine] = run(load_cases([OWN_CASES]), [name], command=lambda _: adapter.command).engines
    assert engine.absent is None
    outcomes = {result.case.id: result.status for result in engine.results}
    assert {case: outcomes[case] for case in adapter.findings} == adapter.findings
    offered = {result.case.kind for result in engine.results if result.status != "not offered"}
    assert offered == adapter.passes.keys()
    passed = Counter(result.case.kind for result in engine.results if result.status == "pass")
    assert {kind: min(passed[kind], count) for kind, count in adapter.passes.items()} == adapter.passes
    assert "expected an answer of" not in "".join(result.got for result in engine.results)


def test_adapters_are_short() -> None:
    sources = [each for each in SOURCES.rglob("*") if each.suffix in (".go", ".java", ".py", ".rs")]
    lines = {each.name: len(each.read_text(encoding="utf-8").splitlines()) for each in sources}
    assert len(lines) >= 6
    assert {name: count for name, count in lines.items() if count > 100} == {}
