"""SQL expressions with the functions of Variants, and Spark's answers to them.

`tests/expressions/spark_functions.json` has the answers of Spark 4.3, without a JVM. This module writes it:
`PYTHONPATH=<PySpark 4.3> python tests/spark/function_cases.py`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).resolve().parents[1] / "expressions" / "spark_functions.json"
ERROR = {"error": True}
"""The answer of an expression that Spark rejects or fails on."""

DOCUMENTS = (
    "null",
    "1",
    '"x"',
    "[]",
    "{}",
    "[1, null, [2]]",
    '{"a": null}',
    '{"a": 1, "b": [1, {"c": 2}], "z": {"y": {}}}',
    '{"a": [[]]}',
    '[{"a": 1}, 5]',
)
PATHS = (
    "$",
    "$.a",
    "$.b",
    "$.b[1].c",
    "$.b[0]",
    "$.b[4]",
    "$.z.y.x",
    "$[0]",
    "$[1]",
    "$[3]",
    "$[0].a",
    "$[2][1]",
    "$.a[0][1]",
    "$['a b']",
)
CHANGES = ("variant_insert", "variant_set", "variant_array_append")
NUMBERS = (
    *("0", "-7", "1.0", "100.0", "0.10", "-0.001", "12.340", "1e2", "1.5e300", "9223372036854775807"),
    *("9223372036854775808", "12345678901234567890123456789012345678", "123456789012345678901234567890.5"),
)
MIXED = (
    *('[1, "a"]', "[1, 2.5]", "[1, 1e5]", "[1.5, 1e5]", '[{"a": 1}, {"b": 2}]', '[{"a": 1}, [1]]'),
    *("[1.23, 12.3456]", "[12345678901234567890123456789012345678, 0.12345678901]", "[[1], []]"),
    *('[{"a": null}, {"a": 1}]', '{"a b": 1, "1": 2, "_x1": 3, "1a": 2, "": 1, "é": 1, "select": 1}'),
    *('{"a`b": null}', "[true, 1]", "[null, null]", '[[1], "x"]', '[{"a": [1]}, {"a": [2.5]}]'),
)
SCALARS = (
    *("1.5f", "1.5d", "date'2020-01-01'", "timestamp'2020-01-01 00:00:00'", "x'00ff'", "true", "'x'"),
    *("timestamp_ntz'2020-01-01 00:00:00'", "1.00", "cast(7 as tinyint)", "cast(null as string)"),
)
OTHERS = (
    "typeof(1)",
    "typeof(null)",
    "typeof(parse_json('1'))",
    "typeof(parse_json('1')::double)",
    "typeof(cast(1 as decimal(7,2)))",
    "parse_json('{\"a\": [1, 2]}'):a[1]::int",
    "is_variant_null(parse_json('null'))",
    "is_variant_null(parse_json('\"null\"'))",
    "is_variant_null(variant_get(parse_json('{\"a\": null}'), '$.a'))",
    "is_variant_null(variant_get(parse_json('{\"a\": null}'), '$.b'))",
    "is_valid_variant(parse_json('[1]'))",
    "schema_of_variant(cast(null as variant))",
    "to_json(try_parse_json('{a}'))",
    "to_json(parse_json('{a}'))",
    "to_json(variant_insert(parse_json('{}'), '$.a', cast(null as string)))",
    "to_json(variant_insert(parse_json('{}'), '$.a', parse_json('null')))",
    "to_json(variant_insert(cast(null as variant), '$.a', 1))",
    "to_json(variant_delete(parse_json('{\"a\": [1, 2, 3], \"b\": 1}'), '$.a[0]', '$.a[0]', '$.b'))",
    "to_json(variant_delete(parse_json('{\"a\": 1}')))",
    "to_json(variant_set(parse_json('{}'), 'a', 1))",
    "to_json(variant_set(parse_json('{}'), '', 1))",
    "to_json(variant_strip_nulls(cast(null as variant)))",
    "to_json(to_variant_object(1))",
    "to_json(to_variant_object(array(1, 'x')))",
    "to_json(to_variant_object(map(null, 2)))",
    "to_json(to_variant_object(map(1, 2)))",
    "to_json(cast(array(1, null) as variant))",
    "to_json(cast(array(parse_json('1'), null, parse_json('null')) as variant))",
)

VALUES = ("1", "2.5", "'x'", "null", "true", "1e0", "date'2020-01-01'", "x'00ff'", "parse_json('[1]')")
CONSTRUCTED = (
    *("array(array(1), null)", "array(array(1), array(2))", "array('a', cast(null as string))"),
    *("array(1, '2')", "array(1, 2.5, 3e0)", "array(parse_json('1'), null)"),
    *(
        "array(named_struct('a', 1), named_struct('a', 2))",
        "array(named_struct('a', 1), named_struct('b', 2))",
    ),
    *("array(date'2020-01-01', timestamp'2020-01-01 00:00:00')", "array(date'2020-01-01', '2020-01-02')"),
    *("array(cast(9007199254740993 as bigint), 1.5)", "array(cast(1 as tinyint), cast(2 as smallint))"),
    *("array(timestamp'2020-01-01 00:00:00', timestamp_ntz'2020-01-01 00:00:00')", "struct()"),
    *("struct(1 as a, 'x' as b)", "struct(1, 'x', 2 as n)", "struct(array(1) as a, map('k', 2) as m)"),
    *("struct(parse_json('{\"a\": 1}'):a, parse_json('{\"b\": [1]}'):b[0], parse_json('1')::int)",),
    *("named_struct('a', 1, 'b', 'x')", "named_struct('b', 1, 'a', named_struct('z', 1, 'y', 2))"),
    *("named_struct('a', 1, 'A', 2)", "named_struct('', 1, 'a b', 2)", "named_struct('a')"),
    *("named_struct('a', 1, 'b')", "named_struct(1, 2)", "named_struct(cast(null as string), 2)"),
    *("map('b', 1, 'a', 2)", "map('a', 1, 'a', 2)", "map('a', 1, cast(null as string), 2)", "map('a')"),
    *("map('a', 1, 'b', 2.5)", "map('a', array(1), 'b', array(2))", "map('a', cast(null as int))"),
    *("map('a', parse_json('[1]'), 'b', parse_json('null'))", "map(parse_json('1'), 2)"),
    *("map_from_arrays(array('a', 'b'), array(1, 2))", "map_from_arrays(array('a'), array(1, 2))"),
    *("map_from_arrays(array('a', 'a'), array(1, 2))", "map_from_arrays(array('a', null), array(1, 2))"),
    *("map_from_arrays(array('a'), array(cast(null as int)))", "map_from_arrays('a', 1)"),
    *("map_from_entries(array(struct('a', 1), struct('b', 2)))", "map_from_entries(array(struct('a')))"),
    *(
        "map_from_entries(array(struct('a', 1), struct('a', 2)))",
        "map_from_entries(array(struct('a', 1), null))",
    ),
    *("array(map('a', 1), map('b', 2))", "array(parse_json('1'), 2)", "array(true, 1)"),
)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _parsed(document: str) -> str:
    return f"parse_json({_text(document)})"


def expressions() -> Iterator[str]:
    """Yield every expression of `spark_functions.json`, each with a value that is a string or a boolean."""
    for document in DOCUMENTS:
        for path in PATHS:
            for function in CHANGES:
                arguments = f"{_parsed(document)}, {_text(path)}, 9"
                yield f"to_json({function}({arguments}))"
                yield f"to_json(try_{function}({arguments}))"
            yield f"to_json(variant_set({_parsed(document)}, {_text(path)}, 'new', false))"
            yield f"to_json(variant_delete({_parsed(document)}, {_text(path)}))"
        yield f"to_json(variant_strip_nulls({_parsed(document)}))"
        yield f"to_json(variant_strip_nulls({_parsed(document)}, false))"
    for document in (*DOCUMENTS, *NUMBERS, *MIXED):
        yield f"schema_of_variant({_parsed(document)})"
    for scalar in SCALARS:
        yield f"schema_of_variant(cast({scalar} as variant))"
        yield f"to_json(cast({scalar} as variant))"
        yield f"to_json(variant_set(parse_json('{{}}'), '$.a', {scalar}))"
    yield from OTHERS
    for value in VALUES:
        for other in VALUES:
            yield f"typeof(struct(array({value}) as a, {other} as b))"
        # Spark converts no part of type void.
        if value != "null":
            yield f"to_json(to_variant_object(struct({value} as a, array({value}, null) as b)))"
            yield f"to_json(to_variant_object(map('k', {value})))"
    for constructor in CONSTRUCTED:
        yield f"typeof({constructor})"
        yield f"to_json(to_variant_object({constructor}))"


def answers(spark: Any, texts: Sequence[str]) -> list[Any]:
    """Return Spark's answer to each expression, `ERROR` where it has none."""
    found = []
    for text in texts:
        try:
            found.append(spark.sql(f"select {text}").collect()[0][0])
        except Exception:  # the classes of analysis and of task errors differ between sessions
            found.append(ERROR)
    return found


def random_document(source: random.Random, depth: int = 3) -> Any:
    """Return a JSON value with few names, so that paths meet fields."""
    kind = source.randrange(7 if depth else 4)
    if kind < 4:
        return (None, source.randrange(-5, 5), source.random() < 0.5, "x" * source.randrange(3))[kind]
    parts = [random_document(source, depth - 1) for _ in range(source.randrange(4))]
    return parts if kind == 4 else dict(zip(source.sample("abcd", len(parts)), parts, strict=True))


def random_path(source: random.Random) -> str:
    """Return a path that often exists in a random document."""
    steps = (source.choice([".a", ".b", ".c", "[0]", "[1]", "[2]"]) for _ in range(source.randrange(1, 4)))
    return "$" + "".join(steps)


def random_type(source: random.Random, depth: int = 3) -> str:
    """Return a SQL type with few names, so that random documents often have values of it."""
    kind = source.randrange(8 if depth else 4)
    if kind < 4:
        return ("bigint", "string", "double", "boolean")[kind]
    if kind < 6:
        inner = random_type(source, depth - 1)
        return f"array<{inner}>" if kind == 4 else f"map<string,{inner}>"
    fields = (f"{name}: {random_type(source, depth - 1)}" for name in source.sample("abcde", 3))
    return f"struct<{', '.join(fields)}>"


def main() -> None:
    """Write `spark_functions.json` with the answers of the installed Spark."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    texts = list(expressions())
    rows = ",\n".join(
        json.dumps([text, answer], ensure_ascii=False)
        for text, answer in zip(texts, answers(spark, texts), strict=True)
    )
    ANSWERS.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
