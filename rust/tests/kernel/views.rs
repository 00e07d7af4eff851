//! Footers that show shredded paths as plain columns.

use std::sync::Arc;

use _native::data_file::write::{DataFileWriter, Encoding, OnInvalid};
use _native::json::parse::ParseOptions;
use _native::parquet::view::{Content, NoView, View, ViewColumn};
use _native::parquet::{PageVersion, ParquetFile, Source, WriteOptions};
use _native::shred::ShreddingSchema;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Fields, Schema};

const GROUP_ROWS: usize = 40;

fn fields(fields: &[(&str, DataType)]) -> DataType {
    let fields = fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
    DataType::Struct(fields.collect::<Fields>())
}

fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", element, true)))
}

fn event() -> DataType {
    let user = fields(&[("id", DataType::Int64)]);
    fields(&[("user", user), ("tags", list(DataType::Utf8)), ("odd", DataType::Int64)])
}

/// `odd` is a string in row 71; each tenth row is NULL, each eleventh has a residual field.
fn text(row: usize) -> Option<String> {
    let odd = if row == 71 { r#""x""#.to_string() } else { row.to_string() };
    let rest = if row.is_multiple_of(11) { r#","more":{"a":1}"# } else { "" };
    (!row.is_multiple_of(10))
        .then(|| format!(r#"{{"user":{{"id":{row}}},"tags":["a",null,"{row}"],"odd":{odd}{rest}}}"#))
}

fn file(version: PageVersion) -> (Vec<u8>, ParquetFile) {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("event", DataType::Utf8, true),
    ]);
    let shredding = Field::new("typed_value", event(), true);
    let encodings = vec![Encoding::Plain, Encoding::Json(ShreddingSchema::from_arrow(&shredding).unwrap())];
    let options =
        WriteOptions { row_group_rows: GROUP_ROWS, page_version: version, ..WriteOptions::default() };
    let parse = ParseOptions { doubles: false, last_duplicate: false };
    let mut bytes = Vec::new();
    let mut writer =
        DataFileWriter::new(&mut bytes, &schema, encodings, parse, OnInvalid::Error, options).unwrap();
    for start in [0, GROUP_ROWS] {
        let ids = Int64Array::from_iter_values(start as i64..(start + GROUP_ROWS) as i64);
        let texts: StringArray = (start..start + GROUP_ROWS).map(text).collect();
        let columns = vec![Arc::new(ids) as ArrayRef, Arc::new(texts)];
        writer.write(&RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap()).unwrap();
    }
    writer.close().unwrap();
    let file = ParquetFile::open(Source::Bytes(bytes.clone().into())).unwrap();
    (bytes, file)
}

fn column(stored: &str, data_type: DataType, is_variant: bool) -> ViewColumn {
    let content = if is_variant { Content::Variant } else { Content::Plain };
    ViewColumn { stored: stored.into(), field: Field::new(stored, data_type, is_variant), content }
}

fn read(bytes: &[u8], view: &View) -> Vec<RecordBatch> {
    let shown = [&bytes[..view.data_end as usize], &view.footer].concat();
    let file = ParquetFile::open(Source::Bytes(shown.into())).unwrap();
    let leaves = (0..file.metadata().file_metadata().schema_descr().num_columns()).collect();
    file.read(&file.scan(leaves, 1000)).collect::<Result<_, _>>().unwrap()
}

#[test]
fn paths_are_plain_columns() {
    for version in [PageVersion::V1, PageVersion::V2] {
        let (bytes, file) = file(version);
        let user = fields(&[("id", DataType::Int64)]);
        let wanted = fields(&[("tags", list(DataType::Utf8)), ("user", user)]);
        let columns = [column("event", wanted, true), column("id", DataType::Int64, false)];
        let view = file.view(&columns, &[0, 1]).unwrap().unwrap();
        let mut row = 0_usize;
        for batch in read(&bytes, &view) {
            let ids = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().clone();
            let event = batch.column_by_name("event").unwrap().as_struct().column(0).as_struct().clone();
            let user = event.column_by_name("user").unwrap().as_struct().column(0).clone();
            let tags = event.column_by_name("tags").unwrap().as_list::<i32>().clone();
            for at in 0..batch.num_rows() {
                assert_eq!(ids.value(at), row as i64);
                assert_eq!(event.is_valid(at), !row.is_multiple_of(10));
                if event.is_valid(at) {
                    assert_eq!(user.as_primitive::<Int64Type>().value(at), row as i64);
                    let tags = tags.value(at);
                    let tags: Vec<Option<&str>> = tags.as_string::<i32>().iter().collect();
                    assert_eq!(tags, [Some("a"), None, Some(row.to_string().as_str())]);
                }
                row += 1;
            }
        }
        assert_eq!(row, 2 * GROUP_ROWS);
    }
}

fn path(name: &str, data_type: DataType, path: &[&str]) -> ViewColumn {
    let content = Content::Path(path.iter().map(|&step| step.into()).collect());
    ViewColumn { stored: "event".into(), field: Field::new(name, data_type, true), content }
}

#[test]
fn paths_are_columns_of_a_file_with_their_own_levels() {
    for version in [PageVersion::V1, PageVersion::V2] {
        let (_, file) = file(version);
        let columns = [
            path("tags", list(DataType::Utf8), &["tags"]),
            column("id", DataType::Int64, false),
            path("user", DataType::Int64, &["user", "id"]),
            path("again", DataType::Int64, &["user", "id"]),
        ];
        assert_eq!(
            file.view(&columns, &[0, 1]).unwrap().map(drop),
            Err(NoView("the columns have other levels than in the file".into()))
        );
        let mut bytes = Vec::new();
        file.write_view(&columns, &mut bytes).unwrap().unwrap();
        let file = ParquetFile::open(Source::Bytes(bytes.into())).unwrap();
        let levels: Vec<i16> = file
            .metadata()
            .file_metadata()
            .schema_descr()
            .columns()
            .iter()
            .map(|column| column.max_def_level())
            .collect();
        assert_eq!(levels, [3, 0, 1, 1]);
        let batches: Vec<RecordBatch> =
            file.read(&file.scan(vec![0, 1, 2, 3], 1000)).collect::<Result<_, _>>().unwrap();
        let wanted: Vec<Option<i64>> =
            (0..80_u64).map(|row| (!row.is_multiple_of(10)).then_some(row as i64)).collect();
        let read = |name: &str| -> Vec<Option<i64>> {
            let columns =
                batches.iter().map(|batch| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>());
            columns.flat_map(|column| column.iter().collect::<Vec<_>>()).collect()
        };
        assert_eq!(read("user"), wanted);
        assert_eq!(read("again"), wanted);
        assert_eq!(read("id"), (0..80).map(Some).collect::<Vec<_>>());
        let tags = batches.iter().flat_map(|batch| {
            batch.column_by_name("tags").unwrap().as_list::<i32>().iter().collect::<Vec<_>>()
        });
        for (row, tags) in tags.enumerate() {
            let tags = tags.map(|tags| {
                tags.as_string::<i32>().iter().map(|tag| tag.map(str::to_owned)).collect::<Vec<_>>()
            });
            let wanted = wanted[row].map(|row| vec![Some("a".to_owned()), None, Some(row.to_string())]);
            assert_eq!(tags, wanted);
        }
    }
}

#[test]
fn values_of_other_types_are_in_no_column_of_a_path() {
    let (_, file) = file(PageVersion::V1);
    let reason = |column| file.write_view(&[column], Vec::new()).unwrap().unwrap_err().0;
    assert_eq!(
        reason(path("odd", DataType::Int64, &["odd"])),
        "the file has values of other types at $['odd']"
    );
    assert_eq!(
        reason(path("id", DataType::Int64, &["user", "no"])),
        "the file has no column for $['user']['no']"
    );
    assert_eq!(
        reason(path("id", DataType::Int64, &["tags", "no"])),
        "the file has no column for $['tags']['no']"
    );
}

#[test]
fn row_groups_are_chosen() {
    let (bytes, file) = file(PageVersion::V1);
    let view = file.view(&[column("id", DataType::Int64, false)], &[1]).unwrap().unwrap();
    let rows: usize = read(&bytes, &view).iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, GROUP_ROWS);
    assert!(file.view(&[column("id", DataType::Int64, false)], &[2]).is_err());
}

#[test]
fn values_of_other_types_need_the_proof_of_the_row_groups() {
    let (_, file) = file(PageVersion::V1);
    let odd = || [column("event", fields(&[("odd", DataType::Int64)]), true)];
    assert!(file.view(&odd(), &[0]).unwrap().is_ok());
    assert_eq!(
        file.view(&odd(), &[0, 1]).unwrap().map(drop),
        Err(NoView("the file has values of other types at $['odd']".into()))
    );
}

#[test]
fn other_columns_than_the_file_has_are_not_shown() {
    let (_, file) = file(PageVersion::V1);
    let no_view = |column: ViewColumn| file.view(&[column], &[0]).unwrap().map(drop).unwrap_err().0;
    assert_eq!(no_view(column("absent", DataType::Int64, false)), r#"the file has no column "absent""#);
    assert_eq!(
        no_view(column("id", DataType::Int32, false)),
        r#"the column "id" of the file is Int64, not Int32"#
    );
    assert_eq!(
        no_view(column("event", fields(&[("more", DataType::Int64)]), true)),
        "the file has no column for $['more']"
    );
    assert_eq!(
        no_view(column("event", fields(&[("odd", DataType::Utf8)]), true)),
        "the values at $['odd'] are Int64, not Utf8"
    );
    let required =
        ViewColumn { field: Field::new("event", event(), false), ..column("event", event(), true) };
    assert_eq!(no_view(required), r#"the column "event" of the file is optional"#);
}
