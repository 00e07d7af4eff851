//! Find values of shredded paths in the `value` of a group around them, which VariantShredding.md forbids. Readers
//! still find such values, so the columns of the path do not bound it.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;

use super::{Group, TypedValue, unexpected};
use crate::error::{Result, each_row};
use crate::shred::shapes::Shapes;
use crate::value::column::Bytes;
use crate::value::{Object, Value};

impl Group {
    /// Mark the paths that have values in `value` in the rows of a whole Variant column that are `valid`.
    pub(super) fn find_hidden(&mut self, group: &StructArray, valid: Option<&NullBuffer>) -> Result<()> {
        match group.column_by_name("metadata") {
            Some(metadata) => self.find_hidden_below(group, metadata, valid),
            None => Err(unexpected(group)),
        }
    }

    fn find_hidden_below(
        &mut self,
        group: &StructArray,
        metadata: &ArrayRef,
        valid: Option<&NullBuffer>,
    ) -> Result<()> {
        let TypedValue::Object(fields) = &mut self.typed_value else { return Ok(()) };
        let object = group.column_by_name("typed_value").and_then(|typed| typed.as_struct_opt());
        let object = object.ok_or_else(|| unexpected(group))?;
        if let Some(value) = group.column_by_name("value").filter(|value| value.null_count() < value.len()) {
            hide_fields(fields, object, value, metadata, valid)?;
        }
        let valid = NullBuffer::union(valid, object.nulls());
        fields.iter_mut().try_for_each(|(name, field)| {
            // A projection has the shredded objects alone.
            let Some(column) = object.column_by_name(name) else { return Ok(()) };
            let column = column.as_struct_opt().ok_or_else(|| unexpected(object))?;
            let valid = NullBuffer::union(valid.as_ref(), column.nulls());
            field.find_hidden_below(column, metadata, valid.as_ref())
        })
    }

    fn hide(&mut self) {
        self.is_hidden = true;
        if let TypedValue::Object(fields) = &mut self.typed_value {
            fields.iter_mut().for_each(|(_, field)| field.hide());
        }
    }
}

/// Hide all `fields` where `value` is an object without a `typed_value`, and otherwise those that are in both.
fn hide_fields(
    fields: &mut [(String, Group)],
    object: &StructArray,
    value: &ArrayRef,
    metadata: &ArrayRef,
    valid: Option<&NullBuffer>,
) -> Result<()> {
    let values = Bytes::new(value)?;
    let mut shapes = Shapes::new(metadata, |_| ())?;
    each_row((0..object.len()).filter(|&row| valid.is_none_or(|valid| valid.is_valid(row))), |row| {
        let Some(bytes) = values.get(row) else { return Ok(()) };
        let Value::Object(leftover) = Value::decode(bytes)? else { return Ok(()) };
        if object.is_null(row) {
            fields.iter_mut().for_each(|(_, field)| field.hide());
            return Ok(());
        }
        hide_named(fields, &leftover, &shapes.at(row)?.names)
    })
}

fn hide_named(fields: &mut [(String, Group)], leftover: &Object<'_>, names: &[&str]) -> Result<()> {
    for index in 0..leftover.len() {
        let name = leftover.field_name(index, names)?;
        if let Some((_, field)) = fields.iter_mut().find(|(field, _)| field == name) {
            field.hide();
        }
    }
    Ok(())
}
