//! Print shredded columns as JSON text.
//!
//! The values of a leaf are printed together with their keys, for a range of rows, and the rows are put together from
//! these pieces. A range in which an error occurs is printed again row by row, which finds the first row with an error
//! and its path.

use std::ops::Range;

use arrow_array::{Array, StringArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

use super::layout::Layout;
use super::pieces::{Pieces, Prefix, ScalarPrinter};
use super::reader::{FieldReader, GroupReader, OnConflict, Sink, TypedColumn, is_valid};
use super::shapes::Shapes;
use super::text_buffers::TextBuffers;
use super::unshred::{Part, metadata_column, offset, par_ranges};
use crate::error::{Error, Result};
use crate::value::Zone;
use crate::value::column::Scalars;
use crate::value::json::{self, Keys};

/// The rows whose leaves are printed before the rows are put together: few enough that their text stays in the CPU
/// cache.
const ROWS_AT_ONCE: usize = 256;
/// The maximum of bytes of repeated keys in a range of rows; a range with more is printed row by row.
const MAX_KEY_BYTES: usize = 64 << 20;

/// The JSON text of a shredded column's values, null where the group is; numbers as Spark's `to_json` prints them,
/// and timestamps as local times of `zone`.
///
/// No intermediate Variant bytes are built. Errors have the row.
pub fn to_json(group: &StructArray, on_conflict: OnConflict, zone: &Zone) -> Result<StringArray> {
    to_json_in_ranges(group, on_conflict, zone, ROWS_AT_ONCE)
}

/// The same text as [`to_json`] returns, in the memory of `buffers`.
pub fn to_json_in_buffers(
    group: &StructArray,
    on_conflict: OnConflict,
    zone: &Zone,
    buffers: &TextBuffers,
) -> Result<StringArray> {
    print(group, on_conflict, zone, ROWS_AT_ONCE, buffers)
}

/// The same text as [`to_json`] returns, printed in ranges of this many rows, or with 0 row by row: the reference that
/// tests compare with.
pub fn to_json_in_ranges(
    group: &StructArray,
    on_conflict: OnConflict,
    zone: &Zone,
    rows_at_once: usize,
) -> Result<StringArray> {
    print(group, on_conflict, zone, rows_at_once, &TextBuffers::default())
}

fn print(
    group: &StructArray,
    on_conflict: OnConflict,
    zone: &Zone,
    rows_at_once: usize,
    buffers: &TextBuffers,
) -> Result<StringArray> {
    let layout = Layout::parse(group.fields())?;
    let json_of = |part: &Part| json_of(part, &layout, on_conflict, zone, rows_at_once, buffers);
    let mut parts = par_ranges(group, json_of)?;
    if parts.len() == 1
        && let Some(part) = parts.pop()
    {
        return Ok(part);
    }
    let parts: Vec<&dyn Array> = parts.iter().map(|part| part as &dyn Array).collect();
    let text = arrow_select::concat::concat(&parts)?;
    text.as_any().downcast_ref::<StringArray>().cloned().ok_or_else(|| Error::unsupported("text is not utf8"))
}

fn json_of(
    part: &Part,
    layout: &Layout,
    on_conflict: OnConflict,
    zone: &Zone,
    rows_at_once: usize,
    buffers: &TextBuffers,
) -> Result<StringArray> {
    let group = &part.group;
    let mut slot_names = Vec::new();
    let reader = GroupReader::new(group, &layout.group, on_conflict, &mut slot_names)?;
    let slots = Keys::of(slot_names.iter().copied());
    let shapes = Shapes::new(metadata_column(group, layout)?.as_ref(), Keys::new)?;
    let mut rows = Rows { first_row: part.first_row, zone, shapes, buffers };
    if rows_at_once == 0 {
        return rows.print_all_by_row(&reader, &slots, group);
    }
    let mut printer = GroupPrinter::new(&reader, &slots, None, 0);
    let mut text = Text::new(group.len(), buffers);
    for start in (0..group.len()).step_by(rows_at_once) {
        let range = start..group.len().min(start + rows_at_once);
        let (bytes, count) = (text.bytes.len(), text.ends.len());
        if rows.print_range(&mut printer, range.clone(), &mut text).is_err() {
            text.bytes.truncate(bytes);
            text.ends.truncate(count);
            if rows.print_by_row(&reader, &slots, range, &mut text).is_err() {
                // A string in an earlier range may not be UTF-8, which would be the first error.
                return rows.print_all_by_row(&reader, &slots, group);
            }
        }
        text.reserve_rest(group.len());
    }
    // Where a string is not UTF-8, the error has its row.
    text.finish(group).or_else(|_| rows.print_all_by_row(&reader, &slots, group))
}

/// The text of the rows so far.
struct Text<'a> {
    bytes: Vec<u8>,
    /// The end of each row's text, after a leading 0.
    ends: Vec<i32>,
    buffers: &'a TextBuffers,
}

impl<'a> Text<'a> {
    fn new(rows: usize, buffers: &'a TextBuffers) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Text { bytes: buffers.take(), ends, buffers }
    }

    fn end_row(&mut self) -> Result<()> {
        self.ends.push(offset(self.bytes.len())?);
        Ok(())
    }

    /// Reserve the memory that the remaining rows need if they are as long as those so far.
    fn reserve_rest(&mut self, rows: usize) {
        let printed = self.ends.len() - 1;
        let rest = rows - printed;
        self.bytes.reserve((self.bytes.len() / printed.max(1) + 1).saturating_mul(rest));
    }

    fn finish(self, group: &StructArray) -> Result<StringArray> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        let text = self.buffers.lend(self.bytes);
        Ok(StringArray::try_new(offsets, text, group.nulls().cloned())?)
    }
}

/// What the rows of a part have in common.
struct Rows<'a> {
    first_row: usize,
    zone: &'a Zone,
    shapes: Shapes<'a, Keys>,
    buffers: &'a TextBuffers,
}

impl<'a> Rows<'a> {
    fn print_all_by_row(
        &mut self,
        reader: &GroupReader<'a>,
        slots: &Keys,
        group: &StructArray,
    ) -> Result<StringArray> {
        let mut text = Text::new(group.len(), self.buffers);
        self.print_by_row(reader, slots, 0..group.len(), &mut text)?;
        text.finish(group)
    }

    fn print_by_row(
        &mut self,
        reader: &GroupReader<'a>,
        slots: &Keys,
        range: Range<usize>,
        text: &mut Text<'_>,
    ) -> Result<()> {
        for row in range {
            if is_valid(reader.nulls, row) {
                self.shapes
                    .at(row)
                    .and_then(|shape| {
                        let (keys, out) = (&shape.derived, &mut text.bytes);
                        let mut sink = JsonSink { out, keys, slots, zone: self.zone };
                        reader.read(row, &shape.names, &mut sink, 0)
                    })
                    .map_err(|error| error.at_row(self.first_row + row))?;
            }
            text.end_row()?;
        }
        Ok(())
    }

    /// Print a range of rows: without errors, the text is that of [`Rows::print_by_row`].
    fn print_range(
        &mut self,
        printer: &mut GroupPrinter<'_, 'a>,
        range: Range<usize>,
        text: &mut Text<'_>,
    ) -> Result<()> {
        match &printer.group.typed_value {
            None => self.print_values(printer.group, range, text),
            Some(_) => self.print_columns(printer, range, text),
        }
    }

    /// Print a range of rows that are not shredded.
    fn print_values(
        &mut self,
        reader: &GroupReader<'a>,
        range: Range<usize>,
        text: &mut Text<'_>,
    ) -> Result<()> {
        for row in range {
            if is_valid(reader.nulls, row) {
                let keys = &self.shapes.at(row)?.derived;
                match reader.value.and_then(|value| value.get(row)) {
                    Some(bytes) => {
                        json::value_without_utf8_check(&mut text.bytes, keys, bytes, self.zone, 0)?;
                    }
                    None => text.bytes.extend_from_slice(b"null"),
                }
            }
            text.end_row()?;
        }
        Ok(())
    }

    /// Print the leaves of a range of rows, and put the rows together.
    fn print_columns(
        &mut self,
        printer: &mut GroupPrinter<'_, 'a>,
        range: Range<usize>,
        text: &mut Text<'_>,
    ) -> Result<()> {
        let mut key_bytes = MAX_KEY_BYTES;
        printer.print(range.clone(), &Owners::Same, self, &mut key_bytes)?;
        for row in range {
            if is_valid(printer.group.nulls, row) {
                // Every row needs valid metadata, even if no name of it is used.
                self.shapes.at(row)?;
                printer.append_to(&mut text.bytes, row, row, self)?;
                // The comma that follows each piece.
                text.bytes.pop();
            }
            text.end_row()?;
        }
        Ok(())
    }

    /// Append a value of a `value` column, which belongs to a row.
    fn value(&mut self, out: &mut Vec<u8>, bytes: &[u8], row: usize, depth: usize) -> Result<()> {
        let keys = &self.shapes.at(row)?.derived;
        json::value_without_utf8_check(out, keys, bytes, self.zone, depth)
    }
}

/// The row of each value of a column.
enum Owners<'o> {
    /// The columns of a row have its index.
    Same,
    /// The elements of lists, from the element `first` on.
    Elements { first: usize, rows: &'o [u32] },
}

impl Owners<'_> {
    fn row(&self, index: usize) -> usize {
        match self {
            Owners::Same => index,
            Owners::Elements { first, rows } => rows.get(index - first).map_or(0, |&row| row as usize),
        }
    }
}

/// Prints one group in ranges of rows. Every piece ends in a comma.
struct GroupPrinter<'r, 'a> {
    group: &'r GroupReader<'a>,
    /// The key, if the group is a field; a field that is missing has no text.
    field: Option<&'r FieldReader<'a>>,
    key: Prefix,
    /// The key and an opening bracket.
    open: Prefix,
    depth: usize,
    /// Whether the pieces are the whole text of the group.
    is_leaf: bool,
    /// The text of leaves, and of values that are not shredded.
    pieces: Pieces,
    /// The fields of an object, or the element of a list.
    children: Vec<GroupPrinter<'r, 'a>>,
    /// The row of each element of the range.
    owners: Vec<u32>,
}

impl<'r, 'a> GroupPrinter<'r, 'a> {
    fn new(
        group: &'r GroupReader<'a>,
        slots: &Keys,
        field: Option<&'r FieldReader<'a>>,
        depth: usize,
    ) -> Self {
        let (bracket, children): (&[u8], _) = match &group.typed_value {
            Some((TypedColumn::Object(fields), _)) => {
                let child =
                    |field: &'r FieldReader<'a>| Self::new(&field.group, slots, Some(field), depth + 1);
                (b"{", fields.iter().map(child).collect())
            }
            Some((TypedColumn::List(_, element), _)) => {
                (b"[", vec![Self::new(element, slots, None, depth + 1)])
            }
            _ => (b"", Vec::new()),
        };
        let key = field.and_then(|field| slots.get(field.slot)).unwrap_or_default();
        let (key, open) = (Prefix::new(&[key]), Prefix::new(&[key, bracket]));
        GroupPrinter {
            group,
            field,
            key,
            open,
            depth,
            is_leaf: !matches!(group.typed_value, Some((TypedColumn::Object(_) | TypedColumn::List(..), _))),
            pieces: Pieces::default(),
            children,
            owners: Vec::new(),
        }
    }

    /// Print the leaves of the group in `range`, which `owners` assigns to rows.
    fn print(
        &mut self,
        range: Range<usize>,
        owners: &Owners<'_>,
        rows: &mut Rows<'a>,
        key_bytes: &mut usize,
    ) -> Result<()> {
        let repeated = self.open.len() * range.len();
        *key_bytes = key_bytes.checked_sub(repeated).ok_or_else(|| {
            Error::unsupported("the keys of a range of rows take too much memory to be printed together")
        })?;
        match &self.group.typed_value {
            Some((TypedColumn::Object(_), _)) => {
                for child in &mut self.children {
                    child.print(range.clone(), owners, rows, key_bytes)?;
                }
                self.print_values(range, owners, rows)
            }
            Some((TypedColumn::List(offsets, _), _)) => {
                let elements = |index: usize| offsets.range(index);
                let first = range.clone().next().map_or(0, |index| elements(index).start);
                self.owners.clear();
                for index in range.clone() {
                    let row = owners.row(index) as u32;
                    self.owners.extend(std::iter::repeat_n(row, elements(index).len()));
                }
                let owners_of_elements = Owners::Elements { first, rows: &self.owners };
                for child in &mut self.children {
                    let range = first..first + self.owners.len();
                    child.print(range, &owners_of_elements, rows, key_bytes)?;
                }
                self.print_values(range, owners, rows)
            }
            Some((TypedColumn::Leaf(column), _)) => self.print_leaf(column, range, owners, rows),
            None => self.print_values(range, owners, rows),
        }
    }

    fn print_leaf(
        &mut self,
        column: &Scalars<'a>,
        range: Range<usize>,
        owners: &Owners<'_>,
        rows: &mut Rows<'a>,
    ) -> Result<()> {
        let (group, key, depth, is_field) = (self.group, &self.key, self.depth, self.field.is_some());
        let zone = rows.zone;
        let printer = ScalarPrinter { column, prefix: key, zone };
        if let (None, None, Some((_, nulls))) = (group.value, group.nulls, &group.typed_value) {
            return printer.print(range, &mut self.pieces, |out, index| {
                let is_valid = is_valid(*nulls, index);
                if !is_valid && !is_field {
                    out.extend_from_slice(b"null,");
                }
                Ok(is_valid)
            });
        }
        printer.print(range, &mut self.pieces, |out, index| match group.parts(index) {
            (Some(_), None) => Ok(true),
            (Some(_), value) => group.check_no_value(value).map(|()| true),
            (None, Some(bytes)) => {
                key.append_to(out);
                rows.value(out, bytes, owners.row(index), depth)?;
                out.push(b',');
                Ok(false)
            }
            (None, None) => {
                if !is_field {
                    out.extend_from_slice(b"null,");
                }
                Ok(false)
            }
        })
    }

    /// Print the values without a `typed_value`.
    fn print_values(&mut self, range: Range<usize>, owners: &Owners<'_>, rows: &mut Rows<'a>) -> Result<()> {
        let (group, key, depth, is_field) = (self.group, &self.key, self.depth, self.field.is_some());
        if group.value.is_none() && !self.is_leaf {
            return Ok(());
        }
        self.pieces.print(range, 0, |out, index| {
            match group.parts(index) {
                (Some(_), _) => {}
                (None, Some(bytes)) => {
                    key.append_to(out);
                    rows.value(out, bytes, owners.row(index), depth)?;
                    out.push(b',');
                }
                (None, None) if is_field => {}
                (None, None) => out.extend_from_slice(b"null,"),
            }
            Ok(())
        })
    }

    /// Append the text at `index`, which belongs to `row`, and a comma; nothing for a missing field.
    fn append_to(&self, out: &mut Vec<u8>, index: usize, row: usize, rows: &mut Rows<'a>) -> Result<()> {
        let (column, nulls) = match &self.group.typed_value {
            Some((column @ (TypedColumn::Object(_) | TypedColumn::List(_, _)), nulls)) => (column, nulls),
            _ => {
                self.pieces.append_to(out, index);
                return Ok(());
            }
        };
        if !is_valid(self.group.nulls, index) || !is_valid(*nulls, index) {
            self.append_piece(out, index);
            return Ok(());
        }
        self.open.append_to(out);
        let value = self.group.value.and_then(|value| value.get(index));
        match column {
            TypedColumn::List(offsets, _) => {
                self.group.check_no_value(value)?;
                for element in offsets.range(index) {
                    for child in &self.children {
                        child.append_to(out, element, row, rows)?;
                    }
                }
                close(out, b"],");
            }
            _ => {
                match value {
                    None => self.append_fields(out, index, row, rows)?,
                    Some(_) => self.append_all_fields(out, value, index, row, rows)?,
                }
                close(out, b"},");
            }
        }
        Ok(())
    }

    #[inline]
    fn append_piece(&self, out: &mut Vec<u8>, index: usize) {
        if self.group.value.is_some() {
            self.pieces.append_to(out, index);
        } else if self.field.is_none() {
            out.extend_from_slice(b"null,");
        }
    }

    fn append_fields(&self, out: &mut Vec<u8>, index: usize, row: usize, rows: &mut Rows<'a>) -> Result<()> {
        for child in &self.children {
            if let (Some(_), Some(field)) = (child.group.nulls, child.field) {
                self.group.check_group(field, index)?;
            }
            match child.is_leaf {
                true => child.pieces.append_to(out, index),
                false => child.append_to(out, index, row, rows)?,
            }
        }
        Ok(())
    }

    /// Append the fields of a partially shredded object, in the order of their names.
    fn append_all_fields(
        &self,
        out: &mut Vec<u8>,
        value: Option<&'a [u8]>,
        index: usize,
        row: usize,
        rows: &mut Rows<'a>,
    ) -> Result<()> {
        let Some(mut rest) = self.group.unshredded_fields(value, &rows.shapes.at(row)?.names)? else {
            return self.append_fields(out, index, row, rows);
        };
        for child in &self.children {
            let Some(field) = child.field else { continue };
            let shape = rows.shapes.at(row)?;
            while rest.peek(&shape.names)?.is_some_and(|name| name < field.name) {
                append_field(out, rest.take()?, &shape.derived, rows.zone, self.depth)?;
            }
            if rest.peek(&shape.names)? == Some(field.name) {
                self.group.check_not_in_value(field)?;
                rest.skip();
            }
            self.group.check_group(field, index)?;
            child.append_to(out, index, row, rows)?;
        }
        let shape = rows.shapes.at(row)?;
        while rest.peek(&shape.names)?.is_some() {
            append_field(out, rest.take()?, &shape.derived, rows.zone, self.depth)?;
        }
        Ok(())
    }
}

fn append_field(
    out: &mut Vec<u8>,
    (id, bytes): (usize, &[u8]),
    keys: &Keys,
    zone: &Zone,
    depth: usize,
) -> Result<()> {
    out.extend_from_slice(keys.checked(id)?);
    json::value_without_utf8_check(out, keys, bytes, zone, depth + 1)?;
    out.push(b',');
    Ok(())
}

/// End an object or array, whose last piece ended in a comma.
#[inline]
fn close(out: &mut Vec<u8>, end: &[u8; 2]) {
    if let Some(b',') = out.last() {
        out.pop();
    }
    out.extend_from_slice(end);
}

struct JsonSink<'s> {
    out: &'s mut Vec<u8>,
    keys: &'s Keys,
    slots: &'s Keys,
    zone: &'s Zone,
}

impl JsonSink<'_> {
    /// A comma, unless the object or array has just begun: no value ends in an opening bracket.
    #[inline]
    fn separate(&mut self) {
        if !matches!(self.out.last(), Some(b'{' | b'[')) {
            self.out.push(b',');
        }
    }
}

impl Sink for JsonSink<'_> {
    fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    #[inline]
    fn scalar(&mut self, column: &Scalars<'_>, index: usize) -> Result<()> {
        json::scalar(self.out, &column.value(index)?, self.zone)
    }

    fn value(&mut self, bytes: &[u8], depth: usize) -> Result<()> {
        json::value_at(self.out, self.keys, bytes, self.zone, depth)
    }

    fn begin_object(&mut self) {
        self.out.push(b'{');
    }

    fn shredded_key(&mut self, field: &FieldReader<'_>) {
        self.separate();
        self.out.extend_from_slice(self.slots.get(field.slot).unwrap_or_default());
    }

    fn key(&mut self, id: usize) -> Result<()> {
        self.separate();
        self.out.extend_from_slice(self.keys.checked(id)?);
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        self.out.push(b'}');
        Ok(())
    }

    fn begin_array(&mut self) {
        self.out.push(b'[');
    }

    fn element(&mut self) {
        self.separate();
    }

    fn end_array(&mut self) -> Result<()> {
        self.out.push(b']');
        Ok(())
    }
}
