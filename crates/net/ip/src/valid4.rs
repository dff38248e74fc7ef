//! Validity of an IPv4 header and its addresses: the exact rules of ip4-input for one packet. [`volley_wire::ip4::suspicious`] decides
//! whether they are needed.

use crate::node::ip4_input::Count;
use volley_graph::Counters;

/// Whether the first byte of an address is one that no host on the wire may have (RFC 1812, 5.3.7).
#[inline(always)]
fn reserved(first: u32, from: u32) -> bool {
    first == 0 || first == 127 || first >= from
}

/// The verdict on one packet; `sum` is the sum of its whole header. Later lines take precedence, so they are in reverse order.
#[inline(always)]
pub(crate) fn judge(len: u32, header: [u32; 5], sum: u32) -> u32 {
    let [w0, _, w2, src, dst] = header;
    let (ihl, total, ttl) = (w0 >> 24 & 15, w0 & 0xffff, w2 >> 24);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let mut v = if ihl > 5 { Count::Options.code() } else { 0 };
    v = if reserved(src >> 24, 224) {
        Count::MartianSource.code()
    } else {
        v
    };
    v = if ttl <= 1 {
        Count::TtlExpired.code()
    } else {
        v
    };
    v = if src >> 16 == 0xa9fe || dst >> 16 == 0xa9fe {
        Count::LinkLocal.code()
    } else {
        v
    };
    v = if reserved(dst >> 24, 240) {
        Count::MartianDestination.code()
    } else {
        v
    };
    v = if dst == u32::MAX {
        Count::Broadcast.code()
    } else {
        v
    };
    v = if dst >> 28 == 14 {
        Count::Multicast.code()
    } else {
        v
    };
    v = if folded != 0xffff {
        Count::BadChecksum.code()
    } else {
        v
    };
    v = if total > len {
        Count::Truncated.code()
    } else {
        v
    };
    v = if total < 4 * ihl {
        Count::BadTotalLength.code()
    } else {
        v
    };
    v = if ihl < 5 {
        Count::BadHeaderLength.code()
    } else {
        v
    };
    v = if w0 >> 28 != 4 {
        Count::BadVersion.code()
    } else {
        v
    };
    if len < 20 { Count::TooShort.code() } else { v }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_wire::ip4::{add_up, suspicious};

    #[test]
    fn nothing_escapes_the_quick_look() {
        // Every field at its limits, with right and wrong checksums: a packet is suspicious exactly if there is a verdict.
        let edges: &[&[u32]] = &[
            &[
                0x4500_0014,
                0x4500_002e,
                0x4500_0013,
                0x4500_ffff,
                0x4400_0014,
                0x4600_0018,
                0x6500_0014,
                0x5500_0014,
            ],
            &[0, 0x0001_4000, u32::MAX],
            &[
                0x4011_0000,
                0x0011_0000,
                0x0111_0000,
                0x0211_0000,
                0xff11_0000,
            ],
            &[
                0x0a00_0001,
                0x00ff_ffff,
                0x0100_0000,
                0x7e00_0001,
                0x7f00_0001,
                0x8000_0000,
                0xa9fe_0001,
                0xdfff_ffff,
            ],
            &[
                0x0a01_0001,
                0,
                0x0100_0000,
                0x7fff_ffff,
                0xa9fd_ffff,
                0xa9fe_0000,
                0xe000_0000,
                0xf000_0000,
                u32::MAX,
            ],
        ];
        let mut seen = [0; 2];
        for index in 0..edges.iter().map(|e| e.len()).product::<usize>() {
            let mut left = index;
            let mut header: [u32; 5] = std::array::from_fn(|k| {
                let word = edges[k][left % edges[k].len()];
                left /= edges[k].len();
                word
            });
            let sum = add_up(header);
            let folded = (sum & 0xffff) + (sum >> 16);
            header[2] |= !((folded & 0xffff) + (folded >> 16)) & 0xffff;
            for wrong in [0, 1, 0x100] {
                let mut header = header;
                header[2] ^= wrong;
                for len in [0, 19, 20, 46, 1500, 65_535] {
                    let verdict = judge(len, header, add_up(header));
                    assert_eq!(
                        suspicious(len, header) == 0,
                        verdict == 0,
                        "{len} {header:08x?}"
                    );
                    seen[usize::from(verdict == 0)] += 1;
                }
            }
        }
        assert!(seen[0] > 1000 && seen[1] > 100, "{seen:?}");
    }
}
