//! `show packet-generator`: the query, its reply, and its text.

use schemars::JsonSchema;
use serde::Serialize;
use volley_object::Query;
use volley_pcap::ended_early;
use volley_show::{or_dash, table};

/// Streams.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "packet-generator",
    show = "show packet-generator",
    example = "show packet-generator"
)]
#[query(reply = PacketGeneratorReply, text = text)]
pub struct ShowPacketGenerator;

/// Streams.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PacketGeneratorReply {
    /// One per stream.
    pub streams: Vec<StreamRow>,
    /// Captures of packet-generator interfaces.
    pub captures: Vec<PgCaptureRow>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct StreamRow {
    /// Name of the stream.
    pub name: String,
    /// Sends now. False only when every packet made has been processed.
    pub enabled: bool,
    /// Interface or node it enters at.
    pub enters: String,
    /// Packets made.
    pub sent: u64,
    /// Packets to make; none = endless.
    pub limit: Option<u64>,
    /// Requested packets per second; none = as fast as possible.
    pub rate_pps: Option<u64>,
    /// Description of the packets.
    pub parameters: String,
}

/// One capture of what a packet-generator interface transmits.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PgCaptureRow {
    /// Interface.
    pub interface: String,
    /// File.
    pub file: String,
    /// Packets written.
    pub packets: u64,
    /// Packets to write; none = unlimited.
    pub count: Option<u64>,
    /// Why the file could not be written, where that ended the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

fn text(r: &PacketGeneratorReply) -> String {
    let row = |s: &StreamRow| {
        let on = if s.enabled { "Yes" } else { "No" };
        vec![
            s.name.clone(),
            on.to_string(),
            s.sent.to_string(),
            or_dash(s.limit),
            or_dash(s.rate_pps),
            s.enters.clone(),
            s.parameters.clone(),
        ]
    };
    let rows: Vec<_> = r.streams.iter().map(row).collect();
    let mut out = match rows.is_empty() {
        true => "no streams currently defined\n".to_string(),
        false => table(
            &[
                "Name",
                "Enabled",
                ">Count",
                ">Limit",
                ">Rate",
                "Enters",
                "Parameters",
            ],
            &rows,
        ),
    };
    for c in &r.captures {
        let of = c.count.map_or_else(String::new, |n| format!(" of {n}"));
        out += &format!(
            "capture of {} to {}: {}{of} packets{}\n",
            c.interface,
            c.file,
            c.packets,
            ended_early(c.fault.as_deref())
        );
    }
    out
}
