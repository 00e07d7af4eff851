"""The findings of an audit in the formats of tools that show results of checks: SARIF and JUnit XML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from xml.etree import ElementTree

from .._version import package_version
from ..errors import printable
from ..operations.audit import Audit
from ..operations.audit.findings import Finding
from .rule_texts import first_text, rule_url, rules


@dataclass(frozen=True)
class Check:
    """A test case: `outcome` is None if it passes; `title` is the message of a failure."""

    group: str
    name: str
    outcome: Literal["failure", "skipped", "system-out"] | None = None
    severity: str = ""
    title: str = ""
    text: str = ""


def junit_xml(name: str, checks: Sequence[Check]) -> str:
    def count(outcome: str) -> str:
        return str(sum(each.outcome == outcome for each in checks))

    counts = {"tests": str(len(checks)), "failures": count("failure"), "skipped": count("skipped")}
    suite = ElementTree.Element("testsuite", {"name": printable(name), **counts})
    for check in checks:
        names = {"classname": printable(check.group), "name": printable(check.name)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if check.outcome is not None:
            given = {"type": check.severity, "message": printable(check.title)}
            outcome = ElementTree.SubElement(case, check.outcome, given if check.title else {})
            outcome.text = "\n".join(map(printable, check.text.splitlines()))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


LEVELS = {"error": "error", "warning": "warning", "info": "note"}
"""The levels of SARIF."""

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

MAX_LINES = 100
"""A failure of JUnit lists at most as many findings."""


def audit_sarif(audit: Audit) -> str:
    """Return the findings as SARIF 2.1.0, with a location relative to the table, `TABLE`."""
    found = sorted({each.rule for each in audit.findings}, key=rules().index)
    driver = {
        "name": "delta-variant",
        "version": package_version(),
        "rules": [dict(_sarif_rule(rule)) for rule in found],
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {"TABLE": {"uri": f"{_absolute(audit.uri)}/"}},
        "results": [_sarif_result(each) for each in audit.findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _absolute(uri: str) -> str:
    return uri.rstrip("/") if "://" in uri else Path(uri).absolute().as_uri()


def _sarif_rule(rule: str) -> Iterator[tuple[str, Any]]:
    text = first_text(rule)
    yield "id", rule
    yield "shortDescription", {"text": text.must_hold}
    yield "defaultConfiguration", {"level": LEVELS[text.severity]}
    if (url := rule_url(rule)) is not None:
        yield "helpUri", url


def _sarif_result(finding: Finding) -> dict[str, Any]:
    log = "_delta_log/" if finding.version is None else f"_delta_log/{finding.version:020}.json"
    path = log if finding.file_path is None else finding.file_path
    place = [str(each) for each in (finding.column, finding.path_key) if each is not None]
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": quote(path), "uriBaseId": "TABLE"}}
    }
    if place:
        location["logicalLocations"] = [{"fullyQualifiedName": " ".join(place)}]
    identity = repr((finding.rule, path, *place, finding.row))
    return {
        "ruleId": finding.rule,
        "level": LEVELS[finding.severity],
        "message": {"text": finding.sentence},
        "locations": [location],
        "partialFingerprints": {"finding/v1": hashlib.sha256(identity.encode()).hexdigest()},
    }


def audit_junit(audit: Audit) -> str:
    """Return JUnit XML with a test case for each rule, which fails with an error or a warning."""
    by_rule: dict[str, list[Finding]] = {rule: [] for rule in rules()}
    for each in audit.findings:
        by_rule[each.rule].append(each)
    return junit_xml(f"audit of {audit.uri}", [_check(rule, found) for rule, found in by_rule.items()])


def _check(rule: str, findings: Sequence[Finding]) -> Check:
    group, name = "delta-variant audit", f"{rule}: {first_text(rule).must_hold}"
    if not findings:
        return Check(group, name)
    text = "\n".join(printable(each.sentence) for each in findings[:MAX_LINES])
    if all(each.severity == "info" for each in findings):
        return Check(group, name, "system-out", text=text)
    return Check(group, name, "failure", findings[0].severity, f"{len(findings)} x {rule}", text)
