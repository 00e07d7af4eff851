//! Cast one scalar to one SQL type by Spark's ANSI rules; `None` where the value has no such cast.
//!
//! Casts between timestamps and local times use the session's time zone. Texts that Spark accepts and this library
//! does not are listed in `delta_variant/expressions/cast.py`.

use std::io::Write;

use super::zone::micros;
use super::{Decimal, Value, Zone, text};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROSECOND_DIGITS: u8 = 6;
const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_DAY: i64 = SECONDS_PER_DAY * MICROS_PER_SECOND;
const NANOS_PER_MICRO: i64 = 1000;

/// A timestamp with time zone, in microseconds.
fn instant(value: &Value<'_>) -> Option<i64> {
    match *value {
        Value::Timestamp(micros) => Some(micros),
        Value::TimestampNanos(nanos) => Some(nanos.div_euclid(NANOS_PER_MICRO)),
        _ => None,
    }
}

/// A timestamp without time zone, in microseconds.
fn local(value: &Value<'_>) -> Option<i64> {
    match *value {
        Value::TimestampNtz(micros) => Some(micros),
        Value::TimestampNtzNanos(nanos) => Some(nanos.div_euclid(NANOS_PER_MICRO)),
        _ => None,
    }
}

fn whole(value: &Value<'_>) -> Option<i64> {
    match *value {
        Value::Int8(v) => Some(v.into()),
        Value::Int16(v) => Some(v.into()),
        Value::Int32(v) => Some(v.into()),
        Value::Int64(v) => Some(v),
        _ => None,
    }
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / MICROS_PER_SECOND as f64
}

pub(super) fn boolean(value: &Value<'_>) -> Option<bool> {
    match *value {
        Value::Boolean(v) => Some(v),
        Value::Float(v) => Some(v != 0.0),
        Value::Double(v) => Some(v != 0.0),
        Value::Decimal(v) => Some(v.unscaled != 0),
        Value::String(v) => match trim(v).to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "1" => Some(true),
            "f" | "false" | "n" | "no" | "0" => Some(false),
            _ => None,
        },
        _ => whole(value).map(|v| v != 0),
    }
}

pub(super) fn integer(value: &Value<'_>) -> Option<i64> {
    match *value {
        Value::Boolean(v) => Some(v.into()),
        Value::Float(v) => truncated(v.into()),
        Value::Double(v) => truncated(v),
        Value::Decimal(v) => i64::try_from(v.unscaled / power_of_10(v.scale)).ok(),
        Value::String(v) => integer_text(trim(v)),
        _ => whole(value).or_else(|| instant(value).map(|micros| micros.div_euclid(MICROS_PER_SECOND))),
    }
}

/// `number` without its fraction, as Java casts it: 2⁶³ itself becomes the largest integer.
fn truncated(number: f64) -> Option<i64> {
    (number.floor() <= i64::MAX as f64 && number.ceil() >= i64::MIN as f64).then_some(number as i64)
}

fn integer_text(text: &str) -> Option<i64> {
    // The standard library takes the same digits and signs.
    text.parse().ok()
}

pub(super) fn double(value: &Value<'_>) -> Option<f64> {
    match *value {
        Value::Boolean(v) => Some(if v { 1.0 } else { 0.0 }),
        Value::Float(v) => Some(v.into()),
        Value::Double(v) => Some(v),
        Value::Decimal(v) => Some(decimal_to_double(v)),
        Value::String(v) => floating_text(v)?.parse().ok(),
        _ => whole(value).map(|v| v as f64).or_else(|| instant(value).map(seconds)),
    }
}

pub(super) fn float(value: &Value<'_>) -> Option<f32> {
    match *value {
        Value::Boolean(v) => Some(if v { 1.0 } else { 0.0 }),
        Value::Float(v) => Some(v),
        Value::Double(v) => Some(v as f32),
        Value::Decimal(v) => decimal_text(v).parse().ok(),
        Value::String(v) => floating_text(v)?.parse().ok(),
        _ => whole(value).map(|v| v as f32).or_else(|| instant(value).map(|v| seconds(v) as f32)),
    }
}

/// The nearest double.
fn decimal_to_double(decimal: Decimal) -> f64 {
    const EXACT: u128 = 1 << 53;
    // Both sides of the division are exact, so it rounds once.
    if decimal.unscaled.unsigned_abs() <= EXACT && decimal.scale <= 22 {
        return decimal.unscaled as f64 / 10f64.powi(decimal.scale.into());
    }
    decimal_text(decimal).parse().unwrap_or(f64::NAN)
}

fn decimal_text(decimal: Decimal) -> String {
    let mut out = Vec::new();
    text::decimal(&mut out, decimal);
    String::from_utf8(out).unwrap_or_default()
}

/// Text of a floating-point number as Java reads it, without the `f` or `d` that may follow its digits.
fn floating_text(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c| c <= ' ');
    let signed = text.strip_prefix(['+', '-']);
    if signed.is_some_and(|name| name.eq_ignore_ascii_case("nan") && name != "NaN") {
        return None;
    }
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let ends_in_digit = digits.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    Some(if ends_in_digit { digits } else { text })
}

/// The unscaled number of a decimal(`precision`, `scale`), rounded half up.
pub(super) fn decimal(value: &Value<'_>, precision: u8, scale: u8) -> Option<i128> {
    let unscaled = match *value {
        Value::Boolean(v) => rescaled(Decimal { unscaled: v.into(), scale: 0 }, scale),
        Value::Float(v) => rounded_double(v.into(), scale),
        Value::Double(v) => rounded_double(v, scale),
        Value::Decimal(v) => rescaled(v, scale),
        Value::String(v) => rounded_text(v.trim_matches(|c| c <= ' '), scale),
        _ => match whole(value) {
            Some(v) => rescaled(Decimal { unscaled: v.into(), scale: 0 }, scale),
            None => instant(value).and_then(|micros| {
                rescaled(Decimal { unscaled: micros.into(), scale: MICROSECOND_DIGITS }, scale)
            }),
        },
    }?;
    (unscaled.unsigned_abs() < power_of_10(precision).unsigned_abs()).then_some(unscaled)
}

fn power_of_10(exponent: u8) -> i128 {
    10i128.pow(exponent.min(super::MAX_DECIMAL_DIGITS).into())
}

fn rescaled(Decimal { unscaled, scale: from }: Decimal, scale: u8) -> Option<i128> {
    match from.checked_sub(scale) {
        None | Some(0) => unscaled.checked_mul(power_of_10(scale - from)),
        Some(surplus) => {
            let divisor = power_of_10(surplus);
            let half_up =
                if (unscaled % divisor).abs() >= divisor - divisor / 2 { unscaled.signum() } else { 0 };
            Some(unscaled / divisor + half_up)
        }
    }
}

/// A double by its shortest digits, as Java's `BigDecimal.valueOf` takes it.
fn rounded_double(number: f64, scale: u8) -> Option<i128> {
    let mut digits = [0; 32];
    let mut rest = digits.as_mut_slice();
    write!(rest, "{number:e}").ok()?;
    let length = 32 - rest.len();
    rounded_text(std::str::from_utf8(&digits[..length]).ok()?, scale)
}

/// Plain or scientific text as a decimal, rounded half up; `None` too when it has more than 38 digits, and for a
/// scale that Java's `BigDecimal` does not have.
fn rounded_text(text: &str, scale: u8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let mantissa = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || before.bytes().chain(after.bytes());
    if digits().next().is_none() || !digits().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let own_scale = i64::try_from(after.len()).ok()? - i64::from(exponent);
    i32::try_from(own_scale).ok()?;
    let zeros = digits().take_while(|&digit| digit == b'0').count();
    if zeros == before.len() + after.len() {
        // Spark counts the digits before the point, and a zero counts.
        return (1 - own_scale <= super::MAX_DECIMAL_DIGITS.into()).then_some(0);
    }
    // The number of significant digits before the point after `scale` moved it to the right.
    let kept = i64::try_from(before.len()).ok()? + i64::from(exponent) + i64::from(scale)
        - i64::try_from(zeros).ok()?;
    let mut digits = digits().skip(zeros).map(|digit| i128::from(digit - b'0'));
    let Ok(kept) = usize::try_from(kept) else { return Some(0) };
    if kept > super::MAX_DECIMAL_DIGITS.into() {
        return None;
    }
    let magnitude = (0..kept).fold(0, |number, _| number * 10 + digits.next().unwrap_or_default());
    let magnitude = magnitude + i128::from(digits.next().unwrap_or_default() >= 5);
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Days since the epoch; those of an instant are of its local time in `zone`.
pub(super) fn date(value: &Value<'_>, zone: &Zone) -> Option<i32> {
    match *value {
        Value::Date(days) => Some(days),
        Value::String(text) => i32::try_from(date_text(trim(text))?).ok(),
        _ => {
            let days = match instant(value) {
                Some(micros) => {
                    zone.local_seconds(micros.div_euclid(MICROS_PER_SECOND)).0.div_euclid(SECONDS_PER_DAY)
                }
                None => local(value)?.div_euclid(MICROS_PER_DAY),
            };
            i32::try_from(days).ok()
        }
    }
}

/// Microseconds since the epoch of a timestamp with time zone; dates and local times are those of `zone`.
pub(super) fn timestamp(value: &Value<'_>, zone: &Zone) -> Option<i64> {
    match *value {
        Value::Date(days) => zone.instant_of(i64::from(days) * SECONDS_PER_DAY, 0),
        Value::Float(v) => truncated(f64::from(v) * MICROS_PER_SECOND as f64),
        Value::Double(v) => truncated(v * MICROS_PER_SECOND as f64),
        Value::Decimal(v) => {
            let (whole, rest) = (v.unscaled / power_of_10(v.scale), v.unscaled % power_of_10(v.scale));
            // The rest loses digits that are far below a microsecond, so that the product fits.
            let dropped = v.scale.saturating_sub(30);
            let rest =
                rest / power_of_10(dropped) * i128::from(MICROS_PER_SECOND) / power_of_10(v.scale - dropped);
            i64::try_from(whole.checked_mul(MICROS_PER_SECOND.into())? + rest).ok()
        }
        Value::String(text) => {
            let moment = moment_text(trim(text))?;
            moment.zone.as_ref().unwrap_or(zone).instant_of(moment.seconds, moment.fraction)
        }
        _ => match whole(value) {
            Some(seconds) => seconds.checked_mul(MICROS_PER_SECOND),
            None => instant(value).or_else(|| zone.instant(local(value)?)),
        },
    }
}

/// Microseconds of a timestamp without time zone, for an instant its local time in `zone`; the zone in a text is read
/// and dropped.
pub(super) fn timestamp_ntz(value: &Value<'_>, zone: &Zone) -> Option<i64> {
    match *value {
        Value::Date(days) => i64::from(days).checked_mul(MICROS_PER_DAY),
        Value::String(text) => {
            let moment = moment_text(trim(text))?;
            micros(moment.seconds, moment.fraction)
        }
        _ => local(value).or_else(|| zone.local(instant(value)?)),
    }
}

pub(super) fn binary<'a>(value: &Value<'a>) -> Option<&'a [u8]> {
    match *value {
        Value::Binary(bytes) => Some(bytes),
        Value::String(text) => Some(text.as_bytes()),
        _ => None,
    }
}

/// Append a scalar as text, an instant as local time of `zone`; binary must be UTF-8.
pub(super) fn string(out: &mut Vec<u8>, value: &Value<'_>, zone: &Zone) -> Option<()> {
    match *value {
        Value::Timestamp(micros) => drop(text::timestamp(out, micros, MICROS_PER_SECOND, zone)),
        Value::TimestampNanos(nanos) => {
            text::timestamp(out, nanos, MICROS_PER_SECOND * NANOS_PER_MICRO, zone);
        }
        Value::Binary(bytes) => out.extend_from_slice(super::utf8(bytes)?.as_bytes()),
        _ => super::json::plain(out, value, zone).ok()?,
    }
    Some(())
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_control() || c == ' ')
}

/// A moment read from text: its local time, in seconds and microseconds of a second, and the time zone it names.
struct Moment {
    seconds: i64,
    fraction: i64,
    zone: Option<Zone>,
}

/// `[+-]yyyy[y…]`, `-[m]m` and `-[d]d`, of which the last may be left out; text after a space or `T` is ignored.
fn date_text(text: &str) -> Option<i64> {
    let (days, rest) = split_date(text)?;
    (rest.is_empty() || rest.starts_with([' ', 'T'])).then_some(days)
}

/// The day at the start of `text`, and what follows it.
fn split_date(text: &str) -> Option<(i64, &str)> {
    let is_negative = text.starts_with('-');
    let (year, rest) = number(text.strip_prefix(['-', '+']).unwrap_or(text), 4..=7)?;
    let year = if is_negative { -(year as i64) } else { year as i64 };
    let Some(rest) = rest.strip_prefix('-') else {
        return rest.is_empty().then_some((text::days(year, 1, 1)?, rest));
    };
    let (month, rest) = number(rest, 1..=2)?;
    let Some(rest) = rest.strip_prefix('-') else {
        return rest.is_empty().then_some((text::days(year, month, 1)?, rest));
    };
    let (day, rest) = number(rest, 1..=2)?;
    Some((text::days(year, month, day)?, rest))
}

/// The number at the start of `text`, of `digits` digits, and the rest.
fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<(u64, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(count)?;
    Some((number.parse().ok().filter(|_| digits.contains(&count))?, rest))
}

fn moment_text(text: &str) -> Option<Moment> {
    let (days, rest) = split_date(text)?;
    let midnight = days * SECONDS_PER_DAY;
    if rest.is_empty() {
        return Some(Moment { seconds: midnight, fraction: 0, zone: None });
    }
    let rest = rest.strip_prefix([' ', 'T'])?;
    let (seconds, fraction, rest) = time_of_day(rest)?;
    let name = rest.trim_start_matches(' ');
    let zone = if name.is_empty() { None } else { Some(Zone::parse(name)?) };
    Some(Moment { seconds: midnight + seconds, fraction, zone })
}

/// Seconds since midnight, and microseconds of a second, of the time `[h]h[:[m]m[:[s]s[.f…]]]` at the start of
/// `text`, and the time zone that follows: only seconds may be followed by one.
fn time_of_day(text: &str) -> Option<(i64, i64, &str)> {
    let (hour, rest) = number(text, 1..=2)?;
    let (minute, rest) = after_colon(rest)?.unwrap_or((0, rest));
    let (second, zone) = match after_colon(rest)? {
        Some(second) => second,
        None if rest.is_empty() => (0, rest),
        None => return None,
    };
    let (micros, zone) = match zone.strip_prefix('.') {
        Some(fraction) => micros_of(fraction)?,
        None => (0, zone),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(((hour * 3600 + minute * 60 + second) as i64, micros, zone))
}

/// The number of one or two digits after a colon: none without a colon, and no time without a number.
fn after_colon(text: &str) -> Option<Option<(u64, &str)>> {
    match text.strip_prefix(':') {
        Some(rest) => number(rest, 1..=2).map(Some),
        None => Some(None),
    }
}

/// The first six digits of a fraction, and what follows its digits.
fn micros_of(fraction: &str) -> Option<(i64, &str)> {
    let count = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let digits = fraction.bytes().take(count).chain(std::iter::repeat(b'0'));
    let micros = digits.take(6).fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0'));
    Some((micros, fraction.get(count..)?))
}
