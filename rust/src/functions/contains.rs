//! Whether a Variant contains another one, at any depth, as DuckDB's `variant_contains` defines it.

use arrow_array::builder::BooleanBuilder;
use arrow_array::{BooleanArray, StructArray};

use super::{in_ranges, key};
use crate::error::{Error, Result, each_row};
use crate::value::column::Variants;
use crate::value::{MAX_DEPTH, Metadata, Value, too_deep};

/// A value and the names of its objects.
#[derive(Clone, Copy)]
struct Node<'a> {
    names: &'a Metadata<'a>,
    bytes: &'a [u8],
}

impl<'a> Node<'a> {
    fn at(self, bytes: &'a [u8]) -> Self {
        Node { bytes, ..self }
    }

    /// The bytes by which scalars are compared.
    fn key(self) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        key::push(self.names, self.bytes, 0, &mut key)?;
        Ok(key)
    }
}

/// Return whether each Variant of `haystacks` contains the one of `needles`, null where either is SQL NULL.
pub fn contains(haystacks: &StructArray, needles: &StructArray) -> Result<BooleanArray> {
    let (haystacks, needles) = (Variants::new(haystacks)?, Variants::new(needles)?);
    if haystacks.len() != needles.len() {
        return Err(Error::unsupported("expected as many values as Variants"));
    }
    let parts = in_ranges(haystacks.len(), |rows| {
        let mut out = BooleanBuilder::with_capacity(rows.len());
        each_row(rows, |row| {
            out.append_option(match (haystacks.get(row)?, needles.get(row)?) {
                (Some(haystack), Some(needle)) => Some(is_within(haystack, needle)?),
                _ => None,
            });
            Ok(())
        })?;
        Ok(out.finish())
    })?;
    Ok(parts.iter().flatten().collect())
}

fn is_within(haystack: (&[u8], &[u8]), needle: (&[u8], &[u8])) -> Result<bool> {
    let (names, needle_names) = (Metadata::parse(haystack.0)?, Metadata::parse(needle.0)?);
    let needle = Node { names: &needle_names, bytes: needle.1 };
    occurs(Node { names: &names, bytes: haystack.1 }, needle, 0)
}

/// Whether `haystack` or a value in it matches.
fn occurs(haystack: Node<'_>, needle: Node<'_>, depth: usize) -> Result<bool> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    if matches(haystack, needle, depth)? {
        return Ok(true);
    }
    match Value::decode(haystack.bytes)? {
        Value::Array(array) => {
            any(array.elements(), |element| occurs(haystack.at(element), needle, depth + 1))
        }
        Value::Object(object) => {
            any(object.fields(), |(_, value)| occurs(haystack.at(value), needle, depth + 1))
        }
        _ => Ok(false),
    }
}

/// Whether the values are equal, where an object of `haystack` may have more fields, and an array more elements in any
/// order. Several elements of `needle` may match the same element.
fn matches(haystack: Node<'_>, needle: Node<'_>, depth: usize) -> Result<bool> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match (Value::decode(haystack.bytes)?, Value::decode(needle.bytes)?) {
        (Value::Object(object), Value::Object(wanted)) => {
            all(wanted.fields(), |(id, value)| match object.get(haystack.names, needle.names.get(id)?)? {
                Some(found) => matches(haystack.at(found), needle.at(value), depth + 1),
                None => Ok(false),
            })
        }
        (Value::Array(array), Value::Array(wanted)) => all(wanted.elements(), |value| {
            any(array.elements(), |element| matches(haystack.at(element), needle.at(value), depth + 1))
        }),
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => Ok(false),
        _ => Ok(haystack.key()? == needle.key()?),
    }
}

fn any<T>(
    mut parts: impl Iterator<Item = Result<T>>,
    mut holds: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    parts
        .find_map(|part| {
            part.and_then(&mut holds).map_or_else(|error| Some(Err(error)), |found| found.then_some(Ok(true)))
        })
        .unwrap_or(Ok(false))
}

fn all<T>(parts: impl Iterator<Item = Result<T>>, mut holds: impl FnMut(T) -> Result<bool>) -> Result<bool> {
    any(parts, |part| Ok(!holds(part)?)).map(|fails| !fails)
}
