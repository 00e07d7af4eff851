"""Results of checks as JUnit XML, which Jenkins, GitLab and GitHub show as tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from ..errors import printable


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
