//! The forms in which the text at a path is returned: strings, dictionaries of strings, and views.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::take::take;

use crate::error::Result;
use crate::value::column::is_text_dictionary;

/// Whether a type is a form of text other than strings.
pub fn is_other_form(data_type: &DataType) -> bool {
    *data_type == DataType::Utf8View || is_text_dictionary(data_type)
}

/// Strings, or a dictionary of strings, as a dictionary.
pub fn as_dictionary(text: ArrayRef) -> Result<ArrayRef> {
    if is_text_dictionary(text.data_type()) {
        return Ok(text);
    }
    let (offsets, bytes, nulls) = text.as_string::<i32>().clone().into_parts();
    // Each value is in it, repeated or not.
    let keys = Int32Array::new((0..text.len() as i32).collect(), nulls);
    let values = StringArray::new(offsets, bytes, None);
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values))?))
}

/// Rows with views in the columns that are such in `fields`.
///
/// Views take four times the memory of keys of a dictionary, so they are made when the consumer takes the rows.
pub fn with_views(rows: RecordBatch, fields: &[Field]) -> Result<RecordBatch> {
    if rows.num_columns() == 0 || fields.iter().all(|field| *field.data_type() != DataType::Utf8View) {
        return Ok(rows);
    }
    let schema = rows.schema();
    let (mut fields_of_rows, mut columns) = (schema.fields().to_vec(), rows.columns().to_vec());
    for ((field, column), requested) in fields_of_rows.iter_mut().zip(&mut columns).zip(fields) {
        if *requested.data_type() == DataType::Utf8View {
            *column = as_views(column)?;
            *field = Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone()));
        }
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields_of_rows)), columns)?)
}

fn as_views(text: &ArrayRef) -> Result<ArrayRef> {
    match text.data_type() {
        DataType::Utf8 => Ok(views_of_strings(text.as_string())),
        data_type if is_text_dictionary(data_type) => views_of(text.as_dictionary()),
        _ => Ok(text.clone()),
    }
}

/// Views share the bytes of the strings, here those of the dictionary.
fn views_of(dictionary: &DictionaryArray<Int32Type>) -> Result<ArrayRef> {
    let (keys, values) = (dictionary.keys(), dictionary.values());
    match values.len() <= keys.len() {
        true => Ok(take(&views_of_strings(values.as_string()), keys, None)?),
        // The rows may be few, and the dictionary is that of the whole row group.
        false => Ok(views_of_strings(take(values, keys, None)?.as_string())),
    }
}

fn views_of_strings(strings: &StringArray) -> ArrayRef {
    Arc::new(StringViewArray::from(strings))
}
