//! Which rows of a file are read: row groups, ranges of their rows, and those of them that are not deleted.

use std::collections::VecDeque;
use std::iter;
use std::ops::Range;

use roaring::RoaringTreemap;

use super::columns::row_group_rows;
use crate::deletion_vector;
use crate::parquet::ParquetFile;

/// From this number of deleted rows in succession on, they are skipped. Fewer are decoded with the rows around them.
const SKIPPED_ROWS: u64 = 2 << 10;

/// The row groups that are read next, and which of their rows.
///
/// The rows of each are selected when it is its turn: a file may have many deleted rows, of which a read needs few.
pub(super) struct RowGroups {
    remaining: VecDeque<(usize, Range<u64>)>,
    /// Ascending and disjoint ranges of rows of the file; `None` for all.
    rows: Option<Vec<Range<u64>>>,
    deleted: Option<RoaringTreemap>,
}

impl RowGroups {
    pub fn of(file: &ParquetFile, rows: Option<&[Range<u64>]>, deleted: Option<RoaringTreemap>) -> Self {
        let remaining = row_group_rows(file).into_iter().enumerate().collect();
        RowGroups { remaining, rows: rows.map(<[_]>::to_vec), deleted }
    }

    pub fn is_empty(&self) -> bool {
        self.remaining.is_empty()
    }

    /// Those of the rows of a row group that are read and not deleted; `None` if there are none.
    fn select(&self, row_group: usize, group: Range<u64>) -> Option<Selected> {
        let all = std::slice::from_ref(&group);
        let rows = self.rows.as_deref().unwrap_or(all);
        let first = rows.partition_point(|range| range.end <= group.start);
        let (mut decoded, mut live) = (Vec::new(), Vec::new());
        for range in rows[first..].iter().take_while(|range| range.start < group.end) {
            let range = range.start.max(group.start)..range.end.min(group.end);
            let first = live.len();
            match &self.deleted {
                Some(deleted) => push_live(range.clone(), deleted, &mut live),
                None => live.push(range.clone()),
            }
            decoded.extend(join_near(range, &live[first..]));
        }
        let is_whole = decoded == [group.clone()];
        let has_deleted = decoded != live;
        let within = |mut rows: Vec<Range<u64>>| {
            for range in &mut rows {
                *range = range.start - group.start..range.end - group.start;
            }
            rows
        };
        (!live.is_empty()).then(|| Selected {
            row_group,
            first: group.start,
            count: group.end - group.start,
            rows: (!is_whole).then(|| within(decoded)),
            live: has_deleted.then(|| within(live)),
        })
    }
}

impl Iterator for RowGroups {
    type Item = Selected;

    /// The next row group with any of the rows, without those whose rows are all deleted.
    fn next(&mut self) -> Option<Selected> {
        loop {
            let (row_group, group) = self.remaining.pop_front()?;
            if let Some(selected) = self.select(row_group, group) {
                return Some(selected);
            }
        }
    }
}

/// The rows of one row group that are read. Ranges are counted from its first row.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    pub row_group: usize,
    /// The number of its first row in the file, and the number of its rows.
    first: u64,
    count: u64,
    /// Ranges of rows; `None` for all of the row group.
    rows: Option<Vec<Range<u64>>>,
    /// Those of them that are not deleted; `None` for all.
    live: Option<Vec<Range<u64>>>,
}

impl Selected {
    /// The ranges, and those of them that are not deleted.
    pub fn ranges(&self) -> [Option<&[Range<u64>]>; 2] {
        [self.rows.as_deref(), self.live.as_deref()]
    }

    /// The numbers of the rows that are not deleted.
    pub fn numbers(&self) -> RowNumbers {
        let ranges = self.live.as_ref().or(self.rows.as_ref()).cloned();
        // A page may have more rows than the footer says, which is an error later.
        let whole = 0..u64::MAX - self.first;
        RowNumbers { first: self.first, ranges: ranges.unwrap_or_else(|| vec![whole]), next: 0 }
    }

    /// The number of rows that are not deleted.
    pub fn len(&self) -> usize {
        match self.live.as_ref().or(self.rows.as_ref()) {
            Some(ranges) => ranges.iter().map(|range| range.end - range.start).sum::<u64>() as usize,
            None => self.count as usize,
        }
    }

    /// Read no more than the rows of these numbers.
    pub fn restrict(&mut self, numbers: &RowNumbers) {
        let remaining = numbers.remaining();
        if remaining == self.numbers().remaining() {
            return;
        }
        let remaining = remaining.to_vec();
        let Some(live) = &mut self.live else {
            self.rows = Some(remaining);
            return;
        };
        let first = remaining.first().map_or(self.count, |range| range.start);
        let rows = self.rows.take().unwrap_or_else(|| iter::once(0..self.count).collect()).into_iter();
        let rows = rows.map(|range| range.start.max(first)..range.end);
        self.rows = Some(rows.filter(|range| range.start < range.end).collect());
        *live = remaining;
    }
}

/// The row numbers in the file, batch by batch.
#[derive(Default)]
pub(super) struct RowNumbers {
    /// The number of the first row of the row group, from which the ranges count.
    first: u64,
    ranges: Vec<Range<u64>>,
    /// The first range with rows that are not taken yet.
    next: usize,
}

impl RowNumbers {
    fn remaining(&self) -> &[Range<u64>] {
        self.ranges.get(self.next..).unwrap_or_default()
    }

    /// The next `count` rows as ranges.
    pub fn take(&mut self, count: usize) -> Vec<Range<u64>> {
        let mut left = count as u64;
        let rest = self.ranges.get_mut(self.next..).unwrap_or_default();
        let mut taken = Vec::new();
        for range in rest {
            if left == 0 {
                break;
            }
            let end = range.end.min(range.start + left);
            taken.push(self.first + range.start..self.first + end);
            left -= end - range.start;
            range.start = end;
            self.next += usize::from(range.is_empty());
        }
        taken
    }
}

/// Append the rows of `range` that are not in `deleted`.
fn push_live(range: Range<u64>, deleted: &RoaringTreemap, live: &mut Vec<Range<u64>>) {
    let mut start = range.start;
    // Faster than a loop, which asks all parts of the iterator for each row.
    deletion_vector::rows_within(deleted, range.clone()).for_each(|row| {
        if start < row {
            live.push(start..row);
        }
        start = row + 1;
    });
    if start < range.end {
        live.push(start..range.end);
    }
}

/// Join ranges within `range` whose distance, to each other or to its ends, is short.
fn join_near(range: Range<u64>, live: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    let mut before = range.start;
    for next in live {
        let is_near = next.start - before < SKIPPED_ROWS;
        match joined.last_mut() {
            Some(last) if is_near => last.end = next.end,
            None if is_near => joined.push(range.start..next.end),
            _ => joined.push(next.clone()),
        }
        before = next.end;
    }
    if let Some(last) = joined.last_mut().filter(|last| range.end - last.end < SKIPPED_ROWS) {
        last.end = range.end;
    }
    joined
}
