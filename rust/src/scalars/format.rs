//! Dates and timestamps as text by a pattern, and text as timestamps.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{ArrayRef, PrimitiveArray};

use super::pattern::{Element, Field, Offset, elements};
use super::{Arguments, text};
use crate::error::{Error, Result};
use crate::value::Zone;
use crate::value::text::{civil, days};

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The first day since the epoch is a Thursday.
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
/// The most digits of a number without a fixed width.
const MAX_DIGITS: usize = 19;

/// The short form of a name.
fn short(name: &str) -> &str {
    &name[..3]
}

/// Print each timestamp in local time: the timestamp, then the pattern.
pub fn date_format(arguments: &Arguments) -> Result<ArrayRef> {
    let micros = arguments.primitive::<TimestampMicrosecondType>(0)?;
    let pattern = arguments.constant(1)?.map(|pattern| elements(pattern, false)).transpose()?;
    text::build(arguments.rows, |row| {
        Ok(micros.get(row).zip(pattern.as_ref()).map(|(micros, pattern)| {
            let (seconds, ahead) = arguments.zone.local_seconds(micros.div_euclid(MICROS_PER_SECOND));
            let moment = Printed { seconds, micros: micros.rem_euclid(MICROS_PER_SECOND), ahead };
            let mut out = String::new();
            pattern.iter().for_each(|element| moment.print(&mut out, element));
            out
        }))
    })
}

/// A local time to print, and how far it is ahead of UTC.
struct Printed {
    seconds: i64,
    micros: i64,
    ahead: i64,
}

impl Printed {
    fn print(&self, out: &mut String, element: &Element) {
        let day = self.seconds.div_euclid(SECONDS_PER_DAY);
        // Writing to a String cannot fail.
        let _ = match element {
            Element::Text(text) => out.write_str(text),
            Element::Number { field, width } => {
                let number = self.field(*field);
                let exceeds = *field == Field::Year && *width >= 4 && number >= 10i64.pow(*width as u32);
                let sign = if number < 0 {
                    "-"
                } else if exceeds {
                    "+"
                } else {
                    ""
                };
                write!(out, "{sign}{:0width$}", number.abs())
            }
            Element::ShortYear => write!(out, "{:02}", self.field(Field::Year).abs() % 100),
            Element::MonthName { is_full } => {
                let name = MONTHS[self.field(Field::Month) as usize - 1];
                out.write_str(if *is_full { name } else { short(name) })
            }
            Element::DayName { is_full } => {
                let name = DAYS[day.rem_euclid(7) as usize];
                out.write_str(if *is_full { name } else { short(name) })
            }
            Element::Fraction(digits) => {
                write!(out, "{}", &format!("{:06}000", self.micros)[..*digits])
            }
            Element::HalfDay => out.write_str(if self.field(Field::Hour) < 12 { "AM" } else { "PM" }),
            Element::Offset(form) => print_offset(out, *form, self.ahead),
        };
    }

    fn field(&self, field: Field) -> i64 {
        let day = self.seconds.div_euclid(SECONDS_PER_DAY);
        let second = self.seconds.rem_euclid(SECONDS_PER_DAY);
        let (year, month, of_month) = civil(day);
        let hour = second / 3600;
        match field {
            Field::Year => year,
            Field::Quarter => (month as i64 + 2) / 3,
            Field::Month => month as i64,
            Field::Day => of_month as i64,
            Field::DayOfYear => day - days(year, 1, 1).unwrap_or(day) + 1,
            Field::Hour => hour,
            Field::ClockHour => (hour + 23) % 24 + 1,
            Field::HalfHour => hour % 12,
            Field::ClockHalfHour => (hour + 11) % 12 + 1,
            Field::Minute => second / 60 % 60,
            Field::Second => second % 60,
        }
    }
}

fn print_offset(out: &mut String, form: Offset, ahead: i64) -> std::fmt::Result {
    // Seconds are left out.
    let minutes = ahead.abs() / 60;
    if minutes == 0 && form.is_zero_z {
        return out.write_str("Z");
    }
    let sign = if ahead < 0 && minutes > 0 { '-' } else { '+' };
    write!(out, "{sign}{:02}", minutes / 60)?;
    if form.is_short && minutes % 60 == 0 {
        return Ok(());
    }
    write!(out, "{}{:02}", if form.has_colon { ":" } else { "" }, minutes % 60)
}

/// Read each text as a timestamp, in local time without an offset: the text, then the pattern.
pub fn to_timestamp(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.text(0)?;
    let pattern = arguments.constant(1)?;
    let parsed = pattern.map(|pattern| elements(pattern, true)).transpose()?;
    let moments = (0..arguments.rows).map(|row| {
        let Some((text, elements)) = texts.get(row).zip(parsed.as_ref()) else { return Ok(None) };
        match read(text, elements, &arguments.zone) {
            Some(micros) => Ok(Some(micros)),
            None => Err(Error::cast(format!(
                "{:?} does not match the pattern {:?}",
                text.chars().take(60).collect::<String>(),
                pattern.unwrap_or_default()
            ))),
        }
    });
    let moments = moments.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?;
    Ok(Arc::new(moments.with_timezone("UTC")))
}

/// The parts of a moment that a text has.
#[derive(Default)]
struct Parts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    hour: Option<i64>,
    half_hour: Option<i64>,
    is_afternoon: bool,
    minute: i64,
    second: i64,
    micros: i64,
    offset: Option<i64>,
}

fn read(text: &str, elements: &[Element], zone: &Zone) -> Option<i64> {
    let mut parts = Parts::default();
    let mut rest = text;
    for (index, element) in elements.iter().enumerate() {
        rest = parts.read(rest, element, fixed_digits(&elements[index + 1..]))?;
    }
    if rest.is_empty() { parts.moment(zone) } else { None }
}

/// The digits of the numbers of fixed width that follow immediately.
fn fixed_digits(elements: &[Element]) -> usize {
    let width = |element: &Element| match element {
        Element::Number { field, width: 2 } if *field != Field::Year => Some(2),
        Element::ShortYear => Some(2),
        _ => None,
    };
    elements.iter().map_while(width).sum()
}

impl Parts {
    /// Read an element at the start of a text, and return what follows.
    fn read<'a>(&mut self, text: &'a str, element: &Element, reserved: usize) -> Option<&'a str> {
        match element {
            Element::Text(expected) => {
                let (found, rest) = text.split_at_checked(expected.len())?;
                (found.to_lowercase() == expected.to_lowercase()).then_some(rest)
            }
            Element::Number { field, width } => {
                let (number, rest) = match (field, width) {
                    (Field::Year, width) => year(text, *width, reserved)?,
                    (_, 1) => number(text, 1, MAX_DIGITS, reserved)?,
                    (_, width) => number(text, *width, *width, 0)?,
                };
                self.set(*field, number)?;
                Some(rest)
            }
            Element::ShortYear => {
                let (number, rest) = number(text, 2, 2, 0)?;
                self.year = Some(2000 + number);
                Some(rest)
            }
            Element::MonthName { is_full } => {
                let position = MONTHS.iter().position(|name| {
                    let name = if *is_full { name } else { short(name) };
                    text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                })?;
                self.month = Some(position as i64 + 1);
                text.get(if *is_full { MONTHS[position].len() } else { 3 }..)
            }
            Element::Fraction(digits) => {
                let count = text.bytes().take(*digits).take_while(u8::is_ascii_digit).count();
                let (fraction, rest) = text.split_at_checked(count).filter(|_| count > 0)?;
                self.micros = format!("{fraction:0<9}")[..6].parse().ok()?;
                Some(rest)
            }
            Element::HalfDay => {
                let (found, rest) = text.split_at_checked(2)?;
                self.is_afternoon = found.eq_ignore_ascii_case("pm");
                (self.is_afternoon || found.eq_ignore_ascii_case("am")).then_some(rest)
            }
            Element::Offset(form) => {
                let (seconds, rest) = offset(text, *form)?;
                self.offset = Some(seconds);
                Some(rest)
            }
            Element::DayName { .. } => None,
        }
    }

    fn set(&mut self, field: Field, number: i64) -> Option<()> {
        let is_valid = |range: std::ops::RangeInclusive<i64>| range.contains(&number).then_some(());
        match field {
            Field::Year => self.year = Some(number),
            Field::Month => self.month = Some(number),
            Field::Day => self.day = Some(number),
            Field::Hour => {
                is_valid(0..=23)?;
                self.hour = Some(number);
            }
            Field::ClockHour => {
                is_valid(1..=24)?;
                self.hour = Some(number % 24);
            }
            Field::HalfHour => {
                is_valid(0..=11)?;
                self.half_hour = Some(number);
            }
            Field::ClockHalfHour => {
                is_valid(1..=12)?;
                self.half_hour = Some(number % 12);
            }
            Field::Minute => {
                is_valid(0..=59)?;
                self.minute = number;
            }
            Field::Second => {
                is_valid(0..=59)?;
                self.second = number;
            }
            Field::Quarter | Field::DayOfYear => return None,
        }
        Some(())
    }

    /// The instant; missing parts are those of the epoch.
    fn moment(&self, zone: &Zone) -> Option<i64> {
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        let day = days(self.year.unwrap_or(1970), month.try_into().ok()?, day.try_into().ok()?)?;
        let half = |hour| hour + if self.is_afternoon { 12 } else { 0 };
        let hour = self.hour.or_else(|| self.half_hour.map(half)).unwrap_or(0);
        let seconds = day * SECONDS_PER_DAY + hour * 3600 + self.minute * 60 + self.second;
        match self.offset {
            Some(ahead) => crate::value::zone::micros(seconds - ahead, self.micros),
            None => zone.instant_of(seconds, self.micros),
        }
    }
}

/// The number of digits at the start of a text, from `least` to `most` and without those `reserved`.
fn number(text: &str, least: usize, most: usize, reserved: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take(most + reserved).take_while(u8::is_ascii_digit).count();
    let count = if reserved > 0 { least.max(count.saturating_sub(reserved)) } else { count };
    let (digits, rest) = text.split_at_checked(count).filter(|_| count >= least)?;
    Some((digits.parse().ok()?, rest))
}

/// A year of at least `width` digits; one of four or more letters has a plus sign if it is longer.
fn year(text: &str, width: usize, reserved: usize) -> Option<(i64, &str)> {
    if let Some(digits) = text.strip_prefix('-') {
        let (year, rest) = number(digits, width, MAX_DIGITS, reserved).filter(|(year, _)| *year != 0)?;
        return Some((-year, rest));
    }
    let signed = text.strip_prefix('+').filter(|_| width >= 4);
    let digits = signed.unwrap_or(text);
    let (year, rest) = number(digits, width, MAX_DIGITS, reserved)?;
    let is_longer = digits.len() - rest.len() > width;
    (width < 4 || signed.is_some() == is_longer).then_some((year, rest))
}

/// The seconds of an offset from UTC at the start of a text.
fn offset(text: &str, form: Offset) -> Option<(i64, &str)> {
    if form.is_zero_z
        && let Some(rest) = text.strip_prefix(['Z', 'z'])
    {
        return Some((0, rest));
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, rest) = number(text.strip_prefix(['+', '-'])?, 2, 2, 0)?;
    let after = if form.has_colon { rest.strip_prefix(':') } else { Some(rest) };
    let (minutes, rest) = match after.and_then(|after| number(after, 2, 2, 0)) {
        Some(found) => found,
        None if form.is_short => (0, rest),
        None => return None,
    };
    (hours <= 18 && minutes < 60 && hours * 60 + minutes <= 18 * 60)
        .then_some((sign * (hours * 3600 + minutes * 60), rest))
}
