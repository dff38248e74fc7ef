//! `show vhost-user`.

use super::table::table;
use volley_model::reply::VhostUserReply;

pub(super) fn vhost_user(reply: &VhostUserReply) -> String {
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
        let row = |r: &volley_model::reply::VhostRingRow| {
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
