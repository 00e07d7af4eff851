//! Split the bytes of JSON files into batches of values.

use arrow_array::Array;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use super::arrays::PyArray;
use super::{choice, run};
use crate::error::Error;
use crate::json::lines::{Format, LineSplitter, Lines, Positions};

/// Splits one JSON file, fed piece by piece.
#[pyclass(name = "LineSplitter", module = "delta_variant._native")]
pub struct PyLineSplitter {
    splitter: LineSplitter,
}

/// Where the values of a batch are in their file.
#[pyclass(name = "Positions", module = "delta_variant._native", frozen)]
pub struct PyPositions {
    positions: Positions,
}

#[pymethods]
impl PyLineSplitter {
    #[new]
    #[pyo3(signature = (format, max_bytes, records=None))]
    fn new(format: &str, max_bytes: usize, records: Option<Vec<String>>) -> PyResult<Self> {
        let formats = [
            ("auto", Format::Auto),
            ("lines", Format::Lines),
            ("array", Format::Array),
            ("documents", Format::Documents),
        ];
        let named = choice(format, "format", &formats)?;
        let format = records.map_or(named, Format::Records);
        Ok(PyLineSplitter { splitter: LineSplitter::new(format, max_bytes) })
    }

    /// Return the values that end in `piece`, and their positions.
    fn feed(&mut self, py: Python<'_>, piece: &[u8]) -> PyResult<(PyArray, PyPositions)> {
        run(py, || {
            let mut lines = Lines::default();
            self.splitter.feed(piece, &mut lines)?;
            batch(lines)
        })
    }

    /// Return the value that the end of the file completes.
    fn finish(&mut self, py: Python<'_>) -> PyResult<(PyArray, PyPositions)> {
        run(py, || {
            let mut lines = Lines::default();
            self.splitter.finish(&mut lines)?;
            batch(lines)
        })
    }
}

fn batch(lines: Lines) -> Result<(PyArray, PyPositions), Error> {
    let (text, positions) = lines.into_array()?;
    Ok((PyArrowType(text.to_data()), PyPositions { positions }))
}

#[pymethods]
impl PyPositions {
    /// Return line and column, from 1, of the byte after `before`, the first bytes of the text of value `index`.
    fn locate(&self, index: usize, before: &[u8]) -> Option<(u64, u64)> {
        self.positions.locate(index, before).map(|position| (position.line, position.column))
    }

    /// The values that were longer than allowed; their text is empty.
    #[getter]
    fn oversized(&self) -> Vec<usize> {
        self.positions.oversized.clone()
    }
}
