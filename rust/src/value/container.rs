//! Objects and arrays: their headers, and their fields or elements as bytes.

use super::metadata::{Metadata, read_unsigned};
use super::{malformed, size};
use crate::error::Result;

/// The header of an object or an array; each offset is checked when it is used.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Header<'a> {
    bytes: &'a [u8],
    length: usize,
    offsets: usize,
    offset_size: usize,
    values: usize,
    end: usize,
}

impl<'a> Header<'a> {
    /// Read the header whose ids are `id_size` bytes each (0 for an array).
    fn parse(bytes: &'a [u8], is_large: bool, id_size: usize, offset_size: usize) -> Result<Self> {
        let cut_short = || malformed("an object or array is cut short");
        let length_size = if is_large { 4 } else { 1 };
        let length = read_unsigned(bytes, 1, length_size).ok_or_else(cut_short)?;
        let offsets = 1 + length_size + length * id_size;
        let values = offsets + (length + 1) * offset_size;
        let last =
            read_unsigned(bytes, values.saturating_sub(offset_size), offset_size).ok_or_else(cut_short)?;
        let end = values + last;
        if end > bytes.len() {
            return Err(cut_short());
        }
        Ok(Header { bytes: &bytes[..end], length, offsets, offset_size, values, end })
    }

    fn offset(&self, index: usize) -> Option<usize> {
        read_unsigned(self.bytes, self.offsets + index * self.offset_size, self.offset_size)
    }

    /// The bytes of the value at `index`, exactly; those of an unknown type reach to the next value.
    fn value(&self, index: usize) -> Result<&'a [u8]> {
        let outside = || malformed("an offset points outside of its object or array");
        let offset = self.offset(index).ok_or_else(outside)?;
        let rest = self.bytes.get(self.values + offset..).ok_or_else(outside)?;
        let length = match size(rest)? {
            Some(length) => length,
            None => self.distance_to_next(offset),
        };
        rest.get(..length).ok_or_else(outside)
    }

    fn distance_to_next(&self, offset: usize) -> usize {
        let next = (0..=self.length).filter_map(|i| self.offset(i)).filter(|&o| o > offset).min();
        next.unwrap_or(offset) - offset
    }
}

/// A Variant object: fields in the order of their names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Object<'a> {
    header: Header<'a>,
    id_size: usize,
}

impl<'a> Object<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let flags = bytes.first().copied().unwrap_or_default() >> 2;
        let id_size = usize::from(flags >> 2 & 0b11) + 1;
        let offset_size = usize::from(flags & 0b11) + 1;
        let header = Header::parse(bytes, flags & 0b1_0000 != 0, id_size, offset_size)?;
        Ok(Object { header, id_size })
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.header.length
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of bytes of the object.
    pub fn size(&self) -> usize {
        self.header.end
    }

    /// The bytes of the object.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.header.bytes
    }

    /// The name id of the field at `index`.
    pub fn field_id(&self, index: usize) -> Result<usize> {
        let start = self.header.offsets - self.header.length * self.id_size;
        read_unsigned(self.header.bytes, start + index * self.id_size, self.id_size)
            .filter(|_| index < self.header.length)
            .ok_or_else(|| malformed("an object has no such field"))
    }

    /// The name id and the bytes of the field at `index`.
    pub fn field(&self, index: usize) -> Result<(usize, &'a [u8])> {
        Ok((self.field_id(index)?, self.header.value(index)?))
    }

    /// The bytes of the field called `name`.
    ///
    /// Fields are searched as sorted first; other writers sort by UTF-16 units, so a miss looks at every
    /// field (requirements X15).
    pub fn get(&self, metadata: &Metadata<'_>, name: &str) -> Result<Option<&'a [u8]>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            match metadata.get(self.field_id(middle)?)?.cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return self.header.value(middle).map(Some),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        if name.is_ascii() && self.names_are_ascii(metadata)? && self.is_sorted(metadata)? {
            return Ok(None);
        }
        for index in 0..self.len() {
            if metadata.get(self.field_id(index)?)? == name {
                return self.header.value(index).map(Some);
            }
        }
        Ok(None)
    }

    fn names_are_ascii(&self, metadata: &Metadata<'_>) -> Result<bool> {
        for index in 0..self.len() {
            if !metadata.get(self.field_id(index)?)?.is_ascii() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_sorted(&self, metadata: &Metadata<'_>) -> Result<bool> {
        let mut previous = None;
        for index in 0..self.len() {
            let name = metadata.get(self.field_id(index)?)?;
            if previous.is_some_and(|p| p >= name) {
                return Ok(false);
            }
            previous = Some(name);
        }
        Ok(true)
    }

    /// Refuse two fields of one name (requirements E-O5).
    pub fn check_unique(&self, metadata: &Metadata<'_>) -> Result<()> {
        if self.is_sorted(metadata)? {
            return Ok(());
        }
        let mut names =
            (0..self.len()).map(|i| metadata.get(self.field_id(i)?)).collect::<Result<Vec<_>>>()?;
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(malformed(&format!("an object has two fields called {:?}", pair[0]))),
            None => Ok(()),
        }
    }
}

/// A Variant array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Array<'a> {
    header: Header<'a>,
}

impl<'a> Array<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let flags = bytes.first().copied().unwrap_or_default() >> 2;
        let offset_size = usize::from(flags & 0b11) + 1;
        let header = Header::parse(bytes, flags & 0b100 != 0, 0, offset_size)?;
        Ok(Array { header })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.header.length
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of bytes of the array.
    pub fn size(&self) -> usize {
        self.header.end
    }

    /// The bytes of the array.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.header.bytes
    }

    /// The bytes of the element at `index`.
    pub fn element(&self, index: usize) -> Result<&'a [u8]> {
        if index >= self.len() {
            return Err(malformed("an array has no such element"));
        }
        self.header.value(index)
    }
}
