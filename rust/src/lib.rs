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

/// The module `delta_variant._native`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::python::check::py_describe_bound;
    #[pymodule_export]
    use crate::python::deletion_vectors::{add_deleted_rows, subtract_deleted_rows};
    #[pymodule_export]
    use crate::python::files::{PyBatches, PyDataFile, PyDataFileWriter, PyTableColumns, annotate_variants};
    #[pymodule_export]
    use crate::python::from_objects::{canonical, from_python};
    #[pymodule_export]
    use crate::python::functions::{
        PyMergedSchema, are_valid, array_lengths, change_path, contains_variants, delete_paths,
        explode_variants, matches_of, object_keys, schema_of_variants, sort_keys, strip_nulls,
    };
    #[pymodule_export]
    use crate::python::inference::infer;
    #[pymodule_export]
    use crate::python::lines::{PyLineSplitter, PyPositions};
    #[pymodule_export]
    use crate::python::objects::{to_python, to_python_list};
    #[pymodule_export]
    use crate::python::reports::{
        PyColumnCheck, PyInvalidValue, PyLeafReport, PyPathBound, PyRowViolation, PySchemaViolation,
        PyShreddedPath, PyStatisticsEntry,
    };
    #[pymodule_export]
    use crate::python::values::{
        apply_function, bound_column, check_shredding_schema, date_part, filter_rows, instant_of,
        is_time_zone, json_leaves, legacy_column, parse_json, remove_path, replace_rows, set_path, shred,
        shred_legacy, split_variant, to_json, unshred_array, unshred_legacy, validate, variant_get,
        variants_of,
    };

    #[pymodule_export]
    const MAX_LEAVES: usize = crate::infer::MAX_LEAVES;
    #[pymodule_export]
    const MAX_DEPTH: usize = crate::infer::MAX_DEPTH;
    #[pymodule_export]
    const END_BYTES: u64 = crate::parquet::read::END_BYTES;
}
