//! Feature bits of virtio-net and of the vhost-user protocol: offered, accepted, and their names.

#![allow(missing_docs)]

pub const CSUM: u64 = 1 << 0;
pub const GUEST_CSUM: u64 = 1 << 1;
pub const GUEST_TSO4: u64 = 1 << 7;
pub const GUEST_TSO6: u64 = 1 << 8;
pub const GUEST_ECN: u64 = 1 << 9;
pub const HOST_TSO4: u64 = 1 << 11;
pub const HOST_TSO6: u64 = 1 << 12;
pub const HOST_ECN: u64 = 1 << 13;
pub const MRG_RXBUF: u64 = 1 << 15;
pub const MQ: u64 = 1 << 22;
pub const INDIRECT_DESC: u64 = 1 << 28;
pub const EVENT_IDX: u64 = 1 << 29;
pub const PROTOCOL: u64 = 1 << 30;
pub const VERSION_1: u64 = 1 << 32;
pub const RING_PACKED: u64 = 1 << 34;

pub const PROTOCOL_MQ: u64 = 1 << 0;
pub const PROTOCOL_REPLY_ACK: u64 = 1 << 3;

const NAMES: [(u64, &str); 15] = [
    (CSUM, "csum"),
    (GUEST_CSUM, "guest-csum"),
    (GUEST_TSO4, "guest-tso4"),
    (GUEST_TSO6, "guest-tso6"),
    (GUEST_ECN, "guest-ecn"),
    (HOST_TSO4, "host-tso4"),
    (HOST_TSO6, "host-tso6"),
    (HOST_ECN, "host-ecn"),
    (MRG_RXBUF, "mrg-rxbuf"),
    (MQ, "mq"),
    (INDIRECT_DESC, "indirect-desc"),
    (EVENT_IDX, "event-idx"),
    (PROTOCOL, "protocol-features"),
    (VERSION_1, "version-1"),
    (RING_PACKED, "ring-packed"),
];

/// Features that the configuration allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Checksum and segmentation offload.
    pub gso: bool,
    /// Packed rings.
    pub packed: bool,
    /// Event indices.
    pub event_idx: bool,
    /// Multiple queues.
    pub mq: bool,
}

impl Wanted {
    fn common(self) -> u64 {
        let bit = |on, bits| if on { bits } else { 0 };
        VERSION_1
            | MRG_RXBUF
            | PROTOCOL
            | bit(self.packed, RING_PACKED)
            | bit(self.event_idx, EVENT_IDX)
            | bit(self.mq, MQ)
            | bit(
                self.gso,
                CSUM | GUEST_CSUM | HOST_TSO4 | HOST_TSO6 | HOST_ECN,
            )
            | bit(self.gso, GUEST_TSO4 | GUEST_TSO6 | GUEST_ECN)
    }

    /// The features that a back end offers.
    pub fn offer(self) -> u64 {
        self.common() | INDIRECT_DESC
    }

    /// The features of `offered` that a front end accepts.
    pub fn take(self, offered: u64) -> u64 {
        let mut taken = self.common() & offered;
        // Segmentation offload requires checksum offload.
        for (needed, all) in [
            (CSUM, HOST_TSO4 | HOST_TSO6 | HOST_ECN),
            (GUEST_CSUM, GUEST_TSO4 | GUEST_TSO6 | GUEST_ECN),
        ] {
            if taken & needed == 0 {
                taken &= !all;
            }
        }
        taken
    }
}

/// Names of features.
pub fn names(features: u64) -> String {
    let known = NAMES.iter().filter(|(bit, _)| features & bit != 0);
    let names: Vec<&str> = known.map(|(_, name)| *name).collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(" ")
    }
}
