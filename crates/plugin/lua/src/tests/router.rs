//! The router of `examples/lua/router.lua`. `apps/volley/tests/lua.rs` compares it with the native router.

use super::*;
use volley_sdk::wire::arp::{ArpPacket, REPLY};
use volley_sdk::wire::checksum::is_valid;
use volley_sdk::wire::{Header, IntoBytes, MacAddr};

const ROUTER: &str = include_str!("../../../../../examples/lua/router.lua");
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);

/// A router and the frames that it sends, as `interface bytes`, or `reason`.
struct Router {
    bench: Bench,
    link: Arc<Link>,
}

impl Router {
    fn new() -> Router {
        let bench = Bench::new(ROUTER);
        let link = bench.link();
        Router { bench, link }
    }

    /// What becomes of frames that are received in one vector; then the control thread runs.
    fn run(&mut self, frames: &[In]) -> Vec<Out> {
        let link = self.link.clone();
        let make = move |_| LuaScripts::<DeviceInput>::new(link.clone(), 256);
        let out = volley_sdk::harness::run_once(level(), 64, frames, &Domain::new(), make);
        // The bench's node ends with the run: the next one is loaded again, and the tables stay.
        self.link
            .give(config(1, Some(self.bench.load().unwrap().0)));
        lock(&self.bench.tables).collect(|why| panic!("{why}"));
        assert_eq!(self.bench.errors(), Vec::<String>::new());
        out.unwrap()
    }
}

fn arp(rx: u32, packet: ArpPacket) -> In {
    let mut bytes = vec![0xff; 6];
    bytes.extend(packet.sender_mac.0);
    bytes.extend([8, 6]);
    bytes.extend(packet.as_bytes());
    In::new(&bytes).rx(rx)
}

fn request(rx: u32, sender: [u8; 4], target: [u8; 4]) -> In {
    arp(rx, ArpPacket::request(HOST, sender.into(), target.into()))
}

fn tx(out: &Out) -> u32 {
    assert_eq!(out.to, "interface-output", "{:?}", out.reason);
    out.columns[&Col::TX]
}

#[test]
fn the_script_is_as_short_as_moonroutes() {
    let code = |text: &str| {
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("--");
        text.lines().filter(is_code).count()
    };
    assert!(ROUTER.lines().count() < 100, "{}", ROUTER.lines().count());
    let from = ROUTER.find("function vector").unwrap();
    let to = ROUTER[from..].find("\nend").unwrap();
    assert!(code(&ROUTER[from..from + to]) < 40);
}

#[test]
fn a_neighbor_is_resolved_and_packets_follow() {
    let mut router = Router::new();
    let packet = frame(1, [10, 0, 1, 7], 64);
    let out = router.run(std::slice::from_ref(&packet));
    assert_eq!(tx(&out[0]), 2);
    let (asked, _) = ArpPacket::split(&out[0].bytes[14..]).unwrap();
    assert_eq!(out[0].bytes[..6], [0xff; 6]);
    assert_eq!(asked.target_ip().octets(), [10, 0, 1, 7]);
    assert_eq!(asked.sender_ip().octets(), [10, 0, 1, 1]);
    let mut reply = asked.reply(HOST);
    reply.operation = REPLY.into();
    let out = router.run(&[arp(2, reply)]);
    assert_eq!(out[0].reason.as_deref(), Some("consumed"));
    let out = router.run(&[packet]);
    assert_eq!(tx(&out[0]), 2);
    assert_eq!(out[0].bytes[..6], HOST.0);
    assert_eq!((out[0].bytes[22], out[0].bytes.len()), (63, 54));
    assert!(is_valid(&out[0].bytes[14..34]));
}

#[test]
fn a_route_with_a_gateway_is_complete_when_the_gateway_is_known() {
    let mut router = Router::new();
    let packet = frame(1, [10, 9, 8, 7], 64);
    let out = router.run(std::slice::from_ref(&packet));
    let (asked, _) = ArpPacket::split(&out[0].bytes[14..]).unwrap();
    assert_eq!(asked.target_ip().octets(), [10, 0, 1, 2]);
    // A request of the gateway is enough, and is answered.
    let out = router.run(&[request(2, [10, 0, 1, 2], [10, 0, 1, 1])]);
    assert_eq!(tx(&out[0]), 2);
    let (reply, _) = ArpPacket::split(&out[0].bytes[14..]).unwrap();
    assert_eq!(
        (reply.operation.get(), reply.sender_mac.0),
        (REPLY, [2, 0, 0, 0, 0, 2])
    );
    let out = router.run(&[packet]);
    assert_eq!((tx(&out[0]), &out[0].bytes[..6]), (2, &HOST.0[..]));
}

#[test]
fn errors_and_echo_are_answered_by_the_slow_path() {
    let mut router = Router::new();
    let mut echo = frame(1, [10, 0, 0, 1], 64);
    echo.bytes[23] = 1;
    echo.bytes[34..42].copy_from_slice(&[8, 0, 0, 0, 0, 7, 0, 1]);
    let sum = volley_sdk::wire::checksum::checksum(&echo.bytes[34..54]);
    echo.bytes[36..38].copy_from_slice(&sum.to_be_bytes());
    fill_checksum(&mut echo);
    let out = router.run(&[
        echo,
        frame(1, [10, 0, 1, 2], 1),
        frame(1, [10, 77, 0, 1], 64),
        frame(1, [10, 0, 1, 1], 64),
    ]);
    let kinds: Vec<(u8, u8)> = out.iter().map(|it| (it.bytes[34], it.bytes[35])).collect();
    assert_eq!(kinds, [(0, 0), (11, 0), (3, 0), (3, 3)]);
    for out in &out {
        assert_eq!((tx(out), &out.bytes[..6]), (1, &HOST.0[..]));
        assert_eq!(out.bytes[26..34], [10, 0, 0, 1, 10, 0, 0, 9]);
        assert!(is_valid(&out.bytes[14..34]) && is_valid(&out.bytes[34..]));
    }
    assert_eq!(out[1].bytes.len(), 14 + 28 + 40);
    // No error about an error: type 3 of ICMP is in the packet.
    let mut error = frame(1, [10, 77, 0, 1], 64);
    (error.bytes[23], error.bytes[34]) = (1, 3);
    fill_checksum(&mut error);
    let out = router.run(&[error]);
    assert_eq!(out[0].reason.as_deref(), Some("no-route"));
}

/// Corrects the checksum of an IPv4 header without options.
fn fill_checksum(frame: &mut In) {
    frame.bytes[24..26].fill(0);
    let sum = volley_sdk::wire::checksum::checksum(&frame.bytes[14..34]);
    frame.bytes[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// RFC 1812, 4.3.2.7. The TTL is judged before the source, so that such packets come to the slow path.
#[test]
fn no_error_goes_to_a_source_that_is_no_host() {
    let mut router = Router::new();
    let from = |source: [u8; 4]| {
        let mut expired = frame(1, [10, 0, 1, 2], 1);
        expired.bytes[26..30].copy_from_slice(&source);
        fill_checksum(&mut expired);
        expired
    };
    let none = [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4]];
    for out in router.run(&none.map(from)) {
        assert_eq!(out.reason.as_deref(), Some("ttl-expired"));
    }
    let out = router.run(&[from([10, 0, 0, 9])]);
    assert_eq!((tx(&out[0]), out[0].bytes[34]), (1, 11));
}

#[test]
fn frames_for_others_and_invalid_packets_are_dropped() {
    let mut router = Router::new();
    let mut other = frame(1, [10, 0, 1, 2], 64);
    other.bytes[5] = 9;
    let mut broken = frame(1, [10, 0, 1, 2], 64);
    broken.bytes[24] ^= 1;
    let out = router.run(&[other, broken]);
    let reasons: Vec<_> = out.iter().map(|it| it.reason.as_deref().unwrap()).collect();
    assert_eq!(reasons, ["not-for-us", "invalid"]);
}

/// Frames with random faults: ARP and IPv4, of any length, some with a right checksum.
fn any_frames(count: usize) -> Vec<In> {
    let mut random = 0x9e37_79b9_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut frames = Vec::new();
    for _ in 0..count {
        let mut it = match next() % 3 {
            0 => request(1, [10, 0, 0, 9], [10, 0, 0, 1]),
            _ => frame(
                1,
                [10, [0, 0, 9, 77][next() as usize % 4], 1, next() as u8],
                next() as u8 % 4,
            ),
        };
        if next() % 2 == 0 {
            it.bytes[23] = 1;
        }
        for _ in 0..next() % 4 {
            let at = next() as usize % it.bytes.len();
            it.bytes[at] = next() as u8;
        }
        if next() % 2 == 0 && it.bytes[12..14] == [8, 0] {
            it.bytes[24..26].fill(0);
            let length = usize::from(it.bytes[14] & 15).max(5) * 4;
            let end = (14 + length).min(it.bytes.len());
            let sum = volley_sdk::wire::checksum::checksum(&it.bytes[14..end]);
            it.bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        let length = next() as usize % 90;
        it.bytes.truncate(length.max(1));
        frames.push(it);
    }
    frames
}

#[test]
fn any_frame_is_sent_or_dropped_without_an_error() {
    let frames = any_frames(4000);
    let mut router = Router::new();
    router.bench.source = {
        let mut source = (*router.bench.source).clone();
        source.instructions = 1_000_000;
        Arc::new(source)
    };
    router.link = router.bench.link();
    let out = router.run(&frames);
    let left = out
        .iter()
        .filter(|it| it.to == "error-drop" && it.reason.is_none());
    assert_eq!(left.count(), 0, "the script decides about every frame");
    for kind in ["interface-output", "error-drop"] {
        assert!(
            out.iter().filter(|it| it.to == kind).count() > 100,
            "{kind}"
        );
    }
}

#[test]
fn vectors_of_every_length_and_level_have_the_same_verdicts() {
    let bench = Bench::new(
        r#"
        local routes = volley.lpm("routes")
        routes:add("10.0.0.0/16", { interface = "pg1", mac = "02:00:00:00:00:77" })
        routes:add("10.9.0.0/16", { interface = "pg0", mac = "02:00:00:00:00:78" })
        function vector(v)
          local mine = v:to_me()
          local ip = v:ethertype(0x0800, mine)
          local good, bad = v:check_ip4(ip)
          local hit = v:lookup(routes, good)
          v:apply(hit)
          v:send(hit)
          v:drop(bad, "invalid")
          v:drop(v:minus(good, hit), "no-route")
          v:drop(v:minus(v:minus(ip, good), bad), "ttl-expired")
          v:drop(v:minus(v:all(), mine), "not-for-us")
          v:drop(v:rest(), "unsupported")
        end"#,
    );
    // The bench compares vectors of one packet, which are read one by one, with those of 256.
    let out = bench.run(&any_frames(1500));
    assert_eq!(bench.errors(), Vec::<String>::new());
    let of = |reason: &str| {
        let all = out.iter();
        all.filter(|it| it.reason.as_deref() == Some(reason))
            .count()
    };
    for reason in [
        "invalid",
        "no-route",
        "ttl-expired",
        "not-for-us",
        "unsupported",
    ] {
        assert!(of(reason) > 10, "{reason}: {}", of(reason));
    }
    for interface in [1, 2] {
        let sent = out.iter().filter(|it| it.to == "interface-output");
        assert!(sent.filter(|it| tx(it) == interface).count() > 10);
    }
}
