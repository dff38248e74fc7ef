//! Streams of the packet generator, and paths for their packets.

use super::{Daemon, oracle};
use volley_pcap::Packet;

/// Creates a stream of these packets that enters by pg0 and starts on a worker, once it is enabled.
pub fn stream(daemon: &Daemon, name: &str, worker: u32, packets: &[Vec<u8>]) {
    let file = daemon.folder.file(&format!("{name}.pcap"));
    let packet = |data: &Vec<u8>| Packet::ethernet(0, data.clone());
    oracle::write(&file, &packets.iter().map(packet).collect::<Vec<_>>());
    daemon.ok(&format!(
        "packet-generator new name {name} interface pg0 worker {worker} limit {} pcap {}",
        packets.len(),
        file.display()
    ));
}

/// Enables a stream and waits until all of its packets are sent and their buffers are free.
pub fn run_out(daemon: &mut Daemon, name: &str, count: u32) {
    daemon.ok(&format!("packet-generator enable {name}"));
    daemon.wait_for("the stream", |d| {
        let streams = d.json("show packet-generator");
        let streams = streams["streams"].as_array().unwrap().clone();
        let mine = streams.iter().find(|s| s["name"] == name).unwrap();
        mine["sent"] == count && d.json("show buffers")["arenas"][0]["used"] == 0
    });
}

/// Creates interfaces from pg1 on, with a neighbour on each, and a route to 20.0.0.0/8 over all of them.
pub fn ways(daemon: &Daemon, count: u32) {
    let mut route = "ip route add 20.0.0.0/8".to_owned();
    for n in 1..=count {
        for line in [
            format!("create packet-generator interface pg{n}"),
            format!("set interface state pg{n} up"),
            format!("set interface ip address pg{n} 10.{n}.0.1/24"),
            format!("set ip neighbor pg{n} 10.{n}.0.9 02:00:00:00:00:0{n}"),
        ] {
            daemon.ok(&line);
        }
        route += &format!(" via 10.{n}.0.9 pg{n}");
    }
    daemon.ok(&route);
}

/// Packets that an interface has received (`rx`) or transmitted (`tx`).
pub fn packets(daemon: &Daemon, interface: &str, direction: &str) -> u64 {
    let shown = daemon.json(&format!("show interface {interface}"));
    let count = &shown["interfaces"][0][direction]["packets"];
    count.as_u64().unwrap_or_else(|| panic!("{shown}"))
}

/// Disables the packet generator, and waits until all of its packets have left or were dropped. Returns the packets that pg0 has
/// received, and those that pg1 has transmitted.
pub fn drain(daemon: &mut Daemon) -> (u64, u64) {
    daemon.ok("packet-generator disable");
    let mut before = (0, 0);
    daemon.wait_for("the last packets", |d| {
        let now = (packets(d, "pg0", "rx"), packets(d, "pg1", "tx"));
        std::mem::replace(&mut before, now) == now
    });
    before
}
