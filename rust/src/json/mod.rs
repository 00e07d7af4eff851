//! Parse JSON text into Variant values, and extract leaves of JSON documents.

mod keys;
pub mod leaves;
pub mod lines;
pub mod parse;
mod residual;
pub mod residual_rows;
pub mod scan;
