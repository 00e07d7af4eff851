//! The objects and arrays of a row that are encoded into `value` columns.
//!
//! Values are appended to the column as they are parsed. Each container leaves a gap for its header, as large as the
//! last one at its path was. The headers of objects are written at the end of the row, when its name ids are known.

use crate::shred::names::{NameId, Names};
use crate::shred::tree::{NodeId, Tree};
use crate::value::encode::Layout;

/// The objects and arrays that are encoded in this row.
#[derive(Debug, Default)]
pub struct Residual {
    /// Fields of the open objects, innermost last.
    open: Vec<Field>,
    /// Offsets of the elements of the open arrays.
    elements: Vec<usize>,
    /// Fields of the closed objects.
    fields: Vec<Field>,
    objects: Vec<ResidualObject>,
    header: Vec<u8>,
    by_id: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: NameId,
    /// In the values of its object.
    pub offset: usize,
    /// The position of its key in the text.
    pub key: usize,
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
    /// Whether the object was removed, because a later field has the name of the one that it is in.
    is_removed: bool,
}

/// A container that is being encoded at the end of the data of a node's `value`.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    node: NodeId,
    start: usize,
    /// Where its values start, after the gap for its header.
    pub values: usize,
    /// The lengths of the residual when it began: the parts that belong to outer containers.
    open: usize,
    elements: usize,
    objects: usize,
}

impl Residual {
    /// Begin a container at the end of `out`, with a gap of `header` bytes.
    #[inline(always)]
    pub fn begin(&self, out: &mut Vec<u8>, node: NodeId, header: u32) -> Frame {
        let start = out.len();
        let values = start + header as usize;
        out.resize(values, 0);
        let (open, elements, objects) = (self.open.len(), self.elements.len(), self.objects.len());
        Frame { node, start, values, open, elements, objects }
    }

    #[inline(always)]
    pub fn push_field(&mut self, field: Field) {
        self.open.push(field);
    }

    #[inline(always)]
    pub fn push_element(&mut self, offset: usize) {
        self.elements.push(offset);
    }

    pub fn has_objects(&self) -> bool {
        !self.objects.is_empty()
    }

    pub fn clear(&mut self) {
        self.open.clear();
        self.elements.clear();
        self.fields.clear();
        self.objects.clear();
    }

    /// End an object, whose header stays blank. Return the size of the header.
    pub fn end_object(&mut self, out: &mut Vec<u8>, frame: Frame, id_size: usize) -> u32 {
        let layout = Layout::object(self.open.len() - frame.open, out.len() - frame.values, id_size);
        let size = layout.header_size();
        self.fit_gap(out, frame, size);
        let fields = self.fields.len();
        self.fields.extend_from_slice(&self.open[frame.open..]);
        self.open.truncate(frame.open);
        let (node, position) = (frame.node, frame.start);
        self.objects.push(ResidualObject { node, position, layout, fields, is_removed: false });
        size as u32
    }

    /// End an array. Return the size of its header.
    pub fn end_array(&mut self, out: &mut Vec<u8>, frame: Frame) -> u32 {
        let layout = Layout::array(self.elements.len() - frame.elements, out.len() - frame.values);
        let size = layout.header_size();
        self.fit_gap(out, frame, size);
        let offsets = &self.elements[frame.elements..];
        layout.fill_array(&mut out[frame.start..frame.start + size], offsets);
        self.elements.truncate(frame.elements);
        size as u32
    }

    /// Make the gap of a container as large as its header, and move what follows.
    fn fit_gap(&mut self, out: &mut Vec<u8>, frame: Frame, size: usize) {
        let (end, values) = (out.len(), frame.start + size);
        if values == frame.values {
            return;
        }
        if values > frame.values {
            out.resize(end + values - frame.values, 0);
        }
        out.copy_within(frame.values..end, values);
        out.truncate(end - frame.values + values);
        for object in &mut self.objects[frame.objects..] {
            if object.node == frame.node {
                object.position = object.position - frame.values + values;
            }
        }
    }

    /// Of the open fields of an object with one name, keep the last. The bytes of the others stay, which the encoding
    /// allows.
    pub fn keep_last(&mut self, frame: Frame) {
        let fields = &mut self.open[frame.open..];
        fields.sort_unstable_by_key(|field| (field.name, std::cmp::Reverse(field.offset)));
        let mut kept = frame.open;
        for index in frame.open..self.open.len() {
            if index == frame.open || self.open[index].name != self.open[kept - 1].name {
                self.open[kept] = self.open[index];
                kept += 1;
            }
        }
        self.open.truncate(kept);
    }

    /// Remove the objects that are no longer in the columns of `tree`.
    pub fn remove_truncated(&mut self, tree: &Tree) {
        for object in &mut self.objects {
            object.is_removed |= object.position >= tree.nodes[object.node].value.data.len();
        }
    }

    /// Find a field whose object has another one of its name before it.
    pub fn find_duplicate(&mut self) -> Option<Field> {
        let Residual { fields, objects, .. } = self;
        objects.iter().find_map(|object| {
            let fields = &mut fields[object.fields..object.fields + object.layout.length];
            // Names are numbered as they are first seen, so most objects have them in order.
            if fields.is_sorted_by(|a, b| a.name < b.name) {
                return None;
            }
            fields.sort_unstable_by_key(|field| (field.name, field.offset));
            fields.windows(2).find(|pair| pair[0].name == pair[1].name).map(|pair| pair[1])
        })
    }

    /// Write the headers of the objects with the ids that the names of the row, `count` of them, have in its
    /// `metadata`.
    pub fn write_headers(&mut self, tree: &mut Tree, names: &mut Names, count: usize) {
        names.rank_row();
        let Residual { fields, objects, header, by_id, .. } = self;
        by_id.resize(by_id.len().max(count), 0);
        for object in objects.iter().filter(|object| !object.is_removed) {
            let fields = &mut fields[object.fields..object.fields + object.layout.length];
            let data = &mut tree.nodes[object.node].value.data[object.position..];
            if count <= 64 {
                let mut present = 0_u64;
                for field in fields.iter() {
                    let id = names.local_id(field.name);
                    present |= 1 << id;
                    by_id[id] = field.offset;
                }
                let sorted = SetBits(present).map(|id| (id, by_id[id]));
                object.layout.fill_object(&mut data[..object.layout.header_size()], sorted);
                continue;
            }
            fields.sort_unstable_by_key(|field| names.local_id(field.name));
            header.clear();
            let fields = fields.iter().map(|field| (names.local_id(field.name), field.offset));
            object.layout.write_object(header, fields);
            data[..header.len()].copy_from_slice(header);
        }
    }
}

/// The positions of the bits of a word that are set, in ascending order.
struct SetBits(u64);

impl Iterator for SetBits {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let bit = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}
