//! Trace records of neighbour discovery and MLD packets.

use volley_graph::{PacketTrace, PacketView, Trace, TraceNames};
use volley_wire::dissect;

/// An ND or MLD message, or the received packet that was neither.
#[derive(Clone, Copy)]
pub struct NdTrace(PacketTrace);

impl Trace for NdTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        NdTrace(PacketTrace::note(packet))
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let rx = names.interface(self.0.rx());
        let bytes = self.0.bytes();
        let address = |at: usize| {
            let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
            Some(std::net::Ipv6Addr::from(octets))
        };
        let packet = dissect::packet(bytes, dissect::From::Ip).of(self.0.len());
        let message = match (bytes.get(40), address(8), address(48)) {
            (Some(133), Some(from), _) => format!("which routers are there? tell {from}"),
            (Some(135), Some(from), Some(target)) => format!("who has {target}? tell {from}"),
            (Some(136), Some(from), Some(target)) => format!("{target} is here, says {from}"),
            _ if bytes.get(6) == Some(&0) => format!("about groups: {packet}"),
            _ => format!("no neighbour discovery: {packet}"),
        };
        format!("rx {rx}\n{message}")
    }
}
