//! Splitting the bytes of a JSON file into the texts of its values: one a line, or the elements of one array.
//!
//! A file may come in pieces of any size: the lines and their positions are the same. Nothing here is checked to
//! be JSON or UTF-8; that is the parser's work, value by value.

use arrow_array::BinaryArray;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use memchr::{memchr_iter, memchr2};

use crate::error::{Error, Result};

/// How the values of a file are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One value a line; a line may be an array.
    Lines,
    /// One array, whose elements are the values; they may span lines.
    Array,
    /// `Array` when the file begins with `[`, else `Lines`; see [`detect`] for lines that are arrays.
    Auto,
}

/// The most bytes of a line or element that is kept, unless the caller says otherwise.
pub const DEFAULT_MAX_BYTES: usize = 128 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// How much of a file is held back, at most, until its format is known.
const MAX_HEAD: usize = 1024 * 1024;

/// A place in a file: line and column count from 1, the column in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

/// Where the values of a batch are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Positions {
    /// The first byte of each value.
    pub starts: Vec<Position>,
    /// The values that were longer than allowed, in ascending order; their text is left out.
    pub oversized: Vec<usize>,
}

impl Positions {
    /// The place in the file of the byte that follows `before`, the first bytes of the text of value `index`.
    pub fn locate(&self, index: usize, before: &[u8]) -> Option<Position> {
        let start = self.starts.get(index)?;
        let last_line = before.rsplit(|&byte| byte == b'\n').next().unwrap_or_default().len() as u64;
        Some(match memchr_iter(b'\n', before).count() as u64 {
            0 => Position { line: start.line, column: start.column + last_line },
            lines => Position { line: start.line + lines, column: last_line + 1 },
        })
    }
}

/// A batch of values: their texts back to back, and where they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    text: Vec<u8>,
    offsets: Vec<i32>,
    pub positions: Positions,
}

impl Default for Lines {
    fn default() -> Self {
        Lines { text: Vec::new(), offsets: vec![0], positions: Positions::default() }
    }
}

impl Lines {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.positions.starts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of all texts.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// The texts as an Arrow array, without a copy, and their positions.
    pub fn into_array(self) -> Result<(BinaryArray, Positions)> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let array = BinaryArray::try_new(offsets, Buffer::from_vec(self.text), None)?;
        Ok((array, self.positions))
    }

    fn push(&mut self, text: &[u8], start: Position) -> Result<()> {
        let end = i32::try_from(self.text.len() + text.len()).map_err(|_| {
            Error::Json(format!("line {}: a batch of lines is larger than 2 GiB; feed smaller pieces", start.line))
        })?;
        self.text.extend_from_slice(text);
        self.offsets.push(end);
        self.positions.starts.push(start);
        Ok(())
    }

    fn push_oversized(&mut self, start: Position) -> Result<()> {
        self.positions.oversized.push(self.len());
        self.push(&[], start)
    }
}

/// Splits one file, fed piece by piece.
#[derive(Debug)]
pub struct LineSplitter {
    format: Format,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The first bytes, as long as they do not tell how to go on.
    Head(Vec<u8>),
    Lines(LineStage),
    Array(ArrayStage),
}

impl LineSplitter {
    /// A value of more than `max_bytes` bytes is passed over, and reported in [`Positions::oversized`].
    pub fn new(format: Format, max_bytes: usize) -> Self {
        todo!()
    }
}
