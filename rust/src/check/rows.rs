//! Check the rows of a shredded Variant column against VariantEncoding.md and VariantShredding.md.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray, StructArray};
use arrow_buffer::NullBuffer;

use super::Violations;
use crate::error::Result;
use crate::shred::LeafType;
use crate::shred::columns::LeafColumn;
use crate::shred::layout::{Group, Layout, Typed};
use crate::shred::reader::{Offsets, is_valid};
use crate::shred::shapes::to_binary;
use crate::value::column::{Bytes, Scalars};
use crate::value::{MAX_DEPTH, Metadata, Object, Value, size};

/// The number of distinct metadata that are cached before the cache is cleared.
const MAX_SHAPES: usize = 4096;

/// The columns of one group; a column that is null in every row counts as absent.
struct Columns<'a> {
    path: &'a str,
    value: Option<Bytes<'a>>,
    typed_value: Option<(TypedColumn<'a>, Option<&'a NullBuffer>)>,
    /// The kind of `typed_value` in the schema, whether or not a row has one.
    kind: Kind,
    nulls: Option<&'a NullBuffer>,
}

enum TypedColumn<'a> {
    Leaf(Scalars<'a>),
    Object(Vec<(&'a str, Columns<'a>)>),
    List(Offsets<'a>, Box<Columns<'a>>),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Untyped,
    Leaf(LeafType),
    Object,
    List,
}

/// The position of a group, which determines the meaning of two null columns.
#[derive(Clone, Copy, PartialEq)]
enum GroupKind {
    Root,
    Field,
    Element,
}

/// Check the slots of a Variant column; `rows` has the row of the file for each, `None` for a slot to skip.
///
/// Return the slots that no reader can rebuild.
pub fn check_rows(
    group: &StructArray,
    layout: &Layout,
    rows: &[Option<u64>],
    found: &mut Violations,
) -> Result<Vec<usize>> {
    let columns = Columns::new(group, &layout.group)?;
    let metadata = match layout.metadata {
        Some(position) => to_binary(group.column(position))?,
        None => return Ok(Vec::new()),
    };
    let mut shapes = HashMap::new();
    let mut unreadable = Vec::new();
    for (slot, row) in rows.iter().enumerate() {
        let Some(row) = row.filter(|_| group.is_valid(slot)) else { continue };
        let mut check = RowCheck { row, names: &[], found, is_readable: true };
        check.row(&columns, slot, &metadata, &mut shapes);
        if !check.is_readable {
            unreadable.push(slot);
        }
    }
    Ok(unreadable)
}

impl<'a> Columns<'a> {
    fn new(group: &'a StructArray, layout: &'a Group) -> Result<Self> {
        let value = match layout.value.map(|position| group.column(position)) {
            Some(column) if column.null_count() < column.len() => Some(Bytes::new(column)?),
            _ => None,
        };
        let kind = match &layout.typed_value {
            None => Kind::Untyped,
            Some((_, Typed::Leaf(leaf))) => Kind::Leaf(*leaf),
            Some((_, Typed::Object(_))) => Kind::Object,
            Some((_, Typed::List(_))) => Kind::List,
        };
        let typed_value = match &layout.typed_value {
            Some((position, typed)) if group.column(*position).null_count() < group.len() => {
                let column = group.column(*position);
                Some((TypedColumn::new(column.as_ref(), typed)?, column.nulls()))
            }
            _ => None,
        };
        Ok(Columns { path: &layout.path, value, typed_value, kind, nulls: group.nulls() })
    }

    fn parts(&self, index: usize) -> (Option<&TypedColumn<'a>>, Option<&'a [u8]>) {
        let typed = self.typed_value.as_ref().filter(|(_, nulls)| is_valid(*nulls, index));
        (typed.map(|(column, _)| column), self.value.and_then(|value| value.get(index)))
    }

    fn is_present(&self, index: usize) -> bool {
        let (typed, value) = self.parts(index);
        is_valid(self.nulls, index) && (typed.is_some() || value.is_some())
    }
}

impl<'a> TypedColumn<'a> {
    fn new(array: &'a dyn Array, typed: &'a Typed) -> Result<Self> {
        Ok(match typed {
            Typed::Leaf(_) => TypedColumn::Leaf(Scalars::new(array)?),
            Typed::Object(fields) => {
                let object = array.as_struct();
                let column = |position: usize| object.column(position).as_struct();
                let fields = fields
                    .iter()
                    .map(|field| {
                        Ok((field.name.as_str(), Columns::new(column(field.position), &field.group)?))
                    })
                    .collect::<Result<_>>()?;
                TypedColumn::Object(fields)
            }
            Typed::List(element) => {
                let (offsets, elements) = Offsets::of(array);
                TypedColumn::List(offsets, Box::new(Columns::new(elements, element)?))
            }
        })
    }
}

/// The check of one row.
struct RowCheck<'c> {
    row: u64,
    /// The names of the row's metadata, by id.
    names: &'c [&'c str],
    found: &'c mut Violations,
    is_readable: bool,
}

impl<'c> RowCheck<'c> {
    fn add(&mut self, rule: &'static str, path: &str, message: &str) {
        self.found.add(rule, path, self.row, || message.to_owned());
    }

    fn refuse(&mut self, rule: &'static str, path: &str, message: &str) {
        self.is_readable = false;
        self.add(rule, path, message);
    }

    fn row<'m: 'c>(
        &mut self,
        columns: &Columns<'_>,
        slot: usize,
        metadata: &'m BinaryArray,
        shapes: &'c mut HashMap<&'m [u8], Result<Vec<&'m str>>>,
    ) {
        if metadata.is_null(slot) {
            return self.refuse("R11", columns.path, "`metadata` is null");
        }
        let bytes = metadata.value(slot);
        if shapes.len() == MAX_SHAPES && !shapes.contains_key(bytes) {
            shapes.clear();
        }
        let names = shapes.entry(bytes).or_insert_with(|| names_of(bytes));
        match names {
            Err(error) => self.refuse("E-M", columns.path, &error.to_string()),
            Ok(names) => {
                let length = Metadata::parse(bytes).map_or(0, |metadata| metadata.as_bytes().len());
                if length < bytes.len() {
                    self.add("E-M9", columns.path, "bytes follow the `metadata`");
                }
                self.names = names;
                self.group(columns, slot, GroupKind::Root, 0);
            }
        }
    }

    fn group(&mut self, columns: &Columns<'_>, index: usize, place: GroupKind, depth: usize) {
        if place != GroupKind::Root && !is_valid(columns.nulls, index) {
            return self.add("R14", columns.path, "the group is null, and it should hold two nulls");
        }
        let (typed, value) = columns.parts(index);
        match (typed, value) {
            (None, None) => self.missing(columns, place),
            (_, Some([])) => self.refuse("R12", columns.path, "`value` has no bytes"),
            (None, Some(bytes)) => self.untyped(columns, bytes, depth),
            (Some(TypedColumn::Leaf(column)), value) => {
                self.no_value_with_typed(columns.path, value, depth);
                if let Err(error) = column.value(index) {
                    self.refuse("E-V3", columns.path, &error.to_string());
                }
            }
            (Some(TypedColumn::List(offsets, element)), value) => {
                self.no_value_with_typed(columns.path, value, depth);
                if depth >= MAX_DEPTH {
                    return self.refuse("E-M11", columns.path, "the value nests too deep");
                }
                offsets.range(index).for_each(|element_index| {
                    self.group(element, element_index, GroupKind::Element, depth + 1)
                });
            }
            (Some(TypedColumn::Object(fields)), value) => self.object(columns, fields, value, index, depth),
        }
    }

    fn missing(&mut self, columns: &Columns<'_>, place: GroupKind) {
        let neither = "neither `value` nor `typed_value` is set: readers take it for a Variant null";
        match place {
            GroupKind::Field => {}
            GroupKind::Element => self.add("R3", columns.path, neither),
            GroupKind::Root if columns.kind == Kind::Untyped => {
                self.add("P-S3", columns.path, "`value` is null in a row that is not")
            }
            GroupKind::Root => self.add("R2", columns.path, neither),
        }
    }

    /// Check a value without `typed_value`: it must be of a kind that `typed_value` cannot store.
    fn untyped(&mut self, columns: &Columns<'_>, bytes: &[u8], depth: usize) {
        self.bytes(bytes, columns.path, depth);
        let Ok(value) = Value::decode(bytes) else { return };
        match (columns.kind, &value) {
            (Kind::Object, Value::Object(_)) => {
                self.add("R8", columns.path, "`value` holds an object, and `typed_value` takes objects")
            }
            (Kind::List, Value::Array(_)) => {
                self.add("R9", columns.path, "`value` holds an array, and `typed_value` takes arrays")
            }
            (Kind::Leaf(leaf), value) if LeafColumn::new(leaf).push(0, value) => self.add(
                "R13",
                columns.path,
                &format!("`value` holds a value of type {} that `typed_value` could take", value.type_name()),
            ),
            _ => {}
        }
    }

    fn no_value_with_typed(&mut self, path: &str, value: Option<&[u8]>, depth: usize) {
        if let Some(bytes) = value {
            self.add("R5", path, "`value` and `typed_value` are both set");
            self.bytes(bytes, path, depth);
        }
    }

    fn object(
        &mut self,
        columns: &Columns<'_>,
        fields: &[(&str, Columns<'_>)],
        value: Option<&[u8]>,
        index: usize,
        depth: usize,
    ) {
        if depth >= MAX_DEPTH {
            return self.refuse("E-M11", columns.path, "the value nests too deep");
        }
        if let Some(bytes) = value {
            self.leftover(columns.path, fields, bytes, depth);
        }
        for (name, field) in fields {
            if field.is_present(index) && !self.names.contains(name) {
                self.add("R10", field.path, "the shredded name is not in the `metadata` of the row");
            }
            self.group(field, index, GroupKind::Field, depth + 1);
        }
    }

    /// Check the `value` of a partially shredded object: an object with at least one other field.
    fn leftover(&mut self, path: &str, fields: &[(&str, Columns<'_>)], bytes: &[u8], depth: usize) {
        self.bytes(bytes, path, depth);
        match Value::decode(bytes) {
            Ok(Value::Object(object)) if object.is_empty() => {
                self.add("W7", path, "`value` is an empty object next to a shredded object, expected null")
            }
            Ok(Value::Object(object)) => {
                let names = (0..object.len()).filter_map(|index| object.field_name(index, self.names).ok());
                let twice: Vec<&str> = names.filter(|name| fields.iter().any(|(f, _)| f == name)).collect();
                for name in twice {
                    self.add("R7", path, &format!("the shredded field {name:?} is in `value`, too"));
                }
            }
            Ok(other) => {
                let kind = other.type_name();
                let message = format!("`typed_value` holds an object, and `value` a value of type {kind}");
                self.add("R6", path, &message)
            }
            Err(_) => {}
        }
    }

    /// The bytes of a `value` column.
    fn bytes(&mut self, bytes: &[u8], path: &str, depth: usize) {
        self.value(bytes, path, depth);
        if matches!(size(bytes), Ok(Some(length)) if length < bytes.len()) {
            self.add("E-M9", path, "bytes follow the `value`");
        }
    }

    fn value(&mut self, bytes: &[u8], path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.refuse("E-M11", path, "the value nests too deep");
        }
        match Value::decode(bytes) {
            Err(error) => self.refuse("E-V", path, &error.to_string()),
            Ok(Value::Unknown(id)) => {
                self.add("E-V4", path, &format!("a value has the primitive type {id}, which is not defined"))
            }
            Ok(Value::Decimal(decimal)) if has_too_many_digits(bytes, decimal.unscaled) => {
                self.add("E-V5", path, "a decimal has more digits than its width is for")
            }
            Ok(Value::Object(object)) => {
                self.order(&object, path);
                self.children(object.fields().map(|field| field.map(|(_, value)| value)), path, depth);
            }
            Ok(Value::Array(array)) => self.children(array.elements(), path, depth),
            Ok(_) => {}
        }
    }

    fn children<'v>(
        &mut self,
        mut children: impl Iterator<Item = Result<&'v [u8]>>,
        path: &str,
        depth: usize,
    ) {
        let outcome = children.try_for_each(|child| child.map(|bytes| self.value(bytes, path, depth + 1)));
        if let Err(error) = outcome {
            self.refuse("E-V", path, &error.to_string());
        }
    }

    fn order(&mut self, object: &Object<'_>, path: &str) {
        let names: Result<Vec<&str>> =
            (0..object.len()).map(|index| object.field_name(index, self.names)).collect();
        let mut sorted = match names {
            Err(error) => return self.refuse("E-O7", path, &error.to_string()),
            Ok(names) if names.is_sorted_by(|a, b| a < b) => return,
            Ok(names) => names,
        };
        let is_utf16 = sorted.is_sorted_by(|a, b| a.encode_utf16().lt(b.encode_utf16()));
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                self.refuse("E-O5", path, &format!("an object has two fields called {:?}", pair[0]))
            }
            None if is_utf16 => {
                self.add("X15", path, "the fields of an object are in the order of UTF-16, and not of UTF-8")
            }
            None => self.refuse("E-O3", path, "the fields of an object are not in the order of their names"),
        }
    }
}

fn names_of(bytes: &[u8]) -> Result<Vec<&str>> {
    Metadata::parse(bytes).map(|metadata| metadata.names().collect())
}

fn has_too_many_digits(bytes: &[u8], unscaled: i128) -> bool {
    let digits = match bytes.first().map(|header| header >> 2) {
        Some(8) => 9,
        Some(9) => 18,
        _ => 38,
    };
    unscaled.unsigned_abs() >= 10_u128.pow(digits)
}
