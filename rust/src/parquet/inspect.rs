//! Describe a file by its footer: its leaves, their sizes and null counts, and the Variant groups.

use parquet::basic::LogicalType;
use parquet::file::metadata::KeyValue;
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
    /// The groups that are annotated VARIANT, outer ones first.
    pub variants: Vec<VariantGroup>,
    pub leaves: Vec<LeafReport>,
}

/// A group that is annotated VARIANT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantGroup {
    pub path: Vec<String>,
    /// Readers accept none or 1.
    pub specification_version: Option<i8>,
}

/// One leaf column over all row groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafReport {
    pub path: Vec<String>,
    /// Such as `DECIMAL(18,2)` or `TIMESTAMP(true,MICROS)`; `None` for a plain physical type.
    pub logical_type: Option<String>,
    pub num_values: u64,
    /// `None` if a row group does not state it.
    pub null_count: Option<u64>,
    pub compressed_bytes: u64,
    /// Whether the bounds state that no value is anything else than a Variant null.
    pub is_variant_null: bool,
}

/// Describe `file` from its footer alone.
pub fn inspect(file: &ParquetFile) -> FileReport {
    let metadata = file.metadata().file_metadata();
    let pairs = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let mut variants = Vec::new();
    collect_variants(metadata.schema(), &mut Vec::new(), &mut variants);
    let descriptors = metadata.schema_descr().columns().iter().enumerate();
    FileReport {
        rows: file.num_rows(),
        bytes: file.length(),
        row_groups: file.row_groups().len(),
        created_by: metadata.created_by().map(str::to_string),
        keys: pairs.iter().map(|KeyValue { key, .. }| key.clone()).collect(),
        variants,
        leaves: descriptors.map(|(leaf, descriptor)| leaf_report(file, leaf, descriptor)).collect(),
    }
}

fn collect_variants(group: &Type, path: &mut Vec<String>, variants: &mut Vec<VariantGroup>) {
    for child in group.get_fields().iter().filter(|child| child.is_group()) {
        path.push(child.name().to_string());
        if let Some(LogicalType::Variant(variant)) = child.get_basic_info().logical_type_ref() {
            let specification_version = variant.specification_version;
            variants.push(VariantGroup { path: path.clone(), specification_version });
        }
        collect_variants(child, path, variants);
        path.pop();
    }
}

fn leaf_report(file: &ParquetFile, leaf: usize, descriptor: &ColumnDescriptor) -> LeafReport {
    let chunks = || file.row_groups().iter().filter_map(move |group| group.columns().get(leaf));
    LeafReport {
        path: descriptor.path().parts().to_vec(),
        logical_type: descriptor.logical_type_ref().map(logical_text),
        num_values: chunks().map(|chunk| chunk.num_values().unsigned_abs()).sum(),
        null_count: chunks().map(null_count).sum(),
        compressed_bytes: chunks().map(|chunk| chunk.compressed_size().unsigned_abs()).sum(),
        is_variant_null: (0..file.row_groups().len())
            .all(|row_group| Statistics::of_chunk(file, row_group, leaf).is_variant_null()),
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
