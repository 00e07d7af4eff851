//! The columns of one shredded Variant column, as a tree that mirrors its shredding schema.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BinaryArray, DictionaryArray, Int32Array, ListArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::columns::{BinaryColumn, LeafColumn, Slots, take_buffer};
use super::schema::{LeafType, ShreddingSchema};
use crate::error::{Error, Result};

/// The position of a node in its [`Tree`].
pub type NodeId = usize;

pub const ROOT: NodeId = 0;

/// A `value` column and its `typed_value`.
#[derive(Debug)]
pub struct Node {
    pub value: BinaryColumn,
    pub typed: Typed,
    /// The Arrow fields of the group: `value`, and `typed_value` when there is one. All chunks share them, so that types
    /// are compared by their addresses.
    group: Fields,
}

#[derive(Debug)]
pub enum Typed {
    None,
    Leaf(LeafColumn),
    Object(ObjectColumn),
    List(ListColumn),
}

#[derive(Debug)]
pub struct ObjectColumn {
    pub slots: Slots,
    /// By name, in the order of the shredding schema.
    pub fields: Vec<(String, NodeId)>,
    /// The Arrow fields of their groups.
    groups: Fields,
}

#[derive(Debug)]
pub struct ListColumn {
    pub slots: Slots,
    offsets: Vec<i32>,
    pub element: NodeId,
    /// The Arrow field of the group of an element.
    group: FieldRef,
}

impl ListColumn {
    /// The slot of the element that is added next.
    pub fn next_element(&self) -> usize {
        self.offsets.last().map_or(0, |&end| end as usize)
    }

    /// Assign the elements up to `end` to the list of `slot`.
    pub fn end_list(&mut self, slot: usize, end: usize) {
        self.slots.set(slot);
        self.offsets.push(end as i32);
    }
}

#[derive(Debug)]
pub struct Tree {
    /// The Arrow type of text.
    text: DataType,
    pub nodes: Vec<Node>,
    /// A column of nulls, which all nodes without `value` share: in most files, that is nearly all of them.
    no_values: Option<ArrayRef>,
}

impl Tree {
    pub fn new(schema: &ShreddingSchema) -> Self {
        Self::with_text(schema, DataType::Utf8)
    }

    /// Columns of text that is known to be UTF-8 are taken as Binary: Arrow checks text for each array.
    pub fn with_text_as_binary(schema: &ShreddingSchema) -> Self {
        Self::with_text(schema, DataType::Binary)
    }

    fn with_text(schema: &ShreddingSchema, text: DataType) -> Self {
        let mut nodes = Vec::new();
        add_node(&mut nodes, schema, &text);
        Tree { text, nodes, no_values: None }
    }

    /// Whether `slot`, the newest one, has a value at `node`.
    pub fn is_filled(&self, node: NodeId, slot: usize) -> bool {
        let Node { value, typed, .. } = &self.nodes[node];
        value.has_newest(slot)
            || match typed {
                Typed::None => false,
                Typed::Leaf(leaf) => leaf.has_newest(slot),
                Typed::Object(object) => object.slots.has_newest(slot),
                Typed::List(list) => list.slots.has_newest(slot),
            }
    }

    /// Remove `slot` and all later slots at `node` and below.
    pub fn truncate(&mut self, node: NodeId, slot: usize) {
        let Node { value, typed, .. } = &mut self.nodes[node];
        value.truncate(slot);
        match typed {
            Typed::None => {}
            Typed::Leaf(leaf) => leaf.truncate(slot),
            // An object that is missing has no fields.
            Typed::Object(object) if !object.slots.has_newest(slot) => {}
            Typed::Object(object) => {
                object.slots.truncate(slot);
                for field in 0..object.fields.len() {
                    if let Typed::Object(object) = &self.nodes[node].typed {
                        self.truncate(object.fields[field].1, slot);
                    }
                }
            }
            Typed::List(list) => {
                let count = list.slots.truncate(slot);
                list.offsets.truncate(count + 1);
                let (element, next) = (list.element, list.next_element());
                self.truncate(element, next);
            }
        }
    }

    /// The Arrow fields of the group that [`Tree::take`] gives.
    pub fn fields(&self, metadata: DataType) -> Fields {
        let metadata = Arc::new(Field::new("metadata", metadata, false));
        let group = &self.nodes[ROOT].group;
        match group.len() {
            1 => Fields::from(vec![metadata, Arc::new(Field::new("value", DataType::Binary, false))]),
            _ => [metadata].into_iter().chain(group.iter().cloned()).collect(),
        }
    }

    /// The group of `length` rows; the tree is empty afterwards.
    pub fn take(
        &mut self,
        length: usize,
        metadata: ArrayRef,
        nulls: Option<NullBuffer>,
    ) -> Result<StructArray> {
        let fields = self.fields(metadata.data_type().clone());
        let mut children = vec![metadata];
        self.take_children(ROOT, length, &mut children)?;
        Ok(StructArray::try_new(fields, children, nulls)?)
    }

    fn take_group(&mut self, node: NodeId, length: usize) -> Result<StructArray> {
        let mut children = Vec::with_capacity(2);
        self.take_children(node, length, &mut children)?;
        Ok(StructArray::try_new(self.nodes[node].group.clone(), children, None)?)
    }

    /// Add `value`, and `typed_value` when there is one.
    fn take_children(&mut self, node: NodeId, length: usize, children: &mut Vec<ArrayRef>) -> Result<()> {
        children.push(self.take_value(node, length)?);
        children.extend(self.take_typed(node, length)?);
        Ok(())
    }

    fn take_value(&mut self, node: NodeId, length: usize) -> Result<ArrayRef> {
        let value = &mut self.nodes[node].value;
        if length == 0 || !value.restart_if_empty() {
            return Ok(Arc::new(value.take_binary(length)?));
        }
        let shared = self.no_values.take().filter(|shared| shared.len() == length);
        let shared = shared.unwrap_or_else(|| Arc::new(BinaryArray::new_null(length)));
        Ok(self.no_values.insert(shared).clone())
    }

    fn take_typed(&mut self, node: NodeId, length: usize) -> Result<Option<ArrayRef>> {
        match &mut self.nodes[node].typed {
            Typed::None => Ok(None),
            Typed::Leaf(leaf) => leaf.take(length, &self.text).map(Some),
            Typed::Object(object) => {
                let nulls = object.slots.take(length);
                let fields: Vec<NodeId> = object.fields.iter().map(|&(_, field)| field).collect();
                let groups = object.groups.clone();
                self.take_object(&fields, groups, length, nulls).map(Some)
            }
            Typed::List(list) => {
                let nulls = list.slots.take(length);
                let offsets = take_buffer(&mut list.offsets);
                list.offsets.push(0);
                let (element, group) = (list.element, list.group.clone());
                self.take_list(element, group, &offsets, nulls).map(Some)
            }
        }
    }

    fn take_object(
        &mut self,
        fields: &[NodeId],
        groups: Fields,
        length: usize,
        nulls: NullBuffer,
    ) -> Result<ArrayRef> {
        let mut children: Vec<ArrayRef> = Vec::with_capacity(fields.len());
        for &field in fields {
            children.push(Arc::new(self.take_group(field, length)?));
        }
        Ok(Arc::new(StructArray::try_new(groups, children, Some(nulls))?))
    }

    fn take_list(
        &mut self,
        element: NodeId,
        group: FieldRef,
        ends: &[i32],
        nulls: NullBuffer,
    ) -> Result<ArrayRef> {
        let length = ends.last().map_or(0, |&end| end as usize);
        let elements = self.take_group(element, length)?;
        let mut offsets = Vec::with_capacity(nulls.len() + 1);
        let mut next = 0;
        for slot in nulls.valid_indices() {
            offsets.resize(slot + 1, ends[next]);
            next += 1;
        }
        offsets.resize(nulls.len() + 1, ends[next]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(ListArray::try_new(group, offsets, Arc::new(elements), Some(nulls))?))
    }
}

fn add_node(nodes: &mut Vec<Node>, schema: &ShreddingSchema, text: &DataType) -> NodeId {
    let id = nodes.len();
    nodes.push(Node { value: BinaryColumn::default(), typed: Typed::None, group: Fields::empty() });
    let name = "typed_value";
    let (typed, typed_value) = match schema {
        ShreddingSchema::Untyped => (Typed::None, None),
        ShreddingSchema::Leaf(leaf) => {
            let typed_value = match leaf {
                LeafType::String => Field::new(name, text.clone(), true),
                _ => leaf.to_arrow(name),
            };
            (Typed::Leaf(LeafColumn::new(*leaf)), Some(typed_value))
        }
        ShreddingSchema::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, schema)| (name.clone(), add_node(nodes, schema, text))).collect();
            let groups: Fields = fields.iter().map(|(name, field)| group_of(nodes, *field, name)).collect();
            let typed_value = Field::new(name, DataType::Struct(groups.clone()), true);
            (Typed::Object(ObjectColumn { slots: Slots::default(), fields, groups }), Some(typed_value))
        }
        ShreddingSchema::List(element) => {
            let element = add_node(nodes, element, text);
            let group = Arc::new(group_of(nodes, element, "element"));
            let typed_value = Field::new(name, DataType::List(group.clone()), true);
            let list = ListColumn { slots: Slots::default(), offsets: vec![0], element, group };
            (Typed::List(list), Some(typed_value))
        }
    };
    let value = Field::new("value", DataType::Binary, true);
    let group = [value].into_iter().chain(typed_value).collect();
    nodes[id] = Node { value: BinaryColumn::default(), typed, group };
    id
}

/// The group of `node` as a field called `name`.
fn group_of(nodes: &[Node], node: NodeId, name: &str) -> Field {
    Field::new(name, DataType::Struct(nodes[node].group.clone()), false)
}

/// The type of `metadata` as a dictionary.
pub fn shapes_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Binary))
}

/// `metadata` as a dictionary: `keys` by row, which are 0 where the row is SQL NULL.
pub fn metadata_dictionary(keys: Vec<i32>, mut values: Vec<Vec<u8>>) -> Result<ArrayRef> {
    if values.is_empty() {
        values.push(crate::value::metadata::EMPTY.to_vec());
    }
    let bytes: usize = values.iter().map(Vec::len).sum();
    i32::try_from(bytes).map_err(|_| Error::too_large())?;
    let values = BinaryArray::from_iter_values(values);
    let keys = Int32Array::try_new(ScalarBuffer::from(keys), None)?;
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values))?))
}
