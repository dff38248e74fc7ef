//! Numeric identifiers.

/// The maximum number of nodes of a graph.
pub(crate) const MAX_NODES: usize = 1024;

/// A node of the graph. The same number names its instance on every worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The node that drops: the first of every graph.
    pub const DROP: NodeId = NodeId(0);

    /// As an index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The word that the `ERR` column carries for counter `counter` of this node.
    #[inline(always)]
    pub fn reason(self, counter: usize) -> u32 {
        u32::from(self.0) << 16 | (counter as u32 & 0xffff)
    }

    /// The node and the counter behind a word of the `ERR` column.
    #[inline(always)]
    pub fn of_reason(word: u32) -> (NodeId, usize) {
        (NodeId((word >> 16) as u16), (word & 0xffff) as usize)
    }
}
