//! Reassembly of datagrams for the router (RFC 791, 3.2; RFC 815; RFC 8200, 4.5), and virtual reassembly of those in transit,
//! whose fragments get the hash of their flow. `docs/reassembly.md` is the operator's page.
//!
//! Each worker has its own [`store::Store`] and [`flows::Flows`] for each family; `ip4-full-reassembly-handoff` and
//! `ip4-sv-reassembly-handoff` hand off all fragments of a datagram to one worker. This module detects faults of a single
//! fragment; the stores detect faults of the datagram.

mod chains;
mod control;
mod datagrams;
pub(crate) mod flows;
mod show;
pub(crate) mod store;
mod v4;
mod v6;

pub use control::ReassemblySwitches;
pub(crate) use control::{ReassemblyHandler, Totals};
pub use show::{
    ReassemblyReply, ReassemblyRow, ShowReassembly, ShowVirtualReassembly, VirtualReassemblyReply,
    VirtualReassemblyRow,
};
pub(crate) use store::{Fault, Span, Store, Whole};

use std::marker::PhantomData;
use volley_fib::Family;

/// Largest number of datagrams of a family per worker, whatever is configured; as in `volley_model::limits`.
pub(crate) const MOST_DATAGRAMS: usize = crate::model::MAX_REASSEMBLIES as usize;
/// Largest number of fragments; larger than the setting, because fragments to drop leave at the end of a round.
pub(crate) const MOST_FRAGMENTS: usize = crate::model::MAX_BUFFERS as usize + 1024;
/// Largest datagram, and largest payload of an IPv6 packet.
pub(crate) const LONGEST: usize = 65_535;
/// Largest headers of a reassembled datagram.
pub(crate) const HEADERS: usize = 1024;

/// Fields that identify the datagram of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Key {
    /// Routing table of the receiving interface: tables may have the same addresses.
    pub table: u32,
    pub source: u128,
    pub destination: u128,
    pub id: u32,
    /// IPv4 only.
    pub protocol: u8,
}

/// Fault of a single fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// The headers do not fit the fragment.
    Malformed,
    /// The fragment has no payload.
    Empty,
    /// More fragments follow, and the length is no multiple of 8.
    BadLength,
    /// The datagram would be longer than [`LONGEST`].
    TooLong,
    /// The first fragment lacks headers, or another one contains part of them (RFC 1858, 3128, 7112).
    Tiny,
    /// The datagram is neighbour discovery (RFC 6980).
    Discovery,
}

/// Differences between the fragments of the families.
pub trait Reassemble: Family {
    /// Name of the node that hands off fragments to their worker.
    const HANDOFF: &'static str;
    /// Name of the node for full reassembly.
    const REASSEMBLY: &'static str;
    /// Name of the feature that selects fragments in transit.
    const SV_FEATURE: &'static str;
    /// Name of the node that hands off fragments in transit to their worker.
    const SV_HANDOFF: &'static str;
    /// Name of the node for virtual reassembly.
    const SV_REASSEMBLY: &'static str;
    /// Offset of a header word that rules out a fragment for most packets: see [`Reassemble::may_be_cut`].
    const CUT_AT: usize;

    /// Whether a packet with this word at [`Reassemble::CUT_AT`] may be a fragment.
    fn may_be_cut(word: u32) -> bool;

    /// Whether a packet that may be a fragment is one.
    fn is_cut(bytes: &[u8]) -> bool;

    /// Datagram and range of a fragment, or its fault. `bytes` are those of its first segment, `len` is its whole length.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn fragment(bytes: &[u8], len: usize) -> Result<(Key, Span), Wrong>;

    /// Datagram of a fragment, without any check.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn key(bytes: &[u8]) -> Option<Key>;

    /// Writes the headers of a datagram with `payload` bytes behind the headers of the first fragment, with which `first`
    /// begins; returns their length. `ecn` are the ECN bits.
    #[doc(hidden)]
    fn headers(first: &[u8], payload: usize, ecn: u8, out: &mut [u8; HEADERS]) -> Option<usize>;
}

/// A node that requires all fragments of a datagram on one worker.
pub trait Gather: Send + 'static {
    /// The IP version.
    type Family: Reassemble;
    /// Name of the handoff node.
    const HANDOFF: &'static str;
    /// Name of the node.
    const NODE: &'static str;
}

/// Full reassembly.
pub struct Full<F>(PhantomData<F>);
/// Virtual reassembly.
pub struct Virtual<F>(PhantomData<F>);

impl<F: Reassemble> Gather for Full<F> {
    type Family = F;
    const HANDOFF: &'static str = F::HANDOFF;
    const NODE: &'static str = F::REASSEMBLY;
}

impl<F: Reassemble> Gather for Virtual<F> {
    type Family = F;
    const HANDOFF: &'static str = F::SV_HANDOFF;
    const NODE: &'static str = F::SV_REASSEMBLY;
}

/// Whether a first fragment with `rest` bytes behind the IP headers lacks part of the upper-layer header that filters and hosts
/// need (RFC 1858; RFC 7112).
pub(crate) fn is_tiny(protocol: u8, rest: usize) -> bool {
    let needed = match protocol {
        6 => 20,
        1 | 17 | 58 | 136 => 8,
        132 => 12,
        _ => 0,
    };
    rest < needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use volley_fib::{V4, V6};

    /// For arbitrary bytes: the reported span is within them, and the headers can be written.
    fn holds<F: Reassemble>(bytes: &[u8], more: usize) -> Result<(), TestCaseError> {
        let len = bytes.len() + more;
        let Ok((key, span)) = F::fragment(bytes, len) else {
            return Ok(());
        };
        prop_assert_eq!(F::key(bytes), Some(key));
        prop_assert!(span.start < span.end && span.end as usize <= LONGEST);
        prop_assert!(usize::from(span.head) + (span.end - span.start) as usize <= len);
        prop_assert!(!span.more || span.end % 8 == 0);
        let mut out = [0; HEADERS];
        for payload in [span.end as usize, LONGEST] {
            let written = F::headers(bytes, payload, 1, &mut out);
            prop_assert!(written.is_none_or(|n| n <= usize::from(span.head)));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            header in 0usize..3,
            more in 0usize..3000,
        ) {
            // Random bytes mostly fail at once; these fields make them get further.
            let fields: &[(usize, u8)] = match header {
                0 => &[(0, 0x45), (2, 0)],
                1 => &[(4, 0), (6, 44), (42, 0)],
                _ => &[(4, 0), (6, 60), (40, 44), (41, 0), (50, 0)],
            };
            for (at, byte) in fields {
                if let Some(place) = bytes.get_mut(*at) {
                    *place = *byte;
                }
            }
            holds::<V4>(&bytes, more)?;
            holds::<V6>(&bytes, more)?;
        }
    }
}
