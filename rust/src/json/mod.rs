//! JSON text into Variant values, and back.

pub mod parse;
pub mod scan;
pub mod write;
