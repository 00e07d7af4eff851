//! Decode the bounds of one path in the statistics of many files, as columns that can be compared.

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, TimeUnit};

use crate::error::{Error, Result};
use crate::value::cast::{CastBuilder, Casting};
use crate::value::{self, Metadata, Value};

/// The characters of z85 in the order of their digits (ZeroMQ RFC 32).
const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const NO_DIGIT: u8 = 0xff;
const DIGITS: [u8; 256] = digits();

const fn digits() -> [u8; 256] {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
}

/// The bound of the path `key` in each of `texts` as a column of `target`.
///
/// Null stands for a missing bound, for malformed text, and for a bound whose type has another order than `target`,
/// because it does not bound the cast values.
pub fn bound_column(texts: &StringArray, key: &str, target: &DataType) -> Result<ArrayRef> {
    let mut column = BoundBuilder::new(target)?;
    let mut bytes = Vec::new();
    for text in texts {
        let bound = text.and_then(|text| bound_of(text, key, &mut bytes).ok().flatten());
        column.push(bound.and_then(|bound| Value::decode(bound).ok()))?;
    }
    column.finish()
}

/// A column of bounds, cast to one type.
pub struct BoundBuilder {
    target: DataType,
    column: CastBuilder,
}

impl BoundBuilder {
    pub fn new(target: &DataType) -> Result<Self> {
        // Casts that keep the order of bounds do not depend on the time zone.
        let column = CastBuilder::new(target, &Casting::utc(false))?;
        Ok(BoundBuilder { target: target.clone(), column })
    }

    /// Add a bound; null where its order is not that of the target, or where it cannot be cast.
    pub fn push(&mut self, bound: Option<Value<'_>>) -> Result<()> {
        match bound.filter(|bound| keeps_order(bound, &self.target)) {
            Some(bound) => self.column.append_value(None, &bound),
            None => self.column.append(None, None),
        }
    }

    pub fn finish(self) -> Result<ArrayRef> {
        self.column.finish()
    }
}

fn bound_of<'b>(text: &str, key: &str, bytes: &'b mut Vec<u8>) -> Result<Option<&'b [u8]>> {
    decode_z85(text, bytes)?;
    bound_at(bytes, key)
}

/// The bound of the path `key` in the bytes of a statistics entry.
pub fn bound_at<'b>(bytes: &'b [u8], key: &str) -> Result<Option<&'b [u8]>> {
    let (metadata, value) = value::split_either(bytes)?;
    match Value::decode(value)? {
        Value::Object(object) => object.get(&Metadata::parse(metadata)?, key),
        _ => Ok(None),
    }
}

/// Whether `a <= b` means `cast(a) <= cast(b)` for values of the type of `value` cast to `target`.
///
/// A file with bounds of a path has values of only that type there.
fn keeps_order(value: &Value<'_>, target: &DataType) -> bool {
    use DataType::*;
    match value {
        Value::Int8(_) | Value::Int16(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => {
            matches!(target, Int8 | Int16 | Int32 | Int64 | Decimal128(_, _) | Float32 | Float64)
        }
        Value::Float(number) => matches!(target, Float32 | Float64) && !number.is_nan(),
        Value::Double(number) => matches!(target, Float64) && !number.is_nan(),
        Value::String(_) => matches!(target, Utf8),
        Value::Date(_) => matches!(target, Date32),
        Value::Timestamp(_) | Value::TimestampNanos(_) => {
            matches!(target, Timestamp(TimeUnit::Microsecond, Some(_)))
        }
        Value::TimestampNtz(_) | Value::TimestampNtzNanos(_) => {
            matches!(target, Timestamp(TimeUnit::Microsecond, None))
        }
        _ => false,
    }
}

/// Decode z85 `text` into `bytes`: blocks of five characters, the last of which may be truncated to n + 1 characters
/// for n bytes.
fn decode_z85(text: &str, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.clear();
    for block in text.as_bytes().chunks(5) {
        // The highest digit undoes the cut: it lifts the rounded block back above the bytes it came from.
        let mut digits = [84; 5];
        for (digit, character) in digits.iter_mut().zip(block) {
            *digit = DIGITS[usize::from(*character)];
        }
        let number = digits.iter().fold(0, |number, digit| number * 85 + u64::from(*digit));
        match (u32::try_from(number), block.len()) {
            (Ok(number), 2..) if !digits.contains(&NO_DIGIT) => {
                bytes.extend_from_slice(&number.to_be_bytes()[..block.len() - 1]);
            }
            _ => return Err(Error::variant("malformed z85 text")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};

    use super::*;

    /// Strings of other writers, including the example of PROTOCOL.md.
    const MIN: &str = "0rJld6c{^fC42ifwHy+etpjq%zdL820S&x52(>OPwb(Pf00000a.=4fzc]1KfAq7M";
    const KEY: &str = "0rAfabWhTiwQbUe0S-o32]H.-0000000000";
    const EXAMPLE: &str = "0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu";

    fn bounds(texts: &[Option<&str>], key: &str, target: DataType) -> ArrayRef {
        bound_column(&texts.iter().copied().collect(), key, &target).unwrap()
    }

    #[test]
    fn bounds_of_one_path_are_a_column() {
        let numbers = bounds(&[Some(MIN), Some(KEY), None], "$['value']", DataType::Int64);
        assert_eq!(numbers.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(100), None, None]);
        let names = bounds(&[Some(MIN)], "$['name']", DataType::Utf8);
        assert_eq!(names.as_string::<i32>().value(0), "item_100");
        let key = bounds(&[Some(KEY)], "$['key']", DataType::Float64);
        assert_eq!(key.as_primitive::<Float64Type>().value(0), 200.0);
        let key = bounds(&[Some(KEY)], "$['key']", DataType::Decimal128(5, 2));
        assert_eq!(key.as_primitive::<Decimal128Type>().value(0), 20_000);
    }

    #[test]
    fn the_example_of_the_protocol_is_decoded() {
        let found = bounds(&[Some(EXAMPLE)], "$['b']['c']", DataType::Int64);
        assert_eq!(found.as_primitive::<Int64Type>().value(0), 1);
    }

    #[test]
    fn a_bound_of_another_type_is_unknown() {
        for (key, target) in [
            ("$['name']", DataType::Int64),
            ("$['value']", DataType::Utf8),
            ("$['value']", DataType::Boolean),
            ("$['value']", DataType::Date32),
            ("$['absent']", DataType::Int64),
        ] {
            assert!(bounds(&[Some(MIN)], key, target).is_null(0), "{key}");
        }
        // 200 does not fit into a tinyint, so the bound is unknown.
        assert!(bounds(&[Some(KEY)], "$['key']", DataType::Int8).is_null(0));
    }

    #[test]
    fn an_invalid_statistics_string_is_an_unknown_bound() {
        for text in ["", "0", "00000", "#####", "~~~~~", "0rAfa", "é2345", &KEY[..11]] {
            assert!(bounds(&[Some(text)], "$['key']", DataType::Int64).is_null(0), "{text}");
        }
    }
}
