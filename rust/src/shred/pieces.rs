//! The JSON text of a column's values, printed one after the other before rows are put together.

use std::ops::Range;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, PrimitiveArray, StringArray};

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
    /// The texts of a dictionary, which stay, and then those of the rows.
    text: Vec<u8>,
    dictionary: Option<Vec<Span>>,
    /// Where the text of each row is.
    spans: Vec<Span>,
}

/// The start and the end of a text.
type Span = (u32, u32);

impl Pieces {
    /// Print the texts of `rows`, which take about `bytes`: `print` appends the text of one row.
    #[inline(always)]
    pub fn print(
        &mut self,
        rows: Range<usize>,
        bytes: usize,
        mut print: impl FnMut(&mut Vec<u8>, usize) -> Result<()>,
    ) -> Result<()> {
        let mut start = self.begin(&rows, bytes);
        for row in rows {
            print(&mut self.text, row)?;
            let end = self.text.len() as u32;
            self.spans.push((start, end));
            start = end;
        }
        self.end()
    }

    /// Print the texts of `rows`: `print` appends the text of one row, or returns its key in the dictionary.
    #[inline(always)]
    fn print_keys(
        &mut self,
        rows: Range<usize>,
        mut print: impl FnMut(&mut Vec<u8>, usize) -> Result<Option<i32>>,
    ) -> Result<()> {
        self.begin(&rows, 0);
        for row in rows {
            let start = self.text.len() as u32;
            let span = match print(&mut self.text, row)? {
                None => (start, self.text.len() as u32),
                Some(key) => {
                    let known = self.dictionary.as_ref().and_then(|dictionary| dictionary.get(key as usize));
                    *known.ok_or_else(|| Error::variant("a column has a key that its dictionary lacks"))?
                }
            };
            self.spans.push(span);
        }
        self.end()
    }

    /// Remove the texts of other rows, and return where those of `rows` begin.
    fn begin(&mut self, rows: &Range<usize>, bytes: usize) -> u32 {
        let dictionary = self.dictionary.as_ref().and_then(|dictionary| dictionary.last());
        let start = dictionary.map_or(0, |(_, end)| *end);
        self.first = rows.start;
        self.text.truncate(start as usize);
        self.text.reserve(bytes + DOUBLE);
        self.spans.clear();
        self.spans.reserve(rows.len());
        start
    }

    fn end(&mut self) -> Result<()> {
        self.check_size()?;
        self.text.extend_from_slice(&[0; DOUBLE]);
        Ok(())
    }

    /// Return an error unless all spans fit.
    fn check_size(&self) -> Result<()> {
        u32::try_from(self.text.len()).map(drop).map_err(|_| Error::too_large())
    }

    /// Print all of a dictionary, unless it was.
    fn print_dictionary(&mut self, texts: impl Iterator<Item = impl FnOnce(&mut Vec<u8>)>) -> Result<()> {
        if self.dictionary.is_some() {
            return Ok(());
        }
        self.text.clear();
        let mut start = 0;
        let spans = texts.map(|print| {
            print(&mut self.text);
            (std::mem::replace(&mut start, self.text.len() as u32), self.text.len() as u32)
        });
        self.dictionary = Some(spans.collect());
        self.check_size()
    }

    /// Append the text of a row of the range.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>, row: usize) {
        if let Some(&(start, end)) = self.spans.get(row - self.first) {
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
            Scalars::Decimal128(array, of) => {
                let values = array.values();
                pieces.print(rows.clone(), self.bytes(&rows), |out, row| {
                    if other(out, row)? {
                        self.prefix.append_to(out);
                        text::decimal(out, of.decimal(values[row])?);
                        out.push(b',');
                    }
                    Ok(())
                })
            }
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
            Scalars::Dictionary(keys, values) if values.len() <= keys.len() => {
                pieces.print_dictionary((0..values.len()).map(|key| {
                    move |out: &mut Vec<u8>| {
                        self.prefix.append_to(out);
                        json::string(out, values.value(key));
                        out.push(b',');
                    }
                }))?;
                let keys = keys.values();
                pieces.print_keys(rows, |out, row| Ok(if other(out, row)? { Some(keys[row]) } else { None }))
            }
            Scalars::Boolean(array) => {
                pieces.print_dictionary(["false", "true"].into_iter().map(|text| {
                    move |out: &mut Vec<u8>| {
                        self.prefix.append_to(out);
                        out.extend_from_slice(text.as_bytes());
                        out.push(b',');
                    }
                }))?;
                let values = array.values();
                pieces.print_keys(rows, |out, row| {
                    Ok(if other(out, row)? { Some(values.value(row).into()) } else { None })
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
