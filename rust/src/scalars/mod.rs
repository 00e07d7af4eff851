//! The scalar functions of SQL that Arrow's own kernels lack or compute in another way than Spark.

pub mod format;
pub mod hash;
pub mod moments;
pub mod numbers;
pub mod pattern;
pub mod text;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, PrimitiveArray, StringArray};

use crate::error::{Error, Result};
use crate::value::Zone;

/// The arguments of a function: columns of `rows` rows, or of one row, which stands for all.
#[derive(Debug)]
pub struct Arguments {
    pub columns: Vec<ArrayRef>,
    pub rows: usize,
    pub zone: Zone,
}

impl Arguments {
    /// The text of an argument.
    pub fn text(&self, index: usize) -> Result<Column<&StringArray>> {
        self.column(index, |array| array.as_string_opt::<i32>())
    }

    /// The numbers, dates or timestamps of an argument.
    pub fn primitive<T: ArrowPrimitiveType>(&self, index: usize) -> Result<Column<&PrimitiveArray<T>>> {
        self.column(index, |array| array.as_primitive_opt::<T>())
    }

    /// The constant text of an argument, `None` for null.
    pub fn constant(&self, index: usize) -> Result<Option<&str>> {
        let text = self.text(index)?;
        match text.array.len() {
            1 => Ok(text.array.is_valid(0).then(|| text.array.value(0))),
            _ => Err(Error::unsupported("this argument must be a constant")),
        }
    }

    fn column<'a, A>(
        &'a self,
        index: usize,
        downcast: impl Fn(&'a dyn Array) -> Option<A>,
    ) -> Result<Column<A>> {
        let array = self.columns.get(index).ok_or_else(|| Error::unsupported("an argument is missing"))?;
        match downcast(array) {
            Some(typed) => Ok(Column { array: typed, step: usize::from(array.len() == self.rows) }),
            None => Err(Error::unsupported(format!("unexpected type of an argument: {}", array.data_type()))),
        }
    }
}

/// One argument; `step` is 0 for a value that stands for all rows.
#[derive(Debug, Clone, Copy)]
pub struct Column<A> {
    pub array: A,
    step: usize,
}

impl<'a> Column<&'a StringArray> {
    pub fn get(&self, row: usize) -> Option<&'a str> {
        let row = row * self.step;
        self.array.is_valid(row).then(|| self.array.value(row))
    }
}

impl<T: ArrowPrimitiveType> Column<&PrimitiveArray<T>> {
    pub fn get(&self, row: usize) -> Option<T::Native> {
        let row = row * self.step;
        self.array.is_valid(row).then(|| self.array.value(row))
    }
}

type Function = fn(&Arguments) -> Result<ArrayRef>;

const FUNCTIONS: &[(&str, Function)] = &[
    ("upper", text::upper),
    ("lower", text::lower),
    ("initcap", text::initcap),
    ("trim", text::trim),
    ("ltrim", text::trim_start),
    ("rtrim", text::trim_end),
    ("substring", text::substring),
    ("right", text::right),
    ("repeat", text::repeat),
    ("lpad", text::pad_start),
    ("rpad", text::pad_end),
    ("locate", text::locate),
    ("split_part", text::split_part),
    ("replace", text::replace),
    ("contains", text::contains),
    ("startswith", text::starts_with),
    ("endswith", text::ends_with),
    ("round", numbers::round),
    ("exp", numbers::exp),
    ("log", numbers::log),
    ("log10", numbers::log10),
    ("power", numbers::power),
    ("decimal_text", numbers::decimal_text),
    ("date_trunc", moments::date_trunc),
    ("trunc", moments::trunc),
    ("add_months", moments::add_months),
    ("months_between", moments::months_between),
    ("unix_millis", moments::unix_millis),
    ("date_format", format::date_format),
    ("to_timestamp", format::to_timestamp),
    ("hash", hash::murmur3),
    ("xxhash64", hash::xxhash64),
];

/// Call the function `name`.
pub fn apply(name: &str, arguments: &Arguments) -> Result<ArrayRef> {
    match FUNCTIONS.iter().find(|(known, _)| *known == name) {
        Some((_, function)) => function(arguments),
        None => Err(Error::unsupported(format!("unknown function {name:?}"))),
    }
}
