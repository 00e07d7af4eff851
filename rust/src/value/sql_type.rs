//! The SQL names of Arrow types, for messages about types that a user wrote in SQL.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};

/// Return the SQL name of a type, as `delta_variant/expressions/types.py` writes it: `decimal(18,2)`.
///
/// A type that SQL does not have keeps its Arrow name.
pub fn sql_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "int",
        DataType::Int64 => "bigint",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        DataType::Boolean => "boolean",
        DataType::Binary => "binary",
        DataType::Date32 => "date",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz",
        DataType::Struct(_) if is_variant(data_type) => "variant",
        DataType::Decimal128(precision, scale) => return format!("decimal({precision},{scale})"),
        DataType::List(element) => return format!("array<{}>", sql_name(element.data_type())),
        DataType::Map(entries, _) => return map_name(entries),
        DataType::Struct(fields) => {
            let name = |field: &Arc<Field>| format!("`{}`:{}", field.name(), sql_name(field.data_type()));
            let fields = fields.iter().map(name);
            return format!("struct<{}>", fields.collect::<Vec<_>>().join(","));
        }
        other => return other.to_string(),
    };
    name.to_owned()
}

/// Whether `target` is a Variant: a struct of binary `metadata` and `value`.
pub fn is_variant(target: &DataType) -> bool {
    let DataType::Struct(fields) = target else { return false };
    let has = |name| fields.iter().any(|f| f.name() == name && *f.data_type() == DataType::Binary);
    fields.len() == 2 && has("metadata") && has("value")
}

fn map_name(entries: &Field) -> String {
    match entries.data_type() {
        DataType::Struct(fields) => {
            let names = fields.iter().map(|field| sql_name(field.data_type()));
            format!("map<{}>", names.collect::<Vec<_>>().join(","))
        }
        other => format!("map<{other}>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_sql() {
        let list = |element| DataType::List(Arc::new(Field::new("element", element, true)));
        let fields = |types: [(&str, DataType); 2]| {
            DataType::Struct(types.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec().into())
        };
        let entries = fields([("key", DataType::Utf8), ("value", DataType::Int32)]);
        let cases = [
            (DataType::Decimal128(18, 2), "decimal(18,2)"),
            (DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into())), "timestamp"),
            (DataType::Timestamp(TimeUnit::Microsecond, None), "timestamp_ntz"),
            (DataType::Timestamp(TimeUnit::Nanosecond, None), "Timestamp(ns)"),
            (list(fields([("metadata", DataType::Binary), ("value", DataType::Binary)])), "array<variant>"),
            (DataType::Map(Arc::new(Field::new("entries", entries, false)), false), "map<string,int>"),
            (
                fields([("a", DataType::Int8), ("b", list(DataType::Date32))]),
                "struct<`a`:tinyint,`b`:array<date>>",
            ),
            (DataType::UInt8, "UInt8"),
        ];
        for (data_type, expected) in cases {
            assert_eq!(sql_name(&data_type), expected);
        }
    }
}
