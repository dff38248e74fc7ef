//! Fragments for the router, against the Linux kernel, which fragments packets and reassembles replies; against scapy
//! (`tests/reassembly/probe.py`), which fragments as no kernel does; and a flood of them.
//!
//! Needs root, `ip`, `ping` and Python, scapy for a part; without them the tests say so and pass.

mod support;

use std::path::Path;
use std::process::Command;
use support::bed::{Bed, counter, has_scapy, must, run};
use support::fragments::{Flood, part, three_workers};
use support::traffic::stream;
use support::{Daemon, oracle, text};

const ROUTER: [&str; 2] = ["10.77.0.1", "2001:db8:77::1"];

#[test]
fn the_kernel_s_long_pings_are_answered() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    let longest = ["65507", "65487"];
    for (to, longest) in ROUTER.into_iter().zip(longest) {
        assert!(bed.pings("a", to, 1, "0.1") == 1);
        for size in ["1473", "3000", "20000", longest] {
            let words = ["-c", "3", "-i", "0.2", "-W", "5", "-s", size, to];
            assert_eq!(bed.pings_with("a", &words), 3, "{size} {to}");
        }
    }
    for (node, cuts) in [
        ("ip4-full-reassembly", "ip4-frag"),
        ("ip6-full-reassembly", "ip6-frag"),
    ] {
        assert_eq!(counter(&daemon, node, "reassembled"), 12, "{node}");
        assert_eq!(counter(&daemon, cuts, "fragmented"), 12, "{cuts}");
        assert_eq!(counter(&daemon, node, "timeout"), 0);
    }
    let shown = daemon.json("show ip6-full-reassembly");
    assert_eq!(shown["timeout"], 60, "{shown}");
    assert_eq!(shown["workers"][0]["buffers"], 0, "{shown}");
}

/// Sends a datagram to a closed port: the kernel reports the error to the sender.
const REFUSED: &str = "import socket,sys
for family,to in ((socket.AF_INET,'10.77.0.1'),(socket.AF_INET6,'2001:db8:77::1')):
    s=socket.socket(family,socket.SOCK_DGRAM); s.settimeout(5); s.connect((to,9))
    s.send(b'x'*9000)
    try: s.recv(1); sys.exit(1)
    except ConnectionRefusedError: print('refused')
";

#[test]
fn a_closed_port_is_told_of_when_the_datagram_came_in_fragments() {
    let Some(bed) = Bed::new() else { return };
    let _daemon = bed.router();
    let python = oracle::python().unwrap();
    let words = [python.to_str().unwrap(), "-c", REFUSED];
    let output = bed.exec("a", 20, &words);
    let message = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(message, "refused\nrefused\n");
}

#[test]
fn scapy_s_fragments_get_what_the_rfcs_say() {
    let Some(bed) = Bed::new() else { return };
    if !has_scapy() {
        println!("SKIP: Python has no scapy");
        return;
    }
    let daemon = bed.router();
    daemon.ok("set ip icmp rate 0 receiver-rate 0");
    daemon.ok("set ip4 reassembly timeout 1");
    daemon.ok("set ip6 reassembly timeout 1");
    for to in ROUTER {
        assert!(bed.pings("a", to, 1, "0.1") == 1);
    }
    let shown = daemon.json("show interface left")["interfaces"][0].clone();
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/reassembly/probe.py");
    let python = oracle::python().unwrap();
    let words = [
        python.to_str().unwrap(),
        probe.to_str().unwrap(),
        "e",
        shown["mac"].as_str().unwrap(),
    ];
    let output = bed.exec("a", 120, &words);
    let message = text(&output.stdout) + &text(&output.stderr);
    assert!(
        output.status.success(),
        "{message}\n{}",
        daemon.ok("show errors")
    );
    assert!(message.contains("checks passed"), "{message}");
}

#[test]
fn a_flood_of_fragments_is_bounded_and_others_go_on() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    daemon.ok("set ip4 reassembly max-reassemblies 500 max-buffers 300");
    assert_eq!(bed.pings("a", "10.78.0.2", 2, "0.1"), 2);
    // A flood of first fragments.
    let flood = Flood::start(&bed, &daemon, "0x2000", [10, 77, 0, 1]);
    // Both IP versions in transit, and long datagrams for the router from the other side.
    for to in ["10.77.0.2", "2001:db8:77::2"] {
        assert!(bed.pings("b", to, 20, "0.1") >= 19, "{to}");
    }
    let words = ["-c", "5", "-i", "0.2", "-W", "3", "-s", "4000", "10.78.0.1"];
    assert!(bed.pings_with("b", &words) > 0);
    let shown = daemon.json("show ip4-full-reassembly");
    for worker in shown["workers"].as_array().unwrap() {
        assert!(worker["buffers"].as_u64().unwrap() <= 300, "{shown}");
        assert!(worker["reassemblies"].as_u64().unwrap() <= 500, "{shown}");
    }
    let sent = flood.sent();
    let node = "ip4-full-reassembly";
    let (came, gone) = (
        counter(&daemon, node, "fragments"),
        counter(&daemon, node, "evicted"),
    );
    println!("{sent} sent, {came} came, {gone} gave way");
    assert!(came > 1000 && gone + 300 >= came - 3 * 5 && gone < came);
}

/// The holders of buffers: each is within its share, and half of the buffers is reserved for forwarding.
fn within_shares(daemon: &Daemon) -> Vec<(String, u64)> {
    let shown = daemon.json("show buffers");
    assert!(shown["reserve"].as_u64().unwrap() >= 512, "{shown}");
    let row = |row: &serde_json::Value| {
        let [limit, held, evicted] = ["limit", "held", "evicted"].map(|f| row[f].as_u64().unwrap());
        assert!(held <= limit, "{shown}");
        (row["name"].as_str().unwrap().to_owned(), evicted)
    };
    shown["holders"]
        .as_array()
        .unwrap()
        .iter()
        .map(row)
        .collect()
}

#[test]
fn fragments_from_anywhere_and_a_scan_leave_half_of_the_buffers_to_forwarding() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router_with("[engine]\nworkers = 2\nbuffers = 1024\n");
    for family in ["ip4", "ip6"] {
        daemon.ok(&format!(
            "set {family} reassembly max-reassemblies 4096 max-buffers 8192 timeout 60"
        ));
        daemon.ok(&format!("set {family} reassembly virtual-timeout 10000"));
    }
    daemon.ok("set interface ip virtual-reassembly left on");
    assert_eq!(bed.pings("b", "10.77.0.2", 2, "0.1"), 2);
    assert_eq!(bed.pings("a", "10.78.0.2", 2, "0.1"), 2);
    // First fragments for the router, later fragments without a first one in transit, and a scan.
    let ours = Flood::start(&bed, &daemon, "0x2000", [10, 77, 0, 1]);
    let transit = Flood::start(&bed, &daemon, "0x2001", [10, 78, 0, 2]);
    let scan = "u=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n\
        for k in range(10000):\n\
        \x20 u.sendto(b'x',('10.78.%d.%d'%(1+k//250,1+k%250),9))\n\
        \x20 if k%5==0: time.sleep(0.002)\n";
    let scan = bed.python("a", scan);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let mut answered = 0;
    for to in ["10.77.0.2", "2001:db8:77::2", "10.77.0.2", "2001:db8:77::2"] {
        answered += bed.pings("b", to, 10, "0.05");
        within_shares(&daemon);
    }
    let shown = daemon.ok("show buffers");
    println!("{answered} of 40 pings were answered, at least 38\n{shown}");
    assert!(
        answered >= 38,
        "{answered} of 40 pings were answered\n{shown}"
    );
    assert!(ours.sent() > 1000 && transit.sent() > 1000);
    assert!(scan.wait_with_output().unwrap().status.success());
    let evicted = within_shares(&daemon);
    for holder in ["ip4-full-reassembly", "ip4-sv-reassembly", "neighbors"] {
        let row = evicted.iter().find(|row| row.0 == holder).unwrap();
        assert!(row.1 > 0, "{holder}: {evicted:?}");
    }
}

/// The two fragments of an echo request.
fn halves(id: u16) -> [Vec<u8>; 2] {
    let mut echo = vec![8, 0, 0, 0, 0, 1, 0, 1];
    echo.extend((0..56).map(|n| n as u8 ^ id as u8));
    let sum = volley_wire::checksum::checksum(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    let flow = (1, [10, 0, 0, 1]);
    [(0, true), (32, false)].map(|(from, more)| part(id, flow, &echo, from, more))
}

#[test]
fn fragments_that_come_by_different_workers_meet() {
    let mut daemon = three_workers();
    daemon.ok("set ip neighbor pg0 10.0.0.2 02:00:00:00:00:01");
    // Workers have handoff rings after an interface uses RSS.
    daemon.ok("create packet-generator interface pg1");
    daemon.ok("set interface state pg1 up");
    daemon.ok("set interface rss pg1 on");
    daemon.wait_for_answer("show rss", "; spread");
    let all: Vec<[Vec<u8>; 2]> = (1..=200).map(halves).collect();
    for half in [0, 1] {
        let packets: Vec<Vec<u8>> = all.iter().map(|it| it[half].clone()).collect();
        stream(&daemon, &format!("half{half}"), half as u32, &packets);
    }
    daemon.ok("packet-generator enable half0");
    daemon.ok("packet-generator enable half1");
    daemon.wait_for("all answers", |d| {
        counter(d, "ip4-icmp-echo-request", "answered") == 200
    });
    let handed = counter(&daemon, "ip4-full-reassembly-handoff", "handed");
    assert!(handed > 100, "{handed}");
    assert_eq!(counter(&daemon, "ip4-full-reassembly", "reassembled"), 200);
    let shown = daemon.json("show ip4-full-reassembly");
    assert_eq!(shown["workers"].as_array().unwrap().len(), 3, "{shown}");
    daemon.stop("TERM");
}

/// Replies to datagrams with their length.
const LISTENER: &str = "import socket
s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); s.setsockopt(socket.IPPROTO_IPV6,socket.IPV6_V6ONLY,0)
s.bind(('::',5005)); s.settimeout(30); print('ready',flush=True)
while True:
    data,who=s.recvfrom(70000); s.sendto(b'%d'%len(data),who)
";
const SENDER: &str = "import socket
for family,to in ((socket.AF_INET,'10.77.0.1'),(socket.AF_INET6,'2001:db8:77::1')):
    s=socket.socket(family,socket.SOCK_DGRAM); s.settimeout(2)
    for size in (3000,30000):
        for _ in range(5): # addresses and neighbours take their time
            s.sendto(b'x'*size,(to,5005))
            try: print(s.recv(100).decode()); break
            except TimeoutError: pass
";

/// A namespace that is deleted on drop.
struct Gone<'a>(&'a str);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let _ = run(10, &["ip", "netns", "del", self.0]);
    }
}

#[test]
fn the_kernel_behind_a_tap_gets_whole_datagrams() {
    let Some(bed) = Bed::new() else { return };
    let (mut daemon, space) = (bed.router(), bed.name("k"));
    must(&format!("ip netns add {space}"));
    let _gone = Gone(&space);
    must(&format!("ip -n {space} link set lo up"));
    daemon.ok(&format!("lcp create left host-if left netns {space}"));
    daemon.wait_for("the mirror", |d| d.ok("lcp audit").contains(" 0 differ"));
    let python = oracle::python().unwrap();
    let mut listener = Command::new("timeout")
        .args(["-k", "1", "40", "ip", "netns", "exec", &space])
        .arg(&python)
        .args(["-c", LISTENER])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(listener.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let output = bed.exec("a", 30, &[python.to_str().unwrap(), "-c", SENDER]);
    let message = text(&output.stdout) + &text(&output.stderr);
    let errors = daemon.ok("show errors");
    assert_eq!(message, "3000\n30000\n3000\n30000\n", "{errors}");
    assert!(counter(&daemon, "ip4-full-reassembly", "reassembled") >= 2);
    let _ = run(5, &["kill", &listener.id().to_string()]);
    let _ = listener.wait();
}
