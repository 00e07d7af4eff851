//! Patterns of dates and timestamps, with the letters of Spark that mean the same in every version of Java.

use crate::error::{Error, Result};

/// A number of a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The year of the proleptic calendar; the year before 1 is 0.
    Year,
    Quarter,
    Month,
    Day,
    DayOfYear,
    /// 0 to 23.
    Hour,
    /// 1 to 24.
    ClockHour,
    /// 0 to 11.
    HalfHour,
    /// 1 to 12.
    ClockHalfHour,
    Minute,
    Second,
}

/// How an offset from UTC is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    pub has_colon: bool,
    /// Minutes are left out where they are 0.
    pub is_short: bool,
    /// An offset of 0 is printed as `Z`.
    pub is_zero_z: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    Text(String),
    /// The digits are padded with zeros to `width`; one of width 1 or 4 may have more digits.
    Number {
        field: Field,
        width: usize,
    },
    /// The last two digits of a year.
    ShortYear,
    /// The name of a month, of three letters unless `is_full`.
    MonthName {
        is_full: bool,
    },
    DayName {
        is_full: bool,
    },
    /// Digits of a second.
    Fraction(usize),
    HalfDay,
    Offset(Offset),
}

/// The elements of a pattern; letters that only print are errors when `parsing`.
pub fn elements(pattern: &str, parsing: bool) -> Result<Vec<Element>> {
    let mut found = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let count = rest.chars().take_while(|letter| *letter == first).count();
        let (element, used) = match first {
            '\'' => quoted(rest).ok_or_else(|| unsupported(pattern, "a quote is not closed"))?,
            'a'..='z' | 'A'..='Z' => {
                let element = letters(first, count, parsing)
                    .ok_or_else(|| unsupported(pattern, &format!("letters {:?}", &rest[..count])))?;
                (element, count)
            }
            '[' | ']' | '{' | '}' | '#' => {
                return Err(unsupported(pattern, &format!("the character {first:?}")));
            }
            _ => (Element::Text(first.to_string()), first.len_utf8()),
        };
        if parsing && found.iter().any(|known| same(known, &element)) {
            return Err(unsupported(pattern, "a field occurs twice"));
        }
        found.push(element);
        rest = &rest[used..];
    }
    Ok(found)
}

fn unsupported(pattern: &str, what: &str) -> Error {
    Error::unsupported(format!("the pattern {pattern:?} is not supported: {what}"))
}

/// The text in quotes at the start, in which two quotes are one, and how many bytes it takes.
fn quoted(text: &str) -> Option<(Element, usize)> {
    let mut content = String::new();
    let mut position = 1;
    loop {
        let end = text[position..].find('\'')? + position;
        content.push_str(&text[position..end]);
        position = end + 1;
        if !text[position..].starts_with('\'') {
            break;
        }
        content.push('\'');
        position += 1;
    }
    // Two quotes outside of quoted text stand for one quote.
    if content.is_empty() {
        content.push('\'');
    }
    Some((Element::Text(content), position))
}

fn letters(letter: char, count: usize, parsing: bool) -> Option<Element> {
    let number = |field| Some(Element::Number { field, width: count });
    match (letter, count) {
        ('y', 2) => Some(Element::ShortYear),
        ('y', 1 | 3..=6) => number(Field::Year),
        ('M' | 'L', 1 | 2) => number(Field::Month),
        ('M' | 'L', 3 | 4) => Some(Element::MonthName { is_full: count == 4 }),
        ('d', 1 | 2) => number(Field::Day),
        ('H', 1 | 2) => number(Field::Hour),
        ('k', 1 | 2) => number(Field::ClockHour),
        ('K', 1 | 2) => number(Field::HalfHour),
        ('h', 1 | 2) => number(Field::ClockHalfHour),
        ('m', 1 | 2) => number(Field::Minute),
        ('s', 1 | 2) => number(Field::Second),
        ('S', 1..=9) => Some(Element::Fraction(count)),
        ('a', 1) => Some(Element::HalfDay),
        ('X' | 'x', 1..=3) => Some(Element::Offset(Offset {
            has_colon: count == 3,
            is_short: count == 1,
            is_zero_z: letter == 'X',
        })),
        ('Z', 1..=3) => Some(Element::Offset(Offset { has_colon: false, is_short: false, is_zero_z: false })),
        ('D', 1 | 3) if !parsing => number(Field::DayOfYear),
        ('E', 1..=4) if !parsing => Some(Element::DayName { is_full: count == 4 }),
        ('Q' | 'q', 1 | 2) if !parsing => number(Field::Quarter),
        _ => None,
    }
}

/// Whether two elements read the same part of a moment.
fn same(one: &Element, other: &Element) -> bool {
    use Element::{MonthName, Number, ShortYear, Text};
    match (one, other) {
        (Text(_), _) | (_, Text(_)) => false,
        (Number { field: one, .. }, Number { field: other, .. }) => {
            one == other || (is_hour(*one) && is_hour(*other))
        }
        (ShortYear, Number { field, .. }) | (Number { field, .. }, ShortYear) => *field == Field::Year,
        (MonthName { .. }, Number { field, .. }) | (Number { field, .. }, MonthName { .. }) => {
            *field == Field::Month
        }
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

fn is_hour(field: Field) -> bool {
    matches!(field, Field::Hour | Field::ClockHour | Field::HalfHour | Field::ClockHalfHour)
}
