//! JSON text into Variant values, and back.

pub mod leaves;
pub mod lines;
pub mod parse;
pub mod scan;
pub mod write;
