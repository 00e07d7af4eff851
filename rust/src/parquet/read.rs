//! One Parquet file → record batches of chosen leaf columns.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::{Type, TypePtr};
use rayon::prelude::*;

use super::footer;
use crate::error::{Error, Result};

const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED_MAGIC: &[u8] = b"PARE";
/// Length of the footer and the magic, at the end of a file.
const TAIL_BYTES: u64 = 8;
/// Read from the end at first; most footers fit, and need no second request.
const FOOTER_GUESS: u64 = 64 << 10;
/// Column chunks closer than this are fetched in one request.
const COALESCE_GAP: u64 = 256 << 10;

/// Where the bytes of a file come from.
pub enum Source {
    Path(PathBuf),
    Bytes(Bytes),
    Ranges(Arc<dyn RangeReader>),
}

/// A file that somebody else reads, as from an object store.
pub trait RangeReader: Send + Sync {
    fn length(&self) -> Result<u64>;
    /// The bytes of each of `ranges`, in their order.
    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
}

/// What to read: leaf columns by their index in the file, row groups in the order wanted.
#[derive(Debug, Clone)]
pub struct Scan {
    pub leaves: Vec<usize>,
    pub row_groups: Vec<usize>,
    pub batch_size: usize,
}

/// An open file: its footer is read and checked, its data is not.
pub struct ParquetFile {
    store: Store,
    arrow: ArrowReaderMetadata,
}

impl ParquetFile {
    /// Read and check the footer of `source`.
    ///
    /// Bytes that are no Parquet file, or a footer that contradicts itself or the file's length, are
    /// `Error::DataFile`; the message leaves the file's name to the caller.
    pub fn open(source: Source) -> Result<Self> {
        let store = Store::open(source)?;
        let bytes = footer_bytes(&store)?;
        footer::check(&bytes)?;
        guarded(|| {
            let metadata = ParquetMetaDataReader::decode_metadata(&bytes)?;
            check_row_groups(&metadata, store.length)?;
            let schema = shared_shapes(&metadata)?;
            let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
            Ok(ArrowReaderMetadata::try_new(Arc::new(metadata), options)?)
        })
        .map(|arrow| ParquetFile { store, arrow })
    }

    /// Root of the Parquet schema.
    pub fn schema(&self) -> &Type {
        self.metadata().file_metadata().schema()
    }

    /// Arrow schema of a scan of all leaves, made from the Parquet schema alone: an embedded Arrow schema is
    /// not used. The `metadata` of a Variant is `Dictionary(Int32, Binary)`, so that rows share their shapes.
    pub fn arrow_schema(&self) -> &Arc<Schema> {
        self.arrow.schema()
    }

    pub fn metadata(&self) -> &ParquetMetaData {
        self.arrow.metadata()
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

    /// A scan of all row groups, in file order.
    pub fn scan(&self, leaves: Vec<usize>, batch_size: usize) -> Scan {
        Scan { leaves, row_groups: (0..self.row_groups().len()).collect(), batch_size }
    }

    /// The batches of one row group, holding the scanned leaves and the structs, lists and maps around them.
    ///
    /// The compressed bytes of the leaves are fetched at once; decoding happens batch by batch. A scan of no
    /// leaves gives batches of rows without columns.
    pub fn read_row_group(&self, scan: &Scan, row_group: usize) -> Result<RowGroupBatches> {
        let leaves = self.metadata().file_metadata().schema_descr().num_columns();
        if let Some(leaf) = scan.leaves.iter().find(|leaf| **leaf >= leaves) {
            return Err(Error::DataFile(format!("the file has {leaves} leaf columns, and no leaf {leaf}")));
        }
        let groups = self.row_groups().len();
        let Some(group) = self.row_groups().get(row_group) else {
            return Err(Error::DataFile(format!("the file has {groups} row groups, and no row group {row_group}")));
        };
        let ranges = scan.leaves.iter().map(|leaf| byte_range(group, *leaf)).collect::<Result<_>>()?;
        let chunks = Chunks::fetch(&self.store, ranges)?;
        let mask = ProjectionMask::leaves(self.arrow.parquet_schema(), scan.leaves.iter().copied());
        let reader = guarded(|| {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.arrow.clone())
                .with_projection(mask)
                .with_row_groups(vec![row_group])
                .with_batch_size(scan.batch_size.max(1));
            Ok(builder.build()?)
        })?;
        Ok(RowGroupBatches { reader: Some(reader), missing: group.num_rows().unsigned_abs() })
    }

    /// The batches of a scan, one after another, on this thread.
    pub fn read(&self, scan: &Scan) -> impl Iterator<Item = Result<RecordBatch>> {
        scan.row_groups.iter().flat_map(|row_group| match self.read_row_group(scan, *row_group) {
            Ok(batches) => batches,
            Err(error) => RowGroupBatches::failed(error),
        })
    }

    /// What `work` makes of each batch of a scan, in order; an iterator over the row groups.
    ///
    /// As many row groups as rayon has threads are decoded and worked on at a time, so the outcomes of that
    /// many row groups are in memory, whatever the size of the file.
    pub fn read_parallel<'a, T, F>(&'a self, scan: &'a Scan, work: F) -> impl Iterator<Item = Result<Vec<T>>> + 'a
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
    reader: Option<ParquetRecordBatchReader>,
    /// Rows that the footer promises and that have not come yet.
    missing: u64,
}
