//! Arrow columns of scalars and of bytes, read value by value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, Int32Array,
    LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, StringViewArray, StructArray,
};
use arrow_schema::{DataType, FieldRef, TimeUnit};

use super::{Decimal, MAX_DECIMAL_DIGITS, Value, malformed};
use crate::error::{Error, Result};

/// The number of Parquet columns that a type takes.
pub fn leaf_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| leaf_count(field.data_type())).sum(),
        DataType::List(element) | DataType::LargeList(element) | DataType::Map(element, _) => {
            leaf_count(element.data_type())
        }
        _ => 1,
    }
}

/// `field` with the type of its column.
pub fn with_type(field: &FieldRef, column: &ArrayRef) -> FieldRef {
    match field.data_type() == column.data_type() {
        true => field.clone(),
        false => Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone())),
    }
}

/// A column of bytes.
#[derive(Debug, Clone, Copy)]
pub enum Bytes<'a> {
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
    View(&'a BinaryViewArray),
}

impl<'a> Bytes<'a> {
    pub fn new(array: &'a dyn Array) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Binary => Self::Small(array.as_binary()),
            DataType::LargeBinary => Self::Large(array.as_binary()),
            DataType::BinaryView => Self::View(array.as_binary_view()),
            other => return Err(Error::unsupported(format!("expected a binary column, got {other}"))),
        })
    }

    /// The bytes at `index`, `None` where they are null.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        match self {
            Self::Small(array) => array.is_valid(index).then(|| array.value(index)),
            Self::Large(array) => array.is_valid(index).then(|| array.value(index)),
            Self::View(array) => array.is_valid(index).then(|| array.value(index)),
        }
    }
}

/// A column of Variants that are not shredded: a struct of `metadata` and `value`.
#[derive(Debug, Clone, Copy)]
pub struct Variants<'a> {
    group: &'a StructArray,
    metadata: Bytes<'a>,
    values: Bytes<'a>,
}

impl<'a> Variants<'a> {
    pub fn new(group: &'a StructArray) -> Result<Self> {
        let part = |name: &str| match group.column_by_name(name) {
            Some(column) => Bytes::new(column),
            None => Err(Error::unsupported(format!("an array of Variants needs a column {name:?}"))),
        };
        Ok(Variants { group, metadata: part("metadata")?, values: part("value")? })
    }

    pub fn len(&self) -> usize {
        self.group.len()
    }

    pub fn is_empty(&self) -> bool {
        self.group.is_empty()
    }

    /// The metadata and the value of a row, `None` for SQL NULL.
    pub fn get(&self, row: usize) -> Result<Option<(&'a [u8], &'a [u8])>> {
        if self.group.is_null(row) {
            return Ok(None);
        }
        match (self.metadata.get(row), self.values.get(row)) {
            (Some(metadata), Some(value)) => Ok(Some((metadata, value))),
            _ => Err(malformed("metadata or value is null").at_row(row)),
        }
    }
}

/// A column of one scalar type of the type table in VariantShredding.md.
#[derive(Debug, Clone, Copy)]
pub enum Scalars<'a> {
    Boolean(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    Float(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Decimal32(&'a PrimitiveArray<Decimal32Type>, DecimalType),
    Decimal64(&'a PrimitiveArray<Decimal64Type>, DecimalType),
    Decimal128(&'a PrimitiveArray<Decimal128Type>, DecimalType),
    Date(&'a PrimitiveArray<Date32Type>),
    Time(&'a PrimitiveArray<Time64MicrosecondType>),
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>),
    TimestampNtz(&'a PrimitiveArray<TimestampMicrosecondType>),
    TimestampNanos(&'a PrimitiveArray<TimestampNanosecondType>),
    TimestampNtzNanos(&'a PrimitiveArray<TimestampNanosecondType>),
    Binary(Bytes<'a>),
    String(&'a StringArray),
    /// Strings by their positions in a dictionary.
    Dictionary(&'a Int32Array, &'a StringArray),
    LargeString(&'a LargeStringArray),
    StringView(&'a StringViewArray),
    Uuid(&'a FixedSizeBinaryArray),
}

/// Whether a type is that of strings in a dictionary, as files are read.
pub fn is_text_dictionary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8)
}

/// The precision and the scale of a column of decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecimalType {
    pub precision: u8,
    pub scale: u8,
}

impl DecimalType {
    fn new(precision: u8, scale: i8) -> Result<Self> {
        match u8::try_from(scale) {
            Ok(scale) => Ok(DecimalType { precision, scale }),
            Err(_) => Err(Error::unsupported(format!("decimal({precision}, {scale}) has a negative scale"))),
        }
    }

    fn value<'a>(self, unscaled: i128) -> Result<Value<'a>> {
        self.decimal(unscaled).map(Value::Decimal)
    }

    /// `unscaled` as a decimal, checked to have no more digits than the column's type.
    #[inline]
    pub fn decimal(self, unscaled: i128) -> Result<Decimal> {
        if unscaled.unsigned_abs() >= power_of_ten(self.precision) {
            return Err(malformed(&format!(
                "{unscaled} has more digits than its column's type decimal({}, {})",
                self.precision, self.scale
            )));
        }
        Ok(Decimal { unscaled, scale: self.scale })
    }
}

/// 10 to the power of a precision.
fn power_of_ten(precision: u8) -> u128 {
    const POWERS: [u128; MAX_DECIMAL_DIGITS as usize + 1] = {
        let mut powers = [1; MAX_DECIMAL_DIGITS as usize + 1];
        let mut index = 1;
        while index < powers.len() {
            powers[index] = powers[index - 1] * 10;
            index += 1;
        }
        powers
    };
    POWERS.get(usize::from(precision)).copied().unwrap_or(u128::MAX)
}

impl<'a> Scalars<'a> {
    pub fn new(array: &'a dyn Array) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Boolean => Self::Boolean(array.as_boolean()),
            DataType::Int8 => Self::Int8(array.as_primitive()),
            DataType::Int16 => Self::Int16(array.as_primitive()),
            DataType::Int32 => Self::Int32(array.as_primitive()),
            DataType::Int64 => Self::Int64(array.as_primitive()),
            DataType::Float32 => Self::Float(array.as_primitive()),
            DataType::Float64 => Self::Double(array.as_primitive()),
            DataType::Decimal32(p, s) => Self::Decimal32(array.as_primitive(), DecimalType::new(*p, *s)?),
            DataType::Decimal64(p, s) => Self::Decimal64(array.as_primitive(), DecimalType::new(*p, *s)?),
            DataType::Decimal128(p, s) => Self::Decimal128(array.as_primitive(), DecimalType::new(*p, *s)?),
            DataType::Date32 => Self::Date(array.as_primitive()),
            DataType::Time64(TimeUnit::Microsecond) => Self::Time(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Self::Timestamp(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => Self::TimestampNtz(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => Self::TimestampNanos(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Nanosecond, None) => Self::TimestampNtzNanos(array.as_primitive()),
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Self::Binary(Bytes::new(array)?)
            }
            DataType::Utf8 => Self::String(array.as_string()),
            DataType::LargeUtf8 => Self::LargeString(array.as_string()),
            DataType::Utf8View => Self::StringView(array.as_string_view()),
            DataType::FixedSizeBinary(16) => Self::Uuid(array.as_fixed_size_binary()),
            data_type if is_text_dictionary(data_type) => {
                let dictionary = array.as_dictionary::<Int32Type>();
                if dictionary.values().null_count() > 0 {
                    return Err(Error::unsupported("a dictionary of strings has a null among its values"));
                }
                Self::Dictionary(dictionary.keys(), dictionary.values().as_string())
            }
            other => {
                return Err(Error::unsupported(format!(
                    "expected the Arrow type of a Variant scalar, got {other}"
                )));
            }
        })
    }

    /// The value at `index`, which must not be null.
    #[inline]
    pub fn value(&self, index: usize) -> Result<Value<'a>> {
        Ok(match self {
            Self::Boolean(array) => Value::Boolean(array.value(index)),
            Self::Int8(array) => Value::Int8(array.value(index)),
            Self::Int16(array) => Value::Int16(array.value(index)),
            Self::Int32(array) => Value::Int32(array.value(index)),
            Self::Int64(array) => Value::Int64(array.value(index)),
            Self::Float(array) => Value::Float(array.value(index)),
            Self::Double(array) => Value::Double(array.value(index)),
            Self::Decimal32(array, of) => of.value(array.value(index).into())?,
            Self::Decimal64(array, of) => of.value(array.value(index).into())?,
            Self::Decimal128(array, of) => of.value(array.value(index))?,
            Self::Date(array) => Value::Date(array.value(index)),
            Self::Time(array) => super::time(array.value(index))?,
            Self::Timestamp(array) => Value::Timestamp(array.value(index)),
            Self::TimestampNtz(array) => Value::TimestampNtz(array.value(index)),
            Self::TimestampNanos(array) => Value::TimestampNanos(array.value(index)),
            Self::TimestampNtzNanos(array) => Value::TimestampNtzNanos(array.value(index)),
            Self::Binary(array) => Value::Binary(array.get(index).unwrap_or_default()),
            Self::String(array) => Value::String(array.value(index)),
            Self::Dictionary(keys, values) => Value::String(values.value(keys.value(index) as usize)),
            Self::LargeString(array) => Value::String(array.value(index)),
            Self::StringView(array) => Value::String(array.value(index)),
            Self::Uuid(array) => Value::Uuid(super::fixed(array.value(index))?),
        })
    }

    /// The precision of a column of decimals.
    pub fn precision(&self) -> Option<u8> {
        match self {
            Self::Decimal32(_, of) | Self::Decimal64(_, of) | Self::Decimal128(_, of) => Some(of.precision),
            _ => None,
        }
    }
}
