//! Estimate what each column of a candidate schema saves in a file, and choose those that save bytes.
//!
//! The values of a sample are compressed as the file would store them: all rows as one `value`, of which each value
//! has a part, and each candidate as a column of its own. A column saves the difference, less its price. Values that
//! repeat others of the same row lose by a column, constants gain nothing.

use std::collections::{HashMap, HashSet};

use ahash::RandomState;
use zstd::bulk::Compressor;

use super::counts::{Majority, Typed};
use super::matches::Bits;
use super::prices::{LENGTH, Position, Prices, levels};
use super::{Inference, ROOT};
use crate::error::{Error, Result};
use crate::shred::LeafType;
use crate::value::{Metadata, Value};

/// The share of the file that may be spent on columns that save no bytes: queries read and skip by them.
const CREDIT: f64 = 0.02;
/// The share of the estimated bytes of a value, in the `value` around it, that columns are sure to save: the sample is
/// small.
const CERTAIN: f64 = 0.9;
/// The share of these that a column of a leaf is sure to save if others stay: a value that follows from another one in
/// its row costs nothing until that one has a column.
const LEAF_CERTAIN: f64 = 0.65;
/// The share of the bytes without columns that columns for all candidates may take.
const WORTHWHILE: f64 = 0.95;
/// The bytes that zstd adds to any input.
const FRAME_BYTES: f64 = 10.0;
/// The share of distinct values that is left of a dictionary page after compression.
const DICTIONARY: f64 = 0.7;
/// The bytes of a run of equal values in a column of dictionary indices.
const RUN_BYTES: f64 = 2.5;

/// A value of the sample.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub metadata: Metadata<'a>,
    pub bytes: &'a [u8],
    /// Where `bytes` start in the concatenated rows of the sample.
    pub start: usize,
    /// Whether its row is in the second half of the sample. The rows of the file that are not in the sample cost as
    /// much as these: the first rows cost more, because they have nothing to repeat.
    pub is_late: bool,
}

/// The bytes, or bits, of the two halves of the sample.
#[derive(Clone, Copy, Default)]
struct Halves {
    early: f64,
    late: f64,
}

impl Halves {
    fn add(&mut self, is_late: bool, amount: f64) {
        *if is_late { &mut self.late } else { &mut self.early } += amount;
    }
}

/// The bytes that a candidate saves by its own columns, without those of the candidates within it.
struct Estimate {
    node: usize,
    saved: f64,
    /// The bytes of its columns and those within it, if every candidate has columns.
    whole: f64,
    content: Content,
}

enum Content {
    Leaf(LeafType),
    Group(Group),
}

/// The fields of an object, or the element of a list.
struct Group {
    parts: Vec<Estimate>,
    /// The rows of the file that have each field, or the element.
    rows: Vec<(usize, f64)>,
    /// The share of its bytes that candidates have.
    covered: f64,
}

impl Group {
    /// The bytes of the group if every candidate has columns, of `alone` bytes without columns.
    fn whole(&self, alone: f64) -> f64 {
        let nodes = self.parts.iter().map(|part| part.node).collect();
        let parts: f64 = self.parts.iter().map(|part| part.whole).sum();
        parts + (1.0 - self.covered).max(0.0) * alone + self.lengths(&nodes)
    }

    /// The bytes of the lengths of the objects with the fields that are not `chosen`.
    fn lengths(&self, chosen: &HashSet<usize>) -> f64 {
        let left = self.rows.iter().filter(|(node, _)| !chosen.contains(node)).map(|(_, rows)| *rows);
        LENGTH * left.fold(0.0, f64::max)
    }
}

struct Estimator<'i> {
    inference: &'i Inference,
    candidates: Vec<Candidate>,
    /// The rows of the file for each row of the sample, and the rows after its first half for each of its second.
    scale: f64,
    late_scale: f64,
    prices: Prices,
    /// What a typed value is worth to queries, in bytes.
    credit: f64,
    /// Whether candidates that cannot save bytes are estimated, too.
    is_complete: bool,
    /// The bits of the rows of the sample, and the compressed bytes of one bit in each half.
    bits: Bits,
    bytes_of_bit: Halves,
    compressor: Compressor<'static>,
}

/// What the counts say of a path.
#[derive(Clone, Copy, Default)]
struct Candidate {
    /// `None` if no type is frequent enough.
    typed: Option<Majority>,
    /// The typed values of all leaves below.
    rows: u64,
}

/// The candidates of all nodes, by their number.
fn candidates(inference: &Inference) -> Vec<Candidate> {
    let mut found = vec![Candidate::default(); inference.nodes.len()];
    // A node comes after the node around it.
    for node in (0..found.len()).rev() {
        let counted = &inference.nodes[node];
        let typed = counted.counts.typed(inference.options.spark_compatible);
        let typed = typed.filter(|typed| inference.is_worth_a_column(typed));
        let below = |nodes: &mut dyn Iterator<Item = &usize>| nodes.map(|&child| found[child].rows).sum();
        let rows = match typed {
            None => 0,
            Some(Majority { kind: Typed::Object, .. }) => below(&mut counted.fields.values()),
            Some(Majority { kind: Typed::List, .. }) => below(&mut counted.element.iter()),
            Some(Majority { kind: Typed::Leaf(_), rows, .. }) => rows,
        };
        found[node] = Candidate { typed, rows };
    }
    found
}

/// The occurrences of a field or an element in the sample, and the bits that they cause around them.
#[derive(Default)]
struct Occurrences<'a> {
    items: Vec<Item<'a>>,
    bits: Halves,
}

/// The leaves of a file, and its size.
pub(super) struct Choice {
    pub leaves: HashMap<usize, LeafType>,
    pub prices: Prices,
    /// The bytes of the file without columns.
    pub bytes: f64,
}

/// Choose the leaves of a file with `rows` rows, of which `items` are a sample; at most `max_leaves`.
///
/// If columns for all candidates make the file smaller, they all have columns. Otherwise those that save bytes each.
pub(super) fn choose(
    inference: &Inference,
    items: &[Item<'_>],
    rows: f64,
    max_leaves: usize,
) -> Result<Choice> {
    let compressor = Compressor::new(1).map_err(|error| Error::unsupported(error.to_string()))?;
    let scale = rows / items.len().max(1) as f64;
    let mut estimator = Estimator {
        inference,
        candidates: candidates(inference),
        scale,
        late_scale: (2.0 * scale - 1.0).max(1.0),
        prices: Prices::new(rows, 0.0),
        credit: 0.0,
        is_complete: false,
        bits: Bits::of(&[]),
        bytes_of_bit: Halves::default(),
        compressor,
    };
    let halves = estimator.compressed(items);
    estimator.attribute(items, halves);
    let bytes = estimator.in_file(halves);
    estimator.prices = Prices::new(rows, bytes);
    estimator.credit = CREDIT * bytes / estimator.candidates[ROOT].rows.max(1) as f64;
    let mut all = Vec::new();
    inference.collect(ROOT, &mut all, max_leaves);
    estimator.is_complete = all.len() <= max_leaves;
    let estimates: Vec<_> =
        estimator.estimate(ROOT, items, bytes, items.len(), Position::default())?.into_iter().collect();
    if estimator.is_complete && estimates.iter().all(|root| root.whole <= WORTHWHILE * bytes) {
        let leaves = all.into_iter().map(|leaf| (leaf.node, leaf.leaf_type)).collect();
        return Ok(Choice { leaves, prices: estimator.prices, bytes });
    }
    let mut chosen = Vec::new();
    select(&estimates, None, &mut chosen);
    if chosen.len() > max_leaves {
        chosen.sort_by(|a, b| b.saved.total_cmp(&a.saved));
        let kept: HashSet<usize> = chosen[..max_leaves].iter().map(|leaf| leaf.node).collect();
        chosen.clear();
        select(&estimates, Some(&kept), &mut chosen);
    }
    let leaves = chosen.into_iter().map(|leaf| (leaf.node, leaf.leaf_type)).collect();
    Ok(Choice { leaves, prices: estimator.prices, bytes })
}

/// A leaf that saves bytes.
struct Leaf {
    node: usize,
    leaf_type: LeafType,
    saved: f64,
}

/// Add the leaves of `estimates` that save bytes, of those that are `kept`. Return the bytes saved, and which of the
/// estimates save some.
fn select(
    estimates: &[Estimate],
    kept: Option<&HashSet<usize>>,
    chosen: &mut Vec<Leaf>,
) -> (f64, HashSet<usize>) {
    let mut sum = 0.0;
    let mut nodes = HashSet::new();
    for &Estimate { node, saved, ref content, .. } in estimates {
        let before = chosen.len();
        let total = match content {
            Content::Leaf(_) if kept.is_some_and(|kept| !kept.contains(&node)) => 0.0,
            &Content::Leaf(leaf_type) => {
                chosen.push(Leaf { node, leaf_type, saved });
                saved
            }
            Content::Group(group) => {
                let (within, nodes) = select(&group.parts, kept, chosen);
                saved + within - group.lengths(&nodes)
            }
        };
        if total > 0.0 {
            sum += total;
            nodes.insert(node);
        } else {
            chosen.truncate(before);
        }
    }
    (sum, nodes)
}

impl Estimator<'_> {
    /// Return the estimate of `node`, whose values are `items` and take `inside` bytes in the `value` around them.
    /// `slots` are the rows or elements of the sample that could have a value.
    fn estimate(
        &mut self,
        node: usize,
        items: &[Item<'_>],
        inside: f64,
        slots: usize,
        position: Position,
    ) -> Result<Option<Estimate>> {
        let Candidate { typed: Some(typed), rows } = self.candidates[node] else { return Ok(None) };
        let worth = inside + self.credit * rows as f64;
        let price = self.price(node, &typed, position)
            + levels(slots as f64, items.len() as f64, position.is_in_list) * self.scale;
        if worth <= price && !self.is_complete {
            return Ok(None);
        }
        Ok(match typed.kind {
            Typed::Leaf(leaf_type) => {
                let whole = price + self.column_bytes(items);
                let saved = worth - (1.0 - LEAF_CERTAIN) * inside - whole;
                Some(Estimate { node, saved, whole, content: Content::Leaf(leaf_type) })
            }
            Typed::Object | Typed::List => {
                let alone = self.in_file(self.bytes_within(items));
                let group = self.group(node, items, alone, position)?;
                let saved = inside - price - alone;
                let whole = price + group.whole(alone);
                Some(Estimate { node, saved, whole, content: Content::Group(group) })
            }
        })
    }

    fn price(&self, node: usize, typed: &Majority, position: Position) -> f64 {
        let name = &self.inference.nodes[node].name;
        match typed.kind {
            Typed::Object | Typed::List if node == ROOT => 0.0,
            Typed::Object | Typed::List => self.prices.group(position, name),
            Typed::Leaf(leaf_type) => {
                let text = match leaf_type {
                    LeafType::String => typed.bytes as f64 / typed.rows as f64,
                    _ => 0.0,
                };
                self.prices.leaf(position, name, text, leaf_type != LeafType::Boolean)
            }
        }
    }

    /// Attribute the compressed size of the rows to their bytes.
    fn attribute(&mut self, items: &[Item<'_>], size: Halves) {
        let (stream, middle) = concatenate(items);
        self.bits = Bits::of(&stream);
        let early = size.early / self.bits.between(0, middle).max(1.0);
        let late = size.late / self.bits.between(middle, stream.len() - middle).max(1.0);
        self.bytes_of_bit = Halves { early, late };
    }

    /// The part of the compressed rows that belongs to `items`.
    fn bytes_within(&self, items: &[Item<'_>]) -> Halves {
        let mut bits = Halves::default();
        items.iter().for_each(|item| bits.add(item.is_late, self.bits.between(item.start, item.bytes.len())));
        self.bytes_of(bits)
    }

    fn bytes_of(&self, bits: Halves) -> Halves {
        let Halves { early, late } = self.bytes_of_bit;
        Halves { early: bits.early * early, late: bits.late * late }
    }

    /// Return the estimates of the fields or the element of `node`, whose values take `bytes` in the `value` around
    /// them.
    fn group(&mut self, node: usize, items: &[Item<'_>], bytes: f64, position: Position) -> Result<Group> {
        let mut occurrences = HashMap::default();
        for item in items {
            self.split(node, item, &mut occurrences)?;
        }
        let inference = self.inference;
        let element = inference.nodes[node].element.filter(|element| occurrences.contains_key(element));
        // The objects at the root have their lengths with or without columns.
        let inner = occurrences.iter().filter(|_| node != ROOT);
        let rows = inner.map(|(&node, found)| (node, found.items.len() as f64 * self.scale)).collect();
        let typed = self.candidates[node].typed;
        let is_list = matches!(typed, Some(Majority { kind: Typed::List, .. }));
        let position = position.below(&inference.nodes[node].name, is_list);
        let candidates: Vec<usize> = match is_list {
            true => element.into_iter().collect(),
            false => inference.sorted_fields(node).into_iter().map(|(_, field)| field).collect(),
        };
        let mut parts = Vec::new();
        let mut covered = 0.0;
        for candidate in candidates {
            let Some(Occurrences { items: values, bits }) = occurrences.remove(&candidate) else { continue };
            let slots = if is_list { values.len() + items.len() } else { items.len() };
            let inside = self.in_file(self.bytes_of(bits));
            let part = self.estimate(candidate, &values, CERTAIN * inside, slots, position)?;
            covered += part.as_ref().map_or(0.0, |_| inside);
            parts.extend(part);
        }
        Ok(Group { parts, rows, covered: covered / bytes.max(1.0) })
    }

    /// Add the values within `item`. The bits of its header belong to the values in equal parts.
    fn split<'a>(
        &self,
        node: usize,
        item: &Item<'a>,
        found: &mut HashMap<usize, Occurrences<'a>, RandomState>,
    ) -> Result<()> {
        let counted = &self.inference.nodes[node];
        let mut values: Vec<(Option<usize>, &'a [u8])> = Vec::new();
        match Value::decode(item.bytes)? {
            Value::Object(object) => {
                for entry in object.fields() {
                    let (id, value) = entry?;
                    values.push((counted.fields.get(item.metadata.get(id)?).copied(), value));
                }
            }
            Value::Array(array) => {
                for value in array.elements() {
                    values.push((counted.element, value?));
                }
            }
            _ => return Ok(()),
        }
        let start_of = |bytes: &[u8]| item.start + offset_in(item.bytes, bytes);
        let own: Vec<f64> =
            values.iter().map(|(_, bytes)| self.bits.between(start_of(bytes), bytes.len())).collect();
        let header = self.bits.between(item.start, item.bytes.len()) - own.iter().sum::<f64>();
        for ((child, bytes), own) in values.iter().zip(own) {
            let Some(child) = child else { continue };
            let occurrences = found.entry(*child).or_default();
            occurrences.items.push(Item { bytes, start: start_of(bytes), ..*item });
            occurrences.bits.add(item.is_late, own + header / values.len() as f64);
        }
        Ok(())
    }

    /// The bytes of a column of `items` in the file. As the writer does, it has a dictionary unless most values are
    /// distinct.
    fn column_bytes(&mut self, items: &[Item<'_>]) -> f64 {
        let mut counts: HashMap<&[u8], u32, RandomState> = HashMap::default();
        let mut runs = 0;
        let mut last: Option<&[u8]> = None;
        for item in items {
            *counts.entry(item.bytes).or_default() += 1;
            runs += u32::from(last != Some(item.bytes));
            last = Some(item.bytes);
        }
        if counts.len() * 2 > items.len() {
            let plain = self.compressed(items);
            return self.in_file(plain);
        }
        let distinct = counts.len() as f64;
        let once = counts.values().filter(|count| **count == 1).count() as f64;
        let bytes: usize = counts.keys().map(|value| value.len()).sum();
        // A value that comes next is new as often as values occurred once.
        let growth = (distinct + once * (self.scale - 1.0)) / distinct.max(1.0);
        let width = (distinct * growth).log2().ceil().max(0.0);
        let indices = (items.len() as f64 * width / 8.0).min(f64::from(runs) * RUN_BYTES);
        bytes as f64 * growth * DICTIONARY + indices * self.scale
    }

    /// The size of `items` as one compressed page, without what zstd adds to any page.
    fn compressed(&mut self, items: &[Item<'_>]) -> Halves {
        let (bytes, middle) = concatenate(items);
        let mut size = |bytes: &[u8]| {
            let compressed =
                self.compressor.compress(bytes).map_or(bytes.len(), |compressed| compressed.len());
            (compressed as f64 - FRAME_BYTES).max(0.0)
        };
        let early = size(&bytes[..middle]);
        Halves { early, late: (size(&bytes) - early).max(0.0) }
    }

    /// The size in the file of what takes some bytes in the sample.
    fn in_file(&self, Halves { early, late }: Halves) -> f64 {
        early + late * self.late_scale
    }
}

/// The bytes of `items`, and where those of the second half of the sample start.
fn concatenate(items: &[Item<'_>]) -> (Vec<u8>, usize) {
    let size = |items: &[Item<'_>]| items.iter().map(|item| item.bytes.len()).sum::<usize>();
    let middle = size(&items[..items.partition_point(|item| !item.is_late)]);
    let mut bytes = Vec::with_capacity(size(items));
    items.iter().for_each(|item| bytes.extend_from_slice(item.bytes));
    (bytes, middle)
}

/// The position in `outer` where `inner` starts, which is a part of it.
fn offset_in(outer: &[u8], inner: &[u8]) -> usize {
    inner.as_ptr() as usize - outer.as_ptr() as usize
}
