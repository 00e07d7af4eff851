//! What can go wrong in the kernel, and which Python exception each becomes.

use thiserror::Error;

/// An error of the kernel; the variant decides which class of `delta_variant.errors` is raised.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// Bytes that are not a Variant.
    #[error("{0}")]
    Variant(String),
    /// Text that is not JSON, or JSON that no Variant can hold.
    #[error("{0}")]
    Json(String),
    /// A value that cannot be cast to the type asked for.
    #[error("{0}")]
    Cast(String),
    /// A path of a Variant that cannot be set.
    #[error("{0}")]
    Path(String),
    /// A shredding schema or a shredded layout that the specification does not allow.
    #[error("{0}")]
    Shredding(String),
    /// `value` and `typed_value` contradict each other.
    #[error("{0}")]
    Conflict(String),
    /// A Parquet file that cannot be read or written.
    #[error("{0}")]
    DataFile(String),
    /// An Arrow type or a request that the kernel does not take.
    #[error("{0}")]
    Unsupported(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The same error with its sentence rewritten, as when a caller adds the row or the file.
    pub fn map_message(self, rewrite: impl FnOnce(String) -> String) -> Self {
        match self {
            Error::Variant(m) => Error::Variant(rewrite(m)),
            Error::Json(m) => Error::Json(rewrite(m)),
            Error::Cast(m) => Error::Cast(rewrite(m)),
            Error::Path(m) => Error::Path(rewrite(m)),
            Error::Shredding(m) => Error::Shredding(rewrite(m)),
            Error::Conflict(m) => Error::Conflict(rewrite(m)),
            Error::DataFile(m) => Error::DataFile(rewrite(m)),
            Error::Unsupported(m) => Error::Unsupported(rewrite(m)),
        }
    }

    /// The same error, naming the row of the batch it happened in, counted from 0.
    pub fn at_row(self, row: usize) -> Self {
        self.map_message(|message| format!("row {row}: {message}"))
    }

    /// The same error with the row that it names, if it does, counted anew.
    pub fn renumbered(self, renumber: impl FnOnce(usize) -> usize) -> Self {
        self.map_message(|message| {
            let place = message.strip_prefix("row ").and_then(|rest| rest.split_once(": "));
            match place.and_then(|(row, rest)| Some((row.parse::<usize>().ok()?, rest))) {
                Some((row, rest)) => format!("row {}: {rest}", renumber(row)),
                None => message,
            }
        })
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::OffsetOverflowError(bytes) => Error::Unsupported(format!(
                "an array would have {bytes} bytes, and Arrow's offsets count to 2 GiB: take fewer rows at a time"
            )),
            error => Error::Unsupported(error.to_string()),
        }
    }
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            // An error of the file system or of a store says all by itself.
            parquet::errors::ParquetError::External(cause) => Error::DataFile(cause.to_string()),
            error => Error::DataFile(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::DataFile(error.to_string())
    }
}
