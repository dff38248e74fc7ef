//! Trace records of ARP packets.

use volley_graph::{PacketTrace, PacketView, Trace, TraceNames};
use volley_wire::arp::{ArpPacket, REPLY, REQUEST};

/// An ARP packet, or the received packet that was no ARP packet.
#[derive(Clone, Copy)]
pub struct ArpTrace(PacketTrace);

impl Trace for ArpTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        ArpTrace(PacketTrace::note(packet))
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let rx = names.interface(self.0.rx());
        let Ok(arp) = ArpPacket::parse(self.0.bytes()) else {
            return format!("rx {rx}\nno ARP for IPv4 over Ethernet");
        };
        let (sender, target) = (arp.sender_ip(), arp.target_ip());
        let message = match arp.operation.get() {
            REQUEST => format!(
                "request: who has {target}? tell {sender} at {}",
                arp.sender_mac
            ),
            REPLY => format!("reply to {target}: {sender} is at {}", arp.sender_mac),
            other => format!(
                "operation {other}: {sender} at {}, {target}",
                arp.sender_mac
            ),
        };
        format!("rx {rx}\n{message}")
    }
}
