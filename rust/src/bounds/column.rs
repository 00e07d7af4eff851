//! The bounds of the columns of a file for Delta's statistics: ordinary columns, Variants, and structs of both.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, LargeStringArray, StringArray, StringViewArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, TimeUnit};

use super::extremes::{Extremes, Scalar};
use super::stored::{StoredLeaves, stored_column};
use super::{Added, VariantBounds};
use crate::error::{Error, Result};
use crate::shred::layout::Layout;
use crate::shred::schema::{EXTENSION_NAME, VARIANT_EXTENSION};

/// The null counts and bounds of one column and, where it is a struct, of the fields within it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBounds {
    name: String,
    pub(super) data_type: DataType,
    nulls: u64,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Leaf(Extremes),
    Variant(Box<VariantBounds>),
    Struct(Vec<ColumnBounds>),
}

/// The null count and bounds of one leaf column; a Variant is a leaf.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnReport<'a> {
    /// The name of the column, and of the fields down to the leaf.
    pub path: Vec<String>,
    /// The rows in which the leaf, or a struct around it, is null.
    pub nulls: u64,
    pub bounds: LeafBounds<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LeafBounds<'a> {
    /// The least and the greatest value, each as an array of one row and of the leaf's type. `None` without values,
    /// for types without an order, and after a NaN. Strings are not truncated.
    Ordinary(Option<(ArrayRef, ArrayRef)>),
    Variant(&'a VariantBounds),
}

impl ColumnBounds {
    /// Fields with the extension name of Variants are shredded by their type. Lists and maps count only their
    /// nulls, whatever they contain.
    pub fn new(field: &Field) -> Result<Self> {
        let is_variant = field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == VARIANT_EXTENSION);
        let content = match field.data_type() {
            DataType::Struct(fields) if is_variant => {
                Content::Variant(Box::new(VariantBounds::new(&Layout::parse(fields)?.schema())))
            }
            DataType::Struct(fields) => {
                Content::Struct(fields.iter().map(|field| ColumnBounds::new(field)).collect::<Result<_>>()?)
            }
            data_type => Content::Leaf(Extremes::new(data_type)),
        };
        let (name, data_type) = (field.name().clone(), field.data_type().clone());
        Ok(ColumnBounds { name, data_type, nulls: 0, content })
    }

    /// Return the same for columns that another writer shredded: see [`VariantBounds::distrusting`].
    pub fn distrusting(mut self) -> Self {
        self.content = match self.content {
            Content::Leaf(extremes) => Content::Leaf(extremes),
            Content::Variant(variant) => Content::Variant(Box::new(variant.distrusting())),
            Content::Struct(fields) => {
                Content::Struct(fields.into_iter().map(ColumnBounds::distrusting).collect())
            }
        };
        self
    }

    /// The bounds of a column that is a Variant itself.
    pub fn as_variant(&self) -> Option<&VariantBounds> {
        match &self.content {
            Content::Variant(variant) => Some(variant),
            _ => None,
        }
    }

    /// Add a batch of the column.
    pub fn update(&mut self, array: &dyn Array) -> Result<()> {
        self.update_valid(array, None, Added::All)
    }

    /// Add a batch of the column except for its extremes: see [`ColumnBounds::widen`].
    pub fn count(&mut self, array: &dyn Array) -> Result<()> {
        self.update_valid(array, None, Added::Counts)
    }

    fn update_valid(&mut self, array: &dyn Array, valid: Option<&NullBuffer>, added: Added) -> Result<()> {
        let valid = NullBuffer::union(valid, array.logical_nulls().as_ref());
        let valid = valid.as_ref();
        self.nulls += valid.map_or(0, NullBuffer::null_count) as u64;
        match &mut self.content {
            Content::Leaf(extremes) if added == Added::All => extremes.update(array, valid),
            Content::Leaf(_) => Ok(()),
            Content::Variant(variant) => {
                let group = array.as_struct_opt().ok_or_else(|| unexpected(&self.data_type, array))?;
                variant.update_valid(group, valid, added)
            }
            Content::Struct(fields) => {
                let columns = array.as_struct_opt().filter(|array| array.num_columns() == fields.len());
                let columns = columns.ok_or_else(|| unexpected(&self.data_type, array))?.columns();
                fields
                    .iter_mut()
                    .zip(columns)
                    .try_for_each(|(field, column)| field.update_valid(column, valid, added))
            }
        }
    }

    /// Add the rows of a row group without decoding all of the column, which is at `first_leaf`. Return `false`, and add
    /// nothing, for structs, lists and maps.
    pub fn add_stored(&mut self, first_leaf: usize, leaves: &impl StoredLeaves) -> Result<bool> {
        match (&mut self.content, &self.data_type) {
            (Content::Variant(variant), DataType::Struct(fields)) => {
                let nulls = variant.sql_nulls();
                variant.add_stored(fields, first_leaf, leaves)?;
                self.nulls += variant.sql_nulls() - nulls;
                Ok(true)
            }
            (Content::Leaf(extremes), data_type) if !data_type.is_nested() => {
                let (nulls, stored) = stored_column(leaves, first_leaf, extremes)?;
                self.nulls += nulls;
                extremes.merge(&stored);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Merge the bounds of other rows of the same column.
    pub fn merge(&mut self, other: &Self) {
        self.nulls += other.nulls;
        match (&mut self.content, &other.content) {
            (Content::Leaf(extremes), Content::Leaf(other)) => extremes.merge(other),
            (Content::Variant(variant), Content::Variant(other)) => variant.merge(other),
            (Content::Struct(fields), Content::Struct(others)) => {
                fields.iter_mut().zip(others).for_each(|(field, other)| field.merge(other))
            }
            _ => {}
        }
    }

    /// A report on each leaf, in the order of the schema.
    pub fn leaves(&self) -> Result<Vec<ColumnReport<'_>>> {
        let mut reports = Vec::new();
        self.report(&mut Vec::new(), &mut reports)?;
        Ok(reports)
    }

    fn report<'a>(&'a self, path: &mut Vec<String>, reports: &mut Vec<ColumnReport<'a>>) -> Result<()> {
        path.push(self.name.clone());
        let bounds = match &self.content {
            Content::Struct(fields) => {
                fields.iter().try_for_each(|field| field.report(path, reports))?;
                path.pop();
                return Ok(());
            }
            Content::Variant(variant) => LeafBounds::Variant(variant),
            Content::Leaf(extremes) => LeafBounds::Ordinary(match extremes.bounds() {
                Some((min, max)) => Some((self.one_row(min)?, self.one_row(max)?)),
                None => None,
            }),
        };
        reports.push(ColumnReport { path: path.clone(), nulls: self.nulls, bounds });
        path.pop();
        Ok(())
    }

    fn one_row(&self, bound: Scalar) -> Result<ArrayRef> {
        Ok(match (bound, &self.data_type) {
            (Scalar::Integer(v), data_type) => integer(v, data_type)?,
            (Scalar::Decimal(v), &DataType::Decimal128(precision, scale)) => {
                Arc::new(Decimal128Array::from(vec![v]).with_precision_and_scale(precision, scale)?)
            }
            (Scalar::Float(v), _) => Arc::new(Float32Array::from(vec![v])),
            (Scalar::Double(v), _) => Arc::new(Float64Array::from(vec![v])),
            (Scalar::String(v), DataType::LargeUtf8) => Arc::new(LargeStringArray::from(vec![v])),
            (Scalar::String(v), DataType::Utf8View) => Arc::new(StringViewArray::from(vec![v])),
            (Scalar::String(v), _) => Arc::new(StringArray::from(vec![v])),
            (Scalar::Decimal(_), other) => {
                return Err(Error::unsupported(format!("expected a decimal, got {other}")));
            }
        })
    }
}

fn integer(value: i64, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Int8 => Arc::new(Int8Array::from(vec![value as i8])),
        DataType::Int16 => Arc::new(Int16Array::from(vec![value as i16])),
        DataType::Int32 => Arc::new(Int32Array::from(vec![value as i32])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![value])),
        DataType::Date32 => Arc::new(Date32Array::from(vec![value as i32])),
        DataType::Timestamp(unit, zone) => {
            let zone = zone.clone();
            match unit {
                TimeUnit::Second => Arc::new(TimestampSecondArray::from(vec![value]).with_timezone_opt(zone)),
                TimeUnit::Millisecond => {
                    Arc::new(TimestampMillisecondArray::from(vec![value]).with_timezone_opt(zone))
                }
                TimeUnit::Microsecond => {
                    Arc::new(TimestampMicrosecondArray::from(vec![value]).with_timezone_opt(zone))
                }
                TimeUnit::Nanosecond => {
                    Arc::new(TimestampNanosecondArray::from(vec![value]).with_timezone_opt(zone))
                }
            }
        }
        other => {
            return Err(Error::unsupported(format!("expected an integer, date or timestamp, got {other}")));
        }
    })
}

fn unexpected(data_type: &DataType, array: &dyn Array) -> Error {
    Error::unsupported(format!("expected a column of {data_type}, got {}", array.data_type()))
}
