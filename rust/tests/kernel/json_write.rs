//! JSON text of Variant values. Spark 4.2 printed the expected texts (`to_json` of each value cast to VARIANT).

use _native::error::Error;
use _native::value::Zone;
use _native::value::json::{Keys, value};
use _native::value::{Decimal, MAX_DEPTH, Metadata, Value, encode, metadata, text};

fn json_of(bytes: &[u8], names: &[&str]) -> Result<String, Error> {
    let mut name_bytes = Vec::new();
    metadata::write(&mut name_bytes, names.iter().copied(), false);
    let keys = Keys::new(&Metadata::parse(&name_bytes)?);
    let mut out = Vec::new();
    value(&mut out, &keys, bytes, &Zone::UTC)?;
    Ok(String::from_utf8(out).unwrap())
}

fn json(value: Value<'_>) -> String {
    let mut bytes = Vec::new();
    encode::scalar(&mut bytes, &value);
    json_of(&bytes, &[]).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn doubles_print_as_java_prints_them() {
    let cases = [
        (1.0, "1.0"),
        (100.0, "100.0"),
        (1e20, "1.0E20"),
        (1e-7, "1.0E-7"),
        (0.1, "0.1"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (12345678.9, "1.23456789E7"),
        (1e-3, "0.001"),
        (0.00099, "9.9E-4"),
        (5e-324, "4.9E-324"),
        (f64::MAX, "1.7976931348623157E308"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.002, "0.002"),
        (1e21, "1.0E21"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
        (-1234.5678, "-1234.5678"),
        (-0.5, "-0.5"),
        (123.456789012, "123.456789012"),
        (1.0 / 3.0, "0.3333333333333333"),
        (100.0 / 3.0, "33.333333333333336"),
        (1234567.1234567, "1234567.1234567"),
        (48.137154, "48.137154"),
        (0.0012345678, "0.0012345678"),
    ];
    for (number, expected) in cases {
        assert_eq!(json(Value::Double(number)), expected);
    }
}

/// Java before 19 prints some numbers with more digits than needed; we print the shortest form.
#[test]
fn floating_point_numbers_print_their_shortest_digits() {
    assert_eq!(json(Value::Double(2e23)), "2.0E23");
    assert_eq!(json(Value::Double(1e23)), "1.0E23");
    assert_eq!(json(Value::Float(f32::MIN_POSITIVE)), "1.1754944E-38");
}

#[test]
fn floats_print_as_java_prints_them() {
    let cases = [
        (1.1, "1.1"),
        (1e-45, "1.4E-45"),
        (f32::MAX, "3.4028235E38"),
        (0.1, "0.1"),
        (16777216.0, "1.6777216E7"),
        (1e7, "1.0E7"),
        (1e10, "1.0E10"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-0.0, "-0.0"),
        (123456.0, "123456.0"),
        (123.25, "123.25"),
    ];
    for (number, expected) in cases {
        assert_eq!(json(Value::Float(number)), expected);
    }
}

#[test]
fn nan_and_infinities_print_as_strings() {
    assert_eq!(json(Value::Double(f64::NAN)), r#""NaN""#);
    assert_eq!(json(Value::Double(f64::INFINITY)), r#""Infinity""#);
    assert_eq!(json(Value::Float(f32::NEG_INFINITY)), r#""-Infinity""#);
}

#[test]
fn decimals_print_without_trailing_zeros() {
    let cases = [
        (110, 2, "1.1"),
        (1, 7, "0.0000001"),
        (0, 2, "0"),
        (-1234500, 4, "-123.45"),
        (100, 0, "100"),
        (10_000_000_000_000_000, 10, "1000000"),
        (1, 38, "0.00000000000000000000000000000000000001"),
        (
            -99_999_999_999_999_999_999_999_999_999_999_999_999,
            38,
            "-0.99999999999999999999999999999999999999",
        ),
        (99_999_999_999_999_999_999_999_999_999_999_999_999, 1, "9999999999999999999999999999999999999.9"),
    ];
    for (unscaled, scale, expected) in cases {
        assert_eq!(json(Value::Decimal(Decimal { unscaled, scale })), expected);
    }
}

#[test]
fn integers_print_their_digits() {
    assert_eq!(json(Value::Int8(-128)), "-128");
    assert_eq!(json(Value::Int16(0)), "0");
    assert_eq!(json(Value::Int32(1234567)), "1234567");
    assert_eq!(json(Value::Int64(i64::MIN)), "-9223372036854775808");
    assert_eq!(json(Value::Int64(i64::MAX)), "9223372036854775807");
}

#[test]
fn dates_print_in_the_proleptic_gregorian_calendar() {
    let cases = [
        (20454, r#""2026-01-01""#),
        (0, r#""1970-01-01""#),
        (-1, r#""1969-12-31""#),
        (-719162, r#""0001-01-01""#),
        (-719528, r#""0000-01-01""#),
        (2932897, r#""+10000-01-01""#),
        (i32::MAX, r#""+5881580-07-11""#),
        (i32::MIN, r#""-5877641-06-23""#),
    ];
    for (days, expected) in cases {
        assert_eq!(json(Value::Date(days)), expected);
    }
}

#[test]
fn timestamps_print_fractions_without_trailing_zeros() {
    const NEW_YEAR: i64 = 1_767_225_600_000_000;
    assert_eq!(json(Value::Timestamp(NEW_YEAR)), r#""2026-01-01 00:00:00+00:00""#);
    assert_eq!(json(Value::Timestamp(NEW_YEAR + 120_000)), r#""2026-01-01 00:00:00.12+00:00""#);
    assert_eq!(json(Value::TimestampNtz(NEW_YEAR + 1)), r#""2026-01-01 00:00:00.000001""#);
    assert_eq!(json(Value::Timestamp(i64::MAX)), r#""+294247-01-10 04:00:54.775807+00:00""#);
    assert_eq!(json(Value::TimestampNtz(i64::MIN)), r#""-290308-12-21 19:59:05.224192""#);
}

/// Spark prints neither times nor nanoseconds, so the expected texts are ours.
#[test]
fn times_and_nanoseconds_print_in_the_form_of_timestamps() {
    assert_eq!(json(Value::Time(43_200_500_000)), r#""12:00:00.5""#);
    assert_eq!(json(Value::TimestampNanos(1)), r#""1970-01-01 00:00:00.000000001+00:00""#);
    assert_eq!(json(Value::TimestampNtzNanos(-1)), r#""1969-12-31 23:59:59.999999999""#);
}

#[test]
fn binary_prints_in_base64_and_uuids_in_hexadecimal() {
    assert_eq!(json(Value::Binary(&[0x00, 0xFF, 0x10])), r#""AP8Q""#);
    assert_eq!(json(Value::Binary(&[])), r#""""#);
    assert_eq!(json(Value::Binary(&[1, 2])), r#""AQI=""#);
    assert_eq!(json(Value::Binary(&[1])), r#""AQ==""#);
    assert_eq!(json(Value::Binary(&[0xFB, 0xEF, 0xFF])), r#""++//""#);
    let uuid = hex("f24f9b64815b4d5983c6a3a6f0a4b2c1").try_into().unwrap();
    assert_eq!(json(Value::Uuid(uuid)), r#""f24f9b64-815b-4d59-83c6-a3a6f0a4b2c1""#);
}

#[test]
fn strings_escape_only_the_characters_that_json_requires() {
    let text = "/\u{1}\u{1f}\u{7f}\u{8}\u{c}\n\r\t\"\\\u{2028}é😀<>&'\u{b}\u{0}";
    let expected = r#""/\u0001\u001F*\b\f\n\r\t\"\\+é😀<>&'\u000B\u0000""#;
    assert_eq!(json(Value::String(text)), expected.replace('*', "\u{7f}").replace('+', "\u{2028}"));
}

#[test]
fn a_character_to_escape_is_found_at_every_position() {
    for length in 0..40 {
        for at in 0..length {
            let mut text = vec!['é'; length];
            text[at] = '"';
            let text: String = text.into_iter().collect();
            assert_eq!(json(Value::String(&text)), format!("\"{}\"", text.replace('"', "\\\"")));
        }
    }
}

#[test]
fn objects_and_arrays_print_in_their_order() {
    // {"a":[],"b":[1,null,true]}
    let bytes = hex("02 02 00 01 00 03 0d 03 00 00 03 03 00 02 03 04 0c 01 00 04");
    assert_eq!(json_of(&bytes, &["a", "b"]).unwrap(), r#"{"a":[],"b":[1,null,true]}"#);
    assert_eq!(json_of(&hex("020000"), &[]).unwrap(), "{}");
    assert_eq!(json_of(&hex("030000"), &[]).unwrap(), "[]");
}

#[test]
fn names_are_escaped_like_strings() {
    let bytes = hex("02 01 00 00 02 0c 01");
    assert_eq!(json_of(&bytes, &["a\u{1}\""]).unwrap(), r#"{"a\u0001\"":1}"#);
}

#[test]
fn a_name_id_beyond_the_metadata_is_rejected() {
    let error = json_of(&hex("02 01 07 00 02 0c 01"), &["a"]).unwrap_err();
    assert!(error.to_string().contains("name id 7"), "{error}");
}

#[test]
fn an_unknown_primitive_type_is_rejected() {
    let error = json_of(&[23 << 2], &[]).unwrap_err();
    assert!(error.to_string().contains("primitive type 23"), "{error}");
}

#[test]
fn nesting_beyond_the_limit_is_rejected() {
    let nested = |depth: usize| {
        let mut bytes = vec![0x00];
        for _ in 0..depth {
            let mut array = Vec::new();
            encode::Layout::array(1, bytes.len()).write_array(&mut array, [0].into_iter());
            array.append(&mut bytes);
            bytes = array;
        }
        json_of(&bytes, &[])
    };
    let check = move || {
        assert!(nested(MAX_DEPTH).is_ok());
        assert!(nested(MAX_DEPTH + 1).unwrap_err().to_string().contains("deeper than"));
    };
    // The stack size of the kernel's threads.
    std::thread::Builder::new().stack_size(16 << 20).spawn(check).unwrap().join().unwrap();
}

proptest::proptest! {
    #[test]
    fn any_double_reads_back_from_its_text(bits: u64) {
        let number = f64::from_bits(bits);
        proptest::prop_assume!(number.is_finite());
        let mut out = Vec::new();
        text::double(&mut out, number);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits, "{text}");
    }

    #[test]
    fn a_short_decimal_keeps_its_digits(digits in -9_999_999_999i64..9_999_999_999, scale in 1usize..9) {
        let number = digits as f64 / 10f64.powi(scale as i32);
        let mut out = Vec::new();
        text::double(&mut out, number);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.parse::<f64>().unwrap(), number);
        proptest::prop_assume!((1e-3..1e7).contains(&number.abs()));
        // The standard library prints the shortest digits too, without the point of a whole number.
        assert_eq!(text.strip_suffix(".0").unwrap_or(&text), number.to_string());
    }

    #[test]
    fn any_text_reads_back_from_its_json(text: String) {
        let printed = json(Value::String(&text));
        assert_eq!(unescape(&printed), text);
    }
}

fn unescape(printed: &str) -> String {
    let mut out = String::new();
    let mut characters = printed[1..printed.len() - 1].chars();
    while let Some(character) = characters.next() {
        assert!(character >= ' ' && character != '"');
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next().unwrap() {
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let digits: String = characters.by_ref().take(4).collect();
                out.push(char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap());
            }
            other => out.push(other),
        }
    }
    out
}
