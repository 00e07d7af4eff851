//! Shredding Variant values: each goes to `typed_value` where it fits, and to `value` where it does not.
//!
//! The `metadata` of a row stays as it is, so what is left in `value` keeps its name ids (requirements W8).

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array as _, ArrayRef, BinaryArray, StructArray};
use arrow_schema::DataType;

use super::schema::ShreddingSchema;
use super::tree::{NodeId, ROOT, Tree, Typed};
use crate::error::{Error, Result};
use crate::value::encode::Layout;
use crate::value::metadata::unsigned_size;
use crate::value::{MAX_DEPTH, Metadata, Object, Value, malformed, too_deep};

/// Shred `variants`, a struct of `metadata` and `value`, by `schema`.
///
/// The result is a struct of `metadata`, `value` and, if the schema has any, `typed_value`; SQL NULL rows stay.
pub fn shred(variants: &StructArray, schema: ShreddingSchema) -> Result<StructArray> {
    let columns = VariantColumns::new(variants)?;
    let mut tree = Tree::new(schema);
    let mut names = FieldNames::default();
    for row in 0..variants.len() {
        if let Some((metadata, value)) = columns.row(row)? {
            names.set_metadata(metadata).map_err(|e| e.at_row(row))?;
            push(&mut tree, &names, ROOT, row, value, 0).map_err(|e| e.at_row(row))?;
        }
    }
    tree.take(variants.len(), columns.metadata.clone(), variants.nulls().cloned())
}

/// The `metadata` and `value` columns of unshredded Variants, whichever binary types they have.
pub struct VariantColumns {
    metadata: ArrayRef,
    keys: Option<Vec<usize>>,
    names: BinaryArray,
    value: BinaryArray,
    nulls: Option<arrow_buffer::NullBuffer>,
}

impl VariantColumns {
    /// Look up the two columns by name, in any order.
    pub fn new(variants: &StructArray) -> Result<Self> {
        let metadata = child(variants, "metadata")?;
        let value = plain_binary(child(variants, "value")?)?;
        let (metadata, keys, names) = match metadata.data_type() {
            DataType::Dictionary(key, _) if **key == DataType::Int32 => {
                let dictionary = metadata.as_dictionary::<Int32Type>();
                let keys = dictionary.keys().iter().map(|key| key.unwrap_or_default() as usize).collect();
                (metadata.clone(), Some(keys), plain_binary(dictionary.values())?)
            }
            _ => {
                let names = plain_binary(metadata)?;
                (std::sync::Arc::new(names.clone()) as ArrayRef, None, names)
            }
        };
        Ok(VariantColumns { metadata, keys, names, value, nulls: variants.nulls().cloned() })
    }

    pub fn len(&self) -> usize {
        self.value.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The metadata and the value of a row; `None` where it is SQL NULL.
    pub fn row(&self, row: usize) -> Result<Option<(&[u8], &[u8])>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        let name = self.keys.as_ref().map_or(row, |keys| keys[row]);
        if name >= self.names.len() || self.names.is_null(name) || self.value.is_null(row) {
            return Err(malformed("its metadata or its value is null").at_row(row));
        }
        Ok(Some((self.names.value(name), self.value.value(row))))
    }
}

fn child<'a>(variants: &'a StructArray, name: &str) -> Result<&'a ArrayRef> {
    variants.column_by_name(name).ok_or_else(|| {
        Error::Unsupported(format!(
            "a Variant array is a struct of metadata and value; this one has no {name}"
        ))
    })
}

fn plain_binary(array: &ArrayRef) -> Result<BinaryArray> {
    match array.data_type() {
        DataType::Binary => Ok(array.as_binary::<i32>().clone()),
        DataType::LargeBinary => Ok(array.as_binary::<i64>().iter().collect()),
        DataType::BinaryView => Ok(array.as_binary_view().iter().collect()),
        other => {
            Err(Error::Unsupported(format!("metadata and value of a Variant are binary, and not {other}")))
        }
    }
}

/// The names of the current row's metadata, which is read once for a run of equal ones.
#[derive(Default)]
struct FieldNames {
    bytes: Vec<u8>,
    names: Vec<String>,
}

impl FieldNames {
    fn set_metadata(&mut self, bytes: &[u8]) -> Result<()> {
        if self.bytes != bytes {
            self.names = Metadata::parse(bytes)?.names().map(str::to_owned).collect();
            self.bytes = bytes.to_vec();
        }
        Ok(())
    }

    fn get(&self, id: usize) -> Result<&str> {
        self.names.get(id).map(String::as_str).ok_or_else(|| malformed("a field has no name in the metadata"))
    }
}

fn push(
    tree: &mut Tree,
    names: &FieldNames,
    node: NodeId,
    slot: usize,
    bytes: &[u8],
    depth: usize,
) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let decoded = Value::decode(bytes)?;
    match (&mut tree.nodes[node].typed, &decoded) {
        (Typed::Leaf(leaf), value) => {
            if leaf.push(slot, value) {
                return Ok(());
            }
        }
        (Typed::Object(column), Value::Object(object)) => {
            column.slots.set(slot);
            return push_object(tree, names, node, slot, object, depth);
        }
        (Typed::List(column), Value::Array(array)) => {
            let (element, start) = (column.element, column.next_element());
            for index in 0..array.len() {
                push(tree, names, element, start + index, array.element(index)?, depth + 1)?;
            }
            if let Typed::List(column) = &mut tree.nodes[node].typed {
                column.end_list(slot, start + array.len());
            }
            return Ok(());
        }
        _ => {}
    }
    let length = crate::value::size(bytes)?.unwrap_or(bytes.len());
    tree.nodes[node].value.push(slot, &bytes[..length]);
    Ok(())
}

fn push_object(
    tree: &mut Tree,
    names: &FieldNames,
    node: NodeId,
    slot: usize,
    object: &Object<'_>,
    depth: usize,
) -> Result<()> {
    let mut leftovers: Vec<(&str, usize, &[u8])> = Vec::new();
    for index in 0..object.len() {
        let (id, value) = object.field(index)?;
        let name = names.get(id)?;
        match find_field(tree, node, name) {
            Some(field) if tree.is_filled(field, slot) => return Err(duplicate(name)),
            Some(field) => push(tree, names, field, slot, value, depth + 1)?,
            None => leftovers.push((name, id, value)),
        }
    }
    if leftovers.is_empty() {
        return Ok(());
    }
    leftovers.sort_unstable_by_key(|&(name, ..)| name);
    if let Some(pair) = leftovers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(duplicate(pair[0].0));
    }
    let value = &mut tree.nodes[node].value;
    write_object(&mut value.data, &leftovers);
    value.end_value(slot);
    Ok(())
}

fn find_field(tree: &Tree, node: NodeId, name: &str) -> Option<NodeId> {
    let Typed::Object(object) = &tree.nodes[node].typed else { return None };
    let index = object.fields.binary_search_by(|(field, _)| field.as_str().cmp(name)).ok()?;
    Some(object.fields[index].1)
}

fn duplicate(name: &str) -> Error {
    malformed(&format!("an object has two fields called {name:?}"))
}

/// Append an object of fields as (name, name id, value), sorted by name.
fn write_object(out: &mut Vec<u8>, fields: &[(&str, usize, &[u8])]) {
    let size = fields.iter().map(|(.., value)| value.len()).sum();
    let largest = fields.iter().map(|&(_, id, _)| id).max().unwrap_or_default();
    let layout = Layout::object(fields.len(), size, unsigned_size(largest));
    let offsets = fields.iter().scan(0, |end, &(_, id, value)| {
        let start = *end;
        *end += value.len();
        Some((id, start))
    });
    layout.write_object(out, offsets);
    fields.iter().for_each(|(.., value)| out.extend_from_slice(value));
}
