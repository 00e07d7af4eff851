//! Describe a file by its footer: its leaves, their sizes and bounds, and the Variant groups.

use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::statistics::Statistics as ChunkStatistics;
use parquet::schema::types::{ColumnDescriptor, Type};

use super::ParquetFile;
use super::statistics::Statistics;
use super::write::null_count;

/// The contents of a footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    pub rows: u64,
    pub bytes: u64,
    pub row_groups: usize,
    pub created_by: Option<String>,
    /// Keys of the file's key-value metadata.
    pub keys: Vec<String>,
    /// Every group below the root, outer ones first.
    pub groups: Vec<GroupReport>,
    pub leaves: Vec<LeafReport>,
}

/// One group of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReport {
    pub path: Vec<String>,
    /// Whether the group is annotated VARIANT.
    pub variant: bool,
    /// The annotation's specification version; readers accept none or 1.
    pub specification_version: Option<i8>,
}

/// One leaf column over all row groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafReport {
    pub path: Vec<String>,
    /// Such as `INT64` or `FIXED_LEN_BYTE_ARRAY(16)`.
    pub physical_type: String,
    /// Such as `DECIMAL(18,2)` or `TIMESTAMP(true,MICROS)`; `None` for a plain physical type.
    pub logical_type: Option<String>,
    pub num_values: u64,
    /// `None` if a row group does not state it.
    pub null_count: Option<u64>,
    pub compressed_bytes: u64,
    pub uncompressed_bytes: u64,
    /// Names of the encodings of any row group, sorted.
    pub encodings: Vec<String>,
    /// One for each row group, in file order.
    pub bounds: Vec<Bounds>,
    /// Whether the bounds state that no value is anything else than a Variant null.
    pub is_variant_null: bool,
}

/// The bounds of a column chunk, in Parquet's plain encoding without a length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    pub min: Option<Vec<u8>>,
    pub max: Option<Vec<u8>>,
    /// Whether the bound is a value of the column rather than a truncated one.
    pub min_is_exact: bool,
    pub max_is_exact: bool,
}

/// Describe `file` from its footer alone.
pub fn inspect(file: &ParquetFile) -> FileReport {
    let metadata = file.metadata().file_metadata();
    let pairs = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let mut groups = Vec::new();
    collect_groups(metadata.schema(), &mut Vec::new(), &mut groups);
    let descriptors = metadata.schema_descr().columns().iter().enumerate();
    FileReport {
        rows: file.num_rows(),
        bytes: file.length(),
        row_groups: file.row_groups().len(),
        created_by: metadata.created_by().map(str::to_string),
        keys: pairs.iter().map(|KeyValue { key, .. }| key.clone()).collect(),
        groups,
        leaves: descriptors.map(|(leaf, descriptor)| leaf_report(file, leaf, descriptor)).collect(),
    }
}

fn collect_groups(group: &Type, path: &mut Vec<String>, groups: &mut Vec<GroupReport>) {
    for child in group.get_fields().iter().filter(|child| child.is_group()) {
        path.push(child.name().to_string());
        let version = match child.get_basic_info().logical_type_ref() {
            Some(LogicalType::Variant(variant)) => Some(variant.specification_version),
            _ => None,
        };
        groups.push(GroupReport {
            path: path.clone(),
            variant: version.is_some(),
            specification_version: version.flatten(),
        });
        collect_groups(child, path, groups);
        path.pop();
    }
}

fn leaf_report(file: &ParquetFile, leaf: usize, descriptor: &ColumnDescriptor) -> LeafReport {
    let chunks = || file.row_groups().iter().filter_map(move |group| group.columns().get(leaf));
    let mut encodings: Vec<String> =
        chunks().flat_map(ColumnChunkMetaData::encodings).map(|encoding| encoding.to_string()).collect();
    encodings.sort();
    encodings.dedup();
    LeafReport {
        path: descriptor.path().parts().to_vec(),
        physical_type: physical_text(descriptor),
        logical_type: descriptor.logical_type_ref().map(logical_text),
        num_values: chunks().map(|chunk| chunk.num_values().unsigned_abs()).sum(),
        null_count: chunks().map(null_count).sum(),
        compressed_bytes: chunks().map(|chunk| chunk.compressed_size().unsigned_abs()).sum(),
        uncompressed_bytes: chunks().map(|chunk| chunk.uncompressed_size().unsigned_abs()).sum(),
        encodings,
        bounds: chunks().map(|chunk| chunk.statistics().map(bounds).unwrap_or_default()).collect(),
        is_variant_null: (0..file.row_groups().len())
            .all(|row_group| Statistics::of_chunk(file, row_group, leaf).is_variant_null()),
    }
}

fn bounds(statistics: &ChunkStatistics) -> Bounds {
    Bounds {
        min: statistics.min_bytes_opt().map(<[u8]>::to_vec),
        max: statistics.max_bytes_opt().map(<[u8]>::to_vec),
        min_is_exact: statistics.min_is_exact(),
        max_is_exact: statistics.max_is_exact(),
    }
}

fn physical_text(descriptor: &ColumnDescriptor) -> String {
    match descriptor.physical_type() {
        PhysicalType::FIXED_LEN_BYTE_ARRAY => format!("FIXED_LEN_BYTE_ARRAY({})", descriptor.type_length()),
        physical => physical.to_string(),
    }
}

/// The annotation as the Parquet specification writes it.
pub(super) fn logical_text(logical: &LogicalType) -> String {
    match logical {
        LogicalType::Decimal(decimal) => format!("DECIMAL({},{})", decimal.precision, decimal.scale),
        LogicalType::Integer(integer) => format!("INT({},{})", integer.bit_width, integer.is_signed),
        LogicalType::Time(time) => format!("TIME({},{:?})", time.is_adjusted_to_u_t_c, time.unit),
        LogicalType::Timestamp(time) => format!("TIMESTAMP({},{:?})", time.is_adjusted_to_u_t_c, time.unit),
        other => format!("{other:?}").to_uppercase(),
    }
}
