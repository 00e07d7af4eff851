//! The legacy layout of a Variant column: the positions of its members at every level.
//!
//! Members are found by name, in any order, and checked level by level.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};

use crate::error::{Error, Result};
use crate::shred::layout::{ShreddedField, leaf_type, shredded_fields};
use crate::shred::schema::{EXTENSION_NAME, LeafType, MAX_SCHEMA_DEPTH, ShreddingSchema, VARIANT_EXTENSION};
use crate::value::cast::variant_fields;

pub const UNTYPED_VALUE: &str = "untyped_value";
pub const OBJECT: &str = "object";
pub const ARRAY: &str = "array";
pub const TYPED_VALUE: &str = "typed_value";

/// The members of one Variant value; numbers are positions in their struct. At least one is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The normalized path of the value; `[*]` stands for the elements of a list.
    pub path: String,
    pub untyped_value: Option<usize>,
    /// With its fields in the order of the names' UTF-8 bytes.
    pub object: Option<(usize, Vec<ShreddedField<Group>>)>,
    pub array: Option<(usize, Box<Group>)>,
    pub typed_value: Option<(usize, LeafType)>,
}

impl Group {
    /// Check and read the layout of a whole column.
    pub fn parse(fields: &Fields) -> Result<Self> {
        Self::parse_at(fields, "$".into(), 0)
    }

    fn parse_at(fields: &Fields, path: String, depth: usize) -> Result<Self> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(invalid(&path, &format!("it nests deeper than {MAX_SCHEMA_DEPTH} levels")));
        }
        check_names(fields, &path)?;
        let mut group = Group { path, untyped_value: None, object: None, array: None, typed_value: None };
        for (position, field) in fields.iter().enumerate() {
            let path = group.path.as_str();
            match field.name().as_str() {
                UNTYPED_VALUE => {
                    check_bytes(field, path)?;
                    group.untyped_value = Some(position);
                }
                OBJECT => group.object = Some((position, object_fields(field, path, depth)?)),
                ARRAY => group.array = Some((position, element(field, path, depth).map(Box::new)?)),
                TYPED_VALUE => group.typed_value = Some((position, leaf_type(field, path)?)),
                _ => {}
            }
        }
        Ok(group)
    }

    /// Return the shredding schema of the current layout, where a group has one `typed_value`: the first one that the
    /// draft's algorithm checks.
    pub fn schema(&self) -> ShreddingSchema {
        if let Some((_, fields)) = &self.object {
            let fields = fields.iter().map(|field| (field.name.clone(), field.group.schema()));
            return ShreddingSchema::Object(fields.collect());
        }
        match (&self.array, &self.typed_value) {
            (Some((_, element)), _) => ShreddingSchema::List(Box::new(element.schema())),
            (None, Some((_, leaf))) => ShreddingSchema::Leaf(*leaf),
            (None, None) => ShreddingSchema::Untyped,
        }
    }
}

/// Return the layout of `field` if it is a Variant column in the legacy layout.
///
/// A group with an `untyped_value` must follow all rules, or it is an error. A group without it may be an ordinary
/// struct with a field called `object` or `array`: it counts as legacy only if it follows all rules.
pub fn recognize(field: &Field) -> Result<Option<Group>> {
    let DataType::Struct(fields) = field.data_type() else { return Ok(None) };
    match Group::parse(fields) {
        Ok(group) => Ok(Some(group)),
        Err(error) if fields.find(UNTYPED_VALUE).is_some() => Err(error.in_column(field.name())),
        Err(_) => Ok(None),
    }
}

/// Return `field` with its legacy Variants, at any depth, as `struct<metadata, value>` with the extension name of a
/// Variant.
pub fn restored(field: &Field) -> Result<Field> {
    if recognize(field)?.is_some() {
        let mut metadata = field.metadata().clone();
        metadata.insert(EXTENSION_NAME.into(), VARIANT_EXTENSION.into());
        let variant = DataType::Struct(variant_fields());
        return Ok(field.clone().with_data_type(variant).with_metadata(metadata));
    }
    let inner = |field: &Arc<Field>| restored(field).map(Arc::new);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect::<Result<_>>()?),
        DataType::List(element) => DataType::List(inner(element)?),
        DataType::LargeList(element) => DataType::LargeList(inner(element)?),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries)?, *sorted),
        other => other.clone(),
    };
    Ok(field.clone().with_data_type(data_type))
}

/// Reject unknown columns; those that begin with `_` are reserved and ignored.
fn check_names(fields: &Fields, path: &str) -> Result<()> {
    let mut seen = HashSet::new();
    for field in fields.iter().filter(|field| !field.name().starts_with('_')) {
        let name = field.name().as_str();
        if matches!(name, "metadata" | "value") {
            return Err(invalid(path, &format!("it has `{name}`, which only the current layout has")));
        }
        if !matches!(name, UNTYPED_VALUE | OBJECT | ARRAY | TYPED_VALUE) {
            return Err(invalid(path, &format!("it has a column {name:?}, which the draft does not define")));
        }
        if !seen.insert(name) {
            return Err(invalid(path, &format!("it has two columns called {name:?}")));
        }
    }
    match seen.is_empty() {
        true => Err(invalid(path, "it has none of object, array, typed_value and untyped_value")),
        false => Ok(()),
    }
}

fn check_bytes(field: &Field, path: &str) -> Result<()> {
    match field.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(()),
        other => Err(invalid(path, &format!("its `{UNTYPED_VALUE}` is {other}, not binary"))),
    }
}

fn object_fields(object: &Field, path: &str, depth: usize) -> Result<Vec<ShreddedField<Group>>> {
    match object.data_type() {
        DataType::Struct(fields) => {
            shredded_fields(fields, path, invalid, |field, path| inner_group(field, path, depth))
        }
        other => Err(invalid(path, &format!("its `{OBJECT}` is {other}, not a group"))),
    }
}

fn element(array: &Field, path: &str, depth: usize) -> Result<Group> {
    match array.data_type() {
        DataType::List(element) | DataType::LargeList(element) => {
            inner_group(element, format!("{path}[*]"), depth)
        }
        other => Err(invalid(path, &format!("its `{ARRAY}` is {other}, not a list"))),
    }
}

fn inner_group(field: &Field, path: String, depth: usize) -> Result<Group> {
    match field.data_type() {
        DataType::Struct(fields) => Group::parse_at(fields, path, depth + 1),
        other => Err(invalid(&path, &format!("expected a group, got {other}"))),
    }
}

fn invalid(path: &str, why: &str) -> Error {
    Error::shredding(format!("invalid Variant column of the older Spark legacy: {why}")).at_path(path)
}
