//! The Parquet types of a Variant column, where they say more than the Arrow types made of them.
//!
//! Arrow readers take INT96 for a timestamp, TIME(true,MICROS) for TIME(false,MICROS), JSON for a string, any
//! FIXED_LEN_BYTE_ARRAY(16) for a UUID, and lists of two levels for lists: none is a `typed_value`
//! (VariantShredding.md, requirements P-S2, P-S6, P-S9).

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::schema::types::Type;

use super::inspect::logical_text;
use super::read::members;
use crate::error::{Error, Result};
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
            Err(Error::DataFile(format!(
                "column {} is VARIANT({}), and only VARIANT(1) is known",
                column.name(),
                variant.specification_version.unwrap_or_default()
            )))
        }
        _ => check_group(column, "$"),
    }
}

/// The depth of the schema is bounded when the footer is read.
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
    let info = leaf.get_basic_info();
    let (logical, converted) = (info.logical_type_ref(), info.converted_type());
    let is_known = match leaf.get_physical_type() {
        PhysicalType::INT96 => false,
        PhysicalType::BYTE_ARRAY => match logical {
            None => matches!(converted, ConvertedType::NONE | ConvertedType::UTF8 | ConvertedType::DECIMAL),
            Some(logical) => matches!(logical, LogicalType::String | LogicalType::Decimal(_)),
        },
        PhysicalType::FIXED_LEN_BYTE_ARRAY => match logical {
            None => converted == ConvertedType::DECIMAL,
            Some(logical) => matches!(logical, LogicalType::Uuid | LogicalType::Decimal(_)),
        },
        // Of the others, the Arrow type tells.
        _ => match logical {
            Some(LogicalType::Time(time)) => !time.is_adjusted_to_u_t_c,
            None => converted != ConvertedType::TIME_MICROS,
            _ => true,
        },
    };
    if is_known {
        return Ok(());
    }
    let name = match (logical, converted) {
        (Some(logical), _) => logical_text(logical),
        (None, ConvertedType::NONE) => leaf.get_physical_type().to_string(),
        (None, converted) => converted.to_string(),
    };
    Err(refused(path, &format!("is {name}, which cannot be a shredded type")))
}

fn refused(path: &str, why: &str) -> Error {
    Error::Shredding(format!("invalid shredded Variant column at {path}: its `typed_value` {why}"))
}
