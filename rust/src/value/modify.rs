//! Set and remove the value at a path of a Variant. Every other value keeps its bytes.

use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};
use arrow_schema::DataType;

use super::build::Rows;
use super::column::{Scalars, Variants};
use super::encode::{self, Layout};
use super::metadata::{self, unsigned_size};
use super::path::{Step, normalized};
use super::{MAX_DEPTH, MAX_SIZE, Metadata, Object, Value, too_deep};
use crate::error::{Error, Result, each_row};

/// The value to set at a path.
#[derive(Debug, Clone, Copy)]
pub enum NewValue<'a> {
    Scalar(Value<'a>),
    /// A Variant with its own metadata.
    Variant(Metadata<'a>, &'a [u8]),
}

/// The names of a row's metadata, followed by the names that a change adds, so that existing ids stay valid.
struct Names<'a> {
    known: Metadata<'a>,
    added: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn id(&mut self, name: &'a str) -> usize {
        let known = self.known.len();
        if let Some(id) = self.known.find(name) {
            return id;
        }
        match self.added.iter().position(|&added| added == name) {
            Some(index) => known + index,
            None => {
                self.added.push(name);
                known + self.added.len() - 1
            }
        }
    }

    fn metadata(&self) -> Vec<u8> {
        if self.added.is_empty() {
            return self.known.as_bytes().to_vec();
        }
        let mut out = Vec::new();
        let names: Vec<&str> = self.known.names().chain(self.added.iter().copied()).collect();
        let was_sorted = self.known.is_empty() || self.known.is_sorted();
        metadata::write(&mut out, names.iter().copied(), was_sorted && names.is_sorted());
        out
    }
}

/// Return metadata and value of a Variant with `new` at `path`; `value` is `None` for SQL NULL.
///
/// A missing or null object on the path is created. Elements of arrays are replaced, never added.
pub fn set<'a>(
    known: Metadata<'a>,
    value: Option<&'a [u8]>,
    path: &'a [Step],
    new: &NewValue<'a>,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut names = Names { known, added: Vec::new() };
    let new = match *new {
        NewValue::Scalar(scalar) => scalar_bytes(&scalar),
        NewValue::Variant(metadata, value) => translated(&metadata, value, &mut names, path.len())?,
    };
    let value = replaced(&mut names, value, path, 0, &new)?;
    let metadata = names.metadata();
    if value.len().max(metadata.len()) > MAX_SIZE {
        return Err(Error::variant(format!("the Variant would be larger than {MAX_SIZE} bytes")));
    }
    Ok((metadata, value))
}

/// Return the value of a Variant without the value at `path`; `None` if there is none.
pub fn remove(metadata: &Metadata<'_>, value: &[u8], path: &[Step]) -> Result<Option<Vec<u8>>> {
    let Some((step, rest)) = path.split_first() else { return Ok(None) };
    match (step, Value::decode(value)?) {
        (Step::Field(name), Value::Object(object)) => {
            let Some(inner) = object.get(metadata, name)? else { return Ok(None) };
            let inner = if rest.is_empty() { None } else { remove(metadata, inner, rest)? };
            if inner.is_none() && !rest.is_empty() {
                return Ok(None);
            }
            let mut fields = fields_but(&object, metadata, name)?;
            if let (Some(bytes), Some(id)) = (&inner, field_id(&object, metadata, name)?) {
                fields.push((name, id, bytes));
            }
            Ok(Some(object_of(fields)))
        }
        (Step::Index(index), Value::Array(array)) if *index < array.len() => {
            let inner = remove(metadata, array.element(*index)?, rest)?;
            if inner.is_none() && !rest.is_empty() {
                return Ok(None);
            }
            let mut elements: Vec<&[u8]> = array.elements().collect::<Result<_>>()?;
            elements.splice(*index..=*index, inner.as_deref());
            Ok(Some(array_of(&elements)))
        }
        _ => Ok(None),
    }
}

fn field_id(object: &Object<'_>, metadata: &Metadata<'_>, name: &str) -> Result<Option<usize>> {
    for index in 0..object.len() {
        let id = object.field_id(index)?;
        if metadata.get(id)? == name {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn replaced<'a>(
    names: &mut Names<'a>,
    value: Option<&'a [u8]>,
    path: &'a [Step],
    depth: usize,
    new: &[u8],
) -> Result<Vec<u8>> {
    let Some(step) = path.get(depth) else { return Ok(new.to_vec()) };
    if depth >= MAX_DEPTH {
        return Err(too_deep());
    }
    let met = value.map(Value::decode).transpose()?;
    match (step, met) {
        (Step::Field(name), None | Some(Value::Null)) => {
            let inner = replaced(names, None, path, depth + 1, new)?;
            Ok(object_of(vec![(name, names.id(name), &inner)]))
        }
        (Step::Field(name), Some(Value::Object(object))) => {
            let before = object.get(&names.known, name)?;
            let inner = replaced(names, before, path, depth + 1, new)?;
            let mut fields = fields_but(&object, &names.known, name)?;
            fields.push((name, names.id(name), &inner));
            Ok(object_of(fields))
        }
        (Step::Index(index), Some(Value::Array(array))) if *index < array.len() => {
            let inner = replaced(names, Some(array.element(*index)?), path, depth + 1, new)?;
            let mut elements: Vec<&[u8]> = array.elements().collect::<Result<_>>()?;
            elements[*index] = &inner;
            Ok(array_of(&elements))
        }
        (step, met) => Err(cannot_set(path, depth, step, met)),
    }
}

fn cannot_set(path: &[Step], depth: usize, step: &Step, met: Option<Value<'_>>) -> Error {
    let parent = normalized(&path[..depth]);
    let kind = met.map_or("missing", |value| value.sql_type_name());
    let message = match (step, met) {
        (Step::Index(index), Some(Value::Array(array))) => {
            format!(
                "cannot set the value because the array at {parent} has {} elements, and index {index} is out of range",
                array.len()
            )
        }
        (Step::Index(_), _) => format!("cannot set the value: expected an array at {parent}, got {kind}"),
        (Step::Field(_), _) => format!("cannot set the value: expected an object at {parent}, got {kind}"),
    };
    Error::variant_path(message).at_path(&normalized(path))
}

/// A field of an object: its name, the id of the name, and its bytes.
type Field<'a> = (&'a str, usize, &'a [u8]);

fn fields_but<'a>(object: &Object<'a>, metadata: &Metadata<'a>, name: &str) -> Result<Vec<Field<'a>>> {
    let mut fields = Vec::with_capacity(object.len() + 1);
    for field in object.fields() {
        let (id, bytes) = field?;
        let field_name = metadata.get(id)?;
        if field_name != name {
            fields.push((field_name, id, bytes));
        }
    }
    Ok(fields)
}

fn object_of(mut fields: Vec<Field<'_>>) -> Vec<u8> {
    fields.sort_by_key(|&(name, _, _)| name);
    let size = fields.iter().map(|(_, _, bytes)| bytes.len()).sum();
    let id_size = unsigned_size(fields.iter().map(|&(_, id, _)| id).max().unwrap_or_default());
    let layout = Layout::object(fields.len(), size, id_size);
    let mut out = Vec::with_capacity(layout.header_size() + size);
    let offsets = starts(fields.iter().map(|(_, _, bytes)| bytes.len()));
    let numbers: Vec<(usize, usize)> = fields.iter().map(|&(_, id, _)| id).zip(offsets).collect();
    layout.write_object(&mut out, numbers.iter().copied());
    fields.iter().for_each(|(_, _, bytes)| out.extend_from_slice(bytes));
    out
}

/// Return an array of encoded values, which share their metadata.
pub fn array_of(elements: &[&[u8]]) -> Vec<u8> {
    let size = elements.iter().map(|bytes| bytes.len()).sum();
    let layout = Layout::array(elements.len(), size);
    let mut out = Vec::with_capacity(layout.header_size() + size);
    layout.write_array(&mut out, starts(elements.iter().map(|bytes| bytes.len())));
    elements.iter().for_each(|bytes| out.extend_from_slice(bytes));
    out
}

fn starts(sizes: impl Iterator<Item = usize>) -> impl Iterator<Item = usize> {
    sizes.scan(0, |end, size| {
        let start = *end;
        *end += size;
        Some(start)
    })
}

/// A scalar as Spark casts it to a Variant: exact numbers in the narrowest type of their kind.
fn scalar_bytes(value: &Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match *value {
        Value::Int8(v) => encode::int(&mut out, v.into()),
        Value::Int16(v) => encode::int(&mut out, v.into()),
        Value::Int32(v) => encode::int(&mut out, v.into()),
        Value::Int64(v) => encode::int(&mut out, v),
        ref other => encode::scalar(&mut out, other),
    }
    out
}

/// Translate a value to the name ids of `names`; a value without objects keeps its bytes.
fn translated<'a>(
    metadata: &Metadata<'a>,
    value: &'a [u8],
    names: &mut Names<'a>,
    depth: usize,
) -> Result<Vec<u8>> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match Value::decode(value)? {
        Value::Object(object) => {
            let mut fields = Vec::with_capacity(object.len());
            for field in object.fields() {
                let (id, bytes) = field?;
                fields.push((metadata.get(id)?, translated(metadata, bytes, names, depth + 1)?));
            }
            Ok(object_of(fields.iter().map(|(name, bytes)| (*name, names.id(name), &bytes[..])).collect()))
        }
        Value::Array(array) => {
            let elements = array
                .elements()
                .map(|bytes| translated(metadata, bytes?, names, depth + 1))
                .collect::<Result<Vec<_>>>()?;
            Ok(array_of(&elements.iter().map(Vec::as_slice).collect::<Vec<_>>()))
        }
        _ => Ok(value.to_vec()),
    }
}

/// Set `values`, an array of scalars or of Variants, at `path`, row by row; null is Variant null.
pub fn set_rows(variants: &StructArray, path: &[Step], values: &dyn Array) -> Result<StructArray> {
    let (variants, new) = (Variants::new(variants)?, NewValues::of(values)?);
    let mut out = Rows::new(variants.len());
    each_row(0..variants.len(), |row| {
        let (metadata, value) = variants.get(row)?.unzip();
        let names = Metadata::parse(metadata.unwrap_or(metadata::EMPTY))?;
        let (metadata, value) = set(names, value, path, &new.at(row)?)?;
        out.push_bytes(Some((&metadata, &value)))
    })?;
    out.finish()
}

/// Return Variants without the value at `path`; SQL NULL stays.
pub fn remove_rows(variants: &StructArray, path: &[Step]) -> Result<StructArray> {
    let variants = Variants::new(variants)?;
    let mut out = Rows::new(variants.len());
    each_row(0..variants.len(), |row| {
        let Some((metadata, value)) = variants.get(row)? else { return out.push_bytes(None) };
        let removed = remove(&Metadata::parse(metadata)?, value, path)?;
        out.push_bytes(Some((metadata, removed.as_deref().unwrap_or(value))))
    })?;
    out.finish()
}

enum NewValues<'a> {
    Nulls,
    Scalars(&'a dyn Array, Scalars<'a>),
    Variants(Variants<'a>),
}

impl<'a> NewValues<'a> {
    fn of(values: &'a dyn Array) -> Result<Self> {
        Ok(match values.data_type() {
            DataType::Null => NewValues::Nulls,
            DataType::Struct(_) => NewValues::Variants(Variants::new(values.as_struct())?),
            _ => NewValues::Scalars(values, Scalars::new(values)?),
        })
    }

    fn at(&self, row: usize) -> Result<NewValue<'a>> {
        Ok(match self {
            NewValues::Scalars(array, scalars) if array.is_valid(row) => {
                NewValue::Scalar(scalars.value(row)?)
            }
            NewValues::Variants(variants) => match variants.get(row)? {
                Some((metadata, value)) => NewValue::Variant(Metadata::parse(metadata)?, value),
                None => NewValue::Scalar(Value::Null),
            },
            _ => NewValue::Scalar(Value::Null),
        })
    }
}
