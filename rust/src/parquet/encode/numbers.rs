//! Values of INT32, INT64, FLOAT and DOUBLE.

use std::hash::Hash;

use ahash::HashSet;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use parquet::basic::Encoding;
use parquet::data_type::SliceAsBytes;

use super::delta;
use super::dictionary::Numbers;
use super::extremes::{Bound, EncodedExtremes as Extremes};
use super::levels::Selection;
use super::values::{Choice, Dictionary, PageValues, Values, gather, unexpected, unpack};
use crate::error::Result;

/// A number of a Parquet type.
pub(super) trait Number: SliceAsBytes + Copy + Default + Send + 'static {
    type Bits: Copy + Eq + Hash;

    fn bits(self) -> Self::Bits;

    fn gather(array: &dyn Array, selection: &Selection, out: &mut Vec<Self>) -> Result<()>;

    fn extremes(values: &[Self]) -> Extremes;

    fn encode(values: &[Self], page: &mut Vec<u8>) -> Encoding {
        page.extend_from_slice(Self::slice_as_bytes(values));
        Encoding::PLAIN
    }
}

pub(super) struct NumberValues<T> {
    choice: Choice,
    has_bounds: bool,
    values: Vec<T>,
    keys: Vec<u32>,
    dictionary: Numbers<T>,
    extremes: Extremes,
}

impl<T: Number> NumberValues<T> {
    pub fn new(has_bounds: bool) -> Self {
        NumberValues {
            choice: Choice::new(Dictionary::Undecided),
            has_bounds,
            values: Vec::new(),
            keys: Vec::new(),
            dictionary: Numbers::default(),
            extremes: Extremes::default(),
        }
    }

    /// Replace the values by their keys.
    fn intern(&mut self) {
        let mut last = None;
        self.keys.reserve(self.values.len());
        for &value in &self.values {
            let key = match last {
                Some((bits, key)) if bits == value.bits() => key,
                _ => self.dictionary.key(value, T::bits),
            };
            last = Some((value.bits(), key));
            self.keys.push(key);
        }
        self.values.clear();
        self.choice.grow(self.dictionary.values().len(), size_of_val(self.dictionary.values()));
    }
}

impl<T: Number> Values for NumberValues<T> {
    fn append(&mut self, array: &ArrayRef, selection: &Selection) -> Result<()> {
        let start = self.values.len();
        T::gather(&unpack(array)?, selection, &mut self.values)?;
        let added = &self.values[start..];
        if self.has_bounds {
            self.extremes.merge(T::extremes(added));
        }
        self.choice.decide(added.len(), |sample| {
            added.iter().step_by(sample.step).map(|value| value.bits()).collect::<HashSet<_>>().len()
        });
        if self.choice.is_used() {
            self.intern();
        }
        Ok(())
    }

    fn pending_bytes(&self) -> usize {
        size_of_val(self.values.as_slice()) + self.keys.len() * usize::from(self.choice.width()) / 8
    }

    fn flush(&mut self, page: &mut Vec<u8>) -> PageValues {
        let encoding = match self.choice.is_used() {
            true => self.choice.flush(&mut self.keys, page),
            false => T::encode(&self.values, page),
        };
        self.values.clear();
        PageValues { encoding, extremes: std::mem::take(&mut self.extremes), variable_bytes: 0 }
    }

    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn end_chunk(&mut self) -> (Vec<u8>, usize) {
        let values = self.dictionary.values();
        let (plain, count) = (T::slice_as_bytes(values).to_vec(), values.len());
        self.dictionary.clear();
        self.choice.end_chunk();
        (plain, count)
    }
}

impl Number for i32 {
    type Bits = i32;

    fn bits(self) -> i32 {
        self
    }

    fn gather(array: &dyn Array, selection: &Selection, out: &mut Vec<i32>) -> Result<()> {
        match array.data_type() {
            DataType::Int8 => gather(array.as_primitive::<Int8Type>().values(), selection, out, i32::from),
            DataType::Int16 => gather(array.as_primitive::<Int16Type>().values(), selection, out, i32::from),
            DataType::Int32 => gather(array.as_primitive::<Int32Type>().values(), selection, out, |v| v),
            DataType::Date32 => gather(array.as_primitive::<Date32Type>().values(), selection, out, |v| v),
            // The schema gives decimals of up to nine digits to INT32.
            DataType::Decimal128(_, _) => {
                gather(array.as_primitive::<Decimal128Type>().values(), selection, out, |v| v as i32)
            }
            _ => return Err(unexpected(array, "INT32")),
        }
        Ok(())
    }

    fn extremes(values: &[i32]) -> Extremes {
        integers(values)
    }

    fn encode(values: &[i32], page: &mut Vec<u8>) -> Encoding {
        delta::encode(values, page);
        Encoding::DELTA_BINARY_PACKED
    }
}

impl Number for i64 {
    type Bits = i64;

    fn bits(self) -> i64 {
        self
    }

    fn gather(array: &dyn Array, selection: &Selection, out: &mut Vec<i64>) -> Result<()> {
        let values = match array.data_type() {
            DataType::Int64 => array.as_primitive::<Int64Type>().values(),
            DataType::Time64(TimeUnit::Microsecond) => array.as_primitive::<Time64MicrosecondType>().values(),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                array.as_primitive::<TimestampMicrosecondType>().values()
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                array.as_primitive::<TimestampNanosecondType>().values()
            }
            // The schema gives decimals of ten to 18 digits to INT64.
            DataType::Decimal128(_, _) => {
                gather(array.as_primitive::<Decimal128Type>().values(), selection, out, |v| v as i64);
                return Ok(());
            }
            _ => return Err(unexpected(array, "INT64")),
        };
        gather(values, selection, out, |value| value);
        Ok(())
    }

    fn extremes(values: &[i64]) -> Extremes {
        integers(values)
    }

    fn encode(values: &[i64], page: &mut Vec<u8>) -> Encoding {
        delta::encode(values, page);
        Encoding::DELTA_BINARY_PACKED
    }
}

fn integers<T: Copy + Ord + Into<i128>>(values: &[T]) -> Extremes {
    let mut extremes = Extremes::default();
    if let Some(&first) = values.first() {
        let range = values.iter().fold((first, first), |(min, max), &v| (min.min(v), max.max(v)));
        extremes.add(Bound::Integer(range.0.into()), Bound::Integer(range.1.into()));
    }
    extremes
}

impl Number for f32 {
    type Bits = u32;

    fn bits(self) -> u32 {
        self.to_bits()
    }

    fn gather(array: &dyn Array, selection: &Selection, out: &mut Vec<f32>) -> Result<()> {
        let array = array.as_primitive_opt::<Float32Type>().ok_or_else(|| unexpected(array, "FLOAT"))?;
        gather(array.values(), selection, out, |value| value);
        Ok(())
    }

    fn extremes(values: &[f32]) -> Extremes {
        floats(values)
    }
}

impl Number for f64 {
    type Bits = u64;

    fn bits(self) -> u64 {
        self.to_bits()
    }

    fn gather(array: &dyn Array, selection: &Selection, out: &mut Vec<f64>) -> Result<()> {
        let array = array.as_primitive_opt::<Float64Type>().ok_or_else(|| unexpected(array, "DOUBLE"))?;
        gather(array.values(), selection, out, |value| value);
        Ok(())
    }

    fn extremes(values: &[f64]) -> Extremes {
        floats(values)
    }
}

fn floats<T: Copy + Into<f64>>(values: &[T]) -> Extremes {
    let (mut min, mut max, mut has_nan) = (f64::INFINITY, f64::NEG_INFINITY, false);
    for &value in values {
        let value = value.into();
        has_nan |= value.is_nan();
        min = if value < min { value } else { min };
        max = if value > max { value } else { max };
    }
    let mut extremes = Extremes { range: None, has_nan };
    if !values.is_empty() && !has_nan {
        extremes.add(Bound::Float(min), Bound::Float(max));
    }
    extremes
}
