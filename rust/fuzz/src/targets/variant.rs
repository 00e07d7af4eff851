//! Variant bytes: an encoded shredding schema, then `metadata‖value`.

use std::sync::Arc;

use _native::bounds::{BoundsLimit, VariantBounds, encode_bounds};
use _native::error::Result;
use _native::infer::{InferOptions, Inference};
use _native::shred::extract::extract;
use _native::shred::schema::Numeric;
use _native::shred::unshred::unshred;
use _native::shred::variants::shred;
use _native::shred::{OnConflict, ShreddingSchema};
use _native::value::Zone;
use _native::value::cast::Casting;
use _native::value::cast::variant_fields;
use _native::value::json::{self, Keys};
use _native::value::path::{self, Step};
use _native::value::{self, Metadata};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, StructArray};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use super::{part, print};
use crate::{canonical, schema};

pub fn run(mut input: &[u8]) {
    let description = part(&mut input);
    let (metadata, value) = match Metadata::parse_prefix(input) {
        Ok(metadata) => input.split_at(metadata.as_bytes().len()),
        Err(_) => input.split_at(input.len() / 2),
    };
    let parsed = Metadata::parse(metadata);
    let names: Vec<&str> = parsed.iter().flat_map(|metadata| metadata.names()).take(256).collect();
    let schema = schema::from_bytes(description, &names);
    let variants = variants(metadata, value);
    let is_valid = parsed.as_ref().is_ok_and(|metadata| value::validate(metadata, value).is_ok());
    if let Ok(parsed) = &parsed {
        check_one(parsed, value, &names, &variants);
    }
    check_casts(&variants, &names);
    check_shredding(&variants, &schema, Numeric::Value, is_valid);
    check_shredding(&variants, &schema, Numeric::Strict, is_valid);
    let options = InferOptions { spark_compatible: false, ..InferOptions::default() };
    let mut inference = Inference::new(options);
    if inference.add_array(&variants).is_ok() {
        check_shredding(&variants, &inference.finish(), Numeric::Value, is_valid);
    }
}

/// Return a column of one Variant, whether its bytes are valid or not.
pub fn variants(metadata: &[u8], value: &[u8]) -> StructArray {
    let columns = [metadata, value].map(|bytes| Arc::new(BinaryArray::from(vec![bytes])) as ArrayRef);
    StructArray::new(variant_fields(), columns.to_vec(), None)
}

/// Assert that operations on a single value and on a column of it agree.
fn check_one(metadata: &Metadata<'_>, value: &[u8], names: &[&str], variants: &StructArray) {
    let mut text = Vec::new();
    let written = json::value(&mut text, &Keys::new(metadata), value, &Zone::UTC);
    let of_column = print(variants, OnConflict::Error);
    assert_eq!(written.is_ok(), of_column.is_ok(), "{written:?} {of_column:?}");
    if let Ok(column) = of_column {
        assert_eq!(text, column.value(0).as_bytes());
    }
    for name in names.iter().take(8) {
        let steps = [Step::Field((*name).to_owned()), Step::Index(0)];
        let _ = path::get(metadata, value, &steps[..1]);
        let _ = path::get(metadata, value, &steps);
    }
    let _ = path::get(metadata, value, &[Step::Index(0)]);
}

fn check_casts(variants: &StructArray, names: &[&str]) {
    let mut paths = vec![vec![], vec![Step::Index(0)]];
    paths.extend(names.first().map(|name| vec![Step::Field((*name).to_owned())]));
    for target in cast_targets(names.first().unwrap_or(&"a")) {
        for path in &paths {
            let strict = extract(variants, path, &target, &Casting::utc(true), OnConflict::Error);
            let lenient = extract(variants, path, &target, &Casting::utc(false), OnConflict::Error);
            if let Ok(strict) = strict {
                assert!(lenient.is_ok_and(|lenient| *lenient == *strict), "{target} at {path:?}");
            }
        }
    }
}

fn cast_targets(name: &str) -> Vec<DataType> {
    let entries: Fields =
        vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)].into();
    vec![
        DataType::Boolean,
        DataType::Int8,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(38, 10),
        DataType::Decimal128(5, 2),
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Binary,
        DataType::Utf8,
        DataType::Struct(variant_fields()),
        DataType::new_list(DataType::Utf8, true),
        DataType::Struct(vec![Field::new(name, DataType::Int64, true)].into()),
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false),
    ]
}

/// Assert that valid values can be shredded and that shredding preserves them.
/// Check that both ways to print agree where `value` is set next to `typed_value`.
fn check_conflicts(shredded: &StructArray, value: &[u8]) {
    let mut columns = shredded.columns().to_vec();
    let value: ArrayRef = Arc::new(BinaryArray::from(vec![value]));
    for (field, column) in shredded.fields().iter().zip(&mut columns) {
        if field.name() == "value" {
            *column = value.clone();
        }
    }
    let group = StructArray::new(shredded.fields().clone(), columns, None);
    for on_conflict in [OnConflict::Error, OnConflict::Typed] {
        let _ = print(&group, on_conflict);
    }
}

fn check_shredding(variants: &StructArray, schema: &ShreddingSchema, numeric: Numeric, is_valid: bool) {
    let mut bounds = VariantBounds::new(schema);
    let shredded = match shred(variants, schema.clone(), numeric) {
        Ok(shredded) => shredded,
        Err(error) => return assert!(!is_valid, "cannot shred a valid value: {error}"),
    };
    let restored = unshred(&shredded, OnConflict::Error).expect("shredded values can be unshredded");
    let meaning = canonical::rows(variants).expect("shredded values can be read");
    assert_eq!(canonical::rows(&restored).as_ref(), Ok(&meaning));
    assert_eq!(text(&shredded).ok(), text(&restored).ok());
    if is_valid {
        assert_eq!(text(variants).ok(), text(&restored).ok());
    }
    check_conflicts(&shredded, variants.column(1).as_binary::<i32>().value(0));
    bounds.update(&shredded).expect("shredded values have bounds");
    if let Some((least, greatest)) =
        encode_bounds(&bounds.paths(), BoundsLimit { paths: 32, bytes: usize::MAX })
    {
        for bound in [least, greatest] {
            let (metadata, value) = value::split_concatenated(&bound).expect("a bound is a Variant");
            let metadata = Metadata::parse(metadata).expect("a bound has metadata");
            value::validate(&metadata, value).expect("a bound is valid");
        }
    }
}

fn text(group: &StructArray) -> Result<String> {
    print(group, OnConflict::Error).map(|text| text.value(0).to_owned())
}
