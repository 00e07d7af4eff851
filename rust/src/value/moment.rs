//! Parts of dates and timestamps, over the full range of both types.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int32Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};

use super::Zone;
use super::text::{civil, days};
use crate::error::{Error, Result};

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// A field of a date or a time that SQL functions extract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Quarter,
    /// 1 on Sundays.
    DayOfWeek,
    /// 0 on Mondays.
    Weekday,
    DayOfYear,
    /// The week of ISO 8601.
    WeekOfYear,
}

/// The parts by their names in SQL.
pub const PARTS: &[(&str, Part)] = &[
    ("year", Part::Year),
    ("month", Part::Month),
    ("day", Part::Day),
    ("hour", Part::Hour),
    ("minute", Part::Minute),
    ("second", Part::Second),
    ("quarter", Part::Quarter),
    ("dayofweek", Part::DayOfWeek),
    ("weekday", Part::Weekday),
    ("dayofyear", Part::DayOfYear),
    ("weekofyear", Part::WeekOfYear),
];

impl Part {
    /// This field of a local time, in seconds since the epoch.
    fn of(self, seconds: i64) -> i32 {
        let date = seconds.div_euclid(SECONDS_PER_DAY);
        let (year, month, day) = civil(date);
        // The years of the largest timestamps and dates have seven digits.
        match self {
            Part::Year => year as i32,
            Part::Month => month as i32,
            Part::Day => day as i32,
            Part::Hour => (seconds.rem_euclid(SECONDS_PER_DAY) / 3600) as i32,
            Part::Minute => (seconds.rem_euclid(3600) / 60) as i32,
            Part::Second => seconds.rem_euclid(60) as i32,
            Part::Quarter => (month as i32 + 2) / 3,
            Part::DayOfWeek => (date + 4).rem_euclid(7) as i32 + 1,
            Part::Weekday => weekday(date) as i32,
            Part::DayOfYear => day_of_year(date) as i32,
            Part::WeekOfYear => {
                // The week of the year in which its Thursday is.
                let thursday = date - weekday(date) + 3;
                ((day_of_year(thursday) - 1) / 7 + 1) as i32
            }
        }
    }
}

/// 0 on Mondays.
fn weekday(date: i64) -> i64 {
    (date + 3).rem_euclid(7)
}

fn day_of_year(date: i64) -> i64 {
    let (year, _, _) = civil(date);
    days(year, 1, 1).map_or(0, |first| date - first + 1)
}

/// Return `part` of each date or timestamp, for an instant by its local time in `zone`; null stays null.
pub fn parts(values: &ArrayRef, part: Part, zone: &Zone) -> Result<ArrayRef> {
    let utc = Zone::UTC;
    let parts: PrimitiveArray<Int32Type> = match values.data_type() {
        DataType::Date32 => {
            values.as_primitive::<Date32Type>().unary(|days| part.of(i64::from(days) * SECONDS_PER_DAY))
        }
        DataType::Timestamp(TimeUnit::Microsecond, instant) => {
            let zone = if instant.is_some() { zone } else { &utc };
            values
                .as_primitive::<TimestampMicrosecondType>()
                .unary(|micros| part.of(zone.local_seconds(micros.div_euclid(MICROS_PER_SECOND)).0))
        }
        other => return Err(Error::unsupported(format!("expected dates or timestamps, got {other}"))),
    };
    Ok(Arc::new(parts))
}
