//! Keys of Variants: bytes that are equal for equal values, and in the order of the values.
//!
//! Values are equal as in the equivalence classes of VariantEncoding.md: exact numbers and timestamps by value, objects
//! without regard to the order of their fields. A key starts with the rank of its type, so that values of one type are together.

use arrow_array::builder::BinaryBuilder;
use arrow_array::{BinaryArray, StructArray};

use super::in_ranges;
use crate::error::{Error, Result, each_row};
use crate::value::column::Variants;
use crate::value::{Decimal, MAX_DEPTH, Metadata, Value, malformed, too_deep};

/// Ends a string of bytes, an array and an object; it is before everything that can follow in a longer one.
const END: u8 = 0;

/// Precedes each element of an array and each field of an object.
const NEXT: u8 = 1;

/// Follows a zero byte in a string of bytes.
const ESCAPED: u8 = 0xff;

/// The number of decimal digits before the point of the smallest and the largest exact numbers is within this range.
const EXPONENT_BIAS: i32 = 64;

/// Return the key of each Variant, null for SQL NULL.
pub fn keys(variants: &StructArray) -> Result<BinaryArray> {
    let variants = Variants::new(variants)?;
    let parts = in_ranges(variants.len(), |rows| {
        let mut out = BinaryBuilder::with_capacity(rows.len(), 0);
        let mut key = Vec::new();
        each_row(rows, |row| {
            key.clear();
            let found = variants.get(row)?;
            if let Some((metadata, value)) = found {
                push(&Metadata::parse(metadata)?, value, 0, &mut key)?;
            }
            if out.values_slice().len() + key.len() > i32::MAX as usize {
                return Err(Error::too_large());
            }
            out.append_option(found.map(|_| &key));
            Ok(())
        })?;
        Ok(out.finish())
    })?;
    Ok(parts.iter().flatten().collect())
}

/// Append the key of a value.
pub(super) fn push(names: &Metadata<'_>, bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let value = Value::decode(bytes)?;
    out.push(rank(&value)?);
    match value {
        Value::Null | Value::Unknown(_) => {}
        Value::Boolean(v) => out.push(v.into()),
        Value::Int8(v) => push_number(v.into(), 0, out),
        Value::Int16(v) => push_number(v.into(), 0, out),
        Value::Int32(v) => push_number(v.into(), 0, out),
        Value::Int64(v) => push_number(v.into(), 0, out),
        Value::Decimal(Decimal { unscaled, scale }) => push_number(unscaled, scale.into(), out),
        Value::Float(v) => out.extend_from_slice(&ordered_float(v).to_be_bytes()),
        Value::Double(v) => out.extend_from_slice(&ordered_double(v).to_be_bytes()),
        Value::Date(v) => out.extend_from_slice(&(v ^ i32::MIN).to_be_bytes()),
        Value::Time(v) => out.extend_from_slice(&(v ^ i64::MIN).to_be_bytes()),
        Value::Timestamp(v) | Value::TimestampNtz(v) => push_moment(v, 0, out),
        Value::TimestampNanos(v) | Value::TimestampNtzNanos(v) => {
            push_moment(v.div_euclid(1000), v.rem_euclid(1000) as u16, out);
        }
        Value::String(v) => push_bytes(v.as_bytes(), out),
        Value::Binary(v) => push_bytes(v, out),
        Value::Uuid(v) => out.extend_from_slice(&v),
        Value::Array(array) => {
            for element in array.elements() {
                out.push(NEXT);
                push(names, element?, depth + 1, out)?;
            }
            out.push(END);
        }
        Value::Object(object) => {
            let mut fields = Vec::with_capacity(object.len());
            for field in object.fields() {
                let (id, value) = field?;
                fields.push((names.get(id)?, value));
            }
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in fields {
                out.push(NEXT);
                push_bytes(name.as_bytes(), out);
                push(names, value, depth + 1, out)?;
            }
            out.push(END);
        }
    }
    Ok(())
}

/// The position of a type among the others.
fn rank(value: &Value<'_>) -> Result<u8> {
    Ok(match value {
        Value::Null => 1,
        Value::Boolean(_) => 2,
        Value::Int8(_) | Value::Int16(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => 3,
        Value::Float(_) => 4,
        Value::Double(_) => 5,
        Value::Date(_) => 6,
        Value::Time(_) => 7,
        Value::Timestamp(_) | Value::TimestampNanos(_) => 8,
        Value::TimestampNtz(_) | Value::TimestampNtzNanos(_) => 9,
        Value::String(_) => 10,
        Value::Binary(_) => 11,
        Value::Uuid(_) => 12,
        Value::Array(_) => 13,
        Value::Object(_) => 14,
        Value::Unknown(id) => return Err(malformed(&format!("unknown primitive type {id}"))),
    })
}

/// Append microseconds and the nanoseconds after them.
fn push_moment(micros: i64, nanos: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&(micros ^ i64::MIN).to_be_bytes());
    out.extend_from_slice(&nanos.to_be_bytes());
}

/// Append the sign, the digits before the point and all digits of `unscaled / 10^scale`, without zeros at the end.
///
/// Those of a negative number are inverted, because a larger one is before a smaller one.
fn push_number(unscaled: i128, scale: i32, out: &mut Vec<u8>) {
    let mut rest = unscaled.unsigned_abs();
    out.push((unscaled.signum() + 1) as u8);
    if rest == 0 {
        return;
    }
    let digits = rest.ilog10() as i32 + 1;
    while rest.is_multiple_of(10) {
        rest /= 10;
    }
    let start = out.len();
    out.push((digits - scale + EXPONENT_BIAS) as u8);
    // A digit is never END.
    out.extend(rest.to_string().bytes());
    out.push(END);
    if unscaled < 0 {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The bits of a number in the order of the numbers: NaN is the largest, and both zeros are one.
fn ordered_double(value: f64) -> u64 {
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn ordered_float(value: f32) -> u32 {
    let value = if value.is_nan() { f32::NAN } else { value + 0.0 };
    let bits = value.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// Append bytes of any length so that a shorter string is before its continuations.
fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == END {
            out.push(ESCAPED);
        }
    }
    out.extend_from_slice(&[END, END]);
}
