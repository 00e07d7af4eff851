//! The columns that shredding fills: dense values, and a bit for each slot that has one.
//!
//! A slot is a row, or below a list the running number of an element. A field that is missing from a row
//! touches no column.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::*;
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    StringArray,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::schema::LeafType;
use crate::error::{Error, Result};
use crate::value::{Decimal, Value};

/// The powers of ten that a decimal of 38 digits can need.
const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Which slots have a value.
#[derive(Debug, Default)]
pub struct Slots {
    /// Empty until a slot is skipped.
    bits: Vec<u8>,
    count: usize,
    /// One past the last slot that was set.
    end: usize,
}

impl Slots {
    #[inline(always)]
    pub fn set(&mut self, slot: usize) {
        if !self.bits.is_empty() || slot != self.end {
            self.set_bit(slot);
        }
        self.count += 1;
        self.end = slot + 1;
    }

    #[inline(always)]
    fn set_bit(&mut self, slot: usize) {
        let (byte, bit) = (slot / 8, 1 << (slot % 8));
        match self.bits.get_mut(byte) {
            Some(bits) => *bits |= bit,
            None => self.add_bit(byte, bit),
        }
    }

    #[cold]
    fn add_bit(&mut self, byte: usize, bit: u8) {
        if self.bits.is_empty() {
            push_ones(&mut self.bits, self.end);
        }
        self.bits.resize(self.bits.len().max(byte + 1), 0);
        self.bits[byte] |= bit;
    }

    /// Whether the newest slot, `slot`, is set.
    #[inline(always)]
    pub fn has_newest(&self, slot: usize) -> bool {
        self.end > slot
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Unset `slot` and all later slots; return the number of values that remain.
    pub fn truncate(&mut self, slot: usize) -> usize {
        if self.bits.is_empty() {
            self.end = self.end.min(slot);
            self.count = self.end;
        }
        while self.end > slot {
            self.end -= 1;
            let (byte, bit) = (self.end / 8, 1 << (self.end % 8));
            if self.bits[byte] & bit != 0 {
                self.bits[byte] &= !bit;
                self.count -= 1;
            }
        }
        self.count
    }

    /// Unset all slots.
    pub fn clear(&mut self) {
        self.bits.clear();
        (self.count, self.end) = (0, 0);
    }

    /// The validity of `length` slots, which are unset afterwards.
    pub fn take(&mut self, length: usize) -> NullBuffer {
        let (mut bits, count) = (take_buffer(&mut self.bits), self.count);
        self.clear();
        if bits.is_empty() {
            push_ones(&mut bits, count);
        }
        bits.resize(length.div_ceil(8), 0);
        let bits = BooleanBuffer::new(Buffer::from_vec(bits), 0, length);
        debug_assert_eq!(bits.count_set_bits(), count);
        NullBuffer::new(bits)
    }
}

/// Append the bits of `count` slots that all have a value.
fn push_ones(bits: &mut Vec<u8>, count: usize) {
    bits.resize(count / 8, 0xFF);
    if !count.is_multiple_of(8) {
        bits.push((1 << (count % 8)) - 1);
    }
}

/// Take the content of `buffer`. What remains has the capacity for about as much: a chunk is mostly as large as the
/// one before, and a buffer that grows is copied several times.
pub(crate) fn take_buffer<T>(buffer: &mut Vec<T>) -> Vec<T> {
    let capacity = buffer.len() + buffer.len() / 8;
    std::mem::replace(buffer, Vec::with_capacity(capacity))
}

/// Bytes by slot.
#[derive(Debug)]
pub struct BinaryColumn {
    slots: Slots,
    /// The values back to back, then the bytes of a value that is being built.
    pub data: Vec<u8>,
    offsets: Vec<i32>,
}

impl Default for BinaryColumn {
    fn default() -> Self {
        BinaryColumn { slots: Slots::default(), data: Vec::new(), offsets: vec![0] }
    }
}

impl BinaryColumn {
    /// Assign the bytes at the end of `data` to `slot`.
    #[inline(always)]
    pub fn end_value(&mut self, slot: usize) {
        self.slots.set(slot);
        self.offsets.push(self.data.len() as i32);
    }

    #[inline(always)]
    pub fn push(&mut self, slot: usize, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.end_value(slot);
    }

    pub fn has_newest(&self, slot: usize) -> bool {
        self.slots.has_newest(slot)
    }

    /// Where a value that is begun now starts in `data`.
    pub fn start(&self) -> usize {
        // An offset beyond 2 GiB is negative, until `take` rejects the column.
        self.offsets.last().map_or(0, |&end| end as u32 as usize)
    }

    pub fn truncate(&mut self, slot: usize) {
        if self.slots.has_newest(slot) {
            let count = self.slots.truncate(slot);
            self.offsets.truncate(count + 1);
        }
        self.data.truncate(self.start());
    }

    fn take(&mut self, length: usize) -> Result<(OffsetBuffer<i32>, Buffer, Option<NullBuffer>)> {
        // The offsets are those of parts of the data.
        i32::try_from(self.data.len()).map_err(|_| Error::too_large())?;
        let data = Buffer::from_vec(take_buffer(&mut self.data));
        let (offsets, nulls) = match self.slots.count() {
            count if count == length => (offset_buffer(take_buffer(&mut self.offsets)), None),
            0 => (OffsetBuffer::new_zeroed(length), Some(NullBuffer::new_null(length))),
            _ => {
                let nulls = self.slots.take(length);
                let mut spread = Vec::with_capacity(length + 1);
                let mut next = 0;
                for slot in nulls.valid_indices() {
                    spread.resize(slot + 1, self.offsets[next]);
                    next += 1;
                }
                spread.resize(length + 1, self.offsets[next]);
                (offset_buffer(spread), Some(nulls))
            }
        };
        self.slots.clear();
        self.offsets.clear();
        self.offsets.push(0);
        Ok((offsets, data, nulls))
    }

    /// Whether no slot has a value. Then the column is ready for the next slots.
    pub fn restart_if_empty(&mut self) -> bool {
        let is_empty = self.slots.count() == 0;
        if is_empty {
            self.slots.clear();
        }
        is_empty
    }

    pub fn take_binary(&mut self, length: usize) -> Result<BinaryArray> {
        let (offsets, data, nulls) = self.take(length)?;
        Ok(BinaryArray::try_new(offsets, data, nulls)?)
    }

    fn take_string(&mut self, length: usize) -> Result<StringArray> {
        let (offsets, data, nulls) = self.take(length)?;
        Ok(StringArray::try_new(offsets, data, nulls)?)
    }
}

fn offset_buffer(offsets: Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(offsets))
}

/// Values of a fixed width by slot.
#[derive(Debug)]
pub struct FixedColumn<T> {
    slots: Slots,
    values: Vec<T>,
}

impl<T> Default for FixedColumn<T> {
    fn default() -> Self {
        FixedColumn { slots: Slots::default(), values: Vec::new() }
    }
}

impl<T: Copy + Default> FixedColumn<T> {
    #[inline(always)]
    fn push(&mut self, slot: usize, value: T) {
        self.slots.set(slot);
        self.values.push(value);
    }

    fn truncate(&mut self, slot: usize) {
        if self.slots.has_newest(slot) {
            let count = self.slots.truncate(slot);
            self.values.truncate(count);
        }
    }

    fn take_values(&mut self, length: usize) -> (Vec<T>, Option<NullBuffer>) {
        if self.slots.count() == length {
            self.slots.clear();
            return (take_buffer(&mut self.values), None);
        }
        let nulls = self.slots.take(length);
        let mut spread = vec![T::default(); length];
        nulls.valid_indices().zip(self.values.drain(..)).for_each(|(slot, value)| spread[slot] = value);
        (spread, Some(nulls))
    }

    fn take<P: ArrowPrimitiveType<Native = T>>(&mut self, length: usize) -> Result<PrimitiveArray<P>>
    where
        T: ArrowNativeType,
    {
        let (values, nulls) = self.take_values(length);
        Ok(PrimitiveArray::try_new(ScalarBuffer::from(values), nulls)?)
    }
}

/// The `typed_value` column of a leaf.
#[derive(Debug)]
pub struct LeafColumn {
    pub leaf: LeafType,
    pub values: LeafValues,
}

#[derive(Debug)]
pub enum LeafValues {
    Boolean(FixedColumn<bool>),
    Int8(FixedColumn<i8>),
    Int16(FixedColumn<i16>),
    /// int32 and date.
    Int32(FixedColumn<i32>),
    /// int64, time and timestamps.
    Int64(FixedColumn<i64>),
    Float(FixedColumn<f32>),
    Double(FixedColumn<f64>),
    Decimal(FixedColumn<i128>),
    /// binary and string.
    Bytes(BinaryColumn),
    Uuid(FixedColumn<[u8; 16]>),
}

/// Do `$work` with the column of any type.
macro_rules! each_column {
    ($values:expr, $column:ident => $work:expr) => {
        match $values {
            LeafValues::Boolean($column) => $work,
            LeafValues::Int8($column) => $work,
            LeafValues::Int16($column) => $work,
            LeafValues::Int32($column) => $work,
            LeafValues::Int64($column) => $work,
            LeafValues::Float($column) => $work,
            LeafValues::Double($column) => $work,
            LeafValues::Decimal($column) => $work,
            LeafValues::Bytes($column) => $work,
            LeafValues::Uuid($column) => $work,
        }
    };
}

impl LeafColumn {
    pub fn new(leaf: LeafType) -> Self {
        let values = match leaf {
            LeafType::Boolean => LeafValues::Boolean(FixedColumn::default()),
            LeafType::Int8 => LeafValues::Int8(FixedColumn::default()),
            LeafType::Int16 => LeafValues::Int16(FixedColumn::default()),
            LeafType::Int32 | LeafType::Date => LeafValues::Int32(FixedColumn::default()),
            LeafType::Int64
            | LeafType::Time
            | LeafType::Timestamp
            | LeafType::TimestampNtz
            | LeafType::TimestampNanos
            | LeafType::TimestampNtzNanos => LeafValues::Int64(FixedColumn::default()),
            LeafType::Float => LeafValues::Float(FixedColumn::default()),
            LeafType::Double => LeafValues::Double(FixedColumn::default()),
            LeafType::Decimal { .. } => LeafValues::Decimal(FixedColumn::default()),
            LeafType::Binary | LeafType::String => LeafValues::Bytes(BinaryColumn::default()),
            LeafType::Uuid => LeafValues::Uuid(FixedColumn::default()),
        };
        LeafColumn { leaf, values }
    }

    /// Store `value` if it is of the column's type, or of the same exact-numeric class and representable
    /// without loss (VariantShredding.md, "Shredded Value Types"). Return whether it was stored.
    #[inline]
    pub fn push(&mut self, slot: usize, value: &Value<'_>) -> bool {
        use LeafType as L;
        use LeafValues as V;
        match (&mut self.values, value) {
            (V::Boolean(c), Value::Boolean(v)) => c.push(slot, *v),
            (V::Int8(c), _) => return push_integer(c, slot, value),
            (V::Int16(c), _) => return push_integer(c, slot, value),
            (V::Int32(c), Value::Date(v)) if self.leaf == L::Date => c.push(slot, *v),
            (V::Int32(c), _) if self.leaf == L::Int32 => return push_integer(c, slot, value),
            (V::Int64(c), Value::Int64(v)) if self.leaf == L::Int64 => c.push(slot, *v),
            (V::Int64(c), Value::Time(v)) if self.leaf == L::Time => c.push(slot, *v),
            (V::Int64(c), Value::Timestamp(v)) if self.leaf == L::Timestamp => c.push(slot, *v),
            (V::Int64(c), Value::TimestampNtz(v)) if self.leaf == L::TimestampNtz => c.push(slot, *v),
            (V::Int64(c), Value::TimestampNanos(v)) if self.leaf == L::TimestampNanos => c.push(slot, *v),
            (V::Int64(c), Value::TimestampNtzNanos(v)) if self.leaf == L::TimestampNtzNanos => {
                c.push(slot, *v)
            }
            (V::Int64(c), _) if self.leaf == L::Int64 => return push_integer(c, slot, value),
            (V::Float(c), Value::Float(v)) => c.push(slot, *v),
            (V::Double(c), Value::Double(v)) => c.push(slot, *v),
            (V::Decimal(c), _) => match self.leaf {
                L::Decimal { precision, scale } => match rescale(value, precision, scale) {
                    Some(unscaled) => c.push(slot, unscaled),
                    None => return false,
                },
                _ => return false,
            },
            (V::Bytes(c), Value::String(v)) if self.leaf == L::String => c.push(slot, v.as_bytes()),
            (V::Bytes(c), Value::Binary(v)) if self.leaf == L::Binary => c.push(slot, v),
            (V::Uuid(c), Value::Uuid(v)) => c.push(slot, *v),
            _ => return false,
        }
        true
    }

    /// As [`LeafColumn::push`] for an integer.
    #[inline(always)]
    pub fn push_integer(&mut self, slot: usize, value: i64) -> bool {
        match &mut self.values {
            LeafValues::Int64(column) if self.leaf == LeafType::Int64 => {
                column.push(slot, value);
                true
            }
            LeafValues::Decimal(_) => self.push_decimal(slot, value, 0),
            _ => self.push(slot, &Value::Int64(value)),
        }
    }

    /// As [`LeafColumn::push`] for a decimal of 64 bits.
    #[inline(always)]
    pub fn push_decimal(&mut self, slot: usize, unscaled: i64, scale: u8) -> bool {
        match (&mut self.values, self.leaf) {
            (LeafValues::Decimal(column), LeafType::Decimal { precision, scale: column_scale })
                if (scale..=scale.saturating_add(18)).contains(&column_scale) =>
            {
                // 64 bits times 10^18 fit into 128 bits.
                let unscaled = i128::from(unscaled) * POWERS[usize::from(column_scale - scale)];
                let fits = unscaled.abs() < POWERS[usize::from(precision)];
                if fits {
                    column.push(slot, unscaled);
                }
                fits
            }
            _ => self.push(slot, &Value::Decimal(Decimal { unscaled: unscaled.into(), scale })),
        }
    }

    fn slots(&self) -> &Slots {
        each_column!(&self.values, column => &column.slots)
    }

    pub fn has_newest(&self, slot: usize) -> bool {
        self.slots().has_newest(slot)
    }

    pub fn truncate(&mut self, slot: usize) {
        each_column!(&mut self.values, column => column.truncate(slot))
    }

    /// The column as an Arrow array of `length` slots, of type `text` if it has text; the column is empty afterwards.
    pub fn take(&mut self, length: usize, text: &DataType) -> Result<ArrayRef> {
        Ok(match &mut self.values {
            LeafValues::Boolean(c) => {
                let (values, nulls) = c.take_values(length);
                let mut bits = BooleanBufferBuilder::new(length);
                bits.append_slice(&values);
                Arc::new(BooleanArray::new(bits.finish(), nulls))
            }
            LeafValues::Int8(c) => Arc::new(c.take::<Int8Type>(length)?),
            LeafValues::Int16(c) => Arc::new(c.take::<Int16Type>(length)?),
            LeafValues::Int32(c) if self.leaf == LeafType::Date => Arc::new(c.take::<Date32Type>(length)?),
            LeafValues::Int32(c) => Arc::new(c.take::<Int32Type>(length)?),
            LeafValues::Int64(c) => match self.leaf {
                LeafType::Time => Arc::new(c.take::<Time64MicrosecondType>(length)?),
                LeafType::Timestamp => {
                    Arc::new(c.take::<TimestampMicrosecondType>(length)?.with_timezone("UTC"))
                }
                LeafType::TimestampNtz => Arc::new(c.take::<TimestampMicrosecondType>(length)?),
                LeafType::TimestampNanos => {
                    Arc::new(c.take::<TimestampNanosecondType>(length)?.with_timezone("UTC"))
                }
                LeafType::TimestampNtzNanos => Arc::new(c.take::<TimestampNanosecondType>(length)?),
                _ => Arc::new(c.take::<Int64Type>(length)?),
            },
            LeafValues::Float(c) => Arc::new(c.take::<Float32Type>(length)?),
            LeafValues::Double(c) => Arc::new(c.take::<Float64Type>(length)?),
            LeafValues::Decimal(c) => {
                let decimals = c.take::<Decimal128Type>(length)?;
                Arc::new(decimals.with_data_type(self.leaf.data_type()))
            }
            LeafValues::Bytes(c) if self.leaf == LeafType::String && *text == DataType::Utf8 => {
                Arc::new(c.take_string(length)?)
            }
            LeafValues::Bytes(c) => Arc::new(c.take_binary(length)?),
            LeafValues::Uuid(c) => {
                let (values, nulls) = c.take_values(length);
                let bytes = Buffer::from_vec(values.concat());
                Arc::new(FixedSizeBinaryArray::try_new(16, bytes, nulls)?)
            }
        })
    }
}

fn push_integer<T: TryFrom<i64> + Copy + Default>(
    column: &mut FixedColumn<T>,
    slot: usize,
    value: &Value<'_>,
) -> bool {
    match integer(value).and_then(|v| T::try_from(v).ok()) {
        Some(v) => {
            column.push(slot, v);
            true
        }
        None => false,
    }
}

/// The value as an integer, when it is an exact number without a fraction.
fn integer(value: &Value<'_>) -> Option<i64> {
    match *value {
        Value::Int8(v) => Some(v.into()),
        Value::Int16(v) => Some(v.into()),
        Value::Int32(v) => Some(v.into()),
        Value::Int64(v) => Some(v),
        Value::Decimal(v) => change_scale(v, 0).and_then(|v| i64::try_from(v).ok()),
        _ => None,
    }
}

/// The unscaled digits of an exact number as a decimal of `precision` and `scale`, if none is lost.
fn rescale(value: &Value<'_>, precision: u8, scale: u8) -> Option<i128> {
    let decimal = match *value {
        Value::Decimal(v) => v,
        _ => Decimal { unscaled: integer(value)?.into(), scale: 0 },
    };
    let unscaled = change_scale(decimal, scale)?;
    (unscaled.unsigned_abs() < POWERS[usize::from(precision)].unsigned_abs()).then_some(unscaled)
}

#[inline]
fn change_scale(decimal: Decimal, scale: u8) -> Option<i128> {
    match scale.cmp(&decimal.scale) {
        std::cmp::Ordering::Equal => Some(decimal.unscaled),
        std::cmp::Ordering::Greater => {
            decimal.unscaled.checked_mul(10i128.checked_pow(u32::from(scale - decimal.scale))?)
        }
        std::cmp::Ordering::Less => {
            let divisor = 10i128.checked_pow(u32::from(decimal.scale - scale))?;
            (decimal.unscaled % divisor == 0).then(|| decimal.unscaled / divisor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_beyond_32_bit_offsets_is_an_error() {
        let mut column = BinaryColumn { data: vec![0; 1 << 31], ..Default::default() };
        column.end_value(0);
        assert_eq!(column.start(), 1 << 31);
        assert_eq!(column.take_binary(1).unwrap_err(), Error::too_large());
    }
}
