"""Rules of the log, and of the protocol, schema and properties of a table (requirements 4, 5, 10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ...errors import ProtocolError, SchemaError
from ...protocol import features, properties
from ...protocol.actions import CLUSTERING_DOMAIN, Protocol
from ...protocol.schema.column_mapping import physical_schema
from ...protocol.schema.rules import contradictions
from ...protocol.types import VARIANT, ArrayType, DataType, MapType, StructType, fields_of, primitives_of
from . import compaction_rules, log_survey
from .findings import Rule, Violation
from .log_survey import LogSurvey
from .subjects import TableSubject

__all__ = ["LOG_RULES", "TABLE_RULES"]

LEAKED_KEY = "__VARIANT_METADATA_KEY"


def _needs_variant_type(subject: TableSubject) -> Iterator[Violation]:
    protocol = subject.protocol
    if protocol is None or VARIANT.name not in primitives_of(subject.columns):
        return
    if not features.supports(protocol, "variantType"):
        names = ", ".join(column.name for column in subject.variants)
        yield Violation(f"the Variant columns {names} are in a table whose protocol lacks variantType")


def _feature_lists(subject: TableSubject) -> Iterator[Violation]:
    protocol = subject.protocol
    if protocol is None:
        return
    for name, needed, listed in _lists(protocol):
        if needed and listed is None:
            yield Violation(f"the protocol has no {name}, which its version asks for")
        if not needed and listed:
            yield Violation(f"the protocol has {name}, and its version is too low for a list")
    reader, writer = (set(listed or ()) for _, _, listed in _lists(protocol))
    for name in sorted(reader - writer):
        yield Violation(f"the protocol lists {name} in readerFeatures and not in writerFeatures")
    for name in sorted(writer - reader):
        if name in features.FEATURES and features.FEATURES[name].is_reader_writer:
            yield Violation(f"the protocol lists {name} in writerFeatures and not in readerFeatures")


def _lists(protocol: Protocol) -> tuple[tuple[str, bool, tuple[str, ...] | None], ...]:
    return (
        ("readerFeatures", protocol.min_reader_version >= 3, protocol.reader_features),
        ("writerFeatures", protocol.min_writer_version >= 7, protocol.writer_features),
    )


def _both_names(name: str) -> Callable[[TableSubject], Iterator[Violation]]:
    def check(subject: TableSubject) -> Iterator[Violation]:
        known = set() if subject.protocol is None else features.supported_features(subject.protocol)
        if {name, f"{name}-preview"} <= known:
            yield Violation(f"the protocol lists {name} and {name}-preview, which are one feature")

    return check


def _unknown_features(subject: TableSubject) -> Iterator[Violation]:
    if subject.protocol is None:
        return
    for name in sorted(features.supported_features(subject.protocol)):
        feature = features.FEATURES.get(name)
        if feature is None or not feature.can_read:
            yield Violation(f"the table uses the feature {name}, which this version does not know")


def _unreadable_schema(subject: TableSubject) -> Iterator[Violation]:
    if isinstance(subject.schema, SchemaError):
        yield Violation(str(subject.schema))


def _object_form(subject: TableSubject) -> Iterator[Violation]:
    if subject.metadata is None or isinstance(subject.schema, SchemaError):
        return
    for path in _object_types(json.loads(subject.metadata.schema_string), ()):
        yield Violation(
            f'the type of {".".join(path)} is written {{"type":"variant"}}', column=".".join(path)
        )


def _object_types(document: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(document, dict):
        return
    if document.get("type") == "variant" and "name" not in document:
        yield path
    for field in document.get("fields") or ():
        yield from _object_types(field.get("type"), (*path, str(field.get("name"))))
    for step, key in (("element", "elementType"), ("key", "keyType"), ("value", "valueType")):
        yield from _object_types(document.get(key), (*path, step))


def _map_keys(subject: TableSubject) -> Iterator[Violation]:
    for path in _variant_keys(subject.columns, ()):
        yield Violation(
            f"the map {'.'.join(path)} has Variant keys, which cannot be compared", column=".".join(path)
        )


def _variant_keys(data_type: DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            yield from _variant_keys(field.type, (*path, field.name))
    elif isinstance(data_type, ArrayType):
        yield from _variant_keys(data_type.element_type, (*path, "element"))
    elif isinstance(data_type, MapType):
        if VARIANT.name in primitives_of(data_type.key_type):
            yield path
        yield from _variant_keys(data_type.value_type, (*path, "value"))


def _disallowed_variants(subject: TableSubject) -> Iterator[Violation]:
    types = {field.name: field.type for field in subject.columns.fields}
    for name in subject.partition_columns:
        if types.get(name) == VARIANT:
            yield Violation(f"the table is partitioned by the Variant {name}", column=name)
    names = {column.path: column.name for column in subject.variants}
    for path in _clustering_columns(subject):
        if path in names:
            yield Violation(f"the table is clustered by the Variant {names[path]}", column=names[path])
    for path, field in fields_of(subject.columns):
        if field.type == VARIANT and "delta.generationExpression" in field.metadata:
            name = ".".join(path)
            yield Violation(f"the Variant {name} is a generated column", column=name)


def _contradictions(subject: TableSubject) -> Iterator[Violation]:
    for sentence in contradictions(subject.columns, subject.partition_columns):
        yield Violation(sentence)


def _clustering_columns(subject: TableSubject) -> Iterator[tuple[str, ...]]:
    domain = subject.survey.domains.get(CLUSTERING_DOMAIN)
    try:
        columns = json.loads(domain.configuration)["clusteringColumns"] if domain else ()
        yield from (tuple(column) for column in columns)
    except (ValueError, TypeError, KeyError, RecursionError):
        return


def _defaults(subject: TableSubject) -> Iterator[Violation]:
    for path, field in fields_of(subject.columns):
        default = str(field.metadata.get("CURRENT_DEFAULT", "NULL"))
        if field.type == VARIANT and default.strip().upper() != "NULL":
            name = ".".join(path)
            yield Violation(f"the Variant {name} defaults to {default}, and not to NULL", column=name)


def _leaked_keys(subject: TableSubject) -> Iterator[Violation]:
    for path, field in fields_of(subject.columns):
        if LEAKED_KEY in field.metadata:
            name = ".".join(path)
            yield Violation(
                f"the metadata of the column {name} has the key {LEAKED_KEY} of Spark", column=name
            )


def _physical_names(subject: TableSubject) -> Iterator[Violation]:
    try:
        physical_schema(subject.columns, subject.mode)
    except SchemaError as error:
        yield Violation(str(error))


def _iceberg(subject: TableSubject) -> Iterator[Violation]:
    for name in ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2"):
        if subject.configuration.get(name, "").lower() == "true" and subject.variants:
            yield Violation(f"the table has {name}=true, and Variants, which that forbids")


def _property_without_feature(subject: TableSubject) -> Iterator[Violation]:
    if subject.protocol is None:
        return
    for row in features.FEATURES.values():
        prop = row.enabled_by
        if (
            prop is None
            or prop.name not in subject.configuration
            or features.supports(subject.protocol, row.name)
        ):
            continue
        text = subject.configuration[prop.name]
        try:
            is_on = prop.parse(text) != prop.default
        except ValueError:
            continue
        if is_on:
            yield Violation(f"{prop.name}={text}, and the protocol lacks the feature {row.name}")


def _property_texts(subject: TableSubject) -> Iterator[Violation]:
    for name, text in sorted(subject.configuration.items()):
        prop = properties.PROPERTIES.get(name)
        if prop is not None and not prop.accepts(text):
            yield Violation(f"the table property {name} is {text!r}, and must be {prop.expected}")


def _required_features(subject: TableSubject) -> Iterator[Violation]:
    if subject.protocol is None:
        return
    names = features.supported_features(subject.protocol)
    for name in sorted(names):
        feature = features.FEATURES.get(name)
        # The preview of shredding stands without a type (requirements X10).
        for needed in () if feature is None else feature.requires:
            if not features.supports(subject.protocol, needed):
                yield Violation(f"the protocol lists {name}, which needs {needed}")


def _unmapped(subject: TableSubject) -> Iterator[Violation]:
    try:
        properties.get(subject.configuration, properties.COLUMN_MAPPING_MODE)
    except ProtocolError as error:
        yield Violation(str(error))


LOG_RULES: tuple[Rule[LogSurvey], ...] = (
    Rule("L0", "error", log_survey.not_loadable, "readers refuse it; mend what the other findings name"),
    Rule(
        "L1",
        "error",
        log_survey.commit_violations("L1"),
        "restore the commit from a copy; what it did is not known",
    ),
    Rule("L2", "error", log_survey.gaps, "restore the commit from a copy"),
    Rule(
        "L3",
        "error",
        log_survey.commit_violations("L3"),
        "readers may take either action; commit what is meant once more",
    ),
    Rule("L4", "error", log_survey.no_protocol_or_metadata, "restore the commit that had it"),
    Rule("L5", "warning", log_survey.checkpoints, "delete it, and write another one"),
    Rule("L6", "warning", log_survey.last_checkpoint, "delete it, and write a checkpoint"),
    Rule("L8", "warning", log_survey.checksums, "delete the file: it is only a hint, and a wrong one"),
    Rule("L9", "error", log_survey.in_commit_timestamps, "time travel by timestamp goes wrong there"),
    Rule(
        "L10",
        "error",
        compaction_rules.unreconciled,
        "readers may return removed rows; delete the file if the commits that it covers are still in the log",
    ),
    Rule(
        "L11",
        "error",
        compaction_rules.contradictions,
        "delete the file: readers that use it see another table than readers of the commits",
    ),
    Rule(
        "L12",
        "error",
        log_survey.impossible_versions,
        "remove the file: this library ignores it, and other readers may fail to load the table",
    ),
)

TABLE_RULES: tuple[Rule[TableSubject], ...] = (
    Rule(
        "T1",
        "error",
        _unreadable_schema,
        "no reader can say what the columns are; commit a metaData that can",
    ),
    Rule(
        "T1",
        "warning",
        _object_form,
        'write the type as the string "variant": not every reader knows this form',
    ),
    Rule("T3", "info", _both_names("variantType"), "leave it so, for neither can be dropped"),
    Rule("T4", "error", _needs_variant_type, "add the feature to both lists of the protocol"),
    Rule("T5", "error", _feature_lists, "commit a protocol whose two lists agree"),
    Rule("T6", "error", _map_keys, "write the map as an array of keys and values"),
    Rule("T7", "error", _disallowed_variants, "take an ordinary column, made of a path of the Variant"),
    Rule("T11", "error", _physical_names, "commit a schema with the names that the data files have"),
    Rule("T13", "error", _iceberg, "unset the property"),
    Rule("T14", "error", _contradictions, "commit a metaData whose names agree"),
    Rule("X8", "warning", _defaults, "drop the default: some readers refuse the table for it"),
    Rule("X9", "info", _both_names("variantShredding"), "leave it so, for neither can be dropped"),
    Rule("H4", "error", _property_without_feature, "add the feature to the protocol, or unset the property"),
    Rule("H5", "warning", _property_texts, "set it anew: Spark refuses to read the table"),
    Rule("H9", "error", _required_features, "add that feature, too"),
    Rule(
        "S1", "warning", _leaked_keys, "remove the key: such a column cannot be read when it is in a struct"
    ),
    Rule("S2", "warning", _unknown_features, "look at the table with a version that knows it"),
)
