//! The bounds of a row group that is copied from one file to another.

use arrow_array::ArrayRef;
use arrow_schema::Schema;
use parquet::file::statistics::Statistics;

use crate::bounds::{ColumnBounds, StoredLeaves};
use crate::error::Result;
use crate::parquet::read::{ParquetFile, Scan};
use crate::value::column::leaf_count;

const BATCH_ROWS: usize = 64 << 10;

struct RowGroupLeaves<'a> {
    file: &'a ParquetFile,
    row_group: usize,
}

impl StoredLeaves for RowGroupLeaves<'_> {
    fn statistics(&self, leaf: usize) -> (u64, Option<&Statistics>) {
        let chunk = self.file.row_groups()[self.row_group].column(leaf);
        let stated = chunk.statistics().filter(|_| self.file.has_exact_bounds(chunk));
        (chunk.num_values().unsigned_abs(), stated)
    }

    fn read(&self, leaves: &[usize]) -> Result<Vec<ArrayRef>> {
        let scan = Scan {
            leaves: leaves.to_vec(),
            dictionaries: Vec::new(),
            row_groups: vec![self.row_group],
            batch_size: BATCH_ROWS,
        };
        self.file.read(&scan).map(|batch| Ok(batch?.column(0).clone())).collect()
    }
}

/// Add a row group of a file with the columns of `schema` to the bounds of these columns, without those at the
/// positions `replaced`.
pub(super) fn add_row_group(
    bounds: &mut [ColumnBounds],
    schema: &Schema,
    file: &ParquetFile,
    row_group: usize,
    replaced: &[usize],
) -> Result<()> {
    let leaves = RowGroupLeaves { file, row_group };
    let mut first = 0;
    for (position, (column, field)) in bounds.iter_mut().zip(schema.fields()).enumerate() {
        let next = first + leaf_count(field.data_type());
        let is_replaced = replaced.contains(&position);
        if !is_replaced
            && !column.add_stored(first, &leaves).map_err(|error| error.in_column(field.name()))?
        {
            // The file may have rows that another writer has shredded.
            let mut decoded = ColumnBounds::new(field)?.distrusting();
            for array in leaves.read(&(first..next).collect::<Vec<_>>())? {
                decoded.update(&array).map_err(|error| error.in_column(field.name()))?;
            }
            column.merge(&decoded);
        }
        first = next;
    }
    Ok(())
}
