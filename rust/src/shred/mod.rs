//! Shredding: Variant values as typed Arrow columns, and back (VariantShredding.md).

pub mod columns;
pub mod names;
pub mod schema;
pub mod tree;

pub use schema::{LeafType, ShreddingSchema};
