//! Kernel interfaces that Volley uses: missing at the start, deleted and created again, moved, with another MTU; and two
//! routers with the same configuration on one LAN.
//!
//! Needs root, `ip` and `ping`; without them the tests say so and pass.

mod support;

use std::time::Duration;
use support::bed::{Bed, counter, interface, mac_of, must, run, wait_for_link, wait_until_up};
use support::{Daemon, Folder, text};

/// A command with the name of a missing device is refused unless it allows the device to be missing.
fn only_a_configuration_waits(daemon: &Daemon, space: &str) {
    let refused = daemon.refused(&format!("create host-interface name lift netns {space}"));
    assert!(
        refused.contains("the kernel has no interface `lift`") && refused.contains("`wait`"),
        "{refused}"
    );
    daemon.ok(&format!(
        "create host-interface name lift netns {space} wait"
    ));
    let shown = daemon.ok("show interfaces");
    assert!(shown.contains("host-lift: waiting for lift"), "{shown}");
    assert!(!daemon.ok("config show").contains("wait"));
    daemon.ok("delete interface host-lift");
}

/// Two interfaces with hosts; commit 1 has left only, commit 2 both and the default route.
fn two_interfaces(bed: &Bed, daemon: &Daemon, space: &str, commit: &dyn Fn(&Daemon)) {
    for (host, end, net) in [("a", "left", 77), ("b", "right", 78)] {
        let create = format!("create host-interface name {end} as {end} netns {space}");
        daemon.ok(&create);
        daemon.ok(&format!("set interface ip address {end} 10.{net}.0.1/16"));
        daemon.ok(&format!(
            "set interface ip6 address {end} 2001:db8:{net}::1/64"
        ));
        daemon.ok(&format!("set interface state {end} up"));
        bed.ip(host, &format!("addr add 10.{net}.0.2/16 dev e"));
        bed.ip(host, &format!("addr add 2001:db8:{net}::2/64 dev e nodad"));
        bed.ip(host, &format!("route add default via 10.{net}.0.1"));
        bed.ip(host, &format!("-6 route add default via 2001:db8:{net}::1"));
        if end == "right" {
            daemon.ok("ip route add 0.0.0.0/0 via 10.78.0.2 right");
        }
        commit(daemon);
    }
}

#[test]
fn a_missing_interface_waits_and_the_last_commit_stays() {
    let Some(bed) = Bed::new() else { return };
    let (space, state) = (bed.name("r"), Folder::new());
    let state = state.0.join("state").display().to_string();
    let start = || Daemon::start("", &["--state-dir", &state]);
    let mut daemon = start();
    let commit = |d: &Daemon| {
        let socket = d.folder.file("s").display().to_string();
        let done = support::volley(&["config", "commit", "--socket", &socket]);
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    only_a_configuration_waits(&daemon, &space);
    two_interfaces(&bed, &daemon, &space, &commit);
    daemon.stop("TERM");
    bed.ip("r", "link del right");

    let mut daemon = start();
    assert!(
        daemon.log().contains("commit 2 is in force"),
        "{}",
        daemon.log()
    );
    let shown = daemon.ok("show interfaces");
    let line = shown.lines().find(|l| l.starts_with("right ")).unwrap();
    assert!(line.contains("waiting"), "{shown}");
    let why = format!("right: waiting for right in namespace {space}\n");
    assert!(shown.contains(&why), "{shown}");
    let written = daemon.ok("config show");
    assert!(
        written.contains("10.78.0.1/16") && written.contains("0.0.0.0/0"),
        "{written}"
    );
    let socket = daemon.folder.file("s").display().to_string();
    let same = support::volley(&["config", "diff", "--socket", &socket]);
    let shown = text(&same.stdout);
    assert!(same.status.success() && !shown.contains("10.78"), "{shown}");
    wait_for_link(&mut daemon, "left", "up");
    assert_eq!(
        bed.pings("a", "10.77.0.1", 3, "0.2"),
        3,
        "the other one works"
    );
    bed.plug_in("b", "right", 78);
    wait_for_link(&mut daemon, "right", "up");
    bed.soon_through("the interface has appeared");
    assert_eq!(interface(&daemon, "right")["waiting"], false);
    let fib = daemon.ok("show ip fib 203.0.113.1");
    assert!(fib.contains("via 10.78.0.2"), "{fib}");
    daemon.stop("TERM");

    // The router also starts without any of the devices.
    bed.ip("r", "link del right");
    bed.ip("r", "link del left");
    let mut daemon = start();
    assert!(
        daemon.log().contains("commit 2 is in force"),
        "{}",
        daemon.log()
    );
    assert!(
        interface(&daemon, "left")["waiting"] == true
            && interface(&daemon, "right")["waiting"] == true
    );
    bed.plug_in("a", "left", 77);
    bed.plug_in("b", "right", 78);
    bed.soon_through("both have appeared");
    daemon.stop("TERM");
}

#[test]
fn a_commit_that_cannot_be_brought_in_force_is_no_reason_for_an_older_one() {
    let (folder, state) = (Folder::new(), Folder::new());
    let state = state.0.join("state").display().to_string();
    let mut daemon = Daemon::start("", &["--state-dir", &state]);
    let file = folder.file("routes.txt");
    std::fs::write(&file, "198.51.100.0/24\n").unwrap();
    let commit = |d: &Daemon| {
        let socket = d.folder.file("s").display().to_string();
        let done = support::volley(&["config", "commit", "--socket", &socket]);
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    daemon.ok("create packet-generator interface pg0");
    commit(&daemon);
    let capture = folder.file("in.pcap");
    daemon.ok(&format!(
        "create pcap interface pcap0 tx {}",
        capture.display()
    ));
    commit(&daemon);
    daemon.stop("TERM");
    // A folder replaces the capture file.
    let _ = std::fs::remove_file(&capture);
    std::fs::create_dir(&capture).unwrap();

    let config = folder.file("empty.toml");
    std::fs::write(&config, "").unwrap();
    let (config, socket) = (
        config.display().to_string(),
        folder.file("s").display().to_string(),
    );
    let run = [
        "run",
        "-c",
        &config,
        "--socket",
        &socket,
        "--state-dir",
        &state,
    ];
    let ended = support::volley(&run);
    let message = text(&ended.stderr);
    assert!(!ended.status.success(), "{message}");
    let last = message.trim_end().lines().last().unwrap_or_default();
    assert!(
        last.contains("commit 2 cannot be applied")
            && last.contains("start with `volley run --fallback` to apply commit 1 instead"),
        "{message}"
    );
    let daemon = Daemon::start("", &["--state-dir", &state, "--fallback"]);
    assert!(
        daemon
            .log()
            .contains("warn  config: commit 1 is in force, NOT commit 2"),
        "{}",
        daemon.log()
    );
    assert!(daemon.ok("show interfaces").contains("pg0"));
    drop(daemon);
    // A commit whose file is damaged is not skipped either.
    let active = format!("{state}/commit-00000002");
    std::fs::write(&active, "x").unwrap();
    let ended = support::volley(&run);
    let message = text(&ended.stderr);
    assert!(
        !ended.status.success()
            && message.contains("commit 2 cannot be applied")
            && message.contains("is damaged"),
        "{message}"
    );
}

/// Deletes and recreates the kernel's interface, and moves it away and back, under traffic.
fn comes_and_goes(kind: &str) {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = Daemon::start("", &[]);
    let space = bed.name("r");
    for (host, end, net) in [("a", "left", 77), ("b", "right", 78)] {
        let create = match kind {
            "af_xdp" => format!("create interface af_xdp host-if {end} name {end} netns {space}"),
            _ => format!("create host-interface name {end} as {end} netns {space} num-rx-queues 2"),
        };
        daemon.ok(&create);
        daemon.ok(&format!("set interface ip address {end} 10.{net}.0.1/16"));
        daemon.ok(&format!(
            "set interface ip6 address {end} 2001:db8:{net}::1/64"
        ));
        daemon.ok(&format!("set interface state {end} up"));
        bed.ip(host, &format!("addr add 10.{net}.0.2/16 dev e"));
        bed.ip(host, &format!("addr add 2001:db8:{net}::2/64 dev e nodad"));
        bed.ip(host, &format!("route add default via 10.{net}.0.1"));
        bed.ip(host, &format!("-6 route add default via 2001:db8:{net}::1"));
    }
    wait_for_link(&mut daemon, "left", "up");
    wait_for_link(&mut daemon, "right", "up");
    daemon.ok("ip route add 198.51.100.0/24 via 10.78.0.2 right");
    bed.soon_through("at the start");
    let _flood = Flood::start(&bed.name("b"), "10.77.0.2");
    for round in 0..5 {
        bed.ip("r", "link del left");
        wait_for_link(&mut daemon, "left", "down");
        let it = interface(&daemon, "left");
        assert!(
            it["waiting"] == true && it["addresses"].as_array().unwrap().len() == 2,
            "{it}"
        );
        bed.plug_in("a", "left", 77);
        wait_for_link(&mut daemon, "left", "up");
        bed.soon_through(&format!("{kind}, made again, round {round}"));
        let mac = interface(&daemon, "left")["mac"].clone();
        let kernel = bed.ip("r", "-o link show left");
        assert!(kernel.contains(mac.as_str().unwrap()), "{mac}: {kernel}");
    }
    // Away and back at once: its index may be the same, but sockets on it no longer work.
    for round in 0..3 {
        let other = bed.name("b");
        bed.ip("r", &format!("link set left netns {other}"));
        if round == 1 {
            wait_for_link(&mut daemon, "left", "down");
        }
        bed.ip("b", &format!("link set left netns {space}"));
        bed.soon_through(&format!("{kind}, moved, round {round}"));
    }
    let fib = daemon.ok("show ip fib 198.51.100.1");
    assert!(fib.contains("via 10.78.0.2"), "{fib}");
    daemon.stop("TERM");
}

#[test]
fn a_packet_socket_comes_and_goes_with_its_interface() {
    comes_and_goes("host-interface");
}

#[test]
fn an_xdp_socket_comes_and_goes_with_its_interface() {
    comes_and_goes("af_xdp");
}

/// The output of ping for a packet with DF.
fn uncut(bed: &Bed, to: &str, size: u32) -> String {
    let size = size.to_string();
    let words = [
        "ping", "-n", "-M", "do", "-c", "2", "-i", "0.3", "-W", "1", "-s", &size, to,
    ];
    let out = bed.exec("a", 10, &words);
    text(&out.stdout) + &text(&out.stderr)
}

#[test]
fn the_path_mtu_is_that_of_the_kernels_interface() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    bed.soon_through("at the start");
    let mtu = |d: &Daemon| interface(d, "right")["mtu"].as_u64().unwrap();
    let kernel = |mtu: u32| {
        let link = bed.ip("r", "-o link show right");
        assert!(link.contains(&format!(" mtu {mtu} ")), "{link}");
    };
    assert_eq!(mtu(&daemon), 1500);
    // The MTU is set in the kernel, too.
    daemon.ok("set interface mtu 9000 right");
    assert_eq!(mtu(&daemon), 9000);
    kernel(9000);
    // The kernel's MTU decreases: Volley follows, and sends ICMP errors for larger packets.
    bed.ip("r", "link set right mtu 1400");
    daemon.wait_for("1400", |d| mtu(d) == 1400);
    let shown = daemon.ok("show interfaces right");
    assert!(
        shown.contains(
            "right: effective MTU 1400: 9000 is configured, the kernel's interface has 1400"
        ),
        "{shown}"
    );
    let message = uncut(&bed, "10.78.0.2", 1400);
    assert!(
        message.contains("mtu = 1400") || message.contains("mtu=1400"),
        "{message}"
    );
    assert!(uncut(&bed, "10.78.0.2", 1372).contains(" 0% packet loss"));
    let message = uncut(&bed, "2001:db8:78::2", 1400);
    assert!(
        message.contains("mtu = 1400") || message.contains("mtu=1400"),
        "{message}"
    );
    // The MTU increases again.
    bed.ip("r", "link set right mtu 1500");
    daemon.wait_for("1500", |d| mtu(d) == 1500);
    bed.ip("a", "route flush cache");
    bed.ip("a", "-6 route flush cache");
    for (to, size) in [("10.78.0.2", 1472), ("2001:db8:78::2", 1452)] {
        let message = uncut(&bed, to, size);
        assert!(message.contains(" 0% packet loss"), "{message}");
    }
    daemon.ok("set interface mtu 1500 right");
    kernel(1500);
    let shown = daemon.ok("show interfaces right");
    assert!(!shown.contains("effective"), "{shown}");
    // A tap belongs to Volley, but other programs may change the kernel's end.
    daemon.ok(&format!("create tap name tap7 host-ns {}", bed.name("r")));
    daemon.ok("set interface mtu 3000 tap7");
    let link = bed.ip("r", "-o link show tap7");
    assert!(link.contains(" mtu 3000 "), "{link}");
    bed.ip("r", "link set tap7 mtu 1300");
    daemon.wait_for("the tap's", |d| interface(d, "tap7")["mtu"] == 1300);
    bed.ip("r", "link set tap7 mtu 4000");
    daemon.wait_for("the tap's", |d| interface(d, "tap7")["mtu"] == 3000);
}

#[test]
fn packets_of_a_tun_are_for_its_interface_whichever_mac_address_it_has() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = (Daemon::start("", &[]), bed.name("r"));
    daemon.ok(&format!(
        "create tap name tun7 tun host-ns {space} host-ip4-addr 10.79.0.2/24"
    ));
    daemon.ok("set ip neighbor tun7 10.79.0.2 02:00:00:00:00:44");
    daemon.ok("set interface ip address tun7 10.79.0.1/24");
    daemon.ok("set interface state tun7 up");
    let answers = |when: &str| assert_eq!(bed.pings("r", "10.79.0.1", 3, "0.1"), 3, "{when}");
    answers("generated");
    daemon.ok("set interface mac address tun7 02:00:00:00:00:79");
    answers("configured");
    daemon.ok("set interface mac address tun7 default");
    answers("generated again");
    assert_eq!(counter(&daemon, "ethernet-input", "not-my-mac"), 0);
}

/// A LAN: the cables of hosts and routers end in namespace `r`, where Volley bridges `ports`.
fn switch(bed: &Bed, ports: &[&str]) -> Daemon {
    let mut daemon = Daemon::start("", &[]);
    let space = bed.name("r");
    daemon.ok("create bridge-domain 1");
    for port in ports {
        daemon.ok(&format!(
            "create host-interface name {port} as {port} netns {space}"
        ));
        daemon.ok(&format!("set interface l2 bridge {port} 1"));
        daemon.ok(&format!("set interface state {port} up"));
    }
    for port in ports {
        wait_for_link(&mut daemon, port, "up");
    }
    daemon
}

/// A router with an interface `lan` of this type on the LAN.
fn router(create: &str, address: u8, more: &[&str]) -> Daemon {
    let mut daemon = Daemon::start("", more);
    daemon.ok(create);
    daemon.ok(&format!(
        "set interface ip address lan 10.77.0.{address}/24"
    ));
    daemon.ok(&format!(
        "set interface ip6 address lan 2001:db8:77::{address}/64"
    ));
    daemon.ok("set interface state lan up");
    wait_for_link(&mut daemon, "lan", "up");
    daemon
}

fn mac(daemon: &Daemon) -> String {
    interface(daemon, "lan")["mac"].as_str().unwrap().to_owned()
}

/// The link-local address of the router.
fn local(daemon: &Daemon) -> String {
    let shown = daemon.json("show ip6 nd lan");
    let address = shown["interfaces"][0]["link_local"].as_str();
    address.unwrap().to_owned()
}

/// Checks that two routers and host a of their LAN reach each other by every address, without loss.
fn all_reach_each_other(bed: &Bed, first: &Daemon, second: &Daemon) {
    for (from, other) in [(first, 2), (second, 1)] {
        for to in [format!("10.77.0.{other}"), format!("2001:db8:77::{other}")] {
            let reported = from.json(&format!("ping {to} repeat 20 interval 50"));
            assert_eq!(
                (&reported["sent"], &reported["received"]),
                (&20.into(), &20.into())
            );
        }
    }
    for router in [first, second] {
        let to = format!("{}%e", local(router));
        let answered = bed.pings("a", &to, 20, "0.05");
        assert_eq!(answered, 20, "{to}");
    }
}

#[test]
fn two_routers_of_the_same_configuration_have_their_own_addresses() {
    let Some(bed) = Bed::new() else { return };
    let states = [Folder::new(), Folder::new()];
    let start = |at: usize| {
        let state = states[at].0.join("state").display().to_string();
        let space = bed.name(["a", "b"][at]);
        let create = format!("create tap name lan host-if-name tap host-ns {space}");
        router(&create, 1, &["--state-dir", &state])
    };
    let (first, second) = (start(0), start(1));
    let (m1, m2) = (mac(&first), mac(&second));
    assert!(
        m1 != m2 && m1.starts_with("02:") && m2.starts_with("02:"),
        "{m1} {m2}"
    );
    let (l1, l2) = (local(&first), local(&second));
    assert!(l1 != l2 && l1.starts_with("fe80:"), "{l1} {l2}");
    drop(first);
    let first = start(0);
    assert_eq!((mac(&first), local(&first)), (m1, l1), "a restart keeps it");
    assert!(!first.log().contains("no state directory"));
    drop((first, second));
    let seeded = |seed: u32| {
        let config =
            format!("[engine]\nseed = {seed}\n[[interface]]\nname = \"lan\"\nkind = \"pg\"\n");
        mac(&Daemon::start(&config, &[]))
    };
    assert_eq!(seeded(7), seeded(7), "a run with a seed repeats");
    assert_ne!(seeded(7), seeded(8));
}

#[test]
fn two_routers_share_a_lan_and_a_tap_is_noticed() {
    let Some(bed) = Bed::new() else { return };
    let space = bed.name("r");
    // Two more cables into the LAN, whose other ends the routers use.
    let (one, two) = (bed.name("b"), format!("{}2", bed.name("r")));
    must(&format!("ip netns add {two}"));
    let _gone = Gone(two.clone());
    must(&format!(
        "ip -n {space} link add p2 type veth peer name e netns {two}"
    ));
    must(&format!("ip -n {space} link set p2 up"));
    for (at, name) in [(&one, "e"), (&two, "e")] {
        must(&format!("ip -n {at} link set {name} up"));
    }
    wait_until_up(&format!("-n {space}"), "p2");
    let lan = switch(&bed, &["left", "right", "p2"]);
    let create = |place: &str| format!("create host-interface name e as lan netns {place}");
    let (first, mut second) = (router(&create(&one), 1, &[]), router(&create(&two), 2, &[]));
    assert_eq!(mac(&first), mac_of(&bed, "b"), "that of the kernel");
    assert_ne!(mac(&first), mac(&second));
    bed.ip("a", "addr add 10.77.0.9/24 dev e");
    bed.ip("a", "addr add 2001:db8:77::9/64 dev e nodad");
    let reach = |to: &str| bed.pings("a", to, 20, "0.05");
    for to in ["10.77.0.1", "10.77.0.2", "2001:db8:77::1", "2001:db8:77::2"] {
        assert!(reach(to) >= 19, "{to}");
        assert_eq!(reach(to), 20, "{to}");
    }
    all_reach_each_other(&bed, &first, &second);
    let seen = |d: &Daemon| counter(d, "arp-input", "own-mac") + counter(d, "nd-input", "own-mac");
    assert_eq!(seen(&first) + seen(&second), 0);
    // The second router has the MAC address of the first.
    let tap = mac(&first);
    second.ok(&format!("set interface mac address lan {tap}"));
    // Each of them receives the solicitations of the other.
    first.ok("ping 10.77.0.77 repeat 1");
    second.wait_for("the twin noticed", |d| seen(d) > 0);
    let warning = format!("lan: frames come in with the interface's own MAC address {tap}");
    second.wait_for("the warning", |d| d.log().contains(&warning));
    let before = second.log().matches(&warning).count();
    first.ok("ping 10.77.0.78 repeat 1");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(
        (before, second.log().matches(&warning).count()),
        (1, 1),
        "once a minute"
    );
    assert!(second.ok("show interfaces detail").contains("own-mac"));
    drop(lan);
}

/// A ping without an end, except for that of `-w`.
struct Flood(std::process::Child);

impl Flood {
    fn start(space: &str, to: &str) -> Flood {
        let mut command = std::process::Command::new("ip");
        // `ip netns exec` replaces itself by the program that it starts.
        command.args([
            "netns", "exec", space, "ping", "-q", "-i", "0.005", "-w", "60", to,
        ]);
        let quiet = std::process::Stdio::null;
        Flood(command.stdout(quiet()).stderr(quiet()).spawn().unwrap())
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A namespace that is deleted on drop.
struct Gone(String);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = run(10, &["ip", "netns", "del", &self.0]);
    }
}
