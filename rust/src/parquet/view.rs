//! Footers that describe the column chunks of a shredded file as plain typed columns.
//!
//! Definition levels count the optional and the repeated nodes on the way to a leaf. In a shredded Variant each field is
//! a required group of `value` and an optional `typed_value` (VariantShredding.md). Without these groups, and without
//! the leaves `value` and `metadata`, each `typed_value` has the levels of a plain optional field. So the bytes of the
//! file up to its footer and a footer of such a schema are a Parquet file of the same values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use parquet::basic::{Repetition, Type as PhysicalType};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::types::{ColumnDescPtr, SchemaDescPtr, SchemaDescriptor, Type, TypePtr};

use super::copy::CREATED_BY;
use super::names::with_children;
use super::pages::byte_range;
use super::read::{ParquetFile, TAIL_BYTES, guarded};
use super::schema::members;
use super::statistics::Statistics;
use super::variants::check_variant_column;
use crate::error::{Error, Result};
use crate::value::path::push_field;

/// A column of a view.
pub struct ViewColumn {
    /// The name of the column in the file.
    pub stored: String,
    /// The column in the view.
    pub field: Field,
    pub content: Content,
}

/// What a column of a view has of a column of the file.
pub enum Content {
    /// A column without Variants.
    Plain,
    /// The paths of a Variant at their places. An optional Variant is a struct of one field, `typed_value`, because the
    /// group of the Variant and its `typed_value` have a definition level each; the type of the field is that of
    /// `typed_value`.
    Variant,
    /// The values of one path of a Variant, which have fewer definition levels than in the file.
    Path(Vec<String>),
}

/// The bytes of a view: those of the file before `data_end`, and `footer`.
pub struct View {
    pub data_end: u64,
    pub footer: Vec<u8>,
}

/// Why a footer cannot show the columns.
#[derive(Debug, PartialEq, Eq)]
pub struct NoView(pub String);

/// A type of the view, or that there is none, or that the file is invalid.
pub(super) type Viewed<T> = Result<std::result::Result<T, NoView>>;

/// Return early where there is no view.
macro_rules! viewed {
    ($outcome:expr) => {
        match $outcome? {
            Ok(found) => found,
            Err(no_view) => return Ok(Err(no_view)),
        }
    };
}
pub(super) use viewed;

impl ParquetFile {
    /// The view of some columns and row groups, in the order given.
    ///
    /// A path that is shredded as a scalar or as a list needs the proof, by the statistics of the footer, that it has no
    /// other values, except for Variant null. Residual fields of an object do not matter: "`value` must never contain
    /// fields represented by the Parquet columns in `typed_value`". In lists they do, because lists are cast as a whole.
    pub fn view(&self, columns: &[ViewColumn], row_groups: &[usize]) -> Viewed<View> {
        let (schema, leaves) = viewed!(self.viewed_schema(columns, row_groups));
        let stored = self.metadata().file_metadata().schema_descr();
        let levels = |column: &ColumnDescPtr| (column.max_def_level(), column.max_rep_level());
        if leaves
            .iter()
            .zip(schema.columns())
            .any(|(&leaf, shown)| levels(&stored.column(leaf)) != levels(shown))
        {
            return no_view("the columns have other levels than in the file");
        }
        guarded(|| {
            let data_end = self.length() - TAIL_BYTES - self.footer()?.len() as u64;
            let footer = self.footer_of(schema.clone(), &leaves, row_groups, data_end)?;
            Ok(Ok(View { data_end, footer }))
        })
    }

    /// The schema of a view, and the leaves that it shows.
    pub(super) fn viewed_schema(
        &self,
        columns: &[ViewColumn],
        row_groups: &[usize],
    ) -> Viewed<(SchemaDescPtr, Vec<usize>)> {
        if self.calendar().is_some() {
            return no_view("the file has dates of the legacy calendar of Spark");
        }
        let mut walk = Walk { file: self, row_groups, kept: Vec::new() };
        let places = places(members(self.schema()), 0);
        let mut fields = Vec::with_capacity(columns.len());
        for column in columns {
            self.check_unambiguous(std::slice::from_ref(&column.stored))?;
            let Some(place) = places.get(column.stored.as_str()) else {
                return no_view(format!("the file has no column {:?}", column.stored));
            };
            let found = self.arrow_schema().field(place.position);
            let viewed = walk.column(column, place, found);
            fields.push(viewed!(viewed.map_err(|error| error.in_column(column.field.name()))));
        }
        let root = Type::group_type_builder("schema").with_fields(fields).build()?;
        Ok(Ok((Arc::new(SchemaDescriptor::new(Arc::new(root))), walk.kept)))
    }

    /// A footer of some row groups and leaves, which have other names.
    fn footer_of(
        &self,
        schema: SchemaDescPtr,
        leaves: &[usize],
        row_groups: &[usize],
        data_end: u64,
    ) -> Result<Vec<u8>> {
        let metadata = self.complete_metadata()?;
        let stored = metadata.file_metadata();
        let has_orders = stored.column_orders().is_some();
        let counts_nan =
            stored.created_by().is_some_and(|name| COUNT_NAN.iter().any(|known| name.starts_with(known)));
        let mut groups = Vec::with_capacity(row_groups.len());
        let mut rows = 0;
        for &row_group in row_groups {
            let Some(group) = metadata.row_groups().get(row_group) else {
                return Err(Error::data_file(format!("the file has no row group {row_group}")));
            };
            for leaf in leaves {
                if byte_range(group, *leaf)?.end > data_end {
                    return Err(Error::data_file(
                        "the Parquet file has a column chunk that ends in its footer",
                    ));
                }
            }
            let chunks = leaves.iter().zip(schema.columns());
            let chunks: Vec<ColumnChunkMetaData> = chunks
                .map(|(&leaf, column)| {
                    let is_float =
                        matches!(column.physical_type(), PhysicalType::FLOAT | PhysicalType::DOUBLE);
                    let has_bounds = has_orders && (counts_nan || !is_float);
                    renamed_chunk(group.column(leaf), column.clone(), has_bounds, data_end)
                })
                .collect::<Result<_>>()?;
            rows += group.num_rows();
            let sizes = chunks.iter().map(ColumnChunkMetaData::uncompressed_size);
            let bytes = sizes.fold(0, i64::saturating_add);
            let group = RowGroupMetaData::builder(schema.clone())
                .set_num_rows(group.num_rows())
                .set_total_byte_size(bytes)
                .set_column_metadata(chunks);
            groups.push(group.build()?);
        }
        // Readers know the statistics of which writers are wrong.
        let created_by = stored.created_by().map(str::to_owned);
        let file = FileMetaData::new(stored.version(), rows, created_by, None, schema, None);
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(file, groups)).finish()?;
        Ok(footer)
    }
}

/// The writers whose bounds of floating-point numbers count a NaN: this library writes none then, and parquet-mr has NaN as
/// the greatest value. Others bound the other numbers, by which readers prune rows with a NaN, which is greater.
const COUNT_NAN: [&str; 2] = [CREATED_BY, "parquet-mr version"];

/// The same column chunk with another name. Without column orders, bounds of bytes are in an order that is out of use,
/// and a new footer would state that they are not. An index that is not before `data_end` is left out.
pub(super) fn renamed_chunk(
    chunk: &ColumnChunkMetaData,
    column: ColumnDescPtr,
    has_bounds: bool,
    data_end: u64,
) -> Result<ColumnChunkMetaData> {
    let within = |offset: Option<i64>, length: Option<i32>| match (offset, length.unwrap_or(0).max(0)) {
        (Some(offset), length) if (0..=data_end as i64 - i64::from(length)).contains(&offset) => {
            (Some(offset), (length > 0).then_some(length))
        }
        _ => (None, None),
    };
    let bloom_filter = within(chunk.bloom_filter_offset(), chunk.bloom_filter_length());
    let offset_index = within(chunk.offset_index_offset(), chunk.offset_index_length());
    let column_index = within(chunk.column_index_offset(), chunk.column_index_length());
    let mut builder = ColumnChunkMetaData::builder(column)
        .set_encodings_mask(*chunk.encodings_mask())
        .set_compression_codec(chunk.compression_codec())
        .set_num_values(chunk.num_values())
        .set_total_compressed_size(chunk.compressed_size())
        .set_total_uncompressed_size(chunk.uncompressed_size())
        .set_data_page_offset(chunk.data_page_offset())
        .set_dictionary_page_offset(chunk.dictionary_page_offset())
        .set_index_page_offset(chunk.index_page_offset())
        .set_bloom_filter_offset(bloom_filter.0)
        .set_bloom_filter_length(bloom_filter.1)
        .set_offset_index_offset(offset_index.0)
        .set_offset_index_length(offset_index.1)
        .set_unencoded_byte_array_data_bytes(chunk.unencoded_byte_array_data_bytes());
    if let Some(encodings) = chunk.page_encoding_stats() {
        builder = builder.set_page_encoding_stats(encodings.clone());
    }
    if has_bounds {
        builder = builder.set_column_index_offset(column_index.0).set_column_index_length(column_index.1);
        if let Some(statistics) = chunk.statistics() {
            builder = builder.set_statistics(statistics.clone());
        }
    }
    Ok(builder.build()?)
}

/// A member of a group: its position, and the number of leaves of the file before it.
struct Place<'a> {
    position: usize,
    leaf: usize,
    stored: &'a TypePtr,
}

/// The members of a group by name, the first of which begins at `leaf`.
fn places(members: &[TypePtr], mut leaf: usize) -> HashMap<&str, Place<'_>> {
    let mut places = HashMap::with_capacity(members.len());
    for (position, stored) in members.iter().enumerate() {
        places.entry(stored.name()).or_insert(Place { position, leaf, stored });
        leaf += leaf_count(stored);
    }
    places
}

/// A member that is a group, and its fields.
fn member_at<'a>(
    mut places: HashMap<&str, Place<'a>>,
    fields: &'a Fields,
    name: &str,
) -> Option<(Place<'a>, &'a Fields)> {
    let place = places.remove(name)?;
    match fields.get(place.position)?.data_type() {
        DataType::Struct(fields) => Some((place, fields)),
        _ => None,
    }
}

fn leaf_count(stored: &Type) -> usize {
    if stored.is_primitive() { 1 } else { members(stored).iter().map(|member| leaf_count(member)).sum() }
}

pub(super) fn no_view<T>(reason: impl Into<String>) -> Viewed<T> {
    Ok(Err(NoView(reason.into())))
}

struct Walk<'a> {
    file: &'a ParquetFile,
    row_groups: &'a [usize],
    /// The leaves of the view.
    kept: Vec<usize>,
}

/// A value of a Variant, and what is asked of it.
struct At<'a> {
    path: &'a str,
    /// The name in the view.
    name: &'a str,
    is_in_list: bool,
}

impl Walk<'_> {
    fn column(&mut self, column: &ViewColumn, place: &Place, found: &Field) -> Viewed<TypePtr> {
        let name = column.field.name();
        if matches!(column.content, Content::Plain) {
            return self.plain(place, found.data_type(), &column.field);
        }
        check_variant_column(place.stored)?;
        let DataType::Struct(group) = found.data_type() else {
            return no_view(format!("the column {name:?} of the file is not a Variant"));
        };
        if group.find("metadata").is_none() {
            return no_view(format!("the column {name:?} of the file has the legacy layout"));
        }
        if let Content::Path(path) = &column.content {
            return self.path(place, group, path, &column.field);
        }
        let is_optional = repetition(place.stored) == Repetition::OPTIONAL;
        if is_optional != column.field.is_nullable() {
            let is = if is_optional { "optional" } else { "required" };
            return no_view(format!("the column {name:?} of the file is {is}"));
        }
        let inner = if is_optional { "typed_value" } else { name.as_str() };
        let at = At { path: "$", name: inner, is_in_list: false };
        let value = viewed!(self.value(place, group, column.field.data_type(), &at));
        match is_optional {
            true => Ok(Ok(new_group(name, Repetition::OPTIONAL, vec![value])?)),
            false => Ok(Ok(value)),
        }
    }

    /// A column that has no Variants.
    fn plain(&mut self, place: &Place, found: &DataType, field: &Field) -> Viewed<TypePtr> {
        if !is_same(found, field.data_type()) || has_old_timestamps(place.stored) {
            let (name, wanted) = (field.name(), field.data_type());
            return no_view(format!("the column {name:?} of the file is {found}, not {wanted}"));
        }
        self.kept.extend(place.leaf..place.leaf + leaf_count(place.stored));
        Ok(Ok(with_children(place.stored, field.name(), members(place.stored).to_vec())?))
    }

    /// The values of a path in a group of a Variant. Where an object around them is missing, they are null.
    fn path(&mut self, group: &Place, found: &Fields, steps: &[String], field: &Field) -> Viewed<TypePtr> {
        let (mut path, mut leaf) = ("$".to_owned(), group.leaf);
        let (mut group, mut found) = (group.stored, found);
        for step in steps {
            let member = member_at(places(members(group), leaf), found, "typed_value");
            let field = member.and_then(|(typed, fields)| {
                member_at(places(members(typed.stored), typed.leaf), fields, step)
            });
            push_field(&mut path, step);
            let Some((place, fields)) = field else {
                return no_view(format!("the file has no column for {path}"));
            };
            (group, leaf, found) = (place.stored, place.leaf, fields);
        }
        let place = Place { position: 0, leaf, stored: group };
        let at = At { path: &path, name: field.name(), is_in_list: false };
        let shown = viewed!(self.value(&place, found, field.data_type(), &at));
        match repetition(&shown) {
            Repetition::OPTIONAL => Ok(Ok(shown)),
            _ => no_view(format!("the values at {path} are required")),
        }
    }

    /// The `typed_value` in a group of a Variant.
    fn value(&mut self, group: &Place, found: &Fields, wanted: &DataType, at: &At) -> Viewed<TypePtr> {
        let places = places(members(group.stored), group.leaf);
        let typed = places.get("typed_value").and_then(|place| Some((place, found.find("typed_value")?.1)));
        let Some((typed, field)) = typed else {
            return no_view(format!("the file has no column for {}", at.path));
        };
        let is_object = matches!(wanted, DataType::Struct(_));
        if (!is_object || at.is_in_list) && !places.get("value").is_none_or(|place| self.is_null(place)) {
            return no_view(format!("the file has values of other types at {}", at.path));
        }
        match (field.data_type(), wanted) {
            (DataType::Struct(found), DataType::Struct(wanted)) => self.object(typed, found, wanted, at),
            (DataType::List(found), DataType::List(wanted)) => self.list(typed, found, wanted, at),
            (found, wanted) if is_same(found, wanted) && !typed.stored.is_group() => {
                self.kept.push(typed.leaf);
                Ok(Ok(with_children(typed.stored, at.name, Vec::new())?))
            }
            (found, wanted) => no_view(format!("the values at {} are {found}, not {wanted}", at.path)),
        }
    }

    fn object(&mut self, typed: &Place, found: &Fields, wanted: &Fields, at: &At) -> Viewed<TypePtr> {
        if wanted.is_empty() {
            return no_view(format!("the type at {} has no fields", at.path));
        }
        let places = places(members(typed.stored), typed.leaf);
        let mut fields = Vec::with_capacity(wanted.len());
        for field in wanted {
            let mut path = at.path.to_owned();
            push_field(&mut path, field.name());
            let place = places.get(field.name().as_str());
            let Some((place, DataType::Struct(group))) =
                place.map(|place| (place, found[place.position].data_type()))
            else {
                return no_view(format!("the file has no column for {path}"));
            };
            let below = At { path: &path, name: field.name(), is_in_list: at.is_in_list };
            fields.push(viewed!(self.member(place, group, field.data_type(), &below)));
        }
        Ok(Ok(new_group(at.name, repetition(typed.stored), fields)?))
    }

    fn list(&mut self, typed: &Place, found: &Field, wanted: &Field, at: &At) -> Viewed<TypePtr> {
        let path = format!("{}[*]", at.path);
        let ([repeated], DataType::Struct(group)) = (members(typed.stored), found.data_type()) else {
            return no_view(format!("the list at {} is in an old form", at.path));
        };
        let [element] = members(repeated) else {
            return no_view(format!("the list at {} is in an old form", at.path));
        };
        let place = Place { position: 0, leaf: typed.leaf, stored: element };
        let below = At { path: &path, name: element.name(), is_in_list: true };
        let element = viewed!(self.member(&place, group, wanted.data_type(), &below));
        let repeated = with_children(repeated, repeated.name(), vec![element])?;
        Ok(Ok(with_children(typed.stored, at.name, vec![repeated])?))
    }

    /// The value of a field or of an element, whose group must not have a definition level.
    fn member(&mut self, group: &Place, found: &Fields, wanted: &DataType, at: &At) -> Viewed<TypePtr> {
        match repetition(group.stored) {
            Repetition::REQUIRED => self.value(group, found, wanted, at),
            _ => no_view(format!("the group at {} is not required", at.path)),
        }
    }

    /// Whether a leaf `value` has only nulls and Variant nulls.
    fn is_null(&self, value: &Place) -> bool {
        let statistics = |&group: &usize| Statistics::of_chunk(self.file, group, value.leaf);
        self.row_groups.iter().all(|group| statistics(group).is_variant_null())
    }
}

fn new_group(name: &str, repetition: Repetition, fields: Vec<TypePtr>) -> Result<TypePtr> {
    let group = Type::group_type_builder(name).with_repetition(repetition).with_fields(fields);
    Ok(Arc::new(group.build()?))
}

fn repetition(stored: &Type) -> Repetition {
    let info = stored.get_basic_info();
    if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED }
}

/// Whether readers would see a unit that differs from microseconds.
fn has_old_timestamps(stored: &Type) -> bool {
    match stored.is_primitive() {
        true => stored.get_physical_type() == PhysicalType::INT96,
        false => members(stored).iter().any(|member| has_old_timestamps(member)),
    }
}

/// Whether two types are the same but for what may be null, and for the names in lists and maps.
fn is_same(found: &DataType, wanted: &DataType) -> bool {
    match (found, wanted) {
        (DataType::Struct(found), DataType::Struct(wanted)) => {
            let is_same_field = |(one, other): (&Arc<Field>, &Arc<Field>)| {
                one.name() == other.name() && is_same(one.data_type(), other.data_type())
            };
            found.len() == wanted.len() && found.iter().zip(wanted).all(is_same_field)
        }
        (DataType::List(found), DataType::List(wanted)) => is_same(found.data_type(), wanted.data_type()),
        (DataType::Map(found, _), DataType::Map(wanted, _)) => {
            match (found.data_type(), wanted.data_type()) {
                (DataType::Struct(found), DataType::Struct(wanted)) => {
                    found.len() == wanted.len()
                        && found
                            .iter()
                            .zip(wanted)
                            .all(|(one, other)| is_same(one.data_type(), other.data_type()))
                }
                _ => false,
            }
        }
        _ => found == wanted,
    }
}
