//! Parse JSON text into Variant values, and extract leaves of JSON documents.

pub mod leaves;
pub mod lines;
pub mod parse;
pub mod scan;
