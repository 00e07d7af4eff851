//! An adapter for arrow-rs, by WORKERS.md alone. This file answers cases of the kinds decode, encode, unshred and file.

mod shred;

use std::{error::Error, fs::File, io, path::Path};

use arrow::compute::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::variant::{Variant, VariantArray, VariantBuilder, unshred_variant};
use parquet_variant_json::{JsonToVariant, VariantToJson};
use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() {
    println!("{}", json!({"ready": arrow::ARROW_VERSION}));
    for line in io::stdin().lines() {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let mut answer = match run(&case) {
            Ok(Value::Null) => {
                json!({"outcome": "not offered", "message": "arrow-rs has nothing for the kind"})
            }
            Ok(content) => json!({"outcome": "answered", "content": content}),
            Err(error) => json!({"outcome": "refused", "message": error.to_string()}),
        };
        answer["number"] = case["number"].clone();
        println!("{answer}");
    }
}

/// Return the content of an answer, or null for a case that is not offered. A panic ends the worker: a crash.
fn run(case: &Value) -> Fallible<Value> {
    match case["kind"].as_str() {
        _ if case["options"] != json!({}) => Ok(Value::Null),
        Some("decode") => decode(&unhex(&case["input"]["metadata"]), &unhex(&case["input"]["value"])),
        Some("encode") => encode(text(&case["input"]["json"])),
        Some("shred") => shred::shred(&column(case)?, case),
        Some("unshred" | "file") => read(&column(case)?),
        _ => Ok(Value::Null),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn decode(metadata: &[u8], value: &[u8]) -> Fallible<Value> {
    Ok(json!({"json": Variant::try_new(metadata, value)?.to_json_string()?}))
}

fn unhex(value: &Value) -> Vec<u8> {
    let digits = text(value);
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn encode(text: &str) -> Fallible<Value> {
    let mut builder = VariantBuilder::new();
    builder.append_json(text)?;
    Ok(json!({"rows": [cell(builder)]}))
}

fn cell(builder: VariantBuilder) -> Value {
    let (metadata, value) = builder.finish();
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    json!({"$variant": [hex(metadata), hex(value)]})
}

/// Return the column of a file.
fn column(case: &Value) -> Fallible<VariantArray> {
    let file = File::open(Path::new(text(&case["folder"])).join(text(&case["input"]["file"])))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let schema = reader.schema().clone();
    let rows = concat_batches(&schema, &reader.build()?.collect::<Result<Vec<_>, _>>()?)?;
    Ok(VariantArray::try_new(&rows[case["input"]["column"].as_str().unwrap_or("v")])?)
}

fn read(column: &VariantArray) -> Fallible<Value> {
    let column = unshred_variant(column)?;
    let mut rows = vec![];
    for row in 0..column.len() {
        if column.is_null(row) {
            rows.push(Value::Null);
            continue;
        }
        let mut builder = VariantBuilder::new();
        builder.try_append_value(column.try_value(row)?)?;
        rows.push(cell(builder));
    }
    Ok(json!({"rows": rows}))
}
