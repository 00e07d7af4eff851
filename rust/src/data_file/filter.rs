//! Select and replace rows of columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray, make_array};
use arrow_buffer::NullBuffer;
use arrow_data::transform::MutableArrayData;
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

/// Return `column`, whose rows have the ascending `numbers`, with some rows replaced by those of `other`: their numbers
/// are in `replaced`, in ascending order. Numbers that no row has are ignored.
pub fn replace_rows(
    column: &ArrayRef,
    numbers: &[i64],
    other: &ArrayRef,
    replaced: &[i64],
) -> Result<ArrayRef> {
    if column.data_type() != other.data_type() {
        let (old, new) = (column.data_type(), other.data_type());
        return Err(Error::unsupported(format!("expected rows of type {old}, got {new}")));
    }
    let (old, new) = (column.to_data(), other.to_data());
    let mut merged = MutableArrayData::new(vec![&old, &new], false, column.len());
    let (mut end, first) = (0, numbers.first().copied().unwrap_or(i64::MAX));
    let before = replaced.partition_point(|&number| number < first);
    for (at, wanted) in replaced.iter().enumerate().skip(before) {
        let row = end + numbers[end..].partition_point(|number| number < wanted);
        match numbers.get(row) {
            Some(number) if number == wanted => {
                merged.try_extend(0, end, row)?;
                merged.try_extend(1, at, at + 1)?;
                end = row + 1;
            }
            Some(_) => {}
            None => break,
        }
    }
    merged.try_extend(0, end, column.len())?;
    Ok(make_array(merged.freeze()))
}
