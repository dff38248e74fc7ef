//! Features that are off by default, against kernel hosts: uRPF, directed broadcast, redirects, resilient routes.
//!
//! Needs root, `ip`, `ping` and Python for the hosts; without them the tests say so and pass.

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};
use support::bed::{Bed, counter, has_scapy, resident_kib};
use support::traffic::{run_out, ways};
use support::{Daemon, text};

/// Sends packets `ip...` into pg0, and waits until all are sent.
fn send(daemon: &mut Daemon, name: &str, count: u32, more: &str, packet: &str) {
    daemon.ok(&format!(
        "packet-generator new name {name} interface pg0 limit {count} {more} template {{ eth dst 02:fe:00:00:00:00 / {packet} }}"
    ));
    run_out(daemon, name, count);
}

#[test]
fn a_sub_interface_checks_its_sources_and_tells_who_failed() {
    let mut daemon = Daemon::start("", &[]);
    for line in [
        "create packet-generator interface pg0 mac 02:fe:00:00:00:00",
        "create packet-generator interface pg1",
        "create sub-interfaces pg0 100",
        "set interface state pg0 up",
        "set interface state pg1 up",
        "set interface state pg0.100 up",
        "set interface ip address pg0.100 192.0.2.1/24",
        "set interface ip address pg0 198.51.100.1/24",
        "ip route add 0.0.0.0/0 via pg1",
        "set urpf ip4 rx strict pg0.100",
    ] {
        daemon.ok(line);
    }
    let features = daemon.ok("show interface features pg0.100");
    assert!(features.contains("ip4-rx-urpf-strict"), "{features}");
    daemon.ok("trace add pg-input 20");
    let tagged = |source: &str| format!("vlan id 100 / ip4 src {source} dst 203.0.113.1 / udp");
    send(&mut daemon, "good", 3, "", &tagged("192.0.2.9"));
    send(&mut daemon, "elsewhere", 4, "", &tagged("203.0.113.9"));
    let untagged = "ip4 src 203.0.113.9 dst 203.0.113.1 / udp";
    send(&mut daemon, "plain", 5, "", untagged);
    let strict = |d: &Daemon, reason| counter(d, "ip4-rx-urpf-strict", reason);
    assert_eq!(strict(&daemon, "urpf-other-interface"), 4);
    assert_eq!(strict(&daemon, "urpf-no-route"), 0);
    let trace = daemon.ok("show trace");
    assert!(trace.contains("ip4-rx-urpf-strict"), "{trace}");
    assert!(trace.contains("urpf-other-interface"), "{trace}");
    // Loose mode accepts any source with a route, except for routes that drop.
    daemon.ok("set urpf ip4 rx loose pg0.100");
    daemon.ok("ip route add 203.0.114.0/24 via drop");
    send(&mut daemon, "loose", 6, "", &tagged("203.0.113.9"));
    send(&mut daemon, "nowhere", 7, "", &tagged("203.0.114.9"));
    assert_eq!(counter(&daemon, "ip4-rx-urpf-loose", "urpf-no-route"), 7);
    assert_eq!(strict(&daemon, "urpf-other-interface"), 4);
    daemon.ok("set urpf ip4 rx off pg0.100");
    let features = daemon.ok("show interface features pg0.100");
    assert!(!features.contains("pg0.100"), "{features}");
    daemon.refused("set interface feature pg0 ip4-rx-urpf-strict arc ip4-unicast");
}

/// Waits for a condition, for packets in flight.
fn until(what: &str, ready: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !ready() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program in a namespace that records frames from now on, and its output.
struct Witness(BufReader<ChildStdout>, Child);

impl Witness {
    fn new(bed: &Bed, at: &str, program: &str) -> Witness {
        let mut child = bed.python(at, program);
        let mut message = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        message.read_line(&mut first).unwrap();
        assert_eq!(first.trim(), "ready");
        Witness(message, child)
    }

    fn message(mut self) -> String {
        let mut all = String::new();
        self.0.read_to_string(&mut all).unwrap();
        self.1.wait().unwrap();
        all
    }
}

/// Prints destination MAC address and TTL of each UDP packet to port 4321.
const LISTEN: &str = "
print('ready',flush=True)
end=time.time()+SECONDS
s.settimeout(0.2)
while time.time()<end:
    try: p=s.recv(2000)
    except TimeoutError: continue
    if p[12:14]==b'\\x08\\0' and p[23]==17 and p[36:38]==struct.pack('>H',4321): print(p[:6].hex(),p[22],flush=True)
";

#[test]
fn directed_broadcasts_reach_all_hosts_where_that_is_asked_for_and_only_from_elsewhere() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    assert_eq!(bed.pings("a", "10.78.0.2", 2, "0.05"), 2);
    let shout = |at: &str, count: u32| {
        let program = format!(
            "import socket;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.setsockopt(1,6,1)\nfor _ in range({count}): s.sendto(b'all',('10.78.255.255',4321))"
        );
        let done = bed.exec(at, 10, &["python3", "-c", &program]);
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    let dropped = |d: &Daemon| counter(d, "ip4-lookup", "subnet-broadcast");
    shout("a", 5);
    until("the default drops", || dropped(&daemon) >= 5);
    daemon.ok("set interface ip directed-broadcast right enable");
    let listener = Witness::new(&bed, "b", &LISTEN.replace("SECONDS", "4"));
    shout("a", 7);
    let seen = listener.message();
    assert_eq!(seen.lines().collect::<Vec<_>>(), ["ffffffffffff 63"; 7]);
    assert_eq!(dropped(&daemon), 5);
    let fib = daemon.ok("show ip fib 10.78.255.255");
    assert!(fib.contains("broadcast"), "{fib}");
    daemon.ok("set interface ip directed-broadcast right disable");
    shout("a", 3);
    until("off again", || dropped(&daemon) >= 8);
}

/// The link-local address that derives from the MAC address of an interface.
fn link_local(daemon: &Daemon, name: &str) -> String {
    let all = daemon.json(&format!("show interface {name}"));
    let mac = all["interfaces"][0]["mac"].as_str().unwrap().to_owned();
    let octets = mac.split(':').map(|b| u16::from_str_radix(b, 16).unwrap());
    let m: Vec<u16> = octets.collect();
    format!(
        "fe80::{:x}:{:x}:{:x}:{:x}",
        (m[0] ^ 2) << 8 | m[1],
        m[2] << 8 | 0xff,
        0xfe00 | m[3],
        m[4] << 8 | m[5]
    )
}

/// Parses with scapy the first redirect of each version that host a receives.
const JUDGE: &str = "
print('ready',flush=True)
from scapy.all import Ether,IP,IPv6,ICMP,ICMPv6ND_Redirect,ICMPv6NDOptRedirectedHdr,ICMPv6NDOptDstLLAddr,raw
end=time.time()+SECONDS
s.settimeout(0.2)
seen=set()
while time.time()<end and len(seen)<4:
    try: p=Ether(s.recv(3000))
    except TimeoutError: continue
    if ICMP in p and p[ICMP].type==5 and 4 not in seen:
        seen.add(4)
        inner=p[ICMP].payload
        ok=IP(raw(p[IP])); had=ok.chksum,ok[ICMP].chksum; del ok.chksum; del ok[ICMP].chksum
        again=IP(raw(ok)); right=had==(again.chksum,again[ICMP].chksum)
        print('four',p[ICMP].code,p[ICMP].gw,p[IP].src,p[IP].dst,inner.dst,right,flush=True)
    if ICMPv6ND_Redirect in p and 6 not in seen:
        seen.add(6)
        r=p[ICMPv6ND_Redirect]
        had=r.cksum; again=IPv6(raw(p[IPv6])); del again[ICMPv6ND_Redirect].cksum
        right=IPv6(raw(again))[ICMPv6ND_Redirect].cksum==had
        print('six',r.code,r.tgt,r.dst,p[IPv6].src,p[IPv6].dst,p[IPv6].hlim,r[ICMPv6NDOptDstLLAddr].lladdr,r[ICMPv6NDOptRedirectedHdr].len*8<=1200,right,flush=True)
    if p.dst=='02:00:00:00:00:33':
        key='fwd'+str(p.version if hasattr(p,'version') else p.type)
        if key not in seen: seen.add(key); print(key,flush=True)
";

/// Adds routes by another router on host a's link, and lets the host accept redirects. Returns the router's link-local address
/// there.
fn better_way(bed: &Bed, daemon: &Daemon) -> String {
    let local = link_local(daemon, "left");
    for line in [
        "set ip neighbor left 10.77.0.3 02:00:00:00:00:33",
        "set ip6 neighbor left fe80::33 02:00:00:00:00:33",
        "ip route add 203.0.113.0/24 via 10.77.0.3 left",
        "ip6 route add 2001:db8:99::/48 via fe80::33 left",
    ] {
        daemon.ok(line);
    }
    bed.ip(
        "a",
        "neigh replace 10.77.0.3 lladdr 02:00:00:00:00:33 dev e nud permanent",
    );
    bed.ip("a", &format!("-6 route replace default via {local} dev e"));
    for key in ["all", "e"] {
        for family in ["ipv4", "ipv6"] {
            let key = format!("net.{family}.conf.{key}.accept_redirects=1");
            bed.exec("a", 5, &["sysctl", "-qw", &key]);
        }
    }
    local
}

#[test]
fn kernel_hosts_learn_the_better_first_hop_and_the_packet_still_goes() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    let local = better_way(&bed, &daemon);
    // The destination does not reply. A kernel accepts a redirect about a UDP packet only for sockets that are bound to a
    // device.
    let both = || {
        for to in ["203.0.113.9", "2001:db8:99::9"] {
            let words = ["ping", "-n", "-q", "-i", "0.2", "-c", "3", "-W", "1", to];
            bed.exec("a", 20, &words);
        }
    };
    let sent =
        |d: &Daemon| ["ip4-redirect", "ip6-redirect"].map(|n| counter(d, n, "sent-redirect"));
    let way = |words: &str| bed.ip("a", words);
    both();
    assert_eq!(sent(&daemon), [0, 0], "off unless it is asked for");
    assert!(way("route get 203.0.113.9").contains("via 10.77.0.1"));
    daemon.ok("set interface ip redirects left on");
    let judge = has_scapy().then(|| Witness::new(&bed, "a", &JUDGE.replace("SECONDS", "8")));
    both();
    until("both redirects", || sent(&daemon).iter().all(|n| *n >= 1));
    for (get, via) in [
        ("route get 203.0.113.9", "via 10.77.0.3"),
        ("-6 route get 2001:db8:99::9", "via fe80::33"),
    ] {
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end && !way(get).contains(via) {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(way(get).contains(via), "{get}: {}", way(get));
    }
    // Packets that leave by another interface cause no redirect.
    assert_eq!(bed.pings("a", "10.78.0.2", 2, "0.05"), 2);
    let Some(judge) = judge else {
        println!("no scapy: nobody judged the bytes");
        return;
    };
    let message = judge.message();
    let line = |word: &str| {
        message
            .lines()
            .find(|l| l.starts_with(word))
            .unwrap_or_else(|| panic!("{word}: {message}"))
    };
    assert_eq!(
        line("four"),
        "four 1 10.77.0.3 10.77.0.1 10.77.0.2 203.0.113.9 True"
    );
    assert_eq!(
        line("six"),
        format!(
            "six 0 fe80::33 2001:db8:99::9 {local} 2001:db8:77::2 255 02:00:00:00:00:33 True True"
        )
    );
    line("fwd");
}

#[test]
fn redirects_are_limited_and_every_packet_still_goes() {
    let mut daemon = Daemon::start("", &[]);
    let out = daemon.folder.file("out.pcap");
    for line in [
        "create packet-generator interface pg0 mac 02:fe:00:00:00:00",
        "set interface state pg0 up",
        "set interface ip address pg0 192.0.2.1/24",
        "set ip neighbor pg0 192.0.2.9 02:00:00:00:00:09",
        "set ip neighbor pg0 192.0.2.3 02:00:00:00:00:03",
        "ip route add 10.0.0.0/8 via 192.0.2.3 pg0",
        "set interface ip redirects pg0 on",
    ] {
        daemon.ok(line);
    }
    daemon.ok(&format!(
        "packet-generator capture pg0 pcap {}",
        out.display()
    ));
    send(
        &mut daemon,
        "one",
        2000,
        "",
        "ip4 src 192.0.2.9 dst 10.0.0.1 / udp",
    );
    send(
        &mut daemon,
        "far",
        100,
        "",
        "ip4 src 198.51.100.9 dst 10.0.0.1 / udp",
    );
    let reported = |reason| counter(&daemon, "ip4-redirect", reason);
    let sent = reported("sent-redirect");
    assert!((1..100).contains(&sent), "{sent}");
    assert_eq!(sent + reported("rate-limited"), 2000);
    assert_eq!(reported("sender-not-on-link"), 100);
    daemon.ok("packet-generator capture pg0 disable");
    let frames = support::frames(&out);
    let to = |mac: u8| frames.iter().filter(|f| f[5] == mac).count() as u64;
    assert_eq!(
        (to(3), to(9)),
        (2100, sent),
        "all went on, and the redirects back"
    );
}

/// A router with one resilient route over pg1 to pg4.
fn four_ways() -> Daemon {
    let daemon = Daemon::start("", &[]);
    daemon.ok("create packet-generator interface pg0 mac 02:fe:00:00:00:00");
    daemon.ok("set interface state pg0 up");
    daemon.ok("set ip multipath resilient buckets 256");
    ways(&daemon, 4);
    daemon
}

#[test]
fn flows_of_other_paths_stay_where_they_are_when_a_path_goes() {
    let mut daemon = four_ways();
    const FLOWS: u32 = 4000;
    let mut round = 0;
    // The output interface of each flow, by its source.
    let mut flows = |daemon: &mut Daemon| -> HashMap<[u8; 4], u8> {
        round += 1;
        let file = |n: u8| format!("r{round}-{n}.pcap");
        for n in 1..5u8 {
            let file = daemon.folder.file(&file(n));
            daemon.ok(&format!(
                "packet-generator capture pg{n} pcap {}",
                file.display()
            ));
        }
        let edit = "edit ip4.src increment 1.0.0.0 1.0.15.159";
        let packet = "ip4 src 1.0.0.0 dst 20.0.0.1 / udp";
        send(daemon, &format!("r{round}"), FLOWS, edit, packet);
        let mut all = HashMap::new();
        for n in 1..5u8 {
            daemon.ok(&format!("packet-generator capture pg{n} disable"));
            // There is no file if no packet left.
            let file = daemon.folder.file(&file(n));
            let seen = file.exists().then(|| support::frames(&file));
            for frame in seen.into_iter().flatten() {
                all.insert(frame[26..30].try_into().unwrap(), n);
            }
        }
        assert_eq!(
            all.len(),
            FLOWS as usize,
            "round {round}: every flow went somewhere"
        );
        all
    };
    let before = flows(&mut daemon);
    let share = before.values().filter(|n| **n == 3).count();
    for (goes, returns) in [
        ("set interface state pg3 down", "set interface state pg3 up"),
        (
            "ip route del 20.0.0.0/8 via 10.3.0.9 pg3",
            "ip route add 20.0.0.0/8 via 10.3.0.9 pg3",
        ),
    ] {
        let first = flows(&mut daemon);
        daemon.ok(goes);
        let second = flows(&mut daemon);
        let others = first.iter().filter(|(_, n)| **n != 3);
        let moved = others.filter(|(flow, n)| second[*flow] != **n).count();
        assert_eq!(moved, 0, "{goes}");
        daemon.ok(returns);
        let third = flows(&mut daemon);
        let moved = second
            .iter()
            .filter(|(flow, n)| third[*flow] != **n)
            .count();
        println!(
            "{goes}: 0 of {} flows moved that had not to; {moved} of {FLOWS} when it returned",
            FLOWS as usize - share
        );
        assert!(moved < FLOWS as usize * 2 / 5, "{returns}: {moved}");
    }
}

/// A table of each family for each of 1,000 VRFs, each with a connected network and a default route.
#[test]
fn a_thousand_vrfs_cost_less_than_100_megabytes() {
    const VRFS: u32 = 1000;
    let daemon = Daemon::start("", &[]);
    daemon.ok("create packet-generator interface pg0");
    daemon.ok("set interface state pg0 up");
    let mut http = support::http::Http::connect(&daemon.folder.file("s.http.sock"));
    let before = resident_kib(daemon.pid());
    let tables = |family: &'static str| {
        (1..=VRFS)
            .map(move |table| serde_json::json!({"set": {"class": "table", "family": family, "id": table}}))
    };
    let all: Vec<_> = tables("ip4").chain(tables("ip6")).collect();
    let (status, body) = http.post("/v1/transactions", &serde_json::json!(all));
    assert_eq!(status, 200, "{body}");
    let empty = resident_kib(daemon.pid()).saturating_sub(before);
    for table in [1, VRFS / 2, VRFS] {
        daemon.ok(&format!("ip route add 0.0.0.0/0 table {table} via pg0"));
        daemon.ok(&format!(
            "ip route add 10.{}.0.0/16 table {table} drop",
            table % 256
        ));
        let shown = daemon.ok(&format!("show ip fib table {table} 192.0.2.1"));
        assert!(
            shown.contains("0.0.0.0/0") && shown.contains("pg0"),
            "{shown}"
        );
    }
    println!(
        "{VRFS} VRFs: {empty} KiB, {:.0} KiB each",
        f64::from(empty as u32) / f64::from(VRFS)
    );
    assert!(empty < 100_000_000 / 1024, "{empty} KiB");
}
