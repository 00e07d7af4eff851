//! Files of random columns have the same contents and statistics as those of the parquet crate's own writer.

use std::slice::from_ref;
use std::sync::Arc;

use _native::parquet::page_index::PageIndex;
use _native::parquet::{FileWriter, PageVersion, ParquetFile, Source, WriteOptions, to_parquet};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{BoundaryOrder, Compression, GzipLevel, PageType, Type as PhysicalType, ZstdLevel};
use parquet::column::page::Page;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use proptest::prelude::*;

use crate::columns::{Random, leaf_types, random_batch, random_type};

fn write(schema: &SchemaRef, batches: &[RecordBatch], options: WriteOptions) -> Bytes {
    let mut bytes = Vec::new();
    let mut writer = FileWriter::new(&mut bytes, schema.clone(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    bytes.into()
}

/// The file of the parquet crate's writer.
fn oracle(schema: &SchemaRef, batches: &[RecordBatch], row_group_rows: usize) -> Bytes {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(row_group_rows))
        .set_statistics_truncate_length(Some(64))
        .build();
    let parquet_schema = to_parquet(schema, true).unwrap();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(parquet_schema.as_ref().clone());
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, schema.clone(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    bytes.into()
}

fn read(bytes: &Bytes) -> RecordBatch {
    try_read(bytes).unwrap()
}

fn try_read(bytes: &Bytes) -> Result<RecordBatch, ArrowError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?;
    let schema = reader.schema().clone();
    let batches = reader.with_batch_size(700).build()?.collect::<Result<Vec<_>, _>>()?;
    concat_batches(&schema, &batches)
}

fn open(bytes: &Bytes) -> ParquetFile {
    ParquetFile::open(Source::Bytes(bytes.clone())).unwrap()
}

fn leaf_arrays(array: &ArrayRef, leaves: &mut Vec<ArrayRef>) {
    match array.data_type() {
        DataType::Struct(_) => {
            array.as_struct().columns().iter().for_each(|child| leaf_arrays(child, leaves))
        }
        DataType::List(_) => leaf_arrays(array.as_list::<i32>().values(), leaves),
        DataType::LargeList(_) => leaf_arrays(array.as_list::<i64>().values(), leaves),
        DataType::Map(_, _) => {
            array.as_map().entries().columns().iter().for_each(|child| leaf_arrays(child, leaves));
        }
        _ => leaves.push(array.clone()),
    }
}

/// Whether each leaf of a file that was read has a NaN.
fn leaves_with_nan(batch: &RecordBatch) -> Vec<bool> {
    let mut leaves = Vec::new();
    batch.columns().iter().for_each(|column| leaf_arrays(column, &mut leaves));
    let has_nan = |leaf: &ArrayRef| match leaf.data_type() {
        DataType::Float32 => leaf.as_primitive::<Float32Type>().iter().flatten().any(f32::is_nan),
        DataType::Float64 => leaf.as_primitive::<Float64Type>().iter().flatten().any(f64::is_nan),
        _ => false,
    };
    leaves.iter().map(has_nan).collect()
}

type Bounds = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Bounds to compare. Both writers raise a truncated upper bound, the crate's with zeros after the byte it increments.
fn bounds(chunk: &ColumnChunkMetaData) -> Bounds {
    let statistics = chunk.statistics().unwrap();
    let min = statistics.min_bytes_opt().map(<[u8]>::to_vec);
    let mut max = statistics.max_bytes_opt().map(<[u8]>::to_vec);
    if let (false, Some(max)) = (statistics.max_is_exact(), &mut max) {
        trim(max);
    }
    (min, max)
}

fn trim(bytes: &mut Vec<u8>) {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
}

fn compare_chunks(ours: &Bytes, theirs: &Bytes, has_nan: &[bool]) {
    let (ours, theirs) = (open(ours), open(theirs));
    assert_eq!(ours.row_groups().len(), theirs.row_groups().len());
    let is_single = ours.row_groups().len() == 1;
    for (ours, theirs) in ours.row_groups().iter().zip(theirs.row_groups()) {
        assert_eq!(ours.num_rows(), theirs.num_rows());
        for ((ours, theirs), &has_nan) in ours.columns().iter().zip(theirs.columns()).zip(has_nan) {
            let path = ours.column_path();
            assert_eq!(ours.num_values(), theirs.num_values(), "{path}");
            let nulls = |chunk: &ColumnChunkMetaData| chunk.statistics().and_then(Statistics::null_count_opt);
            assert_eq!(nulls(ours), nulls(theirs), "{path}");
            let (our_bounds, their_bounds) = (bounds(ours), bounds(theirs));
            if !(has_nan && our_bounds == (None, None)) {
                assert_eq!(our_bounds, their_bounds, "{path}");
                let exact = |chunk: &ColumnChunkMetaData| {
                    chunk.statistics().map(|all| (all.min_is_exact(), all.max_is_exact()))
                };
                assert_eq!(exact(ours), exact(theirs), "{path}");
            }
            if ours.column_type() == PhysicalType::BYTE_ARRAY {
                let variable =
                    |chunk: &ColumnChunkMetaData| chunk.unencoded_byte_array_data_bytes().unwrap_or(0);
                assert_eq!(variable(ours), variable(theirs), "{path}");
            }
            assert!(is_single || ours.offset_index_offset().is_some(), "{path}");
        }
    }
}

fn codec(random: &mut Random) -> Compression {
    match random.below(8) {
        0 => Compression::UNCOMPRESSED,
        1 => Compression::SNAPPY,
        2 => Compression::GZIP(GzipLevel::default()),
        3 => Compression::LZ4_RAW,
        _ => Compression::ZSTD(ZstdLevel::default()),
    }
}

fn check_random(seed: u64) {
    let mut random = Random(seed | 1);
    (0..8).for_each(|_| {
        random.next();
    });
    let fields = (0..=random.below(4)).map(|index| {
        let data_type = random_type(&mut random, 3);
        Field::new(format!("c{index}"), data_type, !random.is_one_in(3))
    });
    let schema = Arc::new(Schema::new(fields.collect::<Fields>()));
    let batches: Vec<RecordBatch> = (0..=random.below(4))
        .map(|_| {
            let rows = [0, 1, 9, 100, 1000][random.below(5)];
            random_batch(&mut random, &schema, rows)
        })
        .collect();
    let row_group_rows = [7, 64, 500, 1 << 18][random.below(4)];
    let compression = codec(&mut random);
    let page_version = if random.is_one_in(2) { PageVersion::V2 } else { PageVersion::V1 };
    let options = WriteOptions { row_group_rows, compression, page_version, ..WriteOptions::default() };
    let ours = write(&schema, &batches, options);
    let theirs = oracle(&schema, &batches, row_group_rows);
    let (read_ours, read_theirs) = (try_read(&ours), try_read(&theirs));
    match (read_ours, read_theirs) {
        (Ok(read_ours), Ok(read_theirs)) => {
            assert_eq!(read_ours, read_theirs, "seed {seed}");
            compare_chunks(&ours, &theirs, &leaves_with_nan(&read_theirs));
        }
        // The reader rejects some required structs within nulls, also in files of the reference writer.
        (Err(ours), Err(theirs)) => assert_eq!(ours.to_string(), theirs.to_string()),
        (ours, theirs) => panic!("{ours:?} {theirs:?} {schema:#?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn random_columns_are_those_of_the_reference_writer(seed in any::<u64>()) {
        check_random(seed);
    }
}

/// The types of the pages of each column chunk, with the number of rows that pages of version 2 state.
fn pages(bytes: &Bytes) -> Vec<Vec<(PageType, Option<u32>)>> {
    let reader = SerializedFileReader::new(bytes.clone()).unwrap();
    let groups = (0..reader.num_row_groups()).map(|group| reader.get_row_group(group).unwrap());
    groups
        .flat_map(|group| {
            (0..group.num_columns())
                .map(|column| {
                    let pages = group.get_column_page_reader(column).unwrap();
                    pages.map(|page| page.unwrap()).map(|page| (page.page_type(), rows_of(&page))).collect()
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn rows_of(page: &Page) -> Option<u32> {
    match page {
        Page::DataPageV2 { num_rows, .. } => Some(*num_rows),
        _ => None,
    }
}

#[test]
fn data_pages_have_the_version_of_the_options() {
    let list = DataType::List(Arc::new(Field::new("element", DataType::Int64, true)));
    let fields = [("n", DataType::Int64), ("s", DataType::Utf8), ("l", list), ("none", DataType::Utf8)];
    let schema = Arc::new(Schema::new(fields.map(|(name, kind)| Field::new(name, kind, true)).to_vec()));
    let mut random = Random(7);
    let batch = random_batch(&mut random, &schema, 25_000);
    let columns = batch.columns()[..3].iter().cloned().chain([new_null_array(&DataType::Utf8, 25_000)]);
    let batch = RecordBatch::try_new(schema.clone(), columns.collect()).unwrap();
    for compression in [Compression::UNCOMPRESSED, Compression::ZSTD(ZstdLevel::default())] {
        let file = |page_version| {
            let options = WriteOptions { compression, page_version, ..WriteOptions::default() };
            write(&schema, from_ref(&batch), options)
        };
        let (one, two) = (file(PageVersion::V1), file(PageVersion::V2));
        assert_eq!(read(&one), read(&two));
        for (pages, expected) in [(pages(&one), PageType::DATA_PAGE), (pages(&two), PageType::DATA_PAGE_V2)] {
            let data: Vec<_> = pages.into_iter().flatten().collect();
            assert!(data.iter().all(|(kind, _)| *kind == expected || *kind == PageType::DICTIONARY_PAGE));
            assert!(data.len() > 6);
            let rows: u32 = data.iter().filter_map(|(_, rows)| *rows).sum();
            assert_eq!(rows, if expected == PageType::DATA_PAGE { 0 } else { 4 * 25_000 });
        }
        let version = |bytes: &Bytes| {
            let chunk = open(bytes).row_groups()[0].column(1).clone();
            chunk.page_encoding_stats().map(|stats| stats.last().unwrap().page_type)
        };
        assert!(version(&two).is_none_or(|kind| kind == PageType::DATA_PAGE_V2));
    }
}

fn column_is_null(batch: &RecordBatch, column: usize) -> bool {
    batch.column(column).logical_null_count() == batch.num_rows()
}

/// The bounds of each page are those of a file that holds only the rows of the page.
#[test]
fn the_page_index_describes_each_page_of_every_type() {
    let mut random = Random(7);
    for round in 0..3 {
        let fields = leaf_types().into_iter().enumerate();
        let fields = fields.map(|(index, leaf)| Field::new(format!("c{index}"), leaf, round > 0));
        let schema = Arc::new(Schema::new(fields.collect::<Fields>()));
        let rows = [9_000, 11_000, 500, 40_000, 4_000];
        let batches: Vec<_> = rows.iter().map(|&rows| random_batch(&mut random, &schema, rows)).collect();
        let ours = write(&schema, &batches, WriteOptions::default());
        let all = concat_batches(&schema, &batches).unwrap();
        let theirs = oracle(&schema, &batches, 1 << 18);
        assert_eq!(read(&ours), read(&theirs));
        let file = open(&ours);
        let leaves: Vec<usize> = (0..schema.fields().len()).collect();
        let indexes = file.page_indexes(&[0], &leaves, true).unwrap().remove(0);
        for (leaf, index) in indexes.into_iter().enumerate() {
            let index = index.unwrap_or_else(|| panic!("column {leaf} has no offset index"));
            if column_is_null(&all, leaf) {
                assert_eq!((index.locations.len(), index.statistics.len()), (1, 0));
                continue;
            }
            assert!(index.locations.len() > 1);
            let column = all.project(&[leaf]).unwrap();
            let pages = index.rows(all.num_rows() as u64).map(|rows| {
                let rows = column.slice(rows.start as usize, (rows.end - rows.start) as usize);
                oracle(&column.schema(), &[rows], 1 << 18)
            });
            let pages: Vec<Bytes> = pages.collect();
            let has_nan = pages.iter().any(|page| leaves_with_nan(&read(page))[0]);
            assert_eq!(index.statistics.is_empty(), has_nan, "column {leaf}");
            for (stated, page) in index.statistics.iter().zip(&pages) {
                let page = open(page);
                let chunk = page.row_groups()[0].column(0);
                let statistics = chunk.statistics().unwrap();
                assert_eq!(stated.null_count, statistics.null_count_opt(), "column {leaf}");
                assert_eq!(stated.all_null, statistics.null_count_opt() == Some(chunk.num_values() as u64));
                let (min, max) = bounds(chunk);
                assert_eq!(&stated.min[..], min.unwrap_or_default(), "column {leaf}");
                let mut stated_max = stated.max.to_vec();
                if !statistics.max_is_exact() {
                    trim(&mut stated_max);
                }
                assert_eq!(stated_max, max.unwrap_or_default(), "column {leaf}");
            }
        }
    }
}

/// A bound is cut before a character that does not fit, and may then be less than a smaller one.
#[test]
fn the_order_of_pages_is_that_of_the_bounds_that_are_stated() {
    let order_of = |last: &str| {
        let texts = [format!("{}b", "a".repeat(63)), format!("{}{last}", "a".repeat(63))];
        let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, true)]));
        let batches = texts.map(|text| {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![text; 20_000]));
            RecordBatch::try_new(schema.clone(), vec![texts]).unwrap()
        });
        let file = open(&write(&schema, &batches, WriteOptions::default()));
        let index = file.page_indexes(&[0], &[0], true).unwrap().remove(0).remove(0).unwrap();
        (index.boundary_order, index.statistics.last().unwrap().min.to_vec())
    };
    assert_eq!(order_of("cc"), (BoundaryOrder::ASCENDING, [&[b'a'; 63][..], b"c"].concat()));
    assert_eq!(order_of("\u{e9}"), (BoundaryOrder::UNORDERED, vec![b'a'; 63]));
}

#[test]
fn a_small_file_has_no_page_index() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..16_383));
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![numbers]).unwrap();
    let has_index = |batches: &[RecordBatch], row_group_rows: usize| {
        let options = WriteOptions { row_group_rows, ..WriteOptions::default() };
        let file = open(&write(&schema, batches, options));
        let chunk = file.row_groups()[0].column(0).clone();
        (chunk.offset_index_offset().is_some(), chunk.column_index_offset().is_some())
    };
    assert_eq!(has_index(from_ref(&batch), 1 << 18), (false, false));
    // Two row groups of a page each: the statistics of the row groups are those of the pages.
    assert_eq!(has_index(from_ref(&batch), 5_000), (true, false));
    assert_eq!(has_index(&vec![batch; 3], 1 << 18), (true, true));
}

#[test]
fn only_the_leaf_with_large_values_has_small_pages() {
    let nulls: NullBuffer = (0..100).map(|row| row % 7 != 3).collect();
    let text = |row: usize| (row % 5 != 1).then(|| format!("{row:050000}"));
    let texts: ArrayRef = Arc::new((0..100).map(text).collect::<StringArray>());
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let fields = Fields::from(vec![
        Field::new("text", DataType::Utf8, true),
        Field::new("number", DataType::Int64, true),
    ]);
    let group = StructArray::new(fields, vec![texts, numbers], Some(nulls));
    let schema = Arc::new(Schema::new(vec![Field::new("group", group.data_type().clone(), true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(group)]).unwrap();
    let options = WriteOptions { page_version: PageVersion::V2, ..WriteOptions::default() };
    let bytes = write(&schema, from_ref(&batch), options);
    assert_eq!(read(&bytes), read(&oracle(&schema, from_ref(&batch), 1 << 18)));
    let rows = |leaf: usize| pages(&bytes)[leaf].iter().filter_map(|(_, rows)| *rows).collect::<Vec<u32>>();
    assert_eq!(rows(0), [50, 50]);
    assert_eq!(rows(1), [100]);
}

/// What the footer and the page index state about each column chunk, without its place.
fn statements(bytes: &Bytes) -> Vec<Vec<String>> {
    let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    let reader = ParquetMetaDataReader::new().with_metadata_options(Some(options));
    let footer = reader.parse_and_finish(bytes).unwrap();
    let file = open(bytes);
    let leaves: Vec<usize> = (0..footer.file_metadata().schema_descr().num_columns()).collect();
    let groups: Vec<usize> = (0..footer.num_row_groups()).collect();
    let indexes = file.page_indexes(&groups, &leaves, true).unwrap();
    let describe = |(group, indexes): (&RowGroupMetaData, Vec<Option<PageIndex>>)| {
        let chunks = group.columns().iter().zip(indexes).map(|(chunk, index)| {
            let index = index.unwrap();
            let start = chunk.byte_range().0 as i64;
            let pages: Vec<_> = index.locations.iter().map(|page| page.offset - start).collect();
            let rows: Vec<_> = index.rows(group.num_rows() as u64).collect();
            let chunk = chunk.clone().into_builder();
            let chunk = chunk.set_data_page_offset(0).set_dictionary_page_offset(None);
            let chunk = chunk.set_offset_index_offset(None).set_column_index_offset(None);
            // Other offsets take another number of bytes.
            let chunk = chunk.set_offset_index_length(None).build().unwrap();
            format!("{chunk:?} {pages:?} {rows:?} {:?} {:?}", index.statistics, index.boundary_order)
        });
        chunks.collect()
    };
    footer.row_groups().iter().zip(indexes).map(describe).collect()
}

#[test]
fn a_copied_row_group_has_the_same_rows_and_statements() {
    let mut random = Random(11);
    let fields = leaf_types().into_iter().enumerate();
    let mut fields: Vec<_> = fields.map(|(i, leaf)| Field::new(format!("c{i}"), leaf, i % 3 > 0)).collect();
    fields.push(Field::new("ascending", DataType::Int64, false));
    fields.push(Field::new("nested", random_type(&mut random, 3), true));
    let schema = Arc::new(Schema::new(fields));
    let options = WriteOptions { row_group_rows: 25_000, ..WriteOptions::default() };
    let numbered = |batch: RecordBatch, first: i64| {
        let mut columns = batch.columns().to_vec();
        let position = columns.len() - 2;
        columns[position] = Arc::new(Int64Array::from_iter_values(first..first + batch.num_rows() as i64));
        RecordBatch::try_new(batch.schema(), columns).unwrap()
    };
    let rows = numbered(random_batch(&mut random, &schema, 60_000), 0);
    let between = numbered(random_batch(&mut random, &schema, 1_000), 7);
    let stored = write(&schema, from_ref(&rows), options.clone());
    let file = open(&stored);
    let mut bytes = Vec::new();
    let mut writer = FileWriter::new(&mut bytes, schema.clone(), options.clone()).unwrap();
    assert!(writer.copy(&file, 2, &[]).unwrap());
    writer.write(&between).unwrap();
    assert!(writer.copy(&file, 0, &[]).unwrap());
    assert!(!writer.copy(&file, 3, &[]).unwrap());
    assert_eq!(writer.close().unwrap().rows, 36_000);
    let copied = Bytes::from(bytes);
    let all = read(&stored);
    let expected =
        [all.slice(50_000, 10_000), read(&write(&schema, &[between], options)), all.slice(0, 25_000)];
    assert_eq!(read(&copied), concat_batches(&all.schema(), &expected).unwrap());
    let (before, after) = (statements(&stored), statements(&copied));
    assert_eq!(after.len(), 3);
    assert_eq!((&after[0], &after[2]), (&before[2], &before[0]));
    assert!(after[2][schema.fields().len() - 2].contains("ASCENDING"));
}

#[test]
fn a_copied_row_group_takes_new_values_of_some_columns() {
    let fields = [("a", DataType::Int64), ("b", DataType::Utf8), ("c", DataType::Int64)]
        .map(|(name, data_type)| Field::new(name, data_type, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let numbers = |first: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(first..first + 40_000)) };
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..40_000).map(|row| format!("text {row}"))));
    let batch = |a, c| RecordBatch::try_new(schema.clone(), vec![a, texts.clone(), c]).unwrap();
    let options = WriteOptions { row_group_rows: 25_000, ..WriteOptions::default() };
    let stored = write(&schema, &[batch(numbers(0), numbers(7))], options.clone());
    let new = RecordBatch::try_new(
        Arc::new(schema.project(&[0, 2]).unwrap()),
        vec![numbers(-90), Arc::new(Int64Array::from(vec![None; 40_000]))],
    )
    .unwrap();
    let copy = |given: &[(usize, usize)]| {
        let mut bytes = Vec::new();
        let mut writer = FileWriter::new(&mut bytes, schema.clone(), options.clone()).unwrap();
        assert!(writer.copy(&open(&stored), 1, &[0, 2]).unwrap());
        let mut parts = given.iter().map(|&(start, length)| new.slice(start, length));
        parts.try_for_each(|part| writer.replace(&part, &[0, 2]))?;
        writer.close().map(|summary| {
            assert_eq!(summary.rows, 15_000);
            Bytes::from(bytes)
        })
    };
    let copied = copy(&[(0, 1), (1, 14_999)]).unwrap();
    let expected = RecordBatch::try_new(
        schema.clone(),
        vec![new.column(0).slice(0, 15_000), texts.slice(25_000, 15_000), new.column(1).slice(0, 15_000)],
    );
    assert_eq!(read(&copied), expected.unwrap());
    // Pages, bounds and offsets relative to the row group, of the column that is copied.
    let (before, after) = (statements(&stored), statements(&copied));
    assert_eq!(before[1][1], after[0][1]);
    assert_ne!(before[1][0], after[0][0]);
    assert!(copy(&[(0, 14_999)]).is_err());
    assert!(copy(&[(0, 15_001)]).is_err());
    assert!(copy(&[(0, 15_000), (0, 1)]).is_err());
}

#[test]
fn a_row_group_is_copied_only_from_a_file_with_the_same_columns() {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    let other = Arc::new(Schema::new(vec![Field::new("m", DataType::Int64, true)]));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let batch = |schema: &SchemaRef| RecordBatch::try_new(schema.clone(), vec![numbers.clone()]).unwrap();
    let options = WriteOptions { row_group_rows: 50, ..WriteOptions::default() };
    let snappy = WriteOptions { compression: Compression::SNAPPY, ..options.clone() };
    let one_group = WriteOptions::default();
    let is_copied = |file: Bytes| {
        let mut writer = FileWriter::new(Vec::new(), schema.clone(), options.clone()).unwrap();
        let is_copied = writer.copy(&open(&file), 0, &[]).unwrap();
        let rows = open(&file).row_groups()[0].num_rows() as u64;
        assert_eq!(writer.close().unwrap().rows, if is_copied { rows } else { 0 });
        is_copied
    };
    assert!(is_copied(write(&schema, &[batch(&schema)], options.clone())));
    assert!(is_copied(write(&schema, &[batch(&schema)], snappy)));
    assert!(is_copied(oracle(&schema, &[batch(&schema)], 50)));
    assert!(!is_copied(write(&other, &[batch(&other)], options.clone())));
    // Its pages have no index.
    assert!(is_copied(write(&schema, &[batch(&schema)], one_group)));
}
