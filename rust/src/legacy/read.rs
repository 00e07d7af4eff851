//! Turn columns of the legacy layout back into Variant values (ConstructVariant in the draft).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray, StructArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::assemble::{Assembler, PartId};
use super::layout::{ARRAY, Group, OBJECT, TYPED_VALUE, UNTYPED_VALUE};
use crate::error::{Error, Result, each_row};
use crate::shred::reader::{Offsets, is_valid};
use crate::value::cast::variant_fields;
use crate::value::column::{Bytes, Scalars};
use crate::value::{self, Metadata, Value, malformed};

/// Return the Variant values of a legacy column as `struct<metadata: binary, value: binary>`, null where the group is.
///
/// A value that is not shredded at all keeps its bytes. Any other has a metadata of its own, with the names of all
/// its parts. `compat` accepts data that the draft's algorithm accepts and its rules forbid: the Variant null of an
/// `untyped_value` wins over a `typed_value`, and an `array` wins over an `untyped_value`. Errors have row and path.
pub fn unshred(group: &StructArray, compat: bool) -> Result<StructArray> {
    let layout = Group::parse(group.fields())?;
    let reader = Reader::new(group, &layout, compat)?;
    let mut out = Assembler::new();
    let (mut metadata, mut values) = (Output::new(group.len()), Output::new(group.len()));
    each_row(0..group.len(), |row| {
        if group.is_valid(row) {
            reader.read_row(row, &mut out, &mut metadata.bytes, &mut values.bytes)?;
        }
        metadata.end()?;
        values.end()
    })?;
    let nulls = group.nulls();
    let columns = [metadata, values].map(|output| output.finish(nulls));
    let [metadata, values] = columns;
    let columns: Vec<Arc<dyn Array>> = vec![Arc::new(metadata?), Arc::new(values?)];
    Ok(StructArray::try_new(variant_fields(), columns, nulls.cloned())?)
}

/// A column of bytes, written row by row.
pub(super) struct Output {
    pub bytes: Vec<u8>,
    ends: Vec<i32>,
}

impl Output {
    pub fn new(length: usize) -> Self {
        let mut ends = Vec::with_capacity(length + 1);
        ends.push(0);
        Output { bytes: Vec::new(), ends }
    }

    /// End a row, which has the bytes since the previous row.
    pub fn end(&mut self) -> Result<()> {
        let end = i32::try_from(self.bytes.len()).map_err(|_| Error::too_large())?;
        self.ends.push(end);
        Ok(())
    }

    pub fn finish(self, nulls: Option<&NullBuffer>) -> Result<BinaryArray> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        Ok(BinaryArray::try_new(offsets, Buffer::from_vec(self.bytes), nulls.cloned())?)
    }
}

/// The columns of one [`Group`]; those that are not in the file are null throughout.
struct Reader<'a> {
    path: &'a str,
    /// A null group is a missing value.
    nulls: Option<&'a NullBuffer>,
    untyped_value: Option<Bytes<'a>>,
    object: Option<Column<'a, Vec<FieldReader<'a>>>>,
    array: Option<Column<'a, (Offsets<'a>, Box<Reader<'a>>)>>,
    typed_value: Option<Column<'a, Scalars<'a>>>,
    compat: bool,
}

struct FieldReader<'a> {
    name: &'a str,
    reader: Reader<'a>,
}

/// A typed column and its nulls.
struct Column<'a, T> {
    nulls: Option<&'a NullBuffer>,
    content: T,
}

impl<T> Column<'_, T> {
    fn at(&self, index: usize) -> Option<&T> {
        is_valid(self.nulls, index).then_some(&self.content)
    }
}

impl<'a> Reader<'a> {
    fn new(group: &'a StructArray, layout: &'a Group, compat: bool) -> Result<Self> {
        let column = |position: usize| group.column(position);
        let untyped_value = layout.untyped_value.map(|position| Bytes::new(column(position))).transpose()?;
        let object = match &layout.object {
            Some((position, fields)) => {
                let object = column(*position).as_struct();
                let readers = fields.iter().map(|field| {
                    let group = object.column(field.position).as_struct();
                    Ok(FieldReader { name: &field.name, reader: Reader::new(group, &field.group, compat)? })
                });
                Some(Column { nulls: object.nulls(), content: readers.collect::<Result<_>>()? })
            }
            None => None,
        };
        let array = match &layout.array {
            Some((position, element)) => {
                let (offsets, elements) = Offsets::of(column(*position));
                let element = Box::new(Reader::new(elements, element, compat)?);
                Some(Column { nulls: column(*position).nulls(), content: (offsets, element) })
            }
            None => None,
        };
        let typed_value = match &layout.typed_value {
            Some((position, _)) => {
                let scalars = Scalars::new(column(*position))?;
                Some(Column { nulls: column(*position).nulls(), content: scalars })
            }
            None => None,
        };
        let (path, nulls) = (layout.path.as_str(), group.nulls());
        Ok(Reader { path, nulls, untyped_value, object, array, typed_value, compat })
    }

    /// Append the value of a row; one that is missing is Variant null.
    fn read_row(
        &self,
        row: usize,
        out: &mut Assembler<'a>,
        metadata: &mut Vec<u8>,
        values: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some((whole, value)) = self.unshredded(row)? {
            metadata.extend_from_slice(whole.as_bytes());
            values.extend_from_slice(value);
            return Ok(());
        }
        let root = self.read(row, out, 0)?.unwrap_or_else(|| out.scalar(&Value::Null, None));
        out.write_metadata(metadata);
        out.write_value(root, values)
    }

    /// The bytes of a row that is in `untyped_value` alone, if they need no repair.
    fn unshredded(&self, row: usize) -> Result<Option<(Metadata<'a>, &'a [u8])>> {
        let Some(bytes) = self.untyped_at(row) else { return Ok(None) };
        if self.is_typed(row) {
            return Ok(None);
        }
        let (metadata, value) = split(bytes).map_err(|error| error.at_path(self.path))?;
        Ok(value::validate(&metadata, value).is_ok().then_some((metadata, value)))
    }

    fn untyped_at(&self, index: usize) -> Option<&'a [u8]> {
        self.untyped_value.and_then(|column| column.get(index))
    }

    fn is_typed(&self, index: usize) -> bool {
        self.object.as_ref().is_some_and(|column| column.at(index).is_some())
            || self.array.as_ref().is_some_and(|column| column.at(index).is_some())
            || self.typed_value.as_ref().is_some_and(|column| column.at(index).is_some())
    }

    fn is_missing(&self, index: usize) -> bool {
        !is_valid(self.nulls, index) || self.untyped_at(index).is_none() && !self.is_typed(index)
    }

    /// The value at `index`, `None` where it is missing.
    fn read(&self, index: usize, out: &mut Assembler<'a>, depth: usize) -> Result<Option<PartId>> {
        if self.is_missing(index) {
            return Ok(None);
        }
        let object = self.object.as_ref().and_then(|column| column.at(index));
        let array = self.array.as_ref().and_then(|column| column.at(index));
        let typed = self.typed_value.as_ref().and_then(|column| column.at(index));
        let untyped = self.untyped_at(index);
        match (object, array, typed) {
            (None, None, None) => match untyped {
                Some(bytes) => self.untyped(bytes, out, depth),
                None => Ok(out.scalar(&Value::Null, None)),
            },
            (Some(fields), None, None) => self.read_object(fields, untyped, index, out, depth),
            (None, Some((offsets, element)), None) => {
                if untyped.is_some() && !self.compat {
                    return Err(self.both_set(ARRAY));
                }
                read_array(offsets.range(index), element, out, depth)
            }
            (None, None, Some(scalars)) => self.read_scalar(scalars, untyped, index, out),
            _ => Err(self.conflict(&format!("only one of {OBJECT}, {ARRAY} and {TYPED_VALUE} may be set"))),
        }
        .map(Some)
    }

    fn untyped(&self, bytes: &'a [u8], out: &mut Assembler<'a>, depth: usize) -> Result<PartId> {
        split(bytes)
            .and_then(|(metadata, value)| {
                let names: Vec<&str> = metadata.names().collect();
                out.value(&names, value, depth)
            })
            .map_err(|error| error.at_path(self.path))
    }

    fn read_scalar(
        &self,
        scalars: &Scalars<'a>,
        untyped: Option<&'a [u8]>,
        index: usize,
        out: &mut Assembler<'a>,
    ) -> Result<PartId> {
        if let Some(bytes) = untyped {
            let (_, value) = split(bytes).map_err(|error| error.at_path(self.path))?;
            if !self.compat || value != value::NULL {
                return Err(self.both_set(TYPED_VALUE));
            }
            return Ok(out.scalar(&Value::Null, None));
        }
        let value = scalars.value(index).map_err(|error| error.at_path(self.path))?;
        Ok(out.scalar(&value, scalars.precision()))
    }

    /// The fields of `object`, and those of `untyped_value` that are missing there.
    fn read_object(
        &self,
        fields: &[FieldReader<'a>],
        untyped: Option<&'a [u8]>,
        index: usize,
        out: &mut Assembler<'a>,
        depth: usize,
    ) -> Result<PartId> {
        let frame = out.begin();
        for field in fields {
            if let Some(part) = field.reader.read(index, out, depth + 1)? {
                out.field(field.name, part);
            }
        }
        if let Some(bytes) = untyped {
            self.read_leftovers(bytes, fields, index, out, depth)?;
        }
        out.end_object(frame).map_err(|error| error.at_path(self.path))
    }

    fn read_leftovers(
        &self,
        bytes: &'a [u8],
        fields: &[FieldReader<'a>],
        index: usize,
        out: &mut Assembler<'a>,
        depth: usize,
    ) -> Result<()> {
        let at = |error: Error| error.at_path(self.path);
        let (metadata, value) = split(bytes).map_err(at)?;
        let Value::Object(object) = Value::decode(value).map_err(at)? else {
            return Err(self.conflict(&format!("{OBJECT} is set, and {UNTYPED_VALUE} is not an object")));
        };
        let names: Vec<&str> = metadata.names().collect();
        for field in object.fields() {
            let (id, value) = field.map_err(at)?;
            let name = names.get(id).ok_or_else(|| at(value::no_such_name(id, names.len())))?;
            if !is_shredded(fields, name, index) {
                let part = out.value(&names, value, depth + 1).map_err(at)?;
                out.field(name, part);
            }
        }
        Ok(())
    }

    fn both_set(&self, typed: &str) -> Error {
        self.conflict(&format!("{typed} and {UNTYPED_VALUE} are both set"))
    }

    fn conflict(&self, what: &str) -> Error {
        Error::conflict(format!("conflicting columns: {what}")).at_path(self.path)
    }
}

/// Read an array; a missing element is Variant null.
fn read_array<'a>(
    range: std::ops::Range<usize>,
    element: &Reader<'a>,
    out: &mut Assembler<'a>,
    depth: usize,
) -> Result<PartId> {
    let frame = out.begin();
    for index in range {
        let part = element.read(index, out, depth + 1)?;
        let part = part.unwrap_or_else(|| out.scalar(&Value::Null, None));
        out.element(part);
    }
    Ok(out.end_array(frame))
}

/// Whether `name` is a shredded field whose value is not missing.
fn is_shredded(fields: &[FieldReader<'_>], name: &str, index: usize) -> bool {
    let found = fields.binary_search_by(|field| field.name.cmp(name));
    found.is_ok_and(|position| !fields[position].reader.is_missing(index))
}

/// `untyped_value` as its metadata and its value; bytes after the value are tolerated.
fn split(bytes: &[u8]) -> Result<(Metadata<'_>, &[u8])> {
    let metadata = Metadata::parse_prefix(bytes)?;
    let rest = &bytes[metadata.as_bytes().len()..];
    if rest.is_empty() {
        return Err(malformed("there is no value after the metadata"));
    }
    let size = value::size(rest)?.unwrap_or(rest.len());
    Ok((metadata, &rest[..size]))
}
