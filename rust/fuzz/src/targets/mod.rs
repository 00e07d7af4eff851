//! What is fuzzed, each by a function that panics where a promise is broken.

pub mod deletion_vector;
pub mod json;
pub mod lines;
pub mod parquet;
pub mod split_variant;
pub mod variant;

/// One way in for bytes that nobody has checked.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// How many bytes the values take that an input holds, where its length does not tell.
    pub held: Option<fn(&[u8]) -> usize>,
}

pub const TARGETS: [Target; 6] = [
    Target { name: "variant", run: variant::run, held: None },
    Target { name: "json", run: json::run, held: None },
    Target { name: "parquet", run: parquet::run, held: Some(parquet::held) },
    Target { name: "split_variant", run: split_variant::run, held: None },
    Target { name: "deletion_vector", run: deletion_vector::run, held: None },
    Target { name: "lines", run: lines::run, held: None },
];

/// Take a byte off the front, which is a choice of the input; 0 where nothing is left.
fn choice(input: &mut &[u8]) -> u8 {
    let Some((first, rest)) = input.split_first() else { return 0 };
    *input = rest;
    *first
}

/// Take off a part that begins with its length, one byte, and ends with the input at the latest.
fn part<'a>(input: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::from(choice(input)).min(input.len());
    let (part, rest) = input.split_at(length);
    *input = rest;
    part
}
