//! `show interfaces`: the query, its reply, its text, and figures on the page of metrics.

use crate::states::{AdminState, RxMode};
use crate::sub_interface_row::{InterfaceTables, SubInterfaceRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_model::{Family, IfAddress, Mac, escape};
use volley_object::Query;
use volley_show::{COUNTER, GAUGE, Page, narrow, or_dash, rate, table};

/// Interfaces, one line each: state, MTU, rates of the last 10 seconds, errors and drops since the last clear; of one, or with
/// detail: all counters, and rates of 1, 10 and 60 seconds.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "interfaces", example = "show interfaces")]
#[query(show = "show interface~s [<name>] [detail]")]
#[query(show = "show interface~s address~es [<name>]")]
#[query(reply = InterfacesReply, text = brief, detail = interfaces, detail_by = "name", figures = figures)]
#[query(view(address = addresses, "Addresses of interfaces."))]
pub struct ShowInterfaces {
    /// Only this interface.
    #[query(needs = "interface")]
    pub name: Option<String>,
}

/// Interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfacesReply {
    /// Interfaces in order of index.
    pub interfaces: Vec<InterfaceRow>,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceRow {
    /// Name of the interface.
    pub name: String,
    /// Index of the interface.
    pub index: u32,
    /// `packet-generator`, `pcap`, `local`, ...
    pub kind: String,
    /// Administrative state.
    pub state: AdminState,
    /// State of the link.
    pub link: AdminState,
    /// Reason why the link is down.
    #[serde(default)]
    pub link_reason: Option<String>,
    /// The device that the interface is on is missing, and is used as soon as it appears.
    #[serde(default)]
    pub waiting: bool,
    /// Mode of the receive queues.
    #[serde(default)]
    pub rx_mode: RxMode,
    /// MAC address; none if the interface is not Ethernet.
    pub mac: Option<Mac>,
    /// Effective L3 MTU in bytes.
    pub mtu: u32,
    /// Configured L3 MTU of an interface over one of the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured_mtu: Option<u32>,
    /// The MTU of the kernel's interface behind the interface; none = there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_mtu: Option<u32>,
    /// Speed of the link in bit/s; none if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_bps: Option<u64>,
    /// Addresses, in the order they were added.
    pub addresses: Vec<IfAddress>,
    /// Addresses that the interface configured automatically from router advertisements.
    #[serde(default)]
    pub automatic: Vec<IfAddress>,
    /// The interface whose addresses an unnumbered interface uses.
    #[serde(default)]
    pub unnumbered: Option<String>,
    /// IP tables that the interface is bound to.
    pub tables: InterfaceTables,
    /// Parent and tags of a sub-interface; none for any other interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_interface: Option<SubInterfaceRow>,
    /// Received packets, and bytes without frame check sequence.
    pub rx: Counter,
    /// Transmitted packets, and bytes without frame check sequence.
    pub tx: Counter,
    /// Packets received on the interface and dropped anywhere.
    pub drops: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Transmit errors.
    pub tx_errors: u64,
    /// Counters of the driver or of features (`ip4`, `rx-no-buffer`) that are not zero.
    pub more: Vec<NamedValue>,
    /// Rates over the last 1, 10 and 60 seconds; none before two samples exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<InterfaceRate>,
    /// Description by an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Rates of an interface in a span of time; bytes without frame check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceRate {
    /// Seconds of the span: 1, 10 or 60; less time if the interface is younger.
    pub span_s: u32,
    /// Received packets a second.
    pub rx_pps: u64,
    /// Received bits a second.
    pub rx_bps: u64,
    /// Transmitted packets a second.
    pub tx_pps: u64,
    /// Transmitted bits a second.
    pub tx_bps: u64,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Counter {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A counter by name.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NamedValue {
    /// Name.
    pub name: String,
    /// Value.
    pub value: u64,
}

/// One line per interface: state, rates of the last ten seconds, losses, description.
fn brief(reply: &InterfacesReply) -> String {
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
fn interfaces(reply: &InterfacesReply) -> String {
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
    // No name of a link speed has more than three decimals.
    format!("{}{unit}", (n * 1000.0).round() / 1000.0)
}

/// The reason for a link that is down, and differences of the MTU.
fn notes(i: &InterfaceRow) -> String {
    let link = match &i.link_reason {
        Some(why) if i.waiting => format!("{}: {why}\n", i.name),
        Some(why) => format!("{}: no link: {why}\n", i.name),
        None => String::new(),
    };
    link + &mtus(i)
}

/// The effective MTU beside the configured one and that of the kernel's interface, if they differ.
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

/// One word for whether packets pass.
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

fn addresses(reply: &InterfacesReply) -> String {
    let mut out = String::new();
    for i in &reply.interfaces {
        out += &format!(
            "{} ({}):\n",
            i.name,
            if i.state == AdminState::Up {
                "up"
            } else {
                "dn"
            }
        );
        let own = i.addresses.iter().map(|a| (a, ""));
        let automatic = i.automatic.iter().map(|a| (a, " autoconfigured"));
        for (a, mark) in own.chain(automatic) {
            let (family, table) = match a.family() {
                Family::V4 => ("ip4", i.tables.ip4),
                Family::V6 => ("ip6", i.tables.ip6),
            };
            let table = if table == 0 {
                String::new()
            } else {
                format!(" {family} table {table}")
            };
            out += &format!("  L3 {a}{table}{mark}\n");
        }
        if let Some(numbered) = &i.unnumbered {
            out += &format!("  unnumbered, uses {numbered}\n");
        }
    }
    out
}

fn figures(reply: &InterfacesReply, page: &mut Page) {
    let rows = &reply.interfaces;
    type Read = fn(&InterfaceRow) -> u64;
    let counters: [(&str, &str, Read); 7] = [
        ("receive_packets", "Packets received.", |r| r.rx.packets),
        (
            "receive_bytes",
            "Bytes received, without frame check sequence.",
            |r| r.rx.bytes,
        ),
        ("transmit_packets", "Packets transmitted.", |r| r.tx.packets),
        (
            "transmit_bytes",
            "Bytes transmitted, without frame check sequence.",
            |r| r.tx.bytes,
        ),
        (
            "drops",
            "Packets received on it and dropped anywhere.",
            |r| r.drops,
        ),
        ("receive_errors", "Receive errors.", |r| r.rx_errors),
        ("transmit_errors", "Transmit errors.", |r| r.tx_errors),
    ];
    for (name, help, read) in counters {
        let name = format!("volley_interface_{name}_total");
        page.rows((&name, COUNTER, help), rows, |put, row| {
            put(&[("interface", &row.name)], read(row) as f64);
        });
    }
    let (name, help) = (
        "volley_interface_speed_bits_per_second",
        "Speed of the link, where the device says one.",
    );
    page.rows((name, GAUGE, help), rows, |put, row| {
        if let Some(speed) = row.speed_bps {
            put(&[("interface", &row.name)], speed as f64);
        }
    });
    type State = fn(&InterfaceRow) -> AdminState;
    let states: [(&str, &str, State); 2] = [
        ("volley_interface_admin_up", "1 when it is set up.", |r| {
            r.state
        }),
        ("volley_interface_link_up", "1 when it has a link.", |r| {
            r.link
        }),
    ];
    for (name, help, read) in states {
        page.rows((name, GAUGE, help), rows, |put, row| {
            let up = read(row) == AdminState::Up;
            put(&[("interface", &row.name)], f64::from(u8::from(up)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_listed() {
        let row = InterfaceRow {
            name: "pg0".into(),
            index: 1,
            mtu: 9000,
            addresses: vec!["192.0.2.1/24".parse().unwrap()],
            rx: Counter {
                packets: 5,
                bytes: 300,
            },
            ..InterfaceRow::default()
        };
        let quiet = InterfaceRow {
            name: "pg1".into(),
            ..row.clone()
        };
        let quiet = InterfaceRow {
            rx: Counter::default(),
            ..quiet
        };
        let reply = InterfacesReply {
            interfaces: vec![row, quiet],
        };
        let brief = brief(&reply);
        let last = brief.lines().last().unwrap().split_whitespace();
        let wanted = ["pg1", "down", "9000", "-", "-", "-", "-", "-", "0", "0"];
        assert_eq!(last.collect::<Vec<_>>(), wanted);
        let out = interfaces(&reply);
        let words: Vec<Vec<_>> = out
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(words[1], ["pg0", "1", "down", "9000", "rx", "packets", "5"]);
        assert_eq!(words[2], ["rx", "bytes", "300"]);
        assert_eq!(words[3], ["pg1", "1", "down", "9000"]);
        assert_eq!(
            addresses(&reply),
            "pg0 (dn):\n  L3 192.0.2.1/24\npg1 (dn):\n  L3 192.0.2.1/24\n"
        );
    }
}
