//! Add the VARIANT annotation to groups of a footer, which pyarrow cannot write and Spark requires.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::names::with_children;
use super::read::{TAIL_BYTES, guarded};
use super::schema::{VARIANT_SPECIFICATION_VERSION, members};
use crate::error::{Error, Result};

/// Return a footer, with its length and the magic bytes after it, whose groups of a required binary `metadata` and
/// `value` are annotated as `VARIANT(1)`.
pub fn annotate_variants(footer: &[u8]) -> Result<Vec<u8>> {
    let end = footer.len().checked_sub(TAIL_BYTES as usize);
    let end = end.ok_or_else(|| Error::data_file("the Parquet footer is cut off"))?;
    guarded(|| {
        let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
        let metadata = ParquetMetaDataReader::decode_metadata_with_options(&footer[..end], Some(&options))?;
        let file = metadata.file_metadata();
        let schema = SchemaDescriptor::new(annotated(&file.schema_descr().root_schema_ptr())?);
        let file = FileMetaData::new(
            file.version(),
            file.num_rows(),
            file.created_by().map(str::to_owned),
            file.key_value_metadata().cloned(),
            Arc::new(schema),
            file.column_orders().cloned(),
        );
        let mut written = Vec::with_capacity(footer.len());
        let metadata = ParquetMetaData::new(file, metadata.row_groups().to_vec());
        ParquetMetaDataWriter::new(&mut written, &metadata).finish()?;
        Ok(written)
    })
}

fn annotated(stored: &TypePtr) -> Result<TypePtr> {
    let children = members(stored).iter().map(annotated).collect::<Result<Vec<_>>>()?;
    if !is_variant(&children) {
        return with_children(stored, stored.name(), children);
    }
    let info = stored.get_basic_info();
    let group = Type::group_type_builder(stored.name())
        .with_repetition(info.repetition())
        .with_logical_type(Some(LogicalType::variant(Some(VARIANT_SPECIFICATION_VERSION))))
        .with_fields(children)
        .with_id(info.has_id().then(|| info.id()));
    Ok(Arc::new(group.build()?))
}

fn is_variant(children: &[TypePtr]) -> bool {
    let is_required_binary = |member: &TypePtr| {
        let info = member.get_basic_info();
        member.is_primitive()
            && member.get_physical_type() == PhysicalType::BYTE_ARRAY
            && info.logical_type_ref().is_none()
            && info.repetition() == Repetition::REQUIRED
    };
    let names: Vec<&str> = children.iter().map(|member| member.name()).collect();
    matches!(names[..], ["metadata", "value"] | ["value", "metadata"])
        && children.iter().all(is_required_binary)
}
