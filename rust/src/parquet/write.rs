//! Write record batches to one Parquet file, encoding the leaf columns of a batch in parallel on rayon's current
//! threads. Memory holds the encoded pages of one row group, at most about `row_group_bytes`.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray};
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression, Encoding, Type as PhysicalType, ZstdLevel};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, SchemaDescPtr};
use rayon::prelude::*;

use super::schema::{is_variant, to_parquet};
use crate::error::{Error, Result};

/// Rows encoded at once: bounds the level arrays of a batch, however large the batch is.
const PIECE_ROWS: usize = 32_768;
/// The number of non-null values of a leaf that are sampled to choose its encoding.
const SAMPLE_VALUES: usize = 4096;
/// The number of values encoded between two checks of the page size.
const WRITE_BATCH: usize = 4096;
/// Statistics up to this length are exact.
const STATISTICS_BYTES: usize = 64;

/// How a file is written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Annotate Variant columns as `VARIANT(1)` (Spark 4.0 and older cannot read it).
    pub annotate: bool,
    pub compression: Compression,
    /// A row group ends when its encoded columns reach this size …
    pub row_group_bytes: usize,
    /// … or this many rows, whichever comes first.
    pub row_group_rows: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            annotate: true,
            compression: Compression::ZSTD(ZstdLevel::default()),
            row_group_bytes: 64 << 20,
            row_group_rows: 1 << 18,
        }
    }
}

/// The footer of the finished file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSummary {
    pub rows: u64,
    pub bytes: u64,
    /// In the order of the file's leaf columns.
    pub leaves: Vec<LeafSummary>,
}

/// One leaf column over all row groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafSummary {
    pub path: Vec<String>,
    pub compressed_bytes: u64,
    /// Level entries: values and nulls, and one for each empty list.
    pub num_values: u64,
    /// `None` if a row group does not state it.
    pub null_count: Option<u64>,
}

/// Writes one Parquet file to `sink`, batch after batch.
pub struct FileWriter<W: Write + Send> {
    schema: SchemaRef,
    parquet_schema: SchemaDescPtr,
    options: WriteOptions,
    roles: Vec<Role>,
    state: State<W>,
    rows: u64,
}

/// The file is opened by its first batch, which decides the encodings.
enum State<W: Write + Send> {
    Unopened(W),
    Open(Box<OpenWriter<W>>),
    /// A failed write; the file cannot be completed.
    Broken,
}

struct OpenWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    factory: ArrowRowGroupWriterFactory,
    /// One writer a leaf of the row group in progress; empty between row groups.
    columns: Vec<ArrowColumnWriter>,
    /// Which leaves of the row group in progress have a NaN.
    has_nan: Vec<bool>,
    group_rows: usize,
}

/// The role of a leaf, which determines its statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Ordinary,
    /// The `metadata` of a Variant.
    Metadata,
    /// A `value` of a Variant, at any depth of its shredding.
    Value,
}

impl<W: Write + Send> FileWriter<W> {
    /// Return a writer of batches of `schema`. The first write to `sink` is that of the first batch.
    ///
    /// Return `ErrorKind::Unsupported` for a schema that a Delta table cannot store.
    pub fn new(sink: W, schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        let parquet_schema = to_parquet(&schema, options.annotate)?;
        let mut roles = Vec::with_capacity(parquet_schema.num_columns());
        for field in schema.fields() {
            leaf_roles(field, Role::Ordinary, &mut roles);
        }
        Ok(FileWriter { schema, parquet_schema, options, roles, state: State::Unopened(sink), rows: 0 })
    }

    /// Encode `batch`, whose schema is the one given to `new`.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_types(batch)?;
        self.rows += batch.num_rows() as u64;
        let mut offset = 0;
        while offset < batch.num_rows() {
            let mut file = self.opened(batch)?;
            let remaining = self.options.row_group_rows.max(1) - file.group_rows;
            let length = PIECE_ROWS.min(remaining).min(batch.num_rows() - offset);
            let written = file.write(&batch.slice(offset, length), &self.options, &self.roles);
            self.restore(file, written)?;
            offset += length;
        }
        Ok(())
    }

    /// Bytes handed to the sink, and an estimate of those of the row group in progress.
    pub fn bytes_written(&self) -> usize {
        match &self.state {
            State::Open(file) => file.writer.bytes_written() + file.group_bytes(),
            _ => 0,
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Write what is buffered and the footer.
    pub fn close(mut self) -> Result<FileSummary> {
        let empty = RecordBatch::new_empty(self.schema.clone());
        let mut file = self.opened(&empty)?;
        file.end_row_group(&self.roles)?;
        let metadata = file.writer.finish()?;
        Ok(summary(&metadata, file.writer.bytes_written() as u64))
    }

    fn check_types(&self, batch: &RecordBatch) -> Result<()> {
        let expected = self.schema.fields();
        let schema = batch.schema_ref();
        let same = schema.fields().len() == expected.len()
            && schema.fields().iter().zip(expected).all(|(field, expected)| {
                field.is_nullable() == expected.is_nullable()
                    && field.data_type().equals_datatype(expected.data_type())
            });
        match same {
            true => Ok(()),
            false => Err(Error::data_file("a batch has other column types than the file it is written to")),
        }
    }

    /// Take the open file out of the state. The first batch opens it and decides the encodings.
    fn opened(&mut self, batch: &RecordBatch) -> Result<Box<OpenWriter<W>>> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Open(file) => Ok(file),
            State::Unopened(sink) => {
                let properties = Arc::new(self.properties(batch));
                let root = self.parquet_schema.root_schema_ptr();
                let writer = SerializedFileWriter::new(sink, root, properties)?;
                let factory = ArrowRowGroupWriterFactory::new(&writer, self.schema.clone());
                Ok(Box::new(OpenWriter {
                    writer,
                    factory,
                    columns: Vec::new(),
                    has_nan: Vec::new(),
                    group_rows: 0,
                }))
            }
            State::Broken => Err(Error::data_file("the file cannot be continued after a failed write")),
        }
    }

    fn restore(&mut self, file: Box<OpenWriter<W>>, written: Result<()>) -> Result<()> {
        if written.is_ok() {
            self.state = State::Open(file);
        }
        written
    }

    fn properties(&self, batch: &RecordBatch) -> WriterProperties {
        let mut leaves = Vec::with_capacity(self.roles.len());
        for column in batch.columns() {
            leaf_arrays(column, &mut leaves);
        }
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("delta-variant version {}", env!("CARGO_PKG_VERSION")))
            .set_compression(self.options.compression)
            .set_write_batch_size(WRITE_BATCH)
            .set_statistics_truncate_length(Some(STATISTICS_BYTES))
            .set_column_index_truncate_length(Some(STATISTICS_BYTES));
        let descriptors = self.parquet_schema.columns();
        for ((descriptor, role), leaf) in descriptors.iter().zip(&self.roles).zip(&leaves) {
            properties = leaf_properties(properties, descriptor, *role, leaf);
        }
        properties.build()
    }
}

impl<W: Write + Send> OpenWriter<W> {
    fn write(&mut self, batch: &RecordBatch, options: &WriteOptions, roles: &[Role]) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.writer.flushed_row_groups().len())?;
            self.has_nan = vec![false; self.columns.len()];
        }
        let mut arrays = Vec::with_capacity(self.columns.len());
        batch.columns().iter().for_each(|column| leaf_arrays(column, &mut arrays));
        self.has_nan.iter_mut().zip(&arrays).for_each(|(has_nan, leaf)| *has_nan |= holds_nan(leaf));
        let fields = batch.schema_ref().fields();
        let mut leaves = Vec::with_capacity(self.columns.len());
        for (field, column) in fields.iter().zip(batch.columns()) {
            leaves.extend(compute_leaves(field, column)?);
        }
        // One task per leaf: some take a hundred times as long as others.
        self.columns
            .par_iter_mut()
            .zip(leaves)
            .with_max_len(1)
            .try_for_each(|(column, leaf)| column.write(&leaf))?;
        self.group_rows += batch.num_rows();
        let full = self.group_rows >= options.row_group_rows || self.group_bytes() >= options.row_group_bytes;
        if full { self.end_row_group(roles) } else { Ok(()) }
    }

    fn group_bytes(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    fn end_row_group(&mut self, roles: &[Role]) -> Result<()> {
        let columns = std::mem::take(&mut self.columns);
        if columns.is_empty() {
            return Ok(());
        }
        let chunks: Vec<ArrowColumnChunk> = columns
            .into_par_iter()
            .with_max_len(1)
            .map(ArrowColumnWriter::close)
            .collect::<Result<_, _>>()?;
        let mut group = self.writer.next_row_group()?;
        for ((mut chunk, role), has_nan) in chunks.into_iter().zip(roles).zip(&self.has_nan) {
            if *role == Role::Value || *has_nan {
                keep_null_count_only(&mut chunk)?;
            }
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.group_rows = 0;
        Ok(())
    }
}

/// Variant bytes get no bounds, because skipping needs only the null count of `value`. parquet.thrift lets bounds
/// exclude NaN, but Spark orders NaN above all numbers and would skip it wrongly.
fn keep_null_count_only(chunk: &mut ArrowColumnChunk) -> Result<()> {
    let close = chunk.close_mut();
    let null_count = close.metadata.statistics().and_then(Statistics::null_count_opt);
    let statistics = match close.metadata.column_type() {
        PhysicalType::FLOAT => Statistics::float(None, None, None, null_count, false),
        PhysicalType::DOUBLE => Statistics::double(None, None, None, null_count, false),
        _ => Statistics::byte_array(None, None, None, null_count, false),
    };
    close.metadata = close.metadata.clone().into_builder().set_statistics(statistics).build()?;
    close.column_index = None;
    Ok(())
}

fn holds_nan(leaf: &ArrayRef) -> bool {
    match leaf.data_type() {
        DataType::Float32 => leaf.as_primitive::<Float32Type>().values().iter().any(|value| value.is_nan()),
        DataType::Float64 => leaf.as_primitive::<Float64Type>().values().iter().any(|value| value.is_nan()),
        _ => false,
    }
}

fn leaf_properties(
    mut properties: WriterPropertiesBuilder,
    descriptor: &ColumnDescriptor,
    role: Role,
    leaf: &ArrayRef,
) -> WriterPropertiesBuilder {
    let path = || descriptor.path().clone();
    if let Some(encoding) = without_dictionary(descriptor.physical_type()) {
        properties = properties.set_column_encoding(path(), encoding);
    }
    let statistics = match role {
        // Bounds of `metadata` would cost a comparison of long bytes for each row.
        Role::Metadata => EnabledStatistics::None,
        Role::Value => EnabledStatistics::Chunk,
        // The crate marks a page of lists as all null if it has as many nulls as rows, even with values.
        Role::Ordinary if descriptor.max_rep_level() > 0 => EnabledStatistics::Chunk,
        Role::Ordinary => EnabledStatistics::Page,
    };
    properties
        .set_column_statistics_enabled(path(), statistics)
        .set_column_dictionary_enabled(path(), role == Role::Metadata || !mostly_distinct(leaf))
}

/// The encoding of values where a dictionary is not smaller; `None` for plain. Spark's vectorized reader supports
/// these encodings, but not BYTE_STREAM_SPLIT.
fn without_dictionary(physical: PhysicalType) -> Option<Encoding> {
    match physical {
        PhysicalType::INT32 | PhysicalType::INT64 => Some(Encoding::DELTA_BINARY_PACKED),
        PhysicalType::BYTE_ARRAY => Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        _ => None,
    }
}

/// Whether more than half of a sample of the non-null values occur once: a dictionary would not be smaller.
fn mostly_distinct(leaf: &ArrayRef) -> bool {
    let present = leaf.len() - leaf.null_count();
    let step = present.div_ceil(SAMPLE_VALUES).max(1);
    let rows = (0..leaf.len()).filter(|row| leaf.is_valid(*row)).step_by(step);
    let sampled = present.div_ceil(step);
    distinct(leaf, rows).is_some_and(|distinct| distinct * 2 > sampled)
}

/// Return the number of distinct values of `leaf` at `rows`; `None` for a type that is not sampled.
fn distinct(leaf: &ArrayRef, rows: impl Iterator<Item = usize>) -> Option<usize> {
    fn count<'a, T: ?Sized + std::hash::Hash + Eq + 'a>(values: impl Iterator<Item = &'a T>) -> usize {
        values.collect::<HashSet<_>>().len()
    }
    Some(match leaf.data_type() {
        DataType::Utf8 => count(rows.map(|row| leaf.as_string::<i32>().value(row))),
        DataType::LargeUtf8 => count(rows.map(|row| leaf.as_string::<i64>().value(row))),
        DataType::Utf8View => count(rows.map(|row| leaf.as_string_view().value(row))),
        DataType::Binary => count(rows.map(|row| leaf.as_binary::<i32>().value(row))),
        DataType::LargeBinary => count(rows.map(|row| leaf.as_binary::<i64>().value(row))),
        DataType::BinaryView => count(rows.map(|row| leaf.as_binary_view().value(row))),
        DataType::FixedSizeBinary(_) => count(rows.map(|row| leaf.as_fixed_size_binary().value(row))),
        other => {
            let width = other.primitive_width()?;
            let data = leaf.to_data();
            let bytes = data.buffers().first()?.get(data.offset() * width..)?;
            count(rows.filter_map(|row| bytes.get(row * width..(row + 1) * width)))
        }
    })
}

/// The leaf arrays below `array`, in the order of the file's leaf columns.
fn leaf_arrays(array: &ArrayRef, leaves: &mut Vec<ArrayRef>) {
    match array.data_type() {
        DataType::Struct(_) => {
            array.as_struct().columns().iter().for_each(|child| leaf_arrays(child, leaves))
        }
        DataType::List(_) => leaf_arrays(array.as_list::<i32>().values(), leaves),
        DataType::LargeList(_) => leaf_arrays(array.as_list::<i64>().values(), leaves),
        DataType::Map(_, _) => {
            let entries = array.as_map().entries();
            entries.columns().iter().for_each(|child| leaf_arrays(child, leaves));
        }
        _ => leaves.push(array.clone()),
    }
}

/// The role of each leaf below `field`. `role` is that of the field itself if it is a leaf.
fn leaf_roles(field: &Field, role: Role, roles: &mut Vec<Role>) {
    match field.data_type() {
        DataType::Struct(children) if is_variant(field) => {
            children.iter().for_each(|child| shredded_roles(child, roles));
        }
        DataType::Struct(children) => children.iter().for_each(|child| leaf_roles(child, role, roles)),
        DataType::List(child) | DataType::LargeList(child) | DataType::Map(child, _) => {
            leaf_roles(child, role, roles);
        }
        _ => roles.push(role),
    }
}

/// The roles below one member of a Variant group: `metadata`, `value` or `typed_value`.
fn shredded_roles(member: &Field, roles: &mut Vec<Role>) {
    match (member.name().as_str(), member.data_type()) {
        ("metadata", _) => leaf_roles(member, Role::Metadata, roles),
        ("value", _) => leaf_roles(member, Role::Value, roles),
        (_, DataType::Struct(fields)) => fields.iter().for_each(|field| shredded_field_roles(field, roles)),
        (_, DataType::List(element) | DataType::LargeList(element)) => shredded_field_roles(element, roles),
        _ => leaf_roles(member, Role::Ordinary, roles),
    }
}

/// The roles below a field of a shredded object, or an element: a group of `value` and `typed_value`.
fn shredded_field_roles(field: &Field, roles: &mut Vec<Role>) {
    match field.data_type() {
        DataType::Struct(members) => members.iter().for_each(|member| shredded_roles(member, roles)),
        _ => leaf_roles(field, Role::Ordinary, roles),
    }
}

fn summary(metadata: &ParquetMetaData, bytes: u64) -> FileSummary {
    let descriptors = metadata.file_metadata().schema_descr().columns();
    let leaves = descriptors
        .iter()
        .enumerate()
        .map(|(leaf, descriptor)| {
            let chunks = || metadata.row_groups().iter().map(move |group| group.column(leaf));
            LeafSummary {
                path: descriptor.path().parts().to_vec(),
                compressed_bytes: chunks().map(|chunk| chunk.compressed_size().unsigned_abs()).sum(),
                num_values: chunks().map(|chunk| chunk.num_values().unsigned_abs()).sum(),
                null_count: chunks().map(null_count).sum(),
            }
        })
        .collect();
    FileSummary { rows: metadata.file_metadata().num_rows().unsigned_abs(), bytes, leaves }
}

pub(super) fn null_count(chunk: &ColumnChunkMetaData) -> Option<u64> {
    chunk.statistics().and_then(Statistics::null_count_opt)
}
