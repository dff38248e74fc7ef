//! `pcap trace`: captures packets that pass interfaces, or that are dropped, into a pcapng file.
//!
//! The control thread compiles the filter and publishes [`Session`]s; workers read them through the interface table's
//! tap. There may be several at a time: one with a file, the others for clients of `monitor`. A dropped packet is
//! captured as it was received, outer headers included, with the reason as comment.

mod control;
mod filter;
mod monitor;
mod query;
mod show;

pub use control::Control;
pub use filter::Filter;
pub use monitor::MonitorSession;
pub use query::{Monitor, MonitorReply};
pub use show::{PcapTraceReply, ShowPcapTrace, ended_early};

use crate::spool::{CaptureWriter, Note};
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use volley_graph::{Col, PacketView, TraceFilter};
use volley_iface::{ActivePoints, CaptureHook, CapturePoint, Direction};

/// An active capture, as workers see it.
pub struct Session {
    /// The requested directions, as bits.
    pub(crate) wants: u32,
    /// The destination of packets.
    pub spool: Arc<CaptureWriter>,
    /// Only this interface.
    pub interface: Option<u32>,
    /// Only packets that match.
    pub filter: Option<Filter>,
}

/// The tap of the interface table.
#[derive(Default)]
pub struct TraceTap {
    /// The requested directions of all sessions, as bits: without a capture, workers read nothing else.
    wants: Arc<ActivePoints>,
    sessions: ArcSwapOption<Sessions>,
}

/// All active captures.
pub(crate) type Sessions = Vec<Arc<Session>>;

impl TraceTap {
    /// Replace the sessions; returns the old ones, which workers may use for a short time.
    pub(crate) fn set(&self, sessions: Sessions) -> Option<Arc<Sessions>> {
        let wants = sessions.iter().fold(0, |wants, it| wants | it.wants);
        self.wants.set(0);
        let new = (!sessions.is_empty()).then(|| Arc::new(sessions));
        let old = self.sessions.swap(new);
        self.wants.set(wants);
        old
    }

    fn offer(&self, note: Note, packet: &PacketView<'_>, back: usize) {
        let sessions = self.sessions.load();
        let Some(sessions) = sessions.as_deref() else {
            return;
        };
        sessions.iter().for_each(|it| it.offer(note, packet, back));
    }
}

impl Session {
    fn offer(&self, note: Note, packet: &PacketView<'_>, back: usize) {
        let elsewhere = self.interface.is_some_and(|only| only != note.interface);
        if self.wants & note.tag == 0 || elsewhere {
            return;
        }
        let filter = self.filter.as_ref();
        if filter.is_some_and(|filter| !filter.wants(packet, back)) {
            return;
        }
        self.spool.give(note, packet, back);
    }
}

impl CaptureHook for TraceTap {
    fn active_points(&self) -> Arc<ActivePoints> {
        self.wants.clone()
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
            tag: CapturePoint::Passing(direction).bit(),
            reason: None,
        };
        self.offer(note, packet, 0);
    }

    fn packet_dropped(&self, packet: &PacketView<'_>, now_ns: u64) {
        let note = Note {
            at_ns: now_ns,
            interface: packet.rx(),
            tag: CapturePoint::Dropped.bit(),
            reason: packet.get(Col::ERR),
        };
        self.offer(note, packet, packet.moved());
    }
}
