//! Check the Parquet types of a Variant column, where they are more specific than the Arrow types.
//!
//! Types are rejected even if no row uses them. Arrow readers map INT96 to a timestamp, TIME(true,MICROS) to
//! TIME(false,MICROS), JSON to a string, any FIXED_LEN_BYTE_ARRAY(16) to a UUID, and two-level lists to lists. None of
//! them is a valid `typed_value` (VariantShredding.md, "Shredded Value Types").

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::schema::types::Type;

use super::inspect::logical_text;
use super::schema::members;
use crate::error::{Error, Result};
use crate::value::MAX_DECIMAL_DIGITS;
use crate::value::path::push_field;

/// Check the Variant column at `path` in a file's schema, if it has one there.
pub fn check_variant_at(root: &Type, path: &[String]) -> Result<()> {
    match path.split_first() {
        None => check_variant_column(root),
        Some((name, rest)) => match members(root).iter().find(|member| member.name() == name) {
            Some(member) => check_variant_at(member, rest),
            None => Ok(()),
        },
    }
}

/// Check the group of a Variant column: its annotation, and the types of every `typed_value` in it.
pub fn check_variant_column(column: &Type) -> Result<()> {
    match column.get_basic_info().logical_type_ref() {
        Some(LogicalType::Variant(variant)) if variant.specification_version.is_some_and(|v| v != 1) => {
            let version = variant.specification_version.unwrap_or_default();
            Err(Error::data_file(format!("expected the annotation VARIANT(1), got VARIANT({version})")))
        }
        _ => check_group(column, "$"),
    }
}

/// Recursion is bounded, because reading the footer limits the depth of the schema.
fn check_group(group: &Type, path: &str) -> Result<()> {
    match members(group).iter().find(|member| member.name() == "typed_value") {
        Some(typed_value) => check_typed_value(typed_value, path),
        None => Ok(()),
    }
}

fn check_typed_value(typed_value: &Type, path: &str) -> Result<()> {
    let info = typed_value.get_basic_info();
    if info.has_repetition() && info.repetition() == Repetition::REPEATED {
        return Err(refused(path, "is repeated, and not a LIST"));
    }
    if typed_value.is_primitive() {
        return check_leaf(typed_value, path);
    }
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::List), _) | (None, ConvertedType::LIST) => check_list(typed_value, path),
        (None, ConvertedType::NONE) => members(typed_value).iter().try_for_each(|field| {
            let mut field_path = path.to_owned();
            push_field(&mut field_path, field.name());
            check_group(field, &field_path)
        }),
        (Some(other), _) => Err(refused(path, &format!("is {}", logical_text(other)))),
        (None, other) => Err(refused(path, &format!("is {other}"))),
    }
}

fn check_list(list: &Type, path: &str) -> Result<()> {
    match members(list) {
        [repeated] => match members(repeated) {
            [element] if element.is_group() => check_group(element, &format!("{path}[*]")),
            _ => Err(refused(path, "is a list of two levels, and one of three is due")),
        },
        _ => Err(refused(path, "is a LIST with other members than one repeated group")),
    }
}

fn check_leaf(leaf: &Type, path: &str) -> Result<()> {
    match unknown_leaf(leaf) {
        Some(name) => Err(refused(path, &format!("is {name}, which cannot be a shredded type"))),
        None => Ok(()),
    }
}

/// Return the name of a leaf type that VariantShredding.md does not allow; `None` for an allowed one.
pub fn unknown_leaf(leaf: &Type) -> Option<String> {
    let info = leaf.get_basic_info();
    let (logical, converted) = (info.logical_type_ref(), info.converted_type());
    let is_known = match logical {
        Some(logical) => is_shredded_type(leaf.get_physical_type(), logical),
        None => is_shredded_converted_type(leaf.get_physical_type(), converted),
    };
    (!is_known).then(|| match (logical, converted) {
        (Some(logical), _) => logical_text(logical),
        (None, ConvertedType::NONE) => leaf.get_physical_type().to_string(),
        (None, converted) => converted.to_string(),
    })
}

/// The table of shredded value types in VariantShredding.md.
fn is_shredded_type(physical: PhysicalType, logical: &LogicalType) -> bool {
    use PhysicalType as P;
    match (physical, logical) {
        (P::INT32, LogicalType::Integer(integer)) => integer.is_signed && integer.bit_width <= 32,
        (P::INT64, LogicalType::Integer(integer)) => integer.is_signed && integer.bit_width == 64,
        (P::INT32 | P::INT64 | P::BYTE_ARRAY | P::FIXED_LEN_BYTE_ARRAY, LogicalType::Decimal(decimal)) => {
            decimal.precision <= i32::from(MAX_DECIMAL_DIGITS)
        }
        (P::INT64, LogicalType::Time(time)) => !time.is_adjusted_to_u_t_c && time.unit == TimeUnit::MICROS,
        (P::INT64, LogicalType::Timestamp(timestamp)) => timestamp.unit != TimeUnit::MILLIS,
        (P::INT32, LogicalType::Date)
        | (P::BYTE_ARRAY, LogicalType::String)
        | (P::FIXED_LEN_BYTE_ARRAY, LogicalType::Uuid) => true,
        _ => false,
    }
}

/// The same by the converted types of older writers, whose times are in UTC and therefore invalid.
fn is_shredded_converted_type(physical: PhysicalType, converted: ConvertedType) -> bool {
    use {ConvertedType as C, PhysicalType as P};
    match physical {
        P::BOOLEAN | P::FLOAT | P::DOUBLE => converted == C::NONE,
        P::INT32 => matches!(converted, C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::DATE | C::DECIMAL),
        P::INT64 => matches!(converted, C::NONE | C::INT_64 | C::TIMESTAMP_MICROS | C::DECIMAL),
        P::BYTE_ARRAY => matches!(converted, C::NONE | C::UTF8 | C::DECIMAL),
        P::FIXED_LEN_BYTE_ARRAY => converted == C::DECIMAL,
        P::INT96 => false,
    }
}

fn refused(path: &str, why: &str) -> Error {
    Error::shredding(format!("invalid shredded Variant column: its `typed_value` {why}")).at_path(path)
}
