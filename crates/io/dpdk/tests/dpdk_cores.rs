//! DPDK started with more cores and memory. A separate process, because DPDK starts once.
#![cfg(feature = "dpdk")]

mod support;

use support::*;
use volley_dpdk::model::{Cores, DpdkEal};

#[test]
fn settings_of_the_start_hold() {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    if cores < 2 {
        eprintln!("SKIP: two cores are needed");
        return;
    }
    let mut daemon = daemon(None);
    daemon.must(set(&DpdkEal {
        lcores: Some(Cores("0-1".into())),
        memory: Some(96),
        ..DpdkEal::default()
    }));
    let mut two = vdev("net_ring0");
    two.queues = 2;
    daemon.must(create("r", two));
    let text = hardware(&mut daemon, "r");
    assert!(text.contains("queues: rx 2 of"), "{text}");
    let text = refused(&mut daemon, set(&DpdkEal::default()));
    assert!(text.contains("-l 0-1 -m 96"), "{text}");
    daemon.stop();
}
