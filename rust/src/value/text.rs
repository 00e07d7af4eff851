//! Scalars as text, as Spark prints them: in `to_json` and in casts to string.

use std::fmt::LowerExp;
use std::io::Write;

use super::{Decimal, Zone};

/// Append the decimal digits of `value`.
pub fn integer(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(out, value.unsigned_abs());
}

fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    while value >= 100 {
        let pair = (value % 100) as u8;
        value /= 100;
        start -= 2;
        digits[start] = b'0' + pair / 10;
        digits[start + 1] = b'0' + pair % 10;
    }
    if value >= 10 {
        start -= 2;
        digits[start] = b'0' + (value / 10) as u8;
        digits[start + 1] = b'0' + (value % 10) as u8;
    } else {
        start -= 1;
        digits[start] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Append `value` with exactly `width` digits.
fn padded(out: &mut Vec<u8>, value: u64, width: usize) {
    let start = out.len();
    unsigned(out, value);
    let missing = width.saturating_sub(out.len() - start);
    out.splice(start..start, std::iter::repeat_n(b'0', missing));
}

/// Append a decimal without exponent and without zeros at the end of its fraction.
pub fn decimal(out: &mut Vec<u8>, Decimal { unscaled, scale }: Decimal) {
    if unscaled < 0 {
        out.push(b'-');
    }
    let magnitude = unscaled.unsigned_abs();
    match u64::try_from(magnitude) {
        Ok(magnitude) => short_decimal_digits(out, magnitude, scale.into()),
        Err(_) => long_decimal_digits(out, magnitude, scale.into()),
    }
}

/// Append the digits of a decimal; division of 64 bits is several times faster than of 128.
fn short_decimal_digits(out: &mut Vec<u8>, mut magnitude: u64, mut scale: usize) {
    while scale > 0 && magnitude.is_multiple_of(10) {
        magnitude /= 10;
        scale -= 1;
    }
    match POWERS_OF_TEN.get(scale) {
        Some(1) => unsigned(out, magnitude),
        Some(power) => {
            unsigned(out, magnitude / power);
            // The power is a one before the digits of the fraction, with their zeros, and becomes the point.
            let point = out.len();
            unsigned(out, power + magnitude % power);
            out[point] = b'.';
        }
        None => {
            let start = out.len();
            unsigned(out, magnitude);
            point(out, start, scale);
        }
    }
}

/// The powers of ten of which a 64-bit number can be twice as large.
const POWERS_OF_TEN: [u64; 19] = {
    let mut powers = [1; 19];
    let mut index = 1;
    while index < powers.len() {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

fn long_decimal_digits(out: &mut Vec<u8>, mut magnitude: u128, mut scale: usize) {
    while scale > 0 && magnitude.is_multiple_of(10) {
        magnitude /= 10;
        scale -= 1;
    }
    let start = out.len();
    // Writing to a Vec cannot fail.
    drop(write!(out, "{magnitude}"));
    point(out, start, scale);
}

/// Insert a point before the last `scale` of the digits from `start` on, with at least one digit before it.
fn point(out: &mut Vec<u8>, start: usize, scale: usize) {
    if scale > 0 {
        let missing = (scale + 1).saturating_sub(out.len() - start);
        if missing > 0 {
            out.splice(start..start, std::iter::repeat_n(b'0', missing));
        }
        out.insert(out.len() - scale, b'.');
    }
}

/// Append a double as Java's `Double.toString` does: the shortest digits that read back as the same number.
pub fn double(out: &mut Vec<u8>, value: f64) {
    if let Some((digits, scale)) = short_decimal(value) {
        return plain(out, digits, scale);
    }
    if let Some(name) = not_a_number(value) {
        return out.extend_from_slice(name);
    }
    scientific(out, &shortest(value));
}

/// Append a float as Java's `Float.toString` does.
pub fn float(out: &mut Vec<u8>, value: f32) {
    if let Some(name) = not_a_number(value.into()) {
        return out.extend_from_slice(name);
    }
    scientific(out, &shortest(value));
}

fn shortest(value: impl LowerExp) -> Shortest {
    let mut text = Shortest::default();
    // Two digits are tried where one would do: 4.9E-324.
    if write!(text, "{value:e}").is_ok() && text.digits().len() == 1 {
        text = Shortest::default();
        drop(write!(text, "{value:.1e}"));
    }
    text
}

/// How Java prints a number that is not a JSON number.
fn not_a_number(value: f64) -> Option<&'static [u8]> {
    if value.is_finite() {
        None
    } else if value.is_nan() {
        Some(b"NaN")
    } else if value > 0.0 {
        Some(b"Infinity")
    } else {
        Some(b"-Infinity")
    }
}

/// `value` as `digits / 10^scale` if at most 15 digits represent it, which are then the shortest.
///
/// No two decimals of at most 15 digits are the same double, so one that divides to `value` is the only one.
fn short_decimal(value: f64) -> Option<(i64, usize)> {
    const FRACTIONS: [(usize, f64); 2] = [(2, 1e2), (6, 1e6)];
    let magnitude = value.abs();
    if !(1e-3..1e7).contains(&magnitude) {
        return None;
    }
    FRACTIONS.into_iter().find_map(|(scale, power)| {
        let digits = (value * power).round();
        (digits / power == value).then_some((digits as i64, scale))
    })
}

/// Append `digits / 10^scale` with at least one digit on either side of the point.
fn plain(out: &mut Vec<u8>, mut digits: i64, mut scale: usize) {
    while scale > 1 && digits % 10 == 0 {
        digits /= 10;
        scale -= 1;
    }
    if digits < 0 {
        out.push(b'-');
    }
    let power = 10u64.pow(scale as u32);
    unsigned(out, digits.unsigned_abs() / power);
    out.push(b'.');
    padded(out, digits.unsigned_abs() % power, scale);
}

/// The shortest digits of a floating-point number, as the standard library prints them: `-1.25e-7`.
#[derive(Default)]
struct Shortest {
    text: [u8; 32],
    length: usize,
}

impl Write for Shortest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let free = self.text.get_mut(self.length..).unwrap_or_default();
        let taken = bytes.len().min(free.len());
        free[..taken].copy_from_slice(&bytes[..taken]);
        self.length += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shortest {
    fn unsigned(&self) -> &[u8] {
        let text = &self.text[..self.length];
        text.strip_prefix(b"-").unwrap_or(text)
    }

    fn is_negative(&self) -> bool {
        self.text[0] == b'-'
    }

    fn exponent_at(&self) -> usize {
        self.unsigned().iter().position(|&byte| byte == b'e').unwrap_or(self.unsigned().len())
    }

    /// The digits, with a point after the first when there are more.
    fn digits(&self) -> &[u8] {
        &self.unsigned()[..self.exponent_at()]
    }

    fn exponent(&self) -> i32 {
        let text = self.unsigned().get(self.exponent_at() + 1..).unwrap_or_default();
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// Append in Java's form: plain from 0.001 up to 10⁷, with an exponent otherwise.
fn scientific(out: &mut Vec<u8>, number: &Shortest) {
    if number.is_negative() {
        out.push(b'-');
    }
    let (first, rest) = number.digits().split_first().map_or((b'0', &[][..]), |(&first, rest)| (first, rest));
    // The zero of `1.0` is not a significant digit.
    let rest = rest.strip_prefix(b".").filter(|rest| rest != b"0").unwrap_or_default();
    let fraction: &[u8] = if rest.is_empty() { b"0" } else { rest };
    match number.exponent() {
        exponent @ 0..7 => {
            let whole = exponent as usize;
            out.push(first);
            out.extend_from_slice(&rest[..whole.min(rest.len())]);
            out.extend(std::iter::repeat_n(b'0', whole.saturating_sub(rest.len())));
            out.push(b'.');
            out.extend_from_slice(rest.get(whole..).filter(|rest| !rest.is_empty()).unwrap_or(b"0"));
        }
        exponent @ -3..0 => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
            out.push(first);
            out.extend_from_slice(rest);
        }
        exponent => {
            out.push(first);
            out.push(b'.');
            out.extend_from_slice(fraction);
            out.push(b'E');
            integer(out, exponent.into());
        }
    }
}

const SECONDS_PER_DAY: i64 = 86_400;

/// Append days since the epoch as `2026-01-01`, in the proleptic Gregorian calendar.
///
/// Like Java's `LocalDate`, print a plus sign before a year after 9999.
pub fn date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    if year < 0 {
        out.push(b'-');
    } else if year > 9999 {
        out.push(b'+');
    }
    padded(out, year.unsigned_abs(), 4);
    out.push(b'-');
    padded(out, month, 2);
    out.push(b'-');
    padded(out, day, 2);
}

/// The year, month and day of a day since the epoch (Howard Hinnant's `civil_from_days`).
pub(crate) fn civil(days: i64) -> (i64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097) as u64;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era as i64 + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The day since the epoch of a year, month and day; `None` where the calendar has no such day.
pub(crate) fn days(year: i64, month: u64, day: u64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year.abs() > 10_000_000 {
        return None;
    }
    let shifted = year - i64::from(month <= 2);
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = ((153 * month_from_march + 2) / 5 + day - 1) as i64;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    (civil(days) == (year, month, day)).then_some(days)
}

/// Append an instant as local time of `zone`, and return how many seconds that is ahead of UTC.
pub fn timestamp(out: &mut Vec<u8>, units: i64, units_per_second: i64, zone: &Zone) -> i64 {
    let (seconds, ahead) = zone.local_seconds(units.div_euclid(units_per_second));
    moment(out, seconds, units.rem_euclid(units_per_second), units_per_second);
    ahead
}

/// Append a timestamp without time zone.
pub fn timestamp_ntz(out: &mut Vec<u8>, units: i64, units_per_second: i64) {
    moment(out, units.div_euclid(units_per_second), units.rem_euclid(units_per_second), units_per_second);
}

/// Append a moment as `2026-01-01 12:00:00.5`: as many digits of a second as it has.
fn moment(out: &mut Vec<u8>, seconds: i64, fraction: i64, units_per_second: i64) {
    date(out, seconds.div_euclid(SECONDS_PER_DAY));
    out.push(b' ');
    time_of_day(out, seconds.rem_euclid(SECONDS_PER_DAY), fraction, units_per_second);
}

/// Append an offset from UTC as `+01:00`, without its seconds.
pub fn offset(out: &mut Vec<u8>, ahead: i64) {
    out.push(if ahead < 0 { b'-' } else { b'+' });
    let minutes = ahead.unsigned_abs() / 60;
    padded(out, minutes / 60, 2);
    out.push(b':');
    padded(out, minutes % 60, 2);
}

/// Append microseconds since midnight as `12:00:00.5`.
pub fn time(out: &mut Vec<u8>, micros: i64) {
    const MICROS: i64 = 1_000_000;
    time_of_day(out, micros / MICROS, micros % MICROS, MICROS);
}

fn time_of_day(out: &mut Vec<u8>, seconds: i64, fraction: i64, units_per_second: i64) {
    let [hour, minute, second] = [seconds / 3600, seconds / 60 % 60, seconds % 60].map(|part| part as u64);
    padded(out, hour, 2);
    out.push(b':');
    padded(out, minute, 2);
    out.push(b':');
    padded(out, second, 2);
    if fraction == 0 {
        return;
    }
    let (mut fraction, mut width) = (fraction, units_per_second.ilog10() as usize);
    while fraction % 10 == 0 {
        fraction /= 10;
        width -= 1;
    }
    out.push(b'.');
    padded(out, fraction as u64, width);
}

/// Append a UUID as `f24f9b64-81fa-49d1-b74e-8c09a6e31c56`.
pub fn uuid(out: &mut Vec<u8>, bytes: &[u8; 16]) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(
            &[byte >> 4, byte & 0xF].map(|nibble| b"0123456789abcdef"[usize::from(nibble)]),
        );
    }
}

/// Append bytes as base64 with padding (RFC 4648, section 4).
pub fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        let digits = [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift & 0x3F) as usize]);
        out.extend_from_slice(&digits[..=chunk.len()]);
        out.extend(std::iter::repeat_n(b'=', 3 - chunk.len()));
    }
}
