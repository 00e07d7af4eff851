//! Bounds of shredded leaves and of ordinary columns, and the Variants that store them (PROTOCOL.md,
//! "Statistics for Variant Columns"). Rule ids are those of protocol_fixtures/README.md.

use std::sync::Arc;

use _native::bounds::{
    BoundsLimit, ColumnBounds, LeafBounds, PathReport, Scalar, Step, VariantBounds, encode_bounds,
    normalize_path,
};
use _native::data_file::write::{DataFileWriter, Encoding, OnInvalid};
use _native::json::parse::ParseOptions;
use _native::parquet::WriteOptions;
use _native::shred::{LeafType, ShreddingSchema};
use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use proptest::prelude::*;

/// A group of a shredded column; `value` is Variant null in the rows where `in_value` is true.
fn group(in_value: &[bool], typed_value: ArrayRef, valid: Option<Vec<bool>>) -> StructArray {
    let value: BinaryArray = in_value.iter().map(|&is_set| is_set.then_some(&[0u8][..])).collect();
    let fields = Fields::from(vec![
        Field::new("value", DataType::Binary, true),
        Field::new("typed_value", typed_value.data_type().clone(), true),
    ]);
    StructArray::new(fields, vec![Arc::new(value), typed_value], valid.map(NullBuffer::from))
}

fn object(fields: Vec<(&str, StructArray)>, valid: Option<Vec<bool>>) -> ArrayRef {
    let types: Fields =
        fields.iter().map(|(name, field)| Field::new(*name, field.data_type().clone(), false)).collect();
    let columns = fields.into_iter().map(|(_, field)| Arc::new(field) as ArrayRef).collect();
    Arc::new(StructArray::new(types, columns, valid.map(NullBuffer::from)))
}

/// Return the report for one leaf at the root, with all values in `typed_value`.
fn report(leaf_type: LeafType, typed_value: impl Array + 'static) -> PathReport {
    let in_value = vec![false; typed_value.len()];
    let mut bounds = VariantBounds::new(&ShreddingSchema::Leaf(leaf_type));
    bounds.update(&group(&in_value, Arc::new(typed_value), None)).unwrap();
    bounds.paths().remove(0)
}

fn bounds_of(leaf_type: LeafType, typed_value: impl Array + 'static) -> Option<(Scalar, Scalar)> {
    report(leaf_type, typed_value).bounds
}

fn object_schema(fields: &[(&str, ShreddingSchema)]) -> ShreddingSchema {
    ShreddingSchema::Object(fields.iter().map(|(name, schema)| (name.to_string(), schema.clone())).collect())
}

const INT64: ShreddingSchema = ShreddingSchema::Leaf(LeafType::Int64);

fn field(name: &str) -> Step {
    Step::Field(name.to_owned())
}

#[test]
fn integer_bounds_ignore_nulls() {
    let array = Int64Array::new(vec![5, -99, 3, 99].into(), Some(vec![true, false, true, false].into()));
    let report = report(LeafType::Int64, array);
    assert_eq!(report.bounds, Some((Scalar::Integer(3), Scalar::Integer(5))));
    assert_eq!((report.typed, report.values), (2, 0));
    assert!(report.path.is_empty() && report.qualifies());
}

#[test]
fn every_type_of_the_default_set_has_bounds() {
    use LeafType::*;
    let integers = Some((Scalar::Integer(-1), Scalar::Integer(2)));
    assert_eq!(bounds_of(Int8, Int8Array::from(vec![2, -1])), integers);
    assert_eq!(bounds_of(Int16, Int16Array::from(vec![2, -1])), integers);
    assert_eq!(bounds_of(Int32, Int32Array::from(vec![2, -1])), integers);
    assert_eq!(bounds_of(Date, Date32Array::from(vec![2, -1])), integers);
    let micros = || TimestampMicrosecondArray::from(vec![2, -1]);
    assert_eq!(bounds_of(Timestamp, micros().with_timezone("UTC")), integers);
    assert_eq!(bounds_of(TimestampNtz, micros()), integers);
    let decimals = Decimal128Array::from(vec![250, -10]).with_precision_and_scale(18, 2).unwrap();
    assert_eq!(
        bounds_of(Decimal { precision: 18, scale: 2 }, decimals),
        Some((Scalar::Decimal(-10), Scalar::Decimal(250)))
    );
    assert_eq!(
        bounds_of(Float, Float32Array::from(vec![1.5, -2.5, f32::INFINITY])),
        Some((Scalar::Float(-2.5), Scalar::Float(f32::INFINITY)))
    );
    assert_eq!(
        bounds_of(Double, Float64Array::from(vec![1.5, -2.5, f64::NEG_INFINITY])),
        Some((Scalar::Double(f64::NEG_INFINITY), Scalar::Double(1.5)))
    );
}

#[test]
fn other_types_are_counted_without_bounds() {
    use LeafType::*;
    let boolean = report(Boolean, BooleanArray::from(vec![Some(true), None]));
    assert_eq!((boolean.typed, boolean.bounds), (1, None));
    assert_eq!(bounds_of(Binary, BinaryArray::from(vec![&b"x"[..]])), None);
    assert_eq!(bounds_of(Time, Time64MicrosecondArray::from(vec![1])), None);
    assert_eq!(bounds_of(TimestampNanos, TimestampNanosecondArray::from(vec![1]).with_timezone("UTC")), None);
    assert_eq!(bounds_of(TimestampNtzNanos, TimestampNanosecondArray::from(vec![1])), None);
    let uuids = FixedSizeBinaryArray::try_from_iter([[1u8; 16]].iter()).unwrap();
    assert_eq!(bounds_of(Uuid, uuids), None);
}

/// Rule ST6.
#[test]
fn a_nan_of_either_sign_removes_the_bounds() {
    for nan in [f64::NAN, -f64::NAN] {
        assert_eq!(bounds_of(LeafType::Double, Float64Array::from(vec![1.0, nan])), None);
        assert_eq!(bounds_of(LeafType::Float, Float32Array::from(vec![nan as f32, 1.0])), None);
    }
}

#[test]
fn a_nan_in_a_null_slot_is_ignored() {
    let array = Float64Array::new(vec![1.0, f64::NAN].into(), Some(vec![true, false].into()));
    assert_eq!(bounds_of(LeafType::Double, array), Some((Scalar::Double(1.0), Scalar::Double(1.0))));
}

/// Rule ST7.
#[test]
fn a_zero_minimum_is_negative_and_a_zero_maximum_positive() {
    for zero in [0.0, -0.0] {
        let Some((Scalar::Double(min), Scalar::Double(max))) =
            bounds_of(LeafType::Double, Float64Array::from(vec![zero]))
        else {
            panic!("expected bounds of doubles");
        };
        assert_eq!((min.to_bits(), max.to_bits()), ((-0.0f64).to_bits(), 0.0f64.to_bits()));
        let Some((Scalar::Float(min), Scalar::Float(max))) =
            bounds_of(LeafType::Float, Float32Array::from(vec![zero as f32]))
        else {
            panic!("expected bounds of floats");
        };
        assert_eq!((min.to_bits(), max.to_bits()), ((-0.0f32).to_bits(), 0.0f32.to_bits()));
    }
}

/// Rules ST1 and ST2: a value of another type or a Variant null disqualifies its path.
#[test]
fn a_value_outside_of_typed_value_disqualifies_the_path() {
    let typed = || Arc::new(Int64Array::from(vec![Some(1), None])) as ArrayRef;
    let mut bounds = VariantBounds::new(&INT64);
    bounds.update(&group(&[false, true], typed(), None)).unwrap();
    let report = bounds.paths().remove(0);
    assert_eq!((report.typed, report.values), (1, 1));
    assert_eq!(report.bounds, Some((Scalar::Integer(1), Scalar::Integer(1))));
    assert!(!report.qualifies());
}

/// Rules ST2 and ST14: an SQL NULL disqualifies no path, whatever its slots contain.
#[test]
fn sql_nulls_are_counted_and_their_slots_ignored() {
    let typed = Arc::new(Int64Array::from(vec![1, 999])) as ArrayRef;
    let mut bounds = VariantBounds::new(&INT64);
    bounds.update(&group(&[false, true], typed, Some(vec![true, false]))).unwrap();
    assert_eq!(bounds.sql_nulls(), 1);
    let report = bounds.paths().remove(0);
    assert_eq!((report.typed, report.values), (1, 0));
    assert_eq!(report.bounds, Some((Scalar::Integer(1), Scalar::Integer(1))));
}

/// Rule ST3.
#[test]
fn a_path_without_values_does_not_qualify() {
    let report = report(LeafType::Int64, Int64Array::from(vec![None, None]));
    assert_eq!((report.typed, &report.bounds), (0, &None));
    assert!(!report.qualifies());
    assert_eq!(encode_bounds(&[report], most(32)), None);
}

#[test]
fn fields_of_a_row_that_is_not_an_object_are_ignored() {
    let a = group(&[false, false, true], Arc::new(Int64Array::from(vec![Some(7), None, Some(999)])), None);
    let root = group(&[false, false, true], object(vec![("a", a)], Some(vec![true, true, false])), None);
    let mut bounds = VariantBounds::new(&object_schema(&[("a", INT64)]));
    bounds.update(&root).unwrap();
    let expected = PathReport {
        path: vec![field("a")],
        leaf_type: LeafType::Int64,
        typed: 1,
        values: 0,
        bounds: Some((Scalar::Integer(7), Scalar::Integer(7))),
    };
    assert_eq!(bounds.paths(), [expected]);
}

/// Rule K4.
#[test]
fn paths_inside_a_list_are_counted_without_bounds() {
    let element = group(&[false, false, true, false], Arc::new(Int64Array::from(vec![1, 2, 3, 4])), None);
    let element_field = Arc::new(Field::new("element", element.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths([1, 2, 1]);
    let valid = NullBuffer::from(vec![true, false, true]);
    let list = ListArray::new(element_field, offsets, Arc::new(element), Some(valid));
    let mut bounds = VariantBounds::new(&ShreddingSchema::List(Box::new(INT64)));
    bounds.update(&group(&[false; 3], Arc::new(list), None)).unwrap();
    let report = bounds.paths().remove(0);
    assert_eq!(report.path, [Step::Element]);
    assert_eq!((report.typed, report.values, &report.bounds), (2, 0, &None));
    assert!(!report.qualifies());
}

#[test]
fn a_slice_has_the_bounds_of_its_own_rows() {
    let a = group(&[false; 4], Arc::new(Int64Array::from(vec![-9, 1, 2, 9])), None);
    let root = group(&[false; 4], object(vec![("a", a)], None), None).slice(1, 2);
    let mut bounds = VariantBounds::new(&object_schema(&[("a", INT64)]));
    bounds.update(&root).unwrap();
    assert_eq!(bounds.paths()[0].bounds, Some((Scalar::Integer(1), Scalar::Integer(2))));
    assert_eq!(bounds.paths()[0].typed, 2);
}

#[test]
fn an_array_of_another_type_is_an_error() {
    let mut bounds = VariantBounds::new(&INT64);
    let wrong = group(&[false], Arc::new(StringArray::from(vec!["x"])), None);
    assert_eq!(
        bounds.update(&wrong).unwrap_err().to_string(),
        "expected an array of Int64 for its bounds, got Utf8"
    );
    let mut bounds = VariantBounds::new(&object_schema(&[("a", INT64)]));
    assert!(
        bounds.update(&wrong).unwrap_err().to_string().contains("not the layout of the shredding schema")
    );
}

#[test]
fn an_unshredded_column_has_only_a_count_of_nulls() {
    let value: BinaryArray = [Some(&[0u8][..]), None].into_iter().collect();
    let fields = Fields::from(vec![Field::new("value", DataType::Binary, true)]);
    let group = StructArray::new(fields, vec![Arc::new(value)], Some(vec![true, false].into()));
    let mut bounds = VariantBounds::new(&ShreddingSchema::Untyped);
    bounds.update(&group).unwrap();
    assert_eq!((bounds.sql_nulls(), bounds.paths()), (1, vec![]));
}

fn doubles_and_texts(doubles: &[Option<f64>], texts: &[Option<String>]) -> StructArray {
    let in_value = vec![false; doubles.len()];
    let doubles = group(&in_value, Arc::new(Float64Array::from(doubles.to_vec())), None);
    let texts = group(&in_value, Arc::new(StringArray::from(texts.to_vec())), None);
    group(&in_value, object(vec![("d", doubles), ("s", texts)], None), None)
}

proptest! {
    #[test]
    fn bounds_match_the_values(
        rows in prop::collection::vec(
            (prop::option::of(-9i64..9), prop::option::of("[\0a-cé]{0,12}")), 1..200),
        cut in 0usize..200,
    ) {
        let doubles: Vec<_> = rows.iter().map(|(double, _)| double.map(|v| v as f64 * 0.5)).collect();
        let texts: Vec<_> = rows.iter().map(|(_, text)| text.clone()).collect();
        let cut = cut.min(rows.len());
        let schema = object_schema(&[
            ("d", ShreddingSchema::Leaf(LeafType::Double)),
            ("s", ShreddingSchema::Leaf(LeafType::String)),
        ]);
        let mut batches = VariantBounds::new(&schema);
        batches.update(&doubles_and_texts(&doubles[..cut], &texts[..cut])).unwrap();
        let mut merged = batches.clone();
        batches.update(&doubles_and_texts(&doubles[cut..], &texts[cut..])).unwrap();
        let mut rest = VariantBounds::new(&schema);
        rest.update(&doubles_and_texts(&doubles[cut..], &texts[cut..])).unwrap();
        merged.merge(&rest);
        prop_assert_eq!(&batches, &merged);

        let reports = batches.paths();
        let least = doubles.iter().flatten().copied().reduce(f64::min);
        let greatest = doubles.iter().flatten().copied().reduce(f64::max);
        let doubles = least.zip(greatest).map(|(min, max)| (Scalar::Double(min), Scalar::Double(max)));
        prop_assert_eq!(&reports[0].bounds, &doubles);
        let (least, greatest) = (texts.iter().flatten().min(), texts.iter().flatten().max());
        let texts = least.zip(greatest).map(|(min, max)| (Scalar::String(min.clone()), Scalar::String(max.clone())));
        prop_assert_eq!(&reports[1].bounds, &texts);
    }
}

/// Rules K1 and K2.
#[test]
fn normalized_paths_are_escaped_as_in_rfc_9535() {
    assert_eq!(normalize_path([]), "$");
    assert_eq!(normalize_path(["a", "b"]), "$['a']['b']");
    assert_eq!(normalize_path([""]), "$['']");
    assert_eq!(normalize_path(["'\\\u{8}\u{c}\n\r\t"]), r"$['\'\\\b\f\n\r\t']");
    assert_eq!(normalize_path(["\u{b}\0\u{1f}"]), r"$['\u000b\u0000\u001f']");
    assert_eq!(normalize_path(["\"/\u{7f}\u{2028}é😀].["]), "$['\"/\u{7f}\u{2028}é😀].[']");
}

fn leaf(path: &[&str], leaf_type: LeafType, typed: u64, min: Scalar, max: Scalar) -> PathReport {
    let path = path.iter().map(|name| field(name)).collect();
    PathReport { path, leaf_type, typed, values: 0, bounds: Some((min, max)) }
}

fn int(path: &[&str], typed: u64, min: i64) -> PathReport {
    leaf(path, LeafType::Int64, typed, Scalar::Integer(min), Scalar::Integer(min))
}

/// Decode the Variant in a statistics string, zero-padded to a multiple of four bytes.
fn z85(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte).unwrap() as u32;
    let block = |block: &[u8]| block.iter().fold(0, |number, byte| number * 85 + digit(byte)).to_be_bytes();
    text.as_bytes().chunks(5).flat_map(block).collect()
}

fn pad(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The strings are from the logs of Delta Lake's golden tables. With several paths, Spark writes the names in the
/// order of a hash map, which cannot be reproduced.
#[test]
fn bounds_of_one_path_equal_the_bytes_that_spark_writes() {
    let least = |paths: &[PathReport]| pad(encode_bounds(paths, most(32)).unwrap().0);
    assert_eq!(least(&[int(&[], 1, 0)]), z85("0rAf3bMW#D00%Fx0000000000"));
    assert_eq!(least(&[int(&["key"], 1, 200)]), z85("0rAfabWhTiwQbUe0S-o32]H.-0000000000"));
}

#[test]
fn keys_are_sorted_and_values_follow_their_order() {
    let (least, greatest) = encode_bounds(&[int(&["b"], 1, 2), int(&["a"], 1, 1)], most(32)).unwrap();
    let expected: Vec<u8> = [
        &[0x01, 2, 0, 6, 12][..],
        b"$['a']$['b']",
        &[0x02, 2, 0, 1, 0, 9, 18],
        &[0x18, 1, 0, 0, 0, 0, 0, 0, 0],
        &[0x18, 2, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    assert_eq!(least, expected);
    assert_eq!(greatest, expected);
}

/// Return the value of the only path of an encoded object.
fn only_value(object: &[u8]) -> &[u8] {
    // Metadata with the name `$`, then an object with one field.
    assert_eq!(object[..5], [0x01, 1, 0, 1, b'$']);
    assert_eq!(object[5..9], [0x02, 1, 0, 0]);
    &object[10..]
}

fn encode_one(leaf_type: LeafType, min: Scalar, max: Scalar) -> (Vec<u8>, Vec<u8>) {
    let (least, greatest) = encode_bounds(&[leaf(&[], leaf_type, 1, min, max)], most(32)).unwrap();
    (only_value(&least).to_vec(), only_value(&greatest).to_vec())
}

/// Rule ST8.
#[test]
fn bounds_have_the_type_of_their_column() {
    use LeafType::*;
    let one = |leaf_type, scalar: Scalar| encode_one(leaf_type, scalar.clone(), scalar).0;
    assert_eq!(one(Int8, Scalar::Integer(-1)), [3 << 2, 0xFF]);
    assert_eq!(one(Int16, Scalar::Integer(1)), [4 << 2, 1, 0]);
    assert_eq!(one(Int32, Scalar::Integer(1)), [5 << 2, 1, 0, 0, 0]);
    assert_eq!(one(Int64, Scalar::Integer(1)), [6 << 2, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(one(Double, Scalar::Double(1.0)), [7 << 2, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F]);
    let decimal = |precision, scale| one(Decimal { precision, scale }, Scalar::Decimal(-2));
    assert_eq!(decimal(9, 2), [8 << 2, 2, 0xFE, 0xFF, 0xFF, 0xFF]);
    assert_eq!(decimal(18, 0), [&[9 << 2, 0, 0xFE][..], &[0xFF; 7]].concat());
    assert_eq!(decimal(19, 4), [&[10 << 2, 4, 0xFE][..], &[0xFF; 15]].concat());
    assert_eq!(one(Date, Scalar::Integer(1)), [11 << 2, 1, 0, 0, 0]);
    assert_eq!(one(Timestamp, Scalar::Integer(1)), [12 << 2, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(one(TimestampNtz, Scalar::Integer(1)), [13 << 2, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(one(Float, Scalar::Float(1.0)), [14 << 2, 0, 0, 0x80, 0x3F]);
    assert_eq!(one(String, Scalar::String("ab".to_owned())), [2 << 2 | 1, b'a', b'b']);
}

fn string_bounds(min: &str, max: &str) -> (Vec<u8>, Vec<u8>) {
    encode_one(LeafType::String, Scalar::String(min.to_owned()), Scalar::String(max.to_owned()))
}

fn short_string(text: &str) -> Vec<u8> {
    [&[(text.len() as u8) << 2 | 1], text.as_bytes()].concat()
}

/// Rules TR1 and TR2.
#[test]
fn strings_of_more_than_32_characters_are_truncated() {
    let (x, y) = ("x".repeat(32), "y".repeat(32));
    assert_eq!(string_bounds(&x, &y), (short_string(&x), short_string(&y)));
    let (long_x, long_y) = (format!("{x}1"), format!("{y}1"));
    assert_eq!(string_bounds(&long_x, &long_y), (short_string(&x), short_string(&format!("{y}\u{10FFFF}"))));
}

#[test]
fn strings_are_truncated_between_characters() {
    let long = "é".repeat(33);
    let (least, greatest) = string_bounds(&long, &long);
    let cut = "é".repeat(32);
    assert_eq!(least, [&[16 << 2, 64, 0, 0, 0], cut.as_bytes()].concat());
    assert_eq!(greatest, [&[16 << 2, 68, 0, 0, 0], cut.as_bytes(), "\u{10FFFF}".as_bytes()].concat());
}

/// Rule TR3: the only case of a minimum without a maximum.
#[test]
fn a_maximum_string_that_cannot_be_truncated_is_omitted() {
    let last = "\u{10FFFF}".repeat(34);
    let text = |text: &str| Scalar::String(text.to_owned());
    let paths = [leaf(&["a"], LeafType::String, 1, text("a"), text(&last)), int(&["b"], 1, 1)];
    let (least, greatest) = encode_bounds(&paths, most(32)).unwrap();
    assert_eq!(least[..5], [0x01, 2, 0, 6, 12]);
    assert_eq!(greatest, encode_bounds(&[int(&["b"], 1, 1)], most(32)).unwrap().1);
}

fn most(paths: usize) -> BoundsLimit {
    BoundsLimit { paths, bytes: usize::MAX }
}

#[test]
fn the_bytes_of_the_bounds_are_limited_and_a_long_path_is_omitted_before_short_ones() {
    let long = "x".repeat(1000);
    let paths = [int(&["a"], 9, 0), int(&[&long], 8, 0), int(&["b"], 7, 0), int(&["c"], 6, 0)];
    for bytes in 0..400 {
        let limit = BoundsLimit { paths: 32, bytes };
        let size = encode_bounds(&paths, limit).map_or(0, |(least, greatest)| least.len() + greatest.len());
        assert!(size <= bytes, "{size} of {bytes}");
    }
    let short = [paths[0].clone(), paths[2].clone()];
    let two = BoundsLimit { paths: 2, bytes: 400 };
    assert_eq!(encode_bounds(&paths, two), encode_bounds(&short, most(32)));
}

/// Rule ST9.
#[test]
fn the_paths_with_most_values_are_kept_in_key_order() {
    let paths = [int(&["a"], 1, 0), int(&["b"], 2, 0), int(&["c"], 1, 0), int(&["d"], 3, 0)];
    let kept = |count| encode_bounds(&paths, most(count)).map(|(least, _)| least);
    let only = |indexes: &[usize]| {
        let paths: Vec<_> = indexes.iter().map(|&index| paths[index].clone()).collect();
        encode_bounds(&paths, most(32)).map(|(least, _)| least)
    };
    assert_eq!(kept(2), only(&[1, 3]));
    assert_eq!(kept(3), only(&[0, 1, 3]));
    assert_eq!(kept(4), only(&[0, 1, 2, 3]));
    assert_eq!(kept(0), None);
}

#[test]
fn paths_that_do_not_qualify_are_omitted() {
    let mut dirty = int(&["a"], 9, 0);
    dirty.values = 1;
    let clean = int(&["b"], 1, 0);
    assert_eq!(encode_bounds(&[dirty, clean.clone()], most(1)), encode_bounds(&[clean], most(1)));
}

#[test]
fn many_paths_need_wider_ids_and_offsets() {
    let names: Vec<_> = (0..300).map(|i| format!("field{i:03}")).collect();
    let paths: Vec<_> = names.iter().enumerate().map(|(i, name)| int(&[name], 1, i as i64)).collect();
    let (least, _) = encode_bounds(&paths, most(300)).unwrap();
    let variant = parquet_variant::Variant::try_new(
        &least[..least.len() - (1 + 4 + 300 * 2 + 301 * 2 + 300 * 9)],
        &least[least.len() - (1 + 4 + 300 * 2 + 301 * 2 + 300 * 9)..],
    )
    .unwrap();
    let object = variant.as_object().unwrap();
    assert_eq!(object.len(), 300);
    assert_eq!(object.get("$['field299']").unwrap().as_int64(), Some(299));
}

fn column(field: Field, arrays: &[ArrayRef]) -> ColumnBounds {
    let mut bounds = ColumnBounds::new(&field).unwrap();
    arrays.iter().for_each(|array| bounds.update(array).unwrap());
    // A table cannot store columns of nulls.
    if *field.data_type() != DataType::Null {
        let written = write(field, Encoding::Plain, arrays);
        let distrusting = bounds.clone().distrusting();
        assert_eq!(written.leaves().unwrap(), distrusting.leaves().unwrap(), "those of a write");
    }
    bounds
}

/// Write the arrays to row groups of two rows, and return the bounds of the column.
fn write(field: Field, encoding: Encoding, arrays: &[ArrayRef]) -> ColumnBounds {
    let schema = Arc::new(Schema::new(vec![field]));
    let options = WriteOptions { row_group_rows: 2, ..Default::default() };
    let (sink, parse) = (Vec::new(), ParseOptions::default());
    let mut writer =
        DataFileWriter::new(sink, &schema, vec![encoding], parse, OnInvalid::Error, options).unwrap();
    for array in arrays {
        writer.write(&RecordBatch::try_new(schema.clone(), vec![array.clone()]).unwrap()).unwrap();
    }
    writer.close().unwrap().1.remove(0)
}

/// Return the null count and the bounds of one ordinary column.
fn ordinary(array: impl Array + 'static) -> (u64, Option<(ArrayRef, ArrayRef)>) {
    let array: ArrayRef = Arc::new(array);
    let bounds = column(Field::new("c", array.data_type().clone(), true), &[array]);
    let report = bounds.leaves().unwrap().remove(0);
    assert_eq!(report.path, ["c"]);
    match report.bounds {
        LeafBounds::Ordinary(bounds) => (report.nulls, bounds),
        LeafBounds::Variant(_) => panic!("expected an ordinary column, got a Variant"),
    }
}

fn check_ordinary(array: impl Array + 'static, nulls: u64, min: impl Array, max: impl Array) {
    let (found_nulls, bounds) = ordinary(array);
    let (found_min, found_max) = bounds.unwrap();
    assert_eq!(found_nulls, nulls);
    assert_eq!(found_min.to_data(), min.to_data());
    assert_eq!(found_max.to_data(), max.to_data());
}

#[test]
fn bounds_of_ordinary_columns_have_the_column_type() {
    check_ordinary(
        Int8Array::from(vec![Some(2), None]),
        1,
        Int8Array::from(vec![2]),
        Int8Array::from(vec![2]),
    );
    check_ordinary(Int16Array::from(vec![2, 1]), 0, Int16Array::from(vec![1]), Int16Array::from(vec![2]));
    check_ordinary(Int32Array::from(vec![2, 1]), 0, Int32Array::from(vec![1]), Int32Array::from(vec![2]));
    check_ordinary(Int64Array::from(vec![2, 1]), 0, Int64Array::from(vec![1]), Int64Array::from(vec![2]));
    check_ordinary(Date32Array::from(vec![2, 1]), 0, Date32Array::from(vec![1]), Date32Array::from(vec![2]));
    check_ordinary(
        Float32Array::from(vec![0.0, 1.0]),
        0,
        Float32Array::from(vec![-0.0]),
        Float32Array::from(vec![1.0]),
    );
    check_ordinary(
        Float64Array::from(vec![0.5, 1.0]),
        0,
        Float64Array::from(vec![0.5]),
        Float64Array::from(vec![1.0]),
    );
    let decimal = |values: Vec<i128>| Decimal128Array::from(values).with_precision_and_scale(10, 2).unwrap();
    check_ordinary(decimal(vec![150, -7]), 0, decimal(vec![-7]), decimal(vec![150]));
    let micros = |values: Vec<i64>| TimestampMicrosecondArray::from(values).with_timezone("UTC");
    check_ordinary(micros(vec![5, 3]), 0, micros(vec![3]), micros(vec![5]));
    let nanos = |values: Vec<i64>| TimestampNanosecondArray::from(values);
    check_ordinary(nanos(vec![5, 3]), 0, nanos(vec![3]), nanos(vec![5]));
}

#[test]
fn string_bounds_of_ordinary_columns_are_not_truncated() {
    let long = "x".repeat(1000);
    let texts = vec![Some("b"), None, Some(long.as_str()), Some("")];
    check_ordinary(
        StringArray::from(texts.clone()),
        1,
        StringArray::from(vec![""]),
        StringArray::from(vec![&*long]),
    );
    check_ordinary(
        LargeStringArray::from(texts.clone()),
        1,
        LargeStringArray::from(vec![""]),
        LargeStringArray::from(vec![&*long]),
    );
    check_ordinary(
        StringViewArray::from(texts),
        1,
        StringViewArray::from(vec![""]),
        StringViewArray::from(vec![&*long]),
    );
}

#[test]
fn columns_without_bounds_count_their_nulls() {
    assert!(matches!(ordinary(BooleanArray::from(vec![Some(true), None])), (1, None)));
    assert!(matches!(ordinary(BinaryArray::from(vec![Some(&b"x"[..]), None, None])), (2, None)));
    assert!(matches!(ordinary(NullArray::new(3)), (3, None)));
    assert!(matches!(ordinary(Float64Array::from(vec![1.0, f64::NAN])), (0, None)));
    assert!(matches!(ordinary(Int64Array::from(vec![None, None])), (2, None)));
    let dictionary: DictionaryArray<Int32Type> = [Some("a"), None].into_iter().collect();
    assert!(matches!(ordinary(dictionary), (1, None)));
    let mut lists = ListBuilder::new(Int64Builder::new());
    lists.append_value([Some(1), None]);
    lists.append_null();
    assert!(matches!(ordinary(lists.finish()), (1, None)));
}

#[test]
fn leaves_of_a_null_struct_are_null() {
    let inner = Int64Array::from(vec![Some(1), Some(99), None]);
    let fields = Fields::from(vec![Field::new("a", DataType::Int64, true)]);
    let array: ArrayRef = Arc::new(StructArray::new(
        fields.clone(),
        vec![Arc::new(inner)],
        Some(vec![true, false, true].into()),
    ));
    let bounds = column(Field::new("s", DataType::Struct(fields), true), &[array.clone(), array]);
    let report = bounds.leaves().unwrap().remove(0);
    assert_eq!(report.path, ["s", "a"]);
    assert_eq!(report.nulls, 4);
    let LeafBounds::Ordinary(Some((min, max))) = report.bounds else { panic!("expected bounds of a number") };
    assert_eq!(
        (min.to_data(), max.to_data()),
        (Int64Array::from(vec![1]).to_data(), Int64Array::from(vec![1]).to_data())
    );
}

/// Return a column `s: struct<v: Variant>` of the given Variants; `valid` marks the rows with a struct.
fn struct_of(variants: StructArray, valid: Vec<bool>) -> (Field, ArrayRef) {
    let extension = [("ARROW:extension:name".to_owned(), "arrow.parquet.variant".to_owned())];
    let v = Field::new("v", variants.data_type().clone(), true).with_metadata(extension.into());
    let fields = Fields::from(vec![v]);
    let array = StructArray::new(fields.clone(), vec![Arc::new(variants)], Some(valid.into()));
    (Field::new("s", DataType::Struct(fields), true), Arc::new(array))
}

#[test]
fn a_variant_in_a_struct_has_its_own_bounds() {
    let numbers = Arc::new(Int64Array::from(vec![Some(1), Some(7), None, Some(99)]));
    let values = (0..4).map(|_| None::<&[u8]>).collect::<BinaryArray>();
    let metadata = BinaryArray::from(vec![&[1, 0, 0][..]; 4]);
    let fields = Fields::from(vec![
        Field::new("metadata", DataType::Binary, false),
        Field::new("value", DataType::Binary, true),
        Field::new("typed_value", DataType::Int64, true),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(metadata), Arc::new(values), numbers];
    let variants = StructArray::new(fields, columns, Some(vec![true, true, false, true].into()));
    let (field, array) = struct_of(variants, vec![true, true, true, false]);
    let bounds = column(field, &[array]);
    let [report] = &bounds.leaves().unwrap()[..] else { panic!("expected one leaf for the Variant") };
    assert_eq!((report.path.join("."), report.nulls), ("s.v".to_owned(), 2));
    let LeafBounds::Variant(variant) = report.bounds else { panic!("expected bounds of a Variant") };
    assert_eq!(variant.sql_nulls(), 2);
    assert_eq!(variant.paths()[0].bounds, Some((Scalar::Integer(1), Scalar::Integer(7))));
}

#[test]
fn a_write_has_the_bounds_of_each_field() {
    let decimal = LeafType::Decimal { precision: 20, scale: 1 };
    let list = ShreddingSchema::List(Box::new(INT64));
    let inner = object_schema(&[
        ("d", ShreddingSchema::Leaf(LeafType::Double)),
        ("e", list),
        ("f", ShreddingSchema::Leaf(decimal)),
    ]);
    let schema = object_schema(&[
        ("a", INT64),
        ("b", inner),
        ("c", ShreddingSchema::Leaf(LeafType::String)),
        ("g", ShreddingSchema::Untyped),
        ("h", INT64),
    ]);
    let rows = [
        r#"{"a": 5, "b": {"d": 1e0, "e": [7, 8], "f": 2.5}, "c": "é", "g": 1, "h": 90}"#,
        r#"{"a": 3, "b": {"d": -0e0, "e": [], "f": -0.5}, "c": "b", "h": 70}"#,
        r#"{"a": 4, "b": {}, "h": 80}"#,
        "[1]",
        "null",
    ];
    let field = Field::new("v", DataType::Utf8, true);
    let bounds = write(field, Encoding::Json(schema), &[Arc::new(StringArray::from(rows.to_vec()))]);
    let found: Vec<_> = bounds.as_variant().unwrap().paths().into_iter().map(|path| path.bounds).collect();
    let expected = [
        Some((Scalar::Integer(3), Scalar::Integer(5))),
        Some((Scalar::Double(-0.0), Scalar::Double(1.0))),
        None,
        Some((Scalar::Decimal(-5), Scalar::Decimal(25))),
        Some((Scalar::String("b".into()), Scalar::String("é".into()))),
        Some((Scalar::Integer(70), Scalar::Integer(90))),
    ];
    assert_eq!(found, expected);
}

/// `{"a": 100}`: metadata, and the value as an object.
const HIDDEN: (&[u8], &[u8]) = (&[1, 1, 0, 1, b'a'], &[2, 1, 0, 0, 2, 0x0C, 100]);

/// A Variant column shredded as `{a, b}` with the given `value` per row; `typed` marks the rows with a `typed_value`.
fn residuals(values: Vec<Option<&[u8]>>, typed: Vec<bool>) -> StructArray {
    let numbers = || Arc::new(Int64Array::from_iter_values(0..typed.len() as i64)) as ArrayRef;
    let inner = |name| (name, group(&vec![false; typed.len()], numbers(), None));
    let typed_value = object(vec![inner("a"), inner("b")], Some(typed.clone()));
    let fields = Fields::from(vec![
        Field::new("metadata", DataType::Binary, false),
        Field::new("value", DataType::Binary, true),
        Field::new("typed_value", typed_value.data_type().clone(), true),
    ]);
    let metadata: ArrayRef = Arc::new(BinaryArray::from(vec![HIDDEN.0; typed.len()]));
    StructArray::new(fields, vec![metadata, Arc::new(BinaryArray::from(values)), typed_value], None)
}

fn bounded_paths(column: &StructArray, trusting: bool) -> Vec<bool> {
    let schema = object_schema(&[("a", INT64), ("b", INT64)]);
    let bounds = VariantBounds::new(&schema);
    let mut bounds = if trusting { bounds } else { bounds.distrusting() };
    bounds.update(column).unwrap();
    bounds.paths().iter().map(|path| path.bounds.is_some()).collect()
}

#[test]
fn an_object_in_value_removes_the_bounds_of_all_its_paths() {
    let column = residuals(vec![None, Some(HIDDEN.1)], vec![true, false]);
    assert_eq!(bounded_paths(&column, false), [false, false]);
    assert_eq!(bounded_paths(&column, true), [true, true]);
}

#[test]
fn a_field_in_both_columns_removes_only_the_bounds_of_its_path() {
    let column = residuals(vec![None, Some(HIDDEN.1)], vec![true, true]);
    assert_eq!(bounded_paths(&column, false), [false, true]);
}

#[test]
fn a_value_other_than_an_object_hides_no_field() {
    let column = residuals(vec![Some(&[0x05, b'x'][..]), None], vec![false, true]);
    assert_eq!(bounded_paths(&column, false), [true, true]);
}

#[test]
fn bounds_of_two_parts_of_a_column_merge() {
    let part = |values: Vec<Option<i64>>| {
        column(Field::new("c", DataType::Int64, true), &[Arc::new(Int64Array::from(values)) as ArrayRef])
    };
    let mut whole = part(vec![Some(3), None]);
    whole.merge(&part(vec![None, None]));
    whole.merge(&part(vec![Some(-1)]));
    assert_eq!(whole, {
        let mut at_once = part(vec![Some(3), None, None, None]);
        at_once.update(&Int64Array::from(vec![-1])).unwrap();
        at_once
    });
}
