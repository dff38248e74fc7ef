//! `show vhost-user`: the query, its reply, and its text.

use schemars::JsonSchema;
use serde::Serialize;
use volley_object::Query;
use volley_show::table;

/// vhost-user and virtio-user interfaces: peers, features, memory, rings, faults.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "vhost-user",
    show = "show (vhost-user | virtio-user) [<name>]",
    example = "show vhost-user"
)]
#[query(reply = VhostUserReply, text = text)]
pub struct ShowVhostUser {
    /// Only this interface.
    #[query(needs = "interface")]
    pub name: Option<String>,
}

/// vhost-user and virtio-user interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct VhostUserReply {
    /// In order of creation.
    pub interfaces: Vec<VhostUserRow>,
}

/// A vhost-user or virtio-user interface.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct VhostUserRow {
    /// Name of the interface.
    pub name: String,
    /// `vhost-user` (back end) or `virtio-user` (front end).
    pub kind: String,
    /// Path of the socket.
    pub socket: String,
    /// Side of the socket: `server` or `client`.
    pub role: String,
    /// State of the connection.
    pub state: String,
    /// Negotiated features, by name.
    pub features: String,
    /// Reason why the last peer was disconnected, if it was: name and sentence.
    pub fault: Option<String>,
    /// Peers that connected.
    pub connections: u64,
    /// Peers that were disconnected for a fault.
    pub faults: u64,
    /// Shared memory, a line for each region.
    pub regions: Vec<String>,
    /// Rings in service.
    pub rings: Vec<VhostRingRow>,
}

/// A ring in service.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct VhostRingRow {
    /// Direction, seen from Volley: `rx` or `tx`.
    pub way: String,
    /// Number of the queue.
    pub queue: u32,
    /// Number of descriptors.
    pub size: u32,
    /// Packets since the interface was created.
    pub packets: u64,
    /// Notifications sent to the peer.
    pub notifications: u64,
}

fn text(reply: &VhostUserReply) -> String {
    if reply.interfaces.is_empty() {
        return "no vhost-user or virtio-user interfaces\n".to_string();
    }
    let mut out = String::new();
    for i in &reply.interfaces {
        out += &format!(
            "{} ({}), {} on {}: {}\n",
            i.name, i.kind, i.role, i.socket, i.state
        );
        out += &format!("  features: {}\n", i.features);
        out += &format!(
            "  connections {}, turned away {}\n",
            i.connections, i.faults
        );
        if let Some(fault) = &i.fault {
            out += &format!("  last fault: {fault}\n");
        }
        for region in &i.regions {
            out += &format!("  memory {region}\n");
        }
        let row = |r: &VhostRingRow| {
            vec![
                r.way.clone(),
                r.queue.to_string(),
                r.size.to_string(),
                r.packets.to_string(),
                r.notifications.to_string(),
            ]
        };
        if !i.rings.is_empty() {
            let rows: Vec<_> = i.rings.iter().map(row).collect();
            out += &table(&["Ring", ">Queue", ">Size", ">Packets", ">Notified"], &rows);
        }
    }
    out
}
