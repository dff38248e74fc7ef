//! ip4-input: validates received IPv4 packets (RFC 1812, 5.2.2 and 5.3) and drops addresses that are never forwarded.
//!
//! Section 4 of `docs/forwarding-rules.md` has the order of the checks. On entry and exit the position is at the IP header; on
//! exit the length is the packet's total length.

use crate::IpTrace;
use crate::family::{is_local, one_table};
use crate::valid4::judge;
use std::sync::Arc;
use volley_fib::V4;
use volley_fib::columns::{DST, TOTAL_LENGTH};
use volley_fib::dataplane::{DataPlane, View};
use volley_graph::{
    ArcId, Col, Column, ColumnInfo, Consumed, Counters, Cx, Isa, Node, Vector, Words, counters,
    nexts, or_all, strip_rows,
};
use volley_iface::{Flag, IfTable};
use volley_wire::ip4::{add_up, suspicious};

nexts! {
    /// Where ip4-input sends packets.
    pub enum Next {
        Drop => "error-drop", Lookup => "ip4-lookup", Options => "ip4-options", Error => "ip4-icmp-error",
        Mfib => "ip4-mfib-forward-lookup", Local => "ip4-local"
    }
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
        /// the destination is multicast, which is not routed here
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
        /// packets to groups that may be routed, handed to ip4-mfib-forward-lookup
        ForGroup = "for-group" (Info),
        /// packets to 255.255.255.255 on an interface where a feature listens for them, handed to ip4-local
        ForListener = "for-listener" (Info),
    }
}

/// State of ip4-input.
pub struct Ip4Input {
    fib: DataPlane<V4>,
    table: Arc<IfTable>,
    arc: ArcId,
    header: Words<5>,
    verdict: Column,
    length: Column,
    dst: Column,
}

impl Ip4Input {
    /// For vectors of up to `size` packets; `arc` is `ip4-unicast`.
    pub fn new(fib: DataPlane<V4>, table: Arc<IfTable>, arc: ArcId, size: usize) -> Self {
        let column = || Column::new(size);
        Ip4Input {
            fib,
            table,
            arc,
            header: Words::new(size),
            verdict: column(),
            length: column(),
            dst: column(),
        }
    }

    /// Sets the total length of every packet, and `verdict` nonzero for packets that need an exact check.
    #[inline(always)]
    fn glance<I: Isa>(&mut self, lens: &[[u32; 16]], n: usize) {
        // All slices have one length, so the loop has no bounds checks.
        let strips = n.div_ceil(16);
        let header = &self.header.strips(n)[..strips];
        let (odd, length, to) = (
            &mut self.verdict.strips_mut(n)[..strips],
            &mut self.length.strips_mut(n)[..strips],
            &mut self.dst.strips_mut(n)[..strips],
        );
        let lens = &lens[..strips];
        for strip in 0..strips {
            let [w0, w1, w2, src, dst] = &header[strip];
            for row in 0..strip_rows::<I>(n, strip) {
                let words = [w0[row], w1[row], w2[row], src[row], dst[row]];
                odd[strip][row] = suspicious(lens[strip][row], words);
                length[strip][row] = w0[row] & 0xffff;
            }
            to[strip] = *dst;
        }
    }
}

/// Handles a small vector packet by packet; false if a packet needs an exact check.
#[inline(always)]
fn few<I: Isa>(v: &mut Vector<'_, I, Next>) -> bool {
    v.few_frames::<20, 2>([Col::LEN, DST.col], |header, [len, dst]| {
        let (words, _) = header.as_chunks::<4>();
        let words = std::array::from_fn(|k| u32::from_be_bytes(words[k]));
        if suspicious(*len, words) != 0 {
            return false;
        }
        // If a later packet is suspicious, all packets are judged again: lengths that are already set stay the same.
        (*len, *dst) = (words[0] & 0xffff, words[4]);
        true
    })
}

/// Whether a group has link-local scope, so that routers never forward to it (RFC 5771, 4).
fn is_of_link(group: u32) -> bool {
    group >> 8 == 0x00e0_0000
}

/// A valid unicast address, used in place of the destination.
const ONE_HOST: u32 = 1 << 24;

/// The verdict on a packet to a routable group: as for unicast. The TTL is checked after the route is known.
fn judge_for_group(len: u32, [w0, w1, w2, src, _]: [u32; 5], sum: u32) -> u32 {
    match judge(len, [w0, w1, w2 | 64 << 24, src, ONE_HOST], sum) {
        0 => Count::ForGroup.code(),
        other => other,
    }
}

/// The verdict on a link broadcast for which a feature listens: as for unicast. A source of 0.0.0.0 is allowed, because the
/// sender may have no address yet (RFC 1122, 3.2.1.3).
fn judge_for_listener(len: u32, [w0, w1, w2, src, _]: [u32; 5], sum: u32) -> u32 {
    let src = if src == 0 { ONE_HOST } else { src };
    match judge(len, [w0, w1, w2 | 64 << 24, src, ONE_HOST], sum) {
        0 => Count::ForListener.code(),
        other => other,
    }
}

/// Exact verdicts on suspicious packets; headers longer than 20 bytes are summed in full. For a packet to the router the TTL is
/// not checked.
#[cold]
fn judge_all<I: Isa>(
    (view, table): (&View<'_, V4>, &IfTable),
    v: &Vector<'_, I, Next>,
    header: &Words<5>,
    verdict: &mut Column,
) {
    for (row, code) in verdict
        .words_mut(v.len())
        .iter_mut()
        .enumerate()
        .filter(|(_, code)| **code != 0)
    {
        let words = header.row(row);
        let end = (words[0] >> 24 & 15) as usize * 4;
        let options = v.view(row).bytes().get(20..end).unwrap_or(&[]);
        let sum: u32 = options
            .chunks_exact(2)
            .map(|b| u32::from(u16::from_be_bytes([b[0], b[1]])))
            .sum();
        let (len, sum) = (v.column(Col::LEN)[row], add_up(words) + sum);
        *code = judge(len, words, sum);
        if *code == Count::TtlExpired.code() && is_local(view, v.column(Col::RX)[row], words[4]) {
            let [w0, w1, w2, src, dst] = words;
            *code = judge(len, [w0, w1, w2 | 64 << 24, src, dst], sum);
        }
        let takes = || table.has(v.column(Col::RX)[row], Flag::Multicast);
        if *code == Count::Multicast.code() && !is_of_link(words[4]) && takes() {
            *code = judge_for_group(len, words, sum);
        }
        let hears = || table.has(v.column(Col::RX)[row], Flag::LinkUdp);
        if *code == Count::Broadcast.code() && hears() {
            *code = judge_for_listener(len, words, sum);
        }
    }
}

impl Node for Ip4Input {
    const NAME: &'static str = "ip4-input";
    type Next = Next;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DST, TOTAL_LENGTH];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        if I::FEW && few(&mut v) {
            return v.send_arc(self.arc, Col::RX, Next::Lookup);
        }
        v.words(0, &mut self.header);
        self.glance::<I>(v.strips(Col::LEN), n);
        let odd = or_all(self.verdict.words(n));
        if odd != 0 {
            let view = self.fib.read(cx.guard());
            judge_all((&view, &self.table), &v, &self.header, &mut self.verdict);
        }
        v.put(DST.col, &mut self.dst);
        v.put(TOTAL_LENGTH.col, &mut self.length);
        if odd != 0 {
            v.drop_out(cx, &self.verdict, |c| match c {
                Count::Options => Next::Options,
                Count::TtlExpired => Next::Error,
                Count::ForGroup => Next::Mfib,
                Count::ForListener => Next::Local,
                _ => Next::Drop,
            });
        }
        v.take(TOTAL_LENGTH.col, &mut self.length);
        v.put(Col::LEN, &mut self.length);
        let view = self.fib.read(cx.guard());
        if let Some(table) = one_table(&view, v.column(Col::RX)) {
            let table = view.lpm(table);
            for &dst in v.column(DST.col) {
                table.prefetch(dst);
            }
        }
        v.send_arc(self.arc, Col::RX, Next::Lookup)
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
            (set(8, &[1]), "ip4-icmp-error"),
            (set(8, &[0]), "ip4-icmp-error"),
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
                assert_eq!(got[0].columns[&DST.col], 0x0a01_0001);
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
    fn broadcasts_are_for_interfaces_where_a_feature_listens() {
        let to_all = |change: fn(&mut Vec<u8>)| {
            header(move |p| {
                p[12..20].copy_from_slice(&[0, 0, 0, 0, 255, 255, 255, 255]);
                change(p);
            })
        };
        let cases: Vec<(Vec<u8>, u32, &str)> = vec![
            (to_all(|_| ()), 3, "ip4-local"),
            (to_all(|_| ()), 1, "broadcast-destination"),
            (to_all(|p| p[12] = 10), 3, "ip4-local"),
            (to_all(|p| p[8] = 1), 3, "ip4-local"),
            (to_all(|p| p[12] = 127), 3, "martian-source"),
            (to_all(|p| p[10] = 1), 3, "bad-checksum"),
            (to_all(|p| p[16] = 10), 3, "martian-source"),
        ];
        for (packet, rx, want) in &cases {
            let got = bench(&[In::new(packet).rx(*rx)]);
            assert_eq!(outcome(&got[0]), *want, "{packet:02x?}");
        }
    }

    #[test]
    fn packets_to_groups_are_for_interfaces_that_take_them() {
        let to = |group: [u8; 4], change: fn(&mut Vec<u8>)| {
            header(move |p| {
                p[16..20].copy_from_slice(&group);
                change(p);
            })
        };
        let far = [239, 1, 2, 3];
        let cases: Vec<(Vec<u8>, u32, &str)> = vec![
            (to(far, |_| ()), 2, "ip4-mfib-forward-lookup"),
            (to(far, |_| ()), 1, "multicast-destination"),
            (to([224, 0, 1, 0], |_| ()), 2, "ip4-mfib-forward-lookup"),
            (to([224, 0, 0, 255], |_| ()), 2, "multicast-destination"),
            (to(far, |p| p[8] = 1), 2, "ip4-mfib-forward-lookup"),
            (to(far, |p| p[12] = 127), 2, "martian-source"),
            (
                to(far, |p| p[12..14].copy_from_slice(&[169, 254])),
                2,
                "link-local",
            ),
            (to(far, |p| p[10] = 1), 2, "bad-checksum"),
            (to(far, |p| p[0] = 0x46), 2, "ip4-options"),
        ];
        for (bytes, rx, want) in cases {
            let got = bench(&[In::new(&bytes).rx(rx)]);
            assert_eq!(outcome(&got[0]), want, "{bytes:02x?} by {rx}");
        }
    }

    fn bench(packets: &[In]) -> Vec<Out> {
        let domain = Domain::new();
        let table = IfTable::new(1);
        table.set(volley_iface::IfIdx(2), Flag::Multicast, true);
        table.set(volley_iface::IfIdx(3), Flag::LinkUdp, true);
        let fib = Fib::new(&domain).dataplane4();
        run(packets, &domain, move |_| {
            Ip4Input::new(fib.clone(), table.clone(), NO_ARC, 256)
        })
    }

    /// The bench declares no arc: arc 0 is inactive.
    const NO_ARC: ArcId = ArcId(0);
}
