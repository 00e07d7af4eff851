//! The definition and repetition levels of the leaves of a batch.
//!
//! A node of the schema has a slot for each row, or below a list for each element. Levels are computed for the slots
//! of a node, once for all leaves below it that have the same levels. Groups that cannot be null share the slots of
//! their parent.

use std::sync::{Arc, OnceLock};

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
    encoded: OnceLock<Vec<u8>>,
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
        let (mut repetition, mut definition) = (Vec::new(), Vec::new());
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let mut slot = 0;
        for entry in 0..self.entries() {
            let outer = self.frame.as_ref().map_or((0, SLOT), |f| (f.repetition[entry], f.definition[entry]));
            repetition.push(outer.0);
            if outer.1 != SLOT {
                definition.push(outer.1);
                continue;
            }
            let (start, end) = (offset(slot)?, offset(slot + 1)?);
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
            slot += 1;
        }
        let values = select(values, &ranges)?;
        let frame = Frame { repetition, definition, max_repetition, encoded: OnceLock::new() };
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
            (Some(frame), reached) => {
                let mut reached = reached.map(|reached| reached.iter().copied());
                let mut next = || reached.as_mut().map_or(Some(uniform), Iterator::next).unwrap_or(uniform);
                let levels = frame.definition.iter();
                Definition::Each(levels.map(|&level| if level == SLOT { next() } else { level }).collect())
            }
        };
        let (rows, frame, encoded) = (self.rows, self.frame.clone(), OnceLock::new());
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
        let level = slots.level + 1;
        match nulls {
            Some(nulls) if nulls.null_count() == nulls.len() => {
                let levels = || slots.levels(level, reached, slots.level, 0);
                (slots.all_null.get_or_init(levels).clone(), Selection::None)
            }
            None => {
                let levels = || {
                    let reached = present.map(|present| slots.reached(present, level));
                    slots.levels(level, reached.as_deref(), level, in_present)
                };
                (slots.all_valid.get_or_init(levels).clone(), Selection::of(present))
            }
            nulls => {
                let valid = NullBuffer::union(present, nulls.as_ref());
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
    encoded: OnceLock<Vec<u8>>,
}

enum Definition {
    Uniform(u8),
    Each(Vec<u8>),
}

/// Append the levels of a page that consists of `parts` to `page`, as data pages of version 1 have them.
pub(super) fn encode(parts: &[Arc<Levels>], page: &mut Vec<u8>) {
    if let [part] = parts {
        if let Some(frame) = &part.frame {
            let width = hybrid::width_of(frame.max_repetition.into());
            push(frame.encoded.get_or_init(|| encoded(&frame.repetition, width)), page);
        }
        if part.max_definition > 0 {
            push(part.encoded.get_or_init(|| part.encode_definition()), page);
        }
        return;
    }
    let Some(first) = parts.first() else { return };
    if let Some(frame) = &first.frame {
        let frames = parts.iter().flat_map(|part| &part.frame);
        let levels: Vec<u8> = frames.flat_map(|frame| &frame.repetition).copied().collect();
        push(&encoded(&levels, hybrid::width_of(frame.max_repetition.into())), page);
    }
    if first.max_definition > 0 {
        let entries = parts.iter().map(|part| part.entries).sum();
        if let Some(level) = uniform(parts) {
            let mut bytes = Vec::new();
            hybrid::encode_run(level, entries, hybrid::width_of(first.max_definition.into()), &mut bytes);
            return push(&bytes, page);
        }
        let mut levels = Vec::with_capacity(entries);
        for part in parts {
            match &part.definition {
                Definition::Uniform(level) => levels.resize(levels.len() + part.entries, *level),
                Definition::Each(part) => levels.extend_from_slice(part),
            }
        }
        push(&encoded(&levels, hybrid::width_of(first.max_definition.into())), page);
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

impl Levels {
    fn encode_definition(&self) -> Vec<u8> {
        let width = hybrid::width_of(self.max_definition.into());
        match &self.definition {
            Definition::Each(levels) => encoded(levels, width),
            Definition::Uniform(level) => {
                let mut bytes = Vec::new();
                hybrid::encode_run((*level).into(), self.entries, width, &mut bytes);
                bytes
            }
        }
    }
}

fn encoded(levels: &[u8], width: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    hybrid::encode(levels, width, &mut bytes);
    bytes
}

fn push(encoded: &[u8], page: &mut Vec<u8>) {
    page.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
    page.extend_from_slice(encoded);
}
