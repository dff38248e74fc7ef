//! Other switches between the ports of the generator: packets pass every switch that this machine has.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use volley_lab::samples::{Length, Samples};
use volley_lab::switch::{ADAPTERS, Kind, Spec, can_make_namespaces, guest_missing, measure};

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
        &["linux-bridge", "linux-router", "frr-router", "xdp"],
    );
}

/// Samples of a switch, which may be Volley: that is the program of the lab itself.
fn samples(args: &str) -> Samples {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volley-lab"));
    command.args(["point", "--seconds", "0.1", "--repetitions", "1", "switch"]);
    let output = command.args(args.split(' ')).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn pass_volley(args: &str) {
    let samples = samples(args);
    assert!(samples["mpps"][0] > 0.0, "{args}: {samples:?}");
}

#[test]
fn packets_pass_xdp_sockets_over_veth() {
    match can_make_namespaces() {
        true => pass_volley("p2p --physical af-xdp"),
        false => eprintln!("skipped: this user may not make network namespaces"),
    }
}

#[test]
#[ignore = "boots an emulated machine: up to a minute"]
fn packets_pass_the_kernel_of_a_virtual_machine() {
    match guest_missing() {
        None => pass_volley("loopback --guest"),
        Some(why) => eprintln!("skipped: {why}"),
    }
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

#[test]
fn packets_of_every_kind_pass_a_router_between_memifs() {
    let args = "p2p --peer volley-router --traffic mix --rx-mode polling --pps 3000";
    let of = samples(args);
    // A third of the packets would be lost if one kind did not pass. A packet may be late on a busy machine.
    assert!(of["loss"].iter().any(|loss| *loss < 0.3), "{of:?}");
    assert!(of["median"][0] > 0.0 && of["p99.9"][0] >= of["median"][0]);
}

#[test]
fn switches_say_what_a_packet_costs_in_both_roles() {
    let volley = [
        "p2p --traffic imix",
        "p2p --swap",
        "v2v --packed",
        "v2v --swap",
    ];
    let mut all: Vec<String> = volley.map(str::to_owned).to_vec();
    let testpmd = ADAPTERS
        .into_iter()
        .find(|it| it.name == "testpmd")
        .unwrap();
    match testpmd.missing() {
        Some(why) => eprintln!("testpmd: skipped: {why}"),
        None => {
            all.extend(["p2p --swap", "v2v --swap --mac"].map(|it| format!("{it} --peer testpmd")))
        }
    }
    for args in all {
        let of = samples(&format!("{args} --cost"));
        let cycles = of["cycles"][0];
        assert!((1.0..1e6).contains(&cycles), "{args}: {cycles}");
        assert!(of["mpps"][0] > 0.0, "{args}: {of:?}");
        let nodes = of.keys().filter(|name| name.starts_with("node "));
        assert_eq!(nodes.count() > 2, !args.contains("testpmd"), "{args}");
    }
}
