//! MAC entries of all bridge domains: learning, moves, aging, flushing (IEEE 802.1Q, 8.7 and 8.8). The control thread is the
//! only writer. The caller supplies the time in nanoseconds.

use crate::plane::{FILTER, PORT, STATIC};
use crate::show::BridgeCounts;
use std::sync::Arc;
use volley_graph::Domain;
use volley_tables::mac::{Full, MAX_ENTRIES};
use volley_tables::{MacSnap, MacTable};

/// Entries that one run examines.
const SLICE: u32 = 4096;
/// Interval between sweeps over all entries: the resolution of ages.
pub(crate) const SWEEP_NS: u64 = 5_000_000_000;

/// Learning settings of a domain.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Learn new MAC addresses.
    pub learn: bool,
    /// Most learned entries.
    pub limit: u32,
    /// Age limit of silent entries; 0 = never.
    pub age_ns: u64,
}

/// MAC state of a domain.
#[derive(Clone, Copy, Debug)]
pub struct BridgeDomainState {
    /// Learning settings.
    pub rules: Rules,
    /// Number of learned entries.
    pub learned: u32,
    /// Number of configured entries.
    pub fixed: u32,
    /// Event counters.
    pub counts: BridgeCounts,
}

/// A MAC entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacEntry {
    /// Port of the entry; [`FILTERED`] if its frames are dropped.
    pub port: u32,
    /// Whether the entry is configured.
    pub fixed: bool,
    /// When a frame of this source was last seen, to the resolution of sweeps.
    pub last_seen_ns: u64,
}

/// Port value of an entry whose frames are dropped.
pub const FILTERED: u32 = u32::MAX;

/// MAC entries of all domains.
pub struct MacEntries {
    table: MacTable,
    /// Entries by the table's ids.
    entries: Vec<MacEntry>,
    /// State of domains by slot; none for a slot without a domain.
    records: Vec<Option<BridgeDomainState>>,
    next: u32,
    swept_ns: u64,
}

/// The key of an address in a domain's slot.
pub fn key(mac: [u8; 6], slot: u16) -> u64 {
    let [a, b, c, d, e, f] = mac;
    let [s, t] = slot.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, s, t])
}

/// The address of a key.
pub fn mac(key: u64) -> [u8; 6] {
    let [a, b, c, d, e, f, ..] = key.to_be_bytes();
    [a, b, c, d, e, f]
}

fn slot(key: u64) -> usize {
    key as usize & 0xffff
}

fn tag(station: &MacEntry) -> u32 {
    match station.port {
        FILTERED => FILTER | STATIC,
        port if station.fixed => port & PORT | STATIC,
        port => port & PORT,
    }
}

impl MacEntries {
    /// An empty table.
    pub fn new(domain: &Arc<Domain>, workers: usize) -> Self {
        MacEntries {
            table: MacTable::new(domain, workers, MAX_ENTRIES),
            entries: Vec::new(),
            records: Vec::new(),
            next: 1,
            swept_ns: 0,
        }
    }

    /// A reader handle for workers.
    pub fn snap(&self) -> MacSnap {
        self.table.snap()
    }

    /// Adds a domain or changes its settings.
    pub fn set_rules(&mut self, slot: u16, rules: Rules) {
        let slot = usize::from(slot);
        if self.records.len() <= slot {
            self.records.resize(slot + 1, None);
        }
        match &mut self.records[slot] {
            Some(record) => record.rules = rules,
            none => {
                *none = Some(BridgeDomainState {
                    rules,
                    learned: 0,
                    fixed: 0,
                    counts: BridgeCounts::default(),
                });
            }
        }
    }

    /// Removes a domain and its entries.
    pub fn drop_domain(&mut self, gone: u16) {
        self.flush(|key, _| slot(key) == usize::from(gone));
        self.records[usize::from(gone)] = None;
    }

    /// MAC state of a domain.
    pub fn record(&self, slot: u16) -> Option<&BridgeDomainState> {
        self.records.get(usize::from(slot))?.as_ref()
    }

    fn record_of(&mut self, key: u64) -> Option<&mut BridgeDomainState> {
        self.records.get_mut(slot(key))?.as_mut()
    }

    /// All entries with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &MacEntry)> {
        let all = (1..self.table.ids()).filter_map(|id| Some((id, self.table.key(id)?)));
        all.map(|(id, key)| (key, &self.entries[id as usize]))
    }

    /// The entry of a key.
    pub fn get(&self, key: u64) -> Option<&MacEntry> {
        let id = self.table.get(key)?;
        self.entries.get(id as usize)
    }

    fn put(&mut self, id: u32, station: MacEntry) {
        let id = id as usize;
        if self.entries.len() <= id {
            self.entries.resize(id + 1, station);
        }
        self.entries[id] = station;
    }

    fn insert(&mut self, key: u64, station: MacEntry) -> Result<(), Full> {
        let id = self.table.insert(key, tag(&station))?;
        self.put(id, station);
        Ok(())
    }

    fn remove(&mut self, id: u32, key: u64) {
        let fixed = self.entries[id as usize].fixed;
        self.table.remove(id);
        if let Some(record) = self.record_of(key) {
            let count = if fixed {
                &mut record.fixed
            } else {
                &mut record.learned
            };
            *count -= 1;
        }
    }

    /// Handles the report of a worker about a MAC address on a port of the domain.
    pub fn hear(&mut self, key: u64, port: u32, now_ns: u64) {
        let station = MacEntry {
            port,
            fixed: false,
            last_seen_ns: now_ns,
        };
        let known = self.table.get(key);
        let old = known.map(|id| self.entries[id as usize]);
        let Some(record) = self.record_of(key).filter(|l| l.rules.learn) else {
            return;
        };
        match (known, old) {
            (Some(_), Some(old)) if old.fixed => {}
            (Some(id), Some(old)) => {
                record.counts.moved += u64::from(old.port != port);
                self.table.set(id, tag(&station));
                self.put(id, station);
            }
            _ if record.learned >= record.rules.limit => record.counts.refused += 1,
            _ => {
                let done = self.insert(key, station).is_ok();
                if let Some(record) = self.record_of(key) {
                    record.learned += u32::from(done);
                    record.counts.learned += u64::from(done);
                    record.counts.refused += u64::from(!done);
                }
            }
        }
    }

    /// Adds a configured entry; it replaces a learned one.
    pub fn fix(&mut self, key: u64, port: u32) -> Result<(), Full> {
        self.unfix(key);
        if let Some(id) = self.table.get(key) {
            self.remove(id, key);
        }
        let (fixed, last_seen_ns) = (true, 0);
        self.insert(
            key,
            MacEntry {
                port,
                fixed,
                last_seen_ns,
            },
        )?;
        if let Some(record) = self.record_of(key) {
            record.fixed += 1;
        }
        Ok(())
    }

    /// Removes a configured entry.
    pub fn unfix(&mut self, key: u64) {
        if let Some(id) = self.table.get(key)
            && self.entries[id as usize].fixed
        {
            self.remove(id, key);
        }
    }

    /// Deletes the entries that `which` selects; returns their number.
    pub fn flush(&mut self, which: impl Fn(u64, &MacEntry) -> bool) -> u64 {
        let mut flushed = 0;
        for id in 1..self.table.ids() {
            let Some(key) = self.table.key(id) else {
                continue;
            };
            let station = self.entries[id as usize];
            if !which(key, &station) {
                continue;
            }
            self.remove(id, key);
            flushed += 1;
            if let Some(record) = self.record_of(key) {
                record.counts.flushed += u64::from(!station.fixed);
            }
        }
        flushed
    }

    /// Examines some of the entries: records the use since the last sweep, and deletes aged ones.
    pub fn sweep(&mut self, now_ns: u64) {
        if self.next == 1 {
            if now_ns < self.swept_ns + SWEEP_NS {
                return;
            }
            self.swept_ns = now_ns;
        }
        let end = self.next.saturating_add(SLICE).min(self.table.ids());
        for id in self.next..end {
            self.look(id, now_ns);
        }
        self.next = if end >= self.table.ids() { 1 } else { end };
    }

    fn look(&mut self, id: u32, now_ns: u64) {
        let Some(key) = self.table.key(id) else {
            return;
        };
        let station = &mut self.entries[id as usize];
        if self.table.take_mark(id) {
            station.last_seen_ns = now_ns;
        }
        let (fixed, silent) = (station.fixed, now_ns.saturating_sub(station.last_seen_ns));
        let Some(record) = self.record_of(key) else {
            return;
        };
        let age = record.rules.age_ns;
        if !fixed && age > 0 && silent >= age {
            record.counts.aged += 1;
            self.remove(id, key);
        }
    }
}

#[cfg(test)]
mod tests;
