//! IPRewriter and IPAddrPairRewriter: addresses and ports of flows, and of the replies to them.

use crate::arguments::{Arguments, number, plain_words};
use crate::cells::Cells;
use crate::columns;
use crate::element::{Each, Element, Made, Reason, Verdict};
use crate::packet::{Ip, TCP, UDP, change32, dst, is_first, protocol, put, src, u16_at, u32_at};
use crate::spec::Need::{Keyword, Rest};
use crate::spec::{Argument, Context, Handler, Kind, Spec, argument, reads};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use volley_graph::Packet;
use volley_wire::checksum::{update, update32};

/// Addresses and ports of a packet. Without ports, these and the protocol are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flow {
    src: u32,
    sport: u16,
    dst: u32,
    dport: u16,
    protocol: u8,
}

impl Flow {
    fn reversed(self) -> Flow {
        Flow {
            src: self.dst,
            sport: self.dport,
            dst: self.src,
            dport: self.sport,
            protocol: self.protocol,
        }
    }
}

/// What happens to the first packet of a flow.
#[derive(Clone, Debug)]
enum Rule {
    Drop,
    /// Leave the packet alone, without a mapping.
    Pass(usize),
    /// Leave addresses and ports alone, and note the flow: outputs of the flow and of its replies.
    Keep(usize, usize),
    /// Replace what is given; ports from a range.
    Pattern {
        src: Option<u32>,
        sport: Option<(u16, u16)>,
        dst: Option<u32>,
        dport: Option<u16>,
        outputs: (usize, usize),
    },
}

#[derive(Clone, Copy)]
struct Mapping {
    to: Flow,
    output: usize,
    used_ns: u64,
}

/// Flows in both directions at most.
const MOST: usize = 65_536;
/// Mappings that are examined for an old one when there are too many.
const LOOKED_AT: usize = 64;

struct Rewriter {
    with_ports: bool,
    /// Packets of other protocols are dropped.
    only: Option<u8>,
    rules: Arc<[Rule]>,
    mappings: HashMap<Flow, Mapping>,
    timeout_ns: u64,
    /// The next port of each rule.
    next_port: Vec<u16>,
    cells: Arc<Cells>,
}

impl Rewriter {
    fn flow(&self, packet: &Packet<'_>, ip: &Ip) -> Option<Flow> {
        let header = ip.bytes(packet.bytes());
        let mut flow = Flow {
            src: src(header),
            sport: 0,
            dst: dst(header),
            dport: 0,
            protocol: 0,
        };
        if self.with_ports {
            flow.protocol = protocol(header);
            let bytes = packet.bytes().get(ip.at + ip.header..)?;
            let least = if flow.protocol == TCP { 18 } else { 8 };
            let is_other = self.only.is_some_and(|only| only != flow.protocol);
            if is_other
                || ![TCP, UDP].contains(&flow.protocol)
                || !is_first(header)
                || bytes.len() < least
            {
                return None;
            }
            (flow.sport, flow.dport) = (u16_at(bytes, 0), u16_at(bytes, 2));
        }
        Some(flow)
    }

    fn make_room(&mut self, now_ns: u64) {
        if self.mappings.len() + 2 <= MOST {
            return;
        }
        let timeout = self.timeout_ns;
        let some = self.mappings.iter().take(LOOKED_AT);
        let old = some.max_by_key(|(_, it)| now_ns.saturating_sub(it.used_ns));
        if let Some((flow, mapping)) = old.map(|(flow, mapping)| (*flow, *mapping)) {
            let late = now_ns.saturating_sub(mapping.used_ns) > timeout;
            self.cells.add(1, u64::from(!late));
            self.mappings.remove(&flow);
            self.mappings.remove(&mapping.to.reversed());
        }
    }

    /// Add a flow and its replies.
    fn add(&mut self, from: Flow, to: Flow, outputs: (usize, usize), now_ns: u64) {
        self.make_room(now_ns);
        let mapping = |to, output| Mapping {
            to,
            output,
            used_ns: now_ns,
        };
        self.mappings.insert(from, mapping(to, outputs.0));
        self.mappings
            .insert(to.reversed(), mapping(from.reversed(), outputs.1));
        self.cells.set(0, self.mappings.len() as u64 / 2);
    }

    /// What a pattern makes of a flow: a port that no other flow has.
    fn apply(&mut self, rule: usize, from: Flow) -> Option<(Flow, (usize, usize))> {
        let Rule::Pattern {
            src,
            sport,
            dst,
            dport,
            outputs,
        } = self.rules[rule].clone()
        else {
            return None;
        };
        let mut to = Flow {
            src: src.unwrap_or(from.src),
            dst: dst.unwrap_or(from.dst),
            dport: dport.unwrap_or(from.dport),
            ..from
        };
        let Some((low, high)) = sport else {
            let free = !self.mappings.contains_key(&to.reversed());
            return free.then_some((to, outputs));
        };
        for _ in low..=high {
            let port = self.next_port[rule].clamp(low, high);
            self.next_port[rule] = if port >= high { low } else { port + 1 };
            to.sport = port;
            if !self.mappings.contains_key(&to.reversed()) {
                return Some((to, outputs));
            }
        }
        None
    }

    fn rewrite(&self, packet: &mut Packet<'_>, ip: &Ip, from: Flow, to: Flow) {
        let first = is_first(ip.bytes(packet.bytes()));
        let kind = protocol(ip.bytes(packet.bytes()));
        let bytes = packet.bytes_mut();
        change32(bytes, ip.at, 12, to.src);
        change32(bytes, ip.at, 16, to.dst);
        let at = ip.at + ip.header;
        let sum_at = match kind {
            TCP => at + 16,
            UDP => at + 6,
            _ => return,
        };
        if !first || bytes.len() < sum_at + 2 {
            return;
        }
        let before = u16_at(bytes, sum_at);
        if self.with_ports {
            put(bytes, at, &to.sport.to_be_bytes());
            put(bytes, at + 2, &to.dport.to_be_bytes());
        }
        if kind == UDP && before == 0 {
            return;
        }
        let mut sum = update32(before, from.src, to.src);
        sum = update32(sum, from.dst, to.dst);
        if self.with_ports {
            sum = update(sum, from.sport, to.sport);
            sum = update(sum, from.dport, to.dport);
        }
        let sum = if kind == UDP && sum == 0 { 0xffff } else { sum };
        put(bytes, sum_at, &sum.to_be_bytes());
    }
}

impl Each for Rewriter {
    fn packet(&mut self, packet: &mut Packet<'_>, now_ns: u64) -> Verdict {
        let input = columns::take_port(packet);
        let Some(ip) = Ip::of(&packet.view()) else {
            return Verdict::drop(Reason::NoIpHeader);
        };
        let Some(flow) = self.flow(packet, &ip) else {
            return Verdict::drop(Reason::Unmatched);
        };
        if let Some(mapping) = self.mappings.get_mut(&flow) {
            mapping.used_ns = now_ns;
            let mapping = *mapping;
            self.rewrite(packet, &ip, flow, mapping.to);
            columns::set_dst(packet, mapping.to.dst);
            debug_assert_eq!(u32_at(packet.bytes(), ip.at + 16), mapping.to.dst);
            return Verdict::port(mapping.output);
        }
        let rule = input.min(self.rules.len() - 1);
        let (to, outputs) = match &self.rules[rule] {
            Rule::Drop => return Verdict::drop(Reason::Refused),
            Rule::Pass(output) => return Verdict::port(*output),
            Rule::Keep(forward, reply) => (flow, (*forward, *reply)),
            Rule::Pattern { .. } => match self.apply(rule, flow) {
                Some(made) => made,
                None => return Verdict::drop(Reason::Refused),
            },
        };
        self.add(flow, to, outputs, now_ns);
        self.rewrite(packet, &ip, flow, to);
        columns::set_dst(packet, to.dst);
        Verdict::port(outputs.0)
    }
}

/// The rule of an input.
fn rule(text: &str, with_ports: bool) -> Option<Rule> {
    let words = plain_words(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let port = |word: &str| number(word).filter(|it| *it < 1024).map(|it| it as usize);
    let address = |word: &str| match word {
        "-" => Some(None),
        _ => word.parse::<Ipv4Addr>().ok().map(|it| Some(it.to_bits())),
    };
    let number16 = |word: &str| word.parse::<u16>().ok();
    let range = |word: &str| match word.trim_end_matches('#').split_once('-') {
        _ if word == "-" => Some(None),
        Some((low, high)) => {
            let (low, high) = (number16(low)?, number16(high)?);
            (low <= high).then_some(Some((low, high)))
        }
        None => number16(word).map(|it| Some((it, it))),
    };
    match (words.as_slice(), with_ports) {
        (["drop" | "discard"], _) => Some(Rule::Drop),
        (["pass" | "passthrough" | "nochange", output], _) => Some(Rule::Pass(port(output)?)),
        (["pass" | "passthrough" | "nochange"], _) => Some(Rule::Pass(0)),
        (["keep", forward, reply], _) => Some(Rule::Keep(port(forward)?, port(reply)?)),
        (["pattern", from, sport, to, dport, forward, reply], true) => Some(Rule::Pattern {
            src: address(from)?,
            sport: range(sport)?,
            dst: address(to)?,
            dport: match *dport {
                "-" => None,
                word => Some(number16(word)?),
            },
            outputs: (port(forward)?, port(reply)?),
        }),
        (["pattern", from, to, forward, reply], false) => Some(Rule::Pattern {
            src: address(from)?,
            sport: None,
            dst: address(to)?,
            dport: None,
            outputs: (port(forward)?, port(reply)?),
        }),
        _ => None,
    }
}

fn outputs(rules: &[Rule]) -> usize {
    let last = rules.iter().map(|rule| match rule {
        Rule::Drop => 0,
        Rule::Pass(output) => *output,
        Rule::Keep(forward, reply) => *forward.max(reply),
        Rule::Pattern { outputs, .. } => outputs.0.max(outputs.1),
    });
    last.max().unwrap_or(0) + 1
}

fn rewriter(
    arguments: &Arguments,
    context: &Context<'_>,
    (with_ports, only): (bool, Option<u8>),
) -> Result<Made, String> {
    let mut rules = Vec::new();
    for text in arguments.rest() {
        rules.push(rule(text, with_ports).ok_or_else(|| {
            let pattern = match with_ports {
                true => "pattern 192.0.2.1 1024-65535 - - 0 1",
                false => "pattern 192.0.2.1 - 0 1",
            };
            format!("'{text}' is no rule for an input: give {pattern}, keep 0 1, pass 0 or drop")
        })?);
    }
    if rules.is_empty() {
        return Err("a rule for input 0 is missing: give one such as keep 0 1".to_owned());
    }
    let (inputs, outputs) = (rules.len(), outputs(&rules));
    let starts: Vec<u16> = rules
        .iter()
        .map(|rule| match rule {
            Rule::Pattern {
                sport: Some((low, _)),
                ..
            } => *low,
            _ => 0,
        })
        .collect();
    let timeout_ns = (arguments.fraction("TIMEOUT").unwrap_or(300.0) * 1e9) as u64;
    let (rules, cells) = (Arc::<[Rule]>::from(rules), context.cells.clone());
    let element = move || {
        let rewriter = Rewriter {
            with_ports,
            only,
            rules: rules.clone(),
            // Does not grow while packets flow.
            mappings: HashMap::with_capacity(MOST + 2),
            timeout_ns,
            next_port: starts.clone(),
            cells: cells.clone(),
        };
        Box::new(rewriter) as Box<dyn Each>
    };
    let mut made = Made::new(Element::Each(Box::new(element))).outputs(outputs);
    made.inputs = Some(inputs);
    Ok(made)
}

const HANDLERS: &[Handler] = &[
    reads("size", 0, "flows that are known"),
    reads("evicted", 1, "flows that were removed before their time"),
];

const RULES: &[Argument] = &[
    argument(
        Rest,
        "RULES",
        Kind::Words,
        "for each input: pattern SADDR SPORT DADDR DPORT OUTPUT REPLY, keep OUTPUT REPLY, pass OUTPUT, or drop; - leaves a field alone",
    ),
    argument(
        Keyword,
        "TIMEOUT",
        Kind::Time,
        "time without packets after which a flow may be forgotten, 300 s by default",
    ),
];

pub(super) const PORTS: Spec = Spec {
    name: "IPRewriter",
    ports: "1-/1-",
    modes: "h/h",
    arguments: RULES,
    handlers: HANDLERS,
    text: "Replaces addresses and ports of TCP and UDP flows by the rule of the input, and undoes that for replies.",
    make: |arguments, context| rewriter(arguments, context, (true, None)),
};

pub(super) const TCP_ONLY: Spec = Spec {
    name: "TCPRewriter",
    text: "As IPRewriter, for TCP only.",
    make: |arguments, context| rewriter(arguments, context, (true, Some(TCP))),
    ..PORTS
};

pub(super) const UDP_ONLY: Spec = Spec {
    name: "UDPRewriter",
    text: "As IPRewriter, for UDP only.",
    make: |arguments, context| rewriter(arguments, context, (true, Some(UDP))),
    ..PORTS
};

pub(super) const ADDRESSES: Spec = Spec {
    name: "IPAddrPairRewriter",
    arguments: &[
        argument(
            Rest,
            "RULES",
            Kind::Words,
            "for each input: pattern SADDR DADDR OUTPUT REPLY, keep OUTPUT REPLY, pass OUTPUT, or drop; - leaves an address alone",
        ),
        argument(
            Keyword,
            "TIMEOUT",
            Kind::Time,
            "time without packets after which a flow may be forgotten, 300 s by default",
        ),
    ],
    text: "Replaces addresses by the rule of the input, and undoes that for replies.",
    make: |arguments, context| rewriter(arguments, context, (false, None)),
    ..PORTS
};
