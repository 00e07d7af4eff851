//! Write the column chunks of a view to a new file, with fewer definition levels.
//!
//! A path of a Variant has a definition level for each optional group around its values. A top-level column has only one
//! level, and the levels of its lists. So pages get new levels. Encoded values, bounds, null counts and row counts stay.

use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageReader};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use rayon::prelude::*;

use super::copy::{EncodedRowGroup, own_properties};
use super::decode::{Hybrid, Section};
use super::encode::{
    Counts, GROUP, PageBytes, encode_run, pack, width_of, write_dictionary, write_page_v1, write_page_v2,
};
use super::pages::after_levels;
use super::read::{ParquetFile, guarded};
use super::view::{ViewColumn, Viewed, no_view, renamed_chunk, viewed};
use crate::error::{Error, Result};

impl ParquetFile {
    /// Write columns to a new file without decoding their values.
    ///
    /// Return `NoView` for the reasons of [`ParquetFile::view`] except levels, for several pages of a list without a page
    /// index, and for obsolete codecs and level encodings.
    pub fn write_view(&self, columns: &[ViewColumn], sink: impl Write + Send) -> Viewed<()> {
        let row_groups: Vec<usize> = (0..self.row_groups().len()).collect();
        let (schema, leaves) = viewed!(self.viewed_schema(columns, &row_groups));
        let mut replaced = vec![true; self.metadata().file_metadata().schema_descr().num_columns()];
        leaves.iter().for_each(|&leaf| replaced[leaf] = false);
        let mut writer = SerializedFileWriter::new(sink, schema.root_schema_ptr(), own_properties())?;
        for row_group in row_groups {
            let Some(encoded) = self.encoded_row_group(row_group, &replaced)? else {
                return no_view("the file has lists without a page index");
            };
            let chunks: Vec<Option<Shown>> = leaves
                .par_iter()
                .zip(schema.columns())
                .map(|(&leaf, column)| self.shown(&encoded, row_group, leaf, column))
                .collect::<Result<_>>()?;
            let mut group = writer.next_row_group()?;
            for chunk in chunks {
                let Some(chunk) = chunk else {
                    return no_view("the file has pages with an obsolete codec or level encoding");
                };
                match &chunk.pages {
                    None => group.append_column(&encoded.chunks, chunk.close)?,
                    Some(pages) => group.append_column(pages, chunk.close)?,
                }
            }
            group.close()?;
        }
        writer.finish()?;
        Ok(Ok(()))
    }

    /// A column chunk of a fetched row group, `None` for an obsolete codec or level encoding.
    fn shown(
        &self,
        encoded: &EncodedRowGroup,
        row_group: usize,
        leaf: usize,
        column: &ColumnDescPtr,
    ) -> Result<Option<Shown>> {
        let Some(mut close) = encoded.columns[leaf].clone() else { return Ok(None) };
        let stored = close.metadata.column_descr_ptr();
        close.metadata = renamed_chunk(&close.metadata, column.clone(), true, self.length())?;
        if stored.max_def_level() == column.max_def_level() {
            return Ok(Some(Shown { pages: None, close }));
        }
        guarded(|| {
            let group = self.checked_pages(encoded.chunks.clone(), row_group, &[leaf])?;
            written(group.pages(leaf)?, &stored, column, close)
        })
        .map_err(|error| error.in_column(&stored.path().string()))
    }
}

/// A column chunk of a view.
struct Shown {
    /// `None` for those of the file.
    pages: Option<PageBytes>,
    close: ColumnCloseResult,
}

/// Encode the levels of a column chunk for another column. `close` has the path of the new column and the statistics of
/// the stored one.
fn written(
    mut pages: Box<dyn PageReader>,
    stored: &ColumnDescPtr,
    column: &ColumnDescPtr,
    mut close: ColumnCloseResult,
) -> Result<Option<Shown>> {
    use Compression::{GZIP, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    let compression = close.metadata.compression();
    let levels = Levels {
        repetition: stored.max_rep_level(),
        stored: stored.max_def_level(),
        shown: column.max_def_level(),
    };
    let is_possible = matches!(compression, UNCOMPRESSED | ZSTD(_) | SNAPPY | GZIP(_) | LZ4_RAW);
    let Some(index) = close.offset_index.as_mut().filter(|_| is_possible && levels.are_small()) else {
        return Ok(None);
    };
    let (mut bytes, mut uncompressed, mut dictionary) = (PageBytes::default(), 0, 0);
    let mut locations = index.page_locations.iter_mut();
    while let Some(page) = pages.get_next_page()? {
        let is_data = page.is_data_page();
        let Some((page, sizes)) = levels.written(page, compression)? else { return Ok(None) };
        if is_data {
            let Some(location) = locations.next() else { return Ok(None) };
            location.offset = bytes.size() as i64;
            location.compressed_page_size = page.len() as i32;
        } else {
            dictionary = page.len();
        }
        uncompressed += sizes;
        bytes.push(page);
    }
    if locations.next().is_some() {
        return Ok(None);
    }
    let builder = close.metadata.into_builder();
    close.metadata = builder
        .set_total_compressed_size(bytes.size() as i64)
        .set_total_uncompressed_size(uncompressed as i64)
        .set_data_page_offset(dictionary as i64)
        .set_dictionary_page_offset((dictionary > 0).then_some(0))
        .set_index_page_offset(None)
        .build()?;
    close.bytes_written = bytes.size() as u64;
    Ok(Some(Shown { pages: Some(bytes), close }))
}

/// The largest levels of a column.
struct Levels {
    repetition: i16,
    stored: i16,
    shown: i16,
}

impl Levels {
    fn are_small(&self) -> bool {
        self.stored <= i16::from(u8::MAX)
    }

    /// The bytes of a page with the levels of the shown column and its size before compression, `None` for an obsolete
    /// encoding of levels.
    fn written(&self, page: Page, compression: Compression) -> Result<Option<(Bytes, usize)>> {
        let (page, written) = match page {
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                write_dictionary(compression, &buf, encoding, num_values, is_sorted)?
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                let has_repetition = self.repetition > 0;
                if def_level_encoding != Encoding::RLE
                    || has_repetition && rep_level_encoding != Encoding::RLE
                {
                    return Ok(None);
                }
                let rest = after_levels(&buf, self.repetition, rep_level_encoding)?;
                let values = after_levels(rest, self.stored, def_level_encoding)?;
                let start = buf.len() - rest.len();
                let stored = buf.slice(start + size_of::<u32>()..buf.len() - values.len());
                let definition = self.definition(stored, num_values)?;
                let length = (definition.len() as u32).to_le_bytes();
                let body = [&buf[..start], &length, &definition, values].concat();
                write_page_v1(compression, &body, encoding, num_values)?
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let start = rep_levels_byte_len as usize;
                let end = start + def_levels_byte_len as usize;
                if end > buf.len() {
                    return Err(Error::data_file("the Parquet file has levels longer than their page"));
                }
                let definition = self.definition(buf.slice(start..end), num_values)?;
                let counts = Counts { entries: num_values, nulls: num_nulls, rows: num_rows };
                write_page_v2(compression, (&buf[..start], &definition), &buf[end..], encoding, counts)?
            }
        };
        Ok(Some((page, written.uncompressed_size)))
    }

    /// The definition levels of a page in the shown column, without the levels of the groups around its values.
    fn definition(&self, stored: Bytes, count: u32) -> Result<Vec<u8>, ParquetError> {
        let (most, removed) = (self.stored as u8, (self.stored - self.shown) as u8);
        let width = width_of((most - removed).into());
        let shown = |level: u8| level.saturating_sub(removed);
        let mut levels = Hybrid::new(stored, width_of(most.into()))?;
        let (mut encoded, mut packed, mut left) = (Vec::new(), Vec::new(), count as usize);
        while left > 0 {
            let start = packed.len();
            left -= match levels.next::<u8>(left, &mut packed)? {
                Section::Repeated { value, count } => {
                    let level =
                        u8::try_from(value).ok().filter(|&level| level <= most).ok_or_else(unknown)?;
                    // Only whole groups can be packed before a run.
                    let added = count.min(start.next_multiple_of(GROUP) - start);
                    packed.resize(start + added, shown(level));
                    if count > added {
                        pack(&packed, width, &mut encoded);
                        packed.clear();
                        encode_run(shown(level).into(), count - added, width, &mut encoded);
                    }
                    count
                }
                Section::Packed { count } => {
                    if packed[start..].iter().any(|&level| level > most) {
                        return Err(unknown());
                    }
                    packed[start..].iter_mut().for_each(|level| *level = shown(*level));
                    count
                }
            };
        }
        pack(&packed, width, &mut encoded);
        Ok(encoded)
    }
}

fn unknown() -> ParquetError {
    ParquetError::General("the file has a definition level that its schema lacks".into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parquet::encode::encode_hybrid;

    const LEVELS: Levels = Levels { repetition: 0, stored: 6, shown: 2 };

    proptest! {
        #[test]
        fn levels_are_those_below_what_is_removed(
            runs in prop::collection::vec((0..=6_u8, 1..40_usize), 1..40),
        ) {
            let levels: Vec<u8> =
                runs.iter().flat_map(|&(level, length)| std::iter::repeat_n(level, length)).collect();
            let mut stored = Vec::new();
            encode_hybrid(&levels, width_of(6), &mut stored);
            let shown = LEVELS.definition(stored.into(), levels.len() as u32).unwrap();
            let mut read: Vec<u8> = Vec::new();
            Hybrid::new(shown.into(), width_of(2)).unwrap().read(levels.len(), &mut read).unwrap();
            prop_assert_eq!(read, levels.iter().map(|level| level.saturating_sub(4)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn levels_that_the_schema_lacks_are_rejected() {
        for levels in [vec![7_u8; 20], vec![0, 7, 1]] {
            let mut stored = Vec::new();
            encode_hybrid(&levels, width_of(6), &mut stored);
            let error = LEVELS.definition(stored.into(), levels.len() as u32).unwrap_err();
            assert_eq!(
                error.to_string(),
                "Parquet error: the file has a definition level that its schema lacks"
            );
        }
    }
}
