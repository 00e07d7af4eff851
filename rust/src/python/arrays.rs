//! Arrow arrays and batches from Python.
//!
//! The Arrow crate slices the parts of a struct twice if it is in a struct with an offset, as in a slice of a shredded
//! Variant, and panics. Such arrays are imported here part by part.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, make_array};
use arrow_buffer::ScalarBuffer;
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::DataType;
use pyo3::prelude::*;

use super::threads::run;
use crate::error::{Error, Result};

/// An Arrow array that is passed between Python and Rust.
pub type PyArray = PyArrowType<ArrayData>;

/// A record batch from Python, without the metadata of its schema.
pub struct PyBatch(pub RecordBatch);

impl<'a, 'py> FromPyObject<'a, 'py> for PyBatch {
    type Error = PyErr;

    fn extract(batch: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let columns = imported(batch.extract::<PyArray>()?.0)?;
        let columns = columns.as_struct_opt().ok_or_else(|| Error::unsupported("expected a record batch"))?;
        Ok(PyBatch(RecordBatch::from(columns)))
    }
}

/// Return the array of `work`, which runs on the kernel's threads.
pub fn run_array<A: Array>(py: Python<'_>, work: impl FnOnce() -> Result<A> + Send) -> PyResult<PyArray> {
    run(py, || work().map(|array| PyArrowType(array.to_data())))
}

/// Return the numbers of rows in an array from Python.
pub fn row_numbers(array: PyArray) -> Result<ScalarBuffer<i64>> {
    let numbers = imported(array.0)?.as_primitive_opt::<Int64Type>().map(|numbers| numbers.values().clone());
    numbers.ok_or_else(|| Error::unsupported("the numbers of rows are not 64-bit integers"))
}

/// Return the array of data from Python.
pub fn imported(data: ArrayData) -> Result<ArrayRef> {
    match is_sliced_twice(&data) {
        true => rebuilt(&data),
        false => Ok(make_array(data)),
    }
}

fn is_sliced_twice(data: &ArrayData) -> bool {
    let is_struct = |data: &ArrayData| matches!(data.data_type(), DataType::Struct(_));
    let parts = data.child_data();
    is_struct(data) && data.offset() > 0 && parts.iter().any(is_struct) || parts.iter().any(is_sliced_twice)
}

fn rebuilt(data: &ArrayData) -> Result<ArrayRef> {
    let parts = data.child_data().iter().map(rebuilt).collect::<Result<Vec<_>>>()?;
    Ok(match data.data_type() {
        DataType::Struct(fields) => {
            let parts = parts.iter().map(|part| part.slice(data.offset(), data.len())).collect();
            let nulls = data.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(fields.clone(), parts, nulls, data.len())?)
        }
        _ if parts.is_empty() => make_array(data.clone()),
        _ => {
            let parts = parts.iter().map(|part| part.to_data()).collect();
            make_array(data.clone().into_builder().child_data(parts).build()?)
        }
    })
}
