//! Unshredding of the shredded files of parquet-testing: every case of `cases.json`.

use std::path::PathBuf;

use _native::error::Error;
use _native::parquet::read::{ParquetFile, Source};
use _native::shred::OnConflict;
use _native::shred::unshred::unshred;
use _native::value::{Metadata, Value, split_concatenated, validate};
use arrow_array::Array;
use arrow_array::cast::AsArray;

/// Cases that cannot be read. Those in `CONFLICTING` have expected values, which `on_conflict="typed"` returns.
const REJECTED: [usize; 6] = [40, 42, 87, 127, 128, 137];
const CONFLICTING: [usize; 3] = [43, 84, 125];

fn files() -> PathBuf {
    crate::corpora::corpus("parquet-testing/shredded_variant")
}

/// Return the Variants of a file's column `var`, as `metadata‖value`.
fn read(file: PathBuf, on_conflict: OnConflict) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let file = ParquetFile::open(Source::Path(file))?;
    let leaves = (0..file.metadata().file_metadata().schema_descr().num_columns()).collect();
    let mut rows = Vec::new();
    for batch in file.read(&file.scan(leaves, 1024)) {
        let batch = batch?;
        let column = batch.column_by_name("var").unwrap().as_struct();
        let variants = unshred(column, on_conflict)?;
        let (metadata, values) =
            (variants.column(0).as_binary::<i32>(), variants.column(1).as_binary::<i32>());
        rows.extend(
            (0..variants.len())
                .map(|row| variants.is_valid(row).then(|| [metadata.value(row), values.value(row)].concat())),
        );
    }
    Ok(rows)
}

/// Return whether two values are equal, including the type of each scalar; offsets and name ids may differ.
fn same(a: (&Metadata<'_>, &[u8]), b: (&Metadata<'_>, &[u8])) -> bool {
    match (Value::decode(a.1).unwrap(), Value::decode(b.1).unwrap()) {
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && (0..x.len()).all(|index| {
                    let ((i, v), (j, w)) = (x.field(index).unwrap(), y.field(index).unwrap());
                    a.0.get(i) == b.0.get(j) && same((a.0, v), (b.0, w))
                })
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len()
                && (0..x.len()).all(|i| same((a.0, x.element(i).unwrap()), (b.0, y.element(i).unwrap())))
        }
        (x, y) => x == y && a.1[0] == b.1[0],
    }
}

fn check(case: usize, row: usize, read: Option<&[u8]>, expected: Option<Vec<u8>>) {
    let (Some(read), Some(expected)) = (read, &expected) else {
        assert_eq!(read.is_some(), expected.is_some(), "case {case}, row {row}");
        return;
    };
    let (metadata, value) = split_concatenated(read).unwrap();
    let (expected_metadata, expected_value) = split_concatenated(expected).unwrap();
    let metadata = Metadata::parse(metadata).unwrap();
    validate(&metadata, value).unwrap();
    let expected = (&Metadata::parse(expected_metadata).unwrap(), expected_value);
    assert!(same((&metadata, value), expected), "case {case}, row {row}: {value:02x?}");
}

/// Return the stem of a case's file names. It ends with `-INVALID` if the file is invalid but has expected values.
fn stem(case: usize) -> Option<String> {
    let stems = [format!("case-{case:03}"), format!("case-{case:03}-INVALID")];
    stems.into_iter().find(|stem| files().join(format!("{stem}.parquet")).exists())
}

#[test]
fn every_file_has_its_expected_values() {
    // Case 3 is an empty entry (R16 of protocol_fixtures/README.md).
    for case in (1..=138).filter(|&case| case != 3) {
        let stem = stem(case).unwrap();
        let read = |on_conflict| read(files().join(format!("{stem}.parquet")), on_conflict);
        let is_rejected = REJECTED.contains(&case) || CONFLICTING.contains(&case);
        assert_eq!(read(OnConflict::Error).is_err(), is_rejected, "case {case}");
        if REJECTED.contains(&case) {
            continue;
        }
        let rows = read(OnConflict::Typed).unwrap();
        assert!(!rows.is_empty());
        for (row, value) in rows.iter().enumerate() {
            // An SQL NULL has no file.
            let expected = std::fs::read(files().join(format!("{stem}_row-{row}.variant.bin"))).ok();
            check(case, row, value.as_deref(), expected);
        }
    }
}
