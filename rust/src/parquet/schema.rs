//! Convert an Arrow schema to a Parquet schema.
//!
//! The crate's own converter annotates VARIANT without a specification version, which Spark rejects. It can neither
//! omit the annotation nor restrict the types to those of Delta tables.

use std::sync::Arc;

use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::basic::{LogicalType, Repetition, TimeUnit as ParquetTimeUnit, Type as PhysicalType};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type, TypePtr};

use super::MAX_SCHEMA_DEPTH;
use crate::error::{Error, Result};

/// Extension name of a Variant column, on the field of its struct.
pub const VARIANT_EXTENSION: &str = "arrow.parquet.variant";
/// Extension name of a UUID, on a field of 16 fixed bytes.
pub const UUID_EXTENSION: &str = "arrow.uuid";

/// The specification version of the annotation; Spark rejects every other one.
pub(super) const VARIANT_SPECIFICATION_VERSION: i8 = 1;
const MAX_INT32_PRECISION: u8 = 9;
const MIN_INT64_PRECISION: u8 = MAX_INT32_PRECISION + 1;
const MAX_INT64_PRECISION: u8 = 18;

/// The Parquet schema of a file that holds columns of `schema`.
///
/// `annotate` annotates the groups of Variant columns as `VARIANT(1)`. Field ids come from the metadata key
/// `PARQUET:field_id`. Returns `ErrorKind::Unsupported` for a type that a Delta table cannot store.
pub fn to_parquet(schema: &Schema, annotate: bool) -> Result<SchemaDescPtr> {
    let converter = Converter { annotate };
    let columns = schema.fields().iter().map(|field| converter.field(field, 1)).collect::<Result<_>>()?;
    let root = Type::group_type_builder("schema").with_fields(columns).build()?;
    Ok(Arc::new(SchemaDescriptor::new(Arc::new(root))))
}

/// Whether `field` is a Variant column, shredded or not.
pub(crate) fn is_variant(field: &Field) -> bool {
    extension_name(field) == Some(VARIANT_EXTENSION) && matches!(field.data_type(), DataType::Struct(_))
}

fn extension_name(field: &Field) -> Option<&str> {
    field.metadata().get(EXTENSION_TYPE_NAME_KEY).map(String::as_str)
}

struct Converter {
    annotate: bool,
}

impl Converter {
    fn field(&self, field: &Field, depth: usize) -> Result<TypePtr> {
        self.named(field.name(), field, depth)
    }

    /// The type of `field` under another name, as for the `element` of a list.
    fn named(&self, name: &str, field: &Field, depth: usize) -> Result<TypePtr> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(unsupported(field, &format!("nests more than {MAX_SCHEMA_DEPTH} groups")));
        }
        match field.data_type() {
            DataType::Struct(_) => self.structure(name, field, depth),
            DataType::List(element) | DataType::LargeList(element) => self.list(name, field, element, depth),
            DataType::Map(entries, _) => self.map(name, field, entries, depth),
            _ => primitive(name, field),
        }
    }

    fn structure(&self, name: &str, field: &Field, depth: usize) -> Result<TypePtr> {
        let DataType::Struct(children) = field.data_type() else {
            return Err(unsupported(field, "is not a struct"));
        };
        if children.is_empty() {
            return Err(unsupported(field, "is a struct without fields, which Parquet cannot hold"));
        }
        let annotation = is_variant(field) && self.annotate;
        let logical = annotation.then(|| LogicalType::variant(Some(VARIANT_SPECIFICATION_VERSION)));
        let fields = children.iter().map(|child| self.field(child, depth + 1)).collect::<Result<_>>()?;
        group(name, field, logical, fields)
    }

    fn list(&self, name: &str, field: &Field, element: &Field, depth: usize) -> Result<TypePtr> {
        let repeated = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![self.named("element", element, depth + 2)?])
            .build()?;
        group(name, field, Some(LogicalType::List), vec![Arc::new(repeated)])
    }

    fn map(&self, name: &str, field: &Field, entries: &Field, depth: usize) -> Result<TypePtr> {
        let DataType::Struct(pair) = entries.data_type() else {
            return Err(unsupported(field, "is a map whose entries are not a struct"));
        };
        let [key, value] = pair.as_ref() else {
            return Err(unsupported(field, "is a map whose entries are not a key and a value"));
        };
        if is_variant(key) || key.is_nullable() {
            return Err(unsupported(field, "is a map whose keys are Variant or nullable"));
        }
        let fields = vec![self.named("key", key, depth + 2)?, self.named("value", value, depth + 2)?];
        let repeated = Type::group_type_builder("key_value")
            .with_repetition(Repetition::REPEATED)
            .with_fields(fields)
            .build()?;
        group(name, field, Some(LogicalType::Map), vec![Arc::new(repeated)])
    }
}

fn group(name: &str, field: &Field, logical: Option<LogicalType>, fields: Vec<TypePtr>) -> Result<TypePtr> {
    let group = Type::group_type_builder(name)
        .with_repetition(repetition(field))
        .with_logical_type(logical)
        .with_id(field_id(field)?)
        .with_fields(fields)
        .build()?;
    Ok(Arc::new(group))
}

fn primitive(name: &str, field: &Field) -> Result<TypePtr> {
    let (physical, length, logical) = storage(field, field.data_type())?;
    let (precision, scale) = match &logical {
        Some(LogicalType::Decimal(decimal)) => (decimal.precision, decimal.scale),
        _ => (-1, -1),
    };
    let primitive = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition(field))
        .with_length(length)
        .with_logical_type(logical)
        .with_precision(precision)
        .with_scale(scale)
        .with_id(field_id(field)?)
        .build()?;
    Ok(Arc::new(primitive))
}

/// Physical type, length of FIXED_LEN_BYTE_ARRAY (else -1) and annotation of a leaf.
fn storage(field: &Field, data_type: &DataType) -> Result<(PhysicalType, i32, Option<LogicalType>)> {
    use PhysicalType::{BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64};
    Ok(match data_type {
        DataType::Boolean => (BOOLEAN, -1, None),
        DataType::Int8 => (INT32, -1, Some(LogicalType::integer(8, true))),
        DataType::Int16 => (INT32, -1, Some(LogicalType::integer(16, true))),
        DataType::Int32 => (INT32, -1, None),
        DataType::Int64 => (INT64, -1, None),
        DataType::Float32 => (FLOAT, -1, None),
        DataType::Float64 => (DOUBLE, -1, None),
        DataType::Decimal128(precision, scale) => decimal(field, *precision, *scale)?,
        DataType::Date32 => (INT32, -1, Some(LogicalType::Date)),
        DataType::Time64(TimeUnit::Microsecond) => {
            (INT64, -1, Some(LogicalType::time(false, ParquetTimeUnit::MICROS)))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            (INT64, -1, Some(LogicalType::timestamp(zone.is_some(), ParquetTimeUnit::MICROS)))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            (INT64, -1, Some(LogicalType::timestamp(zone.is_some(), ParquetTimeUnit::NANOS)))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => (BYTE_ARRAY, -1, None),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            (BYTE_ARRAY, -1, Some(LogicalType::String))
        }
        DataType::FixedSizeBinary(16) if extension_name(field) == Some(UUID_EXTENSION) => {
            (FIXED_LEN_BYTE_ARRAY, 16, Some(LogicalType::Uuid))
        }
        DataType::FixedSizeBinary(length) => (FIXED_LEN_BYTE_ARRAY, *length, None),
        DataType::Dictionary(_, value) => storage(field, value)?,
        other => {
            return Err(unsupported(field, &format!("has type {other}, which a Delta table cannot hold")));
        }
    })
}

fn decimal(field: &Field, precision: u8, scale: i8) -> Result<(PhysicalType, i32, Option<LogicalType>)> {
    if !(1..=38).contains(&precision) || scale < 0 || scale.unsigned_abs() > precision {
        return Err(unsupported(field, &format!("has the impossible type decimal({precision}, {scale})")));
    }
    let logical = Some(LogicalType::decimal(scale.into(), precision.into()));
    Ok(match precision {
        1..=MAX_INT32_PRECISION => (PhysicalType::INT32, -1, logical),
        MIN_INT64_PRECISION..=MAX_INT64_PRECISION => (PhysicalType::INT64, -1, logical),
        _ => (PhysicalType::FIXED_LEN_BYTE_ARRAY, decimal_length(precision), logical),
    })
}

/// The fewest bytes whose two's complement holds every decimal of `precision` digits; at most 16.
fn decimal_length(precision: u8) -> i32 {
    let largest = 10_i128.pow(precision.into()) - 1;
    let bits = i128::BITS - largest.leading_zeros() + 1;
    bits.div_ceil(8) as i32
}

fn repetition(field: &Field) -> Repetition {
    match field.is_nullable() {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    }
}

fn field_id(field: &Field) -> Result<Option<i32>> {
    let Some(text) = field.metadata().get(PARQUET_FIELD_ID_META_KEY) else {
        return Ok(None);
    };
    let id = text
        .parse()
        .map_err(|_| unsupported(field, &format!("has the field id {text:?}, not an integer")))?;
    Ok(Some(id))
}

fn unsupported(field: &Field, what: &str) -> Error {
    Error::unsupported(format!("field {:?} {what}", field.name()))
}

/// The fields of a group; a primitive type has none.
pub fn members(column: &Type) -> &[TypePtr] {
    if column.is_group() { column.get_fields() } else { &[] }
}
