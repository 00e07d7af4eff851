//! Arrow columns of any type as Variants: structs and maps become objects, lists become arrays.

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, MapArray, StructArray};
use arrow_schema::{DataType, Field};

use super::build::{NULL, Rows, Tree, check_depth, names_of};
use super::column::{Scalars, Variants};
use super::{Value, malformed};
use crate::error::{Error, Result, each_row};

const EXTENSION_NAME: &str = "ARROW:extension:name";
const VARIANT_EXTENSION: &str = "arrow.parquet.variant";

/// A column and how its values become Variants.
enum Column<'a> {
    Nulls,
    Scalars(&'a dyn Array, Scalars<'a>),
    Variants(Variants<'a>),
    Struct(&'a StructArray, Vec<(&'a str, Column<'a>)>),
    List(&'a dyn Array, Box<Column<'a>>),
    Map(&'a MapArray, Scalars<'a>, Box<Column<'a>>),
}

/// Return rows of a column as Variants. Null stays null, and is Variant null within a value.
pub fn variants_of(array: &dyn Array, rows: Range<usize>) -> Result<StructArray> {
    let column = Column::of(array, false, 0)?;
    let mut out = Rows::new(rows.len());
    each_row(rows, |row| match (&column, array.is_null(row)) {
        // An array without a type has no validity of its own.
        (Column::Nulls, _) | (_, true) => out.push(None),
        (_, false) => out.push(Some(&column.tree(row, 0)?)),
    })?;
    out.finish()
}

impl<'a> Column<'a> {
    fn of(array: &'a dyn Array, is_variant: bool, depth: usize) -> Result<Self> {
        check_depth(depth)?;
        if is_variant {
            let group = array.as_struct_opt().ok_or_else(|| unsupported(array))?;
            return Ok(Column::Variants(Variants::new(group)?));
        }
        Ok(match array.data_type() {
            DataType::Null => Column::Nulls,
            DataType::Struct(fields) => {
                let group = array.as_struct();
                let parts = fields.iter().zip(group.columns());
                let named = parts.map(|(field, child)| {
                    Ok((
                        field.name().as_str(),
                        Column::of(child.as_ref(), is_variant_field(field), depth + 1)?,
                    ))
                });
                Column::Struct(group, named.collect::<Result<_>>()?)
            }
            DataType::List(field) => Self::list(array, array.as_list::<i32>().values(), field, depth)?,
            DataType::LargeList(field) => Self::list(array, array.as_list::<i64>().values(), field, depth)?,
            DataType::FixedSizeList(field, _) => {
                Self::list(array, array.as_fixed_size_list().values(), field, depth)?
            }
            DataType::Map(entries, _) => {
                let map = array.as_map();
                let DataType::Struct(fields) = entries.data_type() else { return Err(unsupported(array)) };
                let keys = Scalars::new(map.keys().as_ref())?;
                if !matches!(keys, Scalars::String(_) | Scalars::LargeString(_) | Scalars::StringView(_)) {
                    return Err(Error::unsupported(format!(
                        "cannot convert a map to a Variant because its keys are {}, not strings",
                        map.keys().data_type()
                    )));
                }
                let is_variant = fields.get(1).is_some_and(|field| is_variant_field(field));
                Column::Map(map, keys, Box::new(Column::of(map.values().as_ref(), is_variant, depth + 1)?))
            }
            _ => Column::Scalars(array, Scalars::new(array)?),
        })
    }

    fn list(array: &'a dyn Array, values: &'a dyn Array, field: &Field, depth: usize) -> Result<Self> {
        Ok(Column::List(array, Box::new(Column::of(values, is_variant_field(field), depth + 1)?)))
    }

    fn tree(&self, row: usize, depth: usize) -> Result<Tree<'a>> {
        check_depth(depth)?;
        Ok(match self {
            Column::Nulls => NULL,
            Column::Scalars(array, scalars) if array.is_valid(row) => Tree::Scalar(scalars.value(row)?),
            Column::Variants(variants) => match variants.get(row)? {
                Some((metadata, value)) => Tree::decode(&names_of(metadata)?, value, depth)?,
                None => NULL,
            },
            Column::Struct(group, parts) if group.is_valid(row) => {
                let field = |(name, part): &(&'a str, Column<'a>)| {
                    Ok((Cow::Borrowed(*name), part.tree(row, depth + 1)?))
                };
                Tree::object(parts.iter().map(field).collect::<Result<_>>()?)?
            }
            Column::List(array, element) if array.is_valid(row) => {
                let elements = elements(*array, row).map(|index| element.tree(index, depth + 1));
                Tree::Array(elements.collect::<Result<_>>()?)
            }
            Column::Map(map, keys, value) if map.is_valid(row) => {
                let offsets = map.value_offsets();
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                let field = |index: usize| match keys.value(index)? {
                    Value::String(name) => Ok((Cow::Borrowed(name), value.tree(index, depth + 1)?)),
                    _ => Err(malformed("a key is not a string")),
                };
                Tree::object(entries.map(field).collect::<Result<_>>()?)?
            }
            _ => NULL,
        })
    }
}

/// Return the positions of the elements of a list.
fn elements(array: &dyn Array, row: usize) -> Range<usize> {
    match array.data_type() {
        DataType::List(_) => {
            let offsets = array.as_list::<i32>().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
        DataType::LargeList(_) => {
            let offsets = array.as_list::<i64>().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
        _ => {
            let list = array.as_fixed_size_list();
            let start = list.value_offset(row) as usize;
            start..start + list.value_length() as usize
        }
    }
}

fn is_variant_field(field: &Field) -> bool {
    field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == VARIANT_EXTENSION)
}

fn unsupported(array: &dyn Array) -> Error {
    Error::unsupported(format!("cannot convert {} to a Variant", array.data_type()))
}
