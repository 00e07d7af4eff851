//! Write data files batch by batch, and read them by column.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::{Array, RecordBatch};
use arrow_pyarrow::{IntoPyArrow, PyArrowType};
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use parquet::basic::{Compression, GzipLevel, LogicalType, ZstdLevel};
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::Type;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::ahead::ReadAhead;
use super::arrays::{PyArray, PyBatch, imported};
use super::check::column_report;
use super::reports::{PyColumnCheck, PyInvalidValue, PyLeafReport, PySchemaViolation, PyShreddedPath};
use super::threads::install;
use super::values::{PyStep, conflict_option, numeric_option, parse_options, steps, time_zone};
use super::{callback_error, choice, run};
use crate::bounds::{BoundsLimit, ColumnBounds, LeafBounds, PathReport, Step, VariantBounds, encode_bounds};
use crate::check::{PathCheck, check_column, check_schema};
use crate::data_file::conditions::{Condition, Operator, Test};
use crate::data_file::read::{DataFileReader, Found, LegacyLayout, Projection, What};
use crate::data_file::residual_rows::is_separated;
use crate::data_file::stats::file_bounds;
use crate::data_file::text::with_views;
use crate::data_file::units::{Input, UnitBounds, page_units, row_group_units};
use crate::data_file::write::{DataFileWriter, Encoding, OnInvalid, WriteError};
use crate::deletion_vector;
use crate::error::{Error, Result};
use crate::parquet::footer_check::check_footer;
use crate::parquet::inspect::{FileReport, inspect};
use crate::parquet::read::{FileToOpen, ParquetFile, RangeReader, Scan, Source};
use crate::parquet::view::{Content, NoView, ViewColumn};
use crate::parquet::write::{WriteOptions, null_count};
use crate::parquet::{PageVersion, TableColumns};
use crate::shred::{Numeric, ShreddingSchema};
use crate::value::cast::Casting;
use crate::value::path::Step as PathStep;

type FooterRow = (Vec<String>, usize, Option<usize>, &'static str, String, String);
type Sink = Box<dyn Write + Send + Sync>;

/// A local path, or a Python object with the required methods.
#[derive(FromPyObject)]
enum PathOrObject {
    Path(PathBuf),
    Object(Py<PyAny>),
}

/// Passes bytes to a Python object's `write`.
struct ObjectSink(Py<PyAny>);

impl Write for ObjectSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Python::attach(|py| self.0.call_method1(py, "write", (PyBytes::new(py, bytes),)))
            .map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The bytes of a file, or where they are.
#[derive(FromPyObject)]
enum PySource {
    Bytes(PyBackedBytes),
    Path(PathBuf),
    Object(Py<PyAny>),
}

/// The encoding of a column: `"json"` or `"variant"` with a shredding schema, or a list of the encodings of the
/// fields of a struct.
#[derive(FromPyObject)]
enum PyEncoding {
    Shredded((String, PyArrowType<Field>)),
    Struct(Vec<Option<PyEncoding>>),
}

/// Writes one Parquet file.
#[pyclass(name = "DataFileWriter", module = "delta_variant._native", frozen)]
pub struct PyDataFileWriter {
    writer: Mutex<Option<DataFileWriter<Sink>>>,
}

#[pymethods]
impl PyDataFileWriter {
    #[new]
    #[pyo3(signature = (sink, schema, encodings, *, numeric, floats, duplicate_keys, on_invalid, annotate, compression, page_version, row_group_bytes))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments of Python.
    fn new(
        sink: PathOrObject,
        schema: PyArrowType<Schema>,
        encodings: Vec<Option<PyEncoding>>,
        numeric: &str,
        floats: &str,
        duplicate_keys: &str,
        on_invalid: &str,
        annotate: bool,
        compression: &str,
        page_version: u8,
        row_group_bytes: usize,
    ) -> PyResult<Self> {
        let choices = [("error", OnInvalid::Error), ("reject", OnInvalid::Reject), ("null", OnInvalid::Null)];
        let on_invalid = choice(on_invalid, "on_invalid", &choices)?;
        let parse = parse_options(floats, duplicate_keys)?;
        let numeric = numeric_option(numeric)?;
        let encodings =
            encodings.into_iter().map(|one| encoding(one, numeric)).collect::<Result<Vec<_>>>()?;
        let compression = compression_option(compression)?;
        let page_version = if page_version == 2 { PageVersion::V2 } else { PageVersion::V1 };
        let options =
            WriteOptions { annotate, compression, page_version, row_group_bytes, ..WriteOptions::default() };
        let sink: Sink = match sink {
            PathOrObject::Path(path) => Box::new(BufWriter::with_capacity(1 << 20, create(&path)?)),
            PathOrObject::Object(object) => Box::new(BufWriter::with_capacity(8 << 20, ObjectSink(object))),
        };
        let writer = DataFileWriter::new(sink, &schema.0, encodings, parse, on_invalid, options)?;
        Ok(PyDataFileWriter { writer: Mutex::new(Some(writer)) })
    }

    /// Add a batch, and return the values that are not valid JSON.
    ///
    /// With `on_invalid="error"`, writing stops at the first of them and the caller must discard the file.
    fn write(&self, py: Python<'_>, batch: PyBatch) -> PyResult<Vec<PyInvalidValue>> {
        let invalid = self.run(py, |writer| match writer.write(&batch.0) {
            Ok(invalid) => Ok(invalid),
            Err(WriteError::InvalidValue(invalid)) => Ok(vec![invalid]),
            Err(WriteError::Other(error)) => Err(error),
        })?;
        Ok(invalid.into_iter().map(PyInvalidValue::from).collect())
    }

    /// Append a row group of another file without encoding it again, or return `False`: the caller then reads and
    /// writes its rows. The columns at the ascending positions `replaced` are left out, for `replace`.
    #[pyo3(signature = (file, row_group, replaced = vec![]))]
    fn copy(
        &self,
        py: Python<'_>,
        file: PyRef<'_, PyDataFile>,
        row_group: usize,
        replaced: Vec<usize>,
    ) -> PyResult<bool> {
        let file = file.file.clone();
        self.run(py, |writer| writer.copy(&file, row_group, &replaced))
    }

    /// Add the next values of the columns that the last copy left out, in batches of these columns.
    fn replace(&self, py: Python<'_>, batch: PyBatch) -> PyResult<()> {
        self.run(py, |writer| writer.replace(&batch.0))
    }

    /// Append the rows of a row group of another file, decoded and encoded again, or return `False`: the caller then
    /// reads and writes them. They are written together with the next ones, or by `flush`.
    fn transfer(&self, py: Python<'_>, file: PyRef<'_, PyDataFile>, row_group: usize) -> PyResult<bool> {
        let file = file.file.clone();
        self.run(py, |writer| writer.transfer(&file, row_group))
    }

    /// Write the rows that were transferred last.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, DataFileWriter::flush)
    }

    /// Separate the residual rows of all following batches, or write them to the file again.
    fn separate(&self, py: Python<'_>, is_separating: bool) -> PyResult<()> {
        self.run(py, |writer| writer.separate(is_separating))
    }

    /// Take the rows that were separated, as they were in the batches, or none while they are fewer than `least`.
    fn take_residual_rows<'py>(&self, py: Python<'py>, least: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let batches = self.run(py, |writer| writer.take_residual_rows(least))?;
        batches.into_iter().map(|batch| batch.into_pyarrow(py)).collect()
    }

    /// The bytes written, plus an estimate for the row group in progress.
    #[getter]
    fn bytes_written(&self) -> PyResult<usize> {
        Ok(self.lock()?.as_ref().ok_or_else(closed)?.bytes_written())
    }

    /// Finish the file, and report its size and the bounds of each column.
    fn close<'py>(
        &self,
        py: Python<'py>,
        max_stats_paths: usize,
        max_stats_bytes: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let writer = self.lock()?.take().ok_or_else(closed)?;
        let (summary, bounds) = run(py, || writer.close())?;
        let report = PyDict::new(py);
        report.set_item("rows", summary.rows)?;
        report.set_item("bytes", summary.bytes)?;
        let limit = BoundsLimit { paths: max_stats_paths, bytes: max_stats_bytes };
        report.set_item("columns", columns_report(py, &bounds, limit)?)?;
        Ok(report)
    }
}

impl PyDataFileWriter {
    /// Run `work` with the open writer on the kernel's threads.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut DataFileWriter<Sink>) -> Result<T> + Send,
    ) -> PyResult<T> {
        run(py, || work(self.lock()?.as_mut().ok_or_else(closed)?))
    }

    fn lock(&self) -> Result<MutexGuard<'_, Option<DataFileWriter<Sink>>>> {
        self.writer.lock().map_err(|_| closed())
    }
}

fn create(path: &PathBuf) -> Result<File> {
    File::options().write(true).create_new(true).open(path).map_err(Error::from)
}

fn closed() -> Error {
    Error::data_file("the file is closed, or was broken by an error")
}

fn encoding(encoding: Option<PyEncoding>, numeric: Numeric) -> Result<Encoding> {
    let (kind, schema) = match encoding {
        None => return Ok(Encoding::Plain),
        Some(PyEncoding::Struct(fields)) => {
            return Ok(Encoding::Struct(
                fields.into_iter().map(|field| self::encoding(field, numeric)).collect::<Result<_>>()?,
            ));
        }
        Some(PyEncoding::Shredded(shredded)) => shredded,
    };
    let schema = ShreddingSchema::from_arrow(&schema.0)?;
    Ok(match choice(&kind, "an encoding", &[("json", true), ("variant", false)])? {
        true => Encoding::Json(schema),
        false => Encoding::Variant(schema, numeric),
    })
}

fn compression_option(name: &str) -> Result<Compression> {
    let choices = [
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("lz4", Compression::LZ4_RAW),
        ("none", Compression::UNCOMPRESSED),
    ];
    choice(name, "compression", &choices)
}

fn columns_report<'py>(
    py: Python<'py>,
    bounds: &[ColumnBounds],
    limit: BoundsLimit,
) -> PyResult<Bound<'py, PyList>> {
    let columns = PyList::empty(py);
    for bounds in bounds {
        columns.append(match bounds.as_variant() {
            None => plain_report(py, bounds, limit)?.into_any(),
            Some(variant) => variant_report(py, variant, limit)?.into_any(),
        })?;
    }
    Ok(columns)
}

/// The leaves of a column. Their bounds are arrays of one row, or bytes for a Variant.
fn plain_report<'py>(
    py: Python<'py>,
    bounds: &ColumnBounds,
    limit: BoundsLimit,
) -> PyResult<Bound<'py, PyList>> {
    let leaves = PyList::empty(py);
    for leaf in bounds.leaves()? {
        let (min, max) = match leaf.bounds {
            LeafBounds::Ordinary(None) => (None, None),
            LeafBounds::Ordinary(Some((min, max))) => {
                (Some(min.to_data().into_pyarrow(py)?), Some(max.to_data().into_pyarrow(py)?))
            }
            LeafBounds::Variant(variant) => match encode_bounds(&variant.paths(), limit) {
                Some((min, max)) => {
                    (Some(PyBytes::new(py, &min).into_any()), Some(PyBytes::new(py, &max).into_any()))
                }
                None => (None, None),
            },
        };
        let (min, max) = (min.map(Bound::unbind), max.map(Bound::unbind));
        leaves.append(Py::new(py, PyLeafReport { path: leaf.path, nulls: leaf.nulls, min, max })?)?;
    }
    Ok(leaves)
}

fn variant_report<'py>(
    py: Python<'py>,
    bounds: &VariantBounds,
    limit: BoundsLimit,
) -> PyResult<Bound<'py, PyDict>> {
    let paths = bounds.paths();
    let report = PyDict::new(py);
    report.set_item("nulls", bounds.sql_nulls())?;
    let encoded =
        encode_bounds(&paths, limit).map(|(min, max)| (PyBytes::new(py, &min), PyBytes::new(py, &max)));
    report.set_item("bounds", encoded)?;
    let list = PyList::empty(py);
    for path in &paths {
        list.append(path_report(py, path)?)?;
    }
    report.set_item("paths", list)?;
    Ok(report)
}

fn path_report(py: Python<'_>, path: &PathReport) -> PyResult<Py<PyShreddedPath>> {
    let steps = path.path.iter().map(|step| match step {
        Step::Field(name) => Some(name.clone()),
        Step::Element => None,
    });
    let data_type = PyArrowType(path.leaf_type.data_type()).into_pyobject(py)?.into_any().unbind();
    let (typed, values) = (path.typed, path.values);
    Py::new(py, PyShreddedPath { path: steps.collect(), r#type: data_type, typed, values })
}

/// Return a footer and the bytes after it, with the groups of Variants annotated as `VARIANT(1)`.
#[pyfunction]
pub fn annotate_variants(py: Python<'_>, footer: &[u8]) -> PyResult<Cow<'static, [u8]>> {
    Ok(py.detach(|| crate::parquet::annotate_variants(footer))?.into())
}

/// Reads byte ranges through a Python object with `size()` and `read(starts, ends)`.
struct ObjectRanges(Py<PyAny>);

impl RangeReader for ObjectRanges {
    fn length(&self) -> Result<u64> {
        Python::attach(|py| self.0.call_method0(py, "size")?.extract(py)).map_err(callback_error)
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
        let ends: Vec<u64> = ranges.iter().map(|range| range.end).collect();
        let read: Vec<Vec<u8>> =
            Python::attach(|py| self.0.call_method1(py, "read", (starts, ends))?.extract(py))
                .map_err(callback_error)?;
        Ok(read.into_iter().map(Bytes::from).collect())
    }
}

/// One open Parquet file.
#[pyclass(name = "DataFile", module = "delta_variant._native", frozen)]
pub struct PyDataFile {
    file: Arc<ParquetFile>,
    /// The name in errors of `schema`.
    name: String,
}

/// The columns of a table, which name the columns of its files.
#[pyclass(name = "TableColumns", module = "delta_variant._native", frozen)]
pub struct PyTableColumns(Arc<TableColumns>);

#[pymethods]
impl PyTableColumns {
    #[new]
    fn new(schema: PyArrowType<Schema>, by_id: bool) -> Self {
        PyTableColumns(Arc::new(TableColumns { fields: schema.0.fields, by_id }))
    }
}

/// Returns the kind of a projection for a path and its casts.
type MakeWhat = fn(Vec<PathStep>, Casting) -> What;

/// A column of a read: the path to it, what of it, and the result's field.
///
/// The second part is `None` for the column itself, or "path", "json", "position" or "stored", with steps, whether casts are
/// strict, and their time zone.
type PyProjection = (Vec<String>, Option<(String, Vec<PyStep>, bool, String)>, PyArrowType<Field>);

/// The position of a projection, and "is not null", or a comparison with any of some values of its type.
type PyCondition = (usize, String, Option<PyArray>);

fn condition((projection, test, operands): PyCondition) -> PyResult<Condition> {
    let comparisons = [
        ("=", Operator::Equal),
        ("<>", Operator::NotEqual),
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ];
    let test = match operands {
        Some(operands) => Test::any(choice(&test, "a condition", &comparisons)?, imported(operands.0)?),
        None => {
            choice(&test, "a condition", &[("is not null", ())])?;
            Test::IsNotNull
        }
    };
    Ok(Condition { projection, test })
}

/// A column of a view: its name in the file, whether it is a Variant, the path of a single value in it, and the field of
/// the view.
type PyViewColumn = (String, bool, Option<Vec<String>>, PyArrowType<Field>);

fn view_columns(columns: Vec<PyViewColumn>) -> Vec<ViewColumn> {
    let column = |(stored, is_variant, path, field): PyViewColumn| {
        let content = match (is_variant, path) {
            (false, _) => Content::Plain,
            (true, None) => Content::Variant,
            (true, Some(path)) => Content::Path(path),
        };
        ViewColumn { stored, field: field.0, content }
    };
    columns.into_iter().map(column).collect()
}

/// A range of rows, its end excluded.
type PyRows = (u64, u64);

/// A column of the file, the path below it where it is a Variant, and the type that it is cast to.
type PyInput = (Vec<String>, Option<Vec<PyStep>>, PyArrowType<DataType>);

fn input((column, path, target): PyInput) -> Input {
    Input { column, path: path.map(steps), target: target.0 }
}

#[pymethods]
impl PyDataFile {
    /// The columns get the names that the table with `columns` has for them.
    #[new]
    #[pyo3(signature = (source, name, columns=None))]
    fn new(
        py: Python<'_>,
        source: PySource,
        name: String,
        columns: Option<PyRef<'_, PyTableColumns>>,
    ) -> PyResult<Self> {
        let source = match source {
            PySource::Bytes(bytes) => Source::Bytes(Bytes::from_owner(bytes)),
            PySource::Path(path) => Source::Path(path),
            PySource::Object(object) => Source::Ranges(Arc::new(ObjectRanges(object))),
        };
        let columns = columns.map(|columns| columns.0.clone());
        // The thread of the caller reads, because the kernel has few threads, and to wake one takes as long as to open a
        // small file.
        let file = py.detach(|| FileToOpen::read(source)?.open(columns.as_deref()))?;
        Ok(PyDataFile { file: Arc::new(file), name })
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.file.num_rows()
    }

    /// Whether this library wrote the file.
    #[getter]
    fn is_own(&self) -> bool {
        self.file.is_own()
    }

    /// The columns whose pages another file cannot have as they are; has Variants, too.
    #[getter]
    fn converted_columns(&self) -> Vec<String> {
        self.file.converted_columns().iter().map(|field| field.name().clone()).collect()
    }

    /// Whether all column chunks have this compression.
    fn has_compression(&self, compression: &str) -> PyResult<bool> {
        Ok(self.file.has_compression(compression_option(compression)?))
    }

    /// The number of rows and the encoded bytes of each row group.
    #[getter]
    fn row_groups(&self) -> Vec<(u64, u64)> {
        let size = |group: &RowGroupMetaData| {
            (group.num_rows().unsigned_abs(), group.compressed_size().unsigned_abs())
        };
        self.file.row_groups().iter().map(size).collect()
    }

    /// Return the end of the data and the footer of a view of some columns, or why the file has no such view.
    fn view<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<PyViewColumn>,
        row_groups: Option<Vec<usize>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = view_columns(columns);
        let row_groups = row_groups.unwrap_or_else(|| (0..self.file.row_groups().len()).collect());
        match py.detach(|| self.file.view(&columns, &row_groups))? {
            Ok(view) => Ok((view.data_end, PyBytes::new(py, &view.footer)).into_pyobject(py)?.into_any()),
            Err(NoView(reason)) => Ok(reason.into_pyobject(py)?.into_any()),
        }
    }

    /// Write a file of some columns without decoding their values, or return why it is not possible.
    fn write_view(
        &self,
        py: Python<'_>,
        columns: Vec<PyViewColumn>,
        path: PathBuf,
    ) -> PyResult<Option<String>> {
        let columns = view_columns(columns);
        let sink = BufWriter::with_capacity(1 << 20, create(&path)?);
        Ok(run(py, || self.file.write_view(&columns, sink))?.err().map(|NoView(reason)| reason))
    }

    /// The paths of the leaf columns, in order, their steps joined by dots.
    #[getter]
    fn leaf_paths(&self) -> Vec<String> {
        let columns = self.file.metadata().file_metadata().schema_descr().columns();
        columns.iter().map(|column| column.path().string()).collect()
    }

    /// The nulls of a leaf column in each row group, `None` if unknown, and the values with nulls.
    fn null_counts(&self, leaf: usize) -> Vec<(Option<u64>, u64)> {
        let chunks = self.file.row_groups().iter().filter_map(|group| group.columns().get(leaf));
        chunks.map(|chunk| (null_count(chunk), chunk.num_values().unsigned_abs())).collect()
    }

    /// Whether the rows are as a writer leaves them that separates residual rows.
    #[getter]
    fn is_separated(&self) -> bool {
        is_separated(&self.file)
    }

    /// Whether another file has the same columns, with the same names, types and annotations.
    fn has_schema_of(&self, other: PyRef<'_, PyDataFile>) -> bool {
        self.file.schema() == other.file.schema()
    }

    /// Raise an error if several columns of the file match one of the table.
    fn check_unambiguous(&self) -> PyResult<()> {
        Ok(self.file.check_unambiguous(&[]).map_err(|error| error.in_file(&self.name))?)
    }

    /// The Arrow schema of the file, Variant columns as their groups.
    #[getter]
    fn schema(&self) -> PyResult<PyArrowType<Schema>> {
        let schema = self.file.arrow_schema();
        check_columns(schema.fields()).map_err(|error| error.in_file(&self.name))?;
        Ok(PyArrowType(schema.as_ref().clone()))
    }

    /// Return the contents of the footer.
    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        footer_report(py, &inspect(&self.file))
    }

    /// Compute the bounds of the columns from the data; `variants` are the paths of the Variant columns.
    fn bounds<'py>(
        &self,
        py: Python<'py>,
        variants: Vec<Vec<String>>,
        max_stats_paths: usize,
        max_stats_bytes: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let bounds = run(py, || file_bounds(&self.file, &variants))?;
        columns_report(py, &bounds, BoundsLimit { paths: max_stats_paths, bytes: max_stats_bytes })
    }

    /// The bytes read of the file so far, its footer included.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.file.bytes_read()
    }

    /// Return the statistics of inputs by row group, or by page of `row_groups`.
    ///
    /// The ranges as (start, end), and for each input (min, max, all_null, no_null), a row for each range.
    #[pyo3(signature = (inputs, row_groups=None))]
    fn units(
        &self,
        py: Python<'_>,
        inputs: Vec<PyInput>,
        row_groups: Option<Vec<usize>>,
    ) -> PyResult<(Vec<PyRows>, Vec<[PyArray; 4]>)> {
        let inputs: Vec<Input> = inputs.into_iter().map(input).collect();
        // This takes less time than to wait for a thread of the kernel.
        let units = py.detach(|| match &row_groups {
            None => row_group_units(&self.file, &inputs),
            Some(row_groups) => page_units(&self.file, &inputs, row_groups),
        })?;
        let rows = units.rows.into_iter().map(|rows| (rows.start, rows.end)).collect();
        let bounds = units.inputs.into_iter().map(|bounds| {
            let UnitBounds { min, max, all_null, no_null } = bounds;
            [min.to_data(), max.to_data(), all_null.to_data(), no_null.to_data()].map(PyArrowType)
        });
        Ok((rows, bounds.collect()))
    }

    /// Check the schema of the Variant column at a path.
    fn check_schema(&self, column: Vec<String>) -> Vec<PySchemaViolation> {
        let Some(group) = find_group(self.file.schema(), &column) else { return Vec::new() };
        check_schema(group).into_iter().map(PySchemaViolation::from).collect()
    }

    /// Compare the statistics of row groups and pages with the values: the path of the leaf, row group, page, what
    /// differs, and both values.
    fn check_footer(&self, py: Python<'_>) -> PyResult<Vec<FooterRow>> {
        let violations = run(py, || check_footer(&self.file))?.into_iter();
        Ok(violations.map(|v| (v.path, v.row_group, v.page, v.what, v.stated, v.found)).collect())
    }

    /// Check the rows of the Variant column at a path.
    ///
    /// `paths` are the path keys and names of the bounds in `least` and `greatest`.
    #[pyo3(signature = (column, paths, least, greatest, deleted=None))]
    fn check_rows(
        &self,
        py: Python<'_>,
        column: Vec<String>,
        paths: Vec<(String, Vec<String>)>,
        least: Option<&[u8]>,
        greatest: Option<&[u8]>,
        deleted: Option<&[u8]>,
    ) -> PyResult<PyColumnCheck> {
        let deleted = deleted.map(deletion_vector::rows).transpose()?;
        let paths = paths
            .into_iter()
            .map(|(key, names)| PathCheck::new(&key, names, least, greatest))
            .collect::<Result<Vec<_>>>()?;
        let check = run(py, || check_column(&self.file, &column, &paths, deleted.as_ref()))?;
        column_report(py, check)
    }

    /// Return an iterator of record batches of the projections, without the rows of a deletion vector, for all rows or
    /// for the ascending and disjoint ranges `rows`.
    ///
    /// `legacy` means that whole Variants are in the legacy layout: "strict" enforces the draft's rules, "compat"
    /// follows its algorithm. Rows that do not meet all `conditions` may be left out. With `is_count`, only the number
    /// of rows is needed: where the conditions decide about each row, batches have no columns.
    #[pyo3(signature = (projections, rows, on_conflict, deleted=None, legacy=None, conditions=None, is_count=false))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments of Python.
    fn read<'py>(
        &self,
        py: Python<'py>,
        projections: Vec<PyProjection>,
        rows: Option<Vec<PyRows>>,
        on_conflict: &str,
        deleted: Option<&[u8]>,
        legacy: Option<&str>,
        conditions: Option<Vec<PyCondition>>,
        is_count: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let on_conflict = conflict_option(on_conflict)?;
        let deleted = py.detach(|| deleted.map(deletion_vector::rows).transpose())?;
        let projections = projections.into_iter().map(projection).collect::<Result<Vec<_>>>()?;
        let rows: Option<Vec<Range<u64>>> =
            rows.map(|rows| rows.into_iter().map(|(start, end)| start..end).collect());
        let file = self.file.clone();
        let fields: Vec<Field> = projections.iter().map(|each| each.field.clone()).collect();
        let mut reader = DataFileReader::new(file, projections, rows.as_deref(), on_conflict, deleted)?
            .with_conditions(conditions.into_iter().flatten().map(condition).collect::<PyResult<_>>()?);
        if let Some(word) = legacy {
            let compat = choice(word, "legacy", &[("strict", false), ("compat", true)])?;
            reader = reader.with_legacy_layout(LegacyLayout { compat });
        }
        if is_count {
            reader = reader.counting();
        }
        let rows = ReadAhead::new(reader).map(move |found| {
            let Found { rows_read, batch } = found?;
            Ok(Found { rows_read, batch: with_views(batch, &fields)? })
        });
        Ok(PyBatches::new(rows).into_pyobject(py)?.into_any())
    }

    /// Return an iterator of record batches of leaf columns as they are stored, with the structs, lists and maps around
    /// them.
    fn read_leaves<'py>(
        &self,
        py: Python<'py>,
        leaves: Vec<usize>,
        row_groups: Vec<usize>,
        batch_size: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let scan = Scan { leaves, dictionaries: Vec::new(), row_groups, batch_size };
        let mut batches = self.file.clone().read_owned(scan);
        let batches = std::iter::from_fn(move || install(|| batches.next().transpose()).transpose())
            .map(|batch| batch.map(|batch| Found { rows_read: batch.num_rows(), batch }));
        Ok(PyBatches::new(batches).into_pyobject(py)?.into_any())
    }
}

/// Return an error for two columns of one name, of which Python would see one, and for a name that cannot cross.
fn check_columns(fields: &Fields) -> Result<()> {
    let mut names = HashSet::new();
    if let Some(field) = fields.iter().find(|field| !names.insert(field.name())) {
        let message =
            format!("cannot tell the columns named {:?} apart: the file has two of them", field.name());
        return Err(Error::data_file(message));
    }
    check_names(fields, &mut Vec::new())
}

/// Return an error for a name with a NUL, which terminates names in Arrow's C interface.
fn check_names<'f>(fields: &'f Fields, parents: &mut Vec<&'f str>) -> Result<()> {
    for field in fields {
        parents.push(field.name());
        if field.name().contains('\0') {
            let name = parents.join(".");
            let message = format!("cannot hand the column {name:?} to Arrow because its name contains a NUL");
            return Err(Error::data_file(message));
        }
        check_type(field.data_type(), parents)?;
        parents.pop();
    }
    Ok(())
}

fn check_type<'f>(data_type: &'f DataType, parents: &mut Vec<&'f str>) -> Result<()> {
    match data_type {
        DataType::Struct(fields) => check_names(fields, parents),
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            check_type(field.data_type(), parents)
        }
        _ => Ok(()),
    }
}

/// The group that a path leads to, through structs, lists (`element`) and maps (`key`, `value`).
fn find_group<'t>(parent: &'t Type, path: &[String]) -> Option<&'t Type> {
    let Some((step, rest)) = path.split_first() else { return Some(parent) };
    let fields = if parent.is_group() { parent.get_fields() } else { &[] };
    let is_nested =
        matches!(parent.get_basic_info().logical_type_ref(), Some(LogicalType::List | LogicalType::Map));
    let fields = match fields {
        [repeated] if is_nested && repeated.is_group() => repeated.get_fields(),
        fields => fields,
    };
    find_group(fields.iter().find(|field| field.name() == step)?, rest)
}

fn projection((column, what, field): PyProjection) -> Result<Projection> {
    let what = match what {
        None => What::Column,
        Some((kind, path, strict, zone)) => {
            let kinds: [(&str, MakeWhat); 4] = [
                ("path", |path, casting| What::Path { path, casting }),
                ("json", |path, casting| What::Json { path, zone: casting.zone }),
                ("position", |_, _| What::Position),
                ("stored", |_, _| What::Stored),
            ];
            choice(&kind, "a projection", &kinds)?(steps(path), Casting { strict, zone: time_zone(&zone)? })
        }
    };
    Ok(Projection { column, what, field: field.0 })
}

/// The batches of a read, as a Python iterator.
#[pyclass(name = "Batches", module = "delta_variant._native", frozen)]
pub struct PyBatches {
    batches: Mutex<Box<dyn Iterator<Item = Result<Found>> + Send>>,
    rows_read: AtomicUsize,
}

impl PyBatches {
    fn new(batches: impl Iterator<Item = Result<Found>> + Send + 'static) -> Self {
        PyBatches { batches: Mutex::new(Box::new(batches)), rows_read: AtomicUsize::new(0) }
    }
}

#[pymethods]
impl PyBatches {
    fn __iter__(batches: PyRef<'_, Self>) -> PyRef<'_, Self> {
        batches
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        // The batches are decoded on the kernel's threads, for which the thread of the caller waits.
        let found = py.detach(|| {
            let mut batches = self.batches.lock().map_err(|_| Error::data_file("an earlier read failed"))?;
            batches.next().transpose()
        })?;
        let Some(Found { rows_read, batch }) = found else { return Ok(None) };
        check_names(batch.schema_ref().fields(), &mut Vec::new())?;
        self.rows_read.fetch_add(rows_read, Relaxed);
        Ok(Some(PyArrowType(batch)))
    }

    /// The number of rows that were read for the batches so far, also those that do not meet the conditions.
    #[getter]
    fn rows_read(&self) -> usize {
        self.rows_read.load(Relaxed)
    }
}

fn footer_report<'py>(py: Python<'py>, report: &FileReport) -> PyResult<Bound<'py, PyDict>> {
    let footer = PyDict::new(py);
    footer.set_item("rows", report.rows)?;
    footer.set_item("bytes", report.bytes)?;
    footer.set_item("row_groups", report.row_groups)?;
    footer.set_item("created_by", &report.created_by)?;
    footer.set_item("keys", &report.keys)?;
    let variants = PyList::empty(py);
    for group in &report.variants {
        variants.append((&group.path, group.specification_version))?;
    }
    footer.set_item("variants", variants)?;
    let leaves = PyList::empty(py);
    for leaf in &report.leaves {
        let entry = PyDict::new(py);
        entry.set_item("path", &leaf.path)?;
        entry.set_item("logical_type", &leaf.logical_type)?;
        entry.set_item("num_values", leaf.num_values)?;
        entry.set_item("null_count", leaf.null_count)?;
        entry.set_item("compressed_bytes", leaf.compressed_bytes)?;
        entry.set_item("is_variant_null", leaf.is_variant_null)?;
        leaves.append(entry)?;
    }
    footer.set_item("leaves", leaves)?;
    Ok(footer)
}
