//! Check the bounds of paths in statistics against the values in rows (docs/audit-rules.md).

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};

use crate::bounds::bound_at;
use crate::error::Result;
use crate::value::json::printed;
use crate::value::path::{self, Step};
use crate::value::{self, Decimal, Metadata, Value};

/// The bound of one path: the specification's name of its type, and its value as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub key: String,
    pub type_name: &'static str,
    /// The scale of a decimal.
    pub scale: Option<u8>,
    pub text: String,
}

/// The decoded bytes of a statistics entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundReport {
    /// Whether `value` comes before `metadata`, as in an example of PROTOCOL.md.
    pub is_value_first: bool,
    /// The bytes that follow both.
    pub rest: Vec<u8>,
    /// `None` for a Variant that is not an object.
    pub bounds: Option<Vec<Bound>>,
}

/// Decode `metadata‖value` or `value‖metadata`, and any bytes that follow.
pub fn describe_bound(bytes: &[u8]) -> Result<BoundReport> {
    let (metadata, value) = value::split_variant(bytes)?;
    let is_value_first = std::ptr::eq(value.as_ptr(), bytes.as_ptr());
    let names = Metadata::parse(metadata)?;
    let bounds = match Value::decode(value)? {
        Value::Object(object) => Some(
            object
                .fields()
                .map(|field| {
                    let (id, bytes) = field?;
                    bound(names.get(id)?, bytes)
                })
                .collect::<Result<_>>()?,
        ),
        _ => None,
    };
    let rest = bytes.get(metadata.len() + value.len()..).unwrap_or_default().to_vec();
    Ok(BoundReport { is_value_first, rest, bounds })
}

fn bound(key: &str, bytes: &[u8]) -> Result<Bound> {
    let value = Value::decode(bytes)?;
    let scale = match value {
        Value::Decimal(decimal) => Some(decimal.scale),
        _ => None,
    };
    let type_name = match (&value, bytes.first().map(|header| header >> 2)) {
        (Value::Decimal(_), Some(8)) => "decimal4",
        (Value::Decimal(_), Some(9)) => "decimal8",
        (Value::Decimal(_), _) => "decimal16",
        _ => value.type_name(),
    };
    Ok(Bound { key: key.to_owned(), type_name, scale, text: printed(&value) })
}

/// The rows that violate one rule: how many, the first one, and its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offenders {
    pub count: u64,
    pub row: u64,
    pub text: String,
}

impl Offenders {
    fn add(&mut self, row: u64, value: &Value<'_>) {
        if self.count == 0 {
            (self.row, self.text) = (row, printed(value));
        }
        self.count += 1;
    }

    fn merge(&mut self, later: Self) {
        if self.count == 0 {
            (self.row, self.text) = (later.row, later.text);
        }
        self.count += later.count;
    }
}

/// The bounds of one path, and how the rows agree with them.
#[derive(Debug, Clone)]
pub struct PathCheck {
    path: Vec<Step>,
    min: Option<Vec<u8>>,
    max: Option<Vec<u8>>,
    /// Rows that have the path.
    pub present: u64,
    /// Rows with a Variant null there.
    pub nulls: Offenders,
    /// Rows with a NaN there.
    pub nans: Offenders,
    /// Rows with a value of a type that does not compare with the bounds.
    pub others: Offenders,
    pub below: Offenders,
    pub above: Offenders,
    pub min_attained: bool,
    pub max_attained: bool,
}

impl PathCheck {
    /// Return the check of `key`, the path of `names`, by the two Variants of a file's statistics.
    pub fn new(key: &str, names: Vec<String>, least: Option<&[u8]>, greatest: Option<&[u8]>) -> Result<Self> {
        let of = |bytes: Option<&[u8]>| -> Result<Option<Vec<u8>>> {
            let bound = bytes.map(|bytes| bound_at(bytes, key)).transpose()?.flatten();
            Ok(bound.map(<[u8]>::to_vec))
        };
        Ok(PathCheck {
            path: names.into_iter().map(Step::Field).collect(),
            min: of(least)?,
            max: of(greatest)?,
            present: 0,
            nulls: Offenders::default(),
            nans: Offenders::default(),
            others: Offenders::default(),
            below: Offenders::default(),
            above: Offenders::default(),
            min_attained: false,
            max_attained: false,
        })
    }

    /// Add the slots of `variants`, whose rows are in `rows`.
    pub fn update(&mut self, variants: &StructArray, rows: &[Option<u64>]) -> Result<()> {
        let (metadata, values) =
            (variants.column(0).as_binary::<i32>(), variants.column(1).as_binary::<i32>());
        let (min, max) = (self.min.clone(), self.max.clone());
        let [min, max] = [&min, &max].map(|bound| bound.as_deref().map(Value::decode).transpose());
        let (min, max) = (min?, max?);
        for (slot, row) in rows.iter().enumerate() {
            let Some(row) = row.filter(|_| variants.is_valid(slot)) else { continue };
            let names = Metadata::parse(metadata.value(slot))?;
            if let Some(bytes) = path::get(&names, values.value(slot), &self.path)? {
                self.take(&Value::decode(bytes)?, min.as_ref(), max.as_ref(), row);
            }
        }
        Ok(())
    }

    fn take(&mut self, value: &Value<'_>, min: Option<&Value<'_>>, max: Option<&Value<'_>>, row: u64) {
        self.present += 1;
        match value {
            Value::Null => return self.nulls.add(row, value),
            Value::Float(number) if number.is_nan() => return self.nans.add(row, value),
            Value::Double(number) if number.is_nan() => return self.nans.add(row, value),
            _ => {}
        }
        let sides = [min, max].map(|bound| bound.map(|bound| compare(value, bound)));
        if sides.contains(&Some(None)) {
            return self.others.add(row, value);
        }
        match sides[0].flatten() {
            Some(Ordering::Less) => self.below.add(row, value),
            Some(Ordering::Equal) => self.min_attained = true,
            _ => self.min_attained |= min.is_some_and(|min| is_cut_min(value, min)),
        }
        match sides[1].flatten() {
            Some(Ordering::Greater) => self.above.add(row, value),
            Some(Ordering::Equal) => self.max_attained = true,
            _ => self.max_attained |= max.is_some_and(|max| is_cut_max(value, max)),
        }
    }

    /// Merge the check of later rows.
    pub fn merge(&mut self, later: Self) {
        self.present += later.present;
        self.nulls.merge(later.nulls);
        self.nans.merge(later.nans);
        self.others.merge(later.others);
        self.below.merge(later.below);
        self.above.merge(later.above);
        self.min_attained |= later.min_attained;
        self.max_attained |= later.max_attained;
    }
}

/// Compare two values of one equivalence class (VariantEncoding.md, "Value encoding"); `None` for two classes.
fn compare(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    use Value::*;
    if let (Some(a), Some(b)) = (exact(a), exact(b)) {
        return Some(compare_exact(a, b));
    }
    if let (Some((a, a_zone)), Some((b, b_zone))) = (nanos(a), nanos(b)) {
        return (a_zone == b_zone).then(|| a.cmp(&b));
    }
    match (a, b) {
        (Float(a), Float(b)) => a.partial_cmp(b),
        (Double(a), Double(b)) => a.partial_cmp(b),
        (Boolean(a), Boolean(b)) => Some(a.cmp(b)),
        (Date(a), Date(b)) => Some(a.cmp(b)),
        (Time(a), Time(b)) => Some(a.cmp(b)),
        (String(a), String(b)) => Some(a.cmp(b)),
        (Binary(a), Binary(b)) => Some(a.cmp(b)),
        (Uuid(a), Uuid(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn exact(value: &Value<'_>) -> Option<Decimal> {
    let unscaled = match *value {
        Value::Int8(v) => v.into(),
        Value::Int16(v) => v.into(),
        Value::Int32(v) => v.into(),
        Value::Int64(v) => v.into(),
        Value::Decimal(decimal) => return Some(decimal),
        _ => return None,
    };
    Some(Decimal { unscaled, scale: 0 })
}

fn compare_exact(a: Decimal, b: Decimal) -> Ordering {
    let scale = a.scale.max(b.scale);
    let widen = |d: Decimal| d.unscaled.checked_mul(10_i128.checked_pow(u32::from(scale - d.scale))?);
    match (widen(a), widen(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        // A number that overflows is further from zero than one that does not.
        (None, _) => a.unscaled.cmp(&0),
        (_, None) => 0.cmp(&b.unscaled),
    }
}

/// A timestamp in nanoseconds, and whether it has a zone.
fn nanos(value: &Value<'_>) -> Option<(i128, bool)> {
    Some(match *value {
        Value::Timestamp(v) => (i128::from(v) * 1000, true),
        Value::TimestampNtz(v) => (i128::from(v) * 1000, false),
        Value::TimestampNanos(v) => (v.into(), true),
        Value::TimestampNtzNanos(v) => (v.into(), false),
        _ => return None,
    })
}

/// The minimum number of characters in a truncated bound.
const MIN_CUT_CHARS: usize = 16;

/// Return whether a string begins with a truncated bound; `?` stands for a split character.
fn is_cut_min(value: &Value<'_>, min: &Value<'_>) -> bool {
    match (value, min) {
        (Value::String(value), Value::String(min)) => {
            let kept = min.strip_suffix('?').unwrap_or(min);
            min.chars().count() >= MIN_CUT_CHARS && value.starts_with(kept)
        }
        _ => false,
    }
}

fn is_cut_max(value: &Value<'_>, max: &Value<'_>) -> bool {
    match (value, max) {
        (Value::String(value), Value::String(max)) => {
            max.strip_suffix(char::MAX).is_some_and(|kept| value.starts_with(kept))
        }
        _ => false,
    }
}
