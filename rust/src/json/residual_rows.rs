//! Find residual rows while they are parsed: rows with a value in a `value` that stays empty.

use crate::shred::columns::BinaryColumn;
use crate::shred::tree::{NodeId, Tree, Typed};
use crate::value;

/// The position of a group of `value` and `typed_value` among those of the schema, each before those within it.
pub type GroupId = usize;

/// A row that was left out, because it has a value in the `value` of each of these groups.
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualRow {
    /// Among all rows that were parsed.
    pub row: usize,
    pub groups: Vec<GroupId>,
}

#[derive(Debug, Default)]
pub struct ResidualRowFinder {
    /// For each node, its group if its `value` stays empty.
    groups: Vec<Option<GroupId>>,
    /// The values of the current row that are in such a `value`, with their nodes and positions.
    values: Vec<(GroupId, NodeId, usize)>,
    found: Vec<ResidualRow>,
}

impl ResidualRowFinder {
    /// Find the rows that have a value other than Variant null in the `value` of one of these groups of `tree`.
    pub fn find_in(&mut self, groups: &[GroupId], tree: &Tree) {
        let mut next = 0..;
        let of_node = tree.nodes.iter().map(|node| match node.typed {
            Typed::None => None,
            _ => next.next().filter(|group| groups.contains(group)),
        });
        self.groups = of_node.collect();
    }

    /// Note that the row has the value at the end of the `value` of `node`.
    #[inline(always)]
    pub fn note(&mut self, node: NodeId, value: &BinaryColumn) {
        if let Some(group) = self.groups[node]
            && &value.data[value.start()..] != value::NULL
        {
            self.values.push((group, node, value.start()));
        }
    }

    /// Forget the values of the row that are no longer in the columns of `tree`.
    pub fn remove_truncated(&mut self, tree: &Tree) {
        self.values.retain(|&(_, node, position)| position < tree.nodes[node].value.data.len());
    }

    pub fn clear_row(&mut self) {
        self.values.clear();
    }

    /// Whether the row is residual.
    #[inline(always)]
    pub fn is_residual(&self) -> bool {
        !self.values.is_empty()
    }

    /// End a residual row, after `others` that are not residual.
    pub fn end_row(&mut self, others: usize) {
        let mut groups: Vec<_> = self.values.drain(..).map(|(group, ..)| group).collect();
        groups.sort_unstable();
        groups.dedup();
        self.found.push(ResidualRow { row: others + self.found.len(), groups });
    }

    /// Take the rows that were found since the last call.
    pub fn take(&mut self) -> Vec<ResidualRow> {
        std::mem::take(&mut self.found)
    }
}
