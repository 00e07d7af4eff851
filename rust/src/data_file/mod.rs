//! One data file: batches with JSON text or Variants into shredded Parquet, and back.

mod columns;
pub mod read;
pub mod stats;
pub mod units;
pub mod write;
