//! Trace of a packet at an IP node.

use volley_fib::columns::DPO;
use volley_graph::{PacketTrace, PacketView, Trace, TraceNames};
use volley_wire::dissect;

/// The IP header and the forwarding object of the packet.
#[derive(Clone, Copy)]
pub struct IpTrace {
    glance: PacketTrace,
    dpo: u32,
}

impl Trace for IpTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        IpTrace {
            glance: PacketTrace::note(packet),
            dpo: packet.get(DPO.col).unwrap_or(0),
        }
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let dpo = volley_fib::dataplane::Dpo(self.dpo);
        let found = if self.dpo == 0 {
            String::new()
        } else {
            format!(" dpo {dpo:?}")
        };
        let headers = dissect::packet(self.glance.bytes(), dissect::From::Ip)
            .of(self.glance.len())
            .offloaded(self.glance.unfinished_checksum());
        format!("rx {}{found}\n{headers}", names.interface(self.glance.rx()))
    }
}
