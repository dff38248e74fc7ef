//! Tables that workers read without locks while one writer changes them.
//!
//! - [`qsbr`]: snapshots ([`Snap`], [`Publisher`]) and grace periods ([`Domain`], [`Reader`]), after which an old value is
//!   freed. Readers never write shared memory except for one store per loop, and the writer never waits for them.
//! - [`exchange`]: bounded rings from one thread to another, and the epochs that keep order across several of them.
//! - [`notices`]: one word that shows whether anything was enqueued in any of several queues.
//! - [`lpm4`], [`lpm6`]: longest-prefix match from addresses to 31-bit leaf ids. Leaf 0 means "no route".
//! - [`Pages`]: large zeroed arrays.
//! - [`mac`]: exact match from 64-bit keys (a MAC address and its bridge domain) to entries, with marks of use.
//!
//! The control thread owns the writer halves ([`Lpm4`], [`Lpm6`], [`MacTable`], [`Publisher`]); workers hold the cloneable
//! reader halves ([`Lpm4Snap`], [`Lpm6Snap`], [`MacSnap`], [`Snap`]) and read them under a [`Guard`], once per frame.
//! A change is visible to every read that starts after the writer's call returned. To learn when all
//! workers use it, take a ticket from [`Domain::epoch`] and poll [`Domain::passed`].

mod deferred;
mod error;
pub mod exchange;
pub mod lpm4;
pub mod lpm6;
pub mod mac;
pub mod notices;
mod pages;
pub mod qsbr;
mod sync;

pub use error::LpmError;
pub use lpm4::{Lpm4, Lpm4Snap, Lpm4View};
pub use lpm6::{Lpm6, Lpm6Snap, Lpm6View};
pub use mac::{MacSnap, MacTable, MacView};
pub use pages::{Pages, Zeroed};
pub use qsbr::{Domain, GracePeriod, Guard, Publisher, Reader, Snap};

/// The largest leaf id a table can hold.
pub const MAX_LEAF: u32 = (1 << 31) - 1;
