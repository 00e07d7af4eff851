//! Scanning JSON text: eight bytes at a time where that is faster.

use std::borrow::Cow;
use std::ops::Range;

use crate::value::{Decimal, MAX_DECIMAL_DIGITS};

/// Why text is not JSON, and the byte where it stops being JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    pub message: Cow<'static, str>,
    pub offset: usize,
    /// Whether an object has two fields of one name, which `last_duplicate` would accept.
    pub is_duplicate: bool,
}

/// The error is boxed, so that a result of nested values is small.
pub type Scan<T> = Result<T, Box<JsonError>>;

#[cold]
pub fn error<T>(offset: usize, message: impl Into<Cow<'static, str>>) -> Scan<T> {
    Err(Box::new(JsonError { message: message.into(), offset, is_duplicate: false }))
}

/// The first position at or after `at` that is not white space.
#[inline(always)]
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bits of the bytes of `word` that are quotes, backslashes or control characters. Bits after the first one
/// may be wrong.
#[inline(always)]
fn specials(word: u64) -> u64 {
    // Changing bit 1 makes the quote the byte after the control characters, and leaves those among themselves.
    let quotes_and_controls = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let others = word ^ (ONES * b'\\' as u64);
    (quotes_and_controls & !word | others.wrapping_sub(ONES) & !others) & HIGHS
}

/// The first position at or after `at` of a quote, a backslash or a control character, or the end.
#[inline(always)]
fn special(text: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
        let chunk = u128::from_le_bytes(*chunk);
        let (low, high) = (specials(chunk as u64), specials((chunk >> 64) as u64));
        // One branch for both words: the lengths of strings vary, so a branch for each is mispredicted.
        if low | high != 0 {
            let (found, before) = if low != 0 { (low, 0) } else { (high, 8) };
            return at + before + found.trailing_zeros() as usize / 8;
        }
        at += 16;
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

impl<'t> Text<'t> {
    #[inline(always)]
    pub fn bytes(&self, scratch: &'t [u8]) -> &'t [u8] {
        match self {
            Text::Plain(bytes) => bytes,
            Text::Unescaped => scratch,
        }
    }
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
    scratch.clear();
    scratch.extend_from_slice(&text[start..end]);
    *at = unescape(text, end, scratch)?;
    Ok(Text::Unescaped)
}

/// The string whose opening quote is just before `at`, if it has no escapes.
#[inline(always)]
pub fn plain_string(text: &[u8], at: usize) -> Option<Range<usize>> {
    let end = special(text, at);
    (text.get(end) == Some(&b'"')).then_some(at..end)
}

/// Append a range of `text`.
///
/// Most strings are short. A copy of a fixed length, cut off afterwards, is faster than the call that copies the
/// length of each.
#[inline(always)]
pub fn append(out: &mut Vec<u8>, text: &[u8], range: Range<usize>) {
    const LENGTH: usize = 32;
    match text.get(range.start..).and_then(|rest| rest.first_chunk::<LENGTH>()) {
        Some(chunk) if range.len() <= LENGTH => {
            let end = out.len() + range.len();
            out.extend_from_slice(chunk);
            out.truncate(end);
        }
        _ => out.extend_from_slice(&text[range]),
    }
}

/// Append the rest of a string that continues at `at` with an escape. Return the position after its closing quote.
fn unescape(text: &[u8], mut at: usize, out: &mut Vec<u8>) -> Scan<usize> {
    loop {
        match text.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => escape(text, &mut at, out)?,
            Some(_) => return error(at, "a control character in a string must be escaped"),
            None => return error(at, "a string is not closed"),
        }
        let end = special(text, at);
        out.extend_from_slice(&text[at..end]);
        at = end;
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
    /// A decimal of at most 18 digits.
    Short {
        unscaled: i64,
        scale: u8,
    },
    Decimal(Decimal),
    Double(f64),
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
    let mut unscaled = digits(text, &mut end, 0);
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
        unscaled = digits(text, &mut end, unscaled);
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
    let unscaled = if negative { -(unscaled as i64) } else { unscaled as i64 };
    Ok(match scale {
        0 => Number::Int(unscaled),
        _ => Number::Short { unscaled, scale: scale as u8 },
    })
}

/// Append the digits at `*at` to those of `number`, which wraps when it has more than 64 bits.
#[inline(always)]
fn digits(text: &[u8], at: &mut usize, mut number: u64) -> u64 {
    const POWERS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    while let Some(eight) = text.get(*at..).and_then(|rest| rest.first_chunk::<8>()) {
        let (count, leading) = leading_digits(u64::from_le_bytes(*eight));
        number = number.wrapping_mul(POWERS[count]).wrapping_add(leading);
        *at += count;
        if count < 8 {
            return number;
        }
    }
    while let Some(digit @ b'0'..=b'9') = text.get(*at) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        *at += 1;
    }
    number
}

/// The number of digits at the start of eight bytes of text, and their number.
///
/// Without a branch for each digit: the lengths of numbers vary, so such branches are mispredicted.
#[inline(always)]
fn leading_digits(word: u64) -> (usize, u64) {
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    let word = word ^ (ONES * b'0' as u64);
    // The high bit of each byte above 9. A carry changes only later bytes, of which none counts.
    let others = (word.wrapping_add(ONES * 0x76) | word) & HIGHS;
    let count = others.trailing_zeros() as usize / 8;
    // Zeros before the digits, so that there are eight.
    let eight = word.unbounded_shl(64 - 8 * count as u32);
    let pairs = eight.wrapping_mul(10).wrapping_add(eight >> 8);
    let high = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & PAIRS).wrapping_mul(1 + (10_000 << 32));
    (count, high.wrapping_add(low) >> 32)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_at_the_start_of_eight_bytes_are_read_at_once() {
        for count in 0..=8 {
            for other in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
                for rest in [b'0', b'9', 0xFF, 0x00, b'/', b':'] {
                    let mut text = [rest; 8];
                    text[..count].copy_from_slice(&b"90817265"[..count]);
                    if count < 8 {
                        text[count] = other;
                    }
                    let number = "90817265"[..count].parse().unwrap_or(0);
                    assert_eq!(leading_digits(u64::from_le_bytes(text)), (count, number), "{text:?}");
                }
            }
        }
        for number in (0..100_000_000u64).step_by(997) {
            let text: [u8; 8] = format!("{number:08}").into_bytes().try_into().unwrap();
            assert_eq!(leading_digits(u64::from_le_bytes(text)), (8, number));
        }
    }

    #[test]
    fn numbers_of_every_length_are_exact_whatever_follows() {
        for whole in 1..=40usize {
            for scale in 0..=40usize {
                let text = format!("-{}.{}", "9".repeat(whole), "7".repeat(scale));
                let text = text.strip_suffix('.').unwrap_or(&text);
                let expected = match text.parse::<i64>() {
                    Ok(int) => Number::Int(int),
                    _ if whole + scale > 38 => Number::Double(text.parse().unwrap()),
                    _ => {
                        let unscaled: i128 = text.replace('.', "").parse().unwrap();
                        match i64::try_from(unscaled) {
                            Ok(unscaled) if whole + scale <= 18 => {
                                Number::Short { unscaled, scale: scale as u8 }
                            }
                            _ => Number::Decimal(Decimal { unscaled, scale: scale as u8 }),
                        }
                    }
                };
                for rest in ["", ",", "}", " ", ",123456789", "]]]]]]]]]]]"] {
                    let mut at = 0;
                    let read = number(format!("{text}{rest}").as_bytes(), &mut at, false);
                    assert_eq!((read, at), (Ok(expected), text.len()), "{text}{rest}");
                }
            }
        }
    }

    #[test]
    fn the_first_special_byte_is_found_among_any_others() {
        let is_special = |byte: u8| byte == b'"' || byte == b'\\' || byte < 0x20;
        for first in 0..=255u8 {
            for second in 0..=255u8 {
                for at in 0..8 {
                    let mut bytes = [b'x'; 8];
                    bytes[at] = first;
                    bytes[(at + 1) % 8] = second;
                    let expected = bytes.iter().position(|&byte| is_special(byte)).unwrap_or(8);
                    let found = specials(u64::from_le_bytes(bytes)).trailing_zeros() / 8;
                    assert_eq!(found as usize, expected, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn strings_end_at_the_first_quote_wherever_it_is() {
        for length in 0..80 {
            for rest in 0..40 {
                let text = format!("{}\"{}", "é".repeat(length), "\"\\x".repeat(rest));
                let range = plain_string(text.as_bytes(), 0).unwrap();
                assert_eq!(range, 0..2 * length);
                let mut out = b"before".to_vec();
                append(&mut out, text.as_bytes(), range);
                assert_eq!(out, [b"before", "é".repeat(length).as_bytes()].concat());
            }
            for special in [b'\\', 0, 0x1F] {
                let mut text = vec![b'x'; length];
                text.push(special);
                text.extend_from_slice(b"xxxxxxxxxxxx\"");
                assert_eq!(plain_string(&text, 0), None);
            }
        }
    }
}
