//! Decode the leaves of a row group that are not in lists, with their dictionaries.
//!
//! A leaf has a `LeafDecoder`, which reads levels as runs and collects the values of a batch; `rows` puts structs
//! around the leaves. Lists, other types and other encodings are decoded by the `parquet` crate.

mod delta;
mod dictionary;
mod hybrid;
mod leaf;
mod rows;
mod strings;
mod values;

use bytes::Bytes;
use parquet::errors::ParquetError;

pub(super) use hybrid::{Hybrid, Section};
pub(super) use rows::{LeafRows, Plan};

type Result<T> = std::result::Result<T, ParquetError>;

fn broken(what: &str) -> ParquetError {
    ParquetError::General(format!("the file {what}"))
}

/// Bytes that are read from their start.
#[derive(Debug, Default)]
struct Cursor {
    bytes: Bytes,
    at: usize,
}

impl Cursor {
    fn new(bytes: Bytes) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// All bytes, also those that were read.
    fn all(&self) -> &[u8] {
        &self.bytes
    }

    fn position(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn into_rest(self) -> Bytes {
        self.bytes.slice(self.at..)
    }

    fn take(&mut self, length: usize) -> Result<&[u8]> {
        let start = self.at;
        let taken = start.checked_add(length).filter(|&end| end <= self.bytes.len());
        self.at = taken.ok_or_else(|| broken("has a page that ends early"))?;
        Ok(&self.bytes[start..self.at])
    }

    /// Take at most `length` bytes.
    fn take_most(&mut self, length: usize) -> &[u8] {
        let start = self.at;
        self.at = start.saturating_add(length).min(self.bytes.len());
        &self.bytes[start..self.at]
    }

    fn split(&mut self, length: usize) -> Result<Bytes> {
        let start = self.at;
        self.take(length)?;
        Ok(self.bytes.slice(start..self.at))
    }

    /// Take an unsigned LEB128 number.
    fn varint(&mut self) -> Result<u64> {
        varint(|| Ok(self.take(1)?.first().copied().unwrap_or_default()), broken)
    }
}

/// An unsigned LEB128 number of bytes that `next` returns.
pub(super) fn varint<E>(
    mut next: impl FnMut() -> std::result::Result<u8, E>,
    broken: impl Fn(&str) -> E,
) -> std::result::Result<u64, E> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(broken("has an integer of more than ten bytes"))
}
