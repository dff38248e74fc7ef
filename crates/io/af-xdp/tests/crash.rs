//! Volley is killed with SIGKILL: its resources in the kernel are freed, and the kernel's interfaces stay usable.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use volley_af_packet::model::HostInterface;
use volley_af_xdp::model::XdpInterface;
use volley_linux::testbed::{Daemon, Testbed, must};
use volley_object::Object;
use volley_tap::model::TapInterface;

/// Set in the process that is killed: names of a namespace and two kernel interfaces.
const VICTIM: &str = "VOLLEY_CRASH_VICTIM";

fn victim(arguments: &str) -> ! {
    let names: Vec<&str> = arguments.split(' ').collect();
    let mut daemon = Daemon::new(8192, None, |registry| {
        volley_l2::register(registry)?;
        volley_tap::register(registry)?;
        volley_af_packet::register(registry)?;
        volley_af_xdp::register(registry)
    });
    let tap = TapInterface {
        host: Some("t".into()),
        namespace: Some(names[0].into()),
        ..TapInterface::default()
    }
    .instance()
    .unwrap();
    let packet = HostInterface {
        host: names[1].into(),
        ..HostInterface::default()
    }
    .instance()
    .unwrap();
    let xdp = XdpInterface {
        host: names[2].into(),
        ..XdpInterface::default()
    }
    .instance()
    .unwrap();
    for (name, kind) in [("a", tap), ("b", packet), ("c", xdp)] {
        daemon.create(name, kind, None);
    }
    daemon.patch("b", "c");
    println!("ready");
    std::thread::sleep(Duration::from_secs(20));
    std::process::exit(1)
}

#[test]
fn killed_it_leaves_kernel_interfaces_usable() {
    if let Ok(arguments) = std::env::var(VICTIM) {
        victim(&arguments);
    }
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let (b, c) = (bed.veth(0, "e", ""), bed.veth(1, "e", ""));
    bed.ip(0, "addr add 10.0.0.1/24 dev e");
    bed.ip(1, "addr add 10.0.0.2/24 dev e");
    let detail = |host: &str| must(5, "ip", &["-d", "link", "show", host]);
    for _ in 0..3 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--nocapture",
            "--exact",
            "killed_it_leaves_kernel_interfaces_usable",
        ]);
        command.env(VICTIM, format!("{} {b} {c}", bed.name(0)));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while !(detail(&c).contains("xdp") && bed.pings(0, "10.0.0.2", 56)) {
            assert!(Instant::now() < end, "Volley did not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(bed.ip(0, "-o link").contains(" t:") && detail(&b).contains("promiscuity 1"));
        child.kill().unwrap();
        child.wait().unwrap();
        let end = Instant::now() + Duration::from_secs(5);
        while bed.ip(0, "-o link").contains(" t:")
            || detail(&c).contains("xdp")
            || !detail(&b).contains("promiscuity 0")
        {
            assert!(
                Instant::now() < end,
                "something stayed: {}{}",
                detail(&b),
                detail(&c)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let bridge = format!("vc{}", std::process::id() % 100_000);
    must(5, "ip", &["link", "add", &bridge, "type", "bridge"]);
    must(5, "ip", &["link", "set", &bridge, "up"]);
    for port in [&b, &c] {
        must(5, "ip", &["link", "set", port, "master", &bridge]);
    }
    let end = Instant::now() + Duration::from_secs(5);
    while !bed.pings(0, "10.0.0.2", 1472) && Instant::now() < end {}
    let passed = bed.pings(0, "10.0.0.2", 1472);
    must(5, "ip", &["link", "del", &bridge]);
    assert!(passed, "the kernel uses both by itself again");
}
