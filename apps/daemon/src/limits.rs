//! Admission: a transaction that could need more memory than the process may have, or more objects than `[limits]` allows, is
//! refused before anything changes.
//!
//! Memory is estimated, not reserved: what the process has now, and for each object of the requests the most that a transaction
//! takes for it, in the desired state, the plan, the events and the tables.

use std::ops::RangeInclusive;
use std::path::Path;
use volley_control::{State, Transaction, TransactionError};
use volley_fib::{Address, IpTable, Route};
use volley_model::{ModelError, Request};
use volley_object::Object;

/// Memory that a transaction takes for one object of a bulk class.
const BULK_BYTES: u64 = 1500;
/// Memory that a transaction takes for one other object.
const OBJECT_BYTES: u64 = 6 << 10;
/// Memory of an interface: its nodes in each worker, its queues.
const INTERFACE_BYTES: u64 = 256 << 10;
/// The part of the memory that transactions may use, in percent: the rest is for queries and for the allocator.
const SHARE: u64 = 90;
/// Transactions that need less are not compared with the memory of the machine.
const SMALL: u64 = 1 << 20;

/// Sessions of API clients.
const SESSIONS: RangeInclusive<u32> = 1..=4096;

/// The most that a configuration may have, and the memory for it. A transaction beyond a limit is refused.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "limits", file = "[limits]", startup)]
pub struct LimitSettings {
    /// Most memory of the process; that of its cgroup or of the machine if it is not set.
    #[object(range = 64u32..=1 << 26, unit = "megabytes")]
    pub memory_mb: Option<u32>,
    /// Most routes.
    pub routes: Option<u32>,
    /// Most IP tables.
    pub tables: Option<u32>,
    /// Most interfaces.
    pub interfaces: Option<u32>,
    /// Most addresses of interfaces.
    pub addresses: Option<u32>,
    /// Most sessions of API clients at a time on the control socket, on the HTTP socket and on HTTP over TCP, each; 64 on the
    /// control socket and 256 on the others if it is not set.
    #[object(range = SESSIONS)]
    pub sessions: Option<u32>,
}

/// The limits of a daemon.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    limits: LimitSettings,
    memory: u64,
}

impl Admission {
    /// The limits of these settings, on this machine.
    pub fn new(limits: LimitSettings) -> Admission {
        let own = volley_shm::Limits::of_machine().charge.saturating_mul(2);
        let memory = limits.memory_mb.map_or(own, |mb| u64::from(mb) << 20);
        Admission { limits, memory }
    }

    /// Whether there is memory for requests.
    pub(crate) fn memory_for(&self, requests: &[Request]) -> Result<(), ModelError> {
        let need = |request: &Request| match request {
            Request::InterfaceCreate(_) => INTERFACE_BYTES,
            Request::Bulk(bulk) => bulk.puts().len() as u64 * BULK_BYTES,
            Request::Set(object) | Request::Add(object) => match object.class().def().bulk {
                true => object.repeats().saturating_mul(BULK_BYTES),
                false => OBJECT_BYTES,
            },
            // What removes objects is the way out.
            _ => 0,
        };
        let needs = requests.iter().map(need);
        self.memory(needs.fold(0, u64::saturating_add))
    }

    /// Whether there is memory for a state that replaces another one.
    pub(crate) fn memory_for_state(&self, wanted: &State, now: usize) -> Result<(), ModelError> {
        let more = wanted.len().saturating_sub(now) as u64;
        self.memory(more * BULK_BYTES)
    }

    fn memory(&self, need: u64) -> Result<(), ModelError> {
        if need < SMALL {
            return Ok(());
        }
        let used = resident_bytes();
        let free = (self.memory / 100 * SHARE).saturating_sub(used);
        let free = available_bytes().map_or(free, |it| free.min(it / 100 * SHARE));
        if need <= free {
            return Ok(());
        }
        let why = format!(
            "it could need {} MB more, and the daemon has {} MB and may get {} MB: divide it, or raise the memory limit (memory_mb in \
             [limits], MemoryMax= of the unit)",
            need.div_ceil(1 << 20),
            used >> 20,
            free >> 20
        );
        Err(ModelError::invalid("the transaction", why))
    }

    /// A transaction that has begun, or the state before it if the new one has more objects than allowed.
    pub(crate) fn admit(
        &self,
        state: &mut State,
        transaction: Transaction,
    ) -> Result<Transaction, TransactionError> {
        match self.check(state) {
            Ok(()) => Ok(transaction),
            Err(error) => {
                state.undo_transaction(transaction);
                Err(error.into())
            }
        }
    }

    /// Whether the numbers of objects of a state are within their limits.
    pub(crate) fn check(&self, state: &State) -> Result<(), ModelError> {
        let LimitSettings {
            routes,
            tables,
            interfaces,
            addresses,
            ..
        } = self.limits;
        let limits = [
            (Some(Route::CLASS), "routes", routes),
            (Some(IpTable::CLASS), "tables", tables),
            (None, "interfaces", interfaces),
            (Some(Address::CLASS), "addresses", addresses),
        ];
        let classes = volley_object::classes();
        let of_class = |class| classes.get(class).map_or(0, |class| state.count_of(class));
        for (class, name, limit) in limits {
            let Some(limit) = limit else { continue };
            let count = class.map_or_else(|| state.interfaces().count(), of_class);
            if count > limit as usize {
                let what = format!("the number of {name} (`{name}` in [limits])");
                return Err(ModelError::limit(what, count as u64, limit.into()));
            }
        }
        Ok(())
    }
}

/// Maximum size of a file of the kernel in bytes.
const PROC_FILE: u64 = 1 << 20;

/// Resident memory of this process.
fn resident_bytes() -> u64 {
    let text = volley_file::read_text(Path::new("/proc/self/statm"), PROC_FILE).unwrap_or_default();
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|n| n.parse().ok());
    pages.unwrap_or_default() * volley_shm::PAGE
}

/// Memory that the machine can give to programs, as its kernel estimates.
fn available_bytes() -> Option<u64> {
    let text = volley_file::read_text(Path::new("/proc/meminfo"), PROC_FILE).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_more_memory_than_there_is_is_refused_and_small_requests_are_not() {
        let admission = Admission {
            memory: resident_bytes() + (100 << 20),
            ..Admission::default()
        };
        assert_eq!(admission.memory(SMALL - 1), Ok(()));
        assert_eq!(admission.memory(SMALL), Ok(()));
        let error = admission.memory(200 << 20).unwrap_err().to_string();
        assert!(error.contains("could need 200 MB more"), "{error}");
        assert!(error.contains("memory_mb in [limits]"), "{error}");
        let none = Admission::default();
        assert_eq!(none.memory(SMALL - 1), Ok(()));
        assert!(none.memory(SMALL).is_err());
    }
}
