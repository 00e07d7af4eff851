//! Paths with wildcards: the values that match, as an array (RFC 9535, section 2.3.2).

use arrow_array::StructArray;

use super::in_ranges;
use crate::error::{Result, each_row};
use crate::value::build::Rows;
use crate::value::column::Variants;
use crate::value::modify::array_of;
use crate::value::path::Step;
use crate::value::{Metadata, Value};

/// Append the values that match `path`, in order; a step `None` matches every element and every field.
fn collect<'v>(
    metadata: &Metadata<'_>,
    value: &'v [u8],
    path: &[Option<Step>],
    found: &mut Vec<&'v [u8]>,
) -> Result<()> {
    let Some((step, rest)) = path.split_first() else {
        found.push(value);
        return Ok(());
    };
    match (step, Value::decode(value)?) {
        (Some(Step::Field(name)), Value::Object(object)) => {
            let field = object.get(metadata, name)?;
            field.map_or(Ok(()), |value| collect(metadata, value, rest, found))
        }
        (Some(Step::Index(index)), Value::Array(array)) if *index < array.len() => {
            collect(metadata, array.element(*index)?, rest, found)
        }
        (None, Value::Object(object)) => {
            object.fields().try_for_each(|field| collect(metadata, field?.1, rest, found))
        }
        (None, Value::Array(array)) => {
            array.elements().try_for_each(|element| collect(metadata, element?, rest, found))
        }
        _ => Ok(()),
    }
}

/// Return an array of the values at a path with wildcards for each Variant; SQL NULL stays.
pub fn matches(variants: &StructArray, path: &[Option<Step>]) -> Result<Vec<StructArray>> {
    let variants = Variants::new(variants)?;
    in_ranges(variants.len(), |rows| {
        let mut out = Rows::new(rows.len());
        each_row(rows, |row| {
            let Some((metadata, value)) = variants.get(row)? else { return out.push_bytes(None) };
            let mut found = Vec::new();
            collect(&Metadata::parse(metadata)?, value, path, &mut found)?;
            out.push_bytes(Some((metadata, &array_of(&found))))
        })?;
        out.finish()
    })
}
