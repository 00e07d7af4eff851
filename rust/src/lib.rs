//! The native kernel of `delta_variant`: Variant bytes, Arrow columns and one Parquet file.

pub mod bounds;
pub mod data_file;
pub mod error;
pub mod infer;
pub mod json;
pub mod parquet;
pub mod shred;
pub mod value;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
