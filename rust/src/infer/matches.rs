//! Estimate how much of the compressed size of some bytes each of their parts causes.
//!
//! As zstd does at its lowest levels, the bytes are split into literals and matches with earlier bytes. A match costs
//! as much where it starts, whatever its length: a value that repeats within a longer repetition is free, and a
//! value that interrupts one pays for the match after it.

/// The bits of the lengths and the offset of a match, after entropy coding.
const MATCH_BITS: f32 = 22.0;

/// The shortest match.
const MIN_MATCH: usize = 5;
const MAX_TABLE_BITS: u32 = 15;

/// The estimated bits of each prefix of some bytes.
pub(super) struct Bits(Vec<f64>);

impl Bits {
    pub(super) fn of(data: &[u8]) -> Self {
        let matches = matches(data);
        let mut bits = vec![0.0; data.len()];
        let mut literals = vec![(0, data.len())];
        for &(start, end) in &matches {
            let first = literals.pop().map_or(0, |(first, _)| first);
            literals.extend([(first, start), (end, data.len())]);
            // The literals before a match caused it to be a new one.
            bits[if start > first { start - 1 } else { start }] += MATCH_BITS;
        }
        let costs = literal_bits(literals.iter().flat_map(|&(start, end)| &data[start..end]));
        for (start, end) in literals {
            (start..end).for_each(|at| bits[at] += costs[usize::from(data[at])]);
        }
        let mut sums = vec![0.0];
        sums.extend(bits.iter().scan(0.0, |sum, &bits| {
            *sum += f64::from(bits);
            Some(*sum)
        }));
        Bits(sums)
    }

    /// The bits of `length` bytes from `start`.
    pub(super) fn between(&self, start: usize, length: usize) -> f64 {
        self.0[start + length] - self.0[start]
    }
}

/// The ranges of `data` that repeat earlier bytes.
fn matches(data: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut table = Table::new(data.len());
    let (mut at, mut end) = (0, 0);
    while at < data.len() {
        match table.find(data, at, end) {
            Some(range) => {
                found.push(range);
                (at, end) = (range.1, range.1);
            }
            None => at += 1,
        }
    }
    found
}

/// The bits of each byte as a literal: the rarer it is, the more.
fn literal_bits<'a>(literals: impl Iterator<Item = &'a u8>) -> [f32; 256] {
    let mut counts = [0_u32; 256];
    literals.for_each(|&byte| counts[usize::from(byte)] += 1);
    let total: u32 = counts.iter().sum();
    counts.map(|count| (total as f32 / count.max(1) as f32).max(1.0).log2())
}

/// The last position of each hash of `MIN_MATCH` bytes, plus one.
struct Table {
    positions: Vec<u32>,
    shift: u32,
}

impl Table {
    fn new(length: usize) -> Self {
        let bits = (usize::BITS - length.leading_zeros()).clamp(4, MAX_TABLE_BITS);
        Table { positions: vec![0; 1 << bits], shift: u64::BITS - bits }
    }

    /// Return the longest match of the bytes at `at` with the last occurrence of their hash, extended backwards down
    /// to `first`.
    fn find(&mut self, data: &[u8], at: usize, first: usize) -> Option<(usize, usize)> {
        let key = match data[at..].first_chunk() {
            Some(chunk) => u64::from_be_bytes(*chunk) >> (u64::BITS as usize - 8 * MIN_MATCH),
            None => data.get(at..at + MIN_MATCH)?.iter().fold(0, |key, &byte| key << 8 | u64::from(byte)),
        };
        let slot = &mut self.positions[(key.wrapping_mul(0x9E37_79B1_85EB_CA87) >> self.shift) as usize];
        let earlier = std::mem::replace(slot, at as u32 + 1).checked_sub(1)? as usize;
        let length = common_length(&data[earlier..], &data[at..]);
        if length < MIN_MATCH {
            return None;
        }
        let back =
            (1..=earlier.min(at - first)).take_while(|back| data[earlier - back] == data[at - back]).count();
        Some((at - back, at + length))
    }
}

/// The number of bytes before the first difference.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    const WORD: usize = size_of::<u64>();
    let (words, others) = (one.as_chunks::<WORD>().0, other.as_chunks::<WORD>().0);
    let same = words.iter().zip(others).take_while(|(a, b)| a == b).count() * WORD;
    same + one[same..].iter().zip(&other[same..]).take_while(|(a, b)| a == b).count()
}
