//! The classes of the features, in the order of the daemon: readers of objects need them.

use std::sync::Once;

static REGISTERED: Once = Once::new();

/// Registers the classes once.
pub fn register() {
    REGISTERED.call_once(|| {
        volley_iface::classes().expect("interfaces");
        volley_l2::classes().expect("layer 2");
        volley_fib::classes().expect("routes");
        volley_neighbor::classes().expect("neighbours");
        volley_router_discovery::classes().expect("router discovery");
        volley_ip::classes().expect("IP");
        volley_mcast::classes().expect("multicast");
        volley_memif::classes().expect("memif");
        volley_pcap::classes().expect("captures");
        volley_pg::classes().expect("packet generator");
        volley_vhost::classes().expect("vhost");
        volley_batcher::classes().expect("path batcher");
        volley_dhcp_relay::classes().expect("DHCP relay");
        volley_ping::classes().expect("ping");
    });
}
