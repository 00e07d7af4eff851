//! Append Variant values to a buffer.

use super::metadata::{unsigned_size, write_unsigned};
use super::{Decimal, Value};

/// Append a scalar; copy an object or array unchanged.
pub fn scalar(out: &mut Vec<u8>, value: &Value<'_>) {
    match *value {
        Value::Null => out.push(0x00),
        Value::Boolean(true) => out.push(0x04),
        Value::Boolean(false) => out.push(0x08),
        Value::Int8(v) => primitive(out, 3, &v.to_le_bytes()),
        Value::Int16(v) => primitive(out, 4, &v.to_le_bytes()),
        Value::Int32(v) => primitive(out, 5, &v.to_le_bytes()),
        Value::Int64(v) => primitive(out, 6, &v.to_le_bytes()),
        Value::Double(v) => primitive(out, 7, &v.to_le_bytes()),
        Value::Decimal(v) => decimal(out, v),
        Value::Date(v) => primitive(out, 11, &v.to_le_bytes()),
        Value::Timestamp(v) => primitive(out, 12, &v.to_le_bytes()),
        Value::TimestampNtz(v) => primitive(out, 13, &v.to_le_bytes()),
        Value::Float(v) => primitive(out, 14, &v.to_le_bytes()),
        Value::Binary(v) => {
            primitive(out, 15, &(v.len() as u32).to_le_bytes());
            out.extend_from_slice(v);
        }
        Value::String(v) => string(out, v.as_bytes()),
        Value::Time(v) => primitive(out, 17, &v.to_le_bytes()),
        Value::TimestampNanos(v) => primitive(out, 18, &v.to_le_bytes()),
        Value::TimestampNtzNanos(v) => primitive(out, 19, &v.to_le_bytes()),
        Value::Uuid(v) => primitive(out, 20, &v),
        Value::Object(v) => out.extend_from_slice(v.as_bytes()),
        Value::Array(v) => out.extend_from_slice(v.as_bytes()),
        // The length of its payload is unknown, so callers copy the bytes of such a value instead.
        Value::Unknown(id) => out.push(id << 2),
    }
}

fn primitive(out: &mut Vec<u8>, id: u8, data: &[u8]) {
    out.push(id << 2);
    out.extend_from_slice(data);
}

/// Append an integer in the narrowest of int8, int16, int32 and int64.
#[inline]
pub fn int(out: &mut Vec<u8>, value: i64) {
    // Without a branch for each width: the widths of a field vary, so such branches are mispredicted.
    let bits = 65 - (value ^ (value >> 63)).leading_zeros() as usize;
    let (id, width) = [(3, 1), (4, 2), (5, 4), (5, 4), (6, 8), (6, 8), (6, 8), (6, 8)][(bits - 1) / 8];
    truncated(out, u128::from(value as u64) << 8 | id << 2, 1 + width);
}

/// Append the first `length` bytes of a word.
#[inline]
fn truncated(out: &mut Vec<u8>, word: u128, length: usize) {
    let end = out.len() + length;
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(end);
}

/// As [`decimal`], with digits of 64 bits, of which there are at most 18.
#[inline]
pub fn short_decimal(out: &mut Vec<u8>, unscaled: i64, scale: u8) {
    let (id, width) = if unscaled.unsigned_abs() <= 999_999_999 && scale <= 9 { (8, 4) } else { (9, 8) };
    truncated(out, u128::from(unscaled as u64) << 16 | u128::from(scale) << 8 | id << 2, 2 + width);
}

/// Append a decimal in the narrowest of decimal4, decimal8 and decimal16 that holds its digits and scale.
pub fn decimal(out: &mut Vec<u8>, Decimal { unscaled, scale }: Decimal) {
    const DIGITS_9: u128 = 999_999_999;
    const DIGITS_18: u128 = 999_999_999_999_999_999;
    let magnitude = unscaled.unsigned_abs();
    if magnitude <= DIGITS_9 && scale <= 9 {
        out.extend_from_slice(&[8 << 2, scale]);
        out.extend_from_slice(&(unscaled as i32).to_le_bytes());
    } else if magnitude <= DIGITS_18 && scale <= 18 {
        out.extend_from_slice(&[9 << 2, scale]);
        out.extend_from_slice(&(unscaled as i64).to_le_bytes());
    } else {
        out.extend_from_slice(&[10 << 2, scale]);
        out.extend_from_slice(&unscaled.to_le_bytes());
    }
}

/// Append a decimal in the width of a `typed_value` column of that precision.
pub fn decimal_of_precision(out: &mut Vec<u8>, Decimal { unscaled, scale }: Decimal, precision: u8) {
    match precision {
        0..=9 => {
            out.extend_from_slice(&[8 << 2, scale]);
            out.extend_from_slice(&(unscaled as i32).to_le_bytes());
        }
        10..=18 => {
            out.extend_from_slice(&[9 << 2, scale]);
            out.extend_from_slice(&(unscaled as i64).to_le_bytes());
        }
        _ => {
            out.extend_from_slice(&[10 << 2, scale]);
            out.extend_from_slice(&unscaled.to_le_bytes());
        }
    }
}

/// Append UTF-8 text: as a short string when it has at most 63 bytes.
pub fn string(out: &mut Vec<u8>, text: &[u8]) {
    string_header(out, text.len());
    out.extend_from_slice(text);
}

/// Append what precedes the bytes of a string of `length` bytes.
#[inline(always)]
pub fn string_header(out: &mut Vec<u8>, length: usize) {
    if length < 64 {
        out.push((length as u8) << 2 | 1);
    } else {
        primitive(out, 16, &(length as u32).to_le_bytes());
    }
}

/// The header of an object or array of `length` values that take `size` bytes in all.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub length: usize,
    pub offset_size: usize,
    /// 0 in an array.
    pub id_size: usize,
    size: usize,
}

impl Layout {
    pub fn object(length: usize, size: usize, id_size: usize) -> Self {
        Layout { length, offset_size: unsigned_size(size), id_size, size }
    }

    pub fn array(length: usize, size: usize) -> Self {
        Layout { length, offset_size: unsigned_size(size), id_size: 0, size }
    }

    fn is_large(&self) -> bool {
        self.length > 255
    }

    /// The number of bytes before the values.
    pub fn header_size(&self) -> usize {
        let length_size = if self.is_large() { 4 } else { 1 };
        1 + length_size + self.length * self.id_size + (self.length + 1) * self.offset_size
    }

    /// Append the header of an object whose fields, as (name id, offset), are in the order of their names.
    pub fn write_object(&self, out: &mut Vec<u8>, fields: impl Iterator<Item = (usize, usize)> + Clone) {
        let flags =
            u8::from(self.is_large()) << 4 | ((self.id_size - 1) as u8) << 2 | (self.offset_size - 1) as u8;
        out.push(flags << 2 | 2);
        self.write_length(out);
        fields.clone().for_each(|(id, _)| write_unsigned(out, id, self.id_size));
        fields.for_each(|(_, offset)| write_unsigned(out, offset, self.offset_size));
        write_unsigned(out, self.size, self.offset_size);
    }

    /// Append the header of an array whose elements begin at `offsets`.
    pub fn write_array(&self, out: &mut Vec<u8>, offsets: impl Iterator<Item = usize>) {
        let flags = u8::from(self.is_large()) << 2 | (self.offset_size - 1) as u8;
        out.push(flags << 2 | 3);
        self.write_length(out);
        offsets.for_each(|offset| write_unsigned(out, offset, self.offset_size));
        write_unsigned(out, self.size, self.offset_size);
    }

    /// As [`Layout::write_object`] into `header`, with ids of one byte.
    pub fn fill_object(&self, header: &mut [u8], fields: impl Iterator<Item = (usize, usize)>) {
        let flags = u8::from(self.is_large()) << 4 | (self.offset_size - 1) as u8;
        let rest = self.fill_length(header, flags << 2 | 2);
        let (ids, offsets) = rest.split_at_mut(self.length);
        let fields = fields.zip(ids).map(|((id, offset), written)| {
            *written = id as u8;
            offset
        });
        self.fill_offsets(offsets, fields);
    }

    /// As [`Layout::write_array`] into `header`.
    pub fn fill_array(&self, header: &mut [u8], offsets: &[usize]) {
        let flags = u8::from(self.is_large()) << 2 | (self.offset_size - 1) as u8;
        let rest = self.fill_length(header, flags << 2 | 3);
        self.fill_offsets(rest, offsets.iter().copied());
    }

    fn fill_length<'h>(&self, header: &'h mut [u8], first: u8) -> &'h mut [u8] {
        header[0] = first;
        header[1] = self.length as u8;
        if !self.is_large() {
            return &mut header[2..];
        }
        header[1..5].copy_from_slice(&(self.length as u32).to_le_bytes());
        &mut header[5..]
    }

    fn fill_offsets(&self, out: &mut [u8], offsets: impl Iterator<Item = usize>) {
        let offsets = offsets.chain(std::iter::once(self.size));
        match self.offset_size {
            1 => fill::<1>(out, offsets),
            2 => fill::<2>(out, offsets),
            3 => fill::<3>(out, offsets),
            _ => fill::<4>(out, offsets),
        }
    }

    fn write_length(&self, out: &mut Vec<u8>) {
        write_unsigned(out, self.length, if self.is_large() { 4 } else { 1 });
    }
}

/// Fill `out` with numbers of `N` bytes.
#[inline(always)]
fn fill<const N: usize>(out: &mut [u8], numbers: impl Iterator<Item = usize>) {
    let (out, _) = out.as_chunks_mut::<N>();
    out.iter_mut().zip(numbers).for_each(|(out, number)| out.copy_from_slice(&number.to_le_bytes()[..N]));
}
