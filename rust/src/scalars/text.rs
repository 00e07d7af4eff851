//! Functions of text, over characters (code points) as in Spark.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Int32Array};

use super::Arguments;
use crate::error::{Error, Result};

/// Texts of the rows. Each text is appended to a column.
struct Texts {
    builder: StringBuilder,
}

impl Texts {
    fn push(&mut self, text: Option<&str>) -> Result<()> {
        checked_length(self.builder.values_slice().len() + text.map_or(0, str::len))?;
        self.builder.append_option(text);
        Ok(())
    }
}

fn checked_length(length: usize) -> Result<()> {
    i32::try_from(length).map(drop).map_err(|_| Error::too_large())
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

/// Each word in lower case, after its first character in title case. Only spaces separate words.
pub fn initcap(arguments: &Arguments) -> Result<ArrayRef> {
    let text = arguments.text(0)?;
    build(arguments.rows, |row| {
        Ok(text.get(row).map(|text| text.split(' ').map(capitalized).collect::<Vec<_>>().join(" ")))
    })
}

fn capitalized(word: &str) -> String {
    let Some(first) = word.chars().next() else { return String::new() };
    // The case of a sigma depends on its place in the word.
    let lower = word.to_lowercase();
    let rest = &lower[first.to_lowercase().map(char::len_utf8).sum()..];
    match title_case(first) {
        Some(title) => format!("{title}{rest}"),
        None => {
            let mut upper = first.to_uppercase();
            let begin = upper.next().into_iter().collect::<String>();
            format!("{begin}{}{rest}", upper.collect::<String>().to_lowercase())
        }
    }
}

/// The title case of a character whose upper case is something else than a capital and small letters.
fn title_case(letter: char) -> Option<String> {
    let code = u32::from(letter);
    let single = match letter {
        // Letters of two letters.
        'Ǆ'..='ǌ' => 0x1c5 + (code - 0x1c4) / 3 * 3,
        'Ǳ'..='ǳ' => 0x1f2,
        // Georgian has capitals in text of capitals only.
        'ა'..='ჺ' | 'ჽ'..='ჿ' => code,
        // Greek letters with an iota.
        'ᾀ'..='ᾯ' => code | 8,
        'ᾳ' | 'ᾼ' => 0x1fbc,
        'ῃ' | 'ῌ' => 0x1fcc,
        'ῳ' | 'ῼ' => 0x1ffc,
        'ᾷ' => 0x391,
        'ῇ' => 0x397,
        'ῷ' => 0x3a9,
        'ᾲ' => 0x1fba,
        'ᾴ' => 0x386,
        'ῂ' => 0x1fca,
        'ῄ' => 0x389,
        'ῲ' => 0x1ffa,
        'ῴ' => 0x38f,
        'ŉ' => return Some("ʼN".to_owned()),
        _ => return None,
    };
    let mark = match letter {
        'ᾷ' | 'ῇ' | 'ῷ' => "\u{342}\u{345}",
        'ᾲ' | 'ᾴ' | 'ῂ' | 'ῄ' | 'ῲ' | 'ῴ' => "\u{345}",
        _ => "",
    };
    char::from_u32(single).map(|title| format!("{title}{mark}"))
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

/// The text, a number of times.
pub fn repeat(arguments: &Arguments) -> Result<ArrayRef> {
    let (text, times) = (arguments.text(0)?, arguments.primitive::<Int32Type>(1)?);
    build(arguments.rows, |row| {
        let Some((text, times)) = text.get(row).zip(times.get(row)) else { return Ok(None) };
        let times = usize::try_from(times).unwrap_or(0);
        checked_length(text.len().saturating_mul(times))?;
        Ok(Some(text.repeat(times)))
    })
}

pub fn pad_start(arguments: &Arguments) -> Result<ArrayRef> {
    padded(arguments, true)
}

pub fn pad_end(arguments: &Arguments) -> Result<ArrayRef> {
    padded(arguments, false)
}

/// The text in a number of characters: cut at its end, or filled with the characters of the third argument.
fn padded(arguments: &Arguments, at_start: bool) -> Result<ArrayRef> {
    let (text, length, pad) = (arguments.text(0)?, arguments.primitive::<Int32Type>(1)?, arguments.text(2)?);
    build(arguments.rows, |row| {
        let known = text.get(row).zip(length.get(row)).zip(pad.get(row));
        let Some(((text, length), pad)) = known else { return Ok(None) };
        let missing = usize::try_from(i64::from(length) - count(text)).unwrap_or(0);
        if missing == 0 || pad.is_empty() {
            return Ok(Some(slice(text, 1, length.max(0)).to_owned()));
        }
        checked_length(missing)?;
        let fill: String = pad.chars().cycle().take(missing).collect();
        Ok(Some(if at_start { fill + text } else { text.to_owned() + &fill }))
    })
}

/// The position of the first argument in the second one, from a position on; 0 if it is not there or that is null.
pub fn locate(arguments: &Arguments) -> Result<ArrayRef> {
    let (search, text, start) =
        (arguments.text(0)?, arguments.text(1)?, arguments.primitive::<Int32Type>(2)?);
    let positions = (0..arguments.rows).map(|row| {
        let Some(start) = start.get(row) else { return Some(0) };
        let (search, text) = search.get(row).zip(text.get(row))?;
        let start = i64::from(start) - 1;
        let found = match start {
            ..0 => None,
            _ if search.is_empty() => Some(0),
            _ => {
                let from = byte_of(text, start);
                text[from..].find(search).map(|position| count(&text[..from + position]))
            }
        };
        Some(found.map_or(0, |position| position as i32 + 1))
    });
    Ok(Arc::new(positions.collect::<Int32Array>()))
}

/// The part of this number between delimiters, from the end if it is negative; empty text if there is none.
pub fn split_part(arguments: &Arguments) -> Result<ArrayRef> {
    let (text, delimiter) = (arguments.text(0)?, arguments.text(1)?);
    let number = arguments.primitive::<Int32Type>(2)?;
    build(arguments.rows, |row| {
        let known = text.get(row).zip(delimiter.get(row)).zip(number.get(row));
        let Some(((text, delimiter), number)) = known else { return Ok(None) };
        let index = usize::try_from(number.saturating_abs()).unwrap_or_default();
        let part = match number {
            0 | i32::MIN => return Err(Error::cast(format!("there is no part {number}"))),
            1 | -1 if delimiter.is_empty() => Some(text),
            _ if delimiter.is_empty() => None,
            1.. => text.split(delimiter).nth(index - 1),
            _ => text.rsplit(delimiter).nth(index - 1),
        };
        Ok(Some(part.unwrap_or_default()))
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
