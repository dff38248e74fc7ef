//! `show ip6 nd`.

use volley_model::reply::{
    AddressState, AdvertRow, AutoconfRow, AutoconfState, InterfaceProtocolReply,
    InterfaceProtocolRow, RouterRow,
};

pub(super) fn discovery(r: &InterfaceProtocolReply) -> String {
    if r.interfaces.is_empty() {
        return "no interface\n".to_owned();
    }
    r.interfaces.iter().map(interface).collect()
}

fn interface(row: &InterfaceProtocolRow) -> String {
    let mut out = format!("{}\n", row.interface);
    match row.link_local {
        Some(address) => out += &format!("  link-local address {address}\n"),
        None => out += "  no IPv6 address\n",
    }
    for it in &row.addresses {
        out += &format!("  address {}{}\n", it.address, address_state(it.state));
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
    if let Some(it) = &row.autoconf {
        out += &autoconf(it);
    }
    out
}

fn address_state(state: AddressState) -> &'static str {
    match state {
        AddressState::Preferred => "",
        AddressState::Tentative => ", tentative",
        AddressState::Duplicate => ", duplicate: another station has it",
        AddressState::Deprecated => ", deprecated",
    }
}

/// A span of time, in seconds.
fn span(ms: Option<u64>) -> String {
    ms.map_or("always".to_owned(), |ms| format!("{} s", ms / 1000))
}

/// Whether a default router is used, and what is known of it.
fn standing(it: &RouterRow) -> String {
    let used = if it.in_use { "in use" } else { "not in use" };
    match it.neighbor {
        _ if it.silent => format!(", {used}, does not answer"),
        Some(state) => format!(", {used}, {}", state.name()),
        None => format!(", {used}"),
    }
}

fn router(it: &RouterRow, takes: bool) -> String {
    let preference = ["high", "medium", "low"][usize::from(it.preference.min(2))];
    let lifetime = match it.lifetime_ms {
        0 => "no default router".to_owned(),
        ms => {
            let standing = if takes { standing(it) } else { String::new() };
            let left = ms / 1000;
            format!("default router for {left} s, preference {preference}{standing}")
        }
    };
    let mut out = format!("    router {}: {lifetime}", it.address);
    let said = [
        ("hop limit", Some(u32::from(it.hop_limit))),
        ("MTU", it.mtu),
        ("reachable ms", Some(it.reachable_ms)),
        ("retransmit ms", Some(it.retransmit_ms)),
    ];
    let mut said = said
        .into_iter()
        .filter_map(|(what, n)| n.filter(|n| *n > 0).map(|n| format!("{what} {n}")))
        .peekable();
    if said.peek().is_some() {
        let all: Vec<String> = said.collect();
        out += &format!("; tells hosts {} (not used)", all.join(", "));
    }
    out + "\n"
}

fn autoconf(row: &AutoconfRow) -> String {
    let state = match row.state {
        AutoconfState::Down => "down",
        AutoconfState::Disabled => "disabled: another station has the link-local address",
        AutoconfState::Soliciting => "soliciting",
        AutoconfState::Unanswered => "nobody answered",
        AutoconfState::Heard => "a router was heard",
    };
    let mut out = format!(
        "  autoconfiguration {}: {state}; {} solicitations, {} advertisements, {} options refused\n",
        row.settings, row.solicitations, row.heard, row.refused
    );
    let takes = row.settings.default_route;
    out.extend(row.routers.iter().map(|it| router(it, takes)));
    for it in &row.on_link {
        out += &format!("    on link {}, valid {}\n", it.prefix, span(it.valid_ms));
    }
    for it in &row.addresses {
        let state = it.state.map_or(", not used", address_state);
        out += &format!(
            "    address {}{state}, valid {}, preferred {}\n",
            it.address,
            span(it.valid_ms),
            span(it.preferred_ms)
        );
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
    if row.inconsistent > 0 {
        out += &format!(
            "    {} advertisements of other routers differ\n",
            row.inconsistent
        );
    }
    out
}
