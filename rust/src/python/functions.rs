//! Functions over arrays of Variants, with the names of Spark.

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use arrow_select::concat::concat_batches;
use pyo3::prelude::*;

use super::arrays::{PyArray, run_array};
use super::values::{PyStep, concat, group, plain, steps};
use super::{choice, run};
use crate::error::Error;
use crate::functions::change::{self, Change};
use crate::functions::schema_of::{self, Type};
use crate::functions::{contains, contents, explode, key, matches};
use crate::value::path::Step;

/// Insert, set or append values at a path.
#[pyfunction]
pub fn change_path(
    py: Python<'_>,
    variants: PyArray,
    path: Vec<PyStep>,
    values: PyArray,
    change: &str,
    strict: bool,
) -> PyResult<PyArray> {
    let changes = [
        ("insert", Change::Insert),
        ("set", Change::Set { create: true }),
        ("replace", Change::Set { create: false }),
        ("append", Change::Append),
    ];
    let (change, path) = (choice(change, "change", &changes)?, steps(path));
    run_array(py, || concat(&change::change_rows(&plain(variants)?, &path, &plain(values)?, change, strict)?))
}

/// Remove the values at paths.
#[pyfunction]
pub fn delete_paths(py: Python<'_>, variants: PyArray, paths: Vec<Vec<PyStep>>) -> PyResult<PyArray> {
    let paths: Vec<_> = paths.into_iter().map(steps).collect();
    run_array(py, || concat(&change::delete_rows(&plain(variants)?, &paths)?))
}

/// Remove fields, and with `arrays` elements, that are Variant null.
#[pyfunction]
pub fn strip_nulls(py: Python<'_>, variants: PyArray, arrays: bool) -> PyResult<PyArray> {
    run_array(py, || concat(&change::strip_nulls_rows(&plain(variants)?, arrays)?))
}

/// Return a row for each field and element.
#[pyfunction]
pub fn explode_variants(
    py: Python<'_>,
    variants: PyArray,
    outer: bool,
) -> PyResult<PyArrowType<RecordBatch>> {
    run(py, || {
        let parts = explode::explode(&plain(variants)?, outer)?;
        let schema = parts.first().map(RecordBatch::schema).ok_or_else(|| Error::unsupported("no rows"))?;
        Ok::<_, Error>(PyArrowType(concat_batches(&schema, &parts)?))
    })
}

/// Return an array of the values at a path with wildcards, which are None.
#[pyfunction]
pub fn matches_of(py: Python<'_>, variants: PyArray, path: Vec<Option<PyStep>>) -> PyResult<PyArray> {
    let path: Vec<_> = path.into_iter().map(|step| step.map(Step::from)).collect();
    run_array(py, || concat(&matches::matches(&plain(variants)?, &path)?))
}

/// Return the type of each Variant as SQL text.
#[pyfunction]
pub fn schema_of_variants(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run_array(py, || schema_of::schema_of(&plain(variants)?))
}

/// Return a key of each Variant, by which equal values are equal and in their order.
#[pyfunction]
pub fn sort_keys(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run_array(py, || key::keys(&plain(variants)?))
}

/// Return whether each Variant contains another one.
#[pyfunction]
pub fn contains_variants(py: Python<'_>, variants: PyArray, values: PyArray) -> PyResult<PyArray> {
    run_array(py, || contains::contains(&plain(variants)?, &plain(values)?))
}

/// Return the number of elements of each array.
#[pyfunction]
pub fn array_lengths(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run_array(py, || contents::array_lengths(&plain(variants)?))
}

/// Return the names of the fields of each object.
#[pyfunction]
pub fn object_keys(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run_array(py, || contents::object_keys(&plain(variants)?))
}

/// Return whether each row is a Variant.
#[pyfunction]
pub fn are_valid(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run_array(py, || contents::are_valid(&group(variants.0)?))
}

/// The type that includes all Variants added to it.
#[pyclass(name = "MergedSchema", module = "delta_variant._native")]
#[derive(Default)]
pub struct PyMergedSchema {
    known: Type,
}

#[pymethods]
impl PyMergedSchema {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Add the Variants of an array.
    fn add(&mut self, py: Python<'_>, variants: PyArray) -> PyResult<()> {
        let found = run(py, || schema_of::merged_schema(&plain(variants)?))?;
        self.known = std::mem::take(&mut self.known).merged(found);
        Ok(())
    }

    /// Return the type as SQL text.
    fn __str__(&self) -> String {
        self.known.to_string()
    }
}
