//! Violations in Variants and their bounds that cannot be produced with the files of other writers.

use std::sync::Arc;

use _native::check::{PathCheck, check_column, check_schema, describe_bound};
use _native::parquet::{ParquetFile, Source};
use _native::value::MAX_DEPTH;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::schema::parser::parse_message_type;

/// Return the rules that the group of a Variant violates, with their paths.
fn violations(column: &str) -> Vec<(&'static str, String)> {
    let schema = parse_message_type(&format!("message m {{ {column} }}")).unwrap();
    let violations = check_schema(&schema.get_fields()[0]).into_iter();
    violations.map(|fault| (fault.rule, fault.path)).filter(|(rule, _)| *rule != "P-S2").collect()
}

fn at(rule: &'static str, path: &str) -> (&'static str, String) {
    (rule, path.to_owned())
}

#[test]
fn a_group_that_follows_the_specification_has_no_violations() {
    let column = "optional group v { required binary metadata; optional binary value;
        optional group typed_value {
            required group a { optional binary value; optional int64 typed_value; }
            required group l { optional binary value; optional group typed_value (LIST) {
                repeated group list { required group element {
                    optional binary value; optional binary typed_value (STRING); } } } } } }";
    assert_eq!(violations(column), []);
}

#[test]
fn all_violations_of_a_schema_are_reported() {
    let column = "optional group v { optional binary metadata; optional binary value; optional binary other;
        optional group typed_value {
            optional group a { optional binary value; optional int32 typed_value (TIME_MILLIS); }
            required group a { optional binary value; optional int64 typed_value; }
            required group n { } } }";
    let found = violations(column);
    let expected = [
        at("P-S1m", "$"),
        at("P-X2", "$"),
        at("P-S7", "$['a']"),
        at("P-S9", "$['a']"),
        at("P-S10", "$"),
        at("P-S4", "$['n']"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_list_of_two_levels_is_reported_with_either_annotation() {
    for annotation in ["LIST", "MAP"] {
        let column = format!(
            "optional group v {{ required binary metadata; optional binary value;
             optional group typed_value ({annotation}) {{ repeated binary element; }} }}"
        );
        let rule = if annotation == "LIST" { at("P-S6", "$[*]") } else { at("P-S9", "$") };
        assert_eq!(violations(&column), [rule]);
    }
}

#[test]
fn the_legacy_layout_is_reported() {
    let column = "optional group v { optional binary untyped_value; optional int64 typed_value; }";
    assert_eq!(violations(column), [at("O1", "$")]);
}

/// A file of one unshredded Variant.
fn file_of(metadata: &[u8], value: &[u8]) -> ParquetFile {
    let column = |bytes: &[u8]| -> ArrayRef { Arc::new(BinaryArray::from_vec(vec![bytes])) };
    let fields: Fields =
        ["metadata", "value"].map(|name| Field::new(name, DataType::Binary, false)).to_vec().into();
    let variant = StructArray::new(fields, vec![column(metadata), column(value)], None);
    let batch = RecordBatch::try_from_iter([("v", Arc::new(variant) as ArrayRef)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    ParquetFile::open(Source::Bytes(Bytes::from(bytes))).unwrap()
}

#[test]
fn a_value_nested_too_deeply_is_reported_without_recursion() {
    // Nested arrays of one element each; the innermost contains a Variant null.
    let mut value = vec![0];
    for _ in 0..=MAX_DEPTH + 1 {
        let mut outer = vec![0x0f, 1, 0, 0, 0, 0];
        outer.extend_from_slice(&(value.len() as u32).to_le_bytes());
        outer.append(&mut value);
        value = outer;
    }
    let file = file_of(&[1, 0, 0], &value);
    let found = check_column(&file, &["v".into()], &[], None).unwrap().violations.into_list();
    assert_eq!(found.iter().map(|each| (each.rule, each.row)).collect::<Vec<_>>(), [("E-M11", 0)]);
}

/// The bytes of a bound that Databricks Runtime wrote: `{"$['key']": 200}` with two bytes of padding.
const METADATA: &[u8] = b"\x01\x01\x00\x08$['key']";
const VALUE: &[u8] = b"\x02\x01\x00\x00\x09\x18\xc8\0\0\0\0\0\0\0";

#[test]
fn a_bound_is_described_in_either_order() {
    for (bytes, is_value_first) in
        [([METADATA, VALUE, b"\0\0"].concat(), false), ([VALUE, METADATA, b"\0\0"].concat(), true)]
    {
        let report = describe_bound(&bytes).unwrap();
        assert_eq!((report.is_value_first, report.rest.as_slice()), (is_value_first, b"\0\0".as_slice()));
        let bounds = report.bounds.unwrap();
        assert_eq!(bounds.len(), 1);
        assert_eq!((bounds[0].key.as_str(), bounds[0].type_name), ("$['key']", "int64"));
        assert_eq!((bounds[0].scale, bounds[0].text.as_str()), (None, "200"));
    }
}

#[test]
fn rows_are_compared_only_with_bounds_of_their_class() {
    let bounds = [METADATA, VALUE].concat();
    let check = |value: &[u8]| {
        let file = file_of(b"\x01\x01\x00\x03key", &[&[2, 1, 0, 0, value.len() as u8], value].concat());
        let path = PathCheck::new("$['key']", vec!["key".into()], Some(&bounds), Some(&bounds)).unwrap();
        let mut report = check_column(&file, &["v".into()], &[path], None).unwrap();
        let path = report.paths.remove(0);
        [
            path.below.count,
            path.above.count,
            path.others.count,
            path.nulls.count,
            u64::from(path.min_attained),
        ]
    };
    // int8 7; int16 200; decimal4 200.00; decimal4 200.01; double 200; Variant null
    assert_eq!(check(&[0x0c, 7]), [1, 0, 0, 0, 0]);
    assert_eq!(check(&[0x10, 200, 0]), [0, 0, 0, 0, 1]);
    assert_eq!(check(&[0x20, 2, 0x20, 0x4e, 0, 0]), [0, 0, 0, 0, 1]);
    assert_eq!(check(&[0x20, 2, 0x21, 0x4e, 0, 0]), [0, 1, 0, 0, 0]);
    assert_eq!(check(&[0x1c, 0, 0, 0, 0, 0, 0, 0x69, 0x40]), [0, 0, 1, 0, 0]);
    assert_eq!(check(&[0]), [0, 0, 0, 1, 0]);
}
