//! Multicast forwarding between kernel hosts: a sender and receivers with sockets, in namespaces, and Volley between them. Its
//! output is also compared with scapy's result for the same packets, byte by byte.
//!
//! Needs root, `ip` and Python; scapy for the last test. Without them the tests say so and pass.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use support::bed::{Space, counter, has_scapy, must, run, wait_until_up};
use support::{Daemon, frames, oracle, text};

const GROUP4: &str = "239.1.1.1";
const GROUP6: &str = "ff05::1:1";

/// Hosts a (the sender), b, c and d, each with an interface `e`; the other ends are in r, `pa` to `pd`, and Volley uses them.
struct Net {
    r: Space,
    hosts: Vec<Space>,
}

impl Net {
    fn new() -> Option<Net> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |at: &str| format!("mcast{}-{number}{at}", std::process::id());
        oracle::python()?;
        let r = Space::new(name("r"))?;
        // Only Volley sends packets to the hosts.
        assert!(r.does(5, "sysctl -q -w net.ipv6.conf.default.disable_ipv6=1"));
        let mut hosts = Vec::new();
        for (at, net) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
            let host = Space::new(name(at))?;
            let (here, there) = (&r.0, &host.0);
            must(&format!(
                "ip -n {here} link add p{at} type veth peer name e netns {there}"
            ));
            must(&format!("ip -n {here} link set p{at} up"));
            host.ip("link set lo up");
            host.ip("link set e up");
            wait_until_up(&format!("-n {here}"), &format!("p{at}"));
            wait_until_up(&format!("-n {there}"), "e");
            host.ip(&format!("addr add 10.79.{net}.2/24 dev e"));
            host.ip(&format!("addr add 2001:db8:79:{net}::2/64 dev e nodad"));
            host.ip(&format!("route add default via 10.79.{net}.1"));
            host.ip(&format!("-6 route add default via 2001:db8:79:{net}::1"));
            hosts.push(host);
        }
        Some(Net { r, hosts })
    }

    fn router(&self) -> Daemon {
        let mut daemon = Daemon::start("", &[]);
        for end in ["pa", "pb", "pc", "pd"] {
            self.attach(&daemon, end);
        }
        daemon.ok("set interface ip address pa 10.79.1.1/24");
        daemon.ok("set interface ip6 address pa 2001:db8:79:1::1/64");
        daemon.wait_for("all links", |d| {
            let all = d.json("show interface")["interfaces"].clone();
            all.as_array().unwrap().iter().all(|i| i["link"] == "up")
        });
        daemon
    }

    fn attach(&self, daemon: &Daemon, end: &str) {
        let space = &self.r.0;
        daemon.ok(&format!(
            "create host-interface name {end} as {end} netns {space}"
        ));
        daemon.ok(&format!("set interface state {end} up"));
    }

    fn host(&self, at: &str) -> &Space {
        &self.hosts[["a", "b", "c", "d"].iter().position(|h| *h == at).unwrap()]
    }

    /// The number of packets that a host's interface has received.
    fn received(&self, at: &str) -> u64 {
        let out = run(
            10,
            &[
                "ip",
                "-n",
                &self.host(at).0,
                "-s",
                "-j",
                "link",
                "show",
                "e",
            ],
        );
        let all: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        all[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
    }
}

/// A Python program in a namespace that reads lines and replies with lines; it is ended on drop.
struct Program {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Program {
    fn new(space: &Space, body: &str) -> Program {
        // Without `timeout`, which would leave the program behind when killed. The program ends by itself.
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &space.0])
            .arg(oracle::python().unwrap())
            .args(["-c", &format!("{HEAD}{body}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let from = BufReader::new(from);
        let mut program = Program { child, to, from };
        assert_eq!(program.line(), "ready");
        program
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

const HEAD: &str = "
import socket,struct,sys,time,json,signal
signal.alarm(90)
def say(x): print(x,flush=True)
def bare(kind,six):
    s=socket.socket(socket.AF_INET6 if six else socket.AF_INET,kind)
    s.setsockopt(socket.SOL_SOCKET,33,1<<25)
    return s
e=socket.if_nametoindex('e')
";

/// Sends numbers, then `end` three times. Arguments: `GROUP COUNT SIZE PAUSE_US DF`.
const SEND: &str = "
def sender(six,df):
    s=bare(socket.SOCK_DGRAM,six)
    if six:
        s.setsockopt(41,socket.IPV6_MULTICAST_IF,e); s.setsockopt(41,socket.IPV6_MULTICAST_HOPS,9)
        # The kernel is not to learn of smaller links, and not to cut for them.
        s.setsockopt(41,23,3); s.setsockopt(41,62,1)
    else:
        s.setsockopt(0,socket.IP_MULTICAST_IF,struct.pack('4s4si',b'\\0'*4,b'\\0'*4,e))
        s.setsockopt(0,socket.IP_MULTICAST_TTL,9); s.setsockopt(0,10,3 if df else 0)
    return s
say('ready')
for line in sys.stdin:
    group,count,size,pause,df=line.split(); six=':' in group
    s=sender(six,df=='df')
    for n in range(int(count)):
        s.sendto((b'%d '%n).ljust(int(size),b'x'),(group,5000))
        if int(pause): time.sleep(int(pause)/1e6)
    # Behind all others: a datagram that is cut takes a longer way than a short one of the same vector.
    time.sleep(0.1)
    s.sendto(b'end',(group,5000))
    say('sent')
";

/// Joins a group and prints, after `end`, how many numbers it got, how many of them only once, and their hop limits.
const JOIN: &str = "
group=sys.stdin.readline().strip(); six=':' in group
s=bare(socket.SOCK_DGRAM,six); s.bind((group,5000))
if six:
    s.setsockopt(41,socket.IPV6_JOIN_GROUP,socket.inet_pton(socket.AF_INET6,group)+struct.pack('I',e))
    s.setsockopt(41,51,1)
else:
    s.setsockopt(0,socket.IP_ADD_MEMBERSHIP,struct.pack('4s4si',socket.inet_aton(group),b'\\0'*4,e))
    s.setsockopt(0,12,1)
say('joined')
while True:
    got={}; hops=set(); sizes=set()
    while True:
        data,more,_,who=s.recvmsg(65536,200)
        if data==b'end': break
        n=int(data.split()[0]); got[n]=got.get(n,0)+1; sizes.add(len(data))
        hops.add(struct.unpack('i',more[0][2])[0])
    say(json.dumps([len(got),sum(1 for c in got.values() if c==1),sorted(hops),sorted(sizes)]))
";

fn receiver(net: &Net, at: &str, group: &str) -> Program {
    let mut program = Program::new(net.host(at), &format!("say('ready'){JOIN}"));
    program.tell(group);
    assert_eq!(program.line(), "joined");
    program
}

fn send(sender: &mut Program, group: &str, count: u32, size: u32, how: &str) {
    sender.tell(&format!("{group} {count} {size} {how}"));
    assert_eq!(sender.line(), "sent");
}

fn word(group: &str) -> &'static str {
    if group.contains(':') { "ip6" } else { "ip" }
}

/// The packets, bytes and packets by a wrong interface of the first multicast route.
fn carried(daemon: &Daemon, group: &str) -> [u64; 3] {
    let all = daemon.json(&format!("show {} mroute", word(group)));
    let row = &all["routes"][0];
    ["packets", "bytes", "wrong_interface"].map(|key| row[key].as_u64().unwrap())
}

#[test]
fn every_receiver_gets_each_datagram_once_and_nobody_else_any() {
    let Some(net) = Net::new() else { return };
    let daemon = net.router();
    let mut sender = Program::new(net.host("a"), SEND);
    for group in [GROUP4, GROUP6] {
        let ip = word(group);
        let mut both = ["b", "c"].map(|at| receiver(&net, at, group));
        daemon.ok(&format!(
            "{ip} mroute add {group} accept pa forward pa pb pc"
        ));
        let (other, back) = (net.received("d"), net.received("a"));
        send(&mut sender, group, 500, 100, "200 -");
        for host in &mut both {
            assert_eq!(
                host.line(),
                "[500, 500, [8], [100]]",
                "{}",
                daemon.ok("show errors")
            );
        }
        // Neighbour discovery and MLD of the router add a few packets, not 500.
        let gets = |at: &str, before: u64| net.received(at) - before;
        assert!(gets("d", other) < 20, "the third interface gets none");
        assert!(gets("a", back) < 20, "none goes back");
        let header = if ip == "ip6" { 48 } else { 28 };
        let bytes = 500 * (100 + header) + 3 + header;
        assert_eq!(carried(&daemon, group), [501, bytes, 0]);
        assert_eq!(
            counter(&daemon, &format!("{}-replicate", ip4(ip)), "copies"),
            501
        );
        let shown = daemon.ok(&format!("show {ip} mroute"));
        assert!(
            shown.contains(&format!("(*, {group}/")) && shown.contains("pa pb pc"),
            "{shown}"
        );
    }
}

fn ip4(ip: &str) -> &str {
    if ip == "ip6" { "ip6" } else { "ip4" }
}

#[test]
fn a_packet_must_come_by_the_accepting_interface() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.router();
    let mut stray = Program::new(net.host("d"), SEND);
    let mut sender = Program::new(net.host("a"), SEND);
    for group in [GROUP4, GROUP6] {
        let ip = word(group);
        let name = |node: &str| format!("{}-{node}", ip4(ip));
        let mut host = receiver(&net, "b", group);
        daemon.ok(&format!("{ip} mroute add {group} accept pa forward pb"));
        // The interface accepts no groups before the first route that names it.
        if ip == "ip" {
            send(&mut stray, group, 20, 50, "0 -");
            daemon.wait_for("what is not taken", |d| {
                counter(d, "ethernet-input", "group-mac") >= 21
            });
        }
        // It accepts other groups, so packets of this group are counted as received by a wrong interface.
        let other = if ip == "ip6" { "ff08::7" } else { "239.7.7.7" };
        daemon.ok(&format!("{ip} mroute add {other} accept pd"));
        send(&mut stray, group, 20, 50, "0 -");
        daemon.wait_for("the strays", |d| {
            counter(d, &name("mfib-forward-rpf"), "rpf-failure") == 21
        });
        assert_eq!(carried(&daemon, group)[2], 21);
        // A group without a route, and therefore without receivers.
        let none = if ip == "ip6" { "ff08::8" } else { "239.7.7.8" };
        send(&mut stray, none, 20, 50, "0 -");
        send(&mut stray, other, 20, 50, "0 -");
        daemon.wait_for("the others", |d| {
            counter(d, &name("mfib-forward-lookup"), "no-mroute") == 21
                && counter(d, &name("replicate"), "no-receiver") == 21
        });
        send(&mut sender, group, 7, 50, "0 -");
        assert_eq!(host.line(), "[7, 7, [8], [50]]", "none of the strays");
        // A (S,G) route takes precedence over a (*,G) route.
        let source = if ip == "ip6" {
            "2001:db8:79:1::2"
        } else {
            "10.79.1.2"
        };
        daemon.ok(&format!(
            "{ip} mroute add {group} source {source} accept pd forward pb"
        ));
        send(&mut sender, group, 5, 50, "0 -");
        daemon.wait_for("strays", |d| {
            counter(d, &name("mfib-forward-rpf"), "rpf-failure") == 27
        });
        daemon.ok(&format!("{ip} mroute del {group} source {source}"));
        send(&mut sender, group, 9, 50, "0 -");
        assert_eq!(host.line(), "[9, 9, [8], [50]]");
    }
}

#[test]
fn changes_lose_nothing_for_those_they_are_not_about() {
    let Some(net) = Net::new() else { return };
    let daemon = net.router();
    for group in [GROUP4, GROUP6] {
        let ip = word(group);
        let route = format!("{ip} mroute add {group} accept pa forward pb");
        daemon.ok(&route);
        let mut host = receiver(&net, "b", group);
        let mut sender = Program::new(net.host("a"), SEND);
        sender.tell(&format!("{group} 8000 64 300 -"));
        let mut changes = 0;
        // Longer than the sender runs: every change happens under traffic.
        while carried(&daemon, group)[0] < 7000 {
            daemon.ok(&format!("{route} pc"));
            daemon.ok(&format!("{route} pc pd"));
            daemon.ok("delete interface pc");
            let shown = daemon.ok(&format!("show {ip} mroute"));
            assert!(!shown.contains("pc") && shown.contains("pb pd"), "{shown}");
            daemon.ok(
                &format!("{ip} mroute add {group} source 2001:db8::77 accept pd").replace(
                    "2001:db8::77",
                    if ip == "ip6" {
                        "2001:db8::77"
                    } else {
                        "192.0.2.77"
                    },
                ),
            );
            net.attach(&daemon, "pc");
            daemon.ok(&route);
            changes += 1;
        }
        assert_eq!(sender.line(), "sent");
        assert!(changes >= 2, "{changes}");
        let errors = daemon.ok("show errors") + &daemon.ok("show drops");
        assert_eq!(
            host.line(),
            "[8000, 8000, [8], [64]]",
            "{changes} changes\n{errors}"
        );
    }
}

/// Prints errors of ICMPv6: their type and MTU.
const ICMP: &str = "
s=socket.socket(socket.AF_INET6,socket.SOCK_RAW,58)
say('ready')
while True:
    m=s.recv(2000)
    if m[0]<128: say('%d %d'%(m[0],struct.unpack('>I',m[4:8])[0]))
";

#[test]
fn what_does_not_fit_is_cut_or_told_of() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.router();
    daemon.ok("set interface mtu 1280 pb");
    let mut sender = Program::new(net.host("a"), SEND);
    for group in [GROUP4, GROUP6] {
        daemon.ok(&format!(
            "{} mroute add {group} accept pa forward pb pc",
            word(group)
        ));
    }
    let mut both = ["b", "c"].map(|at| receiver(&net, at, GROUP4));
    send(&mut sender, GROUP4, 50, 1450, "300 -");
    for host in &mut both {
        assert_eq!(
            host.line(),
            "[50, 50, [8], [1450]]",
            "{}",
            daemon.ok("show errors")
        );
    }
    assert_eq!(counter(&daemon, "ip4-frag", "fragments"), 100);
    // IPv4 with DF: no error is sent.
    send(&mut sender, GROUP4, 10, 1450, "300 df");
    assert_eq!(
        both.each_mut().map(|host| host.line()),
        ["[0, 0, [], []]", "[10, 10, [8], [1450]]"]
    );
    assert_eq!(counter(&daemon, "ip4-rewrite-mcast", "frag-needed"), 10);
    // IPv6 is never fragmented by a router, which sends an error (RFC 4443, 2.4 e.3).
    let mut both = ["b", "c"].map(|at| receiver(&net, at, GROUP6));
    let mut reported = Program::new(net.host("a"), ICMP);
    send(&mut sender, GROUP6, 1, 1400, "0 -");
    assert_eq!(reported.line(), "2 1280");
    assert_eq!(
        both.each_mut().map(|host| host.line()),
        ["[0, 0, [], []]", "[1, 1, [8], [1400]]"]
    );
    daemon.wait_for("the counters", |d| {
        counter(d, "ip6-rewrite-mcast", "packet-too-big") == 1
            && counter(d, "ip6-icmp-error", "sent-too-big") == 1
    });
}

#[test]
fn every_byte_is_as_scapy_has_it() {
    if !has_scapy() {
        println!("SKIP: scapy is not installed");
        return;
    }
    let mut daemon = Daemon::start("", &[]);
    let file = |name: &str| daemon.folder.file(name).display().to_string();
    let (input, want) = (file("in.pcap"), file("want.pcap"));
    let program = format!(
        "{}/../../tests/multicast/packets.py",
        env!("CARGO_MANIFEST_DIR")
    );
    let python = oracle::python().unwrap().display().to_string();
    let made = run(120, &[&python, "-B", &program, &input, &want]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let outs = ["out1", "out2"].map(|name| file(&format!("{name}.pcap")));
    for (name, out) in ["out1", "out2"].iter().zip(&outs) {
        daemon.ok(&format!(
            "create pcap interface {name} tx {out} mac 02:fe:00:00:00:02"
        ));
        daemon.ok(&format!("set interface state {name} up"));
    }
    daemon.ok(&format!(
        "create pcap interface in rx {input} mac 02:fe:00:00:00:01"
    ));
    daemon.ok("ip mroute add 224.0.0.0/4 accept in forward in out1 out2");
    daemon.ok("ip6 mroute add ff00::/8 accept in forward in out1 out2");
    daemon.ok("set interface state in up");
    // Packets with options pass other nodes, so other packets may overtake them.
    let sorted = |file: &str| {
        let mut all = frames(std::path::Path::new(file));
        all.sort();
        all
    };
    let want = sorted(&want);
    assert!(want.len() > 300, "{}", want.len());
    for name in ["out1", "out2"] {
        let sent = |d: &Daemon| {
            d.json(&format!("show interface {name}"))["interfaces"][0]["tx"]["packets"].as_u64()
        };
        daemon.wait_for("all of them", |d| sent(d) >= Some(want.len() as u64));
    }
    let expired = ["ip4", "ip6"]
        .map(|ip| counter(&daemon, &format!("{ip}-mfib-forward-lookup"), "ttl-expired"));
    assert!(expired.iter().all(|n| *n > 5), "{expired:?}");
    daemon.stop("TERM");
    for out in &outs {
        let got = sorted(out);
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(&want) {
            assert_eq!(got, want);
        }
    }
}

#[test]
fn routes_are_written_out_and_read_again() {
    let mut daemon = Daemon::start("", &[]);
    for name in ["pg0", "pg1", "pg2"] {
        daemon.ok(&format!("create packet-generator interface {name}"));
    }
    daemon.ok("ip table add 7");
    daemon.ok("ip mroute add 239.1.1.1 source 192.0.2.9 accept pg0 forward pg1 pg2");
    daemon.ok("ip mroute add 239.2.0.0/16 table 7 accept pg1 pg0");
    daemon.ok("ip6 mroute add ff05::1:1 accept pg0 forward pg2");
    let (shown, written) = (
        daemon.ok("show ip mroute") + &daemon.ok("show ip6 mroute"),
        daemon.ok("config show"),
    );
    assert!(
        daemon
            .refused("ip table del 7")
            .contains("in use by mroute 239.2.0.0/16")
    );
    assert!(
        daemon
            .refused("ip mroute add 239.1.1.1 accept pg9")
            .contains("pg9")
    );
    assert!(
        daemon
            .refused("ip mroute add 224.0.0.9 accept pg0")
            .contains("never forwarded")
    );
    assert!(
        daemon
            .refused("ip mroute add 239.1.1.1 forward pg0")
            .contains("accept")
    );
    let again = Daemon::start(&written, &[]);
    let reshown = again.ok("show ip mroute") + &again.ok("show ip6 mroute");
    assert_eq!(reshown, shown, "{written}");
    assert_eq!(again.ok("config show"), written);
    // A rename changes the routes, too; deletion of an interface removes it from them, and the last accepting interface removes
    // the route.
    daemon.ok("set interface name pg2 lan2");
    assert!(daemon.ok("show ip mroute").contains("lan2 pg1"));
    daemon.ok("delete interface lan2");
    assert!(!daemon.ok("config show").contains("lan2"));
    daemon.ok("delete interface pg0");
    let left = daemon.ok("show ip mroute");
    assert!(
        left.contains("239.2.0.0/16") && !left.contains("239.1.1.1"),
        "{left}"
    );
    assert_eq!(daemon.ok("show ip6 mroute"), "no multicast routes\n");
    daemon.ok("ip mroute del 239.2.0.0/16 table 7");
    daemon.ok("ip table del 7");
    daemon.stop("TERM");
}

#[path = "multicast/members.rs"]
mod members;
