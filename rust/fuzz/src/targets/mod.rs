//! The fuzz targets: functions that panic if an input violates an invariant.

pub mod deletion_vector;
pub mod functions;
pub mod json;
pub mod lines;
pub mod parquet;
pub mod split_variant;
pub mod variant;

use _native::error::Result;
use _native::shred::OnConflict;
use _native::shred::print::{to_json, to_json_in_ranges};
use _native::value::Zone;
use arrow_array::{StringArray, StructArray};

/// Return the JSON text of a column, after checking that it is the same, or the same error, when it is printed row by
/// row.
fn print(group: &StructArray, on_conflict: OnConflict) -> Result<StringArray> {
    let text = to_json(group, on_conflict, &Zone::UTC);
    assert_eq!(text, to_json_in_ranges(group, on_conflict, &Zone::UTC, 0));
    text
}

/// An entry point for untrusted bytes.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Return the decoded size of the values of an input in bytes, if it can exceed the length of the input.
    pub decoded_size: Option<fn(&[u8]) -> usize>,
}

pub const TARGETS: [Target; 7] = [
    Target { name: "variant", run: variant::run, decoded_size: None },
    Target { name: "functions", run: functions::run, decoded_size: None },
    Target { name: "json", run: json::run, decoded_size: None },
    Target { name: "parquet", run: parquet::run, decoded_size: Some(parquet::decoded_size) },
    Target { name: "split_variant", run: split_variant::run, decoded_size: None },
    Target { name: "deletion_vector", run: deletion_vector::run, decoded_size: None },
    Target { name: "lines", run: lines::run, decoded_size: None },
];

/// Remove and return the first byte, or 0 if the input is empty.
fn choice(input: &mut &[u8]) -> u8 {
    let Some((first, rest)) = input.split_first() else { return 0 };
    *input = rest;
    *first
}

/// Remove and return a part prefixed with its length in one byte; it is shorter if the input ends first.
fn part<'a>(input: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::from(choice(input)).min(input.len());
    let (part, rest) = input.split_at(length);
    *input = rest;
    part
}
