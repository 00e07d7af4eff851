//! Functions over arrays of Variants, with the names and the semantics of Spark.
//!
//! Each takes Variants that are not shredded, as `struct<metadata, value>`, and works on ranges of rows in parallel.

pub mod change;
pub mod contains;
pub mod contents;
pub mod explode;
pub mod key;
pub mod matches;
pub mod schema_of;

use std::ops::Range;

use rayon::prelude::*;

use crate::error::Result;

/// Rows that are processed by one thread.
pub const ROWS_PER_THREAD: usize = 16 << 10;

/// Apply `work` to ranges of rows in parallel, at least once.
pub fn in_ranges<T: Send>(rows: usize, work: impl Fn(Range<usize>) -> Result<T> + Sync) -> Result<Vec<T>> {
    let starts: Vec<usize> = (0..rows.max(1)).step_by(ROWS_PER_THREAD).collect();
    starts.par_iter().map(|&start| work(start..rows.min(start + ROWS_PER_THREAD))).collect()
}
