//! `show interfaces | interface address | hardware`.

use volley_model::reply::{
    Counter, HardwareReply, InterfaceRate, InterfaceRow, InterfacesReply, RxPlacementReply,
};
use volley_model::{AdminState, escape};
use volley_show::{narrow, or_dash, rate, table};

/// One line an interface: state, what passed in the last ten seconds, what was lost, what it is for.
pub(super) fn brief(reply: &InterfacesReply) -> String {
    let row = |i: &InterfaceRow| {
        let lately = i.rates.iter().find(|r| r.span_s == 10);
        let shown = |of: fn(&InterfaceRate) -> u64| lately.map(|r| rate(of(r) as f64));
        vec![
            i.name.clone(),
            state(i),
            i.mtu.to_string(),
            or_dash(i.speed_bps.map(speed)),
            or_dash(shown(|r| r.rx_bps)),
            or_dash(shown(|r| r.rx_pps)),
            or_dash(shown(|r| r.tx_bps)),
            or_dash(shown(|r| r.tx_pps)),
            (i.rx_errors + i.tx_errors).to_string(),
            i.drops.to_string(),
            escape(i.description.as_deref().unwrap_or_default()).into_owned(),
        ]
    };
    let rows: Vec<_> = reply.interfaces.iter().map(row).collect();
    let heads = [
        "Name",
        "State",
        ">MTU",
        ">Speed",
        ">In bps",
        ">pps",
        ">Out bps",
        ">pps",
        ">Err",
        ">Drops",
        "Description",
    ];
    let mut out = narrow(&table(&heads, &rows));
    reply.interfaces.iter().for_each(|i| out += &notes(i));
    out
}

/// One line per interface and one per counter that is not zero; rates.
pub(super) fn interfaces(reply: &InterfacesReply) -> String {
    let mut rows = Vec::new();
    for i in &reply.interfaces {
        let mut first = vec![
            i.name.clone(),
            i.index.to_string(),
            state(i),
            i.mtu.to_string(),
        ];
        for (name, value) in counters(i) {
            first.extend([name, value.to_string()]);
            rows.push(std::mem::replace(&mut first, vec![String::new(); 4]));
        }
        if first.first().is_some_and(|name| !name.is_empty()) {
            rows.push(first);
        }
    }
    let mut out = table(
        &["Name", ">Idx", "State", ">MTU", "Counter", ">Count"],
        &rows,
    );
    for i in &reply.interfaces {
        if let Some(text) = &i.description {
            out += &format!("{}: {}\n", i.name, escape(text));
        }
        for r in i
            .rates
            .iter()
            .filter(|_| i.rates.iter().any(|r| r.rx_pps + r.tx_pps > 0))
        {
            let [rx_bps, rx_pps, tx_bps, tx_pps] =
                [r.rx_bps, r.rx_pps, r.tx_bps, r.tx_pps].map(|n| rate(n as f64));
            out += &format!(
                "{}: {:>2} s: in {rx_bps} bit/s, {rx_pps} packets/s, out {tx_bps} bit/s, {tx_pps} packets/s\n",
                i.name, r.span_s
            );
        }
        out += &notes(i);
    }
    out
}

/// A speed with a unit: `10G`, `2.5G`, `100M`.
fn speed(bps: u64) -> String {
    let (n, unit) = match bps {
        1_000_000_000.. => (bps as f64 / 1e9, "G"),
        _ => (bps as f64 / 1e6, "M"),
    };
    // A thousandth is more than any link's name has.
    format!("{}{unit}", (n * 1000.0).round() / 1000.0)
}

/// Why there is no link, and what is odd about the MTU.
fn notes(i: &InterfaceRow) -> String {
    let link = match &i.link_reason {
        Some(why) if i.waiting => format!("{}: {why}\n", i.name),
        Some(why) => format!("{}: no link: {why}\n", i.name),
        None => String::new(),
    };
    link + &mtus(i)
}

/// The effective MTU beside the configured one and that of the kernel's interface, where they differ.
fn mtus(i: &InterfaceRow) -> String {
    let differs = |mtu: &u32| *mtu != i.mtu;
    let mut parts = Vec::new();
    if let Some(asked) = i.configured_mtu.filter(differs) {
        parts.push(format!("{asked} is configured"));
    }
    if let Some(device) = i.device_mtu {
        let here = i.configured_mtu.is_some_and(|asked| differs(&asked)) || differs(&device);
        parts.extend(here.then(|| format!("the kernel's interface has {device}")));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!(
            "{}: effective MTU {}: {}\n",
            i.name,
            i.mtu,
            parts.join(", ")
        ),
    }
}

/// What an operator asks first: do packets pass?
fn state(i: &InterfaceRow) -> String {
    match (i.state, i.link) {
        _ if i.waiting => "waiting".to_string(),
        (AdminState::Up, AdminState::Down) => "no-link".to_string(),
        (state, _) => state.to_string(),
    }
}

fn counters(i: &InterfaceRow) -> Vec<(String, u64)> {
    let pair = |name: &str, c: Counter| {
        [
            (format!("{name} packets"), c.packets),
            (format!("{name} bytes"), c.bytes),
        ]
    };
    let mut all: Vec<(String, u64)> = [pair("rx", i.rx), pair("tx", i.tx)].concat();
    let rest = [
        ("drops", i.drops),
        ("rx-error", i.rx_errors),
        ("tx-error", i.tx_errors),
    ];
    all.extend(rest.map(|(name, value)| (name.to_string(), value)));
    all.extend(i.more.iter().map(|m| (m.name.clone(), m.value)));
    all.retain(|(_, value)| *value > 0);
    all
}

pub(super) fn addresses(reply: &InterfacesReply) -> String {
    let mut out = String::new();
    for i in &reply.interfaces {
        out += &format!(
            "{} ({}):\n",
            i.name,
            if i.state == volley_model::AdminState::Up {
                "up"
            } else {
                "dn"
            }
        );
        let own = i.addresses.iter().map(|a| (a, ""));
        let automatic = i.automatic.iter().map(|a| (a, " autoconfigured"));
        for (a, mark) in own.chain(automatic) {
            let (family, table) = match a.family() {
                volley_model::Family::V4 => ("ip4", i.tables.ip4),
                volley_model::Family::V6 => ("ip6", i.tables.ip6),
            };
            let table = if table == 0 {
                String::new()
            } else {
                format!(" {family} table {table}")
            };
            out += &format!("  L3 {a}{table}{mark}\n");
        }
        if let Some(lender) = &i.unnumbered {
            out += &format!("  unnumbered, uses {lender}\n");
        }
    }
    out
}

pub(super) fn hardware(reply: &HardwareReply) -> String {
    let mut out = String::new();
    for h in &reply.hardware {
        let why = h.link_reason.as_ref().map(|why| format!(" ({why})"));
        out += &format!(
            "{} (index {}), driver {}, link {}{}\n",
            h.name,
            h.index,
            h.driver,
            h.link,
            why.unwrap_or_default()
        );
        out += &format!(
            "  MAC {}, max frame {}, {} rx queues, {} tx queues\n",
            or_dash(h.mac),
            h.max_frame,
            h.rx_queues,
            h.tx_queues
        );
        let promiscuous = if h.promiscuous { ", promiscuous" } else { "" };
        let offloads = match &h.offloads[..] {
            [] => "none".to_string(),
            some => some.join(" "),
        };
        out += &format!(
            "  rx mode {}{promiscuous}, tx offloads {offloads}\n",
            h.rx_mode
        );
        for q in &h.queues {
            let Counter { packets, bytes } = q.passed;
            let (direction, queue) = (&q.direction, q.queue);
            out += &format!("  {direction} queue {queue}: {packets} packets, {bytes} bytes\n");
        }
        for line in &h.details {
            out += &format!("  {line}\n");
        }
    }
    out
}

/// By worker and node, as operators know it.
pub(super) fn placement(reply: &RxPlacementReply) -> String {
    let (mut out, mut last) = (String::new(), None);
    for row in &reply.placement {
        let place = (row.worker, &row.node);
        if last.map(|(worker, _)| worker) != Some(row.worker) {
            out += &format!("Thread worker{}:\n", row.worker);
        }
        if last != Some(place) {
            out += &format!("  node {}:\n", row.node);
        }
        last = Some(place);
        out += &format!("    {} queue {} ({})\n", row.interface, row.queue, row.mode);
    }
    if out.is_empty() {
        out += "no receive queues\n";
    }
    out
}
