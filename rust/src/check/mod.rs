//! What is wrong with the Variants of a file: each violation of the specification's rules, and not just the first.
//!
//! The rules are named by their ids in the list of requirements; a letter behind an id tells apart what weighs
//! differently.

mod bounds;
mod file;
mod rows;
mod schema;

use std::collections::BTreeMap;

pub use bounds::{Bound, BoundReport, Offenders, PathCheck, describe_bound};
pub use file::{ColumnCheck, check_column};
pub use schema::{SchemaViolation, check_schema};

/// One rule that is broken at one path, in one row or in many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub path: String,
    /// How many rows, or elements of theirs, break it.
    pub count: u64,
    /// The first of the rows, from 0, and what is wrong in it.
    pub row: u64,
    pub message: String,
}

/// Violations by rule and path, so that what breaks in every row is one entry.
#[derive(Debug, Clone, Default)]
pub struct Violations(BTreeMap<(&'static str, String), (u64, u64, String)>);

impl Violations {
    /// Note that `rule` is broken; `message` is asked for when it is the first time.
    pub fn add(&mut self, rule: &'static str, path: &str, row: u64, message: impl FnOnce() -> String) {
        match self.0.get_mut(&(rule, path.to_owned())) {
            Some((count, ..)) => *count += 1,
            None => {
                self.0.insert((rule, path.to_owned()), (1, row, message()));
            }
        }
    }

    /// Take in the violations of later rows.
    pub fn merge(&mut self, later: Self) {
        for (key, (count, row, message)) in later.0 {
            self.0.entry(key).and_modify(|known| known.0 += count).or_insert((count, row, message));
        }
    }

    /// All of them, ordered by the first row that has each.
    pub fn into_list(self) -> Vec<Violation> {
        let mut list: Vec<Violation> = self
            .0
            .into_iter()
            .map(|((rule, path), (count, row, message))| Violation { rule, path, count, row, message })
            .collect();
        list.sort_by_key(|violation| violation.row);
        list
    }
}
