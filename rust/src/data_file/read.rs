//! Read columns of one data file, whole Variants or values by path. Only the required leaf columns are decoded.
//!
//! At most `DECODED_BYTES`, and as many for each thread, are decoded ahead of the consumer.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::iter;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, LargeListArray, ListArray, MapArray, OffsetSizeTrait,
    RecordBatch, RecordBatchOptions, StructArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{DataType, Field, Fields, Schema};
use arrow_select::concat::concat_batches;
use parquet::schema::types::Type;
use rayon::prelude::*;
use roaring::RoaringTreemap;

use super::columns::locate;
use super::conditions::Condition;
use super::dictionaries::Dictionary;
use super::filter::filter_rows;
use super::rows::{RowGroups, RowNumbers, Selected};
use super::text::{as_dictionary, is_other_form};
use crate::error::{Error, Result};
use crate::legacy;
use crate::parquet::read::{ParquetFile, RowGroupBatches, Scan};
use crate::parquet::schema::members;
use crate::parquet::variants::check_variant_column;
use crate::shred::OnConflict;
use crate::shred::extract::{extract, leaves_needed, needs_metadata, stored_text};
use crate::shred::print::to_json_in_buffers;
use crate::shred::schema::{EXTENSION_NAME, VARIANT_EXTENSION};
use crate::shred::text_buffers::TextBuffers;
use crate::shred::unshred::unshred;
use crate::value::Zone;
use crate::value::cast::{Casting, variant_fields};
use crate::value::column::leaf_count;
use crate::value::path::Step;

/// Rows decoded at a time, where only leaves are read.
const BATCH_ROWS: usize = 64 << 10;
/// The rows decoded at a time for the values at one path: each engine takes time for each batch.
const PATH_BATCH_ROWS: usize = 256 << 10;
/// Rows decoded at a time where values are rebuilt, few enough that their columns stay in the CPU cache.
const WHOLE_BATCH_ROWS: usize = 8 << 10;
/// Batches of whole values that are decoded ahead of the rebuilding.
const WHOLE_BATCHES: usize = 8;
/// The maximum of decoded bytes that wait for the consumer, for whole values or the leaves of one row group. No further
/// row group is begun while others have as many.
const DECODED_BYTES: usize = 32 << 20;
/// The same for the last row group of a file: one thread decodes a few batches while the consumer works with those before.
const DECODED_BYTES_OF_LAST: usize = 4 << 20;
/// The row groups for each thread whose leaves are read at once, after the first for each thread.
const ROW_GROUPS_AHEAD: usize = 4;

/// One column of the result.
#[derive(Debug, Clone)]
pub struct Projection {
    /// The column of the file, and below it the fields of structs that lead to a Variant.
    pub column: Vec<String>,
    pub what: What,
    /// The field of the result; where the file lacks the column, it is null.
    pub field: Field,
}

impl Projection {
    /// The type that values of a path are cast to: each form of text has strings.
    fn target(&self) -> &DataType {
        match self.field.data_type() {
            data_type if is_other_form(data_type) => &DataType::Utf8,
            data_type => data_type,
        }
    }

    fn locate(&self, error: Error) -> Error {
        error.in_column(&self.column.join("."))
    }
}

#[derive(Debug, Clone)]
pub enum What {
    /// The column itself, with its Variants unshredded.
    Column,
    /// The column as it is stored: text is dictionaries in batches in which all of it is.
    Stored,
    /// The values at a path in a Variant, cast to the type of the result's field. It may be a dictionary of
    /// strings, or views, which are strings or a dictionary of them until `with_views`.
    Path { path: Vec<Step>, casting: Casting },
    /// The values at a path in a Variant as JSON text, with timestamps as local times of a zone.
    Json { path: Vec<Step>, zone: Zone },
    /// The numbers of the rows in the file, from 0 on, deleted ones counted.
    Position,
}

/// Rows of a result.
pub struct Found {
    /// The number of rows that were read for it, those that a condition dropped included.
    pub rows_read: usize,
    pub batch: RecordBatch,
}

/// The result of a read: record batches of the projections, in the order of the file.
pub struct DataFileReader {
    query: Query,
    row_groups: RowGroups,
    decoder: Decoder,
    /// Row groups of which leaves are read, in the order of the file.
    reading: VecDeque<LeafReader>,
    /// Whether the consumer has batches already.
    has_begun: bool,
    ready: VecDeque<Found>,
    failed: bool,
}

/// How to read Variants in the legacy layout.
#[derive(Debug, Clone, Copy)]
pub struct LegacyLayout {
    /// Whether to follow the draft's algorithm where its rules forbid the data.
    pub compat: bool,
}

/// The query of a read.
struct Query {
    file: Arc<ParquetFile>,
    projections: Vec<Projection>,
    on_conflict: OnConflict,
    /// How to read Variants, if they are in the legacy layout.
    legacy: Option<LegacyLayout>,
    /// Rows for which one of them is not true may be dropped.
    conditions: Vec<Condition>,
    /// Whether only the number of rows that meet the conditions is needed.
    is_count: bool,
    /// For the JSON text of Variants.
    buffers: TextBuffers,
}

/// The rows of a batch that are kept, and their numbers in the file.
struct Kept<'a> {
    batch: Cow<'a, RecordBatch>,
    /// The rows of the file from which the batch was read.
    rows: &'a [Range<u64>],
    /// Which of them are kept; `None` for all.
    mask: Option<BooleanBuffer>,
}

impl<'a> Kept<'a> {
    fn new(batch: &'a RecordBatch, rows: &'a [Range<u64>]) -> Self {
        Kept { batch: Cow::Borrowed(batch), rows, mask: None }
    }

    /// Keep those of the rows that are set in `mask`, or all.
    fn select(self, mask: Option<BooleanBuffer>) -> Result<Self> {
        let Some(mask) = mask else { return Ok(self) };
        let batch = filter_rows(&self.batch, &BooleanArray::new(mask.clone(), None))?;
        let mask = match &self.mask {
            Some(before) => within(before, &mask),
            None => mask,
        };
        Ok(Kept { batch: Cow::Owned(batch), rows: self.rows, mask: Some(mask) })
    }

    fn numbers(&self) -> impl Iterator<Item = u64> + Clone {
        let all = || self.rows.iter().cloned().flatten();
        let kept =
            self.mask.as_ref().map(|mask| all().zip(mask).filter(|(_, kept)| *kept).map(|(row, _)| row));
        let whole = kept.is_none().then(all);
        whole.into_iter().flatten().chain(kept.into_iter().flatten())
    }

    /// Replace the row of the batch in an error by its number in the file.
    fn locate(&self, error: Error) -> Error {
        error.map_row(|row| self.numbers().nth(row).unwrap_or_default() as usize)
    }
}

/// Set those of the rows set in `mask` that are set in `selected`, which has a bit for each of them.
fn within(mask: &BooleanBuffer, selected: &BooleanBuffer) -> BooleanBuffer {
    let mut bits = BooleanBufferBuilder::new(mask.len());
    bits.append_n(mask.len(), false);
    for (row, is_selected) in mask.set_indices().zip(selected) {
        bits.set_bit(row, is_selected);
    }
    bits.finish()
}

/// The state of a read of whole values, which are large, so row groups are not held in memory.
#[derive(Default)]
struct Decoder {
    batches: Option<RowGroupBatches>,
    /// The rows that are decoded next.
    rows: RowNumbers,
    /// Decoded batches that are not rebuilt yet.
    decoded: Vec<Decoded>,
}

/// What the decoding of whole values gives.
enum Decoded {
    /// A batch of these rows.
    Rows(Vec<Range<u64>>, RecordBatch),
    /// The number of the rows in a row group of which none meets the conditions. They are not decoded.
    Excluded(usize),
}

/// The state of a read of leaves in one row group.
struct LeafReader {
    selected: Selected,
    /// Whether `metadata` is read, which depends on the contents of the leaves.
    has_metadata: bool,
    batches: Option<RowGroupBatches>,
    /// The rows that come next.
    rows: RowNumbers,
    is_at_end: bool,
    projected: Vec<Found>,
    /// The error after the rows in `projected`, which end with it.
    error: Option<Error>,
}

impl DataFileReader {
    /// Return a reader of `rows`, which are ascending and disjoint ranges, or of all rows. `deleted` are the numbers
    /// of rows in the file to skip.
    ///
    /// Variant columns of types that the specification does not allow are rejected, even if no row uses them.
    pub fn new(
        file: Arc<ParquetFile>,
        projections: Vec<Projection>,
        rows: Option<&[Range<u64>]>,
        on_conflict: OnConflict,
        deleted: Option<RoaringTreemap>,
    ) -> Result<Self> {
        for projection in projections.iter().filter(|each| !matches!(each.what, What::Position)) {
            file.check_unambiguous(&projection.column)?;
            check_variants(file.schema(), projection).map_err(|error| projection.locate(error))?;
        }
        let row_groups = RowGroups::of(&file, rows, deleted);
        Ok(DataFileReader {
            query: Query {
                file,
                projections,
                on_conflict,
                legacy: None,
                conditions: Vec::new(),
                is_count: false,
                buffers: TextBuffers::default(),
            },
            row_groups,
            decoder: Decoder::default(),
            reading: VecDeque::new(),
            has_begun: false,
            ready: VecDeque::new(),
            failed: false,
        })
    }

    /// Return the same reader for a file in the legacy layout.
    pub fn with_legacy_layout(mut self, legacy: LegacyLayout) -> Self {
        self.query.legacy = Some(legacy);
        self
    }

    /// Return the same reader for rows that meet the conditions. Some rows that do not may be among them.
    pub fn with_conditions(mut self, conditions: Vec<Condition>) -> Self {
        self.query.conditions = conditions;
        self
    }

    /// Return the same reader for the number of rows that meet the conditions: where these decide about each row,
    /// batches have no columns.
    pub fn counting(mut self) -> Self {
        self.query.is_count = true;
        self
    }

    /// Return the batches that are read at once, or `None` after the last; after an error there are no more.
    pub fn next_batches(&mut self) -> Option<Result<VecDeque<Found>>> {
        while self.ready.is_empty() && !self.failed && !self.is_at_end() {
            if let Err(error) = self.read_ahead() {
                self.failed = true;
                self.ready.clear();
                return Some(Err(error));
            }
        }
        let batches = std::mem::take(&mut self.ready);
        (!batches.is_empty()).then_some(Ok(batches))
    }

    fn is_at_end(&self) -> bool {
        self.row_groups.is_empty() && self.decoder.is_at_end() && self.reading.is_empty()
    }

    fn read_ahead(&mut self) -> Result<()> {
        match self.query.is_whole() {
            true => self.read_values(),
            false => self.read_leaves(),
        }
    }

    /// Rebuild the decoded batches on all threads, while one of them decodes the next.
    fn read_values(&mut self) -> Result<()> {
        let DataFileReader { query, row_groups, decoder, ready, .. } = self;
        let decoded = std::mem::take(&mut decoder.decoded);
        let (decoding, projected) = rayon::join(
            || decoder.decode(query, row_groups),
            || {
                let project = |decoded: &Decoded| match decoded {
                    Decoded::Rows(rows, batch) => query.project_rows(batch, rows),
                    Decoded::Excluded(count) => query.project_none(*count),
                };
                decoded.par_iter().with_max_len(1).map(project).collect::<Vec<_>>()
            },
        );
        ready.extend(query.combine(projected.into_iter().collect::<Result<_>>()?)?);
        decoding
    }

    /// Read row groups on all threads. The first time, each thread reads a batch of one, so that the consumer can begin.
    fn read_leaves(&mut self) -> Result<()> {
        let DataFileReader { query, row_groups, reading, has_begun, ready, .. } = self;
        let threads = rayon::current_num_threads();
        let (most, bytes) = match *has_begun || query.is_count {
            true => (threads * ROW_GROUPS_AHEAD, DECODED_BYTES),
            false => (threads, 1),
        };
        *has_begun = true;
        let count = most.saturating_sub(reading.len());
        reading.extend(row_groups.take(count).map(LeafReader::new));
        let bytes = if reading.len() > 1 { bytes } else { bytes.min(DECODED_BYTES_OF_LAST) };
        advance_in_order(reading, query, threads, bytes);
        while let Some(first) = reading.front_mut() {
            ready.extend(first.projected.drain(..));
            if !first.is_at_end || first.error.is_some() && !ready.is_empty() {
                break;
            }
            if let Some(error) = first.error.take() {
                return Err(error);
            }
            reading.pop_front();
        }
        Ok(())
    }
}

/// Advance the readers on several threads, from the first on, each until `bytes` wait, and until `DECODED_BYTES` do in all.
fn advance_in_order(readers: &mut VecDeque<LeafReader>, query: &Query, threads: usize, bytes: usize) {
    let threads = threads.min(readers.len());
    let decoded = AtomicUsize::new(readers.iter().map(LeafReader::decoded_bytes).sum());
    let remaining = Mutex::new(readers.iter_mut().enumerate());
    let next = || remaining.lock().ok()?.next();
    (0..threads).into_par_iter().with_max_len(1).for_each(|_| {
        while let Some((index, reader)) = next() {
            // The consumer waits for the first.
            if index == 0 || decoded.load(Relaxed) < DECODED_BYTES {
                let before = reader.decoded_bytes();
                if let Err(error) = reader.advance(query, bytes) {
                    (reader.error, reader.is_at_end) = (Some(error), true);
                }
                decoded.fetch_add(reader.decoded_bytes().saturating_sub(before), Relaxed);
                // Another file is not read after all row groups of this one, but at the same time.
                rayon::yield_now();
            }
        }
    });
}

impl LeafReader {
    fn new(selected: Selected) -> Self {
        let rows = selected.numbers();
        LeafReader {
            selected,
            has_metadata: false,
            batches: None,
            rows,
            is_at_end: false,
            projected: Vec::new(),
            error: None,
        }
    }

    /// The bytes that wait for the consumer.
    fn decoded_bytes(&self) -> usize {
        self.projected.iter().map(|found| found.batch.get_array_memory_size()).sum()
    }

    /// Read and project batches until `most` bytes wait.
    fn advance(&mut self, query: &Query, most: usize) -> Result<()> {
        let mut bytes = self.decoded_bytes();
        while !self.is_at_end && bytes < most {
            let Some(batches) = &mut self.batches else {
                if !self.has_metadata && query.excludes(self.selected.row_group) {
                    self.projected.push(query.project_none(self.selected.len())?);
                    self.is_at_end = true;
                    continue;
                }
                self.batches = Some(query.read_leaves(&self.selected, self.has_metadata)?);
                continue;
            };
            match batches.next().transpose()? {
                None => self.is_at_end = true,
                Some(batch) if !self.has_metadata && query.lacks_metadata(&batch)? => self.add_metadata(),
                Some(batch) => {
                    let rows = self.rows.take(batch.num_rows());
                    let found = query.project_rows(&batch, &rows)?;
                    bytes += match query.conditions.is_empty() {
                        true => batch.get_array_memory_size(),
                        false => found.batch.get_array_memory_size(),
                    };
                    self.projected.push(found);
                }
            }
        }
        self.projected = query.combine(std::mem::take(&mut self.projected))?;
        Ok(())
    }

    /// Read the next rows again, with names.
    fn add_metadata(&mut self) {
        self.has_metadata = true;
        self.batches = None;
        self.selected.restrict(&self.rows);
    }
}

impl Decoder {
    fn is_at_end(&self) -> bool {
        self.batches.is_none() && self.decoded.is_empty()
    }

    /// Decode some batches, from the next row group when one is at its end.
    fn decode(&mut self, query: &Query, row_groups: &mut RowGroups) -> Result<()> {
        let mut bytes = 0;
        while self.decoded.len() < WHOLE_BATCHES && bytes < DECODED_BYTES {
            let Some(batches) = &mut self.batches else {
                let Some(selected) = row_groups.next() else { return Ok(()) };
                if query.excludes(selected.row_group) {
                    self.decoded.push(Decoded::Excluded(selected.len()));
                    continue;
                }
                self.rows = selected.numbers();
                self.batches = Some(query.read_rows(&query.whole_scan()?, &selected)?);
                continue;
            };
            match batches.next().transpose()? {
                None => self.batches = None,
                Some(batch) => {
                    bytes += batch.get_array_memory_size();
                    self.decoded.push(Decoded::Rows(self.rows.take(batch.num_rows()), batch));
                }
            }
        }
        Ok(())
    }
}

impl Query {
    fn whole_scan(&self) -> Result<Scan> {
        let needed = self.needed_leaves()?;
        let leaves: BTreeSet<usize> =
            needed.iter().flat_map(|one| one.leaves.iter().chain(&one.metadata)).copied().collect();
        Ok(Scan {
            leaves: leaves.into_iter().collect(),
            dictionaries: self.dictionaries(),
            row_groups: Vec::new(),
            batch_size: WHOLE_BATCH_ROWS,
        })
    }

    /// The leaves whose text may be dictionaries: those of Variants that are rebuilt, and of columns as they are stored.
    fn dictionaries(&self) -> Vec<usize> {
        let fields = self.file.arrow_schema().fields();
        let kept = self.projections.iter().filter(|each| match each.what {
            What::Column => is_variant(&each.field),
            What::Stored | What::Json { .. } => true,
            What::Path { .. } => {
                is_other_form(each.field.data_type())
                    || (self.is_tested(each) && *each.target() == DataType::Utf8)
            }
            What::Position => false,
        });
        let leaves = kept
            .filter_map(|each| locate(fields, &each.column))
            .flat_map(|(first, field)| first..first + leaf_count(field.data_type()));
        leaves.collect()
    }

    fn is_tested(&self, projection: &Projection) -> bool {
        let tested =
            self.conditions.iter().filter_map(|condition| self.projections.get(condition.projection));
        tested.into_iter().any(|one| std::ptr::eq(one, projection))
    }

    fn rows_at_a_time(&self) -> usize {
        match self.projections.as_slice() {
            [one] if matches!(one.what, What::Path { .. }) && !one.target().is_nested() => PATH_BATCH_ROWS,
            _ => BATCH_ROWS,
        }
    }

    fn read_rows(&self, scan: &Scan, selected: &Selected) -> Result<RowGroupBatches> {
        let [rows, live] = selected.ranges();
        self.file.read_rows(scan, selected.row_group, rows, live)
    }

    /// Read the required leaves of a row group, with or without `metadata`.
    fn read_leaves(&self, selected: &Selected, with_metadata: bool) -> Result<RowGroupBatches> {
        let needed = self.needed_leaves()?;
        let metadata = needed.iter().filter_map(|one| one.metadata.filter(|_| with_metadata));
        let leaves: BTreeSet<usize> =
            needed.iter().flat_map(|one| &one.leaves).copied().chain(metadata).collect();
        let scan = Scan {
            batch_size: self.rows_at_a_time(),
            leaves: leaves.into_iter().collect(),
            dictionaries: self.dictionaries(),
            row_groups: Vec::new(),
        };
        self.read_rows(&scan, selected)
    }

    /// The projections of a batch of `rows` of the file, without those that a condition drops.
    fn project_rows(&self, batch: &RecordBatch, rows: &[Range<u64>]) -> Result<Found> {
        let mut selected = Kept::new(batch, rows);
        let rows_read = batch.num_rows();
        let mut are_decided = self.is_count;
        for (index, condition) in self.conditions.iter().enumerate() {
            let found = self.matching(condition, &selected.batch).map_err(|error| selected.locate(error))?;
            are_decided &= found.is_some();
            if let Some(found) = &found
                && are_decided
                && index + 1 == self.conditions.len()
            {
                return Ok(Found { rows_read, batch: without_columns(found.count_set_bits())? });
            }
            selected = selected.select(found.filter(|rows| rows.count_set_bits() < rows.len()))?;
        }
        let batch =
            self.project(&selected.batch, selected.numbers()).map_err(|error| selected.locate(error))?;
        Ok(Found { rows_read, batch })
    }

    /// The projections of `rows_read` rows of which none meets the conditions: they have no rows.
    fn project_none(&self, rows_read: usize) -> Result<Found> {
        let none = without_columns(0)?;
        let batch = if self.is_count { none } else { self.project(&none, iter::empty())? };
        Ok(Found { rows_read, batch })
    }

    /// Whether the dictionary of a column shows that no row of a row group meets the conditions.
    fn excludes(&self, row_group: usize) -> bool {
        let mut equalities = self.conditions.iter().filter(|condition| condition.test.is_equality());
        // The rows are read after an error, which they may not have: a value need not occur in them.
        equalities.any(|condition| self.dictionary_excludes(condition, row_group).unwrap_or(false))
    }

    fn dictionary_excludes(&self, condition: &Condition, row_group: usize) -> Result<bool> {
        let Some(projection) = self.projections.get(condition.projection) else { return Ok(false) };
        let path = match &projection.what {
            What::Path { path, .. } => Some(&path[..]),
            What::Column => None,
            What::Stored | What::Json { .. } | What::Position => return Ok(false),
        };
        let found = Dictionary::find(&self.file, row_group, &projection.column, path)?;
        let Some(dictionary) = found else { return Ok(false) };
        if !dictionary.is_small(self.bytes_needed(row_group)?) {
            return Ok(false);
        }
        let Some(values) = dictionary.rows()? else { return Ok(false) };
        Ok(self.matching(condition, &values)?.is_some_and(|found| found.count_set_bits() == 0))
    }

    /// The compressed bytes of the leaves that are read of a row group.
    fn bytes_needed(&self, row_group: usize) -> Result<u64> {
        let needed = self.needed_leaves()?;
        let leaves: BTreeSet<usize> = needed.iter().flat_map(|one| one.leaves.iter().copied()).collect();
        let chunks = self.file.row_groups()[row_group].columns();
        Ok(leaves.iter().map(|&leaf| chunks[leaf].compressed_size().unsigned_abs()).sum())
    }

    /// The rows that meet a condition; `None` if it does not decide about them.
    fn matching(&self, condition: &Condition, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let Some(projection) = self.projections.get(condition.projection) else { return Ok(None) };
        let values = self.tested(projection, batch).map_err(|error| projection.locate(error))?;
        let Some(values) = values else { return Ok(None) };
        condition.test.matching(&values)
    }

    /// The values of a projection, with text as it is stored; `None` for values that are large to build.
    fn tested(&self, projection: &Projection, batch: &RecordBatch) -> Result<Option<ArrayRef>> {
        match &projection.what {
            What::Path { path, casting } if *projection.target() == DataType::Utf8 => {
                Ok(Some(match variant_group(batch, &projection.column)? {
                    Some(group) => self.text(&group, path, casting)?,
                    None => new_null_array(projection.target(), batch.num_rows()),
                }))
            }
            What::Path { .. } => self.column(projection, batch, iter::empty()).map(Some),
            What::Column if !has_variant(&projection.field) => {
                self.column(projection, batch, iter::empty()).map(Some)
            }
            What::Column | What::Stored | What::Json { .. } | What::Position => Ok(None),
        }
    }

    /// Combine small batches of the rows that meet conditions, so that the consumer has fewer of them.
    fn combine(&self, batches: Vec<Found>) -> Result<Vec<Found>> {
        if self.conditions.is_empty() {
            return Ok(batches);
        }
        let size = |found: &Found| found.batch.get_array_memory_size();
        let mut combined: Vec<Vec<Found>> = Vec::new();
        for next in batches {
            match combined.last_mut() {
                Some(last)
                    if last[0].batch.schema_ref() == next.batch.schema_ref()
                        && last.iter().map(|one| one.batch.num_rows()).sum::<usize>() < BATCH_ROWS
                        && last.iter().map(size).sum::<usize>() + size(&next) < DECODED_BYTES =>
                {
                    last.push(next);
                }
                _ => combined.push(vec![next]),
            }
        }
        combined.into_iter().map(concat).collect()
    }

    /// Whether whole values are read, and not just leaves.
    fn is_whole(&self) -> bool {
        self.projections.iter().any(|projection| match projection.what {
            What::Column => has_variant(&projection.field),
            What::Path { .. } | What::Position | What::Stored => false,
            What::Json { ref path, .. } => path.is_empty(),
        })
    }

    fn needed_leaves(&self) -> Result<Vec<Needed>> {
        let fields = self.file.arrow_schema().fields();
        let needed = |each: &Projection| Needed::of(each, fields).map_err(|error| each.locate(error));
        self.projections.iter().map(needed).collect()
    }

    fn lacks_metadata(&self, batch: &RecordBatch) -> Result<bool> {
        for projection in self.projections.iter() {
            if let What::Path { path, .. } = &projection.what
                && let Some(group) = variant_group(batch, &projection.column)?
                && group.column_by_name("metadata").is_none()
                && needs_metadata(&group, path, projection.target())?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The projections of a batch, whose rows have these numbers in the file.
    fn project(
        &self,
        batch: &RecordBatch,
        numbers: impl Iterator<Item = u64> + Clone,
    ) -> Result<RecordBatch> {
        let columns = self
            .projections
            .iter()
            .map(|projection| {
                let column = self.column(projection, batch, numbers.clone());
                column.map_err(|error| projection.locate(error))
            })
            .collect::<Result<Vec<_>>>()?;
        // A column that is not a Variant has the type that the file gives it.
        let fields = self.projections.iter().zip(&columns);
        let fields: Fields = fields.map(|(projection, column)| retyped(&projection.field, column)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }

    fn column(
        &self,
        projection: &Projection,
        batch: &RecordBatch,
        numbers: impl Iterator<Item = u64>,
    ) -> Result<ArrayRef> {
        let data_type = projection.field.data_type();
        let nulls = || new_null_array(data_type, batch.num_rows());
        match &projection.what {
            What::Column => match batch.column_by_name(&projection.column[0]) {
                Some(array) => self.restore(array, &projection.field),
                None => Ok(nulls()),
            },
            What::Stored => Ok(batch.column_by_name(&projection.column[0]).cloned().unwrap_or_else(nulls)),
            What::Path { path, casting } => match variant_group(batch, &projection.column)? {
                Some(group) if *data_type == DataType::Utf8View => self.text(&group, path, casting),
                Some(group) if is_other_form(data_type) => as_dictionary(self.text(&group, path, casting)?),
                Some(group) => extract(&group, path, data_type, casting, self.on_conflict),
                None => Ok(nulls()),
            },
            What::Json { path, zone } => match variant_group(batch, &projection.column)? {
                Some(group) => self.json(&group, path, zone),
                None => Ok(nulls()),
            },
            What::Position => Ok(Arc::new(Int64Array::from_iter_values(numbers.map(|number| number as i64)))),
        }
    }

    /// The text at a path: as it is stored, or extracted.
    fn text(&self, group: &StructArray, path: &[Step], casting: &Casting) -> Result<ArrayRef> {
        match stored_text(group, path)? {
            Some(stored) => Ok(stored),
            None => extract(group, path, &DataType::Utf8, casting, self.on_conflict),
        }
    }

    fn json(&self, group: &StructArray, path: &[Step], zone: &Zone) -> Result<ArrayRef> {
        if path.is_empty() {
            return Ok(Arc::new(to_json_in_buffers(group, self.on_conflict, zone, &self.buffers)?));
        }
        let values = extract(group, path, &variant_type(), &Casting::utc(true), self.on_conflict)?;
        Ok(Arc::new(to_json_in_buffers(values.as_struct(), self.on_conflict, zone, &self.buffers)?))
    }

    /// Return `array` with its Variants unshredded wherever `field` has them, and other columns unchanged.
    fn restore(&self, array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
        if is_variant(field) {
            let group = as_group(array)?;
            return Ok(Arc::new(match self.legacy {
                Some(LegacyLayout { compat }) => legacy::unshred(group, compat)?,
                None => unshred(group, self.on_conflict)?,
            }));
        }
        if !has_variant(field) {
            return Ok(array.clone());
        }
        match (array.data_type(), field.data_type()) {
            (DataType::Struct(_), DataType::Struct(fields)) => self.restore_struct(array.as_struct(), fields),
            (DataType::List(_), DataType::List(element)) => {
                let list = array.as_list::<i32>();
                let values = self.restore_elements(list.values(), list.value_offsets(), element)?;
                let element = retyped(element, &values);
                let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
                Ok(Arc::new(ListArray::try_new(element, offsets, values, nulls)?))
            }
            (DataType::LargeList(_), DataType::LargeList(element)) => {
                let list = array.as_list::<i64>();
                let values = self.restore_elements(list.values(), list.value_offsets(), element)?;
                let element = retyped(element, &values);
                let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
                Ok(Arc::new(LargeListArray::try_new(element, offsets, values, nulls)?))
            }
            (DataType::Map(_, _), DataType::Map(entry, sorted)) => {
                self.restore_map(array.as_map(), entry, *sorted)
            }
            (found, wanted) => {
                Err(Error::data_file(format!("expected the type {wanted} of the table, got {found}")))
            }
        }
    }

    /// Restore the elements of a list or map. Errors get the row of the list instead of the element.
    fn restore_elements<O: OffsetSizeTrait>(
        &self,
        elements: &ArrayRef,
        offsets: &[O],
        field: &Field,
    ) -> Result<ArrayRef> {
        let row_of =
            |element| offsets.partition_point(|offset| offset.as_usize() <= element).saturating_sub(1);
        self.restore(elements, field).map_err(|error| error.map_row(row_of))
    }

    fn restore_struct(&self, array: &StructArray, fields: &Fields) -> Result<ArrayRef> {
        let mut restored = Vec::with_capacity(fields.len());
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            let column = match array.column_by_name(field.name()) {
                Some(column) => self.restore(column, field).map_err(|error| error.in_column(field.name()))?,
                None => new_null_array(field.data_type(), array.len()),
            };
            restored.push(retyped(field, &column));
            columns.push(column);
        }
        Ok(Arc::new(StructArray::try_new(restored.into(), columns, array.nulls().cloned())?))
    }

    fn restore_map(&self, map: &MapArray, entry: &Field, sorted: bool) -> Result<ArrayRef> {
        let DataType::Struct(fields) = entry.data_type() else {
            return Err(Error::unsupported("a map has entries of a key and a value"));
        };
        let [key, value] = &fields[..] else {
            return Err(Error::unsupported("a map has entries of a key and a value"));
        };
        let columns =
            vec![map.keys().clone(), self.restore_elements(map.values(), map.value_offsets(), value)?];
        // Map keys cannot be null.
        let key = Field::clone(key).with_data_type(columns[0].data_type().clone()).with_nullable(false);
        let fields = Fields::from(vec![Arc::new(key), retyped(value, &columns[1])]);
        let entries = StructArray::try_new(fields.clone(), columns, None)?;
        let entry = Arc::new(Field::new(entry.name(), DataType::Struct(fields), false));
        Ok(Arc::new(MapArray::try_new(entry, map.offsets().clone(), entries, map.nulls().cloned(), sorted)?))
    }
}

impl Iterator for DataFileReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_batches()? {
            Ok(batches) => self.ready = batches,
            Err(error) => return Some(Err(error)),
        }
        self.ready.pop_front().map(|found| Ok(found.batch))
    }
}

/// Combine batches of one schema.
fn concat(batches: Vec<Found>) -> Result<Found> {
    let rows_read = batches.iter().map(|found| found.rows_read).sum();
    let parts: Vec<&RecordBatch> = batches.iter().map(|found| &found.batch).collect();
    let batch = match &parts[..] {
        [only] => RecordBatch::clone(only),
        [first, ..] if first.num_columns() > 0 => concat_batches(first.schema_ref(), parts)?,
        _ => without_columns(parts.iter().map(|part| part.num_rows()).sum())?,
    };
    Ok(Found { rows_read, batch })
}

fn without_columns(rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?)
}

/// Check the Variants that a projection reads against the types of VariantShredding.md.
fn check_variants(root: &Type, projection: &Projection) -> Result<()> {
    let mut column = root;
    for name in &projection.column {
        match members(column).iter().find(|member| member.name() == name) {
            Some(member) => column = member,
            None => return Ok(()),
        }
    }
    match projection.what {
        What::Column => check_variants_in(column, &projection.field),
        What::Path { .. } | What::Json { .. } => check_variant_column(column),
        What::Position | What::Stored => Ok(()),
    }
}

/// Check the Variants that `field` has in a column of the file.
fn check_variants_in(column: &Type, field: &Field) -> Result<()> {
    if is_variant(field) {
        return check_variant_column(column);
    }
    match (field.data_type(), members(column)) {
        (DataType::Struct(fields), children) => fields.iter().try_for_each(|field| {
            let child = children.iter().find(|child| child.name() == field.name());
            let checked = child.map_or(Ok(()), |child| check_variants_in(child, field));
            checked.map_err(|error| error.in_column(field.name()))
        }),
        (DataType::List(element) | DataType::LargeList(element), [repeated]) => match members(repeated) {
            [item] => check_variants_in(item, element),
            _ => Ok(()),
        },
        (DataType::Map(entry, _), [repeated]) => match (entry.data_type(), members(repeated)) {
            (DataType::Struct(pair), [_, value]) if pair.len() == 2 => check_variants_in(value, &pair[1]),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The leaf columns that a projection requires.
struct Needed {
    leaves: Vec<usize>,
    /// `metadata`, required only with names.
    metadata: Option<usize>,
}

impl Needed {
    fn of(projection: &Projection, fields: &Fields) -> Result<Self> {
        let none = Needed { leaves: Vec::new(), metadata: None };
        let Some((first, field)) = locate(fields, &projection.column) else { return Ok(none) };
        let all = Needed { leaves: (first..first + leaf_count(field.data_type())).collect(), metadata: None };
        let needed = match (&projection.what, field.data_type()) {
            (What::Path { path, .. }, DataType::Struct(group)) => {
                leaves_needed(group, path, projection.target())?
            }
            (What::Json { path, .. }, DataType::Struct(group)) if !path.is_empty() => {
                leaves_needed(group, path, &variant_type())?
            }
            _ => return Ok(all),
        };
        let leaves = needed.leaves.iter().map(|leaf| first + leaf).collect();
        Ok(Needed { leaves, metadata: needed.metadata.map(|leaf| first + leaf) })
    }
}

fn variant_type() -> DataType {
    DataType::Struct(variant_fields())
}

/// The group of the Variant at the end of `path`, null where a struct on the way is; `None` where the file has no
/// such column.
fn variant_group(batch: &RecordBatch, path: &[String]) -> Result<Option<StructArray>> {
    let Some((name, rest)) = path.split_first() else { return Ok(None) };
    let Some(array) = batch.column_by_name(name) else { return Ok(None) };
    let mut group = as_group(array)?.clone();
    for name in rest {
        let Some(array) = group.column_by_name(name) else { return Ok(None) };
        let inner = as_group(array)?;
        let nulls = arrow_buffer::NullBuffer::union(group.nulls(), inner.nulls());
        group = StructArray::try_new(inner.fields().clone(), inner.columns().to_vec(), nulls)?;
    }
    Ok(Some(group))
}

fn as_group(array: &ArrayRef) -> Result<&StructArray> {
    array.as_struct_opt().ok_or_else(|| {
        Error::data_file(format!(
            "a Variant column is a group in the Parquet file, and not {}",
            array.data_type()
        ))
    })
}

fn is_variant(field: &Field) -> bool {
    field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == VARIANT_EXTENSION)
}

fn has_variant(field: &Field) -> bool {
    is_variant(field)
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|field| has_variant(field)),
            DataType::List(element) | DataType::LargeList(element) | DataType::Map(element, _) => {
                has_variant(element)
            }
            _ => false,
        }
}

/// Return `field` with the type of its column.
fn retyped(field: &Field, column: &ArrayRef) -> Arc<Field> {
    Arc::new(field.clone().with_data_type(column.data_type().clone()).with_nullable(true))
}
