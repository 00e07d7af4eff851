"""Rules of the table features that properties, columns, domains and files of a table need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc

from ..._arrow import total
from ...protocol import features
from ...protocol.features import TableFeature
from ...protocol.types import fields_of, primitive_kinds_of
from .findings import Rule, Violation
from .subjects import TableSubject

__all__ = ["FEATURE_RULES"]


def _lacking(subject: TableSubject) -> Iterator[TableFeature]:
    """Yield the features that the protocol lacks; a preview counts as its feature."""
    protocol = subject.protocol
    if protocol is not None:
        rows = (row for row in features.FEATURES.values() if row.preview_of is None)
        yield from (row for row in rows if not features.supports(protocol, row.name))


def _types(subject: TableSubject) -> Iterator[Violation]:
    kinds = primitive_kinds_of(subject.columns)
    for feature in _lacking(subject):
        for kind in sorted(kinds.intersection(feature.needed_by)):
            names = ", ".join(
                ".".join(path)
                for path, field in fields_of(subject.columns)
                if kind in primitive_kinds_of(field.type)
            )
            yield Violation(
                f"the table has columns of type {kind}, {names}, but its protocol lacks {feature.name}"
            )


def _properties(subject: TableSubject) -> Iterator[Violation]:
    for feature in _lacking(subject):
        prop, beginning = feature.enabled_by, feature.properties_from
        for name, text in sorted(subject.configuration.items()):
            is_on = False
            if prop is not None and name == prop.name:
                try:
                    is_on = prop.parse(text) != prop.default
                except ValueError:
                    continue
            if is_on or (beginning is not None and name.lower().startswith(beginning)):
                yield Violation(
                    f"the table sets {name}={text}, but its protocol lacks the feature {feature.name}"
                )


def _columns(subject: TableSubject) -> Iterator[Violation]:
    for feature in _lacking(subject):
        if (beginning := feature.needed_by_key) is None:
            continue
        for path, field in fields_of(subject.columns):
            keys = [key for key in field.metadata if key.startswith(beginning)]
            if keys:
                name = ".".join(path)
                message = (
                    f"the column {name} has {keys[0]}, but the protocol lacks the feature {feature.name}"
                )
                yield Violation(message, column=name)


def _domains(subject: TableSubject) -> Iterator[Violation]:
    for feature in _lacking(subject):
        beginning = feature.needed_by_domain
        for domain in sorted(subject.survey.domains) if beginning is not None else ():
            if domain.startswith(beginning or ""):
                yield Violation(
                    f"the log has the domainMetadata {domain!r}, but the protocol lacks {feature.name}"
                )


def _files(subject: TableSubject) -> Iterator[Violation]:
    snapshot = subject.survey.snapshot
    if snapshot is None:
        return
    lacking = {feature.name for feature in _lacking(subject)}
    for column, what, name in (
        ("deletion_vector", "a deletion vector", "deletionVectors"),
        ("base_row_id", "a baseRowId", "rowTracking"),
    ):
        has_value: Any = pc.is_valid(snapshot.files[column])
        count = total(has_value)
        if name in lacking and count:
            path = snapshot.files["path"].filter(has_value)[0].as_py()
            more = f", and {count - 1:,} more files have one" if count > 1 else ""
            yield Violation(
                f"the file {path} has {what}, but the protocol lacks the feature {name}{more}", file_path=path
            )


FEATURE_RULES: tuple[Rule[TableSubject], ...] = (
    Rule("T4", "error", _types, "add the feature to the lists of the protocol"),
    Rule("H4", "error", _properties, "add the feature to the protocol, or unset the property"),
    Rule(
        "H10", "error", _columns, "writers that ignore the feature break the column: add it to the protocol"
    ),
    Rule("H10", "error", _domains, "writers that ignore the feature lose the domain: add it to the protocol"),
    Rule(
        "H10",
        "error",
        _files,
        "engines that ignore the feature return deleted rows or lose row ids: add it to the protocol",
    ),
)
