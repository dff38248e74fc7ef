//! Stages that hold packets.

use crate::data::ids::{MAX_NODES, NodeId};

/// Stages that hold packets, or may hold some.
pub(crate) struct Holders {
    /// By node.
    is_one: Box<[bool]>,
    /// Whether any stage holds packets.
    pub(crate) any: bool,
}

impl Holders {
    pub(crate) fn new() -> Self {
        Holders {
            is_one: vec![false; MAX_NODES].into(),
            any: false,
        }
    }

    /// Record whether a stage holds packets.
    #[inline(always)]
    pub(crate) fn set(&mut self, stage: NodeId, on: bool) {
        if let Some(is_one) = self.is_one.get_mut(stage.index()) {
            *is_one = on;
        }
        self.any |= on;
    }

    /// Whether a stage must be called.
    #[inline(always)]
    pub(crate) fn has(&self, stage: NodeId) -> bool {
        self.is_one.get(stage.index()).is_some_and(|is_one| *is_one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_come_and_go() {
        let (mut holders, stage) = (Holders::new(), NodeId(7));
        assert!(!holders.any && !holders.has(stage));
        holders.set(stage, true);
        assert!(holders.any && holders.has(stage) && !holders.has(NodeId(6)));
        holders.set(stage, false);
        assert!(!holders.has(stage));
    }
}
