//! The distinct values of a column chunk, numbered in the order of their first appearance.

use std::hash::Hash;
use std::ops::Range;

use ahash::RandomState;
use hashbrown::HashTable;

/// Distinct numbers, compared by their bits.
#[derive(Default)]
pub(super) struct Numbers<T> {
    values: Vec<T>,
    table: HashTable<u32>,
    hasher: RandomState,
}

impl<T: Copy> Numbers<T> {
    /// The key of the value with these bits, which is added unless it is known.
    pub fn key<B: Eq + Hash>(&mut self, value: T, bits: impl Fn(T) -> B) -> u32 {
        let Numbers { values, table, hasher } = self;
        let wanted = bits(value);
        let entry = table.entry(
            hasher.hash_one(&wanted),
            |&key| bits(values[key as usize]) == wanted,
            |&key| hasher.hash_one(bits(values[key as usize])),
        );
        *entry
            .or_insert_with(|| {
                values.push(value);
                values.len() as u32 - 1
            })
            .get()
    }

    pub fn values(&self) -> &[T] {
        &self.values
    }

    pub fn clear(&mut self) {
        self.values.clear();
        self.table.clear();
    }
}

/// The number of short strings that are found by their bytes alone, a power of two.
const RECENT: usize = 512;

/// Stands for no short string.
const NO_WORD: u128 = u128::MAX;

/// Stands for no key.
const NO_KEY: u32 = u32::MAX;

/// Distinct byte strings.
pub(super) struct Strings {
    /// The values back to back.
    data: Vec<u8>,
    ends: Vec<usize>,
    /// Hashes with keys: nearly all other strings are told apart without reading them.
    table: HashTable<(u32, u32)>,
    hasher: RandomState,
    /// Short strings that were looked up, with their keys. Most columns have few of them, which one comparison finds.
    /// Empty until the first one: of the columns of a shredded file, many have no strings.
    recent: Vec<(u128, u32)>,
    /// The keys of longer strings that were looked up, which are compared instead of hashed. Empty until the first one.
    recent_long: Vec<u32>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings {
            data: Vec::new(),
            ends: Vec::new(),
            table: HashTable::new(),
            hasher: RandomState::new(),
            recent: Vec::new(),
            recent_long: Vec::new(),
        }
    }
}

impl Strings {
    /// The key of the value at `range` of `data`, as [`Strings::key`] gives it.
    #[inline]
    pub fn key_at(&mut self, data: &[u8], range: Range<usize>) -> u32 {
        let Some(word) = short_string(data, &range) else { return self.key_of_long(&data[range]) };
        let slot = slot(word);
        if let Some(&(known, key)) = self.recent.get(slot)
            && known == word
        {
            return key;
        }
        let key = self.key(&data[range]);
        if self.recent.is_empty() {
            self.recent.resize(RECENT, (NO_WORD, 0));
        }
        self.recent[slot] = (word, key);
        key
    }

    fn key_of_long(&mut self, value: &[u8]) -> u32 {
        let slot = slot(digest(value));
        if let Some(&key) = self.recent_long.get(slot)
            && key != NO_KEY
            && self.get(key) == value
        {
            return key;
        }
        let key = self.key(value);
        if self.recent_long.is_empty() {
            self.recent_long.resize(RECENT, NO_KEY);
        }
        self.recent_long[slot] = key;
        key
    }

    /// The key of `value`, which is added unless it is known.
    pub fn key(&mut self, value: &[u8]) -> u32 {
        let Strings { data, ends, table, hasher, .. } = self;
        let hash = hasher.hash_one(value) as u32;
        let entry = table.entry(
            spread(hash),
            |&(known, key)| known == hash && string(data, ends, key) == value,
            |&(known, _)| spread(known),
        );
        if let hashbrown::hash_table::Entry::Occupied(known) = &entry {
            return known.get().1;
        }
        let key = ends.len() as u32;
        entry.insert((hash, key));
        data.extend_from_slice(value);
        ends.push(data.len());
        key
    }

    pub fn get(&self, key: u32) -> &[u8] {
        string(&self.data, &self.ends, key)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The size of the values with their lengths.
    pub fn bytes(&self) -> usize {
        self.data.len() + size_of::<u32>() * self.len()
    }

    pub fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
        self.table.clear();
        self.recent.fill((NO_WORD, 0));
        self.recent_long.fill(NO_KEY);
    }
}

/// A string of less than 16 bytes, and its length in the highest byte.
#[inline]
fn short_string(data: &[u8], range: &Range<usize>) -> Option<u128> {
    const LENGTH: usize = size_of::<u128>();
    let bits = 8 * range.len() as u32;
    if range.len() >= LENGTH {
        return None;
    }
    let word = match data[range.start..].first_chunk::<LENGTH>() {
        Some(chunk) => u128::from_le_bytes(*chunk) & ((1 << bits) - 1),
        None => {
            let mut padded = [0; LENGTH];
            padded[..range.len()].copy_from_slice(&data[range.clone()]);
            u128::from_le_bytes(padded)
        }
    };
    Some(word | u128::from(bits / 8) << 120)
}

/// The length of a string and its bytes at the start, in the middle and at the end.
#[inline]
fn digest(value: &[u8]) -> u128 {
    let bytes = |start: usize| value[start..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let (middle, end) = (value.len() / 2, value.len().saturating_sub(size_of::<u64>()));
    let middle = bytes(middle.min(end)) ^ value.len() as u64;
    u128::from(bytes(0) ^ middle.rotate_left(17)) << 64 | u128::from(bytes(end) ^ middle)
}

/// The bits of a hash as a table needs them: it compares the highest ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The place of a string among the recent ones.
#[inline]
fn slot(word: u128) -> usize {
    let mixed = (word as u64 ^ ((word >> 64) as u64).rotate_left(31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (u64::BITS - RECENT.ilog2())) as usize
}

fn string<'a>(data: &'a [u8], ends: &[usize], key: u32) -> &'a [u8] {
    let key = key as usize;
    let start = if key == 0 { 0 } else { ends[key - 1] };
    &data[start..ends[key]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_keep_their_keys_wherever_they_are() {
        let mut strings = Strings::default();
        let mut texts: Vec<Vec<u8>> =
            (0..40).flat_map(|length| [0, b'x', 0xFF].map(|byte| vec![byte; length])).collect();
        // Alike at the start, in the middle and at the end.
        for at in [15, 40] {
            texts.push(vec![b'x'; 60]);
            texts.last_mut().unwrap()[at] = b'y';
        }
        let mut keys = Vec::new();
        for text in &texts {
            keys.push(strings.key(text));
        }
        for before in [&b""[..], b"x"] {
            for after in [&b""[..], b"x", &[0; 20], &[0xFF; 20]] {
                for (text, key) in texts.iter().zip(&keys) {
                    let data = [before, text, after].concat();
                    let range = before.len()..before.len() + text.len();
                    assert_eq!(strings.key_at(&data, range), *key, "{text:?}");
                }
            }
        }
        strings.clear();
        assert_eq!(strings.key_at(b"new", 0..3), 0);
        assert_eq!(strings.key_at(b"new", 0..2), 1);
        assert_eq!((strings.get(0), strings.len()), (&b"new"[..], 2));
    }
}
