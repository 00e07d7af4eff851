//! The shredding schema: which paths of a Variant have a `typed_value`, and of which type.
//!
//! Its Arrow form is the type of the values alone, without the `value` companions: `struct<a: int64, b:
//! list<string>>`. The null type stands for a field that has only `value`.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit};

use crate::error::{Error, Result};
use crate::value::MAX_DECIMAL_DIGITS;

/// The `typed_value` next to one `value`.
#[derive(Debug, Clone, PartialEq)]
pub enum ShreddingSchema {
    /// There is no `typed_value`.
    Untyped,
    Leaf(LeafType),
    /// Fields by name, in the order of their UTF-8 bytes so that files are deterministic.
    Object(Vec<(String, ShreddingSchema)>),
    List(Box<ShreddingSchema>),
}

/// The type of a `typed_value` column that holds scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeafType {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    Float,
    Double,
    Decimal { precision: u8, scale: u8 },
    Date,
    Time,
    Timestamp,
    TimestampNtz,
    TimestampNanos,
    TimestampNtzNanos,
    Binary,
    String,
    Uuid,
}

/// Which numbers go to a `typed_value` of an exact type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numeric {
    /// Numbers that the column holds without loss, whatever their own type.
    #[default]
    Value,
    /// Numbers of the column's own type, so that they keep their type.
    Strict,
}

/// The maximum nesting depth of a shredding schema.
pub const MAX_SCHEMA_DEPTH: usize = 64;

pub const EXTENSION_NAME: &str = "ARROW:extension:name";
pub const VARIANT_EXTENSION: &str = "arrow.parquet.variant";
const UUID_EXTENSION: &str = "arrow.uuid";

impl ShreddingSchema {
    /// Read the Arrow form.
    pub fn from_arrow(field: &Field) -> Result<Self> {
        Self::from_arrow_at(field, 0)
    }

    fn from_arrow_at(field: &Field, depth: usize) -> Result<Self> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(Error::shredding(format!(
                "the shredding schema nests deeper than {MAX_SCHEMA_DEPTH} levels"
            )));
        }
        match field.data_type() {
            DataType::Null => Ok(Self::Untyped),
            DataType::Struct(fields) => Self::object(fields, depth),
            DataType::List(element) | DataType::LargeList(element) => {
                Self::from_arrow_at(element, depth + 1).map(|element| Self::List(Box::new(element)))
            }
            _ => LeafType::from_arrow(field).map(Self::Leaf),
        }
    }

    fn object(fields: &Fields, depth: usize) -> Result<Self> {
        // Parquet has no empty groups.
        if fields.is_empty() {
            return Ok(Self::Untyped);
        }
        let mut seen = HashSet::new();
        let mut shredded = Vec::with_capacity(fields.len());
        for field in fields {
            if !seen.insert(field.name().as_str()) {
                return Err(Error::shredding(format!(
                    "the shredding schema has two fields called {:?} in one object",
                    field.name()
                )));
            }
            shredded.push((field.name().clone(), Self::from_arrow_at(field, depth + 1)?));
        }
        shredded.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Self::Object(shredded))
    }

    /// The Arrow form, as a nullable field called `name`.
    pub fn to_arrow(&self, name: &str) -> Field {
        match self {
            Self::Untyped => Field::new(name, DataType::Null, true),
            Self::Leaf(leaf) => leaf.to_arrow(name),
            Self::Object(fields) => {
                let fields: Fields = fields.iter().map(|(name, schema)| schema.to_arrow(name)).collect();
                Field::new(name, DataType::Struct(fields), true)
            }
            Self::List(element) => {
                Field::new(name, DataType::List(Arc::new(element.to_arrow("element"))), true)
            }
        }
    }
}

impl LeafType {
    fn from_arrow(field: &Field) -> Result<Self> {
        let is_uuid = field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == UUID_EXTENSION);
        Ok(match field.data_type() {
            DataType::Boolean => Self::Boolean,
            DataType::Int8 => Self::Int8,
            DataType::Int16 => Self::Int16,
            DataType::Int32 => Self::Int32,
            DataType::Int64 => Self::Int64,
            DataType::Float32 => Self::Float,
            DataType::Float64 => Self::Double,
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) => {
                Self::decimal(*p, *s)?
            }
            DataType::Date32 => Self::Date,
            DataType::Time64(TimeUnit::Microsecond) => Self::Time,
            DataType::Timestamp(TimeUnit::Microsecond, zone) if zone.is_some() => Self::Timestamp,
            DataType::Timestamp(TimeUnit::Microsecond, _) => Self::TimestampNtz,
            DataType::Timestamp(TimeUnit::Nanosecond, zone) if zone.is_some() => Self::TimestampNanos,
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Self::TimestampNtzNanos,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Binary,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::String,
            DataType::FixedSizeBinary(16) if is_uuid => Self::Uuid,
            other => {
                return Err(Error::shredding(format!(
                    "field {:?}: {other} cannot be a shredded type; the table of shredded value types in \
                     VariantShredding.md lists those that can",
                    field.name()
                )));
            }
        })
    }

    fn decimal(precision: u8, scale: i8) -> Result<Self> {
        match u8::try_from(scale) {
            Ok(scale) if (1..=MAX_DECIMAL_DIGITS).contains(&precision) && scale <= precision => {
                Ok(Self::Decimal { precision, scale })
            }
            _ => Err(Error::shredding(format!(
                "decimal({precision}, {scale}) cannot be a shredded type: the precision is 1 to 38 and the \
                 scale 0 to the precision"
            ))),
        }
    }

    /// The Arrow type of the column.
    pub fn data_type(self) -> DataType {
        let utc = || Some(Arc::from("UTC"));
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, utc()),
            Self::TimestampNtz => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimestampNanos => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
            Self::TimestampNtzNanos => DataType::Timestamp(TimeUnit::Nanosecond, None),
            Self::Binary => DataType::Binary,
            Self::String => DataType::Utf8,
            Self::Uuid => DataType::FixedSizeBinary(16),
        }
    }

    pub fn to_arrow(self, name: &str) -> Field {
        let field = Field::new(name, self.data_type(), true);
        match self {
            Self::Uuid => {
                field.with_metadata([(EXTENSION_NAME.to_owned(), UUID_EXTENSION.to_owned())].into())
            }
            _ => field,
        }
    }

    /// Whether the value at the start of `bytes` is of exactly this type, if it is an exact number.
    pub fn is_type_of_number(self, bytes: &[u8]) -> bool {
        let number = bytes.first().filter(|&header| header & 0b11 == 0).map(|header| header >> 2);
        match (number, self) {
            (
                Some(id @ 3..=6),
                Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 | Self::Decimal { .. },
            ) => id == self.number_id(),
            (Some(id @ 8..=10), Self::Decimal { scale, .. }) => {
                id == self.number_id() && bytes.get(1) == Some(&scale)
            }
            (Some(8..=10), _) => false,
            _ => true,
        }
    }

    /// The id of the primitive type that an exact number of this type has.
    fn number_id(self) -> u8 {
        match self {
            Self::Int8 => 3,
            Self::Int16 => 4,
            Self::Int32 => 5,
            Self::Int64 => 6,
            Self::Decimal { precision: 0..=9, .. } => 8,
            Self::Decimal { precision: 10..=18, .. } => 9,
            _ => 10,
        }
    }

    /// Whether Spark 4 can read this type in a `typed_value`: it rejects a column with any other type.
    pub fn is_spark_compatible(self) -> bool {
        !matches!(self, Self::Time | Self::TimestampNanos | Self::TimestampNtzNanos | Self::Uuid)
    }
}
