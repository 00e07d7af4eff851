//! Infer a shredding schema from arrays of JSON text or Variants: from all of their rows, or from a sample.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;

use super::arrays::{PyArray, imported};
use super::run;
use crate::error::{Error, Result};
use crate::infer::{InferOptions, Inference, affordable_leaves};
use crate::json::parse::{JsonShredder, ParseOptions, parse_rows};
use crate::legacy::layout::TYPED_VALUE;
use crate::shred::unshred::unshred;
use crate::shred::{OnConflict, ShreddingSchema};

/// Infer the shredding schema that suits arrays of Variants, or of JSON text whose invalid rows are skipped: of a file
/// of `rows` rows, or of any size. It has at least `certain_rows`, so that a part of the time to write these is spent.
#[pyfunction]
#[pyo3(signature = (arrays, max_leaves, max_depth, spark_compatible, rows = None, certain_rows = None))]
pub fn infer(
    py: Python<'_>,
    arrays: Vec<PyArray>,
    max_leaves: usize,
    max_depth: usize,
    spark_compatible: bool,
    rows: Option<u64>,
    certain_rows: Option<u64>,
) -> PyResult<PyArrowType<Field>> {
    let options = InferOptions { max_leaves, max_depth, spark_compatible };
    run(py, || {
        let arrays = arrays.into_iter().map(|array| imported(array.0)).collect::<Result<Vec<ArrayRef>>>()?;
        let schema = match rows {
            Some(rows) => infer_for(&arrays, options, rows, certain_rows.unwrap_or(rows))?,
            None => {
                let mut variants = Variants::default();
                count(arrays.iter().map(|array| variants.of(array)), options)?.finish()
            }
        };
        Ok::<_, Error>(PyArrowType(schema.to_arrow(TYPED_VALUE)))
    })
}

/// Infer the schema of a file of `rows` rows that are like those of `arrays`, from samples of these.
fn infer_for(
    arrays: &[ArrayRef],
    options: InferOptions,
    rows: u64,
    certain_rows: u64,
) -> Result<ShreddingSchema> {
    let known: usize = arrays.iter().map(|array| array.len()).sum();
    let bytes = arrays.iter().map(size_in_bytes).sum::<Result<usize>>()?;
    let bytes_of = |rows: u64| bytes as f64 * rows as f64 / known.max(1) as f64;
    let max_leaves = affordable_leaves(bytes_of(rows));
    if max_leaves == 0 {
        return Ok(ShreddingSchema::Untyped);
    }
    let Sample { counted, estimated } = Sample::of(arrays, bytes, bytes_of(certain_rows) as usize)?;
    let inference = count(counted.into_iter().map(Ok), options)?;
    inference.finish_for(&estimated, rows, max_leaves)
}

/// The size of a sample: a part of the bytes of a file, within limits.
struct SampleSize {
    part: usize,
    min: usize,
    max: usize,
}

/// The rows whose paths and types are counted, which takes about as long as to write them.
const COUNTED: SampleSize = SampleSize { part: 32, min: 16 << 10, max: 2 << 20 };
/// The rows that are compressed to estimate sizes, which takes ten times as long.
const ESTIMATED: SampleSize = SampleSize { part: 64, min: 16 << 10, max: 64 << 10 };

impl SampleSize {
    fn of(&self, bytes: usize) -> usize {
        (bytes / self.part).clamp(self.min, self.max)
    }
}

/// The number of ranges of rows of which a sample consists: adjacent rows are alike, and compress better.
const MAX_RANGES: usize = 8;
const RANGE_BYTES: usize = 8 << 10;

/// Some Variants of a file.
struct Sample {
    counted: Vec<StructArray>,
    /// The first rows of each of these.
    estimated: Vec<StructArray>,
}

impl Sample {
    /// Return Variants of the `bytes` of `arrays`, in ranges of rows that are spread evenly: as many as suit a file of
    /// `file_bytes`.
    fn of(arrays: &[ArrayRef], bytes: usize, file_bytes: usize) -> Result<Self> {
        let rows: usize = arrays.iter().map(|array| array.len()).sum();
        let (counted, estimated) = (COUNTED.of(file_bytes), ESTIMATED.of(file_bytes));
        let ranges = (estimated / RANGE_BYTES).clamp(1, MAX_RANGES.min(rows.max(1)));
        let rows_of =
            |wanted: usize| (rows * wanted).div_ceil(bytes.max(1) * ranges).clamp(1, (rows / ranges).max(1));
        let (counted, estimated) = (rows_of(counted), rows_of(estimated));
        let mut starts = (0..ranges).map(|number| number * rows / ranges).peekable();
        let mut sample = Sample { counted: Vec::new(), estimated: Vec::new() };
        let mut variants = Variants::default();
        let mut first = 0;
        for array in arrays {
            let end = first + array.len();
            while let Some(start) = starts.next_if(|&start| start < end) {
                let range = variants.of(&array.slice(start - first, counted.min(end - start)))?;
                sample.estimated.push(range.slice(0, estimated.min(range.len())));
                sample.counted.push(range);
            }
            first = end;
        }
        Ok(sample)
    }
}

fn count(arrays: impl Iterator<Item = Result<StructArray>>, options: InferOptions) -> Result<Inference> {
    let mut inference = Inference::new(options);
    for array in arrays {
        inference.add_array(&array?)?;
    }
    Ok(inference)
}

/// Converts columns to structs of `metadata` and `value`. The parser of JSON text is kept, because it predicts keys by
/// those of the rows before.
#[derive(Default)]
struct Variants {
    parser: Option<JsonShredder>,
}

impl Variants {
    fn of(&mut self, array: &ArrayRef) -> Result<StructArray> {
        if let DataType::Struct(_) = array.data_type() {
            return unshred(array.as_struct(), OnConflict::Error);
        }
        let unshredded = || JsonShredder::new(ShreddingSchema::Untyped, ParseOptions::default());
        let parser = self.parser.get_or_insert_with(unshredded);
        parse_rows(parser, array, |_, _| {})?;
        parser.take()
    }
}

/// The bytes of a column of JSON text or of Variants.
fn size_in_bytes(array: &ArrayRef) -> Result<usize> {
    Ok(array.to_data().get_slice_memory_size()?)
}
