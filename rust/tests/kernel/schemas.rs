//! Shredding schemas and the Arrow types of their leaves (VariantShredding.md, Shredded Value Types).

use std::sync::Arc;

use _native::error::ErrorKind;
use _native::shred::schema::{LeafType, MAX_SCHEMA_DEPTH, ShreddingSchema};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

/// The types, the Arrow types of their columns, the ids of the primitive types of exact numbers, and whether Spark 4
/// reads them in a `typed_value`.
fn leaves() -> Vec<(LeafType, DataType, Option<u8>, bool)> {
    let timestamp = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
    let (micros, nanos) = (TimeUnit::Microsecond, TimeUnit::Nanosecond);
    let decimal = |precision, scale| {
        let leaf = LeafType::Decimal { precision, scale: scale as u8 };
        (leaf, DataType::Decimal128(precision, scale))
    };
    let [small, middle, large] = [decimal(9, 2), decimal(18, 2), decimal(38, 2)];
    vec![
        (LeafType::Boolean, DataType::Boolean, None, true),
        (LeafType::Int8, DataType::Int8, Some(3), true),
        (LeafType::Int16, DataType::Int16, Some(4), true),
        (LeafType::Int32, DataType::Int32, Some(5), true),
        (LeafType::Int64, DataType::Int64, Some(6), true),
        (LeafType::Float, DataType::Float32, None, true),
        (LeafType::Double, DataType::Float64, None, true),
        (small.0, small.1, Some(8), true),
        (middle.0, middle.1, Some(9), true),
        (large.0, large.1, Some(10), true),
        (LeafType::Date, DataType::Date32, None, true),
        (LeafType::Time, DataType::Time64(micros), None, false),
        (LeafType::Timestamp, timestamp(micros, Some("UTC")), None, true),
        (LeafType::TimestampNtz, timestamp(micros, None), None, true),
        (LeafType::TimestampNanos, timestamp(nanos, Some("UTC")), None, false),
        (LeafType::TimestampNtzNanos, timestamp(nanos, None), None, false),
        (LeafType::Binary, DataType::Binary, None, true),
        (LeafType::String, DataType::Utf8, None, true),
        (LeafType::Uuid, DataType::FixedSizeBinary(16), None, false),
    ]
}

fn field(data_type: DataType) -> Field {
    Field::new("f", data_type, true)
}

fn uuid() -> Field {
    let extension = [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())];
    field(DataType::FixedSizeBinary(16)).with_metadata(extension.into())
}

#[test]
fn every_type_has_its_arrow_type() {
    for (leaf, data_type, _, spark) in leaves() {
        let arrow = if leaf == LeafType::Uuid { uuid() } else { field(data_type.clone()) };
        assert_eq!(leaf.data_type(), data_type);
        assert_eq!(leaf.to_arrow("f"), arrow);
        assert_eq!(leaf.is_spark_compatible(), spark, "{leaf:?}");
        let schema = ShreddingSchema::from_arrow(&arrow).unwrap();
        assert_eq!(schema, ShreddingSchema::Leaf(leaf));
        assert_eq!(schema.to_arrow("f"), arrow);
    }
    for (other, leaf) in [
        (DataType::Decimal32(9, 2), LeafType::Decimal { precision: 9, scale: 2 }),
        (DataType::Decimal64(18, 2), LeafType::Decimal { precision: 18, scale: 2 }),
        (DataType::LargeUtf8, LeafType::String),
        (DataType::Utf8View, LeafType::String),
        (DataType::LargeBinary, LeafType::Binary),
        (DataType::BinaryView, LeafType::Binary),
    ] {
        assert_eq!(ShreddingSchema::from_arrow(&field(other)), Ok(ShreddingSchema::Leaf(leaf)));
    }
}

/// The first byte of a primitive value is its type shifted by two bits, and a decimal has its scale next
/// (VariantEncoding.md, Encoding types).
#[test]
fn exact_numbers_have_the_type_of_their_header() {
    for (leaf, _, number, _) in leaves() {
        let Some(number) = number else { continue };
        for id in [3, 4, 5, 6, 8, 9, 10] {
            assert_eq!(leaf.is_type_of_number(&[id << 2, 2]), id == number, "{leaf:?} {id}");
        }
        let is_decimal = matches!(leaf, LeafType::Decimal { .. });
        assert!(!is_decimal || !leaf.is_type_of_number(&[number << 2, 3]), "{leaf:?}");
        // A double, a short string and an object are not exact numbers.
        for other in [&[7 << 2][..], &[0x05, b'a'], &[0x02, 0, 0]] {
            assert!(leaf.is_type_of_number(other), "{leaf:?}");
        }
    }
}

#[test]
fn fields_are_sorted_and_have_a_value_beside_their_typed_value() {
    let item = |name: &str, data_type| Field::new(name, data_type, true);
    let list = DataType::List(Arc::new(item("element", DataType::Utf8)));
    let members: Fields = vec![
        item("n", DataType::Null),
        item("a", list.clone()),
        item("e", DataType::Struct(Fields::empty())),
    ]
    .into();
    let schema = ShreddingSchema::from_arrow(&field(DataType::Struct(members))).unwrap();
    let sorted: Fields = vec![item("a", list), item("e", DataType::Null), item("n", DataType::Null)].into();
    assert_eq!(schema.to_arrow("f"), field(DataType::Struct(sorted)));
}

#[test]
fn other_schemas_are_rejected() {
    let error = |field: &Field| {
        let error = ShreddingSchema::from_arrow(field).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shredding);
        error.message().to_owned()
    };
    for other in [
        DataType::UInt8,
        DataType::Date64,
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::FixedSizeBinary(16),
        DataType::Float16,
    ] {
        let message = error(&field(other.clone()));
        assert!(message.starts_with(&format!("field \"f\": {other} cannot be a shredded type")), "{message}");
    }
    for (precision, scale) in [(39, 0), (0, 0), (5, 6), (5, -1)] {
        let message = error(&field(DataType::Decimal128(precision, scale)));
        assert!(
            message.starts_with(&format!("decimal({precision}, {scale}) cannot be a shredded type")),
            "{message}"
        );
    }
    let twice: Fields = vec![field(DataType::Int64), field(DataType::Utf8)].into();
    let twice = error(&Field::new("g", DataType::Struct(twice), true));
    assert_eq!(twice, "the shredding schema has two fields called \"f\" in one object");
    let nested =
        |levels| (0..levels).fold(field(DataType::Int64), |inner, _| field(DataType::List(Arc::new(inner))));
    assert!(ShreddingSchema::from_arrow(&nested(MAX_SCHEMA_DEPTH)).is_ok());
    assert_eq!(error(&nested(MAX_SCHEMA_DEPTH + 1)), "the shredding schema nests deeper than 64 levels");
}
