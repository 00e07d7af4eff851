//! The names of a row: interned, and turned into the row's `metadata`.

use std::collections::HashMap;

use ahash::RandomState;
use hashbrown::HashTable;

use crate::value::metadata;

/// The id of an interned name in [`Names`]; 0 is reserved.
pub type NameId = u32;

pub const NO_NAME: NameId = 0;

/// Past this many names, or bytes of them, the table starts again at the next row, so that objects used as
/// maps with new keys in each row cannot exhaust the memory.
const MAX_NAMES: usize = 16 * 1024;
const MAX_NAME_BYTES: usize = 8 << 20;

/// Past this many sets of names, or bytes of their `metadata`, new ones are written without being cached.
const MAX_SHAPES: usize = 4096;
const MAX_SHAPE_BYTES: usize = 16 << 20;

/// Where the text of an interned name is.
#[derive(Debug, Clone, Copy, Default)]
struct Name {
    start: usize,
    length: usize,
}

/// All names seen, and the set of those in the current row.
#[derive(Debug, Default)]
pub struct Names {
    text: Vec<u8>,
    names: Vec<Name>,
    by_text: HashTable<NameId>,
    hasher: RandomState,
    row: Vec<u64>,
    shapes: Shapes,
}

impl Names {
    pub fn new() -> Self {
        Names { names: vec![Name::default()], ..Default::default() }
    }

    /// A table without names, for the same chunk.
    pub fn restart(&mut self) -> Self {
        let mut names = Self::new();
        names.shapes.dictionary = std::mem::take(&mut self.shapes.dictionary);
        names
    }

    pub fn is_full(&self) -> bool {
        self.names.len() > MAX_NAMES || self.text.len() > MAX_NAME_BYTES
    }

    pub fn text(&self, id: NameId) -> &[u8] {
        let name = self.names[id as usize];
        &self.text[name.start..name.start + name.length]
    }

    /// The id of `text`, which is UTF-8.
    pub fn intern(&mut self, text: &[u8]) -> NameId {
        let hash = self.hasher.hash_one(text);
        if let Some(&id) = self.by_text.find(hash, |&id| self.text(id) == text) {
            return id;
        }
        let id = self.names.len() as NameId;
        self.names.push(Name { start: self.text.len(), length: text.len() });
        self.text.extend_from_slice(text);
        let Names { names, text, hasher, by_text, .. } = self;
        by_text.insert_unique(hash, id, |&id| {
            let name = names[id as usize];
            hasher.hash_one(&text[name.start..name.start + name.length])
        });
        id
    }

    /// Note that the current row has this name. Return whether that was known.
    #[inline(always)]
    pub fn note(&mut self, id: NameId) -> bool {
        let word = id as usize / 64;
        if word >= self.row.len() {
            self.row.resize(word + 1, 0);
        }
        let bit = 1 << (id % 64);
        let known = self.row[word] & bit != 0;
        self.row[word] |= bit;
        known
    }

    /// The number of names in the current row.
    pub fn row_count(&self) -> usize {
        self.row.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn clear_row(&mut self) {
        self.row.fill(0);
    }

    /// End the row: the key of its `metadata` in the dictionary of the chunk.
    pub fn end_row(&mut self) -> i32 {
        let key = self.row_key();
        self.row.fill(0);
        key
    }

    fn row_key(&mut self) -> i32 {
        if let Some(shape) = self.shapes.find(&self.row) {
            return self.shapes.use_shape(shape);
        }
        let mut ids: Vec<NameId> = set_bits(&self.row).collect();
        ids.sort_unstable_by(|&a, &b| self.text(a).cmp(self.text(b)));
        let mut bytes = Vec::new();
        // The text of every name was checked to be UTF-8 before it was interned.
        let names = ids.iter().map(|&id| std::str::from_utf8(self.text(id)).unwrap_or_default());
        metadata::write(&mut bytes, names, !ids.is_empty());
        self.shapes.add(&self.row, ids, bytes)
    }

    /// Rank the names of the row that [`Names::end_row`] just ended, for [`Names::local_id`].
    pub fn rank_row(&mut self) {
        self.shapes.rank();
    }

    /// The position of a name in the metadata of the row that was ranked.
    #[inline]
    pub fn local_id(&self, id: NameId) -> usize {
        self.shapes.ranks[id as usize] as usize
    }

    /// The `metadata` with this key, until the dictionary is taken.
    pub fn metadata(&self, key: i32) -> &[u8] {
        self.shapes.dictionary.get(key as usize).map(Vec::as_slice).unwrap_or_default()
    }

    /// Take the distinct `metadata` of the rows since the last call, in the order of their keys.
    pub fn take_dictionary(&mut self) -> Vec<Vec<u8>> {
        self.shapes.take_dictionary()
    }
}

fn set_bits(words: &[u64]) -> impl Iterator<Item = u32> + '_ {
    words.iter().enumerate().flat_map(|(index, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(index as u32 * 64 + bit)
        })
    })
}

/// The sets of names that rows have had; each is one `metadata`.
#[derive(Debug, Default)]
struct Shapes {
    by_set: HashMap<Box<[u64]>, usize, RandomState>,
    shapes: Vec<Shape>,
    /// Of all their metadata.
    bytes: usize,
    last: Option<usize>,
    last_set: Vec<u64>,
    /// The shape of the row that ended, unless it is not cached.
    current: Option<usize>,
    /// The position of each name in the metadata of the shape in `ranked`.
    ranks: Vec<u32>,
    ranked: Option<usize>,
    dictionary: Vec<Vec<u8>>,
    chunk: u64,
}

#[derive(Debug)]
struct Shape {
    sorted: Vec<NameId>,
    metadata: Vec<u8>,
    /// The key in the dictionary of this chunk.
    key: Option<(u64, i32)>,
}

impl Shapes {
    fn find(&mut self, row: &[u64]) -> Option<usize> {
        let row = trimmed(row);
        // Without a call that compares bytes: most sets are a word or two.
        if self.last.is_some() && self.last_set.iter().eq(row) {
            return self.last;
        }
        let shape = *self.by_set.get(row)?;
        self.last = Some(shape);
        self.last_set.clear();
        self.last_set.extend_from_slice(row);
        Some(shape)
    }

    fn use_shape(&mut self, index: usize) -> i32 {
        self.current = Some(index);
        let shape = &mut self.shapes[index];
        match shape.key {
            Some((chunk, key)) if chunk == self.chunk => key,
            _ => {
                let key = self.dictionary.len() as i32;
                self.dictionary.push(shape.metadata.clone());
                shape.key = Some((self.chunk, key));
                key
            }
        }
    }

    fn add(&mut self, row: &[u64], sorted: Vec<NameId>, metadata: Vec<u8>) -> i32 {
        if self.shapes.len() < MAX_SHAPES && self.bytes < MAX_SHAPE_BYTES {
            self.bytes += metadata.len();
            let index = self.shapes.len();
            self.by_set.insert(trimmed(row).into(), index);
            self.shapes.push(Shape { sorted, metadata, key: None });
            return self.use_shape(index);
        }
        rank(&mut self.ranks, &sorted);
        (self.current, self.ranked) = (None, None);
        self.dictionary.push(metadata);
        self.dictionary.len() as i32 - 1
    }

    fn rank(&mut self) {
        if let Some(shape) = self.current
            && self.ranked != self.current
        {
            rank(&mut self.ranks, &self.shapes[shape].sorted);
            self.ranked = self.current;
        }
    }

    fn take_dictionary(&mut self) -> Vec<Vec<u8>> {
        self.chunk += 1;
        std::mem::take(&mut self.dictionary)
    }
}

fn rank(ranks: &mut Vec<u32>, sorted: &[NameId]) {
    for (position, &id) in sorted.iter().enumerate() {
        let id = id as usize;
        if id >= ranks.len() {
            ranks.resize(id + 1, 0);
        }
        ranks[id] = position as u32;
    }
}

fn trimmed(words: &[u64]) -> &[u64] {
    let length = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
    &words[..length]
}
