//! The rows of a row group: which leaves are decoded here, and the structs around them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, FieldRef, Fields, Schema};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::SchemaDescriptor;
use rayon::prelude::*;

use super::super::pages::RowGroup;
use super::super::thrift::RLE;
use super::leaf::{LeafDecoder, Levels, Step};
use super::strings::{Keep, Strings};
use super::values::{Booleans, Numbers, Values};
use super::{Result, broken};
use crate::value::column::{leaf_count, with_type};

/// The encodings of values, as the format numbers them: PLAIN and both for keys of a dictionary, which all types have,
/// then RLE and the three DELTA encodings.
const DECODED: [i64; 7] = [0, 2, 8, RLE, 5, 6, 7];
/// The number of encodings that floating-point numbers may have.
const OF_FLOATS: usize = 3;

/// The rows that are decoded at a time where some of them are left out, few enough that they are in the CPU cache.
const SIFTED_ROWS: usize = 2 << 10;

/// From this number of leaves on, several threads decode them.
const LEAVES_AT_ONCE: usize = 4;

/// Which leaves of a scan are decoded here, and how rows are put together.
pub(in crate::parquet) struct Plan {
    pub(super) columns: Vec<Node>,
    /// The leaves that are decoded here, in the order of the file.
    pub own: Vec<OwnLeaf>,
    /// The other leaves.
    pub others: Vec<usize>,
}

/// A leaf that is decoded here.
pub(in crate::parquet) struct OwnLeaf {
    pub leaf: usize,
    data_type: DataType,
    physical_type: PhysicalType,
    pub(super) max_level: u8,
    is_nullable: bool,
}

pub(super) enum Node {
    /// The position among the leaves that are decoded here.
    Leaf(FieldRef, usize),
    Struct {
        field: FieldRef,
        /// The definition level from which on it is present, if it can be null.
        level: Option<u8>,
        children: Vec<Node>,
        /// The first leaf in it that is decoded here, and whether there are others.
        leaf: usize,
        has_others: bool,
    },
    /// A column that the `parquet` crate decodes.
    Other,
}

/// Walks the schema of a file.
struct Planner<'a> {
    descriptor: &'a SchemaDescriptor,
    leaves: &'a [usize],
    pages: &'a RowGroup,
    next_leaf: usize,
    own: Vec<OwnLeaf>,
    others: Vec<usize>,
}

impl Plan {
    /// Plan a scan of `leaves` of columns with these `fields`.
    pub fn of(fields: &Fields, descriptor: &SchemaDescriptor, leaves: &[usize], pages: &RowGroup) -> Self {
        let (own, others) = (Vec::new(), Vec::new());
        let mut planner = Planner { descriptor, leaves, pages, next_leaf: 0, own, others };
        let columns = fields.iter().filter_map(|field| planner.node(field, 0)).collect();
        Plan { columns, own: planner.own, others: planner.others }
    }
}

impl Planner<'_> {
    /// The node of a field below nodes with this definition level; `None` if the scan has no leaf of it.
    fn node(&mut self, field: &FieldRef, level: u8) -> Option<Node> {
        let level = level.saturating_add(field.is_nullable().into());
        match field.data_type() {
            DataType::Struct(fields) => {
                let (first, before) = (self.own.len(), self.others.len());
                let children: Vec<Node> = fields.iter().filter_map(|field| self.node(field, level)).collect();
                if children.is_empty() {
                    return None;
                }
                let has_others = self.others.len() > before;
                let (field, level) = (field.clone(), field.is_nullable().then_some(level));
                Some(match self.own.len() > first {
                    true => Node::Struct { field, level, children, leaf: first, has_others },
                    false => Node::Other,
                })
            }
            data_type if data_type.is_nested() => {
                let first = self.next_leaf;
                self.next_leaf += leaf_count(data_type);
                let leaves = self.leaves.iter().filter(|leaf| (first..self.next_leaf).contains(leaf));
                let before = self.others.len();
                self.others.extend(leaves);
                (self.others.len() > before).then_some(Node::Other)
            }
            data_type => {
                let leaf = self.next_leaf;
                self.next_leaf += 1;
                if !self.leaves.contains(&leaf) {
                    return None;
                }
                let column = self.descriptor.column(leaf);
                let own = OwnLeaf {
                    leaf,
                    data_type: data_type.clone(),
                    physical_type: column.physical_type(),
                    max_level: level,
                    is_nullable: field.is_nullable(),
                };
                let has_levels = column.max_rep_level() == 0 && column.max_def_level() == i16::from(level);
                let decoded = if data_type.is_floating() { &DECODED[..OF_FLOATS] } else { &DECODED };
                let mut encodings = self.pages.encodings(leaf);
                if has_levels
                    && own.values(Keep::Never).is_some()
                    && encodings
                        .all(|page| decoded.contains(&page.values) && (level == 0 || page.levels == RLE))
                {
                    self.own.push(own);
                    return Some(Node::Leaf(field.clone(), self.own.len() - 1));
                }
                self.others.push(leaf);
                Some(Node::Other)
            }
        }
    }
}

impl OwnLeaf {
    /// A decoder of the values; `None` for other types than those of Variants and Delta tables.
    pub(super) fn values(&self, keep: Keep) -> Option<Box<dyn Values>> {
        use PhysicalType::{BOOLEAN, BYTE_ARRAY, DOUBLE, FLOAT, INT32, INT64};
        let data_type = self.data_type.clone();
        Some(match (self.physical_type, &self.data_type) {
            (BOOLEAN, DataType::Boolean) => Box::new(Booleans::default()),
            (
                INT32,
                DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Date32
                | DataType::Decimal128(_, _),
            ) => Box::new(Numbers::<i32>::new(data_type)),
            (
                INT64,
                DataType::Int64
                | DataType::Time64(_)
                | DataType::Timestamp(_, _)
                | DataType::Decimal128(_, _),
            ) => Box::new(Numbers::<i64>::new(data_type)),
            // The bits of a number are moved as they are.
            (FLOAT, DataType::Float32) => Box::new(Numbers::<i32>::new(data_type)),
            (DOUBLE, DataType::Float64) => Box::new(Numbers::<i64>::new(data_type)),
            (BYTE_ARRAY, DataType::Utf8) => Box::new(Strings::new(data_type, keep)),
            (BYTE_ARRAY, DataType::Binary) => Box::new(Strings::new(data_type, Keep::Never)),
            (BYTE_ARRAY, DataType::Dictionary(_, values)) if **values == DataType::Binary => {
                Box::new(Strings::new(DataType::Binary, Keep::Always))
            }
            _ => return None,
        })
    }

    fn decoder(&self, pages: &RowGroup, keep: Keep) -> Result<Decoder> {
        let values = self.values(keep).ok_or_else(|| broken("has a column of another type"))?;
        Ok((LeafDecoder::new(pages.pages(self.leaf)?, self.max_level, values), self.is_nullable))
    }
}

/// A decoder, and whether its leaf is nullable.
type Decoder = (LeafDecoder, bool);

/// The batches of some rows of a row group.
pub(in crate::parquet) struct LeafRows {
    columns: Vec<Node>,
    decoders: Vec<Decoder>,
    others: Option<ParquetRecordBatchReader>,
    /// The rows that are not read yet, and the row that the decoders have reached.
    rows: VecDeque<Range<usize>>,
    /// Those of them that are kept; `None` for all.
    live: Option<Live>,
    position: usize,
    batch_size: usize,
    /// Whether the rows are all of the row group.
    is_whole: bool,
}

impl LeafRows {
    /// `rows` are ranges of the rows of the row group, or all, and those of them that are kept, or all. `others` reads
    /// the same rows of the leaves that are not decoded here, and keeps all. Text of the leaves `dictionaries` may be
    /// dictionaries.
    pub fn new(
        plan: Plan,
        pages: &RowGroup,
        dictionaries: &[usize],
        others: Option<ParquetRecordBatchReader>,
        [rows, live]: [Option<&[Range<u64>]>; 2],
        batch_size: usize,
    ) -> Result<Self> {
        let total = pages.num_rows();
        let within = |range: &Range<u64>| range.start as usize..(range.end as usize).min(total);
        let is_whole = rows.is_none();
        let rows = match rows {
            Some(rows) => rows.iter().map(within).filter(|range| range.start < range.end).collect(),
            None => std::iter::once(0..total).collect(),
        };
        let live = live.map(|live| Live { ranges: live.iter().map(within).collect(), next: 0 });
        let decoder = |own: &OwnLeaf| {
            let keep = if dictionaries.contains(&own.leaf) { Keep::Keys } else { Keep::Never };
            own.decoder(pages, keep)
        };
        let decoders = plan.own.iter().map(decoder).collect::<Result<_>>()?;
        Ok(LeafRows {
            columns: plan.columns,
            decoders,
            others,
            rows,
            live,
            position: 0,
            batch_size,
            is_whole,
        })
    }

    /// Return the next batch, or `None` after the last.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let left: usize = self.rows.iter().map(ExactSizeIterator::len).sum();
        let others = self.others.as_mut().and_then(Iterator::next).transpose()?;
        let count = match (&self.others, &others) {
            (Some(_), Some(others)) => others.num_rows(),
            (Some(_), None) => 0,
            (None, _) => left.min(self.batch_size),
        };
        if count == 0 {
            return self.check_end().map(|()| None);
        }
        if count > left {
            return Err(broken("has columns of different lengths"));
        }
        let steps = self.steps(count);
        let decode = |(decoder, is_nullable): &mut Decoder| decoder.read(&steps, *is_nullable);
        let decoded = match self.decoders.len() < LEAVES_AT_ONCE {
            true => self.decoders.iter_mut().map(decode).collect::<Result<Vec<_>>>()?,
            false => self.decoders.par_iter_mut().with_max_len(1).map(decode).collect::<Result<Vec<_>>>()?,
        };
        let others = others.map(|batch| kept_rows(batch, &steps)).transpose()?;
        let count = steps.iter().map(Step::rows).sum();
        let mut others =
            others.iter().flat_map(|batch| columns_of(batch.schema_ref().fields(), batch.columns()));
        let built = self.columns.iter().map(|node| node.build(&decoded, &mut others));
        let (fields, columns): (Vec<_>, Vec<_>) = built.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Some(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?))
    }

    /// Take the next `count` rows.
    fn steps(&mut self, mut count: usize) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let most = if self.live.is_some() { SIFTED_ROWS } else { usize::MAX };
        while let Some(range) = self.rows.front_mut().filter(|_| count > 0) {
            let read = range.len().min(count).min(most);
            let kept = self.live.as_mut().and_then(|live| live.take(range.start..range.start + read));
            let skipped = range.start - self.position;
            match steps.last_mut() {
                Some(last) if skipped == 0 && kept.is_none() && last.kept.is_none() => last.read += read,
                _ => steps.push(Step { skipped, read, kept }),
            }
            range.start += read;
            (self.position, count) = (range.start, count - read);
            if range.start == range.end {
                self.rows.pop_front();
            }
        }
        steps
    }

    /// Reject columns with more rows than the row group has.
    fn check_end(&mut self) -> Result<()> {
        if !self.is_whole || self.rows.iter().any(|range| range.start < range.end) {
            return Ok(());
        }
        for (decoder, _) in &mut self.decoders {
            if !decoder.is_at_end()? {
                return Err(broken("has more rows than its footer says"));
            }
        }
        Ok(())
    }
}

/// The rows that are kept, as ordered ranges.
struct Live {
    ranges: Vec<Range<usize>>,
    /// The first range with rows that are not taken yet.
    next: usize,
}

impl Live {
    /// Take those of `rows` that are kept, and return them as ranges of `rows`; `None` for all of these.
    fn take(&mut self, rows: Range<usize>) -> Option<Vec<Range<usize>>> {
        let rest = self.ranges.get(self.next..).unwrap_or_default();
        let count = rest.iter().take_while(|range| range.start < rows.end).count();
        let found = rest.get(..count).unwrap_or_default();
        let goes_on = found.last().is_some_and(|range| range.end > rows.end);
        self.next += count - usize::from(goes_on);
        if let [only] = found
            && only.start <= rows.start
            && only.end >= rows.end
        {
            return None;
        }
        let within = |range: &Range<usize>| range.start.max(rows.start)..range.end.min(rows.end);
        let within = found.iter().map(within);
        Some(within.map(|range| range.start - rows.start..range.end - rows.start).collect())
    }
}

/// The rows of a batch that the steps keep.
fn kept_rows(batch: RecordBatch, steps: &[Step]) -> Result<RecordBatch> {
    if steps.iter().all(|step| step.kept.is_none()) {
        return Ok(batch);
    }
    let mut mask = BooleanBufferBuilder::new(batch.num_rows());
    for step in steps {
        let start = mask.len();
        let all = 0..step.read;
        for range in step.kept.as_deref().unwrap_or(std::slice::from_ref(&all)) {
            mask.append_n(start + range.start - mask.len(), false);
            mask.append_n(range.len(), true);
        }
        mask.append_n(start + step.read - mask.len(), false);
    }
    Ok(filter_record_batch(&batch, &BooleanArray::new(mask.finish(), None))?)
}

pub(super) type Column = (FieldRef, ArrayRef);

fn columns_of<'a>(fields: &'a Fields, columns: &'a [ArrayRef]) -> impl Iterator<Item = Column> + 'a {
    fields.iter().cloned().zip(columns.iter().cloned())
}

impl Node {
    /// Put together a column from the leaves that are decoded here and the columns that are not.
    pub(super) fn build(
        &self,
        decoded: &[(ArrayRef, Levels)],
        others: &mut dyn Iterator<Item = Column>,
    ) -> Result<Column> {
        let lacks = || broken("has a column that was not decoded");
        match self {
            Node::Other => others.next().ok_or_else(lacks),
            Node::Leaf(field, leaf) => {
                let (array, _) = decoded.get(*leaf).ok_or_else(lacks)?;
                Ok((with_type(field, array), array.clone()))
            }
            Node::Struct { field, level, children, leaf, has_others } => {
                let inner = if *has_others { Some(others.next().ok_or_else(lacks)?.1) } else { None };
                let inner = inner.as_ref().and_then(|array| array.as_struct_opt());
                let mut inner =
                    inner.into_iter().flat_map(|array| columns_of(array.fields(), array.columns()));
                let built = children.iter().map(|child| child.build(decoded, &mut inner));
                let (fields, columns): (Vec<_>, Vec<_>) =
                    built.collect::<Result<Vec<_>>>()?.into_iter().unzip();
                let (_, levels) = decoded.get(*leaf).ok_or_else(lacks)?;
                let nulls = level.and_then(|level| levels.nulls(level));
                let array: ArrayRef = Arc::new(StructArray::try_new(fields.into(), columns, nulls)?);
                Ok((with_type(field, &array), array))
            }
        }
    }
}
