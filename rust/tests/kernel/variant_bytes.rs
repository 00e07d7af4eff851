//! Variant bytes that are valid but unusual, and hostile bytes. Ids such as E-O3 are rules of
//! protocol_fixtures/README.md.

use std::time::{Duration, Instant};

use _native::shred::OnConflict;
use _native::shred::print::to_json;
use _native::shred::unshred::unshred;
use _native::shred::variants::shred;
use _native::shred::{LeafType, Numeric, ShreddingSchema};
use _native::value::Zone;
use _native::value::encode::{self, Layout};
use _native::value::json::{Keys, value as write_json};
use _native::value::{Metadata, Value, metadata, validate};
use arrow_array::{ArrayRef, BinaryArray, StructArray};
use proptest::prelude::*;
use std::sync::Arc;

fn metadata_of(names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    metadata::write(&mut out, names.iter().copied(), false);
    out
}

/// An object with fields given as (name id, offset) into `values`.
fn object(fields: &[(usize, usize)], values: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Layout::object(fields.len(), values.len(), 4).write_object(&mut out, fields.iter().copied());
    [out, values.to_vec()].concat()
}

fn array(offsets: &[usize], values: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Layout::array(offsets.len(), values.len()).write_array(&mut out, offsets.iter().copied());
    [out, values.to_vec()].concat()
}

fn json(metadata: &[u8], value: &[u8]) -> Result<String, String> {
    let mut out = Vec::new();
    let keys = Keys::new(&Metadata::parse(metadata).unwrap());
    write_json(&mut out, &keys, value, &Zone::UTC).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

fn check(metadata: &[u8], value: &[u8]) -> Result<(), String> {
    validate(&Metadata::parse(metadata).unwrap(), value).map_err(|error| error.to_string())
}

fn variants(rows: &[(&[u8], &[u8])]) -> StructArray {
    let metadata: ArrayRef = Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| row.0)));
    let value: ArrayRef = Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| row.1)));
    StructArray::try_new(_native::value::cast::variant_fields(), vec![metadata, value], None).unwrap()
}

/// Return the result of each function that walks a whole value.
fn walks(metadata: &[u8], value: &[u8]) -> Vec<Result<(), String>> {
    let rows = variants(&[(metadata, value)]);
    let untyped =
        shred(&rows, ShreddingSchema::Untyped, Numeric::Value).map(drop).map_err(|error| error.to_string());
    let list = ShreddingSchema::List(Box::new(ShreddingSchema::Leaf(LeafType::String)));
    let listed = shred(&rows, list, Numeric::Value).map(drop).map_err(|error| error.to_string());
    vec![check(metadata, value), json(metadata, value).map(drop), untyped, listed]
}

#[test]
fn fields_that_share_a_short_value_are_valid() {
    let metadata = metadata_of(&["a", "b", "c"]);
    let value = object(&[(0, 0), (1, 0), (2, 2)], &[0x0C, 7, 0x05, b'x']);
    assert_eq!(check(&metadata, &value), Ok(()));
    assert_eq!(json(&metadata, &value).unwrap(), r#"{"a":7,"b":7,"c":"x"}"#); // E-O9
}

#[test]
fn values_in_another_order_and_with_gaps_are_valid() {
    let metadata = metadata_of(&["a", "b", "c"]);
    let value = object(&[(0, 6), (1, 3), (2, 0)], &[0x0C, 3, 0xFF, 0x0C, 2, 0xFF, 0x0C, 1]);
    assert_eq!(check(&metadata, &value), Ok(()));
    assert_eq!(json(&metadata, &value).unwrap(), r#"{"a":1,"b":2,"c":3}"#); // E-O3, E-O9
    let value = array(&[2, 0], &[0x0C, 1, 0x0C, 2]);
    assert_eq!(check(metadata::EMPTY, &value), Ok(()));
    assert_eq!(json(metadata::EMPTY, &value).unwrap(), "[2,1]"); // E-A2
}

#[test]
fn nested_values_that_share_bytes_are_rejected_before_expansion() {
    let mut value = vec![0x00];
    for _ in 0..100 {
        value = array(&[0; 200], &value);
    }
    let start = Instant::now();
    for walk in walks(metadata::EMPTY, &value) {
        assert!(walk.unwrap_err().contains("overlap"));
    }
    assert!(start.elapsed() < Duration::from_secs(1)); // E-Q4
}

#[test]
fn long_strings_that_share_bytes_are_rejected() {
    let mut long = Vec::new();
    encode::string(&mut long, &[b'x'; 100]);
    for walk in walks(metadata::EMPTY, &array(&[0, 0], &long)) {
        assert!(walk.unwrap_err().contains("overlap"));
    }
}

#[test]
fn many_values_of_an_unknown_type_are_skipped_in_linear_time() {
    let count = 200_000;
    let offsets: Vec<usize> = (0..count).map(|index| index * 2).collect();
    let value = array(&offsets, &[63 << 2, 7].repeat(count));
    let start = Instant::now();
    assert_eq!(check(metadata::EMPTY, &value), Ok(()));
    assert!(start.elapsed() < Duration::from_secs(5));
    let Value::Array(array) = Value::decode(&value).unwrap() else { panic!() };
    assert!(array.elements().all(|element| element.unwrap() == [63 << 2, 7]));
    assert_eq!(array.element(count - 1).unwrap(), [63 << 2, 7]);
}

#[test]
fn a_value_count_beyond_the_input_is_rejected_before_allocation() {
    for header in [0b1_0000 << 2 | 2u8, 0b100 << 2 | 3] {
        let value = [&[header][..], &u32::MAX.to_le_bytes(), &[0; 20]].concat();
        for walk in walks(metadata::EMPTY, &value) {
            assert!(walk.unwrap_err().contains("truncated")); // E-Q4
        }
    }
}

#[test]
fn values_nested_deeper_than_the_limit_are_rejected() {
    let nested = |depth: usize| (0..depth).fold(vec![0x00], |value, _| array(&[0], &value));
    let check = |depth: usize| {
        std::thread::Builder::new().stack_size(16 << 20).spawn(move || walks(metadata::EMPTY, &nested(depth)))
    };
    assert!(check(1000).unwrap().join().unwrap().iter().all(Result::is_ok));
    assert!(check(1001).unwrap().join().unwrap().iter().all(Result::is_err));
}

#[test]
fn duplicate_fields_are_rejected_even_with_different_ids() {
    let metadata = metadata_of(&["a", "b", "a"]);
    let value = object(&[(0, 0), (2, 0)], &[0x00]);
    assert!(check(&metadata, &value).unwrap_err().contains("two fields called \"a\"")); // E-O5
    let value = object(&[(0, 0), (1, 0), (2, 0)], &[0x00]);
    assert!(check(&metadata, &value).unwrap_err().contains("two fields called \"a\""));
}

#[test]
fn duplicate_fields_cannot_be_printed() {
    let metadata = metadata_of(&["b", "a", "a"]);
    for ids in [[1, 1], [1, 2], [2, 1]] {
        let value = object(&[(ids[0], 0), (ids[1], 0), (0, 0)], &[0x00]);
        assert!(json(&metadata, &value).unwrap_err().contains("two fields called \"a\"")); // E-O5
    }
    let value = object(&[(0, 0), (2, 0)], &[0x00]);
    assert_eq!(json(&metadata, &value).unwrap(), r#"{"b":null,"a":null}"#);
}

#[test]
fn a_field_is_found_in_an_object_out_of_order() {
    for is_sorted in [false, true] {
        let mut bytes = Vec::new();
        metadata::write(&mut bytes, ["a", "b", "c", "d"].into_iter(), is_sorted);
        let metadata = Metadata::parse(&bytes).unwrap();
        let value = object(&[(2, 0), (1, 2), (0, 4)], &[0x0C, 2, 0x0C, 1, 0x0C, 0]);
        let Value::Object(object) = Value::decode(&value).unwrap() else { panic!() };
        for (id, name) in ["a", "b", "c"].into_iter().enumerate() {
            assert_eq!(object.get(&metadata, name).unwrap(), Some(&[0x0C, id as u8][..])); // E-O3
        }
        assert_eq!(object.get(&metadata, "d").unwrap(), None);
        assert_eq!(object.get(&metadata, "e").unwrap(), None);
    }
}

#[test]
fn unsorted_fields_are_rejected_except_in_utf16_order() {
    let metadata = metadata_of(&["b", "a", "\u{10000}", "\u{FFFD}"]);
    let value = object(&[(0, 0), (1, 0)], &[0x00]);
    assert!(check(&metadata, &value).unwrap_err().contains("not in the order of their names")); // E-O3
    let value = object(&[(1, 0), (0, 0), (2, 0), (3, 0)], &[0x00]);
    assert_eq!(check(&metadata, &value), Ok(())); // X15 of docs/audit-rules.md
}

#[test]
fn shred_validates_whole_values_and_names_the_row() {
    let metadata = metadata_of(&["a", "b"]);
    let good = object(&[(0, 0), (1, 1)], &[0x00, 0x00]);
    let bad_string = object(&[(0, 0), (1, 1)], &[0x00, 0x05, 0xFF]);
    let bad_name = object(&[(0, 0), (9, 1)], &[0x00, 0x00]);
    let shredded = ShreddingSchema::Object(vec![("a".into(), ShreddingSchema::Leaf(LeafType::String))]);
    for schema in [ShreddingSchema::Untyped, shredded] {
        for (bad, message) in
            [(&bad_string, "not UTF-8"), (&bad_name, "name id 9, but the metadata has 2 names")]
        {
            let error =
                shred(&variants(&[(&metadata, &good), (&metadata, bad)]), schema.clone(), Numeric::Value)
                    .unwrap_err();
            assert_eq!(error.row(), Some(1), "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}

/// Names with characters that UTF-8 and UTF-16 order differently.
fn names() -> impl Strategy<Value = Vec<String>> {
    let character = prop_oneof![
        Just('a'),
        Just('z'),
        Just('\u{7FF}'),
        Just('\u{D7FF}'),
        Just('\u{E000}'),
        Just('\u{FFFF}'),
        Just('\u{10000}'),
        Just('\u{10FFFF}')
    ];
    let name = prop::collection::vec(character, 0..4).prop_map(|characters| characters.into_iter().collect());
    prop::collection::btree_set(name, 0..40).prop_map(|names| names.into_iter().collect())
}

proptest! {
    #[test]
    fn only_existing_fields_are_found_in_either_order(mut names in names(), is_utf16: bool, other in names()) {
        if is_utf16 {
            names.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
        }
        let metadata = metadata_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let parsed = Metadata::parse(&metadata).unwrap();
        let fields: Vec<(usize, usize)> = (0..names.len()).map(|id| (id, id * 2)).collect();
        let values: Vec<u8> = (0..names.len()).flat_map(|id| [0x0C, id as u8]).collect();
        let bytes = object(&fields, &values);
        validate(&parsed, &bytes).unwrap();
        let Value::Object(object) = Value::decode(&bytes).unwrap() else { panic!() };
        for (id, name) in names.iter().enumerate() {
            prop_assert_eq!(object.get(&parsed, name).unwrap(), Some(&[0x0C, id as u8][..]));
        }
        for name in other.iter().filter(|name| !names.contains(name)) {
            prop_assert_eq!(object.get(&parsed, name).unwrap(), None);
        }
    }

    #[test]
    fn arbitrary_bytes_are_an_error_or_a_value(metadata: Vec<u8>, value: Vec<u8>, names in names()) {
        let known = metadata_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        for metadata in [&metadata, &known] {
            if Metadata::parse(metadata).is_ok() {
                let is_valid = check(metadata, &value).is_ok();
                let rows = variants(&[(metadata, &value)]);
                prop_assert_eq!(shred(&rows, ShreddingSchema::Untyped, Numeric::Value).is_ok(), is_valid);
                let _ = to_json(&rows, OnConflict::Error, &Zone::UTC);
                let _ = unshred(&rows, OnConflict::Error);
            }
        }
    }

    #[test]
    fn a_changed_byte_is_an_error_or_a_value(at: prop::sample::Index, byte: u8, names in names()) {
        let metadata = metadata_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let fields: Vec<(usize, usize)> = (0..names.len()).map(|id| (id, 0)).collect();
        let mut value = array(&[0, 0], &object(&fields, &[0x0C, 1]));
        let at = at.index(value.len());
        value[at] = byte;
        walks(&metadata, &value);
    }
}
