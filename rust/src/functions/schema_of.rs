//! `schema_of_variant` and `schema_of_variant_agg`: the type of a Variant in SQL, and the type of many.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};

use arrow_array::{StringArray, StructArray};

use super::in_ranges;
use crate::error::{Result, each_row};
use crate::value::column::Variants;
use crate::value::{Decimal, MAX_DECIMAL_DIGITS, Metadata, Value, no_such_name, too_deep};

/// The integer digits of a bigint as Spark counts them when it merges one with a decimal.
const BIGINT_DIGITS: u8 = 20;

/// The type of one or many Variants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Type {
    /// Nothing but Variant nulls.
    #[default]
    Void,
    Bigint,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Float,
    Double,
    Date,
    Timestamp,
    TimestampNtz,
    /// A type that merges only with itself, by its name in SQL.
    Other(&'static str),
    Object(BTreeMap<String, Type>),
    Array(Box<Type>),
    /// Values of types that have no common one.
    Variant,
}

impl Type {
    /// Widen the type so that it includes a value; `names` are those of its metadata.
    fn add(&mut self, names: &[&str], bytes: &[u8], depth: usize) -> Result<()> {
        if depth > crate::value::MAX_DEPTH {
            return Err(too_deep());
        }
        match (&mut *self, Value::decode(bytes)?) {
            (_, Value::Null) | (Type::Variant, _) => {}
            (Type::Void, Value::Object(_)) => {
                *self = Type::Object(BTreeMap::new());
                self.add(names, bytes, depth)?;
            }
            (Type::Void, Value::Array(_)) => {
                *self = Type::Array(Box::default());
                self.add(names, bytes, depth)?;
            }
            (Type::Object(fields), Value::Object(object)) => {
                for field in object.fields() {
                    let (id, value) = field?;
                    let name = *names.get(id).ok_or_else(|| no_such_name(id, names.len()))?;
                    match fields.get_mut(name) {
                        Some(known) => known.add(names, value, depth + 1)?,
                        None => fields.entry(name.to_owned()).or_default().add(names, value, depth + 1)?,
                    }
                }
            }
            (Type::Array(element), Value::Array(array)) => {
                array.elements().try_for_each(|value| element.add(names, value?, depth + 1))?;
            }
            (_, value) => *self = std::mem::take(self).merged(scalar_type(&value)),
        }
        Ok(())
    }

    /// The type that Spark finds for values of both types.
    pub fn merged(self, other: Type) -> Type {
        match (self, other) {
            (one, other) if one == other => one,
            (Type::Void, known) | (known, Type::Void) => known,
            (Type::Object(mut fields), Type::Object(others)) => {
                for (name, other) in others {
                    let known = fields.entry(name).or_default();
                    *known = std::mem::take(known).merged(other);
                }
                Type::Object(fields)
            }
            (Type::Array(one), Type::Array(other)) => Type::Array(Box::new(one.merged(*other))),
            (one, other) => one.merged_scalar(&other),
        }
    }

    fn merged_scalar(self, other: &Type) -> Type {
        use Type::{Bigint, Date, Decimal, Double, Float, Timestamp, TimestampNtz};
        match (&self, other) {
            (&Decimal { precision, scale }, &Decimal { precision: p, scale: s }) => {
                decimal_of((precision - scale).max(p - s), scale.max(s))
            }
            (Bigint, &Decimal { precision, scale }) | (&Decimal { precision, scale }, Bigint) => {
                decimal_of((precision - scale).max(BIGINT_DIGITS), scale)
            }
            (Bigint, Float) | (Float, Bigint) => Float,
            (Double | Float, Bigint | Decimal { .. } | Double | Float)
            | (Bigint | Decimal { .. }, Double | Float) => Double,
            (Timestamp, Date | TimestampNtz) | (Date | TimestampNtz, Timestamp) => Timestamp,
            (TimestampNtz, Date) | (Date, TimestampNtz) => TimestampNtz,
            _ => Type::Variant,
        }
    }
}

/// A decimal with these digits before and after the point, or a double if they are too many.
fn decimal_of(digits: u8, scale: u8) -> Type {
    match digits + scale {
        precision @ ..=MAX_DECIMAL_DIGITS => Type::Decimal { precision, scale },
        _ => Type::Double,
    }
}

fn scalar_type(value: &Value<'_>) -> Type {
    match value {
        Value::Int8(_) | Value::Int16(_) | Value::Int32(_) | Value::Int64(_) => Type::Bigint,
        Value::Decimal(decimal) => type_of_decimal(*decimal),
        Value::Float(_) => Type::Float,
        Value::Double(_) => Type::Double,
        Value::Date(_) => Type::Date,
        Value::Timestamp(_) => Type::Timestamp,
        Value::TimestampNtz(_) => Type::TimestampNtz,
        Value::Boolean(_) => Type::Other("BOOLEAN"),
        Value::String(_) => Type::Other("STRING"),
        Value::Binary(_) => Type::Other("BINARY"),
        Value::Uuid(_) => Type::Other("UUID"),
        Value::Time(_) => Type::Other("TIME"),
        Value::TimestampNanos(_) => Type::Other("TIMESTAMP_NANOS"),
        Value::TimestampNtzNanos(_) => Type::Other("TIMESTAMP_NTZ_NANOS"),
        Value::Null => Type::Void,
        Value::Object(_) | Value::Array(_) | Value::Unknown(_) => Type::Variant,
    }
}

/// The narrowest type of a decimal, without the zeros at its end.
fn type_of_decimal(Decimal { mut unscaled, mut scale }: Decimal) -> Type {
    while scale > 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    let digits = unscaled.unsigned_abs().checked_ilog10().map_or(1, |log| log as u8 + 1);
    Type::Decimal { precision: digits.max(scale), scale }
}

impl Display for Type {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Type::Void => out.write_str("VOID"),
            Type::Bigint => out.write_str("BIGINT"),
            Type::Decimal { precision, scale } => write!(out, "DECIMAL({precision},{scale})"),
            Type::Float => out.write_str("FLOAT"),
            Type::Double => out.write_str("DOUBLE"),
            Type::Date => out.write_str("DATE"),
            Type::Timestamp => out.write_str("TIMESTAMP"),
            Type::TimestampNtz => out.write_str("TIMESTAMP_NTZ"),
            Type::Other(name) => out.write_str(name),
            Type::Variant => out.write_str("VARIANT"),
            Type::Array(element) => write!(out, "ARRAY<{element}>"),
            Type::Object(fields) => {
                out.write_str("OBJECT<")?;
                for (index, (name, field)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.write_str(", ")?;
                    }
                    write_name(out, name)?;
                    write!(out, ": {field}")?;
                }
                out.write_char('>')
            }
        }
    }
}

/// Write a name as an identifier of SQL, in backticks where it needs them.
fn write_name(out: &mut Formatter<'_>, name: &str) -> fmt::Result {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match name.as_bytes() {
        [first, rest @ ..]
            if !first.is_ascii_digit() && is_word(*first) && rest.iter().all(|b| is_word(*b)) =>
        {
            out.write_str(name)
        }
        _ => write!(out, "`{}`", name.replace('`', "``")),
    }
}

/// Widen `known` so that it includes the Variant of a row, if it has one.
fn add_row(known: &mut Type, variants: &Variants<'_>, row: usize) -> Result<bool> {
    let Some((metadata, value)) = variants.get(row)? else { return Ok(false) };
    let names: Vec<&str> = Metadata::parse(metadata)?.names().collect();
    known.add(&names, value, 0)?;
    Ok(true)
}

/// Return the type of each Variant as text, null for SQL NULL.
pub fn schema_of(variants: &StructArray) -> Result<StringArray> {
    let variants = Variants::new(variants)?;
    let parts = in_ranges(variants.len(), |rows| {
        rows.map(|row| {
            let mut found = Type::Void;
            let has_value = add_row(&mut found, &variants, row).map_err(|error| error.at_row(row))?;
            Ok(has_value.then(|| found.to_string()))
        })
        .collect::<Result<Vec<Option<String>>>>()
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// Return the type that includes every Variant, `Void` if there are none.
pub fn merged_schema(variants: &StructArray) -> Result<Type> {
    let variants = Variants::new(variants)?;
    let parts = in_ranges(variants.len(), |rows| {
        let mut found = Type::Void;
        each_row(rows, |row| add_row(&mut found, &variants, row).map(drop))?;
        Ok(found)
    })?;
    Ok(parts.into_iter().fold(Type::Void, Type::merged))
}
