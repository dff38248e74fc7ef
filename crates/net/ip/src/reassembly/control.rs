//! `set ip4 reassembly`, `set ip6 reassembly`, `show ip4-full-reassembly`: limits, and how full the workers' stores are.

use super::store::Bounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use volley_graph::{Crew, MAX_WORKERS};
use volley_model::reply::{ReassemblyReply, ReassemblyRow};
use volley_model::{
    Applied, Family, Handler, ModelError, Query, ReassemblySettings, Reply, Request,
};

const SECOND_NS: u64 = 1_000_000_000;

/// What a worker says of its store.
#[derive(Default)]
struct Cells {
    datagrams: AtomicU32,
    fragments: AtomicU32,
    /// When the oldest datagram came, and when that was written; 0 and 0 for none.
    oldest_ns: AtomicU64,
    now_ns: AtomicU64,
}

/// The settings of one family as workers read them, and what they say.
pub struct ReassemblySwitches {
    family: Family,
    datagrams: AtomicU32,
    fragments: AtomicU32,
    buffers: AtomicU32,
    timeout: AtomicU32,
    cells: Box<[Cells]>,
}

impl ReassemblySwitches {
    /// With the usual settings.
    pub fn new(family: Family) -> Self {
        let switches = ReassemblySwitches {
            family,
            datagrams: AtomicU32::new(0),
            fragments: AtomicU32::new(0),
            buffers: AtomicU32::new(0),
            timeout: AtomicU32::new(0),
            cells: (0..MAX_WORKERS).map(|_| Cells::default()).collect(),
        };
        switches.set(&ReassemblySettings::default());
        switches
    }

    /// Take over settings.
    pub fn set(&self, settings: &ReassemblySettings) {
        self.datagrams.store(settings.max_reassemblies, Relaxed);
        self.fragments
            .store(settings.max_reassembly_length, Relaxed);
        self.buffers.store(settings.max_buffers, Relaxed);
        self.timeout.store(settings.seconds(self.family), Relaxed);
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            datagrams: self.datagrams.load(Relaxed),
            fragments: self.fragments.load(Relaxed),
            buffers: self.buffers.load(Relaxed),
            timeout_ns: u64::from(self.timeout.load(Relaxed)) * SECOND_NS,
        }
    }

    /// Say how full a worker's store is, by that worker.
    pub(crate) fn tell(
        &self,
        worker: usize,
        (datagrams, fragments): (u32, u32),
        oldest_ns: Option<u64>,
        now_ns: u64,
    ) {
        let cells = &self.cells[worker % MAX_WORKERS];
        cells.datagrams.store(datagrams, Relaxed);
        cells.fragments.store(fragments, Relaxed);
        cells.oldest_ns.store(oldest_ns.unwrap_or(now_ns), Relaxed);
        cells.now_ns.store(now_ns, Relaxed);
    }

    fn row(&self, worker: usize) -> ReassemblyRow {
        let cells = &self.cells[worker];
        let age = cells
            .now_ns
            .load(Relaxed)
            .saturating_sub(cells.oldest_ns.load(Relaxed));
        ReassemblyRow {
            worker: worker as u32,
            reassemblies: cells.datagrams.load(Relaxed),
            buffers: cells.fragments.load(Relaxed),
            oldest_ms: age / 1_000_000,
        }
    }

    fn reply(&self, crew: &Crew) -> ReassemblyReply {
        ReassemblyReply {
            family: self.family,
            max_reassemblies: self.datagrams.load(Relaxed),
            max_reassembly_length: self.fragments.load(Relaxed),
            max_buffers: self.buffers.load(Relaxed),
            timeout: self.timeout.load(Relaxed),
            workers: crew.iter().map(|worker| self.row(worker)).collect(),
        }
    }
}

/// Carries out requests about reassembly.
pub(crate) struct ReassemblyHandler {
    pub all: [Arc<ReassemblySwitches>; 2],
    pub crew: Arc<Crew>,
}

impl ReassemblyHandler {
    fn of(&self, family: Family) -> Option<&Arc<ReassemblySwitches>> {
        self.all.iter().find(|it| it.family == family)
    }
}

impl Handler for ReassemblyHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let Request::Reassembly { family, settings } = request else {
            return None;
        };
        self.of(*family)?.set(settings);
        Some(Ok(Applied::one()))
    }

    fn query(&mut self, query: &Query) -> Option<Result<Reply, ModelError>> {
        let Query::Reassembly { family } = query else {
            return None;
        };
        let reply = self.of(*family)?.reply(&self.crew);
        Some(Ok(Reply::Reassembly(reply)))
    }
}
