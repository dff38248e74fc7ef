//! ip-in-ip-one: stage 1, one packet at a time from its first byte to its last edge.

use crate::common::{Count, InnerTrace, Next};
use crate::header::{ETHERNET, LONGEST, OUTER, TTL};
use crate::pairs::Pairs;
use volley_sdk::prelude::*;
use volley_sdk::tables::Snap;
use volley_sdk::wire::eth::EthHeader;
use volley_sdk::wire::ip4::{FLAG_DONT_FRAGMENT, Ip4Header};
use volley_sdk::wire::{EtherType, Header, IpProto, U16};

/// State of stage 1.
pub struct One(Snap<Pairs>);

impl One {
    /// With the workers' view of the table.
    pub fn new(pairs: Snap<Pairs>) -> Self {
        One(pairs)
    }
}

impl Node for One {
    const NAME: &'static str = "ip-in-ip-one";
    type Next = Next;
    type Count = Count;
    type Trace = InnerTrace;

    // ANCHOR: run
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        one_by_one(self.0.read(cx.guard()), cx, v)
    }
    // ANCHOR_END: run
}

/// Handle the packets of a vector one by one.
// ANCHOR: one_by_one
#[inline(always)]
pub fn one_by_one<I: Isa>(pairs: &Pairs, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
    v.each(|packet| match encapsulate(pairs, packet) {
        Ok(()) => {
            cx.count(Count::Encapsulated, 1);
            packet.set(Col::TX, packet.rx());
            Next::Output
        }
        Err(why) => {
            packet.fail(cx, why);
            Next::Drop
        }
    })
}

/// Encapsulate one packet, or return what it is dropped for.
#[inline(always)]
fn encapsulate(pairs: &Pairs, packet: &mut Packet<'_>) -> Result<(), Count> {
    let (eth, ip) = headers(packet).ok_or(Count::NotIp4)?;
    let pair = pairs.find(u32::from_be_bytes(ip.dst));
    if pair == 0 {
        return Err(Count::NotFound);
    }
    let (local, remote) = ((pair >> 32) as u32, pair as u32);
    let len = usize::from(ip.total_len.get());
    let mut outer = Ip4Header::new(local.into(), remote.into(), IpProto::IP4, TTL, len);
    outer.tos = ip.tos;
    outer.id = ip.id;
    outer.flags_fragment = U16::new(ip.flags_fragment.get() & FLAG_DONT_FRAGMENT);
    outer.fill_checksum(&[]);
    let back = EthHeader {
        dst: eth.src,
        src: eth.dst,
        ..eth
    };
    let fits = packet.retreat(OUTER);
    let front = packet.bytes_mut();
    let rest = back.emit(front).map_err(|_| Count::NotIp4)?;
    outer.emit(rest).map_err(|_| Count::NotIp4)?;
    fits.then_some(()).ok_or(Count::NotIp4)
}

/// The headers of a frame, if it is an IPv4 packet that can be encapsulated.
#[inline(always)]
fn headers(packet: &Packet<'_>) -> Option<(EthHeader, Ip4Header)> {
    let (eth, rest) = EthHeader::split(packet.bytes()).ok()?;
    let (ip, _) = Ip4Header::split(rest).ok()?;
    let (len, total) = (packet.len(), usize::from(ip.total_len.get()));
    let is_good = eth.ether_type == EtherType::IP4
        && ip.version() == 4
        && ip.header_len() >= Ip4Header::LEN
        && ip.header_len() <= total
        && total + ETHERNET <= len
        && total <= LONGEST as usize;
    is_good.then_some((*eth, *ip))
}
// ANCHOR_END: one_by_one
