//! Whole Parquet files: opened, inspected, read with every kind of projection, and copied to other files.

use std::panic::PanicHookInfo;
use std::sync::Arc;

use _native::data_file::read::{DataFileReader, Projection, What};
use _native::data_file::stats::file_bounds;
use _native::data_file::write::{DataFileWriter, Encoding, OnInvalid};
use _native::error::Result;
use _native::json::parse::ParseOptions;
use _native::parquet::inspect;
use _native::parquet::read::{ParquetFile, Scan, Source};
use _native::parquet::view::{Content, ViewColumn};
use _native::parquet::write::WriteOptions;
use _native::shred::OnConflict;
use _native::value::Zone;
use _native::value::cast::Casting;
use _native::value::path::Step;
use arrow_schema::{DataType, Field};
use bytes::Bytes;

const MAGIC: &[u8] = b"PAR1";
/// Size of the footer length and the magic bytes at the end of a file.
const TAIL: usize = 8;
/// Rows decoded at a time.
const BATCH_ROWS: usize = 1024;

pub fn run(input: &[u8]) {
    let Ok(file) = ParquetFile::open(Source::Bytes(Bytes::copy_from_slice(input))) else { return };
    let file = Arc::new(file);
    let report = inspect(&file);
    let variants: Vec<_> = report.variants.into_iter().map(|group| group.path).collect();
    let _ = file_bounds(&file, &variants);
    let _ = file_bounds(&file, &[]);
    for projection in projections(&file, &variants) {
        for on_conflict in [OnConflict::Error, OnConflict::Typed] {
            let reader = DataFileReader::new(file.clone(), vec![projection.clone()], None, on_conflict, None);
            reader.into_iter().flatten().for_each(drop);
        }
    }
    views(&file, input);
    let _ = copies(&file);
}

/// Copy the row groups as they are encoded, but for columns that are decoded and encoded again.
fn copies(file: &ParquetFile) -> Result<()> {
    let schema = file.arrow_schema();
    let converted: Vec<&str> = file.converted_columns().iter().map(|field| field.name().as_str()).collect();
    let is_converted = |column: &usize| converted.contains(&schema.field(*column).name().as_str());
    let replaced: Vec<usize> = (0..schema.fields().len()).filter(is_converted).collect();
    let descriptor = file.metadata().file_metadata().schema_descr();
    let is_replaced = |leaf: &usize| is_converted(&descriptor.get_column_root_idx(*leaf));
    let (others, copied): (Vec<usize>, Vec<usize>) = (0..descriptor.num_columns()).partition(is_replaced);
    let others = file.scan(others, BATCH_ROWS);

    let mut bytes = Vec::new();
    let (encodings, parse) = (vec![Encoding::Plain; schema.fields().len()], ParseOptions::default());
    let options = WriteOptions::default();
    let mut writer = DataFileWriter::new(&mut bytes, schema, encodings, parse, OnInvalid::Error, options)?;
    let mut row_groups = Vec::new();
    for row_group in 0..file.row_groups().len() {
        if writer.copy(file, row_group, &replaced)? {
            row_groups.push(row_group);
            if !replaced.is_empty() {
                file.read_row_group(&others, row_group)?.try_for_each(|batch| writer.replace(&batch?))?;
            }
        }
    }
    writer.close()?;
    let copy = ParquetFile::open(Source::Bytes(bytes.into())).expect("a copy opens");
    let scan = file.scan(copied, BATCH_ROWS);
    row_groups.iter().enumerate().for_each(|(new, &old)| check_copy(&scan, (file, old), (&copy, new)));
    Ok(())
}

/// Check that the rows of a row group that can be read are those of its copy, also if only some pages are read.
fn check_copy(scan: &Scan, (file, row_group): (&ParquetFile, usize), (copy, copied): (&ParquetFile, usize)) {
    let rows = file.row_groups()[row_group].num_rows().unsigned_abs();
    for range in [0..rows, rows / 2..rows] {
        let range = Some(std::slice::from_ref(&range)).filter(|range| !range[0].is_empty());
        let Ok(before) = file.read_rows(scan, row_group, range, None) else { continue };
        let mut after = copy.read_rows(scan, copied, range, None).expect("a copy can be read");
        for batch in before.map_while(Result::ok) {
            let copied = after.next().expect("a copy has all rows").expect("a copy can be read");
            assert_eq!(batch.columns(), copied.columns());
        }
    }
}

/// Show each column as plain columns, and write those of its paths; footers describe files that open.
fn views(file: &ParquetFile, input: &[u8]) {
    let row_groups: Vec<usize> = (0..file.row_groups().len()).collect();
    for field in file.arrow_schema().fields().iter().take(4) {
        let field_name = field.name();
        let typed = typed_value(field.data_type());
        let paths = typed.as_ref().map(|typed| paths(typed, &[])).unwrap_or_default();
        for (path, data_type) in paths.into_iter().take(4) {
            let field = Field::new("path", data_type, true);
            write(file, ViewColumn { stored: field_name.clone(), field, content: Content::Path(path) });
        }
        let content = if typed.is_some() { Content::Variant } else { Content::Plain };
        let shown = field.as_ref().clone().with_data_type(typed.unwrap_or_else(|| field.data_type().clone()));
        let column = ViewColumn { stored: field_name.clone(), field: shown, content };
        if let Ok(Ok(view)) = file.view(&[column], &row_groups) {
            let bytes = [&input[..view.data_end as usize], &view.footer].concat();
            let shown =
                ParquetFile::open(Source::Bytes(bytes.into())).expect("the footer of a view is valid");
            let leaves = shown.metadata().file_metadata().schema_descr().num_columns();
            shown.read(&shown.scan((0..leaves).collect(), BATCH_ROWS)).for_each(drop);
        }
    }
}

fn write(file: &ParquetFile, column: ViewColumn) {
    let mut bytes = Vec::new();
    if let Ok(Ok(())) = file.write_view(&[column], &mut bytes) {
        let written = ParquetFile::open(Source::Bytes(bytes.into())).expect("a file of a path is valid");
        written.read(&written.scan(vec![0], BATCH_ROWS)).for_each(drop);
    }
}

/// The paths of a type that have no objects, with their types.
fn paths(data_type: &DataType, parents: &[String]) -> Vec<(Vec<String>, DataType)> {
    let DataType::Struct(fields) = data_type else { return vec![(parents.to_vec(), data_type.clone())] };
    let below = |field: &Arc<Field>| paths(field.data_type(), &[parents, &[field.name().clone()]].concat());
    fields.iter().flat_map(below).collect()
}

/// The type of the values of a shredded group, without the groups of shredding.
fn typed_value(group: &DataType) -> Option<DataType> {
    let DataType::Struct(members) = group else { return None };
    let (_, typed) = members.find("typed_value")?;
    Some(match typed.data_type() {
        DataType::Struct(fields) => {
            let plain = fields.iter().filter_map(|field| {
                Some(field.as_ref().clone().with_data_type(typed_value(field.data_type())?))
            });
            DataType::Struct(plain.collect())
        }
        DataType::List(element) => {
            let plain = element.as_ref().clone().with_data_type(typed_value(element.data_type())?);
            DataType::List(Arc::new(plain))
        }
        other => other.clone(),
    })
}

/// Return the memory that the columns of a whole file need, in bytes: a run or a dictionary can encode a million rows
/// in a few bytes.
///
/// Values are in memory three times: as columns, unshredded, and as text. The decoder also keeps two levels per value.
pub fn decoded_size(input: &[u8]) -> usize {
    let Ok(file) = ParquetFile::open(Source::Bytes(Bytes::copy_from_slice(input))) else { return 0 };
    let leaves = file.metadata().file_metadata().schema_descr().num_columns();
    let scan = file.scan((0..leaves).collect(), BATCH_ROWS);
    let columns = file.read(&scan).map(|batch| Ok(batch?.get_array_memory_size())).sum::<Result<usize>>();
    let chunks = file.row_groups().iter().flat_map(|group| group.columns());
    let entries: u64 = chunks.map(|chunk| chunk.num_values().unsigned_abs()).sum();
    columns.map_or(0, |columns| 3 * columns + 8 * entries as usize)
}

/// Return projections of each column, and for Variants also of whole values, JSON texts and values at paths.
fn projections(file: &ParquetFile, variants: &[Vec<String>]) -> Vec<Projection> {
    let mut projections = Vec::new();
    for field in file.arrow_schema().fields().iter().take(4) {
        let column = vec![field.name().clone()];
        let mut add = |what, data_type: DataType| {
            let field = Field::new(field.name(), data_type, true).with_metadata(field.metadata().clone());
            projections.push(Projection { column: column.clone(), what, field });
        };
        add(What::Column, field.data_type().clone());
        if variants.contains(&column) || matches!(field.data_type(), DataType::Struct(_)) {
            add(What::Json { path: vec![], zone: Zone::UTC }, DataType::Utf8);
            for path in [vec![], vec![Step::Field("a".into())], vec![Step::Index(0)]] {
                add(What::Path { path: path.clone(), casting: Casting::utc(false) }, DataType::Int64);
                add(What::Path { path, casting: Casting::utc(false) }, DataType::Utf8);
            }
        }
    }
    projections
}

/// Return whether a panic comes from the Parquet decoder; the kernel catches those.
pub fn is_decoder(panic: &PanicHookInfo<'_>) -> bool {
    let file = panic.location().map(|location| location.file()).unwrap_or_default();
    !file.contains("fuzz/") && !file.starts_with("src/") && !file.contains("rust/src/")
}

/// Mutate the footer of a file more often than the rest, and keep its length correct, because an input without a valid
/// footer exercises little code. `mutate` changes bytes in place and returns their new length.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    mutate: impl Fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let Some(footer) = data.get(..size).and_then(footer).filter(|footer| footer.start > 0) else {
        return mutate(data, size, max_size);
    };
    match seed % 4 {
        0 => mutate(data, size, max_size),
        // Mutate the pages without moving them.
        1 => {
            mutate(&mut data[..footer.start], footer.start, footer.start);
            size
        }
        _ if footer.start + TAIL < max_size => {
            let mut bytes = vec![0; max_size.max(size) - footer.start - TAIL];
            bytes[..footer.len()].copy_from_slice(&data[footer.clone()]);
            let length = mutate(&mut bytes, footer.len(), max_size - footer.start - TAIL);
            write_footer(data, footer.start, &bytes[..length])
        }
        _ => mutate(data, size, max_size),
    }
}

/// Write `footer` at `start`, followed by its length and the magic bytes. Return the length of the file.
fn write_footer(file: &mut [u8], start: usize, footer: &[u8]) -> usize {
    let tail = [&(footer.len() as u32).to_le_bytes()[..], MAGIC].concat();
    let bytes = [footer, &tail].concat();
    file[start..start + bytes.len()].copy_from_slice(&bytes);
    start + bytes.len()
}

fn footer(file: &[u8]) -> Option<std::ops::Range<usize>> {
    let (rest, tail) = file.split_last_chunk::<TAIL>()?;
    let (length, magic) = tail.split_first_chunk::<4>()?;
    let start = rest.len().checked_sub(u32::from_le_bytes(*length) as usize)?;
    (magic == MAGIC).then_some(start..rest.len())
}
