//! The functions of Variants: a path, a second Variant as an argument, then the Variant, as `metadata‖value`.
//!
//! Bytes that are not a Variant may cause errors. Of valid ones, the results are valid and agree with each other.

use std::collections::BTreeMap;

use _native::functions::change::{Change, change_rows, delete_rows, strip_nulls_rows};
use _native::functions::contains::contains;
use _native::functions::contents::{are_valid, array_lengths, object_keys};
use _native::functions::explode::explode;
use _native::functions::key::keys;
use _native::functions::matches::matches;
use _native::functions::schema_of::{merged_schema, schema_of};
use _native::json::parse::{JsonShredder, ParseOptions, parse_rows};
use _native::shred::unshred::unshred;
use _native::shred::{OnConflict, ShreddingSchema};
use _native::value::path::{self, Step};
use _native::value::{Decimal, Metadata, Value, validate};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use std::sync::Arc;

use super::{choice, part, print, variant};

const CHANGES: [Change; 4] =
    [Change::Insert, Change::Set { create: true }, Change::Set { create: false }, Change::Append];
/// Names that paths have besides those of the Variant.
const NAMES: [&str; 4] = ["a", "", "é", "a long name that no value has"];
const MAX_STEPS: usize = 5;
/// How many parts of a Variant are compared with each other.
const MAX_PARTS: usize = 6;

pub fn run(mut input: &[u8]) {
    let steps = part(&mut input);
    let flags = choice(&mut input);
    let argument = part(&mut input);
    let (argument, subject) = (split(argument), split(input));
    let path = path_of(steps, subject.0);
    let (other, one) = (variant::variants(argument.0, argument.1), variant::variants(subject.0, subject.1));
    let is_valid = [&one, &other].map(|each| are_valid(each).is_ok_and(|valid| valid.value(0)));
    for (row, valid) in [subject, argument].iter().zip(is_valid) {
        let expected = Metadata::parse(row.0).is_ok_and(|names| validate(&names, row.1).is_ok());
        assert_eq!(valid, expected, "is_valid differs from the validation");
    }
    // Types of a later version are valid, and most functions reject them.
    let is_valid =
        [(is_valid[0], subject.1), (is_valid[1], argument.1)].map(|(valid, value)| valid && is_known(value));
    let change = CHANGES[usize::from(flags) % CHANGES.len()];
    if is_valid == [true, true] {
        check_change(&one, &path, &other, change);
        check_keys(&one, &other);
    } else {
        let _ = change_rows(&one, &path, &other, change, flags & 4 != 0);
        let _ = contains(&one, &other);
    }
    if is_valid[0] {
        check_deletion(&one, &path);
        check_parts(&one);
        check_stripped(&one);
        check_schema(&one);
        check_text(&one);
    } else {
        let _ = (delete_rows(&one, std::slice::from_ref(&path)), strip_nulls_rows(&one, flags & 8 != 0));
        let _ = (explode(&one, true), keys(&one), schema_of(&one), array_lengths(&one), object_keys(&one));
        let _ = matches(&one, &path.into_iter().map(Some).chain([None]).collect::<Vec<_>>());
    }
}

fn split(input: &[u8]) -> (&[u8], &[u8]) {
    match Metadata::parse_prefix(input) {
        Ok(metadata) => input.split_at(metadata.as_bytes().len()),
        Err(_) => input.split_at(input.len() / 2),
    }
}

/// Whether all types of a valid value are known.
fn is_known(bytes: &[u8]) -> bool {
    match Value::decode(bytes).expect("the value is valid") {
        Value::Unknown(_) => false,
        Value::Array(array) => array.elements().all(|part| is_known(part.unwrap())),
        Value::Object(object) => object.fields().all(|field| is_known(field.unwrap().1)),
        _ => true,
    }
}

/// Decode a path: a byte below 128 is a name of the Variant or of [`NAMES`], any other an index.
fn path_of(steps: &[u8], metadata: &[u8]) -> Vec<Step> {
    let parsed = Metadata::parse(metadata);
    let names: Vec<&str> =
        parsed.iter().flat_map(|metadata| metadata.names()).take(64).chain(NAMES).collect();
    let step = |&byte: &u8| match byte {
        0..128 => Step::Field(names[usize::from(byte) % names.len()].to_owned()),
        _ => Step::Index(usize::from(byte) % 6),
    };
    steps.iter().take(MAX_STEPS).map(step).collect()
}

/// Return the metadata and the value of a row; `None` for SQL NULL.
fn row(variants: &StructArray, row: usize) -> Option<(&[u8], &[u8])> {
    let [metadata, values] = ["metadata", "value"].map(|name| variants.column_by_name(name).unwrap());
    variants
        .is_valid(row)
        .then(|| (metadata.as_binary::<i32>().value(row), values.as_binary::<i32>().value(row)))
}

fn only(mut parts: Vec<StructArray>) -> StructArray {
    assert_eq!(parts.iter().map(Array::len).sum::<usize>(), 1, "one row has one result");
    let found = parts.remove(0);
    if let Some((metadata, value)) = row(&found, 0) {
        let names = Metadata::parse(metadata).expect("a result has metadata");
        validate(&names, value).expect("a result is valid");
    }
    found
}

/// Return the value at a path as a reference value.
fn at(variants: &StructArray, path: &[Step]) -> Option<Reference> {
    let (metadata, value) = row(variants, 0)?;
    let names = Metadata::parse(metadata).unwrap();
    path::get(&names, value, path).unwrap().map(|found| Reference::of(&names, found))
}

/// Assert that a value can be read where it was put, and that `try_` differs only in errors.
fn check_change(one: &StructArray, path: &[Step], new: &StructArray, change: Change) {
    let strict = change_rows(one, path, new, change, true).map(only);
    let lenient = change_rows(one, path, new, change, false).map(only);
    let Ok(changed) = strict else {
        // A result that is too large or too deep is an error of both.
        return assert!(lenient.is_err() || lenient.is_ok_and(|found| found.is_null(0)));
    };
    let again = lenient.expect("what succeeds also succeeds with try_");
    assert_eq!(at(&changed, &[]), at(&again, &[]));
    let existed = at(one, path).is_some();
    match change {
        Change::Append => {
            let Some(Reference::Array(before)) = at(one, path) else { return };
            let mut expected = before;
            expected.extend(at(new, &[]));
            assert_eq!(at(&changed, path), Some(Reference::Array(expected)));
        }
        Change::Set { create: false } if !existed => assert_eq!(at(&changed, &[]), at(one, &[])),
        _ => assert_eq!(at(&changed, path), at(new, &[]), "{change:?} at {path:?}"),
    }
}

fn check_deletion(one: &StructArray, path: &[Step]) {
    let delete = |from: &StructArray| delete_rows(from, &[path.to_vec()]).map(only);
    let Ok(deleted) = delete(one) else { return };
    match path.last() {
        Some(Step::Field(_)) => {
            assert_eq!(at(&deleted, path), None, "{path:?}");
            assert_eq!(at(&delete(&deleted).unwrap(), &[]), at(&deleted, &[]));
        }
        Some(Step::Index(_)) => {
            let length = |variants| match at(variants, &path[..path.len() - 1]) {
                Some(Reference::Array(elements)) => elements.len(),
                _ => 0,
            };
            let removed = usize::from(at(one, path).is_some() && length(one) > 0);
            assert_eq!(length(&deleted), length(one) - removed);
        }
        None => {}
    }
}

/// Assert that the keys of two values are equal if the values are, and ordered the same way in both directions.
fn check_keys(one: &StructArray, other: &StructArray) {
    let found = [one, other].map(|each| keys(each).expect("valid values have keys").value(0).to_vec());
    assert_eq!(found[0] == found[1], at(one, &[]) == at(other, &[]), "keys are equal if the values are");
    let within = contains(one, other).expect("valid values can be searched").value(0);
    assert!(within || found[0] != found[1], "a value contains an equal one");
    assert!(contains(one, one).unwrap().value(0), "a value contains itself");
}

/// Assert that the rows of `variant_explode` are the parts at each field and index.
fn check_parts(one: &StructArray) {
    let rows = explode(one, false).expect("a valid value can be exploded");
    let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
    let lengths = array_lengths(one).unwrap();
    let names = object_keys(one).unwrap();
    let expected = match (lengths.is_valid(0), names.is_valid(0)) {
        (true, _) => lengths.value(0) as usize,
        (_, true) => names.value_length(0) as usize,
        _ => 0,
    };
    assert_eq!(count, expected, "a row for each part");
    let all = matches(one, &[None]).map(only).expect("a valid value has matches");
    let mut parts = Vec::new();
    for batch in &rows {
        let positions = batch.column_by_name("pos").unwrap().as_primitive::<Int32Type>();
        let fields = batch.column_by_name("key").unwrap().as_string::<i32>();
        let values = batch.column_by_name("value").unwrap().as_struct();
        for at_row in 0..batch.num_rows().min(MAX_PARTS) {
            let position = positions.value(at_row) as usize;
            let step = match fields.is_valid(at_row) {
                true => Step::Field(fields.value(at_row).to_owned()),
                false => Step::Index(position),
            };
            let (metadata, value) = row(values, at_row).expect("a part is not NULL");
            let reference = Reference::of(&Metadata::parse(metadata).unwrap(), value);
            assert_eq!(at(one, &[step]).as_ref(), Some(&reference));
            assert_eq!(at(&all, &[Step::Index(position)]).as_ref(), Some(&reference));
            parts.push((variant::variants(metadata, value), reference));
        }
    }
    for (position, (part, reference)) in parts.iter().enumerate() {
        assert!(contains(one, part).unwrap().value(0), "a value contains its parts");
        let key = keys(part).unwrap().value(0).to_vec();
        for (other, other_reference) in &parts[..position] {
            assert_eq!(keys(other).unwrap().value(0) == key, other_reference == reference);
        }
    }
}

fn check_stripped(one: &StructArray) {
    for arrays in [true, false] {
        let Ok(stripped) = strip_nulls_rows(one, arrays).map(only) else { continue };
        let again = strip_nulls_rows(&stripped, arrays).map(only).expect("a result can be stripped");
        assert_eq!(at(&again, &[]), at(&stripped, &[]));
        let reference = at(&stripped, &[]).unwrap();
        assert!(reference == Reference::Null || !reference.has_nulls(arrays), "{reference:?}");
    }
}

/// Assert that the type of a value includes the value itself.
fn check_schema(one: &StructArray) {
    let Ok(text) = schema_of(one) else { return };
    let known = merged_schema(one).unwrap();
    assert_eq!(known.to_string(), text.value(0));
    assert_eq!(known.clone().merged(known.clone()), known);
}

/// Assert that JSON text can be parsed and printed again without a change.
fn check_text(one: &StructArray) {
    let text = print(one, OnConflict::Error).expect("a valid value can be printed");
    let (Some(parsed), reference) = (parse(text.value(0)), at(one, &[]).unwrap()) else { return };
    let again = print(&parsed, OnConflict::Error).expect("a parsed value can be printed");
    let third = print(&parse(again.value(0)).expect("printed text is JSON"), OnConflict::Error).unwrap();
    assert_eq!(third, again);
    if reference.is_json() {
        assert_eq!(at(&parsed, &[]), Some(reference), "{}", text.value(0));
    }
}

/// Return JSON text as a Variant; numbers such as infinity have none.
fn parse(text: &str) -> Option<StructArray> {
    let options = ParseOptions { doubles: false, last_duplicate: false };
    let mut shredder = JsonShredder::new(ShreddingSchema::Untyped, options);
    let rows: ArrayRef = Arc::new(arrow_array::StringArray::from(vec![text]));
    let mut is_valid = true;
    parse_rows(&mut shredder, &rows, |_, _| is_valid = false).expect("text can be parsed");
    let parsed = unshred(&shredder.take().unwrap(), OnConflict::Error).unwrap();
    is_valid.then_some(parsed)
}

/// A value by its meaning (VariantEncoding.md, "Equivalence Class"), decoded without the code of the functions.
#[derive(Debug, Clone, PartialEq)]
enum Reference {
    Null,
    Boolean(bool),
    /// An exact number without zeros at its end.
    Exact(i128, u8),
    /// NaN has no bits of its own, and both zeros are one.
    Float(Option<u32>),
    Double(Option<u64>),
    /// A type, and nanoseconds or days.
    Moment(&'static str, i128),
    Text(String),
    Bytes(&'static str, Vec<u8>),
    Array(Vec<Reference>),
    Object(BTreeMap<String, Reference>),
}

impl Reference {
    fn of(names: &Metadata<'_>, bytes: &[u8]) -> Self {
        match Value::decode(bytes).expect("the value is valid") {
            Value::Null => Reference::Null,
            Value::Boolean(v) => Reference::Boolean(v),
            Value::Int8(v) => exact(v.into(), 0),
            Value::Int16(v) => exact(v.into(), 0),
            Value::Int32(v) => exact(v.into(), 0),
            Value::Int64(v) => exact(v.into(), 0),
            Value::Decimal(Decimal { unscaled, scale }) => exact(unscaled, scale),
            Value::Float(v) => Reference::Float((!v.is_nan()).then_some((v + 0.0).to_bits())),
            Value::Double(v) => Reference::Double((!v.is_nan()).then_some((v + 0.0).to_bits())),
            Value::Date(v) => Reference::Moment("date", v.into()),
            Value::Time(v) => Reference::Moment("time", v.into()),
            Value::Timestamp(v) => Reference::Moment("timestamp", i128::from(v) * 1000),
            Value::TimestampNanos(v) => Reference::Moment("timestamp", v.into()),
            Value::TimestampNtz(v) => Reference::Moment("timestamp_ntz", i128::from(v) * 1000),
            Value::TimestampNtzNanos(v) => Reference::Moment("timestamp_ntz", v.into()),
            Value::String(v) => Reference::Text(v.to_owned()),
            Value::Binary(v) => Reference::Bytes("binary", v.to_vec()),
            Value::Uuid(v) => Reference::Bytes("uuid", v.to_vec()),
            Value::Array(array) => {
                Reference::Array(array.elements().map(|part| Self::of(names, part.unwrap())).collect())
            }
            Value::Object(object) => Reference::Object(
                object
                    .fields()
                    .map(|field| {
                        let (id, value) = field.unwrap();
                        (names.get(id).unwrap().to_owned(), Self::of(names, value))
                    })
                    .collect(),
            ),
            Value::Unknown(id) => panic!("a valid value has no type {id}"),
        }
    }

    fn parts(&self) -> Vec<&Reference> {
        match self {
            Reference::Array(elements) => elements.iter().collect(),
            Reference::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a field is null, and with `arrays` an element.
    fn has_nulls(&self, arrays: bool) -> bool {
        let counts = arrays || !matches!(self, Reference::Array(_));
        self.parts().iter().any(|part| counts && **part == Reference::Null || part.has_nulls(arrays))
    }

    /// Whether JSON text has the value: without types that only Variants have.
    fn is_json(&self) -> bool {
        match self {
            Reference::Null | Reference::Boolean(_) | Reference::Exact(_, _) | Reference::Text(_) => true,
            Reference::Array(_) | Reference::Object(_) => self.parts().iter().all(|part| part.is_json()),
            _ => false,
        }
    }
}

fn exact(mut unscaled: i128, mut scale: u8) -> Reference {
    while scale > 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    Reference::Exact(unscaled, scale)
}
