//! Parse JSON text directly into shredded columns, without a tree of values.
//!
//! A value without a column of its own is encoded at the end of the `value` column it belongs to; the name ids of its
//! objects are filled in at the end of the row, when the row's `metadata` is known.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, BinaryArray, LargeBinaryArray, StructArray};
use arrow_schema::DataType;

use super::keys::{KeyId, Keys, NO_KEY};
use super::residual::{Field, Frame, Residual};
use super::residual_rows::{GroupId, ResidualRow, ResidualRowFinder};
use super::scan::{self, JsonError, Number, Scan, error, skip_space};
use crate::error::{Error, Result};
use crate::shred::columns::{LeafValues, Slots, take_buffer};
use crate::shred::names::{NameId, Names};
use crate::shred::schema::{LeafType, ShreddingSchema};
use crate::shred::tree::{Node, NodeId, ROOT, Tree, Typed, metadata_dictionary};
use crate::value::column::Bytes;
use crate::value::encode;
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
    keys: Keys,
    residual: Residual,
    rows: Slots,
    /// The key of each row's `metadata`.
    metadata: Vec<i32>,
    id_size: usize,
    /// Whether a name of the row's encoded objects was not new to the row.
    repeats: bool,
    residual_rows: ResidualRowFinder,
    scratch: Vec<u8>,
}

impl JsonShredder {
    pub fn new(schema: ShreddingSchema, options: ParseOptions) -> Self {
        Self::with_columns(Tree::new(&schema), options)
    }

    /// Columns of text are given as Binary; they are UTF-8, because the rows are.
    pub fn with_text_as_binary(schema: &ShreddingSchema, options: ParseOptions) -> Self {
        Self::with_columns(Tree::with_text_as_binary(schema), options)
    }

    fn with_columns(tree: Tree, options: ParseOptions) -> Self {
        let mut shredder = JsonShredder {
            options,
            tree,
            names: Names::new(),
            keys: Keys::new(),
            residual: Residual::default(),
            rows: Slots::default(),
            metadata: Vec::new(),
            id_size: 1,
            repeats: false,
            residual_rows: ResidualRowFinder::default(),
            scratch: Vec::new(),
        };
        shredder.leave_out(&[]);
        shredder.learn_fields();
        shredder
    }

    /// Leave out the following rows that have a value other than Variant null in the `value` of one of these groups.
    pub fn leave_out(&mut self, groups: &[GroupId]) {
        self.residual_rows.find_in(groups, &self.tree);
    }

    /// Take the rows that were left out since the last call; they have numbers among all rows that were given.
    pub fn take_residual_rows(&mut self) -> Vec<ResidualRow> {
        self.residual_rows.take()
    }

    /// Reset the names, and intern those of the shredded fields.
    fn learn_fields(&mut self) {
        self.names = self.names.restart();
        for node in &self.tree.nodes {
            if let Typed::Object(object) = &node.typed {
                object.fields.iter().for_each(|(name, _)| _ = self.names.intern(name.as_bytes()));
            }
        }
        self.learn_keys();
    }

    /// Reset the keys, and add those of the shredded fields.
    fn learn_keys(&mut self) {
        self.keys = Keys::new();
        let mut open = vec![(ROOT, NO_KEY)];
        while let Some((node, key)) = open.pop() {
            match &self.tree.nodes[node].typed {
                Typed::Object(object) => open.extend(object.fields.iter().map(|(name, field)| {
                    let name = self.names.intern(name.as_bytes());
                    (*field, self.keys.add_field(key, name, *field, &self.names))
                })),
                Typed::List(list) => open.push((list.element, key)),
                Typed::Leaf(_) | Typed::None => {}
            }
        }
    }

    /// Add a row that is SQL NULL.
    pub fn push_null(&mut self) {
        self.metadata.push(0);
    }

    /// Add the row of `text`, which must be UTF-8, or leave it out. An error leaves the columns unchanged.
    pub fn push(&mut self, text: &[u8]) -> Scan<()> {
        if text.len() > MAX_SIZE {
            return error(0, format!("the value has {} bytes, and {MAX_SIZE} are the most", text.len()));
        }
        if self.names.is_full() {
            self.learn_fields();
        } else if self.keys.is_full() {
            self.learn_keys();
        }
        self.id_size = 1;
        loop {
            let row = self.metadata.len();
            if let Err(error) = self.row(text, row) {
                self.forget_row(row);
                return Err(error);
            }
            if self.residual.has_objects() {
                let count = self.names.row_count();
                let id_size = unsigned_size(count.saturating_sub(1));
                if id_size > self.id_size {
                    // Name ids need more bytes than were reserved.
                    self.forget_row(row);
                    self.id_size = id_size;
                    continue;
                }
                self.check_duplicates(row)?;
            }
            if self.residual_rows.is_residual() {
                self.residual_rows.end_row(row);
                self.forget_row(row);
            } else {
                self.end_row(row);
            }
            return Ok(());
        }
    }

    fn forget_row(&mut self, row: usize) {
        self.tree.truncate(ROOT, row);
        self.names.clear_row();
        self.residual.clear();
        self.repeats = false;
        self.residual_rows.clear_row();
    }

    fn row(&mut self, text: &[u8], row: usize) -> Scan<()> {
        let mut at = skip_space(text, 0);
        if !self.scalar(text, &mut at, ROOT, row)? {
            at = self.value(text, at, ROOT, row, NO_KEY, 0)?;
        }
        match skip_space(text, at) {
            end if end == text.len() => Ok(()),
            end => error(end, "something follows the value"),
        }
    }

    /// Read the value at `at` into the columns of `node`, which [`JsonShredder::scalar`] did not take. Return the
    /// position after it: a position that is passed by reference is kept in memory, and every step waits for it.
    fn value(
        &mut self,
        text: &[u8],
        mut at: usize,
        node: NodeId,
        slot: usize,
        parent: KeyId,
        depth: usize,
    ) -> Scan<usize> {
        let Some(&byte) = text.get(at) else {
            return error(at, "the text ends where a value should be");
        };
        match (byte, &self.tree.nodes[node].typed) {
            (b'{', Typed::Object(_)) => return self.object(text, at, node, slot, parent, depth),
            (b'[', Typed::List(_)) => return self.list(text, at, node, slot, parent, depth),
            _ => {}
        }
        let mut out = std::mem::take(&mut self.tree.nodes[node].value.data);
        let encoded = self.encode(text, &mut at, &mut out, node, parent, depth);
        self.tree.nodes[node].value.data = out;
        encoded?;
        self.end_value(node, slot);
        Ok(at)
    }

    /// Assign the bytes at the end of the `value` of `node` to `slot`.
    #[inline(always)]
    fn end_value(&mut self, node: NodeId, slot: usize) {
        let value = &mut self.tree.nodes[node].value;
        self.residual_rows.note(node, value);
        value.end_value(slot);
    }

    /// Read the value at `*at` into the leaf `node`, if it is of a kind that the leaf may take.
    #[inline(always)]
    fn scalar(&mut self, text: &[u8], at: &mut usize, node: NodeId, slot: usize) -> Scan<bool> {
        let Node { value, typed: Typed::Leaf(leaf), .. } = &mut self.tree.nodes[node] else {
            return Ok(false);
        };
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
                    self.end_value(node, slot);
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
    fn object(
        &mut self,
        text: &[u8],
        mut at: usize,
        node: NodeId,
        slot: usize,
        parent: KeyId,
        depth: usize,
    ) -> Scan<usize> {
        check_depth(depth, at)?;
        if let Typed::Object(object) = &mut self.tree.nodes[node].typed {
            object.slots.set(slot);
        }
        let mut leftovers = None;
        let mut key = NO_KEY;
        let mut more = open(text, &mut at, b'}')?;
        while more {
            let start = at;
            let (name, field);
            (key, name, field) = self.key(text, &mut at, parent, key)?;
            let known = self.names.note(name);
            match field {
                ROOT => {
                    self.repeats |= known;
                    at = self.leftover(text, at, node, (key, start), &mut leftovers, parent, depth)?;
                }
                field => {
                    // Only a name that the row has already can be a duplicate.
                    if known && self.tree.is_filled(field, slot) {
                        self.check_duplicate(name, start)?;
                        self.tree.truncate(field, slot);
                        self.residual.remove_truncated(&self.tree);
                        self.residual_rows.remove_truncated(&self.tree);
                    }
                    if !self.scalar(text, &mut at, field, slot)? {
                        at = self.value(text, at, field, slot, key, depth + 1)?;
                    }
                }
            }
            more = next(text, &mut at, b'}')?;
        }
        if let Some(frame) = leftovers {
            let mut out = std::mem::take(&mut self.tree.nodes[node].value.data);
            let closed = self.close_object(&mut out, frame, parent);
            self.tree.nodes[node].value.data = out;
            closed?;
            self.end_value(node, slot);
        }
        Ok(at)
    }

    /// Encode a field without a column, `field` of which are its key and where that is; `frame` is the object of such
    /// fields.
    #[allow(clippy::too_many_arguments)]
    fn leftover(
        &mut self,
        text: &[u8],
        mut at: usize,
        node: NodeId,
        (key, start): (KeyId, usize),
        frame: &mut Option<Frame>,
        parent: KeyId,
        depth: usize,
    ) -> Scan<usize> {
        let mut out = std::mem::take(&mut self.tree.nodes[node].value.data);
        let header = self.keys.get(parent).object_header;
        let frame = frame.get_or_insert_with(|| self.residual.begin(&mut out, node, header));
        let name = self.keys.get(key).name;
        self.residual.push_field(Field { name, offset: out.len() - frame.values, key: start });
        let encoded = self.encode(text, &mut at, &mut out, node, key, depth + 1);
        self.tree.nodes[node].value.data = out;
        encoded.map(|()| at)
    }

    fn list(
        &mut self,
        text: &[u8],
        mut at: usize,
        node: NodeId,
        slot: usize,
        parent: KeyId,
        depth: usize,
    ) -> Scan<usize> {
        check_depth(depth, at)?;
        let Typed::List(list) = &self.tree.nodes[node].typed else { return Ok(at) };
        let (element, mut end) = (list.element, list.next_element());
        let mut more = open(text, &mut at, b']')?;
        while more {
            if !self.scalar(text, &mut at, element, end)? {
                at = self.value(text, at, element, end, parent, depth + 1)?;
            }
            end += 1;
            more = next(text, &mut at, b']')?;
        }
        if let Typed::List(list) = &mut self.tree.nodes[node].typed {
            list.end_list(slot, end);
        }
        Ok(at)
    }

    /// Encode the value at `*at`, whose key is `parent`, to the end of `out`, which is the data of the `value` of
    /// `node`.
    #[inline(always)]
    fn encode(
        &mut self,
        text: &[u8],
        at: &mut usize,
        out: &mut Vec<u8>,
        node: NodeId,
        parent: KeyId,
        depth: usize,
    ) -> Scan<()> {
        match text.get(*at) {
            Some(b'"') => push_string(out, text, at, &mut self.scratch, encode::string_header),
            Some(b'-' | b'0'..=b'9') => {
                push_number(out, scan::number(text, at, self.options.doubles)?);
                Ok(())
            }
            first => {
                *at = match first {
                    Some(b'{') => self.encode_object(text, *at, out, node, parent, depth)?,
                    Some(b'[') => self.encode_array(text, *at, out, node, parent, depth)?,
                    _ => encode_literal(text, *at, out)?,
                };
                Ok(())
            }
        }
    }

    #[inline(never)]
    fn encode_object(
        &mut self,
        text: &[u8],
        mut at: usize,
        out: &mut Vec<u8>,
        node: NodeId,
        parent: KeyId,
        depth: usize,
    ) -> Scan<usize> {
        check_depth(depth, at)?;
        let frame = self.residual.begin(out, node, self.keys.get(parent).object_header);
        let mut key = NO_KEY;
        let mut more = open(text, &mut at, b'}')?;
        while more {
            let start = at;
            let name;
            (key, name, _) = self.key(text, &mut at, parent, key)?;
            self.repeats |= self.names.note(name);
            self.residual.push_field(Field { name, offset: out.len() - frame.values, key: start });
            self.encode(text, &mut at, out, node, key, depth + 1)?;
            more = next(text, &mut at, b'}')?;
        }
        self.close_object(out, frame, parent)?;
        Ok(at)
    }

    #[inline(never)]
    fn encode_array(
        &mut self,
        text: &[u8],
        mut at: usize,
        out: &mut Vec<u8>,
        node: NodeId,
        parent: KeyId,
        depth: usize,
    ) -> Scan<usize> {
        check_depth(depth, at)?;
        let frame = self.residual.begin(out, node, self.keys.get(parent).array_header);
        let mut more = open(text, &mut at, b']')?;
        while more {
            self.residual.push_element(out.len() - frame.values);
            self.encode(text, &mut at, out, node, parent, depth + 1)?;
            more = next(text, &mut at, b']')?;
        }
        let header = self.residual.end_array(out, frame);
        self.keys.get_mut(parent).array_header = header;
        Ok(at)
    }

    /// Read the key whose opening quote is at `*at`, and its colon; `*at` is then at the value. Return the key, its name
    /// and the node of its shredded field.
    #[inline(always)]
    fn key(
        &mut self,
        text: &[u8],
        at: &mut usize,
        parent: KeyId,
        previous: KeyId,
    ) -> Scan<(KeyId, NameId, NodeId)> {
        let found = self.keys.read(text, at, parent, previous, &mut self.names)?;
        if text.get(*at) != Some(&b':') {
            *at = skip_space(text, *at);
            if text.get(*at) != Some(&b':') {
                return error(*at, "a key needs a colon after it");
            }
        }
        *at = skip_space(text, *at + 1);
        Ok(found)
    }

    fn check_duplicate(&self, name: NameId, key: usize) -> Scan<()> {
        if self.options.last_duplicate {
            return Ok(());
        }
        let name = String::from_utf8_lossy(self.names.text(name));
        let message = format!("an object has two fields called {name:?}").into();
        Err(Box::new(JsonError { message, offset: key, is_duplicate: true }))
    }

    /// End the object of `frame`, which is at `parent`.
    fn close_object(&mut self, out: &mut Vec<u8>, frame: Frame, parent: KeyId) -> Scan<()> {
        if self.options.last_duplicate {
            self.residual.keep_last(frame);
        }
        if out.len() - frame.values > MAX_SIZE {
            return error(0, format!("the value takes more than {MAX_SIZE} bytes as a Variant"));
        }
        let header = self.residual.end_object(out, frame, self.id_size);
        self.keys.get_mut(parent).object_header = header;
        Ok(())
    }

    /// Write the `metadata` of the row, and the headers of its encoded objects.
    fn end_row(&mut self, row: usize) {
        let count = self.names.row_count();
        let key = self.names.end_row();
        self.metadata.push(key);
        self.rows.set(row);
        self.repeats = false;
        if self.residual.has_objects() {
            self.residual.write_headers(&mut self.tree, &mut self.names, count);
            self.residual.clear();
        }
    }

    /// Reject a row that has an encoded object with two fields of one name.
    fn check_duplicates(&mut self, row: usize) -> Scan<()> {
        if self.repeats
            && !self.options.last_duplicate
            && let Some(Field { name, key, .. }) = self.residual.find_duplicate()
        {
            let found = self.check_duplicate(name, key);
            self.forget_row(row);
            return found;
        }
        Ok(())
    }

    /// The rows added so far as one shredded group; the shredder is empty afterwards.
    pub fn take(&mut self) -> Result<StructArray> {
        let length = self.metadata.len();
        let metadata = metadata_dictionary(take_buffer(&mut self.metadata), self.names.take_dictionary())?;
        let nulls = match self.rows.count() {
            count if count == length => {
                self.rows.clear();
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
    mut invalid: impl FnMut(usize, Box<JsonError>),
) -> Result<()> {
    let text = text_bytes(text)?;
    let rows = Bytes::new(&text)?;
    let is_utf8 = is_utf8(&text);
    for row in 0..text.len() {
        let parsed = match rows.get(row) {
            None => {
                shredder.push_null();
                continue;
            }
            Some(bytes) if is_utf8 => shredder.push(bytes),
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

/// Whether all rows are UTF-8, as far as one check of all their bytes can tell: it is faster than one of each.
fn is_utf8(text: &ArrayRef) -> bool {
    let Some(rows) = text.as_binary_opt::<i32>() else { return false };
    let (offsets, values) = (rows.value_offsets(), rows.value_data());
    let bounds = |offsets: &[i32]| Some((*offsets.first()? as usize, *offsets.last()? as usize));
    let Some((start, end)) = bounds(offsets) else { return false };
    simdutf8::basic::from_utf8(&values[start..end])
        .is_ok_and(|text| offsets.iter().all(|&offset| text.is_char_boundary(offset as usize - start)))
}

fn check_utf8(text: &[u8]) -> Scan<()> {
    match simdutf8::compat::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(cause) => error(cause.valid_up_to(), "the text is not UTF-8"),
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

/// Append the literal at `at`. Return the position after it.
fn encode_literal(text: &[u8], mut at: usize, out: &mut Vec<u8>) -> Scan<usize> {
    match text.get(at) {
        Some(b't') => {
            encode::scalar(out, &Value::Boolean(true));
            literal(text, &mut at, b"true")?
        }
        Some(b'f') => {
            encode::scalar(out, &Value::Boolean(false));
            literal(text, &mut at, b"false")?
        }
        Some(b'n') => {
            out.extend_from_slice(value::NULL);
            literal(text, &mut at, b"null")?
        }
        Some(_) => return error(at, "no JSON value begins like this"),
        None => return error(at, "the text ends where a value should be"),
    }
    Ok(at)
}

#[inline(always)]
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

impl From<Box<JsonError>> for Error {
    fn from(error: Box<JsonError>) -> Self {
        Error::json(format!("column {}: {}", error.offset + 1, error.message))
    }
}
