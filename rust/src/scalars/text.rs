//! Functions of text, over characters (code points) as in Spark.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray};

use super::Arguments;
use crate::error::{Error, Result};

/// Texts of the rows. Each text is appended to a column.
struct Texts {
    builder: StringBuilder,
}

impl Texts {
    fn push(&mut self, text: Option<&str>) -> Result<()> {
        let length = self.builder.values_slice().len() + text.map_or(0, str::len);
        i32::try_from(length).map_err(|_| Error::too_large())?;
        self.builder.append_option(text);
        Ok(())
    }
}

/// A column of the texts that `row` returns.
pub fn build<'a, T: AsRef<str> + 'a>(
    rows: usize,
    row: impl Fn(usize) -> Result<Option<T>>,
) -> Result<ArrayRef> {
    let mut texts = Texts { builder: StringBuilder::with_capacity(rows, rows * 8) };
    for index in 0..rows {
        texts.push(row(index)?.as_ref().map(T::as_ref))?;
    }
    Ok(Arc::new(texts.builder.finish()))
}

pub fn upper(arguments: &Arguments) -> Result<ArrayRef> {
    let text = arguments.text(0)?;
    build(arguments.rows, |row| Ok(text.get(row).map(str::to_uppercase)))
}

pub fn lower(arguments: &Arguments) -> Result<ArrayRef> {
    let text = arguments.text(0)?;
    build(arguments.rows, |row| Ok(text.get(row).map(str::to_lowercase)))
}

pub fn trim(arguments: &Arguments) -> Result<ArrayRef> {
    trimmed(arguments, true, true)
}

pub fn trim_start(arguments: &Arguments) -> Result<ArrayRef> {
    trimmed(arguments, true, false)
}

pub fn trim_end(arguments: &Arguments) -> Result<ArrayRef> {
    trimmed(arguments, false, true)
}

/// The text without the characters of a second argument, or without spaces, at its start or end.
fn trimmed(arguments: &Arguments, start: bool, end: bool) -> Result<ArrayRef> {
    let text = arguments.text(0)?;
    let characters = if arguments.columns.len() > 1 { Some(arguments.text(1)?) } else { None };
    build(arguments.rows, |row| {
        let known = characters.as_ref().map_or(Some(" "), |column| column.get(row));
        Ok(text.get(row).zip(known).map(|(text, characters)| {
            let is_trimmed = |character| characters.contains(character);
            let text = if start { text.trim_start_matches(is_trimmed) } else { text };
            if end { text.trim_end_matches(is_trimmed) } else { text }
        }))
    })
}

/// The position of the byte at which a character begins, and the end of a text that is shorter.
fn byte_of(text: &str, character: i64) -> usize {
    let Ok(character) = usize::try_from(character) else { return 0 };
    if text.is_ascii() {
        return character.min(text.len());
    }
    text.char_indices().nth(character).map_or(text.len(), |(position, _)| position)
}

fn count(text: &str) -> i64 {
    if text.is_ascii() { text.len() as i64 } else { text.chars().count() as i64 }
}

/// Position 1 and 0 are the first character, -1 the last; a start before the text shortens the result.
fn slice(text: &str, position: i32, length: i32) -> &str {
    let start = match position {
        1.. => i64::from(position) - 1,
        0 => 0,
        _ => count(text) + i64::from(position),
    };
    let end = start + i64::from(length);
    if end <= start {
        return "";
    }
    &text[byte_of(text, start)..byte_of(text, end)]
}

pub fn substring(arguments: &Arguments) -> Result<ArrayRef> {
    let (text, position) = (arguments.text(0)?, arguments.primitive::<Int32Type>(1)?);
    let length = if arguments.columns.len() > 2 { Some(arguments.primitive::<Int32Type>(2)?) } else { None };
    build(arguments.rows, |row| {
        let length = length.as_ref().map_or(Some(i32::MAX), |column| column.get(row));
        let known = text.get(row).zip(position.get(row)).zip(length);
        Ok(known.map(|((text, position), length)| slice(text, position, length)))
    })
}

/// The last characters.
pub fn right(arguments: &Arguments) -> Result<ArrayRef> {
    let (text, length) = (arguments.text(0)?, arguments.primitive::<Int32Type>(1)?);
    build(arguments.rows, |row| {
        let known = text.get(row).zip(length.get(row));
        Ok(known.map(|(text, length)| if length <= 0 { "" } else { slice(text, -length, i32::MAX) }))
    })
}

pub fn replace(arguments: &Arguments) -> Result<ArrayRef> {
    let (text, search, other) = (arguments.text(0)?, arguments.text(1)?, arguments.text(2)?);
    build(arguments.rows, |row| {
        let known = text.get(row).zip(search.get(row)).zip(other.get(row));
        Ok(known.map(
            |((text, search), other)| {
                if search.is_empty() { text.to_owned() } else { text.replace(search, other) }
            },
        ))
    })
}

pub fn contains(arguments: &Arguments) -> Result<ArrayRef> {
    test(arguments, |text, part| text.contains(part))
}

pub fn starts_with(arguments: &Arguments) -> Result<ArrayRef> {
    test(arguments, |text, part| text.starts_with(part))
}

pub fn ends_with(arguments: &Arguments) -> Result<ArrayRef> {
    test(arguments, |text, part| text.ends_with(part))
}

fn test(arguments: &Arguments, holds: impl Fn(&str, &str) -> bool) -> Result<ArrayRef> {
    let (text, part) = (arguments.text(0)?, arguments.text(1)?);
    let rows = 0..arguments.rows;
    let found = rows.map(|row| text.get(row).zip(part.get(row)).map(|(text, part)| holds(text, part)));
    Ok(Arc::new(found.collect::<BooleanArray>()))
}
