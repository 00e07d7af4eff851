//! Units of rows with bounds for data skipping, and reads of selected rows.

use std::sync::Arc;

use _native::data_file::read::{DataFileReader, Projection, What};
use _native::data_file::units::{Input, Units, page_units, row_group_units};
use _native::data_file::write::{DataFileWriter, Encoding, OnInvalid};
use _native::json::parse::ParseOptions;
use _native::parquet::{ParquetFile, Source, WriteOptions};
use _native::shred::{OnConflict, ShreddingSchema};
use _native::value::cast::Casting;
use _native::value::path::Step;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Fields, Schema};

const ROWS: i64 = 100_000;
const GROUP_ROWS: usize = 60_000;

/// A file with `id` from 0, and `event` with `a` equal to `id`, `late` only in the last quarter, and `odd`, a string
/// in row 70,000. `noise` is the last column and longer than what is read with a footer.
fn file() -> Arc<ParquetFile> {
    file_of(ROWS)
}

fn file_of(rows: i64) -> Arc<ParquetFile> {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("event", DataType::Utf8, true),
        Field::new("noise", DataType::Utf8, true),
    ]);
    let fields = ["a", "late", "odd"].map(|name| Field::new(name, DataType::Int64, true));
    let shredding = Field::new("typed_value", DataType::Struct(Fields::from(fields.to_vec())), true);
    let shredding = ShreddingSchema::from_arrow(&shredding).unwrap();
    let encodings = vec![Encoding::Plain, Encoding::Json(shredding), Encoding::Plain];
    let options = WriteOptions { row_group_rows: GROUP_ROWS, ..WriteOptions::default() };
    let parse = ParseOptions { doubles: false, last_duplicate: false };
    let mut bytes = Vec::new();
    let mut writer =
        DataFileWriter::new(&mut bytes, &schema, encodings, parse, OnInvalid::Error, options).unwrap();
    let texts: StringArray = (0..rows).map(|id| Some(text(id))).collect();
    let ids = Int64Array::from_iter_values(0..rows);
    let noise: StringArray =
        (0..rows).map(|id| Some(format!("{:x}", id.wrapping_mul(-7_046_029_254_386_353_131)))).collect();
    let columns = vec![Arc::new(ids) as ArrayRef, Arc::new(texts), Arc::new(noise)];
    writer.write(&RecordBatch::try_new(Arc::new(schema), columns).unwrap()).unwrap();
    writer.close().unwrap();
    Arc::new(ParquetFile::open(Source::Bytes(bytes.into())).unwrap())
}

fn text(id: i64) -> String {
    let late = if id >= 75_000 { format!(r#","late":{id}"#) } else { String::new() };
    let odd = if id == 70_000 { r#""x""#.to_string() } else { id.to_string() };
    format!(r#"{{"a":{id}{late},"odd":{odd}}}"#)
}

fn column(name: &str) -> Input {
    Input { column: vec![name.into()], path: None, target: DataType::Int64 }
}

fn path(name: &str) -> Input {
    Input {
        column: vec!["event".into()],
        path: Some(vec![Step::Field(name.into())]),
        target: DataType::Int64,
    }
}

fn bounds(units: &Units, input: usize) -> Vec<(Option<i64>, Option<i64>)> {
    let bounds = &units.inputs[input];
    let (min, max) = (bounds.min.as_primitive::<Int64Type>(), bounds.max.as_primitive::<Int64Type>());
    min.iter().zip(max).collect()
}

#[test]
fn row_groups_have_the_bounds_of_columns_and_of_shredded_paths() {
    let units = row_group_units(&file(), &[column("id"), path("a"), path("late"), path("odd")]).unwrap();
    assert_eq!(units.rows, [0..60_000, 60_000..100_000]);
    let exact = [(Some(0), Some(59_999)), (Some(60_000), Some(99_999))];
    assert_eq!(bounds(&units, 0), exact);
    assert_eq!(bounds(&units, 1), exact);
    assert_eq!(bounds(&units, 2), [(None, None), (Some(75_000), Some(99_999))]);
    // The second row group also contains a string, so the bounds of its numbers do not cover the path.
    assert_eq!(bounds(&units, 3), [(Some(0), Some(59_999)), (None, None)]);
    let all_null: Vec<bool> = units.inputs[2].all_null.values().iter().collect();
    assert_eq!(all_null, [true, false]);
    let no_null: Vec<bool> = units.inputs[0].no_null.values().iter().collect();
    assert_eq!(no_null, [true, true]);
}

#[test]
fn requested_row_groups_are_split_at_pages() {
    let units = page_units(&file(), &[column("id"), path("a")], &[1]).unwrap();
    assert!(units.rows.len() > 1);
    assert_eq!((units.rows[0].start, units.rows[units.rows.len() - 1].end), (60_000, 100_000));
    for (rows, (min, max)) in units.rows.iter().zip(bounds(&units, 1)) {
        // A unit may be smaller than the page of a column, but never larger.
        assert!(min.unwrap() <= rows.start as i64 && rows.end as i64 - 1 <= max.unwrap(), "{rows:?}");
        assert!(max.unwrap() - min.unwrap() < 30_000);
    }
}

#[test]
fn missing_columns_are_null_and_unshredded_paths_unknown() {
    let elsewhere = Input { path: Some(vec![Step::Field("a".into()), Step::Index(0)]), ..path("a") };
    let units = row_group_units(&file(), &[column("absent"), path("b"), elsewhere]).unwrap();
    let all_null = |input: usize| units.inputs[input].all_null.values().iter().collect::<Vec<_>>();
    assert_eq!(all_null(0), [true, true]);
    assert_eq!(all_null(1), [false, false]);
    assert_eq!(all_null(2), [false, false]);
    assert_eq!(bounds(&units, 1), [(None, None), (None, None)]);
}

#[test]
fn a_bound_of_another_type_is_unknown() {
    let text = Input { target: DataType::Utf8, ..path("a") };
    let units = row_group_units(&file(), &[text]).unwrap();
    assert_eq!(units.inputs[0].min.null_count(), 2);
}

#[test]
fn pages_without_wanted_rows_are_not_fetched() {
    let projection = || Projection {
        column: vec!["event".into()],
        what: What::Path { path: vec![Step::Field("a".into())], casting: Casting::utc(true) },
        field: Field::new("a", DataType::Int64, true),
    };
    let read = |rows: Option<&[std::ops::Range<u64>]>| {
        let file = file();
        let reader = DataFileReader::new(file.clone(), vec![projection()], rows, OnConflict::Error, None);
        let batches: Vec<RecordBatch> = reader.unwrap().collect::<Result<_, _>>().unwrap();
        let values =
            batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
        (values.collect::<Vec<_>>(), file.bytes_read())
    };
    let (all, bytes_of_all) = read(None);
    assert_eq!(all, (0..ROWS).collect::<Vec<_>>());
    let (some, bytes_of_some) = read(Some(&[61_000..61_010, 99_990..100_000]));
    assert_eq!(some, (61_000..61_010).chain(99_990..100_000).collect::<Vec<_>>());
    assert!(bytes_of_some < bytes_of_all, "{bytes_of_some} of {bytes_of_all}");
}

#[test]
fn no_byte_of_a_small_file_is_read_twice() {
    let file = file_of(100);
    row_group_units(&file, &[column("id"), path("a")]).unwrap();
    assert!(file.read(&file.scan(vec![0, 1], 1024)).all(|batch| batch.is_ok()));
    assert_eq!(file.bytes_read(), file.length());
}
