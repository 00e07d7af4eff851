//! Parsing of JSON text into Variant bytes and shredded columns.

use _native::json::parse::{JsonShredder, ParseOptions};
use _native::shred::schema::{LeafType, ShreddingSchema};
use _native::value::Zone;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, StructArray};

/// Return the metadata and the value of JSON text.
pub fn parse(text: &str, options: ParseOptions) -> Result<(Vec<u8>, Vec<u8>), String> {
    let mut shredder = JsonShredder::new(ShreddingSchema::Untyped, options);
    shredder.push(text.as_bytes()).map_err(|e| format!("{}@{}", e.message, e.offset))?;
    Ok(row(&shredder.take().unwrap(), 0))
}

/// Return the metadata and the value of a row.
pub fn row(group: &StructArray, row: usize) -> (Vec<u8>, Vec<u8>) {
    let metadata = group.column_by_name("metadata").unwrap().as_dictionary::<Int32Type>();
    let key = metadata.keys().value(row) as usize;
    let metadata = metadata.values().as_binary::<i32>().value(key).to_vec();
    (metadata, group.column_by_name("value").unwrap().as_binary::<i32>().value(row).to_vec())
}

fn value(text: &str) -> Vec<u8> {
    parse(text, ParseOptions::default()).unwrap().1
}

fn parse_error(text: &str) -> String {
    parse(text, ParseOptions::default()).unwrap_err()
}

#[test]
fn scalars_take_the_narrowest_type() {
    assert_eq!(value("null"), [0x00]);
    assert_eq!(value("true"), [0x04]);
    assert_eq!(value(" false "), [0x08]);
    assert_eq!(value("1"), [0x0C, 1]);
    assert_eq!(value("-129"), [0x10, 0x7F, 0xFF]);
    assert_eq!(value("32768"), [0x14, 0, 0x80, 0, 0]);
    assert_eq!(value("9223372036854775807"), [0x18, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]);
    assert_eq!(value("\"n/a\""), [0x0D, b'n', b'/', b'a']);
}

#[test]
fn plain_numbers_become_decimals_and_exponents_doubles() {
    assert_eq!(value("1.10"), [0x20, 2, 110, 0, 0, 0]);
    assert_eq!(value("-0.0"), [0x20, 1, 0, 0, 0, 0]);
    assert_eq!(value("9223372036854775808")[..2], [0x28, 0]);
    assert_eq!(value("1e3"), [&[0x1C][..], &1000f64.to_le_bytes()].concat());
    assert_eq!(value(&format!("0.{}", "1".repeat(38)))[..2], [0x28, 38]);
    assert_eq!(value(&format!("0.{}", "1".repeat(39)))[0], 0x1C);
    assert_eq!(value(&"9".repeat(39))[0], 0x1C);
    let doubles = ParseOptions { doubles: true, ..Default::default() };
    assert_eq!(parse("1.5", doubles).unwrap().1, [&[0x1C][..], &1.5f64.to_le_bytes()].concat());
}

#[test]
fn fields_are_sorted_by_name_and_values_keep_document_order() {
    let (metadata, value) = parse(r#"{"b":1,"a":{"c":true},"é":[]}"#, ParseOptions::default()).unwrap();
    assert_eq!(metadata, b"\x11\x04\x00\x01\x02\x03\x05abc\xC3\xA9");
    assert_eq!(
        value,
        [
            0x02, 3, 0, 1, 3, 2, 0, 8, 11, // a at 2, b at 0, é at 8
            0x0C, 1, 0x02, 1, 2, 0, 1, 0x04, 0x03, 0, 0
        ]
    );
}

#[test]
fn empty_containers_have_three_bytes() {
    assert_eq!(parse("{}", ParseOptions::default()).unwrap(), (vec![1, 0, 0], vec![2, 0, 0]));
    assert_eq!(value("[]"), [3, 0, 0]);
}

#[test]
fn more_than_256_names_take_two_byte_ids() {
    let fields: Vec<String> = (0..300).map(|i| format!("\"k{i:03}\":{i}")).collect();
    let value = value(&format!("{{{}}}", fields.join(",")));
    assert_eq!(value[0], (0b1_0101 << 2) | 2);
    assert_eq!(value[1..5], 300u32.to_le_bytes());
    assert_eq!(value[5..9], [0, 0, 1, 0]);
}

#[test]
fn escapes_and_surrogate_pairs_become_utf8() {
    assert_eq!(value(r#""\u00e9\n\ud83d\ude00""#)[1..], *"é\n😀".as_bytes());
    assert_eq!(parse_error(r#""\ud83d""#), "a surrogate in a string has no partner@1");
    assert_eq!(parse_error(r#""\udc00""#), "a surrogate in a string has no partner@1");
}

#[test]
fn duplicate_keys_are_rejected_with_their_offset_or_the_last_one_wins() {
    assert_eq!(parse_error(r#"{"a":1,"a":2}"#), "an object has two fields called \"a\"@7");
    let last = ParseOptions { last_duplicate: true, ..Default::default() };
    let (_, value) = parse(r#"{"a":1,"a":2}"#, last).unwrap();
    assert_eq!(value, [2, 1, 0, 2, 4, 0x0C, 1, 0x0C, 2]);
}

#[test]
fn a_row_that_was_removed_leaves_nothing_to_the_next_chunk() {
    let field = |name: &str| (name.to_owned(), ShreddingSchema::Leaf(LeafType::Int64));
    let nested = ShreddingSchema::Object(vec![field("a")]);
    let schema = ShreddingSchema::Object(vec![field("a"), ("b".to_owned(), nested)]);
    let mut shredder = JsonShredder::new(schema, ParseOptions::default());
    shredder.push(br#"{"a":1}"#).unwrap();
    shredder.push(br#"{"a":"text","b":?}"#).unwrap_err();
    assert_eq!(shredder.take().unwrap().len(), 1);
    shredder.push(br#"{"b":{"a":2},"a":3}"#).unwrap();
    shredder.push(br#"{"b":{"a":2},"a":3,"a":4}"#).unwrap_err();
    assert_eq!(shredder.take().unwrap().len(), 1);
}

#[test]
fn invalid_json_is_rejected_with_its_offset() {
    for (text, offset) in [
        ("", 0),
        ("{", 1),
        ("[1", 2),
        ("[1,]", 3),
        ("{\"a\" 1}", 5),
        ("1 2", 2),
        ("01", 0),
        ("1.", 2),
        ("-", 1),
        ("\"\t\"", 1),
        ("\"a", 2),
        ("nul", 0),
        ("{,}", 1),
        ("[,]", 1),
        ("1e", 2),
        ("{\"a\":1,}", 7),
    ] {
        let parse_error = parse_error(text);
        assert!(parse_error.ends_with(&format!("@{offset}")), "{text:?}: {parse_error}");
    }
}

#[test]
fn nesting_beyond_the_limit_is_rejected() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    std::thread::Builder::new()
        .stack_size(16 << 20)
        .spawn(move || {
            assert!(parse(&nested(1000), ParseOptions::default()).is_ok());
            assert_eq!(parse_error(&nested(1001)), "the value nests deeper than 1000 levels@1000");
        })
        .unwrap()
        .join()
        .unwrap();
}

fn event_schema() -> ShreddingSchema {
    ShreddingSchema::Object(vec![
        ("amount".into(), ShreddingSchema::Leaf(LeafType::Decimal { precision: 18, scale: 2 })),
        ("tags".into(), ShreddingSchema::List(Box::new(ShreddingSchema::Leaf(LeafType::String)))),
        ("user".into(), ShreddingSchema::Object(vec![("id".into(), ShreddingSchema::Leaf(LeafType::Int64))])),
    ])
}

fn shred(rows: &[Option<&str>]) -> StructArray {
    let mut shredder = JsonShredder::new(event_schema(), ParseOptions::default());
    for row in rows {
        match row {
            Some(text) => shredder.push(text.as_bytes()).unwrap(),
            None => shredder.push_null(),
        }
    }
    shredder.take().unwrap()
}

fn field<'a>(group: &'a StructArray, name: &str) -> &'a StructArray {
    group.column_by_name("typed_value").unwrap().as_struct().column_by_name(name).unwrap().as_struct()
}

#[test]
fn matching_values_go_to_typed_value_and_others_to_value() {
    let group = shred(&[
        Some(r#"{"user":{"id":7,"x":[1]},"amount":1.5,"tags":["a",null,"b"],"more":true}"#),
        None,
        Some(r#"{"user":"bob","amount":1.555,"tags":{}}"#),
        Some("\"text\""),
    ]);
    assert_eq!(group.nulls().unwrap().iter().collect::<Vec<_>>(), [true, false, true, true]);
    let value = group.column_by_name("value").unwrap().as_binary::<i32>();
    assert_eq!(value.value(0)[..2], [2, 1]);
    assert!(value.is_null(1) && value.is_null(2));
    assert_eq!(value.value(3)[1..], *b"text");
    assert_eq!(group.column_by_name("typed_value").unwrap().null_count(), 2);

    let amount = field(&group, "amount");
    let typed = amount.column_by_name("typed_value").unwrap().as_primitive::<Decimal128Type>();
    assert_eq!((typed.value(0), typed.is_null(2)), (150, true));
    assert_eq!(amount.column_by_name("value").unwrap().as_binary::<i32>().value(2)[..2], [0x20, 3]);

    let user = field(&group, "user");
    let id = field(user, "id").column_by_name("typed_value").unwrap().as_primitive::<Int64Type>();
    assert_eq!((id.value(0), id.null_count()), (7, 3));
    let user_value = user.column_by_name("value").unwrap().as_binary::<i32>();
    assert_eq!(user_value.value(0)[0], 2);
    assert_eq!(user_value.value(2)[1..], *b"bob");

    let tags = field(&group, "tags").column_by_name("typed_value").unwrap().as_list::<i32>();
    assert_eq!((tags.value_length(0), tags.is_null(2)), (3, true));
    let element = tags.values().as_struct();
    assert_eq!(element.column_by_name("value").unwrap().as_binary::<i32>().value(1), [0]);
}

#[test]
fn an_invalid_row_does_not_affect_other_rows() {
    let mut shredder = JsonShredder::new(event_schema(), ParseOptions::default());
    shredder.push(br#"{"tags":["a"],"z":{"q":1}}"#).unwrap();
    shredder.push(br#"{"tags":["b","c"],"user":{"id":1},"z":{"q":[1,2"#).unwrap_err();
    shredder.push(br#"{"user":{"id":2},"user":1}"#).unwrap_err();
    shredder.push(br#"{"tags":["d"]}"#).unwrap();
    let group = shredder.take().unwrap();
    assert_eq!(group, shred(&[Some(r#"{"tags":["a"],"z":{"q":1}}"#), Some(r#"{"tags":["d"]}"#)]));
}

#[test]
fn a_field_that_a_later_one_replaces_leaves_no_bytes() {
    let options = ParseOptions { last_duplicate: true, ..Default::default() };
    for (text, expected) in [
        (r#"{"user":{"x":{"y":1}},"user":{}}"#, r#"{"user":{}}"#),
        (
            r#"{"user":{"x":{"y":1}},"user":{"other":"text of some length"}}"#,
            r#"{"user":{"other":"text of some length"}}"#,
        ),
        (
            r#"{"user":{"x":{"y":1}},"more":{"z":2},"user":{"x":{"y":3}}}"#,
            r#"{"more":{"z":2},"user":{"x":{"y":3}}}"#,
        ),
        (r#"{"tags":[{"y":1}],"user":{"id":1},"tags":["a"]}"#, r#"{"tags":["a"],"user":{"id":1}}"#),
    ] {
        let mut shredder = JsonShredder::new(event_schema(), options);
        shredder.push(br#"{"user":{"x":{"y":0}}}"#).unwrap();
        shredder.push(text.as_bytes()).unwrap();
        let group = shredder.take().unwrap();
        let json = _native::shred::print::to_json(&group, Default::default(), &Zone::UTC).unwrap();
        assert_eq!((json.value(0), json.value(1)), (r#"{"user":{"x":{"y":0}}}"#, expected), "{text}");
    }
}

#[test]
fn objects_at_one_path_differ_in_size_and_order() {
    let wide: Vec<String> = (0..70).map(|i| format!("\"k{:02}\":{i}", 69 - i)).collect();
    let long = "x".repeat(300);
    let texts = [
        r#"{"a":{"b":1,"c":[1,2]},"d":[{"b":1},{"c":2,"b":3}]}"#.to_owned(),
        r#"{"d":[],"a":{}}"#.to_owned(),
        format!(
            r#"{{"a":{{"c":[{{"b":"{long}"}}],"b":1}},"d":[{{"b":"{long}"}},{{}},{{"e":1,"c":2,"b":3}}]}}"#
        ),
        format!(r#"{{"d":[{{"b":1}}],"a":{{{}}}}}"#, wide.join(",")),
        r#"{"a":{"b":1,"c":[1,2]},"d":[{"b":1},{"c":2,"b":3}]}"#.to_owned(),
    ];
    let mut together = JsonShredder::new(ShreddingSchema::Untyped, ParseOptions::default());
    texts.iter().for_each(|text| together.push(text.as_bytes()).unwrap());
    let group = together.take().unwrap();
    for (index, text) in texts.iter().enumerate() {
        assert_eq!(row(&group, index), parse(text, ParseOptions::default()).unwrap(), "{text}");
    }
}

#[test]
fn many_unique_names_are_parsed_correctly() {
    let mut shredder = JsonShredder::new(event_schema(), ParseOptions::default());
    for row in 0..40_000 {
        shredder
            .push(format!(r#"{{"k{row}":{{"b":1,"a{row}":2}},"user":{{"id":{row}}}}}"#).as_bytes())
            .unwrap();
    }
    let group = shredder.take().unwrap();
    let text = _native::shred::print::to_json(&group, Default::default(), &Zone::UTC).unwrap();
    for index in [0, 16_383, 16_384, 39_999] {
        let expected = format!(r#"{{"k{index}":{{"a{index}":2,"b":1}},"user":{{"id":{index}}}}}"#);
        assert_eq!(text.value(index), expected);
    }
}
