//! Bounds of a row group that is copied: from the statistics in its footer where these are exact, and else from
//! the data of single leaves.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Fields};
use parquet::data_type::AsBytes;
use parquet::file::statistics::Statistics;

use super::extremes::{Extremes, Range, double_key, float_key};
use super::{Group, TypedValue, VariantBounds, unexpected};
use crate::error::Result;
use crate::value::column::leaf_count;

/// The leaves of one row group.
pub trait StoredLeaves {
    /// The number of values and nulls of a leaf, and its statistics.
    fn statistics(&self, leaf: usize) -> (u64, Option<&Statistics>);

    /// Decode leaves of one column. The column has nothing but these leaves and what is around them.
    fn read(&self, leaves: &[usize]) -> Result<Vec<ArrayRef>>;
}

/// The values of a leaf, nulls not counted, and their extremes.
struct StoredLeaf {
    values: u64,
    extremes: Extremes,
}

/// The leaves of a Variant that are decoded whatever the statistics.
#[derive(Default)]
struct Decoded {
    /// `metadata`, of which the nulls of the Variant are known, and with `has_objects` those that `find_hidden` needs:
    /// the `value` of each shredded object, and a leaf of its `typed_value`.
    leaves: Vec<usize>,
    has_objects: bool,
}

impl VariantBounds {
    /// Add the rows of a row group that has the column at `first_leaf`.
    pub(super) fn add_stored(
        &mut self,
        fields: &Fields,
        first_leaf: usize,
        leaves: &impl StoredLeaves,
    ) -> Result<()> {
        let mut decoded = Decoded::default();
        self.root.add_stored(fields, first_leaf, leaves, &mut decoded)?;
        let before = fields.iter().take_while(|field| field.name() != "metadata");
        let metadata = first_leaf + before.map(|field| leaf_count(field.data_type())).sum::<usize>();
        decoded.leaves.retain(|_| decoded.has_objects);
        decoded.leaves.push(metadata);
        decoded.leaves.sort_unstable();
        decoded.leaves.dedup();
        for column in leaves.read(&decoded.leaves)? {
            self.sql_nulls += column.null_count() as u64;
            if decoded.has_objects {
                // Another writer may have shredded the rows, which this library copied to the file.
                let group = column.as_struct_opt().ok_or_else(|| unexpected(&column))?;
                self.root.find_hidden(group, group.nulls())?;
            }
        }
        Ok(())
    }
}

impl Group {
    fn add_stored(
        &mut self,
        fields: &Fields,
        first_leaf: usize,
        leaves: &impl StoredLeaves,
        decoded: &mut Decoded,
    ) -> Result<()> {
        let mut at = first_leaf;
        for field in fields {
            match (field.name().as_str(), &mut self.typed_value, field.data_type()) {
                ("value", typed_value, _) => {
                    let values = stored_leaf(leaves, at, &Extremes::Unordered)?.values;
                    self.values += values;
                    if matches!(typed_value, TypedValue::Object(_)) {
                        decoded.leaves.push(at);
                        decoded.has_objects |= values > 0;
                    }
                }
                ("typed_value", TypedValue::Leaf(_, extremes), _) => {
                    let stored = stored_leaf(leaves, at, extremes)?;
                    self.typed += stored.values;
                    extremes.merge(&stored.extremes);
                }
                ("typed_value", TypedValue::Object(groups), DataType::Struct(parts)) => {
                    decoded.leaves.push(at);
                    add_fields(groups, parts, at, leaves, decoded)?;
                }
                ("typed_value", TypedValue::List(group), DataType::List(element)) => {
                    if let DataType::Struct(members) = element.data_type() {
                        // `find_hidden` does not look into lists, whose elements have no bounds.
                        group.add_stored(members, at, leaves, &mut Decoded::default())?;
                    }
                }
                _ => {}
            }
            at += leaf_count(field.data_type());
        }
        Ok(())
    }
}

fn add_fields(
    groups: &mut [(String, Group)],
    fields: &Fields,
    first_leaf: usize,
    leaves: &impl StoredLeaves,
    decoded: &mut Decoded,
) -> Result<()> {
    let mut at = first_leaf;
    for field in fields {
        let group = groups.iter_mut().find(|(name, _)| name == field.name());
        if let (Some((_, group)), DataType::Struct(members)) = (group, field.data_type()) {
            group.add_stored(members, at, leaves, decoded)?;
        }
        at += leaf_count(field.data_type());
    }
    Ok(())
}

/// The nulls and extremes of an ordinary column that is a single leaf without lists around it; `like` is of its type.
pub(super) fn stored_column(
    leaves: &impl StoredLeaves,
    leaf: usize,
    like: &Extremes,
) -> Result<(u64, Extremes)> {
    let stored = stored_leaf(leaves, leaf, like)?;
    Ok((leaves.statistics(leaf).0 - stored.values, stored.extremes))
}

fn stored_leaf(leaves: &impl StoredLeaves, leaf: usize, like: &Extremes) -> Result<StoredLeaf> {
    let (entries, statistics) = leaves.statistics(leaf);
    let stated = statistics.and_then(|statistics| {
        let values = entries.checked_sub(statistics.null_count_opt()?)?;
        let extremes = if values == 0 { like.emptied() } else { stated_extremes(like, statistics)? };
        Some(StoredLeaf { values, extremes })
    });
    match stated {
        Some(stated) => Ok(stated),
        None => read_leaf(leaves, leaf, like),
    }
}

fn read_leaf(leaves: &impl StoredLeaves, leaf: usize, like: &Extremes) -> Result<StoredLeaf> {
    let mut stored = StoredLeaf { values: 0, extremes: like.emptied() };
    for column in leaves.read(&[leaf])? {
        stored.add(&column, None)?;
    }
    Ok(stored)
}

impl StoredLeaf {
    fn add(&mut self, array: &ArrayRef, valid: Option<&NullBuffer>) -> Result<()> {
        let valid = NullBuffer::union(valid, array.logical_nulls().as_ref());
        match array.data_type() {
            DataType::Struct(fields) if fields.len() == 1 => {
                self.add(array.as_struct().column(0), valid.as_ref())
            }
            data_type if data_type.is_nested() => Err(unexpected(array)),
            _ => {
                self.values += (array.len() - valid.as_ref().map_or(0, NullBuffer::null_count)) as u64;
                self.extremes.update(array, valid.as_ref())
            }
        }
    }
}

/// The extremes that statistics state exactly: text may be truncated, unlike numbers, and a NaN leaves no bounds.
fn stated_extremes(like: &Extremes, statistics: &Statistics) -> Option<Extremes> {
    if *like == Extremes::Unordered {
        return Some(Extremes::Unordered);
    }
    let is_integer = matches!(statistics, Statistics::Int32(_) | Statistics::Int64(_));
    let is_exact = is_integer || statistics.min_is_exact() && statistics.max_is_exact();
    if !is_exact || statistics.is_min_max_deprecated() {
        return None;
    }
    fn range<T, K>(
        min: Option<&T>,
        max: Option<&T>,
        key: impl Fn(&T) -> Option<K>,
    ) -> Option<Option<Range<K>>> {
        Some(Some(Range { min: key(min?)?, max: key(max?)? }))
    }
    Some(match (like, statistics) {
        (Extremes::Integer(_), Statistics::Int32(s)) => {
            Extremes::Integer(range(s.min_opt(), s.max_opt(), |&v| Some(i64::from(v)))?)
        }
        (Extremes::Integer(_), Statistics::Int64(s)) => {
            Extremes::Integer(range(s.min_opt(), s.max_opt(), |&v| Some(v))?)
        }
        (Extremes::Decimal(_), Statistics::Int32(s)) => {
            Extremes::Decimal(range(s.min_opt(), s.max_opt(), |&v| Some(i128::from(v)))?)
        }
        (Extremes::Decimal(_), Statistics::Int64(s)) => {
            Extremes::Decimal(range(s.min_opt(), s.max_opt(), |&v| Some(i128::from(v)))?)
        }
        (Extremes::Float(_), Statistics::Float(s)) => {
            Extremes::Float(range(s.min_opt(), s.max_opt(), |&v| (!v.is_nan()).then(|| float_key(v)))?)
        }
        (Extremes::Double(_), Statistics::Double(s)) => {
            Extremes::Double(range(s.min_opt(), s.max_opt(), |&v| (!v.is_nan()).then(|| double_key(v)))?)
        }
        (Extremes::String(_), Statistics::ByteArray(s)) => {
            let text =
                |v: &parquet::data_type::ByteArray| Some(std::str::from_utf8(v.as_bytes()).ok()?.to_owned());
            Extremes::String(range(s.min_opt(), s.max_opt(), text)?)
        }
        _ => return None,
    })
}
