//! Variants built from Arrow columns and trees: expected text, canonical forms, limits.

use std::borrow::Cow;
use std::sync::Arc;

use _native::error::Error;
use _native::value::build::{Rows, Tree, names_of};
use _native::value::json::{Keys, value as write_json};
use _native::value::moment::{Part, parts};
use _native::value::nested::variants_of;
use _native::value::{Decimal, MAX_DEPTH, Metadata, Value, Zone};
use arrow_array::builder::{
    FixedSizeListBuilder, Int32Builder, Int64Builder, LargeListBuilder, ListBuilder, MapBuilder,
    StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, Date32Array, Float64Array, Int64Array, NullArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field};

fn text(variants: &StructArray, row: usize) -> Option<String> {
    let (metadata, values) = (variants.column(0).as_binary::<i32>(), variants.column(1).as_binary::<i32>());
    let keys = Keys::new(&Metadata::parse(metadata.value(row)).unwrap());
    let mut out = Vec::new();
    variants.is_valid(row).then(|| {
        write_json(&mut out, &keys, values.value(row), &Zone::UTC).unwrap();
        String::from_utf8(out).unwrap()
    })
}

fn texts(array: &dyn Array) -> Vec<Option<String>> {
    let variants = variants_of(array, 0..array.len()).unwrap();
    (0..variants.len()).map(|row| text(&variants, row)).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some(text.to_string())).collect()
}

#[test]
fn a_struct_becomes_an_object_and_null_within_it_variant_null() {
    let fields: Vec<(Arc<Field>, ArrayRef)> = vec![
        (Arc::new(Field::new("b", DataType::Int64, true)), Arc::new(Int64Array::from(vec![Some(1), None]))),
        (Arc::new(Field::new("a", DataType::Utf8, true)), Arc::new(StringArray::from(vec!["x", "y"]))),
        (Arc::new(Field::new("c", DataType::Null, true)), Arc::new(NullArray::new(2))),
    ];
    let expected = some(&[r#"{"a":"x","b":1,"c":null}"#, r#"{"a":"y","b":null,"c":null}"#]);
    assert_eq!(texts(&StructArray::from(fields)), expected);
}

#[test]
fn lists_of_every_layout_become_arrays() {
    let mut list = ListBuilder::new(Int32Builder::new());
    list.append_value([Some(1), None]);
    list.append_null();
    list.append_value([]);
    let expected = vec![Some("[1,null]".to_string()), None, Some("[]".to_string())];
    assert_eq!(texts(&list.finish()), expected);

    let mut large = LargeListBuilder::new(ListBuilder::new(Int32Builder::new()));
    large.append_value([Some([Some(1)]), None]);
    assert_eq!(texts(&large.finish()), some(&["[[1],null]"]));

    let mut fixed = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    for number in 0..6 {
        fixed.values().append_value(number);
        if number % 2 == 1 {
            fixed.append(true);
        }
    }
    assert_eq!(texts(&fixed.finish().slice(1, 2)), some(&["[2,3]", "[4,5]"]));
}

#[test]
fn a_map_becomes_an_object_if_its_keys_are_strings() {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.keys().append_value("k");
    map.values().append_value(1);
    map.append(true).unwrap();
    map.append(false).unwrap();
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).unwrap();
    let array = map.finish();
    let expected = vec![Some(r#"{"k":1}"#.to_string()), None, Some(r#"{"k":null}"#.to_string())];
    assert_eq!(texts(&array), expected);

    let mut numbers = MapBuilder::new(None, Int64Builder::new(), Int64Builder::new());
    numbers.append(true).unwrap();
    let error = variants_of(&numbers.finish(), 0..1).unwrap_err();
    assert!(error.to_string().contains("its keys are Int64"), "{error}");
}

#[test]
fn a_key_that_occurs_twice_is_an_error_with_its_row() {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.append(true).unwrap();
    for number in 0..2 {
        map.keys().append_value("k");
        map.values().append_value(number);
    }
    map.append(true).unwrap();
    let error = variants_of(&map.finish(), 0..2).unwrap_err();
    assert_eq!(error.row(), Some(1));
    assert!(error.to_string().contains(r#"two fields called "k""#), "{error}");
}

#[test]
fn a_variant_within_a_column_keeps_its_value_under_other_names() {
    let inner = variants_of(&StringArray::from(vec!["x"]), 0..1).unwrap();
    let marked = Field::new("v", inner.data_type().clone(), true)
        .with_metadata([("ARROW:extension:name".to_string(), "arrow.parquet.variant".to_string())].into());
    let fields: Vec<(Arc<Field>, ArrayRef)> = vec![(Arc::new(marked), Arc::new(inner))];
    assert_eq!(texts(&StructArray::from(fields)), some(&[r#"{"v":"x"}"#]));
}

#[test]
fn nesting_beyond_the_limit_is_an_error() {
    let build = || {
        let mut array: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
        for _ in 0..=MAX_DEPTH {
            let field = Arc::new(Field::new("f", array.data_type().clone(), true));
            array = Arc::new(StructArray::from(vec![(field, array)]));
        }
        assert!(variants_of(&array, 0..1).is_err());
    };
    // Arrow itself recurses over the type, and threads of tests have small stacks.
    std::thread::Builder::new().stack_size(256 << 20).spawn(build).unwrap().join().unwrap();
}

fn object(fields: Vec<(&'static str, Tree<'static>)>) -> Tree<'static> {
    Tree::object(fields.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect()).unwrap()
}

#[test]
fn a_tree_is_encoded_and_decoded() {
    let tree = object(vec![
        ("text", Tree::string("é")),
        ("bytes", Tree::binary(&[1, 2])),
        ("array", Tree::Array(vec![Tree::Scalar(Value::Int64(7)), object(vec![])])),
    ]);
    let (metadata, value) = tree.encode();
    let names = names_of(&metadata).unwrap();
    assert_eq!(names, ["array", "bytes", "text"]);
    assert_eq!(Tree::decode(&names, &value, 0).unwrap().encode(), (metadata.clone(), value.clone()));

    let mut rows = Rows::new(2);
    rows.push(Some(&tree)).unwrap();
    rows.push(None).unwrap();
    let variants = rows.finish().unwrap();
    let expected = r#"{"array":[7,{}],"bytes":"AQI=","text":"é"}"#;
    assert_eq!([text(&variants, 0), text(&variants, 1)], [Some(expected.to_string()), None]);
}

#[test]
fn equal_values_have_one_canonical_form() {
    let decimal = |unscaled, scale| Tree::Scalar(Value::Decimal(Decimal { unscaled, scale }));
    let one = [
        Tree::Scalar(Value::Int8(1)),
        Tree::Scalar(Value::Int16(1)),
        Tree::Scalar(Value::Int32(1)),
        Tree::Scalar(Value::Int64(1)),
        decimal(1, 0),
        decimal(100, 2),
    ];
    for each in one {
        let within = Tree::Array(vec![object(vec![("n", each)])]).canonical();
        assert_eq!(within, Tree::Array(vec![object(vec![("n", decimal(1, 0))])]));
    }
    let bytes = |value: Value<'static>| Tree::Scalar(value).canonical().encode();
    assert_eq!(bytes(Value::Double(-0.0)), bytes(Value::Double(0.0)));
    assert_eq!(bytes(Value::Float(-0.0)), bytes(Value::Float(0.0)));
    assert_eq!(bytes(Value::Double(-f64::NAN)), bytes(Value::Double(f64::NAN)));
    assert_eq!(bytes(Value::Float(-f32::NAN)), bytes(Value::Float(f32::NAN)));
    assert_ne!(bytes(Value::Double(1.0)), bytes(Value::Int8(1)));
    assert_eq!(Tree::string("a").canonical(), Tree::string("a"));
}

#[test]
fn a_name_that_the_metadata_lacks_is_an_error() {
    let (_, value) = object(vec![("a", Tree::Scalar(Value::Null))]).encode();
    assert!(Tree::decode(&[], &value, 0).is_err());
}

#[test]
fn parts_of_dates_and_timestamps_are_those_of_the_calendar() {
    let of = |array: ArrayRef, part, zone: &Zone| -> Result<Vec<Option<i32>>, Error> {
        Ok(parts(&array, part, zone)?.as_primitive::<Int32Type>().iter().collect())
    };
    // 2024-02-29, and the day before the epoch.
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![Some(19_782), Some(-1), None]));
    for (part, expected) in [(Part::Year, [2024, 1969]), (Part::Month, [2, 12]), (Part::Day, [29, 31])] {
        let found = of(dates.clone(), part, &Zone::UTC).unwrap();
        assert_eq!(found, [Some(expected[0]), Some(expected[1]), None]);
    }
    let micros = vec![-1];
    let local: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros.clone()));
    let instant: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"));
    let east: Zone = Zone::parse("+02:00").unwrap();
    assert_eq!(of(local, Part::Hour, &east).unwrap(), [Some(23)]);
    assert_eq!(of(instant, Part::Hour, &east).unwrap(), [Some(1)]);
    assert!(of(Arc::new(Int64Array::from(vec![1])), Part::Year, &Zone::UTC).is_err());
}
