//! The layout of a shredded Variant column: where `metadata`, `value` and `typed_value` are, to every level.
//!
//! It is read from the Arrow type of the column's group and checked against the schema rules of
//! VariantShredding.md; columns are found by name, level by level.

use std::collections::HashSet;

use arrow_schema::{DataType, Field, Fields};

use super::schema::{EXTENSION_NAME, LeafType, MAX_SCHEMA_DEPTH, ShreddingSchema, VARIANT_EXTENSION};
use crate::error::{Error, Result};
use crate::value::column::is_text_dictionary;
use crate::value::path::push_field;

/// The layout of one Variant column; numbers are positions of children in their struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// `None` in a column that was read without its `metadata`.
    pub metadata: Option<usize>,
    pub group: Group,
}

/// `value` and `typed_value` of one Variant value; both are `None` where a file or a projection lacks them.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The normalized path of the value; `[*]` stands for the elements of a list.
    pub path: String,
    pub value: Option<usize>,
    pub typed_value: Option<(usize, Typed)>,
}

/// The type of a `typed_value`.
#[derive(Debug, Clone, PartialEq)]
pub enum Typed {
    Leaf(LeafType),
    /// In the order of the names' UTF-8 bytes.
    Object(Vec<ShreddedField>),
    List(Box<Group>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct ShreddedField<G = Group> {
    pub name: String,
    pub position: usize,
    pub group: G,
}

impl Layout {
    /// Check and read the layout of a complete group, which must have `metadata`.
    pub fn parse(fields: &Fields) -> Result<Self> {
        let layout = Self::parse_projected(fields)?;
        match layout.metadata {
            Some(_) => Ok(layout),
            None if layout.group.value.is_none() && layout.group.typed_value.is_some() => {
                Err(legacy_layout())
            }
            None => Err(Error::shredding("a Variant column needs `metadata`")),
        }
    }

    /// Return the shredding schema of the layout.
    pub fn schema(&self) -> ShreddingSchema {
        self.group.schema()
    }

    /// Check and read the layout of a group of which any columns may be missing.
    pub fn parse_projected(fields: &Fields) -> Result<Self> {
        let group = Group::parse(fields, "$".into(), true, 0)?;
        let metadata = position(fields, "metadata");
        if let Some(position) = metadata {
            check_bytes(&fields[position], "$", true)?;
        }
        Ok(Layout { metadata, group })
    }
}

impl Group {
    fn schema(&self) -> ShreddingSchema {
        match &self.typed_value {
            None => ShreddingSchema::Untyped,
            Some((_, Typed::Leaf(leaf))) => ShreddingSchema::Leaf(*leaf),
            Some((_, Typed::Object(fields))) => ShreddingSchema::Object(
                fields.iter().map(|field| (field.name.clone(), field.group.schema())).collect(),
            ),
            Some((_, Typed::List(element))) => ShreddingSchema::List(Box::new(element.schema())),
        }
    }

    fn parse(fields: &Fields, path: String, is_root: bool, depth: usize) -> Result<Self> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(invalid(&path, &format!("it nests deeper than {MAX_SCHEMA_DEPTH} levels")));
        }
        check_names(fields, &path, is_root)?;
        let value = position(fields, "value");
        if let Some(position) = value {
            check_bytes(&fields[position], &path, false)?;
        }
        let typed_value = match position(fields, "typed_value") {
            Some(position) => Some((position, Typed::parse(&fields[position], &path, depth)?)),
            None => None,
        };
        Ok(Group { path, value, typed_value })
    }
}

impl Typed {
    fn parse(field: &Field, path: &str, depth: usize) -> Result<Self> {
        if field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == VARIANT_EXTENSION) {
            return Err(invalid(path, "its `typed_value` is itself a Variant"));
        }
        match field.data_type() {
            DataType::Struct(fields) => Self::object(fields, path, depth),
            DataType::List(element) | DataType::LargeList(element) => Self::list(element, path, depth),
            _ => leaf_type(field, path).map(Self::Leaf),
        }
    }

    fn object(fields: &Fields, path: &str, depth: usize) -> Result<Self> {
        shredded_fields(fields, path, invalid, |field, path| group_of(field, path, depth)).map(Self::Object)
    }

    fn list(element: &Field, path: &str, depth: usize) -> Result<Self> {
        group_of(element, format!("{path}[*]"), depth).map(|group| Self::List(Box::new(group)))
    }
}

/// The fields of an object in the order of their names, which are data, so that any name is valid.
pub(crate) fn shredded_fields<G>(
    fields: &Fields,
    path: &str,
    invalid: impl Fn(&str, &str) -> Error,
    group_of: impl Fn(&Field, String) -> Result<G>,
) -> Result<Vec<ShreddedField<G>>> {
    let mut seen = HashSet::new();
    let mut shredded = Vec::with_capacity(fields.len());
    for (position, field) in fields.iter().enumerate() {
        if !seen.insert(field.name()) {
            return Err(invalid(path, &format!("it has two shredded fields called {:?}", field.name())));
        }
        let mut field_path = path.to_owned();
        push_field(&mut field_path, field.name());
        let group = group_of(field, field_path)?;
        shredded.push(ShreddedField { name: field.name().clone(), position, group });
    }
    shredded.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(shredded)
}

/// The type of a `typed_value` of scalars.
pub(crate) fn leaf_type(field: &Field, path: &str) -> Result<LeafType> {
    // Arrow readers give a UUID as its bytes, with or without the name of the extension.
    if let DataType::FixedSizeBinary(16) = field.data_type() {
        return Ok(LeafType::Uuid);
    }
    if is_text_dictionary(field.data_type()) {
        return Ok(LeafType::String);
    }
    match ShreddingSchema::from_arrow(field) {
        Ok(ShreddingSchema::Leaf(leaf)) => Ok(leaf),
        Ok(_) => Err(invalid(path, "its `typed_value` is not of the type of a scalar")),
        Err(error) => Err(error.at_path(path)),
    }
}

fn group_of(field: &Field, path: String, depth: usize) -> Result<Group> {
    match field.data_type() {
        DataType::Struct(fields) => Group::parse(fields, path, false, depth + 1),
        other => Err(invalid(&path, &format!("expected a group of `value` and `typed_value`, got {other}"))),
    }
}

/// Reject unknown columns; those that begin with `_` are reserved and ignored.
fn check_names(fields: &Fields, path: &str, is_root: bool) -> Result<()> {
    let mut seen = HashSet::new();
    let has_metadata = position(fields, "metadata").is_some();
    for field in fields {
        let name = field.name().as_str();
        let is_known = matches!(name, "value" | "typed_value") || is_root && name == "metadata";
        if is_root && is_legacy_column(name) && !has_metadata {
            return Err(legacy_layout());
        }
        if !is_known && !name.starts_with('_') {
            return Err(invalid(
                path,
                &format!("it has a column {name:?} in addition to `value` and `typed_value`"),
            ));
        }
        if !seen.insert(name) {
            return Err(invalid(path, &format!("it has two columns called {name:?}")));
        }
    }
    Ok(())
}

/// Return whether a column of this name occurs only in the legacy layout, which has no `metadata`.
pub fn is_legacy_column(name: &str) -> bool {
    matches!(name, "untyped_value" | "object" | "array")
}

fn legacy_layout() -> Error {
    Error::shredding(
        "the Variant column is shredded in the layout of the older Spark draft (object, array, typed_value, \
         untyped_value): `delta-variant migrate SOURCE TARGET` rewrites the file in the current layout",
    )
}

fn check_bytes(field: &Field, path: &str, may_be_dictionary: bool) -> Result<()> {
    match field.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(()),
        DataType::Dictionary(key, value)
            if may_be_dictionary && **key == DataType::Int32 && **value == DataType::Binary =>
        {
            Ok(())
        }
        other => Err(invalid(path, &format!("its `{}` is {other}, not binary", field.name()))),
    }
}

fn position(fields: &Fields, name: &str) -> Option<usize> {
    fields.iter().position(|field| field.name() == name)
}

fn invalid(path: &str, why: &str) -> Error {
    Error::shredding(format!("invalid shredded Variant column: {why}")).at_path(path)
}
