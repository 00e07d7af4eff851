//! Parse JSON text directly into shredded columns, without a tree of values.
//!
//! Each key is predicted to be the one that followed the previous key last time, which one comparison of eight
//! bytes confirms. A value without a column of its own is encoded at the end of the `value` column it belongs to;
//! the name ids of its objects are filled in at the end of the row, when the row's `metadata` is known.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, BinaryArray, LargeBinaryArray, StructArray};
use arrow_schema::DataType;

use super::scan::{self, JsonError, Number, Scan, Text, error, skip_space};
use crate::error::{Error, Result};
use crate::shred::columns::{LeafValues, Slots};
use crate::shred::names::{NO_NAME, NameId, Names};
use crate::shred::schema::{LeafType, ShreddingSchema};
use crate::shred::tree::{Node, NodeId, ROOT, Tree, Typed, metadata_dictionary};
use crate::value::column::Bytes;
use crate::value::encode::{self, Layout};
use crate::value::metadata::unsigned_size;
use crate::value::{self, MAX_DEPTH, MAX_SIZE, Value};

/// How to read JSON text where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParseOptions {
    /// Every number that is not an integer becomes a double, instead of a decimal where it is in plain notation.
    pub doubles: bool,
    /// The last of two fields of one name counts, instead of an error.
    pub last_duplicate: bool,
}

/// Parses rows of JSON text into the columns of one shredding schema.
#[derive(Debug)]
pub struct JsonShredder {
    options: ParseOptions,
    tree: Tree,
    names: Names,
    /// For each node that is a shredded object: its fields by name, and the order of its keys.
    object_keys: Vec<ObjectKeys>,
    residual: Residual,
    rows: Slots,
    keys: Vec<i32>,
    id_size: usize,
    scratch: Vec<u8>,
}

/// The keys of one shredded object, and the nodes they lead to.
#[derive(Debug, Default)]
struct ObjectKeys {
    /// By name: the field's node, or [`ROOT`] for a name that is not a shredded field.
    targets: Vec<NodeId>,
    predictor: KeyPredictor,
}

impl ObjectKeys {
    #[inline(always)]
    fn target(&self, name: NameId) -> NodeId {
        self.targets.get(name as usize).copied().unwrap_or(ROOT)
    }
}

/// Predicts the next key as the one that followed the same key last time.
#[derive(Debug, Default)]
struct KeyPredictor {
    next: Vec<NameId>,
}

impl KeyPredictor {
    #[inline(always)]
    fn after(&self, name: NameId) -> NameId {
        self.next.get(name as usize).copied().unwrap_or(NO_NAME)
    }

    fn learn(&mut self, name: NameId, next: NameId) {
        let name = name as usize;
        if name >= self.next.len() {
            self.next.resize(name + 1, NO_NAME);
        }
        self.next[name] = next;
    }
}

/// The objects and arrays that are encoded into `value` columns in this row.
#[derive(Debug, Default)]
struct Residual {
    /// By the key of the object that they are in.
    first: KeyPredictor,
    predictor: KeyPredictor,
    /// Fields of the open objects, innermost last.
    open: Vec<Field>,
    /// Offsets of the elements of the open arrays.
    elements: Vec<usize>,
    /// Fields of the closed ones.
    fields: Vec<Field>,
    objects: Vec<ResidualObject>,
    header: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    name: NameId,
    /// In the values of its object.
    offset: usize,
    /// The position of its key in the text.
    key: usize,
}

/// An encoded object whose header is still blank.
#[derive(Debug)]
struct ResidualObject {
    node: NodeId,
    /// In the data of the node's `value`.
    position: usize,
    layout: Layout,
    /// The first of its fields.
    fields: usize,
}

impl JsonShredder {
    pub fn new(schema: ShreddingSchema, options: ParseOptions) -> Self {
        let mut shredder = JsonShredder {
            options,
            tree: Tree::new(schema),
            names: Names::new(),
            object_keys: Vec::new(),
            residual: Residual::default(),
            rows: Slots::default(),
            keys: Vec::new(),
            id_size: 1,
            scratch: Vec::new(),
        };
        shredder.learn_fields();
        shredder
    }

    /// Reset the names, and intern those of the shredded fields.
    fn learn_fields(&mut self) {
        self.names = self.names.restart();
        self.residual = Residual::default();
        self.object_keys = Vec::with_capacity(self.tree.nodes.len());
        for node in &self.tree.nodes {
            let mut keys = ObjectKeys::default();
            if let Typed::Object(object) = &node.typed {
                for (name, field) in &object.fields {
                    let name = self.names.intern(name.as_bytes()) as usize;
                    keys.targets.resize(keys.targets.len().max(name + 1), ROOT);
                    keys.targets[name] = *field;
                }
            }
            self.object_keys.push(keys);
        }
    }

    /// The number of rows that were added.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Add a row that is SQL NULL.
    pub fn push_null(&mut self) {
        self.keys.push(0);
    }

    /// Add the row of `text`, which must be UTF-8. An error leaves the columns unchanged.
    pub fn push(&mut self, text: &[u8]) -> Scan<()> {
        if text.len() > MAX_SIZE {
            return error(0, format!("the value has {} bytes, and {MAX_SIZE} are the most", text.len()));
        }
        if self.names.is_full() {
            self.learn_fields();
        }
        self.id_size = 1;
        loop {
            let row = self.keys.len();
            if let Err(error) = self.row(text, row) {
                self.forget_row(row);
                return Err(error);
            }
            let id_size = unsigned_size(self.names.row_count().saturating_sub(1));
            if id_size <= self.id_size || self.residual.objects.is_empty() {
                self.end_row(row)?;
                return Ok(());
            }
            // Name ids need more bytes than were reserved.
            self.forget_row(row);
            self.id_size = id_size;
        }
    }

    fn forget_row(&mut self, row: usize) {
        self.tree.truncate(ROOT, row);
        self.names.clear_row();
        self.residual.clear();
    }

    fn row(&mut self, text: &[u8], row: usize) -> Scan<()> {
        let mut at = skip_space(text, 0);
        if !self.scalar(text, &mut at, ROOT, row)? {
            self.value(text, &mut at, ROOT, row, NO_NAME, 0)?;
        }
        match skip_space(text, at) {
            end if end == text.len() => Ok(()),
            end => error(end, "something follows the value"),
        }
    }

    /// Read the value at `*at` into the columns of `node`, which [`JsonShredder::scalar`] did not take.
    fn value(
        &mut self,
        text: &[u8],
        at: &mut usize,
        node: NodeId,
        slot: usize,
        parent: NameId,
        depth: usize,
    ) -> Scan<()> {
        let Some(&byte) = text.get(*at) else {
            return error(*at, "the text ends where a value should be");
        };
        match (byte, &self.tree.nodes[node].typed) {
            (b'{', Typed::Object(_)) => return self.object(text, at, node, slot, depth),
            (b'[', Typed::List(_)) => return self.list(text, at, node, slot, parent, depth),
            _ => {}
        }
        let mut out = std::mem::take(&mut self.tree.nodes[node].value.data);
        let encoded = self.encode(text, at, &mut out, node, parent, depth);
        let value = &mut self.tree.nodes[node].value;
        value.data = out;
        encoded?;
        value.end_value(slot);
        Ok(())
    }

    /// Read the value at `*at` into the leaf `node`, if it is of a kind that the leaf may take.
    #[inline(always)]
    fn scalar(&mut self, text: &[u8], at: &mut usize, node: NodeId, slot: usize) -> Scan<bool> {
        let Node { value, typed: Typed::Leaf(leaf) } = &mut self.tree.nodes[node] else { return Ok(false) };
        match (text.get(*at), &mut leaf.values) {
            (Some(b'"'), LeafValues::Bytes(column)) if leaf.leaf == LeafType::String => {
                push_string(&mut column.data, text, at, &mut self.scratch, |_, _| {})?;
                column.end_value(slot);
            }
            (Some(b'-' | b'0'..=b'9'), _) => {
                let number = scan::number(text, at, self.options.doubles)?;
                let stored = match number {
                    Number::Int(int) => leaf.push_integer(slot, int),
                    Number::Short { unscaled, scale } => leaf.push_decimal(slot, unscaled, scale),
                    Number::Decimal(decimal) => leaf.push(slot, &Value::Decimal(decimal)),
                    Number::Double(double) => leaf.push(slot, &Value::Double(double)),
                };
                if !stored {
                    push_number(&mut value.data, number);
                    value.end_value(slot);
                }
            }
            (Some(&byte @ (b't' | b'f')), LeafValues::Boolean(_)) => {
                let boolean = byte == b't';
                literal(text, at, if boolean { b"true" } else { b"false" })?;
                leaf.push(slot, &Value::Boolean(boolean));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Read an object whose fields have columns; other fields go to the node's `value`.
    fn object(&mut self, text: &[u8], at: &mut usize, node: NodeId, slot: usize, depth: usize) -> Scan<()> {
        check_depth(depth, *at)?;
        if let Typed::Object(object) = &mut self.tree.nodes[node].typed {
            object.slots.set(slot);
        }
        let frame = self.residual.frame();
        let start = self.tree.nodes[node].value.start();
        let mut previous = NO_NAME;
        let mut more = open(text, at, b'}')?;
        while more {
            let key = *at;
            let (name, known) = self.key(text, at, self.object_keys[node].predictor.after(previous))?;
            self.object_keys[node].predictor.learn(previous, name);
            previous = name;
            match self.object_keys[node].target(name) {
                ROOT => self.leftover(text, at, node, Field { name, offset: start, key }, depth)?,
                field => {
                    // Only a name that the row has already can be a duplicate.
                    if known && self.tree.is_filled(field, slot) {
                        self.check_duplicate(name, key)?;
                        self.tree.truncate(field, slot);
                    }
                    if !self.scalar(text, at, field, slot)? {
                        self.value(text, at, field, slot, name, depth + 1)?;
                    }
                }
            }
            more = next(text, at, b'}')?;
        }
        if self.residual.open.len() > frame.open {
            let mut out = std::mem::take(&mut self.tree.nodes[node].value.data);
            let closed = self.close_object(&mut out, node, start, frame);
            let value = &mut self.tree.nodes[node].value;
            value.data = out;
            closed?;
            value.end_value(slot);
        }
        Ok(())
    }

    /// Encode a field without a column; `field.offset` is where the leftovers of its object start.
    fn leftover(
        &mut self,
        text: &[u8],
        at: &mut usize,
        node: NodeId,
        field: Field,
        depth: usize,
    ) -> Scan<()> {
        let mut out = std::mem::take(&mut self.tree.nodes[node].value.data);
        self.residual.open.push(Field { offset: out.len() - field.offset, ..field });
        let encoded = self.encode(text, at, &mut out, node, field.name, depth + 1);
        self.tree.nodes[node].value.data = out;
        encoded
    }

    fn list(
        &mut self,
        text: &[u8],
        at: &mut usize,
        node: NodeId,
        slot: usize,
        parent: NameId,
        depth: usize,
    ) -> Scan<()> {
        check_depth(depth, *at)?;
        let Typed::List(list) = &self.tree.nodes[node].typed else { return Ok(()) };
        let (element, mut end) = (list.element, list.next_element());
        let mut more = open(text, at, b']')?;
        while more {
            if !self.scalar(text, at, element, end)? {
                self.value(text, at, element, end, parent, depth + 1)?;
            }
            end += 1;
            more = next(text, at, b']')?;
        }
        if let Typed::List(list) = &mut self.tree.nodes[node].typed {
            list.end_list(slot, end);
        }
        Ok(())
    }

    /// Encode the value at `*at` to the end of `out`, which is the data of the `value` of `node`.
    fn encode(
        &mut self,
        text: &[u8],
        at: &mut usize,
        out: &mut Vec<u8>,
        node: NodeId,
        parent: NameId,
        depth: usize,
    ) -> Scan<()> {
        match text.get(*at) {
            Some(b'"') => push_string(out, text, at, &mut self.scratch, encode::string_header),
            Some(b'-' | b'0'..=b'9') => {
                push_number(out, scan::number(text, at, self.options.doubles)?);
                Ok(())
            }
            Some(b'{') => self.encode_object(text, at, out, node, parent, depth),
            Some(b'[') => self.encode_array(text, at, out, node, parent, depth),
            Some(b't') => {
                encode::scalar(out, &Value::Boolean(true));
                literal(text, at, b"true")
            }
            Some(b'f') => {
                encode::scalar(out, &Value::Boolean(false));
                literal(text, at, b"false")
            }
            Some(b'n') => {
                out.extend_from_slice(value::NULL);
                literal(text, at, b"null")
            }
            Some(_) => error(*at, "no JSON value begins like this"),
            None => error(*at, "the text ends where a value should be"),
        }
    }

    fn encode_object(
        &mut self,
        text: &[u8],
        at: &mut usize,
        out: &mut Vec<u8>,
        node: NodeId,
        parent: NameId,
        depth: usize,
    ) -> Scan<()> {
        check_depth(depth, *at)?;
        let frame = self.residual.frame();
        let start = out.len();
        let mut previous = NO_NAME;
        let mut more = open(text, at, b'}')?;
        while more {
            let key = *at;
            let name = match previous {
                NO_NAME => {
                    let (name, _) = self.key(text, at, self.residual.first.after(parent))?;
                    self.residual.first.learn(parent, name);
                    name
                }
                _ => {
                    let (name, _) = self.key(text, at, self.residual.predictor.after(previous))?;
                    self.residual.predictor.learn(previous, name);
                    name
                }
            };
            previous = name;
            self.residual.open.push(Field { name, offset: out.len() - start, key });
            self.encode(text, at, out, node, name, depth + 1)?;
            more = next(text, at, b'}')?;
        }
        self.close_object(out, node, start, frame)
    }

    fn encode_array(
        &mut self,
        text: &[u8],
        at: &mut usize,
        out: &mut Vec<u8>,
        node: NodeId,
        parent: NameId,
        depth: usize,
    ) -> Scan<()> {
        check_depth(depth, *at)?;
        let frame = self.residual.frame();
        let start = out.len();
        let mut more = open(text, at, b']')?;
        while more {
            self.residual.elements.push(out.len() - start);
            self.encode(text, at, out, node, parent, depth + 1)?;
            more = next(text, at, b']')?;
        }
        self.residual.close_array(out, node, start, frame);
        Ok(())
    }

    /// Read the key whose opening quote is at `*at`, and its colon; `*at` is then at the value. Return its name, and
    /// whether the row has had it before.
    #[inline(always)]
    fn key(&mut self, text: &[u8], at: &mut usize, guess: NameId) -> Scan<(NameId, bool)> {
        let quote = *at;
        let name = match self.names.starts(guess, text.get(quote + 1..).unwrap_or_default()) {
            Some(length) if text[quote] == b'"' => {
                *at = quote + length + 2;
                guess
            }
            _ => self.other_key(text, at)?,
        };
        let known = self.names.note(name);
        if text.get(*at) != Some(&b':') {
            *at = skip_space(text, *at);
            if text.get(*at) != Some(&b':') {
                return error(*at, "a key needs a colon after it");
            }
        }
        *at = skip_space(text, *at + 1);
        Ok((name, known))
    }

    #[inline(never)]
    fn other_key(&mut self, text: &[u8], at: &mut usize) -> Scan<NameId> {
        if text.get(*at) != Some(&b'"') {
            return error(*at, "an object needs a key in quotes here");
        }
        *at += 1;
        let key = scan::string(text, at, &mut self.scratch)?;
        Ok(self.names.intern(key.bytes(&self.scratch)))
    }

    fn check_duplicate(&self, name: NameId, key: usize) -> Scan<()> {
        if self.options.last_duplicate {
            return Ok(());
        }
        error(
            key,
            format!("an object has two fields called {:?}", String::from_utf8_lossy(self.names.text(name))),
        )
    }

    /// Insert a blank header before the fields of `frame`, whose values start at `start`.
    fn close_object(&mut self, out: &mut Vec<u8>, node: NodeId, start: usize, frame: Frame) -> Scan<()> {
        if self.options.last_duplicate {
            self.residual.keep_last(frame.open);
        }
        if out.len() - start > MAX_SIZE {
            return error(0, format!("the value takes more than {MAX_SIZE} bytes as a Variant"));
        }
        self.residual.close_object(out, node, start, frame, self.id_size);
        Ok(())
    }

    /// Write the `metadata` of the row, and the headers of its objects.
    fn end_row(&mut self, row: usize) -> Scan<()> {
        if !self.residual.objects.is_empty()
            && !self.options.last_duplicate
            && let Err(error) = self.check_duplicates()
        {
            self.forget_row(row);
            return Err(error);
        }
        let key = self.names.end_row();
        self.keys.push(key);
        self.rows.set(row);
        let Residual { fields, objects, header, .. } = &mut self.residual;
        for object in objects.iter() {
            let fields = &mut fields[object.fields..object.fields + object.layout.length];
            fields.sort_unstable_by_key(|field| self.names.local_id(field.name));
            header.clear();
            let fields = fields.iter().map(|field| (self.names.local_id(field.name), field.offset));
            object.layout.write_object(header, fields);
            let data = &mut self.tree.nodes[object.node].value.data;
            data[object.position..object.position + header.len()].copy_from_slice(header);
        }
        self.residual.clear();
        Ok(())
    }

    fn check_duplicates(&mut self) -> Scan<()> {
        let Residual { fields, objects, .. } = &mut self.residual;
        for object in objects.iter() {
            let fields = &mut fields[object.fields..object.fields + object.layout.length];
            fields.sort_unstable_by_key(|field| (field.name, field.offset));
            if let Some(pair) = fields.windows(2).find(|pair| pair[0].name == pair[1].name) {
                let Field { name, key, .. } = pair[1];
                return self.check_duplicate(name, key);
            }
        }
        Ok(())
    }

    /// The rows added so far as one shredded group; the shredder is empty afterwards.
    pub fn take(&mut self) -> Result<StructArray> {
        let length = self.keys.len();
        let metadata = metadata_dictionary(std::mem::take(&mut self.keys), self.names.take_dictionary())?;
        let nulls = match self.rows.count() {
            count if count == length => {
                self.rows = Slots::default();
                None
            }
            _ => Some(self.rows.take(length)),
        };
        self.tree.take(length, metadata, nulls)
    }
}

/// Add each row of a column of JSON text. For text that is not valid, call `invalid` and add SQL NULL.
pub fn parse_rows(
    shredder: &mut JsonShredder,
    text: &ArrayRef,
    mut invalid: impl FnMut(usize, JsonError),
) -> Result<()> {
    let text = text_bytes(text)?;
    let rows = Bytes::new(&text)?;
    for row in 0..text.len() {
        let parsed = match rows.get(row) {
            None => {
                shredder.push_null();
                continue;
            }
            Some(bytes) => check_utf8(bytes).and_then(|()| shredder.push(bytes)),
        };
        if let Err(error) = parsed {
            shredder.push_null();
            invalid(row, error);
        }
    }
    Ok(())
}

/// A column of text as a column of bytes, without a copy.
pub fn text_bytes(text: &ArrayRef) -> Result<ArrayRef> {
    Ok(match text.data_type() {
        DataType::Utf8 => Arc::new(BinaryArray::from(text.as_string::<i32>().clone())),
        DataType::LargeUtf8 => Arc::new(LargeBinaryArray::from(text.as_string::<i64>().clone())),
        DataType::Utf8View => Arc::new(text.as_string_view().clone().to_binary_view()),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => text.clone(),
        other => {
            return Err(Error::unsupported(format!("expected a column of JSON text, got {other}")));
        }
    })
}

fn check_utf8(text: &[u8]) -> Scan<()> {
    match simdutf8::compat::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(cause) => error(cause.valid_up_to(), "the text is not UTF-8"),
    }
}

/// The lengths of the residual when a new object began: the parts that belong to outer objects.
#[derive(Debug, Clone, Copy)]
struct Frame {
    open: usize,
    elements: usize,
    objects: usize,
}

impl Residual {
    fn frame(&self) -> Frame {
        Frame { open: self.open.len(), elements: self.elements.len(), objects: self.objects.len() }
    }

    fn clear(&mut self) {
        self.open.clear();
        self.elements.clear();
        self.fields.clear();
        self.objects.clear();
    }

    fn close_object(&mut self, out: &mut Vec<u8>, node: NodeId, start: usize, frame: Frame, id_size: usize) {
        let layout = Layout::object(self.open.len() - frame.open, out.len() - start, id_size);
        self.make_room(out, node, start, layout.header_size(), frame);
        let fields = self.fields.len();
        self.fields.extend(self.open.drain(frame.open..));
        self.objects.push(ResidualObject { node, position: start, layout, fields });
    }

    fn close_array(&mut self, out: &mut Vec<u8>, node: NodeId, start: usize, frame: Frame) {
        let offsets = &self.elements[frame.elements..];
        let layout = Layout::array(offsets.len(), out.len() - start);
        self.header.clear();
        layout.write_array(&mut self.header, offsets.iter().copied());
        self.elements.truncate(frame.elements);
        self.make_room(out, node, start, layout.header_size(), frame);
        out[start..start + self.header.len()].copy_from_slice(&self.header);
    }

    /// Move the bytes at `start` by `size`, and the objects in them.
    fn make_room(&mut self, out: &mut Vec<u8>, node: NodeId, start: usize, size: usize, frame: Frame) {
        let end = out.len();
        out.resize(end + size, 0);
        out.copy_within(start..end, start + size);
        for object in &mut self.objects[frame.objects..] {
            if object.node == node {
                object.position += size;
            }
        }
    }

    /// Of open fields with one name, keep the last. The bytes of the others stay, which the encoding allows.
    fn keep_last(&mut self, frame: usize) {
        let fields = &mut self.open[frame..];
        fields.sort_unstable_by_key(|field| (field.name, std::cmp::Reverse(field.offset)));
        let mut kept = frame;
        for index in frame..self.open.len() {
            if index == frame || self.open[index].name != self.open[kept - 1].name {
                self.open[kept] = self.open[index];
                kept += 1;
            }
        }
        self.open.truncate(kept);
    }
}

impl<'t> Text<'t> {
    #[inline(always)]
    fn bytes(&self, scratch: &'t [u8]) -> &'t [u8] {
        match self {
            Text::Plain(bytes) => bytes,
            Text::Unescaped => scratch,
        }
    }
}

/// Append the string whose opening quote is at `*at`, after what `header` writes for its length.
#[inline(always)]
fn push_string(
    out: &mut Vec<u8>,
    text: &[u8],
    at: &mut usize,
    scratch: &mut Vec<u8>,
    header: impl Fn(&mut Vec<u8>, usize),
) -> Scan<()> {
    *at += 1;
    if let Some(range) = scan::plain_string(text, *at) {
        *at = range.end + 1;
        header(out, range.len());
        scan::append(out, text, range);
        return Ok(());
    }
    let string = scan::string(text, at, scratch)?;
    let bytes = string.bytes(scratch);
    header(out, bytes.len());
    out.extend_from_slice(bytes);
    Ok(())
}

fn push_number(out: &mut Vec<u8>, number: Number) {
    match number {
        Number::Int(v) => encode::int(out, v),
        Number::Short { unscaled, scale } => encode::short_decimal(out, unscaled, scale),
        Number::Decimal(v) => encode::decimal(out, v),
        Number::Double(v) => encode::scalar(out, &Value::Double(v)),
    }
}

fn literal(text: &[u8], at: &mut usize, word: &'static [u8]) -> Scan<()> {
    if text[*at..].starts_with(word) {
        *at += word.len();
        return Ok(());
    }
    error(*at, "no JSON value begins like this")
}

fn check_depth(depth: usize, at: usize) -> Scan<()> {
    if depth >= MAX_DEPTH {
        return error(at, format!("the value nests deeper than {MAX_DEPTH} levels"));
    }
    Ok(())
}

/// Step over an opening bracket. Return whether a value precedes the closing one.
#[inline(always)]
fn open(text: &[u8], at: &mut usize, close: u8) -> Scan<bool> {
    *at = skip_space(text, *at + 1);
    if text.get(*at) == Some(&close) {
        *at += 1;
        return Ok(false);
    }
    Ok(true)
}

/// Step over the comma or the closing bracket after a value. Return whether another value follows.
#[inline(always)]
fn next(text: &[u8], at: &mut usize, close: u8) -> Scan<bool> {
    let mut byte = text.get(*at);
    if byte.is_some_and(u8::is_ascii_whitespace) {
        *at = skip_space(text, *at);
        byte = text.get(*at);
    }
    match byte {
        Some(b',') => {
            *at = skip_space(text, *at + 1);
            Ok(true)
        }
        Some(&end) if end == close => {
            *at += 1;
            Ok(false)
        }
        Some(_) => error(
            *at,
            if close == b'}' {
                "a field needs a comma or } after it"
            } else {
                "an element needs a comma or ] after it"
            },
        ),
        None => error(*at, if close == b'}' { "an object is not closed" } else { "an array is not closed" }),
    }
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        Error::json(format!("column {}: {}", error.offset + 1, error.message))
    }
}
