//! Shred Variant values: each goes to `typed_value` where it fits, and to `value` otherwise.
//!
//! The `metadata` of a row stays unchanged, so bytes in `value` keep their name ids. All bytes that reach a column
//! are checked completely.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, StructArray};
use arrow_schema::DataType;

use super::schema::{Numeric, ShreddingSchema};
use super::shapes::{Shapes, to_binary};
use super::tree::{NodeId, ROOT, Tree, Typed};
use crate::error::{Error, Result, each_row};
use crate::value::column::Bytes;
use crate::value::encode::Layout;
use crate::value::metadata::unsigned_size;
use crate::value::{MAX_DEPTH, Object, Value, malformed, no_such_name, too_deep, validate_at};

/// Shred `variants`, a struct of `metadata` and `value`, by `schema`.
///
/// The result is a struct of `metadata`, `value` and, if the schema has any, `typed_value`; SQL NULL rows stay.
pub fn shred(variants: &StructArray, schema: ShreddingSchema, numeric: Numeric) -> Result<StructArray> {
    let metadata = child(variants, "metadata")?;
    let values = Bytes::new(child(variants, "value")?)?;
    let mut shapes = Shapes::new(metadata, |_| ())?;
    let mut columns = Columns { tree: Tree::new(&schema), numeric };
    each_row((0..variants.len()).filter(|&row| variants.is_valid(row)), |row| {
        let value = values.get(row).ok_or_else(|| malformed("the value is null"))?;
        push(&mut columns, &shapes.at(row)?.names, ROOT, row, value, 0)
    })?;
    let metadata = match metadata.data_type() {
        DataType::Dictionary(_, _) => metadata.clone(),
        _ => Arc::new(to_binary(metadata)?),
    };
    columns.tree.take(variants.len(), metadata, variants.nulls().cloned())
}

/// The target columns, and which numbers go to columns of exact numbers.
struct Columns {
    tree: Tree,
    numeric: Numeric,
}

fn child<'a>(variants: &'a StructArray, name: &str) -> Result<&'a ArrayRef> {
    variants.column_by_name(name).ok_or_else(|| {
        Error::unsupported(format!(
            "a Variant array is a struct of metadata and value; this one has no {name}"
        ))
    })
}

fn push(
    columns: &mut Columns,
    names: &[&str],
    node: NodeId,
    slot: usize,
    bytes: &[u8],
    depth: usize,
) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let decoded = Value::decode(bytes)?;
    let tree = &mut columns.tree;
    if let Typed::Leaf(leaf) = &mut tree.nodes[node].typed
        && (columns.numeric == Numeric::Value || leaf.leaf.is_type_of_number(bytes))
        && leaf.push(slot, &decoded)
    {
        return Ok(());
    }
    match (&mut tree.nodes[node].typed, &decoded) {
        (Typed::Object(column), Value::Object(object)) => {
            column.slots.set(slot);
            return push_object(columns, names, node, slot, object, depth);
        }
        (Typed::List(column), Value::Array(array)) => {
            let (element, start) = (column.element, column.next_element());
            for (index, value) in array.elements().enumerate() {
                push(columns, names, element, start + index, value?, depth + 1)?;
            }
            if let Typed::List(column) = &mut columns.tree.nodes[node].typed {
                column.end_list(slot, start + array.len());
            }
            return Ok(());
        }
        _ => {}
    }
    validate_at(names, bytes, depth)?;
    let length = crate::value::size(bytes)?.unwrap_or(bytes.len());
    tree.nodes[node].value.push(slot, &bytes[..length]);
    Ok(())
}

fn push_object(
    columns: &mut Columns,
    names: &[&str],
    node: NodeId,
    slot: usize,
    object: &Object<'_>,
    depth: usize,
) -> Result<()> {
    let mut leftovers: Vec<(&str, usize, &[u8])> = Vec::new();
    for field in object.fields() {
        let (id, value) = field?;
        let name = *names.get(id).ok_or_else(|| no_such_name(id, names.len()))?;
        match find_field(&columns.tree, node, name) {
            Some(field) if columns.tree.is_filled(field, slot) => return Err(duplicate(name)),
            Some(field) => push(columns, names, field, slot, value, depth + 1)?,
            None => {
                validate_at(names, value, depth + 1)?;
                leftovers.push((name, id, value));
            }
        }
    }
    if leftovers.is_empty() {
        return Ok(());
    }
    leftovers.sort_unstable_by_key(|&(name, ..)| name);
    if let Some(pair) = leftovers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(duplicate(pair[0].0));
    }
    let value = &mut columns.tree.nodes[node].value;
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
