//! The scalar functions. `tests/expressions/spark_scalars.json` has the results of Spark 4.2: each entry is an
//! expression and its type and value with the session time zone UTC, and with that of New York if they differ.

use std::sync::{Arc, LazyLock};

use _native::error::{ErrorKind, Result};
use _native::json::parse::{JsonShredder, ParseOptions};
use _native::scalars::{Arguments, apply};
use _native::shred::schema::ShreddingSchema;
use _native::value::cast::{Casting, cast_array};
use _native::value::moment::{PARTS, parts};
use _native::value::{Value, Zone};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType::{self, Boolean, Date32, Decimal128, Float32, Float64, Int32, Int64, Null, Utf8};
use arrow_schema::{Field, TimeUnit};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::json_parse::row;

const RECORDED: &str = include_str!("../../../tests/expressions/spark_scalars.json");

fn timestamp(zone: Option<&str>) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into))
}

fn instant() -> DataType {
    timestamp(Some("UTC"))
}

fn array(values: impl Array + 'static) -> ArrayRef {
    Arc::new(values)
}

fn text(text: &str) -> ArrayRef {
    array(StringArray::from(vec![text]))
}

/// An expression and the bytes of its value in each of the time zones, `None` for an error.
type Answer = (String, [Option<Vec<u8>>; 2]);

static ANSWERS: LazyLock<Vec<Answer>> = LazyLock::new(|| {
    let options = ParseOptions { doubles: true, ..ParseOptions::default() };
    let mut shredder = JsonShredder::new(ShreddingSchema::Untyped, options);
    let entries = RECORDED.lines().map(|line| line.trim_end_matches(',')).filter(|line| line.len() > 1);
    entries.for_each(|entry| shredder.push(entry.as_bytes()).unwrap());
    let parsed = shredder.take().unwrap();
    (0..parsed.len()).map(|at| answer(&row(&parsed, at).1)).collect()
});

fn answer(entry: &[u8]) -> Answer {
    let elements = elements(entry);
    let Value::String(expression) = Value::decode(elements[0]).unwrap() else { panic!("expected text") };
    // An error has no type; a second answer is there if it differs.
    let value =
        |at: usize| self::elements(elements[at.min(elements.len() - 1)]).get(1).map(|value| value.to_vec());
    (expression.to_owned(), [value(1), value(2)])
}

fn elements(array: &[u8]) -> Vec<&[u8]> {
    match Value::decode(array).unwrap() {
        Value::Array(array) => array.elements().collect::<Result<_>>().unwrap(),
        other => panic!("expected an array, got {other:?}"),
    }
}

/// Split `name(argument, …)`; `None` for another expression.
fn call(expression: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = expression.split_once('(')?;
    let inner = rest.strip_suffix(')')?;
    let (mut arguments, mut start, mut depth, mut is_quoted, mut is_escaped) =
        (Vec::new(), 0, 0, false, false);
    for (at, letter) in inner.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' if depth == 0 => return None,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(inner[start..].trim());
    Some((name, arguments))
}

fn type_of(name: &str) -> Option<DataType> {
    Some(match name {
        "string" => Utf8,
        "binary" => DataType::Binary,
        "boolean" => Boolean,
        "tinyint" => DataType::Int8,
        "smallint" => DataType::Int16,
        "int" => Int32,
        "bigint" => Int64,
        "float" => Float32,
        "double" => Float64,
        "date" => Date32,
        "timestamp" => instant(),
        _ => {
            let (precision, scale) = name.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
            Decimal128(precision.parse().ok()?, scale.parse().ok()?)
        }
    })
}

fn cast(values: &ArrayRef, target: &DataType, zone: &Zone) -> Option<ArrayRef> {
    match values.data_type() {
        Null => Some(new_null_array(target, 1)),
        // A Variant has decimals without zeros at their end.
        Decimal128(..) if *target == Utf8 => None,
        _ => cast_array(values, target, &Casting { strict: true, zone: zone.clone() }).ok(),
    }
}

fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("\\'", "'").replace("\\\\", "\\"))
}

fn group(members: Vec<ArrayRef>) -> ArrayRef {
    let named = members.into_iter().enumerate();
    let named = named.map(|(at, member)| (at.to_string(), member));
    array(StructArray::from(
        named
            .map(|(name, member)| (Arc::new(Field::new(name, member.data_type().clone(), true)), member))
            .collect::<Vec<_>>(),
    ))
}

fn list(elements: &[ArrayRef], zone: &Zone) -> Option<ArrayRef> {
    let data_type = elements.iter().map(|element| element.data_type()).find(|known| **known != Null)?.clone();
    let elements: Vec<ArrayRef> =
        elements.iter().map(|element| cast(element, &data_type, zone)).collect::<Option<_>>()?;
    let elements = concat(&elements.iter().map(|element| element.as_ref()).collect::<Vec<_>>()).unwrap();
    let field = Arc::new(Field::new("element", data_type, true));
    Some(array(ListArray::new(field, OffsetBuffer::from_lengths([elements.len()]), elements, None)))
}

/// A literal as an array of one row; `None` for another expression.
fn literal(expression: &str, zone: &Zone) -> Option<ArrayRef> {
    if let Some((name, arguments)) = call(expression) {
        if name == "cast" {
            let (value, target) = arguments
                .join(",")
                .rsplit_once(" as ")
                .map(|(value, target)| (literal(value, zone), type_of(&target.replace(' ', ""))))?;
            return cast(&value?, &target?, zone);
        }
        let members: Vec<ArrayRef> =
            arguments.iter().map(|argument| literal(argument, zone)).collect::<Option<_>>()?;
        return match name {
            "array" => list(&members, zone),
            "struct" => Some(group(members)),
            _ => None,
        };
    }
    let typed = |prefix: &str, target: DataType| {
        let value = unquoted(expression.strip_prefix(prefix)?.trim())?;
        cast(&text(&value), &target, zone)
    };
    match expression {
        "null" => return Some(array(NullArray::new(1))),
        "true" | "false" => return Some(array(BooleanArray::from(vec![expression == "true"]))),
        _ if expression.starts_with('\'') => return Some(text(&unquoted(expression)?)),
        _ if expression.starts_with("x'") => {
            let digits = unquoted(&expression[1..])?;
            let bytes =
                (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
            return Some(array(BinaryArray::from_vec(vec![&bytes.collect::<Vec<_>>()])));
        }
        _ => {}
    }
    typed("date ", Date32)
        .or_else(|| typed("timestamp ", instant()))
        .or_else(|| typed("timestamp_ntz ", timestamp(None)))
        .or_else(|| number(expression))
}

fn number(digits: &str) -> Option<ArrayRef> {
    if let Some(long) = digits.strip_suffix('L') {
        return Some(array(Int64Array::from(vec![long.parse::<i64>().ok()?])));
    }
    if digits.contains('e') {
        return Some(array(Float64Array::from(vec![digits.parse::<f64>().ok()?])));
    }
    if let Ok(int) = digits.parse::<i32>() {
        return Some(array(Int32Array::from(vec![int])));
    }
    if let Ok(long) = digits.parse::<i64>() {
        return Some(array(Int64Array::from(vec![long])));
    }
    let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let unscaled = digits.replace('.', "");
    let precision = unscaled.trim_start_matches(['-', '0']).len().max(scale);
    let decimals = Decimal128Array::from(vec![unscaled.parse::<i128>().ok()?]);
    Some(array(decimals.with_precision_and_scale(precision as u8, scale as i8).ok()?))
}

/// The value of one row as an answer has it.
fn shown(values: &ArrayRef, at: usize) -> String {
    if values.is_null(at) {
        return "null".into();
    }
    match values.data_type() {
        Boolean => values.as_boolean().value(at).to_string(),
        Int32 => values.as_primitive::<Int32Type>().value(at).to_string(),
        Int64 => values.as_primitive::<Int64Type>().value(at).to_string(),
        Date32 => values.as_primitive::<Date32Type>().value(at).to_string(),
        Float32 => shown_number(values.as_primitive::<Float32Type>().value(at).into()),
        Float64 => shown_number(values.as_primitive::<Float64Type>().value(at)),
        Utf8 => format!("{:?}", values.as_string::<i32>().value(at)),
        other if *other == instant() => {
            values.as_primitive::<TimestampMicrosecondType>().value(at).to_string()
        }
        other => panic!("unexpected type of a result: {other}"),
    }
}

/// Both zeros are equal.
fn shown_number(number: f64) -> String {
    format!("{:?}", number + 0.0)
}

fn expected(value: Option<Value<'_>>, result: &DataType) -> String {
    match value {
        None => "error".into(),
        Some(Value::Null) => "null".into(),
        Some(Value::Boolean(value)) => value.to_string(),
        Some(Value::Int8(value)) => value.to_string(),
        Some(Value::Int16(value)) => value.to_string(),
        Some(Value::Int32(value)) => value.to_string(),
        Some(Value::Int64(value)) => value.to_string(),
        Some(Value::Double(value)) => shown_number(value),
        Some(Value::String(text)) if matches!(result, Float32 | Float64) => {
            shown_number(text.parse().unwrap())
        }
        Some(Value::String(text)) => format!("{text:?}"),
        other => panic!("unexpected value of an answer: {other:?}"),
    }
}

/// Call a function with constants, and with columns of two rows but for the constants at `fixed`.
fn call_both(name: &str, columns: &[ArrayRef], fixed: Option<usize>, zone: &Zone) -> Result<[ArrayRef; 2]> {
    let both = UInt32Array::from(vec![0, 0]);
    let rows = columns.iter().enumerate().map(|(at, column)| match fixed == Some(at) {
        true => column.clone(),
        false => take(column, &both, None).unwrap(),
    });
    let columns_of = [(1, columns.to_vec()), (2, rows.collect())];
    let results =
        columns_of.map(|(rows, columns)| apply(name, &Arguments { columns, rows, zone: zone.clone() }));
    let [one, other] = results;
    Ok([one?, other?])
}

/// Call `test` with the name, the arguments, the time zone and the value of each recorded call with literals.
fn each_call(name: &str, mut test: impl FnMut(&str, Vec<ArrayRef>, &Zone, Option<Value<'_>>)) {
    let zones = [Zone::UTC, Zone::parse("America/New_York").unwrap()];
    for (expression, values) in ANSWERS.iter() {
        let Some((_, arguments)) = call(expression).filter(|(found, _)| *found == name) else { continue };
        for (zone, value) in zones.iter().zip(values) {
            let literals = arguments.iter().map(|argument| literal(argument, zone));
            if let Some(literals) = literals.collect::<Option<Vec<_>>>() {
                let value = value.as_ref().map(|value| Value::decode(value).unwrap());
                test(expression, literals, zone, value);
            }
        }
    }
}

/// Test all recorded calls of `sql` with literals of the types of `parameters`, or that are cast to these, by the
/// function `name`; the argument at `fixed` must be a constant.
fn check(sql: &str, name: &str, parameters: &[DataType], fixed: Option<usize>, least: usize) {
    let mut count = 0;
    each_call(sql, |expression, literals, zone, value| {
        // Errors of types are not of the kernel.
        let is_cast = literals.iter().zip(parameters).any(|(found, wanted)| found.data_type() != wanted);
        if literals.len() != parameters.len() || value.is_none() && is_cast {
            return;
        }
        let columns = literals.iter().zip(parameters).map(|(found, wanted)| cast(found, wanted, zone));
        let Some(columns) = columns.collect::<Option<Vec<_>>>() else { return };
        count += 1;
        assert_call(expression, name, &columns, fixed, zone, value);
    });
    assert!(count >= least, "{count} calls of {sql} with {parameters:?}");
}

fn assert_call(
    expression: &str,
    name: &str,
    columns: &[ArrayRef],
    fixed: Option<usize>,
    zone: &Zone,
    value: Option<Value<'_>>,
) {
    match call_both(name, columns, fixed, zone) {
        Ok([one, both]) => {
            let expected = expected(value, one.data_type());
            let found = [shown(&one, 0), shown(&both, 0), shown(&both, 1)];
            assert!(found.iter().all(|found| *found == expected), "{expression} in {zone:?}: {found:?}");
        }
        Err(error) => assert!(value.is_none(), "{expression} in {zone:?}: {error}"),
    }
}

#[test]
fn text_is_changed_as_by_spark() {
    for name in ["upper", "lower"] {
        check(name, name, &[Utf8], None, 16);
    }
    for name in ["trim", "ltrim", "rtrim"] {
        check(name, name, &[Utf8], None, 16);
        // The characters come first in SQL, and last in the kernel.
        let mut count = 0;
        each_call(name, |expression, mut literals, zone, value| {
            if literals.len() == 2 {
                literals.reverse();
                assert_call(expression, name, &literals, None, zone, value);
                count += 1;
            }
        });
        assert!(count >= 56, "{count}");
    }
    check("substring", "substring", &[Utf8, Int32], None, 140);
    check("substr", "substring", &[Utf8, Int32, Int32], None, 700);
    check("right", "right", &[Utf8, Int32], None, 126);
    check("replace", "replace", &[Utf8, Utf8, Utf8], None, 126);
    check("initcap", "initcap", &[Utf8], None, 32);
    check("repeat", "repeat", &[Utf8, Int32], None, 70);
    check("lpad", "lpad", &[Utf8, Int32, Utf8], None, 120);
    check("rpad", "rpad", &[Utf8, Int32, Utf8], None, 120);
    check("split_part", "split_part", &[Utf8, Utf8, Int32], None, 300);
}

#[test]
fn text_is_searched_as_by_spark() {
    for name in ["contains", "startswith", "endswith"] {
        check(name, name, &[Utf8, Utf8], None, 56);
    }
    check("position", "locate", &[Utf8, Utf8, Int32], None, 200);
}

#[test]
fn numbers_are_rounded_as_by_spark() {
    for data_type in [Float64, Float32] {
        let mut count = 0;
        each_call("round", |expression, literals, zone, value| {
            let is_typed = literals[0].data_type() == &data_type;
            // Null places are not passed to the kernel.
            if is_typed && literals.get(1).is_some_and(|places| places.is_valid(0)) {
                assert_call(expression, "round", &literals, Some(1), zone, value);
                count += 1;
            }
        });
        assert!(count >= 56, "{count}");
    }
}

#[test]
fn logarithms_are_those_of_spark() {
    for (name, function) in [("ln", "log"), ("log10", "log10")] {
        check(name, function, &[Float64], None, 200);
    }
    check("log", "log", &[Float64, Float64], None, 500);
}

#[test]
fn decimals_are_printed_as_by_spark() {
    let mut count = 0;
    for (expression, [value, _]) in ANSWERS.iter() {
        let Some(inner) = expression.strip_prefix("cast(").and_then(|rest| rest.strip_suffix(" as string)"))
        else {
            continue;
        };
        let Some(decimals) = literal(inner, &Zone::UTC) else { continue };
        if matches!(decimals.data_type(), Decimal128(..)) {
            let value = Value::decode(value.as_ref().unwrap()).unwrap();
            assert_call(expression, "decimal_text", &[decimals], None, &Zone::UTC, Some(value));
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn moments_are_truncated_and_shifted_as_by_spark() {
    check("date_trunc", "date_trunc", &[Utf8, instant()], None, 576);
    check("trunc", "trunc", &[Date32, Utf8], None, 468);
    check("add_months", "add_months", &[Date32, Int32], None, 196);
    let mut count = 0;
    each_call("months_between", |expression, literals, zone, value| {
        // The kernel does not round.
        if literals.len() == 3 && literals[2].data_type() == &Boolean && literals[2].is_valid(0) {
            let moments = literals.iter().take(2).map(|each| cast(each, &instant(), zone));
            if let Some(moments) = moments.collect::<Option<Vec<_>>>() {
                assert_call(expression, "months_between", &moments, None, zone, value);
                count += 1;
            }
        }
    });
    assert!(count >= 100, "{count}");
    check("unix_millis", "unix_millis", &[instant()], None, 20);
}

#[test]
fn moments_are_printed_and_read_as_by_spark() {
    check("date_format", "date_format", &[instant(), Utf8], Some(1), 392);
    check("to_timestamp", "to_timestamp", &[Utf8, Utf8], Some(1), 88);
}

#[test]
fn values_are_hashed_as_by_spark() {
    for name in ["hash", "xxhash64"] {
        let mut count = 0;
        each_call(name, |expression, literals, zone, value| {
            assert_call(expression, name, &literals, None, zone, value);
            count += 1;
        });
        assert!(count >= 178, "{count}");
    }
}

#[test]
fn parts_of_moments_are_those_of_spark() {
    for (name, part) in PARTS {
        let is_clock = ["hour", "minute", "second"].contains(name);
        let mut count = 0;
        each_call(name, |expression, literals, zone, value| {
            let target = match literals[0].data_type() {
                Utf8 | Null if !is_clock => Date32,
                Utf8 | Null | Date32 if is_clock => instant(),
                known => known.clone(),
            };
            let Some(moments) = cast(&literals[0], &target, zone) else { return };
            let found = parts(&moments, *part, zone).unwrap();
            assert_eq!(shown(&found, 0), expected(value, &Int32), "{expression} in {zone:?}");
            count += 1;
        });
        assert!(count >= 50, "{count} calls of {name}");
    }
}

fn arguments(columns: Vec<ArrayRef>) -> Arguments {
    Arguments { columns, rows: 1, zone: Zone::UTC }
}

/// The message of a call that this version does not support.
fn unsupported(name: &str, columns: Vec<ArrayRef>) -> String {
    let error = apply(name, &arguments(columns)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    error.message().to_owned()
}

#[test]
fn other_calls_are_rejected() {
    assert_eq!(unsupported("reverse", vec![text("a")]), r#"unknown function "reverse""#);
    assert_eq!(unsupported("upper", vec![]), "an argument is missing");
    assert_eq!(
        unsupported("upper", vec![array(Int32Array::from(vec![1]))]),
        "unexpected type of an argument: Int32"
    );
    let patterns = array(StringArray::from(vec!["yyyy", "MM"]));
    assert_eq!(unsupported("to_timestamp", vec![text("2026"), patterns]), "this argument must be a constant");
    let times = array(Time64MicrosecondArray::from(vec![1]));
    assert_eq!(unsupported("hash", vec![times.clone()]), "cannot hash values of type Time64(µs)");
    let error = parts(&times, PARTS[0].1, &Zone::UTC).unwrap_err();
    assert_eq!(error.message(), "expected dates or timestamps, got Time64(µs)");
}

/// Spark prints by E and Q, but rejects them in a pattern that reads, as it does a letter or character without a
/// meaning.
#[test]
fn patterns_of_other_letters_are_rejected() {
    let instants = array(TimestampMicrosecondArray::from(vec![0]).with_timezone("UTC"));
    for (pattern, why) in [
        ("yyyy-MM-dd'T", "a quote is not closed"),
        ("G yyyy", r#"letters "G""#),
        ("MMMMM", r#"letters "MMMMM""#),
        ("[yyyy]", "the character '['"),
        ("{", "the character '{'"),
        ("yyyy#", "the character '#'"),
    ] {
        let expected = format!("the pattern {pattern:?} is not supported: {why}");
        assert_eq!(unsupported("date_format", vec![instants.clone(), text(pattern)]), expected);
        assert_eq!(unsupported("to_timestamp", vec![text("x"), text(pattern)]), expected);
    }
    for (pattern, why) in [
        ("EEE", r#"letters "EEE""#),
        ("Q", r#"letters "Q""#),
        ("yyyy DDD", r#"letters "DDD""#),
        ("yyyy yy", "a field occurs twice"),
        ("yy yyyy", "a field occurs twice"),
        ("MM MMM", "a field occurs twice"),
        ("MMM MM", "a field occurs twice"),
        ("HH hh", "a field occurs twice"),
        ("ss ss", "a field occurs twice"),
        ("a a", "a field occurs twice"),
    ] {
        let expected = format!("the pattern {pattern:?} is not supported: {why}");
        assert_eq!(unsupported("to_timestamp", vec![text("x"), text(pattern)]), expected);
    }
}
