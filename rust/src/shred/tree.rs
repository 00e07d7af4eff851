//! The columns of one shredded Variant column, as a tree that mirrors its shredding schema.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BinaryArray, DictionaryArray, Int32Array, ListArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::columns::{BinaryColumn, LeafColumn, Slots, take_buffer};
use super::schema::{LeafType, ShreddingSchema};
use crate::error::Result;

/// The position of a node in its [`Tree`].
pub type NodeId = usize;

pub const ROOT: NodeId = 0;

/// A `value` column and its `typed_value`.
#[derive(Debug)]
pub struct Node {
    pub value: BinaryColumn,
    pub typed: Typed,
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
}

#[derive(Debug)]
pub struct ListColumn {
    pub slots: Slots,
    offsets: Vec<i32>,
    pub element: NodeId,
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
    schema: ShreddingSchema,
    pub nodes: Vec<Node>,
    /// A column of nulls, which all nodes without `value` share: in most files, that is nearly all of them.
    no_values: Option<ArrayRef>,
}

impl Tree {
    pub fn new(schema: ShreddingSchema) -> Self {
        let mut nodes = Vec::new();
        add_node(&mut nodes, &schema);
        Tree { schema, nodes, no_values: None }
    }

    /// Whether `slot`, the newest one, has a value at `node`.
    pub fn is_filled(&self, node: NodeId, slot: usize) -> bool {
        let Node { value, typed } = &self.nodes[node];
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
        self.nodes[node].value.truncate(slot);
        let children: Vec<(NodeId, usize)> = match &mut self.nodes[node].typed {
            Typed::None => return,
            Typed::Leaf(leaf) => return leaf.truncate(slot),
            Typed::Object(object) => {
                object.slots.truncate(slot);
                object.fields.iter().map(|&(_, field)| (field, slot)).collect()
            }
            Typed::List(list) => {
                let count = list.slots.truncate(slot);
                list.offsets.truncate(count + 1);
                vec![(list.element, list.next_element())]
            }
        };
        children.into_iter().for_each(|(child, slot)| self.truncate(child, slot));
    }

    /// The Arrow fields of the group that [`Tree::take`] gives.
    pub fn fields(schema: &ShreddingSchema, metadata: DataType) -> Fields {
        let metadata = Field::new("metadata", metadata, false);
        match schema.typed_value_field() {
            Some(typed_value) => {
                Fields::from(vec![metadata, Field::new("value", DataType::Binary, true), typed_value])
            }
            None => Fields::from(vec![metadata, Field::new("value", DataType::Binary, false)]),
        }
    }

    /// The group of `length` rows; the tree is empty afterwards.
    pub fn take(
        &mut self,
        length: usize,
        metadata: ArrayRef,
        nulls: Option<NullBuffer>,
    ) -> Result<StructArray> {
        let fields = Self::fields(&self.schema, metadata.data_type().clone());
        let mut children = vec![metadata];
        children.extend(self.take_group(ROOT, length)?);
        Ok(StructArray::try_new(fields, children, nulls)?)
    }

    /// `value`, and `typed_value` when there is one.
    fn take_group(&mut self, node: NodeId, length: usize) -> Result<Vec<ArrayRef>> {
        let value = self.take_value(node, length)?;
        Ok(match self.take_typed(node, length)? {
            Some(typed_value) => vec![value, typed_value],
            None => vec![value],
        })
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
            Typed::Leaf(leaf) => leaf.take(length).map(Some),
            Typed::Object(object) => {
                let nulls = object.slots.take(length);
                let fields = object.fields.clone();
                self.take_object(&fields, length, nulls).map(Some)
            }
            Typed::List(list) => {
                let nulls = list.slots.take(length);
                let offsets = take_buffer(&mut list.offsets);
                list.offsets.push(0);
                let element = list.element;
                self.take_list(element, &offsets, nulls).map(Some)
            }
        }
    }

    fn take_object(
        &mut self,
        fields: &[(String, NodeId)],
        length: usize,
        nulls: NullBuffer,
    ) -> Result<ArrayRef> {
        let mut groups = Vec::with_capacity(fields.len());
        let mut children: Vec<ArrayRef> = Vec::with_capacity(fields.len());
        for (name, field) in fields {
            let group = struct_of(self.take_group(*field, length)?)?;
            groups.push(Field::new(name, group.data_type().clone(), false));
            children.push(Arc::new(group));
        }
        Ok(Arc::new(StructArray::try_new(groups.into(), children, Some(nulls))?))
    }

    fn take_list(&mut self, element: NodeId, ends: &[i32], nulls: NullBuffer) -> Result<ArrayRef> {
        let length = ends.last().map_or(0, |&end| end as usize);
        let group = struct_of(self.take_group(element, length)?)?;
        let mut offsets = Vec::with_capacity(nulls.len() + 1);
        let mut next = 0;
        for slot in nulls.valid_indices() {
            offsets.resize(slot + 1, ends[next]);
            next += 1;
        }
        offsets.resize(nulls.len() + 1, ends[next]);
        let field = Field::new("element", group.data_type().clone(), false);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(ListArray::try_new(Arc::new(field), offsets, Arc::new(group), Some(nulls))?))
    }
}

fn add_node(nodes: &mut Vec<Node>, schema: &ShreddingSchema) -> NodeId {
    let id = nodes.len();
    nodes.push(Node { value: BinaryColumn::default(), typed: Typed::None });
    nodes[id].typed = match schema {
        ShreddingSchema::Untyped => Typed::None,
        ShreddingSchema::Leaf(leaf) => Typed::Leaf(LeafColumn::new(*leaf)),
        ShreddingSchema::Object(fields) => {
            let fields =
                fields.iter().map(|(name, schema)| (name.clone(), add_node(nodes, schema))).collect();
            Typed::Object(ObjectColumn { slots: Slots::default(), fields })
        }
        ShreddingSchema::List(element) => {
            let element = add_node(nodes, element);
            Typed::List(ListColumn { slots: Slots::default(), offsets: vec![0], element })
        }
    };
    id
}

/// The group of a field or an element, from `value` and perhaps `typed_value`.
fn struct_of(children: Vec<ArrayRef>) -> Result<StructArray> {
    let fields: Fields = children
        .iter()
        .zip(["value", "typed_value"])
        .map(|(child, name)| child_field(name, child.data_type()))
        .collect();
    Ok(StructArray::try_new(fields, children, None)?)
}

fn child_field(name: &str, data_type: &DataType) -> Field {
    match data_type {
        DataType::FixedSizeBinary(16) => LeafType::Uuid.to_arrow(name),
        _ => Field::new(name, data_type.clone(), true),
    }
}

/// `metadata` as a dictionary: `keys` by row, which are 0 where the row is SQL NULL.
pub fn metadata_dictionary(keys: Vec<i32>, mut values: Vec<Vec<u8>>) -> Result<ArrayRef> {
    if values.is_empty() {
        values.push(crate::value::metadata::EMPTY.to_vec());
    }
    let values = BinaryArray::from_iter_values(values);
    let keys = Int32Array::try_new(ScalarBuffer::from(keys), None)?;
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values))?))
}
