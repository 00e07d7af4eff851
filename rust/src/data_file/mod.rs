//! One data file: write batches with JSON text or Variants as shredded Parquet, and read them back.
//!
//! The modules state what bounds their memory.

mod columns;
pub mod conditions;
mod dictionaries;
pub mod filter;
pub mod members;
pub mod read;
pub mod residual_rows;
mod rows;
pub mod stats;
mod stored;
pub mod text;
mod transfer;
pub mod units;
pub mod write;
