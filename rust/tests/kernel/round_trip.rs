//! Unshredding restores every value, whatever schema it was shredded with.

use crate::random::{Tree, schema, schema_of, tree, variants};
use _native::shred::print::to_json;
use _native::shred::unshred::unshred;
use _native::shred::variants::shred;
use _native::shred::{Numeric, OnConflict, ShreddingSchema};
use _native::value::Zone;
use _native::value::{Decimal, Metadata, Value, validate};
use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};
use proptest::prelude::*;

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
