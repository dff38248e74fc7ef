//! State that one interface got from router advertisements: addresses, on-link prefixes and routers, each with its lifetime
//! (RFC 4861, 6.3.4 to 6.3.7; RFC 4862, 5.5.3 and 5.5.4). The caller supplies time and random numbers, and sends the packets.

use super::reach::Reach;
use super::received::{PrefixOffer, ReceivedAdvert};
use crate::link::{Mac, SECOND};
use crate::nd;
use std::net::{IpAddr, Ipv6Addr};
use volley_model::{IfAddress, Prefix};

/// Most addresses, and most on-link prefixes, of one interface.
pub const PREFIXES: usize = 16;
/// Most routers of one link.
pub const ROUTERS: usize = 8;
/// Number of solicitations (MAX_RTR_SOLICITATIONS).
const SOLICITATIONS: u8 = 3;
/// Interval between solicitations (RTR_SOLICITATION_INTERVAL).
const BETWEEN: u64 = 4 * SECOND;
/// Longest random delay before the first solicitation (MAX_RTR_SOLICITATION_DELAY).
const DELAY: u64 = SECOND;
/// An unauthenticated advertisement cannot shorten the lifetime of an address below this (RFC 4862, 5.5.3).
const TWO_HOURS: u64 = 2 * 3600 * SECOND;
/// Infinite lifetime.
const ALWAYS: u32 = u32::MAX;
/// Length of prefixes for address formation (RFC 2464, 4).
const MADE_OF: u8 = 64;
/// Shortest accepted on-link prefix.
const WIDEST: u8 = 48;

/// Expiry time; none = never.
pub type Expiry = Option<u64>;

fn until(now: u64, seconds: u32) -> Expiry {
    (seconds != ALWAYS).then(|| now + u64::from(seconds) * SECOND)
}

fn is_over(until: Expiry, now: u64) -> bool {
    until.is_some_and(|at| at <= now)
}

/// A router of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// The router's last advertisement.
    pub message: ReceivedAdvert,
    /// End of the router lifetime.
    pub until: u64,
    /// Reachability of the router.
    pub reach: Reach,
}

/// An on-link prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The prefix.
    pub prefix: Prefix,
    /// End of the valid lifetime.
    pub until: Expiry,
}

/// An autoconfigured address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The address.
    pub address: IfAddress,
    /// End of the valid lifetime.
    pub valid: Expiry,
    /// End of the preferred lifetime.
    pub preferred: Expiry,
    /// Whether the address was preferred at the last check.
    pub is_preferred: bool,
}

/// Solicitations that remain to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SolicitationState {
    left: u8,
    at: u64,
}

/// Autoconfiguration state of one interface.
#[derive(Clone, Debug)]
pub struct State {
    /// MAC address that the interface identifiers are formed from.
    pub mac: Mac,
    /// The link-local address is a duplicate.
    pub disabled: bool,
    /// Number of solicitations sent.
    pub solicitations: u64,
    /// Number of advertisements accepted.
    pub heard: u64,
    /// Number of options and routers refused.
    pub refused: u64,
    /// Routers of the link.
    pub routers: Vec<Router>,
    /// On-link prefixes.
    pub networks: Vec<Network>,
    /// Addresses, without the link-local one.
    pub addresses: Vec<Made>,
    asking: Option<SolicitationState>,
}

/// The address formed from a prefix and a MAC address (RFC 4291, appendix A).
fn made_of(prefix: u128, mac: Mac) -> Option<IfAddress> {
    let id = u128::from(nd::link_local(mac)) & u128::from(u64::MAX);
    let high = prefix >> 64 << 64;
    IfAddress::new(Ipv6Addr::from(high | id).into(), MADE_OF).ok()
}

/// Whether a prefix has global scope.
fn is_global(prefix: u128) -> bool {
    let address = Ipv6Addr::from(prefix);
    let mapped = address.to_ipv4_mapped().is_some();
    !(address.is_unicast_link_local()
        || address.is_multicast()
        || address.is_loopback()
        || address.is_unspecified()
        || mapped)
}

impl State {
    /// Starts autoconfiguration with a solicitation after a random delay.
    pub fn new(mac: Mac, now: u64, chance: u64) -> Self {
        State {
            mac,
            disabled: false,
            solicitations: 0,
            heard: 0,
            refused: 0,
            routers: Vec::new(),
            networks: Vec::new(),
            addresses: Vec::new(),
            asking: Some(SolicitationState {
                left: SOLICITATIONS,
                at: now + chance % DELAY,
            }),
        }
    }

    /// The interface's link-local address.
    pub fn link_local(&self) -> Ipv6Addr {
        nd::link_local(self.mac)
    }

    /// Whether solicitations are being sent.
    pub fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Another host has the link-local address: disables autoconfiguration (RFC 4862, 5.4.5).
    pub fn disable(&mut self) {
        let (mac, solicitations, heard) = (self.mac, self.solicitations, self.heard);
        *self = State::new(mac, 0, 0);
        (self.solicitations, self.heard) = (solicitations, heard);
        self.disabled = true;
        self.asking = None;
    }

    /// Whether a solicitation is due; if so, it counts as sent.
    pub fn asks(&mut self, now: u64) -> bool {
        let Some(it) = self.asking.as_mut().filter(|it| it.at <= now) else {
            return false;
        };
        if it.left == 0 {
            self.asking = None;
            return false;
        }
        it.left -= 1;
        it.at = now + BETWEEN;
        self.solicitations += 1;
        true
    }

    /// Handles a router advertisement.
    pub fn hear(&mut self, message: &ReceivedAdvert, now: u64) {
        if self.disabled {
            return;
        }
        self.heard += 1;
        self.refused += u64::from(message.more);
        // RFC 4861, 6.3.7: an advertisement with lifetime 0 does not end the solicitations.
        if message.lifetime_s > 0 {
            self.asking = None;
        }
        self.hear_router(message, now);
        for offer in message.offers() {
            self.hear_offer(offer, now);
        }
    }

    fn hear_router(&mut self, message: &ReceivedAdvert, now: u64) {
        let until = now + u64::from(message.lifetime_s) * SECOND;
        let known = |r: &Router| r.message.router == message.router;
        match self.routers.iter().position(known) {
            Some(at) if message.lifetime_s == 0 => _ = self.routers.remove(at),
            // An advertisement does not confirm reachability (RFC 4861, 7.3.1).
            Some(at) => (self.routers[at].message, self.routers[at].until) = (*message, until),
            None if message.lifetime_s == 0 => {}
            None if self.routers.len() < ROUTERS => self.routers.push(Router {
                message: *message,
                until,
                reach: Reach::New,
            }),
            None => self.refused += 1,
        }
    }

    fn hear_offer(&mut self, offer: &PrefixOffer, now: u64) {
        if offer.len > 128 || !is_global(offer.prefix) {
            self.refused += 1;
            return;
        }
        if offer.on_link {
            self.hear_network(offer, now);
        }
        if offer.autonomous {
            self.hear_autonomous(offer, now);
        }
    }

    /// Handles an on-link prefix (RFC 4861, 6.3.4).
    fn hear_network(&mut self, offer: &PrefixOffer, now: u64) {
        let address = IpAddr::V6(Ipv6Addr::from(offer.prefix));
        let prefix = Prefix::masked(address, offer.len);
        let Some(prefix) = prefix.ok().filter(|_| offer.len >= WIDEST) else {
            self.refused += 1;
            return;
        };
        let network = Network {
            prefix,
            until: until(now, offer.valid_s),
        };
        let known = self.networks.iter().position(|n| n.prefix == prefix);
        match known {
            Some(at) if offer.valid_s == 0 => _ = self.networks.remove(at),
            Some(at) => self.networks[at] = network,
            None if offer.valid_s == 0 => {}
            None if self.networks.len() < PREFIXES => self.networks.push(network),
            None => self.refused += 1,
        }
    }

    /// Handles a prefix for address formation (RFC 4862, 5.5.3).
    fn hear_autonomous(&mut self, offer: &PrefixOffer, now: u64) {
        let made = made_of(offer.prefix, self.mac);
        let fits = offer.len == MADE_OF && offer.preferred_s <= offer.valid_s;
        let Some(address) = made.filter(|_| fits) else {
            self.refused += 1;
            return;
        };
        let preferred = until(now, offer.preferred_s);
        let valid = until(now, offer.valid_s);
        let is_preferred = !is_over(preferred, now);
        if let Some(it) = self.addresses.iter_mut().find(|it| it.address == address) {
            it.valid = renewed(it.valid, valid, now);
            (it.preferred, it.is_preferred) = (preferred, is_preferred);
            return;
        }
        if offer.valid_s == 0 {
            return;
        }
        if self.addresses.len() >= PREFIXES {
            self.refused += 1;
            return;
        }
        self.addresses.push(Made {
            address,
            valid,
            preferred,
            is_preferred,
        });
    }

    /// Removes expired state; true if anything changed.
    pub fn expire(&mut self, now: u64) -> bool {
        let before = (
            self.routers.len(),
            self.networks.len(),
            self.addresses.len(),
        );
        self.routers.retain(|it| it.until > now);
        self.networks.retain(|it| !is_over(it.until, now));
        self.addresses.retain(|it| !is_over(it.valid, now));
        let mut turned = false;
        for it in &mut self.addresses {
            let is_preferred = !is_over(it.preferred, now);
            turned |= is_preferred != it.is_preferred;
            it.is_preferred = is_preferred;
        }
        let after = (
            self.routers.len(),
            self.networks.len(),
            self.addresses.len(),
        );
        turned || before != after
    }

    /// Default routers with their ranks: those with the lowest rank are used.
    pub fn ways(&self) -> Vec<(Ipv6Addr, u8)> {
        let way = |it: &Router| (it.message.router, it.reach.place(it.message.preference));
        let mut all: Vec<_> = self.routers.iter().map(way).collect();
        all.sort();
        all
    }

    /// All addresses of the interface, the link-local one first.
    pub fn wanted(&self) -> Vec<IfAddress> {
        let local = IfAddress::new(self.link_local().into(), MADE_OF).ok();
        let made = self.addresses.iter().map(|it| it.address);
        local.into_iter().chain(made).collect()
    }

    /// Deprecated addresses.
    pub fn deprecated(&self) -> impl Iterator<Item = IfAddress> {
        let old = self.addresses.iter().filter(|it| !it.is_preferred);
        old.map(|it| it.address)
    }
}

/// The new valid lifetime of an address: an advertisement shortens it to two hours at the least (RFC 4862, 5.5.3, e).
fn renewed(old: Expiry, new: Expiry, now: u64) -> Expiry {
    let near = now + TWO_HOURS;
    match (old, new) {
        (_, None) => None,
        (_, Some(new)) if new > near => Some(new),
        (Some(old), Some(new)) if new > old => Some(new),
        (Some(old), Some(_)) if old <= near => Some(old),
        _ => Some(near),
    }
}

#[cfg(test)]
mod tests;
