"""Casts of Variants to structs, arrays and maps, which read only the shredded columns of their fields.

`tests/spark/test_functions_on_spark.py` compares random types with Spark.
"""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from spark.function_cases import random_document, random_type

import delta_variant as dv
from delta_variant.errors import CastError

ROWS = 3000
SCHEMA = dv.ShreddingSchema.of(
    {
        "user": {"id": pa.int64(), "name": pa.string(), "tags": [{"k": pa.int64(), "t": pa.string()}]},
        "text": pa.string(),
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = random.Random(1)

    def text() -> str:
        return source.randbytes(400).hex()

    rows = [
        {
            "event": {
                "user": {"id": number, "name": text(), "tags": [{"k": number, "t": text()}]},
                "text": text(),
            }
        }
        for number in range(ROWS)
    ]
    path = tmp_path_factory.mktemp("typed") / "t"
    dv.write_table(path, rows, variant_columns=["event"], shredding=SCHEMA)
    return str(path)


@pytest.mark.parametrize(
    ("expression", "third"),
    [
        ("cast(event:user as struct<id: bigint>)", {"id": 3}),
        ("variant_get(event, '$.user', 'struct<id: bigint, other: string>')", {"id": 3, "other": None}),
        ("event::struct<user: struct<id: int>>", {"user": {"id": 3}}),
        ("event:user.tags::array<struct<k: bigint>>", [{"k": 3}]),
        ("try_cast(event as struct<user: struct<tags: array<struct<k: string>>>>)", None),
        ("event::struct<other: string>", {"other": None}),
    ],
)
def test_a_cast_reads_only_the_columns_of_its_fields(table, expression, third):
    scan = dv.read_table(table, columns={"it": expression})
    explanation = scan.explain()
    # The texts are 99 % of the file.
    assert explanation.bytes_read < explanation.bytes / 5
    expected = {"user": {"tags": [{"k": "3"}]}} if third is None else third
    assert scan.to_pylist()[3] == {"it": expected}


def test_a_field_that_cannot_be_cast_is_an_error_or_null(table):
    with pytest.raises(CastError, match=r"cannot cast"):
        dv.read_table(table, columns=["event:user::struct<name: bigint>"]).to_table()
    lenient = dv.read_table(table, columns=["try_cast(event:user as struct<name: bigint, id: int>) as it"])
    assert lenient.to_pylist()[7] == {"it": {"name": None, "id": 7}}


@pytest.mark.parametrize("seed", range(8))
def test_shredding_does_not_change_what_is_extracted(tmp_path, seed):
    source = random.Random(seed)
    documents = [json.dumps(random_document(source, 4)) for _ in range(300)]
    rows = pa.table({"id": range(300), "v": pa.array(documents, pa.json_())})
    spec = source.choice(
        [
            {"a": {"a": pa.int64(), "b": [pa.string()]}, "b": {"a": {"a": pa.int64()}}, "c": [{"a": None}]},
            {"a": pa.int64(), "b": {"a": pa.string(), "d": {"c": pa.bool_()}}, "d": [[pa.int64()]]},
            [{"a": pa.int64(), "b": {"c": pa.string()}}],
        ]
    )
    dv.write_table(tmp_path / "shredded", rows, shredding=dv.ShreddingSchema.of(spec))
    dv.write_table(tmp_path / "plain", rows, shredding=None)
    paths = ("$", "$.a", "$.b", "$.b.d", "$.c", "$[0]", "$[1].b")
    columns = {
        f"c{number}": f"try_variant_get(v, '{source.choice(paths)}', '{random_type(source, 4)}')"
        for number in range(60)
    }
    shredded, plain = (
        dv.read_table(tmp_path / name, columns=columns).to_table() for name in ("shredded", "plain")
    )
    for name, text in columns.items():
        assert shredded[name].to_pylist() == plain[name].to_pylist(), text
