//! CheckIPHeader: the checks of RFC 1812, 5.2.2, and those of the source address.

use crate::arguments::{Arguments, mask, number, plain_words, prefix};
use crate::cells::Cells;
use crate::columns;
use crate::element::{Each, Fast, Made, Reason, Verdict};
use crate::fast::BAD;
use crate::packet::{Ip, dst, src};
use crate::spec::Need::{Keyword, Optional};
use crate::spec::{Argument, Context, Kind, Spec, argument, reads};
use std::sync::Arc;
use volley_graph::Packet;
use volley_wire::checksum::Sum;

/// The farthest place of a header.
const FARTHEST: u64 = 2027;

#[derive(Clone)]
struct CheckIpHeader {
    offset: usize,
    /// Wrong source addresses, sorted.
    bad: Arc<[u32]>,
    /// Destinations for which any source is right, sorted.
    good: Arc<[u32]>,
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
        let (src, dst) = (src(header), dst(header));
        let is_bad = self.bad.binary_search(&src).is_ok();
        match is_bad && self.good.binary_search(&dst).is_err() {
            true => Err(Reason::BadSource),
            false => Ok((ip, dst)),
        }
    }
}

impl Each for CheckIpHeader {
    fn fast(&self) -> Fast {
        let is_usual = self.offset == 0 && self.checksum && self.bad.len() <= BAD;
        let first = self.bad.first().copied();
        match first.filter(|_| is_usual) {
            None => Fast::None,
            // The rest repeats the first one.
            Some(first) => Fast::CheckIp(std::array::from_fn(|at| {
                self.bad.get(at).copied().unwrap_or(first)
            })),
        }
    }

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

/// The addresses of an argument, each with the broadcast address of its prefix, if it has one.
fn addresses(name: &str, text: &str) -> Result<Vec<(u32, Option<u32>)>, String> {
    let words = plain_words(text).into_iter();
    let read = |word: String| {
        let (address, len) = prefix(&word)
            .ok_or_else(|| format!("'{word}' is not an IPv4 address or prefix: correct {name}"))?;
        Ok((address, (len < 31).then_some(address | !mask(len))))
    };
    words.map(read).collect()
}

fn check(
    arguments: &Arguments,
    context: &Context<'_>,
    with_checksum: bool,
) -> Result<Made, String> {
    let text = |name| arguments.text(name).unwrap_or_default();
    // An only number is the place of the header.
    let (place, bad_src) = match (arguments.number("OFFSET"), number(text("BADSRC"))) {
        (None, Some(place)) if place <= FARTHEST => (place, ""),
        (place, _) => (place.unwrap_or(0), text("BADSRC")),
    };
    // RFC 1122, 3.2.1.3: these are not valid as a source.
    let mut bad = vec![0, u32::MAX];
    let given = addresses("BADSRC", bad_src)?.into_iter();
    bad.extend(given.map(|(address, broadcast)| broadcast.unwrap_or(address)));
    let good = addresses("GOODDST", text("GOODDST"))?.into_iter();
    let mut good: Vec<u32> = good.map(|(address, _)| address).collect();
    for (address, broadcast) in addresses("INTERFACES", text("INTERFACES"))? {
        good.push(address);
        bad.extend(broadcast);
    }
    bad.sort_unstable();
    good.sort_unstable();
    Ok(Made::each(CheckIpHeader {
        offset: place as usize,
        bad: bad.into(),
        good: good.into(),
        checksum: arguments.flag("CHECKSUM").unwrap_or(with_checksum),
        cells: context.cells.clone(),
    }))
}

const ARGUMENTS: &[Argument] = &[
    argument(
        Optional,
        "BADSRC",
        Kind::Words,
        "wrong source addresses; a prefix means its broadcast address; a number is OFFSET",
    ),
    argument(
        Optional,
        "OFFSET",
        Kind::Number(0, FARTHEST),
        "place of the header, 0 by default",
    ),
    argument(
        Keyword,
        "INTERFACES",
        Kind::Words,
        "addresses of the router with prefix length: adds the broadcast addresses to BADSRC, and the addresses to GOODDST",
    ),
    argument(
        Keyword,
        "GOODDST",
        Kind::Words,
        "destinations for which any source is right",
    ),
    argument(
        Keyword,
        "CHECKSUM",
        Kind::Bool,
        "whether the checksum is checked, by default yes, and in CheckIPHeader2 no",
    ),
    VERBOSE,
    DETAILS,
];

pub(super) const VERBOSE: Argument =
    argument(Keyword, "VERBOSE", Kind::Bool, "accepted and ignored");
pub(super) const DETAILS: Argument = argument(
    Keyword,
    "DETAILS",
    Kind::Bool,
    "accepted and ignored: reasons are counted",
);

pub(super) const SPEC: Spec = Spec {
    name: "CheckIPHeader",
    ports: "1/1-2",
    modes: "a/ah",
    arguments: ARGUMENTS,
    handlers: &[reads("drops", 0, "packets that are wrong")],
    text: "Checks the IP header, marks it, and notes the destination; wrong packets go to output 1.",
    make: |arguments, context| check(arguments, context, true),
};

pub(super) const WITHOUT_CHECKSUM: Spec = Spec {
    name: "CheckIPHeader2",
    text: "As CheckIPHeader, but the checksum is checked only with CHECKSUM true.",
    make: |arguments, context| check(arguments, context, false),
    ..SPEC
};
