//! The native kernel of `delta_variant`: Variant bytes, Arrow columns and one Parquet file.

#![deny(unsafe_code)]

pub mod bounds;
pub mod check;
pub mod data_file;
pub mod deletion_vector;
pub mod error;
pub mod functions;
pub mod infer;
pub mod json;
pub mod legacy;
pub mod panics;
pub mod parquet;
pub mod python;
pub mod scalars;
pub mod shred;
pub mod value;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<python::files::PyBatches>()?;
    module.add_class::<python::files::PyDataFile>()?;
    module.add_class::<python::files::PyDataFileWriter>()?;
    module.add_class::<python::files::PyTableColumns>()?;
    module.add_class::<python::functions::PyMergedSchema>()?;
    module.add_class::<python::lines::PyLineSplitter>()?;
    module.add_class::<python::lines::PyPositions>()?;
    module.add_class::<python::reports::PyColumnCheck>()?;
    module.add_class::<python::reports::PyInvalidValue>()?;
    module.add_class::<python::reports::PyLeafReport>()?;
    module.add_class::<python::reports::PyPathBound>()?;
    module.add_class::<python::reports::PyRowViolation>()?;
    module.add_class::<python::reports::PySchemaViolation>()?;
    module.add_class::<python::reports::PyShreddedPath>()?;
    module.add_class::<python::reports::PyStatisticsEntry>()?;
    module.add_function(wrap_pyfunction!(python::check::py_describe_bound, module)?)?;
    module.add_function(wrap_pyfunction!(python::from_objects::canonical, module)?)?;
    module.add_function(wrap_pyfunction!(python::from_objects::from_python, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::are_valid, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::array_lengths, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::change_path, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::contains_variants, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::delete_paths, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::explode_variants, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::matches_of, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::object_keys, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::schema_of_variants, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::sort_keys, module)?)?;
    module.add_function(wrap_pyfunction!(python::functions::strip_nulls, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::variants_of, module)?)?;
    module.add_function(wrap_pyfunction!(python::objects::to_python, module)?)?;
    module.add_function(wrap_pyfunction!(python::objects::to_python_list, module)?)?;
    module.add_function(wrap_pyfunction!(python::deletion_vectors::add_deleted_rows, module)?)?;
    module.add_function(wrap_pyfunction!(python::deletion_vectors::subtract_deleted_rows, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::bound_column, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::check_shredding_schema, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::apply_function, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::date_part, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::legacy_column, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::filter_rows, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::replace_rows, module)?)?;
    module.add_function(wrap_pyfunction!(python::inference::infer, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::instant_of, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::is_time_zone, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::json_leaves, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::parse_json, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::path_key, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::remove_path, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::set_path, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::shred, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::shred_legacy, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::split_variant, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::to_json, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::unshred_array, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::unshred_legacy, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::validate, module)?)?;
    module.add_function(wrap_pyfunction!(python::values::variant_get, module)?)?;
    module.add("MAX_LEAVES", infer::MAX_LEAVES)?;
    module.add("MAX_DEPTH", infer::MAX_DEPTH)?;
    module.add("END_BYTES", parquet::read::END_BYTES)?;
    Ok(())
}
