//! Setting and removing paths: the new value, and the bytes that stay unchanged.

use std::sync::Arc;

use _native::error::{Error, ErrorKind};
use _native::json::parse::ParseOptions;
use _native::shred::OnConflict;
use _native::shred::unshred::unshred;
use _native::value::Zone;
use _native::value::json::{Keys, value as write_json};
use _native::value::metadata::EMPTY;
use _native::value::modify::{NewValue, remove, remove_rows, set, set_rows};
use _native::value::path::Step;
use _native::value::{MAX_DEPTH, Metadata, Value, encode, metadata, validate};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, Int64Array, NullArray, StructArray};
use arrow_buffer::NullBuffer;

fn fields(names: &[&str]) -> Vec<Step> {
    names.iter().map(|name| Step::Field(name.to_string())).collect()
}

fn json(metadata: &[u8], value: &[u8]) -> String {
    let names = Metadata::parse(metadata).unwrap();
    validate(&names, value).unwrap();
    let mut out = Vec::new();
    write_json(&mut out, &Keys::new(&names), value, &Zone::UTC).unwrap();
    String::from_utf8(out).unwrap()
}

/// An object of one field, named by its id: 0 for `b`, 1 for `a`.
fn object(id: usize, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::Layout::object(1, value.len(), 1).write_object(&mut out, std::iter::once((id, 0)));
    [out, value.to_vec()].concat()
}

fn unsorted_names() -> Vec<u8> {
    let mut out = Vec::new();
    metadata::write(&mut out, ["b", "a"].into_iter(), false);
    out
}

#[test]
fn existing_names_keep_their_ids_and_metadata_its_bytes() {
    let names = unsorted_names();
    let known = Metadata::parse(&names).unwrap();
    let value = object(1, &object(0, &[0x0c, 7]));
    let path = fields(&["a", "a"]);
    let (metadata, set) = set(known, Some(&value), &path, &NewValue::Scalar(Value::Int64(1))).unwrap();
    assert_eq!(metadata, names);
    assert_eq!(json(&metadata, &set), r#"{"a":{"a":1,"b":7}}"#);
}

#[test]
fn new_names_are_appended_to_existing_ones() {
    let names = unsorted_names();
    let known = Metadata::parse(&names).unwrap();
    let value = object(1, &[0x0c, 7]);
    let (metadata, set) =
        set(known, Some(&value), &fields(&["c", "d"]), &NewValue::Scalar(Value::Null)).unwrap();
    assert_eq!(Metadata::parse(&metadata).unwrap().names().collect::<Vec<_>>(), ["b", "a", "d", "c"]);
    assert_eq!(json(&metadata, &set), r#"{"a":7,"c":{"d":null}}"#);
}

#[test]
fn metadata_is_marked_as_sorted_if_its_names_are() {
    let known = Metadata::parse(EMPTY).unwrap();
    let (metadata, _) = set(known, None, &fields(&["a"]), &NewValue::Scalar(Value::Boolean(true))).unwrap();
    assert!(Metadata::parse(&metadata).unwrap().is_sorted());
    let path = fields(&["b", "a"]);
    let (metadata, _) = set(known, None, &path, &NewValue::Scalar(Value::Boolean(true))).unwrap();
    // The innermost name comes first.
    assert!(Metadata::parse(&metadata).unwrap().is_sorted());
}

#[test]
fn setting_a_variant_translates_its_name_ids() {
    let names = unsorted_names();
    let known = Metadata::parse(EMPTY).unwrap();
    let value = object(1, &object(0, &[0x0c, 7]));
    let new = NewValue::Variant(Metadata::parse(&names).unwrap(), &value);
    let (metadata, set) = set(known, None, &fields(&["x"]), &new).unwrap();
    assert_eq!(json(&metadata, &set), r#"{"x":{"a":{"b":7}}}"#);
}

#[test]
fn removing_the_last_field_leaves_an_empty_object() {
    let names = unsorted_names();
    let known = Metadata::parse(&names).unwrap();
    let value = object(1, &object(0, &[0x0c, 7]));
    let removed = remove(&known, &value, &fields(&["a", "b"])).unwrap().unwrap();
    assert_eq!(json(&names, &removed), r#"{"a":{}}"#);
    assert_eq!(remove(&known, &value, &fields(&["a", "b", "c"])).unwrap(), None);
    assert_eq!(remove(&known, &value, &fields(&["b"])).unwrap(), None);
}

#[test]
fn hostile_bytes_are_an_error_that_names_the_row() {
    let group = StructArray::try_new(
        _native::value::cast::variant_fields(),
        vec![
            Arc::new(BinaryArray::from_vec(vec![EMPTY, EMPTY])),
            Arc::new(BinaryArray::from_vec(vec![&[0x00], &[0x02, 0x01, 0x00]])),
        ],
        None,
    )
    .unwrap();
    let plain = unshred(&group, OnConflict::Error).unwrap();
    let error = set_rows(&plain, &fields(&["a"]), &Int64Array::from(vec![1, 2])).unwrap_err();
    assert_eq!((error.row(), error.kind()), (Some(1), ErrorKind::Variant), "{error}");
    let first = set_rows(&plain.slice(0, 1), &fields(&["a"]), &Int64Array::from(vec![None])).unwrap();
    assert_eq!(
        json(first.column(0).as_binary::<i32>().value(0), first.column(1).as_binary::<i32>().value(0)),
        r#"{"a":null}"#
    );
}

/// The metadata and the value of a Variant.
type Bytes = (Vec<u8>, Vec<u8>);

fn parsed(text: &str) -> Bytes {
    crate::json_parse::parse(text, ParseOptions::default()).unwrap()
}

/// A path: a number is an index.
fn path(steps: &[&str]) -> Vec<Step> {
    let step = |step: &&str| step.parse().map_or_else(|_| Step::Field(step.to_string()), Step::Index);
    steps.iter().map(step).collect()
}

fn set_number(text: &str, steps: &[&str], number: i64) -> Result<String, Error> {
    let (names, value) = parsed(text);
    let (path, new) = (path(steps), NewValue::Scalar(Value::Int64(number)));
    let (metadata, value) = set(Metadata::parse(&names).unwrap(), Some(&value), &path, &new)?;
    Ok(json(&metadata, &value))
}

#[test]
fn a_path_goes_through_arrays_and_creates_missing_objects() {
    for (text, steps, expected) in [
        ("1", &[][..], "7"),
        ("null", &["a", "b"], r#"{"a":{"b":7}}"#),
        (r#"{"b":null}"#, &["b", "c"], r#"{"b":{"c":7}}"#),
        (r#"{"a":[1,{"b":2}],"c":3}"#, &["a", "1", "b"], r#"{"a":[1,{"b":7}],"c":3}"#),
        (r#"{"a":[1,{"b":2}]}"#, &["a", "0"], r#"{"a":[7,{"b":2}]}"#),
        ("[null]", &["0", "x"], r#"[{"x":7}]"#),
    ] {
        assert_eq!(set_number(text, steps, 7).unwrap(), expected, "{text} {steps:?}");
    }
}

#[test]
fn a_path_through_other_values_is_rejected() {
    for (text, steps, at, expected) in [
        (
            "[1,2]",
            &["2"][..],
            "$[2]",
            "cannot set the value because the array at $ has 2 elements, and index 2 is out of range",
        ),
        (
            r#"{"a":"x"}"#,
            &["a", "b"],
            "$['a']['b']",
            "cannot set the value: expected an object at $['a'], got string",
        ),
        (
            r#"{"a":"x"}"#,
            &["a", "0"],
            "$['a'][0]",
            "cannot set the value: expected an array at $['a'], got string",
        ),
        (
            r#"{"a":1}"#,
            &["b", "0"],
            "$['b'][0]",
            "cannot set the value: expected an array at $['b'], got missing",
        ),
        ("[1]", &["a"], "$['a']", "cannot set the value: expected an object at $, got array"),
    ] {
        let error = set_number(text, steps, 7).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Path, Some(at)), "{error}");
        assert!(error.message().starts_with(expected), "{error}");
    }
}

#[test]
fn a_path_that_is_too_deep_is_rejected() {
    let check = || set_number("null", &vec!["a"; MAX_DEPTH + 1], 7).unwrap_err();
    let error = std::thread::Builder::new().stack_size(16 << 20).spawn(check).unwrap().join().unwrap();
    assert_eq!(error.message(), "the Variant nests deeper than 1000 levels");
}

#[test]
fn exact_numbers_take_their_narrowest_type() {
    let known = Metadata::parse(EMPTY).unwrap();
    for (number, expected) in [
        (Value::Int64(1), &[0x0C, 1][..]),
        (Value::Int32(300), &[0x10, 0x2C, 0x01]),
        (Value::Int16(-1), &[0x0C, 0xFF]),
        (Value::Int8(5), &[0x0C, 5]),
        (Value::Double(1.0), &[0x1C, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F]),
    ] {
        assert_eq!(set(known, None, &[], &NewValue::Scalar(number)).unwrap().1, expected);
    }
}

#[test]
fn values_are_removed_at_their_path_only() {
    for (text, steps, expected) in [
        ("[1,2,3]", &["1"][..], Some("[1,3]")),
        ("[1]", &["0"], Some("[]")),
        (r#"[{"a":1,"b":2},3]"#, &["0", "a"], Some(r#"[{"b":2},3]"#)),
        (r#"{"a":[1,{"b":2}],"c":3}"#, &["a", "1", "b"], Some(r#"{"a":[1,{}],"c":3}"#)),
        (r#"{"a":null,"b":1}"#, &["a"], Some(r#"{"b":1}"#)),
        ("[1]", &["1"], None),
        (r#"{"a":[1]}"#, &["a", "5"], None),
        (r#"{"a":[1]}"#, &["a", "0", "x"], None),
        (r#"{"a":1}"#, &["a", "0"], None),
        (r#"{"a":1}"#, &["0"], None),
        (r#"{"a":1}"#, &[], None),
    ] {
        let (names, value) = parsed(text);
        let removed = remove(&Metadata::parse(&names).unwrap(), &value, &path(steps)).unwrap();
        let removed = removed.map(|removed| json(&names, &removed));
        assert_eq!(removed.as_deref(), expected, "{text} {steps:?}");
    }
}

fn column(rows: &[Option<&str>]) -> StructArray {
    let rows: Vec<Option<Bytes>> = rows.iter().map(|row| row.map(parsed)).collect();
    let of = |part: fn(&Bytes) -> &[u8]| {
        Arc::new(rows.iter().map(|row| row.as_ref().map(part)).collect::<BinaryArray>())
    };
    let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
    let members: Vec<ArrayRef> = vec![of(|row| &row.0), of(|row| &row.1)];
    let group = StructArray::try_new(_native::value::cast::variant_fields(), members, Some(nulls)).unwrap();
    unshred(&group, OnConflict::Error).unwrap()
}

fn texts(column: &StructArray) -> Vec<Option<String>> {
    let bytes = |member: usize, row| column.column(member).as_binary::<i32>().value(row);
    let text = |row| column.is_valid(row).then(|| json(bytes(0, row), bytes(1, row)));
    (0..column.len()).map(text).collect()
}

fn some(texts: &[Option<&str>]) -> Vec<Option<String>> {
    texts.iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn rows_without_the_path_and_sql_null_stay() {
    let rows = column(&[Some(r#"{"a":1,"b":2}"#), None, Some("[1]"), Some(r#"{"a":{"a":3}}"#)]);
    let removed = remove_rows(&rows, &path(&["a"])).unwrap();
    assert_eq!(texts(&removed), some(&[Some(r#"{"b":2}"#), None, Some("[1]"), Some("{}")]));
}

#[test]
fn columns_of_variants_and_of_nulls_are_set_row_by_row() {
    let rows = column(&[Some(r#"{"a":1}"#), None, Some("null")]);
    let new = column(&[Some(r#"{"c":[{"a":2}]}"#), Some("3"), None]);
    let set = set_rows(&rows, &path(&["b"]), &new).unwrap();
    let expected = [Some(r#"{"a":1,"b":{"c":[{"a":2}]}}"#), Some(r#"{"b":3}"#), Some(r#"{"b":null}"#)];
    assert_eq!(texts(&set), some(&expected));
    let set = set_rows(&rows, &path(&["a"]), &NullArray::new(3)).unwrap();
    assert_eq!(texts(&set), some(&[Some(r#"{"a":null}"#); 3]));
}
