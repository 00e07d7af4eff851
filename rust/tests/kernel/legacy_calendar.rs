//! Dates and timestamps of files in the legacy calendar of Spark: the values that Spark 4.2 reads.

use std::sync::Arc;

use _native::error::{Error, ErrorKind};
use _native::parquet::statistics::Statistics;
use _native::parquet::{ParquetFile, Source};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType};
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::data_type::{Int96, Int96Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

type Keys<'a> = &'a [(&'a str, &'a str)];

const VERSION: (&str, &str) = ("org.apache.spark.version", "3.5.1");
const DATETIME: (&str, &str) = ("org.apache.spark.legacyDateTime", "");
const INT96: (&str, &str) = ("org.apache.spark.legacyINT96", "");
const ZONE: &str = "org.apache.spark.timeZone";

/// Stored days, and the days that Spark reads: 0001-01-01, 0100-03-01, 1000-02-29 (not a Gregorian date, so it is
/// 03-01), 1500-02-29 (likewise), 1582-10-04, and 1582-10-15, the day after it.
const DAYS: [(i32, i32); 6] = [
    (-719_164, -719_162),
    (-682_945, -682_944),
    (-354_220, -354_226),
    (-171_596, -171_605),
    (-141_428, -141_438),
    (-141_427, -141_427),
];

/// A time zone, and stored and read microseconds.
const MOMENTS: [(&str, &[(i64, i64)]); 5] = [
    (
        "UTC",
        &[
            (-68_579_184_252_518_214, -68_578_838_652_518_214),
            (-59_006_448_000_000_001, -59_006_275_200_000_001),
            (-30_604_611_600_000_000, -30_605_043_600_000_000),
            (-12_219_292_800_000_001, -12_220_156_800_000_001),
        ],
    ),
    (
        "America/New_York",
        &[
            (-59_006_430_000_000_000, -59_006_343_838_000_000),
            (-52_694_913_600_000_000, -52_694_913_838_000_000),
            (-14_825_786_400_000_000, -14_826_650_638_000_000),
            (-2_717_650_800_000_000, -2_717_650_800_000_000),
        ],
    ),
    (
        "Asia/Kolkata",
        &[
            (-59_006_467_800_000_000, -59_006_382_808_000_000),
            (-17_981_587_800_000_001, -17_982_280_408_000_001),
            (-3_645_235_808_000_000, -3_645_237_208_000_000),
            (-2_208_988_800_000_001, -2_208_988_270_000_001),
            (-2_208_988_800_000_000, -2_208_988_800_000_000),
        ],
    ),
    (
        "+02:00",
        &[
            (-59_006_440_800_000_000, -59_006_354_400_000_000),
            (-12_219_285_600_000_001, -12_219_285_600_000_001),
        ],
    ),
    (
        "GMT+2",
        &[
            (-59_006_458_800_000_000, -59_006_286_000_000_000),
            (-12_219_303_600_000_001, -12_220_167_600_000_001),
        ],
    ),
];

fn properties(keys: Keys<'_>) -> WriterProperties {
    let keys = keys.iter().map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()));
    WriterProperties::builder().set_key_value_metadata(Some(keys.collect())).build()
}

fn open(bytes: Vec<u8>) -> ParquetFile {
    ParquetFile::open(Source::Bytes(bytes.into())).unwrap()
}

fn file(columns: Vec<(&str, ArrayRef)>, keys: Keys<'_>) -> ParquetFile {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties(keys))).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    open(bytes)
}

fn read(file: &ParquetFile) -> Result<RecordBatch, Error> {
    let leaves = (0..file.metadata().file_metadata().schema_descr().num_columns()).collect();
    let batches: Vec<RecordBatch> = file.read(&file.scan(leaves, 1000)).collect::<Result<_, _>>()?;
    assert_eq!(batches.len(), 1);
    Ok(batches[0].clone())
}

fn group(name: &str, member: &ArrayRef) -> ArrayRef {
    Arc::new(StructArray::from(vec![(
        Arc::new(Field::new(name, member.data_type().clone(), true)),
        member.clone(),
    )]))
}

fn list(elements: &ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new("element", elements.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(vec![1; elements.len()]);
    Arc::new(ListArray::new(field, offsets, elements.clone(), None))
}

/// Timestamps in UTC, in milliseconds or microseconds.
fn timestamps(micros: impl Iterator<Item = i64>, unit: TimeUnit) -> ArrayRef {
    match unit {
        TimeUnit::Millisecond => Arc::new(
            TimestampMillisecondArray::from_iter_values(micros.map(|micros| micros.div_euclid(1000)))
                .with_timezone("UTC"),
        ),
        _ => Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC")),
    }
}

#[test]
fn dates_are_those_of_the_gregorian_calendar() {
    let stored: Date32Array = DAYS.iter().map(|(day, _)| Some(*day)).chain([None]).collect();
    let expected: Date32Array = DAYS.iter().map(|(_, day)| Some(*day)).chain([None]).collect();
    let (stored, expected): (ArrayRef, ArrayRef) = (Arc::new(stored), Arc::new(expected));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(-900_000..-900_000 + stored.len() as i64));
    for keys in [
        &[VERSION, DATETIME][..],
        &[("org.apache.spark.version", "2.4.8")],
        &[VERSION, DATETIME, (ZONE, "Asia/Tokyo")],
    ] {
        let columns = vec![
            ("n", group("n", &numbers)),
            ("d", stored.clone()),
            ("s", group("d", &stored)),
            ("l", list(&stored)),
        ];
        let rows = read(&file(columns, keys)).unwrap();
        assert_eq!(rows.column(0).as_struct().column(0).as_primitive::<Int64Type>(), numbers.as_primitive());
        assert_eq!(rows.column(1).as_primitive::<Date32Type>(), expected.as_primitive());
        assert_eq!(
            rows.column(2).as_struct().column(0).as_primitive::<Date32Type>(),
            expected.as_primitive()
        );
        assert_eq!(
            rows.column(3).as_list::<i32>().values().as_primitive::<Date32Type>(),
            expected.as_primitive()
        );
    }
    let rows = read(&file(vec![("d", stored.clone())], &[VERSION])).unwrap();
    assert_eq!(rows.column(0).as_primitive::<Date32Type>(), stored.as_primitive());
}

#[test]
fn timestamps_are_the_local_times_of_the_writer() {
    for (zone, moments) in MOMENTS {
        let keys = [VERSION, DATETIME, (ZONE, zone)];
        for unit in [TimeUnit::Microsecond, TimeUnit::Millisecond] {
            let stored = timestamps(moments.iter().map(|(stored, _)| *stored), unit);
            let expected = timestamps(moments.iter().map(|(_, expected)| *expected), unit);
            let rows = read(&file(vec![("t", stored.clone()), ("l", list(&stored))], &keys)).unwrap();
            let columns = [rows.column(0), rows.column(1).as_list::<i32>().values()];
            for found in columns {
                match unit {
                    TimeUnit::Millisecond => assert_eq!(
                        found.as_primitive::<TimestampMillisecondType>().values(),
                        expected.as_primitive::<TimestampMillisecondType>().values(),
                        "{zone}"
                    ),
                    _ => assert_eq!(
                        found.as_primitive::<TimestampMicrosecondType>().values(),
                        expected.as_primitive::<TimestampMicrosecondType>().values(),
                        "{zone}"
                    ),
                }
            }
        }
    }
}

/// A file of INT96: nanoseconds of the day, and the number of the Julian day.
fn int96(micros: &[i64], keys: Keys<'_>) -> ParquetFile {
    let schema = Arc::new(parse_message_type("message m { required int96 t; }").unwrap());
    let values: Vec<Int96> = micros
        .iter()
        .map(|micros| {
            let (day, nanos) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000) * 1000);
            let mut value = Int96::new();
            value.set_data(nanos as u32, (nanos >> 32) as u32, (day + 2_440_588) as u32);
            value
        })
        .collect();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties(keys))).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();
    open(bytes)
}

fn micros(rows: &RecordBatch, column: usize) -> Vec<i64> {
    rows.column(column).as_primitive::<TimestampMicrosecondType>().values().to_vec()
}

#[test]
fn timestamps_of_96_bits_have_a_mark_of_their_own() {
    for (zone, moments) in MOMENTS {
        let stored: Vec<i64> = moments.iter().map(|(stored, _)| *stored).collect();
        let expected: Vec<i64> = moments.iter().map(|(_, expected)| *expected).collect();
        let marked: [Keys; 3] = [
            &[VERSION, INT96, (ZONE, zone)],
            &[("org.apache.spark.version", "3.0.1"), (ZONE, zone)],
            &[("org.apache.spark.version", "2.4.8"), (ZONE, zone)],
        ];
        for keys in marked {
            assert_eq!(micros(&read(&int96(&stored, keys)).unwrap(), 0), expected, "{keys:?}");
        }
        let others: [Keys; 4] =
            [&[VERSION, DATETIME, (ZONE, zone)], &[VERSION, (ZONE, zone)], &[(ZONE, zone)], &[]];
        for keys in others {
            assert_eq!(micros(&read(&int96(&stored, keys)).unwrap(), 0), stored, "{keys:?}");
        }
    }
}

#[test]
fn only_marked_columns_are_in_the_legacy_calendar() {
    let stored = [-59_006_448_000_000_001, 0];
    let instants = timestamps(stored.into_iter(), TimeUnit::Microsecond);
    let local: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(stored));
    let utc = (ZONE, "UTC");
    for (keys, expected) in [
        (&[VERSION, DATETIME, utc][..], [-59_006_275_200_000_001, 0]),
        (&[VERSION, INT96, utc], stored),
        (&[("org.apache.spark.version", "3.0.1"), utc], stored),
        (&[DATETIME, utc], stored),
    ] {
        let rows = read(&file(vec![("t", instants.clone()), ("n", local.clone())], keys)).unwrap();
        assert_eq!(micros(&rows, 0), expected, "{keys:?}");
        assert_eq!(micros(&rows, 1), stored, "{keys:?}");
    }
}

#[test]
fn moments_that_are_not_known_are_rejected_and_others_are_read() {
    let year_1000 =
        "cannot read the timestamp stored as 1000-03-06 because it is in the legacy calendar of Spark, and ";
    for (zone, first, reason) in [
        (None, -30_604_611_600_000_000, "the file does not state org.apache.spark.timeZone"),
        (
            Some("Mars/Base"),
            -30_604_611_600_000_000,
            "the rules of its time zone \"Mars/Base\" are not known",
        ),
        (
            Some("America/New_York"),
            -63_167_219_200_000_000,
            "Spark computes moments before the year 1 in America/New_York by the version of Java",
        ),
    ] {
        let zone: Vec<(&str, &str)> = zone.map(|zone| (ZONE, zone)).into_iter().collect();
        let keys = |mark| [&[VERSION, mark][..], &zone].concat();
        let stored = [first, 0];
        let times = timestamps(stored.into_iter(), TimeUnit::Microsecond);
        for (file, column, setting) in [
            (
                file(vec![("s", group("t", &times))], &keys(DATETIME)),
                "s.t",
                "datetimeRebaseModeInWrite=CORRECTED",
            ),
            (int96(&stored, &keys(INT96)), "t", "int96RebaseModeInWrite=CORRECTED"),
        ] {
            let error = read(&file).unwrap_err();
            assert_eq!((error.kind(), error.column()), (ErrorKind::DataFile, Some(column)));
            assert!(error.message().contains(reason), "{error}");
            assert!(error.message().contains(setting), "{error}");
            let is_year_1000 = first == -30_604_611_600_000_000;
            assert_eq!(error.message().starts_with(year_1000), is_year_1000, "{error}");
        }
        let later = timestamps([0].into_iter(), TimeUnit::Microsecond);
        assert_eq!(micros(&read(&file(vec![("t", later)], &keys(DATETIME))).unwrap(), 0), [0]);
    }
}

#[test]
fn bounds_are_left_out_where_values_are_other_moments() {
    let keys = [VERSION, DATETIME, (ZONE, "UTC")];
    let bounds = |column: ArrayRef| {
        let file = file(vec![("c", column)], &keys);
        let stated = Statistics::of_chunk(&file, 0, 0).in_calendar(&file, 0);
        assert!(stated.no_null);
        assert_eq!(stated.min.is_some(), stated.max.is_some());
        stated.min.map(<[u8]>::to_vec)
    };
    let day = |day: i32| bounds(Arc::new(Date32Array::from(vec![day, 19_723])));
    assert_eq!(day(-141_428), None);
    assert_eq!(day(-141_427), Some((-141_427_i32).to_le_bytes().to_vec()));
    // Time zones have other offsets before 1900.
    let moment = |micros: i64| bounds(timestamps([micros, 0].into_iter(), TimeUnit::Microsecond));
    assert_eq!(moment(-2_208_988_800_000_001), None);
    assert_eq!(moment(-2_208_988_800_000_000), Some((-2_208_988_800_000_000_i64).to_le_bytes().to_vec()));
    let number = bounds(Arc::new(Int64Array::from(vec![-900_000])));
    assert_eq!(number, Some((-900_000_i64).to_le_bytes().to_vec()));
}
