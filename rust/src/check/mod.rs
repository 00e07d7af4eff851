//! Find all violations of the specification in the Variants of a file, not only the first.
//!
//! Rules have the ids of docs/audit-rules.md. A lower-case letter after an id separates checks of different severity.
//! Violations are counted by rule and path, so memory does not grow with the number of rows.

mod bounds;
mod file;
mod rows;
mod schema;

use std::collections::BTreeMap;

pub use bounds::{Bound, BoundReport, Offenders, PathCheck, describe_bound};
pub use file::{ColumnCheck, check_column};
pub use schema::{SchemaViolation, check_schema};

/// One rule that is violated at one path, in one or more rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub path: String,
    /// The number of rows, or elements in them, that violate it.
    pub count: u64,
    /// The first of these rows, from 0, with its message.
    pub row: u64,
    pub message: String,
}

/// Violations by rule and path, so that a rule violated in every row is one entry.
#[derive(Debug, Clone, Default)]
pub struct Violations(BTreeMap<(&'static str, String), (u64, u64, String)>);

impl Violations {
    /// Record a violation of `rule`; `message` is called only for the first one.
    pub fn add(&mut self, rule: &'static str, path: &str, row: u64, message: impl FnOnce() -> String) {
        match self.0.get_mut(&(rule, path.to_owned())) {
            Some((count, ..)) => *count += 1,
            None => {
                self.0.insert((rule, path.to_owned()), (1, row, message()));
            }
        }
    }

    /// Merge the violations of later rows.
    pub fn merge(&mut self, later: Self) {
        for (key, (count, row, message)) in later.0 {
            self.0.entry(key).and_modify(|known| known.0 += count).or_insert((count, row, message));
        }
    }

    /// Return all violations, ordered by their first row.
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
