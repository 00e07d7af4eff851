"""Write the cases of Delta features next to Variants: `python protocol_fixtures/build/features.py`.

Deletion vectors, row ids, change data, clustering, CHECK constraints, generated columns and checkpoints of
version 2. Needs pyarrow, and nothing of `delta_variant`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID
from zlib import crc32

import pyarrow as pa
from case_folder import commit, new_case, write_parquet
from lost import key
from tables import (
    AS_SHREDDED,
    ENABLED,
    ID,
    SHREDDING,
    Json,
    Layout,
    V,
    a_is,
    add,
    metadata,
    protocol,
    rows_of,
    write_rows,
)
from tables import AS_VARIANT as UNSHREDDED
from variant_bytes import encode, int64, obj, text, z85

VECTORS = "PROTOCOL.md, Deletion Vectors"
ROW_IDS = "PROTOCOL.md, Row IDs"
CHANGES = "PROTOCOL.md, Add CDC File"
COMPATIBILITY = "PROTOCOL.md, Compatibility with other Delta Features"
PROPERTY = "PROTOCOL.md, Variant Shredding"

ROWS = rows_of(a_is(1), obj(a=int64(2), b=text("x")), obj(b=text("y")), {"null": None}, None, a_is(6))

Action = dict[str, Any]


def case(
    kind: str,
    name: str,
    rules: str,
    section: str,
    about: str,
    expect: Json,
    *,
    breaks: bool = False,
    **given: Any,
) -> Path:
    """Start a case, and return the folder of its table."""
    verdict = "breaks" if breaks else "keeps"
    given = {"table": "table", **given}
    return new_case(kind, name, rules, verdict, section, about, given, expect) / "table"


def file(table: Path, number: int, rows: Sequence[Json], layout: Layout = UNSHREDDED, **more: Any) -> Action:
    """Write a data file, and return its add action."""
    name = f"part-{number}.parquet"
    nulls = sum(row["v"] is None for row in rows)
    ids = [row["id"] for row in rows]
    sides = {"minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}}
    stats = {"numRecords": len(rows), **sides, "nullCount": {"id": 0, "v": nulls}}
    return add(name, write_rows(table / name, rows, layout), stats=stats, **more)


def removed(action: Action, **more: Any) -> Action:
    """Return the remove action of a file."""
    names = ("path", "size", "partitionValues", "deletionVector")
    kept = {name: action["add"][name] for name in names if name in action["add"]}
    of_remove = {"deletionTimestamp": 1700000000000, "dataChange": True, "extendedFileMetadata": True}
    return {"remove": {**kept, **of_remove, **more}}


# Deletion vectors.


def bitmap(*rows: int) -> bytes:
    """Return a RoaringBitmapArray of rows below 65,536, as one array container."""
    container = struct.pack(f"<{len(rows)}H", *rows)
    header = struct.pack("<II", 12346, 1) + struct.pack("<HH", 0, len(rows) - 1) + struct.pack("<I", 16)
    return struct.pack("<iqi", 1681511377, 1, 0) + header + container


def inline(*rows: int) -> Json:
    data = bitmap(*rows)
    padded = z85(data + bytes(-len(data) % 4))
    return {"storageType": "i", "pathOrInlineDv": padded, "sizeInBytes": len(data), "cardinality": len(rows)}


def in_file(table: Path, *rows: int) -> Json:
    """Write a file of one deletion vector, and return its descriptor."""
    data, name = bitmap(*rows), UUID("00112233-4455-6677-8899-aabbccddeeff")
    content = b"\1" + struct.pack(">i", len(data)) + data + struct.pack(">I", crc32(data))
    table.mkdir(parents=True, exist_ok=True)
    (table / f"deletion_vector_{name}.bin").write_bytes(content)
    size = {"offset": 1, "sizeInBytes": len(data), "cardinality": len(rows)}
    return {"storageType": "u", "pathOrInlineDv": z85(name.bytes), **size}


HAS_VECTORS = {"delta__enableDeletionVectors": "true"}
UNSHREDDED_VECTORS = protocol("variantType", "deletionVectors"), metadata(**HAS_VECTORS)
SHREDDED_VECTORS = protocol(*SHREDDING, "deletionVectors"), metadata(**ENABLED, **HAS_VECTORS)
"""The start of a log whose table has files with deletion vectors."""


def deletion_vectors() -> None:
    """Q11: deleted rows are not read, and no rewrite restores them."""
    about = "The rows of a deletion vector in a file are not read"
    table = case(
        "table", "deletion_vector_in_a_file", "Q11", VECTORS, about, {"rows": [*ROWS[:1], *ROWS[3:]]}
    )
    commit(table, 0, *UNSHREDDED_VECTORS, file(table, 0, ROWS, deletionVector=in_file(table, 1, 2)))

    about = "A deletion vector counts the rows of the file, not those of a row group"
    left = [ROWS[1], ROWS[2], *ROWS[4:]]
    table = case("table", "deletion_vector_of_row_groups", "Q11", VECTORS, about, {"rows": left})
    action = file(table, 0, ROWS, AS_SHREDDED, deletionVector=inline(0, 3))
    path = table / "part-0.parquet"
    action["add"]["size"] = write_parquet(path, pa.parquet.read_table(path), row_group_size=2)
    commit(table, 0, *SHREDDED_VECTORS, action)

    more = rows_of(a_is(7), a_is(8), first=7)
    left = [*ROWS[:1], *ROWS[3:], *more]
    about = "A compaction does not restore the rows of a deletion vector"
    table = case(
        "rewrite", "compact_deletion_vectors", "Q9 Q11", VECTORS, about, {"rows": left}, compact=True
    )
    first = file(table, 0, ROWS, AS_SHREDDED, deletionVector=inline(1, 2))
    commit(table, 0, *SHREDDED_VECTORS, first, file(table, 1, more, AS_SHREDDED))
    about = "A delete from a file with a deletion vector deletes one more row"
    table = case(
        "rewrite", "delete_with_deletion_vectors", "Q9 Q11", VECTORS, about, {"rows": left[1:]}, delete=1
    )
    commit(
        table,
        0,
        *UNSHREDDED_VECTORS,
        file(table, 0, ROWS, deletionVector=in_file(table, 1, 2)),
        file(table, 1, more),
    )


# Row ids.


def row_ids() -> None:
    """Q12: a rewrite keeps the ids of rows."""
    columns = {
        "materializedRowIdColumnName": "_row-id",
        "materializedRowCommitVersionColumnName": "_row-version",
    }
    properties = {f"delta__rowTracking__{name}": column for name, column in columns.items()}
    mark = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":7}', "removed": False}
    start = (
        protocol("variantType", writer=("rowTracking", "domainMetadata")),
        metadata(delta__enableRowTracking="true", **properties),
        {"domainMetadata": mark},
    )
    more = rows_of(a_is(7), a_is(8), first=7)

    def files(table: Path) -> tuple[Action, Action]:
        first = file(table, 0, ROWS, baseRowId=0, defaultRowCommitVersion=0)
        return first, file(table, 1, more, baseRowId=6, defaultRowCommitVersion=0)

    about = "Row ids are not columns of the table"
    table = case("table", "row_tracking", "Q12", ROW_IDS, about, {"rows": ROWS})
    action = file(table, 0, ROWS, baseRowId=0, defaultRowCommitVersion=0)
    path = table / "part-0.parquet"
    stored = pa.parquet.read_table(path)
    ids = pa.array([5, 4, None, None, None, None], pa.int64())
    action["add"]["size"] = write_parquet(path, stored.append_column("_row-id", ids))
    commit(table, 0, *start, action)

    expect = {"rows": [*ROWS, *more], "row_ids": list(range(8))}
    table = case(
        "rewrite", "compact_row_ids", "Q9 Q12", ROW_IDS, "A compaction keeps row ids", expect, compact=True
    )
    commit(table, 0, *start, *files(table))
    expect = {"rows": [*ROWS[1:], *more], "row_ids": list(range(1, 8))}
    about = "A delete keeps the ids of the other rows"
    table = case("rewrite", "delete_row_ids", "Q9 Q12", ROW_IDS, about, expect, delete=1)
    commit(table, 0, *start, *files(table))


# Change data.


def write_changes(table: Path, number: int, changes: Sequence[tuple[str, Json]]) -> Action:
    """Write a change file, and return its action."""
    name = f"_change_data/cdc-{number}.parquet"
    columns = {
        "id": pa.array([row["id"] for _, row in changes], pa.int64()),
        "v": pa.array([UNSHREDDED.of(row["v"]) for _, row in changes], UNSHREDDED.type),
        "_change_type": pa.array([kind for kind, _ in changes]),
    }
    size = write_parquet(table / name, pa.table(columns))
    return {"cdc": {"path": name, "partitionValues": {}, "size": size, "dataChange": False}}


def changed(version: int, kind: str, *rows: Json) -> list[Json]:
    return [{**row, "_change_type": kind, "_commit_version": version} for row in rows]


CDF = (
    protocol("variantType", writer=("changeDataFeed",)),
    metadata(delta__enableChangeDataFeed="true"),
)


def change_data() -> None:
    """Q13: changes have the Variants of their rows, from change files or from data files."""
    after = {"id": 2, "v": obj(a=text("two"))}

    def inserted_and_deleted(table: Path) -> None:
        commit(table, 2, removed(file(table, 0, ROWS)))

    def deleted_row(table: Path) -> None:
        change = write_changes(table, 0, [("delete", ROWS[0])])
        commit(table, 2, removed(file(table, 0, ROWS)), file(table, 1, ROWS[1:]), change)

    def updated(table: Path) -> None:
        images = [("update_preimage", ROWS[1]), ("update_postimage", after)]
        change = write_changes(table, 0, images)
        rows = [ROWS[0], after, *ROWS[2:]]
        commit(table, 2, removed(file(table, 0, ROWS)), file(table, 1, rows), change)

    def rearranged(table: Path) -> None:
        old = removed(file(table, 0, ROWS), dataChange=False)
        new = file(table, 1, ROWS)
        new["add"]["dataChange"] = False
        commit(table, 2, old, new)

    for name, about, write, expected in (
        (
            "of_whole_files",
            "A commit without change files inserts the rows of its files, and deletes those of removed ones",
            inserted_and_deleted,
            [*changed(1, "insert", *ROWS), *changed(2, "delete", *ROWS)],
        ),
        (
            "of_a_deleted_row",
            "The change file of a commit has its changes, and its data files have none",
            deleted_row,
            changed(2, "delete", ROWS[0]),
        ),
        (
            "of_an_updated_variant",
            "An update has the row before and the row after it",
            updated,
            [*changed(2, "update_postimage", after), *changed(2, "update_preimage", ROWS[1])],
        ),
        ("of_rearranged_files", "Files that only rearrange rows change none", rearranged, []),
    ):
        versions = [1, 2] if name == "of_whole_files" else [2, 2]
        table = case("changes", name, "Q13", CHANGES, about, {"rows": expected}, versions=versions)
        commit(table, 0, *CDF)
        commit(table, 1, file(table, 0, ROWS))
        write(table)
    vector_changes()

    about = "A delete has the deleted row as its only change"
    expect = {"rows": ROWS[1:], "changes": [{**ROWS[0], "_change_type": "delete"}]}
    table = case("rewrite", "delete_with_change_data", "Q9 Q13", CHANGES, about, expect, delete=1)
    commit(table, 0, *CDF, file(table, 0, ROWS))
    about = "A compaction changes no row"
    expect = {"rows": ROWS, "changes": []}
    table = case("rewrite", "compact_with_change_data", "Q9 Q13", CHANGES, about, expect, compact=True)
    commit(table, 0, *CDF, file(table, 0, ROWS[:3]), file(table, 1, ROWS[3:]))


def vector_changes() -> None:
    about = "A deletion vector that a commit adds deletes its rows, without a change file"
    expect = {"rows": changed(2, "delete", *ROWS[1:3])}
    table = case("changes", "of_a_deletion_vector", "Q11 Q13", CHANGES, about, expect, versions=[2, 2])
    properties = {"delta__enableChangeDataFeed": "true", "delta__enableDeletionVectors": "true"}
    first = protocol("variantType", "deletionVectors", writer=("changeDataFeed",))
    commit(table, 0, first, metadata(**properties))
    old = file(table, 0, ROWS)
    commit(table, 1, old)
    new = json.loads(json.dumps(old))
    new["add"]["deletionVector"] = inline(1, 2)
    commit(table, 2, removed(old), new)


# Constraints, generated columns and clustering.


def checks() -> None:
    """T16: a Variant may be the source of a CHECK constraint."""
    rows = rows_of(a_is(1), obj(a=int64(2), b=text("x")))
    expression = "variant_get(v, '$.a', 'bigint') > 0"
    start = (
        protocol("variantType", writer=("checkConstraints",)),
        metadata(delta__constraints__positive=expression),
    )
    about = "A CHECK constraint over a Variant does not affect readers"
    table = case("table", "check_of_a_variant", "T16", COMPATIBILITY, about, {"rows": rows})
    commit(table, 0, *start, file(table, 0, rows))
    about = "A delete copies rows that satisfy a CHECK constraint over a Variant"
    table = case(
        "rewrite", "delete_with_a_check", "Q9 T16", COMPATIBILITY, about, {"rows": rows[1:]}, delete=1
    )
    commit(table, 0, *start, file(table, 0, rows))


def generated() -> None:
    """T16: a Variant may be the source of a generated column, and not its result."""
    rows = rows_of(a_is(1), obj(a=int64(2), b=text("x")), None)
    for row, number in zip(rows, (1, 2, None), strict=True):
        row["g"] = number
    column = {"name": "g", "type": "long", "nullable": True}
    column["metadata"] = {"delta.generationExpression": "variant_get(v, '$.a', 'bigint')"}
    start = protocol("variantType", writer=("generatedColumns",)), metadata((ID, V, column))

    def write(table: Path) -> None:
        action = file(table, 0, rows)
        path = table / "part-0.parquet"
        values = pa.array([row["g"] for row in rows], pa.int64())
        action["add"]["size"] = write_parquet(path, pa.parquet.read_table(path).append_column("g", values))
        commit(table, 0, *start, action)

    about = "A generated column with a Variant as its source is read as stored"
    write(case("table", "generated_from_a_variant", "T16", COMPATIBILITY, about, {"rows": rows}))
    about = "A delete keeps a generated column with a Variant as its source"
    expect = {"rows": [{"id": row["id"], "v": row["v"]} for row in rows[1:]]}
    write(case("rewrite", "delete_with_a_generated_column", "Q9 T16", COMPATIBILITY, about, expect, delete=1))

    about = "The result of a generated column is not a Variant: rejected, or read as stored"
    plain = rows_of(a_is(1), a_is(2))
    expect = {"rows": plain, "error": "ProtocolError"}
    table = case("table", "generated_variant", "T16", COMPATIBILITY, about, expect, breaks=True)
    column = {**V, "metadata": {"delta.generationExpression": "parse_json('{}')"}}
    first = protocol("variantType", writer=("generatedColumns",)), metadata((ID, column))
    commit(table, 0, *first, file(table, 0, plain))


def clustering() -> None:
    """T16: a table with a Variant may be clustered, but not by the Variant."""
    first = protocol("variantType", writer=("clustering", "domainMetadata"))

    def domain(column: str) -> Action:
        text = json.dumps({"clusteringColumns": [[column]]})
        return {"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": False}}

    about = "A Variant may be next to a clustering column"
    table = case("table", "clustered_next_to_a_variant", "T16", COMPATIBILITY, about, {"rows": ROWS})
    commit(table, 0, first, metadata(), domain("id"), file(table, 0, ROWS))
    about = "A compaction of a clustered table keeps each value"
    table = case("rewrite", "compact_clustered", "Q9 T16", COMPATIBILITY, about, {"rows": ROWS}, compact=True)
    parts = file(table, 0, ROWS[:3]), file(table, 1, ROWS[3:])
    commit(table, 0, first, metadata(), domain("id"), *parts)
    about = "A Variant cannot be a clustering column: rejected, or read"
    expect = {"rows": ROWS, "error": "ProtocolError"}
    table = case("table", "clustered_by_a_variant", "T16", COMPATIBILITY, about, expect, breaks=True)
    commit(table, 0, first, metadata(), domain("v"), file(table, 0, ROWS))


# The property, and the names and types of bounds.


def properties() -> None:
    """H3, K2: a compaction writes what the property allows, and bounds of its values alone."""
    about = "Without the property a compaction writes unshredded files"
    for name, off in (("off", {"delta__enableVariantShredding": "false"}), ("absent", {})):
        table = case(
            "rewrite", f"compact_property_{name}", "H3 Q9", PROPERTY, about, {"rows": ROWS}, compact=True
        )
        parts = [file(table, n, rows, AS_SHREDDED) for n, rows in enumerate((ROWS[:3], ROWS[3:]))]
        commit(table, 0, protocol(*SHREDDING), metadata(**off), *parts)

    section = "PROTOCOL.md, Statistics for Variant Columns"
    names = ["it's", "back\\slash", "tab\there", "dot.ted", "", "$", "']['", "\u00e9", "\U0001f600"]
    rows = rows_of(*({"object": {name: int64(number) for name in names}} for number in range(1, 5)))
    about = "The keys of bounds are normalized paths, whatever the names are"
    table = case("rewrite", "compact_names_to_escape", "K2 Q9", section, about, {"rows": rows}, compact=True)
    parts = file(table, 0, rows[:2]), file(table, 1, rows[2:])
    commit(table, 0, protocol(*SHREDDING), metadata(**ENABLED), *parts)
    rows = rows_of(
        *(obj(a=each, b=int64(1)) for each in (int64(1), text("1"), {"double": 1.0}, {"null": None}))
    )
    about = "A path of two types has no bounds"
    table = case(
        "rewrite", "compact_values_of_two_types", "ST1 Q9", section, about, {"rows": rows}, compact=True
    )
    parts = file(table, 0, rows[:2]), file(table, 1, rows[2:])
    commit(table, 0, protocol(*SHREDDING), metadata(**ENABLED), *parts)


# Checkpoints.


def sidecars() -> None:
    """ST16: a checkpoint of version 2, whose statistics are shredded Variants in a sidecar."""
    section = "PROTOCOL.md, V2 Spec"
    for name, about, shred in (
        ("v2_checkpoint", "The files of a checkpoint of version 2 are in its sidecar", False),
        ("v2_checkpoint_with_shredded_stats", "The Variants of statistics may be shredded", True),
    ):
        table = case("table", name, "ST16", section, about, {"rows": ROWS})
        action = file(table, 0, ROWS)
        sidecar = table / "_delta_log" / "_sidecars" / "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"
        size = write_sidecar(sidecar, action, shred=shred)
        top = table / "_delta_log" / f"{0:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
        pointer = {"path": sidecar.name, "sizeInBytes": size, "modificationTime": 1700000000000}
        actions = [
            {"checkpointMetadata": {"version": 0}},
            protocol(*(SHREDDING if shred else ["variantType"]), "v2Checkpoint"),
            metadata(delta__checkpointPolicy="v2"),
            {"sidecar": pointer},
        ]
        top.write_text("".join(json.dumps(each) + "\n" for each in actions), encoding="utf-8")
        commit(table, 1, {"commitInfo": {"operation": "OPTIMIZE"}})


def write_sidecar(path: Path, action: Action, *, shred: bool) -> int:
    """Write the add action of a file, with the bounds of its Variant as columns."""
    name = key("b")
    types = [("metadata", pa.binary()), ("value", pa.binary())]
    if shred:
        leaf = pa.struct([("value", pa.binary()), ("typed_value", pa.string())])
        types.append(("typed_value", pa.struct([pa.field(name, leaf, nullable=False)])))

    def bound(value: str) -> Json:
        whole = obj(**{name: text(value)})
        found = dict(zip(("metadata", "value"), encode(whole), strict=True))
        typed = {"value": None, "typed_value": {name: {"value": None, "typed_value": value}}}
        return {**found, **typed} if shred else found

    side = pa.struct([("id", pa.int64()), ("v", pa.struct(types))])
    nulls = pa.struct([("id", pa.int64()), ("v", pa.int64())])
    parsed = [("numRecords", pa.int64()), ("minValues", side), ("maxValues", side), ("nullCount", nulls)]
    texts = pa.map_(pa.string(), pa.string())
    of_file = [("path", pa.string()), ("partitionValues", texts), ("size", pa.int64())]
    of_change = [
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats_parsed", pa.struct(parsed)),
    ]
    stats = json.loads(action["add"]["stats"])
    stats["minValues"]["v"], stats["maxValues"]["v"] = bound("x"), bound("y")
    entry = {**action["add"], "partitionValues": [], "dataChange": False, "stats_parsed": stats}
    schema = pa.schema([("add", pa.struct([*of_file, *of_change]))])
    return write_parquet(path, pa.Table.from_pylist([{"add": entry}], schema))


ALL: tuple[Callable[[], None], ...] = (
    deletion_vectors,
    row_ids,
    change_data,
    checks,
    generated,
    clustering,
    properties,
    sidecars,
)

if __name__ == "__main__":
    for write in ALL:
        write()
