//! Kinds of interfaces in the file, and which keys each of them takes.

use crate::field::Section;

/// All kinds, as `one_of` wants them.
pub(crate) const ALL: [(&str, &str); 10] = [
    ("pg", "pg"),
    ("pcap", "pcap"),
    ("tap", "tap"),
    ("host-interface", "host-interface"),
    ("af_xdp", "af_xdp"),
    ("memif", "memif"),
    ("vhost-user", "vhost-user"),
    ("virtio-user", "virtio-user"),
    ("dpdk", "dpdk"),
    ("sub-interface", "sub-interface"),
];

/// Keys that not every kind takes, and the kinds that do.
const KEYS: &[(&str, &[&str])] = &[
    ("rx", &["pcap"]),
    ("tx", &["pcap"]),
    ("loop", &["pcap"]),
    ("pace", &["pcap"]),
    ("host", &["tap", "host-interface", "af_xdp"]),
    ("namespace", &["tap", "host-interface", "af_xdp"]),
    ("mode", &["tap", "af_xdp"]),
    (
        "queues",
        &["tap", "host-interface", "af_xdp", "virtio-user", "dpdk"],
    ),
    ("ring", &["host-interface", "af_xdp", "virtio-user"]),
    ("offload", &["tap", "host-interface", "dpdk"]),
    ("copy", &["af_xdp"]),
    ("host_mac", &["tap"]),
    ("host_mtu", &["tap"]),
    ("host_addresses", &["tap"]),
    ("vhost", &["tap"]),
    ("memif", &["memif"]),
    ("dev", &["dpdk"]),
    ("vdev", &["dpdk"]),
    ("rx_desc", &["dpdk"]),
    ("tx_desc", &["dpdk"]),
    ("socket", &["vhost-user", "virtio-user"]),
    ("role", &["vhost-user", "virtio-user"]),
    ("gso", &["vhost-user", "virtio-user"]),
    ("packed", &["vhost-user", "virtio-user"]),
    ("event_idx", &["vhost-user", "virtio-user"]),
    ("parent", &["sub-interface"]),
    ("dot1q", &["sub-interface"]),
    ("dot1ad", &["sub-interface"]),
    ("inner_dot1q", &["sub-interface"]),
];

/// Report keys that the kind does not take.
pub(crate) fn refuse(section: &Section<'_>, kind: &str) {
    for (key, kinds) in KEYS.iter().filter(|(_, kinds)| !kinds.contains(&kind)) {
        if let Some(field) = section.get(key) {
            field.error(format!("is for kind {} only", kinds.join(", ")));
        }
    }
}
