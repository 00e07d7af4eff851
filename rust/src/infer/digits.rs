//! The digits of the integers and decimals of one path, and the exact type that holds the most of them.

use crate::shred::LeafType;
use crate::value::{Decimal, MAX_DECIMAL_DIGITS};

/// The digits before and after the point.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    integer: u8,
    scale: u8,
}

/// How many numbers have each shape: few shapes, and never more than 39 × 39.
#[derive(Debug, Clone, Default)]
pub(super) struct Digits {
    shapes: Vec<(Shape, u64)>,
    int64: u64,
}

/// The precisions that are chosen, as Spark's inference chooses: an INT64 column, or the widest.
const PRECISIONS: [u8; 2] = [INT64_DIGITS, MAX_DECIMAL_DIGITS];
/// Every number of this many digits fits into an int64.
const INT64_DIGITS: u8 = 18;

impl Digits {
    pub(super) fn add_int(&mut self, value: i64) {
        self.int64 += 1;
        self.add(Shape { integer: digits(value.unsigned_abs().into()), scale: 0 });
    }

    pub(super) fn add_decimal(&mut self, Decimal { unscaled, scale }: Decimal) {
        let integer = digits(unscaled.unsigned_abs()).saturating_sub(scale);
        if scale == 0 && integer <= INT64_DIGITS {
            self.int64 += 1;
        }
        self.add(Shape { integer, scale });
    }

    fn add(&mut self, shape: Shape) {
        match self.shapes.iter_mut().find(|(known, _)| *known == shape) {
            Some((_, rows)) => *rows += 1,
            None => self.shapes.push((shape, 1)),
        }
    }

    /// The narrowest of INT64, DECIMAL(18, s) and DECIMAL(38, s) that holds the most numbers without loss,
    /// and how many.
    pub(super) fn leaf_type(&self) -> (LeafType, u64) {
        let mut best = (LeafType::Int64, self.int64);
        // The smallest scale that holds the most numbers is the scale of one of them.
        let mut scales: Vec<u8> = self.shapes.iter().map(|(shape, _)| shape.scale).collect();
        scales.sort_unstable();
        scales.dedup();
        for precision in PRECISIONS {
            for &scale in scales.iter().take_while(|&&scale| scale <= precision) {
                let rows = self.rows_in(precision, scale);
                if rows > best.1 {
                    best = (LeafType::Decimal { precision, scale }, rows);
                }
            }
        }
        best
    }

    fn rows_in(&self, precision: u8, scale: u8) -> u64 {
        let fits = |shape: &Shape| shape.scale <= scale && shape.integer + scale <= precision;
        self.shapes.iter().filter(|(shape, _)| fits(shape)).map(|(_, rows)| rows).sum()
    }
}

/// The number of decimal digits; zero has none.
fn digits(magnitude: u128) -> u8 {
    let log = match u64::try_from(magnitude) {
        Ok(small) => small.checked_ilog10(),
        Err(_) => magnitude.checked_ilog10(),
    };
    log.map_or(0, |log| log as u8 + 1)
}
