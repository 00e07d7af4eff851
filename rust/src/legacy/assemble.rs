//! Assemble a Variant value from parts with separate name dictionaries.
//!
//! The parts are collected as a tree first. Once all names are known, so are the ids and the size of every object,
//! and the bytes are written once without moving any.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::shred::names::{NO_NAME, NameId, Names};
use crate::value::encode::{self, Layout};
use crate::value::metadata::unsigned_size;
use crate::value::{self, MAX_DEPTH, MAX_SIZE, Value, malformed, no_such_name, too_deep};

/// The position of a part in its [`Assembler`]; parts of a part come before it.
pub type PartId = usize;

/// Puts one value together at a time.
pub struct Assembler<'a> {
    names: Names,
    parts: Vec<Part<'a>>,
    /// Fields and elements of the finished objects and arrays, followed by those of the unfinished ones.
    members: Vec<Member>,
    open: Vec<Member>,
    /// The bytes of scalars that come from typed columns.
    scalars: Vec<u8>,
    /// The parts that remain to be written, the next one last.
    pending: Vec<PartId>,
}

struct Part<'a> {
    content: Content<'a>,
    size: usize,
}

enum Content<'a> {
    Bytes(&'a [u8]),
    Scalar(Range<usize>),
    Object(Range<usize>, Layout),
    Array(Range<usize>, Layout),
}

#[derive(Clone, Copy)]
struct Member {
    name: NameId,
    part: PartId,
}

/// An object or array that has begun: how many members belong to those around it.
pub struct Frame(usize);

impl<'a> Assembler<'a> {
    pub fn new() -> Self {
        Assembler {
            names: Names::new(),
            parts: Vec::new(),
            members: Vec::new(),
            open: Vec::new(),
            scalars: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// A scalar of a typed column, whose decimals have `precision` digits.
    pub fn scalar(&mut self, value: &Value<'_>, precision: Option<u8>) -> PartId {
        let start = self.scalars.len();
        match (value, precision) {
            (Value::Decimal(decimal), Some(precision)) => {
                encode::decimal_of_precision(&mut self.scalars, *decimal, precision);
            }
            _ => encode::scalar(&mut self.scalars, value),
        }
        let range = start..self.scalars.len();
        let size = range.len();
        self.add(Content::Scalar(range), size)
    }

    /// The value at the start of `bytes`, which is checked completely; `names` are those of its metadata, by id.
    pub fn value(&mut self, names: &[&str], bytes: &'a [u8], depth: usize) -> Result<PartId> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match Value::decode(bytes)? {
            Value::Object(object) => {
                let frame = self.begin();
                for field in object.fields() {
                    let (id, value) = field?;
                    let name = names.get(id).ok_or_else(|| no_such_name(id, names.len()))?;
                    let part = self.value(names, value, depth + 1)?;
                    self.field(name, part);
                }
                self.end_object(frame)
            }
            Value::Array(array) => {
                let frame = self.begin();
                for value in array.elements() {
                    let part = self.value(names, value?, depth + 1)?;
                    self.element(part);
                }
                Ok(self.end_array(frame))
            }
            _ => {
                let length = value::size(bytes)?.unwrap_or(bytes.len());
                Ok(self.add(Content::Bytes(&bytes[..length]), length))
            }
        }
    }

    pub fn begin(&mut self) -> Frame {
        Frame(self.open.len())
    }

    pub fn field(&mut self, name: &str, part: PartId) {
        let name = self.names.intern(name.as_bytes());
        self.names.note(name);
        self.open.push(Member { name, part });
    }

    pub fn element(&mut self, part: PartId) {
        self.open.push(Member { name: NO_NAME, part });
    }

    /// The object of the fields since `frame`, which come in any order.
    pub fn end_object(&mut self, frame: Frame) -> Result<PartId> {
        let fields = &mut self.open[frame.0..];
        fields.sort_unstable_by_key(|field| field.name);
        if let Some(pair) = fields.windows(2).find(|pair| pair[0].name == pair[1].name) {
            let name = String::from_utf8_lossy(self.names.text(pair[0].name));
            return Err(malformed(&format!("an object has two fields called {name:?}")));
        }
        let members = self.close(frame);
        Ok(self.add(Content::Object(members, Layout::array(0, 0)), 0))
    }

    pub fn end_array(&mut self, frame: Frame) -> PartId {
        let members = self.close(frame);
        self.add(Content::Array(members, Layout::array(0, 0)), 0)
    }

    fn close(&mut self, frame: Frame) -> Range<usize> {
        let start = self.members.len();
        self.members.extend(self.open.drain(frame.0..));
        start..self.members.len()
    }

    fn add(&mut self, content: Content<'a>, size: usize) -> PartId {
        self.parts.push(Part { content, size });
        self.parts.len() - 1
    }

    /// Append the metadata of the assembled value: all its names, sorted.
    pub fn write_metadata(&mut self, out: &mut Vec<u8>) {
        let key = self.names.end_row();
        self.names.rank_row();
        out.extend_from_slice(self.names.metadata(key));
    }

    /// Append the value itself, after its metadata, and reset the assembler.
    pub fn write_value(&mut self, root: PartId, out: &mut Vec<u8>) -> Result<()> {
        self.measure()?;
        out.reserve(self.parts[root].size);
        self.pending.push(root);
        while let Some(part) = self.pending.pop() {
            match &self.parts[part].content {
                Content::Bytes(bytes) => out.extend_from_slice(bytes),
                Content::Scalar(range) => out.extend_from_slice(&self.scalars[range.clone()]),
                Content::Object(members, layout) => {
                    let members = &self.members[members.clone()];
                    let ids = members.iter().map(|member| self.names.local_id(member.name));
                    layout.write_object(out, ids.zip(self.offsets(members)));
                    self.pending.extend(members.iter().rev().map(|member| member.part));
                }
                Content::Array(members, layout) => {
                    let members = &self.members[members.clone()];
                    layout.write_array(out, self.offsets(members));
                    self.pending.extend(members.iter().rev().map(|member| member.part));
                }
            }
        }
        self.clear();
        Ok(())
    }

    fn offsets(&self, members: &[Member]) -> impl Iterator<Item = usize> + Clone {
        members.iter().scan(0, |end, member| {
            let start = *end;
            *end += self.parts[member.part].size;
            Some(start)
        })
    }

    /// Put the fields of all objects in the order of their names, and compute how large everything is.
    fn measure(&mut self) -> Result<()> {
        for part in 0..self.parts.len() {
            let (members, is_object) = match &self.parts[part].content {
                Content::Object(members, _) => (members.clone(), true),
                Content::Array(members, _) => (members.clone(), false),
                _ => continue,
            };
            let values =
                self.members[members.clone()].iter().map(|member| self.parts[member.part].size).sum();
            if values > MAX_SIZE {
                return Err(Error::variant(format!("a Variant value takes more than {MAX_SIZE} bytes")));
            }
            let (layout, content) = if is_object {
                let fields = &mut self.members[members.clone()];
                fields.sort_unstable_by_key(|field| self.names.local_id(field.name));
                let largest = fields.last().map_or(0, |field| self.names.local_id(field.name));
                let layout = Layout::object(fields.len(), values, unsigned_size(largest));
                (layout, Content::Object(members, layout))
            } else {
                let layout = Layout::array(members.len(), values);
                (layout, Content::Array(members, layout))
            };
            self.parts[part] = Part { content, size: layout.header_size() + values };
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.members.clear();
        self.scalars.clear();
        if self.names.is_full() {
            self.names = Names::new();
        }
    }
}
