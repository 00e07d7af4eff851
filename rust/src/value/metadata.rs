//! Variant metadata: the dictionary of names.

use crate::error::{Error, Result};

/// The metadata without names.
pub const EMPTY: &[u8] = &[0x01, 0x00, 0x00];

/// Checked metadata: the header, every offset and every name are valid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metadata<'a> {
    bytes: &'a [u8],
    offset_size: usize,
    length: usize,
    names: usize,
    sorted: bool,
}

impl<'a> Metadata<'a> {
    /// Check and read metadata that may be followed by other bytes, such as the value of a statistics entry.
    pub fn parse_prefix(bytes: &'a [u8]) -> Result<Self> {
        let &header = bytes.first().ok_or_else(|| malformed("it is empty"))?;
        if header & 0x0F != 1 {
            return Err(malformed(&format!("expected version 1, got {}", header & 0x0F)));
        }
        let offset_size = usize::from(header >> 6) + 1;
        let length = read_unsigned(bytes, 1, offset_size).ok_or_else(cut_short)?;
        let names = 1 + (length + 2) * offset_size;
        if names > bytes.len() {
            return Err(cut_short());
        }
        let mut metadata = Metadata { bytes, offset_size, length, names, sorted: header & 0x10 != 0 };
        let size = names + metadata.offset(length).ok_or_else(cut_short)?;
        metadata.bytes = bytes.get(..size).ok_or_else(cut_short)?;
        metadata.check_names()?;
        Ok(metadata)
    }

    /// Check and read the bytes of a `metadata` column; bytes after the names are tolerated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::parse_prefix(bytes)
    }

    fn check_names(&self) -> Result<()> {
        let text = super::utf8(&self.bytes[self.names..]).ok_or_else(|| malformed("a name is not UTF-8"))?;
        let mut start = 0;
        let mut previous: Option<&str> = None;
        if self.offset(0) != Some(0) {
            return Err(malformed("its first offset is not 0"));
        }
        for id in 0..self.length {
            let end = self.offset(id + 1).ok_or_else(cut_short)?;
            let name = text.get(start..end).ok_or_else(|| malformed("its offsets are out of order"))?;
            if self.sorted && previous.is_some_and(|p| p >= name) {
                return Err(malformed("its header marks the names as sorted and unique, but they are not"));
            }
            previous = Some(name);
            start = end;
        }
        Ok(())
    }

    /// The bytes, without any that followed.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether the names are sorted by their UTF-8 bytes and unique.
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// The name with this id.
    pub fn get(&self, id: usize) -> Result<&'a str> {
        self.name(id).ok_or_else(|| super::no_such_name(id, self.length))
    }

    fn name(&self, id: usize) -> Option<&'a str> {
        // `check_names` checked this already. Checking again is cheap, because names are short.
        std::str::from_utf8(self.name_bytes(id)?).ok()
    }

    fn name_bytes(&self, id: usize) -> Option<&'a [u8]> {
        if id >= self.length {
            return None;
        }
        self.bytes.get(self.names + self.offset(id)?..self.names + self.offset(id + 1)?)
    }

    /// Whether the name with this id is `name`.
    pub(super) fn is_name(&self, id: usize, name: &str) -> bool {
        self.name_bytes(id) == Some(name.as_bytes())
    }

    /// The first id of `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        if self.sorted {
            let (mut low, mut high) = (0, self.length);
            while low < high {
                let middle = (low + high) / 2;
                match self.name(middle)?.cmp(name) {
                    std::cmp::Ordering::Less => low = middle + 1,
                    std::cmp::Ordering::Equal => return Some(middle),
                    std::cmp::Ordering::Greater => high = middle,
                }
            }
            return None;
        }
        (0..self.length).find(|&id| self.is_name(id, name))
    }

    /// All names, by id.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        (0..self.length).map_while(|id| self.name(id))
    }

    fn offset(&self, index: usize) -> Option<usize> {
        read_unsigned(self.bytes, 1 + (index + 1) * self.offset_size, self.offset_size)
    }
}

/// The little-endian unsigned number of `size` bytes at `at`.
pub(crate) fn read_unsigned(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let data = bytes.get(at..at.checked_add(size)?)?;
    Some(match *data {
        [a] => usize::from(a),
        [a, b] => usize::from(u16::from_le_bytes([a, b])),
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]) as usize,
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => return None,
    })
}

/// Like [`read_unsigned`] for a size of 1 to 4, faster if at least four bytes follow `at`.
#[inline]
pub(crate) fn read_next_unsigned(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        Some(data) => Some((u32::from_le_bytes(*data) & u32::MAX >> (32 - 8 * size)) as usize),
        None => read_unsigned(bytes, at, size),
    }
}

/// Append metadata of `names`, which must be unique; `sorted` says whether they are in the order of their bytes.
pub fn write<'a>(out: &mut Vec<u8>, names: impl Iterator<Item = &'a str> + Clone, sorted: bool) {
    let (length, total) = names.clone().fold((0, 0), |(n, t), name| (n + 1, t + name.len()));
    let offset_size = unsigned_size(total.max(length));
    out.push(0x01 | u8::from(sorted) << 4 | ((offset_size - 1) as u8) << 6);
    write_unsigned(out, length, offset_size);
    let mut end = 0;
    write_unsigned(out, end, offset_size);
    for name in names.clone() {
        end += name.len();
        write_unsigned(out, end, offset_size);
    }
    names.for_each(|name| out.extend_from_slice(name.as_bytes()));
}

/// The number of bytes that `value` needs without leading zeros, at least one.
pub(crate) fn unsigned_size(value: usize) -> usize {
    match value {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFF_FFFF => 3,
        _ => 4,
    }
}

pub(crate) fn write_unsigned(out: &mut Vec<u8>, value: usize, size: usize) {
    out.extend_from_slice(&(value as u32).to_le_bytes()[..size]);
}

fn malformed(why: &str) -> Error {
    Error::variant(format!("malformed Variant metadata: {why}"))
}

fn cut_short() -> Error {
    malformed("it is truncated")
}
