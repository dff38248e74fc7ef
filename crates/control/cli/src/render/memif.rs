//! `show memif`.

use super::table::table;
use volley_model::reply::{MemifReply, MemifRow};

pub(super) fn memif(reply: &MemifReply) -> String {
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
