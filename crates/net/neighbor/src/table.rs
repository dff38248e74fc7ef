//! All neighbours that were learned or are sought, with the packets that wait for them. Control thread only.
//!
//! - True always: no interface has more than [`Limits::neighbors`] of them; nobody has more than [`Limits::held`] packets
//!   waiting; a neighbour has packets waiting only while its MAC address is unknown.
//! - The table changes nothing but itself: what is to be done stands in [`Table::effects`], in order.

use crate::entry::{Act, Entry, Mac, SECOND, Timers, Word};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use volley_model::reply::NeighborState as State;

/// A neighbour: interface and address.
pub type Key = (u32, IpAddr);

/// What is bounded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Neighbours of one interface.
    pub neighbors: usize,
    /// Packets that wait for one neighbour.
    pub held: usize,
    /// Questions a second on one interface.
    pub rate: u64,
    /// Questions at once on one interface.
    pub burst: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            neighbors: 4096,
            held: 8,
            rate: 1000,
            burst: 100,
        }
    }
}

/// After a MAC address was published, packets that were sent to be held before may still come for so long.
const LATE: u64 = SECOND / 10;
/// How long a question waits that may not be asked now.
const LATER: u64 = SECOND / 20;

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect<P> {
    /// Ask for a neighbour: itself, or everybody.
    Ask(Key, Option<Mac>),
    /// Its MAC address is known, or another one now.
    Publish(Key, Mac),
    /// Its MAC address is known no more.
    Withdraw(Key),
    /// Packets look for their way again.
    Release(Vec<P>),
    /// Packets are dropped.
    GiveUp(Vec<P>),
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Neighbours that did not answer.
    pub failed: u64,
    /// Neighbours that made room for others.
    pub evicted: u64,
    /// Neighbours that found no room.
    pub refused: u64,
    /// Packets that found no room to wait in.
    pub hold_full: u64,
}

#[derive(Debug)]
struct Slot<P> {
    entry: Entry,
    published: u64,
    held: Vec<P>,
}

/// A neighbour that may make room: interface, who goes first, age.
type Spare = (u32, u8, u64, IpAddr);

/// Questions that may be asked on an interface.
#[derive(Debug)]
struct Allowance {
    asked: u64,
    at: u64,
}

/// What others see of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Which.
    pub key: Key,
    /// Its MAC address, once known.
    pub mac: Option<Mac>,
    /// Its state.
    pub state: State,
    /// When it entered it.
    pub since: u64,
    /// Packets that wait.
    pub held: usize,
}

/// The table; `P` is a packet.
pub struct Table<P> {
    /// How long things take.
    pub timers: Timers,
    /// What is bounded.
    pub limits: Limits,
    /// What happened.
    pub counts: Counts,
    /// What is to be done: whoever does it takes it out.
    pub effects: Vec<Effect<P>>,
    /// Who did not answer: whoever wants to know takes it out.
    pub failed: Vec<Key>,
    slots: HashMap<Key, Slot<P>>,
    due: BTreeSet<(u64, Key)>,
    /// Those that may make room: interface, who goes first, age.
    spare: BTreeSet<Spare>,
    on: HashMap<u32, usize>,
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
            on: HashMap::new(),
            allowances: HashMap::new(),
        }
    }
}

/// Who may make room, in this order: strangers that asked us once, stale ones that answered us once, those that are sought.
fn spare_key((iface, addr): Key, entry: &Entry) -> Option<Spare> {
    let rank = match (entry.state(), entry.answered()) {
        (State::Stale, false) => 0,
        (State::Stale, true) => 1,
        (State::Incomplete, _) => 2,
        _ => return None,
    };
    Some((iface, rank, entry.since(), addr))
}

impl<P> Table<P> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Shown> {
        self.slots.iter().map(|(key, slot)| Shown {
            key: *key,
            mac: slot.entry.mac(),
            state: slot.entry.state(),
            since: slot.entry.since(),
            held: slot.held.len(),
        })
    }

    /// The MAC address of one; none where it is not known, and nothing where the neighbour is not.
    pub fn mac(&self, key: Key) -> Option<Option<Mac>> {
        self.slots.get(&key).map(|slot| slot.entry.mac())
    }

    /// The state of one; none where there is none.
    pub fn state(&self, key: Key) -> Option<State> {
        self.slots.get(&key).map(|slot| slot.entry.state())
    }

    /// When somebody's time comes next.
    pub fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A packet has no way but over a neighbour.
    pub fn wait(&mut self, key: Key, packet: P, now: u64) {
        if !self.slots.contains_key(&key) && !self.add(key, Entry::sought(now)) {
            self.counts.refused += 1;
            return self.effects.push(Effect::GiveUp(vec![packet]));
        }
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        if slot.entry.mac().is_some() {
            let late = now.saturating_sub(slot.published) < LATE;
            let back = vec![packet];
            self.effects.push(if late {
                Effect::Release(back)
            } else {
                Effect::GiveUp(back)
            });
        } else if slot.held.len() < self.limits.held {
            slot.held.push(packet);
        } else {
            self.counts.hold_full += 1;
            self.effects.push(Effect::GiveUp(vec![packet]));
        }
        self.turn_one(key, now);
    }

    /// Somebody is sought for whom no packet waits.
    pub fn seek(&mut self, key: Key, now: u64) {
        if !self.slots.contains_key(&key) && !self.add(key, Entry::sought(now)) {
            self.counts.refused += 1;
        }
        self.turn_one(key, now);
    }

    /// The same with one question, also to one that is stale.
    pub fn ask_once(&mut self, key: Key, now: u64) {
        let timers = self.timers;
        if !self.slots.contains_key(&key) && !self.add(key, Entry::sought(now)) {
            self.counts.refused += 1;
        }
        self.change(key, |entry| entry.once(now, &timers));
        self.turn_one(key, now);
    }

    /// Somebody sends to a neighbour.
    pub fn used(&mut self, key: Key, now: u64) {
        let timers = self.timers;
        self.change(key, |entry| entry.used(now, &timers));
    }

    /// A neighbour said something. One that is not known is entered only when it asked us.
    pub fn hear(&mut self, key: Key, word: Word, now: u64) {
        match (self.slots.contains_key(&key), word) {
            (true, _) => {
                let timers = self.timers;
                let new = self.change(key, |entry| entry.hear(word, now, &timers));
                if new == Some(true) {
                    self.publish(key, now);
                }
            }
            (false, Word::Question(mac)) => {
                if self.add(key, Entry::heard(mac, now, &self.timers)) {
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
        let (mac, held) = (slot.entry.mac(), std::mem::take(&mut slot.held));
        if let Some(mac) = mac {
            self.effects.push(Effect::Publish(key, mac));
        }
        if !held.is_empty() {
            self.effects.push(Effect::Release(held));
        }
    }

    /// Everybody's time that has come.
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
        if self.may_ask(key.0, now) {
            self.effects.push(Effect::Ask(key, to));
        } else {
            self.change(key, |entry| entry.postpone(now + LATER));
        }
    }

    /// Whether one more question may be asked on an interface: a bucket that fills with time.
    fn may_ask(&mut self, iface: u32, now: u64) -> bool {
        let Limits { rate, burst, .. } = self.limits;
        let one = self
            .allowances
            .entry(iface)
            .or_insert(Allowance { asked: 0, at: now });
        let back = now.saturating_sub(one.at).saturating_mul(rate) / SECOND;
        if back > 0 {
            (one.asked, one.at) = (one.asked.saturating_sub(back), now);
        }
        let may = one.asked < burst;
        one.asked += u64::from(may);
        may
    }

    /// Change an entry and what is sorted by it.
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

    /// Enter a neighbour; another makes room where there is none. False when nobody does.
    fn add(&mut self, key: Key, entry: Entry) -> bool {
        let (iface, _) = key;
        if self
            .on
            .get(&iface)
            .is_some_and(|n| *n >= self.limits.neighbors)
        {
            let from = (iface, 0, 0, IpAddr::from([0; 4]));
            let oldest = self.spare.range(from..).next().copied();
            let Some((_, _, _, addr)) = oldest.filter(|o| o.0 == iface) else {
                return false;
            };
            self.counts.evicted += 1;
            self.forget((iface, addr));
        }
        *self.on.entry(iface).or_default() += 1;
        self.due.insert((entry.due(), key));
        self.spare.extend(spare_key(key, &entry));
        let slot = Slot {
            entry,
            published: 0,
            held: Vec::new(),
        };
        self.slots.insert(key, slot);
        true
    }

    /// A neighbour is gone, its packets too.
    pub fn forget(&mut self, key: Key) {
        let Some(slot) = self.slots.remove(&key) else {
            return;
        };
        self.due.remove(&(slot.entry.due(), key));
        spare_key(key, &slot.entry).map(|k| self.spare.remove(&k));
        if let Some(n) = self.on.get_mut(&key.0) {
            *n -= 1;
        }
        if slot.entry.mac().is_some() {
            self.effects.push(Effect::Withdraw(key));
        }
        if !slot.held.is_empty() {
            self.effects.push(Effect::GiveUp(slot.held));
        }
    }

    /// All neighbours are gone for which `gone` says so; returns how many.
    pub fn forget_all(&mut self, mut gone: impl FnMut(Key) -> bool) -> usize {
        let keys: Vec<Key> = self.slots.keys().copied().filter(|k| gone(*k)).collect();
        keys.iter().for_each(|key| self.forget(*key));
        keys.len()
    }

    /// An interface is gone: nothing of it is remembered.
    pub fn forget_interface(&mut self, iface: u32) {
        self.forget_all(|(on, _)| on == iface);
        self.on.remove(&iface);
        self.allowances.remove(&iface);
    }
}

#[cfg(test)]
mod tests;
