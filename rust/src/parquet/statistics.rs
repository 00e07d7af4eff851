//! The statistics of a leaf column in a footer or a page index.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::schema::types::ColumnDescriptor;

use super::page_index::PageStatistics;
use super::read::ParquetFile;
use super::write::null_count;
use crate::value::{self, Decimal, Value};

/// The statistics of one column chunk or one page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics<'a> {
    pub all_null: bool,
    pub no_null: bool,
    /// Bounds in plain encoding; `None` if the file lacks them or uses a deprecated order.
    pub min: Option<&'a [u8]>,
    pub max: Option<&'a [u8]>,
}

impl<'a> Statistics<'a> {
    /// Return the statistics of a column chunk in the footer.
    pub fn of_chunk(file: &'a ParquetFile, row_group: usize, leaf: usize) -> Self {
        let Some(chunk) = file.row_groups().get(row_group).and_then(|group| group.columns().get(leaf)) else {
            return Statistics::default();
        };
        let nulls = null_count(chunk);
        let statistics = chunk.statistics().filter(|statistics| {
            // Before files declared column orders, bytes were compared as signed numbers.
            let is_bytes = matches!(
                chunk.column_type(),
                PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY | PhysicalType::INT96
            );
            !is_bytes || (has_column_orders(file) && !statistics.is_min_max_deprecated())
        });
        Statistics {
            all_null: nulls.is_some_and(|nulls| nulls == chunk.num_values().unsigned_abs()),
            no_null: nulls == Some(0),
            min: statistics.and_then(|statistics| statistics.min_bytes_opt()),
            max: statistics.and_then(|statistics| statistics.max_bytes_opt()),
        }
    }

    /// Return the same statistics, without bounds if the calendar of the file may change some of the values.
    pub fn in_calendar(self, file: &ParquetFile, leaf: usize) -> Self {
        let Some(calendar) = file.calendar() else { return self };
        let column = file.metadata().file_metadata().schema_descr().column(leaf);
        let least = match self.min.and_then(|bytes| bound_value(&column, bytes)) {
            Some(Value::Date(days)) => Some(days.into()),
            Some(Value::Timestamp(micros)) => Some(micros),
            _ => None,
        };
        match calendar.changes(leaf, least) {
            true => Statistics { min: None, max: None, ..self },
            false => self,
        }
    }

    /// Whether a column of Variants has no other values than Variant null.
    pub fn is_variant_null(&self) -> bool {
        let is_null = |bound: Option<&[u8]>| bound == Some(value::NULL);
        self.all_null || is_null(self.min) && is_null(self.max)
    }

    /// Return the statistics of a page in the column index.
    pub fn of_page(page: &'a PageStatistics) -> Self {
        let has_bounds = !page.all_null;
        Statistics {
            all_null: page.all_null,
            no_null: page.null_count == Some(0),
            min: has_bounds.then_some(page.min.as_ref()),
            max: has_bounds.then_some(page.max.as_ref()),
        }
    }
}

fn has_column_orders(file: &ParquetFile) -> bool {
    file.metadata().file_metadata().column_orders().is_some()
}

/// Decode a bound; `None` for bytes that do not match the column's type, and for types whose bounds are not used.
pub fn bound_value<'b>(column: &ColumnDescriptor, bytes: &'b [u8]) -> Option<Value<'b>> {
    let logical = column.logical_type_ref();
    match column.physical_type() {
        PhysicalType::INT32 => int32_value(column, i32::from_le_bytes(bytes.try_into().ok()?)),
        PhysicalType::INT64 => int64_value(column, i64::from_le_bytes(bytes.try_into().ok()?)),
        PhysicalType::FLOAT => Some(Value::Float(f32::from_le_bytes(bytes.try_into().ok()?))),
        PhysicalType::DOUBLE => Some(Value::Double(f64::from_le_bytes(bytes.try_into().ok()?))),
        PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY if is_decimal(column) => {
            decimal(column, big_endian(bytes)?)
        }
        PhysicalType::BYTE_ARRAY if matches!(logical, Some(LogicalType::String)) || is_utf8(column) => {
            std::str::from_utf8(bytes).ok().map(Value::String)
        }
        _ => None,
    }
}

fn is_utf8(column: &ColumnDescriptor) -> bool {
    column.logical_type_ref().is_none() && column.converted_type() == ConvertedType::UTF8
}

fn is_decimal(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_)))
        || column.converted_type() == ConvertedType::DECIMAL
}

fn decimal<'b>(column: &ColumnDescriptor, unscaled: i128) -> Option<Value<'b>> {
    let scale = match column.logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => decimal.scale,
        _ => column.type_scale(),
    };
    Some(Value::Decimal(Decimal { unscaled, scale: u8::try_from(scale).ok()? }))
}

/// A two's complement number of up to 16 bytes, the first the most significant.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let sign = if *bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

fn int32_value<'b>(column: &ColumnDescriptor, number: i32) -> Option<Value<'b>> {
    if is_decimal(column) {
        return decimal(column, number.into());
    }
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Some(Value::Date(number)),
        (Some(LogicalType::Integer(integer)), _) if integer.is_signed => Some(Value::Int32(number)),
        (
            None,
            ConvertedType::NONE | ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32,
        ) => Some(Value::Int32(number)),
        _ => None,
    }
}

fn int64_value<'b>(column: &ColumnDescriptor, number: i64) -> Option<Value<'b>> {
    if is_decimal(column) {
        return decimal(column, number.into());
    }
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(timestamp)), _) => {
            let micros = match timestamp.unit {
                TimeUnit::MILLIS => number.checked_mul(1000)?,
                TimeUnit::MICROS => number,
                TimeUnit::NANOS => number.div_euclid(1000),
            };
            Some(match timestamp.is_adjusted_to_u_t_c {
                true => Value::Timestamp(micros),
                false => Value::TimestampNtz(micros),
            })
        }
        (None, ConvertedType::TIMESTAMP_MILLIS) => Some(Value::Timestamp(number.checked_mul(1000)?)),
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(Value::Timestamp(number)),
        (Some(LogicalType::Integer(integer)), _) if integer.is_signed => Some(Value::Int64(number)),
        (None, ConvertedType::NONE | ConvertedType::INT_64) => Some(Value::Int64(number)),
        _ => None,
    }
}
