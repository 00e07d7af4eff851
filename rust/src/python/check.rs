//! What is wrong in a file or in statistics, as Python sees it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::check::{BoundReport, ColumnCheck, Offenders, PathCheck, describe_bound};

/// Read the bytes of a statistics entry: whether the value stands first, what follows, and the bounds as (path
/// key, type, scale, JSON text), `None` where the Variant is no object.
#[pyfunction]
#[pyo3(name = "describe_bound")]
pub fn py_describe_bound(bytes: &[u8]) -> PyResult<(bool, Vec<u8>, Option<Vec<PyBound>>)> {
    let BoundReport { is_value_first, rest, bounds } = describe_bound(bytes)?;
    let bounds = bounds.map(|bounds| {
        bounds.into_iter().map(|bound| (bound.key, bound.type_name, bound.scale, bound.text)).collect()
    });
    Ok((is_value_first, rest, bounds))
}

type PyBound = (String, &'static str, Option<u8>, String);

pub type PyColumnCheck<'py> = (u64, Bound<'py, PyList>, Bound<'py, PyList>);

/// How many Variants are not SQL NULL; the rules that rows break, as (rule, path, row, count, message), and a dictionary for each path.
pub fn column_report<'py>(py: Python<'py>, check: ColumnCheck) -> PyResult<PyColumnCheck<'py>> {
    let variants = check.variants;
    let violations = PyList::empty(py);
    for each in check.violations.into_list() {
        violations.append((each.rule, each.path, each.row, each.count, each.message))?;
    }
    let paths = PyList::empty(py);
    for path in &check.paths {
        paths.append(path_report(py, path)?)?;
    }
    Ok((variants, violations, paths))
}

fn path_report<'py>(py: Python<'py>, path: &PathCheck) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    report.set_item("present", path.present)?;
    report.set_item("min_attained", path.min_attained)?;
    report.set_item("max_attained", path.max_attained)?;
    let faults = [
        ("nulls", &path.nulls),
        ("nans", &path.nans),
        ("others", &path.others),
        ("below", &path.below),
        ("above", &path.above),
    ];
    for (name, Offenders { count, row, text }) in faults {
        report.set_item(name, (count, row, text))?;
    }
    Ok(report)
}
