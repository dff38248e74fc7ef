//! Multicast listener discovery, against scapy, which parses every report and sends queries of both versions.
//!
//! Needs root, `ip` and Python with scapy; without them the tests say so and pass.

mod support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv6Addr;
use support::Daemon;
use support::bed::{Bed, counter, has_scapy};

/// `heard(seconds, n, want)` listens for `seconds`, and up to 20 s longer until it has `n` reports. It parses reports as they
/// come: version, source, destination, hop limit, whether alert and checksum are correct, records.
const SCAPY: &str = "from scapy.all import Ether,IPv6,IPv6ExtHdrHopByHop,RouterAlert,PadN,ICMPv6MLQuery,ICMPv6MLQuery2,ICMPv6MLReport,\
    ICMPv6MLReport2,ICMPv6MLDone,ICMPv6MLDMultAddrRec\n\
    import json\n\
    def heard(seconds,n=0,want=lambda r: True):\n\
    \x20 out=[]; end=time.time()+seconds; s.settimeout(0.05)\n\
    \x20 while time.time()<end or len(out)<n and time.time()<end+20:\n\
    \x20  try: f,w=s.recvfrom(2000)\n\
    \x20  except socket.timeout: continue\n\
    \x20  if w[2]!=4 and f[6:12]==them and f[12:14]==b'\\x86\\xdd' and f[20]==0 and f[62] in (131,132,143): out+=filter(want,[read(f)])\n\
    \x20 return out\n\
    def read(f):\n\
    \x20 p=Ether(f); h=p[IPv6ExtHdrHopByHop]; alert=any(isinstance(o,RouterAlert) and o.value==0 for o in h.options)\n\
    \x20 m=h.payload; c=m.cksum; del m.cksum; good=Ether(bytes(p))[type(m)].cksum==c\n\
    \x20 if f[62]!=143: r=m.mladdr\n\
    \x20 else:\n\
    \x20  x=m.records[0]; r=[]\n\
    \x20  while isinstance(x,ICMPv6MLDMultAddrRec): r.append([x.rtype,x.dst,len(x.sources)]); x=x.payload\n\
    \x20  r.sort(key=lambda r:r[1])\n\
    \x20 return [f[62],p.dst,p[IPv6].src,p[IPv6].dst,p[IPv6].hlim,alert,good,r]\n\
    e=Ether(dst='33:33:00:00:00:01'); ra=IPv6ExtHdrHopByHop(nh=58,options=[RouterAlert(),PadN(optdata=b'')])\n\
    def ip(**k): return IPv6(**{**dict(src='fe80::55',dst='ff02::1',hlim=1,nh=0),**k})\n\
    def put(p): s.send(bytes(p))\n";

/// The queries of the link: `them` is the router's MAC address.
const ASK: &str = "print('go',flush=True); joined=[[4,'ff02::1:ff00:7',0]]\n\
    out=dict(change=heard(5,2,lambda r: r[7]==joined))\n\
    put(e/ip()/ra/ICMPv6MLQuery2(mrd=500)); out['all']=heard(3,1)\n\
    put(e/ip(dst='ff02::1:ff00:7')/ra/ICMPv6MLQuery2(mrd=100,mladdr='ff02::1:ff00:7')); out['one']=heard(2,1)\n\
    no=IPv6ExtHdrHopByHop(nh=58,options=[PadN(optdata=b'abcd')])\n\
    put(e/ip(hlim=2)/ra/ICMPv6MLQuery2(mrd=0)); put(e/ip()/no/ICMPv6MLQuery2(mrd=0))\n\
    put(e/ip(src='2001:db8::55')/ra/ICMPv6MLQuery2(mrd=0)); put(e/ip()/ra/ICMPv6MLQuery2(mrd=0,cksum=1)); out['odd']=heard(2)\n\
    put(e/ip()/ra/ICMPv6MLQuery(mrd=500)); out['old']=sorted(heard(3,4),key=lambda r:r[7])\n\
    print(json.dumps(out))\n";

/// The groups of `left` as shown, sorted by their text.
fn groups(daemon: &Daemon) -> Vec<String> {
    let row = daemon.json("show ip6 nd left")["interfaces"][0].clone();
    let all = row["groups"].as_array().unwrap().iter();
    let mut all: Vec<String> = all.map(|g| g.as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

/// Runs [`ASK`] on host a's side, and adds another address to the router as soon as the program listens.
fn ask(bed: &Bed, daemon: &Daemon, mac: &str) -> Value {
    let them = format!("them=bytes.fromhex('{}')\n", mac.replace(':', ""));
    let mut child = bed.python("a", &format!("{SCAPY}{them}{ASK}"));
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "go\n");
    daemon.ok("set interface ip6 address left 2001:db8:77::7/64");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    serde_json::from_str(&rest).unwrap_or_else(|e| panic!("{e}: {rest}"))
}

#[test]
fn groups_are_reported_and_queries_answered_in_both_versions() {
    let Some(bed) = Bed::new() else { return };
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return;
    }
    let daemon = bed.router();
    // The kernel has the MAC address of the interface, and therefore the same link-local address: it would reply as well.
    let quiet = "echo 1 > /proc/sys/net/ipv6/conf/left/disable_ipv6";
    bed.exec("r", 5, &["sh", "-c", quiet]);
    let local = daemon.json("show ip6 nd left")["interfaces"][0]["link_local"].clone();
    let mac = daemon.json("show interface left")["interfaces"][0]["mac"].clone();
    let mac = mac.as_str().unwrap();
    let own: Ipv6Addr = local.as_str().unwrap().parse().unwrap();
    let [.., a, b, c] = own.octets();
    let own = format!(
        "ff02::1:ff{a:02x}:{}",
        format!("{b:02x}{c:02x}").trim_start_matches('0')
    );
    let mut want = vec!["ff02::2".to_owned(), "ff02::1:ff00:1".to_owned(), own];
    want.sort();
    assert_eq!(groups(&daemon), want);
    want.push("ff02::1:ff00:7".to_owned());
    want.sort();
    let message = ask(&bed, &daemon, mac);
    let report = |records: Value| {
        json!([
            143,
            "33:33:00:00:00:16",
            local,
            "ff02::16",
            1,
            true,
            true,
            records
        ])
    };
    let joined = report(json!([[4, "ff02::1:ff00:7", 0]]));
    let is = |group: &String| json!([2, group, 0]);
    let old = |group: &String| {
        let [.., a, b, c, d] = group.parse::<Ipv6Addr>().unwrap().octets();
        let to = format!("33:33:{a:02x}:{b:02x}:{c:02x}:{d:02x}");
        json!([131, to, local, group, 1, true, true, group])
    };
    let all = json!({
        "change": [joined, joined],
        "all": [report(want.iter().map(is).collect())],
        "one": [report(json!([[2, "ff02::1:ff00:7", 0]]))],
        "odd": [],
        "old": want.iter().map(old).collect::<Vec<_>>(),
    });
    for (step, want) in all.as_object().unwrap() {
        assert_eq!(&message[step], want, "{step}");
    }
    for reason in [
        "bad-hop-limit",
        "no-router-alert",
        "bad-sender-address",
        "bad-checksum",
    ] {
        assert_eq!(counter(&daemon, "mld-input", reason), 1, "{reason}");
    }
    assert_eq!(counter(&daemon, "mld-input", "queries"), 3);
    assert_eq!(groups(&daemon), want);
    daemon.ok("set interface ip6 address del left 2001:db8:77::7/64");
    assert!(!groups(&daemon).contains(&"ff02::1:ff00:7".to_owned()));
}
