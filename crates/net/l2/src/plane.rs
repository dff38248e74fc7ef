//! What workers know of bridge domains: a word for each interface, and the ports of each domain. Published as a whole.

use volley_iface::{IfIdx, MAX_INTERFACES};
use volley_tables::mac::ID_BITS;

/// Of a port's word: the domain's slot, 0 for an interface that is in none.
pub(crate) const SLOT: u32 = 0xffff;
/// Where the split-horizon group begins.
pub(crate) const SHG: u32 = 16;
/// New stations are learned.
pub(crate) const LEARN: u32 = 1 << 24;
/// Frames for groups and everybody are flooded.
pub(crate) const FLOOD: u32 = 1 << 25;
/// Frames for unknown stations are flooded.
pub(crate) const UU_FLOOD: u32 = 1 << 26;
/// Frames for known stations are forwarded.
pub(crate) const FORWARD: u32 = 1 << 27;

/// Of a station's tag: the number of its port.
pub(crate) const PORT: u32 = MAX_INTERFACES as u32 - 1;
/// It is configured, and does not move.
pub(crate) const STATIC: u32 = 1 << 10;
/// Its frames are dropped.
pub(crate) const FILTER: u32 = 1 << 11;

const _: () = assert!(MAX_INTERFACES == 1 << 10 && FILTER << 1 == volley_tables::mac::TAG_MAX + 1);

/// The tag of a table's answer.
#[inline(always)]
pub(crate) fn tag(answer: u32) -> u32 {
    answer >> ID_BITS
}

/// A port, as flooding sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) port: IfIdx,
    pub(crate) shg: u32,
}

/// What workers know of one domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainView {
    pub(crate) members: Vec<Member>,
    /// Groups of 01:80:c2:00:00:0x that are flooded.
    pub(crate) group_fwd_mask: u32,
}

/// Everything that workers know.
pub(crate) struct Plane {
    ports: Box<[u32; MAX_INTERFACES]>,
    domains: Vec<DomainView>,
}

impl Plane {
    /// Nothing is bridged.
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
    (one ^ other) >> SHG & 0xff == 0 && one >> SHG & 0xff != 0
}
