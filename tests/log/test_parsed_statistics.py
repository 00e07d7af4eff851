"""Conversion between `stats_parsed` of checkpoints and the text of statistics."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_variant.log.checkpoints.parsed_statistics import from_text, statistics_type, to_text
from delta_variant.protocol.types import PrimitiveType

BYTES = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
# {"$": 0}, as Databricks writes it.
METADATA, VALUE = bytes.fromhex("0101000124"), bytes.fromhex("02010000 0918" + "00" * 8)
GOLDEN_Z85 = "0rAf3bMW#D00%Fx0000000000"


def texts(parsed: pa.StructArray) -> list[str | None]:
    return to_text(parsed).to_pylist()


def parsed(**bounds: pa.Array) -> pa.StructArray:
    """Return the `stats_parsed` of one file, with equal lower and upper bounds."""
    side = pa.StructArray.from_arrays(list(bounds.values()), list(bounds))
    nulls = pa.StructArray.from_arrays([pa.array([0])], ["v"])
    return pa.StructArray.from_arrays(
        [pa.array([3]), side, side, nulls], ["numRecords", "minValues", "maxValues", "nullCount"]
    )


def test_parsed_statistics_of_a_checkpoint_become_the_text_of_the_protocol():
    """The Variants become z85 of their bytes, whatever the order of their columns.

    Timestamps before 1973 have an offset, because Delta on Spark 3.2 may have cut the seconds of theirs.
    """
    for names in (["value", "metadata"], ["metadata", "value"]):
        variant = pa.array(
            [{"metadata": METADATA, "value": VALUE}], pa.struct([(n, pa.binary()) for n in names])
        )
        (text,) = texts(
            parsed(
                id=pa.array([7]),
                d=pa.array([Decimal("-1.50")], pa.decimal128(20, 2)),
                day=pa.array([-1], pa.date32()),
                at=pa.array([-1], pa.timestamp("us", "UTC")),
                late=pa.array([94_694_400_000], pa.timestamp("ms", "UTC")),
                ntz=pa.array([1_700_000_000_123], pa.timestamp("ms")),
                nan=pa.array([float("nan")]),
                absent=pa.array([None], pa.string()),
                v=variant,
            )
        )
        side = (
            '{"id":7,"d":-1.50,"day":"1969-12-31","at":"1969-12-31T23:59:59.999+00:00",'
            '"late":"1973-01-01T00:00:00.000Z","ntz":"2023-11-14T22:13:20.123","v":"0rAf3bMW#D00%Fx0000000000"}'
        )
        assert text == f'{{"numRecords":3,"minValues":{side},"maxValues":{side},"nullCount":{{"v":0}}}}'


def test_a_file_without_parsed_statistics_has_no_text():
    rows = pa.concat_arrays([parsed(id=pa.array([1])), pa.nulls(1, parsed(id=pa.array([1])).type)])
    assert [text is None for text in texts(rows)] == [False, True]


def test_an_invalid_variant_bound_is_omitted():
    for row in ({"metadata": b"", "value": b"\0"}, {"metadata": None, "value": b"\0"}):
        (text,) = texts(parsed(id=pa.array([1]), v=pa.array([row], BYTES)))
        assert text == '{"numRecords":3,"minValues":{"id":1},"maxValues":{"id":1},"nullCount":{"v":0}}'


def test_an_invalid_variant_bound_does_not_affect_other_files():
    bounds = [{"metadata": METADATA, "value": VALUE}, {"metadata": b"", "value": b"\0"}, None]
    rows = pa.concat_arrays(
        [parsed(id=pa.array([n]), v=pa.array([bound], BYTES)) for n, bound in enumerate(bounds)]
    )
    sides = [json.loads(text or "")["maxValues"] for text in texts(rows)]
    assert sides == [{"id": 0, "v": GOLDEN_Z85}, {"id": 1}, {"id": 2}]


def test_bounds_of_years_without_a_text_form_are_omitted():
    in_70417 = 25_000_000 * 86_400_000_000
    far = parsed(
        day=pa.array([10**7], pa.date32()),
        next_day=pa.array([2_932_897], pa.date32()),
        at=pa.array([2**62], pa.timestamp("us", "UTC")),
        ntz=pa.array([-(2**62)], pa.timestamp("us")),
        wrapped=pa.array([in_70417], pa.timestamp("us", "UTC")),
    )
    assert texts(far) == ['{"numRecords":3,"minValues":{},"maxValues":{},"nullCount":{"v":0}}']


TYPES = {
    "b": "byte",
    "l": "long",
    "d": "double",
    "m": "decimal(20,3)",
    "s": "string",
    "day": "date",
    "at": "timestamp",
    "v": "variant",
}
COLUMNS = [((name,), PrimitiveType(kind)) for name, kind in TYPES.items()]
NESTED = [(("st", *path), data_type) for path, data_type in COLUMNS]
STATISTICS = statistics_type([*COLUMNS, *NESTED])

integers = st.integers(-(2**63), 2**63 - 1)
bounds = st.fixed_dictionaries(
    {},
    optional={
        "b": st.integers(-128, 127),
        "l": integers,
        "d": st.floats(allow_nan=False, allow_infinity=False),
        "m": st.integers(-(10**15), 10**15),
        "s": st.text(),
        "day": st.dates().map(str),
        "at": st.datetimes().map(
            lambda moment: (
                moment.isoformat(timespec="milliseconds") + ("Z" if moment.year >= 1973 else "+00:00")
            )
        ),
        "v": st.just(GOLDEN_Z85),
    },
)
sides = st.builds(
    lambda side, nested: side | nested, bounds, st.fixed_dictionaries({}, optional={"st": bounds})
)
entries = st.fixed_dictionaries(
    {},
    optional={"numRecords": integers, "minValues": sides, "maxValues": sides, "tightBounds": st.booleans()},
)


@given(st.lists(st.none() | entries, max_size=4))
def test_a_round_trip_through_columns_keeps_statistics(files):
    written = [None if entry is None else json.dumps(entry) for entry in files]
    read = texts(from_text(pa.array(written, pa.string()), STATISTICS))
    assert [None if text is None else json.loads(text) for text in read] == files


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"minValues":7}',
        '{"minValues":{"b":128,"l":"1","d":"NaN","m":0.0001,"s":1,"day":"x","at":"x","v":"x"}}',
        '{"minValues":{"m":1e999999999,"d":1e999999999,"l":1e2}}',
        '{"minValues":{"m":1e99999999999999999999}}',
        f'{{"minValues":{{"d":{"9" * 400}}}}}',
        '{"numRecords":true}',
        "[" * 100_000,
    ],
)
def test_statistics_that_do_not_fit_a_column_are_omitted(text):
    (entry,) = texts(from_text(pa.array([text]), STATISTICS))
    assert entry in (None, "{}", '{"minValues":{}}')
