//! Encode Arrow arrays as column chunks of a Parquet file.
//!
//! `levels` computes the levels of the leaves of a batch. Then each leaf has a `ChunkEncoder`, which is independent
//! of those of other leaves.

mod chunk;
mod compress;
mod delta;
mod dictionary;
mod extremes;
mod fixed;
mod hybrid;
mod levels;
mod numbers;
mod page_bytes;
mod strings;
mod values;

pub use chunk::PageVersion;
pub(super) use chunk::{
    Chunk, ChunkEncoder, Counts, LeafStatistics, PAGE_ROWS, write_dictionary, write_page_v1, write_page_v2,
};
#[cfg(test)]
pub(super) use delta::encode as encode_deltas;
pub use extremes::{Bound, EncodedExtremes};
#[cfg(test)]
pub(super) use hybrid::encode as encode_hybrid;
pub(super) use hybrid::{GROUP, encode_run, pack, width_of};
pub(super) use levels::{leaves, variable_bytes};
pub(super) use page_bytes::PageBytes;
