//! Residual rows: rows that leave a value in the `value` of a group that has a `typed_value`.
//!
//! Engines read a path like a typed column, and skip by its bounds, only in files where each `value` on the way to it
//! is empty or has nothing but Variant null. So the writer of a file separates its residual rows, for another file.
//! Lists do not count: no engine reads paths through them like this, and their `value` is on the way to no other path.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::error::Result;
use crate::json::residual_rows::{GroupId, ResidualRow};
use crate::parquet::read::ParquetFile;
use crate::parquet::schema::is_variant;
use crate::parquet::statistics::Statistics;
use crate::value;
use crate::value::column::Bytes;
use crate::value::column::leaf_count;

/// At most one row in this many is separated, because each of them is converted twice.
const ROWS_PER_RESIDUAL_ROW: u64 = 4;

/// The number of residual rows of a file that may always be separated: its first rows may have little in common with the
/// others.
const MIN_RESIDUAL_ROWS: u64 = 1024;

/// A `value` that one row in this many fills is not kept empty if such rows follow each other: in sorted rows, there may be
/// many more of them to come.
const ROWS_PER_RUN: u64 = 50;

/// The values of a leaf from which on the share of those without the type of its column counts.
const MIN_VALUES: u64 = 64;

/// Decides which rows of a file are separated.
#[derive(Debug, Clone)]
pub(super) struct ResidualRows {
    /// Those that stay empty in the file.
    nodes: Vec<Node>,
    /// The rows of the file so far, and those of them that are separated.
    rows: u64,
    separated: u64,
}

/// A `value` next to a `typed_value`.
#[derive(Debug, Clone)]
struct Node {
    column: usize,
    /// The position of its group among those of the column that have a `typed_value`.
    group: GroupId,
    /// The positions of the children from the column down to the group that has the `value`.
    path: Vec<usize>,
    leaf: usize,
    /// What a leaf has next to the `value`; `None` for an object.
    typed: Option<TypedLeaf>,
    /// The rows so far that fill the `value`.
    filled: u64,
}

/// The `typed_value` of a leaf, and its values in the rows of the file so far that are not residual.
#[derive(Debug, Clone, Copy)]
struct TypedLeaf {
    leaf: usize,
    values: u64,
}

impl ResidualRows {
    /// The decisions for a file with the columns of `schema`, in which Variants have the name of the extension.
    pub(super) fn new(schema: &Schema) -> Self {
        Self::with_variants(schema, is_variant)
    }

    fn with_variants(schema: &Schema, is_variant: fn(&Field) -> bool) -> Self {
        let mut nodes = Vec::new();
        let mut leaf = 0;
        for (column, field) in schema.fields().iter().enumerate() {
            let node = Node { column, group: 0, path: Vec::new(), leaf, typed: None, filled: 0 };
            let mut groups = Groups { kept: Vec::new(), count: 0 };
            groups.add_field(field, &node, is_variant);
            nodes.extend(groups.kept);
            leaf += leaf_count(field.data_type());
        }
        ResidualRows { nodes, rows: 0, separated: 0 }
    }

    /// The groups whose `value` stays empty, if they all are in this column.
    pub(super) fn groups(&self, column: usize) -> Option<Vec<GroupId>> {
        self.nodes.iter().map(|node| (node.column == column).then_some(node.group)).collect()
    }

    /// Return which of `rows` rows are separated, `None` for none.
    pub(super) fn select(&mut self, columns: &[ArrayRef], rows: usize) -> Result<Option<BooleanArray>> {
        let filled = self.nodes.iter().map(|node| node.filled_rows(columns)).collect::<Result<Vec<_>>>()?;
        let mut is_residual = vec![false; rows];
        filled.iter().flatten().for_each(|&row| is_residual[row] = true);
        let residual: Vec<usize> = (0..rows).filter(|&row| is_residual[row]).collect();
        self.nodes.iter_mut().for_each(|node| node.count_typed(columns, &residual));
        let separated = self.choose(filled, rows);
        Ok(separated.contains(&true).then(|| BooleanArray::from(separated)))
    }

    /// Return whether all of `residual_rows`, which a parser left out of `rows` rows, are separated. Otherwise fewer
    /// groups stay empty from now on, and the parser has to leave out only the rows with values there.
    ///
    /// `columns` has the other rows.
    pub(super) fn admit_parsed(
        &mut self,
        columns: &[ArrayRef],
        residual_rows: &[ResidualRow],
        rows: usize,
    ) -> bool {
        let mut filled = vec![Vec::new(); self.nodes.len()];
        for residual_row in residual_rows {
            for group in &residual_row.groups {
                if let Ok(number) = self.nodes.binary_search_by_key(group, |node| node.group) {
                    filled[number].push(residual_row.row);
                }
            }
        }
        self.nodes.iter_mut().for_each(|node| node.count_typed(columns, &[]));
        let nodes = self.nodes.len();
        self.choose(filled, rows);
        self.nodes.len() == nodes
    }

    /// Return for each of `rows` rows whether it is separated, by the rows that fill each node.
    ///
    /// Each `value` is kept empty, starting with the one that the fewest rows fill, while the separated rows are a small
    /// part of those so far. The others may have values in all of the file.
    fn choose(&mut self, filled: Vec<Vec<usize>>, rows: usize) -> Vec<bool> {
        self.rows += rows as u64;
        let mut residual = Vec::new();
        let mut given_up = Vec::new();
        for (number, (node, filled)) in self.nodes.iter_mut().zip(filled).enumerate() {
            node.filled += filled.len() as u64;
            let is_mixed = node.typed.is_some_and(|leaf| is_mixed(leaf.values, node.filled));
            if is_mixed || is_run(filled.len(), rows) && is_frequent(node.filled, self.rows) {
                given_up.push(number);
            } else if !filled.is_empty() {
                residual.push((number, filled));
            }
        }
        residual.sort_by_key(|(_, rows)| rows.len());
        let mut separated = vec![false; rows];
        for (number, rows) in residual {
            let new = rows.iter().filter(|&&row| !separated[row]).count() as u64;
            if new > self.allowance() {
                given_up.push(number);
                continue;
            }
            self.separated += new;
            rows.into_iter().for_each(|row| separated[row] = true);
        }
        self.give_up(&given_up);
        separated
    }

    /// Return whether the file may have a row group of another file with the same columns as it is. Otherwise its rows
    /// are written one by one, and some of them separated.
    pub(super) fn admit(&mut self, file: &ParquetFile, row_group: usize) -> bool {
        let Some(group) = file.row_groups().get(row_group) else { return true };
        self.rows += group.num_rows().unsigned_abs();
        let mut given_up = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let Some(chunk) = group.columns().get(node.leaf) else { continue };
            if Statistics::of_chunk(file, row_group, node.leaf).is_variant_null() {
                continue;
            }
            let values = present(chunk);
            let typed = node.typed.and_then(|typed| group.columns().get(typed.leaf)).map(present);
            if typed.is_none_or(|typed| !is_mixed(typed, values)) && values <= self.allowance() {
                return false;
            }
            given_up.push(number);
        }
        self.give_up(&given_up);
        true
    }

    /// The number of rows that can still be separated.
    fn allowance(&self) -> u64 {
        (self.rows / ROWS_PER_RESIDUAL_ROW).max(MIN_RESIDUAL_ROWS).saturating_sub(self.separated)
    }

    fn give_up(&mut self, numbers: &[usize]) {
        let mut number = 0;
        self.nodes.retain(|_| {
            number += 1;
            !numbers.contains(&(number - 1))
        });
    }
}

/// Whether too many values of a leaf are not `typed` for its `value` to be kept empty.
fn is_mixed(typed: u64, others: u64) -> bool {
    others * ROWS_PER_RESIDUAL_ROW > others + typed && (typed == 0 || others + typed >= MIN_VALUES)
}

/// Whether most of `rows` rows are residual, as they are in a part of sorted rows.
fn is_run(residual: usize, rows: usize) -> bool {
    residual * 2 > rows
}

/// Whether too many of the rows so far fill a `value` for a run of them to be an exception.
fn is_frequent(filled: u64, rows: u64) -> bool {
    filled >= MIN_RESIDUAL_ROWS && filled * ROWS_PER_RUN > rows
}

/// The values of a column that are not null.
fn present(chunk: &ColumnChunkMetaData) -> u64 {
    let nulls = chunk.statistics().and_then(|statistics| statistics.null_count_opt()).unwrap_or(0);
    chunk.num_values().unsigned_abs().saturating_sub(nulls)
}

/// Whether the rows of a file are as a writer leaves them that separates residual rows.
pub fn is_separated(file: &ParquetFile) -> bool {
    // The schema of a file has no names of extensions.
    let mut residual_rows = ResidualRows::with_variants(file.arrow_schema(), has_variant_layout);
    (0..file.row_groups().len()).all(|row_group| residual_rows.admit(file, row_group))
}

impl Node {
    fn child(&self, position: usize, leaf: usize) -> Self {
        Node { path: [&self.path[..], &[position]].concat(), leaf, ..*self }
    }

    /// The groups of the column down to the one of the node.
    fn groups_around<'a>(&self, columns: &'a [ArrayRef]) -> Vec<&'a StructArray> {
        let mut groups = vec![columns[self.column].as_struct()];
        for &position in &self.path {
            groups.extend(groups.last().map(|group| group.column(position).as_struct()));
        }
        groups
    }

    /// The rows with a value other than Variant null, in ascending order.
    fn filled_rows(&self, columns: &[ArrayRef]) -> Result<Vec<usize>> {
        let around = self.groups_around(columns);
        let Some(value) = around.last().and_then(|group| group.column_by_name("value")) else {
            return Ok(Vec::new());
        };
        if value.null_count() == value.len() {
            return Ok(Vec::new());
        }
        let values = Bytes::new(value)?;
        let is_filled = |row: &usize| {
            values.get(*row).is_some_and(|bytes| bytes != value::NULL)
                && around.iter().all(|array| array.is_valid(*row))
        };
        Ok((0..value.len()).filter(is_filled).collect())
    }

    /// Add the values with the type of a leaf in all rows but `residual` ones.
    fn count_typed(&mut self, columns: &[ArrayRef], residual: &[usize]) {
        let around = self.groups_around(columns);
        let typed = around.last().and_then(|group| group.column_by_name("typed_value"));
        if let (Some(leaf), Some(typed)) = (&mut self.typed, typed) {
            let in_residual_rows = residual.iter().filter(|&&row| typed.is_valid(row)).count();
            leaf.values += (typed.len() - typed.null_count() - in_residual_rows) as u64;
        }
    }
}

fn has_variant_layout(field: &Field) -> bool {
    let DataType::Struct(fields) = field.data_type() else { return false };
    ["metadata", "value", "typed_value"].iter().all(|name| fields.find(name).is_some())
}

/// The groups of a column that have a `typed_value`.
struct Groups {
    /// Those whose `value` is kept empty.
    kept: Vec<Node>,
    count: GroupId,
}

impl Groups {
    /// Add the groups in the column or part of a struct at `node`.
    fn add_field(&mut self, field: &Field, node: &Node, is_variant: fn(&Field) -> bool) {
        match field.data_type() {
            DataType::Struct(fields) if is_variant(field) => self.add(fields, node, true),
            DataType::Struct(fields) => {
                each_child(fields, node, |field, child| self.add_field(field, &child, is_variant));
            }
            _ => {}
        }
    }

    /// Add a group of `value` and `typed_value`, and those within it; keep none within a list.
    fn add(&mut self, fields: &Fields, node: &Node, is_kept: bool) {
        let Some((_, typed)) = fields.find("typed_value") else { return };
        let is_list = matches!(typed.data_type(), DataType::List(_) | DataType::LargeList(_));
        let mut found = Node { group: self.count, typed: None, ..node.clone() };
        self.count += 1;
        each_child(fields, node, |field, child| match (field.name().as_str(), field.data_type()) {
            ("value", _) => found.leaf = child.leaf,
            ("typed_value", data_type) if !data_type.is_nested() => {
                found.typed = Some(TypedLeaf { leaf: child.leaf, values: 0 });
            }
            _ => {}
        });
        if is_kept && !is_list {
            self.kept.push(found);
        }
        each_child(fields, node, |field, child| match (field.name().as_str(), field.data_type()) {
            ("typed_value", DataType::Struct(parts)) => each_child(parts, &child, |part, child| {
                if let DataType::Struct(fields) = part.data_type() {
                    self.add(fields, &child, is_kept);
                }
            }),
            ("typed_value", DataType::List(element) | DataType::LargeList(element)) => {
                if let DataType::Struct(fields) = element.data_type() {
                    self.add(fields, &child, false);
                }
            }
            _ => {}
        });
    }
}

fn each_child(fields: &Fields, node: &Node, mut visit: impl FnMut(&Field, Node)) {
    let mut leaf = node.leaf;
    for (position, field) in fields.iter().enumerate() {
        visit(field, node.child(position, leaf));
        leaf += leaf_count(field.data_type());
    }
}
