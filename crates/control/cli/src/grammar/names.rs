//! Existing names, which completion offers.

/// Kinds of names that can be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// Interfaces.
    Interface,
    /// Graph nodes.
    Node,
    /// Features of all arcs.
    Feature,
    /// Feature arcs.
    Arc,
    /// Objects of a registered class, by the first value of their keys.
    Object(&'static str),
}

/// Source of the names that exist now: the daemon.
pub trait Names {
    /// Names of a kind, in display order.
    fn names(&self, kind: NameKind) -> Vec<String>;
}

/// A source without names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn names(&self, _: NameKind) -> Vec<String> {
        Vec::new()
    }
}
