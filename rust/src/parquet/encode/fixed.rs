//! Values of FIXED_LEN_BYTE_ARRAY and BOOLEAN, which have no dictionary: Spark and parquet-java do not use one in
//! files of version 1.

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::DataType;
use parquet::basic::Encoding;

use super::extremes::{Bound, EncodedExtremes as Extremes};
use super::levels::Selection;
use super::values::{Choice, Dictionary, PageValues, Values, unexpected, unpack};
use crate::error::Result;

/// Values of FIXED_LEN_BYTE_ARRAY: decimals of more than 18 digits, UUIDs and other bytes.
pub(super) struct FixedValues {
    choice: Choice,
    length: usize,
    data: Vec<u8>,
    extremes: Extremes,
}

impl FixedValues {
    pub fn new(length: usize) -> Self {
        let (data, extremes) = (Vec::new(), Extremes::default());
        FixedValues { choice: Choice::new(Dictionary::Unused), length, data, extremes }
    }

    fn append_decimals(&mut self, values: &[i128], selection: &Selection) {
        let mut range: Option<(i128, i128)> = None;
        selection.for_each(values.len(), |slot| {
            let value = values[slot];
            let bytes = value.to_be_bytes();
            self.data.extend_from_slice(&bytes[bytes.len() - self.length..]);
            range = Some(range.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
        });
        if let Some((min, max)) = range {
            self.extremes.add(Bound::Integer(min), Bound::Integer(max));
        }
    }
}

impl Values for FixedValues {
    fn append(&mut self, array: &ArrayRef, selection: &Selection) -> Result<()> {
        let array = unpack(array)?;
        match array.data_type() {
            DataType::Decimal128(_, _) => {
                self.append_decimals(array.as_primitive::<Decimal128Type>().values(), selection);
            }
            DataType::FixedSizeBinary(_) => {
                let values = array.as_fixed_size_binary();
                let mut range: Option<(&[u8], &[u8])> = None;
                selection.for_each(values.len(), |slot| {
                    let value = values.value(slot);
                    self.data.extend_from_slice(value);
                    range = Some(range.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
                });
                if let Some((min, max)) = range {
                    self.extremes.add(Bound::Bytes(min.to_vec()), Bound::Bytes(max.to_vec()));
                }
            }
            _ => return Err(unexpected(&array, "FIXED_LEN_BYTE_ARRAY")),
        }
        Ok(())
    }

    fn pending_bytes(&self) -> usize {
        self.data.len()
    }

    fn flush(&mut self, page: &mut Vec<u8>) -> PageValues {
        page.append(&mut self.data);
        plain(&mut self.extremes)
    }

    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn end_chunk(&mut self) -> (Vec<u8>, usize) {
        (Vec::new(), 0)
    }
}

pub(super) struct BooleanValues {
    choice: Choice,
    bits: BooleanBufferBuilder,
    extremes: Extremes,
}

impl BooleanValues {
    pub fn new() -> Self {
        let (bits, extremes) = (BooleanBufferBuilder::new(0), Extremes::default());
        BooleanValues { choice: Choice::new(Dictionary::Unused), bits, extremes }
    }
}

impl Values for BooleanValues {
    fn append(&mut self, array: &ArrayRef, selection: &Selection) -> Result<()> {
        let array = unpack(array)?;
        let values = array.as_boolean_opt().ok_or_else(|| unexpected(&array, "BOOLEAN"))?.values();
        let mut trues = 0;
        match selection {
            Selection::All => {
                trues = values.count_set_bits();
                self.bits.append_buffer(values);
            }
            _ => selection.for_each(values.len(), |slot| {
                let value = values.value(slot);
                trues += usize::from(value);
                self.bits.append(value);
            }),
        }
        let count = selection.count(values.len());
        if count > 0 {
            let flag = |flag: bool| Bound::Integer(flag.into());
            self.extremes.add(flag(trues == count), flag(trues > 0));
        }
        Ok(())
    }

    fn pending_bytes(&self) -> usize {
        self.bits.len() / 8
    }

    fn flush(&mut self, page: &mut Vec<u8>) -> PageValues {
        let bits = self.bits.finish();
        page.extend_from_slice(&bits.values()[..bits.len().div_ceil(8)]);
        plain(&mut self.extremes)
    }

    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn end_chunk(&mut self) -> (Vec<u8>, usize) {
        (Vec::new(), 0)
    }
}

fn plain(extremes: &mut Extremes) -> PageValues {
    PageValues { encoding: Encoding::PLAIN, extremes: std::mem::take(extremes), variable_bytes: 0 }
}
