//! The keys of JSON objects, each with the path that leads to it.
//!
//! The objects at one path mostly have the same keys in the same order. Each key therefore predicts the one that
//! follows it, which one comparison confirms. Other keys are found by a hash of their bytes.

use std::collections::HashMap;

use ahash::RandomState;

use super::scan::{self, Scan, error};
use crate::shred::names::{NameId, Names};
use crate::shred::tree::{NodeId, ROOT};

/// The position of a key in [`Keys`].
pub type KeyId = u32;

/// Stands for the row, which has no key. As a prediction, it is never confirmed.
pub const NO_KEY: KeyId = 0;

/// With more keys than this, they are forgotten at the next row, so that objects used as maps cannot exhaust the
/// memory.
const MAX_KEYS: usize = 64 * 1024;

/// The number of bytes of a key that are compared at once, with its quotes.
const HEAD: usize = 16;

/// The number of keys that are found by their bytes alone, a power of two.
const RECENT: usize = 1024;

/// A key at one path, and what is expected of it. The elements of an array are at the path of the array.
#[derive(Debug, Clone)]
pub struct Key {
    /// The first bytes of the key in the text, from its opening quote to its closing one.
    head: u128,
    /// The bits of `head` that count.
    mask: u128,
    /// The number of bytes of the name.
    length: usize,
    pub name: NameId,
    parent: KeyId,
    /// The node of the shredded field that the key leads to, or [`ROOT`].
    pub field: NodeId,
    /// The key that followed this one in its object last time.
    pub next: KeyId,
    /// The first key of the object that is the value of this one, last time.
    pub first: KeyId,
    /// The sizes of the headers of the last object and array here that were encoded.
    pub object_header: u32,
    pub array_header: u32,
}

/// The keys seen, by path.
#[derive(Debug, Default)]
pub struct Keys {
    keys: Vec<Key>,
    by_path: HashMap<(KeyId, NameId), KeyId, RandomState>,
    recent: Vec<KeyId>,
    scratch: Vec<u8>,
}

impl Keys {
    pub fn new() -> Self {
        let mut keys = Keys { recent: vec![NO_KEY; RECENT], ..Default::default() };
        // No bytes equal a head outside the mask.
        keys.keys.push(Key::new(1, 0, NO_KEY, 0, 0));
        keys
    }

    pub fn is_full(&self) -> bool {
        self.keys.len() > MAX_KEYS
    }

    #[inline(always)]
    pub fn get(&self, key: KeyId) -> &Key {
        &self.keys[key as usize]
    }

    pub fn get_mut(&mut self, key: KeyId) -> &mut Key {
        &mut self.keys[key as usize]
    }

    /// Add the key of a shredded field to those of the objects at `parent`.
    pub fn add_field(&mut self, parent: KeyId, name: NameId, field: NodeId, names: &Names) -> KeyId {
        let key = self.find_or_add(parent, name, names);
        self.keys[key as usize].field = field;
        key
    }

    /// Read the key at `*at`, which follows `previous` in an object at `parent`; `*at` is then after its closing
    /// quote. Return the key, its name and the node of its shredded field.
    #[inline(always)]
    pub fn read(
        &mut self,
        text: &[u8],
        at: &mut usize,
        parent: KeyId,
        previous: KeyId,
        names: &mut Names,
    ) -> Scan<(KeyId, NameId, NodeId)> {
        let head = head(text, *at);
        let guess = match previous {
            NO_KEY => self.get(parent).first,
            _ => self.get(previous).next,
        };
        let key = self.get(guess);
        if head & key.mask == key.head && (key.length + 2 <= HEAD || key.has_tail(text, *at, names)) {
            *at += key.length + 2;
            return Ok((guess, key.name, key.field));
        }
        let (key, end) = self.find(text, *at, head, parent, names)?;
        *at = end;
        if previous == NO_KEY {
            self.keys[parent as usize].first = key;
        } else {
            self.keys[previous as usize].next = key;
        }
        let Key { name, field, .. } = *self.get(key);
        Ok((key, name, field))
    }

    /// Read a key that was not predicted. Return it and the position after its closing quote.
    fn find(
        &mut self,
        text: &[u8],
        at: usize,
        head: u128,
        parent: KeyId,
        names: &mut Names,
    ) -> Scan<(KeyId, usize)> {
        let Some(length) = short_length(head) else { return self.find_by_name(text, at, parent, names) };
        let head = head & mask(length);
        let slot = slot(parent, head);
        let key = self.recent[slot];
        let known = self.get(key);
        if known.head == head && known.parent == parent {
            return Ok((key, at + length + 2));
        }
        let (key, end) = self.find_by_name(text, at, parent, names)?;
        if self.get(key).head == head {
            self.recent[slot] = key;
        }
        Ok((key, end))
    }

    #[inline(never)]
    fn find_by_name(
        &mut self,
        text: &[u8],
        at: usize,
        parent: KeyId,
        names: &mut Names,
    ) -> Scan<(KeyId, usize)> {
        if text.get(at) != Some(&b'"') {
            return error(at, "an object needs a key in quotes here");
        }
        let mut end = at + 1;
        let name = scan::string(text, &mut end, &mut self.scratch)?;
        let name = names.intern(name.bytes(&self.scratch));
        Ok((self.find_or_add(parent, name, names), end))
    }

    fn find_or_add(&mut self, parent: KeyId, name: NameId, names: &Names) -> KeyId {
        if let Some(&key) = self.by_path.get(&(parent, name)) {
            return key;
        }
        let text = names.text(name);
        // The text of a name that needs escapes must not be compared with that of a key.
        let is_plain = !text.iter().any(|&b| b == b'"' || b == b'\\' || b < 0x20);
        let (head, mask) = match is_plain {
            true => {
                let quoted = [b"\"", text, b"\""].concat();
                (head(&quoted, 0), mask(text.len()))
            }
            false => (1, 0),
        };
        let key = self.keys.len() as KeyId;
        self.keys.push(Key::new(head, mask, parent, name, text.len()));
        self.by_path.insert((parent, name), key);
        key
    }
}

impl Key {
    fn new(head: u128, mask: u128, parent: KeyId, name: NameId, length: usize) -> Self {
        let (next, first) = (NO_KEY, NO_KEY);
        Key { head, mask, length, name, parent, field: ROOT, next, first, object_header: 3, array_header: 3 }
    }

    /// Whether the text of the key at `at` continues with the rest of the name, after the bytes that were compared.
    fn has_tail(&self, text: &[u8], at: usize, names: &Names) -> bool {
        let rest = &names.text(self.name)[HEAD - 1..];
        let Some(text) = text.get(at + HEAD..) else { return false };
        text.starts_with(rest) && text.get(rest.len()) == Some(&b'"')
    }
}

/// The bytes of the text from `at` on, with zeros after its end.
#[inline(always)]
fn head(text: &[u8], at: usize) -> u128 {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<HEAD>() {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => padded(rest),
    }
}

fn padded(rest: &[u8]) -> u128 {
    let mut bytes = [0; HEAD];
    bytes[..rest.len()].copy_from_slice(rest);
    u128::from_le_bytes(bytes)
}

/// The bits of a head that a name of `length` bytes and its quotes take.
fn mask(length: usize) -> u128 {
    match length + 2 {
        bytes @ ..HEAD => (1 << (8 * bytes)) - 1,
        _ => u128::MAX,
    }
}

/// The length of the name whose quotes are both in `head`.
#[inline(always)]
fn short_length(head: u128) -> Option<usize> {
    const ONES: u128 = u128::from_le_bytes([1; HEAD]);
    const HIGHS: u128 = u128::from_le_bytes([0x80; HEAD]);
    let others = (head >> 8 << 8) ^ (ONES * b'"' as u128);
    let quotes = others.wrapping_sub(ONES) & !others & HIGHS;
    (head as u8 == b'"' && quotes != 0).then(|| quotes.trailing_zeros() as usize / 8 - 1)
}

/// The place of a key among the recent ones.
#[inline(always)]
fn slot(parent: KeyId, head: u128) -> usize {
    let (low, high) = (head as u64, (head >> 64) as u64);
    let mixed = (low ^ high.rotate_left(31) ^ u64::from(parent) << 8).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (u64::BITS - RECENT.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &mut Keys, names: &mut Names, text: &str, previous: KeyId) -> Scan<(KeyId, usize)> {
        let mut at = 0;
        let (key, _, _) = keys.read(text.as_bytes(), &mut at, NO_KEY, previous, names)?;
        Ok((key, at))
    }

    #[test]
    fn keys_of_every_length_are_found_again_and_predicted() {
        for length in 0..60 {
            let (mut keys, mut names) = (Keys::new(), Names::new());
            let name = "n".repeat(length);
            for rest in [":1", ":", "", ":1234567890123456789012345"] {
                let text = format!("\"{name}\"{rest}");
                let (key, at) = read(&mut keys, &mut names, &text, NO_KEY).unwrap();
                assert_eq!((key, at), (1, length + 2), "{text}");
                assert_eq!(names.text(keys.get(key).name), name.as_bytes());
                let other = format!("\"{name}x\"{rest}");
                let (key, at) = read(&mut keys, &mut names, &other, NO_KEY).unwrap();
                assert_eq!((key, at), (2, length + 3), "{other}");
            }
            read(&mut keys, &mut names, &format!("\"{name}"), NO_KEY).unwrap_err();
            read(&mut keys, &mut names, &format!("{name}\""), 1).unwrap_err();
        }
    }

    #[test]
    fn a_name_that_needs_escapes_is_not_compared_with_text() {
        let (mut keys, mut names) = (Keys::new(), Names::new());
        let (key, _) = read(&mut keys, &mut names, r#""a\"b":1"#, NO_KEY).unwrap();
        assert_eq!(names.text(keys.get(key).name), b"a\"b");
        let (other, at) = read(&mut keys, &mut names, r#""a"b":1"#, NO_KEY).unwrap();
        assert_eq!((names.text(keys.get(other).name), at), (&b"a"[..], 3));
        assert_eq!(read(&mut keys, &mut names, r#""\u0061":1"#, NO_KEY).unwrap(), (other, 8));
        assert_eq!(read(&mut keys, &mut names, r#""a\u0022b":1"#, NO_KEY).unwrap(), (key, 10));
        let (zero, _) = read(&mut keys, &mut names, r#""\u0000":1"#, NO_KEY).unwrap();
        assert!(zero != key && zero != other);
        read(&mut keys, &mut names, "\"\0\":1", NO_KEY).unwrap_err();
    }

    #[test]
    fn one_name_at_two_paths_is_two_keys() {
        let (mut keys, mut names) = (Keys::new(), Names::new());
        let (outer, _) = read(&mut keys, &mut names, "\"id\":{", NO_KEY).unwrap();
        let (inner, name, _) = keys.read(b"\"id\":1", &mut 0, outer, NO_KEY, &mut names).unwrap();
        assert_ne!(inner, outer);
        assert_eq!(keys.get(outer).name, name);
        assert_eq!(keys.read(b"\"id\":1", &mut 0, outer, inner, &mut names), Ok((inner, name, ROOT)));
    }
}
