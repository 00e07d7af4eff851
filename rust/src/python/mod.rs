//! The seam to Python: each binding converts, lets go of the interpreter, calls, converts.

pub mod check;
pub mod files;
pub mod lines;
pub mod objects;
pub mod threads;
pub mod values;

use pyo3::prelude::*;

use crate::error::{Error, Result};

pub use threads::run;

impl From<Error> for PyErr {
    /// The exception of `delta_variant.errors` that stands for the error.
    fn from(error: Error) -> Self {
        let name = match &error {
            Error::Variant(_) => "MalformedVariantError",
            Error::Json(_) => "InvalidJsonError",
            Error::Cast(_) => "CastError",
            Error::Path(_) => "VariantPathError",
            Error::Shredding(_) => "ShreddingError",
            Error::Conflict(_) => "ConflictingValueError",
            Error::DataFile(_) => "DataFileError",
            Error::Unsupported(_) => "SchemaError",
        };
        Python::attach(|py| {
            let exception = py
                .import("delta_variant.errors")
                .and_then(|errors| errors.getattr(name))
                .and_then(|class| class.call1((error.to_string(),)));
            match exception {
                Ok(exception) => PyErr::from_value(exception),
                Err(import) => import,
            }
        })
    }
}

/// An exception that was raised in a callback, as an error of the kernel.
pub fn callback_error(error: PyErr) -> Error {
    Error::DataFile(error.to_string())
}

/// What a parsed choice between words is, or an error that names them.
fn choice<T: Copy>(word: &str, what: &str, choices: &[(&str, T)]) -> Result<T> {
    choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        Error::Unsupported(format!("{what} is one of {}, and not {word:?}", names.join(", ")))
    })
}
