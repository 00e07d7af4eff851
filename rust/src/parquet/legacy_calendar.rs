//! Dates and timestamps of files in the legacy calendar of Spark.
//!
//! Spark 2, and later versions in the mode LEGACY, store days and instants of `java.util`: of the Julian calendar before
//! 1582-10-15, and of today's standard time before 1900. Spark states so in the footer, and reads the same local date or
//! time in the calendar and the time zone of `java.time`. So does this module.

use std::slice;
use std::sync::LazyLock;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, TimeUnit as ArrowUnit};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescriptor;

use crate::error::{Error, Result};
use crate::value::Zone;
use crate::value::text::{civil, days};

const VERSION: &str = "org.apache.spark.version";
const TIME_ZONE: &str = "org.apache.spark.timeZone";
/// The key of a mark, and the first version of Spark without whose mark values are not in the legacy calendar.
const DATETIME: (&str, &str) = ("org.apache.spark.legacyDateTime", "3.0.0");
const INT96: (&str, &str) = ("org.apache.spark.legacyINT96", "3.1.0");

/// The first day of the Gregorian calendar in `java.util`, 1582-10-15.
const FIRST_GREGORIAN_DAY: i64 = -141_427;
/// From 1900 on, all time zones of `java.util` are those of `java.time`.
const LAST_SWITCH: i64 = -2_208_988_800;
/// The first day of the year 1 in the Julian calendar.
const FIRST_COMMON_DAY: i64 = -719_164;
const SECONDS_PER_DAY: i64 = 86_400;

static ZONES: LazyLock<Vec<ZoneRules>> = LazyLock::new(|| {
    let lines = include_str!("legacy_zones.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(ZoneRules::parse).collect()
});

/// How instants before 1900 in a group of time zones differ.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ZoneRules {
    /// The offset of `java.util` from UTC.
    offset: i64,
    difference: i64,
    /// Later differences, each from an instant on.
    switches: Vec<(i64, i64)>,
    names: Vec<&'static str>,
}

impl ZoneRules {
    fn parse(line: &'static str) -> Option<Self> {
        let mut words = line.split(' ').peekable();
        let (offset, difference) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let mut switches = Vec::new();
        while let Some((instant, difference)) = words.peek().and_then(|word| word.split_once(':')) {
            switches.push((instant.parse().ok()?, difference.parse().ok()?));
            words.next();
        }
        Some(ZoneRules { offset, difference, switches, names: words.collect() })
    }

    /// Return an instant of `java.time`, in seconds; `None` where Spark's result depends on the version of Java.
    fn rebase(&self, instant: i64) -> Option<i64> {
        if instant >= LAST_SWITCH {
            return Some(instant);
        }
        let local = instant + self.offset;
        let day = local.div_euclid(SECONDS_PER_DAY);
        if day >= FIRST_GREGORIAN_DAY {
            let switch = self.switches.iter().rev().find(|(from, _)| instant >= *from);
            return Some(instant + switch.map_or(self.difference, |(_, difference)| *difference));
        }
        let is_known = self.difference == 0 || day >= FIRST_COMMON_DAY;
        let shift = (rebase_day(day)? - day) * SECONDS_PER_DAY;
        is_known.then_some(instant + shift + self.difference)
    }
}

/// Return the day that has the same date in the Gregorian calendar as `day` in the calendar of `java.util`.
fn rebase_day(day: i64) -> Option<i64> {
    if day >= FIRST_GREGORIAN_DAY {
        return Some(day);
    }
    // Years begin in March, so that a leap day is at the end of one.
    let shifted = day + 719_470;
    let day_of_cycle = shifted.rem_euclid(1461);
    let year_of_cycle = (day_of_cycle / 365).min(3);
    let day_of_year = day_of_cycle - 365 * year_of_cycle;
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = shifted.div_euclid(1461) * 4 + year_of_cycle + i64::from(month <= 2);
    // A leap day that the Gregorian calendar lacks is the next day.
    Some(days(year, month.unsigned_abs(), 1)? + day_of_month)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Date,
    Timestamp,
    Int96,
}

/// The columns of a file that are in the legacy calendar.
#[derive(Debug)]
pub(super) struct LegacyCalendar {
    /// For each leaf of the file, like `names`.
    kinds: Vec<Option<Kind>>,
    names: Vec<String>,
    zone: Option<String>,
}

impl LegacyCalendar {
    /// Return the calendar of a file, `None` if no column is in the legacy one.
    pub(super) fn of(metadata: &ParquetMetaData) -> Option<Self> {
        let keys = metadata.file_metadata().key_value_metadata()?;
        let value = |name: &str| {
            let entry = keys.iter().find(|entry| entry.key == name)?;
            Some(entry.value.clone().unwrap_or_default())
        };
        let version = value(VERSION)?;
        let is_legacy = |(mark, since): (&str, &str)| version.as_str() < since || value(mark).is_some();
        let (datetime, int96) = (is_legacy(DATETIME), is_legacy(INT96));
        if !datetime && !int96 {
            return None;
        }
        let descriptor = metadata.file_metadata().schema_descr();
        let is_marked = |kind: &Kind| if *kind == Kind::Int96 { int96 } else { datetime };
        let kinds = descriptor.columns().iter().map(|leaf| kind_of(leaf).filter(is_marked));
        let kinds: Vec<Option<Kind>> = kinds.collect();
        let names = descriptor.columns().iter().map(|leaf| leaf.path().parts().join(".")).collect();
        kinds.iter().any(Option::is_some).then(|| LegacyCalendar { kinds, names, zone: value(TIME_ZONE) })
    }

    /// Whether a leaf may have values that are other moments, by the least of them: its number of days or microseconds.
    pub(super) fn changes(&self, leaf: usize, least: Option<i64>) -> bool {
        match (self.kinds.get(leaf).copied().flatten(), least) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(Kind::Date), Some(day)) => day < FIRST_GREGORIAN_DAY,
            (Some(_), Some(micros)) => micros < LAST_SWITCH * 1_000_000,
        }
    }

    /// Return a batch of some leaves, in the order of the file, in the calendar of `java.time`.
    pub(super) fn rebase(&self, batch: &RecordBatch, leaves: &[usize]) -> Result<RecordBatch> {
        let mut leaves = leaves.iter();
        let columns = batch.columns().iter().map(|array| {
            let data = self.rebase_data(array.to_data(), &mut leaves)?;
            Ok(data.map_or_else(|| array.clone(), make_array))
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
    }

    /// Return an array with other values; `None` if they stay the same. Take the leaves of the array.
    fn rebase_data(&self, data: ArrayData, leaves: &mut slice::Iter<'_, usize>) -> Result<Option<ArrayData>> {
        if !data.data_type().is_nested() {
            let Some(leaf) = leaves.next() else { return Ok(None) };
            let rebased = self.rebase_leaf(*leaf, data);
            return rebased.map_err(|error| error.in_column(&self.names[*leaf]));
        }
        let children = data.child_data().iter().map(|child| self.rebase_data(child.clone(), leaves));
        let children: Vec<Option<ArrayData>> = children.collect::<Result<_>>()?;
        if children.iter().all(Option::is_none) {
            return Ok(None);
        }
        let children = children.into_iter().zip(data.child_data());
        let children = children.map(|(rebased, child)| rebased.unwrap_or_else(|| child.clone())).collect();
        Ok(Some(data.into_builder().child_data(children).build()?))
    }

    fn rebase_leaf(&self, leaf: usize, data: ArrayData) -> Result<Option<ArrayData>> {
        match (self.kinds.get(leaf).copied().flatten(), data.data_type()) {
            (Some(Kind::Date), DataType::Date32) => {
                let dates = PrimitiveArray::<Date32Type>::from(data);
                changed(&dates, FIRST_GREGORIAN_DAY as i32, |day| {
                    let rebased = rebase_day(day.into()).and_then(|day| i32::try_from(day).ok());
                    rebased.ok_or_else(|| Error::data_file(format!("cannot read the date of the day {day}")))
                })
            }
            (Some(kind), DataType::Timestamp(ArrowUnit::Microsecond, _)) => {
                self.rebase_timestamps::<TimestampMicrosecondType>(data, 1_000_000, kind)
            }
            (Some(kind), DataType::Timestamp(ArrowUnit::Millisecond, _)) => {
                self.rebase_timestamps::<TimestampMillisecondType>(data, 1_000, kind)
            }
            _ => Ok(None),
        }
    }

    fn rebase_timestamps<T: ArrowPrimitiveType<Native = i64>>(
        &self,
        data: ArrayData,
        per_second: i64,
        kind: Kind,
    ) -> Result<Option<ArrayData>> {
        let rules = self.zone.as_deref().and_then(find_rules);
        changed(&PrimitiveArray::<T>::from(data), LAST_SWITCH * per_second, |instant| {
            let (second, fraction) = (instant.div_euclid(per_second), instant.rem_euclid(per_second));
            let rebased = rules.as_ref().and_then(|rules| rules.rebase(second));
            let rebased = rebased.and_then(|second| second.checked_mul(per_second)?.checked_add(fraction));
            rebased.ok_or_else(|| self.unknown_moment(second, rules.is_some(), kind))
        })
    }

    fn unknown_moment(&self, second: i64, has_rules: bool, kind: Kind) -> Error {
        let (year, month, day) = civil(second.div_euclid(SECONDS_PER_DAY));
        let reason = match &self.zone {
            None => format!("the file does not state {TIME_ZONE}"),
            Some(zone) if has_rules => {
                format!("Spark computes moments before the year 1 in {zone} by the version of Java")
            }
            Some(zone) => format!("the rules of its time zone {zone:?} are not known"),
        };
        let setting = if kind == Kind::Int96 { "int96" } else { "datetime" };
        Error::data_file(format!(
            "cannot read the timestamp stored as {year:04}-{month:02}-{day:02} because it is in the legacy calendar of \
             Spark, and {reason}; rewrite the file with Spark, in the session time zone of its writer and with \
             spark.sql.parquet.{setting}RebaseModeInWrite=CORRECTED"
        ))
    }
}

/// The rules of a time zone by its name for `java.util`, which takes `GMT+2` for an offset, and `+02:00` for GMT.
fn find_rules(name: &str) -> Option<ZoneRules> {
    if let Some(rules) = ZONES.iter().find(|rules| rules.names.contains(&name)) {
        return Some(rules.clone());
    }
    let offset = match Zone::parse(name)? {
        Zone::Offset(seconds) if name.starts_with("GMT") => seconds.into(),
        Zone::Offset(_) if name.starts_with(['+', '-', 'U', 'Z']) => 0,
        _ => return None,
    };
    Some(ZoneRules { offset, difference: 0, switches: Vec::new(), names: Vec::new() })
}

/// Return an array with its values before `first` changed; `None` if there are none.
fn changed<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    first: T::Native,
    change: impl Fn(T::Native) -> Result<T::Native>,
) -> Result<Option<ArrayData>>
where
    T::Native: PartialOrd,
{
    if !array.iter().flatten().any(|value| value < first) {
        return Ok(None);
    }
    let changed: PrimitiveArray<T> =
        array.try_unary(|value| if value < first { change(value) } else { Ok(value) })?;
    Ok(Some(changed.with_data_type(array.data_type().clone()).into_data()))
}

/// The kind of a leaf column. Those of shredded Variants are in the legacy calendar, too.
fn kind_of(leaf: &ColumnDescriptor) -> Option<Kind> {
    match (leaf.physical_type(), leaf.logical_type_ref(), leaf.converted_type()) {
        (PhysicalType::INT96, _, _) => Some(Kind::Int96),
        (_, Some(LogicalType::Date), _) | (_, None, ConvertedType::DATE) => Some(Kind::Date),
        (_, Some(LogicalType::Timestamp(timestamp)), _) => {
            let is_legacy = timestamp.is_adjusted_to_u_t_c && timestamp.unit != TimeUnit::NANOS;
            is_legacy.then_some(Kind::Timestamp)
        }
        (_, None, ConvertedType::TIMESTAMP_MICROS | ConvertedType::TIMESTAMP_MILLIS) => Some(Kind::Timestamp),
        _ => None,
    }
}
