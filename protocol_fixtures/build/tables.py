"""Write the cases of the kinds `table` and `log`: `python protocol_fixtures/build/tables.py`.

Needs pyarrow, and nothing of `delta_variant`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from case_folder import commit, new_case, write_parquet
from shredding import UNSHREDDED, Json, group_type, shredded, unshredded
from variant_bytes import encode, obj, z85

OBJECT_OF_A = pa.struct({"a": pa.int64()})
SHREDDED = group_type(OBJECT_OF_A)

TYPE_FEATURE = "PROTOCOL.md, Variant Data Type"
SHREDDING_FEATURE = "PROTOCOL.md, Variant Shredding"
FEATURES = "PROTOCOL.md, Table Features"
STATISTICS = "PROTOCOL.md, Statistics for Variant Columns"

ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
V = {"name": "v", "type": "variant", "nullable": True, "metadata": {}}


# Actions of a log.


def protocol(*features: str, writer: Sequence[str] = (), only: str | None = None) -> Json:
    """Return a protocol 3, 7 with features in both lists, or in one; `writer` are writer features."""
    lists = {name: list(features) for name in ("readerFeatures", "writerFeatures") if only in (None, name)}
    action: Json = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []}
    action.update(lists)
    action["writerFeatures"] += writer
    return {"protocol": action}


def legacy_protocol(reader: int, writer: int) -> Json:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}


def metadata(fields: Sequence[Json] = (ID, V), partitions: Sequence[str] = (), **properties: str) -> Json:
    schema = json.dumps({"type": "struct", "fields": list(fields)}, separators=(",", ":"), ensure_ascii=False)
    return {
        "metaData": {
            "id": "00000000-0000-4000-8000-000000000001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": list(partitions),
            "configuration": {name.replace("__", "."): text for name, text in properties.items()},
            "createdTime": 1700000000000,
        }
    }


def add(path: str, size: int, *, stats: Json | str | None = None, **more: Any) -> Json:
    text = stats if stats is None or isinstance(stats, str) else json.dumps(stats, separators=(",", ":"))
    action: Json = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1700000000000}
    return {"add": {**action, "dataChange": True, **({} if text is None else {"stats": text}), **more}}


# Rows, and files of them.


def a_is(number: int) -> Json:
    return obj(a={"int64": number})


def rows_of(*variants: Json | None, first: int = 1) -> list[Json]:
    return [{"id": number, "v": each} for number, each in enumerate(variants, start=first)]


PLAIN = rows_of(a_is(1), obj(b={"string": "x"}), {"null": None}, None)
"""Two objects, a Variant null and an SQL NULL."""


@dataclass(frozen=True)
class Layout:
    """The layout of a Variant in a file."""

    type: pa.DataType
    of: Callable[[Json | None], Json | None]


AS_VARIANT = Layout(UNSHREDDED, unshredded)
AS_SHREDDED = Layout(SHREDDED, lambda typed: shredded(typed, OBJECT_OF_A))


def write_rows(path: Path, rows: Sequence[Json], layout: Layout = AS_VARIANT, **names: str) -> int:
    """Write rows of `id` and `v` as a file; `names` maps columns to their names in the file."""
    ids = pa.array([row["id"] for row in rows], pa.int64())
    variants = pa.array([layout.of(row["v"]) for row in rows], layout.type)
    return write_parquet(path, pa.table({names.get("id", "id"): ids, names.get("v", "v"): variants}))


# Cases.


def table_case(
    name: str,
    rules: str,
    verdict: str,
    section: str,
    about: str,
    expect: Json,
    *,
    kind: str = "table",
    **more: Any,
) -> Path:
    """Start a case, and return the folder of its table."""
    given = {"table": "table", **more}
    return new_case(kind, name, rules, verdict, section, about, given, expect) / "table"


def one_file(
    table: Path,
    first: Json,
    meta: Json | None = None,
    rows: Sequence[Json] = PLAIN,
    layout: Layout = AS_VARIANT,
    stats: Json | str | None = None,
) -> None:
    """Write a table of one commit and one file."""
    size = write_rows(table / "part-0.parquet", rows, layout)
    commit(table, 0, first, metadata() if meta is None else meta, add("part-0.parquet", size, stats=stats))


def protocols() -> None:
    """T1 to T5, H1, H4, H5, H9: Variant in protocol and schema."""
    rows = {"rows": PLAIN}
    for name, rules, about, features in (
        ("type_feature", "T1 T2 T9", "A column of the type `variant` is read", ("variantType",)),
        ("type_feature_preview", "T3", "The preview name stands for it", ("variantType-preview",)),
        (
            "type_feature_both_names",
            "T3",
            "Both names may stand together",
            ("variantType", "variantType-preview"),
        ),
        (
            "shredding_feature_preview",
            "H1 H6",
            "The preview name of shredding stands for the feature",
            ("variantType", "variantShredding-preview"),
        ),
        (
            "shredding_feature_both_names",
            "H1 H6",
            "Both names of shredding may stand together",
            ("variantType", "variantShredding", "variantShredding-preview"),
        ),
    ):
        table = table_case(name, rules, "keeps", TYPE_FEATURE, about, rows)
        one_file(table, protocol(*features), layout=AS_SHREDDED if "shredding" in name else AS_VARIANT)

    table = table_case(
        "type_feature_unknown_name",
        "T3",
        "breaks",
        FEATURES,
        "An unknown reader feature is rejected, however similar its name is to another",
        {"error": "UnsupportedFeatureError"},
    )
    one_file(table, protocol("variantType", "variantType-dev"))

    either = {**rows, "error": "ProtocolError"}
    for name, rules, about, action in (
        (
            "type_feature_missing",
            "T4",
            "A Variant column without its feature is rejected, or read",
            protocol("deletionVectors"),
        ),
        (
            "type_feature_missing_in_legacy_protocol",
            "T2 T4",
            "Versions 1 and 2 do not support Variant: rejected, or read",
            legacy_protocol(1, 2),
        ),
        (
            "type_feature_in_reader_list_only",
            "T5",
            "The feature is in readerFeatures only: rejected, or read",
            protocol("variantType", only="readerFeatures"),
        ),
        (
            "type_feature_in_writer_list_only",
            "T5",
            "The feature is in writerFeatures only: rejected, or read",
            protocol("variantType", only="writerFeatures"),
        ),
        (
            "shredding_feature_without_type_feature",
            "H9",
            "variantShredding needs variantType, and the schema has a Variant: rejected, or read",
            protocol("variantShredding"),
        ),
    ):
        one_file(table_case(name, rules, "breaks", FEATURES, about, either), action)
    table = table_case(
        "shredding_feature_in_one_list",
        "H1",
        "breaks",
        FEATURES,
        "variantShredding is in readerFeatures only: rejected, or read",
        either,
    )
    one_sided = protocol("variantType", "variantShredding")
    one_sided["protocol"]["writerFeatures"] = ["variantType"]
    one_file(table, one_sided, layout=AS_SHREDDED)


def schemas() -> None:
    """T1, T6, T7, T10 to T12: Variants in a schema."""
    array = {"name": "l", "type": {"type": "array", "elementType": {"type": "variant"}, "containsNull": True}}
    array_field = {**array, "nullable": True, "metadata": {}}
    table = table_case(
        "schema_object_form",
        "T1",
        "keeps",
        "PROTOCOL.md, Variant Type",
        "The object form of the type, as the example of the specification has it, is read",
        {"rows": [{"id": 1, "l": [{"int8": 1}, None]}]},
    )
    lists = pa.array([[unshredded({"int8": 1}), None]], pa.list_(pa.field("element", UNSHREDDED)))
    size = write_parquet(table / "part-0.parquet", pa.table({"id": pa.array([1], pa.int64()), "l": lists}))
    commit(table, 0, protocol("variantType"), metadata((ID, array_field)), add("part-0.parquet", size))

    table = table_case(
        "schema_unknown_type",
        "T1",
        "breaks",
        "PROTOCOL.md, Schema Serialization Format",
        "The type is `variant` and nothing like it",
        {"error": "SchemaError"},
    )
    one_file(table, protocol("variantType"), metadata((ID, {**V, "type": "Variant"})))

    nested_variants()
    map_keys()
    added_column()
    mapped_columns()

    table = table_case(
        "partitioned_by_variant",
        "T7",
        "breaks",
        TYPE_FEATURE,
        "A Variant cannot be a partition column",
        {"error": "SchemaError"},
    )
    ids = pa.table({"id": pa.array([1], pa.int64())})
    size = write_parquet(table / "part-0.parquet", ids)
    commit(
        table,
        0,
        protocol("variantType"),
        metadata(partitions=("v",)),
        add("part-0.parquet", size, partitionValues={"v": "1"}),
    )

    day = {"name": "day", "type": "string", "nullable": True, "metadata": {}}
    table = table_case(
        "partitioned_by_string",
        "T7 ST13",
        "keeps",
        TYPE_FEATURE,
        "A table with a Variant may be partitioned by other columns",
        {"rows": [{**row, "day": "a b" if row["id"] < 3 else None} for row in PLAIN]},
    )
    sizes = [
        write_rows(table / "day=a%20b/part-0.parquet", PLAIN[:2]),
        write_rows(table / "day=__HIVE_DEFAULT_PARTITION__/part-1.parquet", PLAIN[2:]),
    ]
    commit(
        table,
        0,
        protocol("variantType"),
        metadata((ID, V, day), partitions=("day",)),
        add("day=a%2520b/part-0.parquet", sizes[0], partitionValues={"day": "a b"}),
        add("day=__HIVE_DEFAULT_PARTITION__/part-1.parquet", sizes[1], partitionValues={"day": None}),
    )

    table = table_case(
        "not_null_variant_null",
        "T7",
        "keeps",
        TYPE_FEATURE,
        "A Variant null is not SQL NULL, so a NOT NULL column may contain it",
        {"rows": PLAIN[:3]},
    )
    not_null = metadata((ID, {**V, "nullable": False}))
    one_file(table, protocol("variantType", writer=["invariants"]), not_null, PLAIN[:3])

    table = table_case(
        "default_of_a_variant",
        "T7",
        "breaks",
        "PROTOCOL.md, Default Columns",
        "A Variant column must default to null: the table is rejected, or read, as defaults are for writers",
        {"rows": PLAIN, "error": "UnsupportedFeatureError"},
    )
    default = {**V, "metadata": {"CURRENT_DEFAULT": 'parse_json(\'{"k":"v"}\')'}}
    one_file(table, protocol("variantType", writer=["allowColumnDefaults"]), metadata((ID, default)))


def nested_variants() -> None:
    """Variants in structs, arrays and maps, also nested in each other."""
    fields = [
        ID,
        {"name": "s", "type": _struct(V), "nullable": True, "metadata": {}},
        {"name": "l", "type": _array("variant"), "nullable": True, "metadata": {}},
        {"name": "m", "type": _map("string", "variant"), "nullable": True, "metadata": {}},
        {"name": "ls", "type": _array(_struct(V)), "nullable": True, "metadata": {}},
        {"name": "sl", "type": _struct({**V, "type": _array("variant")}), "nullable": True, "metadata": {}},
    ]
    one, null = a_is(1), {"null": None}
    rows: list[Json] = [
        {
            "id": 1,
            "s": {"v": one},
            "l": [one, None, null],
            "m": {"k": one, "n": None},
            "ls": [{"v": one}, {"v": None}, None],
            "sl": {"v": [one, None]},
        },
        {"id": 2, "s": None, "l": None, "m": None, "ls": None, "sl": None},
        {"id": 3, "s": {"v": None}, "l": [], "m": {}, "ls": [], "sl": {"v": None}},
    ]
    table = table_case(
        "nested_variants",
        "T6",
        "keeps",
        TYPE_FEATURE,
        "Variants stand in structs, arrays, values of maps, and these in each other",
        {"rows": rows},
    )
    v = pa.field("v", UNSHREDDED)
    element = pa.list_(pa.field("element", UNSHREDDED))
    types = {
        "id": pa.int64(),
        "s": pa.struct([v]),
        "l": element,
        "m": pa.map_(pa.string(), UNSHREDDED),
        "ls": pa.list_(pa.field("element", pa.struct([v]))),
        "sl": pa.struct([pa.field("v", element)]),
    }
    columns = {name: pa.array([_encoded(row[name]) for row in rows], kind) for name, kind in types.items()}
    size = write_parquet(table / "part-0.parquet", pa.table(columns))
    commit(table, 0, protocol("variantType"), metadata(fields), add("part-0.parquet", size))


TYPED = {"null", "int64"}


def _encoded(each: Any) -> Any:
    """Return a nested value with its Variants encoded."""
    if isinstance(each, list):
        return [_encoded(part) for part in each]
    if not isinstance(each, dict):
        return each
    if len(each) == 1 and set(each) <= TYPED | {"object"}:
        return unshredded(each)
    if set(each) <= {"k", "n"}:
        return [(key, _encoded(part)) for key, part in each.items()]
    return {name: _encoded(part) for name, part in each.items()}


def _struct(*fields: Json) -> Json:
    return {"type": "struct", "fields": list(fields)}


def _array(element: Any) -> Json:
    return {"type": "array", "elementType": element, "containsNull": True}


def _map(key: Any, item: Any) -> Json:
    return {"type": "map", "keyType": key, "valueType": item, "valueContainsNull": True}


def map_keys() -> None:
    table = table_case(
        "variant_as_map_key",
        "T6",
        "breaks",
        TYPE_FEATURE,
        "Variants cannot be compared, so they cannot be keys of maps",
        {"error": "SchemaError"},
    )
    keys = pa.map_(UNSHREDDED, pa.string())
    column = pa.array([[(unshredded({"int8": 1}), "x")]], keys)
    size = write_parquet(table / "part-0.parquet", pa.table({"id": pa.array([1], pa.int64()), "m": column}))
    field = {"name": "m", "type": _map("variant", "string"), "nullable": True, "metadata": {}}
    commit(table, 0, protocol("variantType"), metadata((ID, field)), add("part-0.parquet", size))


def added_column() -> None:
    """T2, T10, T12, T14: a column that older files lack, and the version before the column was added."""
    old, new = [1, 2], rows_of(a_is(3), None, first=3)

    def write(table: Path) -> None:
        size = write_parquet(table / "part-0.parquet", pa.table({"id": pa.array(old, pa.int64())}))
        commit(table, 0, legacy_protocol(1, 2), metadata((ID,)), add("part-0.parquet", size))
        upgraded = protocol("variantType", writer=["invariants", "appendOnly"])
        size = write_rows(table / "part-1.parquet", new)
        commit(table, 1, upgraded, metadata(), add("part-1.parquet", size))

    rows = [*rows_of(None, None), *new]
    about = "Files from before the column have NULL in it"
    write(table_case("added_column", "T2 T10 T12", "keeps", TYPE_FEATURE, about, {"rows": rows}))
    about = "The version before the column was added does not have it"
    expect = {"rows": [{"id": number} for number in old]}
    write(
        table_case("added_column_before", "T14", "keeps", "PROTOCOL.md, Snapshot", about, expect, version=0)
    )
    about = "A version that the table does not have is rejected"
    section = "PROTOCOL.md, Delta Log Entries"
    expect = {"error": "VersionNotFoundError"}
    write(table_case("version_not_there", "T14", "breaks", section, about, expect, version=2, kind="log"))
    about = "The upgrade lists the features that versions 1 and 2 imply, in addition to the new one"
    expect = {
        "version": 1,
        "files": ["part-0.parquet", "part-1.parquet"],
        "reader_features": ["variantType"],
        "writer_features": ["variantType", "invariants", "appendOnly"],
        "properties": {},
        "schema": {"id": "long", "v": "variant"},
    }
    write(table_case("upgraded_protocol", "T2", "keeps", FEATURES, about, expect, kind="log"))

    changed = {"name": "v", "type": "variant", "nullable": True}
    changes = [{"toType": "variant", "fromType": "string"}]
    table = table_case(
        "type_changed_to_variant",
        "T10",
        "breaks",
        "PROTOCOL.md, Type Widening",
        "No type can be widened to Variant: a column that was text is rejected",
        {"error": "UnsupportedFeatureError"},
    )
    text = pa.table({"id": pa.array([1], pa.int64()), "v": pa.array(['{"a":1}'])})
    size = write_parquet(table / "part-0.parquet", text)
    commit(
        table,
        0,
        protocol("variantType", "typeWidening"),
        metadata((ID, {**changed, "metadata": {"delta.typeChanges": changes}})),
        add("part-0.parquet", size),
    )


def mapped_columns() -> None:
    """T11, ST12: columns with other names in the files."""

    def mapped(field: Json, number: int) -> Json:
        ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
        return {**field, "metadata": ids}

    fields = (mapped(ID, 1), mapped(V, 2))
    action = protocol("variantType", "columnMapping")
    about = "The column has another name in the file; what is inside a Variant is never renamed"
    table = table_case(
        "mapped_by_name", "T11", "keeps", "PROTOCOL.md, Column Mapping", about, {"rows": PLAIN}
    )
    size = write_rows(table / "part-0.parquet", PLAIN, AS_SHREDDED, id="col-1", v="col-2")
    properties = {"delta__columnMapping__mode": "name", "delta__columnMapping__maxColumnId": "2"}
    stats = {
        "numRecords": 4,
        "nullCount": {"col-1": 0, "col-2": 1},
        "minValues": {"col-1": 1},
        "maxValues": {"col-1": 4},
    }
    commit(table, 0, action, metadata(fields, **properties), add("part-0.parquet", size, stats=stats))

    properties["delta__columnMapping__mode"] = "id"
    about = "Columns are found by field id; ids of the parts of a Variant are ignored"
    table = table_case("mapped_by_id", "T11", "keeps", "PROTOCOL.md, Column Mapping", about, {"rows": PLAIN})
    parts = [
        part.with_metadata({"PARQUET:field_id": str(number)})
        for number, part in enumerate(UNSHREDDED, start=100)
    ]
    id_field = pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "1"})
    v_field = pa.field("y", pa.struct(parts), metadata={"PARQUET:field_id": "2"})
    columns = [
        pa.array([row["id"] for row in PLAIN], pa.int64()),
        pa.array([unshredded(row["v"]) for row in PLAIN], v_field.type),
    ]
    size = write_parquet(table / "part-0.parquet", pa.table(columns, schema=pa.schema([id_field, v_field])))
    commit(table, 0, action, metadata(fields, **properties), add("part-0.parquet", size))

    about = "A file without field ids lacks all columns: it is rejected, or they are NULL"
    section = "PROTOCOL.md, Reader Requirements for Column Mapping"
    expect = {"rows": [{"id": None, "v": None}] * 4, "error": "DataFileError"}
    table = table_case("mapped_by_id_without_ids", "T11", "breaks", section, about, expect)
    size = write_rows(table / "part-0.parquet", PLAIN, id="col-1", v="col-2")
    commit(table, 0, action, metadata(fields, **properties), add("part-0.parquet", size))


SHREDDING = ("variantType", "variantShredding")
ENABLED = {"delta__enableVariantShredding": "true"}


def shredding() -> None:
    """H2 to H8, H10: the property, and files of different layouts in one table."""
    for name, rules, verdict, about, features, properties, expect in (
        (
            "shredded",
            "H2 H7",
            "keeps",
            "A shredded file of a table that enables shredding is read whole",
            SHREDDING,
            ENABLED,
            {},
        ),
        (
            "shredded_after_property_off",
            "H3 H10",
            "keeps",
            "The property is off again and the feature stays: files that are shredded stay readable",
            SHREDDING,
            {"delta__enableVariantShredding": "false"},
            {},
        ),
        (
            "shredded_without_the_feature",
            "H8 T9",
            "breaks",
            "A shredded file in a table without the feature is rejected or read, but never as NULL",
            ("variantType",),
            {},
            {"error": "DataFileError"},
        ),
        (
            "property_without_the_feature",
            "H4",
            "breaks",
            "The property is set without the feature: rejected, or read; writers must reject the table",
            ("variantType",),
            ENABLED,
            {"error": "ProtocolError"},
        ),
        (
            "property_in_capitals",
            "H5",
            "keeps",
            "`TRUE` is taken for `true`",
            SHREDDING,
            {"delta__enableVariantShredding": "TRUE"},
            {},
        ),
        (
            "property_of_another_word",
            "H5",
            "breaks",
            "Any text other than `true` disables the feature: the table is read, or rejected",
            SHREDDING,
            {"delta__enableVariantShredding": "yes"},
            {"error": "ProtocolError"},
        ),
    ):
        table = table_case(name, rules, verdict, SHREDDING_FEATURE, about, {"rows": PLAIN, **expect})
        one_file(table, protocol(*features), metadata(**properties), layout=AS_SHREDDED)
    mixed_files()

    rows = [{"id": number, "v": a_is(number)} for number in (1, 2)]
    about = "The log keeps the feature when the property is off"
    expect = {
        "version": 1,
        "files": ["part-0.parquet", "part-1.parquet"],
        "reader_features": list(SHREDDING),
        "writer_features": list(SHREDDING),
        "properties": {"delta.enableVariantShredding": "false"},
    }
    table = table_case("property_off_again", "H10", "keeps", SHREDDING_FEATURE, about, expect, kind="log")
    sizes = [
        write_rows(table / "part-0.parquet", rows[:1], AS_SHREDDED),
        write_rows(table / "part-1.parquet", rows[1:]),
    ]
    commit(table, 0, protocol(*SHREDDING), metadata(**ENABLED), add("part-0.parquet", sizes[0]))
    off = metadata(delta__enableVariantShredding="false")
    commit(table, 1, off, add("part-1.parquet", sizes[1]))


def mixed_files() -> None:
    """H6: two Variant columns in two files, all shredded differently."""
    w = {**V, "name": "w"}
    rows = [{"id": n, "v": a_is(n), "w": obj(a={"int64": 10 * n}, b={"string": "x"})} for n in (1, 2)]
    table = table_case(
        "mixed_files",
        "H6",
        "keeps",
        SHREDDING_FEATURE,
        "Files and columns that are shredded and that are not are one table",
        {"rows": rows},
    )
    layouts = (("part-0.parquet", AS_SHREDDED, AS_VARIANT), ("part-1.parquet", AS_VARIANT, AS_SHREDDED))
    adds = []
    for row, (name, first, second) in zip(rows, layouts, strict=True):
        columns = {
            "id": pa.array([row["id"]], pa.int64()),
            "v": pa.array([first.of(row["v"])], first.type),
            "w": pa.array([second.of(row["w"])], second.type),
        }
        adds.append(add(name, write_parquet(table / name, pa.table(columns))))
    commit(table, 0, protocol(*SHREDDING), metadata((ID, V, w), **ENABLED), *adds)

    table = table_case(
        "mixed_files_damaged",
        "H6",
        "breaks",
        "VariantShredding.md, Value Shredding",
        "A shredded file without `metadata` is rejected, because its Variants lack a dictionary",
        {"error": "ShreddingError"},
    )
    kind = pa.struct([field for field in SHREDDED if field.name != "metadata"])
    layout = Layout(kind, lambda typed: _without_metadata(shredded(typed, OBJECT_OF_A)))
    one_file(table, protocol(*SHREDDING), metadata(**ENABLED), layout=layout)


def _without_metadata(group: Json | None) -> Json | None:
    return group and {name: part for name, part in group.items() if name != "metadata"}


def statistics() -> None:
    """T8, Z4, Z7, ST15, ST17: statistics never change the rows of a table."""
    bounds = {"object": {"$['a']": {"int64": 1}}}
    right = z85(b"".join(encode(bounds)))
    lie = z85(b"".join(encode({"object": {"$['a']": {"int64": 1000}}})))
    for name, rules, verdict, about, features, text in (
        ("stats_of_a_variant", "ST1 ST14", "keeps", "Bounds and null counts are read past", SHREDDING, right),
        (
            "stats_without_the_feature",
            "T8",
            "breaks",
            "Bounds of a Variant in a table without variantShredding are ignored",
            ("variantType",),
            lie,
        ),
        (
            "stats_not_z85",
            "Z4 ST17",
            "breaks",
            "Text that is not z85 is as none",
            SHREDDING,
            "~~",
        ),
        (
            "stats_not_text",
            "Z7",
            "breaks",
            "An object instead of text is as none",
            SHREDDING,
            {"a": 1},
        ),
    ):
        table = table_case(name, rules, verdict, STATISTICS, about, {"rows": PLAIN})
        sides: Json = {"minValues": {"id": 1, "v": text}, "maxValues": {"id": 4, "v": text}}
        stats = {"numRecords": 4, **sides, "nullCount": {"id": 0, "v": 1}}
        layout = AS_SHREDDED if features == SHREDDING else AS_VARIANT
        one_file(table, protocol(*features), layout=layout, stats=stats)

    other = z85(b"".join(encode({"object": {"$['a']": {"string": "x"}}})))
    for name, rules, verdict, about, least, greatest in (
        ("stats_of_two_types", "ST8", "breaks", "Bounds of two types are as none", right, other),
        ("stats_of_one_side", "TR2", "keeps", "A path may have a bound on one side only", right, None),
    ):
        table = table_case(name, rules, verdict, STATISTICS, about, {"rows": PLAIN})
        sides = {"minValues": {"id": 1, "v": least}, "maxValues": {"id": 4, "v": greatest}}
        if greatest is None:
            del sides["maxValues"]["v"]
        stats = {"numRecords": 4, **sides, "nullCount": {"id": 0, "v": 1}}
        one_file(table, protocol(*SHREDDING), layout=AS_SHREDDED, stats=stats)

    table = table_case(
        "stats_wide_after_delete",
        "ST15",
        "keeps",
        "PROTOCOL.md, Per-file Statistics",
        "Bounds of a file with a deletion vector may be wide; its deleted rows are not read",
        {"rows": PLAIN[1:]},
    )
    size = write_rows(table / "part-0.parquet", PLAIN, AS_SHREDDED)
    # A RoaringBitmapArray: magic number, one bitmap under the high bits 0, and in it one array container.
    bitmap = (
        struct.pack("<II", 12346, 1) + struct.pack("<HH", 0, 0) + struct.pack("<I", 16) + struct.pack("<H", 0)
    )
    vector = struct.pack("<iqi", 1681511377, 1, 0) + bitmap
    descriptor = {
        "storageType": "i",
        "pathOrInlineDv": z85(vector),
        "sizeInBytes": len(vector),
        "cardinality": 1,
    }
    sides = {"minValues": {"id": 1, "v": right}, "maxValues": {"id": 4, "v": right}}
    stats = {"numRecords": 4, **sides, "nullCount": {"id": 0, "v": 1}, "tightBounds": False}
    commit(
        table,
        0,
        protocol(*SHREDDING, "deletionVectors"),
        metadata(**ENABLED),
        add("part-0.parquet", size, stats=stats, deletionVector=descriptor),
    )


def checkpoints() -> None:
    """ST16, ST17: a checkpoint whose statistics are columns, those of the Variant as Variants."""
    bounds = encode({"object": {"$['a']": {"int64": 1}}})
    for name, rules, verdict, about, metadata_bytes in (
        ("checkpoint_with_struct_stats", "ST16", "keeps", "Statistics may be columns only", bounds[0]),
        (
            "checkpoint_with_damaged_stats",
            "ST17",
            "breaks",
            "A bound that is not a Variant is ignored",
            b"\x02",
        ),
    ):
        table = table_case(name, rules, verdict, "PROTOCOL.md, Checkpoint Schema", about, {"rows": PLAIN})
        size = write_rows(table / "part-0.parquet", PLAIN, AS_SHREDDED)
        actions = (protocol(*SHREDDING), metadata(**ENABLED), add("part-0.parquet", size))
        commit(table, 1, {"commitInfo": {"operation": "OPTIMIZE"}})
        variant = {"value": bounds[1], "metadata": metadata_bytes}
        _write_checkpoint(table / "_delta_log" / f"{0:020}.checkpoint.parquet", actions, variant)


def compactions() -> None:
    """Q10: a log compaction instead of its commits, which are there as well."""
    section = "PROTOCOL.md, Log Compaction Files"
    for name, verdict, about, newest_first in (
        ("compaction", "keeps", "A log compaction has the rows of the commits that it covers", False),
        (
            "compaction_newest_first",
            "breaks",
            "A file that a log compaction adds and removes is removed, in whatever order the actions are",
            True,
        ),
    ):
        rows = rows_of(a_is(10), a_is(20), a_is(30))
        table = table_case(name, "Q10", verdict, section, about, {"rows": rows})
        parts = (rows_of(a_is(1), a_is(2)), rows[:2], rows[2:])
        adds = [
            add(f"part-{number}.parquet", write_rows(table / f"part-{number}.parquet", part, AS_SHREDDED))
            for number, part in enumerate(parts)
        ]
        removed = {
            "remove": {"path": "part-0.parquet", "deletionTimestamp": 1700000000000, "dataChange": True}
        }
        start = (protocol(*SHREDDING), metadata(**ENABLED))
        commit(table, 0, *start, adds[0])
        commit(table, 1, removed, adds[1])
        commit(table, 2, adds[2])
        compacted = (
            [adds[2], adds[1], removed, adds[0], *start] if newest_first else [*start, removed, *adds[1:]]
        )
        text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in compacted)
        path = table / "_delta_log" / f"{0:020}.{2:020}.compacted.json"
        path.write_text(text, encoding="utf-8")


def _write_checkpoint(path: Path, actions: Sequence[Json], bound: Json) -> None:
    """Write a checkpoint of protocol, metaData and one add, with `bound` on both sides of `v`."""
    texts = pa.map_(pa.string(), pa.string())
    names = pa.list_(pa.field("element", pa.string()))
    side = pa.struct(
        [("id", pa.int64()), ("v", pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))]
    )
    nulls = pa.struct([("id", pa.int64()), ("v", pa.int64())])
    parsed = [("numRecords", pa.int64()), ("minValues", side), ("maxValues", side), ("nullCount", nulls)]
    versions = [("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]
    features = [("readerFeatures", names), ("writerFeatures", names)]
    of_format = pa.struct([("provider", pa.string()), ("options", texts)])
    of_metadata = [("id", pa.string()), ("format", of_format), ("schemaString", pa.string())]
    of_table = [("partitionColumns", names), ("configuration", texts), ("createdTime", pa.int64())]
    of_file = [("path", pa.string()), ("partitionValues", texts), ("size", pa.int64())]
    of_change = [("modificationTime", pa.int64()), ("dataChange", pa.bool_())]
    schema = pa.schema(
        [
            ("protocol", pa.struct([*versions, *features])),
            ("metaData", pa.struct([*of_metadata, *of_table])),
            ("add", pa.struct([*of_file, *of_change, ("stats_parsed", pa.struct(parsed))])),
        ]
    )
    stats = {
        "numRecords": 4,
        "minValues": {"id": 1, "v": bound},
        "maxValues": {"id": 4, "v": bound},
        "nullCount": {"id": 0, "v": 1},
    }
    rows = json.loads(json.dumps(actions))
    rows[1]["metaData"]["configuration"] = list(rows[1]["metaData"]["configuration"].items())
    rows[1]["metaData"]["format"]["options"] = []
    rows[2]["add"] |= {"partitionValues": [], "dataChange": False, "stats_parsed": stats}
    write_parquet(path, pa.Table.from_pylist(rows, schema))


def main() -> None:
    """Write all cases."""
    checkpoints()
    compactions()
    protocols()
    schemas()
    shredding()
    statistics()


if __name__ == "__main__":
    main()
