//! Bridge domains: compared with the kernel's bridge, with valid and malformed frames, and under a flood of random MAC
//! addresses.
//!
//! Tests that need root, namespaces or Python say so and pass without them.

mod support;

use std::collections::BTreeMap;
use support::bed::{Space, counter, must, resident_kib, run, wait_until_up};
use support::replay::shared;
use support::{Daemon, frames, oracle, text};
use volley_pcap::{Packet, read_packets};

/// Random frames, each sent into a port of the kernel's bridge and the same port of Volley's; prints for each frame the output
/// ports of both. No frame has an EtherType of IP: a kernel with br_netfilter examines IP packets, which a bridge does not. The
/// first reserved address is flooded by a kernel bridge without STP.
const FRAMES: &str = r#"
import socket,struct,random,select,time
SOL_PACKET,AUX=263,8
def port(name):
    s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,socket.htons(3)); s.bind((name,0))
    s.setsockopt(SOL_PACKET,AUX,1); s.setblocking(False); return s
sides=[[port(side+str(n)) for n in range(3)] for side in 'kv']
where={s:(i,n) for i,side in enumerate(sides) for n,s in enumerate(side)}
def heard(quiet):
    out=[set(),set()]; end=time.time()+2
    while time.time()<end:
        ready,_,_=select.select(list(where),[],[],quiet)
        # A frame that one side has forwarded may be late at the other on a busy machine.
        if not ready and len(out[0])==len(out[1]): return out
        for s in ready:
            data,aux,_,who=s.recvmsg(3000,256)
            if who[2]==4: continue
            if MAGIC not in data: continue
            tag=b''
            for level,kind,body in aux:
                status,_,_,_,_,tci,tpid=struct.unpack('=IIIHHHH',body[:20])
                if level==SOL_PACKET and status&16: tag=struct.pack('!HH',tpid or 0x8100,tci)
            i,n=where[s]; out[i].add((n,data[:12]+tag+data[12:]))
    return out
random.seed(SEED)
stations=[bytes([2,0,0,0,1,n]) for n in range(8)]
groups=[b'\xff'*6,b'\x01\x00\x5e\x00\x00\x05',b'\x33\x33\x00\x00\x00\x01',bytes.fromhex('0180c2000000'),bytes.fromhex('0180c200000e'),bytes.fromhex('0180c2000010')]
unknown=[bytes([2,0,0,0,9,n]) for n in range(3)]
bad=[b'\x03\x00\x00\x00\x01\x01',b'\x00'*6]
differ=0
for n in range(COUNT):
    MAGIC=b'bridge%06d'%n
    at=random.randrange(3)
    src=random.choice(stations if random.random()<.95 else bad)
    dst=random.choice(random.choice([stations,stations,stations,groups,unknown]))
    tags=random.choice([b'',b'',struct.pack('!HH',0x8100,random.randrange(1,4095)),struct.pack('!HHHH',0x88a8,5,0x8100,6)])
    kind=random.choice([b'\x88\xb5',b'\x99\x99',b'\x00\x40'])
    frame=dst+src+tags+kind+MAGIC+bytes(random.randrange(30,1400))
    for side in sides: side[at].send(frame)
    kernel,volley=heard(0.03)
    if kernel!=volley:
        differ+=1
        tell=lambda out: sorted((p,d[:22].hex(),len(d)) for p,d in out)
        print('frame',n,'port',at,frame[:22].hex(),'kernel',tell(kernel),'volley',tell(volley),flush=True)
    if any(d!=frame for p,d in kernel|volley):
        differ+=1
        print('frame',n,'changed',frame[:22].hex(),[d[:22].hex() for p,d in kernel|volley if d!=frame],flush=True)
    print('out',len(kernel),flush=True)
print('differ',differ)
"#;

/// Namespaces: hosts, the kernel's bridge, Volley's ports.
struct Spaces(Vec<Space>);

impl Spaces {
    fn new() -> Option<Spaces> {
        let at = |at: &&str| Space::new(format!("bridge{}{at}", std::process::id()));
        let spaces = Spaces(["h", "k", "v"].iter().map_while(at).collect());
        if spaces.0.len() < 3 {
            return None;
        }
        let quiet =
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
        for at in ["h", "k", "v"] {
            must(&format!("ip netns exec {} {quiet}", spaces.name(at)));
        }
        let made = run(
            10,
            &[
                "ip",
                "-n",
                spaces.name("k"),
                "link",
                "add",
                "name",
                "sw0",
                "type",
                "bridge",
                "stp_state",
                "0",
                "mcast_snooping",
                "0",
            ],
        );
        if !made.status.success() {
            println!("SKIP: the kernel has no bridge: {}", text(&made.stderr));
            return None;
        }
        for (side, at) in [("k", "k"), ("v", "v")] {
            for n in 0..3 {
                let (here, there) = (spaces.name("h"), spaces.name(at));
                must(&format!(
                    "ip -n {here} link add {side}{n} type veth peer name p{n} netns {there}"
                ));
                must(&format!("ip -n {here} link set {side}{n} up"));
                must(&format!("ip -n {there} link set p{n} up"));
                wait_until_up(&format!("-n {here}"), &format!("{side}{n}"));
                wait_until_up(&format!("-n {there}"), &format!("p{n}"));
            }
        }
        let k = spaces.name("k");
        (0..3).for_each(|n| _ = must(&format!("ip -n {k} link set p{n} master sw0")));
        must(&format!("ip -n {k} link set sw0 up"));
        Some(spaces)
    }

    fn name(&self, at: &str) -> &str {
        let mut all = self.0.iter().map(|space| space.0.as_str());
        all.find(|name| name.ends_with(at)).unwrap()
    }
}

#[test]
fn frames_leave_by_the_same_ports_as_from_the_kernels_bridge() {
    let Some(spaces) = Spaces::new() else { return };
    let Some(python) = oracle::python() else {
        println!("SKIP: no Python");
        return;
    };
    let mut daemon = Daemon::start("", &[]);
    daemon.ok("bridge-domain add 10 group-fwd-mask 1");
    for n in 0..3 {
        daemon.ok(&format!(
            "create host-interface name p{n} as p{n} netns {}",
            spaces.name("v")
        ));
        daemon.ok(&format!("set interface l2 bridge p{n} 10"));
        daemon.ok(&format!("set interface state p{n} up"));
    }
    daemon.wait_for("three links", |d| {
        let all = d.json("show interface")["interfaces"].clone();
        all.as_array().unwrap().iter().all(|i| i["link"] == "up")
    });
    let program = FRAMES.replace("SEED", "7").replace("COUNT", "400");
    let file = daemon.folder.file("frames.py");
    std::fs::write(&file, program).unwrap();
    let words = [
        "ip",
        "netns",
        "exec",
        spaces.name("h"),
        &python.display().to_string(),
        &file.display().to_string(),
    ];
    let output = run(90, &words);
    let (message, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(
        message.contains("differ 0"),
        "{message}{errors}{}",
        daemon.ok("show errors")
    );
    // Frames were forwarded, flooded and dropped, so the comparison covers all three.
    for out in ["out 0", "out 1", "out 2"] {
        assert!(
            message.lines().filter(|l| *l == out).count() > 20,
            "{out}: {message}"
        );
    }
    let domain = daemon.json("show bridge-domain 10")["domains"][0].clone();
    assert_eq!(domain["learned"], 8);
    assert!(domain["counts"]["moved"].as_u64().unwrap() > 50, "{domain}");
}

/// Three packet generator interfaces as ports of a bridge that floods everything: the output does not depend on MAC entries.
const FLOODS: &str = r#"
[[bridge_domain]]
id = 7
learn = false
[[interface]]
name = "pg0"
kind = "pg"
[[interface]]
name = "pg1"
kind = "pg"
capture = "@/one.pcap"
[[interface]]
name = "pg2"
kind = "pg"
capture = "@/two.pcap"
[[bridge_port]]
interface = "pg0"
domain = 7
[[bridge_port]]
interface = "pg1"
domain = 7
[[bridge_port]]
interface = "pg2"
domain = 7
"#;

/// Whether a bridge forwards a frame.
fn is_forwarded(frame: &[u8]) -> bool {
    let Some(head) = frame.get(..14) else {
        return false;
    };
    let (dst, src) = (&head[..6], &head[6..12]);
    let reserved = dst[..5] == [1, 0x80, 0xc2, 0, 0] && dst[5] < 16;
    src[0] & 1 == 0 && src != [0; 6] && !reserved
}

/// Sends frames into `pg0`; returns what the two other ports transmitted.
fn flooded(daemon: &mut Daemon, packets: &[Packet]) -> [Vec<Vec<u8>>; 2] {
    for (n, burst) in packets.chunks(400).enumerate() {
        let file = daemon.folder.file(&format!("in{n}.pcap"));
        oracle::write(&file, burst);
        let count = burst.len();
        daemon.ok(&format!(
            "packet-generator new name s{n} interface pg0 limit {count} pcap {}",
            file.display()
        ));
        let good = burst.iter().filter(|p| is_forwarded(&p.data)).count() as u64;
        let (before, drops) = (sent(daemon), count as u64 - good);
        let lost = dropped(daemon);
        daemon.ok(&format!("packet-generator enable s{n}"));
        daemon.wait_for("the frames", |d| {
            sent(d) == before + 2 * good && dropped(d) == lost + drops
        });
        daemon.ok(&format!("packet-generator delete s{n}"));
    }
    daemon.stop("TERM");
    ["one.pcap", "two.pcap"].map(|name| {
        let file = daemon.folder.file(name);
        if file.exists() {
            frames(&file)
        } else {
            Vec::new()
        }
    })
}

fn sent(daemon: &Daemon) -> u64 {
    let all = daemon.json("show interface")["interfaces"].clone();
    let all = all.as_array().unwrap().iter();
    all.map(|i| i["tx"]["packets"].as_u64().unwrap()).sum()
}

fn dropped(daemon: &Daemon) -> u64 {
    ["too-short", "bad-source"]
        .map(|r| counter(daemon, "l2-learn", r))
        .iter()
        .sum::<u64>()
        + counter(daemon, "l2-fwd", "reserved-group")
}

#[test]
fn real_and_broken_frames_are_flooded_as_they_are() {
    let mut tested = 0;
    for name in ["valid", "mix4k-snabb", "odd", "malformed", "jumbo"] {
        let Some(path) = shared(name) else {
            println!("SKIP {name}: the shared data is not there");
            continue;
        };
        let mut packets = read_packets(&path).unwrap().packets;
        packets.truncate(1500);
        // The same with some flipped bits, also in the addresses.
        let mut random = 0x2545_f491_4f6c_dd1du64;
        for n in 0..packets.len() {
            let mut packet = packets[n].clone();
            for _ in 0..3 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let at = (random >> 33) as usize % packet.data.len().clamp(1, 40);
                if let Some(byte) = packet.data.get_mut(at) {
                    *byte ^= 1 << (random >> 61);
                }
            }
            packets.push(packet);
        }
        let want: Vec<&Vec<u8>> = packets
            .iter()
            .map(|p| &p.data)
            .filter(|f| is_forwarded(f))
            .collect();
        let mut daemon = Daemon::start(FLOODS, &[]);
        let out = flooded(&mut daemon, &packets);
        for (port, frames) in out.iter().enumerate() {
            assert!(
                frames.iter().eq(want.iter().copied()),
                "{name}: port {port}: {} of {}",
                frames.len(),
                want.len()
            );
        }
        tested += packets.len();
        println!("{name}: {} frames, {} flooded", packets.len(), want.len());
    }
    println!("{tested} frames");
}

/// Packets that left by an interface.
fn left_by(daemon: &Daemon, name: &str) -> u64 {
    let all = daemon.json(&format!("show interface {name}"))["interfaces"].clone();
    all[0]["tx"]["packets"].as_u64().unwrap()
}

fn frame(src: u8, dst: u8) -> String {
    format!(
        "template {{ eth src 02:00:00:00:00:0{src} dst 02:00:00:00:00:0{dst} type 0x88b5 / payload 46 }}"
    )
}

fn send(daemon: &Daemon, words: &str) {
    daemon.ok(&format!("packet-generator new {words}"));
    let name = words.split(' ').nth(1).unwrap();
    daemon.ok(&format!("packet-generator enable {name}"));
}

fn domain(daemon: &Daemon) -> serde_json::Value {
    daemon.json("show bridge-domain 10")["domains"][0].clone()
}

#[test]
fn a_flood_of_made_up_stations_is_bounded_and_others_go_on() {
    let port = |n| {
        format!(
            "[[interface]]\nname = \"pg{n}\"\nkind = \"pg\"\n[[bridge_port]]\ninterface = \"pg{n}\"\ndomain = 10\n"
        )
    };
    let config = "[[bridge_domain]]\nid = 10\nmac_limit = 1000\n".to_owned()
        + &(0..3).map(port).collect::<String>();
    let mut daemon = Daemon::start(&config, &[]);
    // Two MAC entries are learned before the flood.
    for (n, src, dst) in [(0, 1, 2), (1, 2, 1)] {
        let frame = frame(src, dst);
        send(
            &daemon,
            &format!("name hello{n} interface pg{n} limit 1 {frame}"),
        );
        daemon.wait_for_answer("show l2fib", &format!("02:00:00:00:00:0{src}"));
    }
    let (before, old) = (resident_kib(daemon.pid()), left_by(&daemon, "pg1"));
    send(
        &daemon,
        "name lies interface pg2 rate 200k edit eth.src random 04:00:00:00:00:00 04:00:ff:ff:ff:ff \
         template { eth dst 02:00:00:00:00:01 type 0x88b5 / payload 46 }",
    );
    daemon.wait_for("the limit", |d| {
        domain(d)["counts"]["refused"].as_u64().unwrap() > 1000
    });
    let words = frame(1, 2);
    send(
        &daemon,
        &format!("name transit interface pg0 rate 20k limit 20000 {words}"),
    );
    daemon.wait_for("the transit", |d| left_by(d, "pg1") >= old + 20_000);
    // Frames to learned MAC addresses are neither flooded nor lost.
    assert_eq!(left_by(&daemon, "pg1"), old + 20_000);
    daemon.ok("packet-generator disable lies");
    assert_eq!(domain(&daemon)["learned"], 1000);
    let stations = daemon.json("show l2fib")["entries"].clone();
    assert_eq!(stations.as_array().unwrap().len(), 1000);
    let grown = resident_kib(daemon.pid()).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB more");
    let flushed = daemon.json("l2fib flush-mac bridge-domain 10");
    assert_eq!(flushed["changed"], 1000);
    assert_eq!(domain(&daemon)["learned"], 0);
}

const AA: &str = "02:00:00:00:00:aa";
const BB: &str = "02:00:00:00:00:bb";

/// MAC entries with their ports.
fn stations(daemon: &Daemon) -> BTreeMap<String, Option<String>> {
    let all = daemon.json("show l2fib 10")["entries"].clone();
    let all = all.as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    all.map(|r| (text(&r["mac"]).unwrap(), text(&r["interface"])))
        .collect()
}

/// Three ports, a static MAC entry on the second one, and one whose frames are dropped.
fn configured() -> Daemon {
    let daemon = Daemon::start("", &[]);
    for n in 0..3 {
        daemon.ok(&format!("create packet-generator interface pg{n}"));
        daemon.ok(&format!("set interface state pg{n} up"));
    }
    let refused = daemon.refused("set interface l2 bridge pg0 10");
    assert!(refused.contains("no bridge domain 10"), "{refused}");
    daemon.ok("bridge-domain add 10");
    for n in 0..3 {
        daemon.ok(&format!("set interface l2 bridge pg{n} 10"));
    }
    daemon.ok(&format!("l2fib add {AA} 10 pg1 static"));
    daemon.ok(&format!("l2fib add {BB} 10 filter"));
    let both = [(AA.into(), Some("pg1".into())), (BB.into(), None)];
    assert_eq!(stations(&daemon), BTreeMap::from(both));
    daemon
}

#[test]
fn configured_stations_neither_move_nor_get_what_is_not_theirs() {
    let mut daemon = configured();
    let one = "02:00:00:00:00:01";
    let frame =
        |src, dst| format!("template {{ eth src {src} dst {dst} type 0x88b5 / payload 46 }}");
    let to_aa = frame(one, AA);
    send(&daemon, &format!("name one interface pg0 limit 1 {to_aa}"));
    daemon.wait_for("a station", |d| stations(d).len() == 3);
    let to_bb = frame(one, BB);
    send(&daemon, &format!("name two interface pg0 limit 1 {to_bb}"));
    daemon.wait_for("the filter", |d| counter(d, "l2-fwd", "l2fib-filter") == 1);
    let liar = frame(AA, one);
    send(&daemon, &format!("name three interface pg2 limit 1 {liar}"));
    daemon.wait_for("the liar", |d| counter(d, "l2-learn", "static-move") == 1);
    // Only the first frame was forwarded, by one port.
    assert_eq!(sent(&daemon), 1);
    // A port that is down loses its learned MAC entries, but not the static ones.
    daemon.ok("set interface state pg0 down");
    assert_eq!(stations(&daemon).len(), 2);
}

#[test]
fn ports_come_and_go_and_stations_with_them() {
    let daemon = configured();
    let in_use = daemon.refused("bridge-domain del 10");
    assert!(in_use.contains("in use"), "{in_use}");
    let bound = daemon.refused("set interface l2 xconnect pg0 pg1");
    assert!(bound.contains("bridge port pg0 (domain 10)"), "{bound}");
    daemon.ok("set interface l3 pg1");
    assert_eq!(stations(&daemon), BTreeMap::from([(BB.into(), None)]));
    daemon.ok("set interface l2 bridge pg1 10 shg 3");
    assert_eq!(stations(&daemon).len(), 2);
    let config = daemon.ok("config export");
    for part in [
        "[[bridge_domain]]",
        "[[bridge_port]]",
        "shg = 3",
        "[[l2fib]]",
    ] {
        assert!(config.contains(part), "{config}");
    }
    let detail = daemon.ok("show bridge-domain 10 detail");
    assert!(detail.contains("pg1: up, shg 3"), "{detail}");
    daemon.ok("delete interface pg1");
    assert_eq!(stations(&daemon).len(), 1);
    for name in ["pg0", "pg2"] {
        daemon.ok(&format!("set interface l3 {name}"));
    }
    daemon.ok(&format!("l2fib del {BB} 10"));
    daemon.ok("bridge-domain del 10");
    let none = daemon.ok("show bridge-domain");
    assert!(none.contains("no bridge domains"), "{none}");
}
