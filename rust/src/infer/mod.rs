//! Infer a shredding schema: which paths get a `typed_value` column, and of which type.
//!
//! Values are counted per path and kind. At each path the kind with the most values wins, so that a value of
//! another kind costs only itself: it stays in `value`. `Counts::typed` chooses the type, and
//! `is_worth_a_column` the paths. `MAX_PATHS` and `MAX_NAME_BYTES` bound the memory, whatever the number of rows.

mod counts;
mod digits;
mod estimate;
mod matches;
mod prices;
mod rare;

use std::cmp::Reverse;
use std::collections::HashMap;

use ahash::RandomState;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BinaryArray, DictionaryArray, StructArray};

use self::counts::{Counts, Majority, Typed};
use self::estimate::Item;
pub use self::prices::affordable_leaves;
use crate::error::{Error, Result, each_row};
use crate::shred::{LeafType, ShreddingSchema};
use crate::value::{Metadata, Object, Value};

/// The limits of an inferred schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InferOptions {
    /// The most leaf columns; the most filled paths are kept.
    pub max_leaves: usize,
    /// How deep objects and lists may nest: pyarrow rejects files of more than about 100 Parquet levels, and
    /// one level here takes up to three there.
    pub max_depth: usize,
    /// Skip the types that make Spark reject the whole column.
    pub spark_compatible: bool,
}

/// The default of [`InferOptions::max_leaves`], which Python uses too.
pub const MAX_LEAVES: usize = 300;
/// The default of [`InferOptions::max_depth`], which Python uses too.
pub const MAX_DEPTH: usize = 32;

impl Default for InferOptions {
    fn default() -> Self {
        InferOptions { max_leaves: MAX_LEAVES, max_depth: MAX_DEPTH, spark_compatible: true }
    }
}

/// The maximum number of counted paths; later ones are ignored, which bounds the memory.
const MAX_PATHS: usize = 20_000;
/// The most fields that are counted in one object: an object with more is used as a map and must not exhaust
/// `MAX_PATHS`.
const MAX_FIELDS: usize = 1_000;

/// The maximum length of a counted name, because each path stores its name.
const MAX_NAME_BYTES: usize = 1024;

/// The approximate cost of a `typed_value` and its `value` in a file: page headers and footer entries.
const COLUMN_BYTES: u64 = 200;

/// The bytes of the longest row that is compressed to estimate sizes: next to longer rows, columns cost little.
const MAX_SAMPLED_ROW: usize = 4 << 20;

/// Running counts over values; [`finish`](Self::finish) may be called at any time.
#[derive(Debug, Clone)]
pub struct Inference {
    options: InferOptions,
    rows: u64,
    nodes: Vec<Node>,
}

/// The counts of one path.
#[derive(Debug, Clone, Default)]
struct Node {
    counts: Counts,
    name: Box<str>,
    fields: HashMap<Box<str>, usize, RandomState>,
    element: Option<usize>,
    /// Predictions that save a hash lookup, from the last object: its first field, and the field after this one.
    first: Option<usize>,
    next: Option<usize>,
}

const ROOT: usize = 0;

/// A path that is worth a column.
struct Leaf {
    node: usize,
    leaf_type: LeafType,
    rows: u64,
    bytes: u64,
}

impl Inference {
    pub fn new(options: InferOptions) -> Self {
        Inference { options, rows: 0, nodes: vec![Node::default()] }
    }

    /// Count one value.
    pub fn add(&mut self, metadata: &Metadata<'_>, value: &[u8]) -> Result<()> {
        self.rows += 1;
        self.count(ROOT, 0, metadata, value)
    }

    /// Count the rows of `variants`, a struct of `metadata` (binary, or a dictionary of binary) and `value`
    /// (binary); a null row is an SQL NULL and counts for nothing.
    pub fn add_array(&mut self, variants: &StructArray) -> Result<()> {
        for_each_row(variants, |metadata, value| self.add(&metadata, value))
    }

    /// Return the schema with which a file of `rows` rows, of which `sample` has some, takes the fewest bytes. It has
    /// at most `max_leaves` leaves.
    pub fn finish_for(
        &self,
        sample: &[StructArray],
        rows: u64,
        max_leaves: usize,
    ) -> Result<ShreddingSchema> {
        let mut items = Vec::new();
        let mut start = 0;
        for variants in sample {
            for_each_row(variants, |metadata, bytes| {
                if bytes.len() <= MAX_SAMPLED_ROW {
                    items.push(Item { metadata, bytes, start, is_late: false });
                    start += bytes.len();
                }
                Ok(())
            })?;
        }
        if items.is_empty() {
            return Ok(self.finish());
        }
        let middle = items.len() / 2;
        items[middle..].iter_mut().for_each(|item| item.is_late = true);
        let max_leaves = max_leaves.min(self.options.max_leaves);
        let sampled: usize = sample.iter().map(StructArray::len).sum();
        let rows = rows as f64 * items.len() as f64 / sampled.max(1) as f64;
        let mut chosen = estimate::choose(self, &items, rows, max_leaves)?;
        rare::add_columns(self, &mut chosen, rows, max_leaves);
        Ok(self.schema(ROOT, &chosen.leaves, &self.shredded_nodes(&chosen.leaves)))
    }

    /// Return the schema that suits the values counted so far, for a file so large that only the number of leaves
    /// matters.
    pub fn finish(&self) -> ShreddingSchema {
        let mut leaves = Vec::new();
        self.collect(ROOT, &mut leaves, usize::MAX);
        // Stable: of paths filled alike, those first in the order of names are kept.
        leaves.sort_by_key(|leaf| Reverse((leaf.rows, leaf.bytes)));
        leaves.truncate(self.options.max_leaves);
        let kept = leaves.into_iter().map(|leaf| (leaf.node, leaf.leaf_type)).collect();
        self.schema(ROOT, &kept, &self.shredded_nodes(&kept))
    }

    /// Add the leaves below `node` that are worth a column, in the order of their paths; not all if there are more than
    /// `most`.
    fn collect(&self, node: usize, leaves: &mut Vec<Leaf>, most: usize) {
        if leaves.len() > most {
            return;
        }
        let Some(typed) = self.nodes[node].counts.typed(self.options.spark_compatible) else { return };
        if !self.is_worth_a_column(&typed) {
            return;
        }
        match typed.kind {
            Typed::Leaf(leaf_type) => {
                leaves.push(Leaf { node, leaf_type, rows: typed.rows, bytes: typed.bytes });
            }
            Typed::Object => {
                self.sorted_fields(node).into_iter().for_each(|(_, field)| self.collect(field, leaves, most))
            }
            Typed::List => {
                self.nodes[node].element.into_iter().for_each(|element| self.collect(element, leaves, most))
            }
        }
    }

    /// Return whether `typed` values justify a column: they are in a tenth of the rows, or in a hundredth and
    /// large enough in all.
    fn is_worth_a_column(&self, typed: &Majority) -> bool {
        typed.rows * 10 >= self.rows || (typed.rows * 100 >= self.rows && typed.bytes >= COLUMN_BYTES)
    }

    /// Whether each node has one of the `leaves`, or one below it.
    fn shredded_nodes(&self, leaves: &HashMap<usize, LeafType>) -> Vec<bool> {
        let mut shredded = vec![false; self.nodes.len()];
        // A node comes after the node around it.
        for node in (0..shredded.len()).rev() {
            let counted = &self.nodes[node];
            shredded[node] = leaves.contains_key(&node)
                || counted.fields.values().chain(&counted.element).any(|&child| shredded[child]);
        }
        shredded
    }

    /// The schema of `node` with the leaves `kept`; a subtree that is not `shredded` stays in `value`.
    fn schema(&self, node: usize, kept: &HashMap<usize, LeafType>, shredded: &[bool]) -> ShreddingSchema {
        if !shredded[node] {
            return ShreddingSchema::Untyped;
        }
        if let Some(&leaf_type) = kept.get(&node) {
            return ShreddingSchema::Leaf(leaf_type);
        }
        match self.nodes[node].counts.typed(self.options.spark_compatible) {
            Some(Majority { kind: Typed::Object, .. }) => self.object_schema(node, kept, shredded),
            Some(Majority { kind: Typed::List, .. }) => {
                let element = self.nodes[node].element.map(|element| self.schema(element, kept, shredded));
                match element {
                    None | Some(ShreddingSchema::Untyped) => ShreddingSchema::Untyped,
                    Some(element) => ShreddingSchema::List(Box::new(element)),
                }
            }
            _ => ShreddingSchema::Untyped,
        }
    }

    fn object_schema(
        &self,
        node: usize,
        kept: &HashMap<usize, LeafType>,
        shredded: &[bool],
    ) -> ShreddingSchema {
        let fields: Vec<_> = self
            .sorted_fields(node)
            .into_iter()
            .map(|(name, field)| (name.to_owned(), self.schema(field, kept, shredded)))
            .filter(|(_, schema)| *schema != ShreddingSchema::Untyped)
            .collect();
        if fields.is_empty() { ShreddingSchema::Untyped } else { ShreddingSchema::Object(fields) }
    }

    /// The fields of an object that may have columns, in the order of their names. Of names that differ only in
    /// the case of ASCII letters only the most filled may: DuckDB renames the second column of such a pair.
    fn sorted_fields(&self, node: usize) -> Vec<(&str, usize)> {
        let mut fields: Vec<_> =
            self.nodes[node].fields.iter().map(|(name, &field)| (&**name, field)).collect();
        if fields.iter().any(|(name, _)| name.bytes().any(|byte| byte.is_ascii_uppercase())) {
            fields.sort_unstable_by(|&(name, field), &(other, other_field)| {
                let rows = |field| Reverse(self.typed_rows(field));
                let order = lowercase(name).cmp(lowercase(other));
                order.then_with(|| (rows(field), name).cmp(&(rows(other_field), other)))
            });
            fields.dedup_by(|(name, _), (kept, _)| name.eq_ignore_ascii_case(kept));
        }
        fields.sort_unstable();
        fields
    }

    fn is_object(&self, node: usize) -> bool {
        let typed = self.nodes[node].counts.typed(self.options.spark_compatible);
        matches!(typed, Some(Majority { kind: Typed::Object, .. }))
    }

    fn typed_rows(&self, node: usize) -> u64 {
        self.nodes[node].counts.typed(self.options.spark_compatible).map_or(0, |typed| typed.rows)
    }

    fn count(&mut self, node: usize, depth: usize, metadata: &Metadata<'_>, bytes: &[u8]) -> Result<()> {
        let value = Value::decode(bytes)?;
        self.nodes[node].counts.add(&value, bytes.len());
        if depth >= self.options.max_depth {
            return Ok(());
        }
        match value {
            Value::Object(object) => self.count_fields(node, depth, metadata, &object),
            Value::Array(array) if !array.is_empty() => {
                let Some(element) = self.element(node) else { return Ok(()) };
                array.elements().try_for_each(|value| self.count(element, depth + 1, metadata, value?))
            }
            _ => Ok(()),
        }
    }

    fn count_fields(
        &mut self,
        node: usize,
        depth: usize,
        metadata: &Metadata<'_>,
        object: &Object<'_>,
    ) -> Result<()> {
        let mut previous = node;
        for entry in object.fields() {
            let (id, value) = entry?;
            let Some(field) = self.field(node, previous, metadata.get(id)?) else { continue };
            previous = field;
            self.count(field, depth + 1, metadata, value)?;
        }
        Ok(())
    }

    /// The node of the field called `name`, which follows `previous` (the object itself for its first field).
    fn field(&mut self, object: usize, previous: usize, name: &str) -> Option<usize> {
        let is_first = previous == object;
        let guess = if is_first { self.nodes[object].first } else { self.nodes[previous].next };
        if let Some(guess) = guess.filter(|&guess| *self.nodes[guess].name == *name) {
            return Some(guess);
        }
        let field = match self.nodes[object].fields.get(name) {
            Some(&field) => field,
            None => self.add_field(object, name)?,
        };
        if is_first {
            self.nodes[object].first = Some(field);
        } else {
            self.nodes[previous].next = Some(field);
        }
        Some(field)
    }

    fn add_field(&mut self, object: usize, name: &str) -> Option<usize> {
        // The name of an Arrow field ends at a NUL where it crosses to another library.
        let is_nameable = name.len() <= MAX_NAME_BYTES && !name.contains('\0');
        if self.nodes[object].fields.len() >= MAX_FIELDS || !is_nameable {
            return None;
        }
        let field = self.add_node(name)?;
        self.nodes[object].fields.insert(name.into(), field);
        Some(field)
    }

    fn element(&mut self, list: usize) -> Option<usize> {
        if self.nodes[list].element.is_none() {
            self.nodes[list].element = self.add_node("");
        }
        self.nodes[list].element
    }

    fn add_node(&mut self, name: &str) -> Option<usize> {
        if self.nodes.len() >= MAX_PATHS {
            return None;
        }
        self.nodes.push(Node { name: name.into(), ..Node::default() });
        Some(self.nodes.len() - 1)
    }
}

fn lowercase(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| byte.to_ascii_lowercase())
}

/// Call `visit` with each row of `variants`, a struct of `metadata` and `value`, that is not null.
fn for_each_row<'a>(
    variants: &'a StructArray,
    mut visit: impl FnMut(Metadata<'a>, &'a [u8]) -> Result<()>,
) -> Result<()> {
    let values = column(variants, "value")?;
    let values = values.as_binary_opt::<i32>().ok_or_else(|| unsupported("value", "binary", values))?;
    let metadata = MetadataColumn::new(column(variants, "metadata")?)?;
    let mut last: Option<Metadata<'a>> = None;
    each_row((0..variants.len()).filter(|&row| variants.is_valid(row)), |row| {
        let bytes = metadata.value(row);
        let parsed = match last {
            Some(parsed) if parsed.as_bytes() == bytes => parsed,
            _ => Metadata::parse(bytes)?,
        };
        last = Some(parsed);
        visit(parsed, values.value(row))
    })
}

/// The `metadata` column in either of its forms.
enum MetadataColumn<'a> {
    Plain(&'a BinaryArray),
    Dictionary(&'a DictionaryArray<Int32Type>, &'a BinaryArray),
}

impl<'a> MetadataColumn<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self> {
        if let Some(plain) = array.as_binary_opt::<i32>() {
            return Ok(Self::Plain(plain));
        }
        let dictionary = array.as_dictionary_opt::<Int32Type>();
        dictionary
            .and_then(|d| Some(Self::Dictionary(d, d.values().as_binary_opt::<i32>()?)))
            .ok_or_else(|| unsupported("metadata", "binary or a dictionary of binary", array))
    }

    /// The bytes of a row, empty if the column is null.
    fn value(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Plain(array) if array.is_valid(row) => array.value(row),
            Self::Dictionary(array, values) => array.key(row).map_or(&[], |key| values.value(key)),
            Self::Plain(_) => &[],
        }
    }
}

fn column<'a>(variants: &'a StructArray, name: &str) -> Result<&'a ArrayRef> {
    variants.column_by_name(name).ok_or_else(|| {
        Error::unsupported(format!(
            "a variant column is a struct of metadata and value; this one has no {name}"
        ))
    })
}

fn unsupported(name: &str, wanted: &str, array: &ArrayRef) -> Error {
    Error::unsupported(format!(
        "the {name} of a variant column must be {wanted}, and is {}",
        array.data_type()
    ))
}
