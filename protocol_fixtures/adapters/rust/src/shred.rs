//! The kind shred.

use std::{env, fs::File, sync::Arc};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit::*};
use parquet::arrow::ArrowWriter;
use parquet::variant::{VariantArray, shred_variant};
use serde_json::{Value, json};

use crate::Fallible;

/// Write a column by the shredding schema of a case.
pub fn shred(column: &VariantArray, case: &Value) -> Fallible<Value> {
    let shredded = match &case["input"]["schema"] {
        Value::Null => column.clone(),
        schema => shred_variant(column, &data_type(schema))?,
    };
    let schema = Arc::new(Schema::new(vec![shredded.field("v")]));
    let out = env::temp_dir().join(format!("{}.parquet", case["number"]));
    let mut writer = ArrowWriter::try_new(File::create(&out)?, schema.clone(), None)?;
    writer.write(&RecordBatch::try_new(schema, vec![ArrayRef::from(shredded)])?)?;
    writer.close()?;
    Ok(json!({"file": out}))
}

/// Return the type that `shred_variant` takes for a shredding schema.
fn data_type(schema: &Value) -> DataType {
    let field = |name: &str, schema: &Value| Field::new(name, data_type(schema), true);
    match schema {
        Value::Null => DataType::Null,
        Value::String(leaf) => leaf_type(leaf),
        _ => match schema["object"].as_object() {
            Some(fields) => DataType::Struct(fields.iter().map(|(name, part)| field(name, part)).collect()),
            None => DataType::List(Arc::new(field("element", &schema["array"]))),
        },
    }
}

fn leaf_type(leaf: &str) -> DataType {
    match leaf.split(['(', ',', ')']).collect::<Vec<_>>()[..] {
        ["binary"] => DataType::Binary,
        ["boolean"] => DataType::Boolean,
        ["date"] => DataType::Date32,
        ["decimal", precision, scale, _] => {
            DataType::Decimal128(precision.parse().unwrap(), scale.parse().unwrap())
        }
        ["double"] => DataType::Float64,
        ["float"] => DataType::Float32,
        ["int8"] => DataType::Int8,
        ["int16"] => DataType::Int16,
        ["int32"] => DataType::Int32,
        ["int64"] => DataType::Int64,
        ["string"] => DataType::Utf8,
        ["time"] => DataType::Time64(Microsecond),
        ["timestamp"] => DataType::Timestamp(Microsecond, Some("UTC".into())),
        ["timestamp_nanos"] => DataType::Timestamp(Nanosecond, Some("UTC".into())),
        ["timestamp_ntz"] => DataType::Timestamp(Microsecond, None),
        ["timestamp_ntz_nanos"] => DataType::Timestamp(Nanosecond, None),
        ["uuid"] => DataType::FixedSizeBinary(16),
        _ => panic!("{leaf} is not a leaf of a shredding schema"),
    }
}
