//! Router advertisements (RFC 4861, 6.2): what each interface says, and when.

pub(crate) mod advertiser;
mod compare;
mod packet;
mod schedule;

use crate::autoconf::received::ReceivedAdvert;
use crate::control::Control;
use crate::entry::SECOND;
use crate::lane::Frame;
use crate::model::{AdvertisedPrefix, RouterAdvertisement};
use crate::nd;
use crate::show::AdvertRow;
use advertiser::{Advertiser, prefixes};
use schedule::Schedule;
use std::collections::BTreeSet;
use volley_iface::{Flag, IfIdx};
use volley_model::{Family, ModelError, Prefix};
use volley_object::Object;

/// Differences that are remembered.
const TOLD: usize = 32;

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
    pub fn advertise(&mut self, iface: u32, settings: Option<RouterAdvertisement>) {
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
                let named = self.prefixes.get(&iface);
                let advertiser = Advertiser {
                    settings,
                    named: named.map_or(Vec::new(), |all| all.values().cloned().collect()),
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

    /// A configured prefix of an interface's advertisements; none = there is no such one. An interface has `limit` of them
    /// at most.
    pub(crate) fn advertise_prefix(
        &mut self,
        iface: u32,
        prefix: Prefix,
        now: Option<AdvertisedPrefix>,
        limit: usize,
    ) -> Result<(), ModelError> {
        let all = self.prefixes.entry(iface).or_default();
        match now {
            Some(_) if all.len() >= limit && !all.contains_key(&prefix) => {
                let asked = all.len() as u64 + 1;
                return Err(ModelError::limit("prefixes", asked, limit as u64));
            }
            Some(it) => _ = all.insert(prefix, it),
            None => _ = all.remove(&prefix),
        }
        if let Some(advertiser) = self.adverts.get_mut(&iface) {
            advertiser.named = all.values().cloned().collect();
        }
        self.follow_link(iface);
        Ok(())
    }

    /// An interface came, went, or has changed.
    pub fn follow_link(&mut self, iface: u32) {
        let link = self.links.get(&iface);
        let can = link.is_some_and(|link| link.up && link.learns && link.has(Family::V6));
        let (there, now, chance) = (link.is_some(), self.now(), self.chance(iface));
        if !there {
            self.prefixes.remove(&iface);
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
        let ours = prefixes(&it.named, link.own_addresses());
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
        let all = prefixes(&it.named, link.own_addresses());
        Some(AdvertRow {
            settings: it.settings.instance().ok(),
            min_interval_s: it.settings.shortest_interval(),
            max_interval_s: it.settings.max_interval,
            lifetime_s: it.settings.router_lifetime(),
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
