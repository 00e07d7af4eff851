//! Functions of floating-point numbers.

use std::f64::consts::LOG10_E;
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

/// The logarithm to the base of the first argument, the natural one of a single argument; null if one is not
/// positive.
pub fn log(arguments: &Arguments) -> Result<ArrayRef> {
    let (first, last) = (arguments.primitive::<Float64Type>(0)?, arguments.columns.len() - 1);
    let number = arguments.primitive::<Float64Type>(last)?;
    let logarithms = (0..arguments.rows).map(|row| {
        let (first, number) = first.get(row).zip(number.get(row))?;
        if first <= 0.0 || number <= 0.0 {
            return None;
        }
        Some(if last == 0 { ln(number) } else { ln(number) / ln(first) })
    });
    Ok(Arc::new(logarithms.collect::<Float64Array>()))
}

/// The decimal logarithm; null of a number that is not positive.
pub fn log10(arguments: &Arguments) -> Result<ArrayRef> {
    let number = arguments.primitive::<Float64Type>(0)?;
    let logarithms = (0..arguments.rows).map(|row| {
        let number = number.get(row).filter(|number| number.is_nan() || *number > 0.0)?;
        if !number.is_finite() {
            return Some(number);
        }
        let (high, low) = (3.010_299_956_636_117_7e-1, 3.694_239_077_158_931e-13);
        let (number, exponent) = split(number);
        let is_negative = i32::from(exponent < 0);
        let power = f64::from(exponent + is_negative);
        let rest = with_high(number, high_word(number) & 0xf_ffff | (0x3ff - is_negative) << 20);
        Some(power * low + LOG10_E * ln(rest) + power * high)
    });
    Ok(Arc::new(logarithms.collect::<Float64Array>()))
}

/// The natural logarithm of a positive number by the algorithm of Java's StrictMath (fdlibm). That of the crate
/// `libm` has another last digit.
fn ln(number: f64) -> f64 {
    if !number.is_finite() {
        return number;
    }
    let (high, low) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
    let (number, exponent) = split(number);
    let word = high_word(number) & 0xf_ffff;
    let carry = (word + 0x9_5f64) & 0x10_0000;
    // Of a number from half the root of 2 to the root of 2.
    let f = with_high(number, word | (carry ^ 0x3ff0_0000)) - 1.0;
    let power = f64::from(exponent + (carry >> 20));
    if (2 + word) & 0xf_ffff < 3 {
        let rest = f * f * (0.5 - 0.333_333_333_333_333_3 * f);
        return if f == 0.0 { power * high + power * low } else { power * high - ((rest - power * low) - f) };
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even =
        w * (3.999_999_999_940_942e-1 + w * (2.222_219_843_214_978_4e-1 + w * 1.531_383_769_920_937_3e-1));
    let odd = 2.857_142_874_366_239e-1 + w * (1.818_357_216_161_805e-1 + w * 1.479_819_860_511_658_6e-1);
    let r = z * (6.666_666_666_666_735e-1 + w * odd) + even;
    let is_large = (word - 0x6_147a) | (0x6_b851 - word) > 0;
    let half = 0.5 * f * f;
    let series = if is_large { half - (s * (half + r) + power * low) } else { s * (f - r) - power * low };
    power * high - (series - f)
}

/// A finite positive number, scaled if it is subnormal, and the exponent of the number.
fn split(number: f64) -> (f64, i32) {
    let (number, less) = if number < f64::MIN_POSITIVE { (number * 2f64.powi(54), 54) } else { (number, 0) };
    (number, (high_word(number) >> 20) - 1023 - less)
}

fn high_word(number: f64) -> i32 {
    (number.to_bits() >> 32) as i32
}

fn with_high(number: f64, word: i32) -> f64 {
    f64::from_bits(number.to_bits() & 0xffff_ffff | (word as u64) << 32)
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
