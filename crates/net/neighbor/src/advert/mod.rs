//! Router advertisements (RFC 4861, 6.2): what each interface says, and when.

mod compare;
mod packet;
mod schedule;

use crate::autoconf::packet::ReceivedAdvert;
use crate::control::{Control, Link};
use crate::entry::SECOND;
use crate::lane::Frame;
use crate::nd;
use packet::Advertisement;
use schedule::Schedule;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use volley_iface::{Flag, IfIdx};
use volley_model::reply::AdvertRow;
use volley_model::{AdvertPrefix, Family, RouterAdvert};

/// An interface that advertises, or is about to end.
pub(crate) struct Advertiser {
    settings: RouterAdvert,
    /// None while the interface is down, has no IPv6 address, or leads to nobody.
    schedule: Option<Schedule>,
    sent: u64,
    solicited: u64,
    /// Advertisements of other routers that differ from what is said here.
    inconsistent: u64,
    /// Differences that the operator was told of.
    told: BTreeSet<(Ipv6Addr, &'static str)>,
}

/// Differences that are remembered.
const TOLD: usize = 32;

impl Advertiser {
    /// An advertisement, whether as always or as one of the last.
    fn frame(&self, link: &Link, ending: bool) -> Vec<u8> {
        let prefixes = prefixes(&self.settings, link.own_addresses());
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

/// What is advertised of an interface with these addresses.
fn prefixes(
    settings: &RouterAdvert,
    own: impl Iterator<Item = volley_model::IfAddress>,
) -> Vec<AdvertPrefix> {
    let local = |a: IpAddr| matches!(a, IpAddr::V6(a) if a.is_unicast_link_local());
    let mut all: Vec<AdvertPrefix> = Vec::new();
    let named = settings.prefixes.iter().cloned();
    let own = own.filter(|a| a.family() == Family::V6 && !local(a.addr()) && a.len() < 128);
    for it in named.chain(own.map(|a| AdvertPrefix::usual(a.subnet()))) {
        if all.iter().all(|other| other.prefix != it.prefix) {
            all.push(it);
        }
    }
    all.retain(|it| !it.no_advertise);
    all
}

impl Control {
    /// Any number, each time another: when advertisements come must not be the same on all routers.
    pub(crate) fn chance(&mut self, iface: u32) -> u64 {
        let mac = self.links.get(&iface).map_or([0; 6], |link| link.mac);
        let mac = mac.iter().fold(0, |n, b| n << 8 | u64::from(*b));
        let mut x = self.random_state ^ self.now() ^ mac.rotate_left(20) | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random_state = x;
        x >> 8
    }

    /// Say what an interface advertises, or that it advertises nothing any more.
    pub fn advertise(&mut self, iface: u32, settings: Option<RouterAdvert>) {
        let (now, chance) = (self.now(), self.chance(iface));
        match (self.adverts.get_mut(&iface), settings) {
            (Some(old), Some(new)) => {
                if let Some(schedule) = &mut old.schedule {
                    schedule.again(&new, now, chance);
                }
                old.settings = new;
            }
            (Some(old), None) => match &mut old.schedule {
                Some(schedule) => schedule.end(now),
                None => _ = self.adverts.remove(&iface),
            },
            (None, Some(settings)) => {
                let advertiser = Advertiser {
                    settings,
                    schedule: None,
                    sent: 0,
                    solicited: 0,
                    inconsistent: 0,
                    told: BTreeSet::new(),
                };
                self.adverts.insert(iface, advertiser);
            }
            (None, None) => {}
        }
        self.follow_link(iface);
    }

    /// An interface came, went, or has changed.
    pub fn follow_link(&mut self, iface: u32) {
        let link = self.links.get(&iface);
        let can = link.is_some_and(|link| link.up && link.learns && link.has(Family::V6));
        let (there, now, chance) = (link.is_some(), self.now(), self.chance(iface));
        if !there {
            self.adverts.remove(&iface);
        }
        if let Some(it) = self.adverts.get_mut(&iface) {
            match &mut it.schedule {
                None if can => it.schedule = Some(Schedule::new(&it.settings, now, chance)),
                Some(schedule) if !can && schedule.is_ending() => _ = self.adverts.remove(&iface),
                Some(_) if !can => it.schedule = None,
                // Its prefixes may be others now.
                Some(schedule) if !schedule.is_ending() => {
                    schedule.again(&it.settings, now, chance)
                }
                _ => {}
            }
        }
        self.drop_ended(iface);
        let on = self.adverts.get(&iface).and_then(|it| it.schedule.as_ref());
        let on = on.is_some_and(|schedule| !schedule.is_ending());
        let interfaces = self.interfaces.borrow();
        if there {
            interfaces
                .table()
                .set(IfIdx(iface), Flag::RouterAdvertisements, on);
        }
    }

    fn drop_ended(&mut self, iface: u32) {
        let ended = |it: &Advertiser| it.schedule.as_ref().is_some_and(Schedule::has_ended);
        if self.adverts.get(&iface).is_some_and(ended) {
            self.adverts.remove(&iface);
        }
    }

    /// A host asked for routers.
    pub fn solicited(&mut self, iface: u32, now: u64) {
        let chance = self.chance(iface);
        let Some(it) = self.adverts.get_mut(&iface) else {
            return;
        };
        it.solicited += 1;
        if let Some(schedule) = &mut it.schedule {
            schedule.solicited(now, chance);
        }
    }

    /// Another router advertises itself on an interface that does so as well: what it says should be the same (6.2.7).
    pub(crate) fn compare_router(&mut self, iface: u32, said: &ReceivedAdvert) {
        let (Some(it), Some(link)) = (self.adverts.get_mut(&iface), self.links.get(&iface)) else {
            return;
        };
        let ours = prefixes(&it.settings, link.own_addresses());
        let all = compare::differences(said, (&it.settings, link.mtu), &ours);
        it.inconsistent += u64::from(!all.is_empty());
        let mut new = Vec::new();
        for what in all {
            if it.told.len() < TOLD && it.told.insert((said.router, what)) {
                new.push(what);
            }
        }
        if !new.is_empty() {
            let (router, what) = (said.router, new.join(", "));
            self.tell(
                iface,
                &format!("the router {router} does not advertise what is advertised here ({what}): make them the same"),
            );
        }
    }

    /// Send what is due.
    pub fn turn_adverts(&mut self, now: u64) {
        let due = |it: &Advertiser| it.schedule.as_ref().is_some_and(|s| s.next() <= now);
        let all: Vec<u32> = self
            .adverts
            .iter()
            .filter(|(_, it)| due(it))
            .map(|(i, _)| *i)
            .collect();
        for iface in all {
            let chance = self.chance(iface);
            let (Some(it), Some(link)) = (self.adverts.get_mut(&iface), self.links.get(&iface))
            else {
                continue;
            };
            let Some(schedule) = &mut it.schedule else {
                continue;
            };
            let ending = schedule.is_ending();
            if schedule.turn(now, chance) {
                it.sent += 1;
                let frame = it.frame(link, ending);
                self.send_long(Frame::new(iface, &frame));
            }
            self.drop_ended(iface);
        }
    }

    /// Volley is about to end: every interface that advertised itself says so once, at once (6.2.5). True when one does.
    pub(crate) fn farewell(&mut self) -> bool {
        let begun = |it: &Advertiser| it.schedule.as_ref().is_some_and(Schedule::has_begun);
        let all = self.adverts.iter().filter(|(_, it)| begun(it));
        let frame = |(iface, it): (&u32, &Advertiser)| {
            let link = self.links.get(iface)?;
            Some(Frame::new(*iface, &it.frame(link, true)))
        };
        let frames: Vec<_> = all.filter_map(frame).collect();
        let some = !frames.is_empty();
        frames.into_iter().for_each(|frame| self.send_long(frame));
        self.engine.borrow().wake();
        some
    }

    /// What others see of an interface's advertisements.
    pub fn advert_row(&self, iface: u32) -> Option<AdvertRow> {
        let (it, link) = (self.adverts.get(&iface)?, self.links.get(&iface)?);
        let (now, schedule) = (self.now(), it.schedule.as_ref());
        if schedule.is_some_and(Schedule::is_ending) {
            return None;
        }
        let all = prefixes(&it.settings, link.own_addresses());
        Some(AdvertRow {
            settings: it.settings.clone(),
            prefixes: all.iter().map(|it| it.prefix).collect(),
            sent: it.sent,
            solicited: it.solicited,
            inconsistent: it.inconsistent,
            next_ms: schedule.map(|s| s.next().saturating_sub(now) / (SECOND / 1000)),
        })
    }

    /// The link-local address of an interface with an IPv6 address.
    pub fn link_local(&self, iface: u32) -> Option<std::net::Ipv6Addr> {
        let link = self.links.get(&iface).filter(|link| link.has(Family::V6))?;
        Some(nd::link_local(link.mac))
    }
}
