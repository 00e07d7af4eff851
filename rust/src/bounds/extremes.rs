//! The least and the greatest value of one column, over its Arrow arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, GenericStringArray, OffsetSizeTrait};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use crate::error::{Error, Result};

/// A bound; the type of its column determines the meaning of an integer.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// An integer, the days of a date or the units of a timestamp.
    Integer(i64),
    /// The unscaled value.
    Decimal(i128),
    Float(f32),
    Double(f64),
    String(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range<T> {
    pub(super) min: T,
    pub(super) max: T,
}

/// The extremes so far, by how values are compared; `None` before the first value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Extremes {
    Integer(Option<Range<i64>>),
    Decimal(Option<Range<i128>>),
    /// As the keys of [`float_key`].
    Float(Option<Range<i32>>),
    /// As the keys of [`double_key`].
    Double(Option<Range<i64>>),
    String(Option<Range<String>>),
    /// A type without bounds.
    Unordered,
}

impl Extremes {
    pub(super) fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Integer(None),
            DataType::Date32 | DataType::Timestamp(_, _) => Self::Integer(None),
            DataType::Decimal128(_, _) => Self::Decimal(None),
            DataType::Float32 => Self::Float(None),
            DataType::Float64 => Self::Double(None),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::String(None),
            _ => Self::Unordered,
        }
    }

    /// Add the values of `array` that are `valid`, which covers the nulls of `array` itself.
    pub(super) fn update(&mut self, array: &dyn Array, valid: Option<&NullBuffer>) -> Result<()> {
        match self {
            Self::Unordered => {}
            Self::Integer(range) => widen(range, integers(array, valid)?),
            Self::Decimal(range) => widen(range, numbers::<Decimal128Type, _>(array, valid, |v| v)?),
            Self::Float(range) => widen(range, numbers::<Float32Type, _>(array, valid, float_key)?),
            Self::Double(range) => widen(range, numbers::<Float64Type, _>(array, valid, double_key)?),
            Self::String(range) => widen(range, strings(array, valid)?),
        }
        Ok(())
    }

    /// The extremes of no values of the same type.
    pub(super) fn emptied(&self) -> Self {
        match self {
            Self::Integer(_) => Self::Integer(None),
            Self::Decimal(_) => Self::Decimal(None),
            Self::Float(_) => Self::Float(None),
            Self::Double(_) => Self::Double(None),
            Self::String(_) => Self::String(None),
            Self::Unordered => Self::Unordered,
        }
    }

    /// Merge the extremes of other rows of the same column.
    pub(super) fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Integer(range), Self::Integer(other)) => widen(range, *other),
            (Self::Decimal(range), Self::Decimal(other)) => widen(range, *other),
            (Self::Float(range), Self::Float(other)) => widen(range, *other),
            (Self::Double(range), Self::Double(other)) => widen(range, *other),
            (Self::String(range), Self::String(other)) => widen(range, other.clone()),
            (this, _) => *this = Self::Unordered,
        }
    }

    /// The least and the greatest value; `None` without values and after a NaN, because
    /// engines order NaN differently.
    ///
    /// A zero is -0.0 as the least and +0.0 as the greatest value, as parquet.thrift requires.
    pub(super) fn bounds(&self) -> Option<(Scalar, Scalar)> {
        match self {
            Self::Unordered => None,
            Self::Integer(range) => range.map(|r| (Scalar::Integer(r.min), Scalar::Integer(r.max))),
            Self::Decimal(range) => range.map(|r| (Scalar::Decimal(r.min), Scalar::Decimal(r.max))),
            Self::Float(range) => range.and_then(float_bounds),
            Self::Double(range) => range.and_then(double_bounds),
            Self::String(range) => {
                range.as_ref().map(|r| (Scalar::String(r.min.clone()), Scalar::String(r.max.clone())))
            }
        }
    }
}

/// A number in the total order of IEEE 754: NaNs lie outside of the infinities, and -0.0 below +0.0.
///
/// Integers compare without branches, and the extremes alone show whether there was a NaN.
pub(super) fn float_key(value: f32) -> i32 {
    key32(value.to_bits() as i32)
}

pub(super) fn double_key(value: f64) -> i64 {
    key64(value.to_bits() as i64)
}

/// Its own inverse.
fn key32(bits: i32) -> i32 {
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

/// Its own inverse.
fn key64(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn float_bounds(range: Range<i32>) -> Option<(Scalar, Scalar)> {
    let value = |key| f32::from_bits(key32(key) as u32).into();
    let (min, max) = with_both_zeros(value(range.min), value(range.max))?;
    Some((Scalar::Float(min as f32), Scalar::Float(max as f32)))
}

fn double_bounds(range: Range<i64>) -> Option<(Scalar, Scalar)> {
    let value = |key| f64::from_bits(key64(key) as u64);
    let (min, max) = with_both_zeros(value(range.min), value(range.max))?;
    Some((Scalar::Double(min), Scalar::Double(max)))
}

fn with_both_zeros(min: f64, max: f64) -> Option<(f64, f64)> {
    if min.is_nan() || max.is_nan() {
        return None;
    }
    Some((if min == 0.0 { -0.0 } else { min }, if max == 0.0 { 0.0 } else { max }))
}

fn widen<T: PartialOrd>(range: &mut Option<Range<T>>, by: Option<Range<T>>) {
    let Some(by) = by else { return };
    match range {
        None => *range = Some(by),
        Some(range) => {
            if by.min < range.min {
                range.min = by.min;
            }
            if by.max > range.max {
                range.max = by.max;
            }
        }
    }
}

fn integers(array: &dyn Array, valid: Option<&NullBuffer>) -> Result<Option<Range<i64>>> {
    match array.data_type() {
        DataType::Int8 => numbers::<Int8Type, _>(array, valid, i64::from),
        DataType::Int16 => numbers::<Int16Type, _>(array, valid, i64::from),
        DataType::Int32 => numbers::<Int32Type, _>(array, valid, i64::from),
        DataType::Date32 => numbers::<Date32Type, _>(array, valid, i64::from),
        DataType::Timestamp(TimeUnit::Second, _) => numbers::<TimestampSecondType, _>(array, valid, |v| v),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            numbers::<TimestampMillisecondType, _>(array, valid, |v| v)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            numbers::<TimestampMicrosecondType, _>(array, valid, |v| v)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            numbers::<TimestampNanosecondType, _>(array, valid, |v| v)
        }
        _ => numbers::<Int64Type, _>(array, valid, |v| v),
    }
}

fn numbers<T: ArrowPrimitiveType, K: Ord + Copy>(
    array: &dyn Array,
    valid: Option<&NullBuffer>,
    key: impl Fn(T::Native) -> K,
) -> Result<Option<Range<K>>> {
    let array = array.as_primitive_opt::<T>().ok_or_else(|| unexpected(array, T::DATA_TYPE))?;
    let mut range = None;
    for_each_run(array.values(), valid, |run| widen(&mut range, range_of(run.iter().map(|&v| key(v)))));
    Ok(range)
}

fn range_of<K: Ord + Copy>(mut keys: impl Iterator<Item = K>) -> Option<Range<K>> {
    let first = keys.next()?;
    Some(keys.fold(Range { min: first, max: first }, |range, key| Range {
        min: range.min.min(key),
        max: range.max.max(key),
    }))
}

/// Call `visit` with runs of `values` that hold all those that are valid and no other.
fn for_each_run<T>(values: &[T], valid: Option<&NullBuffer>, mut visit: impl FnMut(&[T])) {
    let Some(valid) = valid.filter(|valid| valid.null_count() > 0) else { return visit(values) };
    valid.valid_slices().for_each(|(start, end)| visit(&values[start..end]));
}

fn strings(array: &dyn Array, valid: Option<&NullBuffer>) -> Result<Option<Range<String>>> {
    if let Some(array) = array.as_string_opt::<i32>() {
        return Ok(texts(array, valid));
    }
    if let Some(array) = array.as_string_opt::<i64>() {
        return Ok(texts(array, valid));
    }
    let array = array.as_string_view_opt().ok_or_else(|| unexpected(array, DataType::Utf8))?;
    let is_valid = |&row: &usize| valid.is_none_or(|valid| valid.is_valid(row));
    let range = range_of((0..array.len()).filter(is_valid).map(|row| array.value(row)));
    Ok(range.map(|range| Range { min: range.min.to_owned(), max: range.max.to_owned() }))
}

/// A text of an array, with a prefix that decides most comparisons.
#[derive(Debug, Clone, Copy)]
struct Text {
    row: usize,
    length: usize,
    prefix: u128,
}

impl Text {
    fn new<O: OffsetSizeTrait>(array: &GenericStringArray<O>, row: usize) -> Self {
        let [start, end] = [row, row + 1].map(|i| array.value_offsets()[i].as_usize());
        Text { row, length: end - start, prefix: prefix(array.value_data(), start, end) }
    }

    /// Whether this may be outside `range`, without a branch: which text comes next cannot be predicted.
    fn may_widen(&self, range: &Range<Text>) -> bool {
        let is_long = self.length > PREFIX;
        let below = (self.prefix == range.min.prefix) & (is_long | (self.length < range.min.length));
        let above = (self.prefix == range.max.prefix) & (is_long | (self.length > range.max.length));
        (self.prefix < range.min.prefix) | (self.prefix > range.max.prefix) | below | above
    }

    fn widen<O: OffsetSizeTrait>(&self, range: &mut Range<Text>, array: &GenericStringArray<O>) {
        let text = |text: &Text| array.value(text.row);
        if text(self) < text(&range.min) {
            range.min = *self;
        } else if text(self) > text(&range.max) {
            range.max = *self;
        }
    }
}

fn texts<O: OffsetSizeTrait>(
    array: &GenericStringArray<O>,
    valid: Option<&NullBuffer>,
) -> Option<Range<String>> {
    let mut range: Option<Range<Text>> = None;
    let mut take = |row| {
        let text = Text::new(array, row);
        match &mut range {
            None => range = Some(Range { min: text, max: text }),
            Some(range) if text.may_widen(range) => text.widen(range, array),
            Some(_) => {}
        }
    };
    match valid {
        Some(valid) if valid.null_count() > 0 => valid.valid_indices().for_each(take),
        _ => (0..array.len()).for_each(&mut take),
    }
    let owned = |text: Text| array.value(text.row).to_owned();
    range.map(|range| Range { min: owned(range.min), max: owned(range.max) })
}

/// How many bytes of a text are compared as one number.
const PREFIX: usize = 16;

/// The first bytes of `data[start..end]` as a big-endian number, padded with zeros. If two numbers
/// differ, they are ordered like the texts.
fn prefix(data: &[u8], start: usize, end: usize) -> u128 {
    let length = end - start;
    match data.get(start..).and_then(<[u8]>::first_chunk::<PREFIX>) {
        Some(chunk) if length >= PREFIX => u128::from_be_bytes(*chunk),
        Some(chunk) => u128::from_be_bytes(*chunk) & !(u128::MAX >> (8 * length)),
        None => {
            let mut padded = [0; PREFIX];
            padded.iter_mut().zip(&data[start..end]).for_each(|(to, byte)| *to = *byte);
            u128::from_be_bytes(padded)
        }
    }
}

fn unexpected(array: &dyn Array, wanted: DataType) -> Error {
    Error::unsupported(format!("expected an array of {wanted} for its bounds, got {}", array.data_type()))
}
