//! `pcap trace`: packets as they pass interfaces, or as they are dropped, into a pcapng file.
//!
//! The control thread compiles the filter and publishes a [`Session`]; workers look at it through the interface table's
//! tap. A dropped packet is captured from where it was received on, outer headers included, with the reason as comment.

mod control;
mod filter;

pub use control::{Control, TraceHandler};
pub use filter::Filter;

use crate::spool::{CaptureWriter, Note};
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use volley_graph::{Col, PacketView, TraceFilter};
use volley_iface::{CaptureHook, CapturePoint, Direction};

/// A capture under way, as workers see it.
pub struct Session {
    /// Where packets go.
    pub spool: Arc<CaptureWriter>,
    /// Only this interface.
    pub interface: Option<u32>,
    /// Only packets that match.
    pub filter: Option<Filter>,
}

/// The tap of the interface table.
#[derive(Default)]
pub struct TraceTap {
    /// Bits of what is wanted, so that nothing else is touched while there is no capture.
    wants: AtomicU32,
    session: ArcSwapOption<Session>,
}

fn bit(what: CapturePoint) -> u32 {
    match what {
        CapturePoint::Passing(Direction::Rx) => 1,
        CapturePoint::Passing(Direction::Tx) => 2,
        CapturePoint::Dropped => 4,
    }
}

impl TraceTap {
    /// Change the session; returns the one before. Workers may be in it for a moment more.
    pub(crate) fn set(&self, wants: u32, session: Option<Arc<Session>>) -> Option<Arc<Session>> {
        self.wants.store(0, Relaxed);
        let old = self.session.swap(session);
        self.wants.store(wants, Relaxed);
        old
    }

    fn offer(&self, note: Note, packet: &PacketView<'_>, back: usize) {
        let session = self.session.load();
        let Some(session) = session.as_deref() else {
            return;
        };
        if session.interface.is_some_and(|only| only != note.interface) {
            return;
        }
        let filter = session.filter.as_ref();
        if filter.is_some_and(|filter| !filter.wants(packet, back)) {
            return;
        }
        session.spool.give(note, packet, back);
    }
}

impl CaptureHook for TraceTap {
    fn is_active(&self, what: CapturePoint) -> bool {
        self.wants.load(Relaxed) & bit(what) != 0
    }

    fn packet_passed(
        &self,
        direction: Direction,
        interface: u32,
        packet: &PacketView<'_>,
        now_ns: u64,
    ) {
        let note = Note {
            at_ns: now_ns,
            interface,
            tag: bit(CapturePoint::Passing(direction)),
            reason: None,
        };
        self.offer(note, packet, 0);
    }

    fn packet_dropped(&self, packet: &PacketView<'_>, now_ns: u64) {
        let note = Note {
            at_ns: now_ns,
            interface: packet.rx(),
            tag: bit(CapturePoint::Dropped),
            reason: packet.get(Col::Err),
        };
        self.offer(note, packet, packet.moved());
    }
}
