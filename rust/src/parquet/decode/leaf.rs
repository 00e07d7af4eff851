//! One leaf of a row group: its pages, their levels, and the slots of the batch in progress.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};

use super::hybrid::{Hybrid, Section};
use super::values::{Values, retain};
use super::{Cursor, Result, broken};

/// The most entries that are skipped at once.
const SKIPPED_ENTRIES: usize = 8 << 10;

pub(super) struct LeafDecoder {
    pages: Box<dyn PageReader>,
    max_level: u8,
    values: Box<dyn Values>,
    has_dictionary: bool,
    /// The entries of the page that are not read yet, and their levels, unless all have a value.
    left: usize,
    page: Option<Hybrid>,
    levels: Levels,
    /// The slots of an earlier batch that was one of nulls.
    empty: Option<ArrayRef>,
}

/// The definition levels of a batch.
#[derive(Debug, Clone, Default)]
pub(super) struct Levels {
    /// The level of the first `count` entries, if `each` is empty.
    level: u8,
    count: usize,
    each: Vec<u8>,
}

/// The entries that are skipped before others are read.
#[derive(Debug)]
pub(super) struct Step {
    pub skipped: usize,
    pub read: usize,
    /// The ranges of the entries read that are kept; `None` for all of them.
    pub kept: Option<Vec<Range<usize>>>,
}

impl Step {
    /// The number of entries that are kept.
    pub fn rows(&self) -> usize {
        self.kept.as_ref().map_or(self.read, |kept| kept.iter().map(ExactSizeIterator::len).sum())
    }
}

impl Levels {
    /// The same level for each of `count` entries.
    pub fn repeated(level: u8, count: usize) -> Self {
        Levels { level, count, each: Vec::new() }
    }

    fn len(&self) -> usize {
        if self.each.is_empty() { self.count } else { self.each.len() }
    }

    fn push(&mut self, level: u8, count: usize) {
        if self.len() == 0 || self.each.is_empty() && self.level == level {
            (self.level, self.count) = (level, self.count + count);
        } else {
            let length = self.len() + count;
            self.each().resize(length, level);
        }
    }

    /// The level of each entry, to which others can be added.
    fn each(&mut self) -> &mut Vec<u8> {
        if self.each.is_empty() {
            self.each.resize(self.count, self.level);
        }
        &mut self.each
    }

    /// Keep those of the last `count` entries that are in `kept`.
    fn retain(&mut self, count: usize, kept: &[Range<usize>]) {
        if self.each.is_empty() {
            self.count = self.count - count + kept.iter().map(ExactSizeIterator::len).sum::<usize>();
        } else {
            retain(&mut self.each, count, kept);
            self.count = self.each.len();
        }
    }

    /// The nulls of a node that is present from `level` on; `None` without nulls.
    pub fn nulls(&self, level: u8) -> Option<NullBuffer> {
        if self.each.is_empty() {
            return (self.level < level).then(|| NullBuffer::new_null(self.count));
        }
        let present = BooleanBuffer::collect_bool(self.each.len(), |index| self.each[index] >= level);
        Some(NullBuffer::new(present)).filter(|nulls| nulls.null_count() > 0)
    }

    /// Whether no entry has `level`, as far as this is known without looking at each.
    fn lacks(&self, level: u8) -> bool {
        self.each.is_empty() && self.level < level
    }
}

impl LeafDecoder {
    pub fn new(pages: Box<dyn PageReader>, max_level: u8, values: Box<dyn Values>) -> Self {
        let (has_dictionary, left, page, levels, empty) = Default::default();
        LeafDecoder { pages, max_level, values, has_dictionary, left, page, levels, empty }
    }

    /// Read the entries of `steps`, of which there are `count`, and return their slots and their levels.
    ///
    /// The slots have nulls only if the leaf `is_nullable`.
    pub fn read(&mut self, steps: &[Step], is_nullable: bool) -> Result<(ArrayRef, Levels)> {
        self.values.expect(steps.iter().map(|step| step.read).sum());
        for step in steps {
            self.skip(step.skipped)?;
            self.read_entries(step.read)?;
            if let Some(kept) = &step.kept {
                self.levels.retain(step.read, kept);
                self.values.retain(step.read, kept);
            }
        }
        let levels = std::mem::take(&mut self.levels);
        if is_nullable && levels.lacks(self.max_level) {
            self.values.clear();
            if self.empty.as_ref().is_none_or(|slots| slots.len() < levels.len()) {
                self.empty = None;
            }
            let slots = self.empty.get_or_insert_with(|| self.values.nulls(levels.len()));
            return Ok((slots.slice(0, levels.len()), levels));
        }
        let nulls = if is_nullable { levels.nulls(self.max_level) } else { None };
        Ok((self.values.finish(nulls)?, levels))
    }

    /// Whether all entries are read.
    pub fn is_at_end(&mut self) -> Result<bool> {
        while self.left == 0 {
            match self.pages.peek_next_page()? {
                None => return Ok(true),
                Some(page) if !page.is_dict => return Ok(page.num_levels.or(page.num_rows) == Some(0)),
                Some(_) => self.pages.skip_next_page()?,
            }
        }
        Ok(false)
    }

    fn read_entries(&mut self, mut count: usize) -> Result<()> {
        while count > 0 {
            if self.left == 0 {
                self.next_page(0)?;
                continue;
            }
            let taken = self.left.min(count);
            (self.left, count) = (self.left - taken, count - taken);
            self.read_levels(taken)?;
        }
        Ok(())
    }

    /// Read entries of the page.
    fn read_levels(&mut self, mut count: usize) -> Result<()> {
        let Some(page) = &mut self.page else {
            self.levels.push(self.max_level, count);
            return self.values.read(count);
        };
        let mut packed = Vec::new();
        while count > 0 {
            packed.clear();
            match page.next(count, &mut packed)? {
                Section::Repeated { value, count: length } => {
                    let level = value.min(u8::MAX.into()) as u8;
                    self.levels.push(level, length);
                    match level == self.max_level {
                        true => self.values.read(length)?,
                        false => self.values.append_nulls(length),
                    }
                    count -= length;
                }
                Section::Packed { count: length } => {
                    self.levels.each().extend_from_slice(&packed);
                    self.values.read(packed.iter().filter(|&&level| level == self.max_level).count())?;
                    self.values.spread(&packed, self.max_level);
                    count -= length;
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, mut count: usize) -> Result<()> {
        while count > 0 {
            if self.left == 0 {
                count -= self.next_page(count)?;
                continue;
            }
            let taken = self.left.min(count).min(SKIPPED_ENTRIES);
            (self.left, count) = (self.left - taken, count - taken);
            let values = match &mut self.page {
                None => taken,
                Some(page) => {
                    let mut levels: Vec<u8> = Vec::new();
                    page.read(taken, &mut levels)?;
                    levels.iter().filter(|&&level| level == self.max_level).count()
                }
            };
            self.values.skip(values)?;
        }
        Ok(())
    }

    /// Continue with the next page that has more than `skipped` entries, or skip it. Return the entries skipped.
    fn next_page(&mut self, skipped: usize) -> Result<usize> {
        let next = self.pages.peek_next_page()?.ok_or_else(|| broken("has a column that ends early"))?;
        let entries = next.num_levels.or(next.num_rows);
        if let Some(entries) = entries.filter(|&entries| !next.is_dict && (1..=skipped).contains(&entries)) {
            self.pages.skip_next_page()?;
            return Ok(entries);
        }
        match self.pages.get_next_page()? {
            None => return Err(broken("has a column that ends early")),
            Some(Page::DictionaryPage { .. }) if self.has_dictionary => {
                return Err(broken("has a column chunk with two dictionaries"));
            }
            Some(Page::DictionaryPage { buf, num_values, .. }) => {
                self.has_dictionary = true;
                self.values.begin_dictionary(buf, num_values as usize)?;
            }
            Some(Page::DataPage { buf, num_values, encoding, def_level_encoding, .. }) => {
                let mut page = Cursor::new(buf);
                let levels = match self.max_level {
                    0 => None,
                    _ if def_level_encoding != Encoding::RLE => {
                        return Err(broken("has levels in an encoding out of use"));
                    }
                    _ => {
                        let length = page.take(size_of::<u32>())?.first_chunk();
                        let length = length.map_or(0, |length| u32::from_le_bytes(*length));
                        Some(page.split(length as usize)?)
                    }
                };
                self.begin_page(levels, num_values, encoding, page.into_rest())?;
            }
            Some(Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            }) => {
                let mut page = Cursor::new(buf);
                page.take(rep_levels_byte_len as usize)?;
                let levels = Some(page.split(def_levels_byte_len as usize)?).filter(|_| self.max_level > 0);
                self.begin_page(levels, num_values, encoding, page.into_rest())?;
            }
        }
        Ok(0)
    }

    fn begin_page(
        &mut self,
        levels: Option<Bytes>,
        entries: u32,
        encoding: Encoding,
        values: Bytes,
    ) -> Result<()> {
        let width = (u8::BITS - self.max_level.leading_zeros()) as u8;
        self.page = levels.map(|levels| Hybrid::new(levels, width)).transpose()?;
        self.left = entries as usize;
        self.values.begin_page(encoding, values)
    }
}
