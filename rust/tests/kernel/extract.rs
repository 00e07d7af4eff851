//! Paths read from shredded columns: the same values as from the unshredded column, read from only the leaves needed.

use std::sync::Arc;

use _native::error::ErrorKind;
use _native::json::parse::{JsonShredder, ParseOptions};
use _native::shred::extract::{NeededLeaves, extract, leaves_needed, needs_metadata};
use _native::shred::unshred::unshred;
use _native::shred::{OnConflict, ShreddingSchema};
use _native::value::Zone;
use _native::value::cast::Casting;
use _native::value::cast::variant_fields;
use _native::value::path::Step;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, StructArray};
use arrow_schema::{DataType, Field, Fields};

const ROWS: [&str; 14] = [
    r#"{"x":1,"s":"a","o":{"y":1.5,"t":[1,"2",{"z":3}]},"other":{"k":[10,20]}}"#,
    r#"{"x":"17","s":5,"o":{"y":"n/a","extra":true},"l":[{"n":1},{"n":"2","m":0},3]}"#,
    r#"{"x":null,"s":null,"o":null,"l":null,"other":null}"#,
    r#"{"x":1.0,"o":{},"l":[]}"#,
    r#"{"x":{"x":1},"s":{"a":1,"b":[true]},"o":[1,2],"l":{"n":1}}"#,
    r#"{"x":[1],"s":["é"],"o":"text","l":"text"}"#,
    r#"{"other":{"k":[]},"x":true}"#,
    r#"{}"#,
    r#"[1,2,3]"#,
    r#""text""#,
    r#"null"#,
    r#"5"#,
    r#"{"l":[null,{},{"n":null}],"x":9223372036854775807}"#,
    r#"{"x":-3,"s":"2026-01-01","o":{"y":2.25,"t":[]},"l":[{"n":-1}]}"#,
];

fn structure(fields: &[(&str, DataType)]) -> DataType {
    DataType::Struct(fields.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect())
}

fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", element, true)))
}

fn schemas() -> Vec<DataType> {
    vec![
        DataType::Null,
        DataType::Int64,
        structure(&[("x", DataType::Int64)]),
        structure(&[
            ("x", DataType::Int64),
            ("s", DataType::Utf8),
            ("o", structure(&[("y", DataType::Decimal128(18, 2)), ("t", list(DataType::Int64))])),
            ("l", list(structure(&[("n", DataType::Int64)]))),
        ]),
        structure(&[("x", DataType::Utf8), ("o", DataType::Null), ("l", list(DataType::Null))]),
        list(DataType::Int64),
    ]
}

/// Return [`ROWS`] and one SQL NULL, shredded.
fn column(schema: &DataType) -> StructArray {
    let schema = ShreddingSchema::from_arrow(&Field::new("", schema.clone(), true)).unwrap();
    let mut shredder = JsonShredder::new(schema, ParseOptions::default());
    for row in ROWS {
        assert!(shredder.push(row.as_bytes()).is_ok());
    }
    shredder.push_null();
    shredder.take().unwrap()
}

fn field(name: &str) -> Step {
    Step::Field(name.into())
}

fn paths() -> Vec<Vec<Step>> {
    vec![
        vec![],
        vec![field("x")],
        vec![field("x"), field("x")],
        vec![field("x"), Step::Index(0)],
        vec![field("s")],
        vec![field("s"), field("b"), Step::Index(0)],
        vec![field("o")],
        vec![field("o"), field("y")],
        vec![field("o"), field("extra")],
        vec![field("o"), field("t")],
        vec![field("o"), field("t"), Step::Index(1)],
        vec![field("o"), field("t"), Step::Index(2), field("z")],
        vec![field("l"), Step::Index(1), field("n")],
        vec![field("l"), Step::Index(2)],
        vec![field("other"), field("k"), Step::Index(1)],
        vec![field("missing")],
        vec![Step::Index(1)],
        vec![Step::Index(1), field("a")],
    ]
}

fn variant() -> DataType {
    DataType::Struct(variant_fields())
}

fn targets() -> Vec<DataType> {
    vec![
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
        DataType::Boolean,
        DataType::Decimal128(10, 1),
        DataType::Date32,
        list(DataType::Int64),
        list(structure(&[("n", DataType::Int64)])),
        structure(&[("x", DataType::Int64)]),
        structure(&[("y", DataType::Float64), ("missing", DataType::Utf8)]),
        structure(&[
            ("s", DataType::Utf8),
            ("o", structure(&[("t", list(DataType::Utf8)), ("y", DataType::Utf8)])),
        ]),
        structure(&[("l", list(structure(&[("n", DataType::Utf8)]))), ("o", DataType::Utf8)]),
        structure(&[("n", DataType::Int64), ("y", DataType::Utf8)]),
        variant(),
    ]
}

/// Return only the columns of `leaves`, as a file reader returns them.
fn prune_leaves(group: &StructArray, leaves: &[usize]) -> StructArray {
    let mut next = 0;
    prune_struct(group, leaves, &mut next).unwrap()
}

fn prune_struct(group: &StructArray, leaves: &[usize], next: &mut usize) -> Option<StructArray> {
    let mut kept = Vec::new();
    for (field, column) in group.fields().iter().zip(group.columns()) {
        if let Some(column) = prune(column, leaves, next) {
            kept.push((Field::new(field.name(), column.data_type().clone(), true), column));
        }
    }
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = kept.into_iter().unzip();
    (!columns.is_empty()).then(|| StructArray::new(fields.into(), columns, group.nulls().cloned()))
}

fn prune(column: &ArrayRef, leaves: &[usize], next: &mut usize) -> Option<ArrayRef> {
    match column.data_type() {
        DataType::Struct(_) => Some(Arc::new(prune_struct(column.as_struct(), leaves, next)?)),
        DataType::List(field) => {
            let lists = column.as_list::<i32>();
            let elements = prune(lists.values(), leaves, next)?;
            let field = Arc::new(Field::new(field.name(), elements.data_type().clone(), true));
            let nulls = lists.nulls().cloned();
            Some(Arc::new(ListArray::new(field, lists.offsets().clone(), elements, nulls)))
        }
        _ => {
            *next += 1;
            leaves.contains(&(*next - 1)).then(|| column.clone())
        }
    }
}

/// Format each row as text; a Variant as the JSON of its value, because `metadata` may differ.
fn rows_as_text(array: &ArrayRef) -> Vec<String> {
    if *array.data_type() == variant() {
        let text = _native::shred::print::to_json(array.as_struct(), OnConflict::Error, &Zone::UTC).unwrap();
        return text.iter().map(|text| format!("{text:?}")).collect();
    }
    (0..array.len()).map(|row| format!("{:?}", array.slice(row, 1))).collect()
}

/// Return the values of the unshredded column. Decimals have the scale of their column, and no trailing zeros in text.
fn expected(path: &[Step], target: &DataType) -> Vec<String> {
    rows_as_text(
        &extract(&column(&DataType::Null), path, target, &Casting::utc(false), OnConflict::Error).unwrap(),
    )
}

#[test]
fn every_path_reads_its_unshredded_values_from_only_the_leaves_it_needs() {
    for schema in schemas() {
        let column = column(&schema);
        for path in paths() {
            for target in targets() {
                let context = format!("{path:?} of {schema} as {target}");
                let expected = expected(&path, &target);
                let extracted =
                    extract(&column, &path, &target, &Casting::utc(false), OnConflict::Error).unwrap();
                assert_eq!(*extracted.data_type(), target, "{context}");
                assert_eq!(rows_as_text(&extracted), expected, "{context}");

                let needed = leaves_needed(column.fields(), &path, &target).unwrap();
                let mut leaves = needed.leaves.clone();
                if needs_metadata(&prune_leaves(&column, &leaves), &path, &target).unwrap() {
                    leaves.extend(needed.metadata);
                }
                let part = prune_leaves(&column, &leaves);
                let extracted =
                    extract(&part, &path, &target, &Casting::utc(false), OnConflict::Error).unwrap();
                assert_eq!(rows_as_text(&extracted), expected, "{context}, pruned to {leaves:?}");
            }
        }
    }
}

#[test]
fn paths_of_the_unshredded_column_match_its_bytes() {
    assert_eq!(ROWS.len() + 1, expected(&[], &DataType::Utf8).len());
    let column = column(&DataType::Null);
    let x =
        extract(&column, &[field("x")], &DataType::Int64, &Casting::utc(false), OnConflict::Error).unwrap();
    let mut expected = vec![None; ROWS.len() + 1];
    for (row, number) in [(0, 1), (1, 17), (3, 1), (6, 1), (12, i64::MAX), (13, -3)] {
        expected[row] = Some(number);
    }
    assert_eq!(x.as_primitive::<Int64Type>(), &Int64Array::from(expected));
    let text =
        extract(&column, &[field("l")], &DataType::Utf8, &Casting::utc(true), OnConflict::Error).unwrap();
    assert_eq!(text.as_string::<i32>().value(1), r#"[{"n":1},{"m":0,"n":"2"},3]"#);
    assert!(text.is_null(2) && text.is_null(14));
}

#[test]
fn a_shredded_leaf_needs_only_its_two_columns() {
    let column = column(&structure(&[("x", DataType::Int64), ("y", DataType::Utf8)]));
    // metadata, value, typed_value.{x.{value, typed_value}, y.{value, typed_value}}
    let needed = |path: &[Step], target: &DataType| leaves_needed(column.fields(), path, target).unwrap();
    let leaves = |leaves: &[usize], metadata| NeededLeaves { leaves: leaves.to_vec(), metadata };
    assert_eq!(needed(&[field("x")], &DataType::Int64), leaves(&[2, 3], None));
    assert_eq!(needed(&[field("x")], &DataType::Utf8), leaves(&[2, 3], Some(0)));
    assert_eq!(needed(&[field("y")], &DataType::Int64), leaves(&[4, 5], None));
    assert_eq!(needed(&[field("x"), field("a")], &DataType::Int64), leaves(&[2], Some(0)));
    assert_eq!(needed(&[field("x"), Step::Index(0)], &DataType::Int64), leaves(&[2], None));
    assert_eq!(needed(&[field("z")], &DataType::Int64), leaves(&[1], Some(0)));
    assert_eq!(needed(&[], &DataType::Int64), leaves(&[1, 2], None));
    assert_eq!(needed(&[], &variant()), leaves(&[0, 1, 2, 3, 4, 5], None));
    let fields: Fields = column.fields().iter().filter(|f| f.name() != "value").cloned().collect();
    assert_eq!(leaves_needed(&fields, &[field("z")], &DataType::Int64).unwrap(), leaves(&[0], None));
}

#[test]
fn a_struct_needs_only_the_columns_of_its_fields() {
    let inner = structure(&[("a", DataType::Int64), ("b", DataType::Utf8)]);
    let column = column(&structure(&[("x", inner.clone()), ("y", list(inner)), ("z", DataType::Utf8)]));
    // metadata, value, x.{value, a.{value, typed_value}, b.{…}}, y.{value, element.{value, a.{…}, b.{…}}}, z.{…}
    let needed = |target: &DataType| leaves_needed(column.fields(), &[], target).unwrap().leaves;
    let of_x = |fields: &[(&str, DataType)]| structure(&[("x", structure(fields))]);
    assert_eq!(needed(&of_x(&[("b", DataType::Utf8)])), [1, 2, 5, 6]);
    assert_eq!(needed(&of_x(&[("c", DataType::Utf8)])), [1, 2, 3]);
    assert_eq!(needed(&structure(&[("c", DataType::Utf8)])), [1, 2]);
    let of_y = structure(&[("y", list(structure(&[("a", DataType::Int64)])))]);
    assert_eq!(needed(&of_y), [1, 7, 8, 9, 10]);
    assert_eq!(needed(&structure(&[("x", DataType::Utf8)])), [1, 2, 3, 4, 5, 6]);
    assert_eq!(needed(&structure(&[("x", variant()), ("z", DataType::Int64)])), [1, 2, 3, 4, 5, 6, 13, 14]);
}

#[test]
fn metadata_is_needed_only_for_field_names() {
    let column = column(&structure(&[("x", DataType::Int64)]));
    let part = prune_leaves(&column, &[2, 3]);
    assert!(!needs_metadata(&part, &[field("x")], &DataType::Int64).unwrap());
    assert!(needs_metadata(&part, &[field("x")], &DataType::Utf8).unwrap());
    let error =
        extract(&part, &[field("x")], &DataType::Utf8, &Casting::utc(false), OnConflict::Error).unwrap_err();
    assert!(error.to_string().contains("`metadata`"), "{error}");
    // The rows without an object or array in `value` do not need it.
    assert!(!needs_metadata(&part.slice(0, 4), &[field("x")], &DataType::Utf8).unwrap());
}

#[test]
fn a_strict_cast_error_names_the_row_and_path() {
    for (schema, prefix) in [
        (structure(&[("o", structure(&[("y", DataType::Decimal128(18, 2))]))]), "cannot cast \"n/a\""),
        (DataType::Null, "cannot cast \"n/a\""),
    ] {
        let path = [field("o"), field("y")];
        let error =
            extract(&column(&schema), &path, &DataType::Float64, &Casting::utc(true), OnConflict::Error)
                .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cast, "{error}");
        assert_eq!((error.row(), error.path()), (Some(1), Some("$['o']['y']")));
        assert!(error.message().starts_with(prefix), "{error}");
    }
    let schema = structure(&[("o", structure(&[("y", DataType::Int64)]))]);
    let error =
        extract(&column(&schema), &[field("o")], &DataType::Int64, &Casting::utc(true), OnConflict::Error);
    assert_eq!(
        error.unwrap_err().to_string(),
        "row 0, path $['o']: cannot cast a value of type object to bigint; `try_variant_get` returns null where a cast fails"
    );
}

#[test]
fn a_leaf_without_residuals_is_not_copied_to_its_own_type() {
    let schema = ShreddingSchema::from_arrow(&Field::new("", structure(&[("x", DataType::Int64)]), true));
    let mut shredder = JsonShredder::new(schema.unwrap(), ParseOptions::default());
    for number in 0..100 {
        assert!(shredder.push(format!(r#"{{"x":{number}}}"#).as_bytes()).is_ok());
    }
    let column = shredder.take().unwrap();
    let x =
        extract(&column, &[field("x")], &DataType::Int64, &Casting::utc(true), OnConflict::Error).unwrap();
    let typed = column.column_by_name("typed_value").unwrap().as_struct().column(0).as_struct();
    let typed = typed.column_by_name("typed_value").unwrap();
    assert_eq!(
        x.as_primitive::<Int64Type>().values().as_ptr(),
        typed.as_primitive::<Int64Type>().values().as_ptr()
    );
}

/// Rule R5 of protocol_fixtures/README.md.
#[test]
fn a_conflict_is_an_error_or_reads_the_typed_value() {
    let fields = variant_fields().iter().cloned().collect::<Vec<_>>();
    let binary = |bytes: &[u8]| Arc::new(arrow_array::BinaryArray::from(vec![bytes])) as ArrayRef;
    let typed: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.push(Arc::new(Field::new("typed_value", DataType::Int64, true)));
    let columns = vec![binary(&[1, 0, 0]), binary(&[0x0C, 1]), typed];
    let column = StructArray::new(fields.into(), columns, None);
    let error = extract(&column, &[], &DataType::Int64, &Casting::utc(true), OnConflict::Error).unwrap_err();
    assert_eq!(error, unshred(&column, OnConflict::Error).unwrap_err());
    let typed = extract(&column, &[], &DataType::Int64, &Casting::utc(true), OnConflict::Typed).unwrap();
    assert_eq!(typed.as_primitive::<Int64Type>().value(0), 7);
}

#[test]
fn shredding_and_unshredding_preserve_the_values() {
    let expected = expected(&[], &variant());
    for schema in schemas() {
        let variants = unshred(&column(&schema), OnConflict::Error).unwrap();
        assert_eq!(rows_as_text(&(Arc::new(variants.clone()) as ArrayRef)), expected, "{schema}");
        for other in schemas() {
            let target = ShreddingSchema::from_arrow(&Field::new("", other.clone(), true)).unwrap();
            let again =
                _native::shred::variants::shred(&variants, target, _native::shred::Numeric::Value).unwrap();
            let back: ArrayRef = Arc::new(unshred(&again, OnConflict::Error).unwrap());
            assert_eq!(rows_as_text(&back), expected, "{schema}, then {other}");
        }
    }
}
