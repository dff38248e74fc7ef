//! The vector that a script sees: packets that the node has lent, masks, the route and the verdict of each packet.
//!
//! Nothing here knows Lua. Every operation works on a whole mask, and checks rows and bytes against the vector.

use crate::fields::{self, ETHERNET, Place};
use crate::masks::{self, ALL, Masks, rows};
use crate::tables::{Hop, NO_INTERFACE};
use crate::verdict::Verdict;
use std::net::Ipv4Addr;
use volley_sdk::lend::LentPackets;
use volley_sdk::prelude::*;
use volley_sdk::tables::lpm4::Lpm4View;
use volley_sdk::wire::ip4::Ip4Header;
use volley_sdk::wire::{EtherType, Header, U16, checksum};

/// A fault of the script: one sentence.
pub(crate) type Fault = String;

/// The vector of a script, on one worker.
pub(crate) struct Batch {
    packets: Option<LentPackets>,
    pub(crate) masks: Masks,
    hops: Vec<Hop>,
    verdicts: Vec<Verdict>,
    /// Packets that have got an Ethernet header: their position is at it.
    framed: Vec<bool>,
    /// The position of a packet is at its IP header.
    is_layer3: bool,
    /// MAC addresses of interfaces, by index.
    macs: Vec<[u8; 6]>,
    /// Destinations and results of a lookup.
    keys: Vec<u32>,
    leaves: Vec<u32>,
    /// Rows of the mask of an operation.
    selected: Vec<u32>,
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
            masks: Masks::new(size),
            hops: vec![Hop::NONE; size],
            verdicts: vec![Verdict::Next; size],
            framed: vec![false; size],
            is_layer3,
            keys: Vec::with_capacity(size),
            leaves: vec![0; size],
            selected: Vec::with_capacity(size),
        }
    }

    /// Begin a vector: the script gets the packets of `present`.
    pub(crate) fn begin(&mut self, packets: LentPackets, present: &[u64]) {
        let n = packets.len();
        self.verdicts[..n].fill(Verdict::Next);
        self.framed[..n].fill(false);
        self.hops[..n].fill(Hop::NONE);
        self.packets = Some(packets);
        self.masks.clear();
        // The first mask of a vector always has room.
        let _ = self.masks.put(present);
    }

    /// Let the script see one packet only.
    pub(crate) fn focus(&mut self, row: usize) {
        self.masks.clear();
        if let Ok(mask) = self.masks.add()
            && let Ok(words) = self.masks.get_mut(mask)
        {
            masks::insert(words, row);
        }
    }

    /// End the vector, and give the packets back.
    pub(crate) fn end(&mut self) -> Option<LentPackets> {
        self.masks.clear();
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

    /// The routes of the first `n` packets.
    pub(crate) fn hops(&self, n: usize) -> &[Hop] {
        &self.hops[..n]
    }

    /// Set the verdict on one packet.
    pub(crate) fn judge(&mut self, row: usize, verdict: Verdict) {
        self.verdicts[row] = verdict;
    }

    /// Where the IP header of a packet starts, seen from its position.
    fn net(&self, row: usize) -> usize {
        match self.is_layer3 && !self.framed[row] {
            true => 0,
            false => ETHERNET,
        }
    }

    /// The row that a script names, from 1; without a name the only packet of the vector, or the first one.
    fn row(&self, name: Option<u32>) -> Result<usize, Fault> {
        let all = self.masks.get(ALL)?;
        let Some(name) = name else {
            let first = rows(all).next();
            return first.ok_or_else(|| "the vector has no packet".to_owned());
        };
        let row = (name as usize).wrapping_sub(1);
        match masks::contains(all, row) {
            true => Ok(row),
            false => Err(format!("the script has no packet {name} in this vector")),
        }
    }

    /// The rows of a mask, in memory that the caller returns to `self.selected`.
    fn select(&mut self, mask: u32) -> Result<Vec<u32>, Fault> {
        lent(&mut self.packets)?;
        let mut selected = std::mem::take(&mut self.selected);
        selected.clear();
        selected.extend(rows(self.masks.get(mask)?).map(|row| row as u32));
        Ok(selected)
    }

    /// The packets of a mask for which `is` holds, as a new mask. `is` gets the packet's bytes and the start of its IP header.
    fn filter(&mut self, mask: u32, is: impl Fn(&[u8], usize) -> bool) -> Result<u32, Fault> {
        let selected = self.select(mask)?;
        let new = self.masks.add()?;
        for &row in &selected {
            let row = row as usize;
            let net = self.net(row);
            if is(lent(&mut self.packets)?.view(row).bytes(), net) {
                masks::insert(self.masks.get_mut(new)?, row);
            }
        }
        self.selected = selected;
        Ok(new)
    }

    /// The number of packets of the script.
    pub(crate) fn len(&self) -> Result<u32, Fault> {
        self.masks.count(ALL)
    }

    /// The first packet of a mask behind packet `after`; both are numbered from 1.
    pub(crate) fn next_row(&self, mask: u32, after: u32) -> Result<Option<u32>, Fault> {
        let mut all = rows(self.masks.get(mask)?);
        let next = all.find(|&row| row >= after as usize);
        Ok(next.map(|row| row as u32 + 1))
    }

    /// Packets with this EtherType.
    pub(crate) fn ether_type(&mut self, mask: u32, wanted: u16) -> Result<u32, Fault> {
        if self.is_layer3 {
            return Err(
                "frames have no EtherType on this arc: use it on the arc device-input".to_owned(),
            );
        }
        let wanted = EtherType(U16::new(wanted));
        self.filter(mask, |bytes, _| fields::ether_type(bytes) == Some(wanted))
    }

    /// Packets whose frame is for their receive interface. Packets of the arc ip4-unicast are for the router.
    pub(crate) fn for_me(&mut self, mask: u32) -> Result<u32, Fault> {
        let selected = self.select(mask)?;
        let new = self.masks.add()?;
        for &row in &selected {
            let row = row as usize;
            let (net, view) = (self.net(row), lent(&mut self.packets)?.view(row));
            let (rx, dst) = (view.rx() as usize, view.bytes().first_chunk::<6>());
            let is_mine = net == 0 || dst.is_some() && self.macs.get(rx) == dst;
            if is_mine {
                masks::insert(self.masks.get_mut(new)?, row);
            }
        }
        self.selected = selected;
        Ok(new)
    }

    /// Packets whose field has this value.
    pub(crate) fn matching(&mut self, mask: u32, place: Place, value: u128) -> Result<u32, Fault> {
        self.filter(mask, |bytes, net| place.read(bytes, net) == Some(value))
    }

    /// The value of a field.
    pub(crate) fn read(&mut self, row: Option<u32>, place: Place) -> Result<Option<u128>, Fault> {
        let row = self.row(row)?;
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
        let row = self.row(row)?;
        let net = self.net(row);
        let mut packet = lent(&mut self.packets)?.packet(row);
        let bytes = packet.bytes_mut();
        if !place.write(bytes, net, value) {
            let field = place.field.name;
            return Err(format!("packet {} has no field `{field}`", row + 1));
        }
        if place.is_summed() {
            fill_checksum(bytes, net);
        }
        Ok(())
    }

    /// A byte of a packet, counted from 0.
    pub(crate) fn byte(&mut self, row: Option<u32>, at: u32) -> Result<u8, Fault> {
        let row = self.row(row)?;
        let bytes = lent(&mut self.packets)?.view(row).bytes();
        let found = bytes.get(at as usize).copied();
        found.ok_or_else(|| beyond(row, at, bytes.len()))
    }

    /// Write a byte of a packet.
    pub(crate) fn set_byte(&mut self, row: Option<u32>, at: u32, byte: u8) -> Result<(), Fault> {
        let row = self.row(row)?;
        let mut packet = lent(&mut self.packets)?.packet(row);
        let bytes = packet.bytes_mut();
        let length = bytes.len();
        let place = bytes.get_mut(at as usize);
        *place.ok_or_else(|| beyond(row, at, length))? = byte;
        Ok(())
    }

    /// The length of a packet in bytes.
    pub(crate) fn length(&mut self, row: Option<u32>) -> Result<u32, Fault> {
        let row = self.row(row)?;
        Ok(lent(&mut self.packets)?.view(row).len() as u32)
    }

    /// The receive interface of a packet.
    pub(crate) fn rx(&mut self, row: Option<u32>) -> Result<u32, Fault> {
        let row = self.row(row)?;
        Ok(lent(&mut self.packets)?.view(row).rx())
    }

    /// Check IPv4 packets as ip4-input does. Returns masks of those that may be forwarded, cut to their total length, and of those that
    /// are invalid. Packets with options and with a TTL of 0 or 1 are in neither.
    pub(crate) fn check_ip4(&mut self, mask: u32) -> Result<(u32, u32), Fault> {
        let selected = self.select(mask)?;
        let (good, bad) = (self.masks.add()?, self.masks.add()?);
        for &row in &selected {
            let row = row as usize;
            let net = self.net(row);
            let mut packet = lent(&mut self.packets)?.packet(row);
            match valid4(packet.bytes(), net, packet.len()) {
                Valid4::Good(length) => {
                    packet.truncate(length);
                    masks::insert(self.masks.get_mut(good)?, row);
                }
                Valid4::Bad => masks::insert(self.masks.get_mut(bad)?, row),
                Valid4::Slow => {}
            }
        }
        self.selected = selected;
        Ok((good, bad))
    }

    /// Look up the destinations of IPv4 packets. Returns the mask of those whose route is complete and whose length the interface of
    /// the route can transmit.
    pub(crate) fn lookup(
        &mut self,
        mask: u32,
        view: &Lpm4View,
        hops: &[Hop],
    ) -> Result<u32, Fault> {
        let selected = self.select(mask)?;
        let found = self.masks.add()?;
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        for &row in &selected {
            let net = self.net(row as usize);
            let bytes = lent(&mut self.packets)?.view(row as usize).bytes();
            keys.push(ip4(bytes, net).map_or(0, |header| header.dst().to_bits()));
        }
        view.lookup_batch(&keys, &mut self.leaves[..keys.len()]);
        self.keys = keys;
        for (at, &row) in selected.iter().enumerate() {
            let row = row as usize;
            let hop = (self.leaves[at] as usize).checked_sub(1);
            let hop = hop.and_then(|at| hops.get(at)).copied();
            let hop = hop.unwrap_or(Hop::NONE);
            self.hops[row] = hop;
            let length = lent(&mut self.packets)?
                .view(row)
                .len()
                .saturating_sub(self.net(row));
            if hop.is_complete && length <= hop.mtu as usize {
                masks::insert(self.masks.get_mut(found)?, row);
            }
        }
        self.selected = selected;
        Ok(found)
    }

    /// Apply the routes of a lookup: decrement the TTL and write the Ethernet header.
    pub(crate) fn apply(&mut self, mask: u32) -> Result<(), Fault> {
        let selected = self.select(mask)?;
        for &row in &selected {
            let row = row as usize;
            let hop = self.hops[row];
            if !hop.is_complete {
                return Err(format!(
                    "packet {} has no complete route: apply routes to the mask that `lookup` returns",
                    row + 1
                ));
            }
            let net = self.net(row);
            decrement_ttl(lent(&mut self.packets)?.packet(row).bytes_mut(), net);
            self.put_ethernet(row, &hop.ethernet)?;
        }
        self.selected = selected;
        Ok(())
    }

    /// Write the Ethernet header of a packet, in front of its IP header.
    fn put_ethernet(&mut self, row: usize, header: &[u8; ETHERNET]) -> Result<(), Fault> {
        let net = self.net(row);
        let mut packet = lent(&mut self.packets)?.packet(row);
        if net == 0 && !packet.retreat(ETHERNET) {
            return Err(format!(
                "packet {} has no room for an Ethernet header",
                row + 1
            ));
        }
        if let Some(bytes) = packet.bytes_mut().first_chunk_mut::<ETHERNET>() {
            *bytes = *header;
        }
        self.framed[row] = true;
        Ok(())
    }

    /// Send packets on this interface, or on that of their route.
    pub(crate) fn send(&mut self, mask: u32, interface: Option<u32>) -> Result<(), Fault> {
        let selected = self.select(mask)?;
        for &row in &selected {
            let row = row as usize;
            if let Some(interface) = interface {
                self.hops[row].interface = interface;
            }
            if self.hops[row].interface == NO_INTERFACE {
                return Err(format!(
                    "packet {} has no route: name the interface, or look the packet up before",
                    row + 1
                ));
            }
            if self.net(row) == 0 {
                return Err(format!(
                    "packet {} has no Ethernet header: apply a route before it is sent",
                    row + 1
                ));
            }
            self.verdicts[row] = Verdict::Send;
        }
        self.selected = selected;
        Ok(())
    }

    /// Set the verdict on the packets of a mask.
    pub(crate) fn decide(&mut self, mask: u32, verdict: Verdict) -> Result<(), Fault> {
        lent(&mut self.packets)?;
        for row in rows(self.masks.get(mask)?) {
            self.verdicts[row] = verdict;
        }
        Ok(())
    }

    /// The packets about which the script has not decided.
    pub(crate) fn rest(&mut self) -> Result<u32, Fault> {
        let selected = self.select(ALL)?;
        let new = self.masks.add()?;
        for &row in &selected {
            if self.verdicts[row as usize] == Verdict::Next {
                masks::insert(self.masks.get_mut(new)?, row as usize);
            }
        }
        self.selected = selected;
        Ok(new)
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
        let row = self.row(None)?;
        let mut packet = lent(&mut self.packets)?.packet(row);
        let rx = packet.rx();
        if change(&mut packet).is_err() {
            return Ok(false);
        }
        // A reply has its checksums.
        packet.set(Col::OFFLOAD, 0);
        self.hops[row].interface = rx;
        self.framed[row] = true;
        self.verdicts[row] = Verdict::Send;
        Ok(true)
    }
}

/// The packets of the vector.
fn lent(packets: &mut Option<LentPackets>) -> Result<&mut LentPackets, Fault> {
    let none = || "there is no vector: use it only in `vector` and `packet`".to_owned();
    packets.as_mut().ok_or_else(none)
}

fn beyond(row: usize, at: u32, length: usize) -> Fault {
    format!(
        "packet {} has no byte {at}: its first segment has {length} bytes, counted from 0",
        row + 1
    )
}

/// The verdict on an IPv4 packet.
enum Valid4 {
    /// The packet may be forwarded; the length of the packet without padding, from its position.
    Good(usize),
    /// A rule of RFC 1812 forbids to forward it.
    Bad,
    /// The packet has options, or its TTL ends here.
    Slow,
}

/// Whether an address is none that a host on the wire may have (RFC 1812, 5.3.7): of this network, loopback, or from 224 on a group,
/// reserved or the limited broadcast address.
pub(crate) fn is_reserved(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first == 0 || first == 127 || first >= 224
}

/// The IPv4 header that starts at `net`.
fn ip4(bytes: &[u8], net: usize) -> Option<&Ip4Header> {
    Some(Ip4Header::split(bytes.get(net..)?).ok()?.0)
}

/// Check an IPv4 packet of `length` bytes whose header starts at `net`, in the order of ip4-input (`docs/forwarding-rules.md`).
fn valid4(bytes: &[u8], net: usize, length: usize) -> Valid4 {
    let Some(header) = ip4(bytes, net) else {
        return Valid4::Bad;
    };
    let (ihl, total) = (header.header_len(), usize::from(header.total_len.get()));
    if header.version() != 4 || ihl < Ip4Header::LEN || total < ihl || net + total > length {
        return Valid4::Bad;
    }
    let whole = bytes.get(net..net + ihl);
    if !whole.is_some_and(checksum::is_valid) {
        return Valid4::Bad;
    }
    let (src, dst) = (header.src(), header.dst());
    if is_reserved(dst) || src.is_link_local() || dst.is_link_local() {
        return Valid4::Bad;
    }
    match header.ttl {
        // The TTL is judged before the source.
        0 | 1 => Valid4::Slow,
        _ if is_reserved(src) => Valid4::Bad,
        _ if ihl > Ip4Header::LEN => Valid4::Slow,
        _ => Valid4::Good(net + total),
    }
}

/// Decrement the TTL and correct the checksum. A TTL of 0 stays.
fn decrement_ttl(bytes: &mut [u8], net: usize) {
    let header = bytes.get_mut(net..).map(Ip4Header::split_mut);
    if let Some(Ok((header, _))) = header
        && header.ttl > 0
    {
        header.decrement_ttl();
    }
}

/// Write the checksum of an IPv4 header.
fn fill_checksum(bytes: &mut [u8], net: usize) {
    let header = bytes.get_mut(net..).map(Ip4Header::split_mut);
    if let Some(Ok((header, behind))) = header
        && let Some(options) = header.header_len().checked_sub(Ip4Header::LEN)
        && let Some(options) = behind.get(..options)
    {
        header.fill_checksum(options);
    }
}
