//! Bundles of performance events (`perfmon start bundle NAME`), the counters of a thread for them, and the figures for packets and
//! calls of a node.
//!
//! Counters are opened with `perf_event_open` for the id of a thread. Only that thread reads them: in user mode where the kernel
//! allows it (`rdpmc`), by `read` otherwise.
#![forbid(unsafe_code)]

mod bundle;
mod figures;
mod group;

pub use bundle::{BUNDLES, Bundle, Event, Ratio, Source, bundle};
pub use figures::Figures;
pub use group::{CounterError, Group, How, availability, this_thread};
