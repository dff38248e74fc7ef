//! CheckIPHeader: the checks of RFC 1812, 5.2.2, and those of the source address.

use crate::arguments::{Arguments, mask, plain_words, prefix};
use crate::cells::Cells;
use crate::columns;
use crate::element::{Each, Made, Reason, Verdict};
use crate::packet::{Ip, dst, src};
use crate::spec::Need::{Keyword, Optional};
use crate::spec::{Argument, Context, Kind, Spec, argument, reads};
use std::sync::Arc;
use volley_graph::Packet;
use volley_wire::checksum::Sum;

#[derive(Clone)]
struct CheckIpHeader {
    offset: usize,
    /// Wrong source addresses, sorted.
    bad: Arc<[u32]>,
    checksum: bool,
    cells: Arc<Cells>,
}

impl CheckIpHeader {
    fn check(&self, packet: &Packet<'_>) -> Result<(Ip, u32), Reason> {
        let view = packet.view();
        if view.bytes().len() < self.offset + 20 {
            return Err(Reason::TooShort);
        }
        let ip = Ip::at(&view, self.offset).ok_or(Reason::BadHeader)?;
        let header = ip.bytes(view.bytes());
        if self.checksum && !Sum::new().bytes(header).is_valid() {
            return Err(Reason::BadChecksum);
        }
        match self.bad.binary_search(&src(header)) {
            Ok(_) => Err(Reason::BadSource),
            Err(_) => Ok((ip, dst(header))),
        }
    }
}

impl Each for CheckIpHeader {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        match self.check(packet) {
            Ok((ip, dst)) => {
                // Padding of the frame is not part of the packet.
                packet.truncate(ip.at + ip.total);
                columns::set_net(packet, ip.at);
                columns::set_dst(packet, dst);
                Verdict::port(0)
            }
            Err(reason) => {
                self.cells.add(0, 1);
                Verdict::port_or(1, reason)
            }
        }
    }
}

fn check(arguments: &Arguments, context: &Context<'_>) -> Result<Made, String> {
    // RFC 1122, 3.2.1.3: these are not valid as a source.
    let mut bad = vec![0, u32::MAX];
    let given = ["INTERFACES", "BADSRC"].map(|name| arguments.text(name).unwrap_or_default());
    for word in given.iter().flat_map(|text| plain_words(text)) {
        let (address, len) = prefix(&word).ok_or_else(|| {
            format!("'{word}' is not an IPv4 address or prefix: correct the bad source addresses")
        })?;
        match len {
            31 | 32 => bad.push(address),
            _ => bad.push(address | !mask(len)),
        }
    }
    bad.sort_unstable();
    Ok(Made::each(CheckIpHeader {
        offset: arguments.number("OFFSET").unwrap_or(0) as usize,
        bad: bad.into(),
        checksum: arguments.flag("CHECKSUM").unwrap_or(true),
        cells: context.cells.clone(),
    }))
}

const ARGUMENTS: &[Argument] = &[
    argument(
        Optional,
        "INTERFACES",
        Kind::Words,
        "wrong source addresses; a prefix means its broadcast address",
    ),
    argument(
        Optional,
        "OFFSET",
        Kind::Number(0, 2027),
        "place of the header, 0 by default",
    ),
    argument(
        Keyword,
        "BADSRC",
        Kind::Words,
        "further wrong source addresses",
    ),
    argument(
        Keyword,
        "CHECKSUM",
        Kind::Bool,
        "whether the checksum is checked, true by default",
    ),
    argument(Keyword, "VERBOSE", Kind::Bool, "accepted and ignored"),
    argument(
        Keyword,
        "DETAILS",
        Kind::Bool,
        "accepted and ignored: reasons are counted",
    ),
];

pub(super) const SPEC: Spec = Spec {
    name: "CheckIPHeader",
    ports: "1/1-2",
    modes: "a/ah",
    arguments: ARGUMENTS,
    handlers: &[reads("drops", 0, "packets that are wrong")],
    text: "Checks the IP header, marks it, and notes the destination; wrong packets go to output 1.",
    make: check,
};
