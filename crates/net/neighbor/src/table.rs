//! The neighbour table: learned and INCOMPLETE entries, with the packets that wait for them. Control thread only.
//!
//! - Invariants: no interface has more than [`Limits::neighbors`] entries with known MAC addresses, nor more than
//!   [`Limits::incomplete`] INCOMPLETE untrusted entries (module `incomplete`), nor more than [`Limits::neighbors`] others; at
//!   most [`Limits::held`] packets wait for an entry; packets wait only for an entry whose MAC address is unknown.
//! - The table changes only itself: it queues actions for the caller in [`Table::effects`], in order.

mod incomplete;

pub use incomplete::{Net, Origin};

use crate::entry::{Act, Entry, Mac, SECOND, Timers, Word};
use incomplete::{Group, Incomplete, Memory};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use volley_router_discovery::NeighborState as State;

/// Key of a neighbour: interface and address.
pub type Key = (u32, IpAddr);

/// Limits of the table.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most entries with known MAC addresses on one interface.
    pub neighbors: usize,
    /// Most untrusted entries in state INCOMPLETE on one interface.
    pub incomplete: usize,
    /// Most packets that wait for one neighbour.
    pub held: usize,
    /// Most requests per second on one interface.
    pub rate: u64,
    /// Largest burst of requests on one interface.
    pub burst: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            neighbors: 4096,
            incomplete: 1024,
            held: 8,
            rate: 1000,
            burst: 100,
        }
    }
}

/// For this long after a MAC address was published, packets that were queued for resolution before may still arrive.
const LATE: u64 = SECOND / 10;
/// Delay of a request that the rate limit refuses.
const LATER: u64 = SECOND / 20;

/// The part of [`Limits::burst`] that a request may use, in eighths: requests caused by scans leave tokens for the others (RFC
/// 6583, 7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// One more solicitation of an untrusted address.
    Again = 4,
    /// The first solicitation of an untrusted address.
    First = 6,
    /// The first solicitation of an untrusted address that more than one packet was sent to.
    Wanted = 7,
    /// A solicitation of a known neighbour or of a trusted address.
    Trusted = 8,
}

/// An action for the caller.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect<P> {
    /// Send a request: by unicast to the MAC address, or by multicast or broadcast.
    Ask(Key, Option<Mac>),
    /// The neighbour's MAC address is known or has changed.
    Publish(Key, Mac),
    /// The neighbour's MAC address is no longer known.
    Withdraw(Key),
    /// Look up these packets again.
    Release(Vec<P>),
    /// Drop these packets: no neighbour answered.
    GiveUp(Vec<P>),
    /// Drop these packets in favour of newer ones.
    Evict(Vec<P>),
}

/// Counters of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Neighbours that did not answer.
    pub failed: u64,
    /// Entries that were deleted in favour of others.
    pub evicted: u64,
    /// Entries refused because the table is full.
    pub refused: u64,
    /// Packets dropped in favour of newer ones for the same neighbour.
    pub hold_full: u64,
    /// Packets dropped in favour of others because too many wait.
    pub crowded: u64,
    /// Requests delayed by the rate limit.
    pub postponed: u64,
}

#[derive(Debug)]
struct Slot<P> {
    entry: Entry,
    published: u64,
    held: VecDeque<P>,
    /// When the entry was created.
    born: u64,
    /// The group of an untrusted entry, while it is INCOMPLETE.
    group: Option<Group>,
    /// Whether the MAC address was published.
    is_known: bool,
}

/// An entry that may be evicted: interface, rank, age.
type Spare = (u32, u8, u64, IpAddr);

/// Token bucket of requests of an interface.
#[derive(Debug)]
struct Allowance {
    asked: u64,
    at: u64,
}

/// A neighbour entry as queries show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Interface and address.
    pub key: Key,
    /// MAC address, once known.
    pub mac: Option<Mac>,
    /// State of the entry.
    pub state: State,
    /// When the entry entered its state.
    pub since: u64,
    /// Number of waiting packets.
    pub held: usize,
}

/// The table; `P` is a packet.
pub struct Table<P> {
    /// Timers.
    pub timers: Timers,
    /// Limits.
    pub limits: Limits,
    /// Counters.
    pub counts: Counts,
    /// Actions for the caller, who empties the list.
    pub effects: Vec<Effect<P>>,
    /// Neighbours that did not answer; the reader empties the list.
    pub failed: Vec<Key>,
    slots: HashMap<Key, Slot<P>>,
    due: BTreeSet<(u64, Key)>,
    /// Entries that may be evicted: interface, rank, age.
    spare: BTreeSet<Spare>,
    /// Numbers of entries by interface: with known MAC addresses, and trusted INCOMPLETE ones.
    known_on: HashMap<u32, usize>,
    trusted_on: HashMap<u32, usize>,
    incomplete: Incomplete,
    memory: Memory,
    allowances: HashMap<u32, Allowance>,
}

impl<P> Default for Table<P> {
    fn default() -> Self {
        Table {
            timers: Timers::default(),
            limits: Limits::default(),
            counts: Counts::default(),
            effects: Vec::new(),
            failed: Vec::new(),
            slots: HashMap::new(),
            due: BTreeSet::new(),
            spare: BTreeSet::new(),
            known_on: HashMap::new(),
            trusted_on: HashMap::new(),
            incomplete: Incomplete::default(),
            memory: Memory::default(),
            allowances: HashMap::new(),
        }
    }
}

/// The eviction rank of an entry: first entries learned from one request, then STALE entries that answered once.
fn spare_key((iface, addr): Key, entry: &Entry) -> Option<Spare> {
    let rank = match (entry.state(), entry.answered()) {
        (State::Stale, false) => 0,
        (State::Stale, true) => 1,
        _ => return None,
    };
    Some((iface, rank, entry.since(), addr))
}

impl<P> Table<P> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Shown> {
        self.slots.iter().map(|(key, slot)| Shown {
            key: *key,
            mac: slot.entry.mac(),
            state: slot.entry.state(),
            since: slot.entry.since(),
            held: slot.held.len(),
        })
    }

    /// The MAC address of an entry: the inner option is none if it is not known, the outer one if there is no entry.
    pub fn mac(&self, key: Key) -> Option<Option<Mac>> {
        self.slots.get(&key).map(|slot| slot.entry.mac())
    }

    /// The state of an entry; none if there is no entry.
    pub fn state(&self, key: Key) -> Option<State> {
        self.slots.get(&key).map(|slot| slot.entry.state())
    }

    /// When the next entry is due.
    pub fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Queues a packet whose next hop has no known MAC address.
    pub fn wait(&mut self, key: Key, origin: Origin, packet: P, now: u64) {
        if !self.slots.contains_key(&key) {
            self.add_sought(key, Some(origin), now);
        }
        let Some(slot) = self.slots.get_mut(&key) else {
            self.counts.refused += 1;
            return self.effects.push(Effect::GiveUp(vec![packet]));
        };
        if slot.entry.mac().is_some() {
            let late = now.saturating_sub(slot.published) < LATE;
            let back = vec![packet];
            self.effects.push(if late {
                Effect::Release(back)
            } else {
                Effect::GiveUp(back)
            });
            return self.turn_one(key, now);
        }
        // RFC 4861, 7.2.2: the new arrival replaces the oldest.
        if slot.held.len() >= self.limits.held {
            let oldest = slot.held.pop_front();
            self.counts.hold_full += 1;
            self.effects.push(Effect::Evict(Vec::from_iter(oldest)));
        }
        slot.held.push_back(packet);
        if let Some(group) = slot.group {
            self.incomplete.waiting.insert(group, slot.born, key.1);
        }
        self.change(key, |entry| entry.hurry(now));
        self.turn_one(key, now);
    }

    /// Drops `packets` packets of worker `worker` that wait for untrusted neighbours: the oldest of the network with the most.
    /// The addresses are still resolved.
    pub fn relieve(&mut self, worker: usize, mut packets: usize) {
        while packets > 0
            && let Some(key) = self.incomplete.waiting.oldest_of_largest(|g| g.1 == worker)
        {
            let held = self.take_held(key);
            packets = packets.saturating_sub(held.len().max(1));
            self.counts.crowded += held.len() as u64;
            self.effects.push(Effect::Evict(held));
        }
    }

    /// Takes the waiting packets of an entry.
    fn take_held(&mut self, key: Key) -> Vec<P> {
        let Some(slot) = self.slots.get_mut(&key) else {
            return Vec::new();
        };
        if let Some(group) = slot.group {
            self.incomplete.waiting.remove(group, slot.born, key.1);
        }
        std::mem::take(&mut slot.held).into()
    }

    /// Begins to resolve an address without a waiting packet.
    pub fn seek(&mut self, key: Key, now: u64) {
        if !self.slots.contains_key(&key) && !self.add_sought(key, None, now) {
            self.counts.refused += 1;
        }
        self.turn_one(key, now);
    }

    /// Sends one request, also for a STALE entry.
    pub fn ask_once(&mut self, key: Key, now: u64) {
        let timers = self.timers;
        if !self.slots.contains_key(&key) && !self.add_sought(key, None, now) {
            self.counts.refused += 1;
        }
        self.change(key, |entry| entry.once(now, &timers));
        self.turn_one(key, now);
    }

    /// Records that a neighbour is in use.
    pub fn used(&mut self, key: Key, now: u64) {
        let timers = self.timers;
        self.change(key, |entry| entry.used(now, &timers));
    }

    /// Handles a received message about a neighbour. For an unknown neighbour only a request to this router creates an entry.
    pub fn hear(&mut self, key: Key, word: Word, now: u64) {
        match (self.slots.contains_key(&key), word) {
            (true, _) => {
                let timers = self.timers;
                let was_known = self.mac(key).flatten().is_some();
                let new = self.change(key, |entry| entry.hear(word, now, &timers));
                if new != Some(true) {
                    return;
                }
                if !was_known && !self.enter_known(key) {
                    self.counts.refused += 1;
                    return self.forget(key);
                }
                self.publish(key, now);
            }
            (false, Word::Question(mac)) => {
                if self.make_room(key) {
                    self.insert(key, Entry::heard(mac, now, &self.timers), None);
                    self.count_known(key);
                    self.publish(key, now);
                } else {
                    self.counts.refused += 1;
                }
            }
            (false, Word::Answer { .. }) => {}
        }
    }

    fn publish(&mut self, key: Key, now: u64) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        slot.published = now;
        let mac = slot.entry.mac();
        let held: Vec<P> = std::mem::take(&mut slot.held).into();
        if let Some(mac) = mac {
            self.effects.push(Effect::Publish(key, mac));
        }
        if !held.is_empty() {
            self.effects.push(Effect::Release(held));
        }
    }

    /// Handles all entries that are due.
    pub fn turn(&mut self, now: u64) {
        while let Some(&(at, key)) = self.due.first()
            && at <= now
        {
            self.turn_one(key, now);
        }
    }

    fn turn_one(&mut self, key: Key, now: u64) {
        let timers = self.timers;
        let act = self.change(key, |entry| entry.turn(now, &timers));
        let to = match act {
            Some(Act::AskAll) => None,
            Some(Act::Ask(mac)) => Some(mac),
            Some(Act::Forget) => {
                self.counts.failed += 1;
                self.failed.push(key);
                return self.forget(key);
            }
            Some(Act::Wait) | None => return,
        };
        if self.may_ask(key.0, self.class_of(key), now) {
            return self.effects.push(Effect::Ask(key, to));
        }
        self.counts.postponed += 1;
        let timeout = self.timers.retransmit * u64::from(self.timers.tries);
        let slot = self.slots.get(&key).filter(|slot| slot.group.is_some());
        if slot.is_some_and(|slot| now.saturating_sub(slot.entry.since()) >= timeout) {
            self.counts.failed += 1;
            self.failed.push(key);
            return self.forget(key);
        }
        self.change(key, |entry| entry.postpone(now + LATER));
    }

    /// The class of the request that is due.
    fn class_of(&self, key: Key) -> Class {
        let slot = self.slots.get(&key);
        let untrusted = slot.and_then(|slot| Some((slot, slot.group?)));
        match untrusted {
            None => Class::Trusted,
            Some((slot, _)) if slot.entry.tries() > 1 => Class::Again,
            Some((_, group)) if self.incomplete.are_few(group) => Class::Trusted,
            Some((slot, _)) if slot.held.len() > 1 => Class::Wanted,
            Some(_) => Class::First,
        }
    }

    /// Whether a request may be sent on an interface: takes from the token bucket.
    fn may_ask(&mut self, iface: u32, class: Class, now: u64) -> bool {
        let Limits { rate, burst, .. } = self.limits;
        let one = self
            .allowances
            .entry(iface)
            .or_insert(Allowance { asked: 0, at: now });
        let back = now.saturating_sub(one.at).saturating_mul(rate) / SECOND;
        if back > 0 {
            (one.asked, one.at) = (one.asked.saturating_sub(back), now);
        }
        let may = one.asked * 8 < burst * class as u64;
        one.asked += u64::from(may);
        may
    }

    /// Changes an entry and the indexes over it.
    fn change<T>(&mut self, key: Key, body: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let slot = self.slots.get_mut(&key)?;
        let before = slot.entry;
        let out = body(&mut slot.entry);
        let after = slot.entry;
        if before.due() != after.due() {
            self.due.remove(&(before.due(), key));
            self.due.insert((after.due(), key));
        }
        let (was, is) = (spare_key(key, &before), spare_key(key, &after));
        if was != is {
            was.map(|k| self.spare.remove(&k));
            is.map(|k| self.spare.insert(k));
        }
        Some(out)
    }

    /// Creates an INCOMPLETE entry, for the router itself or for a packet. False if there are too many.
    fn add_sought(&mut self, key: Key, origin: Option<Origin>, now: u64) -> bool {
        let iface = key.0;
        let trusted = origin.is_none_or(|o| o.trusted) || self.memory.has(&key);
        let others = self.trusted_on.get(&iface).copied().unwrap_or(0);
        if trusted && others < self.limits.neighbors {
            *self.trusted_on.entry(iface).or_default() += 1;
            self.insert(key, Entry::sought(now), None);
            return true;
        }
        let Some(origin) = origin else { return false };
        if self.incomplete.on(iface) >= self.limits.incomplete {
            let oldest = self.incomplete.all.oldest_of_largest(|g| g.0 == iface);
            let Some(oldest) = oldest else { return false };
            self.evict(oldest);
        }
        let group = origin.group();
        self.incomplete.insert(group, now, key.1);
        self.insert(key, Entry::sought(now), Some(group));
        true
    }

    /// Counts an INCOMPLETE entry as known; evicts another entry if the table is full. False if no entry can be evicted.
    fn enter_known(&mut self, key: Key) -> bool {
        if !self.make_room(key) {
            return false;
        }
        self.leave_sought(key);
        self.count_known(key);
        true
    }

    fn count_known(&mut self, key: Key) {
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.is_known = true;
            *self.known_on.entry(key.0).or_default() += 1;
        }
    }

    /// Removes an entry from the INCOMPLETE ones.
    fn leave_sought(&mut self, key: Key) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        match slot.group.take() {
            Some(group) => self.incomplete.remove(group, slot.born, key.1),
            None => {
                if let Some(n) = self.trusted_on.get_mut(&key.0) {
                    *n -= 1;
                }
            }
        }
    }

    /// Whether one more MAC address may be known on the interface: if the interface is full, evicts the entry of the lowest
    /// rank.
    fn make_room(&mut self, (iface, newcomer): Key) -> bool {
        if self.known_on.get(&iface).copied().unwrap_or(0) < self.limits.neighbors {
            return true;
        }
        let from = (iface, 0, 0, IpAddr::from([0; 4]));
        let of_iface = self.spare.range(from..).take_while(|o| o.0 == iface);
        let Some(oldest) = of_iface.map(|o| o.3).find(|addr| *addr != newcomer) else {
            return false;
        };
        self.evict((iface, oldest));
        true
    }

    /// Evicts an entry in favour of another.
    fn evict(&mut self, key: Key) {
        self.counts.evicted += 1;
        let held = self.take_held(key);
        self.forget(key);
        if !held.is_empty() {
            self.effects.push(Effect::Evict(held));
        }
    }

    fn insert(&mut self, key: Key, entry: Entry, group: Option<Group>) {
        self.due.insert((entry.due(), key));
        self.spare.extend(spare_key(key, &entry));
        let slot = Slot {
            entry,
            published: 0,
            held: VecDeque::new(),
            born: entry.since(),
            group,
            is_known: false,
        };
        self.slots.insert(key, slot);
    }

    /// Deletes an entry and gives up its packets.
    pub fn forget(&mut self, key: Key) {
        let Some(slot) = self.slots.get(&key) else {
            return;
        };
        if slot.is_known {
            if let Some(n) = self.known_on.get_mut(&key.0) {
                *n -= 1;
            }
        } else {
            self.leave_sought(key);
        }
        let Some(slot) = self.slots.remove(&key) else {
            return;
        };
        self.due.remove(&(slot.entry.due(), key));
        spare_key(key, &slot.entry).map(|k| self.spare.remove(&k));
        if slot.entry.answered() {
            self.memory.insert(key);
        }
        if slot.is_known {
            self.effects.push(Effect::Withdraw(key));
        }
        if !slot.held.is_empty() {
            self.effects.push(Effect::GiveUp(slot.held.into()));
        }
    }

    /// Deletes all entries for which `gone` is true; returns their number.
    pub fn forget_all(&mut self, mut gone: impl FnMut(Key) -> bool) -> usize {
        let keys: Vec<Key> = self.slots.keys().copied().filter(|k| gone(*k)).collect();
        keys.iter().for_each(|key| self.forget(*key));
        keys.len()
    }

    /// Removes all state of a deleted interface.
    pub fn forget_interface(&mut self, iface: u32) {
        self.forget_all(|(on, _)| on == iface);
        self.known_on.remove(&iface);
        self.trusted_on.remove(&iface);
        self.allowances.remove(&iface);
        self.memory.forget_interface(iface);
    }
}

#[cfg(test)]
mod tests;
