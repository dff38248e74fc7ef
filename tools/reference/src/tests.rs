use super::*;

const ME: [u8; 6] = [2, 0xfe, 0, 0, 0, 1];

fn hop(n: u8) -> Hop {
    Hop {
        mac: [2, 0, 0, 0, 1, n],
        source: [2, 0xfe, 0, 0, 0, 2],
        tx: format!("pg{n}"),
        mtu: 1500,
        address: Some(0xc612_0001 + (u32::from(n) << 8)),
    }
}

fn model() -> Reference {
    let mut v4 = Table::new(
        &[(0x0a00_0000, 8, 0), (0x0a01_0000, 16, 1)],
        vec![hop(1), hop(2)],
    );
    v4.set(0x0a01_0203, 32, To::Drop("ip4-lookup: drop-route"));
    let v6 = Table::new(&[(0x2001_0db8 << 96, 32, 1)], vec![hop(1), hop(2)]);
    Reference::new(ME, v4, v6)
}

/// 192.0.2.9 to 10.1.0.1 with TTL 64 and two bytes of trailer; the checksum was computed by hand.
fn packet() -> Vec<u8> {
    let mut p = ME.to_vec();
    p.extend([2, 0, 0, 0, 0, 9, 8, 0]);
    p.extend([
        0x45, 0, 0, 22, 0, 0, 0, 0, 64, 17, 0xae, 0xcc, 192, 0, 2, 9, 10, 1, 0, 1, 0xaa, 0xbb, 1, 2,
    ]);
    p
}

#[test]
fn the_longest_prefix_forwards_with_new_ttl_checksum_and_addresses() {
    let (tx, frames) = model().expect(&packet()).unwrap();
    let [frame] = &frames[..] else { panic!() };
    assert_eq!(tx, "pg2");
    let mut want = vec![2, 0, 0, 0, 1, 2, 2, 0xfe, 0, 0, 0, 2, 8, 0];
    want.extend([
        0x45, 0, 0, 22, 0, 0, 0, 0, 63, 17, 0xaf, 0xcc, 192, 0, 2, 9, 10, 1, 0, 1, 0xaa, 0xbb,
    ]);
    assert_eq!(*frame, want);
}

#[test]
fn drops_have_the_first_reason_in_the_order_of_the_rules() {
    let cases: [(usize, u8, &str); 7] = [
        (0, 4, "ethernet-input: not-my-mac"),
        (12, 0x81, "ethernet-input: unknown-vlan"),
        (14, 0x55, "ip4-input: bad-version"),
        (14, 0x44, "ip4-input: bad-header-length"),
        (16, 1, "ip4-input: truncated"),
        (22, 1, "ip4-input: bad-checksum"),
        (24, 0, "ip4-input: bad-checksum"),
    ];
    for (at, byte, reason) in cases {
        let mut p = packet();
        p[at] = byte;
        assert_eq!(model().judge(&p), Verdict::Dropped(reason), "byte {at}");
    }
    assert_eq!(
        model().judge(&packet()[..13]),
        Verdict::Dropped("ethernet-input: too-short")
    );
    assert_eq!(
        model().judge(&packet()[..33]),
        Verdict::Dropped("ip4-input: too-short")
    );
}

#[test]
fn a_tag_with_a_priority_only_is_taken_off() {
    let tagged = |tags: &[u8], length: usize| {
        let mut frame = [&packet()[..12], tags, &packet()[12..]].concat();
        frame.truncate(length);
        model().judge(&frame)
    };
    let all = usize::MAX;
    assert_eq!(tagged(&[0x81, 0, 0xe0, 0], all), model().judge(&packet()));
    assert_eq!(tagged(&[0x88, 0xa8, 0, 0], all), model().judge(&packet()));
    for (tags, length, reason) in [
        (&[0x81, 0, 0xe0, 1][..], all, "ethernet-input: unknown-vlan"),
        (&[0x91, 0, 0, 0], all, "ethernet-input: unknown-vlan"),
        (&[0x81, 0, 0, 0], 17, "ethernet-input: unknown-vlan"),
        (
            &[0x81, 0, 0, 0, 0x81, 0, 0, 5],
            21,
            "vlan-input: truncated-tag",
        ),
        (
            &[0x81, 0, 0, 0, 0x81, 0, 0, 5],
            all,
            "vlan-input: unknown-vlan",
        ),
        (
            &[0x81, 0, 0, 0, 0x81, 0, 0, 5, 0x81, 0, 0, 0],
            all,
            "vlan-input: too-many-tags",
        ),
    ] {
        assert_eq!(
            tagged(tags, length),
            Verdict::Dropped(reason),
            "{tags:?} {length}"
        );
    }
}

#[test]
fn options_are_walked() {
    assert_eq!(options4(&[1, 1, 1, 0]), Ok(None));
    assert_eq!(options4(&[0x94, 4, 0, 0]), Ok(None));
    assert_eq!(options4(&[0, 131, 9, 9]), Ok(None));
    assert_eq!(options4(&[1, 7, 7, 4, 0, 0, 0, 0]), Ok(Some(1)));
    assert_eq!(options4(&[7, 7, 8, 0, 0, 0, 0, 0]), Ok(None));
    assert_eq!(options4(&[68, 8, 5, 0, 0, 0, 0, 0]), Ok(None));
    for bad in [
        &[7, 7, 3, 0, 0, 0, 0][..],
        &[7, 7, 5, 0, 0, 0, 0],
        &[7, 3, 4, 7, 3, 4],
        &[68, 4, 5, 0xf0],
        &[68, 8, 5, 1, 0, 0, 0, 0],
    ] {
        assert_eq!(options4(bad), Err("ip4-options: bad-options"), "{bad:?}");
    }
    for bad in [&[0x94][..], &[0x94, 1], &[0x94, 5, 0, 0], &[7, 0, 0, 0]] {
        assert_eq!(options4(bad), Err("ip4-options: bad-options"), "{bad:?}");
    }
    assert_eq!(options4(&[131, 3, 4, 0]), Err("ip4-options: source-route"));
}

/// RFC 791, 3.2: the route is recorded in the first fragment only, the router alert is in all, offsets and flags are the
/// packet's.
#[test]
fn long_packets_are_cut_as_the_rules_say() {
    let options = [7, 7, 4, 0, 0, 0, 0, 0x94, 4, 0, 0, 1];
    let mut p = packet()[..34].to_vec();
    p[14] = 0x48;
    p.extend(options);
    p.extend((0..2943).map(|n| n as u8));
    let total = (p.len() - 14) as u16;
    p[16..18].copy_from_slice(&total.to_be_bytes());
    p[20..22].copy_from_slice(&0x2005u16.to_be_bytes());
    sum_header(&mut p);
    let (tx, frames) = model().expect(&p).unwrap();
    assert_eq!((tx.as_str(), frames.len()), ("pg2", 3));
    let parts: Vec<_> = frames.iter().map(|f| (be16(f, 20), f.len() - 46)).collect();
    assert_eq!(
        parts,
        [(0x2005, 1464), (0x2005 + 183, 1464), (0x2005 + 366, 15)]
    );
    let recorded = [7, 7, 8, 198, 18, 2, 1, 0x94, 4, 0, 0, 1];
    assert_eq!(frames[0][34..46], recorded);
    assert_eq!(frames[2][34..46], [1, 1, 1, 1, 1, 1, 1, 0x94, 4, 0, 0, 1]);
    let body: Vec<u8> = frames.iter().flat_map(|f| f[46..].to_vec()).collect();
    assert_eq!(body, p[46..]);
    assert!(
        frames
            .iter()
            .all(|f| ones_sum(&f[14..46]) == 0xffff && f[22] == 63)
    );
    p[20] |= 0x40;
    sum_header(&mut p);
    assert_eq!(
        model().judge(&p),
        Verdict::Dropped("ip4-rewrite: frag-needed")
    );
    assert!(!has_timestamp(&p));
    p[34] = TIMESTAMP;
    assert!(has_timestamp(&p));
}

/// The last fragment may have the maximum length, even if that is not a multiple of eight.
#[test]
fn the_last_fragment_is_as_long_as_fits() {
    let frame = [
        vec![0; 12],
        vec![8, 0, 0x46],
        vec![0; 23],
        vec![7; 1476 + 1472],
    ]
    .concat();
    let lengths: Vec<_> = cut(&frame, 1500).iter().map(|f| f.len() - 38).collect();
    assert_eq!(lengths, [1472, 1476]);
}

#[test]
fn ip6_is_forwarded_and_judged() {
    let mut p = ME.to_vec();
    p.extend([2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 1, 59, 64]);
    p.extend((0x2001_0002u128 << 96 | 9).to_be_bytes());
    p.extend((0x2001_0db8u128 << 96 | 1).to_be_bytes());
    p.extend([0x77, 0x88]);
    let (tx, frames) = model().expect(&p).unwrap();
    let [frame] = &frames[..] else { panic!() };
    assert_eq!(
        (tx.as_str(), frame.len(), frame[21], frame[54]),
        ("pg2", 55, 63, 0x77)
    );
    p[38] = 0xff;
    assert_eq!(
        model().judge(&p),
        Verdict::Dropped("ip6-input: multicast-destination")
    );
    p[38..54].fill(0);
    assert_eq!(
        model().judge(&p),
        Verdict::Dropped("ip6-input: martian-destination")
    );
    assert_eq!(hop_by_hop(&[59, 0, 5, 2, 0, 0, 1, 0]), Ok(()));
    assert_eq!(
        hop_by_hop(&[59, 0, 0xc2, 4, 0, 0, 0, 0]),
        Err("ip6-hop-by-hop: bad-hop-by-hop")
    );
    assert_eq!(
        hop_by_hop(&[59, 0, 0x40, 4, 0, 0, 0, 0]),
        Err("ip6-hop-by-hop: unknown-option")
    );
}
