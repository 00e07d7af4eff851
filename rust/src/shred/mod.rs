//! Shredding: Variant values as typed Arrow columns, and back (VariantShredding.md).

pub mod columns;
pub mod extract;
pub mod layout;
pub mod names;
mod pieces;
pub mod print;
pub(crate) mod reader;
pub mod schema;
pub(crate) mod shapes;
pub mod text_buffers;
pub mod tree;
pub mod unshred;
pub mod variants;

pub use reader::OnConflict;
pub use schema::{LeafType, Numeric, ShreddingSchema};
