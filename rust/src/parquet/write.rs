//! Write record batches to one Parquet file, encoding the leaf columns of a batch in parallel on rayon's current
//! threads. Memory holds the encoded pages of one row group, at most about `row_group_bytes`.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Fields, SchemaRef};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, SchemaDescPtr, SchemaDescriptor, Type, TypePtr};
use rayon::prelude::*;

use super::copy::{EncodedRowGroup, own_properties};
use super::encode::{
    Chunk, ChunkEncoder, EncodedExtremes, LeafStatistics, PAGE_ROWS, PageVersion, leaves, variable_bytes,
};
use super::read::ParquetFile;
use super::schema::{is_variant, members, to_parquet};
use crate::error::{Error, Result};
use crate::value::column::leaf_count;

/// Bytes of one leaf that are encoded at once …
const PIECE_BYTES: usize = 8 << 20;
/// … and that are the size of a page: more than one row only up to this size.
const PAGE_BYTES: usize = 2 << 20;
/// Leaves below a list are encoded in pages as they are given.
const LIST_WEIGHT: usize = PIECE_BYTES / PAGE_BYTES;

/// How a file is written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Annotate Variant columns as `VARIANT(1)` (Spark 4.0 and older cannot read it).
    pub annotate: bool,
    pub compression: Compression,
    pub page_version: PageVersion,
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
            page_version: PageVersion::V1,
            row_group_bytes: 64 << 20,
            row_group_rows: 1 << 18,
        }
    }
}

/// The footer of the finished file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSummary {
    pub rows: u64,
    pub bytes: u64,
    /// In the order of the file's leaf columns.
    pub leaves: Vec<LeafSummary>,
}

/// One leaf column over all row groups.
#[derive(Debug, Clone, PartialEq)]
pub struct LeafSummary {
    pub path: Vec<String>,
    pub compressed_bytes: u64,
    /// Level entries: values and nulls, and one for each empty list.
    pub num_values: u64,
    /// `None` if a row group does not state it.
    pub null_count: Option<u64>,
    /// The extremes of the values that were encoded, without those of copied row groups.
    pub extremes: EncodedExtremes,
}

/// Writes one Parquet file to `sink`, batch after batch.
pub struct FileWriter<W: Write + Send> {
    schema: SchemaRef,
    /// That of the last batch. Most batches share their types.
    checked: Option<SchemaRef>,
    parquet_schema: SchemaDescPtr,
    options: WriteOptions,
    state: State<W>,
    rows: u64,
}

/// The file is opened by its first batch.
enum State<W: Write + Send> {
    Unopened(W),
    Open(Box<OpenWriter<W>>),
    /// A failed write; the file cannot be completed.
    Broken,
}

struct OpenWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// One encoder a leaf.
    leaves: Vec<ChunkEncoder>,
    /// The rows of the row group in progress.
    group_rows: usize,
    /// What the row group in progress takes from another file.
    copied: Option<EncodedRowGroup>,
}

/// The role of a leaf, which determines its statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Ordinary,
    /// The `metadata` of a Variant.
    Metadata,
    /// A `value` of a Variant, at any depth of its shredding.
    Value,
    /// A `value` with a `typed_value` next to it.
    ShreddedValue,
}

impl<W: Write + Send> FileWriter<W> {
    /// Return a writer of batches of `schema`. The first write to `sink` is that of the first batch.
    ///
    /// Return `ErrorKind::Unsupported` for a schema that a Delta table cannot store.
    pub fn new(sink: W, schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        let parquet_schema = to_parquet(&schema, options.annotate)?;
        Ok(FileWriter {
            schema,
            checked: None,
            parquet_schema,
            options,
            state: State::Unopened(sink),
            rows: 0,
        })
    }

    /// Encode `batch`, whose schema is the one given to `new`.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if matches!(&self.state, State::Open(file) if file.copied.is_some()) {
            return Err(Error::data_file("a copied row group has more rows than it gets values"));
        }
        self.check_types(batch, self.schema.clone())?;
        self.rows += batch.num_rows() as u64;
        self.write_pieces(batch)
    }

    fn write_pieces(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut offset = 0;
        while offset < batch.num_rows() {
            let mut file = self.opened()?;
            let remaining = file.remaining_rows(&self.options);
            let length = (batch.num_rows() - offset).min(remaining).min(file.remaining_rows_of_page());
            let piece = piece(batch, offset, length);
            offset += piece.num_rows();
            file.write(&piece, &self.options)?;
            self.state = State::Open(file);
        }
        Ok(())
    }

    /// Append a row group of another file without decoding it. Return `false`, and append nothing, unless the file has
    /// the same columns, of any type where they are `replaced`, and an index of its pages.
    ///
    /// The columns at the positions `replaced` are not copied. `replace` takes their values, and nothing else can be
    /// written before it has those of all rows. The rows written before end their row group, however small it is.
    pub fn copy(&mut self, file: &ParquetFile, row_group: usize, replaced: &[usize]) -> Result<bool> {
        if !self.has_columns_of(file, replaced) {
            return Ok(false);
        }
        let columns = self.schema.fields().iter().enumerate();
        let is_replaced: Vec<bool> = columns
            .flat_map(|(column, field)| vec![replaced.contains(&column); leaf_count(field.data_type())])
            .collect();
        let Some(encoded) = file.encoded_row_group(row_group, &is_replaced)? else { return Ok(false) };
        let mut open = self.opened()?;
        open.end_row_group(true)?;
        self.rows += encoded.rows as u64;
        open.copied = Some(encoded);
        if replaced.is_empty() {
            open.end_row_group(true)?;
        }
        self.state = State::Open(open);
        Ok(true)
    }

    /// Encode the next values of columns that the last copy left out, whose schema is that of these columns.
    pub fn replace(&mut self, batch: &RecordBatch, replaced: &[usize]) -> Result<()> {
        let missing = match &self.state {
            State::Open(file) if file.copied.is_some() => file.remaining_rows(&self.options),
            _ => 0,
        };
        if batch.num_rows() > missing {
            return Err(Error::data_file("a copied row group gets more values than it has rows"));
        }
        self.check_types(batch, Arc::new(self.schema.project(replaced)?))?;
        self.write_pieces(batch)
    }

    /// The root of the schema.
    pub fn parquet_schema(&self) -> &Type {
        self.parquet_schema.root_schema()
    }

    fn has_columns_of(&self, file: &ParquetFile, replaced: &[usize]) -> bool {
        let (own, stored) = (&self.parquet_schema, file.metadata().file_metadata().schema_descr());
        let mut columns = members(own.root_schema()).iter().zip(members(stored.root_schema())).enumerate();
        let are_same = |(position, (own, stored)): (_, (&TypePtr, &TypePtr))| {
            own == stored || replaced.contains(&position)
        };
        let column_of_leaf = |schema: &SchemaDescriptor, leaf| {
            (leaf < schema.num_columns()).then(|| schema.get_column_root_idx(leaf))
        };
        let leaves = own.num_columns().max(stored.num_columns());
        (0..leaves).all(|leaf| column_of_leaf(own, leaf) == column_of_leaf(stored, leaf))
            && columns.all(are_same)
    }

    /// Bytes handed to the sink, and an estimate of those of the row group in progress.
    pub fn bytes_written(&self) -> usize {
        match &self.state {
            State::Open(file) => file.writer.bytes_written() + file.group_bytes(),
            _ => 0,
        }
    }

    /// Write what is buffered and the footer.
    pub fn close(mut self) -> Result<FileSummary> {
        let mut file = self.opened()?;
        // A reader of a single row group needs no index of pages that are whole columns.
        let has_index = !file.writer.flushed_row_groups().is_empty() || file.has_several_pages();
        file.end_row_group(has_index)?;
        let metadata = file.writer.finish()?;
        Ok(summary(&metadata, &file.leaves, file.writer.bytes_written() as u64))
    }

    fn check_types(&mut self, batch: &RecordBatch, expected: SchemaRef) -> Result<()> {
        let schema = batch.schema_ref();
        if self.checked.as_ref().is_some_and(|checked| checked.fields() == schema.fields()) {
            return Ok(());
        }
        let expected = expected.fields();
        let same = schema.fields().len() == expected.len()
            && schema.fields().iter().zip(expected).all(|(field, expected)| {
                field.is_nullable() == expected.is_nullable()
                    && is_stored_as(field.data_type(), expected.data_type(), is_variant(expected))
            });
        if !same {
            return Err(Error::data_file("a batch has other column types than the file it is written to"));
        }
        self.checked = Some(schema.clone());
        Ok(())
    }

    /// Take the open file out of the state, which stays broken unless the file is put back.
    fn opened(&mut self) -> Result<Box<OpenWriter<W>>> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Open(file) => Ok(file),
            State::Unopened(sink) => {
                let root = self.parquet_schema.root_schema_ptr();
                let writer = SerializedFileWriter::new(sink, root, own_properties())?;
                Ok(Box::new(OpenWriter { writer, leaves: self.encoders(), group_rows: 0, copied: None }))
            }
            State::Broken => Err(Error::data_file("the file cannot be continued after a failed write")),
        }
    }

    fn encoders(&self) -> Vec<ChunkEncoder> {
        let columns = self.parquet_schema.columns();
        let mut roles = Vec::with_capacity(columns.len());
        self.schema.fields().iter().for_each(|field| leaf_roles(field, Role::Ordinary, &mut roles));
        let encoder = |(column, role): (&_, Role)| {
            let WriteOptions { compression, page_version, .. } = self.options;
            ChunkEncoder::new(
                Arc::clone(column),
                compression,
                page_version,
                role.statistics(column),
                role == Role::Metadata,
            )
        };
        columns.iter().zip(roles).map(encoder).collect()
    }
}

impl Role {
    fn statistics(self, column: &ColumnDescriptor) -> LeafStatistics {
        match self {
            // Bounds of `metadata` would cost a comparison of long bytes for each row.
            Role::Metadata => LeafStatistics::None,
            // Skipping needs only the null count of `value`.
            Role::Value => LeafStatistics::NullCount,
            // Engines read `typed_value` alone if `value` has nothing else.
            Role::ShreddedValue => LeafStatistics::VariantNulls,
            // Readers use the rows of a page index, which are not those of the values in a list.
            Role::Ordinary if column.max_rep_level() > 0 => LeafStatistics::Chunk,
            Role::Ordinary => LeafStatistics::Page,
        }
    }
}

impl<W: Write + Send> OpenWriter<W> {
    fn write(&mut self, batch: &RecordBatch, options: &WriteOptions) -> Result<()> {
        let fields = batch.schema_ref().fields().iter().map(AsRef::as_ref);
        let leaves = leaves(fields.zip(batch.columns()), batch.num_rows())?;
        let copied = self.copied.as_ref();
        let encoders: Vec<_> = encoded(&mut self.leaves, copied).collect();
        // One task per leaf: some take a hundred times as long as others.
        encoders.into_par_iter().zip(leaves).with_max_len(1).try_for_each(|(encoder, leaf)| {
            leaf.split(PAGE_BYTES).iter().try_for_each(|part| encoder.write(part))
        })?;
        self.group_rows += batch.num_rows();
        let is_large = copied.is_none() && self.group_bytes() >= options.row_group_bytes;
        if is_large || self.remaining_rows(options) == 0 { self.end_row_group(true) } else { Ok(()) }
    }

    /// The rows that the row group in progress can still get.
    fn remaining_rows(&self, options: &WriteOptions) -> usize {
        let most = self.copied.as_ref().map_or(options.row_group_rows.max(1), |copied| copied.rows);
        most.saturating_sub(self.group_rows)
    }

    /// The rows until all columns outside of lists can end a page.
    fn remaining_rows_of_page(&self) -> usize {
        PAGE_ROWS - self.group_rows % PAGE_ROWS
    }

    fn group_bytes(&self) -> usize {
        self.leaves.iter().map(ChunkEncoder::bytes).sum()
    }

    fn has_several_pages(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.pages() > 1)
    }

    /// `has_index` writes where the pages are; either all row groups have this index or none has it.
    fn end_row_group(&mut self, has_index: bool) -> Result<()> {
        if self.group_rows == 0 && self.copied.is_none() {
            return Ok(());
        }
        let copied = self.copied.take();
        let encoders: Vec<_> = encoded(&mut self.leaves, copied.as_ref()).collect();
        if copied.as_ref().is_some_and(|copied| !encoders.is_empty() && copied.rows != self.group_rows) {
            return Err(Error::data_file("a copied row group has more rows than it gets values"));
        }
        let encoders = encoders.into_par_iter().with_max_len(1);
        let chunks: Vec<Chunk> =
            encoders.map(|encoder| encoder.end_chunk(has_index)).collect::<Result<_>>()?;
        let mut chunks = chunks.into_iter();
        let mut group = self.writer.next_row_group()?;
        let (pages, columns) = copied.map(|copied| (copied.chunks, copied.columns)).unzip();
        for column in columns.unwrap_or_else(|| self.leaves.iter().map(|_| None).collect()) {
            match (column, &pages) {
                (Some(column), Some(pages)) => group.append_column(pages, column)?,
                _ => {
                    let chunk = chunks.next().ok_or_else(|| Error::data_file("a leaf has no values"))?;
                    group.append_column(&chunk.bytes, chunk.close)?;
                }
            }
        }
        group.close()?;
        self.group_rows = 0;
        Ok(())
    }
}

/// The encoders of the leaves that a row group does not take from another file.
fn encoded<'a>(
    leaves: &'a mut [ChunkEncoder],
    copied: Option<&EncodedRowGroup>,
) -> impl Iterator<Item = &'a mut ChunkEncoder> {
    leaves.iter_mut().enumerate().filter_map(move |(leaf, encoder)| {
        let is_copied = copied.is_some_and(|copied| copied.columns[leaf].is_some());
        (!is_copied).then_some(encoder)
    })
}

/// Whether a column of type `given` becomes one of type `stored` in a file, in which dictionaries have no type of their
/// own. In a Variant, text that is known to be UTF-8 may be given as Binary.
fn is_stored_as(given: &DataType, stored: &DataType, is_in_variant: bool) -> bool {
    let is_field_stored_as = |given: &FieldRef, stored: &FieldRef| {
        Arc::ptr_eq(given, stored)
            || given.is_nullable() == stored.is_nullable()
                && is_stored_as(given.data_type(), stored.data_type(), is_in_variant || is_variant(stored))
    };
    match (given, stored) {
        (DataType::Dictionary(_, given), stored) => is_stored_as(given, stored, is_in_variant),
        (given, DataType::Dictionary(_, stored)) => is_stored_as(given, stored, is_in_variant),
        (DataType::Struct(fields), DataType::Struct(others)) => {
            fields.len() == others.len()
                && fields
                    .iter()
                    .zip(others)
                    .all(|(one, other)| one.name() == other.name() && is_field_stored_as(one, other))
        }
        (DataType::List(one), DataType::List(other))
        | (DataType::LargeList(one), DataType::LargeList(other)) => is_field_stored_as(one, other),
        (DataType::Binary, DataType::Utf8) => is_in_variant,
        _ => given.equals_datatype(stored),
    }
}

/// At most `length` rows of `batch` from `offset`, fewer if they are large.
fn piece(batch: &RecordBatch, offset: usize, mut length: usize) -> RecordBatch {
    loop {
        // A slice of many columns takes as long as encoding some of them.
        let is_whole = length == batch.num_rows();
        let piece = if is_whole { batch.clone() } else { batch.slice(offset, length) };
        if length == 1 || piece.columns().iter().all(|column| largest_leaf(column, 1) <= PIECE_BYTES) {
            return piece;
        }
        length /= 2;
    }
}

/// The bytes of the largest leaf of variable length below `array`, times `weight`.
fn largest_leaf(array: &ArrayRef, weight: usize) -> usize {
    fn below<O: Copy + TryInto<usize>>(offsets: &[O], values: &ArrayRef) -> usize {
        let offset = |offset: Option<&O>| offset.and_then(|&offset| offset.try_into().ok()).unwrap_or(0);
        let (start, end) = (offset(offsets.first()), offset(offsets.last()));
        largest_leaf(&values.slice(start, end.saturating_sub(start)), LIST_WEIGHT)
    }
    match array.data_type() {
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.map(|column| largest_leaf(column, weight)).max().unwrap_or_default()
        }
        DataType::List(_) => below(array.as_list::<i32>().value_offsets(), array.as_list::<i32>().values()),
        DataType::LargeList(_) => {
            below(array.as_list::<i64>().value_offsets(), array.as_list::<i64>().values())
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            below(map.value_offsets(), &(Arc::new(map.entries().clone()) as ArrayRef))
        }
        _ => weight * variable_bytes(array),
    }
}

/// The role of each leaf below `field`. `role` is that of the field itself if it is a leaf.
fn leaf_roles(field: &Field, role: Role, roles: &mut Vec<Role>) {
    match field.data_type() {
        DataType::Struct(children) if is_variant(field) => group_roles(children, roles),
        DataType::Struct(children) => children.iter().for_each(|child| leaf_roles(child, role, roles)),
        DataType::List(child) | DataType::LargeList(child) | DataType::Map(child, _) => {
            leaf_roles(child, role, roles);
        }
        _ => roles.push(role),
    }
}

/// The roles below the members of a Variant group.
fn group_roles(members: &Fields, roles: &mut Vec<Role>) {
    let value = if members.find("typed_value").is_some() { Role::ShreddedValue } else { Role::Value };
    members.iter().for_each(|member| shredded_roles(member, value, roles));
}

/// The roles below one member of a Variant group: `metadata`, `value`, whose role is given, or `typed_value`.
fn shredded_roles(member: &Field, value: Role, roles: &mut Vec<Role>) {
    match (member.name().as_str(), member.data_type()) {
        ("metadata", _) => leaf_roles(member, Role::Metadata, roles),
        ("value", _) => leaf_roles(member, value, roles),
        (_, DataType::Struct(fields)) => fields.iter().for_each(|field| shredded_field_roles(field, roles)),
        (_, DataType::List(element) | DataType::LargeList(element)) => shredded_field_roles(element, roles),
        _ => leaf_roles(member, Role::Ordinary, roles),
    }
}

/// The roles below a field of a shredded object, or an element: a group of `value` and `typed_value`.
fn shredded_field_roles(field: &Field, roles: &mut Vec<Role>) {
    match field.data_type() {
        DataType::Struct(members) => group_roles(members, roles),
        _ => leaf_roles(field, Role::Ordinary, roles),
    }
}

fn summary(metadata: &ParquetMetaData, encoders: &[ChunkEncoder], bytes: u64) -> FileSummary {
    let descriptors = metadata.file_metadata().schema_descr().columns();
    let leaves = descriptors
        .iter()
        .zip(encoders)
        .enumerate()
        .map(|(leaf, (descriptor, encoder))| {
            let chunks = || metadata.row_groups().iter().map(move |group| group.column(leaf));
            LeafSummary {
                path: descriptor.path().parts().to_vec(),
                compressed_bytes: chunks().map(|chunk| chunk.compressed_size().unsigned_abs()).sum(),
                num_values: chunks().map(|chunk| chunk.num_values().unsigned_abs()).sum(),
                null_count: chunks().map(null_count).sum(),
                extremes: encoder.extremes().clone(),
            }
        })
        .collect();
    FileSummary { rows: metadata.file_metadata().num_rows().unsigned_abs(), bytes, leaves }
}

/// The nulls of a column chunk, `None` if its statistics do not count them.
pub fn null_count(chunk: &ColumnChunkMetaData) -> Option<u64> {
    chunk.statistics().and_then(Statistics::null_count_opt)
}
