//! Printing by column gives the same text and the same errors as printing row by row.

use std::sync::Arc;

use crate::random::{Tree, schema, schema_of, tree, variants};
use _native::shred::print::{to_json, to_json_in_ranges};
use _native::shred::variants::shred;
use _native::shred::{Numeric, OnConflict, ShreddingSchema};
use _native::value::Zone;
use arrow_array::builder::BinaryDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use proptest::prelude::*;

/// Values that are valid in any `value` column.
const VALID: [&[u8]; 7] = [
    &[0x00],
    &[0x0C, 1],
    &[0x05, b'x'],
    &[0x09, b'"', 0x01],
    // {"b": 1}, with a name that schemas use
    &[0x02, 1, 0, 0, 2, 0x0C, 1],
    // {"a": 1, "b": "x"}
    &[0x02, 2, 1, 0, 0, 2, 4, 0x0C, 1, 0x05, b'x'],
    // [1, [1, 1]], whose inner elements share bytes
    &[0x03, 2, 0, 2, 9, 0x0C, 1, 0x03, 2, 0, 0, 2, 0x0C, 1],
];

/// Values that no reader accepts.
const BROKEN: [&[u8]; 13] = [
    &[],
    // Strings that are not UTF-8.
    &[0x05, 0xC3],
    &[0x40, 1, 0, 0, 0, 0xFF],
    // A truncated integer, string and array.
    &[0x18, 1, 2],
    &[0x40, 9, 0, 0, 0, b'x'],
    &[0x03, 2, 0, 2, 9, 0x0C, 1],
    // A decimal with a scale of 39, a time after midnight, an unknown type.
    &[0x20, 39, 1, 0, 0, 0],
    &[0x44, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
    &[0x54],
    // Objects with a name twice, with an unknown name id, and with fields that share the bytes of an array.
    &[0x02, 2, 0, 0, 0, 2, 4, 0x0C, 1, 0x0C, 1],
    &[0x02, 1, 99, 0, 2, 0x0C, 1],
    &[0x02, 2, 1, 0, 0, 0, 3, 0x03, 0, 0],
    // An offset outside the array.
    &[0x03, 1, 7, 2, 0x0C, 1],
];

/// Pseudorandom numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// What to change in shredded columns.
struct Damage {
    random: Random,
    /// One in this many values is changed.
    rarity: usize,
    is_broken: bool,
}

impl Damage {
    fn nulls(&mut self, array: &dyn Array) -> Option<NullBuffer> {
        let is_valid = |row| array.is_valid(row) && !self.random.one_in(self.rarity);
        Some((0..array.len()).map(is_valid).collect())
    }

    /// A `value` column with other values, also where `typed_value` is not null.
    fn values(&mut self, array: &BinaryArray) -> ArrayRef {
        let value = |row| match self.random.one_in(self.rarity) {
            true if self.is_broken && self.random.one_in(2) => Some(BROKEN[self.random.below(BROKEN.len())]),
            true => Some(VALID[self.random.below(VALID.len())]),
            false => array.is_valid(row).then(|| array.value(row)),
        };
        Arc::new((0..array.len()).map(value).collect::<BinaryArray>())
    }

    fn group(&mut self, group: &StructArray, with_nulls: bool) -> StructArray {
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        for (field, column) in group.fields().iter().zip(group.columns()) {
            let column = match field.name().as_str() {
                "metadata" => dictionary(column),
                "value" => self.values(column.as_binary()),
                _ => self.column(column),
            };
            fields.push(Field::clone(field).with_data_type(column.data_type().clone()).with_nullable(true));
            columns.push(column);
        }
        let nulls = if with_nulls { self.nulls(group) } else { group.nulls().cloned() };
        StructArray::new(fields.into(), columns, nulls)
    }

    fn column(&mut self, column: &ArrayRef) -> ArrayRef {
        match column.data_type() {
            DataType::Struct(_) => {
                let with_nulls = self.random.one_in(4);
                Arc::new(self.group(column.as_struct(), with_nulls))
            }
            DataType::List(_) => {
                let list = column.as_list::<i32>();
                let elements = self.column(list.values());
                let field = Field::new("element", elements.data_type().clone(), true);
                let nulls = self.nulls(list);
                Arc::new(ListArray::new(Arc::new(field), list.offsets().clone(), elements, nulls))
            }
            _ => column.clone(),
        }
    }
}

fn dictionary(metadata: &ArrayRef) -> ArrayRef {
    let mut builder = BinaryDictionaryBuilder::<Int32Type>::new();
    metadata.as_binary::<i32>().iter().for_each(|bytes| builder.append_option(bytes));
    Arc::new(builder.finish())
}

fn assert_same(group: &StructArray) -> Result<(), TestCaseError> {
    for on_conflict in [OnConflict::Error, OnConflict::Typed] {
        let reference = to_json_in_ranges(group, on_conflict, &Zone::UTC, 0);
        for rows in [1, 3, 1000] {
            prop_assert_eq!(&to_json_in_ranges(group, on_conflict, &Zone::UTC, rows), &reference);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn columns_are_printed_as_rows_are(
        rows in prop::collection::vec(prop::option::weighted(0.9, tree()), 0..12),
        schema in schema(),
        (seed, rarity, is_broken) in (1..u64::MAX, 2..40_usize, any::<bool>()),
    ) {
        let schema = match rows.first() {
            Some(Some(row)) if seed % 2 == 0 => schema_of(row),
            _ => schema,
        };
        let shredded = shred(&variants(&rows), schema, Numeric::Value).unwrap();
        assert_same(&shredded)?;
        let mut damage = Damage { random: Random(seed), rarity, is_broken };
        assert_same(&damage.group(&shredded, true))?;
    }

    #[test]
    fn values_that_are_not_shredded_are_printed_as_by_the_reference(
        rows in prop::collection::vec(prop::option::weighted(0.9, tree()), 0..12),
        (seed, rarity, is_broken) in (1..u64::MAX, 2..40_usize, any::<bool>()),
    ) {
        let mut damage = Damage { random: Random(seed), rarity, is_broken };
        assert_same(&variants(&rows))?;
        assert_same(&damage.group(&variants(&rows), true))?;
    }
}

fn unshredded(values: &[&[u8]]) -> StructArray {
    let rows: Vec<Option<Tree>> = values.iter().map(|bytes| Some(Tree::Scalar(bytes.to_vec()))).collect();
    variants(&rows)
}

#[test]
fn every_broken_value_is_an_error_of_its_row() {
    for broken in BROKEN {
        let group = unshredded(&[VALID[1], VALID[5], broken, VALID[6]]);
        let error = to_json(&group, OnConflict::Error, &Zone::UTC).unwrap_err();
        assert_eq!(error.row(), Some(2), "{broken:02x?}: {error}");
        assert_eq!(Err(error), to_json_in_ranges(&group, OnConflict::Error, &Zone::UTC, 0));
    }
}

#[test]
fn every_valid_value_is_printed() {
    let text = to_json(&unshredded(&VALID), OnConflict::Error, &Zone::UTC).unwrap();
    let expected =
        ["null", "1", "\"x\"", "\"\\\"\\u0001\"", "{\"b\":1}", "{\"a\":1,\"b\":\"x\"}", "[1,[1,1]]"];
    assert_eq!(text.iter().flatten().collect::<Vec<_>>(), expected);
}

#[test]
fn many_ranges_of_rows_are_one_column() {
    let object = Tree::Object([("a", Tree::Scalar(vec![0x0C, 1]))].into());
    let rows: Vec<Option<Tree>> = (0..70_000)
        .map(|row| match row % 3 {
            0 => Some(object.clone()),
            1 => Some(Tree::Array(vec![object.clone(); row % 5])),
            _ => None,
        })
        .collect();
    for schema in [schema_of(&object), ShreddingSchema::List(Box::new(schema_of(&object)))] {
        let shredded = shred(&variants(&rows), schema, Numeric::Value).unwrap();
        let text = to_json(&shredded, OnConflict::Error, &Zone::UTC).unwrap();
        assert_eq!(text.len(), rows.len());
        for (row, text) in text.iter().enumerate() {
            let expected = match row % 3 {
                0 => Some("{\"a\":1}".to_owned()),
                1 => Some(format!("[{}]", vec!["{\"a\":1}"; row % 5].join(","))),
                _ => None,
            };
            assert_eq!(text, expected.as_deref());
        }
    }
}

#[test]
fn keys_that_take_much_memory_are_printed_row_by_row() {
    // The name is 100 kB long, and most rows lack the field.
    let name = "n".repeat(100_000);
    let schema = ShreddingSchema::Object(vec![(name, ShreddingSchema::Untyped)]);
    let shredded = shred(&unshredded(&vec![VALID[5]; 1000]), schema, Numeric::Value).unwrap();
    let text = to_json_in_ranges(&shredded, OnConflict::Error, &Zone::UTC, 1000).unwrap();
    assert!(text.iter().all(|text| text == Some("{\"a\":1,\"b\":\"x\"}")));
}
