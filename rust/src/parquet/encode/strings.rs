//! Values of BYTE_ARRAY: strings and binary.

use std::ops;

use ahash::HashSet;
use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, Int32Type};
use arrow_array::{Array, ArrayRef, GenericByteArray};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use parquet::basic::Encoding;

use super::delta;
use super::dictionary::Strings;
use super::extremes::{Bound, EncodedExtremes as Extremes};
use super::levels::Selection;
use super::values::{Choice, Dictionary, PageValues, SAMPLE_VALUES, Values, unexpected, unpack};
use crate::error::Result;

/// The mean length of values up to which a dictionary is tried, instead of a sample, to choose between it and the values.
/// It copies the values.
const SHORT_BYTES: usize = 32;

/// The size of values of one array from which on they are not copied until their page is encoded. Fewer bytes are copied
/// at once: a reference to them saves nothing, and keeps all columns of the batch in memory if another library made it.
const HELD_BYTES: usize = 64 << 10;

pub(super) struct StringValues {
    choice: Choice,
    has_bounds: bool,
    lengths: Vec<i32>,
    /// The values back to back, mostly as the arrays have them.
    data: Vec<Buffer>,
    data_bytes: usize,
    /// The extremes of these values.
    extremes: Extremes,
    keys: Vec<u32>,
    dictionary: Strings,
    known: Option<Known>,
    /// The size of the values of the page that are keys.
    variable_bytes: u64,
}

/// The keys in the dictionary of the chunk, and the lengths, of the values of an Arrow dictionary.
struct Known {
    distinct: ArrayData,
    keys: Vec<Option<(u32, u32)>>,
}

impl StringValues {
    pub fn new(has_bounds: bool, dictionary: Dictionary) -> Self {
        StringValues {
            choice: Choice::new(dictionary),
            has_bounds,
            lengths: Vec::new(),
            data: Vec::new(),
            data_bytes: 0,
            extremes: Extremes::default(),
            keys: Vec::new(),
            dictionary: Strings::default(),
            known: None,
            variable_bytes: 0,
        }
    }

    fn append_from<'a>(&mut self, value: impl Fn(usize) -> &'a [u8], slots: usize, selection: &Selection) {
        self.decide(&value, slots, selection);
        if self.choice.is_used() {
            self.append_distinct(|slot| (value(slot), 0..value(slot).len()), slots, selection);
        } else {
            self.append_copies(value, slots, selection);
        }
    }

    fn append_array<T: ByteArrayType>(&mut self, array: &GenericByteArray<T>, selection: &Selection) {
        let (offsets, data) = (array.value_offsets(), array.value_data());
        let range = |slot: usize| offsets[slot].as_usize()..offsets[slot + 1].as_usize();
        let value = |slot: usize| &data[range(slot)];
        let slots = array.len();
        let all = offsets[0].as_usize()..offsets[slots].as_usize();
        let are_short = all.len() <= SHORT_BYTES * selection.count(slots);
        if are_short && self.decide_by_keys(|slot| (data, range(slot)), slots, selection) {
            return;
        }
        self.decide(value, slots, selection);
        if self.choice.is_used() || selection.count(slots) == 0 {
            return self.append_distinct(|slot| (data, range(slot)), slots, selection);
        }
        let mut bytes = 0;
        selection.for_each(slots, |slot| bytes += range(slot).len());
        if bytes != all.len() {
            // Some slots without a value have bytes.
            return self.append_copies(value, slots, selection);
        }
        let first = self.lengths.len();
        self.lengths.reserve(selection.count(slots));
        selection.for_each(slots, |slot| self.lengths.push(range(slot).len() as i32));
        let values = match all.len() < HELD_BYTES {
            true => Buffer::from(&data[all]),
            false => array.values().slice_with_length(all.start, all.len()),
        };
        self.push_data(first, values);
    }

    fn append_copies<'a>(&mut self, value: impl Fn(usize) -> &'a [u8], slots: usize, selection: &Selection) {
        let (first, mut data) = (self.lengths.len(), Vec::new());
        selection.for_each(slots, |slot| {
            let value = value(slot);
            self.lengths.push(value.len() as i32);
            data.extend_from_slice(value);
        });
        self.push_data(first, Buffer::from_vec(data));
    }

    /// Add the values whose lengths were pushed from `first` on.
    fn push_data(&mut self, first: usize, data: Buffer) {
        if self.has_bounds {
            let mut start = 0;
            let values = self.lengths[first..].iter().map(|&length| {
                start += length as usize;
                &data[start - length as usize..start]
            });
            add_range(&mut self.extremes, range(values));
        }
        self.data_bytes += data.len();
        self.data.push(data);
    }

    /// Choose between a dictionary and the values themselves, if these are the first values of the chunk.
    fn decide<'a>(&mut self, value: impl Fn(usize) -> &'a [u8], slots: usize, selection: &Selection) {
        self.choice.decide(selection.count(slots), |sample| {
            let (mut distinct, mut count) = (HashSet::default(), 0);
            selection.for_each(slots, |slot| {
                if count % sample.step == 0 && !sample.is_mostly_distinct(distinct.len()) {
                    distinct.insert(value(slot));
                }
                count += 1;
            });
            distinct.len()
        });
    }

    /// As [`StringValues::decide`] if these values are the sample. Append their keys and return `true` if a dictionary is
    /// chosen: each value is hashed once.
    fn decide_by_keys<'a>(
        &mut self,
        value: impl Fn(usize) -> (&'a [u8], ops::Range<usize>),
        slots: usize,
        selection: &Selection,
    ) -> bool {
        let values = selection.count(slots);
        if self.choice.dictionary != Dictionary::Undecided || !(1..=SAMPLE_VALUES).contains(&values) {
            return false;
        }
        let StringValues { choice, keys, dictionary, variable_bytes, .. } = self;
        choice.decide(values, |sample| {
            selection.for_each(slots, |slot| {
                if !sample.is_mostly_distinct(dictionary.len()) {
                    let (data, range) = value(slot);
                    *variable_bytes += range.len() as u64;
                    keys.push(dictionary.key_at(data, range));
                }
            });
            dictionary.len()
        });
        if choice.is_used() {
            choice.grow(dictionary.len(), dictionary.bytes());
            return true;
        }
        keys.clear();
        dictionary.clear();
        *variable_bytes = 0;
        false
    }

    /// Append the keys of values, each given as a range of bytes.
    fn append_distinct<'a>(
        &mut self,
        value: impl Fn(usize) -> (&'a [u8], ops::Range<usize>),
        slots: usize,
        selection: &Selection,
    ) {
        selection.for_each(slots, |slot| {
            let (data, range) = value(slot);
            self.variable_bytes += range.len() as u64;
            self.keys.push(self.dictionary.key_at(data, range));
        });
        self.choice.grow(self.dictionary.len(), self.dictionary.bytes());
    }

    /// Append values that are keys of an Arrow dictionary: each is looked up once.
    fn append_keys(&mut self, array: &ArrayRef, selection: &Selection) -> Result<()> {
        let dictionary = array.as_any_dictionary();
        let distinct = dictionary.values();
        let (narrow, wide) = match array.as_dictionary_opt::<Int32Type>() {
            Some(dictionary) => (&dictionary.keys().values()[..], Vec::new()),
            None => (&[][..], dictionary.normalized_keys()),
        };
        let key_of = |slot: usize| if wide.is_empty() { narrow[slot] as usize } else { wide[slot] };
        let values = selection.count(array.len());
        if values == 0 || distinct.is_empty() {
            return Ok(());
        }
        self.choice.decide(values, |sample| {
            let (mut sampled, mut count) = (HashSet::default(), 0);
            selection.for_each(array.len(), |slot| {
                if count % sample.step == 0 {
                    sampled.insert(key_of(slot));
                }
                count += 1;
            });
            sampled.len()
        });
        if !self.choice.is_used() {
            return self.append(&unpack(array)?, selection);
        }
        let known = match self.known.take() {
            Some(known) if known.distinct.ptr_eq(&distinct.to_data()) => known,
            _ => Known { distinct: distinct.to_data(), keys: vec![None; distinct.len()] },
        };
        let Known { keys, .. } = self.known.insert(known);
        let distinct = unpack(distinct)?;
        let value = byte_values(distinct.as_ref())?;
        selection.for_each(array.len(), |slot| {
            let at = key_of(slot);
            let (key, length) = *keys[at].get_or_insert_with(|| {
                let value = value(at);
                (self.dictionary.key(value), value.len() as u32)
            });
            self.keys.push(key);
            self.variable_bytes += u64::from(length);
        });
        self.choice.grow(self.dictionary.len(), self.dictionary.bytes());
        Ok(())
    }

    /// The extremes of the values of the page that are keys.
    fn extremes_of_keys(&self) -> Extremes {
        let mut is_used = vec![false; self.dictionary.len()];
        self.keys.iter().for_each(|&key| is_used[key as usize] = true);
        let used = (0..self.dictionary.len() as u32).filter(|&key| is_used[key as usize]);
        let mut extremes = Extremes::default();
        add_range(&mut extremes, range(used.map(|key| self.dictionary.get(key))));
        extremes
    }
}

impl Values for StringValues {
    fn append(&mut self, array: &ArrayRef, selection: &Selection) -> Result<()> {
        match array.data_type() {
            DataType::Utf8 => self.append_array(array.as_string::<i32>(), selection),
            DataType::LargeUtf8 => self.append_array(array.as_string::<i64>(), selection),
            DataType::Binary => self.append_array(array.as_binary::<i32>(), selection),
            DataType::LargeBinary => self.append_array(array.as_binary::<i64>(), selection),
            DataType::Utf8View | DataType::BinaryView => {
                self.append_from(byte_values(array.as_ref())?, array.len(), selection)
            }
            DataType::Dictionary(_, _) => self.append_keys(array, selection)?,
            _ => return Err(unexpected(array, "BYTE_ARRAY")),
        }
        Ok(())
    }

    fn pending_bytes(&self) -> usize {
        let keys = self.keys.len() * usize::from(self.choice.width()) / 8;
        self.data_bytes + self.lengths.len() + keys
    }

    fn flush(&mut self, page: &mut Vec<u8>) -> PageValues {
        let mut extremes = std::mem::take(&mut self.extremes);
        if self.has_bounds && self.choice.is_used() {
            extremes = self.extremes_of_keys();
        }
        let data_bytes = std::mem::take(&mut self.data_bytes);
        let variable_bytes = std::mem::take(&mut self.variable_bytes) + data_bytes as u64;
        let encoding = match self.choice.is_used() {
            true => self.choice.flush(&mut self.keys, page),
            false => {
                delta::encode(&self.lengths, page);
                self.data.iter().for_each(|data| page.extend_from_slice(data));
                Encoding::DELTA_LENGTH_BYTE_ARRAY
            }
        };
        self.lengths.clear();
        self.data.clear();
        PageValues { encoding, extremes, variable_bytes }
    }

    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn end_chunk(&mut self) -> (Vec<u8>, usize) {
        let mut plain = Vec::with_capacity(self.dictionary.bytes());
        for key in 0..self.dictionary.len() as u32 {
            let value = self.dictionary.get(key);
            plain.extend_from_slice(&(value.len() as u32).to_le_bytes());
            plain.extend_from_slice(value);
        }
        let count = self.dictionary.len();
        self.dictionary.clear();
        self.known = None;
        self.choice.end_chunk();
        (plain, count)
    }
}

/// Return a function that returns the bytes of a slot.
fn byte_values<'a>(array: &'a dyn Array) -> Result<Box<dyn Fn(usize) -> &'a [u8] + 'a>> {
    Ok(match array.data_type() {
        DataType::Utf8 => Box::new(|slot| array.as_string::<i32>().value(slot).as_bytes()),
        DataType::LargeUtf8 => Box::new(|slot| array.as_string::<i64>().value(slot).as_bytes()),
        DataType::Utf8View => Box::new(|slot| array.as_string_view().value(slot).as_bytes()),
        DataType::Binary => Box::new(|slot| array.as_binary::<i32>().value(slot)),
        DataType::LargeBinary => Box::new(|slot| array.as_binary::<i64>().value(slot)),
        DataType::BinaryView => Box::new(|slot| array.as_binary_view().value(slot)),
        _ => return Err(unexpected(array, "BYTE_ARRAY")),
    })
}

fn add_range(extremes: &mut Extremes, range: Option<(&[u8], &[u8])>) {
    if let Some((min, max)) = range {
        extremes.add(Bound::Bytes(min.to_vec()), Bound::Bytes(max.to_vec()));
    }
}

/// The least and the greatest of `values`.
fn range<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<(&'a [u8], &'a [u8])> {
    let mut range: Option<Range<'a>> = None;
    for value in values {
        let prefix = prefix(value);
        match &mut range {
            None => range = Some(Range { min: (prefix, value), max: (prefix, value) }),
            Some(range) => {
                if prefix >= range.max.0 && value > range.max.1 {
                    range.max = (prefix, value);
                } else if prefix <= range.min.0 && value < range.min.1 {
                    range.min = (prefix, value);
                }
            }
        }
    }
    range.map(|range| (range.min.1, range.max.1))
}

/// Values with their prefixes, which decide most comparisons.
struct Range<'a> {
    min: (u64, &'a [u8]),
    max: (u64, &'a [u8]),
}

/// The first bytes as a big-endian number, padded with zeros. If two numbers differ, they are ordered like the values.
fn prefix(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut padded = [0; 8];
            padded[..value.len()].copy_from_slice(value);
            u64::from_be_bytes(padded)
        }
    }
}
