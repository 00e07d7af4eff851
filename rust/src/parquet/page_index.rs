//! The page index: where the pages of a column chunk are, and their statistics (parquet.thrift, OffsetIndex and
//! ColumnIndex).
//!
//! It is an optional optimization, so a malformed index is ignored.

use std::ops::Range;

use bytes::Bytes;
use parquet::basic::BoundaryOrder;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;

use super::read::ParquetFile;
use super::thrift::{Binary, PageIndexWalk, pages};
use crate::error::Result;

/// The pages of one column chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct PageIndex {
    /// Where the pages are, in the order of their rows.
    pub locations: Vec<PageLocation>,
    /// The statistics of each page; empty if the file has none.
    pub statistics: Vec<PageStatistics>,
    /// Whether the bounds in `statistics` ascend or descend.
    pub boundary_order: BoundaryOrder,
}

/// The statistics of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStatistics {
    pub all_null: bool,
    pub null_count: Option<u64>,
    /// In Parquet's plain encoding without a length; empty where all are null.
    pub min: Bytes,
    pub max: Bytes,
}

impl PageIndex {
    /// The pages of a column chunk of `rows`, which is at `offset` in its file, by the headers of the pages. `None` if
    /// these have other rows, or a page has none, or if there are several in a list, whose values are not rows.
    pub(super) fn of_pages(chunk: &[u8], offset: i64, rows: i64, is_list: bool) -> Result<Option<Self>> {
        let (mut locations, mut first, mut start) = (Vec::new(), 0, 0);
        for (sizes, page) in pages(chunk)? {
            let end = page.as_ptr() as usize - chunk.as_ptr() as usize + page.len();
            // A dictionary has no encodings of values.
            if let Some(encodings) = sizes.encodings {
                locations.push(PageLocation {
                    offset: offset + start as i64,
                    compressed_page_size: i32::try_from(end - start).unwrap_or(i32::MAX),
                    first_row_index: first,
                });
                match first.checked_add(encodings.count) {
                    Some(next) if next > first => first = next,
                    _ => return Ok(None),
                }
            }
            start = end;
        }
        let index = PageIndex { locations, statistics: Vec::new(), boundary_order: BoundaryOrder::UNORDERED };
        let are_all = if is_list { index.locations.len() == 1 } else { first == rows };
        Ok(are_all.then_some(index))
    }

    /// The rows of each page, of `total` in the row group.
    pub fn rows(&self, total: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = |page: &PageLocation| page.first_row_index.unsigned_abs();
        let ends = self.locations.iter().skip(1).map(first).chain([total]);
        self.locations.iter().zip(ends).map(move |(page, end)| first(page)..end)
    }
}

impl ParquetFile {
    /// The pages of `leaves` in each of `row_groups`, `None` for chunks without an index; with their
    /// statistics if `statistics` is set.
    pub fn page_indexes(
        &self,
        row_groups: &[usize],
        leaves: &[usize],
        statistics: bool,
    ) -> Result<Vec<Vec<Option<PageIndex>>>> {
        let mut chunks = Vec::with_capacity(row_groups.len() * leaves.len());
        for group in row_groups.iter().map(|row_group| self.row_groups().get(*row_group)) {
            chunks.extend(leaves.iter().map(|leaf| Some((group?, group?.columns().get(*leaf)?))));
        }
        let chunk = |place: &Option<(_, _)>| place.map(|(_, chunk)| chunk);
        let offsets = self.fetch_some(chunks.iter().map(|place| offset_index_range(chunk(place)?)))?;
        let columns = chunks.iter().map(|place| column_index_range(chunk(place).filter(|_| statistics)?));
        let columns = self.fetch_some(columns)?;
        let mut indexes = chunks.into_iter().zip(offsets).zip(columns).map(|((place, offsets), columns)| {
            let (group, chunk) = place?;
            decode(group, chunk, &offsets?, columns)
        });
        Ok(row_groups.iter().map(|_| indexes.by_ref().take(leaves.len()).collect()).collect())
    }

    /// Return the bytes of the ranges that exist and are within the file.
    fn fetch_some(&self, ranges: impl Iterator<Item = Option<Range<u64>>>) -> Result<Vec<Option<Bytes>>> {
        let ranges: Vec<Option<Range<u64>>> =
            ranges.map(|range| range.filter(|range| range.end <= self.length())).collect();
        let wanted: Vec<Range<u64>> = ranges.iter().flatten().cloned().collect();
        let chunks = self.fetch(wanted)?;
        Ok(ranges.into_iter().map(|range| chunks.slice(range?)).collect())
    }
}

fn offset_index_range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    range(chunk.offset_index_offset()?, chunk.offset_index_length()?)
}

fn column_index_range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    range(chunk.column_index_offset()?, chunk.column_index_length()?)
}

fn range(start: i64, length: i32) -> Option<Range<u64>> {
    let start = u64::try_from(start).ok()?;
    Some(start..start.checked_add(u64::try_from(length).ok()?)?)
}

fn decode(
    group: &RowGroupMetaData,
    chunk: &ColumnChunkMetaData,
    offsets: &Bytes,
    columns: Option<Bytes>,
) -> Option<PageIndex> {
    let locations = PageIndexWalk::locations(offsets).ok()?;
    if !are_pages_of(&locations, group, chunk) {
        return None;
    }
    let known = columns.and_then(|bytes| page_statistics(&bytes));
    let known = known.filter(|(statistics, _)| statistics.len() == locations.len());
    let (statistics, boundary_order) = known.unwrap_or((Vec::new(), BoundaryOrder::UNORDERED));
    Some(PageIndex { locations, statistics, boundary_order })
}

/// Return whether the pages start at the first row of the row group, are in order and are within the column chunk.
fn are_pages_of(locations: &[PageLocation], group: &RowGroupMetaData, chunk: &ColumnChunkMetaData) -> bool {
    let (start, length) = chunk.byte_range();
    let within = |page: &PageLocation| {
        let (offset, size) = (u64::try_from(page.offset), u64::try_from(page.compressed_page_size));
        matches!((offset, size), (Ok(offset), Ok(size))
            if offset >= start && offset.saturating_add(size) <= start.saturating_add(length))
    };
    let rows = || locations.iter().map(|page| page.first_row_index);
    rows().next() == Some(0)
        && rows().zip(rows().skip(1)).all(|(row, next)| row < next)
        && rows().all(|row| row < group.num_rows())
        && locations.iter().all(within)
}

fn page_statistics(bytes: &Bytes) -> Option<(Vec<PageStatistics>, BoundaryOrder)> {
    let index = PageIndexWalk::statistics(bytes).ok()?;
    let count = index.null_pages.len();
    let counts_known = index.null_counts.len() == count;
    if index.min_values.len() != count || index.max_values.len() != count {
        return None;
    }
    let bound = |range: &Binary| bytes.slice(range.clone());
    let pages = index.null_pages.iter().zip(index.min_values.iter().zip(&index.max_values));
    let statistics = pages.enumerate().map(|(page, (all_null, (min, max)))| PageStatistics {
        all_null: *all_null,
        null_count: index.null_counts.get(page).filter(|_| counts_known).copied(),
        min: bound(min),
        max: bound(max),
    });
    let boundary_order = match index.boundary_order {
        1 => BoundaryOrder::ASCENDING,
        2 => BoundaryOrder::DESCENDING,
        _ => BoundaryOrder::UNORDERED,
    };
    Some((statistics.collect(), boundary_order))
}

#[cfg(test)]
mod tests {
    use super::PageIndex;

    /// The headers of empty pages with these counts of values.
    fn pages(counts: &[i8]) -> Vec<u8> {
        let header = |&count: &i8| {
            let zigzag = (count << 1 ^ count >> 7) as u8;
            [0x15, 0, 0x15, 0, 0x15, 0, 0x2c, 0x15, zigzag, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0]
        };
        counts.iter().flat_map(header).collect()
    }

    #[test]
    fn pages_are_found_by_their_headers_if_their_counts_are_possible() {
        let index = PageIndex::of_pages(&pages(&[20, 15]), 100, 35, false).unwrap().unwrap();
        let found: Vec<_> = index.locations.iter().map(|page| (page.offset, page.first_row_index)).collect();
        assert_eq!(found, [(100, 0), (117, 20)]);
        for (counts, rows) in
            [(&[20, 15][..], 36), (&[40, -15, 10], 35), (&[35, 0], 35), (&[-35], 35), (&[], 1)]
        {
            assert_eq!(PageIndex::of_pages(&pages(counts), 100, rows, false).unwrap(), None, "{counts:?}");
        }
        let in_list = |counts| PageIndex::of_pages(&pages(counts), 100, 7, true).unwrap();
        assert_eq!(in_list(&[20]).map(|index| index.locations.len()), Some(1));
        assert_eq!(in_list(&[20, 15]), None);
    }
}
