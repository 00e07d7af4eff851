//! DELTA_BINARY_PACKED: integers as packed differences.

use super::hybrid::push_varint;

/// The differences that share a least difference.
const BLOCK: usize = 128;
/// The differences that share a bit width; the format requires a multiple of 32.
const MINI_BLOCK: usize = 32;
const MINI_BLOCKS: usize = BLOCK / MINI_BLOCK;

/// An integer of a Parquet type. Differences wrap around within the type.
pub(in crate::parquet) trait Integer: Copy {
    fn minus(self, other: Self) -> i64;

    fn widen(self) -> i64;
}

impl Integer for i32 {
    fn minus(self, other: Self) -> i64 {
        self.wrapping_sub(other).into()
    }

    fn widen(self) -> i64 {
        self.into()
    }
}

impl Integer for i64 {
    fn minus(self, other: Self) -> i64 {
        self.wrapping_sub(other)
    }

    fn widen(self) -> i64 {
        self
    }
}

/// Append `values`, of which there is at least one, to `out`.
pub(in crate::parquet) fn encode<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    push_varint(BLOCK as u64, out);
    push_varint(MINI_BLOCKS as u64, out);
    push_varint(values.len() as u64, out);
    push_zigzag(values.first().map_or(0, |first| first.widen()), out);
    let mut at = 1;
    while at < values.len() {
        let end = values.len().min(at + BLOCK);
        push_block(&values[at - 1..end], out);
        at = end;
    }
}

/// Append the differences between neighbors.
fn push_block<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    let mut differences = [0; BLOCK];
    let count = values.len() - 1;
    let mut least = i64::MAX;
    for (difference, pair) in differences.iter_mut().zip(values.windows(2)) {
        *difference = pair[1].minus(pair[0]);
        least = least.min(*difference);
    }
    push_zigzag(least, out);
    let widths = out.len();
    out.extend_from_slice(&[0; MINI_BLOCKS]);
    for (mini_block, start) in (0..count).step_by(MINI_BLOCK).enumerate() {
        let mut excesses = [0; MINI_BLOCK];
        let end = count.min(start + MINI_BLOCK);
        let mut all = 0;
        for (excess, &difference) in excesses.iter_mut().zip(&differences[start..end]) {
            *excess = difference.wrapping_sub(least) as u64;
            all |= *excess;
        }
        let width = u64::BITS - all.leading_zeros();
        out[widths + mini_block] = width as u8;
        pack(&excesses, width, out);
    }
}

/// Append the `width` lowest bits of each of `values`.
fn pack(values: &[u64; MINI_BLOCK], width: u32, out: &mut Vec<u8>) {
    let end = out.len() + MINI_BLOCK * width as usize / 8;
    match width {
        0 => {}
        1..=32 => {
            let (mut bits, mut count) = (0_u64, 0);
            for &value in values {
                bits |= value << count;
                count += width;
                if count >= u32::BITS {
                    out.extend_from_slice(&(bits as u32).to_le_bytes());
                    bits >>= u32::BITS;
                    count -= u32::BITS;
                }
            }
        }
        _ => {
            let (mut bits, mut count) = (0_u128, 0);
            for &value in values {
                bits |= u128::from(value) << count;
                count += width;
                if count >= u64::BITS {
                    out.extend_from_slice(&(bits as u64).to_le_bytes());
                    bits >>= u64::BITS;
                    count -= u64::BITS;
                }
            }
            out.extend_from_slice(&(bits as u64).to_le_bytes());
            out.truncate(end);
        }
    }
    debug_assert_eq!(out.len(), end);
}

fn push_zigzag(number: i64, out: &mut Vec<u8>) {
    push_varint(((number << 1) ^ (number >> 63)) as u64, out);
}
