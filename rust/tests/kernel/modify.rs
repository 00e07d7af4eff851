//! Setting and removing paths: the new value, and the bytes that stay unchanged.

use _native::error::ErrorKind;
use _native::shred::OnConflict;
use _native::shred::unshred::unshred;
use _native::value::Zone;
use _native::value::json::{Keys, value as write_json};
use _native::value::metadata::EMPTY;
use _native::value::modify::{NewValue, remove, set, set_rows};
use _native::value::path::Step;
use _native::value::{Metadata, Value, encode, metadata, validate};
use arrow_array::cast::AsArray;
use arrow_array::{Int64Array, StructArray};

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
            std::sync::Arc::new(arrow_array::BinaryArray::from_vec(vec![EMPTY, EMPTY])),
            std::sync::Arc::new(arrow_array::BinaryArray::from_vec(vec![&[0x00], &[0x02, 0x01, 0x00]])),
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
