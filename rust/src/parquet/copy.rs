//! Row groups of one file in another file, as they are encoded.

use std::collections::HashSet;
use std::mem::discriminant;
use std::sync::Arc;

use arrow_schema::{FieldRef, Schema};
use bytes::Bytes;
use parquet::basic::{Compression, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, ParquetMetaData, ParquetMetaDataOptions,
    ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::statistics::Statistics;

use super::page_index::PageIndex;
use super::pages::{Chunks, byte_range, check_checksums};
use super::read::{ParquetFile, guarded};
use super::schema::{members, to_parquet};
use crate::error::Result;

/// The name of this library in footers, before its version.
pub(super) const CREATED_BY: &str = "delta-variant version ";

/// What a footer states of its writer.
pub(super) fn own_properties() -> WriterPropertiesPtr {
    let created_by = format!("{CREATED_BY}{}", env!("CARGO_PKG_VERSION"));
    Arc::new(WriterProperties::builder().set_created_by(created_by).build())
}

/// Encoded column chunks of a row group, and all that a footer states about them.
pub(super) struct EncodedRowGroup {
    pub(super) rows: usize,
    pub(super) chunks: Chunks,
    /// Those of the leaves, with offsets in the file that `chunks` are from; `None` if they were not fetched.
    pub(super) columns: Vec<Option<ColumnCloseResult>>,
}

impl ParquetFile {
    /// Whether this library wrote the file: then its statistics are exact.
    pub fn is_own(&self) -> bool {
        let created_by = self.metadata().file_metadata().created_by();
        created_by.is_some_and(|name| name.starts_with(CREATED_BY))
    }

    /// Whether all column chunks have this compression, at any level.
    pub fn has_compression(&self, compression: Compression) -> bool {
        let mut chunks = self.row_groups().iter().flat_map(RowGroupMetaData::columns);
        chunks.all(|chunk| discriminant(&chunk.compression()) == discriminant(&compression))
    }

    /// The columns that a copy cannot take as they are: [`to_parquet`] gives another type than the file has, or none, as
    /// it does not know Variants, or they are lists whose pages have no index.
    pub fn converted_columns(&self) -> Vec<&FieldRef> {
        let columns = self.metadata().file_metadata().schema_descr();
        let chunks = self.row_groups().first().map_or(&[][..], RowGroupMetaData::columns).iter().enumerate();
        let unindexed: HashSet<usize> = chunks
            .filter(|(_, chunk)| {
                chunk.column_descr().max_rep_level() > 0 && chunk.offset_index_offset().is_none()
            })
            .map(|(leaf, _)| columns.get_column_root_idx(leaf))
            .collect();
        let fields = self.arrow_schema().fields().iter().zip(members(self.schema()));
        fields
            .enumerate()
            .filter(|(position, (field, stored))| {
                let written = to_parquet(&Schema::new(vec![(*field).clone()]), true).ok();
                unindexed.contains(position)
                    || written.is_none_or(|new| members(new.root_schema()) != [(*stored).clone()])
            })
            .map(|(_, (field, _))| field)
            .collect()
    }

    /// Fetch a row group but for the leaves that are `replaced`. `None` if the file is in a legacy calendar, or if the
    /// pages of a leaf in a list have no index: either all row groups of a file have an offset index or none has.
    pub(super) fn encoded_row_group(
        &self,
        row_group: usize,
        replaced: &[bool],
    ) -> Result<Option<EncodedRowGroup>> {
        if self.calendar().is_some() || row_group >= self.row_groups().len() {
            return Ok(None);
        }
        let metadata = self.complete_metadata()?;
        let group = metadata.row_group(row_group);
        let leaves: Vec<usize> = (0..group.num_columns()).filter(|leaf| !replaced[*leaf]).collect();
        let indexes = self.page_indexes(&[row_group], &leaves, true)?.remove(0);
        let ranges = leaves.iter().map(|leaf| byte_range(group, *leaf)).collect::<Result<_>>()?;
        let chunks = self.fetch(ranges)?;
        let mut columns: Vec<_> = replaced.iter().map(|_| None).collect();
        for (&leaf, index) in leaves.iter().zip(indexes) {
            check_checksums(&chunks, self.metadata(), row_group, leaf)?;
            let range = byte_range(group, leaf)?;
            let offset = range.start as i64;
            let index = match index {
                None => {
                    let is_list = group.column(leaf).column_descr().max_rep_level() > 0;
                    let bytes = chunks.slice(range).unwrap_or_default();
                    PageIndex::of_pages(&bytes, offset, group.num_rows(), is_list)?
                }
                index => index,
            };
            let Some(mut index) = index else { return Ok(None) };
            let chunk = self.with_exact_bounds(group.column(leaf))?;
            if !self.has_exact_bounds(group.column(leaf)) {
                index.statistics.clear();
            }
            columns[leaf] = Some(close_result(group, &chunk, &index)?);
        }
        let rows = usize::try_from(group.num_rows()).unwrap_or_default();
        Ok(Some(EncodedRowGroup { rows, chunks, columns }))
    }

    /// Whether all values are within the bounds of a column chunk and of its pages, in the order of Parquet. Other writers
    /// leave NaN out, and bounds without a stated order may be in one that is out of use.
    pub(crate) fn has_exact_bounds(&self, chunk: &ColumnChunkMetaData) -> bool {
        let is_floating = matches!(chunk.column_type(), Type::FLOAT | Type::DOUBLE);
        let is_ordered = self.metadata().file_metadata().column_orders().is_some()
            && !chunk.statistics().is_some_and(Statistics::is_min_max_deprecated);
        self.is_own() || is_ordered && !is_floating
    }

    /// A column chunk without bounds that are not exact.
    fn with_exact_bounds(&self, chunk: &ColumnChunkMetaData) -> Result<ColumnChunkMetaData> {
        if self.has_exact_bounds(chunk) {
            return Ok(chunk.clone());
        }
        let nulls = chunk.statistics().and_then(Statistics::null_count_opt);
        let builder = chunk.clone().into_builder();
        let builder = match chunk.column_type() {
            Type::FLOAT => builder.set_statistics(Statistics::float(None, None, None, nulls, false)),
            Type::DOUBLE => builder.set_statistics(Statistics::double(None, None, None, nulls, false)),
            _ => builder.clear_statistics(),
        };
        Ok(builder.build()?)
    }

    /// The footer with the encodings of pages, which `open` does not keep.
    pub(super) fn complete_metadata(&self) -> Result<ParquetMetaData> {
        let footer: Bytes = self.footer()?;
        guarded(|| {
            let schema = self.metadata().file_metadata().schema_descr_ptr();
            let options =
                ParquetMetaDataOptions::new().with_schema(schema).with_encoding_stats_as_mask(false);
            Ok(ParquetMetaDataReader::decode_metadata_with_options(&footer, Some(&options))?)
        })
    }
}

fn close_result(
    group: &RowGroupMetaData,
    chunk: &ColumnChunkMetaData,
    index: &PageIndex,
) -> Result<ColumnCloseResult> {
    Ok(ColumnCloseResult {
        bytes_written: chunk.compressed_size().unsigned_abs(),
        rows_written: group.num_rows().unsigned_abs(),
        metadata: chunk.clone(),
        bloom_filter: None,
        column_index: column_index(chunk, index)?,
        offset_index: Some(offset_index(group, index)),
    })
}

fn offset_index(group: &RowGroupMetaData, index: &PageIndex) -> OffsetIndexMetaData {
    let mut builder = OffsetIndexBuilder::new();
    let rows = index.rows(group.num_rows().unsigned_abs());
    for (page, rows) in index.locations.iter().zip(rows) {
        builder.append_offset_and_size(page.offset, page.compressed_page_size);
        builder.append_row_count((rows.end - rows.start) as i64);
    }
    builder.build()
}

/// `None` if the file has no statistics of these pages.
fn column_index(chunk: &ColumnChunkMetaData, index: &PageIndex) -> Result<Option<ColumnIndexMetaData>> {
    let mut builder = ColumnIndexBuilder::new(chunk.column_type());
    for page in &index.statistics {
        let Some(nulls) = page.null_count else { return Ok(None) };
        builder.append(page.all_null, page.min.to_vec(), page.max.to_vec(), nulls as i64);
    }
    builder.set_boundary_order(index.boundary_order);
    Ok(if index.statistics.is_empty() { None } else { Some(builder.build()?) })
}
