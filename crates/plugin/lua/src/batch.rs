//! The vector that a script sees: packets that the node has lent, sets of packets, the route and the verdict of each packet.
//!
//! Nothing here knows Lua. Every operation works on a whole set, and checks rows and bytes against the vector. The operations on
//! IPv4 packets are in `ip4`.

use crate::fields::{ETHERNET, Place};
use crate::ip4::fill_checksum;
use crate::masks::{self, ALL};
use crate::parsed::{Parsed, VectorInfo};
use crate::sets::{Bits, NO_BITS, Selected, Sets};
use crate::tables::{Hop, NO_INTERFACE};
use crate::verdict::Verdict;
use volley_sdk::kernel::Level;
use volley_sdk::lend::{LentPackets, Offsets};
use volley_sdk::prelude::*;

/// A fault of the script: one sentence.
pub(crate) type Fault = String;

/// The vector of a script, on one worker.
pub(crate) struct Batch {
    pub(crate) packets: Option<LentPackets>,
    pub(crate) sets: Sets,
    /// The instruction-set level of the node.
    pub(crate) level: Level,
    /// Routes that were looked up.
    pub(crate) hops: Vec<Hop>,
    /// The place of each packet's route in `hops`.
    pub(crate) hop_of: Vec<u32>,
    /// Packets whose route is complete.
    pub(crate) complete: Bits,
    /// The interface on which each packet is sent.
    pub(crate) outputs: Vec<u32>,
    pub(crate) verdicts: Vec<Verdict>,
    /// The verdict on all packets of the vector is to send them.
    pub(crate) is_sent: bool,
    /// The script has sent packets.
    pub(crate) has_sent: bool,
    /// The script has given packets to the function `packet`.
    pub(crate) has_slow: bool,
    /// Packets that have got an Ethernet header: their position is at it.
    pub(crate) framed: Vec<bool>,
    /// How often the TTL of each packet was decremented for a route.
    pub(crate) lowered: Vec<u8>,
    /// The position of a packet is at its IP header.
    pub(crate) is_layer3: bool,
    /// MAC addresses of interfaces, by index.
    macs: Vec<[u8; 6]>,
    /// Headers of the packets.
    pub(crate) parsed: Parsed,
    /// Results of a lookup.
    pub(crate) leaves: Vec<u32>,
    /// Lengths that routes allow.
    pub(crate) limits: [Column; 2],
    pub(crate) room: Offsets,
}

impl Batch {
    /// For vectors of up to `size` packets.
    pub(crate) fn new(size: usize, is_layer3: bool, interfaces: &[HostInterface]) -> Self {
        let last = interfaces.iter().map(|it| it.index as usize + 1).max();
        let mut macs = vec![[0; 6]; last.unwrap_or(0)];
        interfaces
            .iter()
            .for_each(|it| macs[it.index as usize] = it.mac);
        Batch {
            macs,
            packets: None,
            sets: Sets::new(size),
            level: Level::Scalar,
            hops: Vec::with_capacity(size),
            hop_of: vec![0; size],
            complete: NO_BITS,
            outputs: vec![NO_INTERFACE; size],
            verdicts: vec![Verdict::Next; size],
            is_sent: false,
            has_sent: false,
            has_slow: false,
            framed: vec![false; size],
            lowered: vec![0; size],
            is_layer3,
            parsed: Parsed::new(size),
            leaves: vec![0; size],
            limits: std::array::from_fn(|_| Column::new(size)),
            room: Offsets::new(size),
        }
    }

    /// Begin a vector: the script gets the packets of `present`. Operations are compiled for `level`.
    pub(crate) fn begin(&mut self, level: Level, packets: LentPackets, present: &[u64]) {
        let n = packets.len();
        self.level = level;
        self.verdicts[..n].fill(Verdict::Next);
        self.framed[..n].fill(false);
        self.lowered[..n].fill(0);
        self.outputs[..n].fill(NO_INTERFACE);
        self.hops.clear();
        self.complete = NO_BITS;
        (self.is_sent, self.has_sent, self.has_slow) = (false, false, false);
        self.packets = Some(packets);
        self.parsed.begin(present);
        self.sets.begin(present, n);
    }

    /// End the vector, and give the packets back.
    pub(crate) fn end(&mut self) -> Option<LentPackets> {
        self.sets.clear();
        self.packets.take()
    }

    /// The maximum number of packets.
    pub(crate) fn size(&self) -> usize {
        self.verdicts.len()
    }

    /// The verdicts on the first `n` packets.
    pub(crate) fn verdicts(&self, n: usize) -> &[Verdict] {
        &self.verdicts[..n]
    }

    /// The interfaces on which the first `n` packets are sent.
    pub(crate) fn outputs(&self, n: usize) -> &[u32] {
        &self.outputs[..n]
    }

    /// Set the verdict on one packet.
    pub(crate) fn judge(&mut self, row: usize, verdict: Verdict) {
        self.is_sent = false;
        self.verdicts[row] = verdict;
    }

    /// Where the IP header of a packet starts, seen from its position.
    pub(crate) fn net(&self, row: usize) -> usize {
        start_of_ip(self.is_layer3, &self.framed, row)
    }

    /// The packets of a set for which `is` holds, as a new set of its form. `is` gets the packet and the start of its IP header.
    #[inline(always)]
    pub(crate) fn filter(
        &mut self,
        set: u32,
        is: impl Fn(PacketView<'_>, usize) -> bool,
    ) -> Result<u32, Fault> {
        let packets = lent(&mut self.packets)?;
        let (framed, is_layer3) = (&self.framed, self.is_layer3);
        let mut bits = NO_BITS;
        self.sets.get(set)?.for_each(|row| {
            if is(packets.view(row), start_of_ip(is_layer3, framed, row)) {
                masks::insert(&mut bits, row);
            }
        });
        self.sets.put(set, &bits)
    }

    /// The number of packets of the script.
    pub(crate) fn len(&self) -> Result<u32, Fault> {
        self.sets.count(ALL)
    }

    /// The first packet of a set behind packet `after`; both are numbered from 1.
    pub(crate) fn next_row(&self, set: u32, after: u32) -> Result<Option<u32>, Fault> {
        let after = after as usize;
        let next = match self.sets.get(set)? {
            Selected::Mask(words) => masks::rows(words).find(|&row| row >= after),
            Selected::Array(rows) => {
                let mut rows = rows.iter().map(|&row| row as usize);
                rows.find(|&row| row >= after)
            }
            Selected::Holes(flags) => (after..flags.len()).find(|&row| flags[row]),
        };
        Ok(next.map(|row| row as u32 + 1))
    }

    /// Packets with this EtherType.
    pub(crate) fn ether_type(&mut self, set: u32, wanted: u16) -> Result<u32, Fault> {
        if self.is_layer3 {
            return Err(
                "frames have no EtherType on this arc: use it on the arc device-input".to_owned(),
            );
        }
        self.parse(set)?;
        let n = lent(&mut self.packets)?.len();
        let equal = self.parsed.with_type(self.level, n, wanted);
        self.sets.select(set, &equal)
    }

    /// Packets whose frame is for their receive interface. Packets of the arc ip4-unicast are for the router.
    pub(crate) fn for_me(&mut self, set: u32) -> Result<u32, Fault> {
        self.parse(set)?;
        self.sets.select(set, self.parsed.mine())
    }

    /// Read the headers of a set's packets that were not read. Returns the packets of the set.
    pub(crate) fn parse(&mut self, set: u32) -> Result<Bits, Fault> {
        let packets = lent(&mut self.packets)?;
        let bits = self.sets.bits(set)?;
        let info = VectorInfo {
            level: self.level,
            is_layer3: self.is_layer3,
            framed: &self.framed,
            macs: &self.macs,
        };
        self.parsed.read(&bits, packets, info);
        Ok(bits)
    }

    /// Packets whose field has this value.
    pub(crate) fn matching(&mut self, set: u32, place: Place, value: u128) -> Result<u32, Fault> {
        self.filter(set, |packet, net| {
            place.read(packet.bytes(), net) == Some(value)
        })
    }

    /// Packets whose field has a value in a range.
    pub(crate) fn between(
        &mut self,
        set: u32,
        place: Place,
        (low, high): (u128, u128),
    ) -> Result<u32, Fault> {
        self.filter(set, |packet, net| {
            let value = place.read(packet.bytes(), net);
            value.is_some_and(|value| (low..=high).contains(&value))
        })
    }

    /// The value of a field.
    pub(crate) fn read(&mut self, row: Option<u32>, place: Place) -> Result<Option<u128>, Fault> {
        let row = self.sets.row(row)?;
        let net = self.net(row);
        Ok(place.read(lent(&mut self.packets)?.view(row).bytes(), net))
    }

    /// Write a field. The checksum of an IPv4 header is corrected.
    pub(crate) fn write(
        &mut self,
        row: Option<u32>,
        place: Place,
        value: u128,
    ) -> Result<(), Fault> {
        let row = self.sets.row(row)?;
        let net = self.net(row);
        self.parsed.forget_row(row);
        let mut packet = lent(&mut self.packets)?.packet(row);
        write_field(packet.bytes_mut(), net, place, value, row)
    }

    /// Write a field of all packets of a set, all of which must have it.
    pub(crate) fn write_all(&mut self, set: u32, place: Place, value: u128) -> Result<(), Fault> {
        let packets = lent(&mut self.packets)?;
        self.parsed.forget(&self.sets.bits(set)?);
        let (framed, is_layer3) = (&self.framed, self.is_layer3);
        self.sets.get(set)?.each(|row| {
            let net = start_of_ip(is_layer3, framed, row);
            write_field(packets.bytes_mut(row), net, place, value, row)
        })
    }

    /// A byte of a packet, counted from 0.
    pub(crate) fn byte(&mut self, row: Option<u32>, at: u32) -> Result<u8, Fault> {
        let row = self.sets.row(row)?;
        let bytes = lent(&mut self.packets)?.view(row).bytes();
        let found = bytes.get(at as usize).copied();
        found.ok_or_else(|| beyond(row, at, bytes.len()))
    }

    /// Write a byte of a packet.
    pub(crate) fn set_byte(&mut self, row: Option<u32>, at: u32, byte: u8) -> Result<(), Fault> {
        let row = self.sets.row(row)?;
        self.parsed.forget_row(row);
        let mut packet = lent(&mut self.packets)?.packet(row);
        let bytes = packet.bytes_mut();
        let length = bytes.len();
        let place = bytes.get_mut(at as usize);
        *place.ok_or_else(|| beyond(row, at, length))? = byte;
        Ok(())
    }

    /// The length of a packet in bytes.
    pub(crate) fn length(&mut self, row: Option<u32>) -> Result<u32, Fault> {
        let row = self.sets.row(row)?;
        Ok(lent(&mut self.packets)?.view(row).len() as u32)
    }

    /// The receive interface of a packet.
    pub(crate) fn rx(&mut self, row: Option<u32>) -> Result<u32, Fault> {
        let row = self.sets.row(row)?;
        Ok(lent(&mut self.packets)?.view(row).rx())
    }

    /// Send packets on this interface, or on that of their route. Returns whether these are all packets of the script.
    pub(crate) fn send(&mut self, set: u32, interface: Option<u32>) -> Result<bool, Fault> {
        lent(&mut self.packets)?;
        let bits = self.sets.bits(set)?;
        self.send_packets(set, &bits, interface)
    }

    /// As [`Batch::send`]; `bits` has the packets of the set.
    pub(crate) fn send_packets(
        &mut self,
        set: u32,
        bits: &Bits,
        interface: Option<u32>,
    ) -> Result<bool, Fault> {
        let n = lent(&mut self.packets)?.len();
        let (outputs, verdicts) = (&mut self.outputs[..n], &mut self.verdicts[..n]);
        let (framed, is_layer3) = (&self.framed, self.is_layer3);
        self.has_sent = true;
        let is_vector = masks::is_first(bits, n);
        let is_all = is_vector || *bits == self.sets.bits(ALL)?;
        // A complete route names an interface.
        let is_ready = interface.is_some() || masks::minus(bits, &self.complete) == NO_BITS;
        if !is_layer3 && is_ready && is_vector {
            if let Some(interface) = interface {
                outputs.fill(interface);
            }
            verdicts.fill(Verdict::Send);
            self.is_sent = true;
            return Ok(is_all);
        }
        self.sets.get(set)?.each(|row| {
            if let Some(interface) = interface {
                outputs[row] = interface;
            }
            if outputs[row] == NO_INTERFACE {
                return Err(format!(
                    "packet {} has no route: name the interface, or look the packet up before",
                    row + 1
                ));
            }
            if start_of_ip(is_layer3, framed, row) == 0 {
                return Err(format!(
                    "packet {} has no Ethernet header: apply a route before it is sent",
                    row + 1
                ));
            }
            verdicts[row] = Verdict::Send;
            Ok(())
        })?;
        Ok(is_all)
    }

    /// Set the verdict on the packets of a set.
    pub(crate) fn decide(&mut self, set: u32, verdict: Verdict) -> Result<(), Fault> {
        lent(&mut self.packets)?;
        self.is_sent = false;
        self.has_slow |= verdict == Verdict::Slow;
        let verdicts = &mut self.verdicts;
        self.sets.get(set)?.for_each(|row| verdicts[row] = verdict);
        Ok(())
    }

    /// The packets about which the script has not decided.
    pub(crate) fn rest(&mut self) -> Result<u32, Fault> {
        lent(&mut self.packets)?;
        let (mut bits, verdicts) = (NO_BITS, &self.verdicts);
        self.sets.get(ALL)?.for_each(|row| {
            if verdicts[row] == Verdict::Next {
                masks::insert(&mut bits, row);
            }
        });
        self.sets.put(ALL, &bits)
    }

    /// Let the only packet become a reply in place: `change` gets it at its Ethernet header. False: the packet cannot become
    /// such a reply, and the script decides about it.
    pub(crate) fn reply(
        &mut self,
        change: impl FnOnce(&mut Packet<'_>) -> Result<(), Fault>,
    ) -> Result<bool, Fault> {
        if self.is_layer3 {
            return Err("replies need the arc device-input".to_owned());
        }
        let row = self.sets.row(None)?;
        self.parsed.forget_row(row);
        let mut packet = lent(&mut self.packets)?.packet(row);
        let rx = packet.rx();
        if change(&mut packet).is_err() {
            return Ok(false);
        }
        // A reply has its checksums.
        packet.set(Col::OFFLOAD, 0);
        self.outputs[row] = rx;
        self.has_sent = true;
        self.framed[row] = true;
        self.verdicts[row] = Verdict::Send;
        Ok(true)
    }
}

/// Where the IP header of a packet starts, seen from its position.
#[inline(always)]
pub(crate) fn start_of_ip(is_layer3: bool, framed: &[bool], row: usize) -> usize {
    match is_layer3 && !framed[row] {
        true => 0,
        false => ETHERNET,
    }
}

/// Write a field of the packet in a row. The checksum of an IPv4 header is corrected.
fn write_field(
    bytes: &mut [u8],
    net: usize,
    place: Place,
    value: u128,
    row: usize,
) -> Result<(), Fault> {
    if !place.write(bytes, net, value) {
        let field = place.field.name;
        return Err(format!("packet {} has no field `{field}`", row + 1));
    }
    if place.is_summed() {
        fill_checksum(bytes, net);
    }
    Ok(())
}

/// The packets of the vector.
pub(crate) fn lent(packets: &mut Option<LentPackets>) -> Result<&mut LentPackets, Fault> {
    let none = || "there is no vector: use it only in `vector` and `packet`".to_owned();
    packets.as_mut().ok_or_else(none)
}

fn beyond(row: usize, at: u32, length: usize) -> Fault {
    format!(
        "packet {} has no byte {at}: its first segment has {length} bytes, counted from 0",
        row + 1
    )
}
