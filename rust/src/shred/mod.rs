//! Shredding: Variant values as typed Arrow columns, and back (VariantShredding.md).

pub mod schema;

pub use schema::{LeafType, ShreddingSchema};
