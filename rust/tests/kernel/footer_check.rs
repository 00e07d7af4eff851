//! Statistics and Bloom filters that hold, and others that disagree with the values (parquet.thrift: `Statistics`,
//! `ColumnOrder`, `ColumnIndex` and `BloomFilterHeader`).

use std::io::Write;
use std::sync::Arc;

use _native::error::ErrorKind;
use _native::parquet::footer_check::{FooterViolation, check_footer};
use _native::parquet::{ParquetFile, Source};
use bytes::Bytes;
use parquet::data_type::*;
use parquet::file::metadata::{
    ColumnChunkMetaDataBuilder, ColumnIndexBuilder, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
    ParquetMetaDataWriter,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;

/// Pages of two rows, with statistics, and Bloom filters.
fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_data_page_row_count_limit(2)
        .set_write_batch_size(2)
        .set_bloom_filter_enabled(true)
        .set_bloom_filter_max_ndv(100)
}

/// The values and the definition levels of a row group.
type Rows<'a, T> = (&'a [T], Option<&'a [i16]>);

/// A file of one column, `leaf`, and a row group for each of `groups`.
fn write<T: DataType>(leaf: &str, groups: &[Rows<'_, T::T>], properties: WriterPropertiesBuilder) -> Bytes {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {leaf}; }}")).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build())).unwrap();
    for (values, definitions) in groups {
        let mut rows = writer.next_row_group().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, *definitions, None).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
    }
    writer.close().unwrap();
    bytes.into()
}

fn metadata(bytes: &Bytes) -> ParquetMetaData {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
    reader.parse_and_finish(bytes).unwrap()
}

fn check(bytes: Bytes) -> Vec<FooterViolation> {
    check_footer(&ParquetFile::open(Source::Bytes(bytes)).unwrap()).unwrap()
}

/// A page of a column index: whether all values are null, the bounds, and the number of nulls.
type Page = (bool, Vec<u8>, Vec<u8>, i64);

/// The file with another footer: the last column chunk is changed, and the pages of its column index replaced.
fn restate(
    bytes: &Bytes,
    change: impl FnOnce(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder,
    pages: Option<Vec<Page>>,
) -> Bytes {
    let known = metadata(bytes);
    let first = known.row_group(0).column(0);
    let end = first.column_index_offset().or(first.offset_index_offset()).unwrap() as usize;
    let mut builder = known.into_builder();
    let mut groups = builder.take_row_groups();
    let mut group = groups.pop().unwrap().into_builder();
    let chunk = group.take_columns().remove(0);
    let physical = chunk.column_type();
    let chunk = change(chunk.into_builder()).build().unwrap();
    groups.push(group.set_column_metadata(vec![chunk]).build().unwrap());
    let mut indexes = builder.take_column_index().unwrap();
    if let Some(pages) = pages {
        let mut index = ColumnIndexBuilder::new(physical);
        pages.into_iter().for_each(|(is_null, min, max, nulls)| index.append(is_null, min, max, nulls));
        *indexes.last_mut().unwrap() = vec![index.build().unwrap()];
    }
    let changed = builder.set_row_groups(groups).set_column_index(Some(indexes)).build();
    let mut file = Vec::new();
    let mut out = TrackedWrite::new(&mut file);
    out.write_all(&bytes[..end]).unwrap();
    ParquetMetaDataWriter::new_with_tracked(out, &changed).finish().unwrap();
    file.into()
}

/// The same file with other statistics of its last column chunk.
fn state<T: DataType>(bytes: &Bytes, min: &T::T, max: &T::T, nulls: Option<u64>) -> Vec<FooterViolation> {
    let statistics = Statistics::new(Some(min.clone()), Some(max.clone()), None, nulls, false);
    check(restate(bytes, |chunk| chunk.set_statistics(statistics), None))
}

fn violation(page: Option<usize>, what: &'static str, stated: &str, found: &str) -> FooterViolation {
    FooterViolation {
        path: vec!["c".into()],
        row_group: 0,
        page,
        what,
        stated: stated.into(),
        found: found.into(),
    }
}

/// Bounds that leave out the least or the greatest of three ascending values are reported, with the texts of these.
fn assert_bounds<T: DataType>(leaf: &str, [least, middle, greatest]: [T::T; 3], texts: [&str; 3]) {
    let values = [middle.clone(), greatest.clone(), least.clone(), middle.clone()];
    let bytes = write::<T>(&format!("required {leaf}"), &[(&values, None)], properties());
    assert_eq!(check(bytes.clone()), [], "{leaf}");
    assert_eq!(state::<T>(&bytes, &least, &greatest, Some(0)), [], "{leaf}");
    let min = violation(None, "min", texts[1], texts[0]);
    assert_eq!(state::<T>(&bytes, &middle, &greatest, Some(0)), [min], "{leaf}");
    let max = violation(None, "max", texts[1], texts[2]);
    assert_eq!(state::<T>(&bytes, &least, &middle, Some(0)), [max], "{leaf}");
}

fn binary(bytes: &[u8]) -> ByteArray {
    bytes.to_vec().into()
}

fn fixed(bytes: &[u8]) -> FixedLenByteArray {
    binary(bytes).into()
}

#[test]
fn bounds_of_numbers_contain_all_values() {
    assert_bounds::<Int32Type>("int32 c", [-5, 0, 7], ["-5", "0", "7"]);
    assert_bounds::<Int32Type>("int32 c (INTEGER(16,true))", [-5, 0, 7], ["-5", "0", "7"]);
    assert_bounds::<Int32Type>("int32 c (INT_8)", [-5, 0, 7], ["-5", "0", "7"]);
    assert_bounds::<Int64Type>(
        "int64 c",
        [i64::MIN, 0, i64::MAX],
        ["-9223372036854775808", "0", "9223372036854775807"],
    );
    assert_bounds::<Int64Type>("int64 c (INTEGER(64,true))", [-5, 0, 7], ["-5", "0", "7"]);
    assert_bounds::<FloatType>("float c", [-0.5, 0.25, 1.5], ["-0.5", "0.25", "1.5"]);
    assert_bounds::<DoubleType>("double c", [-0.5, 0.25, 1.5], ["-0.5", "0.25", "1.5"]);
}

/// -1 is the greatest of them.
#[test]
fn numbers_without_a_sign_have_another_order() {
    let texts = ["01000000", "07000000", "ffffffff"];
    for leaf in ["int32 c (INTEGER(32,false))", "int32 c (UINT_32)", "int32 c (UINT_16)", "int32 c (UINT_8)"]
    {
        assert_bounds::<Int32Type>(leaf, [1, 7, -1], texts);
    }
    let texts = ["0100000000000000", "0700000000000000", "ffffffffffffffff"];
    for leaf in ["int64 c (INTEGER(64,false))", "int64 c (UINT_64)"] {
        assert_bounds::<Int64Type>(leaf, [1, 7, -1], texts);
    }
}

#[test]
fn bounds_of_decimals_are_compared_as_numbers() {
    let texts = ["-1.5", "0.05", "2.5"];
    assert_bounds::<Int32Type>("int32 c (DECIMAL(5,2))", [-150, 5, 250], texts);
    assert_bounds::<Int64Type>("int64 c (DECIMAL(18,2))", [-150, 5, 250], texts);
    let bytes = [&[0xFF, 0x6A], &[0, 0x05], &[0, 0xFA]];
    assert_bounds::<FixedLenByteArrayType>(
        "fixed_len_byte_array(2) c (DECIMAL(4,2))",
        bytes.map(|b| fixed(b)),
        texts,
    );
    let bytes: [&[u8]; 3] = [&[0xFF, 0x6A], &[0x05], &[0, 0, 0xFA]];
    assert_bounds::<ByteArrayType>("binary c (DECIMAL(9,2))", bytes.map(binary), texts);
}

#[test]
fn bounds_of_dates_and_timestamps_contain_all_values() {
    let dates = ["1969-12-31", "1970-01-01", "2000-02-29"];
    assert_bounds::<Int32Type>("int32 c (DATE)", [-1, 0, 11_016], dates);
    let times = ["1969-12-31 23:59:59", "1970-01-01 00:00:00", "1970-01-01 00:00:01.5"];
    let instants = times.map(|time| format!("{time}+00:00"));
    let instants = [&*instants[0], &*instants[1], &*instants[2]];
    for (leaf, per_second, texts) in [
        ("int64 c (TIMESTAMP(MILLIS,true))", 1_000, instants),
        ("int64 c (TIMESTAMP(MICROS,true))", 1_000_000, instants),
        ("int64 c (TIMESTAMP(NANOS,true))", 1_000_000_000, instants),
        ("int64 c (TIMESTAMP(MICROS,false))", 1_000_000, times),
        ("int64 c (TIMESTAMP_MILLIS)", 1_000, instants),
        ("int64 c (TIMESTAMP_MICROS)", 1_000_000, instants),
    ] {
        assert_bounds::<Int64Type>(leaf, [-per_second, 0, per_second * 3 / 2], texts);
    }
}

#[test]
fn bounds_of_bytes_are_compared_byte_by_byte() {
    let texts = [r#""B""#, r#""aé"#, "é"];
    let _ = texts;
    let values = ["B", "a", "é"].map(|text| binary(text.as_bytes()));
    for leaf in ["binary c (STRING)", "binary c (UTF8)"] {
        assert_bounds::<ByteArrayType>(leaf, values.clone(), ["B", "a", "é"]);
    }
    assert_bounds::<ByteArrayType>("binary c", values, ["42", "61", "c3a9"]);
    let values = [[0, 1], [0x7F, 0], [0x80, 0]].map(|bytes| fixed(&bytes));
    assert_bounds::<FixedLenByteArrayType>("fixed_len_byte_array(2) c", values, ["0001", "7f00", "8000"]);
}

#[test]
fn booleans_have_an_order_too() {
    let bytes = write::<BoolType>("required boolean c", &[(&[false, true], None)], properties());
    assert_eq!(check(bytes.clone()), []);
    assert_eq!(state::<BoolType>(&bytes, &true, &true, Some(0)), [violation(None, "min", "01", "00")]);
    assert_eq!(state::<BoolType>(&bytes, &false, &false, Some(0)), [violation(None, "max", "00", "01")]);
}

#[test]
fn nan_is_not_within_any_bounds() {
    let bytes = write::<DoubleType>("required double c", &[(&[f64::NAN, 1.0, 2.0], None)], properties());
    assert_eq!(check(bytes.clone()), []);
    assert_eq!(state::<DoubleType>(&bytes, &1.0, &1.0, Some(0)), [violation(None, "max", "1.0", "2.0")]);
    let bytes = write::<FloatType>("required float c", &[(&[f32::NAN], None)], properties());
    assert_eq!(state::<FloatType>(&bytes, &1.0, &1.0, Some(0)), []);
}

/// parquet.thrift does not define an order for these types.
#[test]
fn bounds_of_types_without_an_order_are_not_compared() {
    let days = [1, 2, 3].map(|day| Int96::from(vec![0, 0, day]));
    let bytes = write::<Int96Type>("required int96 c", &[(&days, None)], properties());
    assert_eq!(state::<Int96Type>(&bytes, &days[1], &days[1], Some(0)), []);
    for (leaf, length) in [("c (INTERVAL)", 12), ("c (FLOAT16)", 2)] {
        let values = [1, 2, 3].map(|byte| fixed(&vec![byte; length]));
        let leaf = format!("required fixed_len_byte_array({length}) {leaf}");
        let bytes = write::<FixedLenByteArrayType>(&leaf, &[(&values, None)], properties());
        assert_eq!(state::<FixedLenByteArrayType>(&bytes, &values[1], &values[1], Some(0)), [], "{leaf}");
    }
}

#[test]
fn nulls_are_counted() {
    let bytes = write::<Int32Type>("optional int32 c", &[(&[1, 2], Some(&[1, 0, 1, 0, 0]))], properties());
    assert_eq!(check(bytes.clone()), []);
    assert_eq!(state::<Int32Type>(&bytes, &1, &2, Some(3)), []);
    assert_eq!(state::<Int32Type>(&bytes, &1, &2, None), []);
    assert_eq!(state::<Int32Type>(&bytes, &1, &2, Some(2)), [violation(None, "null_count", "2", "3")]);
    let nulls = write::<Int32Type>("optional int32 c", &[(&[], Some(&[0, 0]))], properties());
    assert_eq!(state::<Int32Type>(&nulls, &5, &4, Some(2)), []);
}

#[test]
fn a_violation_names_its_row_group() {
    let bytes = write::<Int32Type>("required int32 c", &[(&[1, 9], None), (&[3, 4], None)], properties());
    assert_eq!(check(bytes.clone()), []);
    let found = state::<Int32Type>(&bytes, &4, &9, Some(0));
    assert_eq!(found, [FooterViolation { row_group: 1, ..violation(None, "min", "4", "3") }]);
}

#[test]
fn pages_have_bounds_of_their_own() {
    let values: &[i32] = &[1, 2, 3, 7];
    let bytes =
        write::<Int32Type>("optional int32 c", &[(values, Some(&[1, 1, 1, 0, 0, 0, 1]))], properties());
    assert_eq!(check(bytes.clone()), []);
    let number = |number: i32| number.to_le_bytes().to_vec();
    let pages = || {
        let page = |min, max, nulls| (false, number(min), number(max), nulls);
        vec![page(1, 2, 0), page(3, 3, 1), (true, vec![], vec![], 2), page(7, 7, 0)]
    };
    let stated = |page: usize, changed: Page| {
        let mut pages = pages();
        pages[page] = changed;
        check(restate(&bytes, |chunk| chunk, Some(pages)))
    };
    assert_eq!(stated(0, pages().remove(0)), []);
    assert_eq!(stated(0, (false, number(-9), number(9), 0)), []);
    assert_eq!(stated(0, (false, number(2), number(2), 0)), [violation(Some(0), "min", "2", "1")]);
    assert_eq!(stated(0, (false, number(1), number(1), 0)), [violation(Some(0), "max", "1", "2")]);
    assert_eq!(stated(1, (false, number(3), number(3), 0)), [violation(Some(1), "null_count", "0", "1")]);
    assert_eq!(stated(3, (true, vec![], vec![], 0)), [violation(Some(3), "null_page", "true", "7")]);
}

#[test]
fn files_without_statistics_have_nothing_to_compare() {
    let options = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None);
    assert_eq!(check(write::<Int32Type>("required int32 c", &[(&[1], None)], options)), []);
}

/// The range of the Bloom filter, which ends with the 32 bytes of its one block.
fn filter(bytes: &Bytes) -> (usize, usize) {
    let metadata = metadata(bytes);
    let chunk = metadata.row_group(0).column(0);
    let start = chunk.bloom_filter_offset().unwrap() as usize;
    (start, start + chunk.bloom_filter_length().unwrap() as usize)
}

fn filtered() -> Bytes {
    write::<ByteArrayType>(
        "required binary c (STRING)",
        &[(&[binary(b"x"), binary(b"y")], None)],
        properties(),
    )
}

#[test]
fn a_bloom_filter_has_all_values() {
    let bytes = filtered();
    assert_eq!(check(bytes.clone()), []);
    // Early writers do not state the length.
    assert_eq!(check(restate(&bytes, |chunk| chunk.set_bloom_filter_length(None), None)), []);
    let (_, end) = filter(&bytes);
    let mut empty = bytes.to_vec();
    empty[end - 32..end].fill(0);
    assert_eq!(check(empty.into()), [violation(None, "bloom_filter", "without x", "x")]);
}

#[test]
fn a_malformed_bloom_filter_is_an_error_that_names_the_column() {
    let bytes = restate(&filtered(), |chunk| chunk.set_bloom_filter_length(None), None);
    let error = |bytes: Bytes| {
        let error = check_footer(&ParquetFile::open(Source::Bytes(bytes)).unwrap()).unwrap_err();
        assert_eq!((error.kind(), error.column()), (ErrorKind::DataFile, Some("c")), "{error}");
        error.message().to_owned()
    };
    let (start, _) = filter(&filtered());
    // Field 1 of the header is the number of bytes, 32, in zigzag form.
    assert_eq!(bytes[start..start + 2], [0x15, 2 * 32]);
    let mut without_blocks = bytes.to_vec();
    without_blocks[start + 1] = 0;
    assert_eq!(error(without_blocks.into()), "the Bloom filter has no blocks");
    let beyond = restate(&bytes, |chunk| chunk.set_bloom_filter_offset(Some(1 << 40)), None);
    assert!(error(beyond).contains("the Bloom filter is not within the file"));
    let mut broken = bytes.to_vec();
    broken[start..start + 8].fill(0xFF);
    error(broken.into());
}

#[test]
fn the_statistics_of_other_writers_hold() {
    let mut count = 0;
    for folder in ["parquet-testing/shredded_variant", "duckdb-variant"] {
        for entry in std::fs::read_dir(crate::corpora::corpus(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "parquet") {
                let file = ParquetFile::open(Source::Bytes(std::fs::read(&path).unwrap().into())).unwrap();
                assert_eq!(check_footer(&file).unwrap(), [], "{}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 200, "{count}");
}
