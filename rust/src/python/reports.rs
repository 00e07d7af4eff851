//! The objects with which the kernel answers, as classes with attributes; `_native.pyi` documents them.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::check::{Bound as BoundEntry, BoundReport, SchemaViolation, Violation};
use crate::data_file::write::InvalidValue;

/// A value that is not valid JSON.
#[pyclass(name = "InvalidValue", module = "delta_variant._native", frozen, get_all, skip_from_py_object)]
#[derive(Clone)]
pub struct PyInvalidValue {
    pub row: usize,
    pub column: usize,
    pub offset: usize,
    pub message: String,
    pub is_duplicate: bool,
}

impl From<InvalidValue> for PyInvalidValue {
    fn from(InvalidValue { row, column, offset, message, is_duplicate }: InvalidValue) -> Self {
        PyInvalidValue { row, column, offset, message, is_duplicate }
    }
}

/// A rule that the schema of a Variant column violates at one path.
#[pyclass(name = "SchemaViolation", module = "delta_variant._native", frozen, get_all)]
pub struct PySchemaViolation {
    rule: &'static str,
    path: String,
    message: String,
}

impl From<SchemaViolation> for PySchemaViolation {
    fn from(SchemaViolation { rule, path, message }: SchemaViolation) -> Self {
        PySchemaViolation { rule, path, message }
    }
}

/// A rule that rows of a Variant column violate at one path.
#[pyclass(name = "RowViolation", module = "delta_variant._native", frozen, get_all)]
pub struct PyRowViolation {
    rule: &'static str,
    path: String,
    row: u64,
    count: u64,
    message: String,
}

impl From<Violation> for PyRowViolation {
    fn from(Violation { rule, path, count, row, message }: Violation) -> Self {
        PyRowViolation { rule, path, row, count, message }
    }
}

/// The check of the rows of one Variant column.
#[pyclass(name = "ColumnCheck", module = "delta_variant._native", frozen, get_all)]
pub struct PyColumnCheck {
    pub variants: u64,
    pub violations: Vec<Py<PyRowViolation>>,
    pub paths: Vec<Py<PyDict>>,
}

/// The decoded bytes of a statistics entry.
#[pyclass(name = "StatisticsEntry", module = "delta_variant._native", frozen, get_all)]
pub struct PyStatisticsEntry {
    is_value_first: bool,
    rest: Vec<u8>,
    bounds: Option<Vec<PyPathBound>>,
}

impl From<BoundReport> for PyStatisticsEntry {
    fn from(BoundReport { is_value_first, rest, bounds }: BoundReport) -> Self {
        let bounds = bounds.map(|bounds| bounds.into_iter().map(PyPathBound::from).collect());
        PyStatisticsEntry { is_value_first, rest, bounds }
    }
}

/// The bound of one path in a statistics entry.
#[pyclass(name = "PathBound", module = "delta_variant._native", frozen, get_all, skip_from_py_object)]
#[derive(Clone)]
pub struct PyPathBound {
    key: String,
    type_name: &'static str,
    scale: Option<u8>,
    text: String,
}

impl From<BoundEntry> for PyPathBound {
    fn from(BoundEntry { key, type_name, scale, text }: BoundEntry) -> Self {
        PyPathBound { key, type_name, scale, text }
    }
}

/// One leaf of a column that is not a Variant, or a Variant within a struct.
#[pyclass(name = "LeafReport", module = "delta_variant._native", frozen, get_all)]
pub struct PyLeafReport {
    pub path: Vec<String>,
    pub nulls: u64,
    pub min: Option<Py<PyAny>>,
    pub max: Option<Py<PyAny>>,
}

/// One shredded path of a Variant column.
#[pyclass(name = "ShreddedPath", module = "delta_variant._native", frozen, get_all)]
pub struct PyShreddedPath {
    pub path: Vec<Option<String>>,
    pub r#type: Py<PyAny>,
    pub typed: u64,
    pub values: u64,
}
