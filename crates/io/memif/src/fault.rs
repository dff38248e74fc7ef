//! Faults of a peer in shared memory: a worker finds them, the control thread reports them.

use std::fmt;

/// Types of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The peer's index claims more descriptors than the ring has.
    Index = 1,
    /// A descriptor refers to a region that does not exist.
    Region,
    /// A descriptor's bytes do not lie inside its region.
    Bounds,
    /// A descriptor of a packet buffer has no bytes.
    Empty,
    /// A chain with too many descriptors, or one that fills the ring and does not end.
    Chain,
    /// A packet longer than Volley supports.
    Long,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Index, "ring index out of range"),
    (Kind::Region, "descriptor names no region"),
    (Kind::Bounds, "descriptor points out of its region"),
    (Kind::Empty, "descriptor of an empty buffer"),
    (Kind::Chain, "descriptor chain does not end"),
    (Kind::Long, "packet too long"),
];

/// A fault, with the offending value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Type of the fault.
    pub kind: Kind,
    /// The offending value: index, region, offset or length.
    pub value: u32,
}

impl Fault {
    /// A fault of this type.
    #[cold]
    pub fn new(kind: Kind, value: u32) -> Fault {
        Fault { kind, value }
    }

    /// The fault as a word that is not 0.
    pub(crate) fn to_word(self) -> u64 {
        (self.kind as u64) << 32 | u64::from(self.value)
    }

    /// The fault of a word; `None` for 0.
    pub(crate) fn of_word(word: u64) -> Option<Fault> {
        let kind = KINDS.iter().find(|(kind, _)| *kind as u64 == word >> 32)?;
        Some(Fault::new(kind.0, word as u32))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = KINDS.iter().find(|(kind, _)| *kind == self.kind);
        write!(
            f,
            "{} ({})",
            text.map_or("fault", |(_, text)| text),
            self.value
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_go_through_a_word() {
        for (kind, text) in KINDS {
            let fault = Fault::new(kind, 77);
            assert_eq!(Fault::of_word(fault.to_word()), Some(fault));
            assert_eq!(fault.to_string(), format!("{text} (77)"));
        }
        assert_eq!(Fault::of_word(0), None);
    }
}
