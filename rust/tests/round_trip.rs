//! Unshredding restores every value, whatever schema it was shredded with.

use std::collections::BTreeMap;
use std::sync::Arc;

use _native::shred::unshred::{to_json, unshred};
use _native::shred::variants::shred;
use _native::shred::{LeafType, Numeric, OnConflict, ShreddingSchema};
use _native::value::Zone;
use _native::value::encode::{self, Layout};
use _native::value::{Decimal, Metadata, Value, metadata, validate};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, StructArray};
use arrow_buffer::NullBuffer;
use proptest::prelude::*;

/// Names that values and schemas share, unsorted.
const NAMES: [&str; 6] = ["b", "a", "", "é", "\u{10000}", "\u{FFFD}"];

/// A value to encode: scalars as bytes, names as indices into [`NAMES`].
#[derive(Debug, Clone)]
enum Tree {
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
fn scalar() -> impl Strategy<Value = Vec<u8>> {
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

fn tree() -> impl Strategy<Value = Tree> {
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

fn schema() -> impl Strategy<Value = ShreddingSchema> {
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
fn schema_of(tree: &Tree) -> ShreddingSchema {
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

fn variants(rows: &[Option<Tree>]) -> StructArray {
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

/// Return whether two values are equal. Exact numbers are compared by value unless they are shredded strictly; all
/// other values by type and bits (E-Q1 and P-T1 of protocol_fixtures/README.md).
fn same(a: (&Metadata<'_>, &[u8]), b: (&Metadata<'_>, &[u8]), numeric: Numeric) -> bool {
    match (Value::decode(a.1).unwrap(), Value::decode(b.1).unwrap()) {
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.fields().zip(y.fields()).all(|(x, y)| {
                    let ((i, v), (j, w)) = (x.unwrap(), y.unwrap());
                    a.0.get(i) == b.0.get(j) && same((a.0, v), (b.0, w), numeric)
                })
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len()
                && x.elements()
                    .zip(y.elements())
                    .all(|(v, w)| same((a.0, v.unwrap()), (b.0, w.unwrap()), numeric))
        }
        (x, y) => match (exact(&x), exact(&y)) {
            (Some(x), Some(y)) if numeric == Numeric::Value => x == y,
            (Some(_), Some(_)) => a.1 == b.1,
            (None, None) => a.1 == b.1,
            _ => false,
        },
    }
}

/// Return an exact number without trailing zeros.
fn exact(value: &Value<'_>) -> Option<(i128, u8)> {
    let (mut unscaled, mut scale) = match *value {
        Value::Int8(v) => (v.into(), 0),
        Value::Int16(v) => (v.into(), 0),
        Value::Int32(v) => (v.into(), 0),
        Value::Int64(v) => (v.into(), 0),
        Value::Decimal(Decimal { unscaled, scale }) => (unscaled, scale),
        _ => return None,
    };
    while scale > 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    Some((unscaled, scale))
}

fn check(rows: &[Option<Tree>], schema: ShreddingSchema, numeric: Numeric) -> Result<(), TestCaseError> {
    let before = variants(rows);
    let shredded = shred(&before, schema, numeric).unwrap();
    let after = unshred(&shredded, OnConflict::Error).unwrap();
    prop_assert_eq!(after.nulls(), before.nulls());
    let column = |array: &StructArray, index: usize| array.column(index).as_binary::<i32>().clone();
    let (names, values) = (column(&before, 0), column(&before, 1));
    let (new_names, new_values) = (column(&after, 0), column(&after, 1));
    for row in (0..before.len()).filter(|&row| before.is_valid(row)) {
        let (a, b) =
            (Metadata::parse(names.value(row)).unwrap(), Metadata::parse(new_names.value(row)).unwrap());
        prop_assert_eq!(validate(&b, new_values.value(row)), Ok(()));
        let is_same = same((&a, values.value(row)), (&b, new_values.value(row)), numeric);
        prop_assert!(is_same, "{:02x?} became {:02x?}", values.value(row), new_values.value(row));
    }
    prop_assert_eq!(
        to_json(&shredded, OnConflict::Error, &Zone::UTC),
        to_json(&before, OnConflict::Error, &Zone::UTC)
    );
    Ok(())
}

proptest! {
    #[test]
    fn unshred_undoes_shred_for_any_schema(
        rows in prop::collection::vec(prop::option::weighted(0.9, tree()), 0..6),
        schema in schema(),
    ) {
        check(&rows, schema.clone(), Numeric::Value)?;
        check(&rows, schema, Numeric::Strict)?;
    }

    #[test]
    fn unshred_undoes_shred_for_a_schema_that_fits_a_row(
        rows in prop::collection::vec(prop::option::weighted(0.9, tree()), 1..6),
    ) {
        let schema = rows[0].as_ref().map_or(ShreddingSchema::Untyped, schema_of);
        check(&rows, schema.clone(), Numeric::Value)?;
        check(&rows, schema, Numeric::Strict)?;
    }
}
