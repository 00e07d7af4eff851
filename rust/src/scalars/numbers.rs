//! Functions of floating-point numbers.

use std::fmt::LowerExp;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int32Type};
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_schema::DataType;

use super::{Arguments, text};
use crate::error::Result;

/// Round to digits after the decimal point, half away from zero, by the shortest digits of each number.
pub fn round(arguments: &Arguments) -> Result<ArrayRef> {
    let places = arguments.primitive::<Int32Type>(1)?.get(0).unwrap_or_default();
    Ok(match arguments.columns[0].data_type() {
        DataType::Float32 => {
            let numbers = arguments.primitive::<Float32Type>(0)?.array;
            // Spark takes the digits of the number as a double.
            Arc::new(numbers.unary::<_, Float32Type>(|number| {
                if number.is_finite() { rounded(f64::from(number), places) as f32 } else { number }
            }))
        }
        _ => {
            let numbers = arguments.primitive::<Float64Type>(0)?.array;
            Arc::new(numbers.unary::<_, Float64Type>(|number| {
                if number.is_finite() { rounded(number, places) } else { number }
            }))
        }
    })
}

pub fn exp(arguments: &Arguments) -> Result<ArrayRef> {
    Ok(Arc::new(arguments.primitive::<Float64Type>(0)?.array.unary::<_, Float64Type>(libm::exp)))
}

/// The power as in Java: C has 1 where the exponent is NaN, or infinite for 1 and -1.
pub fn power(arguments: &Arguments) -> Result<ArrayRef> {
    let (base, exponent) = (arguments.primitive::<Float64Type>(0)?, arguments.primitive::<Float64Type>(1)?);
    let powers = (0..arguments.rows).map(|row| {
        let (base, exponent) = base.get(row).zip(exponent.get(row))?;
        let is_unknown = exponent.is_nan() || exponent.is_infinite() && base.abs() == 1.0;
        Some(if is_unknown { f64::NAN } else { libm::pow(base, exponent) })
    });
    Ok(Arc::new(powers.collect::<Float64Array>()))
}

/// Print decimals with all digits of their scale, and without an exponent.
pub fn decimal_text(arguments: &Arguments) -> Result<ArrayRef> {
    let decimals = arguments.primitive::<Decimal128Type>(0)?;
    let scale = usize::try_from(decimals.array.scale()).unwrap_or_default();
    text::build(arguments.rows, |row| {
        Ok(decimals.get(row).map(|unscaled| {
            let sign = if unscaled < 0 { "-" } else { "" };
            let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            let point = if scale == 0 { "" } else { "." };
            format!("{sign}{whole}{point}{fraction}")
        }))
    })
}

fn rounded<T: LowerExp + FromStr + Copy + Default>(number: T, places: i32) -> T {
    let text = format!("{number:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return number };
    let exponent: i64 = exponent.parse().unwrap_or_default();
    let negative = mantissa.starts_with('-');
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    let kept = exponent + 1 + i64::from(places);
    if kept < 0 || digits == [0] {
        return T::default();
    }
    if kept >= digits.len() as i64 {
        return number;
    }
    let kept = kept as usize;
    let mut carry = digits[kept] >= 5;
    digits.truncate(kept);
    for digit in digits.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == 9;
        *digit = if carry { 0 } else { *digit + 1 };
    }
    if carry {
        digits.insert(0, 1);
    }
    if digits.iter().all(|digit| *digit == 0) {
        return T::default();
    }
    let whole: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    let sign = if negative { "-" } else { "" };
    format!("{sign}{whole}e{}", -i64::from(places)).parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn halves_are_rounded_away_from_zero_by_their_digits() {
        for (number, places, expected) in [
            (2.5, 0, 3.0),
            (-2.5, 0, -3.0),
            (0.5, 0, 1.0),
            (0.4, 0, 0.0),
            (1.005, 2, 1.01),
            (99.95, 1, 100.0),
            (1234.5, -2, 1200.0),
            (50.0, -2, 100.0),
            (49.0, -2, 0.0),
            (5.0, -2, 0.0),
            (1e300, 5, 1e300),
            (9.99e22, -22, 1e23),
            (-0.0, 0, 0.0),
        ] {
            assert_eq!(rounded(number, places), expected, "{number} {places}");
        }
    }
}
