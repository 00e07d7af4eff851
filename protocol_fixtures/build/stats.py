"""Write the cases of the kind `stats`: `python protocol_fixtures/build/stats.py`.

Needs pyarrow, and nothing of `delta_variant`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from case_folder import new_case, write_parquet
from shredding import Json, group_type, shredded
from variant_bytes import encode, int64, metadata, obj, text, z85

STATISTICS = "PROTOCOL.md, Statistics for Variant Columns"
RFC_9535 = "RFC 9535 section 2.7"
ORDERS = "parquet.thrift, ColumnOrder"

INT, STRING, DOUBLE = pa.int64(), pa.string(), pa.float64()


# Text of statistics.


def decoded(name: str, rules: str, about: str, bound: str, typed: Json, *, section: str = STATISTICS) -> None:
    """Write a case of a text that is decoded."""
    new_case("stats", name, rules, "keeps", section, about, {"z85": bound}, {"rows": [typed]})


def rejected(name: str, rules: str, about: str, bound: str, *, section: str = STATISTICS) -> None:
    """Write a case of text that is not a bound of a Variant."""
    expect = {"error": "InvalidStatisticsError"}
    new_case("stats", name, rules, "breaks", section, about, {"z85": bound}, expect)


def encoded(name: str, rules: str, about: str, metadata_: bytes, value: bytes, bound: str) -> None:
    """Write a case of a Variant that is encoded."""
    given = {"encode": {"metadata": metadata_.hex(), "value": value.hex()}}
    new_case("stats", name, rules, "keeps", STATISTICS, about, given, {"z85": bound})


def texts() -> None:
    """K1 to K5, Z1 to Z6: strings that engines wrote, those of the protocol's example, and damaged ones."""
    key = {"object": {"$['name']": text("1"), "$['id']": int64(0)}}
    for name, pad, bound, typed in (
        ("written_by_databricks_pad_0", 0, "0rJlc5f$EczEEx[cTw04cUW9st(>6d00rif2@adK3ig5a00000", None),
        ("written_by_databricks_pad_1", 1, "0rJlc5f$EczEEx[cTw04cUW9st(>6d00icd1U*?]0000000000", key),
        (
            "written_by_databricks_pad_2",
            2,
            "0rAfabWhTiwQbUe0S-o32]H.-0000000000",
            obj(**{"$['key']": int64(200)}),
        ),
        (
            "written_by_databricks_pad_3",
            3,
            "0rJld6c{^fC42ifwHy+etpjq%zdL820S&x52(>OPwb(Pf00000a.=4fzc]1KfAq7M",
            {"object": {"$['name']": text("item_100"), "$['value']": int64(100)}},
        ),
    ):
        about = f"Metadata, value and {pad} zero bytes, as Databricks wrote them"
        typed = typed or {"object": {"$['name']": text("11"), "$['id']": int64(10)}}
        decoded(name, "Z1 Z2 Z3 K1 K5", about, bound, typed)

    root = {"object": {"$": int64(0)}}
    about = "The key of a column of scalars is `$` alone"
    decoded("root_key", "K1 Z3", about, "0rAf3bMW#D00%Fx0000000000", root)
    about = "An object without paths is equivalent to no bounds"
    decoded("no_paths", "ST9 Z3", about, "0rr9300000", obj())

    seed_names = bytes.fromhex("010200061124 5b276127 5d245b2762275d5b2763275d".replace(" ", ""))
    seeds = (
        ("min", "02020001000b0d296d696e2d737472696e670c01", "min-string", 1),
        ("max", "020200010008 0a1d76617269616e740c64".replace(" ", ""), "variant", 100),
    )
    examples = {
        "min": "0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu",
        "max": "0S&u500&]LC42A9vqZe}wb#-i1}-a+cT!xdbWhT9cTx}7v<+K",
    }
    printed = {
        "min": "0rJl95HpNdvjbtatpi(cu0wW^cTu=P0096c4jMddzy]{KA+PA73&{td",
        "max": "0rJl95HpNdvjbtatpi(cu0wW^cTu=P009693lsp#A+O%1BpqWW",
    }
    for side, value, string, number in seeds:
        value_bytes = bytes.fromhex(value)
        assert z85(value_bytes + seed_names, pad=False) == examples[side]
        assert z85(seed_names + value_bytes) == printed[side]
        typed = {"object": {"$['a']": text(string), "$['b']['c']": {"int8": number}}}
        about = "The protocol's own example has the value first and a last block that is cut"
        decoded(f"example_of_the_protocol_{side}", "Z5 Z1", about, examples[side], typed)
        about = "The Variant of the protocol's example as its prose specifies: metadata first, zero padded"
        encoded(f"example_as_the_text_says_{side}", "Z2 Z1", about, seed_names, value_bytes, printed[side])
        decoded(f"example_as_the_text_says_{side}_decoded", "Z3", about, printed[side], typed)

    names, value = encode({"object": {"$['a']": int64(7)}})
    cut = "Metadata first, and a last block that is cut"
    decoded("metadata_first_cut", "Z5", cut, z85(names + value, pad=False), {"object": {"$['a']": int64(7)}})
    about = "Value first, and zero padded"
    decoded("value_first_padded", "Z5", about, z85(value + names), {"object": {"$['a']": int64(7)}})
    about = "Bytes after the value are ignored, whatever they are"
    loose = z85(names + value + b"\xff\xff")
    decoded("padding_not_zero", "Z6 Z3", about, loose, {"object": {"$['a']": int64(7)}})
    about = "A root that is not an object is decoded, too"
    for kind, typed in (("array", {"array": [int64(1), text("x")]}), ("scalar", int64(500))):
        decoded(f"root_is_{kind}", "Z5", about, z85(b"".join(encode(typed))), typed)
    about = "The dictionary may be in any order and hold names that the object has not"
    typed = {"object": {"$['a']": int64(1), "$['b']": int64(2)}}
    loose_names = ["$['b']", "$['unused']", "$['a']"]
    decoded("dictionary_unsorted", "K5", about, z85(b"".join(encode(typed, names=loose_names))), typed)

    names, value = metadata([]), b"\x02\x00\x00"
    encoded("encode_no_paths", "Z2 ST9", "Six bytes and two zeros", names, value, "0rr9300000")
    for pad, string in enumerate(("a", "", "abc", "ab")):
        names, value = encode({"object": {"$": text(string)}})
        assert -len(names + value) % 4 == pad
        encoded(f"encode_pad_{pad}", "Z2", f"{pad} zero bytes of padding", names, value, z85(names + value))

    for name, bound, about in (
        ("not_in_the_alphabet", "0rr9~00000", "`~` is not a digit of z85"),
        ("not_ascii", "0rr9é00000", "z85 is ASCII"),
        ("block_too_great", "#####", "The greatest block is less than 85 to the fifth"),
        ("last_block_of_one", "0rr93000000", "A block of one character encodes no byte"),
    ):
        rejected(name, "Z1 Z4" if "alphabet" in name else "Z4", about, bound, section="ZeroMQ RFC 32")
    whole = b"".join(encode({"object": {"$['a']": int64(7)}}))
    for name, data, about in (
        ("value_cut_short", whole[:-6], "The value ends before its last byte"),
        (
            "no_value",
            metadata(["$['abc']"]),
            "There is metadata without a value, and without padding that could be one",
        ),
        ("version_2", b"\x02" + whole[1:], "Version 2 of metadata is unknown, and 02 is not an object here"),
        ("empty", b"", "Zero bytes are not a Variant"),
    ):
        rejected(f"damaged_{name}", "Z4 Z5" if name == "version_2" else "Z4", about, z85(data))


# Bounds of a file.


def bounds(
    name: str,
    rules: str,
    verdict: str,
    about: str,
    kind: pa.DataType,
    rows: Sequence[Json | None],
    least: Json | None,
    greatest: Json | None,
    *,
    section: str = STATISTICS,
    row_group_size: int | None = None,
    groups: Sequence[Json | None] | None = None,
) -> None:
    """Write a case of the bounds of a Variant column; `groups` are its rows if they are invalid."""
    expect = {
        "min": None if least is None else {"object": least},
        "max": None if greatest is None else {"object": greatest},
        "null_count": sum(row is None for row in rows),
    }
    given = {"file": "file.parquet", "column": "v"}
    folder = new_case("stats", name, rules, verdict, section, about, given, expect)
    columns = [shredded(row, kind) for row in rows] if groups is None else list(groups)
    table = pa.table({"v": pa.array(columns, group_type(kind))})
    write_parquet(folder / "file.parquet", table, row_group_size=row_group_size)


def keys(**paths: Json) -> Json:
    return {f"$['{name}']": bound for name, bound in paths.items()}


def files() -> None:
    """K1, K2, K4, ST1 to ST8, ST14, TR1, TR2: the bounds of a file."""
    qualifying()
    types()
    names()
    strings()


AB = pa.struct({"a": INT, "b": STRING})


def qualifying() -> None:
    """ST1 to ST7, ST14: which paths have bounds."""
    b = text("x")
    bounds(
        "all_typed",
        "ST1 ST8 ST14 K1",
        "keeps",
        "Every value of a path is typed: it has bounds, of the type of its column; SQL NULLs are counted",
        AB,
        [obj(a=int64(5), b=b), None, obj(a=int64(-3), b=b), {"null": None}],
        keys(a=int64(-3), b=b),
        keys(a=int64(5), b=b),
    )
    bounds(
        "one_of_another_type",
        "ST1 ST2",
        "breaks",
        "One value of another type removes the bounds of its path only",
        AB,
        [obj(a=int64(5), b=b), obj(a=text("five"), b=b)],
        keys(b=b),
        keys(b=b),
    )
    bounds(
        "some_missing",
        "ST2 ST3",
        "keeps",
        "Rows without the path, and SQL NULLs, do not remove bounds",
        AB,
        [obj(a=int64(5)), obj(b=b), None, obj()],
        keys(a=int64(5), b=b),
        keys(a=int64(5), b=b),
    )
    bounds(
        "a_variant_null",
        "ST2",
        "breaks",
        "A Variant null at the path takes its bounds",
        AB,
        [obj(a=int64(5), b=b), obj(a={"null": None}, b=b)],
        keys(b=b),
        keys(b=b),
    )
    bounds(
        "all_missing",
        "ST3",
        "breaks",
        "If no row has a path the column has no bounds",
        AB,
        [obj(), text("x"), None],
        None,
        None,
    )
    bounds(
        "all_null",
        "ST3 ST14",
        "breaks",
        "A column of SQL NULLs has a null count and no bounds",
        AB,
        [None, None],
        None,
        None,
    )
    bounds(
        "variant_nulls_not_counted",
        "ST14",
        "breaks",
        "Variant nulls are not SQL NULLs",
        AB,
        [{"null": None}, {"null": None}, obj(a=int64(1))],
        keys(a=int64(1)),
        keys(a=int64(1)),
    )
    nested = pa.struct({"o": AB})
    bounds(
        "ancestor_not_an_object",
        "ST4",
        "keeps",
        "A row in which an ancestor is not an object does not have the path",
        nested,
        [obj(o=obj(a=int64(1))), obj(o=text("x")), text("y"), {"array": []}],
        {"$['o']['a']": int64(1)},
        {"$['o']['a']": int64(1)},
    )
    hidden = encode(obj(a=int64(100)))
    invalid = {"metadata": hidden[0], "value": hidden[1], "typed_value": None}
    bounds(
        "ancestor_an_object_in_value",
        "ST4",
        "breaks",
        "An object in `value` removes the bounds of its paths",
        AB,
        [obj(a=int64(1)), obj(a=int64(100))],
        None,
        None,
        groups=[shredded(obj(a=int64(1)), AB), invalid],
    )
    doubled = {**invalid, "typed_value": {"a": _pair(2), "b": _pair(None)}}
    bounds(
        "field_in_value_and_typed_value",
        "ST4",
        "breaks",
        "A field that is in `value`, too, removes the bounds of its path",
        AB,
        [obj(a=int64(1), b=b), obj(a=int64(100))],
        keys(b=b),
        keys(b=b),
        groups=[shredded(obj(a=int64(1), b=b), AB), doubled],
    )
    d = pa.struct({"d": DOUBLE, "e": DOUBLE})
    bounds(
        "a_nan_in_one_row_group",
        "ST5 ST6",
        "breaks",
        "A NaN takes the bounds of its path in the whole file, in whatever row group it is",
        d,
        [obj(d={"double": "NaN"}, e={"double": 1.5}), obj(d={"double": 2.5}, e={"double": 2.5})],
        keys(e={"double": 1.5}),
        keys(e={"double": 2.5}),
        row_group_size=1,
    )
    bounds(
        "row_groups_merged",
        "ST5",
        "keeps",
        "The bounds of the file are those of all its row groups",
        d,
        [obj(d={"double": 2.5}), obj(d={"double": -1.5}), obj(d={"double": "Infinity"})],
        keys(d={"double": -1.5}),
        keys(d={"double": "Infinity"}),
        row_group_size=1,
    )
    zero, minus_zero = {"double": 0.0}, {"double": "-0.0"}
    for name, verdict, given in (
        ("zero_positive", "breaks", zero),
        ("zero_negative", "breaks", minus_zero),
    ):
        bounds(
            name,
            "ST7",
            verdict,
            "The least zero is written as -0.0 and the greatest as 0.0, whichever it was",
            d,
            [obj(d=given), obj(e=given)],
            keys(d=minus_zero, e=minus_zero),
            keys(d=zero, e=zero),
            section=ORDERS,
        )
    bounds(
        "zero_within",
        "ST7",
        "keeps",
        "A zero that is neither least nor greatest does not affect the bounds",
        d,
        [obj(d={"double": -1.0}), obj(d=zero), obj(d={"double": 1.0})],
        keys(d={"double": -1.0}),
        keys(d={"double": 1.0}),
        section=ORDERS,
    )


def _pair(number: int | None) -> Json:
    return {"value": None, "typed_value": number}


def types() -> None:
    """ST8: bounds have the physical type of their column."""
    extremes: tuple[tuple[str, pa.DataType, Any, Any], ...] = (
        ("int8", pa.int8(), -128, 127),
        ("int16", pa.int16(), -32768, 32767),
        ("int32", pa.int32(), -(2**31), 2**31 - 1),
        ("int64", pa.int64(), -(2**63), 2**63 - 1),
        ("float", pa.float32(), -1.5, 2.5),
        ("double", pa.float64(), -1.7976931348623157e308, 1.7976931348623157e308),
        ("decimal4", pa.decimal128(9, 2), "-1234567.89", "2.00"),
        ("decimal8", pa.decimal128(18, 3), "-10.000", "1.234"),
        ("decimal16", pa.decimal128(38, 0), "-" + "9" * 38, "9" * 38),
        ("date", pa.date32(), -353920, 19000),
        ("timestamp", pa.timestamp("us", "UTC"), -30578684276876544, 1234567),
        ("timestamp_ntz", pa.timestamp("us"), -1, 1234567),
        ("string", pa.string(), "", "\U0010ffff"),
    )
    for kind, arrow_type, least, greatest in extremes:
        bounds(
            f"type_{kind}",
            "ST8 K1",
            "keeps",
            "The bounds have the type of their column, with every digit of it",
            arrow_type,
            [{kind: greatest}, None, {kind: least}],
            {"$": {kind: least}},
            {"$": {kind: greatest}},
        )
    bounds(
        "type_of_other_values",
        "ST8 ST1",
        "breaks",
        "A number of another class than its column is not in it, and takes the bounds",
        pa.struct({"a": pa.int8()}),
        [obj(a={"int8": 1}), obj(a={"double": 1.5})],
        None,
        None,
    )


def names() -> None:
    """K1, K2, K4: the keys."""
    odd = {
        "it's": "$['it\\'s']",
        "back\\slash": "$['back\\\\slash']",
        "b\b": "$['b\\b']",
        "f\f": "$['f\\f']",
        "n\n": "$['n\\n']",
        "r\r": "$['r\\r']",
        "t\t": "$['t\\t']",
        "v\x0b": "$['v\\u000b']",
        "z\x1f": "$['z\\u001f']",
        'q"': "$['q\"']",
        "d\x7f": "$['d\x7f']",
        "a.b/[c]": "$['a.b/[c]']",
        "é\u2028😀": "$['é\u2028😀']",
        "": "$['']",
    }
    row = obj(**{name: int64(number) for number, name in enumerate(odd)})
    expected = {key: int64(number) for number, key in enumerate(odd.values())}
    kind = pa.struct(dict.fromkeys(odd, INT))
    about = "Names are escaped exactly as in normalized paths"
    bounds("escaped_names", "K2 K1", "keeps", about, kind, [row], expected, expected, section=RFC_9535)

    deep = pa.struct({"a": pa.struct({"b": pa.struct({"a": INT})}), "A": INT})
    row = obj(a=obj(b=obj(a=int64(1))), A=int64(2))
    expected = {"$['a']['b']['a']": int64(1), "$['A']": int64(2)}
    about = "A key has a member for each level, and minds case"
    bounds("nested_names", "K1", "keeps", about, deep, [row], expected, expected)

    group = pa.struct({"value": INT, "typed_value": INT, "list": INT, "element": INT, "metadata": INT})
    row = obj(
        **{name: int64(number) for number, name in enumerate(["value", "typed_value", "list", "element"])}
    )
    expected = keys(value=int64(0), typed_value=int64(1), list=int64(2), element=int64(3))
    about = "Fields may have the names that the layout has"
    bounds("names_of_the_layout", "K1 K4", "keeps", about, group, [row], expected, expected)

    lists = pa.struct({"l": pa.list_(INT), "o": pa.list_(pa.struct({"a": INT})), "b": INT})
    row = obj(l={"array": [int64(1)]}, o={"array": [obj(a=int64(2))]}, b=int64(3))
    about = "What is below an array is never a key; its siblings are"
    bounds("below_an_array", "K4", "breaks", about, lists, [row], keys(b=int64(3)), keys(b=int64(3)))
    about = "A column of arrays has no keys at all"
    bounds("root_an_array", "K4", "breaks", about, pa.list_(INT), [{"array": [int64(1)]}], None, None)


def strings() -> None:
    """TR1, TR2: bounds of long text."""
    kind = pa.struct({"s": STRING})
    last = "\U0010ffff"
    bounds(
        "text_of_32",
        "TR1 TR2",
        "keeps",
        "Text of 32 characters is not truncated",
        kind,
        [obj(s=text("x" * 32)), obj(s=text("a" * 32))],
        keys(s=text("a" * 32)),
        keys(s=text("x" * 32)),
    )
    bounds(
        "text_of_33",
        "TR1 TR2",
        "breaks",
        "Longer text is truncated, and the upper bound ends with the greatest character",
        kind,
        [obj(s=text("x" * 33)), obj(s=text("a" * 33))],
        keys(s=text("a" * 32)),
        keys(s=text("x" * 32 + last)),
    )
    below, emoji = "\uff5e", "\U0001f600"
    bounds(
        "text_beyond_the_basic_plane",
        "TR3",
        "keeps",
        "Bounds of row groups are merged by UTF-8 bytes, by which U+FF5E is below U+1F600",
        kind,
        [obj(s=text(each)) for each in (below, emoji)],
        keys(s=text(below)),
        keys(s=text(emoji)),
        section="LogicalTypes.md, STRING",
        row_group_size=1,
    )


def main() -> None:
    """Write all cases."""
    texts()
    files()


if __name__ == "__main__":
    main()
