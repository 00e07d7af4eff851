//! Split the bytes of a JSON file into the texts of its values: one per line, or the elements of one array.
//!
//! A file may be fed in pieces of any size without changing the result. The parser checks later that each value is
//! JSON and UTF-8. Between pieces, memory holds at most one value of the maximum size, or `MAX_HEAD` bytes until the
//! format is known.

use arrow_array::BinaryArray;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use memchr::{memchr_iter, memchr2, memrchr};

use crate::error::{Error, Result};

/// How the values of a file are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One value per line; a line may be an array.
    Lines,
    /// One array, whose elements are the values; they may span lines.
    Array,
    /// `Array` when the file begins with `[`, else `Lines`; see `detect` for lines that are arrays.
    Auto,
}

/// The default maximum length of a line or element in bytes; longer ones are skipped.
pub const DEFAULT_MAX_BYTES: usize = 128 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// The maximum number of bytes held back until the format is known.
const MAX_HEAD: usize = 1024 * 1024;

/// A position in a file: line and column count from 1, the column in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

impl Position {
    /// Return the position after `bytes`, which begin here.
    fn after(self, bytes: &[u8]) -> Self {
        match memrchr(b'\n', bytes) {
            None => Position { column: self.column + bytes.len() as u64, ..self },
            Some(last) => Position {
                line: self.line + memchr_iter(b'\n', bytes).count() as u64,
                column: (bytes.len() - last) as u64,
            },
        }
    }
}

/// Where the values of a batch are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Positions {
    /// The first byte of each value.
    pub starts: Vec<Position>,
    /// The values that were longer than allowed, in ascending order; their text is empty.
    pub oversized: Vec<usize>,
}

impl Positions {
    /// Return the position in the file of the byte that follows `before`, the first bytes of the text of value
    /// `index`.
    pub fn locate(&self, index: usize, before: &[u8]) -> Option<Position> {
        self.starts.get(index).map(|start| start.after(before))
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
            Error::json("a batch of lines is larger than 2 GiB; feed smaller pieces").at_line(start.line)
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

/// Splits one file, fed piece by piece. It cannot be used after an error.
#[derive(Debug)]
pub struct LineSplitter {
    format: Format,
    max_bytes: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The first bytes, until they determine the format.
    Head(Vec<u8>),
    Lines(LineStage),
    Array(ArrayStage),
}

impl LineSplitter {
    /// A value of more than `max_bytes` bytes is skipped and listed in [`Positions::oversized`].
    pub fn new(format: Format, max_bytes: usize) -> Self {
        LineSplitter { format, max_bytes, stage: Stage::Head(Vec::new()) }
    }

    /// Append to `out` the values that end in `piece`, the next bytes of the file.
    ///
    /// Fails where the commas and brackets around the elements of an array are wrong.
    pub fn feed(&mut self, piece: &[u8], out: &mut Lines) -> Result<()> {
        match &mut self.stage {
            Stage::Lines(lines) => lines.feed(piece, out),
            Stage::Array(array) => array.feed(piece, out),
            Stage::Head(head) if head.is_empty() => self.begin(piece, false, out),
            Stage::Head(head) => {
                let mut head = std::mem::take(head);
                head.extend_from_slice(piece);
                self.begin(&head, false, out)
            }
        }
    }

    /// Append to `out` the value that the end of the file completes.
    pub fn finish(&mut self, out: &mut Lines) -> Result<()> {
        if let Stage::Head(head) = &mut self.stage {
            let head = std::mem::take(head);
            self.begin(&head, true, out)?;
        }
        match &mut self.stage {
            Stage::Head(_) => Ok(()),
            Stage::Lines(lines) => lines.finish(out),
            Stage::Array(array) => array.finish(),
        }
    }

    /// Continue after the head of the file, or keep it until it determines the format.
    fn begin(&mut self, head: &[u8], at_end: bool, out: &mut Lines) -> Result<()> {
        if !at_end && head.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(head) {
            self.stage = Stage::Head(head.to_vec());
            return Ok(());
        }
        let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let format = match self.format {
            Format::Auto => detect(text, at_end),
            known => Some(known),
        };
        self.stage = match format {
            None | Some(Format::Auto) => Stage::Head(head.to_vec()),
            Some(Format::Lines) => Stage::Lines(LineStage::new(self.max_bytes)),
            Some(Format::Array) => Stage::Array(ArrayStage::new(self.max_bytes)),
        };
        match &mut self.stage {
            Stage::Head(_) => Ok(()),
            Stage::Lines(lines) => lines.feed(text, out),
            Stage::Array(array) => array.feed(text, out),
        }
    }
}

/// The format of a file that begins with `head`; `None` when more of it is needed.
///
/// A file that begins with `[` is one array, unless that bracket closes at the end of its line and another value
/// follows on a later line: then its lines are arrays. Only `MAX_HEAD` bytes are checked: a file whose first
/// line is longer and begins with `[` counts as one array.
fn detect(head: &[u8], at_end: bool) -> Option<Format> {
    let head = &head[..head.len().min(MAX_HEAD)];
    let undecided = |otherwise| (at_end || head.len() == MAX_HEAD).then_some(otherwise);
    let Some(start) = head.iter().position(|&byte| !is_space(byte)) else {
        return undecided(Format::Lines);
    };
    if head[start] != b'[' {
        return Some(Format::Lines);
    }
    let first_line =
        start + head[start..].iter().position(|&byte| byte == b'\n').unwrap_or(head.len() - start);
    match find_close(head, start) {
        Some(close) if close < first_line => {
            let rest = &head[close + 1..];
            match rest.iter().position(|&byte| !is_space(byte)) {
                Some(next) if rest[..next].contains(&b'\n') => Some(Format::Lines),
                Some(_) => Some(Format::Array),
                None => undecided(Format::Array),
            }
        }
        None if first_line == head.len() => undecided(Format::Array),
        _ => Some(Format::Array),
    }
}

/// Return the position of the bracket that closes the one at `open`.
fn find_close(head: &[u8], open: usize) -> Option<usize> {
    let mut structure = Structure::default();
    let mut at = open + 1;
    loop {
        at += structure.find_separator(head.get(at..)?)?;
        if head.get(at) == Some(&b']') {
            return Some(at);
        }
        at += 1;
    }
}

/// JSON's white space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The beginning of a value whose end is in a later piece.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    is_oversized: bool,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.is_oversized
    }

    fn hold(&mut self, bytes: &[u8], max_bytes: usize) {
        // One extra byte, which may be a carriage return.
        if self.is_oversized || self.bytes.len() + bytes.len() > max_bytes.saturating_add(1) {
            *self = Pending { bytes: Vec::new(), is_oversized: true };
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

#[derive(Debug)]
struct LineStage {
    max_bytes: usize,
    line: u64,
    pending: Pending,
}

impl LineStage {
    fn new(max_bytes: usize) -> Self {
        LineStage { max_bytes, line: 1, pending: Pending::default() }
    }

    fn feed(&mut self, piece: &[u8], out: &mut Lines) -> Result<()> {
        out.text.reserve(piece.len());
        let mut start = 0;
        for end in memchr_iter(b'\n', piece) {
            self.end_line(&piece[start..end], out)?;
            start = end + 1;
        }
        self.pending.hold(&piece[start..], self.max_bytes);
        Ok(())
    }

    fn finish(&mut self, out: &mut Lines) -> Result<()> {
        if self.pending.is_empty() { Ok(()) } else { self.end_line(&[], out) }
    }

    fn end_line(&mut self, rest: &[u8], out: &mut Lines) -> Result<()> {
        let start = Position { line: self.line, column: 1 };
        self.line += 1;
        if self.pending.is_empty() {
            return self.push(rest, start, out);
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.hold(rest, self.max_bytes);
        if pending.is_oversized { out.push_oversized(start) } else { self.push(&pending.bytes, start, out) }
    }

    fn push(&self, line: &[u8], start: Position, out: &mut Lines) -> Result<()> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > self.max_bytes {
            return out.push_oversized(start);
        }
        if line.iter().all(|&byte| is_space(byte)) {
            return Ok(());
        }
        out.push(line, start)
    }
}

/// What the next bytes between the elements of the array may be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    Open,
    FirstOrClose,
    Element,
    /// The rest of an element that has begun.
    Rest,
    CommaOrClose,
    End,
}

#[derive(Debug)]
struct ArrayStage {
    max_bytes: usize,
    expected: Expected,
    structure: Structure,
    pending: Pending,
    /// Where the element that has begun begins.
    start: Position,
    position: Position,
}

impl ArrayStage {
    fn new(max_bytes: usize) -> Self {
        let position = Position { line: 1, column: 1 };
        ArrayStage {
            max_bytes,
            expected: Expected::Open,
            structure: Structure::default(),
            pending: Pending::default(),
            start: position,
            position,
        }
    }

    fn feed(&mut self, mut piece: &[u8], out: &mut Lines) -> Result<()> {
        while let Some(&byte) = piece.first() {
            let taken = match self.expected {
                Expected::Rest => self.take_element(piece, out)?,
                _ => self.take_between(byte)?,
            };
            let (passed, rest) = piece.split_at(taken);
            self.position = self.position.after(passed);
            piece = rest;
        }
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        match self.expected {
            Expected::End => Ok(()),
            Expected::Open => Err(self.error("expected an array of values, got an empty file")),
            _ => Err(self.error("the file ends before the ] of its array")),
        }
    }

    /// Consume `byte`, which is outside the elements; consume nothing where an element begins.
    fn take_between(&mut self, byte: u8) -> Result<usize> {
        if is_space(byte) {
            return Ok(1);
        }
        self.expected = match (self.expected, byte) {
            (Expected::Open, b'[') => Expected::FirstOrClose,
            (Expected::Open, _) => return Err(self.error("expected [ at the start of the array of values")),
            (Expected::FirstOrClose | Expected::CommaOrClose, b']') => Expected::End,
            (Expected::CommaOrClose, b',') => Expected::Element,
            (Expected::FirstOrClose | Expected::Element, b',' | b']') => {
                return Err(self.error("expected a value of the array"));
            }
            (Expected::End, _) => {
                return Err(self.error("expected the end of the file after the array of values"));
            }
            _ => {
                self.start = self.position;
                self.expected = Expected::Rest;
                return Ok(0);
            }
        };
        Ok(1)
    }

    /// Consume the bytes of the current element, up to its end or all of them.
    fn take_element(&mut self, piece: &[u8], out: &mut Lines) -> Result<usize> {
        let Some(end) = self.structure.find_separator(piece) else {
            self.pending.hold(piece, self.max_bytes);
            return Ok(piece.len());
        };
        let rest = &piece[..end];
        if self.pending.is_empty() {
            self.push(rest, out)?;
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.hold(rest, self.max_bytes);
            if pending.is_oversized {
                out.push_oversized(self.start)
            } else {
                self.push(&pending.bytes, out)
            }?;
        }
        self.expected = Expected::CommaOrClose;
        Ok(end)
    }

    fn push(&self, element: &[u8], out: &mut Lines) -> Result<()> {
        if element.len() > self.max_bytes {
            return out.push_oversized(self.start);
        }
        let length = element.iter().rposition(|&byte| !is_space(byte)).map_or(0, |last| last + 1);
        out.push(&element[..length], self.start)
    }

    fn error(&self, what: &str) -> Error {
        Error::json(format!("{what} (column {})", self.position.column)).at_line(self.position.line)
    }
}

/// The state within an element: the depth of brackets and braces, and whether it is in a string.
#[derive(Debug, Default)]
struct Structure {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Structure {
    /// Skip to the comma or bracket that ends the element; `None` if the element continues after `bytes`.
    ///
    /// Brackets are counted but not matched with braces: the parser rejects a mismatch.
    fn find_separator(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.in_string {
                at += self.take_string(&bytes[at..]);
                continue;
            }
            match byte {
                b',' | b']' if self.depth == 0 => return Some(at),
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Skip within a string up to the next quotation mark or backslash. Return the number of bytes skipped.
    fn take_string(&mut self, bytes: &[u8]) -> usize {
        if std::mem::take(&mut self.is_escaped) {
            return 1;
        }
        let Some(at) = memchr2(b'"', b'\\', bytes) else { return bytes.len() };
        if bytes.get(at) == Some(&b'"') {
            self.in_string = false;
        } else {
            self.is_escaped = true;
        }
        at + 1
    }
}
