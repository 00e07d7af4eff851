"""Random expressions of the whole grammar, each from a seed, evaluated by Spark and by this package.

`python tests/support/expression_grammar.py --count 20000 --seed 7` compares that many, in the time zone of
`--zone`, and prints what differs. The same seed gives the same expressions. A text that this package rejects
is counted and not compared: it cannot mean another thing.
"""

from __future__ import annotations

import argparse
import datetime as dt
import logging
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from delta_variant.errors import CastError, ExpressionError
from delta_variant.expressions.bind import bind
from delta_variant.expressions.evaluate import evaluate, without_cast
from delta_variant.expressions.forms import UNIT_FUNCTIONS
from delta_variant.expressions.names import NameScope
from delta_variant.expressions.parse import parse
from delta_variant.expressions.scalars import SCALAR_FUNCTIONS
from delta_variant.expressions.scalars.signature import ScalarFunction
from delta_variant.expressions.tree import Column, Expression, Extraction, input_name, inputs, output_type
from delta_variant.expressions.types import type_name
from delta_variant.variant import values as variant_values

BUNDLE = 50
UTC = dt.timezone.utc

DOCUMENTS = (
    '{"a": 1, "not": {"is": true, "null": "x"}, "0x1f": 2.5, "b c": ["p", "q"], "1a": {"case": "7"}}',
    '{"a": -3, "not": {"is": false}, "0x1f": 1e3, "d.e": "2026-03-29 02:30:00", "in": [[1], {"x": 8}]}',
    '{"a": "12", "not": null, "0x1f": 12345678901234567890, "1a": {"case": 9}, "in": [7]}',
    "[1, 2]",
    None,
)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [1, -2, 3, None, 0]),
    "from": (pa.int64(), [7, 2**40, None, -1, 1]),
    "small": (pa.int16(), [1, 2, None, -3, 4]),
    "tiny": (pa.int8(), [1, None, 5, -128, 127]),
    "d": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-0.05"), None, Decimal("100.00"), Decimal(0)]),
    "f": (pa.float64(), [0.5, -0.0, math.nan, None, 1e300]),
    "f32": (pa.float32(), [0.1, 2.0, None, -1.5, 3e38]),
    "s": (pa.string(), ["a", "A\\b%", None, "12", " é🎉_ "]),
    "case": (pa.string(), ["x'y", '"', "", None, "2026-01-31"]),
    "not": (pa.bool_(), [True, False, None, True, False]),
    "and": (pa.bool_(), [True, None, False, False, True]),
    "in": (pa.bool_(), [False, False, True, None, True]),
    "day": (
        pa.date32(),
        [dt.date(2026, 1, 31), dt.date(1969, 12, 31), None, dt.date(2024, 2, 29), dt.date(1000, 1, 1)],
    ),
    "at": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
            dt.datetime(1970, 1, 1, tzinfo=UTC),
            None,
            dt.datetime(2025, 10, 26, 0, 59, 59, 999999, tzinfo=UTC),
            dt.datetime(1900, 1, 1, 12, tzinfo=UTC),
        ],
    ),
    "ntz": (
        pa.timestamp("us"),
        [dt.datetime(2026, 3, 29, 2, 30), dt.datetime(1000, 1, 1), None, None, dt.datetime(2025, 10, 26, 2)],
    ),
    "bin": (pa.binary(), [b"\x00", b"abc", None, b"", b"\xff\xfe"]),
}
"""Five rows of each type. The names that are keywords stand without backquotes."""

KINDS = {
    "int": ("i", "from", "small", "tiny"),
    "decimal": ("d",),
    "double": ("f", "f32"),
    "string": ("s", "case"),
    "boolean": ("not", "and", "in"),
    "date": ("day",),
    "timestamp": ("at",),
    "timestamp_ntz": ("ntz",),
    "binary": ("bin",),
}
LITERALS = {
    "int": ("0", "1", "-7", "2147483647", "-2147483648", "9223372036854775807", "3L", "4S", "5Y", "007"),
    "decimal": ("1.5", ".25", "10.", "-0.05", "2.50BD", "12345678901234567890"),
    "double": ("1e0", "-2.5E-1", "3D", ".5f", "1.e2", "0e0", "-0D"),
    "string": (
        *("'a'", '"b"', "''", "'it''s'", '"say ""x"""', r"'\u0061\101\t\%\_\q'", r"r'a\b%'", "'a' 'b'"),
        *("R\"x\" 'y'", "'12'", "'-1.5'", "'true'", "'2026-01-31'", "'2026-03-29 02:30:00'"),
        *(r"'\\'", r"'\0'", r"'\U0001F389'"),
    ),
    "boolean": ("true", "FALSE", "null"),
    "date": ("date '2026-01-31'", 'DATE"2024-02-29"', "date'1969-12-31'"),
    "timestamp": ("timestamp '2026-03-29 02:30:00'", "timestamp_ltz '1970-01-01T00:00:00Z'"),
    "timestamp_ntz": ("timestamp_ntz '2026-03-29 02:30:00'",),
    "binary": ("X'00ff'", "x'4'", "X''"),
}
TYPES = {
    "int": ("int", "bigint", "long", "smallint", "tinyint", "integer"),
    "double": ("double", "float", "real"),
    "decimal": ("decimal(10,2)", "dec(5)", "numeric(20, 5)"),
    **{name: (name,) for name in ("string", "boolean", "date", "timestamp", "timestamp_ntz", "binary")},
}
STEPS = (
    *("a", "not.is", "not.null", "['b c'][0]", "`b c`[1]", "from", "0x1f", "1a.case", "['1a']['case']"),
    *("in[0]", "in[1].x", "['d.e']", "[1]", "missing"),
)
PATTERNS = ("'a%'", "'%'", "'_'", r"r'%\\b%'", r"r'\%%'", r"'%\_%'", "''", "'%2'", r"r'A\\_\%'", "'a' '%'")
PARAMETERS = {"exact": "int", "bigint": "int", "number": "double", "moment": "timestamp"}
NUMERIC = ("int", "decimal", "double")
MOMENTS = ("date", "timestamp", "timestamp_ntz")


class Expressions:
    """Draws expressions of a kind, without parentheses that the grammar does not need."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def draw(self) -> str:
        kind = self.random.choice((*KINDS, "boolean", "int", "string", "boolean"))
        text = self.of(kind, self.random.randrange(1, 4))
        return self._spaced(text) if self.random.random() < 0.05 else text

    def _spaced(self, text: str) -> str:
        return f"/* a /* b */ */ {text} -- end" if "--" not in text else text

    def of(self, kind: str, depth: int) -> str:
        """Return an expression; operators of a lower precedence than a caller's need parentheses there."""
        choose = self.random.random()
        if depth <= 0 or choose < 0.15:
            return self.leaf(kind)
        if choose < 0.35:
            return self.form(kind, depth - 1)
        rules = {"boolean": self.condition, "string": self.text, **dict.fromkeys(NUMERIC, self.sum)}
        return rules.get(kind, self.form)(kind, depth - 1)

    def value(self, kind: str, depth: int) -> str:
        """Return a value that is an operand of any operator."""
        text = self.leaf(kind) if depth <= 0 or self.random.random() < 0.5 else self.form(kind, depth - 1)
        return text if self.random.random() < 0.85 else f"({self.of(kind, depth - 1)})"

    def leaf(self, kind: str) -> str:
        choose = self.random.random()
        if choose < 0.5:
            name = self.random.choice(KINDS[kind])
            return self.random.choice((name, name, name.upper(), f"`{name}`"))
        return self.random.choice(LITERALS[kind]) if choose < 0.8 else self.path(kind)

    def path(self, kind: str) -> str:
        path = self.random.choice(("v:", "v:", "v:", "V : ")) + self.random.choice(STEPS)
        return self.cast(path, kind, is_strict=self.random.random() < 0.1)

    def cast(self, operand: str, kind: str, *, is_strict: bool) -> str:
        name = self.random.choice(TYPES[kind])
        if is_strict and self.random.random() < 0.5:
            return f"{operand}::{name}"
        return f"{'cast' if is_strict else 'try_cast'}({operand} as {name})"

    def sum(self, kind: str, depth: int) -> str:
        operators = ("+", "-", "*", "%", "/", *(["div", "&", "|", "^"] if kind == "int" else []))
        kinds = [kind, kind, self.random.choice(NUMERIC)]
        parts = [self.sign() + self.value(self.random.choice(kinds), depth)]
        for _ in range(self.random.randrange(1, 4)):
            operand = self.value(self.random.choice(kinds), depth)
            parts += [self.random.choice(operators), self.sign() + operand]
        return " ".join(parts)

    def sign(self) -> str:
        return self.random.choice(("", "", "", "", "- ", "+ ", "~"))

    def text(self, kind: str, depth: int) -> str:
        return " || ".join(
            self.value(self.random.choice(("string", "string", "int", "date")), depth)
            for _ in range(self.random.randrange(2, 4))
        )

    def condition(self, kind: str, depth: int) -> str:
        parts = [self.test(depth)]
        for _ in range(self.random.randrange(3)):
            parts += [self.random.choice(("and", "or", "AND")), self.test(depth)]
        return " ".join(parts)

    def test(self, depth: int) -> str:
        negation = self.random.choice(("", "", "", "not ", "! ", "not not "))
        return negation + self.random.choice((self.comparison, self.predicate, self.comparison))(depth)

    def comparison(self, depth: int) -> str:
        kind = self.random.choice((*KINDS, "boolean", "boolean"))
        operators = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "!<", "!>")
        operand = self.sum if kind in NUMERIC and self.random.random() < 0.5 else self.value
        parts = [operand(kind, depth), self.random.choice(operators), operand(kind, depth)]
        # Comparisons group from the left, also those of booleans.
        for _ in range(self.random.choice((0, 0, 1, 2))):
            parts += [self.random.choice(operators), self.value("boolean", depth)]
        return " ".join(parts)

    def predicate(self, depth: int) -> str:
        kind = self.random.choice((*KINDS, "boolean"))
        value = self.value(kind, depth) if self.random.random() < 0.7 else self.comparison(depth)
        negation = self.random.choice(("", "", "not "))
        other = lambda: self.value(kind, depth)  # noqa: E731
        match self.random.randrange(7):
            case 0:
                return f"{self.value(kind, depth)} {negation}between {other()} and {other()}"
            case 1:
                options = ", ".join(other() for _ in range(self.random.randrange(1, 4)))
                return f"{self.value(kind, depth)} {negation}in ({options})"
            case 2:
                like = self.random.choice(("like", "ilike"))
                return f"{self.value('string', depth)} {negation}{like} {self.random.choice(PATTERNS)}"
            case 3:
                return f"{self.value('string', depth)} {negation}like 'a!%' escape '!'"
            case 4:
                quantifier = self.random.choice(("any", "some", "all"))
                patterns = ", ".join(self.random.sample(PATTERNS, 2))
                return f"{self.value('string', depth)} {negation}like {quantifier} ({patterns})"
            case 5:
                return f"{value} is {negation}{self.random.choice(('null', 'distinct from ' + other()))}"
        constant = self.random.choice(("true", "false", "unknown"))
        return f"{self.value('boolean', depth)} is {negation}{constant}"

    def form(self, kind: str, depth: int) -> str:
        """Return a call, a cast or a CASE of any result, often of the kind."""
        match self.random.randrange(6):
            case 0:
                branches = "".join(
                    f" when {self.of('boolean', depth)} then {self.of(kind, depth)}"
                    for _ in range(self.random.randrange(1, 3))
                )
                return f"case{branches}{self.random.choice(('', ' else ' + self.of(kind, depth)))} end"
            case 1:
                other = self.random.choice([*KINDS])
                options = [(self.of(other, depth), self.of(kind, depth)) for _ in range(2)]
                branches = "".join(f" when {option} then {value}" for option, value in options)
                return f"case {self.value(other, depth)}{branches} end"
            case 2:
                source = self.random.choice([*KINDS])
                return self.cast(self.value(source, depth), kind, is_strict=self.random.random() < 0.2)
            case 3:
                return f"coalesce({self.of(kind, depth)}, {self.of(kind, depth)})"
        return self.call(depth)

    def call(self, depth: int) -> str:
        name = self.random.choice(CALLED)
        moment = self.random.choice(MOMENTS)
        if name == "extract":
            return f"extract({self.random.choice([*UNIT_FUNCTIONS])} from {self.value(moment, depth)})"
        if name == "substring" and self.random.random() < 0.5:
            return f"substring({self.of('string', depth)} from {self.leaf('int')} for {self.leaf('int')})"
        if name == "trim" and self.random.random() < 0.7:
            side = self.random.choice(("both", "leading", "trailing", ""))
            return f"trim({side} {self.value('string', 0)} from {self.of('string', depth)})"
        if name in BUILT_IN:
            return f"{name}({self.of('string' if name in ('length', 'typeof') else moment, depth)})"
        function = SCALAR_FUNCTIONS[name]
        most = function.max_arguments if function.max_arguments is not None else function.min_arguments + 2
        count = self.random.randrange(function.min_arguments, most + 1)
        kinds = function.parameters_of(count) if isinstance(function, ScalarFunction) else ("common",) * count
        common = self.random.choice([*KINDS])
        arguments = []
        for position, parameter in enumerate(kinds):
            kind = PARAMETERS.get(parameter, parameter)
            kind = common if kind not in KINDS else kind
            is_constant = isinstance(function, ScalarFunction) and position in function.constant
            arguments.append(self.random.choice(LITERALS[kind]) if is_constant else self.of(kind, depth))
        return f"{name}({', '.join(arguments)})"


# Clocks have other values here and there, `case` has a form, and Spark lacks the last.
NOT_CALLED = {"case", "current_date", "curdate", "current_timestamp", "now", "timestamp_ntz"}
BUILT_IN = ("year", "month", "day", "hour", "length", "typeof", "extract")
CALLED = tuple(sorted({*SCALAR_FUNCTIONS, *BUILT_IN} - NOT_CALLED))


class Here:
    """Evaluates expressions over the rows in this process."""

    def __init__(self, timezone: str) -> None:
        self.timezone = timezone
        self.variants = variant_values.parse_json(pa.array(DOCUMENTS, pa.string()))
        self.columns = {name: pa.array(values, arrow_type) for name, (arrow_type, values) in COLUMNS.items()}
        types = {name: column.type for name, column in self.columns.items()}
        self.schema = pa.schema([*types.items(), ("v", self.variants.type)])

    def __call__(self, text: str) -> tuple[str, list[Any]]:
        bound = bind(parse(text), NameScope(self.schema, ("v",), self.timezone))
        sources = [without_cast(source) for source in inputs([bound])]
        arrays = [self._input(source) for source in sources] or [self.columns["i"]]
        names = [input_name(source) for source in sources] or [""]
        values = evaluate(bound, pa.record_batch(arrays, names=names))
        return type_name(output_type(bound)), values.to_pylist()

    def _input(self, source: Expression) -> Any:
        if isinstance(source, Column):
            return self.columns[source.name]
        assert isinstance(source, Extraction)
        return variant_values.extract(
            self.variants, source.path, source.type, strict=source.strict, timezone=source.timezone
        )


class There:
    """Evaluates expressions over the same rows in a session of Spark, many in one SELECT."""

    def __init__(self, session: Any, timezone: str) -> None:
        session.conf.set("spark.sql.session.timeZone", timezone)
        self.session = session
        arrays = {name: pa.array(values, arrow_type) for name, (arrow_type, values) in COLUMNS.items()}
        schema = ", ".join(f"`{name}` {type_name(array.type)}" for name, array in arrays.items())
        # Of an Arrow table, Spark makes a relation that its optimizer evaluates without a job.
        frame = session.createDataFrame(pa.table({**arrays, "j": DOCUMENTS}), f"{schema}, j string")
        rows_of_types = frame.selectExpr("*", "parse_json(j) as v").drop("j")
        rows_of_types.createOrReplaceTempView("rows_of_types")

    def __call__(self, texts: Sequence[str]) -> Iterator[tuple[str, list[Any]] | Exception]:
        """Yield the type and the values of each expression, or the error that it raises alone."""
        try:
            items = ", ".join(f"({text}\n) as c{number}" for number, text in enumerate(texts))
            frame = self.session.sql(f"select {items} from rows_of_types")
            rows = frame.collect()
        except Exception as error:  # Spark has many classes of errors, and py4j one more.
            if len(texts) == 1:
                yield error
                return
            middle = len(texts) // 2
            yield from self(texts[:middle])
            yield from self(texts[middle:])
            return
        for number, (_, name) in enumerate(frame.dtypes):
            yield name, [row[number] for row in rows]


def _shortest(number: re.Match[str]) -> str:
    """Return a number with the digits that it needs; Java before its version 19 writes more."""
    is_float = len(number[0].partition("E")[0]) <= len("1.23456789")
    return repr(pa.scalar(float(number[0]), pa.float32() if is_float else pa.float64()).as_py())


def comparable(value: Any) -> str:
    """Return a value as text, in which NaN equals NaN and moments have one zone."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, str):
        return re.sub(r"\d\.\d+E-?\d+", _shortest, value)
    return repr(bytes(value) if isinstance(value, bytearray) else value)


# An operand that one of the two skips does not fail there: Spark drops operands of constants before it
# evaluates others, and skips those after a NULL; this package skips those that an earlier one makes needless.
SKIPPED = re.compile(
    r"\b(is(nan|null|notnull)|(xxhash64|hash)|and|or|case|coalesce|ifnull|nvl2?|if|iff|in|is|between|greatest|least|any|some|all)\b",
    re.IGNORECASE,
)
# Spark overflows without an error in the first and the last, and runs out of digits in the second.
UNLIKE = re.compile(r"from_unixtime\(.*\d{19}|round\(.*214748364[78]|\d{19,} as timestamp", re.IGNORECASE)
DATETIME_LIMITS = re.compile(
    r"year -?\d+ is out of range|date value out of range|must have magnitude|ordinal must"
)
# A string of Arrow cannot hold bytes that are not UTF-8; Spark's can.
NOT_TEXT = re.compile(r"(\bbin\b|x'00ff').* as string", re.IGNORECASE | re.DOTALL)


def _difference(text: str, mine: Any, spark: Any) -> str:
    """Return how the results of an expression compare; each is a type and values, or an error."""
    from pyspark.errors import AnalysisException

    failed_here, failed_there = isinstance(mine, Exception), isinstance(spark, Exception)
    if any(isinstance(each, Exception) and DATETIME_LIMITS.search(str(each)) for each in (mine, spark)):
        return "beyond the datetimes of Python"
    if failed_here and not isinstance(mine, CastError):
        return "different"
    if failed_here and failed_there:
        return "an error in both"
    if failed_there and isinstance(spark, AnalysisException):
        return "rejected by Spark"
    if failed_here and "UTF8" in str(mine):
        return "of bytes that are not UTF-8"
    if failed_here or failed_there:
        if UNLIKE.search(text):
            return "beyond the limits of Spark"
        is_null = None in (spark if failed_here else mine)[1] or "<=>" in text
        return "an error in an operand that one skips" if is_null or SKIPPED.search(text) else "different"
    (my_type, my_values), (type_there, values_there) = mine, spark
    is_equal = my_type == type_there and [*map(comparable, my_values)] == [*map(comparable, values_there)]
    if is_equal:
        return "equal"
    if UNLIKE.search(text):
        return "beyond the limits of Spark"
    return "of bytes that are not UTF-8" if NOT_TEXT.search(text) else "different"


def compare(texts: Sequence[str], here: Here, there: There, found: Counter[str]) -> Iterator[str]:
    """Yield a line for each expression that has another type, value or error in Spark."""
    ours: dict[str, Any] = {}
    for text in texts:
        try:
            ours[text] = here(text)
        except ExpressionError:
            found["rejected here"] += 1
        except Exception as error:  # of any class: only that of a cast is not a defect
            ours[text] = error
    valued = [text for text, result in ours.items() if not isinstance(result, Exception)]
    results = dict(zip(valued, there(valued), strict=True)) if valued else {}
    for text, mine in ours.items():
        spark = results[text] if text in results else next(there([text]))
        kind = _difference(text, mine, spark)
        found[kind] += 1
        if kind == "different":
            yield f"{text}\n    here {mine!s:.400}\n    Spark {spark!s:.400}"


def session() -> Any:
    """Return a new session of Spark."""
    from pyspark.sql import SparkSession

    # PySpark logs each error with its plan.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    # To compile an expression takes longer than to interpret it for five rows.
    builder = builder.config("spark.sql.codegen.wholeStage", "false")
    builder = builder.config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return builder.config("spark.driver.memory", "1g").getOrCreate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--zone", default="UTC")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time")
    options = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    there, here, found = There(session(), options.zone), Here(options.zone), Counter[str]()
    there.session.sparkContext.setLogLevel("OFF")
    expressions, end = Expressions(options.seed), time.monotonic() + options.seconds
    done = 0
    while done < options.count and time.monotonic() < end:
        texts = [expressions.draw() for _ in range(BUNDLE)]
        for line in compare(texts, here, there, found):
            print(line, flush=True)
        done += BUNDLE
    print(done, dict(found))
    there.session.stop()


if __name__ == "__main__":
    main()
