//! What a shredded column costs in a file and in the log, whatever its values: fitted by benchmarks/shredding_costs.py.

/// One row for each constant: the bytes in a zstd file with one row group and one page for each column.
///
/// | constant | measured as | bytes |
/// |---|---|--:|
/// | `LEAF` | a `value` and a `typed_value` of constant integers at the root, less their names | 299 |
/// | `GROUP` | the `value` of an object or a list | 143 |
/// | `NAME` | one byte of the name of a leaf: the schema, and the paths of two columns | 3 |
/// | `PARENT` | one level above a column: `typed_value` in its path | 13 |
/// | `TEXT` | one byte of a long text: minimum and maximum of the row group | 2 |
/// | `PAGE` | each further page of a `value` and a `typed_value`: header and page index | 117 |
/// | `LEVELS` | the levels of one element of a list in one column | 0.2 |
/// | `LENGTH` | the length of an object in `value` that has the fields without a column | 1.25 |
const LEAF: f64 = 299.0;
const GROUP: f64 = 143.0;
const NAME: f64 = 3.0;
const PARENT: f64 = 13.0;
const TEXT: f64 = 2.0;
const PAGE: f64 = 117.0;
const LEVELS: f64 = 0.2;
pub(super) const LENGTH: f64 = 1.25;

/// The bytes of text that the statistics of a column hold.
const TEXT_BYTES: f64 = 64.0;
/// The rows of a page and of a row group.
const PAGE_ROWS: f64 = 16_384.0;
const ROW_GROUP_ROWS: f64 = 262_144.0;
/// The compressed bytes of a row group.
const ROW_GROUP_BYTES: f64 = 33_554_432.0;
/// z85 text is longer than its bytes by a fourth. Each bound has the path key, an offset and a header.
const LOG: f64 = 1.25;
const BOUND: f64 = 8.0;

/// The bytes of rows for which a file gets one leaf, because a leaf takes time, too: 0.05 to 0.15 ms in a file of few
/// MB, as much as 15 to 40 kB of rows. So the columns of a small file take at most about a fifth of the time of its
/// rows, and a tenth is left to find them.
const BYTES_PER_LEAF: f64 = 170_000.0;
/// A file that gets fewer leaves gets none: they save less than it takes to find them, which is at least 0.5 ms.
const MIN_LEAVES: usize = 3;

/// The most leaves that a file of `bytes` of text or Variants gets, for the time that each column takes.
pub fn affordable_leaves(bytes: f64) -> usize {
    let leaves = (bytes / BYTES_PER_LEAF) as usize;
    if leaves < MIN_LEAVES { 0 } else { leaves }
}

/// The rows of a file and its compressed size without shredding, from which follow its pages and row groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prices {
    pages: f64,
    row_groups: f64,
}

/// The position of a column in the schema.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position {
    /// The levels above the column, and the bytes of their names.
    pub parents: f64,
    pub parent_bytes: f64,
    pub is_in_list: bool,
}

impl Position {
    /// The position of a field called `name`, or of the elements of a list.
    pub(super) fn below(self, name: &str, is_in_list: bool) -> Self {
        Position {
            parents: self.parents + 1.0,
            parent_bytes: self.parent_bytes + name.len() as f64,
            is_in_list: self.is_in_list || is_in_list,
        }
    }

    /// The bytes of the path in one column.
    fn path(self) -> f64 {
        self.parent_bytes + PARENT * self.parents
    }
}

impl Prices {
    pub(super) fn new(rows: f64, bytes: f64) -> Self {
        let row_groups = (rows / ROW_GROUP_ROWS).max(bytes / ROW_GROUP_BYTES).ceil().max(1.0);
        Prices { pages: (rows / PAGE_ROWS).ceil().max(row_groups), row_groups }
    }

    /// The bytes of a leaf called `name`, with texts of `text` bytes, and with bounds in the log.
    pub(super) fn leaf(&self, position: Position, name: &str, text: f64, has_bounds: bool) -> f64 {
        let text = text.min(TEXT_BYTES);
        let name = name.len() as f64;
        let columns = LEAF + NAME * name + 2.0 * position.path() + TEXT * text;
        let log = match has_bounds && !position.is_in_list {
            true => LOG * 2.0 * (position.parent_bytes + name + BOUND + text.min(32.0)),
            false => 0.0,
        };
        columns * self.row_groups + PAGE * (self.pages - self.row_groups) + log
    }

    /// The bytes of the `value` of an object or a list called `name`.
    pub(super) fn group(&self, position: Position, name: &str) -> f64 {
        let columns = GROUP + NAME * name.len() as f64 + position.path();
        columns * self.row_groups + PAGE / 2.0 * (self.pages - self.row_groups)
    }
}

/// The bytes of the levels of two columns with `slots` entries, of which `present` are not null.
pub(super) fn levels(slots: f64, present: f64, is_in_list: bool) -> f64 {
    let filled = (present / slots).clamp(0.0, 1.0);
    let bits: f64 = [filled, 1.0 - filled].iter().filter(|p| **p > 0.0).map(|p| -p * p.log2()).sum();
    slots * bits / 8.0 + if is_in_list { 2.0 * LEVELS * slots } else { 0.0 }
}
