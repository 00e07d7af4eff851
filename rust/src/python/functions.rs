//! Functions over arrays of Variants, with the names of Spark.

use arrow_array::{Array, RecordBatch, StructArray};
use arrow_pyarrow::PyArrowType;
use arrow_select::concat::{concat, concat_batches};
use pyo3::prelude::*;

use super::arrays::PyArray;
use super::values::{PyStep, group, steps};
use super::{choice, run};
use crate::error::{Error, Result};
use crate::functions::change::{self, Change};
use crate::functions::schema_of::{self, Type};
use crate::functions::{contains, contents, explode, key, matches};
use crate::shred::OnConflict;
use crate::shred::unshred::unshred;
use crate::value::path::Step;

/// Return Variants that are not shredded.
fn plain(variants: PyArray) -> Result<StructArray> {
    unshred(&group(variants.0)?, OnConflict::Error)
}

fn joined(parts: &[StructArray]) -> Result<PyArray> {
    let parts: Vec<&dyn Array> = parts.iter().map(|part| part as &dyn Array).collect();
    Ok(PyArrowType(concat(&parts)?.to_data()))
}

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
    run(py, || joined(&change::change_rows(&plain(variants)?, &path, &plain(values)?, change, strict)?))
}

/// Remove the values at paths.
#[pyfunction]
pub fn delete_paths(py: Python<'_>, variants: PyArray, paths: Vec<Vec<PyStep>>) -> PyResult<PyArray> {
    let paths: Vec<_> = paths.into_iter().map(steps).collect();
    run(py, || joined(&change::delete_rows(&plain(variants)?, &paths)?))
}

/// Remove fields, and with `arrays` elements, that are Variant null.
#[pyfunction]
pub fn strip_nulls(py: Python<'_>, variants: PyArray, arrays: bool) -> PyResult<PyArray> {
    run(py, || joined(&change::strip_nulls_rows(&plain(variants)?, arrays)?))
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
    run(py, || joined(&matches::matches(&plain(variants)?, &path)?))
}

/// Return the type of each Variant as SQL text.
#[pyfunction]
pub fn schema_of_variants(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run(py, || Ok::<_, Error>(PyArrowType(schema_of::schema_of(&plain(variants)?)?.to_data())))
}

/// Return a key of each Variant, by which equal values are equal and in their order.
#[pyfunction]
pub fn sort_keys(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run(py, || Ok::<_, Error>(PyArrowType(key::keys(&plain(variants)?)?.to_data())))
}

/// Return whether each Variant contains another one.
#[pyfunction]
pub fn contains_variants(py: Python<'_>, variants: PyArray, values: PyArray) -> PyResult<PyArray> {
    run(py, || {
        let found = contains::contains(&plain(variants)?, &plain(values)?)?;
        Ok::<_, Error>(PyArrowType(found.to_data()))
    })
}

/// Return the number of elements of each array.
#[pyfunction]
pub fn array_lengths(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run(py, || Ok::<_, Error>(PyArrowType(contents::array_lengths(&plain(variants)?)?.to_data())))
}

/// Return the names of the fields of each object.
#[pyfunction]
pub fn object_keys(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run(py, || Ok::<_, Error>(PyArrowType(contents::object_keys(&plain(variants)?)?.to_data())))
}

/// Return whether each row is a Variant.
#[pyfunction]
pub fn are_valid(py: Python<'_>, variants: PyArray) -> PyResult<PyArray> {
    run(py, || Ok::<_, Error>(PyArrowType(contents::are_valid(&group(variants.0)?)?.to_data())))
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
