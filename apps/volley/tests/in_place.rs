//! Settings of a running router, committed one at a time and rolled back: no ping is lost, unless the difference marks an
//! interface that is created again. An ordinary user in group `volley` types every command.
//!
//! Needs root, `ip` and `ping`; without them the tests say so and pass.

mod support;

use std::time::{Duration, Instant};
use support::bed::Bed;
use support::pinging::{Pinged, Pinging, now};
use support::users::Users;
use support::{Daemon, Folder};

/// Commands that set something of a router between the hosts a and b, and must not interrupt their traffic.
const SETTINGS: [&str; 22] = [
    "set interface mtu 1400 left",
    "set interface mtu 9000 right",
    "set interface promiscuous on left",
    "set interface rx-mode right polling",
    "set interface rx-mode left interrupt",
    "set interface ip address left 192.0.2.1/24",
    "set interface ip6 address right 2001:db8:99::1/64",
    "ip route add 198.51.100.0/24 via 10.78.0.2 right",
    "ip route add 2001:db8:100::/48 via 2001:db8:77::2 left",
    "ip route add 203.0.113.0/24 drop",
    "set ip neighbor left 10.77.0.9 02:00:00:00:00:09",
    "ip table add 9",
    "ip6 table add 9",
    "create packet-generator interface pg9",
    "create bridge-domain 9",
    "set interface ip redirects right on",
    "set interface ip virtual-reassembly left on",
    "set interface ip directed-broadcast right on",
    "set urpf ip4 loose left",
    "set ip multipath resilient buckets 64",
    "set node worker ip4-lookup 0",
    "set interface mac address right 02:00:00:00:00:78",
];

/// How long after a marked interruption pings may still be lost.
const AFTER: Duration = Duration::from_millis(1500);

/// The router of [`Bed::router`] with a state directory and its first commit, for a user of group `volley`; none if the test is
/// not root.
fn committed(bed: &Bed) -> Option<(Daemon, Users, Folder)> {
    let (users, folder) = (Users::new()?, Folder::new());
    let state = folder.file("state").display().to_string();
    let daemon = bed.router_of(users.daemon_of_the_group("", &["--state-dir", &state]));
    daemon.ok("config commit");
    let end = Instant::now() + Duration::from_secs(20);
    while bed.pings("a", "10.78.0.2", 3, "0.1") + bed.pings("a", "2001:db8:78::2", 3, "0.1") < 6 {
        assert!(Instant::now() < end, "a does not reach b");
    }
    Some((daemon, users, folder))
}

/// The number of settings that are tested.
const TRIED: usize = 200;

/// Each setting once, then more settings in the order of a fixed sequence (Knuth's linear congruential generator).
fn tried() -> impl Iterator<Item = &'static str> {
    let next = |rng: &u64| {
        let product = rng.wrapping_mul(6_364_136_223_846_793_005);
        Some(product.wrapping_add(1_442_695_040_888_963_407))
    };
    let rng = std::iter::successors(Some(0x2026_1125), next);
    let more = rng.map(|rng: u64| SETTINGS[(rng >> 33) as usize % SETTINGS.len()]);
    SETTINGS.into_iter().chain(more).take(TRIED)
}

#[test]
fn a_setting_and_its_rollback_interrupt_no_ping_unless_the_difference_says_so() {
    let Some(bed) = Bed::new() else { return };
    let Some((daemon, _users, _folder)) = committed(&bed) else {
        return;
    };
    let index =
        |end: &str| daemon.json(&format!("show interface {end}"))["interfaces"][0]["index"].clone();
    let were = [index("left"), index("right")];
    let pings = ["10.78.0.2", "2001:db8:78::2"].map(|to| Pinging::start(&bed, to, "0.02"));
    let mut interrupted: Vec<(f64, f64)> = Vec::new();
    let mut steps: Vec<(f64, &str)> = Vec::new();
    for (n, setting) in tried().enumerate() {
        steps.push((now(), setting));
        let mut begun = now();
        daemon.ok(setting);
        let marked = daemon.ok("config diff").contains("meanwhile");
        daemon.ok("config commit");
        if !marked {
            begun = now();
        }
        // Each setting makes two commits: one with the setting, and one of the rollback.
        let rolled = daemon.ok(&format!("config rollback {}", 2 * n + 1));
        assert_eq!(
            daemon.ok("config diff").trim(),
            "no difference",
            "after {setting}"
        );
        if marked || rolled.contains("meanwhile") {
            interrupted.push((begun, now() + AFTER.as_secs_f64()));
        }
    }
    let ended = now();
    for (ping, family) in pings.into_iter().zip(["IPv4", "IPv6"]) {
        let Pinged { missed, answered } = ping.stop();
        assert!(answered > 100, "{family}: {answered} answers");
        let silent =
            |at: &&f64| **at < ended && !interrupted.iter().any(|(a, b)| (*a..*b).contains(*at));
        let lost: Vec<&f64> = missed.iter().filter(silent).collect();
        let during = |at: &f64| {
            steps
                .iter()
                .rev()
                .find(|step| step.0 < *at)
                .map(|step| step.1)
        };
        let during: Vec<_> = lost.iter().map(|at| during(at)).collect();
        assert!(
            lost.is_empty(),
            "{family}: lost {during:?}\n{}",
            daemon.ok("show errors")
        );
        println!(
            "{family}: {answered} answers, {} missed where the difference marked it",
            missed.len()
        );
    }
    assert_eq!(
        [index("left"), index("right")],
        were,
        "no interface was created again"
    );
}

#[test]
fn the_difference_marks_what_is_created_again() {
    let folder = Folder::new();
    let state = folder.file("state").display().to_string();
    let daemon = Daemon::start("", &["--state-dir", &state]);
    daemon.ok("create packet-generator interface pg0");
    daemon.ok("create memif socket id 1 filename /run/volley-no-such.sock");
    daemon.ok("set interface mac address pg0 02:00:00:00:00:07");
    daemon.ok("set interface mtu 1400 pg0");
    daemon.ok("config commit");
    let row = || daemon.json("show interface pg0")["interfaces"][0].clone();
    assert_eq!(
        (&row()["mac"], &row()["mtu"]),
        (&"02:00:00:00:00:07".into(), &1400.into())
    );
    // The defaults of the interface type apply again, and the interface is the same one.
    let index = row()["index"].clone();
    daemon.ok("set interface mac address pg0 default");
    daemon.ok("set interface mtu default pg0");
    assert_eq!((&row()["mtu"], &row()["index"]), (&9000.into(), &index));
    assert!(
        row()["mac"].as_str().unwrap().starts_with("02:fe:"),
        "{}",
        row()
    );
    let difference = daemon.ok("config diff");
    let marks: Vec<&str> = difference.lines().filter(|l| l.starts_with('!')).collect();
    let [mark] = &marks[..] else {
        panic!("{difference}")
    };
    assert!(
        mark.contains("the MAC address of pg0 changes") && difference.contains("mtu 1400"),
        "{difference}"
    );
    // A table cannot be changed while it contains addresses.
    let file = folder.file("c.toml");
    let content = daemon.ok("config export toml");
    std::fs::write(&file, content.replace("kind = \"pg\"", "kind = \"memif\"")).unwrap();
    let difference = daemon.ok(&format!("config diff {}", file.display()));
    let mark = "! interface pg0 is deleted and created again: its traffic stops meanwhile";
    assert!(difference.contains(mark), "{difference}");
    let done = daemon.ok(&format!("config commit file {}", file.display()));
    assert!(done.contains(&mark[2..]), "{done}");
}
