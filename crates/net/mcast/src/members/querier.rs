//! Group membership state and query schedule of one interface (RFC 3376, 6; RFC 3810, 7), for both IP versions. The caller
//! supplies the time and sends the packets.

use crate::model::GroupQuerier;
use std::collections::{BTreeMap, BTreeSet};

/// Most groups on an interface, for each IP version.
const GROUPS: usize = 1024;
/// Most sources of a group on an interface.
const GROUP_SOURCES: usize = 64;
/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;

/// Type of a group record (RFC 3376, 4.2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordType {
    /// MODE_IS_INCLUDE: the host requests only these sources.
    ModeIsInclude,
    /// MODE_IS_EXCLUDE: the host requests all sources but these.
    ModeIsExclude,
    /// CHANGE_TO_INCLUDE_MODE: from now on only these.
    ChangeToInclude,
    /// CHANGE_TO_EXCLUDE_MODE: from now on all but these.
    ChangeToExclude,
    /// ALLOW_NEW_SOURCES: the host requests these in addition.
    AllowNewSources,
    /// BLOCK_OLD_SOURCES: the host no longer requests these.
    BlockOldSources,
}

/// A query to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingQuery<A> {
    /// Queried group; none for a general query.
    pub group: Option<A>,
    /// Queried sources; empty for all.
    pub sources: Vec<A>,
    /// S flag: suppress router-side processing.
    pub suppress: bool,
}

/// A received query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<A> {
    /// Queried group; none for a general query.
    pub group: Option<A>,
    /// Maximum response time in milliseconds.
    pub within_ms: u32,
    /// S flag: suppress router-side processing.
    pub suppress: bool,
    /// The querier's robustness variable; 0 if unspecified.
    pub robustness: u8,
    /// The querier's query interval in seconds; 0 if unspecified.
    pub interval_s: u32,
}

/// A source; `until` is 0 if it is blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Expiry of the source timer.
    pub until: u64,
    asks: u32,
}

/// A group with members.
#[derive(Clone, Debug, Default)]
pub struct Group<A> {
    /// EXCLUDE mode: all sources but the blocked ones are forwarded; otherwise only the listed ones.
    pub exclude: bool,
    /// Expiry of the group timer.
    pub until: u64,
    /// Listed sources.
    pub sources: BTreeMap<A, Source>,
    /// Expiry of the older version host present timers, for versions 1 and 2.
    old: [u64; 2],
    asks: u32,
    ask_at: u64,
}

impl<A: Copy + Ord> Group<A> {
    /// Group compatibility mode: the version of the oldest host, 1 to 3.
    pub fn version(&self, now: u64) -> u8 {
        let old = self.old.iter().position(|until| *until > now);
        old.map_or(3, |at| at as u8 + 1)
    }

    /// The listed sources that are not blocked.
    fn wanted(&self) -> Vec<A> {
        let wanted = self.sources.iter().filter(|(_, it)| it.until > 0);
        wanted.map(|(source, _)| *source).collect()
    }

    /// Sets the timers of these sources; returns how many did not fit.
    fn want(&mut self, list: &[A], until: u64) -> u64 {
        let mut refused = 0;
        for source in list {
            let room = self.sources.len() < GROUP_SOURCES;
            match self.sources.get_mut(source) {
                Some(it) => it.until = until,
                None if room => _ = self.sources.insert(*source, Source { until, asks: 0 }),
                None => refused += 1,
            }
        }
        refused
    }

    /// Switches to EXCLUDE mode with these sources; new ones get the timer `fresh`. Returns how many did not fit.
    fn all_but(&mut self, list: &[A], fresh: u64) -> u64 {
        let mut refused = 0;
        self.sources.retain(|source, _| list.contains(source));
        for source in list {
            let room = self.sources.len() < GROUP_SOURCES;
            if self.sources.contains_key(source) {
                continue;
            }
            if room {
                let it = Source {
                    until: fresh,
                    asks: 0,
                };
                self.sources.insert(*source, it);
            } else {
                refused += 1;
            }
        }
        self.exclude = true;
        refused
    }

    /// Handles expired timers (RFC 3376, 6.5); returns whether the group has members.
    fn expire(&mut self, now: u64) -> bool {
        if self.exclude && self.until <= now {
            self.exclude = false;
            self.sources.retain(|_, it| it.until > 0);
        }
        if self.exclude {
            for it in self.sources.values_mut().filter(|it| it.until <= now) {
                *it = Source::default();
            }
        } else {
            self.sources.retain(|_, it| it.until > now);
        }
        self.exclude || !self.sources.is_empty()
    }
}

/// Querier of one interface and IP version.
#[derive(Clone, Debug)]
pub struct Querier<A> {
    settings: GroupQuerier,
    /// Robustness variable and query interval in effect: those of the elected querier.
    robustness: u64,
    interval: u64,
    own: Option<A>,
    other: Option<(A, u64)>,
    next: u64,
    startup: u64,
    groups: BTreeMap<A, Group<A>>,
    /// Groups whose members may have changed.
    pub changed: BTreeSet<A>,
    /// Number of accepted host messages.
    pub reports: u64,
    /// Number of sent queries.
    pub queries: u64,
    /// Number of groups and sources that did not fit.
    pub refused: u64,
}

impl<A: Copy + Ord> Querier<A> {
    /// A querier without groups.
    pub fn new(settings: GroupQuerier) -> Self {
        let mut it = Querier {
            robustness: 0,
            interval: 0,
            settings,
            own: None,
            other: None,
            next: 0,
            startup: 0,
            groups: BTreeMap::new(),
            changed: BTreeSet::new(),
            reports: 0,
            queries: 0,
            refused: 0,
        };
        it.own_values();
        it
    }

    fn own_values(&mut self) {
        self.robustness = self.settings.robustness.into();
        self.interval = u64::from(self.settings.query_interval) * 1000 * MS;
    }

    /// Changes the settings.
    pub fn set(&mut self, settings: GroupQuerier, now: u64) {
        self.settings = settings;
        if self.other.is_none() {
            self.own_values();
            self.begin(now);
        }
    }

    /// The settings.
    pub fn settings(&self) -> &GroupQuerier {
        &self.settings
    }

    /// Sets the source address of queries on the link; without one, no queries are sent.
    pub fn set_own(&mut self, own: Option<A>, now: u64) {
        if self.own != own {
            self.own = own;
            self.other = None;
            self.own_values();
            self.begin(now);
        }
    }

    /// Removes all groups, because the link is down.
    pub fn clear(&mut self) {
        self.changed.extend(self.groups.keys());
        self.groups.clear();
    }

    fn begin(&mut self, now: u64) {
        (self.next, self.startup) = (now, self.robustness);
    }

    /// The elected querier of the link, and if it is another router, the expiry of the other querier present timer.
    pub fn querier(&self) -> Option<(A, Option<u64>)> {
        let other = self.other.map(|(address, until)| (address, Some(until)));
        other.or(self.own.map(|own| (own, None)))
    }

    fn asks(&self) -> bool {
        self.own.is_some() && self.other.is_none()
    }

    fn response(&self) -> u64 {
        u64::from(self.settings.max_response) * MS
    }

    /// Group membership interval (RFC 3376, 8.4).
    fn membership(&self) -> u64 {
        self.robustness * self.interval + self.response()
    }

    fn last_member(&self) -> (u64, u32) {
        let usual = self.robustness as u32;
        let count = self.settings.last_member_count.unwrap_or(usual);
        (u64::from(self.settings.last_member_interval) * MS, count)
    }

    /// All groups.
    pub fn iter(&self) -> impl Iterator<Item = (&A, &Group<A>)> {
        self.groups.iter()
    }

    /// State of a group.
    pub fn group(&self, group: A) -> Option<&Group<A>> {
        self.groups.get(&group)
    }

    /// Handles a report of an old version (RFC 3376, 7.3.2; RFC 3810, 8.3.2).
    pub fn old_report(&mut self, now: u64, version: u8, group: A) {
        self.report(now, RecordType::ModeIsExclude, group, &[]);
        let until = now + self.membership();
        if let Some(it) = self.groups.get_mut(&group)
            && let Some(old) = it.old.get_mut(usize::from(version) - 1)
        {
            *old = until;
        }
    }

    /// Handles a record by the tables of RFC 3376, 6.4, and RFC 3810, 7.4.
    pub fn report(&mut self, now: u64, kind: RecordType, group: A, list: &[A]) {
        let (mut list, mut kind) = (list, kind);
        let until = now + self.membership();
        let Some(it) = self.entry(now, (kind, list), group) else {
            return;
        };
        // In the presence of hosts of old versions, blocked sources are ignored (RFC 3376, 7.3.2).
        let version = it.version(now);
        match kind {
            RecordType::BlockOldSources if version < 3 => return,
            RecordType::ChangeToInclude if version < 2 => kind = RecordType::ModeIsInclude,
            RecordType::ChangeToExclude if version < 3 => list = &[],
            _ => {}
        }
        let before = it.wanted();
        let (was, timer) = (it.exclude, it.until);
        let of = |list: &[A]| -> Vec<A> {
            let known = list.iter().filter(|a| before.contains(a));
            known.copied().collect()
        };
        let not_in: Vec<A> = before
            .iter()
            .filter(|a| !list.contains(a))
            .copied()
            .collect();
        let blocked = |it: &Group<A>, a: &A| it.sources.get(a).is_some_and(|it| it.until == 0);
        let (mut ask, mut ask_all, mut refused) = (Vec::new(), false, 0);
        match kind {
            RecordType::ModeIsInclude | RecordType::AllowNewSources => {
                refused = it.want(list, until)
            }
            RecordType::ChangeToInclude => {
                refused = it.want(list, until);
                (ask, ask_all) = (not_in, was);
            }
            RecordType::ModeIsExclude => {
                refused = it.all_but(list, if was { until } else { 0 });
                it.until = until;
            }
            RecordType::ChangeToExclude if !was => {
                ask = of(list);
                refused = it.all_but(list, 0);
                it.until = until;
            }
            RecordType::ChangeToExclude => {
                let open = list.iter().filter(|a| !blocked(it, a));
                ask = open.copied().collect();
                refused = it.all_but(list, timer);
                it.until = until;
            }
            RecordType::BlockOldSources if !was => ask = of(list),
            RecordType::BlockOldSources => {
                let open = list.iter().filter(|a| !blocked(it, a));
                ask = open.copied().collect();
                let fresh = |a: &&A| !it.sources.contains_key(a);
                let fresh: Vec<A> = list.iter().filter(fresh).copied().collect();
                refused = it.want(&fresh, timer);
            }
        }
        self.refused += refused;
        self.changed.insert(group);
        self.ask_about(now, group, (&ask, ask_all));
    }

    /// The group of a record; none if the record changes nothing or the group does not fit.
    fn entry(
        &mut self,
        now: u64,
        (kind, list): (RecordType, &[A]),
        group: A,
    ) -> Option<&mut Group<A>> {
        let alive = self.groups.get_mut(&group).map(|it| it.expire(now));
        if alive.is_some() {
            self.changed.insert(group);
        }
        if alive != Some(true) {
            let wants = match kind {
                RecordType::ModeIsExclude | RecordType::ChangeToExclude => true,
                RecordType::ModeIsInclude
                | RecordType::ChangeToInclude
                | RecordType::AllowNewSources => !list.is_empty(),
                RecordType::BlockOldSources => false,
            };
            if !wants {
                return None;
            }
            if alive.is_none() && self.groups.len() >= GROUPS {
                self.refused += 1;
                return None;
            }
            let fresh = Group {
                exclude: false,
                until: 0,
                sources: BTreeMap::new(),
                old: [0; 2],
                asks: 0,
                ask_at: 0,
            };
            self.groups.insert(group, fresh);
        }
        self.groups.get_mut(&group)
    }

    /// Lowers timers and schedules specific queries: the last member may have left (RFC 3376, 6.6.3).
    fn ask_about(&mut self, now: u64, group: A, (sources, all): (&[A], bool)) {
        let (interval, count) = self.last_member();
        if !self.asks() {
            return;
        }
        let Some(it) = self.groups.get_mut(&group) else {
            return;
        };
        let soon = now + interval * u64::from(count);
        if all {
            it.until = it.until.min(soon);
            (it.asks, it.ask_at) = (count, now);
        }
        for source in sources {
            if let Some(it) = it.sources.get_mut(source).filter(|it| it.until > 0) {
                it.until = it.until.min(soon);
                it.asks = count;
            }
        }
        if !sources.is_empty() {
            it.ask_at = now;
        }
    }

    /// Handles a query of another router: querier election by the lowest address (RFC 3376, 6.6.2), and lowering of timers
    /// (6.6.1).
    pub fn hear(&mut self, now: u64, from: A, query: &Query<A>, sources: &[A]) {
        if self.own.is_some_and(|own| from < own)
            && self.other.is_none_or(|(other, _)| from <= other)
        {
            self.own_values();
            if query.robustness > 0 {
                self.robustness = query.robustness.into();
            }
            if query.interval_s > 0 {
                self.interval = u64::from(query.interval_s) * 1000 * MS;
            }
            let present = self.robustness * self.interval + self.response() / 2;
            self.other = Some((from, now + present));
        }
        let (_, count) = self.last_member();
        let soon = now + u64::from(query.within_ms) * MS * u64::from(count);
        let Some(group) = query.group.filter(|_| !query.suppress) else {
            return;
        };
        let Some(it) = self.groups.get_mut(&group) else {
            return;
        };
        if sources.is_empty() {
            it.until = it.until.min(soon);
        }
        for source in sources {
            if let Some(it) = it.sources.get_mut(source).filter(|it| it.until > 0) {
                it.until = it.until.min(soon);
            }
        }
    }

    /// Handles expired timers; returns the queries that are due.
    pub fn turn(&mut self, now: u64) -> Vec<OutgoingQuery<A>> {
        if self.other.is_some_and(|(_, until)| until <= now) {
            self.other = None;
            self.own_values();
            self.next = now;
        }
        let (asks, (interval, count)) = (self.asks(), self.last_member());
        let mut out = Vec::new();
        if asks && self.next <= now {
            self.startup = self.startup.saturating_sub(1);
            let pause = match self.startup {
                0 => self.interval,
                _ => self.interval / 4,
            };
            self.next = now + pause;
            out.push(OutgoingQuery {
                group: None,
                sources: Vec::new(),
                suppress: false,
            });
        }
        let (changed, soon) = (&mut self.changed, now + interval * u64::from(count));
        self.groups.retain(|group, it| {
            let open = |it: &Group<A>| (it.exclude, it.wanted());
            let before = open(it);
            let alive = it.expire(now);
            if !alive || open(it) != before {
                changed.insert(*group);
            }
            if alive && asks {
                due(*group, it, (now, soon, interval), &mut out);
            }
            alive
        });
        self.queries += out.len() as u64;
        out
    }
}

/// Group-specific and source-specific queries that are due (RFC 3376, 6.6.3).
fn due<A: Copy + Ord>(
    group: A,
    it: &mut Group<A>,
    (now, soon, interval): (u64, u64, u64),
    out: &mut Vec<OutgoingQuery<A>>,
) {
    if it.ask_at > now {
        return;
    }
    it.ask_at = now + interval;
    if it.asks > 0 {
        it.asks -= 1;
        out.push(OutgoingQuery {
            group: Some(group),
            sources: Vec::new(),
            suppress: it.until > soon,
        });
    }
    let mut asked: [Vec<A>; 2] = [Vec::new(), Vec::new()];
    for (source, it) in it.sources.iter_mut().filter(|(_, it)| it.asks > 0) {
        it.asks -= 1;
        asked[usize::from(it.until > soon)].push(*source);
    }
    for (suppress, sources) in [(false, &asked[0]), (true, &asked[1])] {
        if !sources.is_empty() {
            out.push(OutgoingQuery {
                group: Some(group),
                sources: sources.clone(),
                suppress,
            });
        }
    }
}

#[cfg(test)]
mod tests;
