//! Volley against the Linux kernel: the same router, the same packets, outputs compared byte for byte (`tests/differential`).
//! Every difference must be on `docs/differences-from-linux.md`, and each listed difference must occur.
//!
//! Needs root for a namespace, `ip` and Python; without them the test says so and passes. Captures of the shared data are
//! sampled; with `VOLLEY_FULL_CORPORA` all of their packets are sent. Without the shared data only the packets that are
//! generated here are sent.

mod support;

use std::path::Path;
use support::bed::{Space, run};
use support::replay::shared;
use support::{Daemon, Folder, oracle, text};

/// Runs a command of `differential.py` in a folder; returns its output.
fn differential(before: &[&str], command: &str, folder: &Path) -> (bool, String) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/differential");
    let (python, program) = (oracle::python().unwrap(), program.join("differential.py"));
    let (python, program) = (python.display().to_string(), program.display().to_string());
    let folder = folder.display().to_string();
    let captures = shared("valid").map_or(String::new(), |file| {
        file.parent().unwrap().display().to_string()
    });
    let every = match std::env::var_os("VOLLEY_FULL_CORPORA") {
        Some(_) => "1",
        None => "7",
    };
    let words = [
        before,
        &[&python, "-B", &program, command, &folder],
        &["--captures", &captures, "--every", every],
    ];
    let output = run(300, &words.concat());
    let message = text(&output.stdout) + &text(&output.stderr);
    (output.status.success(), message)
}

/// Sends a burst, and waits until the generator has sent all of it.
fn send(daemon: &mut Daemon, name: &str, line: &str) {
    let [interface, packets, file] = line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{line}");
    };
    // Vectors of one packet: a packet that leaves before the marker behind an input packet was caused by that packet.
    daemon.ok(&format!(
        "packet-generator new name {name} interface {interface} limit {packets} maxframe 1 pcap {file}"
    ));
    daemon.ok(&format!("packet-generator enable {name}"));
    daemon.wait_for("every packet sent", |d| {
        d.json("show packet-generator")["streams"][0]["enabled"] == false
    });
    daemon.ok(&format!("packet-generator delete {name}"));
}

#[test]
fn every_difference_from_the_kernel_is_listed() {
    let (Some(space), Some(_)) = (
        Space::new(format!("vldiff{}", std::process::id())),
        oracle::python(),
    ) else {
        println!("SKIP: it needs root, network namespaces and Python");
        return;
    };
    let work = Folder::new();
    let (made, bursts) = differential(&[], "prepare", &work.0);
    assert!(made, "{bursts}");
    let config = std::fs::read_to_string(work.file("volley.toml")).unwrap();
    let mut daemon = Daemon::start(&config, &[]);
    daemon.ok(&format!(
        "pcap trace drop max 1000000 file {}",
        daemon.folder.file("drops.pcapng").display()
    ));
    for (n, line) in bursts.lines().enumerate() {
        send(&mut daemon, &format!("b{n}"), line);
    }
    // Incomplete datagrams are discarded after a second.
    daemon.wait_for("the end of their time", |d| {
        d.json("show pcap trace")["lost"] == 0
            && support::bed::counter(d, "ip4-full-reassembly", "timeout") > 0
            && support::bed::counter(d, "ip6-full-reassembly", "timeout") > 0
    });
    std::thread::sleep(std::time::Duration::from_millis(1200));
    daemon.stop("TERM");
    let inside = ["ip", "netns", "exec", &space.0];
    let (agree, message) = differential(&inside, "judge", &daemon.folder.0);
    assert!(agree, "{message}");
    println!("{}", message.trim());
}
