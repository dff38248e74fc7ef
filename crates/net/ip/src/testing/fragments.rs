//! UDP datagrams split into fragments that begin with the IP header.

/// Bytes whose values depend on their offsets.
pub(crate) fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A fragment with the bytes `from` to `to` of `body`.
pub(crate) fn ip4(id: u16, body: &[u8], from: usize, to: usize) -> Vec<u8> {
    let more = if to < body.len() { 0x2000 } else { 0 };
    let flags = more | (from / 8) as u16;
    let mut p = vec![0x45, 0];
    p.extend(((20 + to - from) as u16).to_be_bytes());
    p.extend(id.to_be_bytes());
    p.extend(flags.to_be_bytes());
    p.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = volley_wire::checksum::checksum(&p);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p.extend(&body[from..to]);
    p
}

pub(crate) fn ip6(id: u32, body: &[u8], from: usize, to: usize) -> Vec<u8> {
    let word = from as u16 | u16::from(to < body.len());
    let mut p = vec![0x60, 0, 0, 0];
    p.extend(((8 + to - from) as u16).to_be_bytes());
    p.extend([44, 64]);
    p.extend([1; 16]);
    p.extend([2; 16]);
    p.extend([17, 0]);
    p.extend(word.to_be_bytes());
    p.extend(id.to_be_bytes());
    p.extend(&body[from..to]);
    p
}

/// All fragments of a datagram with `part` bytes each, built by `one`.
pub(crate) fn all_of(
    body: &[u8],
    part: usize,
    one: impl Fn(&[u8], usize, usize) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    let ends = |from: usize| (from, (from + part).min(body.len()));
    let parts = (0..body.len()).step_by(part).map(ends);
    parts.map(|(from, to)| one(body, from, to)).collect()
}
