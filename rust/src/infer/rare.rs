//! Give columns to the rare fields of shredded objects, so that the `value` of these objects stays empty.
//!
//! In a file where an object has something in its `value`, engines read whole Variants instead of the columns of the
//! object, and rows with such a field are residual. A field that saves no bytes in a column of its own gets one if
//! this costs less than the rows that have it.

use std::collections::HashMap;

use super::counts::{Majority, Typed};
use super::estimate::Choice;
use super::prices::{Position, Prices};
use super::{Inference, MAX_FIELDS, ROOT};
use crate::shred::LeafType;

/// The share of the file that may be spent on columns of rare fields.
const SHARE: f64 = 0.01;
/// The most columns of rare fields: names may be data.
const MAX_COLUMNS: usize = 64;
/// How often a field occurs in the counted rows, at least.
const MIN_VALUES: u64 = 2;
/// The share of the bytes of a field that a column of its own adds: values may repeat others of their rows.
const REPEATED: f64 = 0.25;
/// At most one counted row in this many may keep a value in the `value` of an object. Otherwise other fields get no
/// columns for its sake, because more rows are not separated.
const ROWS_PER_RESIDUAL_ROW: u64 = 4;
/// The type of a column without values, next to a `value` with all of them. A field without `typed_value` would take
/// the columns of all other fields from DuckDB.
const NO_TYPE: LeafType = LeafType::String;

/// Add the columns of rare fields to those that are `chosen` for a file of `rows` rows.
pub(super) fn add_columns(inference: &Inference, chosen: &mut Choice, rows: f64, max_leaves: usize) {
    let shredded = inference.shredded_nodes(&chosen.leaves);
    let columns = max_leaves.saturating_sub(chosen.leaves.len()).min(MAX_COLUMNS);
    let counted = inference.rows.max(1) as f64;
    let mut budget = Budget {
        inference,
        shredded,
        prices: chosen.prices,
        scale: rows / counted,
        worth: chosen.bytes / counted,
        columns,
        bytes: chosen.bytes * SHARE,
    };
    budget.spend(ROOT, Position::default(), &mut chosen.leaves);
}

/// What may still be spent on columns.
struct Budget<'i> {
    inference: &'i Inference,
    shredded: Vec<bool>,
    prices: Prices,
    /// The rows of the file for each row that was counted, and their bytes.
    scale: f64,
    worth: f64,
    columns: usize,
    bytes: f64,
}

/// A rare field and the price of its column.
struct Field {
    node: usize,
    values: u64,
    price: f64,
}

impl Budget<'_> {
    /// Choose columns for the object `node` and for those within it, unless its `value` is filled nevertheless.
    fn spend(&mut self, node: usize, position: Position, leaves: &mut HashMap<usize, LeafType>) {
        let inference = self.inference;
        let counted = &inference.nodes[node];
        let is_map = counted.fields.len() >= MAX_FIELDS;
        if is_map || leaves.contains_key(&node) || !self.shredded[node] || !inference.is_object(node) {
            return;
        }
        let position = position.below(&counted.name, false);
        let mut left = counted.counts.values() - counted.counts.objects();
        let rare = counted.fields.values().filter(|&&field| !self.shredded[field]);
        left += rare.map(|&field| inference.nodes[field].counts.values()).sum::<u64>();
        let (mut columns, mut bytes) = (self.columns, self.bytes);
        let mut added = Vec::new();
        for field in self.worthwhile(node, position) {
            if columns > 0 && field.price <= bytes {
                (columns, bytes) = (columns - 1, bytes - field.price);
                left -= field.values;
                added.push(field.node);
            }
        }
        if left * ROWS_PER_RESIDUAL_ROW > inference.rows {
            return;
        }
        (self.columns, self.bytes) = (columns, bytes);
        leaves.extend(added.into_iter().map(|field| (field, self.leaf_type(field))));
        for (_, field) in inference.sorted_fields(node) {
            if self.shredded[field] {
                self.spend(field, position, leaves);
            }
        }
    }

    /// The fields of `node` whose rows take more bytes than a column costs, those in the most rows first.
    ///
    /// There are none if most names occur in one row, because they are data then.
    fn worthwhile(&self, node: usize, position: Position) -> Vec<Field> {
        let mut found = Vec::new();
        let (mut once, mut often) = (0, 0);
        for (name, node) in self.inference.sorted_fields(node) {
            let counts = &self.inference.nodes[node].counts;
            let values = counts.values();
            if self.shredded[node] {
                continue;
            }
            if values < MIN_VALUES {
                once += 1;
                continue;
            }
            often += 1;
            let repeated = REPEATED * counts.bytes() as f64 * self.scale;
            let price = self.prices.leaf(position, name, 0.0, false) + repeated;
            if values as f64 * self.worth >= price {
                found.push(Field { node, values, price });
            }
        }
        if once > often {
            return Vec::new();
        }
        // Stable: of fields in as many rows, the first in the order of names.
        found.sort_by_key(|field| std::cmp::Reverse(field.values));
        found
    }

    fn leaf_type(&self, node: usize) -> LeafType {
        match self.inference.nodes[node].counts.typed(self.inference.options.spark_compatible) {
            Some(Majority { kind: Typed::Leaf(leaf_type), .. }) => leaf_type,
            _ => NO_TYPE,
        }
    }
}
