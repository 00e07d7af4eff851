//! The least and the greatest value of a page and of a column chunk, as their statistics state them.

use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescriptor;

/// Bounds up to this length are exact.
const BOUND_BYTES: usize = 64;

/// A value as it is compared.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum Bound {
    /// An integer, the days of a date, the units of a time or timestamp, or an unscaled decimal.
    Integer(i128),
    Float(f64),
    /// Bytes compare as unsigned numbers.
    Bytes(Vec<u8>),
}

/// The extremes of the values of a page, a column chunk or a leaf, as the encoder finds them for its statistics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EncodedExtremes {
    /// The least and the greatest value without NaN; `None` without values.
    pub range: Option<(Bound, Bound)>,
    /// Engines order NaN differently, so a page or chunk with a NaN states no bounds.
    pub has_nan: bool,
}

impl EncodedExtremes {
    pub fn add(&mut self, min: Bound, max: Bound) {
        match &mut self.range {
            None => self.range = Some((min, max)),
            Some((least, greatest)) => {
                if min < *least {
                    *least = min;
                }
                if max > *greatest {
                    *greatest = max;
                }
            }
        }
    }

    pub fn merge(&mut self, other: Self) {
        self.has_nan |= other.has_nan;
        if let Some((min, max)) = other.range {
            self.add(min, max);
        }
    }

    /// Whether all values are these bytes.
    pub fn are(&self, bytes: &[u8]) -> bool {
        let is_equal = |bound: &Bound| matches!(bound, Bound::Bytes(bound) if bound == bytes);
        self.range.as_ref().is_some_and(|(min, max)| is_equal(min) && is_equal(max))
    }

    /// The bounds to state; `None` without values and after a NaN.
    pub fn bounds(&self) -> Option<&(Bound, Bound)> {
        self.range.as_ref().filter(|_| !self.has_nan)
    }
}

/// A bound in Parquet's plain encoding, and whether it is a value of the column.
pub(super) struct Stated {
    pub bytes: Vec<u8>,
    pub is_exact: bool,
}

/// The lower and the upper bound of `column` as statistics state them: long values are truncated, the upper bound
/// upwards.
pub(super) fn state(column: &ColumnDescriptor, (min, max): &(Bound, Bound)) -> (Stated, Stated) {
    let (min, max) = (plain(column, min, -0.0), plain(column, max, 0.0));
    let is_number = matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_)));
    match column.physical_type() {
        PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY if !is_number => {
            let is_text = matches!(column.logical_type_ref(), Some(LogicalType::String))
                || column.converted_type() == ConvertedType::UTF8;
            (truncate(min, is_text, cut), truncate(max, is_text, raise))
        }
        _ => (Stated { bytes: min, is_exact: true }, Stated { bytes: max, is_exact: true }),
    }
}

/// The bounds that `state` states, as values that compare.
pub(super) fn shorten(column: &ColumnDescriptor, bounds: &(Bound, Bound)) -> (Bound, Bound) {
    let is_long = |bound: &Bound| matches!(bound, Bound::Bytes(bytes) if bytes.len() > BOUND_BYTES);
    if !is_long(&bounds.0) && !is_long(&bounds.1) {
        return bounds.clone();
    }
    let (min, max) = state(column, bounds);
    (Bound::Bytes(min.bytes), Bound::Bytes(max.bytes))
}

/// The statistics of a column chunk.
pub(super) fn statistics(column: &ColumnDescriptor, extremes: &EncodedExtremes, nulls: u64) -> Statistics {
    let bounds = extremes.bounds().map(|bounds| state(column, bounds));
    let (min, max) = bounds.unzip();
    let nulls = Some(nulls);
    macro_rules! number {
        ($variant:ident, $type:ty) => {{
            let number = |bound: Option<Stated>| {
                bound.and_then(|bound| bound.bytes.try_into().ok()).map(<$type>::from_le_bytes)
            };
            Statistics::$variant(number(min), number(max), None, nulls, false)
        }};
    }
    macro_rules! bytes {
        ($type:ty) => {{
            let is_exact = |bound: &Option<Stated>| bound.as_ref().is_some_and(|bound| bound.is_exact);
            let (min_is_exact, max_is_exact) = (is_exact(&min), is_exact(&max));
            let bytes = |bound: Option<Stated>| bound.map(|bound| <$type>::from(bound.bytes));
            let statistics = ValueStatistics::new(bytes(min), bytes(max), None, nulls, false);
            statistics.with_min_is_exact(min_is_exact).with_max_is_exact(max_is_exact).into()
        }};
    }
    match column.physical_type() {
        PhysicalType::BOOLEAN => {
            let flag = |bound: Option<Stated>| bound.map(|bound| bound.bytes != [0]);
            Statistics::boolean(flag(min), flag(max), None, nulls, false)
        }
        PhysicalType::INT32 => number!(int32, i32),
        PhysicalType::INT64 => number!(int64, i64),
        PhysicalType::FLOAT => number!(float, f32),
        PhysicalType::DOUBLE => number!(double, f64),
        PhysicalType::FIXED_LEN_BYTE_ARRAY => bytes!(FixedLenByteArray),
        PhysicalType::BYTE_ARRAY | PhysicalType::INT96 => bytes!(ByteArray),
    }
}

/// A value in the plain encoding without a length. parquet.thrift requires -0.0 as the lower and +0.0 as the upper
/// bound of a zero: `zero`.
fn plain(column: &ColumnDescriptor, bound: &Bound, zero: f64) -> Vec<u8> {
    let zeroed = |number: f64| if number == 0.0 { zero } else { number };
    match (bound, column.physical_type()) {
        (Bound::Integer(number), PhysicalType::BOOLEAN) => vec![*number as u8],
        (Bound::Integer(number), PhysicalType::INT32) => (*number as i32).to_le_bytes().into(),
        (Bound::Integer(number), PhysicalType::INT64) => (*number as i64).to_le_bytes().into(),
        (Bound::Integer(number), _) => {
            let bytes = number.to_be_bytes();
            let length = usize::try_from(column.type_length()).unwrap_or(bytes.len()).min(bytes.len());
            bytes[bytes.len() - length..].into()
        }
        (Bound::Float(number), PhysicalType::FLOAT) => (zeroed(*number) as f32).to_le_bytes().into(),
        (Bound::Float(number), _) => zeroed(*number).to_le_bytes().into(),
        (Bound::Bytes(bytes), _) => bytes.clone(),
    }
}

fn truncate(bytes: Vec<u8>, is_text: bool, shorten: fn(&[u8], bool) -> Option<Vec<u8>>) -> Stated {
    let short = if bytes.len() > BOUND_BYTES { shorten(&bytes, is_text) } else { None };
    match short {
        Some(bytes) => Stated { bytes, is_exact: false },
        None => Stated { bytes, is_exact: true },
    }
}

/// The longest prefix that ends at a character.
fn cut(bytes: &[u8], is_text: bool) -> Option<Vec<u8>> {
    let text = is_text.then(|| std::str::from_utf8(bytes).ok()).flatten();
    let end = text
        .and_then(|text| (1..=BOUND_BYTES).rfind(|&end| text.is_char_boundary(end)))
        .unwrap_or(BOUND_BYTES);
    Some(bytes[..end].to_vec())
}

/// The least text or bytes above all that start like `bytes`; `None` if nothing of this length is above them.
fn raise(bytes: &[u8], is_text: bool) -> Option<Vec<u8>> {
    let mut prefix = cut(bytes, is_text)?;
    match is_text.then(|| std::str::from_utf8(&prefix).ok()).flatten() {
        Some(text) => {
            let (at, next) = text.char_indices().rev().find_map(|(at, last)| {
                let next = char::from_u32(u32::from(last) + 1)?;
                (next.len_utf8() == last.len_utf8()).then_some((at, next))
            })?;
            prefix.truncate(at);
            prefix.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
        }
        None => {
            let at = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
            prefix[at] += 1;
            prefix.truncate(at + 1);
        }
    }
    Some(prefix)
}
