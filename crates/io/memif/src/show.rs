//! `show memif`: the query, its reply, and its text.

use crate::model::MemifRole;
use schemars::JsonSchema;
use serde::Serialize;
use volley_object::Query;
use volley_show::table;

/// memif interfaces and sockets: peers, rings, why there is no link.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "memif", show = "show memif", example = "show memif")]
#[query(reply = MemifReply, text = text)]
pub struct ShowMemif;

/// memif interfaces and sockets.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct MemifReply {
    /// Sockets by number.
    pub sockets: Vec<MemifSocketRow>,
    /// Interfaces by index.
    pub interfaces: Vec<MemifRow>,
}

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct MemifSocketRow {
    /// Number of the socket.
    pub id: u32,
    /// Path of the socket, or `@name`.
    pub filename: String,
    /// Whether a master listens at the socket.
    pub listening: bool,
    /// Number of interfaces that use the socket.
    pub interfaces: u32,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct MemifRow {
    /// Name of the interface.
    pub name: String,
    /// Number of the interface on its socket.
    pub id: u32,
    /// Number of the socket.
    pub socket_id: u32,
    /// Side of the connection.
    pub role: MemifRole,
    /// Whether a peer is connected.
    pub connected: bool,
    /// Name of the peer; empty without a connection.
    pub peer: String,
    /// Why there is no connection; empty with one.
    pub reason: String,
    /// Whether a connection needs the secret.
    pub has_secret: bool,
    /// Connections so far.
    pub connections: u64,
    /// Regions of shared memory.
    pub regions: u32,
    /// Size of the regions in bytes.
    pub region_bytes: u64,
    /// Rings to receive by: descriptors of each.
    pub rx_rings: Vec<u32>,
    /// Rings to transmit by: descriptors of each.
    pub tx_rings: Vec<u32>,
    /// Times the peer was woken.
    pub interrupts: u64,
}

fn text(reply: &MemifReply) -> String {
    let sockets: Vec<_> = reply
        .sockets
        .iter()
        .map(|s| {
            let listening = if s.listening { "yes" } else { "no" };
            vec![
                s.id.to_string(),
                listening.to_owned(),
                s.interfaces.to_string(),
                s.filename.clone(),
            ]
        })
        .collect();
    let mut out = table(
        &[">Socket", "Listening", ">Interfaces", "Filename"],
        &sockets,
    );
    for i in &reply.interfaces {
        out += &interface(i);
    }
    out
}

fn interface(i: &MemifRow) -> String {
    let secret = if i.has_secret { ", with secret" } else { "" };
    let mut out = format!(
        "\n{}: id {}, socket {}, {}{secret}\n",
        i.name, i.id, i.socket_id, i.role
    );
    if !i.connected {
        return out + &format!("  not connected: {}\n", i.reason);
    }
    let megabytes = i.region_bytes as f64 / f64::from(1 << 20);
    out += &format!("  connected to {}, connection {}\n", i.peer, i.connections);
    out += &format!(
        "  {} regions, {megabytes:.1} MB; copied both ways\n",
        i.regions
    );
    for (name, rings) in [("rx", &i.rx_rings), ("tx", &i.tx_rings)] {
        let sizes: Vec<_> = rings.iter().map(u32::to_string).collect();
        out += &format!("  {} {name} rings: {}\n", rings.len(), sizes.join(", "));
    }
    out + &format!("  peer woken {} times\n", i.interrupts)
}
