//! Members of groups: kernel hosts that join and leave by sockets, in every version; scapy as another querier, as a host that
//! sends malformed messages, and as a flood.

use super::*;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Commands `join GROUP [SOURCE]`, `leave`, and `drain COUNT`, which waits for this many datagrams and prints how many came.
const MEMBER: &str = "
def address(text):
    if ':' in text: return struct.pack('=HHI16sI100x',10,0,0,socket.inet_pton(10,text),0)
    return struct.pack('=HH4s120x',2,0,socket.inet_aton(text))
say('ready')
for line in sys.stdin:
    word,*rest=line.split()
    if word=='join':
        six=':' in rest[0]; level=41 if six else 0
        s=bare(socket.SOCK_DGRAM,six); s.bind((rest[0],5000))
        s.setsockopt(level,29 if six else 49,0)
        named=b''.join(address(a) for a in rest)
        s.setsockopt(level,46 if len(rest)>1 else 42,struct.pack('=I4x',e)+named)
        say('joined')
    if word=='leave': s.close(); say('left')
    if word=='drain':
        got=0; s.settimeout(10 if int(rest[0]) else 0.01)
        try:
            while not int(rest[0]) or got<int(rest[0]):
                if s.recv(9000)!=b'end': got+=1
        except (socket.timeout,BlockingIOError): pass
        say(got)
";

const QUERIER: &str =
    "on query-interval 6 max-response 300 last-member-interval 200 last-member-count 2";

struct Links {
    net: Net,
    daemon: Daemon,
}

impl Links {
    /// Volley is the querier of both versions on `pb` and `pc`; one route covers all groups and has no output interfaces.
    fn new() -> Option<Links> {
        let net = Net::new()?;
        let daemon = net.router();
        for (end, at) in [("pb", 2), ("pc", 3)] {
            daemon.ok(&format!("set interface ip address {end} 10.79.{at}.1/24"));
            daemon.ok(&format!(
                "set interface ip6 address {end} 2001:db8:79:{at}::1/64"
            ));
            daemon.ok(&format!("set interface igmp {end} {QUERIER}"));
            daemon.ok(&format!("set interface mld {end} {QUERIER}"));
        }
        daemon.ok("ip mroute add 239.0.0.0/8 accept pa");
        daemon.ok("ip6 mroute add ff05::/16 accept pa");
        Some(Links { net, daemon })
    }

    fn shown(&self, group: &str, end: &str) -> Option<Value> {
        let all = self.port(group, end)["groups"].clone();
        let mut all = all.as_array().unwrap().iter();
        all.find(|it| it["group"] == group).cloned()
    }

    fn port(&self, group: &str, end: &str) -> Value {
        let what = if group.contains(':') { "mld" } else { "igmp" };
        self.daemon.json(&format!("show {what} {end}"))["interfaces"][0].clone()
    }

    /// Waits until a group has members on `pb`, or has none.
    fn wait(&self, group: &str, there: bool) {
        until("members", || self.shown(group, "pb").is_some() == there);
    }

    fn packets(&self, group: &str) -> u64 {
        let what = if group.contains(':') { "ip6" } else { "ip" };
        let all = self.daemon.json(&format!("show {what} mroute"));
        all["routes"][0]["packets"].as_u64().unwrap()
    }

    /// Sends 100 datagrams and a last one; when that has returned, all have passed the route.
    fn send(&self, sender: &mut Program, group: &str) {
        let before = self.packets(group);
        sender.tell(&format!("{group} 100 100 200 -"));
        assert_eq!(sender.line(), "sent");
        until("packets", || self.packets(group) >= before + 101);
    }
}

/// Waits for a condition.
fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "{what} took too long");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn tell(member: &mut Program, line: &str) -> String {
    member.tell(line);
    member.line()
}

/// Host b joins, for all sources and for one, and leaves; host c joins another group.
fn come_and_go(links: &Links, group: &str, other: &str, version: u8) {
    let net = &links.net;
    let mut sender = Program::new(net.host("a"), SEND);
    let (mut b, mut c) = (
        Program::new(net.host("b"), MEMBER),
        Program::new(net.host("c"), MEMBER),
    );
    assert_eq!(tell(&mut b, &format!("join {group}")), "joined");
    assert_eq!(tell(&mut c, &format!("join {other}")), "joined");
    links.wait(group, true);
    until("c", || links.shown(other, "pc").is_some());
    let shown = links.shown(group, "pb").unwrap();
    assert_eq!(
        (&shown["exclude"], &shown["version"]),
        (&true.into(), &version.into())
    );
    links.send(&mut sender, group);
    assert_eq!(tell(&mut b, "drain 100"), "100");
    links.send(&mut sender, other);
    assert_eq!(tell(&mut c, "drain 100"), "100");
    assert_eq!(tell(&mut b, "drain 0"), "0", "the other group is not b's");
    assert_eq!(tell(&mut b, "leave"), "left");
    links.wait(group, false);
    let before = net.received("b");
    links.send(&mut sender, group);
    assert!(net.received("b") < before + 50, "b has left");
    assert!(links.shown(other, "pc").is_some(), "c stays");
}

fn sources(links: &Links, group: &str, good: &str, bad: &str) {
    let net = &links.net;
    let mut sender = Program::new(net.host("a"), SEND);
    let mut b = Program::new(net.host("b"), MEMBER);
    for (source, count) in [(good, "100"), (bad, "0")] {
        assert_eq!(tell(&mut b, &format!("join {group} {source}")), "joined");
        links.wait(group, true);
        let shown = links.shown(group, "pb").unwrap();
        assert_eq!(shown["exclude"], false);
        assert_eq!(shown["sources"][0]["source"], source);
        let before = net.received("b");
        links.send(&mut sender, group);
        assert_eq!(tell(&mut b, &format!("drain {count}")), count);
        assert_eq!(net.received("b") >= before + 100, count == "100");
        assert_eq!(tell(&mut b, "leave"), "left");
        links.wait(group, false);
    }
}

#[test]
fn members_of_igmp_come_and_go() {
    let Some(links) = Links::new() else { return };
    come_and_go(&links, "239.7.1.1", "239.7.1.2", 3);
    sources(&links, "239.7.1.3", "10.79.1.2", "10.79.1.99");
    for version in [2, 1] {
        let force = format!("sysctl -q -w net.ipv4.conf.e.force_igmp_version={version}");
        for host in ["b", "c"] {
            assert!(links.net.host(host).does(5, &force));
        }
        if version == 2 {
            come_and_go(&links, "239.7.2.1", "239.7.2.2", 2);
        }
    }
    // Version 1 has no leave message: members time out.
    come_and_go(&links, "239.7.3.1", "239.7.3.2", 1);
}

#[test]
fn members_of_mld_come_and_go() {
    let Some(links) = Links::new() else { return };
    come_and_go(&links, "ff05::7:1", "ff05::7:2", 2);
    sources(&links, "ff05::7:3", "2001:db8:79:1::2", "2001:db8:79:1::99");
    for host in ["b", "c"] {
        let force = "sysctl -q -w net.ipv6.conf.e.force_mld_version=1";
        assert!(links.net.host(host).does(5, force));
    }
    come_and_go(&links, "ff05::8:1", "ff05::8:2", 1);
}

/// Deleting an interface deletes its members; the next interface of that index ignores messages about groups.
#[test]
fn a_deleted_interface_leaves_nothing_behind() {
    let Some(links) = Links::new() else { return };
    let mut b = Program::new(links.net.host("b"), MEMBER);
    assert_eq!(tell(&mut b, "join 239.7.9.1"), "joined");
    links.wait("239.7.9.1", true);
    links.daemon.ok("delete interface pb");
    links.net.attach(&links.daemon, "pb");
    let taken = || {
        let reports = counter(&links.daemon, "igmp-input", "reports");
        reports + counter(&links.daemon, "igmp-input", "queries")
    };
    let before = taken();
    assert_eq!(tell(&mut b, "leave"), "left");
    assert_eq!(tell(&mut b, "join 239.7.9.2"), "joined");
    until("a report", || {
        counter(&links.daemon, "ethernet-input", "group-mac") >= 2
    });
    assert_eq!(taken(), before);
}

/// On host b's link: waits for a query, sends queries as a router with a lower address, sends malformed messages, floods.
const SCAPY: &str = "
from scapy.all import Ether,IP,IPOption_Router_Alert,Raw
from scapy.contrib.igmpv3 import IGMPv3,IGMPv3mq,IGMPv3mr,IGMPv3gr
p=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,socket.htons(3)); p.bind(('e',0))
m='01:00:5e:00:00:01'; x=[IPOption_Router_Alert()]
def ip(**k): return Ether(dst=m,src='02:00:00:00:00:55')/IP(**{**dict(src='10.79.0.9',dst='224.0.0.1',ttl=1,options=x,proto=2),**k})
def put(q): p.send(bytes(q))
def ask(**k): return ip(**k)/IGMPv3(type=0x11,mrcode=20)/IGMPv3mq(gaddr='0.0.0.0',qrv=2,qqic=4)
def report(*r): return ip(src='10.79.2.77',dst='224.0.0.22')/IGMPv3(type=0x22)/IGMPv3mr(numgrp=len(r),records=list(r))
say('ready')
for line in sys.stdin:
    word=line.strip()
    if word=='hear':
        while True:
            f,w=p.recvfrom(2000)
            if w[2]!=4 and f[12:14]==b'\\x08\\0' and f[23]==2 and f[14+24]==0x11: break
        q=Ether(f); i=q[IP]; g=q[IGMPv3]; n=g[IGMPv3mq]; c=i.chksum; del i.chksum; s=g.chksum; del g.chksum
        again=Ether(bytes(q))
        say(json.dumps([q.dst,i.src,i.dst,i.ttl,bytes(i.options[0])==b'\\x94\\4\\0\\0',again[IP].chksum==c,again[IGMPv3].chksum==s,g.mrcode,n.gaddr,n.qrv,n.qqic,len(f)]))
    if word=='ask': put(ask()); say('ok')
    if word=='odd':
        put(ask(ttl=2)); put(ip(options=[])/Raw(bytes(ask()[IGMPv3]))); put(ask(src='224.0.0.9'))
        put(ip(src='0.0.0.0',dst='239.9.9.9')/IGMPv3(type=0x11,mrcode=20)/IGMPv3mq(gaddr='239.9.9.9',qrv=2,qqic=4))
        put(ip()/Raw(bytes.fromhex('1164000100000000')))
        put(ip(src='10.79.2.77')/IGMPv3(type=0x22)/IGMPv3mr(numgrp=3,records=[]))
        put(ask(dst='224.0.0.2')); put(ip()/IGMPv3(type=0x77)/Raw(b'1234'))
        q=bytes(report(IGMPv3gr(rtype=2,maddr='239.9.9.9')))
        for cut in range(34,len(q)): p.send(q[:cut])
        say(len(q)-34)
    if word=='flood':
        for n in range(60):
            r=[IGMPv3gr(rtype=2,maddr='239.%d.%d.1'%(n+10,k)) for k in range(50)]
            put(report(*r)); time.sleep(0.02)
        r=[IGMPv3gr(rtype=1,maddr='239.10.1.1',srcaddrs=['10.9.%d.%d'%(n,k) for k in range(1,101)]) for n in range(2)]
        for one in r: put(report(one))
        say('ok')
";

#[test]
fn routers_elect_bad_messages_are_named_and_floods_are_bounded() {
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return;
    }
    let Some(links) = Links::new() else { return };
    let mut scapy = Program::new(links.net.host("b"), SCAPY);
    let heard: Value = serde_json::from_str(&tell(&mut scapy, "hear")).unwrap();
    let want = serde_json::json!([
        "01:00:5e:00:00:01",
        "10.79.2.1",
        "224.0.0.1",
        1,
        true,
        true,
        true,
        3,
        "0.0.0.0",
        2,
        6,
        50
    ]);
    assert_eq!(heard, want, "a general query, read by scapy");
    assert_eq!(links.port("", "pb")["own"], true);
    assert_eq!(tell(&mut scapy, "ask"), "ok");
    until("election", || {
        links.port("", "pb")["querier"] == "10.79.0.9"
    });
    let elected = links.port("", "pb");
    assert_eq!(elected["own"], false);
    let cut: u64 = tell(&mut scapy, "odd").parse().unwrap();
    let count = |reason| counter(&links.daemon, "igmp-input", reason);
    until("the last odd one", || count("malformed") >= cut);
    assert_eq!(count("bad-sender-address"), 2);
    for reason in [
        "bad-hop-limit",
        "no-router-alert",
        "bad-checksum",
        "bad-message",
        "bad-destination",
        "unknown-type",
    ] {
        assert_eq!(count(reason), 1, "{reason}");
    }
    assert_eq!(count("malformed"), cut);
    assert!(links.shown("239.9.9.9", "pb").is_none());
    // The router sends no queries while the other querier is active, and resumes after 2 x 4 s and half a response time.
    until("the other to be gone", || {
        let port = links.port("", "pb");
        let own = port["own"] == true;
        assert!(own || port["queries"] == elected["queries"], "{port}");
        own
    });
    assert_eq!(tell(&mut scapy, "flood"), "ok");
    until("the flood", || {
        links.port("", "pb")["refused"].as_u64() >= Some(60 * 50 - 1024 + 136)
    });
    let groups = links.port("", "pb")["groups"].clone();
    assert_eq!(groups.as_array().unwrap().len(), 1024);
    let named = links.shown("239.10.1.1", "pb").unwrap()["sources"].clone();
    assert_eq!(named.as_array().unwrap().len(), 64);
}
