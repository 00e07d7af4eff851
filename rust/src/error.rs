//! The error of the kernel: a kind, a message, and where in the data it happened.

use std::fmt;

/// What went wrong. The kind decides which class of `delta_variant.errors` Python raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Bytes that are not a Variant.
    Variant,
    /// Text that is not JSON, or JSON that no Variant can represent.
    Json,
    /// A value that cannot be cast to the requested type.
    Cast,
    /// A path at which a Variant cannot be changed.
    Path,
    /// A shredding schema or a shredded layout that the specification does not allow.
    Shredding,
    /// `value` and `typed_value` contradict each other.
    Conflict,
    /// A Parquet file that cannot be read or written.
    DataFile,
    /// An Arrow type or an argument that the kernel does not support.
    Unsupported,
}

/// An error of the kernel.
///
/// It is one pointer, so that `Result` stays small on the paths of single values. Methods such as [`Error::at_row`]
/// add a location. A location that is already set stays, because code nearer to the error knows better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Details>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    kind: ErrorKind,
    message: String,
    file: Option<String>,
    line: Option<u64>,
    row: Option<usize>,
    column: Option<String>,
    path: Option<String>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Error(Box::new(Details {
            kind,
            message,
            file: None,
            line: None,
            row: None,
            column: None,
            path: None,
        }))
    }

    pub fn variant(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Variant, message)
    }

    pub fn json(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Json, message)
    }

    pub fn cast(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cast, message)
    }

    pub fn variant_path(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Path, message)
    }

    pub fn shredding(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Shredding, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    pub fn data_file(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DataFile, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// The error for an array beyond Arrow's 32-bit offsets.
    pub fn too_large() -> Self {
        Self::unsupported("the values of one batch take more than 2 GiB: read fewer rows at a time")
    }

    /// Add the name of the file.
    pub fn in_file(mut self, file: &str) -> Self {
        self.0.file.get_or_insert_with(|| file.to_owned());
        self
    }

    /// Add the line of a text file, counted from 1.
    pub fn at_line(mut self, line: u64) -> Self {
        self.0.line.get_or_insert(line);
        self
    }

    /// Add the row of the batch or file, counted from 0.
    pub fn at_row(mut self, row: usize) -> Self {
        self.0.row.get_or_insert(row);
        self
    }

    /// Translate the row, if there is one: from a part of a batch to the batch, or from a batch to its file.
    pub fn map_row(mut self, renumber: impl FnOnce(usize) -> usize) -> Self {
        self.0.row = self.0.row.map(renumber);
        self
    }

    /// Add the column. A nested column is built from the inside: its parents come in front, joined by dots.
    pub fn in_column(mut self, name: &str) -> Self {
        self.0.column = Some(match self.0.column.take() {
            Some(inner) => format!("{name}.{inner}"),
            None => name.to_owned(),
        });
        self
    }

    /// Add the normalized path (RFC 9535) in the Variant; `[*]` stands for the elements of an array.
    pub fn at_path(mut self, path: &str) -> Self {
        self.0.path.get_or_insert_with(|| path.to_owned());
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong, without the location.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    pub fn row(&self) -> Option<usize> {
        self.0.row
    }

    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for Error {
    /// The location as Python prints it, and the message: `row 3, column 'event', path $['a']: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { file, line, row, column, path, .. } = &*self.0;
        let location = [
            file.clone(),
            line.map(|line| format!("line {line}")),
            row.map(|row| format!("row {row}")),
            column.as_ref().map(|column| format!("column '{column}'")),
            path.as_ref().map(|path| format!("path {path}")),
        ];
        let location: Vec<String> = location.into_iter().flatten().collect();
        match location.is_empty() {
            true => f.write_str(&self.0.message),
            false => write!(f, "{}: {}", location.join(", "), self.0.message),
        }
    }
}

impl std::error::Error for Error {}

/// Call `work` with each row; its errors name the row.
pub fn each_row(
    rows: impl IntoIterator<Item = usize>,
    mut work: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    rows.into_iter().try_for_each(|row| work(row).map_err(|error| error.at_row(row)))
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::OffsetOverflowError(bytes) => Error::unsupported(format!(
                "an array would have {bytes} bytes, but Arrow's 32-bit offsets end at 2 GiB: process fewer rows at a time"
            )),
            error => Error::unsupported(error.to_string()),
        }
    }
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            // The message of an error of the file system or of a store is complete without a prefix.
            parquet::errors::ParquetError::External(cause) => match cause.downcast::<Error>() {
                Ok(error) => *error,
                Err(cause) => Error::data_file(cause.to_string()),
            },
            error => Error::data_file(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::data_file(error.to_string())
    }
}
