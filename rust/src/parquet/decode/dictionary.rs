//! The values of a dictionary, decoded without the pages that refer to it.

use std::iter;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema};
use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::super::pages::RowGroup;
use super::Result;
use super::leaf::Levels;
use super::rows::Plan;
use super::strings::Keep;

impl Plan {
    /// Return a row for each value in the dictionary of the only leaf, with the structs around it; `None` if the leaf
    /// is not decoded here, or begins with another page.
    pub fn dictionary_rows(&self, pages: &RowGroup) -> Result<Option<RecordBatch>> {
        let [leaf] = &self.own[..] else { return Ok(None) };
        let Some(mut values) = leaf.values(Keep::Never) else { return Ok(None) };
        let first = pages.pages(leaf.leaf)?.get_next_page()?;
        let Some(Page::DictionaryPage { buf, num_values, .. }) = first else { return Ok(None) };
        let count = num_values as usize;
        values.begin_page(Encoding::PLAIN, buf)?;
        values.read(count)?;
        let decoded = [(values.finish(None)?, Levels::repeated(leaf.max_level, count))];
        let columns = self.columns.iter().map(|node| node.build(&decoded, &mut iter::empty()));
        let (fields, columns): (Vec<FieldRef>, Vec<_>) =
            columns.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok(Some(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?))
    }
}
