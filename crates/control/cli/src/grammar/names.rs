//! Names that exist now, which completion offers.

/// Kinds of names that exist now and can be completed.
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

/// Names that exist now, told by the daemon.
pub trait Names {
    /// Names of a kind, in the order they shall be shown.
    fn names(&self, kind: NameKind) -> Vec<String>;
}

/// Knows no names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn names(&self, _: NameKind) -> Vec<String> {
        Vec::new()
    }
}
