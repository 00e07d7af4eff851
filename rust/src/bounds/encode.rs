//! Encode the bounds of a Variant column as the two Variant objects of a file's statistics (PROTOCOL.md, "Per-file
//! Statistics").

use std::cmp::Reverse;

use super::{PathReport, Scalar, Step};
use crate::shred::LeafType;
use crate::value::path::push_field;
use crate::value::{Value, encode, metadata};

/// The number of code points to which a bound truncates a string.
const MAX_CHARS: usize = 32;

/// What the bounds of one Variant column may have in the statistics of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundsLimit {
    pub paths: usize,
    /// The bytes of both Variants.
    pub bytes: usize,
}

/// The most bytes of an id and two offsets, which each field of a Variant object has in addition to its name and value.
const FIELD_BYTES: usize = 12;
/// The most bytes of the headers of a Variant object and its metadata.
const OBJECT_BYTES: usize = 16;

/// The Variants of the least and of the greatest values, each as `metadata‖value`.
///
/// Of the qualifying paths, they have the most filled ones that fit the limit; `None` if there are none. A string
/// whose maximum cannot be truncated is only in the first.
pub fn encode_bounds(paths: &[PathReport], limit: BoundsLimit) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut chosen: Vec<_> = paths.iter().filter_map(entry).collect();
    chosen.sort_by(|a, b| (Reverse(a.typed), &a.key).cmp(&(Reverse(b.typed), &b.key)));
    let mut left = limit.bytes.saturating_sub(2 * OBJECT_BYTES);
    // A path with a long name does not exclude the shorter ones after it.
    chosen.retain(|entry| {
        let fits = entry.bytes() <= left;
        left -= if fits { entry.bytes() } else { 0 };
        fits
    });
    chosen.truncate(limit.paths);
    chosen.sort_by(|a, b| a.key.cmp(&b.key));
    if chosen.is_empty() {
        return None;
    }
    let least = object(chosen.iter().map(|entry| (entry.key.as_str(), &entry.min)));
    let greatest = object(chosen.iter().filter_map(|entry| Some((entry.key.as_str(), entry.max.as_ref()?))));
    Some((least, greatest))
}

/// The normalized path (RFC 9535) of the member reached through `names`.
pub fn normalize_path<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut path = String::from("$");
    names.into_iter().for_each(|name| push_field(&mut path, name));
    path
}

/// A path with its bounds as Variant values.
struct Entry {
    key: String,
    typed: u64,
    min: Vec<u8>,
    max: Option<Vec<u8>>,
}

impl Entry {
    /// The most bytes that the path takes in both Variants.
    fn bytes(&self) -> usize {
        2 * (self.key.len() + FIELD_BYTES) + self.min.len() + self.max.as_ref().map_or(0, Vec::len)
    }
}

fn entry(report: &PathReport) -> Option<Entry> {
    let (min, max) = report.bounds.as_ref().filter(|_| report.qualifies())?;
    let names = report.path.iter().map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Element => None,
    });
    Some(Entry {
        key: normalize_path(names.collect::<Option<Vec<_>>>()?),
        typed: report.typed,
        min: encode_bound(report.leaf_type, &truncate_min(min))?,
        max: truncate_max(max).and_then(|max| encode_bound(report.leaf_type, &max)),
    })
}

/// Return a bound that is at most `min`: a string is truncated.
fn truncate_min(min: &Scalar) -> Scalar {
    match min {
        Scalar::String(text) => Scalar::String(first_chars(text).to_owned()),
        other => other.clone(),
    }
}

/// Return a bound that is at least `max`: a long string is truncated and the last code point, U+10FFFF, appended;
/// `None` if that is not greater.
fn truncate_max(max: &Scalar) -> Option<Scalar> {
    match max {
        Scalar::String(text) if first_chars(text).len() < text.len() => {
            let bound = format!("{}{}", first_chars(text), char::MAX);
            (bound > *text).then_some(Scalar::String(bound))
        }
        other => Some(other.clone()),
    }
}

fn first_chars(text: &str) -> &str {
    text.char_indices().nth(MAX_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// The Variant value of a bound, of the type of its column; `None` for a type without bounds.
fn encode_bound(leaf_type: LeafType, bound: &Scalar) -> Option<Vec<u8>> {
    let value = match (leaf_type, bound) {
        (LeafType::Decimal { precision, scale }, Scalar::Decimal(unscaled)) => {
            return Some(decimal(precision, scale, *unscaled));
        }
        (LeafType::Int8, Scalar::Integer(v)) => Value::Int8(*v as i8),
        (LeafType::Int16, Scalar::Integer(v)) => Value::Int16(*v as i16),
        (LeafType::Int32, Scalar::Integer(v)) => Value::Int32(*v as i32),
        (LeafType::Int64, Scalar::Integer(v)) => Value::Int64(*v),
        (LeafType::Date, Scalar::Integer(v)) => Value::Date(*v as i32),
        (LeafType::Timestamp, Scalar::Integer(v)) => Value::Timestamp(*v),
        (LeafType::TimestampNtz, Scalar::Integer(v)) => Value::TimestampNtz(*v),
        (LeafType::Float, Scalar::Float(v)) => Value::Float(*v),
        (LeafType::Double, Scalar::Double(v)) => Value::Double(*v),
        (LeafType::String, Scalar::String(v)) => Value::String(v),
        _ => return None,
    };
    let mut bytes = Vec::new();
    encode::scalar(&mut bytes, &value);
    Some(bytes)
}

/// A decimal in the width of its column instead of that of its digits.
fn decimal(precision: u8, scale: u8, unscaled: i128) -> Vec<u8> {
    let (id, width) = match precision {
        0..=9 => (8, 4),
        10..=18 => (9, 8),
        _ => (10, 16),
    };
    let mut bytes = vec![id << 2, scale];
    bytes.extend_from_slice(&unscaled.to_le_bytes()[..width]);
    bytes
}

/// The object of `fields`, which are in the order of their keys.
///
/// The names are sorted but the header does not mark them as sorted, as in Spark: then the bytes are equal.
fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a Vec<u8>)> + Clone) -> Vec<u8> {
    let mut bytes = Vec::new();
    metadata::write(&mut bytes, fields.clone().map(|(key, _)| key), false);
    let offsets = fields.clone().scan(0, |end, (_, value)| {
        let offset = *end;
        *end += value.len();
        Some(offset)
    });
    let (length, size) = fields.clone().fold((0, 0), |(n, size), (_, value)| (n + 1, size + value.len()));
    let id_size = metadata::unsigned_size(length.max(1) - 1);
    encode::Layout::object(length, size, id_size).write_object(&mut bytes, offsets.enumerate());
    fields.for_each(|(_, value)| bytes.extend_from_slice(value));
    bytes
}
