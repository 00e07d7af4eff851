//! The definition and repetition levels of the leaves of a batch.
//!
//! A node of the schema has a slot for each row, or below a list for each element. Levels are computed for the slots
//! of a node, once for all leaves below it that have the same levels. Groups that cannot be null share the slots of
//! their parent.

use std::borrow::Cow;
use std::iter::zip;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::NullBuffer;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, Field};

use super::hybrid;
use crate::error::{Error, Result};

/// In the definition levels of a frame: the entry is the next slot, which has a level of its own.
const SLOT: u8 = u8::MAX;

/// One leaf of a batch: its array, and the slots of the node around it.
pub(in crate::parquet) struct Leaf {
    slots: Arc<Slots>,
    pub array: ArrayRef,
    is_nullable: bool,
}

/// The leaves of `columns`, in the order of the file.
pub(in crate::parquet) fn leaves<'a>(
    columns: impl Iterator<Item = (&'a Field, &'a ArrayRef)>,
    rows: usize,
) -> Result<Vec<Leaf>> {
    let slots = Arc::new(Slots::new(rows));
    let mut leaves = Vec::new();
    for (field, column) in columns {
        walk(field, column, &slots, &mut leaves)?;
    }
    Ok(leaves)
}

fn walk(field: &Field, array: &ArrayRef, slots: &Arc<Slots>, leaves: &mut Vec<Leaf>) -> Result<()> {
    let is_nullable = field.is_nullable();
    let own = || match is_nullable {
        true => Arc::new(slots.optional(array.nulls())),
        false => slots.clone(),
    };
    match array.data_type() {
        DataType::Struct(fields) => {
            let slots = own();
            let columns = array.as_struct().columns();
            fields.iter().zip(columns).try_for_each(|(field, column)| walk(field, column, &slots, leaves))
        }
        DataType::List(element) => {
            let list = array.as_list::<i32>();
            let (slots, values) = own().elements(list.value_offsets(), list.values())?;
            walk(element, &values, &Arc::new(slots), leaves)
        }
        DataType::LargeList(element) => {
            let list = array.as_list::<i64>();
            let (slots, values) = own().elements(list.value_offsets(), list.values())?;
            walk(element, &values, &Arc::new(slots), leaves)
        }
        DataType::Map(entries, _) => {
            let map = array.as_map();
            let pairs: ArrayRef = Arc::new(map.entries().clone());
            let (slots, pairs) = own().elements(map.value_offsets(), &pairs)?;
            // An entry is not null, whatever the flag of its field.
            let entries = entries.as_ref().clone().with_nullable(false);
            walk(&entries, &pairs, &Arc::new(slots), leaves)
        }
        _ => {
            leaves.push(Leaf { slots: slots.clone(), array: array.clone(), is_nullable });
            Ok(())
        }
    }
}

/// The slots of a node.
struct Slots {
    rows: usize,
    count: usize,
    /// The definition level of a slot in which the node is present …
    level: u8,
    /// … and the level of each slot; `None` where the node is present in all.
    reached: Option<Vec<u8>>,
    present: Option<NullBuffer>,
    /// How slots and empty lists alternate; `None` outside of lists.
    frame: Option<Arc<Frame>>,
    /// The levels of a leaf that is null in all slots, of a required leaf, and of one without nulls.
    all_null: OnceLock<Arc<Levels>>,
    required: OnceLock<Arc<Levels>>,
    all_valid: OnceLock<Arc<Levels>>,
}

/// The entries of the leaves below a list.
struct Frame {
    repetition: Vec<u8>,
    /// The definition level of an entry without element, or `SLOT`.
    definition: Vec<u8>,
    max_repetition: u8,
    encoded: Encoded<Frame>,
}

/// The encoded levels of pages that begin with these: leaves of one node mostly have the same pages.
struct Encoded<T>(Mutex<Vec<EncodedPage<T>>>);

struct EncodedPage<T> {
    /// The parts of the page after the first one.
    rest: Vec<Arc<T>>,
    bytes: Arc<[u8]>,
}

/// The pages of a node that are kept: those of leaves with and of leaves without values are of different lengths.
const ENCODED_PAGES: usize = 4;

impl<T> Encoded<T> {
    fn new() -> Self {
        Encoded(Mutex::new(Vec::new()))
    }

    /// Append the levels of a page of these and the `rest` to `page`.
    fn push(&self, rest: &[&Arc<T>], page: &mut Vec<u8>, encode: impl FnOnce() -> Vec<u8>) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &&EncodedPage<T>| {
            known.rest.len() == rest.len()
                && zip(&known.rest, rest).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let bytes = match pages.iter().find(is_same) {
            Some(known) => known.bytes.clone(),
            None => {
                let bytes: Arc<[u8]> = encode().into();
                if pages.len() < ENCODED_PAGES {
                    let rest = rest.iter().map(|&part| part.clone()).collect();
                    pages.push(EncodedPage { rest, bytes: bytes.clone() });
                }
                bytes
            }
        };
        drop(pages);
        page.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        page.extend_from_slice(&bytes);
    }
}

impl Slots {
    fn new(rows: usize) -> Self {
        Slots::of(rows, rows, 0, None, None)
    }

    fn of(
        rows: usize,
        count: usize,
        level: u8,
        present: Option<(NullBuffer, Vec<u8>)>,
        frame: Option<Arc<Frame>>,
    ) -> Self {
        let (present, reached) = present.unzip();
        let [all_null, required, all_valid] = std::array::from_fn(|_| OnceLock::new());
        Slots { rows, count, level, reached, present, frame, all_null, required, all_valid }
    }

    /// Some rows outside of lists.
    fn slice(&self, start: usize, rows: usize) -> Slots {
        let present = self.present.as_ref().map(|present| present.slice(start, rows));
        let reached = self.reached.as_ref().map(|reached| reached[start..start + rows].to_vec());
        Slots::of(rows, rows, self.level, present.zip(reached), None)
    }

    /// The slots of a group with these nulls.
    fn optional(&self, nulls: Option<&NullBuffer>) -> Slots {
        let level = self.level + 1;
        let present = NullBuffer::union(self.present.as_ref(), nulls).filter(|all| all.null_count() > 0);
        let present = present.map(|present| {
            let reached = self.reached(&present, level);
            (present, reached)
        });
        Slots::of(self.rows, self.count, level, present, self.frame.clone())
    }

    /// The level of each slot, if those that are `present` have `level`.
    fn reached(&self, present: &NullBuffer, level: u8) -> Vec<u8> {
        let mut reached = self.reached.clone().unwrap_or_else(|| vec![self.level; self.count]);
        let words = present.inner().bit_chunks();
        for (levels, word) in reached.chunks_mut(64).zip(words.iter_padded()) {
            match word {
                0 => {}
                u64::MAX => levels.fill(level),
                _ => levels.iter_mut().enumerate().for_each(|(bit, reached)| {
                    *reached = if word >> bit & 1 == 1 { level } else { *reached };
                }),
            }
        }
        reached
    }

    /// The slots of the elements of a list with these `offsets`, and those of `values` that are elements: lists that
    /// are null, or within a null, may have elements as well.
    fn elements<O: Copy + TryInto<usize>>(
        &self,
        offsets: &[O],
        values: &ArrayRef,
    ) -> Result<(Slots, ArrayRef)> {
        let max_repetition = self.frame.as_ref().map_or(0, |frame| frame.max_repetition) + 1;
        let offset = |slot: usize| {
            let offset = offsets.get(slot).and_then(|&offset| offset.try_into().ok());
            offset.ok_or_else(|| Error::data_file("a list has an offset outside of its elements"))
        };
        let (mut slot, mut start) = (0, offset(0)?);
        let most = self.entries() + offset(offsets.len() - 1)?.saturating_sub(start);
        let (mut repetition, mut definition) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for entry in 0..self.entries() {
            let outer = self.frame.as_ref().map_or((0, SLOT), |f| (f.repetition[entry], f.definition[entry]));
            repetition.push(outer.0);
            if outer.1 != SLOT {
                definition.push(outer.1);
                continue;
            }
            let end = offset(slot + 1)?;
            if self.present.as_ref().is_some_and(|present| present.is_null(slot)) {
                definition.push(self.reached.as_ref().map_or(self.level, |reached| reached[slot]));
            } else if start >= end {
                definition.push(self.level);
            } else {
                repetition.resize(repetition.len() + end - start - 1, max_repetition);
                definition.resize(definition.len() + end - start, SLOT);
                match ranges.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    _ => ranges.push((start, end)),
                }
            }
            (slot, start) = (slot + 1, end);
        }
        let values = select(values, &ranges)?;
        let frame = Frame { repetition, definition, max_repetition, encoded: Encoded::new() };
        let slots = Slots::of(self.rows, values.len(), self.level + 1, None, Some(Arc::new(frame)));
        Ok((slots, values))
    }

    fn entries(&self) -> usize {
        self.frame.as_ref().map_or(self.count, |frame| frame.definition.len())
    }

    /// The levels of a leaf whose values have `max_definition`, and whose slots have the levels `reached`.
    fn levels(&self, max_definition: u8, reached: Option<&[u8]>, uniform: u8, values: usize) -> Arc<Levels> {
        let entries = self.entries();
        let definition = match (&self.frame, reached) {
            (None, None) => Definition::Uniform(uniform),
            (None, Some(reached)) => Definition::Each(reached.to_vec()),
            (Some(frame), None) => {
                let levels = frame.definition.iter();
                Definition::Each(levels.map(|&level| if level == SLOT { uniform } else { level }).collect())
            }
            (Some(frame), Some(reached)) => {
                let mut levels = frame.definition.clone();
                let slots = levels.iter_mut().filter(|level| **level == SLOT);
                slots.zip(reached).for_each(|(level, &reached)| *level = reached);
                Definition::Each(levels)
            }
        };
        let (rows, frame, encoded) = (self.rows, self.frame.clone(), Encoded::new());
        Arc::new(Levels { rows, entries, values, max_definition, definition, frame, encoded })
    }
}

/// The given ranges of `values`.
fn select(values: &ArrayRef, ranges: &[(usize, usize)]) -> Result<ArrayRef> {
    Ok(match ranges {
        [] => values.slice(0, 0),
        [(start, end)] => values.slice(*start, end - start),
        _ => {
            let data = values.to_data();
            let count = ranges.iter().map(|(start, end)| end - start).sum();
            let mut selected = MutableArrayData::new(vec![&data], false, count);
            ranges.iter().try_for_each(|&(start, end)| selected.try_extend(0, start, end))?;
            make_array(selected.freeze())
        }
    })
}

impl Leaf {
    /// The leaf in parts of rows that have at most `most` bytes each, or in one part below a list.
    pub(in crate::parquet) fn split(self, most: usize) -> Vec<Leaf> {
        let rows = self.slots.rows;
        if self.slots.frame.is_some() || variable_bytes(&self.array) <= most {
            return vec![self];
        }
        let mut parts = Vec::new();
        let mut start = 0;
        while start < rows {
            let mut length = rows - start;
            while length > 1 && variable_bytes(&self.array.slice(start, length)) > most {
                length /= 2;
            }
            let (slots, array) = (Arc::new(self.slots.slice(start, length)), self.array.slice(start, length));
            parts.push(Leaf { slots, array, is_nullable: self.is_nullable });
            start += length;
        }
        parts
    }
}

/// The bytes of an array of variable length.
pub(in crate::parquet) fn variable_bytes(array: &ArrayRef) -> usize {
    fn span<O: Copy + TryInto<usize>>(offsets: &[O]) -> usize {
        let offset = |offset: Option<&O>| offset.and_then(|&offset| offset.try_into().ok()).unwrap_or(0);
        offset(offsets.last()).saturating_sub(offset(offsets.first()))
    }
    // The low half of a view is the length of its value.
    let views = |views: &[u128]| views.iter().map(|&view| view as u32 as usize).sum();
    match array.data_type() {
        DataType::Utf8 => span(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => span(array.as_string::<i64>().value_offsets()),
        DataType::Binary => span(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => span(array.as_binary::<i64>().value_offsets()),
        DataType::Utf8View => views(array.as_string_view().views()),
        DataType::BinaryView => views(array.as_binary_view().views()),
        DataType::FixedSizeBinary(length) => array.len() * usize::try_from(*length).unwrap_or(0),
        _ => 0,
    }
}

/// The slots of a leaf that have a value.
pub(super) enum Selection {
    All,
    None,
    Some(NullBuffer),
}

impl Selection {
    fn of(present: Option<&NullBuffer>) -> Self {
        match present {
            None => Selection::All,
            Some(present) if present.null_count() == present.len() => Selection::None,
            Some(present) => Selection::Some(present.clone()),
        }
    }
}

impl Leaf {
    /// The levels of the leaf, and which of its slots have a value.
    pub(super) fn levels(&self) -> (Arc<Levels>, Selection) {
        let Leaf { slots, array, is_nullable } = self;
        let (present, reached) = (slots.present.as_ref(), slots.reached.as_deref());
        let in_present = slots.count - present.map_or(0, NullBuffer::null_count);
        if !is_nullable {
            let levels = || slots.levels(slots.level, reached, slots.level, in_present);
            return (slots.required.get_or_init(levels).clone(), Selection::of(present));
        }
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let valid = nulls.as_ref().and_then(|nulls| NullBuffer::union(present, Some(nulls)));
        let level = slots.level + 1;
        match valid {
            Some(valid) if valid.null_count() == valid.len() => {
                let levels = || slots.levels(level, reached, slots.level, 0);
                (slots.all_null.get_or_init(levels).clone(), Selection::None)
            }
            // The leaf has a value wherever the node is present.
            valid if valid.as_ref().is_none_or(|valid| valid.null_count() == slots.count - in_present) => {
                let levels = || {
                    let reached = present.map(|present| slots.reached(present, level));
                    slots.levels(level, reached.as_deref(), level, in_present)
                };
                (slots.all_valid.get_or_init(levels).clone(), Selection::of(present))
            }
            valid => {
                let reached = valid.as_ref().map(|valid| slots.reached(valid, level));
                let values = slots.count - valid.as_ref().map_or(0, NullBuffer::null_count);
                (slots.levels(level, reached.as_deref(), level, values), Selection::of(valid.as_ref()))
            }
        }
    }
}

/// The levels of a leaf.
pub(super) struct Levels {
    pub rows: usize,
    /// Values, nulls and empty lists.
    pub entries: usize,
    /// The entries with a value.
    pub values: usize,
    max_definition: u8,
    definition: Definition,
    frame: Option<Arc<Frame>>,
    /// The encoded definition levels.
    encoded: Encoded<Levels>,
}

enum Definition {
    Uniform(u8),
    Each(Vec<u8>),
}

/// Append the levels of a page that consists of `parts` to `page`, as data pages of version 1 have them.
pub(super) fn encode(parts: &[Arc<Levels>], page: &mut Vec<u8>) {
    let frames: Vec<&Arc<Frame>> = parts.iter().flat_map(|part| &part.frame).collect();
    if let [first, rest @ ..] = &frames[..] {
        first.encoded.push(rest, page, || {
            let levels: Vec<&[u8]> = frames.iter().map(|frame| &frame.repetition[..]).collect();
            encoded(&levels, hybrid::width_of(first.max_repetition.into()))
        });
    }
    let levels: Vec<&Arc<Levels>> = parts.iter().collect();
    if let [first, rest @ ..] = &levels[..]
        && first.max_definition > 0
    {
        first.encoded.push(rest, page, || encode_definition(parts, first.max_definition));
    }
}

/// Return the repetition and the definition levels in what [`encode`] appended, as data pages of version 2 have them:
/// without their lengths.
pub(super) fn split(mut encoded: &[u8], has_repetition: bool, has_definition: bool) -> (&[u8], &[u8]) {
    let mut take = |is_present: bool| match encoded.split_first_chunk() {
        Some((length, rest)) if is_present => {
            let (levels, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
            encoded = rest;
            levels
        }
        _ => &[],
    };
    (take(has_repetition), take(has_definition))
}

/// The definition level of all entries of `parts`, if it is the same.
fn uniform(parts: &[Arc<Levels>]) -> Option<u32> {
    let mut levels = parts.iter().map(|part| match part.definition {
        Definition::Uniform(level) => Some(level),
        Definition::Each(_) => None,
    });
    let first = levels.next()??;
    levels.all(|level| level == Some(first)).then_some(first.into())
}

fn encode_definition(parts: &[Arc<Levels>], max: u8) -> Vec<u8> {
    let width = hybrid::width_of(max.into());
    let entries = parts.iter().map(|part| part.entries).sum();
    if let Some(level) = uniform(parts) {
        let mut bytes = Vec::new();
        hybrid::encode_run(level, entries, width, &mut bytes);
        return bytes;
    }
    let levels = parts.iter().map(|part| match &part.definition {
        Definition::Uniform(level) => Cow::Owned(vec![*level; part.entries]),
        Definition::Each(levels) => Cow::Borrowed(&levels[..]),
    });
    let levels: Vec<Cow<'_, [u8]>> = levels.collect();
    encoded(&levels, width)
}

/// Encode the levels of all parts of a page.
fn encoded(parts: &[impl AsRef<[u8]>], width: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    match parts {
        [part] => hybrid::encode(part.as_ref(), width, &mut bytes),
        _ => {
            let mut levels = Vec::with_capacity(parts.iter().map(|part| part.as_ref().len()).sum());
            parts.iter().for_each(|part| levels.extend_from_slice(part.as_ref()));
            hybrid::encode(&levels, width, &mut bytes);
        }
    }
    bytes
}
