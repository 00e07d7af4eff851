//! The examples of parquet-testing: every type of the Variant encoding, written by Spark. E-Q5 is a rule of
//! protocol_fixtures/README.md.

use std::path::PathBuf;

use _native::value::Zone;
use _native::value::json::{Keys, value as write_json};
use _native::value::{Decimal, Metadata, Value, encode, validate};

/// The values that the corpus describes, as JSON text; base64, dates and times in the format of Spark's `to_json`.
const EXAMPLES: [(&str, &str); 29] = [
    ("array_empty", "[]"),
    (
        "array_nested",
        r#"[{"id":1,"thing":{"names":["Contrarian","Spider"]}},null,{"id":2,"names":["Apple","Ray",null],"type":"if"}]"#,
    ),
    ("array_primitive", "[2,1,5,9]"),
    (
        "long_string",
        r#""This string is for sure and certainly longer than 64 bytes and it also includes several non ascii characters such as 🐢, 💖, ♥️, 🎣 and 🤦!!""#,
    ),
    ("object_empty", "{}"),
    (
        "object_nested",
        r#"{"id":1,"observation":{"location":"In the Volcano","time":"12:34:56","value":{"humidity":456,"temperature":123}},"species":{"name":"lava monster","population":6789}}"#,
    ),
    (
        "object_primitive",
        r#"{"boolean_false_field":false,"boolean_true_field":true,"double_field":1.23456789,"int_field":1,"null_field":null,"string_field":"Apache Parquet","timestamp_field":"2025-04-16T12:34:56.78"}"#,
    ),
    ("primitive_binary", r#""AxM33q2+78r+""#),
    ("primitive_boolean_false", "false"),
    ("primitive_boolean_true", "true"),
    ("primitive_date", r#""2025-04-16""#),
    ("primitive_decimal16", "12345678912345678.9"),
    ("primitive_decimal4", "12.34"),
    ("primitive_decimal8", "12345678.9"),
    ("primitive_double", "1.2345678901234E9"),
    ("primitive_float", "1.234568E9"),
    ("primitive_int16", "1234"),
    ("primitive_int32", "123456"),
    ("primitive_int64", "1234567890123456789"),
    ("primitive_int8", "42"),
    ("primitive_null", "null"),
    (
        "primitive_string",
        r#""This string is longer than 64 bytes and therefore does not fit in a short_string and it also includes several non ascii characters such as 🐢, 💖, ♥️, 🎣 and 🤦!!""#,
    ),
    ("primitive_time", r#""12:33:54.123456""#),
    ("primitive_timestamp", r#""2025-04-16 16:34:56.78+00:00""#),
    ("primitive_timestampntz", r#""2025-04-16 12:34:56.78""#),
    ("primitive_timestamp_nanos", r#""2024-11-07 12:33:54.123456789+00:00""#),
    ("primitive_timestampntz_nanos", r#""2024-11-07 12:33:54.123456789""#),
    ("primitive_uuid", r#""f24f9b64-81fa-49d1-b74e-8c09a6e31c56""#),
    ("short_string", r#""Less than 64 bytes (❤️ with utf8)""#),
];

fn examples() -> PathBuf {
    crate::corpora::corpus("parquet-testing/variant")
}

fn read(example: &str) -> (Vec<u8>, Vec<u8>) {
    let file = |suffix: &str| std::fs::read(examples().join(format!("{example}.{suffix}"))).unwrap();
    (file("metadata"), file("value"))
}

#[test]
fn every_example_is_valid_and_has_its_expected_value() {
    for (example, expected) in EXAMPLES {
        let (metadata, value) = read(example);
        let metadata = Metadata::parse(&metadata).unwrap();
        assert_eq!(validate(&metadata, &value), Ok(()), "{example}");
        let mut text = Vec::new();
        write_json(&mut text, &Keys::new(&metadata), &value, &Zone::UTC).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected, "{example}");
    }
}

#[test]
fn every_example_is_tested() {
    let files = std::fs::read_dir(examples()).unwrap();
    let mut names: Vec<String> = files
        .filter_map(|file| file.unwrap().file_name().to_str()?.strip_suffix(".value").map(str::to_owned))
        .collect();
    names.sort_unstable();
    let mut known: Vec<&str> = EXAMPLES.iter().map(|example| example.0).collect();
    known.sort_unstable();
    assert_eq!(names, known);
}

#[test]
fn types_that_print_alike_are_distinguished() {
    let examples = [
        ("primitive_int8", Value::Int8(42)),
        ("primitive_int16", Value::Int16(1234)),
        ("primitive_int32", Value::Int32(123_456)),
        ("primitive_int64", Value::Int64(1_234_567_890_123_456_789)),
        ("primitive_float", Value::Float(1_234_567_940.0)),
        ("primitive_double", Value::Double(1_234_567_890.123_4)),
        ("primitive_decimal4", Value::Decimal(Decimal { unscaled: 1234, scale: 2 })),
        ("primitive_decimal8", Value::Decimal(Decimal { unscaled: 1_234_567_890, scale: 2 })),
        ("primitive_decimal16", Value::Decimal(Decimal { unscaled: 1_234_567_891_234_567_890, scale: 2 })),
        ("primitive_date", Value::Date(20_194)),
        ("primitive_time", Value::Time(45_234_123_456)),
        ("primitive_timestamp", Value::Timestamp(1_744_821_296_780_000)),
        ("primitive_timestampntz", Value::TimestampNtz(1_744_806_896_780_000)),
        ("primitive_timestamp_nanos", Value::TimestampNanos(1_730_982_834_123_456_789)),
        ("primitive_timestampntz_nanos", Value::TimestampNtzNanos(1_730_982_834_123_456_789)),
    ];
    for (example, expected) in examples {
        assert_eq!(Value::decode(&read(example).1).unwrap(), expected, "{example}");
    }
}

#[test]
fn a_scalar_is_written_as_spark_wrote_it() {
    for (example, _) in EXAMPLES.iter().filter(|(name, _)| name.contains("primitive_")) {
        let value = read(example).1;
        let mut written = Vec::new();
        encode::scalar(&mut written, &Value::decode(&value).unwrap());
        assert_eq!(written, value, "{example}");
    }
}

#[test]
fn an_example_truncated_at_any_byte_is_rejected() {
    for (example, _) in EXAMPLES {
        let (metadata, value) = read(example);
        let parsed = Metadata::parse(&metadata).unwrap();
        for length in 0..value.len() {
            assert!(validate(&parsed, &value[..length]).is_err(), "{example}, {length} bytes"); // E-Q5
        }
        for length in 0..metadata.len() {
            assert!(Metadata::parse(&metadata[..length]).is_err(), "{example}, {length} bytes of metadata");
        }
    }
}
