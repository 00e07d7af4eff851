//! The functions of Variants over arrays: changes, parts, types, matches and keys.

use _native::error::ErrorKind;
use _native::functions::change::{Change, change_rows, delete_rows, strip_nulls_rows};
use _native::functions::contents::{are_valid, array_lengths, object_keys};
use _native::functions::explode::explode;
use _native::functions::key::keys;
use _native::functions::matches::matches;
use _native::functions::schema_of::{merged_schema, schema_of};
use _native::json::parse::{JsonShredder, ParseOptions, parse_rows};
use _native::shred::unshred::unshred;
use _native::shred::{OnConflict, ShreddingSchema, print};
use _native::value::Zone;
use _native::value::path::Step;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, StringArray, StructArray};
use std::sync::Arc;

fn parsed(texts: &[Option<&str>]) -> StructArray {
    let options = ParseOptions { doubles: false, last_duplicate: false };
    let mut shredder = JsonShredder::new(ShreddingSchema::Untyped, options);
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    parse_rows(&mut shredder, &texts, |row, error| panic!("row {row}: {}", error.message)).unwrap();
    unshred(&shredder.take().unwrap(), OnConflict::Error).unwrap()
}

fn json(variants: &StructArray) -> Vec<Option<String>> {
    let text = print::to_json(variants, OnConflict::Error, &Zone::UTC).unwrap();
    (0..text.len()).map(|row| text.is_valid(row).then(|| text.value(row).to_owned())).collect()
}

fn json_of(parts: Vec<StructArray>) -> Vec<Option<String>> {
    parts.iter().flat_map(json).collect()
}

fn texts(rows: &[Option<&str>]) -> Vec<Option<String>> {
    rows.iter().map(|row| row.map(str::to_owned)).collect()
}

fn path(steps: &[&str]) -> Vec<Step> {
    let step = |text: &&str| text.parse().map_or_else(|_| Step::Field(text.to_string()), Step::Index);
    steps.iter().map(step).collect()
}

fn changed(row: &str, steps: &[&str], change: Change) -> Result<Option<String>, ErrorKind> {
    let (row, new) = (parsed(&[Some(row)]), parsed(&[Some("9")]));
    change_rows(&row, &path(steps), &new, change, true)
        .map(|parts| json_of(parts).remove(0))
        .map_err(|e| e.kind())
}

#[test]
fn an_insertion_creates_what_is_missing_and_moves_elements() {
    let cases = [
        ("{}", vec!["a", "2", "b"], r#"{"a":[null,null,{"b":9}]}"#),
        (r#"{"b":1}"#, vec!["a"], r#"{"a":9,"b":1}"#),
        ("[1,2]", vec!["0"], "[9,1,2]"),
        ("[1,2]", vec!["4"], "[1,2,null,null,9]"),
        ("[[1]]", vec!["0", "0"], "[[9,1]]"),
    ];
    for (row, steps, expected) in cases {
        assert_eq!(changed(row, &steps, Change::Insert), Ok(Some(expected.to_owned())), "{row}");
    }
    for (row, steps) in [(r#"{"a":null}"#, vec!["a"]), (r#"{"a":1}"#, vec!["a", "b"]), ("1", vec!["0"])] {
        assert_eq!(changed(row, &steps, Change::Insert), Err(ErrorKind::Path), "{row}");
    }
}

#[test]
fn a_value_is_set_replaced_or_appended() {
    let (set, replace) = (Change::Set { create: true }, Change::Set { create: false });
    let cases = [
        (r#"{"a":1}"#, vec!["a"], set, r#"{"a":9}"#),
        (r#"{"a":1}"#, vec!["b", "c"], set, r#"{"a":1,"b":{"c":9}}"#),
        (r#"{"a":1}"#, vec!["a"], replace, r#"{"a":9}"#),
        (r#"{"a":1}"#, vec!["b"], replace, r#"{"a":1}"#),
        ("[1]", vec!["3"], replace, "[1]"),
        ("[1]", vec![], Change::Append, "[1,9]"),
        (r#"{"a":[[]]}"#, vec!["a", "0"], Change::Append, r#"{"a":[[9]]}"#),
        (r#"{"a":[]}"#, vec!["b"], Change::Append, r#"{"a":[]}"#),
    ];
    for (row, steps, change, expected) in cases {
        assert_eq!(changed(row, &steps, change), Ok(Some(expected.to_owned())), "{row}");
    }
    assert_eq!(changed("5", &[], Change::Append), Err(ErrorKind::Path));
    assert_eq!(changed("[]", &["2147483647"], set), Err(ErrorKind::Path));
    assert_eq!(changed("[]", &vec!["a"; 1000], set), Err(ErrorKind::Variant));
}

#[test]
fn a_change_that_fails_is_null_unless_it_is_strict() {
    let rows = parsed(&[Some("{}"), Some("5"), None]);
    let new = parsed(&[None, Some("1"), Some("1")]);
    let found = change_rows(&rows, &path(&["a"]), &new, Change::Insert, false).unwrap();
    assert_eq!(json_of(found), [None, None, None]);
    let error = change_rows(&rows, &path(&["a"]), &new, Change::Insert, true).unwrap_err();
    assert_eq!((error.row(), error.path()), (Some(1), Some("$['a']")));
}

#[test]
fn paths_and_nulls_are_removed() {
    let rows = parsed(&[Some(r#"{"a":[1,{"b":null}],"c":null}"#), Some("null"), None]);
    let paths = [path(&["a", "0"]), path(&["a", "0", "b"]), path(&["x"]), path(&["a", "7"])];
    let deleted = json_of(delete_rows(&rows, &paths).unwrap());
    assert_eq!(deleted, texts(&[Some(r#"{"a":[{}],"c":null}"#), Some("null"), None]));
    let kept = [Some(r#"[null,{"a":null}]"#)];
    assert_eq!(json_of(strip_nulls_rows(&parsed(&kept), true).unwrap()), texts(&[Some("[{}]")]));
    assert_eq!(json_of(strip_nulls_rows(&parsed(&kept), false).unwrap()), texts(&[Some("[null,{}]")]));
}

#[test]
fn parts_have_the_rows_positions_and_names_of_their_containers() {
    let rows = parsed(&[Some(r#"{"b":1,"a":[]}"#), Some("[true]"), Some("{}"), Some("5"), None]);
    for (outer, expected) in [(false, vec![0, 0, 1]), (true, vec![0, 0, 1, 2, 3, 4])] {
        let batch = explode(&rows, outer).unwrap().remove(0);
        let found: Vec<i64> =
            batch.column(0).as_primitive::<arrow_array::types::Int64Type>().values().to_vec();
        assert_eq!(found, expected);
        assert_eq!(batch.column(1).as_primitive::<Int32Type>().values()[..3], [0, 1, 0]);
        let names = batch.column(2).as_string::<i32>();
        assert_eq!((names.value(0), names.value(1), names.is_null(2)), ("a", "b", true));
        let values = json(batch.column(3).as_struct());
        assert_eq!(values[..3], texts(&[Some("[]"), Some("1"), Some("true")]));
        assert!(values[3..].iter().all(Option::is_none));
    }
}

#[test]
fn types_are_those_that_spark_finds() {
    let cases = [
        ("null", "VOID"),
        ("1.50", "DECIMAL(2,1)"),
        ("100.0", "DECIMAL(3,0)"),
        ("[1,2.5]", "ARRAY<DECIMAL(21,1)>"),
        ("[1,1e5]", "ARRAY<DOUBLE>"),
        ("[1.5,1e5]", "ARRAY<DOUBLE>"),
        ("[1,\"a\"]", "ARRAY<VARIANT>"),
        ("[[1],[null]]", "ARRAY<ARRAY<BIGINT>>"),
        (r#"[{"a":1},{"b":true}]"#, "ARRAY<OBJECT<a: BIGINT, b: BOOLEAN>>"),
        (r#"{"a b":1,"1":2,"x`y":{}}"#, "OBJECT<`1`: BIGINT, `a b`: BIGINT, `x``y`: OBJECT<>>"),
        ("[12345678901234567890123456789012345678,0.12345678901]", "ARRAY<DOUBLE>"),
    ];
    for (text, expected) in cases {
        assert_eq!(schema_of(&parsed(&[Some(text)])).unwrap().value(0), expected, "{text}");
    }
    let rows = parsed(&[Some(r#"{"a":1}"#), None, Some(r#"{"a":2.5,"b":[1]}"#)]);
    assert!(schema_of(&rows).unwrap().is_null(1));
    let merged = merged_schema(&rows).unwrap();
    assert_eq!(merged.to_string(), "OBJECT<a: DECIMAL(21,1), b: ARRAY<BIGINT>>");
    let other = merged_schema(&parsed(&[Some(r#"{"b":[null],"c":"x"}"#)])).unwrap();
    let expected = "OBJECT<a: DECIMAL(21,1), b: ARRAY<BIGINT>, c: STRING>";
    assert_eq!(merged.merged(other).to_string(), expected);
}

#[test]
fn a_wildcard_matches_elements_and_fields() {
    let rows =
        parsed(&[Some(r#"{"a":[{"b":1},{"b":[2]},3]}"#), Some(r#"{"a":{"x":{"b":4}}}"#), Some("7"), None]);
    let steps = [Some(Step::Field("a".into())), None, Some(Step::Field("b".into()))];
    let found = json_of(matches(&rows, &steps).unwrap());
    assert_eq!(found, texts(&[Some("[1,[2]]"), Some("[4]"), Some("[]"), None]));
    let first = json_of(matches(&rows, &[None, Some(Step::Index(0))]).unwrap());
    assert_eq!(first, texts(&[Some(r#"[{"b":1}]"#), Some("[]"), Some("[]"), None]));
}

#[test]
fn contents_are_null_for_other_values() {
    let rows = parsed(&[Some("[1,2]"), Some(r#"{"b":1,"a":2}"#), Some("5"), None]);
    let lengths = array_lengths(&rows).unwrap();
    assert_eq!(lengths.iter().collect::<Vec<_>>(), [Some(2), None, None, None]);
    let names = object_keys(&rows).unwrap();
    let found: Vec<String> = names.value(1).as_string::<i32>().iter().flatten().map(str::to_owned).collect();
    assert_eq!((found.join(","), names.null_count()), ("a,b".to_owned(), 3));
    assert_eq!(
        are_valid(&rows).unwrap().iter().collect::<Vec<_>>(),
        [Some(true), Some(true), Some(true), None]
    );
}

#[test]
fn keys_are_equal_for_equal_values_and_in_their_order() {
    let ordered = [
        "null",
        "false",
        "true",
        "-100",
        "-10.5",
        "-10",
        "-0.001",
        "0",
        "0.0001",
        "0.5",
        "1",
        "9.99",
        "10",
        "-1e5",
        "0e0",
        "1e5",
        r#""""#,
        r#""a""#,
        r#""a\u0000""#,
        r#""aa""#,
        "[]",
        "[1]",
        "[1,1]",
        "[2]",
        "{}",
        r#"{"a":1}"#,
        r#"{"a":1,"b":0}"#,
        r#"{"a":2}"#,
        r#"{"b":0}"#,
    ];
    let found = keys(&parsed(&ordered.map(Some))).unwrap();
    let found: Vec<&[u8]> = found.iter().flatten().collect();
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
    let equal = keys(&parsed(&[Some("1"), Some("1.0"), Some("1.00"), Some("1e0"), None])).unwrap();
    assert_eq!(equal.value(0), equal.value(1));
    assert_eq!(equal.value(0), equal.value(2));
    assert!(equal.value(0) < equal.value(3) && equal.is_null(4));
}
