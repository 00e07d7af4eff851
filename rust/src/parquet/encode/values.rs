//! The values of one leaf column: collected from arrays without nulls, and encoded as the values of a page.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::basic::Encoding;

use super::extremes::EncodedExtremes as Extremes;
use super::hybrid;
use super::levels::Selection;
use crate::error::{Error, Result};

/// The number of values that are sampled to choose between a dictionary and the values themselves.
pub(super) const SAMPLE_VALUES: usize = 4096;
/// The size at which a dictionary is no longer used.
const DICTIONARY_BYTES: usize = 1 << 20;

/// Collects the values of a page, and the dictionary of a column chunk.
pub(super) trait Values: Send {
    /// Add the values of `array` in the slots of `selection`.
    fn append(&mut self, array: &ArrayRef, selection: &Selection) -> Result<()>;

    /// An estimate of the size of the values of the page, which are not encoded yet.
    fn pending_bytes(&self) -> usize;

    /// Append the values of the page, of which there is at least one, to `page`.
    fn flush(&mut self, page: &mut Vec<u8>) -> PageValues;

    /// The choice for the column chunk.
    fn choice(&self) -> &Choice;

    /// Return the distinct values in the plain encoding and their number. The next values belong to the next column
    /// chunk.
    fn end_chunk(&mut self) -> (Vec<u8>, usize);
}

/// The values of a page that was encoded.
pub(super) struct PageValues {
    pub encoding: Encoding,
    pub extremes: Extremes,
    /// The size of values of variable length without their lengths.
    pub variable_bytes: u64,
}

/// Whether the values of a column chunk are keys of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dictionary {
    /// To be chosen by the first values.
    Undecided,
    Used,
    Unused,
}

/// The choice between a dictionary and the values themselves, and the size of the dictionary.
pub(super) struct Choice {
    pub dictionary: Dictionary,
    first: Dictionary,
    pub distinct: usize,
    bytes: usize,
}

impl Choice {
    pub fn new(first: Dictionary) -> Self {
        Choice { dictionary: first, first, distinct: 0, bytes: 0 }
    }

    /// Choose by the number of distinct values in a sample: a dictionary of mostly distinct values is not smaller.
    pub fn decide(&mut self, values: usize, distinct: impl FnOnce(Sample) -> usize) {
        if self.dictionary == Dictionary::Undecided && values > 0 {
            let step = values.div_ceil(SAMPLE_VALUES);
            let sample = Sample { step, values: values.div_ceil(step) };
            let is_mostly_distinct = sample.is_mostly_distinct(distinct(sample));
            self.dictionary = if is_mostly_distinct { Dictionary::Unused } else { Dictionary::Used };
        }
    }

    pub fn is_used(&self) -> bool {
        self.dictionary == Dictionary::Used
    }

    pub fn grow(&mut self, distinct: usize, bytes: usize) {
        (self.distinct, self.bytes) = (distinct, bytes);
    }

    /// Whether the page must end, because later values do not use the dictionary.
    pub fn is_full(&self) -> bool {
        self.is_used() && self.bytes >= DICTIONARY_BYTES
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of bits of a key.
    pub fn width(&self) -> u8 {
        hybrid::width_of(self.distinct.saturating_sub(1) as u32)
    }

    /// Append keys to a page, which they end.
    pub fn flush(&mut self, keys: &mut Vec<u32>, page: &mut Vec<u8>) -> Encoding {
        page.push(self.width());
        hybrid::encode(keys, self.width(), page);
        keys.clear();
        if self.is_full() {
            self.dictionary = Dictionary::Unused;
        }
        Encoding::RLE_DICTIONARY
    }

    /// Append the values of a page that has none to `page`.
    pub fn encode_none(&self, page: &mut Vec<u8>) -> Encoding {
        if self.is_used() && self.distinct > 0 {
            // A page in another encoding would keep readers from skipping by the dictionary.
            page.push(self.width());
            return Encoding::RLE_DICTIONARY;
        }
        // Every reader accepts a plain page without values, while other encodings have a header.
        Encoding::PLAIN
    }

    pub fn end_chunk(&mut self) {
        *self = Choice::new(self.first);
    }
}

/// Every `step`-th value.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub step: usize,
    values: usize,
}

impl Sample {
    /// Whether this number of distinct values decides against a dictionary, whatever the values after them.
    pub fn is_mostly_distinct(self, distinct: usize) -> bool {
        distinct * 2 > self.values
    }
}

impl Selection {
    /// Call `visit` with each slot of `slots` that has a value, in order.
    pub(super) fn for_each(&self, slots: usize, mut visit: impl FnMut(usize)) {
        match self {
            Selection::None => {}
            Selection::All => (0..slots).for_each(visit),
            Selection::Some(present) => {
                let words = present.inner().bit_chunks();
                for (start, mut word) in (0..slots).step_by(64).zip(words.iter_padded()) {
                    if word == u64::MAX {
                        (start..start + 64).for_each(&mut visit);
                        continue;
                    }
                    while word != 0 {
                        visit(start + word.trailing_zeros() as usize);
                        word &= word - 1;
                    }
                }
            }
        }
    }

    /// The number of slots with a value.
    pub(super) fn count(&self, slots: usize) -> usize {
        match self {
            Selection::None => 0,
            Selection::All => slots,
            Selection::Some(present) => present.len() - present.null_count(),
        }
    }
}

/// Append the values of the slots of `selection` to `out`.
pub(super) fn gather<S: Copy, T>(
    values: &[S],
    selection: &Selection,
    out: &mut Vec<T>,
    convert: impl Fn(S) -> T,
) {
    match selection {
        Selection::All => out.extend(values.iter().map(|&value| convert(value))),
        _ => {
            out.reserve(selection.count(values.len()));
            selection.for_each(values.len(), |slot| out.push(convert(values[slot])));
        }
    }
}

/// `array` with its values instead of keys of a dictionary.
pub(super) fn unpack(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            unpack(&arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?)
        }
        _ => Ok(array.clone()),
    }
}

pub(super) fn unexpected(array: &dyn Array, column: &str) -> Error {
    Error::unsupported(format!("cannot write an array of {} to a column of {column}", array.data_type()))
}
