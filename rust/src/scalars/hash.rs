//! The hash functions of Spark: Murmur3 of 32 bits and xxHash of 64 bits.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array};
use arrow_schema::{DataType, TimeUnit};

use super::Arguments;
use crate::error::{Error, Result};

/// Decimals of more digits are hashed by their bytes.
const MAX_LONG_DIGITS: u8 = 18;

/// A hash function that hashes a value with the hash before it as seed.
trait Hash: Copy {
    const SEED: Self;
    fn int(self, value: i32) -> Self;
    fn long(self, value: i64) -> Self;
    fn bytes(self, value: &[u8]) -> Self;
}

pub fn murmur3(arguments: &Arguments) -> Result<ArrayRef> {
    Ok(Arc::new(Int32Array::from(hashes::<i32>(arguments)?)))
}

pub fn xxhash64(arguments: &Arguments) -> Result<ArrayRef> {
    Ok(Arc::new(Int64Array::from(hashes::<i64>(arguments)?)))
}

fn hashes<H: Hash>(arguments: &Arguments) -> Result<Vec<H>> {
    let mut hashes = vec![H::SEED; arguments.rows];
    for column in &arguments.columns {
        let step = usize::from(column.len() == arguments.rows);
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = value(*hash, column, row * step)?;
        }
    }
    Ok(hashes)
}

/// The hash after the value at `row`; a null does not change it.
fn value<H: Hash>(hash: H, array: &dyn Array, row: usize) -> Result<H> {
    if array.is_null(row) {
        return Ok(hash);
    }
    Ok(match array.data_type() {
        DataType::Null => hash,
        DataType::Boolean => hash.int(array.as_boolean().value(row).into()),
        DataType::Int8 => hash.int(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => hash.int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => hash.int(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => hash.long(array.as_primitive::<Int64Type>().value(row)),
        DataType::Date32 => hash.int(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            hash.long(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Float32 => hash.int(float_bits(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => hash.long(double_bits(array.as_primitive::<Float64Type>().value(row))),
        DataType::Decimal128(precision, _) => {
            decimal(hash, array.as_primitive::<Decimal128Type>().value(row), *precision)
        }
        DataType::Utf8 => hash.bytes(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => hash.bytes(array.as_string::<i64>().value(row).as_bytes()),
        DataType::Binary => hash.bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => hash.bytes(array.as_binary::<i64>().value(row)),
        DataType::List(_) => elements(hash, &array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => elements(hash, &array.as_list::<i64>().value(row))?,
        DataType::Struct(_) => {
            array.as_struct().columns().iter().try_fold(hash, |hash, field| value(hash, field, row))?
        }
        other => return Err(Error::unsupported(format!("cannot hash values of type {other}"))),
    })
}

fn elements<H: Hash>(hash: H, elements: &ArrayRef) -> Result<H> {
    (0..elements.len()).try_fold(hash, |hash, index| value(hash, elements, index))
}

fn decimal<H: Hash>(hash: H, unscaled: i128, precision: u8) -> H {
    match i64::try_from(unscaled) {
        Ok(unscaled) if precision <= MAX_LONG_DIGITS => hash.long(unscaled),
        _ => {
            // The fewest bytes in two's complement, as Java's `BigInteger` has them.
            let bytes = unscaled.to_be_bytes();
            let sign = if unscaled < 0 { 0xFF } else { 0 };
            let is_kept = |pair: &[u8]| pair[0] != sign || (pair[1] ^ sign) & 0x80 != 0;
            let start = bytes.windows(2).position(is_kept).unwrap_or(bytes.len() - 1);
            hash.bytes(&bytes[start..])
        }
    }
}

/// The bits of a number; both zeros have the same, and every NaN has.
fn float_bits(number: f32) -> i32 {
    let number = if number == 0.0 { 0.0 } else { number };
    (if number.is_nan() { f32::from_bits(0x7FC0_0000) } else { number }).to_bits() as i32
}

fn double_bits(number: f64) -> i64 {
    let number = if number == 0.0 { 0.0 } else { number };
    (if number.is_nan() { f64::from_bits(0x7FF8_0000_0000_0000) } else { number }).to_bits() as i64
}

impl Hash for i32 {
    const SEED: i32 = 42;

    fn int(self, value: i32) -> i32 {
        finish(mixed(self, value), 4)
    }

    fn long(self, value: i64) -> i32 {
        finish(mixed(mixed(self, value as i32), (value >> 32) as i32), 8)
    }

    fn bytes(self, value: &[u8]) -> i32 {
        let words = value.chunks_exact(4);
        // Unlike Murmur3 itself, Spark hashes each of the last bytes as a word.
        let rest = words.remainder().iter().map(|byte| i32::from(*byte as i8));
        let words = words.map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        finish(words.chain(rest).fold(self, mixed), value.len() as i32)
    }
}

fn mixed(hash: i32, word: i32) -> i32 {
    let word = word.wrapping_mul(0xCC9E_2D51_u32 as i32).rotate_left(15).wrapping_mul(0x1B87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64_u32 as i32)
}

fn finish(hash: i32, length: i32) -> i32 {
    let mut hash = (hash ^ length) as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xC2B2_AE35);
    (hash ^ (hash >> 16)) as i32
}

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

impl Hash for i64 {
    const SEED: i64 = 42;

    fn int(self, value: i32) -> i64 {
        avalanche(with_int((self as u64).wrapping_add(P5).wrapping_add(4), value as u32))
    }

    fn long(self, value: i64) -> i64 {
        avalanche(with_long((self as u64).wrapping_add(P5).wrapping_add(8), value as u64))
    }

    fn bytes(self, value: &[u8]) -> i64 {
        let (seed, mut rest) = (self as u64, value);
        let mut hash = if value.len() < 32 {
            seed.wrapping_add(P5)
        } else {
            let mut lanes =
                [seed.wrapping_add(P1).wrapping_add(P2), seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
            while let Some((stripe, after)) = rest.split_at_checked(32) {
                for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                    *lane = round(*lane, little_endian(word));
                }
                rest = after;
            }
            let turns = [1, 7, 12, 18];
            let hash = lanes
                .iter()
                .zip(turns)
                .fold(0u64, |hash, (lane, turn)| hash.wrapping_add(lane.rotate_left(turn)));
            lanes.iter().fold(hash, |hash, lane| (hash ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4))
        };
        hash = hash.wrapping_add(value.len() as u64);
        while let Some((word, after)) = rest.split_at_checked(8) {
            hash = with_long(hash, little_endian(word));
            rest = after;
        }
        if let Some((word, after)) = rest.split_at_checked(4) {
            hash = with_int(hash, little_endian(word) as u32);
            rest = after;
        }
        for byte in rest {
            hash = (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
        }
        avalanche(hash)
    }
}

/// The number of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

fn with_long(hash: u64, word: u64) -> u64 {
    (hash ^ round(0, word)).rotate_left(27).wrapping_mul(P1).wrapping_add(P4)
}

fn with_int(hash: u64, word: u32) -> u64 {
    (hash ^ u64::from(word).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3)
}

fn avalanche(mut hash: u64) -> i64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    (hash ^ (hash >> 32)) as i64
}
