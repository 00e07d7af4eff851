//! Where a column lies among the leaves of a file, and its rows among the row groups.

use std::ops::Range;

use arrow_schema::{DataType, Field, Fields};

use crate::parquet::ParquetFile;
use crate::value::column::leaf_count;

/// The first leaf, and the field, at the end of `path`.
pub(super) fn locate<'a>(fields: &'a Fields, path: &[String]) -> Option<(usize, &'a Field)> {
    let (name, rest) = path.split_first()?;
    let position = fields.iter().position(|field| field.name() == name)?;
    let first = fields.iter().take(position).map(|field| leaf_count(field.data_type())).sum::<usize>();
    let field = &fields[position];
    match (rest, field.data_type()) {
        ([], _) => Some((first, field)),
        (_, DataType::Struct(fields)) => locate(fields, rest).map(|(leaf, field)| (first + leaf, field)),
        _ => None,
    }
}

/// The rows of each row group.
pub(super) fn row_group_rows(file: &ParquetFile) -> Vec<Range<u64>> {
    let mut end = 0;
    let ranges = file.row_groups().iter().map(|group| {
        let start = end;
        end += group.num_rows().unsigned_abs();
        start..end
    });
    ranges.collect()
}
