//! The Parquet types of `typed_value`: those of the specification are read, all others are rejected, even in a file
//! without rows.

use std::sync::Arc;

use _native::data_file::read::{DataFileReader, Projection, What};
use _native::error::{Error, ErrorKind};
use _native::parquet::read::{ParquetFile, Source};
use _native::shred::OnConflict;
use arrow_schema::Field;
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Open a file whose Variant column `v` has this `typed_value`.
fn open(typed_value: &str) -> Result<(), Error> {
    let message = format!(
        "message schema {{ optional group v {{ required binary metadata; optional binary value; {typed_value} }} }}"
    );
    let schema = Arc::new(parse_message_type(&message).unwrap());
    let mut bytes = Vec::new();
    SerializedFileWriter::new(&mut bytes, schema, Arc::new(WriterProperties::new()))
        .unwrap()
        .close()
        .unwrap();
    let file = Arc::new(ParquetFile::open(Source::Bytes(bytes.into())).unwrap());
    let extension = (EXTENSION_TYPE_NAME_KEY.to_string(), "arrow.parquet.variant".to_string());
    let field = Field::new("v", file.arrow_schema().field(0).data_type().clone(), true)
        .with_metadata([extension].into());
    let column = Projection { column: vec!["v".into()], what: What::Column, field };
    DataFileReader::new(file, vec![column], None, OnConflict::Error, None).map(drop)
}

fn leaf(leaf: &str) -> Result<(), Error> {
    open(&format!("optional {leaf};"))
}

#[test]
fn every_type_of_the_table_of_shredded_value_types_is_read() {
    for typed_value in [
        "boolean typed_value",
        "int32 typed_value (INTEGER(8,true))",
        "int32 typed_value (INTEGER(16,true))",
        "int32 typed_value (INTEGER(32,true))",
        "int32 typed_value",
        "int32 typed_value (INT_8)",
        "int64 typed_value (INTEGER(64,true))",
        "int64 typed_value",
        "float typed_value",
        "double typed_value",
        "int32 typed_value (DECIMAL(9,2))",
        "int64 typed_value (DECIMAL(18,2))",
        "fixed_len_byte_array(16) typed_value (DECIMAL(38,2))",
        "binary typed_value (DECIMAL(38,2))",
        "int32 typed_value (DATE)",
        "int64 typed_value (TIME(MICROS,false))",
        "int64 typed_value (TIMESTAMP(MICROS,true))",
        "int64 typed_value (TIMESTAMP(MICROS,false))",
        "int64 typed_value (TIMESTAMP(NANOS,true))",
        "int64 typed_value (TIMESTAMP(NANOS,false))",
        "binary typed_value",
        "binary typed_value (STRING)",
        "binary typed_value (UTF8)",
        "fixed_len_byte_array(16) typed_value (UUID)",
    ] {
        assert_eq!(leaf(typed_value), Ok(()), "{typed_value}");
    }
}

#[test]
fn every_other_type_is_rejected() {
    for (typed_value, name) in [
        ("int32 typed_value (INTEGER(8,false))", "INT(8,false)"),
        ("int32 typed_value (UINT_32)", "UINT_32"),
        ("int64 typed_value (INTEGER(64,false))", "INT(64,false)"),
        ("int96 typed_value", "INT96"),
        ("int64 typed_value (TIME(MICROS,true))", "TIME(true,MICROS)"),
        ("int64 typed_value (TIME(NANOS,false))", "TIME(false,NANOS)"),
        ("int32 typed_value (TIME(MILLIS,false))", "TIME(false,MILLIS)"),
        ("int64 typed_value (TIMESTAMP(MILLIS,true))", "TIMESTAMP(true,MILLIS)"),
        ("binary typed_value (JSON)", "JSON"),
        ("binary typed_value (BSON)", "BSON"),
        ("binary typed_value (ENUM)", "ENUM"),
        ("fixed_len_byte_array(16) typed_value", "FIXED_LEN_BYTE_ARRAY"),
        ("fixed_len_byte_array(2) typed_value (FLOAT16)", "FLOAT16"),
        ("fixed_len_byte_array(12) typed_value (INTERVAL)", "INTERVAL"),
    ] {
        let error = leaf(typed_value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shredding, "{error}");
        let expected = format!("its `typed_value` is {name}, which cannot be a shredded type");
        assert_eq!(error.path(), Some("$"), "{typed_value}: {error}");
        assert!(error.message().contains(&expected), "{typed_value}: {error}");
    }
}

#[test]
fn an_error_names_the_path_of_a_nested_type() {
    let typed_value = "optional group typed_value { required group a { optional group typed_value (LIST) {
        repeated group list { required group element { optional int96 typed_value; } } } } }";
    assert_eq!(open(typed_value).unwrap_err().path(), Some("$['a'][*]"));
}

#[test]
fn lists_of_two_levels_maps_and_repeated_fields_are_rejected() {
    for (typed_value, why) in [
        (
            "optional group typed_value (LIST) { repeated group array { optional int64 typed_value;
             optional binary value; } }",
            "is a list of two levels",
        ),
        ("optional group typed_value (LIST) { repeated int64 element; }", "is a list of two levels"),
        ("repeated int64 typed_value;", "is repeated"),
        ("repeated group typed_value { optional binary value; }", "is repeated"),
        (
            "optional group typed_value (MAP) { repeated group key_value { required binary key;
             optional int64 value; } }",
            "is MAP",
        ),
    ] {
        let error = open(typed_value).unwrap_err().to_string();
        assert!(error.contains(why), "{typed_value}: {error}");
    }
}
