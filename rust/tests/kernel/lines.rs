//! Splitting of files into the texts of their values: lines, arrays, and files that could be either.

use _native::error::Error;
use _native::json::lines::{Format, LineSplitter, Lines, Position};
use arrow_array::Array;
use proptest::prelude::*;

/// Longer than every line and element here.
const MAX_BYTES: usize = 128 << 20;

/// Return the texts with their lines and columns, and the indices of the oversized ones.
type Found = (Vec<(String, u64, u64)>, Vec<usize>);

fn split_pieces<'a>(
    format: Format,
    max_bytes: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Found, Error> {
    let mut splitter = LineSplitter::new(format, max_bytes);
    let mut lines = Lines::default();
    for piece in pieces {
        splitter.feed(piece, &mut lines)?;
    }
    splitter.finish(&mut lines)?;
    let (array, positions) = lines.into_array()?;
    assert_eq!(array.len(), positions.starts.len());
    let text = |index| String::from_utf8_lossy(array.value(index)).into_owned();
    let found = positions.starts.iter().enumerate().map(|(i, start)| (text(i), start.line, start.column));
    Ok((found.collect(), positions.oversized))
}

fn split(format: Format, file: &str) -> Vec<(String, u64, u64)> {
    split_pieces(format, MAX_BYTES, [file.as_bytes()]).unwrap().0
}

fn texts(format: Format, file: &str) -> Vec<String> {
    split(format, file).into_iter().map(|(text, _, _)| text).collect()
}

fn failure(file: &str) -> String {
    split_pieces(Format::Array, MAX_BYTES, [file.as_bytes()]).unwrap_err().to_string()
}

fn at(text: &str, line: u64, column: u64) -> (String, u64, u64) {
    (text.to_owned(), line, column)
}

#[test]
fn each_line_is_a_value_with_its_line_number() {
    assert_eq!(split(Format::Lines, "{\"a\":1}\n2\n"), [at("{\"a\":1}", 1, 1), at("2", 2, 1)]);
}

#[test]
fn the_last_line_needs_no_line_feed() {
    assert_eq!(split(Format::Lines, "1\n2"), [at("1", 1, 1), at("2", 2, 1)]);
}

#[test]
fn carriage_returns_before_line_feeds_are_removed() {
    assert_eq!(split(Format::Lines, "1\r\n2\r\n3\r"), [at("1", 1, 1), at("2", 2, 1), at("3", 3, 1)]);
}

#[test]
fn blank_lines_are_skipped_but_counted() {
    assert_eq!(split(Format::Lines, "\n1\n \t \r\n\r\n 2 \n\n"), [at("1", 2, 1), at(" 2 ", 5, 1)]);
}

#[test]
fn a_byte_order_mark_at_the_start_is_removed() {
    for format in [Format::Lines, Format::Auto] {
        assert_eq!(split(format, "\u{FEFF}1\n2\n"), [at("1", 1, 1), at("2", 2, 1)]);
    }
    assert_eq!(split(Format::Auto, "\u{FEFF}[1]"), [at("1", 1, 2)]);
}

#[test]
fn a_byte_order_mark_elsewhere_is_kept() {
    assert_eq!(texts(Format::Lines, "1\n\u{FEFF}2\n"), ["1", "\u{FEFF}2"]);
}

#[test]
fn an_incomplete_byte_order_mark_is_text() {
    let (found, _) = split_pieces(Format::Lines, 9, [&b"\xEF\xBB"[..], &b"1"[..]]).unwrap();
    assert_eq!(found.len(), 1);
    let (found, _) = split_pieces(Format::Auto, 9, [&b"\xEF"[..]]).unwrap();
    assert_eq!(found.len(), 1);
}

#[test]
fn an_empty_or_blank_file_has_no_values() {
    for file in ["", "\n", " \r\n\t", "\u{FEFF}", "\u{FEFF}\n"] {
        assert_eq!(split(Format::Lines, file), []);
        assert_eq!(split(Format::Auto, file), []);
    }
}

#[test]
fn invalid_utf8_is_left_to_the_parser() {
    let mut splitter = LineSplitter::new(Format::Auto, MAX_BYTES);
    let mut lines = Lines::default();
    splitter.feed(b"\"\xFF\"\n1\n", &mut lines).unwrap();
    splitter.finish(&mut lines).unwrap();
    let (array, _) = lines.into_array().unwrap();
    assert_eq!(array.value(0), b"\"\xFF\"");
    assert_eq!(array.value(1), b"1");
}

#[test]
fn a_line_longer_than_the_limit_is_oversized() {
    let pieces = [&b"12345\r\n123456\n1\r\n"[..]];
    let (found, oversized) = split_pieces(Format::Lines, 5, pieces).unwrap();
    assert_eq!(found, [at("12345", 1, 1), at("", 2, 1), at("1", 3, 1)]);
    assert_eq!(oversized, [1]);
}

#[test]
fn an_oversized_line_does_not_grow_the_memory() {
    let mut splitter = LineSplitter::new(Format::Lines, 1000);
    let mut lines = Lines::default();
    for _ in 0..1000 {
        splitter.feed(&[b'x'; 900], &mut lines).unwrap();
    }
    splitter.feed(b"\n1", &mut lines).unwrap();
    splitter.finish(&mut lines).unwrap();
    let (texts, positions) = lines.into_array().unwrap();
    assert_eq!(positions.oversized, [0]);
    assert_eq!(texts.iter().flatten().collect::<Vec<_>>(), [&b""[..], b"1"]);
}

#[test]
fn the_elements_of_one_array_are_values() {
    let file = "[{\"a\": [1, 2]},\n  \"x,]\\\"\\\\\" ,[ ],\n3\n]\n";
    let expected =
        [at("{\"a\": [1, 2]}", 1, 2), at("\"x,]\\\"\\\\\"", 2, 3), at("[ ]", 2, 14), at("3", 3, 1)];
    assert_eq!(split(Format::Array, file), expected);
    assert_eq!(split(Format::Auto, file), expected);
}

#[test]
fn an_element_may_span_lines() {
    let file = "[\n  {\n    \"a\": 1\n  }\n]";
    assert_eq!(split(Format::Auto, file), [at("{\n    \"a\": 1\n  }", 2, 3)]);
}

#[test]
fn an_offset_inside_an_element_is_located_in_the_file() {
    let mut splitter = LineSplitter::new(Format::Array, MAX_BYTES);
    let mut lines = Lines::default();
    splitter.feed(b"[ {\n  \"a\": x}, 1]", &mut lines).unwrap();
    assert_eq!(lines.positions.locate(0, b"{"), Some(Position { line: 1, column: 4 }));
    assert_eq!(lines.positions.locate(0, b"{\n  \"a\": "), Some(Position { line: 2, column: 8 }));
    assert_eq!(lines.positions.locate(1, b""), Some(Position { line: 2, column: 12 }));
    assert_eq!(lines.positions.locate(2, b""), None);
}

#[test]
fn an_empty_array_has_no_values() {
    for file in ["[]", " [ \n ] \n"] {
        assert_eq!(split(Format::Auto, file), []);
    }
}

#[test]
fn an_oversized_element_is_skipped() {
    let (found, oversized) = split_pieces(Format::Array, 5, [&b"[1, \"123456\", \"123\"]"[..]]).unwrap();
    assert_eq!(found, [at("1", 1, 2), at("", 1, 5), at("\"123\"", 1, 15)]);
    assert_eq!(oversized, [1]);
}

#[test]
fn lines_of_arrays_are_distinguished_from_one_array() {
    assert_eq!(texts(Format::Auto, "[1,2]\n[3,4]\n"), ["[1,2]", "[3,4]"]);
    assert_eq!(texts(Format::Auto, "\n[\"]\"] \r\n\n{}"), ["[\"]\"] ", "{}"]);
    assert_eq!(texts(Format::Auto, "[1,2]\n\n"), ["1", "2"]);
    assert_eq!(texts(Format::Auto, "[[1,2],\n[3,4]]\n"), ["[1,2]", "[3,4]"]);
    assert_eq!(texts(Format::Auto, "[[1,2]\n,[3,4]]\n"), ["[1,2]", "[3,4]"]);
    assert_eq!(texts(Format::Auto, "[\n1]\n"), ["1"]);
}

#[test]
fn a_single_array_is_one_value_in_the_lines_format() {
    assert_eq!(texts(Format::Lines, "[1,2]\n"), ["[1,2]"]);
}

#[test]
fn a_first_line_too_long_to_buffer_is_one_array() {
    let element = format!("\"{}\"", "x".repeat(1 << 20));
    let file = format!("[{element},\n1]");
    let pieces: Vec<_> = file.as_bytes().chunks(1 << 18).collect();
    let (found, _) = split_pieces(Format::Auto, MAX_BYTES, pieces).unwrap();
    assert_eq!(found, [at(&element, 1, 2), at("1", 2, 1)]);
}

#[test]
fn errors_between_elements_report_their_position() {
    assert_eq!(failure("{}"), "line 1: expected [ at the start of the array of values (column 1)");
    assert_eq!(failure(""), "line 1: expected an array of values, got an empty file (column 1)");
    assert_eq!(failure("[1,\n2"), "line 2: the file ends before the ] of its array (column 2)");
    assert_eq!(failure("[1,\n \"2]"), "line 2: the file ends before the ] of its array (column 5)");
    assert_eq!(
        failure("[1]\n x"),
        "line 2: expected the end of the file after the array of values (column 2)"
    );
    assert_eq!(failure("[1,]"), "line 1: expected a value of the array (column 4)");
    assert_eq!(failure("[,1]"), "line 1: expected a value of the array (column 2)");
    assert_eq!(failure("[1,,2]"), "line 1: expected a value of the array (column 4)");
}

#[test]
fn errors_inside_an_element_are_left_to_the_parser() {
    assert_eq!(texts(Format::Array, "[1 2, {\"a\"], }]"), ["1 2", "{\"a\"]", "}"]);
}

fn records(path: &[&str], file: &str) -> Result<Vec<(String, u64, u64)>, String> {
    let format = Format::Records(path.iter().map(|name| (*name).to_owned()).collect());
    let found = split_pieces(format, MAX_BYTES, [file.as_bytes()]);
    found.map(|(values, _)| values).map_err(|error| error.to_string())
}

#[test]
fn documents_follow_each_other_with_and_without_white_space() {
    let file = "{\n \"a\": \"}\"\n}\n[1,\n2]{\"b\":{}} \"x\\\"\"7 true\n-1";
    let expected = [
        at("{\n \"a\": \"}\"\n}", 1, 1),
        at("[1,\n2]", 4, 1),
        at("{\"b\":{}}", 5, 3),
        at("\"x\\\"\"", 5, 12),
        at("7", 5, 17),
        at("true", 5, 19),
        at("-1", 6, 1),
    ];
    assert_eq!(split(Format::Documents, file), expected);
    assert_eq!(split(Format::Auto, file), expected);
}

#[test]
fn a_document_that_does_not_end_is_left_to_the_parser() {
    assert_eq!(split(Format::Documents, "{}\n{\"a\": [1\n"), [at("{}", 1, 1), at("{\"a\": [1", 2, 1)]);
    assert_eq!(texts(Format::Documents, "} , ] 1"), ["}", ",", "]", "1"]);
}

#[test]
fn a_text_sequence_has_documents() {
    assert_eq!(texts(Format::Auto, "\u{1E}{\"a\":\n1}\n\u{1E}2\n"), ["{\"a\":\n1}", "2"]);
}

#[test]
fn an_object_over_several_lines_is_a_document() {
    assert_eq!(texts(Format::Auto, "{\n\"a\": 1\n}\n"), ["{\n\"a\": 1\n}"]);
    assert_eq!(texts(Format::Auto, "{\"a\": [\n{}\n]}"), ["{\"a\": [\n{}\n]}"]);
    assert_eq!(texts(Format::Auto, "{\"a\": 1}{\"b\":\n2}"), ["{\"a\": 1}", "{\"b\":\n2}"]);
    assert_eq!(texts(Format::Auto, "[\n1]\n[\n2]"), ["[\n1]", "[\n2]"]);
    assert_eq!(texts(Format::Auto, "{\n\"a\": tru\n}"), ["{\n\"a\": tru\n}"]);
    assert_eq!(texts(Format::Auto, "{\n\"a\": 1,\n"), ["{\n\"a\": 1,"]);
}

#[test]
fn a_cut_line_among_lines_is_a_line() {
    assert_eq!(texts(Format::Auto, "{\"n\": \n{\"n\": 3}\n"), ["{\"n\": ", "{\"n\": 3}"]);
    assert_eq!(texts(Format::Auto, "{\"n\": \"x\n\n{\"n\": 3}\n7"), ["{\"n\": \"x", "{\"n\": 3}", "7"]);
    assert_eq!(texts(Format::Auto, "{\"n\": 1} x\n{\"n\": 3}"), ["{\"n\": 1} x", "{\"n\": 3}"]);
}

#[test]
fn the_array_at_a_path_has_the_values() {
    let file = "{\"kind\": \"}\", \"next\": {\"items\": [0]}, \"items\": [1,\n {\"b\": [2]}], \"x\": null}\n";
    assert_eq!(records(&["items"], file).unwrap(), [at("1", 1, 49), at("{\"b\": [2]}", 2, 2)]);
    assert_eq!(records(&["next", "items"], file).unwrap(), [at("0", 1, 34)]);
    let pages = "{\"a\":[1]}{\"a\":[]}\u{1E}{\"a\":null}\n{\"\\u0061\":[2]}";
    assert_eq!(records(&["a"], pages).unwrap(), [at("1", 1, 7), at("2", 2, 12)]);
    assert_eq!(records(&["a"], "").unwrap(), []);
}

#[test]
fn an_oversized_record_is_skipped() {
    let format = Format::Records(vec!["a".to_owned()]);
    let (found, oversized) =
        split_pieces(format, 5, [&b"{\"long name\":1,\"a\":[\"123456\",2]}"[..]]).unwrap();
    assert_eq!((found.len(), found[1].0.as_str()), (2, "2"));
    assert_eq!(oversized, [0]);
}

#[test]
fn a_document_without_the_array_is_an_error_with_its_position() {
    let failure = |path: &[&str], file: &str| records(path, file).unwrap_err();
    assert_eq!(
        failure(&["items"], "{\"item\": [],\n\"n\": 1}"),
        "line 2: the document has no field \"items\"; its fields are \"item\", \"n\" (column 7)"
    );
    assert_eq!(
        failure(&["a", "b"], "{\"a\": {\"c\": 1}}"),
        "line 1: the document has no field \"a.b\"; its fields are \"c\" (column 14)"
    );
    assert_eq!(failure(&["a"], "[1]"), "line 1: expected an object with the field \"a\" (column 1)");
    assert_eq!(failure(&["a"], "{\"a\": {}}"), "line 1: expected an array in the field \"a\" (column 7)");
    assert_eq!(
        failure(&["a", "b"], "{\"a\": []}"),
        "line 1: expected an object in the field \"a\" (column 7)"
    );
    assert_eq!(
        failure(&["a"], "{\"a\": [], \"a\": []}"),
        "line 1: the document has several fields \"a\" (column 16)"
    );
    assert_eq!(failure(&["a"], "{\"a\": [1"), "line 1: the file ends within a document (column 9)");
    assert_eq!(failure(&["a"], "{a: []}"), "line 1: an object needs a key in quotes here (column 2)");
    assert_eq!(failure(&["a"], "{\"a\" []}"), "line 1: expected : after the key of an object (column 6)");
    assert_eq!(
        failure(&["a"], "{\"a\": [] \"b\"}"),
        "line 1: expected , or } after a value of an object (column 10)"
    );
}

/// Files with the bytes that affect splitting, and the positions at which to cut them.
fn cut_files() -> impl Strategy<Value = (String, Vec<usize>)> {
    let file = prop_oneof![
        "[\u{FEFF}\\[\\]{},\"\\\\ \r\n1x]{0,40}",
        "\u{FEFF}?(\\[1, 2\\]|\\{\"a\":\"\\\\\"\"\\}| |12345678)(\r?\n(\\[1,2\\]|7| )?){0,6}",
        "(\u{1E}| ?)\\{\"a\": ?(\\[1,\n\\{\\}\\]|null|2)(,\"b\":\"\\}\")?\\}\n?(\\{\"a\":\\[\"x\"\\]\\}){0,2}\n?",
        " ?\\[(1|\"a,]\\\\\"\"|\\[2,\n3\\]|\\{\\}|123456789)( ?,\n? ?(2|\\{\"a\": \\[\\]\\})){0,5}\\]\n?",
    ];
    (file, prop::collection::vec(0usize..60, 0..6))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pieces_of_any_size_give_the_same_values((file, mut cuts) in cut_files(), max_bytes in 1usize..12) {
        let bytes = file.as_bytes();
        cuts.retain(|&cut| cut < bytes.len());
        cuts.sort();
        let ends = cuts.iter().copied().chain([bytes.len()]);
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let pieces: Vec<_> = starts.zip(ends).map(|(start, end)| &bytes[start..end]).collect();
        let records = Format::Records(vec!["a".to_owned()]);
        for format in [Format::Lines, Format::Array, Format::Documents, records, Format::Auto] {
            let whole = split_pieces(format.clone(), max_bytes, [bytes]);
            prop_assert_eq!(&whole, &split_pieces(format.clone(), max_bytes, pieces.iter().copied()));
            prop_assert_eq!(&whole, &split_pieces(format, max_bytes, bytes.chunks(1)));
        }
    }

    #[test]
    fn lines_match_the_standard_library(file in "[a\\[ \r\n]{0,40}") {
        let expected: Vec<_> = file
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .filter(|line| !line.trim().is_empty())
            .collect();
        prop_assert_eq!(texts(Format::Lines, &file), expected);
    }
}
