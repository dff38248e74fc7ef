//! Feature arcs: ordered lists of optional nodes per interface between two fixed points of the graph.

use crate::data::ids::NodeId;

/// A feature arc.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct ArcId(pub u8);

/// The arc of received packets, which every engine has: sources send packets into it by the interface that received them.
pub const RECEIVE: ArcId = ArcId(0);

/// The name of [`RECEIVE`].
pub const RECEIVE_ARC: &str = "device-input";

/// The tables of arcs for workers.
#[derive(Default)]
pub(crate) struct ArcTables {
    pub(crate) arcs: Vec<ArcTable>,
    /// Arcs with features, one bit each: nodes read one word to learn that there are none.
    active: u64,
}

#[derive(Default)]
pub(crate) struct ArcTable {
    pub(crate) active: bool,
    /// The node at the end of the arc, if it exists.
    pub(crate) end: Option<NodeId>,
    /// Per interface: 1 + index in `chains`, 0 for none.
    pub(crate) chain_of: Vec<u8>,
    /// Each chain ends with the node at the end of the arc.
    pub(crate) chains: Vec<Vec<NodeId>>,
    /// All features in order, and the node at the end of the arc.
    pub(crate) order: Vec<NodeId>,
}

/// A feature that packets leave for other nodes, and after which they return to the arc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArcPosition {
    /// The arc.
    pub arc: ArcId,
    /// The feature's node.
    pub node: NodeId,
}

/// A position on an arc in the `FEATURE` column: arc, chain, index; 0 for no position.
fn arc_word(arc: usize, chain: usize, position: usize) -> u32 {
    1 << 31 | (arc as u32) << 20 | (chain as u32) << 8 | position as u32
}

/// The bit of an arc. Arcs that share one are looked up in their tables ([`ArcTables::enter`]).
#[inline(always)]
fn bit(arc: usize) -> u64 {
    1 << (arc % 64)
}

impl ArcTables {
    /// Adds the table of the next arc.
    pub(crate) fn push(&mut self, table: ArcTable) {
        if table.active {
            self.active |= bit(self.arcs.len());
        }
        self.arcs.push(table);
    }

    /// Whether an arc has features; arcs with the same number modulo 64 are distinguished by [`ArcTables::enter`].
    #[inline(always)]
    pub(crate) fn is_active(&self, arc: ArcId) -> bool {
        self.active & bit(arc.0 as usize) != 0
    }

    /// The first feature of `interface`, and the packet's position.
    pub(crate) fn enter(&self, arc: ArcId, interface: u32) -> Option<(NodeId, u32)> {
        let table = self.arcs.get(arc.0 as usize)?;
        let chain = (*table.chain_of.get(interface as usize)? as usize).checked_sub(1)?;
        Some((
            *table.chains.get(chain)?.first()?,
            arc_word(arc.0 as usize, chain, 0),
        ))
    }

    /// The node at the end of the arc of received packets.
    #[inline(always)]
    pub(crate) fn receive_end(&self) -> Option<NodeId> {
        self.arcs.first()?.end
    }

    /// The first node of the packets that `interface` received.
    #[inline(always)]
    pub(crate) fn receiver(&self, interface: u32) -> Option<NodeId> {
        let table = self.arcs.first()?;
        if !table.active {
            return table.end;
        }
        let chain = table.chain_of.get(interface as usize).copied();
        match chain.and_then(|chain| (chain as usize).checked_sub(1)) {
            Some(chain) => table.chains.get(chain)?.first().copied(),
            None => table.end,
        }
    }

    /// The next node of a packet of `interface` after `spot`, even if features were enabled or disabled since the packet was
    /// there.
    pub(crate) fn after(&self, spot: ArcPosition, interface: u32) -> Option<(NodeId, u32)> {
        let arc = spot.arc.0 as usize;
        let table = self.arcs.get(arc)?;
        let number = table.chain_of.get(interface as usize).copied();
        let Some(chain) = number.and_then(|n| (n as usize).checked_sub(1)) else {
            return Some((*table.order.last()?, 0));
        };
        let nodes = table.chains.get(chain)?;
        let at = match nodes.iter().position(|node| *node == spot.node) {
            Some(at) => at + 1,
            None => {
                let mut later = table.order.iter().skip_while(|node| **node != spot.node);
                later.find_map(|node| nodes.iter().position(|it| it == node))?
            }
        };
        Some((*nodes.get(at)?, arc_word(arc, chain, at)))
    }

    /// The next node after a position.
    pub(crate) fn next_on_arc(&self, word: u32) -> Option<(NodeId, u32)> {
        let (arc, chain, position) = (
            (word >> 20 & 0xff) as usize,
            (word >> 8 & 0xfff) as usize,
            (word & 0xff) as usize,
        );
        let node = *self.arcs.get(arc)?.chains.get(chain)?.get(position + 1)?;
        (word >> 31 == 1).then(|| (node, arc_word(arc, chain, position + 1)))
    }
}
