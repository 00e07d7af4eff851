//! The column chunks of one leaf: pages, their statistics, and the metadata of each chunk.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression, Encoding, EncodingMask, PageType, Type as PhysicalType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::super::checksum::crc32;
use super::super::thrift::with_checksum;
use super::compress::compress;
use super::extremes::{Bound, EncodedExtremes as Extremes, shorten, state, statistics};
use super::fixed::{BooleanValues, FixedValues};
use super::levels::{Leaf, Levels, encode, split};
use super::numbers::NumberValues;
use super::page_bytes::PageBytes;
use super::strings::StringValues;
use super::values::{Dictionary, Values};
use crate::error::{Error, Result};
use crate::value::NULL as VARIANT_NULL;

/// A page ends when it has this many rows …
///
/// DuckDB decodes 2,048 rows at once, and keeps their dictionary if they are in one page. A group by a string took
/// 16.4 ms of CPU time in files whose pages had 15,302 rows, and 11.8 ms with 16,384.
pub(in crate::parquet) const PAGE_ROWS: usize = 16_384;
/// … of which any has a value, or this many without values …
const NULL_PAGE_ROWS: usize = 1 << 17;
/// … or this many bytes before compression, whichever comes first.
const PAGE_BYTES: usize = 1 << 20;

/// The header of a page is at most as long.
const HEADER_BYTES: usize = 64;

/// The statistics of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parquet) enum LeafStatistics {
    None,
    NullCount,
    /// Null count, and bounds of the chunk if all values are Variant null.
    VariantNulls,
    /// Null count and bounds of the chunk.
    Chunk,
    /// Also those of each page, in the column index.
    Page,
}

/// The version of data pages. Pages state it, so readers need not know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageVersion {
    /// Compresses levels and values together.
    V1,
    /// Compresses the values alone.
    V2,
}

/// Encodes one leaf column, column chunk after column chunk.
pub(in crate::parquet) struct ChunkEncoder {
    column: ColumnDescPtr,
    compression: Compression,
    version: PageVersion,
    statistics: LeafStatistics,
    values: Box<dyn Values>,
    /// The levels of the page in progress.
    parts: Vec<Arc<Levels>>,
    /// The uncompressed page; kept for its memory.
    body: Vec<u8>,
    pages: Pages,
    /// The extremes of the finished chunks.
    extremes: Extremes,
}

/// The pages of a column chunk.
#[derive(Default)]
struct Pages {
    bytes: PageBytes,
    uncompressed: usize,
    list: Vec<PageRecord>,
    variable_bytes: u64,
    extremes: Extremes,
}

struct PageRecord {
    offset: usize,
    size: usize,
    rows: usize,
    entries: usize,
    nulls: usize,
    encoding: Encoding,
    /// As the column index states them.
    bounds: Option<(Bound, Bound)>,
}

/// A finished column chunk: its bytes, and its metadata with offsets relative to them.
pub(in crate::parquet) struct Chunk {
    pub bytes: PageBytes,
    pub close: ColumnCloseResult,
}

impl ChunkEncoder {
    /// `always_dictionary` tries a dictionary whatever the values.
    pub fn new(
        column: ColumnDescPtr,
        compression: Compression,
        version: PageVersion,
        statistics: LeafStatistics,
        always_dictionary: bool,
    ) -> Self {
        let has_bounds = !matches!(statistics, LeafStatistics::None | LeafStatistics::NullCount);
        let dictionary = if always_dictionary { Dictionary::Used } else { Dictionary::Undecided };
        let values: Box<dyn Values> = match column.physical_type() {
            PhysicalType::BOOLEAN => Box::new(BooleanValues::new()),
            PhysicalType::INT32 => Box::new(NumberValues::<i32>::new(has_bounds)),
            PhysicalType::INT64 => Box::new(NumberValues::<i64>::new(has_bounds)),
            PhysicalType::FLOAT => Box::new(NumberValues::<f32>::new(has_bounds)),
            PhysicalType::DOUBLE => Box::new(NumberValues::<f64>::new(has_bounds)),
            PhysicalType::BYTE_ARRAY => Box::new(StringValues::new(has_bounds, dictionary)),
            PhysicalType::FIXED_LEN_BYTE_ARRAY | PhysicalType::INT96 => {
                Box::new(FixedValues::new(usize::try_from(column.type_length()).unwrap_or_default()))
            }
        };
        let (parts, body, pages, extremes) = Default::default();
        ChunkEncoder { column, compression, version, statistics, values, parts, body, pages, extremes }
    }

    /// Encode the values of `leaf`.
    pub fn write(&mut self, leaf: &Leaf) -> Result<()> {
        let (levels, selection) = leaf.levels();
        if levels.values > 0
            && self.pending(|part| part.values) == 0
            && self.pending(|part| part.rows) >= PAGE_ROWS
        {
            self.end_page()?;
        }
        self.values.append(&leaf.array, &selection)?;
        self.parts.push(levels);
        let most = if self.pending(|part| part.values) > 0 { PAGE_ROWS } else { NULL_PAGE_ROWS };
        let is_full = self.pending(|part| part.rows) >= most || self.values.pending_bytes() >= PAGE_BYTES;
        if is_full || self.values.choice().is_full() { self.end_page() } else { Ok(()) }
    }

    /// The sum over the parts of the page in progress.
    fn pending(&self, count: fn(&Levels) -> usize) -> usize {
        self.parts.iter().map(|part| count(part)).sum()
    }

    /// The size of the pages, and an estimate of the values that are not encoded yet.
    pub fn bytes(&self) -> usize {
        self.pages.bytes.size() + self.values.choice().bytes() + self.values.pending_bytes()
    }

    fn end_page(&mut self) -> Result<()> {
        let (rows, entries) = (self.pending(|part| part.rows), self.pending(|part| part.entries));
        let values = self.pending(|part| part.values);
        self.body.clear();
        encode(&self.parts, &mut self.body);
        let levels = self.body.len();
        self.parts.clear();
        let (encoding, extremes) = match values {
            0 => (self.values.choice().encode_none(&mut self.body), Extremes::default()),
            _ => {
                let flushed = self.values.flush(&mut self.body);
                self.pages.variable_bytes += flushed.variable_bytes;
                (flushed.encoding, flushed.extremes)
            }
        };
        let nulls = entries - values;
        let offset = self.pages.bytes.size();
        let (bytes, written) = match self.version {
            PageVersion::V1 => write_page_v1(self.compression, &self.body, encoding, count(entries)?)?,
            PageVersion::V2 => {
                let (levels, values) = self.body.split_at(levels);
                let column = &self.column;
                let levels = split(levels, column.max_rep_level() > 0, column.max_def_level() > 0);
                let counts = Counts { entries: count(entries)?, nulls: count(nulls)?, rows: count(rows)? };
                write_page_v2(self.compression, levels, values, encoding, counts)?
            }
        };
        self.pages.bytes.push(bytes);
        self.pages.uncompressed += written.uncompressed_size;
        let size = written.compressed_size;
        // The values themselves may be as large as the page before compression.
        let is_stated = self.statistics == LeafStatistics::Page;
        let bounds = extremes.bounds().filter(|_| is_stated).map(|bounds| shorten(&self.column, bounds));
        self.pages.list.push(PageRecord { offset, size, rows, entries, nulls, encoding, bounds });
        self.pages.extremes.merge(extremes);
        Ok(())
    }

    /// End the column chunk; `None` if it has no rows. The next values belong to the next chunk.
    ///
    /// `has_offset_index` states where its pages are.
    pub fn end_chunk(&mut self, has_offset_index: bool) -> Result<Chunk> {
        if !self.parts.is_empty() {
            self.end_page()?;
        }
        let mut pages = std::mem::take(&mut self.pages);
        let mut dictionary = 0;
        let (plain, distinct) = self.values.end_chunk();
        if distinct > 0 {
            let distinct = count(distinct)?;
            let (bytes, written) =
                write_dictionary(self.compression, &plain, Encoding::PLAIN, distinct, false)?;
            pages.uncompressed += written.uncompressed_size;
            dictionary = bytes.len();
            pages.bytes.push_front(bytes);
        }
        let metadata = self.metadata(&pages, dictionary)?;
        let close = ColumnCloseResult {
            bytes_written: pages.bytes.size() as u64,
            rows_written: pages.list.iter().map(|page| page.rows as u64).sum(),
            metadata,
            bloom_filter: None,
            column_index: self.column_index(&pages)?,
            offset_index: has_offset_index.then(|| pages.offset_index(dictionary)),
        };
        self.extremes.merge(pages.extremes);
        Ok(Chunk { bytes: pages.bytes, close })
    }

    /// The number of pages that the chunk has, if it ends now.
    pub fn pages(&self) -> usize {
        self.pages.list.len() + usize::from(!self.parts.is_empty())
    }

    /// The extremes of all finished chunks.
    pub fn extremes(&self) -> &Extremes {
        &self.extremes
    }

    fn metadata(&self, pages: &Pages, dictionary: usize) -> Result<ColumnChunkMetaData> {
        let mut encodings = EncodingMask::default();
        encodings.insert(Encoding::RLE);
        pages.list.iter().for_each(|page| encodings.insert(page.encoding));
        let entries: usize = pages.list.iter().map(|page| page.entries).sum();
        let mut builder = ColumnChunkMetaData::builder(self.column.clone())
            .set_compression(self.compression)
            .set_total_compressed_size(pages.bytes.size() as i64)
            .set_total_uncompressed_size(pages.uncompressed as i64)
            .set_num_values(entries as i64)
            .set_data_page_offset(dictionary as i64);
        if dictionary > 0 {
            encodings.insert(Encoding::PLAIN);
            // Readers skip by dictionaries only if they know that all pages use them.
            builder = builder
                .set_dictionary_page_offset(Some(0))
                .set_page_encoding_stats(pages.encoding_stats(self.version));
        }
        if pages.variable_bytes > 0 {
            builder = builder.set_unencoded_byte_array_data_bytes(Some(pages.variable_bytes as i64));
        }
        if self.statistics != LeafStatistics::None {
            let nulls = pages.list.iter().map(|page| page.nulls as u64).sum();
            let is_stated =
                self.statistics != LeafStatistics::VariantNulls || pages.extremes.are(VARIANT_NULL);
            let unknown = Extremes::default();
            let extremes = if is_stated { &pages.extremes } else { &unknown };
            builder = builder.set_statistics(statistics(&self.column, extremes, nulls));
        }
        Ok(builder.set_encodings_mask(encodings).build()?)
    }

    /// The statistics of the pages; `None` for a single page, which the statistics of the chunk describe.
    fn column_index(&self, pages: &Pages) -> Result<Option<ColumnIndexMetaData>> {
        let has_bounds = |page: &PageRecord| page.nulls == page.entries || page.bounds.is_some();
        let is_stated = self.statistics == LeafStatistics::Page && pages.list.len() > 1;
        if !is_stated || !pages.list.iter().all(has_bounds) {
            return Ok(None);
        }
        let mut index = ColumnIndexBuilder::new(self.column.physical_type());
        for page in &pages.list {
            let bounds = page.bounds.as_ref().map(|bounds| state(&self.column, bounds));
            let (min, max) = bounds.map(|(min, max)| (min.bytes, max.bytes)).unwrap_or_default();
            index.append(page.nulls == page.entries, min, max, page.nulls as i64);
        }
        index.set_boundary_order(pages.boundary_order());
        Ok(Some(index.build()?))
    }
}

impl Pages {
    fn offset_index(&self, start: usize) -> OffsetIndexMetaData {
        let mut index = OffsetIndexBuilder::new();
        for page in &self.list {
            index.append_offset_and_size((start + page.offset) as i64, page.size as i32);
            index.append_row_count(page.rows as i64);
        }
        index.build()
    }

    /// The number of pages of each encoding, the dictionary first.
    fn encoding_stats(&self, version: PageVersion) -> Vec<PageEncodingStats> {
        let data_page = match version {
            PageVersion::V1 => PageType::DATA_PAGE,
            PageVersion::V2 => PageType::DATA_PAGE_V2,
        };
        let (page_type, encoding) = (PageType::DICTIONARY_PAGE, Encoding::PLAIN);
        let mut stats = vec![PageEncodingStats { page_type, encoding, count: 1 }];
        for page in &self.list {
            let (page_type, encoding) = (data_page, page.encoding);
            match stats.iter_mut().find(|one| (one.page_type, one.encoding) == (page_type, encoding)) {
                Some(known) => known.count += 1,
                None => stats.push(PageEncodingStats { page_type, encoding, count: 1 }),
            }
        }
        stats
    }

    /// Whether the bounds of the pages ascend or descend; pages of nulls do not count.
    fn boundary_order(&self) -> BoundaryOrder {
        let bounds: Vec<_> = self.list.iter().filter_map(|page| page.bounds.as_ref()).collect();
        let are_in_order = |is_before: fn(&Bound, &Bound) -> bool| {
            bounds
                .windows(2)
                .all(|pair| is_before(&pair[0].0, &pair[1].0) && is_before(&pair[0].1, &pair[1].1))
        };
        if are_in_order(|one, next| one <= next) {
            BoundaryOrder::ASCENDING
        } else if are_in_order(|one, next| one >= next) {
            BoundaryOrder::DESCENDING
        } else {
            BoundaryOrder::UNORDERED
        }
    }
}

/// The entries of a page of version 2.
#[derive(Debug, Clone, Copy)]
pub(in crate::parquet) struct Counts {
    pub entries: u32,
    pub nulls: u32,
    pub rows: u32,
}

/// A page of version 1 of levels and values, which `body` has.
pub(in crate::parquet) fn write_page_v1(
    compression: Compression,
    body: &[u8],
    encoding: Encoding,
    entries: u32,
) -> Result<(Bytes, PageWriteSpec)> {
    let page = Page::DataPage {
        buf: compress(compression, body)?,
        num_values: entries,
        encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    write_page(CompressedPage::new(page, body.len()))
}

/// A page of version 2, with repetition and definition levels.
pub(in crate::parquet) fn write_page_v2(
    compression: Compression,
    (repetition, definition): (&[u8], &[u8]),
    values: &[u8],
    encoding: Encoding,
    counts: Counts,
) -> Result<(Bytes, PageWriteSpec)> {
    let mut buf = [repetition, definition].concat();
    let uncompressed = buf.len() + values.len();
    // Not every reader decompresses nothing.
    let is_compressed = compression != Compression::UNCOMPRESSED && !values.is_empty();
    match is_compressed {
        true => buf.extend_from_slice(&compress(compression, values)?),
        false => buf.extend_from_slice(values),
    }
    let page = Page::DataPageV2 {
        buf: buf.into(),
        num_values: counts.entries,
        encoding,
        num_nulls: counts.nulls,
        num_rows: counts.rows,
        def_levels_byte_len: count(definition.len())?,
        rep_levels_byte_len: count(repetition.len())?,
        is_compressed,
        statistics: None,
    };
    write_page(CompressedPage::new(page, uncompressed))
}

pub(in crate::parquet) fn write_dictionary(
    compression: Compression,
    values: &[u8],
    encoding: Encoding,
    distinct: u32,
    is_sorted: bool,
) -> Result<(Bytes, PageWriteSpec)> {
    let page = Page::DictionaryPage {
        buf: compress(compression, values)?,
        num_values: distinct,
        encoding,
        is_sorted,
    };
    write_page(CompressedPage::new(page, values.len()))
}

/// The bytes of a page with its header, to which the checksum is added: the library writes none.
fn write_page(page: CompressedPage) -> Result<(Bytes, PageWriteSpec)> {
    let (checksum, length) = (crc32([page.data()]), page.data().len());
    let mut sink = TrackedWrite::new(Vec::with_capacity(length + HEADER_BYTES));
    let mut written = SerializedPageWriter::new(&mut sink).write_page(page)?;
    let mut bytes = sink.into_inner()?;
    let header = ..bytes.len() - length;
    let with = with_checksum(&bytes[header], checksum)?;
    written.compressed_size += with.len() - header.end;
    written.uncompressed_size += with.len() - header.end;
    bytes.splice(header, with);
    Ok((bytes.into(), written))
}

fn count(number: usize) -> Result<u32> {
    // The header of a page states 31 bits.
    i32::try_from(number)
        .map(i32::unsigned_abs)
        .map_err(|_| Error::unsupported(format!("cannot write {number} values to one page")))
}
