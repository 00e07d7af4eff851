//! Objects and arrays: their headers, and their fields or elements as bytes.

use super::metadata::{Metadata, read_next_unsigned, read_unsigned};
use super::{is_short_scalar, malformed, no_such_name, size};
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
        let cut_short = || malformed("an object or array is truncated");
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
        self.value_before(index, |offset| self.offsets().filter(|&other| other > offset).min())
    }

    /// The bytes of the value at `index`; `next` finds the offset that follows another.
    fn value_before(&self, index: usize, next: impl FnOnce(usize) -> Option<usize>) -> Result<&'a [u8]> {
        let outside = || malformed("an offset points outside its object or array");
        let offset = self.offset(index).ok_or_else(outside)?;
        let rest = self.bytes.get(self.values + offset..).ok_or_else(outside)?;
        let length = match size(rest)? {
            Some(length) => length,
            None => next(offset).unwrap_or(offset) - offset,
        };
        rest.get(..length).ok_or_else(outside)
    }

    /// The bytes from the start of the value at `index` to the end of the last value.
    #[inline]
    fn value_and_rest(&self, index: usize) -> Result<&'a [u8]> {
        let offset =
            read_next_unsigned(self.bytes, self.offsets + index * self.offset_size, self.offset_size);
        offset
            .and_then(|offset| self.bytes.get(self.values + offset..))
            .ok_or_else(|| malformed("an offset points outside its object or array"))
    }

    /// All offsets, including the end of the last value.
    fn offsets(&self) -> impl Iterator<Item = usize> {
        (0..=self.length).filter_map(|index| self.offset(index))
    }

    fn values(&self) -> Values<'a> {
        Values { header: *self, next: 0, budget: self.budget(), sorted_offsets: Vec::new() }
    }

    fn budget(&self) -> ByteBudget {
        ByteBudget { bytes: self.end - self.values }
    }
}

/// The bytes that the values of an object or array may take in all, which bounds the work of walking them.
///
/// VariantEncoding.md does not forbid values that share bytes. Short scalars may share them; all other values must
/// fit next to each other, so that hostile input cannot make a small Variant expand exponentially.
#[derive(Debug, Clone, Copy)]
pub struct ByteBudget {
    bytes: usize,
}

impl ByteBudget {
    /// The budget of a value that is not within an object or array.
    pub fn unlimited() -> Self {
        ByteBudget { bytes: usize::MAX }
    }

    /// Reserve the bytes of `value`, or return an error if none are left.
    #[inline]
    pub fn take(&mut self, value: &[u8]) -> Result<()> {
        if is_short_scalar(value) {
            return Ok(());
        }
        self.take_bytes(value.len())
    }

    /// Reserve the bytes of a value of this length that is not a short scalar.
    #[inline]
    pub fn take_bytes(&mut self, length: usize) -> Result<()> {
        let rest = self.bytes.checked_sub(length);
        self.bytes = rest.ok_or_else(|| malformed("the values of an object or array overlap"))?;
        Ok(())
    }
}

/// The values of an object or array, one after the other.
struct Values<'a> {
    header: Header<'a>,
    next: usize,
    budget: ByteBudget,
    /// Filled when the first value of an unknown type occurs.
    sorted_offsets: Vec<usize>,
}

impl Values<'_> {
    fn offset_after(sorted_offsets: &mut Vec<usize>, header: &Header<'_>, offset: usize) -> Option<usize> {
        if sorted_offsets.is_empty() {
            sorted_offsets.extend(header.offsets());
            sorted_offsets.sort_unstable();
        }
        sorted_offsets.get(sorted_offsets.partition_point(|&other| other <= offset)).copied()
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.header.length {
            return None;
        }
        let (header, sorted_offsets) = (&self.header, &mut self.sorted_offsets);
        let value = header
            .value_before(self.next, |offset| Self::offset_after(sorted_offsets, header, offset))
            .and_then(|value| self.budget.take(value).map(|()| value));
        self.next += 1;
        Some(value)
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
            .ok_or_else(|| malformed("a field index is out of range"))
    }

    /// The name id and the bytes of the field at `index`; see [`Object::fields`] for all of them.
    pub fn field(&self, index: usize) -> Result<(usize, &'a [u8])> {
        Ok((self.field_id(index)?, self.header.value(index)?))
    }

    /// The name id and the bytes of each field, in the order of the object, which is that of the names.
    pub fn fields(&self) -> impl Iterator<Item = Result<(usize, &'a [u8])>> {
        self.header.values().enumerate().map(|(index, value)| Ok((self.field_id(index)?, value?)))
    }

    /// The name id of the field at `index`, and the bytes from the start of its value to the end of the object.
    ///
    /// For readers that find the length of the value while they read it, and take it from the budget.
    #[inline]
    pub fn field_and_rest(&self, index: usize) -> Result<(usize, &'a [u8])> {
        let ids = self.header.offsets - self.header.length * self.id_size;
        let id = read_next_unsigned(self.header.bytes, ids + index * self.id_size, self.id_size)
            .ok_or_else(|| malformed("a field index is out of range"))?;
        Ok((id, self.header.value_and_rest(index)?))
    }

    /// The byte budget for the values of the fields, for readers that take them in another order.
    pub fn budget(&self) -> ByteBudget {
        self.header.budget()
    }

    /// The bytes of the field called `name`.
    ///
    /// Not all writers sort fields by the bytes of their names (VariantEncoding.md, "Object"), so a search that fails
    /// falls back to comparing every field.
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
        self.find(metadata, name)
    }

    fn find(&self, metadata: &Metadata<'_>, name: &str) -> Result<Option<&'a [u8]>> {
        // If an object lacks a name, the dictionary usually lacks it too.
        if metadata.is_sorted() && metadata.find(name).is_none() {
            return Ok(None);
        }
        for index in 0..self.len() {
            if metadata.is_name(self.field_id(index)?, name) {
                return self.header.value(index).map(Some);
            }
        }
        Ok(None)
    }

    /// The name of the field at `index`, where `names` are those of the metadata, by id.
    pub fn field_name<'n>(&self, index: usize, names: &[&'n str]) -> Result<&'n str> {
        let id = self.field_id(index)?;
        names.get(id).copied().ok_or_else(|| no_such_name(id, names.len()))
    }

    /// Reject two fields of one name, and fields sorted neither by the UTF-8 bytes of their names
    /// (VariantEncoding.md, "Object") nor by their UTF-16 units, as Spark sorts them.
    pub fn check_order(&self, names: &[&str]) -> Result<()> {
        let mut previous: Option<&str> = None;
        for index in 0..self.len() {
            let name = self.field_name(index, names)?;
            if previous.is_some_and(|previous| previous >= name) {
                return self.check_utf16_order(names);
            }
            previous = Some(name);
        }
        Ok(())
    }

    fn check_utf16_order(&self, names: &[&str]) -> Result<()> {
        let names: Vec<&str> =
            (0..self.len()).map(|index| self.field_name(index, names)).collect::<Result<_>>()?;
        if names.is_sorted_by(|a, b| a.encode_utf16().lt(b.encode_utf16())) {
            return Ok(());
        }
        let mut sorted = names;
        sorted.sort_unstable();
        Err(match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => malformed(&format!("an object has two fields called {:?}", pair[0])),
            None => malformed("the fields of an object are not in the order of their names"),
        })
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

    /// The bytes from the start of the element at `index` to the end of the array; see [`Object::field_and_rest`].
    #[inline]
    pub fn element_and_rest(&self, index: usize) -> Result<&'a [u8]> {
        self.header.value_and_rest(index)
    }

    /// The byte budget for the elements.
    pub fn budget(&self) -> ByteBudget {
        self.header.budget()
    }

    /// The bytes of each element.
    pub fn elements(&self) -> impl Iterator<Item = Result<&'a [u8]>> {
        self.header.values()
    }

    /// The bytes of the element at `index`.
    pub fn element(&self, index: usize) -> Result<&'a [u8]> {
        if index >= self.len() {
            return Err(malformed("an array index is out of range"));
        }
        self.header.value(index)
    }
}
