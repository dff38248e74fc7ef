//! Bridge domains as workers read them: a word for each interface, and the ports of each domain. Published as one value.

use volley_iface::{IfIdx, MAX_INTERFACES};
use volley_tables::mac::ID_BITS;

/// Bits of a port's word: slot of the domain, 0 for an interface in no domain.
pub(crate) const SLOT: u32 = 0xffff;
/// Shift of the split-horizon group.
pub(crate) const SHG: u32 = 16;
/// Bits of the split-horizon group; 0 for none.
pub(crate) const GROUP: u32 = 0xff << SHG;
/// Flag: new MAC addresses are learned.
pub(crate) const LEARN: u32 = 1 << 24;
/// Flag: broadcast and multicast frames are flooded.
pub(crate) const FLOOD: u32 = 1 << 25;
/// Flag: unknown unicast frames are flooded.
pub(crate) const UU_FLOOD: u32 = 1 << 26;
/// Flag: frames to known MAC addresses are forwarded.
pub(crate) const FORWARD: u32 = 1 << 27;

/// Bits of an entry's tag: number of its port.
pub(crate) const PORT: u32 = MAX_INTERFACES as u32 - 1;
/// Flag: the entry is configured and does not move.
pub(crate) const STATIC: u32 = 1 << 10;
/// Flag: frames of the entry are dropped.
pub(crate) const FILTER: u32 = 1 << 11;

const _: () = assert!(MAX_INTERFACES == 1 << 10 && FILTER << 1 == volley_tables::mac::TAG_MAX + 1);

/// The tag in a result of the MAC table.
#[inline(always)]
pub(crate) fn tag(answer: u32) -> u32 {
    answer >> ID_BITS
}

/// A port, as flooding needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) port: IfIdx,
    pub(crate) shg: u32,
}

/// A bridge domain as workers read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainView {
    pub(crate) members: Vec<Member>,
    /// Groups 01:80:c2:00:00:0x that are flooded, as bits.
    pub(crate) group_fwd_mask: u32,
}

/// All bridge state that workers read.
pub(crate) struct Plane {
    ports: Box<[u32; MAX_INTERFACES]>,
    domains: Vec<DomainView>,
}

impl Plane {
    /// State without bridge domains.
    pub(crate) fn new() -> Self {
        Plane {
            ports: Box::new([0; MAX_INTERFACES]),
            domains: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, slot: u32, domain: DomainView, flags: u32) {
        for member in &domain.members {
            let word = slot | member.shg << SHG | flags;
            self.ports[member.port.0 as usize % MAX_INTERFACES] = word;
        }
        let slot = slot as usize;
        if self.domains.len() <= slot {
            self.domains.resize_with(slot + 1, DomainView::default);
        }
        self.domains[slot] = domain;
    }

    /// The word of an interface.
    #[inline(always)]
    pub(crate) fn port(&self, interface: u32) -> u32 {
        self.ports[interface as usize % MAX_INTERFACES]
    }

    /// The domain of a port's word.
    pub(crate) fn domain(&self, word: u32) -> Option<&DomainView> {
        self.domains.get((word & SLOT) as usize)
    }
}

/// Whether two ports' words name the same split-horizon group.
#[inline(always)]
pub(crate) fn same_group(one: u32, other: u32) -> bool {
    (one ^ other) & GROUP == 0 && one & GROUP != 0
}
