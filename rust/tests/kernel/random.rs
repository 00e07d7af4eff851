//! Random Variants and shredding schemas that fit them, or not.

use std::collections::BTreeMap;
use std::sync::Arc;

use _native::shred::{LeafType, ShreddingSchema};
use _native::value::encode::{self, Layout};
use _native::value::{Decimal, Value, metadata};
use arrow_array::{ArrayRef, BinaryArray, StructArray};
use arrow_buffer::NullBuffer;
use proptest::prelude::*;

/// Names that values and schemas share, unsorted.
pub const NAMES: [&str; 6] = ["b", "a", "", "é", "\u{10000}", "\u{FFFD}"];

/// A value to encode: scalars as bytes, names as indices into [`NAMES`].
#[derive(Debug, Clone)]
pub enum Tree {
    Scalar(Vec<u8>),
    Array(Vec<Tree>),
    Object(BTreeMap<&'static str, Tree>),
}

impl Tree {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Tree::Scalar(bytes) => out.extend_from_slice(bytes),
            Tree::Array(elements) => {
                let (offsets, values) = encode_all(elements.iter());
                Layout::array(elements.len(), values.len()).write_array(out, offsets.into_iter());
                out.extend(values);
            }
            Tree::Object(fields) => {
                let (offsets, values) = encode_all(fields.values());
                let ids = fields.keys().map(|name| NAMES.iter().position(|known| known == name).unwrap());
                let entries: Vec<(usize, usize)> = ids.zip(offsets).collect();
                Layout::object(fields.len(), values.len(), 1).write_object(out, entries.iter().copied());
                out.extend(values);
            }
        }
    }
}

fn encode_all<'t>(trees: impl Iterator<Item = &'t Tree>) -> (Vec<usize>, Vec<u8>) {
    let (mut offsets, mut values) = (Vec::new(), Vec::new());
    for tree in trees {
        offsets.push(values.len());
        tree.encode(&mut values);
    }
    (offsets, values)
}

/// The bytes of a scalar of any type, with few values per type, so that one column mixes types.
pub fn scalar() -> impl Strategy<Value = Vec<u8>> {
    let micros_per_day = 86_400_000_000_i64;
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<i8>().prop_map(Value::Int8),
        any::<i16>().prop_map(Value::Int16),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<f32>().prop_map(Value::Float),
        any::<f64>().prop_map(Value::Double),
        any::<i32>().prop_map(Value::Date),
        (0..micros_per_day).prop_map(Value::Time),
        any::<i64>().prop_map(Value::Timestamp),
        any::<i64>().prop_map(Value::TimestampNtz),
        any::<i64>().prop_map(Value::TimestampNanos),
        any::<i64>().prop_map(Value::TimestampNtzNanos),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        Just(Value::Binary(&[0xFF, 0x00])),
        Just(Value::String("")),
        Just(Value::String("text of a string")),
        Just(Value::String("a string of more than sixty-four bytes, which has a header of four more bytes")),
        (-10_000..10_000_i128, 0..6_u8).prop_map(|(unscaled, scale)| decimal(unscaled, scale)),
        (any::<i64>(), 0..=18_u8).prop_map(|(unscaled, scale)| decimal(i128::from(unscaled), scale)),
        (-(10_i128.pow(38)) + 1..10_i128.pow(38), 0..=38_u8)
            .prop_map(|(unscaled, scale)| decimal(unscaled, scale)),
    ];
    value.prop_map(|value| {
        let mut bytes = Vec::new();
        encode::scalar(&mut bytes, &value);
        bytes
    })
}

fn decimal<'v>(unscaled: i128, scale: u8) -> Value<'v> {
    Value::Decimal(Decimal { unscaled, scale })
}

pub fn tree() -> impl Strategy<Value = Tree> {
    let leaf = scalar().prop_map(Tree::Scalar);
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::Array),
            prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner, 0..5).prop_map(Tree::Object),
        ]
    })
}

fn leaf_type() -> impl Strategy<Value = LeafType> {
    use LeafType::*;
    let decimal = (1..=38_u8)
        .prop_flat_map(|precision| (0..=precision).prop_map(move |scale| Decimal { precision, scale }));
    prop_oneof![
        prop::sample::select(vec![
            Boolean,
            Int8,
            Int16,
            Int32,
            Int64,
            Float,
            Double,
            Date,
            Time,
            Timestamp,
            TimestampNtz,
            TimestampNanos,
            TimestampNtzNanos,
            Binary,
            String,
            Uuid
        ]),
        decimal
    ]
}

pub fn schema() -> impl Strategy<Value = ShreddingSchema> {
    let leaf = prop_oneof![
        1 => Just(ShreddingSchema::Untyped),
        4 => leaf_type().prop_map(ShreddingSchema::Leaf)
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            inner.clone().prop_map(|element| ShreddingSchema::List(Box::new(element))),
            prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner, 1..5).prop_map(|fields| {
                ShreddingSchema::Object(fields.into_iter().map(|(name, s)| (name.to_owned(), s)).collect())
            }),
        ]
    })
}

/// Return a schema that fits at least a part of the tree.
pub fn schema_of(tree: &Tree) -> ShreddingSchema {
    match tree {
        Tree::Array(elements) => {
            ShreddingSchema::List(Box::new(elements.first().map_or(ShreddingSchema::Untyped, schema_of)))
        }
        Tree::Object(fields) if !fields.is_empty() => {
            let shredded = fields.iter().step_by(2);
            ShreddingSchema::Object(
                shredded.map(|(name, field)| ((*name).to_owned(), schema_of(field))).collect(),
            )
        }
        Tree::Object(_) => ShreddingSchema::Untyped,
        Tree::Scalar(bytes) => match Value::decode(bytes).unwrap() {
            Value::Boolean(_) => ShreddingSchema::Leaf(LeafType::Boolean),
            Value::Int8(_) | Value::Int16(_) => ShreddingSchema::Leaf(LeafType::Int64),
            Value::Int32(_) | Value::Int64(_) => ShreddingSchema::Leaf(LeafType::Int32),
            Value::Decimal(_) => ShreddingSchema::Leaf(LeafType::Decimal { precision: 38, scale: 10 }),
            Value::Double(_) => ShreddingSchema::Leaf(LeafType::Double),
            Value::String(_) => ShreddingSchema::Leaf(LeafType::String),
            Value::TimestampNanos(_) => ShreddingSchema::Leaf(LeafType::Timestamp),
            _ => ShreddingSchema::Untyped,
        },
    }
}

pub fn variants(rows: &[Option<Tree>]) -> StructArray {
    let mut names = Vec::new();
    metadata::write(&mut names, NAMES.iter().copied(), false);
    let values: Vec<Vec<u8>> = rows
        .iter()
        .map(|row| {
            let mut value = Vec::new();
            row.as_ref().unwrap_or(&Tree::Scalar(vec![0x00])).encode(&mut value);
            value
        })
        .collect();
    let metadata: ArrayRef = Arc::new(BinaryArray::from_iter_values(rows.iter().map(|_| &names)));
    let value: ArrayRef = Arc::new(BinaryArray::from_iter_values(values));
    let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
    StructArray::try_new(_native::value::cast::variant_fields(), vec![metadata, value], Some(nulls)).unwrap()
}
