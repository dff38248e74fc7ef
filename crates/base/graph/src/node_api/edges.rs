//! The edges of a node.

/// The edges of a node, as an enum. Made by [`crate::nexts!`].
pub trait Nexts: Copy + 'static {
    /// Name of the node that each edge leads to.
    const EDGES: &'static [&'static str];
    /// Position of a variant.
    fn index(self) -> usize;
}

/// A node without edges.
#[derive(Clone, Copy)]
pub struct NoNext;

impl Nexts for NoNext {
    const EDGES: &'static [&'static str] = &[];
    fn index(self) -> usize {
        0
    }
}
