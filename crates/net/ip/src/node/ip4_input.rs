//! ip4-input: validity of received IPv4 packets (RFC 1812, 5.2.2 and 5.3) and addresses that are never forwarded.
//!
//! The order of the checks is section 4 of `docs/forwarding-rules.md`. On entry the position is at the IP header; on exit
//! too, and the length is the packet's own total length.

use crate::IpTrace;
use volley_fib::V4;
use volley_fib::dataplane::DataPlane;
use volley_graph::{
    ArcId, Col, Column, Counters, Cx, Done, Isa, Node, Vector, Words, all_equal, counters, nexts,
    or_all,
};

nexts! {
    /// Where ip4-input sends packets.
    pub enum Next { Drop => "error-drop", Lookup => "ip4-lookup", Options => "ip4-options" }
}

counters! {
    /// What ip4-input counts.
    pub enum Count {
        /// the frame ends inside the IPv4 header
        TooShort = "too-short" (Error),
        /// the version is not 4
        BadVersion = "bad-version" (Error),
        /// the header length is below 20 bytes
        BadHeaderLength = "bad-header-length" (Error),
        /// the total length is below the header length
        BadTotalLength = "bad-total-length" (Error),
        /// the packet says it is longer than the frame
        Truncated = "truncated" (Error),
        /// the header checksum is wrong
        BadChecksum = "bad-checksum" (Error),
        /// the destination is multicast, which is not routed
        Multicast = "multicast-destination" (Error),
        /// the destination is the limited broadcast address
        Broadcast = "broadcast-destination" (Error),
        /// the destination is an address that is never on the wire
        MartianDestination = "martian-destination" (Error),
        /// an address is link-local (RFC 3927)
        LinkLocal = "link-local" (Error),
        /// the time to live is used up
        TtlExpired = "ttl-expired" (Error),
        /// the source is an address that no host may use
        MartianSource = "martian-source" (Error),
        /// packets with options, handed to ip4-options
        Options = "options" (Info),
    }
}

/// State of ip4-input.
pub struct Ip4Input {
    fib: DataPlane<V4>,
    arc: ArcId,
    header: Words<5>,
    verdict: Column,
    length: Column,
}

impl Ip4Input {
    /// For vectors of up to `size` packets; `arc` is `ip4-unicast`.
    pub fn new(fib: DataPlane<V4>, arc: ArcId, size: usize) -> Self {
        let column = || Column::new(size);
        Ip4Input {
            fib,
            arc,
            header: Words::new(size),
            verdict: column(),
            length: column(),
        }
    }
}

/// The words of a header, added up as 16-bit words (not folded).
#[inline(always)]
fn add_up(header: [u32; 5]) -> u32 {
    header.iter().map(|w| (w & 0xffff) + (w >> 16)).sum()
}

/// Whether an address starts with one of the bytes that no host on the wire may have (RFC 1812, 5.3.7).
#[inline(always)]
fn reserved(first: u32, from: u32) -> bool {
    first == 0 || first == 127 || first >= from
}

/// The verdict on one packet; `sum` is its whole header added up. Later lines win, so they stand in reverse order.
#[inline(always)]
fn judge(len: u32, header: [u32; 5], sum: u32) -> u32 {
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

/// Nonzero for a packet that [`judge`] has something to say about, in as few operations as all of them together allow:
/// what exactly is told apart only for those packets.
#[inline(always)]
fn suspicious(len: u32, header: [u32; 5]) -> u32 {
    let [w0, _, w2, src, dst] = header;
    let sum = add_up(header);
    let folded = (sum & 0xffff) + (sum >> 16);
    // Two folds of a correct header give 0xffff, and its one fold is 0xffff or 0x1fffe.
    let checksum = ((folded & 0xffff) + (folded >> 16)) ^ 0xffff;
    let (total, len) = ((w0 & 0xffff) as i32, len as i32);
    let lengths = u32::from(total < 20) | u32::from(total > len) | u32::from(len < 20);
    // First byte 0 or from 224 on, 127, or 169.254: the same for both addresses.
    let odd = |a: u32| {
        u32::from(a.wrapping_sub(1 << 24) >= 223 << 24)
            | u32::from(a >> 24 == 127)
            | u32::from(a >> 16 == 0xa9fe)
    };
    (w0 >> 24 ^ 0x45) | checksum | lengths | odd(src) | odd(dst) | u32::from(w2 >> 25 == 0)
}

/// Tell apart what is wrong with suspicious packets; headers longer than 20 bytes are added up whole.
#[cold]
fn judge_suspicious<I: Isa>(v: &Vector<'_, I, Next>, header: &Words<5>, verdict: &mut Column) {
    let columns = header.rows(v.len());
    for (row, code) in verdict
        .words_mut(v.len())
        .iter_mut()
        .enumerate()
        .filter(|(_, code)| **code != 0)
    {
        let words = columns.map(|c| c[row]);
        let end = (words[0] >> 24 & 15) as usize * 4;
        let options = v.view(row).bytes().get(20..end).unwrap_or(&[]);
        let sum: u32 = options
            .chunks_exact(2)
            .map(|b| u32::from(u16::from_be_bytes([b[0], b[1]])))
            .sum();
        *code = judge(v.column(Col::Len)[row], words, add_up(words) + sum);
    }
}

impl Node for Ip4Input {
    const NAME: &'static str = "ip4-input";
    type Next = Next;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Done {
        let n = v.len();
        v.words(0, &mut self.header);
        let [h0, h1, h2, h3, h4] = self.header.strips(n);
        let (verdict, length) = (self.verdict.strips_mut(n), self.length.strips_mut(n));
        for (strip, lens) in v.strips(Col::Len).iter().enumerate() {
            let (h0, h1, h2, h3, h4) = (h0[strip], h1[strip], h2[strip], h3[strip], h4[strip]);
            let (mut codes, mut totals) = ([0; 16], [0; 16]);
            for row in 0..16 {
                codes[row] = suspicious(lens[row], [h0[row], h1[row], h2[row], h3[row], h4[row]]);
                totals[row] = h0[row] & 0xffff;
            }
            (verdict[strip], length[strip]) = (codes, totals);
        }
        if or_all(self.verdict.words(n)) != 0 {
            judge_suspicious(&v, &self.header, &mut self.verdict);
        }
        v.put(Col::Dst, &mut self.header.0[4]);
        v.put(Col::User0, &mut self.length);
        v.drop_out(cx, &self.verdict, |c| {
            if c == Count::Options {
                Next::Options
            } else {
                Next::Drop
            }
        });
        v.take(Col::User0, &mut self.length);
        v.put(Col::Len, &mut self.length);
        if all_equal(v.column(Col::Rx)) {
            let view = self.fib.read(cx.guard());
            let rx = v.column(Col::Rx).first().map_or(0, |&rx| rx);
            let table = view.lpm(view.table_of(rx));
            for &dst in v.column(Col::Dst) {
                table.prefetch(dst);
            }
        }
        v.send_arc(self.arc, Col::Rx, Next::Lookup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_fib::Fib;
    use volley_graph::Domain;
    use volley_graph::harness::{In, Out, run};

    fn header(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut p = vec![
            0x45, 0, 0, 46, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 1, 0, 1,
        ];
        p.resize(46, 7);
        change(&mut p);
        let ihl = (usize::from(p[0] & 15) * 4).min(p.len());
        if p.len() >= 12 && p[10..12] == [0, 0] {
            let sum: u32 = p[..ihl]
                .chunks(2)
                .map(|b| u32::from(b[0]) << 8 | u32::from(*b.get(1).unwrap_or(&0)))
                .sum();
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            p[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        p
    }

    fn outcome(out: &Out) -> &str {
        out.reason.as_deref().unwrap_or(&out.to)
    }

    #[test]
    fn packets_are_judged_in_the_order_of_the_rules() {
        let set = |at: usize, bytes: &'static [u8]| {
            header(move |p| p[at..at + bytes.len()].copy_from_slice(bytes))
        };
        let cases: Vec<(Vec<u8>, &str)> = vec![
            (header(|_| ()), "ip4-lookup"),
            (header(|p| p.truncate(19)), "too-short"),
            (set(0, &[0x65]), "bad-version"),
            (set(0, &[0x44]), "bad-header-length"),
            (set(2, &[0, 19]), "bad-total-length"),
            (set(2, &[0, 47]), "truncated"),
            (set(10, &[0x12, 0x34]), "bad-checksum"),
            (set(16, &[224, 0, 0, 5]), "multicast-destination"),
            (set(16, &[255, 255, 255, 255]), "broadcast-destination"),
            (set(16, &[127, 0, 0, 1]), "martian-destination"),
            (set(16, &[0, 1, 2, 3]), "martian-destination"),
            (set(16, &[240, 1, 2, 3]), "martian-destination"),
            (set(12, &[169, 254, 2, 3]), "link-local"),
            (set(16, &[169, 254, 2, 3]), "link-local"),
            (set(8, &[1]), "ttl-expired"),
            (set(8, &[0]), "ttl-expired"),
            (set(12, &[127, 1, 2, 3]), "martian-source"),
            (set(12, &[255, 255, 255, 255]), "martian-source"),
            (set(0, &[0x46]), "ip4-options"),
            (
                header(|p| {
                    p[0] = 0x4f;
                    p.resize(80, 1);
                    p[3] = 80;
                }),
                "ip4-options",
            ),
            (
                header(|p| {
                    p[0] = 0x46;
                    p[10] = 1;
                }),
                "bad-checksum",
            ),
            (header(|p| p.resize(1500, 0)), "ip4-lookup"),
        ];
        let packets: Vec<In> = cases.iter().map(|(p, _)| In::new(p)).collect();
        for (packet, (_, want)) in packets.iter().zip(&cases) {
            let got = bench(std::slice::from_ref(packet));
            assert_eq!(outcome(&got[0]), *want, "{packet:02x?}");
            if got[0].to == "ip4-lookup" {
                assert_eq!(got[0].bytes, packet.bytes[..46], "cut to the total length");
                assert_eq!(got[0].columns[&(Col::Dst as u8)], 0x0a01_0001);
            }
        }
        let mut got: Vec<String> = bench(&packets)
            .iter()
            .map(|o| outcome(o).to_owned())
            .collect();
        let mut want: Vec<String> = cases.iter().map(|c| c.1.to_owned()).collect();
        got.sort();
        want.sort();
        assert_eq!(got, want, "a mixed vector gives the same verdicts");
    }

    #[test]
    fn nothing_escapes_the_quick_look() {
        // Every field at its edges, checksums right and wrong: a packet is suspicious exactly when there is a verdict.
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

    fn bench(packets: &[In]) -> Vec<Out> {
        let domain = Domain::new();
        let fib = Fib::new(&domain).dataplane4();
        run(packets, &domain, move |_| {
            Ip4Input::new(fib.clone(), NO_ARC, 256)
        })
    }

    /// No arc is declared in the bench: number 0 is inactive.
    const NO_ARC: ArcId = ArcId(0);
}
