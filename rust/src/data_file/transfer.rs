//! Rows of a data file that become rows of another one: leaf columns are decoded and encoded again, and Variants are
//! not rebuilt.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Fields, Schema};
use rayon::join;

use super::write::{DataFileWriter, with_type};
use crate::error::Result;
use crate::parquet::read::{ParquetFile, Scan};
use crate::parquet::schema::is_variant;
use crate::shred::extract::leaf_count;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 64 << 10;
/// The maximum of decoded bytes of a row group, which is decoded while the one before is written.
const DECODED_BYTES: u64 = 64 << 20;
/// The bytes of a number, or at most those of a key of a dictionary or of an offset, in a decoded column.
const SLOT_BYTES: u64 = 8;

impl<W: Write + Send> DataFileWriter<W> {
    /// Add the rows of a row group of another file. Return `false`, and add nothing, unless the file has the same
    /// schema and all columns are written as they are in the batches, if the row group is large, and if it cannot be
    /// decoded: the caller then reads the rows.
    ///
    /// The rows are written together with the next ones, or by [`DataFileWriter::flush`].
    pub fn transfer(&mut self, file: &ParquetFile, row_group: usize) -> Result<bool> {
        if !self.has_columns_of(file) || decoded_bytes(file, row_group) > DECODED_BYTES {
            return Ok(false);
        }
        let schema = self.schema.clone();
        let (decoded, written) = join(|| decode(file, row_group, &schema), || self.flush());
        written?;
        Ok(match decoded {
            Ok(batches) => {
                self.decoded = batches;
                true
            }
            // The error of the caller's read says where it happened.
            Err(_) => false,
        })
    }

    /// Whether rows of `file` can be written as they are stored, and separated as rows of the batches.
    fn has_columns_of(&self, file: &ParquetFile) -> bool {
        let fields = self.schema.fields().iter().zip(file.arrow_schema().fields());
        self.writes_batches_unchanged()
            && self.writer.has_schema_of(file)
            && fields
                .into_iter()
                .all(|(field, stored)| is_variant(field) || field.data_type() == stored.data_type())
    }

    /// Write the rows that were transferred last.
    pub fn flush(&mut self) -> Result<()> {
        for batch in std::mem::take(&mut self.decoded) {
            self.write_chunks(&batch)?;
        }
        Ok(())
    }
}

/// An estimate of the size of the decoded columns of a row group.
fn decoded_bytes(file: &ParquetFile, row_group: usize) -> u64 {
    let Some(group) = file.row_groups().get(row_group) else { return u64::MAX };
    let columns = group.columns().iter().map(|chunk| {
        let text = chunk.unencoded_byte_array_data_bytes().unwrap_or(0);
        let slots = chunk.num_values().unsigned_abs().saturating_mul(SLOT_BYTES);
        text.max(chunk.uncompressed_size()).unsigned_abs().saturating_add(slots)
    });
    columns.fold(0, u64::saturating_add)
}

/// Return the rows of a row group as batches of `schema`. Text of Variants is dictionaries where it is stored so.
fn decode(file: &ParquetFile, row_group: usize, schema: &Schema) -> Result<Vec<RecordBatch>> {
    let (mut count, mut dictionaries) = (0, Vec::new());
    for (field, stored) in schema.fields().iter().zip(file.arrow_schema().fields()) {
        let next = count + leaf_count(stored.data_type());
        dictionaries.extend((count..next).filter(|_| is_variant(field)));
        count = next;
    }
    let leaves = (0..count).collect();
    let scan = Scan { leaves, dictionaries, row_groups: vec![row_group], batch_size: BATCH_ROWS };
    let batches = file.read_row_group(&scan, row_group)?;
    batches.map(|batch| under_schema(batch?, schema)).collect()
}

/// A batch of a file under the fields of `schema`.
fn under_schema(batch: RecordBatch, schema: &Schema) -> Result<RecordBatch> {
    let fields = schema.fields().iter().zip(batch.columns());
    let fields: Fields = fields.map(|(field, array)| with_type(field, array)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}
