//! How many values of each kind one path has, and the type that suits most of them.

use super::digits::Digits;
use crate::shred::LeafType;
use crate::value::Value;

/// The kinds that exclude each other in a `typed_value`; integers and decimals are one kind.
/// Of kinds with as many values, the first wins.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Object,
    Array,
    Exact,
    Double,
    Float,
    String,
    Boolean,
    Date,
    Timestamp,
    TimestampNtz,
    Binary,
    Time,
    TimestampNanos,
    TimestampNtzNanos,
    Uuid,
}

const KINDS: [Kind; 15] = [
    Kind::Object,
    Kind::Array,
    Kind::Exact,
    Kind::Double,
    Kind::Float,
    Kind::String,
    Kind::Boolean,
    Kind::Date,
    Kind::Timestamp,
    Kind::TimestampNtz,
    Kind::Binary,
    Kind::Time,
    Kind::TimestampNanos,
    Kind::TimestampNtzNanos,
    Kind::Uuid,
];

/// The candidate for `typed_value`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Typed {
    Object,
    List,
    Leaf(LeafType),
}

/// The kind of most values at a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Majority {
    pub kind: Typed,
    /// The number of values in its column.
    pub rows: u64,
    /// The bytes of the values of that kind.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    rows: u64,
    bytes: u64,
}

/// The counts of one path.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    tallies: [Tally; KINDS.len()],
    nulls: u64,
    digits: Digits,
}

impl Counts {
    /// Count `value`, whose encoding takes `bytes`. Variant null and unknown types are never typed.
    pub(super) fn add(&mut self, value: &Value<'_>, bytes: usize) {
        self.nulls += u64::from(*value == Value::Null);
        let Some(kind) = Kind::of(value) else { return };
        let tally = &mut self.tallies[kind as usize];
        tally.rows += 1;
        tally.bytes += bytes as u64;
        match *value {
            Value::Int8(v) => self.digits.add_int(v.into()),
            Value::Int16(v) => self.digits.add_int(v.into()),
            Value::Int32(v) => self.digits.add_int(v.into()),
            Value::Int64(v) => self.digits.add_int(v),
            Value::Decimal(v) => self.digits.add_decimal(v),
            _ => {}
        }
    }

    /// The number of values, Variant nulls included.
    pub(super) fn values(&self) -> u64 {
        self.nulls + self.tallies.iter().map(|tally| tally.rows).sum::<u64>()
    }

    /// The bytes of the values, without Variant nulls.
    pub(super) fn bytes(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.bytes).sum()
    }

    /// The number of objects.
    pub(super) fn objects(&self) -> u64 {
        self.tallies[Kind::Object as usize].rows
    }

    /// The type that holds the most values; `None` when no value can be typed.
    pub(super) fn typed(&self, spark_compatible: bool) -> Option<Majority> {
        let mut best: Option<Majority> = None;
        for kind in KINDS.into_iter().filter(|kind| self.tallies[*kind as usize].rows > 0) {
            let candidate = self.candidate(kind);
            let is_allowed = match candidate.kind {
                Typed::Leaf(leaf_type) => !spark_compatible || leaf_type.is_spark_compatible(),
                Typed::Object | Typed::List => true,
            };
            if is_allowed && candidate.rows > best.map_or(0, |best| best.rows) {
                best = Some(candidate);
            }
        }
        best
    }

    fn candidate(&self, kind: Kind) -> Majority {
        let Tally { rows, bytes } = self.tallies[kind as usize];
        let leaf = |leaf_type| Majority { kind: Typed::Leaf(leaf_type), rows, bytes };
        match kind {
            Kind::Object => Majority { kind: Typed::Object, rows, bytes },
            Kind::Array => Majority { kind: Typed::List, rows, bytes },
            Kind::Exact => {
                let (leaf_type, rows) = self.digits.leaf_type();
                Majority { kind: Typed::Leaf(leaf_type), rows, bytes }
            }
            Kind::Double => leaf(LeafType::Double),
            Kind::Float => leaf(LeafType::Float),
            Kind::String => leaf(LeafType::String),
            Kind::Boolean => leaf(LeafType::Boolean),
            Kind::Date => leaf(LeafType::Date),
            Kind::Timestamp => leaf(LeafType::Timestamp),
            Kind::TimestampNtz => leaf(LeafType::TimestampNtz),
            Kind::Binary => leaf(LeafType::Binary),
            Kind::Time => leaf(LeafType::Time),
            Kind::TimestampNanos => leaf(LeafType::TimestampNanos),
            Kind::TimestampNtzNanos => leaf(LeafType::TimestampNtzNanos),
            Kind::Uuid => leaf(LeafType::Uuid),
        }
    }
}

impl Kind {
    fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null | Value::Unknown(_) => return None,
            Value::Object(_) => Self::Object,
            Value::Array(_) => Self::Array,
            Value::Int8(_) | Value::Int16(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => {
                Self::Exact
            }
            Value::Double(_) => Self::Double,
            Value::Float(_) => Self::Float,
            Value::String(_) => Self::String,
            Value::Boolean(_) => Self::Boolean,
            Value::Date(_) => Self::Date,
            Value::Timestamp(_) => Self::Timestamp,
            Value::TimestampNtz(_) => Self::TimestampNtz,
            Value::Binary(_) => Self::Binary,
            Value::Time(_) => Self::Time,
            Value::TimestampNanos(_) => Self::TimestampNanos,
            Value::TimestampNtzNanos(_) => Self::TimestampNtzNanos,
            Value::Uuid(_) => Self::Uuid,
        })
    }
}
