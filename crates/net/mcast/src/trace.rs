//! Trace records of multicast nodes.

use volley_graph::{PacketTrace, PacketView, Trace, TraceNames};
use volley_wire::dissect;

/// The IP header.
#[derive(Clone, Copy)]
pub struct GroupTrace(PacketTrace);

impl Trace for GroupTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        GroupTrace(PacketTrace::note(packet))
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let headers = dissect::packet(self.0.bytes(), dissect::From::Ip)
            .of(self.0.len())
            .offloaded(self.0.unfinished_checksum());
        format!("rx {}\n{headers}", names.interface(self.0.rx()))
    }
}
