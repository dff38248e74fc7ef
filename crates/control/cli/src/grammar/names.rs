//! Existing names, which completion offers.

/// Source of the names that exist now: the daemon.
pub trait Names {
    /// The names of what a field can refer to, in display order: of interfaces, of nodes, arcs and their features, or of the
    /// objects of a registered class by the first value of their keys. `class` is the class of the reference.
    fn names(&self, class: &str) -> Vec<String>;
}

/// A source without names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn names(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}
