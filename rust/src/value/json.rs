//! Print Variant values as JSON text, as Spark's `to_json` does.
//!
//! Values without a JSON form become strings: NaN and the infinities by Java's names, binary in base64, dates,
//! times and timestamps in SQL's form (with the offset of a time zone, such as `+00:00`), UUIDs in hexadecimal.
//! Spark prints no times and no nanoseconds; they follow the same form.

use crate::error::{Error, Result};
use crate::value::{
    Array, ByteBudget, MAX_DEPTH, Metadata, Object, Value, Zone, malformed, sized, text, too_deep,
};

/// The ids of the primitive types that have a length.
const BINARY: u8 = 15;
const STRING: u8 = 16;

const MICROS: i64 = 1_000_000;
const NANOS: i64 = 1_000_000_000;

/// The names of one metadata as JSON keys, `"name":`, escaped once.
#[derive(Debug, Default)]
pub struct Keys {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The rank of each name, the same for equal names; empty if the rank is the id.
    ranks: Vec<u32>,
}

impl Keys {
    pub fn new(metadata: &Metadata<'_>) -> Self {
        let ranks =
            if metadata.is_sorted() { Vec::new() } else { ranks(&metadata.names().collect::<Vec<_>>()) };
        Keys { ranks, ..Self::of(metadata.names()) }
    }

    /// The keys of `names`, which get their ids from 0.
    pub fn of<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut keys = Keys::default();
        for name in names {
            key(&mut keys.text, name);
            keys.ends.push(keys.text.len());
        }
        keys
    }

    /// The key of the name with this id.
    pub fn get(&self, id: usize) -> Option<&[u8]> {
        let start = match id.checked_sub(1) {
            Some(previous) => *self.ends.get(previous)?,
            None => 0,
        };
        self.text.get(start..*self.ends.get(id)?)
    }

    fn rank(&self, id: usize) -> usize {
        self.ranks.get(id).map_or(id, |&rank| rank as usize)
    }

    /// Reject an object with two fields of one name; for sorted fields this takes one comparison each.
    fn check_unique(&self, object: &Object<'_>) -> Result<()> {
        let mut previous = None;
        for index in 0..object.len() {
            let rank = Some(self.rank(object.field_id(index)?));
            if previous >= rank {
                return self.check_unique_in_any_order(object);
            }
            previous = rank;
        }
        Ok(())
    }

    #[cold]
    fn check_unique_in_any_order(&self, object: &Object<'_>) -> Result<()> {
        let ids = (0..object.len()).map(|index| object.field_id(index)).collect::<Result<Vec<_>>>()?;
        let mut sorted: Vec<(usize, usize)> = ids.into_iter().map(|id| (self.rank(id), id)).collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => {
                let key = self.checked(pair[0].1)?;
                let name = String::from_utf8_lossy(key.strip_suffix(b":").unwrap_or(key));
                Err(malformed(&format!("an object has two fields called {name}")))
            }
            None => Ok(()),
        }
    }

    /// Return the key of the name with this id, or an error for an unknown id.
    pub(crate) fn checked(&self, id: usize) -> Result<&[u8]> {
        self.get(id).ok_or_else(|| {
            Error::variant(format!(
                "malformed Variant value: a field has name id {id}, and the metadata has {} names",
                self.ends.len()
            ))
        })
    }
}

/// Return the rank of each of `names`; nothing if they are sorted and unique.
fn ranks(names: &[&str]) -> Vec<u32> {
    if names.is_sorted_by(|a, b| a < b) {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_unstable_by_key(|&id| names[id]);
    let mut ranks = vec![0; names.len()];
    for pair in order.windows(2) {
        ranks[pair[1]] = ranks[pair[0]] + u32::from(names[pair[0]] != names[pair[1]]);
    }
    ranks
}

/// Append `name` as the key of an object: `"name":`.
pub fn key(out: &mut Vec<u8>, name: &str) {
    string(out, name);
    out.push(b':');
}

/// Append the value at the start of `bytes` as JSON, its timestamps as local times of `zone`.
pub fn value(out: &mut Vec<u8>, keys: &Keys, bytes: &[u8], zone: &Zone) -> Result<()> {
    value_at(out, keys, bytes, zone, 0)
}

/// Append a value at nesting level `depth`.
pub(crate) fn value_at(
    out: &mut Vec<u8>,
    keys: &Keys,
    bytes: &[u8],
    zone: &Zone,
    depth: usize,
) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match Value::decode(bytes)? {
        Value::Object(object) => {
            keys.check_unique(&object)?;
            out.push(b'{');
            for (index, field) in object.fields().enumerate() {
                let (id, field) = field?;
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(keys.checked(id)?);
                check_size(out)?;
                value_at(out, keys, field, zone, depth + 1)?;
            }
            out.push(b'}');
        }
        Value::Array(array) => {
            out.push(b'[');
            for (index, element) in array.elements().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                value_at(out, keys, element?, zone, depth + 1)?;
            }
            out.push(b']');
        }
        value => scalar(out, &value, zone)?,
    }
    Ok(())
}

/// Append a value at nesting level `depth` as [`value_at`] does, but without the check that its strings are UTF-8.
///
/// The caller checks the text as a whole: quotes separate the strings, so the text is valid if and only if each of
/// them is. Every value is visited once. It is an error if and only if it is one of [`value_at`], which finds the
/// cause.
pub(crate) fn value_without_utf8_check(
    out: &mut Vec<u8>,
    keys: &Keys,
    bytes: &[u8],
    zone: &Zone,
    depth: usize,
) -> Result<()> {
    // The values of a column are not within a container.
    Walk { out, keys, zone }.value(bytes, &mut ByteBudget::unlimited(), depth)
}

struct Walk<'w> {
    out: &'w mut Vec<u8>,
    keys: &'w Keys,
    zone: &'w Zone,
}

impl Walk<'_> {
    /// Append the value at the start of `bytes`, and take its length from the budget of its container.
    fn value(&mut self, bytes: &[u8], budget: &mut ByteBudget, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let Some(&header) = bytes.first() else { return Err(malformed("it is empty")) };
        match (header & 0b11, header >> 2) {
            (0, STRING | BINARY) => self.long_scalar(bytes, header >> 2 == STRING, budget),
            (0, _) => scalar(self.out, &Value::decode(bytes)?, self.zone),
            (1, length) => {
                let text =
                    bytes.get(1..1 + usize::from(length)).ok_or_else(|| malformed("it is truncated"))?;
                string_bytes(self.out, text);
                Ok(())
            }
            (2, _) => {
                let object = Object::parse(bytes)?;
                budget.take_bytes(object.size())?;
                self.object(&object, depth)
            }
            _ => {
                let array = Array::parse(bytes)?;
                budget.take_bytes(array.size())?;
                self.array(&array, depth)
            }
        }
    }

    fn long_scalar(&mut self, bytes: &[u8], is_string: bool, budget: &mut ByteBudget) -> Result<()> {
        let data = sized(&bytes[1..])?;
        budget.take_bytes(5 + data.len())?;
        match is_string {
            true => string_bytes(self.out, data),
            false => scalar(self.out, &Value::Binary(data), self.zone)?,
        }
        Ok(())
    }

    fn object(&mut self, object: &Object<'_>, depth: usize) -> Result<()> {
        let mut budget = object.budget();
        let mut previous = None;
        self.out.push(b'{');
        for index in 0..object.len() {
            let (id, bytes) = object.field_and_rest(index)?;
            let rank = Some(self.keys.rank(id));
            if previous >= rank {
                self.keys.check_unique_in_any_order(object)?;
            }
            previous = rank;
            if index > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(self.keys.checked(id)?);
            check_size(self.out)?;
            self.value(bytes, &mut budget, depth + 1)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn array(&mut self, array: &Array<'_>, depth: usize) -> Result<()> {
        let mut budget = array.budget();
        self.out.push(b'[');
        for index in 0..array.len() {
            if index > 0 {
                self.out.push(b',');
            }
            self.value(array.element_and_rest(index)?, &mut budget, depth + 1)?;
        }
        self.out.push(b']');
        Ok(())
    }
}

/// Limit the length of the text: a long name is repeated for each of its fields, so a small Variant could
/// produce gigabytes.
fn check_size(text: &[u8]) -> Result<()> {
    i32::try_from(text.len()).map(drop).map_err(|_| Error::too_large())
}

/// Append a scalar as JSON, a timestamp as local time of `zone`.
pub fn scalar(out: &mut Vec<u8>, value: &Value<'_>, zone: &Zone) -> Result<()> {
    match *value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(v) => out.extend_from_slice(if v { b"true" } else { b"false" }),
        Value::Int8(v) => text::integer(out, v.into()),
        Value::Int16(v) => text::integer(out, v.into()),
        Value::Int32(v) => text::integer(out, v.into()),
        Value::Int64(v) => text::integer(out, v),
        Value::Decimal(v) => text::decimal(out, v),
        Value::Float(v) if v.is_finite() => text::float(out, v),
        Value::Double(v) if v.is_finite() => text::double(out, v),
        Value::String(v) => string(out, v),
        Value::Object(_) | Value::Array(_) => {
            return Err(Error::variant("expected a scalar, got an object or array"));
        }
        _ => {
            out.push(b'"');
            plain(out, value, zone)?;
            out.push(b'"');
        }
    }
    Ok(())
}

/// Append a scalar as text without quotes, as in a cast to string; binary in base64.
pub fn plain(out: &mut Vec<u8>, value: &Value<'_>, zone: &Zone) -> Result<()> {
    match *value {
        Value::String(v) => out.extend_from_slice(v.as_bytes()),
        Value::Float(v) => text::float(out, v),
        Value::Double(v) => text::double(out, v),
        Value::Date(v) => text::date(out, v.into()),
        Value::Time(v) => text::time(out, v),
        Value::Timestamp(v) => {
            let ahead = text::timestamp(out, v, MICROS, zone);
            text::offset(out, ahead);
        }
        Value::TimestampNtz(v) => text::timestamp_ntz(out, v, MICROS),
        Value::TimestampNanos(v) => {
            let ahead = text::timestamp(out, v, NANOS, zone);
            text::offset(out, ahead);
        }
        Value::TimestampNtzNanos(v) => text::timestamp_ntz(out, v, NANOS),
        Value::Binary(v) => text::base64(out, v),
        Value::Uuid(v) => text::uuid(out, &v),
        Value::Unknown(id) => {
            return Err(Error::variant(format!(
                "a Variant value has primitive type {id}, which this version does not know and cannot print"
            )));
        }
        _ => return scalar(out, value, zone),
    }
    Ok(())
}

/// Return a scalar as JSON text.
pub fn printed(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    match value {
        Value::Object(_) => "{…}".into(),
        Value::Array(_) => "[…]".into(),
        value => match plain(&mut out, value, &Zone::UTC) {
            Ok(()) => String::from_utf8_lossy(&out).into_owned(),
            Err(error) => error.to_string(),
        },
    }
}

/// Append a JSON string, quotes included; only what JSON must escape is escaped.
pub fn string(out: &mut Vec<u8>, text: &str) {
    string_bytes(out, text.as_bytes());
}

/// Append bytes as a JSON string: the result is UTF-8 if and only if they are.
fn string_bytes(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = first_to_escape(rest) {
        out.extend_from_slice(&rest[..at]);
        escape(out, rest[at]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0C => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ => {
            let digits = [byte >> 4, byte & 0xF].map(|nibble| b"0123456789ABCDEF"[usize::from(nibble)]);
            out.extend_from_slice(b"\\u00");
            return out.extend_from_slice(&digits);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Whether text is the same in JSON, between quotes.
pub(crate) fn is_plain(text: &[u8]) -> bool {
    let (words, tail) = text.as_chunks::<32>();
    // Without a branch for each word, the compiler compares several at once.
    let has_none =
        |words: &[u8; 32]| words.iter().fold(0, |any, &byte| any | u8::from(is_escaped(byte))) == 0;
    words.iter().all(has_none) && !tail.iter().any(|&byte| is_escaped(byte))
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The position of the first quote, backslash or control character, comparing eight bytes at a time.
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = must_escape(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let position = tail.iter().position(|&byte| is_escaped(byte))?;
    Some(words.len() * 8 + position)
}

/// The high bit of each byte that must be escaped; a byte above the first found may be marked wrongly.
fn must_escape(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let is_below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let quote = is_below(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = is_below(word ^ (ONES * u64::from(b'\\')), 1);
    (is_below(word, 0x20) | quote | backslash) & HIGH
}
