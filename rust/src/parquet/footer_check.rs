//! Compare the statistics of row groups and pages, and the Bloom filters, with the values of a file.
//!
//! Readers skip by these, so a value outside of its bounds or absent from its filter is lost. Bounds may be wider than
//! the values, and null counts of repeated columns are not compared: writers count empty lists differently.

use std::cmp::Ordering;
use std::collections::HashMap;

use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::bloom_filter::Sbbf;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{AsBytes, DataType};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use rayon::prelude::*;

use super::bloom_filter::bloom_filter;
use super::page_index::PageIndex;
use super::pages::RowGroup;
use super::read::{ParquetFile, guarded};
use super::statistics::{Statistics, bound_value};
use super::write::null_count;
use crate::error::Result;
use crate::value::json::printed;

const BATCH_ROWS: usize = 64 << 10;

/// A bound or a null count that disagrees with the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FooterViolation {
    pub path: Vec<String>,
    pub row_group: usize,
    /// The page in the page index; `None` for the statistics of the row group.
    pub page: Option<usize>,
    /// "min", "max", "null_count", "null_page" or "bloom_filter".
    pub what: &'static str,
    pub stated: String,
    pub found: String,
}

/// The values of some rows of a leaf: their extremes in plain encoding without NaN, the number of nulls, and the first
/// value that the Bloom filter lacks.
#[derive(Default)]
struct Found {
    extremes: Option<(Vec<u8>, Vec<u8>)>,
    nulls: u64,
    lacking: Option<Vec<u8>>,
}

impl Found {
    fn add(&mut self, value: &[u8], order: Order) {
        match &mut self.extremes {
            None => self.extremes = Some((value.to_vec(), value.to_vec())),
            Some((min, max)) => {
                if order.compare(value, min) == Some(Ordering::Less) {
                    *min = value.to_vec();
                }
                if order.compare(value, max) == Some(Ordering::Greater) {
                    *max = value.to_vec();
                }
            }
        }
    }

    fn merge(&mut self, other: Found, order: Order) {
        self.nulls += other.nulls;
        self.lacking = self.lacking.take().or(other.lacking);
        if let Some((min, max)) = other.extremes {
            self.add(&min, order);
            self.add(&max, order);
        }
    }
}

/// The order of the values of a leaf (parquet.thrift, ColumnOrder).
#[derive(Clone, Copy)]
enum Order {
    Signed,
    Unsigned,
    Float,
    Double,
    Bytes,
    Decimal,
}

impl Order {
    /// Return the order of a leaf, `None` where it is not defined.
    fn of(column: &ColumnDescriptor) -> Option<Self> {
        let logical = column.logical_type_ref();
        let is_unsigned = match (logical, column.converted_type()) {
            (Some(LogicalType::Integer(integer)), _) => !integer.is_signed,
            (None, ConvertedType::UINT_8 | ConvertedType::UINT_16) => true,
            (None, ConvertedType::UINT_32 | ConvertedType::UINT_64) => true,
            _ => false,
        };
        let is_decimal = matches!(logical, Some(LogicalType::Decimal(_)))
            || column.converted_type() == ConvertedType::DECIMAL;
        match column.physical_type() {
            PhysicalType::INT96 => None,
            PhysicalType::FLOAT => Some(Order::Float),
            PhysicalType::DOUBLE => Some(Order::Double),
            PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY => match logical {
                _ if is_decimal => Some(Order::Decimal),
                None if column.converted_type() == ConvertedType::INTERVAL => None,
                Some(LogicalType::Float16 | LogicalType::Variant(_)) => None,
                Some(LogicalType::Geometry(_) | LogicalType::Geography(_)) => None,
                _ => Some(Order::Bytes),
            },
            _ if is_unsigned => Some(Order::Unsigned),
            _ => Some(Order::Signed),
        }
    }

    /// Compare two values in plain encoding; `None` for NaN and for bytes of another length than the type has.
    fn compare(self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        match self {
            Order::Bytes => Some(a.cmp(b)),
            Order::Float => float(a)?.partial_cmp(&float(b)?),
            Order::Double => double(a)?.partial_cmp(&double(b)?),
            Order::Signed => Some(integer(a, true)?.cmp(&integer(b, true)?)),
            Order::Unsigned => Some(integer(a, false)?.cmp(&integer(b, false)?)),
            Order::Decimal => Some(compare_big_endian(a, b)),
        }
    }
}

fn float(bytes: &[u8]) -> Option<f32> {
    Some(f32::from_le_bytes(bytes.try_into().ok()?))
}

fn double(bytes: &[u8]) -> Option<f64> {
    Some(f64::from_le_bytes(bytes.try_into().ok()?))
}

fn integer(bytes: &[u8], is_signed: bool) -> Option<i128> {
    Some(match (bytes.len(), is_signed) {
        (1, _) => bytes[0].into(),
        (4, true) => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        (4, false) => u32::from_le_bytes(bytes.try_into().ok()?).into(),
        (8, true) => i64::from_le_bytes(bytes.try_into().ok()?).into(),
        (8, false) => u64::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => return None,
    })
}

/// Compare two's complement numbers of any length, the most significant byte first.
fn compare_big_endian(a: &[u8], b: &[u8]) -> Ordering {
    let is_negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let length = a.len().max(b.len());
    let widened = |bytes: &[u8]| {
        let sign = if is_negative(bytes) { 0xff } else { 0 };
        let mut wide = vec![sign; length - bytes.len()];
        wide.extend_from_slice(bytes);
        wide
    };
    is_negative(b).cmp(&is_negative(a)).then_with(|| widened(a).cmp(&widened(b)))
}

/// Return all statistics of row groups and pages that disagree with the values.
pub fn check_footer(file: &ParquetFile) -> Result<Vec<FooterViolation>> {
    let leaves: Vec<usize> = (0..file.metadata().file_metadata().schema_descr().num_columns()).collect();
    let parts: Vec<Result<Vec<FooterViolation>>> = (0..file.row_groups().len())
        .into_par_iter()
        .with_max_len(1)
        .map(|row_group| check_row_group(file, row_group, &leaves))
        .collect();
    parts.into_iter().try_fold(Vec::new(), |mut all, part| {
        all.extend(part?);
        Ok(all)
    })
}

fn check_row_group(file: &ParquetFile, row_group: usize, leaves: &[usize]) -> Result<Vec<FooterViolation>> {
    let indexes = file.page_indexes(&[row_group], leaves, true)?.into_iter().flatten();
    let indexes: HashMap<usize, PageIndex> =
        leaves.iter().zip(indexes).filter_map(|(leaf, index)| Some((*leaf, index?))).collect();
    let is_stated = |leaf: &usize| {
        let chunk = file.row_groups()[row_group].column(*leaf);
        let has_filter = chunk.bloom_filter_offset().is_some();
        chunk.statistics().is_some() || has_filter || indexes.contains_key(leaf)
    };
    let leaves: Vec<usize> = leaves.iter().copied().filter(is_stated).collect();
    let group = file.row_group(row_group, &leaves)?;
    let mut violations = Vec::new();
    for leaf in leaves {
        let check = ChunkCheck {
            file,
            row_group,
            leaf,
            column: file.row_groups()[row_group].column(leaf).column_descr_ptr(),
            filter: bloom_filter(file, row_group, leaf)?,
        };
        guarded(|| check.run(&group, indexes.get(&leaf), &mut violations))?;
    }
    Ok(violations)
}

struct ChunkCheck<'a> {
    file: &'a ParquetFile,
    row_group: usize,
    leaf: usize,
    column: ColumnDescPtr,
    filter: Option<Sbbf>,
}

impl ChunkCheck<'_> {
    fn run(
        &self,
        group: &RowGroup,
        index: Option<&PageIndex>,
        violations: &mut Vec<FooterViolation>,
    ) -> Result<()> {
        let Some(order) = Order::of(&self.column) else { return Ok(()) };
        let rows = self.file.row_groups()[self.row_group].num_rows().unsigned_abs();
        let pages: Vec<u64> = match index.filter(|index| !index.statistics.is_empty()) {
            Some(index) => index.rows(rows).map(|range| range.end - range.start).collect(),
            None => Vec::new(),
        };
        let units = if pages.is_empty() { vec![rows] } else { pages.clone() };
        let found = match get_column_reader(self.column.clone(), group.pages(self.leaf)?) {
            ColumnReader::BoolColumnReader(reader) => self.read(reader, &units, order),
            ColumnReader::Int32ColumnReader(reader) => self.read(reader, &units, order),
            ColumnReader::Int64ColumnReader(reader) => self.read(reader, &units, order),
            ColumnReader::FloatColumnReader(reader) => self.read(reader, &units, order),
            ColumnReader::DoubleColumnReader(reader) => self.read(reader, &units, order),
            ColumnReader::ByteArrayColumnReader(reader) => self.read(reader, &units, order),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => self.read(reader, &units, order),
            ColumnReader::Int96ColumnReader(_) => return Ok(()),
        }?;
        let mut whole = Found::default();
        for (number, page) in found.into_iter().enumerate() {
            if let Some(stated) = index.and_then(|index| index.statistics.get(number)) {
                let bounds = Statistics::of_page(stated);
                self.compare(Some(number), bounds, stated.null_count, &page, order, violations);
            }
            whole.merge(page, order);
        }
        let bounds = Statistics::of_chunk(self.file, self.row_group, self.leaf);
        let nulls = null_count(self.file.row_groups()[self.row_group].column(self.leaf));
        self.compare(None, bounds, nulls, &whole, order, violations);
        if let Some(value) = whole.lacking {
            let value = self.text(&value);
            violations.push(self.violation(None, "bloom_filter", format!("without {value}"), value));
        }
        Ok(())
    }

    /// Read the values of each of some ranges of rows, one after another.
    fn read<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        units: &[u64],
        order: Order,
    ) -> Result<Vec<Found>> {
        let required = self.column.max_def_level();
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Vec::with_capacity(units.len());
        for unit in units {
            let (mut found, mut left) = (Found::default(), *unit);
            while left > 0 {
                values.clear();
                definitions.clear();
                repetitions.clear();
                let (records, ..) = reader.read_records(
                    (left as usize).min(BATCH_ROWS),
                    Some(&mut definitions),
                    Some(&mut repetitions),
                    &mut values,
                )?;
                if records == 0 {
                    break;
                }
                left -= records as u64;
                found.nulls += definitions.iter().filter(|level| **level < required).count() as u64;
                for value in &values {
                    let bytes = value.as_bytes();
                    let is_lacking = |filter: &Sbbf| found.lacking.is_none() && !filter.check(bytes);
                    if self.filter.as_ref().is_some_and(is_lacking) {
                        found.lacking = Some(bytes.to_vec());
                    }
                    // NaN has no order.
                    if order.compare(bytes, bytes).is_some() {
                        found.add(bytes, order);
                    }
                }
            }
            all.push(found);
        }
        Ok(all)
    }

    fn compare(
        &self,
        page: Option<usize>,
        stated: Statistics<'_>,
        nulls: Option<u64>,
        found: &Found,
        order: Order,
        violations: &mut Vec<FooterViolation>,
    ) {
        let mut add = |what, stated, found| violations.push(self.violation(page, what, stated, found));
        let is_counted = self.column.max_rep_level() == 0;
        if let Some(nulls) = nulls.filter(|nulls| is_counted && *nulls != found.nulls) {
            add("null_count", nulls.to_string(), found.nulls.to_string());
        }
        let Some((min, max)) = &found.extremes else { return };
        if stated.all_null && page.is_some() {
            add("null_page", "true".into(), self.text(min));
        }
        if let Some(bound) = stated.min.filter(|bound| order.compare(min, bound) == Some(Ordering::Less)) {
            add("min", self.text(bound), self.text(min));
        }
        if let Some(bound) = stated.max.filter(|bound| order.compare(max, bound) == Some(Ordering::Greater)) {
            add("max", self.text(bound), self.text(max));
        }
    }

    fn violation(
        &self,
        page: Option<usize>,
        what: &'static str,
        stated: String,
        found: String,
    ) -> FooterViolation {
        let path = self.column.path().parts().to_vec();
        FooterViolation { path, row_group: self.row_group, page, what, stated, found }
    }

    /// Return a value as text, in hexadecimal digits if its type has no other form.
    fn text(&self, bytes: &[u8]) -> String {
        match bound_value(&self.column, bytes) {
            Some(value) => printed(&value),
            None => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}
