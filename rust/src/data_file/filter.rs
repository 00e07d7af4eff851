//! Select rows of columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use arrow_select::filter::{FilterBuilder, FilterPredicate};

use crate::error::{Error, Result};

/// Return the rows of `batch` for which `mask` is true.
pub fn filter_rows(batch: &RecordBatch, mask: &BooleanArray) -> Result<RecordBatch> {
    let columns = filter_columns(batch.columns(), mask)?;
    let options = RecordBatchOptions::new().with_row_count(Some(mask.true_count()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

/// Return the rows of `columns` for which `mask` is true.
pub fn filter_columns(columns: &[ArrayRef], mask: &BooleanArray) -> Result<Vec<ArrayRef>> {
    let filter = FilterBuilder::new(mask).optimize().build();
    columns.iter().map(|column| filter_array(column, &filter)).collect()
}

/// Half of the leaves of a shredded Variant are a `value` without values, which takes no time to filter.
fn filter_array(array: &ArrayRef, filter: &FilterPredicate) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Struct(fields) if !fields.is_empty() => {
            let columns = array.as_struct().columns().iter().map(|column| filter_array(column, filter));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let nulls = array.nulls().map(|nulls| {
                let valid = filter.filter(&BooleanArray::new(nulls.inner().clone(), None))?;
                Ok::<_, Error>(NullBuffer::new(valid.as_boolean().values().clone()))
            });
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns, nulls.transpose()?)?))
        }
        data_type if !data_type.is_nested() && array.null_count() == array.len() => {
            Ok(array.slice(0, filter.count()))
        }
        _ => Ok(filter.filter(array)?),
    }
}
