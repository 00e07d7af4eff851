//! The hybrid of run lengths and bit packing (Parquet encoding RLE), for levels and for keys of a dictionary.

use bytes::Bytes;

use super::{Cursor, Result, broken};

/// The number of values that are packed together.
const GROUP: usize = 8;

/// A number that fits in 32 bits.
pub(in crate::parquet) trait Small: Copy + Default {
    fn narrow(value: u32) -> Self;
}

impl Small for u8 {
    fn narrow(value: u32) -> u8 {
        value as u8
    }
}

impl Small for i32 {
    fn narrow(value: u32) -> i32 {
        value as i32
    }
}

/// Reads values of `width` bits.
pub(in crate::parquet) struct Hybrid {
    bytes: Cursor,
    width: usize,
    run: Run,
}

enum Run {
    Repeated {
        value: u32,
        left: usize,
    },
    /// Values after `next` others from the byte `start` on.
    Packed {
        start: usize,
        next: usize,
        left: usize,
    },
}

/// Some values.
pub(in crate::parquet) enum Section {
    Repeated {
        value: u32,
        count: usize,
    },
    /// This number of values was appended to the output.
    Packed {
        count: usize,
    },
}

impl Hybrid {
    pub fn new(bytes: Bytes, width: u8) -> Result<Self> {
        // Without bits there need not be any runs.
        let left = if width == 0 { usize::MAX } else { 0 };
        match u32::from(width) <= u32::BITS {
            true => Ok(Hybrid {
                bytes: Cursor::new(bytes),
                width: width.into(),
                run: Run::Repeated { value: 0, left },
            }),
            false => Err(broken("has keys or levels of more than 32 bits")),
        }
    }

    /// Return a reader of values of one bit that are all packed, without runs.
    pub fn of_bits(bytes: Bytes) -> Self {
        let left = bytes.len().saturating_mul(8);
        Hybrid { bytes: Cursor::new(bytes), width: 1, run: Run::Packed { start: 0, next: 0, left } }
    }

    /// Return at most `most` values, of which there is at least one. Packed values are appended to `out`.
    pub fn next<T: Small>(&mut self, most: usize, out: &mut Vec<T>) -> Result<Section> {
        loop {
            match &mut self.run {
                Run::Repeated { left: 0, .. } | Run::Packed { left: 0, .. } => self.begin_run()?,
                Run::Repeated { value, left } => {
                    let count = most.min(*left);
                    *left -= count;
                    return Ok(Section::Repeated { value: *value, count });
                }
                Run::Packed { start, next, left } => {
                    let count = most.min(*left);
                    unpack(self.bytes.all().get(*start..).unwrap_or_default(), self.width, *next, count, out);
                    *next += count;
                    *left -= count;
                    return Ok(Section::Packed { count });
                }
            }
        }
    }

    /// Append `count` values to `out`.
    pub fn read<T: Small>(&mut self, mut count: usize, out: &mut Vec<T>) -> Result<()> {
        while count > 0 {
            count -= match self.next(count, out)? {
                Section::Repeated { value, count } => {
                    out.resize(out.len() + count, T::narrow(value));
                    count
                }
                Section::Packed { count } => count,
            };
        }
        Ok(())
    }

    fn begin_run(&mut self) -> Result<()> {
        let header = self.bytes.varint()?;
        let length = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        self.run = if header & 1 == 1 {
            let start = self.bytes.position();
            // The last group of a page may be cut where its values end.
            let size = self.bytes.take_most(length.saturating_mul(self.width)).len();
            let left = length.saturating_mul(GROUP).min(size.saturating_mul(8) / self.width);
            Run::Packed { start, next: 0, left }
        } else {
            let bytes = self.bytes.take(self.width.div_ceil(8))?;
            let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            Run::Repeated { value, left: length }
        };
        Ok(())
    }
}

/// Append the values `first..first + count` of `bytes` to `out`.
fn unpack<T: Small>(bytes: &[u8], width: usize, first: usize, count: usize, out: &mut Vec<T>) {
    let mask = u32::MAX >> (32 - width.min(32));
    let value = |index: usize| {
        let bit = index * width;
        T::narrow((word(bytes, bit / 8) >> (bit % 8)) as u32 & mask)
    };
    let end = first + count;
    let aligned = end.min(first.next_multiple_of(GROUP));
    out.reserve(count);
    out.extend((first..aligned).map(value));
    let groups = (end - aligned) / GROUP;
    if width <= GROUP {
        for group in aligned / GROUP..aligned / GROUP + groups {
            let word = word(bytes, group * width);
            let values: [T; GROUP] =
                std::array::from_fn(|index| T::narrow((word >> (index * width)) as u32 & mask));
            out.extend_from_slice(&values);
        }
        out.extend((aligned + groups * GROUP..end).map(value));
    } else {
        out.extend((aligned..end).map(value));
    }
}

/// The eight bytes from `at` as a number, with zeros after the last byte.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parquet::encode::encode_hybrid;

    proptest! {
        #[test]
        fn encoded_values_come_back(
            runs in prop::collection::vec((any::<u32>(), 1..40_usize), 0..40),
            width in 0..=32_u8,
            step in 1..50_usize,
        ) {
            let mask = u32::MAX.checked_shr(32 - u32::from(width)).unwrap_or(0);
            let values: Vec<u32> =
                runs.iter().flat_map(|&(value, length)| std::iter::repeat_n(value & mask, length)).collect();
            let mut bytes = Vec::new();
            encode_hybrid(&values, width, &mut bytes);
            let mut hybrid = Hybrid::new(bytes.into(), width).unwrap();
            let mut read: Vec<i32> = Vec::new();
            while read.len() < values.len() {
                hybrid.read(step.min(values.len() - read.len()), &mut read).unwrap();
            }
            prop_assert_eq!(read, values.iter().map(|&value| value as i32).collect::<Vec<_>>());
        }

        #[test]
        fn bytes_of_no_encoder_are_values_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            width in 0..=40_u8,
        ) {
            if let Ok(mut hybrid) = Hybrid::new(bytes.into(), width) {
                let mut read: Vec<i32> = Vec::new();
                let outcome = hybrid.read(1000, &mut read);
                prop_assert_eq!(outcome.is_ok(), read.len() == 1000);
            }
        }
    }
}
