//! Parse JSON text into Variant values, and extract leaves of JSON documents.

mod keys;
pub mod leaves;
pub mod lines;
pub mod odd_rows;
pub mod parse;
mod residual;
pub mod scan;
