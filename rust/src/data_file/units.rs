//! The statistics of columns and shredded paths, by row group or page, for skipping rows before they are read.

use std::collections::BTreeSet;
use std::ops::Range;

use arrow_array::builder::BooleanBuilder;
use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::{DataType, Fields};
use parquet::schema::types::ColumnDescriptor;

use super::columns::{locate, row_group_rows};
use crate::bounds::BoundBuilder;
use crate::error::Result;
use crate::parquet::ParquetFile;
use crate::parquet::page_index::PageIndex;
use crate::parquet::statistics::{Statistics, bound_value};
use crate::shred::extract::{ShreddedLeaf, shredded_leaf};
use crate::value::path::Step;

/// An ordinary column, or the values at a path in a Variant, cast to `target`.
#[derive(Debug, Clone)]
pub struct Input {
    pub column: Vec<String>,
    pub path: Option<Vec<Step>>,
    pub target: DataType,
}

/// Ranges of rows, and the statistics of each input in them.
#[derive(Debug)]
pub struct Units {
    pub rows: Vec<Range<u64>>,
    pub inputs: Vec<UnitBounds>,
}

/// The statistics of one input, with one row for each unit.
#[derive(Debug)]
pub struct UnitBounds {
    /// Null where a bound is unknown.
    pub min: ArrayRef,
    pub max: ArrayRef,
    /// Whether all values are known to be null, and whether all are known not to be.
    pub all_null: BooleanArray,
    pub no_null: BooleanArray,
}

/// The row groups of a file.
pub fn row_group_units(file: &ParquetFile, inputs: &[Input]) -> Result<Units> {
    let locations = locations(file, inputs)?;
    let mut units = UnitsBuilder::new(inputs)?;
    for (row_group, rows) in row_group_rows(file).into_iter().enumerate() {
        units.push(rows, file, &locations, |leaf| Statistics::of_chunk(file, row_group, leaf))?;
    }
    units.finish()
}

/// Return the rows of some row groups as ranges that cross no page boundary of the inputs.
pub fn page_units(file: &ParquetFile, inputs: &[Input], row_groups: &[usize]) -> Result<Units> {
    let locations = locations(file, inputs)?;
    let leaves: Vec<usize> =
        locations.iter().flat_map(Location::leaves).collect::<BTreeSet<_>>().into_iter().collect();
    let groups = row_group_rows(file);
    let mut units = UnitsBuilder::new(inputs)?;
    let indexes = file.page_indexes(row_groups, &leaves, true)?;
    for (&row_group, pages) in row_groups.iter().zip(&indexes) {
        let Some(rows) = groups.get(row_group) else { continue };
        for piece in pieces(pages, rows.end - rows.start) {
            let statistics = |leaf: usize| {
                let index = leaves.iter().position(|known| *known == leaf);
                let pages = index.and_then(|index| pages.get(index)?.as_ref());
                match pages.and_then(|pages| page_at(pages, piece.start)) {
                    Some(page) => page,
                    None => Statistics::of_chunk(file, row_group, leaf),
                }
            };
            let rows = rows.start + piece.start..rows.start + piece.end;
            units.push(rows, file, &locations, statistics)?;
        }
    }
    units.finish()
}

/// Return the rows of a row group, split at each page boundary.
fn pieces(pages: &[Option<PageIndex>], total: u64) -> Vec<Range<u64>> {
    let starts = pages.iter().flatten().flat_map(|pages| pages.rows(total)).map(|rows| rows.start);
    let cuts: Vec<u64> = starts.chain([0, total]).collect::<BTreeSet<_>>().into_iter().collect();
    cuts.windows(2).map(|cut| cut[0]..cut[1]).collect()
}

fn page_at(pages: &PageIndex, row: u64) -> Option<Statistics<'_>> {
    let after = pages.locations.partition_point(|page| page.first_row_index.unsigned_abs() <= row);
    pages.statistics.get(after.checked_sub(1)?).map(Statistics::of_page)
}

/// The location of an input in the file.
pub(super) enum Location {
    /// The file lacks the column, which is null.
    Absent,
    /// A column without usable statistics.
    Unknown,
    Leaf(ShreddedLeaf),
}

impl Location {
    fn leaves(&self) -> impl Iterator<Item = usize> {
        let leaf = match self {
            Location::Leaf(leaf) => Some(*leaf),
            _ => None,
        };
        leaf.into_iter().flat_map(|leaf| [Some(leaf.typed_value), leaf.value]).flatten()
    }
}

fn locations(file: &ParquetFile, inputs: &[Input]) -> Result<Vec<Location>> {
    let fields = file.arrow_schema().fields();
    let located = inputs.iter().map(|input| {
        file.check_unambiguous(&input.column)?;
        location(fields, &input.column, input.path.as_deref())
    });
    located.collect()
}

/// Locate a column, or the values at a path in a Variant.
pub(super) fn location(fields: &Fields, column: &[String], path: Option<&[Step]>) -> Result<Location> {
    let Some((first, field)) = locate(fields, column) else { return Ok(Location::Absent) };
    let leaf = match (path, field.data_type()) {
        (None, data_type) if data_type.is_nested() => None,
        (None, _) => Some(ShreddedLeaf { typed_value: 0, value: None }),
        (Some(path), DataType::Struct(group)) => shredded_leaf(group, path)?,
        (Some(_), _) => None,
    };
    Ok(leaf.map_or(Location::Unknown, |leaf| {
        Location::Leaf(ShreddedLeaf {
            typed_value: first + leaf.typed_value,
            value: leaf.value.map(|value| first + value),
        })
    }))
}

struct UnitsBuilder {
    rows: Vec<Range<u64>>,
    inputs: Vec<InputBuilder>,
}

struct InputBuilder {
    min: BoundBuilder,
    max: BoundBuilder,
    all_null: BooleanBuilder,
    no_null: BooleanBuilder,
}

impl UnitsBuilder {
    fn new(inputs: &[Input]) -> Result<Self> {
        let inputs = inputs.iter().map(|input| InputBuilder::new(&input.target)).collect::<Result<_>>()?;
        Ok(UnitsBuilder { rows: Vec::new(), inputs })
    }

    fn push<'a>(
        &mut self,
        rows: Range<u64>,
        file: &ParquetFile,
        locations: &[Location],
        statistics: impl Fn(usize) -> Statistics<'a>,
    ) -> Result<()> {
        let columns = file.metadata().file_metadata().schema_descr().columns();
        self.rows.push(rows);
        for (input, location) in self.inputs.iter_mut().zip(locations) {
            match location {
                Location::Absent => input.push_null(true)?,
                Location::Unknown => input.push_null(false)?,
                Location::Leaf(leaf) => {
                    let value = leaf.value.map(&statistics);
                    let typed = statistics(leaf.typed_value).in_calendar(file, leaf.typed_value);
                    input.push(&columns[leaf.typed_value], typed, value)?;
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Units> {
        let inputs = self.inputs.into_iter().map(InputBuilder::finish).collect::<Result<_>>()?;
        Ok(Units { rows: self.rows, inputs })
    }
}

impl InputBuilder {
    fn new(target: &DataType) -> Result<Self> {
        Ok(InputBuilder {
            min: BoundBuilder::new(target)?,
            max: BoundBuilder::new(target)?,
            all_null: BooleanBuilder::new(),
            no_null: BooleanBuilder::new(),
        })
    }

    fn push_null(&mut self, all_null: bool) -> Result<()> {
        self.min.push(None)?;
        self.max.push(None)?;
        self.all_null.append_value(all_null);
        self.no_null.append_value(false);
        Ok(())
    }

    /// Add a unit; the bounds of `typed_value` hold for the path only where its `value` is null in all rows
    /// (VariantShredding.md, "Data Skipping").
    fn push(
        &mut self,
        column: &ColumnDescriptor,
        typed: Statistics<'_>,
        value: Option<Statistics<'_>>,
    ) -> Result<()> {
        if value.is_some_and(|value| !value.all_null) {
            return self.push_null(false);
        }
        self.min.push(typed.min.and_then(|bytes| bound_value(column, bytes)))?;
        self.max.push(typed.max.and_then(|bytes| bound_value(column, bytes)))?;
        self.all_null.append_value(typed.all_null);
        self.no_null.append_value(value.is_none() && typed.no_null);
        Ok(())
    }

    fn finish(mut self) -> Result<UnitBounds> {
        Ok(UnitBounds {
            min: self.min.finish()?,
            max: self.max.finish()?,
            all_null: self.all_null.finish(),
            no_null: self.no_null.finish(),
        })
    }
}
