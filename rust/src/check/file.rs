//! Check the Variants of one column of a file, row by row, with one row group in memory for each thread.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter;
use rayon::prelude::*;
use roaring::RoaringTreemap;

use super::rows::check_rows;
use super::{PathCheck, Violations};
use crate::error::{Error, Result};
use crate::parquet::read::{ParquetFile, Scan};
use crate::shred::OnConflict;
use crate::shred::layout::Layout;
use crate::shred::unshred::unshred;

const BATCH_ROWS: usize = 8 << 10;

/// The result of the check of a column.
pub struct ColumnCheck {
    /// Variants that are not SQL NULL, in rows that are not deleted.
    pub variants: u64,
    pub violations: Violations,
    pub paths: Vec<PathCheck>,
}

impl ColumnCheck {
    fn new(paths: &[PathCheck]) -> Self {
        ColumnCheck { variants: 0, violations: Violations::default(), paths: paths.to_vec() }
    }

    fn merge(&mut self, later: Self) {
        self.variants += later.variants;
        self.violations.merge(later.violations);
        self.paths.iter_mut().zip(later.paths).for_each(|(path, later)| path.merge(later));
    }
}

/// Check the Variant column at `column`, a path through structs, lists (`element`) and maps (`key`, `value`).
///
/// `paths` are those with bounds. Rows in `deleted` are skipped.
pub fn check_column(
    file: &ParquetFile,
    column: &[String],
    paths: &[PathCheck],
    deleted: Option<&RoaringTreemap>,
) -> Result<ColumnCheck> {
    file.check_unambiguous(column)?;
    let groups = file.row_groups().len();
    let mut start = 0;
    let mut starts = Vec::with_capacity(groups);
    for group in file.row_groups() {
        starts.push(start);
        start += group.num_rows().unsigned_abs();
    }
    let parts: Vec<Result<ColumnCheck>> = (0..groups)
        .into_par_iter()
        .with_max_len(1)
        .map(|row_group| check_row_group(file, column, paths, deleted, row_group, starts[row_group]))
        .collect();
    let mut whole = ColumnCheck::new(paths);
    for part in parts {
        whole.merge(part?);
    }
    Ok(whole)
}

fn check_row_group(
    file: &ParquetFile,
    column: &[String],
    paths: &[PathCheck],
    deleted: Option<&RoaringTreemap>,
    row_group: usize,
    start: u64,
) -> Result<ColumnCheck> {
    let [name, rest @ ..] = column else {
        return Err(Error::data_file("expected the name of a column"));
    };
    let descriptors = file.metadata().file_metadata().schema_descr().columns().iter().enumerate();
    let leaves = descriptors.filter(|(_, leaf)| leaf.path().parts().first() == Some(name));
    let leaves = leaves.map(|(index, _)| index).collect();
    let scan = Scan { leaves, dictionaries: Vec::new(), row_groups: vec![row_group], batch_size: BATCH_ROWS };
    let mut check = ColumnCheck::new(paths);
    let mut row = start;
    for batch in file.read_row_group(&scan, row_group)? {
        let batch = batch?;
        let end = row + batch.num_rows() as u64;
        let is_live = |row: &u64| deleted.is_none_or(|deleted| !deleted.contains(*row));
        let rows: Vec<Option<u64>> = (row..end).map(|row| Some(row).filter(is_live)).collect();
        if let Some(array) = batch.column_by_name(name) {
            check_nested(array, rest, &rows, &mut check)?;
        }
        row = end;
    }
    Ok(check)
}

/// Check the Variants that the steps in `rest` lead to; `rows` has the row of each slot of `array`.
fn check_nested(
    array: &ArrayRef,
    rest: &[String],
    rows: &[Option<u64>],
    check: &mut ColumnCheck,
) -> Result<()> {
    let rows: Vec<Option<u64>> =
        rows.iter().enumerate().map(|(slot, row)| row.filter(|_| array.is_valid(slot))).collect();
    let Some((step, rest)) = rest.split_first() else { return check_variants(array, &rows, check) };
    if let Some(group) = array.as_struct_opt() {
        return match group.column_by_name(step) {
            Some(column) => check_nested(column, rest, &rows, check),
            None => Ok(()),
        };
    }
    if let Some(list) = array.as_list_opt::<i32>() {
        return check_nested(list.values(), rest, &spread(list.value_offsets(), &rows), check);
    }
    if let Some(map) = array.as_map_opt() {
        let entries = if step == "key" { map.keys() } else { map.values() };
        return check_nested(entries, rest, &spread(map.value_offsets(), &rows), check);
    }
    Err(no_variant(array))
}

/// Return the rows of the elements of lists in `rows`.
fn spread(offsets: &[i32], rows: &[Option<u64>]) -> Vec<Option<u64>> {
    let first = offsets.first().map_or(0, |&offset| offset as usize);
    let mut spread = vec![None; first];
    for (ends, row) in offsets.windows(2).zip(rows) {
        spread.resize(ends[1] as usize, *row);
    }
    spread
}

fn check_variants(array: &ArrayRef, rows: &[Option<u64>], check: &mut ColumnCheck) -> Result<()> {
    let group = array.as_struct_opt().ok_or_else(|| no_variant(array))?;
    let layout = Layout::parse(group.fields())?;
    check.variants += rows.iter().flatten().count() as u64;
    let unreadable = check_rows(group, &layout, rows, &mut check.violations)?;
    if check.paths.is_empty() {
        return Ok(());
    }
    let mut is_readable = vec![true; rows.len()];
    unreadable.into_iter().for_each(|slot| is_readable[slot] = false);
    let keep = BooleanBuffer::collect_bool(rows.len(), |slot| is_readable[slot] && rows[slot].is_some());
    let rows: Vec<Option<u64>> = keep.set_indices().map(|slot| rows[slot]).collect();
    let kept = filter(group, &BooleanArray::new(keep, None))?;
    let variants = unshred(kept.as_struct(), OnConflict::Typed)?;
    check.paths.iter_mut().try_for_each(|path| path.update(&variants, &rows))
}

fn no_variant(array: &ArrayRef) -> Error {
    Error::data_file(format!("expected a Variant, got {}", array.data_type()))
}
