//! Other switches between the ports of the generator: packets pass every switch that this machine has.

use std::sync::{Mutex, PoisonError};
use volley_lab::samples::Length;
use volley_lab::switch::{ADAPTERS, Kind, Spec, measure};

const SHORT: Length = Length {
    seconds: 0.1,
    repetitions: 1,
    counted: 0,
};

/// A process has one folder for the sockets of its switch, so it measures one switch at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Packets of the generator pass these switches, if they are here.
fn pass(ports: Kind, args: &str, names: &[&str]) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    for adapter in ADAPTERS.into_iter().filter(|it| names.contains(&it.name)) {
        if let Some(why) = adapter.missing() {
            eprintln!("{}: skipped: {why}", adapter.name);
            continue;
        }
        assert!(adapter.has(&[ports]), "{}", adapter.name);
        let spec = Spec::of(&format!("{args} --peer {}", adapter.name)).unwrap();
        match measure(&spec, SHORT) {
            Ok(samples) => assert!(samples["mpps"][0] > 0.0, "{}: {samples:?}", adapter.name),
            Err(why) => panic!("{} with {args}: {why}", adapter.name),
        }
    }
}

#[test]
fn packets_pass_the_kernel_over_veth() {
    pass(
        Kind::Veth,
        "p2p --physical veth",
        &["linux-bridge", "linux-router", "frr-router"],
    );
}

#[test]
fn packets_pass_switches_of_dpdk() {
    for (kind, args) in [
        (Kind::Veth, "p2p --physical veth"),
        (Kind::Memif, "p2p"),
        (Kind::VirtioUser, "p2v"),
    ] {
        pass(kind, args, &["testpmd", "ovs-dpdk"]);
    }
}

#[test]
fn a_switch_without_these_ports_is_refused() {
    let spec = Spec::of("p2p --peer linux-bridge").unwrap();
    let error = measure(&spec, SHORT).unwrap_err();
    let root = error.contains("run the lab as root");
    assert!(
        root || error.contains("does not have these ports"),
        "{error}"
    );
}
