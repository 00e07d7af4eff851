//! A JSON file split into chunks: the lengths of the chunks, the format, the maximum line length, then the file.

use _native::error::Result;
use _native::json::lines::{Format, LineSplitter, Lines};

use super::{choice, part};

pub fn run(mut input: &[u8]) {
    let lengths = part(&mut input);
    let records = Format::Records(vec!["a".to_owned()]);
    let formats = [Format::Lines, Format::Array, Format::Auto, Format::Documents, records];
    let format = &formats[usize::from(choice(&mut input)) % formats.len()];
    let max_bytes = match choice(&mut input) {
        length @ ..128 => usize::from(length),
        _ => usize::MAX,
    };
    let whole = split(format, max_bytes, [input]);
    let pieces = split(format, max_bytes, pieces(input, lengths));
    assert_eq!(whole, pieces);
    if let Ok(lines) = whole {
        check_positions(&lines, input);
    }
}

fn split<'a>(format: &Format, max_bytes: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Lines> {
    let mut splitter = LineSplitter::new(format.clone(), max_bytes);
    let mut lines = Lines::default();
    pieces.into_iter().try_for_each(|piece| splitter.feed(piece, &mut lines))?;
    splitter.finish(&mut lines)?;
    Ok(lines)
}

/// Split `file` into pieces, cycling through `lengths`.
fn pieces<'a>(mut file: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut lengths =
        lengths.iter().copied().filter(|length| *length > 0).collect::<Vec<_>>().into_iter().cycle();
    while !file.is_empty() {
        let length = lengths.next().map_or(file.len(), usize::from).min(file.len());
        let (piece, rest) = file.split_at(length);
        pieces.push(piece);
        file = rest;
    }
    pieces
}

/// Assert that each line is in the file at its reported position.
fn check_positions(lines: &Lines, file: &[u8]) {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let starts: Vec<usize> = std::iter::once(0)
        .chain(file.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1))
        .collect();
    let (texts, positions) = lines.clone().into_array().expect("lines are an array");
    for (index, start) in positions.starts.iter().enumerate() {
        let at = starts[start.line as usize - 1] + start.column as usize - 1;
        assert!(file[at..].starts_with(texts.value(index)));
    }
}
