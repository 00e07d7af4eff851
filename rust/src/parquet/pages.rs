//! The pages of one row group, checked before they are decoded.
//!
//! The decoder trusts the counts in a page: it reserves memory for them or loops over them, however few bytes the
//! page has. Neither can be caught afterwards, so such pages are rejected here.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Encoding, Type as PhysicalType};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Decompressor;

use super::checksum::check_page;
use super::decode;
use super::thrift::{PageEncodings, PageSizes, pages};
use super::unpacking::check_unpacked_size;
use crate::error::{self, Error};

type Result<T> = std::result::Result<T, ParquetError>;

/// The compressed bytes of column chunks, sorted and disjoint: where each piece begins in the file.
#[derive(Clone)]
pub(super) struct Chunks {
    pub(super) pieces: Vec<(u64, Bytes)>,
    pub(super) file_length: u64,
}

impl Chunks {
    /// The bytes of `range`, which was fetched whole.
    pub(super) fn slice(&self, range: Range<u64>) -> Option<Bytes> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        self.get_bytes(range.start, length).ok()
    }

    /// The fetched bytes from `start` to the end of their piece.
    fn from(&self, start: u64) -> Result<Bytes> {
        let outside = || broken(&format!("has a page at byte {start}, outside its column chunk"));
        let index = self.pieces.partition_point(|(begin, _)| *begin <= start);
        let (begin, bytes) =
            index.checked_sub(1).and_then(|index| self.pieces.get(index)).ok_or_else(outside)?;
        let skip =
            usize::try_from(start - begin).ok().filter(|skip| *skip <= bytes.len()).ok_or_else(outside)?;
        Ok(bytes.slice(skip..))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.file_length
    }
}

impl ChunkReader for Chunks {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.from(start).map(Buf::reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        match length <= bytes.len() {
            true => Ok(bytes.slice(..length)),
            false => Err(broken("has a page that ends after its column chunk")),
        }
    }
}

/// One row group, whose chunks are in memory.
pub(super) struct RowGroup {
    chunks: Arc<Chunks>,
    metadata: Arc<ParquetMetaData>,
    index: usize,
    /// The pages of leaves of which only some are in `chunks`.
    locations: HashMap<usize, Vec<PageLocation>>,
    /// The checked pages of each leaf.
    checked: HashMap<usize, Arc<Sizes>>,
}

impl RowGroup {
    /// Check the pages of `leaves`.
    pub(super) fn new(
        chunks: Chunks,
        metadata: Arc<ParquetMetaData>,
        index: usize,
        locations: HashMap<usize, Vec<PageLocation>>,
        leaves: &[usize],
    ) -> Result<Self> {
        let checked = HashMap::with_capacity(leaves.len());
        let mut group = RowGroup { chunks: Arc::new(chunks), metadata, index, locations, checked };
        for &leaf in leaves {
            let sizes = group.check_leaf(leaf).map_err(|error| {
                let column = group.group().column(leaf).column_path().string();
                ParquetError::External(Box::new(Error::from(error).in_column(&column)))
            })?;
            group.checked.insert(leaf, Arc::new(sizes));
        }
        Ok(group)
    }

    /// Check the pages of a leaf, and return their sizes.
    fn check_leaf(&self, leaf: usize) -> Result<Sizes> {
        let chunk = self.group().column(leaf);
        let (start, length) = chunk.byte_range();
        match self.locations.get(&leaf) {
            None => {
                let mut sizes = Sizes::new();
                check_pages(
                    &self.chunks.get_bytes(start, length as usize)?,
                    chunk.compression(),
                    self.index,
                    &mut sizes,
                )?;
                Ok(sizes)
            }
            Some(locations) => self.check_fetched(leaf, locations),
        }
    }

    /// Check the dictionary at `start` and those pages that were fetched.
    fn check_fetched(&self, leaf: usize, locations: &[PageLocation]) -> Result<Sizes> {
        let chunk = self.group().column(leaf);
        let ((start, _), codec) = (chunk.byte_range(), chunk.compression());
        let mut sizes = Sizes::new();
        let first = locations.first().map_or(start, |page| page.offset.unsigned_abs());
        if let Some(dictionary) = self.chunks.slice(start..first) {
            check_pages(&dictionary, codec, self.index, &mut sizes)?;
        }
        let is_flat = chunk.column_descr().max_rep_level() == 0;
        let ends = locations.iter().skip(1).map(|page| page.first_row_index);
        for (page, end) in locations.iter().zip(ends.chain([self.group().num_rows()])) {
            let rows = end - page.first_row_index;
            let (offset, size) = (page.offset.unsigned_abs(), page.compressed_page_size.unsigned_abs());
            if let Some(page) = self.chunks.slice(offset..offset + u64::from(size)) {
                let values = check_pages(&page, codec, self.index, &mut sizes)?;
                if is_flat && values != rows {
                    return Err(broken(&format!(
                        "has a page of {values} values for {rows} rows of its index"
                    )));
                }
            }
        }
        Ok(sizes)
    }

    fn group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.index)
    }

    /// The encodings of the data pages of a leaf.
    pub(super) fn encodings(&self, leaf: usize) -> impl Iterator<Item = PageEncodings> {
        self.checked.get(&leaf).into_iter().flat_map(|sizes| sizes.values()).filter_map(|page| page.encodings)
    }

    /// The pages of a leaf, which are checked.
    pub(super) fn pages(&self, leaf: usize) -> Result<Box<dyn PageReader>> {
        let chunk = self.group().column(leaf);
        let (chunks, rows) = (self.chunks.clone(), self.num_rows());
        let locations = self.locations.get(&leaf).cloned();
        let sizes = self.checked.get(&leaf).cloned().unwrap_or_default();
        let is_zstd = matches!(chunk.compression(), Compression::ZSTD(_));
        let inner = match is_zstd {
            // The library makes contexts to compress and to decompress for each chunk, which costs more than a small
            // chunk itself.
            true => {
                let stored = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED);
                SerializedPageReader::new(chunks, &stored.build()?, rows, locations)?
            }
            false => SerializedPageReader::new(chunks, chunk, rows, locations)?,
        };
        let descriptor = chunk.column_descr_ptr();
        Ok(Box::new(CheckedPages { inner, descriptor, zstd: is_zstd.then_some(sizes) }))
    }
}

impl RowGroups for RowGroup {
    fn num_rows(&self) -> usize {
        usize::try_from(self.group().num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(OneChunk(Some(self.pages(leaf)?))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The sizes of pages by the address of their stored bytes.
type Sizes = HashMap<usize, PageSizes>;

/// Check pages, add their sizes, and return the number of their values.
fn check_pages(bytes: &[u8], codec: Compression, row_group: usize, sizes: &mut Sizes) -> Result<i64> {
    let mut check = || {
        let mut values = 0_i64;
        for (page_sizes, page) in pages(bytes)? {
            let is_compressed = page_sizes.is_compressed && codec != Compression::UNCOMPRESSED;
            if page.is_empty() && page_sizes.unpacked > 0 && is_compressed {
                return Err(Error::data_file(
                    "a page without bytes does not decompress to those of its header",
                ));
            }
            check_page(page_sizes, page, row_group)?;
            sizes.insert(page.as_ptr() as usize, page_sizes);
            check_unpacked_size(page_sizes, page, codec)?;
            values = values.saturating_add(page_sizes.encodings.map_or(0, |page| page.count));
        }
        Ok(values)
    };
    check().map_err(|error: Error| ParquetError::External(Box::new(error)))
}

/// Return where the pages of a leaf lie in the file.
pub(super) fn byte_range(group: &RowGroupMetaData, leaf: usize) -> error::Result<Range<u64>> {
    let misplaced = |what: &str| Error::data_file(format!("the Parquet file {what}"));
    let chunk = group.columns().get(leaf).ok_or_else(|| misplaced("has a row group that lacks columns"))?;
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let end = start.checked_add(chunk.compressed_size());
    match (u64::try_from(start), end.and_then(|end| u64::try_from(end).ok())) {
        (Ok(start), Some(end)) if start <= end => Ok(start..end),
        _ => Err(misplaced("has a column chunk at an impossible place")),
    }
}

/// Check the checksums of the pages of a column chunk, which was fetched whole.
pub(super) fn check_checksums(
    chunks: &Chunks,
    metadata: &ParquetMetaData,
    row_group: usize,
    leaf: usize,
) -> error::Result<()> {
    let group = metadata.row_group(row_group);
    let bytes = chunks.slice(byte_range(group, leaf)?).unwrap_or_default();
    pages(&bytes)?
        .into_iter()
        .try_for_each(|(header, page)| check_page(header, page, row_group))
        .map_err(|error| error.in_column(&group.column(leaf).column_path().string()))
}

struct OneChunk(Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}

struct CheckedPages {
    inner: SerializedPageReader<Chunks>,
    descriptor: ColumnDescPtr,
    /// The sizes of the pages, if `inner` returns them as zstd frames.
    zstd: Option<Arc<Sizes>>,
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = match (self.inner.get_next_page()?, &self.zstd) {
            (Some(page), Some(sizes)) => Some(unpacked(page, sizes)?),
            (page, _) => page,
        };
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl CheckedPages {
    fn check(&self, page: &Page) -> Result<()> {
        match page {
            Page::DictionaryPage { buf, num_values, .. } => self.check_dictionary(buf, *num_values),
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                if !is_delta(*encoding) {
                    return Ok(());
                }
                let rest = after_levels(buf, self.descriptor.max_rep_level(), *rep_level_encoding)?;
                let rest = after_levels(rest, self.descriptor.max_def_level(), *def_level_encoding)?;
                check_delta(rest, *encoding, *num_values)
            }
            Page::DataPageV2 {
                buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                if !is_delta(*encoding) {
                    return Ok(());
                }
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                let rest = buf.get(levels..).ok_or_else(|| broken("has levels longer than their page"))?;
                check_delta(rest, *encoding, *num_values)
            }
        }
    }

    /// Every value of a dictionary takes bytes, and the decoder reserves memory for as many as the page states.
    fn check_dictionary(&self, bytes: &[u8], num_values: u32) -> Result<()> {
        let width = match self.descriptor.physical_type() {
            PhysicalType::INT32 | PhysicalType::FLOAT | PhysicalType::BYTE_ARRAY => 4,
            PhysicalType::INT64 | PhysicalType::DOUBLE => 8,
            PhysicalType::INT96 => 12,
            PhysicalType::FIXED_LEN_BYTE_ARRAY => u64::from(self.descriptor.type_length().unsigned_abs()),
            PhysicalType::BOOLEAN => return Err(broken("has a dictionary of booleans")),
        };
        match u64::from(num_values).checked_mul(width) {
            Some(needed) if needed <= bytes.len() as u64 => Ok(()),
            _ => Err(broken("has a dictionary with fewer values than it says")),
        }
    }
}

/// Decompress a page of zstd frames.
fn unpacked(mut page: Page, sizes: &Sizes) -> Result<Page> {
    let levels = match &page {
        Page::DataPageV2 { is_compressed: false, .. } => return Ok(page),
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            *def_levels_byte_len as usize + *rep_levels_byte_len as usize
        }
        Page::DataPage { .. } | Page::DictionaryPage { .. } => 0,
    };
    match &mut page {
        Page::DataPage { buf, .. } | Page::DataPageV2 { buf, .. } | Page::DictionaryPage { buf, .. } => {
            // Only a page without bytes has another address.
            let length = sizes.get(&(buf.as_ptr() as usize)).map_or(0, |sizes| sizes.unpacked);
            *buf = unpack(buf, levels, usize::try_from(length).unwrap_or(usize::MAX))?;
        }
    }
    Ok(page)
}

thread_local! {
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Return `levels` bytes as they are and the rest decompressed, `length` bytes in all.
fn unpack(page: &[u8], levels: usize, length: usize) -> Result<Bytes> {
    let (levels, frame) = page
        .split_at_checked(levels)
        .filter(|(levels, _)| levels.len() <= length)
        .ok_or_else(|| broken("has levels longer than their page"))?;
    let mut unpacked = Vec::with_capacity(length);
    unpacked.extend_from_slice(levels);
    if length > levels.len() {
        let mut cursor = Cursor::new(&mut unpacked);
        cursor.set_position(levels.len() as u64);
        DECOMPRESSOR.with_borrow_mut(|context| {
            let context = match context {
                Some(context) => context,
                None => context.insert(Decompressor::new()?),
            };
            context.decompress_to_buffer(frame, &mut cursor)
        })?;
    }
    match unpacked.len() == length {
        true => Ok(unpacked.into()),
        false => {
            Err(broken(&format!("has a page that decompresses to {} bytes, not {length}", unpacked.len())))
        }
    }
}

fn is_delta(encoding: Encoding) -> bool {
    use Encoding::{DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY};
    matches!(encoding, DELTA_BINARY_PACKED | DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY)
}

/// Return the bytes after the levels of a version 1 page. Each kind of level starts with its length.
pub(super) fn after_levels(bytes: &[u8], max_level: i16, encoding: Encoding) -> Result<&[u8]> {
    if max_level == 0 {
        return Ok(bytes);
    }
    let (length, rest) =
        bytes.split_first_chunk::<4>().ok_or_else(|| broken("has a page without its levels"))?;
    match (encoding, rest.get(u32::from_le_bytes(*length) as usize..)) {
        (Encoding::RLE, Some(rest)) => Ok(rest),
        _ => Err(broken("has a page whose levels are longer than it, or in an encoding out of use")),
    }
}

/// The counts of DELTA encodings: no more values than the page has.
fn check_delta(bytes: &[u8], encoding: Encoding, num_values: u32) -> Result<()> {
    // A page of nulls may have no values at all, not even their count.
    if bytes.is_empty() {
        return Ok(());
    }
    let rest = skip_delta_block(bytes, num_values)?;
    match encoding {
        // Lengths of prefixes, then lengths of suffixes.
        Encoding::DELTA_BYTE_ARRAY => skip_delta_block(rest, num_values).map(drop),
        _ => Ok(()),
    }
}

/// Return the bytes after integers in DELTA_BINARY_PACKED, of which there may be at most `most`.
pub(super) fn skip_delta_block(bytes: &[u8], most: u32) -> Result<&[u8]> {
    let mut rest = bytes;
    let block = varint(&mut rest)?;
    let miniblocks = varint(&mut rest)?;
    let count = varint(&mut rest)?;
    varint(&mut rest)?;
    if count > u64::from(most) {
        return Err(broken(&format!("has {count} deltas in a page of {most} values")));
    }
    // The format requires blocks of a multiple of 128 values; writers use a few hundred.
    if block == 0 || block > 1 << 20 || miniblocks == 0 || miniblocks > block || block % miniblocks != 0 {
        return Err(broken("has deltas in blocks of an impossible size"));
    }
    let miniblock = block / miniblocks;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        varint(&mut rest)?;
        let widths = take(&mut rest, miniblocks)?;
        for width in widths {
            if left == 0 {
                break;
            }
            if *width > 64 {
                return Err(broken("has deltas of more than 64 bits"));
            }
            // The last miniblock may be cut where its values end.
            let length = (u64::from(*width) * miniblock).div_ceil(8).min(rest.len() as u64);
            take(&mut rest, length)?;
            left = left.saturating_sub(miniblock);
        }
    }
    Ok(rest)
}

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8]> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (taken, after) = rest.split_at_checked(length).ok_or_else(|| broken("has deltas that end early"))?;
    *rest = after;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64> {
    decode::varint(|| Ok(take(rest, 1)?.first().copied().unwrap_or_default()), broken)
}

fn broken(what: &str) -> ParquetError {
    ParquetError::General(format!("the file {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delta blocks of 128 values in 4 miniblocks: `count` values from 7, one-bit deltas with a minimum of 0.
    fn deltas(count: u8) -> Vec<u8> {
        let mut bytes = vec![0x80, 0x01, 4, count, 14, 0, 1, 0, 0, 0];
        bytes.extend([0b0101_0101; 4]);
        bytes
    }

    #[test]
    fn a_page_with_as_many_deltas_as_values_passes() {
        let mut bytes = deltas(30);
        bytes.extend(b"text");
        assert_eq!(skip_delta_block(&bytes, 30).unwrap(), b"text");
        check_delta(&bytes, Encoding::DELTA_LENGTH_BYTE_ARRAY, 30).unwrap();
    }

    #[test]
    fn a_page_with_more_deltas_than_values_is_rejected() {
        let error = check_delta(&deltas(30), Encoding::DELTA_BINARY_PACKED, 29).unwrap_err();
        assert_eq!(error.to_string(), "Parquet error: the file has 30 deltas in a page of 29 values");
        let huge = [0x80, 0x01, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0];
        assert!(check_delta(&huge, Encoding::DELTA_LENGTH_BYTE_ARRAY, 1000).is_err());
    }

    #[test]
    fn the_suffixes_of_delta_byte_arrays_are_counted() {
        let pair = |prefixes, suffixes| [deltas(prefixes), deltas(suffixes)].concat();
        check_delta(&pair(30, 30), Encoding::DELTA_BYTE_ARRAY, 30).unwrap();
        assert!(check_delta(&pair(30, 31), Encoding::DELTA_BYTE_ARRAY, 30).is_err());
    }
}
