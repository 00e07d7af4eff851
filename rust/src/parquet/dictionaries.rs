//! Read the dictionary of a column chunk without its pages.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::RecordBatch;
use parquet::basic::Encoding;
use parquet::file::page_index::offset_index::PageLocation;

use super::decode::Plan;
use super::pages::{RowGroup, byte_range};
use super::read::{ParquetFile, guarded};
use crate::error::Result;

impl ParquetFile {
    /// Return the bytes of a dictionary that has all values of a column chunk; `None` if it may lack some.
    pub fn dictionary_range(&self, row_group: usize, leaf: usize) -> Option<Range<u64>> {
        let group = self.row_groups().get(row_group)?;
        let chunk = group.columns().get(leaf)?;
        let encodings = chunk.page_encoding_stats_mask()?;
        let has_all = [Encoding::RLE_DICTIONARY, Encoding::PLAIN_DICTIONARY]
            .into_iter()
            .any(|encoding| encodings.is_only(encoding));
        let start = u64::try_from(chunk.dictionary_page_offset().filter(|_| has_all)?).ok()?;
        let end = u64::try_from(chunk.data_page_offset()).ok()?;
        (start < end && end <= byte_range(group, leaf).ok()?.end).then_some(start..end)
    }

    /// Return a row for each value in the dictionary of a column chunk, which lies in `range`, with the structs around
    /// it; `None` for types and encodings that are decoded by the `parquet` crate.
    pub fn dictionary_rows(
        &self,
        row_group: usize,
        leaf: usize,
        range: Range<u64>,
    ) -> Result<Option<RecordBatch>> {
        if self.calendar().is_some() {
            return Ok(None);
        }
        // The bytes of this page are not fetched, so only the dictionary before it is read.
        let page = PageLocation { offset: range.end as i64, compressed_page_size: 1, first_row_index: 0 };
        let chunks = self.fetch(vec![range])?;
        guarded(|| {
            let locations = HashMap::from([(leaf, vec![page])]);
            let pages = RowGroup::new(chunks, self.metadata.clone(), row_group, locations, &[leaf])?;
            let descriptor = self.metadata.file_metadata().schema_descr();
            let plan = Plan::of(self.arrow_schema().fields(), descriptor, &[leaf], &pages);
            Ok(plan.dictionary_rows(&pages)?)
        })
    }
}
