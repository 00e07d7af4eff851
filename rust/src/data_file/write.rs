//! Write batches to one data file: parse JSON text, shred Variants and collect bounds.
//!
//! While one chunk of rows is converted to columns, the previous chunk is encoded on the other threads, so memory
//! holds two chunks and one row group of encoded pages.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;

use super::filter::{filter_columns, filter_rows};
use super::residual_rows::ResidualRows;
use super::stored::add_row_group;
use crate::bounds::ColumnBounds;
use crate::error::{Error, Result};
use crate::json::parse::{JsonShredder, ParseOptions, parse_rows, text_bytes};
use crate::json::residual_rows::ResidualRow;
use crate::json::scan::JsonError;
use crate::parquet::read::ParquetFile;
use crate::parquet::schema::is_variant;
use crate::parquet::write::{FileSummary, FileWriter, WriteOptions};
use crate::shred::schema::{EXTENSION_NAME, VARIANT_EXTENSION};
use crate::shred::tree::{Tree, shapes_type};
use crate::shred::variants::shred;
use crate::shred::{Numeric, ShreddingSchema};
use crate::value::column::{Bytes, is_text_dictionary, leaf_count, with_type};

/// The bytes of text or Variants that are converted at a time, which is also the size of a page.
const CHUNK_BYTES: usize = 6 << 20;
const CHUNK_ROWS: usize = 32 << 10;
/// The same for files with many leaf columns: a chunk has few rows of wide documents, and a fixed cost for each leaf.
const WIDE_CHUNK_BYTES: usize = 2 * CHUNK_BYTES;
const WIDE_LEAVES: usize = 128;
/// The size in bytes from which on separated rows are taken, however few they are.
const RESIDUAL_BYTES: usize = 16 << 20;

/// What to do with a row whose JSON text is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInvalid {
    /// The write fails.
    Error,
    /// The row is skipped and reported.
    Reject,
    /// The value becomes SQL NULL, and the row is reported.
    Null,
}

/// How a column of the batches is stored in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Encoding {
    /// Unchanged: a Variant keeps its shredding.
    Plain,
    /// JSON text as a Variant shredded by the schema.
    Json(ShreddingSchema),
    /// A struct of `metadata` and `value` as a Variant shredded by the schema.
    Variant(ShreddingSchema, Numeric),
    /// A struct whose fields have these encodings; none of them is JSON text.
    Struct(Vec<Encoding>),
}

/// A value that is not valid JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidValue {
    /// In the batch given to [`DataFileWriter::write`].
    pub row: usize,
    pub column: usize,
    /// The byte of the text where it stops being JSON.
    pub offset: usize,
    pub message: String,
    /// Whether an object has two fields of one name.
    pub is_duplicate: bool,
}

impl InvalidValue {
    pub fn of(row: usize, column: usize, error: JsonError) -> Self {
        let JsonError { message, offset, is_duplicate } = error;
        InvalidValue { row, column, offset, message: message.into_owned(), is_duplicate }
    }
}

/// Writes one data file, batch after batch.
pub struct DataFileWriter<W: Write + Send> {
    pub(super) writer: FileWriter<W>,
    pub(super) schema: SchemaRef,
    columns: Vec<Column>,
    chunk_bytes: usize,
    bounds: Vec<ColumnBounds>,
    on_invalid: OnInvalid,
    /// `None` if residual rows stay in the file.
    residual_rows: Option<ResidualRows>,
    /// The residual rows that were not taken yet.
    separated: Vec<RecordBatch>,
    /// Columns that are not encoded yet.
    pending: Option<RecordBatch>,
    /// Rows of another file that are not written yet: see [`DataFileWriter::transfer`].
    pub(super) decoded: Vec<RecordBatch>,
    /// The positions of the columns that the last copy left out, in ascending order.
    replaced: Vec<usize>,
}

enum Column {
    Plain,
    Json(Box<JsonShredder>),
    Variant(ShreddingSchema, Numeric),
    Struct(Vec<Column>),
}

impl<W: Write + Send> DataFileWriter<W> {
    /// A writer of batches of `schema`; `encodings` has one entry for each column.
    pub fn new(
        sink: W,
        schema: &Schema,
        encodings: Vec<Encoding>,
        parse: ParseOptions,
        on_invalid: OnInvalid,
        options: WriteOptions,
    ) -> Result<Self> {
        let fields: Vec<Field> =
            schema.fields().iter().zip(&encodings).map(|(field, encoding)| encoding.field(field)).collect();
        let bounds = fields.iter().zip(&encodings).map(|(field, encoding)| match encoding {
            // Another writer may have shredded it.
            Encoding::Plain => ColumnBounds::new(field).map(ColumnBounds::distrusting),
            _ => ColumnBounds::new(field),
        });
        let bounds = bounds.collect::<Result<_>>()?;
        let leaves: usize = fields.iter().map(|field| leaf_count(field.data_type())).sum();
        let chunk_bytes = if leaves < WIDE_LEAVES { CHUNK_BYTES } else { WIDE_CHUNK_BYTES };
        let file_schema = Arc::new(Schema::new(fields));
        let columns = encodings.into_iter().map(|encoding| Column::new(encoding, parse)).collect();
        let writer = FileWriter::new(sink, file_schema.clone(), options)?;
        Ok(DataFileWriter {
            writer,
            schema: file_schema,
            columns,
            chunk_bytes,
            bounds,
            on_invalid,
            residual_rows: None,
            separated: Vec::new(),
            pending: None,
            decoded: Vec::new(),
            replaced: Vec::new(),
        })
    }

    /// Separate the residual rows of all following batches, or write them to the file again.
    pub fn separate(&mut self, is_separating: bool) -> Result<()> {
        self.flush()?;
        self.residual_rows = is_separating.then(|| ResidualRows::new(&self.schema));
        Ok(())
    }

    /// Whether batches have the columns of the file: no text that is parsed, and no Variant that is shredded.
    pub(super) fn takes_stored_columns(&self) -> bool {
        self.columns.iter().all(|column| match column {
            Column::Plain => true,
            Column::Variant(schema, _) => *schema == ShreddingSchema::Untyped,
            Column::Json(_) | Column::Struct(_) => false,
        })
    }

    /// Take the rows that were separated, as they were in the batches. Take none while they are few, fewer than
    /// `least` rows.
    pub fn take_residual_rows(&mut self, least: usize) -> Result<Vec<RecordBatch>> {
        let rows: usize = self.separated.iter().map(RecordBatch::num_rows).sum();
        let bytes: usize = self.separated.iter().map(RecordBatch::get_array_memory_size).sum();
        if rows < least && bytes < RESIDUAL_BYTES {
            return Ok(Vec::new());
        }
        let separated = std::mem::take(&mut self.separated);
        let combine = |batches: &[RecordBatch]| match batches {
            [only] => Ok(only.clone()),
            _ => Ok(concat_batches(batches[0].schema_ref(), batches)?),
        };
        separated.chunk_by(|one, next| one.schema_ref() == next.schema_ref()).map(combine).collect()
    }

    /// Add the rows of `batch`. Return the values that are not valid JSON, unless they are errors.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<Vec<InvalidValue>, WriteError> {
        self.flush()?;
        self.write_chunks(batch)
    }

    pub(super) fn write_chunks(&mut self, batch: &RecordBatch) -> Result<Vec<InvalidValue>, WriteError> {
        let mut invalid = Vec::new();
        let mut start = 0;
        while start < batch.num_rows() {
            let length = self.chunk_rows(batch, start)?;
            let chunk = batch.slice(start, length);
            let pending = self.pending.take();
            let (columns, bounds, schema) = (&mut self.columns, &mut self.bounds, &self.schema);
            let (on_invalid, residual_rows, writer) =
                (self.on_invalid, &mut self.residual_rows, &mut self.writer);
            let (converted, encoded) = rayon::join(
                || convert(columns, bounds, schema, on_invalid, residual_rows.as_mut(), chunk),
                || pending.map_or(Ok(()), |pending| writer.write(&pending)),
            );
            encoded?;
            let converted = converted.map_err(|error| error.after(start))?;
            let found = converted.invalid.into_iter();
            invalid.extend(found.map(|one| InvalidValue { row: one.row + start, ..one }));
            self.separated.extend(converted.separated);
            self.pending = Some(converted.columns);
            start += length;
        }
        Ok(invalid)
    }

    /// Append a row group of another file without encoding it again, or return `false`: see [`FileWriter::copy`]. Also
    /// return `false` if some of its rows are to be separated, or if one of the columns `replaced` is a Variant or is
    /// not written as it is in the batches.
    pub fn copy(&mut self, file: &ParquetFile, row_group: usize, replaced: &[usize]) -> Result<bool> {
        let is_plain = |column: &usize| {
            matches!(self.columns.get(*column), Some(Column::Plain))
                && !is_variant(self.schema.field(*column))
        };
        if !replaced.iter().all(is_plain) {
            return Ok(false);
        }
        self.flush()?;
        let mut residual_rows = self.residual_rows.clone();
        if residual_rows.as_mut().is_some_and(|residual_rows| !residual_rows.admit(file, row_group)) {
            return Ok(false);
        }
        if let Some(pending) = self.pending.take() {
            self.writer.write(&pending)?;
        }
        let copied = self.writer.copy(file, row_group, replaced)?;
        if copied {
            self.residual_rows = residual_rows;
            self.replaced = replaced.to_vec();
            add_row_group(&mut self.bounds, &self.schema, file, row_group, replaced)?;
        }
        Ok(copied)
    }

    /// Add the next values of the columns that the last copy left out, in batches of these columns.
    pub fn replace(&mut self, batch: &RecordBatch) -> Result<()> {
        for (&column, array) in self.replaced.iter().zip(batch.columns()) {
            let name = self.schema.field(column).name();
            self.bounds[column].count(array).map_err(|error| error.in_column(name))?;
        }
        self.writer.replace(batch, &self.replaced)
    }

    /// Return the number of rows from `start` that form a chunk.
    fn chunk_rows(&self, batch: &RecordBatch, start: usize) -> Result<usize> {
        let most = CHUNK_ROWS.min(batch.num_rows() - start);
        let mut length = most;
        for (column, array) in self.columns.iter().zip(batch.columns()) {
            if let Column::Json(_) = column {
                let text = text_bytes(array)?;
                let text = Bytes::new(&text)?;
                let mut bytes = 0;
                length = (start..start + length)
                    .position(|row| {
                        bytes += text.get(row).map_or(0, <[u8]>::len);
                        bytes > self.chunk_bytes
                    })
                    .map_or(length, |last| last + 1);
            }
        }
        Ok(length)
    }

    /// Bytes handed to the sink, and an estimate of those of the row group in progress.
    pub fn bytes_written(&self) -> usize {
        self.writer.bytes_written()
    }

    /// Write what is buffered and the footer.
    pub fn close(mut self) -> Result<(FileSummary, Vec<ColumnBounds>)> {
        self.flush()?;
        if let Some(pending) = self.pending.take() {
            self.writer.write(&pending)?;
        }
        let summary = self.writer.close()?;
        let extremes: Vec<_> = summary.leaves.iter().map(|leaf| leaf.extremes.clone()).collect();
        let mut rest = extremes.as_slice();
        for (bounds, field) in self.bounds.iter_mut().zip(self.schema.fields()) {
            let (leaves, next) = rest.split_at(leaf_count(field.data_type()));
            bounds.widen(leaves);
            rest = next;
        }
        Ok((summary, self.bounds))
    }
}

impl Column {
    fn new(encoding: Encoding, parse: ParseOptions) -> Self {
        match encoding {
            Encoding::Plain => Column::Plain,
            Encoding::Json(schema) => {
                Column::Json(Box::new(JsonShredder::with_text_as_binary(&schema, parse)))
            }
            Encoding::Variant(schema, numeric) => Column::Variant(schema, numeric),
            Encoding::Struct(fields) => {
                Column::Struct(fields.into_iter().map(|field| Column::new(field, parse)).collect())
            }
        }
    }
}

impl Encoding {
    /// The field of the file that `field` of the batches becomes.
    fn field(&self, field: &Field) -> Field {
        let (schema, metadata_type) = match (self, field.data_type()) {
            (Encoding::Plain, data_type) if is_variant(field) => {
                return field.clone().with_data_type(without_text_dictionaries(data_type));
            }
            (Encoding::Struct(encodings), DataType::Struct(fields)) => {
                let fields = fields.iter().zip(encodings).map(|(field, encoding)| encoding.field(field));
                return field.clone().with_data_type(DataType::Struct(fields.collect()));
            }
            (Encoding::Plain | Encoding::Struct(_), _) => return field.clone(),
            (Encoding::Json(schema), _) => (schema, shapes_type()),
            (Encoding::Variant(schema, _), DataType::Struct(fields)) => (schema, metadata_type(fields)),
            (Encoding::Variant(schema, _), _) => (schema, DataType::Binary),
        };
        let mut metadata = field.metadata().clone();
        metadata.insert(EXTENSION_NAME.into(), VARIANT_EXTENSION.into());
        let data_type = DataType::Struct(Tree::new(schema).fields(metadata_type));
        Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata)
    }
}

/// The same type with text instead of dictionaries of text.
fn without_text_dictionaries(data_type: &DataType) -> DataType {
    let plain = |field: &FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(without_text_dictionaries(field.data_type())))
    };
    match data_type {
        data_type if is_text_dictionary(data_type) => DataType::Utf8,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        DataType::List(element) => DataType::List(plain(element)),
        DataType::LargeList(element) => DataType::LargeList(plain(element)),
        _ => data_type.clone(),
    }
}

/// The type of `metadata` after shredding `fields`: dictionaries stay.
fn metadata_type(fields: &Fields) -> DataType {
    match fields.find("metadata").map(|(_, field)| field.data_type()) {
        Some(dictionary @ DataType::Dictionary(_, _)) => dictionary.clone(),
        _ => DataType::Binary,
    }
}

/// The reason why a batch was not written.
#[derive(Debug, Clone, PartialEq)]
pub enum WriteError {
    InvalidValue(InvalidValue),
    Other(Error),
}

impl WriteError {
    fn after(self, rows: usize) -> Self {
        match self {
            WriteError::InvalidValue(invalid) => {
                WriteError::InvalidValue(InvalidValue { row: invalid.row + rows, ..invalid })
            }
            WriteError::Other(error) => WriteError::Other(error.map_row(|row| row + rows)),
        }
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::InvalidValue(invalid) => Error::data_file(invalid.message).at_row(invalid.row),
            WriteError::Other(error) => error,
        }
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        WriteError::Other(error)
    }
}

/// A chunk of rows as the file stores them.
struct Converted {
    columns: RecordBatch,
    /// The rows that are separated.
    separated: Option<RecordBatch>,
    /// Sorted by row.
    invalid: Vec<InvalidValue>,
}

/// Convert the columns of `chunk` to those of the file.
fn convert(
    columns: &mut [Column],
    bounds: &mut [ColumnBounds],
    schema: &SchemaRef,
    on_invalid: OnInvalid,
    residual_rows: Option<&mut ResidualRows>,
    mut chunk: RecordBatch,
) -> Result<Converted, WriteError> {
    let parsed = leave_out(columns, residual_rows.as_deref());
    let Columns { mut arrays, invalid, mut left_out } = convert_columns(columns, schema, on_invalid, &chunk)?;
    if on_invalid == OnInvalid::Reject && !invalid.is_empty() {
        let keep = BooleanArray::from_iter(
            (0..chunk.num_rows()).map(|row| Some(invalid.binary_search_by_key(&row, |one| one.row).is_err())),
        );
        chunk = filter_record_batch(&chunk, &keep).map_err(Error::from)?;
        Columns { arrays, left_out, .. } = convert_columns(columns, schema, on_invalid, &chunk)?;
    }
    let mut rows = chunk.num_rows();
    let selected = match residual_rows {
        Some(residual_rows) if parsed.is_some() => {
            if !residual_rows.admit_parsed(&arrays, &left_out, rows) {
                leave_out(columns, Some(residual_rows));
                Columns { arrays, left_out, .. } = convert_columns(columns, schema, on_invalid, &chunk)?;
            }
            is_one_of(&left_out, rows)
        }
        Some(residual_rows) => residual_rows.select(&arrays, rows)?,
        None => None,
    };
    let mut separated = None;
    if let Some(selected) = selected {
        separated = Some(filter_rows(&chunk, &selected)?);
        rows -= selected.true_count();
        arrays = remove_rows(&arrays, &selected, parsed)?;
    }
    for ((array, bounds), field) in arrays.iter().zip(bounds).zip(schema.fields()) {
        bounds.count(array).map_err(|error| error.in_column(field.name()))?;
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    // Text may be a dictionary in some batches.
    let fields = schema.fields().iter().zip(&arrays);
    let fields: Fields = fields.map(|(field, array)| with_type(field, array)).collect();
    let schema = Arc::new(Schema::new(fields));
    let columns = RecordBatch::try_new_with_options(schema, arrays, &options).map_err(Error::from)?;
    Ok(Converted { columns, separated, invalid })
}

/// Let the parser leave residual rows out, if only one column can have them and is parsed. Return this column.
///
/// Most residual rows are then never converted, and the others need not be moved.
fn leave_out(columns: &mut [Column], residual_rows: Option<&ResidualRows>) -> Option<usize> {
    let mut parsed = None;
    for (index, column) in columns.iter_mut().enumerate() {
        if let Column::Json(shredder) = column {
            let groups = residual_rows.and_then(|residual_rows| residual_rows.groups(index));
            shredder.leave_out(groups.as_deref().unwrap_or_default());
            parsed = parsed.or(groups.map(|_| index));
        }
    }
    parsed
}

/// Which of `rows` rows are among `residual_rows`, `None` for none.
fn is_one_of(residual_rows: &[ResidualRow], rows: usize) -> Option<BooleanArray> {
    let mut selected = BooleanBufferBuilder::new(rows);
    selected.append_n(rows, false);
    residual_rows.iter().for_each(|residual_row| selected.set_bit(residual_row.row, true));
    (!residual_rows.is_empty()).then(|| BooleanArray::new(selected.finish(), None))
}

/// Remove rows from all columns but the one that was parsed without them.
fn remove_rows(arrays: &[ArrayRef], selected: &BooleanArray, parsed: Option<usize>) -> Result<Vec<ArrayRef>> {
    let others = BooleanArray::new(!selected.values(), None);
    let mut given = arrays.to_vec();
    let parsed = parsed.map(|index| (index, given.remove(index)));
    let mut kept = filter_columns(&given, &others)?;
    if let Some((index, array)) = parsed {
        kept.insert(index, array);
    }
    Ok(kept)
}

/// The columns of a chunk, as the file stores them.
struct Columns {
    arrays: Vec<ArrayRef>,
    /// Sorted by row.
    invalid: Vec<InvalidValue>,
    /// The rows that the parser left out of its column.
    left_out: Vec<ResidualRow>,
}

/// Return the columns of the file, with SQL NULL for invalid JSON text.
fn convert_columns(
    columns: &mut [Column],
    schema: &Schema,
    on_invalid: OnInvalid,
    chunk: &RecordBatch,
) -> Result<Columns, WriteError> {
    let (mut invalid, mut left_out) = (Vec::new(), Vec::new());
    let mut arrays = Vec::with_capacity(columns.len());
    for (index, (column, array)) in columns.iter_mut().zip(chunk.columns()).enumerate() {
        let field = schema.field(index);
        let locate = |error: Error| error.in_column(field.name());
        arrays.push(match column {
            Column::Plain => array.clone(),
            Column::Json(shredder) => {
                let found = parse_column(shredder, array, index).map_err(locate)?;
                let group = shredder.take().map_err(locate)?;
                left_out.extend(shredder.take_residual_rows());
                if on_invalid == OnInvalid::Error
                    && let Some(first) = found.first()
                {
                    return Err(WriteError::InvalidValue(first.clone()));
                }
                invalid.extend(found);
                Arc::new(group)
            }
            Column::Variant(shredding, numeric) => {
                let group = struct_column(array).and_then(|group| shred(group, shredding.clone(), *numeric));
                Arc::new(group.map_err(locate)?)
            }
            Column::Struct(fields) => {
                let group = struct_column(array).and_then(|group| convert_struct(fields, field, group, None));
                group.map_err(locate)?
            }
        });
    }
    invalid.sort_by_key(|one| one.row);
    Ok(Columns { arrays, invalid, left_out })
}

/// The struct of the file, as `field` has it; where a struct around it is not `valid`, its Variants are null.
fn convert_struct(
    columns: &[Column],
    field: &Field,
    array: &StructArray,
    valid: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::Struct(fields) = field.data_type() else { return Err(no_struct(field.data_type())) };
    let valid = NullBuffer::union(valid, array.nulls());
    let converted =
        columns.iter().zip(fields).zip(array.columns()).map(|((column, field), array)| match column {
            Column::Variant(schema, numeric) => {
                let variants = struct_column(array)?;
                let nulls = NullBuffer::union(valid.as_ref(), variants.nulls());
                let parts = (variants.fields().clone(), variants.columns().to_vec());
                let variants = StructArray::try_new(parts.0, parts.1, nulls)?;
                let group = shred(&variants, schema.clone(), *numeric);
                Ok(Arc::new(group.map_err(|error| error.in_column(field.name()))?) as ArrayRef)
            }
            Column::Struct(fields) => convert_struct(fields, field, struct_column(array)?, valid.as_ref())
                .map_err(|error| error.in_column(field.name())),
            Column::Plain | Column::Json(_) => Ok(array.clone()),
        });
    let converted = converted.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(fields.clone(), converted, array.nulls().cloned())?))
}

fn struct_column(array: &ArrayRef) -> Result<&StructArray> {
    array.as_struct_opt().ok_or_else(|| no_struct(array.data_type()))
}

fn no_struct(data_type: &DataType) -> Error {
    Error::unsupported(format!(
        "expected a Variant column with the fields metadata and value, got {data_type}"
    ))
}

fn parse_column(shredder: &mut JsonShredder, array: &ArrayRef, column: usize) -> Result<Vec<InvalidValue>> {
    let mut invalid = Vec::new();
    parse_rows(shredder, array, |row, error| {
        invalid.push(InvalidValue::of(row, column, *error));
    })?;
    Ok(invalid)
}
