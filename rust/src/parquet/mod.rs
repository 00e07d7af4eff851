//! One Parquet file: its schema, writing it, reading it, and what its footer says.
//!
//! A Variant column is an Arrow struct whose field carries the extension name
//! [`VARIANT_EXTENSION`]; the group it becomes is annotated `VARIANT(1)`.

mod annotation;
mod bloom_filter;
mod checksum;
mod copy;
mod decode;
mod dictionaries;
mod encode;
pub mod footer_check;
mod footers;
pub mod inspect;
mod legacy_calendar;
mod names;
pub mod page_index;
mod pages;
pub mod read;
pub mod schema;
pub mod statistics;
mod thrift;
mod unpacking;
pub mod variants;
pub mod view;
mod view_file;
pub mod write;

pub use annotation::annotate_variants;
pub use encode::{Bound, EncodedExtremes, PageVersion};
pub use inspect::{FileReport, LeafReport, VariantGroup, inspect};
pub use names::TableColumns;
pub use read::{ParquetFile, RangeReader, Scan, Source};
pub use schema::{UUID_EXTENSION, VARIANT_EXTENSION, to_parquet};
pub use write::{FileSummary, FileWriter, LeafSummary, WriteOptions};

/// The maximum nesting depth of a schema, in files read and written.
///
/// The decoder recurses once per level, so a deeper footer could exhaust the stack.
pub const MAX_SCHEMA_DEPTH: usize = 200;
