//! State of an interface that sends router advertisements.

use super::packet::Advertisement;
use super::schedule::Schedule;
use crate::link::Link;
use crate::model::{AdvertisedPrefix, RouterAdvertisement};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use volley_model::{Family, IfAddress};

/// An interface that sends router advertisements, or its final ones.
pub(crate) struct Advertiser {
    pub settings: RouterAdvertisement,
    /// Configured prefixes.
    pub named: Vec<AdvertisedPrefix>,
    /// None while the interface is down, has no IPv6 address, or has a type without neighbours.
    pub schedule: Option<Schedule>,
    pub sent: u64,
    pub solicited: u64,
    /// Received advertisements of other routers that differ from this router's.
    pub inconsistent: u64,
    /// Differences that were already logged.
    pub reported: BTreeSet<(Ipv6Addr, &'static str)>,
}

impl Advertiser {
    /// Builds an advertisement; with `ending` a final one.
    pub fn frame(&self, link: &Link, ending: bool) -> Vec<u8> {
        let prefixes = prefixes(&self.named, link.own_addresses());
        let advertisement = Advertisement {
            own: link.mac,
            mtu: link.mtu,
            settings: &self.settings,
            prefixes: &prefixes,
            ending,
        };
        advertisement.frame()
    }
}

/// Prefixes advertised on an interface with these addresses.
pub(crate) fn prefixes(
    named: &[AdvertisedPrefix],
    own: impl Iterator<Item = IfAddress>,
) -> Vec<AdvertisedPrefix> {
    let local = |a: IpAddr| matches!(a, IpAddr::V6(a) if a.is_unicast_link_local());
    let mut all: Vec<AdvertisedPrefix> = Vec::new();
    let named = named.iter().cloned();
    let own = own.filter(|a| a.family() == Family::V6 && !local(a.addr()) && a.len() < 128);
    for it in named.chain(own.map(|a| AdvertisedPrefix::network(a.subnet()))) {
        if all.iter().all(|other| other.prefix != it.prefix) {
            all.push(it);
        }
    }
    all.retain(|it| it.advertise);
    all
}
