//! BYTE_ARRAY: strings and binary, with the dictionary of the column chunk where the reader keeps it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BinaryArray, DictionaryArray, Int32Array, StringArray, new_null_array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;

use super::super::pages::skip_delta_block;
use super::delta::Deltas;
use super::hybrid::Hybrid;
use super::values::{Values, begun, keys_of, retain, spread, unknown};
use super::{Cursor, Result, broken};

/// Whether the values of a batch are returned as a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Never,
    /// Where all values of the batch are keys.
    Keys,
    Always,
}

pub(super) struct Strings {
    /// Utf8 or Binary.
    data_type: DataType,
    keep: Keep,
    dictionary: Option<Dictionary>,
    page: Page,
    batch: Batch,
    /// The slots that the batch will have.
    expected: usize,
    /// Of the page in progress.
    keys: Vec<i32>,
    lengths: Vec<i32>,
}

struct Dictionary {
    values: ArrayRef,
    /// The buffers of `values`.
    ends: OffsetBuffer<i32>,
    data: Buffer,
}

/// Values back to back, and the end of each after a leading 0.
struct Plain {
    ends: Vec<i32>,
    data: Vec<u8>,
}

/// The slots of the batch.
enum Batch {
    /// Nothing but nulls, so far.
    Nulls(usize),
    Keys(Vec<i32>),
    Plain(Plain),
}

enum Page {
    Plain(Cursor),
    Keys(Option<Hybrid>, Bytes),
    /// Lengths, then the values back to back.
    DeltaLength(Option<(Box<Deltas>, Cursor)>, Bytes),
    DeltaStrings(Option<Box<DeltaStrings>>, Bytes),
}

/// Values that share a prefix with the one before.
struct DeltaStrings {
    prefixes: Deltas,
    suffixes: Deltas,
    data: Cursor,
    last: Vec<u8>,
}

impl Dictionary {
    fn of(plain: Plain, data_type: &DataType) -> Result<Self> {
        let (ends, data) = plain.into_buffers();
        Ok(Dictionary { values: bytes_array(ends.clone(), data.clone(), data_type, None)?, ends, data })
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn get(&self, key: i32) -> Option<&[u8]> {
        let [start, end] = *self.ends.get(key as u32 as usize..)?.first_chunk()?;
        self.data.get(start as usize..end as usize)
    }
}

fn bytes_array(
    ends: OffsetBuffer<i32>,
    data: Buffer,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Utf8 => Arc::new(StringArray::try_new(ends, data, nulls)?),
        _ => Arc::new(BinaryArray::try_new(ends, data, nulls)?),
    })
}

impl Default for Plain {
    fn default() -> Self {
        Plain { ends: vec![0], data: Vec::new() }
    }
}

impl Plain {
    fn with_nulls(count: usize) -> Self {
        Plain { ends: vec![0; count + 1], data: Vec::new() }
    }

    fn len(&self) -> usize {
        self.ends.len() - 1
    }

    fn end(&mut self) -> Result<()> {
        self.ends.push(end_of(self.data.len())?);
        Ok(())
    }

    fn push(&mut self, value: &[u8]) -> Result<()> {
        self.data.extend_from_slice(value);
        self.end()
    }

    fn append_nulls(&mut self, count: usize) {
        let end = self.ends.last().copied().unwrap_or_default();
        self.ends.resize(self.ends.len() + count, end);
    }

    /// Append values that each begin with their length.
    fn read(&mut self, bytes: &mut Cursor, count: usize) -> Result<()> {
        let mut rest = bytes.rest();
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk::<4>().ok_or_else(ends_early)?;
            let (value, after) =
                after.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(ends_early)?;
            self.push(value)?;
            rest = after;
        }
        let read = bytes.rest().len() - rest.len();
        bytes.take(read).map(drop)
    }

    /// Append the values of `keys`.
    fn read_keys(&mut self, keys: &[i32], dictionary: &Dictionary) -> Result<()> {
        for &key in keys {
            self.push(dictionary.get(key).ok_or_else(unknown_key)?)?;
        }
        Ok(())
    }

    /// Append values with these lengths from the start of `data`.
    fn read_lengths(&mut self, lengths: &[i32], data: &mut Cursor) -> Result<()> {
        let mut end = self.data.len();
        for &length in lengths {
            end = usize::try_from(length)
                .ok()
                .and_then(|length| end.checked_add(length))
                .ok_or_else(ends_early)?;
            self.ends.push(end_of(end)?);
        }
        self.data.extend_from_slice(data.take(end - self.data.len())?);
        Ok(())
    }

    /// Spread the last values over as many slots as `levels` has.
    fn spread(&mut self, levels: &[u8], present: u8) {
        let count = levels.iter().filter(|&&level| level == present).count();
        let mut value = self.ends.len() - 1;
        let mut slot = value - count + levels.len();
        self.ends.resize(slot + 1, 0);
        for &level in levels.iter().rev() {
            if slot == value {
                break;
            }
            self.ends[slot] = self.ends[value];
            slot -= 1;
            value -= usize::from(level == present);
        }
    }

    /// Keep those of the last `count` values that are in `kept`.
    fn retain(&mut self, count: usize, kept: &[Range<usize>]) {
        let first = self.len() - count;
        let (mut slot, mut end) = (first, self.ends[first]);
        for range in kept {
            let (start, stop) = (first + range.start, first + range.end);
            let moved = self.ends[start] - end;
            self.data.copy_within(self.ends[start] as usize..self.ends[stop] as usize, end as usize);
            self.ends.copy_within(start + 1..stop + 1, slot + 1);
            self.ends[slot + 1..=slot + range.len()].iter_mut().for_each(|end| *end -= moved);
            slot += range.len();
            end = self.ends[slot];
        }
        self.ends.truncate(slot + 1);
        self.data.truncate(end as usize);
    }

    fn into_buffers(self) -> (OffsetBuffer<i32>, Buffer) {
        (OffsetBuffer::new(ScalarBuffer::from(self.ends)), Buffer::from_vec(self.data))
    }

    fn finish(self, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let (ends, data) = self.into_buffers();
        bytes_array(ends, data, data_type, nulls)
    }
}

impl Strings {
    pub fn new(data_type: DataType, keep: Keep) -> Self {
        Strings {
            data_type,
            keep,
            dictionary: None,
            page: Page::Plain(Cursor::default()),
            batch: Batch::Nulls(0),
            expected: 0,
            keys: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// The slots as values.
    fn plain(&mut self) -> Result<&mut Plain> {
        let plain = match &mut self.batch {
            Batch::Plain(_) => None,
            Batch::Nulls(count) => {
                let mut plain = Plain::with_nulls(*count);
                plain.ends.reserve(self.expected.saturating_sub(*count));
                Some(plain)
            }
            Batch::Keys(keys) => {
                let mut plain = Plain::default();
                for &key in keys.iter() {
                    // The key of a null is 0, whatever the dictionary.
                    let value = self.dictionary.as_ref().and_then(|dictionary| dictionary.get(key));
                    plain.push(value.unwrap_or_default())?;
                }
                Some(plain)
            }
        };
        if let Some(plain) = plain {
            self.batch = Batch::Plain(plain);
        }
        match &mut self.batch {
            Batch::Plain(plain) => Ok(plain),
            _ => Err(broken("cannot be decoded")),
        }
    }

    /// The keys of the slots, if all of them are keys and the reader keeps these.
    fn coded(&mut self) -> Option<&mut Vec<i32>> {
        if self.keep == Keep::Never {
            return None;
        }
        if let Batch::Nulls(count) = self.batch {
            let mut keys = Vec::with_capacity(self.expected.max(count));
            keys.resize(count, 0);
            self.batch = Batch::Keys(keys);
        }
        match &mut self.batch {
            Batch::Keys(keys) => Some(keys),
            _ => None,
        }
    }

    fn dictionary_type(&self) -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(self.data_type.clone()))
    }
}

impl Values for Strings {
    fn begin_dictionary(&mut self, bytes: Bytes, count: usize) -> Result<()> {
        let mut plain = Plain::default();
        plain.read(&mut Cursor::new(bytes), count)?;
        self.dictionary = Some(Dictionary::of(plain, &self.data_type)?);
        Ok(())
    }

    fn begin_page(&mut self, encoding: Encoding, bytes: Bytes) -> Result<()> {
        self.page = match encoding {
            Encoding::PLAIN => Page::Plain(Cursor::new(bytes)),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => Page::Keys(None, bytes),
            Encoding::DELTA_LENGTH_BYTE_ARRAY => Page::DeltaLength(None, bytes),
            Encoding::DELTA_BYTE_ARRAY => Page::DeltaStrings(None, bytes),
            other => return Err(unknown(other)),
        };
        Ok(())
    }

    fn expect(&mut self, slots: usize) {
        self.expected = slots;
    }

    fn read(&mut self, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        if let Page::Keys(..) = &self.page
            && self.coded().is_some()
        {
            let (Page::Keys(page, bytes), Batch::Keys(keys)) = (&mut self.page, &mut self.batch) else {
                return Err(unknown_key());
            };
            let start = keys.len();
            begun(page, bytes, keys_of)?.read(count, keys)?;
            let distinct = self.dictionary.as_ref().map_or(0, Dictionary::len);
            // Without an early end the loop is vectorized.
            let has_unknown =
                keys[start..].iter().fold(false, |found, &key| found | (key as u32 as usize >= distinct));
            return if has_unknown { Err(unknown_key()) } else { Ok(()) };
        }
        self.plain()?;
        let Batch::Plain(plain) = &mut self.batch else { return Err(unknown_key()) };
        match &mut self.page {
            Page::Plain(bytes) => plain.read(bytes, count),
            Page::Keys(page, bytes) => {
                self.keys.clear();
                begun(page, bytes, keys_of)?.read(count, &mut self.keys)?;
                let dictionary = self.dictionary.as_ref().ok_or_else(unknown_key)?;
                plain.read_keys(&self.keys, dictionary)
            }
            Page::DeltaLength(page, bytes) => {
                let (lengths, data) = begun(page, bytes, lengths_of)?;
                self.lengths.clear();
                lengths.read(count, &mut self.lengths, |length| length as i32)?;
                plain.read_lengths(&self.lengths, data)
            }
            Page::DeltaStrings(page, bytes) => begun(page, bytes, DeltaStrings::of)?.read(count, plain),
        }
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        let batch = std::mem::replace(&mut self.batch, Batch::Nulls(0));
        let expected = std::mem::take(&mut self.expected);
        let skipped = self.read(count);
        (self.batch, self.expected) = (batch, expected);
        skipped
    }

    fn append_nulls(&mut self, count: usize) {
        match &mut self.batch {
            Batch::Nulls(nulls) => *nulls += count,
            Batch::Keys(keys) => keys.resize(keys.len() + count, 0),
            Batch::Plain(plain) => plain.append_nulls(count),
        }
    }

    fn spread(&mut self, levels: &[u8], present: u8) {
        match &mut self.batch {
            Batch::Nulls(nulls) => *nulls += levels.len(),
            Batch::Keys(keys) => spread(keys, levels, present),
            Batch::Plain(plain) => plain.spread(levels, present),
        }
    }

    fn retain(&mut self, count: usize, kept: &[Range<usize>]) {
        match &mut self.batch {
            Batch::Nulls(nulls) => {
                *nulls = *nulls - count + kept.iter().map(ExactSizeIterator::len).sum::<usize>();
            }
            Batch::Keys(keys) => retain(keys, count, kept),
            Batch::Plain(plain) => plain.retain(count, kept),
        }
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let values = match std::mem::replace(&mut self.batch, Batch::Nulls(0)) {
            Batch::Keys(keys) => {
                let keys = Int32Array::try_new(keys.into(), nulls)?;
                let values = self.dictionary.as_ref().ok_or_else(unknown_key)?.values.clone();
                return Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values)?));
            }
            Batch::Nulls(count) => Plain::with_nulls(count),
            Batch::Plain(plain) => plain,
        };
        match self.keep {
            Keep::Always => {
                let keys = (0..end_of(values.len())?).collect::<Vec<_>>();
                let keys = Int32Array::try_new(keys.into(), nulls)?;
                let values = values.finish(&self.data_type, None)?;
                Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values)?))
            }
            _ => values.finish(&self.data_type, nulls),
        }
    }

    fn clear(&mut self) {
        self.batch = Batch::Nulls(0);
    }

    fn nulls(&self, count: usize) -> ArrayRef {
        match self.keep {
            Keep::Always => new_null_array(&self.dictionary_type(), count),
            _ => new_null_array(&self.data_type, count),
        }
    }
}

impl DeltaStrings {
    fn of(bytes: Bytes) -> Result<Box<Self>> {
        let suffixes = after_deltas(&bytes)?;
        let data = Cursor::new(after_deltas(&suffixes)?);
        let (prefixes, suffixes) = (Deltas::new(bytes)?, Deltas::new(suffixes)?);
        Ok(Box::new(DeltaStrings { prefixes, suffixes, data, last: Vec::new() }))
    }

    fn read(&mut self, count: usize, out: &mut Plain) -> Result<()> {
        let (mut prefixes, mut suffixes) = (Vec::new(), Vec::new());
        self.prefixes.read(count, &mut prefixes, |length| length)?;
        self.suffixes.read(count, &mut suffixes, |length| length)?;
        for (prefix, suffix) in prefixes.into_iter().zip(suffixes) {
            let prefix = usize::try_from(prefix).ok().filter(|length| *length <= self.last.len());
            let suffix = usize::try_from(suffix).map_err(|_| ends_early())?;
            self.last.truncate(prefix.ok_or_else(|| broken("has a prefix longer than the value before"))?);
            self.last.extend_from_slice(self.data.take(suffix)?);
            out.push(&self.last)?;
        }
        Ok(())
    }
}

/// The lengths of a page, and the values after them.
fn lengths_of(bytes: Bytes) -> Result<(Box<Deltas>, Cursor)> {
    let data = Cursor::new(after_deltas(&bytes)?);
    Ok((Box::new(Deltas::new(bytes)?), data))
}

fn after_deltas(bytes: &Bytes) -> Result<Bytes> {
    let rest = skip_delta_block(bytes, u32::MAX)?;
    Ok(bytes.slice_ref(rest))
}

fn end_of(length: usize) -> Result<i32> {
    i32::try_from(length).map_err(|_| broken("has more than 2 GiB of strings in one batch"))
}

fn ends_early() -> parquet::errors::ParquetError {
    broken("has strings that end early")
}

fn unknown_key() -> parquet::errors::ParquetError {
    broken("has a key that its dictionary lacks")
}
