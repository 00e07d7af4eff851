//! Rows that leave a value in a kept-empty `value` are separated, and all other rows stay in the file.

use std::sync::Arc;

use _native::data_file::residual_rows::is_separated;
use _native::data_file::write::{DataFileWriter, Encoding, OnInvalid};
use _native::json::parse::ParseOptions;
use _native::parquet::{ParquetFile, Source, WriteOptions};
use _native::shred::print::to_json;
use _native::shred::unshred::unshred;
use _native::shred::{Numeric, OnConflict, ShreddingSchema};
use _native::value::Zone;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use proptest::prelude::*;

fn shredding() -> ShreddingSchema {
    let lat = Field::new("lat", DataType::Int64, true);
    let fields = Fields::from(vec![
        Field::new("geo", DataType::Struct(vec![lat].into()), true),
        Field::new("tags", DataType::new_list(DataType::Utf8, true), true),
        Field::new("x", DataType::Int64, true),
    ]);
    ShreddingSchema::from_arrow(&Field::new("typed_value", DataType::Struct(fields), true)).unwrap()
}

/// What became of rows that have their number as `id`.
struct Written {
    file: ParquetFile,
    stayed: Vec<i64>,
    separated: Vec<i64>,
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn read(file: &ParquetFile) -> Vec<RecordBatch> {
    let leaves = (0..file.metadata().file_metadata().schema_descr().num_columns()).collect();
    file.read(&file.scan(leaves, 1 << 20)).collect::<Result<_, _>>().unwrap()
}

/// Write batches of an `id` and a column, and read the file.
fn write_batches(column: &Field, encoding: Encoding, batches: &[(i64, ArrayRef)]) -> Written {
    write_parsed(ParseOptions::default(), column, encoding, batches)
}

fn write_parsed(
    parse: ParseOptions,
    column: &Field,
    encoding: Encoding,
    batches: &[(i64, ArrayRef)],
) -> Written {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false), column.clone()]));
    let mut bytes = Vec::new();
    let encodings = vec![Encoding::Plain, encoding];
    let options = WriteOptions::default();
    let mut writer =
        DataFileWriter::new(&mut bytes, &schema, encodings, parse, OnInvalid::Null, options).unwrap();
    writer.separate(true).unwrap();
    let mut separated = Vec::new();
    for (first, array) in batches {
        let numbers = Int64Array::from_iter_values(*first..first + array.len() as i64);
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(numbers), array.clone()]).unwrap();
        writer.write(&batch).unwrap();
        for rows in writer.take_residual_rows(0).unwrap() {
            assert_eq!(rows.schema(), schema);
            separated.push(rows);
        }
    }
    writer.close().unwrap();
    let file = ParquetFile::open(Source::Bytes(bytes.into())).unwrap();
    Written { stayed: ids(&read(&file)), separated: ids(&separated), file }
}

/// A field of Variants, which the schema of a file does not mark.
fn variant_field(data_type: &DataType) -> Field {
    let name = [("ARROW:extension:name".to_owned(), "arrow.parquet.variant".to_owned())];
    Field::new("event", data_type.clone(), true).with_metadata(name.into())
}

fn write(texts: &[&str]) -> Written {
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    write_batches(&Field::new("event", DataType::Utf8, true), Encoding::Json(shredding()), &[(0, texts)])
}

#[test]
fn values_of_another_type_and_leftover_fields_are_odd() {
    let written = write(&[
        r#"{"x": 1, "geo": {"lat": 2}, "tags": ["a"]}"#,
        r#"{"x": "1"}"#,
        r#"{"x": 3, "new": true}"#,
        r#"{"geo": "DE"}"#,
        r#"{"geo": {"lat": 2, "new": 1}}"#,
        r#"{"tags": ["a", "b"]}"#,
        r#"{"tags": []}"#,
        r#"{"tags": ["a", 7]}"#,
        r#"{"tags": 7}"#,
        "{}",
        "[]",
    ]);
    assert_eq!(written.separated, [1, 2, 3, 4, 10]);
    // No engine reads paths through lists alone.
    assert_eq!(written.stayed, [0, 5, 6, 7, 8, 9]);
    assert!(is_separated(&written.file));
}

#[test]
fn a_leaf_without_typed_values_makes_no_row_odd() {
    let written = write(&[r#"{"x": {"a": 1}}"#, r#"{"geo": {"lat": "north"}}"#, r#"{"new": 1}"#, "{}"]);
    assert_eq!(written.separated, [2]);
    assert!(is_separated(&written.file));
}

#[test]
fn a_leaf_of_several_types_is_given_up_after_some_values() {
    let texts = |residual: usize, typed: usize| {
        let mut texts = vec![r#"{"x": "1"}"#; residual];
        texts.extend(vec![r#"{"x": 1}"#; typed]);
        texts
    };
    // 63 values are too few to tell, and of 64 at most 16 may be residual.
    assert_eq!(write(&texts(20, 43)).separated.len(), 20);
    assert_eq!(write(&texts(16, 48)).separated.len(), 16);
    assert_eq!(write(&texts(17, 47)).separated.len(), 0);
}

#[test]
fn nulls_of_any_kind_are_not_odd() {
    let written = write(&["null", r#"{"x": null, "geo": null}"#, r#"{"tags": [null]}"#, "not JSON", "{}"]);
    assert_eq!(written.separated, [] as [i64; 0]);
    assert!(is_separated(&written.file));
}

/// `count` texts, of which each one in `part` has an `x` of another type.
fn with_residual_rows(count: usize, part: usize) -> Vec<&'static str> {
    (0..count).map(|row| if row % part == 0 { r#"{"x": "1"}"# } else { r#"{"x": 1}"# }).collect()
}

#[test]
fn a_path_with_too_many_residual_rows_is_given_up_alone() {
    let mut texts = with_residual_rows(6000, 3);
    texts[1] = r#"{"new": 1}"#;
    let written = write(&texts);
    assert_eq!(written.separated, [1]);
    // The file keeps the path `x` as it is, and rewrites may do so, too.
    assert!(is_separated(&written.file));
}

#[test]
fn rows_are_separated_up_to_a_quarter() {
    let written = write(&with_residual_rows(6000, 4));
    assert_eq!(written.separated.len(), 1500);
    assert_eq!(written.stayed.len(), 4500);
}

#[test]
fn the_rarest_residual_rows_are_separated_first() {
    let mut texts = with_residual_rows(6000, 5);
    (0..6000).filter(|row| row % 10 == 1).for_each(|row| texts[row] = r#"{"new": 7}"#);
    // A tenth and a fifth of the rows are more than a quarter.
    let written = write(&texts);
    assert!(written.separated.iter().all(|row| row % 10 == 1) && written.separated.len() == 600);
}

#[test]
fn a_file_whose_rows_change_stops_separating() {
    let field = Field::new("event", DataType::Utf8, true);
    let clean: ArrayRef = Arc::new(StringArray::from(vec![r#"{"x": 1}"#; 3000]));
    let residual: ArrayRef = Arc::new(StringArray::from(vec![r#"{"x": "1"}"#; 900]));
    let batches = [(0, clean), (10_000, residual.clone()), (20_000, residual.clone()), (30_000, residual)];
    let written = write_batches(&field, Encoding::Json(shredding()), &batches);
    // 900 of 3,900 rows are less than a quarter, and 1,800 of 4,800 are more.
    assert_eq!(written.separated, (10_000..10_900).collect::<Vec<_>>());
    assert_eq!(written.stayed.len(), 3000 + 1800);
}

#[test]
fn a_run_of_many_residual_rows_is_not_separated() {
    let field = Field::new("event", DataType::Utf8, true);
    let array =
        |text: &'static str, count: usize| -> ArrayRef { Arc::new(StringArray::from(vec![text; count])) };
    let write_run = |clean: usize, residual: usize| {
        let rows = [array(r#"{"geo": {"lat": 1}}"#, clean), array(r#"{"geo": "DE"}"#, residual)];
        let [clean, residual] = rows;
        write_batches(&field, Encoding::Json(shredding()), &[(0, clean), (1_000_000, residual)])
            .separated
            .len()
    };
    // 1,100 rows are more than a fiftieth of 50,000, and less of 60,000.
    assert_eq!(write_run(50_000, 1_100), 0);
    assert_eq!(write_run(60_000, 1_100), 1_100);
    assert_eq!(write_run(3_000, 1_000), 1_000);
}

#[test]
fn variants_are_separated_whether_shredded_before_or_not() {
    let texts = [r#"{"x": 1}"#, r#"{"x": "1"}"#, r#"{"tags": ["a", 2]}"#, r#"{"new": 2}"#];
    let all = write_batches(
        &Field::new("event", DataType::Utf8, true),
        Encoding::Json(ShreddingSchema::Untyped),
        &[(0, Arc::new(StringArray::from(texts.to_vec())))],
    );
    let batch = read(&all.file).remove(0);
    let variants = unshred(batch.column(1).as_struct(), OnConflict::Error).unwrap();
    let plain = variant_field(variants.data_type());
    let encoding = Encoding::Variant(shredding(), Numeric::Value);
    let written = write_batches(&plain, encoding, &[(0, Arc::new(variants.clone()))]);
    assert_eq!((written.separated, written.stayed), (vec![1, 3], vec![0, 2]));

    let shredded = _native::shred::variants::shred(&variants, shredding(), Numeric::Value).unwrap();
    let field = variant_field(shredded.data_type());
    let shredded: ArrayRef = Arc::new(shredded);
    let batches = [(0, shredded.slice(0, 1)), (1, shredded.slice(1, 2)), (3, shredded.slice(3, 1))];
    let written = write_batches(&field, Encoding::Plain, &batches);
    assert_eq!((written.separated, written.stayed), (vec![1, 3], vec![0, 2]));
}

/// JSON text whose values often have no column, and whose objects may have two fields of one name.
fn text() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "null",
        "1",
        "1",
        "1.5",
        "\"a\"",
        "true",
        "{}",
        r#"{"lat": 1}"#,
        r#"{"lat": 1, "new": 2}"#,
        r#"{"lat": "1"}"#,
        "[]",
        r#"["a"]"#,
        r#"["a", 1, null, 2]"#,
    ]);
    let field = (prop::sample::select(vec!["x", "geo", "tags", "new"]), value.clone());
    let object = prop::collection::vec(field, 0..5).prop_map(|fields| {
        let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name:?}: {value}")).collect();
        format!("{{{}}}", fields.join(", "))
    });
    let clean = Just(r#"{"x": 1, "geo": {"lat": 2}, "tags": ["a"]}"#.to_owned());
    prop_oneof![8 => clean, 4 => object, 1 => value.prop_map(str::to_owned), 1 => Just("not JSON".to_owned())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The parser leaves out the rows that are selected among those of another input.
    #[test]
    fn parsed_rows_are_separated_like_those_of_variants(
        texts in prop::collection::vec(text(), 1..60),
        last_duplicate in any::<bool>(),
    ) {
        let parse = ParseOptions { last_duplicate, ..ParseOptions::default() };
        // Enough rows that groups are given up, in several chunks.
        let json: ArrayRef = Arc::new(texts.iter().cycle().take(6000).map(Some).collect::<StringArray>());
        let parts = |array: &ArrayRef| [0, 2000, 4000].map(|first| (first, array.slice(first as usize, 2000)));
        let column = Field::new("event", DataType::Utf8, true);
        let all = write_parsed(parse, &column, Encoding::Json(ShreddingSchema::Untyped), &[(0, json.clone())]);
        let batches = read(&all.file);
        let batch = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap();
        let variants: ArrayRef =
            Arc::new(unshred(batch.column(1).as_struct(), OnConflict::Error).unwrap());
        let plain = variant_field(variants.data_type());

        let parsed = write_parsed(parse, &column, Encoding::Json(shredding()), &parts(&json));
        let selected =
            write_batches(&plain, Encoding::Variant(shredding(), Numeric::Value), &parts(&variants));
        prop_assert_eq!(parsed.separated, selected.separated);
        prop_assert_eq!(parsed.stayed, selected.stayed);
        let [parsed, selected] = [&parsed.file, &selected.file].map(values);
        prop_assert_eq!(parsed, selected);
    }
}

/// The Variants of a file as text.
fn values(file: &ParquetFile) -> Vec<Option<String>> {
    let texts = |batch: &RecordBatch| {
        let text = to_json(batch.column(1).as_struct(), OnConflict::Error, &Zone::UTC).unwrap();
        text.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
    };
    read(file).iter().flat_map(texts).collect()
}

#[test]
fn what_null_groups_have_below_does_not_count() {
    let text: ArrayRef = Arc::new(StringArray::from(vec![r#"{"x": "1"}"#, r#"{"x": 1}"#]));
    let mut shredder = _native::json::parse::JsonShredder::new(shredding(), ParseOptions::default());
    _native::json::parse::parse_rows(&mut shredder, &text, |_, _| {}).unwrap();
    let group = shredder.take().unwrap();
    let (fields, columns, _) = group.into_parts();
    let nulls = Some(vec![false, true].into());
    let group = StructArray::try_new(fields, columns, nulls).unwrap();
    let field = variant_field(group.data_type());
    let written = write_batches(&field, Encoding::Plain, &[(0, Arc::new(group))]);
    assert_eq!((written.separated, written.stayed), (vec![], vec![0, 1]));
}

/// Write 2,000 rows to a file that does not separate rows.
fn inline(residual_rows: usize) -> ParquetFile {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("event", DataType::Utf8, true),
    ]);
    let texts: StringArray = (0..2000)
        .map(|row| Some(if row < residual_rows { r#"{"x": "1"}"# } else { r#"{"x": 1}"# }))
        .collect();
    let ids = Int64Array::from_iter_values(0..2000);
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::new(ids), Arc::new(texts)]).unwrap();
    let mut bytes = Vec::new();
    let encodings = vec![Encoding::Plain, Encoding::Json(shredding())];
    // Only files with an index of their pages are copied.
    let options = WriteOptions { row_group_rows: 1000, ..WriteOptions::default() };
    let parse = ParseOptions::default();
    let mut writer =
        DataFileWriter::new(&mut bytes, &schema, encodings, parse, OnInvalid::Error, options).unwrap();
    writer.write(&batch).unwrap();
    assert!(writer.take_residual_rows(0).unwrap().is_empty());
    writer.close().unwrap();
    ParquetFile::open(Source::Bytes(bytes.into())).unwrap()
}

#[test]
fn row_groups_with_residual_rows_are_not_copied() {
    // Without any value of its type, a column gains nothing by an empty `value`.
    for (residual_rows, expected) in [(0, [true, true]), (1, [false, true]), (2000, [true, true])] {
        let file = inline(residual_rows);
        assert_eq!(is_separated(&file), residual_rows != 1);
        let [id, event] = [0, 1].map(|column| file.arrow_schema().field(column).clone());
        let schema = Schema::new(vec![id, variant_field(event.data_type())]);
        let mut writer = DataFileWriter::new(
            Vec::new(),
            &schema,
            vec![Encoding::Plain, Encoding::Plain],
            ParseOptions::default(),
            OnInvalid::Error,
            WriteOptions::default(),
        )
        .unwrap();
        writer.separate(true).unwrap();
        assert_eq!([0, 1].map(|row_group| writer.copy(&file, row_group, &[]).unwrap()), expected);
        writer.separate(false).unwrap();
        assert!(writer.copy(&file, 0, &[]).unwrap());
    }
}

#[test]
fn residual_rows_of_transferred_row_groups_are_separated() {
    let file = inline(3);
    let [id, event] = [0, 1].map(|column| file.arrow_schema().field(column).clone());
    let schema = Schema::new(vec![id, variant_field(event.data_type())]);
    let encodings = vec![Encoding::Plain, Encoding::Plain];
    let (parse, options) = (ParseOptions::default(), WriteOptions::default());
    let mut bytes = Vec::new();
    let mut writer =
        DataFileWriter::new(&mut bytes, &schema, encodings, parse, OnInvalid::Error, options).unwrap();
    writer.separate(true).unwrap();
    assert!(writer.transfer(&file, 0).unwrap() && writer.transfer(&file, 1).unwrap());
    assert!(writer.take_residual_rows(4).unwrap().is_empty());
    writer.flush().unwrap();
    assert_eq!(ids(&writer.take_residual_rows(3).unwrap()), [0, 1, 2]);
    assert_eq!(writer.close().unwrap().0.rows, 1997);
    let written = ParquetFile::open(Source::Bytes(bytes.into())).unwrap();
    assert_eq!(ids(&read(&written)), (3..2000).collect::<Vec<_>>());
    assert!(is_separated(&written));
}

#[test]
fn row_groups_of_another_schema_are_not_transferred() {
    let file = inline(0);
    let schema = Schema::new(vec![Field::new("id", DataType::Int64, false)]);
    let (parse, options) = (ParseOptions::default(), WriteOptions::default());
    let mut writer =
        DataFileWriter::new(Vec::new(), &schema, vec![Encoding::Plain], parse, OnInvalid::Error, options)
            .unwrap();
    assert!(!writer.transfer(&file, 0).unwrap());
    assert_eq!(writer.close().unwrap().0.rows, 0);
}
