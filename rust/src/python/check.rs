//! The checks of a file and of its statistics, for the audit.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::reports::{PyColumnCheck, PyRowViolation, PyStatisticsEntry};
use crate::check::{ColumnCheck, Offenders, PathCheck, describe_bound};

/// Decode the bytes of a statistics entry.
#[pyfunction]
#[pyo3(name = "describe_bound")]
pub fn py_describe_bound(bytes: &[u8]) -> PyResult<PyStatisticsEntry> {
    Ok(describe_bound(bytes)?.into())
}

pub fn column_report(py: Python<'_>, check: ColumnCheck) -> PyResult<PyColumnCheck> {
    let violations = check.violations.into_list().into_iter();
    Ok(PyColumnCheck {
        variants: check.variants,
        violations: violations
            .map(|each| Py::new(py, PyRowViolation::from(each)))
            .collect::<PyResult<_>>()?,
        paths: check.paths.iter().map(|path| path_report(py, path)).collect::<PyResult<_>>()?,
    })
}

fn path_report(py: Python<'_>, path: &PathCheck) -> PyResult<Py<PyDict>> {
    let report = PyDict::new(py);
    report.set_item("present", path.present)?;
    report.set_item("min_attained", path.min_attained)?;
    report.set_item("max_attained", path.max_attained)?;
    let offenders = [
        ("nulls", &path.nulls),
        ("nans", &path.nans),
        ("others", &path.others),
        ("below", &path.below),
        ("above", &path.above),
    ];
    for (name, Offenders { count, row, text }) in offenders {
        report.set_item(name, (count, row, text))?;
    }
    Ok(report.unbind())
}
