//! The native kernel of `delta_variant`: Variant bytes, Arrow columns and one Parquet file.

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
