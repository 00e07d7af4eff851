//! Dictionaries that have all values of a column or path in a row group.

use std::ops::Range;

use arrow_array::RecordBatch;

use super::units::{Location, location};
use crate::error::Result;
use crate::parquet::ParquetFile;
use crate::parquet::statistics::Statistics;
use crate::value::path::Step;

/// A dictionary is read before the rows only if these have this many times its bytes: it is read again with them.
const LEAST_SAVED: u64 = 16;
/// The bytes of rows that are decoded in the time that it takes to begin with a dictionary.
const BYTES_TO_BEGIN: u64 = 4 << 10;

/// The dictionary of one leaf in a row group, and its bytes in the file.
pub(super) struct Dictionary<'f> {
    file: &'f ParquetFile,
    row_group: usize,
    leaf: usize,
    range: Range<u64>,
}

impl<'f> Dictionary<'f> {
    /// Find the dictionary that has all values of a column, or of a path in a Variant, in a row group, except nulls.
    ///
    /// Dictionaries in an object store are not used: each would take another request.
    pub fn find(
        file: &'f ParquetFile,
        row_group: usize,
        column: &[String],
        path: Option<&[Step]>,
    ) -> Result<Option<Self>> {
        let fields = file.arrow_schema().fields();
        let Location::Leaf(leaf) = location(fields, column, path)? else { return Ok(None) };
        let has_nulls_only = |value| Statistics::of_chunk(file, row_group, value).is_variant_null();
        let is_usable = !file.is_remote() && leaf.value.is_none_or(has_nulls_only);
        let range = file.dictionary_range(row_group, leaf.typed_value).filter(|_| is_usable);
        Ok(range.map(|range| Dictionary { file, row_group, leaf: leaf.typed_value, range }))
    }

    /// Whether reading it takes much less time than reading rows of this size.
    pub fn is_small(&self, bytes_of_rows: u64) -> bool {
        (self.range.end - self.range.start + BYTES_TO_BEGIN) * LEAST_SAVED <= bytes_of_rows
    }

    /// Return its values as rows without the other columns; `None` for types that `dictionary_rows` does not decode.
    pub fn rows(self) -> Result<Option<RecordBatch>> {
        self.file.dictionary_rows(self.row_group, self.leaf, self.range)
    }
}
