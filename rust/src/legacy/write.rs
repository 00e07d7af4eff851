//! Shred Variant values into columns of the legacy layout.
//!
//! The rules of what fits where are those of the current layout, so values are shredded into that layout first. Then
//! `typed_value` columns are renamed, and each `value` gets its own metadata.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};

use super::assemble::Assembler;
use super::layout::{ARRAY, OBJECT, TYPED_VALUE, UNTYPED_VALUE};
use super::read::Output;
use crate::error::Result;
use crate::shred::schema::{Numeric, ShreddingSchema};
use crate::shred::shapes::Shapes;
use crate::shred::variants;
use crate::value::column::Bytes;

/// Shred `variants`, a struct of `metadata` and `value`, by `schema` into the members of the legacy layout.
///
/// SQL NULL rows stay. A missing value is a null group. Errors have the row.
pub fn shred(variants: &StructArray, schema: &ShreddingSchema) -> Result<StructArray> {
    let shredded = variants::shred(variants, schema.clone(), Numeric::Value)?;
    let metadata = shredded.column(0);
    let mut converter = Converter { shapes: Shapes::new(metadata, |_| ())?, assembler: Assembler::new() };
    let rows: Vec<usize> = (0..shredded.len()).collect();
    let columns = converter.members(&shredded.columns()[1..], schema, &rows)?;
    Ok(StructArray::try_new(members(schema), columns, shredded.nulls().cloned())?)
}

/// The members of a group.
fn members(schema: &ShreddingSchema) -> Fields {
    let untyped_value = Field::new(UNTYPED_VALUE, DataType::Binary, true);
    let typed = match schema {
        ShreddingSchema::Untyped => None,
        ShreddingSchema::Leaf(leaf) => Some(leaf.to_arrow(TYPED_VALUE)),
        ShreddingSchema::Object(fields) => {
            let fields = fields.iter().map(|(name, schema)| group(name, schema));
            Some(Field::new(OBJECT, DataType::Struct(fields.collect()), true))
        }
        ShreddingSchema::List(element) => {
            Some(Field::new(ARRAY, DataType::List(Arc::new(group("element", element))), true))
        }
    };
    std::iter::once(untyped_value).chain(typed).collect()
}

fn group(name: &str, schema: &ShreddingSchema) -> Field {
    Field::new(name, DataType::Struct(members(schema)), true)
}

struct Converter<'a> {
    shapes: Shapes<'a, ()>,
    assembler: Assembler<'a>,
}

impl<'a> Converter<'a> {
    /// The members of a group, from its `value` and perhaps `typed_value`; `rows` are those of its slots.
    fn members(
        &mut self,
        columns: &'a [ArrayRef],
        schema: &ShreddingSchema,
        rows: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        let mut members = Vec::with_capacity(columns.len());
        for (position, column) in columns.iter().enumerate() {
            members.push(match (position, schema) {
                (0, _) => self.untyped_value(column, rows)?,
                (_, ShreddingSchema::Object(fields)) => self.object(column.as_struct(), fields, rows)?,
                (_, ShreddingSchema::List(element)) => self.array(column.as_list(), element, rows)?,
                _ => column.clone(),
            });
        }
        Ok(members)
    }

    fn untyped_value(&mut self, column: &'a ArrayRef, rows: &[usize]) -> Result<ArrayRef> {
        let values = Bytes::new(column)?;
        let mut output = Output::new(column.len());
        for (slot, &row) in rows.iter().enumerate() {
            if let Some(bytes) = values.get(slot) {
                let names = &self.shapes.at(row)?.names;
                let root = self.assembler.value(names, bytes, 0).map_err(|error| error.at_row(row))?;
                self.assembler.write_metadata(&mut output.bytes);
                self.assembler.write_value(root, &mut output.bytes)?;
            }
            output.end()?;
        }
        Ok(Arc::new(output.finish(column.nulls())?))
    }

    fn object(
        &mut self,
        object: &'a StructArray,
        fields: &[(String, ShreddingSchema)],
        rows: &[usize],
    ) -> Result<ArrayRef> {
        let mut groups: Vec<ArrayRef> = Vec::with_capacity(fields.len());
        for (column, (_, schema)) in object.columns().iter().zip(fields) {
            groups.push(Arc::new(self.group(column.as_struct(), schema, rows)?));
        }
        let fields = fields.iter().map(|(name, schema)| group(name, schema)).collect();
        Ok(Arc::new(StructArray::try_new(fields, groups, object.nulls().cloned())?))
    }

    fn array(&mut self, list: &'a ListArray, element: &ShreddingSchema, rows: &[usize]) -> Result<ArrayRef> {
        let offsets = list.value_offsets();
        let lengths = offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let rows: Vec<usize> =
            rows.iter().zip(lengths).flat_map(|(&row, n)| std::iter::repeat_n(row, n)).collect();
        let elements = self.group(list.values().as_struct(), element, &rows)?;
        let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
        Ok(Arc::new(ListArray::try_new(
            Arc::new(group("element", element)),
            offsets,
            Arc::new(elements),
            nulls,
        )?))
    }

    /// A group that is null where all of its members are: the value is missing.
    fn group(
        &mut self,
        shredded: &'a StructArray,
        schema: &ShreddingSchema,
        rows: &[usize],
    ) -> Result<StructArray> {
        let columns = self.members(shredded.columns(), schema, rows)?;
        let is_set = |slot: usize| columns.iter().any(|column| column.is_valid(slot));
        let nulls = NullBuffer::from_iter((0..shredded.len()).map(is_set));
        Ok(StructArray::try_new(members(schema), columns, Some(nulls))?)
    }
}
