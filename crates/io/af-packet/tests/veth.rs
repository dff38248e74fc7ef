//! Host interfaces on veth pairs: Volley connects two namespaces.

use std::time::Duration;
use volley_af_packet::model::HostInterface;
use volley_iface::Mtu;
use volley_linux::testbed::{Daemon, Testbed, datagrams, must, run};
use volley_model::Request;
use volley_object::{Instance, Object};

fn daemon() -> Daemon {
    Daemon::new(8192, None, |registry| {
        volley_l2::register(registry)?;
        volley_af_packet::register(registry)
    })
}

fn on(host: &str) -> Instance {
    HostInterface {
        host: host.into(),
        ..HostInterface::default()
    }
    .instance()
    .unwrap()
}

/// Namespaces 0 and 1, each with `e` (10.0.0.1 and 10.0.0.2), connected by `a` and `b`.
fn joined(bed: &Testbed, mtu: u32) -> (Daemon, [String; 2]) {
    let mut daemon = daemon();
    let mut ends = Vec::new();
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let ours = bed.veth(at, "e", &format!("mtu {mtu}"));
        bed.ip(at, &format!("addr add 10.0.0.{}/24 dev e", at + 1));
        daemon.create(name, on(&ours), None);
        ends.push(ours);
    }
    daemon.patch("a", "b");
    daemon.until("link", |d| {
        d.link_fault("a").is_none() && d.link_fault("b").is_none()
    });
    (daemon, [ends.remove(0), ends.remove(0)])
}

#[test]
fn two_namespaces_ping_and_exchange_datagrams_of_all_sizes() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let (daemon, _) = joined(&bed, 9000);
    assert!(bed.pings_soon(0, "10.0.0.2", 56));
    assert!(bed.pings_soon(1, "10.0.0.1", 8972));
    let wait = Duration::from_secs(2);
    let (a, b) = (bed.udp(0, "10.0.0.1", wait), bed.udp(1, "10.0.0.2", wait));
    datagrams(&a, &b, (18..8972).step_by(61));
    datagrams(&b, &a, [18, 1472, 2006, 2007, 4054, 4055, 8972].into_iter());
    let counts = daemon.counts("a");
    assert!(
        counts.rx_packets > 140 && counts.tx_packets > 10,
        "{counts:?}"
    );
    assert_eq!((counts.rx_errors, counts.tx_errors), (0, 0));
    daemon.stop();
}

#[test]
fn tcp_with_offloads_on() {
    let Some(bed) = Testbed::new(2, &["iperf3"]) else {
        return;
    };
    let (daemon, _) = joined(&bed, 1500);
    let _server = bed.start(1, 12, "iperf3 -s -1");
    std::thread::sleep(Duration::from_millis(300));
    let out = bed.exec(0, 10, "iperf3 -c 10.0.0.2 -t 2 -f g");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}");
    println!("{text}");
    let counts = daemon.counts("a");
    assert!(
        counts.rx_bytes / counts.rx_packets.max(1) > 3000,
        "no super-segments came: {counts:?}"
    );
    daemon.stop();
}

#[test]
fn a_tag_that_the_kernel_took_out_is_put_back() {
    let Some(bed) = Testbed::new(2, &["python3"]) else {
        return;
    };
    let (daemon, _) = joined(&bed, 1500);
    let receive = "import socket,sys\n\
        s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,socket.htons(3))\n\
        s.bind(('e',0)); s.settimeout(5)\n\
        s.setsockopt(263,8,1)\n\
        print('ready',flush=True)\n\
        while True:\n\
        \x20 d,anc,_,_=s.recvmsg(2000,200)\n\
        \x20 if d[:6]==b'\\x02\\0\\0\\0\\0\\x09':\n\
        \x20  import struct\n\
        \x20  print(d[12:14].hex(),[struct.unpack('IIIHHHH',c[2]) for c in anc],flush=True); break\n";
    let send = "import socket\n\
        s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW); s.bind(('e',0))\n\
        s.send(b'\\x02\\0\\0\\0\\0\\x09\\x02\\0\\0\\0\\0\\x08\\x81\\0\\x20\\x2a\\x08\\0'+bytes(60))\n";
    let dir = std::env::temp_dir().join(format!("volley-tag-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (rx, tx) = (dir.join("rx.py"), dir.join("tx.py"));
    std::fs::write(&rx, receive).unwrap();
    std::fs::write(&tx, send).unwrap();
    let child = bed.start(1, 8, &format!("python3 {}", rx.display()));
    std::thread::sleep(Duration::from_millis(700));
    let sent = bed.exec(0, 5, &format!("python3 {}", tx.display()));
    assert!(
        sent.status.success(),
        "{}",
        String::from_utf8_lossy(&sent.stderr)
    );
    let text = child.output();
    // The receiving kernel removes the tag again: 0x202a.
    assert!(text.contains("0800") && text.contains("8234"), "{text}");
    let _ = std::fs::remove_dir_all(dir);
    daemon.stop();
}

#[test]
fn it_comes_and_goes_under_traffic() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let (mut daemon, ends) = joined(&bed, 1500);
    let flood = bed.start(0, 20, "ping -q -i 0.001 10.0.0.2");
    for _ in 0..10 {
        daemon.must(Request::InterfaceDelete { name: "a".into() });
        daemon.create("a", on(&ends[0]), None);
        daemon.patch("a", "b");
    }
    assert!(bed.pings_soon(1, "10.0.0.1", 56));
    drop(flood);
    daemon.stop();
}

#[test]
fn the_kernels_interface_goes_down_and_vanishes() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let (mut daemon, ends) = joined(&bed, 1500);
    let flood = bed.start(0, 20, "ping -q -i 0.001 10.0.0.2");
    bed.ip(0, "link set e down");
    daemon.until("no carrier", |d| {
        d.link_fault("a").is_some_and(|w| w.contains("carrier"))
    });
    bed.ip(0, "link set e up");
    daemon.until("carrier", |d| d.link_fault("a").is_none());
    must(5, "ip", &["link", "set", &ends[0], "down"]);
    daemon.until("down", |d| {
        d.link_fault("a").is_some_and(|w| w.contains("is down"))
    });
    must(5, "ip", &["link", "set", &ends[0], "up"]);
    daemon.until("up", |d| d.link_fault("a").is_none());
    assert!(
        bed.pings_soon(1, "10.0.0.1", 56),
        "it goes on after it was down"
    );
    for round in 0..3 {
        must(5, "ip", &["link", "del", &ends[0]]);
        daemon.until("gone", |d| {
            d.link_fault("a") == Some(format!("waiting for {}", ends[0]))
        });
        // The same pair again, under the same names.
        assert_eq!(bed.veth(0, "e", "mtu 1500"), ends[0]);
        bed.ip(0, "addr add 10.0.0.1/24 dev e");
        daemon.until("there again", |d| d.link_fault("a").is_none());
        // The new interface has another MAC address.
        bed.ip(1, "neigh flush dev e");
        assert!(bed.pings_soon(1, "10.0.0.1", 56), "round {round}");
    }
    daemon.must(Request::InterfaceDelete { name: "a".into() });
    drop(flood);
    daemon.stop();
}

#[test]
fn several_queues_share_the_flows() {
    let Some(bed) = Testbed::new(2, &[]) else {
        return;
    };
    let mut daemon = daemon();
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let host = bed.veth(at, "e", "");
        bed.ip(at, &format!("addr add 10.0.0.{}/24 dev e", at + 1));
        let kind = HostInterface {
            host,
            queues: 4,
            ring: 128,
            offload: false,
            ..HostInterface::default()
        }
        .instance()
        .unwrap();
        daemon.create(name, kind, None);
    }
    daemon.patch("a", "b");
    let wait = Duration::from_secs(2);
    let b = bed.udp(1, "10.0.0.2", wait);
    for _ in 0..16 {
        let a = bed.udp(0, "10.0.0.1", wait);
        datagrams(&a, &b, [18, 300, 1472].into_iter());
    }
    daemon.stop();
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let Some(bed) = Testbed::new(1, &[]) else {
        return;
    };
    let mut daemon = daemon();
    let mut refused = |host: &str, namespace: Option<&str>, part: &str| {
        let kind = HostInterface {
            host: host.into(),
            namespace: namespace.map(str::to_owned),
            ..HostInterface::default()
        }
        .instance()
        .unwrap();
        let spec = volley_model::InterfaceSpec {
            name: "x".into(),
            kind: kind.named("x"),
            mac: None,
            mtu: None,
        };
        let error = daemon
            .ask(Request::InterfaceCreate(spec))
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    };
    refused("nobody", None, "the kernel has no interface `nobody`");
    refused("lo", None, "not an Ethernet");
    refused(
        "lo",
        Some("nowhere"),
        "namespace `nowhere` cannot be entered",
    );
    refused("e", Some(bed.name(0)), "in namespace vt");
    assert!(daemon.registry.interfaces.borrow().by_name("x").is_none());
    assert!(run(5, "ip", &["link"]).status.success());
    daemon.stop();
}

#[test]
fn it_waits_for_an_interface_that_is_missing_and_has_its_settings_then() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let mut daemon = daemon();
    let space = format!("{}x", bed.name(0));
    let kind = |host: &str, namespace: Option<&str>| {
        HostInterface {
            host: host.into(),
            namespace: namespace.map(str::to_owned),
            queues: 2,
            ring: 128,
            wait: true,
            ..HostInterface::default()
        }
        .instance()
        .unwrap()
    };
    // In a namespace that does not exist yet either, with an MTU other than the interface's default.
    daemon.create("a", kind("p", Some(&space)), Some(2000));
    daemon.create("b", kind("q", Some(bed.name(1))), None);
    let waits = |d: &Daemon, name: &str, what: &str| {
        assert_eq!(d.link_fault(name), Some(format!("waiting for {what}")));
    };
    waits(&daemon, "a", &format!("p in namespace {space}"));
    waits(&daemon, "b", &format!("q in namespace {}", bed.name(1)));
    daemon.patch("a", "b");
    must(5, "ip", &["netns", "add", &space]);
    let pair = |at: usize, name: &str, into: &str| {
        bed.ip(at, &format!("link add {name} type veth peer name e"));
        if into != bed.name(at) {
            bed.ip(at, &format!("link set {name} netns {into}"));
        }
        bed.ip(at, &format!("addr add 10.0.0.{}/24 dev e", at + 1));
        bed.ip(at, "link set e up");
    };
    pair(0, "p", &space);
    pair(1, "q", bed.name(1));
    // Only Volley sets the kernel's interface up.
    daemon.until("link", |d| {
        d.link_fault("a").is_none() && d.link_fault("b").is_none()
    });
    assert!(bed.pings_soon(0, "10.0.0.2", 56));
    let mtu = |d: &Daemon, name: &str| {
        let all = d.registry.interfaces.borrow();
        let i = all.by_name(name).unwrap();
        (i.mtu, i.device_mtu(), i.rx_queues.len())
    };
    assert_eq!(mtu(&daemon, "a"), (2000, Some(2000), 2));
    let link = must(5, "ip", &["-n", &space, "link", "show", "p"]);
    assert!(link.contains("mtu 2000"), "{link}");
    // Deleting the interface restores what Volley has changed.
    daemon.must(Request::InterfaceDelete { name: "a".into() });
    let link = must(5, "ip", &["-n", &space, "link", "show", "p"]);
    assert!(link.contains("mtu 1500"), "{link}");
    daemon.create("a", kind("p", Some(&space)), None);
    daemon.patch("a", "b");
    // A namespace with the same name is a different namespace.
    must(5, "ip", &["netns", "del", &space]);
    must(5, "ip", &["netns", "add", &space]);
    daemon.until("another namespace", |d| d.link_fault("a").is_some());
    waits(&daemon, "a", &format!("p in namespace {space}"));
    bed.ip(0, "link del e");
    pair(0, "p", &space);
    daemon.until("link", |d| d.link_fault("a").is_none());
    assert!(bed.pings_soon(0, "10.0.0.2", 56));
    must(5, "ip", &["netns", "del", &space]);
    daemon.stop();
}

#[test]
fn the_mtu_follows_the_kernel_and_rings_have_room_for_it() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let mut daemon = daemon();
    let mut ends = Vec::new();
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let host = bed.veth(at, "e", "mtu 1500");
        bed.ip(at, &format!("addr add 10.0.0.{}/24 dev e", at + 1));
        let kind = HostInterface {
            host: host.clone(),
            offload: false,
            ..HostInterface::default()
        }
        .instance()
        .unwrap();
        daemon.create(name, kind, None);
        ends.push(host);
    }
    daemon.patch("a", "b");
    assert!(bed.pings_soon(0, "10.0.0.2", 1472));
    let mtu = |d: &Daemon, name: &str| d.registry.interfaces.borrow().by_name(name).unwrap().mtu;
    for (at, end) in ends.iter().enumerate() {
        must(5, "ip", &["link", "set", end, "mtu", "9000"]);
        bed.ip(at, "link set e mtu 9000");
    }
    daemon.until("9000", |d| mtu(d, "a") == 9000 && mtu(d, "b") == 9000);
    assert!(
        bed.pings_soon(0, "10.0.0.2", 8972),
        "rings of slots for 1,500 bytes would cut it"
    );
    let set = |interface: &str, mtu| {
        let interface = interface.to_owned();
        Request::set(&Mtu { interface, mtu }).unwrap()
    };
    daemon.must(set("a", 4000));
    assert_eq!(mtu(&daemon, "a"), 4000);
    let link = must(5, "ip", &["link", "show", &ends[0]]);
    assert!(link.contains("mtu 9000"), "more room is kept: {link}");
    must(5, "ip", &["link", "set", &ends[0], "mtu", "2000"]);
    daemon.until("2000", |d| mtu(d, "a") == 2000);
    must(5, "ip", &["link", "set", &ends[0], "mtu", "9000"]);
    daemon.until("what is configured", |d| mtu(d, "a") == 4000);
    // A macvlan's MTU cannot exceed that of the interface below it.
    let upper = format!("m{}", std::process::id());
    let words = ["link", "add", "link", &ends[0], "name", &upper];
    let kind = ["mtu", "1500", "type", "macvlan"];
    if run(5, "ip", &[&words[..], &kind].concat()).status.success() {
        daemon.create("c", on(&upper), None);
        let refused = daemon.ask(set("c", 20_000));
        let refused = refused.unwrap_err().to_string();
        let part = format!("the kernel's interface {upper} has MTU 1500 and does not take 20000");
        assert!(refused.contains(&part), "{refused}");
        assert_eq!(mtu(&daemon, "c"), 1500, "and nothing has changed");
        must(5, "ip", &["link", "del", &upper]);
    }
    daemon.stop();
}
