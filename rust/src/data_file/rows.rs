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

/// The rows of one row group that are read.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    pub row_group: usize,
    /// The row group's rows in the file.
    group: Range<u64>,
    /// Ranges of rows of the file; `None` for all of the row group.
    rows: Option<Vec<Range<u64>>>,
    /// Those of them that are not deleted; `None` for all.
    live: Option<Vec<Range<u64>>>,
}

impl Selected {
    /// The row groups with any of `rows`, or all, without those whose rows are all deleted.
    pub fn of(
        file: &ParquetFile,
        rows: Option<&[Range<u64>]>,
        deleted: Option<&RoaringTreemap>,
    ) -> VecDeque<Self> {
        let mut deleted = VecDeque::from(deleted.map_or_else(Vec::new, deletion_vector::ranges));
        let groups = row_group_rows(file).into_iter().enumerate();
        groups.filter_map(|(row_group, group)| select(row_group, group, rows, &mut deleted)).collect()
    }

    /// The ranges, and those of them that are not deleted, counted from the first row of the row group.
    pub fn within(&self) -> [Option<Vec<Range<u64>>>; 2] {
        [&self.rows, &self.live].map(|rows| {
            let within = |range: &Range<u64>| range.start - self.group.start..range.end - self.group.start;
            rows.as_ref().map(|rows| rows.iter().map(within).collect())
        })
    }

    /// The numbers of the rows that are not deleted.
    pub fn numbers(&self) -> RowNumbers {
        let whole = self.group.start..u64::MAX;
        let rows = self.live.clone().or_else(|| self.rows.clone());
        RowNumbers { ranges: rows.map_or_else(|| iter::once(whole).collect(), VecDeque::from) }
    }

    /// Read no more than the rows of these numbers.
    pub fn restrict(&mut self, numbers: &RowNumbers) {
        if numbers.ranges == self.numbers().ranges {
            return;
        }
        let remaining: Vec<Range<u64>> = numbers.ranges.iter().cloned().collect();
        let Some(live) = &mut self.live else {
            self.rows = Some(remaining);
            return;
        };
        let first = remaining.first().map_or(self.group.end, |range| range.start);
        let rows = self.rows.take().unwrap_or_else(|| vec![self.group.clone()]).into_iter();
        let rows = rows.map(|range| range.start.max(first)..range.end);
        self.rows = Some(rows.filter(|range| range.start < range.end).collect());
        *live = remaining;
    }
}

/// The row numbers in the file, batch by batch.
#[derive(Default)]
pub(super) struct RowNumbers {
    ranges: VecDeque<Range<u64>>,
}

impl RowNumbers {
    /// The next `count` rows as ranges.
    pub fn take(&mut self, count: usize) -> Vec<Range<u64>> {
        let (mut left, mut taken) = (count as u64, Vec::new());
        while let Some(range) = self.ranges.front_mut().filter(|_| left > 0) {
            let end = range.end.min(range.start + left);
            taken.push(range.start..end);
            left -= end - range.start;
            range.start = end;
            if range.is_empty() {
                self.ranges.pop_front();
            }
        }
        taken
    }
}

/// Select those of `rows`, or all, that are in a row group and not in `deleted`, which are left from `group` on.
fn select(
    row_group: usize,
    group: Range<u64>,
    rows: Option<&[Range<u64>]>,
    deleted: &mut VecDeque<Range<u64>>,
) -> Option<Selected> {
    let within = |range: &Range<u64>| range.start.max(group.start)..range.end.min(group.end);
    let rows = rows.unwrap_or(std::slice::from_ref(&group)).iter().map(within);
    let (mut decoded, mut live) = (Vec::new(), Vec::new());
    for range in rows.filter(|range| range.start < range.end) {
        let first = live.len();
        take_live(range.clone(), deleted, &mut live);
        decoded.extend(join_near(range, &live[first..]));
    }
    let is_whole = decoded == [group.clone()];
    let has_deleted = decoded != live;
    (!live.is_empty()).then(|| Selected {
        row_group,
        group,
        rows: (!is_whole).then_some(decoded),
        live: has_deleted.then_some(live),
    })
}

/// Append the rows of `range` that are not in `deleted`, which loses its ranges before the end of `range`.
fn take_live(range: Range<u64>, deleted: &mut VecDeque<Range<u64>>, live: &mut Vec<Range<u64>>) {
    let mut start = range.start;
    while let Some(next) = deleted.front().filter(|next| next.start < range.end) {
        if start < next.start {
            live.push(start..next.start);
        }
        start = start.max(next.end);
        if next.end > range.end {
            break;
        }
        deleted.pop_front();
    }
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
