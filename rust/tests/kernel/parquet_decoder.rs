//! Files of random columns are read like by the parquet crate's own reader.

use std::ops::Range;
use std::sync::Arc;

use _native::parquet::{FileWriter, ParquetFile, Source, WriteOptions};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray, UInt64Array};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::{take, take_record_batch};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;

use crate::columns::{Random, random_batch, random_type};

/// Columns of leaves and structs, and sometimes of lists, which the parquet crate decodes.
fn random_schema(random: &mut Random) -> SchemaRef {
    let fields = (0..1 + random.below(4)).map(|index| {
        let data_type = random_type(random, 2);
        Field::new(format!("c{index}"), data_type, !random.is_one_in(3))
    });
    Arc::new(Schema::new(fields.collect::<Fields>()))
}

/// Encodings that the type of a leaf may have.
fn encodings(data_type: &DataType) -> &'static [Encoding] {
    use Encoding::{
        BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, PLAIN, RLE,
    };
    match data_type {
        DataType::Boolean => &[PLAIN, RLE],
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => {
            &[PLAIN, DELTA_BINARY_PACKED]
        }
        DataType::Time64(_) | DataType::Timestamp(_, _) => &[PLAIN, DELTA_BINARY_PACKED],
        DataType::Float32 | DataType::Float64 => &[PLAIN, BYTE_STREAM_SPLIT],
        DataType::FixedSizeBinary(_) | DataType::Decimal128(_, _) => &[PLAIN],
        _ => &[PLAIN, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY],
    }
}

fn foreign(random: &mut Random, schema: &SchemaRef, batch: &RecordBatch) -> Bytes {
    let parquet_schema = _native::parquet::to_parquet(schema, true).unwrap();
    let mut properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(400))
        .set_data_page_row_count_limit(1 + random.below(200))
        .set_write_batch_size(1 + random.below(64))
        .set_dictionary_page_size_limit(if random.is_one_in(2) { 64 } else { 1 << 20 })
        .set_dictionary_enabled(!random.is_one_in(3))
        .set_compression(match random.below(3) {
            0 => Compression::UNCOMPRESSED,
            1 => Compression::SNAPPY,
            _ => Compression::ZSTD(ZstdLevel::default()),
        });
    if random.is_one_in(2) {
        properties = properties.set_writer_version(WriterVersion::PARQUET_2_0);
    }
    let mut types = Vec::new();
    batch.columns().iter().for_each(|column| leaf_types(column.data_type(), &mut types));
    for (column, data_type) in parquet_schema.columns().iter().zip(types) {
        let choices = encodings(&data_type);
        let encoding = choices[random.below(choices.len())];
        properties = properties.set_column_encoding(column.path().clone(), encoding);
    }
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(parquet_schema.as_ref().clone());
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, schema.clone(), options).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn own(schema: &SchemaRef, batch: &RecordBatch, row_group_rows: usize) -> Bytes {
    let mut bytes = Vec::new();
    let options = WriteOptions { row_group_rows, ..WriteOptions::default() };
    let mut writer = FileWriter::new(&mut bytes, schema.clone(), options).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn leaf_types(data_type: &DataType, types: &mut Vec<DataType>) {
    match data_type {
        DataType::Struct(fields) => fields.iter().for_each(|field| leaf_types(field.data_type(), types)),
        DataType::List(element) | DataType::LargeList(element) | DataType::Map(element, _) => {
            leaf_types(element.data_type(), types);
        }
        DataType::Dictionary(_, value) => leaf_types(value, types),
        other => types.push(other.clone()),
    }
}

/// The same batch with the values of dictionaries, and without the metadata of fields.
fn plain(batch: &RecordBatch) -> RecordBatch {
    let columns: Vec<ArrayRef> = batch.columns().iter().map(plain_array).collect();
    let fields = batch.schema_ref().fields().iter().zip(&columns);
    let fields: Fields =
        fields.map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).unwrap()
}

fn plain_array(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            take(dictionary.values(), dictionary.keys(), None).unwrap()
        }
        DataType::Struct(fields) => {
            let group = array.as_struct();
            let columns: Vec<ArrayRef> = group.columns().iter().map(plain_array).collect();
            let typed = fields
                .iter()
                .zip(&columns)
                .map(|(field, column)| field.as_ref().clone().with_data_type(column.data_type().clone()));
            let nulls = group.nulls().cloned();
            Arc::new(StructArray::try_new(typed.collect(), columns, nulls).unwrap())
        }
        _ => array.clone(),
    }
}

/// Some leaves of a file; the parquet crate does not read a part of a map.
fn random_leaves(random: &mut Random, schema: &Schema) -> Vec<usize> {
    let (mut chosen, mut next) = (Vec::new(), 0);
    for field in schema.fields() {
        let mut types = Vec::new();
        leaf_types(field.data_type(), &mut types);
        let leaves = next..next + types.len();
        let is_whole = has_map(field.data_type());
        chosen.extend(leaves.clone().filter(|_| is_whole || !random.is_one_in(3)));
        next = leaves.end;
    }
    if chosen.is_empty() { (0..next).collect() } else { chosen }
}

fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(_, _) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_map(field.data_type())),
        DataType::List(element) | DataType::LargeList(element) => has_map(element.data_type()),
        _ => false,
    }
}

/// Compare all rows, and some of them, with those of the parquet crate's reader.
fn check(bytes: &Bytes, random: &mut Random) {
    let file = ParquetFile::open(Source::Bytes(bytes.clone())).unwrap();
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let leaves = random_leaves(random, file.arrow_schema());
    let mut scan = file.scan(leaves.clone(), 1 + random.below(300));
    if random.is_one_in(2) {
        scan.dictionaries = leaves.clone();
    }
    for row_group in 0..file.row_groups().len() {
        // Rows that are deleted, alone or together.
        let odds = [2, 20, 500][random.below(3)];
        let reader =
            ParquetRecordBatchReaderBuilder::try_new_with_options(bytes.clone(), options.clone()).unwrap();
        let mask = parquet::arrow::ProjectionMask::leaves(reader.parquet_schema(), leaves.iter().copied());
        let reader = reader.with_row_groups(vec![row_group]).with_projection(mask).with_batch_size(1000);
        let expected: Vec<_> = reader.build().unwrap().map(|batch| plain(&batch.unwrap())).collect();
        let expected = concat_batches(&expected[0].schema(), &expected).unwrap();
        let rows = random_rows(random, expected.num_rows());
        let all = std::iter::once(0..expected.num_rows() as u64).collect::<Vec<_>>();
        let live = [live_rows(random, &all, odds), live_rows(random, &rows, odds)];
        let cases =
            [(None, None), (Some(rows.clone()), None), (None, Some(&live[0])), (Some(rows), Some(&live[1]))];
        for (rows, live) in cases {
            let live = live.map(Vec::as_slice);
            let read: Result<Vec<_>, _> =
                file.read_rows(&scan, row_group, rows.as_deref(), live).unwrap().collect();
            let read: Vec<_> = match read {
                Ok(batches) => batches.iter().map(plain).collect(),
                // The parquet crate, which reads lists, rejects large equal deltas in rows that it skips.
                Err(error) if error.to_string().contains("delta*n overflow in skip") => continue,
                Err(error) => panic!("{error}"),
            };
            assert!(read.iter().all(|batch| batch.num_rows() <= scan.batch_size));
            let wanted = live.or(rows.as_deref()).unwrap_or(&all).iter().cloned().flatten();
            let parts = take_record_batch(&expected, &UInt64Array::from_iter_values(wanted)).unwrap();
            if read.is_empty() {
                assert_eq!(parts.num_rows(), 0);
                continue;
            }
            let read = concat_batches(&read[0].schema(), &read).unwrap();
            assert_eq!(read.schema(), parts.schema());
            for (read, expected) in read.columns().iter().zip(parts.columns()) {
                assert_eq!(read.logical_null_count(), expected.logical_null_count());
                assert_eq!(read, expected);
            }
        }
    }
}

/// Those of `rows` that are not deleted, of which there are more the higher the `odds` are.
fn live_rows(random: &mut Random, rows: &[Range<u64>], odds: usize) -> Vec<Range<u64>> {
    let mut live: Vec<Range<u64>> = Vec::new();
    let mut is_live = !random.is_one_in(odds);
    for range in rows {
        for row in range.clone() {
            is_live = if random.is_one_in(3) { !random.is_one_in(odds) } else { is_live };
            match live.last_mut() {
                Some(last) if is_live && last.end == row => last.end += 1,
                _ if is_live => live.push(row..row + 1),
                _ => {}
            }
        }
    }
    live
}

/// Ranges of `0..count`, in order and apart from each other.
fn random_rows(random: &mut Random, count: usize) -> Vec<Range<u64>> {
    let (mut rows, mut start) = (Vec::new(), random.below(1 + count));
    while start < count {
        let end = count.min(start + 1 + random.below(90));
        rows.push(start as u64..end as u64);
        start = end + 1 + random.below(160);
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn files_of_the_parquet_crate_are_read_alike(seed in 1..u64::MAX, rows in 1..900_usize) {
        let random = &mut Random(seed);
        let schema = random_schema(random);
        let batch = random_batch(random, &schema, rows);
        check(&foreign(random, &schema, &batch), random);
    }

    #[test]
    fn files_of_this_crate_are_read_alike(seed in 1..u64::MAX, rows in 1..900_usize) {
        let random = &mut Random(seed);
        let schema = random_schema(random);
        let batch = random_batch(random, &schema, rows);
        check(&own(&schema, &batch, 400), random);
    }

    #[test]
    fn damaged_files_are_read_or_rejected(seed in 1..u64::MAX, rows in 1..300_usize) {
        let random = &mut Random(seed);
        let schema = random_schema(random);
        let batch = random_batch(random, &schema, rows);
        let mut bytes = foreign(random, &schema, &batch).to_vec();
        // The bytes of the pages, which come first.
        let end = bytes.len() / 2;
        for _ in 0..1 + random.below(4) {
            let position = 4 + random.below(end);
            bytes[position] = random.next() as u8;
        }
        if let Ok(file) = ParquetFile::open(Source::Bytes(bytes.into())) {
            let count = file.metadata().file_metadata().schema_descr().num_columns();
            let mut scan = file.scan((0..count).collect(), 100);
            scan.dictionaries = scan.leaves.clone();
            let rows: usize = file.read(&scan).map_while(Result::ok).map(|batch| batch.num_rows()).sum();
            prop_assert!(rows as u64 <= file.num_rows());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Row groups of more rows than are sifted at a time.
    #[test]
    fn large_row_groups_are_read_alike(seed in 1..u64::MAX, rows in 2_000..9_000_usize) {
        let random = &mut Random(seed);
        let schema = random_schema(random);
        let batch = random_batch(random, &schema, rows);
        check(&own(&schema, &batch, 5_000), random);
    }
}
