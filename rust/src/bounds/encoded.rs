//! Bounds from the extremes that the encoder of a file finds, so that a write compares its values once.

use arrow_schema::{DataType, Fields};

use super::column::{ColumnBounds, Content};
use super::extremes::{Extremes, Range, double_key, float_key};
use super::{Group, TypedValue, VariantBounds};
use crate::parquet::{Bound, EncodedExtremes};
use crate::value::column::leaf_count;

impl ColumnBounds {
    /// Widen the bounds by the extremes of the leaves of the column, all of them, in the order of the file.
    pub fn widen(&mut self, leaves: &[EncodedExtremes]) {
        match (&mut self.content, &self.data_type) {
            (Content::Variant(variant), DataType::Struct(fields)) => variant.widen(fields, leaves),
            (Content::Struct(columns), DataType::Struct(fields)) => {
                for (column, leaves) in columns.iter_mut().zip(split(fields, leaves)) {
                    column.widen(leaves);
                }
            }
            (Content::Leaf(extremes), _) => extremes.widen(leaves),
            _ => {}
        }
    }
}

impl VariantBounds {
    fn widen(&mut self, fields: &Fields, leaves: &[EncodedExtremes]) {
        self.root.widen(fields, leaves);
    }
}

impl Group {
    fn widen(&mut self, fields: &Fields, leaves: &[EncodedExtremes]) {
        let Some((at, _)) = fields.find("typed_value") else { return };
        let Some(leaves) = split(fields, leaves).nth(at) else { return };
        match (&mut self.typed_value, fields[at].data_type()) {
            (TypedValue::Leaf(_, extremes), _) => extremes.widen(leaves),
            (TypedValue::Object(groups), DataType::Struct(fields)) => {
                for (field, leaves) in fields.iter().zip(split(fields, leaves)) {
                    let group = groups.iter_mut().find(|(name, _)| name == field.name());
                    if let (Some((_, group)), DataType::Struct(members)) = (group, field.data_type()) {
                        group.widen(members, leaves);
                    }
                }
            }
            // The elements of lists have no bounds.
            _ => {}
        }
    }
}

/// The leaves of each of `fields`.
fn split<'a>(
    fields: &Fields,
    mut leaves: &'a [EncodedExtremes],
) -> impl Iterator<Item = &'a [EncodedExtremes]> {
    fields.iter().map(move |field| {
        let (of_field, rest) = leaves.split_at(leaf_count(field.data_type()).min(leaves.len()));
        leaves = rest;
        of_field
    })
}

impl Extremes {
    fn widen(&mut self, leaves: &[EncodedExtremes]) {
        if let [leaf] = leaves
            && let Some(extremes) = self.encoded(leaf)
        {
            self.merge(&extremes);
        }
    }

    /// The same extremes as those of this type; `None` without values, and for types without bounds.
    fn encoded(&self, leaf: &EncodedExtremes) -> Option<Self> {
        let range = leaf.range.as_ref();
        let integers = || match range? {
            (Bound::Integer(min), Bound::Integer(max)) => Some(Range { min: *min, max: *max }),
            _ => None,
        };
        let floats = || match range {
            // A NaN is outside of all numbers, so that there are no bounds.
            _ if leaf.has_nan => Some(Range { min: f64::NAN, max: f64::NAN }),
            Some((Bound::Float(min), Bound::Float(max))) => Some(Range { min: *min, max: *max }),
            _ => None,
        };
        let texts = || match range? {
            (Bound::Bytes(min), Bound::Bytes(max)) => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
                Some(Range { min: text(min)?, max: text(max)? })
            }
            _ => None,
        };
        Some(match self {
            Self::Unordered => return None,
            Self::Integer(_) => {
                let Range { min, max } = integers()?;
                Self::Integer(Some(Range { min: i64::try_from(min).ok()?, max: i64::try_from(max).ok()? }))
            }
            Self::Decimal(_) => Self::Decimal(Some(integers()?)),
            Self::Float(_) => {
                let Range { min, max } = floats()?;
                Self::Float(Some(Range { min: float_key(min as f32), max: float_key(max as f32) }))
            }
            Self::Double(_) => {
                let Range { min, max } = floats()?;
                Self::Double(Some(Range { min: double_key(min), max: double_key(max) }))
            }
            Self::String(_) => Self::String(Some(texts()?)),
        })
    }
}
