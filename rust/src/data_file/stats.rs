//! Compute the exact bounds of the columns of a data file from its data.
//!
//! Each thread holds one row group.

use std::sync::Arc;

use arrow_schema::{DataType, Field};

use crate::bounds::ColumnBounds;
use crate::error::{Error, Result};
use crate::parquet::read::ParquetFile;
use crate::parquet::variants::check_variant_at;
use crate::shred::schema::{EXTENSION_NAME, VARIANT_EXTENSION};

const BATCH_ROWS: usize = 64 << 10;

/// The bounds of each top-level column; `variants` are the paths of those that are Variants, through structs.
pub fn file_bounds(file: &ParquetFile, variants: &[Vec<String>]) -> Result<Vec<ColumnBounds>> {
    file.check_unambiguous(&[])?;
    variants.iter().try_for_each(|path| {
        check_variant_at(file.schema(), path).map_err(|error| error.in_column(&path.join(".")))
    })?;
    let fields = file.arrow_schema().fields();
    let empty: Vec<ColumnBounds> = fields
        .iter()
        .map(|field| {
            let field = marked(field, &mut Vec::new(), variants)?;
            ColumnBounds::new(&field).map(ColumnBounds::distrusting)
        })
        .collect::<Result<_>>()?;
    let leaves = file.metadata().file_metadata().schema_descr().num_columns();
    let parts = file
        .read_parallel(&file.scan((0..leaves).collect(), BATCH_ROWS), |batch| {
            let mut part = empty.clone();
            part.iter_mut().zip(batch.columns()).try_for_each(|(bounds, array)| bounds.update(array))?;
            Ok(part)
        })
        .collect::<Result<Vec<_>>>()?;
    let mut columns = empty.clone();
    for part in parts.into_iter().flatten() {
        columns.iter_mut().zip(&part).for_each(|(column, part)| column.merge(part));
    }
    Ok(columns)
}

/// `field` with the extension name on the Variants in it.
fn marked(field: &Field, parents: &mut Vec<String>, variants: &[Vec<String>]) -> Result<Field> {
    parents.push(field.name().clone());
    let marked = match field.data_type() {
        data_type if variants.contains(parents) => match data_type {
            DataType::Struct(_) => {
                let mut metadata = field.metadata().clone();
                metadata.insert(EXTENSION_NAME.into(), VARIANT_EXTENSION.into());
                field.clone().with_metadata(metadata)
            }
            other => {
                let path = parents.join(".");
                return Err(Error::data_file(format!("expected a Variant, got {other}")).in_column(&path));
            }
        },
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| marked(field, parents, variants).map(Arc::new));
            field.clone().with_data_type(DataType::Struct(fields.collect::<Result<_>>()?))
        }
        _ => field.clone(),
    };
    parents.pop();
    Ok(marked)
}
