//! Stateless address autoconfiguration (RFC 4862), and what else a host does about routers (RFC 4861, 6.3): an interface asks
//! for routers, makes itself addresses of what they advertise, and tells the FIB which networks are on its link and by whom
//! everything is reached. What there is to know stands in [`state`]; here it is made so.

pub(crate) mod client;
pub(crate) mod packet;
mod reach;
pub(crate) mod received;
mod routers;
pub(crate) mod state;

use crate::control::Control;
use crate::entry::{Mac, SECOND};
use crate::lane::{Frame, NeighborMessage, NeighborMessageKind};
use crate::model::AutoconfMode;
use crate::show::{
    AddressState, AutoconfAddressRow, AutoconfRow, AutoconfState, OnLinkRow, RouterRow,
};
use client::Client;
use received::ReceivedAdvert;
use state::{Expiry, State};
use std::collections::BTreeSet;
use std::net::IpAddr;
use volley_iface::{Flag, IfIdx};
use volley_model::IfAddress;

impl Control {
    /// Say whether an interface configures itself, and what it takes.
    pub fn autoconfigure(&mut self, iface: u32, mode: AutoconfMode) {
        let default_route = mode == AutoconfMode::DefaultRoute;
        match (self.clients.get_mut(&iface), mode != AutoconfMode::Off) {
            (Some(client), true) => client.default_route = default_route,
            (None, true) => {
                let client = Client {
                    default_route,
                    state: None,
                    given: BTreeSet::new(),
                    told: BTreeSet::new(),
                };
                self.clients.insert(iface, client);
            }
            (Some(_), false) => {
                self.clients.remove(&iface);
                self.fib.borrow_mut().forget_automatic(iface);
                self.mark_autoconf(iface);
            }
            (None, false) => {}
        }
        self.renew_probes(iface);
        self.follow_autoconf(iface);
        self.refresh();
    }

    /// Workers tell what routers say.
    fn mark_autoconf(&self, iface: u32) {
        let state = self.clients.get(&iface).and_then(|it| it.state.as_ref());
        let on = state.is_some_and(|state| !state.disabled);
        if self.fib.borrow().interface(iface).is_some() {
            let interfaces = self.interfaces.borrow();
            interfaces.table().set(IfIdx(iface), Flag::Slaac, on);
        }
    }

    /// An interface came, went, or has changed.
    pub fn follow_autoconf(&mut self, iface: u32) {
        let link = self.links.get(&iface);
        if link.is_none() {
            self.clients.remove(&iface);
            return;
        }
        let can = link.filter(|link| link.up && link.learns && !link.is_unnumbered);
        let mac = can.map(|link| link.mac);
        let (now, chance) = (self.now(), self.chance(iface));
        let Some(client) = self.clients.get_mut(&iface) else {
            return;
        };
        // The FIB takes what it was given away with the interface, or with its table: then all begins anew.
        let lost = {
            let fib = self.fib.borrow();
            let here = |a: &IfAddress| fib.addresses(iface).iter().any(|b| b.addr() == a.addr());
            !client.given.iter().all(here)
        };
        let known = client.state.as_ref().map(|state| state.mac);
        if known.is_some() && (lost || known != mac) {
            client.state = None;
            client.given.clear();
            self.fib.borrow_mut().forget_automatic(iface);
        }
        if let Some(mac) = mac
            && client.state.is_none()
        {
            client.told.clear();
            client.state = Some(State::new(mac, now, chance));
        }
        self.mark_autoconf(iface);
        self.settle_autoconf(iface);
    }

    /// Makes the FIB have what the state says.
    pub(crate) fn settle_autoconf(&mut self, iface: u32) {
        let Some(client) = self.clients.get_mut(&iface) else {
            return;
        };
        let Some(state) = client.state.as_ref() else {
            return;
        };
        let mut fib = self.fib.borrow_mut();
        let wanted = state.wanted();
        let mut refused = Vec::new();
        client.given.retain(|a| wanted.contains(a));
        client.told.retain(|a| wanted.contains(a));
        for gone in fib.automatic_addresses(iface).to_vec() {
            if !wanted.contains(&gone) {
                fib.del_automatic(iface, gone);
            }
        }
        for address in wanted {
            let configured = |a: &&IfAddress| a.addr() == address.addr();
            if let Some(found) = fib.addresses(iface).iter().find(configured) {
                if !fib.is_automatic(iface, *found) {
                    client.given.remove(&address);
                }
                continue;
            }
            match fib.add_automatic(iface, address) {
                Ok(()) => _ = client.given.insert(address),
                Err(why) => refused.extend(client.told.insert(address).then_some((address, why))),
            }
        }
        for old in state.deprecated() {
            fib.stand_last(iface, old);
        }
        let networks: Vec<_> = state.networks.iter().map(|it| it.prefix).collect();
        let routers = match client.default_route {
            true => state.ways(),
            false => Vec::new(),
        };
        let done = fib.set_on_link(iface, &networks);
        let done = done.and(fib.set_default_routers(iface, &routers));
        self.tally.no_room += u64::from(done.is_err());
        drop(fib);
        for (address, why) in refused {
            self.tell(iface, &format!("the address {address} is not made: {why}"));
        }
    }

    /// A router said something on an interface: [`Control::settle_autoconf`] is to follow.
    pub fn hear_router(&mut self, iface: u32, said: &ReceivedAdvert, now: u64) {
        self.compare_router(iface, said);
        let Some(state) = self.clients.get_mut(&iface).and_then(Client::open) else {
            return;
        };
        state.hear(said, now);
        if said.mac != Mac::default() {
            self.hear(
                NeighborMessage {
                    rx: iface,
                    addr: said.router.into(),
                    mac: said.mac,
                    what: NeighborMessageKind::Question,
                },
                now,
            );
        }
    }

    /// What is due: solicitations, and the end of what nobody said again.
    pub fn turn_autoconf(&mut self, now: u64) {
        let all: Vec<u32> = self.clients.keys().copied().collect();
        let failed = std::mem::take(&mut self.table.failed);
        for (iface, addr) in &failed {
            let interface = || self.interfaces.borrow().name(*iface);
            tracing::info!(target: "neighbor", interface = interface(), "{addr} does not answer");
        }
        for iface in all {
            let Some(state) = self.clients.get_mut(&iface).and_then(Client::open) else {
                continue;
            };
            let (mac, local) = (state.mac, state.link_local());
            let (asks, over) = (state.asks(now), state.expire(now));
            let moved = self.turn_routers(iface, &failed, now);
            if over || moved {
                self.settle_autoconf(iface);
            }
            if asks {
                let used = self.links.get(&iface).is_some_and(|link| {
                    let mut all = link.addresses.iter();
                    all.any(|a| a.addr() == IpAddr::V6(local))
                });
                let frame = packet::solicitation(mac, used.then_some(local));
                self.send(Frame::new(iface, &frame));
            }
        }
    }

    /// Another station has an address: where it is the link-local one there is no autoconfiguration.
    pub fn disown(&mut self, iface: u32, addr: IpAddr) {
        let client = self.clients.get_mut(&iface);
        let state = client.and_then(Client::open);
        if let Some(state) = state.filter(|state| IpAddr::V6(state.link_local()) == addr) {
            state.disable();
            self.mark_autoconf(iface);
            self.settle_autoconf(iface);
            self.tell(
                iface,
                "there is no autoconfiguration until it is set down and up, or gets another MAC address",
            );
        }
    }

    /// What others see of it.
    pub fn autoconf_row(&self, iface: u32) -> Option<AutoconfRow> {
        let client = self.clients.get(&iface)?;
        let now = self.now();
        let left = |until: u64| until.saturating_sub(now) / (SECOND / 1000);
        let lasts = |until: Expiry| until.map(left);
        let mut row = AutoconfRow {
            default_route: client.default_route,
            state: AutoconfState::Down,
            solicitations: 0,
            heard: 0,
            refused: 0,
            routers: Vec::new(),
            on_link: Vec::new(),
            addresses: Vec::new(),
        };
        let Some(state) = &client.state else {
            return Some(row);
        };
        row.state = match state {
            _ if state.disabled => AutoconfState::Disabled,
            _ if state.heard > 0 => AutoconfState::Heard,
            _ if state.is_asking() => AutoconfState::Soliciting,
            _ => AutoconfState::Unanswered,
        };
        (row.solicitations, row.heard, row.refused) =
            (state.solicitations, state.heard, state.refused);
        let ways = state.ways();
        let best = ways.iter().map(|(_, place)| *place).min();
        let takes = client.default_route;
        let place = |it: &state::Router| it.reach.place(it.said.preference);
        let router = |it: &state::Router| RouterRow {
            address: it.said.router,
            lifetime_ms: left(it.until),
            in_use: takes && Some(place(it)) == best,
            silent: it.reach.is_silent(),
            neighbor: self.router_state(iface, it.said.router),
            preference: it.said.preference,
            hop_limit: it.said.hop_limit,
            mtu: it.said.mtu,
            reachable_ms: it.said.reachable_ms,
            retransmit_ms: it.said.retransmit_ms,
        };
        row.routers = state.routers.iter().map(router).collect();
        let network = |it: &state::Network| OnLinkRow {
            prefix: it.prefix,
            valid_ms: lasts(it.until),
        };
        row.on_link = state.networks.iter().map(network).collect();
        let states = self.address_rows(iface);
        let address = |it: &state::Made| AutoconfAddressRow {
            address: it.address,
            state: self.made_state(iface, it, &states),
            valid_ms: lasts(it.valid),
            preferred_ms: lasts(it.preferred),
        };
        row.addresses = state.addresses.iter().map(address).collect();
        Some(row)
    }

    fn made_state(
        &self,
        iface: u32,
        it: &state::Made,
        rows: &[crate::show::AddressRow],
    ) -> Option<AddressState> {
        let there = self.fib.borrow().is_automatic(iface, it.address);
        let row = rows.iter().find(|row| row.address == it.address);
        row.filter(|_| there).map(|row| row.state)
    }

    /// Whether an interface made an address of which nothing new should begin.
    pub(crate) fn is_deprecated(&self, iface: u32, address: IfAddress) -> bool {
        let state = self.clients.get(&iface).and_then(|it| it.state.as_ref());
        state.is_some_and(|state| state.deprecated().any(|a| a == address))
    }
}
