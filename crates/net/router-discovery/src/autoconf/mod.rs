//! Stateless address autoconfiguration (RFC 4862) and router discovery by hosts (RFC 4861, 6.3): an interface sends router
//! solicitations, forms addresses from advertised prefixes, and gives the FIB on-link prefixes and default routers. [`state`]
//! keeps what was received; this module applies it to the FIB.

mod client;
mod packet;
mod reach;
pub(crate) mod received;
mod routers;
mod rows;
mod state;

use crate::link::Mac;
use crate::model::AutoconfMode;
use crate::moment::{Effect, Moment};
use client::Client;
use received::ReceivedAdvert;
use state::State;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use volley_iface::Flag;
use volley_model::IfAddress;

pub use packet::is_one as is_advertisement;
pub use routers::Reachability;

/// Interfaces with SLAAC.
#[derive(Default)]
pub struct Autoconfiguration {
    clients: BTreeMap<u32, Client>,
}

impl Autoconfiguration {
    /// Sets what an interface accepts from router advertisements. The caller calls [`Autoconfiguration::follow`] next.
    pub fn set_mode(&mut self, iface: u32, mode: AutoconfMode, moment: &mut Moment<'_>) {
        let default_route = mode == AutoconfMode::DefaultRoute;
        match (self.clients.get_mut(&iface), mode != AutoconfMode::Off) {
            (Some(client), true) => client.default_route = default_route,
            (None, true) => {
                let client = Client {
                    default_route,
                    state: None,
                    given: BTreeSet::new(),
                    reported: BTreeSet::new(),
                };
                self.clients.insert(iface, client);
            }
            (Some(_), false) => {
                self.clients.remove(&iface);
                moment.fib.forget_automatic(iface);
                self.mark(iface, moment);
            }
            (None, false) => {}
        }
    }

    /// Whether SLAAC is enabled on an interface.
    pub fn is_on(&self, iface: u32) -> bool {
        self.clients.contains_key(&iface)
    }

    /// Sets the flag that makes workers report router advertisements.
    fn mark(&self, iface: u32, moment: &mut Moment<'_>) {
        let state = self.clients.get(&iface).and_then(|it| it.state.as_ref());
        let on = state.is_some_and(|state| !state.disabled);
        if moment.fib.interface(iface).is_some() {
            moment.mark(iface, Flag::Slaac, on);
        }
    }

    /// Follows an interface that was added, deleted or changed.
    pub fn follow(&mut self, iface: u32, moment: &mut Moment<'_>) {
        let link = moment.links.get(&iface);
        if link.is_none() {
            self.clients.remove(&iface);
            return;
        }
        let can = link.filter(|link| link.up && link.learns && !link.is_unnumbered);
        let mac = can.map(|link| link.mac);
        let (now, chance) = (moment.now, moment.chance(iface));
        let Some(client) = self.clients.get_mut(&iface) else {
            return;
        };
        // The FIB removes autoconfigured state with the interface or on a change of its table: then autoconfiguration restarts.
        let lost = {
            let there = moment.fib.addresses(iface);
            let here = |a: &IfAddress| there.iter().any(|b| b.addr() == a.addr());
            !client.given.iter().all(here)
        };
        let known = client.state.as_ref().map(|state| state.mac);
        if known.is_some() && (lost || known != mac) {
            client.state = None;
            client.given.clear();
            moment.fib.forget_automatic(iface);
        }
        if let Some(mac) = mac
            && client.state.is_none()
        {
            client.reported.clear();
            client.state = Some(State::new(mac, now, chance));
        }
        self.mark(iface, moment);
        self.settle(iface, moment);
    }

    /// Applies the state to the FIB.
    pub fn settle(&mut self, iface: u32, moment: &mut Moment<'_>) {
        let Some(client) = self.clients.get_mut(&iface) else {
            return;
        };
        let Some(state) = client.state.as_ref() else {
            return;
        };
        let fib = &mut *moment.fib;
        let wanted = state.wanted();
        let mut refused = Vec::new();
        client.given.retain(|a| wanted.contains(a));
        client.reported.retain(|a| wanted.contains(a));
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
                Err(why) => {
                    refused.extend(client.reported.insert(address).then_some((address, why)))
                }
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
        if done.is_err() {
            moment.effects.push(Effect::NoRoom);
        }
        for (address, why) in refused {
            moment.tell(iface, format!("the address {address} is not made: {why}"));
        }
    }

    /// Handles a router advertisement; the caller calls [`Autoconfiguration::settle`] next.
    pub fn hear(&mut self, iface: u32, message: &ReceivedAdvert, moment: &mut Moment<'_>) {
        let Some(state) = self.clients.get_mut(&iface).and_then(Client::open) else {
            return;
        };
        state.hear(message, moment.now);
        if message.mac != Mac::default() {
            let effect = Effect::Learn(iface, message.router, message.mac);
            moment.effects.push(effect);
        }
    }

    /// Does what is due: sends solicitations and removes expired prefixes and routers. The neighbours in `failed` did not
    /// answer.
    pub fn turn(
        &mut self,
        neighbors: &mut dyn Reachability,
        failed: &[(u32, IpAddr)],
        moment: &mut Moment<'_>,
    ) {
        let all: Vec<u32> = self.clients.keys().copied().collect();
        for iface in all {
            let Some(state) = self.clients.get_mut(&iface).and_then(Client::open) else {
                continue;
            };
            let (mac, local) = (state.mac, state.link_local());
            let (asks, over) = (state.asks(moment.now), state.expire(moment.now));
            let moved = self.turn_routers(iface, neighbors, failed, moment);
            if over || moved {
                self.settle(iface, moment);
            }
            if asks {
                let used = moment.links.get(&iface).is_some_and(|link| {
                    let mut all = link.addresses.iter();
                    all.any(|a| a.addr() == IpAddr::V6(local))
                });
                let frame = packet::solicitation(mac, used.then_some(local));
                moment.effects.push(Effect::SendShort(iface, frame));
            }
        }
    }

    /// Handles a duplicate address: if it is the link-local one, autoconfiguration is disabled.
    pub fn disown(&mut self, iface: u32, addr: IpAddr, moment: &mut Moment<'_>) {
        let client = self.clients.get_mut(&iface);
        let state = client.and_then(Client::open);
        if let Some(state) = state.filter(|state| IpAddr::V6(state.link_local()) == addr) {
            state.disable();
            self.mark(iface, moment);
            self.settle(iface, moment);
            moment.tell(
                iface,
                "there is no autoconfiguration until it is set down and up, or gets another MAC address",
            );
        }
    }

    /// Whether an address is autoconfigured and deprecated.
    pub fn is_deprecated(&self, iface: u32, address: IfAddress) -> bool {
        let state = self.clients.get(&iface).and_then(|it| it.state.as_ref());
        state.is_some_and(|state| state.deprecated().any(|a| a == address))
    }
}
