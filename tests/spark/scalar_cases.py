"""Calls of scalar functions and casts, and what Spark returns for them.

`tests/expressions/spark_scalars.json` has the answers of Spark 4.2, without a JVM. This module writes it:

    PYTHONPATH=tests .venv/bin/python -m spark.scalar_cases
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

ANSWERS = Path(__file__).resolve().parents[1] / "expressions" / "spark_scalars.json"
ERROR = "error"
DIFFERENCES = [
    re.compile(text)
    for text in (r"cast\(x'00ff41' as string", r"(9{38}|123456789012345678'.*) as timestamp\)")
]
"""The expressions that differ as docs/reference/sql.md says, in "Casts"."""
ZONES = ("UTC", "America/New_York")
ZONE = "spark.sql.session.timeZone"

TEXTS = [
    "cast(null as string)",
    "''",
    "'Spark SQL'",
    "'  ÄßǅİΣ straße ΑΣ  '",
    "'\U0001f600a\U0001f1e9\U0001f1eaé'",
    "'aXbXXc'",
    "'\t x\n'",
]
INTEGERS = ["cast(null as int)", "0", "1", "-1", "3", "-3", "2147483647", "cast(-2147483648 as int)"]
SMALL = ["cast(100 as tinyint)", "cast(-128 as tinyint)", "cast(32767 as smallint)", "cast(5 as smallint)"]
LONGS = [
    "cast(null as bigint)",
    "9223372036854775807",
    "cast('-9223372036854775808' as bigint)",
    "1785542400123L",
]
DECIMALS = [
    "cast(null as decimal(5,2))",
    "1.50",
    "-1.55",
    "0.00",
    "999.95",
    "-0.5",
    "cast('0.000000001234' as decimal(20,12))",
    "99999999999999999999999999999999999999",
    "cast('12345678901234567890.123456789012345678' as decimal(38,18))",
    "cast('-2.5' as decimal(38,1))",
]
DOUBLES = [
    "cast(null as double)",
    "0e0",
    "cast('-0.0' as double)",
    "2.5e0",
    "-2.5e0",
    "1.005e0",
    "1e300",
    "-1.5e-7",
    "123456789.987654321e0",
    "cast('NaN' as double)",
    "cast('Infinity' as double)",
    "cast('-Infinity' as double)",
    "9.3e18",
]
FLOATS = ["cast(1.1 as float)", "cast('NaN' as float)", "cast('-0.0' as float)", "cast(16777217 as float)"]
BOOLEANS = ["true", "false", "cast(null as boolean)"]
BINARY = ["x''", "x'00ff41'", "cast(null as binary)", "cast('Ärger' as binary)"]
DATES = [
    "cast(null as date)",
    "date '2026-11-26'",
    "date '1970-01-01'",
    "date '1582-10-04'",
    "date '0001-01-01'",
    "date '-0005-02-28'",
    "date '2024-02-29'",
    "date '2021-01-03'",
    "date '2020-12-31'",
    "date '9999-12-31'",
    "date '+12345-06-07'",
]
TIMESTAMPS = [
    "cast(null as timestamp)",
    "timestamp '2026-11-26 23:59:59.123456'",
    "timestamp '1969-12-31 23:59:59.999999'",
    "timestamp '2026-03-08 01:59:59'",
    "timestamp '2026-03-08 02:30:00'",
    "timestamp '2026-11-01 01:30:00'",
    "timestamp '2026-11-01 06:30:00+00:00'",
    "timestamp '1500-03-01 12:00:00'",
    "timestamp '0001-01-01 00:00:00'",
    "timestamp '+12345-06-07 08:09:10.5'",
]
LOCAL = ["timestamp_ntz '2026-03-08 02:30:00.000001'", "timestamp_ntz '1500-03-01 12:00:00'"]
NUMBERS = [*INTEGERS, *SMALL, *LONGS, *DECIMALS, *DOUBLES, *FLOATS]
ARRAYS = ["array(1, 2, null)", "array(1, 2)", "cast(null as array<int>)", "array('a', null)", "array(0.5e0)"]
STRUCTS = ["array(named_struct('x', 1), null)", "array(named_struct('x', 'a'))"]
UNSORTED = [
    "array(3, null, 1)",
    "array()",
    "array(null, null)",
    "cast(null as array<int>)",
    "array(double('NaN'), 1e0, null, double('inf'), double('-0.0'), 0e0, -1e0, double('-inf'))",
    "array('b', null, 'a', 'Z', 'é', '\U0001f600', '', '\uffee')",
    "array(true, null, false, true)",
    "array(x'02', x'', x'01ff', null, x'ff')",
    "array(127Y, -128Y)",
]
MAPS = {
    "map('a', 1, 'b', null)": ["'a'", "'b'", "'c'", "null", "cast(null as string)"],
    "map(1, 'one', -3, 'x')": ["1", "-3", "0", "cast(1 as tinyint)", "cast(null as int)"],
    "map(date '1970-01-01', 2.50)": DATES[:3],
    "map(1.50, 1)": ["1.50", "2.50"],
    "map(true, 1)": BOOLEANS,
    "map(x'00ff41', 1)": BINARY,
    "map(timestamp '2026-11-01 06:30:00+00:00', 1)": TIMESTAMPS[5:7],
    "cast(null as map<string, int>)": ["'a'", "null"],
}
"""Maps, and keys to look for."""

FORMATS = [
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM",
    "y/M/d h:m:s a",
    "yy.MMM.dd EEE",
    "EEEE, d MMMM yyyy",
    "yyyyMMddHHmmssSSS",
    "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "HH:mm X x Z",
    "XX xx xxx",
    "D DDD Q k K kk KK hh",
    "'it''s' ''yyyy''",
    "yyyyy|yyyyyy|yyy",
    "S SS SSSSSSSSS",
    "LL LLL LLLL",
]
PARSED = [
    ("2026-11-26 10:11:12", "yyyy-MM-dd HH:mm:ss"),
    ("2026-11-26", "yyyy-MM-dd"),
    ("2026-1-2", "yyyy-M-d"),
    ("2026-1-2", "yyyy-MM-dd"),
    ("2026-02-30", "yyyy-MM-dd"),
    ("20261126", "yyyyMMdd"),
    ("20261126101112", "yyyyMMddHHmmss"),
    ("26/11/99", "dd/MM/yy"),
    ("Nov 5, 2026", "MMM d, yyyy"),
    ("nov 5, 2026", "MMM d, yyyy"),
    ("November 5 2026", "MMMM d yyyy"),
    ("Nov 5 2026", "MMMM d yyyy"),
    ("11:05 PM", "hh:mm a"),
    ("11:05 pm", "hh:mm a"),
    ("12:00 AM", "hh:mm a"),
    ("11:05", "hh:mm"),
    ("24:00", "kk:mm"),
    ("24:00", "HH:mm"),
    ("2026-11-26T10:11:12.5Z", "yyyy-MM-dd'T'HH:mm:ss.SX"),
    ("2026-11-26T10:11:12.123456789+01:00", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSSXXX"),
    ("2026-11-26T10:11:12.12+01:30", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
    ("2026-11-26T10:11:12.+0130", "yyyy-MM-dd'T'HH:mm:ss.SSSXX"),
    ("2026-11-26T10:11:12+01", "yyyy-MM-dd'T'HH:mm:ssX"),
    ("2026-11-26T10:11:12+0100", "yyyy-MM-dd'T'HH:mm:ssX"),
    ("2026-11-26 10:11:12 +0100", "yyyy-MM-dd HH:mm:ss Z"),
    ("2026", "yyyy"),
    ("02026", "yyyy"),
    ("+12026", "yyyy"),
    ("+2026", "yyyy"),
    ("12026", "yyyy"),
    ("26", "y"),
    ("-26", "y"),
    ("0", "y"),
    ("2026-03-08 02:30:00", "yyyy-MM-dd HH:mm:ss"),
    ("2026-11-26 ", "yyyy-MM-dd"),
    ("", "yyyy-MM-dd"),
    ("2026-11-26 10", "yyyy-MM-dd"),
    ("2026-13-01", "yyyy-MM-dd"),
    ("1-1-1", "d-M-y"),
    ("12:61", "HH:mm"),
    ("10:11:12.1234567", "HH:mm:ss.SSSSSS"),
    ("20261126101112123", "yyyyMMddHHmmssSSS"),
    ("T2026", "'t'yyyy"),
    ("2026-11-26 1:2:3", "yyyy-MM-dd H:m:s"),
]
TITLES = [
    "'hello wORLD a-b_c.d\te'",
    "' ßa  ßB '",
    "'ǆab ǄAB ǅx ﬁsh ﬃx ŉabc ΐx ǰy'",
    "'ΑΣ ΟΔΟΣ Σ ΑΣ. ΑΣΑ ΑΣ΄Α ΑΣ\u0301Β'",
    "'İstanbul ıI İİ I\u0307x aI\u0307'",
    "'აბგ Აბ ᲐᲑ'",
    "'ᾳx ᾼX ᾲα ᾷ ῷ ῂ'",
    "'\\'tis o\\'neil 1st ⅷx ⓐb \U00010428\U00010428 \u0301abc'",
    "'a\u00a0b\u2003c'",
]
"""Texts whose words begin with letters that have another title case than upper case, or none."""
SPREAD = Random(7)
POSITIVE = [
    f"{SPREAD.uniform(0.5, 2) * 2.0 ** SPREAD.choice((0, 0, SPREAD.randrange(-1070, 1020))):.16e}"
    for _ in range(60)
]
CHANGES = ["2026-03-07 02:30:00", "2026-03-08 03:30:00", "2026-10-31 01:30:00", "2026-11-01 06:30:00Z"]
"""Local times a day before or at the changes of the offset of New York."""
INTERVALS = [
    "1 day",
    "-1 month",
    "'13' months",
    "1 YEAR 2 months",
    "'1 day 2 hours'",
    "2 weeks",
    "24 hours",
    "'-90' minutes 5 seconds 7 microseconds",
]
REGULAR_EXPRESSIONS = [
    "a",
    "^a.*c$",
    "X{2}",
    "(?i)SPARK",
    "[a-c]X+",
    r"\\s",
    r"\\S+\\s\\S+",
    r"\\d",
    ".",
    "^.$",
    "é|SQL",
    "(?i)[s-u]park",
    r"\\w+",
    "(a|b)X",
    "a.?X",
    r"\\p{L}",
    r"^\\p{Lu}",
    "x$",
    "[^a-zA-Z ]",
    "^$",
    r"\\x41|\\.",
]


def _calls(name: str, *arguments: Sequence[str]) -> Iterator[str]:
    for values in product(*arguments):
        yield f"{name}({', '.join(values)})"


def _strings() -> Iterator[str]:
    positions = ["cast(null as int)", "0", "1", "2", "-1", "-4", "-100", "100", "2147483647", "-2147483647"]
    for name in ("upper", "lower", "trim", "ltrim", "rtrim", "length"):
        yield from _calls(name, [*TEXTS, "5", "1.50"])
    for name in ("trim", "ltrim", "rtrim"):
        yield from _calls(name, ["'Sa L'", "''", "cast(null as string)", "'\U0001f600'"], TEXTS)
    yield from _calls("substring", TEXTS, positions)
    yield from _calls("substr", TEXTS, positions, ["0", "2", "-1", "100", "2147483647"])
    yield from _calls("left", TEXTS, positions)
    yield from _calls("right", TEXTS, positions[:-1])
    yield from _calls("replace", TEXTS, ["'X'", "''", "'XX'"], ["'yy'", "''", "cast(null as string)"])
    yield from _calls("replace", TEXTS, ["'X'"])
    for name in ("contains", "startswith", "endswith"):
        yield from _calls(name, TEXTS, ["'a'", "''", "'c'", "cast(null as string)"])
    yield from _calls("concat", TEXTS[:4], ["'x'", "cast(null as string)", "1", "2.50", "true"])
    yield from ("concat('a')", "concat('a', 1, date '2026-01-02')")
    yield from _calls(
        "concat_ws", ["','", "cast(null as string)"], TEXTS[:3], ["'x'", "cast(null as string)"]
    )
    yield from ("concat_ws(',')", "concat_ws(',', 1, 2.50, null)", "concat_ws(',', null)")
    yield from _calls("rlike", TEXTS, [f"'{each}'" for each in REGULAR_EXPRESSIONS])
    yield from ("rlike('a', cast(null as string))", "regexp_like('abc', 'b')", "rlike(null, 'a')")
    splitters = ["'X'", "'[ X]'", r"'\\s+'", "'(a|b)'", "','", "cast(null as string)"]
    yield from _calls("split", TEXTS, splitters)
    yield from _calls("split", TEXTS, ["'X'"], ["1", "2", "0", "-1", "3"])
    yield from _calls("repeat", [*TEXTS, "5"], ["0", "1", "3", "-1", "cast(null as int)"])
    yield from _calls("reverse", [*TEXTS, "1.50"])
    for name in ("lpad", "rpad"):
        yield from _calls(name, TEXTS, ["0", "3", "12", "-1", "cast(null as int)"], ["'xy\U0001f600'", "''"])
        yield from (f"{name}('a', 3)", f"{name}(7, 3, 0)", f"{name}('a', 3, null)")
    searched = ["'X'", "'XX'", "''", "'c'", "'\U0001f600'", "cast(null as string)"]
    yield from _calls("instr", TEXTS, searched)
    yield from _calls("locate", searched, TEXTS)
    yield from _calls("position", searched[:3], TEXTS, ["0", "1", "3", "100", "-1", "cast(null as int)"])
    yield from ("position('SQL' in 'Spark SQL')", "position(1 in 213)")
    parts = ["0", "1", "2", "-1", "-2", "4", "-2147483648", "cast(null as int)"]
    yield from _calls("split_part", TEXTS, ["'X'", "''", "' '"], parts)
    replaced = [
        "a",
        "^a",
        "X",
        "X+",
        r"\\s+",
        "(a|b)X",
        r"\\bS",
        r"(\\S)(\\S)",
        r"\\s+\\z",
        "(?i)s",
        "[^a-zA-Z ]",
        "é|SQL",
    ]
    others = ["'-'", "''", "'$0$0'", r"'\\$a'", r"'\\\\'", "cast(null as string)"]
    yield from _calls("regexp_replace", TEXTS, [f"'{each}'" for each in replaced], others)
    yield from _calls("regexp_replace", TEXTS, [r"'(\\S)(\\S)'", "'(a)|(b)'"], ["'$2$1'", "'<$1>'"])
    extracted = ["(a)", "(.)X", r"(\\S+)\\s(\\S+)", r"(\\S+?)$", "(a)|(X)", "(?:a)(X)(b)?", "(?i)(s)", "(x*)"]
    yield from _calls("regexp_extract", TEXTS, [f"'{each}'" for each in extracted], ["1"])
    yield from _calls("regexp_extract", TEXTS, ["'(a)|(X)'", r"'(\\S+)\\s(\\S+)'"], ["0", "2"])
    yield from (
        "regexp_extract('ab12', '([0-9])')",
        "regexp_extract(null, '(a)', 1)",
        "regexp_extract(5, '(.)')",
    )
    yield from _calls("length", BINARY)
    yield from _calls("initcap", [*TEXTS, *TITLES, "5", "true", "null"])
    yield from _calls("hex", [*TEXTS, *NUMBERS, *BOOLEANS, *BINARY, DATES[1], TIMESTAMPS[1], "null"])
    yield from _calls(
        "unhex", ["'4D'", "'4d7'", "'G1'", "'é'", "' 4'", "'0x12'", "12", "true", "x'3434'", *TEXTS]
    )


def _conditions() -> Iterator[str]:
    yield from _calls("if", BOOLEANS, ["1", "null"], ["2L", "2.50", "'3'"])
    yield from _calls("nullif", ["1", "null", "1.0"], ["1", "2", "null", "1e0"])
    for name in ("nvl", "ifnull", "coalesce"):
        yield from _calls(name, ["null", "1", "date '2026-01-01'"], ["null", "2L", "2.5"])
    yield from _calls("nvl2", ["null", "1"], ["'a'", "null"], ["'b'"])
    for name in ("isnull", "isnotnull"):
        yield from _calls(name, ["null", "1", "'a'", "cast('NaN' as double)"])
    yield from _calls("isnan", [*DOUBLES, *FLOATS, "1", "null", "'NaN'"])
    for name in ("greatest", "least"):
        yield from _calls(
            name, ["1", "null", "2.50", "cast('NaN' as double)", "'7'"], ["2", "null", "1e0", "3L"]
        )
        yield from _calls(name, ["'a'", "null"], ["'B'", "'é'"], ["'\U0001f600'", "null"])
        yield from _calls(name, DATES[:3], ["date '2000-01-01'", "timestamp '2000-01-01 00:00:00'"])
        yield from _calls(
            name, ["cast('NaN' as double)", "null"], ["null", "cast('-0.0' as double)"], ["0e0"]
        )
        yield from _calls(name, BOOLEANS, ["true"])
        yield from _calls(name, BINARY, ["x'01'"])


def _numbers() -> Iterator[str]:
    for name in ("abs", "round", "floor", "ceil", "ceiling"):
        yield from _calls(name, [*NUMBERS, "null", "'1.5'"])
    places = ["0", "1", "2", "-1", "-2", "10", "-20", "cast(null as int)"]
    yield from _calls("round", [*DECIMALS, *DOUBLES, *FLOATS, *INTEGERS, *SMALL, *LONGS], places)
    yield from _calls("round", ["2.345e0", "2.355e0", "0.285e0", "1e-5", "12345.6789e0", "4.35e0"], places)
    for name in ("sqrt", "sign", "signum", "exp"):
        yield from _calls(name, [*NUMBERS, "null", "'1.5'"])
    reals = [*DOUBLES, "1e0", "-1e0", "0.7675994068616421e0", "5e-324", "null", "7"]
    for name in ("ln", "log", "log2", "log10"):
        yield from _calls(name, [*NUMBERS, *POSITIVE, "5e-324", "null", "'1.5'"])
    yield from _calls("log", reals, reals)
    yield from _calls("power", reals, reals)
    yield from _calls("pow", DOUBLES[:3], DOUBLES[:3])
    operands = [*INTEGERS[:6], *LONGS[1:3], "cast(7 as tinyint)"]
    yield from (f"{left} div {right}" for left, right in product(operands, ["2", "-1", "0", "null", "-7L"]))
    yield from _calls("mod", INTEGERS, ["2", "-3", "0"])
    for left, operator, right in product(operands, "&|^", ["3", "-7L", "127Y", "null", "-2147483648"]):
        yield f"{left} {operator} {right}"
    yield from (f"~{each}" for each in [*operands, "null", "(1 | 4)"])
    yield from (
        "6 & 3 ^ 1 | 8",
        "1 | 2 ^ 3 & 2",
        "1 + 2 & 3 * 1",
        "1 & 3 = 1",
        "-~1",
        "not 1 & 1 = 1",
        "1.5 & 1",
    )
    yield from ("typeof(1Y & 3S)", "typeof(1 | 3L)", "4 | 1 between 4 and 5", "true & false", "~1.5")
    integers, exact, doubles = (
        [*INTEGERS[1:], *SMALL, *LONGS[1:]],
        DECIMALS[1:4],
        [*DOUBLES[2:5], *DOUBLES[6:9]],
    )
    integral = ["2", "-3", "0", "null", "-128Y", "-2147483648", "7L", "-1"]
    real = ["-0.3e0", "double('inf')", "9e307", "cast(-1.5 as float)"]
    decimal = ["0.7", "-2.50", "0.0", "null", "cast(-3 as int)", "cast(1000000 as bigint)"]
    for name in ("pmod", "try_add", "try_subtract", "try_multiply", "try_divide", "try_mod"):
        yield from _calls(name, integers, integral)
        yield from _calls(name, exact, decimal)
        yield from _calls(name, doubles, [*integral[1:4], *real])
        yield f"{name}(1 / 0, 1)"
    operands = ["1Y", "1S", "1", "-1", "cast(1 as tinyint)", "cast(1 as int)", "cast('1' as bigint)", "0.5f"]
    for left, operator, right in product(operands, "+*", [*operands, "1.25"]):
        yield f"typeof({left} {operator} {right})"


def _quotients() -> Iterator[str]:
    numbers = [
        *DECIMALS,
        "cast(3 as int)",
        "cast(0 as int)",
        "cast(7 as bigint)",
        "cast('0.01' as decimal(38,18))",
        "1e38",
        "cast(2.5 as float)",
    ]
    yield from (f"{one} {operator} {other}" for one, operator, other in product(numbers, "/%", numbers))
    yield from (f"{one} % {other}" for one, other in product(DOUBLES, DOUBLES))


def _moments() -> Iterator[str]:
    moments = [*DATES, *TIMESTAMPS, *LOCAL, "'2026-05-06'", "null"]
    dates = [
        "year",
        "quarter",
        "month",
        "weekofyear",
        "day",
        "dayofmonth",
        "dayofyear",
        "dayofweek",
        "weekday",
    ]
    for name in dates:
        yield from _calls(name, moments)
    for name in ("hour", "minute", "second"):
        yield from _calls(name, [*moments, "'2026-05-06 07:08:09'"])
    amounts = ["cast(null as int)", "0", "1", "-40", "cast(2 as tinyint)", "1200", "2147483647"]
    for name in ("date_add", "date_sub", "add_months"):
        yield from _calls(name, [*DATES, TIMESTAMPS[1], LOCAL[0], "'2026-05-06'"], amounts)
    yield from (
        "add_months(date '2024-01-31', 1)",
        "add_months(date '2024-03-31', -1)",
        "add_months(date '2023-01-31', 1)",
    )
    changing = [*(f"timestamp '{each}'" for each in CHANGES), *DATES, *TIMESTAMPS, *LOCAL]
    for moment, sign, interval in product(changing, "+-", INTERVALS):
        yield f"{moment} {sign} interval {interval}"
    yield from (f"{date} {sign} {days}" for date, sign, days in product(DATES, "+-", amounts[1:]))
    yield from ("1 + date '2026-05-06'", "date '2026-05-06' + 1L", "date '2026-05-06' + 2 * 3 - 1")
    for name in ("datediff", "date_diff"):
        yield from _calls(
            name, [*DATES, TIMESTAMPS[1], "'2026-05-06'"], ["date '2026-11-01'", "cast(null as date)"]
        )
    yield from _calls(
        "months_between", [*DATES[:8], *TIMESTAMPS, *LOCAL], [DATES[1], DATES[6], TIMESTAMPS[4], "null"]
    )
    yield from _calls("months_between", TIMESTAMPS, [*TIMESTAMPS[1:6], "'2026-02-28'"], ["false"])
    yield from ("months_between('2026-01-31', '2026-02-27', null)", "months_between('2026-01-31', 'x', true)")
    yield from _calls("last_day", [*DATES, TIMESTAMPS[1], "'2026-02-06'"])
    units = ["YEAR", "yyyy", "yy", "QUARTER", "month", "MM", "MON", "week", "DAY", "dd", "Hour", "MINUTE"]
    units += ["SECOND", "MILLISECOND", "MICROSECOND", "century", ""]
    quoted = [*(f"'{unit}'" for unit in units), "cast(null as string)"]
    yield from _calls("date_trunc", quoted, [*TIMESTAMPS, *LOCAL, *DATES[1:4], "'2026-05-06 07:08:09.5'"])
    for moment in [*DATES, TIMESTAMPS[1], "'2026-05-06'"]:
        yield from _calls("trunc", [moment], quoted)
    for pattern in FORMATS:
        text = pattern.replace("'", "\\'")
        yield from _calls(
            "date_format", [*TIMESTAMPS, DATES[1], DATES[5], LOCAL[0], "'2026-05-06'"], [f"'{text}'"]
        )
    for text, pattern in PARSED:
        pattern = pattern.replace("'", "\\'")
        for name in ("to_timestamp", "to_date", "unix_timestamp", "to_unix_timestamp"):
            yield f"{name}('{text}', '{pattern}')"
    for name in ("to_date", "to_timestamp", "unix_timestamp"):
        yield from _calls(name, [*DATES, *TIMESTAMPS, *LOCAL])
    for name in ("to_date", "to_timestamp"):
        yield from _calls(
            name, ["'2026-05-06'", "'2026-05-06 07:08:09.5+02:00'", "'x'", "''", "cast(null as string)"]
        )
    yield from _calls("unix_timestamp", ["'2026-05-06 07:08:09'", "'2026-05-06'", "cast(null as string)"])
    seconds = ["0", "1785542400", "-1", "null", "cast(5 as tinyint)", "253402300800L", "-99999999999L"]
    yield from _calls("from_unixtime", seconds)
    yield from _calls("from_unixtime", seconds, ["'yyyy-MM-dd'", "'HH:mm:ss.SSS'"])
    for name in ("timestamp_seconds", "timestamp_millis", "timestamp_micros"):
        yield from _calls(name, [*seconds, *LONGS])
    fractions = ["1.5", "-0.05", "1.234560000", "1.2345678", "1.25D", "-1.2345678D", "0.5f", "7 / 3"]
    yield from _calls("timestamp_seconds", [*fractions, "cast('NaN' as double)", "cast('-inf' as float)"])
    for name in ("unix_seconds", "unix_millis", "unix_micros"):
        yield from _calls(name, [*TIMESTAMPS, DATES[1]])
    yield from _calls("unix_date", DATES)


def _hashes() -> Iterator[str]:
    values = [*TEXTS, *NUMBERS, *BOOLEANS, *BINARY, *DATES, *TIMESTAMPS, *LOCAL, *ARRAYS, "null"]
    values += [
        "struct(1, 'a', null)",
        "array(array(1L), null)",
        "'abcdefghijklmnopqrstuvwxyz0123456789abcdefg'",
    ]
    for name in ("hash", "xxhash64"):
        yield from _calls(name, values)
        yield f"{name}(1, 'a', null, 2.50, true)"
    yield from _calls("md5", [*TEXTS, *BINARY])
    yield from _calls("sha1", [*TEXTS[:4], *BINARY])
    yield from _calls(
        "sha2", [*TEXTS[:4], *BINARY], ["0", "224", "256", "384", "512", "100", "cast(null as int)"]
    )


def _collections() -> Iterator[str]:
    yield from _calls("size", ARRAYS)
    yield from ("size(map(1, 2, 3, 4))", "cardinality(array(1))", "size(array())")
    yield from _calls("array_contains", ["array(1, 2, null)", "array(1, 2)"], ["1", "3", "cast(null as int)"])
    yield from (
        "array_contains(array('a'), 'a')",
        "array_contains(array(cast('NaN' as double)), double('NaN'))",
    )
    places = [*INTEGERS[:-1], "2"]
    for name in ("get", "element_at", "try_element_at"):
        yield from _calls(name, [*ARRAYS, *STRUCTS], places)
    yield from (f"{array}[{place}]" for array, place in product([*ARRAYS, *STRUCTS], [*places, "0L"]))
    for found, keys in MAPS.items():
        yield from _calls("element_at", [found], keys)
        yield from _calls("try_element_at", [found], keys)
        yield from (f"{found}[{key}]" for key in keys)
    yield from _calls("sort_array", UNSORTED)
    yield from _calls("sort_array", UNSORTED, ["true", "false", "cast(null as boolean)"])
    yield from _calls("array_sort", UNSORTED)
    yield from ("sort_array(5)", "array_sort(map(1, 2))", "sort_array(array(map(1, 2)))")
    yield from (f"get({array}, 0).x" for array in STRUCTS)
    yield from (
        "array(array(1, 2), array(3))[0][1]",
        "map('a', array(1, 2))['a'][1]",
        "map('a', array(1, 2))['b'][1]",
        "map('a', named_struct('X', 5))['a'].x",
        "split('a,b', ',')[1]",
        "named_struct('a', named_struct('b', 2)).a.B",
        "named_struct('a', 1).b",
        "array(1).x",
        "array(1)[0].x",
        "1[0]",
        "get(map('a', 1), 0)",
        "array(1)[0] + 1",
        "-array(1, 2)[1]",
        "array(1)[0]::string",
        "coalesce(get(array(1), 5), array(7)[0])",
    )


TYPES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(5,2)",
    "decimal(38,10)",
]
TYPES += ["string", "binary", "date", "timestamp", "timestamp_ntz"]
EXTREMES = [
    "1e-5",
    "1.0e7",
    "9999999.0e0",
    "1e-3",
    "cast(3.4e38 as float)",
    "1e21",
    "-1e18",
    "1e14",
    "1.1e-44",
]


CAST_VALUES = [*NUMBERS, *EXTREMES, *BOOLEANS, *BINARY, *DATES[:6], *TIMESTAMPS, *LOCAL]


def _casts() -> Iterator[str]:
    for value, target in product(dict.fromkeys(CAST_VALUES), TYPES):
        yield f"cast({value} as {target})"
        yield f"try_cast({value} as {target})"
    for name in (
        "bigint",
        "smallint",
        "tinyint",
        "int",
        "float",
        "double",
        "decimal",
        "string",
        "binary",
        "boolean",
    ):
        yield from _calls(name, ["1", "'7'", "null"])
    yield from ("timestamp('2026-01-02')", "date('2026-01-02')", "timestamp(1785542400)", "timestamp(1.5)")


GROUPS = (_strings, _conditions, _numbers, _moments, _hashes, _collections, _casts, _quotients)


def shown(value: Any) -> Any:
    """Return a value as JSON has it, which has no NaN, and in which numbers that differ are not equal."""
    if isinstance(value, float) and (not math.isfinite(value) or repr(value) == "-0.0"):
        return repr(value)
    if isinstance(value, list):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        return shown(list(value.values()))
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return value


SHOWN = {"date": "unix_date({})", "timestamp": "unix_micros({})", "timestamp_ntz": "cast({} as string)"}


def _answers(spark: Any, texts: Sequence[str]) -> list[Any]:
    """Return the type and the value of each expression; expressions that fail are found by halves."""
    from pyspark.errors import PySparkException

    try:
        types = [field.dataType.simpleString() for field in spark.sql(f"select {', '.join(texts)}").schema]
        asked = []
        for text, name in zip(texts, types, strict=True):
            form = "cast({} as string)" if name.startswith("decimal") else SHOWN.get(name, "{}")
            asked.append(form.format(f"({text})"))
        (row,) = spark.sql(f"select {', '.join(asked)}").collect()
        return [[name, shown(value)] for name, value in zip(types, row, strict=True)]
    except PySparkException:
        if len(texts) == 1:
            return [[ERROR]]
        middle = len(texts) // 2
        return _answers(spark, texts[:middle]) + _answers(spark, texts[middle:])


def _all_answers(spark: Any, texts: Sequence[str]) -> dict[str, list[Any]]:
    chunks = [texts[at : at + 16] for at in range(0, len(texts), 16)]
    found = [answer for chunk in chunks for answer in _answers(spark, chunk)]
    return dict(zip(texts, found, strict=True))


def _refused_casts(spark: Any) -> set[str]:
    """Return the casts between types that Spark refuses, found by one query each."""
    from pyspark.errors import AnalysisException

    values = list(dict.fromkeys(CAST_VALUES))
    (names,) = spark.sql(f"select {', '.join(f'typeof({each})' for each in values)}").collect()
    by_type: dict[str, list[str]] = {}
    for value, name in zip(values, names, strict=True):
        by_type.setdefault(name, []).append(value)
    refused = set()
    for same, target, function in product(by_type.values(), TYPES, ("cast", "try_cast")):
        try:
            spark.sql(f"select {function}({same[0]} as {target})")
        except AnalysisException:
            refused |= {f"{function}({value} as {target})" for value in same}
    return refused


def main() -> None:
    """Write the answers of the installed Spark."""
    from interop.conftest import SETTINGS
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.log.level", "FATAL").getOrCreate()
    refused = _refused_casts(spark)
    rows = []
    for texts in map(list, map(dict.fromkeys, (group() for group in GROUPS))):
        one, other = {}, {}
        for zone, found in zip(ZONES, (one, other), strict=True):
            spark.conf.set(ZONE, zone)
            # An expression that fails in one time zone fails in all.
            asked = [text for text in texts if text not in refused and one.get(text) != [ERROR]]
            found |= _all_answers(spark, asked)
        for text in texts:
            first, second = one.get(text, [ERROR]), other.get(text, [ERROR])
            rows.append([text, first] if first == second else [text, first, second])
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        ANSWERS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
