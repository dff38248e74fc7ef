//! A Volley without DPDK accepts the commands and reports what is missing.
#![cfg(not(feature = "dpdk"))]

use volley_dpdk::model::{DpdkEal, DpdkInterface, VirtualDevice};
use volley_linux::testbed::Daemon;
use volley_model::{InterfaceSpec, Request};

#[test]
fn requests_are_refused_with_the_way_to_get_it() {
    let mut daemon = Daemon::new(1024, None, volley_dpdk::register);
    let port = DpdkInterface {
        name: "x".into(),
        vdev: Some(VirtualDevice("net_null0".into())),
        ..DpdkInterface::default()
    };
    let create = Request::InterfaceCreate(InterfaceSpec::of(&port).unwrap());
    for (request, part) in [
        (create, "interface x of kind dpdk is not supported"),
        (
            Request::set(&DpdkEal::default()).unwrap(),
            "DPDK is not supported",
        ),
    ] {
        let text = daemon.ask(request).unwrap_err().to_string();
        assert!(
            text.contains(part) && text.contains("--features dpdk"),
            "{text}"
        );
    }
    assert!(daemon.registry.interfaces.borrow().by_name("x").is_none());
    daemon.stop();
}
