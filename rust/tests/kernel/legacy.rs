//! The legacy layout of Spark: its schema, its examples and hostile bytes.

use std::sync::Arc;

use _native::error::ErrorKind;
use _native::legacy::layout::{Group, recognize, restored};
use _native::legacy::{shred, unshred};
use _native::shred::{LeafType, ShreddingSchema};
use _native::value::{Metadata, split_concatenated, validate};
use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};
use proptest::prelude::*;

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn untyped() -> Field {
    field("untyped_value", DataType::Binary)
}

fn leaf(name: &str, data_type: DataType) -> Field {
    field(name, DataType::Struct(Fields::from(vec![untyped(), field("typed_value", data_type)])))
}

fn group(columns: Vec<(Field, ArrayRef)>, valid: Option<Vec<bool>>) -> StructArray {
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    StructArray::new(fields.into(), columns, valid.map(NullBuffer::from))
}

fn binary(values: &[Option<&[u8]>]) -> ArrayRef {
    Arc::new(BinaryArray::from(values.to_vec()))
}

/// Return a column with `untyped_value` and an `object` with one field `a` of `untyped_value` and an int64.
fn with_object(
    top: &[Option<&[u8]>],
    inner: &[Option<&[u8]>],
    typed: &[Option<i64>],
    object: Vec<bool>,
) -> StructArray {
    let a = group(
        vec![
            (untyped(), binary(inner)),
            (field("typed_value", DataType::Int64), Arc::new(Int64Array::from(typed.to_vec()))),
        ],
        None,
    );
    let a_field = field("a", a.data_type().clone());
    let object = group(vec![(a_field, Arc::new(a) as ArrayRef)], Some(object));
    let object_field = field("object", object.data_type().clone());
    group(vec![(untyped(), binary(top)), (object_field, Arc::new(object))], None)
}

fn row(variants: &StructArray, index: usize) -> (&[u8], &[u8]) {
    (variants.column(0).as_binary::<i32>().value(index), variants.column(1).as_binary::<i32>().value(index))
}

#[test]
fn members_are_found_by_name_and_fields_sorted() {
    let object = Fields::from(vec![leaf("b", DataType::Utf8), leaf("_a", DataType::Int64)]);
    let fields = Fields::from(vec![
        field("_hint", DataType::Utf8),
        field("object", DataType::Struct(object)),
        untyped(),
    ]);
    let layout = Group::parse(&fields).unwrap();
    assert_eq!(layout.untyped_value, Some(2));
    let expected = ShreddingSchema::Object(vec![
        ("_a".into(), ShreddingSchema::Leaf(LeafType::Int64)),
        ("b".into(), ShreddingSchema::Leaf(LeafType::String)),
    ]);
    assert_eq!(layout.schema(), expected);
}

#[test]
fn duplicate_members_or_fields_are_rejected() {
    let twice = Fields::from(vec![untyped(), untyped()]);
    assert!(
        matches!(Group::parse(&twice), Err(e) if e.kind() == ErrorKind::Shredding && e.message().contains("two columns"))
    );
    let object = Fields::from(vec![leaf("a", DataType::Int64), leaf("a", DataType::Int64)]);
    let fields = Fields::from(vec![field("object", DataType::Struct(object))]);
    assert!(
        matches!(Group::parse(&fields), Err(e) if e.kind() == ErrorKind::Shredding && e.message().contains("two shredded fields"))
    );
}

#[test]
fn a_legacy_struct_is_recognized_and_a_malformed_one_rejected() {
    let ordinary = field("s", DataType::Struct(Fields::from(vec![field("object", DataType::Utf8)])));
    assert_eq!(recognize(&ordinary), Ok(None));
    assert_eq!(restored(&ordinary), Ok(ordinary));
    assert!(recognize(&leaf("v", DataType::Int64)).unwrap().is_some());
    let mixed = Fields::from(vec![untyped(), field("metadata", DataType::Binary)]);
    assert!(
        matches!(recognize(&field("v", DataType::Struct(mixed))), Err(e) if e.kind() == ErrorKind::Shredding)
    );
}

#[test]
fn a_legacy_group_inside_a_list_is_restored() {
    let list = field("l", DataType::List(Arc::new(leaf("element", DataType::Int64))));
    let DataType::List(element) = restored(&list).unwrap().data_type().clone() else { panic!() };
    let DataType::Struct(fields) = element.data_type() else { panic!() };
    assert_eq!(fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["metadata", "value"]);
}

#[test]
fn the_fourth_row_of_the_example_is_unshredded_to_exact_bytes() {
    // {"c": 456} in addition to a = 123.
    let residual = b"\x01\x01\x00\x01c\x02\x01\x00\x00\x03\x10\xc8\x01";
    let column = with_object(&[Some(residual)], &[None], &[Some(123)], vec![true]);
    let variants = unshred(&column, false).unwrap();
    let value = b"\x02\x02\x00\x01\x00\x09\x0c\x18\x7b\x00\x00\x00\x00\x00\x00\x00\x10\xc8\x01";
    assert_eq!(row(&variants, 0), (&b"\x11\x02\x00\x01\x02ac"[..], &value[..]));
    let schema = ShreddingSchema::Object(vec![("a".into(), ShreddingSchema::Leaf(LeafType::Int64))]);
    let written = shred(&variants, &schema).unwrap();
    let sorted = b"\x11\x01\x00\x01c\x02\x01\x00\x00\x03\x10\xc8\x01";
    assert_eq!(written.column(0).as_binary::<i32>().value(0), sorted);
    assert_eq!(
        written
            .column(1)
            .as_struct()
            .column(0)
            .as_struct()
            .column(1)
            .as_primitive::<types::Int64Type>()
            .value(0),
        123
    );
}

#[test]
fn null_slots_of_a_column_are_not_read() {
    // The null slots of Arrow arrays may contain any bytes.
    let column = with_object(&[None, None], &[Some(b"\x02"), None], &[Some(1), Some(2)], vec![false, true]);
    let variants = unshred(&column, false).unwrap();
    assert_eq!(row(&variants, 0), (&b"\x01\x00\x00"[..], &b"\x00"[..]));
    assert_eq!(row(&variants, 1).0, b"\x11\x01\x00\x01a");
}

#[test]
fn a_sliced_column_is_read_from_its_first_row() {
    let rows: [Option<&[u8]>; 3] = [Some(b"\x02"), Some(b"\x01\x00\x00\x0c\x07"), None];
    let column = with_object(&rows, &[None; 3], &[None; 3], vec![false, false, true]).slice(1, 2);
    let variants = unshred(&column, false).unwrap();
    assert_eq!(row(&variants, 0).1, b"\x0c\x07");
    assert_eq!(row(&variants, 1).1, b"\x02\x00\x00");
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_a_variant(top in bytes(), inner in bytes(), object: bool, compat: bool) {
        let column = with_object(&[Some(&top)], &[Some(&inner)], &[None], vec![object]);
        match unshred(&column, compat) {
            Err(error) => prop_assert_eq!(error.row(), Some(0)),
            Ok(variants) => {
                let (metadata, value) = row(&variants, 0);
                prop_assert_eq!(validate(&Metadata::parse(metadata).unwrap(), value), Ok(()));
                let written = shred(&variants, &ShreddingSchema::Untyped).unwrap();
                let whole = written.column(0).as_binary::<i32>().value(0);
                let (metadata, value) = split_concatenated(whole).unwrap_or((&b"\x01\x00\x00"[..], &b"\x00"[..]));
                prop_assert_eq!(validate(&Metadata::parse(metadata).unwrap(), value), Ok(()));
            }
        }
    }
}

/// Bytes that usually begin like a Variant.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let metadata = prop_oneof![
        Just(vec![0x01, 0, 0]),
        Just(vec![0x01, 2, 0, 1, 2, b'a', b'b']),
        Just(vec![0x01, 2, 0, 1, 2, b'a', b'a']),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let value = prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..24);
    (metadata, value).prop_map(|(metadata, value)| [metadata, value].concat())
}
