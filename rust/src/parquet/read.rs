//! Read selected leaf columns of one Parquet file as record batches.
//!
//! Memory holds the compressed chunks of the selected leaves of one row group for each thread, and one decoded batch.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use rayon::prelude::*;

use super::decode::{LeafRows, Plan};
use super::footers::{self, Footer};
use super::legacy_calendar::LegacyCalendar;
use super::names::{Ambiguity, TableColumns};
use super::pages::{Chunks, RowGroup, byte_range};
use super::schema::members;
use super::thrift::check_footer;
use crate::error::{Error, Result};
use crate::panics;

const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED_MAGIC: &[u8] = b"PARE";
/// Length of the footer and the magic, at the end of a file.
pub(super) const TAIL_BYTES: u64 = 8;
/// The bytes read from the end of a file first. Most footers and page indexes fit, and need no further request.
pub const END_BYTES: u64 = 64 << 10;
/// Column chunks closer than this are fetched in one request.
const COALESCE_GAP: u64 = 256 << 10;
/// The approximate maximum of text bytes in a batch: a dictionary can expand a small page to gigabytes, which
/// overflow the offsets of an array.
const BATCH_BYTES: usize = 128 << 20;

/// Where the bytes of a file come from.
pub enum Source {
    Path(PathBuf),
    Bytes(Bytes),
    Ranges(Arc<dyn RangeReader>),
}

/// A file that the caller reads, for example from an object store.
pub trait RangeReader: Send + Sync {
    fn length(&self) -> Result<u64>;
    /// The bytes of each of `ranges`, in their order.
    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
}

/// What to read: leaf columns by their index in the file, row groups in the order wanted.
#[derive(Debug, Clone)]
pub struct Scan {
    pub leaves: Vec<usize>,
    /// The leaves of text that may be dictionaries in some batches, where the file has these.
    pub dictionaries: Vec<usize>,
    pub row_groups: Vec<usize>,
    pub batch_size: usize,
}

/// A file whose footer is read, and parsed only if another file with the same footer was open before.
pub struct FileToOpen {
    store: Store,
    bytes: Bytes,
    footer: Option<Footer>,
}

impl FileToOpen {
    /// Read the footer of `source`.
    ///
    /// Return `ErrorKind::DataFile` for bytes that do not end as a Parquet file does.
    pub fn read(source: Source) -> Result<Self> {
        let store = Store::open(source)?;
        let bytes = footer_bytes(&store)?;
        let footer = footers::known(&bytes, store.length);
        Ok(FileToOpen { store, bytes, footer })
    }

    /// Parse and check the footer. The columns get the names that `table` has for them.
    ///
    /// Return `ErrorKind::DataFile` for a footer that contradicts itself or the length of the file.
    pub fn open(self, table: Option<&TableColumns>) -> Result<ParquetFile> {
        let FileToOpen { store, bytes, footer } = self;
        let mut footer = match footer {
            Some(footer) => footer,
            None => {
                let footer = parse(&bytes, store.length, None)?;
                footers::keep(&bytes, store.length, &footer);
                footer
            }
        };
        let mut ambiguous = Vec::new();
        if let Some(table) = table {
            let root = footer.metadata.file_metadata().schema_descr().root_schema_ptr();
            let renamed = table.rename(&root)?;
            if !Arc::ptr_eq(&root, &renamed.root) {
                footer = parse(&bytes, store.length, Some(SchemaDescriptor::new(renamed.root)))?;
            }
            ambiguous = renamed.ambiguous;
        }
        let Footer { metadata, arrow_schema } = footer;
        let calendar = LegacyCalendar::of(&metadata).map(Arc::new);
        Ok(ParquetFile { store, metadata, arrow_schema, ambiguous, calendar })
    }
}

/// Parse a footer, with another schema than its own if the columns have other names in the table.
fn parse(footer: &Bytes, file_length: u64, schema: Option<SchemaDescriptor>) -> Result<Footer> {
    check_footer(footer)?;
    guarded(|| {
        let options = schema.map(|schema| ParquetMetaDataOptions::new().with_schema(Arc::new(schema)));
        let metadata = ParquetMetaDataReader::decode_metadata_with_options(footer, options.as_ref())?;
        check_row_groups(&metadata, file_length)?;
        let arrow_schema = Arc::new(shared_shapes(&metadata)?);
        Ok(Footer { metadata: Arc::new(metadata), arrow_schema })
    })
}

/// An open file: its footer is read and checked, its data is not.
pub struct ParquetFile {
    store: Store,
    pub(super) metadata: Arc<ParquetMetaData>,
    arrow_schema: SchemaRef,
    ambiguous: Vec<Ambiguity>,
    calendar: Option<Arc<LegacyCalendar>>,
}

impl ParquetFile {
    /// Read and check the footer of `source`.
    ///
    /// Return `ErrorKind::DataFile` for bytes that are not a Parquet file, and for a footer that contradicts itself or
    /// the length of the file. The caller adds the name of the file.
    pub fn open(source: Source) -> Result<Self> {
        FileToOpen::read(source)?.open(None)
    }

    /// The bytes of the footer, which `open` has checked.
    pub(super) fn footer(&self) -> Result<Bytes> {
        footer_bytes(&self.store)
    }

    /// Return an error for a column of the table, at `path`, that several columns of the file match.
    pub fn check_unambiguous(&self, path: &[String]) -> Result<()> {
        self.ambiguous.iter().try_for_each(|ambiguity| ambiguity.check(path))
    }

    /// The columns in the legacy calendar of Spark, if there are any.
    pub(super) fn calendar(&self) -> Option<&LegacyCalendar> {
        self.calendar.as_deref()
    }

    /// Root of the Parquet schema.
    pub fn schema(&self) -> &Type {
        self.metadata().file_metadata().schema()
    }

    /// Arrow schema of a scan of all leaves, made from the Parquet schema alone: an embedded Arrow schema is
    /// not used. The `metadata` of a Variant is `Dictionary(Int32, Binary)`, so that rows share their shapes.
    pub fn arrow_schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    pub fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    pub fn num_rows(&self) -> u64 {
        self.metadata().file_metadata().num_rows().unsigned_abs()
    }

    pub fn row_groups(&self) -> &[RowGroupMetaData] {
        self.metadata().row_groups()
    }

    /// Length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.store.length
    }

    /// Whether the caller reads the file, for example from an object store.
    pub fn is_remote(&self) -> bool {
        matches!(self.store.source, OpenSource::Ranges(_))
    }

    /// A scan of all row groups, in file order.
    pub fn scan(&self, leaves: Vec<usize>, batch_size: usize) -> Scan {
        let row_groups = (0..self.row_groups().len()).collect();
        Scan { leaves, dictionaries: Vec::new(), row_groups, batch_size }
    }

    /// The batches of one row group, holding the scanned leaves and the structs, lists and maps around them.
    ///
    /// The compressed bytes of the leaves are fetched at once; decoding happens batch by batch. A scan of no
    /// leaves gives batches of rows without columns.
    pub fn read_row_group(&self, scan: &Scan, row_group: usize) -> Result<RowGroupBatches> {
        self.read_rows(scan, row_group, None, None)
    }

    /// The batches of some rows of a row group: `rows` are ranges within it, in order and apart from each other. Those
    /// outside of `live`, which are ranges within `rows`, are decoded and left out.
    ///
    /// Pages that hold none of `rows` are not fetched, where the file says which rows its pages hold.
    pub fn read_rows(
        &self,
        scan: &Scan,
        row_group: usize,
        rows: Option<&[Range<u64>]>,
        live: Option<&[Range<u64>]>,
    ) -> Result<RowGroupBatches> {
        let leaves = self.metadata().file_metadata().schema_descr().num_columns();
        if let Some(leaf) = scan.leaves.iter().find(|leaf| **leaf >= leaves) {
            return Err(Error::data_file(format!("the file has {leaves} leaf columns, and no leaf {leaf}")));
        }
        let groups = self.row_groups().len();
        let Some(group) = self.row_groups().get(row_group) else {
            return Err(Error::data_file(format!(
                "the file has {groups} row groups, and no row group {row_group}"
            )));
        };
        let total = group.num_rows().unsigned_abs();
        let selection = rows.map(|rows| selection(rows, total));
        let locations = match &selection {
            Some(_) => self.page_locations(row_group, &scan.leaves)?,
            None => HashMap::new(),
        };
        let mut ranges = Vec::new();
        for leaf in &scan.leaves {
            let chunk = byte_range(group, *leaf)?;
            match (&selection, locations.get(leaf)) {
                (Some(selection), Some(pages)) => ranges.extend(page_ranges(selection, pages, chunk)),
                _ => ranges.push(chunk),
            }
        }
        let chunks = self.fetch(ranges)?;
        let descriptor = self.metadata.file_metadata().schema_descr();
        let missing = match live.or(rows) {
            Some(rows) => rows.iter().map(|range| range.end.min(total).saturating_sub(range.start)).sum(),
            None => total,
        };
        let batch_size = rows_at_a_time(group, scan);
        let reader = guarded(|| {
            let pages = RowGroup::new(chunks, self.metadata.clone(), row_group, locations, &scan.leaves)?;
            let plan = Plan::of(self.arrow_schema.fields(), descriptor, &scan.leaves, &pages);
            let others = match plan.others.is_empty() && !plan.own.is_empty() {
                true => None,
                false => {
                    let mask = ProjectionMask::leaves(descriptor, plan.others.iter().copied());
                    let fields = Some(self.arrow_schema.fields());
                    let levels = parquet_to_arrow_field_levels(descriptor, mask, fields)?;
                    Some(ParquetRecordBatchReader::try_new_with_row_groups(
                        &levels, &pages, batch_size, selection,
                    )?)
                }
            };
            Ok(LeafRows::new(plan, &pages, &scan.dictionaries, others, [rows, live], batch_size)?)
        })?;
        let rebase = self.calendar.clone().map(|calendar| {
            let leaves = scan.leaves.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
            Rebase { calendar, leaves }
        });
        Ok(RowGroupBatches { reader: Some(reader), missing, rebase })
    }

    /// The pages of leaves of a row group, which are fetched and checked.
    pub(super) fn row_group(&self, row_group: usize, leaves: &[usize]) -> Result<RowGroup> {
        let group = &self.row_groups()[row_group];
        let ranges = leaves.iter().map(|leaf| byte_range(group, *leaf)).collect::<Result<_>>()?;
        self.checked_pages(self.fetch(ranges)?, row_group, leaves)
    }

    /// The pages of leaves of a row group, whose chunks were fetched.
    pub(super) fn checked_pages(
        &self,
        chunks: Chunks,
        row_group: usize,
        leaves: &[usize],
    ) -> Result<RowGroup> {
        guarded(|| Ok(RowGroup::new(chunks, self.metadata.clone(), row_group, HashMap::new(), leaves)?))
    }

    fn page_locations(
        &self,
        row_group: usize,
        leaves: &[usize],
    ) -> Result<HashMap<usize, Vec<PageLocation>>> {
        let pages = self.page_indexes(&[row_group], leaves, false)?;
        let known = leaves
            .iter()
            .zip(pages.into_iter().flatten())
            .filter_map(|(leaf, pages)| Some((*leaf, pages?.locations)));
        Ok(known.collect())
    }

    /// Fetch `ranges`, those close to each other together.
    pub(super) fn fetch(&self, ranges: Vec<Range<u64>>) -> Result<Chunks> {
        fetch_chunks(&self.store, ranges)
    }

    /// Bytes that were read of the file so far.
    pub fn bytes_read(&self) -> u64 {
        self.store.bytes_read.load(Relaxed)
    }

    /// The batches of a scan, one after another, on this thread.
    pub fn read(&self, scan: &Scan) -> impl Iterator<Item = Result<RecordBatch>> {
        scan.row_groups.iter().flat_map(|row_group| self.batches_or_error(scan, *row_group))
    }

    /// The batches of a scan, which keep the file open.
    pub fn read_owned(self: Arc<Self>, scan: Scan) -> impl Iterator<Item = Result<RecordBatch>> + Send {
        let row_groups = scan.row_groups.clone();
        row_groups.into_iter().flat_map(move |row_group| self.batches_or_error(&scan, row_group))
    }

    fn batches_or_error(
        &self,
        scan: &Scan,
        row_group: usize,
    ) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        let (batches, error) = match self.read_row_group(scan, row_group) {
            Ok(batches) => (Some(batches), None),
            Err(error) => (None, Some(Err(error))),
        };
        batches.into_iter().flatten().chain(error)
    }

    /// Apply `work` to each batch of a scan. Return its results in order, as an iterator over the row groups.
    ///
    /// As many row groups as rayon has threads are decoded and worked on at a time, so memory holds the results of
    /// that many row groups, whatever the size of the file.
    pub fn read_parallel<'a, T, F>(
        &'a self,
        scan: &'a Scan,
        work: F,
    ) -> impl Iterator<Item = Result<Vec<T>>> + 'a
    where
        T: Send + 'a,
        F: Fn(RecordBatch) -> Result<T> + Sync + 'a,
    {
        let wave = rayon::current_num_threads().max(1);
        scan.row_groups.chunks(wave).flat_map(move |row_groups| {
            let outcome = |row_group: &usize| -> Result<Vec<T>> {
                self.read_row_group(scan, *row_group)?.map(|batch| work(batch?)).collect()
            };
            row_groups.par_iter().with_max_len(1).map(outcome).collect::<Vec<_>>()
        })
    }
}

/// The batches of one row group. After an error there are no more.
pub struct RowGroupBatches {
    reader: Option<LeafRows>,
    /// The remaining rows, according to the footer.
    missing: u64,
    rebase: Option<Rebase>,
}

/// The leaves of batches in the legacy calendar, in the order of the file.
struct Rebase {
    calendar: Arc<LegacyCalendar>,
    leaves: Vec<usize>,
}

impl Iterator for RowGroupBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let outcome = match guarded(|| Ok(reader.next()?)) {
            Ok(Some(batch)) => self.counted(batch),
            Ok(None) if self.missing > 0 => Err(broken(&format!("ends {} rows early", self.missing))),
            Ok(None) => {
                self.reader = None;
                return None;
            }
            Err(error) => Err(broken(&format!("cannot be decoded: {error}"))),
        };
        if outcome.is_err() {
            self.reader = None;
        }
        Some(outcome)
    }
}

impl RowGroupBatches {
    fn counted(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        match self.missing.checked_sub(batch.num_rows() as u64) {
            Some(missing) => self.missing = missing,
            None => return Err(broken("has more rows than its footer says")),
        }
        match &self.rebase {
            Some(Rebase { calendar, leaves }) => calendar.rebase(&batch, leaves),
            None => Ok(batch),
        }
    }
}

/// Run the decoder, which panics on some broken files where it should return an error.
pub(super) fn guarded<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    panics::catch(decode).unwrap_or_else(|panic| Err(broken(&format!("cannot be decoded: {panic}"))))
}

fn broken(what: &str) -> Error {
    Error::data_file(format!("the Parquet file {what}"))
}

/// A source that is open and whose length is known.
struct Store {
    source: OpenSource,
    length: u64,
    /// The last bytes of the file, at most `END_BYTES`.
    end: Bytes,
    bytes_read: AtomicU64,
}

enum OpenSource {
    File(File),
    Bytes(Bytes),
    Ranges(Arc<dyn RangeReader>),
}

impl Store {
    fn open(source: Source) -> Result<Self> {
        let (length, source) = match source {
            Source::Path(path) => {
                let file = File::open(path)?;
                (file.metadata()?.len(), OpenSource::File(file))
            }
            Source::Bytes(bytes) => (bytes.len() as u64, OpenSource::Bytes(bytes)),
            Source::Ranges(reader) => (reader.length()?, OpenSource::Ranges(reader)),
        };
        let mut store = Store { source, length, end: Bytes::new(), bytes_read: AtomicU64::new(0) };
        store.end = store.fetch_one(length.saturating_sub(END_BYTES)..length)?;
        Ok(store)
    }

    /// The bytes of each of `ranges`, all of which lie within the file.
    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let kept: Vec<Option<Bytes>> = ranges.iter().map(|range| self.at_end(range)).collect();
        let missing = ranges.iter().zip(&kept).filter(|(_, kept)| kept.is_none());
        let missing: Vec<Range<u64>> = missing.map(|(range, _)| range.clone()).collect();
        let mut read = if missing.is_empty() { Vec::new() } else { self.read(&missing)? }.into_iter();
        Ok(kept.into_iter().filter_map(|kept| kept.or_else(|| read.next())).collect())
    }

    fn at_end(&self, range: &Range<u64>) -> Option<Bytes> {
        let start = range.start.checked_sub(self.length - self.end.len() as u64)?;
        Some(self.end.slice(start as usize..(start + range.end - range.start) as usize))
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let read = match &self.source {
            OpenSource::File(file) => {
                ranges.iter().map(|range| read_at(file, range)).collect::<Result<_>>()?
            }
            OpenSource::Bytes(bytes) => ranges
                .iter()
                .map(|range| bytes.slice(range.start as usize..range.end as usize))
                .collect::<Vec<_>>(),
            OpenSource::Ranges(reader) => reader.read(ranges)?,
        };
        let asked = ranges.iter().map(|range| range.end - range.start);
        self.bytes_read.fetch_add(asked.clone().sum(), Relaxed);
        match read.iter().map(|bytes| bytes.len() as u64).eq(asked) {
            true => Ok(read),
            false => Err(broken("was read in ranges of other lengths than asked for")),
        }
    }

    fn fetch_one(&self, range: Range<u64>) -> Result<Bytes> {
        let mut read = self.fetch(std::slice::from_ref(&range))?;
        read.pop().ok_or_else(|| broken("could not be read"))
    }
}

/// The size from which a read has memory that returns to the system as soon as it is free. The allocator keeps that of
/// other sizes in the arena of each thread, where what remains in use splits it.
const MAPPED_BYTES: usize = 4 << 20;

/// Read without moving the file's own position, which all threads share.
fn read_at(file: &File, range: &Range<u64>) -> Result<Bytes> {
    let length = (range.end - range.start) as usize;
    if length >= MAPPED_BYTES {
        let mut bytes = memmap2::MmapMut::map_anon(length)?;
        // A page of new memory costs a fault, and few systems use large pages without this advice.
        #[cfg(target_os = "linux")]
        let _ = bytes.advise(memmap2::Advice::HugePage);
        read_exact_at(file, &mut bytes, range.start)?;
        return Ok(Bytes::from_owner(bytes));
    }
    let mut bytes = vec![0; length];
    read_exact_at(file, &mut bytes, range.start)?;
    Ok(bytes.into())
}

fn read_exact_at(file: &File, bytes: &mut [u8], start: u64) -> Result<()> {
    #[cfg(unix)]
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, start)?;
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < bytes.len() {
            let offset = start + done as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], offset)? {
                0 => return Err(broken("became shorter while it was read")),
                read => done += read,
            }
        }
    }
    Ok(())
}

fn footer_bytes(store: &Store) -> Result<Bytes> {
    let length = store.length;
    if length < TAIL_BYTES + MAGIC.len() as u64 {
        return Err(broken(&format!("has only {length} bytes")));
    }
    let end = &store.end;
    let (rest, tail) = end.split_at(end.len() - TAIL_BYTES as usize);
    let (mut size, magic) = tail.split_at(4);
    match magic {
        MAGIC => {}
        ENCRYPTED_MAGIC => return Err(Error::unsupported("the Parquet file has an encrypted footer")),
        _ => return Err(broken("does not end with the magic bytes PAR1")),
    }
    let size = u64::from(size.get_u32_le());
    if size > length - TAIL_BYTES - MAGIC.len() as u64 {
        return Err(broken(&format!("has {length} bytes, and says that its footer has {size}")));
    }
    match rest.len().checked_sub(size as usize) {
        Some(start) => Ok(end.slice(start..rest.len())),
        None => store.fetch_one(length - TAIL_BYTES - size..length - TAIL_BYTES),
    }
}

fn check_row_groups(metadata: &ParquetMetaData, length: u64) -> Result<()> {
    let mut rows = 0_i64;
    for group in metadata.row_groups() {
        if group.num_columns() != metadata.file_metadata().schema_descr().num_columns() {
            return Err(broken("has a row group without all of its columns"));
        }
        if group.num_rows() < 0 || group.columns().iter().any(|chunk| chunk.num_values() < 0) {
            return Err(broken("has a negative count of rows or values"));
        }
        rows =
            rows.checked_add(group.num_rows()).ok_or_else(|| broken("has an impossible number of rows"))?;
        for leaf in 0..group.num_columns() {
            if byte_range(group, leaf)?.end > length {
                return Err(broken("has a column chunk that ends after the file"));
            }
        }
    }
    let stated = metadata.file_metadata().num_rows();
    match rows == stated {
        true => Ok(()),
        false => Err(broken(&format!("has {rows} rows in its row groups, and {stated} in its footer"))),
    }
}

/// Rows decoded at a time where a file does not state the size of its text: that of a dictionary can be far larger.
const ROWS_OF_UNKNOWN_SIZE: usize = 64 << 10;

/// The number of rows in a batch: fewer than requested where they are large.
fn rows_at_a_time(group: &RowGroupMetaData, scan: &Scan) -> usize {
    let chunks = scan.leaves.iter().map(|leaf| group.column(*leaf));
    let texts = chunks.filter(|chunk| chunk.column_type() == PhysicalType::BYTE_ARRAY);
    let stated = texts.clone().all(|chunk| chunk.unencoded_byte_array_data_bytes().is_some());
    let size = |chunk: &ColumnChunkMetaData| {
        chunk.unencoded_byte_array_data_bytes().unwrap_or(chunk.uncompressed_size()).unsigned_abs()
    };
    let bytes_of_rows =
        texts.map(size).fold(0u64, u64::saturating_add) / group.num_rows().unsigned_abs().max(1);
    let most = BATCH_BYTES / usize::try_from(bytes_of_rows).unwrap_or(usize::MAX).max(1);
    let wanted = if stated { scan.batch_size } else { scan.batch_size.min(ROWS_OF_UNKNOWN_SIZE) };
    wanted.min(most).max(1)
}

fn selection(rows: &[Range<u64>], total: u64) -> RowSelection {
    let ranges = rows.iter().map(|range| range.start as usize..range.end.min(total) as usize);
    RowSelection::from_consecutive_ranges(ranges, total as usize)
}

/// The bytes of a column chunk that hold the selected rows: its dictionary, and pages.
fn page_ranges(
    selection: &RowSelection,
    pages: &[PageLocation],
    chunk: Range<u64>,
) -> impl Iterator<Item = Range<u64>> {
    let first = pages.first().map_or(chunk.end, |page| page.offset.unsigned_abs());
    let dictionary = (chunk.start < first).then_some(chunk.start..first);
    dictionary.into_iter().chain(selection.scan_ranges(pages))
}

/// Fetch `ranges`, those close to each other together.
fn fetch_chunks(store: &Store, mut ranges: Vec<Range<u64>>) -> Result<Chunks> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(COALESCE_GAP) => {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    let bytes = store.fetch(&merged)?;
    let pieces = merged.iter().map(|range| range.start).zip(bytes).collect();
    Ok(Chunks { pieces, file_length: store.length })
}

/// The Arrow schema of a file, with the `metadata` of Variants as dictionaries, and INT96 in microseconds.
fn shared_shapes(metadata: &ParquetMetaData) -> Result<Schema> {
    let descriptor = metadata.file_metadata().schema_descr();
    let schema = parquet_to_arrow_schema(descriptor, None)?;
    let columns = descriptor.root_schema().get_fields();
    let fields = schema.fields().iter().zip(columns).map(|(field, column)| share(field, column));
    Ok(Schema::new(fields.collect::<Fields>()))
}

fn share(field: &FieldRef, column: &TypePtr) -> FieldRef {
    let children = members(column);
    let data_type = match (field.data_type(), children) {
        _ if column.is_primitive() && column.get_physical_type() == PhysicalType::INT96 => {
            // Spark's older timestamp: microseconds hold all of its years, the nanoseconds of the crate do not.
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        (DataType::Struct(fields), _) if is_variant_group(column) => {
            DataType::Struct(share_members(fields, children, |field, child| match child.name() {
                "metadata" => shared(field),
                _ => share(field, child),
            }))
        }
        (DataType::Struct(fields), _) => DataType::Struct(share_members(fields, children, share)),
        (DataType::List(element), [repeated]) => match members(repeated) {
            [item] => DataType::List(share(element, item)),
            _ => return field.clone(),
        },
        (DataType::Map(entries, sorted), [repeated]) => match entries.data_type() {
            DataType::Struct(pair) => {
                let pair = DataType::Struct(share_members(pair, members(repeated), share));
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(pair)), *sorted)
            }
            _ => return field.clone(),
        },
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Apply `share` to `fields`, or return them unchanged where the groups of the file have another shape (lists and
/// maps in an old form).
fn share_members(
    fields: &Fields,
    children: &[TypePtr],
    share: impl Fn(&FieldRef, &TypePtr) -> FieldRef,
) -> Fields {
    match fields.len() == children.len() {
        true => fields.iter().zip(children).map(|(field, child)| share(field, child)).collect(),
        false => fields.clone(),
    }
}

fn shared(metadata: &Field) -> FieldRef {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Binary));
    Arc::new(metadata.clone().with_data_type(dictionary))
}

/// Whether a group is annotated VARIANT, or has the shape of an unannotated Variant: a required binary `metadata`
/// and otherwise only `value` and `typed_value`.
fn is_variant_group(group: &Type) -> bool {
    let members = members(group);
    let binary =
        |member: &Type| member.is_primitive() && member.get_physical_type() == PhysicalType::BYTE_ARRAY;
    let Some(metadata) = members.iter().find(|member| member.name() == "metadata") else {
        return false;
    };
    let plain = binary(metadata) && metadata.get_basic_info().logical_type_ref().is_none();
    if matches!(group.get_basic_info().logical_type_ref(), Some(LogicalType::Variant(_))) {
        return plain;
    }
    let info = metadata.get_basic_info();
    let required = info.has_repetition() && info.repetition() == Repetition::REQUIRED;
    let named = |member: &TypePtr| matches!(member.name(), "metadata" | "value" | "typed_value");
    plain && required && members.len() > 1 && members.iter().all(named)
}
