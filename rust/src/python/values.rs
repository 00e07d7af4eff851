//! Functions over arrays of Variants.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;

use super::arrays::{PyArray, PyBatch, imported, row_numbers, run_array};
use super::reports::PyInvalidValue;
use super::{choice, run};
use crate::bounds;
use crate::data_file::filter;
use crate::data_file::write::InvalidValue;
use crate::error::{Error, Result, each_row};
use crate::functions::{ROWS_PER_THREAD, in_ranges};
use crate::json::leaves;
use crate::json::parse::{JsonShredder, ParseOptions, parse_rows};
use crate::legacy::{self, layout::TYPED_VALUE};
use crate::scalars::{self, Arguments};
use crate::shred::unshred::unshred;
use crate::shred::{Numeric, OnConflict, ShreddingSchema, extract, print, variants};
use crate::value::cast::Casting;
use crate::value::moment;
use crate::value::path::Step;
use crate::value::{self, Metadata, Zone, modify, nested};

pub fn parse_options(floats: &str, duplicate_keys: &str) -> Result<ParseOptions> {
    Ok(ParseOptions {
        doubles: choice(floats, "floats", &[("decimal", false), ("double", true)])?,
        last_duplicate: choice(duplicate_keys, "duplicate_keys", &[("error", false), ("last", true)])?,
    })
}

pub fn conflict_option(on_conflict: &str) -> Result<OnConflict> {
    choice(on_conflict, "on_conflict", &[("error", OnConflict::Error), ("typed", OnConflict::Typed)])
}

pub fn numeric_option(numeric: &str) -> Result<Numeric> {
    choice(numeric, "numeric", &[("value", Numeric::Value), ("strict", Numeric::Strict)])
}

pub fn time_zone(name: &str) -> Result<Zone> {
    Zone::parse(name).ok_or_else(|| Error::unsupported(format!("unknown time zone {name:?}")))
}

/// Return whether Spark and this library know a time zone called `name`.
#[pyfunction]
pub fn is_time_zone(name: &str) -> bool {
    Zone::parse(name).is_some()
}

/// The microseconds since the epoch of a local time in a zone; `None` beyond 64 bits.
#[pyfunction]
pub fn instant_of(local: i64, zone: &str) -> PyResult<Option<i64>> {
    Ok(time_zone(zone)?.instant(local))
}

/// A step of a path in Python: a name or an index.
#[derive(FromPyObject)]
pub enum PyStep {
    Index(usize),
    Field(String),
}

impl From<PyStep> for Step {
    fn from(step: PyStep) -> Self {
        match step {
            PyStep::Index(index) => Step::Index(index),
            PyStep::Field(name) => Step::Field(name),
        }
    }
}

pub fn steps(path: Vec<PyStep>) -> Vec<Step> {
    path.into_iter().map(Step::from).collect()
}

/// Return an array of Variants, shredded or not.
pub fn group(array: ArrayData) -> Result<StructArray> {
    let array = imported(array)?;
    array.as_struct_opt().cloned().ok_or_else(|| {
        Error::unsupported(format!(
            "expected a Variant array, a struct of metadata and value, got {}",
            array.data_type()
        ))
    })
}

/// Return Variants that are not shredded.
pub fn plain(variants: PyArray) -> Result<StructArray> {
    unshred(&group(variants.0)?, OnConflict::Error)
}

pub fn concat<A: Array>(parts: &[A]) -> Result<ArrayRef> {
    let parts: Vec<&dyn Array> = parts.iter().map(|part| part as &dyn Array).collect();
    Ok(arrow_select::concat::concat(&parts)?)
}

/// Parse JSON text into `struct<metadata: binary, value: binary>`, null where it is not valid.
#[pyfunction]
pub fn parse_json(
    py: Python<'_>,
    text: PyArray,
    floats: &str,
    duplicate_keys: &str,
) -> PyResult<(PyArray, Vec<PyInvalidValue>)> {
    let options = parse_options(floats, duplicate_keys)?;
    run(py, || {
        let text = imported(text.0)?;
        let parts = in_ranges(text.len(), |rows| parse_part(&text, rows, options))?;
        let (variants, invalid): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok::<_, Error>((PyArrowType(concat(&variants)?.to_data()), invalid.concat()))
    })
}

fn parse_part(
    text: &ArrayRef,
    rows: Range<usize>,
    options: ParseOptions,
) -> Result<(StructArray, Vec<PyInvalidValue>)> {
    let part = text.slice(rows.start, rows.len());
    let mut shredder = JsonShredder::new(ShreddingSchema::Untyped, options);
    let mut invalid = Vec::new();
    parse_rows(&mut shredder, &part, |row, error| {
        invalid.push(InvalidValue::of(rows.start + row, 0, *error).into());
    })?;
    Ok((unshred(&shredder.take()?, OnConflict::Error)?, invalid))
}

/// Return Variants, shredded or not, as JSON text with timestamps as local times of a zone.
#[pyfunction]
pub fn to_json(py: Python<'_>, variants: PyArray, on_conflict: &str, zone: &str) -> PyResult<PyArray> {
    let (on_conflict, zone) = (conflict_option(on_conflict)?, time_zone(zone)?);
    run_array(py, || print::to_json(&group(variants.0)?, on_conflict, &zone))
}

/// Return the values at a path, cast to a type.
#[pyfunction]
pub fn variant_get(
    py: Python<'_>,
    variants: PyArray,
    path: Vec<PyStep>,
    target: PyArrowType<DataType>,
    strict: bool,
    zone: &str,
) -> PyResult<PyArray> {
    let casting = Casting { strict, zone: time_zone(zone)? };
    run_array(py, || {
        extract::extract(&group(variants.0)?, &steps(path), &target.0, &casting, OnConflict::Error)
    })
}

/// Return a scalar function of columns of `rows` rows, or of one row, which stands for all.
#[pyfunction]
pub fn apply_function(
    py: Python<'_>,
    name: &str,
    columns: Vec<PyArray>,
    rows: usize,
    zone: &str,
) -> PyResult<PyArray> {
    let columns = columns.into_iter().map(|column| imported(column.0)).collect::<Result<_>>()?;
    let arguments = Arguments { columns, rows, zone: time_zone(zone)? };
    run_array(py, || scalars::apply(name, &arguments))
}

/// Return a part of each date or timestamp as int32, for an instant by its local time in a zone.
#[pyfunction]
pub fn date_part(py: Python<'_>, values: PyArray, part: &str, zone: &str) -> PyResult<PyArray> {
    let (part, zone) = (choice(part, "part", moment::PARTS)?, time_zone(zone)?);
    run_array(py, || moment::parts(&imported(values.0)?, part, &zone))
}

/// Return the rows of a batch for which `mask`, which has no nulls, is true.
#[pyfunction]
pub fn filter_rows(py: Python<'_>, batch: PyBatch, mask: PyArray) -> PyResult<PyArrowType<RecordBatch>> {
    run(py, || {
        let mask = imported(mask.0)?;
        let mask = mask.as_boolean_opt().ok_or_else(|| Error::unsupported("a mask is boolean"))?;
        Ok::<_, Error>(PyArrowType(filter::filter_rows(&batch.0, mask)?))
    })
}

/// Return a column, whose rows have the ascending `numbers`, with the rows `replaced` replaced by those of `other`.
#[pyfunction]
pub fn replace_rows(
    py: Python<'_>,
    column: PyArray,
    numbers: PyArray,
    other: PyArray,
    replaced: PyArray,
) -> PyResult<PyArray> {
    let (numbers, replaced) = (row_numbers(numbers)?, row_numbers(replaced)?);
    let (column, other) = (imported(column.0)?, imported(other.0)?);
    // This takes less time than to wait for a thread of the kernel.
    let merged = py.detach(|| filter::replace_rows(&column, &numbers, &other, &replaced))?;
    Ok(PyArrowType(merged.to_data()))
}

/// Shred Variants.
#[pyfunction]
pub fn shred(
    py: Python<'_>,
    variants: PyArray,
    schema: PyArrowType<Field>,
    numeric: &str,
) -> PyResult<PyArray> {
    let numeric = numeric_option(numeric)?;
    run_array(py, || {
        let schema = ShreddingSchema::from_arrow(&schema.0)?;
        variants::shred(&plain(variants)?, schema, numeric)
    })
}

/// Turn shredded columns into Variants.
#[pyfunction(name = "unshred")]
pub fn unshred_array(py: Python<'_>, shredded: PyArray, on_conflict: &str) -> PyResult<PyArray> {
    let on_conflict = conflict_option(on_conflict)?;
    run_array(py, || unshred(&group(shredded.0)?, on_conflict))
}

/// Shred Variants into the legacy layout.
#[pyfunction]
pub fn shred_legacy(py: Python<'_>, variants: PyArray, schema: PyArrowType<Field>) -> PyResult<PyArray> {
    run_array(py, || {
        let schema = ShreddingSchema::from_arrow(&schema.0)?;
        legacy::shred(&plain(variants)?, &schema)
    })
}

/// Turn columns of the legacy layout into Variants.
#[pyfunction]
pub fn unshred_legacy(py: Python<'_>, columns: PyArray, compat: bool) -> PyResult<PyArray> {
    run_array(py, || legacy::unshred(&group(columns.0)?, compat))
}

/// Return a column with its legacy Variants as `struct<metadata, value>`, and its shredding schema if it is one
/// itself.
#[pyfunction]
pub fn legacy_column(
    field: PyArrowType<Field>,
) -> PyResult<(PyArrowType<Field>, Option<PyArrowType<Field>>)> {
    let schema = legacy::layout::recognize(&field.0)?.map(|layout| layout.schema().to_arrow(TYPED_VALUE));
    Ok((PyArrowType(legacy::restored(&field.0)?), schema.map(PyArrowType)))
}

/// Check a shredding schema, and sort its fields by name.
#[pyfunction]
pub fn check_shredding_schema(schema: PyArrowType<Field>) -> PyResult<PyArrowType<Field>> {
    Ok(PyArrowType(ShreddingSchema::from_arrow(&schema.0)?.to_arrow("typed_value")))
}

/// Split `metadata‖value`, or `value‖metadata` as in an example of PROTOCOL.md.
#[pyfunction]
pub fn split_variant(bytes: &[u8]) -> PyResult<(Vec<u8>, Vec<u8>)> {
    let (metadata, value) = value::split_variant(bytes)?;
    Ok((metadata.to_vec(), value.to_vec()))
}

/// Return one column of text for each path: the value there, null unless it is of the kind of the path, "number" or
/// "string".
#[pyfunction]
pub fn json_leaves(
    py: Python<'_>,
    texts: PyArray,
    paths: Vec<(Vec<String>, String)>,
) -> PyResult<Vec<PyArray>> {
    let kinds = [
        ("number", leaves::Kind::Number),
        ("string", leaves::Kind::Text),
        ("boolean", leaves::Kind::Boolean),
    ];
    let paths = paths
        .into_iter()
        .map(|(path, kind)| Ok((path, choice(&kind, "a kind of JSON value", &kinds)?)))
        .collect::<Result<Vec<_>>>()?;
    columns_of(py, texts.0, |part| Ok(leaves::json_leaves(part, &paths)))
}

/// The bounds of one path in statistics strings, cast to `target`; null where they do not bound the values.
#[pyfunction]
pub fn bound_column(
    py: Python<'_>,
    texts: PyArray,
    key: &str,
    target: PyArrowType<DataType>,
) -> PyResult<PyArray> {
    let bounds = columns_of(py, texts.0, |part| Ok(vec![bounds::bound_column(part, key, &target.0)?]))?;
    bounds.into_iter().next().ok_or_else(|| Error::unsupported("no column").into())
}

/// Apply `work` to parts of the texts on all threads, and concatenate the columns.
fn columns_of(
    py: Python<'_>,
    texts: ArrayData,
    work: impl Fn(&StringArray) -> Result<Vec<ArrayRef>> + Send + Sync,
) -> PyResult<Vec<PyArray>> {
    let texts = imported(texts)?;
    let texts = texts.as_string_opt::<i32>().ok_or_else(|| Error::unsupported("texts are strings"))?;
    let columns = if texts.len() <= ROWS_PER_THREAD {
        // The thread of the caller is done before a thread of the kernel begins.
        py.detach(|| work(texts))?
    } else {
        run(py, || in_parallel(texts, work))?
    };
    Ok(columns.iter().map(|column| PyArrowType(column.to_data())).collect())
}

fn in_parallel(
    texts: &StringArray,
    work: impl Fn(&StringArray) -> Result<Vec<ArrayRef>> + Sync,
) -> Result<Vec<ArrayRef>> {
    let parts = in_ranges(texts.len(), |rows| work(&texts.slice(rows.start, rows.len())))?;
    let columns = parts.first().map_or(0, Vec::len);
    let column = |index: usize| concat(&parts.iter().map(|part| &part[index]).collect::<Vec<_>>());
    (0..columns).map(column).collect()
}

/// Return a column of any type as Variants.
#[pyfunction]
pub fn variants_of(py: Python<'_>, column: PyArray) -> PyResult<PyArray> {
    run_array(py, || {
        let column = imported(column.0)?;
        concat(&in_ranges(column.len(), |rows| nested::variants_of(&column, rows))?)
    })
}

/// Set the values of an Arrow array, or other Variants, at a path; null is Variant null.
#[pyfunction]
pub fn set_path(py: Python<'_>, variants: PyArray, path: Vec<PyStep>, values: PyArray) -> PyResult<PyArray> {
    let path = steps(path);
    run_array(py, || modify::set_rows(&plain(variants)?, &path, &imported(values.0)?))
}

/// Remove the value at a path.
#[pyfunction]
pub fn remove_path(py: Python<'_>, variants: PyArray, path: Vec<PyStep>) -> PyResult<PyArray> {
    let path = steps(path);
    run_array(py, || modify::remove_rows(&plain(variants)?, &path))
}

/// Check Variants to the last nested value.
#[pyfunction]
pub fn validate(py: Python<'_>, variants: PyArray) -> PyResult<()> {
    run(py, || {
        let plain = plain(variants)?;
        let (metadata, values) = (plain.column(0).as_binary::<i32>(), plain.column(1).as_binary::<i32>());
        each_row((0..plain.len()).filter(|&row| plain.is_valid(row)), |row| {
            value::validate(&Metadata::parse(metadata.value(row))?, values.value(row))
        })
    })
}
