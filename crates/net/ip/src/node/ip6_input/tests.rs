use super::*;
use volley_fib::Fib;
use volley_graph::Domain;
use volley_graph::harness::{In, Out, run};
use volley_iface::IfIdx;

fn packet(src: &str, dst: &str) -> Vec<u8> {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let mut p = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    p.extend(address(src));
    p.extend(address(dst));
    p.extend([4, 210, 0, 80, 0, 8, 0, 0]);
    p
}

fn with(at: usize, byte: u8) -> Vec<u8> {
    let mut p = packet("2001:db8::1", "2001:db8:1::1");
    p[at] = byte;
    p
}

fn nd(src: &str, dst: &str) -> Vec<u8> {
    let mut p = packet(src, dst);
    (p[6], p[40]) = (58, 135);
    p
}

fn outcome(out: &Out) -> &str {
    out.reason.as_deref().unwrap_or(&out.to)
}

#[test]
fn packets_are_judged_in_the_order_of_the_rules() {
    let good = "2001:db8::1";
    let cases = vec![
        (packet(good, "2001:db8:1::1"), "ip6-lookup"),
        (packet(good, "2001:db8:1::1")[..39].to_vec(), "too-short"),
        (with(0, 0x40), "bad-version"),
        (with(5, 9), "truncated"),
        (packet(good, "ff02::1"), "multicast-destination"),
        (packet(good, "::1"), "martian-destination"),
        (packet(good, "::"), "martian-destination"),
        (packet(good, "::2"), "ip6-lookup"),
        (packet(good, "fe80::1"), "link-local"),
        (packet("febf::1", good), "link-local"),
        (packet("fec0::1", good), "ip6-lookup"),
        (nd("fe80::1", good), "nd-input"),
        (nd(good, "fe80::1"), "nd-input"),
        (nd(good, "ff02::1"), "multicast-destination"),
        (nd(good, "2001:db8:1::1"), "ip6-lookup"),
        (with(7, 1), "ip6-icmp-error"),
        (with(7, 0), "ip6-icmp-error"),
        (packet("::", good), "martian-source"),
        (packet("ff05::1", good), "martian-source"),
        (packet("::ffff:10.0.0.1", good), "martian-source"),
        (with(6, 0), "ip6-hop-by-hop"),
    ];
    let packets: Vec<In> = cases.iter().map(|(p, _)| In::new(p)).collect();
    for (packet, (_, want)) in packets.iter().zip(&cases) {
        assert_eq!(
            outcome(&bench(std::slice::from_ref(packet))[0]),
            *want,
            "{packet:02x?}"
        );
    }
    let mut got: Vec<String> = bench(&packets)
        .iter()
        .map(|o| outcome(o).to_owned())
        .collect();
    let mut want: Vec<String> = cases.iter().map(|c| c.1.to_owned()).collect();
    got.sort();
    want.sort();
    assert_eq!(got, want);
}

#[test]
fn nothing_escapes_the_quick_look() {
    let starts = [
        0,
        1,
        0xffff,
        0x2001_0db8,
        0xfe7f_ffff,
        0xfe80_0000,
        0xfebf_ffff,
        0xfec0_0000,
        0xff00_0000,
    ];
    let addresses = starts.iter().flat_map(|&a| {
        [0, 1, 0xffff]
            .iter()
            .flat_map(move |&b| [[a, 0, b, 1], [a, b, 0, 0], [a, 0, 0xffff, b], [0, 0, a, b]])
    });
    let all: Vec<[u32; 4]> = addresses.collect();
    let mut seen = [0; 2];
    for first in [
        [0x6000_0000, 0x0008_1140],
        [0x6000_0000, 0x0008_0040],
        [0x6fff_ffff, 1],
        [0x4000_0000, 0x0008_1140],
    ] {
        for (&src, &dst) in all.iter().flat_map(|s| all.iter().map(move |d| (s, d))) {
            for len in [39, 40, 48, 65_535] {
                let verdict = judge(len, first, src, dst);
                assert!(
                    verdict == 0 || suspicious(len, first, [src[0], src[1]], [dst[0], dst[1]]) != 0,
                    "{len} {first:x?} {src:x?} {dst:x?}"
                );
                seen[usize::from(verdict == 0)] += 1;
            }
        }
    }
    assert!(seen[0] > 1000 && seen[1] > 1000, "{seen:?}");
}

#[test]
fn link_local_packets_are_the_kernels_where_it_has_a_tap() {
    let at = |p: &[u8]| outcome(&bench(&[In::new(p).rx(4)])[0]).to_owned();
    assert_eq!(at(&packet("fe80::2", "fe80::1")), "linux-cp-punt");
    assert_eq!(at(&packet("2001:db8::1", "fe80::1")), "linux-cp-punt");
    assert_eq!(at(&nd("fe80::2", "fe80::1")), "nd-input");
    assert_eq!(at(&packet("2001:db8::1", "2001:db8:1::1")), "ip6-lookup");
    assert_eq!(at(&packet("fe80::2", "::1")), "martian-destination");
}

#[test]
fn groups_of_the_link_are_for_interfaces_where_a_feature_listens() {
    let at = |rx, p: &[u8]| outcome(&bench(&[In::new(p).rx(rx)])[0]).to_owned();
    for (src, dst, want) in [
        ("fe80::2", "ff02::1:2", "ip6-local"),
        ("2001:db8::2", "ff02::1:2", "ip6-local"),
        ("::", "ff02::1:2", "martian-source"),
        ("fe80::2", "ff05::1:3", "multicast-destination"),
        ("fe80::2", "2001:db8::1", "link-local"),
    ] {
        assert_eq!(at(3, &packet(src, dst)), want, "{src} {dst}");
    }
    let one_hop = {
        let mut p = packet("fe80::2", "ff02::1:2");
        p[7] = 1;
        p
    };
    assert_eq!(at(3, &one_hop), "ip6-local");
    assert_eq!(at(1, &one_hop), "multicast-destination");
}

fn bench(packets: &[In]) -> Vec<Out> {
    let domain = Domain::new();
    let fib = Fib::new(&domain).dataplane6();
    let table = IfTable::new(1);
    table.set_lcp_tap(IfIdx(4), Some(IfIdx(9)));
    table.set(IfIdx(3), Flag::LinkUdp, true);
    run(packets, &domain, move |_| {
        Ip6Input::new(fib.clone(), table.clone(), ArcId(0), 256)
    })
}
