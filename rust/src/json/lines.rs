//! Split the bytes of a JSON file into the texts of its values: one per line, the elements of an array, which may be
//! in a field of a document, or documents one after the other.
//!
//! A file may be fed in pieces of any size without changing the result. The parser checks later that each value is
//! JSON and UTF-8. Between pieces, memory holds at most one value of the maximum size, or `MAX_HEAD` bytes until the
//! format is known.

use arrow_array::BinaryArray;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use memchr::{memchr, memchr_iter, memchr2, memrchr};

use super::scan;
use crate::error::{Error, Result};

/// How the values of a file are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// One value per line; a line may be an array.
    Lines,
    /// One array, whose elements are the values; they may span lines.
    Array,
    /// Values one after the other, which may span lines.
    Documents,
    /// Documents one after the other; the values are the elements of the array at the path of these names in each.
    Records(Vec<String>),
    /// One of the first three by the start of the file; see `detect`.
    Auto,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// The byte before each document of a JSON text sequence (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1E;
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
    Records(RecordStage),
    Documents(DocumentStage),
}

impl Stage {
    fn new(format: &Format, max_bytes: usize) -> Option<Self> {
        Some(match format {
            Format::Lines => Stage::Lines(LineStage::new(max_bytes)),
            Format::Array => Stage::Records(RecordStage::new(max_bytes, &[], false)),
            Format::Records(path) => Stage::Records(RecordStage::new(max_bytes, path, true)),
            Format::Documents => Stage::Documents(DocumentStage::new(max_bytes)),
            Format::Auto => return None,
        })
    }

    fn feed(&mut self, piece: &[u8], out: &mut Lines) -> Result<()> {
        match self {
            Stage::Head(_) => Ok(()),
            Stage::Lines(lines) => lines.feed(piece, out),
            Stage::Records(records) => records.feed(piece, out),
            Stage::Documents(documents) => documents.feed(piece, out),
        }
    }
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
        let Stage::Head(head) = &mut self.stage else { return self.stage.feed(piece, out) };
        if head.is_empty() {
            return self.begin(piece, false, out);
        }
        let mut head = std::mem::take(head);
        head.extend_from_slice(piece);
        self.begin(&head, false, out)
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
            Stage::Records(records) => records.finish(),
            Stage::Documents(documents) => documents.finish(out),
        }
    }

    /// Continue after the head of the file, or keep it until it determines the format.
    fn begin(&mut self, head: &[u8], at_end: bool, out: &mut Lines) -> Result<()> {
        if !at_end && head.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(head) {
            self.stage = Stage::Head(head.to_vec());
            return Ok(());
        }
        let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let stage = match &self.format {
            Format::Auto => detect(text, at_end).and_then(|found| Stage::new(&found, self.max_bytes)),
            known => Stage::new(known, self.max_bytes),
        };
        self.stage = stage.unwrap_or_else(|| Stage::Head(head.to_vec()));
        self.stage.feed(text, out)
    }
}

/// The format of a file that begins with `head`; `None` when more of it is needed.
///
/// A value that closes on its own line is a line, unless it is an array and the only value of the file, or another
/// object or array follows on that line. Of a value that continues on the next lines, `next_line_is_value` tells
/// whether it is a line that was cut. Only `MAX_HEAD` bytes are checked: a file with a longer first line is one array
/// if it begins with `[`, else has lines.
fn detect(head: &[u8], at_end: bool) -> Option<Format> {
    let head = &head[..head.len().min(MAX_HEAD)];
    let undecided = |otherwise| (at_end || head.len() == MAX_HEAD).then_some(otherwise);
    let Some(start) = head.iter().position(|&byte| !is_space(byte)) else {
        return undecided(Format::Lines);
    };
    let text = &head[start..];
    let is_array = match text[0] {
        b'[' => true,
        b'{' => false,
        RECORD_SEPARATOR => return Some(Format::Documents),
        _ => return Some(Format::Lines),
    };
    let line = memchr(b'\n', text).unwrap_or(text.len());
    let Some(end) = Structure::default().find_end(text) else {
        return undecided(match is_array {
            true => Format::Array,
            false if line == text.len() || next_line_is_value(&text[line..]) => Format::Lines,
            false => Format::Documents,
        });
    };
    let next = text[end..].iter().position(|&byte| !is_space(byte)).map(|after| end + after);
    let follows = next.is_some_and(|next| matches!(text[next], b'{' | b'['));
    match next {
        Some(next) if end <= line && next > line => Some(Format::Lines),
        Some(_) if follows => Some(Format::Documents),
        None if is_array => undecided(Format::Array),
        None if line == text.len() => undecided(Format::Lines),
        _ if is_array => Some(Format::Array),
        _ if end <= line => Some(Format::Lines),
        _ => Some(Format::Documents),
    }
}

/// Return whether the first line of `text` that is not blank is an object or an array as a whole.
///
/// In an object over several lines, such a line ends with a comma, unless it is the last of its array.
fn next_line_is_value(text: &[u8]) -> bool {
    let line = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
    line.is_some_and(|line| {
        matches!(line[0], b'{' | b'[') && Structure::default().find_end(line) == Some(line.len())
    })
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

    /// Append to `out` the value that `rest` completes, without white space after it.
    fn complete(&mut self, rest: &[u8], start: Position, max_bytes: usize, out: &mut Lines) -> Result<()> {
        let mut held = std::mem::take(self);
        let text = if held.is_empty() {
            rest
        } else {
            held.hold(rest, max_bytes);
            &held.bytes
        };
        if held.is_oversized || text.len() > max_bytes {
            return out.push_oversized(start);
        }
        let length = text.iter().rposition(|&byte| !is_space(byte)).map_or(0, |last| last + 1);
        out.push(&text[..length], start)
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

/// What the next bytes of a document may be, outside the elements of its array.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    Document,
    ElementOrClose,
    Element,
    /// The rest of an element that has begun.
    Rest,
    CommaOrClose,
    NameOrClose,
    Name,
    /// The rest of a name that has begun.
    RestOfName,
    Colon,
    Value,
    /// The rest of a value that is not on the path.
    Skipped,
    CommaOrBrace,
    End,
}

/// How many names of an object an error shows.
const MAX_NAMES: usize = 8;

/// Splits the array at a path of documents. The path of an array that is a document itself is empty.
#[derive(Debug)]
struct RecordStage {
    max_bytes: usize,
    path: Vec<String>,
    /// Whether other documents may follow the first one.
    may_repeat: bool,
    expected: Expected,
    structure: Structure,
    pending: Pending,
    /// How many objects of the path are open.
    depth: usize,
    /// Whether the last name is the next one of the path.
    is_on_path: bool,
    /// Whether the array of the document was found.
    is_found: bool,
    /// The first names of the innermost open object of the path.
    names: Vec<String>,
    /// Where the element that has begun begins.
    start: Position,
    position: Position,
}

impl RecordStage {
    fn new(max_bytes: usize, path: &[String], may_repeat: bool) -> Self {
        let position = Position { line: 1, column: 1 };
        RecordStage {
            max_bytes,
            path: path.to_vec(),
            may_repeat,
            expected: Expected::Document,
            structure: Structure::default(),
            pending: Pending::default(),
            depth: 0,
            is_on_path: false,
            is_found: false,
            names: Vec::new(),
            start: position,
            position,
        }
    }

    fn feed(&mut self, mut piece: &[u8], out: &mut Lines) -> Result<()> {
        while let Some(&byte) = piece.first() {
            let taken = match self.expected {
                Expected::Rest => self.take_element(piece, out)?,
                Expected::RestOfName => self.take_name(piece),
                Expected::Skipped => self.skip_value(piece),
                _ if is_space(byte) => 1,
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
            Expected::Document if self.may_repeat => Ok(()),
            Expected::Document => Err(self.error("expected an array of values, got an empty file")),
            _ if self.path.is_empty() => Err(self.error("the file ends before the ] of its array")),
            _ => Err(self.error("the file ends within a document")),
        }
    }

    /// Consume `byte`, which is outside of values and names; consume nothing where a value begins.
    fn take_between(&mut self, byte: u8) -> Result<usize> {
        self.expected = match (self.expected, byte) {
            (Expected::Document, RECORD_SEPARATOR) if self.may_repeat => Expected::Document,
            (Expected::Document, b'[') if self.path.is_empty() => Expected::ElementOrClose,
            (Expected::Document, b'{') if !self.path.is_empty() => {
                self.is_found = false;
                self.open_object()
            }
            (Expected::Document, _) if self.path.is_empty() => {
                return Err(self.error("expected [ at the start of the array of values"));
            }
            (Expected::Document, _) => {
                let field = self.field(1);
                return Err(self.error(&format!("expected an object with the field {field}")));
            }
            (Expected::ElementOrClose | Expected::CommaOrClose, b']') => self.end_value(),
            (Expected::CommaOrClose, b',') => Expected::Element,
            (Expected::ElementOrClose | Expected::Element, b',' | b']') => {
                return Err(self.error("expected a value of the array"));
            }
            (Expected::ElementOrClose | Expected::Element, _) => {
                self.start = self.position;
                self.expected = Expected::Rest;
                return Ok(0);
            }
            (Expected::NameOrClose | Expected::Name, b'"') => {
                self.structure.in_string = true;
                Expected::RestOfName
            }
            (Expected::NameOrClose | Expected::CommaOrBrace, b'}') => self.close_object()?,
            (Expected::CommaOrBrace, b',') => Expected::Name,
            (Expected::Colon, b':') => Expected::Value,
            (Expected::Value, _) => return self.begin_value(byte),
            (Expected::NameOrClose | Expected::Name, _) => {
                return Err(self.error("an object needs a key in quotes here"));
            }
            (Expected::Colon, _) => return Err(self.error("expected : after the key of an object")),
            (Expected::CommaOrBrace, _) => {
                return Err(self.error("expected , or } after a value of an object"));
            }
            _ => return Err(self.error("expected the end of the file after the array of values")),
        };
        Ok(1)
    }

    /// Consume the bracket of a value on the path, and nothing of other values.
    fn begin_value(&mut self, byte: u8) -> Result<usize> {
        if !self.is_on_path {
            self.expected = Expected::Skipped;
            return Ok(0);
        }
        let (field, is_last) = (self.field(self.depth), self.depth == self.path.len());
        if self.is_found {
            return Err(self.error(&format!("the document has several fields {field}")));
        }
        self.expected = match byte {
            b'[' if is_last => {
                self.is_found = true;
                Expected::ElementOrClose
            }
            b'{' if !is_last => self.open_object(),
            // Servers written in Go encode an empty list as null.
            b'n' => {
                self.is_found = true;
                self.expected = Expected::Skipped;
                return Ok(0);
            }
            _ => {
                let expected = if is_last { "an array" } else { "an object" };
                return Err(self.error(&format!("expected {expected} in the field {field}")));
            }
        };
        Ok(1)
    }

    fn open_object(&mut self) -> Expected {
        self.depth += 1;
        self.names.clear();
        Expected::NameOrClose
    }

    fn close_object(&mut self) -> Result<Expected> {
        if !self.is_found {
            let names = self.names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let field = self.field(self.depth);
            return Err(self.error(&format!("the document has no field {field}; its fields are {names}")));
        }
        self.depth -= 1;
        Ok(self.end_value())
    }

    fn end_value(&self) -> Expected {
        match self.depth {
            0 if self.may_repeat => Expected::Document,
            0 => Expected::End,
            _ => Expected::CommaOrBrace,
        }
    }

    /// Return the first names of the path as text.
    fn field(&self, depth: usize) -> String {
        format!("{:?}", self.path[..depth].join("."))
    }

    /// Consume the bytes of the current element, up to its end or all of them.
    fn take_element(&mut self, piece: &[u8], out: &mut Lines) -> Result<usize> {
        let Some(end) = self.structure.find_separator::<b']'>(piece) else {
            self.pending.hold(piece, self.max_bytes);
            return Ok(piece.len());
        };
        self.pending.complete(&piece[..end], self.start, self.max_bytes, out)?;
        self.expected = Expected::CommaOrClose;
        Ok(end)
    }

    /// Consume the bytes of the current name, up to its closing quote or all of them.
    fn take_name(&mut self, piece: &[u8]) -> usize {
        let mut at = 0;
        while self.structure.in_string && at < piece.len() {
            at += self.structure.take_string(&piece[at..]);
        }
        self.pending.hold(&piece[..at], self.max_bytes);
        if !self.structure.in_string {
            let text = std::mem::take(&mut self.pending).bytes;
            let mut scratch = Vec::new();
            let name = scan::string(&text, &mut 0, &mut scratch).map(|name| name.bytes(&scratch).to_vec());
            let name = String::from_utf8(name.unwrap_or_default()).unwrap_or_default();
            self.is_on_path = self.path[self.depth - 1] == name;
            if self.names.len() < MAX_NAMES {
                self.names.push(name);
            }
            self.expected = Expected::Colon;
        }
        at
    }

    /// Consume the bytes of a value that is not on the path.
    fn skip_value(&mut self, piece: &[u8]) -> usize {
        let Some(end) = self.structure.find_separator::<b'}'>(piece) else { return piece.len() };
        self.expected = Expected::CommaOrBrace;
        end
    }

    fn error(&self, what: &str) -> Error {
        Error::json(format!("{what} (column {})", self.position.column)).at_line(self.position.line)
    }
}

/// Splits documents that follow each other, with or without white space between them.
#[derive(Debug)]
struct DocumentStage {
    max_bytes: usize,
    structure: Structure,
    pending: Pending,
    /// The first byte of the document that has begun.
    first: Option<u8>,
    start: Position,
    position: Position,
}

impl DocumentStage {
    fn new(max_bytes: usize) -> Self {
        let position = Position { line: 1, column: 1 };
        DocumentStage {
            max_bytes,
            structure: Structure::default(),
            pending: Pending::default(),
            first: None,
            start: position,
            position,
        }
    }

    fn feed(&mut self, mut piece: &[u8], out: &mut Lines) -> Result<()> {
        while let Some(&byte) = piece.first() {
            let taken = match self.first {
                Some(first) => self.take_document(first, piece, out)?,
                None if is_space(byte) || byte == RECORD_SEPARATOR => 1,
                None => {
                    (self.first, self.start) = (Some(byte), self.position);
                    0
                }
            };
            let (passed, rest) = piece.split_at(taken);
            self.position = self.position.after(passed);
            piece = rest;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Lines) -> Result<()> {
        match self.first.take() {
            Some(_) => self.pending.complete(&[], self.start, self.max_bytes, out),
            None => Ok(()),
        }
    }

    /// Consume the bytes of the current document, up to its end or all of them.
    fn take_document(&mut self, first: u8, piece: &[u8], out: &mut Lines) -> Result<usize> {
        let ends = |&byte: &u8| is_space(byte) || matches!(byte, b'{' | b'[' | b'"' | RECORD_SEPARATOR);
        let end = match first {
            b'{' | b'[' | b'"' => self.structure.find_end(piece),
            _ => piece.iter().position(ends),
        };
        let Some(end) = end else {
            self.pending.hold(piece, self.max_bytes);
            return Ok(piece.len());
        };
        self.pending.complete(&piece[..end], self.start, self.max_bytes, out)?;
        self.first = None;
        Ok(end)
    }
}

/// The state within a value: the depth of brackets and braces, and whether it is in a string.
#[derive(Debug, Default)]
struct Structure {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Structure {
    /// Skip to the comma or `CLOSE` after the value; `None` if the value continues after `bytes`.
    ///
    /// Brackets are counted but not matched with braces: the parser rejects a mismatch.
    fn find_separator<const CLOSE: u8>(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.in_string {
                at += self.take_string(&bytes[at..]);
                continue;
            }
            match byte {
                b',' | b']' | b'}' if self.depth == 0 && (byte == b',' || byte == CLOSE) => return Some(at),
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Skip an object, an array or a string, of which `bytes` has the beginning or the rest; `None` if it continues
    /// after them.
    fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.in_string {
                at += self.take_string(&bytes[at..]);
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                at += 1;
            }
            if self.depth == 0 && !self.in_string {
                return Some(at);
            }
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
