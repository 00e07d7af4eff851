//! JSON text: a byte of options, an encoded shredding schema, then one text per line.
//!
//! The parser that writes shredded columns must return the same values as parsing followed by shredding.

use std::sync::Arc;

use _native::error::Result;
use _native::json::parse::{JsonShredder, ParseOptions, parse_rows};
use _native::shred::schema::Numeric;
use _native::shred::unshred::unshred;
use _native::shred::variants::shred;
use _native::shred::{OnConflict, ShreddingSchema};
use arrow_array::{Array, ArrayRef, BinaryArray, StructArray};

use super::{choice, part, print};
use crate::{canonical, schema};

/// Names that texts and schemas share.
const NAMES: [&str; 8] = ["a", "b", "", "id", "type", "value", "é", "long name of more than eight bytes"];

/// A row that is not valid JSON: the row, the offset and the message.
type InvalidValue = (usize, usize, String);

pub fn run(mut input: &[u8]) {
    let flags = choice(&mut input);
    let options = ParseOptions { doubles: flags & 1 != 0, last_duplicate: flags & 2 != 0 };
    let schema = schema::from_bytes(part(&mut input), &NAMES);
    let texts: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let text: ArrayRef = Arc::new(BinaryArray::from(texts));

    let (plain, invalid) = parse(&text, ShreddingSchema::Untyped, options).expect("text can be parsed");
    let (fused, fused_invalid) = parse(&text, schema.clone(), options).expect("text can be parsed");
    let rows = |invalid: &[InvalidValue]| invalid.iter().map(|one| one.0).collect::<Vec<_>>();
    assert_eq!(rows(&invalid), rows(&fused_invalid), "{invalid:?} {fused_invalid:?}");

    let variants = unshred(&plain, OnConflict::Error).expect("parsed values can be unshredded");
    let meaning = canonical::rows(&variants).expect("parsed values are valid");
    let shredded = shred(&variants, schema, Numeric::Value).expect("parsed values can be shredded");
    for group in [&shredded, &fused] {
        let restored = unshred(group, OnConflict::Error).expect("shredded values can be unshredded");
        assert_eq!(canonical::rows(&restored).as_ref(), Ok(&meaning));
        assert_eq!(print(group, OnConflict::Error), print(&variants, OnConflict::Error));
    }
    check_columns(&shredded, &fused);
    check_text(&variants, options);
}

fn parse(
    text: &ArrayRef,
    schema: ShreddingSchema,
    options: ParseOptions,
) -> Result<(StructArray, Vec<InvalidValue>)> {
    let mut shredder = JsonShredder::new(schema, options);
    let mut invalid = Vec::new();
    parse_rows(&mut shredder, text, |row, error| {
        invalid.push((row, error.offset, error.message.into_owned()));
    })?;
    Ok((shredder.take()?, invalid))
}

/// Assert that both ways write the same values to `typed_value`.
fn check_columns(shredded: &StructArray, fused: &StructArray) {
    match [shredded, fused].map(|group| group.column_by_name("typed_value")) {
        [Some(shredded), Some(fused)] => assert_eq!(counts(shredded), counts(fused)),
        [shredded, fused] => assert_eq!(shredded.is_some(), fused.is_some()),
    }
}

/// Return the null counts of a column and its children, without the rows whose parent is null.
fn counts(array: &ArrayRef) -> Vec<usize> {
    vec![array.len(), array.null_count()]
}

/// Assert that printing and parsing preserve the values.
fn check_text(variants: &StructArray, options: ParseOptions) {
    let options = ParseOptions { doubles: true, ..options };
    let text = print(variants, OnConflict::Error).expect("parsed values can be printed");
    let text: ArrayRef = Arc::new(text);
    let (again, invalid) = parse(&text, ShreddingSchema::Untyped, options).expect("text can be parsed");
    assert_eq!(invalid, []);
    let printed = print(&again, OnConflict::Error).expect("parsed values can be printed");
    let (third, _) = parse(&(Arc::new(printed.clone()) as ArrayRef), ShreddingSchema::Untyped, options)
        .expect("text can be parsed");
    assert_eq!(print(&third, OnConflict::Error), Ok(printed));
}
