//! Lookup of the longest prefix, in the table of the house.

use super::{icmp, ping};
use crate::arguments::{Arguments, mask, number, plain_words, prefix};
use crate::columns::DST;
use crate::element::{Each, Element, Fast, Made, Reason, Verdict};
use crate::fast::Routes;
use crate::spec::Need::Rest;
use crate::spec::{Context, Kind, Spec, argument};
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use volley_graph::{Guard, Packet, Rows};
use volley_tables::Lpm4;

/// Next hop and output of a route.
type Hop = (u32, usize);

/// The routes of an element.
struct Lookup {
    routes: Routes,
    leaves: Box<[u32]>,
}

impl Each for Lookup {
    fn fast(&self) -> Fast {
        Fast::Route(self.routes.clone())
    }

    /// Not called: the lookup is for a whole vector.
    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        Verdict::drop(Reason::NoRoute)
    }

    fn run(&mut self, rows: &mut Rows<'_>, verdicts: &mut [u32], _: u64, guard: Guard<'_>) {
        let addresses = rows.column_mut(DST.col);
        let leaves = &mut self.leaves[..addresses.len()];
        self.routes.judge(addresses, leaves, verdicts, guard);
    }
}

/// `10.0.0.0/8 10.0.0.1 2`: prefix, next hop (0.0.0.0 or none for a connected network), output.
fn route(text: &str) -> Option<(u32, u8, Hop)> {
    let words = plain_words(text);
    let (address, len) = prefix(words.first()?)?;
    let (gateway, port) = match words.as_slice() {
        [_, port] => (0, port),
        [_, gateway, port] if gateway == "-" => (0, port),
        [_, gateway, port] => (gateway.parse::<Ipv4Addr>().ok()?.to_bits(), port),
        _ => return None,
    };
    let port = number(port).filter(|port| *port < 1024)?;
    Some((address & mask(len), len, (gateway, port as usize)))
}

fn lookup(arguments: &Arguments, context: &Context<'_>) -> Result<Made, String> {
    let mut table = Lpm4::new(context.domain);
    let mut hops: Vec<Hop> = Vec::new();
    let mut shown = String::new();
    for text in arguments.rest() {
        let (address, len, hop) = route(text).ok_or_else(|| {
            format!("'{text}' is no route: give prefix, next hop and output, such as 10.0.0.0/8 192.0.2.1 1")
        })?;
        let at = hops.iter().position(|it| *it == hop).unwrap_or(hops.len());
        if at == hops.len() {
            hops.push(hop);
        }
        // Of equal prefixes the first one holds.
        if table.get(address, len).is_none() {
            let added = table.insert(address, len, at as u32 + 1);
            added.map_err(|error| error.to_string())?;
        }
        let gateway = Ipv4Addr::from_bits(hop.0);
        // Writing to a string does not fail.
        let _ = writeln!(
            shown,
            "{}/{len}\t{gateway}\t{}",
            Ipv4Addr::from_bits(address),
            hop.1
        );
    }
    let outputs = hops.iter().map(|(_, port)| port + 1).max().unwrap_or(1);
    let (snap, hops, size) = (table.snap(), Arc::<[Hop]>::from(hops), context.vector_size);
    let element = move || {
        let lookup = Lookup {
            routes: Routes {
                table: snap.clone(),
                hops: hops.clone(),
            },
            leaves: vec![0; size].into(),
        };
        Box::new(lookup) as Box<dyn Each>
    };
    let mut made = Made::new(Element::Each(Box::new(element))).outputs_from(outputs);
    made.texts.push(("table", shown));
    made.kept = Some(Box::new(table));
    Ok(made)
}

const LOOKUP: Spec = Spec {
    name: "StaticIPLookup",
    ports: "1/-",
    modes: "h/h",
    arguments: &[argument(
        Rest,
        "ROUTES",
        Kind::Words,
        "prefix, next hop (it can be left out) and output of each route",
    )],
    handlers: &[],
    text: "Sends packets to the output of the longest prefix of their noted destination, and notes the next hop. The handler table has the routes.",
    make: lookup,
};

pub(super) const SPECS: &[Spec] = &[
    LOOKUP,
    Spec {
        name: "LinearIPLookup",
        ..LOOKUP
    },
    Spec {
        name: "RadixIPLookup",
        ..LOOKUP
    },
    Spec {
        name: "DirectIPLookup",
        ..LOOKUP
    },
    Spec {
        name: "LookupIPRoute",
        ..LOOKUP
    },
    icmp::RESPONDER,
    icmp::ERROR,
    ping::SOURCE,
];
