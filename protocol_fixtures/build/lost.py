"""Write the cases of the kinds `select` and `rewrite`: `python protocol_fixtures/build/lost.py`.

Tables of a few rows in the layouts in which engines lost or altered values. Needs pyarrow, and nothing of
`delta_variant`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from case_folder import commit, new_case, write_parquet
from shredding import UNSHREDDED, Json, group_type, shredded, unshredded
from tables import ID, SHREDDING, add, metadata, protocol
from variant_bytes import encode, int64, obj, text, z85

from delta_variant_conformance.parquet_footer import BINARY, FALSE, annotate, rewrite_statistics

SKIPPING = "VariantShredding.md, Data Skipping"
STATISTICS = "PROTOCOL.md, Statistics for Variant Columns"
FILE_STATISTICS = "PROTOCOL.md, Per-file Statistics"
RECONSTRUCTION = "VariantShredding.md, Reconstructing a Shredded Variant"
OBJECTS = "VariantShredding.md, Objects"
FIELD_ORDER = "VariantEncoding.md, Object field ID order and uniqueness"
EQUAL = "VariantEncoding.md, Encoding types"
COMPATIBILITY = "VariantShredding.md, Backward and forward compatibility"

INT, STRING, BINARY_TYPE = pa.int64(), pa.string(), pa.binary()
A = pa.struct({"a": INT})
NULL = {"null": None}

BEFORE_AN_EMOJI = "\uff5e"
"""U+FF5E: before U+1F600 in UTF-8, and after it in UTF-16."""
EMOJI = "\U0001f600"


@dataclass(frozen=True)
class File:
    """A data file: its Variants, their type in `typed_value`, None if unshredded, and its statistics."""

    rows: Sequence[Json | None]
    typed: Any = None
    row_group_size: int | None = None
    least: Json | None = None
    greatest: Json | None = None
    groups: Sequence[Json | None] | None = None
    """The rows as groups, if not those of `shredded`."""
    change: Callable[[Path], None] = field(default=lambda path: None)
    """A change of the written file."""
    parquet: Mapping[str, Any] = field(default_factory=dict)
    """Options of the writer."""

    def columns(self) -> pa.Array:
        if self.typed is None:
            rows = list(self.groups or map(unshredded, self.rows))
            return pa.array(rows, UNSHREDDED)
        rows = list(self.groups or (shredded(row, self.typed) for row in self.rows))
        return pa.array(rows, group_type(self.typed))


def write_table(table: Path, *files: File) -> None:
    """Write a table of one commit."""
    actions, first = [], 1
    for number, file in enumerate(files):
        name = f"part-{number}.parquet"
        ids = pa.array(range(first, first + len(file.rows)), INT)
        columns = pa.table({"id": ids, "v": file.columns()})
        write_parquet(table / name, columns, row_group_size=file.row_group_size, **file.parquet)
        annotate(table / name, "v")
        file.change(table / name)
        size = (table / name).stat().st_size
        actions.append(add(name, size, stats=_statistics(file, first)))
        first += len(file.rows)
    enabled = {"delta__enableVariantShredding": "true"}
    commit(table, 0, protocol(*SHREDDING), metadata(**enabled), *actions)


def _statistics(file: File, first: int) -> Json:
    count = len(file.rows)
    sides: Json = {"minValues": {"id": first}, "maxValues": {"id": first + count - 1}}
    for side, bounds in (("minValues", file.least), ("maxValues", file.greatest)):
        if bounds is not None:
            sides[side]["v"] = z85(b"".join(encode({"object": bounds})))
    return {"numRecords": count, **sides, "nullCount": {"id": 0, "v": sum(row is None for row in file.rows)}}


def key(*names: str) -> str:
    return "$" + "".join(f"['{name}']" for name in names)


# Cases.


def selected(
    name: str,
    rule: str,
    section: str,
    about: str,
    path: Sequence[str],
    kind: str,
    expected: Sequence[Any],
    *files: File,
    where: Sequence[Any] | None = None,
) -> Path:
    """Write a case of the kind `select`; `expected` are the values of all rows, or ids with `where`."""
    condition = {} if where is None else {"where": list(where)}
    if where is None:
        rows = [{"id": number, "found": each} for number, each in enumerate(expected, start=1)]
    else:
        rows = [{"id": number} for number in expected]
    given = {"table": "table", "path": list(path), "type": kind, **condition}
    table = new_case("select", name, rule, "keeps", section, about, given, {"rows": rows}) / "table"
    if files:
        write_table(table, *files)
    return table


def other_types() -> None:
    """Q2: values in `value` match although the statistics of `typed_value` exclude the condition."""
    wide = {"int16": 2000}
    typed = [obj(a=int64(1)), obj(a=int64(2)), obj(a=wide), obj(a=int64(5)), obj(a=int64(3000)), obj()]
    about = "A row group has a matching value in `value`, and none within the bounds of `typed_value`"
    selected(
        "value_of_another_type_in_a_row_group",
        "Q1 Q2",
        SKIPPING,
        about,
        ["a"],
        "int64",
        [3, 5],
        File(typed, A, row_group_size=3),
        where=(">", 999),
    )
    alone = [obj(a=wide), obj(a={"decimal4": "3000"}), obj(a=int64(1)), obj(a=int64(2))]
    selected(
        "value_of_another_type_alone",
        "Q1 Q2",
        SKIPPING,
        "In a row group whose `typed_value` is null, the values in `value` match",
        ["a"],
        "int64",
        [1, 2],
        File(alone, A, row_group_size=2),
        where=(">", 999),
    )
    selected(
        "value_of_another_type_in_all_rows",
        "Q1 Q2",
        SKIPPING,
        "In a file whose `typed_value` is null in each row, the values in `value` match",
        ["a"],
        "int64",
        [1, 3],
        File([obj(a=wide), obj(a={"int8": 1}), obj(a={"decimal4": "3000"}), obj()], A),
        where=(">", 999),
    )
    selected(
        "value_of_another_type_beside_variant_null",
        "Q1 Q2",
        SKIPPING,
        "A `value` that is Variant null throughout a row group says nothing of other row groups",
        ["a"],
        "int64",
        [2],
        File([obj(a=int64(1)), obj(a=wide), obj(a=NULL)], A, row_group_size=1),
        where=(">", 999),
    )
    for name, operator, ids in (("is_null", "is null", [3, 4]), ("is_not_null", "is not null", [1, 2])):
        selected(
            f"value_of_another_type_{name}",
            "Q1 Q2",
            SKIPPING,
            "A value in `value` is not null, although `typed_value` is null in its row group",
            ["a"],
            "int64",
            ids,
            File([obj(a=wide), obj(a={"int8": 1}), obj(), obj(a=NULL)], A, row_group_size=2),
            where=(operator,),
        )
    nested = pa.struct({"o": A})
    rows = [obj(o=obj(a=int64(1))), obj(o=obj(a=wide)), obj(o=obj(a=int64(3000))), obj(o=text("x"))]
    selected(
        "value_of_another_type_in_a_nested_object",
        "Q1 Q2",
        SKIPPING,
        "The `value` of a nested field counts, not only that of the root",
        ["o", "a"],
        "int64",
        [2, 3],
        File(rows, nested, row_group_size=2),
        where=(">", 999),
    )
    selected(
        "value_of_another_type_equal",
        "Q1 Q2",
        SKIPPING,
        "A number in `value` is equal to one of another exact type",
        ["a"],
        "int64",
        [2, 4],
        File([obj(a=int64(1)), obj(a={"int8": 7}), obj(a=int64(9)), obj(a=int64(7))], A, row_group_size=2),
        where=("=", 7),
    )


def beside_variant_null() -> None:
    """Q2: a `value` of Variant null in one row group says nothing of the others."""
    about = "A cast finds a number in `value`, although another row group has nothing but Variant null there"
    file = File([obj(a=NULL), obj(a={"int16": 7})], A, row_group_size=1)
    name = "value_of_another_type_after_variant_null"
    selected(name, "Q1 Q2", SKIPPING, about, ["a"], "int64", [None, 7], file)


PAGES = {"write_page_index": True, "data_page_size": 1}
"""Each batch of rows is a page, whose bounds are in the page index."""


def pages() -> None:
    """Q2: pages are skipped by the statistics of `typed_value` only where `value` is null."""
    rows: list[Json | None] = [obj(a=int64(number)) for number in range(1, 25)]
    rows[5], rows[11], rows[13] = obj(a={"int16": 2000}), obj(b=text("x")), obj(a={"int8": 3})
    rows[16:20] = [obj(a={"int16": 2000 + number}) for number in range(4)]
    about = "A page has a matching value in `value`, and none within the bounds of `typed_value`"
    for size in (4, 1):
        file = File(
            rows, A, parquet={**PAGES, "write_batch_size": size, "data_page_size": 1 if size > 1 else 24}
        )
        for name, where, ids in (
            ("equal", ("=", 2000), [6, 17]),
            ("above", (">", 23), [6, 17, 18, 19, 20, 24]),
            ("below", ("<", 4), [1, 2, 3, 14]),
            ("null", ("is null",), [12]),
            ("not_null", ("is not null",), [number for number in range(1, 25) if number != 12]),
        ):
            named = f"value_of_another_type_in_a_page_{name}" if size > 1 else f"pages_of_other_rows_{name}"
            selected(named, "Q1 Q2", SKIPPING, about, ["a"], "int64", ids, file, where=where)


def equal_numbers() -> None:
    """E-Q1: numbers that are equal have one text."""
    numbers = (
        {"int8": 123},
        {"int64": 123},
        {"decimal4": "123"},
        {"decimal4": "123.00"},
        {"decimal16": "123.0"},
    )
    about = "The text of a number is that of every equal integer and decimal"
    for name, kind in (("unshredded", None), ("beside_another_type", INT), ("shredded", pa.decimal128(9, 2))):
        rows = [obj(a=number) for number in numbers]
        file = File(rows, kind and pa.struct({"a": kind}))
        selected(f"text_of_equal_numbers_{name}", "E-Q1", EQUAL, about, ["a"], "string", ["123"] * 5, file)


def draft_layouts() -> None:
    """O14: a reader of the Spark draft may skip only where `untyped_value` is null."""
    leaf = pa.struct([("untyped_value", BINARY_TYPE), ("typed_value", INT)])
    kind = pa.struct([("untyped_value", BINARY_TYPE), ("object", pa.struct({"a": leaf}))])
    rows = [int64(1), {"int16": 2000}, int64(3), int64(4)]
    groups = [
        {"untyped_value": b"".join(encode(row)), "typed_value": None}
        if "int16" in row
        else {"untyped_value": None, "typed_value": row["int64"]}
        for row in rows
    ]
    section = "Spark Variant shredding draft, Statistics"
    about = "The draft layout is rejected, or skipped by `typed_value` only where `untyped_value` is null"
    for name, where, ids in (("equal", ("=", 2000), [2]), ("above", (">", 3), [2, 4])):
        given = {"table": "table", "path": ["a"], "type": "int64", "where": list(where)}
        expect = {"rows": [{"id": each} for each in ids], "error": "ShreddingError"}
        case = new_case("select", f"draft_row_groups_{name}", "O14", "keeps", section, about, given, expect)
        table = case / "table"
        column = pa.array([{"untyped_value": None, "object": {"a": group}} for group in groups], kind)
        columns = pa.table({"id": pa.array(range(1, 5), INT), "v": column})
        size = write_parquet(table / "part-0.parquet", columns, row_group_size=2)
        enabled = {"delta__enableVariantShredding": "true"}
        commit(table, 0, protocol(*SHREDDING), metadata(**enabled), add("part-0.parquet", size))


def projections() -> None:
    """Q1, Q6: paths of objects that are shredded in part."""
    kind = pa.struct({"a": INT, "o": pa.struct({"b": STRING})})
    rows = [
        obj(a=int64(1), c={"int8": 5}, o=obj(b=text("x"), d=int64(6))),
        obj(c={"int8": 7}),
        None,
        obj(a={"int8": 2}, o=obj(b=text("y"))),
        text("z"),
        obj(o=obj()),
    ]
    file = File(rows, kind)
    for name, path, found in (
        ("path_in_part_of_an_object_typed", ["a"], [1, None, None, 2, None, None]),
        ("path_in_part_of_an_object_not_typed", ["c"], [5, 7, None, None, None, None]),
        ("path_in_part_of_an_object_nested", ["o", "d"], [6, None, None, None, None, None]),
        ("path_in_part_of_an_object_absent", ["e"], [None] * 6),
    ):
        about = f"A path of an object that is shredded in part has its values: {'.'.join(path)}"
        selected(name, "Q1 Q6", RECONSTRUCTION, about, path, "int64", found, file)
    found = ["x", None, None, "y", None, None]
    about = "A typed field of a typed object has its values"
    selected("path_within_typed_objects", "Q1 Q6", RECONSTRUCTION, about, ["o", "b"], "string", found, file)

    sporadic = pa.struct({"o": pa.struct({"b": INT})})
    rows = [
        obj(o=obj(b=int64(1))),
        obj(),
        obj(o=obj()),
        obj(o=NULL),
        obj(o=obj(b=NULL)),
        obj(o=obj(b=int64(2))),
    ]
    selected(
        "path_of_sporadic_objects",
        "Q6",
        OBJECTS,
        "Objects and fields that are missing in some rows are missing there alone",
        ["o", "b"],
        "int64",
        [1, None, None, None, None, 2],
        File(rows, sporadic),
    )


def other_layouts() -> None:
    """Q1, Q7: files of one table with different layouts."""
    files = (
        File([obj(a=int64(1)), obj(b=text("x")), None]),
        File([obj(a=int64(2)), obj(a={"int8": 3}), obj()], A),
        File([obj(a=int64(4), b=text("y")), text("z")], pa.struct({"b": STRING})),
        File([obj(a=int64(5)), int64(6)], INT),
    )
    found = [1, None, None, 2, 3, None, 4, None, 5, None]
    about = "Each file has its own layout, and each row the value of the path"
    name = "shredded_and_unshredded_files"
    selected(name, "Q1 Q7", COMPATIBILITY, about, ["a"], "int64", found, *files)
    about = "A condition finds its rows in files of every layout"
    more = {"where": (">", 1)}
    selected(f"{name}_filtered", "Q1 Q7", COMPATIBILITY, about, ["a"], "int64", [4, 5, 7, 9], *files, **more)


def not_objects() -> None:
    """Q6: a path through a value that is not an object."""
    for name, kind, rows in (
        ("field_of_booleans", pa.bool_(), [{"boolean": True}, {"boolean": False}]),
        ("field_of_arrays", pa.list_(INT), [{"array": [int64(1), int64(2)]}, {"array": []}]),
        ("field_of_scalars", INT, [int64(1), int64(2)]),
        ("field_of_texts", STRING, [text("x"), text("a")]),
    ):
        about = "A path through a shredded value that is not an object is NULL"
        selected(name, "Q6", OBJECTS, about, ["a"], "int64", [None] * len(rows), File(rows, kind))


def other_paths() -> None:
    """Q3: bounds of one path say nothing of another."""
    deep = pa.struct({"a": pa.struct({"b": INT}), "x": INT})
    rows = [obj(a=obj(b=int64(42)), x=int64(1)), obj(a=obj(b=int64(7)), x=int64(2))]
    bounds = {key("x"): int64(1)}, {key("x"): int64(2)}
    selected(
        "path_below_the_paths_with_bounds",
        "Q3",
        STATISTICS,
        "A path that the statistics of a file do not list may be in the file",
        ["a", "b"],
        "int64",
        [1],
        File(rows, deep, least=bounds[0], greatest=bounds[1]),
        where=("=", 42),
    )
    dotted = pa.struct({"a.b": INT, "a": pa.struct({"b": INT})})
    rows = [{"object": {"a.b": int64(number), "a": obj(b=int64(number + 40))}} for number in (1, 2)]
    for name, path, literal, typed, bounded in (
        ("path_that_a_name_with_a_dot_resembles", ["a", "b"], 42, (1, 2), ["a.b"]),
        ("name_with_a_dot", ["a.b"], 2, (41, 42), ["a", "b"]),
    ):
        least, greatest = ({key(*bounded): int64(each)} for each in typed)
        selected(
            name,
            "Q3",
            STATISTICS,
            "The bounds of a name with a dot are not those of a nested path, nor the reverse",
            path,
            "int64",
            [2],
            File(rows, dotted, least=least, greatest=greatest),
            where=("=", literal),
        )
    selected(
        "name_with_a_dot_read",
        "Q3",
        STATISTICS,
        "A name with a dot is one name",
        ["a.b"],
        "int64",
        [1, 2],
        File(rows, dotted),
    )

    texts = pa.struct({"a": STRING})
    rows = [obj(a=text("x")), obj(), obj(a=text("")), text("y"), None, obj(a=NULL)]
    bounds = {key("a"): text("x")}, {key("a"): text("y")}
    for name, where, ids in (
        ("missing_path_is_null", ("is null",), [2, 4, 5, 6]),
        ("missing_path_is_no_empty_text", ("=", ""), [3]),
        ("missing_path_is_not_below_a_text", ("<", "a"), [3]),
    ):
        about = "A missing path is NULL, and not the default of a type"
        selected(name, "Q6", OBJECTS, about, ["a"], "string", ids, File(rows, texts), where=where)
    selected(
        "missing_path_beside_bounds",
        "Q6",
        STATISTICS,
        "Bounds of a path do not say that each row has it",
        ["a"],
        "string",
        [2],
        File([obj(a=text("x")), obj(), obj(a=text("y"))], texts, least=bounds[0], greatest=bounds[1]),
        where=("is null",),
    )


def names_like_operators() -> None:
    """Q3: a name is a name, also if an engine has a meaning for its first characters."""
    names = ["@`a`", "^`a`", "`a`", "a[0]", "$.a"]
    rows = [{"object": {"a": int64(5), **{name: int64(number) for number, name in enumerate(names)}}}]
    about = "A name that resembles the syntax of a path has no bounds of that path"
    for number, name in enumerate(names):
        selected(
            f"name_like_an_operator_{number}",
            "Q3",
            STATISTICS,
            about,
            [name],
            "int64",
            [1],
            File(rows, A, least={key("a"): int64(5)}, greatest={key("a"): int64(5)}),
            where=("=", number),
        )


def one_sided() -> None:
    """Q4: a bound on one side says nothing of the other."""
    rows = [obj(a=int64(1)), obj(a=int64(10))]
    low, high = {key("a"): int64(1)}, {key("a"): int64(10)}
    about = "A path may be in `minValues` alone, or in `maxValues` alone"
    for name, where, sides in (
        ("bound_on_the_lower_side_only", (">", 5), {"least": low}),
        ("bound_on_the_upper_side_only", ("<", 5), {"greatest": high}),
    ):
        ids = [2] if where[0] == ">" else [1]
        selected(name, "Q4", STATISTICS, about, ["a"], "int64", ids, File(rows, A, **sides), where=where)
    both = pa.struct({"a": INT, "b": INT})
    rows = [obj(a=int64(1), b=int64(100)), obj(a=int64(10), b=int64(200))]
    selected(
        "bounds_of_different_paths",
        "Q4",
        STATISTICS,
        "The paths in `minValues` and in `maxValues` may differ",
        ["a"],
        "int64",
        [2],
        File(rows, both, least={key("a"): int64(1)}, greatest={key("b"): int64(200)}),
        where=("=", 10),
    )


def orders() -> None:
    """Q5: strings and binary are compared by their bytes, and truncated bounds are wide."""
    kind = pa.struct({"a": STRING})
    rows = [obj(a=text(each)) for each in ("a", BEFORE_AN_EMOJI, EMOJI, EMOJI + "b")]
    least, greatest = {key("a"): text("a")}, {key("a"): text(EMOJI + "b")}
    for name, where, ids in (
        ("equal", ("=", EMOJI), [3]),
        ("above", (">", BEFORE_AN_EMOJI), [3, 4]),
        ("below", ("<", EMOJI), [1, 2]),
    ):
        selected(
            f"text_beyond_the_basic_plane_{name}",
            "Q5",
            "LogicalTypes.md, STRING",
            "Strings are compared by their UTF-8 bytes, by which U+FF5E is below U+1F600",
            ["a"],
            "string",
            ids,
            File(rows, kind, row_group_size=2, least=least, greatest=greatest),
            where=where,
        )

    def truncate(path: Path) -> None:
        def change(statistics: Any) -> None:
            # The upper bound is cut after 16 bytes, and its last byte raised.
            statistics[5] = (BINARY, bytes([*range(1, 16), 17]))
            statistics[6] = (BINARY, bytes(range(1, 17)))
            statistics[7], statistics[8] = (FALSE, False), (FALSE, False)
            statistics.pop(1, None)
            statistics.pop(2, None)

        rewrite_statistics(path, "v.typed_value.a.typed_value", change)

    rows = [obj(a={"binary": bytes(range(1, 21)).hex()}), obj(a={"binary": bytes(range(1, 19)).hex()})]
    groups = [_binary(row) for row in rows]
    for name, where, ids in (
        ("above", (">", bytes(range(1, 19)).hex()), [1]),
        ("equal", ("=", bytes(range(1, 21)).hex()), [1]),
        ("below", ("<", bytes(range(1, 20)).hex()), [2]),
    ):
        selected(
            f"binary_{name}_a_truncated_bound",
            "Q5",
            "parquet.thrift, Statistics",
            "A truncated bound in a footer is wide: values beyond its bytes match",
            ["a"],
            "binary",
            ids,
            File(rows, pa.struct({"a": BINARY_TYPE}), groups=groups, change=truncate),
            where=where,
        )


def _binary(row: Json) -> Json:
    data = bytes.fromhex(row["object"]["a"]["binary"])
    field_a = {"value": None, "typed_value": data}
    return {"metadata": encode(row)[0], "value": None, "typed_value": {"a": field_a}}


def timestamps() -> None:
    """Q5: the bounds of timestamps are in milliseconds."""
    last = 2**63 - 1
    for name, micros, bound, where in (
        ("last_timestamp", last, "+294247-01-10T04:00:54.775Z", (">", "2024-01-01 00:00:00Z")),
        (
            "timestamp_above_its_bound",
            1_700_000_000_123_456,
            "2023-11-14T22:13:20.123Z",
            (">", "2023-11-14 22:13:20.1234Z"),
        ),
    ):
        about = "The upper bound of timestamps is cut to a millisecond, so that values may exceed it"
        given = {"table": "table", "column": "ts", "path": [], "type": "timestamp", "where": list(where)}
        expect = {"rows": [{"id": 2}]}
        table = new_case("select", name, "Q5", "keeps", FILE_STATISTICS, about, given, expect) / "table"
        ids = pa.array([1, 2], INT)
        stamps = pa.array([0, micros], INT).cast(pa.timestamp("us", "UTC"))
        size = write_parquet(table / "part-0.parquet", pa.table({"id": ids, "ts": stamps}))
        ts = {"name": "ts", "type": "timestamp", "nullable": True, "metadata": {}}
        sides = {
            "minValues": {"id": 1, "ts": "1970-01-01T00:00:00.000Z"},
            "maxValues": {"id": 2, "ts": bound},
        }
        stats = {"numRecords": 2, **sides, "nullCount": {"id": 0, "ts": 0}}
        action = add("part-0.parquet", size, stats=stats)
        commit(
            table, 0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata([ID, ts]), action
        )


def dictionaries() -> None:
    """Q8: fields are found by the order of their names, whatever the order of the dictionary."""
    plain = [f"k{number:02}" for number in range(38)]
    odd = [BEFORE_AN_EMOJI, EMOJI]
    unsorted = [*plain[1::2], *plain[::2]]
    for name, dictionary, paths, about in (
        ("names_not_sorted", unsorted, plain[:2], "The dictionary of a row need not be sorted"),
        ("names_in_utf8_order", [*plain, *odd], odd, "Fields are sorted by the UTF-8 bytes of their names"),
    ):
        fields = {each: {"int8": number} for number, each in enumerate(dictionary)}
        given, bytes_ = encode({"object": fields}, names=dictionary)
        file = File([{"object": fields}], groups=[{"metadata": given, "value": bytes_}])
        for number, path in enumerate(paths, start=1):
            found = [dictionary.index(path)]
            named = f"{name}_{number}"
            selected(named, "Q8", FIELD_ORDER, f"{about}: each is found", [path], "int64", found, file)


# Rewrites.


LAYOUTS = {
    "shredded_files": (
        File([obj(a=int64(1)), obj(a=int64(2))], A),
        File([obj(a=int64(3)), obj(a=int64(4))], A),
    ),
    "objects_in_part": (
        File([obj(a=int64(1), b=text("x")), obj(b=text("y")), obj(a={"int8": 3}), NULL, None], A),
        File([obj(a=int64(4), c=obj(d=NULL)), obj(), text("z")], A),
    ),
    "files_of_other_layouts": (
        File([obj(a=int64(1)), obj(b=text("x")), None]),
        File([obj(a=int64(2)), obj(a=text("two")), NULL], A),
        File([obj(a=int64(4), b=text("y")), text("z")], pa.struct({"b": STRING})),
        File([int64(5), obj(a=int64(6))], INT),
    ),
    "shredded_arrays": (
        File([{"array": [int64(1), text("x"), NULL]}, {"array": []}], pa.list_(INT)),
        File([{"array": [obj(a=int64(2), b=NULL)]}, obj(a=int64(3))], pa.list_(A)),
    ),
    "shredded_scalars": (
        File([text("x"), text(""), NULL, None, int64(1)], STRING),
        File([{"boolean": True}, {"boolean": False}, {"double": 1.5}], pa.bool_()),
    ),
}


def rewrites() -> None:
    """Q9: a rewrite keeps each value."""
    for name, files in LAYOUTS.items():
        layout = name.replace("_", " ")
        rows = [{"id": number, "v": row} for number, row in enumerate(_rows(files), start=1)]
        _rewritten(
            f"compact_{name}", f"A compaction keeps each value of {layout}", {"compact": True}, rows, files
        )
        about = f"A delete of another row keeps each value of {layout}"
        _rewritten(f"delete_from_{name}", about, {"delete": 1}, rows[1:], files)


def _rows(files: Sequence[File]) -> list[Json | None]:
    return [row for file in files for row in file.rows]


def _rewritten(name: str, about: str, given: Json, rows: Sequence[Json], files: Sequence[File]) -> None:
    given, expect = {"table": "table", **given}, {"rows": list(rows)}
    folder = new_case("rewrite", name, "Q9", "keeps", RECONSTRUCTION, about, given, expect)
    write_table(folder / "table", *files)


if __name__ == "__main__":
    other_types()
    beside_variant_null()
    pages()
    equal_numbers()
    draft_layouts()
    projections()
    other_layouts()
    not_objects()
    other_paths()
    names_like_operators()
    one_sided()
    orders()
    timestamps()
    dictionaries()
    rewrites()
