//! DPDK does not start: one error sentence, nothing half-created, and Volley keeps working. A separate process, because
//! DPDK starts once.
#![cfg(feature = "dpdk")]

mod support;

use support::*;
use volley_dpdk::model::{Argument, DpdkEal};

#[test]
fn a_start_that_fails_is_told() {
    let mut daemon = daemon(None);
    daemon.must(set(&DpdkEal {
        options: vec![Argument("--no-such-thing".into())],
        ..DpdkEal::default()
    }));
    for _ in 0..2 {
        let text = refused(&mut daemon, create("x", vdev("net_null0")));
        println!("{text}");
        let reported = text.contains("DPDK does not start: volley: unrecognized option")
            && text.contains("restart Volley");
        assert!(reported && !text.contains('\n'), "{text}");
        assert!(daemon.registry.interfaces.borrow().by_name("x").is_none());
    }
    daemon.stop();
}
