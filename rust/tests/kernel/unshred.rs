//! Unshredding: every row of the table in VariantShredding.md, "Value Shredding".
//!
//! Tests named `r1_…` to `r23_…` check the rules R1 to R23 of protocol_fixtures/README.md.

use std::sync::Arc;

use _native::error::{Error, ErrorKind};
use _native::shred::OnConflict;
use _native::shred::layout::Layout;
use _native::shred::print::to_json;
use _native::shred::unshred::unshred;
use _native::value::Zone;
use _native::value::json::{Keys, value as write_json};
use _native::value::{Metadata, metadata};
use arrow_array::builder::{BinaryBuilder, BinaryDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};

const NULL: &[u8] = &[0x00];
const ONE: &[u8] = &[0x0C, 1];
const TWO: &[u8] = &[0x0C, 2];
const TEXT: &[u8] = &[0x05, b'x'];

fn names(names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    metadata::write(&mut out, names.iter().copied(), names.is_sorted());
    out
}

fn binary(values: &[Option<&[u8]>]) -> ArrayRef {
    Arc::new(BinaryArray::from(values.to_vec()))
}

fn ints(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// A struct of columns by name; `valid` marks its non-null rows.
fn group(columns: &[(&str, ArrayRef)], valid: Option<&[bool]>) -> StructArray {
    let fields: Fields =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let columns = columns.iter().map(|(_, column)| column.clone()).collect();
    StructArray::new(fields, columns, valid.map(|valid| NullBuffer::from(valid.to_vec())))
}

fn nested(columns: &[(&str, ArrayRef)], valid: Option<&[bool]>) -> ArrayRef {
    Arc::new(group(columns, valid))
}

fn list(elements: StructArray, lengths: &[usize], valid: Option<&[bool]>) -> ArrayRef {
    let field: FieldRef = Arc::new(Field::new("element", elements.data_type().clone(), true));
    let nulls = valid.map(|valid| NullBuffer::from(valid.to_vec()));
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    Arc::new(ListArray::new(field, offsets, Arc::new(elements), nulls))
}

fn metadata_of(name_list: &[&str], rows: usize) -> (&'static str, ArrayRef) {
    let bytes = names(name_list);
    ("metadata", binary(&vec![Some(bytes.as_slice()); rows]))
}

/// Return the JSON text of each row, after checking that the Variant bytes and the shredded columns give the same text.
fn read(group: &StructArray, on_conflict: OnConflict) -> Result<Vec<Option<String>>, Error> {
    let variants = unshred(group, on_conflict)?;
    let (metadata, values) = (variants.column(0).as_binary::<i32>(), variants.column(1).as_binary::<i32>());
    let mut rows = Vec::new();
    for row in 0..variants.len() {
        rows.push(variants.is_valid(row).then(|| {
            let metadata = Metadata::parse(metadata.value(row)).unwrap();
            _native::value::validate(&metadata, values.value(row)).unwrap();
            let mut out = Vec::new();
            write_json(&mut out, &Keys::new(&metadata), values.value(row), &Zone::UTC).unwrap();
            String::from_utf8(out).unwrap()
        }));
    }
    let text = to_json(group, on_conflict, &Zone::UTC)?;
    assert_eq!(text.iter().map(|t| t.map(str::to_owned)).collect::<Vec<_>>(), rows);
    Ok(rows)
}

fn json(group: &StructArray) -> Vec<Option<String>> {
    read(group, OnConflict::Error).unwrap()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

/// Return the error message of a read with `OnConflict::Error` and the values of a read with `OnConflict::Typed`.
fn conflict(group: &StructArray) -> (String, Vec<Option<String>>) {
    let error = read(group, OnConflict::Error).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(to_json(group, OnConflict::Error, &Zone::UTC).unwrap_err(), error);
    (error.to_string(), read(group, OnConflict::Typed).unwrap())
}

/// A column of objects with the shredded integer field `a` and with `value`.
fn object(
    value: &[Option<&[u8]>],
    a_value: &[Option<&[u8]>],
    a: &[Option<i64>],
    valid: &[bool],
) -> StructArray {
    let field = nested(&[("value", binary(a_value)), ("typed_value", ints(a))], None);
    let typed = nested(&[("a", field)], Some(valid));
    group(
        &[metadata_of(&["a", "b", "c"], valid.len()), ("value", binary(value)), ("typed_value", typed)],
        None,
    )
}

#[test]
fn r1_a_null_group_is_sql_null() {
    let column =
        group(&[metadata_of(&[], 2), ("value", binary(&[Some(ONE), Some(NULL)]))], Some(&[false, true]));
    assert_eq!(json(&column), [None, Some("null".into())]);
}

#[test]
fn r2_a_group_without_any_value_is_variant_null() {
    let column = group(
        &[metadata_of(&[], 2), ("value", binary(&[None, None])), ("typed_value", ints(&[None, Some(5)]))],
        None,
    );
    assert_eq!(json(&column), some(&["null", "5"]));
    assert_eq!(json(&group(&[metadata_of(&[], 1)], None)), some(&["null"]));
    assert_eq!(json(&group(&[metadata_of(&[], 1), ("value", binary(&[None]))], None)), some(&["null"]));
}

#[test]
fn r3_an_element_without_any_value_is_variant_null() {
    let elements =
        group(&[("value", binary(&[None, Some(TEXT)])), ("typed_value", ints(&[None, None]))], None);
    let column = group(&[metadata_of(&[], 1), ("typed_value", list(elements, &[2], None))], None);
    assert_eq!(json(&column), some(&[r#"[null,"x"]"#]));
}

#[test]
fn r4_a_field_without_any_value_is_missing() {
    let column = object(&[None, None], &[None, Some(NULL)], &[None, None], &[true, true]);
    assert_eq!(json(&column), some(&["{}", r#"{"a":null}"#]));
}

#[test]
fn r5_a_scalar_in_both_columns_is_a_conflict() {
    let column = group(
        &[
            metadata_of(&[], 2),
            ("value", binary(&[None, Some(TWO)])),
            ("typed_value", ints(&[Some(1), Some(1)])),
        ],
        None,
    );
    let (error, typed) = conflict(&column);
    assert_eq!(
        error,
        "row 1, path $: conflicting `value` and `typed_value`: `value` and `typed_value` are both set; \
         on_conflict=\"typed\" reads `typed_value`"
    );
    assert_eq!(typed, some(&["1", "1"]));
}

#[test]
fn r5_an_array_in_both_columns_is_a_conflict() {
    let elements = group(&[("typed_value", ints(&[Some(7)]))], None);
    let typed = list(elements, &[1], None);
    let column = group(&[metadata_of(&[], 1), ("value", binary(&[Some(ONE)])), ("typed_value", typed)], None);
    assert_eq!(conflict(&column).1, some(&["[7]"]));
}

#[test]
fn r5_the_error_names_the_path_of_a_nested_conflict() {
    let column = object(&[None], &[Some(TWO)], &[Some(1)], &[true]);
    let (error, typed) = conflict(&column);
    assert!(error.starts_with("row 0, path $['a']: conflicting `value` and `typed_value`: "), "{error}");
    assert_eq!(typed, some(&[r#"{"a":1}"#]));
}

#[test]
fn r6_an_object_next_to_a_value_of_another_type_is_a_conflict() {
    for value in [ONE, NULL] {
        let (error, typed) = conflict(&object(&[Some(value)], &[None], &[Some(1)], &[true]));
        assert!(error.contains("`typed_value` holds an object, but `value` has the type"), "{error}");
        assert_eq!(typed, some(&[r#"{"a":1}"#]));
    }
}

#[test]
fn r7_a_shredded_name_in_value_is_a_conflict_even_if_the_shredded_field_is_missing() {
    // {"a":2,"b":1}
    let value: &[u8] = &[0x02, 2, 0, 1, 0, 2, 4, 0x0C, 2, 0x0C, 1];
    let column = object(&[Some(value), Some(value)], &[None, None], &[Some(1), None], &[true, true]);
    let (error, typed) = conflict(&column);
    assert!(
        error.starts_with("row 0, path $: ") && error.contains(r#"the shredded field "a" is in `value` too"#),
        "{error}"
    );
    assert_eq!(typed, some(&[r#"{"a":1,"b":1}"#, r#"{"b":1}"#]));
}

#[test]
fn r8_an_object_only_in_value_is_read_unchanged() {
    // {"a":2,"b":1}, and {}
    let value: &[u8] = &[0x02, 2, 0, 1, 0, 2, 4, 0x0C, 2, 0x0C, 1];
    let column = object(&[Some(value), Some(&[2, 0, 0])], &[None, None], &[None, None], &[false, false]);
    assert_eq!(json(&column), some(&[r#"{"a":2,"b":1}"#, "{}"]));
}

#[test]
fn r9_an_array_only_in_value_is_read_unchanged() {
    let typed = list(group(&[("typed_value", ints(&[]))], None), &[0], Some(&[false]));
    let value = binary(&[Some(&[3, 1, 0, 2, 0x0C, 1])]);
    assert_eq!(
        json(&group(&[metadata_of(&[], 1), ("value", value), ("typed_value", typed)], None)),
        some(&["[1]"])
    );
}

#[test]
fn r10_a_shredded_name_that_metadata_lacks_is_added_to_it() {
    // {"z":1} in value, whose name id stays 0.
    let value: &[u8] = &[0x02, 1, 0, 0, 2, 0x0C, 1];
    let field = |v: &[Option<i64>]| nested(&[("typed_value", ints(v))], None);
    let typed = nested(&[("b", field(&[Some(2), None])), ("a", field(&[Some(3), None]))], None);
    let column = group(
        &[metadata_of(&["z"], 2), ("value", binary(&[Some(value), Some(value)])), ("typed_value", typed)],
        None,
    );
    assert_eq!(json(&column), some(&[r#"{"a":3,"b":2,"z":1}"#, r#"{"z":1}"#]));
    let variants = unshred(&column, OnConflict::Error).unwrap();
    let metadata = variants.column(0).as_binary::<i32>();
    assert_eq!(Metadata::parse(metadata.value(0)).unwrap().names().collect::<Vec<_>>(), ["z", "a", "b"]);
    assert_eq!(metadata.value(1), names(&["z"]));
}

#[test]
fn r11_a_row_without_metadata_is_rejected() {
    for column in [
        group(&[("metadata", binary(&[None])), ("value", binary(&[Some(ONE)]))], None),
        group(&[("metadata", binary(&[None])), ("typed_value", ints(&[Some(1)]))], None),
    ] {
        let error = read(&column, OnConflict::Error).unwrap_err();
        assert_eq!(error, Error::variant("malformed Variant: `metadata` is null").at_row(0));
    }
}

#[test]
fn r12_an_empty_value_is_rejected() {
    let column = group(&[metadata_of(&[], 2), ("value", binary(&[Some(ONE), Some(&[])]))], None);
    let error = read(&column, OnConflict::Error).unwrap_err();
    assert_eq!(error, Error::variant("malformed Variant value: `value` is empty").at_row(1).at_path("$"));
    let error = read(&object(&[None], &[Some(&[])], &[None], &[true]), OnConflict::Error).unwrap_err();
    assert_eq!(error.path(), Some("$['a']"), "{error}");
}

#[test]
fn r13_a_scalar_that_would_fit_its_typed_value_may_be_in_value() {
    let column = object(&[None], &[Some(TWO)], &[None], &[true]);
    assert_eq!(json(&column), some(&[r#"{"a":2}"#]));
}

#[test]
fn r14_a_null_group_of_a_field_is_rejected_or_read_as_a_missing_field() {
    let field = nested(
        &[("value", binary(&[Some(ONE), None])), ("typed_value", ints(&[None, Some(1)]))],
        Some(&[false, false]),
    );
    let typed = nested(&[("a", field)], None);
    let column = group(&[metadata_of(&["a"], 2), ("typed_value", typed)], None);
    let (error, rows) = conflict(&column);
    assert!(error.contains("the group of the shredded field \"a\" is null"), "{error}");
    assert_eq!(rows, some(&["{}", "{}"]));
}

#[test]
fn r15_types_that_cannot_be_shredded_are_rejected_even_if_no_row_uses_them() {
    let rejected: [ArrayRef; 7] = [
        Arc::new(UInt32Array::new_null(0)),
        Arc::new(FixedSizeBinaryArray::new_null(4, 0)),
        Arc::new(Time32MillisecondArray::new_null(0)),
        Arc::new(Time64NanosecondArray::new_null(0)),
        Arc::new(TimestampMillisecondArray::new_null(0)),
        Arc::new(Float16Array::new_null(0)),
        Arc::new(IntervalYearMonthArray::new_null(0)),
    ];
    for typed in rejected {
        let error = unshred(&group(&[metadata_of(&[], 0), ("typed_value", typed)], None), OnConflict::Error);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shredding, "{error}");
        assert!(error.to_string().contains("cannot be a shredded type"), "{error}");
    }
}

#[test]
fn r17_duplicate_fields_in_value_are_rejected() {
    let value: &[u8] = &[0x02, 2, 1, 1, 0, 2, 4, 0x0C, 2, 0x0C, 1];
    let error = read(&object(&[Some(value)], &[None], &[Some(1)], &[true]), OnConflict::Error).unwrap_err();
    assert!(error.to_string().contains("two fields called \"b\""), "{error}");
}

#[test]
fn r18_an_object_whose_fields_are_all_missing_is_empty() {
    assert_eq!(json(&object(&[None], &[None], &[None], &[true])), some(&["{}"]));
}

#[test]
fn r19_the_fields_of_both_columns_are_sorted_together() {
    // {"a":1,"c":2} and, in the order that some writers give them, {"c":2,"a":1}.
    let sorted: &[u8] = &[0x02, 2, 0, 2, 0, 2, 4, 0x0C, 1, 0x0C, 2];
    let unsorted: &[u8] = &[0x02, 2, 2, 0, 0, 2, 4, 0x0C, 2, 0x0C, 1];
    let field = nested(&[("typed_value", ints(&[Some(7), Some(7)]))], None);
    let typed = nested(&[("b", field)], None);
    let column = group(
        &[
            metadata_of(&["a", "b", "c"], 2),
            ("value", binary(&[Some(sorted), Some(unsorted)])),
            ("typed_value", typed),
        ],
        None,
    );
    assert_eq!(json(&column), some(&[r#"{"a":1,"b":7,"c":2}"#, r#"{"a":1,"b":7,"c":2}"#]));
}

#[test]
fn r20_unshredded_values_keep_their_bytes() {
    // A short string in the long form, and metadata with an unused name.
    let value: &[u8] = &[0x40, 1, 0, 0, 0, b'x'];
    let metadata = names(&["unused"]);
    let columns = [("value", binary(&[Some(value)])), ("metadata", binary(&[Some(&metadata)]))];
    for column in [
        group(&columns, None),
        group(&[columns[0].clone(), columns[1].clone(), ("typed_value", ints(&[None]))], None),
    ] {
        let variants = unshred(&column, OnConflict::Error).unwrap();
        assert_eq!(variants.column(0).as_binary::<i32>().value(0), metadata);
        assert_eq!(variants.column(1).as_binary::<i32>().value(0), value);
    }
}

#[test]
fn r23_arrays_of_objects_of_arrays_are_unshredded() {
    let inner =
        group(&[("value", binary(&[None, Some(TEXT)])), ("typed_value", ints(&[Some(1), None]))], None);
    let numbers = nested(&[("typed_value", list(inner, &[2, 0], Some(&[true, true])))], None);
    let elements = group(&[("typed_value", nested(&[("n", numbers)], None))], None);
    let column = group(&[metadata_of(&["n"], 1), ("typed_value", list(elements, &[2], None))], None);
    assert_eq!(json(&column), some(&[r#"[{"n":[1,"x"]},{"n":[]}]"#]));
}

/// The result has the type of `typed_value`, not the narrowest type that fits the number.
#[test]
fn a_typed_value_keeps_its_exact_type() {
    let decimal = |precision| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![5]).with_precision_and_scale(precision, 1).unwrap())
    };
    let cases: Vec<(ArrayRef, Vec<u8>)> = vec![
        (Arc::new(BooleanArray::from(vec![false])), vec![0x08]),
        (Arc::new(Int8Array::from(vec![5])), vec![0x0C, 5]),
        (Arc::new(Int16Array::from(vec![5])), vec![0x10, 5, 0]),
        (Arc::new(Int32Array::from(vec![5])), vec![0x14, 5, 0, 0, 0]),
        (Arc::new(Int64Array::from(vec![5])), vec![0x18, 5, 0, 0, 0, 0, 0, 0, 0]),
        (Arc::new(Float32Array::from(vec![-0.0])), vec![0x38, 0, 0, 0, 0x80]),
        (Arc::new(Float64Array::from(vec![1.0])), vec![0x1C, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F]),
        (decimal(9), vec![0x20, 1, 5, 0, 0, 0]),
        (decimal(18), vec![0x24, 1, 5, 0, 0, 0, 0, 0, 0, 0]),
        (decimal(19), [&[0x28, 1, 5][..], &[0; 15]].concat()),
        (Arc::new(Date32Array::from(vec![1])), vec![0x2C, 1, 0, 0, 0]),
        (Arc::new(Time64MicrosecondArray::from(vec![1])), vec![0x44, 1, 0, 0, 0, 0, 0, 0, 0]),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC")),
            vec![0x30, 1, 0, 0, 0, 0, 0, 0, 0],
        ),
        (Arc::new(TimestampMicrosecondArray::from(vec![1])), vec![0x34, 1, 0, 0, 0, 0, 0, 0, 0]),
        (
            Arc::new(TimestampNanosecondArray::from(vec![1]).with_timezone("UTC")),
            vec![0x48, 1, 0, 0, 0, 0, 0, 0, 0],
        ),
        (Arc::new(TimestampNanosecondArray::from(vec![1])), vec![0x4C, 1, 0, 0, 0, 0, 0, 0, 0]),
        (Arc::new(BinaryArray::from(vec![&b"x"[..]])), vec![0x3C, 1, 0, 0, 0, b'x']),
        (Arc::new(StringViewArray::from(vec!["x"])), vec![0x05, b'x']),
        (Arc::new(StringArray::from(vec!["x".repeat(64)])), [&[0x40, 64, 0, 0, 0][..], &[b'x'; 64]].concat()),
        (
            Arc::new(FixedSizeBinaryArray::try_from_iter([[7u8; 16]].into_iter()).unwrap()),
            [&[0x50][..], &[7; 16]].concat(),
        ),
    ];
    for (typed, expected) in cases {
        let name = typed.data_type().to_string();
        let column = group(&[metadata_of(&[], 1), ("typed_value", typed)], None);
        let variants = unshred(&column, OnConflict::Error).unwrap();
        assert_eq!(variants.column(1).as_binary::<i32>().value(0), expected, "{name}");
    }
}

#[test]
fn values_out_of_range_of_their_type_are_rejected() {
    let time: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![86_400_000_000]));
    let decimal: ArrayRef =
        Arc::new(Decimal128Array::from(vec![10_000_000_000]).with_precision_and_scale(9, 0).unwrap());
    for typed in [time, decimal] {
        let error = read(&group(&[metadata_of(&[], 1), ("typed_value", typed)], None), OnConflict::Error);
        assert!(matches!(&error, Err(e) if e.kind() == ErrorKind::Variant), "{error:?}");
    }
}

#[test]
fn metadata_may_be_a_dictionary_and_binary_may_be_large_or_a_view() {
    let (ab, none) = (names(&["a", "b"]), names(&[]));
    let mut dictionary = BinaryDictionaryBuilder::<Int32Type>::new();
    for bytes in [&none, &ab, &none, &ab] {
        dictionary.append_value(bytes);
    }
    let value: &[u8] = &[0x02, 1, 1, 0, 2, 0x0C, 1];
    let values = vec![Some(ONE), Some(value), None, Some(TEXT)];
    let valid = Some(&[true, true, false, true][..]);
    let expected = [Some("1".into()), Some(r#"{"b":1}"#.into()), None, Some("\"x\"".into())];
    let views: ArrayRef = Arc::new(BinaryViewArray::from(values.clone()));
    let large: ArrayRef = Arc::new(LargeBinaryArray::from(values));
    for values in [views, large] {
        let metadata: ArrayRef = Arc::new(dictionary.finish_cloned());
        assert_eq!(json(&group(&[("metadata", metadata), ("value", values)], valid)), expected);
    }
}

#[test]
fn a_sliced_column_is_read_from_its_own_first_row() {
    let column = object(&[None; 4], &[None; 4], &[Some(0), Some(1), Some(2), Some(3)], &[true; 4]);
    assert_eq!(json(&column.slice(2, 1)), some(&[r#"{"a":2}"#]));
    assert_eq!(json(&column.slice(2, 0)), []);
}

#[test]
fn errors_of_parallel_reads_name_the_row_of_the_whole_column() {
    let rows = 20_000;
    let numbers: Vec<Option<i64>> = (0..rows).map(Some).collect();
    let mut values = BinaryBuilder::new();
    (0..rows).for_each(|row| values.append_option((row == 19_999).then_some(ONE)));
    let columns = [metadata_of(&[], rows as usize), ("typed_value", ints(&numbers))];
    let column = group(&columns, None);
    let text = to_json(&column, OnConflict::Error, &Zone::UTC).unwrap();
    assert!(text.iter().enumerate().all(|(row, text)| text == Some(&row.to_string())));
    let column = group(&[columns[0].clone(), columns[1].clone(), ("value", Arc::new(values.finish()))], None);
    assert!(to_json(&column, OnConflict::Error, &Zone::UTC).unwrap_err().row() == Some(19_999));
    assert_eq!(unshred(&column, OnConflict::Error).unwrap_err().row(), Some(19_999));
}

#[test]
fn shredded_fields_may_have_any_name() {
    for name in ["value", "typed_value", "metadata", "list", "element", "", "a.b", "_id", "'"] {
        let field = nested(&[("typed_value", ints(&[Some(1)]))], None);
        let column = group(&[metadata_of(&[name], 1), ("typed_value", nested(&[(name, field)], None))], None);
        assert_eq!(json(&column), some(&[&format!("{{\"{name}\":1}}")]));
    }
}

fn layout_error(columns: &[(&str, DataType)]) -> String {
    let fields: Fields = columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect();
    let error = Layout::parse(&fields).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shredding, "{error}");
    error.to_string()
}

/// P-S1, P-S9, P-S10 and P-X2 of docs/audit-rules.md.
#[test]
fn layouts_that_the_specification_does_not_allow_are_rejected() {
    let metadata = ("metadata", DataType::Binary);
    let value = ("value", DataType::Binary);
    let structure = |fields: Vec<Field>| DataType::Struct(fields.into());
    let leaf = || structure(vec![Field::new("typed_value", DataType::Int64, true)]);
    let typed = |kind: DataType| [metadata.clone(), ("typed_value", kind)];
    assert!(layout_error(std::slice::from_ref(&value)).contains("needs `metadata`"));
    assert!(layout_error(&[metadata.clone(), ("value", DataType::Utf8)]).contains("its `value` is Utf8"));
    assert!(layout_error(&[metadata.clone(), ("foo", DataType::Utf8)]).contains("a column \"foo\""));
    assert!(layout_error(&[metadata.clone(), value.clone(), value.clone()]).contains("two columns"));
    let twice = structure(vec![Field::new("a", leaf(), true), Field::new("a", leaf(), true)]);
    assert!(layout_error(&typed(twice)).contains("two shredded fields called \"a\""));
    let bare = structure(vec![Field::new("a", DataType::Int64, true)]);
    assert!(
        layout_error(&typed(bare))
            .starts_with("path $['a']: invalid shredded Variant column: expected a group of `value` and `typed_value`, got Int64")
    );
    let entries =
        structure(vec![Field::new("key", DataType::Utf8, false), Field::new("value", leaf(), true)]);
    let map = DataType::Map(Arc::new(Field::new("entries", entries, false)), false);
    assert!(layout_error(&typed(map)).contains("cannot be a shredded type"));
    let bare_elements = DataType::List(Arc::new(Field::new("element", DataType::Int64, true)));
    assert!(layout_error(&typed(bare_elements)).starts_with("path $[*]: "));
    assert!(layout_error(&typed(DataType::Timestamp(TimeUnit::Second, None))).starts_with("path $: "));
}

/// P-S1 and P-X1 of docs/audit-rules.md: any order, and additional columns that begin with `_`.
#[test]
fn columns_are_found_by_name_and_reserved_ones_are_ignored() {
    let metadata = metadata_of(&[], 1);
    let (value, typed) = (("value", binary(&[None])), ("typed_value", ints(&[Some(3)])));
    let extra = ("_spark_note", ints(&[Some(9)]));
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let columns = [metadata.clone(), value.clone(), typed.clone()];
        let mut columns: Vec<_> = order.map(|index| columns[index].clone()).into();
        columns.insert(1, extra.clone());
        assert_eq!(json(&group(&columns, None)), some(&["3"]));
    }
}
