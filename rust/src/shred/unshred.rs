//! Turn shredded columns back into Variant values.
//!
//! Each thread holds the output of its range of rows; a batch of 2 GiB or more is an error.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, NullBufferBuilder};
use arrow_array::{Array, ArrayRef, BinaryArray, StructArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use rayon::prelude::*;

use super::layout::{Group, Layout};
use super::reader::{FieldReader, GroupReader, OnConflict, Sink};
use super::shapes::{Shapes, to_binary};
use crate::error::{Error, Result};
use crate::value::column::Scalars;
use crate::value::metadata::{self, Metadata, unsigned_size};
use crate::value::{MAX_SIZE, Value, cast, encode};

/// The minimum number of rows for a thread.
const MIN_ROWS_PER_THREAD: usize = 32 << 10;

/// The Variant values of a shredded column as `struct<metadata: binary, value: binary>`, null where the group is.
///
/// Bytes of rows without a `typed_value` are returned as they are, and so is `metadata` unless a shredded name is
/// missing in it, which VariantShredding.md forbids but readers repair. Errors have the row.
pub fn unshred(group: &StructArray, on_conflict: OnConflict) -> Result<StructArray> {
    unshred_as(group, &Layout::parse(group.fields())?, on_conflict)
}

/// The Variant values of a column with this layout.
pub(super) fn unshred_as(
    group: &StructArray,
    layout: &Layout,
    on_conflict: OnConflict,
) -> Result<StructArray> {
    let metadata = to_binary(metadata_column(group, layout)?)?;
    if let Some(value) = unshredded_values(group, &layout.group, &metadata)? {
        return variant_array(Arc::new(metadata), Arc::new(value), group);
    }
    let parts = par_ranges(group, |part| values_of(part, layout, on_conflict))?;
    let values: Vec<&dyn Array> = parts.iter().map(|part| &part.values as &dyn Array).collect();
    let values = arrow_select::concat::concat(&values)?;
    let rebuilt = parts.iter().flat_map(|part| &part.rebuilt);
    variant_array(Arc::new(with_rebuilt(metadata, rebuilt)?), values, group)
}

/// Apply `work` to ranges of rows in parallel.
pub(super) fn par_ranges<T: Send>(
    group: &StructArray,
    work: impl Fn(&Part) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let length = group.len();
    let rows = length.div_ceil(rayon::current_num_threads().max(1)).max(MIN_ROWS_PER_THREAD);
    let starts: Vec<usize> = if length == 0 { vec![0] } else { (0..length).step_by(rows).collect() };
    let range = |&start: &usize| start..length.min(start + rows);
    if let [start] = starts[..] {
        return Ok(vec![work(&Part::new(group, range(&start)))?]);
    }
    starts.par_iter().map(|start| work(&Part::new(group, range(start)))).collect()
}

/// A range of a column's rows.
pub(super) struct Part {
    pub group: StructArray,
    pub first_row: usize,
}

impl Part {
    fn new(group: &StructArray, range: Range<usize>) -> Self {
        Part { group: group.slice(range.start, range.len()), first_row: range.start }
    }
}

pub(super) fn metadata_column<'a>(group: &'a StructArray, layout: &Layout) -> Result<&'a ArrayRef> {
    let position = layout.metadata.ok_or_else(|| Error::shredding("`metadata` was not read"))?;
    Ok(group.column(position))
}

fn variant_array(metadata: ArrayRef, value: ArrayRef, group: &StructArray) -> Result<StructArray> {
    Ok(StructArray::try_new(cast::variant_fields(), vec![metadata, value], group.nulls().cloned())?)
}

/// The `value` column of a group that is not shredded, where every row has one.
fn unshredded_values(
    group: &StructArray,
    layout: &Group,
    metadata: &BinaryArray,
) -> Result<Option<BinaryArray>> {
    let (None, Some(position)) = (&layout.typed_value, layout.value) else { return Ok(None) };
    let value = to_binary(group.column(position))?;
    for row in (0..group.len()).filter(|&row| group.is_valid(row)) {
        // The walk over the rows returns the error, or Variant null where `value` is missing.
        if metadata.is_null(row) || value.is_null(row) || value.value_length(row) == 0 {
            return Ok(None);
        }
    }
    Ok(Some(value))
}

pub(super) fn offset(length: usize) -> Result<i32> {
    i32::try_from(length).map_err(|_| Error::too_large())
}

/// The values of a range of rows, and the new metadata of the rows that need one.
struct Values {
    values: BinaryArray,
    rebuilt: Vec<(usize, Vec<u8>)>,
}

fn values_of(part: &Part, layout: &Layout, on_conflict: OnConflict) -> Result<Values> {
    let group = &part.group;
    let mut slot_names = Vec::new();
    let reader = GroupReader::new(group, &layout.group, on_conflict, &mut slot_names)?;
    let metadata = metadata_column(group, layout)?;
    let mut shapes = Shapes::new(metadata.as_ref(), |metadata| NameIds::new(metadata, &slot_names))?;
    let mut nulls = NullBufferBuilder::new(group.len());
    let (mut out, mut rebuilt) = (Vec::new(), Vec::new());
    let (mut entries, mut containers) = (Vec::new(), Vec::new());
    let mut ends = Vec::with_capacity(group.len() + 1);
    ends.push(0);
    for row in 0..group.len() {
        nulls.append(group.is_valid(row));
        if group.is_valid(row) {
            let missing = shapes
                .at(row)
                .and_then(|shape| {
                    let ids = &mut shape.derived;
                    ids.is_extended = false;
                    let mut sink = BytesSink {
                        out: &mut out,
                        ids,
                        names: &slot_names,
                        entries: &mut entries,
                        containers: &mut containers,
                    };
                    reader.read(row, &shape.names, &mut sink, 0)?;
                    Ok(shape.derived.is_extended.then(|| shape.derived.metadata(&shape.names)))
                })
                .map_err(|error| error.at_row(part.first_row + row))?;
            rebuilt.extend(missing.map(|metadata| (part.first_row + row, metadata)));
        }
        ends.push(offset(out.len())?);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    let values = BinaryArray::try_new(offsets, Buffer::from_vec(out), nulls.finish())?;
    Ok(Values { values, rebuilt })
}

fn with_rebuilt<'r>(
    metadata: BinaryArray,
    rebuilt: impl Iterator<Item = &'r (usize, Vec<u8>)>,
) -> Result<BinaryArray> {
    let mut rebuilt = rebuilt.peekable();
    if rebuilt.peek().is_none() {
        return Ok(metadata);
    }
    let mut builder = BinaryBuilder::with_capacity(metadata.len(), metadata.value_data().len());
    for row in 0..metadata.len() {
        match rebuilt.next_if(|(rebuilt_row, _)| *rebuilt_row == row) {
            Some((_, bytes)) => builder.append_value(bytes),
            None => builder.append_option(metadata.is_valid(row).then(|| metadata.value(row))),
        }
    }
    Ok(builder.finish())
}

/// The ids of the shredded names in one metadata.
struct NameIds<'a> {
    by_slot: Vec<Option<usize>>,
    /// Names that values use but the metadata lacks: their ids follow its own.
    added: Vec<&'a str>,
    length: usize,
    /// Whether the row being read uses an added name.
    is_extended: bool,
}

impl<'a> NameIds<'a> {
    fn new(metadata: &Metadata<'_>, slot_names: &[&str]) -> Self {
        let by_slot = slot_names.iter().map(|name| metadata.find(name)).collect();
        NameIds { by_slot, added: Vec::new(), length: metadata.len(), is_extended: false }
    }

    fn id(&mut self, slot: usize, slot_names: &[&'a str]) -> usize {
        if let Some(Some(id)) = self.by_slot.get(slot) {
            return *id;
        }
        self.is_extended = true;
        let name = slot_names.get(slot).copied().unwrap_or_default();
        let position = self.added.iter().position(|added| *added == name).unwrap_or_else(|| {
            self.added.push(name);
            self.added.len() - 1
        });
        self.length + position
    }

    /// The metadata with the added names after its own, so that existing ids stay valid.
    fn metadata(&self, names: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        metadata::write(&mut out, names.iter().chain(&self.added).copied(), false);
        out
    }
}

/// Builds Variant bytes: nested values first, then the header of their object or array before them.
struct BytesSink<'s, 'a> {
    out: &'s mut Vec<u8>,
    ids: &'s mut NameIds<'a>,
    /// By slot.
    names: &'s [&'a str],
    /// Name id and offset of the fields or elements of all open containers.
    entries: &'s mut Vec<(usize, usize)>,
    containers: &'s mut Vec<Container>,
}

/// An object or array that has begun: where its values and its entries begin.
#[derive(Clone, Copy, Default)]
struct Container {
    values: usize,
    entries: usize,
}

impl BytesSink<'_, '_> {
    fn begin(&mut self) {
        self.containers.push(Container { values: self.out.len(), entries: self.entries.len() });
    }

    fn entry(&mut self, id: usize) {
        let start = self.containers.last().map_or(0, |container| container.values);
        self.entries.push((id, self.out.len() - start));
    }

    /// Write the header that `write` makes of the entries, and move it before the values.
    fn end(&mut self, write: impl FnOnce(&mut Vec<u8>, &[(usize, usize)], usize)) -> Result<()> {
        let container = self.containers.pop().unwrap_or_default();
        let values_end = self.out.len();
        let size = values_end - container.values;
        if size > MAX_SIZE {
            return Err(Error::variant(format!("a Variant value takes more than {MAX_SIZE} bytes")));
        }
        write(self.out, &self.entries[container.entries..], size);
        let header_size = self.out.len() - values_end;
        self.out[container.values..].rotate_right(header_size);
        self.entries.truncate(container.entries);
        Ok(())
    }
}

impl Sink for BytesSink<'_, '_> {
    fn null(&mut self) {
        encode::scalar(self.out, &Value::Null);
    }

    fn scalar(&mut self, column: &Scalars<'_>, index: usize) -> Result<()> {
        match (column.value(index)?, column.precision()) {
            (Value::Decimal(decimal), Some(precision)) => {
                encode::decimal_of_precision(self.out, decimal, precision);
            }
            (value, _) => encode::scalar(self.out, &value),
        }
        Ok(())
    }

    fn value(&mut self, bytes: &[u8], _depth: usize) -> Result<()> {
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn begin_object(&mut self) {
        self.begin();
    }

    fn shredded_key(&mut self, field: &FieldReader<'_>) {
        let id = self.ids.id(field.slot, self.names);
        self.entry(id);
    }

    fn key(&mut self, id: usize) -> Result<()> {
        self.entry(id);
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        self.end(|out, entries, size| {
            let largest_id = entries.iter().map(|entry| entry.0).max().unwrap_or_default();
            encode::Layout::object(entries.len(), size, unsigned_size(largest_id))
                .write_object(out, entries.iter().copied());
        })
    }

    fn begin_array(&mut self) {
        self.begin();
    }

    fn element(&mut self) {
        self.entry(0);
    }

    fn end_array(&mut self) -> Result<()> {
        self.end(|out, entries, size| {
            encode::Layout::array(entries.len(), size).write_array(out, entries.iter().map(|entry| entry.1));
        })
    }
}
