//! `show ip6 nd`.

use volley_model::reply::{AddressState, AdvertRow, DiscoveryReply, DiscoveryRow};

pub(super) fn discovery(r: &DiscoveryReply) -> String {
    if r.interfaces.is_empty() {
        return "no interface\n".to_owned();
    }
    r.interfaces.iter().map(interface).collect()
}

fn interface(row: &DiscoveryRow) -> String {
    let mut out = format!("{}\n", row.interface);
    match row.link_local {
        Some(address) => out += &format!("  link-local address {address}\n"),
        None => out += "  no IPv6 address\n",
    }
    for it in &row.addresses {
        let state = match it.state {
            AddressState::Preferred => "",
            AddressState::Tentative => ", tentative",
            AddressState::Duplicate => ", duplicate: another station has it",
        };
        out += &format!("  address {}{state}\n", it.address);
    }
    if row.probes > 0 {
        out += &format!("  duplicate address detection: {} probes\n", row.probes);
    }
    for range in &row.proxies {
        out += &format!("  answers for {range}\n");
    }
    for group in &row.groups {
        out += &format!("  listens to {group}\n");
    }
    if let Some(it) = &row.advert {
        out += &advert(it);
    }
    out
}

fn advert(row: &AdvertRow) -> String {
    let it = &row.settings;
    let mut out = format!(
        "  router advertisements: every {} to {} s, lifetime {} s; {it}\n",
        it.min_interval(),
        it.max_interval_s,
        it.lifetime()
    );
    for prefix in &row.prefixes {
        out += &format!("    prefix {prefix}\n");
    }
    let next = match row.next_ms {
        Some(ms) => format!("the next in {}.{:03} s", ms / 1000, ms % 1000),
        None => "none to come".to_owned(),
    };
    out += &format!(
        "    {} sent, {} solicitations heard, {next}\n",
        row.sent, row.solicited
    );
    out
}
