//! Conditions drop rows before values are extracted. The rows that are left have their values and their numbers.

use std::sync::Arc;

use _native::data_file::conditions::{Condition, Operator, Test};
use _native::data_file::read::{DataFileReader, Projection, What};
use _native::parquet::read::{ParquetFile, Source};
use _native::parquet::write::{FileWriter, WriteOptions};
use _native::shred::OnConflict;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use roaring::RoaringTreemap;

const ROWS: i64 = 200_000;

/// Rows of `n`, the row number modulo 1,000 or null, and `ratio`, in three row groups.
fn file_bytes() -> Vec<u8> {
    let fields = vec![Field::new("n", DataType::Int64, true), Field::new("ratio", DataType::Float64, true)];
    let schema = Arc::new(Schema::new(fields));
    let mut bytes = Vec::new();
    let options = WriteOptions { row_group_rows: 70_000, ..WriteOptions::default() };
    let mut writer = FileWriter::new(&mut bytes, schema.clone(), options).unwrap();
    let n: Int64Array = (0..ROWS).map(|row| (row % 7 > 0).then_some(row % 1_000)).collect();
    let ratio: Float64Array = (0..ROWS).map(|row| Some(if row % 2 == 0 { -0.0 } else { 0.0 })).collect();
    writer.write(&RecordBatch::try_new(schema, vec![Arc::new(n), Arc::new(ratio)]).unwrap()).unwrap();
    writer.close().unwrap();
    bytes
}

fn file() -> Arc<ParquetFile> {
    open(file_bytes())
}

fn open(bytes: Vec<u8>) -> Arc<ParquetFile> {
    Arc::new(ParquetFile::open(Source::Bytes(bytes.into())).unwrap())
}

fn projections() -> Vec<Projection> {
    let column = |name: &str, what, data_type| Projection {
        column: vec![name.into()],
        what,
        field: Field::new(name, data_type, true),
    };
    vec![
        column("n", What::Column, DataType::Int64),
        column("ratio", What::Column, DataType::Float64),
        column("number", What::Position, DataType::Int64),
    ]
}

fn compare(projection: usize, operator: Operator, operands: ArrayRef) -> Condition {
    Condition { projection, test: Test::Any(operator, operands) }
}

fn integers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// The numbers of the rows that are left, after a check of their values, and the number of rows read.
fn read(conditions: Vec<Condition>, deleted: &RoaringTreemap) -> (Vec<i64>, usize) {
    let reader = DataFileReader::new(file(), projections(), None, OnConflict::Error, Some(deleted.clone()));
    let mut reader = reader.unwrap().with_conditions(conditions);
    let (mut numbers, mut rows_read) = (Vec::new(), 0);
    while let Some(found) = reader.next_batches() {
        for found in found.unwrap() {
            rows_read += found.rows_read;
            let (n, ratio) = (found.batch.column(0).as_primitive(), found.batch.column(1).as_primitive());
            for (index, number) in
                found.batch.column(2).as_primitive::<Int64Type>().values().iter().enumerate()
            {
                let expected = (number % 7 > 0).then_some(number % 1_000);
                let n: &arrow_array::PrimitiveArray<Int64Type> = n;
                let ratio: &arrow_array::PrimitiveArray<Float64Type> = ratio;
                assert_eq!(n.is_valid(index).then(|| n.value(index)), expected);
                assert_eq!(ratio.value(index).is_sign_negative(), number % 2 == 0);
                numbers.push(*number);
            }
        }
    }
    (numbers, rows_read)
}

fn expected(deleted: &RoaringTreemap, is_kept: impl Fn(i64) -> bool) -> Vec<i64> {
    (0..ROWS).filter(|row| row % 7 > 0 && is_kept(row % 1_000) && !deleted.contains(*row as u64)).collect()
}

#[test]
fn rows_that_do_not_meet_all_conditions_are_dropped_and_counted() {
    let deleted: RoaringTreemap = (0..ROWS as u64).filter(|row| row % 13 == 5).collect();
    let conditions = vec![
        compare(0, Operator::GreaterOrEqual, integers(&[500])),
        compare(0, Operator::NotEqual, integers(&[777])),
    ];
    let (numbers, rows_read) = read(conditions, &deleted);
    assert_eq!(numbers, expected(&deleted, |n| n >= 500 && n != 777));
    assert_eq!(rows_read as u64, ROWS as u64 - deleted.len());
}

#[test]
fn each_operator_keeps_the_rows_for_which_it_is_true() {
    let none = RoaringTreemap::new();
    type IsKept = fn(i64) -> bool;
    let cases: [(Operator, IsKept); 6] = [
        (Operator::Equal, |n| n == 10),
        (Operator::NotEqual, |n| n != 10),
        (Operator::Less, |n| n < 10),
        (Operator::LessOrEqual, |n| n <= 10),
        (Operator::Greater, |n| n > 10),
        (Operator::GreaterOrEqual, |n| n >= 10),
    ];
    for (operator, is_kept) in cases {
        let found = read(vec![compare(0, operator, integers(&[10]))], &none).0;
        assert_eq!(found, expected(&none, is_kept), "{operator:?}");
    }
    assert_eq!(
        read(vec![compare(0, Operator::Equal, integers(&[3, 999]))], &none).0,
        expected(&none, |n| n == 3 || n == 999)
    );
    assert_eq!(
        read(vec![Condition { projection: 0, test: Test::IsNotNull }], &none).0,
        expected(&none, |_| true)
    );
}

#[test]
fn a_condition_on_another_type_or_on_floats_drops_no_row() {
    let none = RoaringTreemap::new();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["10"]));
    let zero: ArrayRef = Arc::new(Float64Array::from(vec![0.0]));
    for condition in [
        compare(0, Operator::Equal, text),
        compare(1, Operator::Equal, zero),
        compare(2, Operator::Less, integers(&[0])),
        compare(9, Operator::Less, integers(&[0])),
    ] {
        assert_eq!(read(vec![condition], &none).0.len(), ROWS as usize);
    }
}

#[test]
fn text_is_compared_in_its_dictionary() {
    let keys = Int32Array::from(vec![Some(0), None, Some(1), Some(0), Some(2)]);
    let words: ArrayRef = Arc::new(StringArray::from(vec![Some("buy"), Some("view"), None]));
    let values: ArrayRef = Arc::new(DictionaryArray::try_new(keys, words).unwrap());
    let operands: ArrayRef = Arc::new(StringArray::from(vec!["buy"]));
    let test = |operator| Test::Any(operator, operands.clone()).matching(&values).unwrap().unwrap();
    assert_eq!(test(Operator::Equal).set_indices().collect::<Vec<_>>(), [0, 3]);
    assert_eq!(test(Operator::Greater).set_indices().collect::<Vec<_>>(), [2]);
    let valid = Test::IsNotNull.matching(&values).unwrap().unwrap();
    assert_eq!(valid.set_indices().collect::<Vec<_>>(), [0, 2, 3]);
}

type Numbers<'a> = &'a mut dyn Iterator<Item = Option<i64>>;

#[test]
fn values_are_found_among_many_like_among_few() {
    let numbers = |count: i64| (0..count).map(|row| (row % 5 > 0).then_some(row * row % 97));
    let texts = |count| numbers(count).map(|number| number.map(|number| format!("text {number}")));
    let columns: [fn(Numbers) -> ArrayRef; 6] = [
        |rows| Arc::new(rows.map(|row| row.map(|n| n as i8)).collect::<Int8Array>()),
        |rows| Arc::new(rows.map(|row| row.map(|n| n as i16 * 300)).collect::<Int16Array>()),
        |rows| Arc::new(rows.map(|row| row.map(|n| n as i32 - 50)).collect::<Date32Array>()),
        |rows| Arc::new(rows.map(|row| row.map(|n| n << 40)).collect::<Int64Array>()),
        |rows| Arc::new(rows.map(|row| row.map(|n| i128::from(n) << 70)).collect::<Decimal128Array>()),
        |rows| Arc::new(rows.map(|row| row.map(|n| n as f64)).collect::<Float64Array>()),
    ];
    let mut pairs: Vec<(ArrayRef, ArrayRef)> = columns
        .iter()
        .map(|column| (column(&mut numbers(500)), column(&mut numbers(60).filter(Option::is_some))))
        .collect();
    pairs.push((
        Arc::new(texts(500).collect::<StringArray>()),
        Arc::new(texts(60).filter(Option::is_some).collect::<StringArray>()),
    ));
    for (values, operands) in pairs {
        let values = values.slice(3, 450);
        let many = Test::any(Operator::Equal, operands.clone()).matching(&values).unwrap();
        let few = Test::Any(Operator::Equal, operands).matching(&values).unwrap();
        assert_eq!(many, few);
        assert!(values.data_type().is_floating() == many.is_none());
        assert!(many.is_none_or(|rows| rows.count_set_bits() > 10 && rows.count_set_bits() < 440));
    }
}

/// The number of rows and of columns of each batch, after a check of the number of rows read.
fn count(conditions: Vec<Condition>, deleted: &RoaringTreemap) -> Vec<(usize, usize)> {
    let reader = DataFileReader::new(file(), projections(), None, OnConflict::Error, Some(deleted.clone()));
    let mut reader = reader.unwrap().with_conditions(conditions).counting();
    let mut batches = Vec::new();
    while let Some(found) = reader.next_batches() {
        batches.extend(found.unwrap());
    }
    let rows_read: usize = batches.iter().map(|found| found.rows_read).sum();
    assert_eq!(rows_read as u64, ROWS as u64 - deleted.len());
    batches.iter().map(|found| (found.batch.num_rows(), found.batch.num_columns())).collect()
}

#[test]
fn rows_are_counted_without_columns_where_all_conditions_decide() {
    let deleted: RoaringTreemap = (0..ROWS as u64).filter(|row| row % 13 == 5).collect();
    let least = compare(0, Operator::GreaterOrEqual, integers(&[500]));
    let other = compare(0, Operator::NotEqual, integers(&[777]));
    let is_known = Condition { projection: 0, test: Test::IsNotNull };
    for conditions in [vec![least.clone()], vec![least.clone(), other.clone()], vec![is_known, other, least]]
    {
        let batches = count(conditions.clone(), &deleted);
        assert!(batches.iter().all(|(_, columns)| *columns == 0));
        let rows: usize = batches.iter().map(|(rows, _)| rows).sum();
        assert_eq!(rows, read(conditions, &deleted).0.len());
    }
}

#[test]
fn rows_have_columns_where_a_condition_does_not_decide() {
    let none = RoaringTreemap::new();
    let zero: ArrayRef = Arc::new(Float64Array::from(vec![0.0]));
    let unknown = compare(1, Operator::Equal, zero);
    let least = compare(0, Operator::GreaterOrEqual, integers(&[500]));
    for conditions in [vec![], vec![unknown.clone(), least.clone()], vec![least, unknown]] {
        let batches = count(conditions.clone(), &none);
        assert!(batches.iter().all(|(_, columns)| *columns == 3));
        let rows: usize = batches.iter().map(|(rows, _)| rows).sum();
        assert_eq!(rows, read(conditions, &none).0.len());
    }
}

#[test]
fn rows_before_a_row_group_that_cannot_be_read_are_returned() {
    let mut bytes = file_bytes();
    let (start, length) = open(bytes.clone()).row_groups()[2].column(0).byte_range();
    bytes[start as usize..(start + length) as usize].fill(0xff);
    let reader = DataFileReader::new(open(bytes), projections(), None, OnConflict::Error, None).unwrap();
    let (batches, errors): (Vec<_>, Vec<_>) = reader.into_iter().partition(|batch| batch.is_ok());
    let rows: usize = batches.into_iter().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((rows, errors.len()), (140_000, 1));
}
