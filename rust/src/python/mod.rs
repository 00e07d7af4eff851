//! The Python binding: each function converts its arguments, releases the GIL, calls the kernel and converts the
//! result.

mod ahead;
mod arrays;
pub mod check;
pub mod deletion_vectors;
pub mod files;
pub mod from_objects;
pub mod functions;
pub mod inference;
pub mod lines;
pub mod objects;
pub mod reports;
pub mod threads;
pub mod values;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, ErrorKind, Result};

pub use threads::run;

impl From<Error> for PyErr {
    /// Return the exception of `delta_variant.errors` for the error, with its location.
    fn from(error: Error) -> Self {
        Python::attach(|py| exception(py, &error).map_or_else(|cause| cause, PyErr::from_value))
    }
}

fn exception<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let class = match error.kind() {
        ErrorKind::Variant => "MalformedVariantError",
        ErrorKind::Json => "InvalidJsonError",
        ErrorKind::Cast => "CastError",
        ErrorKind::Path => "VariantPathError",
        ErrorKind::Shredding => "ShreddingError",
        ErrorKind::Conflict => "ConflictingValueError",
        ErrorKind::DataFile => "DataFileError",
        ErrorKind::Unsupported => "SchemaError",
    };
    let location = PyDict::new(py);
    location.set_item("file", error.file())?;
    location.set_item("line", error.line())?;
    location.set_item("row", error.row())?;
    location.set_item("column", error.column())?;
    location.set_item("path", error.path())?;
    let exception = py.import("delta_variant.errors")?.getattr(class)?.call1((error.message(),))?;
    exception.call_method("at", (), Some(&location))
}

/// Return the error for an exception that a Python callback raised.
pub fn callback_error(error: PyErr) -> Error {
    Error::data_file(error.to_string())
}

/// Return the choice called `word`, or an error that lists the choices.
fn choice<T: Clone>(word: &str, what: &str, choices: &[(&str, T)]) -> Result<T> {
    choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| choice.clone()).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        Error::unsupported(format!("{what}: expected one of {}, got {word:?}", names.join(", ")))
    })
}
