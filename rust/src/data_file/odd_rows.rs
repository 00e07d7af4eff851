//! Odd rows: rows that leave a value in the `value` of a group that has a `typed_value`.
//!
//! Engines read a path like a typed column, and skip by its bounds, only in files where each `value` on the way to it
//! is empty or has nothing but Variant null. So the writer of a file sets its odd rows apart, for another file.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::{DataType, Field, Fields, Schema};

use crate::error::Result;
use crate::json::odd_rows::{GroupId, OddRow};
use crate::parquet::read::ParquetFile;
use crate::parquet::schema::is_variant;
use crate::parquet::statistics::Statistics;
use crate::shred::extract::leaf_count;
use crate::value;
use crate::value::column::Bytes;

/// At most one row in this many is set apart, because each of them is converted twice.
const ROWS_PER_ODD_ROW: u64 = 4;

/// The odd rows of a file that may be set apart whatever its rows: the first ones may have little in common with the
/// others.
const MIN_ODD_ROWS: u64 = 1024;

/// Decides which rows of a file are set apart.
#[derive(Debug, Clone)]
pub(super) struct OddRows {
    /// Those that stay empty in the file.
    nodes: Vec<Node>,
    /// The rows of the file so far, and those of them that are set apart.
    rows: u64,
    apart: u64,
}

/// A `value` next to a `typed_value`.
#[derive(Debug, Clone)]
struct Node {
    column: usize,
    /// The position of its group in the column.
    group: GroupId,
    /// The positions of the children from the column down to the `value`; `None` stands for the elements of a list.
    path: Vec<Option<usize>>,
    leaf: usize,
}

impl OddRows {
    /// The decisions for a file with the columns of `schema`, in which Variants have the name of the extension.
    pub(super) fn new(schema: &Schema) -> Self {
        Self::with_variants(schema, is_variant)
    }

    fn with_variants(schema: &Schema, is_variant: fn(&Field) -> bool) -> Self {
        let mut nodes = Vec::new();
        let mut leaf = 0;
        for (column, field) in schema.fields().iter().enumerate() {
            let first = nodes.len();
            add_nodes(&mut nodes, field, Node { column, group: 0, path: Vec::new(), leaf }, is_variant);
            nodes[first..].iter_mut().enumerate().for_each(|(group, node)| node.group = group);
            leaf += leaf_count(field.data_type());
        }
        OddRows { nodes, rows: 0, apart: 0 }
    }

    /// The groups whose `value` stays empty, if they all are in this column.
    pub(super) fn groups(&self, column: usize) -> Option<Vec<GroupId>> {
        self.nodes.iter().map(|node| (node.column == column).then_some(node.group)).collect()
    }

    /// Return which of `rows` rows are set apart, `None` for none.
    pub(super) fn select(&mut self, columns: &[ArrayRef], rows: usize) -> Result<Option<BooleanArray>> {
        let filled = self.nodes.iter().map(|node| node.filled_rows(columns)).collect::<Result<_>>()?;
        let apart = self.choose(filled, rows);
        Ok(apart.contains(&true).then(|| BooleanArray::from(apart)))
    }

    /// Return whether all of `odd_rows`, which a parser left out of `rows` rows, are set apart. Otherwise fewer groups
    /// stay empty from now on, and the parser has to leave out only the rows with values there.
    pub(super) fn admit_parsed(&mut self, odd_rows: &[OddRow], rows: usize) -> bool {
        let mut filled = vec![Vec::new(); self.nodes.len()];
        for odd_row in odd_rows {
            for group in &odd_row.groups {
                if let Ok(number) = self.nodes.binary_search_by_key(group, |node| node.group) {
                    filled[number].push(odd_row.row);
                }
            }
        }
        let nodes = self.nodes.len();
        self.choose(filled, rows);
        self.nodes.len() == nodes
    }

    /// Return for each of `rows` rows whether it is set apart, by the rows that have a value in each node.
    ///
    /// Each `value` is kept empty, starting with the one that the fewest rows fill, while the rows set apart are a small
    /// part of those so far. The others may have values in all of the file.
    fn choose(&mut self, filled: Vec<Vec<usize>>, rows: usize) -> Vec<bool> {
        self.rows += rows as u64;
        let mut filled: Vec<_> =
            filled.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()).collect();
        filled.sort_by_key(|(_, rows)| rows.len());
        let mut apart = vec![false; rows];
        let mut given_up = Vec::new();
        for (number, rows) in filled {
            let new = rows.iter().filter(|&&row| !apart[row]).count() as u64;
            if new > self.allowance() {
                given_up.push(number);
                continue;
            }
            self.apart += new;
            rows.into_iter().for_each(|row| apart[row] = true);
        }
        self.give_up(&given_up);
        apart
    }

    /// Return whether the file may have a row group of another file with the same columns as it is. Otherwise its rows
    /// are written one by one, and some of them set apart.
    pub(super) fn admit(&mut self, file: &ParquetFile, row_group: usize) -> bool {
        let Some(group) = file.row_groups().get(row_group) else { return true };
        self.rows += group.num_rows().unsigned_abs();
        let mut given_up = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let Some(chunk) = group.columns().get(node.leaf) else { continue };
            let statistics = Statistics::of_chunk(file, row_group, node.leaf);
            let is_null = |bound: Option<&[u8]>| bound == Some(value::NULL);
            if statistics.all_null || is_null(statistics.min) && is_null(statistics.max) {
                continue;
            }
            let nulls = chunk.statistics().and_then(|statistics| statistics.null_count_opt()).unwrap_or(0);
            if chunk.num_values().unsigned_abs().saturating_sub(nulls) <= self.allowance() {
                return false;
            }
            given_up.push(number);
        }
        self.give_up(&given_up);
        true
    }

    /// The number of rows that can still be set apart.
    fn allowance(&self) -> u64 {
        (self.rows / ROWS_PER_ODD_ROW).max(MIN_ODD_ROWS).saturating_sub(self.apart)
    }

    fn give_up(&mut self, numbers: &[usize]) {
        let mut number = 0;
        self.nodes.retain(|_| {
            number += 1;
            !numbers.contains(&(number - 1))
        });
    }
}

/// Whether the rows of a file are as a writer leaves them that sets odd rows apart.
pub fn is_separated(file: &ParquetFile) -> bool {
    // The schema of a file has no names of extensions.
    let mut odd_rows = OddRows::with_variants(file.arrow_schema(), has_variant_layout);
    (0..file.row_groups().len()).all(|row_group| odd_rows.admit(file, row_group))
}

impl Node {
    fn child(&self, step: Option<usize>, leaf: usize) -> Self {
        Node { path: [&self.path[..], &[step]].concat(), leaf, ..*self }
    }

    /// The rows with a value other than Variant null, in ascending order.
    fn filled_rows(&self, columns: &[ArrayRef]) -> Result<Vec<usize>> {
        let mut value = &columns[self.column];
        let mut around = Vec::with_capacity(self.path.len());
        for step in &self.path {
            around.push(value);
            value = match step {
                Some(position) => value.as_struct().column(*position),
                None => value.as_list::<i32>().values(),
            };
        }
        if value.null_count() == value.len() {
            return Ok(Vec::new());
        }
        let values = Bytes::new(value)?;
        let is_filled = |slot: &usize| values.get(*slot).is_some_and(|bytes| bytes != value::NULL);
        let mut rows: Vec<usize> =
            (0..value.len()).filter(is_filled).filter_map(|slot| self.row_of(&around, slot)).collect();
        rows.dedup();
        Ok(rows)
    }

    /// The row of a slot below the arrays `around` it, `None` if one of these is null there.
    fn row_of(&self, around: &[&ArrayRef], mut slot: usize) -> Option<usize> {
        for (array, step) in around.iter().zip(&self.path).rev() {
            if step.is_none() {
                let offsets = array.as_list::<i32>().value_offsets();
                let after = offsets.partition_point(|&offset| offset as usize <= slot);
                // The lists may be a part of those that the elements belong to.
                slot = (1..offsets.len()).contains(&after).then(|| after - 1)?;
            }
            if array.is_null(slot) {
                return None;
            }
        }
        Some(slot)
    }
}

fn has_variant_layout(field: &Field) -> bool {
    let DataType::Struct(fields) = field.data_type() else { return false };
    ["metadata", "value", "typed_value"].iter().all(|name| fields.find(name).is_some())
}

/// Add the nodes in the column or part of a struct at `node`.
fn add_nodes(nodes: &mut Vec<Node>, field: &Field, node: Node, is_variant: fn(&Field) -> bool) {
    match field.data_type() {
        DataType::Struct(fields) if is_variant(field) => add_group(nodes, fields, &node),
        DataType::Struct(fields) => {
            each_child(fields, &node, |field, child| add_nodes(nodes, field, child, is_variant));
        }
        _ => {}
    }
}

/// Add the nodes of a group of `value` and `typed_value`.
fn add_group(nodes: &mut Vec<Node>, fields: &Fields, node: &Node) {
    if fields.find("typed_value").is_none() {
        return;
    }
    each_child(fields, node, |field, child| match (field.name().as_str(), field.data_type()) {
        ("value", _) => nodes.push(child),
        ("typed_value", DataType::Struct(parts)) => each_child(parts, &child, |part, child| {
            if let DataType::Struct(fields) = part.data_type() {
                add_group(nodes, fields, &child);
            }
        }),
        ("typed_value", DataType::List(element)) => {
            if let DataType::Struct(fields) = element.data_type() {
                add_group(nodes, fields, &child.child(None, child.leaf));
            }
        }
        _ => {}
    });
}

fn each_child(fields: &Fields, node: &Node, mut visit: impl FnMut(&Field, Node)) {
    let mut leaf = node.leaf;
    for (position, field) in fields.iter().enumerate() {
        visit(field, node.child(Some(position), leaf));
        leaf += leaf_count(field.data_type());
    }
}
