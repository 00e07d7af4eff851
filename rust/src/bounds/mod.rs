//! Exact bounds of columns, collected while a file is written: of shredded Variants and ordinary columns.
//!
//! Memory holds two values for each leaf column, whatever the number of rows.

mod column;
mod decode;
mod encode;
mod encoded;
mod extremes;
mod hidden;
mod stored;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ListArray, StructArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

pub use self::column::{ColumnBounds, ColumnReport, LeafBounds};
pub use self::decode::{BoundBuilder, bound_at, bound_column};
pub use self::encode::{BoundsLimit, encode_bounds, normalize_path};
use self::extremes::Extremes;
pub use self::extremes::Scalar;
pub use self::stored::StoredLeaves;
use crate::error::{Error, Result};
use crate::shred::{LeafType, ShreddingSchema};

/// The bounds of one Variant column, over the shredded arrays of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantBounds {
    sql_nulls: u64,
    /// Whether to search `value` for values that belong into shredded columns.
    is_distrusting: bool,
    root: Group,
}

/// A `value` and its `typed_value`.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    /// How many of each are not null.
    values: u64,
    typed: u64,
    /// Whether the `value` of a group around this one held values of this path.
    is_hidden: bool,
    typed_value: TypedValue,
}

#[derive(Debug, Clone, PartialEq)]
enum TypedValue {
    Absent,
    Leaf(LeafType, Extremes),
    Object(Vec<(String, Group)>),
    List(Box<Group>),
}

/// One step from a value to a value within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Field(String),
    /// Any element of a list.
    Element,
}

/// The values of one leaf column.
#[derive(Debug, Clone, PartialEq)]
pub struct PathReport {
    /// Empty for a Variant that is shredded as a scalar.
    pub path: Vec<Step>,
    pub leaf_type: LeafType,
    /// How many values are in `typed_value`.
    pub typed: u64,
    /// How many values of other types are in `value`.
    pub values: u64,
    /// The least and the greatest typed value. `None` below a list, for types without bounds, after a NaN, and if
    /// values of the path are outside its columns.
    pub bounds: Option<(Scalar, Scalar)>,
}

impl PathReport {
    /// Whether the bounds hold for every value at the path, so that readers may skip by them.
    pub fn qualifies(&self) -> bool {
        self.values == 0 && self.bounds.is_some()
    }
}

impl VariantBounds {
    pub fn new(schema: &ShreddingSchema) -> Self {
        VariantBounds { sql_nulls: 0, is_distrusting: false, root: Group::new(schema, true) }
    }

    /// Return the same for columns that another writer shredded: an object in `value`, or a field that is both there
    /// and in `typed_value`, invalidates the bounds of its paths.
    pub fn distrusting(self) -> Self {
        VariantBounds { is_distrusting: true, ..self }
    }

    /// Add a batch: a struct of `metadata`, `value` and `typed_value` as the schema lays them out.
    pub fn update(&mut self, group: &StructArray) -> Result<()> {
        self.update_valid(group, group.nulls(), Added::All)
    }

    /// Add the rows of a batch that are `valid`; the others are SQL NULL.
    fn update_valid(&mut self, group: &StructArray, valid: Option<&NullBuffer>, added: Added) -> Result<()> {
        self.sql_nulls += valid.map_or(0, NullBuffer::null_count) as u64;
        if self.is_distrusting {
            self.root.find_hidden(group, valid)?;
        }
        self.root.update(group, valid, added)
    }

    /// Merge the bounds of other rows of the same column, with the same schema.
    pub fn merge(&mut self, other: &Self) {
        self.sql_nulls += other.sql_nulls;
        self.root.merge(&other.root);
    }

    /// The number of rows that are SQL NULL; Variant null does not count.
    pub fn sql_nulls(&self) -> u64 {
        self.sql_nulls
    }

    /// A report on each leaf, in the order of the paths.
    pub fn paths(&self) -> Vec<PathReport> {
        let mut reports = Vec::new();
        self.root.report(&mut Vec::new(), &mut reports);
        reports
    }
}

/// What of a batch is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    All,
    /// The numbers of values and nulls without the extremes.
    Counts,
}

/// Whether a leaf has bounds: the types for which Delta Lake on Spark writes them too.
fn has_bounds(leaf_type: LeafType) -> bool {
    use LeafType::*;
    match leaf_type {
        Int8 | Int16 | Int32 | Int64 | Float | Double | Decimal { .. } => true,
        Date | Timestamp | TimestampNtz | String => true,
        Boolean | Time | TimestampNanos | TimestampNtzNanos | Binary | Uuid => false,
    }
}

impl Group {
    fn new(schema: &ShreddingSchema, is_bounded: bool) -> Self {
        let typed_value = match schema {
            ShreddingSchema::Untyped => TypedValue::Absent,
            ShreddingSchema::Leaf(leaf) if is_bounded && has_bounds(*leaf) => {
                TypedValue::Leaf(*leaf, Extremes::new(&leaf.data_type()))
            }
            ShreddingSchema::Leaf(leaf) => TypedValue::Leaf(*leaf, Extremes::Unordered),
            ShreddingSchema::Object(fields) => TypedValue::Object(
                fields.iter().map(|(name, schema)| (name.clone(), Group::new(schema, is_bounded))).collect(),
            ),
            ShreddingSchema::List(element) => TypedValue::List(Box::new(Group::new(element, false))),
        };
        Group { values: 0, typed: 0, is_hidden: false, typed_value }
    }

    /// Add the slots of `group` that are `valid`; the others have arbitrary contents.
    fn update(&mut self, group: &StructArray, valid: Option<&NullBuffer>, added: Added) -> Result<()> {
        if let Some(value) = group.column_by_name("value") {
            self.values += count_valid(value, valid);
        }
        if matches!(self.typed_value, TypedValue::Absent) {
            return Ok(());
        }
        let typed_value = group.column_by_name("typed_value").ok_or_else(|| unexpected(group))?;
        let valid = NullBuffer::union(valid, typed_value.nulls());
        let valid = valid.as_ref();
        self.typed += (group.len() - valid.map_or(0, NullBuffer::null_count)) as u64;
        match &mut self.typed_value {
            TypedValue::Absent => Ok(()),
            TypedValue::Leaf(_, extremes) if added == Added::All => extremes.update(typed_value, valid),
            TypedValue::Leaf(_, _) => Ok(()),
            TypedValue::Object(fields) => {
                let object = typed_value.as_struct_opt().ok_or_else(|| unexpected(typed_value))?;
                fields.iter_mut().try_for_each(|(name, field)| field.update_field(object, name, valid, added))
            }
            TypedValue::List(element) => {
                let list = typed_value.as_list_opt::<i32>().ok_or_else(|| unexpected(typed_value))?;
                let (elements, valid) = elements(list, valid);
                let elements = elements.as_struct_opt().ok_or_else(|| unexpected(list))?;
                element.update(elements, valid.as_ref(), added)
            }
        }
    }

    fn update_field(
        &mut self,
        object: &StructArray,
        name: &str,
        valid: Option<&NullBuffer>,
        added: Added,
    ) -> Result<()> {
        let field = object.column_by_name(name).ok_or_else(|| unexpected(object))?;
        let field = field.as_struct_opt().ok_or_else(|| unexpected(field))?;
        self.update(field, NullBuffer::union(valid, field.nulls()).as_ref(), added)
    }

    fn merge(&mut self, other: &Self) {
        self.values += other.values;
        self.typed += other.typed;
        self.is_hidden |= other.is_hidden;
        match (&mut self.typed_value, &other.typed_value) {
            (TypedValue::Leaf(_, extremes), TypedValue::Leaf(_, other)) => extremes.merge(other),
            (TypedValue::Object(fields), TypedValue::Object(others)) => {
                fields.iter_mut().zip(others).for_each(|((_, field), (_, other))| field.merge(other))
            }
            (TypedValue::List(element), TypedValue::List(other)) => element.merge(other),
            _ => {}
        }
    }

    fn report(&self, path: &mut Vec<Step>, reports: &mut Vec<PathReport>) {
        match &self.typed_value {
            TypedValue::Absent => {}
            TypedValue::Leaf(leaf_type, extremes) => reports.push(PathReport {
                path: path.clone(),
                leaf_type: *leaf_type,
                typed: self.typed,
                values: self.values,
                bounds: extremes.bounds().filter(|_| !self.is_hidden),
            }),
            TypedValue::Object(fields) => fields.iter().for_each(|(name, field)| {
                path.push(Step::Field(name.clone()));
                field.report(path, reports);
                path.pop();
            }),
            TypedValue::List(element) => {
                path.push(Step::Element);
                element.report(path, reports);
                path.pop();
            }
        }
    }
}

fn count_valid(array: &dyn Array, valid: Option<&NullBuffer>) -> u64 {
    let nulls = match (array.null_count(), valid) {
        // The common case of a companion that is not needed: nothing to intersect.
        (nulls, _) if nulls == array.len() => nulls,
        _ => NullBuffer::union(valid, array.nulls()).map_or(0, |nulls| nulls.null_count()),
    };
    (array.len() - nulls) as u64
}

/// The elements of `list`, and which of them are in lists that are `valid`.
fn elements(list: &ListArray, valid: Option<&NullBuffer>) -> (arrow_array::ArrayRef, Option<NullBuffer>) {
    let offsets = list.value_offsets();
    let [first, last] = [offsets.first(), offsets.last()].map(|o| o.copied().unwrap_or_default() as usize);
    let elements = list.values().slice(first, last - first);
    let Some(valid) = valid.filter(|valid| valid.null_count() > 0) else { return (elements, None) };
    let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
    if lengths.zip(valid).all(|(length, is_valid)| is_valid || length == 0) {
        return (elements, None);
    }
    let mut in_valid = BooleanBufferBuilder::new(elements.len());
    for (row, is_valid) in valid.iter().enumerate() {
        in_valid.append_n(list.value_length(row) as usize, is_valid);
    }
    (elements, Some(NullBuffer::new(in_valid.finish())))
}

fn unexpected(array: &dyn Array) -> Error {
    Error::unsupported(format!("{} is not the layout of the shredding schema", array.data_type()))
}
