//! Captures onto a file system that fills up: counts, reason and exit statuses are correct, and the file ends after a complete
//! record. Needs root, for a small tmpfs in a separate mount namespace.

mod support;

use std::process::Command;
use support::{Daemon, Folder};
use volley_pcap::read_packets;

/// Packets that are sent; a tmpfs of [`ROOM`] has space for a fraction of them.
const PACKETS: usize = 2000;
const ROOM: &str = "256k";

const CONFIG: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
mac = "02:fe:00:00:00:01"
addresses = ["192.0.2.1/24"]

[[interface]]
name = "pg1"
kind = "pg"
addresses = ["198.51.100.1/24"]

[[neighbor]]
interface = "pg1"
address = "198.51.100.2"
mac = "02:aa:00:00:00:02"
"#;

/// A daemon with a small tmpfs at this folder; none without the right to mount one.
fn daemon(small: &Folder) -> Option<Daemon> {
    let mount = format!("mount -t tmpfs -o size={ROOM} none {}", small.0.display());
    let may = Command::new("unshare")
        .args(["-m", "sh", "-c", &mount])
        .output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIP: no right to mount a tmpfs in a namespace of its own");
        return None;
    }
    let program = env!("CARGO_BIN_EXE_volley");
    let script = format!("{mount} && exec {program} \"$@\"");
    let wrapped = ["unshare", "-m", "sh", "-c", &script, "sh"];
    Some(Daemon::start_by(&wrapped, CONFIG, &[], &[]))
}

/// The packets of a file that exists only in the daemon's mount namespace.
fn packets(daemon: &Daemon, file: &str) -> usize {
    let seen = format!("/proc/{}/root{file}", daemon.pid());
    read_packets(seen).unwrap().packets.len()
}

fn send(daemon: &mut Daemon) {
    daemon.ok(&format!(
        "packet-generator new name s interface pg0 limit {PACKETS} rate 20000 template {{ eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 198.51.100.2 / udp / payload 900 }}"
    ));
    daemon.ok("packet-generator enable");
    daemon.wait_for("all packets", |d| {
        let stream = &d.json("show packet-generator")["streams"][0];
        stream["sent"] == PACKETS && stream["enabled"] == false
    });
}

/// "N packets in the file and M lost" of an error.
fn counts(error: &str) -> (usize, usize) {
    let number = |before: &str| {
        let rest = error.split_once(before).unwrap().1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    (number("ended early, with "), number("in the file and "))
}

#[test]
fn a_capture_of_interfaces_says_what_is_in_the_file_and_why() {
    let small = Folder::new();
    let Some(mut daemon) = daemon(&small) else {
        return;
    };
    let file = small.file("c.pcapng").display().to_string();
    daemon.ok(&format!("pcap trace rx max 100000 intfc pg0 file {file}"));
    send(&mut daemon);
    daemon.wait_for_answer("pcap trace status", "stopped");
    let status = daemon.ok("pcap trace status");
    let kept = packets(&daemon, &file);
    assert!(kept > 50 && kept < PACKETS / 2, "{kept}");
    assert!(
        status.contains(&format!("stopped, {kept} packets written"))
            && status.contains("no space left on device (ENOSPC)"),
        "{status}"
    );
    // The daemon logs the failure without a request.
    let log = daemon.log();
    assert!(log.contains(&file) && log.contains("ENOSPC"), "{log}");
    let error = daemon.refused("pcap trace off");
    assert!(error.contains("ENOSPC") && error.contains(&file), "{error}");
    let (in_file, lost) = counts(&error);
    assert_eq!(in_file, kept, "{error}");
    // The capture ended while packets still came: it counts those up to its end.
    assert!(lost > 0 && lost <= PACKETS - kept, "{error}");
    // The failure is reported once; after that there is no capture to end.
    daemon.ok("pcap trace off");
}

#[test]
fn a_capture_of_the_generator_does_too() {
    let small = Folder::new();
    let Some(mut daemon) = daemon(&small) else {
        return;
    };
    let file = small.file("g.pcap").display().to_string();
    daemon.ok(&format!("packet-generator capture pg1 pcap {file}"));
    send(&mut daemon);
    let error = daemon.refused("packet-generator capture pg1 disable");
    assert!(error.contains("ENOSPC"), "{error}");
    let kept = packets(&daemon, &file);
    assert!(kept > 50 && kept < PACKETS / 2, "{kept}");
    assert_eq!(counts(&error), (kept, PACKETS - kept), "{error}");
}
