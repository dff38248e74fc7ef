//! `set ip4 reassembly`, `set ip6 reassembly`, `show ip4-full-reassembly`, `show ip4-sv-reassembly`: limits, and usage of the
//! workers' stores.

use super::Reassemble;
use super::show::{
    ReassemblyReply, ReassemblyRow, ShowReassembly, ShowVirtualReassembly, VirtualReassemblyReply,
    VirtualReassemblyRow,
};
use super::store::Bounds;
use crate::ReassemblySettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use volley_fib::{V4, V6};
use volley_graph::{Engine, GraphError, MAX_WORKERS, Share, WorkerSet};
use volley_iface::Registry;
use volley_model::{Applied, Family, key_value};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
/// Sixteenths of the buffers that fragments of one IP version may take, separately for the router and in transit.
const SHARE: usize = 1;

/// Usage of a worker's store.
#[derive(Default)]
struct Cells {
    datagrams: AtomicU32,
    fragments: AtomicU32,
    /// Arrival time of the oldest datagram, and the time of this report; 0 and 0 for none.
    oldest_ns: AtomicU64,
    now_ns: AtomicU64,
}

/// Totals of fragments in transit since the worker started.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Fragments whose flow was known on arrival.
    pub known: u64,
    /// Fragments that waited for the first one.
    pub held: u64,
    pub dropped: u64,
}

/// State of virtual reassembly on a worker.
#[derive(Default)]
struct VirtualCells {
    /// Known datagrams, awaited datagrams, and buffers of waiting fragments.
    now: [AtomicU32; 3],
    totals: [AtomicU64; 3],
}

/// Settings of one family for workers, and the state that workers report.
pub struct ReassemblySwitches {
    family: Family,
    datagrams: AtomicU32,
    fragments: AtomicU32,
    buffers: AtomicU32,
    timeout: AtomicU32,
    virtual_timeout_ms: AtomicU32,
    /// Shares of the buffer pool.
    pub(crate) full: Arc<Share>,
    pub(crate) virt: Arc<Share>,
    cells: Box<[Cells]>,
    virtual_cells: Box<[VirtualCells]>,
}

impl ReassemblySwitches {
    /// The default settings, and shares of the buffer pool.
    pub fn new(family: Family, engine: &mut Engine) -> Result<Self, GraphError> {
        let [full, virt] = match family {
            Family::V4 => [V4::REASSEMBLY, V4::SV_REASSEMBLY],
            Family::V6 => [V6::REASSEMBLY, V6::SV_REASSEMBLY],
        };
        let switches = ReassemblySwitches {
            family,
            datagrams: AtomicU32::new(0),
            fragments: AtomicU32::new(0),
            buffers: AtomicU32::new(0),
            timeout: AtomicU32::new(0),
            virtual_timeout_ms: AtomicU32::new(0),
            full: engine.add_share(full, SHARE)?,
            virt: engine.add_share(virt, SHARE)?,
            cells: (0..MAX_WORKERS).map(|_| Cells::default()).collect(),
            virtual_cells: (0..MAX_WORKERS).map(|_| VirtualCells::default()).collect(),
        };
        switches.set(&ReassemblySettings::of_family(family));
        Ok(switches)
    }

    /// Applies new settings.
    pub fn set(&self, settings: &ReassemblySettings) {
        self.datagrams.store(settings.max_reassemblies, Relaxed);
        self.fragments
            .store(settings.max_reassembly_length, Relaxed);
        self.buffers.store(settings.max_buffers, Relaxed);
        self.timeout.store(settings.seconds(), Relaxed);
        self.virtual_timeout_ms
            .store(settings.virtual_timeout, Relaxed);
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds_with(&self.full)
    }

    fn bounds_with(&self, share: &Share) -> Bounds {
        let buffers = self.buffers.load(Relaxed) as usize;
        Bounds {
            datagrams: self.datagrams.load(Relaxed),
            fragments: self.fragments.load(Relaxed),
            buffers: buffers.min(share.each()) as u32,
            timeout_ns: u64::from(self.timeout.load(Relaxed)) * SECOND_NS,
        }
    }

    /// The limits for fragments in transit.
    pub(crate) fn virtual_bounds(&self) -> Bounds {
        Bounds {
            timeout_ns: u64::from(self.virtual_timeout_ms.load(Relaxed)) * MS_NS,
            ..self.bounds_with(&self.virt)
        }
    }

    /// Publishes the state of virtual reassembly, called by the worker: known datagrams, awaited datagrams, buffers of waiting
    /// fragments.
    pub(crate) fn tell_virtual(&self, worker: usize, now: [u32; 3], totals: Totals) {
        let cells = &self.virtual_cells[worker % MAX_WORKERS];
        for (cell, number) in cells.now.iter().zip(now) {
            cell.store(number, Relaxed);
        }
        self.virt.set_held(worker, now[2] as usize);
        let totals = [totals.known, totals.held, totals.dropped];
        for (cell, number) in cells.totals.iter().zip(totals) {
            cell.store(number, Relaxed);
        }
    }

    /// Publishes the usage of a worker's store, called by the worker.
    pub(crate) fn tell(
        &self,
        worker: usize,
        (datagrams, fragments): (u32, u32),
        oldest_ns: Option<u64>,
        now_ns: u64,
    ) {
        let cells = &self.cells[worker % MAX_WORKERS];
        self.full.set_held(worker, fragments as usize);
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

    /// Known datagrams, awaited datagrams and buffers of waiting fragments of a worker.
    pub(crate) fn virtual_now(&self, worker: usize) -> [u32; 3] {
        let cells = &self.virtual_cells[worker];
        [0, 1, 2].map(|at| cells.now[at].load(Relaxed))
    }

    fn virtual_row(&self, worker: usize) -> VirtualReassemblyRow {
        let cells = &self.virtual_cells[worker];
        let [known, awaited, buffers] = self.virtual_now(worker);
        let [with_flow, held, dropped] = [0, 1, 2].map(|at| cells.totals[at].load(Relaxed));
        VirtualReassemblyRow {
            worker: worker as u32,
            known,
            awaited,
            buffers,
            fragments_known: with_flow,
            fragments_held: held,
            fragments_dropped: dropped,
        }
    }

    fn virtual_reply(&self, worker_set: &WorkerSet) -> VirtualReassemblyReply {
        VirtualReassemblyReply {
            family: self.family,
            max_reassemblies: self.datagrams.load(Relaxed),
            max_reassembly_length: self.fragments.load(Relaxed),
            max_buffers: self.buffers.load(Relaxed),
            share: self.virt.each() as u32,
            timeout_ms: self.virtual_timeout_ms.load(Relaxed),
            workers: worker_set
                .iter()
                .map(|worker| self.virtual_row(worker))
                .collect(),
        }
    }

    fn reply(&self, worker_set: &WorkerSet) -> ReassemblyReply {
        ReassemblyReply {
            family: self.family,
            max_reassemblies: self.datagrams.load(Relaxed),
            max_reassembly_length: self.fragments.load(Relaxed),
            max_buffers: self.buffers.load(Relaxed),
            share: self.full.each() as u32,
            timeout: self.timeout.load(Relaxed),
            workers: worker_set.iter().map(|worker| self.row(worker)).collect(),
        }
    }
}

/// Handles requests about reassembly.
pub(crate) struct ReassemblyHandler {
    pub all: [Arc<ReassemblySwitches>; 2],
    pub worker_set: Arc<WorkerSet>,
}

impl ReassemblyHandler {
    /// Registers the owner of the settings of both families.
    pub fn own(&self, registry: &mut Registry) {
        let all = self.all.clone();
        registry.own(move |key, now: Option<ReassemblySettings>| {
            let family: Family = key_value(key, 0);
            let now = now.unwrap_or_else(|| ReassemblySettings::of_family(family));
            for switches in all.iter().filter(|it| it.family == family) {
                switches.set(&now);
            }
            Ok(Applied::one())
        });
        let (of, worker_set) = (self.of(), self.worker_set.clone());
        registry.answer(move |query: ShowReassembly| Ok(of(query.family).reply(&worker_set)));
        let (of, worker_set) = (self.of(), self.worker_set.clone());
        let shown =
            move |query: ShowVirtualReassembly| Ok(of(query.family).virtual_reply(&worker_set));
        registry.answer(shown);
    }

    /// The switches of an IP version.
    fn of(&self) -> impl Fn(Family) -> Arc<ReassemblySwitches> + 'static {
        let [four, six] = self.all.clone();
        move |family| match family {
            Family::V4 => four.clone(),
            Family::V6 => six.clone(),
        }
    }
}
