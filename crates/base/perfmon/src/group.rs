//! The counters of one thread for a bundle.

use crate::bundle::{Bundle, Event, Source};
use perf_event::events::Hardware;
use perf_event::{Builder, Counter, Sampler};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use volley_graph::{CounterGroup, MAX_EVENTS, Reading};

/// Why events cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CounterError {
    /// A virtual machine without a virtual PMU, most likely.
    #[error(
        "this machine shows the kernel no hardware performance counters (PMU): use a machine that is not virtual, or let the hypervisor give the guest a PMU (QEMU: `-cpu host,pmu=on`)"
    )]
    NoPmu,
    /// Another event of the processor can be counted.
    #[error("the processor does not count `{0}`: choose another bundle of `show perfmon bundle`")]
    NoEvent(&'static str),
    /// No permission, or a filter of system calls.
    #[error(
        "the kernel does not let this program count events: set kernel.perf_event_paranoid to {paranoid} or less with sysctl, or give the program CAP_PERFMON. A systemd unit must allow the system call perf_event_open in any case: the drop-in perfmon.conf gives it both (docs/hardening.md)"
    )]
    Refused {
        /// The highest value of the setting that allows the bundle.
        paranoid: i32,
    },
    /// A kernel without CONFIG_PERF_EVENTS.
    #[error("the kernel counts no events: it is built without CONFIG_PERF_EVENTS")]
    NoKernelSupport,
    /// The thread has ended.
    #[error("the worker's thread has ended: start counting again")]
    NoThread,
    /// Any other error of the system.
    #[error("`{event}` cannot be counted: {why}")]
    Other {
        /// The event.
        event: &'static str,
        /// The error.
        why: String,
    },
}

impl CounterError {
    fn of(error: &io::Error, event: &Event, source: Source) -> CounterError {
        match Errno::from_io_error(error) {
            Some(Errno::ACCESS | Errno::PERM) => CounterError::Refused {
                paranoid: if event.is_of_user_mode() { 2 } else { 1 },
            },
            Some(Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL)
                if source == Source::Processor =>
            {
                match Builder::new(Hardware::INSTRUCTIONS)
                    .exclude_hv(true)
                    .exclude_kernel(true)
                    .build()
                {
                    Ok(_) => CounterError::NoEvent(event.name),
                    Err(_) => CounterError::NoPmu,
                }
            }
            Some(Errno::NOSYS) => CounterError::NoKernelSupport,
            Some(Errno::SRCH) => CounterError::NoThread,
            _ => CounterError::Other {
                event: event.name,
                why: error.to_string(),
            },
        }
    }
}

/// How a thread reads its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// In user mode.
    Rdpmc,
    /// By one system call for each event.
    Read,
}

impl How {
    /// The name in replies.
    pub fn name(self) -> &'static str {
        match self {
            How::Rdpmc => "rdpmc",
            How::Read => "read",
        }
    }
}

/// One counter.
enum Reader {
    /// The kernel's page of the counter is mapped.
    Mapped(Sampler),
    Plain(Counter),
}

/// The counters of one thread for a bundle. Dropping it closes them, which must not happen on the thread of a worker.
pub struct Group {
    /// None for an event that the processor does not count.
    readers: [Option<Reader>; MAX_EVENTS],
    /// A counter was read by a system call.
    by_call: Arc<AtomicBool>,
    /// Readings that failed.
    failed: u64,
}

/// The id of this thread.
pub fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Open the counters of a bundle for this thread, and close them. Returns the names of the events that are not counted.
pub fn availability(bundle: &'static Bundle) -> Result<Vec<&'static str>, CounterError> {
    let group = Group::open(bundle, this_thread())?;
    let has = group.events();
    let events = bundle.events.iter().zip(has);
    Ok(events
        .filter(|(_, has)| !has)
        .map(|(event, _)| event.name)
        .collect())
}

impl Group {
    /// Open and enable the counters of a bundle for a thread.
    pub fn open(bundle: &'static Bundle, thread: i32) -> Result<Group, CounterError> {
        let (first, others) = bundle.events.split_first().ok_or(CounterError::NoPmu)?;
        let failed = |error: io::Error| CounterError::of(&error, first, bundle.source);
        let mut leader = first.builder(thread).build().map_err(failed)?;
        let mut counters: [Option<Counter>; MAX_EVENTS] = Default::default();
        for (at, event) in others.iter().enumerate().take(MAX_EVENTS - 1) {
            counters[at + 1] = match event.builder(thread).build_with_group(&mut leader) {
                Ok(counter) => Some(counter),
                Err(error) => match CounterError::of(&error, event, bundle.source) {
                    CounterError::NoEvent(_) => None,
                    other => return Err(other),
                },
            };
        }
        leader.enable_group().map_err(failed)?;
        counters[0] = Some(leader);
        let is_mapped = bundle.source == Source::Processor;
        let reader = |counter: Counter| match is_mapped {
            // The smallest map: the page that is read, and one for samples, of which there are none.
            true => counter.sampled(1).map(Reader::Mapped),
            false => Ok(Reader::Plain(counter)),
        };
        let mut readers: [Option<Reader>; MAX_EVENTS] = Default::default();
        for (slot, counter) in readers.iter_mut().zip(counters) {
            // EPERM means here that too many pages are mapped.
            let reader = counter.map(reader).transpose();
            *slot = reader.map_err(|error| CounterError::Other {
                event: first.name,
                why: format!("its page cannot be mapped: {error}"),
            })?;
        }
        Ok(Group {
            readers,
            by_call: Arc::default(),
            failed: 0,
        })
    }

    /// Which events are counted.
    pub fn events(&self) -> [bool; MAX_EVENTS] {
        self.readers.each_ref().map(Option::is_some)
    }

    /// A function that returns how the thread has read its counters so far. It may be called by any thread.
    pub fn how(&self) -> impl Fn() -> How + use<> {
        let by_call = self.by_call.clone();
        move || match by_call.load(Relaxed) {
            true => How::Read,
            false => How::Rdpmc,
        }
    }
}

impl Reader {
    /// The value, and the time in which the counter was enabled but did not count.
    fn read(&mut self, by_call: &AtomicBool) -> io::Result<(u64, u64)> {
        let counter = match self {
            Reader::Mapped(mapped) => {
                let data = mapped.read_user();
                if let Some(value) = data.count() {
                    return Ok((value, off(data.time_enabled(), data.time_running())));
                }
                // The kernel does not allow it, or the counter is not on the processor now.
                &mut **mapped
            }
            Reader::Plain(counter) => counter,
        };
        by_call.store(true, Relaxed);
        let data = counter.read_full()?;
        let times = data.time_enabled().zip(data.time_running());
        let off_ns = times.map_or(0, |(enabled, running)| off(enabled, running));
        Ok((data.count(), off_ns))
    }
}

/// The nanoseconds in which a counter was enabled but did not count.
fn off(enabled: Duration, running: Duration) -> u64 {
    let off = enabled.saturating_sub(running).as_nanos();
    u64::try_from(off).unwrap_or(u64::MAX)
}

impl CounterGroup for Group {
    fn read(&mut self) -> Reading {
        let mut reading = Reading::default();
        for (at, reader) in self.readers.iter_mut().enumerate() {
            let Some(reader) = reader else { continue };
            match reader.read(&self.by_call) {
                Ok((value, off_ns)) => {
                    reading.values[at] = value;
                    if at == 0 {
                        reading.off_ns = off_ns;
                    }
                }
                Err(_) => {
                    // Different from any other reading: the run is left out.
                    self.failed += 1;
                    reading.off_ns = u64::MAX - self.failed;
                    break;
                }
            }
        }
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::bundle;

    #[test]
    fn every_error_says_what_to_do() {
        let of = |errno: Errno, name: &str| {
            let bundle = bundle(name).unwrap();
            CounterError::of(&errno.into(), &bundle.events[0], bundle.source)
        };
        let refused = |paranoid| CounterError::Refused { paranoid };
        assert_eq!(of(Errno::ACCESS, "inst-and-clock"), refused(2));
        assert_eq!(of(Errno::PERM, "context-switches"), refused(1));
        assert_eq!(of(Errno::PERM, "page-faults"), refused(2));
        assert_eq!(
            of(Errno::NOSYS, "page-faults"),
            CounterError::NoKernelSupport
        );
        assert_eq!(of(Errno::SRCH, "branch-mispred"), CounterError::NoThread);
        let other = of(Errno::MFILE, "branch-mispred").to_string();
        assert!(
            other.starts_with("`branches` cannot be counted: "),
            "{other}"
        );
        // Events of the kernel do not need a PMU.
        assert!(matches!(
            of(Errno::NOENT, "page-faults"),
            CounterError::Other { .. }
        ));
    }
}
