//! Deletion vectors: add rows to one, and list the rows in which two differ.

use std::borrow::Cow;

use pyo3::prelude::*;

use super::arrays::{PyArray, row_numbers};
use crate::deletion_vector;

/// Return a deletion vector of the rows in `deleted` and in an array of row numbers, and the number of its rows.
#[pyfunction]
pub fn add_deleted_rows(deleted: Option<&[u8]>, rows: PyArray) -> PyResult<(Cow<'static, [u8]>, u64)> {
    let rows = row_numbers(rows)?;
    // A row number is never negative.
    let (bytes, count) = deletion_vector::add_rows(deleted, rows.iter().map(|row| *row as u64))?;
    Ok((bytes.into(), count))
}

/// Return the rows in `deleted` but not in `others`, as ordered half-open ranges.
#[pyfunction]
#[pyo3(signature = (deleted, others))]
pub fn subtract_deleted_rows(deleted: Option<&[u8]>, others: Option<&[u8]>) -> PyResult<Vec<(u64, u64)>> {
    Ok(deletion_vector::subtract_rows(deleted, others)?)
}
