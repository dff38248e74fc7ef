//! What one interface has heard of the routers of its link, and what follows: addresses, networks, routers, each with its time
//! (RFC 4861, 6.3.4 to 6.3.7; RFC 4862, 5.5.3 and 5.5.4). No clock, no chance and no packets of its own.

use super::reach::Reach;
use super::received::{PrefixOffer, ReceivedAdvert};
use crate::link::{Mac, SECOND};
use crate::nd;
use std::net::{IpAddr, Ipv6Addr};
use volley_model::{IfAddress, Prefix};

/// Addresses of one interface that are made, and networks of its link that are kept.
pub const PREFIXES: usize = 16;
/// Routers of one link that are kept.
pub const ROUTERS: usize = 8;
/// Solicitations (MAX_RTR_SOLICITATIONS).
const SOLICITATIONS: u8 = 3;
/// Between two of them (RTR_SOLICITATION_INTERVAL).
const BETWEEN: u64 = 4 * SECOND;
/// The longest time before the first, by chance (MAX_RTR_SOLICITATION_DELAY).
const DELAY: u64 = SECOND;
/// What nobody can shorten the life of an address to without proving who he is (RFC 4862, 5.5.3).
const TWO_HOURS: u64 = 2 * 3600 * SECOND;
/// A lifetime that does not end.
const ALWAYS: u32 = u32::MAX;
/// Bits of a prefix that addresses are made of (RFC 2464, 4).
const MADE_OF: u8 = 64;
/// The shortest network that may be on one link.
const WIDEST: u8 = 48;

/// When something ends; none = never.
pub type Expiry = Option<u64>;

fn until(now: u64, seconds: u32) -> Expiry {
    (seconds != ALWAYS).then(|| now + u64::from(seconds) * SECOND)
}

fn is_over(until: Expiry, now: u64) -> bool {
    until.is_some_and(|at| at <= now)
}

/// A router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// What it said last.
    pub said: ReceivedAdvert,
    /// It is a default router so long; one whose lifetime is 0 is kept for what it says beside.
    pub until: u64,
    /// Whether it answers.
    pub reach: Reach,
}

/// A network of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Which.
    pub prefix: Prefix,
    /// How long.
    pub until: Expiry,
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// It.
    pub address: IfAddress,
    /// It is valid so long.
    pub valid: Expiry,
    /// It is preferred so long.
    pub preferred: Expiry,
    /// It was preferred, when that was last looked at.
    pub is_preferred: bool,
}

/// Solicitations that are still to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SolicitationState {
    left: u8,
    at: u64,
}

/// What one interface knows.
#[derive(Clone, Debug)]
pub struct State {
    /// The MAC address that its addresses are made of.
    pub mac: Mac,
    /// Another station has its link-local address.
    pub disabled: bool,
    /// Solicitations sent.
    pub solicitations: u64,
    /// Advertisements taken.
    pub heard: u64,
    /// What was not taken of them.
    pub refused: u64,
    /// Routers.
    pub routers: Vec<Router>,
    /// Networks of the link.
    pub networks: Vec<Network>,
    /// Addresses, without the link-local one.
    pub addresses: Vec<Made>,
    asking: Option<SolicitationState>,
}

/// The address that an interface makes of a prefix (RFC 4291, appendix A).
fn made_of(prefix: u128, mac: Mac) -> Option<IfAddress> {
    let id = u128::from(nd::link_local(mac)) & u128::from(u64::MAX);
    let high = prefix >> 64 << 64;
    IfAddress::new(Ipv6Addr::from(high | id).into(), MADE_OF).ok()
}

/// Whether a prefix is one of hosts that may be anywhere.
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
    /// It begins now, and asks.
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

    /// Its link-local address.
    pub fn link_local(&self) -> Ipv6Addr {
        nd::link_local(self.mac)
    }

    /// Whether it asks for routers.
    pub fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Another station has its link-local address: there is no IPv6 on the interface (RFC 4862, 5.4.5).
    pub fn disable(&mut self) {
        let (mac, solicitations, heard) = (self.mac, self.solicitations, self.heard);
        *self = State::new(mac, 0, 0);
        (self.solicitations, self.heard) = (solicitations, heard);
        self.disabled = true;
        self.asking = None;
    }

    /// Whether a solicitation is due: then it is taken as sent.
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

    /// A router said something.
    pub fn hear(&mut self, said: &ReceivedAdvert, now: u64) {
        if self.disabled {
            return;
        }
        self.heard += 1;
        self.refused += u64::from(said.more);
        // RFC 4861, 6.3.7: one that is no way to anywhere does not end the asking.
        if said.lifetime_s > 0 {
            self.asking = None;
        }
        self.hear_router(said, now);
        for offer in said.offers() {
            self.hear_offer(offer, now);
        }
    }

    fn hear_router(&mut self, said: &ReceivedAdvert, now: u64) {
        let until = now + u64::from(said.lifetime_s) * SECOND;
        let known = |r: &Router| r.said.router == said.router;
        match self.routers.iter().position(known) {
            Some(at) if said.lifetime_s == 0 => _ = self.routers.remove(at),
            // That it speaks does not say that it hears (RFC 4861, 7.3.1).
            Some(at) => (self.routers[at].said, self.routers[at].until) = (*said, until),
            None if said.lifetime_s == 0 => {}
            None if self.routers.len() < ROUTERS => self.routers.push(Router {
                said: *said,
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

    /// RFC 4861, 6.3.4.
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

    /// RFC 4862, 5.5.3.
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

    /// Lets go what is over; true when there was something.
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

    /// Its default routers, each with its place: those with the lowest one are used.
    pub fn ways(&self) -> Vec<(Ipv6Addr, u8)> {
        let way = |it: &Router| (it.said.router, it.reach.place(it.said.preference));
        let mut all: Vec<_> = self.routers.iter().map(way).collect();
        all.sort();
        all
    }

    /// All addresses that it wants, its link-local one first.
    pub fn wanted(&self) -> Vec<IfAddress> {
        let local = IfAddress::new(self.link_local().into(), MADE_OF).ok();
        let made = self.addresses.iter().map(|it| it.address);
        local.into_iter().chain(made).collect()
    }

    /// Addresses that nothing should begin with.
    pub fn deprecated(&self) -> impl Iterator<Item = IfAddress> {
        let old = self.addresses.iter().filter(|it| !it.is_preferred);
        old.map(|it| it.address)
    }
}

/// The valid lifetime of an address of which something new is said: shorter than two hours only when it was that already
/// (RFC 4862, 5.5.3, e).
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
