//! Deletion vectors written by Spark and by `roaring`, and malformed ones.

use std::ops::Range;
use std::sync::Arc;

use _native::data_file::read::{DataFileReader, Projection, What};
use _native::deletion_vector;
use _native::error::ErrorKind;
use _native::parquet::read::{ParquetFile, Source};
use _native::parquet::write::{FileWriter, WriteOptions};
use _native::shred::OnConflict;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use roaring::RoaringTreemap;

use crate::columns::Random;

/// Rows 7 and 9, written by delta-spark 4.4.0 (corpora/delta-spark/d_dv).
const SPARK_7_9: &[u8] = &[
    0xd1, 0xd3, 0x39, 0x64, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0,
    0x10, 0, 0, 0, 7, 0, 9, 0,
];

fn serialized(rows: &RoaringTreemap) -> Vec<u8> {
    let mut bytes = SPARK_7_9[..4].to_vec();
    rows.serialize_into(&mut bytes).unwrap();
    bytes
}

fn message(bytes: &[u8]) -> String {
    match deletion_vector::rows(bytes) {
        Err(error) if error.kind() == ErrorKind::DataFile => error.message().to_owned(),
        other => panic!("expected a DataFile error, got {other:?}"),
    }
}

#[test]
fn the_rows_that_spark_deleted_are_read() {
    assert_eq!(deletion_vector::rows(SPARK_7_9).unwrap().iter().collect::<Vec<_>>(), [7, 9]);
}

#[test]
fn rows_beyond_32_bits_and_runs_of_rows_are_read() {
    let mut rows: RoaringTreemap = (0..100_000).chain([1 << 33, (1 << 40) + 5]).collect();
    rows.optimize();
    assert_eq!(deletion_vector::rows(&serialized(&rows)).unwrap(), rows);
}

#[test]
fn an_empty_vector_deletes_no_rows() {
    assert!(deletion_vector::rows(&serialized(&RoaringTreemap::new())).unwrap().is_empty());
}

#[test]
fn a_wrong_magic_number_is_rejected() {
    let native = [&[0xd0, 0xd3, 0x39, 0x64], &SPARK_7_9[4..]].concat();
    assert!(message(&native).contains("magic number"), "{}", message(&native));
    assert!(message(&[]).contains("magic number"));
}

#[test]
fn bytes_after_the_last_bitmap_are_rejected() {
    let longer = [SPARK_7_9, &[0]].concat();
    assert!(message(&longer).contains("1 bytes follow"), "{}", message(&longer));
}

#[test]
fn a_vector_truncated_at_any_byte_is_rejected() {
    for length in 0..SPARK_7_9.len() {
        message(&SPARK_7_9[..length]);
    }
}

#[test]
fn a_bitmap_count_beyond_the_input_is_rejected() {
    let mut bytes = SPARK_7_9.to_vec();
    bytes[4..12].fill(0xFF);
    message(&bytes);
}

#[test]
fn changing_any_byte_gives_an_error_or_a_vector() {
    let mut rows: RoaringTreemap = (0..70_000).step_by(3).chain(200_000..300_000).collect();
    rows.optimize();
    let bytes = serialized(&rows);
    for at in (0..bytes.len()).step_by(7).chain(0..64) {
        for byte in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
            let mut broken = bytes.clone();
            broken[at] = byte;
            let _ = deletion_vector::rows(&broken);
        }
    }
}

#[test]
fn added_rows_are_written_as_spark_writes_them() {
    assert_eq!(deletion_vector::add_rows(None, [9, 7]).unwrap(), (SPARK_7_9.to_vec(), 2));
    assert_eq!(deletion_vector::add_rows(Some(SPARK_7_9), [7]).unwrap(), (SPARK_7_9.to_vec(), 2));
    let (bytes, count) = deletion_vector::add_rows(Some(SPARK_7_9), [8, 1 << 33]).unwrap();
    assert_eq!(count, 4);
    assert_eq!(deletion_vector::rows(&bytes).unwrap().iter().collect::<Vec<_>>(), [7, 8, 9, 1 << 33]);
    assert_eq!(deletion_vector::add_rows(Some(&[]), [1]).unwrap_err().kind(), ErrorKind::DataFile);
}

#[test]
fn the_rows_of_another_vector_are_subtracted() {
    let subtract =
        |one: Option<&[u8]>, other: Option<&[u8]>| deletion_vector::subtract_rows(one, other).unwrap();
    assert_eq!(subtract(Some(SPARK_7_9), None), [(7, 8), (9, 10)]);
    let only_9 = serialized(&[9].into());
    assert_eq!(subtract(Some(SPARK_7_9), Some(&only_9)), [(7, 8)]);
    assert_eq!(subtract(Some(&only_9), Some(SPARK_7_9)), []);
    assert_eq!(subtract(None, Some(SPARK_7_9)), []);
    let around = serialized(&((1 << 32) - 2..(1 << 32) + 3).collect());
    assert_eq!(subtract(Some(&around), None), [((1 << 32) - 2, (1 << 32) + 3)]);
}

#[test]
fn a_row_beyond_63_bits_is_rejected() {
    let rows: RoaringTreemap = [1, 1 << 63].into();
    assert_eq!(message(&serialized(&rows)), "malformed deletion vector: a number exceeds 63 bits");
}

/// A file of ids 0 to 199,999 in row groups of 80,000.
fn file() -> Arc<ParquetFile> {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let mut bytes = Vec::new();
    let options = WriteOptions { row_group_rows: 80_000, ..WriteOptions::default() };
    let mut writer = FileWriter::new(&mut bytes, schema.clone(), options).unwrap();
    let ids = Arc::new(Int64Array::from_iter_values(0..200_000));
    writer.write(&RecordBatch::try_new(schema, vec![ids]).unwrap()).unwrap();
    writer.close().unwrap();
    Arc::new(ParquetFile::open(Source::Bytes(bytes.into())).unwrap())
}

fn id() -> Projection {
    Projection {
        column: vec!["id".into()],
        what: What::Column,
        field: Field::new("id", DataType::Int64, true),
    }
}

/// The numbers of the rows, which are the ids too.
fn position() -> Projection {
    Projection {
        column: Vec::new(),
        what: What::Position,
        field: Field::new("position", DataType::Int64, true),
    }
}

fn read(
    projections: Vec<Projection>,
    rows: Option<&[Range<u64>]>,
    deleted: &RoaringTreemap,
) -> Vec<RecordBatch> {
    let deleted = Some(deleted.clone());
    let reader = DataFileReader::new(file(), projections, rows, OnConflict::Error, deleted).unwrap();
    reader.collect::<Result<_, _>>().unwrap()
}

fn ids(batches: &[RecordBatch]) -> Vec<u64> {
    let ids = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    ids.map(|id| id as u64).collect()
}

#[test]
fn deleted_rows_are_skipped_by_their_position_in_the_file() {
    let deleted: RoaringTreemap = [0, 65_535, 65_536, 79_999, 80_000, 150_000, 199_999, 1 << 40].into();
    let expected: Vec<u64> = (0..200_000).filter(|row| !deleted.contains(*row)).collect();
    assert_eq!(ids(&read(vec![id()], None, &deleted)), expected);
    let one = std::array::from_ref;
    let several = [0..1, 65_530..80_010, 199_000..200_000];
    for ranges in [one(&(80_000..160_000)), &several[..], one(&(7..9)), &[]] {
        let expected: Vec<u64> =
            ranges.iter().cloned().flatten().filter(|row| !deleted.contains(*row)).collect();
        assert_eq!(ids(&read(vec![id()], Some(ranges), &deleted)), expected, "{ranges:?}");
    }
}

#[test]
fn a_read_without_columns_counts_the_remaining_rows() {
    let deleted: RoaringTreemap = (10..70_010).collect();
    let batches = read(Vec::new(), None, &deleted);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 130_000);
}

#[test]
fn positions_are_those_of_the_remaining_rows() {
    let deleted: RoaringTreemap = [0, 65_536, 79_999, 80_000, 199_999].into();
    for rows in [None, Some(&[5..70_000, 79_990..80_010, 150_000..200_000][..])] {
        let batches = read(vec![position(), id()], rows, &deleted);
        assert!(batches.iter().all(|batch| batch.column(0) == batch.column(1)));
        assert_eq!(ids(&batches), ids(&read(vec![position()], rows, &deleted)));
        assert_eq!(ids(&batches), ids(&read(vec![id()], rows, &deleted)));
    }
}

#[test]
fn a_file_whose_rows_are_all_deleted_is_empty() {
    assert!(ids(&read(vec![id()], None, &(0..200_000).collect())).is_empty());
}

/// Runs of deleted rows of random lengths, some of them long enough to be skipped, and what is read without them.
#[test]
fn the_rows_that_random_vectors_leave_are_read() {
    for seed in 1..40 {
        let random = &mut Random(seed);
        let lengths = [1, 3, 900, 2_047, 2_048, 2_049, 30_000, 90_000];
        let mut runs = |most: usize| {
            let (mut runs, mut start) = (Vec::new(), random.below(3));
            while start < 200_000 {
                let end = (start + lengths[random.below(most)]).min(200_000);
                runs.push(start as u64..end as u64);
                let gap = lengths[random.below(most)];
                start = end + 1 + random.below(2 * gap);
            }
            runs
        };
        let most = 2 + seed as usize % 7;
        let deleted: RoaringTreemap = runs(most).into_iter().flatten().collect();
        let ranges = runs(8);
        for rows in [None, Some(ranges.as_slice())] {
            let all = || rows.unwrap_or(std::slice::from_ref(&(0..200_000))).iter().cloned().flatten();
            let expected: Vec<u64> = all().filter(|row| !deleted.contains(*row)).collect();
            let batches = read(vec![id(), position()], rows, &deleted);
            assert_eq!(ids(&batches), expected, "{seed}");
            assert!(batches.iter().all(|batch| batch.column(0) == batch.column(1)), "{seed}");
        }
    }
}
