//! A canonical text form of Variants: equal for equal values, whatever their bytes.

use std::fmt::Write;

use _native::error::Result;
use _native::value::{Decimal, Metadata, Value};
use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};

/// Return the canonical text of each row of `variants` (binary `metadata` and `value`), or `None` for SQL NULL.
pub fn rows(variants: &StructArray) -> Result<Vec<Option<String>>> {
    let [metadata, values] = ["metadata", "value"].map(|name| variants.column_by_name(name).unwrap());
    let (metadata, values) = (metadata.as_binary::<i32>(), values.as_binary::<i32>());
    (0..variants.len())
        .map(|row| match variants.is_valid(row) {
            true => row_text(metadata.value(row), values.value(row)).map(Some),
            false => Ok(None),
        })
        .collect()
}

fn row_text(metadata: &[u8], value: &[u8]) -> Result<String> {
    let mut text = String::new();
    let names: Vec<&str> = Metadata::parse(metadata)?.names().collect();
    push(&mut text, &names, value)?;
    Ok(text)
}

/// Append the value: integers and decimals by value, fields of objects sorted by name.
fn push(text: &mut String, names: &[&str], bytes: &[u8]) -> Result<()> {
    let exact = |text: &mut String, unscaled: i128, scale: u8| push_exact(text, Decimal { unscaled, scale });
    match Value::decode(bytes)? {
        Value::Int8(v) => exact(text, v.into(), 0),
        Value::Int16(v) => exact(text, v.into(), 0),
        Value::Int32(v) => exact(text, v.into(), 0),
        Value::Int64(v) => exact(text, v.into(), 0),
        Value::Decimal(v) => push_exact(text, v),
        Value::Float(v) => push_text(text, format_args!("float {:x} ", v.to_bits())),
        Value::Double(v) => push_text(text, format_args!("double {:x} ", v.to_bits())),
        Value::Object(object) => {
            let mut fields = object.fields().collect::<Result<Vec<_>>>()?;
            fields.sort_by_key(|(id, _)| names.get(*id));
            text.push('{');
            for (id, value) in fields {
                push_text(text, format_args!("{:?}: ", names.get(id)));
                push(text, names, value)?;
            }
            text.push('}');
        }
        Value::Array(array) => {
            text.push('[');
            array.elements().try_for_each(|element| push(text, names, element?))?;
            text.push(']');
        }
        // Values of an unknown type are compared by their bytes.
        Value::Unknown(_) => push_text(text, format_args!("unknown {bytes:?} ")),
        scalar => push_text(text, format_args!("{scalar:?} ")),
    }
    Ok(())
}

fn push_exact(text: &mut String, Decimal { mut unscaled, mut scale }: Decimal) {
    while scale > 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    push_text(text, format_args!("{unscaled}e-{scale} "));
}

fn push_text(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).unwrap_or_default();
}
