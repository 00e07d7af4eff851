//! DELTA_BINARY_PACKED: integers as packed differences.

use bytes::Bytes;

use super::{Cursor, Result, broken};

/// The values that are unpacked at once: the format requires miniblocks of a multiple of it.
const UNIT: usize = 32;
const MAX_WIDTH: usize = 64;
/// The bytes of a unit, and as many after it as the last value may be loaded with.
const PADDED: usize = UNIT * MAX_WIDTH / 8 + 16;

/// Reads integers of at most 64 bits, modulo 2^64.
pub(super) struct Deltas {
    bytes: Cursor,
    miniblocks: usize,
    miniblock: usize,
    /// The integers that are not unpacked yet.
    left: usize,
    last: i64,
    is_first: bool,
    least: i64,
    /// Where the widths of the remaining miniblocks of the block are.
    widths: std::ops::Range<usize>,
    width: usize,
    /// The values of the miniblock that are not unpacked yet.
    in_miniblock: usize,
    unit: [i64; UNIT],
    /// The values of `unit` that are not returned yet.
    waiting: std::ops::Range<usize>,
}

impl Deltas {
    pub fn new(bytes: Bytes) -> Result<Self> {
        let mut bytes = Cursor::new(bytes);
        let block = bytes.varint()?;
        let miniblocks = bytes.varint()?;
        let count = bytes.varint()?;
        let first = zigzag(bytes.varint()?);
        let is_possible = (1..=1 << 20).contains(&block)
            && miniblocks > 0
            && block % miniblocks == 0
            && (block / miniblocks) % UNIT as u64 == 0;
        match (is_possible, usize::try_from(count)) {
            (true, Ok(left)) => Ok(Deltas {
                bytes,
                miniblocks: miniblocks as usize,
                miniblock: (block / miniblocks) as usize,
                left,
                last: first,
                is_first: true,
                least: 0,
                widths: 0..0,
                width: 0,
                in_miniblock: 0,
                unit: [0; UNIT],
                waiting: 0..0,
            }),
            _ => Err(broken("has deltas in blocks of an impossible size")),
        }
    }

    /// Append the next `count` integers to `out`.
    pub fn read<T>(&mut self, mut count: usize, out: &mut Vec<T>, convert: impl Fn(i64) -> T) -> Result<()> {
        out.reserve(count);
        while count > 0 {
            if self.waiting.is_empty() {
                self.fill()?;
            }
            let end = self.waiting.end.min(self.waiting.start + count);
            let values = self.unit.get(self.waiting.start..end).unwrap_or_default();
            out.extend(values.iter().map(|&value| convert(value)));
            count -= values.len();
            self.waiting.start = end;
        }
        Ok(())
    }

    /// Unpack the next integers.
    fn fill(&mut self) -> Result<()> {
        if self.left == 0 {
            return Err(broken("has fewer deltas than values"));
        }
        if self.is_first {
            (self.is_first, self.unit[0], self.waiting) = (false, self.last, 0..1);
            self.left -= 1;
            return Ok(());
        }
        if self.in_miniblock == 0 {
            self.begin_miniblock()?;
        }
        let count = self.left.min(UNIT);
        let deltas = Packed { width: self.width, least: self.least, last: self.last };
        match self.bytes.rest().first_chunk() {
            Some(padded) => unpack(deltas, padded, &mut self.unit),
            None => {
                let mut padded = [0; PADDED];
                let rest = self.bytes.rest();
                padded[..rest.len()].copy_from_slice(rest);
                unpack(deltas, &padded, &mut self.unit);
            }
        }
        // The last miniblock may be cut where its values end.
        let bytes = self.bytes.take_most(UNIT * self.width / 8);
        if bytes.len() * 8 < count * self.width {
            return Err(broken("has deltas that end early"));
        }
        self.last = self.unit[UNIT - 1];
        self.in_miniblock -= UNIT;
        self.left -= count;
        self.waiting = 0..count;
        Ok(())
    }

    fn begin_miniblock(&mut self) -> Result<()> {
        if self.widths.is_empty() {
            self.least = zigzag(self.bytes.varint()?);
            let start = self.bytes.position();
            self.bytes.take(self.miniblocks)?;
            self.widths = start..start + self.miniblocks;
        }
        let width = self.widths.next().and_then(|at| self.bytes.all().get(at)).copied().unwrap_or_default();
        self.width = usize::from(width);
        self.in_miniblock = self.miniblock;
        match self.width <= MAX_WIDTH {
            true => Ok(()),
            false => Err(broken("has deltas of more than 64 bits")),
        }
    }
}

fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// How the integers of a unit are packed: each adds `least` and an excess of `width` bits to the one before it.
#[derive(Clone, Copy)]
struct Packed {
    width: usize,
    least: i64,
    /// The integer before the unit.
    last: i64,
}

fn unpack_width<const WIDTH: usize>(packed: Packed, bytes: &[u8; PADDED], out: &mut [i64; UNIT]) {
    let mask = if WIDTH == 0 { 0 } else { u64::MAX >> (MAX_WIDTH - WIDTH) };
    let mut last = packed.last;
    for (index, out) in out.iter_mut().enumerate() {
        let (byte, shift) = (index * WIDTH / 8, index * WIDTH % 8);
        let word =
            |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |w| u64::from_le_bytes(*w));
        let excess = match WIDTH + 7 <= MAX_WIDTH {
            true => word(byte) >> shift,
            false => ((u128::from(word(byte + 8)) << 64 | u128::from(word(byte))) >> shift) as u64,
        };
        last = last.wrapping_add(packed.least.wrapping_add((excess & mask) as i64));
        *out = last;
    }
}

/// Unpack the integers of a unit, with the width as a constant.
fn unpack(packed: Packed, bytes: &[u8; PADDED], out: &mut [i64; UNIT]) {
    macro_rules! by_width {
        ($($width:literal)*) => {
            match packed.width {
                $($width => unpack_width::<$width>(packed, bytes, out),)*
                _ => unpack_width::<64>(packed, bytes, out),
            }
        };
    }
    by_width!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38
        39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
    );
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parquet::encode::encode_deltas;

    fn numbers() -> impl Strategy<Value = Vec<i64>> {
        (0..=64_u32, prop::collection::vec(any::<i64>(), 1..400)).prop_map(|(bits, values)| {
            values.iter().map(|value| value.checked_shr(64 - bits).unwrap_or(0)).collect()
        })
    }

    proptest! {
        #[test]
        fn encoded_integers_come_back(values in numbers(), step in 1..100_usize) {
            let mut bytes = Vec::new();
            encode_deltas(&values, &mut bytes);
            let mut deltas = Deltas::new(bytes.into()).unwrap();
            let mut read = Vec::new();
            while read.len() < values.len() {
                deltas.read(step.min(values.len() - read.len()), &mut read, |value| value).unwrap();
            }
            prop_assert_eq!(read, values);
            prop_assert!(deltas.read(1, &mut Vec::new(), |value| value).is_err());
        }

        #[test]
        fn bytes_of_no_encoder_are_integers_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(start) = bytes.first_chunk_mut() {
                *start = [0x80, 1, 4];
            }
            if let Ok(mut deltas) = Deltas::new(bytes.into()) {
                let mut read = Vec::new();
                let outcome = deltas.read(1000, &mut read, |value| value);
                prop_assert_eq!(outcome.is_ok(), read.len() == 1000);
            }
        }
    }
}
