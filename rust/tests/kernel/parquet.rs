//! One Parquet file: written data, its footer, and the data read back.

use std::collections::HashMap;
use std::sync::Arc;

use _native::error::{Error, ErrorKind};
use _native::parquet::{
    FileSummary, FileWriter, MAX_SCHEMA_DEPTH, ParquetFile, RangeReader, Source, VARIANT_EXTENSION,
    VariantGroup, WriteOptions, annotate_variants, inspect, to_parquet,
};
use arrow_array::builder::{Int64Builder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use bytes::Bytes;
use parquet::basic::{Encoding as ParquetEncoding, LogicalType, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader};
use parquet::file::statistics::Statistics;

const ROWS: usize = 5000;

fn field(name: &str, data_type: &DataType, nullable: bool) -> Field {
    Field::new(name, data_type.clone(), nullable)
}

fn with_metadata(field: Field, key: &str, value: &str) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(key.to_string(), value.to_string());
    field.with_metadata(metadata)
}

fn variant(field: Field) -> Field {
    with_metadata(field, "ARROW:extension:name", VARIANT_EXTENSION)
}

fn array(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn group(members: Vec<(&str, ArrayRef, bool)>, nulls: Option<NullBuffer>) -> ArrayRef {
    let fields: Fields =
        members.iter().map(|(name, array, nullable)| field(name, array.data_type(), *nullable)).collect();
    let arrays = members.into_iter().map(|(_, array, _)| array).collect();
    array_of(StructArray::new(fields, arrays, nulls))
}

fn array_of(array: StructArray) -> ArrayRef {
    Arc::new(array)
}

/// A field of a shredded object: every `odd`-th row has a residual `value`, the others a `typed_value`.
fn shredded_int(rows: usize, odd: usize) -> ArrayRef {
    let value: BinaryArray = (0..rows).map(|row| (row % odd == 0).then_some(b"\x00".as_slice())).collect();
    let typed: Int64Array = (0..rows).map(|row| (row % odd != 0).then_some(row as i64)).collect();
    group(vec![("value", array(value), true), ("typed_value", array(typed), true)], None)
}

fn nulls(rows: usize) -> ArrayRef {
    array(BinaryArray::new_null(rows))
}

fn shapes(rows: usize) -> ArrayRef {
    let keys: Int32Array = (0..rows).map(|row| Some(row as i32 % 3)).collect();
    let values =
        BinaryArray::from_iter_values([b"\x01\x00\x00".as_slice(), b"\x01\x01\x00\x01a", b"\x11\x00"]);
    array(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)))
}

/// A shredded Variant: an object of an integer, a nested object and a list of strings, SQL NULL in some rows.
fn shredded(rows: usize) -> (Field, ArrayRef) {
    let elements = 2 * rows;
    let text: StringArray = (0..elements).map(|row| Some(format!("tag {}", row % 7))).collect();
    let element = group(vec![("value", nulls(elements), true), ("typed_value", array(text), true)], None);
    let list = ListArray::new(
        Arc::new(field("element", element.data_type(), false)),
        OffsetBuffer::from_lengths(std::iter::repeat_n(2, rows)),
        element,
        Some(NullBuffer::from_iter((0..rows).map(|row| row % 5 != 1))),
    );
    let tags = group(vec![("value", nulls(rows), true), ("typed_value", array(list), true)], None);
    let inner = group(vec![("a.b", shredded_int(rows, 9), false), ("", shredded_int(rows, 4), false)], None);
    let nested = group(vec![("value", nulls(rows), true), ("typed_value", inner, true)], None);
    let present = NullBuffer::from_iter((0..rows).map(|row| row % 11 != 3));
    let members =
        vec![("id", shredded_int(rows, 100), false), ("nested", nested, false), ("value", tags, false)];
    let typed = group(members, Some(present));
    let residual: BinaryArray =
        (0..rows).map(|row| (row % 11 == 3).then(|| format!("residual {row}").into_bytes())).collect();
    let missing = NullBuffer::from_iter((0..rows).map(|row| row % 13 != 12));
    let members = vec![
        ("metadata", shapes(rows), false),
        ("value", array(residual), true),
        ("typed_value", typed, true),
    ];
    let column = group(members, Some(missing));
    (variant(field("event", column.data_type(), true)), column)
}

fn batch(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn ordinary(name: &str, array: ArrayRef) -> (Field, ArrayRef) {
    (field(name, array.data_type(), true), array)
}

fn write_with(batches: &[RecordBatch], options: WriteOptions) -> (Bytes, FileSummary) {
    let mut bytes = Vec::new();
    let mut writer = FileWriter::new(&mut bytes, batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    let summary = writer.close().unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    (bytes.into(), summary)
}

fn write(batches: &[RecordBatch]) -> Bytes {
    write_with(batches, WriteOptions::default()).0
}

fn open(bytes: &Bytes) -> ParquetFile {
    ParquetFile::open(Source::Bytes(bytes.clone())).unwrap()
}

fn read(file: &ParquetFile) -> Vec<RecordBatch> {
    let leaves = (0..file.metadata().file_metadata().schema_descr().num_columns()).collect();
    file.read(&file.scan(leaves, 1000)).collect::<Result<_, _>>().unwrap()
}

/// Concatenate one column of all batches.
fn column(batches: &[RecordBatch], index: usize) -> ArrayRef {
    let arrays: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
    arrow_select::concat::concat(&arrays).unwrap()
}

/// Assert equal values in the same layout; field metadata and dictionaries may differ.
fn assert_same(read: &ArrayRef, written: &ArrayRef) {
    assert_eq!(normalize(read).to_data(), normalize(written).to_data());
}

/// Return the array with its dictionaries unpacked and without field metadata.
fn normalize(source: &ArrayRef) -> ArrayRef {
    match source.data_type() {
        DataType::Dictionary(_, _) => {
            let dictionary = source.as_any_dictionary();
            arrow_select::take::take(dictionary.values(), dictionary.keys(), None).unwrap()
        }
        DataType::Struct(fields) => {
            let arrays: Vec<ArrayRef> = source.as_struct().columns().iter().map(normalize).collect();
            let fields: Fields = fields
                .iter()
                .zip(&arrays)
                .map(|(old, array)| field(old.name(), array.data_type(), old.is_nullable()))
                .collect();
            array_of(StructArray::new(fields, arrays, source.nulls().cloned()))
        }
        DataType::List(element) => {
            let list = source.as_list::<i32>();
            let values = normalize(list.values());
            let element = field("element", values.data_type(), element.is_nullable());
            array(ListArray::new(Arc::new(element), list.offsets().clone(), values, list.nulls().cloned()))
        }
        _ => source.clone(),
    }
}

#[test]
fn a_nested_shredded_layout_reads_back_equal() {
    let (event, events) = shredded(ROWS);
    let day: ArrayRef = array(Date32Array::from_iter((0..ROWS).map(|row| Some(row as i32 % 3))));
    let written = batch(vec![ordinary("day", day), (event, events)]);
    let read = read(&open(&write(std::slice::from_ref(&written))));
    for index in 0..2 {
        let column = column(&read, index);
        assert_eq!(column.logical_null_count(), written.column(index).logical_null_count());
        assert_logically_equal(&column, written.column(index));
    }
}

/// Compare value by value through the display form of each row, since null parents hide arbitrary children.
fn assert_logically_equal(read: &ArrayRef, written: &ArrayRef) {
    assert_eq!(read.len(), written.len());
    for row in 0..read.len() {
        assert_eq!(text(read, row), text(written, row), "row {row}");
    }
}

/// Format one value as text, with `-` for absent parts.
fn text(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "-".into();
    }
    match array.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let members = fields.iter().zip(columns).map(|(f, c)| format!("{:?}:{}", f.name(), text(c, row)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        DataType::List(_) => elements(&array.as_list::<i32>().value(row)),
        DataType::Map(_, _) => elements(&(Arc::new(array.as_map().value(row)) as ArrayRef)),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            text(dictionary.values(), dictionary.normalized_keys()[row])
        }
        _ => format!("{:?}", array.slice(row, 1)),
    }
}

fn elements(values: &ArrayRef) -> String {
    format!("[{}]", (0..values.len()).map(|row| text(values, row)).collect::<Vec<_>>().join(","))
}

#[test]
fn the_footer_annotates_a_variant_with_specification_version_1() {
    let bytes = write(&[batch(vec![shredded(10)])]);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes).unwrap();
    let schema = metadata.file_metadata().schema();
    let group = &schema.get_fields()[0];
    assert_eq!(group.get_basic_info().logical_type_ref(), Some(&LogicalType::variant(Some(1))));
    let report = inspect(&open(&bytes));
    let event = VariantGroup { path: vec!["event".to_string()], specification_version: Some(1) };
    assert_eq!(report.variants, [event]);
    assert_eq!(report.created_by.as_deref(), Some("delta-variant version 0.1.0"));
    assert_eq!(report.keys, Vec::<String>::new());
}

#[test]
fn annotate_false_leaves_the_group_plain_and_reads_back_the_same() {
    let written = batch(vec![shredded(50)]);
    let options = WriteOptions { annotate: false, ..WriteOptions::default() };
    let (bytes, _) = write_with(std::slice::from_ref(&written), options);
    let file = open(&bytes);
    assert_eq!(inspect(&file).variants, []);
    assert_logically_equal(&column(&read(&file), 0), written.column(0));
}

#[test]
fn a_footer_that_is_annotated_afterwards_is_that_of_an_annotated_file() {
    let value = BinaryArray::from_iter_values([b"\x00"; 4]);
    let column = group(vec![("metadata", shapes(4), false), ("value", array(value), false)], None);
    let plain = group(vec![("metadata", nulls(4), true), ("value", nulls(4), true)], None);
    let written = batch(vec![
        (variant(field("event", column.data_type(), true)), column),
        ordinary("not_required", plain),
    ]);
    let write = |annotate: bool| {
        let options = WriteOptions { annotate, ..WriteOptions::default() };
        write_with(std::slice::from_ref(&written), options).0
    };
    let (bytes, expected) = (write(false), write(true));
    let length = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap());
    let (data, footer) = bytes.split_at(bytes.len() - 8 - length as usize);
    assert_ne!(bytes, expected);
    assert!([data, &annotate_variants(footer).unwrap()].concat() == expected);
    for broken in [&footer[..7], &footer[1..], &[0; 100]] {
        assert_eq!(annotate_variants(broken).unwrap_err().kind(), ErrorKind::DataFile);
    }
}

#[test]
fn a_variant_inside_a_list_is_annotated() {
    let element = group(vec![("metadata", shapes(4), false), ("value", nulls(4), true)], None);
    let item = variant(field("element", element.data_type(), true));
    let list = ListArray::new(Arc::new(item), OffsetBuffer::from_lengths([3, 1]), element, None);
    let report = inspect(&open(&write(&[batch(vec![ordinary("events", array(list))])])));
    assert_eq!(report.variants[0].path.join("/"), "events/list/element");
}

#[test]
fn metadata_is_plain_binary_in_the_file_and_a_dictionary_of_shapes_when_read() {
    let file = open(&write(&[batch(vec![shredded(ROWS)])]));
    let leaf = file.metadata().file_metadata().schema_descr().column(0);
    assert_eq!(leaf.path().parts(), ["event", "metadata"]);
    assert_eq!(leaf.physical_type(), PhysicalType::BYTE_ARRAY);
    assert!(!leaf.self_type().is_optional());
    let batches = read(&file);
    let metadata = batches[0].column(0).as_struct().column(0).as_any_dictionary().values().clone();
    assert!(metadata.len() <= 4, "{} shapes", metadata.len());
}

/// P-S8 (protocol_fixtures/README.md): names of shredded fields are arbitrary strings, compared part by part.
#[test]
fn names_with_dots_and_empty_names_keep_their_parts() {
    let report = inspect(&open(&write(&[batch(vec![shredded(10)])])));
    let paths: Vec<Vec<&str>> =
        report.leaves.iter().map(|leaf| leaf.path.iter().map(String::as_str).collect()).collect();
    let typed = |names: &[&'static str]| -> Vec<&str> { [&["event", "typed_value"], names].concat() };
    assert!(paths.contains(&typed(&["nested", "typed_value", "a.b", "typed_value"])));
    assert!(paths.contains(&typed(&["nested", "typed_value", "", "typed_value"])));
    assert!(paths.contains(&typed(&["value", "typed_value", "list", "element", "typed_value"])));
}

/// W14 (protocol_fixtures/README.md): the footer has the null count of every `value`, and bounds only where all its
/// values are Variant null.
#[test]
fn a_name_of_the_schema_is_that_of_its_data() {
    let column = |name| ordinary(name, array(Int64Array::from(vec![1, 2])));
    let bytes = write(&[batch(vec![column("first"), column("second")])]);
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"second")).collect();
    assert_eq!(places.len(), 2, "the schema, and the column chunk");
    for place in places {
        let mut damaged = bytes.to_vec();
        damaged[place + 2] ^= 1;
        let error = ParquetFile::open(Source::Bytes(damaged.into())).err().unwrap();
        assert!(error.to_string().contains("where its schema has another one"), "{error}");
    }
}

#[test]
fn value_has_a_null_count_and_bounds_of_variant_nulls_only() {
    let file = open(&write(&[batch(vec![shredded(1300)])]));
    let leaf = |path: &[&str]| {
        let is_named = |chunk: &&ColumnChunkMetaData| chunk.column_path().parts() == path;
        file.row_groups()[0].columns().iter().find(is_named).unwrap().statistics().unwrap()
    };
    let value = leaf(&["event", "typed_value", "id", "value"]);
    // Every hundredth row has one, unless the object (11) or the whole Variant (13) is absent.
    let present = (0..1300).filter(|row| row % 100 == 0 && row % 11 != 3 && row % 13 != 12).count() as u64;
    assert_eq!(value.null_count_opt(), Some(1300 - present));
    assert_eq!(bounds(value), (Some(&[0][..]), Some(&[0][..])));
    let residual = leaf(&["event", "value"]);
    assert_ne!(residual.null_count_opt(), Some(1300));
    assert_eq!(bounds(residual), (None, None));
    let typed = leaf(&["event", "typed_value", "id", "typed_value"]);
    assert_eq!(bounds(typed), (Some(&1_i64.to_le_bytes()[..]), Some(&1298_i64.to_le_bytes()[..])));
    assert!(typed.min_is_exact() && typed.max_is_exact());
    // A shredded field named `value` contains text, so it has bounds.
    let text = leaf(&["event", "typed_value", "value", "typed_value", "list", "element", "typed_value"]);
    assert_eq!(text.max_bytes_opt(), Some(&b"tag 6"[..]));
}

fn bounds(statistics: &Statistics) -> (Option<&[u8]>, Option<&[u8]>) {
    (statistics.min_bytes_opt(), statistics.max_bytes_opt())
}

/// In a list, a page with as many nulls as rows may still contain values, so a column index would be wrong.
#[test]
fn only_leaves_outside_lists_have_a_column_index() {
    let rows = [Some(vec![Some(1), None]), Some(vec![None])].into_iter().cycle().take(40_000);
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(rows);
    let ids = array(Int64Array::from_iter_values(0..40_000));
    let written = batch(vec![ordinary("list", array(lists)), ordinary("id", ids)]);
    let file = open(&write(&[written]));
    let indexed = |leaf: usize| file.row_groups()[0].column(leaf).column_index_offset().is_some();
    assert_eq!((indexed(0), indexed(1)), (false, true));
    let statistics = file.row_groups()[0].column(0).statistics().unwrap();
    let found = (statistics.null_count_opt(), statistics.max_bytes_opt());
    assert_eq!(found, (Some(40_000), Some(&1_i64.to_le_bytes()[..])));
}

#[test]
fn bounds_longer_than_64_bytes_are_truncated_and_marked_inexact() {
    let exact = "x".repeat(64);
    let long = "y".repeat(65);
    let column = array(StringArray::from(vec![exact.as_str(), long.as_str()]));
    let file = open(&write(&[batch(vec![ordinary("text", column)])]));
    let statistics = file.row_groups()[0].column(0).statistics().unwrap();
    assert_eq!(statistics.min_bytes_opt(), Some(exact.as_bytes()));
    assert!(statistics.min_is_exact() && !statistics.max_is_exact());
    assert_eq!(statistics.max_bytes_opt().unwrap().len(), 64);
}

#[test]
fn a_column_of_nulls_takes_almost_no_bytes() {
    let mut writer_bytes = Vec::new();
    let written = batch(vec![ordinary("none", nulls(100_000))]);
    let mut writer = FileWriter::new(&mut writer_bytes, written.schema(), WriteOptions::default()).unwrap();
    writer.write(&written).unwrap();
    let summary = writer.close().unwrap();
    assert_eq!(summary.leaves[0].null_count, Some(100_000));
    assert!(summary.leaves[0].compressed_bytes < 500, "{} bytes", summary.leaves[0].compressed_bytes);
    let file = open(&writer_bytes.into());
    assert_eq!(read(&file).iter().map(|batch| batch.column(0).null_count()).sum::<usize>(), 100_000);
}

#[test]
fn field_ids_come_from_the_field_metadata() {
    let inner = with_metadata(field("inner", &DataType::Int32, true), "PARQUET:field_id", "9");
    let outer = with_metadata(
        Field::new("outer", DataType::Struct([Arc::new(inner)].into()), true),
        "PARQUET:field_id",
        "4",
    );
    let schema = to_parquet(&Schema::new(vec![outer]), true).unwrap();
    let outer = &schema.root_schema().get_fields()[0];
    assert_eq!(outer.get_basic_info().id(), 4);
    assert_eq!(outer.get_fields()[0].get_basic_info().id(), 9);
    let wrong = with_metadata(field("a", &DataType::Int32, true), "PARQUET:field_id", "four");
    let error = to_parquet(&Schema::new(vec![wrong]), true).unwrap_err();
    assert_eq!(error, Error::unsupported("field \"a\" has the field id \"four\", not an integer"));
}

/// The type table of VariantShredding.md, "Shredded Value Types".
#[test]
fn each_type_of_the_type_table_gets_its_parquet_type() {
    let uuid =
        with_metadata(field("", &DataType::FixedSizeBinary(16), true), "ARROW:extension:name", "arrow.uuid");
    let utc = Some("UTC".into());
    let plain = |data_type: DataType| field("", &data_type, true);
    let cases = [
        (plain(DataType::Boolean), "BOOLEAN", None),
        (plain(DataType::Int8), "INT32", Some("INT(8,true)")),
        (plain(DataType::Int16), "INT32", Some("INT(16,true)")),
        (plain(DataType::Int32), "INT32", None),
        (plain(DataType::Int64), "INT64", None),
        (plain(DataType::Float32), "FLOAT", None),
        (plain(DataType::Float64), "DOUBLE", None),
        (plain(DataType::Decimal128(9, 2)), "INT32", Some("DECIMAL(9,2)")),
        (plain(DataType::Decimal128(18, 0)), "INT64", Some("DECIMAL(18,0)")),
        (plain(DataType::Decimal128(19, 4)), "FIXED_LEN_BYTE_ARRAY(9)", Some("DECIMAL(19,4)")),
        (plain(DataType::Decimal128(38, 38)), "FIXED_LEN_BYTE_ARRAY(16)", Some("DECIMAL(38,38)")),
        (plain(DataType::Date32), "INT32", Some("DATE")),
        (plain(DataType::Time64(TimeUnit::Microsecond)), "INT64", Some("TIME(false,MICROS)")),
        (
            plain(DataType::Timestamp(TimeUnit::Microsecond, utc.clone())),
            "INT64",
            Some("TIMESTAMP(true,MICROS)"),
        ),
        (plain(DataType::Timestamp(TimeUnit::Microsecond, None)), "INT64", Some("TIMESTAMP(false,MICROS)")),
        (plain(DataType::Timestamp(TimeUnit::Nanosecond, utc)), "INT64", Some("TIMESTAMP(true,NANOS)")),
        (plain(DataType::Timestamp(TimeUnit::Nanosecond, None)), "INT64", Some("TIMESTAMP(false,NANOS)")),
        (plain(DataType::Binary), "BYTE_ARRAY", None),
        (plain(DataType::LargeBinary), "BYTE_ARRAY", None),
        (plain(DataType::Utf8), "BYTE_ARRAY", Some("STRING")),
        (plain(DataType::LargeUtf8), "BYTE_ARRAY", Some("STRING")),
        (uuid, "FIXED_LEN_BYTE_ARRAY(16)", Some("UUID")),
    ];
    for (field, physical, logical) in cases {
        let data_type = field.data_type().clone();
        let schema = Arc::new(Schema::new(vec![field]));
        let mut bytes = Vec::new();
        let mut writer = FileWriter::new(&mut bytes, schema.clone(), WriteOptions::default()).unwrap();
        writer.write(&RecordBatch::try_new(schema, vec![new_null_array(&data_type, 3)]).unwrap()).unwrap();
        writer.close().unwrap();
        let file = open(&bytes.into());
        let leaf = inspect(&file).leaves.remove(0);
        let column = file.metadata().file_metadata().schema_descr().column(0);
        let stored = match column.physical_type() {
            PhysicalType::FIXED_LEN_BYTE_ARRAY => format!("FIXED_LEN_BYTE_ARRAY({})", column.type_length()),
            other => other.to_string(),
        };
        assert_eq!((stored.as_str(), leaf.logical_type.as_deref()), (physical, logical), "{data_type}");
        assert_eq!((leaf.num_values, leaf.null_count), (3, Some(3)));
    }
}

#[test]
fn decimals_of_every_precision_read_back() {
    for precision in 1..=38_u8 {
        let largest = 10_i128.pow(precision.into()) - 1;
        let column = Decimal128Array::from(vec![Some(largest), Some(-largest), None, Some(-1), Some(0)])
            .with_precision_and_scale(precision, 0)
            .unwrap();
        let written = batch(vec![ordinary("d", array(column))]);
        assert_same(&column_of(&written), written.column(0));
    }
    fn column_of(written: &RecordBatch) -> ArrayRef {
        column(&read(&open(&write(std::slice::from_ref(written)))), 0)
    }
}

#[test]
fn maps_read_back() {
    let names = MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    let mut map = MapBuilder::new(Some(names), StringBuilder::new(), Int64Builder::new());
    for row in 0..100 {
        for key in 0..row % 4 {
            map.keys().append_value(format!("key {key}"));
            map.values().append_value(row);
        }
        map.append(row % 10 != 9).unwrap();
    }
    let map = array(map.finish());
    let written = batch(vec![ordinary("m", map.clone())]);
    let read = column(&read(&open(&write(&[written]))), 0);
    assert_logically_equal(&read, &map);
}

#[test]
fn unsupported_types_are_rejected() {
    let rejected = [
        (DataType::UInt32, "field \"x\" has type UInt32, which a Delta table cannot hold"),
        (
            DataType::Struct(Fields::empty()),
            "field \"x\" is a struct without fields, which Parquet cannot hold",
        ),
        (DataType::Decimal128(4, -1), "field \"x\" has the impossible type decimal(4, -1)"),
    ];
    for (data_type, message) in rejected {
        let error = to_parquet(&Schema::new(vec![field("x", &data_type, true)]), true).unwrap_err();
        assert_eq!(error, Error::unsupported(message));
    }
}

/// P-S12 (protocol_fixtures/README.md): a Variant cannot be a map key.
#[test]
fn a_variant_as_map_key_is_rejected() {
    let members: Fields =
        [field("metadata", &DataType::Binary, false), field("value", &DataType::Binary, true)]
            .into_iter()
            .collect();
    let key = variant(Field::new("key", DataType::Struct(members), false));
    let entries = Field::new_struct("entries", vec![key, field("value", &DataType::Int32, true)], false);
    let map = Field::new("m", DataType::Map(Arc::new(entries), false), true);
    let error = to_parquet(&Schema::new(vec![map]), true).unwrap_err();
    assert_eq!(error, Error::unsupported("field \"m\" is a map whose keys are Variant or nullable"));
}

#[test]
fn row_groups_end_at_their_row_limit_and_keep_the_order() {
    let ids = array(Int64Array::from_iter_values(0..10_000));
    let written = batch(vec![ordinary("id", ids)]);
    let options = WriteOptions { row_group_rows: 3000, ..WriteOptions::default() };
    let (bytes, summary) = write_with(&[written.clone(), written], options);
    assert_eq!(summary.rows, 20_000);
    let file = open(&bytes);
    let rows: Vec<i64> = file.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [3000, 3000, 3000, 3000, 3000, 3000, 2000]);
    let scan = file.scan(vec![0], 700);
    let sums: Vec<Vec<i64>> = file
        .read_parallel(&scan, |batch| Ok(batch.column(0).as_primitive::<Int64Type>().value(0)))
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(sums[0], [0, 700, 1400, 2100, 2800]);
    assert_eq!(sums[4][0], 2000);
    let ids: Vec<i64> = read(&file)
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert!(ids.iter().copied().eq((0..10_000).chain(0..10_000)));
}

#[test]
fn batches_of_large_texts_have_few_rows_even_in_a_small_file() {
    let text = "x".repeat(1 << 20);
    let texts = batch(vec![ordinary("text", array(StringArray::from_iter_values((0..30).map(|_| &text))))]);
    let bytes = write(&vec![texts; 10]);
    assert!(bytes.len() < 1 << 20);
    let file = open(&bytes);
    let scan = file.scan(vec![0], 1000);
    let rows: Vec<usize> = file.read(&scan).map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!(rows, [128, 128, 44]);
}

#[test]
fn row_groups_end_at_their_byte_limit() {
    let texts = array(StringArray::from_iter_values(
        (0..20_000_u64).map(|row| format!("{:0>100}", row * 2_654_435_761 % 1_000_000_007)),
    ));
    let written = batch(vec![ordinary("text", texts)]);
    let options = WriteOptions { row_group_bytes: 30_000, ..WriteOptions::default() };
    let (bytes, _) = write_with(&[written.slice(0, 10_000), written.slice(10_000, 10_000)], options);
    assert_eq!(open(&bytes).row_groups().len(), 2);
}

#[test]
fn a_file_without_batches_has_the_schema_and_no_rows() {
    let (event, events) = shredded(1);
    let empty = batch(vec![(event, events)]).slice(0, 0);
    let (bytes, summary) = write_with(&[empty], WriteOptions::default());
    assert_eq!(summary.rows, 0);
    let file = open(&bytes);
    assert_eq!((file.num_rows(), file.row_groups().len(), read(&file).len()), (0, 0, 0));
    assert_eq!(inspect(&file).variants.len(), 1);
}

#[test]
fn a_batch_of_other_types_is_rejected() {
    let ids = batch(vec![ordinary("id", array(Int64Array::from(vec![1])))]);
    let texts = batch(vec![ordinary("id", array(StringArray::from(vec!["1"])))]);
    let mut bytes = Vec::new();
    let mut writer = FileWriter::new(&mut bytes, ids.schema(), WriteOptions::default()).unwrap();
    let error = writer.write(&texts).unwrap_err();
    assert_eq!(error, Error::data_file("a batch has other column types than the file it is written to"));
}

#[test]
fn only_leaves_of_few_distinct_values_have_a_dictionary() {
    let many = array(Int64Array::from_iter_values((0..ROWS as i64).map(|row| row * 7919)));
    let few = array(Int64Array::from_iter_values((0..ROWS as i64).map(|row| row % 5)));
    let file = open(&write(&[batch(vec![ordinary("many", many), ordinary("few", few)])]));
    let encodings = |leaf| file.row_groups()[0].column(leaf).encodings().collect::<Vec<_>>();
    assert!(encodings(0).contains(&ParquetEncoding::DELTA_BINARY_PACKED) && encodings(0).len() == 2);
    assert!(encodings(1).contains(&ParquetEncoding::RLE_DICTIONARY));
    assert!(!encodings(1).contains(&ParquetEncoding::BYTE_STREAM_SPLIT));
}

#[test]
fn a_dictionary_that_grows_too_large_falls_back_and_reads_back() {
    // The first batch repeats, so a dictionary is chosen; the later ones overflow it.
    let text = |row: usize| if row < 4096 { format!("{}", row % 10) } else { format!("{row:0>200}") };
    let all: StringArray = (0..20_000).map(|row| Some(text(row))).collect();
    let shapes: BinaryArray = (0..20_000).map(|row| Some(text(row).into_bytes())).collect();
    let column_of =
        |members: ArrayRef| group(vec![("metadata", members, false), ("value", nulls(20_000), true)], None);
    let event = column_of(array(shapes));
    let event = (variant(field("event", event.data_type(), true)), event);
    let written = batch(vec![ordinary("text", array(all)), event]);
    let batches: Vec<_> =
        (0..5).map(|part| written.slice(part * 4096, 4096.min(20_000 - part * 4096))).collect();
    let file = open(&write(&batches));
    let encodings: Vec<_> = file.row_groups()[0].column(0).encodings().collect();
    assert!(encodings.contains(&ParquetEncoding::RLE_DICTIONARY) && encodings.len() > 2, "{encodings:?}");
    let read = read(&file);
    assert_same(&column(&read, 0), written.column(0));
    assert_logically_equal(&column(&read, 1), written.column(1));
}

#[test]
fn a_single_leaf_is_read_with_only_its_parent_groups() {
    let written = batch(vec![shredded(ROWS)]);
    let file = open(&write(std::slice::from_ref(&written)));
    let leaves = file.metadata().file_metadata().schema_descr().columns();
    let path = ["event", "typed_value", "id", "typed_value"];
    let leaf = leaves.iter().position(|leaf| leaf.path().parts() == path).unwrap();
    let batches: Vec<_> = file.read(&file.scan(vec![leaf], 1 << 16)).collect::<Result<_, _>>().unwrap();
    let typed = batches[0].column(0).as_struct().column(0);
    let id = typed.as_struct().column(0).as_struct();
    assert_eq!(id.num_columns(), 1);
    assert_eq!(id.column(0).as_primitive::<Int64Type>().value(7), 7);
    let owned = Arc::new(open(&write(&[written]))).read_owned(file.scan(vec![leaf], 1 << 16));
    assert_eq!(owned.collect::<Result<Vec<_>, _>>().unwrap(), batches);
    let none: Vec<_> = file.read(&file.scan(vec![], 1 << 16)).collect::<Result<_, _>>().unwrap();
    assert_eq!((none[0].num_columns(), none[0].num_rows()), (0, ROWS));
    let error = file.read(&file.scan(vec![999], 10)).next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DataFile, "{error}");
}

struct Counted(Bytes, std::sync::Mutex<Vec<usize>>);

impl RangeReader for Counted {
    fn length(&self) -> Result<u64, Error> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, ranges: &[std::ops::Range<u64>]) -> Result<Vec<Bytes>, Error> {
        self.1.lock().unwrap().push(ranges.len());
        Ok(ranges.iter().map(|range| self.0.slice(range.start as usize..range.end as usize)).collect())
    }
}

#[test]
fn a_remote_file_needs_one_request_for_its_footer_and_one_per_row_group() {
    // A small file comes with its footer.
    for (rows, requests) in [(ROWS, vec![1]), (40 * ROWS, vec![1, 1])] {
        let remote = Arc::new(Counted(write(&[batch(vec![shredded(rows)])]), Default::default()));
        let file = ParquetFile::open(Source::Ranges(remote.clone())).unwrap();
        assert_eq!(read(&file).iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
        assert_eq!(*remote.1.lock().unwrap(), requests);
    }
}

#[test]
fn a_file_read_by_path_equals_its_bytes() {
    let bytes = write(&[batch(vec![shredded(ROWS)])]);
    let path = std::env::temp_dir().join(format!("delta-variant-{}.parquet", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let file = ParquetFile::open(Source::Path(path.clone())).unwrap();
    assert_eq!(read(&file), read(&open(&bytes)));
    std::fs::remove_file(path).unwrap();
    let error = ParquetFile::open(Source::Path("no/such/file".into())).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::DataFile, "{error}");
}

fn message(bytes: Vec<u8>) -> String {
    match ParquetFile::open(Source::Bytes(bytes.into())) {
        Ok(_) => "opened".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_file_that_is_not_parquet_is_an_error() {
    assert_eq!(message(vec![]), "the Parquet file has only 0 bytes");
    assert_eq!(
        message(b"PAR1 no footer here".to_vec()),
        "the Parquet file does not end with the magic bytes PAR1"
    );
    let claims = [b"PAR1".as_slice(), &1000_u32.to_le_bytes(), b"PAR1"].concat();
    assert_eq!(message(claims), "the Parquet file has 12 bytes, and says that its footer has 1000");
    assert_eq!(message(b"PAR1\x00\x00\x00\x00PARE".to_vec()), "the Parquet file has an encrypted footer");
}

/// A footer that has only a schema: `depth` nested groups, each with `children` as its child count, around a leaf.
fn deep_footer(depth: usize, children: u8) -> Vec<u8> {
    // Field 1 is the version, field 2 the schema: a list of structs with its length as a varint.
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    let count = depth + 1;
    footer.extend([(count & 0x7f) as u8 | 0x80, (count >> 7 & 0x7f) as u8 | 0x80, (count >> 14) as u8]);
    for _ in 0..depth {
        // Field 3 repetition required, field 4 name "g", field 5 one child.
        footer.extend([0x35, 0x00, 0x18, 0x01, b'g', 0x15, children * 2, 0x00]);
    }
    // Field 1 type INT32, field 3 repetition, field 4 name.
    footer.extend([0x15, 0x02, 0x25, 0x00, 0x18, 0x01, b'l', 0x00]);
    // Field 3 num_rows, field 4 no row groups.
    footer.extend([0x16, 0x00, 0x19, 0x0c, 0x00]);
    let length = footer.len() as u32;
    [b"PAR1".as_slice(), &footer, &length.to_le_bytes(), b"PAR1"].concat()
}

#[test]
fn a_schema_nested_too_deeply_is_rejected_before_it_is_built() {
    assert_eq!(message(deep_footer(100, 1)), "opened");
    let expected = format!("the Parquet file's metadata has a schema of more than {MAX_SCHEMA_DEPTH} levels");
    assert_eq!(message(deep_footer(1_000_000, 1)), expected);
    assert_eq!(
        message(deep_footer(3, 60)),
        "the Parquet file's metadata has a group with more children than the schema has elements"
    );
}

/// Open and read everything. The test only requires that nothing panics, hangs or allocates excessively.
fn survives(bytes: Vec<u8>) {
    let Ok(file) = ParquetFile::open(Source::Bytes(bytes.into())) else {
        return;
    };
    inspect(&file);
    let leaves = (0..file.metadata().file_metadata().schema_descr().num_columns()).collect();
    for batch in file.read(&file.scan(leaves, 1024)).take(100) {
        if batch.is_err() {
            return;
        }
    }
}

#[test]
fn truncated_files_are_errors() {
    let bytes = write(&[batch(vec![shredded(200)])]);
    for length in (0..bytes.len()).step_by(7) {
        assert!(ParquetFile::open(Source::Bytes(bytes.slice(..length))).is_err(), "{length} bytes");
    }
}

#[test]
fn mutated_files_never_panic() {
    let bytes = write(&[batch(vec![shredded(200)])]);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..3000 {
        let mut mutated = bytes.to_vec();
        for _ in 0..=random() % 4 {
            // Half of the changes go to the footer and the end of the file.
            let length = mutated.len() as u64;
            let offset =
                if round % 2 == 0 { random() % length } else { length - 1 - random() % (length / 3) };
            mutated[offset as usize] = random() as u8;
        }
        survives(mutated);
    }
}

#[test]
fn a_field_without_metadata_is_an_ordinary_column() {
    let column = group(vec![("metadata", nulls(2), true), ("value", nulls(2), true)], None);
    let schema = Schema::new_with_metadata(vec![field("s", column.data_type(), true)], HashMap::new());
    let written = RecordBatch::try_new(Arc::new(schema), vec![column.clone()]).unwrap();
    let file = open(&write(&[written]));
    assert_eq!(inspect(&file).variants, []);
    assert_eq!(file.arrow_schema().field(0).data_type(), column.data_type());
}
