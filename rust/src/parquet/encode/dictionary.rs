//! The distinct values of a column chunk, numbered in the order of their first appearance.

use std::hash::Hash;

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

/// Distinct byte strings.
#[derive(Default)]
pub(super) struct Strings {
    /// The values back to back.
    data: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: RandomState,
}

impl Strings {
    /// The key of `value`, which is added unless it is known.
    pub fn key(&mut self, value: &[u8]) -> u32 {
        let Strings { data, ends, table, hasher } = self;
        let entry = table.entry(
            hasher.hash_one(value),
            |&key| string(data, ends, key) == value,
            |&key| hasher.hash_one(string(data, ends, key)),
        );
        if let hashbrown::hash_table::Entry::Occupied(known) = &entry {
            return *known.get();
        }
        let key = ends.len() as u32;
        entry.insert(key);
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
    }
}

fn string<'a>(data: &'a [u8], ends: &[usize], key: u32) -> &'a [u8] {
    let key = key as usize;
    let start = if key == 0 { 0 } else { ends[key - 1] };
    &data[start..ends[key]]
}
