//! State that workers read: see [`DataPlane`].
//!
//! Invariants while a worker holds a guard: every leaf, group and slot that it has read stays valid; each prefix, each load
//! balance and each group changes by one atomic store, so a packet is forwarded by the old or by the new state, never by a
//! mixture.

mod adjacency;
mod balance;
mod counters;
mod deferred;
mod dpo;
mod grow;
mod view;

pub use adjacency::{
    ADJ_COMPLETE, ADJ_ETHERNET, AdjData, AdjFacts, AdjSnap, AdjTable, AdjView, AdjWords,
    MAX_REWRITE,
};
pub use balance::{LbSnap, LbView, LeafView, MAX_BUCKETS};
pub use counters::{CounterSnap, CounterView, RouteCount};
pub use dpo::{Dpo, DpoKind, DropWhy};
pub use view::{DataPlane, Fib4Snap, Fib6Snap, MAX_TABLES, View};

pub(crate) use adjacency::Adjacencies;
pub(crate) use balance::LoadBalances;
pub(crate) use deferred::Slots;
pub(crate) use grow::Grow;
pub(crate) use view::{Own, TableSet};
