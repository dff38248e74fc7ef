//! Bundles: events that are counted together.

use perf_event::Builder;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Software};

/// What counts the events of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The processor's performance monitoring unit (PMU).
    Processor,
    /// The kernel.
    Kernel,
}

impl Source {
    /// The name in replies.
    pub fn name(self) -> &'static str {
        match self {
            Source::Processor => "PMU",
            Source::Kernel => "kernel",
        }
    }
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// The name in replies and metrics.
    pub name: &'static str,
    kind: Kind,
}

/// The event as the kernel knows it.
#[derive(Clone, Debug)]
enum Kind {
    Processor(Hardware),
    /// Loads, or fetches of instructions.
    Cache(CacheId, CacheResult),
    /// In user mode.
    User(Software),
    /// Also in the kernel.
    Any(Software),
}

impl Event {
    /// A counter of the event for a thread that is not counted yet.
    pub(crate) fn builder(&self, thread: i32) -> Builder<'_> {
        let mut builder = match self.kind.clone() {
            Kind::Processor(event) => Builder::new(event),
            Kind::Cache(which, result) => Builder::new(Cache {
                which,
                operation: CacheOp::READ,
                result,
            }),
            Kind::User(event) | Kind::Any(event) => Builder::new(event),
        };
        builder.observe_pid(thread).any_cpu();
        builder
            .exclude_hv(true)
            .exclude_kernel(self.is_of_user_mode());
        builder
    }

    /// Whether what happens in the kernel is left out.
    pub(crate) fn is_of_user_mode(&self) -> bool {
        !matches!(self.kind, Kind::Any(_))
    }
}

/// A quotient of two events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The name in replies.
    pub name: &'static str,
    /// The position of the event that is divided.
    pub of: usize,
    /// The position of the event that it is divided by.
    pub by: usize,
    /// 100 if the quotient is a percentage, otherwise 1.
    pub factor: f64,
}

/// Events that are counted together.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The name in commands.
    pub name: &'static str,
    /// What counts the events.
    pub source: Source,
    /// The events; the first one must exist.
    pub events: &'static [Event],
    /// A quotient of two of the events.
    pub ratio: Option<Ratio>,
}

const fn processor(name: &'static str, event: Hardware) -> Event {
    let kind = Kind::Processor(event);
    Event { name, kind }
}

const fn cache(name: &'static str, of: CacheId, what: CacheResult) -> Event {
    let kind = Kind::Cache(of, what);
    Event { name, kind }
}

const fn user(name: &'static str, event: Software) -> Event {
    let kind = Kind::User(event);
    Event { name, kind }
}

const fn any(name: &'static str, event: Software) -> Event {
    let kind = Kind::Any(event);
    Event { name, kind }
}

/// The bundle of this name.
pub fn bundle(name: &str) -> Option<&'static Bundle> {
    BUNDLES.iter().find(|it| it.name == name)
}

/// All bundles. Names that VPP has mean the same as there.
pub static BUNDLES: [Bundle; 5] = [
    Bundle {
        name: "inst-and-clock",
        source: Source::Processor,
        events: &[
            processor("instructions", Hardware::INSTRUCTIONS),
            processor("cycles", Hardware::CPU_CYCLES),
        ],
        ratio: Some(Ratio {
            name: "IPC",
            of: 0,
            by: 1,
            factor: 1.0,
        }),
    },
    Bundle {
        name: "cache-hierarchy",
        source: Source::Processor,
        events: &[
            cache("l1d-misses", CacheId::L1D, CacheResult::MISS),
            cache("l1i-misses", CacheId::L1I, CacheResult::MISS),
            // A load that misses the second level accesses the last one.
            cache("l2-misses", CacheId::LL, CacheResult::ACCESS),
            cache("llc-misses", CacheId::LL, CacheResult::MISS),
        ],
        ratio: None,
    },
    Bundle {
        name: "branch-mispred",
        source: Source::Processor,
        events: &[
            processor("branches", Hardware::BRANCH_INSTRUCTIONS),
            processor("branch-misses", Hardware::BRANCH_MISSES),
        ],
        ratio: Some(Ratio {
            name: "mispredicted %",
            of: 1,
            by: 0,
            factor: 100.0,
        }),
    },
    Bundle {
        name: "context-switches",
        source: Source::Kernel,
        events: &[
            any("context-switches", Software::CONTEXT_SWITCHES),
            any("migrations", Software::CPU_MIGRATIONS),
        ],
        ratio: None,
    },
    Bundle {
        name: "page-faults",
        source: Source::Kernel,
        events: &[
            user("minor-faults", Software::PAGE_FAULTS_MIN),
            user("major-faults", Software::PAGE_FAULTS_MAJ),
            user("task-clock", Software::TASK_CLOCK),
        ],
        ratio: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use volley_graph::MAX_EVENTS;

    #[test]
    fn bundles_fit_into_a_group_and_no_two_have_one_name() {
        let names: BTreeSet<&str> = BUNDLES.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), BUNDLES.len());
        let mut events = BTreeSet::new();
        for bundle in &BUNDLES {
            let count = bundle.events.len();
            assert!((1..=MAX_EVENTS).contains(&count), "{}", bundle.name);
            if let Some(ratio) = bundle.ratio {
                assert!(ratio.of < count && ratio.by < count, "{}", bundle.name);
            }
            for event in bundle.events {
                assert!(events.insert(event.name), "{}", event.name);
            }
        }
    }
}
