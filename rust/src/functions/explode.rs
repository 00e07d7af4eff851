//! `variant_explode`: a row for each field of an object and each element of an array.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Schema};

use super::in_ranges;
use crate::error::{Result, each_row};
use crate::value::build::Rows;
use crate::value::cast::variant_fields;
use crate::value::column::Variants;
use crate::value::metadata::EMPTY;
use crate::value::{Metadata, Value};

/// Builds the exploded rows of a range.
struct Exploded {
    rows: Int64Builder,
    positions: Int32Builder,
    keys: StringBuilder,
    values: Rows,
}

impl Exploded {
    fn push(&mut self, row: usize, position: usize, key: Option<&str>, value: (&[u8], &[u8])) -> Result<()> {
        let (metadata, value) = value;
        self.rows.append_value(row as i64);
        self.positions.append_value(position as i32);
        self.keys.append_option(key);
        // A scalar has no names.
        let is_scalar = value.first().is_some_and(|header| header & 0b11 < 2);
        self.values.push_bytes(Some((if is_scalar { EMPTY } else { metadata }, value)))
    }

    fn push_outer(&mut self, row: usize) -> Result<()> {
        self.rows.append_value(row as i64);
        self.positions.append_null();
        self.keys.append_null();
        self.values.push_bytes(None)
    }

    /// Append the fields or elements of the Variant in a row, and return whether there are any.
    fn push_all(&mut self, row: usize, bytes: &[u8], value: &[u8]) -> Result<bool> {
        let metadata = Metadata::parse(bytes)?;
        match Value::decode(value)? {
            Value::Object(object) => {
                for (position, field) in object.fields().enumerate() {
                    let (id, value) = field?;
                    self.push(row, position, Some(metadata.get(id)?), (bytes, value))?;
                }
                Ok(!object.is_empty())
            }
            Value::Array(array) => {
                for (position, value) in array.elements().enumerate() {
                    self.push(row, position, None, (bytes, value?))?;
                }
                Ok(!array.is_empty())
            }
            _ => Ok(false),
        }
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let fields = vec![
            Field::new("row", DataType::Int64, false),
            Field::new("pos", DataType::Int32, true),
            Field::new("key", DataType::Utf8, true),
            Field::new("value", DataType::Struct(variant_fields()), true),
        ];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.rows.finish()),
            Arc::new(self.positions.finish()),
            Arc::new(self.keys.finish()),
            Arc::new(self.values.finish()?),
        ];
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

/// Return `row`, `pos`, `key` and `value` of each field and element, in the order of the rows.
///
/// Other Variants and SQL NULL have no rows; if `outer`, they and empty containers have one of nulls.
pub fn explode(variants: &StructArray, outer: bool) -> Result<Vec<RecordBatch>> {
    let variants = Variants::new(variants)?;
    in_ranges(variants.len(), |rows| {
        let mut out = Exploded {
            rows: Int64Builder::new(),
            positions: Int32Builder::new(),
            keys: StringBuilder::new(),
            values: Rows::new(rows.len()),
        };
        each_row(rows, |row| {
            let pushed = match variants.get(row)? {
                Some((metadata, value)) => out.push_all(row, metadata, value)?,
                None => false,
            };
            if outer && !pushed { out.push_outer(row) } else { Ok(()) }
        })?;
        out.finish()
    })
}
