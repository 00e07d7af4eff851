//! Rows that are selected, and rows that are replaced, compared with the same row by row.

use std::sync::Arc;

use _native::data_file::filter::{filter_rows, replace_rows};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::*;
use arrow_schema::{DataType, Field};

use crate::columns::Random;

fn numbers(rows: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(rows.to_vec()))
}

fn rows(column: &ArrayRef) -> Vec<Option<i64>> {
    column.as_primitive::<Int64Type>().iter().collect()
}

#[test]
fn rows_of_nested_columns_are_selected() {
    let plain = [Some(1), None, Some(3), Some(4)];
    let member = Arc::new(Field::new("n", DataType::Int64, true));
    let group = StructArray::new(
        vec![member].into(),
        vec![numbers(&plain)],
        Some(vec![true, true, false, true].into()),
    );
    let columns: [(&str, ArrayRef); 3] =
        [("n", numbers(&plain)), ("s", Arc::new(group)), ("z", numbers(&[None; 4]))];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)));
    let found = filter_rows(&batch.unwrap(), &vec![false, true, true, true].into()).unwrap();
    assert_eq!(rows(found.column(0)), plain[1..]);
    let group = found.column(1).as_struct();
    assert_eq!((0..3).map(|row| group.is_valid(row)).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(rows(group.column(0)), plain[1..]);
    assert_eq!(rows(found.column(2)), [None; 3]);
    let empty = RecordBatch::try_new_with_options(
        Arc::new(arrow_schema::Schema::empty()),
        vec![],
        &RecordBatchOptions::new().with_row_count(Some(3)),
    );
    assert_eq!(filter_rows(&empty.unwrap(), &vec![true, false, true].into()).unwrap().num_rows(), 2);
}

#[test]
fn rows_are_replaced_by_their_numbers() {
    for seed in 1..60 {
        let random = &mut Random(seed);
        let mut chosen = |of: usize| (0..40).filter(|_| random.below(of) == 0).collect::<Vec<i64>>();
        let (known, replaced) = (chosen(2), chosen(3));
        let old: Vec<Option<i64>> = known.iter().map(|number| Some(*number)).collect();
        let new: Vec<Option<i64>> =
            replaced.iter().map(|number| (number % 5 != 0).then_some(-number)).collect();
        let expected: Vec<Option<i64>> = known
            .iter()
            .map(|number| {
                replaced.iter().position(|other| other == number).map_or(Some(*number), |at| new[at])
            })
            .collect();
        let found = replace_rows(&numbers(&old), &known, &numbers(&new), &replaced).unwrap();
        assert_eq!(rows(&found), expected, "{seed}");
    }
    let other: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let error = replace_rows(&numbers(&[Some(1)]), &[0], &other, &[0]).unwrap_err();
    assert_eq!(error.message(), "expected rows of type Int64, got Utf8");
}
