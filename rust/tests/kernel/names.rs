//! The columns of a file under the names of a table: by their ids (PROTOCOL.md, Column Mapping), by their exact names,
//! and without regard to case.

use std::sync::Arc;

use _native::error::{Error, ErrorKind};
use _native::parquet::read::FileToOpen;
use _native::parquet::{ParquetFile, Source, TableColumns, VARIANT_EXTENSION};
use arrow_schema::{DataType, Field, Fields};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A file without rows of these columns, opened with the columns of a table.
fn open(columns: &str, fields: Vec<Field>, by_id: bool) -> ParquetFile {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {columns} }}")).unwrap());
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::new());
    SerializedFileWriter::new(&mut bytes, schema, properties).unwrap().close().unwrap();
    let table = TableColumns { fields: fields.into(), by_id };
    FileToOpen::read(Source::Bytes(bytes.into())).unwrap().open(Some(&table)).unwrap()
}

/// The path of each leaf, its members separated by dots.
fn leaves(file: &ParquetFile) -> Vec<String> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    columns.iter().map(|column| column.path().string()).collect()
}

fn int(name: &str) -> Field {
    Field::new(name, DataType::Int32, true)
}

fn with_id(field: Field, id: i32) -> Field {
    field.with_metadata([("PARQUET:field_id".to_owned(), id.to_string())].into())
}

fn group(name: &str, fields: Vec<Field>) -> Field {
    Field::new(name, DataType::Struct(fields.into()), true)
}

fn list(name: &str, element: Field) -> Field {
    Field::new(name, DataType::List(Arc::new(element)), true)
}

fn renamed(columns: &str, fields: Vec<Field>) -> Vec<String> {
    leaves(&open(columns, fields, false))
}

#[test]
fn exact_names_come_before_names_in_another_case() {
    let columns = "optional int32 a; optional int32 A; optional int32 B;";
    assert_eq!(renamed(columns, vec![int("a"), int("A"), int("B")]), ["a", "A", "B"]);
    assert_eq!(renamed(columns, vec![int("b"), int("A"), int("a")]), ["a", "A", "b"]);
    // The file has a column for `a`, so that only `A` is left for `A`.
    assert_eq!(renamed("optional int32 A; optional int32 c;", vec![int("a")]), ["a", "c"]);
    assert_eq!(renamed("optional int32 É;", vec![int("é")]), ["é"]);
}

#[test]
fn members_are_renamed_at_every_depth() {
    let file = open(
        "optional group S { optional int32 X; optional group T { optional int32 Y; } }",
        vec![group("s", vec![int("x"), group("t", vec![int("y"), int("z")])])],
        false,
    );
    assert_eq!(leaves(&file), ["s.x", "s.t.y"]);
    let expected = group("s", vec![int("x"), group("t", vec![int("y")])]);
    assert_eq!(*file.arrow_schema().fields(), Fields::from(vec![expected]));
}

/// The layouts of LogicalTypes.md, "Lists" and "Backward-compatibility rules".
#[test]
fn elements_of_lists_are_renamed_in_every_layout() {
    let fields = || vec![list("l", group("element", vec![int("a")]))];
    for (columns, leaf) in [
        (
            "optional group L (LIST) { repeated group list { optional group element { optional int32 A; } } }",
            "l.list.element.a",
        ),
        // The repeated group is the element: it has two members, or one of these names.
        (
            "optional group L (LIST) { repeated group element { optional int32 A; optional int32 B; } }",
            "l.element.a l.element.B",
        ),
        ("optional group L (LIST) { repeated group array { optional int32 A; } }", "l.array.a"),
        ("optional group L (LIST) { repeated group L_tuple { optional int32 A; } }", "l.L_tuple.a"),
        // A repeated field without a LIST around it.
        ("repeated group L { optional int32 A; }", "l.a"),
    ] {
        assert_eq!(renamed(columns, fields()).join(" "), leaf, "{columns}");
    }
    let numbers = || vec![list("l", int("element"))];
    assert_eq!(renamed("optional group L (LIST) { repeated int32 Item; }", numbers()), ["l.Item"]);
    assert_eq!(renamed("repeated int32 L;", numbers()), ["l"]);
}

#[test]
fn keys_and_values_of_maps_are_renamed() {
    let map = |entries: Fields| {
        let entries = Field::new("key_value", DataType::Struct(entries), false);
        Field::new("m", DataType::Map(Arc::new(entries), false), true)
    };
    let pair = map(vec![int("key"), group("value", vec![int("b")])].into());
    let columns = "optional group M (MAP) { repeated group entries {
        required int32 Key; optional group Value { optional int32 B; } } }";
    assert_eq!(renamed(columns, vec![pair.clone()]), ["m.entries.Key", "m.entries.Value.b"]);
    // A map of keys alone has no value to rename.
    let keys = "optional group M (MAP) { repeated group entries { required int32 Key; } }";
    assert_eq!(renamed(keys, vec![pair]), ["m.entries.Key"]);
}

#[test]
fn members_of_variants_keep_their_names() {
    let extension = ("ARROW:extension:name".to_owned(), VARIANT_EXTENSION.to_owned());
    let binary = |name: &str| Field::new(name, DataType::Binary, true);
    let variant = group("v", vec![binary("metadata"), binary("value")]).with_metadata([extension].into());
    let columns = "optional group V { required binary Metadata; optional binary value; }";
    assert_eq!(renamed(columns, vec![variant]), ["v.Metadata", "v.value"]);
}

#[test]
fn renamed_columns_keep_their_types() {
    let columns = "required int32 A (DECIMAL(5,2)); optional fixed_len_byte_array(4) B = 7;
        optional group C (LIST) = 8 { repeated group list { optional int64 element (TIMESTAMP(MICROS,true)); } }";
    let file = open(columns, vec![int("a"), int("b"), list("c", int("element"))], false);
    let expected = columns.replace(" A ", " a ").replace(" B ", " b ").replace(" C ", " c ");
    let expected = parse_message_type(&format!("message m {{ {expected} }}")).unwrap();
    assert_eq!(file.schema(), &expected);
}

#[test]
fn fields_with_an_id_are_found_by_it_alone() {
    let columns = "optional int32 x = 1; optional int32 b = 2; optional int32 c = 4; optional int32 D;";
    let fields = || vec![with_id(int("a"), 1), with_id(int("b"), 3), with_id(int("x"), 4), int("d")];
    // `b` of the table has another id, and its name is that of a column of the file; `x` is another column of it.
    assert_eq!(leaves(&open(columns, fields(), true)), ["a", "b#", "x", "d"]);
    // By names, ids do not matter.
    assert_eq!(leaves(&open(columns, fields(), false)), ["x", "b", "c", "d"]);
}

#[test]
fn a_column_that_is_not_of_the_table_gets_a_name_that_no_other_has() {
    let columns = "optional int32 a = 1; optional group b = 2 { optional int32 c; }";
    let fields = vec![with_id(int("b"), 1), with_id(int("b#"), 3), with_id(int("b##"), 4)];
    assert_eq!(leaves(&open(columns, fields, true)), ["b", "b###.c"]);
}

fn checked(file: &ParquetFile, path: &[&str]) -> Result<(), Error> {
    file.check_unambiguous(&path.iter().map(|name| name.to_string()).collect::<Vec<_>>())
}

#[test]
fn a_column_that_several_match_is_an_error_where_it_is_read() {
    let file = open(
        "optional group S { optional int32 ab; optional int32 AB; optional int32 c; }",
        vec![group("s", vec![int("Ab"), int("c")])],
        false,
    );
    assert_eq!(leaves(&file), ["s.ab", "s.AB", "s.c"]);
    for path in [&["s"][..], &["s", "Ab"], &["s", "Ab", "x"]] {
        let error = checked(&file, path).unwrap_err();
        assert_eq!((error.kind(), error.column()), (ErrorKind::DataFile, Some("s.Ab")));
        assert_eq!(
            error.message(),
            "cannot tell which column of the file is \"s.Ab\", because \"ab\" and \"AB\" have its name or its id; \
             rewrite the file with distinct names and ids"
        );
    }
    for path in [&["s", "c"][..], &["t"]] {
        assert_eq!(checked(&file, path), Ok(()));
    }
    let twice = open("optional int32 a = 1; optional int32 b = 1;", vec![with_id(int("c"), 1)], true);
    assert!(
        checked(&twice, &["c"]).unwrap_err().message().contains("\"a\" and \"b\" have its name or its id")
    );
}
