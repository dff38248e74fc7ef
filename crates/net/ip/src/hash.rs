//! Flow hashes for load balancing: section 9 of `docs/forwarding-rules.md`. The hash is VPP's usual one, so that a flow takes
//! the path that operators of other routers expect.

use volley_wire::IpProto;

/// B. Jenkins' lookup3 mixing, as three words.
fn mix3(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    for (ra, rb, rc) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(ra);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(rb);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(rc);
        b = b.wrapping_add(a);
    }
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// B. Jenkins' older 64-bit mixing.
fn mix64(mut a: u64, mut b: u64, mut c: u64) -> u64 {
    for (s0, s1, s2) in [(43, 9, 8), (38, 23, 5), (35, 49, 11), (12, 18, 22)] {
        a = a.wrapping_sub(b.wrapping_add(c)) ^ (c >> s0);
        b = b.wrapping_sub(c.wrapping_add(a)) ^ (a << s1);
        c = c.wrapping_sub(a.wrapping_add(b)) ^ (b >> s2);
    }
    c
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Both ports of a TCP or UDP header at `at`, as the little-endian word of the four bytes.
fn ports(packet: &[u8], proto: u8, at: usize) -> u32 {
    if matches!(proto, 6 | 17) {
        word(packet, at)
    } else {
        0
    }
}

fn byte(packet: &[u8], at: usize) -> u8 {
    packet.get(at).copied().unwrap_or(0)
}

/// Hash of an IPv4 packet, trimmed to its total length. Fragments have no ports.
pub fn hash4(packet: &[u8], router_id: u32) -> u32 {
    let fragment = u16::from_be_bytes([byte(packet, 6), byte(packet, 7)]) & 0x3fff != 0;
    let ports = if fragment { 0 } else { ports4(packet) };
    flow4(packet, router_id, ports)
}

/// Hash that the IPv4 datagram of a first fragment would have unfragmented.
pub(crate) fn whole4(packet: &[u8], router_id: u32) -> u32 {
    flow4(packet, router_id, ports4(packet))
}

fn ports4(packet: &[u8]) -> u32 {
    let at = usize::from(byte(packet, 0) & 15) * 4;
    ports(packet, byte(packet, 9), at)
}

fn flow4(packet: &[u8], router_id: u32, ports: u32) -> u32 {
    mix3(
        word(packet, 12) ^ router_id,
        word(packet, 16) ^ u32::from(byte(packet, 9)),
        ports,
    )
}

/// Hash of an IPv6 packet, trimmed to its length.
pub fn hash6(packet: &[u8], router_id: u32) -> u32 {
    let (proto, at) = behind_hop_by_hop(packet);
    flow6(packet, router_id, proto, at)
}

/// Hash that the IPv6 datagram of a first fragment would have unfragmented.
pub(crate) fn whole6(packet: &[u8], router_id: u32) -> u32 {
    const FRAGMENT: u8 = IpProto::FRAGMENT.0;
    let (proto, at) = match behind_hop_by_hop(packet) {
        (FRAGMENT, at) => (byte(packet, at), at + 8),
        found => found,
    };
    flow6(packet, router_id, proto, at)
}

/// The next header behind the fixed header or the hop-by-hop options, and its offset.
fn behind_hop_by_hop(packet: &[u8]) -> (u8, usize) {
    match byte(packet, 6) {
        0 => (
            byte(packet, 40),
            40 + 8 * (usize::from(byte(packet, 41)) + 1),
        ),
        proto => (proto, 40),
    }
}

fn flow6(packet: &[u8], router_id: u32, proto: u8, at: usize) -> u32 {
    let label = word(packet, 0) & u32::from_le_bytes([0x00, 0x0f, 0xff, 0xff]);
    let a = long(packet, 8) ^ long(packet, 16);
    let b = long(packet, 24) ^ long(packet, 32) ^ u64::from(proto);
    let c = u64::from(ports(packet, proto, at)) ^ u64::from(router_id) << 32 ^ u64::from(label);
    mix64(a, b, c) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet4(src: [u8; 4], dst: [u8; 4], proto: u8) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, proto, 0, 0];
        p.extend(src);
        p.extend(dst);
        p.extend([0x04, 0xd2, 0x00, 0x50, 0, 8, 0, 0]);
        p
    }

    #[test]
    fn lookup3_final_matches_its_published_meaning() {
        // Each field that the hash uses changes it.
        let base = hash4(&packet4([10, 0, 0, 1], [10, 1, 0, 1], 17), 0);
        assert_ne!(base, hash4(&packet4([10, 0, 0, 2], [10, 1, 0, 1], 17), 0));
        assert_ne!(base, hash4(&packet4([10, 0, 0, 1], [10, 1, 0, 2], 17), 0));
        assert_ne!(base, hash4(&packet4([10, 0, 0, 1], [10, 1, 0, 1], 1), 0));
        assert_ne!(base, hash4(&packet4([10, 0, 0, 1], [10, 1, 0, 1], 17), 7));
    }

    #[test]
    fn the_bucket_that_others_expect() {
        // 20.0.0.1 -> 10.0.0.1, source, destination and protocol, router id 0x11111111: bucket 1 of 2.
        let mut p = packet4([20, 0, 0, 1], [10, 0, 0, 1], 17);
        p[6] = 0x20; // ports off, as with a fragment
        assert_eq!(hash4(&p, 0x1111_1111) & 1, 1);
        // 3000:1::1 -> 3000::1 likewise: bucket 1 of 2. The packet ends before its ports, so they are 0.
        let mut p = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
        p.extend([0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        p.extend([0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(hash6(&p, 0x1111_1111) & 1, 1);
    }

    #[test]
    fn fragments_of_a_datagram_stay_together() {
        let mut first = packet4([10, 0, 0, 1], [10, 1, 0, 1], 17);
        first[6] = 0x20;
        let mut second = packet4([10, 0, 0, 1], [10, 1, 0, 1], 17);
        second[7] = 1;
        second[20] = 99;
        assert_eq!(hash4(&first, 0), hash4(&second, 0));
    }

    #[test]
    fn any_bytes_have_a_hash() {
        for n in 0..60 {
            let bytes = vec![0xff; n];
            let _ = (hash4(&bytes, 0), hash6(&bytes, 0));
            let _ = (whole4(&bytes, 0), whole6(&bytes, 0));
        }
    }

    /// An IPv6 packet with these headers, by protocol number, and 8 bytes of the last one.
    fn packet6(chain: &[u8]) -> Vec<u8> {
        let (last, before) = chain.split_last().unwrap();
        let mut p = vec![0x60, 1, 2, 3, 0, 0, chain[0], 64];
        p.extend((0..32).map(|n| n as u8 * 7));
        for (n, _) in before.iter().enumerate() {
            p.extend([chain[n + 1], 0, 1, 4, 0, 0, 0, 0]);
        }
        p.extend([0x04, 0xd2, 0x00, 0x50, 0, 8, *last, 0]);
        p
    }

    #[test]
    fn a_first_fragment_has_its_flow_s_hash() {
        for (proto, options) in [(17, 0), (6, 0), (1, 0), (17, 4), (6, 40)] {
            let mut whole = packet4([10, 0, 0, 1], [10, 1, 0, 1], proto);
            whole[0] += options as u8 / 4;
            whole.splice(20..20, std::iter::repeat_n(1, options));
            let mut first = whole.clone();
            first[6] = 0x20;
            assert_eq!(whole4(&first, 3), hash4(&whole, 3), "{proto} {options}");
            assert_eq!(whole4(&whole, 3), hash4(&whole, 3));
        }
        // Position of the fragment header: behind the headers that every router processes (RFC 8200, 4.5).
        let chains: [(&[u8], usize); 9] = [
            (&[17], 0),
            (&[6], 0),
            (&[58], 0),
            (&[0, 17], 1),
            (&[43, 17], 1),
            (&[60, 17], 0),
            (&[0, 60, 6], 1),
            (&[0, 60, 43, 6], 3),
            (&[60, 43, 17], 2),
        ];
        for (chain, at) in chains {
            let whole = packet6(chain);
            let mut cut = chain.to_vec();
            cut.insert(at, 44);
            let first = packet6(&cut);
            assert_eq!(whole6(&first, 3), hash6(&whole, 3), "{chain:?}");
            assert_eq!(whole6(&whole, 3), hash6(&whole, 3), "{chain:?}");
        }
        // The hash of the fragment alone differs.
        assert_ne!(hash6(&packet6(&[44, 17]), 3), hash6(&packet6(&[17]), 3));
    }
}
