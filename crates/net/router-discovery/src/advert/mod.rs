//! Sent router advertisements (RFC 4861, 6.2): contents and schedule of each interface.

mod advertiser;
mod compare;
mod packet;
mod schedule;

use crate::autoconf::received::ReceivedAdvert;
use crate::link::{Link, SECOND};
use crate::model::{AdvertisedPrefix, RouterAdvertisement};
use crate::moment::{Effect, Moment};
use crate::show::AdvertRow;
use advertiser::{Advertiser, prefixes};
use schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use volley_iface::Flag;
use volley_model::{Family, ModelError, Prefix};
use volley_object::Object;

/// Most differences that are remembered.
const REPORTED: usize = 32;

/// Interfaces that send router advertisements.
#[derive(Default)]
pub struct Advertisers {
    all: BTreeMap<u32, Advertiser>,
    /// Configured prefixes, by interface.
    prefixes: BTreeMap<u32, BTreeMap<Prefix, AdvertisedPrefix>>,
}

impl Advertisers {
    /// Sets the advertisements of an interface; none ends them.
    pub fn advertise(
        &mut self,
        iface: u32,
        settings: Option<RouterAdvertisement>,
        moment: &mut Moment<'_>,
    ) {
        let (now, chance) = (moment.now, moment.chance(iface));
        match (self.all.get_mut(&iface), settings) {
            (Some(old), Some(new)) => {
                if let Some(schedule) = &mut old.schedule {
                    schedule.again(&new, now, chance);
                }
                old.settings = new;
            }
            (Some(old), None) => match &mut old.schedule {
                Some(schedule) => schedule.end(now),
                None => _ = self.all.remove(&iface),
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
                    reported: BTreeSet::new(),
                };
                self.all.insert(iface, advertiser);
            }
            (None, None) => {}
        }
        self.follow(iface, moment);
    }

    /// Sets a configured prefix of an interface's advertisements; none removes it. An interface has at most `limit` of them.
    pub fn advertise_prefix(
        &mut self,
        iface: u32,
        (prefix, now): (Prefix, Option<AdvertisedPrefix>),
        limit: usize,
        moment: &mut Moment<'_>,
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
        if let Some(advertiser) = self.all.get_mut(&iface) {
            advertiser.named = all.values().cloned().collect();
        }
        self.follow(iface, moment);
        Ok(())
    }

    /// Follows an interface that was added, deleted or changed.
    pub fn follow(&mut self, iface: u32, moment: &mut Moment<'_>) {
        let link = moment.links.get(&iface);
        let can = link.is_some_and(|link| link.up && link.learns && link.has(Family::V6));
        let (there, now, chance) = (link.is_some(), moment.now, moment.chance(iface));
        if !there {
            self.prefixes.remove(&iface);
            self.all.remove(&iface);
        }
        if let Some(it) = self.all.get_mut(&iface) {
            match &mut it.schedule {
                None if can => it.schedule = Some(Schedule::new(&it.settings, now, chance)),
                Some(schedule) if !can && schedule.is_ending() => _ = self.all.remove(&iface),
                Some(_) if !can => it.schedule = None,
                // The prefixes may have changed.
                Some(schedule) if !schedule.is_ending() => {
                    schedule.again(&it.settings, now, chance)
                }
                _ => {}
            }
        }
        self.drop_ended(iface);
        let on = self.all.get(&iface).and_then(|it| it.schedule.as_ref());
        let on = on.is_some_and(|schedule| !schedule.is_ending());
        if there {
            moment.mark(iface, Flag::RouterAdvertisements, on);
        }
    }

    fn drop_ended(&mut self, iface: u32) {
        let ended = |it: &Advertiser| it.schedule.as_ref().is_some_and(Schedule::has_ended);
        if self.all.get(&iface).is_some_and(ended) {
            self.all.remove(&iface);
        }
    }

    /// Handles a received router solicitation.
    pub fn solicited(&mut self, iface: u32, moment: &mut Moment<'_>) {
        let (now, chance) = (moment.now, moment.chance(iface));
        let Some(it) = self.all.get_mut(&iface) else {
            return;
        };
        it.solicited += 1;
        if let Some(schedule) = &mut it.schedule {
            schedule.solicited(now, chance);
        }
    }

    /// Compares a received advertisement with this router's on an advertising interface: they should agree (6.2.7).
    pub fn compare(&mut self, iface: u32, message: &ReceivedAdvert, moment: &mut Moment<'_>) {
        let (Some(it), Some(link)) = (self.all.get_mut(&iface), moment.links.get(&iface)) else {
            return;
        };
        let ours = prefixes(&it.named, link.own_addresses());
        let all = compare::differences(message, (&it.settings, link.mtu), &ours);
        it.inconsistent += u64::from(!all.is_empty());
        let mut new = Vec::new();
        for what in all {
            if it.reported.len() < REPORTED && it.reported.insert((message.router, what)) {
                new.push(what);
            }
        }
        if !new.is_empty() {
            let (router, what) = (message.router, new.join(", "));
            moment.tell(
                iface,
                format!("the router {router} does not advertise what is advertised here ({what}): make them the same"),
            );
        }
    }

    /// Sends the advertisements that are due.
    pub fn turn(&mut self, moment: &mut Moment<'_>) {
        let now = moment.now;
        let due = |it: &Advertiser| it.schedule.as_ref().is_some_and(|s| s.next() <= now);
        let all = self.all.iter().filter(|(_, it)| due(it));
        let all: Vec<u32> = all.map(|(iface, _)| *iface).collect();
        for iface in all {
            let chance = moment.chance(iface);
            let (Some(it), Some(link)) = (self.all.get_mut(&iface), moment.links.get(&iface))
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
                moment.effects.push(Effect::Send(iface, frame));
            }
            self.drop_ended(iface);
        }
    }

    /// Before the daemon ends, sends one final advertisement on every advertising interface, at once (6.2.5).
    pub fn farewell(&self, moment: &mut Moment<'_>) {
        let begun = |it: &Advertiser| it.schedule.as_ref().is_some_and(Schedule::has_begun);
        for (iface, it) in self.all.iter().filter(|(_, it)| begun(it)) {
            if let Some(link) = moment.links.get(iface) {
                let frame = it.frame(link, true);
                moment.effects.push(Effect::Send(*iface, frame));
            }
        }
    }

    /// An interface's advertisements for `show`.
    pub fn row(&self, iface: u32, link: Option<&Link>, now: u64) -> Option<AdvertRow> {
        let (it, link) = (self.all.get(&iface)?, link?);
        let schedule = it.schedule.as_ref();
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
}
