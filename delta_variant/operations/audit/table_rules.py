"""Rules of the protocol, schema, properties, features and row ids of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.compute as pc

from ..._arrow import total
from ...errors import MalformedLogError, SchemaError
from ...log.pending_commit import NO_ROW_IDS, read_high_water_mark
from ...log.snapshot import Snapshot
from ...protocol import features, properties
from ...protocol.actions import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, Protocol
from ...protocol.clustering import decode_clustering_columns
from ...protocol.features import TableFeature
from ...protocol.properties import COLUMN_MAPPING_MAX_COLUMN_ID as MAX_COLUMN_ID
from ...protocol.schema.column_mapping import COLUMN_ID, physical_schema
from ...protocol.schema.rules import contradictions, maps_with_variant_keys
from ...protocol.statistics import counts_of, texts_at
from ...protocol.types import GENERATION_EXPRESSION, VARIANT, fields_of, primitive_kinds_of, variant_defaults
from .findings import Rules, Violation
from .subjects import TableSubject

TABLE_RULES = Rules[TableSubject]()
rule = TABLE_RULES.add


@rule("T1", "error", "commit a metaData action with a valid schema")
def _unreadable_schema(subject: TableSubject) -> Iterator[Violation]:
    if isinstance(subject.schema, SchemaError):
        yield Violation(subject.schema.message)


@rule("T1", "warning", 'commit a schema with the string "variant"; some readers reject the object')
def _object_form(subject: TableSubject) -> Iterator[Violation]:
    if subject.metadata is None or isinstance(subject.schema, SchemaError):
        return
    for path in _object_types(json.loads(subject.metadata.schema_string), ()):
        yield Violation(
            f'the type of {".".join(path)} is {{"type":"variant"}}, expected the string "variant"',
            column=".".join(path),
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


DROP_ONE = "drop the preview with drop_feature when all readers know the stable name"


def _both_names(name: str) -> Callable[[TableSubject], Iterator[Violation]]:
    def check(subject: TableSubject) -> Iterator[Violation]:
        known = set() if subject.protocol is None else features.supported_features(subject.protocol)
        if {name, f"{name}-preview"} <= known:
            yield Violation(f"the protocol lists both {name} and {name}-preview, two names of one feature")

    return check


rule("T3", "info", DROP_ONE)(_both_names("variantType"))


@rule("T5", "error", "commit a protocol with two consistent lists")
def _feature_lists(subject: TableSubject) -> Iterator[Violation]:
    protocol = subject.protocol
    if protocol is None:
        return
    for name, needed, listed in _lists(protocol):
        if needed and listed is None:
            yield Violation(f"the protocol has no {name}, which its version requires")
        if not needed and listed:
            yield Violation(f"the protocol has {name}, but its version is too low for a feature list")
    reader, writer = (set(listed or ()) for _, _, listed in _lists(protocol))
    for name in sorted(reader - writer):
        yield Violation(f"the protocol lists {name} in readerFeatures but not in writerFeatures")
    # A version of readers can stand for a feature: Spark writes columnMapping next to minReaderVersion 2.
    for name in sorted(writer - reader - features.reader_features(protocol)):
        if name in features.FEATURES and features.FEATURES[name].is_reader_writer:
            yield Violation(f"the protocol lists {name} in writerFeatures but not in readerFeatures")


def _lists(protocol: Protocol) -> tuple[tuple[str, bool, tuple[str, ...] | None], ...]:
    return (
        ("readerFeatures", protocol.min_reader_version >= 3, protocol.reader_features),
        ("writerFeatures", protocol.min_writer_version >= 7, protocol.writer_features),
    )


@rule("T6", "error", "store the map as an array of structs with a key and a value")
def _map_keys(subject: TableSubject) -> Iterator[Violation]:
    for path in maps_with_variant_keys(subject.columns):
        yield Violation(
            f"the map {'.'.join(path)} has Variant keys, but Variants are not comparable",
            column=".".join(path),
        )


@rule("T7", "error", "use an ordinary column, extracted from a path of the Variant")
def _disallowed_variants(subject: TableSubject) -> Iterator[Violation]:
    types = {field.name: field.type for field in subject.columns.fields}
    for name in subject.partition_columns:
        if types.get(name) == VARIANT:
            yield Violation(f"the table is partitioned by the Variant column {name}", column=name)
    names = {column.path: column.name for column in subject.variants}
    for path in _clustering_columns(subject):
        if path in names:
            yield Violation(f"the table is clustered by the Variant column {names[path]}", column=names[path])
    for path, field in fields_of(subject.columns):
        if field.type == VARIANT and GENERATION_EXPRESSION in field.metadata:
            name = ".".join(path)
            yield Violation(f"the Variant column {name} is a generated column", column=name)


def _clustering_columns(subject: TableSubject) -> tuple[tuple[str, ...], ...]:
    domain = subject.survey.domains.get(CLUSTERING_DOMAIN)
    try:
        return decode_clustering_columns(domain.configuration) if domain else ()
    except MalformedLogError:
        return ()


@rule("T11", "error", "commit a schema with the names in the data files")
def _physical_names(subject: TableSubject) -> Iterator[Violation]:
    try:
        physical_schema(subject.columns, subject.mode)
    except SchemaError as error:
        yield Violation(error.message, column=error.column)


@rule(
    "T17",
    "error",
    "the next column can read the data of another: commit a schema with an id of its own for each column",
)
def _column_ids(subject: TableSubject) -> Iterator[Violation]:
    if subject.mode == "none":
        return
    owners: dict[object, str] = {}
    for path, field in fields_of(subject.columns):
        name, column_id = ".".join(path), field.metadata.get(COLUMN_ID)
        if type(column_id) is not int:
            yield Violation(
                f"the column {name} has the {COLUMN_ID} {column_id!r}, expected a number", column=name
            )
        elif owners.setdefault(column_id, name) != name:
            message = f"the columns {owners[column_id]} and {name} both have the {COLUMN_ID} {column_id}"
            yield Violation(message, column=name)
    ids = [each for each in owners if isinstance(each, int)]
    stated = subject.configuration.get(MAX_COLUMN_ID.name)
    if ids and (stated is None or (stated.isdecimal() and int(stated) < max(ids))):
        yield Violation(
            f"{MAX_COLUMN_ID.name} is {stated or 'not set'}, but the column {owners[max(ids)]} has the "
            f"{COLUMN_ID} {max(ids)}"
        )


@rule("T18", "error", "readers expect Parquet: commit a metaData action with the provider parquet")
def _format(subject: TableSubject) -> Iterator[Violation]:
    provider = "parquet" if subject.metadata is None else subject.metadata.format.provider
    if provider != "parquet":
        yield Violation(f"the format of the data files is {provider!r}, expected 'parquet'")


@rule("T13", "error", "unset the property")
def _iceberg(subject: TableSubject) -> Iterator[Violation]:
    for name in ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2"):
        if subject.configuration.get(name, "").lower() == "true" and subject.variants:
            yield Violation(f"the table sets {name}=true, which does not allow its Variant columns")


@rule("T14", "error", "commit a metaData action with consistent names")
def _contradictions(subject: TableSubject) -> Iterator[Violation]:
    for column, sentence in contradictions(subject.columns, subject.partition_columns):
        yield Violation(sentence, column=column)


@rule("T20", "error", "no writer can cluster by it: commit the domain with physical names of columns")
def _unknown_clustering_columns(subject: TableSubject) -> Iterator[Violation]:
    if not subject.columns.fields:
        return
    known = {tuple(map(str.lower, path)) for path, _ in fields_of(subject.physical)}
    if (domain := subject.survey.domains.get(CLUSTERING_DOMAIN)) is not None:
        try:
            decode_clustering_columns(domain.configuration)
        except MalformedLogError as error:
            yield Violation(error.message)
    for path in _clustering_columns(subject):
        if tuple(map(str.lower, path)) not in known:
            yield Violation(f"the table is clustered by {'.'.join(path)}, which is not a column of it")


@rule("T16", "warning", "rename one of them; Delta on Spark rejects writes to the table")
def _names_that_differ_by_case(subject: TableSubject) -> Iterator[Violation]:
    spellings: dict[tuple[str, ...], tuple[str, ...]] = {}
    for path, _ in fields_of(subject.columns):
        # Names that are equal are a violation of T14.
        first = spellings.setdefault((*path[:-1], path[-1].lower()), path)
        if first != path:
            names = f"{'.'.join(first)} and {'.'.join(path)}"
            yield Violation(f"the columns {names} differ only by case", column=".".join(path))


@rule("X8", "warning", "drop the default; some readers reject the table")
def _defaults(subject: TableSubject) -> Iterator[Violation]:
    for name, default in variant_defaults(subject.columns):
        yield Violation(f"the default of the Variant column {name} is {default}, expected NULL", column=name)


rule("X9", "info", DROP_ONE)(_both_names("variantShredding"))


@rule("H5", "warning", "set a valid value; Spark can reject the table")
def _property_texts(subject: TableSubject) -> Iterator[Violation]:
    for name, text in sorted(subject.configuration.items()):
        prop = properties.PROPERTIES.get(name)
        if prop is not None and not prop.accepts(text):
            yield Violation(f"invalid table property {name}={text!r}, expected {prop.expected}")


@rule("H9", "error", "add the missing feature")
def _required_features(subject: TableSubject) -> Iterator[Violation]:
    if subject.protocol is None:
        return
    names = features.supported_features(subject.protocol)
    for name in sorted(names):
        feature = features.FEATURES.get(name)
        # Delta on Spark lists variantShredding-preview without variantType, so the preview requires nothing.
        for needed in () if feature is None else feature.requires:
            if not features.supports(subject.protocol, needed):
                yield Violation(f"the protocol lists {name} but not {needed}, which {name} requires")


LEAKED_KEY = "__VARIANT_METADATA_KEY"


@rule("S1", "warning", "remove the key; Spark cannot read a struct that contains such a column")
def _leaked_keys(subject: TableSubject) -> Iterator[Violation]:
    for path, field in fields_of(subject.columns):
        if LEAKED_KEY in field.metadata:
            name = ".".join(path)
            yield Violation(
                f"the metadata of the column {name} has the internal key {LEAKED_KEY} of Spark", column=name
            )


@rule("S2", "warning", "audit the table with a version that supports the feature")
def _unknown_features(subject: TableSubject) -> Iterator[Violation]:
    if subject.protocol is None:
        return
    for name in sorted(features.supported_features(subject.protocol)):
        feature = features.FEATURES.get(name)
        if feature is None or not feature.can_read:
            yield Violation(f"this version does not support the feature {name} of the protocol")


@rule("T4", "error", "add the feature to the lists of the protocol")
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


def _lacking(subject: TableSubject) -> Iterator[TableFeature]:
    """Yield the features that the protocol lacks; a preview counts as its feature."""
    protocol = subject.protocol
    if protocol is not None:
        rows = (row for row in features.FEATURES.values() if row.preview_of is None)
        yield from (row for row in rows if not features.supports(protocol, row.name))


@rule("H4", "error", "add the feature to the protocol, or unset the property")
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


@rule("H10", "error", "writers that ignore the feature break the column: add it to the protocol")
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


@rule("H10", "error", "writers that ignore the feature lose the domain: add it to the protocol")
def _domains(subject: TableSubject) -> Iterator[Violation]:
    for feature in _lacking(subject):
        beginning = feature.needed_by_domain
        for domain in sorted(subject.survey.domains) if beginning is not None else ():
            if domain.startswith(beginning or ""):
                yield Violation(
                    f"the log has the domainMetadata {domain!r}, but the protocol lacks {feature.name}"
                )


@rule(
    "H10",
    "error",
    "engines that ignore the feature return deleted rows or lose row ids: add it to the protocol",
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


@rule("F13", "error", "two rows have one id: commit one of the files again with a new baseRowId")
def _overlaps(subject: TableSubject) -> Iterator[Violation]:
    last, last_path = NO_ROW_IDS, ""
    for first, end, path in row_id_ranges(subject.survey.snapshot):
        if last_path and first <= last:
            yield Violation(
                f"the file has the row ids {first:,} to {end:,}, but {last_path} has those up to {last:,}",
                file_path=path,
            )
        if end > last:
            last, last_path = end, path


def row_id_ranges(snapshot: Snapshot | None) -> list[tuple[int, int, str]]:
    """Return first and last row id and path of each file that has row ids and numRecords, by its first id."""
    if snapshot is None:
        return []
    files = snapshot.files
    (numbers,) = texts_at(files["stats"], [(("numRecords",), "number")])
    rows = zip(
        files["base_row_id"].to_pylist(),
        counts_of(numbers).to_pylist(),
        map(str, files["path"].to_pylist()),
        strict=True,
    )
    return sorted(
        (first, first + count - 1, path) for first, count, path in rows if first is not None and count
    )


@rule("F14", "error", "the next commit assigns ids that rows have: run repair-log")
def _above_the_mark(subject: TableSubject) -> Iterator[Violation]:
    ranges = row_id_ranges(subject.survey.snapshot)
    if not ranges:
        return
    domain = subject.survey.domains.get(ROW_TRACKING_DOMAIN)
    try:
        mark = read_high_water_mark([domain] if domain else [], NO_ROW_IDS)
    except MalformedLogError as error:
        yield Violation(error.message)
        return
    greatest, path = max((end, path) for _, end, path in ranges)
    if greatest > mark:
        stated = f"rowIdHighWaterMark is {mark:,}" if domain else "the log has no rowIdHighWaterMark"
        yield Violation(f"{stated}, but the file has row ids up to {greatest:,}", file_path=path)
