//! The hybrid of run lengths and bit packing (Parquet encoding RLE), for levels and for keys of a dictionary.

use std::ops::BitOr;

/// The number of values that are packed together; a packed section holds a multiple of it. Runs from this length are
/// not packed: compressed pages are smaller with runs, even those of narrow values.
pub(in crate::parquet) const GROUP: usize = 8;

/// Append `values`, each less than 2^`width`, to `out`.
pub(in crate::parquet) fn encode<T: Copy + Eq + Into<u32>>(values: &[T], width: u8, out: &mut Vec<u8>) {
    let (mut packed, mut at) = (0, 0);
    while at < values.len() {
        let first = values[at];
        let length = run_length(&values[at..], first);
        if length >= GROUP || length == values.len() {
            pack(&values[packed..at], width, out);
            push_run(first, length, width, out);
            at += length;
            packed = at;
        } else {
            at += GROUP;
        }
    }
    pack(&values[packed..], width, out);
}

/// The number of values that equal `first` before another one.
fn run_length<T: Copy + Eq>(values: &[T], first: T) -> usize {
    let (groups, _) = values.as_chunks::<GROUP>();
    let same = groups.iter().take_while(|&&group| group == [first; GROUP]).count() * GROUP;
    same + values[same..].iter().take_while(|&&value| value == first).count()
}

/// Append `count` times the same value to `out`.
pub(in crate::parquet) fn encode_run(value: u32, count: usize, width: u8, out: &mut Vec<u8>) {
    if count > 0 {
        push_run(value, count, width, out);
    }
}

/// The number of bits for values up to `largest`.
pub(in crate::parquet) fn width_of(largest: u32) -> u8 {
    (u32::BITS - largest.leading_zeros()) as u8
}

/// Append an unsigned LEB128 number.
pub(super) fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_run<T: Into<u32>>(value: T, length: usize, width: u8, out: &mut Vec<u8>) {
    push_varint((length as u64) << 1, out);
    out.extend_from_slice(&value.into().to_le_bytes()[..usize::from(width).div_ceil(8)]);
}

/// Append one packed section. The last group is padded with zeros, so only the last section may end within one.
pub(in crate::parquet) fn pack<T: Copy + Into<u32>>(values: &[T], width: u8, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(GROUP);
    push_varint(((groups as u64) << 1) | 1, out);
    let end = out.len() + groups * usize::from(width);
    out.reserve(groups * usize::from(width) + size_of::<u64>());
    let (groups, rest) = match u32::from(width) * GROUP as u32 {
        // A group takes at most a word: shifts that do not wait for each other.
        ..=u64::BITS => values.as_chunks::<GROUP>(),
        _ => (&[][..], values),
    };
    for group in groups {
        let shifted = group
            .iter()
            .enumerate()
            .map(|(at, &value)| u64::from(value.into()) << (at as u32 * u32::from(width)));
        let start = out.len();
        out.extend_from_slice(&shifted.fold(0, BitOr::bitor).to_le_bytes());
        out.truncate(start + usize::from(width));
    }
    let (mut bits, mut count) = (0_u64, 0);
    for &value in rest {
        bits |= u64::from(value.into()) << count;
        count += u32::from(width);
        if count >= u32::BITS {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= u32::BITS;
            count -= u32::BITS;
        }
    }
    out.extend_from_slice(&(bits as u32).to_le_bytes());
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A decoder written from the specification (Encodings.md), bit by bit.
    fn decode(bytes: &[u8], width: u8, count: usize) -> Vec<u32> {
        let (mut values, mut at) = (Vec::new(), 0);
        while values.len() < count {
            let (mut header, mut shift) = (0_u64, 0);
            loop {
                header |= u64::from(bytes[at] & 0x7f) << shift;
                shift += 7;
                at += 1;
                if bytes[at - 1] & 0x80 == 0 {
                    break;
                }
            }
            if header & 1 == 0 {
                let length = usize::from(width).div_ceil(8);
                let mut value = [0; 4];
                value[..length].copy_from_slice(&bytes[at..at + length]);
                at += length;
                values.extend(std::iter::repeat_n(u32::from_le_bytes(value), (header >> 1) as usize));
            } else {
                let packed = (header >> 1) as usize * GROUP;
                let bit = |index: usize| u32::from(bytes[at + index / 8] >> (index % 8) & 1);
                let value = |index: usize| {
                    (0..usize::from(width)).map(|i| bit(index * usize::from(width) + i) << i).sum::<u32>()
                };
                values.extend((0..packed).map(value));
                at += packed * usize::from(width) / 8;
            }
        }
        assert_eq!(at, bytes.len());
        values.truncate(count);
        values
    }

    proptest! {
        #[test]
        fn values_come_back(
            runs in prop::collection::vec((any::<u32>(), 1..40_usize), 0..40),
            width in 0..=32_u8,
        ) {
            let mask = u32::MAX.checked_shr(32 - u32::from(width)).unwrap_or(0);
            let values: Vec<u32> =
                runs.iter().flat_map(|&(value, length)| std::iter::repeat_n(value & mask, length)).collect();
            let mut bytes = Vec::new();
            encode(&values, width, &mut bytes);
            prop_assert_eq!(decode(&bytes, width, values.len()), values);
        }
    }

    #[test]
    fn a_single_run_takes_its_header_and_its_value() {
        let mut bytes = Vec::new();
        encode(&[1_u8; 32_768], 1, &mut bytes);
        assert_eq!(bytes, [0x80, 0x80, 0x04, 1]);
        bytes.clear();
        encode_run(1, 32_768, 1, &mut bytes);
        assert_eq!(bytes, [0x80, 0x80, 0x04, 1]);
    }

    #[test]
    fn widths_are_the_bits_of_the_largest_value() {
        assert_eq!([0, 1, 2, 3, 4, 255, 256, u32::MAX].map(width_of), [0, 1, 2, 2, 3, 8, 9, 32]);
    }
}
