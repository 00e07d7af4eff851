//! Build Variants from trees of values whose names are not known in advance.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::NullBufferBuilder;

use super::cast::variant_fields;
use super::encode::{self, Layout};
use super::metadata::{self, unsigned_size};
use super::{Decimal, MAX_DEPTH, MAX_SIZE, Metadata, Value, malformed, no_such_name, too_deep};
use crate::error::{Error, Result};

/// A value before it is encoded.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree<'a> {
    Scalar(Value<'a>),
    /// The bytes of a scalar that owns its content.
    Encoded(Vec<u8>),
    /// Fields sorted by name.
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
    Array(Vec<Tree<'a>>),
}

const NANOS_PER_MICRO: i64 = 1000;

pub const NULL: Tree<'static> = Tree::Scalar(Value::Null);

impl<'a> Tree<'a> {
    pub fn string(text: &str) -> Self {
        let mut out = Vec::with_capacity(text.len() + 5);
        encode::string(&mut out, text.as_bytes());
        Tree::Encoded(out)
    }

    pub fn binary(bytes: &[u8]) -> Self {
        let mut out = Vec::with_capacity(bytes.len() + 5);
        encode::scalar(&mut out, &Value::Binary(bytes));
        Tree::Encoded(out)
    }

    /// Return an object; two fields of one name are an error.
    pub fn object(mut fields: Vec<(Cow<'a, str>, Tree<'a>)>) -> Result<Self> {
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        match fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(malformed(&format!("an object has two fields called {:?}", pair[0].0))),
            None => Ok(Tree::Object(fields)),
        }
    }

    /// Return a Variant, whose metadata has `names`.
    pub fn decode(names: &[&'a str], bytes: &'a [u8], depth: usize) -> Result<Self> {
        check_depth(depth)?;
        Ok(match Value::decode(bytes)? {
            Value::Object(object) => {
                let field = |field: Result<(usize, &'a [u8])>| {
                    let (id, value) = field?;
                    let name = *names.get(id).ok_or_else(|| no_such_name(id, names.len()))?;
                    Ok((Cow::Borrowed(name), Tree::decode(names, value, depth + 1)?))
                };
                Tree::object(object.fields().map(field).collect::<Result<_>>()?)?
            }
            Value::Array(array) => {
                let element = |element: Result<&'a [u8]>| Tree::decode(names, element?, depth + 1);
                Tree::Array(array.elements().map(element).collect::<Result<_>>()?)
            }
            Value::Unknown(id) => return Err(malformed(&format!("unknown primitive type {id}"))),
            scalar => Tree::Scalar(scalar),
        })
    }

    /// Return the value in the one form that equal values share (VariantEncoding.md, "Equivalence Class").
    ///
    /// Exact numbers are decimals without trailing zeros, and timestamps of whole microseconds are in microseconds. All
    /// NaN are one, and so are both zeros.
    pub fn canonical(self) -> Self {
        match self {
            Tree::Scalar(value) => Tree::Scalar(canonical_scalar(value)),
            Tree::Object(fields) => {
                Tree::Object(fields.into_iter().map(|(name, value)| (name, value.canonical())).collect())
            }
            Tree::Array(elements) => Tree::Array(elements.into_iter().map(Tree::canonical).collect()),
            Tree::Encoded(bytes) => Tree::Encoded(bytes),
        }
    }

    fn add_names<'t>(&'t self, names: &mut BTreeSet<&'t str>) {
        match self {
            Tree::Object(fields) => fields.iter().for_each(|(name, value)| {
                names.insert(name);
                value.add_names(names);
            }),
            Tree::Array(elements) => elements.iter().for_each(|element| element.add_names(names)),
            Tree::Scalar(_) | Tree::Encoded(_) => {}
        }
    }

    /// Return metadata, with the names of the value sorted, and value.
    pub fn encode(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut bytes, mut value, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
        self.add_names(&mut names);
        let names: Vec<&str> = names.into_iter().collect();
        metadata::write(&mut bytes, names.iter().copied(), !names.is_empty());
        self.write(&names, &mut value);
        (bytes, value)
    }

    /// Append the value; `names` are those of the metadata, sorted.
    fn write(&self, names: &[&str], out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Tree::Scalar(value) => encode::scalar(out, value),
            Tree::Encoded(bytes) => out.extend_from_slice(bytes),
            Tree::Object(fields) => {
                let mut entries = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    // Every name of the tree is in the metadata.
                    let id = names.binary_search(&name.as_ref()).unwrap_or_default();
                    entries.push((id, out.len() - start));
                    value.write(names, out);
                }
                let largest_id = entries.iter().map(|entry| entry.0).max().unwrap_or_default();
                let end = out.len();
                Layout::object(entries.len(), end - start, unsigned_size(largest_id))
                    .write_object(out, entries.iter().copied());
                move_before(out, start, end);
            }
            Tree::Array(elements) => {
                let mut offsets = Vec::with_capacity(elements.len());
                for element in elements {
                    offsets.push(out.len() - start);
                    element.write(names, out);
                }
                let end = out.len();
                Layout::array(offsets.len(), end - start).write_array(out, offsets.iter().copied());
                move_before(out, start, end);
            }
        }
    }
}

fn canonical_scalar(value: Value<'_>) -> Value<'_> {
    let integer = |unscaled: i64| Value::Decimal(Decimal { unscaled: unscaled.into(), scale: 0 });
    match value {
        Value::Int8(v) => integer(v.into()),
        Value::Int16(v) => integer(v.into()),
        Value::Int32(v) => integer(v.into()),
        Value::Int64(v) => integer(v),
        Value::Decimal(Decimal { mut unscaled, mut scale }) => {
            while scale > 0 && unscaled % 10 == 0 {
                (unscaled, scale) = (unscaled / 10, scale - 1);
            }
            Value::Decimal(Decimal { unscaled, scale })
        }
        Value::Double(v) if v.is_nan() => Value::Double(f64::NAN),
        Value::Float(v) if v.is_nan() => Value::Float(f32::NAN),
        Value::TimestampNanos(v) if v % NANOS_PER_MICRO == 0 => Value::Timestamp(v / NANOS_PER_MICRO),
        Value::TimestampNtzNanos(v) if v % NANOS_PER_MICRO == 0 => Value::TimestampNtz(v / NANOS_PER_MICRO),
        // Adding zero turns -0.0 into 0.0.
        Value::Double(v) => Value::Double(v + 0.0),
        Value::Float(v) => Value::Float(v + 0.0),
        other => other,
    }
}

/// Move what follows `end` to `start`: a header before its values, whose sizes it needs.
fn move_before(out: &mut [u8], start: usize, end: usize) {
    let size = out.len() - end;
    out[start..].rotate_right(size);
}

pub fn check_depth(depth: usize) -> Result<()> {
    if depth > MAX_DEPTH { Err(too_deep()) } else { Ok(()) }
}

/// Return the names of metadata by id.
pub fn names_of(bytes: &[u8]) -> Result<Vec<&str>> {
    Ok(Metadata::parse(bytes)?.names().collect())
}

/// Builds an array of Variants row by row.
pub struct Rows {
    metadata: BinaryBuilder,
    values: BinaryBuilder,
    valid: NullBufferBuilder,
    size: usize,
}

impl Rows {
    pub fn new(rows: usize) -> Self {
        Rows {
            metadata: BinaryBuilder::with_capacity(rows, 0),
            values: BinaryBuilder::with_capacity(rows, 0),
            valid: NullBufferBuilder::new(rows),
            size: 0,
        }
    }

    /// Append a row; `None` is SQL NULL.
    pub fn push(&mut self, tree: Option<&Tree<'_>>) -> Result<()> {
        let encoded = tree.map(Tree::encode);
        self.push_bytes(encoded.as_ref().map(|(metadata, value)| (metadata.as_slice(), value.as_slice())))
    }

    /// Append the metadata and the value of a row; `None` is SQL NULL.
    pub fn push_bytes(&mut self, variant: Option<(&[u8], &[u8])>) -> Result<()> {
        let (metadata, value) = variant.unwrap_or((metadata::EMPTY, super::NULL));
        let size = metadata.len().max(value.len());
        if size > MAX_SIZE {
            return Err(Error::variant(format!("a Variant takes more than {MAX_SIZE} bytes")));
        }
        self.size += size;
        if self.size > i32::MAX as usize {
            return Err(Error::too_large());
        }
        self.metadata.append_value(metadata);
        self.values.append_value(value);
        self.valid.append(variant.is_some());
        Ok(())
    }

    pub fn finish(mut self) -> Result<StructArray> {
        let columns: Vec<ArrayRef> = vec![Arc::new(self.metadata.finish()), Arc::new(self.values.finish())];
        Ok(StructArray::try_new(variant_fields(), columns, self.valid.finish())?)
    }
}
