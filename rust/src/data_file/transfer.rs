//! Rows of a data file that become rows of another one: leaf columns are decoded and encoded again, and Variants are
//! not rebuilt.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::basic::LogicalType;
use parquet::schema::types::Type;
use rayon::join;

use super::write::DataFileWriter;
use crate::error::Result;
use crate::parquet::read::{ParquetFile, Scan};
use crate::parquet::schema::{is_variant, members};
use crate::value::column::{leaf_count, with_type};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 64 << 10;
/// The maximum of decoded bytes of a row group, which is decoded while the one before is written.
const DECODED_BYTES: u64 = 64 << 20;
/// The bytes of a number, or at most those of a key of a dictionary or of an offset, in a decoded column.
const SLOT_BYTES: u64 = 8;

impl<W: Write + Send> DataFileWriter<W> {
    /// Add the rows of a row group of another file. Return `false`, and add nothing, unless the file has the same
    /// columns, Variants annotated or not, and all columns are written as they are in the batches, if the row group
    /// is large, and if it cannot be decoded: the caller then reads the rows.
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
        self.takes_stored_columns()
            && same_columns(self.writer.parquet_schema(), file.schema())
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

/// Whether two schemas have the same columns. The name of the root may differ, and of Variants the annotation and the
/// order of `metadata`, `value` and `typed_value`.
fn same_columns(one: &Type, other: &Type) -> bool {
    let (columns, others) = (members(one), members(other));
    columns.len() == others.len()
        && columns.iter().zip(others).all(|(column, other)| column == other || same_variants(column, other))
}

fn same_variants(one: &Type, other: &Type) -> bool {
    let [head, other_head] = [one, other].map(|column| {
        let info = column.get_basic_info();
        let is_variant = matches!(info.logical_type_ref(), Some(LogicalType::Variant(_)));
        let logical = info.logical_type_ref().filter(|_| !is_variant);
        (info.name(), info.repetition(), info.has_id().then(|| info.id()), logical)
    });
    let (group, others) = (members(one), members(other));
    let same_members = group.len() == others.len() && group.iter().all(|member| others.contains(member));
    one.is_group() && other.is_group() && head == other_head && same_members
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
    let columns = fields.map(|(field, array)| in_order(field, array)).collect::<Result<Vec<_>>>()?;
    let fields: Fields =
        schema.fields().iter().zip(&columns).map(|(field, array)| with_type(field, array)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

/// The array of a column, with the members of a Variant in the order of `field`.
fn in_order(field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
    let (true, DataType::Struct(order)) = (is_variant(field), field.data_type()) else {
        return Ok(array.clone());
    };
    let group = array.as_struct();
    if order.iter().zip(group.column_names()).all(|(member, name)| member.name() == name) {
        return Ok(array.clone());
    }
    let names = order.iter().map(|member| member.name());
    let members = names.filter_map(|name| {
        let (_, member) = group.fields().find(name)?;
        Some((member.clone(), group.column_by_name(name)?.clone()))
    });
    let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) = members.unzip();
    Ok(Arc::new(StructArray::try_new(fields.into(), columns, group.nulls().cloned())?))
}
