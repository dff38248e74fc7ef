//! Limits on the memory that peers share, and on the memory that this process pays for.
//!
//! Two quantities, each with a limit:
//!
//! - **Mapped**: bytes of regions. They cost addresses, and page tables for touched pages (1/512 of their size).
//! - **Charged**: bytes of pages that did not exist until this process touched them. The kernel charges such a page to the
//!   memory cgroup of the process that touches it first, so that with a sparse file this process pays for memory whose
//!   size the peer determines. [`crate::bus`] counts each such page before it is allocated.
//!
//! A charge ends with the page: when the peer ends, or punches a hole. The process detects neither, so an [`Account`]
//! lives as long as its interface, not its connection, and is reduced by the kernel's figure: no account
//! can exceed all the shared memory that its cgroup is charged for ([`Account::reconcile`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The limits of all peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the regions of one peer. The limit of all peers together is twice as high.
    pub memory: u64,
    /// Bytes of pages charged to this process for all peers. The limit of one interface is half of it.
    pub charge: u64,
}

static MEMORY: AtomicU64 = AtomicU64::new(0);
static CHARGE: AtomicU64 = AtomicU64::new(0);
static MAPPED: AtomicU64 = AtomicU64::new(0);
static CHARGED: AtomicU64 = AtomicU64::new(0);

/// The interval between two queries of the kernel.
const RECONCILE: Duration = Duration::from_secs(1);

impl Limits {
    /// The defaults for this machine: regions up to the size of its memory, charges up to half of the process's memory limit.
    pub fn of_machine() -> Limits {
        let memory = machine_bytes("MemTotal:").unwrap_or(16 << 30);
        let own = cgroup_limit().unwrap_or(memory).min(memory);
        Limits {
            memory,
            charge: own / 2,
        }
    }

    /// The active limits.
    pub fn now() -> Limits {
        if MEMORY.load(Relaxed) == 0 {
            Limits::of_machine().set();
        }
        Limits {
            memory: MEMORY.load(Relaxed),
            charge: CHARGE.load(Relaxed),
        }
    }

    /// Set the active limits. They apply to later mappings and page accesses.
    pub fn set(self) {
        CHARGE.store(self.charge.max(1), Relaxed);
        MEMORY.store(self.memory.max(1), Relaxed);
    }
}

/// The memory of the peers of one interface.
#[derive(Debug, Default)]
pub struct Account {
    mapped: AtomicU64,
    charged: AtomicU64,
}

impl Account {
    /// The account of a new interface.
    pub fn new() -> Arc<Account> {
        // The handler reads limits and must not compute them.
        Limits::now();
        Arc::default()
    }

    /// Bytes of regions mapped now.
    pub fn mapped(&self) -> u64 {
        self.mapped.load(Relaxed)
    }

    /// Bytes of pages that were allocated by an access of this process and may still exist.
    pub fn charged(&self) -> u64 {
        self.charged.load(Relaxed)
    }

    /// Add a region. An error names the limit that it would exceed, with the sum and the maximum.
    pub(crate) fn map(&self, bytes: u64) -> Result<(), (&'static str, u64, u64)> {
        let one = Limits::now().memory;
        take(&self.mapped, bytes, one).map_err(|sum| ("this peer", sum, one))?;
        let all = one.saturating_mul(2);
        take(&MAPPED, bytes, all).map_err(|sum| {
            self.mapped.fetch_sub(bytes, Relaxed);
            ("all peers together", sum, all)
        })
    }

    pub(crate) fn unmap(&self, bytes: u64) {
        self.mapped.fetch_sub(bytes, Relaxed);
        MAPPED.fetch_sub(bytes, Relaxed);
    }

    /// Charge bytes of pages before they are allocated. An error is the limit that they would exceed.
    /// Async-signal-safe.
    pub(crate) fn charge(&self, bytes: u64) -> Result<(), u64> {
        let all = CHARGE.load(Relaxed);
        let one = all / 2;
        take(&self.charged, bytes, one).map_err(|_| one)?;
        take(&CHARGED, bytes, all).map_err(|_| {
            self.charged.fetch_sub(bytes, Relaxed);
            all
        })
    }

    pub(crate) fn refund(&self, bytes: u64) {
        self.charged.fetch_sub(bytes, Relaxed);
        CHARGED.fetch_sub(bytes, Relaxed);
    }

    /// Remove charges whose pages cannot exist any more, because the cgroup is charged for less shared memory. The control
    /// thread may call this at any time; the kernel is queried at most once a second, and only when an account is more than
    /// half used.
    pub fn reconcile(&self, last: &mut Option<Instant>) {
        let half = Limits::now().charge / 4;
        let now = Instant::now();
        let recent = last.is_some_and(|last| now.duration_since(last) < RECONCILE);
        if self.charged() <= half || recent {
            return;
        }
        *last = Some(now);
        self.settle();
    }

    /// As [`Self::reconcile`], at once.
    pub(crate) fn settle(&self) {
        let Some(shared) = shared_bytes() else { return };
        let mut known = self.charged();
        // If a fault charges more meanwhile, the difference is smaller, and the new charge is kept.
        while known > shared {
            match self
                .charged
                .compare_exchange(known, shared, Relaxed, Relaxed)
            {
                Ok(_) => {
                    CHARGED.fetch_sub(known - shared, Relaxed);
                    return;
                }
                Err(now) => known = now,
            }
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        CHARGED.fetch_sub(self.charged(), Relaxed);
    }
}

/// Add to a sum unless the result exceeds a limit; the error is that result.
fn take(sum: &AtomicU64, bytes: u64, limit: u64) -> Result<(), u64> {
    let more = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= limit);
    sum.fetch_update(Relaxed, Relaxed, more)
        .map(|_| ())
        .map_err(|now| now.saturating_add(bytes))
}

/// A line of `/proc/meminfo`, in bytes.
fn machine_bytes(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// The folders of this process's memory cgroup and its parents, in this order.
fn cgroup_folders() -> Vec<std::path::PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            some if some.split(',').any(|c| c == "memory") => "/sys/fs/cgroup/memory",
            _ => continue,
        };
        let root = std::path::Path::new(root);
        let mut folder = root.join(path.trim_start_matches('/'));
        while folder.starts_with(root) {
            folders.push(folder.clone());
            folder.pop();
        }
    }
    folders
}

/// The lowest memory limit of this process's cgroups.
fn cgroup_limit() -> Option<u64> {
    let folders = cgroup_folders();
    let files = folders
        .iter()
        .flat_map(|folder| ["memory.max", "memory.limit_in_bytes"].map(|name| folder.join(name)));
    let limits = files.filter_map(|file| std::fs::read_to_string(file).ok());
    limits.filter_map(|text| text.trim().parse().ok()).min()
}

/// Bytes of shared memory that this process's own cgroup is charged for; without a cgroup, those of the machine.
fn shared_bytes() -> Option<u64> {
    let of = |folder: &std::path::PathBuf| {
        let text = std::fs::read_to_string(folder.join("memory.stat")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("shmem "))?;
        line.trim().parse().ok()
    };
    let of_cgroup = cgroup_folders().iter().find_map(of);
    of_cgroup.or_else(|| machine_bytes("Shmem:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_stops_at_its_limit() {
        let sum = AtomicU64::new(5);
        assert_eq!(take(&sum, 5, 10), Ok(()));
        assert_eq!(take(&sum, 1, 10), Err(11));
        assert_eq!(take(&sum, u64::MAX, u64::MAX), Err(u64::MAX));
        assert_eq!(sum.load(Relaxed), 10);
    }

    #[test]
    fn the_machine_has_limits() {
        let limits = Limits::of_machine();
        assert!(
            limits.memory >= 64 << 20 && limits.charge >= 16 << 20,
            "{limits:?}"
        );
        assert!(limits.charge <= limits.memory / 2);
        assert!(shared_bytes().is_some());
    }
}
