//! Scanning JSON text: eight bytes at a time where that is faster.

use std::borrow::Cow;

use crate::value::{Decimal, MAX_DECIMAL_DIGITS, Value};

/// Why text is not JSON, and the byte where it stops being JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    pub message: Cow<'static, str>,
    pub offset: usize,
}

pub type Scan<T> = Result<T, JsonError>;

#[cold]
pub fn error<T>(offset: usize, message: impl Into<Cow<'static, str>>) -> Scan<T> {
    Err(JsonError { message: message.into(), offset })
}

/// The first position at or after `at` that is not white space.
#[inline(always)]
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// The first position at or after `at` of a quote, a backslash or a control character, or the end.
#[inline(always)]
fn special(text: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        let found = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        if found & HIGHS != 0 {
            return at + (found & HIGHS).trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|&b| b != b'"' && b != b'\\' && b >= 0x20) {
        at += 1;
    }
    at
}

/// A string without its quotes.
pub enum Text<'t> {
    /// Bytes of the text itself.
    Plain(&'t [u8]),
    /// With escapes; its text is in the scratch buffer.
    Unescaped,
}

/// Read the string whose opening quote is just before `*at`; `*at` is then after the closing quote.
#[inline(always)]
pub fn string<'t>(text: &'t [u8], at: &mut usize, scratch: &mut Vec<u8>) -> Scan<Text<'t>> {
    let start = *at;
    let end = special(text, start);
    if text.get(end) == Some(&b'"') {
        *at = end + 1;
        return Ok(Text::Plain(&text[start..end]));
    }
    *at = end;
    scratch.clear();
    scratch.extend_from_slice(&text[start..end]);
    unescape(text, at, scratch)?;
    Ok(Text::Unescaped)
}

/// Append the rest of a string that continues at `*at` with an escape.
fn unescape(text: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Scan<()> {
    loop {
        match text.get(*at) {
            Some(b'"') => {
                *at += 1;
                return Ok(());
            }
            Some(b'\\') => escape(text, at, out)?,
            Some(_) => return error(*at, "a control character in a string must be escaped"),
            None => return error(*at, "a string is not closed"),
        }
        let end = special(text, *at);
        out.extend_from_slice(&text[*at..end]);
        *at = end;
    }
}

fn escape(text: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Scan<()> {
    let byte = match text.get(*at + 1) {
        Some(b'"') => b'"',
        Some(b'\\') => b'\\',
        Some(b'/') => b'/',
        Some(b'b') => 0x08,
        Some(b'f') => 0x0C,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => return unicode_escape(text, at, out),
        _ => return error(*at, "an escape in a string is not one of JSON's"),
    };
    out.push(byte);
    *at += 2;
    Ok(())
}

fn unicode_escape(text: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Scan<()> {
    let start = *at;
    let first = hex(text, start + 2)?;
    *at += 6;
    let code = match first {
        0xD800..=0xDBFF if text.get(*at..*at + 2) == Some(b"\\u") => match hex(text, *at + 2)? {
            low @ 0xDC00..=0xDFFF => {
                *at += 6;
                0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00)
            }
            _ => return error(start, "a surrogate in a string has no partner"),
        },
        _ => first,
    };
    match char::from_u32(code) {
        Some(character) => {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            Ok(())
        }
        None => error(start, "a surrogate in a string has no partner"),
    }
}

fn hex(text: &[u8], at: usize) -> Scan<u32> {
    let mut code = 0;
    for offset in at..at + 4 {
        match text.get(offset).and_then(|&b| char::from(b).to_digit(16)) {
            Some(digit) => code = code * 16 + digit,
            None => return error(offset, "\\u in a string needs four hexadecimal digits"),
        }
    }
    Ok(code)
}

/// A JSON number, as Spark's `parse_json` types it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Int(i64),
    Decimal(Decimal),
    Double(f64),
}

impl Number {
    pub fn value(self) -> Value<'static> {
        match self {
            Number::Int(v) => Value::Int64(v),
            Number::Decimal(v) => Value::Decimal(v),
            Number::Double(v) => Value::Double(v),
        }
    }
}

/// Read the number at `*at`.
///
/// Integers of 64 bits stay integers; other numbers in plain notation are decimals up to 38 digits and scale
/// 38; the rest are doubles as in Spark's `parse_json`. With `doubles`, all that are not integers are doubles.
#[inline(always)]
pub fn number(text: &[u8], at: &mut usize, doubles: bool) -> Scan<Number> {
    let start = *at;
    let negative = text[start] == b'-';
    let first = start + usize::from(negative);
    let mut end = first;
    let mut digits: u64 = 0;
    while let Some(digit @ b'0'..=b'9') = text.get(end) {
        digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        end += 1;
    }
    let whole = end - first;
    if whole == 0 {
        return error(end, "a number needs a digit");
    }
    if whole > 1 && text[first] == b'0' {
        return error(first, "a number must not begin with 0");
    }
    let mut scale = 0;
    if text.get(end) == Some(&b'.') {
        let point = end;
        end += 1;
        while let Some(digit @ b'0'..=b'9') = text.get(end) {
            digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            end += 1;
        }
        scale = end - point - 1;
        if scale == 0 {
            return error(end, "a number needs a digit after its point");
        }
    }
    let exponent = matches!(text.get(end), Some(b'e' | b'E'));
    if exponent {
        end = skip_exponent(text, end)?;
    }
    *at = end;
    if exponent || (doubles && scale > 0) || whole + scale > 18 {
        return Ok(long_number(&text[start..end], exponent || (doubles && scale > 0)));
    }
    let signed = if negative { -(digits as i64) } else { digits as i64 };
    Ok(match scale {
        0 => Number::Int(signed),
        _ => Number::Decimal(Decimal { unscaled: signed.into(), scale: scale as u8 }),
    })
}

fn skip_exponent(text: &[u8], mut at: usize) -> Scan<usize> {
    at += 1;
    if let Some(b'+' | b'-') = text.get(at) {
        at += 1;
    }
    let first = at;
    while let Some(b'0'..=b'9') = text.get(at) {
        at += 1;
    }
    if at == first { error(at, "a number needs a digit in its exponent") } else { Ok(at) }
}

/// A number of more than 18 digits, or one that is a double.
#[cold]
fn long_number(text: &[u8], double: bool) -> Number {
    let text = std::str::from_utf8(text).unwrap_or_default();
    if !double {
        if let Ok(int) = text.parse::<i64>() {
            return Number::Int(int);
        }
        if let Some(decimal) = long_decimal(text) {
            return Number::Decimal(decimal);
        }
    }
    Number::Double(text.parse().unwrap_or(f64::NAN))
}

fn long_decimal(text: &str) -> Option<Decimal> {
    let scale = text.find('.').map_or(0, |point| text.len() - point - 1);
    if scale > usize::from(MAX_DECIMAL_DIGITS) {
        return None;
    }
    let mut unscaled: i128 = 0;
    for digit in text.bytes().filter(u8::is_ascii_digit) {
        unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    if unscaled >= 10i128.pow(u32::from(MAX_DECIMAL_DIGITS)) {
        return None;
    }
    let unscaled = if text.starts_with('-') { -unscaled } else { unscaled };
    Some(Decimal { unscaled, scale: scale as u8 })
}
