use super::*;
use crate::message4::tests::message;
use crate::model::Option82;
use crate::relays::Relay;
use crate::testing::{datagram, fib, mac, table};
use volley_graph::harness::{In, LENGTHS, Out, run, run_once};
use volley_graph::{Domain, Level};
use volley_tables::Publisher;
use volley_wire::checksum::is_valid4;

fn bits(addr: &str) -> u32 {
    let addr: Ipv4Addr = addr.parse().unwrap();
    addr.to_bits()
}

fn relay(iface: u32, name: &str, servers: &[&str]) -> Relay4 {
    Relay4 {
        common: Relay {
            iface,
            name: name.into(),
            servers: servers.iter().map(|it| bits(it)).collect(),
            table: 0,
            source: None,
        },
        remote_id: None,
        option_82: Option82::Drop,
    }
}

struct Bench {
    domain: Arc<Domain>,
    published: Publisher<Relays>,
    _fib: volley_fib::Fib,
    make: Box<dyn Fn() -> Dhcp4Relay>,
}

fn bench(four: Vec<Relay4>, change: impl FnOnce(&mut volley_fib::Fib)) -> Bench {
    let domain = Domain::new();
    let mut fib = fib(&domain);
    change(&mut fib);
    let relays = Relays {
        four,
        six: Vec::new(),
    };
    let published = Publisher::new(&domain, relays);
    let (snap, plane, table) = (published.snap(), fib.dataplane4(), table());
    let make = move || Dhcp4Relay::new(snap.clone(), plane.clone(), table.clone());
    Bench {
        domain,
        published,
        _fib: fib,
        make: Box::new(make),
    }
}

impl Bench {
    /// Output packets for one input packet.
    fn of(&self, packet: In) -> Vec<Out> {
        let _kept = &self.published;
        let node = std::cell::RefCell::new(Some((self.make)()));
        let make = move |_| node.take().unwrap();
        run_once(Level::detect(), 4, &[packet], &self.domain, make).unwrap()
    }

    fn reason(&self, packet: In) -> String {
        let out = self.of(packet);
        assert_eq!(out.len(), 1);
        out[0].reason.clone().unwrap_or_else(|| out[0].to.clone())
    }
}

fn datagram4(from: &str, to: &str, message: &[u8], rx: u32) -> In {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    let header = header4((from, CLIENT4), (to, SERVER4), 64, message);
    datagram(&header, message, rx)
}

fn discover(rx: u32) -> In {
    datagram4(
        "0.0.0.0",
        "255.255.255.255",
        &message(1, &[53, 1, 1, 255]),
        rx,
    )
}

/// A reply for a client behind a gateway.
fn offer(gateway: [u8; 4], options: &[u8], rx: u32) -> In {
    let mut bytes = message(2, options);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 77]);
    bytes[24..28].copy_from_slice(&gateway);
    datagram4("192.0.2.67", "10.0.0.1", &bytes, rx)
}

#[test]
fn a_request_goes_to_every_server_at_every_length_and_level() {
    let servers = ["192.0.2.67", "192.0.2.68"];
    let bench = bench(vec![relay(0, "lan0", &servers)], |_| ());
    for level in Level::available() {
        for size in LENGTHS {
            let many = vec![discover(0); size];
            let node = std::cell::RefCell::new(Some((bench.make)()));
            let make = move |_| node.take().unwrap();
            let out = run_once(level, size, &many, &bench.domain, make).unwrap();
            assert_eq!(out.len(), 2 * size);
            for (at, packet) in out.iter().enumerate() {
                let server = servers[at % 2].parse().unwrap();
                let ours = Ipv4Addr::new(10, 0, 0, 1);
                assert_eq!(packet.to, "ip4-lookup");
                let (header, bytes) = packet.bytes.split_at(28);
                assert_eq!(header, header4((ours, 67), (server, 67), 65, bytes));
                assert_eq!(bytes[24..28], ours.octets());
                assert_eq!(bytes[243..245], [82, 14], "{bytes:02x?}");
                assert_eq!(bytes[253..259], mac(0), "the remote ID");
            }
        }
    }
}

#[test]
fn requests_that_go_no_further_have_a_reason() {
    let mut other = relay(2, "lan2", &["192.0.2.67"]);
    other.common.table = 1;
    let four = vec![
        relay(0, "lan0", &["192.0.2.67"]),
        relay(1, "lan1", &["203.0.113.9"]),
        other,
    ];
    let bench = bench(four, |fib| {
        let own = "198.51.100.1/24".parse().unwrap();
        fib.del_address(2, own).unwrap();
    });
    let request = |bytes: &[u8], rx| datagram4("0.0.0.0", "255.255.255.255", bytes, rx);
    let mut own = message(1, &[255]);
    own[24..28].copy_from_slice(&[192, 0, 2, 1]);
    for (packet, why) in [
        (discover(5), "no-relay"),
        (discover(9), "linux-cp-punt"),
        (discover(1), "no-route-to-server"),
        (discover(2), "no-address"),
        (request(&own, 0), "own-gateway"),
        (
            request(&message(1, &[82, 2, 1, 0, 255]), 0),
            "untrusted-option-82",
        ),
        (request(&message(1, &[82]), 0), "bad-option"),
        (request(&[1; 20], 0), "too-short"),
        (request(&message(9, &[]), 0), "malformed"),
        (request(&message(1, &[12, 9]), 0), "bad-option"),
        (request(&[0; 2010], 0), "too-long"),
    ] {
        assert_eq!(bench.reason(packet), why);
    }
}

#[test]
fn a_reply_goes_to_its_client_by_the_interface_of_the_relay() {
    let four = vec![relay(0, "lan0", &["192.0.2.67"])];
    let bench = bench(four, |_| ());
    let node = (bench.make)();
    let (snap, fib, table) = (node.relays, node.fib, node.table);
    let make = move |_| Dhcp4Relay::new(snap.clone(), fib.clone(), table.clone());
    let out = run(
        &[offer([10, 0, 0, 1], &[53, 1, 2, 255], 1)],
        &bench.domain,
        make,
    );
    let packet = &out[0];
    assert_eq!(
        (&packet.to[..], packet.columns[&Col::TX]),
        ("interface-output", 0)
    );
    let (link, ip) = packet.bytes.split_at(14);
    let want = [&[2, 0, 0, 0, 0, 9][..], &mac(0), &[8, 0]].concat();
    assert_eq!(link, want);
    let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 77));
    assert_eq!(ip[..28], header4((from, 67), (to, 68), 64, &ip[28..]));
    assert!(is_valid4(from, to, volley_wire::IpProto::UDP, &ip[20..]));
}

#[test]
fn replies_that_are_for_no_relay_have_a_reason() {
    let bench = bench(vec![relay(0, "lan0", &["192.0.2.67"])], |_| ());
    let end = [255];
    assert_eq!(
        bench.reason(offer([10, 0, 0, 2], &end, 1)),
        "unknown-gateway"
    );
    assert_eq!(bench.reason(offer([0; 4], &end, 1)), "unknown-gateway");
    let other_table = offer([10, 0, 0, 1], &end, 2);
    assert_eq!(bench.reason(other_table), "unknown-gateway");
    assert_eq!(bench.reason(offer([10, 0, 0, 2], &end, 9)), "linux-cp-punt");
}

#[test]
fn the_circuit_tells_relays_of_one_source_apart() {
    let four = [(0, "lan0"), (2, "lan2")].map(|(iface, name)| {
        let mut relay = relay(iface, name, &["192.0.2.67"]);
        relay.common.source = Some(bits("192.0.2.1"));
        relay
    });
    let bench = bench(four.to_vec(), |_| ());
    let request = &bench.of(discover(0))[0].bytes;
    assert_eq!(request[12..16], [192, 0, 2, 1]);
    assert_eq!(request[28 + 24..28 + 28], [192, 0, 2, 1]);
    // Type of message, circuit, remote ID, link selection.
    assert_eq!(request[28 + 243..28 + 245], [82, 20]);
    assert_eq!(request[28 + 259..28 + 265], [5, 4, 10, 0, 0, 1]);
    let circuit = |name: &[u8; 4]| [&[82, 6, 1, 4][..], name, &[255]].concat();
    let tx = |name| {
        let out = bench.of(offer([192, 0, 2, 1], &circuit(name), 1));
        out[0].columns[&Col::TX]
    };
    assert_eq!((tx(b"lan0"), tx(b"lan2"), tx(b"none")), (0, 2, 0));
}

#[test]
fn servers_of_another_table_are_looked_up_there() {
    let mut relay = relay(0, "lan0", &["198.51.100.9"]);
    relay.common.table = 1;
    relay.common.source = Some(bits("198.51.100.1"));
    let bench = bench(vec![relay], |_| ());
    let out = bench.of(discover(0));
    assert_eq!(out[0].to, "ip4-lookup");
    assert_eq!(out[0].columns[&Col::RX], 2, "bound to that table");
}
