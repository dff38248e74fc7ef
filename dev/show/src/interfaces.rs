//! The items of "Real interfaces": the sections `To show` and `Bad input`, in order, then its drivers.

use super::{Item, Sitting, Work, at_least, item, long};
use super::{guest_items, net_items};
use xtask::report::{Fail, Outcome};
use xtask::run::Program;

pub const ITEMS: [Item; 21] = [
    item(
        "demo-net",
        "`volley demo --net`: namespaces joined by each driver, throughput beside the Linux bridge",
        Work::Call(net_items::demo),
    ),
    item(
        "memif-peer",
        "memif against dpdk-testpmd, both roles, sizes, queues",
        Work::Command(&["test", "-p", "volley-memif", "--test", "testpmd"]),
    ),
    item(
        "memif-restarts",
        "memif peers killed under traffic: 3 times here, 20 with VOLLEY_RESTARTS=20",
        Work::Command(&["test", "-p", "volley-memif", "--test", "restart"]),
    ),
    item(
        "vhost-peer",
        "vhost-user and virtio-user against dpdk-testpmd, sizes, queues, killed 20 times",
        Work::Command(&["test", "-p", "volley-vhost", "--test", "testpmd"]),
    ),
    long(
        "vhost-guest",
        "a QEMU guest with Debian's kernel behind a vhost-user socket",
        Work::Command(&[
            "test",
            "-p",
            "volley-vhost",
            "--test",
            "guest",
            "--",
            "--ignored",
        ]),
    ),
    item(
        "memif-hostile",
        "hostile memif peers: no crash, a named reason",
        Work::Command(&["test", "-p", "volley-memif", "--test", "hostile"]),
    ),
    item(
        "vhost-hostile",
        "hostile vhost-user peers: no crash, a named reason",
        Work::Command(&["test", "-p", "volley-vhost", "--test", "hostile"]),
    ),
    long(
        "memif-speed",
        "memif port to port, 64 B, against dpdk-testpmd",
        Work::Call(|sitting| ratios(sitting, "volley-memif", 1.0)),
    ),
    long(
        "vhost-speed",
        "vhost-user port to port, 64 B, against dpdk-testpmd: the worst of its ring formats",
        Work::Call(|sitting| ratios(sitting, "volley-vhost", 1.0)),
    ),
    long(
        "kernel-speed",
        "tap and af_packet against the Linux bridge, 64 B as seen by the receiver: the worse of them",
        Work::Call(|sitting| beside_bridge(sitting, &["AfPacket", "Tap"], "Bridge", 1.0)),
    ),
    long(
        "xdp-speed",
        "AF_XDP against AF_PACKET on veth: 64 B frames of the kernel received, by the worker's cycles",
        Work::Call(|sitting| beside_bridge(sitting, &["LiveXdpNative"], "LiveAfPacket", 2.0)),
    ),
    item(
        "gap",
        "longest gap elsewhere while interfaces come, go and lose peers, at most 1 ms",
        Work::Call(net_items::gap),
    ),
    item(
        "bad-requests",
        "bad input: one clear sentence, nothing half-created",
        Work::Command(&[
            "test",
            "-p",
            "volley-config",
            "-p",
            "volley-cli",
            "-p",
            "volley-model",
        ]),
    ),
    item(
        "crash",
        "a crash of Volley leaves kernel interfaces usable",
        Work::Command(&["test", "-p", "volley-af-xdp", "--test", "crash"]),
    ),
    item(
        "tap",
        "tap and tun between namespaces",
        Work::Command(&["test", "-p", "volley-tap", "--test", "taps"]),
    ),
    item(
        "tap-vhost-net",
        "taps whose packets vhost-net carries, under Debian's kernel in a guest: ping, TCP both ways, queues, sleep, death",
        Work::Call(guest_items::tap_vhost_net),
    ),
    item(
        "af-packet",
        "packet sockets on veth",
        Work::Command(&["test", "-p", "volley-af-packet"]),
    ),
    item(
        "af-xdp",
        "XDP sockets on veth, native and generic",
        Work::Command(&["test", "-p", "volley-af-xdp", "--test", "veth"]),
    ),
    item(
        "dpdk",
        "DPDK ports behind a cargo feature: null, ring, pcap, memif and tap, against our own and dpdk-testpmd",
        Work::Call(|sitting| xtask::ci::dpdk(sitting.home)),
    ),
    item(
        "idle",
        "an idle daemon in adaptive mode: under 3 % of a core, answers within 1 ms",
        Work::Command(&["test", "-p", "volley-graph", "--test", "sleep"]),
    ),
    item(
        "offloads",
        "partial checksums and super-segments finished in software",
        Work::Command(&["test", "-p", "volley-iface", "-p", "volley-ip"]),
    ),
];

/// The output of a crate's measurement against a peer.
fn measured(sitting: &Sitting<'_>, package: &str) -> Result<String, String> {
    let words = [
        "test",
        "--release",
        "-p",
        package,
        "--test",
        "speed",
        "--",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ];
    let run = Program::cargo(sitting.home).args(words).limit_seconds(600);
    run.require().map(|output| output.stdout)
}

/// All ratios that a measurement prints (`ratio N`); the lowest is compared with the bar.
fn ratios(sitting: &Sitting<'_>, package: &str, bar: f64) -> Outcome {
    let result = measured(sitting, package).and_then(|text| {
        let all = ratios_in(&text);
        let lowest = all.iter().copied().fold(f64::INFINITY, f64::min);
        if all.is_empty() {
            return Err("the measurement printed no ratio".into());
        }
        let add = |line: String| format!("{line} (all: {all:?})");
        at_least(lowest, bar, "times").map(add).map_err(add)
    });
    Outcome::of(result)
}

fn ratios_in(text: &str) -> Vec<f64> {
    text.split("ratio ")
        .skip(1)
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            rest[..end.unwrap_or(rest.len())]
                .trim_end_matches('.')
                .parse()
                .ok()
        })
        .collect()
}

/// The lowest of the first figures in the lines of `kinds`, divided by that in the line of `than`.
fn beside_bridge(sitting: &Sitting<'_>, kinds: &[&str], than: &str, bar: f64) -> Outcome {
    let text = match measured(sitting, "volley-af-xdp") {
        Ok(text) => text,
        Err(reason) => return Fail(reason),
    };
    let figure = |kind: &str| first_figure(&text, kind);
    let lowest = kinds
        .iter()
        .map(|k| figure(k))
        .collect::<Option<Vec<f64>>>();
    let (Some(lowest), Some(base)) = (lowest, figure(than)) else {
        return Fail(format!(
            "the measurement has no line for each of {kinds:?} and {than}"
        ));
    };
    let lowest = lowest.into_iter().fold(f64::INFINITY, f64::min);
    Outcome::of(at_least(lowest / base, bar, "times"))
}

fn first_figure(text: &str, kind: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(kind))?;
    line[kind.len()..]
        .split_whitespace()
        .find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_what_measurements_print() {
        assert_eq!(
            ratios_in("split: ratio 1.36\npacked: 2 against 4, ratio 0.5, so\n"),
            [1.36, 0.5]
        );
        assert!(ratios_in("nothing").is_empty());
        assert_eq!(
            first_figure("Bridge   0.2 0.3\nTap  1 2\n", "Tap"),
            Some(1.0)
        );
        assert_eq!(first_figure("Bridge 0.2", "Tap"), None);
    }
}
