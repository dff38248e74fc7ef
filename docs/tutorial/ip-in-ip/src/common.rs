//! Edges, counters and the trace, which all stages share.

use std::net::Ipv4Addr;
use volley_sdk::prelude::*;

nexts! {
    /// Where the stages send packets.
    pub enum Next { Drop => "error-drop", Output => "interface-output" }
}

counters! {
    /// What the stages count.
    pub enum Count {
        /// packets that were encapsulated
        Encapsulated = "encapsulated" (Info),
        /// no IPv4 packet, or its lengths contradict each other, or another header does not fit
        NotIp4 = "not-ip4" (Error),
        /// the table of pairs does not have the destination
        NotFound = "not-found" (Error),
    }
}

/// The trace of a packet at a stage.
#[derive(Clone, Copy)]
pub struct InnerTrace {
    destination: Option<[u8; 4]>,
    len: u32,
    rx: u32,
}

impl Trace for InnerTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        let destination = packet.bytes().get(30..34);
        InnerTrace {
            destination: destination.and_then(|it| it.try_into().ok()),
            len: packet.len() as u32,
            rx: packet.rx(),
        }
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let rx = names.interface(self.rx);
        match self.destination.map(Ipv4Addr::from) {
            Some(to) => format!("frame of {} bytes to {to}, back by {rx}", self.len),
            None => format!("frame of {} bytes, rx {rx}", self.len),
        }
    }
}
