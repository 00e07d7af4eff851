//! The values of a leaf without its nulls, collected from pages and spread over the slots of a batch.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, make_array, new_null_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;

use super::delta::Deltas;
use super::hybrid::Hybrid;
use super::{Cursor, Result, broken};

/// Collects the values of a batch, page after page.
pub(super) trait Values: Send {
    /// Take the values of the dictionary of the column chunk.
    fn begin_dictionary(&mut self, plain: Bytes, count: usize) -> Result<()>;

    /// Continue with the values of a page.
    fn begin_page(&mut self, encoding: Encoding, bytes: Bytes) -> Result<()>;

    /// Prepare for a batch of `slots`.
    fn expect(&mut self, slots: usize);

    /// Append the next `count` values.
    fn read(&mut self, count: usize) -> Result<()>;

    /// Leave out the next `count` values.
    fn skip(&mut self, count: usize) -> Result<()>;

    /// Append `count` slots without a value.
    fn append_nulls(&mut self, count: usize);

    /// Spread the last values over as many slots as `levels` has: those that have the level `present`.
    fn spread(&mut self, levels: &[u8], present: u8);

    /// Keep those of the last `count` slots that are in `kept`, which are ordered ranges.
    fn retain(&mut self, count: usize, kept: &[Range<usize>]);

    /// Return the slots of the batch, and begin the next batch.
    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef>;

    /// Forget the slots of the batch, and begin the next batch.
    fn clear(&mut self);

    /// Return the slots of a batch of nulls.
    fn nulls(&self, count: usize) -> ArrayRef;
}

/// Spread the last elements of `values` over as many slots as `levels` has: those that have the level `present`.
pub(super) fn spread<T: Copy + Default>(values: &mut Vec<T>, levels: &[u8], present: u8) {
    let mut value = values.len();
    let count = levels.iter().filter(|&&level| level == present).count();
    let mut slot = value - count + levels.len();
    values.resize(slot, T::default());
    for &level in levels.iter().rev() {
        if slot == value {
            // All slots before have a value.
            break;
        }
        slot -= 1;
        if level == present {
            value -= 1;
            values[slot] = values[value];
        } else {
            values[slot] = T::default();
        }
    }
}

/// Keep those of the last `count` elements of `values` that are in `kept`.
pub(super) fn retain<T: Copy>(values: &mut Vec<T>, count: usize, kept: &[Range<usize>]) {
    let first = values.len() - count;
    let mut end = first;
    for range in kept {
        values.copy_within(first + range.start..first + range.end, end);
        end += range.len();
    }
    values.truncate(end);
}

/// A number of a Parquet type.
pub(super) trait Number: Copy + Default + Send + arrow_buffer::ArrowNativeType {
    const SIZE: usize;

    fn of_plain(bytes: &[u8]) -> Self;

    /// The number of a delta encoding.
    fn of_delta(value: i64) -> Self;

    fn widen(self) -> i128;
}

macro_rules! number {
    ($type:ty) => {
        impl Number for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline(always)]
            fn of_plain(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(0, |bytes| <$type>::from_le_bytes(*bytes))
            }

            #[inline(always)]
            fn of_delta(value: i64) -> Self {
                value as $type
            }

            fn widen(self) -> i128 {
                i128::from(self)
            }
        }
    };
}

number!(i32);
number!(i64);

/// INT32 and INT64, and the bits of FLOAT and DOUBLE.
pub(super) struct Numbers<T> {
    data_type: DataType,
    values: Vec<T>,
    /// The slots that the batch will have.
    expected: usize,
    dictionary: Vec<T>,
    keys: Vec<i32>,
    page: NumberPage,
}

enum NumberPage {
    Plain(Cursor),
    Keys(Option<Hybrid>, Bytes),
    Deltas(Option<Box<Deltas>>, Bytes),
}

impl<T: Number> Numbers<T> {
    pub fn new(data_type: DataType) -> Self {
        let (values, expected, dictionary, keys) = Default::default();
        Numbers { data_type, values, expected, dictionary, keys, page: NumberPage::Plain(Cursor::default()) }
    }
}

impl<T: Number> Values for Numbers<T> {
    fn begin_dictionary(&mut self, plain: Bytes, count: usize) -> Result<()> {
        read_plain(&mut Cursor::new(plain), count, &mut self.dictionary)
    }

    fn begin_page(&mut self, encoding: Encoding, bytes: Bytes) -> Result<()> {
        self.page = match encoding {
            Encoding::PLAIN => NumberPage::Plain(Cursor::new(bytes)),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => NumberPage::Keys(None, bytes),
            Encoding::DELTA_BINARY_PACKED => NumberPage::Deltas(None, bytes),
            other => return Err(unknown(other)),
        };
        Ok(())
    }

    fn expect(&mut self, slots: usize) {
        self.expected = slots;
    }

    fn read(&mut self, count: usize) -> Result<()> {
        self.values.reserve(self.expected.saturating_sub(self.values.len()));
        match &mut self.page {
            NumberPage::Plain(bytes) => read_plain(bytes, count, &mut self.values),
            NumberPage::Keys(keys, bytes) => {
                self.keys.clear();
                begun(keys, bytes, keys_of)?.read(count, &mut self.keys)?;
                self.values.reserve(count);
                let is_known = |key: &i32| (*key as u32 as usize) < self.dictionary.len();
                if !self.keys.iter().all(is_known) {
                    return Err(broken("has a key that its dictionary lacks"));
                }
                self.values.extend(self.keys.iter().map(|&key| self.dictionary[key as u32 as usize]));
                Ok(())
            }
            NumberPage::Deltas(deltas, bytes) => {
                let deltas = begun(deltas, bytes, |bytes| Deltas::new(bytes).map(Box::new))?;
                deltas.read(count, &mut self.values, T::of_delta)
            }
        }
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        let length = self.values.len();
        self.read(count)?;
        self.values.truncate(length);
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        self.values.resize(self.values.len() + count, T::default());
    }

    fn spread(&mut self, levels: &[u8], present: u8) {
        spread(&mut self.values, levels, present);
    }

    fn retain(&mut self, count: usize, kept: &[Range<usize>]) {
        retain(&mut self.values, count, kept);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let values = std::mem::take(&mut self.values);
        let count = values.len();
        let buffer = match &self.data_type {
            DataType::Int8 => Buffer::from_iter(values.iter().map(|&value| value.widen() as i8)),
            DataType::Int16 => Buffer::from_iter(values.iter().map(|&value| value.widen() as i16)),
            DataType::Decimal128(_, _) => Buffer::from_iter(values.iter().map(|&value| value.widen())),
            _ => Buffer::from_vec(values),
        };
        let data = ArrayData::builder(self.data_type.clone()).len(count).add_buffer(buffer).nulls(nulls);
        Ok(make_array(data.build()?))
    }

    fn clear(&mut self) {
        self.values.clear();
    }

    fn nulls(&self, count: usize) -> ArrayRef {
        new_null_array(&self.data_type, count)
    }
}

fn read_plain<T: Number>(bytes: &mut Cursor, count: usize, out: &mut Vec<T>) -> Result<()> {
    let plain = bytes.take(count.saturating_mul(T::SIZE))?;
    out.extend(plain.chunks_exact(T::SIZE).map(T::of_plain));
    Ok(())
}

/// Return what was begun of a page, or begin it: a page of nulls may lack all of its values.
pub(super) fn begun<'p, T>(
    begun: &'p mut Option<T>,
    bytes: &mut Bytes,
    begin: impl FnOnce(Bytes) -> Result<T>,
) -> Result<&'p mut T> {
    match begun {
        Some(begun) => Ok(begun),
        None => Ok(begun.insert(begin(std::mem::take(bytes))?)),
    }
}

/// The keys of a page, which begin with their width.
pub(super) fn keys_of(bytes: Bytes) -> Result<Hybrid> {
    let mut bytes = Cursor::new(bytes);
    let width = bytes.take(1)?.first().copied().unwrap_or_default();
    Hybrid::new(bytes.into_rest(), width)
}

pub(super) fn unknown(encoding: Encoding) -> parquet::errors::ParquetError {
    broken(&format!("has a page in the encoding {encoding}, which its type does not have"))
}

/// BOOLEAN.
#[derive(Default)]
pub(super) struct Booleans {
    values: Vec<u8>,
    page: Option<Hybrid>,
}

impl Values for Booleans {
    fn begin_dictionary(&mut self, _: Bytes, _: usize) -> Result<()> {
        Err(broken("has a dictionary of booleans"))
    }

    fn begin_page(&mut self, encoding: Encoding, bytes: Bytes) -> Result<()> {
        self.page = match encoding {
            Encoding::PLAIN => Some(Hybrid::of_bits(bytes)),
            Encoding::RLE if bytes.is_empty() => None,
            Encoding::RLE => {
                let mut bytes = Cursor::new(bytes);
                bytes.take(size_of::<u32>())?;
                Some(Hybrid::new(bytes.into_rest(), 1)?)
            }
            other => return Err(unknown(other)),
        };
        Ok(())
    }

    fn expect(&mut self, slots: usize) {
        self.values.reserve(slots);
    }

    fn read(&mut self, count: usize) -> Result<()> {
        match &mut self.page {
            Some(page) => page.read(count, &mut self.values),
            None if count == 0 => Ok(()),
            None => Err(broken("has a page that ends early")),
        }
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        let length = self.values.len();
        self.read(count)?;
        self.values.truncate(length);
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        self.values.resize(self.values.len() + count, 0);
    }

    fn spread(&mut self, levels: &[u8], present: u8) {
        spread(&mut self.values, levels, present);
    }

    fn retain(&mut self, count: usize, kept: &[Range<usize>]) {
        retain(&mut self.values, count, kept);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let values = BooleanBuffer::collect_bool(self.values.len(), |index| self.values[index] != 0);
        self.values.clear();
        Ok(Arc::new(BooleanArray::new(values, nulls)))
    }

    fn clear(&mut self) {
        self.values.clear();
    }

    fn nulls(&self, count: usize) -> ArrayRef {
        new_null_array(&DataType::Boolean, count)
    }
}
