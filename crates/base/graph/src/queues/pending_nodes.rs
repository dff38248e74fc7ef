//! The set of nodes with pending rows, in graph order.

use crate::data::ids::NodeId;

/// The set of nodes with pending rows. The first node in graph order is the first of the set.
#[derive(Default)]
pub(crate) struct PendingNodes {
    rank: Vec<u16>,
    node: Vec<NodeId>,
    words: Vec<u64>,
    /// The number of nodes in the set.
    count: usize,
}

impl PendingNodes {
    /// `order` lists every node once, in the order in which nodes run.
    pub(crate) fn new(order: Vec<NodeId>) -> Self {
        let mut rank = vec![0; order.len()];
        for (position, node) in order.iter().enumerate() {
            rank[node.index()] = position as u16;
        }
        PendingNodes {
            rank,
            words: vec![0; order.len().div_ceil(64)],
            count: 0,
            node: order,
        }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, node: NodeId) {
        let rank = self.rank[node.index()] as usize;
        let (word, bit) = (&mut self.words[rank / 64], 1 << (rank % 64));
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, node: NodeId) {
        let rank = self.rank[node.index()] as usize;
        let (word, bit) = (&mut self.words[rank / 64], 1 << (rank % 64));
        self.count -= usize::from(*word & bit != 0);
        *word &= !bit;
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline(always)]
    pub(crate) fn first(&self) -> Option<NodeId> {
        let word = self.words.iter().position(|&w| w != 0)?;
        Some(self.node[word * 64 + self.words[word].trailing_zeros() as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_gives_the_first_in_order() {
        let mut pending = PendingNodes::new(vec![NodeId(2), NodeId(0), NodeId(1)]);
        assert_eq!(pending.first(), None);
        pending.set(NodeId(1));
        pending.set(NodeId(0));
        assert_eq!(pending.first(), Some(NodeId(0)));
        pending.set(NodeId(0));
        pending.clear(NodeId(0));
        assert_eq!(pending.first(), Some(NodeId(1)));
        assert!(!pending.is_empty());
        pending.clear(NodeId(1));
        pending.clear(NodeId(1));
        assert!(pending.is_empty());
    }
}
