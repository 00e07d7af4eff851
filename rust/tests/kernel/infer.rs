//! Inference by majority, and its limits (W12, P-T1 and P-T3 of protocol_fixtures/README.md).

use std::sync::Arc;

use _native::infer::{InferOptions, Inference};
use _native::shred::{LeafType, ShreddingSchema};
use _native::value::{Decimal, Metadata, Value, encode, metadata};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BinaryArray, DictionaryArray, Int32Array, StructArray};
use arrow_schema::{DataType, Field, Fields};
use proptest::prelude::*;

/// A value to encode; object fields must be given in the order of their names.
#[derive(Debug, Clone)]
enum V {
    Int(i64),
    Dec(i128, u8),
    Scalar(Value<'static>),
    Str(&'static str),
    Obj(Vec<(String, V)>),
    Arr(Vec<V>),
}

fn names(value: &V, out: &mut Vec<String>) {
    match value {
        V::Obj(fields) => fields.iter().for_each(|(name, value)| {
            out.push(name.clone());
            names(value, out);
        }),
        V::Arr(elements) => elements.iter().for_each(|element| names(element, out)),
        _ => {}
    }
}

fn encode_value(value: &V, ids: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        V::Int(v) => encode::int(&mut out, *v),
        V::Dec(unscaled, scale) => encode::decimal(&mut out, Decimal { unscaled: *unscaled, scale: *scale }),
        V::Scalar(v) => encode::scalar(&mut out, v),
        V::Str(v) => encode::string(&mut out, v.as_bytes()),
        V::Obj(fields) => {
            let values: Vec<_> = fields.iter().map(|(_, value)| encode_value(value, ids)).collect();
            let mut offset = 0;
            let mut entries = Vec::new();
            for ((name, _), value) in fields.iter().zip(&values) {
                entries.push((ids.iter().position(|id| id == name).unwrap(), offset));
                offset += value.len();
            }
            encode::Layout::object(fields.len(), offset, 2).write_object(&mut out, entries.into_iter());
            values.iter().for_each(|value| out.extend_from_slice(value));
        }
        V::Arr(elements) => {
            let values: Vec<_> = elements.iter().map(|value| encode_value(value, ids)).collect();
            let mut offset = 0;
            let mut offsets = Vec::new();
            for value in &values {
                offsets.push(offset);
                offset += value.len();
            }
            encode::Layout::array(elements.len(), offset).write_array(&mut out, offsets.into_iter());
            values.iter().for_each(|value| out.extend_from_slice(value));
        }
    }
    out
}

fn encode_row(value: &V) -> (Vec<u8>, Vec<u8>) {
    let mut ids = Vec::new();
    names(value, &mut ids);
    ids.sort();
    ids.dedup();
    let mut bytes = Vec::new();
    metadata::write(&mut bytes, ids.iter().map(String::as_str), true);
    (bytes, encode_value(value, &ids))
}

fn infer_with(options: InferOptions, rows: &[V]) -> ShreddingSchema {
    let mut inference = Inference::new(options);
    for row in rows {
        let (metadata, value) = encode_row(row);
        inference.add(&Metadata::parse(&metadata).unwrap(), &value).unwrap();
    }
    inference.finish()
}

fn infer(rows: &[V]) -> ShreddingSchema {
    infer_with(InferOptions::default(), rows)
}

fn obj<const N: usize>(fields: [(&str, V); N]) -> V {
    V::Obj(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn object<const N: usize>(fields: [(&str, ShreddingSchema); N]) -> ShreddingSchema {
    ShreddingSchema::Object(fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect())
}

fn leaf(leaf: LeafType) -> ShreddingSchema {
    ShreddingSchema::Leaf(leaf)
}

fn decimal(precision: u8, scale: u8) -> ShreddingSchema {
    leaf(LeafType::Decimal { precision, scale })
}

fn repeat(count: usize, value: V) -> Vec<V> {
    vec![value; count]
}

#[test]
fn small_integers_become_int64() {
    assert_eq!(infer(&[V::Int(1), V::Int(-300)]), leaf(LeafType::Int64));
}

#[test]
fn one_decimal_among_integers_makes_a_decimal_of_its_scale() {
    assert_eq!(infer(&[V::Int(3), V::Int(17), V::Dec(150, 2)]), decimal(18, 2));
}

#[test]
fn more_than_18_digits_make_a_decimal_of_38() {
    assert_eq!(infer(&[V::Dec(15, 1), V::Int(i64::MAX)]), decimal(38, 1));
    assert_eq!(infer(&[V::Dec(10i128.pow(20), 0)]), decimal(38, 0));
}

#[test]
fn eighteen_digits_still_fit() {
    assert_eq!(infer(&[V::Dec(15, 1), V::Int(99_999_999_999_999_999)]), decimal(18, 1));
    assert_eq!(infer(&[V::Dec(15, 1), V::Int(999_999_999_999_999_999)]), decimal(38, 1));
}

#[test]
fn leading_fraction_zeros_need_no_integer_digits() {
    assert_eq!(infer(&[V::Dec(-5, 18)]), decimal(18, 18));
}

#[test]
fn a_decimal_type_is_chosen_that_leaves_the_fewest_rows_in_value() {
    let mut rows = repeat(3, V::Dec(10i128.pow(37), 0));
    rows.push(V::Dec(1, 38));
    assert_eq!(infer(&rows), decimal(38, 0));
}

#[test]
fn doubles_and_decimals_do_not_mix() {
    let double = || V::Scalar(Value::Double(0.5));
    assert_eq!(infer(&[double(), double(), V::Dec(15, 1)]), leaf(LeafType::Double));
    assert_eq!(infer(&[double(), V::Int(3), V::Dec(15, 1)]), decimal(18, 1));
}

#[test]
fn a_few_rows_of_other_types_do_not_change_the_schema() {
    let mut rows = repeat(995, obj([("device", obj([("os", V::Str("ios"))])), ("x", V::Int(7))]));
    rows.extend(repeat(5, obj([("device", V::Str("ios")), ("x", V::Str("unknown"))])));
    assert_eq!(
        infer(&rows),
        object([("device", object([("os", leaf(LeafType::String))])), ("x", leaf(LeafType::Int64))])
    );
}

#[test]
fn variant_nulls_do_not_affect_the_type() {
    let rows = [obj([("a", V::Scalar(Value::Null)), ("b", V::Int(1))]), obj([("a", V::Scalar(Value::Null))])];
    assert_eq!(infer(&rows), object([("b", leaf(LeafType::Int64))]));
    assert_eq!(infer(&[V::Scalar(Value::Null)]), ShreddingSchema::Untyped);
}

#[test]
fn arrays_become_lists_of_their_element_type() {
    let rows = [obj([("tags", V::Arr(vec![V::Str("a"), V::Str("b"), V::Int(1)]))])];
    let list = ShreddingSchema::List(Box::new(leaf(LeafType::String)));
    assert_eq!(infer(&rows), object([("tags", list)]));
}

#[test]
fn empty_objects_and_arrays_are_not_shredded() {
    assert_eq!(infer(&[obj([("a", V::Arr(vec![])), ("o", obj([]))])]), ShreddingSchema::Untyped);
}

#[test]
fn each_scalar_type_that_spark_reads_is_kept() {
    for (value, expected) in [
        (Value::Boolean(true), LeafType::Boolean),
        (Value::Float(1.5), LeafType::Float),
        (Value::Date(1), LeafType::Date),
        (Value::Timestamp(1), LeafType::Timestamp),
        (Value::TimestampNtz(1), LeafType::TimestampNtz),
        (Value::Binary(b"x"), LeafType::Binary),
    ] {
        assert_eq!(infer(&[V::Scalar(value)]), leaf(expected));
    }
}

#[test]
fn types_that_spark_rejects_need_the_option() {
    let any = InferOptions { spark_compatible: false, ..InferOptions::default() };
    for (value, expected) in [
        (Value::Time(1), LeafType::Time),
        (Value::TimestampNanos(1), LeafType::TimestampNanos),
        (Value::TimestampNtzNanos(1), LeafType::TimestampNtzNanos),
        (Value::Uuid([7; 16]), LeafType::Uuid),
    ] {
        assert_eq!(infer(&[V::Scalar(value)]), ShreddingSchema::Untyped);
        assert_eq!(infer_with(any, &[V::Scalar(value)]), leaf(expected));
    }
}

#[test]
fn a_field_in_a_tenth_of_the_rows_is_kept_and_a_rare_small_one_is_not() {
    let mut rows = repeat(90, obj([("a", V::Int(1))]));
    rows.extend(repeat(10, obj([("a", V::Int(1)), ("b", V::Int(2))])));
    assert_eq!(infer(&rows), object([("a", leaf(LeafType::Int64)), ("b", leaf(LeafType::Int64))]));
    rows.push(obj([("a", V::Int(1))]));
    assert_eq!(infer(&rows), object([("a", leaf(LeafType::Int64))]));
}

#[test]
fn a_field_in_a_hundredth_of_the_rows_is_kept_if_it_is_large() {
    let text = "a text of fifty-one bytes, as descriptions often are";
    let mut rows = repeat(396, obj([("a", V::Int(1))]));
    rows.extend(repeat(4, obj([("a", V::Int(1)), ("b", V::Str(text))])));
    assert_eq!(infer(&rows), object([("a", leaf(LeafType::Int64)), ("b", leaf(LeafType::String))]));
    rows.push(obj([("a", V::Int(1))]));
    assert_eq!(infer(&rows), object([("a", leaf(LeafType::Int64))]));
}

#[test]
fn the_leaf_limit_keeps_the_paths_with_most_values() {
    let mut rows = repeat(2, obj([("a", V::Int(1)), ("b", V::Int(1)), ("z", V::Int(1))]));
    rows.push(obj([("z", V::Int(1))]));
    let two = InferOptions { max_leaves: 2, ..InferOptions::default() };
    assert_eq!(infer_with(two, &rows), object([("a", leaf(LeafType::Int64)), ("z", leaf(LeafType::Int64))]));
}

#[test]
fn an_object_that_loses_all_its_leaves_stays_in_value() {
    let rows = [obj([("a", obj([("b", V::Int(1))])), ("z", V::Int(1))]), obj([("z", V::Int(1))])];
    let one = InferOptions { max_leaves: 1, ..InferOptions::default() };
    assert_eq!(infer_with(one, &rows), object([("z", leaf(LeafType::Int64))]));
}

#[test]
fn fields_nested_too_deeply_stay_in_value() {
    let two = InferOptions { max_depth: 2, ..InferOptions::default() };
    let row = obj([("a", obj([("b", V::Int(1)), ("c", obj([("d", V::Int(1))]))]))]);
    assert_eq!(infer_with(two, &[row]), object([("a", object([("b", leaf(LeafType::Int64))]))]));
}

#[test]
fn unique_keys_do_not_displace_other_fields() {
    let row = |i: usize| {
        let map = V::Obj(vec![(format!("key{i:06}"), obj([("v", V::Int(1))]))]);
        let mut fields = vec![("map", map)];
        if i > 20_000 {
            fields.push(("z", V::Int(1)));
        }
        V::Obj(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let rows: Vec<_> = (0..30_000).map(row).collect();
    assert_eq!(infer(&rows), object([("z", leaf(LeafType::Int64))]));
}

#[test]
fn fields_are_counted_if_some_rows_lack_them() {
    let rows = [
        obj([("a", V::Int(1)), ("b", V::Int(1)), ("c", V::Int(1))]),
        obj([("b", V::Int(1)), ("c", V::Int(1))]),
        obj([("a", V::Int(1)), ("c", V::Int(1))]),
    ];
    let int = || leaf(LeafType::Int64);
    assert_eq!(infer(&rows), object([("a", int()), ("b", int()), ("c", int())]));
}

#[test]
fn names_beyond_the_length_limit_are_not_counted() {
    let (short, long) = ("n".repeat(1024), "n".repeat(1025));
    let rows = [obj([(short.as_str(), V::Int(1)), (long.as_str(), V::Int(1))])];
    assert_eq!(infer(&rows), object([(short.as_str(), leaf(LeafType::Int64))]));
}

fn variants(rows: &[(Vec<u8>, Vec<u8>)], dictionary: bool, valid: &[bool]) -> StructArray {
    let plain: ArrayRef = Arc::new(rows.iter().map(|(metadata, _)| Some(metadata)).collect::<BinaryArray>());
    let metadata: ArrayRef = if dictionary {
        let keys: Int32Array = (0..rows.len() as i32).collect();
        Arc::new(DictionaryArray::<Int32Type>::try_new(keys, plain).unwrap())
    } else {
        plain
    };
    let value: ArrayRef = Arc::new(rows.iter().map(|(_, value)| Some(value)).collect::<BinaryArray>());
    let fields = Fields::from(vec![
        Field::new("metadata", metadata.data_type().clone(), false),
        Field::new("value", DataType::Binary, false),
    ]);
    StructArray::new(fields, vec![metadata, value], Some(valid.to_vec().into()))
}

#[test]
fn sql_nulls_of_an_array_are_not_counted() {
    let rows = [obj([("a", V::Int(1))]), V::Str("not an object"), V::Str("not one either")]
        .map(|row| encode_row(&row));
    for dictionary in [false, true] {
        let mut inference = Inference::new(InferOptions::default());
        inference.add_array(&variants(&rows, dictionary, &[true, false, false])).unwrap();
        assert_eq!(inference.finish(), object([("a", leaf(LeafType::Int64))]));
    }
}

#[test]
fn the_most_common_of_names_that_differ_in_case_gets_a_column() {
    let one = obj([("ID", V::Int(1)), ("Id", V::Int(2)), ("É", V::Int(3)), ("é", V::Int(4))]);
    let rows = [one.clone(), one.clone(), one, obj([("Id", V::Int(5))])];
    let expected =
        [("Id", leaf(LeafType::Int64)), ("É", leaf(LeafType::Int64)), ("é", leaf(LeafType::Int64))];
    assert_eq!(infer(&rows), object(expected));
}

#[test]
fn malformed_bytes_are_an_error_that_names_the_row() {
    let rows = [(metadata::EMPTY.to_vec(), vec![0x00]), (metadata::EMPTY.to_vec(), vec![0x02, 0x09])];
    let error = Inference::new(InferOptions::default()).add_array(&variants(&rows, false, &[true, true]));
    assert_eq!(
        error.unwrap_err().to_string(),
        "row 1: malformed Variant value: an object or array is truncated"
    );
}

#[test]
fn elements_that_share_bytes_are_rejected_before_expansion() {
    let mut value = vec![0x00];
    for _ in 0..10 {
        let header = [&[0x03, 20][..], &[0; 20], &[value.len() as u8]].concat();
        value = [header, value].concat();
    }
    let mut inference = Inference::new(InferOptions::default());
    let counted = inference.add(&Metadata::parse(metadata::EMPTY).unwrap(), &value);
    assert!(counted.unwrap_err().to_string().contains("overlap"));
}

/// The Variants of 400 rows with a number, a constant, a random text and a copy of the text.
fn sample() -> StructArray {
    let random = |seed: i64| seed.wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(29);
    let row = |number: i64| {
        let text: String = (0..8)
            .map(|part| format!("{:08x}", random(number * 8 + part) as u32))
            .collect::<Vec<_>>()
            .join("-");
        let text: &'static str = text.leak();
        encode_row(&obj([
            ("constant", V::Str("always")),
            ("copy", V::Str(text)),
            ("number", V::Int(random(number) % 1000)),
            ("text", V::Str(text)),
        ]))
    };
    let rows: Vec<_> = (0..400).map(row).collect();
    variants(&rows, false, &[true; 400])
}

fn infer_for(rows: u64, max_leaves: usize) -> Vec<String> {
    let sample = sample();
    let sample = sample.slice(0, sample.len().min(rows as usize));
    let mut inference = Inference::new(InferOptions::default());
    inference.add_array(&sample).unwrap();
    match inference.finish_for(&[sample], rows, max_leaves).unwrap() {
        ShreddingSchema::Object(fields) => fields.into_iter().map(|(name, _)| name).collect(),
        ShreddingSchema::Untyped => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_of_few_rows_gets_no_columns() {
    assert_eq!(infer_for(20, 300), Vec::<String>::new());
}

#[test]
fn a_value_that_varies_gets_a_column_before_a_constant() {
    assert_eq!(infer_for(400, 300), ["number"]);
}

#[test]
fn a_large_file_gets_columns_that_serve_queries_alone_but_not_for_copies_of_other_values() {
    assert_eq!(infer_for(1_000_000, 300), ["constant", "number"]);
}

#[test]
fn the_leaves_that_save_most_are_kept() {
    assert_eq!(infer_for(1_000_000, 1), ["number"]);
}

#[test]
fn a_sample_without_values_has_no_columns() {
    let inference = Inference::new(InferOptions::default());
    assert_eq!(inference.finish_for(&[], 1_000_000, 300).unwrap(), ShreddingSchema::Untyped);
    let nulls = variants(&[encode_row(&V::Int(1))], false, &[false]);
    assert_eq!(inference.finish_for(&[nulls], 1_000_000, 300).unwrap(), ShreddingSchema::Untyped);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_crash(metadata: Vec<u8>, value: Vec<u8>) {
        let mut inference = Inference::new(InferOptions::default());
        if let Ok(metadata) = Metadata::parse(&metadata) {
            let _ = inference.add(&metadata, &value);
        }
        let sample = variants(&[(metadata, value.clone())], false, &[true]);
        let _ = inference.finish_for(&[sample], 1_000_000, 300);
        let _ = inference.add(&Metadata::parse(metadata::EMPTY).unwrap(), &value);
        inference.finish();
    }
}

#[test]
fn a_field_that_is_always_null_has_a_column_in_a_shredded_object() {
    let null = || V::Scalar(Value::Null);
    let random = |seed: i64| seed.wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(29);
    let row = |number: i64| {
        let text: &'static str = format!("{:032x}{:016x}", random(number), random(number + 400)).leak();
        let number_field = ("number", V::Int(random(number) % 1000));
        match number % 50 {
            0 => obj([number_field, ("often", null()), ("text", V::Str(text))]),
            _ => obj([number_field, ("text", V::Str(text))]),
        }
    };
    let rows: Vec<_> = (0..400).map(|number| encode_row(&row(number))).collect();
    let sample = variants(&rows, false, &[true; 400]);
    let mut inference = Inference::new(InferOptions::default());
    inference.add_array(&sample).unwrap();
    let found = inference.finish_for(&[sample], 1_000_000, 300).unwrap();
    let expected = [("number", LeafType::Int64), ("often", LeafType::String)];
    assert_eq!(leaves_of(found, &["text"]), expected.map(|(name, leaf)| (name.to_owned(), leaf)));
}

/// The leaves of an object without those `left_out`; panics if it has other fields.
fn leaves_of(schema: ShreddingSchema, left_out: &[&str]) -> Vec<(String, LeafType)> {
    let ShreddingSchema::Object(fields) = schema else { panic!("{schema:?}") };
    let kept = fields.into_iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
    kept.map(|(name, schema)| match schema {
        ShreddingSchema::Leaf(leaf) => (name, leaf),
        other => panic!("{name}: {other:?}"),
    })
    .collect()
}

const NUMBERS: [&str; 4] = ["n0", "n1", "n2", "n3"];

/// Infer the schema of a file of `rows` rows, of which 1,000 are known: an object with random `NUMBERS`, and for each
/// row the fields that `others` returns.
fn infer_with_others(
    rows: u64,
    max_leaves: usize,
    others: impl Fn(i64) -> Vec<(String, V)>,
) -> ShreddingSchema {
    let random = |seed: i64| seed.wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(29);
    let row = |number: i64| {
        let numbers =
            NUMBERS.iter().zip(0..).map(|(name, seed)| (name.to_string(), random(4 * number + seed)));
        let mut fields: Vec<_> = numbers.map(|(name, random)| (name, V::Int(random % 1000))).collect();
        fields.extend(others(number));
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        V::Obj(fields)
    };
    let known: Vec<_> = (0..1000).map(|number| encode_row(&row(number))).collect();
    let sample = variants(&known, false, &[true; 1000]);
    let mut inference = Inference::new(InferOptions::default());
    inference.add_array(&sample).unwrap();
    inference.finish_for(&[sample.slice(0, 200)], rows, max_leaves).unwrap()
}

/// Five fields of all kinds, each in 5 of 1,000 rows.
fn rare_fields(number: i64) -> Vec<(String, V)> {
    let value = match number % 200 {
        1 => V::Obj(vec![("a".to_owned(), V::Int(number))]),
        2 => V::Int(number),
        3 => V::Arr(vec![V::Int(number)]),
        4 => V::Scalar(Value::Null),
        5 => V::Str("text"),
        _ => return Vec::new(),
    };
    vec![(format!("rare{}", number % 200), value)]
}

#[test]
fn rare_fields_have_columns_so_that_the_value_of_their_object_is_empty() {
    let expected = [
        ("rare1", LeafType::String),
        ("rare2", LeafType::Int64),
        ("rare3", LeafType::String),
        ("rare4", LeafType::String),
        ("rare5", LeafType::String),
    ];
    let found = infer_with_others(1_000_000, 300, rare_fields);
    assert_eq!(leaves_of(found, &NUMBERS), expected.map(|(name, leaf)| (name.to_owned(), leaf)));
}

#[test]
fn a_small_file_has_no_columns_for_rare_fields() {
    let found = infer_with_others(4_000, 300, rare_fields);
    assert_eq!(leaves_of(found, &NUMBERS), []);
}

#[test]
fn rare_fields_have_only_the_columns_that_a_file_can_afford() {
    let found = infer_with_others(1_000_000, 6, rare_fields);
    assert_eq!(leaves_of(found, &NUMBERS).len(), 2);
}

#[test]
fn names_that_are_data_have_no_columns() {
    let ids = |number: i64| vec![(format!("id{number}"), V::Int(number))];
    let found = infer_with_others(1_000_000, 300, ids);
    assert_eq!(leaves_of(found, &NUMBERS), []);
    let some = |number: i64| vec![(format!("id{}", number * number % 997), V::Int(number))];
    let found =
        infer_with_others(1_000_000, 300, |number| if number % 5 == 0 { some(number) } else { Vec::new() });
    assert_eq!(leaves_of(found, &NUMBERS), []);
}

#[test]
fn rare_fields_have_no_columns_next_to_a_field_that_fills_the_value() {
    let with_names = |number: i64| {
        let mut fields = rare_fields(number);
        fields.push((format!("id{number}"), V::Int(number)));
        fields
    };
    let found = infer_with_others(1_000_000, 300, with_names);
    assert_eq!(leaves_of(found, &NUMBERS), []);
}
