"""Check the layout of what an engine writes by the rules of the audit: schema, log and statistics.

The values are compared elsewhere, and decoded without this library.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from delta_variant import audit_table
from delta_variant.operations.audit.findings import Finding

from .shredded_columns import schema_of

Violation: TypeAlias = Mapping[str, str]
"""`rule`, as in docs/audit-rules.md, `severity`, error or warning, and `message`."""

SEVERITIES: Mapping[tuple[str, str], str] = {
    # VariantEncoding.md requires both of every Parquet file. Readers of Delta use the schema of the table.
    ("P-S2", "info"): "warning",
    ("P-S3", "info"): "warning",
    # VariantShredding.md shows null for an empty rest, but does not call an empty object invalid.
    ("W7", "error"): "warning",
    # Types that the specifications allow, and Spark does not read.
    ("P-T", "warning"): "info",
}
"""Severities of an engine's files, if not those of an audit."""

PROPERTY = "delta.enableVariantShredding"
SHREDDED: Violation = {
    "rule": "H3",
    "severity": "error",
    "message": f"a new file is shredded, but {PROPERTY} is not true",
}
"""The rule of the README of the cases: an audit cannot know the property of the time of writing."""

FEATURES = ["variantType", "variantShredding"]


def file_violations(file: Path, column: str) -> list[Violation]:
    """Return the violations of a Parquet file with a Variant column, as the only file of a Delta table."""
    with tempfile.TemporaryDirectory(prefix="layout-") as scratch:
        table = Path(scratch)
        shutil.copyfile(file, table / "written.parquet")
        log = table / "_delta_log"
        log.mkdir()
        actions = _actions_of("written.parquet", file.stat().st_size, column)
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{0:020}.json").write_text(text, encoding="utf-8")
        return _violations(audit_table(str(table), data=True).findings)


def _actions_of(name: str, size: int, column: str) -> list[Mapping[str, Any]]:
    field = {"name": column, "type": "variant", "nullable": True, "metadata": {}}
    metadata = {
        "id": "00000000-0000-4000-8000-000000000001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [field]}),
        "partitionColumns": [],
        "configuration": {PROPERTY: "true"},
    }
    add = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    features = {"readerFeatures": FEATURES, "writerFeatures": FEATURES}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    return [{"protocol": protocol}, {"metaData": metadata}, {"add": add}]


def table_violations(table: Path, before: Path, column: str) -> list[Violation]:
    """Return the violations of a table that an engine changed, without those of the table before."""
    known = audit_table(str(before))
    own = {(finding.rule, finding.message) for finding in known.findings}
    audit = audit_table(str(table), data=True, since=known.version)
    found = _violations(each for each in audit.findings if (each.rule, each.message) not in own)
    is_enabled = audit.snapshot is None or audit.snapshot.properties.get(PROPERTY, "").lower() == "true"
    if not is_enabled and any(schema_of(table / file.path, column) is not None for file in audit.files):
        found.append(SHREDDED)
    return found


def _violations(findings: Iterable[Finding]) -> list[Violation]:
    found = [(each, SEVERITIES.get((each.rule, each.severity), each.severity)) for each in findings]
    return [
        {"rule": each.rule, "severity": severity, "message": each.message}
        for each, severity in found
        if severity != "info"
    ]
