//! Casts of Variant values. Spark 4.2 printed the expected results (`try_variant_get`, session time zone UTC).

use std::sync::Arc;

use _native::error::Error;
use _native::value::Zone;
use _native::value::cast::Casting;
use _native::value::cast::{CastBuilder, cast_array, variant_fields};
use _native::value::path::{Step, get, normalized};
use _native::value::{Decimal, Metadata, Value, encode, metadata};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields, TimeUnit};

fn timestamp(zone: Option<&str>) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into))
}

fn bytes(value: Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode::scalar(&mut out, &value);
    out
}

fn cast_bytes(value: &[u8], names: &[&str], target: &DataType, strict: bool) -> Result<ArrayRef, Error> {
    let mut name_bytes = Vec::new();
    metadata::write(&mut name_bytes, names.iter().copied(), false);
    let mut builder = CastBuilder::new(target, &Casting::utc(strict))?;
    builder.append(Some(&Metadata::parse(&name_bytes)?), Some(value))?;
    builder.finish()
}

fn cast(value: Value<'_>, target: &DataType) -> ArrayRef {
    cast_bytes(&bytes(value), &[], target, false).unwrap()
}

fn primitive<T: ArrowPrimitiveType>(value: Value<'_>, target: DataType) -> Option<T::Native> {
    let array = cast(value, &target);
    assert_eq!(*array.data_type(), target);
    array.as_primitive::<T>().iter().next().unwrap()
}

fn bigint(value: Value<'_>) -> Option<i64> {
    primitive::<Int64Type>(value, DataType::Int64)
}

fn double(value: Value<'_>) -> Option<f64> {
    primitive::<Float64Type>(value, DataType::Float64)
}

fn float(value: Value<'_>) -> Option<f32> {
    primitive::<Float32Type>(value, DataType::Float32)
}

fn decimal(value: Value<'_>, precision: u8, scale: i8) -> Option<i128> {
    primitive::<Decimal128Type>(value, DataType::Decimal128(precision, scale))
}

fn boolean(value: Value<'_>) -> Option<bool> {
    cast(value, &DataType::Boolean).as_boolean().iter().next().unwrap()
}

fn string(value: Value<'_>) -> Option<String> {
    cast(value, &DataType::Utf8).as_string::<i32>().iter().next().unwrap().map(str::to_owned)
}

const NEW_YEAR: i64 = 1_767_225_600_000_000;
const NOON_AND_A_HALF: i64 = NEW_YEAR + 43_200_500_000;

fn dec(unscaled: i128, scale: u8) -> Value<'static> {
    Value::Decimal(Decimal { unscaled, scale })
}

#[test]
fn digits_with_surrounding_blanks_cast_to_integers() {
    let cases = [
        ("123", Some(123)),
        (" 123 ", Some(123)),
        ("\t12\n", Some(12)),
        ("12.5", None),
        ("1e3", None),
        ("+5", Some(5)),
        ("-7", Some(-7)),
        ("-0", Some(0)),
        ("abc", None),
        ("", None),
        ("9999999999", Some(9999999999)),
        ("99999999999999999999", None),
        ("0x10", None),
        ("12.", None),
        ("1_000", None),
        ("１", None),
    ];
    for (text, expected) in cases {
        assert_eq!(bigint(Value::String(text)), expected, "{text:?}");
    }
}

#[test]
fn integers_out_of_range_of_the_target_cast_to_null() {
    assert_eq!(primitive::<Int8Type>(Value::String("128"), DataType::Int8), None);
    assert_eq!(primitive::<Int16Type>(Value::String("128"), DataType::Int16), Some(128));
    assert_eq!(primitive::<Int8Type>(Value::Int32(-129), DataType::Int8), None);
    assert_eq!(primitive::<Int32Type>(Value::Int64(3_000_000_000), DataType::Int32), None);
    assert_eq!(primitive::<Int32Type>(Value::Int64(-7), DataType::Int32), Some(-7));
}

#[test]
fn casts_to_integers_truncate_fractions() {
    assert_eq!(bigint(Value::Double(-1.5)), Some(-1));
    assert_eq!(bigint(Value::Double(1e10)), Some(10_000_000_000));
    assert_eq!(bigint(Value::Double(1e20)), None);
    assert_eq!(bigint(Value::Double(9223372036854775808.0)), Some(i64::MAX));
    assert_eq!(bigint(Value::Double(f64::NAN)), None);
    assert_eq!(bigint(Value::Float(1.5)), Some(1));
    assert_eq!(bigint(dec(-1299, 2)), Some(-12));
    assert_eq!(bigint(dec(1234567890123456789012, 2)), None);
    assert_eq!(primitive::<Int8Type>(Value::Double(127.9), DataType::Int8), Some(127));
}

#[test]
fn booleans_and_timestamps_cast_to_integers_but_dates_do_not() {
    assert_eq!(bigint(Value::Boolean(true)), Some(1));
    assert_eq!(bigint(Value::Timestamp(NOON_AND_A_HALF)), Some(1767268800));
    assert_eq!(bigint(Value::Timestamp(-500_000)), Some(-1));
    assert_eq!(bigint(Value::TimestampNtz(NEW_YEAR)), None);
    assert_eq!(bigint(Value::Date(20454)), None);
    assert_eq!(bigint(Value::Binary(b"1")), None);
    assert_eq!(bigint(Value::Uuid([0; 16])), None);
}

#[test]
fn text_casts_to_doubles_as_java_parses_it() {
    let cases = [
        (" 123 ", Some(123.0)),
        ("1e3", Some(1000.0)),
        ("1.5f", Some(1.5)),
        ("1d", Some(1.0)),
        ("inf", Some(f64::INFINITY)),
        ("+inf", Some(f64::INFINITY)),
        ("-Infinity", Some(f64::NEG_INFINITY)),
        ("12.", Some(12.0)),
        (".5", Some(0.5)),
        (".", None),
        ("1e400", Some(f64::INFINITY)),
        ("0x10", None),
        ("2026-01-01", None),
        ("１", None),
        ("", None),
    ];
    for (text, expected) in cases {
        assert_eq!(double(Value::String(text)), expected, "{text:?}");
    }
    assert!(double(Value::String("NaN")).unwrap().is_nan());
    assert_eq!(float(Value::String("99999999999999999999")), Some(1e20));
    assert!(double(Value::String("-NaN")).unwrap().is_nan());
    assert_eq!(double(Value::String("-nan")), None);
}

#[test]
fn numbers_cast_to_floating_point() {
    assert_eq!(double(Value::Float(1.1)), Some(1.100000023841858));
    assert_eq!(double(dec(1234567890123456789012, 2)), Some(1.2345678901234567e19));
    assert_eq!(double(dec(1230, 2)), Some(12.3));
    assert_eq!(float(dec(999999999995, 1)), Some(99999997952.0));
    assert_eq!(float(Value::Int32(16777217)), Some(16777216.0));
    assert_eq!(double(Value::Timestamp(NOON_AND_A_HALF)), Some(1767268800.5));
    assert_eq!(float(Value::Timestamp(NOON_AND_A_HALF)), Some(1767268864.0));
}

#[test]
fn casts_to_decimal_round_half_up() {
    assert_eq!(decimal(Value::String("12.5"), 38, 0), Some(13));
    assert_eq!(decimal(Value::String(".5"), 38, 0), Some(1));
    assert_eq!(decimal(Value::String("-.5"), 38, 0), Some(-1));
    assert_eq!(decimal(Value::String("1e3"), 10, 2), Some(100_000));
    assert_eq!(decimal(Value::String("1e-400"), 10, 2), Some(0));
    assert_eq!(decimal(Value::String("0e37"), 10, 2), Some(0));
    // Spark accepts up to 1,000 digits before the decimal point.
    assert_eq!(decimal(Value::String("0e999"), 10, 2), None);
    assert_eq!(decimal(Value::String("1e-2147483648"), 10, 2), None);
    assert_eq!(decimal(Value::String("1.5f"), 10, 2), None);
    assert_eq!(decimal(Value::String("1e400"), 38, 0), None);
    assert_eq!(decimal(Value::String("9999999999"), 10, 2), None);
    assert_eq!(decimal(Value::String("99999999999999999999"), 38, 0), Some(99999999999999999999));
    assert_eq!(decimal(Value::Double(1.005), 10, 2), Some(101));
    assert_eq!(decimal(Value::Double(0.015), 10, 2), Some(2));
    assert_eq!(decimal(Value::Double(-1.5), 38, 0), Some(-2));
    assert_eq!(decimal(Value::Double(f64::INFINITY), 38, 0), None);
    assert_eq!(decimal(Value::Float(1e38), 38, 0), Some(99999996802856920000000000000000000000));
    assert_eq!(decimal(dec(1015, 3), 10, 2), Some(102));
    assert_eq!(decimal(dec(-1299, 2), 38, 0), Some(-13));
    assert_eq!(decimal(dec(995, 1), 3, 1), Some(995));
    assert_eq!(decimal(dec(9995, 2), 3, 1), None);
    assert_eq!(decimal(Value::Int64(i64::MAX), 10, 2), None);
    assert_eq!(decimal(Value::Timestamp(NOON_AND_A_HALF), 38, 0), Some(1767268801));
    assert_eq!(decimal(Value::Boolean(true), 10, 2), Some(100));
}

#[test]
fn casts_to_boolean_accept_the_spellings_of_spark() {
    for word in ["true", "T", " yes", "y", "1"] {
        assert_eq!(boolean(Value::String(word)), Some(true), "{word:?}");
    }
    for word in ["n", "0", "FALSE", "f", "no"] {
        assert_eq!(boolean(Value::String(word)), Some(false), "{word:?}");
    }
    for word in ["2", "", "on", "123"] {
        assert_eq!(boolean(Value::String(word)), None, "{word:?}");
    }
    assert_eq!(boolean(Value::Double(f64::NAN)), Some(true));
    assert_eq!(boolean(Value::Double(-0.0)), Some(false));
    assert_eq!(boolean(dec(0, 2)), Some(false));
    assert_eq!(boolean(Value::Int8(-1)), Some(true));
    assert_eq!(boolean(Value::Timestamp(1)), None);
}

#[test]
fn text_casts_to_dates_and_timestamps() {
    const SECOND: i64 = 1_000_000;
    const HOUR: i64 = 3600 * SECOND;
    // Text, days since 2026-01-01, and microseconds since then with and without a time zone.
    let cases = [
        ("2026-01-01", Some(0), Some(0), Some(0)),
        ("2026", Some(0), Some(0), Some(0)),
        ("2026-1", Some(0), Some(0), Some(0)),
        (" 2026-1-1 ", Some(0), Some(0), Some(0)),
        ("2026-01-01 ", Some(0), Some(0), Some(0)),
        ("2026-01-01T12:00:00Z", Some(0), Some(12 * HOUR), Some(12 * HOUR)),
        ("2026-01-01 12", Some(0), Some(12 * HOUR), Some(12 * HOUR)),
        ("2026-1-1 1:0:3", Some(0), Some(HOUR + 3 * SECOND), Some(HOUR + 3 * SECOND)),
        ("2026-01-01 00:00:04.1234567890123456789012", Some(0), Some(4_123_456), Some(4_123_456)),
        ("2026-01-01 00:00:04.", Some(0), Some(4 * SECOND), Some(4 * SECOND)),
        ("2026-01-01 12:00:00+02:00", Some(0), Some(10 * HOUR), Some(12 * HOUR)),
        ("2026-01-01 12:00:00 +02:00", Some(0), Some(10 * HOUR), Some(12 * HOUR)),
        ("2026-01-01 12:00:00+0130", Some(0), Some(10 * HOUR + HOUR / 2), Some(12 * HOUR)),
        ("2026-01-01 12:00:00+02:00:30", Some(0), Some(10 * HOUR - 30 * SECOND), Some(12 * HOUR)),
        ("2026-01-01 12:00:00GMT+1", Some(0), Some(11 * HOUR), Some(12 * HOUR)),
        ("2026-01-01 12:00:00 UT", Some(0), Some(12 * HOUR), Some(12 * HOUR)),
        ("2026-01-01 12:00:00-1:3", Some(0), Some(13 * HOUR + 180 * SECOND), Some(12 * HOUR)),
        ("2026-01-01 12:03:04+18:01", Some(0), None, None),
        ("2026-01-01 12:03+01:00", Some(0), None, None),
        ("2026-01-01 12+01:00", Some(0), None, None),
        ("2026-01-01 24:00:00", Some(0), None, None),
        ("2026-01-01 23:59:60", Some(0), None, None),
        ("2026-01-01T", Some(0), None, None),
        ("2026-01-01 x", Some(0), None, None),
        ("2026-01-01 12:", Some(0), None, None),
        ("2026-01-01T12:00:00.5 z", Some(0), None, None),
        ("2026-01-01x", None, None, None),
        ("2026-01-01+01:00", None, None, None),
        ("2026Z", None, None, None),
        ("2026-02-30", None, None, None),
        ("999-01-01", None, None, None),
        ("12345678-01-01", None, None, None),
        ("5881580-07-12", None, None, None),
        ("2026-001-01", None, None, None),
        ("2026--01", None, None, None),
        ("2026-", None, None, None),
        ("", None, None, None),
        ("+", None, None, None),
        ("123", None, None, None),
    ];
    for (text, days, instant, local) in cases {
        let value = Value::String(text);
        let date = primitive::<Date32Type>(value, DataType::Date32).map(|day| day - 20454);
        assert_eq!(date, days, "{text:?}");
        let moment =
            |zone| primitive::<TimestampMicrosecondType>(value, timestamp(zone)).map(|m| m - NEW_YEAR);
        assert_eq!(moment(Some("UTC")), instant, "{text:?}");
        assert_eq!(moment(None), local, "{text:?}");
    }
}

/// Spark adds the current date to a time, so its result depends on the day of the query.
#[test]
fn times_without_a_date_are_not_cast() {
    let target = timestamp(Some("UTC"));
    for text in ["12:00", "T12:00", "12:00:00 Europe/Paris"] {
        assert_eq!(primitive::<TimestampMicrosecondType>(Value::String(text), target.clone()), None);
    }
}

#[test]
fn timestamps_cast_to_and_from_local_times_of_a_zone() {
    const HOUR: i64 = 3_600_000_000;
    let casting = Casting { strict: true, zone: Zone::parse("Asia/Tokyo").unwrap() };
    let cast = |value: Value<'_>, target: &DataType| {
        let mut builder = CastBuilder::new(target, &casting).unwrap();
        builder.append_value(None, &value).unwrap();
        builder.finish().unwrap()
    };
    let micros =
        |value, zone| cast(value, &timestamp(zone)).as_primitive::<TimestampMicrosecondType>().value(0);
    let instant = |value| micros(value, Some("UTC")) - NEW_YEAR;
    assert_eq!(instant(Value::String("2026-01-01 12:00:00")), 3 * HOUR);
    assert_eq!(instant(Value::String("2026-01-01 12:00:00 Europe/Paris")), 11 * HOUR);
    assert_eq!(instant(Value::TimestampNtz(NEW_YEAR)), -9 * HOUR);
    let day = (NEW_YEAR / (24 * HOUR)) as i32;
    assert_eq!(instant(Value::Date(day)), -9 * HOUR);
    assert_eq!(micros(Value::Timestamp(NEW_YEAR), None), NEW_YEAR + 9 * HOUR);
    let evening = Value::Timestamp(NEW_YEAR + 15 * HOUR);
    assert_eq!(cast(evening, &DataType::Date32).as_primitive::<Date32Type>().value(0), day + 1);
    assert_eq!(cast(evening, &DataType::Utf8).as_string::<i32>().value(0), "2026-01-02 00:00:00");
}

#[test]
fn numbers_cast_to_timestamps_are_seconds() {
    let micros = |value| primitive::<TimestampMicrosecondType>(value, timestamp(Some("UTC")));
    assert_eq!(micros(Value::Int8(-1)), Some(-1_000_000));
    assert_eq!(micros(Value::Int64(i64::MAX)), None);
    assert_eq!(micros(Value::Double(1.005)), Some(1_004_999));
    assert_eq!(micros(Value::Double(1e20)), None);
    assert_eq!(micros(Value::Float(1.1)), Some(1_100_000));
    assert_eq!(micros(dec(-1299, 2)), Some(-12_990_000));
    assert_eq!(micros(dec(1234567890123456789012, 2)), None);
    assert_eq!(micros(dec(1, 38)), Some(0));
    assert_eq!(micros(Value::Boolean(true)), None);
    assert_eq!(micros(Value::Date(20454)), Some(NEW_YEAR));
    assert_eq!(primitive::<TimestampMicrosecondType>(Value::Int8(1), timestamp(None)), None);
}

#[test]
fn timestamps_cast_to_dates_and_to_each_other() {
    assert_eq!(primitive::<Date32Type>(Value::Timestamp(-1), DataType::Date32), Some(-1));
    assert_eq!(primitive::<Date32Type>(Value::TimestampNtz(NEW_YEAR), DataType::Date32), Some(20454));
    assert_eq!(primitive::<TimestampMicrosecondType>(Value::Timestamp(7), timestamp(None)), Some(7));
    assert_eq!(
        primitive::<TimestampMicrosecondType>(Value::TimestampNtz(7), timestamp(Some("UTC"))),
        Some(7)
    );
    assert_eq!(primitive::<TimestampMicrosecondType>(Value::TimestampNanos(-1), timestamp(None)), Some(-1));
}

#[test]
fn casts_to_string_print_the_value_without_quotes() {
    let cases = [
        (Value::String(" a\"b"), " a\"b"),
        (Value::Boolean(true), "true"),
        (Value::Int64(-5), "-5"),
        (Value::Double(1e10), "1.0E10"),
        (Value::Double(f64::NAN), "NaN"),
        (Value::Float(1.1), "1.1"),
        (dec(1230, 2), "12.3"),
        (Value::Date(20454), "2026-01-01"),
        (Value::Timestamp(NOON_AND_A_HALF), "2026-01-01 12:00:00.5"),
        (Value::TimestampNtz(NOON_AND_A_HALF), "2026-01-01 12:00:00.5"),
        (Value::Binary(b"abc"), "abc"),
        (Value::Uuid([0x11; 16]), "11111111-1111-1111-1111-111111111111"),
    ];
    for (value, expected) in cases {
        assert_eq!(string(value).as_deref(), Some(expected));
    }
    assert_eq!(string(Value::Binary(&[0xFF])), None);
}

#[test]
fn objects_and_arrays_cast_to_json_text_but_not_to_numbers() {
    let object = [0x02, 1, 0, 0, 2, 0x0C, 1];
    let text = cast_bytes(&object, &["a"], &DataType::Utf8, true).unwrap();
    assert_eq!(text.as_string::<i32>().value(0), r#"{"a":1}"#);
    assert!(cast_bytes(&object, &["a"], &DataType::Int64, false).unwrap().is_null(0));
    let error = cast_bytes(&object, &["a"], &DataType::Int64, true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot cast a value of type object to bigint; `try_variant_get` returns null where a cast fails"
    );
}

#[test]
fn variant_null_and_missing_values_cast_to_null() {
    for target in [DataType::Int64, DataType::Utf8, DataType::Boolean, DataType::Date32, DataType::Binary] {
        assert!(cast_bytes(&[0], &[], &target, true).unwrap().is_null(0));
        let mut builder = CastBuilder::new(&target, &Casting::utc(true)).unwrap();
        builder.append(None, None).unwrap();
        assert!(builder.finish().unwrap().is_null(0));
    }
}

#[test]
fn a_strict_cast_error_names_the_value_its_type_and_the_remedy() {
    let error = cast_bytes(&bytes(Value::String("n/a")), &[], &DataType::Int64, true).unwrap_err();
    assert_eq!(
        error,
        Error::cast(
            "cannot cast \"n/a\" (string) to bigint; `try_variant_get` returns null where a cast fails"
        )
    );
    let error = cast_bytes(&bytes(Value::String(&"é".repeat(500))), &[], &DataType::Int64, true).unwrap_err();
    assert!(error.to_string().len() < 250, "{error}");
}

#[test]
fn casts_to_variant_keep_the_bytes() {
    let target = DataType::Struct(variant_fields());
    let array = cast_bytes(&[0], &["a"], &target, true).unwrap();
    let array = array.as_struct();
    assert!(array.is_valid(0));
    assert_eq!(array.column(0).as_binary::<i32>().value(0), [1, 1, 0, 1, b'a']);
    assert_eq!(array.column(1).as_binary::<i32>().value(0), [0]);
}

#[test]
fn arrays_and_objects_cast_to_lists_structs_and_maps() {
    // {"a":[1,null,"2"]}
    let value = [0x02, 1, 0, 0, 11, 0x03, 3, 0, 2, 3, 5, 0x0C, 1, 0, 0x05, b'2'];
    let list = DataType::List(Arc::new(Field::new("element", DataType::Int64, true)));
    let fields =
        Fields::from(vec![Field::new("b", DataType::Utf8, true), Field::new("a", list.clone(), true)]);
    let array = cast_bytes(&value, &["a"], &DataType::Struct(fields), true).unwrap();
    assert!(array.as_struct().column(0).is_null(0));
    let numbers = array.as_struct().column(1).as_list::<i32>().value(0);
    assert_eq!(numbers.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(1), None, Some(2)]));
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    let map = DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false);
    let array = cast_bytes(&value, &["a"], &map, true).unwrap();
    let entries = array.as_map().value(0);
    assert_eq!(entries.column(0).as_string::<i32>().value(0), "a");
    assert_eq!(entries.column(1).as_string::<i32>().value(0), r#"[1,null,"2"]"#);
    assert!(cast_bytes(&value, &["a"], &list, false).unwrap().is_null(0));
}

#[test]
fn an_unsupported_target_type_is_rejected() {
    let error = CastBuilder::new(&DataType::UInt8, &Casting::utc(true)).unwrap_err();
    assert_eq!(error, Error::unsupported("a Variant cannot be cast to UInt8"));
}

/// Cast every leaf type to every target, as a column and value by value.
#[test]
fn casting_a_column_equals_casting_each_of_its_values() {
    let decimals = Decimal128Array::from(vec![Some(-1299), None, Some(i128::from(i64::MAX))]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(Int8Array::from(vec![Some(-128), None, Some(1)])),
        Arc::new(Int16Array::from(vec![Some(-129), None, Some(1)])),
        Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(20454)])),
        Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(20454)])),
        // All fit the narrower type of their last value, and no type below it.
        Arc::new(Int16Array::from(vec![Some(1), None, Some(i8::MIN.into())])),
        Arc::new(Int32Array::from(vec![Some(1), None, Some(i8::MAX.into())])),
        Arc::new(Int32Array::from(vec![Some(128), None, Some(i16::MIN.into())])),
        Arc::new(Int64Array::from(vec![Some(-1), None, Some(i8::MIN.into())])),
        Arc::new(Int64Array::from(vec![Some(-129), None, Some(i16::MAX.into())])),
        Arc::new(Int64Array::from(vec![Some(32_768), None, Some(i32::MIN.into())])),
        Arc::new(Float32Array::from(vec![Some(1.1), None, Some(f32::NAN)])),
        Arc::new(Float64Array::from(vec![Some(-0.005), None, Some(1e300)])),
        Arc::new(decimals.with_precision_and_scale(38, 2).unwrap()),
        Arc::new(Date32Array::from(vec![Some(20454), None, Some(i32::MIN)])),
        Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(86_399_999_999)])),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(NEW_YEAR)]).with_timezone("UTC")),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(NEW_YEAR)])),
        Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None, Some(1)]).with_timezone("UTC")),
        Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None, Some(1)])),
        Arc::new(BinaryArray::from(vec![Some(&b"123"[..]), None, Some(&[0xFF])])),
        Arc::new(StringArray::from(vec![Some("123"), None, Some("n/a")])),
    ];
    let targets = [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(10, 2),
        DataType::Date32,
        timestamp(Some("UTC")),
        timestamp(None),
        DataType::Binary,
        DataType::Utf8,
    ];
    for column in &columns {
        let scalars = _native::value::column::Scalars::new(column).unwrap();
        for target in &targets {
            let mut builder = CastBuilder::new(target, &Casting::utc(false)).unwrap();
            for row in 0..column.len() {
                let value = column.is_valid(row).then(|| bytes(scalars.value(row).unwrap()));
                builder.append(None, value.as_deref()).unwrap();
            }
            let expected = builder.finish().unwrap();
            let cast = cast_array(column, target, &Casting::utc(false)).unwrap();
            assert_eq!(format!("{cast:?}"), format!("{expected:?}"), "{} to {target}", column.data_type());
        }
    }
}

#[test]
fn a_column_cast_to_its_own_type_is_not_copied() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let cast = cast_array(&column, &DataType::Int64, &Casting::utc(true)).unwrap();
    assert!(Arc::ptr_eq(&column, &cast));
}

#[test]
fn a_strict_cast_error_of_a_column_names_the_row() {
    let column: ArrayRef = Arc::new(StringArray::from(vec!["1", "x"]));
    let error = cast_array(&column, &DataType::Int64, &Casting::utc(true)).unwrap_err();
    assert!(error.to_string().starts_with("row 1: cannot cast \"x\" (string) to bigint"), "{error}");
}

#[test]
fn paths_resolve_to_a_field_an_element_or_nothing() {
    let mut names = Vec::new();
    metadata::write(&mut names, ["a"].into_iter(), true);
    let metadata = Metadata::parse(&names).unwrap();
    let value = [0x02, 1, 0, 0, 11, 0x03, 3, 0, 2, 3, 5, 0x0C, 1, 0, 0x05, b'2'];
    let field = |name: &str| Step::Field(name.into());
    let found = |path: &[Step]| get(&metadata, &value, path).unwrap().map(<[u8]>::to_vec);
    assert_eq!(found(&[]), Some(value.to_vec()));
    assert_eq!(found(&[field("a"), Step::Index(2)]), Some(vec![0x05, b'2']));
    assert_eq!(found(&[field("a"), Step::Index(1)]), Some(vec![0x00]));
    assert_eq!(found(&[field("a"), Step::Index(3)]), None);
    assert_eq!(found(&[field("b")]), None);
    assert_eq!(found(&[Step::Index(0)]), None);
    assert_eq!(found(&[field("a"), field("a")]), None);
    assert_eq!(found(&[field("a"), Step::Index(0), field("a")]), None);
}

#[test]
fn paths_are_printed_in_normalized_form() {
    let path = [Step::Field("a'b\\\u{1}\n".into()), Step::Index(3), Step::Field("é".into())];
    assert_eq!(normalized(&path), r"$['a\'b\\\u0001\n'][3]['é']");
}
