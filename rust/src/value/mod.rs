//! The Parquet Variant binary encoding: metadata, values, and how they are built (VariantEncoding.md).

pub mod build;
pub mod cast;
pub mod column;
pub mod container;
mod convert;
pub mod encode;
pub mod json;
pub mod metadata;
pub mod modify;
pub mod moment;
pub mod nested;
pub mod path;
pub mod sql_type;
pub mod text;
pub mod zone;

pub use container::{Array, ByteBudget, Object};
pub use metadata::Metadata;
pub use zone::Zone;

use crate::error::{Error, Result};

/// The maximum nesting depth of values, enforced by readers and writers to bound recursion.
pub const MAX_DEPTH: usize = 1000;

/// The largest Variant value or metadata, in bytes.
pub const MAX_SIZE: usize = 128 * 1024 * 1024;

/// The bytes of Variant null.
pub const NULL: &[u8] = &[0x00];

/// One Variant value, decoded one level deep; nested values stay bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Null,
    Boolean(bool),
    Int8(i8),
    Int16(i16),
    Int32(i32),
    Int64(i64),
    Float(f32),
    Double(f64),
    /// decimal4, decimal8 or decimal16: which one does not change the value.
    Decimal(Decimal),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since the epoch, UTC.
    Timestamp(i64),
    /// Microseconds since the epoch, without time zone.
    TimestampNtz(i64),
    /// Nanoseconds since the epoch, UTC.
    TimestampNanos(i64),
    /// Nanoseconds since the epoch, without time zone.
    TimestampNtzNanos(i64),
    Binary(&'a [u8]),
    String(&'a str),
    /// Big-endian.
    Uuid([u8; 16]),
    Object(Object<'a>),
    Array(Array<'a>),
    /// A primitive type that this version of the specification does not define.
    Unknown(u8),
}

/// An exact number: `unscaled / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    pub unscaled: i128,
    pub scale: u8,
}

/// The largest number of digits and the largest scale of a decimal.
pub const MAX_DECIMAL_DIGITS: u8 = 38;

impl<'a> Value<'a> {
    /// Decode the value at the start of `bytes`; what follows it is ignored.
    pub fn decode(bytes: &'a [u8]) -> Result<Self> {
        let (&header, data) = bytes.split_first().ok_or_else(|| malformed("it is empty"))?;
        match header & 0b11 {
            0 => Self::decode_primitive(header >> 2, data),
            1 => string(take(data, usize::from(header >> 2))?),
            2 => Object::parse(bytes).map(Value::Object),
            _ => Array::parse(bytes).map(Value::Array),
        }
    }

    fn decode_primitive(id: u8, data: &'a [u8]) -> Result<Self> {
        Ok(match id {
            0 => Value::Null,
            1 => Value::Boolean(true),
            2 => Value::Boolean(false),
            3 => Value::Int8(i8::from_le_bytes(fixed(data)?)),
            4 => Value::Int16(i16::from_le_bytes(fixed(data)?)),
            5 => Value::Int32(i32::from_le_bytes(fixed(data)?)),
            6 => Value::Int64(i64::from_le_bytes(fixed(data)?)),
            7 => Value::Double(f64::from_le_bytes(fixed(data)?)),
            8 => decimal(data, |d| Ok(i32::from_le_bytes(fixed(d)?).into()))?,
            9 => decimal(data, |d| Ok(i64::from_le_bytes(fixed(d)?).into()))?,
            10 => decimal(data, |d| Ok(i128::from_le_bytes(fixed(d)?)))?,
            11 => Value::Date(i32::from_le_bytes(fixed(data)?)),
            12 => Value::Timestamp(i64::from_le_bytes(fixed(data)?)),
            13 => Value::TimestampNtz(i64::from_le_bytes(fixed(data)?)),
            14 => Value::Float(f32::from_le_bytes(fixed(data)?)),
            15 => Value::Binary(sized(data)?),
            16 => string(sized(data)?)?,
            17 => time(i64::from_le_bytes(fixed(data)?))?,
            18 => Value::TimestampNanos(i64::from_le_bytes(fixed(data)?)),
            19 => Value::TimestampNtzNanos(i64::from_le_bytes(fixed(data)?)),
            20 => Value::Uuid(fixed(data)?),
            _ => Value::Unknown(id),
        })
    }

    /// The name of this value's type in SQL, for messages about casts.
    pub fn sql_type_name(&self) -> &'static str {
        match self {
            Value::Int8(_) => "tinyint",
            Value::Int16(_) => "smallint",
            Value::Int32(_) => "int",
            Value::Int64(_) => "bigint",
            _ => self.type_name(),
        }
    }

    /// The specification's name of this value's type, for messages about the encoding.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "boolean",
            Value::Int8(_) => "int8",
            Value::Int16(_) => "int16",
            Value::Int32(_) => "int32",
            Value::Int64(_) => "int64",
            Value::Float(_) => "float",
            Value::Double(_) => "double",
            Value::Decimal(_) => "decimal",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::Timestamp(_) => "timestamp",
            Value::TimestampNtz(_) => "timestamp_ntz",
            Value::TimestampNanos(_) => "timestamp_nanos",
            Value::TimestampNtzNanos(_) => "timestamp_ntz_nanos",
            Value::Binary(_) => "binary",
            Value::String(_) => "string",
            Value::Uuid(_) => "uuid",
            Value::Object(_) => "object",
            Value::Array(_) => "array",
            Value::Unknown(_) => "a primitive type unknown to this version",
        }
    }
}

/// The number of bytes that the value at the start of `bytes` takes; `None` when it has an unknown type.
pub fn size(bytes: &[u8]) -> Result<Option<usize>> {
    let (&header, data) = bytes.split_first().ok_or_else(|| malformed("it is empty"))?;
    let length = match header & 0b11 {
        0 => match header >> 2 {
            0..=2 => 1,
            3 => 2,
            4 => 3,
            5 | 11 | 14 => 5,
            6 | 7 | 12 | 13 | 17 | 18 | 19 => 9,
            8 => 6,
            9 => 10,
            10 => 18,
            15 | 16 => 5 + sized(data)?.len(),
            20 => 17,
            _ => return Ok(None),
        },
        1 => 1 + usize::from(header >> 2),
        2 => Object::parse(bytes)?.size(),
        _ => Array::parse(bytes)?.size(),
    };
    if length > bytes.len() {
        return Err(malformed("it is truncated"));
    }
    Ok(Some(length))
}

/// Whether a value is a scalar of at most 64 bytes by its type alone: no binary, and no string but a short one.
fn is_short_scalar(bytes: &[u8]) -> bool {
    match bytes.first() {
        Some(&header) => match header & 0b11 {
            0 => !matches!(header >> 2, 15 | 16 | 21..),
            kind => kind == 1,
        },
        None => false,
    }
}

/// Check `bytes` completely: every header, offset, name and string, to the last nested value.
///
/// Object fields must be sorted by name and unique (VariantEncoding.md, "Object").
pub fn validate(metadata: &Metadata<'_>, bytes: &[u8]) -> Result<()> {
    let names: Vec<&str> = metadata.names().collect();
    validate_at(&names, bytes, 0)
}

/// Check a value at nesting level `depth`; `names` are those of the metadata, by id.
pub(crate) fn validate_at(names: &[&str], bytes: &[u8], depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match Value::decode(bytes)? {
        Value::Object(object) => {
            object.check_order(names)?;
            object.fields().try_for_each(|field| validate_at(names, field?.1, depth + 1))
        }
        Value::Array(array) => array.elements().try_for_each(|value| validate_at(names, value?, depth + 1)),
        _ => Ok(()),
    }
}

/// Split `metadata‖value`, as statistics strings and parquet-testing hold them, into its two parts.
///
/// Up to three bytes may follow the value: the zero padding of z85.
pub fn split_concatenated(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let metadata_size = Metadata::parse_prefix(bytes)?.as_bytes().len();
    let (metadata, rest) = bytes.split_at(metadata_size);
    let size = size(rest)?.ok_or_else(|| malformed("it has an unknown type"))?;
    Ok((metadata, &rest[..size]))
}

/// Split `metadata‖value`, or `value‖metadata` as in an example of PROTOCOL.md, and check both.
pub fn split_variant(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (metadata, value) = split_either(bytes)?;
    validate(&Metadata::parse(metadata)?, value)?;
    Ok((metadata, value))
}

/// Like `split_variant`, without the check.
pub fn split_either(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    split_concatenated(bytes).or_else(|error| split_value_first(bytes).map_err(|_| error))
}

fn split_value_first(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let unknown = || malformed("neither metadata nor a value comes first");
    let (value, metadata) = bytes.split_at(size(bytes)?.ok_or_else(unknown)?);
    Ok((Metadata::parse_prefix(metadata)?.as_bytes(), value))
}

pub(crate) fn malformed(why: &str) -> Error {
    Error::variant(format!("malformed Variant value: {why}"))
}

pub(crate) fn no_such_name(id: usize, count: usize) -> Error {
    malformed(&format!("a field has name id {id}, but the metadata has {count} names"))
}

pub(crate) fn too_deep() -> Error {
    Error::variant(format!("the Variant nests deeper than {MAX_DEPTH} levels"))
}

fn take(data: &[u8], length: usize) -> Result<&[u8]> {
    data.get(..length).ok_or_else(|| malformed("it is truncated"))
}

fn fixed<const N: usize>(data: &[u8]) -> Result<[u8; N]> {
    data.first_chunk().copied().ok_or_else(|| malformed("it is truncated"))
}

pub(crate) fn sized(data: &[u8]) -> Result<&[u8]> {
    let length = u32::from_le_bytes(fixed(data)?) as usize;
    take(&data[4..], length)
}

fn string(bytes: &[u8]) -> Result<Value<'_>> {
    utf8(bytes).map(Value::String).ok_or_else(|| malformed("a string is not UTF-8"))
}

/// `bytes` as text; short ones by the standard library, which is faster there.
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    if bytes.len() < 64 { std::str::from_utf8(bytes).ok() } else { simdutf8::basic::from_utf8(bytes).ok() }
}

fn decimal<'a>(data: &[u8], unscaled: impl FnOnce(&[u8]) -> Result<i128>) -> Result<Value<'a>> {
    let (&scale, digits) = data.split_first().ok_or_else(|| malformed("it is truncated"))?;
    if scale > MAX_DECIMAL_DIGITS {
        return Err(malformed(&format!(
            "expected a decimal scale of at most {MAX_DECIMAL_DIGITS}, got {scale}"
        )));
    }
    let unscaled = unscaled(digits)?;
    if unscaled.unsigned_abs() >= 10u128.pow(u32::from(MAX_DECIMAL_DIGITS)) {
        return Err(malformed("a decimal has more than 38 digits"));
    }
    Ok(Value::Decimal(Decimal { unscaled, scale }))
}

const MICROS_PER_DAY: i64 = 86_400_000_000;

fn time<'a>(micros: i64) -> Result<Value<'a>> {
    if (0..MICROS_PER_DAY).contains(&micros) {
        Ok(Value::Time(micros))
    } else {
        Err(malformed("a time is not within a day"))
    }
}
