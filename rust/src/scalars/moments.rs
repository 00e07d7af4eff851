//! Functions of dates and timestamps.

use std::sync::Arc;

use arrow_array::types::{Date32Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, Float64Array, PrimitiveArray};

use super::Arguments;
use crate::error::{Error, Result};
use crate::value::Zone;
use crate::value::text::{civil, days};

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MILLI: i64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl Unit {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_uppercase().as_str() {
            "MICROSECOND" => Unit::Microsecond,
            "MILLISECOND" => Unit::Millisecond,
            "SECOND" => Unit::Second,
            "MINUTE" => Unit::Minute,
            "HOUR" => Unit::Hour,
            "DAY" | "DD" => Unit::Day,
            "WEEK" => Unit::Week,
            "MON" | "MONTH" | "MM" => Unit::Month,
            "QUARTER" => Unit::Quarter,
            "YEAR" | "YYYY" | "YY" => Unit::Year,
            _ => return None,
        })
    }

    /// The first day of the unit of a day.
    fn first_day(self, day: i64) -> i64 {
        let (year, month, of_month) = civil(day);
        match self {
            Unit::Week => day - (day + 3).rem_euclid(7),
            Unit::Month => day - of_month as i64 + 1,
            Unit::Quarter => days(year, (month - 1) / 3 * 3 + 1, 1).unwrap_or(day),
            Unit::Year => days(year, 1, 1).unwrap_or(day),
            _ => day,
        }
    }

    /// The start of the unit of an instant; `None` beyond 64 bits.
    fn start(self, micros: i64, zone: &Zone) -> Option<i64> {
        let floor = |unit| micros.checked_sub(micros.rem_euclid(unit));
        let second = micros.div_euclid(MICROS_PER_SECOND);
        let (local, ahead) = zone.local_seconds(second);
        match self {
            Unit::Microsecond => Some(micros),
            Unit::Millisecond => floor(MICROS_PER_MILLI),
            Unit::Second => floor(MICROS_PER_SECOND),
            Unit::Minute | Unit::Hour | Unit::Day => {
                let unit = match self {
                    Unit::Minute => 60,
                    Unit::Hour => 3600,
                    _ => SECONDS_PER_DAY,
                };
                let start = local - local.rem_euclid(unit);
                // The same offset from UTC, where the local time has it.
                if zone.local_seconds(start - ahead).1 == ahead {
                    (start - ahead).checked_mul(MICROS_PER_SECOND)
                } else {
                    zone.instant_of(start, 0)
                }
            }
            _ => zone.instant_of(self.first_day(local.div_euclid(SECONDS_PER_DAY)) * SECONDS_PER_DAY, 0),
        }
    }
}

/// The start of the unit of each timestamp: the unit, then the timestamp. Null for an unknown unit.
pub fn date_trunc(arguments: &Arguments) -> Result<ArrayRef> {
    let (unit, micros) = (arguments.text(0)?, arguments.primitive::<TimestampMicrosecondType>(1)?);
    let starts = (0..arguments.rows).map(|row| {
        let Some((unit, micros)) = unit.get(row).and_then(Unit::parse).zip(micros.get(row)) else {
            return Ok(None);
        };
        unit.start(micros, &arguments.zone).map(Some).ok_or_else(overflow)
    });
    let starts = starts.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?;
    Ok(Arc::new(starts.with_timezone("UTC")))
}

/// The first day of the unit of each date: the date, then the unit. Null for a unit below a week.
pub fn trunc(arguments: &Arguments) -> Result<ArrayRef> {
    let (day, unit) = (arguments.primitive::<Date32Type>(0)?, arguments.text(1)?);
    let first = (0..arguments.rows).map(|row| {
        let unit = unit.get(row).and_then(Unit::parse).filter(|unit| *unit >= Unit::Week);
        let Some((unit, day)) = unit.zip(day.get(row)) else { return Ok(None) };
        i32::try_from(unit.first_day(day.into())).map(Some).map_err(|_| overflow())
    });
    Ok(Arc::new(first.collect::<Result<PrimitiveArray<Date32Type>>>()?))
}

/// The same day of a later month, or its last day.
pub fn add_months(arguments: &Arguments) -> Result<ArrayRef> {
    let (day, months) = (arguments.primitive::<Date32Type>(0)?, arguments.primitive::<Int32Type>(1)?);
    let moved = (0..arguments.rows).map(|row| {
        let Some((day, months)) = day.get(row).zip(months.get(row)) else { return Ok(None) };
        let (year, month, of_month) = civil(day.into());
        let month = year * 12 + month as i64 - 1 + i64::from(months);
        let (year, month) = (month.div_euclid(12), month.rem_euclid(12) as u64 + 1);
        let found = (28..=of_month.max(28)).rev().find_map(|last| days(year, month, of_month.min(last)));
        found.and_then(|day| i32::try_from(day).ok()).map(Some).ok_or_else(overflow)
    });
    Ok(Arc::new(moved.collect::<Result<PrimitiveArray<Date32Type>>>()?))
}

/// The months from the second timestamp to the first: a whole number between equal days or last days of months,
/// else with a fraction of 31 days.
pub fn months_between(arguments: &Arguments) -> Result<ArrayRef> {
    let (end, start) = (
        arguments.primitive::<TimestampMicrosecondType>(0)?,
        arguments.primitive::<TimestampMicrosecondType>(1)?,
    );
    let months = (0..arguments.rows).map(|row| {
        let Some((end, start)) = end.get(row).zip(start.get(row)) else { return Ok(None) };
        let place = |micros| Place::of(micros, &arguments.zone).ok_or_else(overflow);
        let (end, start) = (place(end)?, place(start)?);
        let months = (end.month - start.month) as f64;
        if end.day == start.day || end.is_last && start.is_last {
            return Ok(Some(months));
        }
        let seconds = (end.day - start.day) * SECONDS_PER_DAY + end.second - start.second;
        Ok(Some(months + seconds as f64 / (31 * SECONDS_PER_DAY) as f64))
    });
    Ok(Arc::new(months.collect::<Result<Float64Array>>()?))
}

/// The month of a timestamp, the day in it, and the second of that day.
struct Place {
    month: i64,
    day: i64,
    is_last: bool,
    second: i64,
}

impl Place {
    /// `None` for a timestamp whose day begins beyond 64 bits.
    fn of(micros: i64, zone: &Zone) -> Option<Self> {
        let (local, _) = zone.local_seconds(micros.div_euclid(MICROS_PER_SECOND));
        let day = local.div_euclid(SECONDS_PER_DAY);
        let second = (micros - zone.instant_of(day * SECONDS_PER_DAY, 0)?) / MICROS_PER_SECOND;
        let (year, month, of_month) = civil(day);
        let is_last = civil(day + 1).2 == 1;
        Some(Place { month: year * 12 + month as i64, day: of_month as i64, is_last, second })
    }
}

/// Milliseconds since the epoch, rounded down.
pub fn unix_millis(arguments: &Arguments) -> Result<ArrayRef> {
    let micros = arguments.primitive::<TimestampMicrosecondType>(0)?.array;
    Ok(Arc::new(micros.unary::<_, Int64Type>(|micros| micros.div_euclid(MICROS_PER_MILLI))))
}

fn overflow() -> Error {
    Error::cast("a date or timestamp is out of range")
}
