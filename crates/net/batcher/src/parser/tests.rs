use super::*;
use crate::header::{HeaderField, HeaderLink};
use proptest::prelude::*;

fn features(program: &Program, packet: &[u8], whole: bool) -> Features {
    let mut out = Features::default();
    program.parse(packet, whole, &mut out, &mut Trail::default());
    out
}

fn ethernet(kind: u16) -> Vec<u8> {
    let mut p = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    p.extend(kind.to_be_bytes());
    p
}

fn ip4(protocol: u8, dst: [u8; 4], behind: &[u8]) -> Vec<u8> {
    let len = (20 + behind.len()) as u16;
    let mut p = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 198, 18, 0, 1];
    p[2..4].copy_from_slice(&len.to_be_bytes());
    p.extend(dst);
    p.extend(behind);
    p
}

fn udp(dst: u16, behind: &[u8]) -> Vec<u8> {
    let mut p = vec![0x12, 0x34];
    p.extend(dst.to_be_bytes());
    p.extend([0, 0, 0, 0]);
    p.extend(behind);
    p
}

fn over_ethernet(kind: u16, behind: &[u8]) -> Vec<u8> {
    [ethernet(kind), behind.to_vec()].concat()
}

#[test]
fn headers_are_walked_into_tunnels() {
    let inner = over_ethernet(0x0800, &ip4(6, [10, 0, 0, 9], &[0; 20]));
    let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &inner].concat();
    let packet = over_ethernet(0x0800, &ip4(17, [192, 0, 2, 1], &udp(4789, &vxlan)));
    let mut program = Program::new(&[]);
    let outer = program.want("ip4.dst").unwrap();
    let within = program.want("ip4@2.dst").unwrap();
    let vni = program.want("vxlan.vni").unwrap();
    program.finish();
    let got = features(&program, &packet, true);
    let value = |w: Wanted| got.values[w.field.unwrap().0 as usize];
    assert_eq!(
        (value(outer), value(within), value(vni)),
        (0xc000_0201, 0x0a00_0009, 42)
    );
    assert_eq!(
        program.path_text(got.path),
        "ethernet/ip4/udp/vxlan/ethernet/ip4"
    );
    let all = outer.bit | within.bit | vni.bit;
    assert_eq!(got.seen, all);
    for cut in 0..packet.len() {
        let cut = features(&program, &packet[..cut], true);
        assert_eq!(cut.seen & !all, 0);
    }
}

#[test]
fn headers_and_fields_have_the_names_of_the_table() {
    let packet = over_ethernet(0x0800, &ip4(17, [10, 0, 0, 1], &udp(53, &[])));
    let mut program = Program::new(&[]);
    let wants = [
        "udp.dst",
        "udp.dport",
        "eth.type",
        "ethernet.type",
        "ip4.ihl",
        "ip4.proto",
    ];
    let wants = wants.map(|name| program.want(name).unwrap());
    assert_eq!(
        (wants[0], wants[2]),
        (wants[1], wants[3]),
        "one slot for a field with two names"
    );
    program.finish();
    let got = features(&program, &packet, false);
    let values = wants.map(|want| got.values[want.field.unwrap().0 as usize]);
    assert_eq!(values, [53, 53, 0x0800, 0x0800, 5, 17]);
    assert_eq!(program.number("eth"), program.number("ethernet"));
    assert!(
        matches!(program.want("udp.options"), Err(WantError::NoField(known)) if known[0] == "sport")
    );
    // An operator's header is found by its name, even if this is an alternative name of a built-in one.
    let own = PathHeader {
        name: "eth".into(),
        length: 4,
        length_at: None,
        length_mask: None,
        length_scale: None,
        next_at: None,
        next: Vec::new(),
        after: Vec::new(),
        fields: vec!["color 8 8".parse().unwrap()],
        next_bytes: None,
    };
    assert!(Program::new(&[own]).want("eth.color").is_ok());
}

#[test]
fn the_walk_ends_when_nothing_wanted_can_come() {
    let mut program = Program::new(&[]);
    let (four, six) = (program.want("ip4").unwrap(), program.want("ip6").unwrap());
    program.finish();
    let packet = over_ethernet(0x0800, &ip4(17, [10, 0, 0, 1], &udp(53, &[])));
    let got = features(&program, &packet, false);
    assert_eq!(got.seen, four.bit);
    assert_eq!(
        program.path_text(got.path),
        "ethernet/ip4",
        "udp was not looked at"
    );
    let arp = features(&program, &over_ethernet(0x0806, &[0; 28]), false);
    assert_eq!(
        (arp.seen & (four.bit | six.bit), program.path_text(arp.path)),
        (0, "ethernet".into())
    );
}

#[test]
fn fragments_have_no_layer_four() {
    let mut program = Program::new(&[]);
    program.want("udp.dst").unwrap();
    program.finish();
    let mut packet = over_ethernet(0x0800, &ip4(17, [10, 0, 0, 1], &udp(53, &[])));
    assert_ne!(features(&program, &packet, false).seen, 0);
    packet[14 + 7] = 1;
    assert_eq!(features(&program, &packet, false).seen, 0);
}

#[test]
fn variable_lengths() {
    let program = Program::new(&[]);
    let path = |packet: &[u8]| program.path_text(features(&program, packet, true).path);
    let gre = [
        &[0xb0, 0, 0x08, 0][..],
        &[0; 12],
        &ip4(6, [10, 0, 0, 1], &[0x50; 20]),
    ]
    .concat();
    let packet = over_ethernet(
        0x8100,
        &[&[0, 5, 0x08, 0][..], &ip4(47, [10, 0, 0, 1], &gre)].concat(),
    );
    assert_eq!(path(&packet), "ethernet/vlan/ip4/gre/ip4/tcp");
    let mpls = [
        &[0, 1, 0x20, 64, 0, 1, 0x31, 64][..],
        &ip4(1, [10, 0, 0, 1], &[8, 0, 0, 0]),
    ]
    .concat();
    assert_eq!(
        path(&over_ethernet(0x8847, &mpls)),
        "ethernet/mpls/mpls/mpls-payload/ip4/icmp"
    );
}

#[test]
fn operators_teach_protocols() {
    let link = |text: &str| text.parse::<HeaderLink>().unwrap();
    let own = PathHeader {
        name: "tag".into(),
        length: 4,
        length_at: Some(0),
        length_mask: Some(0xf0),
        length_scale: Some(4),
        next_at: Some(2),
        next: vec![link("0x800 ip4"), link("0x9 nowhere")],
        after: vec![link("0x88b5 ethernet")],
        fields: vec!["color 8 8".parse::<HeaderField>().unwrap()],
        next_bytes: None,
    };
    let mut program = Program::new(std::slice::from_ref(&own));
    assert_eq!(program.missing(&own), ["nowhere"]);
    let color = program.want("tag.color").unwrap();
    assert!(
        matches!(program.want("tag.colour"), Err(WantError::NoField(known)) if known == ["color"])
    );
    assert!(matches!(program.want("tagg"), Err(WantError::NoHeader(_))));
    program.finish();
    let tag = [
        &[0x10, 7, 0x08, 0, 0, 0, 0, 0][..],
        &ip4(6, [10, 0, 0, 1], &[0x50; 20]),
    ]
    .concat();
    let packet = over_ethernet(0x88b5, &tag);
    let got = features(&program, &packet, true);
    assert_eq!(got.values[color.field.unwrap().0 as usize], 7);
    assert_eq!(program.path_text(got.path), "ethernet/tag/ip4/tcp");
}

#[test]
fn bits_of_bytes() {
    assert_eq!(bits(&[0x12, 0x34, 0x56], 4, 12), 0x234);
    assert_eq!(bits(&[0xff; 16], 0, 128), u128::MAX);
    assert_eq!(bits(&[0xab], 0, 8), 0xab);
    assert_eq!(bits(&[0xab], 4, 8), 0, "behind the end there is nothing");
}

proptest! {
    /// Arbitrary bytes are parsed without a panic, and every header counted as seen lies inside.
    #[test]
    fn any_bytes(packet in prop::collection::vec(any::<u8>(), 0..200), kind in 0usize..8) {
        let mut packet = packet;
        let kinds = [0x0800u16, 0x86dd, 0x8100, 0x8847, 0x8864, 0x0806, 0, 0x88a8];
        if packet.len() > 14 {
            packet[12..14].copy_from_slice(&kinds[kind].to_be_bytes());
        }
        let mut program = Program::new(&[]);
        for want in ["ip4.dst", "ip6.dst", "udp.dst", "ip4@2.src", "tcp@3.dst", "gtpu.teid"] {
            program.want(want).unwrap();
        }
        program.finish();
        let short = features(&program, &packet, false);
        let long = features(&program, &packet, true);
        prop_assert_eq!(short.seen, long.seen, "ending early loses nothing");
    }
}
