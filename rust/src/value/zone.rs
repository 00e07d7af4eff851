//! Time zones by the rules of `java.time`, which Spark follows.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::text::civil;

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MAX_OFFSET: i32 = 18 * 3600;

/// The calendar and the weekdays repeat after 400 years, and so do the rules for years beyond the tables.
const CYCLE: i64 = 146_097 * SECONDS_PER_DAY;
/// The first seconds of the years -9000 and 9000. `jiff` computes with the years -9999 to 9999.
const FIRST: i64 = -346_179_744_000;
const LAST: i64 = 221_845_392_000;

/// The short names that Java and Spark take for a zone or an offset (`ZoneId.SHORT_IDS` of Java 17).
const SHORT_NAMES: [(&str, &str); 28] = [
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("EST", "-05:00"),
    ("HST", "-10:00"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("MST", "-07:00"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

/// A time zone: an offset from UTC in seconds, or a region of the IANA database.
#[derive(Debug, Clone)]
pub enum Zone {
    Offset(i32),
    Region(TimeZone),
}

impl Zone {
    pub const UTC: Zone = Zone::Offset(0);

    /// Return the zone that Spark understands by `name`; `None` for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        let short = SHORT_NAMES.iter().find(|(short, _)| *short == name);
        let name = short.map_or(name, |(_, name)| name);
        if name.starts_with(['+', '-']) {
            return offset(name).map(Zone::Offset);
        }
        if name == "Z" {
            return Some(Zone::UTC);
        }
        if let Some(rest) = ["UTC", "GMT", "UT"].iter().find_map(|prefix| name.strip_prefix(prefix)) {
            if rest.is_empty() {
                return Some(Zone::UTC);
            }
            if rest.starts_with(['+', '-']) {
                return offset(rest).map(Zone::Offset);
            }
        }
        // Names are case-sensitive in Java, but not in `jiff`.
        let zone = TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))?;
        Some(Zone::Region(zone))
    }

    /// How many seconds local time is ahead of UTC at an instant, in seconds since the epoch.
    fn offset_at(&self, instant: i64) -> i64 {
        match self {
            Zone::Offset(seconds) => i64::from(*seconds),
            Zone::Region(zone) => match Timestamp::from_second(in_known_years(instant)) {
                Ok(instant) => zone.to_offset(instant).seconds().into(),
                Err(_) => 0,
            },
        }
    }

    /// How many seconds a local time, in seconds since the epoch, is ahead of UTC.
    ///
    /// A local time that occurs twice means the earlier instant. A local time within a gap is shifted forward by the
    /// length of the gap. Both use the offset before the transition.
    fn offset_of_local(&self, local: i64) -> i64 {
        let zone = match self {
            Zone::Offset(seconds) => return i64::from(*seconds),
            Zone::Region(zone) => zone,
        };
        let Some(local) = civil_time(in_known_years(local)) else { return 0 };
        match zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset }
            | AmbiguousOffset::Gap { before: offset, .. }
            | AmbiguousOffset::Fold { before: offset, .. } => offset.seconds().into(),
        }
    }

    /// The local time of an instant: whole seconds since the epoch, and how far it is ahead of UTC.
    ///
    /// Both are in seconds, since local times of the first and last instants are beyond 64 bits of microseconds.
    pub fn local_seconds(&self, instant: i64) -> (i64, i64) {
        let offset = self.offset_at(instant);
        (instant + offset, offset)
    }

    /// The microseconds of local time at an instant; `None` beyond 64 bits.
    pub fn local(&self, instant: i64) -> Option<i64> {
        let (seconds, _) = self.local_seconds(instant.div_euclid(MICROS_PER_SECOND));
        micros(seconds, instant.rem_euclid(MICROS_PER_SECOND))
    }

    /// The microseconds since the epoch of a local time; `None` beyond 64 bits.
    pub fn instant(&self, local: i64) -> Option<i64> {
        self.instant_of(local.div_euclid(MICROS_PER_SECOND), local.rem_euclid(MICROS_PER_SECOND))
    }

    /// The microseconds since the epoch of a local time, in seconds and microseconds of a second.
    pub fn instant_of(&self, seconds: i64, fraction: i64) -> Option<i64> {
        micros(seconds - self.offset_of_local(seconds), fraction)
    }
}

/// Seconds and microseconds of a second as microseconds; `None` beyond 64 bits.
pub fn micros(seconds: i64, fraction: i64) -> Option<i64> {
    i64::try_from(i128::from(seconds) * i128::from(MICROS_PER_SECOND) + i128::from(fraction)).ok()
}

/// Return an instant in a year that `jiff` supports, at which the same rules hold.
fn in_known_years(seconds: i64) -> i64 {
    // Before the first transition, a zone has one offset.
    let seconds = seconds.max(FIRST);
    if seconds < LAST { seconds } else { LAST - CYCLE + (seconds - LAST).rem_euclid(CYCLE) }
}

fn civil_time(seconds: i64) -> Option<DateTime> {
    let (year, month, day) = civil(seconds.div_euclid(SECONDS_PER_DAY));
    let midnight = DateTime::new(year as i16, month as i8, day as i8, 0, 0, 0, 0).ok()?;
    midnight.checked_add(SignedDuration::from_secs(seconds.rem_euclid(SECONDS_PER_DAY))).ok()
}

/// Seconds ahead of UTC: `+1`, `+01`, `+1:30`, `+01:30`, `+0130`, `+01:30:15` or `+013015`, to 18 hours.
fn offset(text: &str) -> Option<i32> {
    let digits = padded(text.strip_prefix(['+', '-'])?);
    let (hours, minutes, seconds) = match *digits.as_bytes() {
        [a, b] => (two(a, b)?, 0, 0),
        [a, b, c, d] | [a, b, b':', c, d] => (two(a, b)?, two(c, d)?, 0),
        [a, b, c, d, e, f] | [a, b, b':', c, d, b':', e, f] => (two(a, b)?, two(c, d)?, two(e, f)?),
        _ => return None,
    };
    let total = hours * 3600 + minutes * 60 + seconds;
    let is_valid = minutes < 60 && seconds < 60 && total <= MAX_OFFSET;
    is_valid.then_some(if text.starts_with('-') { -total } else { total })
}

/// The number of two digits.
fn two(tens: u8, ones: u8) -> Option<i32> {
    let digit = |byte: u8| byte.is_ascii_digit().then_some(i32::from(byte - b'0'));
    Some(digit(tens)? * 10 + digit(ones)?)
}

/// The text of an offset with the zeros that Spark adds to an hour and to a last part of one digit.
fn padded(text: &str) -> String {
    let mut padded = text.to_owned();
    if text.len() == 1 || text.as_bytes().get(1) == Some(&b':') {
        padded.insert(0, '0');
    }
    if let [.., tens, ones, b':', last] = padded.as_bytes()
        && [tens, ones, last].iter().all(|byte| byte.is_ascii_digit())
    {
        padded.insert(padded.len() - 1, '0');
    }
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        Zone::parse(name).unwrap()
    }

    /// Microseconds of a local time.
    fn at(year: i64, month: u64, day: u64, hour: i64, minute: i64) -> i64 {
        let days = crate::value::text::days(year, month, day).unwrap();
        (days * SECONDS_PER_DAY + hour * 3600 + minute * 60) * MICROS_PER_SECOND
    }

    #[test]
    fn a_gap_moves_local_times_forward_by_its_length() {
        let berlin = zone("Europe/Berlin");
        // At 01:00 UTC, 02:00 became 03:00.
        assert_eq!(berlin.instant(at(2024, 3, 31, 1, 59)), Some(at(2024, 3, 31, 0, 59)));
        assert_eq!(berlin.instant(at(2024, 3, 31, 2, 30)), Some(at(2024, 3, 31, 1, 30)));
        assert_eq!(berlin.instant(at(2024, 3, 31, 3, 30)), Some(at(2024, 3, 31, 1, 30)));
        assert_eq!(berlin.local(at(2024, 3, 31, 1, 30)), Some(at(2024, 3, 31, 3, 30)));
    }

    #[test]
    fn an_ambiguous_local_time_is_the_earlier_instant() {
        let berlin = zone("Europe/Berlin");
        assert_eq!(berlin.instant(at(2024, 10, 27, 2, 30)), Some(at(2024, 10, 27, 0, 30)));
        assert_eq!(berlin.instant(at(2024, 10, 27, 3, 0)), Some(at(2024, 10, 27, 2, 0)));
        for hour in [0, 1] {
            assert_eq!(berlin.local(at(2024, 10, 27, hour, 30)), Some(at(2024, 10, 27, 2, 30)));
        }
    }

    #[test]
    fn the_rules_of_a_zone_apply_in_all_years() {
        let berlin = zone("Europe/Berlin");
        for year in [2050, 9500, 30_000, 290_000] {
            assert_eq!(berlin.local(at(year, 7, 1, 12, 0)), Some(at(year, 7, 1, 14, 0)), "{year}");
            assert_eq!(berlin.instant(at(year, 1, 1, 12, 0)), Some(at(year, 1, 1, 11, 0)), "{year}");
        }
        // Local mean time, 53 minutes and 28 seconds ahead.
        for year in [1800, -9500, -290_000] {
            assert_eq!(berlin.local(at(year, 7, 1, 12, 0)), Some(at(year, 7, 1, 12, 53) + 28_000_000));
        }
    }

    #[test]
    fn a_result_beyond_64_bits_is_none() {
        assert_eq!(zone("+01:00").local(i64::MAX), None);
        assert_eq!(zone("+01:00").instant(i64::MIN), None);
        assert_eq!(zone("-01:00").instant(i64::MAX), None);
        for name in ["UTC", "Z", "+00:00"] {
            assert_eq!(zone(name).local(i64::MIN), Some(i64::MIN));
            assert_eq!(zone(name).instant(i64::MAX), Some(i64::MAX));
        }
    }

    #[test]
    fn offsets_are_read_as_spark_reads_them() {
        for (name, seconds) in [
            ("+1", 3600),
            ("-01", -3600),
            ("+1:30", 5400),
            ("+01:3", 3780),
            ("+0130", 5400),
            ("-01:30:15", -5415),
            ("+013015", 5415),
            ("UTC+1", 3600),
            ("GMT-8", -28_800),
            ("UT+05:30", 19_800),
            ("EST", -18_000),
            ("+18:00", 64_800),
        ] {
            assert_eq!(zone(name).local_seconds(0).1, seconds, "{name}");
        }
        for name in
            ["", "+", "+001", "+1:2:3", "+18:01", "+01:60", "1", "z", "utc", "europe/berlin", "Mars/X", "+é1"]
        {
            assert!(Zone::parse(name).is_none(), "{name}");
        }
    }
}
