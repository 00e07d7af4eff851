//! The exact bounds of the columns of a data file, from its data.

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field};

use super::write::Bounds;
use crate::bounds::{ColumnBounds, VariantBounds};
use crate::error::{Error, Result};
use crate::parquet::read::ParquetFile;
use crate::shred::layout::Layout;

const BATCH_ROWS: usize = 64 << 10;

/// The bounds of each top-level column; `variants` names those that are Variants.
pub fn file_bounds(file: &ParquetFile, variants: &[String]) -> Result<Vec<Bounds>> {
    let schema = file.arrow_schema();
    let mut columns =
        schema.fields().iter().map(|field| empty(field, variants)).collect::<Result<Vec<_>>>()?;
    let leaves = file.metadata().file_metadata().schema_descr().num_columns();
    let parts = file
        .read_parallel(&file.scan((0..leaves).collect(), BATCH_ROWS), |batch| {
            let mut part =
                schema.fields().iter().map(|field| empty(field, variants)).collect::<Result<Vec<_>>>()?;
            for (bounds, array) in part.iter_mut().zip(batch.columns()) {
                match bounds {
                    Bounds::Plain(bounds) => bounds.update(array)?,
                    Bounds::Variant(bounds) => bounds.update(array.as_struct())?,
                }
            }
            Ok(part)
        })
        .collect::<Result<Vec<_>>>()?;
    for part in parts.into_iter().flatten() {
        columns.iter_mut().zip(&part).for_each(|(column, part)| match (column, part) {
            (Bounds::Plain(column), Bounds::Plain(part)) => column.merge(part),
            (Bounds::Variant(column), Bounds::Variant(part)) => column.merge(part),
            _ => {}
        });
    }
    Ok(columns)
}

fn empty(field: &Field, variants: &[String]) -> Result<Bounds> {
    if !variants.contains(field.name()) {
        return Ok(Bounds::Plain(ColumnBounds::new(field)));
    }
    match field.data_type() {
        DataType::Struct(fields) => Ok(Bounds::Variant(VariantBounds::new(&Layout::parse(fields)?.schema()))),
        other => Err(Error::DataFile(format!("column {:?} is {other}, and no Variant", field.name()))),
    }
}
