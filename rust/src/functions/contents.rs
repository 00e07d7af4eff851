//! What Variants contain: the names of objects, the lengths of arrays, and whether bytes are Variants at all.

use arrow_array::builder::{BooleanBuilder, Int32Builder, ListBuilder, StringBuilder};
use arrow_array::{BooleanArray, Int32Array, ListArray, StructArray};

use super::in_ranges;
use crate::error::{ErrorKind, Result, each_row};
use crate::value::column::Variants;
use crate::value::{Metadata, Value, validate};

/// Return the number of elements of each array, null for SQL NULL and every other value.
pub fn array_lengths(variants: &StructArray) -> Result<Int32Array> {
    let variants = Variants::new(variants)?;
    let mut out = Int32Builder::with_capacity(variants.len());
    each_row(0..variants.len(), |row| {
        let value = variants.get(row)?.map(|(_, value)| Value::decode(value)).transpose()?;
        out.append_option(match value {
            Some(Value::Array(array)) => Some(array.len() as i32),
            _ => None,
        });
        Ok(())
    })?;
    Ok(out.finish())
}

/// Return the names of the fields of each object in ascending order, null for SQL NULL and every other value.
pub fn object_keys(variants: &StructArray) -> Result<ListArray> {
    let variants = Variants::new(variants)?;
    let mut out = ListBuilder::new(StringBuilder::new());
    each_row(0..variants.len(), |row| {
        let pushed = push_keys(&variants, row, out.values())?;
        out.append(pushed);
        Ok(())
    })?;
    Ok(out.finish())
}

fn push_keys(variants: &Variants<'_>, row: usize, out: &mut StringBuilder) -> Result<bool> {
    let Some((metadata, value)) = variants.get(row)? else { return Ok(false) };
    let Value::Object(object) = Value::decode(value)? else { return Ok(false) };
    let metadata = Metadata::parse(metadata)?;
    for field in object.fields() {
        out.append_value(metadata.get(field?.0)?);
    }
    Ok(true)
}

/// Return whether all bytes of each row are a Variant, null for SQL NULL.
pub fn are_valid(variants: &StructArray) -> Result<BooleanArray> {
    let variants = Variants::new(variants)?;
    let parts = in_ranges(variants.len(), |rows| {
        let mut out = BooleanBuilder::with_capacity(rows.len());
        for row in rows {
            out.append_option(is_valid(&variants, row)?);
        }
        Ok(out.finish())
    })?;
    Ok(parts.iter().flatten().collect())
}

fn is_valid(variants: &Variants<'_>, row: usize) -> Result<Option<bool>> {
    let Some((metadata, value)) = variants.get(row)? else { return Ok(None) };
    match Metadata::parse(metadata).and_then(|metadata| validate(&metadata, value)) {
        Ok(()) => Ok(Some(true)),
        Err(error) if error.kind() == ErrorKind::Variant => Ok(Some(false)),
        Err(error) => Err(error),
    }
}
