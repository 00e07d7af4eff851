//! The JSON text of a column's values, printed one after the other before rows are put together.

use std::ops::Range;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{PrimitiveArray, StringArray};

use crate::error::{Error, Result};
use crate::value::column::Scalars;
use crate::value::{Zone, json, text};

/// Copies of at most this many bytes copy exactly this many, which needs no call and no loop.
const WIDE: usize = 32;
/// The bytes of a short value with its comma and its quotes.
const SHORT: usize = 12;
const DOUBLE: usize = 2 * WIDE;

/// The texts of a range of rows, reused for the next range.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    first: usize,
    text: Vec<u8>,
    /// The end of each row's text, after a leading 0.
    ends: Vec<u32>,
}

impl Pieces {
    /// Print the texts of `rows`, which take about `bytes`: `print` appends the text of one row.
    #[inline(always)]
    pub fn print(
        &mut self,
        rows: Range<usize>,
        bytes: usize,
        mut print: impl FnMut(&mut Vec<u8>, usize) -> Result<()>,
    ) -> Result<()> {
        self.first = rows.start;
        self.text.clear();
        self.text.reserve(bytes + DOUBLE);
        self.ends.clear();
        self.ends.reserve(rows.len() + 1);
        self.ends.push(0);
        for row in rows {
            print(&mut self.text, row)?;
            self.ends.push(self.text.len() as u32);
        }
        match u32::try_from(self.text.len()) {
            Ok(_) => self.text.extend_from_slice(&[0; DOUBLE]),
            Err(_) => return Err(Error::unsupported("the values of a range of rows take more than 4 GiB")),
        }
        Ok(())
    }

    /// Append the text of a row of the range.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>, row: usize) {
        if let Some(&[start, end]) = self.ends.get(row - self.first..).and_then(|ends| ends.first_chunk()) {
            append(out, &self.text, start as usize..end as usize);
        }
    }
}

/// Append a range of `source`; it is fastest where `source` goes on after the range.
#[inline(always)]
fn append(out: &mut Vec<u8>, source: &[u8], range: Range<usize>) {
    let end = out.len() + range.len();
    let rest = source.get(range.start..).unwrap_or_default();
    match (range.len(), rest.first_chunk::<WIDE>(), rest.first_chunk::<DOUBLE>()) {
        (..=WIDE, Some(chunk), _) => out.extend_from_slice(chunk),
        (..=DOUBLE, _, Some(chunk)) => out.extend_from_slice(chunk),
        _ => out.extend_from_slice(&source[range]),
    }
    out.truncate(end);
}

/// Text that is repeated, such as a key.
#[derive(Debug)]
pub(super) struct Prefix {
    padded: Vec<u8>,
    length: usize,
}

impl Prefix {
    /// The concatenation of `parts`.
    pub fn new(parts: &[&[u8]]) -> Self {
        let mut padded = parts.concat();
        let length = padded.len();
        padded.resize(length + DOUBLE, 0);
        Prefix { padded, length }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    #[inline(always)]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        append(out, &self.padded, 0..self.length);
    }
}

/// Appends the values of a column as JSON, each after `prefix` and before a comma.
pub(super) struct ScalarPrinter<'c> {
    pub column: &'c Scalars<'c>,
    pub prefix: &'c Prefix,
    pub zone: &'c Zone,
}

impl ScalarPrinter<'_> {
    /// Call `print` with a function that appends the value of a row, which must not be null.
    pub fn print(
        &self,
        rows: Range<usize>,
        pieces: &mut Pieces,
        mut other: impl FnMut(&mut Vec<u8>, usize) -> Result<bool>,
    ) -> Result<()> {
        match self.column {
            Scalars::Int8(array) => self.integers(array, rows, pieces, other),
            Scalars::Int16(array) => self.integers(array, rows, pieces, other),
            Scalars::Int32(array) => self.integers(array, rows, pieces, other),
            Scalars::Int64(array) => self.integers(array, rows, pieces, other),
            Scalars::String(array) if is_plain(array, &rows) => {
                let (data, offsets) = (array.value_data(), array.value_offsets());
                let bytes = self.bytes(&rows) + (offsets[rows.end] - offsets[rows.start]) as usize;
                let quoted = Prefix::new(&[&self.prefix.padded[..self.prefix.length], b"\""]);
                pieces.print(rows, bytes, |out, row| {
                    if other(out, row)? {
                        quoted.append_to(out);
                        append(out, data, offsets[row] as usize..offsets[row + 1] as usize);
                        out.extend_from_slice(b"\",");
                    }
                    Ok(())
                })
            }
            column => pieces.print(rows.clone(), self.bytes(&rows), |out, row| {
                if other(out, row)? {
                    self.prefix.append_to(out);
                    json::scalar(out, &column.value(row)?, self.zone)?;
                    out.push(b',');
                }
                Ok(())
            }),
        }
    }

    /// About how many bytes short values take.
    fn bytes(&self, rows: &Range<usize>) -> usize {
        (self.prefix.len() + SHORT) * rows.len()
    }

    fn integers<T: ArrowPrimitiveType<Native: Into<i64>>>(
        &self,
        array: &PrimitiveArray<T>,
        rows: Range<usize>,
        pieces: &mut Pieces,
        mut other: impl FnMut(&mut Vec<u8>, usize) -> Result<bool>,
    ) -> Result<()> {
        let values = array.values();
        pieces.print(rows.clone(), self.bytes(&rows), |out, row| {
            if other(out, row)? {
                self.prefix.append_to(out);
                text::integer(out, values[row].into());
                out.push(b',');
            }
            Ok(())
        })
    }
}

/// Whether the strings of `rows` contain nothing to escape; their bytes are contiguous.
fn is_plain(array: &StringArray, rows: &Range<usize>) -> bool {
    let offsets = array.value_offsets();
    let bytes = &array.value_data()[offsets[rows.start] as usize..offsets[rows.end] as usize];
    json::is_plain(bytes)
}
