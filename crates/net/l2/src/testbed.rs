//! A bridge domain for tests of nodes: ports 1 to 5 in slot 1, ports 4 and 5 in split-horizon group 7.

use crate::lane::LearnQueue;
use crate::plane::{DomainView, FLOOD, FORWARD, LEARN, Member, Plane, UU_FLOOD};
use crate::stations::{MacEntries, Rules, key};
use std::sync::Arc;
use volley_graph::Domain;
use volley_iface::{Flag, IfIdx, IfTable};
use volley_tables::{MacSnap, Publisher, Snap};

pub(crate) const ALL: u32 = LEARN | FLOOD | UU_FLOOD | FORWARD;

pub(crate) struct Bed {
    pub domain: Arc<Domain>,
    pub stations: MacEntries,
    pub lane: Arc<LearnQueue>,
    pub table: Arc<IfTable>,
    plane: Publisher<Plane>,
}

/// MAC address of host `n`.
pub(crate) fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

pub(crate) fn frame(dst: [u8; 6], src: [u8; 6]) -> Vec<u8> {
    let mut bytes = [&dst[..], &src[..], &[0x81, 0, 0, 5, 8, 0]].concat();
    bytes.resize(64, 0xaa);
    bytes
}

impl Bed {
    pub fn new(flags: u32) -> Self {
        let domain = Domain::new();
        let mut stations = MacEntries::new(&domain, 1);
        stations.set_rules(
            1,
            Rules {
                learn: true,
                limit: 1000,
                age_ns: 0,
            },
        );
        let table = IfTable::new(1);
        let shg = |n| if n > 3 { 7 } else { 0 };
        let member = |n| Member {
            port: IfIdx(n),
            shg: shg(n),
        };
        let view = DomainView {
            members: (1..=5).map(member).collect(),
            group_fwd_mask: 1 << 3,
        };
        let mut plane = Plane::new();
        plane.add(1, view, flags);
        (1..=5).for_each(|n| table.set(IfIdx(n), Flag::Up, true));
        Bed {
            plane: Publisher::new(&domain, plane),
            domain,
            stations,
            lane: Arc::default(),
            table,
        }
    }

    /// Hosts 1 to 5 are known on the ports of their number.
    pub fn known(mut self) -> Self {
        (1..=5).for_each(|n| self.stations.hear(key(mac(n), 1), n.into(), 0));
        self
    }

    pub fn snaps(&self) -> (Snap<Plane>, MacSnap) {
        (self.plane.snap(), self.stations.snap())
    }
}
